package spans

import (
	"github.com/agentevents/agentevents"
)

// This file adds up usage. gen_ai.usage is on model calls. An agent or a run has its own
// there only if no model call below it has, or else back ends count the tokens twice.

// A tally is the known usage of a model call, an agent or a run.
type tally struct {
	reported bool // by usage.observed
	stated   bool // by an end: reports do not count
	usage    agentevents.Usage
	costUSD  agentevents.Opt[float64]
}

func (t *tally) add(u *agentevents.Usage, costUSD agentevents.Opt[float64]) {
	t.usage.InputTokens += u.InputTokens
	t.usage.OutputTokens += u.OutputTokens
	plus(&t.usage.TotalTokens, u.TotalTokens)
	plus(&t.usage.CacheCreationInputTokens, u.CacheCreationInputTokens)
	plus(&t.usage.CacheReadInputTokens, u.CacheReadInputTokens)
	plus(&t.usage.ReasoningOutputTokens, u.ReasoningOutputTokens)
	plus(&t.costUSD, costUSD)
}

func plus[T int64 | float64](to *agentevents.Opt[T], v agentevents.Opt[T]) {
	if v.OK {
		*to = agentevents.Some(to.V + v.V)
	}
}

// tally returns the span's, which may be nil as may the span.
func (s *Span) tally() *tally {
	if s == nil || s.ended {
		return &tally{} // nobody looks at it
	}
	if s.usage == nil {
		s.usage = &tally{}
	}
	return s.usage
}

// spender is the span of the event's agent, or the root.
func (m *Mapper) spender(ev *agentevents.Event) *Span {
	if a := m.agent(ev); a != nil {
		return a.span
	}
	return m.root
}

// observed adds a report to the open model call that it is about, else to the agent or the
// run. One about a call that has returned adds nothing if calls state their usage.
func (m *Mapper) observed(ev *agentevents.Event, p *agentevents.UsageObserved) {
	s := m.spender(ev)
	if p.ModelCallID != "" {
		if call := m.open[key{"model", m.who(ev), p.ModelCallID}]; call != nil {
			s = call
		} else if s != nil && s.spent {
			return
		}
	}
	t := s.tally()
	if t.stated {
		return
	}
	if p.Cumulative {
		*t = tally{}
	}
	t.reported = true
	t.add(&p.Usage, p.CostUSD)
}

// modelSpent sets the usage of a model call: the one that its return states, else the reported one.
func (m *Mapper) modelSpent(ev *agentevents.Event, s *Span,
	stated agentevents.Opt[agentevents.Usage], costUSD agentevents.Opt[float64]) {
	if t := s.usage; t != nil {
		if !stated.OK {
			stated = agentevents.Some(t.usage)
		}
		if !costUSD.OK {
			costUSD = t.costUSD
		}
		s.usage = nil
	}
	if costUSD.OK {
		s.set(val(AttrCost, costUSD.V))
		s.set(str("agentevents.usage.currency", "USD"))
	}
	if stated.OK {
		m.usage(s, &stated.V)
		for up := s; up != nil; up = up.Parent {
			up.spent = true
		}
	}
	if t := m.spender(ev).tally(); !t.stated && (stated.OK || costUSD.OK) {
		t.add(&stated.V, costUSD)
	}
}

// spend gives the span of an agent or a run its usage.
func (m *Mapper) spend(s *Span) {
	t := s.usage
	s.usage = nil
	if t == nil || !t.reported && !t.stated {
		return // model calls have all of it
	}
	u := &t.usage
	if input := inputTokens(u); input > 0 || u.OutputTokens > 0 {
		s.set(val("agentevents.usage.total.input_tokens", input))
		s.set(val("agentevents.usage.total.output_tokens", u.OutputTokens))
		if !s.spent {
			m.usage(s, u)
		}
	} else if u.TotalTokens.V > 0 {
		s.set(val("agentevents.usage.total.tokens", u.TotalTokens.V))
	}
	if t.costUSD.OK {
		s.set(val("agentevents.usage.total.cost_usd", t.costUSD.V))
	}
}

// usage sets the attributes of the conventions.
func (m *Mapper) usage(s *Span, u *agentevents.Usage) {
	s.set(val(AttrInputTokens, inputTokens(u)))
	s.set(val(AttrOutputTokens, u.OutputTokens))
	if u.CacheReadInputTokens.OK {
		s.set(val(AttrCacheRead, u.CacheReadInputTokens.V))
	}
	if k := m.o.Semconv.cacheWrite(); k != "" && u.CacheCreationInputTokens.OK {
		s.set(val(k, u.CacheCreationInputTokens.V))
	}
	if u.ReasoningOutputTokens.OK {
		s.set(val(AttrReasoningTokens, u.ReasoningOutputTokens.V))
	}
}

// inputTokens are all tokens that were sent: the conventions count cached ones in.
func inputTokens(u *agentevents.Usage) int64 {
	return u.InputTokens + u.CacheCreationInputTokens.V + u.CacheReadInputTokens.V
}
