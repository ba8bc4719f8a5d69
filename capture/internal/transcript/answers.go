package transcript

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An answer is a message of the model, of which each block has a line.
type answer struct {
	id, model string
	blocks    int
	text      string // the last one
	stated    agentevents.Usage
	counted   agentevents.Usage
	mine      bool // it counts here, and not in another file
	open      bool // more lines may come
	final     bool // a line has the reason of its end: the tokens of others were taken while it was written
}

// has reports whether a line with the id belongs to the answer. A request of the user may stand between.
func (a *answer) has(id string) bool { return a.mine && a.id == id }

// assistant reads a block of an answer.
func (c *reader) assistant(t *thread) {
	if c.message.Str("model") == Synthetic {
		c.ownAnswer(t)
		return
	}
	if !t.sub || t.turn == nil {
		c.ensureTurn(t)
	}
	id := cmp.Or(c.message.Str("id"), c.lineID())
	stop := c.message.Str("stop_reason")
	used := c.message.Object("usage")
	if !t.answer.has(id) {
		c.endAnswer(t)
		c.beginAnswer(t, id, stop, used)
	} else if t.answer.open = true; used.Text != "" {
		t.answer.stated = usageOf(used)
	}
	t.answer.final = t.answer.final || stop != ""
	calls := stop == "tool_use"
	content := c.message.Raw("content")
	if strings.HasPrefix(content, `"`) {
		c.text(t, jsonwire.Text(content))
	}
	for block := range jsonwire.Elements(content) {
		kind := jsonwire.Text(jsonwire.Member(block, "type"))
		c.block(t, kind, session.ParseObject(block))
		switch {
		case strings.HasSuffix(kind, "tool_use"):
			calls = true
		case strings.HasSuffix(kind, "thinking") && stop == "":
			calls = true // it has not said anything yet
		}
	}
	switch kind := c.line.Str("error"); {
	case c.line.Flag("isAbortedMidStream"):
		t.set(stopped, "cancelled", "interrupted by the user")
	case kind != "" || c.line.Flag("isApiErrorMessage"):
		c.apiError(t, kind, textOf(content))
	case calls:
		t.set(working, "", "")
	default:
		t.set(answered, "", "")
	}
}

// isPart reports whether a line is a part of an answer that was written before the answer was
// whole. Such lines wait for the last one of them, whose tokens count.
func (c *reader) isPart(t *thread, kind string) bool {
	part := kind == "assistant" && c.message.Raw("stop_reason") == "" &&
		c.message.Str("id") != "" && c.message.Str("model") != Synthetic
	if len(t.parts) > 0 && (!part || c.message.Str("id") != t.partsID) {
		line, message := c.line, c.message
		c.line, c.message = session.Object{}, session.Object{}
		c.flushParts(t)
		c.line, c.message = line, message
	}
	if !part || t.answer.has(c.message.Str("id")) {
		return false
	}
	t.partsID = strings.Clone(c.message.Str("id"))
	t.parts = append(t.parts, c.r.Here())
	return true
}

// flushParts reads the lines of an answer that were held.
func (c *reader) flushParts(t *thread) {
	parts := t.parts
	if t.parts = nil; len(parts) == 0 {
		return
	}
	last := session.ParseObject(jsonwire.Member(parts[len(parts)-1].Text, "message")).Object("usage")
	for i, l := range parts {
		c.r.At(l, func() {
			kind, f, _ := c.kindOf(l)
			if c.chain.has(c.line.Str("uuid")) {
				return
			}
			if i == 0 {
				c.ensureTurn(t)
				c.endAnswer(t)
				c.beginAnswer(t, t.partsID, "", last)
			}
			c.do(t, kind, f)
		})
	}
	if t.answer.open && last.Text != "" {
		t.answer.stated = usageOf(last)
	}
}

// beginAnswer records the call of the model that a message is the answer of.
func (c *reader) beginAnswer(t *thread, id, stop string, used *session.Object) {
	t.answer = answer{id: strings.Clone(id), model: strings.Clone(c.message.Str("model")), mine: c.ledger.once.First(id)}
	if t.answer.open = t.answer.mine; !t.answer.open {
		return // another file has it, too
	}
	if t.said || t.state == working {
		t.agent.Answers()
	}
	t.said = true
	p := &agentevents.ModelReturned{
		ModelCallID: t.answer.id, ResponseID: t.answer.id,
		RequestID: strings.Clone(c.line.Str("requestId")), Model: t.answer.model, OneEvent: true,
	}
	if used.Text != "" {
		t.answer.stated = usageOf(used)
	}
	if stop != "" {
		p.FinishReasons = []string{strings.Clone(stop)}
		if used.Text != "" {
			t.answer.counted = t.answer.stated
			p.Usage = agentevents.Some(t.answer.stated)
			c.ledger.count(t.answer.model, t.answer.stated)
		}
	}
	c.r.Emit(t.agent, p, 0)
}

