package agentevents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A sinkLog is a sink that keeps what it got: events, lines and contexts.
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

func (s *sinkLog) snapshot(t testing.TB) *RunSnapshot {
	t.Helper()
	runs, err := FoldAll(s.all, FoldOptions{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	return runs[0]
}

// startRun returns a run "r" that a sinkLog follows.
func startRun(t testing.TB, o Options) (*Run, *sinkLog) {
	t.Helper()
	e, log := startEmitter(t, o)
	r, err := e.Run("r")
	require.NoError(t, err)
	return r, log
}

func startEmitter(t testing.TB, o Options) (*Emitter, *sinkLog) {
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

type redactorFunc func(f Field, text string) (string, error)

func (f redactorFunc) Redact(field Field, text string) (string, error) { return f(field, text) }

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
	r, log := startRun(t, Options{
		Sinks: []Sink{a, tracer, committer, b},
		Clock: func() time.Time { note("time"); return noon() },
		NewID: func() string { note("id"); return "id" },
		Redaction: &Policy{Redactor: redactorFunc(func(Field, string) (string, error) {
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
	err := r.Emit(t.Context(), &ToolReturned{CallID: "none", ToolID: "t", Status: ToolOK})
	require.ErrorAs(t, err, new(*InvariantError))
	require.Equal(t, []string{"time"}, order)
	require.Len(t, log.events, 1)
}

func TestEmitterSequencesHaveNoGapsAndRefusedPayloadsConsumeNone(t *testing.T) {
	r, log := startRun(t, Options{})
	for i := range 10 {
		require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: strconv.Itoa(i)}))
		err := r.Emit(t.Context(), &ApprovalGranted{ApprovalID: "a"})
		var broken *InvariantError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, RuleApprovalOpen, broken.Rule)
		require.EqualValues(t, i+1, broken.Sequence, "the one it would have got")
		// Raw JSON is checked late, and consumes none either.
		err = r.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"a":}`})
		require.ErrorAs(t, err, &broken)
		require.Equal(t, RuleFieldJSON, broken.Rule)
	}
	for i := range log.events {
		require.EqualValues(t, i, log.events[i].Sequence)
	}
	require.Len(t, log.events, 10)
}

func TestEmitterRefusedCallLeavesNoState(t *testing.T) {
	r, _ := startRun(t, Options{})
	a := r.Agent("a")
	require.Error(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{`}))
	require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "c", ToolID: "t"}), "the call id was not taken")
}

func TestEmitterFillsTheEnvelope(t *testing.T) {
	at := time.Date(2026, 5, 5, 14, 0, 0, 123_999_999, time.FixedZone("", 7200))
	r, log := startRun(t, Options{Clock: func() time.Time { return at }})
	require.NoError(t, r.With(Scope{SessionID: "s"}).Agent("a").Emit(t.Context(), &TextDelta{Delta: "x"}))
	ev := log.last(t)
	require.Equal(t, time.Date(2026, 5, 5, 12, 0, 0, 123_000_000, time.UTC), ev.Time, "UTC, whole milliseconds, not rounded up")
	ev.ID, ev.Time = "", time.Time{}
	require.Equal(t, Event{RunID: "r", Scope: Scope{SessionID: "s"}, AgentID: "a", Step: Some(0), SchemaVersion: SchemaVersion, Payload: &TextDelta{Delta: "x"}}, ev)
}

func TestRecordKeepsWhatTheCallerFilledInAndOverwritesWhatIsTheLibrarys(t *testing.T) {
	r, log := startRun(t, Options{})
	given := Event{
		ID: "mine", Sequence: 77, Time: time.Date(2020, 1, 2, 3, 4, 5, 123_456_789, time.FixedZone("", 3600)), RunID: "r",
		Scope:   Scope{SessionID: "s", TaskID: "t", WorkflowID: "w", Phase: "p", NodeID: "n", NodeRunID: "nr"},
		AgentID: "a", Actor: "user", ParentAgentID: "pa", ParentCallID: "pc", Step: Some(5),
		TraceID: "tr", SpanID: "sp", ParentSpanID: "ps", CausationID: "cause", SchemaVersion: "0.1", Marks: MarkSynthetic | MarkReplayed,
		Payload: &TextDelta{Delta: "x"},
	}
	require.NoError(t, r.With(Scope{SessionID: "other", NodeID: "other"}).Record(t.Context(), given))
	want := given
	want.Sequence, want.SchemaVersion, want.Time = 0, SchemaVersion, given.Time.UTC()
	require.Equal(t, want, log.last(t))

	// The scope of the handle stands where the event has none.
	require.NoError(t, r.With(Scope{SessionID: "s2"}).Record(t.Context(), Event{Scope: Scope{TaskID: "t2"}, Payload: &TextDelta{}}))
	require.Equal(t, Scope{SessionID: "s2", TaskID: "t2"}, log.last(t).Scope)
	require.EqualValues(t, 1, log.last(t).Sequence)

	err := r.Record(t.Context(), Event{RunID: "another", Payload: &TextDelta{}})
	var broken *InvariantError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleRun, broken.Rule)

	// An agent's handle fills in the agent, and leaves another one.
	require.NoError(t, r.Agent("b").Record(t.Context(), Event{Payload: &TextDelta{}}))
	require.Equal(t, "b", log.last(t).AgentID)
	require.NoError(t, r.Agent("b").Record(t.Context(), Event{AgentID: "c", Payload: &TextDelta{}}))
	require.Equal(t, "c", log.last(t).AgentID)
}

func TestRecordedLineReadsBackAsTheEvent(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		r, log := startRun(t, Options{Mode: Observe, Redaction: &Policy{Off: true}})
		require.NoError(t, r.Record(t.Context(), Event{AgentID: "a<>\u2028", Time: noon().Add(1), Actor: "\"\\", Payload: p}))
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
	r, log := startRun(t, Options{})
	require.NoError(t, r.Record(t.Context(), ev))
	require.Equal(t, line, log.lines[0])
}

var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestEventIDsAreUUIDv7IncreasingAndUnique(t *testing.T) {
	var ids idSource
	at := noon()
	seen := make(map[string]struct{}, 100_000)
	last := ""
	for i := range 100_000 {
		switch i % 50 {
		case 10:
			at = at.Add(time.Millisecond)
		case 20:
			at = at.Add(-5 * time.Millisecond) // the clock goes back
		case 30:
			at = at.Add(4500 * time.Microsecond)
		}
		id := ids.next(at)
		require.Regexp(t, uuidV7, id)
		require.Greater(t, id, last)
		last = id
		seen[id] = struct{}{}
	}
	require.Len(t, seen, 100_000)
	ms, err := strconv.ParseInt(last[:8]+last[9:13], 16, 64)
	require.NoError(t, err)
	require.InDelta(t, at.UnixMilli(), ms, 1000, "the time stays near the clock's")
}

