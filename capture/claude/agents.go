package claude

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An agent is the main agent or a sub-agent.
type agent struct {
	id     string
	parent *agent // nil for the main agent
	call   string // id of the call that spawned it, or its task id
	open   bool
	ended  bool
	starts int
	order  int // of first appearance

	step    int    // of its latest event
	message string // id of the current API message
	turned  bool   // the message began after that event

	// The facts about a sub-agent that come before its start.
	kind                string // its type, as the program spells it
	task, model, prompt string // prompt is JSON
	background          bool   // the sub-agent outlives the call that spawned it
	inWorkflow          bool   // only the progress of its workflow tells of it
	first               *line  // the line that first mentions it
	held                []*line

	calls map[string]*call        // open calls
	kids  []*agent                // sub-agents that have not ended
	used  map[string]messageUsage // of this turn, by API message
	stream
}

// A call is an open tool call.
type call struct {
	id, tool   string
	agent      *agent
	order      int
	at         time.Time
	stamped    bool
	elapsed    agentevents.Opt[time.Duration] // from tool_progress
	background bool
	denied     bool // a line before its result said that it was not allowed
	doubt      *doubt
	args       string
}

func newAgent(id string, parent *agent, spawn string) *agent {
	return &agent{id: id, parent: parent, call: spawn, calls: map[string]*call{}}
}

// begin opens the agent.
func (a *agent) begin() {
	a.open, a.ended = true, false
	a.starts++
	a.message, a.turned = "", false
	a.stream = stream{}
}

// enter notes the agent's current API message. Each message is a step, because it is
// a round trip to the model.
func (a *agent) enter(message string) {
	if message == "" || message == a.message {
		return
	}
	a.turned = a.message != ""
	a.message = strings.Clone(message)
}

// answered records the call of the model that a message is the answer of. Its tokens are in the
// totals of the agent and of the result.
func (d *Decoder) answered(a *agent, message, model string) {
	key := "model " + a.id + " " + message
	if message != "" && model != modelNone && !a.ended && d.streamed.get(key) == 0 {
		d.streamed.set(key, 1)
		d.emit(a, &agentevents.ModelReturned{
			ModelCallID: strings.Clone(message), Model: strings.Clone(model), OneEvent: true,
		}, 0)
	}
}

// agentKey returns the key of the sub-agent that a line belongs to, or "" for
// the main agent.
func (d *Decoder) agentKey(l *line) string {
	if key := l.str("parent_tool_use_id"); key != "" {
		return key
	}
	if id := l.str("agent_id"); id != "" {
		return d.tasks[id]
	}
	return ""
}

// agentOf returns the agent that a line belongs to, which may not have started yet.
func (d *Decoder) agentOf(l *line) *agent {
	key := d.agentKey(l)
	if key == "" {
		return d.main
	}
	return d.subAgent(key, l)
}

// subAgent returns the sub-agent that a call spawned, and creates it if needed.
func (d *Decoder) subAgent(key string, l *line) *agent {
	if a := d.agents[key]; a != nil {
		return a
	}
	key = strings.Clone(key)
	parent, kind := d.main, ""
	var args object
	if c := d.calls[key]; c != nil {
		parent = c.agent
		var ignored faults
		args = parseObject(c.args, "", &ignored)
		kind = args.str("subagent_type")
	}
	if kind == "" {
		kind = l.str("subagent_type")
	}
	id := d.subAgentID(kind, key)
	d.agentIDs[id] = true
	a := newAgent(id, parent, key)
	a.first, a.order = l, len(d.agents)
	a.kind = strings.Clone(kind)
	a.task = strings.Clone(cmp.Or(args.str("description"), l.str("task_description"), l.str("description")))
	a.prompt = strings.Clone(cmp.Or(args.raw("prompt"), l.raw("prompt")))
	a.model = strings.Clone(args.str("model"))
	if a.task == "" && strings.HasPrefix(a.prompt, `"`) {
		a.task = unquote(a.prompt)
	}
	a.background = args.raw("run_in_background") == "true" || l.raw("is_backgrounded") == "true"
	d.agents[key] = a
	parent.kids = append(parent.kids, a)
	return a
}

// subAgentID returns the id of the sub-agent of a type that a call spawned. It has the
// form that all formats allow: lower-case letters, digits, hyphens and colons, at most 64.
func (d *Decoder) subAgentID(kind, call string) string {
	const most, digits = 32, 8
	lower := func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == ':':
			return r
		}
		return '-'
	}
	kind = strings.Map(lower, cmp.Or(kind, "agent"))
	id := d.main.id + ":" + kind[:min(most, len(kind))] + ":"
	hash := string(jsonwire.AppendHex(nil, jsonwire.Hash(call)))
	if short := id + hash[:digits]; !d.agentIDs[short] {
		return short
	}
	return id + hash
}

