package gemini

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Stream returns the reader of the output of gemini --output-format stream-json: one process.
// Thoughts, the work of sub-agents and the calls of the model are not in it. Its tokens are the sum over
// the process.
func Stream() *session.Program {
	return &session.Program{
		Name:   "Gemini CLI",
		Tested: tested,
		Files:  []string{"a stream of gemini --output-format stream-json"},
		Facts:  streamFacts,
		Time:   lineTime,
		New:    func(r *session.Recorder) session.Reader { return &stream{t: session.Talk{R: r}, r: r} },
	}
}

// streamFacts reads the first lines. A process that goes on prints the id of the session again.
func streamFacts(first []string) (f session.Facts, ok bool) {
	f.Session = processID(first)
	f.Thread, f.Copies = f.Session, true
	for _, line := range first {
		o := session.ParseObject(line)
		f.Of = cmp.Or(f.Of, o.Str("session_id"))
		if at, ok := o.Time("timestamp"); ok && f.At.IsZero() {
			f.At = at
		}
	}
	return f, true
}

// processID is made of the first lines: the session, and the prompt.
func processID(lines []string) string { return session.ID(lines[:min(len(lines), opening)]...) }

const opening = 2

// A stream is the state of the reader of one process.
type stream struct {
	t        session.Talk
	r        *session.Recorder
	line     session.Object
	id       string // of the session
	words    strings.Builder
	said     *session.Line // the first line of the words
	returned bool          // a call has returned since the latest words
	ended    bool
	stopped  string // the error with which the program stopped
	code     string // of that error
}

var streamKinds = map[string]func(*stream){
	"init":        (*stream).begin,
	"message":     (*stream).message,
	"tool_use":    (*stream).call,
	"tool_result": (*stream).back,
	"error":       (*stream).failed,
	"result":      (*stream).result,
}

// Line reads a line.
func (s *stream) Line(l *session.Line) {
	s.line.Parse(l.Text)
	if s.t.First != nil && s.line.Str("type") == "init" { // a process prints it once
		s.r.Another()
		return
	}
	if s.t.Agent != nil {
		s.read(l)
		return
	}
	s.id = cmp.Or(s.id, strings.Clone(s.line.Str("session_id")))
	s.t.Model = cmp.Or(s.t.Model, strings.Clone(s.line.Str("model")))
	kind := s.line.Str("type")
	if kind == "message" && s.line.Str("role") == "user" && s.t.Prompt == "" {
		s.t.Prompt = strings.Clone(s.line.Raw("content"))
	}
	if full := s.t.Hold(l); kind != "init" || full {
		s.start()
	}
}

func (s *stream) start() {
	s.r.At(s.t.First, func() {
		s.t.StartRun(mainAgent, cmp.Or(s.t.First.Thread, processID(s.t.Held())), s.id, "")
	})
	s.t.Release(s.read)
}

func (s *stream) read(l *session.Line) {
	s.line.Parse(l.Text)
	s.line.Skip("timestamp")
	kind := s.line.Str("type")
	if kind != "message" || s.line.Str("role") == "user" {
		s.tell()
	}
	f, ok := streamKinds[kind]
	if !ok {
		s.r.Unread(kind, "")
		return
	}
	f(s)
	s.r.Rest(kind, "", &s.line)
	s.t.See()
}

func (s *stream) begin() { s.line.Skip("session_id", "model") }

// message reads the prompt, or a part of a text of the agent.
func (s *stream) message() {
	text := s.line.Str("content")
	s.line.Skip("delta")
	if s.line.Str("role") == "user" {
		s.t.Ask("", text)
		return
	}
	if s.said == nil {
		s.said = s.r.Here()
	}
	s.words.WriteString(text)
}

// tell records the text of the agent, which comes in parts.
func (s *stream) tell() {
	if s.said == nil {
		return
	}
	s.step()
	text := s.words.String()
	s.words.Reset()
	s.r.At(s.said, func() { s.t.Spoke("", text) })
	s.said = nil
}

// step notes that another answer of the model has begun, which a text or a call after the return of a call
// shows.
func (s *stream) step() {
	if s.returned || !s.t.InTurn() {
		s.t.Step()
	}
	s.returned = false
}

