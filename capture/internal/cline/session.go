package cline

import (
	"cmp"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	name   = "cline"
	tested = "3.0.65"
)

// Session returns the reader of the messages of sessions.
func Session() *session.Program {
	return &session.Program{
		Name: name, Tested: tested,
		Files:    []string{"a session of cline"},
		Time:     messageTime,
		Split:    split,
		Describe: describe,
		New:      func(r *session.Recorder) session.Reader { return &messages{agent: agent{r: r}} },
	}
}

// split returns the lines of a document: the document without its messages, and each message.
func split(text string) ([]session.Part, error) {
	if jsonwire.Valid(text) != nil {
		return nil,
			errors.New("the document is cut, or no JSON: cline writes it anew at each step, so wait and read it again")
	}
	o := session.ParseObject(text)
	id := o.Str("sessionId")
	if id == "" {
		return nil, errors.New("the document has no sessionId")
	}
	p := session.Part{Facts: session.Facts{Session: id, Thread: id, Version: o.Object("origin").Str("version")}}
	head, prompt, model := "", "", ""
	for name, raw := range jsonwire.Members(text) {
		if name != "messages" {
			head += "," + jsonwire.Quote(name) + ":" + raw
		}
	}
	var lines []string
	for m := range jsonwire.Elements(o.Raw("messages")) {
		line := newlines.Replace(m)
		lines = append(lines, line)
		if p.Facts.At.IsZero() {
			p.Facts.At, _ = messageTime(line)
		}
		message := session.ParseObject(line)
		model = cmp.Or(model, message.Object("modelInfo").Raw("id"))
		if prompt == "" && message.Str("role") == "user" {
			for block := range blocks(message.Raw("content")) {
				if text, typed := typed(block.Str("text")); typed && block.Str("type") == "text" {
					prompt = cmp.Or(prompt, jsonwire.Quote(text))
				}
			}
		}
	}
	head += `,"first":{"prompt":` + cmp.Or(prompt, "null") + `,"model":` + cmp.Or(model, "null") + "}"
	p.Lines = append([]string{newlines.Replace("{" + head[1:] + "}")}, lines...)
	return []session.Part{p}, nil
}

// newlines are between the values of a document alone.
var newlines = strings.NewReplacer("\n", " ", "\r", " ")

// blocks returns the blocks of a content, which may be one text.
func blocks(raw string) func(func(*session.Object) bool) {
	return func(yield func(*session.Object) bool) {
		if strings.HasPrefix(raw, `"`) {
			yield(session.ParseObject(`{"type":"text","text":` + raw + `}`))
			return
		}
		for elem := range jsonwire.Elements(raw) {
			if !yield(session.ParseObject(elem)) {
				return
			}
		}
	}
}

// typed returns a text of the user without its wrapping. It reports false for texts that cline
// writes itself.
func typed(text string) (string, bool) {
	if strings.HasPrefix(text, "[SYSTEM]") {
		return text, false
	}
	const begin, end = "<user_input", "</user_input>"
	if rest, ok := strings.CutPrefix(text, begin); ok {
		if _, rest, ok = strings.Cut(rest, ">"); ok {
			inner, _, _ := strings.Cut(rest, end)
			return inner, true
		}
	}
	return text, true
}

// describe takes the document beside the messages.
func describe(f *session.Folder, name string, facts *session.Facts) {
	id, ok := strings.CutSuffix(path.Base(name), ".messages.json")
	if !ok {
		return
	}
	text, err := f.Read(path.Join(path.Dir(name), id+".json"))
	if err != nil || jsonwire.Valid(text) != nil {
		return
	}
	about := session.ParseObject(text)
	if about.Str("session_id") != facts.Session {
		return
	}
	facts.About = newlines.Replace(text)
	if at, ok := about.Time("started_at"); ok {
		facts.At = at
	}
}

func messageTime(line string) (time.Time, bool) {
	return session.MillisTime(session.ParseObject(line).Int("ts"))
}

