package codex

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

// call opens a tool call.
func (c *rollout) call(t *thread, id, tool string, args agentevents.JSON) *session.Call {
	c.p.Skip("id", "status", "internal_chat_message_metadata_passthrough")
	if t.turn != nil {
		t.turn.words = "" // they came before the call: they are not the answer
	}
	p := &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: args}
	if strings.Contains(tool, ".") && strings.HasPrefix(c.p.Str("namespace"), mcp) {
		p.Transport = agentevents.TransportMCP
	}
	return c.r.Call(t.agent, p, 0)
}

// mcp begins the namespaces of the tools of MCP servers.
const mcp = "mcp__"

func (c *rollout) functionCall(t *thread) {
	tool := c.p.Str("name")
	switch space := c.p.Str("namespace"); {
	case strings.HasPrefix(space, mcp):
		tool = space[len(mcp):] + "." + tool
	case space != "" && space != "collaboration" && !strings.HasPrefix(space, "multi_agent"):
		tool = space + "." + tool
	}
	c.call(t, c.p.Str("call_id"), tool, agentevents.JSON(c.p.Str("arguments")))
}

func (c *rollout) customCall(t *thread) {
	c.call(t, c.p.Str("call_id"), c.p.Str("name"), agentevents.JSON(c.p.Raw("input")))
}

func (c *rollout) localShell(t *thread) {
	c.call(t, cmp.Or(c.p.Str("call_id"), c.p.Str("id")), "local_shell", agentevents.JSON(c.p.Raw("action")))
}

// image reads an image that the provider made: the line is the whole call. The image itself is left
// out.
func (c *rollout) image(t *thread) {
	id, status := cmp.Or(c.p.Str("id"), c.lineID()), c.p.Str("status")
	c.p.Skip("result")
	c.call(t, id, "image_generation", c.p.Pick("revised_prompt"))
	c.back(t, &agentevents.ToolReturned{CallID: id, Status: statusOf(status)})
}

// commandEnd reads how a command or a patch of older versions went.
func (c *rollout) commandEnd(t *thread) {
	n := &info{
		status: strings.Clone(c.p.Str("status")), exit: c.p.Int("exit_code"), duration: duration(c.p.Object("duration")),
	}
	if c.p.Raw("success") == "false" {
		n.status = "failed"
	}
	if n.exit.OK && n.exit.V != 0 {
		n.status = "failed"
	}
	id, output := c.p.Str("call_id"), c.p.Raw("aggregated_output")
	c.p.SkipAll()
	c.went(t, id, n, output)
}

// mcpEnd reads how a call of an MCP server went: {"Ok": {"isError": true}} or {"Err": "…"}.
func (c *rollout) mcpEnd(t *thread) {
	n := &info{duration: duration(c.p.Object("duration"))}
	result := c.p.Object("result")
	if result.Raw("Err") != "" || result.Object("Ok").Flag("isError") || result.Object("Ok").Flag("is_error") {
		n.status = "failed"
	}
	id := c.p.Str("call_id")
	c.p.SkipAll()
	c.went(t, id, n, "")
}

func (c *rollout) toolSearch(t *thread) {
	c.p.Skip("execution")
	c.call(t, c.p.Str("call_id"), "tool_search", agentevents.JSON(c.p.Raw("arguments")))
}

// webSearch reads a search that the provider made: the line is the whole call.
func (c *rollout) webSearch(t *thread) {
	id, status := cmp.Or(c.p.Str("id"), c.p.Str("call_id"), c.lineID()), c.p.Str("status")
	c.call(t, id, "web_search", agentevents.JSON(c.p.Raw("action")))
	c.back(t, &agentevents.ToolReturned{CallID: id, Status: statusOf(status)})
}

func (c *rollout) searchOutput(t *thread) {
	id, status := c.p.Str("call_id"), c.p.Str("status")
	c.back(t, &agentevents.ToolReturned{CallID: id, Status: statusOf(status), Result: toolNames(c.p.Raw("tools"))})
	c.p.Skip("id", "execution", "internal_chat_message_metadata_passthrough")
}

