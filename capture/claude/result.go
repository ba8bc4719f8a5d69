package claude

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A turnResult is what the latest result line says about the run.
type turnResult struct {
	at      time.Time
	stopped string                                 // what ended the turn from outside, or ""
	err     agentevents.Opt[agentevents.ErrorInfo] // absent if the run is complete
	outputs agentevents.JSON
}

// result processes the line that ends a turn.
func (d *Decoder) result(l *line) {
	a := d.main
	for _, denial := range l.objects("permission_denials") {
		d.denial(&denial)
	}
	clear(d.failed)
	d.interrupt(a, false)

	failure := resultError(l)
	end := agentevents.AgentEnded{
		Outcome: outcome(l, failure.OK), Error: failure, StructuredOutput: agentevents.JSON(l.raw("structured_output")),
		Duration: l.millis("duration_ms"),
	}
	if n := l.count("num_turns"); n.OK {
		end.NumTurns = agentevents.Some(int(n.V))
	}
	if !end.Error.OK {
		end.Result = l.str("result")
	}
	if l.raw("usage") != "" {
		u := l.object.object("usage")
		end.Usage = agentevents.Some(usage(&u))
	}
	end.ModelUsage, end.TotalCostUSD = d.account(l, end.Usage.V)
	end.Cumulative = len(end.ModelUsage) > 0
	if e := failure.V; failure.OK {
		d.emit(a, &agentevents.AgentErrored{ErrorType: e.Code, Message: e.Message, Details: e.Details}, 0)
	}
	if reason := l.str("terminal_reason"); strings.HasPrefix(reason, "aborted") {
		d.stopped = cmp.Or(d.stopped, reason)
	}
	d.outcome = turnResult{at: l.at, stopped: d.stopped, err: end.Error, outputs: end.StructuredOutput}
	d.stopped = ""
	if d.outcome.outputs == "" && l.raw("result") != "" {
		d.outcome.outputs = agentevents.JSONString(end.Result)
	}
	d.close(a, &end, 0)
}

// denial records a call that a result lists as not allowed, unless it is recorded as
// forbidden. The CLI writes a failed result for most of them, which says so only in its
// text: a text that [denialText] does not know was recorded as an error. Then, and if
// the stream has no call, the denial is an event of its own, without a call.
func (d *Decoder) denial(denial *object) {
	id := denial.str("tool_use_id")
	if id == "" {
		denial.faults.add(denial.pointer("tool_use_id"), `member "tool_use_id" is required`)
		return
	}
	if d.refused.get(id) != 0 {
		return
	}
	d.refused.set(id, 1)
	p := &agentevents.ToolReturned{
		Status: agentevents.ToolStatusForbidden,
		Error:  agentevents.Some(agentevents.ErrorInfo{Code: codeDenied, Message: "the call was not allowed"}),
	}
	if c := d.calls[id]; c != nil {
		d.closeCall(c, p, 0)
		return
	}
	agent := d.main
	p.CallID, p.OneEvent = id, true
	p.ToolID = cmp.Or(denial.str("tool_name"), "unknown")
	if c := d.failed[id]; c != nil {
		agent, p.ToolID = c.agent, c.tool
	}
	p.Arguments = agentevents.JSON(denial.raw("tool_input"))
	d.emit(agent, p, 0)
}

const codeDenied = "permission_denied"

