package openwop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

func decodeAll(t *testing.T, o Options, lines string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(lines), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).Events()
}

func encodeAll(t *testing.T, p Profile, events []agentevents.Event) (string, []dialect.Loss) {
	t.Helper()
	e := NewEncoder(EncoderOptions{Profile: p})
	var out []byte
	for _, ev := range events {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	return string(out), e.Losses()
}

// The lines keep the rules of their profile, and are written as they were.
func TestGoldenStrict(t *testing.T) {
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		for line := range strings.Lines(golden[p]) {
			d := NewDecoder(Options{Strict: true, Profile: p, Folded: true})
			_, err := d.Decode(nil, []byte(strings.TrimSuffix(line, "\n")))
			require.NoError(t, err, line)
		}
	}
}

var t0 = time.Date(2026, 5, 19, 10, 0, 7, 0, time.UTC)

// Every variant, as structs and as a line of each profile.
func TestVariants(t *testing.T) {
	ref := agentevents.AgentRef{AgentID: "host:planner"}
	worker := agentevents.AgentRef{AgentID: "core.worker", AgentSharing: agentevents.SharingGroup("g"), MemoryRef: "m", ModelClass: agentevents.ModelCoding}
	some := agentevents.Some[int]
	for name, c := range map[string]struct {
		payload     agentevents.Payload
		rfc, v1, v2 string // type and payload
	}{
		"reasoned": {
			&agentevents.AgentReasoned{Reasoning: "x", Verbosity: agentevents.VerbosityFull},
			`"agent.reasoned","payload":{"agentId":"host:planner","reasoning":"x","verbosity":"full"}`, "", "",
		},
		"delta": {
			&agentevents.AgentReasoningDelta{Delta: "x", Index: some(3)},
			`"agent.reasoning.delta","payload":{"agentId":"host:planner","delta":"x","sequence":3}`, "",
			`"agent.reasoning-delta","payload":{"agentId":"host:planner","delta":"x","sequence":3}`,
		},
		"called": {
			&agentevents.ToolCalled{ToolID: "a:b", CallID: "c", Arguments: `{"n":9007199254740993}`},
			`"agent.toolCalled","payload":{"agentId":"host:planner","toolId":"a:b","callId":"c","arguments":{"n":9007199254740993}}`,
			`"agent.toolCalled","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","inputs":{"n":9007199254740993}}`,
			`"agent.tool-called","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","inputs":{"n":9007199254740993}}`,
		},
		"returned": {
			&agentevents.ToolReturned{ToolID: "a:b", CallID: "c", Status: agentevents.ToolStatusOK, Result: `null`, Duration: agentevents.Some(3 * time.Millisecond)},
			`"agent.toolReturned","payload":{"agentId":"host:planner","toolId":"a:b","callId":"c","result":null,"durationMs":3}`,
			`"agent.toolReturned","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","outcome":null,"durationMs":3}`,
			`"agent.tool-returned","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","outcome":null,"durationMs":3}`,
		},
		"returned error": {
			&agentevents.ToolReturned{ToolID: "a:b", CallID: "c", Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Code: "k", Message: "m"})},
			`"agent.toolReturned","payload":{"agentId":"host:planner","toolId":"a:b","callId":"c","error":{"error":"k","message":"m"}}`,
			`"agent.toolReturned","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","error":{"code":"k","message":"m"}}`,
			`"agent.tool-returned","payload":{"agentId":"host:planner","toolName":"a:b","callId":"c","error":{"code":"k","message":"m"}}`,
		},
		"handoff": {
			&agentevents.AgentHandoff{From: ref, To: worker, Reason: "r", Context: `[1]`},
			`"agent.handoff","payload":{"from":{"agentId":"host:planner"},"to":{"agentId":"core.worker","agentSharing":"shared:g","memoryRef":"m","modelClass":"coding"},"reason":"r","context":[1]}`,
			`"agent.handoff","payload":{"fromAgentId":"host:planner","toAgentId":"core.worker","reason":"r","context":[1]}`,
			`"agent.handoff","payload":{"fromAgentId":"host:planner","toAgentId":"core.worker","reason":"r"}`,
		},
		"decided": {
			&agentevents.AgentDecided{Decision: `"go"`, Confidence: agentevents.Some(0.5), Reasoning: "why"},
			`"agent.decided","payload":{"agentId":"host:planner","decision":"go","confidence":0.5,"reasoning":"why"}`,
			`"agent.decided","payload":{"agentId":"host:planner","decision":"go","confidence":0.5,"reasoning":"why"}`,
			`"agent.decided","payload":{"agentId":"host:planner","decision":"go","confidence":0.5}`,
		},
		"node started": {
			&agentevents.NodeStarted{Agent: agentevents.Some(worker), TypeID: "core.llm", Attempt: some(0)},
			`"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":0,"agent":{"agentId":"core.worker","agentSharing":"shared:g","memoryRef":"m","modelClass":"coding"},"agentId":"host:planner"}`,
			`"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":0,"agent":{"agentId":"core.worker","agentSharing":"shared:g","memoryRef":"m","modelClass":"coding"},"agentId":"host:planner"}`,
			`"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":0}`,
		},
		"node completed": {
			&agentevents.NodeCompleted{Outputs: `{"a":1}`, Agent: agentevents.Some(ref)},
			`"node.completed","payload":{"nodeId":"n1","outputs":{"a":1},"agent":{"agentId":"host:planner"},"agentId":"host:planner"}`, "",
			`"node.completed","payload":{"nodeId":"n1","outputs":{"a":1}}`,
		},
		"cap": {
			&agentevents.CapBreached{Cap: "loop-iterations", Limit: agentevents.Some(10.0), Observed: agentevents.Some(11.0)},
			`"cap.breached","payload":{"kind":"loop-iterations","limit":10,"observed":11,"agentId":"host:planner"}`, "",
			`"cap.breached","payload":{"kind":"loop-iterations","limit":10,"observed":11}`,
		},
		"orchestrator": {
			&agentevents.OrchestratorDecided{Decision: `{"kind":"terminate"}`, Iteration: some(1)},
			`"runOrchestrator.decided","payload":{"agentId":"host:planner","decision":{"kind":"terminate"},"iteration":1}`, "",
			`"orchestrator.decided","payload":{"agentId":"host:planner","decision":{"kind":"terminate"},"iteration":1}`,
		},
		"clarification requested": {
			&agentevents.ClarificationRequested{InterruptID: "acme/int-000000000001", Questions: []agentevents.Question{{ID: "q", Question: "?"}}},
			`"clarification.requested","payload":{"nodeId":"n1","interruptId":"acme/int-000000000001","questions":[{"id":"q","question":"?"}],"agentId":"host:planner"}`, "",
			`"interrupt.requested","payload":{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":"?"}]}}`,
		},
		"clarification resolved": {
			&agentevents.ClarificationResolved{InterruptID: "acme/int-000000000001", Answers: `{"q":"a"}`, AnsweredBy: "ann"},
			`"clarification.resolved","payload":{"nodeId":"n1","interruptId":"acme/int-000000000001","answers":{"q":"a"},"answeredBy":"ann","agentId":"host:planner"}`, "",
			`"interrupt.resolved","payload":{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"clarification","resumeValue":{"q":"a"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.v1 == "" {
				c.v1 = c.rfc
			}
			if c.v2 == "" {
				c.v2 = c.rfc
			}
			for p, want := range map[Profile]string{RFC0002: c.rfc, SchemaV1: c.v1, SchemaV2: c.v2} {
				version := ""
				if p == SchemaV2 {
					version = `,"schemaVersion":1`
				}
				line := `{"eventId":"evt-0000000000-0007","runId":"acme/run-000000000001","nodeId":"n1","type":` + want +
					`,"timestamp":"2026-05-19T10:00:07.000Z","sequence":7` + version + `,"causationId":"evt-0000000000-0006"}` + "\n"
				ev := agentevents.Event{
					ID: "evt-0000000000-0007", RunID: "acme/run-000000000001", Scope: agentevents.Scope{NodeID: "n1"}, AgentID: "host:planner", Time: t0, Sequence: 7,
					CausationID: "evt-0000000000-0006", SchemaVersion: agentevents.SchemaVersion, Payload: c.payload,
				}
				got, losses := encodeAll(t, p, []agentevents.Event{ev})
				require.Equal(t, line, got)
				if p == RFC0002 {
					require.Empty(t, losses)
				}
				back := decodeAll(t, Options{Strict: true, Profile: p, Folded: true}, got)
				if p == RFC0002 {
					require.Equal(t, []agentevents.Event{ev}, back)
				}
				again, _ := encodeAll(t, p, back)
				require.Equal(t, line, again)
				// Every decoder reads every profile.
				for _, other := range []Profile{RFC0002, SchemaV1, SchemaV2} {
					read := decodeAll(t, Options{Profile: other}, got)
					for i := range read {
						require.Equal(t, back[i].Payload, read[i].Payload)
						require.Equal(t, back[i].AgentID, read[i].AgentID)
					}
				}
			}
		})
	}
}

// A log of one profile becomes one of another, which a strict decoder of that
// profile accepts.
func TestProfiles(t *testing.T) {
	for _, from := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		for _, to := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			events := decodeAll(t, Options{Profile: from}, golden[from])
			e := NewEncoder(EncoderOptions{Profile: to})
			var out []byte
			for _, ev := range events {
				next, err := e.Append(out, ev)
				var broken *agentevents.RuleError
				if errors.As(err, &broken) {
					require.Equal(t, RuleEnum, broken.Rule, "the cap that only the RFC has")
					continue
				}
				require.NoError(t, err)
				out = next
			}
			d := NewDecoder(Options{Strict: true, Profile: to})
			for line := range bytes.Lines(out) {
				_, err := d.Decode(nil, bytes.TrimSuffix(line, []byte("\n")))
				require.NoError(t, err, "%s to %s: %s", from, to, line)
			}
		}
	}
}

func TestBothSpellings(t *testing.T) {
	line := `{"eventId":"e1","runId":"r1","type":"agent.toolCalled","payload":{"agentId":"abc","toolId":"a:b","callId":"c","arguments":1,"toolName":"n","inputs":2},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}`
	rfc := decodeAll(t, Options{}, line)[0]
	require.Equal(t, &agentevents.ToolCalled{ToolID: "a:b", CallID: "c", Arguments: "1"}, rfc.Payload)
	require.EqualValues(t, `"n"`, dialect.Unknown(&rfc, Name, "/payload/toolName"))
	v1 := decodeAll(t, Options{Profile: SchemaV1}, line)[0]
	require.Equal(t, &agentevents.ToolCalled{ToolID: "n", CallID: "c", Arguments: "2"}, v1.Payload)
	out, losses := encodeAll(t, RFC0002, []agentevents.Event{rfc})
	require.Equal(t, line+"\n", out)
	require.Empty(t, losses)
	_, losses = encodeAll(t, SchemaV1, []agentevents.Event{rfc})
	require.Len(t, losses, 2, "the other spelling has no place beside the written one")
}

func TestVerbatim(t *testing.T) {
	lines := `{"sequence":3.0,"type":"agent.decided","timestamp":"2026-05-19T12:00:07+02:00","payload":{"confidence":0.50,"decision":{"b":1, "a":2},"agentId":"abc"}, "runId":"r1","eventId":"e1"}` + "\n" +
		`{"eventId":"e2","runId":"r1","type":"agent.toolCalled","payload":{"agentId":"abc","toolName":"x","callId":"c","inputs":1},"timestamp":"2026-05-19T10:00:08.000Z","sequence":4}` + "\n"
	read := func() []agentevents.Event {
		var events []agentevents.Event
		for ev, err := range agentevents.NewReader(strings.NewReader(lines), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
			require.NoError(t, err)
			events = append(events, ev)
		}
		return events
	}
	events := read()
	out, losses := encodeAll(t, RFC0002, events)
	first, second, _ := strings.Cut(lines, "\n")
	require.Equal(t, first+"\n"+strings.NewReplacer("toolName", "toolId", "inputs", "arguments").Replace(second), out, "another profile's names are not kept")
	require.Empty(t, losses)
	out, _ = encodeAll(t, SchemaV1, events)
	require.Equal(t, lines, out)

	events = read()
	events[0].RunID = "r2"
	events[0].Payload.(*agentevents.AgentDecided).Confidence = agentevents.Some(0.6)
	out, _ = encodeAll(t, RFC0002, events[:1])
	require.Equal(t, `{"eventId":"e1","runId":"r2","type":"agent.decided","payload":{"agentId":"abc","decision":{"b":1,"a":2},"confidence":0.6},"timestamp":"2026-05-19T10:00:07.000Z","sequence":3}`+"\n", out)

	out, _ = encodeAll(t, RFC0002, append([]agentevents.Event{{
		ID: "e0", RunID: "r1", AgentID: "abc", Time: t0, Payload: &agentevents.ToolReturned{CallID: "c", Status: agentevents.ToolStatusOK, OneEvent: true},
	}}, read()...))
	require.Contains(t, out, `"sequence":4`, "the number of the line is raised by one")
	lines = `{"eventId":"e3","runId":"r1","type":"agent.toolReturned","payload":{"agentId": "abc","toolName":"x","callId":"no call","outcome":1},"timestamp":"2026-05-19T10:00:08.000Z","sequence":4}` + "\n"
	out, _ = encodeAll(t, SchemaV1, read())
	require.Equal(t, lines, out, "the lines before do not matter")
	lines = first + "\n"

	lines = documents("agent.reasoning-delta", `{"agentId": "abc","delta":"x","sequence":0}`)
	out, _ = encodeAll(t, RFC0002, read())
	require.Contains(t, out, `"agent.reasoning.delta","payload":{"agentId":"abc"`, "another profile's type is not kept")
	lines = first + "\n"

	events = read()
	events[0].Step = agentevents.Some(2)
	_, losses = encodeAll(t, RFC0002, events[:1])
	require.Len(t, losses, 1)
	require.Equal(t, "/step", losses[0].Pointer)
}

func TestOneEventIsSplit(t *testing.T) {
	base := agentevents.Event{RunID: "r", AgentID: "abc", Time: t0, SchemaVersion: agentevents.SchemaVersion}
	one, two := base, base
	one.ID, one.Payload = "e1", &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, Result: "1", Arguments: "2", OneEvent: true, Duration: agentevents.Some(time.Second)}
	two.ID, two.Sequence, two.Payload = "e2", 1, &agentevents.AgentReasoned{Reasoning: "x"}
	out, losses := encodeAll(t, RFC0002, []agentevents.Event{one, two})
	events := decodeAll(t, Options{Strict: true}, out)
	require.Len(t, events, 3)
	require.Equal(t, &agentevents.ToolCalled{CallID: "c", ToolID: "t", Arguments: "2"}, events[0].Payload)
	require.Equal(t, t0.Add(-time.Second), events[0].Time)
	require.Equal(t, events[0].ID, events[1].CausationID)
	require.Equal(t, []uint64{0, 1, 2}, []uint64{events[0].Sequence, events[1].Sequence, events[2].Sequence})
	require.NotEmpty(t, losses)
}

func TestCausationIsFilledIn(t *testing.T) {
	base := agentevents.Event{RunID: "r", AgentID: "abc", Time: t0, SchemaVersion: agentevents.SchemaVersion}
	called, returned := base, base
	called.ID, called.Payload = "e1", &agentevents.ToolCalled{CallID: "c", ToolID: "t", Arguments: "2"}
	returned.ID, returned.Sequence, returned.Payload = "e2", 1, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK}
	out, losses := encodeAll(t, RFC0002, []agentevents.Event{called, returned})
	require.Contains(t, out, `"causationId":"e1"`)
	require.Len(t, losses, 1)
	require.Equal(t, dialect.Made, losses[0].What)
	out, losses = encodeAll(t, RFC0002, []agentevents.Event{returned})
	require.NotContains(t, out, "causationId")
	require.Empty(t, losses, "the call is not in the log")

	returned.CausationID = "somewhere-else"
	out, losses = encodeAll(t, RFC0002, []agentevents.Event{called, returned})
	decodeAll(t, Options{Strict: true}, out)
	require.Len(t, losses, 1)
	require.Equal(t, dialect.Altered, losses[0].What)
	require.Equal(t, "/causationId", losses[0].Pointer)

	called.ID = ""
	out, _ = encodeAll(t, RFC0002, []agentevents.Event{called, returned})
	decodeAll(t, Options{Strict: true}, out)
}

// A return names its own call: the latest one of its run and agent without a return. A delta
// without an index is the next one of its block.
func TestMemoryOfAnEncoder(t *testing.T) {
	var events []agentevents.Event
	add := func(run, agent string, p agentevents.Payload) {
		events = append(events, agentevents.Event{ID: fmt.Sprint("e", len(events)), RunID: run, AgentID: agent, Time: t0, Sequence: uint64(len(events)), Payload: p})
	}
	for _, p := range []agentevents.Payload{&agentevents.ToolCalled{CallID: "c"}, &agentevents.ToolReturned{CallID: "c", Status: agentevents.ToolStatusOK}} {
		add("r1", "abc", p)
		add("r1", "def", p)
		add("r2", "abc", p)
	}
	add("r1", "abc", events[3].Payload)
	var causes []string
	out, _ := encodeAll(t, RFC0002, events)
	for _, ev := range decodeAll(t, Options{}, out)[3:] {
		causes = append(causes, ev.CausationID)
	}
	require.Equal(t, []string{"e0", "e1", "e2", ""}, causes)

	events = nil
	delta := func(block string, index ...int) *agentevents.AgentReasoningDelta {
		p := &agentevents.AgentReasoningDelta{BlockID: block, Delta: "x"}
		for _, i := range index {
			p.Index = agentevents.Some(i)
		}
		return p
	}
	add("r1", "abc", delta("b1"))
	add("r1", "abc", delta("b1"))
	add("r1", "abc", delta("b2", 6))
	add("r1", "def", delta("b1"))
	add("r2", "abc", delta("b1"))
	add("r1", "abc", delta("b1", 4))
	add("r1", "abc", delta("b1"))
	add("r1", "abc", delta("b2"))
	add("r1", "abc", &agentevents.AgentReasoned{BlockID: "b1"})
	add("r1", "abc", delta("b1"))
	add("r1", "def", delta("b1"))
	add("r2", "abc", delta("b1"))
	var indexes []int
	out, _ = encodeAll(t, SchemaV1, events)
	for _, ev := range decodeAll(t, Options{}, out) {
		if p, ok := ev.Payload.(*agentevents.AgentReasoningDelta); ok {
			indexes = append(indexes, p.Index.Or(-1))
		}
	}
	require.Equal(t, []int{0, 1, 6, 0, 0, 4, 5, 7, 0, 1, 1}, indexes)
}

func TestRefused(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	base := agentevents.Event{ID: "e", RunID: "r", AgentID: "abc", Time: t0}
	for _, p := range []agentevents.Payload{&agentevents.TextDelta{Delta: "x"}, &agentevents.ModelCalled{}, &agentevents.AgentStarted{}} {
		ev := base
		ev.Payload = p
		out, err := e.Append([]byte("x"), ev)
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
		require.Equal(t, "x", string(out))
	}
	require.Len(t, e.Losses(), 3)
	for rule, p := range map[agentevents.Rule]agentevents.Payload{
		RuleRange:                 &agentevents.AgentDecided{Decision: "1", Confidence: agentevents.Some(1.5)},
		agentevents.RuleFieldJSON: &agentevents.AgentDecided{Decision: "{"},
		agentevents.RulePayload:   nil,
	} {
		ev := base
		ev.Payload = p
		out, err := e.Append([]byte("x"), ev)
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, rule, broken.Rule)
		require.Equal(t, "x", string(out))
	}
	ev := base
	for pointer, p := range map[string]agentevents.Payload{
		"/payload": &agentevents.Unknown{Type: "acme.x", Raw: "{"}, "/payload/details": &agentevents.NodeSuspended{Details: "{"},
	} {
		ev.Payload = p
		_, err := e.Append(nil, ev)
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, agentevents.RuleFieldJSON, broken.Rule)
		require.Equal(t, pointer, broken.Pointer)
	}
	ev.ID, ev.Payload = "a\xff", &agentevents.AgentReasoned{}
	_, err := e.Append(nil, ev)
	var broken *agentevents.RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, agentevents.RuleFieldUTF8, broken.Rule)
}

// Each rule has a line that breaks it. The golden lines break none.
func TestStrict(t *testing.T) {
	line := func(typ, payload string) string {
		return `{"eventId":"evt-0000000000-0007","runId":"acme/run-000000000001","nodeId":"n1","type":"` + typ + `","payload":` + payload +
			`,"timestamp":"2026-05-19T10:00:07.000Z","sequence":7,"schemaVersion":1,"causationId":"evt-0000000000-0006"}`
	}
	all := []Profile{RFC0002, SchemaV1, SchemaV2}
	schemas := all[1:]
	v2 := all[2:]
	for _, c := range []struct {
		rule     agentevents.Rule
		pointer  string
		profiles []Profile
		line     string
	}{
		{RuleRequired, "/eventId", all, `{"runId":"acme/run-000000000001","type":"run.paused","payload":{},"timestamp":"2026-05-19T10:00:07.000Z","sequence":7,"schemaVersion":1}`},
		{RuleRequired, "/schemaVersion", v2, `{"eventId":"evt-0000000000-0007","runId":"acme/run-000000000001","type":"run.paused","payload":{},"timestamp":"2026-05-19T10:00:07.000Z","sequence":7}`},
		{RuleRequired, "/payload/agentId", all, line("agent.reasoned", `{"reasoning":"x"}`)},
		{RuleRequired, "/payload/reasoning", all, line("agent.reasoned", `{"agentId":"abc"}`)},
		{RuleRequired, "/payload/toolId", all[:1], line("agent.toolCalled", `{"agentId":"abc","toolName":"x","callId":"c","inputs":1}`)},
		{RuleRequired, "/payload/arguments", all[:1], line("agent.toolCalled", `{"agentId":"abc","toolId":"x","callId":"c"}`)},
		{RuleRequired, "/payload/toolName", all[1:2], line("agent.toolCalled", `{"agentId":"abc","toolId":"x","callId":"c"}`)},
		{RuleRequired, "/payload/sequence", v2, line("agent.reasoning-delta", `{"agentId":"abc","delta":"c"}`)},
		{RuleRequired, "/payload/from/agentId", all[:1], line("agent.handoff", `{"from":{},"to":{"agentId":"b"}}`)},
		{RuleRequired, "/payload/typeId", schemas, line("node.started", `{"nodeId":"n"}`)},
		{RuleRequired, "/payload/outputs", v2, line("run.completed", `{}`)},
		{RuleRequired, "/payload/error/code", schemas, line("run.failed", `{"error":{"message":"m"}}`)},
		{RuleRequired, "/payload/error/code", schemas, line("run.failed", `{"error":{"error":"c","message":"m"}}`)},
		{RuleRequired, "/payload/error/message", all, line("run.failed", `{"error":{"code":"m"}}`)},
		{RuleRequired, "/payload/kind", all, line("cap.breached", `{"limit":1,"observed":2}`)},
		{RuleRequired, "/payload/interruptId", schemas, line("node.suspended", `{"nodeId":"n","reason":"x"}`)},
		{RuleID, "/eventId", all, strings.Replace(line("run.paused", `{}`), "evt-0000000000-0007", "", 1)},
		{RuleID, "/eventId", v2, strings.Replace(line("run.paused", `{}`), "evt-0000000000-0007", "short", 1)},
		{RuleID, "/runId", v2, strings.Replace(line("run.paused", `{}`), "acme/", "", 1)},
		{RuleID, "/eventId", schemas, strings.Replace(line("run.paused", `{}`), "evt-0000000000-0007", strings.Repeat("é", 129), 1)},
		{RuleID, "/nodeId", v2, strings.Replace(line("run.paused", `{}`), `"n1"`, `"n 1"`, 1)},
		{RuleID, "/payload/agentId", all[1:2], line("agent.reasoned", `{"agentId":"ab","reasoning":""}`)},
		{RuleID, "/payload/toAgentId", schemas, line("agent.handoff", `{"fromAgentId":"abc","toAgentId":"ab"}`)},
		{RuleID, "/payload/interruptId", v2, line("node.suspended", `{"nodeId":"n","interruptId":"x"}`)},
		{RuleType, "/type", v2, line("agent.toolCalled", `{"agentId":"abc","toolName":"x","callId":"c"}`)},
		{RuleType, "/type", v2, line("agent.thought", `{}`)},
		{RuleType, "/type", schemas, line("Agent", `{}`)},
		{RuleType, "/type", schemas, line("openwop.x", `{}`)},
		{RuleEnum, "/payload/verbosity", all, line("agent.reasoned", `{"agentId":"abc","reasoning":"","verbosity":"loud"}`)},
		{RuleEnum, "/payload/kind", schemas, line("cap.breached", `{"kind":"confidence-escalation-suppressed","limit":1,"observed":2}`)},
		{RuleEnum, "/payload/status", all[:1], line("agent.toolReturned", `{"agentId":"abc","toolId":"x","callId":"c","status":"timeout"}`)},
		{RuleEnum, "/payload/to/agentSharing", all[:1], line("agent.handoff", `{"from":{"agentId":"a"},"to":{"agentId":"b","agentSharing":"shared:"}}`)},
		{RuleEnum, "/payload/agent/modelClass", all[:1], line("node.started", `{"agent":{"agentId":"a","modelClass":"chat"}}`)},
		{RuleRange, "/payload/confidence", all, line("agent.decided", `{"agentId":"abc","decision":1,"confidence":1.0001}`)},
		{RuleRange, "/payload/confidence", all, line("agent.decided", `{"agentId":"abc","decision":1,"confidence":-0.1}`)},
		{RuleRange, "/payload/durationMs", all, line("node.completed", `{"nodeId":"n1","durationMs":1.5}`)},
		{RuleRange, "/payload/iteration", all[:2], line("runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"terminate"},"iteration":0}`)},
		{RuleForm, "/payload/outputs", schemas, line("node.completed", `{"nodeId":"n1","outputs":1}`)},
		{RuleRange, "/payload/decision/nextWorkerIds", v2, line("orchestrator.decided", `{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":[]}}`)},
		{RuleForm, "/payload/decision", v2, line("orchestrator.decided", `{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":["a"],"nextWorkerInputs":[]}}`)},
		{RuleEnum, "/payload/decision/kind", v2, line("orchestrator.decided", `{"agentId":"abc","decision":{"kind":"wait"}}`)},
		{RuleRequired, "/payload/kind", v2, line("clarification.requested", `{"nodeId":"n1","questions":[{"id":"x","question":"?"}]}`)},
		{RuleRequired, "/payload/questions/0/question", all[:2], line("clarification.requested", `{"nodeId":"n1","questions":[{"id":"x"}]}`)},
		{RuleClosed, "/payload/model", v2, line("agent.reasoned", `{"agentId":"abc","reasoning":"","model":"m"}`)},
		{RuleClosed, "/payload/agent", v2, line("node.started", `{"nodeId":"n1","typeId":"core.llm","agent":{"agentId":"x"}}`)},
		{RuleClosed, "/x", v2, strings.Replace(line("run.paused", `{}`), `{"eventId"`, `{"x":1,"eventId"`, 1)},
		{RuleClosed, "/payload/x-a", all[1:2], line("runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"terminate"},"x-a":1}`)},
		{RuleResult, "/payload/error", all[:1], line("agent.toolReturned", `{"agentId":"abc","toolId":"x","callId":"c","result":1,"error":{"code":"a","message":"b"}}`)},
		{RuleResult, "/payload/error", all[1:2], line("agent.toolReturned", `{"agentId":"abc","toolName":"x","callId":"c","outcome":1,"error":{"code":"a","message":"b"}}`)},
		{RuleDuration, "/payload/durationMs", all[1:2], line("agent.toolReturned", `{"agentId":"abc","toolName":"x","callId":"c","status":"forbidden","durationMs":0}`)},
		{RuleCausation, "/causationId", all[:1], strings.Replace(line("agent.toolReturned", `{"agentId":"abc","toolId":"x","callId":"c"}`), `,"causationId":"evt-0000000000-0006"`, "", 1)},
	} {
		for _, p := range c.profiles {
			_, err := NewDecoder(Options{Strict: true, Profile: p, Folded: true}).Decode(nil, []byte(c.line))
			var broken *agentevents.RuleError
			require.ErrorAs(t, err, &broken, "%s: %s", p, c.line)
			require.Equal(t, c.rule, broken.Rule, "%s: %s: %v", p, c.line, err)
			require.Equal(t, c.pointer, broken.Pointer, "%s: %s: %v", p, c.line, err)
			events, err := NewDecoder(Options{Profile: p}).Decode(nil, []byte(c.line))
			require.NoError(t, err, "without Strict it is read: %s", c.line)
			require.Len(t, events, 1)
		}
	}

	// Rules about several lines.
	for _, c := range []struct {
		rule  agentevents.Rule
		lines []string
	}{
		{RuleSequence, []string{line("run.paused", `{}`), line("run.paused", `{"reason":"x"}`)}},
		{RuleTerminal, []string{line("run.completed", `{"outputs":{}}`), strings.Replace(line("run.paused", `{}`), `"sequence":7`, `"sequence":8`, 1)}},
		{RuleCausation, []string{
			line("agent.tool-called", `{"agentId":"abc","toolName":"x","toolId":"x","callId":"c","inputs":1,"arguments":1}`),
			strings.Replace(line("agent.tool-returned", `{"agentId":"abc","toolName":"x","toolId":"x","callId":"c"}`), `"sequence":7`, `"sequence":8`, 1),
		}},
	} {
		d := NewDecoder(Options{Strict: true})
		_, err := d.Decode(nil, []byte(c.lines[0]))
		require.NoError(t, err)
		_, err = d.Decode(nil, []byte(c.lines[1]))
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, c.rule, broken.Rule)
	}
}

