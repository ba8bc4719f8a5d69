package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/stats"
)

const twoRuns = "testdata/stats.jsonl"

func TestStatsGolden(t *testing.T) {
	var all strings.Builder
	for _, args := range []string{"", "--by agent", "--by tool", "--by model", "--by agent+model,tool", "--by tool+agent,tool+model", "--json --by tool"} {
		r := exec("", append(strings.Fields("stats "+args), twoRuns)...)
		require.Equal(t, exitOK, r.code)
		require.Empty(t, r.err)
		require.Equal(t, r, exec(read(t, twoRuns), append(strings.Fields("stats "+args), "-")...))
		for _, l := range strings.Split(r.out, "\n") {
			require.Equal(t, strings.TrimRight(l, " "), l)
		}
		fmt.Fprintf(&all, "$ agentevents %s\n%s\n", strings.Join(strings.Fields("stats "+args+" "+filepath.Base(twoRuns)), " "), r.out)
	}
	golden(t, "stats.txt", all.String())
}

// TestStatsFigures are those of testdata/stats.jsonl, counted by hand.
func TestStatsFigures(t *testing.T) {
	r := exec("", "stats", "--json", twoRuns)
	var got stats.Report
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	m := got.Metrics
	require.Equal(t, 3, got.Runs)
	require.Equal(t, 0.5, m.TaskSuccessRate.Value.V, "run 1 of runs 1 and 2; run 3 goes on")
	require.Equal(t, 1, got.Undecided)
	require.Equal(t, 0.5, m.HandoffLoopRate.Value.V, "session s1 of s1 and s2")
	require.Equal(t, 1.0/3, m.VerifierRejectionRate.Value.V, "one claim of two claims and an audit")
	require.Equal(t, 0.25, m.AverageAgentDepth.Value.V, "one of four agents has a parent")
	require.Equal(t, 1.0/3, m.ToolFailureRate.Value.V)
	require.InDelta(t, 0.03, m.CostPerSuccessfulTask.Value.V, 1e-12, "0.02 and 0.01 for one success")
	require.Equal(t, 90_000.0, m.HumanApprovalLatency.Value.V)
	require.Equal(t, 4.0, m.ContextCompression.Value.V)
}

func TestStatsInput(t *testing.T) {
	require.Equal(t, exitUsage, exec("", "stats").code)
	require.Contains(t, exec("", "stats", "--by", "run", "-").err, "want agent, tool, model, a pair")

	empty := exec("", "stats", "-")
	require.Equal(t, exitOK, empty.code)
	require.Empty(t, empty.err)
	require.Equal(t, 9+4, strings.Count(empty.out, "no data"), "the metrics, findings, model calls, tokens, cost and duration\n%s", empty.out)
	require.Contains(t, empty.out, "tool calls                 0\n")
	require.Empty(t, exec("", "stats", "nowhere.jsonl").out)
	var got stats.Report
	require.NoError(t, json.Unmarshal([]byte(exec("", "stats", "--json", "-").out), &got))
	require.NotNil(t, got.ToolCalls)
	require.False(t, got.Metrics.TaskSuccessRate.Value.OK)

	log := read(t, twoRuns)
	whole := exec("", "stats", "--json", "--by", "agent", twoRuns)
	dir := t.TempDir()
	var parts []string
	lines := strings.SplitAfter(log, "\n")
	for i, part := range [][]string{lines[:20], lines[10:]} { // which share ten lines
		parts = append(parts, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(parts[i], []byte(strings.Join(part, "")), 0o600))
	}
	repeats := strings.NewReplacer(fmt.Sprintf(`"events": %d,`, len(lines)-1+10), fmt.Sprintf(`"events": %d,`, len(lines)-1), `"eventsRepeated": 10,`, `"eventsRepeated": 0,`)
	both := exec("", "stats", "--json", "--by", "agent", parts[0], parts[1])
	require.NotEqual(t, whole.out, both.out)
	require.Equal(t, whole.out, repeats.Replace(both.out), "runs go on in another file")
	require.Contains(t, exec("", "stats", parts[0], parts[1]).out, "(10 left out: they repeat a sequence of their run, or go back)\n")

	bad := exec("no line\n"+log, "stats", "--json", "--by", "agent", "-")
	require.Equal(t, exitProblems, bad.code)
	require.Contains(t, bad.err, "stdin:1: ")
	require.Equal(t, whole.out, bad.out, "the good lines count")

	missing := exec("", "stats", "--json", "--by", "agent", twoRuns, filepath.Join(dir, "none"))
	require.Equal(t, exitUsage, missing.code)
	require.Equal(t, whole.out, missing.out)

	odd := exec(strings.ReplaceAll(log, `"toolId":"read"`, `"toolId":"\u001b[2J"`), "stats", "--by", "tool", "-")
	require.Contains(t, odd.out, `\x1b[2J`)
}

