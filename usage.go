package agentevents

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// How usage is counted. Every figure counts once: see [RunUsage].

// add adds another count to u.
func (u *Usage) add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	addOpt(&u.TotalTokens, v.TotalTokens)
	addOpt(&u.CacheCreationInputTokens, v.CacheCreationInputTokens)
	addOpt(&u.CacheReadInputTokens, v.CacheReadInputTokens)
	addOpt(&u.CostUSD, v.CostUSD)
}

func addOpt[T int64 | float64](to *Opt[T], v Opt[T]) {
	if v.OK {
		sum := to.V + v.V
		if f, ok := any(sum).(float64); ok && math.IsInf(f, 0) {
			sum = to.V // beyond what a number in JSON can say
		}
		*to = Some(sum)
	}
}

// plain returns the figures without members of a line.
func (u Usage) plain() Usage {
	u.extra = ""
	return u
}

// end notes what an end says. The use per model is a running total of the
// agent, so the latest one stands; without it the figures are of one attempt
// and add up.
func (u *AgentUsage) end(p *AgentEnded) {
	if len(p.ModelUsage) > 0 {
		u.Models = make(map[string]Usage, len(p.ModelUsage))
		for model, v := range p.ModelUsage {
			u.Models[strings.Clone(model)] = v.plain()
		}
		if p.TotalCostUSD.OK {
			u.CostUSD = p.TotalCostUSD
		}
	} else {
		addOpt(&u.CostUSD, p.TotalCostUSD)
	}
	if p.Usage.OK {
		v := u.Ended.V
		v.add(p.Usage.V)
		u.Ended = Some(v)
	}
}

// observe notes a usage.observed.
func (u *AgentUsage) observe(p *UsageObserved) {
	if p.Cumulative {
		u.Observed = Some(p.Usage.plain())
		if p.CostUSD.OK {
			u.ObservedCost = p.CostUSD
		}
		return
	}
	v := u.Observed.V
	v.add(p.Usage)
	u.Observed = Some(v)
	addOpt(&u.ObservedCost, p.CostUSD)
}

// Total returns what the agent counts with, and its cost in US dollars.
func (u *AgentUsage) Total() (Usage, Opt[float64]) {
	cost := u.CostUSD
	var sum Usage
	switch {
	case len(u.Models) > 0:
		for _, model := range slices.Sorted(maps.Keys(u.Models)) {
			sum.add(u.Models[model])
		}
		if !cost.OK {
			cost = sum.CostUSD
		}
		sum.CostUSD = Opt[float64]{}
	case u.Ended.OK:
		sum = u.Ended.V
	default:
		sum = u.Observed.V
	}
	if !cost.OK {
		cost = u.ObservedCost
	}
	return sum, cost
}

// countUsage adds up the run's usage from its agents.
func (r *RunSnapshot) countUsage() {
	run := &r.Usage
	run.Usage, run.CostUSD = Usage{}, Opt[float64]{}
	clear(run.Models)
	add := func(u *AgentUsage) {
		sum, cost := u.Total()
		run.Usage.add(sum)
		addOpt(&run.CostUSD, cost)
		for model, v := range u.Models {
			all := run.Models[model]
			all.add(v)
			run.Models[model] = all
		}
	}
	// In order of appearance: sums of floats depend on their order.
	var few [8]*AgentSnapshot
	for _, a := range r.agentsInOrder(few[:0]) {
		if !r.countedByParent(a) {
			add(&a.Usage)
		}
	}
	add(&run.Unassigned)
}

// countedByParent reports whether an agent above a has counted its use: the
// use per model includes sub-agents.
func (r *RunSnapshot) countedByParent(a *AgentSnapshot) bool {
	child := a
	for range len(r.Agents) { // bounds a circle of parents
		a = r.Agents[a.ParentAgentID]
		if a == nil || a == child {
			return false
		}
		if len(a.Usage.Models) > 0 {
			return true
		}
	}
	return false
}