// Lines that are not events under any profile.
func TestBadLines(t *testing.T) {
	good := strings.TrimSuffix(strings.Split(golden[RFC0002], "\n")[10], "\n")
	for name, edit := range map[string][2]string{
		"torn":              {`,"sequence":10}`, ``},
		"run as number":     {`"runId":"r1"`, `"runId":1`},
		"null agent":        {`"agentId":"host:planner"`, `"agentId":null`},
		"text confidence":   {`"confidence":0.42`, `"confidence":"0.42"`},
		"huge confidence":   {`"confidence":0.42`, `"confidence":1e999`},
		"null type":         {`"type":"agent.decided"`, `"type":null`},
		"empty type":        {`"type":"agent.decided"`, `"type":""`},
		"no type":           {`"type":"agent.decided",`, ``},
		"payload text":      {`"payload":{`, `"payload":"x","x":{`},
		"twice":             {`"confidence":0.42`, `"confidence":0.42,"confidence":0.42`},
		"unknown twice":     {`"confidence":0.42`, `"x":1,"x":2`},
		"envelope twice":    {`"runId":"r1"`, `"runId":"r1","runId":"r1"`},
		"inside twice":      {`{"refund":true}`, `{"refund":true,"refund":true}`},
		"negative sequence": {`"sequence":10`, `"sequence":-1`},
		"half sequence":     {`"sequence":10`, `"sequence":1.5`},
		"huge sequence":     {`"sequence":10`, `"sequence":1e400`},
		"utf-8":             {`policy`, "pol\xfficy"},
		"surrogate":         {`policy`, `\ud800`},
		"rest":              {`"sequence":10}`, `"sequence":10} x`},
		"version":           {`"sequence":10`, `"sequence":10,"schemaVersion":"1"`},
	} {
		line := strings.Replace(good, edit[0], edit[1], 1)
		require.NotEqual(t, good, line, name)
		_, err := NewDecoder(Options{}).Decode(nil, []byte(line))
		require.Error(t, err, name)
		for _, err := range agentevents.NewReader(strings.NewReader(line+"\n"), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
			var le *agentevents.LineError
			require.ErrorAs(t, err, &le, name)
			require.Equal(t, 1, le.Line)
		}
	}
}

