package claude

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A result ends a turn. The main agent goes on after that, unless the turn failed: its end waits
// for the end of the stream or for a failure. Results may come late, after the first lines of
// the next turn, and there are some for notices that no model answered.

// turns is the state of the turns of the stream.
type turns struct {
	idle    bool   // the latest result has ended the turn, and no other has begun
	fresh   bool   // something has begun after the latest result
	begun   []int  // numbers of the first calls of the turns that begin before the result of this one
	results int    // results so far
	count   int    // turns so far
	stopped string // the cause that ends this turn from outside
	told    string // text of the error that this turn has recorded

	attempt attempt
	end     *ending // of the latest turn, until it is recorded
	untold  *turn   // the first turn, until a second one begins
	outcome ending  // the run's
}

// An attempt is the work of the main agent from a start to an end.
type attempt struct {
	began    time.Time
	results  int
	usage    agentevents.Opt[agentevents.Usage] // sum over the turns that state it
	before   spending                           // spent in the attempts before
	below    map[string]agentevents.Usage       // the part of the totals that sub-agents report themselves
	worked   agentevents.Opt[time.Duration]
	numTurns agentevents.Opt[int]
}

// An ending is the end of the agent and of the run as a result states it.
type ending struct {
	line    *line
	stopped string // the cause that ended the turn from outside, or ""
	agent   agentevents.AgentEnded
	outputs agentevents.JSON
}

// A turn is one turn of several.
type turn struct {
	line    *line
	end     agentevents.TurnEnded
	summary agentevents.TurnSummarized
}

// isEmpty reports whether a result belongs to a notice or a command that no model answered.
func isEmpty(l *line) bool {
	n := l.count("num_turns")
	return n.OK && n.V == 0 && l.str("result") == "" && l.raw("structured_output") == "" && !failed(l, l.str("subtype"))
}

// result processes the line that ends a turn.
func (d *Decoder) result(l *line) {
	if reason := l.str("terminal_reason"); strings.HasPrefix(reason, "aborted") {
		d.stopped = cmp.Or(d.stopped, reason)
	}
	for _, denial := range l.objects("permission_denials") {
		d.denial(&denial)
	}
	d.settle(nil)
	clear(d.failed)

	own := l.object.object("usage")
	used, stated := usage(&own), own.text != ""
	known := len(d.counted.models) > 0
	added := d.account(l, used)
	d.results++
	switch {
	case len(added.models) > 0 || d.exact:
		d.stated()
	case stated && known: // the totals of the agent do not include it
		d.emit(nil, &agentevents.UsageObserved{Model: d.main.model, Usage: used, Source: "claude"}, 0)
		d.main.used = nil
	case stated:
		d.main.used = nil
	}
	if !d.main.open { // a notice after a turn that failed
		d.outcome.line = cmp.Or(d.outcome.line, l)
		return
	}

	before := d.callSeq
	if d.idle, d.fresh = true, false; len(d.begun) > 0 {
		if l.has("result_index") { // the next turn is at work already
			before, d.begun, d.idle = d.begun[0], d.begun[1:], false
		} else {
			d.begun = nil
		}
	}
	d.interrupt(d.main, before, false)
	d.attempt.add(l)
	failure := resultError(l)
	if isEmpty(l) && d.end != nil {
		d.figures(l)
		return
	}
	if stated && !isEmpty(l) {
		d.attempt.usage = agentevents.Some(join(d.attempt.usage.V, used, plus))
	}
	d.end = d.ending(l, failure)
	d.figures(l)
	fails := d.end.agent.Error.OK && d.end.stopped == ""
	if fails || !isEmpty(l) {
		d.count++
		d.turn(l, used, added)
	}
	if fails {
		d.fail()
	}
	d.stopped, d.told = "", ""
}

// add adds the figures of a result.
func (t *attempt) add(l *line) {
	t.results++
	if took := l.millis("duration_ms"); took.OK {
		t.worked = agentevents.Some(t.worked.V + took.V)
	}
	if n := l.count("num_turns"); n.OK {
		t.numTurns = agentevents.Some(t.numTurns.V + int(n.V))
	}
}

// ending returns the end that a result states.
func (d *Decoder) ending(l *line, failure agentevents.Opt[agentevents.ErrorInfo]) *ending {
	e := &ending{line: l, stopped: d.stopped, outputs: agentevents.JSON(l.raw("structured_output"))}
	if failure.OK && d.stopped != "" { // the error of the CLI tells of its own state alone
		failure.V.Code, failure.V.Message = codeInterrupted, d.stopped
	}
	e.agent = agentevents.AgentEnded{Outcome: outcome(l, failure.OK), Error: failure, StructuredOutput: e.outputs}
	if !failure.OK {
		e.agent.Result = l.str("result")
	}
	if e.outputs == "" && l.raw("result") != "" {
		e.outputs = agentevents.JSONString(e.agent.Result)
	}
	return e
}

// figures gives the end of the agent the figures of its turns so far.
func (d *Decoder) figures(l *line) {
	t, end := &d.attempt, &d.end.agent
	end.ModelUsage, end.Cumulative = d.counted.models, len(d.counted.models) > 0
	end.Usage, end.NumTurns, end.Duration = t.usage, t.numTurns, t.worked
	if took := l.at.Sub(t.began); t.results > 1 && took > t.worked.V {
		end.Duration = agentevents.Some(took)
	}
	if end.TotalCostUSD = d.counted.cost; len(d.guessed) > 0 {
		end.TotalCostUSD = agentevents.Opt[float64]{}
	} else if end.TotalCostUSD.OK && len(end.ModelUsage) == 0 { // a fold adds up the costs of attempts
		end.TotalCostUSD.V = max(0, end.TotalCostUSD.V-t.before.cost.V)
	}
}

