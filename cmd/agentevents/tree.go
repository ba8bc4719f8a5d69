package main

import (
	"flag"
	"fmt"
	"math"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

func treeCommand() command {
	return command{
		name:    "tree",
		args:    "[flags] FILE...",
		purpose: "draw the runs of a log as trees: agents, tool calls, audits and results",
		about: `
A run that still works at the end of the log is shown as interrupted, unless it waits or is
paused. With --live, for a log that is still being written, it is shown with its status.
--live is not for sessions of agent programs, which always have an end: see 'agentevents help ls'.
Events that break a rule are counted below the run; they do not change the exit status.

Colours are used on a terminal, unless the environment variable NO_COLOR is set. --color
overrides both.`,
		examples: []string{
			"agentevents tree run.jsonl",
			"agentevents tree --color always run.jsonl | less -R",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			// All calls are drawn; of the violations only their number.
			f := folder{options: agentevents.FoldOptions{KeepCalls: math.MaxInt, MaxViolations: -1}}
			var d drawing
			l.flags(fs)
			f.flags(fs, &l)
			f.one(fs)
			d.flags(fs)
			live := fs.Bool("live", false, "the log is still being written")
			return func(in *invocation) error {
				if *live {
					if err := in.checkFiles(); err != nil {
						return err
					}
					l.found = l.allSessions(in)
					for name, sessions := range l.found {
						if len(sessions) > 0 {
							return usageError(fmt.Sprintf("%s: --live is for a log: a session of %s has an end, also if its program still works",
								name, sessions[0].Program()))
						}
					}
				}
				details, err := f.read(in, &l)
				if err != nil {
					return err
				}
				o := d.options(in, details)
				o.Ended = !*live
				first := true
				for s := range f.runs().Drain() {
					if !first {
						if _, err := in.stdout.Write([]byte("\n")); err != nil {
							return err
						}
					}
					first = false
					if err := tree.Write(in.stdout, s, o); err != nil {
						return err
					}
				}
				return l.result()
			}
		},
	}
}

// A drawing has the flags of how a tree looks.
type drawing struct {
	color choice
	width int
}

func (d *drawing) flags(fs *flag.FlagSet) {
	d.color = choice{"auto", []string{"auto", "always", "never"}}
	fs.Var(&d.color, "color", "`WHEN` to use colours: auto (default), always, never")
	fs.IntVar(&d.width, "width", 0, "cut long details to fit lines of `COLUMNS`; default: 100; -1 cuts nothing")
}

func (d *drawing) options(in *invocation, details *report.Details) tree.Options {
	return tree.Options{Color: in.color(d.color.value), Width: d.width, Details: details}
}

// color reports whether to use colours.
func (in *invocation) color(when string) bool {
	if when != "auto" {
		return when == "always"
	}
	return in.env("NO_COLOR") == "" && in.terminal()
}

// terminal reports whether standard output is one that takes control sequences.
func (in *invocation) terminal() bool {
	return in.stdout.terminal && in.env("TERM") != "dumb"
}
