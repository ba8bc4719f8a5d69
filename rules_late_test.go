package agentevents

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateCases are an end and a start of one thing, and the number of records that it has.
var lateCases = []struct {
	name       string
	end, start Event
	open, all  func(s *RunSnapshot) int // how many are open, and how many there are
}{
	{
		"a call", ev("a", returned("c", ToolStatusOK)), ev("a", call("c")),
		func(s *RunSnapshot) int { return len(s.OpenCalls) }, func(s *RunSnapshot) int { return len(s.OpenCalls) + len(s.ClosedCalls) },
	},
	{
		"a call that ended in a span", ev("a", &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, OneEvent: true}, inSpan("s")), ev("a", call("c"), inSpan("s")),
		func(s *RunSnapshot) int { return len(s.OpenCalls) }, func(s *RunSnapshot) int { return s.Agents["a"].ToolCalls },
	},
	{
		"a model call", ev("a", &ModelReturned{ModelCallID: "m", OneEvent: true}, inSpan("s")), ev("a", &ModelCalled{ModelCallID: "m"}, inSpan("s")),
		func(s *RunSnapshot) int { return len(s.OpenModelCalls) }, func(s *RunSnapshot) int { return s.Agents["a"].ModelCalls },
	},
	{
		"an agent", ev("a", &AgentEnded{}), ev("a", started()),
		func(s *RunSnapshot) int {
			if s.Agents["a"].Open {
				return 1
			}
			return 0
		}, func(s *RunSnapshot) int { return len(s.Agents["a"].AttemptsInOrder()) },
	},
	{
		"an approval", ev("", &ApprovalGranted{ApprovalID: "q", ApprovedBy: "p"}), ev("a", &ApprovalRequested{ApprovalID: "q", Action: "go"}),
		func(s *RunSnapshot) int { return s.openQuestions() }, func(s *RunSnapshot) int { return len(s.Approvals) },
	},
	{
		"a clarification", ev("", &ClarificationResolved{InterruptID: "q", Answers: `{}`}), ev("a", &ClarificationRequested{InterruptID: "q", Questions: []Question{{ID: "1", Question: "?"}}}),
		func(s *RunSnapshot) int { return s.openQuestions() }, func(s *RunSnapshot) int { return len(s.Clarifications) },
	},
	{
		"a handoff", ev("b", &HandoffAccepted{From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}}), ev("a", &HandoffRequested{From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}}),
		func(s *RunSnapshot) (n int) {
			for _, h := range s.Handoffs {
				if h.Open {
					n++
				}
			}
			return n
		}, func(s *RunSnapshot) int { return len(s.Handoffs) },
	},
	{
		"a turn", ev("a", &TurnEnded{}, inSpan("s")), ev("a", &TurnStarted{Turn: Some(3)}, inSpan("s")),
		func(s *RunSnapshot) int { return s.openSpans() }, func(s *RunSnapshot) int { return len(s.Turns) },
	},
	{
		"a step", ev("a", &StepEnded{StepID: "made up"}, inSpan("s")), ev("a", &StepStarted{StepID: "x"}, inSpan("s")),
		func(s *RunSnapshot) int { return s.openSpans() }, func(s *RunSnapshot) int { return len(s.Steps) },
	},
	{
		"a phase", inFlow(ev("", &PhaseCompleted{OutputCount: Some(1)})), inFlow(ev("", &PhaseStarted{InputCount: Some(1)})),
		func(s *RunSnapshot) (n int) {
			for _, p := range s.Phases {
				if p.Open {
					n++
				}
			}
			return n
		}, func(s *RunSnapshot) int { return len(s.Phases) },
	},
}

// foldAll folds events, of which an end without a start may break a rule.
func foldAll(events []Event) *RunSnapshot {
	f := NewFold(FoldOptions{})
	for _, e := range events {
		f.Apply(e)
	}
	return f.Snapshot()
}

func inFlow(e Event) Event {
	e.WorkflowID, e.Phase = "w", "p"
	return e
}

