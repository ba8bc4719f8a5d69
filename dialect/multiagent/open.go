package multiagent

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// openThings are the calls, the approval requests and the handoffs that wait for an answer, the
// latest last. They let the decoder find the subject of an answer that does not name it.
type openThings struct {
	list    []openThing
	spawned engine.Recent[agentSpan, string] // spans of agents that have not ended, with the ids of their starts
	working engine.Recent[agentSpan, string] // the same the other way round: the span is the agent's id
	twins   []openTwin                       // of these agents, the oldest first
}

// An openTwin is an agent that is known by its span, because another one had its id when it started.
type openTwin struct{ run, id, span string }

type openThing struct {
	what          question
	run, span, id string
	agent         string // who calls or asks
	other         string // the tool, or who shall take over
}

// A question is a sort of open thing.
type question uint8

const (
	aCall question = iota
	anApproval
	aHandoff
)

type agentSpan struct{ run, span string }

// note records the things that an event opens and closes. With long it copies texts, which
// otherwise keep a long line alive.
func (o *openThings) note(ev *agentevents.Event, long bool) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		o.add(openThing{aCall, ev.RunID, ev.SpanID, p.CallID, ev.AgentID, p.ToolID}, long)
	case *agentevents.ApprovalRequested:
		o.add(openThing{anApproval, ev.RunID, ev.SpanID, p.ApprovalID, ev.AgentID, ""}, long)
	case *agentevents.HandoffRequested:
		o.add(openThing{aHandoff, ev.RunID, ev.SpanID, p.HandoffID, p.From.AgentID, p.To.AgentID}, long)
	case *agentevents.ToolReturned:
		o.remove(o.find(aCall, ev.RunID, p.CallID, ev.AgentID))
	case *agentevents.ApprovalGranted:
		o.remove(o.find(anApproval, ev.RunID, p.ApprovalID, ""))
	case *agentevents.ApprovalRejected:
		o.remove(o.find(anApproval, ev.RunID, p.ApprovalID, ""))
	case *agentevents.HandoffAccepted:
		o.remove(o.handoff(ev))
	case *agentevents.AgentStarted:
		run, span, agent := strings.Clone(ev.RunID), strings.Clone(ev.SpanID), strings.Clone(ev.AgentID)
		o.spawned.Set(agentSpan{run, span}, agent)
		if agent != "" && span != "" {
			o.working.Set(agentSpan{run, agent}, span)
		}
		if id := p.Agent.V.AgentID; agent == "" && span != "" && id != "" {
			o.twins = engine.Limited(o.twins, openTwin{run, strings.Clone(id), span})
		}
	case *agentevents.AgentEnded:
		if o.working.Of(agentSpan{ev.RunID, ev.AgentID}) == ev.SpanID ||
			o.spawned.Of(agentSpan{ev.RunID, ev.SpanID}) == "" && !o.hasSpan(ev) {
			o.working.Delete(agentSpan{ev.RunID, ev.AgentID}) // the end may not have the span of the start
		}
		o.spawned.Delete(agentSpan{ev.RunID, ev.SpanID})
		if len(o.twins) > 0 {
			o.twins = slices.DeleteFunc(o.twins, func(t openTwin) bool {
				return t.run == ev.RunID &&
					(t.span == ev.AgentID || t.span == ev.SpanID && (ev.AgentID == "" || ev.AgentID == t.id))
			})
		}
	}
}

// ofTwin returns the span that identifies the ending agent, or "". It is the twin of the id in
// whose span the end stands. An end that names no span of an agent ends the oldest twin, if the
// first agent with the id has ended.
func (o *openThings) ofTwin(ev *agentevents.Event, id string) string {
	if len(o.twins) == 0 || ev.Kind() != agentevents.KindAgentEnded || o.hasSpan(ev) {
		return ""
	}
	_, around := o.spawned.Get(agentSpan{ev.RunID, ev.ParentSpanID})
	around = around && ev.ParentSpanID != ""
	_, first := o.working.Get(agentSpan{ev.RunID, id})
	for _, t := range o.twins {
		if t.run == ev.RunID && t.id == id && (around && t.span == ev.ParentSpanID || !around && !first) {
			return t.span
		}
	}
	return ""
}

