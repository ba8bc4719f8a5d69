package agentevents

import (
	"math"
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
		s.SessionGoal = strings.Clone(p.Goal)
	case *SessionCompleted:
		s.SessionStatus, s.SessionResult = strings.Clone(p.Status), own(p.Result)

	case *RunStarted:
		s.Name, s.Inputs, s.StartedAt = strings.Clone(p.Name), own(p.Inputs), ev.Time
		if p.Agent.OK {
			s.Agent = Some(*p.Agent.V.clone())
		}
		s.define(p.Definition)
	case *RunPaused:
		s.Paused, s.Cancelling = true, false
	case *RunResumed:
		s.Paused, s.Cancelling = false, false
		for id, st := range s.NodeStatus {
			if st == NodeRunning || st == NodeOnHold {
				s.NodeStatus[id] = NodePending // they start again
			}
		}
		clear(s.NodeRuns)
		s.CurrentNodeID = ""
	case *RunCompleted:
		s.Result, s.CompletedAt = own(p.Outputs), ev.Time
		f.settle()
	case *RunFailed:
		s.CompletedAt = ev.Time
		if p.Error.OK {
			s.Error = Some(ownError(&p.Error.V))
		}
		f.settle()
	case *RunCancelled:
		s.CancelReason, s.CompletedAt = strings.Clone(p.Reason), ev.Time
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
			rec.LastError = Some(ErrorInfo{Code: strings.Clone(p.ErrorType), Message: strings.Clone(p.Message)})
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
		s.Tasks = append(s.Tasks, TaskSnapshot{Sequence: ev.Sequence, TaskID: strings.Clone(ev.TaskID), AgentID: strings.Clone(agent), Goal: strings.Clone(p.Goal)})

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
		s.RunOrchestrator = own(p.Decision)
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
		s.Handoffs = append(s.Handoffs, HandoffSnapshot{Sequence: ev.Sequence, From: strings.Clone(p.From.AgentID), To: strings.Clone(p.To.AgentID), Reason: strings.Clone(p.Reason)})
	case *HandoffRequested:
		s.Handoffs = append(s.Handoffs, HandoffSnapshot{
			Sequence: ev.Sequence, HandoffID: strings.Clone(p.HandoffID), From: strings.Clone(p.From.AgentID), To: strings.Clone(p.To.AgentID),
			Reason: strings.Clone(p.Reason), Open: true,
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
		s.Turns = append(s.Turns, TurnSnapshot{Turn: p.Turn, Name: strings.Clone(p.Name), AgentID: strings.Clone(ev.AgentID), StartedAt: ev.Time})
	case *TurnEnded:
		t := s.turn(ev, p.Turn, true)
		t.EndedAt, t.Duration = ev.Time, p.Duration
		if !t.Duration.OK {
			t.Duration = elapsed(t.StartedAt, ev.Time)
		}
		if p.Error.OK {
			t.Error = Some(ownError(&p.Error.V))
		}
	case *TurnSummarized:
		t := s.turn(ev, Opt[int]{}, false)
		t.Text, t.Intent = strings.Clone(p.Text), strings.Clone(p.Intent)
	case *StepStarted:
		s.Steps = append(s.Steps, StepSnapshot{
			StepID: strings.Clone(p.StepID), Name: strings.Clone(p.Name), Description: strings.Clone(p.Description),
			AgentID: strings.Clone(ev.AgentID), StartedAt: ev.Time,
		})
	case *StepEnded:
		st := s.step(ev, p.StepID)
		st.EndedAt, st.Duration = ev.Time, p.Duration
		if !st.Duration.OK {
			st.Duration = elapsed(st.StartedAt, ev.Time)
		}
		if p.Error.OK {
			st.Error = Some(ownError(&p.Error.V))
		}
	case *SpanRecorded:

	case *NodeStarted:
		if id := ev.NodeID; id != "" {
			s.NodeStatus[strings.Clone(id)] = NodeRunning
			s.NodeRuns[strings.Clone(id)]++
			s.CurrentNodeID = strings.Clone(id)
		}
	case *NodeCompleted:
		if f.nodeEnded(ev.NodeID, NodeDone) {
			if p.Outputs != "" {
				s.Outputs[strings.Clone(ev.NodeID)] = own(p.Outputs)
			}
		}
	case *NodeFailed:
		if f.nodeEnded(ev.NodeID, NodeErrored) {
			s.Outputs[strings.Clone(ev.NodeID)] = `{"error":` + Text(p.Error.Message) + `}`
		}
	case *NodeSkipped:
		if ev.NodeID != "" {
			s.NodeStatus[strings.Clone(ev.NodeID)] = NodeDone
			s.Outputs[strings.Clone(ev.NodeID)] = `{"skipped":true,"reason":` + Text(p.Reason) + `}`
		}
	case *NodeSuspended:
		if ev.NodeID != "" {
			s.NodeStatus[strings.Clone(ev.NodeID)] = NodeOnHold
			if s.NodeRuns[ev.NodeID]--; s.NodeRuns[ev.NodeID] <= 0 {
				delete(s.NodeRuns, ev.NodeID)
			}
		}
	case *EdgeFired:
		edge := edgeKey(p.EdgeID, p.From, p.To)
		s.EdgeStatus[edge], s.LastEdge = EdgeTaken, edge
		if st, ok := s.NodeStatus[p.To]; ok && (st == NodeDone || st == NodeErrored) {
			s.NodeStatus[p.To] = NodePending // a loop goes round
		}
	case *EdgeSkipped:
		s.EdgeStatus[edgeKey(p.EdgeID, p.From, p.To)] = EdgeNotTaken
	case *LoopIterated:
		edge := p.EdgeID
		if edge == "" {
			edge = s.LastEdge
		}
		s.LoopCounters[strings.Clone(edge)] = p.Iteration
	case *LoopRoundCompleted:
	case *StatePatched:
		s.patch(p)

	case *WorkflowCreated:
		w := WorkflowSnapshot{WorkflowID: strings.Clone(ev.WorkflowID), EstimatedTokens: p.EstimatedTokens, Phases: make([]string, len(p.Phases))}
		for i, phase := range p.Phases {
			w.Phases[i] = strings.Clone(phase)
		}
		s.Workflow = Some(w)
	case *WorkflowApproved:
		w := s.workflow(ev)
		w.ApprovedBy, w.ApprovedAt = strings.Clone(p.ApprovedBy), p.ApprovedAt
	case *PhaseStarted:
		s.workflow(ev)
		s.Phases = append(s.Phases, PhaseSnapshot{
			Sequence: ev.Sequence, WorkflowID: strings.Clone(ev.WorkflowID), Phase: strings.Clone(ev.Phase), Open: true, StartedAt: ev.Time, InputCount: p.InputCount,
		})
	case *PhaseCompleted:
		ph := s.phase(ev)
		ph.Open, ph.EndedAt, ph.OutputCount, ph.Tokens = false, ev.Time, p.OutputCount, p.Tokens
	case *CheckpointSaved:
		s.Checkpoints = append(s.Checkpoints, CheckpointSnapshot{
			Sequence: ev.Sequence, WorkflowID: strings.Clone(ev.WorkflowID), Phase: strings.Clone(ev.Phase), At: ev.Time, StateBytes: Some(p.StateBytes),
		})
	case *CheckpointResumed:
		s.Checkpoints = append(s.Checkpoints, CheckpointSnapshot{
			Sequence: ev.Sequence, WorkflowID: strings.Clone(ev.WorkflowID), Phase: strings.Clone(ev.Phase), At: p.ResumedAt, Resumed: true,
		})
	case *WorkflowFinalized:
		w := s.workflow(ev)
		w.Finalized, w.TotalTokens, w.TotalAgents, w.Duration = true, Some(p.TotalTokens), Some(p.TotalAgents), Some(p.Duration)

	case *ApprovalRequested:
		s.reask(p.ApprovalID)
		s.Approvals = append(s.Approvals, ApprovalSnapshot{
			Sequence: ev.Sequence, ApprovalID: strings.Clone(p.ApprovalID), Action: strings.Clone(p.Action), CallID: strings.Clone(p.CallID),
			AgentID: strings.Clone(ev.AgentID), RequestedAt: ev.Time, Open: true,
		})
	case *ApprovalGranted:
		ap := s.approval(p.ApprovalID)
		ap.Open, ap.Granted, ap.AnsweredAt, ap.By, ap.Feedback = false, true, ev.Time, strings.Clone(p.ApprovedBy), strings.Clone(p.Feedback)
	case *ApprovalRejected:
		ap := s.approval(p.ApprovalID)
		ap.Open, ap.Granted, ap.AnsweredAt, ap.By, ap.Feedback = false, false, ev.Time, strings.Clone(p.RejectedBy), strings.Clone(p.Feedback)
	case *ClarificationRequested:
		c := ClarificationSnapshot{Sequence: ev.Sequence, InterruptID: strings.Clone(p.InterruptID), AgentID: strings.Clone(ev.AgentID), RequestedAt: ev.Time, Open: true}
		c.Questions = make([]Question, len(p.Questions))
		for i := range p.Questions {
			c.Questions[i] = *p.Questions[i].clone()
			c.Questions[i].Schema = own(c.Questions[i].Schema)
		}
		s.Clarifications = append(s.Clarifications, c)
	case *ClarificationResolved:
		c := s.clarification(p.InterruptID)
		c.Open, c.AnsweredAt, c.Answers, c.AnsweredBy = false, ev.Time, own(p.Answers), strings.Clone(p.AnsweredBy)
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
			Sequence: ev.Sequence, AgentID: f.m.own(ev.AgentID), CheckpointID: f.m.own(p.CheckpointID),
			Result: p.Result.constant(), Duration: p.Duration,
		})
	case *ClaimVerified:
		s.Claims = append(s.Claims, ClaimSnapshot{
			Sequence: ev.Sequence, FindingID: strings.Clone(p.FindingID), VerifierAgentID: strings.Clone(p.VerifierAgentID), Verdict: strings.Clone(p.Verdict),
		})
	case *IssueFound:
		s.Issues = append(s.Issues, IssueSnapshot{Sequence: ev.Sequence, AgentID: strings.Clone(ev.AgentID), Issue: strings.Clone(p.Issue), Severity: strings.Clone(p.Severity)})
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
		s.Budgets = append(s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: strings.Clone(p.Budget), Limit: Some(p.Limit), Actual: Some(p.Actual)})
	case *CapBreached:
		s.Budgets = append(s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: strings.Clone(p.Cap), Cap: true, Limit: p.Limit, Actual: p.Observed})
	case *BlackboardItemCreated:
		s.Blackboard[strings.Clone(p.ItemID)] = BlackboardItem{
			ItemType: strings.Clone(p.ItemType), Content: own(p.Content), SourceAgent: strings.Clone(p.SourceAgent), Confidence: p.Confidence,
		}
	case *MemoryChanged:

	case *Unknown:
		s.Unknown[strings.Clone(string(p.Type))]++
	default:
		f.violation(f.m.refuse(ev, RulePayload, "", "", "the fold does not handle this kind"))
	}
}

