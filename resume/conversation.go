package resume

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/firsterrs"
)

// A Role tells whose message it is.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"    // an instruction: a message.created whose role is system
	RoleUser      Role = "user"      // a person, a program or another agent to the agent
	RoleAssistant Role = "assistant" // one answer of the model, or a block of text that no model call gave
	RoleTool      Role = "tool"      // the results of all calls of the message before it
)

// A Message is one message of a [Conversation].
type Message struct {
	Role Role // whose message it is
	// Text is the text of a system, user or assistant message. The blocks of an answer are
	// joined without anything between them.
	Text string
	// JSON is the content of a system or user message that is not a text. Then Text is empty.
	JSON agentevents.JSON
	// Reasoning is the reasoning of an answer, as far as it was recorded.
	Reasoning string
	// Calls are the tool calls of an answer, in the order in which they were made.
	Calls []Call
	// Results belong to a tool message: Results[i] answers Calls[i] of the message before.
	Results []Result
	// Summary: a user message is the summary of a compaction.
	Summary bool
	// Open: something is still to come. An assistant message, and the tool message after
	// it, has a call without a result. A user message came during a model call that has not
	// returned, and the answer will stand before it.
	Open bool
	// Marks qualify Text, JSON and Reasoning: MarkRedacted if a part was masked,
	// MarkSanitized if it was cut or repaired.
	Marks agentevents.Marks
}

// A Call is a tool call of an answer.
type Call struct {
	ID        string            // the id that the model gave, which its other answers may repeat; a retry has it, too
	Tool      string            // ToolCalled.ToolID
	Arguments Value             // as the first attempt has them, redacted
	Marks     agentevents.Marks // as in Message, for the event of the first attempt
}

// A Result is the outcome of a call. After several attempts it is the outcome of the last one.
type Result struct {
	CallID string                                 // Call.ID
	Tool   string                                 // Call.Tool
	Status agentevents.ToolStatus                 // how the call went; empty while it has no result
	Value  Value                                  // the tool's result, which a failed call may have, too
	Error  agentevents.Opt[agentevents.ErrorInfo] // why the call failed
	Marks  agentevents.Marks                      // as in Message, for the event of the return
}

// A Value holds arguments or a result: a text or JSON. At most one field is set.
//
// It is a text if the event has ArgumentsText or ResultText. An emitter sets these when it is
// given JSON(text) of a text that is not JSON. Without them a JSON string stays JSON: older
// logs, and callers of JSONOrString, do not tell whether it was a text.
type Value struct {
	Text string           // a text, never JSON's spelling of it
	JSON agentevents.JSON // any JSON value
}

// String returns the text, or the JSON as it is spelled.
func (v Value) String() string {
	if v.JSON != "" {
		return string(v.JSON)
	}
	return v.Text
}

