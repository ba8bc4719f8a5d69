package kahn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// A row is a requirement or an open point of the document, and its effect on a log.
type row struct {
	says  string
	log   []string
	check func(t *testing.T, s *agentevents.RunSnapshot, written string)
}

// TestRows has the requirements of the document that are easily missed, one by one. Every
// log is read by the strict decoder and folded with the strict table.
func TestRows(t *testing.T) {
	at := func(second int, event, members string) string {
		return fmt.Sprintf(`{"ts":"2026-05-05T09:00:%02d.000Z","run_id":"r","event":"%s",%s}`, second, event, members)
	}
	start := func(second int) string { return at(second, "agent_run_start", `"agent_id":"a","task":"t"`) }
	move := func(second, step int, from, to string) string {
		return at(second, "agent_transition", fmt.Sprintf(`"agent_id":"a","step":%d,"from":"%s","to":"%s"`, step, from, to))
	}
	end := func(second, steps int, outcome, score string) string {
		return at(second, "agent_run_end", fmt.Sprintf(`"agent_id":"a","outcome":"%s","total_steps":%d,"total_tool_calls":0,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0,"total_duration_s":1.0%s`, outcome, steps, score))
	}
	tool := func(second, step int, more string) string {
		return at(second, "tool_invocation", fmt.Sprintf(`"agent_id":"a","step":%d,"tool_name":"Read","duration_s":1.0,"ok":true%s`, step, more))
	}
	legal := func(t *testing.T, s *agentevents.RunSnapshot, _ string) { require.Empty(t, s.Violations) }
	breaks := func(rule agentevents.Rule) func(*testing.T, *agentevents.RunSnapshot, string) {
		return func(t *testing.T, s *agentevents.RunSnapshot, _ string) {
			require.Len(t, s.Violations, 1)
			require.Equal(t, rule, s.Violations[0].Rule)
		}
	}
	for _, c := range []row{
		{"an agent begins thinking, also without a start", []string{move(1, 0, "tool_call", "tool_result")}, breaks(agentevents.RuleTransitionFromCurrent)},
		{"a start after transitions does not take the agent back to thinking", []string{move(1, 0, "thinking", "failed"), start(2)}, breaks(agentevents.RuleAgentStartedOnce)},
		{"after its end an agent may begin again", []string{move(1, 0, "thinking", "failed"), end(2, 1, "aborted", ""), start(3), move(4, 1, "thinking", "tool_call")}, legal},

		{"steps may begin anywhere", []string{start(0), move(1, 7, "thinking", "tool_call"), end(2, 1, "partial", "")}, legal},
		{"steps may leave numbers out", []string{start(0), move(1, 10, "thinking", "tool_call"), move(2, 20, "tool_call", "tool_result"), end(3, 2, "partial", "")}, legal},
		{"a total below the steps that there were", []string{start(0), move(1, 10, "thinking", "tool_call"), move(2, 20, "tool_call", "tool_result"), end(3, 1, "partial", "")}, breaks(agentevents.RuleEndedTotals)},

		{"the final status does not bind the outcome", []string{start(0), move(1, 0, "thinking", "failed"), end(2, 1, "converged", `,"convergence_score":1.0`)},
			func(t *testing.T, s *agentevents.RunSnapshot, _ string) {
				require.Empty(t, s.Violations)
				require.Equal(t, agentevents.StatusFailed, s.Agents["a"].Status, "both are shown")
				require.Equal(t, agentevents.OutcomeConverged, s.Agents["a"].Outcome)
			}},

		{"input_summary has no limit", []string{start(0), tool(1, 0, `,"input_summary":"`+strings.Repeat("x", MaxSummary+1)+`"`)},
			func(t *testing.T, s *agentevents.RunSnapshot, written string) {
				require.Empty(t, s.Violations)
				require.Contains(t, written, strings.Repeat("x", MaxSummary+1))
			}},

		{"run_id has no pattern", []string{strings.Replace(start(0), `"r"`, `"2026.05.05:nightly/ü"`, 1)},
			func(t *testing.T, s *agentevents.RunSnapshot, written string) {
				require.Equal(t, "2026.05.05:nightly/ü", s.RunID)
				require.Contains(t, written, `"run_id":"2026.05.05:nightly/ü"`)
			}},

		{"a tool invocation is tied to no status", []string{start(0), tool(1, 0, ""), move(2, 0, "thinking", "blocked-on-clarification"), tool(3, 0, "")},
			func(t *testing.T, s *agentevents.RunSnapshot, _ string) {
				require.Empty(t, s.Violations)
				require.Equal(t, 2, s.Agents["a"].ToolCalls)
			}},

		{"the run is audited with null", []string{at(0, "audit_checkpoint", `"agent_id":null,"checkpoint_id":"c","result":"pass","duration_s":0.0`)},
			func(t *testing.T, s *agentevents.RunSnapshot, written string) {
				require.Empty(t, s.Agents)
				require.Contains(t, written, `"agent_id":null`)
			}},
	} {
		t.Run(c.says, func(t *testing.T) {
			events := decode(t, Options{Strict: true}, strings.Join(c.log, "\n")+"\n")
			fold := agentevents.NewFold(agentevents.FoldOptions{Lifecycle: agentevents.LifecycleStrict})
			for _, ev := range events {
				fold.Apply(ev)
			}
			written := encode(t, NewEncoder(EncoderOptions{}), events...)
			decode(t, Options{Strict: true}, written)
			c.check(t, fold.Snapshot(), written)
		})
	}
}

