// Package gemini reads the sessions of Gemini CLI: the journals below ~/.gemini/tmp/*/chats, and
// the output of gemini --output-format stream-json.
//
// A journal has a line for each message. The second line of a message has its tool calls, each with
// its result. A line $set changes members of the session, with the whole list of messages among
// them: messages in it are known, or replace those before after a compaction, and are never work. A
// line $rewindTo takes back a message and those after it.
//
// The end of a session is not on disk: a turn is complete if the agent has spoken last. A program
// that was stopped while tools ran leaves the same lines as one that has ended.
package gemini

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	mainAgent = "gemini"
	tested    = "0.61.0" // no line tells the version
)

// Session returns the reader of journals.
func Session() *session.Program {
	return &session.Program{
		Name:     "Gemini CLI",
		Tested:   tested,
		Files:    []string{"a session of Gemini CLI"},
		Facts:    facts,
		Time:     lineTime,
		Root:     root,
		Beside:   beside,
		Describe: describe,
		New:      newJournal,
	}
}

// Document returns the reader of the sessions of older versions, each of which is one JSON document.
func Document() *session.Program {
	p := Session()
	p.Files, p.Facts, p.Root, p.Beside, p.Describe = []string{"a session of Gemini CLI in one document"}, nil, nil, nil, nil
	p.Split = split
	return p
}

// split makes a journal of a document.
func split(text string) ([]session.Part, error) {
	if err := jsonwire.Valid(text); err != nil {
		return nil, fmt.Errorf("the document is cut, or no JSON: %w", err)
	}
	oneLine := strings.NewReplacer("\n", " ", "\r", " ") // newlines are between values alone
	text = strings.TrimSpace(oneLine.Replace(text))
	first := string(session.ParseObject(text).Pick("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories", "summary"))
	f, ok := facts([]string{first})
	if !ok {
		return nil, errors.New("the document lacks its sessionId or projectHash")
	}
	lines := []string{first}
	for message := range jsonwire.Elements(jsonwire.Member(text, "messages")) {
		lines = append(lines, message)
	}
	return []session.Part{{Facts: f, Lines: lines}}, nil
}

// facts reads the first line.
func facts(first []string) (f session.Facts, ok bool) {
	var o session.Object
	for _, line := range first {
		o.Parse(line)
		if id := o.Str("sessionId"); id != "" && o.Str("projectHash") != "" {
			f.Session, f.Thread = id, id
			f.At, _ = o.Time("startTime")
			return f, true
		}
	}
	return f, false
}

func lineTime(line string) (time.Time, bool) {
	if strings.HasPrefix(line, `{"$`) {
		return time.Time{}, false
	}
	raw := jsonwire.Member(line, "timestamp")
	if raw == "" {
		raw = jsonwire.Member(line, "startTime")
	}
	return session.ParseTime(jsonwire.Text(raw))
}

// root returns the folder of all sessions for the folder with the sub-agents of one.
func root(dir string) (root, below string) {
	abs, err := filepath.Abs(dir)
	if err != nil || filepath.Base(filepath.Dir(abs)) != "chats" || len(filepath.Base(abs)) != jsonwire.LenUUID {
		return dir, ""
	}
	return filepath.Join(dir, ".."), filepath.Base(abs)
}

