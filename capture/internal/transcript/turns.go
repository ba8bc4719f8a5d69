package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// beginTurn begins a turn. Sub-agents have none.
func (c *reader) beginTurn(t *thread, prompt string) {
	c.endTurn(t)
	t.turns++
	t.turn = &turn{number: t.turns, prompt: strings.Clone(prompt)}
	l := c.r.Here()
	if t.woken != nil {
		l = t.woken
	}
	t.pending, t.woken, t.words = "", nil, ""
	if !t.sub {
		c.r.At(l, func() { c.r.Emit(t.agent, &agentevents.TurnStarted{Turn: agentevents.Some(t.turns)}, 0) })
	}
}

// ensureTurn begins a turn if the model answers without one, or answers a prompt that the program
// itself wrote after the turn.
func (c *reader) ensureTurn(t *thread) {
	if t.turn == nil || t.pending != "" && t.pending != t.turn.prompt {
		c.beginTurn(t, t.pending)
	}
}

// endTurn ends the turn of a thread at its last line.
func (c *reader) endTurn(t *thread) {
	if t.turn == nil {
		return
	}
	c.at(t, func() {
		c.endAnswer(t)
		c.judge(t)
		status := agentevents.ToolStatusInterrupted
		if t.turn.stopped {
			status = agentevents.ToolStatusCancelled
		}
		c.r.Interrupt(t.agent, status, "the turn ended before the call returned", true)
		var marks agentevents.Marks
		if t.turn.cut {
			marks = agentevents.MarkSynthetic
		}
		p := &agentevents.TurnEnded{Turn: agentevents.Some(t.turn.number), Error: t.turn.err}
		if d := t.turn.duration; d != nil && d.OK {
			p.Duration = agentevents.Some(time.Duration(d.V) * time.Millisecond)
		}
		if !t.sub {
			c.r.Emit(t.agent, p, marks)
		}
	})
	t.last, t.turn, t.state = *t.turn, nil, idle
}

// judge decides how the turn ended.
func (c *reader) judge(t *thread) {
	switch t.state {
	case failed, limited:
		t.turn.err = t.err
	case stopped:
		t.turn.err, t.turn.stopped = t.err, true
	case asked, working:
		t.turn.cut = true
		t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted", Message: c.cutMessage(t)})
		switch {
		case t.turn.output && len(t.agent.Calls()) == 0:
			t.turn.cut, t.turn.err = false, agentevents.Opt[agentevents.ErrorInfo]{} // the output is the answer
		case t.budget > 0 && c.ledger.stated.cost >= t.budget && len(t.agent.Calls()) > 0:
			t.turn.cut = false
			t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "budget_exceeded",
				Message: fmt.Sprintf("the budget of $%g is spent", t.budget)})
		}
	}
}

func (c *reader) cutMessage(t *thread) string {
	if t.state == asked {
		return "the model did not answer: the program was killed, or is still at work"
	}
	return "the last word is that of a tool: the program was killed, or is still at work"
}

// set notes how far the conversation has come.
func (t *thread) set(s state, code, message string) {
	t.state, t.err = s, agentevents.Opt[agentevents.ErrorInfo]{}
	if code != "" {
		t.err = agentevents.Some(agentevents.ErrorInfo{Code: strings.Clone(code), Message: strings.Clone(message)})
	}
}

// ownWords are the beginnings of texts of the user's side that the program wrote itself.
var ownWords = []string{
	"<command-", "<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "Caveat: ", "<tick>", hookStop,
}

// hookStop begins the text of a hook that has stopped a request.
const hookStop = "Operation stopped by hook"

// isPrompt reports whether a text of the user's side is a request of the user.
func (c *reader) isPrompt(text string) bool {
	if c.line.Flag("isMeta") || c.line.Flag("isCompactSummary") ||
		IsInterruption(text) || c.line.Object("origin").Str("kind") == "task-notification" {
		return false
	}
	for _, begin := range ownWords {
		if strings.HasPrefix(text, begin) {
			return false
		}
	}
	return true
}

// isRequest reports whether a line of the user's side is a request of the user.
func (c *reader) isRequest() bool {
	content := c.message.Raw("content")
	return content != "" && !hasResult(content) && c.isPrompt(textOf(content))
}

// user reads a line of the user's side: a result, or a text.
func (c *reader) user(t *thread) {
	if mode := c.line.Str("permissionMode"); mode != "" {
		t.mode = strings.Clone(mode)
	}
	content := c.message.Raw("content")
	if hasResult(content) {
		for block := range jsonwire.Elements(content) {
			c.result(t, session.ParseObject(block))
		}
		return
	}
	text := textOf(content)
	switch {
	case content == "":
	case c.line.Flag("isCompactSummary"):
		c.flushBoundary(t, text)
	case IsInterruption(text):
		c.note(t, content)
		t.set(stopped, "cancelled", "interrupted by the user")
	case c.isPrompt(text):
		t.woken = nil
		c.ask(t, content)
	case strings.HasPrefix(text, hookStop):
		t.set(failed, "stopped_by_hook", text)
		c.tell(t, content)
	default:
		c.notified(t, text)
		c.wake(t, text)
		c.tell(t, content)
	}
}

