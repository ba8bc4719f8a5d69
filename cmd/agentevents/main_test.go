package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

var update = flag.Bool("update", false, "write the golden files; read the diff before you commit it")

// A result is the output and the status of a run of the command.
type result struct {
	code     int
	out, err string
}

// exec runs the command with text as its standard input.
func exec(stdin string, args ...string) result {
	return execEnv(nil, stdin, args...)
}

func execEnv(env map[string]string, stdin string, args ...string) result {
	var out, err bytes.Buffer
	code := run(args, strings.NewReader(stdin), &out, &err, func(name string) string { return env[name] })
	return result{code, out.String(), err.String()}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.Equal(t, read(t, path), text)
}

const (
	clean  = "testdata/clean.jsonl"
	broken = "testdata/broken.jsonl"
)

// line returns a native line.
func line(run string, seq int) string {
	return fmt.Sprintf(`{"id":"%s-%d","sequence":%d,"timestamp":"2026-01-02T10:00:00.000Z","type":"agent.text","runId":"%s","agentId":"a","payload":{"text":"t%d"}}`, run, seq, seq, run, seq) + "\n"
}

func TestUsageErrors(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "agentevents: a command is needed\nRun 'agentevents help' for usage.\n"},
		{"frob", "agentevents: unknown command \"frob\"\nRun 'agentevents help' for usage.\n"},
		{"help frob", "agentevents help: unknown command \"frob\"\nRun 'agentevents help' for usage.\n"},
		{"help cat check", "agentevents help: name one COMMAND, or none for the list\nRun 'agentevents help' for usage.\n"},
		{"cat", "agentevents cat: a FILE is needed; - is standard input\nRun 'agentevents help cat' for usage.\n"},
		{"check", "agentevents check: a FILE is needed; - is standard input\nRun 'agentevents help check' for usage.\n"},
		{"fold", "agentevents fold: a FILE is needed; - is standard input\nRun 'agentevents help fold' for usage.\n"},
		{"tail", "agentevents tail: a FILE is needed; - is standard input\nRun 'agentevents help tail' for usage.\n"},
		{"tail a b", "agentevents tail: name one FILE: tail prints one log\nRun 'agentevents help tail' for usage.\n"},
		{"tail -n -1 a", "agentevents tail: -n must not be below 0\nRun 'agentevents help tail' for usage.\n"},
		{"tail -f -", "agentevents tail: standard input cannot be followed; 'agentevents cat -' prints it as it comes\nRun 'agentevents help tail' for usage.\n"},
		{"tree", "agentevents tree: a FILE is needed; - is standard input\nRun 'agentevents help tree' for usage.\n"},
		{"cat - -", "agentevents cat: standard input can be read only once: name - once\nRun 'agentevents help cat' for usage.\n"},
		{"cat --frob -", "agentevents cat: flag provided but not defined: --frob\nRun 'agentevents help cat' for usage.\n"},
		{"cat --max-line 0 -", "agentevents cat: invalid value \"0\" for flag --max-line: want a number of bytes above 0\nRun 'agentevents help cat' for usage.\n"},
		{"cat - --kind", "agentevents cat: flag needs an argument: --kind\nRun 'agentevents help cat' for usage.\n"},
		{"check --lifecycle lax -", "agentevents check: invalid value \"lax\" for flag --lifecycle: want strict, relaxed, derived\nRun 'agentevents help check' for usage.\n"},
		{"fold --at -1 -", "agentevents fold: invalid value \"-1\" for flag --at: want a sequence: 0 or more\nRun 'agentevents help fold' for usage.\n"},
		{"cat --from -1 -", "agentevents cat: invalid value \"-1\" for flag --from: want a sequence: 0 or more\nRun 'agentevents help cat' for usage.\n"},
		{"replay --from x -", "agentevents replay: invalid value \"x\" for flag --from: want a sequence: 0 or more\nRun 'agentevents help replay' for usage.\n"},
		{"cat --kind agent.toolcalled -", "agentevents cat: invalid value \"agent.toolcalled\" for flag --kind: want agent.toolCalled\nRun 'agentevents help cat' for usage.\n"},
		{"tail --kind agent.text,x.custom -", "agentevents tail: invalid value \"agent.text,x.custom\" for flag --kind: want one kind; give the flag again for each\nRun 'agentevents help tail' for usage.\n"},
		{"tail -n x -", "agentevents tail: invalid value \"x\" for flag -n: want a whole number\nRun 'agentevents help tail' for usage.\n"},
		{"tail -n 99999999999999999999 -", "agentevents tail: invalid value \"99999999999999999999\" for flag -n: want a whole number\nRun 'agentevents help tail' for usage.\n"},
		{"replay --speed fast -", "agentevents replay: invalid value \"fast\" for flag --speed: want a number\nRun 'agentevents help replay' for usage.\n"},
		{"replay --max-wait 3 -", "agentevents replay: invalid value \"3\" for flag --max-wait: want a time with its unit, such as 1.5s\nRun 'agentevents help replay' for usage.\n"},
		{"fold --indent=2 -", "agentevents fold: invalid boolean value \"2\" for flag --indent: want true or false\nRun 'agentevents help fold' for usage.\n"},
		{"check --threshold NaN -", "agentevents check: invalid value \"NaN\" for flag --threshold: want a number from 0 to 1\nRun 'agentevents help check' for usage.\n"},
		{"check --threshold 7 -", "agentevents check: invalid value \"7\" for flag --threshold: want a number from 0 to 1\nRun 'agentevents help check' for usage.\n"},
		{"record --max-line 1k --output x -- y", "agentevents record: invalid value \"1k\" for flag --max-line: want a number of bytes above 0\nRun 'agentevents help record' for usage.\n"},
		{"ls --status Completed -", "agentevents ls: invalid value \"Completed\" for flag --status: want completed, failed, cancelled, running, waiting, paused, cancelling, pending\nRun 'agentevents help ls' for usage.\n"},
		{"tree --color red -", "agentevents tree: invalid value \"red\" for flag --color: want auto, always, never\nRun 'agentevents help tree' for usage.\n"},
		{"kinds x", "agentevents kinds: unexpected argument \"x\"\nRun 'agentevents help kinds' for usage.\n"},
		{"rules x", "agentevents rules: unexpected argument \"x\"\nRun 'agentevents help rules' for usage.\n"},
		{"version x", "agentevents version: unexpected argument \"x\"\nRun 'agentevents help version' for usage.\n"},
		{"import", "agentevents import: a FILE is needed; - is standard input\nRun 'agentevents help import' for usage.\n"},
		{"import claude", "agentevents import: a FILE is needed; - is standard input\nRun 'agentevents help import' for usage.\n"},
		{"import claude a b", "agentevents import: name one FILE: a capture is one run\nRun 'agentevents help import' for usage.\n"},
		{"import claude --time noon -", "agentevents import: --time \"noon\" is not a time like 2026-01-02T15:04:05Z\nRun 'agentevents help import' for usage.\n"},
	} {
		t.Run(test.args, func(t *testing.T) {
			require.Equal(t, result{exitUsage, "", test.want}, exec("", strings.Fields(test.args)...))
		})
	}
}

