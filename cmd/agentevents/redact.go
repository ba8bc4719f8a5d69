package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

func redactCommand() command {
	return command{
		name:    "redact",
		args:    "[flags] FILE...",
		purpose: "print a log with its secrets masked",
		about: `
Masks the credentials in texts and JSON that an emitter masks by default, also where a
credential is split over the deltas of a block. Ids, order, sequences, times and statuses
stay, and no event is added or left out. Lines of other formats are printed as native lines.

Standard error has the number of masked values by rule, if any:

  masked 12: key 7, token 3, secret 2, in 9 of 240 events

The rules are key (a value after the name of a credential), token (a text in the form of a
credential), secret (a value from --secrets, without the blanks around it) and card (the
number of a payment card). A second redaction changes nothing.

The copy of a chained log is chained too: its first line has the hash of the last line of
the log. A chained log on standard input gets a copy without a chain, because it can be
read only once; a note on standard error reports that.

A line that cannot be read is reported and left out, and the exit status is 1. Ids and
names of tools and agents are not masked, nor are secrets without a known form, such as a
project name: read the result before you give it away.`,
		examples: []string{
			"agentevents redact run.jsonl > share.jsonl",
			"agentevents redact --secrets values.txt --key badge_no --reasoning off run.jsonl > share.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var from wireFlag
			var r redactor
			l.flags(fs)
			r.flags(fs)
			fs.Var(&from, "from", "the `FORMAT` of the files; default: detected line by line")
			return func(in *invocation) error {
				l.decoder = from.newDecoder(reading{run: l.run})
				events, err := l.events(in)
				if err != nil {
					return err
				}
				if err := r.open(in); err != nil {
					return err
				}
				p := printer{out: in.stdout}
				c := chainCheck{l: &l}
				if last, ok := in.lastLink(l.maxLine); ok {
					p.last = &last
				} else {
					l.raw = c.reader
				}
				for at, ev := range r.events(&l, events) {
					if err := p.print(&l, at, &ev); err != nil {
						return err
					}
				}
				r.report(in)
				if c.begun {
					fmt.Fprintln(in.stderr, "agentevents redact: the copy of the chained log has no chain, "+
						"because standard input can be read only once; name the FILE of the log to chain the copy")
				}
				return l.result()
			}
		},
	}
}

// maskRules are the rules in the markers of this masking.
var maskRules = [...]string{"key", "token", "secret", "card"}

// A redactor redacts the events of a log and counts the masked values.
type redactor struct {
	secrets, keys, keep list
	reasoning           choice
	policy              agentevents.Policy
	// changed, if not nil, receives every event that was changed.
	changed func(was, is *agentevents.Event)

	was, is []byte              // lines of one event
	all     int                 // events
	hidden  int                 // events with a marker that they did not have
	cut     int                 // other events that changed
	masked  [len(maskRules)]int // markers by rule
}

func (r *redactor) flags(fs *flag.FlagSet) {
	r.reasoning.values = []string{string(agentevents.VerbosityFull),
		string(agentevents.VerbositySummary), string(agentevents.VerbosityOff)}
	fs.Var(&r.secrets, "secrets", "mask the values in `FILE`, one per line; may be given several times")
	fs.Var(&r.keys, "key", "mask values after names that end with `NAME`; may be given several times")
	fs.Var(&r.keep, "keep", "names that end with `NAME` are not credentials; may be given several times")
	fs.Var(&r.reasoning, "reasoning", "keep reasoning up to `VERBOSITY`: full, summary or off; default: as recorded")
}

// redactFlags are the flags of a redactor.
const redactFlags = "--secrets, --key, --keep and --reasoning"

// given reports whether one of the flags is given.
func (r *redactor) given() bool {
	return len(r.secrets)+len(r.keys)+len(r.keep) > 0 || r.reasoning.value != ""
}

// open reads the files of secrets. Messages never show a value.
func (r *redactor) open(in *invocation) error {
	var values []string
	for i, name := range r.secrets {
		if name == "-" && (slices.Contains(in.args, "-") || slices.Contains(r.secrets[:i], "-")) {
			return usageError("standard input can be read only once: name - once")
		}
		text, err := in.readAll(name)
		if err != nil {
			return fmt.Errorf("--secrets: %w", err)
		}
		n := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			n++
			value := strings.TrimSpace(line)
			if value == "" {
				continue
			}
			if errors.Is(new(agentevents.Secrets).Add(value), agentevents.ErrSecretTooShort) {
				return fmt.Errorf("--secrets: %s:%d: a secret must have at least 4 bytes", name, n)
			}
			values = append(values, value)
		}
	}
	r.policy.Keys, r.policy.KeepKeys = r.keys, r.keep
	r.policy.Reasoning = agentevents.Verbosity(r.reasoning.value)
	r.policy.Secrets = new(agentevents.Secrets)
	return r.policy.Secrets.Add(values...)
}

// readAll returns the text of a file.
func (in *invocation) readAll(name string) (string, error) {
	if name == "-" {
		text, err := io.ReadAll(in.stdin)
		return string(text), err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// events yields the redacted events, with their positions. An event that cannot be redacted is
// reported and left out.
func (r *redactor) events(l *logReader,
	events iter.Seq2[position, agentevents.Event]) iter.Seq2[position, agentevents.Event] {
	type source struct {
		at position
		ev agentevents.Event
	}
	room := make([]source, 16)
	waiting := room[:0] // events that were read and have not come back
	read := func(yield func(agentevents.Event, error) bool) {
		for at, ev := range events {
			waiting = append(waiting, source{at, ev})
			if !yield(ev, nil) {
				return
			}
		}
	}
	return func(yield func(position, agentevents.Event) bool) {
		for ev, err := range r.policy.Redact(read) { // one for each, in order
			was := waiting[0]
			waiting[0] = source{}
			if waiting = waiting[1:]; len(waiting) == 0 {
				waiting = room[:0]
			}
			r.all++
			if err != nil {
				l.bad++
				l.report(was.at, clip(visible(err.Error())))
				continue
			}
			r.count(&was.ev, &ev)
			if !yield(was.at, ev) {
				return
			}
		}
	}
}

// count compares an event with its redacted form.
func (r *redactor) count(was, is *agentevents.Event) {
	var err error
	if r.was, err = was.AppendJSON(r.was[:0]); err != nil {
		return // whoever writes it reports that
	}
	if r.is, err = is.AppendJSON(r.is[:0]); err != nil || bytes.Equal(r.was, r.is) {
		return
	}
	masked := false
	for i, rule := range maskRules {
		marker := []byte("[REDACTED:" + rule + "]")
		if n := bytes.Count(r.is, marker) - bytes.Count(r.was, marker); n > 0 {
			r.masked[i] += n
			masked = true
		}
	}
	if masked {
		r.hidden++
	} else {
		r.cut++
	}
	if r.changed != nil {
		r.changed(was, is)
	}
}

// report prints the numbers of masked values.
func (r *redactor) report(in *invocation) {
	in.stdout.Flush() // keep both outputs in order
	sum, text := 0, ""
	for i, n := range r.masked {
		if sum += n; n > 0 {
			text += fmt.Sprintf(" %s %d,", maskRules[i], n)
		}
	}
	if sum > 0 {
		fmt.Fprintf(in.stderr, "masked %d:%s in %d of %d events\n", sum, text, r.hidden, r.all)
	}
	if r.cut > 0 {
		fmt.Fprintf(in.stderr, "cut text, or moved it to the next delta, in %d of %d events\n", r.cut, r.all)
	}
}