// wake reads a text that the program wrote itself: a command, or a notice, which the model may
// answer in a turn of its own.
func (c *reader) wake(t *thread, text string) {
	id := c.line.Str("promptId")
	if id == "" && strings.HasPrefix(text, "<") && t.state == answered {
		id = c.line.Str("uuid")
	}
	if id == "" || t.turn != nil && t.turn.prompt == id {
		return
	}
	if t.state == answered {
		c.endTurn(t)
	}
	if t.pending != id {
		t.woken = c.r.Here()
	}
	t.pending = strings.Clone(id)
}

// ask reads a request of the user, or for a sub-agent of its parent.
func (c *reader) ask(t *thread, content string) {
	if !t.sub {
		c.rewind(t)
		c.beginTurn(t, c.line.Str("promptId"))
	} else {
		if t.spawn != nil && t.turns > 0 {
			t.spawn.told = false // it was over, and is sent on
		}
		if t.turn == nil {
			c.beginTurn(t, "")
		}
	}
	t.set(asked, "", "")
	c.request(t, content)
}

func (c *reader) request(t *thread, content string) {
	m := agentevents.ConversationMessage{MessageID: c.line.Str("uuid"), From: "user", To: t.agent.ID, Role: "user"}
	actor := "user"
	if t.agent.Parent != nil {
		m.From, actor = t.agent.Parent.ID, "parent"
	}
	c.send(t, actor, m, content)
}

// tell records a text that the program itself wrote. One after a stop is not of the turn: commands of
// the user may follow much later, and another process may go on.
func (c *reader) tell(t *thread, content string) {
	if t.state == stopped {
		c.endTurn(t)
	}
	c.note(t, content)
}

func (c *reader) note(t *thread, content string) {
	c.send(t, "orchestrator", agentevents.ConversationMessage{
		MessageID: c.line.Str("uuid"), From: session.System, To: t.agent.ID, Role: "system",
	}, content)
}

func (c *reader) send(t *thread, actor string, m agentevents.ConversationMessage, content string) {
	m.MessageID = strings.Clone(cmp.Or(m.MessageID, c.lineID()))
	m.Content = plainContent(content)
	m.TS = c.r.Here().At.UnixMilli()
	id := c.r.Record(t.agent, agentevents.Event{Actor: actor, Payload: &agentevents.MessageCreated{Message: m}})
	if !t.sub && id != "" {
		c.chain.said(c.line.Str("uuid"), id)
	}
}

// plainContent returns a list of one text as the text.
func plainContent(raw string) agentevents.JSON {
	var only string
	n := 0
	for block := range jsonwire.Elements(raw) {
		if n++; jsonwire.Text(jsonwire.Member(block, "type")) == "text" {
			only = jsonwire.Member(block, "text")
		}
	}
	if n == 1 && only != "" {
		return agentevents.JSON(only)
	}
	return agentevents.JSON(raw)
}

// lineID is an id made of the place of the line.
func (c *reader) lineID() string {
	return c.r.LineID()
}

// textOf returns the text of content: a string, or the texts of a list of blocks.
func textOf(raw string) string {
	if raw == "" || raw[0] == '"' {
		return jsonwire.Text(raw)
	}
	var parts []string
	for block := range jsonwire.Elements(raw) {
		if jsonwire.Text(jsonwire.Member(block, "type")) == "text" {
			parts = append(parts, jsonwire.Text(jsonwire.Member(block, "text")))
		}
	}
	return strings.Join(parts, "\n")
}

// hasResult reports whether content has the result of a call.
func hasResult(raw string) bool {
	if raw == "" || raw[0] == '"' {
		return false
	}
	for block := range jsonwire.Elements(raw) {
		if jsonwire.Member(block, "type") == `"tool_result"` {
			return true
		}
	}
	return false
}

// attachments are the types of attachments that tell nothing of the work, or repeat it.
var attachments = names(`environment model date date_change session_context prompt_snapshot agent_listing_delta
	skill_listing deferred_tools_delta deferred_tools_pool hook_success hook_additional_context
	hook_non_blocking_error hook_blocking_error hook_cancelled hook_system_message hook_stopped_continuation
	plan_mode plan_mode_exit plan_mode_reentry auto_mode auto_mode_exit remote_session_change
	mcp_instructions_delta todo_reminder task_reminder task_status nested_memory edited_text_file file directory
	compact_file_reference plan_file_reference invoked_skills command_permissions output_style diagnostics
	ultramemory critical_system_reminder opened_file_in_ide selected_lines_in_ide total_tokens_reminder
	async_hook_response companion_intro mcp_resource relevant_memories dynamic_skill budget_reminder
	output_token_usage verify_plan_reminder thinking_frame`)