// toolNames returns the names of tools that were found. Their descriptions are the program's own.
func toolNames(raw string) agentevents.JSON {
	var names []string
	for space := range jsonwire.Elements(raw) {
		o := session.ParseObject(space)
		inner := o.Raw("tools")
		if inner == "" {
			names = append(names, jsonwire.Quote(o.Str("name")))
			continue
		}
		for tool := range jsonwire.Elements(inner) {
			names = append(names, jsonwire.Quote(o.Str("name")+"."+jsonwire.Text(jsonwire.Member(tool, "name"))))
		}
	}
	return agentevents.JSON("[" + strings.Join(names, ",") + "]")
}

// statuses are the words for how a call went.
var statuses = map[string]agentevents.ToolStatus{
	"completed": agentevents.ToolStatusOK, "": agentevents.ToolStatusOK,
	"in_progress": agentevents.ToolStatusInterrupted, "inProgress": agentevents.ToolStatusInterrupted,
	"failed": agentevents.ToolStatusError, "error": agentevents.ToolStatusError, "incomplete": agentevents.ToolStatusError,
	"declined": agentevents.ToolStatusForbidden, "denied": agentevents.ToolStatusForbidden,
}

func statusOf(word string) agentevents.ToolStatus {
	if s, ok := statuses[word]; ok {
		return s
	}
	return agentevents.ToolStatusError
}

// back records the return of a call.
func (c *rollout) back(t *thread, p *agentevents.ToolReturned) {
	delete(t.calls, p.CallID)
	if p.Status != agentevents.ToolStatusOK && !p.Error.OK {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: string(p.Status),
			Message: "the call ended with status " + string(p.Status)})
	}
	c.r.Return(t.agent, p, 0)
}

// output reads the return of a call, as the model got it.
func (c *rollout) output(t *thread) {
	c.p.Skip("id", "name", "namespace", "status", "internal_chat_message_metadata_passthrough")
	id, raw := c.p.Str("call_id"), c.p.Raw("output")
	if id == "" {
		c.told(t, "", "system", textOf(raw)) // the program put it in by itself
		return
	}
	text := textOf(raw)
	v := judge(text)
	if v.object {
		text = textOf(jsonwire.Member(text, "output"))
	}
	open := t.agent.OpenCall(id)
	switch {
	case open == nil:
	case open.Tool == "write_stdin":
		c.polled(t, open, &v, text)
	case v.running != "":
		open.Background = true
		_, output, _ := aboutProcess(text)
		of := &command{call: open.ID}
		of.output.WriteString(output)
		t.processes[strings.Clone(v.running)] = of
		return
	}
	if open != nil && commands[open.Tool] && v.unknown {
		v.status = agentevents.ToolStatusError // a command that ran tells of its process
	}
	if i := t.calls[id]; i != nil {
		v.take(i)
	}
	p := &agentevents.ToolReturned{CallID: id, Status: v.status, Result: agentevents.JSON(raw), Duration: v.duration}
	if p.Status != agentevents.ToolStatusOK {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: v.code(), Message: v.message(text)})
	}
	c.spawnedBy(t, id, text)
	c.back(t, p)
}

// A command is a call that goes on in the background, and its output so far.
type command struct {
	call   string
	output strings.Builder
}

// polled reads the return of a call that waited for a command in the background. The exit code is
// the command's: the call itself has succeeded.
func (c *rollout) polled(t *thread, open *session.Call, v *verdict, text string) {
	number := jsonwire.Member(open.Arguments, "session_id")
	number = cmp.Or(jsonwire.Text(number), number)
	of := t.processes[number]
	about, output, _ := aboutProcess(text)
	if of == nil || about == "" {
		return
	}
	of.output.WriteString(output)
	if !v.exit.OK {
		return
	}
	n := &info{status: "completed", exit: v.exit}
	if v.exit.V != 0 {
		n.status = "failed"
	}
	c.went(t, of.call, n, jsonwire.Quote(of.output.String()))
	v.status, v.exit = agentevents.ToolStatusOK, agentevents.Opt[int64]{}
	delete(t.processes, number)
}

