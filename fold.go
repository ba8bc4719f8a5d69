package agentevents

import (
	"encoding/binary"
	"errors"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// FoldOptions configure a [Fold]. The zero FoldOptions are usable.
type FoldOptions struct {
	// Lifecycle is the table that transitions are judged by; default
	// [Strict]. It decides about violations only: the state follows the log.
	Lifecycle Lifecycle
	// KeepCalls is how many closed tool calls the snapshot keeps, the latest
	// ones; all are counted in Tools. 0 means 256, negative means none.
	KeepCalls int
	// MaxViolations is how many violations the snapshot keeps, the first ones;
	// all are counted. 0 means 256, negative means none.
	MaxViolations int
	// OnViolation is told every violation, while the event that is the cause
	// is applied. Nil leaves them to the snapshot.
	OnViolation func(*InvariantError)
	// Host is what the host owns and a log cannot say.
	Host HostState
}

// HostState is state that the host of a run knows better than its log: the
// initial state, state written without a patch, outputs put together by the
// host. Where a key is given it wins over the fold.
type HostState struct {
	State   map[string]JSON // by top-level key
	Outputs map[string]JSON // by node id
}

const (
	defaultKeepCalls     = 256
	defaultMaxViolations = 256
	recentEvents         = 64
	maxReadErrors        = 100
)

// A Fold turns the events of one run into a [RunSnapshot], always the same
// one: it is a function of its inputs, without clock, goroutine or disk. It
// shares the rules with the emitter, but refuses nothing: violations are data
// in the snapshot.
//
// A Fold is not for concurrent use.
type Fold struct {
	opts  FoldOptions
	m     *machine
	s     *RunSnapshot        // what m knows too is brought up to date by Snapshot
	calls []*ToolCallSnapshot // open, in call order
	line  []byte
}

// NewFold returns a fold of no events. The run is that of the first event.
func NewFold(o FoldOptions) *Fold {
	return &Fold{opts: o}
}

// ResumeFold returns a fold that goes on where a snapshot ends: folding the
// rest of the log gives what folding the whole would. It keeps no part of the
// snapshot.
func ResumeFold(snapshot *RunSnapshot, o FoldOptions) (*Fold, error) {
	if snapshot == nil {
		return nil, errors.New("agentevents: ResumeFold needs a snapshot")
	}
	f := &Fold{opts: o}
	if snapshot.RunID == "" && snapshot.NextSequence == 0 {
		return f, nil // a snapshot of nothing
	}
	f.s = snapshot.clone()
	if f.s.TerminalKind == "" {
		f.s.CompletedAt = time.Time{} // derived by Snapshot; the run may go on
	}
	f.m = f.s.machine(o.Lifecycle)
	f.m.fold = true
	f.s.fill()
	for key, a := range f.m.agents {
		a.rec = f.s.Agents[key]
	}
	f.calls = f.s.OpenCalls
	for _, c := range f.calls {
		if call := f.m.calls[callKey{c.AgentID, c.CallID}]; call != nil {
			call.rec = c
		}
	}
	return f, nil
}

func (f *Fold) begin(runID string) {
	runID = strings.Clone(runID)
	f.m = newMachine(f.opts.Lifecycle, runID)
	f.m.fold = true
	f.s = &RunSnapshot{SchemaVersion: SchemaVersion, RunID: runID}
	f.s.fill()
	f.calls = f.s.OpenCalls
}

// Apply adds one event. An event that the fold has seen (same sequence) changes
// nothing; another event with the same sequence is reported, and the first one
// wins. Illegal events are reported and then count as what they say.
func (f *Fold) Apply(ev Event) {
	if f.m == nil {
		f.begin(ev.RunID)
	}
	if ops(ev.Payload) == nil {
		err := sealError(ev.Payload)
		err.RunID, err.AgentID, err.EventID, err.Sequence = ev.RunID, ev.AgentID, ev.ID, ev.Sequence
		f.violation(err)
		return
	}
	if ev.RunID != f.m.runID {
		f.violation(f.m.refuse(&ev, RuleRun, quote("run", f.m.runID), "", "the event says run "+quoteID(ev.RunID)))
		return
	}
	f.line = ev.append(f.line[:0], ops(ev.Payload))
	fp := Fingerprint{Sequence: ev.Sequence, Hash: fingerprint(f.line)}
	if ev.Sequence < f.m.next {
		f.repeated(&ev, fp)
		return
	}
	f.remember(&ev, fp)

	if err := f.m.check(&ev); err != nil {
		f.violation(err)
	}
	if err := f.m.checkMessage(&ev); err != nil {
		f.violation(err)
	}
	known := f.m.knows(&ev)
	f.finishTexts(&ev)
	a := f.m.apply(&ev)
	var rec *AgentSnapshot
	if a != nil {
		rec = f.record(a, &ev)
	}
	if !droppable(ev.Payload) {
		if f.s.StartedAt.IsZero() {
			f.s.StartedAt = ev.Time
		}
		f.scope(&ev)
	}
	if known {
		return // a message that is there already, or was retracted
	}
	f.apply(&ev, a, rec)
}

// record returns the fold's record of an agent. Agents are counted as they
// appear, by events that may not be dropped.
func (f *Fold) record(a *agentState, ev *Event) *AgentSnapshot {
	if a.rec == nil {
		a.rec = &AgentSnapshot{AgentID: a.key, Order: -1}
		a.rec.fill()
		f.s.Agents[a.key] = a.rec
	}
	if a.rec.Order < 0 && !droppable(ev.Payload) {
		order := 0
		for _, other := range f.s.Agents {
			if other.Order >= 0 {
				order++
			}
		}
		a.rec.Order = order
	}
	return a.rec
}

// remember keeps the fingerprint of an event. Those of droppable events have a
// list of their own, which ends with the agents' work, so that leaving them out
// leaves the snapshot of a finished run as it is.
func (f *Fold) remember(ev *Event, fp Fingerprint) {
	list := &f.s.Recent
	if droppable(ev.Payload) {
		list = &f.s.RecentDeltas
		if a := f.m.agents[f.m.agentKey(ev)]; f.m.terminal != "" || a == nil || !a.open {
			return
		}
	}
	if len(*list) == recentEvents {
		*list = append((*list)[:0], (*list)[1:]...)
	}
	*list = append(*list, fp)
}

func droppable(p Payload) bool {
	i := payloadIndex(p)
	return i >= 0 && catalog[i].Droppable
}

// repeated handles an event whose sequence is not above the last one.
func (f *Fold) repeated(ev *Event, fp Fingerprint) {
	for _, list := range [...][]Fingerprint{f.s.Recent, f.s.RecentDeltas} {
		for _, r := range list {
			if r.Sequence == ev.Sequence {
				if r.Hash != fp.Hash {
					f.violation(f.m.refuse(ev, RuleSequence, "sequence "+utoa(ev.Sequence), "taken", "another event has this sequence; the first one wins"))
				}
				return
			}
		}
	}
	// Not remembered: out of order, unless it may have been forgotten.
	if forgotten := len(f.s.Recent) == recentEvents && ev.Sequence < f.s.Recent[0].Sequence; !forgotten && !droppable(ev.Payload) {
		f.violation(f.m.refuse(ev, RuleSequence, "", "", "sequence goes back from "+utoa(f.m.next-1)+"; the event is left out"))
	}
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// fingerprint is a hash of 53 bits, so that it survives readers of JSON that
// know only floats. It need not resist forgery.
func fingerprint(b []byte) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(b)) * k0
	for ; len(b) >= 8; b = b[8:] {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(b), k1)
		h = hi ^ lo ^ k0
	}
	var tail [8]byte
	copy(tail[:], b)
	hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(tail[:]), k1)
	return (hi ^ lo) >> 11
}