func TestHelp(t *testing.T) {
	overview := exec("", "help")
	require.Equal(t, exitOK, overview.code)
	require.Empty(t, overview.err)
	for _, flag := range []string{"-h", "-help", "--help"} {
		require.Equal(t, overview, exec("", flag))
	}
	var all strings.Builder
	all.WriteString(overview.out)
	for _, c := range commands() {
		require.Len(t, c.examples, 2, c.name)
		require.Contains(t, overview.out, "  "+c.name+" ")
		help := exec("", "help", c.name)
		require.Equal(t, exitOK, help.code)
		require.Empty(t, help.err)
		require.Equal(t, help, exec("", c.name, "--help"))
		require.Equal(t, help, exec("", c.name, "x", "-h"))
		for _, l := range strings.Split(help.out, "\n") {
			require.LessOrEqual(t, len(l), 100, l)
		}
		all.WriteString("\n----\n" + help.out)
	}
	golden(t, "help.txt", all.String())
}

func TestKindsRulesVersion(t *testing.T) {
	kinds := exec("", "kinds")
	require.Equal(t, exitOK, kinds.code)
	n := 0
	for info := range agentevents.Kinds() {
		require.Regexp(t, fmt.Sprintf(`(?m)^%s +%s +%s( +droppable)?$`, regexp.QuoteMeta(string(info.Kind)), info.Role, info.Subject), kinds.out)
		n++
	}
	require.Equal(t, n, strings.Count(kinds.out, "\n"))

	rules := exec("", "rules")
	require.Equal(t, exitOK, rules.code)
	for rule, statement := range agentevents.Rules() {
		require.Regexp(t, `(?m)^`+string(rule)+` +`+regexp.QuoteMeta(statement)+`$`, rules.out)
	}
	require.Contains(t, rules.out, "line-unreadable ")
	require.Contains(t, rules.out, "chain-broken ")

	version := exec("", "version")
	require.Equal(t, exitOK, version.code)
	require.Regexp(t, `^agentevents \S.*\nlog format 1\.0\n$`, version.out)
	require.Equal(t, version, exec("", "--version"))
}

// Every Rule constant of a dialect's package is in the list.
func TestDocumentRules(t *testing.T) {
	found := 0
	for _, w := range wires() {
		dir := filepath.Join("..", "..", "dialect", w.name)
		if _, err := os.Stat(dir); err != nil { //silent: it is native, or a profile
			continue
		}
		var files []string
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") {
				files = append(files, path)
			}
			return err
		}))
		for _, file := range files {
			for _, m := range regexp.MustCompile(`\bRule[A-Z]\w*\s+agentevents\.Rule\s*=\s*"([^"]+)"`).FindAllStringSubmatch(read(t, file), -1) {
				found++
				require.True(t, slices.ContainsFunc(documentRules, func(r documentRule) bool {
					return string(r.dialect) == w.name && string(r.rule) == m[1]
				}), "%s of %s is not listed", m[1], file)
			}
		}
	}
	require.Equal(t, len(documentRules), found)
	rules := exec("", "rules")
	for _, r := range documentRules {
		require.Regexp(t, `(?m)^`+string(r.rule)+` +`+regexp.QuoteMeta(r.statement)+`$`, rules.out)
		require.Contains(t, rules.out, "\nwith --dialect "+string(r.dialect)+":\n")
	}
}