func (s *RunSnapshot) openQuestions() (n int) {
	for _, a := range s.Approvals {
		if a.Open {
			n++
		}
	}
	for _, c := range s.Clarifications {
		if c.Open {
			n++
		}
	}
	return n
}

func (s *RunSnapshot) openSpans() (n int) {
	for _, t := range s.Turns {
		if t.EndedAt.IsZero() {
			n++
		}
	}
	for _, st := range s.Steps {
		if st.EndedAt.IsZero() {
			n++
		}
	}
	return n
}

// openThings returns the open things of a run's machine.
func (m *machine) openThings() string {
	calls, _ := m.calls.All()
	models, _ := m.modelCalls.All()
	agents := 0
	for _, a := range m.agents {
		if a.Open {
			agents++
		}
	}
	spans := 0
	for key := range m.spans {
		if m.lastSpan(key) != nil {
			spans++
		}
	}
	handoffs := m.work != nil && m.openHandoff(newHandoffKey("", "a", "b"))
	return fmt.Sprintln(len(calls), len(models), agents, len(m.questions.open), handoffs, spans, m.inPhase("w"))
}

// A start with an earlier time than its end, whose line comes after the end, is not a second thing.
// The emitter, the fold, and a fold and an emitter that go on from a snapshot agree. A start of a
// later time is another thing.
func TestLateStarts(t *testing.T) {
	for _, c := range lateCases {
		for _, late := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, " ", late), func(t *testing.T) {
				events := []Event{ev("", &SessionStarted{}), ev("z", started()), c.end, c.start}
				for i := range events {
					events[i].Time = rulesEpoch.Add(time.Duration(10*i) * time.Second)
				}
				events[3].Time = events[2].Time.Add(7 * time.Second)
				if late {
					events[3].Time = events[2].Time.Add(-7 * time.Second)
				}
				run, log := ruleRun(t, LifecycleRelaxed, ModeObserve)
				for _, e := range events {
					_, err := run.Record(context.Background(), e)
					require.NoError(t, err)
				}
				s := foldAll(log.events)
				half := foldAll(log.events[:3])
				rest, err := ResumeFold(half, FoldOptions{})
				require.NoError(t, err)
				rest.Apply(log.events[3])
				require.Equal(t, string(s.AppendJSON(nil)), string(rest.Snapshot().AppendJSON(nil)), "a fold that goes on")
				want := "1 of 2"
				if late {
					want = "0 of 1"
				}
				require.Equal(t, want, fmt.Sprint(c.open(s), " of ", c.all(s)))

				again := half.machine(LifecycleRelaxed)
				sub := &subject{}
				again.resolve(sub, &log.events[3], log.events[3].Payload.(payloadOps))
				again.apply(&log.events[3], sub)
				require.Equal(t, run.s.m.openThings(), again.openThings(), "an emitter that goes on")
				require.Equal(t, s.machine(LifecycleRelaxed).openThings(), run.s.m.openThings(), "the emitter and the fold")
			})
		}
	}
}

// The ends that wait for their starts are limited, and the latest ones are known.
func TestLateStartsAreBounded(t *testing.T) {
	f := NewFold(FoldOptions{})
	n := uint64(0)
	add := func(at int, p Payload) {
		f.Apply(Event{ID: fmt.Sprint("e", n), Sequence: n, Time: rulesEpoch.Add(time.Duration(at) * time.Second), RunID: "r", AgentID: "a", SchemaVersion: SchemaVersion, Payload: p})
		n++
	}
	add(0, &SessionStarted{})
	add(0, started())
	for i := range 3 * maxEarly {
		add(1000, returned(fmt.Sprint("c", i), ToolStatusOK))
	}
	require.Len(t, f.Snapshot().Resume.early, maxEarly)
	add(500, call(fmt.Sprint("c", 3*maxEarly-1)))
	require.Empty(t, f.Snapshot().OpenCalls)
	require.Len(t, f.Snapshot().Resume.early, maxEarly-1)
}