// attachment reads a line that the program adds to the conversation.
func (c *reader) attachment(t *thread) {
	a := c.line.Object("attachment")
	switch kind := a.Str("type"); kind {
	case "queued_command":
		content := a.Raw("prompt")
		if a.Str("commandMode") == "task-notification" || !c.isPrompt(textOf(content)) {
			c.notified(t, textOf(content))
			c.tell(t, content)
			return
		}
		c.request(t, content)
	case "max_turns_reached":
		n := a.Count("maxTurns").V
		t.set(limited, "max_turns", fmt.Sprintf("the limit of %d turns was reached", n))
	case "budget_usd":
		t.budget = number(a.Raw("total"))
	case "structured_output":
		t.output = agentevents.JSON(strings.Clone(a.Raw("data")))
		if t.turn != nil {
			t.turn.output = true
		}
	default:
		if !attachments[kind] {
			c.r.Unread("attachment/"+kind, "")
		}
	}
}

func (c *reader) turnDuration(t *thread) {
	d := c.line.Count("durationMs")
	if t.turn != nil {
		t.turn.duration = &d
	} else {
		c.line.SkipAll()
	}
}

// apiRetry reads a request that failed and is made again.
func (c *reader) apiRetry(t *thread) {
	e := c.line.Object("error")
	message := cmp.Or(e.Str("formatted"), e.Str("message"), c.line.Str("content"), "the request to the API is tried again")
	details := c.line.Pick("retryAttempt", "maxRetries", "retryInMs", "source", "error")
	c.line.SkipAll()
	c.r.Emit(t.agent, &agentevents.AgentErrored{
		ErrorType: cmp.Or(apiErrorType(e), "api_retry"), Message: message,
		Severity: agentevents.SeverityWarning, Details: details,
	}, 0)
}

// apiErrorType returns the API's word for an error.
func apiErrorType(e *session.Object) string {
	message := e.Str("message")
	if _, body, ok := strings.Cut(message, " "); ok && jsonwire.IsObject(body) && jsonwire.Valid(body) == nil {
		return jsonwire.Text(jsonwire.Member(jsonwire.Member(body, "error"), "type"))
	}
	return ""
}

// warning reads a line of the system that is not an error of the agent.
func (c *reader) warning(t *thread) {
	kind, text := c.line.Str("subtype"), c.line.Str("content")
	c.line.SkipAll()
	c.r.Emit(t.agent, &agentevents.AgentErrored{ErrorType: kind, Message: text, Severity: agentevents.SeverityWarning}, 0)
}

// notice reads the output of a local command, or a note for the user.
func (c *reader) notice(t *thread) {
	content, local := c.line.Raw("content"), c.line.Str("subtype") == "local_command"
	c.line.SkipAll()
	if content == "" {
		return
	}
	if local && t.state >= answered { // a command of the user
		c.endTurn(t)
	}
	c.tell(t, content)
}

// compacted reads a compaction. Its summary is the next line of the user's side.
func (c *reader) compacted(t *thread) {
	c.ledger.compacted = true
	t.boundary = c.r.Here()
	c.line.Skip("compactMetadata", "microcompactMetadata", "content", "isMeta")
}

// flushBoundary records a compaction.
func (c *reader) flushBoundary(t *thread, summary string) {
	l := t.boundary
	if t.boundary = nil; l == nil {
		return
	}
	if t.state == answered {
		c.endTurn(t)
	}
	c.r.At(l, func() {
		raw := jsonwire.Member(l.Text, "compactMetadata")
		trigger := ""
		if raw == "" {
			raw, trigger = jsonwire.Member(l.Text, "microcompactMetadata"), "micro"
		}
		meta := session.ParseObject(raw)
		c.r.Emit(t.agent, &agentevents.ContextCompacted{
			TokensBefore: meta.Count("preTokens"), TokensAfter: meta.Count("postTokens"),
			Trigger: cmp.Or(trigger, meta.Str("trigger")), Summary: strings.Clone(summary),
		}, 0)
	})
}

// refusal reads a line about messages that the program took back because the model refused.
func (c *reader) refusal(t *thread) {
	for raw := range jsonwire.Elements(c.line.Raw("retractedMessageUuids")) {
		if ids := c.chain.events(jsonwire.Text(raw)); len(ids) > 0 {
			c.r.Emit(t.agent, &agentevents.EventRetracted{EventIDs: ids,
				Reason: "the model refused to go on, and another one answers"}, 0)
		}
	}
	c.warning(t)
}
