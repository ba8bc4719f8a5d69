package openwop

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The payloads of a node that waits, and the answers to them.

// suspended writes a node.suspended. Its details are members of the payload.
func (w *writer) suspended(p *agentevents.NodeSuspended) {
	w.node()
	details, err := jsonwire.Compact(string(p.Details))
	if p.Details == "" {
		details, err = "", nil
	}
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, "/payload/details", err.Error())
		return
	}
	switch {
	case details == "":
	case details == "{}" && w.p != RFC0002: // an interruptId is added
	case details == "{}":
		w.lose(dialect.Dropped, "/payload/details", "only the members of the details are written, and there are none")
	case details[0] != '{' && w.p == SchemaV2:
		w.lose(dialect.Altered, "/payload/details", "is not an object: the line has only an interruptId")
		details = ""
	case details[0] != '{':
		w.lose(dialect.Altered, "/payload/details", `is not an object: written as the member "details"`)
		details = `{"details":` + details + `}`
	}
	vs := &variants[vNodeSuspended]
	write := func(name, raw string) {
		w.member(w.at, name, raw)
		w.extra = append(w.extra, name)
	}
	first := func(name string) bool { return name == "interruptId" || name == "kind" }
	id := false
	for name, raw := range jsonwire.Members(details) {
		if !first(name) {
			continue
		}
		if name == "interruptId" {
			if w.p != RFC0002 && jsonwire.Text(raw) == "" {
				w.lose(dialect.Dropped, "/payload/details/interruptId", "is not an id")
				continue
			}
			id = true
			if w.p == SchemaV2 {
				if n := NormalizeID(w.p, InterruptID, jsonwire.Text(raw)); n != jsonwire.Text(raw) && n != "" {
					w.lose(dialect.Altered, "/payload/details", "the profile has another form for ids")
					raw = jsonwire.Quote(n)
				}
			}
		}
		if name == "kind" && w.p != RFC0002 && !slices.Contains(interruptKinds(w.p), jsonwire.Text(raw)) {
			w.lose(dialect.Dropped, "/payload/details/kind", "not one of the schema's words")
			continue
		}
		write(name, raw)
	}
	if !id && w.p != RFC0002 {
		made := dialect.DerivedID(w.ev.RunID+"\x00"+w.ev.ID, int(w.ev.Sequence), 3)
		w.lose(dialect.Made, "/payload/details/interruptId", "")
		write("interruptId", jsonwire.Quote(NormalizeID(w.p, InterruptID, made)))
	}
	w.short(mReason, "/payload/reason", p.Reason)
	w.anyAgent()
	for name, raw := range jsonwire.Members(details) {
		switch {
		case first(name):
		case name == "key" && w.p != RFC0002 && jsonwire.Text(raw) == "":
			w.lose(dialect.Dropped, "/payload/details/key", "is not a text, or is empty")
		case (name == "reason" || name == "nodeId" || name == "agentId") && !w.stray(name, raw):
			w.lose(dialect.Dropped, "/payload/details/"+name, "the payload has a member of that name")
		case w.p == SchemaV2 && !vs.declares(name) && !hatch(name) && !w.k.same(w.p):
			w.lose(dialect.Dropped, "/payload/details/"+jsonwire.Token(name), "the profile has no place for it")
		default:
			write(name, raw)
		}
	}
}

// stray reports whether a member of the details has the name of a member of the
// payload, but another type: the decoder reads it back as a detail.
func (w *writer) stray(name, raw string) bool {
	m := numberOf(memberNames[:], name)
	return !w.has.has(m) && loose(w.p, vNodeSuspended).has(m) && !isText(raw)
}

// questions writes a list of questions with their extra members.
func (w *writer) questions(list []agentevents.Question) {
	bound := w.v == vAskRequested && w.p != RFC0002 // the schemas' form is closed, and no text in it is empty
	if bound && len(list) == 0 {
		list = madeQuestions
		w.lose(dialect.Made, "/payload/questions", unknownQuestion)
	}
	look := func(n string) place {
		switch {
		case n == "id" || n == "question" || n == "schema":
			return taken
		case bound && !w.k.same(w.p):
			return closed
		}
		return free
	}
	w.dst = append(w.dst, '[')
	for i, q := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		at := func(member string) string { return "/payload/questions/" + strconv.Itoa(i) + "/" + member }
		if w.careful && !jsonwire.ValidUTF8(q.ID) {
			w.fail(agentevents.RuleFieldUTF8, at("id"), "is not valid UTF-8")
		}
		if bound && q.ID == "" {
			q.ID = "q" + strconv.Itoa(i+1)
			w.lose(dialect.Made, at("id"), "")
		}
		if bound && q.Question == "" {
			q.Question = unknownQuestion
			w.lose(dialect.Made, at("question"), unknownQuestion)
		}
		start := len(w.dst)
		w.dst = jsonwire.AppendString(append(w.dst, `{"id":`...), q.ID)
		w.dst = jsonwire.AppendString(append(w.dst, `,"question":`...), q.Question)
		if w.careful && !jsonwire.ValidUTF8(q.Question) {
			w.lose(dialect.Altered, at("question"), dialect.DamagedText)
		}
		if q.Schema != "" {
			w.dst = append(w.dst, `,"schema":`...)
			w.raw(at("schema"), q.Schema, true)
		}
		if w.k.payload {
			w.more("/payload/questions/"+strconv.Itoa(i)+"/", "questions/", start, look)
			w.more("/payload/data/questions/"+strconv.Itoa(i)+"/", "questions/", start, look)
		}
		w.dst = append(w.dst, '}')
	}
	w.dst = append(w.dst, ']')
}

