package agentevents

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/roster"
)

// RuleToolCallOpen: a return names an open call of its agent, and a call id is not
// used again while its call is open; exempt are returns with oneEvent, and returns
// with status forbidden or rate_limited that have no call.
const RuleToolCallOpen Rule = "tool-call-open"

// RuleToolCausation: the causationId of a return is the id of the event that opened
// its call.
const RuleToolCausation Rule = "tool-causation"

func (m *machine) checkToolCalled(ev *Event, sub *subject) *RuleError {
	id := ev.Payload.(*ToolCalled).CallID
	if m.calls.Find(callKey{sub.key, id}) == nil {
		return nil
	}
	return m.refuse(ev, RuleToolCallOpen, named("call", id), "open",
		"a call id is not used again while its call is open; legal: another id, or agent.toolReturned first")
}

func (m *machine) toolCalled(ev *Event, sub *subject) {
	p := ev.Payload.(*ToolCalled)
	call := openCall{callKey: callKey{sub.key, p.CallID}, tool: p.ToolID, event: ev.ID, step: ev.Step.V, start: ev.Time}
	begun := earlyEnd{kind: KindToolCalled, agent: sub.key, id: p.CallID, span: ev.SpanID, at: ev.Time}
	if end, late := m.beginsLate(begun); late {
		m.calledLate(ev, sub, p, &end)
		return
	}
	// A second call with the id of an open one replaces it: a return names the
	// later call.
	earlier, again := m.takeCall(sub.agent, call.callKey)
	if a := sub.agent; a != nil {
		call.agent = a.AgentID
		a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
		if call.step >= a.Resume.first {
			a.calls++
		}
		a.endUnnamed()
	}
	if m.view != nil {
		if again {
			m.view.dropCall(earlier.shown)
		}
		within := m.inside(ev, sub)
		m.view.toolCalled(ev, sub, p, &call, within, m.maker(sub, within))
	}
	m.calls.Add(call.callKey, call)
	if p.ApprovalID != "" {
		m.useApproval(p.ApprovalID, call.call)
	}
}

// calledLate joins a call that has returned and its beginning.
func (m *machine) calledLate(ev *Event, sub *subject, p *ToolCalled, end *earlyEnd) {
	other := m.agents[end.agent]
	if other != nil && end.whole {
		other.Counted.ToolCalls = max(0, other.Counted.ToolCalls-1)
	}
	if a := sub.agent; a != nil {
		a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
		a.endUnnamed()
	}
	if m.view != nil {
		within := m.inside(ev, sub)
		if by := m.maker(sub, within); other != nil && by != nil && other != by { // who returned the call has not made it
			other.shown.countCall(end.how, -1)
			by.shown.countCall(end.how, 1)
		}
		m.view.calledLate(ev, sub, p, end, within)
	}
	if p.ApprovalID != "" {
		m.useApproval(p.ApprovalID, m.view.keep(p.CallID))
	}
}

func (m *machine) checkToolReturned(ev *Event, sub *subject) *RuleError {
	p := ev.Payload.(*ToolReturned)
	if p.OneEvent {
		return nil
	}
	call := m.calls.Find(callKey{sub.key, p.CallID})
	if call == nil {
		if p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited || m.Resume.cut {
			return nil
		}
		return m.refuse(ev, RuleToolCallOpen, named("call", p.CallID), "not open",
			named("agent", sub.key)+" has no open call with this id; legal: agent.toolCalled first, or oneEvent")
	}
	return m.checkCause(ev, RuleToolCausation, "call", p.CallID, call.event)
}

// checkCause checks that a return names the event that opened its call, if both carry ids.
func (m *machine) checkCause(ev *Event, rule Rule, what, id, opened string) *RuleError {
	if ev.CausationID == "" || opened == "" || ev.CausationID == opened {
		return nil
	}
	return m.refuse(ev, rule, named(what, id), "opened by event "+jsonwire.Brief(opened),
		"causationId is "+jsonwire.Brief(ev.CausationID)+"; legal: "+jsonwire.Brief(opened))
}

