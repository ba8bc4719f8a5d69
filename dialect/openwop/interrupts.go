package openwop

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The payloads of a node that waits, and the answers to them.

// The kinds of interrupts that the vocabulary has.
const (
	kindClarification = "clarification"
	kindApproval      = "approval"
)

// interruptOf returns the field of a payload that has the id of an interrupt, and its
// pointer, or nil.
func interruptOf(p agentevents.Payload) (id *string, pointer string) {
	switch p := p.(type) {
	case *agentevents.ClarificationRequested:
		return &p.InterruptID, "/payload/interruptId"
	case *agentevents.ClarificationResolved:
		return &p.InterruptID, "/payload/interruptId"
	case *agentevents.ApprovalRequested:
		return &p.ApprovalID, "/payload/approvalId"
	case *agentevents.ApprovalGranted:
		return &p.ApprovalID, "/payload/approvalId"
	case *agentevents.ApprovalRejected:
		return &p.ApprovalID, "/payload/approvalId"
	}
	return nil, ""
}

// madeInterruptID returns the id that a reader gives to the interrupt of a line that does not
// name it and has no question.
func madeInterruptID(ev *agentevents.Event) string {
	return dialect.DerivedID(ev.RunID+"\x00"+ev.ID, int(ev.Sequence), 4)
}

// look returns the row of a line. The payload decides for a type with several forms, and
// for an answer the kind of the question that was asked, if it is known; "" is none of them.
func look(line, typ, asked string) string {
	at := func(names ...string) string {
		raw := jsonwire.Member(line, "payload")
		for _, name := range names {
			raw = jsonwire.Member(raw, name)
		}
		return raw
	}
	word := func(name string) string { return jsonwire.Text(at(name)) }
	switch typ {
	case providerUsage:
		if !isUsage(at()) {
			return ""
		}
	case exchanged, begins:
		member, row := "turn", ofTurn
		if typ == begins {
			member, row = "initialTurn", ofOpening
		}
		if _, err := ParseMessage([]byte(at(member))); err != nil || !isText(at(member, "messageId")) {
			return ""
		}
		return row
	case "channel.written":
		if word("channel") != MessageChannel || !isText(at("value", "messageId")) ||
			strings.Contains(word("reducer"), ".") && !isText(at("value", "from")) { // a vendor's value
			return ""
		}
	case "clarification.requested", "approval.requested":
		if kind := word("kind"); kind+".requested" == typ && at("data") != "" {
			return kind
		}
	case "clarification.resolved":
		if at("resumeValue") != "" && at("answers") == "" {
			return "answer"
		}
	case "interrupt.requested":
		if kind := word("kind"); kind == kindClarification || kind == kindApproval {
			return kind
		}
		return ""
	case "interrupt.resolved", "approval.granted", "approval.rejected":
		kind := word("kind")
		switch {
		case typ != "interrupt.resolved" && (word("decision") == "" || at("gateId") != "" || at("interruptId") == ""):
			return typ
		case asked != "":
			kind = asked
		case typ != "interrupt.resolved" && kind != kindClarification:
			kind = kindApproval
		}
		switch kind {
		case kindClarification:
			return "answer"
		case kindApproval:
			return verdict(at())
		}
		return ""
	case "approval.received":
		if v := verdict(at()); v != "" {
			return typ + " " + v
		}
		return ""
	}
	return typ
}

// A detailsForm is the details of a suspension: all members of the payload that no
// other field has. The schemas put two of them first.
type detailsForm struct {
	engine.Value
	p     Profile
	first bool
}