// An agent is the one agent of a session or a process.
type agent struct {
	r *session.Recorder
	session.Talk
	final bool // the latest answer calls no tool, or the one that ends the run
}

// terminal is the tool that ends a run.
const terminal = "submit_and_exit"

// call records a call. The words of the terminal one are the answer.
func (a *agent) call(id, tool, args string) {
	a.r.Call(a.Agent, &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(args)}, 0)
	if tool == terminal {
		a.Concludes(jsonwire.Text(jsonwire.Member(args, "summary")))
	}
}

// start starts the run and its agent.
func (a *agent) start(id, providerID, model, prompt string, inputs agentevents.JSON) {
	a.Talk = session.Talk{R: a.r, Ends: true, Model: strings.Clone(model), Prompt: prompt}
	a.StartRun(name, id, providerID, inputs)
}

// usageOf returns tokens with the library's meaning: the input of cline holds the cached tokens.
func usageOf(o *session.Object) agentevents.Usage {
	read, written := o.Count("cacheReadTokens"), o.Count("cacheWriteTokens")
	return session.UsageOf(o.Count("inputTokens").V-read.V-written.V,
		o.Count("outputTokens").V, read, written, agentevents.Opt[int64]{})
}

// back records the return of a call. Its result has an item for each command or file, which tells
// whether it failed.
func (a *agent) back(id, tool, result string, failed bool, took agentevents.Opt[time.Duration], failure string) {
	p := &agentevents.ToolReturned{
		CallID: id, ToolID: tool, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(result), Duration: took,
	}
	var exit agentevents.Opt[int64]
	for item := range jsonwire.Elements(result) {
		o := session.ParseObject(item)
		if o.Raw("success") != "false" {
			continue
		}
		failed = true
		if failure == "" {
			failure = o.Str("error")
			exit = exitOf(failure)
		}
	}
	if failed || failure != "" {
		p.Status = agentevents.ToolStatusError
		p.Error = session.Failed(p.Status, exit, cmp.Or(failure, jsonwire.Text(result)))
	}
	if call := a.OpenCall(id); call != nil && call.Tool == terminal && p.Status == agentevents.ToolStatusOK {
		a.final = true
	}
	a.r.Return(a.Agent, p, 0)
}

// exitOf returns the exit code that an error tells.
func exitOf(failure string) (exit agentevents.Opt[int64]) {
	if digits, ok := strings.CutPrefix(failure, "Command exited with code "); ok {
		exit = session.ParseObject(`{"code":` + cmp.Or(leading(digits), "null") + "}").Int("code")
	}
	return exit
}

// leading returns the number at the beginning of a text, or "".
func leading(text string) string {
	end := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(text)
	}
	number := strings.TrimLeft(text[:end], "0")
	if number == "" && end > 0 {
		return "0"
	}
	return number
}

// messages is the reader of the messages of a session.
type messages struct {
	agent
	line  session.Object
	last  *session.Line  // the latest message
	about session.Object // the document beside the messages
}

// Line reads a message, or the document without its messages.
func (c *messages) Line(l *session.Line) {
	c.line.Parse(l.Text)
	if c.Agent == nil {
		c.head(l)
		if c.line.Str("role") == "" {
			return
		}
	}
	role := c.line.Str("role")
	switch role {
	case "user":
		c.user()
	case "assistant":
		c.assistant()
	default:
		c.r.Unread("message/"+role, "")
		return
	}
	c.line.Skip("ts", "id", "metadata")
	c.r.Rest("message/"+role, "", &c.line)
	last := *l
	c.last = &last
}

// head starts the agent.
func (c *messages) head(l *session.Line) {
	id, first := cmp.Or(l.Thread, c.line.Str("sessionId"), session.ID(l.Text)), c.line.Object("first")
	if l.Facts != nil {
		c.about.Parse(strings.Clone(l.Facts.About))
	}
	c.r.SetVersion(c.line.Object("origin").Str("version"))
	prompt := cmp.Or(first.Raw("prompt"), c.about.Raw("prompt"))
	c.start(id, id, cmp.Or(first.Str("model"), c.about.Str("model")), strings.Clone(prompt),
		c.about.Pick("cwd", "source", "provider", "interactive"))
	if c.line.Str("role") == "" {
		c.line.Skip("version", "updated_at", "agent", "sessionId", "origin", "system_prompt")
		c.r.Rest("session", "", &c.line)
	}
}

