package spans

import (
	"github.com/agentevents/agentevents"
)

// point is the point of an event that is no boundary of a span.
func (m *Mapper) point(ev *agentevents.Event) *Span { return m.pointAt(m.scope(ev), ev) }

func (m *Mapper) pointAt(s *Span, ev *agentevents.Event) *Span {
	name, severity, attrs := m.describe(ev)
	if name != "" {
		m.note(s, ev, name, severity, attrs...)
	}
	return s
}

// note adds a point to a span. What comes before the root waits for it.
func (m *Mapper) note(s *Span, ev *agentevents.Event, name string, severity Severity, attrs ...Attr) {
	p := Point{Name: name, Time: ev.Time, Severity: severity, Sequence: ev.Sequence, AgentID: m.known(ev), Attributes: attrs[:0]}
	for _, a := range attrs {
		switch v := a.Value.(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
			if len(v) > maxText {
				a.Value = cut(v, maxText)
			}
		case Content:
			if severity == SeverityInfo {
				p.Severity = SeverityDebug
			}
		}
		p.Attributes = append(p.Attributes, a)
	}
	if s == nil && m.root == nil && len(m.early) < maxEarly {
		m.early = append(m.early, p)
		return
	}
	m.add(s, &p)
}

// opt is the value of an optional one, or nil.
func opt[T any](o agentevents.Opt[T]) any {
	if !o.OK {
		return nil
	}
	switch v := any(o.V).(type) {
	case int:
		return int64(v)
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
	info := func(name string, attrs ...Attr) (string, Severity, []Attr) { return name, SeverityInfo, attrs }
	warn := func(name string, attrs ...Attr) (string, Severity, []Attr) { return name, SeverityWarn, attrs }
	switch p := ev.Payload.(type) {
	case *agentevents.SessionStarted:
		return info(own+"session.started", m.text(text, p.Goal))
	case *agentevents.SessionCompleted:
		return info(own+"session.completed", Attr{own + "session.status", word(p.Status)}, m.json(text, p.Result))
	case *agentevents.RunStarted:
		return info(own + "run.started")
	case *agentevents.RunPaused:
		return info(own+"run.paused", m.text(text, p.Reason))
	case *agentevents.RunResumed:
		return info(own+"run.resumed", m.text(text, p.Message))

	case *agentevents.AgentTransition:
		return info(own+"agent.transition", Attr{own + "agent.from", string(p.From)}, Attr{own + "agent.to", string(p.To)}, Attr{AttrStepIndex, opt(ev.Step)}, m.text(text, p.Reason))
	case *agentevents.AgentErrored:
		severity := SeverityError
		if p.Severity == agentevents.SeverityWarning {
			severity = SeverityWarn
		}
		return own + "error", severity, []Attr{{"exception.type", word(p.ErrorType)}, m.text("exception.message", p.Message)}
	case *agentevents.ContextCompacted:
		return info(own+"context.compacted", Attr{own + "context.tokens_before", opt(p.TokensBefore)}, Attr{own + "context.tokens_after", opt(p.TokensAfter)}, Attr{own + "context.trigger", word(p.Trigger)})
	case *agentevents.TaskAssigned:
		return info(own+"task.assigned", Attr{own + "task.id", ev.TaskID}, Attr{AttrAgent, word(p.AssignedAgent)}, m.text(text, p.Goal))

	case *agentevents.AgentReasoned:
		var said Attr
		if m.o.Content&Reasoning != 0 {
			said = m.text(text, p.Reasoning)
		}
		return info(own+"reasoning", said, Attr{own + "reasoning.verbosity", string(p.Verbosity)}, Attr{own + "reasoning.bytes", int64(len(p.Reasoning))}, Attr{own + "reasoning.tokens", opt(p.TokenCount)})
	case *agentevents.TextCompleted:
		return info(own+"text", Attr{own + "text.bytes", int64(len(p.Text))}, m.text(text, p.Text))
	case *agentevents.MessageCreated:
		return info(own+"message", Attr{own + "message.role", word(p.Message.Role)}, Attr{own + "message.bytes", int64(len(p.Message.Content))}, m.json(text, p.Message.Content))
	case *agentevents.AgentDecided:
		return info(own+"decision", Attr{own + "decision.kind", "agent"}, Attr{own + "decision.confidence", opt(p.Confidence)}, m.json(text, p.Decision))
	case *agentevents.OrchestratorDecided:
		return info(own+"decision", Attr{own + "decision.kind", "orchestrator"}, Attr{own + "decision.iteration", opt(p.Iteration)}, m.json(text, p.Decision))
	case *agentevents.IntentClassified:
		return info(own+"decision", Attr{own + "decision.kind", "intent"}, Attr{own + "decision.intent", word(p.Intent)}, Attr{own + "decision.confidence", opt(p.Confidence)})
	case *agentevents.PlanProposed:
		return info(own+"plan.proposed", Attr{own + "plan.steps", int64(len(p.Steps))}, list(m, text, p.Steps))

	case *agentevents.AgentHandoff:
		return info(own+"handoff", Attr{own + "handoff.from", word(p.From.AgentID)}, Attr{own + "handoff.to", word(p.To.AgentID)})
	case *agentevents.HandoffRequested:
		return info(own+"handoff.requested", Attr{own + "handoff.from", word(p.From.AgentID)}, Attr{own + "handoff.to", word(p.To.AgentID)})
	case *agentevents.HandoffAccepted:
		return info(own+"handoff.accepted", Attr{own + "handoff.from", word(p.From.AgentID)}, Attr{own + "handoff.to", word(p.To.AgentID)}, Attr{AttrWait, m.took(ev, handoffKey(p.HandoffID, p.From, p.To))})

	case *agentevents.TurnSummarized:
		return info(own+"turn.summarized", Attr{own + "turn.tool_calls", int64(len(p.ToolCalls))}, m.text(text, p.Text))
	case *agentevents.NodeStarted:
		return info(own+"node.started", Attr{own + "node.id", ev.NodeID})
	case *agentevents.NodeSkipped:
		return info(own+"node.skipped", Attr{own + "node.id", ev.NodeID}, Attr{own + "node.reason", word(p.Reason)})
	case *agentevents.NodeSuspended:
		return info(own+"node.suspended", Attr{own + "node.id", ev.NodeID}, Attr{own + "node.reason", word(p.Reason)})
	case *agentevents.EdgeFired:
		return info(own+"edge.fired", Attr{own + "edge.from", p.From}, Attr{own + "edge.to", p.To})
	case *agentevents.EdgeSkipped:
		return info(own+"edge.skipped", Attr{own + "edge.from", p.From}, Attr{own + "edge.to", p.To})
	case *agentevents.LoopIterated:
		return info(own+"loop.round", Attr{own + "loop.round", int64(p.Iteration)})
	case *agentevents.LoopRoundCompleted:
		return info(own+"loop.round", Attr{own + "loop.round", int64(p.Round)}, Attr{own + "loop.score", opt(p.Score)})
	case *agentevents.StatePatched:
		return info(own+"state.patched", Attr{own + "state.op", string(p.Op)})

	case *agentevents.WorkflowCreated:
		return info(own+"plan.proposed", Attr{own + "plan.steps", int64(len(p.Phases))})
	case *agentevents.CheckpointSaved:
		return info(own+"checkpoint.saved", Attr{own + "checkpoint.bytes", p.StateBytes})
	case *agentevents.WorkflowFinalized:
		return info(own+"workflow.finalized", Attr{own + "workflow.agents", int64(p.TotalAgents)}, Attr{own + "workflow.tokens", p.TotalTokens})

	case *agentevents.ApprovalRequested:
		return info(own+"approval.requested", Attr{own + "approval.id", p.ApprovalID}, Attr{own + "approval.tool", label(p.ToolID)}, Attr{own + "approval.timeout", seconds(p.Timeout)}, m.text(text, p.Action))
	case *agentevents.ClarificationRequested:
		return info(own+"clarification.requested", Attr{own + "clarification.id", p.InterruptID}, Attr{own + "clarification.questions", int64(len(p.Questions))}, list(m, text, p.Questions))
	case *agentevents.CommandReceived:
		return info(own+"command", Attr{own + "command.type", string(p.Command.Type)})

	case *agentevents.AuditChecked:
		severity := SeverityInfo
		if p.Result != agentevents.AuditPass {
			severity = SeverityWarn
		}
		return EventEvaluation, severity, []Attr{{AttrEvaluation, p.CheckpointID}, {AttrScoreLabel, string(p.Result)}, m.json(AttrExplanation, p.Evidence)}
	case *agentevents.ClaimVerified:
		return info(EventEvaluation, Attr{AttrEvaluation, "claim"}, Attr{AttrScoreLabel, word(p.Verdict)}, Attr{own + "verifier", word(p.VerifierAgentID)}, m.json(AttrExplanation, p.Evidence))
	case *agentevents.IssueFound:
		return EventEvaluation, SeverityWarn, []Attr{{AttrEvaluation, "issue"}, {AttrScoreLabel, "fail"}, {own + "issue.severity", word(p.Severity)}, m.text(AttrExplanation, p.Issue)}
	case *agentevents.CitationFound:
		label := any(nil)
		if p.Verified.OK {
			label = map[bool]string{true: "pass", false: "fail"}[p.Verified.V]
		}
		return info(EventEvaluation, Attr{AttrEvaluation, "citation"}, Attr{AttrScoreLabel, label}, Attr{AttrScoreValue, opt(p.Confidence)}, m.text(AttrExplanation, p.Claim))
	case *agentevents.EvidenceInsufficient:
		return warn(own+"refusal", m.text(text, p.Reason))

	case *agentevents.UsageObserved:
		return "", 0, nil // tokens are on the spans of model calls, agents and runs
	case *agentevents.BudgetExceeded:
		return warn(own+"budget.exceeded", Attr{own + "budget.kind", word(p.Budget)}, Attr{own + "budget.limit", p.Limit}, Attr{own + "budget.observed", p.Actual})
	case *agentevents.CapBreached:
		return warn(own+"budget.exceeded", Attr{own + "budget.kind", word(p.Cap)}, Attr{own + "budget.limit", opt(p.Limit)}, Attr{own + "budget.observed", opt(p.Observed)})
	case *agentevents.BlackboardItemCreated:
		return info(own+"state.written", Attr{own + "state.kind", word(p.ItemType)})
	case *agentevents.MemoryChanged:
		return info(own+"memory", Attr{own + "memory.change", string(p.Change)}, Attr{own + "memory.section", word(p.Section)}, Attr{own + "memory.items", opt(p.ItemCount)})
	}
	return info(own+"event", Attr{own + "event.type", string(ev.Kind())})
}