// Conversation returns the messages of one agent of a run, in order, as a runtime sends them to
// a model to go on after a pause or a crash. The events come in the order of their log, such
// as from [agentevents.Reader.All]. Events of other runs and agents are passed over. The
// events alone decide:
//
//   - A user message is the Prompt of a start, or else its Task; a message.created to the agent,
//     or from "user" to nobody else; a command of type send that the agent, or the execution of
//     its node, has consumed; the answers to a clarification without a tool call. A start that
//     goes on (Resumed is set, or the agent has not ended) has the message of run.resumed
//     instead. A message to the run reaches each agent that is not a sub-agent.
//   - An assistant message is an answer of a model: text and reasoning from model.called to
//     model.returned, and tool calls from there to the next model.called. An answer with an
//     error is left out with its text and its calls. So is one that has not come, and one that
//     ended to call tools of which no call is recorded. Model calls
//     for other operations than chat, text_completion and generate_content bring no answer.
//     While model calls overlap, text belongs to the one that began last.
//   - Without a model call each block of text is a message. A tool call belongs to the message
//     before it, unless all calls of that message have returned.
//   - Deltas count where their whole block is missing, once something else follows.
//   - A tool call with RetryOf is a further attempt of the last call that had this id. So is a
//     call that repeats an id with an Attempt above 1.
//   - A compaction with a Summary replaces all messages before it by one user message. An
//     answer with an open call stays, after the summary. A compaction without a Summary
//     changes nothing.
//   - An event that event.retracted names is left out, and so is a message.created from the agent itself:
//     its text is recorded as agent.text.
//
// All starts of an agent are one conversation: a sub-agent that forgets between two calls needs
// two ids. An event whose sequence the run has passed is a repeated one, and left out. An
// agent without events has no messages.
//
// The conversation of a log that was cut off anywhere, up to the first open thing, begins the
// conversation of the whole log as it stood before its next compaction or retraction. A
// message with Open set is open, and so is a failed call that is tried again after the cut. The
// last message may get further calls.
//
// Errors of events are joined, at most 100 of them, and returned beside the messages of all other
// events: the last line of a log may be torn. The time is linear in the number of events.
func Conversation(events iter.Seq2[agentevents.Event, error], runID, agentID string) ([]Message, error) {
	c := conversation{
		agent: agentID, models: map[string]*answer{}, calls: map[string]*toolCall{}, blocks: map[blockKey]*block{},
		seen:  map[string]bool{},
		sends: map[string]agentevents.Command{}, asked: map[string]bool{}, retracted: map[string]bool{},
	}
	var errs firsterrs.List
	for ev, err := range events {
		if err != nil {
			errs.Add(100, err)
		} else if ev.RunID == runID && ev.Sequence >= c.next {
			c.next = ev.Sequence + 1
			c.apply(&ev)
		}
	}
	return c.messages(), errors.Join(errs.Take("")...)
}

// A conversation is the state of an agent's conversation after some events.
type conversation struct {
	agent   string
	next    uint64 // sequence
	sub     bool   // it is a sub-agent
	met     bool   // an event of the agent came
	open    bool   // it has started and not ended
	nodeRun string // execution of the node of the agent
	told    string // by run.resumed, and is for the next start

	epoch   int     // compactions so far
	summary *turn   // of the last compaction
	kept    []*turn // with a call that was open at a compaction
	turns   []*turn // since the last compaction
	last    *turn   // tool calls belong to it; nil: to a new one
	now     *answer // of the model call that began last, while it has not returned
	early   []*turn // messages before the first event of the agent

	models    map[string]*answer             // open model calls
	calls     map[string]*toolCall           // by the id of an attempt, the last one of that id
	blocks    map[blockKey]*block            // begun by deltas
	draft     *block                         // the one outside of model calls that has not ended
	seen      map[string]bool                // ids of messages
	sends     map[string]agentevents.Command // that nobody has consumed, by the id of the event
	asked     map[string]bool                // open clarifications of the agent without a call
	retracted map[string]bool                // ids of events
}

// A turn is a message, and the results of its calls.
type turn struct {
	role    Role
	content Value // of a system or user message
	event   string
	marks   agentevents.Marks
	summary bool
	open    bool // a user message came during a model call
	common  bool // a message before the first event of the agent is to nobody in particular

	calling bool // the model stopped to call tools: an answer without a call is not whole
	answer  bool // of a model: all calls up to the next model call belong to it
	blocks  []*block
	cut     int // blocks of earlier epochs are replaced by a summary
	calls   []*toolCall
	pending int // open calls
	settled int // epoch in which the last call returned
}

// An answer is the part of an answer that an open model call has streamed.
type answer struct {
	turn
	after []*turn // user messages that came during the call
	mute  bool    // the call is for something else than an answer
}

type blockKey struct {
	kind agentevents.Kind // of the whole block
	id   string
}

// A block is a block of text or of reasoning.
type block struct {
	blockKey
	event  string
	text   strings.Builder // of the deltas
	whole  string          // of the event with the whole block
	ended  bool            // nothing is added any more but the whole
	epoch  int             // in which it began
	goesOn bool            // an earlier block with the same id has ended
	marks  agentevents.Marks
}

