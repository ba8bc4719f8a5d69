package multiagent

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values that the document has and the engine does not.

// A valueForm is a value. One that the field cannot tell from an absent one is kept.
type valueForm struct{ exactForm }

// An exactForm is a value. One that the field has not, but a similar one, is kept.
type exactForm struct{ engine.EmptyKept }

func (f exactForm) Parse(r *engine.Reader, at any) error {
	from := r.S.Offset()
	if t, ok := at.(*time.Time); ok && r.S.Kind() != '"' { // the document does not define the notation of times
		raw, err := r.S.Raw()
		known := false
		if *t, known = engine.TimeOf(raw, time.Millisecond); err == nil && !known {
			*t, err = time.Time{}, engine.ErrMisfit
		} else if err == nil {
			r.KeepAs(raw)
		}
		return err
	}
	err := f.EmptyKept.Parse(r, at)
	if err == nil {
		keepDigits(r, at, r.S.Text()[from:r.S.Offset()])
	}
	return err
}

// keepDigits keeps a number that its field rounds.
func keepDigits(r *engine.Reader, at any, raw string) {
	if strings.IndexByte("-0123456789", raw[0]) < 0 || len(raw) <= len("0.123456") && !strings.ContainsAny(raw, "eE") {
		return // no number, or any field has it
	}
	if has, _ := (engine.Value{}).Append(nil, nil, nil, at); digits(raw) != digits(string(has)) {
		r.KeepAs(raw)
	}
}

// digits returns the significant digits of a JSON number.
func digits(number string) string {
	number, _, _ = strings.Cut(strings.ToLower(number), "e")
	return strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(number), "0")
}

// asRead appends the kept value of a member, if it has one.
func asRead(w *engine.Writer, dst []byte, m *engine.Member) ([]byte, bool) {
	raw := w.Use(m.Name)
	return append(dst, raw...), raw != ""
}

// notEmpty returns the fault of a text that must not be empty, or "".
func notEmpty(at any) string {
	if *at.(*string) == "" {
		return needed
	}
	return ""
}

const needed = "is required and must not be empty"

// A runForm is the run, which sessions may share on their lines.
type runForm struct{ engine.Form }

func (f runForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	_, starts := w.Ev.Payload.(*agentevents.SessionStarted)
	run := encoderOf(w).runs.Line(w.Ev.SessionID, *at.(*string), starts)
	return f.Form.Append(w, dst, m, &run)
}

// An actorForm is the actor, or else the agent. The decoder decides which one it is.
type actorForm struct{ engine.Form }

func (actorForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	text := cmp.Or(*at.(*string), w.Ev.AgentID)
	return jsonwire.AppendString(dst, text), text != ""
}

// A timestampForm is a time.
type timestampForm struct{}

func (timestampForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	return w.Times.Append(dst, w.Time()), true
}

func (timestampForm) Parse(r *engine.Reader, at any) (err error) {
	before := r.S
	if *at.(*time.Time), err = r.Times.Time(&r.S); err == nil {
		return nil
	}
	if text, wrong := before.String(); wrong == nil {
		if t, wrong := engine.CutTime(text); wrong == nil {
			from := r.S.Offset()
			*at.(*time.Time), r.S = t, before
			r.KeepAs(r.S.Text()[from:r.S.Offset()])
			return nil
		}
	}
	r.Break(RuleTimestamp, "is not an RFC 3339 time")
	return err
}

// A versionForm is the document's schemaVersion, which is always kept.
type versionForm struct{}

func (versionForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	if strings.HasPrefix(w.Kept(m.Name), `"`) { // readers refuse other values
		return asRead(w, dst, m)
	}
	return append(dst, `"1.0"`...), true
}

func (versionForm) Parse(r *engine.Reader, _ any) error {
	from := r.S.Offset()
	text, err := r.S.String()
	if err != nil {
		return err
	}
	if text == "" {
		r.Break(RuleEnvelope, needed)
	}
	r.KeepAs(r.S.Text()[from:r.S.Offset()])
	return nil
}

// A payloadForm is the payload. One that is not an object is kept.
type payloadForm struct{}

func (payloadForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	if _, unknown := w.Ev.Payload.(*agentevents.Unknown); unknown {
		return engine.Body.Append(w, dst, m, nil)
	}
	encoderOf(w).hide()
	mark := len(dst)
	dst, _ = engine.Body.Append(w, dst, m, nil)
	if raw := w.Key("/payload", false); raw != "" {
		if string(dst[mark:]) == "{}" {
			return append(dst[:mark], w.Key("/payload", true)...), true
		}
	}
	return dst, true
}

