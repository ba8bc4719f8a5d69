package multiagent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// A log of a row is made of these lines: actor, span, span around, type, payload. The ids
// and times count up.
type said struct{ actor, span, parent, typ, payload string }

func rowLog(lines []said) (log []string) {
	for i, l := range lines {
		parent := ""
		if l.parent != "" {
			parent = `"parentSpanId":"` + l.parent + `",`
		}
		log = append(log, fmt.Sprintf(`{"id":"e%d","traceId":"t","spanId":"%s",%s"sessionId":"s","runId":"r","actor":"%s","type":"%s","payload":%s,"timestamp":"2026-05-18T09:00:%02d.000Z","schemaVersion":"1.0"}`,
			i, l.span, parent, l.actor, l.typ, l.payload, i))
	}
	return log
}

// agentsOf returns the ids of the agents and who is above them, in order.
func agentsOf(s *agentevents.RunSnapshot) (list []string) {
	for _, a := range s.AgentsInOrder() {
		list = append(list, strings.TrimSuffix(a.AgentID+"<"+a.ParentAgentID, "<"))
	}
	return list
}

// TestRows has the requirements of the document that are easily missed, one by one. Every
// log is legal: the strict decoder reads it, no rule of the library is broken, and through
// the native format it comes back as it was.
func TestRows(t *testing.T) {
	const begin, done = `{"workflowId":"w","phase":"p","inputCount":2}`, `{"workflowId":"w","phase":"p","outputCount":2,"tokens":3}`
	spawn := func(task string) string {
		return `{"workflowId":"w","phase":"p","agentTask":"` + task + `","parentSpanId":"ph"}`
	}
	back := func(agent string) string {
		return `{"agentId":"` + agent + `","tokens":1,"durationMs":5,"resultSchema":{"type":"string"},"workflowId":"w","phase":"p"}`
	}
	fanout := func(spawner string) []said {
		return []said{
			{spawner, "root", "", "workflow.created", `{"workflowId":"w","script":"phase(p)","phases":["p"],"estimatedTokens":9}`},
			{spawner, "ph", "root", "workflow.phase.started", begin},
			{spawner, "s1", "ph", "agent.spawned", spawn("one")},
			{spawner, "s2", "ph", "agent.spawned", spawn("two")},
			{spawner, "s2", "", "agent.completed", back("a2")},
			{spawner, "s1", "", "agent.completed", back("a1")},
			{spawner, "ph", "", "workflow.phase.completed", done},
			{spawner, "root", "", "workflow.finalized", `{"workflowId":"w","totalTokens":2,"totalAgents":2,"durationMs":5}`},
		}
	}
	fannedOut := func(t *testing.T, s *agentevents.RunSnapshot) {
		require.Equal(t, []string{"a1", "a2"}, agentsOf(s))
		require.Equal(t, "two", s.Agents["a2"].Task)
		require.Equal(t, 1, s.Agents["a2"].Attempts)
		require.False(t, s.Agents["a1"].EndedAt.IsZero())
	}
	status := func(want agentevents.ToolStatus) func(*testing.T, *agentevents.RunSnapshot) {
		return func(t *testing.T, s *agentevents.RunSnapshot) {
			require.Empty(t, s.OpenCalls)
			require.Equal(t, want, s.ClosedCalls[0].Status)
		}
	}
	returns := func(payload string) []said {
		return []said{{"a", "c", "", "tool.call.started", `{"callId":"c1","toolName":"x"}`}, {"a", "c", "", "tool.call.completed", payload}}
	}
	for _, c := range []struct {
		says  string
		log   []said
		check func(t *testing.T, s *agentevents.RunSnapshot)
	}{
		{"agents that an orchestrator spawns", fanout("orchestrator"), fannedOut},
		{"agents that a script of another name spawns", fanout("workflow-script"), fannedOut},
		{"several agents may have one id, such as a role's", []said{
			{"script", "s1", "", "agent.spawned", `{"agentTask":"one"}`},
			{"script", "s2", "", "agent.spawned", `{"agentTask":"two"}`},
			{"auditor", "c1", "s1", "tool.call.started", `{"callId":"1"}`},
			{"auditor", "c1", "s1", "tool.call.completed", `{"callId":"1"}`},
			{"script", "s2", "", "agent.completed", `{"agentId":"auditor"}`},
			{"script", "s1", "", "agent.completed", `{"agentId":"auditor"}`},
			{"script", "s3", "", "agent.spawned", `{"agentTask":"again"}`},
			{"auditor", "c2", "s3", "tool.call.started", `{"callId":"2"}`},
			{"auditor", "c2", "s3", "tool.call.completed", `{"callId":"2"}`},
			{"script", "s3", "", "agent.completed", `{"agentId":"auditor"}`},
		}, func(t *testing.T, s *agentevents.RunSnapshot) {
			require.Equal(t, []string{"auditor", "s2", "s3"}, agentsOf(s))
			for _, a := range s.Agents {
				require.True(t, a.Ended)
			}
			require.Equal(t, 1, s.Agents["s3"].ToolCalls)
		}},
		{"an end without an id belongs to the agent of its span", []said{
			{"script", "s1", "", "agent.spawned", `{"agentTask":"x"}`},
			{"worker", "c", "s1", "tool.call.started", `{"callId":"c1"}`},
			{"script", "s1", "", "agent.completed", `{"tokens":1}`},
		}, func(t *testing.T, s *agentevents.RunSnapshot) {
			require.Equal(t, []string{"worker"}, agentsOf(s))
			require.True(t, s.Agents["worker"].Ended)
		}},
		{"nested spans are agents below agents", []said{
			{"a1", "s1", "root", "agent.spawned", `{"agentTask":"outer"}`},
			{"a2", "s2", "s1", "agent.spawned", `{"agentTask":"inner"}`},
			{"a2", "s2", "", "agent.completed", `{"agentId":"a2"}`},
			{"a1", "s1", "", "agent.completed", `{"agentId":"a1"}`},
		}, func(t *testing.T, s *agentevents.RunSnapshot) { require.Equal(t, []string{"a1", "a2<a1"}, agentsOf(s)) }},
		{"so are those of payloads that name them", []said{
			{"orchestrator", "s1", "root", "agent.spawned", `{"agentTask":"outer","agentId":"a1"}`},
			{"orchestrator", "s2", "s1", "agent.spawned", `{"agentTask":"inner","agentId":"a2"}`},
		}, func(t *testing.T, s *agentevents.RunSnapshot) { require.Equal(t, []string{"a1", "a2<a1"}, agentsOf(s)) }},

		{"people are no agents, however they are spelled", []said{{"User", "s", "", "session.started", `{}`}, {"HUMAN", "s", "", "agent.message.created", `{"text":"hi"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Empty(t, s.Agents) }},
		{"people and services are no agents", []said{{"alice@corp", "s", "", "session.started", `{}`}, {"a", "s", "", "approval.requested", `{"id":"q"}`}, {"alice@corp", "s", "", "approval.granted", `{"id":"q"}`},
			{"billing", "s", "", "budget.exceeded", `{}`}, {"alice@corp", "s", "", "session.completed", `{}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, []string{"a"}, agentsOf(s))
				require.Equal(t, "alice@corp", s.Approvals[0].By, "who acts has answered")
			}},
		{"an agent may answer", []said{{"a", "s", "", "approval.requested", `{"id":"q"}`}, {"b", "s", "", "approval.granted", `{"id":"q","approvedBy":"ann","agentId":"b"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, []string{"a", "b"}, agentsOf(s))
				require.Equal(t, "ann", s.Approvals[0].By)
			}},

		{"the end of the session ends the run", []said{{"user", "s", "", "session.started", `{"goal":"g"}`}, {"a", "s", "", "tool.call.started", `{}`}, {"orchestrator", "s", "", "session.completed", `{"status":"success"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, agentevents.RunStatusCompleted, s.Status)
				require.Equal(t, 2, s.CompletedAt.Second())
			}},
		{"a session that failed", []said{{"a", "s", "", "agent.message.created", `{"text":"x"}`}, {"orchestrator", "s", "", "session.completed", `{"status":"failed"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, agentevents.RunStatusFailed, s.Status)
			}},
		{"nodes have no exit: each stays entered", []said{{"orchestrator", "s", "", "workflow.node.enter", `{"node":"plan"}`}, {"orchestrator", "s", "", "workflow.node.enter", `{"node":"code"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, agentevents.NodeStatusRunning, s.NodeStatus["plan"])
				require.Equal(t, "code", s.CurrentNodeID)
			}},

		{"a repeated message is not another message", []said{{"a", "s", "", "agent.message.created", `{"messageId":"m","content":"hi"}`}, {"a", "s", "", "agent.message.created", `{"messageId":"m","content":"hi"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Len(t, s.Messages, 1) }},

		{"a call without success has failed", returns(`{"callId":"c1","success":false}`), status(agentevents.ToolStatusError)},
		{"a call that is not ok has failed", returns(`{"callId":"c1","ok":false}`), status(agentevents.ToolStatusError)},
		{"a call with an error flag has failed", returns(`{"callId":"c1","isError":true}`), status(agentevents.ToolStatusError)},
		{"a call with an error has failed", returns(`{"callId":"c1","error":"boom"}`), status(agentevents.ToolStatusError)},
		{"a call with success", returns(`{"callId":"c1","success":true,"isError":false}`), status(agentevents.ToolStatusOK)},
		{"a call with success and a warning", returns(`{"callId":"c1","error":"old","success":true}`), status(agentevents.ToolStatusOK)},
		{"a call with an error and a flag that is none", returns(`{"callId":"c1","error":"boom","ok":"no"}`), status(agentevents.ToolStatusError)},
		{"values that are not flags have no effect", returns(`{"callId":"c1","ok":"no","success":null}`), status(agentevents.ToolStatusOK)},
		{"a tool runner completes an agent's call", []said{{"a", "c", "", "tool.call.started", `{"callId":"c1"}`}, {"tool-runner", "x", "c", "tool.call.completed", `{"callId":"c1","output":1}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				status(agentevents.ToolStatusOK)(t, s)
				require.Equal(t, []string{"a"}, agentsOf(s))
			}},
		{"a tool runner completes the call of its span", []said{{"a", "c", "", "tool.call.started", `{}`}, {"tool-runner", "c", "", "tool.call.completed", `{"output":1}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Equal(t, []string{"a"}, agentsOf(s)) }},
		{"a tool runner completes a call of the orchestrator", []said{{"orchestrator", "c", "", "tool.call.started", `{"callId":"c1"}`}, {"tool-runner", "x", "", "tool.call.completed", `{"callId":"c1"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Empty(t, s.Agents)
				require.Empty(t, s.OpenCalls)
			}},
		{"two agents use one call id", []said{{"a", "c", "", "tool.call.started", `{"callId":"1"}`}, {"b", "d", "", "tool.call.started", `{"callId":"1"}`},
			{"a", "c", "", "tool.call.completed", `{"callId":"1"}`}, {"b", "d", "", "tool.call.completed", `{"callId":"1"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, 1, s.Agents["a"].ToolCalls)
				require.Equal(t, "a", s.ClosedCalls[0].AgentID)
				require.Empty(t, s.OpenCalls)
			}},

		{"a user grants the only open approval", []said{{"a", "s", "", "approval.requested", `{"action":"merge"}`}, {"user", "u", "", "approval.granted", `{}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.True(t, s.Approvals[0].Granted)
				require.Equal(t, agentevents.Some(time.Second), agentevents.Some(s.Approvals[0].AnsweredAt.Sub(s.Approvals[0].RequestedAt)), "the latency")
			}},
		{"a user grants the approval of the span around", []said{{"a", "s1", "", "approval.requested", `{}`}, {"a", "s2", "", "approval.requested", `{}`}, {"user", "u", "s1", "approval.granted", `{}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.True(t, s.Approvals[0].Granted)
				require.False(t, s.Approvals[1].Granted)
			}},
		{"the receiver accepts a handoff without a word", []said{{"a", "s", "", "handoff.requested", `{"handoffId":"h","to":"b","contextDigest":"sha"}`}, {"b", "x", "", "handoff.accepted", `{}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.False(t, s.Handoffs[0].Open)
				require.Equal(t, "sha", s.Handoffs[0].ContextDigest)
			}},

		{"two handoffs are accepted, the last one first", []said{{"a", "s", "", "handoff.requested", `{"handoffId":"h","to":"b"}`}, {"a", "s", "", "handoff.requested", `{"handoffId":"i","to":"b"}`},
			{"b", "x", "", "handoff.accepted", `{}`}, {"b", "y", "", "handoff.accepted", `{}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.False(t, s.Handoffs[0].Open || s.Handoffs[1].Open)
			}},
		{"a loop round is an event of the log only", []said{{"a", "s", "", "loop.round.completed", `{"round":1,"score":0.5}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Empty(t, s.Unknown) }},
		{"numbers with more digits than a float64", []said{{"a", "s", "", "budget.exceeded", `{"kind":"tokens","limit":9007199254740993,"actual":0.12345678901234567890}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Len(t, s.Budgets, 1) }},
		{"a time in a payload may be a number", []said{{"user", "s", "", "workflow.approved", `{"workflowId":"w","approvedAt":1779094801200,"approvedBy":"ann"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) {
				require.Equal(t, at, s.Workflows[0].ApprovedAt)
			}},

		{"agents and claims may occur without their workflow", []said{
			{"script", "ph", "", "workflow.phase.started", begin},
			{"script", "s1", "ph", "agent.spawned", spawn("one")},
			{"script", "s1", "", "agent.completed", `{"agentId":"a1","tokens":1,"durationMs":5,"resultSchema":{}}`},
			{"v", "s", "", "claim.verified", `{"findingId":"f","verifierAgentId":"v","verdict":"accepted","evidence":[1]}`},
		}, func(t *testing.T, s *agentevents.RunSnapshot) {
			require.Equal(t, "p", s.Agents["a1"].Phase, "the key fields of these types have no workflowId")
		}},
		{"calls in a phase need no phase", []said{{"script", "ph", "", "workflow.phase.started", begin}, {"a", "c", "", "tool.call.started", `{"workflowId":"w"}`}, {"a", "s", "", "handoff.requested", `{"to":"b","workflowId":"w"}`}},
			func(t *testing.T, s *agentevents.RunSnapshot) { require.Len(t, s.OpenCalls, 1) }},
		{"the messages of a node can be rebuilt", append(fanout("orchestrator"),
			said{"v", "s", "", "claim.verified", `{"findingId":"f","verifierAgentId":"v","verdict":"rejected","evidence":{"line":3}}`},
			said{"v", "s", "", "verifier.issue.found", `{"issue":"bug","severity":"low","evidence":[1],"suggestedFix":"x"}`},
			said{"orchestrator", "s", "", "agent.task.assigned", `{"goal":"g","assignedAgent":"v","context":"c","constraints":["k"],"expected_output":"e"}`},
		), func(t *testing.T, s *agentevents.RunSnapshot) {
			a := s.Agents["a1"]
			require.Equal(t, []string{"s1", "ph", `{"type":"string"}`, "p"}, []string{a.SpanID, a.ParentSpanID, string(a.ResultSchema), a.Phase})
			require.Equal(t, "phase(p)", s.Workflows[0].Script)
			require.Equal(t, agentevents.JSON(`{"line":3}`), s.Claims[0].Evidence)
			require.Equal(t, []string{"[1]", "x"}, []string{string(s.Issues[0].Evidence), s.Issues[0].SuggestedFix})
			require.Equal(t, []string{"c", `["k"]`, "e"}, []string{s.Tasks[0].Context, string(s.Tasks[0].Constraints), s.Tasks[0].ExpectedOutput})
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			lines := rowLog(c.log)
			events := decode(t, Options{Strict: true}, lines...)
			s := fold(t, events)
			require.Empty(t, s.Violations)
			c.check(t, s)
			for i := range events {
				events[i] = through(t, events[i])
			}
			out, losses := encode(t, events...)
			require.Empty(t, losses)
			require.Equal(t, strings.Join(lines, "\n"), out)
		})
	}
}

// through returns an event that was written in the native format and read again.
func through(t *testing.T, ev agentevents.Event) agentevents.Event {
	t.Helper()
	events, err := agentevents.NewDecoder().Decode(nil, []byte(native(t, ev)))
	require.NoError(t, err)
	return events[0]
}

// A line that is delivered again has no event, whatever came between, within the window.
func TestRepeatedLines(t *testing.T) {
	line := func(id string) string {
		return strings.Replace(docLine("budget.exceeded", `{"kind":"tokens","limit":1,"actual":2}`), `"id":"e1",`, id, 1)
	}
	first := line(`"id":"a",`)
	for _, strict := range []bool{false, true} {
		d := NewDecoder(Options{Strict: strict})
		read := func(line string) (n uint64) {
			events, err := d.Decode(nil, []byte(line))
			require.NoError(t, err)
			if len(events) == 0 {
				return 0
			}
			return events[0].Sequence + 1
		}
		require.Equal(t, uint64(1), read(first))
		require.Zero(t, read(first))
		for i := range Window - 1 {
			require.Equal(t, uint64(i+2), read(line(`"id":"`+strconv.Itoa(i)+`",`)), "it has no number")
		}
		require.Zero(t, read(first), "the window ends here")
		require.Equal(t, uint64(Window+1), read(line(`"id":"x",`)))
		require.Equal(t, uint64(Window+2), read(first))
		require.Equal(t, uint64(Window+3), read(strings.Replace(first, `"actual":2`, `"actual":3`, 1)), "another line with this id")
		for i := range 2 * Window {
			read(line(`"id":"again-` + strconv.Itoa(i) + `",`))
		}
		require.Zero(t, read(line(`"id":"again-`+strconv.Itoa(Window)+`",`)))
		require.NotZero(t, read(first), "it goes on")
		require.Len(t, d.past.seen, Window)
	}
	d := NewDecoder(Options{})
	for range 2 {
		for _, bare := range []string{line(``), line(`"id":"",`)} {
			events, err := d.Decode(nil, []byte(bare))
			require.NoError(t, err)
			require.Len(t, events, 1, "lines without an id are told apart by their places")
		}
	}
}

// Times are RFC 3339, with any number of fraction digits.
func TestFractions(t *testing.T) {
	for text, legal := range map[string]bool{"2026-05-18T09:00:01.200000000999Z": true, "2026-05-18T09:00:01.2000000009+00:00": true, "2026-05-18T09:00:01.x2Z": false, "yesterday": false} {
		line := strings.Replace(docLine("session.started", `{}`), "2026-05-18T09:00:01.200Z", text, 1)
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
		require.Equal(t, legal, err == nil, text)
		ev := decode(t, Options{}, line)[0]
		if legal {
			require.Equal(t, at, ev.Time)
		}
		out, _ := encode(t, through(t, ev))
		require.Equal(t, line, out)
	}
}
