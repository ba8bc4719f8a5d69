package agentevents

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// apply is what every kind means for the snapshot. It is written by hand on
// purpose: this mapping must not be derived.
func (f *Fold) apply(ev *Event, ab *about, a *agentState, rec *AgentSnapshot) {
	s := f.s
	switch p := ev.Payload.(type) {
	case *SessionStarted:
		replace(&s.SessionGoal, p.Goal)
	case *SessionCompleted:
		replace(&s.SessionStatus, p.Status)
		f.replaceJSON(&s.SessionResult, p.Result)

	case *RunStarted:
		s.StartedAt = ev.Time
		f.set(&s.Name, p.Name)
		f.setJSON(&s.Inputs, p.Inputs)
		if p.Agent.OK {
			s.Agent = Some(f.ref(p.Agent.V))
		}
		f.define(p.Definition)
	case *RunPaused:
		s.Paused, s.Cancelling = true, false
	case *RunResumed:
		s.Paused, s.Cancelling = false, false
		for id, st := range s.NodeStatus {
			if st == NodeStatusRunning || st == NodeStatusSuspended {
				s.NodeStatus[id] = NodeStatusPending // they start again
			}
		}
		clear(s.NodeRuns)
		clear(s.Suspended)
		s.CurrentNodeID = ""
	case *RunCompleted:
		s.CompletedAt = ev.Time
		f.setJSON(&s.Result, p.Outputs)
		f.settle()
	case *RunFailed:
		s.CompletedAt = ev.Time
		if p.Error.OK {
			s.Error = Some(f.ownError(&p.Error.V))
		}
		f.settle()
	case *RunCancelled:
		s.CompletedAt = ev.Time
		f.set(&s.CancelReason, p.Reason)
		f.settle()

	case *AgentStarted:
		f.agentStarted(ev, a, rec, p)
	case *AgentTransition:
		if rec != nil {
			rec.Transitions++
		}
	case *AgentEnded:
		f.agentEnded(ev, rec, p)
	case *AgentErrored:
		if rec != nil && p.Severity != SeverityWarning {
			rec.Errors++
			last := rec.LastError.V
			replace(&last.Code, p.ErrorType)
			replace(&last.Message, p.Message)
			rec.LastError = Some(ErrorInfo{Code: last.Code, Message: last.Message})
		}
	case *AgentSessionChanged:
		f.session(ev, rec, p.ProviderSessionID)
	case *EventRetracted:
		f.retract(p.EventIDs)
	case *ContextCompacted:
	case *TaskAssigned:
		agent := p.AssignedAgent
		if agent == "" {
			agent = ev.AgentID
		}
		s.Tasks = append(s.Tasks, TaskSnapshot{Sequence: ev.Sequence, TaskID: f.m.own(ev.TaskID), AgentID: f.m.word(agent), Goal: f.m.own(p.Goal)})

	case *AgentReasoned:
		if rec != nil {
			a.reasoning, rec.ReasoningOpen = append(a.reasoning[:0], p.Reasoning...), false
		}
	case *AgentReasoningDelta:
		if b := a.growing("reasoning", p.BlockID); b {
			rec.ReasoningOpen = true
		}
	case *TextCompleted:
		if rec != nil {
			a.text, rec.TextOpen = append(a.text[:0], p.Text...), false
		}
	case *TextDelta:
		if b := a.growing("text", p.BlockID); b {
			rec.TextOpen = true
		}
	case *AgentDecided:
	case *OrchestratorDecided:
		f.replaceJSON(&s.RunOrchestrator, p.Decision)
	case *IntentClassified:
	case *PlanProposed:
	case *MessageCreated:
		f.message(ev, &p.Message)

	case *ToolCalled:
		f.toolCalled(ev, ab, a, rec, p)
	case *ToolArgumentsDelta:
	case *ToolReturned:
		f.toolReturned(ev, ab, a, rec, p)

	case *AgentHandoff:
		s.Handoffs = append(s.Handoffs, HandoffSnapshot{Sequence: ev.Sequence, From: f.m.word(p.From.AgentID), To: f.m.word(p.To.AgentID), Reason: f.m.own(p.Reason)})
	case *HandoffRequested:
		s.Handoffs = append(s.Handoffs, HandoffSnapshot{
			Sequence: ev.Sequence, HandoffID: f.m.own(p.HandoffID), From: f.m.word(p.From.AgentID), To: f.m.word(p.To.AgentID),
			Reason: f.m.own(p.Reason), Open: true,
		})
	case *HandoffAccepted:
		key := handoffKey(p.HandoffID, p.From, p.To)
		for i := range s.Handoffs {
			h := &s.Handoffs[i]
			if h.Open && handoffKey(h.HandoffID, AgentRef{AgentID: h.From}, AgentRef{AgentID: h.To}) == key {
				h.Open = false
				break
			}
		}

	case *TurnStarted:
		s.Turns = append(s.Turns, TurnSnapshot{Turn: p.Turn, Name: f.m.word(p.Name), AgentID: f.m.word(ev.AgentID), StartedAt: ev.Time})
	case *TurnEnded:
		t := s.turn(ev, p.Turn, true)
		t.EndedAt, t.Duration = ev.Time, p.Duration
		if !t.Duration.OK {
			t.Duration = elapsed(t.StartedAt, ev.Time)
		}
		if p.Error.OK {
			t.Error = Some(f.ownError(&p.Error.V))
		}
	case *TurnSummarized:
		t := s.turn(ev, Opt[int]{}, false)
		t.Text, t.Intent = f.m.own(p.Text), f.m.own(p.Intent)
	case *StepStarted:
		s.Steps = append(s.Steps, StepSnapshot{
			StepID: f.m.word(p.StepID), Name: f.m.word(p.Name), Description: f.m.own(p.Description),
			AgentID: f.m.word(ev.AgentID), StartedAt: ev.Time,
		})
	case *StepEnded:
		st := s.step(ev, p.StepID)
		st.EndedAt, st.Duration = ev.Time, p.Duration
		if !st.Duration.OK {
			st.Duration = elapsed(st.StartedAt, ev.Time)
		}
		if p.Error.OK {
			st.Error = Some(f.ownError(&p.Error.V))
		}
	case *SpanRecorded:

	case *NodeStarted:
		if id := ev.NodeID; id != "" {
			id = f.m.word(id)
			s.NodeStatus[id] = NodeStatusRunning
			s.NodeRuns[id]++
			delete(s.Suspended, id)
			s.CurrentNodeID = id
		}
	case *NodeCompleted:
		if f.nodeEnded(ev.NodeID, NodeStatusDone) {
			if p.Outputs != "" {
				s.Outputs[f.m.word(ev.NodeID)] = f.json(p.Outputs, false)
			}
		}
	case *NodeFailed:
		if f.nodeEnded(ev.NodeID, NodeStatusFailed) {
			s.Outputs[f.m.word(ev.NodeID)] = `{"error":` + JSONString(p.Error.Message) + `}`
		}
	case *NodeSkipped:
		if ev.NodeID != "" {
			s.NodeStatus[f.m.word(ev.NodeID)] = NodeStatusDone
			delete(s.Suspended, ev.NodeID)
			s.Outputs[f.m.word(ev.NodeID)] = `{"skipped":true,"reason":` + JSONString(p.Reason) + `}`
		}
	case *NodeSuspended:
		if ev.NodeID != "" {
			s.NodeStatus[f.m.word(ev.NodeID)] = NodeStatusSuspended
			s.Suspended[f.m.word(ev.NodeID)] = f.m.word(p.Reason)
			if n := s.NodeRuns[ev.NodeID] - 1; n > 0 {
				s.NodeRuns[f.m.word(ev.NodeID)] = n
			} else {
				delete(s.NodeRuns, ev.NodeID)
			}
		}
	case *EdgeFired:
		edge := f.edgeKey(p.EdgeID, p.From, p.To)
		s.EdgeStatus[edge], s.LastEdge = EdgeStatusFired, edge
		if st, ok := s.NodeStatus[p.To]; ok && (st == NodeStatusDone || st == NodeStatusFailed) {
			s.NodeStatus[f.m.word(p.To)] = NodeStatusPending // a loop goes round
		}
	case *EdgeSkipped:
		s.EdgeStatus[f.edgeKey(p.EdgeID, p.From, p.To)] = EdgeStatusSkipped
	case *LoopIterated:
		edge := p.EdgeID
		if edge == "" {
			edge = s.LastEdge
		}
		s.LoopCounters[f.m.word(edge)] = p.Iteration
	case *LoopRoundCompleted:
	case *StatePatched:
		s.patch(p)

	case *WorkflowCreated:
		w := WorkflowSnapshot{WorkflowID: f.m.word(ev.WorkflowID), EstimatedTokens: p.EstimatedTokens, Phases: make([]string, len(p.Phases))}
		for i, phase := range p.Phases {
			w.Phases[i] = f.m.word(phase)
		}
		s.Workflow = Some(w)
	case *WorkflowApproved:
		w := s.workflow(ev)
		w.ApprovedBy, w.ApprovedAt = f.m.word(p.ApprovedBy), p.ApprovedAt
	case *PhaseStarted:
		s.workflow(ev)
		s.Phases = append(s.Phases, PhaseSnapshot{
			Sequence: ev.Sequence, WorkflowID: f.m.word(ev.WorkflowID), Phase: f.m.word(ev.Phase), Open: true, StartedAt: ev.Time, InputCount: p.InputCount,
		})
	case *PhaseCompleted:
		ph := s.phase(ev)
		ph.Open, ph.EndedAt, ph.OutputCount, ph.Tokens = false, ev.Time, p.OutputCount, p.Tokens
	case *CheckpointSaved:
		s.Checkpoints = append(s.Checkpoints, CheckpointSnapshot{
			Sequence: ev.Sequence, WorkflowID: f.m.word(ev.WorkflowID), Phase: f.m.word(ev.Phase), At: ev.Time, StateBytes: Some(p.StateBytes),
		})
	case *CheckpointResumed:
		s.Checkpoints = append(s.Checkpoints, CheckpointSnapshot{
			Sequence: ev.Sequence, WorkflowID: f.m.word(ev.WorkflowID), Phase: f.m.word(ev.Phase), At: p.ResumedAt, Resumed: true,
		})
	case *WorkflowFinalized:
		w := s.workflow(ev)
		w.Finalized, w.TotalTokens, w.TotalAgents, w.Duration = true, Some(p.TotalTokens), Some(p.TotalAgents), Some(p.Duration)

	case *ApprovalRequested:
		s.reask(p.ApprovalID)
		s.Approvals = append(s.Approvals, ApprovalSnapshot{
			Sequence: ev.Sequence, ApprovalID: f.m.own(p.ApprovalID), Action: f.m.word(p.Action), CallID: f.m.own(p.CallID),
			AgentID: f.m.word(ev.AgentID), RequestedAt: ev.Time, Open: true,
		})
	case *ApprovalGranted:
		ap := s.approval(p.ApprovalID)
		ap.Open, ap.Granted, ap.AnsweredAt, ap.By, ap.Feedback = false, true, ev.Time, f.m.word(p.ApprovedBy), f.m.own(p.Feedback)
		delete(s.Suspended, ev.NodeID)
	case *ApprovalRejected:
		ap := s.approval(p.ApprovalID)
		ap.Open, ap.Granted, ap.AnsweredAt, ap.By, ap.Feedback = false, false, ev.Time, f.m.word(p.RejectedBy), f.m.own(p.Feedback)
		delete(s.Suspended, ev.NodeID)
	case *ClarificationRequested:
		c := ClarificationSnapshot{Sequence: ev.Sequence, InterruptID: f.m.own(p.InterruptID), AgentID: f.m.word(ev.AgentID), RequestedAt: ev.Time, Open: true}
		c.Questions = make([]Question, len(p.Questions))
		for i := range p.Questions {
			c.Questions[i] = *p.Questions[i].clone()
			if !f.sound {
				c.Questions[i].Schema = own(c.Questions[i].Schema)
			}
		}
		s.Clarifications = append(s.Clarifications, c)
	case *ClarificationResolved:
		c := s.clarification(p.InterruptID)
		c.Open, c.AnsweredAt, c.Answers, c.AnsweredBy = false, ev.Time, f.json(p.Answers, true), f.m.word(p.AnsweredBy)
		delete(s.Suspended, ev.NodeID)
	case *CommandReceived:
		f.command(ev, p)
	case *CommandConsumed:
		for i := range s.Inbox {
			if s.Inbox[i].EventID == p.EventID {
				s.Inbox = append(s.Inbox[:i], s.Inbox[i+1:]...)
				break
			}
		}

	case *AuditChecked:
		s.Audits = append(s.Audits, AuditSnapshot{
			Sequence: ev.Sequence, AgentID: f.m.word(ev.AgentID), CheckpointID: f.m.word(p.CheckpointID),
			Result: p.Result.constant(), Duration: p.Duration,
		})
	case *ClaimVerified:
		s.Claims = append(s.Claims, ClaimSnapshot{
			Sequence: ev.Sequence, FindingID: f.m.own(p.FindingID), VerifierAgentID: f.m.word(p.VerifierAgentID), Verdict: f.m.word(p.Verdict),
		})
	case *IssueFound:
		s.Issues = append(s.Issues, IssueSnapshot{Sequence: ev.Sequence, AgentID: f.m.word(ev.AgentID), Issue: f.m.own(p.Issue), Severity: f.m.word(p.Severity)})
	case *CitationFound:
		s.Citations++
	case *EvidenceInsufficient:

	case *UsageObserved:
		u := &s.Usage.Unassigned
		if rec != nil {
			u = &rec.Usage
		}
		u.observe(p)
	case *BudgetExceeded:
		s.Budgets = append(s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: f.m.word(p.Budget), Limit: Some(p.Limit), Actual: Some(p.Actual)})
	case *CapBreached:
		s.Budgets = append(s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: f.m.word(p.Cap), Cap: true, Limit: p.Limit, Actual: p.Observed})
	case *BlackboardItemCreated:
		s.Blackboard[f.m.word(p.ItemID)] = BlackboardItem{
			ItemType: f.m.word(p.ItemType), Content: f.json(p.Content, false), SourceAgent: f.m.word(p.SourceAgent), Confidence: p.Confidence,
		}
	case *MemoryChanged:

	case *Unknown:
		s.Unknown[f.m.word(string(p.Type))]++
		// OpenWOP's counterpart of NodeSuspended, which the vocabulary lacks. The
		// node may not be among those that wait any more, as an answer takes it
		// out, but it did not run since.
		if id := ev.NodeID; p.Type == "node.resumed" && s.NodeStatus[id] == NodeStatusSuspended {
			id = f.m.word(id)
			s.NodeStatus[id] = NodeStatusRunning
			s.NodeRuns[id]++
			delete(s.Suspended, id)
			s.CurrentNodeID = id
		}
	default:
		f.violation(f.m.refuse(ev, RulePayload, "", "", "the fold does not handle this kind"))
	}
}

