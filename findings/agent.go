package findings

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/canonjson"
	"github.com/agentevents/agentevents/internal/endword"
)

// An act is a tool call that has returned.
type act struct {
	tool, result     uint64
	args             args
	failed, refused  bool // a refused call failed, too
	hasResult        bool
	called, returned uint64 // sequences
	began, at        time.Time
	round            int // of the model
	class            int // acts that are equal have one
	spent            spent
}

// args are the arguments of a call.
type args struct {
	hash, canon uint64 // of a text that is cut, and of the canonical form; 0 until somebody asks
	text        []byte // the beginning
	cut         bool   // text is not all
	whole, ok   bool   // text is JSON and all; there are arguments
}

// set takes the arguments of a call, or their summary. Most are never compared: those that are
// short are not hashed.
func (a *args) set(raw agentevents.JSON, summary, digest string) {
	text := cmp.Or(string(raw), summary, digest)
	a.text = append(a.text[:0], text[:min(len(text), keptArgs)]...)
	a.hash, a.canon, a.cut = 0, 0, len(text) > keptArgs
	a.whole, a.ok = !a.cut && raw != "", text != ""
	if a.cut {
		a.hash = hashOf(text)
	}
}

// same reports whether the arguments are the same in canonical JSON.
func (a *args) same(b *args) bool {
	switch {
	case a.cut || b.cut:
		return a.cut == b.cut && a.hash == b.hash
	case bytes.Equal(a.text, b.text):
		return true
	}
	return a.whole && b.whole && a.canonical() == b.canonical()
}

func (a *args) canonical() uint64 {
	if a.canon == 0 {
		text, err := canonjson.Append(nil, string(a.text))
		if err != nil {
			text = a.text
		}
		a.canon = hashOf(string(text)) | 1
	}
	return a.canon
}

// same reports whether two calls are equal, and so are their results.
func (x *act) same(y *act) bool {
	return x.tool == y.tool && x.failed == y.failed && x.result == y.result && x.args.same(&y.args)
}

// An openCall is a tool call that has not returned.
type openCall struct {
	id, sequence uint64
	at           time.Time
	args         args
}

// A report is the usage that events report of a model call before it returns.
type report struct {
	call uint64
	spent
}

// An agent has the last acts of an agent.
type agent struct {
	id      string
	used    uint64 // clock of the run at its last event
	working bool
	ring    [kept]act
	keys    [kept]uint64 // of the acts in their places: those of equal acts are equal
	acts    int          // since the agent began anew; act n is at n % kept
	classes int
	same    [maxPeriod + 1]int // by period: acts in a row that equal the one so many before
	calls   []openCall
	models  []uint64 // open model calls
	lost    int      // open calls that are not known
	rounds  int      // model calls that returned
	spent   spent
	counted spent // accounted for by findings
	reports []report

	retry, err, any streak
	why             string // the last call failed
	tools           []toolStreak
	model, attempt  streak
	errs            bool   // the failures of the model are errors of the agent
	failed          string // the last of them

	loop   *found  // of its acts: one at a time
	streak *streak // that the loop is about, or nil
	period int     // of the loop otherwise; 0 for a window

	full   *found // the context is
	thrash streak
	since  int // calls since the last compaction
}

const maxPeriod = 4

// A streak is a row of failures.
type streak struct {
	n         int
	refused   int      // those that were refused
	sequences []uint64 // the first ones
	latest    uint64   // the last one
	since     time.Time
	base      spent
	key       uint64 // of the error
	last      time.Time
	gap       time.Duration
	backOff   bool // every pause is longer than the one before
	f         *found
}

type toolStreak struct {
	tool uint64
	streak
}

// add adds a failure that began and ended at these times.
func (s *streak) add(sequence uint64, began, at time.Time, now spent) {
	if s.n == 0 {
		*s = streak{sequences: s.sequences[:0], since: known(began), base: now, key: s.key, backOff: true}
	} else {
		gap := began.Sub(s.last)
		s.backOff = s.backOff && gap >= time.Second/2 && gap*10 >= s.gap*13
		s.gap = gap
	}
	s.n++
	s.last, s.latest = at, sequence
	if len(s.sequences) < keptEnds {
		s.sequences = append(s.sequences, sequence)
	}
}

