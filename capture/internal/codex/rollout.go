package codex

import (
	"cmp"
	"path"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Rollout returns the reader of rollouts.
func Rollout() *session.Program {
	return &session.Program{
		Name:   "Codex",
		Tested: "0.169.0",
		Files:  []string{"a session of Codex, as it keeps them on disk"},
		Facts:  facts,
		Time:   lineTime,
		Root:   root,
		Beside: beside,
		New:    newRollout,
	}
}

// mainAgent is the id of the main agent.
const mainAgent = "codex"

// A rollout is the state of the reader of one run.
type rollout struct {
	r       *session.Recorder
	kinds   map[string]func(*rollout, *thread)
	threads map[string]*thread // by id
	files   map[int]*thread
	order   []*thread
	spawned map[string]*spawn // by the id of the thread that was spawned
	answers session.Once      // ids of answers of the model
	line, p session.Object    // the line that is read, and its payload
}

// A spawn has the facts that a thread tells of a sub-agent that it started.
type spawn struct {
	by         *thread
	call, name string
	prompt     string         // JSON
	ghost      *session.Agent // stands for the sub-agent if its file is missing
}

// A thread is the conversation of one agent: a file.
type thread struct {
	id, parent, name string
	root             string
	agent            *session.Agent
	model, version   string
	inputs           agentevents.JSON
	prompt           string
	first            *session.Line
	held             []*session.Line
	heldBytes        int
	started, foreign bool   // foreign: the lines are a copied history
	own              bool   // a line that was not copied has come, after the first one
	tasked           bool   // the file tells the beginning of turns
	bare             bool   // the first versions wrote it, without times, tokens and envelopes
	path             string // by which agents call each other
	turns            int
	turn             *turn
	last             turn       // the latest turn that ended
	turnMessages     [][]string // ids of the events of messages, by turn
	calls            map[string]*info
	processes        map[string]*command // in the background, by their numbers
	counter          counter
	said             map[string][tellers]int // texts of the user in this turn: how often each kind of line told them
	answer
}

// An answer comes from the model. Its parts stand before its tokens on disk, and are held until
// those are known.
type answer struct {
	parts   []*session.Line
	n       int    // number of answers so far
	ahead   bool   // tokens are told before the parts, so that parts begin no call of the model
	within  bool   // of a version that tells no tokens: a call of the model has begun
	broken  bool   // the answer that is held was broken off, if tokens are told of whole ones
	without string // id of the model call of the latest one, if its tokens were not known
}

// A turn is one exchange with the user.
type turn struct {
	number int
	err    agentevents.Opt[agentevents.ErrorInfo]
	end    ending
	words  string            // the last message
	marks  agentevents.Marks // MarkSynthetic if no line tells its end
}

type ending uint8

const (
	none      ending = iota // no turn has ended
	completed               // with or without an error
	stopped                 // somebody stopped it
	cut                     // the program ended within it
)

// An info has the facts of a call that event_msg lines tell and response items lack.
type info struct {
	status   string
	exit     agentevents.Opt[int64]
	duration agentevents.Opt[time.Duration]
}

func newRollout(r *session.Recorder) session.Reader {
	return &rollout{
		r: r, kinds: kinds(), threads: map[string]*thread{}, files: map[int]*thread{}, spawned: map[string]*spawn{},
	}
}

// kinds are the kinds of lines: the type, and the type of the payload where there is one.
func kinds() map[string]func(*rollout, *thread) {
	return map[string]func(*rollout, *thread){
		"session_meta":                            (*rollout).meta,
		"turn_context":                            (*rollout).context,
		"world_state":                             nothing,
		"token_usage_record":                      (*rollout).record,
		"compacted":                               (*rollout).compacted,
		"inter_agent_communication_metadata":      nothing,
		"record_type/state":                       (*rollout).state,
		"event_msg/thread_settings_applied":       (*rollout).settings,
		"event_msg/task_started":                  (*rollout).taskStarted,
		"event_msg/task_complete":                 (*rollout).taskComplete,
		"event_msg/turn_aborted":                  (*rollout).turnAborted,
		"event_msg/token_count":                   (*rollout).tokenCount,
		"event_msg/item_completed":                (*rollout).item,
		"response_item/message":                   (*rollout).message,
		"response_item/reasoning":                 (*rollout).reasoning,
		"response_item/function_call":             (*rollout).functionCall,
		"response_item/custom_tool_call":          (*rollout).customCall,
		"response_item/tool_search_call":          (*rollout).toolSearch,
		"response_item/web_search_call":           (*rollout).webSearch,
		"response_item/function_call_output":      (*rollout).output,
		"response_item/custom_tool_call_output":   (*rollout).output,
		"response_item/tool_search_output":        (*rollout).searchOutput,
		"response_item/agent_message":             (*rollout).agentMessage,
		"response_item/local_shell_call":          (*rollout).localShell,
		"response_item/image_generation_call":     (*rollout).image,
		"response_item/ghost_snapshot":            nothing,
		"response_item/compaction":                nothing,
		"response_item/compaction_summary":        nothing,
		"event_msg/user_message":                  (*rollout).userMessage,
		"event_msg/agent_message":                 nothing,
		"event_msg/agent_reasoning":               nothing,
		"event_msg/agent_reasoning_raw_content":   nothing,
		"event_msg/agent_reasoning_section_break": nothing,
		"event_msg/exec_command_begin":            nothing,
		"event_msg/exec_command_end":              (*rollout).commandEnd,
		"event_msg/patch_apply_begin":             nothing,
		"event_msg/patch_apply_end":               (*rollout).commandEnd,
		"event_msg/mcp_tool_call_begin":           nothing,
		"event_msg/mcp_tool_call_end":             (*rollout).mcpEnd,
		"event_msg/web_search_begin":              nothing,
		"event_msg/web_search_end":                nothing,
		"event_msg/image_generation_end":          nothing,
		"event_msg/view_image_tool_call":          nothing,
		"event_msg/context_compacted":             nothing,
		"event_msg/thread_rolled_back":            (*rollout).rolledBack,
		"event_msg/thread_name_updated":           nothing,
		"event_msg/error":                         (*rollout).failed,
		"event_msg/stream_error":                  (*rollout).warned,
		"event_msg/warning":                       (*rollout).warned,
		"event_msg/turn_diff":                     nothing,
		"event_msg/plan_update":                   nothing,
		"event_msg/background_event":              nothing,
		"event_msg/collab_agent_spawn_end":        (*rollout).spawnEnd,
		"event_msg/collab_agent_spawn_begin":      nothing,
		"event_msg/collab_waiting_begin":          nothing,
		"event_msg/collab_waiting_end":            (*rollout).waitEnd,
		"event_msg/sub_agent_activity":            (*rollout).activityEvent,
	}
}

// doubles reports whether a line repeats a part of an answer.
func (c *rollout) doubles(kind string) bool {
	if kind != "event_msg/item_completed" {
		return doubleKinds[kind]
	}
	switch item := jsonwire.Text(jsonwire.Member(c.p.Raw("item"), "type")); item {
	case "AgentMessage", "Reasoning", "WebSearch":
		return true
	}
	return false
}

// doubleKinds are the kinds of lines of older versions that repeat a part of an answer.
var doubleKinds = map[string]bool{"event_msg/agent_message": true, "event_msg/agent_reasoning": true,
	"event_msg/agent_reasoning_raw_content": true, "event_msg/web_search_end": true}

// answered records the call of the model whose parts are held, and then the parts. Without a
// usage its tokens are not known, or come later.
func (c *rollout) answered(t *thread, used *usage) {
	parts := t.parts
	t.parts = nil
	if len(parts) > 0 && t.turn != nil { // the agent went on after an error
		t.turn.err = agentevents.Opt[agentevents.ErrorInfo]{}
	}
	line, p := c.line, c.p
	c.line, c.p = session.Object{}, session.Object{}
	if used != nil || !t.ahead && !(t.bare && t.within) {
		if t.n++; t.n > 1 {
			t.agent.Answers()
		}
		at := c.r.Here()
		if len(parts) > 0 {
			at = parts[0]
		}
		t.within = true
		c.r.At(at, func() { c.modelCall(t, used) })
	}
	for _, l := range parts {
		c.r.At(l, func() {
			kind := c.open(l)
			c.do(t, kind, c.kinds[kind])
		})
	}
	c.line, c.p = line, p
}

func nothing(c *rollout, _ *thread) { c.p.SkipAll() }

// openers are the kinds of lines that wait for the start of the thread's agent, because they come
// before the model and the prompt are known.
var openers = map[string]bool{
	"session_meta": true, "turn_context": true, "world_state": true,
	"event_msg/thread_settings_applied": true, "event_msg/task_started": true, "event_msg/token_count": true, "record_type/state": true,
	"inter_agent_communication_metadata": true, "response_item/ghost_snapshot": true,
}

const maxHeld, maxHeldBytes = 64, 4 << 20

// Line reads a line.
func (c *rollout) Line(l *session.Line) {
	kind := c.open(l)
	t := c.thread(l, kind)
	if c.copied(t, kind) {
		return
	}
	if !t.started {
		copied := *l
		t.held = append(t.held, &copied)
		t.heldBytes += len(l.Text)
		c.foresee(t, kind)
		if !c.opens(t, kind) && len(t.held) < maxHeld && t.heldBytes < maxHeldBytes {
			return
		}
		c.start(t)
		return
	}
	c.read(t, kind)
}

// open parses a line and returns its kind. The first versions wrote the parts of the
// conversation alone, without an envelope.
func (c *rollout) open(l *session.Line) string {
	c.line.Parse(l.Text)
	c.line.Skip("timestamp", "ordinal", "metadata")
	kind := c.line.Str("type")
	payload := c.line.Raw("payload")
	if payload == "" {
		c.p.Parse(l.Text)
		c.p.Skip("type")
		c.line.SkipAll()
		switch {
		case kind != "":
			return "response_item/" + kind
		case c.p.Str("record_type") != "":
			return "record_type/" + c.p.Str("record_type")
		case c.p.Str("id") == "":
			return ""
		}
		return "session_meta"
	}
	c.p.Parse(payload)
	if kind == "event_msg" || kind == "response_item" {
		kind += "/" + c.p.Str("type")
	}
	return kind
}

// read makes the events of a line, which was parsed.
func (c *rollout) read(t *thread, kind string) {
	f, ok := c.kinds[kind]
	if !ok {
		c.r.Unread(kind, "")
		return
	}
	switch {
	case answers[kind] && (kind != "response_item/message" || c.p.Str("role") == "assistant"):
		part := *c.r.Here()
		t.parts = append(t.parts, &part)
		return
	case !tokenLines[kind] && !c.doubles(kind) && len(t.parts) > 0:
		t.broken = kind == "event_msg/task_started" || kind == "event_msg/turn_aborted"
		c.answered(t, nil)
	}
	c.do(t, kind, f)
}

func (c *rollout) do(t *thread, kind string, f func(*rollout, *thread)) {
	f(c, t)
	c.r.Rest(kind, "", &c.line)
	c.r.Rest(kind, "/payload", &c.p)
}

// answers are the kinds of lines that are parts of an answer of the model.
var answers = map[string]bool{
	"response_item/message": true, "response_item/reasoning": true, "response_item/function_call": true, "response_item/custom_tool_call": true,
	"response_item/local_shell_call": true, "response_item/tool_search_call": true, "response_item/web_search_call": true, "response_item/image_generation_call": true,
}

// tokenLines are the kinds of lines that tell the tokens of an answer; those in doubles tell it
// once more, or tell nothing of it.
var tokenLines = map[string]bool{"token_usage_record": true, "event_msg/token_count": true}

// thread returns the thread of a line's file.
func (c *rollout) thread(l *session.Line, kind string) *thread {
	if t := c.files[l.File]; t != nil {
		return t
	}
	t := &thread{calls: map[string]*info{}, processes: map[string]*command{}, said: map[string][tellers]int{}}
	c.files[l.File] = t
	c.order = append(c.order, t)
	first := *l
	t.first = &first
	if kind == "session_meta" {
		t.id = strings.Clone(c.p.Str("id"))
		t.root = strings.Clone(cmp.Or(c.p.Str("session_id"), t.id))
		t.version = strings.Clone(c.p.Str("cli_version"))
		t.parent, t.name = parentOf(&c.p)
		t.path = strings.Clone(cmp.Or(c.p.Str("agent_path"), "/root"))
		t.bare = c.line.Raw("payload") == ""
		if at, ok := c.p.Time("timestamp"); ok && at.Before(first.At) { // the line is written later
			first.At = at
		}
	}
	t.id = cmp.Or(t.id, l.Thread, "codex")
	t.root = cmp.Or(t.root, t.id)
	c.threads[t.id] = t
	c.r.SetVersion(t.version)
	return t
}

// parentOf returns the thread that spawned the thread of a session_meta line, and its name.
func parentOf(meta *session.Object) (parent, name string) {
	parent, name = meta.Str("parent_thread_id"), meta.Str("agent_nickname")
	spawn := meta.Object("source").Object("subagent").Object("thread_spawn")
	parent = cmp.Or(parent, spawn.Str("parent_thread_id"))
	p := cmp.Or(spawn.Str("agent_path"), meta.Str("agent_path"))
	if p != "" {
		name = path.Base(p)
	}
	name = cmp.Or(name, spawn.Str("agent_nickname"), spawn.Str("agent_role"))
	return strings.Clone(parent), strings.Clone(name)
}

// foresee takes the model and the prompt of a thread from a line that is held.
func (c *rollout) foresee(t *thread, kind string) {
	switch kind {
	case "turn_context":
		t.model = cmp.Or(t.model, strings.Clone(c.p.Str("model")))
	case "event_msg/thread_settings_applied":
		t.model = cmp.Or(t.model, strings.Clone(c.p.Object("thread_settings").Str("model")))
	case "event_msg/user_message":
		if text := c.p.Str("message"); !begins(text, harness) {
			t.prompt = cmp.Or(t.prompt, strings.Clone(jsonwire.Quote(text)))
		}
	case "response_item/message":
		if c.p.Str("role") == "user" && c.byUser(t) {
			t.prompt = cmp.Or(t.prompt, strings.Clone(jsonwire.Quote(c.text("content"))))
		}
	case "session_meta":
		if t.inputs == "" {
			t.inputs = agentevents.JSON(strings.Clone(string(c.p.Pick("cwd", "originator",
				"cli_version", "source", "model_provider", "forked_from_id", "git"))))
		}
	}
}

// opens reports whether a line shows that the agent of its thread is at work.
func (c *rollout) opens(t *thread, kind string) bool {
	switch kind {
	case "response_item/message":
		return c.p.Str("role") == "assistant" || t.prompt != "" && t.model != ""
	case "event_msg/user_message", "turn_context", "event_msg/thread_settings_applied":
		return t.prompt != "" && t.model != ""
	case "response_item/agent_message": // the task of a sub-agent
		return t.model != ""
	}
	return !openers[kind]
}

// start starts the agent of a thread, and before the first one the run. Then it reads the lines
// that were held.
func (c *rollout) start(t *thread) {
	held := t.held
	t.held, t.started = nil, true
	parent := c.threads[t.parent]
	if parent != nil && !parent.started {
		c.start(parent)
	}
	c.r.At(t.first, func() {
		if !c.r.Started() {
			c.r.Begin(t.root)
			c.r.Emit(nil, &agentevents.RunStarted{Inputs: t.inputs,
				Agent: agentevents.Some(agentevents.AgentRef{AgentID: c.mainID()})}, 0)
		}
		p := &agentevents.AgentStarted{
			Name: t.name, Model: t.model, ProviderSessionID: t.id, Prompt: agentevents.JSON(t.prompt),
		}
		if parent == nil {
			t.agent = c.r.NewAgent(c.mainID(), nil, "", t.id)
			c.r.Start(t.agent, "", p)
			return
		}
		t.agent = c.r.NewAgent(c.mainID(), parent.agent, t.name, t.id)
		by := c.spawnOf(t)
		p.Prompt = cmp.Or(p.Prompt, agentevents.JSON(by.prompt))
		p.Task = jsonwire.Text(string(p.Prompt))
		c.r.Start(t.agent, by.call, p)
	})
	for _, l := range held {
		c.r.At(l, func() {
			c.read(t, c.open(l))
		})
	}
}

func (c *rollout) mainID() string { return cmp.Or(c.r.Options.AgentID, mainAgent) }

// spawnOf returns the facts that the parent of a thread told of it.
func (c *rollout) spawnOf(t *thread) *spawn {
	if s := c.spawned[t.id]; s != nil {
		return s
	}
	parent := c.threads[t.parent]
	for _, call := range parent.agent.Calls() { // the parent's line comes later
		if s := spawnCall(call); call.Tool == "spawn_agent" && !c.taken(call.ID) && (t.prompt == "" || s.prompt == t.prompt) {
			s.by = parent
			c.spawned[t.id] = s
			return s
		}
	}
	return &spawn{}
}

// taken reports whether a call is known to have spawned a thread.
func (c *rollout) taken(call string) bool {
	for _, s := range c.spawned {
		if s.call == call {
			return true
		}
	}
	return false
}

// EndFile ends the sub-agent of a file.
func (c *rollout) EndFile(l *session.Line) {
	t := c.files[l.File]
	if t == nil {
		return
	}
	if !t.started {
		c.start(t)
	}
	if t.agent.Parent != nil {
		c.finish(t)
	}
}

// End ends the run.
func (c *rollout) End(l *session.Line) {
	if len(c.order) == 0 {
		return
	}
	main := c.order[0]
	for _, t := range c.order {
		if t.agent.Parent == nil {
			main = t
			break
		}
	}
	c.finish(main)
	main.last.close(c.r)
}

// close ends the run as its last turn ended.
func (t *turn) close(r *session.Recorder) {
	switch {
	case t.end == stopped:
		r.Emit(nil, &agentevents.RunCancelled{Reason: t.err.V.Message}, t.marks)
	case t.err.OK:
		r.Emit(nil, &agentevents.RunFailed{Error: t.err}, t.marks)
	default:
		r.Emit(nil, &agentevents.RunCompleted{}, t.marks)
	}
}

// finish ends an agent as its last turn ended.
func (t *turn) finish(r *session.Recorder, a *session.Agent) {
	if t.end == none {
		t.marks = agentevents.MarkSynthetic
	}
	end := &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: t.words, Error: t.err}
	if t.err.OK {
		end.Outcome, end.Result = agentevents.OutcomeAborted, ""
	}
	r.End(a, end, t.marks)
}

// finish ends the agent of a thread as its last turn ended.
func (c *rollout) finish(t *thread) {
	if len(t.parts) > 0 {
		t.broken = t.turn != nil
		c.answered(t, nil)
	}
	if t.turn != nil && !t.tasked && t.turn.words != "" { // the end of turns is not on disk
		t.turn.end = completed
		c.endTurn(t, agentevents.Opt[time.Duration]{}, agentevents.MarkSynthetic)
	}
	if t.turn != nil { // the program ended within it
		c.cutTurn(t)
	}
	t.last.finish(c.r, t.agent)
}

// cutTurn ends a turn whose end is not on disk. An error after which the agent did nothing is its end.
func (c *rollout) cutTurn(t *thread) {
	t.turn.end = completed
	if !t.turn.err.OK {
		t.turn.end = cut
		t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
			Message: "the turn has no end: the program was killed, or is still at work"})
	}
	c.r.Interrupt(t.agent, agentevents.ToolStatusInterrupted, "the program ended before the call returned", t.turn.end == cut)
	c.endTurn(t, agentevents.Opt[time.Duration]{}, agentevents.MarkSynthetic)
}
