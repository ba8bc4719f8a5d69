package agentevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A sinkLog is a sink that keeps everything it gets: events, lines and contexts.
type sinkLog struct {
	mu     sync.Mutex
	events []Event
	lines  []string
	ctx    context.Context // of the last event
}

func (s *sinkLog) WriteEvent(context.Context, Event) error {
	panic("WriteEvent of a LineSink was called")
}

func (s *sinkLog) WriteLine(ctx context.Context, ev Event, line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	s.events = append(s.events, ev)
	s.lines = append(s.lines, string(line))
	return nil
}

// forget empties the log.
func (s *sinkLog) forget() { s.events, s.lines = nil, nil }

func (s *sinkLog) last(t testing.TB) Event {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.events)
	return s.events[len(s.events)-1]
}

func (s *sinkLog) kinds() []Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []Kind
	for i := range s.events {
		kinds = append(kinds, s.events[i].Kind())
	}
	return kinds
}

// all yields the events as a reader would.
func (s *sinkLog) all(yield func(Event, error) bool) {
	for _, ev := range s.events {
		if !yield(ev, nil) {
			return
		}
	}
}

func (s *sinkLog) snapshot(t testing.TB) *RunSnapshot { return s.snapshotAs(t, "") }

func (s *sinkLog) snapshotAs(t testing.TB, l Lifecycle) *RunSnapshot {
	t.Helper()
	runs, err := foldSeq(s.all, FoldOptions{Lifecycle: l})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	return runs[0]
}

// startRun returns a run "r" that a sinkLog follows. recordOf records an act of an agent, though it
// may not have started.
func recordOf(t testing.TB, a *Agent, p Payload) {
	t.Helper()
	require.NoError(t, errOf(a.Record(t.Context(), Event{Payload: p})))
}

// beginAgent returns an agent that has started and gone the path.
func beginAgent(t testing.TB, r *Run, id string, path ...AgentStatus) *Agent {
	t.Helper()
	a := r.Agent(id)
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.To(t.Context(), path...))
	return a
}

func startRun(t testing.TB, o EmitterOptions) (*Run, *sinkLog) {
	t.Helper()
	e, log := startEmitter(t, o)
	r, err := e.Run("r")
	require.NoError(t, err)
	return r, log
}

func startEmitter(t testing.TB, o EmitterOptions) (*Emitter, *sinkLog) {
	t.Helper()
	log := &sinkLog{}
	o.Sinks = append([]Sink{log}, o.Sinks...)
	e, err := NewEmitter(o)
	require.NoError(t, err)
	return e, log
}

func countedIDs() func() string {
	var n atomic.Int64
	return func() string { return "id-" + strconv.FormatInt(n.Add(1), 10) }
}

func noon() time.Time { return time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC) }

// tracedSink notes in which order it is called.
type orderSink struct {
	note    func(string)
	name    string
	payload Payload
}

func (s *orderSink) WriteEvent(_ context.Context, ev Event) error {
	s.payload = ev.Payload
	s.note("write " + s.name)
	return nil
}
func (s *orderSink) Flush(context.Context) error { s.note("flush " + s.name); return nil }
func (s *orderSink) Close() error                { s.note("close " + s.name); return nil }

type tracerSink struct {
	SinkFunc
	trace func(context.Context, Event) TraceContext
}

func (s tracerSink) Trace(ctx context.Context, ev Event) TraceContext { return s.trace(ctx, ev) }

type committerSink struct {
	SinkFunc
	commit func(context.Context) error
}

func (s committerSink) Commit(ctx context.Context) error { return s.commit(ctx) }

func discard(context.Context, Event) error { return nil }

type redactorFunc func(f Place, text string) (string, error)

func (f redactorFunc) Redact(field Place, text string) (string, error) { return f(field, text) }

func TestEmitterWritePathGoesCheckStampRedactTraceDeliverCommit(t *testing.T) {
	var order []string
	note := func(s string) { order = append(order, s) }
	a, b := &orderSink{note: note, name: "a"}, &orderSink{note: note, name: "b"}
	tracer := tracerSink{
		func(context.Context, Event) error { note("write tracer"); return nil },
		func(_ context.Context, ev Event) TraceContext {
			note("trace")
			require.Equal(t, "clean", ev.Payload.(*TextCompleted).Text, "the tracer sees redacted text only")
			require.NotEmpty(t, ev.ID)
			return TraceContext{TraceID: "t1"}
		},
	}
	committer := committerSink{func(context.Context, Event) error { note("write committer"); return nil },
		func(context.Context) error { note("commit"); return nil }}
	r, log := startRun(t, EmitterOptions{
		Sinks: []Sink{a, tracer, committer, b},
		Clock: func() time.Time { note("time"); return noon() },
		NewID: func() string { note("id"); return "id" },
		Redaction: &Policy{Redactor: redactorFunc(func(Place, string) (string, error) {
			note("redact")
			return "clean", nil
		})},
	})
	require.NoError(t, r.Emit(t.Context(), &TextCompleted{Text: "dirty"}))
	require.Equal(t, []string{"time", "redact", "id", "trace", "write a", "write tracer", "write committer", "write b", "commit"}, order)
	require.Equal(t, "clean", a.payload.(*TextCompleted).Text)
	require.Same(t, a.payload, b.payload)
	require.Contains(t, log.lines[0], `"traceId":"t1"`)
	require.NotContains(t, log.lines[0], "dirty")

	// A refused payload gets no further than the check.
	order = nil
	err := r.Emit(t.Context(), &ToolReturned{CallID: "none", ToolID: "t", Status: ToolStatusOK})
	require.ErrorAs(t, err, new(*RuleError))
	require.Equal(t, []string{"time"}, order)
	require.Len(t, log.events, 1)
}

