package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
)

func importCommand() command {
	return command{
		name:    "import",
		args:    "[PROGRAM] [flags] FILE",
		purpose: "turn what an agent program printed, or keeps on disk, into a log",
		about: `
FILE is a session that the program keeps on disk, a folder with such files, or what the
program printed. Its first lines tell the PROGRAM, unless it is named:

  claude   sessions of Claude Code, as in ~/.claude/projects, and what it prints with
           --output-format stream-json --verbose
  codex    sessions of Codex, as in ~/.codex/sessions, and what codex exec --json prints
  copilot  sessions of Copilot CLI, as in ~/.copilot/session-state, and what it prints
           with --output-format json
  opencode rows of the database of opencode as JSON, which opencode-rows prints (and sqlite3
           -json), the output of opencode export, and that of opencode run --format json
  cline    sessions of cline, as in ~/.cline/data/sessions, and what cline --json prints
  gemini   sessions of Gemini CLI, as in ~/.gemini/tmp/*/chats, and what it prints with
           --output-format stream-json
  pi       sessions of pi, as in ~/.pi/agent/sessions, and what it prints with --mode json
  qwen     sessions of Qwen Code, as in ~/.qwen/projects, and what it prints with
           --output-format stream-json

With the file of a session come those of its sub-agents beside it: they are one run.
Other commands read such files without an import, with secrets masked. Lines and members
that a reader does not know are left out; --report lists them in place of the log.

Captures often have lines of plain text between those of JSON. These are
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
			"agentevents import ~/.codex/sessions/2026/11/28 > day.jsonl",
			"claude -p hello --output-format stream-json --verbose | agentevents import claude --run r1 -",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var r redactor
			l.limit(fs)
			r.flags(fs)
			raw := fs.Bool("no-redact", false, "do not mask secrets")
			runID := fs.String("run", "", "`ID` of the run; default: that of the session or process")
			agentID := fs.String("agent", "", "`ID` of the main agent; default: the name of the program")
			at := fs.String("time", "", "`TIME` (RFC 3339) of a capture without times; default: that of the FILE")
			report := fs.Bool("report", false, "print what was not understood, in place of the log")
			strict := fs.Bool("strict", false, "exit with 1 when a line cannot be read")
			return func(in *invocation) error {
				source := importSource(in)
				if len(in.args) > 1 {
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
				l.run = *runID
				l.capture = capture.Options{AgentID: *agentID, Redaction: &agentevents.Policy{Off: true}}
				if !clock.saved.IsZero() {
					l.capture.Time = func() time.Time { return clock.saved }
				}
				known, err := l.imports(in, source)
				if err != nil {
					return err
				}
				if !known {
					if !clock.saved.IsZero() && len(in.args) == 1 {
						clock.read(in)
					}
					l.decoder = newClaudeDecoder(*runID, *agentID, clock)
				}
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
					if *report {
						l.unknown(&ev)
						continue
					}
					if err := p.print(&l, at, &ev); err != nil {
						return err
					}
				}
				r.report(in)
				if *report {
					printUnread(in.stdout, l.unread)
				}
				switch err := l.result(); {
				case none && l.bad > 0 && !known && source == "":
					l.print(in, position{}, "no program is recognised, so the lines were read as those of claude: it may be another file")
					return err
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

// sources are the names of the programs, and how package capture calls them.
var sources = map[string]string{
	"claude": "Claude Code", "codex": "Codex", "copilot": "Copilot CLI", "opencode": "opencode", "cline": "cline",
	"gemini": "Gemini CLI", "pi": "pi", "qwen": "Qwen Code",
}

// importSource takes the name of a program from the arguments, if the first one is such.
func importSource(in *invocation) string {
	if len(in.args) == 0 || sources[in.args[0]] == "" {
		return ""
	}
	source := in.args[0]
	in.args = in.args[1:]
	return source
}

// imports reports whether FILE is a session of the source, or of any program, that package
// capture reads. Else it is a stream of the Claude CLI.
func (l *logReader) imports(in *invocation, source string) (bool, error) {
	if len(in.args) == 0 {
		return false, nil
	}
	var program string
	name := in.args[0]
	if name != "-" {
		sessions, err := l.sessions(name)
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			return false, fmt.Errorf("%s: %w", visible(pe.Path), pe.Err)
		} else if err != nil {
			return false, err
		}
		if len(sessions) > 0 {
			program = sessions[0].Program()
		}
	} else if source != "claude" {
		head, rest := peek(in.stdin)
		in.stdin = rest
		if d, ok := capture.NewDecoder([]string{head}, capture.Options{}); ok {
			program = d.Program()
		}
	}
	if want := sources[source]; want != "" && program != want {
		if source != "claude" {
			return false, fmt.Errorf("%s: this is no session of %s, nor what it prints", visible(name), want)
		}
		return false, nil
	}
	return program != "", nil
}

// unknown counts an event that keeps a line of a kind that is not known.
func (l *logReader) unknown(ev *agentevents.Event) {
	p, ok := ev.Payload.(*agentevents.Unknown)
	if !ok {
		return
	}
	for i := range l.unread {
		if u := &l.unread[i]; u.Kind == string(p.Type) {
			u.Count++
			return
		}
	}
	l.unread = append(l.unread, capture.Unread{Program: "Claude Code", Kind: strings.Clone(string(p.Type)), Count: 1})
}

// printUnread prints the lines and members that readers did not understand, with equal rows of
// several sessions as one.
func printUnread(out *output, rows []capture.Unread) {
	if len(rows) == 0 {
		fmt.Fprintln(out, "all lines and members were understood")
		return
	}
	sums := map[capture.Unread]int{}
	for _, u := range rows {
		n := u.Count
		u.Count = 0
		sums[u] += n
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b capture.Unread) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pointer, b.Pointer))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tPROGRAM\tVERSION\tLINE\tMEMBER")
	for _, u := range keys {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", sums[u], u.Program, cmp.Or(visible(u.Version), "-"), visible(u.Kind), cmp.Or(visible(u.Pointer), "all"))
	}
	w.Flush()
}
