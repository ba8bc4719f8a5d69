package kaos

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values that the document has and the engine does not.

// A timeForm is a reading of the monotonic clock, in seconds.
type timeForm struct{}

func (timeForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	return encoderOf(w).check.clock.append(dst, w.Time()), true
}

func (timeForm) Parse(r *engine.Reader, at any) error {
	r.S.Kind() // skips blanks
	from := r.S.Offset()
	sec, ns, err := seconds(&r.S)
	if err != nil {
		return err
	}
	zero := decoderOf(r).clock
	t := time.Unix(zero.sec+sec, zero.ns+ns).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return &jsonwire.SyntaxError{Offset: from, Msg: "found a timestamp outside the years 0 to 9999"}
	}
	*at.(*time.Time) = t
	return nil
}

// A sequenceForm is the number of a line: the one that was read, or the event's own.
type sequenceForm struct{}

func (sequenceForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	n := int64(w.Ev.Sequence)
	if kept, err := strconv.ParseInt(w.Kept(m.Name), 10, 64); err == nil {
		n = kept
		w.Use(m.Name)
	} else if n < 0 {
		w.Fail(RuleRange, "/sequence", "is too large: readers take numbers up to 2^63-1")
	}
	if !w.Whole {
		encoderOf(w).number = n
	}
	return jsonwire.AppendInt(dst, n), true
}

func (sequenceForm) Parse(r *engine.Reader, _ any) (err error) {
	d := decoderOf(r)
	if d.said.sequence, err = r.S.Int(); d.said.sequence < 0 {
		r.Break(RuleRange, strconv.FormatInt(d.said.sequence, 10)+" is below 0")
	}
	return err
}

// ownRun stands for a session that the event does not have.
func ownRun(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst, w.Ev.RunID)
}

// instead returns a function that writes value for a member that the event lacks.
func instead(value string) func(*engine.Writer, []byte, *engine.Member) []byte {
	return func(_ *engine.Writer, dst []byte, _ *engine.Member) []byte { return append(dst, value...) }
}

// A lineAgent is the agent in agent_id. The line of a sub-agent names the agent that delegates to
// it there.
type lineAgent struct{ engine.Form }

func (lineAgent) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	agent, parent := w.Ev.AgentID, w.Ev.ParentAgentID
	switch w.Ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		if parent != "" || agent == "" || agent != named(jsonwire.Text(w.Kept(m.Name))) {
			agent = parent
		}
		if start := encoderOf(w).ends; agent == "" && start != nil && start.other != "" && start.other != Root &&
			start.other != encoderOf(w).name {
			agent = start.other
		}
	}
	return jsonwire.AppendString(dst, unnamed(agent)), agent != "" && agent != Root
}

// A phaseForm is a value of a recorded span that must be null in some phases.
type phaseForm struct{ engine.Form }

func (f phaseForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Form.Append(w, dst, m, at)
	p, ok := w.Ev.Payload.(*agentevents.SpanRecorded)
	if !said || w.Whole || !ok || !nullIn(p.Phase, m.Name) {
		return dst, said
	}
	return dst[:mark], false
}

// nullIn reports whether a member of a span must be null in a phase of the document.
func nullIn(phase, member string) bool {
	switch member {
	case "duration_ms":
		return phase == "start" || phase == "progress"
	case "error_type", "error_message":
		return phase != "error" && slices.Contains(phases, phase)
	}
	return false
}

const mustBeNull = "must be null in phase "

// named returns the id of the agent that a line names. One that is called as the root
// agent gets a mark, and so does one that looks like it has got it.
func named(said string) string {
	if strings.TrimRight(said, rootMark) == Root {
		return said + rootMark
	}
	return said
}

// unnamed returns the name on a line of an agent other than the root agent.
func unnamed(agent string) string {
	if said := strings.TrimSuffix(agent, rootMark); named(said) == agent {
		return said
	}
	return agent
}

// A number is a number in Python's form of floats, with an exponent below 1e-4 and from
// 1e16 on, and with a point otherwise. A duration is in milliseconds.
type number struct{ engine.Value }

func (number) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark, f := len(dst), 0.0
	dst, said := engine.Value{}.Append(w, dst, m, at)
	switch v := at.(type) {
	case *agentevents.Opt[float64]:
		f = v.V
	case *float64:
		f = *v
	}
	if abs := math.Abs(f); said && abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst[:mark], f, 'e', -1, 64), true
	}
	return pointed(dst, mark), said
}

// A free is a free object, or a list in its place. An empty one is absent.
type free struct {
	engine.Value
	empty string // as writers write it
}

var object = free{empty: "{}"}

func (f free) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if said && (len(dst) < mark+3 || dst[mark] != '{') {
		return dst, false
	}
	return dst, said
}