func (s *stream) call() {
	s.step()
	s.r.Call(s.t.Agent, &agentevents.ToolCalled{
		CallID: s.line.Str("tool_id"), ToolID: s.line.Str("tool_name"), Arguments: agentevents.JSON(s.line.Raw("parameters")),
	}, 0)
}

// back reads the return of a call. Its output is the text for the screen, which may be empty.
func (s *stream) back() {
	failure := s.line.Object("error")
	b := back{
		p: &agentevents.ToolReturned{
			CallID: s.line.Str("tool_id"), Status: agentevents.ToolStatusError, Result: agentevents.JSON(s.line.Raw("output")),
		},
	}
	if status, ok := statuses[s.line.Str("status")]; ok {
		b.p.Status = status
	}
	b.judge("", failure.Str("message"), jsonwire.Text(string(b.p.Result)))
	if b.p.Status != agentevents.ToolStatusOK && b.p.Status != agentevents.ToolStatusForbidden {
		b.p.Error.V.Code = failure.Str("type")
	}
	failure.Skip("type")
	s.r.Rest("tool_result", "/error", failure)
	s.t.Back(b.p)
	s.returned = true
}

// failed reads an error. One that stops the program is the end of the turn, though the result that
// follows tells a success.
func (s *stream) failed() {
	message := s.line.Str("message")
	s.line.Skip("severity")
	if !strings.Contains(message, "stopping execution") {
		s.t.Warn("error", message)
		return
	}
	s.code = "stopped"
	if strings.HasPrefix(message, "Loop detected") {
		s.code = "loop_detected" // as package findings calls it
	}
	s.stopped = strings.Clone(message)
	s.t.Fail(s.code, message)
}

// result reads the end of the process.
func (s *stream) result() {
	status, failure := s.line.Str("status"), s.line.Object("error")
	stats := s.line.Object("stats")
	took := stats.Millis("duration_ms")
	s.stats(stats)
	code, message := failure.Str("type"), failure.Str("message")
	s.r.Rest("result", "/error", failure)
	switch {
	case status == "error" || failure.Text != "":
		s.t.Fail(code, cmp.Or(message, "the program ended with an error"))
	case s.stopped != "":
		s.t.Fails(s.code, s.stopped)
	}
	s.t.CompleteAfter(took, 0)
	s.ended = true
}

// stats reads the tokens of the process, which are stated for each model too.
func (s *stream) stats(o *session.Object) {
	o.Skip("duration_ms")
	all, total := totalOf(o)
	var models []*agentevents.UsageObserved
	var sum int64
	for name, text := range jsonwire.Members(o.Raw("models")) {
		model := session.ParseObject(text)
		used, n := totalOf(model)
		s.r.Rest("result", "/stats/models/*", model)
		models, sum = append(models, &agentevents.UsageObserved{Model: name, Usage: used}), sum+n
	}
	s.r.Rest("result", "/stats", o)
	if total == 0 || s.ended {
		return // the program forgets them when it stops itself
	}
	if sum != total {
		models = []*agentevents.UsageObserved{{Usage: all}}
	}
	for _, p := range models {
		p.Source = "total of the process"
		s.r.Emit(s.t.Agent, p, 0)
	}
}

// totalOf returns tokens, and their total: the input includes cached tokens, and the reasoning is in the
// total only.
func totalOf(o *session.Object) (u agentevents.Usage, total int64) {
	input, output, cached := o.Count("input_tokens").V, o.Count("output_tokens").V, o.Count("cached")
	total = o.Count("total_tokens").V
	o.Skip("input", "tool_calls")
	all := max(output, total-input)
	return session.UsageOf(input-cached.V, all, cached, agentevents.Opt[int64]{}, agentevents.Some(all-output)), total
}

// End ends the run. Without a result the program was stopped.
func (s *stream) End(*session.Line) {
	if s.t.Agent == nil {
		if s.t.First == nil {
			return
		}
		s.start()
	}
	s.tell()
	if !s.ended {
		s.t.Cut()
	}
	s.t.FinishRun()
}
