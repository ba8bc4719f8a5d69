// Package pi reads the sessions of pi: the files below ~/.pi/agent/sessions, and the output of
// pi --mode json, whose lines have other types.
//
// A file is a tree of lines: each names the line that it follows. A line that does not follow the
// one before it begins a branch, and takes back the messages that it leaves out. A fork is a file
// of its own, which begins with a copy of the lines of another one.
package pi

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Program returns the reader of files and of the output. Neither tells the version of the
// program: the version is the one of the format.
func Program() *session.Program {
	return &session.Program{
		Name:   "pi",
		Tested: "3",
		Files:  []string{"a session of pi"},
		Facts:  facts,
		Time:   lineTime,
		Skip:   func(line []byte) bool { return strings.HasPrefix(string(line[:min(len(line), len(update))]), update) },
		New:    newReader,
	}
}

// update begins lines that repeat the answer so far.
const update = `{"type":"message_update"`

// facts reads the first line. What is printed has the id of the session, too, and one that goes
// on prints it again.
func facts(first []string) (f session.Facts, ok bool) {
	var o session.Object
	printed := false
	for i, line := range first {
		o.Parse(line)
		if o.Str("type") == "session" && i > 0 { // another session follows in the file
			first = first[:i]
			break
		}
		switch kind := o.Str("type"); {
		case kind == "session":
			f.Session = o.Str("id")
			f.Version = o.Raw("version")
			f.At, _ = o.Time("timestamp")
		case o.Str("id") == "":
			printed = true
		}
	}
	if printed {
		f.Of, f.Copies, f.Session = f.Session, true, processID(first)
	}
	f.Thread = f.Session
	return f, f.Session != ""
}

// processID is made of the lines of a process up to its first message.
func processID(lines []string) string {
	for i, line := range lines {
		if i+1 == maxOpening || strings.Contains(line, `"message"`) {
			lines = lines[:i+1]
			break
		}
	}
	return session.ID(lines...)
}

const maxOpening = 8

// lineTime returns the time of a line. Those that are printed have the one of their message, in
// milliseconds.
func lineTime(line string) (time.Time, bool) {
	raw := jsonwire.Member(line, "timestamp")
	if raw == "" {
		if raw = jsonwire.Member(cmp.Or(jsonwire.Member(line, "message"), "{}"), "timestamp"); raw == "" {
			return time.Time{}, false
		}
	}
	if raw[0] == '"' {
		return session.ParseTime(jsonwire.Text(raw))
	}
	var s jsonwire.Scanner
	s.Reset(raw)
	const year10000 = 253402300800000
	ms, err := s.Int()
	return time.UnixMilli(ms).UTC(), err == nil && ms >= 0 && ms < year10000
}

// A reader reads one session, or one process.
type reader struct {
	t       session.Talk
	r       *session.Recorder
	tree    session.Tree
	line    session.Object
	id      string    // of the session
	inputs  string    // JSON
	fork    time.Time // when the file was made as a fork of another one
	goes    bool      // the latest answer called tools, so that a text of the user steers
	printed bool
}

func newReader(r *session.Recorder) session.Reader { return &reader{r: r, t: session.Talk{R: r}} }

// A kind is one of lines. An opener may stand before the model and the prompt are known.
type kind struct {
	read   func(*reader)
	opener bool
}

var kinds = map[string]kind{
	"session":               {(*reader).session, true},
	"model_change":          {(*reader).model, true},
	"thinking_level_change": {nothing, true},
	"session_info":          {nothing, true},
	"label":                 {nothing, true},
	"custom":                {nothing, true},
	"custom_message":        {(*reader).custom, true},
	"message":               {(*reader).message, true},
	"compaction":            {(*reader).compacted, false},
	"branch_summary":        {(*reader).branch, false},

	"agent_start":           {nothing, true},
	"turn_start":            {nothing, true},
	"message_start":         {nothing, true},
	"message_update":        {nothing, true},
	"message_end":           {(*reader).message, true},
	"tool_execution_start":  {(*reader).toolStarts, false},
	"tool_execution_update": {nothing, false},
	"tool_execution_end":    {(*reader).toolEnds, false},
	"turn_end":              {nothing, false},
	"agent_end":             {nothing, false},
	"auto_retry_start":      {nothing, false},
	"auto_retry_end":        {nothing, false},
	"compaction_start":      {nothing, false},
	"compaction_end":        {(*reader).compactionEnds, false},
	"queue_update":          {nothing, true},
	"response":              {nothing, true},
}

