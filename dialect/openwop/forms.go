package openwop

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values. Those that depend on the profile have it as p.

// made returns a function that makes up a text.
func made(text string) absent { return madeOf(func(*Encoder) string { return text }) }

// madeOf returns a function that makes up a text, in the form of the member.
func madeOf(text func(e *Encoder) string) absent {
	return func(w *engine.Writer, dst []byte, m *engine.Member) []byte {
		return appendMended(w, dst, m, text(encoderOf(w)))
	}
}

func appendMended(w *engine.Writer, dst []byte, m *engine.Member, s string) []byte {
	if f, ok := m.Form.(mender); ok {
		s = f.mended(w, m, s)
	}
	return jsonwire.AppendString(dst, s)
}

// madeAgent stands for an agent without an id: the name of its node, if an execution of
// that identifies it.
func madeAgent(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	if w.Ev.NodeRunID == "" {
		return made(CoreSystem)(w, dst, m)
	}
	return appendMended(w, dst, m, encoderOf(w).names.Of(w.Ev))
}

// madeJSON returns a function that makes up a value.
func madeJSON(raw string) absent {
	return func(_ *engine.Writer, dst []byte, _ *engine.Member) []byte { return append(dst, raw...) }
}

var empty = madeJSON(`""`)

// ofEvent returns the id of the event, for a call or an interrupt without an id.
func ofEvent(e *Encoder) string { return e.eventID }

// demand returns the schema of the member that is written, or nil.
func demand(w *engine.Writer, m *engine.Member) *facts.Schema {
	e := encoderOf(w)
	of, _, _ := e.row.object(e.p, w.At()).Member(m.Name)
	return of.Whole()
}

// A mender is a form that writes only texts of a certain form.
type mender interface {
	mended(w *engine.Writer, m *engine.Member, text string) string
}

// idForm is an id. One that does not have the profile's form is normalised.
func idForm(p Profile, form IDForm) textForm {
	f := textForm{spell: true}
	if p != RFC0002 {
		f.mend = normalizing(form)
	}
	return f
}

func normalizing(form IDForm) func(w *engine.Writer, m *engine.Member, id string) string {
	return func(w *engine.Writer, _ *engine.Member, id string) string { return normalized(w, form, id) }
}

// normalized returns an id in the form of the profile. The schemas' forms of an agent's id differ
// by place, but an agent has one id everywhere. It has the form of a handoff, which is legal in
// every place. Lines of SchemaV2 keep a shorter id in places that allow it.
func normalized(w *engine.Writer, form IDForm, id string) string {
	e := encoderOf(w)
	if form == AgentID && (len(id) > 2 || !ofV2(w)) {
		form = HandoffID
	}
	return NormalizeID(e.p, form, id)
}

// says returns the form of an id whose value on the line may differ from the event's.
func (f textForm) says(say func(w *engine.Writer, m *engine.Member, id string) string) textForm {
	f.say = say
	return f
}

// ownID is the id of the event, or one that is made up.
func ownID(w *engine.Writer, _ *engine.Member, _ string) string { return encoderOf(w).eventID }

// ownNode is the node of the event, unless the line had it only in its payload.
func ownNode(w *engine.Writer, _ *engine.Member, _ string) string {
	e := encoderOf(w)
	if slices.Contains(e.k.absent, "/nodeId") && e.payloadNode() {
		return ""
	}
	return e.nodeID
}

// cause is the cause of the event. For a return it is the event of its call, if the
// log has it.
func cause(w *engine.Writer, _ *engine.Member, id string) string {
	e := encoderOf(w)
	p, ok := w.Ev.Payload.(*agentevents.ToolReturned)
	if !ok || w.Whole {
		return id
	}
	if call, open := e.calls.Get(e.callOf(w.Ev, p.CallID)); open {
		return call.eventID
	}
	return id
}

