package agentevents

import (
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reuse"
	"github.com/agentevents/agentevents/internal/roster"
)

// A view builds the snapshot of a fold. It has the snapshot so far and indexes into
// it. The machine tells the view what it opens and closes. The other effects of a
// kind on the snapshot are in the function show of its row in the catalog, which
// runs after the machine.
//
// The functions are written by hand on purpose: they define what a kind means. An
// emitter has a nil view, whose methods do nothing.
type view struct {
	s         *RunSnapshot
	given     Lifecycle // the table that the fold goes by whatever the log says; may be empty
	keepCalls int

	words       *words
	kept, brief reuse.Slab // see fold_memory.go
	agents      reuse.Arena[AgentSnapshot]
	calls       reuse.Arena[ToolCallSnapshot]
	stats       reuse.Arena[ToolStats]
	reports     []ReportedUsage // see listOf

	tools    map[string]tool     // by tool id
	closed   []*ToolCallSnapshot // the latest closed calls; a ring once it is full
	oldest   int                 // index of the oldest call in the ring
	state    jsonwire.Object
	messages roster.Roster[string, ConversationMessage] // by event id
	inbox    roster.Roster[string, InboxItem]           // by event id
	commands map[string][]string                        // event ids in the inbox, by execution; some were consumed
	renamed  map[string]renaming                        // of agents, by the span that records may still have as their id

	turns    roster.Opens[turnKey]
	lastTurn map[string]int // index of the agent's last turn, open or not
	steps    roster.Opens[stepKey]
	phases   roster.Opens[passageKey]

	workflows map[string]int // index of the latest one, by id

	active map[string]struct{} // nodes that run or are suspended

	effects *effects // nil unless Fold.Effect is called
}

// A turnKey is the key of the turns of an agent, of those with a number or without a
// number of all, or of the turns that started in a span.
type turnKey struct {
	agent  string
	number Opt[int]
	span   string // instead of both
}

// A passageKey is the key of the passages through a phase: of all, or of those that started in
// a span.
type passageKey struct {
	phaseKey
	span string
}

type stepKey struct {
	agent, step string
	span        string // instead of both
}

// A tool is the id of a tool, as a copy that the fold keeps, and the counts of its
// calls.
type tool struct {
	id    string
	stats *ToolStats
}

// index fills the view's indexes from its snapshot.
func (v *view) index() {
	s := v.s
	for id, t := range s.Tools {
		put(&v.tools, id, tool{id, t})
	}
	extra := max(0, len(s.ClosedCalls)-v.keepCalls) // the snapshot's limit may have been higher
	v.closed = slices.Clone(s.ClosedCalls[extra:])
	s.DroppedCalls += extra
	for name, text := range s.State {
		v.state.Set(name, string(text))
	}
	for i := range s.Messages {
		id := ""
		if i < len(s.Resume.messageEvents) {
			id = s.Resume.messageEvents[i]
		}
		v.messages.Add(id, s.Messages[i])
	}
	for _, item := range s.Inbox {
		v.queue(item)
	}
	for i := range s.Turns {
		v.noteTurn(i)
	}
	for i := range s.Steps {
		v.noteStep(i)
	}
	for i := range s.Phases {
		v.notePhase(i, true)
	}
	for i := range s.Workflows {
		put(&v.workflows, s.Workflows[i].WorkflowID, i)
	}
	for id, st := range s.NodeStatus {
		if st == NodeStatusRunning || st == NodeStatusSuspended {
			put(&v.active, id, struct{}{})
		}
	}
}