func TestEmitterSequencesHaveNoGapsAndRefusedPayloadsConsumeNone(t *testing.T) {
	r, log := startRun(t, EmitterOptions{MaxLine: 4096})
	for i := range 10 {
		require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: strconv.Itoa(i)}))
		err := r.Emit(t.Context(), &ApprovalGranted{ApprovalID: "a"})
		var broken *RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, RuleApprovalOpen, broken.Rule)
		require.EqualValues(t, i+1, broken.Sequence, "the one it would have got")
		// The length of the line is checked late, and consumes none either.
		err = r.Emit(t.Context(), call(strings.Repeat("c", 5000)))
		require.ErrorAs(t, err, &broken)
		require.Equal(t, RuleLineLength, broken.Rule)
	}
	for i := range log.events {
		require.EqualValues(t, i, log.events[i].Sequence)
	}
	require.Len(t, log.events, 10)
}

func TestEmitterRefusedCallLeavesNoState(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{MaxLine: 4096})
	a := beginAgent(t, r, "a", StatusToolCall)
	require.Error(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: strings.Repeat("t", 5000)}))
	require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"}), "the call id was not taken")
}

func TestEmitterFillsTheEnvelope(t *testing.T) {
	at := time.Date(2026, 5, 5, 14, 0, 0, 123_999_999, time.FixedZone("", 7200))
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Clock: func() time.Time { return at }})
	beginAgent(t, r, "a")
	require.NoError(t, r.With(Scope{SessionID: "s"}).Agent("a").Emit(t.Context(), &TextDelta{Delta: "x"}))
	ev := log.last(t)
	require.Equal(t, time.Date(2026, 5, 5, 12, 0, 0, 123_000_000, time.UTC), ev.Time, "UTC, whole milliseconds, not rounded up")
	ev.ID, ev.Time = "", time.Time{}
	require.Equal(t, Event{RunID: "r", Sequence: 1, Scope: Scope{SessionID: "s"}, AgentID: "a", Step: Some(0), SchemaVersion: SchemaVersion, Payload: &TextDelta{Delta: "x"}}, ev)
}

func TestRecordKeepsTheCallersFieldsAndSetsTheLibrarys(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	given := Event{
		ID: "mine", Sequence: 77, Time: time.Date(2020, 1, 2, 3, 4, 5, 123_456_789, time.FixedZone("", 3600)), RunID: "r",
		Scope:   Scope{SessionID: "s", TaskID: "t", WorkflowID: "w", Phase: "p", NodeID: "n", NodeRunID: "nr"},
		AgentID: "a", Actor: "user", ParentAgentID: "pa", ParentCallID: "pc", Step: Some(5),
		TraceID: "tr", SpanID: "sp", ParentSpanID: "ps", CausationID: "cause", SchemaVersion: "0.1", Marks: MarkSynthetic | MarkReplayed,
		Payload: &TextDelta{Delta: "x"},
	}
	require.NoError(t, errOf(r.With(Scope{SessionID: "other", NodeID: "other"}).Record(t.Context(), given)))
	want := given
	want.Sequence, want.SchemaVersion, want.Time = 0, SchemaVersion, given.Time.UTC()
	require.Equal(t, want, log.last(t))

	// The scope of the handle stands where the event has none.
	require.NoError(t, errOf(r.With(Scope{SessionID: "s2"}).Record(t.Context(), Event{Scope: Scope{TaskID: "t2"}, Payload: &TextDelta{}})))
	require.Equal(t, Scope{SessionID: "s2", TaskID: "t2"}, log.last(t).Scope)
	require.EqualValues(t, 1, log.last(t).Sequence)

	_, err := r.Record(t.Context(), Event{RunID: "another", Payload: &TextDelta{}})
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleRun, broken.Rule)

	// An agent's handle fills in the agent, and leaves another one.
	require.NoError(t, errOf(r.Agent("b").Record(t.Context(), Event{Payload: &TextDelta{}})))
	require.Equal(t, "b", log.last(t).AgentID)
	require.NoError(t, errOf(r.Agent("b").Record(t.Context(), Event{AgentID: "c", Payload: &TextDelta{}})))
	require.Equal(t, "c", log.last(t).AgentID)
}

func TestRecordedLineReadsBackAsTheEvent(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Mode: ModeObserve, Redaction: &Policy{Off: true}})
		require.NoError(t, errOf(r.Record(t.Context(), Event{AgentID: "a<>\u2028", Time: noon().Add(1), Actor: "\"\\", Payload: p})))
		ev := log.last(t)
		var back Event
		require.NoError(t, back.UnmarshalJSON([]byte(log.lines[0])))
		require.Equal(t, ev, back)
		again, err := back.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, log.lines[0], string(again))
	})
}