func TestCat(t *testing.T) {
	text := read(t, clean)
	require.Equal(t, result{exitOK, text, ""}, exec("", "cat", clean))
	require.Equal(t, result{exitOK, text, ""}, exec(text, "cat", "-"))
	require.Equal(t, result{exitOK, text + text, ""}, exec(text, "cat", clean, "-"))
	require.Equal(t, result{exitOK, "", ""}, exec("", "cat", "-"))

	// Spelling survives, as do members and kinds that nobody knows.
	odd := ` {"type" : "x.y","runId":"r", "id":"\u0061","sequence":0,"timestamp":"2026-01-02T10:00:00Z","payload":{"n":1.0,"b":9007199254740993},"z":[]}` + "\n"
	require.Equal(t, result{exitOK, odd, ""}, exec(odd, "cat", "-"))

	count := func(args ...string) int {
		r := exec("", append([]string{"cat"}, args...)...)
		require.Equal(t, exitOK, r.code, r.err)
		require.Empty(t, r.err)
		return strings.Count(r.out, "\n")
	}
	require.Equal(t, 5, count("--kind", "agent.transition", clean))
	require.Equal(t, 6, count("--kind", "agent.transition", "--kind=x.custom", clean))
	require.Equal(t, 6, count(clean, "--kind", "agent.transition", "--kind=x.custom"), "flags after files")
	require.Equal(t, 12, count("--run", "r1", clean))
	require.Equal(t, 9, count("--agent", "writer", clean))
	require.Equal(t, 1, count("--run", "r1", "--agent", "writer", "--kind", "agent.ended", clean))
	require.Equal(t, 12, count("--", clean))
}

func TestCatReports(t *testing.T) {
	r := exec("", "cat", broken)
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, broken+":7: found a bare word of 4 bytes, expected an object\n", r.err)
	require.Equal(t, strings.Replace(read(t, broken), "this is no event\n", "", 1), r.out)
}

func TestFilesThatCannotBeRead(t *testing.T) {
	good := line("r", 0)
	for _, name := range []string{"cat", "check", "fold", "tree", "redact"} {
		r := exec(good, name, "testdata/missing.jsonl", "-")
		require.Equal(t, exitUsage, r.code, name)
		require.Regexp(t, `^agentevents `+name+`: testdata/missing\.jsonl: \w.+\n$`, r.err)
		require.Equal(t, name == "check", r.out == "", "%s: the other file was read: %q", name, r.out)

		dir := t.TempDir()
		r = exec(good, name, dir, "-")
		require.Equal(t, exitUsage, r.code, name)
		require.Regexp(t, `^agentevents `+name+`: `+regexp.QuoteMeta(dir)+`: \w.+\n$`, r.err)

		r = exec("", name, "a\x1b[2J")
		require.Equal(t, exitUsage, r.code, name)
		require.NotContains(t, r.err, "\x1b")
	}
	r := exec("", "import", "claude", "testdata/missing.jsonl")
	require.Equal(t, exitUsage, r.code)
	require.Empty(t, r.out)
	require.Regexp(t, `^agentevents import: testdata/missing\.jsonl: \w.+\n$`, r.err)

	// An input that fails in the middle: the part that was read is used.
	var out, errs bytes.Buffer
	failing := io.MultiReader(strings.NewReader(good), errReader{errors.New("the disk is gone")})
	code := run([]string{"cat", "-"}, failing, &out, &errs, func(string) string { return "" })
	require.Equal(t, result{exitUsage, good, "agentevents cat: stdin: the disk is gone\n"}, result{code, out.String(), errs.String()})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestCheck(t *testing.T) {
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", clean))
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", "--lifecycle", "relaxed", clean))
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", "-"), "an empty log is clean")
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", clean, clean), "the same events again change nothing")

	r := exec("", "check", "--lifecycle", "strict", broken)
	require.Equal(t, exitProblems, r.code)
	require.Empty(t, r.err)
	golden(t, "broken.check.txt", r.out)

	r = exec("", "check", broken) // it names no table
	require.Equal(t, exitProblems, r.code)
	require.NotContains(t, r.out, "transition-legal")

	// Two files are one log; the second goes on where the first ends.
	lines := strings.SplitAfter(read(t, clean), "\n")
	dir := t.TempDir()
	one, two := filepath.Join(dir, "1.jsonl"), filepath.Join(dir, "2.jsonl")
	require.NoError(t, os.WriteFile(one, []byte(strings.Join(lines[:4], "")), 0o644))
	require.NoError(t, os.WriteFile(two, []byte(strings.Join(lines[4:], "")), 0o644))
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", one, two))
	r = exec("", "check", two)
	require.Equal(t, exitOK, r.code, "the call may have been opened before")
	require.Regexp(t, `^warning: run "[^"]+": 4 sequence numbers are missing: 0-3\n$`, r.out)
}

// A log names its table of status changes, and formats that keep extra members carry it:
// nobody who checks or draws it is told. Lines of KAHN are strict, unless --dialect is not
// given and they name another.
func TestCheckGoesByTheLogsTable(t *testing.T) {
	event := func(n int, kind, members, payload string) string {
		return fmt.Sprintf(`{"id":"%d","sequence":%d,"timestamp":"2026-05-05T09:00:00.040Z","type":"agent.%s","runId":"r","agentId":"a"%s,"payload":{%s}}`+"\n", n, n, kind, members, payload)
	}
	move := event(1, "transition", `,"step":0`, `"from":"thinking","to":"reflect"`) +
		event(2, "ended", "", `"totals":{"steps":1,"toolCalls":0,"auditCheckpoints":0,"auditsPassed":0,"auditsFailed":0}`)
	derived, unnamed := event(0, "started", "", `"lifecycle":"derived"`)+move, event(0, "started", "", "")+move
	for _, format := range []string{"kahn", "multiagent", "kaos", "openharness", "agui", "agui:sse"} {
		derived := exec(derived, "convert", "--to", format, "-").out
		require.Contains(t, derived, `"lifecycle":"derived"`, format)
		require.Equal(t, result{exitOK, "", ""}, exec(derived, "check", "-"), format)
	}
	require.Equal(t, result{exitOK, "", ""}, exec(derived, "check", "-"))
	require.NotContains(t, exec(derived, "tree", "-").out, "violation")
	r := exec(unnamed, "check", "-")
	require.Equal(t, exitProblems, r.code)
	require.Contains(t, r.out, "thinking → reflect is not in the relaxed table")
	require.Contains(t, exec(unnamed, "tree", "-").out, "violation")
	kahn := exec(derived, "convert", "--to", "kahn", "-").out
	r = exec(kahn, "check", "--dialect", "kahn", "-")
	require.Equal(t, exitProblems, r.code)
	require.Contains(t, r.out, "thinking → reflect is not in the strict table")
}

// A process that died in the middle of a line leaves a bad line, which every check names. A
// copy without it is clean: the event was not acknowledged, and its number was given again.
func TestCatCopiesALogWithoutItsTornLine(t *testing.T) {
	torn := line("r", 0) + line("r", 1)[:40] + "\n" + line("r", 1) + line("r", 2)
	r := exec(torn, "check", "-")
	require.Equal(t, exitProblems, r.code)
	require.True(t, strings.HasPrefix(r.out, "stdin:2: line-unreadable: "), r.out)
	require.Equal(t, 1, strings.Count(r.out, "\n"))
	copied := exec(torn, "cat", "-").out
	require.Equal(t, line("r", 0)+line("r", 1)+line("r", 2), copied)
	require.Equal(t, result{exitOK, "", ""}, exec(copied, "check", "--complete", "-"))
}

// Missing events are named, and are a problem with --complete.
func TestCheckComplete(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		if i != 5 && (i < 50 || i > 52) {
			log.WriteString(line("r1", i))
		}
		if i%2 == 1 {
			log.WriteString(line(`r\u009b2`, i))
		}
	}
	log.WriteString(line("r3", 1))
	want := `warning: run "r1": 4 sequence numbers are missing: 5, 50-52
warning: run "r\u009b2": 50 sequence numbers are missing: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 and 34 more
warning: run "r3": 1 sequence number is missing: 0
`
	require.Equal(t, result{exitOK, want, ""}, exec(log.String(), "check", "-"))
	require.Equal(t, result{exitProblems, strings.ReplaceAll(want, "warning: ", ""), ""}, exec(log.String(), "check", "--complete", "-"))
	require.Equal(t, result{exitOK, "", ""}, exec("", "check", "--complete", clean))
}

