package qwen

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Stream returns the reader of the output of qwen --output-format stream-json: one process. The
// prompt, times, and the work of sub-agents in the background are not in it. The tokens of its
// result are the sum over the session with all processes before, so they only stand beside the
// tokens of the answers.
func Stream() *session.Program {
	return &session.Program{
		Name:    "Qwen Code",
		Tested:  tested,
		Files:   []string{"a stream of qwen --output-format stream-json"},
		Facts:   streamFacts,
		Time:    func(string) (time.Time, bool) { return time.Time{}, false },
		Untimed: true,
		New: func(r *session.Recorder) session.Reader {
			return &stream{r: r, main: &talk{Talk: session.Talk{R: r}}, subs: map[string]*talk{}}
		},
	}
}

// streamFacts reads the first lines. A process that goes on prints the id of the session again, but
// each line has an id of its own.
func streamFacts(first []string) (f session.Facts, ok bool) {
	f.Session = processID(first)
	f.Thread, f.Copies = f.Session, true
	for _, line := range first {
		f.Of = cmp.Or(f.Of, session.ParseObject(line).Str("session_id"))
	}
	return f, true
}

// processID is made of the first lines up to one with an id of its own.
func processID(lines []string) string { return session.ID(lines[:min(len(lines), opening)]...) }

const opening = 2

// A stream is the state of the reader of one process.
type stream struct {
	r     *session.Recorder
	main  *talk
	subs  map[string]*talk // by the call that started them, and by task
	line  session.Object
	id    string // of the session
	ended bool
}

// A talk is the conversation of an agent. Its answers come in several lines, of which the last one
// has the tokens.
type talk struct {
	session.Talk
	parts []*session.Line
	spent bool // an answer had tokens
}

var streamKinds = map[string]func(*stream, *talk){
	"system/init":              (*stream).begin,
	"system/task_started":      (*stream).taskStarted,
	"system/task_notification": (*stream).taskEnded,
	"system/task_progress":     skip,
	"system/retry":             (*stream).retried,
	"system/session_start":     skip,
	"system/session_end":       skip,
	"stream_event":             skip,
	"assistant":                (*stream).part,
	"user":                     (*stream).user,
	"result":                   (*stream).result,
}

func skip(s *stream, _ *talk) { s.line.SkipAll() }

// Line reads a line.
func (s *stream) Line(l *session.Line) {
	s.line.Parse(l.Text)
	id := s.line.Str("session_id")
	if s.id != "" && (id != "" && id != s.id && s.line.Str("subtype") == "init" || s.line.Raw("sessionId") != "") {
		s.r.Another()
		return
	}
	if s.main.Agent != nil {
		s.read(l)
		return
	}
	s.id = cmp.Or(s.id, strings.Clone(s.line.Str("session_id")))
	s.main.Model = cmp.Or(s.main.Model, strings.Clone(s.line.Str("model")))
	kind := s.line.Str("type")
	if full := s.main.Hold(l); full || kind != "system" {
		s.start()
	}
}

func (s *stream) start() {
	s.r.At(s.main.First, func() {
		s.main.StartRun(mainAgent, cmp.Or(s.main.First.Thread, processID(s.main.Held())), s.id, "")
	})
	s.main.Release(s.read)
}

func (s *stream) read(l *session.Line) {
	s.line.Parse(l.Text)
	s.line.Skip("uuid", "session_id")
	kind := s.line.Str("type")
	if kind == "system" {
		kind += "/" + s.line.Str("subtype")
	}
	t := s.main
	if by := s.line.Str("parent_tool_use_id"); by != "" {
		t = s.sub(by)
	}
	if kind != "assistant" && kind != "stream_event" && len(t.parts) > 0 {
		s.answer(t, nil)
		s.line.Parse(l.Text)
		s.line.Skip("uuid", "session_id", "type", "subtype", "parent_tool_use_id")
	}
	f, ok := streamKinds[kind]
	if !ok {
		s.r.Unread(kind, "")
		return
	}
	f(s, t)
	s.r.Rest(kind, "", &s.line)
	t.See()
}

