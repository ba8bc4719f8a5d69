package openwop

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The forms of values. Those that depend on the profile have it as p.

// made returns a function that makes up a text.
func made(text string) absent { return madeOf(func(*Encoder) string { return text }) }

// madeOf returns a function that makes up a text, in the form of the member.
func madeOf(text func(e *Encoder) string) absent {
	return func(w *wire.Writer, dst []byte, m *wire.Member) []byte {
		s := text(encoderOf(w))
		w.Lose(dialect.Made, w.Pointer(m), s)
		if f, ok := m.Form.(interface{ id() idForm }); ok {
			return f.id().append(w, dst, w.Pointer(m), s)
		}
		return jsonwire.AppendString(dst, s)
	}
}

// madeJSON returns a function that makes up a value.
func madeJSON(raw string) absent {
	return func(w *wire.Writer, dst []byte, m *wire.Member) []byte {
		w.Lose(dialect.Made, w.Pointer(m), raw)
		return append(dst, raw...)
	}
}

// empty writes an empty text. The reader of it knows no more and no less.
func empty(_ *wire.Writer, dst []byte, _ *wire.Member) []byte { return append(dst, `""`...) }

// ofEvent returns the id of the event, for a call or an interrupt without an id.
func ofEvent(e *Encoder) string { return e.eventID }

// An idForm is an id. One that does not have the profile's form is normalised.
type idForm struct {
	p    Profile
	form IDForm
}

func (f idForm) id() idForm { return f }

func (f idForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	if v == "" {
		return dst, false
	}
	return f.append(w, dst, w.Pointer(m), v), true
}

func (f idForm) append(w *wire.Writer, dst []byte, pointer, id string) []byte {
	if f.p != RFC0002 {
		form := f.form
		if form == AgentID {
			form = encoderOf(w).agentForm(w, id)
		}
		if n := NormalizeID(f.p, form, id); n != id {
			w.Lose(dialect.Altered, pointer, "the profile has another form for ids")
			id = n
		}
	}
	return jsonwire.AppendString(dst, id)
}

// Parse reads the id. An empty agent, workflow or type is an absent one, so the
// decoder notes that it is there.
func (f idForm) Parse(r *wire.Reader, at any) error {
	v := at.(*string)
	err := wire.Value{}.Parse(r, v)
	if err == nil && *v == "" && (f.form == AgentID || f.form == WorkflowID || f.form == TypeID) {
		decoderOf(r).spell(r)
	}
	if err == nil && r.Strict && !(f.form == InterruptID && f.p != SchemaV2) && !ValidID(f.p, f.form, *v) {
		r.Break(RuleID, badID(*v))
	}
	return err
}

// An eventID is the id of the event, or one that is made up.
type eventID struct{ idForm }

func (f eventID) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if *at.(*string) == "" {
		w.Lose(dialect.Made, "/id", "")
	}
	return f.append(w, dst, "/id", encoderOf(w).eventID), true
}

func madeRun(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	w.Lose(dialect.Made, "/runId", unknownRun)
	return m.Form.(idForm).append(w, dst, "/runId", unknownRun)
}

// A textForm is a text.
type textForm struct {
	wire.Value
	spell bool             // the decoder notes an empty one: the field cannot tell it from an absent one
	rule  agentevents.Rule // that an empty one breaks, if any
	fill  bool             // an empty one is made up, even if the line had it
}

var (
	text  = textForm{spell: true}
	plain = textForm{spell: true, rule: RuleID}
)

func (f textForm) Parse(r *wire.Reader, at any) error {
	err := f.Value.Parse(r, at)
	if v, ok := at.(*string); err == nil && ok && *v == "" {
		if f.spell {
			decoderOf(r).spell(r)
		}
		if f.rule != "" {
			r.Break(f.rule, "is empty")
		}
	}
	return err
}

func (f textForm) neverEmpty() bool { return f.fill }

// A textID is an interrupt that its line need not name.
type textID struct{ p Profile }

func (textID) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if encoderOf(w).lacked(w, m) {
		return dst, false // the decoder has made it up
	}
	return wire.Value{}.Append(w, dst, m, at)
}

func (f textID) Parse(r *wire.Reader, at any) error { return idForm{f.p, InterruptID}.Parse(r, at) }

// A wordForm is an optional word. The schemas allow only those of a list.
type wordForm struct {
	p     Profile
	words []string
}

