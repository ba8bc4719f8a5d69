package agentevents

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/endword"
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
	renamed  map[string]renaming                        // ids of agents that were known by a span, by that span; records may still have the span

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
		v.setOutput(ev.NodeID, `{"cancelled":true,"reason":`+JSONString(jsonwire.Text(jsonwire.Member(string(p.Raw), "reason")))+`}`)
	}
}

// Sessions and runs.

func (v *view) sessionStarted(ev *Event, _ *subject) {
	replace(&v.s.SessionGoal, ev.Payload.(*SessionStarted).Goal)
	v.s.SessionEndedAt = time.Time{}
}

func (v *view) sessionCompleted(ev *Event, sub *subject) {
	p := ev.Payload.(*SessionCompleted)
	v.s.SessionEndedAt = ev.Time
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

func (v *view) runCompleted(ev *Event, sub *subject) {
	p := ev.Payload.(*RunCompleted)
	v.s.CompletedAt, v.s.Refused = ev.Time, p.Refused
	v.replaceJSON(sub, &v.s.Result, p.Outputs)
}

func (v *view) runFailed(ev *Event, sub *subject) {
	p := ev.Payload.(*RunFailed)
	v.s.CompletedAt, v.s.Refused = ev.Time, p.Refused
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
	v.s.CompletedAt, v.s.Refused = ev.Time, p.Refused
	v.set(&v.s.CancelReason, p.Reason)
}

// Agents.

// newAgent returns the state of a new agent, as a part of its snapshot.
func (v *view) newAgent() *AgentState {
	rec := v.agents.Get()
	rec.shown = rec
	rec.Resume.blocks = v.words.blocks.Get()
	return &rec.AgentState
}

// keptAttempts is how many earlier attempts of an agent a snapshot keeps: so many of the first,
// and so many of the latest.
const keptAttempts = 16

// again keeps the attempt of an agent that an event begins another one of.
func (v *view) again(a *AgentState, ev *Event) {
	if v == nil {
		return
	}
	rec := a.shown
	t := rec.attempt()
	t.Died, t.Text = !a.Ended, string(rec.text)
	rec.text = rec.text[:0]
	if rec.Earlier = append(rec.Earlier, t); len(rec.Earlier) > 2*keptAttempts {
		first, d := &rec.Earlier[keptAttempts], &rec.Dropped
		if !d.OK {
			*d = Some(DroppedAttempts{Sequence: first.Sequence})
		}
		d.V.Count = plus(d.V.Count, 1)
		d.V.add(first)
		rec.Earlier = slices.Delete(rec.Earlier, keptAttempts, keptAttempts+1)
	}
	rec.Usage.next(t.Died)
	rec.Usage.Sequence, rec.Usage.Model = ev.Sequence, rec.Model
	if _, end := ev.Payload.(*AgentEnded); end {
		rec.StartedAt = time.Time{} // the attempt before began then
	}
}

func (v *view) agentStarted(ev *Event, sub *subject) {
	if sub.agent == nil {
		return
	}
	rec, p, late := sub.agent.shown, ev.Payload.(*AgentStarted), sub.agent.Ended
	if !late {
		v.s.SessionEndedAt = time.Time{}
	}
	if p.Agent.OK {
		rec.Ref = Some(v.keepRef(p.Agent.V))
	}
	for _, t := range [...]struct {
		to   *string
		from string
	}{
		{&rec.ParentAgentID, ev.ParentAgentID}, {&rec.ParentCallID, ev.ParentCallID}, {&rec.NodeID, ev.NodeID}, {&rec.NodeRunID, ev.NodeRunID},
		{&rec.Name, p.Name}, {&rec.Task, p.Task}, {&rec.Model, p.Model},
	} {
		if t.from != "" && *t.to != t.from {
			*t.to = v.intern(t.from)
		}
	}
	if ev.WorkflowID != "" || ev.Phase != "" {
		rec.WorkflowID, rec.Phase = v.intern(ev.WorkflowID), v.intern(ev.Phase)
	}
	rec.Usage.Sequence, rec.Usage.Model = ev.Sequence, rec.Model
	if rec.StartedAt.IsZero() && len(rec.Earlier) == 0 {
		rec.Sequence = ev.Sequence
	}
	if rec.StartedAt = ev.Time; late {
		rec.Duration = elapsed(rec.Duration, rec.StartedAt, rec.EndedAt)
		if p.ProviderSessionID != "" {
			v.session(ev, rec, p.ProviderSessionID)
		}
		return
	}
	rec.EndedAt, rec.Duration = time.Time{}, Opt[time.Duration]{}
	rec.Outcome, rec.EndStatus, rec.EndReason, rec.Error, rec.Result, rec.StructuredOutput, rec.ResultSchema = "", "", "", Opt[ErrorInfo]{}, "", "", ""
	rec.Totals, rec.NumTurns, rec.ConvergenceScore = Opt[Totals]{}, Opt[int]{}, Opt[float64]{}
	if p.ProviderSessionID != "" {
		v.session(ev, rec, p.ProviderSessionID)
	}
}

// within notes the span that an agent starts in, and the agent that started in that span.
func (v *view) within(span string, around, a *AgentState) {
	if v == nil || span == "" {
		return
	}
	v.set(&a.shown.ParentSpanID, span)
	if around != nil && around != a {
		a.shown.ParentAgentID = around.AgentID
	}
}

// twin notes the name of an agent whose id another one has.
func (v *view) twin(a *AgentState) {
	if v != nil && !a.shown.Ref.OK {
		a.shown.Ref = Some(AgentRef{AgentID: a.Resume.twin})
	}
}

// A renaming is the id of an agent that was known by a span, in the records before a
// sequence: another agent may have the span's name for its id from then on.
type renaming struct {
	id     string
	before uint64
}

// named notes that an agent has got its id: its records before a sequence have the span
// until sync.
func (v *view) named(span string, a *AgentState, before uint64) {
	if v == nil {
		return
	}
	put(&v.renamed, span, renaming{a.AgentID, before})
	if id, ok := v.s.AgentSessions[span]; ok {
		delete(v.s.AgentSessions, span)
		v.s.AgentSessions[a.AgentID] = id
	}
}

// rename replaces the span that an agent was known by, in the record of a sequence.
func (v *view) rename(id *string, sequence uint64) {
	if name, ok := v.renamed[*id]; ok && sequence < name.before {
		*id = name.id
	}
}

// refer adds to *to what it lacks and a reference says. The reference of the agent's start
// comes first, as it says most; one that shares by group says more than another.
func (v *view) refer(to *Opt[AgentRef], ref *AgentRef) {
	if !to.OK || to.V == (AgentRef{AgentID: to.V.AgentID}) {
		*to = Some(v.keepRef(*ref))
		return
	}
	both := to.V
	_, was := both.AgentSharing.Group()
	if _, group := ref.AgentSharing.Group(); both.AgentSharing == "" || group && !was {
		both.AgentSharing = ref.AgentSharing
	}
	both.MemoryRef = cmp.Or(both.MemoryRef, ref.MemoryRef)
	both.ModelClass = cmp.Or(both.ModelClass, ref.ModelClass)
	if both != to.V {
		to.V = v.keepRef(both)
	}
}

// nodeNames notes the agent that a node names. The latest one counts.
func (v *view) nodeNames(node string, ref *AgentRef) {
	if v == nil || node == "" || ref.AgentID == "" {
		return
	}
	all := Opt[AgentRef]{V: v.s.Facts.V.NodeAgents[node]}
	all.OK = all.V.AgentID == ref.AgentID
	v.refer(&all, ref)
	put(&v.facts().NodeAgents, v.intern(node), all.V)
}

func (v *view) agentTransition(_ *Event, sub *subject) {
	if sub.agent != nil {
		sub.agent.shown.Transitions++
	}
}

func (v *view) agentEnded(ev *Event, sub *subject) {
	if sub.agent == nil {
		return
	}
	rec, p := sub.agent.shown, ev.Payload.(*AgentEnded)
	told := sub.agent.endsAgain(ev) && !rec.EndedAt.IsZero() // by another end of the attempt: this one adds its members
	if !told {
		rec.EndedAt = ev.Time
	}
	if !told || p.Duration.OK {
		rec.Duration = elapsed(p.Duration, rec.StartedAt, rec.EndedAt)
	}
	if !told || p.tells() {
		rec.Outcome, rec.EndStatus = AgentOutcome(v.intern(string(p.Outcome))), v.intern(p.Status)
		rec.Error = v.errorInfo(sub, p.Error)
	}
	if !told || p.tells() || p.Reason != "" {
		rec.EndReason = v.keep(beginning(p.Reason))
	}
	if !told || p.Result != "" {
		v.set(&rec.Result, p.Result)
	}
	if !told || p.StructuredOutput != "" {
		v.replaceJSON(sub, &rec.StructuredOutput, p.StructuredOutput)
	}
	if !told || p.ResultSchema != "" {
		v.replaceJSON(sub, &rec.ResultSchema, p.ResultSchema)
	}
	if !told || p.Totals.OK {
		rec.Totals = p.Totals
		rec.Totals.V.deepen()
	}
	if !told || p.NumTurns.OK {
		rec.NumTurns = p.NumTurns
	}
	if !told || p.ConvergenceScore.OK {
		rec.ConvergenceScore = p.ConvergenceScore
	}
	rec.Refused = plus(rec.Refused, p.Refused)
	rec.Usage.end(p)
}

func (v *view) agentErrored(ev *Event, sub *subject) {
	p := ev.Payload.(*AgentErrored)
	if sub.agent == nil || p.Severity == SeverityWarning {
		return
	}
	rec := sub.agent.shown
	rec.Errors++
	last := rec.LastError.V
	replace(&last.Code, p.ErrorType)
	replace(&last.Message, p.Message)
	rec.LastError = Some(ErrorInfo{Code: last.Code, Message: last.Message})
}

func (v *view) agentDecided(_ *Event, sub *subject) {
	if sub.agent != nil {
		rec := sub.agent.shown
		rec.Decisions = plus(rec.Decisions, 1)
	}
}

func (v *view) agentSessionChanged(ev *Event, sub *subject) {
	var rec *AgentSnapshot
	if sub.agent != nil {
		rec = sub.agent.shown
	}
	v.session(ev, rec, ev.Payload.(*AgentSessionChanged).ProviderSessionID)
}

func (v *view) session(ev *Event, rec *AgentSnapshot, id string) {
	id = v.intern(id)
	key := ev.NodeID
	if rec != nil {
		rec.ProviderSessionID = id
		key = cmp.Or(key, rec.NodeID, rec.AgentID)
	}
	if key != "" {
		put(&v.s.AgentSessions, v.intern(key), id)
	}
}

// eventRetracted retracts events. The machine still knows the id of a retracted
// message, so a repeated message does not bring it back.
func (v *view) eventRetracted(ev *Event, _ *subject) {
	for _, id := range ev.Payload.(*EventRetracted).EventIDs {
		v.s.Retracted = append(v.s.Retracted, v.keep(id))
		if msg, ok := v.messages.Take(id); ok {
			v.s.RetractedMessages = append(v.s.RetractedMessages, msg)
		}
	}
}

func (v *view) taskAssigned(ev *Event, sub *subject) {
	p := ev.Payload.(*TaskAssigned)
	agent := cmp.Or(p.AssignedAgent, ev.AgentID)
	v.s.Tasks = append(v.s.Tasks, TaskSnapshot{
		Sequence: ev.Sequence, TaskID: v.keep(ev.TaskID), AgentID: v.intern(agent), Goal: v.keep(p.Goal),
		Context: v.keep(p.Context), Constraints: v.json(sub, p.Constraints), ExpectedOutput: v.keep(p.ExpectedOutput),
	})
}

// Reasoning, text and messages.

// delta adds a piece of text to a block.
func (v *view) delta(a *AgentState, b *block, text string) {
	switch b.subject {
	case "text":
		a.Resume.textOpen = true
	case "reasoning":
		a.Resume.reasoningOpen = true
	default:
		return
	}
	b.text = append(b.text, text...)
}

// latest returns the text so far of the block of the subject that began last.
func (a *AgentState) latest(subject string) []byte {
	blocks := a.Resume.blocks
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := &blocks[i]; b.subject == subject && (!b.whole || b.id == "") {
			return b.text
		}
	}
	return nil
}

