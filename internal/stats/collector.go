package stats

import (
	"cmp"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/view"
)

// By is the subject of the groups of a report.
type By string

// The subjects of groups. The zero By makes no groups.
const (
	ByAgent By = "agent" // by the name of the agent, else its id
	ByTool  By = "tool"  // by tool id
	ByModel By = "model" // by model name

	// ByAgentModel is by the name of the agent and the model: its calls of models, and its
	// tokens and cost as its agents state them of each model.
	ByAgentModel By = "agent+model"

	// ByAgentTool is by the name of the agent and the tool id, and ByModelTool by the tool id and
	// the model of the agent that calls: the one that it called last, else the one of its start.
	// They have calls of tools.
	ByAgentTool By = "agent+tool"
	ByModelTool By = "model+tool"
)

// Groupings returns every By but the zero one.
func Groupings() []By { return []By{ByAgent, ByTool, ByModel, ByAgentModel, ByAgentTool, ByModelTool} }

// Limits of a Collector's memory, because ids come from logs.
const (
	maxWords     = 32   // in Report.EndWords
	maxGroups    = 1000 // further ones share the group Others
	maxOpenCalls = 1024 // open calls of a run whose starts are known
	maxSpare     = 16   // tables for open calls that no run has
	maxGone      = 64   // latest calls of a run that have returned, as in a fold
)

// Others is the name of the group with the figures of all subjects beyond the limit of groups.
const Others = "(others)"

// A Collector adds up the figures of the runs of a log. It keeps little of a run that has
// ended. A Collector must not be used concurrently.
type Collector struct {
	tables   []table
	log      *agentevents.FoldSet
	runs     map[string]*run
	last     *run              // of the event before
	spare    []map[call]opened // empty ones of runs without an open call
	seed     maphash.Seed
	sessions map[string]*session
	total    tally

	statuses map[agentevents.RunStatus]int
	endWords map[string]int
	madeUp   int             // runs with RunSnapshot.EndMadeUp
	lasted   []time.Duration // of runs that are over
	issues   int
	audits   int64 // that agents state beyond those in the log
	events   int
	repeated int // events that come again
	found    *findings.Fold
}

// New returns a collector without events, which groups figures by each of the given things.
func New(by ...By) *Collector {
	c := &Collector{
		log:  agentevents.NewFoldSet(agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}),
		seed: maphash.MakeSeed(), runs: map[string]*run{}, sessions: map[string]*session{}, statuses: map[agentevents.RunStatus]int{},
		found: findings.New(findings.Options{}),
	}
	for _, by := range by {
		if by != "" {
			c.tables = append(c.tables, table{by, map[key]*tally{}})
		}
	}
	return c
}

// A table has the figures of the groups by one thing.
type table struct {
	by     By
	groups map[key]*tally
}

// A key names a group: an agent, a tool or a model, or two of them.
type key struct{ name, second string }

// A run has the state of a run that its fold does not show.
type run struct {
	id    string
	seen  view.Sequences
	names map[string]string              // of agents that have one, by their ids
	tasks map[string]map[string]struct{} // agents of the tasks
	calls map[call]opened                // open calls
	gone  []uint32                       // hashes of the latest calls that returned

	// For tables by pairs with a tool.
	models map[string]string // of agents, by their ids
	met    []*tally          // groups that have a call of the run
}

// A call is a call of an agent to a model, or else to a tool.
type call struct {
	model     bool
	agent, id string
}

type opened struct {
	of string // the tool or the model
	at time.Time
}

// A session has the facts that several runs share.
type session struct {
	pairs map[[2]string]struct{} // agents that handed over and took over
	loop  bool                   // a pair did so again
	tasks map[string]verdict
}

// A verdict is the result of a task.
type verdict int

const (
	undecided verdict = iota
	failed
	succeeded
)

// A tally has the sums from which figures are computed.
type tally struct {
	runs     int
	tasks    [succeeded + 1]int // by verdict
	sessions int
	loops    int // sessions
	handoffs int

	verdicts, rejections int
	agents, parents      int
	tools, models        calls
	waits                []time.Duration // for answers of people
	unanswered           int
	compactions          int
	before, after        int64 // tokens of the contexts

	tokens   Tokens
	cost     number
	costRuns int
}

