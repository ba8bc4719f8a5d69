package multiagent

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
)

// at is the time of the golden lines.
var at = time.Date(2026, 5, 18, 9, 0, 1, 200e6, time.UTC)

const (
	trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	span  = "00f067aa0ba902b7"
	up    = "53995c3f42cd8ad8"
)

// docLine returns a line of the document. All lines have the same members around type
// and payload.
func docLine(typ, payload string) string { return docLineBy("planner", typ, payload) }

func docLineBy(actor, typ, payload string) string {
	return `{"id":"e1","traceId":"` + trace + `","spanId":"` + span + `","sessionId":"s1","runId":"r1","taskId":"t1","actor":"` + actor +
		`","type":"` + typ + `","payload":` + payload + `,"timestamp":"2026-05-18T09:00:01.200Z","schemaVersion":"1.0"}`
}

// event returns the event of a line of docLine with this payload.
func event(p agentevents.Payload, change ...func(*agentevents.Event)) agentevents.Event {
	ev := agentevents.Event{
		ID: "e1", Time: at, RunID: "r1", Scope: agentevents.Scope{SessionID: "s1", TaskID: "t1"}, AgentID: "planner",
		TraceID: trace, SpanID: span, SchemaVersion: agentevents.SchemaVersion, Payload: p,
	}
	for _, c := range change {
		c(&ev)
	}
	return ev
}

func inPhase(ev *agentevents.Event) {
	inFlow(ev)
	ev.Phase = "audit"
}

// inFlow puts an event into the workflow. The actor of the workflow's own events is its
// script and no agent.
func inFlow(ev *agentevents.Event) {
	ev.WorkflowID = "w1"
	if byOthers(ev.Kind()) && ev.AgentID != "" {
		ev.AgentID, ev.Actor = "", ev.AgentID
	}
}

func byUser(ev *agentevents.Event) { ev.AgentID, ev.Actor = "", "user" }

func forAgent(agent, actor string) func(*agentevents.Event) {
	return func(ev *agentevents.Event) { ev.AgentID, ev.Actor = agent, actor }
}

type golden struct {
	name  string
	line  string
	event agentevents.Event
}

