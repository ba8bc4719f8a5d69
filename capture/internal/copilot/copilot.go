package copilot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Program returns the reader of sessions, and of the output of a process.
func Program() *session.Program {
	return &session.Program{
		Name:     "Copilot CLI",
		Tested:   "1.0.102",
		Files:    []string{"a session of Copilot CLI", "a stream of copilot"},
		Facts:    facts,
		Time:     lineTime,
		Describe: describe,
		New:      newReader,
	}
}

// facts reads session.start. The output of a process lacks it.
func facts(first []string) (f session.Facts, ok bool) {
	for _, line := range first {
		if jsonwire.Valid(line) != nil {
			continue
		}
		o := session.ParseObject(line)
		if !ok {
			f.At, _ = o.Time("timestamp")
			f.Session, f.Copies, f.Mark = processID(line), true, o.Str("parentId")
			ok = true
		}
		if data := o.Object("data"); o.Str("type") == "session.start" && data.Str("sessionId") != "" {
			f.Session, f.Version, f.Copies, f.Mark = data.Str("sessionId"), data.Str("copilotVersion"), false, ""
			break
		}
	}
	f.Thread = f.Session
	return f, ok
}

// processID is made of the first line of the output of a process, which has a unique id.
func processID(first string) string { return session.ID(strings.TrimSpace(first)) }

// describe finds the session that an output was printed of: its last line tells it.
func describe(f *session.Folder, name string, facts *session.Facts) {
	if !facts.Copies {
		return
	}
	if last := f.Tail(name); jsonwire.Valid(last) == nil {
		if o := session.ParseObject(last); o.Str("type") == "result" {
			facts.Of = o.Str("sessionId")
		}
	}
}

// lineTime returns the time of a line.
func lineTime(line string) (time.Time, bool) {
	for name, raw := range jsonwire.Members(line) {
		if name == "timestamp" {
			return session.ParseTime(jsonwire.Text(raw))
		}
	}
	return time.Time{}, false
}

// A reader is the state of the reader of one run.
type reader struct {
	r          *session.Recorder
	main       *agent
	kinds      map[string]func(*reader, *agent)
	agents     map[string]*agent // sub-agents by their ids
	order      []*agent          // sub-agents
	seen       session.Once      // ids of lines
	session    string
	ended      bool // the process has printed its last line
	inputs     agentevents.JSON
	line, data session.Object
}

// An agent is the main agent, or a sub-agent.
type agent struct {
	session.Talk
	answer    string // id of the model call of the latest answer, for its parts
	apiCall   string // its id for the provider
	told      bool   // its tokens are known
	final     bool   // the latest answer calls no tool
	requested []request
}

// A request is a call of a tool that the model asked for, and that has not begun.
type request struct{ id, tool, args string }

func newReader(r *session.Recorder) session.Reader {
	return &reader{r: r, main: newAgent(r, "", ""), kinds: kinds(), agents: map[string]*agent{}}
}

func newAgent(r *session.Recorder, model, prompt string) *agent {
	return &agent{Talk: session.Talk{R: r, Ends: true, Model: strings.Clone(model), Prompt: prompt}}
}

// kinds are the kinds of lines.
func kinds() map[string]func(*reader, *agent) {
	return map[string]func(*reader, *agent){
		"session.start":                    nothing,
		"session.resume":                   (*reader).resumed,
		"session.model_change":             (*reader).modelChanged,
		"session.usage_record":             (*reader).usage,
		"session.error":                    (*reader).failed,
		"session.warning":                  (*reader).warned,
		"session.compaction_start":         nothing,
		"session.compaction_complete":      (*reader).compacted,
		"session.shutdown":                 (*reader).shutdown,
		"session.info":                     nothing,
		"session.usage_checkpoint":         nothing,
		"session.skills_loaded":            nothing,
		"session.mcp_servers_loaded":       nothing,
		"session.tools_updated":            nothing,
		"session.background_tasks_changed": nothing,
		"user.message":                     (*reader).asked,
		"system.message":                   nothing, // the instructions of the program
		"system.notification":              (*reader).notified,
		"assistant.turn_start":             (*reader).stepStarted,
		"assistant.turn_end":               (*reader).stepEnded,
		"assistant.message":                (*reader).answered,
		"assistant.message_start":          nothing,
		"assistant.message_delta":          nothing,
		"assistant.reasoning":              nothing, // the message has it
		"assistant.reasoning_delta":        nothing,
		"assistant.tool_call_delta":        nothing,
		"assistant.idle":                   nothing,
		"agent.interrupted":                nothing,
		"model.call_start":                 nothing,
		"model.call_finished":              nothing,
		"model.call_final_result":          nothing,
		"tool.execution_start":             (*reader).toolStarted,
		"tool.execution_partial_result":    nothing,
		"tool.shell_output":                nothing,
		"tool.execution_complete":          (*reader).toolEnded,
		"subagent.started":                 nothing, // agentOf
		"subagent.configured":              (*reader).configured,
		"subagent.completed":               (*reader).subagentEnded,
		"subagent.failed":                  (*reader).subagentEnded,
		"abort":                            (*reader).aborted,
		"result":                           (*reader).result,
	}
}