// calledTool is the tool of a return: its call has it, if the log has the call.
func calledTool(w *engine.Writer, _ *engine.Member, id string) string {
	e := encoderOf(w)
	p, ok := w.Ev.Payload.(*agentevents.ToolReturned)
	if !ok || w.Whole {
		return id
	}
	call, open := e.calls.Get(e.callOf(w.Ev, p.CallID))
	if !open || call.toolID == id || call.toolID == "" || own(w.Ev, w.Type()) {
		return id
	}
	return call.toolID
}

// A textForm is a text.
type textForm struct {
	engine.Value
	spell bool // the decoder notes an empty one: the field cannot tell it from an absent one
	// say returns the line's text for a text of the event, or "". mend returns a text in the form
	// of the profile, or "". Both may be nil.
	say, mend func(w *engine.Writer, m *engine.Member, text string) string
}

var text = textForm{spell: true}

func (f textForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	if f.say != nil {
		v = f.say(w, m, v)
	}
	if v = f.mended(w, m, v); v == "" {
		return dst, false
	}
	return jsonwire.AppendString(dst, v), true
}

func (f textForm) mended(w *engine.Writer, m *engine.Member, text string) string {
	if f.mend == nil || text == "" {
		return text
	}
	return f.mend(w, m, text)
}

func (f textForm) Parse(r *engine.Reader, at any) error {
	err := f.Value.Parse(r, at)
	if err == nil && f.spell && *at.(*string) == "" {
		decoderOf(r).spell(r)
	}
	return err
}

// wordForm is an optional word. The schemas allow only the words of a list.
func wordForm(p Profile) engine.Form {
	f := text
	if p != RFC0002 {
		f.mend = func(w *engine.Writer, m *engine.Member, text string) string {
			if !slices.Contains(demand(w, m).Words, text) {
				return ""
			}
			return text
		}
	}
	return f
}

// shortForm is a text of limited length under SchemaV2.
func shortForm(p Profile) engine.Form {
	if p != SchemaV2 {
		return text
	}
	return textForm{spell: true, mend: func(w *engine.Writer, m *engine.Member, text string) string {
		return text[:jsonwire.FirstCharacters(text, demand(w, m).High)]
	}}
}

// jsonObject is raw JSON that must be an object under the schemas.
func jsonObject(p Profile) engine.Form {
	if p == RFC0002 {
		return engine.Value{}
	}
	return objectForm{}
}

type objectForm struct{ engine.Value }

func (f objectForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := f.Value.Append(w, dst, m, at)
	if said && dst[mark] != '{' {
		dst = append(slices.Insert(dst, mark, []byte(`{"value":`)...), '}')
	}
	return dst, said
}

// countFrom is a whole number that must not be below low.
func countFrom(low int) engine.Form { return engine.AtLeast(RuleRange, engine.Whole{}, low) }

// sequence reads a whole number from 0. 3.0 is one too.
func sequence(s *jsonwire.Scanner) (uint64, error) {
	n, err := s.Uint()
	if err != nil {
		if whole, odd := jsonwire.Whole[int64](s); odd == nil && whole >= 0 {
			return uint64(whole), nil
		}
	}
	return n, err
}

// millis is a duration in whole milliseconds.
var millis = engine.AtLeast(RuleRange, millisForm{}, 0)

type millisForm struct{ engine.Value }

func (f millisForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if w.Whole {
		return f.Value.Append(w, dst, m, at)
	}
	v := at.(*agentevents.Opt[time.Duration])
	return jsonwire.AppendInt(dst, v.V.Milliseconds()), v.OK
}

// neverBegan reports whether a return has no duration: under the schemas, if the call
// never began.
func neverBegan(w *engine.Writer) bool {
	return encoderOf(w).p != RFC0002 && refused(w.Ev.Payload.(*agentevents.ToolReturned).Status)
}

// A statusForm is the status of a return, if it is more precise than the error.
type statusForm struct{ textForm }

