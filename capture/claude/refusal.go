package claude

import (
	"cmp"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/transcript"
)

const (
	codeDenied    = "permission_denied"
	codeCancelled = "cancelled"
)

// statusOf returns the status of a failed result with a text.
func statusOf(l *line, c *call, text string) agentevents.ToolStatus {
	if c.denied {
		return agentevents.ToolStatusForbidden
	}
	var ignored faults
	for _, raw := range l.list("tool_result_meta") {
		meta := parseObject(raw, "", &ignored)
		if meta.str("id") != c.id {
			continue
		}
		decision := meta.object("permission_decision")
		means := cmp.Or(transcript.Decision(decision.str("decision")), transcript.Denial(meta.str("non_execution_kind")))
		if means != "" {
			return means
		}
	}
	return transcript.Refusal(text)
}

// classify gives a failed return the status that its call has.
func (d *Decoder) classify(c *call, p *agentevents.ToolReturned, status agentevents.ToolStatus) {
	p.Status = status
	switch status {
	case agentevents.ToolStatusForbidden:
		p.Error.V.Code = codeDenied
		d.refused.set(c.id, 1)
	case agentevents.ToolStatusCancelled:
		p.Error.V = agentevents.ErrorInfo{Code: codeCancelled, Message: "the user interrupted the call"}
		d.refused.set(c.id, 1)
	case agentevents.ToolStatusError:
		d.failed[c.id] = c
	}
}

// A doubt is a return that waits until it is known whether its call was refused or interrupted:
// the CLI has the same text for both. A refused call is in the permission_denials of the result,
// or its agent goes on; an interrupt ends the turn.
type doubt struct {
	line   *line
	finish func()
	p      *agentevents.ToolReturned
}

// settle decides the doubts about the calls of an agent that goes on, or with nil about all
// calls, at the end of the turn.
func (d *Decoder) settle(a *agent) {
	for _, c := range openCalls(d.calls) {
		switch {
		case c.doubt == nil || a != nil && c.agent != a:
		case a == nil && d.stopped != "":
			d.decide(c, agentevents.ToolStatusCancelled)
		default:
			d.decide(c, agentevents.ToolStatusForbidden)
		}
	}
}

// decide records the return of a call that was in doubt.
func (d *Decoder) decide(c *call, status agentevents.ToolStatus) {
	t := c.doubt
	c.doubt = nil
	defer func(saved *line) { d.cur = saved }(d.cur)
	d.cur = t.line
	d.classify(c, t.p, status)
	t.finish()
}