// finishTexts copies the texts of unfinished blocks to the snapshot, before the
// blocks are dropped.
func (v *view) finishTexts(a *AgentState) {
	rec, r := a.shown, &a.Resume
	if r.textOpen {
		rec.text, r.textOpen = rewrite(v, rec.text, a.latest("text")), false
	}
	if r.reasoningOpen {
		rec.reasoning, r.reasoningOpen = rewrite(v, rec.reasoning, a.latest("reasoning")), false
	}
}

// rewrite copies text into the memory of dst and returns it.
func rewrite[T string | []byte](v *view, dst []byte, text T) []byte {
	if dst == nil {
		dst = v.buffer()
	}
	return append(dst[:0], text...)
}

func (v *view) textCompleted(ev *Event, sub *subject) {
	if a := sub.agent; a != nil {
		a.shown.text, a.Resume.textOpen = rewrite(v, a.shown.text, ev.Payload.(*TextCompleted).Text), false
		v.saidInTurn(a.AgentID, a.shown.text)
	}
}

// saidInTurn notes a text of an agent in its latest open turn.
func (v *view) saidInTurn(agent string, text []byte) {
	if len(v.s.Turns) == 0 {
		return
	}
	if i, ok := v.turns.LastOpen(turnKey{agent: agent}, func(i int) bool { return v.s.Turns[i].EndedAt.IsZero() }); ok {
		replace(&v.s.Turns[i].Said, string(text))
	}
}

