package agentevents

import (
	"cmp"
	"slices"
	"time"
)

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
	rec.EndedAt, rec.EndMadeUp, rec.Duration = time.Time{}, false, Opt[time.Duration]{}
	rec.Outcome, rec.EndStatus, rec.EndReason, rec.Error = "", "", "", Opt[ErrorInfo]{}
	rec.Result, rec.StructuredOutput, rec.ResultSchema = "", "", ""
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
	told := sub.told && !rec.EndedAt.IsZero()
	if !told {
		rec.EndedAt = ev.Time
	}
	if !told || p.Duration.OK {
		rec.Duration = elapsed(p.Duration, rec.StartedAt, rec.EndedAt)
	}
	if !told || p.tells() {
		rec.Outcome, rec.EndStatus = AgentOutcome(v.intern(string(p.Outcome))), v.intern(p.Status)
		rec.Error = v.errorInfo(sub, p.Error)
		rec.EndMadeUp = ev.Marks.Has(MarkSynthetic)
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
