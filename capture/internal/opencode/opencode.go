package opencode

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

const (
	name   = "opencode"
	tested = "1.18.33"
)

// Rows returns the reader of rows of the database.
func Rows() *session.Program {
	return &session.Program{
		Name: name, Tested: tested,
		Files: []string{"rows of the database of opencode"},
		Time:  lineTime,
		Split: split,
		New:   newReader,
	}
}

// Run returns the reader of the output of opencode run --format json: one process. Prompt, model,
// thoughts, the beginnings of calls and the work of sub-agents are not in it.
func Run() *session.Program {
	return &session.Program{
		Name: name, Tested: tested,
		Files: []string{"a stream of opencode run --format json"},
		Facts: func(first []string) (session.Facts, bool) {
			for _, line := range first {
				if id := jsonwire.Member(line, "sessionID"); jsonwire.Valid(line) == nil && id != "" {
					at, _ := lineTime(line)
					process := processID(line)
					return session.Facts{Session: process, Thread: process, At: at, Copies: true, Of: jsonwire.Text(id)}, true
				}
			}
			return session.Facts{}, false
		},
		Time: lineTime,
		New:  newReader,
	}
}

// processID is made of the first line of a process, which has a unique id.
func processID(first string) string { return session.ID(strings.TrimSpace(first)) }

// lineTime returns the time of a line, in milliseconds: of a part, of the end of a message, of a
// change of a session.
func lineTime(line string) (at time.Time, ok bool) {
	o := session.ParseObject(line)
	if raw := o.Raw("timestamp"); raw != "" { // a line of run, which prints a call after its end
		if end := o.Object("part").Object("state").Object("time").Int("end"); end.OK {
			return session.MillisTime(end)
		}
		return session.MillisTime(o.Int("timestamp"))
	}
	if raw := o.Raw("time_created"); raw != "" { // a row of another table
		return session.MillisTime(o.Int("time_created"))
	}
	data := session.ParseObject(decoded(o.Raw("data")))
	if at, ok = session.MillisTime(data.Int("time")); ok {
		return at, ok
	}
	times := data.Object("info").Object("time")
	if o.Str("type") == "session.created.1" {
		return session.MillisTime(times.Int("created"))
	}
	return session.MillisTime(cmp.Or(times.Int("completed"), times.Int("updated")))
}

// A reader is the state of the reader of one run.
type reader struct {
	r          *session.Recorder
	kinds      map[string]func(*reader, *thread)
	threads    map[string]*thread // by session
	files      map[int]*thread
	order      []*thread
	main       *thread
	spawned    map[string]spawn // by the session that was spawned
	line, data session.Object
	session    string // of the process that printed the lines
}

// A spawn is the call that a sub-agent works for.
type spawn struct {
	by   *thread
	call string
}

// A thread is the session of one agent.
type thread struct {
	session.Talk
	id, parent, name string
	inputs           agentevents.JSON
	created          int64
	starting         bool
	foreign          bool // it belongs to another run
	messages         map[string]*message
	parts            map[string]*part
	pending          []*part         // calls that have not begun
	current          *message        // the latest answer
	asked            []*session.Line // texts of the user that wait for the answer that takes them
	revert           string          // id of the first message that a revert hides
	texts            int             // that the answer has begun, and that are not complete
	calls            []*session.Line // beginnings of calls that wait for those texts
}

// A message is one of the user, or the answers of the model to it.
type message struct {
	id, role string
	copied   bool // from another session
	done     bool
	stepped  bool   // the latest step has ended
	final    bool   // it ends the turn
	summary  bool   // of the conversation so far, which it replaces
	call     string // id of the model call of the step, once there is a part of the answer
	events   []string
}

// A part is a part of a message: a text, a call of a tool, …
type part struct {
	id, call, tool string
	begun          bool // a text
	opened, done   bool
	events         []string
}

