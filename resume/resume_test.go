package resume_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// A host is a process with an emitter, whose log the next one goes on with.
type host struct {
	t   *testing.T
	em  *ae.Emitter
	log *[]ae.Event
}

func newHost(t *testing.T, log *[]ae.Event) *host {
	h := &host{t: t, log: log}
	var err error
	h.em, err = ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		*log = append(*log, ev)
		return nil
	})}})
	require.NoError(t, err)
	return h
}

// snapshot folds the log.
func snapshot(t *testing.T, log []ae.Event) *ae.RunSnapshot {
	fold := ae.NewFold(ae.FoldOptions{})
	for _, ev := range log {
		fold.Apply(ev)
	}
	s := fold.Snapshot()
	require.Empty(t, s.Violations)
	return s
}

// crashed is the log of a run that was cut off while coder called a tool and a model,
// writer waited for an approval, asker for an answer, and node fetch, without an agent,
// ran.
func crashed(t *testing.T) []ae.Event {
	var log []ae.Event
	h := newHost(t, &log)
	run, err := h.em.Run("r")
	require.NoError(t, err)
	emit := func(agent string, payloads ...ae.Payload) {
		for _, p := range payloads {
			if agent == "" {
				require.NoError(t, run.Emit(t.Context(), p))
			} else {
				require.NoError(t, run.Agent(agent).Emit(t.Context(), p))
			}
		}
	}
	emit("", &ae.RunStarted{Name: "release"})
	require.NoError(t, run.With(ae.Scope{NodeID: "fetch", NodeRunID: "fetch-1"}).Emit(t.Context(), &ae.NodeStarted{}))
	emit("done", &ae.AgentStarted{}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	emit("coder", &ae.AgentStarted{Task: "code", Model: "claude", ProviderSessionID: "s-1"}, &ae.ModelCalled{ModelCallID: "m1"}, &ae.ToolCalled{CallID: "c1", ToolID: "Bash"}, &ae.ToolCalled{CallID: "c2", ToolID: "Job"})
	emit("writer", &ae.AgentStarted{Task: "write"}, &ae.ApprovalRequested{ApprovalID: "ap1", Action: "publish"})
	emit("asker", &ae.AgentStarted{}, &ae.ClarificationRequested{InterruptID: "q1", Questions: []ae.Question{{ID: "x", Question: "Which?"}}})
	return log
}

// A question that is asked again is the same question: an approval allows the same call, for the
// same time.
func TestAskedAgainIsTheSameQuestion(t *testing.T) {
	for _, tool := range []string{"", "git"} {
		for _, call := range []string{"", "c1"} {
			for _, arguments := range []ae.JSON{"", `null`, `{"to":"main"}`, `{"token":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}`} {
				for _, timeout := range []ae.Opt[time.Duration]{{}, ae.Some(time.Duration(0)), ae.Some(time.Minute)} {
					requireSameAgain(t, &ae.ApprovalRequested{ApprovalID: "ap1", Action: "push", CallID: call, ToolID: tool, Arguments: arguments, Timeout: timeout})
				}
			}
		}
	}
}

// requireSameAgain asks for an approval beside a clarification, and both again after a resume.
func requireSameAgain(t *testing.T, asked *ae.ApprovalRequested) {
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	for _, p := range []ae.Payload{
		&ae.AgentStarted{}, &ae.ToolCalled{CallID: "c1", ToolID: "git"}, asked,
		&ae.ClarificationRequested{InterruptID: "q1", CallID: "c1", Questions: []ae.Question{{ID: "x", Question: "Which?"}}},
	} {
		require.NoError(t, a.Emit(t.Context(), p))
	}
	before := snapshot(t, log)
	p, err := resume.New(before, resume.Options{
		Call:          func(*ae.ToolCallSnapshot) resume.Action { return resume.Wait },
		Approval:      func(*ae.ApprovalSnapshot) resume.Action { return resume.AskAgain },
		Clarification: func(*ae.ClarificationSnapshot) resume.Action { return resume.AskAgain },
	})
	require.NoError(t, err)
	run, err = newHost(t, &log).em.Resume(p.Snapshot)
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), run)
	require.NoError(t, err)
	after := snapshot(t, log)
	approvals := []ae.ApprovalSnapshot{before.Approvals[0], after.Approvals[1]}
	clarifications := []ae.ClarificationSnapshot{before.Clarifications[0], after.Clarifications[1]}
	for i := range 2 { // only the place in the log is another one
		approvals[i].Sequence, approvals[i].RequestedAt = 0, time.Time{}
		clarifications[i].Sequence, clarifications[i].RequestedAt = 0, time.Time{}
	}
	require.Equal(t, approvals[0], approvals[1])
	require.Equal(t, clarifications[0], clarifications[1])
}