func (f free) Parse(r *engine.Reader, at any) error {
	switch k := r.S.Kind(); {
	case k == '{' || k == f.empty[0]:
	case f.empty == "[]":
		return r.S.Array() // the error describes the value that is not an object
	default:
		return r.S.Object()
	}
	err := f.Value.Parse(r, at)
	if raw := at.(*agentevents.JSON); string(*raw) == f.empty {
		*raw = ""
	}
	return err
}

// A pairs is a list of pairs of texts: arguments. Some producers write an object.
type pairs struct{ free }

func (pairs) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	text := string(*at.(*agentevents.JSON))
	if text == "" {
		return dst, false
	}
	text, err := jsonwire.Compact(text)
	switch {
	case err != nil:
		w.Fail(agentevents.RuleFieldJSON, w.Pointer(m), err.Error())
		return dst, false
	case text == "[]" || text == "{}":
		return dst, false
	case arePairs(text):
		return append(dst, text...), true
	}
	if text[0] != '{' {
		return append(jsonwire.AppendString(append(dst, `[["arguments",`...), text), "]]"...), true
	}
	sep := "[["
	for name, value := range jsonwire.Members(text) {
		if value[0] != '"' {
			value = jsonwire.Quote(value)
		}
		dst = append(append(jsonwire.AppendString(append(dst, sep...), name), ','), value...)
		sep = "],["
	}
	return append(dst, "]]"...), true
}

// arePairs reports whether a value is a list in which every element is a list of two
// texts.
func arePairs(value string) bool {
	if value[0] != '[' {
		return false
	}
	for pair := range jsonwire.Elements(value) {
		n := 0
		for text := range jsonwire.Elements(pair) {
			if n++; text[0] != '"' {
				return false
			}
		}
		if n != 2 {
			return false
		}
	}
	return true
}

// An aside is a member that no field has.
type aside[T any] struct {
	engine.Form
	empty string // the text of an absent value
}

func beside[T any](name string, form engine.Form, empty string) engine.Member {
	return engine.May(name, "", &aside[T]{form, empty}).Or(instead(empty))
}

func (f *aside[T]) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	kept := w.Kept(m.Name)
	if kept == "" || kept == f.empty { // as mostly
		return dst, false
	}
	var r engine.Reader
	r.S.Reset(kept)
	if f.Form.Parse(&r, new(T)) != nil {
		return dst, false
	}
	return keptMember(w, dst, m)
}

func (f *aside[T]) Parse(r *engine.Reader, _ any) error {
	if f.empty == "null" && r.S.Null() {
		return nil // as mostly
	}
	s := r.S
	if err := f.Form.Parse(r, new(T)); err != nil {
		return err
	}
	if raw, _ := s.Raw(); raw != f.empty {
		decoderOf(r).said.asides.Add(r.Name(), raw)
	}
	return nil
}

// keptMember appends the value that was read for a member that the event lacks.
func keptMember(w *engine.Writer, dst []byte, m *engine.Member) ([]byte, bool) {
	raw := w.Use(m.Name)
	return append(dst, raw...), raw != ""
}

// A questionForm is the question of a clarification.
type questionForm struct{}

func (questionForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	list, text := *at.(*[]agentevents.Question), ""
	for i := range list {
		text += "\n" + list[i].Question
	}
	return jsonwire.AppendString(dst, strings.TrimPrefix(text, "\n")), true
}

func (questionForm) Parse(r *engine.Reader, at any) error {
	text, err := r.S.String()
	*at.(*[]agentevents.Question) = []agentevents.Question{{Question: text}}
	return err
}

// An interruptForm is the id of a clarification. Without one on the line, it is the
// resume token or the run's id.
type interruptForm struct{ engine.EmptyKept }

func (interruptForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	id := *at.(*string)
	if w.Kept(m.Name) != "" && id == interruptOf(w) {
		id = ""
	}
	return jsonwire.AppendString(dst, id), true
}

// interruptOf returns the id of a clarification whose line has none.
func interruptOf(w *engine.Writer) string {
	return cmp.Or(jsonwire.Text(w.Kept("resume_token")), w.Ev.RunID)
}

// A whole is a number without sign, fraction and exponent.
type whole struct{ engine.Value }

func (f whole) Parse(r *engine.Reader, at any) error {
	if r.S.Kind() != '0' {
		return engine.ErrMisfit
	}
	return f.Value.Parse(r, at)
}

// A spanForm is the id of a span.
type spanForm struct{ engine.Form }

func (spanForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	return encoderOf(w).span.append(dst, w.Whole), true
}

// A spanName is the name of a span whose kind has none: the one that was read, or
// this prefix and an id.
type spanName string

func (f spanName) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	if strings.HasPrefix(w.Kept(m.Name), `"`) {
		return keptMember(w, dst, m)
	}
	dst = append(append(dst, '"'), f...)
	last, name := len(dst)-1, encoderOf(w).name
	if encoderOf(w).subject == "subagent" {
		name = unnamed(name)
	}
	dst = jsonwire.AppendString(dst[:last], name) // its quote overwrites the end of the prefix
	dst[last] = f[len(f)-1]
	return dst, true
}

