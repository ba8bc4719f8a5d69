package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/internal/foreign"
)

func importCommand() command {
	return command{
		name:    "import",
		args:    "[PROGRAM] [flags] FILE",
		purpose: "turn the saved session or the output of an agent program into a log",
		about: `
FILE is a session file of the program, a folder with such files, or a capture: the saved
output of the program. Without PROGRAM the first lines of FILE decide which program it is:

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

The files of the sub-agents of a session are read with it: they are one run. Other commands
read session files without an import, with secrets masked. Unknown lines and members are
left out; --report lists them in place of the log.

Captures often have lines of plain text between the lines of JSON. Lines of plain text are
reported on standard error and skipped. The exit status stays 0 unless --strict is given or
no line can be read.

In a capture a line without a time gets the time of the line before it, or else the first
time in the capture. If no line has a time, all lines get --time, or else the time of the
FILE's last change, or for - the current time. A run of Claude Code then begins earlier, by
the durations that its results state; one of Qwen Code takes as long.

Files of Gemini CLI, Qwen Code and older versions of Codex do not tell the end of a session: it
counts as completed if the agent has spoken last, also if the program was stopped then. The
events of such an end, and of any other that no line tells, have the mark synthetic. Commands
draw it with a question mark, such as "completed?".

Each capture of a process is a run: a process that resumes a session prints the same
session id, but gets another run id. A FILE with several sessions or captures, one after
another, has the run of each. Lines that cannot be taken apart are reported and left out.

Secrets are masked as 'agentevents redact' masks them, and counted on standard error,
unless --no-redact is given.`,
		examples: []string{
			"agentevents import ~/.codex/sessions/2026/11/28 > day.jsonl",
			"claude -p hello --output-format stream-json --verbose | agentevents import claude --run r1 -",
		},
		flags: func(fs *flag.FlagSet) action {
			var im importing
			im.l.limit(fs)
			im.r.flags(fs)
			fs.BoolVar(&im.raw, "no-redact", false, "do not mask secrets")
			fs.StringVar(&im.l.run, "run", "", "`ID` of the run; default: the id of the session or process")
			fs.StringVar(&im.agentID, "agent", "", "`ID` of the main agent; default: the name of the program")
			fs.StringVar(&im.time, "time", "", "`TIME` (RFC 3339) of a capture without times; default: last change of FILE")
			fs.BoolVar(&im.report, "report", false, "list the lines and members that are left out, in place of the log")
			fs.BoolVar(&im.strict, "strict", false, "exit with 1 if a line cannot be read")
			return im.run
		},
	}
}

// An importing turns one FILE into a log.
type importing struct {
	l                   logReader
	r                   redactor
	agentID, time       string
	raw, report, strict bool
}

func (im *importing) run(in *invocation) error {
	events, err := im.events(in)
	if err != nil {
		return err
	}
	p := printer{out: in.stdout}
	none := true
	for at, ev := range events {
		none = false
		if im.report {
			continue
		}
		if err := p.print(&im.l, at, &ev); err != nil {
			return err
		}
	}
	im.r.report(in)
	if im.report {
		printUnread(in.stdout, im.l.unread)
	}
	switch err := im.l.result(); {
	case none && err == nil:
		return errProblems // a capture has lines
	case none || im.strict || im.l.failed:
		return err
	}
	return nil
}

// events opens the FILE.
func (im *importing) events(in *invocation) (iter.Seq2[position, agentevents.Event], error) {
	source, l := importSource(in), &im.l
	if len(in.args) > 1 {
		return nil, usageError("name one FILE: a capture is one run")
	}
	l.capture = capture.Options{AgentID: im.agentID, Redaction: &agentevents.Policy{Off: true}}
	if im.time != "" {
		saved, err := time.Parse(time.RFC3339, strings.ToUpper(im.time))
		if err != nil {
			return nil, usageError(fmt.Sprintf("--time %q is not a time like 2026-01-02T15:04:05Z", im.time))
		}
		l.capture.Time = func() time.Time { return saved }
	}
	events, err := l.events(in)
	if err == nil && im.raw && im.r.given() {
		err = usageError("--no-redact masks nothing: leave out " + redactFlags)
	} else if err == nil && !im.raw {
		err = im.r.open(in)
		events = im.r.events(l, events)
	}
	if err == nil {
		err = l.imports(in, source)
	}
	return events, err
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

// imports finds the sessions in FILE, which must be of the source if one is named.
func (l *logReader) imports(in *invocation, source string) error {
	name := in.args[0]
	sessions, err := l.sessions(in, name)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", visible(pe.Path), pe.Err)
	} else if err != nil {
		return err
	}
	if len(sessions) == 0 {
		return l.noSession(in, name)
	}
	l.found = map[string][]*capture.Session{name: sessions}
	if is, want := sessions[0].Program(), sources[source]; source != "" && is != want {
		return fmt.Errorf("%s: this is a session or the output of %s, not of %s: name that program, or none", visible(name), is, want)
	}
	return nil
}

// noSession tells which file this is, by the first of its lines that tells it.
func (l *logReader) noSession(in *invocation, name string) error {
	known := "no program is recognised: no line is one of " + strings.Join(slices.Sorted(maps.Values(sources)), ", ")
	for from, err := range l.open(name) {
		l.files = append(l.files, visible(from.name))
		at := position{file: len(l.files) - 1}
		if err != nil {
			l.fail(in, at.file, err)
			return errFiles
		}
		r := agentevents.NewReader(from, agentevents.ReaderOptions{Decoder: anyDecoder(""), MaxLine: l.maxLine})
		told := emptyFile
		for _, err := range r.All() {
			var other *agentevents.ForeignError
			at.line = r.Line()
			if err == nil {
				told = "this is a log: it needs no import"
				break
			} else if errors.As(err, &other) && other.Name != foreign.Unknown.Name {
				told = what(err)
				break
			}
			if told = known; at.line >= maxBadLines {
				break
			}
		}
		if told == known || told == emptyFile {
			at.line = 0
		}
		l.print(in, at, told)
	}
	return errProblems
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