// finishUnnamed notes the text of the block without an id that the begin or the end of a turn ends.
func (v *view) finishUnnamed(a *AgentState) {
	if v == nil || !a.Resume.textOpen {
		return
	}
	blocks := a.Resume.blocks
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := &blocks[i]; b.subject == "text" && (!b.whole || b.id == "") { // see latest
			if b.id == "" {
				a.shown.text, a.Resume.textOpen = rewrite(v, a.shown.text, b.text), false
				v.saidInTurn(a.AgentID, a.shown.text)
			}
			return
		}
	}
}

// requests are the attributes that tell what a turn was asked, the most telling first. No document
// lists them.
var requests = [...]string{"user_input", "user_message", "input", "prompt", "query", "question", "message"}

// requestIn returns the request among the attributes of a turn, or "".
func requestIn(attributes string) (text string) {
	for _, name := range requests {
		if text = jsonwire.Text(jsonwire.Member(attributes, name)); text != "" {
			break
		}
	}
	return text
}

func (v *view) agentReasoned(ev *Event, sub *subject) {
	if a := sub.agent; a != nil {
		a.shown.reasoning, a.Resume.reasoningOpen = rewrite(v, a.shown.reasoning, ev.Payload.(*AgentReasoned).Reasoning), false
	}
}

func (v *view) orchestratorDecided(ev *Event, sub *subject) {
	v.replaceJSON(sub, &v.s.RunOrchestrator, ev.Payload.(*OrchestratorDecided).Decision)
}

// messageCreated appends a message with a new id.
func (v *view) messageCreated(ev *Event, sub *subject, m *ConversationMessage) {
	if v == nil {
		return
	}
	// A slab copies the texts that every message has; deepen copies the others.
	out := *m
	out.MessageID, out.From, out.To, out.Role, out.Content = "", "", "", "", ""
	out.deepen()
	out.MessageID, out.From, out.To, out.Role = v.keep(m.MessageID), v.intern(m.From), v.intern(m.To), v.intern(m.Role)
	out.Content = v.json(sub, m.Content)
	v.messages.Add(v.keep(ev.ID), out)
}

// Tools.

func (v *view) toolCalled(ev *Event, sub *subject, p *ToolCalled, call *openCall, within string, by *AgentState) {
	t := v.tool(p.ToolID)
	c := v.newCall(ev, sub, v.keepBriefly(p.CallID), v.keepBriefly(ev.ID), t.id)
	c.Attempt, c.RetryOf, c.StartedAt, c.Within = p.Attempt, v.keepBriefly(p.RetryOf), ev.Time, within
	*call = openCall{callKey: callKey{c.AgentID, c.CallID}, event: c.EventID, step: call.step, shown: c}
	t.stats.Calls = plus(t.stats.Calls, 1)
	if by != nil {
		by.shown.ToolCalls++
	}
	v.counts(by)
	v.begins()
}

// calledLate gives the record of a call that has returned, and the counts of its tool, what its
// beginning tells.
func (v *view) calledLate(ev *Event, sub *subject, p *ToolCalled, end *earlyEnd, within string) {
	old, t := v.tool(end.word), v.tool(p.ToolID)
	took := elapsed(end.took, ev.Time, end.at)
	for _, m := range [...]struct {
		stats *ToolStats
		n     int
		took  time.Duration
	}{{old.stats, -1, -end.took.V}, {t.stats, 1, took.V}} {
		m.stats.Calls = plus(m.stats.Calls, m.n)
		*m.stats.counted(end.how) += m.n
		m.stats.Duration = plus(m.stats.Duration, m.took)
	}
	if *old.stats == (ToolStats{}) {
		delete(v.tools, old.id)
		delete(v.s.Tools, old.id)
	}
	for _, c := range v.closed {
		if c.ReturnedAt.Equal(end.at) && TimeKnown(c.ReturnedAt) && c.CallID == p.CallID && c.AgentID == end.agent {
			if sub.agent != nil {
				c.AgentID = sub.agent.AgentID
			}
			c.Sequence, c.EventID, c.ToolID, c.Step, c.Within = ev.Sequence, v.keepBriefly(ev.ID), t.id, ev.Step, within
			c.Attempt, c.RetryOf, c.StartedAt, c.Duration, c.ReturnedAt = p.Attempt, v.keepBriefly(p.RetryOf), ev.Time, took, time.Time{}
			break
		}
	}
}

// modelCalledLate counts a model call that has returned before its beginning.
func (v *view) modelCalledLate(a *AgentState, ev *Event, end *earlyEnd) {
	if v == nil {
		return
	}
	rec := a.shown
	if !end.whole {
		rec.ModelCalls = plus(rec.ModelCalls, 1)
	}
	rec.ModelDuration = plus(rec.ModelDuration, elapsed(end.took, ev.Time, end.at).V-end.took.V)
}

// counted returns the number of calls with statuses of that kind.
func (s *ToolStats) counted(status ToolStatus) *int {
	switch endword.Of(string(status)) {
	case endword.Succeeded:
		return &s.OK
	case endword.Failed:
		return &s.Failed
	case endword.Refused:
		return &s.Refused
	}
	return &s.Undecided
}

// counted returns the number of the agent's calls with statuses of that kind.
func (a *AgentSnapshot) counted(status ToolStatus) *int {
	switch endword.Of(string(status)) {
	case endword.Succeeded:
		return &a.ToolSuccesses
	case endword.Failed:
		return &a.ToolFailures
	case endword.Refused:
		return &a.ToolRefusals
	}
	return &a.ToolsUndecided
}

// countCall counts n more calls with statuses of that kind.
func (a *AgentSnapshot) countCall(status ToolStatus, n int) {
	a.ToolCalls = plus(a.ToolCalls, n)
	*a.counted(status) = plus(*a.counted(status), n)
}

// newCall returns the record of a call. id, event and tool are copies that the fold
// keeps.
func (v *view) newCall(ev *Event, sub *subject, id, event, tool string) *ToolCallSnapshot {
	c := v.calls.Get()
	*c = ToolCallSnapshot{Sequence: ev.Sequence, CallID: id, ToolID: tool, EventID: event, Step: ev.Step}
	if sub.agent != nil {
		c.AgentID = sub.agent.AgentID
	} else {
		c.AgentID = v.intern(sub.key)
	}
	return c
}

// dropCall takes a call out of the snapshot: Tools still counts it.
func (v *view) dropCall(c *ToolCallSnapshot) {
	v.calls.Put(c)
	v.s.DroppedCalls = plus(v.s.DroppedCalls, 1)
}

// returned reports whether a kept call of the agent with that id has returned.
func (v *view) returned(sub *subject, id string) bool {
	return slices.ContainsFunc(v.closed, func(c *ToolCallSnapshot) bool { return c.CallID == id && c.AgentID == sub.key })
}