func TestPlan(t *testing.T) {
	s := snapshot(t, crashed(t))
	before := string(s.AppendJSON(nil))
	p, err := resume.New(s, resume.Options{})
	require.NoError(t, err)
	require.Equal(t, before, string(s.AppendJSON(nil)))
	require.Equal(t, "continue", p.Prompt)
	require.Equal(t, []resume.Agent{{AgentID: "coder", SessionID: "s-1", Prompt: "continue", Task: "code", Model: "claude"}}, p.Agents)
	require.Equal(t, []resume.Agent{{AgentID: "writer", Prompt: "continue", Task: "write"}, {AgentID: "asker", Prompt: "continue"}}, p.Waiting)
	require.Equal(t, []string{"fetch"}, p.Nodes)
	require.Equal(t, s.NextSequence, p.Snapshot.NextSequence)
}

// A plan tells a sub-agent, which its parent starts again, from an agent of the run.
func TestPlanNamesTheParents(t *testing.T) {
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	lead := run.Agent("lead")
	for _, a := range []*ae.Agent{lead, lead.Agent("helper"), lead.Agent("waiter")} {
		require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
	}
	require.NoError(t, lead.Agent("waiter").Emit(t.Context(), &ae.ApprovalRequested{ApprovalID: "ap1"}))
	p, err := resume.New(snapshot(t, log), resume.Options{})
	require.NoError(t, err)
	require.Equal(t, []resume.Agent{{AgentID: "lead", Prompt: "continue"}, {AgentID: "helper", ParentAgentID: "lead", Prompt: "continue"}}, p.Agents)
	require.Equal(t, []resume.Agent{{AgentID: "waiter", ParentAgentID: "lead", Prompt: "continue"}}, p.Waiting)
}

func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		o    resume.Options
		want resume.Receipt
		says string // kinds that are recorded
	}{
		"as a rule": {resume.Options{}, resume.Receipt{Nodes: []string{"fetch"}, ModelCalls: []string{"m1"}, Calls: []string{"c1", "c2"}},
			"[run.resumed model.returned agent.toolReturned agent.toolReturned]"},
		"with a message": {resume.Options{Message: "hurry"}, resume.Receipt{Nodes: []string{"fetch"}, ModelCalls: []string{"m1"}, Calls: []string{"c1", "c2"}},
			"[command.received run.resumed model.returned agent.toolReturned agent.toolReturned]"},
		"asked": {resume.Options{
			Call: func(c *ae.ToolCallSnapshot) resume.Action {
				return map[string]resume.Action{"c2": resume.Wait}[c.CallID]
			},
			Approval:      func(*ae.ApprovalSnapshot) resume.Action { return resume.AskAgain },
			Clarification: func(*ae.ClarificationSnapshot) resume.Action { return resume.AskAgain },
		}, resume.Receipt{Nodes: []string{"fetch"}, ModelCalls: []string{"m1"}, Calls: []string{"c1"}, Asked: []string{"ap1", "q1"}},
			"[run.resumed model.returned agent.toolReturned approval.requested clarification.requested]"},
		"rejected": {resume.Options{Approval: func(*ae.ApprovalSnapshot) resume.Action { return resume.Close }},
			resume.Receipt{Nodes: []string{"fetch"}, ModelCalls: []string{"m1"}, Calls: []string{"c1", "c2"}, Rejected: []string{"ap1"}},
			"[run.resumed approval.rejected model.returned agent.toolReturned agent.toolReturned]"},
	} {
		t.Run(name, func(t *testing.T) {
			log := crashed(t)
			n := len(log)
			p, err := resume.New(snapshot(t, log), test.o)
			require.NoError(t, err)
			h := newHost(t, &log)
			run, err := h.em.Resume(p.Snapshot)
			require.NoError(t, err)
			other, err := h.em.Run("another")
			require.NoError(t, err)
			for _, wrong := range []*ae.Run{nil, other} {
				receipt, err := p.Apply(t.Context(), wrong)
				require.ErrorContains(t, err, `the plan is for run "`+p.Snapshot.RunID+`", and not for run "`+wrong.ID()+`"`)
				require.Empty(t, receipt)
			}
			require.Len(t, log, n, "nothing is recorded in another run")
			receipt, err := p.Apply(t.Context(), run)
			require.NoError(t, err)
			test.want.Resumed, test.want.Waiting = p.Agents, p.Waiting
			require.Equal(t, &test.want, receipt)
			_, err = p.Apply(t.Context(), run)
			require.ErrorIs(t, err, resume.ErrApplied)

			kinds := []ae.Kind{}
			for i, ev := range log[n:] {
				require.EqualValues(t, n+i, ev.Sequence, "the log goes on")
				if ev.Kind() != ae.KindAgentTransition {
					kinds = append(kinds, ev.Kind())
				}
			}
			require.Equal(t, test.says, fmt.Sprint(kinds))
			for _, a := range p.Agents {
				require.NoError(t, run.Agent(a.AgentID).Emit(t.Context(), &ae.AgentStarted{Task: a.Task, Resumed: true}))
			}
			s := snapshot(t, log)
			require.Empty(t, s.OpenModelCalls)
			require.Equal(t, 1, countKind(log, ae.KindRunResumed))
		})
	}
}

