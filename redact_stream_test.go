package agentevents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// canaryValue is a registered secret.
const canaryValue = "C4N4RYs3cr3t"

func canaryPolicy(t testing.TB) *Policy {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add(canaryValue))
	return &Policy{Secrets: secrets}
}

// said returns the events as a list: deltas with block, index and text.
func said(events []Event) (list []string) {
	for i := range events {
		ev := &events[i]
		var sub subject
		newMachine(&RunState{RunID: ev.RunID}).resolve(&sub, ev, ops(ev.Payload))
		text := string(ev.Kind())
		if p := pieceOf(ev, &sub); p.subject != "" {
			text = p.subject + p.id + " " + p.text
			if p.index.OK {
				text = fmt.Sprintf("%s%s/%d %s", p.subject, p.id, p.index.V, p.text)
			}
		}
		if ev.Marks != 0 {
			text += " [" + ev.Marks.String() + "]"
		}
		list = append(list, text)
	}
	return list
}

// Held-back text comes with the next delta, or in a delta of its own before the end of the block.
func TestDeltasOfABlockAreScannedAsOneText(t *testing.T) {
	text := func(block, delta string, index int) Payload {
		return &TextDelta{BlockID: block, Delta: delta, Index: Some(index)}
	}
	for what, c := range map[string]struct {
		events []Payload
		want   []string
	}{
		"nothing suspicious": {
			[]Payload{text("b", "Hello, ", 0), text("b", "world.", 1), &TextCompleted{BlockID: "b", Text: "Hello, world."}},
			[]string{"textb/0 Hello, ", "textb/1 world.", "agent.text"},
		},
		"a secret": {
			[]Payload{text("b", "the C4N4", 0), text("b", "RYs3cr3t", 1), text("b", " is", 2)},
			[]string{"textb/0 the ", "textb/1 [REDACTED:secret] [redacted]", "textb/2  is"},
		},
		"it was none": {
			[]Payload{text("b", "the C4N4", 0), text("b", "DA", 1)},
			[]string{"textb/0 the ", "textb/1 C4N4DA"},
		},
		"the whole block": {
			[]Payload{text("b", "C4N4", 0), &TextCompleted{BlockID: "b", Text: "C4N4"}},
			[]string{"textb/0 ", "textb/1 C4N4 [synthetic]", "agent.text"},
		},
		"the whole block after most of a secret": {
			[]Payload{text("b", "C4N4RYs3cr", 0), &TextCompleted{BlockID: "b", Text: "C4N4RYs3cr"}},
			[]string{"textb/0 ", "textb/1 [REDACTED:secret] [synthetic,redacted]", "agent.text [redacted]"},
		},
		"another block": {
			[]Payload{text("b", "C4N4", 0), &TextCompleted{BlockID: "c", Text: "x"}, text("c", "RYs3cr3t", 0), text("b", "RYs3cr3t", 1)},
			[]string{"textb/0 ", "agent.text", "textc/0 RYs3cr3t", "textb/1 [REDACTED:secret] [redacted]"},
		},
		"an act ends blocks without an id": {
			[]Payload{&TextDelta{Delta: "C4N4"}, &AgentReasoningDelta{Delta: "C4N4"}, text("b", "C4N4", 0), &ToolArgumentsDelta{CallID: "c", Delta: `"C4N4`}, &ToolCalled{CallID: "c", ToolID: "t"}},
			[]string{"text ", "reasoning ", "textb/0 ", `tool_callc "`, "text C4N4 [synthetic]", "reasoning C4N4 [synthetic]", "agent.toolCalled"},
		},
		"a transition": {
			[]Payload{&TextDelta{Delta: "C4N4"}, &AgentTransition{To: StatusToolCall}, &TextDelta{Delta: "RYs3cr3t"}},
			[]string{"text ", "text C4N4 [synthetic]", "agent.transition", "text RYs3cr3t"},
		},
		"a transition, and the numbers go on": {
			[]Payload{text("", "C4N4", 0), &AgentTransition{To: StatusToolCall}, text("", "RYs3cr3t", 1)},
			[]string{"text/0 ", "text C4N4 [synthetic]", "agent.transition", "text/1 RYs3cr3t"},
		},
		"a block without an id begins anew": {
			[]Payload{text("", "C4N4", 0), text("", "RYs3cr3t", 0)},
			[]string{"text/0 ", "text C4N4 [synthetic]", "text/0 RYs3cr3t"},
		},
		"the return of a call": {
			[]Payload{&ToolCalled{CallID: "c", ToolID: "t"}, &ToolArgumentsDelta{CallID: "c", Delta: `{"password":"hun`}, &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusError}},
			[]string{"agent.toolCalled", `tool_callc {"password":"[REDACTED:key] [redacted]`, "agent.toolReturned"},
		},
		"the end of the agent": {
			[]Payload{text("b", "C4N4", 0), &AgentEnded{Outcome: OutcomeConverged}},
			[]string{"textb/0 ", "textb/1 C4N4 [synthetic]", "agent.ended"},
		},
		"the agent starts again": {
			[]Payload{&AgentReasoningDelta{BlockID: "b", Delta: "C4N4", Verbosity: VerbosityFull}, &AgentStarted{Resumed: true}},
			[]string{"reasoningb ", "reasoningb C4N4 [synthetic]", "agent.started"},
		},
		"the end of the run": {
			[]Payload{text("b", "C4N4", 0), text("c", "C4", 0), &RunCompleted{}},
			[]string{"textb/0 ", "textc/0 ", "textb/1 C4N4 [synthetic]", "textc/1 C4 [synthetic]", "run.completed"},
		},
		"empty deltas": {
			[]Payload{text("b", "", 0), text("b", "C4N4", 1), text("b", "", 2), &TextCompleted{BlockID: "b", Text: "C4N4"}},
			[]string{"textb/0 ", "textb/1 ", "textb/2 ", "textb/3 C4N4 [synthetic]", "agent.text"},
		},
		"a character in two deltas": {
			[]Payload{text("b", "Gr\xc3", 0), text("b", "\xbc\xc3", 1), text("b", "x\xe2\x82", 2), &TextCompleted{BlockID: "b"}},
			[]string{"textb/0 Gr", "textb/1 ü", "textb/2 \uFFFDx [sanitized]", "textb/3 \uFFFD [synthetic,sanitized]", "agent.text"},
		},
		"cut reasoning": {
			[]Payload{&AgentReasoningDelta{Delta: "C4N4", Verbosity: VerbosityOff}, &AgentReasoned{Verbosity: VerbosityOff}},
			[]string{"reasoning ", "agent.reasoned"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Redaction: canaryPolicy(t), Lifecycle: LifecycleRelaxed})
			a := r.Agent("a")
			require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
			for _, p := range c.events {
				if _, ok := p.(*RunCompleted); ok {
					require.NoError(t, r.Emit(t.Context(), p))
					continue
				}
				recordOf(t, a, p)
			}
			require.Equal(t, append([]string{"agent.started"}, c.want...), said(log.events))
			requireSound(t, log)
		})
	}
}

