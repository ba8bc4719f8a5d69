package agentevents

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/canonjson"
)

// A question is an open approval or clarification. It closes with its answer, with
// the return of the call that it is about, with its agent's end or new attempt, or
// with the run's end.
type question struct {
	questionKey
	call  callKey          // its agent, and the call that it is about; both may be empty
	at    int              // index of its record; 0 in an emitter
	links [2]questionLinks // in the lists of its agent and of its call
}

// A questionKey joins a request and its answer.
type questionKey struct {
	kind Kind   // of the request
	id   string // approval id or interrupt id
}

type questionLinks struct{ prev, next *question }

// questions are the open questions of a run. To open or close one costs the same
// however many are open.
type questions struct {
	open    map[questionKey]*question
	byAgent map[string]*question // the first one of a list
	byCall  map[callKey]*question
	number  map[string]int // of the questions of an agent
	free    *question      // for use again
}

const ofAgent, ofCall = 0, 1 // indexes of question.links

// add adds an open question. It replaces one of the same key.
func (q *questions) add(key questionKey, call callKey, at int) {
	q.take(key)
	x := q.free
	if x == nil {
		x = &question{}
	} else {
		q.free = x.links[0].next
	}
	*x = question{questionKey: key, call: call, at: at}
	put(&q.open, key, x)
	if call.agent != "" {
		x.push(ofAgent, q.byAgent[call.agent])
		put(&q.byAgent, call.agent, x)
		put(&q.number, call.agent, q.number[call.agent]+1)
	}
	if call.call != "" {
		x.push(ofCall, q.byCall[call])
		put(&q.byCall, call, x)
	}
}

// push puts a question in front of a list.
func (x *question) push(list int, first *question) {
	if x.links[list].next = first; first != nil {
		first.links[list].prev = x
	}
}

// take removes an open question and returns the index of its record.
func (q *questions) take(key questionKey) (at int, ok bool) {
	x := q.open[key]
	if x == nil {
		return 0, false
	}
	at = x.at
	delete(q.open, key)
	cut(x, ofAgent, q.byAgent, x.call.agent)
	if n := q.number[x.call.agent] - 1; n > 0 {
		q.number[x.call.agent] = n
	} else {
		delete(q.number, x.call.agent)
	}
	cut(x, ofCall, q.byCall, x.call)
	*x = question{links: [2]questionLinks{{next: q.free}}}
	q.free = x
	return at, true
}

// cut takes a question out of a list, and the list out of the map when it was the last.
func cut[K comparable](x *question, list int, first map[K]*question, key K) {
	l := x.links[list]
	if l.next != nil {
		l.next.links[list].prev = l.prev
	}
	switch {
	case l.prev != nil:
		l.prev.links[list].next = l.next
	case first[key] != x: // it is in no such list
	case l.next != nil:
		first[key] = l.next
	default:
		delete(first, key)
	}
}

// rename gives the questions of an agent to another one.
func (q *questions) rename(agent, to string) {
	var list []question
	for x := q.byAgent[agent]; x != nil; x = x.links[ofAgent].next {
		list = append(list, *x)
	}
	for _, x := range slices.Backward(list) {
		q.take(x.questionKey)
		q.add(x.questionKey, callKey{to, x.call.call}, x.at)
	}
}

// about returns the number of open questions about a call.
func (q *questions) about(call callKey) (n int) {
	for x := q.byCall[call]; x != nil; x = x.links[ofCall].next {
		n++
	}
	return n
}

// of returns the number of open questions of an agent.
func (q *questions) of(agent string) int { return q.number[agent] }

// about returns the agent of a request, if it has one, and its call.
func (m *machine) about(sub *subject, call string) callKey {
	if sub.agent == nil {
		return callKey{"", call}
	}
	return callKey{sub.agent.AgentID, call}
}