// sync brings the snapshot up to date with the machine and the view, and returns
// it. The snapshot still belongs to the view.
func (v *view) sync(m *machine) *RunSnapshot {
	s := v.s
	s.Paused, s.Cancelling = m.paused, m.cancelling
	s.Agents = nil
	if len(m.agents) > 0 {
		s.Agents = make(map[string]*AgentSnapshot, len(m.agents))
	}
	for id, a := range m.agents {
		rec := a.shown
		v.rename(&rec.ParentAgentID, rec.Sequence)
		for i := range rec.Earlier {
			v.rename(&rec.Earlier[i].ParentAgentID, rec.Earlier[i].Sequence)
		}
		s.Agents[id] = rec
		text, reasoning := rec.text, rec.reasoning
		if a.Resume.textOpen {
			text = a.latest("text")
		}
		if a.Resume.reasoningOpen {
			reasoning = a.latest("reasoning")
		}
		refresh(&rec.Text, text)
		refresh(&rec.Reasoning, reasoning)
	}
	s.OpenCalls = nil
	_, calls := m.calls.All()
	for i := range calls {
		s.OpenCalls = append(s.OpenCalls, calls[i].shown)
	}
	if len(v.renamed) > 0 {
		for _, list := range [...][]*ToolCallSnapshot{s.OpenCalls, v.closed} {
			for _, c := range list {
				v.rename(&c.AgentID, c.Sequence)
				v.rename(&c.Within, c.Sequence)
			}
		}
		for i := range s.Steps {
			v.rename(&s.Steps[i].Within, s.Steps[i].Sequence)
		}
		for i := range s.Approvals {
			v.rename(&s.Approvals[i].AgentID, s.Approvals[i].Sequence)
		}
		for i := range s.Clarifications {
			v.rename(&s.Clarifications[i].AgentID, s.Clarifications[i].Sequence)
		}
		v.renamed = nil
	}
	_, models := m.modelCalls.All()
	s.OpenModelCalls = orNil(models)
	if v.oldest > 0 { // straighten the ring
		slices.Reverse(v.closed[:v.oldest])
		slices.Reverse(v.closed[v.oldest:])
		slices.Reverse(v.closed)
		v.oldest = 0
	}
	s.ClosedCalls = orNil(v.closed)
	s.State = stateText(&v.state)
	events, messages := v.messages.All()
	s.Messages, s.Resume.messageEvents = orNil(messages), orNil(events)
	_, inbox := v.inbox.All()
	s.Inbox = orNil(inbox)
	if len(s.NodeRuns) == 0 {
		s.NodeRuns = nil
	}
	if len(s.Suspended) == 0 {
		s.Suspended = nil
	}
	r := &s.Resume
	_, expected := m.expected.All()
	r.expected = nil
	for _, ref := range expected {
		r.expected = append(r.expected, ref.V)
	}
	r.recent = orNil(r.recent[:copy(r.recent, latest(r.recent))])
	r.recentDeltas = orNil(r.recentDeltas[:copy(r.recentDeltas, latest(r.recentDeltas))])
	return s
}

// orNil returns the list, or nil if it is empty.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// refresh sets *to to the text.
func refresh(to *string, text []byte) {
	if *to != string(text) {
		*to = string(text)
	}
}

// replace sets *to to a private copy of from. It is for texts that change now and
// then: a slab would keep the old texts alive.
func replace[T ~string](to *T, from T) {
	if *to != from {
		*to = T(strings.Clone(string(from)))
	}
}

// set sets *to to a copy of from. It is for texts that are mostly set once: the
// first copy is in a slab.
func (v *view) set(to *string, from string) {
	switch {
	case *to == from:
	case *to == "":
		*to = v.keep(from)
	default:
		*to = strings.Clone(from)
	}
}

// json returns a copy of raw JSON that lives as long as the run.
func (v *view) json(sub *subject, j JSON) JSON {
	if !sub.sound {
		return soundJSON(j)
	}
	return JSON(v.keep(string(j)))
}

// replaceJSON sets *to to a private copy of the raw JSON from.
func (v *view) replaceJSON(sub *subject, to *JSON, from JSON) {
	if *to != from {
		*to = v.copyJSON(sub, from)
	}
}

// copyJSON returns a private copy of raw JSON, for a value that another may replace.
func (v *view) copyJSON(sub *subject, j JSON) JSON {
	if sub.sound {
		return JSON(strings.Clone(string(j)))
	}
	return soundJSON(j)
}

