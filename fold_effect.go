package agentevents

import (
	"cmp"
	"slices"
	"time"
)

// An Effect is the part of one event in the state of its run: how the fold resolves the event, and
// the change of the figures. The sums of the changes over all events of a log are the figures of the
// snapshot, so rows that are made of effects add up to it. [Fold.Effect] returns it.
type Effect struct {
	// Counted is false for an event that the fold leaves out: it comes again, its sequence goes
	// back, or it names another run. Then the other fields are zero.
	Counted bool

	// Agent is the agent that counts the event: its own, which the event may name by a span alone;
	// for a call of a tool the one in whose span the call is, and for an answer of a person the one
	// that asked. It has the state after the event, and is nil without an agent. It belongs to the
	// fold: it must not be changed, is valid until the next event, and its texts and calls may be
	// older than the event.
	Agent *AgentSnapshot
	// Formerly is the span that earlier effects have for the id of Agent: with this event the
	// agent, which was known by that span, gets its id. Empty for other events.
	Formerly string
	// Again tells that the event returns a call or a model call that has returned: it does not count.
	Again bool

	// Begins is the number of calls, model calls and handoffs that are in the run because of the
	// event: the return of a call whose start the log lacks begins it, too. 0 or 1.
	Begins int
	// From and To are the ids of the agents of the handoff that begins with the event; empty where the
	// event names none.
	From, To string
	// Began is the time at which began that which the event ends: the call, model call, approval,
	// agent or run. Zero where the log has no start of it, and for other events.
	Began time.Time
	// Tool, Model and Provider belong to the call that the event ends, as its start names them.
	Tool, Model, Provider string

	// Spends tells that the event is about usage. Then the next three have the changes, which may be
	// zero, and below zero where an event corrects the figures of earlier ones. Optional figures are
	// absent where nothing changes.
	Spends bool
	// Run is the change of [RunUsage].Usage. CostUSD in it is the change of RunUsage.CostUSD, in US
	// dollars.
	Run Usage
	// Own is the change of the sum that [AgentUsage.Total] has for Agent, with its cost.
	Own Usage
	// Models are the changes of [RunUsage].Models, sorted by the name of the model.
	Models []ModelEffect
}

// A ModelEffect is the change of the figures of one model.
type ModelEffect struct {
	Model string // its name
	Usage Usage  // the change, with the cost in US dollars
	Gone  bool   // the run has no figures of the model any more
}

// Effect is [Fold.ApplyLine] and returns the effect of the event. The line is the event as
// [Event.AppendJSON] writes it. It takes up to twice the time.
func (f *Fold) Effect(ev *Event, line string) (e Effect) {
	if f.v.effects == nil {
		f.v.effects = &effects{}
	}
	f.v.effects.Effect = &e
	f.ApplyLine(*ev, line)
	f.v.effects.Effect = nil
	return e
}

// effects collects the effect of an event while it is applied. Without an Effect it does nothing, as
// do all methods of view that note a part of one.
type effects struct {
	*Effect
	known    bool // the next field was found out from the snapshot
	includes bool // figures of agents include others: the sum is not the run's
	before   bill
	handoffs int
	counts   string // id of the agent that counts the event, if the event tells of a call or an answer
}

// A bill has the figures that an event may change. Where no figures include others, the run's
// change as the agent's do, and run and models are the agent's.
type bill struct {
	run, own Usage
	models   map[string]Usage
	includes bool
}

// noting returns the place of the effect, or nil.
func (v *view) noting() *effects {
	if v == nil || v.effects == nil || v.effects.Effect == nil {
		return nil
	}
	return v.effects
}

// began notes when that began which the event ends.
func (v *view) began(at time.Time) {
	if e := v.noting(); e != nil {
		e.Began = at
	}
}

// begins notes that a call is in the run because of the event.
func (v *view) begins() {
	if e := v.noting(); e != nil {
		e.Begins = 1
	}
}

// counts notes the agent that counts a call.
func (v *view) counts(by *AgentState) {
	if e := v.noting(); e != nil && by != nil {
		e.counts = by.AgentID
	}
}

// countsFor notes the id of the agent that counts an approval.
func (v *view) countsFor(agent string) {
	if e := v.noting(); e != nil {
		e.counts = agent
	}
}

// returnsAgain notes that the event returns a call that has returned.
func (v *view) returnsAgain() {
	if e := v.noting(); e != nil {
		e.Again = true
	}
}

// ends notes the call that an event ends.
func (v *view) ends(began time.Time, tool, model, provider string) {
	if e := v.noting(); e != nil {
		e.Began, e.Tool, e.Model, e.Provider = began, tool, model, provider
	}
}