// sub returns the sub-agent that a call has started.
func (s *stream) sub(call string) *talk {
	if t := s.subs[call]; t != nil {
		return t
	}
	t := &talk{Talk: session.Talk{R: s.r, Model: s.main.Model}}
	kind := ""
	if open := s.main.Agent.OpenCall(call); open != nil && jsonwire.IsObject(open.Arguments) {
		args := session.ParseObject(open.Arguments)
		kind, t.Prompt = strings.Clone(args.Str("subagent_type")), strings.Clone(args.Raw("prompt"))
	}
	call = strings.Clone(call)
	s.subs[call] = t
	t.StartSub(s.main.Agent, kind, call, call)
	return t
}

func (s *stream) begin(*talk) {
	s.r.SetVersion(s.line.Str("qwen_code_version"))
	s.line.SkipAll()
}

// part holds a part of an answer. The last one has the tokens.
func (s *stream) part(t *talk) {
	t.parts = append(t.parts, s.r.Here())
	used := s.line.Object("message").Object("usage")
	s.line.SkipAll() // answer reads it
	if used.Count("input_tokens").V+used.Count("output_tokens").V > 0 {
		s.answer(t, used)
	}
}

// streamUsage reads tokens: the input includes cached tokens, and the output the reasoning.
func streamUsage(o *session.Object) agentevents.Usage {
	return tokens(o.Count("input_tokens").V, o.Count("output_tokens").V,
		o.Count("cache_read_input_tokens"), agentevents.Opt[int64]{})
}

// flush records an answer of which no line has the tokens.
func (s *stream) flush(t *talk) {
	if len(t.parts) > 0 {
		s.answer(t, nil)
	}
}

// answer records the answer of which the parts are held.
func (s *stream) answer(t *talk, used *session.Object) {
	parts := t.parts
	t.parts = nil
	s.r.At(parts[0], func() {
		call := &agentevents.ModelReturned{}
		if used != nil {
			call.Usage, t.spent = agentevents.Some(streamUsage(used)), true
		}
		t.Answer(call)
	})
	for _, l := range parts {
		s.r.At(l, func() {
			line := session.ParseObject(l.Text)
			line.Skip("type", "uuid", "session_id", "parent_tool_use_id")
			m := line.Object("message")
			m.Skip("id", "type", "role", "model", "stop_reason", "usage")
			s.blocks(t, m)
			s.r.Rest("assistant", "", line)
			s.r.Rest("assistant", "/message", m)
		})
	}
}

func (s *stream) blocks(t *talk, m *session.Object) {
	for raw := range jsonwire.Elements(cmp.Or(m.Raw("content"), "[]")) {
		o := session.ParseObject(raw)
		switch kind := o.Str("type"); kind {
		case "text":
			t.Spoke("", o.Str("text"))
		case "thinking":
			t.Thought("", o.Str("thinking"))
			o.Skip("signature")
		case "tool_use":
			s.r.Call(t.Agent, &agentevents.ToolCalled{
				CallID: o.Str("id"), ToolID: o.Str("name"), Arguments: agentevents.JSON(o.Raw("input")),
			}, 0)
		default:
			s.r.Unread("assistant", "/message/content/*/"+kind)
			continue
		}
		s.r.Rest("assistant", "/message/content/*", o)
	}
}

// user reads the returns of calls, the prompt of a sub-agent, and texts of the program.
func (s *stream) user(t *talk) {
	m := s.line.Object("message")
	m.Skip("role")
	content := m.Raw("content")
	if !strings.HasPrefix(content, "[") {
		content = `[{"type":"text","text":` + cmp.Or(content, `""`) + `}]`
	}
	for raw := range jsonwire.Elements(content) {
		o := session.ParseObject(raw)
		switch kind := o.Str("type"); kind {
		case "text":
			if text := o.Str("text"); t != s.main && !t.InTurn() {
				t.Ask("", text)
			} else {
				t.Told("", text)
			}
		case "tool_result":
			s.back(t, o)
		default:
			s.r.Unread("user", "/message/content/*/"+kind)
			continue
		}
		s.r.Rest("user", "/message/content/*", o)
	}
	s.r.Rest("user", "/message", m)
}

// The forms of texts of calls that did not run, or not to their end.
var (
	cancelled = regexp.MustCompile(`^\[Operation Cancelled\]`)
	dropped   = regexp.MustCompile(`^Skipped because the provider attempt was retried`)
	refused   = regexp.MustCompile(`(?i)^[^\n]{0,200}(?:permission was (?:declined|denied)|` +
		`requires (?:user )?(?:permission|approval)|denied by|execution denied)`)
)

