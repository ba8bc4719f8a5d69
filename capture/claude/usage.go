package claude

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// A messageUsage is the usage of one API message, as far as its lines state it.
type messageUsage struct {
	model  string
	usage  agentevents.Usage
	final  bool              // the end of the message stated it
	stated agentevents.Usage // the part that the totals of a result include
}

// rest returns the part that no total includes.
func (m *messageUsage) rest() agentevents.Usage { return join(m.usage, m.stated, minus) }

// usage reads the token counts of the API.
func usage(o *object) agentevents.Usage {
	return agentevents.Usage{
		InputTokens:              o.count("input_tokens").V,
		OutputTokens:             o.count("output_tokens").V,
		CacheCreationInputTokens: o.count("cache_creation_input_tokens"),
		CacheReadInputTokens:     o.count("cache_read_input_tokens"),
	}
}

// join returns a usage in which op makes every count from the counts in u and v.
func join(u, v agentevents.Usage, op func(a, b int64) int64) agentevents.Usage {
	optional := func(to *agentevents.Opt[int64], v agentevents.Opt[int64]) {
		if v.OK {
			*to = agentevents.Some(op(to.V, v.V))
		}
	}
	u.InputTokens, u.OutputTokens = op(u.InputTokens, v.InputTokens), op(u.OutputTokens, v.OutputTokens)
	optional(&u.TotalTokens, v.TotalTokens)
	optional(&u.CacheCreationInputTokens, v.CacheCreationInputTokens)
	optional(&u.CacheReadInputTokens, v.CacheReadInputTokens)
	if v.CostUSD.OK {
		u.CostUSD = agentevents.Some(u.CostUSD.V + v.CostUSD.V)
	}
	return u
}

// plus adds counts, which are not negative. The sum stops at the highest number.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

func minus(a, b int64) int64 { return max(0, a-b) }

// tokens returns the sum of all counts, or a total that stands alone.
func tokens(u agentevents.Usage) int64 {
	if u.TotalTokens.OK {
		return u.TotalTokens.V
	}
	return plus(plus(u.InputTokens, u.OutputTokens), plus(u.CacheCreationInputTokens.V, u.CacheReadInputTokens.V))
}

// use notes the usage that a line states in o. Every line of a message repeats the input, and
// the output grows, so the greatest counts. A line without the id of a message could repeat
// another one and does not count.
func (a *agent) use(message, model string, o *object) {
	if message == "" || a.ended || o.raw("usage") == "" {
		return
	}
	stated := o.object("usage")
	m := a.used[message]
	m.usage = join(m.usage, usage(&stated), func(a, b int64) int64 { return max(a, b) })
	m.model = cmp.Or(m.model, strings.Clone(model))
	m.final = m.final || o.str("type") == "message_delta"
	if a.used == nil {
		a.used = map[string]messageUsage{}
	}
	a.used[strings.Clone(message)] = m
}

// reportUsage emits the usage of messages, for an end that does not state it. Most lines are
// written while their message still grows: then more may have been used. a is nil for messages
// of several agents.
func (d *Decoder) reportUsage(a *agent, used map[string]messageUsage, marks agentevents.Marks) {
	models := map[string]agentevents.Usage{}
	partial := map[string]bool{}
	for _, m := range used {
		u := m.usage
		if a == nil {
			u = m.rest()
		}
		models[m.model] = join(models[m.model], u, plus)
		partial[m.model] = partial[m.model] || !m.final
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		if u := models[model]; tokens(u) > 0 {
			d.emit(a, &agentevents.UsageObserved{Model: model, Usage: u, Source: "claude", Partial: partial[model]}, marks)
		}
	}
}

// A ledger has the totals that the results of the stream state.
type ledger struct {
	counted   spending                // for the run
	spent     spending                // the totals of the latest result, as it states them
	carried   spending                // the totals before they began anew
	exact     bool                    // counted is not made of totals alone
	anew      bool                    // the totals may begin anew
	moved     bool                    // since the latest result the session is another one
	resumed   bool                    // the process goes on with a session
	compacted bool                    // a compaction used tokens, too
	guessed   []string                // models the prices of which are made up
	unstated  map[string]messageUsage // messages of ended sub-agents that no total includes
}

