// Package qwen reads the sessions of Qwen Code: the files below ~/.qwen/projects, and the output of
// qwen --output-format stream-json. Its lines have the envelope of Claude Code's, its files the
// messages of Gemini's API, and its figures another meaning than either.
//
// Each line names the line before it: one that names an earlier line takes back the messages
// between. The end of a session is not on disk: a turn is complete if the agent has spoken last.
package qwen

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	mainAgent = "qwen"
	tested    = "0.24.4"
)

// Session returns the reader of files.
func Session() *session.Program {
	return &session.Program{
		Name:     "Qwen Code",
		Tested:   tested,
		Files:    []string{"a session file of Qwen Code"},
		Facts:    facts,
		Time:     lineTime,
		Root:     root,
		Beside:   beside,
		Describe: describe,
		New:      newReader,
	}
}

// A reader is the state of the reader of one run.
type reader struct {
	r       *session.Recorder
	files   map[int]*thread
	threads map[string]*thread // by id
	main    *thread
	line    session.Object
}

// A thread is the conversation of one agent: a file.
type thread struct {
	session.Talk
	id, of   string // its id, and the id of the session
	side     bool   // it is a sub-agent's
	inputs   string // JSON
	tree     session.Tree
	about    *session.Object // its description
	answered bool            // the answer of the model may go on in another line
	infos    map[string]info // by call
	status   string          // of the sub-agent, as a notification tells it
	ghost    bool            // stands for a sub-agent whose file is missing
}

// An info has the facts that telemetry tells of a call.
type info struct {
	status string
	took   agentevents.Opt[time.Duration]
}

func newReader(r *session.Recorder) session.Reader {
	return &reader{r: r, files: map[int]*thread{}, threads: map[string]*thread{}}
}

// kinds are the types of lines, with the subtype after the type system.
var kinds = map[string]func(*reader, *thread){
	"user":                    (*reader).user,
	"assistant":               (*reader).answer,
	"tool_result":             (*reader).result,
	"system/ui_telemetry":     (*reader).telemetry,
	"system/chat_compression": (*reader).compressed,
	"system/notification":     (*reader).told,
	"system/cron":             (*reader).told,

	"system/attribution_snapshot":      nothing,
	"system/slash_command":             nothing,
	"system/at_command":                nothing,
	"system/custom_title":              nothing,
	"system/parent_session":            nothing,
	"system/rewind":                    nothing, // the line after it tells where the conversation goes on
	"system/agent_bootstrap":           nothing,
	"system/agent_launch_prompt":       nothing,
	"system/file_history_snapshot":     nothing,
	"system/session_artifact_event":    nothing,
	"system/session_artifact_snapshot": nothing,
}

// nothing is for lines that tell nothing of the work.
func nothing(c *reader, _ *thread) { c.line.SkipAll() }

func (c *reader) kind() string {
	kind := c.line.Str("type")
	if kind == "system" {
		kind += "/" + c.line.Str("subtype")
	}
	return kind
}

// Line reads a line.
func (c *reader) Line(l *session.Line) {
	c.line.Parse(l.Text)
	kind := c.kind()
	t := c.thread(l)
	if id := c.line.Str("sessionId"); id != "" && t.of != "" && id != t.of || t.side != c.line.Flag("isSidechain") {
		c.r.Another() // the lines of a sub-agent are in a file of its own
		return
	}
	if kinds[kind] == nil {
		c.r.Unread(kind, "")
		return
	}
	if c.line.Raw("forkedFrom") != "" { // a copy of a line of another session
		t.tree.Add(c.line.Str("uuid"), c.line.Str("parentUuid"))
		return
	}
	if t.Agent == nil {
		if full := t.Hold(l); c.foresee(t, kind) || full {
			c.start(t)
		}
		return
	}
	c.read(t, l)
}

func (c *reader) thread(l *session.Line) *thread {
	if t := c.files[l.File]; t != nil {
		return t
	}
	t := &thread{
		Talk: session.Talk{R: c.r}, of: strings.Clone(c.line.Str("sessionId")),
		about: &session.Object{}, infos: map[string]info{},
	}
	t.id = cmp.Or(l.Thread, t.of, mainAgent)
	if l.Facts != nil {
		t.about = session.ParseObject(l.Facts.About)
	}
	t.Model = t.about.Str("model")
	t.inputs = strings.Clone(string(c.line.Pick("cwd", "version", "gitBranch")))
	t.side = c.line.Flag("isSidechain")
	c.files[l.File], c.threads[t.id] = t, t
	return t
}