func (spanName) Parse(r *engine.Reader, _ any) (err error) {
	decoderOf(r).said.name, err = r.S.String()
	return err
}

// errorCode stands for an error type that the event lacks: a status that the document does not
// have.
func errorCode(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	p, ok := w.Ev.Payload.(*agentevents.ToolReturned)
	if !ok || p.Status == agentevents.ToolStatusError {
		return append(dst, "null"...)
	}
	return jsonwire.AppendString(dst, string(p.Status))
}

// A callID is the id of a call. It is absent if it is the span's id.
type callID struct{ engine.Value }

func (callID) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if call := *at.(*string); encoderOf(w).span.span != call {
		return jsonwire.AppendString(dst, call), true
	}
	if raw := w.Key("/attributes/"+m.Name, false); strings.HasPrefix(raw, `"`) { // beside other attributes
		return append(dst, w.Key("/attributes/"+m.Name, true)...), true
	}
	return keptMember(w, dst, m)
}

// A wholeCall is the arguments or the request of a record of a whole call. Other
// returns have none.
type wholeCall struct{ engine.Value }

func (f wholeCall) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	switch {
	case isWhole(w.Ev):
		return f.Value.Append(w, dst, m, at)
	case encoderOf(w).known != nil:
		return keptMember(w, dst, m)
	}
	return dst, false
}

// isWhole reports whether an event is a record of a whole call.
func isWhole(ev *agentevents.Event) bool {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		return p.OneEvent
	case *agentevents.ModelReturned:
		return p.OneEvent
	}
	return false
}

// failed is whether a complete step or call has failed.
type failed struct{}

func (failed) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	return append(dst, "true"...), encoderOf(w).failed
}

func (failed) Parse(r *engine.Reader, _ any) error {
	is, err := r.S.Bool()
	if d, ok := r.Doc.(*Decoder); ok { // not for a value that was kept
		d.said.failed = is
	}
	return err
}

// A summaryForm is the summary of a result. Without one it is the beginning of the
// result's text.
type summaryForm struct{ engine.Value }

func (summaryForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	summary := *at.(*string)
	if result := w.Ev.Payload.(*agentevents.ToolReturned).Result; result != "" {
		text, _ := jsonwire.Compact(string(result))
		summary = cmp.Or(summary, summaryOf(text))
	}
	return jsonwire.AppendString(dst, summary), summary != ""
}

// maxSummary is the length in bytes of a summary that the encoder makes up.
const maxSummary = 200

// summaryOf returns the summary that the encoder makes up for a result: the
// beginning of its text. The result is JSON without blanks.
func summaryOf(result string) string {
	if strings.HasPrefix(result, `"`) {
		result = jsonwire.Text(result)
	}
	n := min(maxSummary, len(result))
	for n < len(result) && !utf8.RuneStart(result[n]) {
		n--
	}
	return result[:n]
}

// An agentName is the name of a sub-agent.
type agentName struct{}

func (agentName) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	name := encoderOf(w).name
	if raw := w.Kept(m.Name); raw != "" && (name == "" || name == named(jsonwire.Text(raw))) {
		return keptMember(w, dst, m)
	}
	return jsonwire.AppendString(dst, unnamed(name)), name != ""
}

func (agentName) Parse(r *engine.Reader, _ any) error {
	d := decoderOf(r)
	err := engine.Value{}.Parse(r, &d.said.agent)
	d.said.agent = named(d.said.agent)
	return err
}

// A spent is a figure of the usage of a model call, which readers keep.
type spent struct{}

func (spent) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	p := w.Ev.Payload.(*agentevents.ModelReturned)
	usage, cost := p.Usage, p.CostUSD
	said, n := usage.OK, usage.V.TotalTokens.Or(usage.V.InputTokens+usage.V.OutputTokens)
	switch m.Name {
	case "input_tokens":
		n = usage.V.InputTokens
	case "output_tokens":
		n = usage.V.OutputTokens
	case "cost_usd":
		said = cost.OK
	}
	if !said {
		return keptMember(w, dst, m)
	}
	w.Use(m.Name) // the event's own figure is in its place
	if m.Name == "cost_usd" {
		return number{}.Append(w, dst, m, &cost)
	}
	return jsonwire.AppendInt(dst, n), true
}

// A statedForm is the number of tokens that the end of a sub-agent states. Where the end states
// none, the number from its usage is written.
type statedForm struct{ engine.Form }

func (f statedForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	usage := w.Ev.Payload.(*agentevents.AgentEnded).Usage
	if at.(*agentevents.Opt[int64]).OK {
		return f.Form.Append(w, dst, m, at)
	}
	if !usage.OK {
		return keptMember(w, dst, m)
	}
	w.Use(m.Name) // the figure of the usage is in its place
	return jsonwire.AppendInt(dst, usage.V.TotalTokens.Or(usage.V.InputTokens+usage.V.OutputTokens)), true
}

func (spent) Parse(*engine.Reader, any) error { return engine.ErrMisfit }