// soundJSON returns a checked copy of raw JSON. Text that is not JSON, which only
// an event made by hand has, becomes a JSON string.
func soundJSON(j JSON) JSON {
	return JSON(strings.Clone(string(JSONOrString(string(j)))))
}

// errorInfo returns a copy of an error.
func (v *view) errorInfo(sub *subject, e Opt[ErrorInfo]) Opt[ErrorInfo] {
	if e.OK {
		e.V.deepen()
		if !sub.sound {
			e.V.Details = soundJSON(e.V.Details)
		}
	}
	return e
}

// elapsed returns the stated duration, or the time between two events. Without
// either, or when the clock did not go on, it is absent: the events of a log that was
// captured without a clock have one time, or none that is known.
func elapsed(stated Opt[time.Duration], from, to time.Time) Opt[time.Duration] {
	if stated.OK || !TimeKnown(from) || !TimeKnown(to) || !to.After(from) {
		return stated
	}
	return Some(to.Sub(from))
}

// envelope takes the fields of the snapshot that come from envelopes. Droppable
// events must leave no trace, so they do not come here.
func (v *view) envelope(ev *Event, sub *subject) {
	s := v.s
	if a := sub.agent; a != nil && !a.Started && ev.NodeID != "" && sub.kind.ByAgent && a.shown.NodeID == "" {
		a.shown.NodeID, a.shown.NodeRunID = v.intern(ev.NodeID), v.intern(ev.NodeRunID) // its document may have no starts
	}
	if s.StartedAt.IsZero() {
		s.StartedAt = ev.Time
	}
	if s.SessionID == "" {
		s.SessionID = v.keep(ev.SessionID)
	}
	if s.WorkflowID == "" {
		s.WorkflowID = v.keep(ev.WorkflowID)
	}
}

// unknown counts an event of an unknown kind.
func (v *view) unknown(ev *Event) {
	p := ev.Payload.(*Unknown)
	s := v.s
	if n := s.Unknown[string(p.Type)]; n > 0 {
		s.Unknown[v.intern(string(p.Type))] = plus(n, 1)
	} else {
		put(&s.Unknown, v.intern(string(p.Type)), 1)
	}
	// Two types of OpenWOP for which the catalog has no kind. node.resumed is the counterpart of
	// node.suspended. The status decides and not Suspended: an answer takes the node
	// out of Suspended before it runs again. node.cancelled ends a node.
	switch status := s.NodeStatus[ev.NodeID]; {
	case p.Type == "node.resumed" && status == NodeStatusSuspended:
		v.nodeRuns(ev.NodeID)
	case p.Type == "node.cancelled" && (status == NodeStatusSuspended || status == NodeStatusRunning):
		v.nodeEnded(ev.NodeID, NodeStatusDone)
		v.setOutput(ev.NodeID,
			`{"cancelled":true,"reason":`+JSONString(jsonwire.Text(jsonwire.Member(string(p.Raw), "reason")))+`}`)
	}
}

// Sessions and runs.

func (v *view) sessionStarted(ev *Event, _ *subject) {
	replace(&v.s.SessionGoal, ev.Payload.(*SessionStarted).Goal)
	v.s.SessionEndedAt = time.Time{}
}

func (v *view) sessionCompleted(ev *Event, sub *subject) {
	p := ev.Payload.(*SessionCompleted)
	v.s.SessionEndedAt, v.s.Resume.endMadeUp = ev.Time, ev.Marks.Has(MarkSynthetic)
	replace(&v.s.SessionStatus, p.Status)
	if p.Reason != "" || v.s.Facts.OK {
		replace(&v.facts().SessionReason, p.Reason)
	}
	v.replaceJSON(sub, &v.s.SessionResult, p.Result)
	v.s.Resume.sessionError = v.errorInfo(sub, p.Error)
}