// keepUnstated keeps the messages of a sub-agent that has ended, until a result states them.
func (d *Decoder) keepUnstated(a *agent) {
	for id, m := range a.used {
		d.unstated[a.id+" "+id] = m
	}
}

// stated notes that a total includes all messages so far.
func (d *Decoder) stated() {
	below := func(m *messageUsage) {
		if d.attempt.below == nil {
			d.attempt.below = map[string]agentevents.Usage{}
		}
		d.attempt.below[m.model] = join(d.attempt.below[m.model], m.rest(), plus)
	}
	for _, m := range d.unstated {
		below(&m)
	}
	clear(d.unstated)
	for _, a := range d.agents {
		for id, m := range a.used {
			below(&m)
			m.stated = m.usage
			a.used[id] = m
		}
	}
	d.main.used = nil
}

// spending is the usage by model, and the cost.
type spending struct {
	models map[string]agentevents.Usage
	cost   agentevents.Opt[float64]
}

// A price that the CLI has made up does not count: for a model that it does not know it takes
// the price of its own model.
const basisUnknown = "unknown"

// readSpending reads an object that states the usage by model. guessed means that it holds a
// made-up price, which does not count.
func readSpending(perModel *object) (s spending, guessed bool) {
	for _, m := range perModel.members {
		if m.raw[0] != '{' {
			perModel.wrong(m.name, m.raw, "an object")
			continue
		}
		o := parseObject(m.raw, perModel.pointer(m.name), perModel.faults)
		if s.models == nil {
			s.models = map[string]agentevents.Usage{}
		}
		u := agentevents.Usage{
			InputTokens:              o.count("inputTokens").V,
			OutputTokens:             o.count("outputTokens").V,
			CacheCreationInputTokens: o.count("cacheCreationInputTokens"),
			CacheReadInputTokens:     o.count("cacheReadInputTokens"),
			CostUSD:                  o.number("costUSD"),
		}
		if o.str("costBasis") == basisUnknown {
			u.CostUSD, guessed = agentevents.Opt[float64]{}, true
		}
		if u.CostUSD.OK {
			s.cost = agentevents.Some(s.cost.V + u.CostUSD.V)
		}
		s.models[strings.Clone(m.name)] = u
	}
	return s, guessed
}

// account adds the figures of a result to the counted ones, and returns the part that it added.
// used is the usage of the main agent in the turn.
//
// modelUsage and total_cost_usd are totals of the session: a process that resumes or forks one
// begins with the spending of others. The usage since the result before counts, where the
// result states it. Otherwise the totals count, less the totals of the result before. They begin
// again after a reset of the session, and in the processes of old versions.
func (d *Decoder) account(l *line, used agentevents.Usage) spending {
	perModel := l.object.object("modelUsage")
	now, guessed := readSpending(&perModel)
	if cost := l.number("total_cost_usd"); !guessed {
		now.cost = cost
	}
	var added spending
	before := d.counted
	switch since := l.object.object("model_usage_since_last_result"); {
	case since.text != "":
		if added, _ = readSpending(&since); len(since.members) == 0 {
			added.cost = agentevents.Some(0.0)
		}
		d.counted, d.exact = before.plus(added), true
	case d.carriedOver(l, now, used):
		added.models = map[string]agentevents.Usage{}
		for model := range now.models {
			added.models[model] = used
		}
		d.counted, d.exact = before.plus(added), true
		d.warn("session_totals",
			"the totals of the result include the spending of other processes of the session: "+
				"only the usage of this turn counts, and its cost is unknown",
			l.pick("modelUsage", "total_cost_usd"))
	case d.exact:
		added = now.minus(d.spent)
		d.counted = before.plus(added)
	default:
		if d.anew && now.below(d.spent) || d.moved && now.lacks(d.spent, used) {
			d.carried = d.carried.plus(d.spent)
			d.spent = spending{}
		}
		added = now.minus(d.spent)
		d.counted = d.carried.plus(now)
		if len(now.models) == 0 {
			d.counted.models = before.models
		}
		if !now.cost.OK {
			d.counted.cost = before.cost
		}
	}
	d.anew, d.moved = false, false
	if now.cost.OK {
		d.spent.cost = now.cost
	}
	if len(now.models) > 0 {
		d.spent.models = now.models
	}
	if guessed {
		d.unpriced(&perModel)
	}
	return added
}

