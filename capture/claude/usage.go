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
	model string
	usage agentevents.Usage
}

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

// tokens returns the sum of all counts.
func tokens(u agentevents.Usage) int64 {
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
	if a.used == nil {
		a.used = map[string]messageUsage{}
	}
	a.used[strings.Clone(message)] = m
}

// reportUsage emits what the messages of an agent used, for an end that does not state it.
// The lines are written while a message still grows, so more may have been used.
func (d *Decoder) reportUsage(a *agent, marks agentevents.Marks) {
	models := map[string]agentevents.Usage{}
	for _, m := range a.used {
		models[m.model] = join(models[m.model], m.usage, plus)
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		if u := models[model]; tokens(u) > 0 {
			d.emit(a, &agentevents.UsageObserved{Model: model, Usage: u, Source: "claude", Partial: true}, marks)
		}
	}
}
