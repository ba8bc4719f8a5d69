package kahn

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values that the document has and the engine does not.

// A timeForm is a time in UTC with milliseconds.
type timeForm struct{}

func (timeForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	t := w.Time()
	if t.Nanosecond()%1e6 != 0 && !w.Whole {
		t = t.Truncate(time.Millisecond)
	}
	return w.Times.Append(dst, t), true
}

func (timeForm) Parse(r *engine.Reader, at any) (err error) {
	from := r.S.Offset()
	if *at.(*time.Time), err = r.Times.Time(&r.S); err != nil {
		return err
	}
	const example = `"2026-05-05T09:00:00.000Z"`
	if r.S.Offset()-from != len(example) { // no other form has as many characters
		r.Break(RuleTime, "is not a time in UTC with milliseconds, such as 2026-05-05T09:00:00.000Z")
	}
	return nil
}

func (timeForm) Schema() map[string]any {
	return map[string]any{"type": "string", "format": "date-time", "pattern": PatternTime}
}

// An id is an id of the document's form. Others are normalised.
type id struct{ p *pattern }

func (f id) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	return append(f.p.append(append(dst, '"'), v), '"'), v != ""
}

func (f id) Parse(r *engine.Reader, at any) error {
	err := engine.Value{}.Parse(r, at)
	if v := *at.(*string); err == nil && r.Strict && !f.p.matches(v) {
		r.Break(RuleID, jsonwire.Brief(v)+" does not match "+f.p.syntax)
	}
	return err
}

// madeID stands for an id that the event does not have.
func madeID(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	return append(m.Form.(id).p.append(append(dst, '"'), ""), '"')
}

// madeAgent is madeID that takes the node of the event for its agent.
func madeAgent(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	agent := encoderOf(w).names.Of(w.Ev)
	if agent == "" {
		return madeID(w, dst, m)
	}
	return append(agentPattern.append(append(dst, '"'), agent), '"')
}

// promptAsTask stands for the task of an agent: its prompt, if that is a text.
func promptAsTask(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	prompt := jsonwire.Text(string(w.Ev.Payload.(*agentevents.AgentStarted).Prompt))
	return jsonwire.AppendString(dst, prompt)
}

// An auditedForm is an agent, or null when the run is audited.
type auditedForm struct{ id }

func (f auditedForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if dst, said := f.id.Append(w, dst, m, at); said {
		return dst, true
	}
	return append(dst, "null"...), true
}

func (f auditedForm) Parse(r *engine.Reader, at any) error {
	if r.S.Null() {
		return nil
	}
	err := f.id.Parse(r, at)
	if *at.(*string) == "" {
		r.KeepAs(`""`)
	}
	return err
}

// An idOfOther is the agent of a line of another type, if the member is the id of an agent there.
type idOfOther struct{ id }

func (f idOfOther) Parse(r *engine.Reader, at any) error {
	if strings.HasPrefix(r.S.Rest(), `""`) {
		return engine.ErrMisfit
	}
	return f.id.Parse(r, at)
}

// A stepOfOther is the same for the step.
type stepOfOther struct{ engine.Value }

func (stepOfOther) Parse(r *engine.Reader, at any) error {
	n, err := r.S.SmallInt()
	if err != nil || n < 0 {
		return engine.ErrMisfit
	}
	*at.(*agentevents.Opt[int]) = agentevents.Some(n)
	return nil
}

// madeStep makes up the step of an event without one.
func madeStep(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendInt(dst, int64(encoderOf(w).a.at(w.Ev)))
}

// A secondsForm is a duration in seconds, always with a point: 65.0, 0.04.
type secondsForm struct{}

func (secondsForm) Append(_ *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	switch v := at.(type) {
	case *time.Duration:
		return appendSeconds(dst, *v), true
	case *agentevents.Opt[time.Duration]:
		return appendSeconds(dst, v.V), v.OK
	}
	return dst, false
}

func (secondsForm) Parse(r *engine.Reader, at any) error {
	d, err := r.S.Seconds()
	switch v := at.(type) {
	case *time.Duration:
		*v = d
	case *agentevents.Opt[time.Duration]:
		*v = agentevents.Some(d)
	}
	return err
}

func appendSeconds(dst []byte, d time.Duration) []byte {
	u := uint64(d) // one below 0 is refused
	dst = append(jsonwire.AppendUint(dst, u/1e9), '.')
	if frac := u % 1e9; frac != 0 {
		return jsonwire.AppendFraction(dst, frac, 9)
	}
	return append(dst, '0')
}

// sinceCall and sinceStart make up the durations of events without one.
func sinceCall(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	if call := encoderOf(w).calls.Joined(w.Ev); call != nil && agentevents.TimeKnown(call.Time) &&
		agentevents.TimeKnown(w.Ev.Time) {
		return appendSeconds(dst, max(0, w.Ev.Time.Sub(call.Time)))
	}
	return append(dst, "0.0"...)
}

func sinceStart(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	if at := encoderOf(w).a.started; agentevents.TimeKnown(at) && agentevents.TimeKnown(w.Ev.Time) {
		return appendSeconds(dst, max(0, w.Ev.Time.Sub(at)))
	}
	return append(dst, "0.0"...)
}

// A floatForm is a number with a point.
type floatForm struct{ engine.Value }