func (f detailsForm) AppendMembers(w *engine.Writer, dst []byte) []byte {
	has := false
	for name, raw := range jsonwire.Members(f.object(w, w.Ev.Payload.(*agentevents.NodeSuspended).Details)) {
		if first := name == "interruptId" || name == "kind"; first != f.first {
			continue
		}
		if raw, ok := f.detail(w, name, raw); ok {
			has = has || name == "interruptId"
			dst = append(append(jsonwire.AppendString(append(dst, ','), name), ':'), raw...)
		}
	}
	if f.first && !has && f.p != RFC0002 {
		made := cmp.Or(encoderOf(w).open.openAt(w.Ev), dialect.DerivedID(w.Ev.RunID+"\x00"+w.Ev.ID, int(w.Ev.Sequence), 3))
		dst = jsonwire.AppendString(append(dst, `,"interruptId":`...), NormalizeID(f.p, InterruptID, made))
	}
	return dst
}

// object returns the details as an object, or "".
func (f detailsForm) object(w *engine.Writer, raw agentevents.JSON) string {
	if raw == "" {
		return ""
	}
	details, err := jsonwire.Compact(string(raw))
	switch {
	case err != nil:
		w.Fail(agentevents.RuleFieldJSON, "/payload/details", err.Error())
		return ""
	case jsonwire.IsObject(details):
	case f.p == SchemaV2: // the line has only an interruptId
		return ""
	default:
		return `{"details":` + details + `}`
	}
	return details
}

// detail returns a detail in the profile's form. It reports false for one that the
// line has no place for.
func (f detailsForm) detail(w *engine.Writer, name, raw string) (string, bool) {
	payload := encoderOf(w).row.payload
	switch id := jsonwire.Text(raw); {
	case f.p != RFC0002 && name == "interruptId" && id != "":
		raw = jsonwire.Quote(normalized(w, InterruptID, id))
	case name == "nodeId", name == "reason" && (isText(raw) || w.Ev.Payload.(*agentevents.NodeSuspended).Reason != ""),
		name == "agentId" && (isText(raw) || w.Ev.AgentID != ""): // the payload has a member of that name
		return "", false
	case f.p == RFC0002 || encoderOf(w).same():
	case payload.Refuses(name):
		return "", false
	default:
		_, why := wrong(f.p, payload, name, raw)
		return raw, why == ""
	}
	return raw, true
}

// Parse is never called: the decoder collects the details.
func (detailsForm) Parse(*engine.Reader, any) error { return nil }

// questions is a list of questions. Under the schemas, questions of an interrupt have no empty
// texts.
func questions(p Profile, interrupt bool) engine.Form {
	id, text := engine.Need("id", "id", engine.Full{}), engine.Need("question", "question", engine.Full{})
	if interrupt && p != RFC0002 {
		id.Form, text.Form = textForm{}, textForm{}
		id, text = id.Or(madeQuestionID), text.Or(made(unknownQuestion))
	}
	return engine.List[agentevents.Question](id, text, engine.May("schema", "schema", jsonObject(p)))
}

// madeQuestionID numbers a question without an id.
func madeQuestionID(w *engine.Writer, dst []byte, _ *engine.Member) []byte {
	i, _ := strconv.Atoi(w.At()[strings.LastIndexByte(w.At(), '/')+1:])
	return jsonwire.AppendString(dst, "q"+strconv.Itoa(i+1))
}

const unknownQuestion = "?"

// A keyForm is the key of an interrupt.
type keyForm struct{ textForm }

func newKeyForm() keyForm {
	return keyForm{textForm{mend: normalizing(InterruptID)}}
}

func (f keyForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if utf8.RuneCountInString(*at.(*string)) <= maxKey {
		f.mend = nil // a key need not be an id
	}
	return f.textForm.Append(w, dst, m, at)
}

// An answerForm is the id of a question in the line of an answer: the interruptId that the
// lines of the question have, or a gate.
type answerForm struct{ textForm }