// reached reports whether the row is as long as allowed, which is twice as much with back-off.
func (s *streak) reached(limit int) bool {
	if s.backOff && s.n > 1 {
		limit *= 2
	}
	return s.n >= limit
}

func (s *streak) reset() {
	s.n = 0
	if s.f != nil {
		s.f.Open, s.f = false, nil
	}
}

// agent returns the agent of an event.
func (r *Run) agent(ev *agentevents.Event) *agent {
	id := cmp.Or(ev.AgentID, ev.NodeRunID)
	a := r.recent
	if a == nil || a.id != id {
		a = r.agents[id]
	}
	if a == nil {
		if len(r.agents) == keptAgents {
			r.forget()
		}
		a = &agent{id: strings.Clone(id)}
		if r.agents == nil {
			r.agents = map[string]*agent{}
		}
		r.agents[a.id] = a
	}
	r.acts++
	a.used, r.recent = r.acts, a
	return a
}

// forget forgets the agent that acted first of all. Its open calls go on.
func (r *Run) forget() {
	var oldest *agent
	for _, a := range r.agents {
		if oldest == nil || a.used < oldest.used {
			oldest = a
		}
	}
	oldest.anew()
	delete(r.agents, oldest.id)
	r.recent = nil
}

// anew forgets the acts: somebody has told the agent to do something.
func (a *agent) anew() {
	a.acts, a.same = 0, [maxPeriod + 1]int{}
	a.closeLoop()
	for _, s := range []*streak{&a.retry, &a.err, &a.any, &a.model} {
		s.reset()
	}
	a.tools = a.tools[:0]
}

func (a *agent) closeLoop() {
	if a.loop != nil {
		a.loop.Open = false
	}
	a.loop, a.streak = nil, nil
}

func (a *agent) started(r *Run) {
	r.started, r.over = true, false
	if !a.working {
		a.working = true
		r.working++
	}
	a.anew()
}

// ended notes that an attempt is over, and with it all that it had open.
func (a *agent) ended(r *Run, ev *agentevents.Event, p *agentevents.AgentEnded) {
	if a.working {
		a.working = false
		r.working--
	}
	r.open -= len(a.calls) + a.lost
	r.asking -= len(a.models)
	a.calls, a.models, a.lost = a.calls[:0], a.models[:0], 0
	r.close(a.id)
	fails, end := p.Error.OK && p.Error.V.Code != cancelled, why(text(p.Error.V, ""))
	if fails {
		a.gaveUp(r, ev, end)
	}
	a.anew()
	if !fails {
		a.attempt.reset()
		return
	}
	a.attempt.add(ev.Sequence, ev.Time, ev.Time, a.spent)
	r.streak(ev, a, &a.attempt, r.o.Attempts,
		found{Finding: Finding{Kind: FailureStreak}, about: reason(end), write: attemptsText})
}

const cancelled = "cancelled" // code of an error of something that somebody stopped

func (a *agent) called(r *Run, ev *agentevents.Event, p *agentevents.ToolCalled) {
	if len(a.calls) == keptOpen {
		a.lost++
		r.open++
		return
	}
	a.calls = slices.Grow(a.calls, 1)[:len(a.calls)+1] // with the memory of an earlier one
	c := &a.calls[len(a.calls)-1]
	c.id, c.sequence, c.at = hashOf(p.CallID), ev.Sequence, ev.Time
	c.args.set(p.Arguments, p.ArgumentsSummary, p.ArgsHash)
	r.open++
}

// goesOn notes that the model has answered.
func (a *agent) goesOn() {
	if a.errs {
		a.model.reset()
	}
}

// take removes an open call and moves its sequence, time and arguments to the act.
func (a *agent) take(r *Run, id uint64, x *act) {
	i := slices.IndexFunc(a.calls, func(c openCall) bool { return c.id == id })
	if i < 0 {
		if a.lost > 0 {
			a.lost--
			r.open--
		}
		x.args.set("", "", "")
		return
	}
	c := &a.calls[i]
	x.called, x.began = c.sequence, c.at
	x.args, c.args = c.args, x.args // the memory stays
	last := len(a.calls) - 1
	a.calls[i], a.calls[last] = a.calls[last], a.calls[i]
	a.calls = a.calls[:last]
	r.open--
}

