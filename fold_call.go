package agentevents

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

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
		a.shown.reasoning = rewrite(v, a.shown.reasoning, ev.Payload.(*AgentReasoned).Reasoning)
		a.Resume.reasoningOpen = false
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
			c.Attempt, c.RetryOf = p.Attempt, v.keepBriefly(p.RetryOf)
			c.StartedAt, c.Duration, c.ReturnedAt = ev.Time, took, time.Time{}
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

// returned reports whether a call of the agent with that id has returned: one of those that the snapshot
// keeps, or of the latest that it does not keep.
func (v *view) returned(sub *subject, id string) bool {
	return slices.ContainsFunc(v.closed, func(c *ToolCallSnapshot) bool { return c.CallID == id && c.AgentID == sub.key }) ||
		len(v.s.Resume.gone) > 0 && slices.Contains(v.s.Resume.gone, callHash(sub.key, id))
}

// toolReturned closes a call, and reports whether it counts. c is nil when no call was open. A
// second return of a call that has returned does not count.
func (v *view) toolReturned(ev *Event, sub *subject, p *ToolReturned,
	c *ToolCallSnapshot, by *AgentState) (counts bool) {
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
	if most := defaultKeepCalls - v.keepCalls; most > 0 {
		r := &v.s.Resume
		if len(r.gone) >= most {
			r.gone = slices.Delete(r.gone, 0, len(r.gone)-most+1)
		}
		r.gone = append(r.gone, callHash(c.AgentID, c.CallID))
	}
	v.dropCall(c)
}

// callHash identifies a call in its run. 53 bits survive JSON readers that read every number as a float64.
func callHash(agent, id string) uint64 {
	return (jsonwire.Hash(agent)*31 + jsonwire.Hash(id)) >> 11
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

// modelReturned closes a model call, and reports whether it counts. c is nil when no call was open. Of a
// second return of a call only figures count that the first one lacks.
func (v *view) modelReturned(ev *Event, sub *subject, p *ModelReturned, c *ModelCallSnapshot) (counts bool) {
	u := &v.s.Usage.Unassigned
	a := sub.agent
	if a != nil {
		u = &a.shown.Usage
	}
	if c == nil {
		c = &ModelCallSnapshot{}
		if i := u.returnedBefore(p.ModelCallID); i >= 0 && !p.OneEvent {
			v.returnsAgain()
			if first := &u.counted[i]; !first.usage && p.Usage.OK || !first.cost && p.CostUSD.OK {
				v.s.Resume.reported = true
				u.counted = slices.Delete(u.counted, i, i+1)
				u.returned(v, p, cmp.Or(p.Model, c.Model))
			}
			return false
		}
		v.begins()
		if a != nil { // without its event, the call began before the log does
			a.shown.ModelCalls = plus(a.shown.ModelCalls, 1)
		}
	} else {
		v.ends(c.StartedAt, "", c.Model, c.Provider)
	}
	if a != nil {
		rec := a.shown
		if p.Error.OK {
			rec.ModelFailures = plus(rec.ModelFailures, 1)
		}
		rec.ModelDuration = plus(rec.ModelDuration, elapsed(p.Duration, c.StartedAt, ev.Time).V)
	}
	v.s.Resume.reported = v.s.Resume.reported || p.Usage.OK || p.CostUSD.OK
	u.returned(v, p, cmp.Or(p.Model, c.Model))
	return true
}