func newReader(r *session.Recorder) session.Reader {
	kinds := map[string]func(*reader, *thread){
		"session.created.1":      (*reader).created,
		"session.updated.1":      (*reader).updated,
		"session.deleted.1":      nothing,
		"message.updated.1":      (*reader).message,
		"message.removed.1":      (*reader).messageRemoved,
		"message.part.updated.1": (*reader).part,
		"message.part.removed.1": (*reader).partRemoved,
		"step_start":             (*reader).part,
		"text":                   (*reader).part,
		"reasoning":              (*reader).part,
		"tool_use":               (*reader).part,
		"step_finish":            (*reader).part,
		"error":                  (*reader).failed,
		noRow: func(c *reader, _ *thread) {
			c.data.SkipAll()
			c.r.Fault("", "this line is not a row of the database: it is left out; give other files one by one")
		},
	}
	return &reader{
		r: r, threads: map[string]*thread{}, files: map[int]*thread{}, spawned: map[string]spawn{}, kinds: kinds,
	}
}

func nothing(c *reader, _ *thread) { c.data.SkipAll() }

// Line reads a line.
func (c *reader) Line(l *session.Line) {
	kind := c.open(l)
	if kind == "" && c.line.Raw("type") == "" {
		if tableOf(&c.line) == "session" {
			return // the journal has it
		}
		c.r.Fault("", "a row that is no event: the rows of other tables, "+
			"and whole exports, are read from files alone, so write them to one and name it")
		return
	}
	id := c.line.Str("sessionID")
	if _, known := c.kinds[kind]; !known && id == "" && c.line.Raw("aggregate_id") == "" {
		c.r.Unread(kind, "")
		return
	}
	if id != "" && id != c.session {
		if c.session != "" { // a process has one
			c.r.Another()
			return
		}
		c.session = strings.Clone(id)
	}
	t := c.thread(l)
	switch {
	case t.foreign:
	case t.Agent != nil:
		c.read(t, kind)
	default:
		full := t.Hold(l)
		ready := c.foresee(t, kind)
		p := c.data.Object("part")
		began := cmp.Or(p.Object("time").Int("start"), p.Object("state").Object("time").Int("start"))
		if at, ok := session.MillisTime(began); ok && c.line.Raw("timestamp") != "" && at.Before(t.First.At) {
			t.First.At = at // run prints a part after its end, and the step before it late
		}
		if parent := c.threads[t.parent]; parent != nil && len(parent.calls) > 0 {
			ready = false // its call may wait
		}
		if ready || full {
			c.start(t)
		}
	}
}

// open parses a line and returns its kind.
func (c *reader) open(l *session.Line) string {
	c.line.Parse(l.Text)
	c.line.Skip("id", "aggregate_id", "seq", "timestamp", "sessionID", "owner_id", "time_created")
	kind := c.line.Str("type")
	if raw := c.line.Raw("data"); raw != "" {
		c.data.Parse(decoded(raw))
	} else {
		c.data.Parse(l.Text)
		c.data.Skip("type", "timestamp", "sessionID")
		c.line.SkipAll()
	}
	return kind
}

// thread returns the thread of a line.
func (c *reader) thread(l *session.Line) *thread {
	id := cmp.Or(c.line.Str("aggregate_id"), c.line.Str("sessionID"), l.Thread, name)
	t := c.threads[id]
	if t == nil {
		id = strings.Clone(id)
		t = &thread{
			Talk: session.Talk{R: c.r, Ends: true, First: l}, id: id, messages: map[string]*message{}, parts: map[string]*part{},
		}
		c.threads[id] = t
		c.order = append(c.order, t)
		if kind := c.line.Str("type"); kind == "session.created.1" {
			t.parent = strings.Clone(c.data.Object("info").Str("parentID"))
		}
		switch {
		case c.main == nil:
			c.main = t
		case c.threads[t.parent] == nil:
			t.foreign = true
			c.r.Fault("", "session %s begins here, and a stream is one session: write the rows to a file and name it", id)
		}
	}
	c.files[l.File] = t
	return t
}