// Runs that look like runs without deltas have one line together. A run that has deltas, or lacks
// its beginning or its last events before no block, has its own.
func TestCheckOfALogWithoutDeltas(t *testing.T) {
	log := func(without bool, runs ...string) string {
		var text bytes.Buffer
		var sink agentevents.Sink = agentevents.NewWriter(&text, agentevents.WriterOptions{})
		if without {
			sink = agentevents.WithoutDeltas(sink)
		}
		em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{sink}})
		require.NoError(t, err)
		for _, id := range runs {
			run, err := em.Run(id)
			require.NoError(t, err)
			a := run.Agent("a")
			require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{}))
			call, err := a.Model(t.Context(), &agentevents.ModelCalled{Model: "m"})
			require.NoError(t, err)
			for _, word := range []string{"I ", "am ", "here."} {
				require.NoError(t, call.Text(t.Context(), word))
			}
			require.NoError(t, call.Return(t.Context(), nil))
			require.NoError(t, run.Finish(t.Context(), nil))
		}
		require.NoError(t, em.Close(t.Context()))
		return text.String()
	}
	small := log(true, "r1", "r2")
	require.Equal(t, result{exitOK, "warning: sequence numbers are missing from runs without deltas, as if those were left out: runs 2, numbers 6; --complete names them\n", ""}, exec(small, "check", "-"))
	each := exec(small, "check", "--complete", "-")
	require.Equal(t, exitProblems, each.code)
	require.Regexp(t, `^run "r1": 3 sequence numbers are missing: \d-\d\nrun "r2": 3 .*\n$`, each.out)

	lines := strings.SplitAfter(small, "\n")
	last := len(lines)/2 - 1
	lost := exec(strings.Join(slices.Delete(slices.Clone(lines), last-1, last), ""), "check", "-").out
	require.Contains(t, lost, `warning: run "r1": 4 sequence numbers`, "no block ends after it")
	require.Contains(t, lost, "runs 1, numbers 3")
	require.Contains(t, exec(strings.Join(lines[1:], ""), "check", "-").out, `warning: run "r1": 4 sequence numbers`)

	whole := strings.SplitAfter(log(false, "r1"), "\n")
	for i, line := range whole {
		if strings.Contains(line, "agent.text.delta") {
			require.Contains(t, exec(strings.Join(slices.Delete(slices.Clone(whole), i, i+1), ""), "check", "-").out, `warning: run "r1": 1 sequence number is missing`)
		}
	}
}