func TestFold(t *testing.T) {
	events := decodeAll(t, Options{Strict: true}, golden[RFC0002])
	folded := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for _, ev := range events {
		folded.Apply(ev)
	}
	s := folded.Snapshot("r1")
	require.Equal(t, "r1", s.RunID)
	require.Equal(t, "wf", s.WorkflowID)
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Len(t, s.ClosedCalls, 3)
	require.Empty(t, s.OpenCalls)
	require.Len(t, s.Clarifications, 1)
	require.Len(t, s.Messages, 1)
	require.Equal(t, "look up the order first", s.Agents["host:planner"].Reasoning)
	for _, v := range s.Violations {
		require.Contains(t, []agentevents.Rule{agentevents.RuleApprovalOpen}, v.Rule, v.Error()) // e19 rejects an approval that was not requested
	}
}

// A strict reader accepts and refuses the test vectors as the documents do.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.jsonl")
	require.NoError(t, err)
	verdicts := map[bool]int{}
	for line := range bytes.Lines(text) {
		var v struct {
			About, Version string
			Legal          bool
			Before         []json.RawMessage
			Line           json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &v))
		d := NewDecoder(Options{Strict: true, Profile: map[string]Profile{"v1": SchemaV1, "v2": SchemaV2}[v.Version]})
		for _, before := range v.Before {
			_, err := d.Decode(nil, before)
			require.NoError(t, err, v.About)
		}
		_, err := d.Decode(nil, v.Line)
		require.Equal(t, v.Legal, err == nil, "%s: %v", v.About, err)
		verdicts[v.Legal]++
	}
	require.Equal(t, map[bool]int{true: 19, false: 21}, verdicts)
}