// nothing is for lines that repeat others, or tell nothing of the work.
func nothing(p *reader) { p.line.SkipAll() }

// Line reads a line.
func (p *reader) Line(l *session.Line) {
	p.line.Parse(l.Text)
	name := p.line.Str("type")
	if name == "session" && p.t.First != nil && (p.printed || p.id != p.line.Str("id")) {
		p.r.Another() // a process prints it once
		return
	}
	if p.copied(name, l) {
		return
	}
	if p.t.Agent == nil {
		full := p.t.Hold(l)
		if p.foresee(name) || full {
			p.start()
		}
		return
	}
	p.read(l)
}

// copied reports whether a line is a part of a copied history: a fork begins with lines that
// are older than it.
func (p *reader) copied(name string, l *session.Line) bool {
	if _, known := kinds[name]; !known || p.fork.IsZero() || !l.Stamped || !l.At.Before(p.fork) || name == "session" {
		return false
	}
	p.foreseeModel(name)
	p.tree.Add(p.line.Str("id"), p.line.Str("parentId"))
	return true
}

func (p *reader) foreseeModel(name string) {
	if name == "model_change" {
		p.t.Model = strings.Clone(cmp.Or(p.line.Str("modelId"), p.t.Model))
	}
}

// foresee takes the model and the prompt from a line that is held. It reports whether the agent
// is at work.
func (p *reader) foresee(name string) (starts bool) {
	p.foreseeModel(name)
	m := p.line.Object("message")
	switch role := m.Str("role"); {
	case name == "session":
		p.id = strings.Clone(p.line.Str("id"))
		p.inputs = strings.Clone(string(p.line.Pick("cwd", "parentSession")))
		if p.line.Str("parentSession") != "" {
			p.fork, _ = p.line.Time("timestamp")
		}
		return false
	case role == "assistant":
		p.t.Model = cmp.Or(p.t.Model, strings.Clone(m.Str("model")))
		return name != "message_update"
	case role == "user" && p.t.Prompt == "":
		p.t.Prompt = jsonwire.Quote(session.Text(m.Raw("content")))
		fallthrough
	case role == "user":
		return false
	case role != "":
		return name == "message" || name == "message_end"
	}
	p.printed = p.printed || name == "agent_start" || name == "response"
	return !kinds[name].opener
}

// start starts the run, and reads the lines that were held.
func (p *reader) start() {
	p.r.At(p.t.First, func() {
		id := cmp.Or(p.t.First.Thread, p.id, "pi")
		if p.t.First.Thread == "" && p.printed {
			id = processID(p.t.Held())
		}
		p.t.StartRun("pi", id, cmp.Or(p.id, id), agentevents.JSON(p.inputs))
	})
	p.t.Release(p.read)
}

// read makes the events of a line.
func (p *reader) read(l *session.Line) {
	p.line.Parse(l.Text)
	p.line.Skip("timestamp")
	name := p.line.Str("type")
	k, ok := kinds[name]
	if !ok {
		p.r.Unread(name, "")
	}
	if id := p.line.Str("id"); id != "" && name != "session" && name != "response" {
		left, branches, isNew := p.tree.Add(id, p.line.Str("parentId"))
		if !isNew {
			return // a line that was written twice
		}
		if branches && ok {
			p.t.Retract(left, "the conversation goes on from an earlier message")
			p.goes = false
		}
	}
	said := len(p.t.Said)
	if ok {
		k.read(p)
		p.r.Rest(name, "", &p.line)
	}
	p.tree.Said(p.t.Said[said:])
	p.t.See()
}