// replace copies a text that takes the place of another. It is in memory of its
// own, as the one that it will be forgotten for is not the run's end.
func replace[T ~string](to *T, from T) {
	if *to != from {
		*to = T(strings.Clone(string(from)))
	}
}

// replaceJSON is replace for raw JSON.
func (f *Fold) replaceJSON(to *JSON, from JSON) {
	if *to != from {
		*to = f.json(from, false)
	}
}

// json copies raw JSON that is kept, for as long as the run if so. What was
// checked when it was read is not read again.
func (f *Fold) json(j JSON, long bool) JSON {
	switch {
	case !f.sound:
		return own(j)
	case long:
		return JSON(f.m.own(string(j)))
	}
	return JSON(strings.Clone(string(j)))
}

// own copies raw JSON that is kept. Text that is not JSON, which only an event
// made by hand can hold, is kept as a JSON string.
func own(j JSON) JSON {
	if j == "" {
		return ""
	}
	c, err := jsonwire.Compact(string(j))
	if err != nil {
		return JSONString(string(j))
	}
	return JSON(strings.Clone(c))
}

// ownError copies an error that is kept.
func (f *Fold) ownError(e *ErrorInfo) ErrorInfo {
	out := *e.clone()
	out.Details = f.json(out.Details, false)
	return out
}