// A handoff that does not name the delegating agent may still name the acting agent.
func TestHandoffWithoutFrom(t *testing.T) {
	for _, to := range []string{`"toAgentId":"host:writer"`, `"to":{"agentId":"host:writer"}`} {
		line := documents("agent.handoff", `{"agentId":"host:planner",`+to+`}`)
		out, losses := converted(t, RFC0002, RFC0002, line)
		require.Equal(t, `agent.handoff {"agentId":"host:planner","to":{"agentId":"host:writer"}}`, out)
		require.Empty(t, losses)
		out, losses = converted(t, RFC0002, SchemaV1, line)
		require.Equal(t, `agent.handoff {"fromAgentId":"host:planner","toAgentId":"host:writer"}`, out)
		require.Equal(t, []string{"made up /openwop/~0absent", "made up /payload/from/agentId"}, losses)
	}
}

// Normalised ids stay different and stable.
func TestNormalizeID(t *testing.T) {
	for _, form := range []IDForm{EventID, RunID, NodeID, AgentID, HandoffID, WorkflowID, InterruptID, TypeID, PlainID} {
		for _, p := range []Profile{SchemaV1, SchemaV2} {
			seen := map[string]string{}
			for _, id := range []string{"a", "b", "r/1", "é", "e/1", "x y", strings.Repeat("z", 300), strings.Repeat("é", 300), "acme/run-000000000001", "core.llm", "Core.LLM", "host:a"} {
				n := NormalizeID(p, form, id)
				require.True(t, ValidID(p, form, n), "%s %d %q -> %q", p, form, id, n)
				require.Equal(t, n, NormalizeID(p, form, n))
				require.Equal(t, "", seen[n])
				seen[n] = id
			}
		}
	}
	require.Equal(t, "any thing", NormalizeID(RFC0002, EventID, "any thing"))
	for _, c := range []struct {
		p          Profile
		form       IDForm
		id, begins string
	}{
		{SchemaV2, NodeID, "n 1:é", "n_1:__~"}, {SchemaV2, EventID, "e:1", "e_1~"}, {SchemaV2, RunID, "r/1", "local/r_1~"},
		{SchemaV2, TypeID, "Core.LLM~x:y", "core.tCore_LLM_x_y-"}, {SchemaV1, AgentID, "é", "__~"},
		{SchemaV1, EventID, strings.Repeat("a b.", 99), strings.Repeat("a b.", 15) + "~"}, {SchemaV2, RunID, strings.Repeat("a", 99), "local/" + strings.Repeat("a", 60) + "~"},
	} {
		require.Equal(t, c.begins+string(jsonwire.AppendHex(nil, jsonwire.Hash(c.id))), NormalizeID(c.p, c.form, c.id))
	}
	for id, want := range map[string]bool{
		"acme/run-000000000001": true, "anon:acme/run-000000000001": true, "acme": false, "acme/short": false, "a b/run-000000000001": false, "acme/run-" + strings.Repeat("0", 125): false,
	} {
		require.Equal(t, want, ValidID(SchemaV2, RunID, id), id)
	}
	for id, want := range map[string]bool{
		"core.llm": true, "core.lLM.x_1": true, "core": false, "coRe.llm": false, "core.LLM": false, "core.": false, "core." + strings.Repeat("a", 252): false,
	} {
		require.Equal(t, want, ValidID(SchemaV2, TypeID, id), id)
	}
	for p, types := range map[Profile]map[string]bool{
		SchemaV1: {
			"acme.done": true, "acme.Done_x.y-1": true, "acme": false, "acme.": false, "acme..x": false, "acme.x!": false, "Acme.x": false, "1cme.x": false, "{cme.x": false, "vendor.x": false,
		},
		SchemaV2: {
			"acme.done": true, "acme.a-b.c": true, "acme.aB": false, "acme.a--b": false, "acme.a-": false, "acme.a.": false, "acme.a.b.c": false, "acme_x.y": false, "agent.x": false, "openwop.x": false,
		},
	} {
		for typ, want := range types {
			require.Equal(t, want, vendorType(p, typ), "%s %s", p, typ)
		}
	}
}