func (f answerForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	e, id, kept := encoderOf(w), *at.(*string), jsonwire.Text(w.Use(m.Name))
	q := e.open.of(w.Ev, id)
	switch {
	case kept != "":
		if f.mend != nil {
			kept = normalized(w, InterruptID, kept)
		}
		return jsonwire.AppendString(dst, kept), true
	case q == nil || id == "" || m.Name != "interruptId" || utf8.RuneCountInString(id) > maxKey:
		return f.textForm.Append(w, dst, m, at)
	case q.interruptID != "" && q.interruptID != id:
		id = q.interruptID
	}
	return jsonwire.AppendString(dst, NormalizeID(e.p, InterruptID, id)), true // readers know the question
}

// maxKey is the maximum length of a key, in characters.
const maxKey = 256

// An artifactForm is a member of a request for approval that the vocabulary has no
// field for. The schemas require it, and so do interrupts.
type artifactForm struct {
	p    Profile
	name string
}

// Append appends the value that is kept for either form of an interrupt, or a made-up one.
func (f artifactForm) Append(w *engine.Writer, dst []byte, m *engine.Member, _ any) ([]byte, bool) {
	e := encoderOf(w)
	kept := w.KeptAt(w.At(), f.name, true)
	if kept == "" {
		kept = w.KeptAt(elsewhere(w), f.name, true)
	}
	value := kept
	switch of := demand(w, m); {
	case kept == "" && !m.Need:
		return dst, false
	case kept != "" && f.p != RFC0002 && !of.Fits(kept):
		if value = ""; f.name == "actions" {
			value = mendedActions(kept, of.Element().Whole().Words)
		}
	}
	return append(dst, cmp.Or(value, f.made(e, w.Ev.Payload.(*agentevents.ApprovalRequested)))...), true
}

// made returns the made-up value of the member.
func (f artifactForm) made(e *Encoder, p *agentevents.ApprovalRequested) string {
	switch {
	case f.name == "actions":
		return `["accept","reject"]`
	case f.name == "artifactId":
		return jsonwire.Quote(cmp.Or(p.CallID, p.ApprovalID, e.eventID))
	case p.CallID != "":
		return `"tool-call"`
	}
	return `"action"`
}

// mendedActions returns the actions that the profile has, or "". Its lists differ in the name of an
// edit.
func mendedActions(raw string, legal []string) string {
	var words []string
	for _, word := range texts(raw) {
		switch edit := map[string]string{"edit": "edit-accept", "edit-accept": "edit"}[word]; {
		case slices.Contains(legal, edit):
			word = edit
		case !slices.Contains(legal, word):
			continue
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return `["` + strings.Join(words, `","`) + `"]`
}

func (f artifactForm) Parse(r *engine.Reader, _ any) error {
	raw, err := r.S.Raw()
	if err == nil {
		keep(r, f.name, raw)
		r.KeepAs(raw)
	}
	return err
}

// An actionForm is the word of an answer to an approval. One that tells no more than the type
// of the event is kept.
type actionForm struct{ keptForm }

func (f actionForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	word := *at.(*string)
	if word == "" {
		return f.keptForm.Append(w, dst, m, at)
	}
	said := jsonwire.Quote(word)
	if encoderOf(w).p != RFC0002 && !demand(w, m).Fits(said) || telling(word, verdictOf(w.Ev.Payload)) == "" {
		return dst, false
	}
	return append(dst, said...), true
}

func (f actionForm) Parse(r *engine.Reader, at any) error {
	s := r.S
	if raw, err := s.Raw(); err != nil || telling(jsonwire.Text(raw), verdictOf(r.Ev.Payload)) == "" {
		return f.keptForm.Parse(r, at)
	}
	return engine.Value{}.Parse(r, at)
}

// toldApart reports whether a member without a field has the words of the person who answers.
func toldApart(w *engine.Writer) bool {
	var own string
	switch p := w.Ev.Payload.(type) {
	case *agentevents.ApprovalGranted:
		own = p.Feedback
	case *agentevents.ApprovalRejected:
		own = p.Feedback
	}
	return own != "" && encoderOf(w).p != SchemaV2 && feedbackOf(w.Kept) == own
}
