package transcript

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A ledger compares the program's own totals with the tokens of the messages. The totals are
// sums over the session with all its processes, and over the session that it was forked from.
type ledger struct {
	once      session.Once
	counted   agentevents.Usage  // since the latest totals
	stated    totals             // the latest
	known     bool               // there were totals
	foreign   bool               // the next totals have the spending of another session
	compacted bool               // since the latest totals
	cost      float64            // of this session, as far as totals tell it
	costs     map[string]float64 // of it, by the model
	answered  map[string]bool    // models that have
	open      bool               // some of the cost is not known
	guessed   bool               // a price is made up
	differs   agentevents.Usage  // more stated than counted
}

// totals are the figures of a line of type cost-state.
type totals struct {
	models map[string]agentevents.Usage
	sum    agentevents.Usage
	cost   float64
	costs  map[string]float64 // by the model, where they are stated
}

func (g *ledger) count(model string, u agentevents.Usage) {
	g.counted = plus(g.counted, u)
	if !g.answered[model] {
		if g.answered == nil {
			g.answered = map[string]bool{}
		}
		g.answered[model] = true
	}
}

// plus adds tokens.
func plus(u, v agentevents.Usage) agentevents.Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadInputTokens = sum(u.CacheReadInputTokens, v.CacheReadInputTokens)
	u.CacheCreationInputTokens = sum(u.CacheCreationInputTokens, v.CacheCreationInputTokens)
	u.ReasoningOutputTokens = sum(u.ReasoningOutputTokens, v.ReasoningOutputTokens)
	return u
}

func sum(a, b agentevents.Opt[int64]) agentevents.Opt[int64] {
	if !a.OK && !b.OK {
		return a
	}
	return agentevents.Some(a.V + b.V)
}

// tokens is the number of all tokens.
func tokens(u agentevents.Usage) int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadInputTokens.V + u.CacheCreationInputTokens.V
}

