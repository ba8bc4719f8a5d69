package codex

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// meta reads the first line of a thread, which was read before.
func (c *rollout) meta(*thread) { c.p.SkipAll() }

// copied reports whether a line is a part of a copied history, which is not work of the thread. It
// begins with the session_meta of another thread, and ends with the first turn of the thread's
// own: the ids of turns and threads are in the order of time. After a line of the thread's own the
// session_meta of another thread begins another session.
func (c *rollout) copied(t *thread, kind string) bool {
	switch kind {
	case "session_meta":
		if id := c.p.Str("id"); id != "" && id != t.id {
			if t.own {
				c.r.Another()
				return true
			}
			t.foreign = true
		}
		return t.foreign
	case "event_msg/task_started":
		id := c.p.Str("turn_id")
		if len(id) == len(t.id) && id > t.id || len(id) != len(t.id) && c.p.Str("parent_turn_id") != "" {
			t.foreign = false
		}
	case "event_msg/token_count":
		if t.foreign {
			c.baseline(t)
		}
	case "turn_context", "event_msg/thread_settings_applied":
		if t.foreign {
			c.foresee(t, kind)
		}
	}
	t.own = t.own || !t.foreign
	return t.foreign
}

// state reads a line of the first versions that stands between the answers of the model.
func (c *rollout) state(t *thread) { t.within = false }

func (c *rollout) context(t *thread) {
	t.model = cmp.Or(strings.Clone(c.p.Str("model")), t.model)
	c.p.SkipAll() // policies and folders
}

func (c *rollout) settings(t *thread) {
	t.model = cmp.Or(strings.Clone(c.p.Object("thread_settings").Str("model")), t.model)
	c.p.Skip("thread_id")
}

func (c *rollout) taskStarted(t *thread) {
	if t.turn != nil { // the program was killed in the turn before
		c.cutTurn(t)
	}
	t.tasked = true
	c.beginTurn(t)
	c.p.Skip("turn_id", "turn_attribution", "root_turn_id", "parent_turn_id",
		"started_at", "model_context_window", "collaboration_mode_kind")
}

func (c *rollout) beginTurn(t *thread) {
	t.turns++
	t.turn = &turn{number: t.turns}
	t.turnMessages = append(t.turnMessages, nil)
	clear(t.said)
	c.r.Emit(t.agent, &agentevents.TurnStarted{Turn: agentevents.Some(t.turns)}, 0)
}

// endTurn ends the turn of a thread.
func (c *rollout) endTurn(t *thread, took agentevents.Opt[time.Duration], marks agentevents.Marks) {
	c.r.Emit(t.agent, &agentevents.TurnEnded{
		Turn: agentevents.Some(t.turn.number), Duration: took, Error: t.turn.err,
	}, marks)
	t.turn.marks = marks
	t.last, t.turn = *t.turn, nil
}

func (c *rollout) taskComplete(t *thread) {
	took := c.p.Millis("duration_ms")
	c.p.Skip("turn_id", "root_turn_id", "started_at", "completed_at", "time_to_first_token_ms")
	if t.turn == nil {
		return
	}
	t.turn.end = completed
	t.turn.words = strings.Clone(c.p.Str("last_agent_message"))
	if e := c.p.Object("error"); e.Text != "" {
		t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: cmp.Or(errorCode(e), "error"),
			Message: errorText(e.Str("message"))})
	} else if t.turn.words != "" {
		t.turn.err = agentevents.Opt[agentevents.ErrorInfo]{} // an error before the last message was overcome
	}
	c.interrupt(t, agentevents.ToolStatusInterrupted, "the turn ended before the call returned")
	c.endTurn(t, took, 0)
}

// errorText returns the message of an error, which may be the provider's answer as it came.
func errorText(text string) string {
	if jsonwire.IsObject(text) && jsonwire.Valid(text) == nil {
		o := session.ParseObject(text)
		text = cmp.Or(o.Object("error").Str("message"), o.Str("message"), text)
	}
	return strings.Clone(text)
}

// errorCode returns the word for an error: a text, or an object with one member.
func errorCode(e *session.Object) string {
	raw := e.Raw("codex_error_info")
	if jsonwire.IsObject(raw) {
		for name := range jsonwire.Members(raw) {
			return strings.Clone(name)
		}
	}
	return strings.Clone(jsonwire.Text(raw))
}