// foresee takes the facts of a thread from a line that is held. It reports whether the agent is at
// work.
func (c *reader) foresee(t *thread, kind string) bool {
	info := c.data.Object("info")
	switch kind {
	case "session.created.1":
		t.created = info.Object("time").Count("created").V
		t.name = strings.Clone(info.Str("agent"))
		t.inputs = agentevents.JSON(strings.Clone(string(info.Pick("directory", "title", "version"))))
		t.Model = cmp.Or(strings.Clone(info.Object("model").Str("id")), t.Model)
		c.r.SetVersion(info.Str("version"))
		return false
	case "session.updated.1":
		t.name = cmp.Or(strings.Clone(info.Str("agent")), t.name)
		t.Model = cmp.Or(strings.Clone(info.Object("model").Str("id")), t.Model)
		return false
	case "message.updated.1":
		m := c.messageOf(t, info.Str("id"), info)
		if !m.copied {
			t.Model = cmp.Or(t.Model, strings.Clone(info.Str("modelID")), strings.Clone(info.Object("model").Str("modelID")))
		}
		return m.role == "assistant" && !m.copied
	case "message.part.updated.1":
		p := c.data.Object("part")
		m := t.messages[p.Str("messageID")]
		return m == nil || !m.copied
	case "step_start":
		return false // the next line tells when the work began
	}
	return !strings.HasPrefix(kind, "session.")
}

// prompt returns the first text of the user in the lines that are held, as JSON.
func (c *reader) prompt(t *thread) (text string) {
	for _, text := range t.Held() {
		c.open(&session.Line{Text: text})
		p := c.data.Object("part")
		m := t.messages[p.Str("messageID")]
		if m != nil && m.role == "user" && !m.copied && p.Str("type") == "text" && !p.Flag("synthetic") {
			return strings.Clone(p.Raw("text"))
		}
	}
	return ""
}

// start starts the agent of a thread, and before the first one the run. Then it reads the lines
// that were held.
func (c *reader) start(t *thread) {
	parent := c.threads[t.parent]
	t.starting = true
	if parent != nil && parent.Agent == nil {
		if parent.starting || parent.foreign { // they name each other
			parent = nil
		} else {
			c.start(parent)
		}
	}
	if parent != nil && parent.Agent != nil {
		c.release(parent) // the call of this agent
	}
	t.Prompt = c.prompt(t)
	c.r.At(t.First, func() {
		if parent != nil {
			t.StartSub(parent.Agent, t.name, t.id, c.spawnOf(t, parent, jsonwire.Text(t.Prompt)))
			return
		}
		t.StartRun(name, cmp.Or(t.First.Thread, c.runID(t)), t.id, t.inputs)
	})
	t.Release(func(l *session.Line) { c.read(t, c.open(l)) })
}

// runID is the session, or for the output of a process an id of the process.
func (c *reader) runID(t *thread) string {
	if jsonwire.Member(t.First.Text, "sessionID") != "" {
		return processID(t.First.Text)
	}
	return t.id
}

// spawnOf returns the call that a sub-agent works for: the parent's line may come later.
func (c *reader) spawnOf(t, parent *thread, prompt string) string {
	if s, ok := c.spawned[t.id]; ok {
		return s.call
	}
	for _, call := range parent.Calls() {
		if call.Tool == "task" && jsonwire.Text(jsonwire.Member(call.Arguments, "prompt")) == prompt {
			return call.ID
		}
	}
	return ""
}

// read makes the events of a line, which was parsed.
func (c *reader) read(t *thread, kind string) {
	f, ok := c.kinds[kind]
	if !ok {
		c.r.Unread(kind, "")
		return
	}
	switch p := c.data.Object("part"); {
	case t.texts > 0 && p.Str("type") == "tool" && p.Object("state").Str("status") == "running":
		l := *c.r.Here()
		t.calls = append(t.calls, &l)
		return
	case p.Str("type") != "text":
		c.release(t)
	}
	f(c, t)
	c.r.Rest(kind, "", &c.line)
	c.r.Rest(kind, "/data", &c.data)
	if t.texts == 0 {
		c.release(t)
	}
}

// release reads the beginnings of calls that have waited. A text that began before a call is
// complete after it, and introduces it.
func (c *reader) release(t *thread) {
	calls := t.calls
	if t.calls = nil; len(calls) > 0 {
		t.texts = 0
	}
	for _, l := range calls {
		c.again(l, func() { c.read(t, c.open(l)) })
	}
}