// requireSound fails if a log breaks a rule.
func requireSound(t testing.TB, log *sinkLog) {
	t.Helper()
	snapshots, err := foldSeq(log.all, FoldOptions{Lifecycle: LifecycleRelaxed})
	require.NoError(t, err)
	for _, s := range snapshots {
		require.Empty(t, s.Violations)
	}
}

// The machine forgets the oldest of too many blocks. The redaction step does not, until there
// are many more: then the stream of the oldest ends, without a number.
func TestOldestOfTooManyStreamsEnds(t *testing.T) {
	for _, agent := range []string{"a", ""} {
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t)})
		a := r.Agent(agent)
		for i := range maxStreams {
			recordOf(t, a, &TextDelta{BlockID: fmt.Sprint(i), Delta: "C4N4", Index: Some(0)})
		}
		require.Len(t, log.events, maxStreams)
		recordOf(t, a, &TextDelta{BlockID: "new", Delta: "x", Index: Some(0)})
		require.Equal(t, []string{"text0 C4N4 [synthetic]", "textnew/0 x"}, said(log.events[maxStreams:]))
		requireSound(t, log)
	}
}

// However many blocks are open at a time, a secret in small deltas passes in none.
func TestSecretInManyOpenBlocks(t *testing.T) {
	for _, blocks := range []int{maxBlocks + 1, maxStreams, maxStreams + 1} {
		r, log := startRun(t, EmitterOptions{Redaction: canaryPolicy(t), Mode: ModeObserve})
		a := r.Agent("a")
		recordOf(t, a, &AgentStarted{})
		for _, c := range canaryValue {
			for i := range blocks {
				recordOf(t, a, &TextDelta{BlockID: fmt.Sprint(i), Delta: string(c)})
			}
		}
		require.NoError(t, r.Close())
		texts := map[string]string{}
		for _, ev := range log.events {
			if p, ok := ev.Payload.(*TextDelta); ok {
				texts[p.BlockID] += p.Delta
			}
		}
		require.Len(t, texts, blocks)
		for id, text := range texts {
			require.NotContains(t, text, canaryValue[1:], id)
			require.Contains(t, text, "[REDACTED:secret]", id)
		}
	}
}

