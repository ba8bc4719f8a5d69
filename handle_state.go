package agentevents

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/endword"
)

// This file has the queries about a run that goes on. They read the state of the emitter's rules:
// they need no fold, are cheap, and never wait for a sink. Any goroutine may call them, also sinks
// and by the hooks of EmitterOptions: a sink sees the state after its event, Guard the state
// before. Handles of a released run still answer.

// RunView is the state of a run at one moment, as an emitter or a fold knows it: see [Run.State] and
// [Fold.State]. A [RunSnapshot], which package live keeps, has much more.
type RunView struct {
	RunID     string // the run
	SessionID string // the run's session; see [Run.With]
	// Status is as in a snapshot of the same events, except that an emitter does not count turns.
	Status       RunStatus
	NextSequence uint64         // sequence of the next event
	Agents       []AgentView    // in the order in which they first appear
	Questions    []OpenQuestion // in the order of their kinds and ids
}

// AgentView is the state of an agent at one moment.
type AgentView struct {
	AgentID        string      // the agent; see AgentState.AgentID
	Status         AgentStatus // the latest status
	Step           Opt[int]    // the highest step
	Attempt        int         // number of the current attempt
	Open           bool        // the agent has started and not ended since
	Ended          bool        // the agent has ended and not started since
	OpenCalls      []string    // ids of its open calls, in call order
	OpenModelCalls []string    // ids of its open model calls, in call order
}

// OpenQuestion is an approval or a clarification that waits for its answer.
type OpenQuestion struct {
	Kind    Kind   // KindApprovalRequested or KindClarificationRequested
	ID      string // the approval id or interrupt id
	AgentID string // who asks; empty when the envelope of the request names no agent
}

// State returns the state of the run. It takes time in proportion to the agents, open calls and
// open questions. The zero handle has the zero RunView.
func (r *Run) State() RunView {
	if !r.ok() {
		return RunView{}
	}
	s := r.s
	s.state.Lock()
	defer s.state.Unlock()
	v := s.m.runView()
	v.SessionID = s.session
	v.Status = s.m.standing(v.Questions).status()
	return v
}

// State returns the state of the run after the events applied so far: part of a [Fold.Snapshot], at
// a fraction of its price. It takes time in proportion to the agents, open calls and open questions.
// Status is the snapshot's, and turns count.
func (f *Fold) State() RunView {
	if !f.begun {
		return RunView{Status: RunStatusPending}
	}
	v, s := f.m.runView(), f.v.s
	v.SessionID = s.SessionID
	s.Paused, s.Cancelling = f.m.paused, f.m.cancelling
	s.Agents = make(map[string]*AgentSnapshot, len(f.m.agents))
	for id, a := range f.m.agents {
		s.Agents[id] = a.shown
	}
	v.Status = s.status()
	return v
}

// runView returns the state of the run, without its session and its status.
func (m *machine) runView() RunView {
	v := RunView{RunID: m.RunID, NextSequence: m.NextSequence, Questions: m.openQuestions()}
	agents := make([]*AgentState, 0, len(m.agents))
	for _, a := range m.agents {
		agents = append(agents, a)
	}
	slices.SortFunc(agents, func(a, b *AgentState) int {
		return cmp.Or(cmp.Compare(uint(a.Resume.order), uint(b.Resume.order)), strings.Compare(a.AgentID, b.AgentID)) // without an order last
	})
	at := make(map[string]int, len(agents))
	for i, a := range agents {
		at[a.AgentID] = i
		v.Agents = append(v.Agents, AgentView{AgentID: a.AgentID, Status: a.Status, Step: a.Step, Attempt: a.Attempts, Open: a.Open, Ended: a.Ended})
	}
	for key := range m.calls.Each() {
		if i, ok := at[key.agent]; ok {
			v.Agents[i].OpenCalls = append(v.Agents[i].OpenCalls, key.call)
		}
	}
	for key := range m.modelCalls.Each() {
		if i, ok := at[key.agent]; ok {
			v.Agents[i].OpenModelCalls = append(v.Agents[i].OpenModelCalls, key.call)
		}
	}
	return v
}

// ask calls f with the state of the agent's run, which f must not keep. A nil or zero
// handle has no run: f is not called.
func (a *Agent) ask(f func(m *machine)) {
	if !a.ok() {
		return
	}
	s := a.run.s
	s.state.Lock()
	defer s.state.Unlock()
	f(s.m)
}

// Status returns the agent's status, and false when the run has no event of the agent yet.
// [Run.State] has more facts about it.
func (a *Agent) Status() (status AgentStatus, ok bool) {
	a.ask(func(m *machine) {
		if known := m.agents[a.key()]; known != nil {
			status, ok = known.Status, true
		}
	})
	return status, ok
}

// Open reports whether the agent has started, and not ended since.
func (a *Agent) Open() (open bool) {
	a.ask(func(m *machine) {
		known := m.agents[a.key()]
		open = known != nil && known.Open
	})
	return open
}

// OpenCalls returns the ids of the agent's open calls, in call order.
func (a *Agent) OpenCalls() (ids []string) {
	a.ask(func(m *machine) { ids = idsOf(m.calls.Each(), a.key()) })
	return ids
}