// toolReturned closes a call, and reports whether it counts. c is nil when no call was open. A
// second return of a call that has returned does not count.
func (v *view) toolReturned(ev *Event, sub *subject, p *ToolReturned, c *ToolCallSnapshot, by *AgentState) (counts bool) {
	refused := p.Status == ToolStatusForbidden || p.Status == ToolStatusRateLimited
	v.counts(by)
	if c == nil && !p.OneEvent && !refused && v.returned(sub, p.CallID) {
		v.returnsAgain()
		return false
	}
	t := v.tool(p.ToolID)
	stats := t.stats
	if c == nil {
		c = v.newCall(ev, sub, v.keepBriefly(p.CallID), v.keepBriefly(ev.ID), t.id)
		if p.wholeCall() {
			if at := ev.Time.Add(-p.Duration.V).UTC(); !TimeKnown(ev.Time) {
				c.StartedAt = ev.Time
			} else if at.Year() >= 0 && at.Year() <= 9999 {
				c.StartedAt = at
			}
		}
		if !refused { // without its event, the call began before the log does
			if !p.OneEvent || ev.SpanID != "" {
				c.ReturnedAt = ev.Time
			}
			stats.Calls = plus(stats.Calls, 1)
			if by != nil {
				by.shown.ToolCalls++
			}
			v.begins()
		}
	} else {
		v.ends(c.StartedAt, c.ToolID, "", "")
	}
	c.Status, c.Word, c.Duration = p.Status.constant(), v.intern(p.StatusWord), elapsed(p.Duration, c.StartedAt, ev.Time)
	if endword.Of(string(p.Status)) != endword.Succeeded {
		c.Error = v.keepBriefly(p.reason())
	} else if p.Error.OK {
		c.Error = v.keepBriefly(p.Error.V.Message)
	}
	*stats.counted(p.Status) = plus(*stats.counted(p.Status), 1)
	if by != nil {
		*by.shown.counted(p.Status) = plus(*by.shown.counted(p.Status), 1)
	}
	stats.Duration = plus(stats.Duration, c.Duration.V)
	v.keepCall(c)
	return true
}

// keepCall adds a closed call to the snapshot. When the limit is reached it
// replaces the oldest one.
func (v *view) keepCall(c *ToolCallSnapshot) {
	if len(v.closed) < v.keepCalls {
		if cap(v.closed) == 0 && v.keepCalls == defaultKeepCalls {
			v.closed = make([]*ToolCallSnapshot, 0, defaultKeepCalls/4)
		}
		v.closed = append(v.closed, c)
		return
	}
	if v.keepCalls > 0 {
		c, v.closed[v.oldest] = v.closed[v.oldest], c
		v.oldest = (v.oldest + 1) % v.keepCalls
	}
	v.dropCall(c)
}

func (v *view) tool(id string) tool {
	t, ok := v.tools[id]
	if !ok {
		t = tool{v.intern(id), v.stats.Get()}
		put(&v.tools, t.id, t)
		put(&v.s.Tools, t.id, t.stats)
	}
	return t
}

// modelReturned closes a model call. c is empty when no call was open.
func (v *view) modelReturned(ev *Event, sub *subject, p *ModelReturned, c *ModelCallSnapshot) {
	u := &v.s.Usage.Unassigned
	if a := sub.agent; a != nil {
		rec := a.shown
		u = &rec.Usage
		if p.OneEvent {
			rec.ModelCalls = plus(rec.ModelCalls, 1)
		}
		if p.Error.OK {
			rec.ModelFailures = plus(rec.ModelFailures, 1)
		}
		rec.ModelDuration = plus(rec.ModelDuration, elapsed(p.Duration, c.StartedAt, ev.Time).V)
	}
	v.s.Resume.reported = v.s.Resume.reported || p.Usage.OK || p.CostUSD.OK
	u.returned(v, p, cmp.Or(p.Model, c.Model))
}

// Handoffs.

func (v *view) agentHandoff(ev *Event, _ *subject) {
	p := ev.Payload.(*AgentHandoff)
	v.s.Handoffs = append(v.s.Handoffs, HandoffSnapshot{Sequence: ev.Sequence, From: v.intern(p.From.AgentID), To: v.intern(p.To.AgentID), Reason: v.keep(p.Reason)})
}

// handoffRequested adds a request. It returns the key with copied texts, and the
// index of the record.
func (v *view) handoffRequested(ev *Event, p *HandoffRequested, key handoffKey) (handoffKey, int) {
	if v == nil {
		return key, roster.NoPlace
	}
	h := HandoffSnapshot{
		Sequence: ev.Sequence, HandoffID: v.keep(p.HandoffID), From: v.intern(p.From.AgentID), To: v.intern(p.To.AgentID),
		Reason: v.keep(p.Reason), ContextDigest: v.keep(p.ContextDigest), SpanID: v.keep(ev.SpanID), Open: true,
	}
	v.s.Handoffs = append(v.s.Handoffs, h)
	return newHandoffKey(h.HandoffID, h.From, h.To), len(v.s.Handoffs) - 1
}

// Turns and steps.

func (v *view) facts() *FactsSnapshot {
	v.s.Facts.OK = true
	return &v.s.Facts.V
}

func (v *view) intentClassified(ev *Event, sub *subject) {
	p := ev.Payload.(*IntentClassified)
	f := v.facts()
	f.Intents = append(f.Intents, IntentSnapshot{Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Intent: v.intern(p.Intent), Confidence: p.Confidence})
}

func (v *view) planProposed(ev *Event, sub *subject) {
	p := ev.Payload.(*PlanProposed)
	plan := PlanSnapshot{Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Strategy: v.intern(p.Strategy)}
	for i := range p.Steps {
		plan.Steps = append(plan.Steps, *p.Steps[i].clone())
	}
	f := v.facts()
	f.Plans = append(f.Plans, plan)
}

func (v *view) turnStarted(ev *Event, sub *subject) {
	if v == nil {
		return
	}
	v.s.SessionEndedAt = time.Time{}
	v.newTurn(v.turn(ev, sub, ev.Payload.(*TurnStarted)))
}

func (v *view) turn(ev *Event, sub *subject, p *TurnStarted) TurnSnapshot {
	return TurnSnapshot{
		Sequence: ev.Sequence, Turn: p.Turn, Name: v.intern(p.Name), AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID), StartedAt: ev.Time,
		Asked: v.keep(requestIn(string(p.Attributes))),
	}
}

// turnStartedLate gives the record of a turn that has ended what its start tells.
func (v *view) turnStartedLate(ev *Event, sub *subject) {
	if v == nil {
		return
	}
	start := spanOf(ev, sub)
	for i := range slices.Backward(v.s.Turns) {
		t := &v.s.Turns[i]
		end := earlyEnd{kind: start.kind, agent: t.AgentID, id: turnID(t.Turn), span: t.SpanID}
		if !t.StartedAt.IsZero() || !start.at.Before(t.EndedAt) || !end.same(&start) {
			continue
		}
		was := *t
		*t = v.turn(ev, sub, ev.Payload.(*TurnStarted))
		t.Sequence = min(t.Sequence, was.Sequence) // the place of what came in between is in the turn
		t.EndSequence, t.EndedAt, t.Duration, t.Error = max(was.EndSequence, ev.Sequence), was.EndedAt, elapsed(was.Duration, t.StartedAt, was.EndedAt), was.Error
		t.Said, t.Text, t.Intent = was.Said, was.Text, was.Intent
		v.noteTurn(i)
		return
	}
}

