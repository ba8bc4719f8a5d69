package transcript

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// call opens a tool call.
func (c *reader) call(t *thread, kind string, b *session.Object) {
	t.answer.blocks++
	t.words = "" // they came before the call: they are not the answer
	id, tool, input := b.Str("id"), b.Str("name"), b.Raw("input")
	if id == "" || tool == "" {
		c.r.Fault("/message/content", `a call needs "id" and "name"`)
		return
	}
	p := &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(input)}
	if kind == "mcp_tool_use" || strings.HasPrefix(tool, "mcp__") {
		p.Transport = agentevents.TransportMCP
	}
	open := c.r.Call(t.agent, p, 0)
	if IsSpawn(tool) || tool == flowTool {
		args := session.ParseObject(input)
		s := &spawn{
			call: open, line: c.r.Here(), by: t, kind: strings.Clone(args.Str("subagent_type")),
			task:   strings.Clone(args.Str("description")),
			prompt: strings.Clone(args.Raw("prompt")), model: strings.Clone(args.Str("model")),
		}
		c.spawns[open.ID] = s
		c.spawned = append(c.spawned, s)
	}
}

// A doubt is a return that waits until it is known whether its call was refused or interrupted:
// the program has the same words for both.
type doubt struct {
	line   *session.Line
	p      *agentevents.ToolReturned
	output *session.Object
}

// settle decides the doubts of a thread by the line that follows them: the text of an
// interruption, or the agent goes on.
func (c *reader) settle(t *thread, kind string) {
	if len(t.doubts) == 0 {
		return
	}
	status := agentevents.ToolStatusForbidden
	switch content := c.message.Raw("content"); {
	case kind == "attachment" || kind == "cost-state" || kind == "user" && hasResult(content):
		return
	case kind == "user" && IsInterruption(textOf(content)) && c.stops(t):
		status = agentevents.ToolStatusCancelled
	}
	doubts := t.doubts
	t.doubts = nil
	for _, d := range doubts {
		c.r.At(d.line, func() {
			classify(d.p, status)
			c.spawnReturned(d.p, d.output, "")
			c.r.Return(t.agent, d.p, 0)
		})
	}
}

// stops reports whether the text of an interruption stands for a stop and not for a refusal. Both
// write it in a terminal: there only the line of a stop names the message that it stopped. Where
// nobody is asked, nobody refuses.
func (c *reader) stops(t *thread) bool {
	return c.line.Str("interruptedMessageId") != "" ||
		c.line.Str("entrypoint") != "" && c.line.Str("entrypoint") != "cli" || t.mode == "bypassPermissions"
}

// result reads the result of a call.
func (c *reader) result(t *thread, b *session.Object) {
	id, content := b.Str("tool_use_id"), b.Raw("content")
	if id == "" {
		c.r.Fault("/message/content", `a result needs "tool_use_id"`)
		return
	}
	if t.copied[id] {
		c.line.SkipAll()
		return // of a call of the copied history
	}
	text := textOf(content)
	p := &agentevents.ToolReturned{CallID: id, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(content)}
	words, bad := ServerFailure(content)
	if bad = bad || b.Flag("is_error"); bad {
		text = cmp.Or(words, text)
	}
	var output *session.Object
	raw := c.line.Raw("toolUseResult")
	if output = session.ParseObject(raw); output.Text != "" && !bad && (raw[0] == '{' || raw[0] == '[' || content == "") {
		p.Result, p.ResultSummary = agentevents.JSON(raw), summary(text)
	}
	if p.Duration = output.Millis("totalDurationMs"); !p.Duration.OK {
		p.Duration = output.Millis("durationMs")
	}
	t.set(working, "", "")
	status := agentevents.ToolStatusOK
	if bad {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: "error_tool_use", Message: cmp.Or(text, content)})
		status = c.failure(text)
	} else if output.Flag("interrupted") {
		status = agentevents.ToolStatusCancelled
	}
	c.line.Skip("toolDenialKind", "permissionDecision")
	if status == InDoubt {
		t.doubts = append(t.doubts, doubt{c.r.Here(), p, output})
		return
	}
	classify(p, status)
	c.spawnReturned(p, output, text)
	c.r.Return(t.agent, p, 0)
}

// failure returns the status of a failed call.
func (c *reader) failure(text string) agentevents.ToolStatus {
	kind := c.line.Str("toolDenialKind")
	if kind == "interrupted" {
		return agentevents.ToolStatusInterrupted // the process ended
	}
	if s := Denial(kind); s != "" {
		if s == InDoubt && strings.Contains(text, "requested permissions to") {
			return agentevents.ToolStatusForbidden
		}
		return s
	}
	if s := Decision(c.line.Object("permissionDecision").Str("decision")); s != "" {
		return s
	}
	return Refusal(text)
}

// codes are the codes of errors of calls that did not go their way.
var codes = map[agentevents.ToolStatus]string{
	agentevents.ToolStatusForbidden: "permission_denied", agentevents.ToolStatusCancelled: "cancelled", agentevents.ToolStatusInterrupted: "interrupted",
}

// classify gives a return its status.
func classify(p *agentevents.ToolReturned, status agentevents.ToolStatus) {
	p.Status = status
	code, ok := codes[status]
	if !ok {
		return
	}
	message := p.Error.V.Message
	if status == agentevents.ToolStatusCancelled {
		message = "the user interrupted the call"
	}
	p.Error = agentevents.Some(agentevents.ErrorInfo{Code: code, Message: message})
}

// summary cuts a text to the length of a summary.
func summary(text string) string {
	return text[:jsonwire.FirstCharacters(text, 2048)]
}