// set copies a text that takes the place of another at most now and then, such
// as that of an agent's earlier attempt.
func (f *Fold) set(to *string, from string) {
	switch {
	case *to == from:
	case len(from) <= maxWord:
		*to = f.m.word(from)
	case *to == "":
		*to = f.m.own(from)
	default:
		*to = strings.Clone(from)
	}
}

// setJSON is set for raw JSON.
func (f *Fold) setJSON(to *JSON, from JSON) {
	if *to != from {
		*to = f.json(from, *to == "")
	}
}

// ref copies a reference to an agent. A log has few of them.
func (f *Fold) ref(r AgentRef) AgentRef {
	refs := f.texts.refs
	if i := slices.Index(refs, r); i >= 0 {
		return refs[i]
	}
	r.deepen()
	if len(refs) < maxRefs {
		f.texts.refs = append(refs, r)
	}
	return r
}

// growing reports whether a delta added to a block that is not whole yet.
func (a *agentState) growing(subject, id string) bool {
	if a == nil {
		return false
	}
	b := a.block(subject, id)
	return b != nil && !b.whole
}

// latest returns the text of the block of the subject begun last.
func (a *agentState) latest(subject string) []byte {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := &a.blocks[i]; b.subject == subject && (!b.whole || b.id == "") {
			return b.text
		}
	}
	return nil
}