func (p *reader) session() {
	p.r.SetVersion(p.line.Raw("version"))
	p.line.Skip("id", "cwd", "parentSession")
}

func (p *reader) model() {
	p.foreseeModel("model_change")
	p.line.Skip("provider")
}

// message reads a message. What is printed has it with the type message_end.
func (p *reader) message() {
	m := p.line.Object("message")
	role := m.Str("role")
	m.Skip("timestamp")
	name := p.line.Str("type") + "/" + role
	switch role {
	case "user":
		p.user(m)
	case "assistant":
		p.assistant(m)
	case "toolResult":
		p.result(m)
	case "bashExecution":
		p.t.Told("", string(m.Pick("command", "output", "exitCode")))
		m.Skip("cancelled", "truncated", "fullOutputPath", "excludeFromContext")
	case "custom":
		p.t.Told("", session.Text(m.Raw("content")))
		m.Skip("customType", "display", "details")
	default:
		p.r.Unread(name, "")
		return
	}
	p.r.Rest(name, "/message", m)
}

func (p *reader) user(m *session.Object) {
	text := session.Text(m.Raw("content"))
	if p.goes && p.t.InTurn() {
		p.t.Add("", text)
		return
	}
	p.t.Ask("", text)
}

// assistant reads an answer of the model. One that failed, or was stopped, without tokens is no
// call of the model that counts.
func (p *reader) assistant(m *session.Object) {
	m.Skip("api", "diagnostics")
	stop, failure := m.Str("stopReason"), m.Str("errorMessage")
	p.t.Model = cmp.Or(strings.Clone(m.Str("model")), p.t.Model)
	call := &agentevents.ModelReturned{
		Provider: m.Str("provider"), ResponseID: m.Str("responseId"), FinishReasons: []string{cmp.Or(finishes[stop], stop)},
	}
	broken := stop == "error" || stop == "aborted"
	if usage, total := p.usage(m.Object("usage"), call); !broken || total > 0 {
		call.Usage = usage
		if broken {
			call.Error = agentevents.Some(agentevents.ErrorInfo{Code: modelErrors[stop], Message: failure})
		}
		p.t.Answer(call)
	} else if content := m.Raw("content"); content != "" && content != "[]" {
		p.t.Step()
	}
	p.goes = p.parts(m, stop == "error")
	switch stop {
	case "error":
		p.t.Fail("error", failure)
		p.goes = false
	case "aborted":
		p.t.Stop(cmp.Or(failure, stop))
	case "toolUse":
	default:
		if !p.goes {
			p.t.Complete(0)
		}
	}
}

// finishes are the words of pi that have others here.
var finishes = map[string]string{"toolUse": "tool_calls", "": "unknown"}

var modelErrors = map[string]string{"error": "error", "aborted": "cancelled"}

// usage reads tokens: the input is without cached tokens, and the output with the reasoning.
func (p *reader) usage(o *session.Object,
	call *agentevents.ModelReturned) (u agentevents.Opt[agentevents.Usage], total int64) {
	if o.Text == "" {
		return u, 0
	}
	u.OK = true
	u.V = session.UsageOf(o.Count("input").V, o.Count("output").V,
		o.Count("cacheRead"), o.Count("cacheWrite"), agentevents.Opt[int64]{})
	var s jsonwire.Scanner
	if s.Reset(jsonwire.Member(cmp.Or(o.Raw("cost"), "{}"), "total")); s.Text() != "" {
		if cost, err := s.Float(); err == nil && cost > 0 { // a model without a price costs 0
			call.CostUSD = agentevents.Some(cost)
		}
	}
	total = o.Count("totalTokens").V
	p.r.Rest("message/assistant", "/message/usage", o)
	return u, total
}