// returned notes the return of a tool call.
func (a *agent) returned(r *Run, ev *agentevents.Event, p *agentevents.ToolReturned) {
	x := &a.ring[a.acts%kept]
	x.called, x.began = ev.Sequence, ev.Time
	if p.OneEvent {
		x.began = ev.Time.Add(-p.Duration.V)
		x.args.set(p.Arguments, p.ArgumentsSummary, "")
	} else {
		a.take(r, hashOf(p.CallID), x)
	}
	meaning := endword.Succeeded
	if p.Status != agentevents.ToolStatusOK {
		meaning = endword.Of(string(p.Status))
	}
	if meaning == endword.Cancelled {
		return
	}
	result := cmp.Or(string(p.Result), p.ResultSummary, p.Error.V.Message, p.Error.V.Code)
	x.tool, x.result, x.hasResult = hashOf(p.ToolID), hashOf(result), result != ""
	x.refused = meaning == endword.Refused
	x.failed = meaning == endword.Failed || x.refused // another word decides nothing
	x.returned, x.at, x.round, x.spent = ev.Sequence, ev.Time, a.rounds, a.spent
	a.since++
	a.goesOn()
	a.act(r, ev, p, x)
}

// act looks for loops with an act, which is in its place of the ring.
func (a *agent) act(r *Run, ev *agentevents.Event, p *agentevents.ToolReturned, x *act) {
	waits := !x.failed && slices.Contains(r.o.Polls, p.ToolID)
	if waits {
		a.acts, a.same = 0, [maxPeriod + 1]int{} // a call after it asks for something new
	}
	news, key := true, x.tool^bits.RotateLeft64(x.result, 1)
	a.keys[a.acts%kept] = key
	for i := a.acts - 1; i >= max(0, a.acts-kept+1); i-- {
		y := &a.ring[i%kept]
		if a.keys[i%kept] != key || !x.same(y) {
			continue
		}
		if x.called < y.returned || r.models && x.round == y.round {
			return // at once: the agent has not seen the other result
		}
		x.class, news = y.class, false
		break
	}
	if news {
		a.classes++
		x.class = a.classes
		if !x.failed {
			r.hands.n = 0 // that is progress
		}
	}
	for period := 1; period <= maxPeriod; period++ {
		if a.acts >= period && a.ring[(a.acts-period)%kept].class == x.class {
			a.same[period]++
		} else {
			a.same[period] = 0
		}
	}
	a.failures(x, p)
	if !waits {
		a.acts++
	}
	a.follow(r, ev)
	if a.loop == nil {
		a.look(r, ev, p, x, waits)
	}
}

// failures counts failures in a row.
func (a *agent) failures(x *act, p *agentevents.ToolReturned) {
	i := slices.IndexFunc(a.tools, func(t toolStreak) bool { return t.tool == x.tool })
	if !x.failed {
		a.retry.reset()
		a.err.reset()
		a.any.reset()
		if i >= 0 {
			a.tools[i].reset()
		}
		return
	}
	if i < 0 && len(a.tools) < kept {
		i = len(a.tools)
		a.tools = append(a.tools, toolStreak{tool: x.tool})
	}
	prev := a.before(1)
	if a.retry.n > 0 && (prev == nil || !prev.failed || prev.tool != x.tool || !prev.args.same(&x.args) || !x.args.ok) {
		a.retry.reset()
	}
	if key := hashOf(letters(text(p.Error.V, cmp.Or(p.ResultSummary, string(p.Result))))); a.err.key != key {
		a.err.reset()
		a.err.key = key
	}
	a.why = why(text(p.Error.V, cmp.Or(p.ResultSummary, plain(p.Result))))
	streaks := [4]*streak{&a.retry, &a.err, &a.any}
	if i >= 0 {
		streaks[3] = &a.tools[i].streak
	}
	for _, s := range streaks {
		if s == nil {
			continue
		}
		if s.add(x.returned, x.began, x.at, x.spent); x.refused {
			s.refused++
		}
	}
}

// before returns the act so many before the next one, or nil.
func (a *agent) before(n int) *act {
	if n > a.acts || n >= kept {
		return nil
	}
	return &a.ring[(a.acts-n)%kept]
}

