package claude

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/transcript"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	systemAgent    = "core.system" // the sender of messages that no agent writes; OpenWOP reserves the id
	errorToolUse   = "error_tool_use"
	errorRateLimit = "rate_limit"
)

// assistant processes a line with whole blocks of an API message.
func (d *Decoder) assistant(l *line) {
	a := d.agentOf(l)
	message := l.object.object("message")
	model := message.str("model")
	d.settle(a)
	id := message.str("id")
	if model == modelNone && !hasBlocks(&message) {
		d.start(a, "")
		d.retract(a, l.strings("supersedes"), "supersedes")
		d.ownWords(a, l, &message)
		return
	}
	d.start(a, model)
	d.retract(a, l.strings("supersedes"), "supersedes")
	a.enter(id)
	d.answered(a, id, message.str("model"))
	a.use(id, model, &message)
	if kind := l.str("error"); kind != "" {
		d.apiError(a, kind, contentText(message.raw("content")))
	}
	if raw := message.raw("content"); strings.HasPrefix(raw, `"`) {
		d.text(a, d.blockID(a, id), unquote(raw))
		return
	}
	for _, block := range message.objects("content") {
		d.block(a, id, &block)
	}
}

// modelNone is the model of messages that the CLI writes itself.
const modelNone = transcript.Synthetic

// hasBlocks reports whether a message has more than texts.
func hasBlocks(message *object) bool {
	return strings.HasPrefix(message.raw("content"), "[") &&
		slices.ContainsFunc(message.objects("content"), func(b object) bool { return b.str("type") != "text" })
}

// ownWords processes a message that the CLI wrote in the place of the model: an error of the
// API, or the output of a command. The agent takes a step only for a message of the model.
func (d *Decoder) ownWords(a *agent, l *line, message *object) {
	text := contentText(message.raw("content"))
	if kind := l.str("error"); kind != "" || l.flag("is_api_error_message") {
		d.apiError(a, cmp.Or(kind, l.str("api_error"), "api_error"), text)
	} else if text != "" {
		d.message(nil, agentevents.ConversationMessage{
			MessageID: l.uuid, From: systemAgent, To: "user", Content: agentevents.JSONString(text), Role: "system",
		}, "orchestrator")
	}
}

// apiError records an error of the API. A result that repeats it does not tell it again.
func (d *Decoder) apiError(a *agent, kind, text string) {
	text = cmp.Or(text, kind)
	if a == d.main {
		d.told = text
	}
	d.emit(a, &agentevents.AgentErrored{ErrorType: kind, Message: text}, 0)
}

// blockID returns the id of the next whole block of an API message. It has the number of the block
// being streamed, or the next one.
func (d *Decoder) blockID(a *agent, message string) string {
	if message == "" {
		message = "line-" + strconv.Itoa(d.cur.no)
	}
	n := d.blocks.get(message)
	if a.stream.message == message && a.stream.open > n {
		n = a.stream.open
	}
	d.blocks.set(message, n+1)
	return blockName(message, n)
}

func blockName(message string, n int) string { return message + ":" + strconv.Itoa(n) }

func (d *Decoder) block(a *agent, message string, block *object) {
	kind := block.str("type")
	id := d.blockID(a, message)
	switch {
	case kind == "text":
		d.text(a, id, block.str("text"))
	case kind == "thinking" || kind == "redacted_thinking":
		p := &agentevents.AgentReasoned{BlockID: id, Reasoning: block.str("thinking")}
		if p.Reasoning == "" {
			p.Verbosity = agentevents.VerbosityOff
		}
		d.emit(a, p, 0)
	case strings.HasSuffix(kind, "tool_use"):
		d.toolUse(a, kind, block)
	case strings.HasSuffix(kind, "tool_result"):
		d.toolResult(a, block, false)
	case kind == "":
		block.faults.add(block.pointer("type"), `member "type" is required`)
	default:
		d.emit(a, &agentevents.Unknown{Type: agentevents.Kind("claude.block." + kind), Raw: agentevents.JSON(block.text)}, 0)
	}
}

// text emits the events of a whole text block, which is also a message of the agent.
func (d *Decoder) text(a *agent, id, text string) {
	if text == "" {
		return
	}
	d.emit(a, &agentevents.TextCompleted{BlockID: id, Text: text}, 0)
	to := "user"
	if a.parent != nil {
		to = a.parent.id
	}
	d.message(a, agentevents.ConversationMessage{
		MessageID: id, From: a.id, To: to, Content: agentevents.JSONString(text), Role: "agent",
	}, "")
}