func TestEventIDsIncreaseOverManyInOneMillisecond(t *testing.T) {
	var ids idSource
	last := ""
	for range 3 << 12 {
		id := ids.next(noon())
		require.Greater(t, id, last)
		last = id
	}
	require.Greater(t, ids.next(time.Unix(-1, 0)), last, "a clock before 1970 does no harm")
}

func TestMintedRunCallAndMessageIDsAreUUIDv7(t *testing.T) {
	e, log := startEmitter(t, Options{})
	r, err := e.Run("")
	require.NoError(t, err)
	require.Regexp(t, uuidV7, r.ID())
	c, err := r.Agent("a").Call(t.Context(), "t", "")
	require.NoError(t, err)
	require.Regexp(t, uuidV7, c.ID)
	require.Regexp(t, uuidV7, log.last(t).ID)
	require.NoError(t, r.Agent("a").Emit(t.Context(), &MessageCreated{Message: ConversationMessage{Content: `1`}}))
	require.Regexp(t, uuidV7, log.last(t).Payload.(*MessageCreated).Message.MessageID)
}

func TestNewIDAndClockMakeALogRepeatable(t *testing.T) {
	write := func() []string {
		e, log := startEmitter(t, Options{NewID: countedIDs(), Clock: noon})
		r, err := e.Run("")
		require.NoError(t, err)
		a := r.Agent("a")
		_, err = a.Do(t.Context(), "tool", `{"x":1}`, func(context.Context) (JSON, error) { return `2`, nil })
		require.NoError(t, err)
		require.NoError(t, a.Emit(t.Context(), &MessageCreated{Message: ConversationMessage{Content: `"hi"`}}))
		return log.lines
	}
	first := write()
	require.Len(t, first, 3)
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
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	emit := func(p Payload) { t.Helper(); require.NoError(t, a.Emit(t.Context(), p)) }
	emit(&AgentStarted{})
	emit(&AgentReasoned{Reasoning: "hm"})
	require.NoError(t, a.To(t.Context(), ToolCall, ToolResult, Response, Reflect))
	emit(&AuditChecked{CheckpointID: "c", Result: AuditPass})
	require.NoError(t, a.To(t.Context(), Thinking))
	emit(&TextDelta{Delta: "x"})
	require.NoError(t, a.To(t.Context(), BlockedOnClarification, Thinking))
	require.NoError(t, r.Agent("other").Emit(t.Context(), &TextDelta{Delta: "its own count"}))
	require.NoError(t, r.Emit(t.Context(), &TextDelta{Delta: "of nobody"}))
	emit(&AgentEnded{Outcome: OutcomePartial})
	require.Equal(t, []int{
		-1, 0, // start, reasoned
		0, 0, 0, 0, // tool_call … reflect
		-1,   // audit
		1, 1, // thinking, text
		1, 2, // blocked, thinking
		0, -1, // other, nobody
		-1, // end
	}, steps(log))
	require.Equal(t, 3, log.last(t).Payload.(*AgentEnded).Totals.V.Steps)
}

func TestStepRisesAfterARestart(t *testing.T) {
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	for _, p := range []Payload{&AgentStarted{}, &TextCompleted{}, &AgentEnded{}, &AgentStarted{}, &TextDelta{}, &TextCompleted{}, &AgentEnded{}} {
		require.NoError(t, a.Emit(t.Context(), p))
	}
	require.Equal(t, []int{-1, 0, -1, -1, 1, 1, -1}, steps(log))
	require.Equal(t, Some(Totals{Steps: 1}), log.last(t).Payload.(*AgentEnded).Totals, "totals are of the attempt")
}

func TestRecordMaySetTheStepAndItStays(t *testing.T) {
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	require.NoError(t, a.Record(t.Context(), Event{Step: Some(7), Payload: &TextDelta{}}))
	require.NoError(t, a.Emit(t.Context(), &TextDelta{}))
	err := a.Record(t.Context(), Event{Step: Some(6), Payload: &TextDelta{}})
	var broken *InvariantError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleStepMonotonic, broken.Rule)
	require.Error(t, a.Record(t.Context(), Event{Step: Some(7), Payload: &AgentStarted{}}), "starts have no step")
	require.Equal(t, []int{7, 7}, steps(log))
}

func TestEmitFillsInFromTotalsCausationAndMessage(t *testing.T) {
	r, log := startRun(t, Options{Clock: noon, NewID: countedIDs()})
	a := r.Agent("a")
	emit := func(p Payload) Event { t.Helper(); require.NoError(t, a.Emit(t.Context(), p)); return log.last(t) }

	move := &AgentTransition{To: ToolCall}
	require.Equal(t, Thinking, emit(move).Payload.(*AgentTransition).From)
	require.Equal(t, &AgentTransition{To: ToolCall}, move)
	require.Equal(t, ToolCall, emit(&AgentTransition{To: ToolResult}).Payload.(*AgentTransition).From)

	call := emit(&ToolCalled{CallID: "c", ToolID: "t"})
	require.Equal(t, call.ID, emit(&ToolReturned{CallID: "c", ToolID: "t", Status: ToolOK}).CausationID)
	require.Empty(t, emit(&ToolReturned{CallID: "once", ToolID: "t", Status: ToolOK, OneEvent: true}).CausationID)
	emit(&ToolCalled{CallID: "c", ToolID: "t"})
	err := a.Record(t.Context(), Event{CausationID: "wrong", Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: ToolOK}})
	var broken *InvariantError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleToolCausation, broken.Rule)

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
	require.Equal(t, Some(Totals{Steps: 1, ToolCalls: 3, AuditCheckpoints: 3, AuditsPassed: 1, AuditsFailed: 1}), emit(end).Payload.(*AgentEnded).Totals)
	require.False(t, end.Totals.OK)

	// An agent nobody saw did nothing; stated totals are kept.
	require.NoError(t, r.Agent("b").Emit(t.Context(), &AgentEnded{}))
	require.Equal(t, Some(Totals{}), log.last(t).Payload.(*AgentEnded).Totals)
	require.NoError(t, r.Agent("c").Emit(t.Context(), &AgentEnded{Totals: Some(Totals{Steps: 9})}))
	require.Equal(t, Some(Totals{Steps: 9}), log.last(t).Payload.(*AgentEnded).Totals)
}