func (v *view) newTurn(t TurnSnapshot) *TurnSnapshot {
	v.s.Turns = append(v.s.Turns, t)
	i := len(v.s.Turns) - 1
	v.noteTurn(i)
	return &v.s.Turns[i]
}

// noteTurn adds a turn to the indexes.
func (v *view) noteTurn(i int) {
	t := &v.s.Turns[i]
	put(&v.lastTurn, t.AgentID, i)
	v.turns.Add(turnKey{agent: t.AgentID}, i)
	if t.Turn.OK {
		v.turns.Add(turnKey{agent: t.AgentID, number: t.Turn}, i)
	}
	if t.SpanID != "" {
		v.turns.Add(turnKey{span: t.SpanID}, i)
	}
}

// openTurn returns the index of the turn that an end closes: the last open turn of its
// span that has not another number or agent, else the agent's last open turn with its
// number, or without a number the agent's last open turn.
func (v *view) openTurn(ev *Event, agent string, number Opt[int]) (int, bool) {
	open := func(i int) bool { return v.s.Turns[i].EndedAt.IsZero() }
	if ev.SpanID != "" {
		if i, ok := v.turns.LastOpen(turnKey{span: ev.SpanID}, open); ok {
			t := &v.s.Turns[i]
			if sameOrUnsaid(t.AgentID, agent) && (t.Turn == number || !t.Turn.OK || !number.OK) {
				return i, true
			}
		}
	}
	return v.turns.LastOpen(turnKey{agent: agent, number: number}, open)
}

// whose returns the id of the agent that acts in an event. Of twins the event names both: the
// subject is the one in whose span it is.
func whose(ev *Event, sub *subject) string {
	if ev.AgentID != "" && sub.agent != nil {
		return sub.agent.AgentID
	}
	return ev.AgentID
}

func sameOrUnsaid(a, b string) bool { return a == b || a == "" || b == "" }

func (v *view) turnEnded(ev *Event, sub *subject) {
	p := ev.Payload.(*TurnEnded)
	var t *TurnSnapshot
	if i, ok := v.openTurn(ev, whose(ev, sub), p.Turn); ok {
		t = &v.s.Turns[i]
	} else {
		t = v.newTurn(TurnSnapshot{Sequence: ev.Sequence, Turn: p.Turn, AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID)})
	}
	t.EndSequence = ev.Sequence
	t.EndedAt, t.Duration = ev.Time, elapsed(p.Duration, t.StartedAt, ev.Time)
	v.began(t.StartedAt)
	t.Error = v.errorInfo(sub, p.Error)
}

func (v *view) turnSummarized(ev *Event, sub *subject) {
	p := ev.Payload.(*TurnSummarized)
	if !v.s.Resume.reported {
		v.usage(sub).summarized(v, p)
	}
	v.s.Resume.reported = false
	var t *TurnSnapshot
	if i, ok := v.lastTurn[whose(ev, sub)]; ok {
		t = &v.s.Turns[i]
	} else {
		// The rules know of no open turn.
		t = v.newTurn(TurnSnapshot{Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), EndSequence: ev.Sequence, EndedAt: ev.Time})
	}
	t.Text, t.Intent = v.keep(p.Text), v.keep(p.Intent)
}

func (v *view) stepStarted(ev *Event, sub *subject, within string) {
	if v != nil {
		st := v.step(ev, sub)
		st.Within = within
		v.newStep(st)
	}
}

func (v *view) step(ev *Event, sub *subject) StepSnapshot {
	p := ev.Payload.(*StepStarted)
	return StepSnapshot{
		Sequence: ev.Sequence, StepID: v.intern(p.StepID), Name: v.intern(p.Name), Description: v.keep(p.Description),
		AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID), StartedAt: ev.Time,
	}
}

// stepStartedLate gives the record of a step that has ended what its start tells.
func (v *view) stepStartedLate(ev *Event, sub *subject, within string) {
	if v == nil {
		return
	}
	start := spanOf(ev, sub)
	for i := range slices.Backward(v.s.Steps) {
		st := &v.s.Steps[i]
		end := earlyEnd{kind: start.kind, agent: st.AgentID, id: st.StepID, span: st.SpanID}
		if !st.StartedAt.IsZero() || !start.at.Before(st.EndedAt) || !end.same(&start) {
			continue
		}
		was := *st
		*st = v.step(ev, sub)
		st.Within = within
		st.Sequence = min(st.Sequence, was.Sequence)
		st.EndSequence, st.EndedAt, st.Duration, st.Error = max(was.EndSequence, ev.Sequence), was.EndedAt, elapsed(was.Duration, st.StartedAt, was.EndedAt), was.Error
		v.noteStep(i)
		return
	}
}

func (v *view) newStep(st StepSnapshot) *StepSnapshot {
	v.s.Steps = append(v.s.Steps, st)
	v.noteStep(len(v.s.Steps) - 1)
	return &v.s.Steps[len(v.s.Steps)-1]
}

// noteStep adds a step to the indexes.
func (v *view) noteStep(i int) {
	st := &v.s.Steps[i]
	v.steps.Add(stepKey{agent: st.AgentID, step: st.StepID}, i)
	if st.SpanID != "" {
		v.steps.Add(stepKey{span: st.SpanID}, i)
	}
}

// openStep returns the index of the step that an end closes: the agent's last open step
// with its id, else the last open step of its span, the end of which may have an id that
// a reader made up.
func (v *view) openStep(ev *Event, agent string, id string) (int, bool) {
	open := func(i int) bool { return v.s.Steps[i].EndedAt.IsZero() }
	i, ok := v.steps.LastOpen(stepKey{agent: agent, step: id}, open)
	if ev.SpanID == "" || ok && v.s.Steps[i].SpanID == ev.SpanID {
		return i, ok
	}
	if at, found := v.steps.LastOpen(stepKey{span: ev.SpanID}, open); found && sameOrUnsaid(v.s.Steps[at].AgentID, agent) && (!ok || v.s.Steps[at].StepID == id) {
		return at, true
	}
	return i, ok
}

func (v *view) stepEnded(ev *Event, sub *subject) {
	p := ev.Payload.(*StepEnded)
	var st *StepSnapshot
	if i, ok := v.openStep(ev, whose(ev, sub), p.StepID); ok {
		st = &v.s.Steps[i]
	} else {
		st = v.newStep(StepSnapshot{Sequence: ev.Sequence, StepID: v.intern(p.StepID), AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID)})
	}
	st.EndSequence = ev.Sequence
	st.EndedAt, st.Duration = ev.Time, elapsed(p.Duration, st.StartedAt, ev.Time)
	v.began(st.StartedAt)
	st.Error = v.errorInfo(sub, p.Error)
}

// Nodes, edges and state.

// setNode sets the status of a node. It returns a copy of the id that the fold
// keeps.
func (v *view) setNode(id string, status NodeStatus) string {
	id = v.intern(id) // a map keeps the key that it is written with
	put(&v.s.NodeStatus, id, status)
	if status == NodeStatusRunning || status == NodeStatusSuspended {
		put(&v.active, id, struct{}{})
	} else {
		delete(v.active, id)
	}
	return id
}