func (c *reader) created(*thread) { c.data.SkipAll() }

// updated reads a change of a session. A revert hides messages; the next prompt removes them.
func (c *reader) updated(t *thread) {
	info := c.data.Object("info")
	t.revert = strings.Clone(info.Object("revert").Str("messageID"))
	c.data.SkipAll()
}

// messageOf returns the message of an id.
func (c *reader) messageOf(t *thread, id string, info *session.Object) *message {
	m := t.messages[id]
	if m == nil {
		m = &message{id: strings.Clone(id), role: strings.Clone(info.Str("role"))}
		created := info.Object("time").Count("created")
		m.copied = created.OK && created.V < t.created
		m.summary = info.Flag("summary")
		t.messages[m.id] = m
	}
	return m
}

// message reads a change of a message. An answer ends with its time of completion.
func (c *reader) message(t *thread) {
	info := c.data.Object("info")
	c.data.Skip("sessionID")
	m := c.messageOf(t, info.Str("id"), info)
	times, failure := info.Object("time"), info.Object("error")
	finish := info.Str("finish")
	model := cmp.Or(info.Str("modelID"), info.Object("model").Str("modelID"))
	info.Skip("role", "sessionID", "parentID", "providerID", "mode", "path", "cost",
		"tokens", "summary", "agent", "variant", "system", "tools", "structured", "format")
	c.r.Rest("message.updated.1", "/data/info", info)
	if m.copied || m.role != "assistant" {
		return
	}
	if model != "" && model != t.Model {
		t.Model = strings.Clone(model)
	}
	c.answer(t, m)
	if m.done || !times.Count("completed").OK && failure.Text == "" {
		return
	}
	m.done = true
	c.rest(t)
	switch {
	case failure.Text != "":
		c.fail(t, failure)
	case !m.summary && !goesOn[finish]:
		t.Complete(0)
	}
}

// goesOn are the ends of answers that another one follows.
var goesOn = map[string]bool{"tool-calls": true, "unknown": true, "": true}

// answer notes that an answer has begun. It begins a turn, if it is not within one.
func (c *reader) answer(t *thread, m *message) {
	if t.current == m {
		return
	}
	if before := t.current; before != nil && !before.done {
		c.rest(t)
		switch {
		case before.final:
			t.Complete(0)
		case !before.stepped || len(t.asked) > 0: // the program was killed
			t.CutTurn()
		}
	}
	t.current, t.texts = m, 0
	if !t.InTurn() && !m.summary {
		t.Begin()
	}
	asked := t.asked
	t.asked = nil
	for _, l := range asked {
		c.again(l, func() { c.askedBy(t, l) })
	}
}

// askedBy reads a text of the user that was held.
func (c *reader) askedBy(t *thread, l *session.Line) {
	c.open(l)
	p := c.data.Object("part")
	c.userPart(t, t.messages[p.Str("messageID")], p)
}

// again reads a line that was held.
func (c *reader) again(l *session.Line, read func()) {
	line, data := c.line, c.data
	c.line, c.data = session.Object{}, session.Object{}
	c.r.At(l, read)
	c.line, c.data = line, data
}

// fail ends the turn with the error of an answer.
func (c *reader) fail(t *thread, failure *session.Object) {
	kind, message := failure.Str("name"), failure.Object("data").Str("message")
	if kind == "MessageAbortedError" {
		t.Stop(cmp.Or(message, kind))
		return
	}
	t.Fails(cmp.Or(kind, "error"), cmp.Or(message, kind))
	t.Complete(0)
}

// failed reads an error that a process printed.
func (c *reader) failed(t *thread) {
	c.ensure(t)
	c.fail(t, c.data.Object("error"))
}

// ensure begins the turn of a process that prints no messages.
func (c *reader) ensure(t *thread) {
	if !t.InTurn() {
		t.Begin()
	}
}