func countKind(log []ae.Event, kind ae.Kind) (n int) {
	for _, ev := range log {
		if ev.Kind() == kind {
			n++
		}
	}
	return n
}

func TestNewRefuses(t *testing.T) {
	s := snapshot(t, crashed(t))
	_, err := resume.New(nil, resume.Options{})
	require.Error(t, err)
	for name, o := range map[string]resume.Options{
		"a call cannot be asked again":        {Call: func(*ae.ToolCallSnapshot) resume.Action { return resume.AskAgain }},
		"a clarification cannot be closed":    {Clarification: func(*ae.ClarificationSnapshot) resume.Action { return resume.Close }},
		"no action 9":                         {Approval: func(*ae.ApprovalSnapshot) resume.Action { return 9 }},
		"NextSequence is 3, and the snapshot": {NextSequence: 3},
	} {
		_, err := resume.New(s, o)
		require.ErrorContains(t, err, name)
	}
	ended := *s
	ended.Status = ae.RunStatusCompleted
	_, err = resume.New(&ended, resume.Options{})
	require.ErrorIs(t, err, resume.ErrEnded)
}

// A snapshot in the form of the specification has no position, and knows agents by their
// nodes.
func TestASnapshotWithoutAPosition(t *testing.T) {
	s := &ae.RunSnapshot{NodeStatus: map[string]ae.NodeStatus{"plan": ae.NodeStatusRunning, "fetch": ae.NodeStatusRunning, "done": ae.NodeStatusDone}, AgentSessions: map[string]string{"plan": "s-9", "done": "s-8"}}
	s.RunID, s.Status = "r", ae.RunStatusPaused
	_, err := resume.New(s, resume.Options{})
	require.ErrorIs(t, err, resume.ErrNoPosition)
	p, err := resume.New(s, resume.Options{NextSequence: 40, Message: "go on"})
	require.NoError(t, err)
	require.EqualValues(t, 40, p.Snapshot.NextSequence)
	require.Zero(t, s.NextSequence)
	require.Equal(t, []resume.Agent{{AgentID: "plan", NodeID: "plan", SessionID: "s-9", Prompt: "go on"}}, p.Agents)
	require.Equal(t, []string{"fetch"}, p.Nodes)
	run, err := newHost(t, new([]ae.Event)).em.Resume(p.Snapshot)
	require.NoError(t, err)
	_, err = p.Apply(t.Context(), run)
	require.NoError(t, err)
	require.NoError(t, run.Agent(p.Agents[0].AgentID).Emit(t.Context(), &ae.AgentStarted{Resumed: true}))
}