// fail ends the agent, because its turn failed.
func (d *Decoder) fail() {
	if e := d.end.agent.Error.V; e.Message != d.told {
		d.emit(d.main, &agentevents.AgentErrored{ErrorType: e.Code, Message: e.Message, Details: e.Details}, 0)
	}
	d.outcome, d.end, d.idle = *d.end, nil, false
	d.closeMain(&d.outcome.agent, 0)
}

// closeMain ends the main agent. Messages that its figures do not include count for the run.
func (d *Decoder) closeMain(end *agentevents.AgentEnded, marks agentevents.Marks) {
	used := d.main.used
	d.close(d.main, end, marks)
	switch {
	case len(end.ModelUsage) > 0:
		for id, m := range used {
			d.unstated[id] = m
		}
		d.reportUsage(nil, d.unstated, marks)
	case end.Usage.OK:
		d.reportUsage(nil, used, marks)
	}
	clear(d.unstated)
}

// turn notes the end of a turn. One that stays alone is not told: the end of the agent tells it.
func (d *Decoder) turn(l *line, used agentevents.Usage, added spending) {
	t := &turn{line: l}
	t.end = agentevents.TurnEnded{
		Turn: agentevents.Some(d.count), Duration: l.millis("duration_ms"), Error: d.end.agent.Error,
	}
	t.summary = agentevents.TurnSummarized{Text: d.end.agent.Result, Usage: used}
	if len(d.guessed) == 0 {
		t.summary.CostUSD = added.cost
	}
	if d.count == 1 {
		d.untold = t
		return
	}
	d.tell()
	d.untold = t
	d.tell()
}

// tell records the turn that was not told.
func (d *Decoder) tell() {
	t := d.untold
	if d.untold = nil; t == nil {
		return
	}
	defer func(saved *line) { d.cur = saved }(d.cur)
	d.cur = t.line
	d.emit(d.main, &t.end, 0)
	if t.summary.Text != "" {
		d.emit(d.main, &t.summary, 0)
	}
}

// goesOn notes a line of the main agent inside a turn. acts means that a model wrote it, or that the user
// asks.
func (d *Decoder) goesOn(acts bool) {
	d.fresh = true
	if acts {
		d.tell()
	}
}

// finish ends the run.
func (d *Decoder) finish() {
	d.settle(nil)
	d.interrupt(d.main, d.callSeq, true) // after a result only background work is open
	for _, a := range d.unended() {      // sub-agents of agents that have ended
		d.endSubAgent(a, interrupted(noReturn), agentevents.MarkSynthetic)
	}
	for _, c := range openCalls(d.calls) { // calls of agents that have ended
		d.interruptCall(c)
	}
	if d.main.open && (d.end == nil || d.fresh) {
		d.unfinished()
		return
	}
	last := d.cur
	if d.main.open {
		d.outcome = *d.end
		d.cur = d.outcome.line
		d.closeMain(&d.outcome.agent, 0)
	}
	d.cur = last
	d.cur.at = d.outcome.line.at
	switch e := &d.outcome; {
	case e.stopped != "":
		d.emit(nil, &agentevents.RunCancelled{Reason: e.stopped}, 0)
	case e.agent.Error.OK:
		d.emit(nil, &agentevents.RunFailed{Error: e.agent.Error}, 0)
	default:
		d.emit(nil, &agentevents.RunCompleted{Outputs: e.outputs}, 0)
	}
}

// unfinished ends a run in the middle of a turn.
func (d *Decoder) unfinished() {
	end := interrupted("the stream ended without a result")
	if d.end != nil {
		stated := &d.end.agent
		end.NumTurns = stated.NumTurns
		if d.usedSince() {
			d.restate()
		} else {
			end.ModelUsage, end.Cumulative, end.TotalCostUSD = stated.ModelUsage, stated.Cumulative, stated.TotalCostUSD
			end.Usage = stated.Usage
		}
	}
	d.closeMain(&end, agentevents.MarkSynthetic)
	if d.stopped != "" {
		d.emit(nil, &agentevents.RunCancelled{Reason: d.stopped}, agentevents.MarkSynthetic)
		return
	}
	d.emit(nil, &agentevents.RunFailed{Error: end.Error}, agentevents.MarkSynthetic)
}

// usedSince reports whether messages have used tokens that the latest result does not include.
func (d *Decoder) usedSince() bool {
	for _, used := range [...]map[string]messageUsage{d.main.used, d.unstated} {
		for _, m := range used {
			if tokens(m.rest()) > 0 {
				return true
			}
		}
	}
	return false
}

// restate reports the tokens that the results state, in the place of the totals of an end: more
// was used since, and its cost is not known. Sub-agents report their own.
func (d *Decoder) restate() {
	t := &d.attempt
	models := d.counted.minus(t.before).models
	switch {
	case len(models) > 0:
		for model, below := range t.below {
			models[model] = join(models[model], below, minus)
		}
	case t.usage.OK:
		models = map[string]agentevents.Usage{d.main.model: t.usage.V}
	}
	for i, model := range slices.Sorted(maps.Keys(models)) {
		u := models[model]
		u.CostUSD = agentevents.Opt[float64]{}
		d.emit(d.main, &agentevents.UsageObserved{
			Model: model, Usage: u, Source: "claude", Cumulative: i == 0, // in the place of the summaries of turns
		}, 0)
	}
	if cost := d.end.agent.TotalCostUSD; cost.OK {
		d.warn("session_totals",
			"the stream ends within a turn: the cost that the results before it state is not all, and the cost is unknown",
			agentevents.JSON(`{"total_cost_usd":`+string(jsonwire.AppendFloat(nil, cost.V))+`}`))
	}
}
