package resume_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// always returns the same action for all.
func always[T any](a resume.Action) func(T) resume.Action { return func(T) resume.Action { return a } }

// goOn applies the plan of a log.
func goOn(t *testing.T, log *[]ae.Event, o resume.Options) (*ae.Run, *resume.Plan, *resume.Receipt) {
	p, err := resume.New(snapshot(t, *log), o)
	require.NoError(t, err)
	run, err := newHost(t, log).em.Resume(p.Snapshot)
	require.NoError(t, err)
	receipt, err := p.Apply(t.Context(), run)
	require.NoError(t, err)
	return run, p, receipt
}

func ids(agents []resume.Agent) (ids []string) {
	for _, a := range agents {
		ids = append(ids, a.AgentID)
	}
	return ids
}

// A crash cuts off an agent that asks a person about its call. The plan follows the options for
// both, and no agent waits for a question that the plan closes.
func TestACrashInAQuestionAboutACall(t *testing.T) {
	for name, test := range map[string]struct {
		o                       resume.Options
		agents, waiting         []string
		calls, rejected, asked  []string
		answered, callStaysOpen bool
	}{
		"zero":      {waiting: []string{"planner"}, answered: true, callStaysOpen: true},
		"wait":      {o: resume.Options{Approval: always[*ae.ApprovalSnapshot](resume.Wait)}, waiting: []string{"planner"}, answered: true, callStaysOpen: true},
		"ask again": {o: resume.Options{Approval: always[*ae.ApprovalSnapshot](resume.AskAgain)}, waiting: []string{"planner"}, asked: []string{"ap"}, answered: true, callStaysOpen: true},
		"reject":    {o: resume.Options{Approval: always[*ae.ApprovalSnapshot](resume.Close)}, agents: []string{"planner"}, calls: []string{"call_0"}, rejected: []string{"ap"}},
		"close the call": {o: resume.Options{Call: always[*ae.ToolCallSnapshot](resume.Close)},
			agents: []string{"planner"}, calls: []string{"call_0"}},
		"close the call and ask again": {o: resume.Options{Call: always[*ae.ToolCallSnapshot](resume.Close), Approval: always[*ae.ApprovalSnapshot](resume.AskAgain)},
			waiting: []string{"planner"}, calls: []string{"call_0"}, asked: []string{"ap"}, answered: true},
		"wait for the call": {o: resume.Options{Call: always[*ae.ToolCallSnapshot](resume.Wait), Approval: always[*ae.ApprovalSnapshot](resume.Close)},
			waiting: []string{"planner"}, rejected: []string{"ap"}, callStaysOpen: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log []ae.Event
			first, err := newHost(t, &log).em.Run("r")
			require.NoError(t, err)
			a := first.Agent("planner")
			require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
			_, err = a.Call(t.Context(), &ae.ToolCalled{CallID: "call_0", ToolID: "book"})
			require.NoError(t, err)
			ctx, crash := context.WithCancel(t.Context())
			crash()
			_, err = a.Ask(ctx, &ae.ApprovalRequested{ApprovalID: "ap", CallID: "call_0"})
			require.ErrorIs(t, err, context.Canceled)

			run, p, receipt := goOn(t, &log, test.o)
			require.Equal(t, test.agents, ids(p.Agents))
			require.Equal(t, test.waiting, ids(p.Waiting))
			require.Equal(t, [][]string{test.calls, test.rejected, test.asked}, [][]string{receipt.Calls, receipt.Rejected, receipt.Asked})
			err = run.Answer(t.Context(), &ae.ApprovalGranted{ApprovalID: "ap"})
			if !test.answered {
				require.ErrorIs(t, err, ae.ErrAnswered)
			} else {
				require.NoError(t, err)
				a := run.Agent("planner")
				approval, err := a.Ask(t.Context(), &ae.ApprovalRequested{ApprovalID: "ap", CallID: "call_0"})
				require.NoError(t, err)
				require.True(t, approval.Granted)
				if !test.callStaysOpen {
					_, err = a.Call(t.Context(), &ae.ToolCalled{CallID: "call_0", ToolID: "book", ApprovalID: "ap"})
					require.NoError(t, err)
				}
				require.NoError(t, a.OpenCall("call_0").Return(t.Context(), `"booked"`))
				require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{Resumed: true}))
			}
			require.NoError(t, run.Finish(t.Context(), nil))
			s := snapshot(t, log)
			require.Equal(t, ae.RunStatusCompleted, s.Status)
		})
	}
}