// goldens are lines of all variants, with the members of the document and of the
// vocabulary.
func goldens() []golden {
	ref := func(id string) agentevents.AgentRef { return agentevents.AgentRef{AgentID: id} }
	return []golden{
		{"session.started", docLineBy("user", "session.started", `{"goal":"Fix the tests"}`), event(&agentevents.SessionStarted{Goal: "Fix the tests"}, byUser)},
		{"workflow.node.enter", docLineBy("orchestrator", "workflow.node.enter", `{"nodeId":"plan","typeId":"llm","attempt":0,"agentId":"planner"}`),
			event(&agentevents.NodeStarted{TypeID: "llm", Attempt: agentevents.Some(0)}, forAgent("planner", "orchestrator"), func(ev *agentevents.Event) { ev.NodeID = "plan" })},
		{"agent.message.created", docLine("agent.message.created", `{"message":{"messageId":"m1","from":"planner","to":"user","content":{"text":"<hi>"},"ts":1779094801200,"role":"agent"}}`),
			event(&agentevents.MessageCreated{Message: agentevents.ConversationMessage{
				MessageID: "m1", From: "planner", To: "user", Content: `{"text":"<hi>"}`, TS: 1779094801200, Role: "agent"}})},
		{"agent.task.assigned", docLine("agent.task.assigned", `{"goal":"search","assignedAgent":"searcher","constraints":["fast"],"expectedOutput":"list"}`),
			event(&agentevents.TaskAssigned{Goal: "search", AssignedAgent: "searcher", Constraints: `["fast"]`, ExpectedOutput: "list"})},
		{"tool.call.started", docLine("tool.call.started", `{"callId":"c1","toolId":"web_search","arguments":{"q":"go"},"step":2}`),
			event(&agentevents.ToolCalled{CallID: "c1", ToolID: "web_search", Arguments: `{"q":"go"}`}, func(ev *agentevents.Event) { ev.Step = agentevents.Some(2) })},
		{"tool.call.completed", docLine("tool.call.completed", `{"callId":"c1","toolId":"web_search","status":"error","error":{"code":"timeout","message":"slow","retryable":true},"durationMs":12.5}`),
			event(&agentevents.ToolReturned{CallID: "c1", ToolID: "web_search", Status: agentevents.ToolStatusError, Duration: agentevents.Some(12500 * time.Microsecond),
				Error: agentevents.Some(agentevents.ErrorInfo{Code: "timeout", Message: "slow", Retryable: agentevents.Some(true)})})},
		{"handoff.requested", docLine("handoff.requested", `{"from":{"agentId":"planner"},"to":{"agentId":"coder","modelClass":"coding"},"reason":"code","contextDigest":"abc"}`),
			event(&agentevents.HandoffRequested{From: ref("planner"), To: agentevents.AgentRef{AgentID: "coder", ModelClass: agentevents.ModelCoding}, Reason: "code", ContextDigest: "abc"})},
		{"handoff.accepted", docLineBy("coder", "handoff.accepted", `{"handoffId":"h1","from":{"agentId":"planner"},"to":{"agentId":"coder"}}`),
			event(&agentevents.HandoffAccepted{HandoffID: "h1", From: ref("planner"), To: ref("coder")}, forAgent("coder", ""))},
		{"blackboard.item.created", docLine("blackboard.item.created", `{"itemId":"i1","itemType":"fact","content":[1,2],"sourceAgent":"planner","confidence":0.5,"ttlMs":60000}`),
			event(&agentevents.BlackboardItemCreated{ItemID: "i1", ItemType: "fact", Content: `[1,2]`, SourceAgent: "planner", Confidence: agentevents.Some(0.5), TTL: agentevents.Some(time.Minute)})},
		{"approval.requested", docLine("approval.requested", `{"approvalId":"a1","action":"deploy","risk":"high","timeoutMs":5000}`),
			event(&agentevents.ApprovalRequested{ApprovalID: "a1", Action: "deploy", Risk: "high", Timeout: agentevents.Some(5 * time.Second)})},
		{"approval.granted", docLineBy("human", "approval.granted", `{"approvalId":"a1","approvedBy":"ann","feedback":"go"}`),
			event(&agentevents.ApprovalGranted{ApprovalID: "a1", ApprovedBy: "ann", Feedback: "go"}, forAgent("", "human"))},
		{"verifier.issue.found", docLine("verifier.issue.found", `{"issue":"leak","severity":"high","evidence":{"line":3},"suggestedFix":"close it"}`),
			event(&agentevents.IssueFound{Issue: "leak", Severity: "high", Evidence: `{"line":3}`, SuggestedFix: "close it"})},
		{"loop.round.completed", docLine("loop.round.completed", `{"round":0,"score":0.25,"feedback":"more","costUsd":0.01}`),
			event(&agentevents.LoopRoundCompleted{Round: 0, Score: agentevents.Some(0.25), Feedback: "more", CostUSD: agentevents.Some(0.01)})},
		{"budget.exceeded", docLine("budget.exceeded", `{"budget":"tokens","limit":1000,"actual":1200.5,"reason":"loop"}`),
			event(&agentevents.BudgetExceeded{Budget: "tokens", Limit: 1000, Actual: 1200.5, Reason: "loop"}, forAgent("", "planner"))},
		{"session.completed", docLineBy("system", "session.completed", `{"status":"done","result":null}`), event(&agentevents.SessionCompleted{Status: "done", Result: "null"}, forAgent("", "system"))},

		{"workflow.created", docLine("workflow.created", `{"workflowId":"w1","script":"phase(\"audit\")","phases":["discover","audit"],"estimatedTokens":9000}`),
			event(&agentevents.WorkflowCreated{Script: `phase("audit")`, Phases: []string{"discover", "audit"}, EstimatedTokens: agentevents.Some[int64](9000)}, inFlow)},
		{"workflow.approved", docLineBy("user", "workflow.approved", `{"workflowId":"w1","approvedAt":"2026-05-18T09:00:00.000Z","approvedBy":"ann"}`),
			event(&agentevents.WorkflowApproved{ApprovedAt: at.Truncate(time.Second).Add(-time.Second), ApprovedBy: "ann"}, byUser, inFlow)},
		{"workflow.phase.started", docLine("workflow.phase.started", `{"workflowId":"w1","phase":"audit","inputCount":12}`), event(&agentevents.PhaseStarted{InputCount: agentevents.Some(12)}, inPhase)},
		{"workflow.phase.completed", docLine("workflow.phase.completed", `{"workflowId":"w1","phase":"audit","outputCount":0,"tokens":4000}`),
			event(&agentevents.PhaseCompleted{OutputCount: agentevents.Some(0), Tokens: agentevents.Some[int64](4000)}, inPhase)},
		{"agent.spawned", strings.Replace(docLineBy("orchestrator", "agent.spawned", `{"workflowId":"w1","phase":"audit","agentTask":"audit-file","parentSpanId":"`+up+`","model":"m","agentId":"auditor-1"}`),
			`"sessionId"`, `"parentSpanId":"`+up+`","sessionId"`, 1),
			event(&agentevents.AgentStarted{Task: "audit-file", Model: "m"}, forAgent("auditor-1", "orchestrator"), inPhase, func(ev *agentevents.Event) { ev.ParentSpanID = up })},
		{"agent.completed", docLineBy("auditor-1", "agent.completed", `{"agentId":"auditor-1","tokens":512,"durationMs":3000,"resultSchema":{"type":"object"},"workflowId":"w1","phase":"audit"}`),
			event(&agentevents.AgentEnded{Usage: agentevents.Some(agentevents.Usage{TotalTokens: agentevents.Some[int64](512)}), Duration: agentevents.Some(3 * time.Second), ResultSchema: `{"type":"object"}`},
				forAgent("auditor-1", ""), inPhase)},
		{"claim.verified", docLine("claim.verified", `{"findingId":"f1","verifierAgentId":"v1","verdict":"rejected","evidence":"none","workflowId":"w1","phase":"audit"}`),
			event(&agentevents.ClaimVerified{FindingID: "f1", VerifierAgentID: "v1", Verdict: "rejected", Evidence: `"none"`}, inPhase)},
		{"workflow.checkpoint.saved", docLine("workflow.checkpoint.saved", `{"workflowId":"w1","phase":"audit","stateBytes":2048}`), event(&agentevents.CheckpointSaved{StateBytes: 2048}, inPhase)},
		{"workflow.checkpoint.resumed", docLine("workflow.checkpoint.resumed", `{"workflowId":"w1","phase":"audit","resumedAt":"2026-05-18T09:00:01.200Z"}`),
			event(&agentevents.CheckpointResumed{ResumedAt: at}, inPhase)},
		{"workflow.finalized", docLine("workflow.finalized", `{"workflowId":"w1","totalTokens":90000,"totalAgents":14,"durationMs":61000}`),
			event(&agentevents.WorkflowFinalized{TotalTokens: 90000, TotalAgents: 14, Duration: 61 * time.Second}, inFlow)},
	}
}

