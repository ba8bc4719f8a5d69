package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func importCommand() command {
	return command{
		name:    "import",
		args:    "claude [flags] FILE",
		purpose: "turn what an agent program printed into a log",
		about: `
The source claude reads what the Claude CLI prints with --output-format
stream-json --verbose.

Such captures often have lines of plain text between those of JSON. These are
reported on standard error and skipped. The exit status stays 0 unless --strict
is given or no line can be read.

In a saved capture lines without a time get that of the line before them, or the first
that there is. If no line has a time, all get that of the FILE's last change, or that of
--time; the run then begins earlier, by the durations that its results state. What comes
from - without --time is taken to be printed right now.

The run's id is that of the process that printed the capture: one that resumes a session
prints the same session id and is another run.

Secrets are masked as 'agentevents redact' masks them, and counted on standard error,
unless --no-redact is given.`,
		examples: []string{
			"agentevents import claude capture.jsonl > run.jsonl",
			"claude -p hello --output-format stream-json --verbose | agentevents import claude --run r1 -",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var r redactor
			l.limit(fs)
			r.flags(fs)
			raw := fs.Bool("no-redact", false, "do not mask secrets")
			runID := fs.String("run", "", "`ID` of the run; default: the uuid of the capture's first init line")
			agentID := fs.String("agent", "", "`ID` of the main agent; default: claude")
			at := fs.String("time", "", "`TIME` (RFC 3339) of a capture without times; default: that of the FILE")
			strict := fs.Bool("strict", false, "exit with 1 when a line cannot be read")
			return func(in *invocation) error {
				if len(in.args) == 0 {
					return usageError("a source is needed: claude")
				}
				if in.args[0] != "claude" {
					return usageError(fmt.Sprintf("unknown source %q; known: claude", in.args[0]))
				}
				if in.args = in.args[1:]; len(in.args) > 1 {
					return usageError("one FILE at a time: a capture is one run")
				}
				var clock claudeClock
				if *at != "" {
					var err error
					if clock.saved, err = time.Parse(time.RFC3339, strings.ToUpper(*at)); err != nil {
						return usageError(fmt.Sprintf("--time %q is not a time like 2026-01-02T15:04:05Z", *at))
					}
				}
				if clock.saved.IsZero() && len(in.args) == 1 && in.args[0] != "-" {
					if info, err := os.Stat(in.args[0]); err == nil {
						clock.saved = info.ModTime()
					}
				}
				if !clock.saved.IsZero() && len(in.args) == 1 {
					clock.read(in)
				}
				l.decoder = newClaudeDecoder(*runID, *agentID, clock)
				events, err := l.events(in)
				if err != nil {
					return err
				}
				if !*raw {
					if err := r.open(in); err != nil {
						return err
					}
					events = r.events(&l, events)
				} else if r.given() {
					return usageError("--no-redact masks nothing: " + redactFlags + " do not go with it")
				}
				p := printer{out: in.stdout}
				none := true
				for at, ev := range events {
					none = false
					if err := p.print(&l, at, &ev); err != nil {
						return err
					}
				}
				r.report(in)
				switch err := l.result(); {
				case none && err == nil:
					if in.args[0] == "-" {
						l.print(in, position{}, emptyFile)
					}
					return errProblems // a capture has lines
				case none || *strict || l.failed:
					return err
				}
				return nil
			}
		},
	}
}
