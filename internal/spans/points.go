package spans

import (
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
)

// point is the point of an event that neither begins nor ends a span.
func (m *Mapper) point(ev *agentevents.Event) *Span { return m.pointAt(m.scope(ev), ev) }

func (m *Mapper) pointAt(s *Span, ev *agentevents.Event) *Span {
	name, severity, attrs := m.describe(ev)
	if name != "" {
		m.note(s.working(), ev, name, severity, attrs...)
	}
	return s
}

// working is the span, or the first one around it that is open, else the span again: a point of
// an agent that has ended is still shown.
func (s *Span) working() *Span {
	for up := s; up != nil; up = up.Parent {
		if !up.ended {
			return up
		}
	}
	return s
}

// note adds a point to a span. A point before the root waits for it. attrs are changed.
func (m *Mapper) note(s *Span, ev *agentevents.Event, name string, severity Severity, attrs ...Attr) {
	p := &m.noting
	*p = Point{Name: name, Time: ev.Time, Severity: severity, Sequence: ev.Sequence, AgentID: m.known(ev),
		Attributes: attrs[:0]}
	for _, a := range attrs {
		if a.none() {
			continue
		}
		a.Text = cut(a.Text, maxText)
		if _, is := a.Value.(Content); is && severity == SeverityInfo {
			p.Severity = SeverityDebug
		}
		p.Attributes = append(p.Attributes, a)
	}
	if s == nil && m.root == nil && len(m.early) < maxEarly {
		m.early = append(m.early, m.kept(p))
		return
	}
	m.add(s, p)
}

// Found adds a point about a finding that the event has made begin or grow.
func (m *Mapper) Found(ev *agentevents.Event, kind, severity, tool string, count int, began bool) {
	m.note(m.scope(ev).working(), ev, "agentevents.finding", SeverityWarn, str("agentevents.finding.kind", kind),
		str("agentevents.finding.severity", severity),
		val("agentevents.finding.count", count), val("agentevents.finding.began", began),
		str("agentevents.finding.tool", word(tool)))
}

// said is a copy of a point's attributes, which is valid until the next point. Points that nobody
// keeps thus cost no allocation.
func (m *Mapper) said(attrs []Attr) []Attr {
	m.saying = append(m.saying[:0], attrs...)
	return m.saying
}

// kept is a point that outlives the next one. Many share an allocation.
func (m *Mapper) kept(p *Point) Point {
	if cap(m.store)-len(m.store) < len(p.Attributes) {
		m.store = make([]Attr, 0, max(64, len(p.Attributes)))
	}
	kept, n := *p, len(m.store)
	m.store = append(m.store, p.Attributes...)
	kept.Attributes = m.store[n:len(m.store):len(m.store)]
	return kept
}

// opt is the value of an optional one, or nil. Durations are in seconds.
func opt[T any](o agentevents.Opt[T]) any {
	if !o.OK {
		return nil
	}
	switch v := any(o.V).(type) {
	case int:
		return int64(v)
	case time.Duration:
		return v.Seconds()
	default:
		return v
	}
}

