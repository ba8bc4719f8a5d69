package multiagent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Extra members of a line with many objects come back like the members of a line with few.
func TestManyKeptMembers(t *testing.T) {
	const each = `:{"inputTokens":1,"x":[1.50],"a/b":{},"costUsd":"many"}`
	for _, n := range []int{1, 100} {
		var models, bare []string
		for i := range n {
			models = append(models, fmt.Sprintf(`"m/%03d"`, i)+each)
			bare = append(bare, fmt.Sprintf(`"n%03d":{}`, i))
		}
		line := docLine("agent.completed", `{"agentId":"planner","modelUsage":{`+strings.Join(append(models, bare...), ",")+`},"y":1}`)
		ev := decode(t, Options{}, line)[0]
		require.Len(t, ev.Payload.(*agentevents.AgentEnded).ModelUsage, 2*n)
		e := NewEncoder(EncoderOptions{})
		out, err := e.Append(nil, ev)
		require.NoError(t, err)
		require.Equal(t, sorted(t, line), sorted(t, strings.TrimSuffix(string(out), "\n")))
		require.Empty(t, e.Losses())
	}
}

// A payload may be any JSON, and comes back unchanged.
func TestAnyPayload(t *testing.T) {
	derived := dialect.DerivedID("e1", 0, 0)
	for _, c := range []struct {
		typ, payload string
		check        func(t *testing.T, ev agentevents.Event)
	}{
		{"session.started", `{}`, nil},
		{"session.started", `null`, nil},
		{"session.started", `"go"`, nil},
		{"session.started", `[1,{"a":2}]`, nil},
		{"session.started", `1e400`, nil},
		{"session.started", `{"goal":""}`, nil},
		{"session.started", `{"goal":null}`, nil},
		{"session.started", `{"goal":{"text":"a"},"x":1}`, nil},
		{"session.started", `{"goal":"a","agentId":"planner","z":[1.50]}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, "planner", ev.AgentID)
			require.Empty(t, ev.Actor, "the agent starts the session itself")
		}},
		{"session.started", `{"agentId":null,"a/b":{"~":1}}`, nil},
		{"session.started", `{"phase":"planning","step":-1}`, func(t *testing.T, ev agentevents.Event) {
			require.Empty(t, ev.Phase)
			require.False(t, ev.Step.OK)
		}},
		{"session.started", `{"step":"plan","marks":["late","odd"],"nodeId":7}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.MarkLate, ev.Marks)
		}},
		{"session.started", `{"marks":[]}`, nil},
		{"session.started", `{"marks":["replayed","late"]}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.MarkLate|agentevents.MarkReplayed, ev.Marks)
		}},
		{"session.started", `{"marks":["late","late"]}`, nil},
		{"session.started", `{"marks":"late"}`, nil},
		{"workflow.node.enter", `{}`, func(t *testing.T, ev agentevents.Event) { require.Equal(t, derived, ev.NodeID) }},
		{"workflow.node.enter", `"plan"`, nil},
		{"workflow.node.enter", `{"node":"plan","agent":"coder"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, "plan", ev.NodeID)
			require.Equal(t, agentevents.Some(agentevents.AgentRef{AgentID: "coder"}), ev.Payload.(*agentevents.NodeStarted).Agent)
		}},
		{"workflow.node.enter", `{"agent":{"x":1,"agentId":"a","memoryRef":5}}`, nil},
		{"agent.message.created", `{}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.ConversationMessage{MessageID: derived, From: "planner", Content: "null", TS: at.UnixMilli()}, ev.Payload.(*agentevents.MessageCreated).Message)
		}},
		{"agent.message.created", `{"role":"agent","text":"hi"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.JSON(`"hi"`), ev.Payload.(*agentevents.MessageCreated).Message.Content)
		}},
		{"agent.message.created", `{"message":"hi"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.JSON(`"hi"`), ev.Payload.(*agentevents.MessageCreated).Message.Content)
		}},
		{"agent.message.created", `{"message":null,"messageId":"m","from":"a","ts":1}`, nil},
		{"agent.message.created", `{"message":null}`, nil},
		{"agent.message.created", `{"message":{"id":"m1","content":{"a":1},"message":2,"x":3},"y":4}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, "m1", ev.Payload.(*agentevents.MessageCreated).Message.MessageID)
		}},
		{"agent.message.created", `{"messageId":"m1","from":"user","content":"x","ts":"yesterday"}`, nil},
		{"agent.message.created", `{"messageId":"m1","from":"user","content":"x","ts":0}`, nil},
		{"agent.message.created", `{"message":{"content":"in"},"content":"out"}`, nil},
		{"agent.message.created", `{"from":"a","content":"x","ts":1779094801200}`, nil},
		{"agent.message.created", `[1]`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.JSON("null"), ev.Payload.(*agentevents.MessageCreated).Message.Content)
		}},
		{"agent.task.assigned", `{"task":"a","expected_output":"b","context":{"c":1}}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.TaskAssigned{Goal: "a", ExpectedOutput: "b"}, ev.Payload)
		}},
		{"tool.call.started", `{"tool":"grep","input":{"q":"x"},"id":"c9"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.ToolCalled{CallID: "c9", ToolID: "grep", Arguments: `{"q":"x"}`}, ev.Payload)
		}},
		{"tool.call.started", `{"tool":"grep","toolName":"Grep"}`, nil},
		{"tool.call.started", `{"callId":"c","toolId":"x","agentId":"planner"}`, nil},
		{"tool.call.completed", `{"callId":"c","toolId":"x","status":"ok","agentId":"planner"}`, nil},
		{"tool.call.completed", `{"toolId":"x","status":"ok","oneEvent":true}`, nil},
		{"tool.call.completed", `{"callId":"c","toolId":"x","status":"ok","durationMs":1e-9}`, nil},
		{"tool.call.started", `[]`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.ToolCalled{CallID: derived, ToolID: "unknown"}, ev.Payload)
		}},
		{"tool.call.completed", `{"tool":"grep","output":[1],"durationMs":"long"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.ToolReturned{CallID: derived, ToolID: "grep", Status: agentevents.ToolStatusOK, Result: `[1]`, OneEvent: true}, ev.Payload)
		}},
		{"tool.call.completed", `{"status":"success","error":"boom"}`, func(t *testing.T, ev agentevents.Event) {
			p := ev.Payload.(*agentevents.ToolReturned)
			require.Equal(t, agentevents.ToolStatusOK, p.Status)
			require.Equal(t, "boom", p.Error.V.Message)
		}},
		{"tool.call.completed", `{"callId":"c1","toolId":"x","error":{"message":7,"why":{"a":1},"code":"e"}}`, nil},
		{"tool.call.completed", `{"error":{},"status":5}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, agentevents.ToolStatusError, ev.Payload.(*agentevents.ToolReturned).Status)
		}},
		{"handoff.requested", `{"to":"coder","context_digest":"d"}`, func(t *testing.T, ev agentevents.Event) {
			p := ev.Payload.(*agentevents.HandoffRequested)
			require.Equal(t, "planner", p.From.AgentID)
			require.Equal(t, "coder", p.To.AgentID)
			require.Equal(t, "d", p.ContextDigest)
		}},
		{"handoff.requested", `{"from":"","to":{}}`, nil},
		{"handoff.requested", `{"to":{"agentSharing":"shared","x":1},"from":{"agentId":""}}`, nil},
		{"handoff.requested", `{"toAgent":"","fromAgent":{}}`, nil},
		{"handoff.accepted", `{"from":"planner"}`, nil},
		{"blackboard.item.created", `{"id":"i","type":"fact","content":null,"ttl":5}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.BlackboardItemCreated{ItemID: "i", ItemType: "fact", Content: "null"}, ev.Payload)
		}},
		{"blackboard.item.created", `{}`, nil},
		{"blackboard.item.created", `{"id":"i","type":"fact","content":1,"confidence":0.12345678901234567890}`, nil},
		{"approval.requested", `{"action":"deploy","scope":["a"],"diff":"x"}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.ApprovalRequested{ApprovalID: derived, Action: "deploy"}, ev.Payload)
		}},
		{"approval.granted", `{"granted":true}`, nil},
		{"verifier.issue.found", `{"issue":"x","suggested_fix":"y","severity":3}`, nil},
		{"loop.round.completed", `{}`, nil},
		{"loop.round.completed", `{"round":1.5,"score":"good"}`, nil},
		{"loop.round.completed", `{"round":0}`, nil},
		{"loop.round.completed", `"x"`, nil},
		{"budget.exceeded", `{"kind":"time","limit":0,"actual":100000000000000000000}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.BudgetExceeded{Budget: "time", Actual: 1e20}, ev.Payload)
		}},
		{"budget.exceeded", `{}`, nil},
		{"session.completed", `{"status":{"a":1},"result":[1.50]}`, nil},
		{"workflow.created", `{"workflowId":"w1","phases":[{"name":"a"}],"script":1}`, nil},
		{"workflow.created", `{"workflowId":"w1","phases":[]}`, nil},
		{"workflow.created", `{}`, nil},
		{"workflow.approved", `{"workflowId":"w1","approvedAt":"today"}`, nil},
		{"workflow.approved", `{"workflowId":"w1","approvedAt":true}`, func(t *testing.T, ev agentevents.Event) {
			require.Zero(t, ev.Payload.(*agentevents.WorkflowApproved).ApprovedAt)
		}},
		{"agent.spawned", `{"phase":"p"}`, func(t *testing.T, ev agentevents.Event) { require.Equal(t, "p", ev.Phase) }},
		{"agent.spawned", `{"agentTask":"x","parentSpanId":"p"}`, func(t *testing.T, ev agentevents.Event) { require.Equal(t, "p", ev.ParentSpanID) }},
		{"agent.spawned", `{"task":"x","step":3,"agent":{"agentSharing":"shared:g"}}`, nil},
		{"agent.completed", `{}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, "planner", ev.AgentID)
			require.False(t, ev.Payload.(*agentevents.AgentEnded).Usage.OK)
		}},
		{"agent.completed", `{"agentId":"other","tokens":0}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, "other", ev.AgentID)
			require.Equal(t, "planner", ev.Actor)
		}},
		{"agent.completed", `{"agentId":"planner","tokens":5,"usage":{"inputTokens":2,"outputTokens":3}}`, nil},
		{"agent.completed", `{"agentId":"planner","tokens":6,"usage":{"inputTokens":2,"outputTokens":3}}`, nil},
		{"agent.completed", `{"agentId":"planner","usage":{"outputTokens":3,"x":1,"totalTokens":"many"}}`, nil},
		{"agent.completed", `{"agentId":"planner","tokens":5,"usage":{"totalTokens":5,"y":2}}`, nil},
		{"agent.completed", `{"agentId":"planner","modelUsage":{"b/2":{"inputTokens":1,"outputTokens":2,"x":0},"a~1":{}},"totals":{"steps":1}}`, func(t *testing.T, ev agentevents.Event) {
			require.Len(t, ev.Payload.(*agentevents.AgentEnded).ModelUsage, 2)
		}},
		{"agent.completed", `{"modelUsage":{"a":1},"agentId":"planner"}`, nil},
		{"agent.completed", `{"modelUsage":{},"agentId":"planner"}`, nil},
		{"claim.verified", `{"verdict":"accepted"}`, nil},
		{"workflow.finalized", `{"workflowId":"w1","totalTokens":1e3,"durationMs":null}`, nil},
		{"plan.created", `{"a":1}`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.Unknown{Type: "plan.created", Raw: `{"a":1}`}, ev.Payload)
		}},
		{"run.started", `"x"`, func(t *testing.T, ev agentevents.Event) {
			require.Equal(t, &agentevents.Unknown{Type: "multiagent:run.started", Raw: `"x"`}, ev.Payload)
		}},
		{"multiagent:x", `0`, nil},
		{"", `0`, nil},
	} {
		t.Run(c.typ+c.payload, func(t *testing.T) {
			line := docLine(c.typ, c.payload)
			ev := decode(t, Options{}, line)[0]
			require.Equal(t, at, ev.Time)
			if c.check != nil {
				c.check(t, ev)
			}
			if c.typ == "workflow.created" && c.payload == `{}` {
				return // the event can be read but not written: the workflow has no id
			}
			out, losses := encode(t, ev)
			require.Empty(t, losses)
			require.Equal(t, sorted(t, line), sorted(t, out))
			again := decode(t, Options{}, out)[0]
			require.Equal(t, sorted(t, native(t, ev)), sorted(t, native(t, again)))

			// The event survives the native format.
			var through agentevents.Event
			require.NoError(t, through.UnmarshalJSON([]byte(native(t, ev))))
			out2, losses := encode(t, through)
			require.Equal(t, out, out2)
			require.Empty(t, losses)
		})
	}
}

// sorted returns the line with the members of its objects sorted by name.
func sorted(t *testing.T, line string) string {
	t.Helper()
	require.True(t, strings.HasPrefix(line, "{"))
	return sortedJSON(line)
}

func TestEnvelope(t *testing.T) {
	for name, line := range map[string]string{
		"two parents":     strings.Replace(docLine("agent.spawned", `{"agentTask":"x","parentSpanId":"p"}`), `"sessionId"`, `"parentSpanId":"q","sessionId"`, 1),
		"no payload":      strings.Replace(docLine("odd", `{}`), `"payload":{},`, "", 1),
		"unknown members": `{"x":1,"id":"e1","traceId":"t","spanId":"s","sessionId":"c","runId":"r1","actor":"a","type":"session.started","payload":{},"timestamp":"2026-05-18T09:00:01.200Z","schemaVersion":"2.1","/payload/x":[1.50],"":0,"a~b":null}`,
		"only a type":     `{"type":"session.started"}`,
		"slim, with ts":   `{"id":"e1","runId":"r1","sessionId":"c","type":"session.started","actor":"a","payload":{},"ts":5,"schemaVersion":"1.0"}`,
		"empty texts":     `{"id":"","traceId":"","spanId":"","parentSpanId":"","sessionId":"","runId":"r1","taskId":"","actor":"","type":"session.started","payload":{},"timestamp":"","schemaVersion":""}`,
		"another time":    `{"id":"e1","traceId":"t","spanId":"s","sessionId":"c","runId":"r1","actor":"a","type":"session.started","payload":{},"timestamp":"18 May","schemaVersion":"1.0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			ev := decode(t, Options{}, line)[0]
			require.NotEmpty(t, ev.ID)
			require.Equal(t, agentevents.SchemaVersion, ev.SchemaVersion)
			out, err := NewEncoder(EncoderOptions{}).Append(nil, ev)
			if ev.RunID == "" {
				var rule *agentevents.RuleError
				require.ErrorAs(t, err, &rule)
				require.Equal(t, RuleEnvelope, rule.Rule)
				return
			}
			require.NoError(t, err)
			again := decode(t, Options{}, string(out))[0]
			require.Equal(t, ev.ID, again.ID)
			require.Equal(t, ev.Time, again.Time)
			if name == "two parents" {
				require.Equal(t, "q", ev.ParentSpanID)
			}
			if name != "only a type" && name != "slim, with ts" && name != "empty texts" {
				require.Equal(t, sorted(t, line), sorted(t, strings.TrimSuffix(string(out), "\n")))
			}
		})
	}
	require.Equal(t, decode(t, Options{}, `{"type":"x"}`), decode(t, Options{}, `{"type":"x"}`), "reading twice gives the same")
}