func TestRecordKeepsMembersThatNoFieldHolds(t *testing.T) {
	line := `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.text","future":{"a":[1]},"runId":"r","schemaVersion":"1.0","payload":{"text":"x","more":true}}`
	var ev Event
	require.NoError(t, ev.UnmarshalJSON([]byte(line)))
	r, log := startRun(t, EmitterOptions{})
	require.NoError(t, errOf(r.Record(t.Context(), ev)))
	require.Equal(t, line, log.lines[0])
}

var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestMintedRunCallAndMessageIDsAreUUIDv7(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{})
	r, err := e.Run("")
	require.NoError(t, err)
	require.Regexp(t, uuidV7, r.ID())
	a := beginAgent(t, r, "a", StatusToolCall)
	c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
	require.NoError(t, err)
	require.Regexp(t, uuidV7, c.ID)
	require.Regexp(t, uuidV7, log.last(t).ID)
	require.NoError(t, a.Emit(t.Context(), &MessageCreated{Message: ConversationMessage{Content: `1`}}))
	require.Regexp(t, uuidV7, log.last(t).Payload.(*MessageCreated).Message.MessageID)
}

func TestNewIDAndClockMakeALogRepeatable(t *testing.T) {
	write := func() []string {
		e, log := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict, NewID: countedIDs(), Clock: noon})
		r, err := e.Run("")
		require.NoError(t, err)
		a := beginAgent(t, r, "a", StatusToolCall)
		_, err = a.Do(t.Context(), &ToolCalled{ToolID: "tool", Arguments: `{"x":1}`}, func(context.Context) (JSON, error) { return `2`, nil })
		require.NoError(t, err)
		require.NoError(t, a.Emit(t.Context(), &MessageCreated{Message: ConversationMessage{Content: `"hi"`}}))
		return log.lines
	}
	first := write()
	require.Len(t, first, 5)
	require.Equal(t, first, write())
	require.Contains(t, first[0], `"runId":"id-1"`)
}

// steps lists the step of every event; -1 for none.
func steps(log *sinkLog) []int {
	var out []int
	for i := range log.events {
		if s := log.events[i].Step; s.OK {
			out = append(out, s.V)
		} else {
			out = append(out, -1)
		}
	}
	return out
}

func TestStepRisesWhenTheAgentThinksAgain(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict})
	a := r.Agent("a")
	emit := func(p Payload) { t.Helper(); require.NoError(t, a.Emit(t.Context(), p)) }
	emit(&AgentStarted{})
	emit(&AgentReasoned{Reasoning: "hm"})
	require.NoError(t, a.To(t.Context(), StatusToolCall, StatusToolResult, StatusResponse, StatusReflect))
	emit(&AuditChecked{CheckpointID: "c", Result: AuditPass})
	require.NoError(t, a.To(t.Context(), StatusThinking))
	emit(&TextDelta{Delta: "x"})
	require.NoError(t, a.To(t.Context(), StatusBlockedOnClarification, StatusThinking))
	require.NoError(t, beginAgent(t, r, "other").Emit(t.Context(), &TextDelta{Delta: "its own count"}))
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "of nobody"}))
	emit(&AgentEnded{Outcome: OutcomePartial})
	require.Equal(t, []int{
		-1, 0, // start, reasoned
		0, 0, 0, 0, // tool_call … reflect
		-1,   // audit
		1, 1, // thinking, text
		1, 2, // blocked, thinking
		-1, 0, -1, // other, nobody
		-1, // end
	}, steps(log))
	require.Equal(t, 3, log.last(t).Payload.(*AgentEnded).Totals.V.Steps)
}

func TestStepRisesAfterARestart(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict})
	a := r.Agent("a")
	for _, p := range []Payload{&AgentStarted{}, &TextCompleted{}, &AgentEnded{}, &AgentStarted{}, &TextDelta{}, &TextCompleted{}, &AgentEnded{}} {
		require.NoError(t, a.Emit(t.Context(), p))
	}
	require.Equal(t, []int{-1, 0, -1, -1, 1, 1, -1}, steps(log))
	require.Equal(t, Some(Totals{Steps: 1}), log.last(t).Payload.(*AgentEnded).Totals, "totals are of the attempt")
}

func TestRecordMaySetTheStepAndItStays(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict})
	a := beginAgent(t, r, "a")
	require.NoError(t, errOf(a.Record(t.Context(), Event{Step: Some(7), Payload: &TextDelta{}})))
	require.NoError(t, a.Emit(t.Context(), &TextDelta{}))
	_, err := a.Record(t.Context(), Event{Step: Some(6), Payload: &TextDelta{}})
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleStepMonotonic, broken.Rule)
	require.Error(t, errOf(a.Record(t.Context(), Event{Step: Some(7), Payload: &AgentStarted{}})), "starts have no step")
	require.Equal(t, []int{-1, 7, 7}, steps(log))
}