// One false sequence is one problem, and an event that the check leaves out is one too,
// however old it is.
func TestCheckSequences(t *testing.T) {
	var log strings.Builder
	for i := range 1000 {
		if i == 10 {
			i = 999999
		}
		log.WriteString(line("r", i))
	}
	log.WriteString(line("r", 3))
	r := exec(log.String(), "check", "-")
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, `stdin:12: sequence: agent.text: the sequence goes back from 999999, which is false: all others before it are lower; the event counts
stdin:1001: sequence: agent.text: the sequence goes back further than a fold remembers; the event is left out, whether it is a repeated one or another
warning: run "r": 1 sequence number is missing: 10
`, r.out)
}

// TestCheckLines breaks rules on many lines and expects each where it is.
func TestCheckLines(t *testing.T) {
	var log strings.Builder
	var want []string
	seq := 0
	for i := range 2000 {
		switch {
		case i%7 == 3: // a sequence that goes back
			fmt.Fprintf(&log, `{"id":"back-%d","sequence":%d,"timestamp":"2026-01-02T10:00:00Z","type":"agent.text","runId":"r","agentId":"a","payload":{"text":"other"}}`+"\n", i, seq-1)
			want = append(want, fmt.Sprintf("stdin:%d: sequence: ", i+1))
		case i%5 == 2: // an approval that nobody asked for
			fmt.Fprintf(&log, `{"id":"%d","sequence":%d,"timestamp":"2026-01-02T10:00:00Z","type":"approval.granted","runId":"r","payload":{"approvalId":"x"}}`+"\n", i, seq)
			want = append(want, fmt.Sprintf("stdin:%d: approval-open: ", i+1))
			seq++
		case i%11 == 4:
			log.WriteString("{\n")
			want = append(want, fmt.Sprintf("stdin:%d: line-unreadable: ", i+1))
		default:
			log.WriteString(line("r", seq))
			seq++
		}
	}
	r := exec(log.String(), "check", "-")
	require.Equal(t, exitProblems, r.code)
	got := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, strings.HasPrefix(got[i], want[i]), "want %s, got %s", want[i], got[i])
	}
}

func TestFold(t *testing.T) {
	r := exec("", "fold", clean)
	require.Equal(t, exitOK, r.code)
	require.Empty(t, r.err)
	require.Equal(t, 1, strings.Count(r.out, "\n"))
	var s agentevents.RunSnapshot
	require.NoError(t, json.Unmarshal([]byte(r.out), &s))
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Equal(t, uint64(12), s.NextSequence)
	require.Equal(t, 1, s.Unknown["x.custom"])

	indented := exec("", "fold", "--indent", clean)
	require.Equal(t, exitOK, indented.code)
	require.JSONEq(t, r.out, indented.out)
	require.Contains(t, indented.out, "\n  \"runId\": \"r1\",\n")

	at := exec("", "fold", "--at", "3", clean)
	require.NoError(t, json.Unmarshal([]byte(at.out), &s))
	require.Equal(t, uint64(4), s.NextSequence)
	require.Equal(t, agentevents.RunStatusRunning, s.Status)
	require.Len(t, s.OpenCalls, 1)

	var none agentevents.RunSnapshot
	require.NoError(t, json.Unmarshal([]byte(exec("", "fold", "--keep-calls", "0", clean).out), &none))
	require.Empty(t, none.ClosedCalls)
	require.NotEmpty(t, none.Tools)
	require.Equal(t, r, exec("", "fold", "--keep-calls", "64", clean))

	two := exec("", "fold", broken)
	require.Equal(t, exitProblems, two.code, "for the bad line")
	require.Equal(t, broken+":7: found a bare word of 4 bytes, expected an object\n", two.err)
	require.Equal(t, 2, strings.Count(two.out, "\n"), "a line for each run")
	strict := exec("", "fold", "--lifecycle", "strict", broken)
	require.NotEqual(t, two.out, strict.out)

	require.Equal(t, result{exitOK, "", ""}, exec("", "fold", "-"))
}

func TestTree(t *testing.T) {
	r := exec("", "tree", clean)
	require.Equal(t, result{exitOK, `session s1 · run r1 (notes) ✓ completed · 2026-01-02 10:00:00Z · 27ms
├─ writer ✓ converged · 20ms · 1 step · 1 tool call: write the notes
│  └─ tool.read_file ✓ 12ms
└─ x.custom
1 agent · 1 tool call
`, ""}, r)
	require.Equal(t, r, exec("", "tree", "--color", "never", clean))
	always := exec("", "tree", "--color", "always", clean)
	require.Contains(t, always.out, "\x1b[32m✓")

	two := exec("", "tree", broken)
	require.Equal(t, exitProblems, two.code)
	require.Contains(t, two.out, "run ra ✓ completed")
	require.Contains(t, two.out, "\n\nrun rb ✓ completed")
	require.NotContains(t, two.out, "\x1b")

	start := strings.Join(strings.SplitAfter(read(t, clean), "\n")[:4], "")
	require.Contains(t, exec(start, "tree", "-").out, "running (interrupted)")
	require.NotContains(t, exec(start, "tree", "--live", "-").out, "interrupted")
	require.Contains(t, exec(start, "tree", "--width", "40", "-").out, "write the notes")
	require.Equal(t, result{exitOK, "", ""}, exec("", "tree", "-"))
}