// commands are the tools that run commands.
var commands = map[string]bool{"exec_command": true, "write_stdin": true,
	"shell": true, "shell_command": true, "container.exec": true}

// A verdict is how a call went.
type verdict struct {
	status   agentevents.ToolStatus
	exit     agentevents.Opt[int64]
	duration agentevents.Opt[time.Duration]
	running  string // the number of its process, which goes on in the background
	object   bool   // the text is an object with the output
	unknown  bool   // the text does not tell how the call went
}

func (v *verdict) code() string {
	if v.exit.OK {
		return "exit_" + strconv.FormatInt(v.exit.V, 10)
	}
	return string(v.status)
}

// message returns the output of a call that failed, without the lines about its process.
func (v *verdict) message(text string) string {
	if _, output, ok := aboutProcess(text); ok {
		text = output
	}
	if text = strings.TrimSpace(text); text == "" && v.exit.OK {
		text = "exit code " + strconv.FormatInt(v.exit.V, 10)
	}
	return text
}

// aboutProcess splits the text of a return into lines about the process and its output.
func aboutProcess(text string) (about, output string, ok bool) {
	if !process.MatchString(text) {
		return "", text, false
	}
	if about, output, ok = strings.Cut(text, "\nOutput:"); ok {
		return about + "\n", strings.TrimPrefix(output, "\n"), true
	}
	about, output, _ = strings.Cut(text, "\n")
	return about + "\n", output, true
}

// take gives the verdict the facts of an item, which knows better than the text, but not that
// somebody stopped the call.
func (v *verdict) take(i *info) {
	if i.status != "" && v.status != agentevents.ToolStatusCancelled && v.status != agentevents.ToolStatusForbidden {
		v.status = statusOf(i.status)
	}
	v.exit, v.duration = cmp.Or(v.exit, i.exit), cmp.Or(v.duration, i.duration)
}