func TestEmitFillsInFromTotalsCausationAndMessage(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Clock: noon, NewID: countedIDs()})
	a := beginAgent(t, r, "a")
	emit := func(p Payload) Event { t.Helper(); require.NoError(t, a.Emit(t.Context(), p)); return log.last(t) }

	move := &AgentTransition{To: StatusToolCall}
	require.Equal(t, StatusThinking, emit(move).Payload.(*AgentTransition).From)
	require.Equal(t, &AgentTransition{To: StatusToolCall}, move)

	call := emit(&ToolCalled{CallID: "c", ToolID: "t"})
	require.Equal(t, call.ID, emit(&ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}).CausationID)
	require.Empty(t, emit(&ToolReturned{CallID: "once", ToolID: "t", Status: ToolStatusOK, OneEvent: true}).CausationID)
	require.NotEmpty(t, emit(&ToolReturned{ToolID: "t", Status: ToolStatusOK, OneEvent: true}).Payload.(*ToolReturned).CallID)
	emit(&ToolCalled{CallID: "c", ToolID: "t"})
	_, err := a.Record(t.Context(), Event{CausationID: "wrong", Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}})
	var broken *RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleToolCausation, broken.Rule)
	require.Equal(t, StatusToolCall, emit(&AgentTransition{To: StatusToolResult}).Payload.(*AgentTransition).From)

	asked := emit(&ModelCalled{ModelCallID: "m"})
	require.Equal(t, asked.ID, emit(&ModelReturned{ModelCallID: "m"}).CausationID)
	require.Empty(t, emit(&ModelReturned{ModelCallID: "once", OneEvent: true}).CausationID)
	require.NotEmpty(t, emit(&ModelReturned{OneEvent: true}).Payload.(*ModelReturned).ModelCallID)

	message := &MessageCreated{Message: ConversationMessage{Content: `"x"`}}
	got := emit(message).Payload.(*MessageCreated).Message
	require.NotEmpty(t, got.MessageID)
	require.Equal(t, "a", got.From)
	require.Equal(t, noon().UnixMilli(), got.TS)
	require.Equal(t, &MessageCreated{Message: ConversationMessage{Content: `"x"`}}, message)
	full := &MessageCreated{Message: ConversationMessage{MessageID: "m", From: "f", TS: 5, Content: `1`}}
	require.Same(t, full, emit(full).Payload, "nothing to fill in, nothing copied")

	emit(&AuditChecked{CheckpointID: "c", Result: AuditPass})
	emit(&AuditChecked{CheckpointID: "c", Result: AuditFail})
	emit(&AuditChecked{CheckpointID: "c", Result: AuditWarn})
	end := &AgentEnded{Outcome: OutcomePartial}
	require.Equal(t, Some(Totals{Steps: 1, ToolCalls: 4, AuditCheckpoints: 3, AuditsPassed: 1, AuditsFailed: 1}), emit(end).Payload.(*AgentEnded).Totals)
	require.False(t, end.Totals.OK)

	// An agent without events gets zero totals; stated totals are kept.
	require.NoError(t, r.Agent("b").Emit(t.Context(), &AgentEnded{}))
	require.Equal(t, Some(Totals{}), log.last(t).Payload.(*AgentEnded).Totals)
	require.NoError(t, r.Agent("c").Emit(t.Context(), &AgentEnded{Totals: Some(Totals{Steps: 9})}))
	require.Equal(t, Some(Totals{Steps: 9}), log.last(t).Payload.(*AgentEnded).Totals)
}

// A member that a payload's JSON lacked is written if a field, or the emitter, has it.
func TestEmitOfDecodedPayloads(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleRelaxed, Clock: noon})
	a := beginAgent(t, r, "a")
	var move AgentTransition
	require.NoError(t, json.Unmarshal([]byte(`{"to":"tool_call"}`), &move))
	require.NoError(t, a.Emit(t.Context(), &move))
	require.Equal(t, StatusThinking, log.last(t).Payload.(*AgentTransition).From)

	var message MessageCreated
	require.NoError(t, json.Unmarshal([]byte(`{"message":{"content":"hi"}}`), &message))
	require.NoError(t, a.Emit(t.Context(), &message), "the emitter fills in all that it lacks")

	var audit AuditChecked
	require.NoError(t, json.Unmarshal([]byte(`{"auditId":"x"}`), &audit))
	require.ErrorContains(t, a.Emit(t.Context(), &audit), "/payload/checkpointId: is required")
	audit.CheckpointID, audit.Result, audit.Duration = "c", AuditPass, time.Second
	require.NoError(t, a.Emit(t.Context(), &audit))

	var loop LoopRoundCompleted
	require.NoError(t, json.Unmarshal([]byte(`{}`), &loop))
	require.ErrorContains(t, a.Emit(t.Context(), &loop), "is required")
}