// delegated is the log of a lead whose call to a sub-agent a crash cut off. The sub-agent has a
// helper, which is part of no call, and a sub-agent of its own, in another call.
func delegated(t *testing.T, lifecycle ae.Lifecycle, acts ...ae.Payload) []ae.Event {
	var log []ae.Event
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: lifecycle, Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		log = append(log, ev)
		return nil
	})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	call := func(a *ae.Agent, id string) *ae.Call {
		if lifecycle == ae.LifecycleStrict {
			require.NoError(t, a.To(t.Context(), ae.StatusToolCall))
		}
		c, err := a.Call(t.Context(), &ae.ToolCalled{CallID: id, ToolID: "ask"})
		require.NoError(t, err)
		return c
	}
	start := func(a *ae.Agent) *ae.Agent {
		require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{Lifecycle: lifecycle}))
		return a
	}
	lead := start(run.Agent("lead"))
	sub := start(call(lead, "c1").Agent("sub"))
	start(sub.Agent("helper"))
	leaf := start(call(sub, "c2").Agent("leaf"))
	call(leaf, "c3")
	_, err = leaf.Model(t.Context(), &ae.ModelCalled{ModelCallID: "m1"})
	require.NoError(t, err)
	for _, p := range acts {
		require.NoError(t, leaf.Emit(t.Context(), p))
	}
	start(lead.Agent("aside"))
	return log
}

// A sub-agent ends with the call that it is part of, under each table, and counts as no success.
func TestASubAgentEndsWithItsCall(t *testing.T) {
	for _, table := range []ae.Lifecycle{ae.LifecycleDerived, ae.LifecycleStrict} {
		log := delegated(t, table)
		n := len(log)
		run, p, receipt := goOn(t, &log, resume.Options{})
		require.Equal(t, []string{"lead", "aside"}, ids(p.Agents))
		require.Empty(t, p.Waiting)
		require.Equal(t, []string{"sub", "helper", "leaf"}, ids(p.Ended))
		require.Equal(t, []string{"leaf", "helper", "sub"}, ids(receipt.Ended))
		require.Equal(t, []string{"c3", "c2", "c1"}, receipt.Calls)
		var ends []string
		for _, ev := range log[n:] {
			if p, ok := ev.Payload.(*ae.AgentEnded); ok {
				ends = append(ends, fmt.Sprint(ev.AgentID, " ", p.Outcome, " ", p.Error.V.Code, " ", p.Error.V.Message))
			}
		}
		why := " aborted interrupted the process ended"
		require.Equal(t, []string{"leaf" + why, "helper" + why, "sub" + why}, ends)
		require.NoError(t, run.Finish(t.Context(), context.Canceled)) // a good end needs other statuses in the strict table
		s := snapshot(t, log)
		for _, id := range ids(p.Ended) {
			require.Equal(t, ae.OutcomeAborted, s.Agents[id].Outcome, id)
		}
	}
}

// A sub-agent goes on if its call stays open, because of the options or because something in it
// waits.
func TestASubAgentGoesOnWithItsCall(t *testing.T) {
	log := delegated(t, ae.LifecycleDerived)
	_, p, receipt := goOn(t, &log, resume.Options{Call: func(c *ae.ToolCallSnapshot) resume.Action {
		return map[string]resume.Action{"c1": resume.Wait}[c.CallID]
	}})
	require.Equal(t, []string{"sub", "helper", "aside"}, ids(p.Agents))
	require.Equal(t, []string{"lead"}, ids(p.Waiting))
	require.Equal(t, []string{"leaf"}, ids(receipt.Ended))

	asked := &ae.ApprovalRequested{ApprovalID: "ap"}
	log = delegated(t, ae.LifecycleDerived, asked)
	run, p, receipt := goOn(t, &log, resume.Options{})
	require.Equal(t, []string{"helper", "aside"}, ids(p.Agents))
	require.Equal(t, []string{"lead", "sub", "leaf"}, ids(p.Waiting))
	require.Equal(t, []string{"c3"}, receipt.Calls, "the question is not about this call")
	require.Empty(t, receipt.Ended)
	require.NoError(t, run.Answer(t.Context(), &ae.ApprovalGranted{ApprovalID: "ap"}))

	log = delegated(t, ae.LifecycleDerived, asked)
	_, p, receipt = goOn(t, &log, resume.Options{Call: always[*ae.ToolCallSnapshot](resume.Close), Approval: always[*ae.ApprovalSnapshot](resume.AskAgain)})
	require.Equal(t, []string{"lead", "aside"}, ids(p.Agents))
	require.Empty(t, p.Waiting)
	require.Empty(t, receipt.Asked, "its agent ends")
	require.Equal(t, []string{"leaf", "helper", "sub"}, ids(receipt.Ended))
}