// Wherever a run was cut off, it goes on and ends without a violation.
func TestEveryBoundary(t *testing.T) {
	whole := crashed(t)
	for n := 1; n <= len(whole); n++ {
		log := append([]ae.Event(nil), whole[:n]...)
		p, err := resume.New(snapshot(t, log), resume.Options{Message: "go on", Approval: func(*ae.ApprovalSnapshot) resume.Action { return resume.Close }})
		require.NoError(t, err)
		h := newHost(t, &log)
		run, err := h.em.Resume(p.Snapshot)
		require.NoError(t, err)
		_, err = p.Apply(t.Context(), run)
		require.NoError(t, err, "cut after %d events", n)
		for _, a := range p.Agents {
			require.NoError(t, run.Agent(a.AgentID).Emit(t.Context(), &ae.AgentStarted{Task: a.Task, Resumed: true}), "cut after %d events", n)
		}
		for _, a := range p.Waiting {
			require.NoError(t, run.Agent(a.AgentID).Emit(t.Context(), &ae.ClarificationResolved{InterruptID: "q1", Answers: `{"x":"both"}`}))
		}
		for _, a := range append(p.Agents, p.Waiting...) {
			require.NoError(t, run.Agent(a.AgentID).Emit(t.Context(), &ae.AgentEnded{Outcome: ae.OutcomeConverged}), "cut after %d events", n)
		}
		require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
		s := snapshot(t, log)
		require.Equal(t, ae.RunStatusCompleted, s.Status)
		require.Empty(t, s.OpenCalls)
		require.Empty(t, s.OpenModelCalls)
		for _, a := range s.Agents {
			require.False(t, a.Open, a.AgentID)
		}
	}
}

// Calls that their agent left open when it ended, moved to a terminal status, or that it made
// in a node without a start of its own are closed like all others.
func TestApplyClosesCallsOfAgentsThatDoNotWork(t *testing.T) {
	node := ae.Scope{NodeID: "draft", NodeRunID: "draft#1"}
	for name, test := range map[string]struct {
		in   ae.Scope
		acts []ae.Payload // after the start, if any, and the calls
	}{
		"ended":    {ae.Scope{}, []ae.Payload{&ae.AgentEnded{Outcome: ae.OutcomePartial}}},
		"failed":   {ae.Scope{}, []ae.Payload{&ae.AgentTransition{To: ae.StatusFailed}}},
		"no start": {node, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log []ae.Event
			run, err := newHost(t, &log).em.Run("r")
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
			sub := run.With(test.in).Agent("sub")
			if test.in == node {
				require.NoError(t, run.With(node).Emit(t.Context(), &ae.NodeStarted{}))
			} else {
				require.NoError(t, sub.Emit(t.Context(), &ae.AgentStarted{}))
			}
			for _, p := range append([]ae.Payload{&ae.ToolCalled{CallID: "c", ToolID: "slow"}, &ae.ModelCalled{ModelCallID: "m"}}, test.acts...) {
				require.NoError(t, sub.Emit(t.Context(), p))
			}
			p, err := resume.New(snapshot(t, log), resume.Options{})
			require.NoError(t, err)
			again, err := newHost(t, &log).em.Resume(p.Snapshot)
			require.NoError(t, err)
			receipt, err := p.Apply(t.Context(), again)
			require.NoError(t, err)
			require.Equal(t, []string{"c"}, receipt.Calls)
			require.Equal(t, []string{"m"}, receipt.ModelCalls)
			s := snapshot(t, log)
			require.Empty(t, s.OpenCalls)
			require.Empty(t, s.OpenModelCalls)
		})
	}
}

// An agent that has ended in a node that still runs is not started again.
func TestANodeWhoseAgentHasEnded(t *testing.T) {
	var log []ae.Event
	run, err := newHost(t, &log).em.Run("r")
	require.NoError(t, err)
	require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
	node := run.With(ae.Scope{NodeID: "draft", NodeRunID: "draft#1"})
	require.NoError(t, node.Emit(t.Context(), &ae.NodeStarted{}))
	require.NoError(t, node.Agent("writer").Emit(t.Context(), &ae.AgentStarted{ProviderSessionID: "s1"}))
	require.NoError(t, node.Agent("writer").Emit(t.Context(), &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
	p, err := resume.New(snapshot(t, log), resume.Options{})
	require.NoError(t, err)
	require.Empty(t, p.Agents)
	require.Equal(t, []string{"draft"}, p.Nodes)
}