// beside returns the files of the sub-agents of a session: they are in a folder with its id.
func beside(f *session.Folder, name string, facts session.Facts) []string {
	if strings.ContainsAny(facts.Session, `/\`) {
		return nil
	}
	return f.Logs(path.Join(path.Dir(name), facts.Session))
}

// describe tells the file of a sub-agent by its name, which is its id, and its folder, which has
// the id of the session.
func describe(_ *session.Folder, name string, facts *session.Facts) {
	dir := path.Base(path.Dir(name))
	if strings.TrimSuffix(path.Base(name), ".jsonl") == facts.Thread && len(dir) == jsonwire.LenUUID {
		facts.Session = dir
	}
}

// A journal is the state of the reader of one run.
type journal struct {
	r       *session.Recorder
	files   map[int]*thread
	threads map[string]*thread // by id
	main    *thread
	spawned map[string]*spawn // by the id of the thread
	line    session.Object
}

// A thread is the conversation of one agent: a file.
type thread struct {
	session.Talk
	id, of   string         // its id, and the id of the session
	begun    string         // the id that its first line tells
	inputs   string         // JSON
	answers  map[string]int // number of the calls of an answer that were read, by its id; 0 for other messages
	messages []message
	backs    []back
	rewound  bool   // the next list of messages is what is left
	summary  string // the session has one
}

// A message is one of the conversation.
type message struct {
	id   string
	said []string // ids of its events
}

// A back is the return of a call, which the line of the call tells.
type back struct {
	at      time.Time // zero if it is not known
	p       *agentevents.ToolReturned
	spawned string // id of the thread that the call spawned, or empty
}

// A spawn has the facts that a call tells of the sub-agent that it started.
type spawn struct {
	by                 *thread
	call, name, prompt string
	reason, result     string // of the end; empty if it is not known
	ghost              *thread
}

func newJournal(r *session.Recorder) session.Reader {
	return &journal{r: r, files: map[int]*thread{}, threads: map[string]*thread{}, spawned: map[string]*spawn{}}
}

var kinds = map[string]func(*journal, *thread){
	"session":   (*journal).meta,
	"$set":      (*journal).set,
	"$rewindTo": (*journal).rewind,
	"user":      (*journal).user,
	"gemini":    (*journal).answer,
	"info":      (*journal).info,
	"warning":   (*journal).warned,
	"error":     (*journal).failed,
}

// kind is the type of the line that was parsed, or the member that tells it.
func (c *journal) kind() string {
	if kind := c.line.Str("type"); kind != "" && kind != "session" {
		return kind
	}
	for _, kind := range []string{"$set", "$rewindTo"} {
		if c.line.Raw(kind) != "" {
			return kind
		}
	}
	if c.line.Raw("projectHash") != "" {
		return "session"
	}
	return ""
}

// Line reads a line.
func (c *journal) Line(l *session.Line) {
	c.line.Parse(l.Text)
	kind := c.kind()
	t := c.thread(l)
	if id := c.line.Str("sessionId"); id != "" && id != t.begun { // the first line of a session alone has it
		if t.begun != "" {
			c.r.Another()
			return
		}
		t.begun = strings.Clone(id)
	}
	if kinds[kind] == nil {
		c.r.Unread(kind, "")
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

func (c *journal) thread(l *session.Line) *thread {
	if t := c.files[l.File]; t != nil {
		return t
	}
	t := &thread{Talk: session.Talk{R: c.r}, id: l.Thread, of: l.Thread, answers: map[string]int{}}
	if l.Facts != nil {
		t.of = l.Facts.Session
	}
	if t.id == "" {
		t.id = strings.Clone(c.line.Str("sessionId"))
	}
	t.id = cmp.Or(t.id, mainAgent)
	c.files[l.File], c.threads[t.id] = t, t
	return t
}

// foresee takes the model and the prompt of a thread from a line that is held. It reports whether
// the agent is at work.
func (c *journal) foresee(t *thread, kind string) bool {
	switch kind {
	case "session":
		t.inputs = strings.Clone(string(c.line.Pick("projectHash", "directories")))
	case "user":
		if text, _ := userText(c.line.Raw("content")); text != "" && t.Prompt == "" {
			t.Prompt = jsonwire.Quote(text)
		}
	case "gemini":
		t.Model = strings.Clone(c.line.Str("model"))
		return true
	}
	return false
}

// start starts the agent of a thread, and before the first one the run.
func (c *journal) start(t *thread) {
	parent := c.main
	if s := c.spawned[t.id]; s != nil {
		parent = s.by
	} else if p := c.threads[t.of]; p != nil && p != t {
		parent = p
	}
	if parent != nil && parent.Agent == nil {
		c.start(parent)
	}
	t.R.At(t.First, func() {
		if parent == nil {
			c.main = t
			t.StartRun(mainAgent, t.id, t.id, agentevents.JSON(t.inputs))
			return
		}
		s := c.spawned[t.id]
		if s == nil {
			s = &spawn{}
		}
		t.Prompt = cmp.Or(t.Prompt, s.prompt)
		t.StartSub(parent.Agent, s.name, t.id, s.call)
	})
	t.Release(func(l *session.Line) { c.read(t, l) })
}

// read makes the events of a line.
func (c *journal) read(t *thread, l *session.Line) {
	c.line.Parse(l.Text)
	kind := c.kind()
	if kind != "$set" {
		c.flush(t)
	}
	c.line.Skip("timestamp")
	id, said := c.line.Str("id"), len(t.Said)
	kinds[kind](c, t)
	if id != "" {
		t.note(id, t.Said[said:])
	}
	c.r.Rest(kind, "", &c.line)
	t.See()
}

// note notes a message, and more events of one that is known.
func (t *thread) note(id string, said []string) {
	if n := len(t.messages); n > 0 && t.messages[n-1].id == id {
		t.messages[n-1].said = append(t.messages[n-1].said, said...)
		return
	}
	id = strings.Clone(id)
	t.answers[id] += 0
	t.messages = append(t.messages, message{id, append([]string(nil), said...)})
}

func (c *journal) known(t *thread, id string) bool {
	_, ok := t.answers[id]
	return ok
}

func (c *journal) meta(t *thread) {
	if t.summary = cmp.Or(strings.Clone(c.line.Str("summary")), t.summary); c.line.Raw("messages") != "" {
		c.r.Fault("", "a session in one document is read from a file alone, so write it to one and name it")
		c.line.Skip("messages")
	}
	c.line.Skip("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories")
}

// set reads changes of the session.
func (c *journal) set(t *thread) {
	o := c.line.Object("$set")
	o.Skip("lastUpdated", "startTime", "projectHash", "kind", "directories")
	if id := o.Str("sessionId"); id != "" {
		c.r.Emit(t.Agent, &agentevents.AgentSessionChanged{ProviderSessionID: id, Reason: "resume"}, 0)
	}
	t.summary = cmp.Or(strings.Clone(o.Str("summary")), t.summary)
	if list := o.Raw("messages"); list != "" {
		c.list(t, list)
	}
	c.r.Rest("$set", "/$set", o)
}

// list reads a whole list of messages. The first one, and one after a rewind, tell nothing new.
// One with messages that are not known is a compaction.
func (c *journal) list(t *thread, list string) {
	unknown, summary := 0, ""
	for m := range jsonwire.Elements(list) {
		id := jsonwire.Text(jsonwire.Member(m, "id"))
		if c.known(t, id) || c.known(t, strings.TrimSuffix(id, "_response")) {
			continue
		}
		t.answers[strings.Clone(id)] = len(calls(jsonwire.Member(m, "toolCalls")))
		if text, _ := userText(jsonwire.Member(m, "content")); text != "" {
			unknown++
			summary = cmp.Or(summary, text)
		}
	}
	if unknown > 0 && len(t.messages) > 0 && !t.rewound {
		c.r.Emit(t.Agent, &agentevents.ContextCompacted{Summary: summary}, 0)
	}
	t.rewound = false
}

func calls(list string) (out []string) {
	for call := range jsonwire.Elements(cmp.Or(list, "[]")) {
		out = append(out, call)
	}
	return out
}

// rewind takes back a message and those after it. The tokens stay spent.
func (c *journal) rewind(t *thread) {
	id := c.line.Str("$rewindTo")
	t.rewound = true
	for i, m := range t.messages {
		if m.id != id {
			continue
		}
		var events []string
		for _, m := range t.messages[i:] {
			events = append(events, m.said...)
		}
		t.messages = t.messages[:i]
		t.Retract(events, "the user took back the last messages")
		return
	}
}

// userText returns the text of a message of type user, and whether it has results of calls. The
// text about the machine is left out.
func userText(content string) (text string, results bool) {
	if !strings.HasPrefix(content, "[") {
		return jsonwire.Text(content), false
	}
	var parts []string
	for part := range jsonwire.Elements(content) {
		results = results || jsonwire.HasMember(part, "functionResponse")
		text := jsonwire.Text(jsonwire.Member(part, "text"))
		if text != "" && !strings.HasPrefix(text, "<session_context>") && jsonwire.Member(part, "thought") != "true" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n"), results
}

func (c *journal) user(t *thread) {
	id := strings.Clone(c.line.Str("id"))
	text, results := userText(c.line.Raw("content"))
	c.line.Skip("displayContent")
	switch {
	case text == "" || c.known(t, id):
	case results:
		t.Add(id, text)
	case t.Parent != nil && t.InTurn(): // the program goads a sub-agent
		t.Told(id, text)
	default:
		t.Ask(id, text)
	}
}

// answer reads an answer of the model, or its second line, on which the calls are new.
func (c *journal) answer(t *thread) {
	id := strings.Clone(c.line.Str("id"))
	t.Model = cmp.Or(strings.Clone(c.line.Str("model")), t.Model)
	thoughts, tokens := c.line.Raw("thoughts"), c.line.Object("tokens")
	text, _ := userText(c.line.Raw("content"))
	c.line.Skip("displayContent")
	if !c.known(t, id) {
		call := &agentevents.ModelReturned{ModelCallID: id, ResponseID: id}
		if tokens.Text != "" {
			call.Usage = agentevents.Some(usage(tokens))
		}
		t.Answer(call)
		for thought := range jsonwire.Elements(cmp.Or(thoughts, "[]")) {
			o := session.ParseObject(thought)
			o.Skip("timestamp")
			words := o.Str("description")
			if subject := o.Str("subject"); subject != "" {
				words = strings.TrimSpace(subject + "\n" + words)
			}
			t.Thought("", words)
			c.r.Rest("gemini", "/thoughts/*", o)
		}
		t.Spoke(id, text)
		c.r.Rest("gemini", "/tokens", tokens)
	}
	list := calls(c.line.Raw("toolCalls"))
	for _, raw := range list[min(t.answers[id], len(list)):] {
		c.call(t, session.ParseObject(raw))
	}
	t.answers[id] = max(t.answers[id], len(list))
}

// usage reads tokens: the input includes cached tokens, and the output is without the reasoning.
func usage(o *session.Object) agentevents.Usage {
	cached, thoughts := o.Count("cached"), o.Count("thoughts")
	o.Skip("total")
	return session.UsageOf(o.Count("input").V+o.Count("tool").V-cached.V,
		o.Count("output").V+thoughts.V, cached, agentevents.Opt[int64]{}, thoughts)
}

// statuses are the words for how a call went. Calls at work have others.
var statuses = map[string]agentevents.ToolStatus{
	"success": agentevents.ToolStatusOK, "error": agentevents.ToolStatusError, "cancelled": agentevents.ToolStatusCancelled,
}

// call reads a tool call with its return. The line has the time of the answer, and the call the one
// of its end: the return waits for the next line.
func (c *journal) call(t *thread, o *session.Object) {
	id, tool := strings.Clone(o.Str("id")), o.Str("name")
	c.r.Call(t.Agent, &agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(o.Raw("args"))}, 0)
	result := output(o.Raw("result"))
	b := back{
		p: &agentevents.ToolReturned{CallID: id, ToolID: strings.Clone(tool), Status: agentevents.ToolStatusInterrupted},
	}
	b.at, _ = o.Time("timestamp")
	if status, ok := statuses[o.Str("status")]; ok {
		b.p.Status = status
	}
	message := result.Str("error")
	b.p.Result = agentevents.JSON(strings.Clone(cmp.Or(result.Raw("output"), result.Text)))
	b.judge(tool, message, result.Str("output"))
	if agent := o.Str("agentId"); agent != "" {
		b.spawned = strings.Clone(agent)
		c.spawn(t, b.spawned, o)
	}
	o.Skip("description", "displayName", "renderOutputAsMarkdown",
		"resultDisplay", "outputFile", "contentLength", "approvalMode")
	c.r.Rest("gemini", "/toolCalls/*", o)
	t.backs = append(t.backs, b)
}

// output returns the response that the model got.
func output(result string) *session.Object {
	for part := range jsonwire.Elements(cmp.Or(result, "[]")) {
		if r := session.ParseObject(part).Object("functionResponse").Object("response"); r.Text != "" {
			return r
		}
	}
	return &session.Object{}
}

// The forms of returns. A tool that needs an approval is not there if nobody can give one. A command
// has succeeded whatever its exit code is.
var (
	noTool  = regexp.MustCompile(`^Tool "([^"]+)" not found\.`)
	exited  = regexp.MustCompile(`\nExit Code: (-?\d+)(?:\n[A-Z][A-Za-z ]*: [^\n]*)*(?:\n</untrusted_context>)?$`)
	refused = regexp.MustCompile(`(?i)user (?:did not allow|denied|rejected)|denied by policy`)
)