// calls counts calls.
type calls struct {
	returned, failed, open, refused int // those that returned succeeded or failed
	undecided                       int // returned with neither
	all                             int // that began
	unlogged                        int64
	timed                           int // calls whose duration is known: those that last has
	last                            time.Duration
	times                           *histogram // of those; nil without any
}

// group returns the tally of a group.
func (b *table) group(k key) *tally {
	t := b.groups[k]
	if t == nil {
		if len(b.groups) >= maxGroups {
			k = key{name: Others}
		}
		if t = b.groups[k]; t == nil {
			t = &tally{}
			b.groups[key{strings.Clone(k.name), strings.Clone(k.second)}] = t
		}
	}
	return t
}

// groups yields the tally of the group with that name in the tables by one thing.
func (c *Collector) groups(by By, k key) iter.Seq[*tally] {
	return func(yield func(*tally) bool) {
		for i := range c.tables {
			if t := &c.tables[i]; t.by == by && !yield(t.group(k)) {
				return
			}
		}
	}
}

// Event adds one event. Events of different runs may come in any order. Those that come
// again count once.
func (c *Collector) Event(ev agentevents.Event) { c.Line(agentevents.Line{Event: &ev}) }

// Line is Event for an event and its line, as [agentevents.Reader.Lines] yields both. It keeps no
// part of the event.
func (c *Collector) Line(line agentevents.Line) {
	ev := line.Event
	r := c.run(ev.RunID)
	c.events++
	c.found.Add(ev)
	c.log.ApplyLine(ev, line.Text)
	if ev.TaskID != "" {
		r.task(ev.TaskID, ev.AgentID)
	}
	if r.seen.Again(ev.Sequence) {
		c.repeated++
		return
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if p.Name != "" && r.names[ev.AgentID] != p.Name {
			if r.names == nil {
				r.names = map[string]string{}
			}
			r.names[strings.Clone(ev.AgentID)] = strings.Clone(p.Name)
		}
		c.model(r, ev.AgentID, p.Model)
	case *agentevents.ContextCompacted:
		c.count(ByAgent, "", r.agentOf(ev), func(t *tally) { t.compacted(p) })
	case *agentevents.ToolCalled:
		c.opened(r, call{false, ev.AgentID, p.CallID}, opened{p.ToolID, ev.Time})
	case *agentevents.ToolReturned:
		began, open, again := c.returned(r, call{false, ev.AgentID, p.CallID}, p.OneEvent)
		if again && p.Status != agentevents.ToolStatusForbidden && p.Status != agentevents.ToolStatusRateLimited {
			return
		}
		if !open {
			began.of = p.ToolID
		}
		var one calls
		if open || p.OneEvent {
			one.took(p.Duration, began.at, ev.Time)
			c.count(ByTool, began.of, r.agentOf(ev), func(t *tally) { t.tools.one(one) })
		}
		one.ended(p.Status, open)
		for t := range c.pairs(r, ev.AgentID, r.agentOf(ev), began.of) {
			t.tools.one(one)
		}
	case *agentevents.ModelCalled:
		c.opened(r, call{true, ev.AgentID, p.ModelCallID}, opened{p.Model, ev.Time})
		c.model(r, ev.AgentID, p.Model)
	case *agentevents.ModelReturned:
		began, _, again := c.returned(r, call{true, ev.AgentID, p.ModelCallID}, p.OneEvent)
		if again {
			return
		}
		one := calls{returned: 1, all: 1}
		if p.Error.OK {
			one.failed = 1
		}
		one.took(p.Duration, began.at, ev.Time)
		c.model(r, ev.AgentID, p.Model)
		c.count(ByModel, cmp.Or(p.Model, began.of), r.agentOf(ev), func(t *tally) { t.models.one(one) })
	}
}

// run returns the run with that id.
func (c *Collector) run(id string) *run {
	if c.last != nil && c.last.id == id {
		return c.last
	}
	r := c.runs[id]
	if r == nil {
		r = &run{id: strings.Clone(id)}
		c.runs[r.id] = r
	}
	c.last = r
	return r
}