func (b *block) said() string {
	if b.whole != "" {
		return b.whole
	}
	return b.text.String()
}

type toolCall struct {
	Call
	turn    *turn
	event   string // the call
	closed  string // the event that closed it
	attempt string // call id of the last attempt
	open    bool
	result  Result
}

// answers are the operations that bring an answer: see ModelCalled.Operation.
var answers = []string{"", "chat", "text_completion", "generate_content"}

const kept = agentevents.MarkRedacted | agentevents.MarkSanitized

// apply takes an event of the run.
func (c *conversation) apply(ev *agentevents.Event) {
	if ev.AgentID == c.agent && !c.met {
		c.meet(ev)
	}
	switch p := ev.Payload.(type) {
	case *agentevents.RunResumed:
		c.told = p.Message
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		c.settle()
	case *agentevents.MessageCreated:
		c.message(ev, &p.Message)
	case *agentevents.EventRetracted:
		for _, id := range p.EventIDs {
			c.retracted[id] = true
		}
	case *agentevents.CommandReceived:
		if p.Rejected == "" && p.Command.Type == agentevents.CommandSend {
			c.sends[ev.ID] = p.Command
		}
	case *agentevents.CommandConsumed:
		c.consume(ev, p)
	case *agentevents.ClarificationResolved:
		if c.asked[p.InterruptID] {
			delete(c.asked, p.InterruptID)
			c.say(ev, RoleUser, Value{JSON: p.Answers})
		}
	}
	if ev.AgentID == c.agent {
		c.act(ev)
	}
}

// meet takes the first event of the agent.
func (c *conversation) meet(ev *agentevents.Event) {
	c.met, c.sub = true, ev.ParentAgentID != ""
	for _, said := range c.early {
		if !said.common || !c.sub {
			c.turns = append(c.turns, said)
		}
	}
	c.early = nil
}

// act takes an event of the agent.
func (c *conversation) act(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		c.start(ev, p)
	case *agentevents.AgentEnded:
		c.open = false
		c.settle()
	case *agentevents.ContextCompacted:
		if p.Summary != "" {
			c.compact(ev, p.Summary)
		}
	case *agentevents.ClarificationRequested:
		c.asked[p.InterruptID] = p.CallID == ""
	case *agentevents.TextDelta:
		c.delta(ev, agentevents.KindTextCompleted, p.BlockID, p.Delta)
	case *agentevents.AgentReasoningDelta:
		c.delta(ev, agentevents.KindAgentReasoned, p.BlockID, p.Delta)
	case *agentevents.TextCompleted:
		c.whole(ev, agentevents.KindTextCompleted, p.BlockID, p.Text)
	case *agentevents.AgentReasoned:
		c.whole(ev, agentevents.KindAgentReasoned, p.BlockID, p.Reasoning)
	case *agentevents.ModelCalled:
		c.ask(p)
	case *agentevents.ModelReturned:
		c.answered(p)
	case *agentevents.ToolCalled:
		c.call(ev, p)
	case *agentevents.ToolReturned:
		c.returned(ev, p)
	}
}

// start takes a start of the agent. A model call of the process before is not waited for.
func (c *conversation) start(ev *agentevents.Event, p *agentevents.AgentStarted) {
	c.settle()
	c.lose()
	goesOn := p.Resumed || c.open
	c.open, c.last, c.nodeRun = true, nil, ev.NodeRunID
	said := Value{Text: c.told}
	if !goesOn {
		if said = content(p.Prompt); said == (Value{}) {
			said.Text = p.Task
		}
	}
	c.told = ""
	c.say(ev, RoleUser, said)
}

// message takes a message that may be for the agent.
func (c *conversation) message(ev *agentevents.Event, m *agentevents.ConversationMessage) {
	mine := m.To == c.agent || m.To == "" && m.From == "user" && (ev.AgentID == c.agent || ev.AgentID == "" && !c.sub)
	if !mine || m.From == c.agent || c.seen[m.MessageID] {
		return
	}
	c.seen[m.MessageID] = m.MessageID != ""
	role := RoleUser
	if m.Role == string(RoleSystem) {
		role = RoleSystem
	}
	if c.met {
		c.say(ev, role, content(m.Content))
		return
	}
	said := newSaid(ev, role, content(m.Content))
	said.common = m.To == ""
	c.early = append(c.early, said)
}