// part reads a change of a part.
func (c *reader) part(t *thread) {
	p := c.data.Object("part")
	c.data.Skip("sessionID", "time")
	id, of, kind := p.Str("id"), p.Str("messageID"), p.Str("type")
	m := t.messages[of]
	if m == nil { // of an answer whose beginning is not here, as in the output of a process
		m = &message{id: strings.Clone(of), role: "assistant"}
		t.messages[m.id] = m
	}
	p.Skip("sessionID")
	switch f, ok := partKinds[kind]; {
	case m.copied:
		return
	case m.role == "user":
		if text := p.Str("text"); kind == "text" && (t.InTurn() || len(t.asked) > 0) && text != "" && t.part(id).take() {
			copied := *c.r.Here()
			t.asked = append(t.asked, &copied)
			return
		}
		if kind == "text" && t.part(id).done {
			return
		}
		c.userPart(t, m, p)
	case !ok:
		c.r.Unread(c.line.Str("type")+"/"+kind, "")
		return
	default:
		c.answer(t, m)
		f(c, t, m, t.part(id), p)
	}
	c.r.Rest(c.line.Str("type")+"/"+kind, "/data/part", p)
}

func (t *thread) part(id string) *part {
	p := t.parts[id]
	if p == nil {
		p = &part{id: strings.Clone(id)}
		t.parts[p.id] = p
	}
	return p
}

// take reports whether a part was not taken before.
func (p *part) take() bool {
	first := !p.done
	p.done = true
	return first
}

// userPart reads a part of a message of the user. A synthetic text is one that the program wrote.
func (c *reader) userPart(t *thread, m *message, p *session.Object) {
	part := t.part(p.Str("id"))
	part.done = true
	switch kind, text := p.Str("type"), p.Str("text"); {
	case kind != "text":
		p.SkipAll() // files and mentions are in the texts for the model, too
	case p.Flag("synthetic") || p.Flag("ignored"):
		part.events = append(part.events, t.Told(part.id, text))
	default:
		if !t.InTurn() {
			t.Begin()
		}
		part.events = append(part.events, t.Add(part.id, text))
	}
	m.events = append(m.events, part.events...)
	p.Skip("time", "metadata", "messageID", "id")
}

// partKinds are the kinds of parts of an answer.
var partKinds = map[string]func(*reader, *thread, *message, *part, *session.Object){
	"step-start": func(_ *reader, _ *thread, m *message, _ *part, p *session.Object) {
		m.call, m.stepped = "", false
		p.SkipAll()
	},
	"step-finish": (*reader).stepFinished,
	"text":        (*reader).text,
	"reasoning":   (*reader).reasoning,
	"tool":        (*reader).tool,
	"snapshot":    skipped,
	"patch":       skipped, // the calls have changed the files
	"retry":       (*reader).retried,
	"compaction":  skipped,
}

func skipped(_ *reader, _ *thread, _ *message, _ *part, p *session.Object) { p.SkipAll() }

// answered records the call of the model that a part comes from, once.
func (c *reader) answered(t *thread, m *message) {
	if m.call == "" {
		m.call = c.r.LineID()
		t.Answer(&agentevents.ModelReturned{ModelCallID: m.call})
	}
}

// stepFinished reads the end of a call of the model and its calls of tools, with the tokens.
func (c *reader) stepFinished(t *thread, m *message, part *part, p *session.Object) {
	reason, tokens := p.Str("reason"), p.Object("tokens")
	cost := p.Raw("cost")
	p.Skip("snapshot")
	if !part.take() {
		return
	}
	c.answered(t, m)
	u := &agentevents.UsageObserved{ModelCallID: m.call, Model: t.Model, Usage: usageOf(tokens)}
	if dollars, err := strconv.ParseFloat(cost, 64); err == nil && dollars > 0 { // a model without a price costs 0
		u.CostUSD = agentevents.Some(dollars)
	}
	c.r.Emit(t.Agent, u, 0)
	m.call, m.stepped, m.final = "", true, !goesOn[reason]
}

