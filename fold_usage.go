package agentevents

import (
	"cmp"
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
	addTokens(&u.ReasoningOutputTokens, v.ReasoningOutputTokens)
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

// next begins another attempt. died says that the current one has not ended. Of
// attempts without figures in a row the first one stands for all.
func (u *AgentUsage) next(died bool) {
	u.Died = died
	if n := len(u.Earlier); n == 0 || !u.empty() || !u.Earlier[n-1].empty() || u.Earlier[n-1].Died != died {
		u.Earlier = append(u.Earlier, u.AttemptUsage)
	}
	u.AttemptUsage = AttemptUsage{}
	u.squeeze()
}

// squeeze joins two earlier attempts when they are many. In the middle are two sums: one of
// attempts that ended and one of those that died.
func (u *AgentUsage) squeeze() {
	const at = 2 * keptAttempts
	all := u.Earlier
	switch {
	case len(all) <= 2*at+1:
	case all[at].join(&all[at+1]):
		u.Earlier = slices.Delete(all, at+1, at+2)
	case all[at].join(&all[at+2]) || all[at+1].join(&all[at+2]):
		u.Earlier = slices.Delete(all, at+2, at+3)
	}
}

// join adds the figures of the next attempt, as reports about models, and reports whether it did:
// the sums and the figures of each model stay the same. Attempts stay apart that include
// sub-agents, of which one died alone, or whose figures are of several reports in place of which
// others count.
func (u *AttemptUsage) join(next *AttemptUsage) bool {
	var reports []ReportedUsage
	for _, a := range [...]*AttemptUsage{u, next} {
		if len(a.Models) > 0 || a.Died != u.Died || a.Ended.OK && a.several() ||
			a.CostUSD.OK && !a.Ended.OK && len(a.Reported) > 0 {
			return false
		}
		a.byModel(func(model string, v Usage) {
			reports = append(reports, ReportedUsage{Model: model, Usage: v, Partial: a.partial()})
		})
		if a.CostUSD.OK && !a.Ended.OK {
			reports = append(reports, ReportedUsage{Usage: Usage{CostUSD: a.CostUSD}})
		}
	}
	stated := u.Stated
	addTokens(&stated, next.Stated)
	*u = AttemptUsage{Sequence: u.Sequence, Died: u.Died, Stated: stated, Reported: []ReportedUsage{}}
	for _, r := range reports {
		u.report(nil, r)
	}
	u.Reported = orNil(u.Reported)
	return true
}

// empty reports whether the attempt has no figures.
func (u *AttemptUsage) empty() bool {
	return len(u.Models) == 0 && !u.Ended.OK && !u.CostUSD.OK && !u.Stated.OK && len(u.Reported) == 0
}

// end takes the figures of an end. Those of an earlier end of the attempt, which was
// no end, do not count. A running total takes the place of the attempts that have
// ended, but no attempt that died could add to it.
func (u *AgentUsage) end(p *AgentEnded) {
	if len(p.ModelUsage) > 0 {
		u.Models = make(map[string]Usage, len(p.ModelUsage))
		for model, v := range p.ModelUsage {
			u.Models[strings.Clone(model)] = v.plain()
		}
	}
	if p.Usage.OK {
		u.Ended = Some(p.Usage.V.plain())
	}
	if p.StatedTokens.OK {
		u.Stated = p.StatedTokens
	}
	if p.TotalCostUSD.OK {
		u.CostUSD = p.TotalCostUSD
	}
	if !p.Cumulative || len(p.ModelUsage) == 0 {
		return
	}
	_, known := u.AttemptUsage.Total()
	u.Earlier = slices.DeleteFunc(u.Earlier, func(a AttemptUsage) bool {
		if _, cost := a.Total(); !a.Died && !known.OK {
			addCost(&u.CostUSD, cost) // the running total is one of tokens
		}
		return !a.Died
	})
}

const (
	maxReported = 64 // sums of reports that an attempt keeps apart
	maxCounted  = 64 // model calls that an attempt remembers after their return
)

// observe takes the figures of a usage.observed.
func (u *AttemptUsage) observe(v *view, p *UsageObserved) {
	r := ReportedUsage{ModelCallID: p.ModelCallID, Model: p.Model, Usage: p.Usage.plain(), Partial: p.Partial}
	if p.CostUSD.OK {
		r.Usage.CostUSD = p.CostUSD
	}
	if i := u.returnedBefore(p.ModelCallID); i >= 0 && (u.counted[i].usage || u.counted[i].cost) {
		if !r.without(u.counted[i]) {
			return
		}
		r.ModelCallID = "" // the call has returned
	} else if p.Cumulative && p.ModelCallID == "" {
		u.Reported = u.Reported[:0]
	} else if p.Cumulative {
		u.take(p.ModelCallID)
	}
	u.report(v, r)
}

// returned takes the figures of a model.returned, and those that were reported of the
// call if the return does not state them. model is the model that has answered.
func (u *AttemptUsage) returned(v *view, p *ModelReturned, model string) {
	r := ReportedUsage{Model: model, Usage: p.Usage.V.plain()}
	if p.CostUSD.OK {
		r.Usage.CostUSD = p.CostUSD
	}
	own := countedCall{p.ModelCallID, p.Usage.OK, r.Usage.CostUSD.OK}
	earlier := u.take(p.ModelCallID)
	for i := range earlier {
		if e := &earlier[i]; e.without(own) {
			e.ModelCallID = ""
			e.Model = cmp.Or(e.Model, model)
			u.report(v, *e)
		}
	}
	if model != "" || own.usage || own.cost {
		u.report(v, r)
	}
	if own.id != "" {
		if len(u.counted) == maxCounted {
			u.counted = slices.Delete(u.counted, 0, 1)
		}
		own.id = v.keepBriefly(own.id)
		u.counted = append(u.counted, own)
	}
}

// returnedBefore returns the place in counted of a model call that has returned, or -1.
func (u *AttemptUsage) returnedBefore(id string) int {
	return slices.IndexFunc(u.counted, func(c countedCall) bool { return id != "" && c.id == id })
}

// summarized takes the figures of a turn.summarized.
func (u *AttemptUsage) summarized(v *view, p *TurnSummarized) {
	r := ReportedUsage{Usage: p.Usage.plain()}
	if p.CostUSD.OK {
		r.Usage.CostUSD = p.CostUSD
	}
	if r.Usage != (Usage{}) {
		u.report(v, r)
	}
}

// without takes the figures away that a model call states itself. It reports whether
// the report still says something.
func (r *ReportedUsage) without(c countedCall) bool {
	cost := r.Usage.CostUSD
	if c.cost {
		cost = Opt[float64]{}
	}
	if c.usage {
		r.Usage, r.Partial = Usage{}, false
	}
	r.Usage.CostUSD = cost
	return !c.usage || cost.OK
}

// take removes the reports about a model call and returns them.
func (u *AttemptUsage) take(call string) (taken []ReportedUsage) {
	if call == "" {
		return nil
	}
	u.Reported = slices.DeleteFunc(u.Reported, func(r ReportedUsage) bool {
		if r.ModelCallID == call {
			taken = append(taken, r)
		}
		return r.ModelCallID == call
	})
	return taken
}

// report adds a report to the sum that it belongs to. When there are too many sums
// the report counts without its model and its model call.
func (u *AttemptUsage) report(v *view, r ReportedUsage) {
	same := func(s ReportedUsage) bool { return s.ModelCallID == r.ModelCallID && s.Model == r.Model }
	i := slices.IndexFunc(u.Reported, same)
	if i < 0 && len(u.Reported) >= maxReported {
		r.ModelCallID, r.Model = "", ""
		i = slices.IndexFunc(u.Reported, same)
	}
	if i < 0 {
		r.ModelCallID, r.Model = v.keepBriefly(r.ModelCallID), v.intern(r.Model)
		if u.Reported == nil {
			u.Reported = v.listOf(r)
		} else {
			u.Reported = append(u.Reported, r)
		}
		return
	}
	u.Reported[i].Usage.add(r.Usage)
	u.Reported[i].Partial = u.Reported[i].Partial || r.Partial
}

// Total returns the tokens that count for the agent, and its cost in US dollars: the
// sums over its attempts.
func (u *AgentUsage) Total() (tokens Usage, cost Opt[float64]) {
	for a := range u.attempts {
		t, c := a.Total()
		tokens.add(t)
		addCost(&cost, c)
	}
	return tokens, cost
}

// StatedTokens returns the sum of the tokens that the agent's ends state beside reports of usage. They
// count for the run only if it has no other tokens.
func (u *AgentUsage) StatedTokens() (tokens Opt[int64]) {
	for a := range u.attempts {
		addTokens(&tokens, a.Stated)
	}
	return tokens
}

// Partial reports whether the tokens of Total are the least that the agent used: a report
// that counts is partial.
func (u *AgentUsage) Partial() bool {
	for a := range u.attempts {
		if a.partial() {
			return true
		}
	}
	return false
}

// ByModel returns what the agent used of each model, over all its attempts and with the cost that is
// known, as RunUsage.Models has it for all agents. Usage that names no model has the empty name.
func (u *AgentUsage) ByModel() map[string]Usage {
	models := map[string]Usage{}
	for a := range u.attempts {
		a.byModel(func(model string, v Usage) {
			all := models[model]
			all.add(v)
			models[model] = all
		})
	}
	return models
}

// attempts yields the attempts in order.
func (u *AgentUsage) attempts(yield func(*AttemptUsage) bool) {
	for i := range u.Earlier {
		if !yield(&u.Earlier[i]) {
			return
		}
	}
	yield(&u.AttemptUsage)
}

// at returns the attempt in which the event with the given sequence falls.
func (u *AgentUsage) at(sequence uint64) *AttemptUsage {
	if u.Sequence <= sequence {
		return &u.AttemptUsage
	}
	// The current attempt began later, so the event falls in an earlier one or is
	// older than all.
	i, found := slices.BinarySearchFunc(u.Earlier, sequence,
		func(a AttemptUsage, s uint64) int { return cmp.Compare(a.Sequence, s) })
	if !found && i > 0 {
		i--
	}
	if i < len(u.Earlier) {
		return &u.Earlier[i]
	}
	return &u.AttemptUsage
}

// Total returns the tokens that count for the attempt, and its cost in US dollars.
func (u *AttemptUsage) Total() (tokens Usage, cost Opt[float64]) {
	var reported Usage
	for i := range u.Reported {
		reported.add(u.Reported[i].Usage)
	}
	switch {
	case len(u.Models) > 0:
		for _, model := range slices.Sorted(maps.Keys(u.Models)) {
			tokens.add(u.Models[model])
		}
		u.stated(&tokens)
	case u.Ended.OK:
		tokens = u.Ended.V
	default:
		tokens = reported
	}
	for _, c := range [...]Opt[float64]{u.CostUSD, tokens.CostUSD, reported.CostUSD} {
		if cost = c; cost.OK {
			break
		}
	}
	tokens.CostUSD = Opt[float64]{}
	return tokens, cost
}

// stated completes figures of modelUsage, which states none of caches and reasoning in some
// formats, with those that the usage of the end states.
func (u *AttemptUsage) stated(tokens *Usage) {
	for _, f := range [...]struct {
		to   *Opt[int64]
		from Opt[int64]
	}{
		{&tokens.CacheCreationInputTokens, u.Ended.V.CacheCreationInputTokens},
		{&tokens.CacheReadInputTokens, u.Ended.V.CacheReadInputTokens},
		{&tokens.ReasoningOutputTokens, u.Ended.V.ReasoningOutputTokens},
	} {
		if !f.to.OK {
			*f.to = f.from
		}
	}
}

// byModel calls add with what the attempt used of each model; see RunUsage.Models.
func (u *AttemptUsage) byModel(add func(model string, v Usage)) {
	if len(u.Models) > 0 {
		for model, v := range u.Models {
			if len(u.Models) == 1 {
				u.stated(&v)
			}
			add(model, v)
		}
		return
	}
	model := u.Model
	for i := range u.Reported {
		if r := &u.Reported[i]; r.Model != "" {
			model = r.Model
		}
	}
	if u.Ended.OK && !u.several() {
		v, cost := u.Total()
		v.CostUSD = cost
		add(model, v)
		return
	}
	for i := range u.Reported {
		r := &u.Reported[i]
		add(cmp.Or(r.Model, u.Model), r.Usage)
	}
}

// several reports whether the reports name several models.
func (u *AttemptUsage) several() bool {
	first := ""
	for i := range u.Reported {
		switch model := u.Reported[i].Model; {
		case model == "":
		case first == "":
			first = model
		case model != first:
			return true
		}
	}
	return false
}

// partial reports whether a report that counts is partial.
func (u *AttemptUsage) partial() bool {
	return len(u.Models) == 0 && !u.Ended.OK &&
		slices.ContainsFunc(u.Reported, func(r ReportedUsage) bool { return r.Partial })
}

// countUsage adds up the run's usage from the attempts of its agents.
func (r *RunSnapshot) countUsage() {
	run := &r.Usage
	run.Usage, run.CostUSD, run.Partial, run.Models = Usage{}, Opt[float64]{}, false, nil
	add := func(u *AttemptUsage) {
		tokens, cost := u.Total()
		run.Usage.add(tokens)
		addCost(&run.CostUSD, cost)
		run.Partial = run.Partial || u.partial()
		u.byModel(func(model string, v Usage) {
			if model != "" {
				all := run.Models[model]
				all.add(v)
				put(&run.Models, model, all)
			}
		})
	}
	// The sum of floats depends on their order: take the agents as they appeared.
	var few [8]listedAgent
	agents := r.agentsInOrder(few[:0])
	byParent := r.countedByParents(agents)
	for _, a := range agents {
		for u := range a.snapshot.Usage.attempts {
			if !byParent[u] {
				add(u)
			}
		}
	}
	add(&run.Unassigned.AttemptUsage)
	if u := &run.Usage; u.tokenless() {
		for _, a := range agents {
			if n := a.snapshot.Usage.StatedTokens(); n.V > 0 {
				addTokens(&u.TotalTokens, n)
			}
		}
	}
}

// tokenless reports whether no tokens are stated that were sent or generated.
func (u *Usage) tokenless() bool {
	return u.InputTokens == 0 && u.OutputTokens == 0 && u.TotalTokens.V == 0
}

// countedByParents returns the attempts whose usage an attempt above them includes: a
// modelUsage includes sub-agents. An attempt is below the one of the parent in which
// it began. It looks at each attempt once, however deep they nest. In a circle of
// parents the last attempt on the way up is taken as the top.
func (r *RunSnapshot) countedByParents(agents []listedAgent) map[*AttemptUsage]bool {
	counts := func(u *AttemptUsage) bool { return len(u.Models) > 0 }
	some := func(a listedAgent) bool {
		for u := range a.snapshot.Usage.attempts {
			if counts(u) {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(agents, some) {
		return nil // the usual case: no agent includes others
	}
	type node struct {
		of *AgentSnapshot
		u  *AttemptUsage
	}
	counted := make(map[*AttemptUsage]bool, len(agents))
	looking := map[*AttemptUsage]bool{}
	var path []node
	for _, agent := range agents {
		for u := range agent.snapshot.Usage.attempts {
			// Go up to the top, or to an attempt whose answer is known.
			path = path[:0]
			above := false
			for n := (node{agent.snapshot, u}); n.of != nil && !looking[n.u]; {
				if known, ok := counted[n.u]; ok {
					above = known || counts(n.u)
					break
				}
				looking[n.u] = true
				path = append(path, n)
				if n.of = r.Agents[n.of.ParentAgentID]; n.of != nil {
					n.u = n.of.Usage.at(n.u.Sequence)
				}
			}
			// Go down again: above says whether an attempt above this one includes it.
			for i := len(path) - 1; i >= 0; i-- {
				u := path[i].u
				counted[u] = above
				above = above || counts(u)
				delete(looking, u)
			}
		}
	}
	return counted
}

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
				all = append(all, UsageSource{
					AgentID: a.snapshot.AgentID, Parent: a.snapshot.ParentAgentID, Attempt: n,
					Source: sourceStated, Usage: Usage{TotalTokens: u.Stated}, Why: setOthers,
				})
			}
		}
	}
	all = append(all, r.Usage.Unassigned.AttemptUsage.sources()...)
	countStated(all)
	for i := range r.Phases {
		if p := &r.Phases[i]; p.Tokens.OK {
			all = append(all, UsageSource{
				Source: "workflow.phase.completed tokens", Usage: Usage{TotalTokens: p.Tokens}, Why: setStated,
			})
		}
	}
	for i := range r.Workflows {
		if w := &r.Workflows[i]; w.TotalTokens.OK {
			all = append(all, UsageSource{
				Source: "workflow.finalized totalTokens", Usage: Usage{TotalTokens: w.TotalTokens}, Why: setStated,
			})
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