// foresee takes the model and the prompt of a thread from a line that is held. It reports whether
// the agent is at work.
func (c *reader) foresee(t *thread, kind string) bool {
	switch kind {
	case "user":
		if text, _ := textOf(c.line.Object("message")); t.Prompt == "" && c.line.Str("subtype") == "" {
			t.Prompt = jsonwire.Quote(text)
		}
	case "assistant":
		t.Model = cmp.Or(strings.Clone(c.line.Str("model")), t.Model)
		return true
	}
	return kind == "tool_result"
}

// start starts the agent of a thread, and before the first one the run.
func (c *reader) start(t *thread) {
	parent := c.threads[cmp.Or(t.about.Str("parentAgentId"), t.of)]
	if parent == nil || parent == t {
		parent = c.main
	}
	if parent != nil && parent.Agent == nil {
		c.start(parent)
	}
	c.r.At(t.First, func() {
		if parent == nil {
			c.main = t
			t.StartRun(mainAgent, t.id, t.of, agentevents.JSON(t.inputs))
			return
		}
		t.StartSub(parent.Agent, t.about.Str("agentType"), t.id, t.about.Str("toolUseId"))
	})
	t.Release(func(l *session.Line) { c.read(t, l) })
}

// read makes the events of a line.
func (c *reader) read(t *thread, l *session.Line) {
	c.line.Parse(l.Text)
	c.line.Skip("uuid", "parentUuid", "sessionId", "timestamp", "provenance", "cwd", "gitBranch",
		"agentId", "agentName", "agentColor", "isSidechain", "agentRunId",
		"agentRound", "externalInputKind", "contextWindowSize")
	c.r.SetVersion(c.line.Str("version"))
	kind := c.kind()
	left, branches, isNew := t.tree.Add(c.line.Str("uuid"), c.line.Str("parentUuid"))
	if !isNew {
		return
	}
	if branches {
		c.settle(t)
		t.Retract(left, "the conversation goes on from an earlier message")
	}
	f, ok := kinds[kind]
	if !ok {
		c.r.Unread(kind, "")
		return
	}
	said := len(t.Said)
	f(c, t)
	t.tree.Said(t.Said[said:])
	c.r.Rest(kind, "", &c.line)
	t.See()
}

// textOf returns the text of a message, and the thoughts in it.
func textOf(m *session.Object) (text, thoughts string) {
	var said, thought []string
	for raw := range jsonwire.Elements(cmp.Or(m.Raw("parts"), "[]")) {
		words := jsonwire.Text(jsonwire.Member(raw, "text"))
		switch {
		case words == "":
		case jsonwire.Member(raw, "thought") == "true":
			thought = append(thought, words)
		default:
			said = append(said, words)
		}
	}
	return strings.Join(said, "\n"), strings.Join(thought, "\n")
}

// parts returns the members of one name of the parts of a message.
func parts(m *session.Object, name string) (out []*session.Object) {
	for raw := range jsonwire.Elements(cmp.Or(m.Raw("parts"), "[]")) {
		if inner := jsonwire.Member(raw, name); inner != "" {
			out = append(out, session.ParseObject(inner))
		}
	}
	return out
}

// partNames are the members of parts that are read.
var partNames = map[string]bool{"text": true, "thought": true, "thoughtSignature": true,
	"functionCall": true, "functionResponse": true, "inlineData": true, "fileData": true}

// rest counts what was not read of a message.
func (c *reader) rest(kind string, m *session.Object) {
	m.Skip("role")
	for raw := range jsonwire.Elements(cmp.Or(m.Raw("parts"), "[]")) {
		for name := range jsonwire.Members(raw) {
			if !partNames[name] {
				c.r.Unread(kind, "/message/parts/*/"+jsonwire.Token(name))
			}
		}
	}
	c.r.Rest(kind, "/message", m)
}

// task is the form of a notification about a sub-agent.
var task = regexp.MustCompile(`<task-id>([^<]*)</task-id>(?s:.*)<status>([^<]*)</status>`)

func (c *reader) user(t *thread) {
	m := c.line.Object("message")
	text, _ := textOf(m)
	c.rest("user", m)
	id := strings.Clone(c.line.Str("uuid"))
	c.line.Skip("systemPayload")
	t.answered = false
	switch subtype := c.line.Str("subtype"); {
	case subtype == "mid_turn_user_message" && t.InTurn(), t.Parent != nil && t.InTurn():
		t.Add(id, text)
	case subtype != "" || c.line.Str("provenance") == "system":
		if end := task.FindStringSubmatch(text); end != nil && c.threads[end[1]] != nil {
			c.threads[end[1]].status = end[2]
			c.lay(c.threads[end[1]])
		}
		t.Told(id, text)
	default:
		c.settle(t)
		t.Ask(id, text)
	}
}

func (c *reader) told(t *thread) {
	m := c.line.Object("message")
	if text, _ := textOf(m); text != "" {
		t.Told(strings.Clone(c.line.Str("uuid")), text)
	}
	c.line.SkipAll()
}