func (f wordForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	if v != "" && f.p != RFC0002 && !slices.Contains(f.words, v) {
		w.Lose(dialect.Dropped, w.Pointer(m), "not one of the schema's words")
		return dst, false
	}
	return jsonwire.AppendString(dst, v), v != ""
}

func (f wordForm) Parse(r *wire.Reader, at any) error {
	err := text.Parse(r, at)
	if v := *at.(*string); err == nil && r.Strict && !slices.Contains(f.words, v) {
		r.Break(RuleEnum, unlisted(v, f.words))
	}
	return err
}

func (f wordForm) neverEmpty() bool { return f.p != RFC0002 }

// A wordOf is a text that all lines of the row have.
type wordOf string

func (f wordOf) Append(_ *wire.Writer, dst []byte, _ *wire.Member, _ any) ([]byte, bool) {
	return jsonwire.AppendString(dst, string(f)), true
}

func (wordOf) Parse(r *wire.Reader, _ any) error {
	_, err := r.S.String()
	return err
}

// A shortForm is a text that must have 1 to 64 characters under SchemaV2.
type shortForm struct{ p Profile }

func (f shortForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	if n := jsonwire.FirstCharacters(v, 64); f.p == SchemaV2 && n < len(v) {
		w.Lose(dialect.Altered, w.Pointer(m), "cut after 64 characters")
		v = v[:n]
	}
	return jsonwire.AppendString(dst, v), v != ""
}

func (f shortForm) Parse(r *wire.Reader, at any) error {
	err := text.Parse(r, at)
	if n := utf8.RuneCountInString(*at.(*string)); err == nil && f.p == SchemaV2 && (n < 1 || n > 64) {
		r.Break(RuleRange, "must have 1 to 64 characters")
	}
	return err
}

func (f shortForm) neverEmpty() bool { return f.p == SchemaV2 }

// capForm is the name of a cap. The schemas have a list of them.
func capForm(p Profile) wire.Form {
	if p == RFC0002 {
		return textForm{rule: RuleEnum}
	}
	return wire.OneOf(RuleEnum, wire.Full{}, capKinds...)
}

// An objectForm is raw JSON that must be an object under the schemas.
type objectForm struct{ p Profile }

func (f objectForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	mark := len(dst)
	dst, said := wire.Value{}.Append(w, dst, m, at)
	if said && f.p != RFC0002 && dst[mark] != '{' {
		w.Lose(dialect.Altered, w.Pointer(m), `is not an object: written as the member "value" of one`)
		dst = append(slices.Insert(dst, mark, []byte(`{"value":`)...), '}')
	}
	return dst, said
}

func (f objectForm) Parse(r *wire.Reader, at any) error {
	err := wire.Value{}.Parse(r, at)
	if err == nil && f.p != RFC0002 && !isObject(string(*at.(*agentevents.JSON))) {
		r.Break(RuleForm, "is not an object")
	}
	return err
}

// A countForm is a whole number, in any spelling.
type countForm struct{ wire.Value }

func (countForm) Parse(r *wire.Reader, at any) error {
	start := r.S.Offset()
	n, err := sequence(&r.S)
	if err == nil && n > math.MaxInt {
		err = &jsonwire.SyntaxError{Offset: start, Msg: "number out of range"}
	}
	if err == nil {
		*at.(*agentevents.Opt[int]) = agentevents.Some(int(n))
	}
	return err
}

// countFrom is a whole number that must not be below low.
func countFrom(low int) wire.Form { return wire.AtLeast(RuleRange, countForm{}, low) }

// sequence reads a whole number from 0. 3.0 is one too.
func sequence(s *jsonwire.Scanner) (uint64, error) {
	n, err := s.Uint()
	if err == nil || s.Kind() != '0' {
		return n, err
	}
	at := s.Offset()
	f, ferr := s.Float()
	if ferr == nil && f == math.Trunc(f) && f < 1<<53 {
		return uint64(f), nil
	}
	return 0, &jsonwire.SyntaxError{Offset: at, Msg: "found a number that is not a whole number in range"}
}

// amount is a number. The schemas want one from 0 on.
func amount(p Profile) wire.Form {
	if p == RFC0002 {
		return wire.Value{}
	}
	return wire.AtLeast(RuleRange, wire.Value{}, 0)
}

// A millisForm is a duration in whole milliseconds.
type millisForm struct{}