func (v *view) runStarted(ev *Event, sub *subject) {
	p := ev.Payload.(*RunStarted)
	s := v.s
	s.StartedAt = ev.Time
	v.set(&s.Name, p.Name)
	v.replaceJSON(sub, &s.Inputs, p.Inputs)
	if p.Agent.OK {
		s.Agent = Some(v.keepRef(p.Agent.V))
	}
	v.define(sub, p.Definition)
}

func (v *view) runResumed(*Event, *subject) {
	s := v.s
	for id := range v.active {
		s.NodeStatus[id] = NodeStatusPending // they start again
	}
	// New maps: clearing a map takes as long as it was ever large.
	v.active, s.NodeRuns, s.Suspended = nil, nil, nil
	s.CurrentNodeID = ""
}

func (v *view) runEnded(ev *Event, refused int) {
	v.s.CompletedAt, v.s.EndMadeUp, v.s.Refused = ev.Time, ev.Marks.Has(MarkSynthetic), refused
}

func (v *view) runCompleted(ev *Event, sub *subject) {
	p := ev.Payload.(*RunCompleted)
	v.runEnded(ev, p.Refused)
	v.replaceJSON(sub, &v.s.Result, p.Outputs)
}

func (v *view) runFailed(ev *Event, sub *subject) {
	p := ev.Payload.(*RunFailed)
	v.runEnded(ev, p.Refused)
	if p.Error.OK {
		v.s.Error = v.errorInfo(sub, p.Error)
	}
	if id := p.FailedNodeID; id != "" && v.s.NodeStatus[id] != NodeStatusFailed {
		delete(v.s.NodeRuns, id) // all of its executions are over
		v.failNode(id, p.Error.V.Message)
	}
}

func (v *view) runCancelled(ev *Event, _ *subject) {
	p := ev.Payload.(*RunCancelled)
	v.runEnded(ev, p.Refused)
	v.set(&v.s.CancelReason, p.Reason)
}

// Assurance and resources.

func (v *view) auditChecked(ev *Event, sub *subject) {
	p := ev.Payload.(*AuditChecked)
	v.s.Audits = append(v.s.Audits, AuditSnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)),
		CheckpointID: v.intern(p.CheckpointID), Result: p.Result.constant(), Duration: p.Duration,
	})
}

func (v *view) claimVerified(ev *Event, sub *subject) {
	p := ev.Payload.(*ClaimVerified)
	v.s.Claims = append(v.s.Claims, ClaimSnapshot{
		Sequence: ev.Sequence, FindingID: v.keep(p.FindingID),
		VerifierAgentID: v.intern(p.VerifierAgentID), Verdict: v.intern(p.Verdict),
		Evidence: v.json(sub, p.Evidence),
	})
}

func (v *view) issueFound(ev *Event, sub *subject) {
	p := ev.Payload.(*IssueFound)
	v.s.Issues = append(v.s.Issues, IssueSnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Issue: v.keep(p.Issue), Severity: v.intern(p.Severity),
		Evidence: v.json(sub, p.Evidence), SuggestedFix: v.keep(p.SuggestedFix),
	})
}

func (v *view) citationFound(ev *Event, sub *subject) {
	p := ev.Payload.(*CitationFound)
	v.s.Citations = plus(v.s.Citations, 1)
	f := v.facts()
	f.Citations = append(f.Citations, CitationSnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Claim: v.keep(p.Claim),
		SourceURI: v.keep(p.SourceURI), Confidence: p.Confidence, Verified: p.Verified.V,
	})
}

func (v *view) evidenceInsufficient(ev *Event, sub *subject) {
	p := ev.Payload.(*EvidenceInsufficient)
	f := v.facts()
	f.Insufficiencies = append(f.Insufficiencies, InsufficiencySnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)),
		Reason: v.keep(p.Reason), WhatWouldResolve: v.keep(p.WhatWouldResolve),
	})
}

func (v *view) memoryChanged(ev *Event, _ *subject) {
	v.countWord(&v.facts().Memory, string(ev.Payload.(*MemoryChanged).Change))
}