func TestCallersPayloadIsNeverWrittenTo(t *testing.T) {
	secrets := &Secrets{}
	require.NoError(t, secrets.Add("9007199254740993", "xxxx"))
	policies := map[string]*Policy{
		"default": nil,
		"scan":    {Secrets: secrets, Keys: []string{"big"}, Reasoning: VerbositySummary, ReasoningTokens: 1},
		"mask":    {Content: ActionMask, Meta: ActionMask, Reasoning: VerbosityOff},
		"drop":    {Content: ActionDrop, Meta: ActionDrop},
		"change": {Redactor: redactorFunc(func(_ Place, s string) (string, error) {
			return strings.ToUpper(s) + "!", nil
		})},
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
				r, _ := startRun(t, EmitterOptions{Mode: ModeObserve, Redaction: policy})
				before := filledPayload(t, k)
				require.Equal(t, before, p)
				require.NoError(t, r.Agent("a").Emit(t.Context(), p))
				require.Equal(t, before, p)

				empty := NewPayload(k)
				require.NoError(t, r.Agent("a").Emit(t.Context(), empty))
				require.Equal(t, NewPayload(k), empty)
			})
		})
	}
}

func TestEnforceRefusesAndObserveRecordsAndReports(t *testing.T) {
	illegal := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}
	var seen []*RuleError
	r, log := startRun(t, EmitterOptions{OnViolation: func(v *RuleError) { seen = append(seen, v) }})
	err := r.Agent("a").Emit(t.Context(), illegal)
	require.Empty(t, log.events)
	require.Equal(t, []error{err}, []error{seen[0]}, "a refusal is told once, and returned")
	require.True(t, seen[0].Refused)

	seen = nil
	var r2 *Run
	r2, log = startRun(t, EmitterOptions{Mode: ModeObserve, OnViolation: func(v *RuleError) {
		seen = append(seen, v)
		require.NoError(t, r2.Emit(t.Context(), &TextDelta{}), "no lock is held")
	}})
	require.NoError(t, r2.Agent("a").Emit(t.Context(), illegal))
	require.Len(t, seen, 1)
	require.Equal(t, RuleToolCallOpen, seen[0].Rule)
	require.Equal(t, log.events[0].ID, seen[0].EventID)
	require.False(t, seen[0].Refused)
	require.Equal(t, []Kind{KindToolReturned, KindTextDelta}, log.kinds())
	require.Equal(t, MarkIllegal, log.events[0].Marks)
	require.Zero(t, log.events[1].Marks)

	// Without OnViolation nothing happens but the recording.
	r, log = startRun(t, EmitterOptions{Mode: ModeObserve})
	require.NoError(t, r.Agent("a").To(t.Context(), StatusConverged, StatusThinking, StatusReflect))
	require.Len(t, log.events, 3)
	require.EqualValues(t, 2, log.snapshot(t).ViolationCount, "the fold also reports transitions that the relaxed table forbids, as the log names none")
}

func TestObserveRecordsOnlyReadableLines(t *testing.T) {
	for name, ev := range map[string]Event{
		"nil payload":             {},
		"typed nil":               {Payload: (*TextDelta)(nil)},
		"unknown of a known kind": {Payload: &Unknown{Type: KindTextDelta}},
		"id in the payload":       {Payload: &ToolCalled{CallID: "\xff", ToolID: "t"}},
		"after a missing one":     {Payload: &ToolCalled{CallID: "", ToolID: "\xff"}},
		"id in the envelope":      {AgentID: "\xff", Payload: &TextDelta{}},
		"after a negative number": {Payload: &BudgetExceeded{Budget: "", Limit: math.NaN()}},
		"not a number":            {Payload: &BudgetExceeded{Budget: "b", Limit: math.NaN()}},
		"infinite":                {Payload: &AgentDecided{Confidence: Some(math.Inf(1))}},
		"infinite cost":           {Payload: &UsageObserved{CostUSD: Some(math.Inf(1))}},
		"raw JSON":                {Payload: &ToolCalled{CallID: "c", ToolID: "t", Arguments: "{"}},
		"year":                    {Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), Payload: &TextDelta{}},
		"year in the payload":     {Payload: &CheckpointResumed{ResumedAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		"closed word":             {Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Mode: ModeObserve})
			_, err := r.Record(t.Context(), ev)
			if err != nil {
				require.ErrorAs(t, err, new(*RuleError))
				require.Empty(t, log.events)
				return
			}
			// Recorded: then the line must carry it.
			var back Event
			require.NoError(t, back.UnmarshalJSON([]byte(log.lines[0])), "recorded a line that cannot be read: %s", log.lines[0])
			require.Equal(t, log.events[0], back)
		})
	}
}

// hostile is a payload of another package: it satisfies the interface by
// embedding, and all its methods panic.
type hostile struct{ Payload }

func (hostile) String() string               { panic("String was called") }
func (hostile) Error() string                { panic("Error was called") }
func (hostile) MarshalJSON() ([]byte, error) { panic("MarshalJSON was called") }
func (hostile) GoString() string             { panic("GoString was called") }

func TestForeignPayloadsAreRefusedWithoutCallingTheirMethods(t *testing.T) {
	for _, mode := range []Mode{ModeEnforce, ModeObserve} {
		r, log := startRun(t, EmitterOptions{Mode: mode})
		for _, p := range []Payload{nil, (*ToolCalled)(nil), (*Unknown)(nil), hostile{}, &hostile{}, (*hostile)(nil), hostile{&TextDelta{}}, &hostile{&TextDelta{}}} {
			for _, emit := range []func(context.Context, Payload) error{r.Emit, r.Agent("a").Emit} {
				err := emit(t.Context(), p)
				var broken *RuleError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, RulePayload, broken.Rule)
				require.Equal(t, "r", broken.RunID)
				require.NotEmpty(t, err.Error())
			}
		}
		require.Empty(t, log.events)
	}
	require.Contains(t, sealError((*ToolCalled)(nil)).Detail, "nil *agentevents.ToolCalled")
}