func TestOpenCalls(t *testing.T) {
	n := 0
	line := func(span, typ, payload string) string {
		n++
		return strings.NewReplacer(`"e1"`, fmt.Sprintf(`"e%d"`, n), `00f067aa0ba902b7`, span).Replace(docLine(typ, payload))
	}
	lines := []string{
		line("s1", "tool.call.started", `{"tool":"a"}`),
		line("s1", "tool.call.started", `{"tool":"b"}`),
		line("s2", "tool.call.started", `{"callId":"c3","tool":"a"}`),
		line("s1", "tool.call.completed", `{"tool":"a","output":1}`), // the first call
		line("s1", "tool.call.completed", `{}`),                      // the second call
		line("s1", "tool.call.completed", `{}`),                      // no open call
		line("s2", "tool.call.completed", `"done"`),                  // the third call
		line("s3", "approval.requested", `{}`),
		line("s3", "approval.granted", `{}`),
		line("s3", "approval.granted", `{}`),
	}
	events := decode(t, Options{Strict: true}, lines...)
	id := func(i int) string { return dialect.DerivedID(fmt.Sprintf("e%d", i), 0, 0) }
	returned := func(i int) *agentevents.ToolReturned { return events[i].Payload.(*agentevents.ToolReturned) }
	require.Equal(t, &agentevents.ToolReturned{CallID: id(1), ToolID: "a", Status: agentevents.ToolStatusOK, Result: "1"}, returned(3))
	require.Equal(t, &agentevents.ToolReturned{CallID: id(2), ToolID: "b", Status: agentevents.ToolStatusOK}, returned(4))
	require.Equal(t, &agentevents.ToolReturned{CallID: id(6), ToolID: "unknown", Status: agentevents.ToolStatusOK, OneEvent: true}, returned(5))
	require.Equal(t, &agentevents.ToolReturned{CallID: "c3", ToolID: "a", Status: agentevents.ToolStatusOK}, returned(6))
	require.Equal(t, id(8), events[8].Payload.(*agentevents.ApprovalGranted).ApprovalID)
	require.Equal(t, id(10), events[9].Payload.(*agentevents.ApprovalGranted).ApprovalID)

	out, losses := encode(t, events...)
	require.Empty(t, losses)
	require.Equal(t, strings.Join(lines, "\n"), out)

	// A return without its call has all facts.
	out, _ = encode(t, events[4])
	require.Contains(t, out, `"payload":{"callId":"`+id(2)+`","toolId":"b"}`)

	// The list of open things has no room for those that are closed.
	d := NewDecoder(Options{})
	read := func(span, typ, payload string) agentevents.Event {
		events, err := d.Decode(nil, []byte(line(span, typ, payload)))
		require.NoError(t, err)
		return events[0]
	}
	first := read("s1", "tool.call.started", `{"callId":"first"}`)
	for range 2 << 10 {
		read("s2", "tool.call.started", `{}`)
		read("s2", "tool.call.completed", `{}`)
	}
	require.Equal(t, first.Payload.(*agentevents.ToolCalled).CallID, read("s1", "tool.call.completed", `{}`).Payload.(*agentevents.ToolReturned).CallID)
}