// openers are the kinds of lines that come before the work of the main agent.
var openers = []string{
	"session.start", "session.resume", "session.model_change", "session.info", "system.message", "session.skills_loaded",
	"session.mcp_servers_loaded", "session.tools_updated", "session.background_tasks_changed",
}

func nothing(c *reader, _ *agent) { c.data.SkipAll() }

// Line reads a line.
func (c *reader) Line(l *session.Line) {
	kind := c.open(l)
	if c.begins(kind) {
		c.r.Another()
		return
	}
	if !c.seen.First(c.line.Str("id")) {
		return // it stands there twice
	}
	if c.main.Agent == nil {
		full := c.main.Hold(l)
		if c.foresee(kind); full || !slices.Contains(openers, kind) {
			c.start()
		}
		return
	}
	c.read(kind)
}

// begins reports whether a line begins another session, or the output of another process, the last line
// of which is a result unless it was killed.
func (c *reader) begins(kind string) bool {
	if c.main.First == nil {
		return false
	}
	switch kind {
	case "session.start":
		return c.ended || c.session != c.data.Str("sessionId")
	case "session.skills_loaded":
		return c.ended || c.line.Flag("ephemeral") && c.main.Agent != nil
	}
	return c.ended
}

// open parses a line and returns its kind.
func (c *reader) open(l *session.Line) string {
	c.line.Parse(l.Text)
	c.line.Skip("timestamp", "id", "parentId", "ephemeral", "agentId")
	c.data.Parse(c.line.Raw("data"))
	return c.line.Str("type")
}

// foresee takes the facts of the session from a line that is held.
func (c *reader) foresee(kind string) {
	switch kind {
	case "session.start":
		c.session = cmp.Or(c.session, strings.Clone(c.data.Str("sessionId")))
		c.main.Model = cmp.Or(strings.Clone(c.data.Str("selectedModel")), c.main.Model)
		c.r.SetVersion(c.data.Str("copilotVersion"))
		if c.inputs == "" {
			c.inputs = agentevents.JSON(strings.Clone(string(c.data.Pick("context", "copilotVersion"))))
		}
	case "session.resume":
		c.main.Model = cmp.Or(strings.Clone(c.data.Str("selectedModel")), c.main.Model)
	case "session.model_change":
		c.main.Model = cmp.Or(strings.Clone(c.data.Str("newModel")), c.main.Model)
	case "session.tools_updated":
		c.main.Model = cmp.Or(c.main.Model, strings.Clone(c.data.Str("model")))
	case "user.message":
		c.main.Prompt = strings.Clone(c.data.Raw("content"))
	}
}

// start starts the run, and reads the lines that were held.
func (c *reader) start() {
	first := c.main.First
	c.r.At(first, func() {
		c.main.StartRun("copilot", cmp.Or(c.session, first.Thread, processID(first.Text)), c.session, c.inputs)
	})
	c.main.Release(func(l *session.Line) { c.read(c.open(l)) })
}

// read makes the events of a line, which was parsed.
func (c *reader) read(kind string) {
	f, ok := c.kinds[kind]
	if !ok {
		c.r.Unread(kind, "")
		return
	}
	a := c.agentOf(kind)
	f(c, a)
	c.r.Rest(kind, "", &c.line)
	c.r.Rest(kind, "/data", &c.data)
}