func (d *Decoder) message(a *agent, m agentevents.ConversationMessage, actor string) {
	m.TS = d.cur.sent().UnixMilli()
	if m.MessageID == "" {
		m.MessageID = d.eventID(d.cur.no, d.cur.pos)
	}
	d.messages = append(d.messages, eventRef{d.cur.no, d.cur.pos})
	d.record(a, agentevents.Event{Actor: actor, Payload: &agentevents.MessageCreated{Message: m}})
}

func (d *Decoder) toolUse(a *agent, kind string, block *object) {
	id, tool := block.str("id"), block.str("name")
	if id == "" || tool == "" {
		block.faults.add(block.at, `a block of type %s needs "id" and "name"`, jsonwire.Brief(kind))
		return
	}
	if d.calls[id] != nil {
		block.faults.add(block.pointer("id"), "call %s is already open; this repetition is skipped", jsonwire.Brief(id))
		return
	}
	p := &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(block.raw("input"))}
	if kind == "mcp_tool_use" || strings.HasPrefix(tool, "mcp__") {
		p.Transport = agentevents.TransportMCP
	}
	d.emit(a, p, 0)
	c := &call{
		id: strings.Clone(id), tool: strings.Clone(tool), agent: a, order: d.callSeq, at: d.cur.at, stamped: d.cur.stamped,
	}
	d.callSeq++
	input := block.raw("input")
	if strings.HasPrefix(input, "{") && (transcript.IsSpawn(tool) || strings.Contains(input, `"run_in_background"`)) {
		var ignored faults
		args := parseObject(input, "", &ignored)
		c.background = args.raw("run_in_background") == "true"
		if transcript.IsSpawn(tool) {
			c.args = strings.Clone(string(args.pick("subagent_type", "description", "prompt", "model", "run_in_background")))
		}
	}
	d.calls[c.id], a.calls[c.id] = c, c
	d.streamed.set("call "+c.id, 1)
}

// toolResult processes a result block. alone means that it is the only one on its line, so the
// line's tool_use_result belongs to it.
func (d *Decoder) toolResult(a *agent, block *object, alone bool) {
	id := block.str("tool_use_id")
	if id == "" {
		block.faults.add(block.pointer("tool_use_id"), `member "tool_use_id" is required`)
		return
	}
	content := block.raw("content")
	p := &agentevents.ToolReturned{CallID: id, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(content)}
	message, failed := transcript.ServerFailure(content)
	message = cmp.Or(message, contentText(content))
	failed = failed || block.flag("is_error")
	var output object
	if raw := d.cur.raw("tool_use_result"); alone && raw != "" {
		if raw[0] == '{' {
			output = parseObject(raw, "/tool_use_result", block.faults)
		}
		if !failed && (raw[0] == '{' || raw[0] == '[' || content == "") {
			p.Result = agentevents.JSON(raw)
			p.ResultSummary = summary(message)
		}
	}
	if failed {
		p.Status = agentevents.ToolStatusError
		message = cmp.Or(message, content)
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: errorToolUse, Message: message})
	}
	var ignored faults
	output.faults = &ignored
	p.Duration = output.millis("totalDurationMs")
	if !p.Duration.OK {
		p.Duration = output.millis("durationMs")
	}

	if c := d.calls[id]; c != nil && c.doubt != nil { // a second result
		d.decide(c, agentevents.ToolStatusForbidden)
	}
	c := d.calls[id]
	if c == nil {
		p.ToolID, p.OneEvent = "unknown", true
		d.start(a, "")
		d.emit(a, p, agentevents.MarkSynthetic)
		return
	}
	if took := d.cur.at.Sub(c.at); !p.Duration.OK && c.stamped && d.cur.stamped && took >= 0 {
		p.Duration = agentevents.Some(took)
	}
	if !p.Duration.OK {
		p.Duration = c.elapsed
	}
	finish := func() { d.finishCall(c, p, &output, content) }
	if failed {
		status := statusOf(d.cur, c, message)
		if status == transcript.InDoubt {
			c.doubt = &doubt{d.cur, finish, p}
			return
		}
		d.classify(c, p, status)
	}
	finish()
}

// finishCall records the return of a call, and the end of the sub-agent that it spawned.
func (d *Decoder) finishCall(c *call, p *agentevents.ToolReturned, output *object, content string) {
	launched := output.str("status") == "async_launched" || output.raw("isAsync") == "true"
	if b := d.agents[c.id]; launched && (b != nil || transcript.IsSpawn(c.tool)) {
		d.subAgent(c.id, d.cur).background = true // its end comes with a task_notification
	} else if b != nil && !b.background {
		d.endSubAgent(b, subAgentEnd(p, output, content), 0)
	}
	if d.calls[c.id] == nil {
		return // the call was one of the sub-agent that it spawned; no real stream has that
	}
	d.closeCall(c, p, 0)
}

