package agentevents

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Events that close a question without an answer: the return of its call, the end or the next
// attempt of its agent, the end of the run. Nothing else does.
func TestQuestionsCloseWithTheirSubject(t *testing.T) {
	started := func(agent string) Event { return ev(agent, started()) }
	for _, c := range []struct {
		name   string
		log    []Event // around an approval and a clarification of agent a about call c1
		by     Kind    // empty: they stay open
		status RunStatus
	}{
		{"nothing", []Event{started("a"), ev("a", call("c1"))}, "", RunStatusWaiting},
		{"another agent's events", []Event{started("a"), started("b"), ev("a", call("c1")), ev("b", call("c1")), {}, ev("b", returned("c1", ToolStatusOK)), ev("b", &AgentEnded{})}, "", RunStatusWaiting},
		{"the return of another call", []Event{started("a"), ev("a", call("c1")), ev("a", call("c2")), {}, ev("a", returned("c2", ToolStatusOK))}, "", RunStatusWaiting},
		{"its call", []Event{started("a"), ev("a", call("c1")), {}, ev("a", returned("c1", ToolStatusInterrupted))}, KindToolReturned, RunStatusRunning},
		{"its call, which never began", []Event{started("a"), {}, ev("a", returned("c1", ToolStatusForbidden))}, KindToolReturned, RunStatusRunning},
		{"its agent's end", []Event{started("a"), {}, ev("a", &AgentEnded{})}, KindAgentEnded, RunStatusCompleted},
		{"its agent's first start", []Event{{}, started("a")}, "", RunStatusWaiting},
		{"its agent's next attempt", []Event{started("a"), {}, ev("", &RunResumed{}), started("a")}, KindAgentStarted, RunStatusRunning},
		{"asked after the end of its agent", []Event{started("a"), ev("a", &AgentEnded{})}, "", RunStatusWaiting},
		{"a request that came late", []Event{started("a"), ev("a", &AgentEnded{}), {Marks: MarkLate}}, KindAgentEnded, RunStatusCompleted},
		{"the run's end", []Event{started("a"), {}, ev("", &RunCancelled{})}, KindRunCancelled, RunStatusCancelled},
		{"late after the run's end", []Event{started("a"), done, {Marks: MarkLate}}, KindRunCompleted, RunStatusCompleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := func(marks Marks) []Event {
				out := []Event{ev("a", &ApprovalRequested{ApprovalID: "q", CallID: "c1"}), ev("a", &ClarificationRequested{InterruptID: "q", CallID: "c1", Questions: []Question{}})}
				out[0].Marks, out[1].Marks = marks, marks
				return out
			}
			var log []Event
			asked := false
			for _, e := range c.log {
				if e.Payload == nil {
					log, asked = append(log, ask(e.Marks)...), true
				} else {
					log = append(log, e)
				}
			}
			if !asked {
				log = append(log, ask(0)...)
			}
			s := fold(t, log...)
			require.Equal(t, c.by, s.Approvals[0].ClosedBy)
			require.Equal(t, c.by, s.Clarifications[0].ClosedBy)
			require.Equal(t, c.by == "", s.Approvals[0].Open)
			require.Equal(t, c.by == "", s.Clarifications[0].Open)
			require.Zero(t, s.Approvals[0].AnsweredAt)
			require.Equal(t, c.status, s.Status)

			// The emitter knows the same, also after it has gone on from the snapshot.
			e, err := NewEmitter(EmitterOptions{})
			require.NoError(t, err)
			run, err := e.Run(rulesRun)
			require.NoError(t, err)
			for _, ev := range log {
				require.NoError(t, errOf(run.Record(context.Background(), ev)))
			}
			other, err := NewEmitter(EmitterOptions{})
			require.NoError(t, err)
			var back RunSnapshot
			require.NoError(t, back.UnmarshalJSON(s.AppendJSON(nil)))
			resumed, err := other.Resume(&back)
			require.NoError(t, err)
			for _, run := range []*Run{run, resumed} {
				open := map[bool]int{true: 2}[c.by == ""]
				require.Equal(t, open, run.s.m.questions.of("a"))
				_, err := run.Record(context.Background(), Event{Payload: &ApprovalGranted{ApprovalID: "q"}, Marks: MarkLate})
				var broken *RuleError
				if c.by != "" {
					require.ErrorAs(t, err, &broken)
					require.Equal(t, RuleApprovalOpen, broken.Rule)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, 1, run.s.m.questions.of("a"))
				require.NoError(t, errOf(run.Record(context.Background(), Event{Payload: &ClarificationResolved{InterruptID: "q"}})))
				require.Zero(t, run.s.m.questions.of("a"))
			}
		})
	}
}

// A question of an agent that is known by its node run or its span is that agent's, and a
// question of no agent is about the call of its id, whose ever it is.
func TestWhoseAQuestionIs(t *testing.T) {
	n := scoped(Scope{NodeRunID: "n#1"})
	s := fold(t, ev("", started(), n), ev("", &ApprovalRequested{ApprovalID: "p"}, n), ev("", &AgentEnded{}, n))
	require.Equal(t, "n#1", s.Approvals[0].AgentID)
	require.Equal(t, KindAgentEnded, s.Approvals[0].ClosedBy)
	s = fold(t, ev("", &NodeStarted{}, n), ev("", &ApprovalRequested{ApprovalID: "p"}, n), ev("a", started()))
	require.Empty(t, s.Approvals[0].AgentID, "a node without an agent")
	require.True(t, s.Approvals[0].Open)
	s = fold(t, ev("a", started()), ev("a", call("c1")), ev("", &ApprovalRequested{ApprovalID: "p", CallID: "c1"}), ev("a", returned("c1", ToolStatusOK)))
	require.Equal(t, KindToolReturned, s.Approvals[0].ClosedBy)
}

// A clarification with the id of an open one replaces it, as an approval does.
func TestClarificationAskedAgain(t *testing.T) {
	ask := ev("a", &ClarificationRequested{InterruptID: "i", Questions: []Question{}})
	s := fold(t, ev("a", started()), ask, ask, ev("", &ClarificationResolved{InterruptID: "i", AnsweredBy: "ada"}))
	require.Equal(t, KindClarificationRequested, s.Clarifications[0].ClosedBy)
	require.Equal(t, "ada", s.Clarifications[1].AnsweredBy)
	require.Equal(t, RunStatusRunning, s.Status)
}