func TestColorAuto(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device, as a terminal is
	require.NoError(t, err)
	defer null.Close()
	terminal := func() *output { return &output{w: io.Discard, terminal: true} }
	for _, test := range []struct {
		when string
		env  map[string]string
		out  *output
		want bool
	}{
		{"auto", nil, terminal(), true},
		{"auto", map[string]string{"NO_COLOR": "1"}, terminal(), false},
		{"auto", map[string]string{"TERM": "dumb"}, terminal(), false},
		{"auto", nil, newOutput(&bytes.Buffer{}), false},
		{"auto", nil, newOutput(null), false},
		{"always", map[string]string{"NO_COLOR": "1"}, newOutput(&bytes.Buffer{}), true},
		{"never", nil, terminal(), false},
	} {
		in := &invocation{stdout: test.out, env: func(name string) string { return test.env[name] }}
		require.Equal(t, test.want, in.color(test.when), "%+v", test)
	}
	for term, want := range map[string]bool{"xterm": true, "dumb": false} {
		in := &invocation{stdout: terminal(), env: func(string) string { return term }}
		require.Equal(t, want, in.terminal(), "replay draws again on %s", term)
	}
}

// Lines appended to a log while it is read would be read too, for ever.
func TestOutputIsInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(read(t, clean)), 0o600))
	for _, args := range []string{"cat " + path, "cat " + clean + " " + path, "tail -f " + path, "convert --to native " + path, "cat -", "import claude " + path} {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		require.NoError(t, err)
		var stderr strings.Builder
		code := run(strings.Fields(args), f, f, &stderr, os.Getenv)
		require.NoError(t, f.Close())
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, stderr.String(), "standard output is a FILE that is read: write to another file\n", args)
		require.Equal(t, read(t, clean), read(t, path), args)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	require.Equal(t, exitOK, run([]string{"cat", "-"}, null, null, io.Discard, os.Getenv), "a device is no file that grows")
}

// A file whose name begins as a flag does.
func TestDashedFile(t *testing.T) {
	log := read(t, clean)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("-run.jsonl", []byte(log), 0o600))
	got := exec("", "check", "-run.jsonl")
	require.Equal(t, result{exitUsage, "", "agentevents check: flag provided but not defined: --run.jsonl; a FILE that begins with - follows --\nRun 'agentevents help check' for usage.\n"}, got)
	require.Equal(t, result{}, exec("", "check", "--", "-run.jsonl"))
	require.Equal(t, result{}, exec("", "check", "./-run.jsonl"))
}