func TestCallersPayloadIsNeverWrittenTo(t *testing.T) {
	secrets := &Secrets{}
	require.NoError(t, secrets.Add("9007199254740993", "xxxx"))
	policies := map[string]*Policy{
		"default": nil,
		"scan":    {Secrets: secrets, Keys: []string{"big"}, Reasoning: VerbositySummary, ReasoningTokens: 1},
		"mask":    {Content: Mask, Meta: Mask, Reasoning: VerbosityOff},
		"drop":    {Content: Drop, Meta: Drop},
		"change": {Redactor: redactorFunc(func(_ Field, s string) (string, error) {
			return strings.ToUpper(s) + "!", nil
		})},
	}
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
				r, _ := startRun(t, Options{Mode: Observe, Redaction: policy})
				before := filledPayload(t, k)
				require.Equal(t, before, p)
				require.NoError(t, r.Agent("a").Emit(t.Context(), p))
				require.Equal(t, before, p)

				empty := New(k)
				require.NoError(t, r.Agent("a").Emit(t.Context(), empty))
				require.Equal(t, New(k), empty)
			})
		})
	}
}

func TestToStopsAtTheFirstMoveThatIsRefusedAndListsTheLegalOnes(t *testing.T) {
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	err := a.To(t.Context(), ToolCall, ToolResult, Thinking, ToolCall)
	var broken *InvariantError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleTransitionLegal, broken.Rule)
	require.Equal(t, "a", broken.AgentID)
	require.Equal(t, "tool_result", broken.State)
	require.Contains(t, broken.Detail, "legal: response")
	require.Contains(t, err.Error(), "legal: response")
	require.Len(t, log.events, 2)

	require.NoError(t, a.To(t.Context()))
	require.NoError(t, r.Agent("b").To(t.Context(), Failed))
	err = r.Agent("b").To(t.Context(), Thinking)
	require.ErrorAs(t, err, &broken)
	require.Equal(t, RuleAgentEndedFinal, broken.Rule)

	relaxed, _ := startRun(t, Options{Lifecycle: Relaxed})
	require.NoError(t, relaxed.Agent("a").To(t.Context(), Response, Converged, Thinking))
}

func TestCallReturnAndFailRecordOneEventEach(t *testing.T) {
	at := noon()
	r, log := startRun(t, Options{Clock: func() time.Time { return at }})
	a := r.Agent("a")
	c, err := a.Call(t.Context(), "grep", `{"q": 1}`)
	require.NoError(t, err)
	require.Equal(t, &ToolCalled{CallID: c.ID, ToolID: "grep", Arguments: `{"q":1}`}, log.last(t).Payload)
	other, err := a.Call(t.Context(), "ls", "")
	require.NoError(t, err)
	require.NotEqual(t, c.ID, other.ID, "calls overlap")

	at = at.Add(1500 * time.Millisecond)
	require.NoError(t, c.Return(t.Context(), `"ok"`))
	require.Equal(t, &ToolReturned{CallID: c.ID, ToolID: "grep", Status: ToolOK, Result: `"ok"`, Duration: Some(1500 * time.Millisecond)}, log.last(t).Payload)
	require.Error(t, c.Return(t.Context(), `"again"`))

	at = at.Add(-time.Hour) // a clock that goes back gives no negative duration
	require.NoError(t, other.Fail(t.Context(), errors.New("no such directory")))
	require.Equal(t, &ToolReturned{CallID: other.ID, ToolID: "ls", Status: ToolError, Error: Some(ErrorInfo{Message: "no such directory"}), Duration: Some(time.Duration(0))}, log.last(t).Payload)

	for _, tc := range []struct {
		err    error
		status ToolStatus
	}{{context.Canceled, ToolCancelled}, {fmt.Errorf("asked: %w", context.Canceled), ToolCancelled}, {context.DeadlineExceeded, ToolError}, {nil, ToolError}} {
		c, err := a.Call(t.Context(), "t", "")
		require.NoError(t, err)
		require.NoError(t, c.Fail(t.Context(), tc.err))
		got := log.last(t).Payload.(*ToolReturned)
		require.Equal(t, tc.status, got.Status)
		require.NotEmpty(t, got.Error.V.Message)
	}

	c, err = a.Call(t.Context(), "t", `{`)
	require.Error(t, err)
	require.Nil(t, c, "a refused call has no handle")
}

func TestCallIsUsableWhenItWasRecordedAndASinkFailed(t *testing.T) {
	broken := errors.New("disk full")
	r, log := startRun(t, Options{Sinks: []Sink{SinkFunc(func(context.Context, Event) error { return broken })}})
	a := r.Agent("a")
	c, err := a.Call(t.Context(), "t", "")
	require.ErrorIs(t, err, broken)
	require.NotNil(t, c)
	require.ErrorIs(t, c.Return(t.Context(), ""), broken)
	ran := false
	_, err = a.Do(t.Context(), "t", "", func(context.Context) (JSON, error) { ran = true; return "1", nil })
	require.ErrorIs(t, err, broken)
	require.True(t, ran)
	require.Equal(t, []Kind{KindToolCalled, KindToolReturned, KindToolCalled, KindToolReturned}, log.kinds())
}

func TestDoRecordsCallAndReturn(t *testing.T) {
	type key struct{}
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	ctx := context.WithValue(t.Context(), key{}, "v")
	result, err := a.Do(ctx, "t", `[1]`, func(ctx context.Context) (JSON, error) {
		require.Equal(t, "v", ctx.Value(key{}))
		return `{"n":2}`, nil
	})
	require.NoError(t, err)
	require.Equal(t, JSON(`{"n":2}`), result)
	require.Equal(t, []Kind{KindToolCalled, KindToolReturned}, log.kinds())
	require.Equal(t, ToolOK, log.last(t).Payload.(*ToolReturned).Status)
}

func TestDoRecordsAnErrorAndReturnsIt(t *testing.T) {
	r, log := startRun(t, Options{})
	cause := errors.New("404")
	result, err := r.Agent("a").Do(t.Context(), "t", "", func(context.Context) (JSON, error) { return `"partial"`, cause })
	require.ErrorIs(t, err, cause)
	require.Equal(t, JSON(`"partial"`), result)
	got := log.last(t).Payload.(*ToolReturned)
	require.Equal(t, ToolError, got.Status)
	require.Equal(t, "404", got.Error.V.Message)
}