func TestMessage(t *testing.T) {
	text := `{"messageId":"m1","from":"user","to":"abc","groupId":"g","content":[1],"ts":5,"role":"user","turnIndex":0,"agent":{"agentId":"abc","x":1},"speakerId":"s"}`
	m, err := ParseMessage([]byte(text))
	require.NoError(t, err)
	require.Equal(t, "m1", m.MessageID)
	out, err := AppendMessage(nil, m)
	require.NoError(t, err)
	require.Equal(t, text, string(out))
	for _, bad := range []string{``, `1`, `{`, `{"messageId":1}`, `{},"x":{}`, `{"messageId":null}`} {
		_, err := ParseMessage([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestStrictWantsLowDecisionsEscalated(t *testing.T) {
	line := func(sequence int, node, typ, payload string) string {
		return fmt.Sprintf(`{"eventId":"evt_%[1]d","runId":"run_1","nodeId":%[2]q,"type":%[3]q,"payload":%[4]s,"timestamp":"2026-05-19T10:00:00.000Z","sequence":%[1]d}`, sequence, node, typ, payload)
	}
	const completed = `{"nodeId":"n1"}`
	decided := func(confidence string) string {
		return `{"agentId":"host:planner","decision":1` + confidence + `}`
	}
	for name, c := range map[string]struct {
		o      Options
		lines  []string
		broken bool
	}{
		"nothing is done": {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.69`)), line(1, "n1", "node.completed", completed)}, broken: true},
		"the run completes": {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0`)), line(1, "n2", "node.completed", `{"nodeId":"n2"}`),
			line(2, "n2", "run.completed", `{}`)}, broken: true},
		"enough":    {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.7`)), line(1, "n1", "node.completed", completed)}},
		"no signal": {lines: []string{line(0, "n1", "agent.decided", decided(``)), line(1, "n1", "node.completed", completed)}},
		"suspended": {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.1`)),
			line(1, "n1", "node.suspended", `{"nodeId":"n1","interruptId":"int_1","reason":"low-confidence"}`), line(2, "n1", "node.completed", completed)}},
		"the orchestrator asks": {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.1`)),
			line(1, "n0", "runOrchestrator.decided", `{"agentId":"host:boss","decision":{"kind":"ask-user","prompt":"?"}}`), line(2, "n1", "node.completed", completed)}},
		"the run's threshold": {o: Options{ThresholdOf: func(string, string) float64 { return 0.5 }}, lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.5`)), line(1, "n1", "node.completed", completed)}},
		"one action for two":  {lines: []string{line(0, "n1", "agent.decided", decided(`,"confidence":0.1`)), line(1, "n1", "agent.decided", decided(`,"confidence":0.1`)), line(2, "n1", "clarification.requested", `{"nodeId":"n1","interruptId":"i","questions":[{"id":"q","question":"?"}]}`), line(3, "n1", "node.completed", completed)}, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Strict = true
			d := NewDecoder(c.o)
			var err error
			for i, l := range c.lines {
				_, err = d.Decode(nil, []byte(l))
				if i < len(c.lines)-1 {
					require.NoError(t, err)
				}
			}
			if !c.broken {
				require.NoError(t, err)
				return
			}
			var v *agentevents.RuleError
			require.ErrorAs(t, err, &v)
			require.Equal(t, RuleEscalate, v.Rule)
		})
	}
}