// usageOf returns tokens with the library's meaning: the output of opencode lacks the reasoning.
func usageOf(o *session.Object) agentevents.Usage {
	cache, reasoning := o.Object("cache"), o.Count("reasoning")
	return session.UsageOf(o.Count("input").V, o.Count("output").V+reasoning.V,
		cache.Count("read"), cache.Count("write"), reasoning)
}

// text reads a text of the answer, once it is complete. The beginning of a text is empty.
func (c *reader) text(t *thread, m *message, part *part, p *session.Object) {
	text, synthetic := p.Str("text"), p.Flag("synthetic")
	p.Skip("time", "metadata", "ignored")
	if text == "" && !part.begun && !part.done {
		part.begun = true
		t.texts++
	}
	if text == "" || !part.take() {
		return
	}
	if part.begun && t.texts > 0 {
		t.texts--
	}
	if synthetic {
		part.events = append(part.events, t.Told(part.id, text))
		return
	}
	c.answered(t, m)
	if m.summary {
		c.r.Emit(t.Agent, &agentevents.ContextCompacted{Summary: text}, 0)
		return
	}
	part.events = append(part.events, t.Spoke(part.id, text))
	m.events = append(m.events, part.events...)
}

func (c *reader) reasoning(t *thread, m *message, part *part, p *session.Object) {
	text := p.Str("text")
	p.Skip("time", "metadata")
	if text != "" && part.take() {
		c.answered(t, m)
		t.Thought(part.id, text)
	}
}

// retried reads that a call of the model failed and is tried again.
func (c *reader) retried(t *thread, _ *message, part *part, p *session.Object) {
	failure := p.Object("error")
	p.Skip("attempt", "time")
	if part.take() {
		c.r.Emit(t.Agent, &agentevents.AgentErrored{
			ErrorType: cmp.Or(failure.Str("name"), "error"),
			Message:   failure.Object("data").Str("message"), Severity: agentevents.SeverityWarning,
		}, 0)
	}
}

// tool reads a state of a call: pending, while the model writes its input; running; completed, or
// error.
func (c *reader) tool(t *thread, m *message, part *part, p *session.Object) {
	state := p.Object("state")
	status, input := state.Str("status"), state.Object("input")
	meta := state.Object("metadata")
	tool, call := p.Str("tool"), p.Str("callID")
	p.Skip("metadata")
	state.Skip("title", "attachments", "raw", "time")
	output, message := state.Raw("output"), state.Str("error")
	c.r.Rest(c.line.Str("type")+"/tool", "/data/part/state", state)
	if part.done {
		return
	}
	c.answered(t, m)
	invalid := tool == "invalid" && input.Str("tool") != ""
	if invalid {
		tool = input.Str("tool")
	}
	whole := c.line.Str("type") == "tool_use" // run prints no beginnings of calls
	if part.call == "" {
		part.call, part.tool = strings.Clone(call), strings.Clone(tool)
		if !whole {
			t.pending = append(t.pending, part)
		}
	}
	if status == "pending" {
		return
	}
	part.tool = strings.Clone(tool)
	if !whole {
		c.begin(t, part, agentevents.JSON(input.Text), 0)
	}
	if child := meta.Str("sessionId"); child != "" {
		c.spawned[strings.Clone(child)] = spawn{t, part.call}
	}
	back := &agentevents.ToolReturned{
		CallID: part.call, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(output),
	}
	exit := meta.Int("exit")
	switch {
	case status == "running":
		return
	case status == "error":
		back.Status, message = verdict(message), cmp.Or(message, "the call failed")
	case invalid:
		back.Status, message = agentevents.ToolStatusError, cmp.Or(input.Str("error"), jsonwire.Text(output))
	case exit.OK && exit.V != 0:
		back.Status, message = agentevents.ToolStatusError, jsonwire.Text(output)
	}
	if back.Status != agentevents.ToolStatusOK {
		if exit.V == 0 {
			exit.OK = false
		}
		back.Error = session.Failed(back.Status, exit, message)
	}
	times := state.Object("time")
	if from, to := times.Int("start"), times.Int("end"); from.OK && to.OK && to.V >= from.V && to.V-from.V < 1<<40 {
		back.Duration = agentevents.Some(time.Duration(to.V-from.V) * time.Millisecond)
	}
	part.done = true
	if whole {
		back.ToolID, back.OneEvent, back.Arguments = part.tool, true, agentevents.JSON(input.Text)
		c.r.Emit(t.Agent, back, 0)
		if meta.Str("sessionId") != "" { // of a sub-agent, whose work run does not print
			c.r.Unseen(t.Agent)
		}
		return
	}
	c.r.Return(t.Agent, back, 0)
}

