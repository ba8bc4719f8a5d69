package eventtest_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	rec.WantLaws(t, eventtest.LawOptions{})
	good := rec.Events()
	with := func(change func(events []agentevents.Event) []agentevents.Event) []agentevents.Event {
		return change(slices.Clone(good))
	}
	for name, tt := range map[string]struct {
		events []agentevents.Event
		o      eventtest.LawOptions
		want   string
	}{
		"whole":   {events: good},
		"nothing": {},
		"a rule": {with(func(e []agentevents.Event) []agentevents.Event {
			e[4].Payload = &agentevents.ToolReturned{CallID: "c9", ToolID: "read", Status: agentevents.ToolStatusOK}
			e[4].CausationID = ""
			return e
		}), eventtest.LawOptions{Open: true}, `rules: agentevents: agent.toolReturned: agent "main" has no open call with this id; legal: agent.toolCalled first, or oneEvent; call "c9" is not open (rule tool-call-open, run "r1", sequence 4)`},
		"a gap": {slices.Delete(slices.Clone(good), 3, 4), eventtest.LawOptions{},
			"sequences: run r1, sequence 4 (main agent.toolReturned read c1 ok): the next one is 3"},
		"a legal gap": {slices.Delete(slices.Clone(good), 3, 4), eventtest.LawOptions{Gaps: true}, ""},
		"no beginning": {good[:1:1], eventtest.LawOptions{From: []*agentevents.RunSnapshot{{RunState: agentevents.RunState{RunID: "r1", NextSequence: 5}}}, Open: true},
			`sequences: run r1, sequence 0 (main agent.started "Add /v2/health"): the next one is 5`},
		"an id twice": {with(func(e []agentevents.Event) []agentevents.Event { e[1].ID = "id1"; return e }), eventtest.LawOptions{},
			"ids: run r1, sequence 1 (main agent.transition thinking tool_call): its id id1 is also the id of sequence 0 of run r1"},
		"open":                 {good[:6], eventtest.LawOptions{}, "ends: run r1: agent main has not ended\nends: run r1: call c2 has not ended"},
		"open, which is legal": {good[:6], eventtest.LawOptions{Open: true}, ""},
		"no line": {with(func(e []agentevents.Event) []agentevents.Event {
			e[8].Payload = nil
			return e
		}), eventtest.LawOptions{}, "lines: run r1, sequence 8 ("},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := eventtest.CheckLaws(tt.events, tt.o)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Contains(t, err.Error(), tt.want)
			var rule *agentevents.RuleError
			require.True(t, !strings.HasPrefix(tt.want, "rules") || errors.As(err, &rule))
		})
	}
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	rec := recorded(t)
	var log bytes.Buffer
	for _, ev := range rec.Events() {
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		log.Write(append(line, '\n'))
	}
	text := log.String()
	read := eventtest.ReadLog(t, &log, agentevents.ReaderOptions{})
	read.WantExactly(t, lines)
	read.WantLaws(t, eventtest.LawOptions{})
	require.Equal(t, rec.Events(), read.Events())
	require.Contains(t, failure(t, func(t testing.TB) {
		eventtest.ReadLog(t, strings.NewReader("no line\n"+text), agentevents.ReaderOptions{}).WantExactly(t, lines)
	}), "eventtest: line 1 (byte 0): ")
}

// A run that has started ends, and so do its model calls.
func TestLawsOfEnds(t *testing.T) {
	t.Parallel()
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r1")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
	require.NoError(t, run.Agent("main").Emit(t.Context(), &agentevents.AgentStarted{}))
	require.NoError(t, run.Agent("main").Emit(t.Context(), &agentevents.ModelCalled{ModelCallID: "m1"}))
	require.Equal(t, "eventtest: the log breaks laws:\nends: run r1 has not ended: it is running\nends: run r1: agent main has not ended\nends: run r1: model call m1 has not ended",
		failure(t, func(t testing.TB) { rec.WantLaws(t, eventtest.LawOptions{}) }))
	rec.WantLaws(t, eventtest.LawOptions{Open: true})
}

// A payload that its program changes after Emit makes another log of the same run.
func TestLawsFindChangedPayloads(t *testing.T) {
	t.Parallel()
	em, rec := strict(t)
	run, err := em.Run("r1")
	require.NoError(t, err)
	require.NoError(t, run.Agent("main").Emit(t.Context(), &agentevents.AgentStarted{Task: "Add"}))
	rec.WantLaws(t, eventtest.LawOptions{Open: true})
	rec.Events()[0].Payload.(*agentevents.AgentStarted).Task = "Drop"
	require.Equal(t, `eventtest: the log breaks laws:
folds: run r1, sequence 0 (main agent.started Drop): the fold that went on while the events were recorded is another one: /agents/main/task: "Add", was "Drop", and 1 more`,
		failure(t, func(t testing.TB) { rec.WantLaws(t, eventtest.LawOptions{Open: true}) }))
}

// A recorder of a resumed run knows the snapshot: its part of the log keeps the laws.
func TestResumedRuns(t *testing.T) {
	t.Parallel()
	em, before := strict(t)
	run, err := em.Run("r1")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
	require.NoError(t, run.Agent("main").Emit(t.Context(), &agentevents.AgentStarted{}))
	snapshot := before.Snapshot("r1")

	again, after := strict(t)
	run, err = again.Resume(snapshot)
	require.NoError(t, err)
	require.Nil(t, after.Snapshot("r1"), "it has no event")
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunResumed{}))
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunCancelled{}))
	s := after.Snapshot("")
	require.Zero(t, s.ViolationCount, "%v", s.Violations)
	require.Equal(t, agentevents.RunStatusCancelled, s.Status)
	after.WantLaws(t, eventtest.LawOptions{Open: true})
	after.Filter(func(agentevents.Event) bool { return true }).WantLaws(t, eventtest.LawOptions{Open: true})
	require.NoError(t, eventtest.CheckLaws(after.Events(), eventtest.LawOptions{From: []*agentevents.RunSnapshot{snapshot}, Open: true}))
	require.ErrorContains(t, eventtest.CheckLaws(after.Events(), eventtest.LawOptions{Open: true}), "the next one is 0")

	// In one recorder the run is one.
	require.NoError(t, em.Close(t.Context()))
	em, err = agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict, Sinks: []agentevents.Sink{before}})
	require.NoError(t, err)
	run, err = em.Resume(snapshot)
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunResumed{}))
	before.WantLaws(t, eventtest.LawOptions{Open: true})
	require.True(t, strings.HasPrefix(eventtest.Describe(before.Events()[2]), "run.resumed"))
}