func (m *machine) toolReturned(ev *Event, sub *subject) {
	a, p := sub.agent, ev.Payload.(*ToolReturned)
	var call openCall
	open := false
	if p.OneEvent { // closes no open call
		if a != nil && p.wholeCall() {
			a.Counted.ToolCalls = plus(a.Counted.ToolCalls, 1)
			a.endUnnamed() // as a call of two events does
		}
	} else {
		call, open = m.takeCall(a, callKey{sub.key, p.CallID})
		if a != nil {
			m.forget(a, "tool_call", p.CallID)
		}
	}
	if a != nil {
		a.Resume.act = atToolResult
	}
	m.closeQuestionsAbout(callKey{sub.key, p.CallID}, KindToolReturned)
	m.closeQuestionsAbout(callKey{"", p.CallID}, KindToolReturned) // questions without an agent
	if len(m.approvals.byCall) > 0 && p.Status != ToolStatusInterrupted {
		for _, key := range [...]callKey{{sub.key, p.CallID}, {"", p.CallID}} {
			if id, ok := m.approvals.byCall[key]; ok {
				m.useApproval(id, m.view.keep(p.CallID))
			}
		}
	}
	counts := true
	if m.view != nil {
		within := ""
		if call.shown != nil {
			within = call.shown.Within
		}
		counts = m.view.toolReturned(ev, sub, p, call.shown, m.maker(sub, within))
	}
	refused := p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited
	if !open && counts && !refused && (!p.OneEvent || ev.SpanID != "") { // the end of a span has begun somewhere
		m.endedFirst(earlyEnd{
			kind: KindToolCalled, agent: sub.key, id: p.CallID, span: ev.SpanID, at: ev.Time,
			word: p.ToolID, how: p.Status.constant(), took: p.Duration, whole: p.wholeCall(),
		})
	}
}

// inside returns the agent in whose span, or in a step of which, the call or the step of an event
// begins, if that is another one than its own.
func (m *machine) inside(ev *Event, sub *subject) string {
	if m.view == nil || ev.ParentSpanID == "" {
		return ""
	}
	if a := m.bySpan[ev.ParentSpanID]; a != nil {
		if a == sub.agent {
			return ""
		}
		return a.AgentID
	}
	v := m.view
	open := func(i int) bool { return v.s.Steps[i].EndedAt.IsZero() }
	if i, ok := v.steps.LastOpen(stepKey{span: ev.ParentSpanID}, open); ok {
		return v.s.Steps[i].Within
	}
	return ""
}

// maker returns the agent that people count a call for: the one in whose span it is, else its own.
func (m *machine) maker(sub *subject, within string) *AgentState {
	if a := m.agents[within]; a != nil {
		return a
	}
	return sub.agent
}

// takeCall closes a call of an agent.
func (m *machine) takeCall(a *AgentState, key callKey) (call openCall, open bool) {
	if call, open = m.calls.Take(key); open && a != nil && call.step >= a.Resume.first {
		a.calls = max(0, a.calls-1)
	}
	return call, open
}

// An openCall is a tool call that waits for its return.
type openCall struct {
	callKey
	tool  string            // empty in a fold
	event string            // id of the event that opened it
	step  int               // its agent's
	start time.Time         // of the event that opened it; zero in a fold and after a resume
	shown *ToolCallSnapshot // nil in an emitter
}

type callKey struct{ agent, call string }

// RuleModelCallOpen: a model.returned names an open model call of its agent, and a
// model call id is not used again while its call is open; exempt are returns with
// oneEvent.
const RuleModelCallOpen Rule = "model-call-open"

// RuleModelCausation: the causationId of a model.returned is the id of the event that
// opened its call.
const RuleModelCausation Rule = "model-causation"

func (m *machine) checkModelCalled(ev *Event, sub *subject) *RuleError {
	id := ev.Payload.(*ModelCalled).ModelCallID
	if m.modelCalls.Find(callKey{sub.key, id}) == nil {
		return nil
	}
	return m.refuse(ev, RuleModelCallOpen, named("model call", id), "open",
		"a model call id is not used again while its call is open; legal: another id, or model.returned first")
}

// modelCalled notes an open model call. A second call with the id of an open one
// replaces it: a return names the later call.
func (m *machine) modelCalled(ev *Event, sub *subject) {
	p, v := ev.Payload.(*ModelCalled), m.view
	if end, late := m.beginsLate(earlyEnd{kind: KindModelCalled, agent: sub.key, id: p.ModelCallID, at: ev.Time}); late {
		if a := sub.agent; a != nil {
			a.endUnnamed()
			v.modelCalledLate(a, ev, &end)
		}
		return
	}
	c := ModelCallSnapshot{
		Sequence: ev.Sequence, ModelCallID: v.keepBriefly(p.ModelCallID), EventID: v.keepBriefly(ev.ID),
		Step: ev.Step, Provider: v.intern(p.Provider), Model: v.intern(p.Model),
		Operation: v.intern(p.Operation), Attempt: p.Attempt, RetryOf: v.keepBriefly(p.RetryOf), StartedAt: ev.Time,
	}
	if a := sub.agent; a != nil {
		c.AgentID = a.AgentID
		a.Resume.act = atThinking
		a.endUnnamed()
		if v != nil {
			a.shown.ModelCalls = plus(a.shown.ModelCalls, 1)
		}
	} else {
		c.AgentID = v.intern(sub.key)
	}
	v.begins()
	m.addModelCall(c)
}