func TestDoRecordsACancelledContextAsCancelled(t *testing.T) {
	r, log := startRun(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.Agent("a").Do(ctx, "t", "", func(ctx context.Context) (JSON, error) {
		cancel()
		return "", ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, ToolCancelled, log.last(t).Payload.(*ToolReturned).Status)
}

func TestDoRecordsAPanicAndLetsItGoOn(t *testing.T) {
	r, log := startRun(t, Options{})
	require.PanicsWithValue(t, "boom", func() {
		_, _ = r.Agent("a").Do(t.Context(), "t", "", func(context.Context) (JSON, error) { panic("boom") })
	})
	require.Equal(t, ToolError, log.last(t).Payload.(*ToolReturned).Status)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}), "no lock is left behind")
}

func TestDoDoesNotRunTheToolWhenTheCallIsRefused(t *testing.T) {
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentEnded{}))
	_, err := a.Do(t.Context(), "t", "", func(context.Context) (JSON, error) { panic("ran") })
	require.ErrorAs(t, err, new(*InvariantError))
	require.Len(t, log.events, 1)
}

func TestSubAgentsNameTheirParentsOnTheirStartOnly(t *testing.T) {
	r, log := startRun(t, Options{})
	a := r.Agent("a")
	c, err := a.Call(t.Context(), "spawn", "")
	require.NoError(t, err)
	b, d := c.Agent("b"), a.Agent("d")
	for _, tc := range []struct {
		agent        *Agent
		parent, call string
	}{{b, "a", c.ID}, {d, "a", ""}, {b.Agent("e"), "b", ""}, {a, "", ""}, {b.With(Scope{TaskID: "t"}).Agent("f"), "b", ""}} {
		require.NoError(t, tc.agent.Emit(t.Context(), &AgentStarted{}))
		ev := log.last(t)
		require.Equal(t, tc.agent.ID(), ev.AgentID)
		require.Equal(t, tc.parent, ev.ParentAgentID)
		require.Equal(t, tc.call, ev.ParentCallID)
		require.NoError(t, tc.agent.Emit(t.Context(), &TextDelta{}))
		require.Empty(t, log.last(t).ParentAgentID)
		require.Empty(t, log.last(t).ParentCallID)
	}
	require.NoError(t, c.Agent("g").Record(t.Context(), Event{Time: noon(), Payload: &AgentStarted{}}))
	require.Equal(t, "a", log.last(t).ParentAgentID, "Record of a start says it too")
	require.Equal(t, c.ID, log.last(t).ParentCallID)
	require.NoError(t, c.Agent("h").Record(t.Context(), Event{ParentAgentID: "x", Payload: &AgentStarted{}}))
	require.Equal(t, "x", log.last(t).ParentAgentID, "but keeps what is set")
}

func TestWithScopesEventsAndLeavesTheHandleAlone(t *testing.T) {
	r, log := startRun(t, Options{})
	w := r.With(Scope{SessionID: "s", WorkflowID: "w"})
	p := w.With(Scope{Phase: "p", SessionID: "s2"})
	a := p.Agent("a")
	n := a.With(Scope{NodeID: "n", NodeRunID: "nr", TaskID: "t"})
	for _, tc := range []struct {
		emit func(context.Context, Payload) error
		want Scope
	}{
		{r.Emit, Scope{}},
		{w.Emit, Scope{SessionID: "s", WorkflowID: "w"}},
		{p.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p"}},
		{a.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p"}},
		{n.Emit, Scope{SessionID: "s2", WorkflowID: "w", Phase: "p", NodeID: "n", NodeRunID: "nr", TaskID: "t"}},
	} {
		require.NoError(t, tc.emit(t.Context(), &TextDelta{}))
		require.Equal(t, tc.want, log.last(t).Scope)
	}
	c, err := n.Call(t.Context(), "t", "")
	require.NoError(t, err)
	require.NoError(t, c.Return(t.Context(), ""))
	require.Equal(t, "n", log.last(t).NodeID)
	require.NoError(t, c.Agent("sub").Emit(t.Context(), &AgentStarted{}))
	require.Equal(t, "n", log.last(t).NodeID)
}

func TestSameRunIDIsTheSameRun(t *testing.T) {
	e, log := startEmitter(t, Options{})
	a, err := e.Run("r")
	require.NoError(t, err)
	b, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, a.Emit(t.Context(), &TextDelta{}))
	require.NoError(t, b.Emit(t.Context(), &TextDelta{}))
	require.EqualValues(t, 1, log.last(t).Sequence)

	c, err := e.Run("")
	require.NoError(t, err)
	d, err := e.Run("")
	require.NoError(t, err)
	require.NotEqual(t, c.ID(), d.ID())
}

func TestMaxRunsBoundsOpenRunsAndAReleaseMakesRoom(t *testing.T) {
	e, log := startEmitter(t, Options{MaxRuns: 2})
	a, err := e.Run("a")
	require.NoError(t, err)
	b, err := e.Run("b")
	require.NoError(t, err)
	_, err = e.Run("c")
	require.ErrorIs(t, err, ErrTooManyRuns)
	_, err = e.Run("a")
	require.NoError(t, err, "an open run is no new one")
	require.NoError(t, a.Emit(t.Context(), &RunCompleted{}))
	c, err := e.Run("c")
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = e.Run("d")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_ = log
	snapshot, err := FoldAll(log.all, FoldOptions{})
	require.NoError(t, err)
	_, err = e.Resume(snapshot[0])
	require.NoError(t, err)
	_, err = e.Resume(&RunSnapshot{RunID: "z"})
	require.ErrorIs(t, err, ErrTooManyRuns, "Resume counts too")
}

func TestATerminalEventReleasesTheRun(t *testing.T) {
	for _, end := range []Payload{&RunCompleted{}, &RunFailed{}, &RunCancelled{}} {
		e, log := startEmitter(t, Options{})
		r, err := e.Run("r")
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
		require.NoError(t, r.Emit(t.Context(), end))
		_, err = e.Run("r")
		require.ErrorIs(t, err, ErrRunReleased)

		// The old handle still takes what may follow the end.
		require.NoError(t, r.Emit(t.Context(), &UsageObserved{}))
		require.NoError(t, r.Emit(t.Context(), &AuditChecked{CheckpointID: "c", Result: AuditPass}))
		require.NoError(t, r.Record(t.Context(), Event{Marks: MarkLate, Payload: &TextDelta{Delta: "late"}}))
		require.NoError(t, r.Emit(t.Context(), &SessionCompleted{}))
		require.EqualValues(t, 5, log.last(t).Sequence)
		var broken *InvariantError
		require.ErrorAs(t, r.Emit(t.Context(), &TextDelta{}), &broken)
		require.Equal(t, RuleTerminalLast, broken.Rule)

		require.NoError(t, r.Close())
		require.ErrorIs(t, r.Emit(t.Context(), &UsageObserved{}), ErrClosed)
	}
}

func TestCloseReleasesTheRunAndItsHandles(t *testing.T) {
	e, log := startEmitter(t, Options{})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
	require.ErrorIs(t, a.Emit(t.Context(), &TextDelta{}), ErrClosed)
	_, err = e.Run("r")
	require.ErrorIs(t, err, ErrRunReleased)
	require.Empty(t, log.events)
}

func TestResumeGoesOnWhereTheSnapshotEnds(t *testing.T) {
	e, log := startEmitter(t, Options{})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.To(t.Context(), ToolCall))
	c, err := a.Call(t.Context(), "t", "")
	require.NoError(t, err)
	called := log.last(t)
	snapshot := log.snapshot(t)

	_, err = e.Resume(snapshot)
	require.Error(t, err, "the run is open")
	require.NoError(t, r.Close())

	r, err = e.Resume(snapshot)
	require.NoError(t, err)
	again, err := e.Run("r")
	require.NoError(t, err, "a resumed run is open")
	require.Error(t, again.Agent("a").Emit(t.Context(), &AgentStarted{}), "the agent is known")
	require.Error(t, again.Agent("a").Emit(t.Context(), &ToolCalled{CallID: c.ID, ToolID: "t"}), "the call is open")
	require.NoError(t, r.Agent("a").Emit(t.Context(), &ToolReturned{CallID: c.ID, ToolID: "t", Status: ToolOK}))
	ev := log.last(t)
	require.EqualValues(t, 3, ev.Sequence)
	require.Equal(t, called.ID, ev.CausationID)
	require.Equal(t, Some(0), ev.Step)
	require.NoError(t, r.Agent("a").To(t.Context(), ToolResult))
	require.Empty(t, log.snapshot(t).Violations)

	// Over JSON, in another emitter.
	text, err := log.snapshot(t).MarshalJSON()
	require.NoError(t, err)
	var stored RunSnapshot
	require.NoError(t, stored.UnmarshalJSON(text))
	e2, log2 := startEmitter(t, Options{})
	r, err = e2.Resume(&stored)
	require.NoError(t, err)
	require.NoError(t, r.Agent("a").To(t.Context(), Response))
	require.EqualValues(t, 5, log2.last(t).Sequence)

	_, err = e2.Resume(nil)
	require.Error(t, err)
	_, err = e2.Resume(&RunSnapshot{})
	require.Error(t, err)
}