func (f *Fold) violation(err *InvariantError) {
	f.s.ViolationCount++
	if f.opts.OnViolation != nil {
		f.opts.OnViolation(err)
	}
	limit := f.opts.MaxViolations
	if limit == 0 {
		limit = defaultMaxViolations
	}
	if len(f.s.Violations) < limit {
		f.s.Violations = append(f.s.Violations, err.clone())
	}
}

// scope notes where the run belongs.
func (f *Fold) scope(ev *Event) {
	keep := func(to *string, from string) {
		if *to == "" && from != "" {
			*to = strings.Clone(from)
		}
	}
	keep(&f.s.SessionID, ev.SessionID)
	keep(&f.s.WorkflowID, ev.WorkflowID)
}

// apply is what every kind means for the snapshot. It is written by hand on
// purpose: this mapping must not be derived.
func (f *Fold) apply(ev *Event, a *agentState, rec *AgentSnapshot) {
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
			rec.Reasoning, rec.ReasoningOpen = strings.Clone(p.Reasoning), false
		}
	case *AgentReasoningDelta:
		if b := a.growing("reasoning", p.BlockID); b {
			rec.ReasoningOpen = true
		}
	case *TextCompleted:
		if rec != nil {
			rec.Text, rec.TextOpen = strings.Clone(p.Text), false
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
		f.toolCalled(ev, a, rec, p)
	case *ToolArgumentsDelta:
	case *ToolReturned:
		f.toolReturned(ev, rec, p)

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
			Sequence: ev.Sequence, AgentID: strings.Clone(ev.AgentID), CheckpointID: strings.Clone(p.CheckpointID),
			Result: AuditResult(strings.Clone(string(p.Result))), Duration: p.Duration,
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
func (a *agentState) latest(subject string) string {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if b := &a.blocks[i]; b.subject == subject && (!b.whole || b.id == "") {
			return string(b.text)
		}
	}
	return ""
}