// name returns the name of an agent for people.
func name(s *agentevents.RunSnapshot, id string) string { return view.Name(id, s.Agents[id]) }

// agentOf returns the name of the agent of an event.
func (r *run) agentOf(ev *agentevents.Event) string {
	if ev.AgentID == "" && ev.NodeRunID != "" {
		return cmp.Or(ev.NodeID, ev.NodeRunID)
	}
	return cmp.Or(r.names[ev.AgentID], ev.AgentID)
}

// count adds to the total, and to the groups of an agent, of a tool or model, and of an agent and a
// model.
func (c *Collector) count(by By, of, agent string, add func(*tally)) {
	add(&c.total)
	for i := range c.tables {
		switch t := &c.tables[i]; {
		case t.by == ByAgent && agent != "":
			add(t.group(key{name: agent}))
		case t.by == by && of != "":
			add(t.group(key{name: of}))
		case t.by == ByAgentModel && by == ByModel && agent != "":
			add(t.group(key{agent, of}))
		}
	}
}

// pairs yields the tallies of a tool and an agent, and of a tool and the model of that agent. They
// are counted from the events, because the snapshot of a run does not have these counts.
func (c *Collector) pairs(r *run, id, agent, tool string) iter.Seq[*tally] {
	return func(yield func(*tally) bool) {
		for i := range c.tables {
			k := key{agent, tool}
			switch c.tables[i].by {
			case ByAgentTool:
			case ByModelTool:
				k.name = r.models[id]
			default:
				continue
			}
			t := c.tables[i].group(k)
			if !slices.Contains(r.met, t) {
				r.met = append(r.met, t)
				t.runs++
			}
			if !yield(t) {
				return
			}
		}
	}
}

// model notes the model of an agent, if a table needs it.
func (c *Collector) model(r *run, agent, model string) {
	if model == "" || r.models[agent] == model || !c.has(ByModelTool) {
		return
	}
	if r.models == nil {
		r.models = map[string]string{}
	}
	r.models[strings.Clone(agent)] = strings.Clone(model)
}

// has reports whether there is a table by one thing.
func (c *Collector) has(by By) bool {
	return slices.ContainsFunc(c.tables, func(t table) bool { return t.by == by })
}

// task notes a task, and the agent of an event that names it.
func (r *run) task(id, agent string) {
	agents, known := r.tasks[id]
	if !known {
		if r.tasks == nil {
			r.tasks = map[string]map[string]struct{}{}
		}
		agents = map[string]struct{}{}
		r.tasks[strings.Clone(id)] = agents
	}
	if _, known := agents[agent]; !known && agent != "" {
		agents[strings.Clone(agent)] = struct{}{}
	}
}

func (t *tally) compacted(p *agentevents.ContextCompacted) {
	if t.compactions++; p.TokensBefore.OK && p.TokensAfter.OK {
		t.before, t.after = view.Plus(t.before, p.TokensBefore.V), view.Plus(t.after, p.TokensAfter.V)
	}
}