// begin opens a call. Where an open one has its id, the id of the part stands for it.
func (c *reader) begin(t *thread, p *part, input agentevents.JSON, marks agentevents.Marks) {
	if p.opened {
		return
	}
	p.opened = true
	t.pending = slices.DeleteFunc(t.pending, func(other *part) bool { return other == p })
	if p.call == "" || t.OpenCall(p.call) != nil {
		p.call = p.id
	}
	c.r.Call(t.Agent, &agentevents.ToolCalled{CallID: p.call, ToolID: p.tool, Arguments: input}, marks)
}

// rest opens the calls whose input was not complete. They end with the turn.
func (c *reader) rest(t *thread) {
	for _, p := range slices.Clone(t.pending) {
		c.begin(t, p, "", agentevents.MarkSynthetic)
	}
}

// verdict is how a call ended that opencode calls an error.
func verdict(message string) agentevents.ToolStatus {
	switch {
	case strings.HasPrefix(message, "The user rejected permission"),
		strings.HasPrefix(message, "The user has specified a rule which prevents"):
		return agentevents.ToolStatusForbidden
	case message == "Tool execution aborted":
		return agentevents.ToolStatusCancelled
	}
	return agentevents.ToolStatusError
}

// messageRemoved reads that a message was deleted. Its tokens stay spent.
func (c *reader) messageRemoved(t *thread) {
	if m := t.messages[c.data.Str("messageID")]; m != nil {
		c.retract(t, m.events, "the user took back the message")
		m.events = nil
	}
	c.data.Skip("sessionID")
}

func (c *reader) partRemoved(t *thread) {
	if p := t.parts[c.data.Str("partID")]; p != nil {
		for _, m := range t.messages {
			m.events = slices.DeleteFunc(m.events, func(id string) bool { return slices.Contains(p.events, id) })
		}
		c.retract(t, p.events, "the part was removed")
		p.events = nil
	}
	c.data.Skip("sessionID", "messageID")
}

func (c *reader) retract(t *thread, events []string, reason string) {
	if len(events) > 0 {
		c.r.Emit(t.Agent, &agentevents.EventRetracted{EventIDs: events, Reason: reason}, 0)
	}
}

// EndFile ends a sub-agent.
func (c *reader) EndFile(l *session.Line) {
	if t := c.files[l.File]; t != nil && t.Agent != nil && t.Parent != nil {
		c.settle(t)
		t.Finish()
	}
}

// settle ends the work of a thread.
func (c *reader) settle(t *thread) {
	c.release(t)
	for _, l := range t.asked { // no answer came
		if !t.InTurn() {
			t.Begin()
		}
		c.again(l, func() { c.askedBy(t, l) })
	}
	t.asked = nil
	c.rest(t)
	if t.InTurn() && t.current != nil && t.current.final {
		t.Complete(0)
	}
	if t.revert != "" {
		var events []string
		for _, id := range slices.Sorted(maps.Keys(t.messages)) { // ids are in the order of time
			if id >= t.revert {
				events = append(events, t.messages[id].events...)
			}
		}
		c.retract(t, events, "the user took back the last messages")
	}
}

// End ends the run.
func (c *reader) End(*session.Line) {
	if c.main == nil {
		return
	}
	for _, t := range c.order {
		if t.Agent == nil && !t.foreign {
			c.start(t)
		}
	}
	for _, t := range slices.Backward(c.order) {
		if t != c.main && !t.foreign && t.Open {
			c.settle(t)
			t.Finish()
		}
	}
	c.settle(c.main)
	c.main.FinishRun()
}