// settle forgets what only matters while agents work.
func (f *Fold) settle() {
	f.s.RecentDeltas = f.s.RecentDeltas[:0]
}

// finishTexts writes down texts that only live in blocks, before the machine
// forgets the blocks at an end or a new start.
func (f *Fold) finishTexts(ev *Event) {
	switch ev.Payload.(type) {
	case *AgentStarted, *AgentEnded:
		if a := f.m.agents[f.m.agentKey(ev)]; a != nil {
			a.finishTexts()
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
		a.rec.Text, a.rec.TextOpen = a.latest("text"), false
	}
	if a.rec.ReasoningOpen {
		a.rec.Reasoning, a.rec.ReasoningOpen = a.latest("reasoning"), false
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
	f.s.RecentDeltas = f.s.RecentDeltas[:0]
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

func (f *Fold) toolCalled(ev *Event, a *agentState, rec *AgentSnapshot, p *ToolCalled) {
	key := f.m.agentKey(ev)
	c := &ToolCallSnapshot{
		Sequence: ev.Sequence, AgentID: key, CallID: p.CallID, ToolID: p.ToolID, EventID: ev.ID, Step: ev.Step, Attempt: p.Attempt, RetryOf: p.RetryOf, StartedAt: ev.Time,
	}
	c = c.clone()
	if call := f.m.calls[callKey{key, p.CallID}]; call != nil {
		call.rec = c
	}
	for i, open := range f.calls {
		if open.CallID == c.CallID && open.AgentID == c.AgentID {
			// An id used again while open (rule tool-call-open): the rules follow
			// the later call, and nothing can return the earlier one any more.
			f.calls = append(f.calls[:i], f.calls[i+1:]...)
			f.s.DroppedCalls++
			break
		}
	}
	f.calls = append(f.calls, c)
	f.tool(p.ToolID).Calls++
	if rec != nil {
		rec.ToolCalls++
	}
}

func (f *Fold) toolReturned(ev *Event, rec *AgentSnapshot, p *ToolReturned) {
	key := f.m.agentKey(ev)
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
	stats := f.tool(p.ToolID)
	known := c != nil
	if c == nil {
		c = (&ToolCallSnapshot{Sequence: ev.Sequence, AgentID: key, CallID: p.CallID, ToolID: p.ToolID, EventID: ev.ID, Step: ev.Step}).clone()
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
	c.Status, c.Duration = ToolStatus(strings.Clone(string(p.Status))), p.Duration
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

// keepCall keeps a closed call and forgets the oldest beyond the limit.
func (f *Fold) keepCall(c *ToolCallSnapshot) {
	limit := f.opts.KeepCalls
	if limit == 0 {
		limit = defaultKeepCalls
	}
	if limit < 0 {
		f.s.DroppedCalls++
		return
	}
	if drop := len(f.s.ClosedCalls) + 1 - limit; drop > 0 {
		f.s.ClosedCalls = append(f.s.ClosedCalls[:0], f.s.ClosedCalls[drop:]...)
		f.s.DroppedCalls += drop
	}
	f.s.ClosedCalls = append(f.s.ClosedCalls, c)
}

func (f *Fold) tool(id string) *ToolStats {
	t := f.s.Tools[id]
	if t == nil {
		t = &ToolStats{}
		f.s.Tools[strings.Clone(id)] = t
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

// Snapshot returns the state after the events applied so far. It may be called
// at any time and is the caller's.
func (f *Fold) Snapshot() *RunSnapshot {
	if f.m == nil {
		s := &RunSnapshot{SchemaVersion: SchemaVersion, Status: RunStatusPending}
		s.fill()
		return s.clone()
	}
	f.sync()
	s := f.s.clone()
	s.Status = s.status()
	if s.CompletedAt.IsZero() && s.Status.Terminal() {
		for _, a := range s.Agents {
			if a.EndedAt.After(s.CompletedAt) {
				s.CompletedAt = a.EndedAt
			}
		}
	}
	s.countUsage()
	for k, v := range f.opts.Host.State {
		s.State[k] = own(v)
	}
	for k, v := range f.opts.Host.Outputs {
		s.Outputs[k] = own(v)
	}
	return s
}

// sync copies the machine's state into the snapshot.
func (f *Fold) sync() {
	m, s := f.m, f.s
	s.NextSequence, s.Opened, s.Begun, s.TerminalKind = m.next, m.opened, m.begun, m.terminal
	s.OpenCalls = f.calls
	for _, a := range m.agents {
		rec := a.rec
		if rec == nil {
			continue
		}
		rec.Status, rec.Step, rec.StepBack, rec.StepAhead, rec.FirstStep, rec.NewStep = a.status, a.step, a.back, a.ahead, a.base, a.renew
		rec.Started, rec.Open, rec.Ended, rec.Restart = a.started, a.open, a.ended, a.restart
		rec.Attempts, rec.SharesByGroup = a.attempt, a.group
		rec.Counted = a.totals()
		rec.Blocks = rec.Blocks[:0]
		for i := range a.blocks {
			b := &a.blocks[i]
			rec.Blocks = append(rec.Blocks, BlockSnapshot{Subject: b.subject, ID: b.id, Next: b.next, Size: b.size, Whole: b.whole, Text: string(b.text)})
		}
		if rec.TextOpen {
			rec.Text = a.latest("text")
		}
		if rec.ReasoningOpen {
			rec.Reasoning = a.latest("reasoning")
		}
	}
}

// machine makes the rules' state from a snapshot.
func (r *RunSnapshot) machine(l Lifecycle) *machine {
	m := newMachine(l, r.RunID)
	m.next, m.opened, m.begun, m.terminal = r.NextSequence, r.Opened, r.Begun, r.TerminalKind
	for key, rec := range r.Agents {
		a := &agentState{
			key: key, firm: rec.Order >= 0, started: rec.Started, open: rec.Open, ended: rec.Ended, restart: rec.Restart, status: rec.Status,
			step: rec.Step, back: rec.StepBack, ahead: rec.StepAhead, base: rec.FirstStep, renew: rec.NewStep, attempt: rec.Attempts, counted: rec.Counted, group: rec.SharesByGroup,
		}
		a.counted.Steps = 0
		for _, b := range rec.Blocks {
			a.blocks = append(a.blocks, blockState{subject: b.Subject, id: b.ID, next: b.Next, size: b.Size, whole: b.Whole, text: []byte(b.Text)})
		}
		m.agents[key] = a
	}
	for _, c := range r.OpenCalls {
		m.calls[callKey{c.AgentID, c.CallID}] = &openCall{eventID: c.EventID}
	}
	for _, list := range [...][]ConversationMessage{r.Messages, r.RetractedMessages} {
		for i := range list {
			m.remember(&list[i])
		}
	}
	for i := range r.Phases {
		if r.Phases[i].Open {
			m.openPhase(r.Phases[i].WorkflowID, r.Phases[i].Phase, 1)
		}
	}
	for i := range r.Approvals {
		if r.Approvals[i].Open {
			if m.approvals == nil {
				m.approvals = map[string]struct{}{}
			}
			m.approvals[r.Approvals[i].ApprovalID] = struct{}{}
		}
	}
	for i := range r.Handoffs {
		if h := &r.Handoffs[i]; h.Open {
			if m.handoffs == nil {
				m.handoffs = map[string]int{}
			}
			m.handoffs[handoffKey(h.HandoffID, AgentRef{AgentID: h.From}, AgentRef{AgentID: h.To})]++
		}
	}
	return m
}

// status derives the run's status; see [RunStatus].
func (r *RunSnapshot) status() RunStatus {
	switch r.TerminalKind {
	case KindRunCompleted:
		return RunStatusCompleted
	case KindRunFailed:
		return RunStatusFailed
	case KindRunCancelled:
		return RunStatusCancelled
	}
	switch {
	case r.Paused:
		return RunStatusPaused
	case r.Cancelling:
		return RunStatusCancelling
	case !r.Begun:
		return RunStatusPending
	}
	waiting := map[string]bool{}
	for i := range r.Approvals {
		if r.Approvals[i].Open {
			waiting[r.Approvals[i].AgentID] = true
		}
	}
	for i := range r.Clarifications {
		if r.Clarifications[i].Open {
			waiting[r.Clarifications[i].AgentID] = true
		}
	}
	started, open, working, failed := 0, 0, 0, 0
	for _, a := range r.Agents {
		if !a.Started {
			continue
		}
		started++
		switch {
		case a.Open:
			open++
			if a.Status != BlockedOnClarification && !waiting[a.AgentID] {
				working++
			}
		case a.Ended && (a.Outcome == OutcomeAborted || a.Status == Failed || a.Error.OK):
			failed++
		}
	}
	switch {
	case len(waiting) > 0 && working == 0:
		return RunStatusWaiting
	case r.Opened || started == 0 || open > 0:
		return RunStatusRunning
	case failed > 0:
		return RunStatusFailed
	}
	return RunStatusCompleted
}

// FoldAll folds a log of any number of runs and returns their snapshots in the
// order in which the runs appear. Events go to the fold of their run. Errors
// of the sequence (lines that could not be read) do not stop it: they come
// back joined, at most 100 of them.
func FoldAll(events iter.Seq2[Event, error], o FoldOptions) ([]*RunSnapshot, error) {
	folds := map[string]*Fold{}
	var order []*Fold
	var errs []error
	more := 0
	for ev, err := range events {
		if err != nil {
			if len(errs) < maxReadErrors {
				errs = append(errs, err)
			} else {
				more++
			}
			continue
		}
		f := folds[ev.RunID]
		if f == nil {
			f = NewFold(o)
			folds[strings.Clone(ev.RunID)] = f
			order = append(order, f)
		}
		f.Apply(ev)
	}
	if more > 0 {
		errs = append(errs, errors.New("agentevents: "+itoa(more)+" more errors"))
	}
	snapshots := make([]*RunSnapshot, len(order))
	for i, f := range order {
		snapshots[i] = f.Snapshot()
	}
	return snapshots, errors.Join(errs...)
}