// addModelCall adds an open model call. It replaces one of the same key.
func (m *machine) addModelCall(c ModelCallSnapshot) {
	key := callKey{c.AgentID, c.ModelCallID}
	if m.modelCalls == nil {
		m.modelCalls = &roster.Roster[callKey, ModelCallSnapshot]{}
	}
	m.modelCalls.Take(key)
	m.modelCalls.Add(key, c)
}

func (m *machine) checkModelReturned(ev *Event, sub *subject) *RuleError {
	p := ev.Payload.(*ModelReturned)
	if p.OneEvent {
		return nil
	}
	call := m.modelCalls.Find(callKey{sub.key, p.ModelCallID})
	if call == nil && m.Resume.cut {
		return nil
	}
	if call == nil {
		return m.refuse(ev, RuleModelCallOpen, named("model call", p.ModelCallID), "not open",
			named("agent", sub.key)+" has no open model call with this id; legal: model.called first, or oneEvent")
	}
	return m.checkCause(ev, RuleModelCausation, "model call", p.ModelCallID, call.EventID)
}

func (m *machine) modelReturned(ev *Event, sub *subject) {
	p := ev.Payload.(*ModelReturned)
	var call ModelCallSnapshot
	open := false
	if !p.OneEvent { // else it closes no open call
		call, open = m.modelCalls.Take(callKey{sub.key, p.ModelCallID})
	}
	counts := true
	if m.view != nil {
		var shown *ModelCallSnapshot
		if open {
			shown = &call
		}
		counts = m.view.modelReturned(ev, sub, p, shown)
	}
	if !open && counts && (!p.OneEvent || ev.SpanID != "") {
		m.endedFirst(earlyEnd{
			kind: KindModelCalled, agent: sub.key, id: p.ModelCallID,
			span: ev.SpanID, at: ev.Time, took: p.Duration,
		})
	}
}

// RuleDeltaIndex: the numbered deltas of a block have the indexes 0, 1, 2, …
const RuleDeltaIndex Rule = "delta-index"

// A piece has the fields that the three kinds of deltas share.
type piece struct {
	subject, id, text string
	index             Opt[int]
}

// begins reports whether the delta begins a block, whatever came before it.
func (p *piece) begins() bool { return p.id == "" && p.index.OK && p.index.V == 0 }

// pieceOf returns the piece of a delta, with the subject from the catalog.
func pieceOf(ev *Event, sub *subject) piece {
	switch p := ev.Payload.(type) {
	case *TextDelta:
		return piece{sub.kind.Subject, p.BlockID, p.Delta, p.Index}
	case *AgentReasoningDelta:
		return piece{sub.kind.Subject, p.BlockID, p.Delta, p.Index}
	case *ToolArgumentsDelta:
		return piece{sub.kind.Subject, p.CallID, p.Delta, p.Index}
	}
	return piece{}
}

func (m *machine) checkDelta(ev *Event, sub *subject) *RuleError {
	p := pieceOf(ev, sub)
	if !p.index.OK || m.atRest(sub.agent) {
		return nil
	}
	want := 0
	if sub.agent != nil {
		if b := sub.agent.block(p.subject, p.id); b != nil {
			if b.whole && p.id != "" {
				return nil // changes nothing
			}
			want = b.next
		} else if m.Resume.cut && !sub.agent.Started {
			return nil // the block may have begun before the log
		}
	} else if m.Resume.cut {
		return nil
	}
	if p.index.V == want || p.begins() {
		return nil
	}
	return m.refuse(ev, RuleDeltaIndex, named(p.subject+" block", p.id), "waiting for index "+itoa(want),
		"index "+itoa(p.index.V)+" is out of order; legal: "+itoa(want))
}

func (m *machine) delta(ev *Event, sub *subject) {
	a, p := sub.agent, pieceOf(ev, sub)
	if a == nil || m.atRest(a) {
		return
	}
	b := a.block(p.subject, p.id)
	switch {
	case b == nil:
		b = m.addBlock(a, p.subject, p.id)
		if m.view != nil && p.subject != "tool_call" {
			b.text = m.view.buffer()
		}
	case p.id == "" && b.whole || p.begins():
		*b = block{subject: p.subject, text: b.text[:0]} // a new block without an id
	}
	if b.whole {
		return
	}
	if p.index.OK {
		b.next = plus(p.index.V, 1)
	}
	b.size += utf8.RuneCountInString(p.text)
	if m.view != nil {
		m.view.delta(a, b, p.text)
	}
}

