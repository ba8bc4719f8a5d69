package agui

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file has the blocks of an encoder: the messages and calls that its lines open and end.

// acts count the acts that end blocks of an agent: its starts and ends all blocks, other acts the
// blocks without an id.
type acts struct{ all, unnamed int }

// ownerOf names the agent of an event: by its id, the execution of a node, or the span of its
// start.
func (s *streamOut) ownerOf(ev *agentevents.Event) string {
	span := ""
	if s.spans {
		span = ev.ParentSpanID
		switch ev.Payload.(type) {
		case *agentevents.AgentStarted, *agentevents.AgentEnded:
			span = ev.SpanID
		}
	}
	return cmp.Or(ev.AgentID, ev.NodeRunID, span)
}

// known returns the block of that name: an open one, or one that may go on.
func (s *streamOut) known(owner string, key blockKey) *block {
	if b := s.blocks[owner][key]; b != nil {
		return b
	}
	return s.shut[shutKey{owner, key}]
}

// act notes an event that may end blocks.
func (s *streamOut) act(agent string, ev *agentevents.Event) {
	a, streams := s.acts[agent]
	if !streams {
		return
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		a.all++
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		if ev.AgentID != "" || ev.NodeRunID == "" {
			return
		}
		a.all++
	case *agentevents.AgentTransition:
		if a.unnamed++; p.To.Terminal() {
			a.all++
		}
	case *agentevents.ToolCalled, *agentevents.ModelCalled:
		a.unnamed++
	default:
		return
	}
	s.acts[agent] = a
}

// ended reports whether an act after the latest delta of a block has ended it.
func (s *streamOut) ended(b *block) bool {
	now := s.acts[b.owner]
	return now.all != b.acts.all || b.key.id == "" && b.typ != call && now.unnamed != b.acts.unnamed
}

// enter finds the block of an event, a new one if it is not open.
func (e *Encoder) enter(ev *agentevents.Event) {
	e.block, e.before, e.fill, e.owner = nil, nil, "", e.s.ownerOf(ev)
	typ, id, delta := blockOf(ev.Payload)
	e.start = string(dialect.Unknown(ev, Name, remarkStart))
	role, tool := assistant, jsonwire.Text(jsonwire.Member(e.start, "toolCallName"))
	returns, oneEvent := false, false
	var index agentevents.Opt[int]
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		tool = cmp.Or(p.ToolID, tool)
	case *agentevents.ToolReturned:
		if typ, id, returns, oneEvent = call, &p.CallID, true, p.OneEvent; p.ToolID != unknown {
			tool = p.ToolID
		}
	case *agentevents.TextDelta:
		index = p.Index
	case *agentevents.AgentReasoningDelta:
		index = p.Index
	case *agentevents.MessageCreated:
		if role = p.Message.From; e.start == "" || !slices.Contains(people, role) {
			return
		}
	}
	if id == nil || delta != nil && *delta == "" {
		return
	}
	key := blockKey{typ, *id}
	b := e.s.known(e.owner, key)
	if b != nil && !b.begun && b.start == "" { // it was cut
		b.start = strings.Clone(e.start)
	}
	switch {
	case typ == call && delta != nil && tool == "" && (b == nil || b.role == called):
		return // no line can begin the call, or its arguments are complete
	case typ == text && b != nil && b.role != role:
		return // the message is another's
	case b == nil, b.role == called && (!returns || oneEvent): // the id names another call
	case b.role == called:
		e.block = b
		return
	case delta != nil:
		if !e.s.ended(b) && !(*id == "" && index.OK && index.V == 0) {
			e.block = b
			return
		}
	default:
		rest, goesOn := b.rest(wholeOf(ev.Payload))
		if e.fill = rest; goesOn || !e.s.ended(b) {
			e.block = b
			return
		}
	}
	if b != nil && b.begun && b.role != called {
		e.before = b
	}
	key.id = strings.Clone(key.id) // a block that is kept holds no text of the event
	b = &block{typ: typ, id: key.id, role: role, tool: strings.Clone(tool), start: strings.Clone(e.start),
		run: e.s.run, owner: strings.Clone(e.owner), key: key}
	c, open := e.calls[e.s.call(*id)]
	switch {
	case returns && open && e.returnable(c, oneEvent, ev):
		b.role, b.tool, b.run, b.id = called, c.tool, c.run, c.id
	case returns && tool == "" && (!e.s.of.used.has(*id) || e.s.of.returned.has(*id)): // no line begins the call
	case b.starts(jsonwire.Member(e.start, "subagentRunId")): // it began once more when it was read
	default:
		b.id = e.unique(key.id, ev)
	}
	if e.block = b; delta == nil && b.role != called {
		e.fill = wholeOf(ev.Payload)
	}
}