// own copies raw JSON that is kept. Text that is not JSON, which only an event
// made by hand can hold, is kept as a JSON string.
func own(j JSON) JSON {
	if j == "" {
		return ""
	}
	c, err := jsonwire.Compact(string(j))
	if err != nil {
		return Text(string(j))
	}
	return JSON(strings.Clone(c))
}

// ownError copies an error that is kept.
func ownError(e *ErrorInfo) ErrorInfo {
	out := *e.clone()
	out.Details = own(out.Details)
	return out
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
		rec.Ref = Some(*p.Agent.V.clone())
	}
	set := func(to *string, from string) {
		if from != "" {
			*to = strings.Clone(from)
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
	rec.Outcome, rec.Result, rec.StructuredOutput = AgentOutcome(strings.Clone(string(p.Outcome))), strings.Clone(p.Result), own(p.StructuredOutput)
	rec.Error = Opt[ErrorInfo]{}
	if p.Error.OK {
		rec.Error = Some(ownError(&p.Error.V))
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
	id = strings.Clone(id)
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
		f.s.AgentSessions[strings.Clone(key)] = id
	}
}

// retract takes events back. A message that one of them made stays known, so
// that a repetition does not bring it back.
func (f *Fold) retract(ids []string) {
	s := f.s
	for _, id := range ids {
		s.Retracted = append(s.Retracted, strings.Clone(id))
		if i := slices.Index(s.MessageEvents, id); i >= 0 {
			s.RetractedMessages = append(s.RetractedMessages, s.Messages[i])
			s.Messages = slices.Delete(s.Messages, i, i+1)
			s.MessageEvents = slices.Delete(s.MessageEvents, i, i+1)
		}
	}
}

// message appends a message; its id is new.
func (f *Fold) message(ev *Event, m *ConversationMessage) {
	out := *m.clone()
	out.Content = own(out.Content)
	f.s.Messages = append(f.s.Messages, out)
	f.s.MessageEvents = append(f.s.MessageEvents, strings.Clone(ev.ID))
}

func (f *Fold) toolCalled(ev *Event, ab *about, a *agentState, rec *AgentSnapshot, p *ToolCalled) {
	t := f.tool(p.ToolID)
	c := f.call(ev, ab, a, p.CallID, t.id)
	c.Attempt, c.RetryOf, c.StartedAt = p.Attempt, f.m.own(p.RetryOf), ev.Time
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

// call returns the record of a call, one that is not needed any more if there
// is one.
func (f *Fold) call(ev *Event, ab *about, a *agentState, id, tool string) *ToolCallSnapshot {
	var c *ToolCallSnapshot
	if n := len(f.free); n > 0 {
		c, f.free = f.free[n-1], f.free[:n-1]
	} else {
		if len(f.chunk) == 0 {
			f.chunk = make([]ToolCallSnapshot, 16)
		}
		c, f.chunk = &f.chunk[0], f.chunk[1:]
	}
	*c = ToolCallSnapshot{Sequence: ev.Sequence, CallID: f.m.own(id), ToolID: tool, EventID: f.m.own(ev.ID), Step: ev.Step}
	if a != nil {
		c.AgentID = a.key
	} else {
		c.AgentID = f.m.own(ab.key)
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
		c = f.call(ev, ab, a, p.CallID, t.id)
		if p.OneEvent {
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
		c.Error = strings.Clone(p.Error.V.Message)
	}
	switch {
	case p.Status == ToolOK:
		stats.OK++
	case known:
		stats.Failed++
	default:
		stats.Refused++
	}
	if p.Status != ToolOK && rec != nil {
		rec.ToolFailures++
	}
	stats.Duration += c.Duration.V
	f.keepCall(c)
}

// keepCall keeps a closed call. Those beyond the limit are forgotten many at a
// time; Snapshot shows only the latest.
func (f *Fold) keepCall(c *ToolCallSnapshot) {
	limit := f.keepCalls()
	if len(f.closed) >= 2*limit {
		old := f.closed[:len(f.closed)-limit]
		f.free = append(f.free, old...)
		f.dropped += len(old)
		f.closed = f.closed[:copy(f.closed, f.closed[len(old):])]
	}
	if limit == 0 {
		f.free = append(f.free, c)
		f.dropped++
		return
	}
	f.closed = append(f.closed, c)
}

func (f *Fold) keepCalls() int {
	switch n := f.opts.KeepCalls; {
	case n == 0:
		return defaultKeepCalls
	case n < 0:
		return 0
	default:
		return min(n, math.MaxInt/2)
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
		t = tool{strings.Clone(id), &ToolStats{}}
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
	if s.NodeRuns[id]--; s.NodeRuns[id] > 0 {
		return true // other executions of it go on
	}
	delete(s.NodeRuns, id)
	s.NodeStatus[strings.Clone(id)] = status
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

func edgeKey(id, from, to string) string {
	if id != "" {
		return strings.Clone(id)
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