// agentOf returns the agent of a line. A sub-agent begins with its first line. In older versions the
// call that started it has its id.
func (c *reader) agentOf(kind string) *agent {
	own, by, call := c.line.Str("agentId"), c.main, c.data.Str("parentToolCallId")
	if strings.HasPrefix(kind, "subagent.") {
		call = c.data.Str("toolCallId")
	}
	id := cmp.Or(own, call)
	if id == "" {
		return c.main
	}
	if a := c.agents[id]; a != nil && (a.Open || kind != "subagent.started") {
		return a
	}
	if parent := c.agents[c.data.Str("parentId")]; parent != nil && parent.Open {
		by = parent
	}
	p := &agentevents.AgentStarted{Name: c.data.Str("agentName"), Model: c.data.Str("model"), ProviderSessionID: own}
	for _, owner := range append([]*agent{c.main}, c.order...) { // whose call it is
		if open := owner.OpenCall(call); open != nil {
			by = owner
			p.Prompt = agentevents.JSON(jsonwire.Member(open.Arguments, "prompt"))
		}
	}
	if call != "" && by.OpenCall(call) == nil {
		call = ""
	}
	if kind == "user.message" {
		p.Prompt = agentevents.JSON(c.data.Raw("content"))
	}
	p.Task = jsonwire.Text(string(p.Prompt))
	a := newAgent(c.r, p.Model, "")
	a.Agent = c.r.NewAgent(c.main.ID, by.Agent, p.Name, id)
	c.agents[strings.Clone(id)] = a
	if call != "" {
		c.agents[strings.Clone(call)] = a
	}
	c.order = append(c.order, a)
	c.r.Start(a.Agent, call, p)
	if own == "" { // no text of the parent begins its turn
		a.Begin()
	}
	return a
}

func (c *reader) resumed(a *agent) {
	a.CutTurn() // the process before was killed
	a.Model = cmp.Or(strings.Clone(c.data.Str("selectedModel")), a.Model)
	if c.session != "" {
		c.r.Emit(a.Agent, &agentevents.AgentSessionChanged{ProviderSessionID: c.session, Reason: "resume"}, 0)
	}
	c.data.SkipAll()
}

func (c *reader) modelChanged(a *agent) {
	a.Model = cmp.Or(strings.Clone(c.data.Str("newModel")), a.Model)
	c.data.SkipAll()
}

// asked reads a text of the user. One that comes while the agent works belongs to the turn.
func (c *reader) asked(a *agent) {
	text, delivery := c.data.Str("content"), cmp.Or(c.data.Str("delivery"), "idle")
	id := cmp.Or(c.data.Str("messageId"), c.line.Str("id"), c.r.LineID())
	c.data.Skip("transformedContent", "supportedNativeDocumentMimeTypes", "interactionId", "turnId", "parentAgentTaskId")
	if !a.InTurn() || delivery == "idle" {
		c.rest(a)
		a.Begin()
	}
	a.Add(id, text)
}

func (c *reader) notified(a *agent) {
	c.data.Skip("kind", "interactionId")
	a.Told(cmp.Or(c.line.Str("id"), c.r.LineID()), c.data.Str("content"))
}

func (c *reader) stepStarted(a *agent) {
	c.data.SkipAll()
	a.final, a.answer = false, ""
	if !a.InTurn() {
		a.Begin()
	}
}

// stepEnded reads the end of an answer and its calls. The turn ends with an answer that calls no
// tool; the calls of one that was broken off stay open for the line that tells of it.
func (c *reader) stepEnded(a *agent) {
	c.data.SkipAll()
	if a.final {
		c.rest(a)
		a.Complete(0)
	}
}