// returnable reports whether the event may be the return of a call that its agent has not open:
// one of an earlier run that is over, or of this run. Readers of the line have not seen a part of
// that run that comes later in the stream.
func (e *Encoder) returnable(c toolCall, oneEvent bool, ev *agentevents.Event) bool {
	if c.run == e.s.run {
		return c.owner == e.owner && !oneEvent
	}
	s := e.streams.Of(c.run)
	return s != nil && s.over && s.segment < e.s.segment && s.waits == (ev.RunID == c.run)
}

// rest returns the text that the lines before lack of a block whose whole text is known. It
// reports whether the text of these lines is the beginning of the whole.
func (b *block) rest(whole string) (rest string, goesOn bool) {
	if n := b.sent.length; n <= len(whole) && (sent{}).add(whole[:n]) == b.sent {
		rest, goesOn = strings.CutPrefix(whole[n:], string(b.text))
	}
	if !goesOn {
		return "", false
	}
	return rest, true
}

// A sent is the length and a hash of the text of a block that was cut, of which readers have all
// lines.
type sent struct {
	length int
	hash   uint64
}

// add returns a sent with more text: its hash is FNV-1a.
func (s sent) add(text string) sent {
	s.length += len(text)
	for i := range len(text) {
		s.hash = (s.hash ^ uint64(text[i])) * 1099511628211
	}
	return s
}

// unique returns an id that no other message or call of the thread has: the log's own or, if
// there is none or another one has it, one made of the event's place in its run.
func (e *Encoder) unique(id string, ev *agentevents.Event) string {
	if id != "" && !e.s.of.used.has(id) {
		return id
	}
	made := cmp.Or(id, "block") + "~" + e.s.run + "~" + strconv.FormatUint(ev.Sequence, 10)
	own := made
	for e.s.of.used.has(own) { // several events have one sequence
		e.again[made]++
		own = made + "~" + strconv.Itoa(e.again[made])
	}
	return own
}

// prepare returns the lines that the protocol needs before the line of an event.
func (e *Encoder) prepare(ev *agentevents.Event) (before string) {
	b := e.block
	member := func(name string) string { return jsonwire.Member(string(e.own), name) }
	step := func(other, name string, ends bool) {
		if e.s.steps[ev.AgentID][name] != ends {
			before = lineOf(other, member("timestamp"), member("subagentRunId"), `,"stepName":`+jsonwire.Quote(name),
				true) + "\n"
		}
	}
	switch p := ev.Payload.(type) {
	case *agentevents.StepStarted:
		step("STEP_FINISHED", p.StepID, false)
	case *agentevents.StepEnded:
		step("STEP_STARTED", p.StepID, true)
	}
	switch e.w.Type() {
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		before = e.close(ev.AgentID, false)
	case "RUN_FINISHED", "RUN_ERROR":
		before = e.close("", true)
	}
	if e.before != nil {
		before += e.before.line("END", "", "", true) + "\n"
	}
	if b == nil {
		return before
	}
	_, returned := ev.Payload.(*agentevents.ToolReturned)
	if returned && (b.role == called || b.tool == "") {
		return before
	}
	at := member("timestamp")
	if !b.begun {
		b.begun, b.agent = true, strings.Clone(member("subagentRunId"))
		if !b.starts(b.agent) {
			b.start = b.line("START", at, "", false)
		}
		before += b.start + "\n"
	}
	if e.fill != "" {
		before += b.line("", at, e.fill, true) + "\n"
	}
	if returned {
		before += b.line("END", at, "", true) + "\n"
	}
	return before
}