func (statusForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	derived := derivedStatus(w.Ev.Payload.(*agentevents.ToolReturned))
	status := agentevents.ToolStatus(*at.(*string))
	switch {
	case status == "":
		status = derived
	case status == agentevents.ToolStatusOK && derived != status:
		status = derived
	case status == agentevents.ToolStatusCancelled, status == agentevents.ToolStatusInterrupted,
		encoderOf(w).p != RFC0002 && !slices.Contains(demand(w, m).Words, string(status)):
		status = agentevents.ToolStatusError
	}
	return jsonwire.AppendString(dst, string(status)), status != derived || encoderOf(w).spelled(w, m)
}

// derivedStatus is the status that a return has without the word.
func derivedStatus(p *agentevents.ToolReturned) agentevents.ToolStatus {
	if p.Error.OK {
		return agentevents.ToolStatusError
	}
	return agentevents.ToolStatusOK
}

// refused reports whether the call of a return with the status never began.
func refused(status agentevents.ToolStatus) bool {
	return status == agentevents.ToolStatusForbidden || status == agentevents.ToolStatusRateLimited
}

// failed reports whether a return has an error, which takes the place of the result.
func failed(w *engine.Writer) bool { return w.Ev.Payload.(*agentevents.ToolReturned).Error.OK }

// madeArguments stands for arguments. The RFC wants them unless there is a hash.
func madeArguments(w *engine.Writer, dst []byte, m *engine.Member) []byte {
	e := encoderOf(w)
	if e.p != RFC0002 || w.Ev.Payload.(*agentevents.ToolCalled).ArgsHash != "" {
		return dst
	}
	return madeJSON("null")(w, dst, m)
}

// counted stands for the index of a delta.
func counted(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendInt(dst, int64(encoderOf(w).indexOf(w.Ev, w.Ev.Payload.(*agentevents.AgentReasoningDelta)).next))
}

// An indexForm is the index of a delta.
type indexForm struct{ engine.Form }

func (f indexForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	p := w.Ev.Payload.(*agentevents.AgentReasoningDelta)
	shift := encoderOf(w).indexOf(w.Ev, p).shift
	if w.Whole || shift == 0 || !p.Index.OK || own(w.Ev, w.Type()) {
		return f.Form.Append(w, dst, m, at)
	}
	return jsonwire.AppendInt(dst, int64(p.Index.V+shift)), true
}

// madeWorkflow stands for the workflow of a run.
func madeWorkflow(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	return jsonwire.AppendString(dst,
		normalized(w, WorkflowID, cmp.Or(w.Ev.Payload.(*agentevents.RunStarted).Name, "unknown")))
}

// errorObject is an error. Its code has two names: code, and in the ErrorEnvelope, which
// the RFC has for the error of a tool, error. Readers take both. A line of the RFC keeps
// the name that it has.
func errorObject(p Profile, envelope bool) engine.Form {
	code, message := errorText{textForm{spell: true}}, errorText{}
	silence := empty
	if p != RFC0002 { // the message must not be empty
		silence = madeOf(func(e *Encoder) string { return cmp.Or(errorOf(e.w.Ev.Payload).Code, unknownError) })
	}
	name, other := "code", "error"
	if envelope {
		name, other = other, name
	}
	word := engine.Need(name, "code", code).As(other).Or(made(unknownError))
	word.Loose = true
	return engine.Object(word, engine.Need("message", "message", message).Or(silence),
		engine.May("details", "details", jsonObject(p)),
		engine.Member{Name: "retryable", Fields: "retryable", Loose: p == RFC0002})
}

// An errorText is the code or the message of an error.
type errorText struct{ textForm }

// Missed notes that the error lacks it, by any name.
func (errorText) Missed(r *engine.Reader, _ any) {
	d := decoderOf(r)
	d.absent = append(d.absent, r.Pointer())
}

const unknownError = "error"