// approved are the tools of the program that need an approval.
var approved = map[string]bool{"run_shell_command": true,
	"write_file": true, "replace": true, "edit": true, "web_fetch": true}

// judge decides how a call went by the text of its return.
func (b *back) judge(tool, failure, output string) {
	if b.p.Status != agentevents.ToolStatusOK {
		b.p.Error.V.Message = strings.Clone(cmp.Or(failure, output))
	}
	switch m := noTool.FindStringSubmatch(failure); {
	case m != nil && approved[m[1]], refused.MatchString(failure):
		b.p.Status = agentevents.ToolStatusForbidden
	case tool == "run_shell_command" && b.p.Status == agentevents.ToolStatusOK:
		if exit := exited.FindStringSubmatch(output); exit != nil && exit[1] != "0" {
			b.p.Status, b.p.Error.V.Code = agentevents.ToolStatusError, "exit_"+exit[1]
			b.p.Error.V.Message = strings.Clone(output)
		}
	}
}

// spawn notes that a call has started a sub-agent. If its file is missing, an agent stands for it.
func (c *journal) spawn(t *thread, id string, o *session.Object) {
	args, display := o.Object("args"), session.ParseObject(o.Raw("resultDisplay"))
	s := &spawn{
		by: t, call: strings.Clone(o.Str("id")), prompt: strings.Clone(args.Raw("prompt")),
		name:   strings.Clone(cmp.Or(display.Str("agentName"), args.Str("agent_name"), o.Str("name"))),
		reason: strings.Clone(cmp.Or(display.Str("terminateReason"), display.Str("state"))),
		result: strings.Clone(display.Str("result")),
	}
	if c.spawned[id] != nil {
		return
	}
	c.spawned[id] = s
	if !c.r.Has(id) {
		c.r.Note("the file of the sub-agent %s is not here (%s.jsonl): its calls and tokens are missing", s.name, id)
		s.ghost = &thread{Talk: session.Talk{R: c.r, Prompt: s.prompt}, id: id}
		s.ghost.StartSub(t.Agent, s.name, id, s.call)
		c.r.Unseen(s.ghost.Agent)
	}
}