// The forms of texts of returns. A return has a text and not a status.
var (
	process = regexp.MustCompile(`^(?:Command|Chunk ID|Wall time|` +
		`Exit code|Process exited|Process running|Total output lines)[: ]`)
	exited  = regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (-?\d+)`)
	running = regexp.MustCompile(`(?m)^Process running with session ID (\S+)`)
	aborted = regexp.MustCompile(`^aborted(?: by user)?`)
	refused = regexp.MustCompile(`(?i)^(?:approval policy is \w+; reject|exec command rejected|` +
		`patch rejected|command rejected|[^\n]{0,60}rejected by (?:the )?user|user (?:denied|rejected))`)
	failed = regexp.MustCompile(`^(?:failed to parse function arguments|unsupported (?:custom tool )?call|` +
		`apply_patch verification failed|unable to |failed in sandbox|` +
		`(?:execution|collab|tool|err)[^\n]{0,40} error:|[a-z_]+(?: [a-z]+)? failed:|Error: )`)
)

// judge reads the text of a return.
func judge(text string) verdict {
	v := verdict{status: agentevents.ToolStatusOK}
	if strings.HasPrefix(text, "{") {
		return judgeObject(text)
	}
	about, output, _ := aboutProcess(text)
	m := exited.FindStringSubmatch(about)
	if m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			v.exit = agentevents.Some(n)
		}
		if m[1] != "0" {
			v.status = agentevents.ToolStatusError
		}
		return v
	}
	if m = running.FindStringSubmatch(about); m != nil {
		v.running = m[1]
		return v
	}
	switch output = output[:min(len(output), 512)]; {
	case aborted.MatchString(output):
		v.status = agentevents.ToolStatusCancelled
	case refused.MatchString(output):
		v.status = agentevents.ToolStatusForbidden
	case failed.MatchString(output):
		v.status = agentevents.ToolStatusError
	default:
		v.unknown = about == ""
	}
	return v
}

// judgeObject reads the return of the first versions: {"output": …, "metadata": {"exit_code": 0}}.
func judgeObject(text string) verdict {
	v := verdict{status: agentevents.ToolStatusOK}
	if jsonwire.Valid(text) != nil {
		return v
	}
	meta := session.ParseObject(jsonwire.Member(text, "metadata"))
	if v.exit = meta.Int("exit_code"); v.exit.OK && v.exit.V != 0 {
		v.status = agentevents.ToolStatusError
	}
	v.duration, v.object = seconds(meta.Raw("duration_seconds")), meta.Text != ""
	return v
}

func seconds(raw string) (d agentevents.Opt[time.Duration]) {
	var s jsonwire.Scanner
	if s.Reset(raw); raw == "" {
		return d
	}
	if took, err := s.Seconds(); err == nil && took >= 0 {
		d = agentevents.Some(took.Truncate(time.Millisecond))
	}
	return d
}

// duration reads {"secs": 1, "nanos": 2}.
func duration(o *session.Object) (d agentevents.Opt[time.Duration]) {
	secs, nanos := o.Count("secs"), o.Count("nanos")
	if secs.OK && secs.V < 1<<31 && nanos.V < 1e9 {
		d = agentevents.Some((time.Duration(secs.V)*time.Second + time.Duration(nanos.V)).Truncate(time.Millisecond))
	}
	return d
}

// item reads an item that a turn has completed. Most are doubles of response items: only the
// facts that those lack are taken.
func (c *rollout) item(t *thread) {
	item := c.p.Object("item")
	kind := item.Str("type")
	c.p.Skip("thread_id", "turn_id", "started_at_ms", "completed_at_ms")
	f, ok := items[kind]
	if !ok {
		c.r.Unread("event_msg/item_completed/"+kind, "")
		return
	}
	f(c, t, item)
	c.r.Rest("event_msg/item_completed/"+kind, "/payload/item", item)
}

// items are the types of items.
var items = map[string]func(*rollout, *thread, *session.Object){
	"UserMessage": func(c *rollout, t *thread, i *session.Object) {
		c.ask(t, byItem, i.Str("id"), textOf(i.Raw("content")))
	},
	"AgentMessage":        double,
	"Reasoning":           double,
	"CommandExecution":    (*rollout).enrich,
	"FileChange":          (*rollout).enrich,
	"McpToolCall":         (*rollout).enrich,
	"WebSearch":           double,
	"CollabAgentToolCall": (*rollout).collab,
	"SubAgentActivity":    (*rollout).activity,
	"DynamicToolCall":     (*rollout).enrich,
	"ImageView":           double,
	"ImageGeneration":     double,
	"ContextCompaction":   double,
	"HookPrompt":          double,
	"Sleep":               double,
	"Plan":                double,
}

func double(_ *rollout, _ *thread, i *session.Object) { i.SkipAll() }

// enrich reads how a call went.
func (c *rollout) enrich(t *thread, i *session.Object) {
	id := i.Str("id")
	n := &info{status: strings.Clone(i.Str("status")), exit: i.Int("exit_code"), duration: duration(i.Object("duration"))}
	output := i.Raw("aggregated_output")
	i.SkipAll()
	c.went(t, id, n, output)
}

// went notes how an open call went. One in the background ends with it.
func (c *rollout) went(t *thread, id string, n *info, output string) {
	open := t.agent.OpenCall(id)
	if open == nil {
		return
	}
	if !open.Background {
		t.calls[strings.Clone(id)] = n
		return
	}
	p := &agentevents.ToolReturned{
		CallID: id, Status: statusOf(n.status), Result: agentevents.JSON(output), Duration: n.duration,
	}
	v := verdict{exit: n.exit, status: p.Status}
	switch {
	case n.exit.OK && n.exit.V == killed:
		p.Status = agentevents.ToolStatusInterrupted
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: "interrupted",
			Message: "the program ended while the command was running"})
	case p.Status != agentevents.ToolStatusOK:
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: v.code(), Message: v.message(jsonwire.Text(output))})
	}
	c.back(t, p)
}

// killed is the exit code of a command that the program killed.
const killed = -1