// subAgentEnd returns the end that the result of the spawning call states. The usage beside the
// result covers only the sub-agent's last API message.
func subAgentEnd(p *agentevents.ToolReturned, output *object, content string) agentevents.AgentEnded {
	end := agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Duration: output.millis("totalDurationMs")}
	if end.Result = contentText(output.raw("content")); end.Result == "" {
		end.Result = contentText(content)
	}
	switch err := transcript.StatusError(output.str("status")); {
	case p.Error.OK:
		end.Outcome, end.Error, end.Result = agentevents.OutcomeAborted, p.Error, ""
	case err.OK:
		end.Outcome, end.Error = agentevents.OutcomeAborted, err
	}
	return end
}

// summary cuts text to the length of a summary.
func summary(text string) string {
	const limit = 2048 // characters
	if len(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > limit {
			return text[:i]
		}
	}
	return text
}

// user processes a line of the user's side: tool results and text.
func (d *Decoder) user(l *line) {
	a := d.agentOf(l)
	message := l.object.object("message")
	if hasToolResult(l) {
		d.start(a, "")
		blocks := message.objects("content")
		results := 0
		for i := range blocks {
			if blocks[i].raw("type") == `"tool_result"` {
				results++
			}
		}
		for i := range blocks {
			if blocks[i].raw("type") == `"tool_result"` {
				d.toolResult(a, &blocks[i], results == 1)
			}
		}
	} else if d.waits(a, l) {
		return
	}
	content, ok := messageContent(&message)
	if !ok {
		return
	}
	text := contentText(string(content))
	interruption := transcript.IsInterruption(text)
	if a == d.main && interruption {
		d.stopped = "interrupted by the user"
	}
	m := agentevents.ConversationMessage{MessageID: l.uuid, From: "user", To: a.id, Content: content, Role: "user"}
	actor := "user"
	switch {
	case l.flag("isSynthetic"), interruption, fromCommand(text): // the CLI writes it
		m.From, m.Role, actor = systemAgent, "system", "orchestrator"
	case a.parent != nil:
		m.From, actor = a.parent.id, "parent"
	}
	d.message(a, m, actor)
}

// messageContent returns the content of a message without its tool results: a string if
// it is one text, else the blocks. It reports false if the message lacks content.
func messageContent(message *object) (agentevents.JSON, bool) {
	raw := message.raw("content")
	if raw == "" {
		return "", false
	}
	if raw[0] == '"' {
		return agentevents.JSON(raw), true
	}
	var keep []string
	var text string
	for _, block := range message.objects("content") {
		if kind := block.str("type"); kind == "tool_result" {
			continue
		} else if text = ""; kind == "text" {
			text = block.raw("text")
		}
		keep = append(keep, block.text)
	}
	switch {
	case len(keep) == 0:
		return "", false
	case len(keep) == 1 && strings.HasPrefix(text, `"`):
		return agentevents.JSON(text), true
	}
	return agentevents.JSON("[" + strings.Join(keep, ",") + "]"), true
}

// retract emits the retraction of the events of earlier lines.
func (d *Decoder) retract(a *agent, uuids []string, reason string) {
	var ids []string
	for _, id := range uuids {
		if made, ok := d.made[id]; ok {
			for pos := range made.events {
				ids = append(ids, d.eventID(made.no, pos))
			}
			made.events = 0
			d.made[id] = made
		}
	}
	if len(ids) > 0 {
		d.emit(a, &agentevents.EventRetracted{EventIDs: ids, Reason: reason}, 0)
	}
}

// system processes a line of type system, except an init that begins a turn.
func (d *Decoder) system(l *line) {
	a := d.main
	switch l.str("subtype") {
	case "init": // inside a turn
		before := d.session
		if session := l.str("session_id"); session != "" {
			d.session = strings.Clone(session)
		}
		d.anew = true
		d.begun = append(d.begun, d.callSeq)
		d.fresh = true
		d.sessionChanged(before)
		return
	case "hook_started", "hook_response":
		d.resumed = d.resumed || l.str("hook_name") == "SessionStart:resume"
	case "compact_boundary":
		d.compacted = true
		meta := l.object.object("compact_metadata")
		d.emit(a, &agentevents.ContextCompacted{
			TokensBefore: meta.count("pre_tokens"), TokensAfter: meta.count("post_tokens"), Trigger: meta.str("trigger"),
		}, 0)
		return
	case "api_retry":
		d.emit(a, &agentevents.AgentErrored{
			ErrorType: cmp.Or(plain(l.raw("error")), "api_retry"), Message: "the request to the API is tried again",
			Severity: agentevents.SeverityWarning, Details: agentevents.JSON(l.text),
		}, 0)
		return
	case "permission_denied":
		if c := d.calls[l.str("tool_use_id")]; c != nil {
			c.denied = true
		}
	case "model_refusal_fallback":
		d.retract(a, l.strings("retracted_message_uuids"), "model_refusal_fallback")
	case "task_started":
		d.taskStarted(l)
	case "task_updated":
		patch := l.object.object("patch")
		if b := d.agents[d.tasks[l.str("task_id")]]; b != nil && patch.raw("is_backgrounded") == "true" {
			b.background = true
		}
	case "task_progress":
		d.workflow(l)
	case "task_notification":
		d.workflow(l)
		d.taskNotified(l)
	}
	d.other(l)
}