// noPayload stands for the payload of an unknown event without one. The line that it was read from
// had none.
func noPayload(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	if encoderOf(w).own {
		return nil
	}
	return append(dst, "{}"...)
}

func (f payloadForm) Parse(r *engine.Reader, at any) error {
	if r.Row == nil || r.S.Kind() == '{' {
		return engine.Body.Parse(r, nil)
	}
	raw, err := r.S.Raw()
	r.Kept.Add("/payload", raw)
	f.Missed(r, at)
	return err
}

// Missed reads an empty object.
func (payloadForm) Missed(r *engine.Reader, _ any) {
	if r.Row != nil {
		s := r.S
		r.S.Reset("{}")
		_ = engine.Body.Parse(r, nil) // it has no errors
		r.S = s
	}
}

// A countForm is a value of the payload that is always written, because its field is
// never absent. If a line lacks it, the decoder notes that.
type countForm struct{ exactForm }

func (f countForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if v, ok := at.(*[]string); ok && *v == nil {
		return append(dst, "[]"...), true
	}
	return f.Value.Append(w, dst, m, at)
}

func (countForm) Missed(r *engine.Reader, field any) {
	if content, ok := field.(*agentevents.JSON); ok {
		*content = "null"
	}
	at := r.Pointer()
	decoderOf(r).lacks(at[len("/payload/"):])
	if r.Row.Kind == agentevents.KindMessageCreated {
		at = "/payload/message/content"
	}
	r.Made(at, "the line lacks it")
}

// zero reports whether the value of a countForm may stand for an absent one.
func zero(at any) bool {
	switch v := at.(type) {
	case *agentevents.JSON:
		return *v == "null"
	case *[]string:
		return len(*v) == 0
	case *int, *int64, *float64, *time.Duration:
		return reflect.ValueOf(at).Elem().IsZero()
	}
	return false
}

// A keyForm is a key field of the document: a strict reader reports a value that its
// field cannot have.
type keyForm struct{ engine.Form }

func (f keyForm) Parse(r *engine.Reader, at any) error {
	err := f.Form.Parse(r, at)
	if syntax, ok := err.(*jsonwire.SyntaxError); ok {
		r.Break(RuleField, syntax.Msg) // without its place in the line
	}
	return err
}

func (f keyForm) Missed(r *engine.Reader, at any) {
	if inner, ok := f.Form.(engine.Misser); ok {
		inner.Missed(r, at)
	}
}

// An agentIDForm is the agent of an event whose actor does not name it.
type agentIDForm struct{ valueForm }

func (agentIDForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	agent := *at.(*string)
	if id := jsonwire.Text(w.Kept(m.Name)); id != "" && encoderOf(w).open.ofTwin(w.Ev, id) == agent {
		return asRead(w, dst, m)
	}
	return jsonwire.AppendString(dst, agent), agent != "" && encoderOf(w).agentInPayload
}

// A phaseForm is the phase of a type that does not name it. Without a workflow it is
// the payload's own.
type phaseForm struct{ valueForm }

func (f phaseForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if w.Ev.WorkflowID == "" || w.Ev.Phase == "" && jsonwire.Text(w.Kept(m.Name)) != "" {
		return asRead(w, dst, m)
	}
	return f.valueForm.Append(w, dst, m, at)
}

// A stepForm is a zero-based step. Negative steps, and the steps of an agent's start or end, stay
// in the payload.
type stepForm struct{ valueForm }

func (f stepForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if step := at.(*agentevents.Opt[int]); step.OK && (step.V < 0 || ofAgents(w.Row().Kind)) {
		return dst, false
	}
	return f.valueForm.Append(w, dst, m, at)
}

func (f stepForm) Parse(r *engine.Reader, at any) error {
	if r.S.Kind() == '-' || ofAgents(r.Row.Kind) {
		return engine.ErrMisfit
	}
	return f.valueForm.Parse(r, at)
}

// A marksForm is a list of the names of marks. A spelling that differs from the encoder's is kept.
type marksForm struct{ valueForm }

// markNames are the names of the marks, lowest bit first.
var markNames = [...]string{"late", "synthetic", "replayed", "redacted", "sanitized", "illegal"}

func (marksForm) Append(_ *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	set := *at.(*agentevents.Marks)
	sep := byte('[')
	for i, name := range markNames {
		if set&(1<<i) != 0 {
			dst = jsonwire.AppendString(append(dst, sep), name)
			sep = ','
		}
	}
	return append(dst, ']'), sep == ','
}

func (marksForm) Parse(r *engine.Reader, at any) error {
	var list []string
	from := r.S.Offset()
	if err := (engine.Value{}).Parse(r, &list); err != nil {
		return err
	}
	set := at.(*agentevents.Marks)
	for i, name := range markNames {
		if slices.Contains(list, name) {
			*set |= 1 << i
		}
	}
	if *set == 0 || set.String() != strings.Join(list, ",") {
		r.KeepAs(r.S.Text()[from:r.S.Offset()])
	}
	return nil
}

