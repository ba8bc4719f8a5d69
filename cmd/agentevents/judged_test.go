package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// A judged is a piece of a log: its lines in order, and how its document and the library judge it.
type judged struct {
	lines  []string
	odd    int // number of things that only a rule of the library forbids
	faults int // number of things that the document forbids
}

// kahnRun returns the lines of an agent's run. odd and wrong choose its events.
func kahnRun(r *rand.Rand, n int) judged {
	id := fmt.Sprint("agent", n)
	line := func(event, rest string) string {
		return `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"` + event + `","agent_id":"` + id + `"` + rest + `}`
	}
	var j judged
	step, calls := r.IntN(3), 0
	call := func(step int) {
		j.lines = append(j.lines, line("tool_invocation", fmt.Sprintf(`,"step":%d,"tool_name":"Read","duration_s":0.1,"ok":true`, step)))
		calls++
	}
	j.lines = append(j.lines, line("agent_run_start", `,"task":"t"`))
	if r.IntN(4) == 0 { // the process died and began again under its run id
		j.lines = append(j.lines, line("agent_run_start", `,"task":"t"`))
		j.odd++
	}
	call(step)
	for range r.IntN(3) {
		step += r.IntN(2)
		call(step)
	}
	if step > 0 && r.IntN(6) == 0 {
		call(step - 1)
		j.faults++
	}
	outcome := "converged"
	if r.IntN(6) == 0 {
		outcome = "splendid"
		j.faults++
	}
	j.lines = append(j.lines, line("agent_run_end", fmt.Sprintf(`,"outcome":"%s","total_steps":9,"total_tool_calls":%d,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0,"total_duration_s":1`, outcome, calls)))
	if outcome == "converged" && r.IntN(4) == 0 { // a line that was flushed late
		call(step)
		j.odd++
	}
	return j
}

// wikiAgent returns the lines of an agent of the wiki's document.
func wikiAgent(r *rand.Rand, n int) judged {
	id := fmt.Sprint("agent", n)
	var j judged
	line := func(typ, payload string) {
		j.lines = append(j.lines, fmt.Sprintf(`{"id":"%s-%d","traceId":"T","spanId":"%s","sessionId":"S","runId":"R","actor":"%s","type":"%s","payload":%s,"timestamp":"2026-05-05T09:00:00.000Z","schemaVersion":"1.0"}`, id, len(j.lines), id, id, typ, payload))
	}
	if r.IntN(4) == 0 { // the call is before the log
		line("tool.call.completed", `{"callId":"early","tool":"x"}`)
		j.odd++
	}
	line("agent.spawned", `{"agentId":"`+id+`","agentTask":"t"}`)
	for k := range r.IntN(3) {
		line("tool.call.started", fmt.Sprintf(`{"callId":"c%d","tool":"x"}`, k))
		line("tool.call.completed", fmt.Sprintf(`{"callId":"c%d","tool":"x"}`, k))
	}
	if r.IntN(6) == 0 {
		line("workflow.phase.started", `{"phase":"p"}`)
		j.faults++
	}
	line("agent.completed", `{"agentId":"`+id+`"}`)
	if r.IntN(4) == 0 {
		line("agent.message.created", `{"content":"one more thing"}`)
		j.odd++
	}
	return j
}

// A log is judged by its document: the rules of the library that go further are warnings, and
// problems when somebody asks for it.
func TestALogIsJudgedByItsDocument(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for name, agent := range map[string]func(*rand.Rand, int) judged{"kahn": kahnRun, "multiagent": wikiAgent} {
		for range effort.Of(60, 250, 2500) {
			var all judged
			parts := make([]judged, 1+r.IntN(3))
			for n := range parts {
				parts[n] = agent(r, n)
				all.odd, all.faults = all.odd+parts[n].odd, all.faults+parts[n].faults
			}
			for len(parts) > 0 { // the agents work at the same time
				n := r.IntN(len(parts))
				all.lines = append(all.lines, parts[n].lines[0])
				if parts[n].lines = parts[n].lines[1:]; len(parts[n].lines) == 0 {
					parts = append(parts[:n], parts[n+1:]...)
				}
			}
			log := strings.Join(all.lines, "\n") + "\n"
			plain, strict := exec(log, "check", "--dialect", name, "-"), exec(log, "check", "--dialect", name, "--strict", "-")
			told := fmt.Sprintf("%s: %d odd, %d faults\n%s%s", name, all.odd, all.faults, log, plain.out+plain.err)
			require.Equal(t, all.faults > 0, plain.code == exitProblems, told)
			require.Equal(t, all.faults+all.odd > 0, strict.code == exitProblems, told)
			require.Equal(t, all.odd, strings.Count(plain.out+plain.err, "warning: "), told)
			if all.faults == 0 { // without the flag the document is found by the lines
				found, strict := exec(log, "check", "-"), exec(log, "check", "--strict", "-")
				require.Equal(t, exitOK, found.code, told)
				require.Equal(t, all.odd, strings.Count(found.out+found.err, "warning: "), told)
				require.Equal(t, all.odd > 0, strict.code == exitProblems, told)
			}
		}
	}
}

// A start whose line was flushed after its end's is one call with it.
func TestAStartThatIsFlushedLateIsOneCall(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	for range effort.Of(30, 150, 5000) {
		var lines []string
		calls, failed, took := 1+r.IntN(6), 0, 0
		line := func(agent, typ, payload string, second int) {
			lines = append(lines, fmt.Sprintf(`{"id":"e%d","traceId":"T","spanId":"s%s","sessionId":"S","runId":"R","actor":"%s","type":"%s","payload":%s,"timestamp":"2026-05-05T09:%02d:%02dZ","schemaVersion":"1.0"}`,
				len(lines), agent, agent, typ, payload, second/60, second%60))
		}
		line("a", "agent.spawned", `{"agentId":"a","agentTask":"t"}`, 0)
		for n := range calls {
			at, lasts, agent := 10*n, 1+r.IntN(9), []string{"a", "b"}[r.IntN(2)]
			end := fmt.Sprintf(`{"callId":"c%d"}`, n)
			if r.IntN(3) == 0 {
				end = fmt.Sprintf(`{"callId":"c%d","error":"no"}`, n)
				failed++
			}
			line(agent, "tool.call.started", fmt.Sprintf(`{"callId":"c%d","toolName":"dig"}`, n), at)
			line(agent, "tool.call.completed", end, at+lasts)
			if last := len(lines) - 1; r.IntN(2) == 0 {
				lines[last], lines[last-1] = lines[last-1], lines[last]
			}
			took += lasts
		}
		log := strings.Join(lines, "\n") + "\n"
		var s struct {
			OpenCalls []any
			Tools     map[string]struct{ Calls, OK, Failed, DurationMS int }
		}
		require.NoError(t, json.Unmarshal([]byte(exec(log, "fold", "-").out), &s))
		require.Empty(t, s.OpenCalls, log)
		require.Len(t, s.Tools, 1, log)
		require.Equal(t, struct{ Calls, OK, Failed, DurationMS int }{calls, calls - failed, failed, 1000 * took}, s.Tools["dig"], log)
		require.NotContains(t, exec(log, "tree", "-").out, "open", log)
		require.Equal(t, exitOK, exec(log, "check", "-").code, log)
	}
}