func (v *view) nodeStarted(ev *Event, _ *subject) {
	if ev.NodeID != "" {
		v.nodeRuns(ev.NodeID)
	}
}

// nodeRuns opens one execution of a node.
func (v *view) nodeRuns(id string) {
	s := v.s
	id = v.setNode(id, NodeStatusRunning)
	put(&s.NodeRuns, id, plus(s.NodeRuns[id], 1))
	delete(s.Suspended, id)
	s.CurrentNodeID = id
}

// nodeEnded closes one execution of a node.
func (v *view) nodeEnded(id string, status NodeStatus) {
	s := v.s
	if n := s.NodeRuns[id] - 1; n > 0 {
		s.NodeRuns[v.intern(id)] = n // other executions of the node are open
		return
	}
	delete(s.NodeRuns, id)
	delete(s.Suspended, id)
	v.setNode(id, status)
	if s.CurrentNodeID == id {
		s.CurrentNodeID = ""
	}
}

func (v *view) nodeCompleted(ev *Event, sub *subject) {
	if ev.NodeID == "" {
		return
	}
	v.unqueue(ev.NodeRunID)
	v.nodeEnded(ev.NodeID, NodeStatusDone)
	if p := ev.Payload.(*NodeCompleted); p.Outputs != "" {
		v.setOutput(ev.NodeID, v.copyJSON(sub, p.Outputs))
	}
}

func (v *view) nodeFailed(ev *Event, _ *subject) {
	if ev.NodeID == "" {
		return
	}
	v.unqueue(ev.NodeRunID)
	v.failNode(ev.NodeID, ev.Payload.(*NodeFailed).Error.Message)
}

// failNode closes one execution of a node, which failed. The node's output is why.
func (v *view) failNode(id, why string) {
	v.nodeEnded(id, NodeStatusFailed)
	v.setOutput(id, `{"error":`+JSONString(why)+`}`)
}

func (v *view) nodeSkipped(ev *Event, _ *subject) {
	if ev.NodeID == "" {
		return
	}
	v.setNode(ev.NodeID, NodeStatusDone)
	delete(v.s.Suspended, ev.NodeID)
	v.setOutput(ev.NodeID, `{"skipped":true,"reason":`+JSONString(ev.Payload.(*NodeSkipped).Reason)+`}`)
}

// agentOfNodeEnded shows the end of an agent with its node, which failed if p is not nil.
func (v *view) agentOfNodeEnded(ev *Event, sub *subject, p *NodeFailed) {
	rec := sub.agent.shown
	rec.EndedAt, rec.Duration = ev.Time, elapsed(rec.Duration, rec.StartedAt, ev.Time)
	if p != nil {
		rec.Error = v.errorInfo(sub, Some(p.Error))
	}
}

func (v *view) setOutput(node string, output JSON) { put(&v.s.Outputs, v.intern(node), output) }

func (v *view) nodeSuspended(ev *Event, sub *subject) {
	if ev.NodeID == "" {
		return
	}
	s, p := v.s, ev.Payload.(*NodeSuspended)
	id := v.setNode(ev.NodeID, NodeStatusSuspended)
	put(&s.Suspended, id, v.intern(p.Reason))
	if p.Details != "" {
		put(&v.facts().Suspensions, id, v.copyJSON(sub, p.Details))
	} else {
		delete(s.Facts.V.Suspensions, id)
	}
	if n := s.NodeRuns[id] - 1; n > 0 {
		s.NodeRuns[id] = n
	} else {
		delete(s.NodeRuns, id)
	}
}

func (v *view) edgeKey(id, from, to string) string {
	if id == "" {
		id = from + "->" + to
	}
	return v.intern(id)
}

func (v *view) edgeFired(ev *Event, _ *subject) {
	p := ev.Payload.(*EdgeFired)
	edge := v.edgeKey(p.EdgeID, p.From, p.To)
	put(&v.s.EdgeStatus, edge, EdgeStatusFired)
	v.s.Resume.lastEdge = edge
	if st := v.s.NodeStatus[p.To]; st == NodeStatusDone || st == NodeStatusFailed {
		v.setNode(p.To, NodeStatusPending) // a loop goes round
	}
}

func (v *view) edgeSkipped(ev *Event, _ *subject) {
	p := ev.Payload.(*EdgeSkipped)
	put(&v.s.EdgeStatus, v.edgeKey(p.EdgeID, p.From, p.To), EdgeStatusSkipped)
}

func (v *view) loopIterated(ev *Event, _ *subject) {
	p := ev.Payload.(*LoopIterated)
	edge := cmp.Or(p.EdgeID, v.s.Resume.lastEdge)
	put(&v.s.LoopCounters, v.intern(edge), p.Iteration)
}

// Workflows.

// workflow returns the workflow of an event: the latest one with its id, or a new one.
func (v *view) workflow(ev *Event) *WorkflowSnapshot {
	if i, ok := v.workflows[ev.WorkflowID]; ok {
		return &v.s.Workflows[i]
	}
	return v.newWorkflow(ev)
}

func (v *view) newWorkflow(ev *Event) *WorkflowSnapshot {
	v.s.Workflows = append(v.s.Workflows, WorkflowSnapshot{Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID)})
	i := len(v.s.Workflows) - 1
	put(&v.workflows, v.s.Workflows[i].WorkflowID, i)
	return &v.s.Workflows[i]
}

func (v *view) workflowCreated(ev *Event, _ *subject) {
	p := ev.Payload.(*WorkflowCreated)
	w := v.workflow(ev)
	if w.Finalized {
		w = v.newWorkflow(ev)
	}
	w.Script, w.Phases, w.EstimatedTokens = strings.Clone(p.Script), nil, p.EstimatedTokens
	for _, phase := range p.Phases {
		w.Phases = append(w.Phases, v.intern(phase))
	}
}

func (v *view) workflowApproved(ev *Event, _ *subject) {
	p := ev.Payload.(*WorkflowApproved)
	w := v.workflow(ev)
	w.ApprovedBy, w.ApprovedAt = v.intern(p.ApprovedBy), p.ApprovedAt
}

// phaseStarted adds a phase, or starts the latest open one again. The texts of key are
// copies that the fold keeps.
func (v *view) phaseStarted(ev *Event, key phaseKey, again bool, resumes int) {
	if v == nil {
		return
	}
	v.workflow(ev)
	at, ok := len(v.s.Phases), false
	if again {
		at, ok = v.openPhase(key, "")
	}
	if !ok {
		v.s.Phases = append(v.s.Phases, PhaseSnapshot{Sequence: ev.Sequence, WorkflowID: key.workflow, Phase: key.phase, Open: true, StartedAt: ev.Time})
	}
	ph, p := &v.s.Phases[at], ev.Payload.(*PhaseStarted)
	ph.SpanID, ph.resumes = v.keep(ev.SpanID), resumes
	if p.InputCount.OK {
		ph.InputCount = p.InputCount
	}
	v.notePhase(at, !ok)
}