// consume takes a command that somebody has consumed.
func (c *conversation) consume(ev *agentevents.Event, p *agentevents.CommandConsumed) {
	send := c.sends[p.EventID]
	delete(c.sends, p.EventID)
	if c.open && (ev.AgentID == c.agent || ev.AgentID == "" && c.nodeRun != "" && send.RunID == c.nodeRun) {
		c.say(ev, RoleUser, Value{Text: send.Message})
	}
}

// content returns the content of a prompt or message, of which a JSON string is a text.
func content(j agentevents.JSON) Value { return valueOf(j, true) }

// valueOf returns a value. A JSON string is a text, if text is set.
func valueOf(j agentevents.JSON, text bool) Value {
	var s string
	if text && strings.HasPrefix(string(j), `"`) && json.Unmarshal([]byte(j), &s) == nil {
		return Value{Text: s}
	}
	return Value{JSON: j}
}

func newSaid(ev *agentevents.Event, role Role, v Value) *turn {
	return &turn{role: role, content: v, event: ev.ID, marks: ev.Marks & kept}
}

// say adds a message to the agent. It comes after the answer that the model is giving.
func (c *conversation) say(ev *agentevents.Event, role Role, v Value) {
	if v == (Value{}) {
		return
	}
	said := newSaid(ev, role, v)
	if c.now != nil && !c.now.mute {
		said.open = true
		c.now.after = append(c.now.after, said)
		return
	}
	c.settle()
	c.turns, c.last = append(c.turns, said), nil
}

// compact takes a summary of all that came before.
func (c *conversation) compact(ev *agentevents.Event, summary string) {
	said := newSaid(ev, RoleUser, Value{Text: summary})
	said.summary = true
	c.settle()
	for _, t := range c.turns {
		if t.pending > 0 {
			c.kept = append(c.kept, t)
		}
	}
	c.summary, c.turns, c.last = said, nil, nil
	c.epoch++
}

// replaced reports whether a compaction came after the last of the turn's calls had returned.
func (c *conversation) replaced(t *turn) bool { return t.pending == 0 && t.settled < c.epoch }

// ask takes the beginning of a model call. Its request has the earlier messages.
func (c *conversation) ask(p *agentevents.ModelCalled) {
	mute := !slices.Contains(answers, p.Operation)
	if mute && c.now != nil {
		return
	}
	c.settle()
	c.lose()
	c.now = &answer{turn: turn{role: RoleAssistant, answer: true}, mute: mute}
	c.models[p.ModelCallID] = c.now
	if !mute {
		c.last = nil
	}
}

// lose waits for the answer of the model no more: it is added at the end, if it comes.
func (c *conversation) lose() {
	if c.now != nil {
		c.turns = append(c.turns, c.now.said()...)
	}
	c.now = nil
}

// said returns the messages that came during the call.
func (a *answer) said() []*turn {
	said := a.after
	for _, t := range said {
		t.open = false
	}
	a.after = nil
	return said
}

// answered takes the return of a model call.
func (c *conversation) answered(p *agentevents.ModelReturned) {
	a := c.models[p.ModelCallID]
	if p.OneEvent {
		if slices.Contains(answers, p.Operation) {
			c.wasAnswered(p.Error.OK)
		}
		return
	}
	if a == nil {
		return
	}
	delete(c.models, p.ModelCallID)
	if c.now == a {
		c.now = nil
	}
	for _, b := range a.blocks {
		b.ended = true
		if p.Error.OK && c.blocks[b.blockKey] == b {
			delete(c.blocks, b.blockKey)
		}
	}
	if a.mute {
		return
	}
	c.settle()
	c.last = nil
	a.cut, a.turn.settled = c.epoch, c.epoch
	a.calling = slices.ContainsFunc(p.FinishReasons, callsTools)
	if !p.Error.OK {
		c.turns = append(c.turns, &a.turn)
		c.last = &a.turn
	}
	for _, call := range a.calls {
		call.open = call.open && !p.Error.OK
	}
	if said := a.said(); len(said) > 0 {
		a.calling = false // the calls stand after these
		c.turns, c.last = append(c.turns, said...), nil
	}
}