// errorOf returns the error of a payload that has one.
func errorOf(p agentevents.Payload) *agentevents.ErrorInfo {
	switch p := p.(type) {
	case *agentevents.ToolReturned:
		return &p.Error.V
	case *agentevents.NodeFailed:
		return &p.Error
	}
	return &p.(*agentevents.RunFailed).Error.V
}

// noError reports whether the line of a failed node has no error.
func noError(w *engine.Writer) bool {
	e := encoderOf(w)
	return e.p == RFC0002 && slices.Contains(e.k.absent, "/payload/error") &&
		*errorOf(w.Ev.Payload) == (agentevents.ErrorInfo{})
}

// A refForm is an AgentRef. It keeps its extra members itself.
type refForm struct{ p Profile }

func (f refForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	v := *at.(*agentevents.AgentRef)
	e := encoderOf(w)
	if v.AgentID == "" && m.Need {
		if e.lacked(w, m) {
			return dst, false
		}
		v.AgentID = CoreSystem
		if m.Name == "from" {
			v.AgentID = handing(e)
		}
	}
	v.AgentID = e.agentID(w, v.AgentID)
	if w.Ev.PayloadExtra() {
		raw, _ := v.MarshalJSON() // never fails
		return append(dst, raw...), true
	}
	dst = jsonwire.AppendString(append(dst, `{"agentId":`...), v.AgentID)
	for _, more := range [...]struct{ name, text string }{
		{`,"agentSharing":`, string(v.AgentSharing)}, {`,"memoryRef":`, v.MemoryRef}, {`,"modelClass":`, string(v.ModelClass)},
	} {
		if more.text != "" {
			dst = jsonwire.AppendString(append(dst, more.name...), more.text)
		}
	}
	return append(dst, '}'), true
}

func (f refForm) Parse(r *engine.Reader, at any) error {
	return agentRef(&r.S, at.(*agentevents.AgentRef))
}

// agentRef reads an AgentRef. One with extra members or empty texts reads itself.
func agentRef(s *jsonwire.Scanner, ref *agentevents.AgentRef) error {
	start := *s
	var read agentevents.AgentRef
	if !plainRef(s, &read) {
		*s = start
		raw, err := s.Raw()
		if err != nil {
			return err
		}
		if read = (agentevents.AgentRef{}); raw[0] != '{' {
			return &jsonwire.SyntaxError{Offset: start.Offset(), Msg: "found a value that is not an object, expected an object"}
		} else if err := read.UnmarshalJSON([]byte(raw)); err != nil {
			return &jsonwire.SyntaxError{Offset: start.Offset(), Msg: err.Error()}
		}
	}
	*ref = read
	return nil
}

// plainRef reads an AgentRef of texts that are not empty. It reports false for any
// other.
func plainRef(s *jsonwire.Scanner, ref *agentevents.AgentRef) bool {
	fields := [...]*string{&ref.AgentID, (*string)(&ref.AgentSharing), &ref.MemoryRef, (*string)(&ref.ModelClass)}
	if s.Kind() != '{' || s.Object() != nil {
		return false
	}
	for {
		name, more, err := s.Member()
		i := slices.Index(refNames, name)
		switch {
		case err != nil, more && i < 0, more && *fields[max(i, 0)] != "":
			return false
		case !more:
			return ref.AgentID != ""
		}
		if *fields[i], err = s.String(); err != nil || *fields[i] == "" {
			return false
		}
	}
}

var refNames = []string{"agentId", "agentSharing", "memoryRef", "modelClass"}

// handing returns the agent that hands over, for a handoff that does not name it.
func handing(e *Encoder) string { return cmp.Or(e.w.Ev.AgentID, CoreSystem) }

// A handsOver is the acting agent of a handoff. The line names it apart only if
// another agent hands over.
type handsOver struct{ engine.Value }

