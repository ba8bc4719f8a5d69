package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
)

func tailCommand() command {
	return command{
		name:    "tail",
		args:    "[flags] FILE",
		purpose: "print the last events of a log, and with -f the events that are appended",
		about: `
Prints lines as 'agentevents cat' prints them. With -f it then prints appended lines, also
after the log is rotated, until an interrupt (Ctrl-C), which is not an error. It waits for a
FILE that does not exist yet. It reports missing, truncated and replaced files on standard
error. A session of an agent program is read as a whole and cannot be followed.

Unreadable lines are reported if they stand between or after the printed events. They do not
change the exit status of -f.`,
		examples: []string{
			"agentevents tail -n 20 --kind agent.toolReturned run.jsonl",
			"agentevents tail -f --agent planner run.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			t := tail{l: logReader{verb: true}}
			t.l.stream(fs)
			t.only.flags(fs)
			fs.IntVar(&t.n, "n", 10, "print the last `N` events first; default: 10")
			follow := fs.Bool("f", false, "follow the log: print appended lines, until interrupted")
			return func(in *invocation) error {
				t.in, t.print.out = in, in.stdout
				switch {
				case t.n < 0:
					return usageError("-n must not be below 0")
				case len(in.args) > 1:
					return usageError("name one FILE: tail prints one log")
				case *follow && len(in.args) == 1 && in.args[0] == "-":
					return usageError("standard input cannot be followed; 'agentevents cat -' prints it as it comes")
				}
				ctx := context.Background()
				t.l.open = t.last
				if *follow && len(in.args) == 1 {
					sessions, err := t.l.sessions(in, logOf(in.args[0]))
					if len(sessions) > 0 {
						return usageError(fmt.Sprintf("%s: a session of %s is read as a whole and cannot be followed: "+
							"leave out -f for its last events", in.args[0], sessions[0].Program()))
					} else if err != nil {
						return err
					}
				}
				if *follow {
					var stop context.CancelFunc
					ctx, stop = in.interrupted()
					defer stop()
					t.l.open = func(name string) iter.Seq2[input, error] { return t.follow(ctx, stop, name) }
				}
				t.l.report = func(at position, what string) {
					t.add(false, func() error {
						t.problems++
						t.l.print(in, at, what)
						return nil
					})
				}
				events, err := t.l.events(in)
				if err != nil {
					return err
				}
				for at, ev := range events {
					if *follow && ctx.Err() != nil {
						return nil
					}
					for _, ev := range t.only.pick(ev) {
						if err := t.add(true, func() error { return t.print.print(&t.l, at, &ev) }); err != nil {
							return err
						}
					}
				}
				if err := t.live(); err != nil {
					return err
				}
				if t.l.bad = t.problems; *follow {
					t.l.bad = 0
					return t.l.result()
				}
				if t.n == 0 { // the log was not read for it
					return t.l.result()
				}
				return cmp.Or(t.only.missing(&t.l), t.l.result())
			}
		},
	}
}

// A tail keeps the last events of a log until it knows that they are the last.
type tail struct {
	in    *invocation
	l     logReader
	only  filter
	n     int
	print printer

	kept     []kept
	events   int  // number of kept events
	dropped  bool // an event was dropped
	isLive   bool // nothing is kept any more
	problems int  // that were reported
}

// A kept is an event, or a report.
type kept struct {
	event bool
	show  func() error
}

// add keeps the output of show. Beyond n events the oldest one is dropped, and so are the reports
// up to the next one.
func (t *tail) add(event bool, show func() error) error {
	if t.isLive {
		return show()
	}
	t.kept = append(t.kept, kept{event, show})
	if event {
		t.events++
	}
	for t.events > t.n || t.dropped && len(t.kept) > 0 && !t.kept[0].event {
		if t.kept[0].event {
			t.events--
			t.dropped = true
		}
		t.kept[0] = kept{}
		t.kept = t.kept[1:]
	}
	return nil
}

// live prints the kept output, and makes add print at once.
func (t *tail) live() error {
	t.isLive = true
	for _, k := range t.kept {
		if err := k.show(); err != nil {
			return err
		}
	}
	t.kept = nil
	return t.in.stdout.Flush()
}

// first returns the number of the segment to begin with: the last one from which on there are
// enough events. 0 is the oldest.
func (t *tail) first(log string) int {
	segments, err := logfile.Segments(log)
	if err != nil {
		return 0 // the opener of the log reports the reason
	}
	found := 0
	for i := len(segments) - 1; i > 0; i-- {
		f, err := segments[i].Open()
		if err != nil {
			continue
		}
		for ev, err := range agentevents.NewReader(f,
			agentevents.ReaderOptions{Decoder: anyDecoder(t.l.run), MaxLine: t.l.maxLine}).All() {
			if err == nil {
				found += len(t.only.pick(ev))
			}
		}
		f.Close()
		if found >= t.n {
			return segments[i].Number
		}
	}
	return 0
}

// last opens the end of a log.
func (t *tail) last(name string) iter.Seq2[input, error] {
	return func(yield func(input, error) bool) {
		first := 0
		if name != "-" {
			first = t.first(name)
		}
		for from, err := range t.in.inputs(name) {
			var missing *logfile.MissingError
			if errors.As(err, &missing) {
				from.number = missing.Last
			}
			if from.number >= first && !yield(from, err) {
				return
			}
		}
	}
}

// follow opens the end of a log, and waits for more. stop ends that.
func (t *tail) follow(ctx context.Context, stop func(), name string) iter.Seq2[input, error] {
	return func(yield func(input, error) bool) {
		p := parts{}
		f, err := logfile.Follow(ctx, name, logfile.FollowOptions{
			First: t.first(name),
			Idle: func() {
				if t.live() != nil {
					stop() // nobody reads the output
				}
			},
			Report: func(err error) {
				p.next = true // the lines of a new file are counted anew
				t.l.files = append(t.l.files, visible(placeOf(err, name)))
				t.l.report(position{file: len(t.l.files) - 1}, visible(lost(err)))
			},
		})
		if err != nil {
			yield(input{name: name}, err)
			return
		}
		defer f.Close()
		if _, err := logfile.Segments(name); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(t.in.stderr, "agentevents tail: %s: it is not there yet; waiting for it\n", visible(name))
		}
		for p.f = f; p.begin(); {
			if !yield(input{Reader: &p, name: p.at.Path}, nil) {
				return
			}
		}
		if p.err != io.EOF {
			yield(input{name: placeOf(p.err, name)}, p.err)
		}
	}
}

// parts divide the text of a follower into its files: Read returns io.EOF at the end of each.
type parts struct {
	f    *logfile.Follower
	at   logfile.Segment
	buf  [32 << 10]byte
	text []byte // in buf: the next text
	next bool   // it belongs to another file
	err  error  // after text
}

// begin waits for the next file. It returns false when there is none.
func (p *parts) begin() bool {
	p.fill()
	p.at, p.next = p.f.Segment(), false
	return len(p.text) > 0
}

func (p *parts) fill() {
	if len(p.text) > 0 || p.err != nil {
		return
	}
	n, err := p.f.Read(p.buf[:])
	p.text, p.err = p.buf[:n], err
	p.next = p.next || p.f.Segment().Number != p.at.Number
}

func (p *parts) Read(b []byte) (int, error) {
	p.fill()
	if p.next || len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.text)
	p.text = p.text[n:]
	return n, nil
}
