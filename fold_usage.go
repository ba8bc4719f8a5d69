package agentevents

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// This file counts usage. Every figure counts once: see [RunUsage].

// add adds v to u. A count stops at the highest int64.
func (u *Usage) add(v Usage) {
	u.InputTokens = plus(u.InputTokens, v.InputTokens)
	u.OutputTokens = plus(u.OutputTokens, v.OutputTokens)
	addTokens(&u.TotalTokens, v.TotalTokens)
	addTokens(&u.CacheCreationInputTokens, v.CacheCreationInputTokens)
	addTokens(&u.CacheReadInputTokens, v.CacheReadInputTokens)
	addCost(&u.CostUSD, v.CostUSD)
}

func addTokens(to *Opt[int64], v Opt[int64]) {
	if v.OK {
		*to = Some(plus(to.V, v.V))
	}
}

func addCost(to *Opt[float64], v Opt[float64]) {
	if v.OK {
		*to = Some(min(to.V+v.V, math.MaxFloat64)) // JSON has no infinity
	}
}

// plain returns the figures without extra members.
func (u Usage) plain() Usage {
	u.extra = ""
	return u
}

// end adds the figures of an end. ModelUsage is a running total of the agent, so
// the latest one replaces the others. Without it the figures are those of one
// attempt and add up.
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
		addCost(&u.CostUSD, p.TotalCostUSD)
	}
	if p.Usage.OK {
		v := u.Ended.V
		v.add(p.Usage.V)
		u.Ended = Some(v)
	}
}

// observe adds the figures of a usage.observed.
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
	addCost(&u.ObservedCost, p.CostUSD)
}

// Total returns the tokens that count for the agent, and its cost in US dollars.
// The tokens are those of Models, else of Ended, else of Observed. The cost is
// CostUSD, else the sum of the costs in Models, else ObservedCost.
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
	run.Usage, run.CostUSD, run.Models = Usage{}, Opt[float64]{}, nil
	add := func(u *AgentUsage) {
		sum, cost := u.Total()
		run.Usage.add(sum)
		addCost(&run.CostUSD, cost)
		for model, v := range u.Models {
			all := run.Models[model]
			all.add(v)
			put(&run.Models, model, all)
		}
	}
	// The sum of floats depends on their order: take the agents as they appeared.
	var few [8]listedAgent
	agents := r.agentsInOrder(few[:0])
	byParent := r.countedByParents(agents)
	for _, a := range agents {
		if !byParent[a.snapshot] {
			add(&a.snapshot.Usage)
		}
	}
	add(&run.Unassigned)
}

// countedByParents returns the agents whose usage an agent above them includes: a
// modelUsage includes sub-agents. It looks at each agent once, however deep they
// nest. In a circle of parents the last agent on the way up is taken as the top.
func (r *RunSnapshot) countedByParents(agents []listedAgent) map[*AgentSnapshot]bool {
	counts := func(a *AgentSnapshot) bool { return len(a.Usage.Models) > 0 }
	if !slices.ContainsFunc(agents, func(a listedAgent) bool { return counts(a.snapshot) }) {
		return nil // the usual case: no agent includes others
	}
	counted := make(map[*AgentSnapshot]bool, len(agents))
	looking := map[*AgentSnapshot]bool{}
	var path []*AgentSnapshot
	for _, agent := range agents {
		// Go up to the top, or to an agent whose answer is known.
		path = path[:0]
		above := false
		for a := agent.snapshot; a != nil && !looking[a]; {
			if known, ok := counted[a]; ok {
				above = known || counts(a)
				break
			}
			looking[a] = true
			path = append(path, a)
			a = r.Agents[a.ParentAgentID]
		}
		// Go down again: above says whether an agent above this one includes it.
		for i := len(path) - 1; i >= 0; i-- {
			counted[path[i]] = above
			above = above || counts(path[i])
			delete(looking, path[i])
		}
	}
	return counted
}
