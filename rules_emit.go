package agentevents

import (
	"strconv"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules that bind Emit and the methods of handles, and nobody else. A log may be a part of a
// run, and a capture or a bridge records the acts of others, so neither the fold nor Record asks
// for them. They are exempt for agent core.system, which is the runtime itself, for the first event
// after [Emitter.Resume], and for the returns of call handles.

// RuleAgentOpen: an agent acts only after its agent.started; exempt are returns with
// oneEvent, and agents that act in a node, whose start is the node's. Binds Emit and
// handles.
const RuleAgentOpen Rule = "agent-open"

// RuleToolCallStatus: an agent that has started calls a tool in status tool_call, or
// under the derived table while a question blocks it. Binds Emit and handles.
const RuleToolCallStatus Rule = "tool-call-status"

// RuleReturnTool: the return of an open call names the tool of the call. Binds Emit and
// handles.
const RuleReturnTool Rule = "return-tool"

// RuleEndedConverged: an agent that ends with outcome converged and no error has the
// status converged, and no open call. Binds Emit and handles.
const RuleEndedConverged Rule = "ended-converged"

// RuleRunPaused: run.resumed follows a pause, or the resumption of the emitter. Binds
// Emit and handles.
const RuleRunPaused Rule = "run-paused"

// RuleClarificationOpen: only an open clarification is resolved. Binds Emit and handles.
const RuleClarificationOpen Rule = "clarification-open"

// RuleTurnOpen: only an open turn ends. Binds Emit and handles.
const RuleTurnOpen Rule = "turn-open"

// RuleStepOpen: only an open step of a plan ends. Binds Emit and handles.
const RuleStepOpen Rule = "step-open"

// coreSystem is the agent id that OpenWOP reserves for the runtime itself.
const coreSystem = "core.system"

// resumes lists the exemptions from the rules that Emitter.Resume grants.
type resumes struct {
	first bool // the first event is to come
	run   bool // the first run.resumed is to come
}

// mayBind reports whether bind has something to look at. It has nothing in most events.
func (sub *subject) mayBind() bool {
	return sub.bound && (sub.kind.traits&binds != 0 || sub.kind.ByAgent && (sub.agent == nil || !sub.agent.Started))
}

// bind returns the rule of this file that an event breaks, or nil. The event keeps all
// other rules.
func (s *runState) bind(ev *Event, sub *subject) *RuleError {
	m, a := s.m, sub.agent
	if s.resumes.first || sub.key == coreSystem {
		return nil
	}
	open := true // whether the thing that the event needs is open
	var rule Rule
	var what, id, legal string
	switch p := ev.Payload.(type) {
	case *AgentStarted:
		return nil
	case *AgentEnded:
		if p.Outcome != OutcomeConverged || p.Error.OK {
			return nil
		}
		return m.bindEnd(ev, sub)
	case *ToolReturned:
		if p.OneEvent {
			return nil
		}
		if call := m.calls.Find(callKey{sub.key, p.CallID}); call != nil && call.tool != "" && call.tool != p.ToolID {
			return m.refuse(ev, RuleReturnTool, named("call", p.CallID), "of tool "+jsonwire.Brief(call.tool),
				"a return names the tool of its call; legal: "+jsonwire.Brief(call.tool))
		}
	case *ModelReturned:
		if p.OneEvent {
			return nil
		}
	case *MessageCreated:
		if p.Message.From != sub.key {
			return nil // another's message in the agent's conversation
		}
	case *RunResumed:
		if !m.paused && !s.resumes.run {
			return m.refuse(ev, RuleRunPaused, named("run", ev.RunID), "not paused",
				"only a paused run is resumed; legal: run.paused first")
		}
	case *ClarificationResolved:
		rule, what, id, legal = RuleClarificationOpen, "clarification", p.InterruptID, "clarification.requested"
		open = m.questions.open[questionKey{KindClarificationRequested, id}] != nil
	case *TurnEnded:
		rule, what, id, legal = RuleTurnOpen, "turn", turnID(p.Turn), "turn.started"
		open = m.openSpan(ev, KindTurnStarted, id) != nil
	case *StepEnded:
		rule, what, id, legal = RuleStepOpen, "step", p.StepID, "step.started"
		open = m.openSpan(ev, KindStepStarted, id) != nil
	}
	if !open {
		return m.refuse(ev, rule, named(what, id), "not open", "only an open "+what+" ends; legal: "+legal+" first")
	}
	if sub.key == "" || !sub.kind.ByAgent {
		return nil
	}
	if a == nil || !a.Started {
		if ev.NodeID != "" || ev.NodeRunID != "" {
			return nil
		}
		return m.notStarted(ev, sub)
	}
	if sub.kind.Kind == KindToolCalled && a.Status != StatusToolCall &&
		!(s.derives && a.Status == StatusBlockedOnClarification) {
		return m.refuse(ev, RuleToolCallStatus, named("agent", sub.key), a.Status.shown(),
			"a tool is called in status tool_call; legal: a transition to tool_call first, or "+
				string(LifecycleDerived)+" as EmitterOptions.Lifecycle")
	}
	return nil
}

func (m *machine) notStarted(ev *Event, sub *subject) *RuleError {
	return m.refuse(ev, RuleAgentOpen, named("agent", sub.key), "not started",
		"an agent acts only after its start; legal: agent.started first")
}

// bindEnd checks the end of an agent with the outcome converged.
func (m *machine) bindEnd(ev *Event, sub *subject) *RuleError {
	a := sub.agent
	if a == nil || !a.Started {
		return m.notStarted(ev, sub)
	}
	if a.Status != StatusConverged {
		return m.refuse(ev, RuleEndedConverged, named("agent", sub.key), a.Status.shown(),
			"outcome converged agrees with status converged; legal: a transition to converged first, or another outcome")
	}
	what, id := "call", ""
	if a.calls > 0 { // or who ends many agents would look at all calls for each
		for key, call := range m.calls.Each() {
			if key.agent == sub.key && call.step >= a.Resume.first {
				id = key.call
				break
			}
		}
	}
	if id == "" {
		what = "model call"
		for key := range m.modelCalls.Each() {
			if key.agent == sub.key {
				id = key.call
				break
			}
		}
	}
	if id == "" {
		return nil
	}
	return m.refuse(ev, RuleEndedConverged, named(what, id), "open",
		"outcome converged leaves no call open; legal: its return first, or another outcome")
}

// An openSpan is a turn, or a step of a plan, that has not ended. Only an emitter keeps
// them: a fold has them in its snapshot.
type openSpan struct {
	agent, span, id string
	ended           bool // it is still in a list, but not at the end of it
}

// A spanKey is the key of the turns or steps of an agent, of all or of those with an id,
// or of those that started in a span.
type spanKey struct {
	kind            Kind // that opens them
	agent, id, span string
}

func turnID(number Opt[int]) string {
	if !number.OK {
		return ""
	}
	return strconv.Itoa(number.V)
}

func (m *machine) addSpan(kind Kind, s openSpan) {
	for _, key := range s.keys(kind) {
		if key != (spanKey{}) {
			put(&m.spans, key, append(m.spans[key], &s))
		}
	}
}

// keys returns the keys of the lists that s is in.
func (s *openSpan) keys(kind Kind) (keys [3]spanKey) {
	keys[0] = spanKey{kind: kind, agent: s.agent}
	if s.id != "" {
		keys[1] = spanKey{kind: kind, agent: s.agent, id: s.id}
	}
	if s.span != "" {
		keys[2] = spanKey{kind: kind, span: s.span}
	}
	return keys
}

// lastSpan returns the last open turn or step of a list, or nil.
func (m *machine) lastSpan(key spanKey) *openSpan {
	list := m.spans[key]
	n := len(list)
	for n > 0 && list[n-1].ended {
		n--
	}
	switch {
	case n == 0 && list != nil:
		delete(m.spans, key)
	case n < len(list):
		clear(list[n:])
		m.spans[key] = list[:n]
	}
	if n == 0 {
		return nil
	}
	return list[n-1]
}

// openSpan returns the turn or step that an end closes, or nil: the last one of the
// event's span if it may be meant, else the last one of the agent with the id.
func (m *machine) openSpan(ev *Event, kind Kind, id string) *openSpan {
	if ev.SpanID != "" {
		s := m.lastSpan(spanKey{kind: kind, span: ev.SpanID})
		if s != nil && sameOrUnsaid(s.agent, ev.AgentID) && sameOrUnsaid(s.id, id) {
			return s
		}
	}
	return m.lastSpan(spanKey{kind: kind, agent: ev.AgentID, id: id})
}

// spanStarted and spanEnded are of turns and steps.
func (m *machine) spanStarted(ev *Event, _ *subject) {
	if m.view != nil {
		return
	}
	id := ""
	switch p := ev.Payload.(type) {
	case *TurnStarted:
		id = turnID(p.Turn)
	case *StepStarted:
		id = p.StepID
	}
	m.addSpan(ev.Kind(), openSpan{agent: ev.AgentID, span: ev.SpanID, id: id})
}

func (m *machine) spanEnded(ev *Event, _ *subject) {
	if m.view != nil {
		return
	}
	kind, id := KindStepStarted, ""
	switch p := ev.Payload.(type) {
	case *TurnEnded:
		kind, id = KindTurnStarted, turnID(p.Turn)
	case *StepEnded:
		id = p.StepID
	}
	s := m.openSpan(ev, kind, id)
	if s == nil {
		return
	}
	s.ended = true
	for _, key := range s.keys(kind) {
		m.lastSpan(key) // which forgets it
	}
}