// A statusForm is a tool status and the line's own word for it.
type statusForm struct{ valueForm }

func (f statusForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	status, word := *at.(*string), w.Ev.Payload.(*agentevents.ToolReturned).StatusWord
	if statusOf(word) == status {
		status = cmp.Or(word, status)
	}
	return f.valueForm.Append(w, dst, m, &status)
}

func (f statusForm) Parse(r *engine.Reader, at any) error {
	err := f.valueForm.Parse(r, at)
	word := *at.(*string)
	*at.(*string) = statusOf(word)
	if p, ok := r.Ev.Payload.(*agentevents.ToolReturned); ok { // a value alone has no payload
		setStatus(p, word)
	}
	return err
}

// setStatus sets the status that a word means, and the word if it is another one.
func setStatus(p *agentevents.ToolReturned, word string) {
	p.Status, p.StatusWord = agentevents.ToolStatus(statusOf(word)), ""
	if string(p.Status) != word {
		p.StatusWord = word
	}
}

// statusOf returns the tool status that a word means, or the word if it means none.
func statusOf(word string) string {
	switch agentevents.ToolStatus(word) {
	case agentevents.ToolStatusRateLimited, agentevents.ToolStatusInterrupted: // one of several words with their meaning
		return word
	}
	return cmp.Or(string(statuses[endword.Of(word)]), word)
}

// statuses has the tool status for how a call ended.
var statuses = [...]agentevents.ToolStatus{
	endword.Succeeded: agentevents.ToolStatusOK, endword.Failed: agentevents.ToolStatusError,
	endword.Refused: agentevents.ToolStatusForbidden, endword.Cancelled: agentevents.ToolStatusCancelled,
}

// An insideForm is the member message: an object with the fields of the message, or
// the content. Without the object the fields stand beside it.
type insideForm struct{ engine.Inside }

func (f insideForm) Parse(r *engine.Reader, at any) error {
	if r.S.Kind() == '{' {
		return f.Inside.Parse(r, at)
	}
	err := r.Instead("content")
	if err == nil {
		f.Missed(r, at)
	}
	return err
}

func (insideForm) Missed(r *engine.Reader, _ any) { decoderOf(r).lacks("message") }

// outside reports that the line had the fields of the message beside the object.
func outside(w *engine.Writer) bool { return encoderOf(w).lacked("message") }

// A parentForm is the parent span of a spawned agent, which the envelope may have too.
type parentForm struct{}

func (parentForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	e := encoderOf(w)
	if e.lacked("parentSpanId") || w.Kept(m.Name) != "" { // only the envelope has the parent
		return asRead(w, dst, m)
	}
	if e.madeParent {
		return appendSpan(dst, w.Ev.RunID, w.Ev.ParentAgentID, w.Ev.ParentCallID), true
	}
	return jsonwire.AppendString(dst, w.Ev.ParentSpanID), w.Ev.ParentSpanID != ""
}

func (parentForm) Parse(r *engine.Reader, _ any) error {
	return valueForm{}.Parse(r, &decoderOf(r).parent)
}

// A tokensForm is the total of an agent's usage, which the usage may have too.
type tokensForm struct{}

func (tokensForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	if encoderOf(w).lacked("tokens") { // only the usage has them
		return asRead(w, dst, m)
	}
	tokens := tokensOf(w.Ev.Payload.(*agentevents.AgentEnded))
	return strconv.AppendInt(dst, tokens.V, 10), tokens.OK
}

func (tokensForm) Parse(r *engine.Reader, _ any) error {
	return engine.Value{}.Parse(r, &decoderOf(r).tokens)
}

// tokensOf returns the document's tokens of an agent.completed: the total of its
// usage.
func tokensOf(p *agentevents.AgentEnded) (tokens agentevents.Opt[int64]) {
	if u := &p.Usage.V; p.Usage.OK {
		tokens = agentevents.Some(u.TotalTokens.Or(u.InputTokens + u.OutputTokens))
	}
	return tokens
}

// onlyTotal reports that the usage of an agent.completed has only the total, which is
// its tokens, and that the line had no more.
func onlyTotal(w *engine.Writer) bool {
	u := &w.Ev.Payload.(*agentevents.AgentEnded).Usage
	return u.OK && u.V.TotalTokens.OK && u.V == (agentevents.Usage{TotalTokens: u.V.TotalTokens}) &&
		!strings.Contains(string(w.Ev.Extra(string(Name))), `"/payload/usage`)
}