// TestBadInput puts text that is not a line of a log between two good lines.
func TestBadInput(t *testing.T) {
	var gz bytes.Buffer
	zw := gzip.NewWriter(&gz)
	zw.Write([]byte(line("r", 0)))
	zw.Close()
	first, last := line("r", 0), line("r", 1)
	for _, test := range []struct {
		name, bad string
		args      string
		at        int    // line of the error
		want      string // in the message
	}{
		{"text", "hello\n", "", 2, `expected an object`},
		{"binary", "\x00\x01\x02\x7fELF\xff\n", "", 2, `UTF-8`},
		{"bad UTF-8", strings.Replace(line("r", 9), "t9", "\xff", 1), "", 2, `UTF-8`},
		{"UTF-16", "\xff\xfe{\x00}\x00\n", "", 2, `convert it first`},
		{"over-long", line(strings.Repeat("x", 4096), 9), "--max-line 1000", 2, `the limit is 1000 (--max-line); it was skipped`},
		{"deep", strings.Replace(line("r", 9), `"t9"`, strings.Repeat("[", 20000)+strings.Repeat("]", 20000), 1), "", 2, ``},
		{"deep unknown", `{"id":"x","sequence":9,"timestamp":"2026-01-02T10:00:00Z","type":"x","runId":"r","payload":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + "}\n", "", 2, `deep`},
		{"wrong type", strings.Replace(line("r", 9), `"sequence":9`, `"sequence":"9"`, 1), "", 2, `/sequence`},
		{"wrong payload type", strings.Replace(line("r", 9), `"t9"`, `9`, 1), "", 2, `/payload/text`},
		{"array", "[]\n", "", 2, `expected an object`},
		{"missing members", "{}\n", "", 2, `"type"`},
		{"duplicate member", strings.Replace(line("r", 9), `"sequence":9`, `"sequence":9,"sequence":9`, 1), "", 2, `sequence`},
		{"two in a line", strings.TrimSpace(line("r", 9)) + line("r", 9), "", 2, ``},
		{"escapes", "\x1b[2Jhi\n", "", 2, `\x1b`},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := first + test.bad + last
			where := fmt.Sprintf("stdin:%d: ", test.at)

			r := exec(log, strings.Fields("cat - "+test.args)...)
			require.Equal(t, r, exec(log, strings.Fields("redact - "+test.args)...), "a line that cannot be redacted is not copied")
			require.Equal(t, exitProblems, r.code)
			require.Equal(t, first+last, r.out)
			require.True(t, strings.HasPrefix(r.err, where), r.err)
			require.Contains(t, r.err, test.want)
			require.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
			require.Less(t, len(r.err), 600)
			require.NotContains(t, r.err, "\x1b")

			c := exec(log, strings.Fields("check - "+test.args)...)
			require.Equal(t, exitProblems, c.code)
			require.Equal(t, strings.Replace(r.err, where, where+"line-unreadable: ", 1), c.out)

			f := exec(log, strings.Fields("fold - "+test.args)...)
			require.Equal(t, exitProblems, f.code)
			require.Equal(t, r.err, f.err)
			require.Contains(t, f.out, `"nextSequence":2`)
			require.Contains(t, f.out, `"t1"`)
		})
	}

	t.Run("gzip", func(t *testing.T) {
		require.Equal(t, result{exitOK, line("r", 0), ""}, exec(gz.String(), "cat", "-"))
		r := exec(first+gz.String(), "cat", "-")
		require.Equal(t, exitProblems, r.code)
		require.Contains(t, r.err, "this is gzip data, not lines of JSON: decompress it first\n")
		for _, bad := range []string{gz.String()[:2], gz.String()[:9], gz.String()[:gz.Len()-1], gz.String() + "trailing", gz.String() + "a trailing line\n"} {
			r = exec(bad, "cat", "-")
			require.Equal(t, exitProblems, r.code)
			require.Contains(t, r.err, "stdin: the gzip data is damaged, cut off or followed by other data: ")
			require.Equal(t, 1, strings.Count(r.err, "\n"), r.err)
			require.Contains(t, exec(bad, "check", "-").out, "stdin: line-unreadable: the gzip data is damaged")
		}
	})
	t.Run("torn", func(t *testing.T) {
		r := exec(first+strings.TrimSuffix(last, "}\n"), "cat", "-")
		require.Equal(t, exitProblems, r.code)
		require.Equal(t, first, r.out)
		require.Contains(t, r.err, fmt.Sprintf("the last line is torn (cut the file at byte %d)", len(first)))
	})
	t.Run("no newline", func(t *testing.T) {
		require.Equal(t, result{exitOK, first + last, ""}, exec(first+strings.TrimSpace(last), "cat", "-"))
	})
	t.Run("CRLF, BOM and blank lines", func(t *testing.T) {
		log := "\ufeff" + strings.ReplaceAll(first+"\n  \n"+last, "\n", "\r\n")
		require.Equal(t, result{exitOK, first + last, ""}, exec(log, "cat", "-"))
		require.Equal(t, result{exitOK, "", ""}, exec(log, "check", "-"))
		require.Equal(t, result{exitOK, first + last, ""}, exec(first+"\ufeff"+last, "cat", "-"), "files that were joined")
	})
	t.Run("the same fault again and again", func(t *testing.T) {
		r := exec("x\nx\nx\nx\n"+first+"x\nx\nx\nx\nx\n", "cat", "-")
		said := "found a bare word of 1 byte, expected an object\n"
		require.Equal(t, "stdin:1: "+said+"stdin:2: "+said+"stdin:3: "+said+"stdin:4: the same in 1 more line, from 4 on\n"+
			"stdin:6: "+said+"stdin:7: "+said+"stdin:8: "+said+"stdin:10: the same in 2 more lines, from 9 on\n", r.err)
		require.Equal(t, first, r.out)
	})
	t.Run("no log at all", func(t *testing.T) {
		r := exec(strings.Repeat("x\nxx\n", (maxBadLines+26)/2), "cat", "-")
		require.Equal(t, exitProblems, r.code)
		require.Equal(t, maxBadLines+1, strings.Count(r.err, "\n"))
		require.Contains(t, r.err, ": 26 more lines cannot be read; is this a log?\n")
	})
}

// Faults of two lines are two problems, each with its place.
func TestTornFrames(t *testing.T) {
	const boom = "stdin:1: line-unreadable: the log ends in a frame: event \"boom\" has no data: unexpected EOF\n"
	require.Equal(t, result{exitProblems, boom, ""}, exec("event: boom\n", "check", "-"))
	require.Equal(t, result{exitProblems, boom, ""}, exec("event: boom\n", "check", "--dialect", "kaos", "-"))

	torn := exec("data: {\"type\":\n"+line("r", 0), "check", "--dialect", "kaos", "-")
	require.Equal(t, exitProblems, torn.code)
	require.Regexp(t, `^stdin:2: line-unreadable: this is not a line of kaos; it looks like one of native\nstdin:2: line-unreadable: the frame before is torn: .*\n$`, torn.out)
	require.NotContains(t, torn.out, "line 0")
	require.NotContains(t, torn.out, "\\n")
}

// Text that others wrote into a log is reported, also where Server-Sent Events
// let a reader ignore it.
func TestTextInLogs(t *testing.T) {
	const text = "ERROR: the agent host lost its disk\ncurl: (18) transfer closed\nretry: 3 of 5 failed\n"
	frames := exec(line("r", 0), "convert", "--quiet", "--to", "kaos:sse", "-")
	require.Equal(t, exitOK, frames.code, frames.err)
	for _, args := range []string{"check -", "check --dialect kaos:sse -"} {
		r := exec(frames.out+text, strings.Fields(args)...)
		require.Equal(t, exitProblems, r.code, args)
		require.Equal(t, 3, strings.Count(r.out, ": line-unreadable: "), r.out)
	}
	r := exec(line("r", 0)+text+"data\n"+line("r", 1), "cat", "-")
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, line("r", 0)+line("r", 1), r.out)
	require.Equal(t, 4, strings.Count(r.err, "\n"), r.err)
}

// A pipeEnd fails as a pipe does that nobody reads any more.
type pipeEnd struct{ err error }

func (p pipeEnd) Write([]byte) (int, error) { return 0, p.err }

func TestOutputFails(t *testing.T) {
	noEnv := func(string) string { return "" }
	many := strings.Repeat(line("r", 1), 5000)
	for _, args := range [][]string{
		{"cat", "-"}, {"redact", "-"}, {"check", broken}, {"fold", "-"}, {"tree", "-"}, {"kinds"}, {"rules"}, {"version"}, {"help"}, {"help", "cat"},
	} {
		var errs bytes.Buffer
		closed := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
		require.Equal(t, exitOK, run(args, strings.NewReader(many), pipeEnd{closed}, &errs, noEnv), args)
		require.Empty(t, errs.String(), "a closed pipe ends quietly")

		code := run(args, strings.NewReader(many), pipeEnd{errors.New("disk full")}, &errs, noEnv)
		require.Equal(t, exitUsage, code, args)
		require.Equal(t, "agentevents "+args[0]+": writing the output: disk full\n", errs.String())
	}
}

// TestCatIsLive reads from a pipe that stays open: lines come through at once.
func TestCatIsLive(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run([]string{"cat", "-"}, inR, outW, io.Discard, func(string) string { return "" })
	}()
	for i := range 3 {
		_, err := io.WriteString(inW, line("r", i))
		require.NoError(t, err)
		got := make([]byte, len(line("r", i)))
		_, err = io.ReadFull(outR, got)
		require.NoError(t, err)
		require.Equal(t, line("r", i), string(got))
	}
	inW.Close()
	require.Equal(t, exitOK, <-done)
}

func TestImportPipeline(t *testing.T) {
	const at = "2026-01-02T00:00:00Z"
	imported := exec("", "import", "claude", "--time", at, oneCapture)
	require.Equal(t, exitOK, imported.code, imported.err)
	require.NotEmpty(t, imported.out)
	require.Empty(t, exec("", "import", "claude", "--no-redact", oneCapture).err)
	stdin := exec(read(t, oneCapture), "import", "claude", "-", "--time", at)
	require.Equal(t, imported, stdin)

	require.Equal(t, result{exitOK, imported.out, ""}, exec(imported.out, "cat", "-"))
	require.Equal(t, result{exitOK, "", ""}, exec(imported.out, "check", "-"))

	drawn := exec(imported.out, "tree", "-")
	require.Equal(t, exitOK, drawn.code)
	require.Contains(t, drawn.out, "tool.Task ✓")
	require.NotContains(t, drawn.out, "violation")

	folded := exec(imported.out, "fold", "-")
	require.Equal(t, exitOK, folded.code)
	var s agentevents.RunSnapshot
	require.NoError(t, json.Unmarshal([]byte(folded.out), &s))
	require.Equal(t, uint64(strings.Count(imported.out, "\n")), s.NextSequence)
	require.Zero(t, s.ViolationCount)

	// Other commands need no import.
	log := exec("", "import", oneCapture).out
	for _, args := range []string{"tree", "fold", "cat", "check", "show", "ls", "stats", "stats --tokens", "findings", "convert --to native"} {
		raw := exec("", append(strings.Fields(args), oneCapture)...)
		require.Equal(t, strings.ReplaceAll(exec(log, append(strings.Fields(args), "-")...).out, "stdin", oneCapture), raw.out, args)
		require.Equal(t, exitOK, raw.code, args)
	}

	named := exec("", "import", "claude", "--run", "my-run", "--agent", "my-agent", oneCapture)
	require.Equal(t, exitOK, named.code)
	require.NoError(t, json.Unmarshal([]byte(exec(named.out, "fold", "-").out), &s))
	require.Equal(t, "my-run", s.RunID)
	require.Contains(t, s.Agents, "my-agent")
}

// TestTreeDrawsEveryCall has more calls than a snapshot keeps by itself.
func TestTreeDrawsEveryCall(t *testing.T) {
	var log strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&log, `{"id":"%d","sequence":%d,"timestamp":"2026-01-02T10:00:00Z","type":"agent.toolReturned","runId":"r","agentId":"a","payload":{"callId":"c%d","toolId":"t","status":"ok","oneEvent":true}}`+"\n", i, i, i)
	}
	r := exec(log.String(), "tree", "-")
	require.Equal(t, exitOK, r.code)
	require.Contains(t, r.out, "└─ tool.t ×1000 ✓\n")
}

func TestImportNoise(t *testing.T) {
	const init = `{"type":"system","subtype":"init","session_id":"s1","model":"m","tools":[],"cwd":"/"}`
	const text = `{"type":"assistant","session_id":"s1","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}]}}`
	log := "Loading…\n" + init + "\nplain text\n" + text + "\n"
	r := exec(log, "import", "claude", "--time", "2026-01-02T00:00:00Z", "-")
	require.Equal(t, exitOK, r.code)
	require.Regexp(t, `^stdin:1: .*\nstdin:3: .*\n$`, r.err)
	require.Contains(t, r.out, `"hi"`)
	many := exec(strings.Repeat("Loading…\n", 300)+log, "cat", "-")
	require.Equal(t, 5, strings.Count(many.err, "\n"), many.err)
	require.Contains(t, many.err, "stdin:301: the same in 298 more lines, from 4 on\nstdin:303: ")
	strict := exec(log, "import", "claude", "--strict", "--time", "2026-01-02T00:00:00Z", "-")
	require.Equal(t, exitProblems, strict.code)
	require.Equal(t, exitOK, exec(init+"\n"+text+"\n", "import", "claude", "--strict", "-").code)
	require.Equal(t, result{exitProblems, "", "stdin: the file is empty\n"}, exec("", "import", "claude", "-"))
	require.Equal(t, exitProblems, exec("plain text\n", "import", "claude", "-").code, "nothing of it is a capture")
}