// An answer that does not name its subject may leave it open.
func TestAnswersToNothing(t *testing.T) {
	log := func(lines ...string) (list []agentevents.Event) {
		for i, line := range lines {
			lines[i] = strings.Replace(line, `"e1"`, fmt.Sprintf(`"e%d"`, i), 1)
		}
		return decode(t, Options{}, lines...)
	}
	bare := func(typ string) string {
		return strings.Replace(docLine(typ, `{}`), `"spanId":"`+span+`",`, "", 1)
	}
	elsewhere := func(line string) string { return strings.Replace(line, span, "x", 1) }
	asks, grants := docLine("approval.requested", `{}`), docLine("approval.granted", `{}`)
	granted := func(events []agentevents.Event) string {
		return events[len(events)-1].Payload.(*agentevents.ApprovalGranted).ApprovalID
	}
	require.True(t, log(bare("tool.call.started"), bare("tool.call.completed"))[1].Payload.(*agentevents.ToolReturned).OneEvent, "no span")
	require.Equal(t, dialect.DerivedID("e2", 0, 0), granted(log(asks, asks, elsewhere(grants))), "two are open")
	require.Equal(t, dialect.DerivedID("e2", 0, 0), granted(log(bare("approval.requested"), bare("approval.requested"), bare("approval.granted"))), "no span")
	require.Equal(t, dialect.DerivedID("e1", 0, 0), granted(log(strings.Replace(asks, `"r1"`, `"r2"`, 1), elsewhere(grants))), "another run")
	require.Equal(t, dialect.DerivedID("e1", 0, 0), granted(log(docLine("tool.call.started", `{}`), asks, elsewhere(grants))), "a call is open, too")

	ends := docLineBy("x", "agent.completed", `{}`)
	spawned := log(docLine("agent.spawned", `{}`), elsewhere(docLine("agent.spawned", `{}`)), ends, ends+" ")
	require.Empty(t, spawned[2].AgentID, "the span stands for the agent")
	require.Equal(t, agentevents.JSON(`{"schemaVersion":"1.0"}`), spawned[2].Extra(string(Name)), "no agent is made up")
	require.Equal(t, "x", spawned[3].AgentID, "no agent of the span is open")
	ran := log(docLineBy("system", "tool.call.started", `{"callId":"c","toolId":"x"}`), docLineBy("runner", "tool.call.completed", `{"callId":"c","toolId":"x","status":"ok"}`))[1]
	require.Equal(t, agentevents.JSON(`{"schemaVersion":"1.0"}`), ran.Extra(string(Name)), "no agent is made up")
	require.Equal(t, "b", log(docLine("tool.call.started", `{"callId":"c"}`), docLineBy("runner", "tool.call.completed", `{"callId":"c","agentId":"b"}`))[1].AgentID, "the payload names the agent")
	accepted := log(docLine("handoff.requested", `{"handoffId":"h","to":"b"}`), docLineBy("c", "handoff.accepted", `{"to":"b"}`))
	require.Equal(t, "h", accepted[1].Payload.(*agentevents.HandoffAccepted).HandoffID)
}

