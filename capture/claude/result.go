package claude

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// denial records a call that a result lists as not allowed, unless it is recorded as
// forbidden. A call that has returned with an error, as in old versions, returns once: a warning
// tells of the denial. If the stream has no call, the denial is an event of its own.
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
	switch c := d.calls[id]; {
	case c != nil && c.doubt != nil:
		d.decide(c, agentevents.ToolStatusForbidden)
	case c != nil:
		d.closeCall(c, p, 0)
	case d.failed[id] != nil:
		d.emit(d.failed[id].agent, &agentevents.AgentErrored{
			ErrorType: codeDenied, Message: "the call " + id + " of " + d.failed[id].tool + " failed because it was not allowed",
			Severity: agentevents.SeverityWarning,
		}, 0)
	default:
		p.CallID, p.OneEvent = id, true
		p.ToolID = cmp.Or(denial.str("tool_name"), "unknown")
		p.Arguments = agentevents.JSON(denial.raw("tool_input"))
		d.emit(d.main, p, 0)
	}
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
		Details: l.pick("subtype", "is_error", "terminal_reason",
			"stop_reason", "api_error_status", "startup_failure_reason", "errors"),
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

// Times returns the first timestamp of a saved stream, or the zero time, and how long its turns
// took: the sum of the durations that its results state, at most the highest [time.Duration]. It
// skips lines that it cannot read, and ends at the init line of another process; see
// [Options].Processes. The error is the reader's.
func Times(stream io.Reader) (first time.Time, took time.Duration, err error) {
	r := bufio.NewReader(stream)
	var d Decoder
	for {
		text, err := r.ReadString('\n')
		if strings.Contains(text, `"init"`) || strings.Contains(text, "conversation_reset") || strings.Contains(text, "duration_ms") || first.IsZero() && strings.Contains(text, "timestamp") {
			repaired, _ := jsonwire.Repair(text)
			if text, bad := jsonwire.Compact(repaired); bad == nil {
				var ignored faults
				l := parseObject(text, "", &ignored)
				read := &line{object: l, kind: l.str("type")}
				if (read.isInit() || read.kind == "conversation_reset") && d.begins(read) {
					return first, took, nil
				}
				d.know(read)
				d.started = d.started || read.isInit()
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