func TestEnforceRefusesAndObserveRecordsAndReports(t *testing.T) {
	illegal := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolOK}
	r, log := startRun(t, Options{OnViolation: func(*InvariantError) { panic("nothing was recorded") }})
	require.Error(t, r.Agent("a").Emit(t.Context(), illegal))
	require.Empty(t, log.events)

	var seen []*InvariantError
	var r2 *Run
	r2, log = startRun(t, Options{Mode: Observe, OnViolation: func(v *InvariantError) {
		seen = append(seen, v)
		require.NoError(t, r2.Emit(t.Context(), &TextDelta{}), "no lock is held")
	}})
	require.NoError(t, r2.Agent("a").Emit(t.Context(), illegal))
	require.Len(t, seen, 1)
	require.Equal(t, RuleToolCallOpen, seen[0].Rule)
	require.Equal(t, log.events[0].ID, seen[0].EventID)
	require.Equal(t, []Kind{KindToolReturned, KindTextDelta}, log.kinds())

	// Without OnViolation nothing happens but the recording.
	r, log = startRun(t, Options{Mode: Observe})
	require.NoError(t, r.Agent("a").To(t.Context(), Converged, Thinking, Reflect))
	require.Len(t, log.events, 3)
	require.EqualValues(t, 3, log.snapshot(t).ViolationCount, "the fold reports it")
}

