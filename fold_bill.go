package agentevents

import (
	"maps"
	"slices"
)

// A UsageSource is one place of a run that states usage: a leaf of the run's bill. The sums
// of Counted and CountedCost over all leaves are RunUsage.Usage and RunUsage.CostUSD, but for the
// rounding of costs.
type UsageSource struct {
	AgentID string // the agent; empty for events without an agent, and for figures of the run
	Parent  string // the agent that spawned it
	Attempt int    // number of the kept attempt of the agent, from 1; 0 for figures of the run
	// Source is the event and the member with the figures: "agent.ended modelUsage", "agent.ended
	// usage", "agent.ended totalCostUsd", "agent.ended statedTokens", "reports" (of model.returned, usage.observed and
	// turn.summarized), "workflow.finalized totalTokens" or "workflow.phase.completed tokens".
	Source      string
	Model       string       // the model, of modelUsage and reports
	ModelCallID string       // of reports about a call that has not returned
	Usage       Usage        // as stated
	Cost        Opt[float64] // as stated; US dollars
	Counted     Usage        // the part that counts
	CountedCost Opt[float64] // the part that counts; US dollars
	// Why tells why a part of the source does not count; empty when all of it does.
	Why string
	// Differs is the tokens, sent, generated and of caches, that the sources of the attempt that count
	// have more than all sources of this kind; 0 when they agree, or when it counts.
	Differs int64
}

// The reasons of UsageSource.Why.
const (
	setModels = "the modelUsage of the end counts"
	setEnded  = "the usage of the end counts"
	setCost   = "the cost of the end counts"
	setParent = "an attempt of an agent above it includes it"
	setStated = "it is a stated total of agents that count themselves"
	setOthers = "other figures of the run count"
)

// UsageSources returns the bill of the run: every source of usage in the order of the agents and their
// attempts, with the part of it that counts. A running total has taken the place of the attempts
// that it includes ([AgentEnded].Cumulative): these are no longer known.
func (r *RunSnapshot) UsageSources() (all []UsageSource) {
	var few [8]listedAgent
	agents := r.agentsInOrder(few[:0])
	byParent := r.countedByParents(agents)
	for _, a := range agents {
		n := 0
		for u := range a.snapshot.Usage.attempts {
			n++
			leaves := u.sources()
			for i := range leaves {
				l := &leaves[i]
				l.AgentID, l.Parent, l.Attempt = a.snapshot.AgentID, a.snapshot.ParentAgentID, n
				if byParent[u] {
					l.Counted, l.CountedCost, l.Why, l.Differs = Usage{}, Opt[float64]{}, setParent, 0
				}
			}
			all = append(all, leaves...)
			if u.Stated.V > 0 {
				all = append(all, UsageSource{AgentID: a.snapshot.AgentID, Parent: a.snapshot.ParentAgentID, Attempt: n, Source: sourceStated, Usage: Usage{TotalTokens: u.Stated}, Why: setOthers})
			}
		}
	}
	all = append(all, r.Usage.Unassigned.AttemptUsage.sources()...)
	countStated(all)
	for i := range r.Phases {
		if p := &r.Phases[i]; p.Tokens.OK {
			all = append(all, UsageSource{Source: "workflow.phase.completed tokens", Usage: Usage{TotalTokens: p.Tokens}, Why: setStated})
		}
	}
	for i := range r.Workflows {
		if w := &r.Workflows[i]; w.TotalTokens.OK {
			all = append(all, UsageSource{Source: "workflow.finalized totalTokens", Usage: Usage{TotalTokens: w.TotalTokens}, Why: setStated})
		}
	}
	return all
}

const sourceStated = "agent.ended statedTokens"

// countStated has the tokens count that ends state, if nothing else of the run counts.
func countStated(all []UsageSource) {
	var u Usage
	for i := range all {
		u.add(all[i].Counted)
	}
	if !u.tokenless() {
		return
	}
	for i := range all {
		if l := &all[i]; l.Source == sourceStated {
			l.Counted, l.Why = l.Usage, ""
		}
	}
}

