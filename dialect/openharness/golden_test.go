package openharness

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

const run = "flow-run"

var epoch = time.Date(2026, 1, 4, 9, 2, 2, 500e6, time.UTC)

// at returns the start of a line of a type.
func at(kind, members string) string {
	return `{"type":"` + kind + `","timestamp":1767517322500` + members + `}`
}

func of(kind, members string) string {
	return `{"type":"` + kind + `","nodeId":"task-agent","runId":"exec-1","timestamp":1767517322500` + members + `}`
}

type goldenLine struct {
	name, line string
	payload    agentevents.Payload
	extra      string // the event's extra member
}

// event returns the event of the line as the first line of a log.
func (g *goldenLine) event(t testing.TB) agentevents.Event {
	ev := agentevents.Event{
		ID: dialect.DerivedID(g.line, 1, partEvent), Time: epoch, RunID: run, SchemaVersion: agentevents.SchemaVersion, Payload: g.payload,
	}
	if strings.Contains(g.line, `"nodeId"`) {
		ev.NodeID = "task-agent"
	}
	if strings.Contains(g.line, `"runId":"exec-1","timestamp"`) {
		ev.NodeRunID = "exec-1"
	}
	if tool, ok := g.payload.(*agentevents.ToolReturned); ok {
		call := *tool
		call.CallID = dialect.DerivedID(g.line, 1, partCall)
		ev.Payload = &call
	}
	if g.extra != "" {
		require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON(g.extra)))
	}
	return ev
}

// golden has a line of every variant, in the numbering of the design. Some lines have
// all optional members.
var golden = []goldenLine{
	{"R1", of("agent:start", `,"sessionId":"sess-123","model":"claude-opus","prompt":"Analyze the task list..."`),
		&agentevents.AgentStarted{ProviderSessionID: "sess-123", Model: "claude-opus", Prompt: `"Analyze the task list..."`}, ""},
	{"R1 messages", of("agent:start", `,"sessionId":"sess-123","prompt":[{"content":"hi","parentToolUseId":null},"go on"]`),
		&agentevents.AgentStarted{ProviderSessionID: "sess-123", Prompt: `[{"content":"hi","parentToolUseId":null},"go on"]`}, ""},
	{"R2", of("agent:thinking:delta", `,"content":"Let me ","tokenCount":2`),
		&agentevents.AgentReasoningDelta{BlockID: "block-1", Delta: "Let me ", TokenCount: agentevents.Some(int64(2))}, ""},
	{"R3", of("agent:thinking", `,"content":"Let me analyze...","tokenCount":0`),
		&agentevents.AgentReasoned{Reasoning: "Let me analyze...", TokenCount: agentevents.Some(int64(0))}, ""},
	{"R4", of("agent:text:delta", `,"content":"I'll "`), &agentevents.TextDelta{BlockID: "block-1", Delta: "I'll "}, ""},
	{"R5", of("agent:text", `,"content":"I'll start by..."`), &agentevents.TextCompleted{Text: "I'll start by..."}, ""},
	{"R6", of("agent:tool", `,"toolName":"read_file","toolInput":{"path":"a.go"},"toolOutput":{"ok":true},"durationMs":12.5`),
		&agentevents.ToolReturned{ToolID: "read_file", Status: agentevents.ToolStatusOK, Arguments: `{"path":"a.go"}`, Result: `{"ok":true}`,
			Duration: agentevents.Some(12500 * time.Microsecond), OneEvent: true}, ""},
	{"R6 error", of("agent:tool", `,"toolName":"read_file","toolInput":null,"toolOutput":null,"error":"no such file"`),
		&agentevents.ToolReturned{ToolID: "read_file", Status: agentevents.ToolStatusError, Arguments: `null`, Result: `null`,
			Error: agentevents.Some(agentevents.ErrorInfo{Message: "no such file"}), OneEvent: true}, ""},
	{"R7", of("agent:error", `,"errorType":"error_max_turns","message":"too many turns","details":{"turns":10}`),
		&agentevents.AgentErrored{ErrorType: ErrorTypeMaxTurns, Message: "too many turns", Details: `{"turns":10}`}, ""},
	{"R8", of("agent:complete", `,"result":"Done!","structuredOutput":{"n":1},"usage":{"inputTokens":150,"outputTokens":200,"cacheCreationInputTokens":0,`+
		`"cacheReadInputTokens":12},"modelUsage":{"a":{"inputTokens":100,"outputTokens":150},"b":{"inputTokens":50,"outputTokens":50}},`+
		`"totalCostUsd":0.0125,"durationMs":4523,"numTurns":3`),
		&agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "Done!", StructuredOutput: `{"n":1}`,
			Usage: agentevents.Some(agentevents.Usage{InputTokens: 150, OutputTokens: 200,
				CacheCreationInputTokens: agentevents.Some(int64(0)), CacheReadInputTokens: agentevents.Some(int64(12))}),
			ModelUsage:   map[string]agentevents.Usage{"a": {InputTokens: 100, OutputTokens: 150}, "b": {InputTokens: 50, OutputTokens: 50}},
			TotalCostUSD: agentevents.Some(0.0125), Duration: agentevents.Some(4523 * time.Millisecond), NumTurns: agentevents.Some(3)}, ""},
	{"R8 least", of("agent:complete", `,"result":"Done!","usage":{"inputTokens":0,"outputTokens":0},"durationMs":0,"numTurns":0`),
		&agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "Done!", Usage: agentevents.Some(agentevents.Usage{}),
			Duration: agentevents.Some(time.Duration(0)), NumTurns: agentevents.Some(0)}, ""},
	{"R9", at("flow:start", `,"flowName":"my-workflow"`), &agentevents.RunStarted{Name: "my-workflow"}, ""},
	{"R10", at("flow:complete", `,"flowName":"my-workflow","status":"complete"`), &agentevents.RunCompleted{}, `{"flowName":"my-workflow"}`},
	{"R10 failed", at("flow:complete", `,"flowName":"my-workflow","status":"failed"`), &agentevents.RunFailed{}, `{"flowName":"my-workflow"}`},
	{"R11", at("flow:paused", ``), &agentevents.RunPaused{}, ""},
	{"R12", at("flow:resumed", ``), &agentevents.RunResumed{}, ""},
	{"R13", at("flow:aborted", ``), &agentevents.RunCancelled{}, ""},
	{"R14", of("node:start", ``), &agentevents.NodeStarted{}, ""},
	{"R15", of("node:complete", `,"output":{"text":"ok"}`), &agentevents.NodeCompleted{Outputs: `{"text":"ok"}`}, ""},
	{"R16", of("node:error", `,"error":"boom"`), &agentevents.NodeFailed{Error: agentevents.ErrorInfo{Message: "boom"}}, ""},
	{"R17", `{"type":"node:skipped","nodeId":"task-agent","timestamp":1767517322500,"reason":"when"}`, &agentevents.NodeSkipped{Reason: "when"}, ""},
	{"R18", at("edge:fire", `,"edgeId":"e1","from":"a","to":"b"`), &agentevents.EdgeFired{EdgeID: "e1", From: "a", To: "b"}, ""},
	{"R18 plain", at("edge:fire", `,"from":"a","to":"b"`), &agentevents.EdgeFired{From: "a", To: "b"}, ""},
	{"R19", at("loop:iterate", `,"edgeId":"e1","iteration":2`), &agentevents.LoopIterated{EdgeID: "e1", Iteration: 2}, ""},
	{"R20", at("state:patch", `,"patch":{"op":"set","path":"tasks.open","value":[1,2]}`),
		&agentevents.StatePatched{Op: agentevents.PatchSet, Path: "tasks.open", Value: `[1,2]`}, ""},
	{"R21 send", at("command:received", `,"command":{"type":"send","message":"hi","runId":"exec-1"}`),
		&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandSend, Message: "hi", RunID: "exec-1"}}, ""},
	{"R21 reply", at("command:received", `,"command":{"type":"reply","promptId":"p1","content":"yes","runId":"exec-1"}`),
		&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandReply, PromptID: "p1", Content: "yes", RunID: "exec-1"}}, ""},
	{"R21 abort", at("command:received", `,"command":{"type":"abort","resumable":true,"reason":"lunch"}`),
		&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandAbort, Resumable: agentevents.Some(true), Reason: "lunch"}}, ""},
	{"R21 resume", at("command:received", `,"command":{"type":"resume","message":"continue"}`),
		&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandResume, Message: "continue"}}, ""},
	{"R21 rejected", at("command:received", `,"command":{"type":"send","message":"hi"}`),
		&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandSend, Message: "hi"}, Rejected: Rejected}, ""},
	{"later", of("agent:paused", `,"sessionId":"sess-123","numTurns":2`),
		&agentevents.Unknown{Type: "agent:paused", Raw: `{"sessionId":"sess-123","numTurns":2}`}, ""},
}