func (millisForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	v := at.(*agentevents.Opt[time.Duration])
	if v.OK && v.V < 0 {
		w.Fail(RuleRange, w.Pointer(m), "must not be below 0")
	}
	if v.V%time.Millisecond != 0 && v.OK && !w.Whole {
		w.Lose(dialect.Altered, w.Pointer(m), "cut to whole milliseconds")
	}
	if w.Whole {
		return jsonwire.AppendMillis(dst, v.V), v.OK
	}
	return jsonwire.AppendInt(dst, v.V.Milliseconds()), v.OK
}

func (millisForm) Parse(r *wire.Reader, at any) error {
	err := wire.Value{}.Parse(r, at)
	if v := at.(*agentevents.Opt[time.Duration]).V; err == nil && (v < 0 || v%time.Millisecond != 0) {
		r.Break(RuleRange, "is not a whole number of milliseconds from 0 on")
	}
	return err
}

// A callTime is the duration of a call. Under the schemas a call that never began
// has none.
type callTime struct {
	millisForm
	p Profile
}

func (f callTime) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if f.p != RFC0002 && refused(string(w.Ev.Payload.(*agentevents.ToolReturned).Status)) {
		w.Pend.Drop(w.Pointer(m), at.(*agentevents.Opt[time.Duration]).OK)
		return dst, false
	}
	return f.millisForm.Append(w, dst, m, at)
}

// A statusForm is the status of a return, where it says more than the error does.
type statusForm struct{ p Profile }

func (f statusForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	derived := derivedStatus(w.Ev.Payload.(*agentevents.ToolReturned))
	status := agentevents.ToolStatus(*at.(*string))
	switch {
	case status == "":
		status = derived
		w.Lose(dialect.Made, w.Pointer(m), string(derived))
	case status == agentevents.ToolStatusCancelled, status == agentevents.ToolStatusInterrupted, f.p != RFC0002 && !slices.Contains(toolStatuses, string(status)):
		w.Lose(dialect.Altered, w.Pointer(m), "error")
		status = agentevents.ToolStatusError
	}
	return jsonwire.AppendString(dst, string(status)), status != derived || encoderOf(w).spelled(w, m)
}

func (statusForm) Parse(r *wire.Reader, at any) error {
	err := wire.Value{}.Parse(r, at)
	if v := *at.(*string); err == nil && r.Strict && !slices.Contains(toolStatuses, v) {
		r.Break(RuleEnum, unlisted(v, toolStatuses))
	}
	return err
}

func (statusForm) neverEmpty() bool { return true }

// derivedStatus is the status that a return has without the word.
func derivedStatus(p *agentevents.ToolReturned) agentevents.ToolStatus {
	if p.Error.OK {
		return agentevents.ToolStatusError
	}
	return agentevents.ToolStatusOK
}

// refused reports whether a status says that the call never began.
func refused(status string) bool {
	return status == string(agentevents.ToolStatusForbidden) || status == string(agentevents.ToolStatusRateLimited)
}

// A resultForm is the result of a call, which an error takes the place of. (Encoder
// lists that.)
type resultForm struct{ wire.Value }

func (f resultForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if w.Ev.Payload.(*agentevents.ToolReturned).Error.OK {
		return dst, false
	}
	return f.Value.Append(w, dst, m, at)
}

// madeArguments stands for arguments. The RFC wants them unless there is a hash.
func madeArguments(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	e := encoderOf(w)
	if e.p != RFC0002 || w.Ev.Payload.(*agentevents.ToolCalled).ArgsHash != "" || slices.Contains(e.k.spelled, "/payload/argsHash") {
		return dst
	}
	return madeJSON("null")(w, dst, m)
}

// counted stands for the index of a delta.
func counted(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	n := 0
	if !w.Whole {
		n = encoderOf(w).deltaIndex(w.Ev, w.Ev.Payload.(*agentevents.AgentReasoningDelta).BlockID)
	}
	w.Lose(dialect.Made, w.Pointer(m), "counted by the encoder")
	return jsonwire.AppendInt(dst, int64(n))
}

// madeWorkflow stands for the workflow of a run.
func madeWorkflow(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	w.Lose(dialect.Made, "/workflowId", "")
	return m.Form.(idForm).append(w, dst, "/workflowId", cmp.Or(w.Ev.Payload.(*agentevents.RunStarted).Name, "unknown"))
}