// Every loss has the kind of its event, whatever line the event becomes.
func TestLossesOfAKind(t *testing.T) {
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		enc := NewEncoder(EncoderOptions{Profile: p})
		want := map[agentevents.Kind]int{}
		times := 0
		for info := range agentevents.Kinds() {
			times++
			for n := range times%3 + 1 {
				ev := agentevents.Event{
					ID: "e1", RunID: "run-1", Scope: agentevents.Scope{NodeID: "node-1", SessionID: "s"}, Sequence: uint64(n),
					SchemaVersion: agentevents.SchemaVersion, Payload: agentevents.NewPayload(info.Kind),
				}
				if _, err := enc.Append(nil, ev); err == nil {
					want[info.Kind]++
				}
			}
		}
		got := map[agentevents.Kind]int{}
		for _, l := range enc.Losses() {
			if l.Pointer == "/sessionId" {
				require.Equal(t, dialect.Dropped, l.What)
				got[l.Kind] += l.Count
			}
		}
		require.Equal(t, want, got)
		require.Greater(t, len(want), 10)
	}
}

// Interleaved blocks of reasoning stay apart where the payloads are open.
func TestInterleavedReasoning(t *testing.T) {
	var events []agentevents.Event
	add := func(p agentevents.Payload) {
		ev := agentevents.Event{
			ID: "evt-000000000000" + string(rune('0'+len(events))), RunID: "acme/run-000000000001", AgentID: "host:a", Sequence: uint64(len(events)),
			Time: t0, SchemaVersion: agentevents.SchemaVersion, Payload: p,
		}
		events = append(events, ev)
	}
	for i := range 4 {
		add(&agentevents.AgentReasoningDelta{BlockID: []string{"b1", "b2"}[i%2], Delta: "x", Index: agentevents.Some(i / 2)})
	}
	add(&agentevents.AgentReasoned{BlockID: "b1", Reasoning: "xx"})
	add(&agentevents.AgentReasoned{BlockID: "b2", Reasoning: "xx"})
	for _, p := range []Profile{RFC0002, SchemaV1} {
		text, losses := encodeAll(t, p, events)
		require.Empty(t, losses)
		back := decodeAll(t, Options{Profile: p, Strict: true}, text)
		for i := range events {
			require.Equal(t, events[i].Payload, back[i].Payload)
		}
		require.Empty(t, foldOf(t, back).Violations)
	}
	text, losses := encodeAll(t, SchemaV2, events)
	require.NotContains(t, text, "blockId")
	require.Contains(t, losses, dialect.Loss{
		Kind: agentevents.KindAgentReasoned, Pointer: "/payload/blockId", What: dialect.Dropped, Detail: words.Why["dropped /payload/blockId"], Count: 2, RunID: "acme/run-000000000001", Sequence: 4,
	})
	rule, pointer := strictly(t, SchemaV2, `{"type":"agent.reasoned","payload":{"agentId":"abc","reasoning":"","blockId":"b"}}`)
	require.Equal(t, RuleClosed, rule)
	require.Equal(t, "/payload/blockId", pointer)
}