// settle forgets what only matters while agents work.
func (f *Fold) settle() {
	f.deltas = f.deltas[:0]
}

// finishTexts writes down texts that only live in blocks, before the machine
// forgets the blocks at an end or a new start.
func (f *Fold) finishTexts(ev *Event, ab *about) {
	switch ev.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		if ab.agent != nil {
			ab.agent.finishTexts()
		}
	case *RunCompleted, *RunFailed, *RunCancelled:
		for _, a := range f.m.agents {
			a.finishTexts()
		}
	}
}

func (a *agentState) finishTexts() {
	if a.rec == nil {
		return
	}
	if a.rec.TextOpen {
		a.text, a.rec.TextOpen = append(a.text[:0], a.latest("text")...), false
	}
	if a.rec.ReasoningOpen {
		a.reasoning, a.rec.ReasoningOpen = append(a.reasoning[:0], a.latest("reasoning")...), false
	}
}

func (f *Fold) agentStarted(ev *Event, a *agentState, rec *AgentSnapshot, p *AgentStarted) {
	if rec == nil {
		return
	}
	if p.Agent.OK {
		rec.Ref = Some(f.ref(p.Agent.V))
	}
	set := func(to *string, from string) {
		if from != "" {
			f.set(to, from)
		}
	}
	set(&rec.ParentAgentID, ev.ParentAgentID)
	set(&rec.ParentCallID, ev.ParentCallID)
	set(&rec.NodeID, ev.NodeID)
	set(&rec.Phase, ev.Phase)
	set(&rec.Task, p.Task)
	set(&rec.Model, p.Model)
	rec.Attempts = a.attempt
	if rec.StartedAt.IsZero() {
		rec.Sequence = ev.Sequence
	}
	rec.StartedAt, rec.EndedAt = ev.Time, time.Time{}
	rec.Duration = Opt[time.Duration]{}
	rec.Outcome, rec.Error, rec.Result, rec.StructuredOutput = "", Opt[ErrorInfo]{}, "", ""
	rec.Totals, rec.NumTurns, rec.ConvergenceScore = Opt[Totals]{}, Opt[int]{}, Opt[float64]{}
	if p.ProviderSessionID != "" {
		f.session(ev, rec, p.ProviderSessionID)
	}
}