// Agents without ids are told apart by the spans of their starts. Later lines have the span
// too, because KAHN knows an agent by one id.
func TestAgentsOfSpans(t *testing.T) {
	in := func(agent, span, parent string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.SpanID, ev.ParentSpanID = agent, span, parent
		return ev
	}
	tool := func(id string) agentevents.Payload {
		return &agentevents.ToolReturned{CallID: id, ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true}
	}
	asRead := verbatim(t, `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_transition","agent_id":"one","step":0,"from":"thinking","to":"failed"}`)
	e := NewEncoder(EncoderOptions{})
	log := encode(t, e,
		in("", "s1", "", &agentevents.AgentStarted{Task: "t"}),
		in("", "s2", "", &agentevents.AgentStarted{Task: "t"}),
		in("", "x", "s1", tool("c1")),
		in("one", "y", "s1", tool("c2")),
		in("one", "", "", tool("c3")),
		in("two", "s2", "", &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}),
		in("one", "s1", "", &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}),
		in("three", "z", "", tool("c4")),
		asRead,
	)
	var agents []string
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, `"agent_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		agents = append(agents, id)
	}
	require.Equal(t, []string{"s1", "s2", "s1", "s1", "s1", "s2", "s1", "three", "s1"}, agents)
	require.Contains(t, log, `"total_steps":1,"total_tool_calls":3`)
	require.Contains(t, pointers(e), "altered /agentId")
}

// The value made up for an absent field never contradicts the rest of the event.
func TestMadeUpOutcomesAndSummaries(t *testing.T) {
	later := native(&agentevents.AgentEnded{})
	later.Time = noon.Add(2 * time.Second)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), later), `"total_duration_s":0.0`)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), native(&agentevents.AgentStarted{}), later), `"total_duration_s":2.0`)
	failed := &agentevents.AgentTransition{From: agentevents.StatusThinking, To: agentevents.StatusFailed}
	for _, c := range []struct {
		log  []agentevents.Payload
		want string // on the last line
	}{
		{[]agentevents.Payload{&agentevents.AgentEnded{}}, `"outcome":"converged"`},
		{[]agentevents.Payload{&agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Message: "x"})}}, `"outcome":"aborted"`},
		{[]agentevents.Payload{failed, &agentevents.AgentEnded{}}, `"outcome":"aborted"`},
		{[]agentevents.Payload{failed, &agentevents.AgentStarted{}, &agentevents.AgentEnded{}}, `"outcome":"converged"`},
		{[]agentevents.Payload{&agentevents.ToolReturned{Result: `"package \"main\""`, Arguments: `"ls"`}}, `"ok":false,"input_summary":"ls","output_summary":"package \"main\""}`},
		{[]agentevents.Payload{&agentevents.ToolReturned{Result: `{"a":"b"}`}}, `"output_summary":"{\"a\":\"b\"}"}`},
		{[]agentevents.Payload{&agentevents.ToolReturned{Result: `null`}}, `"ok":false}`},
	} {
		e, line := NewEncoder(EncoderOptions{}), ""
		for _, p := range c.log {
			line = encode(t, e, native(p))
		}
		require.Contains(t, line, c.want)
	}
}

// A move that the document's diagram does not have has a line that records it.
func TestMovesOutsideTheDiagram(t *testing.T) {
	answer := native(&agentevents.AgentTransition{From: agentevents.StatusResponse, To: agentevents.StatusConverged})
	e := NewEncoder(EncoderOptions{})
	line := encode(t, e, answer)
	require.NotContains(t, pointers(e), "altered ")
	e = NewEncoder(EncoderOptions{})
	require.Equal(t, line, encode(t, e, verbatim(t, line)))
	require.Empty(t, e.Losses())
}

// An audit that was read with an empty agent is written with null, also when its line is
// kept.
func TestAuditWithAnEmptyAgent(t *testing.T) {
	const line = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"audit_checkpoint","agent_id":"","checkpoint_id":"c","result":"pass","duration_s":0.0}`
	e := NewEncoder(EncoderOptions{})
	out := encode(t, e, verbatim(t, line))
	require.Contains(t, out, `"agent_id":null`)
	decode(t, Options{Strict: true}, out)
	require.Equal(t, []string{"dropped /id", "dropped /kahn/agent_id"}, pointers(e))
}