// opened notes the start of a call.
func (c *Collector) opened(r *run, k call, o opened) {
	if len(r.calls) >= maxOpenCalls {
		return
	}
	if n := len(c.spare); r.calls == nil && n > 0 {
		r.calls, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	if r.calls == nil {
		r.calls = map[call]opened{}
	}
	r.calls[call{k.model, strings.Clone(k.agent), strings.Clone(k.id)}] = opened{strings.Clone(o.of), o.at}
}

// returned takes the start of a call, and reports whether it is known, or whether the call has returned
// before. A return of a whole call ends no other call.
func (c *Collector) returned(r *run, k call, whole bool) (o opened, open, again bool) {
	h := uint32(maphash.Comparable(c.seed, k))
	if !whole {
		o, open = r.calls[k]
		again = !open && k.id != "" && slices.Contains(r.gone, h)
	}
	if !again {
		if len(r.gone) == maxGone {
			r.gone = slices.Delete(r.gone, 0, 1)
		}
		r.gone = append(r.gone, h)
	}
	if !open {
		return o, false, again
	}
	if delete(r.calls, k); len(r.calls) == 0 {
		if len(c.spare) < maxSpare {
			c.spare = append(c.spare, r.calls)
		}
		r.calls = nil // of an ended run it is memory
	}
	return o, true, false
}

// took adds the duration of a call: the one that its return states, else the time between its
// events. Without a clock, as in most captures, all events have the same time, which gives no
// duration.
func (c *calls) took(stated agentevents.Opt[time.Duration], from, to time.Time) {
	switch {
	case stated.OK:
		c.timed, c.last = 1, stated.V
	case agentevents.TimeKnown(from) && agentevents.TimeKnown(to) && to.After(from):
		c.timed, c.last = 1, to.Sub(from)
	}
}

// ended makes c a call that has returned, which began in the log or before it. A call that was
// refused may never have begun.
func (c *calls) ended(status agentevents.ToolStatus, open bool) {
	if open || status != agentevents.ToolStatusForbidden && status != agentevents.ToolStatusRateLimited {
		c.all = 1
	}
	switch endword.Of(string(status)) {
	case endword.Succeeded:
		c.returned = 1
	case endword.Failed:
		c.returned, c.failed = 1, 1
	case endword.Refused:
		c.refused = 1
	default:
		c.undecided = 1
	}
}

// one adds one call.
func (c *calls) one(v calls) {
	if c.add(v); v.timed == 0 {
		return
	}
	if c.times == nil {
		c.times = new(histogram)
	}
	c.times.add(v.last)
}

func (c *calls) add(v calls) {
	c.returned, c.failed = c.returned+v.returned, c.failed+v.failed
	c.open, c.refused, c.undecided, c.all = c.open+v.open, c.refused+v.refused, c.undecided+v.undecided, c.all+v.all
	c.timed, c.last = c.timed+v.timed, view.Plus(c.last, v.last)
}

// snapshot adds the state of a run after its last event.
func (c *Collector) snapshot(r *run, s *agentevents.RunSnapshot) {
	t := &c.total
	t.runs++
	c.statuses[s.Status]++
	if s.EndMadeUp {
		c.madeUp++
	}
	if word := s.SessionStatus; s.Status == agentevents.RunStatusEnded &&
		(len(c.endWords) < maxWords || c.endWords[word] > 0) {
		if c.endWords == nil {
			c.endWords = map[string]int{}
		}
		c.endWords[strings.Clone(word)]++
	}
	if d := view.Length(s); s.Status.Terminal() && d > 0 {
		c.lasted = append(c.lasted, d)
	}
	t.models.open, t.models.all = t.models.open+len(s.OpenModelCalls), t.models.all+len(s.OpenModelCalls)
	c.issues += len(s.Issues)
	t.use(s.Usage.Usage, s.Usage.CostUSD, s.Usage.Partial)
	c.session(s, r)
	c.agents(s)
	c.tools(s)
	for _, a := range s.Agents {
		calls, audits := view.Unlogged(a)
		t.tools.unlogged, c.audits = view.Plus(t.tools.unlogged, int64(calls)), view.Plus(c.audits, int64(audits))
	}
	for i := range s.Audits {
		a := &s.Audits[i]
		c.judged(name(s, a.AgentID), a.Result == agentevents.AuditFail)
	}
	for i := range s.Claims {
		c.judged("", view.MarkOf(endword.Of(s.Claims[i].Verdict)) == view.Bad)
	}
	for i := range s.Approvals {
		c.approval(&s.Approvals[i], name(s, s.Approvals[i].AgentID))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Usage.Models)) {
		for g := range c.groups(ByModel, key{name: name}) {
			u := s.Usage.Models[name]
			g.runs++
			g.use(u, u.CostUSD, s.Usage.Partial) // of which of the models, the snapshot leaves open
		}
	}
	for i := range s.OpenCalls {
		o := s.OpenCalls[i]
		for t := range c.pairs(r, o.AgentID, name(s, o.AgentID), o.ToolID) {
			t.tools.add(calls{open: 1, all: 1})
		}
	}
	for i := range s.OpenModelCalls {
		m := &s.OpenModelCalls[i]
		c.openModelCall(m.Model, name(s, m.AgentID))
	}
}