// errorObject is an error. The ErrorEnvelope of HTTP answers has error in place of
// code.
func errorObject(p Profile) wire.Form {
	details := wire.May("details", "details", objectForm{p})
	code := wire.Need("code", "code", errorText{p: p}).Or(madeCode)
	word := wire.Member{Name: "error", Says: "code", Form: errorWord{errorText{p: p}}, For: "code", Loose: p != RFC0002}
	code.Loose = p == RFC0002
	return wire.Object(code, word, wire.Need("message", "message", errorText{p: p}).Or(madeMessage), details,
		wire.Member{Name: "retryable", Says: "retryable", Loose: p == RFC0002})
}

// An errorText is the code or the message of an error.
type errorText struct {
	wire.Value
	p Profile
}

func (f errorText) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	v := *at.(*string)
	return jsonwire.AppendString(dst, v), v != "" && !(m.Name == "code" && encoderOf(w).errorWord())
}

func (f errorText) Parse(r *wire.Reader, at any) error {
	err := f.Value.Parse(r, at)
	if err == nil {
		decoderOf(r).errorHas(r.Name())
		if f.p != RFC0002 && *at.(*string) == "" {
			r.Break(RuleRange, "is empty")
		}
	}
	return err
}

// An errorWord is the code by its other name. A line of the RFC keeps it.
type errorWord struct{ errorText }

func (errorWord) Append(w *wire.Writer, dst []byte, _ *wire.Member, at any) ([]byte, bool) {
	return jsonwire.AppendString(dst, cmp.Or(*at.(*string), unknownError)), encoderOf(w).errorWord()
}

const unknownError = "error"

func madeCode(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	if encoderOf(w).errorWord() {
		return dst
	}
	return made(unknownError)(w, dst, m)
}

// madeMessage stands for the message of an error, which the schemas do not let be
// empty.
func madeMessage(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	if encoderOf(w).p == RFC0002 {
		return empty(w, dst, m)
	}
	code := unknownError
	if v := errorOf(w.Ev.Payload); v != nil && v.Code != "" {
		code = v.Code
	}
	return made(code)(w, dst, m)
}

// errorOf returns the error of a payload, or nil.
func errorOf(p agentevents.Payload) *agentevents.ErrorInfo {
	switch p := p.(type) {
	case *agentevents.ToolReturned:
		return &p.Error.V
	case *agentevents.NodeFailed:
		return &p.Error
	case *agentevents.RunFailed:
		return &p.Error.V
	}
	return nil
}

// madeError stands for the error of a run.
func madeError(w *wire.Writer, dst []byte, m *wire.Member) []byte {
	w.Lose(dialect.Made, w.Pointer(m), unknownError)
	return append(dst, `{"code":"error","message":"error"}`...)
}

// A refForm is an AgentRef. It keeps its extra members itself.
type refForm struct{ p Profile }

func (f refForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
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
		w.Lose(dialect.Made, w.Pointer(m)+"/agentId", v.AgentID)
	}
	if f.p != RFC0002 { // saves joining the pointer under RFC0002
		v.AgentID = e.agentID(w, w.Pointer(m)+"/agentId", v.AgentID)
	}
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

func (f refForm) Parse(r *wire.Reader, at any) error {
	err := agentRef(&r.S, at.(*agentevents.AgentRef))
	if err == nil && r.Strict && f.p == RFC0002 {
		f.check(r, at.(*agentevents.AgentRef))
	}
	return err
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

// check checks an AgentRef by the RFC, section A.
func (refForm) check(r *wire.Reader, ref *agentevents.AgentRef) {
	at := r.Pointer()
	if ref.AgentID == "" {
		r.BreakAt(at+"/agentId", RuleRequired, "is required")
	}
	switch s := ref.AgentSharing; s {
	case "", agentevents.SharingIsolated, agentevents.SharingShared:
	default:
		if _, ok := s.Group(); !ok {
			r.BreakAt(at+"/agentSharing", RuleEnum, strconv.Quote(string(s))+" is not isolated, shared or shared:<group>")
		}
	}
	if c := string(ref.ModelClass); c != "" && !slices.Contains(modelWords, c) {
		r.BreakAt(at+"/modelClass", RuleEnum, unlisted(c, modelWords))
	}
}

// A refID is an AgentRef where there is only room for its id.
type refID struct{ idForm }

func (f refID) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if w.Ev.PayloadExtra() {
		p := w.Ev.Payload.(*agentevents.AgentHandoff)
		ref := &p.To
		if m.Name == "fromAgentId" {
			ref = &p.From
		}
		raw, _ := ref.MarshalJSON() // never fails
		for name := range jsonwire.Members(string(raw)) {
			if !slices.Contains(refNames, name) { // the fields are lost by subtraction
				w.Lose(dialect.Dropped, strings.TrimSuffix(w.Pointer(m), "agentId")+jsonwire.Token(name), "")
			}
		}
	}
	return f.idForm.Append(w, dst, m, at)
}

