package openwop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A host asks a person with several lines: interrupt.requested has a re-entry key, its older twin
// approval.requested or clarification.requested may have an interruptId, and node.suspended joins
// the two. The answer has several lines too, which name the interruptId, the node or neither. The
// events of a question have one id, the id of the first line. Of twins only the first is an event
// of the vocabulary.

// interrupts are the questions of a log, and the suspensions whose question is still to come.
// A question stays after its answer until its node asks again.
type interrupts struct {
	asked     []question
	suspended []joint
}

// A question is an approval or a clarification.
type question struct {
	runID, nodeID, kind string
	id                  string   // of the events
	key                 string   // of interrupt.requested
	interruptID         string   // as node.suspended or the older line names it
	asking, answering   lineForm // of the lines that ask and that answer; none answers an open question
}

type joint struct{ runID, nodeID, key, interruptID string }

// A lineForm is a set of forms of lines that ask or answer.
type lineForm uint8

const (
	ofInterrupt lineForm = 1 << iota // interrupt.requested, interrupt.resolved
	ofReceipt                        // approval.received
	ofOlder                          // the others
)

// A said has the members of a line about a question.
type said struct {
	runID, nodeID, kind string
	id, key             string // key belongs to interrupt.requested
	gate                bool   // id may be a node
	answers             bool
	form                lineForm
}

// saidTypes are the types of lines that ask or answer, with the kind of interrupt that the
// type implies.
var saidTypes = map[string]said{
	"interrupt.requested":     {form: ofInterrupt},
	"approval.requested":      {form: ofOlder, kind: kindApproval},
	"clarification.requested": {form: ofOlder, kind: kindClarification},
	"interrupt.resolved":      {form: ofInterrupt, answers: true},
	"approval.received":       {form: ofReceipt, answers: true, kind: kindApproval},
	"approval.granted":        {form: ofOlder, answers: true, kind: kindApproval, gate: true},
	"approval.rejected":       {form: ofOlder, answers: true, kind: kindApproval, gate: true},
	"clarification.resolved":  {form: ofOlder, answers: true, kind: kindClarification},
}

// saidBy returns the members of a payload about a question.
func saidBy(typ, runID, nodeID, payload string) (said, bool) {
	s, is := saidTypes[typ]
	if !is {
		return s, false
	}
	text := func(name string) string { return jsonwire.Text(jsonwire.Member(payload, name)) }
	if kind := text("kind"); kind != "" && (s.kind == "" || jsonwire.Member(payload, "data") != "") {
		s.kind = kind
	}
	s.runID, s.nodeID, s.id = runID, nodeID, text("interruptId")
	if id := text("nodeId"); id != "" {
		s.nodeID = id
	}
	if s.gate && s.id == "" {
		s.id = text("gateId")
	}
	if !s.answers && (s.form == ofInterrupt || jsonwire.Member(payload, "data") != "") {
		s.key, s.id = text("key"), ""
	}
	return s, s.answers || s.kind == kindApproval || s.kind == kindClarification
}

func (q *question) open() bool { return q.answering == 0 }

// named reports whether a line calls the question by the id. The ids of SchemaV2 have a form
// that keys need not have.
func (q *question) named(id string) bool {
	for _, own := range [...]string{q.id, q.key, q.interruptID} {
		if own != "" && (id == own || id == NormalizeID(SchemaV2, InterruptID, own)) {
			return true
		}
	}
	return false
}

// at reports whether a line is about a question of the kind in the node.
func (q *question) at(s *said) bool {
	return (s.kind == "" || s.kind == q.kind) &&
		(q.nodeID == s.nodeID && (s.nodeID != "" || s.id == "") || s.gate && s.id != "" && q.nodeID == s.id)
}

// twin returns the open question that a line in another form has asked, or nil.
func (o *interrupts) twin(s *said) *question {
	for i := range o.asked {
		if q := &o.asked[i]; q.open() && q.runID == s.runID && q.at(s) && q.asking&s.form == 0 && o.maybe(q, s) {
			return q
		}
	}
	return nil
}

// maybe reports whether the ids and keys allow that a line asks the question.
func (o *interrupts) maybe(q *question, s *said) bool {
	if s.form != ofInterrupt {
		return s.id == "" || q.interruptID == "" || q.named(s.id)
	}
	for _, susp := range o.suspended {
		if susp.runID == s.runID && susp.nodeID == q.nodeID && susp.key != "" && susp.key == s.key {
			return q.named(susp.interruptID)
		}
	}
	return q.key == "" || q.key == s.key
}