// openModelCall adds a call that has not returned to its groups; the total has it.
func (c *Collector) openModelCall(model, agent string) {
	one := calls{open: 1, all: 1}
	for i := range c.tables {
		switch t := &c.tables[i]; {
		case t.by == ByModel && model != "":
			t.group(key{name: model}).models.add(one)
		case t.by == ByAgent && agent != "":
			t.group(key{name: agent}).models.add(one)
		case t.by == ByAgentModel && agent != "":
			t.group(key{agent, model}).models.add(one)
		}
	}
}

func (t *tally) use(u agentevents.Usage, cost number, partial bool) {
	t.tokens.add(u)
	t.tokens.Partial = t.tokens.Partial || partial
	if cost.OK {
		t.cost = agentevents.Some(min(t.cost.V+cost.V, math.MaxFloat64)) // JSON has no infinity
		t.costRuns++
	}
}

// judged adds a verdict on the work of an agent, or of a run.
func (c *Collector) judged(agent string, rejected bool) {
	c.count(ByAgent, "", agent, func(t *tally) {
		if t.verdicts++; rejected {
			t.rejections++
		}
	})
}

func (c *Collector) approval(a *agentevents.ApprovalSnapshot, agent string) {
	if a.RequestedAt.IsZero() {
		return // an answer without a request
	}
	wait := a.AnsweredAt.Sub(a.RequestedAt)
	c.count(ByAgent, "", agent, func(t *tally) {
		switch {
		case a.ClosedBy != agentevents.KindApprovalGranted && a.ClosedBy != agentevents.KindApprovalRejected,
			endword.Lapsed(a.Answer):
			t.unanswered++
		case !agentevents.TimeKnown(a.RequestedAt) || !agentevents.TimeKnown(a.AnsweredAt):
		case wait >= 0: // else the clocks do not agree
			t.waits = append(t.waits, wait)
		}
	})
}

// tools adds the tool calls of a run.
func (c *Collector) tools(s *agentevents.RunSnapshot) {
	open := map[string]int{}
	for _, call := range s.OpenCalls {
		open[call.ToolID]++
	}
	for _, id := range slices.Sorted(maps.Keys(s.Tools)) {
		st := s.Tools[id]
		v := calls{returned: st.OK + st.Failed, failed: st.Failed, open: open[id], refused: st.Refused,
			undecided: st.Undecided, all: st.Calls}
		c.total.tools.add(v)
		for g := range c.groups(ByTool, key{name: id}) {
			g.runs++
			g.tools.add(v)
		}
	}
}

// agents adds the agents of a run.
func (c *Collector) agents(s *agentevents.RunSnapshot) {
	depths := make(map[string]int, len(s.Agents))
	open := map[string]int{}
	for _, call := range s.OpenCalls {
		open[call.AgentID]++
	}
	for _, a := range s.AgentsInOrder() {
		d := depth(s, a.AgentID, depths)
		c.total.agents++
		c.total.parents += d
		for g := range c.groups(ByAgent, key{name: name(s, a.AgentID)}) {
			g.runs++
			g.agents++
			g.parents += d
			if a.Started || a.Ended {
				g.tasks[outcome(a)]++
			}
			g.tools.add(calls{
				returned: a.ToolSuccesses + a.ToolFailures, failed: a.ToolFailures, open: open[a.AgentID],
				refused: a.ToolRefusals, undecided: a.ToolsUndecided,
				all: a.ToolCalls,
			})
			tokens, cost := a.Usage.Total()
			g.use(tokens, cost, a.Usage.Partial())
		}
		c.used(name(s, a.AgentID), &a.Usage)
	}
}

// used adds the usage of an agent by model.
func (c *Collector) used(agent string, usage *agentevents.AgentUsage) {
	if !c.has(ByAgentModel) {
		return
	}
	models := usage.ByModel()
	for _, model := range slices.Sorted(maps.Keys(models)) {
		for g := range c.groups(ByAgentModel, key{agent, model}) {
			g.runs++
			g.use(models[model], models[model].CostUSD, usage.Partial())
		}
	}
}