func (f *Fold) agentEnded(ev *Event, rec *AgentSnapshot, p *AgentEnded) {
	if rec == nil {
		return
	}
	rec.EndedAt, rec.Duration = ev.Time, p.Duration
	if !p.Duration.OK {
		rec.Duration = elapsed(rec.StartedAt, ev.Time)
	}
	rec.Outcome = AgentOutcome(f.m.word(string(p.Outcome)))
	f.set(&rec.Result, p.Result)
	f.setJSON(&rec.StructuredOutput, p.StructuredOutput)
	rec.Error = Opt[ErrorInfo]{}
	if p.Error.OK {
		rec.Error = Some(f.ownError(&p.Error.V))
	}
	rec.Totals = Opt[Totals]{}
	if p.Totals.OK {
		rec.Totals = Some(*p.Totals.V.clone())
	}
	rec.NumTurns, rec.ConvergenceScore = p.NumTurns, p.ConvergenceScore
	rec.Usage.end(p)
	for _, a := range f.m.agents {
		if a.open {
			return
		}
	}
	f.deltas = f.deltas[:0]
}

func (f *Fold) session(ev *Event, rec *AgentSnapshot, id string) {
	id = f.m.word(id)
	key := ev.NodeID
	if rec != nil {
		rec.ProviderSessionID = id
		if key == "" {
			key = rec.NodeID
		}
		if key == "" {
			key = rec.AgentID
		}
	}
	if key != "" {
		f.s.AgentSessions[f.m.word(key)] = id
	}
}