// letters returns the beginning of an error without its digits: numbers of lines, times and ids change.
func letters(text string) string {
	const most = 200
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text[:min(len(text), most)])
}

func text(e agentevents.ErrorInfo, or string) string { return cmp.Or(e.Message, e.Code, or) }

// follow adds the last act to the loop that is open, or closes it.
func (a *agent) follow(r *Run, ev *agentevents.Event) {
	f := a.loop
	if f == nil {
		return
	}
	goes := false
	switch {
	case a.streak != nil:
		if a.streak.n > 0 && a.streak.n <= f.Count { // an act of another tool: it may begin a loop of its own
			a.loop, a.streak = nil, nil
			return
		}
		goes = a.streak.n > 0
	case a.period > 0:
		goes = a.same[a.period] > 0
	default:
		goes = a.sorts(r.o.Window) > 0
	}
	if !goes {
		a.closeLoop()
		return
	}
	if f.Count++; a.streak != nil {
		f.Count, f.parts = a.streak.n, a.streak.refused
	}
	if a.streak == &a.any {
		f.about = reason(a.why)
	}
	a.extend(r, ev, f)
}

// extend adds an event to a finding of the agent, and the cost until then.
func (a *agent) extend(r *Run, ev *agentevents.Event, f *found) {
	f.grow(ev, ev.Sequence)
	f.size = float64(f.Count)
	f.cost(a.spent)
	a.counted = a.spent
	r.tell(f)
	r.wasted(f)
}

// cost sets the cost until now.
func (f *found) cost(now spent) {
	f.Cost = Cost{ModelCalls: int(now.calls - f.base.calls)}
	if f.Cost.ModelCalls > 0 || now.tokens > f.base.tokens || now.cost > f.base.cost {
		f.Cost.From = "model calls"
		if now.known {
			f.Cost.Tokens = agentevents.Some(now.tokens - f.base.tokens)
		}
		if now.priced {
			f.Cost.CostUSD = agentevents.Some(now.cost - f.base.cost)
		}
	}
}

// sorts returns the number of sorts of the last acts, if it is small, else 0.
func (a *agent) sorts(window int) int {
	const most = 3
	if a.acts < window {
		return 0
	}
	var all [most]int
	n := 0
	for i := range window {
		c := a.before(i + 1)
		if c == nil || !c.hasResult {
			return 0
		}
		if slices.Contains(all[:n], c.class) {
			continue
		}
		if n == most {
			return 0
		}
		all[n] = c.class
		n++
	}
	return n
}

// look begins a finding, if the last act completes one.
func (a *agent) look(r *Run, ev *agentevents.Event, p *agentevents.ToolReturned, x *act, waits bool) {
	if x.failed && a.fails(r, ev, p, x) || waits || !x.args.ok && !x.hasResult {
		return
	}
	for period := 1; period <= maxPeriod; period++ {
		limit := r.o.Rounds
		if period == 1 {
			if limit = r.o.Repeats; x.failed {
				continue // that is a retry
			}
		}
		if !x.hasResult {
			limit = limit * r.o.Unseen / r.o.Repeats
		}
		n := a.same[period] + period
		if period > 1 && a.same[1] > 0 || n < limit*period {
			continue
		}
		one := Finding{AgentID: a.id, ToolID: p.ToolID, CallID: p.CallID}
		f := found{Finding: with(one, Repeat), about: callText(p.ToolID, &x.args), parts: period, write: repeatText}
		if period > 1 {
			f.Kind, f.write = PingPong, cycleText
			f.ToolID, f.CallID = "", ""
		}
		a.circle(r, ev, f, n, period)
		return
	}
	if n := a.sorts(r.o.Window); n > 0 {
		a.circle(r, ev, found{Finding: Finding{Kind: Repeat, AgentID: a.id}, parts: n, write: sortsText}, r.o.Window, 0)
	}
}