var refNames = []string{"agentId", "agentSharing", "memoryRef", "modelClass"}

// handing returns the agent that hands over, for a handoff that does not say it.
func handing(e *Encoder) string { return cmp.Or(e.w.Ev.AgentID, CoreSystem) }

// A handsOver is the acting agent of a handoff. The line names it apart only if
// another agent hands over.
type handsOver struct{ idForm }

func (f handsOver) AppendMembers(w *wire.Writer, dst []byte) []byte {
	e, id, from := encoderOf(w), w.Ev.AgentID, w.Ev.Payload.(*agentevents.AgentHandoff).From.AgentID
	nobody := from == "" && e.lenient() && slices.Contains(e.k.absent, "/payload/from")
	open := f.p != SchemaV2
	switch who := cmp.Or(from, id, CoreSystem); {
	case id == "":
		if !nobody {
			w.Lose(dialect.Made, "/agentId", who)
		}
		return dst
	case id != who && !open:
		w.Lose(dialect.Altered, "/agentId", "written as the agent that hands over")
		return dst
	case nobody, id != who, open && slices.Contains(e.k.spelled, "/payload/agentId"):
		return f.append(w, append(dst, `,"agentId":`...), "/agentId", id)
	}
	return dst
}

// A nodeForm is the node in a payload. It also stands in the envelope.
type nodeForm struct{ p Profile }

func (f nodeForm) Append(w *wire.Writer, dst []byte, m *wire.Member, _ any) ([]byte, bool) {
	e := encoderOf(w)
	if other := w.Kept(m.Name); isText(other) && (f.p == RFC0002 || f.p == SchemaV1 && other != `""` || ValidID(f.p, NodeID, jsonwire.Text(other))) {
		w.Use(m.Name)
		return append(dst, other...), true
	}
	if e.nodeID == "" || !m.Need && slices.Contains(e.k.absent, "/payload/nodeId") {
		return dst, false
	}
	return idForm{f.p, NodeID}.append(w, dst, "/nodeId", e.nodeID), true
}

func (f nodeForm) Parse(r *wire.Reader, _ any) error {
	d := decoderOf(r)
	err := wire.Value{}.Parse(r, &d.node)
	if err == nil && r.Strict && !(f.p == SchemaV1 && d.node != "") && !ValidID(f.p, NodeID, d.node) {
		r.Break(RuleID, badID(d.node))
	}
	return err
}

// An envelopeNode is the node of the event.
type envelopeNode struct{ idForm }

func (f envelopeNode) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	e := encoderOf(w)
	if e.nodeID == "" || slices.Contains(e.k.absent, "/nodeId") && e.payloadNode() {
		return dst, false
	}
	if *at.(*string) == "" {
		w.Lose(dialect.Made, "/nodeId", unknownNode)
	}
	return f.append(w, dst, "/nodeId", e.nodeID), true
}

func (f envelopeNode) Parse(r *wire.Reader, at any) error {
	err := f.idForm.Parse(r, at)
	if err == nil && *at.(*string) == "" {
		decoderOf(r).spell(r)
	}
	return err
}

// A timeForm is the time of the event.
type timeForm struct{}

func (timeForm) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	if at.(*time.Time).IsZero() && encoderOf(w).lacked(w, m) {
		return dst, false
	}
	return w.Times.Append(dst, w.Time()), true
}

func (timeForm) Parse(r *wire.Reader, at any) (err error) {
	*at.(*time.Time), err = r.Times.Time(&r.S)
	return err
}

// A sequenceForm is the number of the event. A call that is one event takes two
// numbers.
type sequenceForm struct{}