// retract takes events back. A message that one of them made stays known, so
// that a repetition does not bring it back.
func (f *Fold) retract(ids []string) {
	s := f.s
	for _, id := range ids {
		s.Retracted = append(s.Retracted, f.m.own(id))
		if i := slices.Index(s.MessageEvents, id); i >= 0 {
			s.RetractedMessages = append(s.RetractedMessages, s.Messages[i])
			s.Messages = slices.Delete(s.Messages, i, i+1)
			s.MessageEvents = slices.Delete(s.MessageEvents, i, i+1)
		}
	}
}

// message appends a message; its id is new.
func (f *Fold) message(ev *Event, m *ConversationMessage) {
	// The texts that every message has come from a slab; clone copies the rest.
	out := *m
	out.MessageID, out.From, out.To, out.Role, out.Content = "", "", "", "", ""
	out.deepen()
	out.MessageID, out.From, out.To, out.Role = f.m.own(m.MessageID), f.m.word(m.From), f.m.word(m.To), f.m.word(m.Role)
	out.Content = f.json(m.Content, true)
	f.s.Messages = append(f.s.Messages, out)
	f.s.MessageEvents = append(f.s.MessageEvents, f.m.own(ev.ID))
}

func (f *Fold) toolCalled(ev *Event, ab *about, a *agentState, rec *AgentSnapshot, p *ToolCalled) {
	t := f.tool(p.ToolID)
	c := f.call(ev, ab, a, f.m.callID, f.m.callEvent, t.id)
	c.Attempt, c.RetryOf, c.StartedAt = p.Attempt, f.m.callSlab.clone(p.RetryOf), ev.Time
	for i, open := range f.calls {
		if open.CallID == c.CallID && open.AgentID == c.AgentID {
			// An id used again while open (rule tool-call-open): the rules follow
			// the later call, and nothing can return the earlier one any more.
			f.calls = append(f.calls[:i], f.calls[i+1:]...)
			f.dropped++
			break
		}
	}
	f.calls = append(f.calls, c)
	t.stats.Calls++
	if rec != nil {
		rec.ToolCalls++
	}
}

