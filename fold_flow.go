package agentevents

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/roster"
)

// Handoffs.

func (v *view) agentHandoff(ev *Event, _ *subject) {
	p := ev.Payload.(*AgentHandoff)
	v.s.Handoffs = append(v.s.Handoffs, HandoffSnapshot{
		Sequence: ev.Sequence, From: v.intern(p.From.AgentID), To: v.intern(p.To.AgentID), Reason: v.keep(p.Reason),
	})
}

// handoffRequested adds a request. It returns the key with copied texts, and the
// index of the record.
func (v *view) handoffRequested(ev *Event, p *HandoffRequested, key handoffKey, within string) (handoffKey, int) {
	if v == nil {
		return key, roster.NoPlace
	}
	h := HandoffSnapshot{
		Sequence: ev.Sequence, HandoffID: v.keep(p.HandoffID), From: v.intern(p.From.AgentID), To: v.intern(p.To.AgentID),
		Reason: v.keep(p.Reason), ContextDigest: v.keep(p.ContextDigest),
		SpanID: v.keep(ev.SpanID), Within: v.intern(within), Open: true,
	}
	v.s.Handoffs = append(v.s.Handoffs, h)
	return newHandoffKey(h.HandoffID, h.From, h.To), len(v.s.Handoffs) - 1
}

// around returns the agent of the open turn or step that began in a span, or "".
func (v *view) around(span string) string {
	if span == "" {
		return ""
	}
	if i, ok := v.turns.LastOpen(turnKey{span: span}, func(i int) bool { return v.s.Turns[i].EndedAt.IsZero() }); ok {
		return v.s.Turns[i].AgentID
	}
	if i, ok := v.steps.LastOpen(stepKey{span: span}, func(i int) bool { return v.s.Steps[i].EndedAt.IsZero() }); ok {
		return v.s.Steps[i].AgentID
	}
	return ""
}

// handoffAccepted adds a handoff whose request the log lacks. One that is accepted again adds
// nothing.
func (v *view) handoffAccepted(ev *Event, p *HandoffAccepted, within string) {
	if v == nil || p.From.AgentID == "" || p.To.AgentID == "" {
		return
	}
	key := newHandoffKey(p.HandoffID, p.From.AgentID, p.To.AgentID)
	if slices.ContainsFunc(v.s.Handoffs, func(h HandoffSnapshot) bool {
		return key == newHandoffKey(h.HandoffID, h.From, h.To) && (h.SpanID == ev.SpanID || h.SpanID == "" || ev.SpanID == "")
	}) {
		return
	}
	v.s.Handoffs = append(v.s.Handoffs, HandoffSnapshot{
		Sequence: ev.Sequence, HandoffID: v.keep(p.HandoffID),
		From: v.intern(p.From.AgentID), To: v.intern(p.To.AgentID), Reason: v.keep(p.Reason),
		ContextDigest: v.keep(p.ContextDigest), SpanID: v.keep(ev.SpanID), Within: v.intern(within),
	})
}

// handoffRequestedLate replaces the record that the acceptance made before its request, if there is one,
// by the record at the index, and returns the index of the one that stays.
func (v *view) handoffRequestedLate(at int, end *earlyEnd) int {
	all := v.s.Handoffs
	late := &all[at]
	for i := range slices.Backward(all[:at]) {
		h := &all[i]
		if !h.Open && h.Ended == "" && h.SpanID == end.span &&
			newHandoffKey(h.HandoffID, h.From, h.To) == newHandoffKey(late.HandoffID, late.From, late.To) {
			*h, v.s.Handoffs = *late, all[:at]
			return i
		}
	}
	return at
}

// Turns and steps.

func (v *view) facts() *FactsSnapshot {
	v.s.Facts.OK = true
	return &v.s.Facts.V
}

func (v *view) intentClassified(ev *Event, sub *subject) {
	p := ev.Payload.(*IntentClassified)
	f := v.facts()
	f.Intents = append(f.Intents, IntentSnapshot{
		Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), Intent: v.intern(p.Intent), Confidence: p.Confidence,
	})
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
		Sequence: ev.Sequence, Turn: p.Turn, Name: v.intern(p.Name),
		AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID), StartedAt: ev.Time,
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
		t.EndSequence, t.EndedAt = max(was.EndSequence, ev.Sequence), was.EndedAt
		t.Duration, t.Error, t.EndMadeUp = elapsed(was.Duration, t.StartedAt, was.EndedAt), was.Error, was.EndMadeUp
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
		t = v.newTurn(TurnSnapshot{
			Sequence: ev.Sequence, Turn: p.Turn, Name: v.intern(p.Name),
			AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID),
		})
	}
	t.EndSequence = ev.Sequence
	t.EndedAt, t.Duration = ev.Time, elapsed(p.Duration, t.StartedAt, ev.Time)
	v.began(t.StartedAt)
	t.Error, t.EndMadeUp = v.errorInfo(sub, p.Error), ev.Marks.Has(MarkSynthetic)
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
		t = v.newTurn(TurnSnapshot{
			Sequence: ev.Sequence, AgentID: v.intern(whose(ev, sub)), EndSequence: ev.Sequence, EndedAt: ev.Time,
		})
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
		st.EndSequence, st.EndedAt = max(was.EndSequence, ev.Sequence), was.EndedAt
		st.Duration, st.Error = elapsed(was.Duration, st.StartedAt, was.EndedAt), was.Error
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
	at, found := v.steps.LastOpen(stepKey{span: ev.SpanID}, open)
	if found && sameOrUnsaid(v.s.Steps[at].AgentID, agent) && (!ok || v.s.Steps[at].StepID == id) {
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
		st = v.newStep(StepSnapshot{
			Sequence: ev.Sequence, StepID: v.intern(p.StepID), AgentID: v.intern(whose(ev, sub)), SpanID: v.keep(ev.SpanID),
		})
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
		v.s.Phases = append(v.s.Phases,
			PhaseSnapshot{Sequence: ev.Sequence, WorkflowID: key.workflow, Phase: key.phase, Open: true, StartedAt: ev.Time})
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
			ph.Sequence, ph.StartedAt, ph.SpanID = ev.Sequence, ev.Time, v.keep(ev.SpanID)
			ph.InputCount = ev.Payload.(*PhaseStarted).InputCount
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
		v.s.Phases = append(v.s.Phases,
			PhaseSnapshot{Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase)})
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
		Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase),
		At: ev.Time, StateBytes: Some(ev.Payload.(*CheckpointSaved).StateBytes),
	})
}