// decode reads valid lines.
func decode(t testing.TB, o Options, lines ...string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(strings.Join(lines, "\n")), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).Events()
}

// encode writes valid events.
func encode(t testing.TB, events ...agentevents.Event) (string, []dialect.Loss) {
	t.Helper()
	e := NewEncoder(EncoderOptions{})
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	out, err := e.End(out)
	require.NoError(t, err)
	return strings.TrimSuffix(string(out), "\n"), e.Losses()
}

// native returns the event's native line without its extra member.
func native(t testing.TB, ev agentevents.Event) string {
	t.Helper()
	line, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	return string(line)
}

func TestGolden(t *testing.T) {
	all := goldens()
	rows := documentRows()
	require.Len(t, all, len(rows))
	for i, g := range all {
		t.Run(g.name, func(t *testing.T) {
			require.Equal(t, rows[i].Type, g.name)
			require.Equal(t, dialect.MultiAgent, dialect.Detect(g.line))
			ev := decode(t, Options{Strict: true}, g.line)[0]

			want := g.event
			require.NoError(t, want.SetExtra(string(Name), `{"schemaVersion":"1.0"}`))
			require.Equal(t, want, ev)

			line, losses := encode(t, ev)
			require.Equal(t, g.line, line, "the read event is written")
			require.Empty(t, losses)

			line, losses = encode(t, g.event)
			require.Equal(t, g.line, line, "the built event is written")
			require.Equal(t, []dialect.Loss{{Pointer: "/multiagent/schemaVersion", What: dialect.Made, Detail: "1.0", Count: 1, RunID: "r1"}}, losses)

			require.Equal(t, native(t, ev), native(t, decode(t, Options{}, reorder(t, g.line))[0]), "payload before type")
		})
	}
}

// reorder moves the payload of a golden line to the front.
func reorder(t *testing.T, line string) string {
	start, end := strings.Index(line, `"payload":`), strings.Index(line, `,"timestamp"`)
	require.Positive(t, start)
	return `{` + line[start:end] + `,` + line[1:start] + line[end+1:]
}

func TestWholeLogThroughBothFormats(t *testing.T) {
	var lines []string
	for i, g := range goldens() {
		lines = append(lines, strings.Replace(g.line, `"id":"e1"`, `"id":"e`+string(rune('a'+i))+`"`, 1))
	}
	events := decode(t, Options{Strict: true}, lines...)
	var log bytes.Buffer
	for i, ev := range events {
		require.EqualValues(t, i, ev.Sequence)
		log.WriteString(native(t, ev) + "\n")
	}
	again := eventtest.ReadLog(t, &log, agentevents.ReaderOptions{}).Events()
	out, losses := encode(t, again...)
	require.Empty(t, losses)
	require.Equal(t, strings.Join(lines, "\n"), out)
}