// depth returns the number of parents above an agent. It looks at each agent once,
// however deep they nest: known has those it has looked at. A circle ends where it began.
func depth(s *agentevents.RunSnapshot, id string, known map[string]int) int {
	var path []string
	d := -1
	for ; id != ""; id = s.Agents[id].ParentAgentID {
		if k, ok := known[id]; ok {
			d = k
			break
		}
		known[id] = 0 // in a circle
		path = append(path, id)
		if s.Agents[id] == nil { // another run has it, or no log
			break
		}
	}
	for _, id := range slices.Backward(path) {
		d++
		known[id] = d
	}
	return d
}

// outcome returns the verdict that the end of an agent gives.
func outcome(a *agentevents.AgentSnapshot) verdict {
	if !a.Ended {
		return undecided
	}
	return verdicts[view.Ending(a)]
}

// verdicts has the verdict on a task by how it ended. A part counts as
// failed; an unknown word decides nothing.
var verdicts = [...]verdict{
	endword.Unknown: undecided, endword.Skipped: undecided, endword.Succeeded: succeeded, endword.Partial: failed,
	endword.Failed: failed, endword.Refused: failed, endword.Cancelled: failed,
}

// last returns the agent that ended last, of those that fit and have ended; nil without
// one.
func last(s *agentevents.RunSnapshot, fits func(*agentevents.AgentSnapshot) bool) (last *agentevents.AgentSnapshot) {
	for _, a := range s.AgentsInOrder() {
		if a.Ended && fits(a) && (last == nil || !agentevents.TimeKnown(a.EndedAt) || !a.EndedAt.Before(last.EndedAt)) {
			last = a
		}
	}
	return last
}

// runVerdict returns the verdict on a run as a whole.
func runVerdict(s *agentevents.RunSnapshot) verdict {
	switch s.Status {
	case agentevents.RunStatusFailed, agentevents.RunStatusCancelled:
		return failed
	case agentevents.RunStatusCompleted, agentevents.RunStatusEnded:
	default:
		return undecided
	}
	if v := verdicts[endword.Of(s.SessionStatus)]; (v != undecided || s.Status == agentevents.RunStatusEnded) &&
		!s.SessionEndedAt.IsZero() {
		return v
	}
	top := func(a *agentevents.AgentSnapshot) bool { return a.ParentAgentID == "" }
	if a := last(s, top); s.TerminalKind == "" && a != nil {
		return outcome(a)
	}
	well := func(a *agentevents.AgentSnapshot) bool { return top(a) && outcome(a) == succeeded }
	if last(s, top) != nil && last(s, well) == nil {
		return failed
	}
	return succeeded
}

// session adds the tasks and the handoffs of a run.
func (c *Collector) session(s *agentevents.RunSnapshot, r *run) {
	one := c.sessions[s.SessionID]
	if one == nil {
		one = &session{}
		if s.SessionID != "" {
			c.sessions[strings.Clone(s.SessionID)] = one
		}
	}
	for i := range s.Handoffs {
		h := &s.Handoffs[i]
		pair := [2]string{strings.Clone(h.From), strings.Clone(h.To)}
		if _, again := one.pairs[pair]; again {
			one.loop = true
		}
		if one.pairs == nil {
			one.pairs = map[[2]string]struct{}{}
		}
		one.pairs[pair] = struct{}{}
	}
	c.total.handoffs += len(s.Handoffs)

	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.TaskID != "" {
			r.task(t.TaskID, t.AgentID)
		}
	}
	whole := runVerdict(s)
	if len(r.tasks) == 0 {
		c.total.tasks[whole]++
	}
	for id, agents := range r.tasks {
		v := whole
		if len(r.tasks) > 1 {
			a := last(s, func(a *agentevents.AgentSnapshot) bool { _, ok := agents[a.AgentID]; return ok })
			if a != nil {
				v = outcome(a)
			}
		}
		if one.tasks == nil {
			one.tasks = map[string]verdict{}
		}
		if one.tasks[id] != succeeded { // else the latest try counts, which may go on
			one.tasks[id] = v
		}
	}
	if s.SessionID == "" {
		c.total.session(one)
	}
}

// session adds a session of which all runs are known.
func (t *tally) session(one *session) {
	if t.sessions++; one.loop {
		t.loops++
	}
	for _, v := range one.tasks {
		t.tasks[v]++
	}
}