// call returns the record of a call, in one that is not needed any more if there
// is one. It keeps the texts.
func (f *Fold) call(ev *Event, ab *about, a *agentState, id, event, tool string) *ToolCallSnapshot {
	var c *ToolCallSnapshot
	if n := len(f.free); n > 0 {
		c, f.free = f.free[n-1], f.free[:n-1]
	} else {
		if len(f.chunk) == 0 {
			f.chunk = make([]ToolCallSnapshot, 16)
		}
		c, f.chunk = &f.chunk[0], f.chunk[1:]
	}
	*c = ToolCallSnapshot{Sequence: ev.Sequence, CallID: id, ToolID: tool, EventID: event, Step: ev.Step}
	if a != nil {
		c.AgentID = a.key
	} else {
		c.AgentID = f.m.word(ab.key)
	}
	return c
}

func (f *Fold) toolReturned(ev *Event, ab *about, a *agentState, rec *AgentSnapshot, p *ToolReturned) {
	key := ab.key
	var c *ToolCallSnapshot
	if !p.OneEvent {
		for i, open := range f.calls {
			if open.CallID == p.CallID && open.AgentID == key {
				c = open
				f.calls = append(f.calls[:i], f.calls[i+1:]...)
				break
			}
		}
	}
	t := f.tool(p.ToolID)
	stats := t.stats
	known := c != nil
	if c == nil {
		c = f.call(ev, ab, a, f.m.callSlab.clone(p.CallID), f.m.callSlab.clone(ev.ID), t.id)
		if p.wholeCall() {
			if at := ev.Time.Add(-p.Duration.V).UTC(); at.Year() >= 0 && at.Year() <= 9999 {
				c.StartedAt = at
			}
			known = true
			stats.Calls++
			if rec != nil {
				rec.ToolCalls++
			}
		}
	}
	c.Status, c.Duration = p.Status.constant(), p.Duration
	if !c.Duration.OK {
		c.Duration = elapsed(c.StartedAt, ev.Time)
	}
	if p.Error.OK {
		c.Error = f.m.callSlab.clone(p.Error.V.Message)
	}
	switch {
	case p.Status == ToolStatusOK:
		stats.OK++
	case known:
		stats.Failed++
	default:
		stats.Refused++
	}
	if p.Status != ToolStatusOK && rec != nil {
		rec.ToolFailures++
	}
	stats.Duration += c.Duration.V
	f.keepCall(c)
}

// keepCall keeps a closed call, in the place of the oldest one if there is no
// other.
func (f *Fold) keepCall(c *ToolCallSnapshot) {
	limit := f.keepCalls()
	if len(f.closed) < limit {
		f.closed = append(f.closed, c)
		return
	}
	if limit > 0 {
		c, f.closed[f.oldest] = f.closed[f.oldest], c
		f.oldest = (f.oldest + 1) % limit
	}
	f.free = append(f.free, c)
	f.dropped++
}

func (f *Fold) keepCalls() int {
	switch n := f.opts.KeepCalls; {
	case n == 0:
		return defaultKeepCalls
	case n < 0:
		return 0
	default:
		return n
	}
}

// A tool is the count of a tool's calls and its name.
type tool struct {
	id    string
	stats *ToolStats
}

func (f *Fold) tool(id string) tool {
	t, ok := f.tools[id]
	if !ok {
		if len(f.stats) == 0 {
			f.stats = make([]ToolStats, 8)
		}
		t = tool{f.m.word(id), &f.stats[0]}
		f.stats = f.stats[1:]
		f.tools[t.id], f.s.Tools[t.id] = t, t.stats
	}
	return t
}

// elapsed measures a duration between events. There is none without a start,
// and none where a clock went back.
func elapsed(from, to time.Time) Opt[time.Duration] {
	if from.IsZero() || to.Before(from) {
		return Opt[time.Duration]{}
	}
	return Some(to.Sub(from))
}

// nodeEnded closes one execution of a node; it reports false without a node.
func (f *Fold) nodeEnded(id string, status NodeStatus) bool {
	if id == "" {
		return false
	}
	s := f.s
	id = f.m.word(id) // a map takes over the key it is written with
	if s.NodeRuns[id]--; s.NodeRuns[id] > 0 {
		return true // other executions of it go on
	}
	delete(s.NodeRuns, id)
	s.NodeStatus[id] = status
	delete(s.Suspended, id)
	if s.CurrentNodeID == id {
		s.CurrentNodeID = ""
	}
	return true
}