func (sequenceForm) Append(w *wire.Writer, dst []byte, _ *wire.Member, at any) ([]byte, bool) {
	shift := encoderOf(w).shifted(w)
	if shift > 0 {
		w.Lose(dialect.Altered, "/sequence", "raised: a call that is one event is two lines")
	}
	return jsonwire.AppendUint(dst, *at.(*uint64)+shift), true
}

func (sequenceForm) Parse(r *wire.Reader, at any) (err error) {
	*at.(*uint64), err = sequence(&r.S)
	return err
}

// A versionForm is schemaVersion, a number, or engineVersion, which is a text under
// SchemaV1. Both are kept.
type versionForm struct {
	p      Profile
	engine bool
}

// wrong returns the rule that a version breaks, and what is wrong with it, or "".
func (f versionForm) wrong(raw string) (agentevents.Rule, string) {
	switch {
	case f.p == RFC0002:
	case f.engine && f.p == SchemaV1:
		if !isText(raw) {
			return RuleForm, "is not a text"
		}
	case !whole(raw), !f.engine && f.p == SchemaV2 && !positive(raw):
		return RuleRange, raw + " is not a version of the profile"
	}
	return "", ""
}

func (f versionForm) Append(w *wire.Writer, dst []byte, m *wire.Member, _ any) ([]byte, bool) {
	raw := w.Kept(m.Name)
	if raw != "" {
		w.Use(m.Name)
		if _, wrong := f.wrong(raw); wrong != "" {
			w.Lose(dialect.Dropped, "/openwop/"+m.Name, "the profile has another form for it")
			raw = ""
		}
	}
	if e := encoderOf(w); raw == "" && m.Need && (w.Whole || !slices.Contains(e.k.absent, "/"+m.Name)) {
		raw = "1"
		w.Lose(dialect.Made, "/openwop/"+m.Name, raw)
	}
	return append(dst, raw...), raw != ""
}

func (f versionForm) Parse(r *wire.Reader, _ any) error {
	raw, err := version(r, f.engine)
	if err != nil {
		return err
	}
	if !f.engine {
		decoderOf(r).version = raw
	}
	if rule, wrong := f.wrong(raw); wrong != "" {
		r.Break(rule, wrong)
	}
	return nil
}

// version reads and keeps a number, or a text.
func version(r *wire.Reader, text bool) (raw string, err error) {
	if k := r.S.Kind(); k != '0' && (k != '"' || !text) {
		at := r.S.Offset()
		if _, err := r.S.Uint(); err != nil {
			return "", err
		}
		return "", &jsonwire.SyntaxError{Offset: at, Msg: "found a negative number"}
	}
	if raw, err = r.S.Raw(); err == nil {
		r.KeepAs(raw)
	}
	return raw, err
}

// whole reports whether a JSON number is whole and not below 0.
func whole(raw string) bool {
	var s jsonwire.Scanner
	s.Reset(raw)
	_, err := sequence(&s)
	return err == nil
}

// positive reports whether a JSON number is above 0.
func positive(raw string) bool {
	n, err := strconv.ParseFloat(raw, 64)
	return err == nil && n > 0
}

// A causation is the event's cause. A tool's return names its call.
type causation struct{ idForm }

func (f causation) Append(w *wire.Writer, dst []byte, m *wire.Member, at any) ([]byte, bool) {
	id := encoderOf(w).cause(w, *at.(*string))
	if id == "" {
		return dst, false
	}
	return f.append(w, dst, "/causationId", id), true
}

func (f causation) Parse(r *wire.Reader, at any) error {
	err := f.idForm.Parse(r, at)
	if err == nil && *at.(*string) == "" {
		decoderOf(r).spell(r)
	}
	return err
}

// An agentOfOther is the agent of a type that the vocabulary does not have: the
// decoder takes it from the payload.
type agentOfOther struct{ wire.Value }

func (agentOfOther) AppendMembers(w *wire.Writer, dst []byte) []byte {
	p := w.Ev.Payload.(*agentevents.Unknown)
	w.Pend.Drop("/agentId", w.Ev.AgentID != "" && agentOf(string(p.Raw)) != w.Ev.AgentID)
	return dst
}

// An undeclared is a member that a closed payload does not have.
type undeclared struct{ wire.Form }

func (f undeclared) Parse(r *wire.Reader, at any) error {
	err := f.Form.Parse(r, at)
	if err == nil {
		r.Break(RuleClosed, "the profile does not declare it, and the payload is closed")
	}
	return err
}