func TestChangedEvents(t *testing.T) {
	ev := decode(t, Options{}, docLine("tool.call.started", `{"tool":"grep","x":1}`))[0]
	ev.Payload = &agentevents.ToolCalled{CallID: "c2", ToolID: "sed", Arguments: "{\n}"}
	ev.TaskID = ""
	out, losses := encode(t, ev)
	require.Contains(t, out, `"payload":{"callId":"c2","tool":"sed","arguments":{},"x":1}`)
	require.NotContains(t, out, "taskId")
	require.Empty(t, losses)

	ev = decode(t, Options{}, docLine("session.started", `"go"`))[0]
	ev.Payload = &agentevents.SessionStarted{Goal: "stay"}
	out, losses = encode(t, ev)
	require.Contains(t, out, `"payload":{"goal":"stay"}`)
	require.Equal(t, "/multiagent/~1payload", losses[0].Pointer)

	// Values that readers would not make up any more are written.
	ev = decode(t, Options{}, docLine("handoff.requested", `{"to":"b"}`))[0]
	ev.Payload.(*agentevents.HandoffRequested).From.MemoryRef = "m"
	out, _ = encode(t, ev)
	require.Contains(t, out, `"from":{"agentId":"planner","memoryRef":"m"}`)
	ev = decode(t, Options{}, docLine("tool.call.completed", `{}`))[0]
	ev.Payload.(*agentevents.ToolReturned).OneEvent = false
	out, _ = encode(t, ev)
	require.Contains(t, out, `"callId":`)
	out, _ = encode(t, event(&agentevents.WorkflowCreated{}, inFlow))
	require.Contains(t, out, `"phases":[]`)

	ev = decode(t, Options{}, docLine("tool.call.completed", `{"callId":"c","toolId":"t","status":"success","error":{"message":"m","x":1}}`))[0]
	ev.Payload = &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusCancelled}
	out, losses = encode(t, ev)
	require.Contains(t, out, `"payload":{"callId":"c","toolId":"t","status":"cancelled"}`)
	require.Equal(t, "/multiagent/~1payload~1error~1x", losses[0].Pointer)
}