// denialText reports whether the text of a failed result is one of those by which the
// CLI tells the model that a call was not allowed.
func denialText(text string) bool {
	for _, begin := range []string{
		"Claude requested permissions to ", "Permission to use ", "The user doesn't want to proceed with this tool use",
	} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// resultError returns the error of a result, if it states one.
func resultError(l *line) agentevents.Opt[agentevents.ErrorInfo] {
	subtype := l.str("subtype")
	if !failed(l, subtype) {
		return agentevents.Opt[agentevents.ErrorInfo]{}
	}
	code := subtype
	if subtype == "success" || subtype == "" {
		code = cmp.Or(l.str("terminal_reason"), "api_error")
		if code == "completed" {
			code = "api_error"
		}
	}
	message := strings.Join(l.strings("errors"), "\n")
	if message == "" {
		message = l.str("result")
	}
	return agentevents.Some(agentevents.ErrorInfo{
		Code: code, Message: cmp.Or(message, l.str("terminal_reason"), code),
		Details: l.pick("subtype", "is_error", "terminal_reason", "stop_reason", "api_error_status", "startup_failure_reason", "errors"),
	})
}

// failed reports whether a result states a failure. The subtype decides with is_error, and
// without a subtype any member that only failures have.
func failed(l *line, subtype string) bool {
	if subtype != "" || l.flag("is_error") {
		return subtype != "success" || l.flag("is_error")
	}
	reason := l.str("terminal_reason")
	return len(l.strings("errors")) > 0 || l.has("api_error_status") || l.has("startup_failure_reason") ||
		reason != "" && reason != "completed" && !escaped(reason)
}

// escaped reports whether a terminal_reason is one of a turn that something else stopped, as
// it was meant to.
func escaped(reason string) bool {
	return reason == "hook_stopped" || reason == "stop_hook_prevented" || reason == "tool_deferred"
}

// The subtypes of a result that name the limit at which the turn ended.
const (
	subtypeMaxTurns            = "error_max_turns"
	subtypeMaxBudget           = "error_max_budget_usd"
	subtypeMaxStructuredOutput = "error_max_structured_output_retries"
)

// outcome returns how a turn ended, from the most specific member of the line.
func outcome(l *line, failed bool) agentevents.AgentOutcome {
	reason, subtype := l.str("terminal_reason"), l.str("subtype")
	switch {
	case strings.HasPrefix(reason, "aborted"):
		return agentevents.OutcomeAborted
	case escaped(reason), l.str("stop_reason") == "refusal":
		return agentevents.OutcomeEscaped
	case reason == "max_turns", reason == "budget_exhausted",
		subtype == subtypeMaxTurns, subtype == subtypeMaxBudget, subtype == subtypeMaxStructuredOutput:
		return agentevents.OutcomePartial
	case failed:
		return agentevents.OutcomeAborted
	}
	return agentevents.OutcomeConverged
}

// spending is a running total.
type spending struct {
	models map[string]agentevents.Usage
	cost   agentevents.Opt[float64]
}

// account returns the running totals of a result. The line's totals begin again after a
// reset of the session, and if another process was appended to the stream: then account
// adds what was spent before. Without totals per model it returns the cost of this turn
// alone, because a fold then adds up the costs of the turns. own is what the turn used.
func (d *Decoder) account(l *line, own agentevents.Usage) (map[string]agentevents.Usage, agentevents.Opt[float64]) {
	now := spending{cost: l.number("total_cost_usd")}
	perModel := l.object.object("modelUsage")
	for _, m := range perModel.members {
		if m.raw[0] != '{' {
			perModel.wrong(m.name, m.raw, "an object")
			continue
		}
		o := parseObject(m.raw, perModel.pointer(m.name), perModel.faults)
		if now.models == nil {
			now.models = map[string]agentevents.Usage{}
		}
		now.models[strings.Clone(m.name)] = agentevents.Usage{
			InputTokens:              o.count("inputTokens").V,
			OutputTokens:             o.count("outputTokens").V,
			CacheCreationInputTokens: o.count("cacheCreationInputTokens"),
			CacheReadInputTokens:     o.count("cacheReadInputTokens"),
			CostUSD:                  o.number("costUSD"),
		}
	}
	if d.anew && now.below(d.spent) || d.moved && now.lacks(d.spent, own) {
		d.carried = d.carried.plus(d.spent)
		d.spent = spending{}
	}
	d.anew, d.moved = false, false
	before := d.spent
	if now.cost.OK {
		d.spent.cost = now.cost
	}
	if len(now.models) == 0 {
		cost := now.cost
		if cost.OK {
			cost.V = max(0, cost.V-before.cost.V)
		}
		return nil, cost
	}
	d.spent.models = now.models
	all := d.carried.plus(now)
	return all.models, all.cost
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
			now.CacheCreationInputTokens.V < before.CacheCreationInputTokens.V || now.CacheReadInputTokens.V < before.CacheReadInputTokens.V) {
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

// finish ends the run.
func (d *Decoder) finish() {
	d.interrupt(d.main, true)       // after a result only background work is open
	for _, a := range d.unended() { // sub-agents of agents that have ended
		d.endSubAgent(a, interrupted(noReturn), agentevents.MarkSynthetic)
	}
	for _, c := range openCalls(d.calls) { // calls of agents that have ended
		d.interruptCall(c)
	}
	if d.main.open {
		end := interrupted("the stream ended without a result")
		d.close(d.main, &end, agentevents.MarkSynthetic)
		if d.stopped != "" {
			d.emit(nil, &agentevents.RunCancelled{Reason: d.stopped}, agentevents.MarkSynthetic)
			return
		}
		d.emit(nil, &agentevents.RunFailed{Error: end.Error}, agentevents.MarkSynthetic)
		return
	}
	d.cur.at = d.outcome.at
	switch {
	case d.outcome.stopped != "":
		d.emit(nil, &agentevents.RunCancelled{Reason: d.outcome.stopped}, 0)
	case d.outcome.err.OK:
		d.emit(nil, &agentevents.RunFailed{Error: d.outcome.err}, 0)
	default:
		d.emit(nil, &agentevents.RunCompleted{Outputs: d.outcome.outputs}, 0)
	}
}

// Times returns the first timestamp of a saved stream, or the zero time, and how long its
// turns took: the sum of the durations that its results state, at most the highest
// [time.Duration]. It skips what it cannot read. The error is that of the reader.
func Times(stream io.Reader) (first time.Time, took time.Duration, err error) {
	r := bufio.NewReader(stream)
	for {
		text, err := r.ReadString('\n')
		if strings.Contains(text, "duration_ms") || first.IsZero() && strings.Contains(text, "timestamp") {
			repaired, _ := jsonwire.Repair(text)
			if text, bad := jsonwire.Compact(repaired); bad == nil {
				var ignored faults
				l := parseObject(text, "", &ignored)
				if l.str("type") == "result" {
					took += min(l.millis("duration_ms").V, math.MaxInt64-took)
				}
				if at, ok := timestamp(&l); ok && first.IsZero() {
					first = at
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return first, took, nil
		} else if err != nil {
			return first, took, err
		}
	}
}