// usage reads the tokens of one call of the model.
func (c *reader) usage(a *agent) {
	o := c.data.Object("usage")
	id := cmp.Or(strings.Clone(c.line.Str("id")), c.r.LineID())
	p := &agentevents.ModelReturned{
		ModelCallID: id, Model: o.Str("model"), ResponseID: o.Str("apiCallId"),
		Usage:    agentevents.Some(usageOf(o)),
		Duration: o.Millis("duration"), TimeToFirstToken: o.Millis("timeToFirstTokenMs"),
	}
	if why := o.Str("finishReason"); why != "" {
		p.FinishReasons = []string{why}
	}
	o.SkipAll()                                                 // facts about the request
	if a.answer != "" && !a.told && a.apiCall == p.ResponseID { // the answer came before
		a.told = true
		c.r.Emit(a.Agent, &agentevents.UsageObserved{ModelCallID: a.answer, Model: p.Model, Usage: p.Usage.V}, 0)
		return
	}
	a.answer, a.apiCall, a.told = id, strings.Clone(p.ResponseID), true
	a.Answer(p)
}

// usageOf returns tokens with the library's meaning: the input of Copilot holds the cached tokens.
func usageOf(o *session.Object) agentevents.Usage {
	read, written, reasoning := o.Count("cacheReadTokens"), o.Count("cacheWriteTokens"), o.Count("reasoningTokens")
	return session.UsageOf(o.Count("inputTokens").V-read.V-written.V, o.Count("outputTokens").V, read, written, reasoning)
}

// answered reads an answer of the model. Its tokens stand before it, or nowhere.
func (c *reader) answered(a *agent) {
	id, api := cmp.Or(c.data.Str("messageId"), c.r.LineID()), c.data.Str("apiCallId")
	if a.answer == "" || a.apiCall != api || api == "" {
		a.answer, a.apiCall, a.told = cmp.Or(strings.Clone(c.line.Str("id")), c.r.LineID()), strings.Clone(api), false
		a.Answer(&agentevents.ModelReturned{ModelCallID: a.answer, Model: c.data.Str("model"), ResponseID: api})
	}
	if text := c.data.Str("reasoningText"); text != "" {
		a.Thought(id+":reasoning", text)
	}
	if text := c.data.Str("content"); text != "" {
		a.Spoke(id, text)
	}
	c.rest(a)
	for text := range jsonwire.Elements(c.data.Raw("toolRequests")) {
		o := session.ParseObject(text)
		a.requested = append(a.requested,
			request{strings.Clone(o.Str("toolCallId")), strings.Clone(o.Str("name")), strings.Clone(o.Raw("arguments"))})
		o.Skip("type", "intentionSummary", "toolTitle", "mcpServerName", "mcpToolName")
		c.r.Rest("assistant.message", "/data/toolRequests/*", o)
	}
	a.final = len(a.requested) == 0
	c.data.Skip("originatingMessageId", "interactionId", "turnId", "rte", "model",
		"reasoningOpaque", "encryptedContent", "outputTokens", "parentToolCallId")
}

func (c *reader) toolStarted(a *agent) {
	id, tool := c.data.Str("toolCallId"), c.data.Str("toolName")
	p := &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(c.data.Raw("arguments"))}
	if server := c.data.Str("mcpServerName"); server != "" {
		p.ToolID, p.Transport = server+"."+cmp.Or(c.data.Str("mcpToolName"), tool), agentevents.TransportMCP
	}
	c.data.Skip("turnId", "model", "toolTitle", "shellToolInfo", "parentToolCallId", "toolDescription", "mcpToolName")
	a.requested = slices.DeleteFunc(a.requested, func(r request) bool { return r.id == id })
	c.r.Call(a.Agent, p, 0)
}

// rest opens the calls that the model asked for and that never began. They end with the turn.
func (c *reader) rest(a *agent) {
	for _, r := range a.requested {
		c.r.Call(a.Agent, &agentevents.ToolCalled{CallID: r.id, ToolID: r.tool, Arguments: agentevents.JSON(r.args)},
			agentevents.MarkSynthetic)
	}
	a.requested = nil
}

// refusals are the codes of errors of calls that were not allowed.
var refusals = []string{"denied", "rejected"}