func (handsOver) AppendMembers(w *engine.Writer, dst []byte) []byte {
	e, id, from := encoderOf(w), w.Ev.AgentID, w.Ev.Payload.(*agentevents.AgentHandoff).From.AgentID
	nobody := from == "" && e.p == RFC0002 && slices.Contains(e.k.absent, "/payload/from")
	open := e.p != SchemaV2
	switch who := cmp.Or(from, id, CoreSystem); {
	case id == "", id != who && !open:
	case nobody, id != who:
		return jsonwire.AppendString(append(dst, `,"agentId":`...), normalized(w, AgentID, id))
	}
	return dst
}

// An apart is a text that the event has elsewhere, or not at all. A different text of the line is
// kept.
type apart struct {
	read func(d *Decoder) *string // where the decoder remembers it
	own  func(w *engine.Writer, dst []byte) []byte
}

func (f apart) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	kept := w.Kept(m.Name)
	if isText(kept) && (encoderOf(w).p == RFC0002 || demand(w, m).Fits(kept)) {
		w.Use(m.Name)
		return append(dst, kept...), true
	}
	own := f.own(w, dst)
	return own, len(own) > len(dst)
}

func (f apart) Parse(r *engine.Reader, _ any) error {
	return engine.Value{}.Parse(r, f.read(decoderOf(r)))
}

// nodeForm is the node in a payload. It also stands in the envelope.
var nodeForm = apart{func(d *Decoder) *string { return &d.node }, func(w *engine.Writer, dst []byte) []byte {
	id := encoderOf(w).nodeID
	if id == "" {
		return dst
	}
	return jsonwire.AppendString(dst, normalized(w, NodeID, id))
}}

// A timeForm is the time of the event.
type timeForm struct{}

func (timeForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if !agentevents.TimeKnown(*at.(*time.Time)) && encoderOf(w).lacked(w, m) {
		return dst, false
	}
	return w.Times.Append(dst, w.Time()), true
}

func (timeForm) Parse(r *engine.Reader, at any) (err error) {
	start := r.S
	if *at.(*time.Time), err = r.Times.Time(&r.S); err == nil {
		return nil
	}
	if s, ok := upperTime(start); ok {
		if t, upper := s.Time(); upper == nil {
			*at.(*time.Time), r.S = t, start
			return r.S.Skip()
		}
	}
	return err
}

// upperTime returns a scanner of the text that s reads next, with the letters of a time in
// upper case: RFC 3339 allows both cases. It reports false for another value.
func upperTime(s jsonwire.Scanner) (upper jsonwire.Scanner, ok bool) {
	text, err := s.String()
	if err != nil || !strings.ContainsAny(text, "tz") {
		return s, false
	}
	upper.Reset(jsonwire.Quote(strings.ToUpper(text)))
	return upper, true
}

// A sequenceForm is the number of the event. A call that is one event takes two
// numbers.
type sequenceForm struct{}

func (sequenceForm) Append(w *engine.Writer, dst []byte, _ *engine.Member, at any) ([]byte, bool) {
	e := encoderOf(w)
	shift, _ := e.shift.Use(w.Ev.RunID)
	if e.returned {
		shift++
	}
	if w.Whole {
		shift = 0
	}
	return jsonwire.AppendUint(dst, *at.(*uint64)+shift), true
}

func (sequenceForm) Parse(r *engine.Reader, at any) (err error) {
	*at.(*uint64), err = sequence(&r.S)
	return err
}

// A versionForm is schemaVersion, a number, or engineVersion, which may be a text.
type versionForm struct {
	keptForm
	engine bool
}

func (f versionForm) Parse(r *engine.Reader, at any) error {
	s := r.S
	if k := s.Kind(); k != '0' && (k != '"' || !f.engine) {
		_, err := r.S.Uint()
		return err
	}
	if !f.engine {
		decoderOf(r).version, _ = s.Raw() // Parse finds the error
	}
	return f.keptForm.Parse(r, at)
}