// wholeBlock replaces the deltas of a block by the whole block.
func (m *machine) wholeBlock(ev *Event, sub *subject) {
	a := sub.agent
	if a == nil || m.atRest(a) {
		return
	}
	id := ""
	switch p := ev.Payload.(type) {
	case *TextCompleted:
		id = p.BlockID
		a.Resume.act = a.afterText()
	case *AgentReasoned:
		id = p.BlockID
		a.Resume.act = atThinking
	}
	m.forget(a, sub.kind.Subject, id)
	if id != "" {
		m.addBlock(a, sub.kind.Subject, id).whole = true
	}
}

// maxBlocks is how many blocks an agent may have at a time; the oldest is
// forgotten first.
const maxBlocks = 64

// block returns a block of the agent, or nil.
func (a *AgentState) block(subject, id string) *block {
	blocks := a.Resume.blocks
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := &blocks[i]; b.id == id && b.subject == subject {
			return b
		}
	}
	return nil
}

func (m *machine) addBlock(a *AgentState, subject, id string) *block {
	r := &a.Resume
	if len(r.blocks) == maxBlocks {
		m.forget(a, r.blocks[0].subject, r.blocks[0].id)
	}
	r.blocks = append(r.blocks, block{subject: subject, id: m.view.keepBriefly(id)})
	return &r.blocks[len(r.blocks)-1]
}

// endUnnamed ends the text and reasoning blocks without an id: after another act
// of the agent the next delta begins a new block.
func (a *AgentState) endUnnamed() {
	for i := range a.Resume.blocks {
		if b := &a.Resume.blocks[i]; b.id == "" && b.subject != "tool_call" {
			b.whole = true
		}
	}
}

// endsBlock reports whether an event, which the machine has not applied yet, ends the given block
// of its agent: either the event is the block's end, or the machine forgets the block.
func (m *machine) endsBlock(ev *Event, sub *subject, subject, id string) bool {
	return saysEnd(ev, sub, subject, id) || m.makesRoom(ev, sub, subject, id)
}

// saysEnd reports whether an event ends the given block of its agent: no delta of the event
// or after it belongs to the block.
func saysEnd(ev *Event, sub *subject, subject, id string) bool {
	own := ""
	switch p := ev.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		return true
	case *NodeCompleted, *NodeFailed:
		return ev.AgentID == "" && ev.NodeRunID != "" // see nodeEnded
	case *AgentTransition:
		return p.To.Terminal() || id == "" && subject != "tool_call" // an agent at rest emits no more text
	case *ToolCalled, *ModelCalled, *TurnStarted, *TurnEnded:
		return id == "" && subject != "tool_call" // see endUnnamed
	case *ToolReturned:
		if p.OneEvent {
			return p.wholeCall() && id == "" && subject != "tool_call" // a call, too
		}
		return subject == "tool_call" && id == p.CallID
	case *TextCompleted:
		own = p.BlockID
	case *AgentReasoned:
		own = p.BlockID
	default:
		piece := pieceOf(ev, sub)
		return subject == piece.subject && id == piece.id && piece.begins()
	}
	return subject == sub.kind.Subject && id == own
}

// makesRoom reports whether the machine forgets the given block, the oldest one, for the new
// block of an event.
func (m *machine) makesRoom(ev *Event, sub *subject, subject, id string) bool {
	own := ""
	switch p := ev.Payload.(type) {
	case *TextCompleted:
		own = p.BlockID
	case *AgentReasoned:
		own = p.BlockID
	default:
		if sub.kind.Role != RoleDelta {
			return false
		}
		own = pieceOf(ev, sub).id
	}
	a := sub.agent
	return a != nil && len(a.Resume.blocks) == maxBlocks &&
		a.Resume.blocks[0].id == id && a.Resume.blocks[0].subject == subject &&
		!m.atRest(a) && a.block(sub.kind.Subject, own) == nil
}

func (m *machine) forget(a *AgentState, subject, id string) {
	blocks := a.Resume.blocks
	for i := range blocks {
		if blocks[i].id == id && blocks[i].subject == subject {
			m.view.release(blocks[i].text)
			a.Resume.blocks = slices.Delete(blocks, i, i+1)
			return
		}
	}
}

// blockSize returns the number of characters in the deltas of a reasoning block so
// far.
func (a *AgentState) blockSize(id string) int {
	if a == nil {
		return 0
	}
	if b := a.block("reasoning", id); b != nil {
		return b.size
	}
	return 0
}
