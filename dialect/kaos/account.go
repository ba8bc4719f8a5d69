package kaos

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// An account holds the texts and the usage of an agent on the lines so far.
type account struct {
	of     scope
	parent string
	open   bool              // it has started and not ended
	blocks []block           // of which there are deltas
	told   bool              // by usage_observed lines of this attempt
	before agentevents.Usage // by the ends of earlier attempts
	below  agentevents.Usage // used by sub-agents since the latest end
}

// A block is a block of text or reasoning.
type block struct {
	kind agentevents.Kind // of its deltas
	id   string
}

func (e *Encoder) account(run, agent string) *account {
	of := scope{run, agent}
	if e.latest != nil && e.latest.of == of { // as mostly
		return e.latest
	}
	e.latest = e.accounts.Of(of)
	if e.latest == nil {
		e.latest = &account{of: scope{strings.Clone(run), strings.Clone(agent)}} // clones do not keep the line alive
		e.accounts.Set(e.latest.of, e.latest)
	}
	return e.latest
}

// told reports whether an event of an agent is a whole block of which there are deltas.
func (e *Encoder) told(ev *agentevents.Event, agent string) bool {
	switch p := ev.Payload.(type) {
	case *agentevents.TextCompleted:
		return e.account(ev.RunID, agent).whole(block{agentevents.KindTextDelta, p.BlockID})
	case *agentevents.AgentReasoned:
		return e.account(ev.RunID, agent).whole(block{agentevents.KindAgentReasoningDelta, p.BlockID})
	}
	return false
}

// note updates the account of an agent from a written event. For an end, after is the result of
// ended.
func (e *Encoder) note(ev *agentevents.Event, agent string, after account) {
	e.noteHandoff(ev)
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		e.account(ev.RunID, agent).begin(block{ev.Kind(), p.BlockID})
	case *agentevents.AgentReasoningDelta:
		e.account(ev.RunID, agent).begin(block{ev.Kind(), p.BlockID})
	case *agentevents.UsageObserved:
		a := e.account(ev.RunID, agent)
		a.told = true
		e.above(ev.RunID, a, costing(p.Usage, p.CostUSD))
	case *agentevents.AgentStarted:
		a := e.account(ev.RunID, agent)
		a.parent, a.open, a.told, a.blocks = strings.Clone(ev.ParentAgentID), true, false, nil
	case *agentevents.AgentEnded:
		a := e.account(ev.RunID, agent)
		*a = after
		a.below = agentevents.Usage{}
		e.above(ev.RunID, a, after.below)
	case *agentevents.NodeFailed:
		e.account(ev.RunID, agent).open = false
	}
}

// ended returns the account after the agent's end. used is the agent's usage, or nil if a line has
// it: readers count only usage_observed.
func (a account) ended(p *agentevents.AgentEnded) (after account, used *agentevents.UsageObserved) {
	all, models := p.Usage.V, len(p.ModelUsage) > 0
	if models {
		all = agentevents.Usage{}
		for _, model := range slices.Sorted(maps.Keys(p.ModelUsage)) {
			all = plus(all, p.ModelUsage[model], 1)
		}
	}
	all = costing(all, p.TotalCostUSD)
	own := all
	if models { // it includes sub-agents
		own = plus(own, a.below, -1)
	} else {
		all = plus(all, a.below, 1)
	}
	if models && p.Cumulative {
		own = plus(own, a.before, -1)
		a.before = all
	} else {
		a.before = plus(a.before, all, 1)
	}
	if !a.told && (own.InputTokens > 0 || own.OutputTokens > 0 || own.TotalTokens.V > 0 || own.CostUSD.V > 0) {
		a.below = plus(a.below, own, 1)
		used = &agentevents.UsageObserved{Usage: own, CostUSD: own.CostUSD}
	}
	a.blocks, a.open = nil, false
	return a, used
}

// above adds used to the usage of the sub-agents of an agent's parent.
func (e *Encoder) above(run string, a *account, used agentevents.Usage) {
	if a.parent != "" {
		parent := e.account(run, e.names.Named(run, a.parent))
		parent.below = plus(parent.below, used, 1)
	}
}

// begin notes a block of which there are deltas.
func (a *account) begin(b block) {
	if !slices.Contains(a.blocks, b) && len(a.blocks) < maxRecent {
		b.id = strings.Clone(b.id)
		a.blocks = append(a.blocks, b)
	}
}

// whole notes that a whole block comes. It reports whether there were deltas of it.
func (a *account) whole(b block) bool {
	i := slices.Index(a.blocks, b)
	if i >= 0 {
		a.blocks = slices.Delete(a.blocks, i, i+1)
	}
	return i >= 0
}

// costing returns the figures that usage_observed has of a usage.
func costing(u agentevents.Usage, cost agentevents.Opt[float64]) agentevents.Usage {
	if !cost.OK {
		cost = u.CostUSD
	}
	return agentevents.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, TotalTokens: u.TotalTokens,
		CostUSD: cost}
}

// plus returns u and n times v, and no figure below 0.
func plus(u, v agentevents.Usage, n int64) agentevents.Usage {
	u.InputTokens = max(0, u.InputTokens+n*v.InputTokens)
	u.OutputTokens = max(0, u.OutputTokens+n*v.OutputTokens)
	if v.TotalTokens.OK {
		u.TotalTokens = agentevents.Some(max(0, u.TotalTokens.V+n*v.TotalTokens.V))
	}
	if v.CostUSD.OK {
		const digits = 1e9 // a difference of dollars has no more that mean anything
		u.CostUSD = agentevents.Some(math.Round(max(0, u.CostUSD.V+float64(n)*v.CostUSD.V)*digits) / digits)
	}
	return u
}
