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
		o.add(openThing{false, ev.RunID, ev.SpanID, p.CallID, p.ToolID}, long)
	case *agentevents.ApprovalRequested:
		o.add(openThing{true, ev.RunID, ev.SpanID, p.ApprovalID, ""}, long)
	case *agentevents.ToolReturned:
		if !p.OneEvent {
			o.remove(ev.RunID, p.CallID, false)
		}
	case *agentevents.ApprovalGranted:
		o.remove(ev.RunID, p.ApprovalID, true)
	}
}

func (o *openThings) add(t openThing, long bool) {
	if long {
		t.run, t.span, t.id, t.tool = strings.Clone(t.run), strings.Clone(t.span), strings.Clone(t.id), strings.Clone(t.tool)
	}
	if len(o.list) == maxOpen {
		o.list = append(o.list[:0], o.list[maxOpen/2:]...)
	}
	o.list = append(o.list, t)
}

func (o *openThings) remove(run, id string, approval bool) {
	if i := o.find(run, id, approval); i >= 0 {
		o.list = slices.Delete(o.list, i, i+1)
	}
}

// find returns the index of the latest entry with that id, or -1.
func (o *openThings) find(run, id string, approval bool) int {
	for i := len(o.list) - 1; i >= 0; i-- {
		if t := &o.list[i]; t.id == id && t.approval == approval && t.run == run {
			return i
		}
	}
	return -1
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