// fails begins a finding about failures in a row, or adds to it, and reports whether it did.
func (a *agent) fails(r *Run, ev *agentevents.Event, p *agentevents.ToolReturned, x *act) bool {
	tool := a.tool(x.tool)
	if !a.retry.reached(r.o.Retries) && !a.err.reached(r.o.SameError) &&
		!a.any.reached(r.o.Failures) && (tool == nil || !tool.reached(r.o.Failures)) {
		return false // the usual case
	}
	one := Finding{AgentID: a.id, ToolID: p.ToolID, CallID: p.CallID}
	about, why := callText(p.ToolID, &x.args), a.why
	for _, f := range []struct {
		s     *streak
		limit int
		found
	}{
		{&a.retry, r.o.Retries, found{Finding: with(one, Retry), about: about + reason(why), write: retryText}},
		{&a.err, r.o.SameError, found{Finding: with(one, FailureStreak), about: why, write: sameErrorText}},
		{tool, r.o.Failures, found{Finding: with(one, FailureStreak), about: reason(why), write: toolText}},
		{&a.any, r.o.Failures, found{Finding: with(one, FailureStreak), about: reason(why), write: anyText}},
	} {
		if f.s == nil || !f.s.reached(f.limit) {
			continue
		}
		f.found.loops = true
		if f.s == &a.any {
			f.found.ToolID = ""
		}
		r.streak(ev, a, f.s, f.limit, f.found)
		a.loop, a.streak = f.s.f, f.s
		return true
	}
	return false
}

func with(f Finding, k Kind) Finding {
	f.Kind = k
	return f
}

// tool returns the failures in a row of a tool, or nil.
func (a *agent) tool(tool uint64) *streak {
	for i := range a.tools {
		if a.tools[i].tool == tool {
			return &a.tools[i].streak
		}
	}
	return nil
}

// circle begins a finding about the last n acts.
func (a *agent) circle(r *Run, ev *agentevents.Event, f found, n, period int) {
	n = min(n, a.acts, kept-1)
	first := a.before(n)
	f.Count, f.Since, f.loops, f.base = n-1, known(first.began), true, later(first.spent, a.counted)
	for i := n; i > 1; i-- {
		f.Sequences = append(f.Sequences, a.before(i).returned)
	}
	if len(f.Sequences) > 2*keptEnds-1 {
		f.Sequences = slices.Delete(f.Sequences, keptEnds, len(f.Sequences)-keptEnds+1)
	}
	begun := r.begin(ev, f)
	if begun == nil {
		return
	}
	a.loop, a.period, a.streak = begun, period, nil
	begun.Count++
	a.extend(r, ev, begun)
}

func later(a, b spent) spent {
	if b.calls > a.calls || b.tokens > a.tokens {
		return b
	}
	return a
}

// streak begins a finding about failures in a row, or adds the last one to it.
func (r *Run) streak(ev *agentevents.Event, a *agent, s *streak, limit int, f found) {
	if s.f == nil {
		if !s.reached(limit) {
			return
		}
		f.AgentID = a.id
		f.Count, f.Since, f.base = s.n-1, s.since, later(s.base, a.counted)
		f.Sequences = append(f.Sequences, s.sequences...)
		if n := len(f.Sequences); n > 0 && f.Sequences[n-1] == ev.Sequence {
			f.Sequences = f.Sequences[:n-1]
		}
		if s.f = r.begin(ev, f); s.f == nil {
			return
		}
	}
	s.f.Count, s.f.parts = s.n, s.refused
	if s.f.loops {
		a.extend(r, ev, s.f)
		return
	}
	s.f.about = f.about
	s.f.grow(ev, ev.Sequence)
	s.f.size = float64(s.f.Count)
	r.tell(s.f)
}

// GoesOn returns the finding of the agent's loop that a call would go on with, or nil: an open
// [Repeat], [PingPong] or [Retry] whose next call it is. The call has not been recorded yet.
func (r *Run) GoesOn(agentID string, p *agentevents.ToolCalled) *Finding {
	a := r.agents[agentID]
	if a == nil || a.loop == nil || a.loop.Kind == FailureStreak {
		return nil
	}
	var own args
	own.set(p.Arguments, p.ArgumentsSummary, p.ArgsHash)
	tool := hashOf(p.ToolID)
	same := func(x *act) bool { return x != nil && x.tool == tool && x.args.same(&own) }
	goes := false
	switch {
	case a.streak != nil:
		goes = same(a.before(1))
	case a.period > 0:
		goes = same(a.before(a.period))
	default:
		for i := range r.o.Window {
			goes = goes || same(a.before(i+1))
		}
	}
	if !goes {
		return nil
	}
	f := a.loop.copied()
	return &f
}