// start opens a sub-agent, at the line that first mentions it, and then processes its
// held lines.
func (d *Decoder) start(a *agent, model string) {
	if a.parent == nil || a.open || a.ended {
		return
	}
	if a.parent.parent != nil {
		d.start(a.parent, "")
	}
	saved := d.cur
	d.cur = a.first
	a.begin()
	d.record(a, agentevents.Event{ParentAgentID: a.parent.id, ParentCallID: a.call, Payload: &agentevents.AgentStarted{
		Agent: agentevents.Some(agentevents.AgentRef{AgentID: a.id}),
		Name:  a.kind,
		Task:  a.task, Prompt: agentevents.JSON(a.prompt), Model: cmp.Or(model, a.model),
	}})
	d.cur = saved
	held := a.held
	a.held, a.first, a.prompt = nil, nil, ""
	for _, l := range held {
		d.process(l)
	}
}

// waits holds back a line of a sub-agent that has not started, because its model is not
// known yet. It reports whether it did.
func (d *Decoder) waits(a *agent, l *line) bool {
	if a.parent == nil || a.open || a.ended {
		return false
	}
	if len(a.held) >= maxHeldChild {
		d.start(a, "")
		return false
	}
	a.held = append(a.held, l)
	return true
}

const maxHeldChild = 16

// endSubAgent ends a sub-agent with its open calls and its own sub-agents.
func (d *Decoder) endSubAgent(a *agent, end agentevents.AgentEnded, marks agentevents.Marks) {
	d.start(a, "")
	if !a.open {
		return
	}
	d.interrupt(a, d.callSeq, true)
	d.close(a, &end, marks)
	if i := slices.Index(a.parent.kids, a); i >= 0 {
		a.parent.kids = slices.Delete(a.parent.kids, i, i+1)
	}
}

// close ends an agent that has nothing open.
func (d *Decoder) close(a *agent, end *agentevents.AgentEnded, marks agentevents.Marks) {
	a.turned = false // an end has no step
	if !end.Usage.OK && len(end.ModelUsage) == 0 {
		d.reportUsage(a, a.used, marks)
	}
	d.emit(a, end, marks)
	if a != d.main {
		d.keepUnstated(a)
	}
	a.open, a.ended, a.used = false, true, nil
	a.stream = stream{}
}

// interrupt closes the open calls of an agent that came before one with a number, and the
// sub-agents that they spawned. Background work stays open unless all is set.
func (d *Decoder) interrupt(a *agent, before int, all bool) {
	for _, b := range slices.Clone(a.kids) {
		if c := d.calls[b.call]; c != nil && c.order >= before {
			continue
		}
		if all || !b.background {
			d.endSubAgent(b, interrupted(noReturn), agentevents.MarkSynthetic)
		}
	}
	for _, c := range openCalls(a.calls) {
		if c.order < before && (all || !c.background) {
			d.interruptCall(c)
		}
	}
}

func (d *Decoder) interruptCall(c *call) {
	if c.doubt != nil {
		d.decide(c, agentevents.ToolStatusCancelled)
		return
	}
	d.closeCall(c, &agentevents.ToolReturned{
		Status: agentevents.ToolStatusInterrupted,
		Error:  agentevents.Some(agentevents.ErrorInfo{Code: codeInterrupted, Message: "the call did not return"}),
	}, agentevents.MarkSynthetic)
}

const (
	codeInterrupted = "interrupted"
	noReturn        = "the sub-agent did not return"
)

// unended returns the sub-agents that have not ended, in order of appearance.
func (d *Decoder) unended() []*agent {
	var out []*agent
	for _, a := range d.agents {
		if !a.ended {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *agent) int { return a.order - b.order })
	return out
}

func interrupted(message string) agentevents.AgentEnded {
	return agentevents.AgentEnded{
		Outcome: agentevents.OutcomeAborted,
		Error:   agentevents.Some(agentevents.ErrorInfo{Code: codeInterrupted, Message: message}),
	}
}

func openCalls(calls map[string]*call) []*call {
	out := make([]*call, 0, len(calls))
	for _, c := range calls {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *call) int { return a.order - b.order })
	return out
}

// closeCall records the return of an open call.
func (d *Decoder) closeCall(c *call, p *agentevents.ToolReturned, marks agentevents.Marks) {
	p.CallID, p.ToolID = c.id, c.tool
	d.emit(c.agent, p, marks)
	delete(d.calls, c.id)
	delete(c.agent.calls, c.id)
}