// endAnswer counts the tokens of an answer that the call of the model does not state. Those of an answer
// without the reason of its end are the least. More lines of it may stand after results of its own calls.
func (c *reader) endAnswer(t *thread) {
	a := &t.answer
	if !a.open {
		return
	}
	a.open = false
	more := minus(a.stated, a.counted)
	if tokens(more) == 0 {
		return
	}
	a.counted = plus(a.counted, more)
	c.ledger.count(a.model, more)
	c.at(t, func() {
		c.r.Emit(t.agent, &agentevents.UsageObserved{Model: a.model, Usage: more, Source: "message.usage", Partial: !a.final}, 0)
	})
}

func (c *reader) blockID(t *thread) string {
	n := t.answer.blocks
	if i := c.line.Count("apiBlockIndex"); i.OK && i.V >= int64(n) && i.V < 1<<20 {
		n = int(i.V)
	}
	t.answer.blocks = n + 1
	return t.answer.id + ":" + strconv.Itoa(n)
}

func (c *reader) block(t *thread, kind string, b *session.Object) {
	switch {
	case kind == "text":
		c.text(t, b.Str("text"))
	case kind == "thinking" || kind == "redacted_thinking":
		p := &agentevents.AgentReasoned{BlockID: c.blockID(t), Reasoning: b.Str("thinking")}
		if p.Reasoning == "" {
			p.Verbosity = agentevents.VerbosityOff
		}
		c.r.Emit(t.agent, p, 0)
	case strings.HasSuffix(kind, "tool_use"):
		c.call(t, kind, b)
	case strings.HasSuffix(kind, "tool_result"):
		c.result(t, b)
	default:
		c.r.Unread("assistant", "/message/content/*/"+kind)
	}
}

// text records a text, which is also a message of the agent. Old versions have some twice.
func (c *reader) text(t *thread, text string) {
	id := c.blockID(t)
	if strings.TrimSpace(text) == "" || t.answer.text == text {
		return
	}
	t.answer.text = strings.Clone(text)
	t.words = t.answer.text
	c.r.Emit(t.agent, &agentevents.TextCompleted{BlockID: id, Text: text}, 0)
	to := "user"
	if t.agent.Parent != nil {
		to = t.agent.Parent.ID
	}
	said := c.r.Record(t.agent,
		agentevents.Event{Payload: &agentevents.MessageCreated{Message: agentevents.ConversationMessage{
			MessageID: id, From: t.agent.ID, To: to, Role: "agent",
			Content: agentevents.JSONString(text), TS: c.r.Here().At.UnixMilli(),
		}}})
	if !t.sub && said != "" {
		c.chain.said(c.line.Str("uuid"), said)
	}
}

// ownAnswer reads a message that the program wrote in the place of the model.
func (c *reader) ownAnswer(t *thread) {
	content := c.message.Raw("content")
	c.message.Skip("usage", "stop_reason")
	kind := cmp.Or(c.line.Str("error"), c.line.Str("apiError"))
	if kind != "" || c.line.Flag("isApiErrorMessage") {
		c.apiError(t, cmp.Or(kind, "api_error"), textOf(content))
		return
	}
	if content != "" {
		c.tell(t, content)
	}
}

// apiError reads an error of the API, which is the end of the turn unless it goes on.
func (c *reader) apiError(t *thread, kind, text string) {
	c.line.Skip("apiErrorStatus", "errorDetails", "apiError")
	p := &agentevents.AgentErrored{ErrorType: kind, Message: text}
	if c.line.Raw("streamCutCause") != "" && len(t.agent.Calls()) > 0 {
		p.Severity = agentevents.SeverityWarning // its calls are made all the same
	}
	c.r.Emit(t.agent, p, 0)
	t.set(failed, kind, text)
}

// usageOf reads the tokens of a message.
func usageOf(o *session.Object) agentevents.Usage {
	u := agentevents.Usage{
		InputTokens: o.Count("input_tokens").V, OutputTokens: o.Count("output_tokens").V,
		CacheReadInputTokens:     o.Count("cache_read_input_tokens"),
		CacheCreationInputTokens: o.Count("cache_creation_input_tokens"),
	}
	if n := o.Object("output_tokens_details").Count("thinking_tokens"); n.V > 0 {
		u.ReasoningOutputTokens = n
	}
	return u
}

// minus returns the tokens that u has more than v.
func minus(u, v agentevents.Usage) agentevents.Usage {
	u.InputTokens = max(0, u.InputTokens-v.InputTokens)
	u.OutputTokens = max(0, u.OutputTokens-v.OutputTokens)
	u.CacheReadInputTokens.V = max(0, u.CacheReadInputTokens.V-v.CacheReadInputTokens.V)
	u.CacheCreationInputTokens.V = max(0, u.CacheCreationInputTokens.V-v.CacheCreationInputTokens.V)
	u.ReasoningOutputTokens.V = max(0, u.ReasoningOutputTokens.V-v.ReasoningOutputTokens.V)
	return u
}