func TestConcurrentSafeEmittersKeepTheOrderOfEveryRunInEverySink(t *testing.T) {
	const goroutines, runs, each = 64, 32, 20
	var plain struct {
		sync.Mutex
		events []Event
	}
	behind := &sinkLog{}
	buffer := Buffered(behind, 64, OverflowBlock)
	e, log := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{
		SinkFunc(func(_ context.Context, ev Event) error {
			plain.Lock()
			defer plain.Unlock()
			plain.events = append(plain.events, ev)
			return nil
		}),
		buffer,
	}})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				r, err := e.Run("run " + strconv.Itoa((g+i)%runs))
				if err != nil {
					t.Error(err)
					return
				}
				a := r.Agent("agent " + strconv.Itoa(g))
				err = errors.Join(a.Emit(context.Background(), &AgentStarted{}), a.To(context.Background(), StatusToolCall))
				_, done := a.Do(context.Background(), &ToolCalled{ToolID: "t", Arguments: `{"i":1}`}, func(context.Context) (JSON, error) { return `1`, nil })
				if err := errors.Join(err, done, a.Emit(context.Background(), &TextDelta{Delta: "x"}), r.Emit(context.Background(), &TurnStarted{})); err != nil {
					t.Error(err)
				}
				if i%5 == 0 {
					_ = e.Flush(context.Background())
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, e.Close(t.Context()))
	for _, events := range [][]Event{log.events, plain.events, behind.events} {
		require.Len(t, events, goroutines*each*6)
		next := map[string]uint64{}
		for i := range events {
			require.Equal(t, next[events[i].RunID], events[i].Sequence)
			next[events[i].RunID]++
		}
		require.Len(t, next, runs)
	}
	snapshots, err := foldSeq(log.all, FoldOptions{})
	require.NoError(t, err)
	for _, s := range snapshots {
		require.Empty(t, s.Violations)
	}
}

func TestConcurrentSafeCloseRunAndEmit(t *testing.T) {
	for range 50 {
		e, log := startEmitter(t, EmitterOptions{MaxRuns: 8})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 10 {
					r, err := e.Run(fmt.Sprint(g, "/", i))
					if err != nil {
						return
					}
					_ = r.Emit(context.Background(), &RunStarted{})
					if i%2 == 0 {
						_ = r.Emit(context.Background(), &RunCompleted{})
					} else {
						_ = r.Close()
					}
				}
			})
		}
		for range 3 {
			wg.Go(func() { _ = e.Close(context.Background()) })
		}
		wg.Wait()
		require.NoError(t, e.Close(t.Context()))
		n := len(log.events)
		r := &Run{s: &runState{e: e, m: newMachine(&RunState{RunID: "x"}), end: new(ending)}}
		require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
		require.Len(t, log.events, n)
	}
}

func TestTheLastReleasedRunsAreRemembered(t *testing.T) {
	const runs = 70_000
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	release := func(i int) {
		r, err := e.Run(strconv.Itoa(i))
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	before := heapInUse()
	for i := range runs {
		release(i)
	}
	require.Less(t, (heapInUse()-before)/maxReleased, int64(300), "bytes of an id")
	require.Len(t, e.released, maxReleased)
	require.Len(t, e.order, maxReleased)
	for i, want := range map[int]error{0: nil, runs - maxReleased - 1: nil, runs - maxReleased + 2: ErrRunReleased, runs - 1: ErrRunReleased} {
		_, err := e.Run(strconv.Itoa(i))
		require.ErrorIs(t, err, want)
	}

	// A release changes one place, however many are remembered.
	order := slices.Clone(e.order)
	release(runs)
	changed := 0
	for i := range order {
		if order[i] != e.order[i] {
			changed++
		}
	}
	require.Equal(t, 1, changed)
}

func TestARunThatIsReleasedAgainIsRememberedFromThenOn(t *testing.T) {
	e, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	release := func(r *Run, err error) {
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	release(e.Run("again"))
	release(e.Run("once"))
	for i := range maxReleased - 2 {
		release(e.Run(strconv.Itoa(i)))
	}
	release(e.Resume(&RunSnapshot{RunState: RunState{RunID: "again"}}))
	release(e.Run("x"))
	_, err = e.Run("again")
	require.ErrorIs(t, err, ErrRunReleased)
	_, err = e.Run("once")
	require.NoError(t, err)
}

// Ids that no line can carry are minted by the library.
func TestNewIDThatGivesNone(t *testing.T) {
	for _, bad := range []string{"", "\xff"} {
		e, log := startEmitter(t, EmitterOptions{NewID: func() string { return bad }})
		r, err := e.Run("")
		require.NoError(t, err)
		a := r.Agent("a")
		require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
		require.NoError(t, a.To(t.Context(), StatusToolCall))
		c, err := a.Call(t.Context(), &ToolCalled{ToolID: "t"})
		require.NoError(t, err)
		require.NoError(t, c.Return(t.Context(), "1"))
		for _, id := range []string{r.ID(), c.ID, log.events[0].ID, log.events[1].ID} {
			require.Len(t, id, 36)
		}
		require.NotEqual(t, log.events[0].ID, log.events[1].ID)
		require.Empty(t, log.snapshot(t).Violations)
	}
}

func TestSequencesEndInPlaceOfBeginningAgain(t *testing.T) {
	e, log := startEmitter(t, EmitterOptions{})
	r, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: math.MaxUint64 - 1}})
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.ErrorContains(t, r.Emit(t.Context(), &TextDelta{}), "used up")
	require.Len(t, log.events, 1)
}

