package transcript

import (
	"maps"
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
	counted   agentevents.Usage // since the latest totals
	stated    totals            // the latest
	known     bool              // there were totals
	foreign   bool              // the next totals have the spending of another session
	compacted bool              // since the latest totals
	cost      float64           // of this session, as far as totals tell it
	open      bool              // some of the cost is not known
	guessed   bool              // a price is made up
	differs   agentevents.Usage // more stated than counted
}

// totals are the figures of a line of type cost-state.
type totals struct {
	models map[string]agentevents.Usage
	sum    agentevents.Usage
	cost   float64
}

func (g *ledger) count(u agentevents.Usage) { g.counted = plus(g.counted, u) }

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
	now.models = map[string]agentevents.Usage{}
	for model, raw := range jsonwire.Members(line.Raw("modelUsage")) {
		o := session.ParseObject(raw)
		u := agentevents.Usage{
			InputTokens: o.Count("inputTokens").V, OutputTokens: o.Count("outputTokens").V,
			CacheReadInputTokens: o.Count("cacheReadInputTokens"), CacheCreationInputTokens: o.Count("cacheCreationInputTokens"),
		}
		guessed = guessed || o.Str("costBasis") == "unknown"
		now.models[strings.Clone(model)] = u
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
		end.TotalCostUSD = agentevents.Some(g.cost)
		if tokens(g.differs) > 0 {
			warn("session_totals", "the program's own totals have "+
				string(jsonwire.AppendInt(nil, tokens(g.differs)))+" tokens more than its messages, which count")
		}
	}
}