// ask opens a question, the record of which is not closed yet.
func (m *machine) ask(ev *Event, sub *subject, key questionKey, about callKey, at int) {
	m.questions.add(key, about, at)
	if m.TerminalKind != "" {
		m.closeQuestion(key, m.TerminalKind)
	} else if ev.Marks.Has(MarkLate) && m.atRest(sub.agent) {
		m.closeQuestion(key, KindAgentEnded) // which came before
	}
}

// closeQuestion closes a question, if it is open, because of an event of the kind by.
func (m *machine) closeQuestion(key questionKey, by Kind) (at int, ok bool) {
	at, ok = m.questions.take(key)
	if ok && key.kind == KindApprovalRequested && by != KindApprovalGranted {
		m.approvals.drop(key.id)
	}
	switch {
	case !ok || m.view == nil:
	case key.kind == KindApprovalRequested:
		a := &m.view.s.Approvals[at]
		a.Open, a.ClosedBy = false, by
	default:
		c := &m.view.s.Clarifications[at]
		c.Open, c.ClosedBy = false, by
	}
	return at, ok
}

// closeQuestionsOf closes the questions of an agent.
func (m *machine) closeQuestionsOf(agent string, by Kind) {
	for x := m.questions.byAgent[agent]; x != nil; x = m.questions.byAgent[agent] {
		m.closeQuestion(x.questionKey, by)
	}
}

// closeQuestionsAbout closes the questions about a call.
func (m *machine) closeQuestionsAbout(call callKey, by Kind) {
	for x := m.questions.byCall[call]; x != nil; x = m.questions.byCall[call] {
		m.closeQuestion(x.questionKey, by)
	}
}

// RuleApprovalOpen: only an open approval is granted or rejected, and granted only within the Timeout
// of its request.
const RuleApprovalOpen Rule = "approval-open"

// granted is the word of an approval's earlyEnd.
const granted = "granted"

// approvalOf returns the key of the approval that an answer names.
func approvalOf(ev *Event) questionKey {
	switch p := ev.Payload.(type) {
	case *ApprovalGranted:
		return questionKey{KindApprovalRequested, p.ApprovalID}
	case *ApprovalRejected:
		return questionKey{KindApprovalRequested, p.ApprovalID}
	}
	return questionKey{}
}

func (m *machine) checkApprovalAnswered(ev *Event, _ *subject) *RuleError {
	key := approvalOf(ev)
	open := m.questions.open[key] != nil
	switch {
	case open && m.grantedTooLate(ev):
		return m.refuse(ev, RuleApprovalOpen, named("approval", key.id), "too old",
			"an approval is granted within the Timeout of its request; legal: approval.rejected, or approval.requested again")
	case open || m.Resume.cut:
		return nil
	}
	return m.refuse(ev, RuleApprovalOpen, named("approval", key.id), "not open",
		"only an open approval is answered; legal: approval.requested first")
}

// grantedTooLate reports whether an event grants an approval whose request no longer stands.
func (m *machine) grantedTooLate(ev *Event) bool {
	p, ok := ev.Payload.(*ApprovalGranted)
	if !ok {
		return false
	}
	x := m.approvals.byID[p.ApprovalID]
	return x != nil && !x.granted && x.stands.OK && TimeKnown(x.asked) && TimeKnown(ev.Time) && ev.Time.After(x.asked.Add(x.stands.V))
}