func (c *rollout) turnAborted(t *thread) {
	took := c.p.Millis("duration_ms")
	reason := cmp.Or(c.p.Str("reason"), "interrupted")
	c.p.Skip("turn_id", "root_turn_id", "started_at", "completed_at")
	if t.turn == nil {
		return
	}
	t.turn.end = stopped
	t.turn.err = agentevents.Some(agentevents.ErrorInfo{Code: "cancelled",
		Message: "the turn was stopped: " + strings.Clone(reason)})
	if !stops[reason] {
		t.turn.end, t.turn.err.V.Code = completed, strings.Clone(reason)
	}
	c.interrupt(t, agentevents.ToolStatusCancelled, "the turn was stopped")
	c.endTurn(t, took, 0)
}

// stops are the reasons of turns that somebody stopped. A limit is a failure.
var stops = map[string]bool{"interrupted": true, "replaced": true, "review_ended": true}

// interrupt closes the open calls at the end of a turn, but for commands that run in the
// background.
func (c *rollout) interrupt(t *thread, status agentevents.ToolStatus, message string) {
	c.r.Interrupt(t.agent, status, message, false)
}

// compacted reads the line that replaces the history by a summary.
func (c *rollout) compacted(t *thread) {
	c.r.Emit(t.agent, &agentevents.ContextCompacted{Summary: c.p.Str("message")}, 0)
	c.p.SkipAll() // the new history is not work
}

// message reads a message of the conversation. The instructions of the program (role developer)
// and its texts about the machine are left out.
func (c *rollout) message(t *thread) {
	role, text := c.p.Str("role"), c.text("content")
	id := c.p.Str("id")
	c.p.Skip("status", "phase", "internal_chat_message_metadata_passthrough", "end_turn")
	switch role {
	case "assistant":
		if t.turn != nil && !t.tasked {
			t.turn.words = strings.Clone(text)
		}
		c.spoke(t, id, text)
	case "user":
		switch {
		case c.byUser(t):
			c.ask(t, byResponse, id, text)
		case text != "" && !begins(text, surroundings):
			c.told(t, id, "system", text)
		}
	}
}

// spoke records a text of the agent.
func (c *rollout) spoke(t *thread, id, text string) {
	id = cmp.Or(id, c.lineID())
	c.r.Emit(t.agent, &agentevents.TextCompleted{BlockID: id, Text: text}, 0)
	to := "user"
	if t.agent.Parent != nil {
		to = t.agent.Parent.ID
	}
	c.send(t, "", agentevents.ConversationMessage{MessageID: id, From: t.agent.ID, To: to, Role: "agent"}, text)
}

// A teller is the kind of line that tells a prompt. A prompt may be told by each kind once.
type teller uint8

const (
	byResponse teller = iota
	byEvent
	byItem
	tellers
)

// ask records a text of the user, or of the parent for a sub-agent.
func (c *rollout) ask(t *thread, by teller, id, text string) {
	told := t.said[text]
	before := slices.Max(told[:])
	if told[by]++; told[by] <= before {
		t.said[text] = told
		return
	}
	if !t.tasked { // a version whose turns begin with the user's text
		if t.turn != nil {
			t.turn.end = completed
			c.interrupt(t, agentevents.ToolStatusInterrupted, "the turn ended before the call returned")
			c.endTurn(t, agentevents.Opt[time.Duration]{}, agentevents.MarkSynthetic)
		}
		c.beginTurn(t)
		told = [tellers]int{}
		told[by] = 1
	}
	t.said[strings.Clone(text)], t.within = told, false
	m := agentevents.ConversationMessage{MessageID: id, From: "user", To: t.agent.ID, Role: "user"}
	actor := "user"
	if t.agent.Parent != nil {
		m.From, actor = t.agent.Parent.ID, "parent"
	}
	c.send(t, actor, m, text)
}

// told records a text that the program itself wrote for the model.
func (c *rollout) told(t *thread, id, role, text string) {
	c.send(t, "orchestrator",
		agentevents.ConversationMessage{MessageID: id, From: session.System, To: t.agent.ID, Role: role}, text)
}

func (c *rollout) send(t *thread, actor string, m agentevents.ConversationMessage, text string) {
	m.MessageID = cmp.Or(m.MessageID, c.lineID())
	m.Content = agentevents.JSON(jsonwire.Quote(text))
	m.TS = c.r.Here().At.UnixMilli()
	event := c.r.Record(t.agent, agentevents.Event{Actor: actor, Payload: &agentevents.MessageCreated{Message: m}})
	if n := len(t.turnMessages); n > 0 {
		t.turnMessages[n-1] = append(t.turnMessages[n-1], event)
	}
}

// lineID is an id made of the place of the line.
func (c *rollout) lineID() string {
	return c.r.LineID()
}

// text joins the texts of a list of contents.
func (c *rollout) text(name string) string { return textOf(c.p.Raw(name)) }