// OpenModelCalls returns the ids of the agent's open model calls, in call order. With
// [Agent.OpenModelCall] a hook that gets no handle from the one that opened the call, such as
// a callback of a framework, finds it.
func (a *Agent) OpenModelCalls() (ids []string) {
	a.ask(func(m *machine) { ids = idsOf(m.modelCalls.Each(), a.key()) })
	return ids
}

// idsOf returns the ids of the calls of an agent.
func idsOf[V any](calls iter.Seq2[callKey, V], agent string) (ids []string) {
	for key := range calls {
		if key.agent == agent {
			ids = append(ids, key.call)
		}
	}
	return ids
}

// openQuestions returns the open questions in the order of their kinds and ids.
func (m *machine) openQuestions() (open []OpenQuestion) {
	for key, q := range m.questions.open {
		open = append(open, OpenQuestion{Kind: key.kind, ID: key.id, AgentID: q.call.agent})
	}
	slices.SortFunc(open, func(a, b OpenQuestion) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.ID, b.ID))
	})
	return open
}

// A standing has the facts that decide the status of a run.
type standing struct {
	terminal           Kind
	paused, cancelling bool
	begun, opened      bool   // as in runResume
	over               bool   // the end of the session, or of the workflow that the run is, ended the run
	session            string // status of the session that has ended
	answered           bool   // it has a result
	workflow           bool   // the run is workflows of which one goes on
	finalized          bool   // the run is workflows that were finalized
	flowEnd            string // the word for how one of these ended that was not
	// A run ends with its turns, and is its turns if their agents have not started; the state
	// of an emitter does not know turns.
	turnOver, isTurn bool
	turn             agentEnd

	waiting int // number of agents that have an open question; no agent counts as one
	// Numbers of agents.
	started, open, working, failed, cancelled int
}

// standing returns the standing of an emitter's run.
func (m *machine) standing(questions []OpenQuestion) standing {
	st := m.RunState.standing(m.sessionOver, m.sessionStatus)
	st.answered = m.sessionAnswered
	st.paused, st.cancelling, st.waiting = m.paused, m.cancelling, len(questions)
	for _, a := range m.agents {
		st.add(a, m.questions.of(a.AgentID) > 0, a.end)
	}
	return st
}

// standing returns the facts in the state of the run alone. ended means that the session has ended,
// with that status.
func (r *RunState) standing(ended bool, status string) standing {
	was := &r.Resume
	st := standing{terminal: r.TerminalKind, begun: was.begun, opened: was.opened, workflow: len(was.workflows) > 0, finalized: was.finalized && !was.opened, flowEnd: was.flowEnd}
	if st.over = st.finalized; ended && !was.opened {
		st.over, st.session = true, status
	}
	return st
}

// add counts an agent. waits means that it has an open question, end is the outcome of its end.
func (st *standing) add(a *AgentState, waits bool, end agentEnd) {
	switch moved := a.Status != "" && a.Status != StatusThinking && !a.Status.Terminal(); {
	case a.Started, a.Ended: // the start of an agent that has ended may be before the log
		st.started++
	case moved: // so may the start of one that moves
		st.open++
		st.working++
		return
	default:
		return
	}
	switch {
	case a.Open:
		st.open++
		if a.Status != StatusBlockedOnClarification && !waits {
			st.working++
		}
	case a.Ended && end.cancelled:
		st.cancelled++
	case a.Ended && (end.failed || a.Status == StatusFailed):
		st.failed++
	}
}

// status derives the status of the run: see [RunStatus].
func (st standing) status() RunStatus {
	switch st.terminal {
	case KindRunCompleted:
		return RunStatusCompleted
	case KindRunFailed:
		return RunStatusFailed
	case KindRunCancelled:
		return RunStatusCancelled
	}
	switch {
	case st.paused:
		return RunStatusPaused
	case st.cancelling && !st.over:
		return RunStatusCancelling
	case !st.begun && st.session == "" && !st.answered:
		return RunStatusPending
	case st.cancelling:
		return RunStatusCancelled
	case st.over && st.session != "":
		return wordStatus(st.session)
	case st.over:
	case st.waiting > 0 && st.working == 0:
		return RunStatusWaiting
	case st.opened || st.open > 0 || st.workflow || (st.started == 0 || st.isTurn) && !st.turnOver:
		return RunStatusRunning
	}
	switch {
	case st.finalized && st.flowEnd != "":
		return wordStatus(st.flowEnd)
	case st.finalized:
	case st.failed > 0 && !st.isTurn || st.turn.failed:
		return RunStatusFailed
	case st.cancelled > 0 && !st.isTurn || st.turn.cancelled:
		return RunStatusCancelled
	}
	return RunStatusCompleted
}

// wordStatus returns the status of a run that is over with a word.
func wordStatus(word string) RunStatus {
	switch endword.Of(word) {
	case endword.Succeeded:
		return RunStatusCompleted
	case endword.Failed, endword.Refused:
		return RunStatusFailed
	case endword.Cancelled:
		return RunStatusCancelled
	}
	return RunStatusEnded
}