// The bounds are today's allocations of Emit of a ready payload into a discarding LineSink.
func TestEmitDoesNotAllocate(t *testing.T) {
	o := EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{lineSink(func(Event, []byte) {})}}
	e, err := NewEmitter(o)
	require.NoError(t, err)
	r, err := e.Run("r")
	require.NoError(t, err)
	a := beginAgent(t, r, "a")
	b := beginAgent(t, r, "b", StatusToolCall)
	ctx := context.Background()

	round := []*AgentTransition{{From: StatusThinking, To: StatusBlockedOnClarification}, {From: StatusBlockedOnClarification, To: StatusThinking}}
	n := 0
	called := &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"q":[1,"two"]}`}
	returned := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, Result: `{"n":1}`, Duration: Some(time.Second)}
	text := &TextDelta{BlockID: "b", Delta: "some words"}
	for _, tc := range []struct {
		name string
		emit func() error
	}{
		{"transition", func() error { n++; return a.Emit(ctx, round[(n-1)%2]) }},
		{"text delta", func() error { return a.Emit(ctx, text) }},
		{"tool called and returned", func() error { return errors.Join(b.Emit(ctx, called), b.Emit(ctx, returned)) }},
	} {
		// A slab of 64 ids is one allocation, which rounds to none.
		allocs := testing.AllocsPerRun(1000, func() {
			if err := tc.emit(); err != nil {
				panic(err)
			}
		})
		require.Zero(t, allocs, tc.name)
	}
}

// Emitting a kind that comes often allocates nothing, and neither does writing a
// line of any kind.
func TestNoKindAllocates(t *testing.T) {
	e, err := NewEmitter(EmitterOptions{Lifecycle: LifecycleStrict, Sinks: []Sink{lineSink(func(Event, []byte) {})}})
	require.NoError(t, err)
	repeated := 0
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		r, err := e.Run("")
		require.NoError(t, err)
		a := r.With(Scope{WorkflowID: "w", Phase: "p"}).Agent("a")
		ctx := context.Background()
		if p, ok := p.(*AgentStarted); ok {
			p.Lifecycle = "" // one that is not the emitter's is replaced in a copy
		}
		if p.kind() != KindAgentStarted {
			require.NoError(t, a.Emit(ctx, &AgentStarted{}))
			require.NoError(t, a.To(ctx, StatusToolCall))
		}
		first := a.Emit(ctx, p)
		if again := a.Emit(ctx, p); first == nil && again == nil && k != KindTurnStarted && k != KindStepStarted { // more of these stay open
			repeated++
			require.Zero(t, leastAllocs(100, func() {
				if err := a.Emit(ctx, p); err != nil {
					panic(err)
				}
			}))
		}
		ev := Event{ID: "e", RunID: "r", AgentID: "a", Time: time.UnixMilli(1), Payload: p}
		buf := make([]byte, 0, 64<<10)
		require.Zero(t, leastAllocs(100, func() {
			if _, err := ev.AppendJSON(buf); err != nil {
				panic(err)
			}
		}))
	})
	require.Greater(t, repeated, 50, "of the catalog's kinds")
}

func TestEventsOfAgentsShareNothingMutable(t *testing.T) {
	// Two emits of the same payload give two events with the same, unchanged
	// payload: it is kept, not copied.
	r, log := startRun(t, EmitterOptions{})
	p := &TextDelta{Delta: "x"}
	require.NoError(t, r.Emit(t.Context(), p))
	require.NoError(t, r.Emit(t.Context(), p))
	require.Same(t, p, log.events[0].Payload)
	require.NotEqual(t, log.events[0].ID, log.events[1].ID)
	require.True(t, slices.IsSortedFunc(log.events, func(a, b Event) int { return strings.Compare(a.ID, b.ID) }))
	require.True(t, reflect.DeepEqual(p, &TextDelta{Delta: "x"}))
}

// errOf returns the error of two results.
func errOf[T any](_ T, err error) error { return err }

// A send or reply that nobody can get is recorded as rejected, whoever records it.
func TestMisroutedCommandsAreRejected(t *testing.T) {
	for _, c := range []struct {
		given    CommandReceived
		rejected string
	}{
		{CommandReceived{Command: Command{Type: CommandSend, Message: "hi"}}, "runId is missing"},
		{CommandReceived{Command: Command{Type: CommandReply, PromptID: "p", Content: "yes"}}, "runId is missing"},
		{CommandReceived{Command: Command{Type: CommandSend}, Rejected: "not now"}, "not now"},
		{CommandReceived{Command: Command{Type: CommandSend, RunID: "x", Message: "hi"}}, ""},
		{CommandReceived{Command: Command{Type: CommandResume}}, ""},
		{CommandReceived{Command: Command{Type: "pause"}}, ""},
	} {
		given := c.given
		ev, _ := emitted(t, nil, &given)
		want := c.given
		want.Rejected = c.rejected
		require.Equal(t, &want, ev.Payload)
		require.Equal(t, c.given, given, "the caller's payload stays")
	}
}

// A snapshot in the form of the resume specification has no position in the log.
func TestResumeWithoutAPosition(t *testing.T) {
	em, err := NewEmitter(EmitterOptions{})
	require.NoError(t, err)
	s := &RunSnapshot{RunState: RunState{RunID: "r"}, Status: RunStatusPaused, NodeStatus: map[string]NodeStatus{"n": NodeStatusRunning}}
	_, err = em.Resume(s)
	require.ErrorContains(t, err, `the snapshot of run "r" has no NextSequence`)
	s.NextSequence = 7
	_, err = em.Resume(s)
	require.NoError(t, err)
	_, err = em.Resume(&RunSnapshot{RunState: RunState{RunID: "new"}})
	require.NoError(t, err)
}

// The summary of a turn that never started opens none, also for a run that goes on.
func TestResumeAfterASummary(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	require.NoError(t, r.Emit(t.Context(), &TurnSummarized{Text: "x"}))
	require.NoError(t, r.Close())
	r, err := r.s.e.Resume(log.snapshot(t))
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
	require.ErrorContains(t, r.Emit(t.Context(), &TurnEnded{}), string(RuleTurnOpen))
}

func TestResumeFromAStaleSnapshot(t *testing.T) {
	failing := false
	r, log := startRun(t, EmitterOptions{Sinks: []Sink{SinkFunc(func(context.Context, Event) error {
		if failing {
			return errors.New("full")
		}
		return nil
	})}})
	e := r.s.e
	emit := func(r *Run, p Payload) *RunSnapshot {
		failed := r.Emit(t.Context(), p) != nil
		require.Equal(t, failing, failed)
		return log.snapshot(t)
	}
	resumed := func(s *RunSnapshot) *Run {
		t.Helper()
		r, err := e.Resume(s)
		require.NoError(t, err)
		return r
	}
	refused := func(s *RunSnapshot) {
		t.Helper()
		_, err := e.Resume(s)
		require.ErrorContains(t, err, "is stale: it goes on with sequence 1, and the log has the events before 2")
	}
	first := emit(r, &RunStarted{})
	require.NoError(t, r.Close())
	r = resumed(first)
	second := emit(r, &RunPaused{})
	require.NoError(t, r.Close())
	refused(first)
	require.NoError(t, resumed(second).Close())
	refused(first)

	r = resumed(second)
	failing = true
	emit(r, &UsageObserved{}) // which a log may not have
	failing = false
	require.NoError(t, r.Close())
	r = resumed(second)
	third := emit(r, &RunCompleted{})
	emit(r, &SessionCompleted{}) // the handle that is left
	_, err := e.Resume(third)
	require.ErrorContains(t, err, "goes on with sequence 3, and the log has the events before 4")
}

// A log after other sinks has the events, too, and their deltas if it gets them. A toldLog is a log
// of lines that is told where a run goes on.
type toldLog struct{}

func (toldLog) WriteEvent(context.Context, Event) error        { return nil }
func (toldLog) WriteLine(context.Context, Event, []byte) error { return nil }
func (toldLog) ResumeRun(context.Context, *RunSnapshot) error  { return nil }

func TestResumeFromAStaleSnapshotBySink(t *testing.T) {
	writer := func() Sink { return NewWriter(io.Discard, WriterOptions{}) }
	for name, test := range map[string]struct {
		sink   Sink
		deltas bool
	}{
		"nothing":        {SinkFunc(discard), false},
		"writer":         {writer(), true},
		"without deltas": {WithoutDeltas(writer()), false},
		"buffered":       {Buffered(writer(), 16, OverflowBlock), true},
		"best effort":    {BestEffort(writer()), false},
		"told":           {&toldLog{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEmitter(EmitterOptions{Sinks: []Sink{test.sink}})
			require.NoError(t, err)
			r, err := e.Run("r")
			require.NoError(t, err)
			require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
			require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
			require.NoError(t, r.Agent("").Emit(t.Context(), &TextDelta{Delta: "x"}))
			require.NoError(t, r.Close())
			for next, refused := range []bool{true, true, test.deltas, false} {
				_, err := e.Resume(&RunSnapshot{RunState: RunState{RunID: "r", NextSequence: uint64(next)}, StartedAt: noon()})
				if refused {
					require.ErrorContains(t, err, "stale", next)
				} else {
					require.NoError(t, err, next)
					break
				}
			}
			require.NoError(t, e.Close(t.Context()))
		})
	}
}
