package multiagent

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
)

// openThings are the calls and the approval requests that wait for an answer, the
// latest last. An answer may not name what it answers.
type openThings struct{ list []openThing }

type openThing struct {
	approval            bool
	run, span, id, tool string
}

// maxOpen bounds the list. The oldest entries are forgotten first.
const maxOpen = 256

// note records what an event opens and closes. With long it copies texts, which
// otherwise keep a long line alive.
func (o *openThings) note(ev *agentevents.Event, long bool) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		o.add(false, ev, p.CallID, p.ToolID, long)
	case *agentevents.ApprovalRequested:
		o.add(true, ev, p.ApprovalID, "", long)
	case *agentevents.ToolReturned:
		if !p.OneEvent {
			o.remove(false, ev.RunID, p.CallID)
		}
	case *agentevents.ApprovalGranted:
		o.remove(true, ev.RunID, p.ApprovalID)
	}
}

func (o *openThings) add(approval bool, ev *agentevents.Event, id, tool string, long bool) {
	if len(o.list) == maxOpen {
		o.list = append(o.list[:0], o.list[maxOpen/2:]...)
	}
	n := len(o.list)
	o.list = slices.Grow(o.list, 1)[:n+1]
	t := &o.list[n]
	t.approval, t.run, t.span, t.id, t.tool = approval, ev.RunID, ev.SpanID, id, tool
	if long {
		t.run, t.span, t.id, t.tool = strings.Clone(t.run), strings.Clone(t.span), strings.Clone(t.id), strings.Clone(t.tool)
	}
}

func (o *openThings) remove(approval bool, run, id string) {
	for i := len(o.list) - 1; i >= 0; i-- {
		if t := &o.list[i]; t.id == id && t.approval == approval && t.run == run {
			o.list = append(o.list[:i], o.list[i+1:]...)
			return
		}
	}
}

// latest returns the latest open entry of the event's span, and of the tool unless
// that is empty. It returns nil if there is none.
func (o *openThings) latest(ev *agentevents.Event, approval bool, tool string) *openThing {
	for i := len(o.list) - 1; i >= 0 && ev.SpanID != ""; i-- {
		if t := &o.list[i]; t.approval == approval && t.span == ev.SpanID && t.run == ev.RunID && (tool == "" || t.tool == tool) {
			return t
		}
	}
	return nil
}

// tool returns the tool of an open call, or "".
func (o *openThings) tool(run, call string) string {
	for i := len(o.list) - 1; i >= 0; i-- {
		if t := &o.list[i]; t.id == call && !t.approval && t.run == run {
			return t.tool
		}
	}
	return ""
}