// answer reads an answer of the model. A line without tokens goes on with the answer before it. A
// call that has not returned by the next answer was dropped.
func (c *reader) answer(t *thread) {
	m, used := c.line.Object("message"), c.line.Object("usageMetadata")
	id := strings.Clone(c.line.Str("uuid"))
	t.Model = cmp.Or(strings.Clone(c.line.Str("model")), t.Model)
	if used.Text != "" || !t.answered {
		c.settle(t)
		c.r.Interrupt(t.Agent, agentevents.ToolStatusInterrupted, "the model was asked again before the call returned", false)
		call := &agentevents.ModelReturned{ModelCallID: id}
		if used.Text != "" {
			call.Usage = agentevents.Some(usage(used))
			c.r.Rest("assistant", "/usageMetadata", used)
		}
		t.Answer(call)
		t.answered = true
	}
	text, thoughts := textOf(m)
	t.Thought("", thoughts)
	t.Spoke(id, text)
	for _, o := range parts(m, "functionCall") {
		c.r.Call(t.Agent, &agentevents.ToolCalled{
			CallID: o.Str("id"), ToolID: o.Str("name"), Arguments: agentevents.JSON(o.Raw("args")),
		}, 0)
		c.r.Rest("assistant", "/message/parts/*/functionCall", o)
	}
	c.rest("assistant", m)
}

// usage reads tokens: the prompt includes cached tokens and the texts of tools, and the candidates have
// the reasoning. Not all providers count it there, but the total always has it.
func usage(o *session.Object) agentevents.Usage {
	prompt, cached := o.Count("promptTokenCount"), o.Count("cachedContentTokenCount")
	thoughts := o.Count("thoughtsTokenCount")
	output, total := o.Count("candidatesTokenCount").V, o.Count("totalTokenCount")
	o.Skip("toolUsePromptTokenCount", "promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails")
	if total.OK && total.V > prompt.V {
		output = total.V - prompt.V
	}
	return tokens(prompt.V, output, cached, thoughts)
}

func tokens(input, output int64, cached, reasoning agentevents.Opt[int64]) agentevents.Usage {
	return session.UsageOf(input-cached.V, output, cached, agentevents.Opt[int64]{}, reasoning)
}

// statuses are the words for how a call went.
var statuses = map[string]agentevents.ToolStatus{
	"success": agentevents.ToolStatusOK, "error": agentevents.ToolStatusError, "cancelled": agentevents.ToolStatusCancelled,
}

// result reads the return of a call.
func (c *reader) result(t *thread) {
	m, r := c.line.Object("message"), c.line.Object("toolCallResult")
	responses := parts(m, "functionResponse")
	c.rest("tool_result", m)
	t.answered = false
	f := &session.Object{}
	if len(responses) > 0 {
		f = responses[0]
	}
	response := f.Object("response")
	id := cmp.Or(r.Str("callId"), f.Str("id"))
	p := &agentevents.ToolReturned{
		CallID: id, ToolID: f.Str("name"), Status: agentevents.ToolStatusOK,
		Duration: cmp.Or(r.Millis("durationMs"), t.infos[id].took),
	}
	p.Result = agentevents.JSON(cmp.Or(response.Raw("output"), response.Text))
	failure := response.Str("error")
	if status, ok := statuses[cmp.Or(r.Str("status"), t.infos[id].status)]; ok {
		p.Status = status
	} else if failure != "" {
		p.Status = agentevents.ToolStatusError
	}
	if p.Status != agentevents.ToolStatusOK {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Message: cmp.Or(failure, response.Str("output")),
			Code: r.Str("errorType")})
	}
	if display := session.ParseObject(r.Raw("resultDisplay")); display.Str("type") == "shell_result" {
		if exit := display.Int("exitCode"); exit.V != 0 && p.Status != agentevents.ToolStatusCancelled {
			p.Status = agentevents.ToolStatusError
			p.Error = agentevents.Some(agentevents.ErrorInfo{Code: "exit_" + strconv.FormatInt(exit.V, 10),
				Message: cmp.Or(failure, display.Str("output"))})
		}
	}
	if r.Str("errorType") == "execution_denied" {
		p.Status = agentevents.ToolStatusForbidden
	}
	if display := session.ParseObject(r.Raw("resultDisplay")); display.Str("type") == "task_execution" {
		c.raise(t, id, display)
	}
	r.Skip("executionStatus", "error")
	c.r.Rest("tool_result", "/toolCallResult", r)
	f.Skip("id", "name")
	c.r.Rest("tool_result", "/message/parts/*/functionResponse", f)
	delete(t.infos, id)
	t.Back(p)
}