// phaseStartedLate gives the passage through a phase that has ended what its start tells.
func (v *view) phaseStartedLate(ev *Event, key phaseKey, end *earlyEnd) {
	if v == nil {
		return
	}
	for i := range slices.Backward(v.s.Phases) {
		ph := &v.s.Phases[i]
		if ph.WorkflowID == key.workflow && ph.Phase == key.phase && ph.StartedAt.IsZero() && ph.EndedAt.Equal(end.at) {
			ph.Sequence, ph.StartedAt, ph.SpanID, ph.InputCount = ev.Sequence, ev.Time, v.keep(ev.SpanID), ev.Payload.(*PhaseStarted).InputCount
			v.notePhase(i, true)
			return
		}
	}
}

// notePhase adds a passage through a phase to the indexes, under its span alone if it is not new.
func (v *view) notePhase(i int, isNew bool) {
	ph := &v.s.Phases[i]
	key := passageKey{phaseKey: phaseKey{ph.WorkflowID, ph.Phase}}
	if isNew {
		v.phases.Add(key, i)
	}
	if key.span = ph.SpanID; key.span != "" {
		v.phases.Add(key, i)
	}
}

// openPhase returns the index of the latest open passage through a phase, of those that started
// in a span unless that is empty.
func (v *view) openPhase(key phaseKey, span string) (int, bool) {
	return v.phases.LastOpen(passageKey{key, span}, func(i int) bool {
		return v.s.Phases[i].Open && (span == "" || v.s.Phases[i].SpanID == span)
	})
}

// phaseCompleted closes the latest open passage of its span, else the latest one of all, or adds
// one when none is open.
func (v *view) phaseCompleted(ev *Event, key phaseKey) {
	if v == nil {
		return
	}
	at, open := v.openPhase(key, ev.SpanID)
	if !open {
		at, open = v.openPhase(key, "")
	}
	if !open {
		v.workflow(ev)
		v.s.Phases = append(v.s.Phases, PhaseSnapshot{Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase)})
		at = len(v.s.Phases) - 1
	}
	ph, p := &v.s.Phases[at], ev.Payload.(*PhaseCompleted)
	ph.Open, ph.EndedAt, ph.OutputCount, ph.Tokens = false, ev.Time, p.OutputCount, p.Tokens
	v.began(ph.StartedAt)
}

// phaseNotCompleted closes the latest open passage of its span, else the latest one of all.
func (v *view) phaseNotCompleted(ev *Event, key phaseKey, word, reason string) {
	if v == nil {
		return
	}
	at, open := v.openPhase(key, ev.SpanID)
	if !open {
		at, open = v.openPhase(key, "")
	}
	if !open {
		return
	}
	ph := &v.s.Phases[at]
	ph.Open, ph.EndedAt, ph.Ended = false, ev.Time, v.intern(word)
	if reason != "" {
		ph.Error = Some(ErrorInfo{Message: v.keep(reason)})
	}
}

func (v *view) checkpointSaved(ev *Event, _ *subject) {
	v.workflow(ev)
	v.s.Checkpoints = append(v.s.Checkpoints, CheckpointSnapshot{
		Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase), At: ev.Time, StateBytes: Some(ev.Payload.(*CheckpointSaved).StateBytes),
	})
}

func (v *view) checkpointResumed(ev *Event, _ *subject) {
	v.workflow(ev)
	v.s.Checkpoints = append(v.s.Checkpoints, CheckpointSnapshot{
		Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase), At: ev.Payload.(*CheckpointResumed).ResumedAt, Resumed: true,
	})
}

func (v *view) workflowFinalized(ev *Event, _ *subject) {
	p := ev.Payload.(*WorkflowFinalized)
	w := v.workflow(ev)
	w.Finalized, w.FinalizedAt, w.TotalTokens, w.TotalAgents, w.Duration = true, ev.Time, Some(p.TotalTokens), Some(p.TotalAgents), Some(p.Duration)
}

// workflowNotFinalized closes the latest open workflow of an id.
func (v *view) workflowNotFinalized(ev *Event, id, word, reason string) {
	if v == nil {
		return
	}
	for i := range slices.Backward(v.s.Workflows) {
		w := &v.s.Workflows[i]
		if w.WorkflowID != id || w.Finalized {
			continue
		}
		w.Finalized, w.FinalizedAt, w.Ended = true, ev.Time, v.intern(word)
		if reason != "" {
			w.Error = Some(ErrorInfo{Message: v.keep(reason)})
		}
		return
	}
}

// People.

// approvalRequestedLate gives the record of an answer what its request tells, and returns it and its
// index. A snapshot that was made by hand may lack the record.
func (v *view) approvalRequestedLate(ev *Event, p *ApprovalRequested, about callKey, end *earlyEnd) (a *ApprovalSnapshot, at int) {
	s := v.s
	for i := range slices.Backward(s.Approvals) {
		was := s.Approvals[i]
		if was.ApprovalID != p.ApprovalID || !was.RequestedAt.IsZero() || !was.AnsweredAt.Equal(end.at) {
			continue
		}
		a = &s.Approvals[i]
		*a = v.approval(ev, p, about)
		a.Open, a.ClosedBy, a.AnsweredAt = false, was.ClosedBy, was.AnsweredAt
		a.Granted, a.By, a.Feedback, a.Answer = was.Granted, was.By, was.Feedback, was.Answer
		return a, i
	}
	s.Approvals = append(s.Approvals, v.approval(ev, p, about))
	at = len(s.Approvals) - 1
	a = &s.Approvals[at]
	a.Open, a.AnsweredAt = false, end.at
	return a, at
}

// approval returns the record of a request.
func (v *view) approval(ev *Event, p *ApprovalRequested, about callKey) ApprovalSnapshot {
	return ApprovalSnapshot{
		Sequence: ev.Sequence, ApprovalID: v.keep(p.ApprovalID), Action: v.intern(p.Action), Reason: v.keep(beginning(p.Reason)), CallID: v.keep(p.CallID),
		ToolID: v.intern(p.ToolID), ArgumentsHash: v.keep(p.ArgumentsHash), Timeout: p.Timeout,
		AgentID: about.agent, RequestedAt: ev.Time, Open: true,
	}
}

// approvalRequested adds the record of an approval. It returns copies of the id and the
// call that the fold keeps, and the index of the record.
func (v *view) approvalRequested(ev *Event, p *ApprovalRequested, about callKey) (id, call string, at int) {
	s := v.s
	a := v.approval(ev, p, about)
	s.Approvals = append(s.Approvals, a)
	return a.ApprovalID, a.CallID, len(s.Approvals) - 1
}