// carriedOver reports whether the first totals of a process include those of another one: the
// process resumes a session, and only the main agent has asked a model.
func (d *Decoder) carriedOver(l *line, now spending, used agentevents.Usage) bool {
	return d.results == 0 && !d.compacted && len(d.agents) == 0 &&
		len(now.models) == 1 && (d.resumed || l.has("result_index")) && exceeds(now, used)
}

// exceeds reports whether more was read than a turn did. Of a broken answer the turn does not
// state all that was written.
func exceeds(s spending, used agentevents.Usage) bool {
	var read int64
	for _, u := range s.models {
		u.OutputTokens = 0
		read = plus(read, tokens(u))
	}
	used.OutputTokens = 0
	return read > tokens(used)
}

// unpriced tells once of each model that its price is made up.
func (d *Decoder) unpriced(perModel *object) {
	for _, m := range perModel.members {
		o := parseObject(m.raw, "", new(faults))
		if o.str("costBasis") == basisUnknown && !slices.Contains(d.guessed, m.name) {
			d.guessed = append(d.guessed, strings.Clone(m.name))
			d.warn("unknown_price",
				"the CLI does not know the price of "+m.name+": the cost that it states is made up, and does not count",
				o.pick("costUSD", "costBasis"))
		}
	}
}

// warn tells people of a figure that does not count.
func (d *Decoder) warn(kind, message string, details agentevents.JSON) {
	d.emit(d.main, &agentevents.AgentErrored{
		ErrorType: kind, Message: message, Severity: agentevents.SeverityWarning, Details: details,
	}, 0)
}

// below reports whether a figure is lower than in t. Running totals do not fall, so s
// does not go on from t.
func (s spending) below(t spending) bool {
	if s.cost.OK && s.cost.V < t.cost.V {
		return true
	}
	for model, before := range t.models {
		now := s.models[model]
		if len(s.models) > 0 && (now.InputTokens < before.InputTokens || now.OutputTokens < before.OutputTokens ||
			now.CacheCreationInputTokens.V < before.CacheCreationInputTokens.V ||
			now.CacheReadInputTokens.V < before.CacheReadInputTokens.V) {
			return true
		}
	}
	return false
}

// lacks reports whether s is less than t and what a turn used since, so that s does not go
// on from t. It adds up the models, as the usage of a turn does not name them.
func (s spending) lacks(t spending, own agentevents.Usage) bool {
	used := tokens(own)
	if len(s.models) == 0 {
		return used > 0 && s.cost.OK && s.cost.V <= t.cost.V
	}
	for _, u := range t.models {
		used += tokens(u)
	}
	for _, u := range s.models {
		used -= tokens(u)
	}
	return used > 0
}

func (s spending) plus(t spending) spending {
	sum := spending{models: maps.Clone(t.models), cost: t.cost}
	if s.cost.OK {
		sum.cost = agentevents.Some(s.cost.V + t.cost.V)
	}
	for _, model := range slices.Sorted(maps.Keys(s.models)) {
		if sum.models == nil {
			sum.models = map[string]agentevents.Usage{}
		}
		sum.models[model] = join(sum.models[model], s.models[model], plus)
	}
	return sum
}

// minus returns the difference of s and t.
func (s spending) minus(t spending) spending {
	diff := spending{cost: s.cost}
	if s.cost.OK {
		diff.cost.V = max(0, s.cost.V-t.cost.V)
	}
	for model, u := range s.models {
		if diff.models == nil {
			diff.models = map[string]agentevents.Usage{}
		}
		before := t.models[model]
		cost := u.CostUSD
		if cost.OK {
			cost.V = max(0, cost.V-before.CostUSD.V)
		}
		u = join(u, before, minus)
		u.CostUSD = cost
		diff.models[model] = u
	}
	return diff
}