func TestObserveRefusesWhatNoLineCanCarry(t *testing.T) {
	for name, ev := range map[string]Event{
		"nil payload":              {},
		"typed nil":                {Payload: (*TextDelta)(nil)},
		"unknown of a known kind":  {Payload: &Unknown{Type: KindTextDelta}},
		"id in the payload":        {Payload: &ToolCalled{CallID: "\xff", ToolID: "t"}},
		"behind a missing one":     {Payload: &ToolCalled{CallID: "", ToolID: "\xff"}},
		"id in the envelope":       {AgentID: "\xff", Payload: &TextDelta{}},
		"behind a negative number": {Payload: &BudgetExceeded{Budget: "", Limit: math.NaN()}},
		"not a number":             {Payload: &BudgetExceeded{Budget: "b", Limit: math.NaN()}},
		"infinite":                 {Payload: &AgentDecided{Confidence: Some(math.Inf(1))}},
		"infinite cost":            {Payload: &UsageObserved{CostUSD: Some(math.Inf(1))}},
		"raw JSON":                 {Payload: &ToolCalled{CallID: "c", ToolID: "t", Arguments: "{"}},
		"year":                     {Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), Payload: &TextDelta{}},
		"year in the payload":      {Payload: &CheckpointResumed{ResumedAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		"closed word":              {Payload: &ToolReturned{CallID: "c", ToolID: "t", Status: "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := startRun(t, Options{Mode: Observe})
			err := r.Record(t.Context(), ev)
			if err != nil {
				require.ErrorAs(t, err, new(*InvariantError))
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

// hostile is a payload of somebody else: it satisfies the interface by
// embedding, and every method of it panics.
type hostile struct{ Payload }

func (hostile) String() string               { panic("String was called") }
func (hostile) Error() string                { panic("Error was called") }
func (hostile) MarshalJSON() ([]byte, error) { panic("MarshalJSON was called") }
func (hostile) GoString() string             { panic("GoString was called") }

func TestForeignPayloadsAreRefusedWithoutCallingTheirMethods(t *testing.T) {
	for _, mode := range []Mode{Enforce, Observe} {
		r, log := startRun(t, Options{Mode: mode})
		for _, p := range []Payload{nil, (*ToolCalled)(nil), (*Unknown)(nil), hostile{}, &hostile{}, (*hostile)(nil), hostile{&TextDelta{}}, &hostile{&TextDelta{}}} {
			for _, emit := range []func(context.Context, Payload) error{r.Emit, r.Agent("a").Emit} {
				err := emit(t.Context(), p)
				var broken *InvariantError
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

func TestCancellationLosesNothingAndSinksSeeValuesOnly(t *testing.T) {
	type key struct{}
	r, log := startRun(t, Options{})
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Hour)
	cancel()
	require.NoError(t, r.Emit(ctx, &RunCancelled{Reason: "timeout"}))
	require.Len(t, log.events, 1)
	require.NoError(t, log.ctx.Err())
	require.Nil(t, log.ctx.Done())
	_, has := log.ctx.Deadline()
	require.False(t, has)
	require.Equal(t, "v", log.ctx.Value(key{}))
}

// stuckSink hangs in Flush and Close until it is let go.
type stuckSink struct {
	SinkFunc
	flush, close chan struct{}
	closes       atomic.Int32
}

func (s *stuckSink) Flush(context.Context) error {
	if s.flush != nil {
		<-s.flush
	}
	return nil
}

func (s *stuckSink) Close() error {
	s.closes.Add(1)
	if s.close != nil {
		<-s.close
	}
	return nil
}

func TestFlushReturnsAtTheDeadlineAndNamesTheSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, flush: make(chan struct{})}
		e, err := NewEmitter(Options{Sinks: []Sink{s}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err = e.Flush(ctx)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var failed *SinkError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, "*agentevents.stuckSink", failed.Sink)
		require.Contains(t, err.Error(), "stuckSink")
		close(s.flush) // the bubble fails if a goroutine stays
		require.NoError(t, e.Flush(t.Context()))
	})
}

func TestCloseReturnsAtTheDeadlineAndMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckSink{SinkFunc: discard, close: make(chan struct{})}
		after := &stuckSink{SinkFunc: discard}
		e, err := NewEmitter(Options{Sinks: []Sink{s, after}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err = e.Close(ctx)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "stuckSink")

		// The hanging Close has not finished, and a second one says so.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, e.Close(ctx), context.DeadlineExceeded)

		close(s.close)
		require.NoError(t, e.Close(t.Context()))
		require.EqualValues(t, 1, s.closes.Load(), "a sink is closed once")
		require.EqualValues(t, 1, after.closes.Load(), "and every sink is")
	})
}

func TestCloseWithAnEndedContextMayBeCalledAgainAndThenCloses(t *testing.T) {
	s := &stuckSink{SinkFunc: discard}
	e, err := NewEmitter(Options{Sinks: []Sink{s}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Close(ctx), context.Canceled)
	require.NoError(t, e.Close(t.Context()))
	require.EqualValues(t, 1, s.closes.Load())
}

func TestCloseWaitsForEventsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		closed := false
		s := &orderSink{note: func(s string) {
			switch s {
			case "write x":
				<-hold
				require.False(t, closed, "closed under an event")
			case "close x":
				closed = true
			}
		}, name: "x"}
		e, err := NewEmitter(Options{Sinks: []Sink{s}})
		require.NoError(t, err)
		r, err := e.Run("r")
		require.NoError(t, err)
		var emitted error
		var wg sync.WaitGroup
		wg.Go(func() { emitted = r.Emit(t.Context(), &TextDelta{}) })
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = e.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 events")
		require.False(t, closed)
		require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)

		results := make(chan error, 2)
		for range 2 { // Close may be called concurrently
			go func() { results <- e.Close(context.Background()) }()
		}
		synctest.Wait()
		require.False(t, closed)
		close(hold)
		require.NoError(t, <-results)
		require.NoError(t, <-results)
		wg.Wait()
		require.NoError(t, emitted)
		require.True(t, closed)
	})
}

func TestCloseRefusesLaterCallsWithErrClosed(t *testing.T) {
	e, log := startEmitter(t, Options{})
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	require.NoError(t, e.Close(t.Context()))
	require.NoError(t, e.Close(t.Context()))
	require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
	require.ErrorIs(t, r.Record(t.Context(), Event{Payload: &TextDelta{}}), ErrClosed)
	require.ErrorIs(t, a.To(t.Context(), ToolCall), ErrClosed)
	c, err := a.Call(t.Context(), "t", "")
	require.ErrorIs(t, err, ErrClosed)
	require.Nil(t, c)
	_, err = e.Run("s")
	require.ErrorIs(t, err, ErrClosed)
	_, err = e.Resume(&RunSnapshot{RunID: "t"})
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, log.events)
}

func TestSinksAreFlushedAndClosedOnceInOrder(t *testing.T) {
	var order []string
	note := func(s string) { order = append(order, s) }
	e, err := NewEmitter(Options{Sinks: []Sink{
		&orderSink{note: note, name: "a"}, BestEffort(&orderSink{note: note, name: "b"}), &orderSink{note: note, name: "c"},
	}})
	require.NoError(t, err)
	require.NoError(t, e.Close(t.Context()))
	require.NoError(t, e.Close(t.Context()))
	var closes []string
	for _, s := range order {
		if strings.HasPrefix(s, "close") {
			closes = append(closes, s)
		}
	}
	require.Equal(t, []string{"flush a", "flush b", "flush c", "close a", "close b", "close c"}, order[:6])
	require.Equal(t, []string{"close a", "close b", "close c"}, closes)
}

func TestErrorsOfRequiredSinksComeBackJoinedAndOthersStillGetTheEvent(t *testing.T) {
	one, two, three := errors.New("one"), errors.New("two"), errors.New("three")
	after := &sinkLog{}
	fail := func(err error) SinkFunc { return func(context.Context, Event) error { return err } }
	var reported []error
	r, log := startRun(t, Options{
		Sinks:   []Sink{fail(one), BestEffort(fail(two)), fail(three), after},
		OnError: func(err error) { reported = append(reported, err) },
	})
	err := r.Emit(t.Context(), &TextDelta{})
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, three)
	require.NotErrorIs(t, err, two)
	var failed *SinkError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 0, Err: one}, failed)
	require.Contains(t, err.Error(), "do not retry")
	require.NotErrorAs(t, err, new(*InvariantError))
	require.Len(t, log.events, 1)
	require.Len(t, after.events, 1)
	require.Len(t, reported, 1)
	require.ErrorAs(t, reported[0], &failed)
	require.Equal(t, &SinkError{Sink: "agentevents.SinkFunc", RunID: "r", Sequence: 0, Err: two}, failed)

	require.Error(t, r.Emit(t.Context(), &TextDelta{}))
	require.EqualValues(t, 1, log.last(t).Sequence, "the event was recorded all the same")
}