func foldOf(t *testing.T, events []agentevents.Event) *agentevents.RunSnapshot {
	t.Helper()
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		fold.Apply(ev)
	}
	return fold.Snapshot()
}

// A decoder lists the values that it makes up. No made-up time is in the year 1.
func TestDecoderListsMadeUpValues(t *testing.T) {
	events := decodeAll(t, Options{}, `{"runId":"r","type":"run.paused","payload":{"reason":""}}`+"\n"+strings.TrimSuffix(documents("run.paused", `{}`), "\n")+"\n"+`{"runId":"r","type":"run.paused","payload":{}}`)
	require.EqualValues(t, 2, events[2].Sequence, "the number of the line")
	require.EqualValues(t, `{"schemaVersion":2}`, events[1].Extra(string(Name)), "and nothing of the line before")

	d := NewDecoder(Options{})
	for _, line := range []string{
		`{"runId":"r","type":"run.paused","payload":{},"timestamp":"2026-05-19T10:00:07.000Z"}`,
		`{"eventId":"e2","runId":"r","type":"clarification.requested","payload":{"questions":[]},"sequence":1}`,
		`{"eventId":"e3","runId":"r","type":"clarification.resolved","payload":{"answers":{}},"timestamp":"2026-05-19T10:00:08.000Z","sequence":2}`,
	} {
		events, err := d.Decode(nil, []byte(line))
		require.NoError(t, err)
		require.Equal(t, strings.Contains(line, "timestamp"), agentevents.TimeKnown(events[0].Time))
		require.NotEmpty(t, events[0].ID)
	}
	made := map[string]int{}
	for _, l := range d.Losses() {
		require.Equal(t, dialect.Made, l.What)
		made[string(l.Kind)+" "+l.Pointer] = l.Count
	}
	require.Equal(t, map[string]int{
		" /id": 1, " /sequence": 1, " /timestamp": 1, "clarification.requested /payload/interruptId": 1,
	}, made, "the answer is to the open question")
}

func TestMessageIDsAreDeterministic(t *testing.T) {
	id := MessageID("r", "a", 0, `"hi"`)
	require.Equal(t, id, MessageID("r", "a", 0, `"hi"`))
	for _, other := range []string{MessageID("r2", "a", 0, `"hi"`), MessageID("r", "b", 0, `"hi"`), MessageID("r", "a", 1, `"hi"`), MessageID("r", "a", 0, `"ho"`)} {
		require.NotEqual(t, id, other)
	}
}