func TestVerbatim(t *testing.T) {
	lines := []string{
		`{ "type":"tool.call.started", "payload":{"callId":"c1", "toolId":"a", "arguments":{"b":1.50}},"actor":"\u0061", "id":"e1","traceId":"t","spanId":"s","sessionId":"c","runId":"r1","timestamp":"2026-05-18T11:00:01+02:00","schemaVersion":"1.0"}`,
		`{"type":"tool.call.completed","spanId":"s","runId":"r1","id":"e2","payload":{"status":"failure"},"timestamp":"2026-05-18T09:00:02Z"}`,
		`{"type":"odd", "payload":[ 1 ],"runId":"r1","timestamp":"2026-05-18T09:00:02Z"}`,
		`{"type":"agent.message.created","payload":{"text":"\u00e9","from":"user"},"runId":"r1","id":"e3","timestamp":"2026-05-18T09:00:02Z","actor":"user"}`,
	}
	log := strings.Join(lines, "\n")
	events := readVerbatim(t, log)
	out, losses := encode(t, events...)
	require.Equal(t, log, out)
	require.Empty(t, losses)

	events[0].AgentID = "b"
	out, _ = encode(t, events[0])
	require.Contains(t, out, `"actor":"b"`)
	require.NotContains(t, out, `\u0061`)
	events[3].Payload = &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", From: "user", Content: `"e"`, TS: 1}}
	out, _ = encode(t, events[3])
	require.Contains(t, out, `"payload":{"messageId":"m","from":"user","text":"e","ts":1}`)
}