// after notes the line of an event.
func (e *Encoder) after(ev *agentevents.Event) {
	e.s.settle(e.w.Type(), ev)
	cmp.Or(e.streams.Of(ev.RunID), e.s).ask(ev)
	if e.s.paused {
		e.s.wait()
	}
	e.s.state.note(e.s.run, ev.Payload)
	e.s.act(e.owner, ev)
	b := e.block
	if b == nil {
		return
	}
	_, returns := ev.Payload.(*agentevents.ToolReturned)
	switch {
	case b.begun:
		e.s.of.used.add(b.id)
		e.s.of.returned.remove(b.id)
	case returns && b.role != called: // another call must not have its id
		e.s.of.used.add(b.id)
		e.s.of.returned.add(b.id)
		e.s.returned.add(b.id)
	}
	if returns {
		e.s.of.used.add(e.result)
	}
	if mine := e.s.known(b.owner, b.key) == b; returns && b.role != called && !mine {
		return // it was a call of its own: another one with its id may be open
	} else if mine || !returns { // else it is the return of another agent's call
		e.forget(b)
	}
	_, _, delta := blockOf(ev.Payload)
	switch _, calls := ev.Payload.(*agentevents.ToolCalled); {
	case delta != nil:
		b.text = append(b.text, *delta...)
		if e.s.blocks[b.owner] == nil {
			e.s.blocks[b.owner] = blocks{}
		}
		b.acts = e.s.acts[b.owner]
		e.s.blocks[b.owner][b.key], e.s.acts[b.owner] = b, b.acts
	case calls:
		b.role, b.text, b.sent = called, nil, sent{}
		e.calls[e.s.call(b.key.id)] = toolCall{e.s.run, b.tool, b.id, b.owner, strings.Clone(ev.AgentID)}
		e.shut(b, maxShut)
	case b.typ == call:
		if c := e.calls[e.s.call(b.key.id)]; c.id == b.id {
			delete(e.calls, e.s.call(b.key.id))
			if s := e.streams.Of(c.run); s != nil {
				delete(s.shut, shutKey{c.owner, b.key})
			}
		}
	}
}

// shut remembers a block that is not open, and forgets all others if there are too many.
func (e *Encoder) shut(b *block, most int) {
	if len(e.s.shut) >= most {
		clear(e.s.shut)
	}
	e.s.shut[shutKey{b.owner, b.key}] = b
}

// forget forgets the block of that name.
func (e *Encoder) forget(b *block) {
	delete(e.s.shut, shutKey{b.owner, b.key})
	if delete(e.s.blocks[b.owner], b.key); len(e.s.blocks[b.owner]) == 0 {
		delete(e.s.blocks, b.owner)
	}
}

// close returns the lines that end the open blocks, steps and sub-agents: the event's agent's, or
// all. A block that is cut may go on.
func (e *Encoder) close(agent string, all bool) string {
	var lines strings.Builder
	agents, suspended, most := []string{e.owner}, "", maxShut
	if all {
		agents, most = slices.Sorted(maps.Keys(e.s.blocks)), maxOver
	}
	if _, pauses := e.w.Ev.Payload.(*agentevents.RunPaused); pauses {
		suspended, most = `,"outcome":{"type":"suspended"}`, maxShut
	}
	byID := func(a, b *block) int { return cmp.Compare(a.key.id, b.key.id) }
	for _, typ := range []blockType{call, reasoning, text} {
		for _, agent := range agents {
			for _, b := range slices.SortedFunc(maps.Values(e.s.blocks[agent]), byID) {
				if b.typ == typ {
					lines.WriteString(b.line("END", "", "", true) + "\n")
					e.forget(b)
					b.begun, b.start, b.sent, b.text = false, "", b.sent.add(string(b.text)), nil
					e.shut(b, most)
				}
			}
		}
	}
	if agents = []string{agent}; all {
		agents = slices.Sorted(maps.Keys(e.s.steps))
	}
	for _, agent := range agents {
		for _, name := range slices.Sorted(maps.Keys(e.s.steps[agent])) {
			lines.WriteString(lineOf("STEP_FINISHED", "", quoted(agent), `,"stepName":`+jsonwire.Quote(name), true) + "\n")
		}
		delete(e.s.steps, agent)
	}
	if all {
		for _, id := range slices.Sorted(maps.Keys(e.s.going)) {
			if e.s.going[id] {
				lines.WriteString(lineOf("SUBAGENT_FINISHED", "", quoted(id), suspended, true) + "\n")
				e.s.going[id] = false
			}
		}
	}
	return lines.String()
}