// asked writes a request for clarification.
func (w *writer) asked(p *agentevents.ClarificationRequested) {
	if w.v == vClarRequested {
		w.node()
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		if p.Questions != nil || !w.absent(mQuestions) {
			w.name(mQuestions)
			w.questions(p.Questions)
		}
		w.anyAgent()
		return
	}
	w.interrupt(kindClarification, "/payload/interruptId", p.InterruptID)
	w.name(mData)
	start := len(w.dst)
	w.dst = append(w.dst, `{"questions":`...)
	w.questions(p.Questions)
	w.data(start, func(n string) place {
		switch {
		case n == "questions":
			return taken
		case w.p != RFC0002 && !w.k.same(w.p) && n != "contextType":
			return closed
		}
		return free
	})
	w.drop("/agentId", w.ev.AgentID != "")
}

// data writes the extra members of an interrupt's data and ends the object. It
// also takes members from beside the data that are only legal in it.
func (w *writer) data(start int, look func(name string) place) {
	var has []string
	w.more("/payload/data/", "data/", start, func(n string) place {
		p := look(n)
		if p == free {
			has = append(has, n)
		}
		return p
	})
	w.more("/payload/", "data/", start, func(n string) place {
		if w.place(n) != closed || n == "nodeId" || slices.Contains(has, n) {
			return other
		}
		if look(n) == free {
			return free
		}
		return other
	})
	w.dst = append(w.dst, '}')
}

// interrupt writes the kind and the key of an interrupt.requested.
func (w *writer) interrupt(kind, pointer, id string) {
	w.name(mKind)
	w.str("/payload/kind", kind)
	form := InterruptID // as in the line that resolves the interrupt
	long := utf8.RuneCountInString(id) > maxKey
	id = w.key(pointer, id)
	if w.k.spelled.has(mKey) && !long {
		form = PlainID // a key need not be an id
	}
	w.required(mKey, form, pointer, id, w.eventID)
}

// maxKey is the maximum length of a key, in characters.
const maxKey = 256

// key returns the id of an interrupt as a key. SchemaV1 limits keys, but not ids.
func (w *writer) key(pointer, id string) string {
	if w.p != SchemaV1 || utf8.RuneCountInString(id) <= maxKey {
		return id
	}
	w.lose(dialect.Altered, pointer, "the profile has another form for keys")
	return NormalizeID(SchemaV2, InterruptID, id)
}

// answered writes the answer to a request for clarification.
func (w *writer) answered(p *agentevents.ClarificationResolved) {
	w.node()
	if w.v == vClarResolved {
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/interruptId", p.InterruptID)
		}
		w.must(mAnswers, "/payload/answers", p.Answers, "{}", true)
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
		w.anyAgent()
		return
	}
	w.required(mInterruptID, InterruptID, "/payload/interruptId", w.key("/payload/interruptId", p.InterruptID), w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindClarification)
	w.json(mResumeValue, "/payload/answers", p.Answers, false)
	if w.undeclared() {
		w.text(mAnsweredBy, "/payload/answeredBy", p.AnsweredBy)
	} else {
		w.drop("/payload/answeredBy", p.AnsweredBy != "")
	}
	w.anyAgent()
}

// extraMember writes a required member that the vocabulary has no field for into
// the object that begins at start. Its value is the extra member of either form
// of an interrupt, or made.
func (w *writer) extraMember(start int, below, name, made string) {
	const payload, data = "/payload/", "/payload/data/"
	key := payload + name
	kept := w.k.get(key)
	if old := w.k.get(data + name); old != "" && (kept == "" || below == data) {
		key, kept = data+name, old
	}
	w.k.take(key)
	switch good := w.artifact(name, kept); {
	case kept == "":
		w.lose(dialect.Made, "/openwop/"+jsonwire.Token(below+name), "")
	case good == "":
		w.lose(dialect.Altered, "/openwop/"+jsonwire.Token(below+name), "the profile has another form for it")
	default:
		if good != kept {
			w.lose(dialect.Altered, "/openwop/"+jsonwire.Token(below+name), "the profile has another form for it")
		}
		made = good
	}
	w.member(start, name, made)
	if start == w.at {
		w.extra = append(w.extra, name)
	}
}