// A block that goes on without its stream is masked until its agent starts again.
func TestLostStreams(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t), Mode: ModeObserve})
	a := r.Agent("a")
	for i := range maxStreams + 1 {
		recordOf(t, a, &TextDelta{BlockID: fmt.Sprint(i), Delta: "x"})
	}
	from := len(log.events)
	for _, p := range []Payload{
		&TextDelta{BlockID: "0", Delta: "y"}, &TextDelta{BlockID: "0"}, &TextDelta{BlockID: "1", Delta: "y"}, &TextCompleted{BlockID: "0", Text: "xy"},
		&AgentStarted{}, &TextDelta{BlockID: "0", Delta: "y"},
	} {
		recordOf(t, a, p)
	}
	require.Equal(t, []string{"text0 [REDACTED:secret] [redacted]", "text0 ", "text1 y", "agent.text", "agent.started", "text0 y"}, said(log.events[from:]))
}

// Close of a run and of the emitter record held-back text, once.
func TestCloseRecordsHeldBackText(t *testing.T) {
	for what, end := range map[string]func(r *Run) error{
		"the run":     func(r *Run) error { return r.Close() },
		"the emitter": func(r *Run) error { return r.s.e.Close(context.Background()) },
	} {
		t.Run(what, func(t *testing.T) {
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t)})
			for _, agent := range []string{"b", "a"} {
				recordOf(t, r.Agent(agent), &TextDelta{BlockID: "x", Delta: "C4N4", Index: Some(0)})
			}
			require.NoError(t, end(r))
			require.NoError(t, end(r))
			require.ErrorIs(t, r.Emit(t.Context(), &RunPaused{}), ErrClosed)
			require.Equal(t, []string{"textx/0 ", "textx/0 ", "textx/1 C4N4 [synthetic]", "textx/1 C4N4 [synthetic]"}, said(log.events))
			require.Equal(t, []string{"b", "a", "a", "b"}, []string{log.events[0].AgentID, log.events[1].AgentID, log.events[2].AgentID, log.events[3].AgentID})
			requireSound(t, log)
		})
	}
}

// A sink may close its own run: held-back text comes after the event.
func TestCloseByASinkRecordsHeldBackText(t *testing.T) {
	var r *Run
	e, log := startEmitter(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t), Sinks: []Sink{SinkFunc(func(_ context.Context, ev Event) error {
		if ev.Kind() == KindRunPaused {
			return r.Close()
		}
		return nil
	})}})
	r, err := e.Run("r")
	require.NoError(t, err)
	recordOf(t, r.Agent("a"), &TextDelta{Delta: "C4N4"})
	require.NoError(t, r.Emit(t.Context(), &RunPaused{}))
	require.Equal(t, []string{"text ", "run.paused", "text C4N4 [synthetic]"}, said(log.events))
}

// A refused event ends nothing.
func TestRefusedEventsEndNoBlock(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t), MaxLine: 4096})
	a := r.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.Emit(t.Context(), &TextDelta{Delta: "C4N4"}))
	long := strings.Repeat("x", 5000)
	for _, p := range []Payload{&ToolCalled{CallID: "c", ToolID: long}, &TextDelta{BlockID: long, Delta: "x"}, &ToolArgumentsDelta{CallID: long, Delta: long}, &AgentTransition{To: StatusFailed, From: StatusConverged}, &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}} {
		require.Error(t, a.Emit(t.Context(), p))
	}
	_, err := a.Record(t.Context(), Event{CausationID: long, Payload: &TextDelta{Delta: "x", Index: Some(0)}})
	require.Error(t, err, "it would begin the block again")
	require.NoError(t, a.Emit(t.Context(), &TextDelta{Delta: "RYs3cr3t"}))
	require.Equal(t, []string{"agent.started", "text ", "text [REDACTED:secret] [redacted]"}, said(log.events))
}