func decodeLines(t testing.TB, o Options, lines ...string) []agentevents.Event {
	t.Helper()
	if o.RunID == "" {
		o.RunID = run
	}
	d := NewDecoder(o)
	var events []agentevents.Event
	var err error
	for _, line := range lines {
		events, err = d.Decode(events, []byte(line))
		require.NoError(t, err, line)
	}
	events, err = d.End(events)
	require.NoError(t, err)
	return events
}

// encode returns the lines of events, and the losses: the events that a reader gets back differ by
// them and by nothing else. Few events of the tests have ids, which the suite tests.
func encode(t testing.TB, events ...agentevents.Event) (string, []dialect.Loss) {
	t.Helper()
	o, trip := Options{RunID: events[0].RunID}, readback.Trip{Ignore: []string{"/id", "/runId", "/payload/callId"}}
	if slices.ContainsFunc(events, func(ev agentevents.Event) bool { return ev.Kind() == agentevents.KindRunStarted }) {
		o.RunID = "" // there may be other runs
	}
	e := NewEncoder(EncoderOptions{RunID: o.RunID})
	same := regexp.MustCompile(`^a loss that did not happen: .*(/id|/runId|/payload/callId) (dropped|altered)`)
	for _, problem := range trip.Problems(events, e, NewDecoder(o)) {
		if !same.MatchString(problem) {
			t.Errorf("%s\n%s", problem, trip.Text)
		}
	}
	return string(trip.Text), e.Losses()
}

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			seen[strings.Fields(g.name)[0]] = true
			events := decodeLines(t, Options{Strict: true}, g.line)
			require.Len(t, events, 1)
			ev := events[0]

			want := g.event(t)
			require.Equal(t, want, ev)
			line, losses := encode(t, want)
			require.Equal(t, g.line+"\n", line)
			for _, l := range losses {
				require.Contains(t, []string{"/id", "/runId", "/sequence", "/payload/callId", "/payload/blockId", "/openharness/flowName"}, l.Pointer)
			}
			require.Equal(t, dialect.OpenHarness, dialect.Detect(g.line))

			// The event survives the native format.
			native, err := ev.AppendJSON(nil)
			require.NoError(t, err)
			var back agentevents.Event
			require.NoError(t, back.UnmarshalJSON(native))
			line, _ = encode(t, back)
			require.Equal(t, g.line+"\n", line)
		})
	}
	types := map[string]bool{}
	for _, row := range format.Rows {
		types[row.Type] = true
	}
	require.Len(t, seen, len(types)+1, "a type has no line")
}