// approvalAnswered answers the record at the index at, or a new record when no
// approval was open.
func (v *view) approvalAnswered(ev *Event, sub *subject, at int, open bool) {
	if v == nil {
		return
	}
	s := v.s
	if !open {
		at = len(s.Approvals)
		s.Approvals = append(s.Approvals, ApprovalSnapshot{ApprovalID: v.keep(approvalOf(ev).id), ClosedBy: sub.kind.Kind})
	}
	a := &s.Approvals[at]
	v.began(a.RequestedAt)
	v.countsFor(a.AgentID)
	a.AnsweredAt = ev.Time
	switch p := ev.Payload.(type) {
	case *ApprovalGranted:
		a.Granted, a.By, a.Feedback, a.Answer = true, v.intern(cmp.Or(p.ApprovedBy, ev.Actor)), v.keep(p.Feedback), v.intern(p.Answer)
	case *ApprovalRejected:
		a.Granted, a.By, a.Feedback, a.Answer = false, v.intern(cmp.Or(p.RejectedBy, ev.Actor)), v.keep(p.Feedback), v.intern(p.Answer)
	}
	delete(s.Suspended, ev.NodeID)
}

// clarificationRequested adds the record of a clarification, as approvalRequested does.
func (v *view) clarificationRequested(ev *Event, sub *subject, p *ClarificationRequested, about callKey) (id, call string, at int) {
	s := v.s
	id, call = v.keep(p.InterruptID), v.keep(p.CallID)
	c := ClarificationSnapshot{
		Sequence: ev.Sequence, InterruptID: id, CallID: call, AgentID: about.agent, RequestedAt: ev.Time, Open: true,
	}
	for i := range p.Questions {
		q := *p.Questions[i].clone()
		if !sub.sound {
			q.Schema = soundJSON(q.Schema)
		}
		c.Questions = append(c.Questions, q)
	}
	s.Clarifications = append(s.Clarifications, c)
	return id, call, len(s.Clarifications) - 1
}

// clarificationRequestedLate gives the record of an answer what its request tells.
func (v *view) clarificationRequestedLate(ev *Event, sub *subject, p *ClarificationRequested, about callKey, end *earlyEnd) {
	if v == nil {
		return
	}
	s := v.s
	for i := range slices.Backward(s.Clarifications) {
		was := &s.Clarifications[i]
		if was.InterruptID != p.InterruptID || !was.RequestedAt.IsZero() || !was.AnsweredAt.Equal(end.at) {
			continue
		}
		_, _, at := v.clarificationRequested(ev, sub, p, about)
		c := s.Clarifications[at]
		s.Clarifications = s.Clarifications[:at]
		was = &s.Clarifications[i]
		c.Open, c.ClosedBy, c.AnsweredAt, c.Answers, c.AnsweredBy = false, was.ClosedBy, was.AnsweredAt, was.Answers, was.AnsweredBy
		*was = c
		return
	}
}

// clarificationResolved answers the record at the index at, or a new record when no
// clarification was open.
func (v *view) clarificationResolved(ev *Event, sub *subject, at int, open bool) {
	if v == nil {
		return
	}
	p, s := ev.Payload.(*ClarificationResolved), v.s
	if !open {
		at = len(s.Clarifications)
		s.Clarifications = append(s.Clarifications, ClarificationSnapshot{InterruptID: v.keep(p.InterruptID), ClosedBy: KindClarificationResolved})
	}
	c := &s.Clarifications[at]
	c.AnsweredAt, c.Answers, c.AnsweredBy = ev.Time, v.json(sub, p.Answers), v.intern(p.AnsweredBy)
	delete(s.Suspended, ev.NodeID)
}

func (v *view) commandReceived(ev *Event, _ *subject) {
	p := ev.Payload.(*CommandReceived)
	if p.Rejected != "" {
		return
	}
	switch p.Command.Type {
	case CommandAbort, CommandResume: // they have their effect at once
		return
	}
	if p.Command.misrouted() == "" {
		v.queue(InboxItem{EventID: v.keep(ev.ID), Command: *p.Command.clone()})
	}
}

// queue puts a command into the inbox.
func (v *view) queue(item InboxItem) {
	v.inbox.Add(item.EventID, item)
	ids := v.commands[item.Command.RunID]
	if len(ids) >= 16 && len(ids) == cap(ids) { // before it grows
		ids = slices.DeleteFunc(ids, func(id string) bool { return v.inbox.Find(id) == nil })
	}
	put(&v.commands, item.Command.RunID, append(ids, item.EventID))
}

// unqueue takes the commands for an execution that has ended out of the inbox: nobody is
// left to consume them.
func (v *view) unqueue(nodeRunID string) {
	if nodeRunID == "" {
		return
	}
	for _, id := range v.commands[nodeRunID] {
		v.inbox.Take(id)
	}
	delete(v.commands, nodeRunID)
}

func (v *view) commandConsumed(ev *Event, _ *subject) {
	v.inbox.Take(ev.Payload.(*CommandConsumed).EventID)
}

// Assurance and resources.

func (v *view) auditChecked(ev *Event, sub *subject) {
	p := ev.Payload.(*AuditChecked)
	v.s.Audits = append(v.s.Audits, AuditSnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), CheckpointID: v.intern(p.CheckpointID), Result: p.Result.constant(), Duration: p.Duration,
	})
}

func (v *view) claimVerified(ev *Event, sub *subject) {
	p := ev.Payload.(*ClaimVerified)
	v.s.Claims = append(v.s.Claims, ClaimSnapshot{
		Sequence: ev.Sequence, FindingID: v.keep(p.FindingID), VerifierAgentID: v.intern(p.VerifierAgentID), Verdict: v.intern(p.Verdict),
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
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Claim: v.keep(p.Claim), SourceURI: v.keep(p.SourceURI), Confidence: p.Confidence, Verified: p.Verified.V,
	})
}

func (v *view) evidenceInsufficient(ev *Event, sub *subject) {
	p := ev.Payload.(*EvidenceInsufficient)
	f := v.facts()
	f.Insufficiencies = append(f.Insufficiencies, InsufficiencySnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Reason: v.keep(p.Reason), WhatWouldResolve: v.keep(p.WhatWouldResolve),
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
	v.endHandoff(p.Phase, ErrorInfo{Code: p.ErrorType, Message: p.ErrorMessage}, func(h *HandoffSnapshot) bool { return h.SpanID == ev.SpanID && h.SpanID != "" })
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
	v.s.Budgets = append(v.s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: v.intern(p.Budget), Limit: Some(p.Limit), Actual: Some(p.Actual), Reason: v.keep(beginning(p.Reason))})
}

func (v *view) capBreached(ev *Event, _ *subject) {
	p := ev.Payload.(*CapBreached)
	v.s.Budgets = append(v.s.Budgets, BudgetSnapshot{Sequence: ev.Sequence, Budget: v.intern(p.Cap), Cap: true, Limit: p.Limit, Actual: p.Observed})
}

func (v *view) blackboardItemCreated(ev *Event, sub *subject) {
	p := ev.Payload.(*BlackboardItemCreated)
	put(&v.s.Blackboard, v.intern(p.ItemID), BlackboardItem{
		ItemType: v.intern(p.ItemType), Content: v.copyJSON(sub, p.Content), SourceAgent: v.intern(p.SourceAgent), Confidence: p.Confidence,
	})
}