// callsTools reports whether a model stopped to call tools, in the words of the providers.
func callsTools(reason string) bool {
	return slices.Contains([]string{"tool_calls", "tool_use", "function_call", "tooluse"}, strings.ToLower(reason))
}

// wasAnswered takes a model call that is one event, the answer of which stands before it or
// after it: the calls that follow belong to it.
func (c *conversation) wasAnswered(failed bool) {
	if c.now != nil {
		return
	}
	c.settle()
	switch {
	case failed:
		c.last = nil
	case c.last != nil && !c.last.answer && len(c.last.calls) == 0:
		c.last.answer = true
	default:
		c.last = &turn{role: RoleAssistant, answer: true}
		c.turns = append(c.turns, c.last)
	}
}

// settle ends the block of deltas outside of model calls: something else follows.
func (c *conversation) settle() {
	if c.draft != nil {
		c.draft.ended = true
	}
	c.draft = nil
}

// delta takes a piece of a block.
func (c *conversation) delta(ev *agentevents.Event, kind agentevents.Kind, id, text string) {
	key := blockKey{kind, id}
	b := c.blocks[key]
	if b == nil || b.ended || b.epoch < c.epoch {
		goesOn := b != nil && (id != "" || b.epoch < c.epoch)
		b = c.begin(ev, key)
		b.goesOn = goesOn
		c.blocks[key] = b
		if c.now == nil {
			c.draft = b
		}
	}
	b.text.WriteString(text)
	b.marks |= ev.Marks & kept
}

// whole takes a whole block, which stands in the place of its deltas. If these have ended, or
// go on with others, they count: the whole comes late, and has nothing new.
func (c *conversation) whole(ev *agentevents.Event, kind agentevents.Kind, id, text string) {
	key := blockKey{kind, id}
	b := c.blocks[key]
	delete(c.blocks, key)
	switch {
	case b == nil || b.ended && id == "":
		b = c.begin(ev, key)
	case b.ended || b.goesOn || b.epoch < c.epoch:
		b.ended = true
		return
	}
	b.event, b.whole, b.ended, b.marks = ev.ID, text, true, ev.Marks&kept
}

// begin adds a block to the answer that the model is giving. Without a model call it is a
// message of its own; but reasoning and the text after it are one.
func (c *conversation) begin(ev *agentevents.Event, key blockKey) *block {
	b := &block{blockKey: key, event: ev.ID, epoch: c.epoch}
	t := c.last
	if c.now != nil {
		t = &c.now.turn
	} else if c.settle(); t == nil || !t.takes(key.kind) {
		t = &turn{role: RoleAssistant}
		c.turns, c.last = append(c.turns, t), t
	}
	t.blocks = append(t.blocks, b)
	return b
}

// takes reports whether a block that comes after a turn belongs to it.
func (t *turn) takes(kind agentevents.Kind) bool {
	switch {
	case len(t.calls) > 0 || len(t.blocks) > 1:
		return false
	case len(t.blocks) == 1:
		return t.blocks[0].kind == agentevents.KindAgentReasoned && kind == agentevents.KindTextCompleted
	}
	return true // an answer of which nothing is known so far
}