// good are the words for ends of sub-agents that have done their task.
var good = map[string]bool{"GOAL": true, "completed": true}

// end ends a sub-agent as its call tells.
func (s *spawn) end(t *thread) {
	if s != nil && s.reason != "" {
		var err agentevents.Opt[agentevents.ErrorInfo]
		if !good[s.reason] {
			err = agentevents.Some(agentevents.ErrorInfo{Code: strings.ToLower(s.reason), Message: cmp.Or(s.result, s.reason)})
		}
		t.Resolve(err, s.result)
	} else if t.summary != "" && t.InTurn() {
		t.Complete(agentevents.MarkSynthetic)
	}
	t.Finish()
}

// flush records the returns of the line before, at their own times.
func (c *journal) flush(t *thread) {
	backs := t.backs
	t.backs = nil
	l := c.r.Here()
	at := l.At
	for _, b := range backs {
		if s := c.spawned[b.spawned]; s != nil && s.ghost != nil {
			s.end(s.ghost)
			s.ghost = nil
		}
		if !b.at.IsZero() && b.at.Before(at) {
			l.At = b.at
		}
		t.Back(b.p)
		l.At = at
	}
}

func (c *journal) info(t *thread) {
	text, _ := userText(c.line.Raw("content"))
	t.Told(strings.Clone(c.line.Str("id")), text)
}

func (c *journal) warned(t *thread) {
	text, _ := userText(c.line.Raw("content"))
	t.Warn(c.line.Str("type"), text)
}

// failed reads an error, of the turn or of a command of the user.
func (c *journal) failed(t *thread) {
	text, _ := userText(c.line.Raw("content"))
	t.Failed("error", text)
}

// EndFile ends the sub-agent of a file.
func (c *journal) EndFile(l *session.Line) {
	t := c.files[l.File]
	if t == nil {
		return
	}
	if t.Agent == nil {
		c.start(t)
	}
	c.flush(t)
	if t.Parent != nil {
		if c.spawned[t.id] == nil {
			c.main.Cut() // in the call that has started it
		}
		c.spawned[t.id].end(t)
	}
}

// End ends the run.
func (c *journal) End(*session.Line) {
	if c.main != nil {
		c.main.FinishRun()
	}
}