// Laws of plans: an open agent starts, waits or ends; one that waits has something to wait for,
// also after the others have started; and without options no question is lost.
func TestPlanLaws(t *testing.T) {
	for seed := range uint64(300) {
		planKeepsTheLaws(t, rand.New(rand.NewPCG(seed, 0)), seed)
	}
}

func planKeepsTheLaws(t *testing.T, r *rand.Rand, seed uint64) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	agents := []*ae.Agent{run.Agent("a0")}
	require.NoError(t, agents[0].Emit(t.Context(), &ae.AgentStarted{}))
	var calls []*ae.Call
	for i := range 1 + r.IntN(12) {
		at := r.IntN(len(agents))
		id := fmt.Sprintf("%d-%d", at, i)
		about := ""
		if open := agents[at].OpenCalls(); len(open) > 0 && r.IntN(2) == 0 {
			about = pick(r, open)
		}
		switch pick(r, []string{"call", "call", "sub", "sub", "helper", "approval", "clarification", "model"}) {
		case "call":
			c, err := agents[at].Call(t.Context(), &ae.ToolCalled{CallID: "c" + id, ToolID: "x"})
			require.NoError(t, err)
			calls = append(calls, c)
		case "sub", "helper":
			sub := agents[at].Agent("s" + id)
			if len(calls) > 0 && r.IntN(2) == 0 {
				sub = pick(r, calls).Agent("s" + id)
			}
			require.NoError(t, sub.Emit(t.Context(), &ae.AgentStarted{}))
			agents = append(agents, sub)
		case "approval":
			require.NoError(t, agents[at].Emit(t.Context(), &ae.ApprovalRequested{ApprovalID: "p" + id, CallID: about}))
		case "clarification":
			require.NoError(t, agents[at].Emit(t.Context(), &ae.ClarificationRequested{InterruptID: "q" + id, CallID: about, Questions: []ae.Question{{ID: "x", Question: "?"}}}))
		case "model":
			_, err := agents[at].Model(t.Context(), &ae.ModelCalled{ModelCallID: "m" + id})
			require.NoError(t, err)
		}
	}
	action := func(may ...resume.Action) resume.Action { return pick(r, may) }
	o, zero := resume.Options{}, r.IntN(2) == 0
	if !zero {
		o.Call = func(*ae.ToolCallSnapshot) resume.Action { return action(resume.Default, resume.Close, resume.Wait) }
		o.Approval = func(*ae.ApprovalSnapshot) resume.Action {
			return action(resume.Default, resume.Close, resume.Wait, resume.AskAgain)
		}
		o.Clarification = func(*ae.ClarificationSnapshot) resume.Action {
			return action(resume.Default, resume.Wait, resume.AskAgain)
		}
	}
	before := questionsOf(snapshot(t, log))
	run, p, receipt := goOn(t, &log, o)
	for _, a := range p.Agents {
		require.NoError(t, run.Agent(a.AgentID).Emit(t.Context(), &ae.AgentStarted{Resumed: true}))
	}
	s := snapshot(t, log)
	after, waits := questionsOf(s), map[string]bool{}
	if zero {
		require.Equal(t, before, after)
	}
	for _, agent := range after {
		waits[agent] = true
	}
	for _, c := range s.OpenCalls {
		waits[c.AgentID] = true
	}
	require.Empty(t, s.OpenModelCalls)
	require.Len(t, receipt.Ended, len(p.Ended))
	require.Len(t, agents, len(p.Agents)+len(p.Waiting)+len(p.Ended))
	for _, a := range p.Waiting {
		require.True(t, waits[a.AgentID], "%s waits for nothing", a.AgentID)
	}
	for _, a := range append(p.Agents, p.Ended...) {
		require.False(t, waits[a.AgentID], "%s does not wait for the open questions", a.AgentID)
	}
	for _, a := range p.Ended {
		require.False(t, s.Agents[a.AgentID].Open)
	}
	require.NoError(t, run.Finish(t.Context(), nil))
}

// pick returns one of a list.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// questionsOf returns the agents of the open questions.
func questionsOf(s *ae.RunSnapshot) map[string]string {
	open := map[string]string{}
	for _, a := range s.Approvals {
		if a.Open {
			open[a.ApprovalID] = a.AgentID
		}
	}
	for _, c := range s.Clarifications {
		if c.Open {
			open[c.InterruptID] = c.AgentID
		}
	}
	return open
}