func (m *machine) approvalRequested(ev *Event, sub *subject) {
	p := ev.Payload.(*ApprovalRequested)
	key, about, at := questionKey{KindApprovalRequested, p.ApprovalID}, m.about(sub, p.CallID), 0
	// A second request with the id of an open one replaces it: the answer belongs
	// to the later request.
	if end, late := m.beginsLate(earlyEnd{kind: key.kind, id: key.id, at: ev.Time}); late {
		x := &approval{callKey: about, tool: p.ToolID, digest: p.ArgumentsHash, stands: p.Timeout, asked: ev.Time}
		if m.view != nil {
			a, at := m.view.approvalRequestedLate(ev, p, about, &end)
			key.id, x.callKey.call, x.tool, x.digest, x.at = a.ApprovalID, a.CallID, a.ToolID, a.ArgumentsHash, at
		}
		if end.word == granted {
			m.approvals.add(key.id, x)
			m.approvals.grant(key.id, end.at, "", "")
		}
		return
	}
	m.closeQuestion(key, KindApprovalRequested)
	if m.view != nil {
		key.id, about.call, at = m.view.approvalRequested(ev, p, about)
	}
	x := m.approvals.next()
	*x = approval{callKey: about, tool: p.ToolID, digest: p.ArgumentsHash, stands: p.Timeout, asked: ev.Time, at: at}
	if m.view != nil {
		x.tool, x.digest = m.view.s.Approvals[at].ToolID, m.view.s.Approvals[at].ArgumentsHash
	}
	m.approvals.add(key.id, x)
	if sub.agent != nil && sub.agent.Resume.unnamed {
		m.approvals.unnamed(x.agent, key.id)
	}
	m.ask(ev, sub, key, about, at)
}

func (m *machine) approvalAnswered(ev *Event, sub *subject) {
	key := approvalOf(ev)
	at, open := m.closeQuestion(key, sub.kind.Kind)
	switch yes := sub.kind.Kind == KindApprovalGranted; {
	case !open && yes:
		m.endedFirst(earlyEnd{kind: key.kind, id: key.id, at: ev.Time, word: granted})
	case !open:
		m.endedFirst(earlyEnd{kind: key.kind, id: key.id, at: ev.Time})
	case yes:
		p := ev.Payload.(*ApprovalGranted)
		m.approvals.grant(key.id, ev.Time, strings.Clone(p.ApprovedBy), strings.Clone(p.Feedback))
	}
	m.view.approvalAnswered(ev, sub, at, open)
}

func (m *machine) clarificationRequested(ev *Event, sub *subject) {
	p := ev.Payload.(*ClarificationRequested)
	key, about, at := questionKey{KindClarificationRequested, p.InterruptID}, m.about(sub, p.CallID), 0
	if end, late := m.beginsLate(earlyEnd{kind: key.kind, id: key.id, at: ev.Time}); late {
		m.view.clarificationRequestedLate(ev, sub, p, about, &end)
		return
	}
	m.closeQuestion(key, KindClarificationRequested)
	if m.view != nil {
		key.id, about.call, at = m.view.clarificationRequested(ev, sub, p, about)
	}
	m.ask(ev, sub, key, about, at)
}

func (m *machine) clarificationResolved(ev *Event, sub *subject) {
	id := ev.Payload.(*ClarificationResolved).InterruptID
	at, open := m.closeQuestion(questionKey{KindClarificationRequested, id}, KindClarificationResolved)
	if !open {
		m.endedFirst(earlyEnd{kind: KindClarificationRequested, id: id, at: ev.Time})
	}
	m.view.clarificationResolved(ev, sub, at, open)
}

// An approval is the state of an ApprovalRequested until its one call is made.
type approval struct {
	callKey             // the agent that may call, and the call that the request names
	tool, digest string // of the call to allow; empty for any
	stands       Opt[time.Duration]
	asked        time.Time // time of the request
	granted      bool
	answered     time.Time // time of the grant
	by, feedback string    // of the grant
	at           int       // index of the record in a fold
	id           string    // key in approvals.byID; the text of another event must not replace it
}

// tooOld reports whether the time of a grant is over.
func (x *approval) tooOld(now time.Time) bool {
	return x.stands.OK && now.After(x.answered.Add(x.stands.V))
}

// approvals are those that are asked for or granted, and not used.
type approvals struct {
	byID   map[string]*approval
	byCall map[callKey]string  // ids of granted ones by the calls that their requests name
	spans  map[string][]string // ids by the agents that have no id of their own yet
	free   *approval           // for use again
}