// TestStatsOfCaptures has logs as the Claude CLI's captures give them.
func TestStatsOfCaptures(t *testing.T) {
	files, err := filepath.Glob("../../capture/claude/testdata/*.events.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 3)
	r := exec("", append([]string{"stats", "--json", "--by", "model"}, files...)...)
	require.Equal(t, exitOK, r.code, r.err)
	var got stats.Report
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	require.Equal(t, 3, got.Runs)
	require.Equal(t, 2.0/3, got.Metrics.TaskSuccessRate.Value.V, "one was killed")
	require.Equal(t, 1.0/4, got.Metrics.ToolFailureRate.Value.V, "no such file; another was interrupted")
	require.InDelta(t, (0.0125+0.03)/2, got.Metrics.CostPerSuccessfulTask.Value.V, 1e-12)
	require.Equal(t, "model-a", got.Groups[0].Name)
}

// TestStatsOfDialects has the same log in other formats.
func TestStatsOfDialects(t *testing.T) {
	for _, format := range []string{"kahn", "multiagent", "kaos", "openharness", "openwop", "agui", "agui:sse"} {
		log := exec("", "convert", "--quiet", "--to", format, clean)
		require.Equal(t, exitOK, log.code, log.err)
		r := exec(log.out, "stats", "--json", "-")
		require.Equal(t, exitOK, r.code, r.err)
		var got stats.Report
		require.NoError(t, json.Unmarshal([]byte(r.out), &got))
		require.Equal(t, 1, got.Runs, format)
		require.Equal(t, 1.0, got.Metrics.TaskSuccessRate.Value.V, format)
		require.Equal(t, 1.0, got.Metrics.ToolFailureRate.Denominator, format)
	}
}

// TestStatsOfManyRuns has a hundred times as many runs: shares and means stay.
func TestStatsOfManyRuns(t *testing.T) {
	log := read(t, twoRuns)
	var many strings.Builder
	for i := range 100 {
		n := fmt.Sprint(i)
		many.WriteString(strings.NewReplacer(`"runId":"r`, `"runId":"`+n+`r`, `"sessionId":"s`, `"sessionId":"`+n+`s`).Replace(log))
	}
	var one, all stats.Report
	require.NoError(t, json.Unmarshal([]byte(exec("", "stats", "--json", twoRuns).out), &one))
	require.NoError(t, json.Unmarshal([]byte(exec(many.String(), "stats", "--json", "-").out), &all))
	require.Equal(t, 100*one.Runs, all.Runs)
	require.Equal(t, 100*one.Sessions, all.Sessions)
	require.Equal(t, 100*one.Metrics.TaskSuccessRate.Denominator, all.Metrics.TaskSuccessRate.Denominator)
	values := func(m stats.Metrics) []float64 {
		return []float64{
			m.TaskSuccessRate.Value.V, m.HandoffLoopRate.Value.V, m.VerifierRejectionRate.Value.V, m.AverageAgentDepth.Value.V,
			m.ToolFailureRate.Value.V, m.CostPerSuccessfulTask.Value.V, m.HumanApprovalLatency.Value.V, m.ContextCompression.Value.V,
		}
	}
	require.InDeltaSlice(t, values(one.Metrics), values(all.Metrics), 1e-9)
	require.Equal(t, one.Metrics.HumanApprovalLatency.Spread, all.Metrics.HumanApprovalLatency.Spread)
	require.Equal(t, one.RunDuration, all.RunDuration)
}

// A fault of a session's line has its file and line, as in the whole report.
func TestStatsTokensNamesLines(t *testing.T) {
	const text = "../../capture/testdata/codex/text"
	files, err := filepath.Glob(text + "/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	whole := read(t, files[0])
	require.NoError(t, os.WriteFile(cut, []byte(whole[:len(whole)-20]), 0o600))
	for _, names := range [][]string{{cut}, {files[1], cut}} {
		got := exec("", append([]string{"stats", "--tokens"}, names...)...)
		require.Equal(t, exitProblems, got.code)
		require.Regexp(t, "^"+regexp.QuoteMeta(cut)+`:[0-9]+: column [0-9]+: [^\n]*Codex: the file ends in the middle of this line[^\n]*\n$`, got.err)
		require.Equal(t, exec("", append([]string{"ls", "--rehash"}, names...)...).err, got.err)
		require.Contains(t, got.out, fmt.Sprintf("sessions     %d\n", len(names)))
	}
}

// The tokens alone are the same as in the whole report: for sessions, logs and streams.
func TestStatsTokens(t *testing.T) {
	const sessions = "../../capture/testdata/claude"
	for _, names := range [][]string{{sessions}, {twoRuns}, {sessions, twoRuns, "../../capture/testdata/codex"}, {"-"}} {
		whole, alone := exec(read(t, twoRuns), append([]string{"stats", "--json"}, names...)...), exec(read(t, twoRuns), append([]string{"stats", "--json", "--tokens"}, names...)...)
		require.Equal(t, exitOK, alone.code, alone.err)
		var want stats.Report
		var got bill
		require.NoError(t, json.Unmarshal([]byte(whole.out), &want))
		require.NoError(t, json.Unmarshal([]byte(alone.out), &got))
		require.Equal(t, bill{want.Sessions, want.ModelCalls.Calls, *want.Tokens}, got, names)
	}
	require.Contains(t, exec("", "stats", "--tokens", sessions).out, "model calls  87\ntokens       ")
	require.Equal(t, exitUsage, exec("", "stats", "--tokens", "--by", "model", sessions).code)
	require.Equal(t, exitUsage, exec("", "stats", "--tokens").code)
	require.Equal(t, exitUsage, exec("", "stats", "--tokens", "nowhere.jsonl").code)
}

// A session that is cut in a line is told by stats --tokens, too.
func TestTokensOfACutSession(t *testing.T) {
	files, err := filepath.Glob("../../capture/testdata/claude/tools/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	text := read(t, files[0])
	path := write(t, text[:len(text)-30])
	got := exec("", "stats", "--tokens", path)
	require.Equal(t, exec("", "ls", path).code, got.code)
	require.Equal(t, exitProblems, got.code)
	require.Contains(t, got.err, "the file ends in the middle of this line")
	require.Contains(t, got.out, "tokens ")
}
