package agentevents

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded emits payloads of agent a without redaction.
func recorded(t testing.TB, payloads ...Payload) *sinkLog {
	t.Helper()
	r, log := startRun(t, EmitterOptions{Redaction: &Policy{Off: true}, Lifecycle: LifecycleRelaxed})
	for _, p := range payloads {
		recordOf(t, r.Agent("a"), p)
	}
	return log
}

func redactedLog(t testing.TB, p *Policy, log *sinkLog) (events []Event) {
	t.Helper()
	for ev, err := range p.Redact(log.all) {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

func linesOf(t testing.TB, events []Event) string {
	t.Helper()
	var lines []byte
	for i := range events {
		var err error
		lines, err = events[i].AppendJSON(lines)
		require.NoError(t, err)
		lines = append(lines, '\n')
	}
	return string(lines)
}

// A log keeps its events: text that is held back at the end of a block goes to its last delta.
func TestLogsAreRedactedEventByEvent(t *testing.T) {
	text := func(block, delta string, index int) Payload {
		return &TextDelta{BlockID: block, Delta: delta, Index: Some(index)}
	}
	log := recorded(t,
		&AgentStarted{Task: "say " + canaryValue},
		text("b", "the C4N4", 0), text("c", "x C4N4", 0), text("b", "RYs3cr3t", 1), text("b", " C4", 2), &TextCompleted{BlockID: "b", Text: "the " + canaryValue + " C4"},
		text("", "C4N4", 0), &AgentTransition{To: StatusToolCall},
		text("", "RYs3cr", 1), &AgentReasoningDelta{Delta: "C4N4", Verbosity: VerbosityOff},
		&StatePatched{Op: PatchSet, Path: "db.password", Value: `"x"`},
		text("c", "DA", 1), text("d", "C4N4RYs3c", 0),
	)
	events := redactedLog(t, canaryPolicy(t), log)
	require.Equal(t, []string{
		"agent.started [redacted]",
		"textb/0 the ", "textc/0 x ", "textb/1 [REDACTED:secret] [redacted]", "textb/2  C4", "agent.text [redacted]",
		"text/0 C4N4", "agent.transition",
		"text/1 RYs3cr", "reasoning  [redacted]",
		"state.patched [redacted]",
		"textc/1 C4N4DA", "textd/0 [REDACTED:secret] [redacted]",
	}, said(events))
	for i, ev := range events {
		before := log.events[i]
		require.Equal(t, []any{before.ID, before.Sequence, before.Time, before.Step, before.Kind()}, []any{ev.ID, ev.Sequence, ev.Time, ev.Step, ev.Kind()})
	}
	requireSound(t, &sinkLog{events: events})
	require.Equal(t, linesOf(t, log.events), linesOf(t, redactedLog(t, &Policy{Off: true}, log)))
}

// A log that was redacted while it was recorded stays as it is.
func TestRedactingTwiceChangesNothing(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Redaction: canaryPolicy(t)})
	for i, delta := range []string{`{"password":"hu`, "nter2", `","x":1}`} {
		recordOf(t, r.Agent("b"), &ToolArgumentsDelta{CallID: "c", Delta: delta, Index: Some(i)})
	}
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		_, _ = r.Agent("a").Record(t.Context(), Event{Payload: p}) // some are not legal
	})
	require.NotContains(t, linesOf(t, log.events), "nter2")
	require.Equal(t, linesOf(t, log.events), linesOf(t, redactedLog(t, canaryPolicy(t), log)))
}

// Events wait for a delta, but not for ever.
func TestRedactingALogWaitsForSoMany(t *testing.T) {
	payloads := []Payload{&TextDelta{BlockID: "b", Delta: "C4N4"}}
	for range 5 {
		payloads = append(payloads, &TextCompleted{BlockID: "c", Text: "x"})
	}
	log := recorded(t, append(payloads, &TextDelta{BlockID: "b", Delta: "DA"})...)
	n, most := 0, 0
	var list []Event
	for ev, err := range canaryPolicy(t).Redact(func(yield func(Event, error) bool) {
		log.all(func(ev Event, err error) bool {
			n++
			return yield(ev, err)
		})
	}) {
		require.NoError(t, err)
		list = append(list, ev)
		most = max(most, n-len(list))
	}
	require.Equal(t, 6, most, "all wait for the first")
	require.Equal(t, "C4N4DA", list[6].Payload.(*TextDelta).Delta)

	log = recorded(t, &TextDelta{BlockID: "b", Delta: "C4N4"})
	for i := range maxWaiting + 10 {
		log.events = append(log.events, Event{RunID: "r", ID: fmt.Sprint(i), Payload: &TextCompleted{BlockID: "c", Text: "x"}})
	}
	log.events = append(log.events, Event{RunID: "r", AgentID: "a", Payload: &TextDelta{BlockID: "b", Delta: "RYs3cr3t"}})
	list = redactedLog(t, canaryPolicy(t), log)
	require.Len(t, list, len(log.events))
	require.Equal(t, "[REDACTED:secret]", list[len(list)-1].Payload.(*TextDelta).Delta, "however far away the rest is")
	require.Empty(t, list[0].Payload.(*TextDelta).Delta)
}

func TestRedactingALogTellsErrors(t *testing.T) {
	log := &sinkLog{events: []Event{
		{RunID: "r"}, {RunID: "r", Payload: &TextCompleted{Text: "x"}},
	}}
	policy := &Policy{Redactor: redactorFunc(func(Place, string) (string, error) { panic("no") })}
	var list []string
	for ev, err := range policy.Redact(log.all) {
		if err != nil {
			list = append(list, err.Error())
			continue
		}
		list = append(list, ev.Payload.(*TextCompleted).Text)
	}
	require.Len(t, list, 3)
	require.Contains(t, list[0], "the payload is nil")
	require.Equal(t, "[REDACTED:error]", list[1])
	require.Contains(t, list[2], `redactor, run "r"`)

	for _, err := range (&Policy{Content: 99}).Redact(nil) {
		require.ErrorContains(t, err, "Policy.Content is 99: no constant has this value")
	}
}

// A word of a closed list that is none of the list may be anything.
func TestUnknownWordsAreTexts(t *testing.T) {
	ended := &AgentEnded{Outcome: "password=hunter2x"}
	log := &sinkLog{events: []Event{{RunID: "r", AgentID: "a", SchemaVersion: "password=hunter2x", Payload: ended}}}
	events := redactedLog(t, nil, log)
	require.Equal(t, AgentOutcome("password=[REDACTED:key]"), events[0].Payload.(*AgentEnded).Outcome)
	require.Equal(t, "password=[REDACTED:key]", events[0].SchemaVersion)
	require.Equal(t, MarkRedacted, events[0].Marks)

	r, observed := startRun(t, EmitterOptions{Mode: ModeObserve})
	require.NoError(t, r.Agent("a").Emit(t.Context(), ended))
	require.NotContains(t, observed.lines[0], "hunter2x")
}