func TestWithoutOnErrorBestEffortErrorsComeWithFlushAndClose(t *testing.T) {
	broken := errors.New("broken")
	r, _ := startRun(t, Options{Sinks: []Sink{BestEffort(SinkFunc(func(context.Context, Event) error { return broken }))}})
	e := r.s.e
	for range 100 {
		require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	}
	err := e.Flush(t.Context())
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "84 more errors", "only a few are kept")
	require.NoError(t, e.Flush(t.Context()), "once")
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.ErrorIs(t, e.Close(t.Context()), broken)
}

func TestPanicsOfSinksTracersCommittersAndRedactorsAreContained(t *testing.T) {
	cause := errors.New("cause")
	var reported []error
	after := &sinkLog{}
	r, log := startRun(t, Options{
		Sinks: []Sink{
			SinkFunc(func(context.Context, Event) error { panic(cause) }),
			tracerSink{discard, func(context.Context, Event) TraceContext { panic("trace") }},
			committerSink{discard, func(context.Context) error { panic("commit") }},
			after,
		},
		Redaction: &Policy{Redactor: redactorFunc(func(Field, string) (string, error) { panic("redact") })},
		OnError:   func(err error) { reported = append(reported, err) },
	})
	err := r.Emit(t.Context(), &TextDelta{Delta: "x"})
	require.ErrorIs(t, err, cause, "a PanicError unwraps to the error")
	var values []any
	for _, one := range joined(err) {
		var failed *SinkError
		require.ErrorAs(t, one, &failed)
		var p *PanicError
		require.ErrorAs(t, failed.Err, &p)
		require.NotEmpty(t, p.Stack)
		values = append(values, p.Value)
	}
	require.ElementsMatch(t, []any{cause, "trace", "commit"}, values)
	require.Len(t, after.events, 1)
	require.Len(t, reported, 1)
	var p *PanicError
	require.ErrorAs(t, reported[0], &p)
	require.Equal(t, "redact", p.Value)
	require.NoError(t, errOnly(r.Emit(t.Context(), &TextDelta{})), "no lock is left behind")
	require.EqualValues(t, 1, log.last(t).Sequence)

	e, err := NewEmitter(Options{Sinks: []Sink{panickyCloser{discard}}})
	require.NoError(t, err)
	require.ErrorAs(t, e.Flush(t.Context()), &p)
	require.ErrorAs(t, e.Close(t.Context()), &p)
}

// errOnly drops errors that say the event was recorded.
func errOnly(err error) error {
	if errors.As(err, new(*SinkError)) {
		return nil
	}
	return err
}

// joined takes errors.Join apart, at any depth.
func joined(err error) []error {
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range many.Unwrap() {
		out = append(out, joined(e)...)
	}
	return out
}

type panickyCloser struct{ SinkFunc }

func (panickyCloser) Flush(context.Context) error { panic("flush") }
func (panickyCloser) Close() error                { panic("close") }

func TestAPanicOfTheCallersOwnFunctionsLeavesTheRunUsable(t *testing.T) {
	broken := true
	trip := func() {
		if broken {
			panic("caller")
		}
	}
	for name, o := range map[string]Options{
		"clock":  {Clock: func() time.Time { trip(); return noon() }},
		"ids":    {NewID: func() string { trip(); return "id" }},
		"tokens": {Redaction: &Policy{Reasoning: VerbositySummary, CountTokens: func(string) int { trip(); return 1 }}},
	} {
		broken = true
		r, log := startRun(t, o)
		require.Panics(t, func() { _ = r.Emit(t.Context(), &AgentReasoned{Reasoning: "x"}) }, name)
		broken = false
		require.NoError(t, r.Emit(t.Context(), &AgentReasoned{Reasoning: "x"}), name)
		require.Zero(t, log.last(t).Sequence, name)
		require.NoError(t, r.s.e.Close(t.Context()), name)
	}
}

func TestACommitterMayEmitIntoTheSameRun(t *testing.T) {
	var r *Run
	depth := 0
	s := committerSink{discard, func(ctx context.Context) error {
		if depth++; depth > 1 {
			return nil
		}
		return r.Emit(ctx, &TextDelta{Delta: "from Commit"})
	}}
	r, log := startRun(t, Options{Sinks: []Sink{s}})
	done := make(chan error, 1)
	go func() { done <- r.Emit(context.Background(), &TextDelta{}) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("deadlock: Commit is called with the lock held")
	}
	require.Len(t, log.events, 2)
}

func TestEmittersOfOneRunCanShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 8
		waiting := make(chan chan struct{}, n)
		s := committerSink{discard, func(context.Context) error {
			done := make(chan struct{})
			waiting <- done
			<-done
			return nil
		}}
		r, log := startRun(t, Options{Sinks: []Sink{s}})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { require.NoError(t, r.Emit(context.Background(), &TextDelta{})) })
		}
		synctest.Wait()
		require.Len(t, waiting, n, "all are in Commit at the same time")
		require.Len(t, log.events, n)
		for range n {
			close(<-waiting)
		}
		wg.Wait()
	})
}

func TestCommitErrorsComeBackAndARefusedPayloadCommitsNothing(t *testing.T) {
	broken := errors.New("fsync")
	commits := 0
	r, _ := startRun(t, Options{Sinks: []Sink{committerSink{discard, func(context.Context) error { commits++; return broken }}}})
	err := r.Emit(t.Context(), &TextDelta{})
	var failed *SinkError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, broken)
	require.Equal(t, "r", failed.RunID)
	require.Error(t, r.Emit(t.Context(), &ApprovalGranted{ApprovalID: "x"}))
	require.Equal(t, 1, commits)

	var reported []error
	r, _ = startRun(t, Options{
		Sinks:   []Sink{BestEffort(committerSink{discard, func(context.Context) error { return broken }})},
		OnError: func(err error) { reported = append(reported, err) },
	})
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
	require.Len(t, reported, 1, "a best-effort committer's error goes to OnError")
}

func TestNewEmitterRefusesBadOptions(t *testing.T) {
	tracer := tracerSink{discard, func(context.Context, Event) TraceContext { return TraceContext{} }}
	for name, o := range map[string]Options{
		"two tracers":    {Sinks: []Sink{tracer, BestEffort(tracer)}},
		"nil sink":       {Sinks: []Sink{&sinkLog{}, nil}},
		"nil in effort":  {Sinks: []Sink{BestEffort(nil)}},
		"lifecycle":      {Lifecycle: 9},
		"two in effort":  {Sinks: []Sink{BestEffort(tracer), BestEffort(BestEffort(tracer))}},
		"nil two levels": {Sinks: []Sink{BestEffort(BestEffort(nil))}},
	} {
		e, err := NewEmitter(o)
		require.Error(t, err, name)
		require.Nil(t, e, name)
	}
	e, err := NewEmitter(Options{})
	require.NoError(t, err, "the zero Options are usable")
	r, err := e.Run("")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &TextDelta{}))
}