// sources returns the sources of an attempt: see Total.
func (u *AttemptUsage) sources() (all []UsageSource) {
	add := func(source, model, call string, v Usage) *UsageSource {
		cost := v.CostUSD
		v.CostUSD = Opt[float64]{}
		all = append(all, UsageSource{Source: source, Model: model, ModelCallID: call, Usage: v.plain(), Cost: cost})
		return &all[len(all)-1]
	}
	for _, model := range slices.Sorted(maps.Keys(u.Models)) {
		l := add("agent.ended modelUsage", model, "", u.Models[model])
		l.Counted = l.Usage
	}
	if u.Ended.OK {
		l := add("agent.ended usage", "", "", u.Ended.V)
		if len(u.Models) == 0 {
			l.Counted = l.Usage
		} else {
			l.Counted, l.Why = u.rest(), setModels
		}
	}
	if u.CostUSD.OK {
		all = append(all, UsageSource{Source: "agent.ended totalCostUsd", Cost: u.CostUSD})
	}
	for i := range u.Reported {
		v := &u.Reported[i]
		if v.Usage.plain() == (Usage{}) {
			continue // calls that state none
		}
		l := add("reports", v.Model, v.ModelCallID, v.Usage)
		switch {
		case len(u.Models) > 0:
			l.Why = setModels
		case u.Ended.OK:
			l.Why = setEnded
		default:
			l.Counted = l.Usage
		}
	}
	u.countCosts(all)
	compare(all)
	return all
}

// rest returns the figures of the end's usage that complete modelUsage.
func (u *AttemptUsage) rest() Usage {
	var models Usage
	for _, v := range u.Models {
		models.add(v)
	}
	whole := models
	u.stated(&whole)
	var rest Usage
	for _, f := range [...]struct{ to, had, has *Opt[int64] }{
		{&rest.CacheCreationInputTokens, &models.CacheCreationInputTokens, &whole.CacheCreationInputTokens},
		{&rest.CacheReadInputTokens, &models.CacheReadInputTokens, &whole.CacheReadInputTokens},
		{&rest.ReasoningOutputTokens, &models.ReasoningOutputTokens, &whole.ReasoningOutputTokens},
	} {
		if !f.had.OK {
			*f.to = *f.has
		}
	}
	return rest
}

// countCosts sets the costs that count: the first of these kinds of sources that states any has them.
func (u *AttemptUsage) countCosts(all []UsageSource) {
	order := []string{"agent.ended totalCostUsd", "agent.ended usage", "reports"}
	if len(u.Models) > 0 {
		order[1] = "agent.ended modelUsage"
	}
	counts := ""
	for _, source := range order {
		if slices.ContainsFunc(all, func(l UsageSource) bool { return l.Source == source && l.Cost.OK }) {
			counts = source
			break
		}
	}
	for i := range all {
		switch l := &all[i]; {
		case !l.Cost.OK:
		case l.Source == counts:
			l.CountedCost = l.Cost
		case l.Why == "":
			l.Why = setCost
		}
	}
}

// compare notes by how much the kinds of sources whose tokens do not count differ from those that do.
func compare(all []UsageSource) {
	tokens := func(v Usage) int64 {
		return plus(plus(v.InputTokens, v.OutputTokens), plus(v.CacheCreationInputTokens.V, v.CacheReadInputTokens.V))
	}
	var counted int64
	stated := map[string]int64{}
	for i := range all {
		counted = plus(counted, tokens(all[i].Counted))
		stated[all[i].Source] = plus(stated[all[i].Source], tokens(all[i].Usage))
	}
	for i := range all {
		if l := &all[i]; (l.Why == setModels || l.Why == setEnded) && l.Usage != (Usage{}) {
			l.Differs = counted - stated[l.Source]
		}
	}
}