func (v *view) spanRecorded(ev *Event, _ *subject) {
	p := ev.Payload.(*SpanRecorded)
	v.countWord(&v.facts().Spans, p.Subject+" "+p.Phase)
	if p.Subject == "handoff" && (p.Phase == "error" || p.Phase == "cancelled") {
		v.handoffEnded(ev, p)
	}
}

// handoffEnded closes the latest request of a span, which nobody will accept.
func (v *view) handoffEnded(ev *Event, p *SpanRecorded) {
	v.endHandoff(p.Phase, ErrorInfo{Code: p.ErrorType, Message: p.ErrorMessage},
		func(h *HandoffSnapshot) bool { return h.SpanID == ev.SpanID && h.SpanID != "" })
}

// handoffNotAccepted closes the request that an event of an unknown kind tells to be over, such as
// handoff.rejected: that of its handoffId, else the latest one of its span, else the latest one to
// or from its agent.
func (v *view) handoffNotAccepted(ev *Event, p *Unknown, word string) (closed bool) {
	reason := ErrorInfo{Message: reasonOf(p)}
	if id := p.member("handoffId"); id != "" {
		return v.endHandoff(word, reason, func(h *HandoffSnapshot) bool { return h.HandoffID == id })
	}
	return v.endHandoff(word, reason, func(h *HandoffSnapshot) bool { return h.SpanID == ev.SpanID && h.SpanID != "" }) ||
		v.endHandoff(word, reason, func(h *HandoffSnapshot) bool { return h.To == ev.AgentID }) ||
		v.endHandoff(word, reason, func(h *HandoffSnapshot) bool { return h.From == ev.AgentID })
}

// endHandoff closes the latest open request for which is is true, and reports whether there is one.
func (v *view) endHandoff(word string, reason ErrorInfo, is func(h *HandoffSnapshot) bool) bool {
	for i := range slices.Backward(v.s.Handoffs) {
		h := &v.s.Handoffs[i]
		if !h.Open || !is(h) {
			continue
		}
		h.Open, h.Ended = false, v.intern(word)
		if reason.Code != "" || reason.Message != "" {
			h.Error = Some(ErrorInfo{Code: v.keep(reason.Code), Message: v.keep(reason.Message)})
		}
		return true
	}
	return false
}

// countWord counts one more of a word.
func (v *view) countWord(counts *map[string]int, word string) {
	put(counts, v.intern(word), plus((*counts)[word], 1))
}

func (v *view) usageObserved(ev *Event, sub *subject) {
	v.s.Resume.reported = true
	v.usage(sub).observe(v, ev.Payload.(*UsageObserved))
}

// usage returns the place for the figures of an event.
func (v *view) usage(sub *subject) *AgentUsage {
	if sub.agent != nil {
		return &sub.agent.shown.Usage
	}
	return &v.s.Usage.Unassigned
}

func (v *view) budgetExceeded(ev *Event, _ *subject) {
	p := ev.Payload.(*BudgetExceeded)
	v.s.Budgets = append(v.s.Budgets, BudgetSnapshot{
		Sequence: ev.Sequence, Budget: v.intern(p.Budget), Limit: Some(p.Limit),
		Actual: Some(p.Actual), Reason: v.keep(beginning(p.Reason)),
	})
}

func (v *view) capBreached(ev *Event, _ *subject) {
	p := ev.Payload.(*CapBreached)
	v.s.Budgets = append(v.s.Budgets,
		BudgetSnapshot{Sequence: ev.Sequence, Budget: v.intern(p.Cap), Cap: true, Limit: p.Limit, Actual: p.Observed})
}

func (v *view) blackboardItemCreated(ev *Event, sub *subject) {
	p := ev.Payload.(*BlackboardItemCreated)
	put(&v.s.Blackboard, v.intern(p.ItemID), BlackboardItem{
		ItemType: v.intern(p.ItemType), Content: v.copyJSON(sub, p.Content),
		SourceAgent: v.intern(p.SourceAgent), Confidence: p.Confidence,
	})
}
