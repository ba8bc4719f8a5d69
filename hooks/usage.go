package hooks

import (
	"math"

	"github.com/agentevents/agentevents"
)

// A usage counts tokens and cost of a run as the fold does, because it asks one: what counts once
// is decided in one place. The fold gets only the events that state usage, without their texts, and
// events that tell whose usage it is.
//
// A fold takes its time for a snapshot, in proportion to the agents. So the figures of
// each event are added to the last snapshot's: no more than that was used, as a figure
// that comes again only takes the place of another. Only when this sum is above a limit
// is the fold asked, and after the few events with which older figures may begin to count.
type usage struct {
	fold *agentevents.Fold

	tokens, moreTokens int64 // of the last snapshot; of the events since
	cost, moreCost     float64
	agents             map[string]bool // that are known
	stale              bool            // the true usage may be above the sum
}

var lean = agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}

func newUsage() *usage { return &usage{fold: agentevents.NewFold(lean), agents: map[string]bool{}} }

// resume counts the usage of a snapshot, and keeps its agents.
func (u *usage) resume(s *agentevents.RunSnapshot) (err error) {
	own := &agentevents.RunSnapshot{
		RunState: s.RunState, SchemaVersion: s.SchemaVersion, Status: s.Status,
		Agents:         make(map[string]*agentevents.AgentSnapshot, len(s.Agents)),
		OpenModelCalls: s.OpenModelCalls, Usage: s.Usage,
	}
	for id, a := range s.Agents {
		b := *a
		b.Task, b.Text, b.Reasoning, b.Result, b.StructuredOutput, b.LastError, b.Error = "", "", "", "", "",
			agentevents.Opt[agentevents.ErrorInfo]{}, agentevents.Opt[agentevents.ErrorInfo]{}
		own.Agents[id] = &b
		u.agents[id] = true
	}
	u.stale = true
	u.fold, err = agentevents.ResumeFold(own, lean)
	return err
}

// count gives the event to the fold, if it concerns usage.
func (u *usage) count(ev *agentevents.Event) {
	var bare agentevents.Payload
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		u.stale = u.stale || u.agents[agentOf(ev)] // it may leave a parent whose figures include its own
		bare = &agentevents.AgentStarted{Model: p.Model}
	case *agentevents.AgentEnded:
		u.stale = u.stale || p.Cumulative || ev.Marks.Has(agentevents.MarkLate) // it takes the place of other ends
		u.add(p.Usage.V, p.TotalCostUSD)
		for _, v := range p.ModelUsage {
			u.add(v, agentevents.Opt[float64]{})
		}
		bare = &agentevents.AgentEnded{Usage: p.Usage, ModelUsage: p.ModelUsage, TotalCostUSD: p.TotalCostUSD,
			Cumulative: p.Cumulative}
	case *agentevents.ModelCalled:
		bare = &agentevents.ModelCalled{ModelCallID: p.ModelCallID, Model: p.Model}
	case *agentevents.ModelReturned:
		u.add(p.Usage.V, p.CostUSD)
		bare = &agentevents.ModelReturned{ModelCallID: p.ModelCallID, Model: p.Model, Usage: p.Usage,
			CostUSD: p.CostUSD, OneEvent: p.OneEvent}
	case *agentevents.UsageObserved:
		u.add(p.Usage, p.CostUSD)
		bare = p
	default:
		if ev.AgentID != "" || ev.NodeRunID == "" {
			return
		}
		// An agent without an id is known from its first act on.
		if info, _ := ev.Kind().Info(); info.Droppable || !info.ByAgent && !ev.Step.OK {
			return
		}
		bare = &agentevents.EvidenceInsufficient{}
	}
	u.agents[agentOf(ev)] = true
	e := *ev
	e.Payload = bare
	u.fold.Apply(e)
}

func (u *usage) add(v agentevents.Usage, cost agentevents.Opt[float64]) {
	u.moreTokens = plus(u.moreTokens, tokensOf(v))
	u.moreCost += cost.V + v.CostUSD.V
}

// total returns the usage: exactly, if it is above a limit.
func (u *usage) total(l *Limits) (tokens int64, cost float64) {
	const ulps = 1 + 1e-9 // the sum of floats depends on their order
	if u.stale || l.Tokens > 0 && plus(u.tokens, u.moreTokens) > l.Tokens ||
		l.CostUSD > 0 && (u.cost+u.moreCost)*ulps > l.CostUSD {
		all := u.fold.Snapshot().Usage
		u.tokens, u.cost = tokensOf(all.Usage), all.CostUSD.V
		u.moreTokens, u.moreCost, u.stale = 0, 0, false
	}
	return u.tokens, u.cost
}

// tokensOf returns all tokens: the three figures of the input, and the output. The total that a
// provider reports repeats them.
func tokensOf(v agentevents.Usage) int64 {
	return plus(plus(v.InputTokens, v.OutputTokens), plus(v.CacheCreationInputTokens.V, v.CacheReadInputTokens.V))
}

// plus adds numbers that are not negative. A sum stops at the highest number.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