func textOf(raw string) string {
	if raw == "" || raw[0] == '"' {
		return jsonwire.Text(raw)
	}
	var parts []string
	for elem := range jsonwire.Elements(raw) {
		if text := jsonwire.Text(jsonwire.Member(elem, "text")); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// harness are the beginnings of texts that the program, and no person, writes in the name of the
// user.
var harness = append([]string{"<turn_aborted>", "<subagent_notification>",
	"<user_shell_command>", "<goal_context>"}, surroundings...)

// surroundings are the beginnings of texts that repeat the state of the machine and of the program.
var surroundings = []string{
	"<environment_context>", "<user_instructions>", "<skill>", "<skills", "<permissions", "<collaboration_mode>", "<tools>", "# AGENTS.md instructions",
}

func begins(text string, with []string) bool {
	return slices.ContainsFunc(with, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// byUser reports whether a message with the role user is one that a person wrote. The program adds an
// image that the model views, without a text; another line tells an image of the user.
func (c *rollout) byUser(t *thread) bool {
	meta := c.p.Object("internal_chat_message_metadata_passthrough")
	if kinds := meta.Raw("content_item_kinds"); kinds != "" {
		return strings.Contains(kinds, `"user.`)
	}
	text := c.text("content")
	return (text != "" || t.bare) && !begins(text, harness)
}

// reasoning reads the thoughts of the model. They may be encrypted, and lack a summary.
func (c *rollout) reasoning(t *thread) {
	id := cmp.Or(c.p.Str("id"), c.lineID())
	p := &agentevents.AgentReasoned{BlockID: id, Reasoning: c.text("content"), Verbosity: agentevents.VerbosityFull}
	if p.Reasoning == "" {
		p.Reasoning, p.Verbosity = c.text("summary"), agentevents.VerbositySummary
	}
	if p.Reasoning == "" {
		p.Verbosity = agentevents.VerbosityOff
	}
	c.r.Emit(t.agent, p, 0)
	c.p.Skip("summary", "encrypted_content", "internal_chat_message_metadata_passthrough")
}

// userMessage reads a text of the user, mostly a double.
func (c *rollout) userMessage(t *thread) {
	text := c.p.Str("message")
	c.p.Skip("kind", "images", "local_images", "text_elements", "image_details", "local_image_details", "client_id")
	if !begins(text, harness) {
		c.ask(t, byEvent, "", text)
	}
}

// agentMessage reads a message between agents of a team. The text of a task may be encrypted: the
// call that spawned the agent has it.
func (c *rollout) agentMessage(t *thread) {
	text := c.text("content")
	if _, rest, ok := strings.Cut(text, "\nPayload:\n"); ok {
		text = rest
	}
	id, author, to := c.p.Str("id"), c.p.Str("author"), c.p.Str("recipient")
	c.p.Skip("internal_chat_message_metadata_passthrough")
	if strings.TrimSpace(text) == "" {
		return
	}
	c.send(t, "", agentevents.ConversationMessage{
		MessageID: id, From: c.named(author, t), To: c.named(to, t), Role: "agent",
	}, text)
}

// named returns the id of the agent that others call by a path, or the path.
func (c *rollout) named(path string, t *thread) string {
	for _, other := range c.order {
		if other.path == path && other.agent != nil {
			return other.agent.ID
		}
	}
	return cmp.Or(path, t.agent.ID)
}

// failed reads an error. The turn fails with it, unless the agent goes on.
func (c *rollout) failed(t *thread) {
	err := agentevents.ErrorInfo{Code: cmp.Or(errorCode(&c.p), "error"), Message: errorText(c.p.Str("message"))}
	if t.turn != nil {
		t.turn.err = agentevents.Some(err)
		return
	}
	c.r.Emit(t.agent, &agentevents.AgentErrored{ErrorType: err.Code, Message: err.Message}, 0)
}

func (c *rollout) warned(t *thread) {
	c.p.Skip("codex_error_info", "additional_details")
	c.r.Emit(t.agent, &agentevents.AgentErrored{
		ErrorType: "warning", Message: errorText(c.p.Str("message")), Severity: agentevents.SeverityWarning,
	}, 0)
}

// rolledBack reads that the user took back the last turns. Their events are retracted; the
// tokens stay spent.
func (c *rollout) rolledBack(t *thread) {
	n := int(c.p.Count("num_turns").V)
	if n = min(n, len(t.turnMessages)); n == 0 {
		return
	}
	from := len(t.turnMessages) - n
	var ids []string
	for _, turn := range t.turnMessages[from:] {
		ids = append(ids, turn...)
	}
	t.turnMessages = t.turnMessages[:from]
	if len(ids) > 0 {
		c.r.Emit(t.agent, &agentevents.EventRetracted{EventIDs: ids, Reason: "the user took back the last turns"}, 0)
	}
}