// answered returns the question that a line answers, or nil. A line in another form than the
// one that has answered it is a twin.
func (o *interrupts) answered(s *said) (of *question, twin bool) {
	for _, named := range [...]bool{true, false} {
		for i := range slices.Backward(o.asked) {
			q := &o.asked[i]
			switch {
			case q.runID != s.runID || named && (s.id == "" || !q.named(s.id)):
			case !named && (!q.at(s) || s.id != "" && !s.gate && q.interruptID != ""):
			case q.open() && named:
				return q, false
			case q.open():
				if of == nil {
					of = q
				}
			case q.answering&s.form == 0:
				return q, true
			case named:
				return q, false // a second answer
			}
		}
	}
	return of, false
}

// told reports whether an event has the question or the answer of a line already.
func (o *interrupts) told(s *said) bool {
	whole := *s
	whole.form = 0
	if !s.answers {
		return o.twin(&whole) != nil
	}
	_, twin := o.answered(&whole)
	return twin
}

// note remembers the question or answer of an event and its line. It copies the remembered texts,
// because a text of a line keeps the whole line in memory.
func (o *interrupts) note(ev *agentevents.Event, typ string) {
	switch p := ev.Payload.(type) {
	case *agentevents.NodeSuspended:
		o.suspend(ev, string(p.Details))
		return
	case *agentevents.Unknown:
		if s, is := saidBy(typ, ev.RunID, ev.NodeID, string(p.Raw)); is {
			o.noteTwin(&s)
		}
		return
	}
	id, _ := interruptOf(ev.Payload)
	if id == nil {
		return
	}
	s := saidTypes[typ]
	if !s.answers {
		o.ask(ev, *id, kindOf(ev.Payload), s.form)
		return
	}
	if q := o.of(ev, *id); q != nil {
		q.answering |= s.form
	}
}

// kindOf returns the kind of a question.
func kindOf(p agentevents.Payload) string {
	if _, is := p.(*agentevents.ApprovalRequested); is {
		return kindApproval
	}
	return kindClarification
}

// ask remembers a question, and forgets the answered ones of its node.
func (o *interrupts) ask(ev *agentevents.Event, id, kind string, form lineForm) {
	o.asked = slices.DeleteFunc(o.asked, func(q question) bool {
		return q.runID == ev.RunID && (q.id == id || !q.open() && q.nodeID == ev.NodeID && q.kind == kind)
	})
	q := question{runID: strings.Clone(ev.RunID), nodeID: strings.Clone(ev.NodeID), kind: kind,
		id: strings.Clone(id), asking: form}
	if form == ofInterrupt {
		q.key = q.id
	} else if id != madeInterruptID(ev) {
		q.interruptID = q.id
	}
	for i, s := range o.suspended {
		if s.runID == q.runID && s.nodeID == q.nodeID &&
			(q.named(s.interruptID) || s.key == "" || q.key == "" || s.key == q.key) {
			q.join(s.key, s.interruptID)
			o.suspended = slices.Delete(o.suspended, i, i+1)
			break
		}
	}
	o.asked = engine.Limited(o.asked, q)
}

func (q *question) join(key, interruptID string) {
	if q.key == "" {
		q.key = strings.Clone(key)
	}
	if q.interruptID == "" {
		q.interruptID = strings.Clone(interruptID)
	}
}

// noteTwin notes another line of a question.
func (o *interrupts) noteTwin(s *said) {
	if s.answers {
		if q, twin := o.answered(s); twin {
			q.answering |= s.form
		}
	} else if q := o.twin(s); q != nil {
		q.asking |= s.form
		q.join(s.key, s.id)
	}
}