// raise starts an agent for a sub-agent whose file is missing.
func (c *reader) raise(t *thread, call string, display *session.Object) {
	name := strings.Clone(display.Str("subagentName"))
	id := name + "-" + call
	if c.r.Has(id) || c.threads[id] != nil {
		return
	}
	c.r.Note("the file of the sub-agent %s is not here (agent-%s.jsonl): its calls are missing", name, id)
	ghost := &thread{
		Talk: session.Talk{R: c.r, Model: t.Model, Prompt: strings.Clone(display.Raw("taskPrompt"))},
		id:   id, about: &session.Object{}, status: strings.Clone(display.Str("status")), ghost: true,
	}
	c.threads[id] = ghost
	ghost.StartSub(t.Agent, name, id, call)
	c.lay(ghost)
}

// lay ends an agent that raise has started, unless it is at work in the background.
func (c *reader) lay(t *thread) {
	if t.ghost && t.status != "background" {
		t.ghost = false
		c.end(t)
	}
}

// settle records the calls of which telemetry alone tells that somebody stopped them.
func (c *reader) settle(t *thread) {
	for _, call := range t.Calls() {
		if i, ok := t.infos[call.ID]; ok && i.status == "cancelled" {
			t.Back(&agentevents.ToolReturned{CallID: call.ID, Status: agentevents.ToolStatusCancelled, Duration: i.took})
		}
	}
	clear(t.infos)
}

// telemetry reads a line that repeats an answer or a call, of sub-agents, too. It alone tells of
// calls of the model that the program makes for itself, of calls that somebody stopped, and of
// errors of the provider.
func (c *reader) telemetry(t *thread) {
	o := c.line.Object("systemPayload").Object("uiEvent")
	c.line.SkipAll()
	sub := cmp.Or(o.Str("subagent_id"), promptAgent(o.Str("prompt_id"), t.of))
	switch name := o.Str("event.name"); name {
	case "qwen-code.api_response":
		if sub == "" || c.r.Has(sub) {
			return
		}
		output := max(o.Count("output_token_count").V, o.Count("total_token_count").V-o.Count("input_token_count").V)
		c.r.Emit(t.Agent, &agentevents.UsageObserved{
			Model: o.Str("model"), Source: cmp.Or(o.Str("subagent_type"), sub),
			Usage: tokens(o.Count("input_token_count").V, output, o.Count("cached_content_token_count"),
				o.Count("thoughts_token_count")),
		}, 0)
	case "qwen-code.tool_call":
		if id := o.Str("call_id"); sub == "" && t.OpenCall(id) != nil {
			t.infos[strings.Clone(id)] = info{strings.Clone(o.Str("status")), o.Millis("duration_ms")}
		}
	case "qwen-code.api_error":
		code := cmp.Or(o.Str("error_type"), "api_error")
		message := cmp.Or(o.Str("error"), o.Str("error_message"), "status "+o.Raw("status_code"))
		if sub == "" {
			t.Failed(code, message)
		} else {
			t.Warn(code, message)
		}
	default:
		c.r.Unread("system/ui_telemetry/"+name, "")
	}
}

// promptAgent returns the id of the sub-agent in the id of a prompt, such as session#agent#0, or
// "" for the main agent, whose name is a row of number signs.
func promptAgent(prompt, of string) string {
	rest, ok := strings.CutPrefix(prompt, of+"#")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "#")
	return name
}

// compressed reads that the context was replaced by a summary.
func (c *reader) compressed(t *thread) {
	o := c.line.Object("systemPayload").Object("info")
	c.line.SkipAll() // the new history is not work
	c.r.Emit(t.Agent, &agentevents.ContextCompacted{TokensBefore: o.Count("originalTokenCount"),
		TokensAfter: o.Count("newTokenCount")}, 0)
}

// EndFile ends the sub-agent of a file.
func (c *reader) EndFile(l *session.Line) {
	t := c.files[l.File]
	if t == nil || t.First == nil { // a copied history alone
		return
	}
	if t.Agent == nil {
		c.start(t)
	}
	c.settle(t)
	if t.Parent != nil {
		c.end(t)
	}
}

// end ends a sub-agent as its description or a notification tells.
func (c *reader) end(t *thread) {
	switch status := cmp.Or(t.status, t.about.Str("status")); status {
	case "", "running":
	case "completed":
		t.Resolve(agentevents.Opt[agentevents.ErrorInfo]{}, "")
	case "cancelled":
		t.Stop(status)
	default:
		t.Resolve(agentevents.Some(agentevents.ErrorInfo{Code: status,
			Message: cmp.Or(t.about.Str("lastError"), "the sub-agent ended with status "+status)}), "")
	}
	t.Finish()
}

// End ends the run.
func (c *reader) End(*session.Line) {
	if c.main != nil {
		c.main.FinishRun()
	}
}
