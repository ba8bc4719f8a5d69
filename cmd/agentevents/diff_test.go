package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// write writes a file of the test and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// People read the output of diff: read the difference of the golden file.
func TestDiff(t *testing.T) {
	const capture = "../../capture/claude/testdata/subagent.stream.jsonl"
	log := exec("", "import", "claude", capture).out
	require.NotEmpty(t, log)
	require.Equal(t, exitOK, exec(log, "diff", "-", write(t, log)).code)

	// The same capture once more, with other ids and at another time.
	again := exec(strings.NewReplacer("toolu_", "toolx_", `"id":"msg_`, `"id":"msgx_`, "2026-02-01T10:", "2026-02-01T11:").Replace(read(t, capture)), "import", "claude", "-").out
	require.NotEqual(t, log, again)
	r := exec(again, "diff", write(t, log), "-")
	require.Equal(t, exitOK, r.code, r.out)

	var b strings.Builder
	show := func(name, b2 string, flags ...string) {
		r := exec(b2, append([]string{"diff", write(t, log), "-"}, flags...)...)
		require.Equal(t, exitProblems, r.code, name)
		require.Empty(t, r.err)
		_, lines, _ := strings.Cut(r.out, "\n") // the first one has the path
		b.WriteString("== " + name + "\n" + lines)
	}
	show("a changed argument", strings.Replace(log, "func Parse", "func NewParser", 1))
	show("a changed answer", strings.ReplaceAll(log, "The parser is in parse.go.", "The parser is in parser.go, at line 7."))
	show("the same, in full", strings.ReplaceAll(log, "The parser is in parse.go.", "The parser is in parser.go, at line 7."), "--width", "-1", "--all")
	show("colours", strings.Replace(log, "func Parse", "func NewParser", 1), "--color", "always")
	lines := strings.SplitAfter(log, "\n")
	returned := slices.IndexFunc(lines, func(line string) bool {
		return strings.Contains(line, `"agent.toolReturned"`) && strings.Contains(line, "toolu_grep")
	})
	call := strings.Index(log, lines[returned-1]) // while Grep is open
	more := log[:call] + strings.NewReplacer("toolu_grep", "toolu_more", "Grep", "Read", `"status"`, `"oneEvent":true,"arguments":{"file_path":"parse.go"},"status"`).Replace(lines[returned]) + log[call:]
	sequence := -1
	more = regexp.MustCompile(`"sequence":\d+`).ReplaceAllStringFunc(more, func(string) string { sequence++; return fmt.Sprint(`"sequence":`, sequence) })
	more = strings.Replace(more, `"toolCalls":1,`, `"toolCalls":2,`, 1)
	more = strings.ReplaceAll(strings.Replace(more, "func Parse", "func NewParser", 1), "The parser is in parse.go.", "It is in NewParser.")
	show("in the docs", more)
	_, text, _ := strings.Cut(b.String(), "== in the docs\n")
	_, text, _ = strings.Cut(text, "\n")
	require.True(t, strings.Contains(read(t, "../../docs/command.md"), text+"```\n"), text)
	show("killed", strings.Join(lines[:len(lines)-8], ""))
	for _, to := range []string{"openwop", "kaos", "multiagent"} {
		out, _ := converted(t, to, log)
		show("as "+to, out)
	}
	golden(t, "diff.txt", b.String())

	out, _ := converted(t, "agui", log)
	require.Equal(t, exitOK, exec(out, "diff", write(t, log), "-").code, "AG-UI represents all of it")
}

func TestDiffFlags(t *testing.T) {
	one := line("r", 0) + line("r", 1)
	other := one + line("r", 2)
	both := one + strings.ReplaceAll(other, `"runId":"r"`, `"runId":"a:b"`)
	for _, test := range []struct {
		name string
		code int
		out  string
		args []string
	}{
		{"the same run", exitOK, "- A: run r running · 2 acts\n+ B: run r running · 2 acts\n└─ the same: a (2 acts)\n", []string{"--run", "r", write(t, one), write(t, both)}},
		{"two runs of one log", exitProblems, "- A: run r running · 2 acts\n+ B: run a:b running · 3 acts\n└─ a\n   ├─ 2 acts the same\n   └─ + text: t2\n", []string{"--run", "r:a:b", write(t, both)}},
		{"an id with a colon", exitOK, "- A: run a:b running · 3 acts\n+ B: run a:b running · 3 acts\n└─ the same: a (3 acts)\n", []string{write(t, both), "--run", "a:b"}},
		{"a run without another", exitProblems, "- A: no run like it\n+ B: run a:b running · 3 acts\n1 run the same\n", []string{write(t, one), write(t, both)}},
		{"ignored", exitOK, "- A: run r running · 2 acts\n+ B: run r running · 2 acts\n└─ the same: a (2 acts)\n", []string{"--ignore", "text", write(t, one), write(t, strings.ReplaceAll(one, `"text":"t`, `"text":"x`))}},
		{"no runs", exitOK, "", []string{write(t, ""), write(t, "")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := exec("", append([]string{"diff"}, test.args...)...)
			var paths []string
			for _, arg := range test.args {
				if filepath.IsAbs(arg) {
					paths = append(paths, arg)
				}
			}
			said := strings.Replace(r.out, "- "+paths[0], "- A", 1)
			for _, path := range paths {
				r.err = strings.Replace(r.err, path+": "+emptyFile+"\n", "", 1)
			}
			require.Equal(t, result{test.code, test.out, ""}, result{r.code, strings.Replace(said, "+ "+paths[len(paths)-1], "+ B", 1), r.err})
		})
	}

	r := exec(other, "diff", "--json", write(t, one), "-")
	require.Equal(t, exitProblems, r.code)
	var report struct {
		Same bool
		Runs []struct {
			Agents []struct {
				Acts []struct {
					Same int
					B    struct {
						Sequence int
						Type     string
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	require.False(t, report.Same)
	acts := report.Runs[0].Agents[0].Acts
	require.Equal(t, 2, acts[0].Same)
	require.Equal(t, 2, acts[1].B.Sequence)
	require.Equal(t, "agent.text", acts[1].B.Type)
}

// What cannot be read is no difference.
func TestDiffTrouble(t *testing.T) {
	one := line("r", 0)
	r := exec(one+"no event\n", "diff", write(t, one), "-")
	require.Equal(t, exitUsage, r.code)
	require.Equal(t, "stdin:2: found a bare word of 2 bytes, expected an object\n", r.err)
	require.Contains(t, r.out, "└─ the same: a (1 act)\n")
	for _, args := range [][]string{{"missing.jsonl", "-"}, {"-", "missing.jsonl"}} {
		r = exec(one, append([]string{"diff"}, args...)...)
		require.Equal(t, exitUsage, r.code)
		require.Empty(t, r.out)
		require.Regexp(t, `^agentevents diff: missing\.jsonl: \w.+\n$`, r.err)
	}
	for args, want := range map[string]string{
		"":            "two FILEs are needed, or one with --run A:B; - is standard input",
		"a":           "two FILEs are needed, or one with --run A:B; - is standard input",
		"a b c":       "two FILEs are needed, or one with --run A:B; - is standard input",
		"- -":         "standard input can be read only once: name - once",
		"--run q:r -": `the logs have no two runs "q:r"; 'agentevents ls' lists them`,
	} {
		r := exec(one, append([]string{"diff"}, strings.Fields(args)...)...)
		require.Equal(t, result{exitUsage, "", "agentevents diff: " + want + "\nRun 'agentevents help diff' for usage.\n"}, r)
	}
}