// twin reports whether an agent that starts has the id of one that is at work in another span.
func (o *openThings) twin(ev *agentevents.Event, agent string) bool {
	span, ok := o.working.Get(agentSpan{ev.RunID, agent})
	_, again := o.spawned.Get(agentSpan{ev.RunID, ev.SpanID})
	return ok && !again && ev.SpanID != "" && span != ev.SpanID
}

func (o *openThings) add(t openThing, long bool) {
	if long {
		for _, text := range [...]*string{&t.run, &t.span, &t.id, &t.agent, &t.other} {
			*text = strings.Clone(*text)
		}
	}
	o.list = engine.Limited(o.list, t)
}

func (o *openThings) remove(t *openThing) {
	if t != nil {
		*t = openThing{}
		o.list = slices.DeleteFunc(o.list, func(t openThing) bool { return t == openThing{} })
	}
}

// last returns the latest entry for which is is true, or nil.
func (o *openThings) last(is func(t *openThing) bool) *openThing {
	for i := len(o.list) - 1; i >= 0; i-- {
		if is(&o.list[i]) {
			return &o.list[i]
		}
	}
	return nil
}

// find returns the latest entry with that id, if there is one of that agent, or nil.
func (o *openThings) find(what question, run, id, agent string) *openThing {
	is := func(t *openThing) bool { return t.id == id && t.what == what && t.run == run }
	if own := o.last(func(t *openThing) bool { return t.agent == agent && is(t) }); own != nil {
		return own
	}
	return o.last(is)
}

// call returns the latest open call of the event's span, and of the tool unless that is
// empty, or nil.
func (o *openThings) call(ev *agentevents.Event, tool string) *openThing {
	if ev.SpanID == "" {
		return nil
	}
	return o.last(func(t *openThing) bool {
		return t.what == aCall && t.span == ev.SpanID && t.run == ev.RunID && (tool == "" || t.other == tool)
	})
}

// approval returns the approval request that an answer without an id is for: the latest
// one of its span, or of the span around it, or else the only one of the run.
func (o *openThings) approval(ev *agentevents.Event) *openThing {
	for _, span := range [...]string{ev.SpanID, ev.ParentSpanID} {
		if span == "" {
			continue
		}
		t := o.last(func(t *openThing) bool { return t.what == anApproval && t.run == ev.RunID && t.span == span })
		if t != nil {
			return t
		}
	}
	var only *openThing
	for i := range o.list {
		if t := &o.list[i]; t.what == anApproval && t.run == ev.RunID {
			if only != nil {
				return nil
			}
			only = t
		}
	}
	return only
}

// handoff returns the open handoff that an event accepts, or nil. It is the latest one that the
// fields of the event allow, preferably of its span.
func (o *openThings) handoff(ev *agentevents.Event) *openThing {
	p := ev.Payload.(*agentevents.HandoffAccepted)
	to := cmp.Or(p.To.AgentID, ev.AgentID)
	same := func(said, is string) bool { return said == "" || said == is }
	fits := func(t *openThing) bool {
		return t.what == aHandoff && t.run == ev.RunID && same(p.HandoffID, t.id) && same(p.From.AgentID, t.agent) &&
			t.other == to
	}
	if own := o.last(func(t *openThing) bool { return t.span == ev.SpanID && t.span != "" && fits(t) }); own != nil {
		return own
	}
	return o.last(fits)
}

// caller returns the agent whose call a return closes, if the call is open. agent is who
// returns it.
func (o *openThings) caller(ev *agentevents.Event, p *agentevents.ToolReturned, agent string) (caller string, ok bool) {
	t := o.find(aCall, ev.RunID, p.CallID, agent)
	if t == nil {
		return "", false
	}
	return t.agent, true
}

// hasSpan reports whether the span of an agent's start or end stands for the agent, because it is
// the span of the start.
func (o *openThings) hasSpan(ev *agentevents.Event) bool {
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted:
		return ev.SpanID != ""
	case *agentevents.AgentEnded:
		_, spawned := o.spawned.Get(agentSpan{ev.RunID, ev.SpanID})
		return spawned && ev.SpanID != ""
	}
	return false
}