// An event has a fact that its line lacked. The encoder writes the fact, even if it would make up
// the same value.
func TestVerbatimIsNotStale(t *testing.T) {
	whole := docLine("session.started", `{}`)
	for name, c := range map[string]struct {
		cut    string // removed from the line
		change func(ev *agentevents.Event)
	}{
		"id":      {`"id":"e1",`, func(ev *agentevents.Event) { ev.ID = "e1" }},
		"session": {`"sessionId":"s1",`, func(ev *agentevents.Event) { ev.SessionID = "r1" }},
		"actor":   {`"actor":"planner",`, func(ev *agentevents.Event) { ev.Actor = "system" }},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.Replace(whole, c.cut, "", 1)
			require.NotEqual(t, whole, line)
			ev := readVerbatim(t, line)[0]
			out, losses := encode(t, ev)
			require.Equal(t, line, out, "unchanged")
			require.Empty(t, losses)
			c.change(&ev)
			out, _ = encode(t, ev)
			back := decode(t, Options{}, out)[0]
			require.Equal(t, []string{ev.ID, ev.SessionID, ev.Actor}, []string{back.ID, back.SessionID, back.Actor}, out)
			out, losses = encode(t, back)
			require.NotEqual(t, line, out)
			require.Empty(t, losses)
		})
	}
	// A fact that is removed from the event is listed as made up.
	ev := readVerbatim(t, strings.Replace(whole, `"s1",`, `"r1" ,`, 1))[0]
	ev.SessionID = ""
	_, losses := encode(t, ev)
	require.Len(t, losses, 1)
	require.Equal(t, "/sessionId", losses[0].Pointer)

	// A line without an id gets one at another place of the log.
	events := readVerbatim(t, strings.Repeat(strings.Replace(whole, `"id":"e1",`, "", 1)+"\n", 2))
	out, _ := encode(t, events[1])
	require.Equal(t, events[1].ID, decode(t, Options{}, out)[0].ID)
}

func readVerbatim(t *testing.T, log string) (events []agentevents.Event) {
	t.Helper()
	for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

// The encoder writes the values that readers would otherwise make up from a made-up actor or span.
func TestMadeUpFacts(t *testing.T) {
	line := func(n int, typ string) string {
		return fmt.Sprintf(`{"id":"e%d","runId":"r1","type":"%s","payload":{},"timestamp":"2026-05-18T09:00:01.200Z"}`, n, typ)
	}
	events := decode(t, Options{}, line(1, "agent.message.created"), line(2, "handoff.requested"), line(3, "approval.requested"), line(4, "approval.granted"),
		line(5, "tool.call.started"), line(6, "tool.call.completed"))
	out, _ := encode(t, events...)
	for i, back := range decode(t, Options{}, strings.Split(out, "\n")...) {
		require.Equal(t, events[i].Payload, back.Payload)
	}

	// A payload that is not an object has no place for these members, and stays.
	for payload, want := range map[string]string{`"hi"`: "altered /payload/message/from", `[]`: "made up /spanId"} {
		typ := "agent.message.created"
		if payload == `[]` {
			typ = "tool.call.completed"
		}
		whole := strings.Replace(line(7, typ), `{}`, payload, 1)
		written, losses := encode(t, decode(t, Options{}, whole)...)
		require.Contains(t, written, `"payload":`+payload)
		require.Contains(t, told(losses), want)
	}

	// Members that do not depend on actor and span are still left out.
	require.Contains(t, out, `"type":"tool.call.started","payload":{}`)
	require.Contains(t, out, `"type":"approval.requested","payload":{}`)
}

func TestMadeUp(t *testing.T) {
	agent := func(ev agentevents.Event) agentevents.Event {
		ev.ID, ev.Time, ev.RunID, ev.AgentID, ev.SchemaVersion = "e1", at, "r1", "coder", agentevents.SchemaVersion
		return ev
	}
	out, losses := encode(t,
		agent(agentevents.Event{Payload: &agentevents.AgentStarted{}, ParentAgentID: "planner"}),
		agent(agentevents.Event{Sequence: 1, Payload: &agentevents.ToolCalled{CallID: "c1", ToolID: "x"}}),
		agent(agentevents.Event{Sequence: 2, Payload: &agentevents.ToolReturned{CallID: "c1", ToolID: "x", Status: agentevents.ToolStatusOK}}),
		agent(agentevents.Event{Sequence: 4, Payload: &agentevents.AgentEnded{}}),
		agentevents.Event{ID: "e9", RunID: "r1", Sequence: 5, Time: at, SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.SessionCompleted{}},
	)
	events := decode(t, Options{Strict: true}, out)
	require.Len(t, events, 5)
	require.Contains(t, out, `"payload":{"parentSpanId":"`+events[0].ParentSpanID+`"`)
	for _, ev := range events {
		require.Regexp(t, `^[0-9a-f]{32}$`, ev.TraceID)
		require.Regexp(t, `^[0-9a-f]{16}$`, ev.SpanID)
		require.Equal(t, events[0].TraceID, ev.TraceID)
		require.Equal(t, "r1", ev.SessionID)
	}
	require.Equal(t, events[0].SpanID, events[3].SpanID, "one agent, one span")
	require.Equal(t, "45a45dee135c6f0b", events[0].SpanID, "it stays the same in all versions")
	require.Equal(t, events[1].SpanID, events[2].SpanID, "one call, one span")
	require.Equal(t, events[0].SpanID, events[1].ParentSpanID)
	require.NotEqual(t, events[0].SpanID, events[1].SpanID)
	require.NotEmpty(t, events[0].ParentSpanID)
	require.Equal(t, "planner", events[0].ParentAgentID)
	require.Equal(t, "system", events[4].Actor)

	counts := map[string]int{}
	for _, l := range losses {
		counts[l.What.String()+" "+l.Pointer] = l.Count
	}
	require.Equal(t, map[string]int{
		"made up /traceId": 5, "made up /spanId": 5, "made up /parentSpanId": 3, "made up /sessionId": 5, "made up /actor": 1,
		"made up /multiagent/schemaVersion": 5, "dropped /sequence": 2,
	}, counts)
}

func TestStrict(t *testing.T) {
	good := docLine("session.started", `{}`)
	cut := func(member string) string {
		i := strings.Index(good, `"`+member+`":`)
		j := i + strings.IndexAny(good[i:], ",}")
		if member == "payload" {
			j++
		}
		return strings.Replace(good[:i]+strings.TrimPrefix(good[j:], ","), ",}", "}", 1)
	}
	cases := []struct {
		name, good, bad string
		rule            agentevents.Rule
		pointer         string
	}{
		{"time", good, strings.Replace(good, "2026-05-18T", "2026-05-18 ", 1), RuleTimestamp, "/timestamp"},
		{"empty id", good, strings.Replace(good, `"e1"`, `""`, 1), RuleEnvelope, "/id"},
		{"empty type", good, strings.Replace(good, "session.started", "", 1), RuleEnvelope, "/type"},
		{"empty version", good, strings.Replace(good, `"1.0"`, `""`, 1), RuleEnvelope, "/schemaVersion"},
		{"workflow", docLine("workflow.created", `{"workflowId":"w1"}`), docLine("workflow.created", `{"phases":[]}`), RuleWorkflow, "/payload/workflowId"},
		{"checkpoint", docLine("workflow.checkpoint.saved", `{"workflowId":"w1","phase":"a"}`), docLine("workflow.checkpoint.saved", `{"workflowId":"w1"}`), RulePhase, "/payload/phase"},
		{"spawned", docLine("agent.spawned", `{"workflowId":"w1","phase":"a"}`), docLine("agent.spawned", `{"workflowId":"w1"}`), RulePhase, "/payload/phase"},
		{"completed", docLine("agent.completed", `{}`), docLine("agent.completed", `{"workflowId":"w1"}`), RulePhase, "/payload/phase"},
		{"key field", docLine("workflow.finalized", `{"workflowId":"w1","totalTokens":1}`), docLine("workflow.finalized", `{"workflowId":"w1","totalTokens":"1"}`), RuleField, "/payload/totalTokens"},
		{"node", docLine("workflow.node.enter", `{}`), "", "", ""},
		{"not of the document", docLine("anything", `7`), "", "", ""},
		{"goal is not a key field", docLine("session.started", `{"goal":7}`), "", "", ""},
	}
	for _, m := range format.Head {
		if m.Need {
			cases = append(cases, struct {
				name, good, bad string
				rule            agentevents.Rule
				pointer         string
			}{m.Name, good, cut(m.Name), RuleEnvelope, "/" + m.Name})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(c.good))
			require.NoError(t, err)
			if c.bad == "" {
				return
			}
			events, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(c.bad))
			var broken *agentevents.RuleError
			require.ErrorAs(t, err, &broken, c.bad)
			require.Equal(t, c.rule, broken.Rule)
			require.Equal(t, c.pointer, broken.Pointer)
			if c.rule == RuleField {
				require.Equal(t, "found a string of 1 byte, expected an integer", broken.Detail)
			}
			require.Empty(t, events)

			events, err = NewDecoder(Options{}).Decode(nil, []byte(c.bad))
			require.NoError(t, err)
			require.Len(t, events, 1)
			if c.rule == RuleWorkflow || c.rule == RulePhase {
				out, err := NewEncoder(EncoderOptions{}).Append([]byte("x"), events[0])
				require.ErrorAs(t, err, &broken)
				require.Equal(t, c.rule, broken.Rule)
				require.Equal(t, "x", string(out))
			}
		})
	}
}