// id is the id of the message.
func (c *messages) id() string { return cmp.Or(strings.Clone(c.line.Str("id")), c.r.LineID()) }

func (c *messages) user() {
	n, id := 0, c.id()
	for b := range blocks(c.line.Raw("content")) {
		kind := b.Str("type")
		switch kind {
		case "tool_result":
			content := b.Raw("content")
			c.back(b.Str("tool_use_id"), b.Str("name"), content, b.Flag("is_error"), agentevents.Opt[time.Duration]{}, "")
		case "text":
			c.words(part(id, n), b.Str("text"))
		case "image", "document", "file":
			b.SkipAll() // not kept in a log
		default:
			c.r.Unread("message/user/"+kind, "")
			b.SkipAll()
		}
		b.Skip("name", "cache_control")
		c.r.Rest("message/user", "/content/*", b)
		n++
	}
}

// part is the id of the n-th part of a message.
func part(id string, n int) string {
	if n == 0 {
		return id
	}
	return id + ":" + string(jsonwire.AppendInt(nil, int64(n)))
}

// words reads a text of the user, which begins a turn unless the agent is at work.
func (c *messages) words(id, text string) {
	text, ok := typed(text)
	if !ok {
		c.Told(id, text)
		return
	}
	if c.InTurn() && (c.final || len(c.Calls()) > 0) {
		c.r.At(c.last, c.endTurn)
	}
	if !c.InTurn() {
		c.final = false
		c.Begin()
	}
	c.Add(id, text)
}

// endTurn ends the turn as the latest messages show.
func (c *messages) endTurn() {
	if c.final {
		c.Complete(0)
		return
	}
	c.CutTurn()
}

func (c *messages) assistant() {
	if !c.InTurn() {
		c.Begin()
	}
	id := c.id()
	model, metrics := c.line.Object("modelInfo"), c.line.Object("metrics")
	p := &agentevents.ModelReturned{ModelCallID: id, Model: model.Str("id")}
	if metrics.Text != "" {
		p.Usage = agentevents.Some(usageOf(metrics))
		metrics.Skip("cost")
		c.r.Rest("message/assistant", "/metrics", metrics)
	}
	c.Answer(p)
	c.final = true
	n := 0
	for b := range blocks(c.line.Raw("content")) {
		switch kind := b.Str("type"); kind {
		case "text":
			c.Spoke(part(id, n), b.Str("text"))
		case "thinking":
			c.Thought(part(id, n), b.Str("thinking"))
			b.Skip("signature")
		case "redacted_thinking":
			b.SkipAll()
		case "tool_use":
			c.final = false
			c.call(b.Str("id"), b.Str("name"), b.Raw("input"))
		default:
			c.r.Unread("message/assistant/"+kind, "")
			b.SkipAll()
		}
		b.Skip("cache_control", "signature")
		c.r.Rest("message/assistant", "/content/*", b)
		n++
	}
}

// End ends the run by the status of the session, if it is known.
func (c *messages) End(*session.Line) {
	if c.Agent == nil {
		return
	}
	status, exit := c.about.Str("status"), c.about.Int("exit_code")
	switch {
	case !c.InTurn():
	case c.final && (exit.V == 0 || status == "completed"):
		c.Complete(0)
	case status == "cancelled" || status == "aborted":
		c.Stop("status " + status)
	case status == "failed" || status == "error" || exit.V != 0:
		e := session.Failed(agentevents.ToolStatusError, exit, "the session ended with status "+status)
		if exit.V == 0 {
			e.V.Code = "error"
		}
		c.Fails(e.V.Code, e.V.Message)
		c.Complete(0)
	case status == "completed":
		c.Complete(0)
	}
	c.FinishRun()
}