// artifact returns a required member of a request for approval in the profile's
// form, or "" if it has none.
func (w *writer) artifact(name, raw string) string {
	if raw == "" || w.p == RFC0002 {
		return raw
	}
	data := w.v == vPermitRequested
	if name != "actions" {
		if raw[0] != '"' || data && raw == `""` {
			return ""
		}
		return raw
	}
	edit, otherEdit := "edit", "edit-accept"
	if data {
		edit, otherEdit = otherEdit, edit
	}
	var words []string
	same := strings.HasPrefix(raw, "[")
	for word := range jsonwire.Elements(raw) {
		text := jsonwire.Text(word)
		if text == otherEdit {
			text, same = edit, false
		}
		if text != edit && !slices.Contains(actions, text) || data && slices.Contains(words, text) {
			same = false
			continue
		}
		words = append(words, text)
	}
	switch {
	case len(words) == 0:
		return ""
	case same:
		return raw
	}
	return `["` + strings.Join(words, `","`) + `"]`
}

// permit writes a request for approval.
func (w *writer) permit(p *agentevents.ApprovalRequested) {
	artifact, what := p.CallID, toolCallType
	if artifact == "" {
		artifact, what = p.ApprovalID, actionType
	}
	if w.v == vApprovalRequested {
		w.node()
		if !w.absent(mInterruptID) {
			w.text(mInterruptID, "/payload/approvalId", p.ApprovalID)
		}
		extra := func(name, made string) {
			if w.p == SchemaV1 || w.k.get("/payload/"+name) != "" || w.k.get("/payload/data/"+name) != "" {
				w.extraMember(w.at, "/payload/", name, made)
			}
		}
		extra("artifactId", jsonwire.Quote(artifact))
		extra("artifactType", jsonwire.Quote(what))
		w.text(mTitle, "/payload/action", p.Action)
		extra("actions", madeActions)
		w.text(mReason, "/payload/reason", p.Reason)
		w.text(mScope, "/payload/scope", p.Scope)
		w.text(mRisk, "/payload/risk", p.Risk)
		w.text(mCallID, "/payload/callId", p.CallID)
		w.text(mToolID, "/payload/toolId", p.ToolID)
		w.json(mArguments, "/payload/arguments", p.Arguments, false)
		w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
		w.anyAgent()
		return
	}
	w.interrupt(kindApproval, "/payload/approvalId", p.ApprovalID)
	w.name(mData)
	start := len(w.dst)
	w.dst = append(w.dst, '{')
	w.extraMember(start, "/payload/data/", "artifactId", jsonwire.Quote(artifact))
	w.extraMember(start, "/payload/data/", "artifactType", jsonwire.Quote(what))
	title := p.Action
	if title == "" {
		title = kindApproval
		w.lose(dialect.Made, "/payload/action", title)
	}
	w.dst = append(w.dst, `,"title":`...)
	w.str("/payload/action", title)
	w.extraMember(start, "/payload/data/", "actions", madeActions)
	w.data(start, func(n string) place {
		if n == "artifactId" || n == "artifactType" || n == "title" || n == "actions" {
			return taken
		}
		return free
	})
	w.millis(mTimeoutMs, "/payload/timeoutMs", p.Timeout)
	w.drop("/payload/reason", p.Reason != "")
	w.drop("/payload/scope", p.Scope != "")
	w.drop("/payload/risk", p.Risk != "")
	w.drop("/payload/callId", p.CallID != "")
	w.drop("/payload/toolId", p.ToolID != "")
	w.drop("/payload/arguments", p.Arguments != "")
	w.drop("/agentId", w.ev.AgentID != "")
}

// permitted writes the answer to a request for approval.
func (w *writer) permitted(decision, id, by, byPointer, feedback string) {
	if w.v != vPermitResolved {
		w.required(mGateID, PlainID, "/payload/approvalId", id, w.eventID)
		if w.p == RFC0002 {
			w.text(mPrincipal, byPointer, by)
		} else {
			w.required(mPrincipal, PlainID, byPointer, by, unknownPerson)
		}
		if w.v == vApprovalRejected {
			w.text(mReason, "/payload/feedback", feedback)
		} else {
			w.drop("/payload/feedback", feedback != "")
		}
		w.drop("/agentId", w.ev.AgentID != "")
		return
	}
	w.node()
	w.required(mInterruptID, InterruptID, "/payload/approvalId", w.key("/payload/approvalId", id), w.eventID)
	w.name(mKind)
	w.str("/payload/kind", kindApproval)
	w.short(mReason, "/payload/feedback", feedback)
	w.name(mDecision)
	w.str("/payload/decision", decision)
	if w.undeclared() {
		w.text(mPrincipal, byPointer, by)
	} else {
		w.drop(byPointer, by != "")
	}
	w.anyAgent()
}