func (v *view) checkpointResumed(ev *Event, _ *subject) {
	v.workflow(ev)
	v.s.Checkpoints = append(v.s.Checkpoints, CheckpointSnapshot{
		Sequence: ev.Sequence, WorkflowID: v.intern(ev.WorkflowID), Phase: v.intern(ev.Phase),
		At: ev.Payload.(*CheckpointResumed).ResumedAt, Resumed: true,
	})
}

func (v *view) workflowFinalized(ev *Event, _ *subject) {
	p := ev.Payload.(*WorkflowFinalized)
	w := v.workflow(ev)
	w.Finalized, w.FinalizedAt, w.TotalTokens = true, ev.Time, Some(p.TotalTokens)
	v.s.Resume.endMadeUp = ev.Marks.Has(MarkSynthetic)
	w.TotalAgents, w.Duration = Some(p.TotalAgents), Some(p.Duration)
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
		v.s.Resume.endMadeUp = ev.Marks.Has(MarkSynthetic)
		if reason != "" {
			w.Error = Some(ErrorInfo{Message: v.keep(reason)})
		}
		return
	}
}

// define takes nodes, edges and initial state from a flow definition. It skips
// what it does not understand: each runtime has definitions of its own.
func (v *view) define(sub *subject, def JSON) {
	for name, value := range jsonwire.Members(string(def)) {
		switch name {
		case "nodes":
			for node := range jsonwire.Elements(value) {
				if id := idOf(node); id != "" {
					v.setNode(id, NodeStatusPending)
				}
			}
		case "edges":
			for edge := range jsonwire.Elements(value) {
				id, from, to := "", "", ""
				for name, value := range jsonwire.Members(edge) {
					switch name {
					case "id", "edgeId":
						id = jsonwire.Text(value)
					case "from":
						from = jsonwire.Text(value)
					case "to":
						to = jsonwire.Text(value)
					}
				}
				if id != "" || from != "" && to != "" {
					put(&v.s.EdgeStatus, v.edgeKey(id, from, to), EdgeStatusPending)
				}
			}
		case "state":
			for name, value := range jsonwire.Members(value) {
				v.state.Set(strings.Clone(name), string(v.copyJSON(sub, JSON(value))))
			}
		}
	}
}

// idOf returns the id of a node in a definition: the node itself if it is a
// string, else its member id or nodeId. The id may be a piece of the node's text.
func idOf(node string) string {
	id := jsonwire.Text(node)
	if id != "" {
		return id
	}
	for name, value := range jsonwire.Members(node) {
		if name == "id" || name == "nodeId" {
			id = jsonwire.Text(value)
		}
	}
	return id
}

// statePatched applies a patch to the state. It keeps the order of keys inside a
// value.
func (v *view) statePatched(ev *Event, _ *subject) {
	p := ev.Payload.(*StatePatched)
	if p.checkMore() != nil {
		return // without a value, or with too long a path: a violation says so
	}
	whole := jsonwire.Path(p.Path)
	if p.Op == PatchRemove {
		v.removeState(whole)
		return
	}
	value := soundJSON(p.Value)
	if whole == "" {
		if p.Op == PatchSet {
			v.state = jsonwire.Object{}
		}
		for name, text := range jsonwire.Members(string(value)) {
			v.state.Set(name, text)
		}
		return
	}
	name, path, nested := strings.Cut(strings.Clone(whole), ".")
	for at := v.state.Value(name); ; {
		if nested && at.SetNested(path, string(value)) {
			return
		}
		if nested {
			name, path, nested = strings.Cut(path, ".")
			at = at.At(name)
			continue
		}
		if p.Op == PatchMerge && at.IsObject() && jsonwire.IsObject(string(value)) {
			for name, text := range jsonwire.Members(string(value)) {
				at.Open().Set(name, text)
			}
		} else {
			at.Set(string(value))
		}
		return
	}
}

// removeState removes the member at a path, or the whole state. A value that is not
// there leaves no trace.
func (v *view) removeState(path string) {
	if path == "" {
		v.state = jsonwire.Object{}
		return
	}
	name, path, nested := strings.Cut(path, ".")
	object := &v.state
	for nested && object.Has(name) {
		at := object.Value(name)
		name, path, nested = strings.Cut(path, ".")
		for nested && at.Element(name) != nil {
			at = at.Element(name)
			name, path, nested = strings.Cut(path, ".")
		}
		if !at.IsObject() {
			return
		}
		object = at.Open()
	}
	if !nested {
		object.Remove(name)
	}
}

// stateText returns the members of the state as JSON texts.
func stateText(o *jsonwire.Object) map[string]JSON {
	var out map[string]JSON
	for name, text := range o.All() {
		put(&out, name, JSON(text))
	}
	return out
}