// Whatever the pieces, the deltas of a block are together the whole block.
func TestDeltasJoinToTheWholeText(t *testing.T) {
	const whole = `curl -u bob:hunter2 https://bob:hunter2@example.com -H "Authorization: Bearer C4N4RYs3cr3t" {"password":"hunter2","n":1} C4N4RYs3cr`
	want, _ := redactedText(t, canaryPolicy(t), whole)
	require.NotContains(t, want, "hunter2")
	require.NotContains(t, want, "C4N4RY")
	for size := 1; size <= 17; size++ {
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: canaryPolicy(t)})
		a := r.Agent("a")
		for i, at := 0, 0; at < len(whole); i, at = i+1, at+size {
			recordOf(t, a, &TextDelta{BlockID: "b", Delta: whole[at:min(at+size, len(whole))], Index: Some(i)})
		}
		require.NoError(t, r.Close())
		var b strings.Builder
		for _, ev := range log.events {
			b.WriteString(ev.Payload.(*TextDelta).Delta)
		}
		require.Equal(t, want, b.String(), size)
		snapshots, err := foldSeq(log.all, FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, want, snapshots[0].Agents["a"].Text, "the text that the fold joins")
	}
}

// The path of a patch may name a credential.
func TestPatchesOfCredentialsAreMasked(t *testing.T) {
	for _, c := range []struct {
		path   string
		value  JSON
		masked bool
	}{
		{"db.password", `"hunter2"`, true}, {"credentials.db", `"hunter2"`, true}, {"api.key", `"hunter2"`, true}, {"db.password", `{"is":"hunter2"}`, true},
		{"max.tokens", `100`, false}, {"db.user", `"hunter2"`, false}, {"", `{"a":"hunter2"}`, false}, {"db.password", `null`, false},
	} {
		ev, _ := emitted(t, nil, &StatePatched{Op: PatchSet, Path: c.path, Value: c.value})
		want := c.value
		if c.masked {
			want = `"[REDACTED:key]"`
		}
		require.Equal(t, want, ev.Payload.(*StatePatched).Value, c.path)
		require.Equal(t, c.masked, ev.Marks.Has(MarkRedacted), c.path)
	}
}

// A Redactor cannot make an accepted event illegal.
func TestARedactorLeavesEventsLegal(t *testing.T) {
	for _, answer := range []string{"", strings.Repeat("a.", 200)} {
		policy := &Policy{Redactor: redactorFunc(func(Place, string) (string, error) { return answer, nil })}
		eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
			r, log := startRun(t, EmitterOptions{Redaction: policy, Mode: ModeObserve})
			require.NoError(t, r.Agent("a").Emit(t.Context(), p))
			for _, ev := range log.events {
				require.Nil(t, ev.check(ops(ev.Payload), false), k)
			}
		})
	}
}

// An id may be a secret, and so may the name of a member.
func TestErrorsOfTheEmitterAreMasked(t *testing.T) {
	r, _ := startRun(t, EmitterOptions{Redaction: canaryPolicy(t)})
	for _, p := range []Payload{
		&ToolReturned{CallID: canaryValue, ToolID: "t", Status: ToolStatusOK},
		&HandoffAccepted{HandoffID: canaryValue, From: ref("a"), To: ref(canaryValue)},
		&AuditChecked{CheckpointID: "c", Result: canaryValue},
	} {
		err := r.Agent("a").Emit(t.Context(), p)
		require.ErrorAs(t, err, new(*RuleError))
		require.NotContains(t, err.Error(), canaryValue)
	}
}

// A secret stays one although the agent that streams it gets its id in the middle.
func TestSecretOfAnAgentThatIsNamed(t *testing.T) {
	secrets := &Secrets{}
	require.NoError(t, secrets.Add("supersecret123"))
	events := []Event{
		{Scope: Scope{SessionID: "s"}, SpanID: "span-1", Payload: &AgentStarted{Task: "t"}},
		{ParentSpanID: "span-1", Payload: &TextDelta{BlockID: "b", Index: Some(0), Delta: "It is supers"}},
		{ParentSpanID: "span-1", AgentID: "x", Payload: &ToolCalled{CallID: "c1", ToolID: "t"}},
		{ParentSpanID: "span-1", AgentID: "x", Payload: &TextDelta{BlockID: "b", Index: Some(1), Delta: "ecret123."}},
		{ParentSpanID: "span-1", AgentID: "x", Payload: &TextCompleted{BlockID: "b", Text: "It is supersecret123."}},
		{SpanID: "span-1", AgentID: "x", Payload: &AgentEnded{}},
	}
	text := func(t *testing.T, recorded []Event) {
		var deltas strings.Builder
		for _, ev := range recorded {
			if p, ok := ev.Payload.(*TextDelta); ok {
				deltas.WriteString(p.Delta)
			}
		}
		require.Equal(t, "It is [REDACTED:secret].", deltas.String())
		require.Equal(t, "It is [REDACTED:secret].", foldEvents(FoldOptions{}, recorded).Agents["x"].Text)
	}
	t.Run("emitter", func(t *testing.T) {
		var recorded []Event
		em, err := NewEmitter(EmitterOptions{
			Lifecycle: LifecycleDerived, Redaction: &Policy{Secrets: secrets},
			Sinks: []Sink{SinkFunc(func(_ context.Context, ev Event) error { recorded = append(recorded, ev); return nil })},
		})
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		for _, ev := range events {
			require.NoError(t, errOf(run.Record(t.Context(), ev)))
		}
		text(t, recorded)
	})
	t.Run("log", func(t *testing.T) {
		var recorded []Event
		for ev, err := range (&Policy{Secrets: secrets}).Redact(func(yield func(Event, error) bool) {
			for i, ev := range events {
				ev.ID, ev.RunID, ev.Sequence = fmt.Sprint(i), "r", uint64(i)
				if !yield(ev, nil) {
					return
				}
			}
		}) {
			require.NoError(t, err)
			recorded = append(recorded, ev)
		}
		text(t, recorded)
	})
}