// suspend joins the key and the interruptId of a node's question.
func (o *interrupts) suspend(ev *agentevents.Event, details string) {
	text := func(name string) string { return jsonwire.Text(jsonwire.Member(details, name)) }
	s := joint{ev.RunID, ev.NodeID, text("key"), text("interruptId")}
	if kind := text("kind"); s.interruptID == "" || kind != "" && kind != kindApproval && kind != kindClarification {
		return
	}
	at := func(fits func(q *question) bool) bool {
		for i := range o.asked {
			if q := &o.asked[i]; q.open() && q.runID == s.runID && q.nodeID == s.nodeID && fits(q) {
				q.join(s.key, s.interruptID)
				return true
			}
		}
		return false
	}
	if s.key != "" && at(func(q *question) bool { return q.key == s.key }) ||
		at(func(q *question) bool { return q.named(s.interruptID) }) ||
		at(func(q *question) bool { return q.interruptID == "" && (s.key == "" || q.key == "") }) {
		return
	}
	o.suspended = engine.Limited(o.suspended,
		joint{strings.Clone(s.runID), strings.Clone(s.nodeID), strings.Clone(s.key), strings.Clone(s.interruptID)})
}

// clone returns a copy that can be changed.
func (o *interrupts) clone() interrupts {
	return interrupts{slices.Clone(o.asked), slices.Clone(o.suspended)}
}

// of returns the question of an event's run that has the id, or nil.
func (o *interrupts) of(ev *agentevents.Event, id string) *question {
	for i := range slices.Backward(o.asked) {
		if q := &o.asked[i]; q.runID == ev.RunID && q.id == id {
			return q
		}
	}
	return nil
}

// openAt returns the id of the latest open question of an event's node, or "".
func (o *interrupts) openAt(ev *agentevents.Event) string {
	for _, q := range slices.Backward(o.asked) {
		if q.open() && q.runID == ev.RunID && q.nodeID == ev.NodeID {
			return q.id
		}
	}
	return ""
}

// verdicts are the answers to an approval, by the words for them.
var verdicts = map[string]string{
	"granted": "granted", "accept": "granted", "edit-accept": "granted", "edit": "granted",
	"rejected": "rejected", "reject": "rejected", "refine": "rejected", "timeout": "rejected",
}

// verdictFor returns the answer that a word gives. A word that nobody knows does not grant.
func verdictFor(word string) string {
	switch {
	case word == "", verdicts[word] != "":
		return verdicts[word]
	case endword.Of(word) == endword.Succeeded:
		return "granted"
	}
	return "rejected"
}

// verdict returns the answer that a payload gives to an approval, or "".
func verdict(payload string) string {
	if word := jsonwire.Text(jsonwire.Member(payload, "decision")); word != "" {
		if verdicts[word] != word {
			return ""
		}
		return word
	}
	return verdictFor(answerOf(payload))
}

// answerOf returns the word of an answer to an approval: any action, or a text with a meaning; else "".
func answerOf(payload string) string {
	value := jsonwire.Member(payload, "resumeValue")
	if word := cmp.Or(jsonwire.Text(jsonwire.Member(payload, "action")),
		jsonwire.Text(jsonwire.Member(value, "action"))); word != "" {
		return word
	}
	word := jsonwire.Text(value)
	if verdicts[word] == "" && endword.Of(word) == endword.Unknown {
		return ""
	}
	return word
}

// telling returns a word for an answer of a verdict that tells more than the verdict, or "".
func telling(word, verdict string) string {
	if verdictFor(word) != verdict || word == "accept" || endword.Grants(word) || endword.Of(word) == endword.Refused {
		return ""
	}
	return word
}

// verdictOf returns the verdict of an answer to an approval.
func verdictOf(p agentevents.Payload) string {
	if _, granted := p.(*agentevents.ApprovalGranted); granted {
		return "granted"
	}
	return "rejected"
}

// feedbackOf returns the words of a person who answers an approval, from the members that are
// no fields, or "".
func feedbackOf(member func(name string) string) string {
	value := member("resumeValue")
	of := func(name string) string { return jsonwire.Member(value, name) }
	for _, raw := range [...]string{
		member("feedback"), jsonwire.Member(member("refineFeedback"), "text"),
		of("feedback"), jsonwire.Member(of("refineFeedback"), "text"), of("comment"),
	} {
		if text := jsonwire.Text(raw); text != "" {
			return text
		}
	}
	return ""
}

// answeredBy sets facts of an answer to an approval that stand in members without a field.
func answeredBy(payload, verdict string, word, feedback *string) {
	*word = cmp.Or(*word, strings.Clone(telling(answerOf(payload), verdict)))
	*feedback = cmp.Or(*feedback,
		strings.Clone(feedbackOf(func(name string) string { return jsonwire.Member(payload, name) })))
}