// parts reads the parts of an answer. It reports whether the answer calls tools.
func (p *reader) parts(m *session.Object, failed bool) (calls bool) {
	var o session.Object
	for part := range jsonwire.Elements(cmp.Or(m.Raw("content"), "[]")) {
		o.Parse(part)
		switch name := o.Str("type"); name {
		case "text":
			o.Skip("textSignature")
			if text := o.Str("text"); failed {
				p.t.Wrote("", text)
			} else {
				p.t.Spoke("", text)
			}
		case "thinking":
			o.Skip("thinkingSignature", "redacted")
			p.t.Thought("", o.Str("thinking"))
		case "toolCall":
			o.Skip("thoughtSignature")
			calls = true
			p.r.Call(p.t.Agent, &agentevents.ToolCalled{
				CallID: o.Str("id"), ToolID: o.Str("name"), Arguments: agentevents.JSON(o.Raw("arguments")),
			}, 0)
		default:
			p.r.Unread("message/assistant", "/message/content/*/"+name)
			continue
		}
		p.r.Rest("message/assistant", "/message/content/*", &o)
	}
	return calls
}

// result reads the return of a call. What is printed tells it before.
func (p *reader) result(m *session.Object) {
	id, tool, text, failed := m.Str("toolCallId"), m.Str("toolName"), session.Text(m.Raw("content")), m.Flag("isError")
	m.Skip("details")
	if p.line.Str("type") == "message" || p.t.OpenCall(id) != nil {
		p.back(id, tool, text, failed)
	}
}

func (p *reader) toolStarts() { p.line.Skip("toolCallId", "toolName", "args") }

func (p *reader) toolEnds() {
	result := p.line.Object("result")
	result.Skip("details")
	p.back(p.line.Str("toolCallId"), p.line.Str("toolName"), session.Text(result.Raw("content")), p.line.Flag("isError"))
	p.r.Rest("tool_execution_end", "/result", result)
}

// The forms of texts of calls that failed.
var (
	aborted = regexp.MustCompile(`(?:^|\n)(?:Command|Operation|Tool execution|Request)(?: was)? aborted\.?$`)
	exited  = regexp.MustCompile(`(?:^|\n)Command exited with code (-?\d+)$`)
)

func (p *reader) back(id, tool, text string, failed bool) {
	back := &agentevents.ToolReturned{
		CallID: id, ToolID: tool, Status: agentevents.ToolStatusOK, Result: agentevents.JSON(jsonwire.Quote(text)),
	}
	if failed {
		back.Status, back.Error.V.Message = agentevents.ToolStatusError, text
		if exit := exited.FindStringSubmatch(text); exit != nil {
			back.Error.V.Code = "exit_" + exit[1]
		}
		if aborted.MatchString(text) {
			back.Status = agentevents.ToolStatusCancelled
		}
	}
	p.t.Back(back)
}

func (p *reader) compacted() {
	p.r.Emit(p.t.Agent, &agentevents.ContextCompacted{TokensBefore: p.line.Count("tokensBefore"),
		Summary: p.line.Str("summary")}, 0)
	p.line.Skip("firstKeptEntryId", "details", "fromHook")
}

func (p *reader) compactionEnds() {
	result, reason, failure := p.line.Object("result"), p.line.Str("reason"), p.line.Str("errorMessage")
	p.line.Skip("aborted", "willRetry")
	switch {
	case result.Text != "":
		p.r.Emit(p.t.Agent, &agentevents.ContextCompacted{
			TokensBefore: result.Count("tokensBefore"), Summary: result.Str("summary"), Trigger: reason,
		}, 0)
		result.Skip("firstKeptEntryId", "details")
		p.r.Rest("compaction_end", "/result", result)
	case failure != "":
		p.t.Warn("compaction", failure)
	}
}

// branch reads the summary of a branch that was left.
func (p *reader) branch() {
	p.t.Told("", p.line.Str("summary"))
	p.line.Skip("fromId", "details", "fromHook")
}

// custom reads a text that an extension wrote for the model.
func (p *reader) custom() {
	p.t.Told("", session.Text(p.line.Raw("content")))
	p.line.Skip("customType", "display", "details")
}

// End ends the run.
func (p *reader) End(*session.Line) {
	if p.t.Agent == nil {
		if p.t.First == nil {
			return
		}
		p.start()
	}
	p.t.FinishRun()
}