// describe returns the point that stands for an event, or no name if nothing does. It has
// the sizes of content, and the content itself only where that is wanted. Values of state,
// memory and names of people are never there.
func (m *Mapper) describe(ev *agentevents.Event) (name string, severity Severity, attrs []Attr) {
	const own = "agentevents."
	const text = AttrContent
	info := func(name string, attrs ...Attr) (string, Severity, []Attr) { return name, SeverityInfo, m.said(attrs) }
	warn := func(name string, attrs ...Attr) (string, Severity, []Attr) { return name, SeverityWarn, m.said(attrs) }
	switch p := ev.Payload.(type) {
	case *agentevents.SessionStarted:
		return info(own+"session.started", m.text(text, p.Goal))
	case *agentevents.SessionCompleted:
		return info(own+"session.completed", str(own+"session.status", word(p.Status)), m.json(text, p.Result))
	case *agentevents.RunStarted:
		return info(own + "run.started")
	case *agentevents.RunPaused:
		return info(own+"run.paused", m.text(text, p.Reason))
	case *agentevents.RunResumed:
		return info(own+"run.resumed", m.text(text, p.Message))

	case *agentevents.AgentTransition:
		return info(own+"agent.transition", str(own+"agent.from", string(p.From)), str(own+"agent.to", string(p.To)),
			val(AttrStepIndex, opt(ev.Step)), m.text(text, p.Reason))
	case *agentevents.AgentErrored:
		severity := SeverityError
		if p.Severity == agentevents.SeverityWarning {
			severity = SeverityWarn
		}
		return own + "error", severity,
			m.said([]Attr{str("exception.type", word(p.ErrorType)), m.text("exception.message", p.Message)})
	case *agentevents.ContextCompacted:
		return info(own+"context.compacted", val(own+"context.tokens_before", opt(p.TokensBefore)),
			val(own+"context.tokens_after", opt(p.TokensAfter)), str(own+"context.trigger", word(p.Trigger)))
	case *agentevents.TaskAssigned:
		return info(own+"task.assigned", str(own+"task.id", ev.TaskID), str(AttrAgent, word(p.AssignedAgent)),
			m.text(text, p.Goal))

	case *agentevents.AgentReasoned:
		var said Attr
		if m.o.Content&Reasoning != 0 {
			said = m.text(text, p.Reasoning)
		}
		return info(own+"reasoning", said, str(own+"reasoning.verbosity", string(p.Verbosity)),
			val(own+"reasoning.bytes", int64(len(p.Reasoning))), val(own+"reasoning.tokens", opt(p.TokenCount)))
	case *agentevents.TextCompleted:
		return info(own+"text", val(own+"text.bytes", int64(len(p.Text))), m.text(text, p.Text))
	case *agentevents.MessageCreated:
		return info(own+"message", str(own+"message.role", word(p.Message.Role)),
			val(own+"message.bytes", int64(len(p.Message.Content))), m.json(text, p.Message.Content))
	case *agentevents.AgentDecided:
		return info(own+"decision", str(own+"decision.kind", "agent"),
			val(own+"decision.confidence", opt(p.Confidence)), m.json(text, p.Decision))
	case *agentevents.OrchestratorDecided:
		return info(own+"decision", str(own+"decision.kind", "orchestrator"),
			val(own+"decision.iteration", opt(p.Iteration)), m.json(text, p.Decision))
	case *agentevents.IntentClassified:
		return info(own+"decision", str(own+"decision.kind", "intent"), str(own+"decision.intent", word(p.Intent)),
			val(own+"decision.confidence", opt(p.Confidence)))
	case *agentevents.PlanProposed:
		return info(own+"plan.proposed", val(own+"plan.steps", int64(len(p.Steps))), list(m, text, p.Steps))

	case *agentevents.AgentHandoff:
		return info(own+"handoff", str(own+"handoff.from", word(p.From.AgentID)), str(own+"handoff.to", word(p.To.AgentID)))
	case *agentevents.HandoffRequested:
		return info(own+"handoff.requested", str(own+"handoff.from", word(p.From.AgentID)),
			str(own+"handoff.to", word(p.To.AgentID)))
	case *agentevents.HandoffAccepted:
		return info(own+"handoff.accepted", str(own+"handoff.from", word(p.From.AgentID)),
			str(own+"handoff.to", word(p.To.AgentID)), val(AttrWait, m.took(ev, handoffKey(p.HandoffID, p.From, p.To))))

	case *agentevents.TurnSummarized:
		return info(own+"turn.summarized", val(own+"turn.tool_calls", int64(len(p.ToolCalls))), m.text(text, p.Text))
	case *agentevents.NodeStarted:
		return info(own+"node.started", str(own+"node.id", ev.NodeID))
	case *agentevents.NodeSkipped:
		return info(own+"node.skipped", str(own+"node.id", ev.NodeID), str(own+"node.reason", word(p.Reason)))
	case *agentevents.NodeSuspended:
		return info(own+"node.suspended", str(own+"node.id", ev.NodeID), str(own+"node.reason", word(p.Reason)))
	case *agentevents.EdgeFired:
		return info(own+"edge.fired", str(own+"edge.from", p.From), str(own+"edge.to", p.To))
	case *agentevents.EdgeSkipped:
		return info(own+"edge.skipped", str(own+"edge.from", p.From), str(own+"edge.to", p.To))
	case *agentevents.LoopIterated:
		return info(own+"loop.round", val(own+"loop.round", int64(p.Iteration)))
	case *agentevents.LoopRoundCompleted:
		return info(own+"loop.round", val(own+"loop.round", int64(p.Round)), val(own+"loop.score", opt(p.Score)))
	case *agentevents.StatePatched:
		return info(own+"state.patched", str(own+"state.op", string(p.Op)))

	case *agentevents.WorkflowCreated:
		return info(own+"plan.proposed", val(own+"plan.steps", int64(len(p.Phases))))
	case *agentevents.CheckpointSaved:
		return info(own+"checkpoint.saved", val(own+"checkpoint.bytes", p.StateBytes))
	case *agentevents.WorkflowFinalized:
		return info(own+"workflow.finalized", val(own+"workflow.agents", int64(p.TotalAgents)),
			val(own+"workflow.tokens", p.TotalTokens))

	case *agentevents.ApprovalRequested:
		return info(own+"approval.requested", str(own+"approval.id", p.ApprovalID),
			str(own+"approval.tool", label(p.ToolID)), val(own+"approval.timeout", opt(p.Timeout)), m.text(text, p.Action))
	case *agentevents.ClarificationRequested:
		return info(own+"clarification.requested", str(own+"clarification.id", p.InterruptID),
			val(own+"clarification.questions", int64(len(p.Questions))), list(m, text, p.Questions))
	case *agentevents.CommandReceived:
		return info(own+"command", str(own+"command.type", string(p.Command.Type)))

	case *agentevents.AuditChecked:
		severity := SeverityInfo
		if p.Result != agentevents.AuditPass {
			severity = SeverityWarn
		}
		return EventEvaluation, severity,
			m.said([]Attr{str(AttrEvaluation, p.CheckpointID), str(AttrScoreLabel, string(p.Result)),
				str(AttrVerdict, endword.Of(string(p.Result)).String()), m.json(AttrExplanation, p.Evidence)})
	case *agentevents.ClaimVerified:
		return info(EventEvaluation, str(AttrEvaluation, "claim"), str(AttrScoreLabel, word(p.Verdict)),
			str(AttrVerdict, endword.Of(p.Verdict).String()), str(own+"verifier", word(p.VerifierAgentID)), m.json(AttrExplanation, p.Evidence))
	case *agentevents.IssueFound:
		return EventEvaluation, SeverityWarn,
			m.said([]Attr{str(AttrEvaluation, "issue"), str(AttrScoreLabel, "fail"),
				str(own+"issue.severity", word(p.Severity)), m.text(AttrExplanation, p.Issue)})
	case *agentevents.CitationFound:
		label := ""
		if p.Verified.OK {
			label = map[bool]string{true: "pass", false: "fail"}[p.Verified.V]
		}
		return info(EventEvaluation, str(AttrEvaluation, "citation"), str(AttrScoreLabel, label),
			val(AttrScoreValue, opt(p.Confidence)), m.text(AttrExplanation, p.Claim))
	case *agentevents.EvidenceInsufficient:
		return warn(own+"refusal", m.text(text, p.Reason))

	case *agentevents.UsageObserved:
		return "", 0, nil // tokens are on the spans of model calls, agents and runs
	case *agentevents.BudgetExceeded:
		return warn(own+"budget.exceeded", str(own+"budget.kind", word(p.Budget)), val(own+"budget.limit", p.Limit),
			val(own+"budget.observed", p.Actual))
	case *agentevents.CapBreached:
		return warn(own+"budget.exceeded", str(own+"budget.kind", word(p.Cap)), val(own+"budget.limit", opt(p.Limit)),
			val(own+"budget.observed", opt(p.Observed)))
	case *agentevents.BlackboardItemCreated:
		return info(own+"state.written", str(own+"state.kind", word(p.ItemType)))
	case *agentevents.MemoryChanged:
		return info(own+"memory", str(own+"memory.change", string(p.Change)),
			str(own+"memory.section", word(p.Section)), val(own+"memory.items", opt(p.ItemCount)))
	}
	return info(own+"event", str(own+"event.type", string(ev.Kind())))
}