// call takes a tool call, or a further attempt of one.
func (c *conversation) call(ev *agentevents.Event, p *agentevents.ToolCalled) {
	first := p.RetryOf
	if first == "" && p.Attempt.Or(1) > 1 {
		first = p.CallID
	}
	call := c.calls[first]
	if earlier := c.calls[p.CallID]; call == nil && earlier != nil && earlier.open && earlier.attempt == p.CallID {
		call = earlier // in spite of rule tool-call-open
	}
	if call == nil {
		call = &toolCall{Call: Call{p.CallID, p.ToolID, valueOf(p.Arguments, p.ArgumentsText), ev.Marks & kept}, event: ev.ID}
		c.place(call)
	}
	c.calls[p.CallID] = call
	if c.replaced(call.turn) {
		return
	}
	if !call.open {
		call.turn.pending++
	}
	call.attempt, call.open, call.result = p.CallID, true, Result{}
}

// place adds a call to the answer that it belongs to.
func (c *conversation) place(call *toolCall) {
	c.settle()
	t := c.last
	switch {
	case c.now != nil && !c.now.mute:
		t = &c.now.turn
	case t == nil || !t.answer && len(t.calls) > 0 && t.pending == 0:
		t = &turn{role: RoleAssistant}
		c.turns, c.last = append(c.turns, t), t
	}
	t.calls = append(t.calls, call)
	call.turn, t.settled = t, c.epoch
}

// returned takes the return of a tool call.
func (c *conversation) returned(ev *agentevents.Event, p *agentevents.ToolReturned) {
	call := c.calls[p.CallID]
	neverBegan := p.Status == agentevents.ToolStatusForbidden || p.Status == agentevents.ToolStatusRateLimited
	switch isOpen := call != nil && call.open && call.attempt == p.CallID; {
	case p.OneEvent || neverBegan && !isOpen:
		call = &toolCall{Call: Call{p.CallID, p.ToolID, valueOf(p.Arguments, p.ArgumentsText), ev.Marks & kept}, event: ev.ID}
		c.place(call)
	case !isOpen:
		return
	}
	if call.open {
		call.turn.pending--
		call.turn.settled = c.epoch
	}
	call.open, call.closed = false, ev.ID
	call.result = Result{Status: p.Status, Value: valueOf(p.Result, p.ResultText), Error: p.Error, Marks: ev.Marks & kept}
}

// messages returns the conversation.
func (c *conversation) messages() []Message {
	var turns []*turn
	if c.summary != nil {
		turns = append(turns, c.summary)
	}
	for _, t := range c.kept {
		if !c.replaced(t) {
			turns = append(turns, t)
		}
	}
	turns = append(turns, c.turns...)
	if c.now != nil {
		turns = append(turns, c.now.after...)
	}
	var out []Message
	for _, t := range turns {
		out = c.append(out, t)
	}
	return out
}

// append appends a turn. Nothing is left of some.
func (c *conversation) append(out []Message, t *turn) []Message {
	m := Message{Role: t.role, Text: t.content.Text, JSON: t.content.JSON, Summary: t.summary, Open: t.open,
		Marks: t.marks}
	if t.role != RoleAssistant {
		if !c.retracted[t.event] {
			out = append(out, m)
		}
		return out
	}
	var text, reasoning strings.Builder
	for _, b := range t.blocks {
		if c.retracted[b.event] || !b.ended || b.epoch < t.cut {
			continue
		}
		to := &text
		if b.kind == agentevents.KindAgentReasoned {
			to = &reasoning
		}
		to.WriteString(b.said())
		m.Marks |= b.marks
	}
	m.Text, m.Reasoning = text.String(), reasoning.String()
	tool := Message{Role: RoleTool}
	for _, call := range t.calls {
		if c.retracted[call.event] {
			continue
		}
		r, open := call.result, call.open
		if !open && c.retracted[call.closed] {
			r, open = Result{}, true
		}
		r.CallID, r.Tool = call.ID, call.Tool
		m.Calls, tool.Results = append(m.Calls, call.Call), append(tool.Results, r)
		m.Open = m.Open || open
	}
	if len(m.Calls) > 0 {
		tool.Open = m.Open
		return append(out, m, tool)
	}
	if (m.Text != "" || m.Reasoning != "") && (!t.calling || len(t.calls) > 0) {
		out = append(out, m)
	}
	return out
}