func (f floatForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if !bytes.ContainsAny(dst[mark:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst, said
}

// An okForm is the status of a call, as far as the document knows it. The line is
// the call and its return.
type okForm struct{}

func (okForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	return strconv.AppendBool(dst, agentevents.ToolStatus(*at.(*string)) == agentevents.ToolStatusOK), true
}

func (okForm) Parse(r *engine.Reader, at any) error {
	ok, err := r.S.Bool()
	*at.(*string) = string(agentevents.ToolStatusError)
	if ok {
		*at.(*string) = string(agentevents.ToolStatusOK)
	}
	return err
}

func (okForm) Schema() map[string]any { return map[string]any{"type": "boolean"} }

// A summaryForm is a text of at most max characters. An event that has only the whole
// value has it as the summary: a text as it is, any other value as JSON, and null not at all.
type summaryForm struct {
	engine.EmptyKept
	value func(w *engine.Writer) (text string, value agentevents.JSON)
	max   int
}

func (f summaryForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, _ any) ([]byte, bool) {
	text, value := f.value(w)
	if text == "" && value != "" {
		text = asText(value)
	}
	if len(text) > f.max && !w.Whole {
		text = text[:jsonwire.FirstCharacters(text, f.max)]
	}
	return jsonwire.AppendString(dst, text), text != ""
}

// asText returns a value as a person reads it.
func asText(value agentevents.JSON) string {
	if value[0] == '"' || value == "null" {
		return jsonwire.Text(string(value))
	}
	return string(value)
}

// cut is the detail of a summary that was too long.
var cut = "cut to " + strconv.Itoa(MaxSummary) + " characters"

func (f summaryForm) Parse(r *engine.Reader, at any) error {
	err := f.EmptyKept.Parse(r, at)
	if text := *at.(*string); r.Strict && len(text) > f.max {
		if n := utf8.RuneCountInString(text); n > f.max {
			r.Break(RuleSummary, "has "+strconv.Itoa(n)+" characters, the limit is "+strconv.Itoa(MaxSummary))
		}
	}
	return err
}

func (f summaryForm) Schema() map[string]any {
	schema := map[string]any{"type": "string"}
	if f.max == MaxSummary {
		schema["maxLength"] = f.max
	}
	return schema
}

// inputOf returns the arguments of a return: the arguments of its call, if the call is known.
func inputOf(w *engine.Writer) (string, agentevents.JSON) {
	p := w.Ev.Payload.(*agentevents.ToolReturned)
	call := encoderOf(w).calls.Joined(w.Ev)
	if call == nil {
		return p.ArgumentsSummary, p.Arguments
	}
	called := call.Payload.(*agentevents.ToolCalled)
	return called.ArgumentsSummary, called.Arguments
}

func outputOf(w *engine.Writer) (string, agentevents.JSON) {
	p := w.Ev.Payload.(*agentevents.ToolReturned)
	return p.ResultSummary, p.Result
}

// An objectForm is an object.
type objectForm struct{ engine.Value }

func (f objectForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if len(dst) > mark && dst[mark] != '{' {
		return dst, false
	}
	return dst, said
}

func (f objectForm) Parse(r *engine.Reader, at any) error {
	if r.S.Kind() != '{' {
		return &jsonwire.SyntaxError{Offset: r.S.Offset(), Msg: "found a value that is not an object, expected an object"}
	}
	return f.Value.Parse(r, at)
}

func (objectForm) Schema() map[string]any { return map[string]any{"type": "object"} }

// madeOutcome makes up the outcome of an event without one.
func madeOutcome(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	outcome := agentevents.OutcomeConverged
	switch engine.Ending(w.Ev.Payload.(*agentevents.AgentEnded)) {
	case endword.Failed, endword.Refused, endword.Cancelled:
		outcome = agentevents.OutcomeAborted
	case endword.Partial:
		outcome = agentevents.OutcomePartial
	}
	if encoderOf(w).a.failed {
		outcome = agentevents.OutcomeAborted
	}
	return jsonwire.AppendString(dst, string(outcome))
}

// A totalForm is one of the totals of an end.
type totalForm struct{ engine.Whole }

func (f totalForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	n := *at.(*int)
	a := encoderOf(w).a
	switch m.Name {
	case "total_steps":
		n = a.own.Raised(n, &a.read)
	case "total_tool_calls":
		if short := a.totals.ToolCalls - n; short > 0 && short <= a.refused {
			n += short
		}
	}
	return jsonwire.AppendInt(dst, int64(n)), true
}

// madeTotal makes up a total of an event without totals: the total of its line, if the line had
// only some totals, or the encoder's count.
func madeTotal(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	raw := w.Kept(m.Name)
	if n, _ := strconv.Atoi(raw); strconv.Itoa(n) == raw {
		at := "/" + string(Name) + "/" + m.Name
		if n < 0 {
			w.Break(RuleRange, at, "is below 0")
		}
		return append(dst, raw...)
	}
	a := encoderOf(w).a
	t := a.totals
	t.Steps = a.read.N
	return jsonwire.AppendInt(dst, int64(totalIn(&t, m.Name)))
}

// totals are the names of the totals of an end.
var totals = []string{"total_steps", "total_tool_calls", "total_audit_checkpoints", "audits_passed", "audits_failed"}

// totalIn returns the total of that name.
func totalIn(t *agentevents.Totals, name string) int {
	return [...]int{t.Steps, t.ToolCalls, t.AuditCheckpoints, t.AuditsPassed, t.AuditsFailed}[slices.Index(totals, name)]
}