// before notes the figures before the event of an agent, or of none.
func (m *machine) before(ev *Event, a *AgentState) {
	e := m.view.noting()
	if e == nil {
		return
	}
	e.Counted, e.handoffs, e.counts = true, len(m.view.s.Handoffs), ""
	if e.Spends = spends(ev); e.Spends {
		e.learn(m, ev)
		e.before = m.bill(a)
	}
}

// after notes the event's agent and the changes.
func (m *machine) after(ev *Event, a *AgentState) {
	e := m.view.noting()
	if e == nil {
		return
	}
	v := m.view
	if by := m.agents[e.counts]; by != nil && e.Formerly == "" {
		e.Agent = by.shown
	} else if a != nil {
		e.Agent = a.shown
	}
	if e.Agent != nil {
		v.rename(&e.Agent.ParentAgentID, e.Agent.Sequence)
	}
	if n := len(v.s.Handoffs); n > e.handoffs {
		h := &v.s.Handoffs[n-1]
		e.Begins, e.From, e.To = 1, h.From, h.To
	}
	switch ev.Payload.(type) {
	case *AgentEnded:
		if a != nil {
			e.Began = a.shown.StartedAt
		}
	case *RunCompleted, *RunFailed, *RunCancelled:
		e.Began = v.s.StartedAt
	}
	if e.Spends {
		m.spent(a, e)
	}
}

// spends reports whether an event may change figures of usage.
func spends(ev *Event) bool {
	switch ev.Payload.(type) {
	case *AgentStarted, *AgentEnded, *UsageObserved, *ModelReturned, *TurnSummarized:
		return true
	}
	return false
}

// learn finds out whether figures include others, before an event changes them.
func (e *effects) learn(m *machine, ev *Event) {
	if !e.known {
		e.known = true
		for _, a := range m.agents {
			for u := range a.shown.Usage.attempts {
				e.includes = e.includes || len(u.Models) > 0 || u.Stated.OK
			}
		}
	}
	if p, ok := ev.Payload.(*AgentEnded); ok && (len(p.ModelUsage) > 0 || p.StatedTokens.OK) {
		e.includes = true
	}
}

// bill returns the figures of an agent, or of the events without one, and the run's.
func (m *machine) bill(a *AgentState) (b bill) {
	u := &m.view.s.Usage.Unassigned
	if a != nil {
		u = &a.shown.Usage
	}
	var cost Opt[float64]
	b.own, cost = u.Total()
	b.own.CostUSD = cost
	if b.includes = m.view.effects.includes; !b.includes {
		b.run, b.models = b.own, u.ByModel()
		delete(b.models, "")
		return b
	}
	s := m.view.sync(m)
	s.countUsage()
	b.run, b.models = s.Usage.Usage, s.Usage.Models
	b.run.CostUSD = s.Usage.CostUSD
	return b
}

// spent notes the changes of the figures.
func (m *machine) spent(a *AgentState, e *effects) {
	now, was := m.bill(a), &e.before
	e.Run, e.Own = now.run.less(was.run), now.own.less(was.own)
	if a == nil {
		e.Own = Usage{}
	}
	for model, u := range now.models {
		old, known := was.models[model]
		if change := u.less(old); !known || change != (Usage{}) {
			e.Models = append(e.Models, ModelEffect{Model: model, Usage: change})
		}
	}
	for model, u := range was.models {
		if _, known := now.models[model]; !known {
			e.Models = append(e.Models, ModelEffect{model, Usage{}.less(u), now.includes || !m.uses(model)})
		}
	}
	slices.SortFunc(e.Models, func(a, b ModelEffect) int { return cmp.Compare(a.Model, b.Model) })
}

// uses reports whether the run has figures of the model. No figures include others.
func (m *machine) uses(model string) bool {
	_, is := m.view.s.Usage.Unassigned.ByModel()[model]
	for _, a := range m.agents {
		_, used := a.shown.Usage.ByModel()[model]
		is = is || used
	}
	return is
}

// less returns the difference of two figures. A figure that is the same in both is absent, where it
// may be.
func (u Usage) less(v Usage) Usage {
	return Usage{
		InputTokens: u.InputTokens - v.InputTokens, OutputTokens: u.OutputTokens - v.OutputTokens,
		TotalTokens:              lessOpt(u.TotalTokens, v.TotalTokens),
		CacheCreationInputTokens: lessOpt(u.CacheCreationInputTokens, v.CacheCreationInputTokens),
		CacheReadInputTokens:     lessOpt(u.CacheReadInputTokens, v.CacheReadInputTokens),
		ReasoningOutputTokens:    lessOpt(u.ReasoningOutputTokens, v.ReasoningOutputTokens),
		CostUSD:                  lessOpt(u.CostUSD, v.CostUSD),
	}
}

func lessOpt[T int64 | float64](u, v Opt[T]) Opt[T] {
	if u == v {
		return Opt[T]{}
	}
	return Some(u.V - v.V)
}
