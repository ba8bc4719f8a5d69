package findings

import (
	"cmp"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

func (a *agent) asks(r *Run, id string) {
	if len(a.models) < keptOpen {
		a.models = append(a.models, hashOf(id))
		r.asking++
	}
}

// modelReturned notes the return of a model call: its usage, its input and its failure.
func (a *agent) modelReturned(r *Run, ev *agentevents.Event, p *agentevents.ModelReturned) {
	id := hashOf(p.ModelCallID)
	if i := slices.Index(a.models, id); i >= 0 {
		a.models = slices.Delete(a.models, i, i+1)
		r.asking--
	}
	a.rounds++
	a.since++
	a.spend(id, p)
	switch {
	case !p.Error.OK:
		a.model.reset()
	case p.Error.V.Code != cancelled:
		if a.errs {
			a.model.reset() // the call tells its own failure
		}
		a.errs, a.failed = false, why(text(p.Error.V, ""))
		a.model.add(ev.Sequence, ev.Time.Add(-p.Duration.V), ev.Time, a.spent)
		a.unanswered(r, ev, r.o.ModelErrors)
	}
	if u := p.Usage; u.OK {
		a.fill(r, ev, p, plus(plus(u.V.InputTokens, u.V.CacheReadInputTokens.V), u.V.CacheCreationInputTokens.V))
	}
}

// errored notes an error of the agent. Where a log has no model calls that fail, it is the request
// that did, and a warning is a program's word for a request that it makes again.
func (a *agent) errored(r *Run, ev *agentevents.Event, p *agentevents.AgentErrored) {
	if p.ErrorType == LoopDetected {
		a.stopped(r, ev, cmp.Or(p.Message, p.ErrorType))
		return
	}
	if a.model.n > 0 && !a.errs {
		return // of the model call that has failed
	}
	a.errs, a.failed = true, why(cmp.Or(p.Message, p.ErrorType))
	a.model.add(ev.Sequence, ev.Time, ev.Time, a.spent)
	a.model.backOff = p.Severity == agentevents.SeverityWarning
	a.unanswered(r, ev, r.o.ModelErrors)
}

// stopped notes that the program has found a loop of its own, whose turns the log may lack.
func (a *agent) stopped(r *Run, ev *agentevents.Event, message string) {
	f := r.begin(ev, found{
		Finding: Finding{Kind: Repeat, AgentID: a.id, Severity: Serious, Since: known(ev.Time)},
		about:   why(message), write: stoppedText,
	})
	if f == nil {
		return
	}
	f.Count, f.size = 1, 1
	f.grow(ev, ev.Sequence)
	r.tell(f)
}

// gaveUp looks at the failures before an end with an error: those that nothing has made good
// are a finding as early as a call that is made again in vain.
func (a *agent) gaveUp(r *Run, ev *agentevents.Event, end string) {
	last := agentevents.Event{Sequence: a.model.latest, Time: a.model.last}
	switch {
	case a.model.n == 0:
		return
	case a.errs && letters(end) != letters(a.failed):
		a.failed, last = end, *ev
		a.model.add(ev.Sequence, ev.Time, ev.Time, a.spent)
	case a.model.f != nil:
		return
	}
	a.model.backOff = false
	a.unanswered(r, &last, r.o.Retries)
}

// unanswered begins or continues the finding about failures of the model, if they are so many.
func (a *agent) unanswered(r *Run, ev *agentevents.Event, limit int) {
	f := found{Finding: Finding{Kind: FailureStreak}, about: reason(a.failed), write: modelText}
	if a.errs {
		f.write = errorsText
	}
	r.streak(ev, a, &a.model, limit, f)
}

// spend counts the usage of a model call, in place of the one that was reported of it.
func (a *agent) spend(id uint64, p *agentevents.ModelReturned) {
	a.spent.calls++
	var was spent
	if i := a.report(id); i >= 0 {
		was = a.reports[i].spent
		a.reports = slices.Delete(a.reports, i, i+1)
	}
	if p.Usage.OK {
		a.spent.tokens = plus(a.spent.tokens-was.tokens, tokensOf(p.Usage.V))
		a.spent.known = true
	}
	if p.CostUSD.OK {
		a.spent.cost += p.CostUSD.V - was.cost
		a.spent.priced = true
	}
}

// observed counts usage that is reported; the one about a model call, until the call states its own.
func (a *agent) observed(p *agentevents.UsageObserved) {
	now := spent{tokens: tokensOf(p.Usage), cost: p.CostUSD.V}
	id := uint64(0) // of the whole attempt
	if p.ModelCallID != "" {
		id = hashOf(p.ModelCallID)
	}
	i := a.report(id)
	if i < 0 {
		if len(a.reports) == keptReports {
			a.reports = slices.Delete(a.reports, 0, 1)
		}
		a.reports = append(a.reports, report{call: id})
		i = len(a.reports) - 1
	}
	was := &a.reports[i].spent
	if p.Cumulative {
		a.spent.tokens, a.spent.cost = max(0, a.spent.tokens-was.tokens), max(0, a.spent.cost-was.cost)
		*was = spent{}
	}
	was.tokens, was.cost = plus(was.tokens, now.tokens), was.cost+now.cost
	a.spent.tokens, a.spent.cost = plus(a.spent.tokens, now.tokens), a.spent.cost+now.cost
	a.spent.known, a.spent.priced = true, a.spent.priced || p.CostUSD.OK
}

func (a *agent) report(id uint64) int {
	return slices.IndexFunc(a.reports, func(r report) bool { return r.call == id })
}

// fill looks at the input of a model call.
func (a *agent) fill(r *Run, ev *agentevents.Event, p *agentevents.ModelReturned, input int64) {
	limit := r.o.ContextTokens
	if r.o.ContextOf != nil {
		if own := r.o.ContextOf(p.Model); own > 0 {
			limit = own
		}
	}
	switch share := float64(input) / float64(max(1, limit)); {
	case limit <= 0:
		return
	case share < r.o.ContextShare:
		a.emptied()
		return
	case a.full == nil:
		a.full = r.begin(ev, found{Finding: Finding{Kind: Context, AgentID: a.id, Since: known(ev.Time)}, write: contextText})
		if a.full == nil {
			return
		}
	}
	f := a.full
	f.Count++
	f.parts, f.room = int(input), limit
	f.size = float64(f.Count)
	if float64(input) >= 0.95*float64(limit) {
		f.Severity = Serious
	}
	f.grow(ev, ev.Sequence)
	r.tell(f)
}

// emptied closes the finding of a context that is full.
func (a *agent) emptied() {
	if a.full != nil {
		a.full.Open, a.full = false, nil
	}
}

// compacted notes a compaction: several with little work between them are too many.
func (a *agent) compacted(r *Run, ev *agentevents.Event) {
	if a.since > r.o.CompactionCalls {
		a.thrash.reset()
	}
	a.since = 0
	a.emptied()
	a.thrash.add(ev.Sequence, ev.Time, ev.Time, a.spent)
	a.thrash.backOff = false
	r.streak(ev, a, &a.thrash, r.o.Compactions,
		found{Finding: Finding{Kind: Context}, write: compactionsText, parts: r.o.CompactionCalls})
}

// tokensOf returns all tokens of a model call.
func tokensOf(u agentevents.Usage) int64 {
	sum := plus(plus(u.InputTokens, u.OutputTokens), plus(u.CacheCreationInputTokens.V, u.CacheReadInputTokens.V))
	return cmp.Or(sum, u.TotalTokens.V)
}

func plus(a, b int64) int64 { return view.Plus(a, b) }