// The error of a refused line names the event and the number that it would have. The
// next event gets that number.
func TestRefusedLinesHaveANumber(t *testing.T) {
	d := NewDecoder(Options{Strict: true})
	for want := range uint64(3) {
		for _, bad := range []string{docLineBy("", "session.started", `{}`), docLine("workflow.finalized", `{"workflowId":"w1","totalTokens":"1"}`)} {
			_, err := d.Decode(nil, []byte(bad))
			var broken *agentevents.RuleError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, want, broken.Sequence)
			require.Equal(t, "r1", broken.RunID)
			require.Equal(t, "e1", broken.EventID)
		}
		good := strings.Replace(docLine("session.started", `{}`), `"e1"`, fmt.Sprintf(`"e%d"`, want+2), 1)
		events, err := d.Decode(nil, []byte(good))
		require.NoError(t, err)
		require.Equal(t, want, events[0].Sequence)
	}
}

func TestBadLines(t *testing.T) {
	good := docLine("agent.completed", `{"error":{"message":"m"},"modelUsage":{"a":{}}}`)
	for _, c := range []struct{ line, want string }{
		{good[:40], "end of text"},
		{`[]`, "expected an object"},
		{`{"id":1}`, "expected a string"},
		{`{"traceId":null}`, "expected a string"},
		{`{"actor":{}}`, "expected a string"},
		{`{"type":null}`, "expected a string"},
		{`{"schemaVersion":1}`, "expected a string"},
		{`{"id":"a","id":"b"}`, `duplicate member name "id"`},
		{`{"x":1,"x":2}`, `duplicate member name "x"`},
		{`{"x":1,"\u0078":2}`, `duplicate member name "x"`},
		{strings.Replace(good, `"error":`, `"modelUsage":`, 1), `duplicate member name "modelUsage"`},
		{docLine("agent.completed", `{"modelUsage":{"a":{},"a":{}}}`), `duplicate member name "a"`},
		{docLine("agent.completed", `{"error":{"code":"a","code":"b"}}`), `duplicate member name "code"`},
		{docLine("agent.completed", `{"error":{"code":1,"code":2}}`), `duplicate member name "code"`},
		{docLine("agent.completed", `{"step":1,"step":2}`), `duplicate member name "step"`},
		{docLine("session.started", `{"agentId":"a","agentId":"b"}`), `duplicate member name "agentId"`},
		{docLine("session.started", `{"goal":{"a":1,"a":2}}`), `duplicate member name "a"`},
		{docLine("session.started", `{"goal":"`+"\xff"+`"}`), "UTF-8"},
		{docLine("session.started", `{"goal":"\ud800"}`), "surrogate"},
		{docLine("session.started", `{"goal":01}`), ""},
		{docLine("session.started", `{"goal":1`), ""},
		{`{"payload":{"a":1,"a":2},"type":"session.started"}`, `duplicate member name "a"`},
		{`{"payload":{"goal":1x},"type":"session.started"}`, ""},
		{good + "x", "end of text"},
		{docLine("session.started", strings.Repeat("[", 2000)), "deep"},
	} {
		_, err := NewDecoder(Options{}).Decode(nil, []byte(c.line))
		require.Error(t, err, c.line)
		require.Contains(t, err.Error(), c.want)
		for _, err := range agentevents.NewReader(strings.NewReader(c.line+"\n"+good), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
			if err != nil {
				var at *agentevents.LineError
				require.ErrorAs(t, err, &at)
				require.Equal(t, 1, at.Line)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	for info := range agentevents.Kinds() {
		if format.Row(info.Kind) != nil {
			continue
		}
		out, err := e.Append(nil, event(agentevents.NewPayload(info.Kind)))
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
		require.Empty(t, out)
	}
	for _, ev := range []agentevents.Event{
		{},
		event((*agentevents.ToolCalled)(nil)),
		event(&agentevents.SessionStarted{Goal: "\xff"}, func(ev *agentevents.Event) { ev.ID = "\xff" }),
		event(&agentevents.SessionCompleted{Result: "{"}),
		event(&agentevents.Unknown{Type: "odd", Raw: "{"}),
		event(&agentevents.BudgetExceeded{Budget: "x", Limit: 1 / zeroFloat}),
		event(&agentevents.SessionStarted{}, func(ev *agentevents.Event) { ev.Time = at.AddDate(9000, 0, 0) }),
		event(&agentevents.SessionStarted{}, func(ev *agentevents.Event) { ev.RunID = "" }),
	} {
		out, err := e.Append([]byte("x"), ev)
		require.Error(t, err)
		require.False(t, errors.Is(err, dialect.ErrNoCounterpart))
		require.Equal(t, "x", string(out))
	}
}

var zeroFloat float64

// A value that its field has is not kept, however it is spelled.
func TestValuesThatFit(t *testing.T) {
	for typ, payload := range map[string]string{
		"session.started":         `{"goal":"caf\u00e9 society"}`,
		"workflow.created":        `{"workflowId":"w","phases":["caf\u00e9 society"]}`,
		"budget.exceeded":         `{"budget":"b","limit":123456789.25,"actual":1.5e+3}`,
		"blackboard.item.created": `{"itemId":"i","itemType":"t","content":1,"confidence":0.123456789}`,
		"workflow.finalized":      `{"workflowId":"w","totalTokens":1234567890,"totalAgents":1,"durationMs":123456789.5}`,
		"tool.call.completed":     `{"callId":"c","toolId":"x","status":"ok","durationMs":123456.789}`,
	} {
		require.Equal(t, agentevents.JSON(`{"schemaVersion":"1.0"}`), decode(t, Options{}, docLine(typ, payload))[0].Extra(string(Name)), typ)
	}
}

// A run of two sessions is read as two runs, which the encoder tells.
func TestSessionsOfOneRunAreTold(t *testing.T) {
	var events []agentevents.Event
	for i, session := range []string{"north", "south", "north"} {
		ev := agentevents.Event{ID: fmt.Sprint("e", i), Sequence: uint64(i), RunID: "r", Scope: agentevents.Scope{SessionID: session}, SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.SessionStarted{Goal: session}}
		events = append(events, ev)
	}
	out, losses := encode(t, events...)
	told := 0
	for _, loss := range losses {
		if loss.Pointer == "/runId" {
			require.Equal(t, dialect.Altered, loss.What)
			told += loss.Count
		}
	}
	require.Equal(t, 1, told, losses)
	var runs []string
	for _, ev := range decode(t, Options{}, strings.Split(out, "\n")...) {
		runs = append(runs, ev.RunID)
	}
	require.Equal(t, []string{"r", "r/south", "r"}, runs)
}
