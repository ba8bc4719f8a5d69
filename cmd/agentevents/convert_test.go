package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
	"github.com/agentevents/agentevents/internal/txtar"
)

// The example of seed 000.
const kahnLog = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"agent-coder-1","event":"agent_run_start","agent_id":"coder","task":"Add /v2/health"}
{"ts":"2026-05-05T09:00:01.200Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":0,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}
{"ts":"2026-05-05T09:00:01.250Z","run_id":"agent-coder-1","event":"tool_invocation","agent_id":"coder","step":0,"tool_name":"Read","duration_s":0.04,"ok":true}
{"ts":"2026-05-05T09:01:05.000Z","run_id":"agent-coder-1","event":"agent_run_end","agent_id":"coder","outcome":"converged","total_steps":12,"total_tool_calls":7,"total_audit_checkpoints":2,"audits_passed":2,"audits_failed":0,"total_duration_s":65.0,"convergence_score":1.0}
`

func TestConvertThereAndBack(t *testing.T) {
	native := exec(kahnLog, "convert", "--to", "native", "-")
	require.Equal(t, exitOK, native.code, native.err)
	require.Equal(t, `reading: made up: every kind /id: derived from the line (4 times, first in run agent-coder-1 at sequence 0)
reading: made up: every kind /sequence: the number of the line in its run (4 times, first in run agent-coder-1 at sequence 0)
reading: made up: agent.toolReturned /payload/callId: derived from the line (once, in run agent-coder-1 at sequence 2)
`, native.err, "nothing is lost")
	require.Equal(t, 4, strings.Count(native.out, "\n"))
	strict := exec(kahnLog, "convert", "--from", "kahn", "--to", "native", "--strict", "-")
	require.Equal(t, exitProblems, strict.code, "the document has no ids")
	require.Equal(t, native.out, strict.out)
	require.Equal(t, native.err, strict.err)
	require.Equal(t, result{out: kahnLog}, exec(kahnLog, "convert", "--to", "kahn", "--strict", "-"), "the encoder leaves out values that the decoder made up")
	require.Equal(t, native.out, exec(kahnLog, "cat", "-").out)

	back := exec(native.out, "convert", "--to", "kahn", "-")
	require.Equal(t, exitOK, back.code)
	require.Equal(t, kahnLog, back.out)
	require.Equal(t, result{out: kahnLog}, exec(native.out, "convert", "--to", "kahn", "--strict", "-"), "readers derive the same ids")
	other := strings.ReplaceAll(native.out, `"id":"`, `"id":"x`)
	require.Contains(t, exec(other, "convert", "--to", "kahn", "-").err, "dropped: every kind /id: the document has no event ids (4 times, first in run agent-coder-1 at sequence 0)\n")
	require.Equal(t, exitProblems, exec(other, "convert", "--to", "kahn", "--strict", "-").code)
	require.Empty(t, exec(other, "convert", "--to", "kahn", "--quiet", "-").err)

	// However a line is spelled.
	odd := strings.ReplaceAll(kahnLog, `,"`, ` , "`)
	require.Equal(t, odd, exec(odd, "convert", "--to", "kahn", "--quiet", "-").out)
}

func TestConvertListsEventsWithoutCounterpart(t *testing.T) {
	got := exec(line("r", 0)+kahnLog, "convert", "--to", "kahn", "-")
	require.Equal(t, exitOK, got.code)
	require.Equal(t, kahnLog, got.out)
	require.Contains(t, got.err, "dropped: agent.text the event: no counterpart (once, in run r at sequence 0)\n")
}

func TestConvertListsLossesOfEventsWithoutARun(t *testing.T) {
	got := exec(line("", 3)+line("", 4), "convert", "--to", "kahn", "-")
	require.Equal(t, exitOK, got.code)
	require.Contains(t, got.err, "dropped: agent.text the event: no counterpart (2 times, first at sequence 3)\n")
}

func TestConvertGoesOnAfterBadLines(t *testing.T) {
	got := exec("{\n"+kahnLog, "convert", "--to", "kahn", "--quiet", "-")
	require.Equal(t, exitProblems, got.code)
	require.Equal(t, kahnLog, got.out)
	require.Contains(t, got.err, "stdin:1: ")
}

func TestConvertUsage(t *testing.T) {
	got := exec("", "convert", "-")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "--to is needed: one of native, kahn")
	got = exec("", "convert", "--to", "klingon", "-")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "want native, kahn")
}

// Every command reads every format, mixed too.
func TestCommandsFindOutTheFormat(t *testing.T) {
	dir := t.TempDir()
	mixed := filepath.Join(dir, "mixed.jsonl")
	require.NoError(t, os.WriteFile(mixed, []byte(line("r", 0)+kahnLog+line("r", 1)), 0o644))
	require.Equal(t, 6, strings.Count(exec("", "cat", mixed).out, "\n"))
	require.Equal(t, 2, strings.Count(exec("", "fold", mixed).out, "\n"))
	require.Contains(t, exec("", "tree", mixed).out, "Add /v2/health")
	check := exec("", "check", mixed)
	require.Equal(t, exitOK, check.code, check.out)
}

func TestCheckTheRulesOfADocument(t *testing.T) {
	require.Equal(t, result{}, exec(kahnLog, "check", "--dialect", "kahn", "-"))
	bad := strings.Replace(kahnLog, `"coder","task"`, `"Coder","task"`, 1)
	got := exec(bad, "check", "--dialect", "kahn", "-")
	require.Equal(t, exitProblems, got.code)
	require.Contains(t, got.out, "stdin:1: kahn-id: agent_run_start: /agent_id: \"Coder\" does not match ^[a-z0-9]")
	require.Equal(t, exitOK, exec(bad, "check", "-").code, "ids are opaque to the library")
}

// Every format takes a log, keeps the rules of its document in it, and gives it
// back.
func TestConvertToEveryFormat(t *testing.T) {
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			to := exec("", "convert", "--to", w.name, clean)
			require.Equal(t, exitOK, to.code, to.err)
			require.NotEmpty(t, to.out)
			check := exec(to.out, "check", "--lifecycle", "relaxed", "--dialect", w.name, "-")
			require.Equal(t, exitOK, check.code, check.out+check.err)
			require.Equal(t, to.out, exec(to.out, "convert", "--to", w.name, "--quiet", "-").out, "to itself")
			back := exec(to.out, "convert", "--to", "native", "--quiet", "-")
			require.Equal(t, exitOK, back.code, back.err)
			require.Equal(t, exitOK, exec(back.out, "check", "--lifecycle", "relaxed", "-").code)
			require.NotEmpty(t, exec(to.out, "tree", "-").out)
			again := exec(back.out, "convert", "--from", "native", "--to", w.name, "--quiet", "-")
			require.Equal(t, to.out, again.out, "by way of the native format")
		})
	}
}

// A capture names its table of status changes, and so does its log in every format that
// has status changes: no flag is needed, except where KAHN's document has the last word.
func TestImportedLogInEveryFormat(t *testing.T) {
	imported := exec("", "import", "claude", "../../capture/claude/testdata/subagent.stream.jsonl")
	require.Equal(t, exitOK, imported.code, imported.err)
	require.Equal(t, result{exitOK, "", ""}, exec(imported.out, "check", "-"))
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			to := exec(imported.out, "convert", "--quiet", "--to", w.name, "-")
			require.Equal(t, exitOK, to.code, to.err)
			check := exec(to.out, "check", "-")
			require.Equal(t, exitOK, check.code, check.out+check.err)
			check = exec(exec(to.out, "convert", "--quiet", "--to", "native", "-").out, "check", "-")
			require.Equal(t, exitOK, check.code, check.out+check.err)
			check = exec(to.out, "check", "--dialect", w.name, "-")
			require.Equal(t, w.name == "kahn", strings.Contains(check.out, "is not in the strict table"), check.out)
			require.Equal(t, exitOK, exec(to.out, "check", "--lifecycle", "derived", "--dialect", w.name, "-").code)
		})
	}
}

// The list of --strict and the findings of --verify never disagree, on any log in the tree.
func TestStrictAndVerifyAgree(t *testing.T) {
	logs := map[string]string{}
	add := func(pattern string, command ...string) {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			switch {
			case strings.HasSuffix(file, ".txtar"):
				for _, f := range txtar.Parse(string(text)).Files {
					if findWire(f.Name) != nil {
						logs[file+" "+f.Name] = f.Text
					}
				}
			case len(command) > 0:
				logs[file] = exec(string(text), append(command, "-")...).out
			default:
				logs[file] = string(text)
			}
		}
	}
	add("testdata/*.jsonl")
	delete(logs, "testdata/turns.stream.jsonl") // a capture that is not saved has the time of its reading
	add("../../testdata/*.jsonl")
	add("../../dialect/*/testdata/*.jsonl")
	add("../../dialect/testdata/golden/*.txtar")
	add("../../capture/claude/testdata/*.jsonl", "import", "claude")
	add("../../capture/claude/testdata/sessions/*.jsonl", "import", "claude")
	read := 0
	for name, log := range logs {
		for _, w := range wires() {
			format := w.name
			verify := exec(log, "convert", "--to", format, "--verify", "-")
			require.NotContains(t, verify.err, "verify: ", name)
			if verify.code == exitUsage || strings.Contains(verify.err, "stdin:") {
				continue // some lines are no events, which is another problem
			}
			read++
			require.Equal(t, exitOK, verify.code, name)
			strict := exec(log, "convert", "--to", format, "--strict", "-")
			require.Equal(t, verify.out, strict.out, name)
			require.Equal(t, verify.err != "", strict.code == exitProblems, name)
			fast := exec(log, "convert", "--to", format, "--fast", "-")
			require.Equal(t, verify.out, fast.out, name)
			for line := range strings.Lines(fast.err) {
				require.True(t, strings.HasPrefix(line, "reading: "), "%s: %s", name, line)
			}
		}
	}
	require.Greater(t, read, 500)
	require.Equal(t, exitUsage, exec(kahnLog, "convert", "--to", "kaos", "--fast", "--strict", "-").code)
}

// --verify reads the output back: a listed loss is not a problem, and a difference that is not
// listed is one.
func TestConvertVerify(t *testing.T) {
	runs := "" // three at a time
	for line := range strings.Lines(exec("", "convert", "--to", "native", "--quiet", clean).out) {
		runs += line + strings.ReplaceAll(line, `"r1`, `"r2`) + strings.ReplaceAll(line, `"r1`, `"r3`)
	}
	for _, w := range wires() {
		got := exec("", "convert", "--to", w.name, "--verify", "--quiet", clean)
		require.Equal(t, exitOK, got.code, w.name)
		require.Empty(t, got.err, w.name)
		require.Equal(t, exec("", "convert", "--to", w.name, "--quiet", clean).out, got.out, w.name)
		got = exec(runs, "convert", "--to", w.name, "--verify", "--quiet", "-")
		require.Equal(t, result{exitOK, got.out, ""}, got, w.name)
	}
	byHand := `{"id":"e","runId":"r","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.failed","schemaVersion":"1.0","payload":{"error":{"message":"m","code":"c"}}}` + "\n"
	require.Equal(t, result{exitOK, byHand, ""}, exec(byHand, "convert", "--to", "native", "--verify", "--quiet", "-"), "members in another order")
	bare := strings.Replace(byHand, `"schemaVersion":"1.0",`, "", 1)
	for _, w := range wires() {
		require.Equal(t, exitOK, exec(bare, "convert", "--to", w.name, "--verify", "--quiet", "-").code, w.name)
	}

	ev := agentevents.Event{ID: "1", RunID: "r", Payload: &agentevents.RunPaused{Reason: "why"}}
	line, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	var errs bytes.Buffer
	in := invocation{stderr: &errs}
	trip := &readback.Trip{}
	trip.Wrote(ev, append(bytes.Replace(line, []byte("why"), []byte("when"), 1), '\n'), nil)
	trip.Wrote(ev, nil, nil)
	require.Equal(t, 2, readBack(&in, findWire("native"), trip))
	require.Equal(t, `verify: run r, sequence 0: run.paused: no loss lists the difference /payload/reason: a string of 3 bytes became a string of 4 bytes
verify: run r, sequence 0: run.paused has disappeared, but that is not among the losses
`, errs.String())
	trip = &readback.Trip{}
	trip.Wrote(ev, []byte("{\n"), dialect.ErrNoCounterpart)
	errs.Reset()
	require.Equal(t, 1, readBack(&in, findWire("native"), trip))
	require.Contains(t, errs.String(), "verify: the output cannot be read back: line 1")
}