// releasing counts the notices to a sink.
type releasing struct {
	events   []Event
	released []string
	fail     error // of the event with sequence 1 of run r
}

func (r *releasing) WriteEvent(_ context.Context, ev Event) error {
	if r.fail != nil && ev.Sequence >= 1 && ev.RunID == "r" {
		return r.fail
	}
	r.events = append(r.events, ev)
	return nil
}

func (r *releasing) ReleaseRun(_ context.Context, runID string) error {
	r.released = append(r.released, runID)
	return nil
}

// A sink that fences a run closes it, and no later sink gets the event, nor later events.
func TestFenced(t *testing.T) {
	fence := fmt.Errorf("sequence 1 is taken: %w", ErrFenced)
	for _, c := range []struct {
		name  string
		fence func(*releasing) Sink
		after int // events that the later sink gets
		err   error
	}{
		{"required", func(r *releasing) Sink { return r }, 1, ErrFenced},
		{"best effort", func(r *releasing) Sink { return BestEffort(r) }, 5, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, fencer, after := &releasing{}, &releasing{fail: fence}, &releasing{}
			e, err := NewEmitter(EmitterOptions{
				Sinks: []Sink{before, c.fence(fencer), after},
				Follow: func(ev Event) []Event {
					if ev.Kind() == KindStatePatched {
						return []Event{{Payload: &Unknown{Type: "x.follows"}}}
					}
					return nil
				},
				OnError: func(error) {},
			})
			require.NoError(t, err)
			run, err := e.Run("r")
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &RunStarted{}))
			err = run.Emit(t.Context(), &StatePatched{Path: "x", Op: "set", Value: "1"})
			require.ErrorIs(t, err, c.err)
			again := run.Emit(t.Context(), &StatePatched{Path: "x", Op: "set", Value: "2"})
			if c.err == nil {
				require.NoError(t, again)
				require.Len(t, after.events, c.after)
				require.Empty(t, after.released)
				return
			}
			require.ErrorContains(t, err, "sequence 1 (not recorded)")
			require.ErrorIs(t, again, ErrClosed)
			require.Len(t, before.events, 2)
			require.Len(t, after.events, c.after)
			for _, s := range []*releasing{before, fencer, after} {
				require.Equal(t, []string{"r"}, s.released)
			}
			_, err = e.Run("r")
			require.ErrorIs(t, err, ErrRunReleased)
			other, err := e.Run("other")
			require.NoError(t, err)
			require.NoError(t, other.Emit(t.Context(), &RunStarted{}))
			require.NoError(t, e.Close(t.Context()))
		})
	}
}

// Held-back text is not delivered once its run is fenced.
func TestFencedStream(t *testing.T) {
	fencer, after := &releasing{}, &releasing{}
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{fencer, after}, Lifecycle: LifecycleDerived})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	agent := run.Agent("a")
	require.NoError(t, agent.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, agent.Emit(t.Context(), &TextDelta{Delta: "a text of which the end is held back: sk-ant-api03-"}))
	had := len(after.events)
	fencer.fail = ErrFenced
	require.ErrorIs(t, agent.Emit(t.Context(), &AgentErrored{ErrorType: "x", Message: "x"}), ErrFenced)
	require.NoError(t, e.Close(t.Context()))
	require.Len(t, after.events, had)
	require.Equal(t, []string{"r"}, after.released)
}