// next returns an approval to fill.
func (a *approvals) next() *approval {
	if x := a.free; x != nil {
		a.free = nil
		return x
	}
	return new(approval)
}

func (a *approvals) add(id string, x *approval) {
	x.id = id
	put(&a.byID, id, x)
	if x.granted && x.call != "" {
		put(&a.byCall, x.callKey, id)
	}
}

// rename gives the approvals of an agent that had no id to its id.
func (a *approvals) rename(agent, to string) {
	for _, id := range a.spans[agent] {
		if x := a.byID[id]; x != nil && x.agent == agent {
			if a.byCall[x.callKey] == id {
				delete(a.byCall, x.callKey)
			}
			x.agent = to
			a.add(id, x)
		}
	}
	delete(a.spans, agent)
}

// unnamed notes that the agent of an approval has no id of its own yet.
func (a *approvals) unnamed(agent, id string) { put(&a.spans, agent, append(a.spans[agent], id)) }

func (a *approvals) drop(id string) {
	x := a.byID[id]
	if x == nil {
		return
	}
	if a.byCall[x.callKey] == id {
		delete(a.byCall, x.callKey)
	}
	delete(a.byID, id)
	a.free = x
}

// grant notes that an approval is granted at a time, and keeps the texts.
func (a *approvals) grant(id string, at time.Time, by, feedback string) {
	if x := a.byID[id]; x != nil {
		x.granted, x.answered, x.by, x.feedback = true, at, by, feedback
		a.add(x.id, x)
	}
}

// digest returns the name of the hash and the SHA-256 of arguments in their canonical form.
// Absent arguments have the digest of the empty text.
func (j JSON) digest() string {
	text, err := canonjson.Append(nil, string(j))
	if err != nil { // absent, or as another program wrote them
		text = []byte(j)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// RuleApprovalBinds: a call that names an approval is the one that was approved: the approval
// is granted and not used yet, the call has its agent, tool and arguments, and comes within
// the Timeout of the request after the grant.
const RuleApprovalBinds Rule = "approval-binds"

// checkApproval checks rule approval-binds. It is apart from check because it needs the
// arguments as they are recorded.
func (m *machine) checkApproval(ev *Event, sub *subject) *RuleError {
	p, ok := ev.Payload.(*ToolCalled)
	if !ok || p.ApprovalID == "" {
		return nil
	}
	state := ""
	x := m.approvals.byID[p.ApprovalID]
	switch {
	case x == nil && m.Resume.cut:
		return nil
	case x == nil:
		state = "not granted, or used"
	case !x.granted:
		state = "open"
	case x.agent != "" && x.agent != sub.key:
		state = "another agent's"
	case x.tool != "" && x.tool != p.ToolID:
		state = "for another tool"
	case x.digest != "" && x.digest != p.Arguments.digest():
		state = "for other arguments"
	case x.tooOld(ev.Time):
		state = "too old"
	default:
		return nil
	}
	return m.refuse(ev, RuleApprovalBinds, named("approval", p.ApprovalID), state,
		"an approval allows one call, as it was approved and in its time; legal: approval.granted for this call first")
}

// useApproval notes that the call that an approval allows was made.
func (m *machine) useApproval(id, call string) {
	x := m.approvals.byID[id]
	if x == nil {
		return
	}
	if m.view != nil {
		m.view.s.Approvals[x.at].UsedBy = call
	}
	m.approvals.drop(id)
}

// bindApproval gives a request the digest of the arguments that it names, unless it has one. It
// returns the payload to record: a copy, as the caller's may be read elsewhere.
func (p *ApprovalRequested) bindApproval() *ApprovalRequested {
	if p.ArgumentsHash != "" || p.Arguments == "" && (p.ToolID == "" || p.CallID != "") {
		return p
	}
	out := *p
	out.ArgumentsHash = out.Arguments.digest()
	return &out
}