func TestTracerFillsOnlyEmptyFields(t *testing.T) {
	r, log := startRun(t, Options{Sinks: []Sink{tracerSink{discard, func(context.Context, Event) TraceContext {
		return TraceContext{"T", "S", "P"}
	}}}})
	require.NoError(t, r.Record(t.Context(), Event{SpanID: "mine", Payload: &TextDelta{}}))
	ev := log.last(t)
	require.Equal(t, []string{"T", "mine", "P"}, []string{ev.TraceID, ev.SpanID, ev.ParentSpanID})
}

func TestLineSinksShareOneEncodingAndItIsAppendJSONs(t *testing.T) {
	var first *byte
	check := func(ev Event, line []byte) {
		want, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(want), string(line))
		if first == nil {
			first = &line[0]
		} else {
			require.Same(t, first, &line[0], "encoded twice")
		}
	}
	r, _ := startRun(t, Options{Mode: Observe, Sinks: []Sink{lineSink(check), SinkFunc(discard), lineSink(check)}})
	for info := range Kinds() {
		first = nil
		require.NoError(t, r.Agent("a").Emit(t.Context(), filledPayload(t, info.Kind)))
		require.NotNil(t, first)
	}
}

type lineSink func(ev Event, line []byte)

func (lineSink) WriteEvent(context.Context, Event) error { panic("not for line sinks") }
func (s lineSink) WriteLine(_ context.Context, ev Event, line []byte) error {
	s(ev, line)
	return nil
}

func TestConcurrentSafeEmittersKeepTheOrderOfEveryRunInEverySink(t *testing.T) {
	const goroutines, runs, each = 64, 32, 20
	var plain struct {
		sync.Mutex
		events []Event
	}
	behind := &sinkLog{}
	buffer := Buffered(behind, 64, Block)
	e, log := startEmitter(t, Options{Sinks: []Sink{
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
				_, err = a.Do(context.Background(), "t", `{"i":1}`, func(context.Context) (JSON, error) { return `1`, nil })
				if err := errors.Join(err, a.Emit(context.Background(), &TextDelta{Delta: "x"}), r.Emit(context.Background(), &TurnStarted{})); err != nil {
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
		require.Len(t, events, goroutines*each*4)
		next := map[string]uint64{}
		for i := range events {
			require.Equal(t, next[events[i].RunID], events[i].Sequence)
			next[events[i].RunID]++
		}
		require.Len(t, next, runs)
	}
	snapshots, err := FoldAll(log.all, FoldOptions{})
	require.NoError(t, err)
	for _, s := range snapshots {
		require.Empty(t, s.Violations)
	}
}

func TestConcurrentSafeCloseRunAndEmit(t *testing.T) {
	for range 50 {
		e, log := startEmitter(t, Options{MaxRuns: 8})
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
		r := &Run{s: &runState{e: e, m: newMachine(Strict, "x")}}
		require.ErrorIs(t, r.Emit(t.Context(), &TextDelta{}), ErrClosed)
		require.Len(t, log.events, n)
	}
}

func TestReleasedRunsAreRememberedWithinBounds(t *testing.T) {
	e, err := NewEmitter(Options{})
	require.NoError(t, err)
	for i := range maxReleased + 10 {
		r, err := e.Run(strconv.Itoa(i))
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	require.Len(t, e.released, maxReleased)
	require.Len(t, e.order, maxReleased)
	_, err = e.Run("0")
	require.NoError(t, err, "forgotten")
	_, err = e.Run("10")
	require.ErrorIs(t, err, ErrRunReleased)
}

// The bounds are what Emit of a ready payload into a discarding LineSink
// allocates today.
func TestEmitDoesNotAllocate(t *testing.T) {
	o := Options{Sinks: []Sink{lineSink(func(Event, []byte) {})}}
	e, err := NewEmitter(o)
	require.NoError(t, err)
	r, err := e.Run("r")
	require.NoError(t, err)
	a := r.Agent("a")
	ctx := context.Background()
	require.NoError(t, a.Emit(ctx, &AgentStarted{}))

	round := []*AgentTransition{{From: Thinking, To: BlockedOnClarification}, {From: BlockedOnClarification, To: Thinking}}
	n := 0
	called := &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"q":[1,"two"]}`}
	returned := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolOK, Result: `{"n":1}`, Duration: Some(time.Second)}
	text := &TextDelta{BlockID: "b", Delta: "some words"}
	for _, tc := range []struct {
		name string
		emit func() error
	}{
		{"transition", func() error { n++; return a.Emit(ctx, round[(n-1)%2]) }},
		{"text delta", func() error { return a.Emit(ctx, text) }},
		{"tool called and returned", func() error { return errors.Join(a.Emit(ctx, called), a.Emit(ctx, returned)) }},
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

// No kind that may come again and again costs an allocation, and writing a line
// of any kind costs none.
func TestNoKindAllocates(t *testing.T) {
	e, err := NewEmitter(Options{Sinks: []Sink{lineSink(func(Event, []byte) {})}})
	require.NoError(t, err)
	repeated := 0
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		r, err := e.Run("")
		require.NoError(t, err)
		a := r.With(Scope{WorkflowID: "w", Phase: "p"}).Agent("a")
		ctx := context.Background()
		first := a.Emit(ctx, p)
		if again := a.Emit(ctx, p); first == nil && again == nil {
			repeated++
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if err := a.Emit(ctx, p); err != nil {
					panic(err)
				}
			}))
		}
		ev := Event{ID: "e", RunID: "r", AgentID: "a", Time: time.UnixMilli(1), Payload: p}
		buf := make([]byte, 0, 64<<10)
		require.Zero(t, testing.AllocsPerRun(100, func() {
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
	r, log := startRun(t, Options{})
	p := &TextDelta{Delta: "x"}
	require.NoError(t, r.Emit(t.Context(), p))
	require.NoError(t, r.Emit(t.Context(), p))
	require.Same(t, p, log.events[0].Payload)
	require.NotEqual(t, log.events[0].ID, log.events[1].ID)
	require.True(t, slices.IsSortedFunc(log.events, func(a, b Event) int { return strings.Compare(a.ID, b.ID) }))
	require.True(t, reflect.DeepEqual(p, &TextDelta{Delta: "x"}))
}