func (f *Fold) command(ev *Event, p *CommandReceived) {
	if p.Rejected != "" {
		return
	}
	switch p.Command.Type {
	case CommandSend, CommandReply:
		if p.Command.RunID != "" { // without one the resume spec rejects it
			f.s.Inbox = append(f.s.Inbox, InboxItem{EventID: strings.Clone(ev.ID), Command: *p.Command.clone()})
		}
	case CommandAbort:
		if p.Command.Resumable.V {
			f.s.Paused = true
		} else {
			f.s.Cancelling = true
		}
	case CommandResume:
		f.s.Cancelling = false
	}
}

func (f *Fold) edgeKey(id, from, to string) string {
	if id != "" {
		return f.m.word(id)
	}
	return from + "->" + to
}

// turn finds the turn an event is about: the last open one of its number (or
// agent), else the last one when it need not be open, else a new one.
func (r *RunSnapshot) turn(ev *Event, number Opt[int], open bool) *TurnSnapshot {
	for i := len(r.Turns) - 1; i >= 0; i-- {
		t := &r.Turns[i]
		if t.AgentID == ev.AgentID && (!open || t.EndedAt.IsZero()) && (!number.OK || t.Turn == number) {
			return t
		}
	}
	r.Turns = append(r.Turns, TurnSnapshot{Turn: number, AgentID: strings.Clone(ev.AgentID)})
	return &r.Turns[len(r.Turns)-1]
}

func (r *RunSnapshot) step(ev *Event, id string) *StepSnapshot {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		if st := &r.Steps[i]; st.StepID == id && st.AgentID == ev.AgentID && st.EndedAt.IsZero() {
			return st
		}
	}
	r.Steps = append(r.Steps, StepSnapshot{StepID: strings.Clone(id), AgentID: strings.Clone(ev.AgentID)})
	return &r.Steps[len(r.Steps)-1]
}

func (r *RunSnapshot) workflow(ev *Event) *WorkflowSnapshot {
	if !r.Workflow.OK {
		r.Workflow = Some(WorkflowSnapshot{WorkflowID: strings.Clone(ev.WorkflowID), Phases: []string{}})
	}
	return &r.Workflow.V
}

func (r *RunSnapshot) phase(ev *Event) *PhaseSnapshot {
	for i := range r.Phases {
		if ph := &r.Phases[i]; ph.Open && ph.Phase == ev.Phase && ph.WorkflowID == ev.WorkflowID {
			return ph
		}
	}
	r.Phases = append(r.Phases, PhaseSnapshot{WorkflowID: strings.Clone(ev.WorkflowID), Phase: strings.Clone(ev.Phase)})
	return &r.Phases[len(r.Phases)-1]
}

// reask closes an approval that is asked for again before it was answered: the
// answer will be to the later request.
func (r *RunSnapshot) reask(id string) {
	for i := range r.Approvals {
		if r.Approvals[i].ApprovalID == id {
			r.Approvals[i].Open = false
		}
	}
}

func (r *RunSnapshot) approval(id string) *ApprovalSnapshot {
	for i := range r.Approvals {
		if a := &r.Approvals[i]; a.Open && a.ApprovalID == id {
			return a
		}
	}
	r.Approvals = append(r.Approvals, ApprovalSnapshot{ApprovalID: strings.Clone(id)})
	return &r.Approvals[len(r.Approvals)-1]
}

func (r *RunSnapshot) clarification(id string) *ClarificationSnapshot {
	for i := range r.Clarifications {
		if c := &r.Clarifications[i]; c.Open && c.InterruptID == id {
			return c
		}
	}
	r.Clarifications = append(r.Clarifications, ClarificationSnapshot{InterruptID: strings.Clone(id), Questions: []Question{}})
	return &r.Clarifications[len(r.Clarifications)-1]
}