func (s *stream) back(t *talk, o *session.Object) {
	text := session.Text(o.Raw("content"))
	p := &agentevents.ToolReturned{
		CallID: o.Str("tool_use_id"), Status: agentevents.ToolStatusOK, Result: agentevents.JSON(jsonwire.Quote(text)),
	}
	if o.Flag("is_error") {
		p.Status, p.Error.V.Message = agentevents.ToolStatusError, text
		switch {
		case cancelled.MatchString(text):
			p.Status = agentevents.ToolStatusCancelled
		case dropped.MatchString(text):
			p.Status = agentevents.ToolStatusInterrupted
		case refused.MatchString(text):
			p.Status = agentevents.ToolStatusForbidden
		}
		s.failed(s.subs[p.CallID], p.Status, text)
	}
	t.Back(p)
}

// failed ends a sub-agent whose call failed.
func (s *stream) failed(t *talk, status agentevents.ToolStatus, text string) {
	if t == nil || !t.Agent.Open {
		return
	}
	s.flush(t)
	switch {
	case status == agentevents.ToolStatusCancelled && t.InTurn():
		t.Stop(text)
	default:
		t.Resolve(agentevents.Some(agentevents.ErrorInfo{Code: string(status), Message: text}), "")
	}
	s.end(t)
}

func (s *stream) taskStarted(*talk) {
	data := s.line.Object("data")
	if t, id := s.sub(data.Str("tool_use_id")), data.Str("task_id"); id != "" {
		s.subs[strings.Clone(id)] = t
	}
	data.Skip("description", "subagent_type")
	s.r.Rest("system/task_started", "/data", data)
}

// taskEnded reads how a sub-agent ended. Its own tokens are not in the stream, but their number is.
func (s *stream) taskEnded(*talk) {
	data := s.line.Object("data")
	status := data.Str("status")
	t := s.subs[cmp.Or(data.Str("task_id"), data.Str("tool_use_id"))]
	data.Skip("tool_use_id", "summary", "output_file")
	used := data.Object("usage")
	s.r.Rest("system/task_notification", "/data", data)
	if t == nil || !t.Open {
		return
	}
	s.flush(t)
	if t.Stated = used.Count("total_tokens"); status == "cancelled" {
		t.Stop(status)
	} else if status == "completed" {
		t.Resolve(agentevents.Opt[agentevents.ErrorInfo]{}, "")
	} else {
		t.Resolve(agentevents.Some(agentevents.ErrorInfo{Code: status,
			Message: "the sub-agent ended with status " + status}), "")
	}
	s.end(t)
}

// end ends a sub-agent.
func (s *stream) end(t *talk) {
	if !t.spent {
		s.r.Unseen(t.Agent)
	}
	t.Finish()
}

func (s *stream) retried(t *talk) {
	t.Warn("retry", "the program asks the model again: "+s.line.Raw("data"))
}

// result reads the end of the process.
func (s *stream) result(*talk) {
	t := &s.main.Talk
	subtype, text, failure := s.line.Str("subtype"), s.line.Str("result"), s.line.Object("error")
	failed, took := s.line.Flag("is_error"), s.line.Millis("duration_ms")
	t.Stated = s.line.Object("usage").Count("total_tokens")
	s.line.Skip("duration_api_ms", "num_turns", "usage", "permission_denials", "modelUsage", "stats")
	if failed || strings.HasPrefix(subtype, "error") {
		t.Fail(subtype, cmp.Or(failure.Str("message"), text, subtype))
	}
	if took.OK { // a process has a result for each prompt
		t.Took = agentevents.Some(t.Took.V + took.V)
	}
	t.CompleteAfter(took, 0)
	s.ended = true
}

// End ends the run. Without a result the program was stopped.
func (s *stream) End(*session.Line) {
	t := s.main
	if t.Agent == nil {
		if t.First == nil {
			return
		}
		s.start()
	}
	s.flush(t)
	for _, a := range t.Kids() {
		sub := s.subs[a.Thread]
		s.flush(sub)
		s.end(sub)
	}
	if !s.ended {
		t.Cut()
	}
	t.FinishRun()
}