// plain returns the text of a JSON string and "" for any other value.
func plain(raw string) string {
	if strings.HasPrefix(raw, `"`) {
		return unquote(raw)
	}
	return ""
}

func (d *Decoder) taskStarted(l *line) {
	task, key := l.str("task_id"), l.str("tool_use_id")
	if key == "" {
		key = task
	}
	if key == "" {
		return
	}
	if task != "" {
		d.tasks[strings.Clone(task)] = strings.Clone(key)
	}
	background := l.flag("is_backgrounded")
	c := d.calls[key]
	if c != nil && background {
		c.background = true
	}
	if l.str("subagent_type") == "" && l.str("task_type") != "local_agent" && (c == nil || !transcript.IsSpawn(c.tool)) {
		return // not a sub-agent but, for example, a command
	}
	if b := d.subAgent(key, l); background {
		b.background = true
	}
}

// taskNotified ends a sub-agent that outlived its call. Others end with the result of
// their call.
func (d *Decoder) taskNotified(l *line) {
	key, ok := d.tasks[l.str("task_id")]
	if id := l.str("tool_use_id"); id != "" {
		key = id
	}
	if ok {
		delete(d.tasks, l.str("task_id"))
	}
	d.endWorkflow(key, l.str("status"))
	b := d.agents[key]
	if b == nil || b.ended || d.calls[key] != nil {
		return
	}
	u := l.object.object("usage")
	end := taskEnd(l.str("status"), l.str("summary"))
	end.Duration = u.millis("duration_ms")
	d.endSubAgent(b, end, 0)
}

// taskEnd returns the end of a sub-agent that a task's status and its last words tell. A task
// without a status has completed.
func taskEnd(status, words string) agentevents.AgentEnded {
	if !transcript.StatusError(status).OK {
		return agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: words}
	}
	return agentevents.AgentEnded{
		Outcome: agentevents.OutcomeAborted,
		Error:   agentevents.Some(agentevents.ErrorInfo{Code: status, Message: cmp.Or(words, "the task did not complete")}),
	}
}

// other processes a line of any other type. It emits most of them complete, as Unknown.
func (d *Decoder) other(l *line) {
	switch l.kind {
	case "tool_progress":
		if c := d.calls[l.str("tool_use_id")]; c != nil {
			if s := l.number("elapsed_time_seconds"); s.OK && s.V < 1e9 {
				c.elapsed = agentevents.Some(time.Duration(s.V * float64(time.Second)).Truncate(time.Millisecond))
			}
		}
	case "rate_limit_event":
		info := l.object.object("rate_limit_info")
		if status := info.str("status"); status != "allowed" {
			d.emit(d.main, &agentevents.AgentErrored{
				ErrorType: errorRateLimit, Message: cmp.Or(status, "the API limits the rate"),
				Severity: agentevents.SeverityWarning, Details: agentevents.JSON(l.text),
			}, 0)
			return
		}
	case "conversation_reset":
		d.resetConversation()
	}
	kind := "claude." + l.kind
	if sub := l.str("subtype"); sub != "" {
		kind += "." + sub
	}
	a := d.agents[d.agentKey(l)]
	if a == nil || !a.open {
		a = d.main
	}
	d.emit(a, &agentevents.Unknown{Type: agentevents.Kind(kind), Raw: agentevents.JSON(l.text)}, 0)
}

// resetConversation retracts the messages so far. The events of tools stay, because
// their effects do.
func (d *Decoder) resetConversation() {
	d.anew = true
	ids := make([]string, len(d.messages))
	for i, m := range d.messages {
		ids[i] = d.eventID(m.no, m.pos)
	}
	d.messages = nil
	if len(ids) > 0 {
		d.emit(d.main, &agentevents.EventRetracted{EventIDs: ids, Reason: "conversation_reset"}, 0)
	}
}