func number(raw string) float64 {
	var s jsonwire.Scanner
	s.Reset(raw)
	v, err := s.Float()
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// readTotals reads a line of type cost-state.
func readTotals(line *session.Object) (now totals, guessed bool) {
	now.cost, guessed = number(line.Raw("totalCostUSD")), line.Flag("hasUnknownModelCost")
	now.models, now.costs = map[string]agentevents.Usage{}, map[string]float64{}
	for model, raw := range jsonwire.Members(line.Raw("modelUsage")) {
		o := session.ParseObject(raw)
		u := agentevents.Usage{
			InputTokens: o.Count("inputTokens").V, OutputTokens: o.Count("outputTokens").V,
			CacheReadInputTokens: o.Count("cacheReadInputTokens"), CacheCreationInputTokens: o.Count("cacheCreationInputTokens"),
		}
		guessed = guessed || o.Str("costBasis") == "unknown"
		model = strings.Clone(model)
		now.models[model], now.costs[model] = u, number(o.Raw("costUSD"))
		now.sum = plus(now.sum, u)
	}
	line.SkipAll()
	return now, guessed
}

// costState reads the program's own totals.
func (c *reader) costState(t *thread) {
	for _, other := range c.order {
		c.endAnswer(other)
	}
	before := c.ledger.stated
	now, guessed := readTotals(&c.line)
	if used := c.ledger.compaction(now, guessed); tokens(used) > 0 {
		c.r.Emit(t.agent, &agentevents.UsageObserved{Model: spender(now, before), Usage: used, Source: "cost-state"}, 0)
	}
}

// compaction compares totals with the tokens that were counted since the latest ones. If there was
// a compaction, it has used the tokens that the totals have more than the messages.
func (g *ledger) compaction(now totals, guessed bool) (used agentevents.Usage) {
	before, foreign := g.stated, g.foreign
	spent := minus(now.sum, before.sum)
	rest, lacks := minus(spent, g.counted), tokens(minus(g.counted, spent)) > 0
	compacted := g.compacted
	g.stated, g.known, g.foreign, g.compacted, g.guessed = now, true, false, false, g.guessed || guessed
	g.counted = agentevents.Usage{}
	switch {
	case foreign && g.cost == 0 && before.cost == 0:
		g.open = true
		return used
	case lacks || now.cost < before.cost:
		g.open = true // a process was killed before it wrote its totals
	}
	g.cost += max(0, now.cost-before.cost)
	for model, cost := range now.costs {
		if more := cost - before.costs[model]; more > 0 {
			if g.costs == nil {
				g.costs = map[string]float64{}
			}
			g.costs[model] += more
		}
	}
	switch {
	case tokens(rest) == 0:
	case compacted:
		used = rest
		used.ReasoningOutputTokens = agentevents.Opt[int64]{}
	default:
		g.differs = plus(g.differs, rest)
	}
	return used
}

// spender returns the model of which the totals have grown the most.
func spender(now, before totals) (most string) {
	var n int64 = -1
	for _, model := range slices.Sorted(maps.Keys(now.models)) {
		if grown := tokens(now.models[model]) - tokens(before.models[model]); grown > n {
			most, n = model, grown
		}
	}
	return most
}

// close states the cost, if it is known, and tells of totals that differ from the counted tokens.
func (g *ledger) close(c *reader, t *thread, end *agentevents.AgentEnded) {
	if !g.known {
		return
	}
	details := agentevents.JSON(`{"totalCostUSD":` + string(jsonwire.AppendFloat(nil, g.stated.cost)) + `,"inputTokens":` +
		string(jsonwire.AppendInt(nil, g.stated.sum.InputTokens)) + `,"outputTokens":` +
		string(jsonwire.AppendInt(nil, g.stated.sum.OutputTokens)) + `}`)
	warn := func(kind, message string) {
		c.at(t, func() {
			c.r.Emit(t.agent, &agentevents.AgentErrored{
				ErrorType: kind, Message: message, Severity: agentevents.SeverityWarning, Details: details,
			}, 0)
		})
	}
	switch {
	case g.guessed:
		warn("unknown_price",
			"the program does not know the price of a model: the cost that it states is made up, and does not count")
	case g.open || tokens(g.counted) > 0:
		warn("session_totals",
			"the program's own totals are not those of this session alone: "+
				"only the tokens of its messages count, and its cost is unknown")
	default:
		g.bill(c, t, end)
		if tokens(g.differs) > 0 {
			warn("session_totals", "the program's own totals have "+
				string(jsonwire.AppendInt(nil, tokens(g.differs)))+" tokens more than its messages, which count")
		}
	}
}

// bill states the cost: by the models, where that adds up, and without one for models that have not answered,
// as the program may know another name. It belongs to the main agent, or to the run if there are
// others: the program does not tell the cost of each.
func (g *ledger) bill(c *reader, t *thread, end *agentevents.AgentEnded) {
	costs, all := map[string]float64{}, 0.0
	for _, model := range slices.Sorted(maps.Keys(g.costs)) {
		cost, name := g.costs[model], model
		if !g.answered[model] {
			name = ""
		}
		all, costs[name] = all+cost, costs[name]+cost
	}
	if len(costs) == 0 || math.Abs(all-g.cost) > 1e-9*g.cost {
		costs = map[string]float64{"": g.cost}
	}
	agent := t.agent
	if len(c.order) > 1 {
		agent = nil
	} else if _, without := costs[""]; without { // which would count for the agent's model
		end.TotalCostUSD = agentevents.Some(g.cost)
		return
	}
	c.at(t, func() {
		for _, model := range slices.Sorted(maps.Keys(costs)) {
			c.r.Emit(agent, &agentevents.UsageObserved{Model: model, CostUSD: agentevents.Some(costs[model]), Source: "cost-state"}, 0)
		}
	})
}
