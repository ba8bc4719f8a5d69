package main

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/readback"
)

func convertCommand() command {
	var formats strings.Builder
	for _, w := range wires() {
		fmt.Fprintf(&formats, "  %-16s %s\n", w.name, w.about)
	}
	return command{
		name:    "convert",
		args:    "[--from FORMAT] --to FORMAT [flags] FILE...",
		purpose: "write a log in another format",
		about: `
The formats are:

` + formats.String() + `
Without --from the format of each line is detected, so a file may have lines of several
formats. Lines of openwop:v1 and openwop:v2 are then read as openwop: the events are the
same, but the members that these schemas imply are kept as extra members. For these two
formats give --from.

At the end standard error lists the lost values and the made-up values. A value is lost
if the new format has no place for it. A value is made up if the new format requires it
and the event lacks it. Values that were made up to read the files, such as missing ids,
come first, after "reading:". Events that the new format cannot express are left out and
listed too. With --strict the exit status is 1 if the list is not empty.

To make the list, convert reads each line back and compares it with its event. --fast and
--quiet skip this step. The openwop formats list their losses while they write. --verify
checks the list: it reads the whole output back, compares each event, and reports each
difference that the list lacks. The exit status is then 1.

A line that is converted to its own format keeps its bytes. A frame of Server-Sent Events
keeps the bytes of its data.

With --redact secrets are masked as 'agentevents redact' masks them. The changes are
listed too, after "redacting:"; --verify compares the output with the redacted events.
Lines do not keep their bytes then.`,
		examples: []string{
			"agentevents convert --to kahn run.jsonl > fleet.jsonl",
			"agentevents convert --from kahn --to native --verify fleet.jsonl > run.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var c conversion
			c.l.flags(fs)
			c.r.flags(fs)
			fs.BoolVar(&c.redact, "redact", false, "mask secrets")
			fs.Var(&c.from, "from", "the `FORMAT` of the files; default: detected line by line")
			fs.Var(&c.to, "to", "the `FORMAT` to write")
			fs.BoolVar(&c.strict, "strict", false, "exit with 1 if a value is lost or made up")
			fs.BoolVar(&c.quiet, "quiet", false, "do not list lost and made-up values")
			fs.BoolVar(&c.verify, "verify", false,
				"read the output back and report losses that the list lacks; takes memory")
			fs.BoolVar(&c.fast, "fast", false, "do not read lines back to list losses")
			return c.run
		},
	}
}

// A conversion writes the files in the format to.
type conversion struct {
	l                                   logReader
	r                                   redactor
	from, to                            wireFlag
	redact, strict, quiet, verify, fast bool
	redacted                            dialect.Losses
}

func (c *conversion) run(in *invocation) error {
	events, err := c.events(in)
	if err != nil {
		return err
	}
	enc := c.to.encoder(writing{fast: c.fast || c.quiet && !c.strict && !c.verify})
	var out []byte
	var trip readback.Trip
	for at, ev := range events {
		out, err = enc.Append(out[:0], ev)
		if c.verify {
			trip.Wrote(respelled(ev), out, err)
		}
		if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) {
			c.l.bad++
			c.l.report(at, clip(visible(err.Error())))
		}
		if _, err := in.stdout.Write(out); err != nil {
			return err
		}
	}
	if out, err = enc.End(out[:0]); err != nil {
		return err
	}
	if _, err := in.stdout.Write(out); err != nil {
		return err
	}
	losses, made, changes := enc.Losses(), c.to.madeUp(c.l.decoder, &c.from), c.redacted.List()
	if !c.quiet {
		c.r.report(in)
		in.list("reading: ", made)
		in.list("redacting: ", changes)
		in.list("", losses)
	}
	unlisted := 0
	if c.verify {
		trip.Wrote(agentevents.Event{}, out, nil)
		trip.Losses = losses
		unlisted = readBack(in, c.to.wire, &trip)
	}
	if err := c.l.result(); err != nil {
		return err
	}
	if unlisted > 0 || c.strict && len(losses)+len(made)+len(changes) > 0 {
		return errProblems
	}
	return nil
}

