package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/agentevents/agentevents/dialect"
)

func convertCommand() command {
	var formats strings.Builder
	for _, w := range wires() {
		fmt.Fprintf(&formats, "  %-16s %s\n", w.name, w.about)
	}
	return command{
		name:    "convert",
		args:    "[--from FORMAT] --to FORMAT [flags] FILE...",
		purpose: "write a log in the format of another document",
		about: `
The formats are:

` + formats.String() + `
Without --from the format of every line is found out, so files may be mixed.
Lines of the published profiles openwop:v1 and openwop:v2 are read as openwop
then: the events are the same, but what goes without saying in the profile is
kept as unknown members. Such logs are best named with --from.

What the new format cannot say of an event, and what it asks for and the event
does not say, is listed on standard error at the end; events that it has no
counterpart for are left out and listed too. That is no failure unless --strict
is given. To the format it came from, a line is written as it was; of a frame
of Server-Sent Events that is its data.`,
		examples: []string{
			"agentevents convert --to kahn run.jsonl > fleet.jsonl",
			"agentevents convert --from kahn --to native --strict fleet.jsonl > run.jsonl",
		},
		flags: func(fs *flag.FlagSet) action {
			var from, to wireFlag
			l := logReader{verb: true}
			l.flags(fs)
			fs.Var(&from, "from", "the `FORMAT` of the files; default: found out line by line")
			fs.Var(&to, "to", "the `FORMAT` to write")
			strict := fs.Bool("strict", false, "exit with 1 when anything is lost or made up")
			quiet := fs.Bool("quiet", false, "do not list what is lost or made up")
			return func(in *invocation) error {
				if to.wire == nil {
					return usageError("--to is needed: one of " + strings.Join(wireNames(), ", "))
				}
				l.decoder = from.newDecoder(false)
				events, err := l.events(in)
				if err != nil {
					return err
				}
				enc := to.encoder()
				var lines []byte
				for at, ev := range events {
					lines, err = enc.Append(lines[:0], ev)
					if err != nil && !errors.Is(err, dialect.ErrNoCounterpart) {
						l.bad++
						l.report(at, clip(visible(err.Error())))
					}
					if _, err := in.stdout.Write(lines); err != nil {
						return err
					}
				}
				if lines, err = enc.End(lines[:0]); err != nil {
					return err
				}
				if _, err := in.stdout.Write(lines); err != nil {
					return err
				}
				losses := enc.Losses()
				if !*quiet {
					in.stdout.Flush() // keep both outputs in order
					for _, loss := range losses {
						fmt.Fprintln(in.stderr, lossText(loss))
					}
				}
				if err := l.result(); err != nil {
					return err
				}
				if *strict && len(losses) > 0 {
					return errProblems
				}
				return nil
			}
		},
	}
}

// lossText says what was lost, how often and where first, in one line of a
// bearable length.
func lossText(l dialect.Loss) string {
	l.Pointer, l.RunID = clip(l.Pointer), clip(l.RunID)
	return visible(l.String())
}