func (c *reader) toolEnded(a *agent) {
	result, failure := c.data.Object("result"), c.data.Object("error")
	exit := c.data.Object("shellExecution").Int("exitCode")
	p := &agentevents.ToolReturned{
		CallID: c.data.Str("toolCallId"), ToolID: c.data.Str("toolName"), Result: agentevents.JSON(result.Raw("content")),
	}
	p.Status = agentevents.ToolStatusOK
	success, message, code := c.data.Flag("success"), failure.Str("message"), failure.Str("code")
	switch {
	case slices.Contains(refusals, code):
		p.Status = agentevents.ToolStatusForbidden
	case !success, exit.OK && exit.V != 0:
		p.Status = agentevents.ToolStatusError
	}
	if p.Status != agentevents.ToolStatusOK {
		if exit.V == 0 {
			exit.OK = false
		}
		p.Error = session.Failed(p.Status, exit, cmp.Or(message, result.Str("content")))
	}
	result.Skip("detailedContent", "contents")
	c.data.Skip("model", "interactionId", "turnId", "rte", "toolTelemetry", "parentToolCallId", "isUserRequested")
	c.r.Rest("tool.execution_complete", "/data/result", result)
	c.r.Rest("tool.execution_complete", "/data/error", failure)
	c.r.Return(a.Agent, p, 0)
}

func (c *reader) configured(a *agent) {
	a.Model = cmp.Or(strings.Clone(c.data.Str("model")), a.Model)
	c.data.SkipAll()
}

func (c *reader) subagentEnded(a *agent) {
	c.rest(a)
	switch message := c.data.Str("error"); {
	case c.line.Str("type") == "subagent.failed":
		a.Fails("error", cmp.Or(message, "the sub-agent failed"))
		a.Complete(0)
	case c.data.Flag("cancelled"):
		a.Stop("cancelled")
	default:
		a.Complete(0)
	}
	c.data.SkipAll() // totals of its work
	if a != c.main {
		a.Finish()
	}
}

// failed reads an error, which the turn ends with unless the agent goes on.
func (c *reader) failed(a *agent) {
	a.Fails(cmp.Or(c.data.Str("errorType"), "error"), c.data.Str("message"))
	c.data.Skip("stack", "statusCode", "providerCallId", "url")
}

func (c *reader) warned(a *agent) {
	c.r.Emit(a.Agent, &agentevents.AgentErrored{
		ErrorType: cmp.Or(c.data.Str("warningType"), "warning"),
		Message:   c.data.Str("message"), Severity: agentevents.SeverityWarning,
	}, 0)
	c.data.Skip("url")
}

func (c *reader) compacted(a *agent) {
	if c.data.Raw("success") != "false" {
		c.r.Emit(a.Agent, &agentevents.ContextCompacted{Summary: c.data.Str("summaryContent")}, 0)
	}
	c.data.SkipAll()
}

// aborted reads that somebody stopped the agent, and with the main one its sub-agents.
func (c *reader) aborted(a *agent) {
	reason := cmp.Or(c.data.Str("reason"), "abort")
	for _, b := range c.order {
		if b != a && a == c.main && b.Open {
			c.rest(b)
			b.Stop(reason)
			b.Finish()
		}
	}
	c.rest(a)
	a.Stop(reason)
}

// shutdown reads the end of the process. Its totals are sums over all processes.
func (c *reader) shutdown(a *agent) {
	if message := c.data.Str("errorReason"); a.InTurn() && message != "" {
		a.Fails("error", message)
	}
	c.data.SkipAll()
	c.rest(a)
	a.CutTurn()
}

// result reads the last line of an output.
func (c *reader) result(a *agent) {
	if id := c.line.Str("sessionId"); id != "" && id != c.session {
		c.session = strings.Clone(id)
		c.r.Emit(a.Agent, &agentevents.AgentSessionChanged{ProviderSessionID: c.session}, 0)
	}
	c.line.Skip("usage")
	c.ended = true
	if exit := c.line.Int("exitCode"); exit.V != 0 && a.InTurn() {
		e := session.Failed(agentevents.ToolStatusError, exit,
			"the program ended with exit code "+string(jsonwire.AppendInt(nil, exit.V)))
		a.Fails(e.V.Code, e.V.Message)
		c.rest(a)
		a.Complete(0)
	}
}

// End ends the run.
func (c *reader) End(*session.Line) {
	if c.main.First == nil {
		return
	}
	if c.main.Agent == nil {
		c.start()
	}
	for _, a := range c.order {
		if a.Open {
			c.rest(a)
			a.Finish()
		}
	}
	c.rest(c.main)
	c.main.FinishRun()
}