// events checks the flags and yields the events to write.
func (c *conversion) events(in *invocation) (iter.Seq2[position, agentevents.Event], error) {
	if c.to.wire == nil {
		return nil, usageError("--to is needed: one of " + strings.Join(wireNames(), ", "))
	}
	c.l.decoder, c.l.verb = c.from.newDecoder(reading{run: c.l.run}), !c.redact
	c.l.kept = c.to.dialect() != dialect.Native || c.redact || c.verify // other encoders keep events
	lines, err := c.l.each(in)
	if err != nil {
		return nil, err
	}
	if c.fast && (c.strict || c.verify) {
		return nil, usageError("--strict and --verify need the list that --fast leaves out: leave out --fast")
	}
	events := unlined(lines)
	if !c.redact {
		if c.r.given() {
			return nil, usageError(redactFlags + " need --redact")
		}
		return events, nil
	}
	if err := c.r.open(in); err != nil {
		return nil, err
	}
	c.r.changed = func(was, is *agentevents.Event) { addChanges(&c.redacted, was, is) }
	return c.r.events(&c.l, events), nil
}

// respelled returns an event that is not written as its line was: the order of members of a
// type means nothing.
func respelled(ev agentevents.Event) agentevents.Event {
	var again agentevents.Event
	if line, err := ev.AppendJSON(nil); err != nil || again.UnmarshalJSON(line) != nil {
		return ev
	}
	return again
}

// addChanges adds the places where redaction changes an event: members of the event and
// of its payload. Their names are those that redaction leaves.
func addChanges(losses *dialect.Losses, was, is *agentevents.Event) {
	differences, err := readback.Diff(*was, *is)
	if err != nil {
		return // whoever writes the event reports that
	}
	renamed := slices.ContainsFunc(differences, func(d readback.Difference) bool { return d.Before == "" && !strings.HasPrefix(d.Pointer, "/marks") })
	var places []string
	for _, d := range differences {
		tokens := strings.SplitN(d.Pointer, "/", 4)
		if tokens[1] != "payload" {
			tokens = tokens[:2]
		}
		place := strings.Join(tokens[:min(len(tokens), 3)], "/")
		if tokens[1] != "marks" && !(renamed && d.After == "") && !slices.Contains(places, place) {
			places = append(places, place)
			losses.Add(is, dialect.Altered, place, "")
		}
	}
}

// maxUnlisted is how many differences --verify prints.
const maxUnlisted = 100

// readBack reads the lines back and prints the differences that no loss lists. It returns their
// number.
func readBack(in *invocation, w *wire, t *readback.Trip) (n int) {
	report := func(what string) {
		if n++; n <= maxUnlisted {
			fmt.Fprintln(in.stderr, "verify: "+visible(clip(what)))
		}
	}
	t.Brief = true
	dec := w.decoder(reading{})
	for _, err := range t.Read(agentevents.ReaderOptions{Decoder: dec}) {
		report("the output cannot be read back: " + err.Error())
	}
	// Members that a reader keeps from the line, or gives to every event.
	t.Derived = []string{"/" + string(w.dialect()), "/schemaVersion"}
	if d, ok := dec.(dialect.Decoder); ok {
		for _, l := range d.Losses() {
			t.Derived = append(t.Derived, l.Pointer)
		}
	}
	for _, err := range t.Compare() {
		report(err.Error())
	}
	t.Unlisted(func(i int, what string) {
		if i >= 0 {
			what = fmt.Sprintf("run %s, sequence %d: %s", jsonwire.BriefName(t.Events[i].RunID), t.Events[i].Sequence, what)
		}
		report(what)
	})
	if n > maxUnlisted {
		fmt.Fprintf(in.stderr, "verify: and %d more\n", n-maxUnlisted)
	}
	return n
}

// list prints a line for each loss: the member, how often and where first.
func (in *invocation) list(prefix string, losses []dialect.Loss) {
	for _, loss := range losses {
		fmt.Fprintln(in.stderr, prefix+visible(loss.String()))
	}
}
