package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// A Mark tells how something went.
type Mark = view.Mark

// The marks. The zero Mark tells nothing.
const (
	None = view.None
	Good = view.Good
	Bad  = view.Bad
	Warn = view.Warn
)

// A Topic is the subject of an [Item].
type Topic string

// The topics.
const (
	Asked      Topic = "asked"      // the request to an agent
	Answered   Topic = "answered"   // the answer of an agent, or of the session
	Said       Topic = "said"       // the last text of an agent that is at work or failed
	Agent      Topic = "agent"      // an agent that failed or waits
	Ended      Topic = "ended"      // the reason for the end of an agent, where the item of the agent does not have it
	Call       Topic = "call"       // a tool call that failed or is open
	Approval   Topic = "approval"   // a request for approval
	Question   Topic = "question"   // questions to a person
	Message    Topic = "message"    // a message of the conversation
	Task       Topic = "task"       // an assigned task
	Handoff    Topic = "handoff"    // a handoff, or the request for one
	Decision   Topic = "decision"   // a decision of an agent or of the supervisor
	Audit      Topic = "audit"      // an audit
	Stated     Topic = "stated"     // audits that an agent states and the log does not have
	Issue      Topic = "issue"      // a finding of a verifier
	Claim      Topic = "claim"      // a verdict on a finding
	Evidence   Topic = "evidence"   // evidence that does not suffice
	Intent     Topic = "intent"     // a classified intent
	Plan       Topic = "plan"       // a proposed plan
	Citation   Topic = "citation"   // a citation
	Round      Topic = "round"      // a round of a loop
	Blackboard Topic = "blackboard" // an item of the blackboard
	Compaction Topic = "compaction" // a compaction of an agent's context
	Command    Topic = "command"    // a command of a person or a program
	Blocked    Topic = "blocked"    // a time in which an agent waited
	Error      Topic = "error"      // an error or a warning of an agent
	Span       Topic = "span"       // a span that no other topic is about
	Turn       Topic = "turn"       // a turn that failed
	Step       Topic = "step"       // a step that failed
	Workflow   Topic = "workflow"   // a workflow or a phase of one that was not completed
	Node       Topic = "node"       // a node of the flow
	Visit      Topic = "visit"      // an agent enters a node
	Edge       Topic = "edge"       // an edge of the flow that is taken or skipped, and how often a loop went round
	Budget     Topic = "budget"     // a budget that ran out, or a cap that was reached
	Violation  Topic = "violation"  // a violated rule, or refused events
	Finding    Topic = "finding"    // a loop, a stall or waste: see package findings
	Other      Topic = "other"      // an event of an unknown kind
)

// A Concern tells whether somebody must look at an item.
type Concern uint8

// The concerns, from the least to the most urgent.
const (
	Nothing Concern = iota // nobody needs to act
	Look                   // somebody may want to look
	Failed                 // something failed
	Waits                  // the run waits for a person
)

// An Item is one line about a run: Subject Mark Status · Facts: Text.
type Item struct {
	Topic    Topic     // the subject's kind
	Concern  Concern   // whether somebody must look
	Sequence uint64    // of its first event; 0 also for an item without an event
	Time     time.Time // of that event; zero when it is not known
	AgentID  string    // the agent that it is about; empty for the run
	Agent    string    // the name of that agent for people
	To       string    // of a message: id of the receiver; empty when it names none
	ToName   string    // the name of that agent for people
	Subject  string    // such as "approval ap2"
	Mark     Mark      // how it went
	Status   string    // a word for how it went, such as "granted by ann"
	Open     bool      // it goes on, or waits
	Facts    []string  // such as "confidence 0.65"
	Text     string    // the words of the log: the question, the reason, the message
	Turn     string    // the name of the turn in which it was asked or answered; empty when the log tells no turn

	times int // number of events that it stands for, when there are several
}

// Times returns the number of events that the item stands for, at least 1.
func (i *Item) Times() int { return max(i.times, 1) }

func (i *Item) fact(text string) {
	if text != "" {
		i.Facts = append(i.Facts, text)
	}
}

// pending has the words for open items in a sentence, by topic.
var pending = map[Topic]string{
	Approval: "waits", Question: "waits", Call: "has not returned",
	Handoff: "is not accepted", Blocked: "waits", Node: "waits",
}

// auditWords are the words for the results of audits in a sentence.
var auditWords = map[string]string{string(agentevents.AuditPass): "passed",
	string(agentevents.AuditFail): "failed", string(agentevents.AuditWarn): "warned"}

// Sentence returns the item as one line for a list of several agents' items.
func (i *Item) Sentence() string {
	owner, status := "", i.Status
	if i.Agent != "" && i.Topic != Agent {
		owner = " of " + i.Agent
	}
	if i.Open {
		status = cmp.Or(pending[i.Topic], status)
	}
	var text string
	switch i.Topic {
	case Agent:
		text = i.Subject + " " + status
		if i.Mark != Bad && i.Mark != Warn && i.Status != "waits" { // it went on
			text = i.Subject + ": " + status
		}
	case Decision:
		text = cmp.Or(i.Agent, "the run") + " " + strings.TrimPrefix(i.Subject, "orchestrator ")
		if len(i.Facts) > 0 {
			text += " (" + strings.Join(i.Facts, ", ") + ")"
		}
	case Message:
		text = strings.Replace(i.Subject, "message", i.Agent, 1)
	case Handoff:
		text = strings.TrimSuffix(i.Subject+" "+status, " ")
	case Blocked:
		text = i.Agent + " is blocked"
	case Audit:
		text = "audit " + strings.TrimPrefix(i.Subject, "audit:") + owner + " " + cmp.Or(auditWords[i.Status], status)
	case Finding: // the text names the agent
		text = i.Subject
	case Ended:
		text = "reason for the end" + owner
	case Issue:
		text = i.Subject + owner + " (" + status + ")"
	default:
		text = strings.TrimSuffix(i.Subject+owner+" "+status, " ")
	}
	if i.Text != "" {
		text += ": " + i.Text
	}
	return text
}

// Attention returns the items that somebody must look at, the most urgent first.
func Attention(items []Item) []Item {
	items = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return i.Concern == Nothing })
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(b.Concern, a.Concern) })
	return items
}

// Reason returns the reason for the status of a run in a few words: the error of a run that
// failed, the question that a waiting run asks. It is empty for a run that goes well.
func Reason(s *agentevents.RunSnapshot, items []Item) string {
	if s.Status == agentevents.RunStatusEnded {
		return short(s.Facts.V.SessionReason, maxNote)
	}
	if view.Over(s) {
		return ""
	}
	if text := cmp.Or(errorText(s.Error.V), s.CancelReason, s.Facts.V.SessionReason); text != "" {
		return short(text, maxNote)
	}
	earlier := "" // of an attempt before the last one, for a run whose last ones tell nothing
	for _, i := range Attention(items) {
		if i.Concern != Waits && (i.Concern != Failed || !s.Status.Terminal()) {
			continue
		}
		text := short(cmp.Or(i.Text, i.Sentence()), maxNote)
		a := s.Agents[i.AgentID]
		if i.Topic != Agent || a == nil || len(a.Earlier) == 0 || view.Conversation(a) || i.Sequence == a.Usage.Sequence {
			return text
		}
		earlier = cmp.Or(earlier, text)
	}
	return earlier
}

// Of returns the items of a run, in the order of their first events; those without an event
// come last. Nil details add nothing. The items share no memory with the snapshot.
func Of(s *agentevents.RunSnapshot, d *Details) []Item {
	c := collector{
		s: s, d: d.run(s.RunID), over: s.Status.Terminal(),
		names: map[string]string{}, said: map[said]bool{}, taken: view.Retracted(s),
	}
	if s.SessionID != "" && s.SessionStatus != "" { // the session has ended, and with it its runs
		c.over = c.over || !s.SessionEndedAt.IsZero()
	}
	c.agents()
	c.people()
	c.work()
	c.flows()
	c.findings()
	c.details()
	slices.SortStableFunc(c.items, func(a, b Item) int {
		// a question is before its answer
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), -cmp.Compare(btoi(a.Topic == Asked), btoi(b.Topic == Asked)))
	})
	c.state()
	return c.items
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

type collector struct {
	s     *agentevents.RunSnapshot
	d     *runDetails
	over  bool              // nobody is waited for any more
	names map[string]string // of agents, by id
	said  map[said]bool     // answers of turns
	taken *view.Taken
	items []Item
}

// A said is a text of an agent.
type said struct{ agent, text string }

func (c *collector) add(i Item) {
	i.Agent = cmp.Or(c.names[i.AgentID], i.AgentID)
	if i.To != "" {
		i.ToName = cmp.Or(c.names[i.To], i.To)
		i.Subject = "message to " + i.ToName
	}
	c.items = append(c.items, i)
}

// waits returns the concern of something open.
func (c *collector) waits(open bool) Concern {
	switch {
	case !open:
		return Nothing
	case c.over:
		return Look
	}
	return Waits
}

// agents adds the requests to agents, their answers, and the agents that failed or wait.
func (c *collector) agents() {
	all := view.Of(c.s)
	agents := c.s.AgentsInOrder()
	c.names = Names(agents)
	c.turns()
	answered := false
	for _, a := range agents {
		attempts := view.Attempts(a)
		if view.Conversation(a) && len(a.Earlier) > 0 {
			c.conversation(a)
		}
		for n, t := range attempts {
			if t.Dropped > 0 {
				continue
			}
			last := n == len(attempts)-1
			answered = c.attempt(all, a, t, n == 0, last) || answered
		}
	}
	if text := valueText(c.s.SessionResult); text != "" && !answered {
		c.add(Item{Topic: Answered, Subject: "answer", Text: text, Sequence: c.s.NextSequence, Time: c.s.SessionEndedAt})
	}
	if text := requested(c.s); text != "" && !slices.ContainsFunc(c.items, func(i Item) bool { return i.Topic == Asked }) {
		c.add(Item{Topic: Asked, Subject: "prompt", Text: text, Time: c.s.StartedAt})
	}
}

// conversation adds the questions and answers of the turns of a conversation but the first question and
// the last answer.
func (c *collector) conversation(a *agentevents.AgentSnapshot) {
	turns := a.AttemptsInOrder()
	for n, t := range turns {
		i := Item{
			Topic: Asked, Subject: "prompt", Sequence: t.Sequence, Time: t.StartedAt,
			AgentID: a.AgentID, Text: c.d.of(a.AgentID).prompts[t.Sequence],
		}
		if n > 0 && i.Text != "" {
			c.add(i)
		}
		i.Topic, i.Subject, i.Text = Answered, "answer", short(cmp.Or(t.Result, t.Text), maxPrompt)
		if t.Result == "" && c.d.of(a.AgentID).silent[t.Sequence] {
			i.Topic, i.Subject = Said, "last text"
		}
		if n < len(turns)-1 && i.Text != "" {
			c.add(i)
		}
	}
}

// attempt adds the request to an attempt of an agent, its answer, and its failure. It reports
// whether it answers a request of somebody outside the run.
func (c *collector) attempt(all *view.Agents, a *agentevents.AgentSnapshot,
	t view.Attempt, first, last bool) (answered bool) {
	d := c.d.of(a.AgentID)
	why := d.whys[t.Sequence]
	if last {
		why = d.why
	}
	of := Item{Sequence: t.Sequence, Time: t.StartedAt, AgentID: a.AgentID}
	which := ""
	if t.Several {
		which = " (attempt " + strconv.Itoa(t.Attempts) + ")"
	}
	add := func(i Item) {
		c.add(i)
		c.items[len(c.items)-1].Agent += which
	}
	text := short(t.Task, maxPrompt)
	if first {
		text = cmp.Or(d.prompt, text)
	} else {
		text = cmp.Or(d.prompts[t.Sequence], text)
	}
	if text != "" {
		i := of
		i.Topic, i.Subject, i.Text = Asked, "prompt", text
		add(i)
	}
	status, mark := all.Status(a.AgentID, t.AgentSnapshot)
	if text := short(cmp.Or(t.Result, t.Text), maxPrompt); text != "" && !c.said[said{a.AgentID, text}] {
		i := of
		if !t.Several && len(a.Earlier) > 0 {
			i.Sequence, i.Time = a.Usage.Sequence, a.StartedAt // of the last turn
		}
		i.Topic, i.Subject, i.Text = Answered, "answer", text
		// A model often writes a text before its calls, too.
		if t.Result == "" && (t.Started && !t.Ended || mark == Bad || d.silent[t.Sequence]) {
			i.Topic, i.Subject = Said, "last text"
		}
		if c.taken.Text(a.AgentID, cmp.Or(t.Result, t.Text)) {
			i.Mark, i.Status = Warn, view.TakenBack
		}
		add(i)
		answered = i.Topic == Answered && t.ParentAgentID == "" && t.ParentCallID == ""
	}
	if _, audits := view.Unlogged(t.AgentSnapshot); audits > 0 {
		i := of
		i.Topic, i.Subject, i.Status = Stated, view.Count(audits, "audit"), "stated"
		if failed := view.UnloggedFailures(t.AgentSnapshot); failed > 0 {
			i.Status, i.Concern, i.Mark = "stated, "+strconv.Itoa(failed)+" failed", Failed, Bad
		}
		add(i)
	}
	i := of
	i.Topic, i.Subject = Agent, "agent "+c.names[a.AgentID]+which
	i.Status, i.Mark = status, mark
	i.Text = cmp.Or(errorText(t.Error.V), errorText(t.LastError.V), short(t.EndReason, maxNote), why)
	switch {
	case i.Mark == Bad, i.Mark == Warn:
		i.Concern = Failed
	case last && a.Status == agentevents.StatusBlockedOnClarification && why != "":
		i.Status, i.Text, i.Concern = "waits", why, c.waits(true)
	case t.LastError.OK:
		i.Status, i.Concern = view.Count(t.Errors, "error")+", the last one", Look
	}
	if i.Concern != Nothing {
		add(i)
	}
	if reason := short(t.EndReason, maxNote); reason != "" && (i.Concern == Nothing || i.Text != reason) {
		i = of
		i.Topic, i.Subject, i.Text, i.Concern = Ended, "reason", reason, Look
		add(i)
	}
	return answered
}

// turns adds the questions and answers of the turns that the log tells.
func (c *collector) turns() {
	for i := range c.s.Turns {
		t := &c.s.Turns[i]
		of := Item{Sequence: t.Sequence, Time: t.StartedAt, AgentID: t.AgentID, Turn: TurnName(t)}
		if c.taken.Text(t.AgentID, cmp.Or(t.Text, t.Said)) {
			of.Mark, of.Status = Warn, view.TakenBack
		}
		if of.Text = cmp.Or(short(t.Asked, maxPrompt), c.d.of(t.AgentID).asked[t.Sequence]); of.Text != "" {
			of.Topic, of.Subject = Asked, "prompt"
			c.add(of)
		}
		if of.Text = short(cmp.Or(t.Text, t.Said), maxPrompt); of.Text != "" {
			of.Topic, of.Subject = Answered, "answer"
			if t.Text == "" && (t.Error.OK || c.d.of(t.AgentID).silent[t.EndSequence]) {
				of.Topic, of.Subject = Said, "last text"
			}
			c.said[said{t.AgentID, of.Text}] = true
			c.add(of)
		}
	}
}

// TurnName returns the name of a turn for people.
func TurnName(t *agentevents.TurnSnapshot) string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Turn.OK:
		return "turn " + strconv.Itoa(t.Turn.V)
	}
	return "turn"
}

// Names returns the names of agents for people, by their ids. The id stands beside a name that
// several agents have.
func Names(agents []*agentevents.AgentSnapshot) map[string]string {
	names, number := map[string]string{}, map[string]int{}
	for _, a := range agents {
		names[a.AgentID] = view.Name(a.AgentID, a)
		number[names[a.AgentID]]++
	}
	for id, name := range names {
		if name != id && number[name] > 1 {
			names[id] = name + " (" + id + ")"
		}
	}
	return names
}

// requested returns the last message of a user in the run or its input: logs of AG-UI have no
// prompts of agents.
func requested(s *agentevents.RunSnapshot) (text string) {
	for raw := range jsonwire.Elements(jsonwire.Member(string(s.Inputs), "messages")) {
		if jsonwire.Text(jsonwire.Member(raw, "role")) == "user" {
			text = cmp.Or(jsonwire.Text(jsonwire.Member(raw, "content")), text)
		}
	}
	for _, m := range s.Messages {
		if m.Role == "user" {
			text = cmp.Or(jsonwire.Text(string(m.Content)), text)
		}
	}
	return short(text, maxPrompt)
}

// unanswered tells why a question has no answer, by the kind of event that closed it.
var unanswered = map[agentevents.Kind]string{
	agentevents.KindApprovalRequested:      "asked again",
	agentevents.KindClarificationRequested: "asked again",
	agentevents.KindToolReturned:           "unanswered when the call returned",
	agentevents.KindAgentEnded:             "unanswered when the agent ended",
	agentevents.KindAgentStarted:           "unanswered when the agent started again",
	agentevents.KindRunCompleted:           "unanswered when the run ended",
	agentevents.KindRunFailed:              "unanswered when the run ended",
	agentevents.KindRunCancelled:           "unanswered when the run ended",
}

// people adds questions to people, and their answers.
func (c *collector) people() {
	for i := range c.s.Approvals {
		ap := &c.s.Approvals[i]
		l := Item{
			Topic: Approval, Sequence: ap.Sequence, Time: ap.RequestedAt, AgentID: ap.AgentID,
			Subject: cmp.Or(Unasked("approval", ap.ApprovalID, ap.RequestedAt, ap.AnsweredAt),
				asked("approval", ap.ApprovalID, ap.Open)), Concern: c.waits(ap.Open),
		}
		if ap.CallID != "" {
			l.Subject += " of call " + ap.CallID
		}
		word, mark := Answer(ap.Granted, ap.Answer)
		if ap.By != "" {
			word += " by " + ap.By
		}
		if why := unanswered[ap.ClosedBy]; why != "" {
			mark, word = Warn, why
		}
		l.close(ap.Open, mark, word)
		l.fact(view.Between(ap.RequestedAt, ap.AnsweredAt))
		l.Text = Dashed(Dashed(cmp.Or(ap.Action, ap.ToolID), ap.Reason), ap.Feedback)
		c.add(l)
	}
	for i := range c.s.Clarifications {
		q := &c.s.Clarifications[i]
		l := Item{
			Topic: Question, Sequence: q.Sequence, Time: q.RequestedAt, AgentID: q.AgentID,
			Subject: cmp.Or(Unasked("clarification", q.InterruptID, q.RequestedAt, q.AnsweredAt),
				asked("clarification", q.InterruptID, q.Open)), Concern: c.waits(q.Open),
		}
		word := "answered"
		mark := Good
		if q.AnsweredBy != "" {
			word += " by " + q.AnsweredBy
		}
		if why := unanswered[q.ClosedBy]; why != "" {
			mark, word = Warn, why
		}
		l.close(q.Open, mark, word)
		l.fact(view.Between(q.RequestedAt, q.AnsweredAt))
		if n := len(q.Questions); n > 1 {
			l.fact(view.Count(n, "question"))
		}
		var texts []string
		for i := range q.Questions {
			texts = append(texts, Dashed(q.Questions[i].Question, AnswerTo(q.Questions[i].ID, q.Answers)))
		}
		l.Text = strings.Join(texts, "; ")
		c.add(l)
	}
}

// Answer returns the word for an answer to an approval, and its mark. own is the answer's own word,
// if it tells more than yes or no: it stands alone unless it is a grant or a refusal of another kind.
func Answer(granted bool, own string) (word string, mark Mark) {
	how := endword.Of(own)
	switch {
	case own == "" && granted:
		return "granted", Good
	case own == "":
		return "rejected", Bad
	case granted:
		return "granted (" + short(own, maxWhy) + ")", Good
	case how == endword.Refused:
		return "rejected (" + short(own, maxWhy) + ")", Bad
	case endword.Lapsed(own):
		return short(own, maxWhy), Warn // nobody has refused
	}
	return short(own, maxWhy), view.MarkOf(how)
}

// close gives an item the mark and word of something that is done, or notes that it is open.
func (i *Item) close(open bool, m Mark, word string) {
	i.Mark, i.Status, i.Open = m, word, open
	if open {
		i.Mark, i.Status = None, "open"
	}
}

// AnswerTo returns the answer to a question, a text as it is and other JSON on one line.
func AnswerTo(id string, answers agentevents.JSON) string {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(answers), &all) != nil || all[id] == nil {
		return ""
	}
	return valueText(agentevents.JSON(all[id]))
}

// work adds calls, tasks, handoffs and audits.
func (c *collector) work() {
	for _, call := range slices.Concat(c.s.ClosedCalls, c.s.OpenCalls) {
		if call == nil {
			continue
		}
		how := view.MarkOf(endword.Of(string(call.Status)))
		if how == Good {
			continue
		}
		l := Item{
			Topic: Call, Sequence: call.Sequence, Time: call.StartedAt, AgentID: call.AgentID,
			Subject: words("call", call.CallID) + " (" + call.ToolID + ")", Concern: Failed,
		}
		l.close(call.Status == "", how, cmp.Or(call.Word, string(call.Status)))
		if l.Open {
			l.Concern = Look
		}
		l.Text = Dashed(c.d.of(call.AgentID).calls[call.Sequence], call.Error)
		if l.Text == "" && !l.Open {
			l.Text = "no reason given"
		}
		c.add(l)
	}
	for i := range c.s.Turns {
		t := &c.s.Turns[i]
		c.failed(Item{
			Topic: Turn, Sequence: t.Sequence, Time: t.StartedAt, AgentID: t.AgentID, Subject: TurnName(t),
		}, t.Error, t.EndMadeUp)
	}
	for i := range c.s.Steps {
		st := &c.s.Steps[i]
		c.failed(Item{
			Topic: Step, Sequence: st.Sequence, Time: st.StartedAt, AgentID: st.AgentID, Subject: stepName(st),
		}, st.Error, false)
	}
	for i := range c.s.Tasks {
		t := &c.s.Tasks[i]
		c.add(Item{Topic: Task, Sequence: t.Sequence, AgentID: t.AgentID, Subject: words("task", t.TaskID), Text: t.Goal})
	}
	for i := range c.s.Handoffs {
		h := &c.s.Handoffs[i]
		l := Item{
			Topic: Handoff, Sequence: h.Sequence, AgentID: cmp.Or(h.Within, h.From),
			Subject: "handoff " + h.From + " → " + h.To, Text: h.Reason,
		}
		l.close(h.Open, Good, "")
		if h.Ended != "" { // nobody accepts it any more
			l.Mark, l.Status = view.MarkOf(endword.Of(h.Ended)), cmp.Or(handoffWords[h.Ended], h.Ended)
			l.Text = cmp.Or(errorText(h.Error.V), l.Text)
		}
		if h.Open || l.Mark == Bad {
			l.Concern = Look
		}
		c.add(l)
	}
	for i := range c.s.Audits {
		a := &c.s.Audits[i]
		l := Item{
			Topic: Audit, Sequence: a.Sequence, AgentID: a.AgentID,
			Subject: a.CheckpointID, Status: string(a.Result), Mark: Warn,
		}
		if !strings.HasPrefix(l.Subject, "audit:") {
			l.Subject = words("audit", a.CheckpointID)
		}
		switch a.Result {
		case agentevents.AuditPass:
			l.Mark = Good
		case agentevents.AuditFail:
			l.Mark, l.Concern = Bad, Failed
		}
		l.fact(view.Duration(a.Duration))
		c.add(l)
	}
}

// failed adds a turn or a step that failed or was cancelled.
func (c *collector) failed(l Item, err agentevents.Opt[agentevents.ErrorInfo], madeUp bool) {
	word, how := view.Error(err)
	if how == endword.Succeeded {
		return
	}
	l.Concern, l.Mark, l.Status = Failed, view.MarkOf(how), word+view.MadeUp(madeUp)
	if how == endword.Cancelled {
		l.Concern = Look
	}
	if err.V.Code != word {
		l.Text = errorText(err.V)
	}
	c.add(l)
}

// stepName returns the name of a step for people, which begins with the word step.
func stepName(st *agentevents.StepSnapshot) string {
	if strings.HasPrefix(st.Name, "step") {
		return st.Name
	}
	return words("step", cmp.Or(st.Name, st.StepID))
}

// handoffWords are the words for how a handoff ends that nobody accepts, by its phase.
var handoffWords = map[string]string{"error": "failed"}

// findings adds issues, intents, plans, citations, evidence and claims.
func (c *collector) findings() {
	for i := range c.s.Issues {
		is := &c.s.Issues[i]
		c.add(Item{
			Topic: Issue, Concern: Look, Sequence: is.Sequence, AgentID: is.AgentID,
			Subject: "issue", Mark: Warn, Status: cmp.Or(is.Severity, "found"), Text: is.Issue,
		})
	}
	f := &c.s.Facts.V
	for i := range f.Intents {
		in := &f.Intents[i]
		l := Item{Topic: Intent, Sequence: in.Sequence, AgentID: in.AgentID, Subject: "intent", Status: in.Intent}
		l.confidence(in.Confidence)
		c.add(l)
	}
	for i := range f.Plans {
		p := &f.Plans[i]
		l := Item{Topic: Plan, Sequence: p.Sequence, AgentID: p.AgentID, Subject: "plan", Status: p.Strategy}
		l.fact(view.Count(len(p.Steps), "step"))
		var steps []string
		for i := range p.Steps {
			steps = append(steps, p.Steps[i].Description)
		}
		l.Text = strings.Join(steps, "; ")
		c.add(l)
	}
	for i := range f.Citations {
		ci := &f.Citations[i]
		l := Item{
			Topic: Citation, Sequence: ci.Sequence, AgentID: ci.AgentID,
			Subject: words("citation", ci.SourceURI), Text: ci.Claim,
		}
		if ci.Verified {
			l.Mark, l.Status = Good, "verified"
		}
		l.confidence(ci.Confidence)
		c.add(l)
	}
	for i := range f.Insufficiencies {
		in := &f.Insufficiencies[i]
		l := Item{
			Topic: Evidence, Concern: Look, Sequence: in.Sequence, AgentID: in.AgentID, Subject: "evidence",
			Mark: Warn, Status: "insufficient", Text: lacking(in.Reason, in.WhatWouldResolve),
		}
		c.add(l)
	}
	for i := range c.s.Claims {
		cl := &c.s.Claims[i]
		l := Item{
			Topic: Claim, Sequence: cl.Sequence, AgentID: cl.VerifierAgentID,
			Subject: "claim " + cl.FindingID, Status: cl.Verdict,
		}
		if l.Mark = view.MarkOf(endword.Of(cl.Verdict)); l.Mark == Bad {
			l.Concern = Look
		}
		c.add(l)
	}
}

// lacking returns the reason why evidence does not suffice, and a remedy.
func lacking(reason, remedy string) string {
	if remedy != "" {
		remedy = "would resolve it: " + remedy
	}
	return Dashed(reason, remedy)
}

func (i *Item) confidence(c agentevents.Opt[float64]) {
	if c.OK {
		i.fact("confidence " + strconv.FormatFloat(c.V, 'g', 4, 64))
	}
}

// details adds the notes.
// flows adds the workflows and the phases that ended with another word than their documents have.
func (c *collector) flows() {
	add := func(sequence uint64, at time.Time, subject, word string, err agentevents.Opt[agentevents.ErrorInfo]) {
		if word != "" {
			i := Item{
				Topic: Workflow, Sequence: sequence, Time: at, Subject: subject,
				Mark: view.MarkOf(endword.Of(word)), Status: word, Text: errorText(err.V),
			}
			if i.Mark == Bad {
				i.Concern = Failed
			}
			c.add(i)
		}
	}
	for i := range c.s.Workflows {
		w := &c.s.Workflows[i]
		add(w.Sequence, time.Time{}, words("workflow", w.WorkflowID), w.Ended, w.Error)
	}
	for i := range c.s.Phases {
		p := &c.s.Phases[i]
		add(p.Sequence, p.StartedAt, words("phase", p.Phase), p.Ended, p.Error)
	}
}

// isShown reports whether an event of an unknown kind is the end of a workflow, a phase or a handoff
// that the snapshot has: the line of that one tells it.
func (c *collector) isShown(i *Item) bool {
	domain, word, how := endword.OfType(i.Subject)
	if i.Topic != Other || how == endword.Unknown {
		return false
	}
	ends := 0
	switch domain {
	case "workflow.":
		for j := range c.s.Workflows {
			ends += btoi(c.s.Workflows[j].Ended == word)
		}
	case "workflow.phase.":
		for j := range c.s.Phases {
			ends += btoi(c.s.Phases[j].Ended == word)
		}
	case "handoff.":
		for j := range c.s.Handoffs {
			ends += btoi(c.s.Handoffs[j].Ended == word)
		}
	}
	return ends >= i.Times()
}

func (c *collector) details() {
	if c.d == nil {
		c.messages()
		return
	}
	for _, one := range c.d.found.Findings() {
		l := Item{
			Topic: Finding, Concern: Look, Sequence: one.Sequences[0], Time: one.Since, AgentID: one.AgentID,
			Subject: string(one.Kind), Mark: Warn, Status: string(one.Severity), Open: one.Open, Text: one.Text,
		}
		if one.Cost.Tokens.OK {
			l.fact(view.Count(one.Cost.Tokens.V, "token"))
		}
		if one.Cost.CostUSD.OK {
			l.fact(view.Dollars(one.Cost.CostUSD.V))
		}
		l.times = one.Count
		c.add(l)
	}
	taken := map[uint64]bool{} // sequences
	for i := range c.s.RetractedMessages {
		if at, ok := c.d.messages[c.s.RetractedMessages[i].MessageID]; ok {
			taken[at] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.d.agents)) {
		for _, n := range c.d.agents[id].notes {
			l := n.Item
			if n.moot || c.isShown(&l) {
				continue
			}
			l.AgentID = id
			l.Facts = slices.Clone(l.Facts)
			if l.Topic == Message && taken[l.Sequence] {
				l.Mark, l.Status = Warn, view.TakenBack
			}
			if n.open {
				l.close(true, None, "")
			}
			c.add(l)
		}
	}
}

// messages adds the conversation of a snapshot without details: it has no sequences, but the order.
func (c *collector) messages() {
	for i := range c.s.Messages {
		c.add(messageItem(&c.s.Messages[i]))
	}
}

// messageItem returns a message as an item of its sender.
func messageItem(m *agentevents.ConversationMessage) Item {
	l := Item{
		Topic: Message, AgentID: strings.Clone(m.From), To: strings.Clone(m.To),
		Subject: "message", Text: valueText(m.Content),
	}
	if m.To != "" {
		l.Subject += " to " + m.To
	}
	return l
}

// state adds nodes, budgets and violations.
func (c *collector) state() {
	for _, id := range slices.Sorted(maps.Keys(c.s.NodeStatus)) {
		status := c.s.NodeStatus[id]
		l := Item{Topic: Node, Subject: "node " + id}
		l.Status, l.Text = view.Node(c.s, id)
		switch status {
		case agentevents.NodeStatusDone:
			if l.Status == string(status) { // else it is skipped
				l.Mark = Good
			}
		case agentevents.NodeStatusFailed:
			l.Mark, l.Concern = Bad, Failed
		case agentevents.NodeStatusSuspended:
			l.Open, l.Concern = !c.s.Status.Terminal(), c.waits(!c.over)
		case agentevents.NodeStatusRunning:
			l.Open = !c.s.Status.Terminal()
		}
		if agent := c.s.Facts.V.NodeAgents[id].AgentID; agent != "" {
			l.fact("agent " + cmp.Or(c.names[agent], agent))
		}
		c.add(l)
	}
	for i := range c.s.Budgets {
		b := &c.s.Budgets[i]
		l := Item{
			Topic: Budget, Concern: Look, Sequence: b.Sequence,
			Subject: "budget " + b.Budget, Mark: Warn, Status: "exceeded", Text: b.Reason,
		}
		if b.Cap {
			l.Subject, l.Status = "cap "+b.Budget, "reached"
		}
		if b.Actual.V != 0 || b.Limit.V != 0 { // else the log may not state them
			if b.Actual.OK {
				l.fact(number(b.Actual.V))
			}
			if b.Limit.OK {
				l.fact("limit " + number(b.Limit.V))
			}
		}
		c.add(l)
	}
	for _, v := range c.s.Violations {
		if v == nil { // in a snapshot made by hand
			continue
		}
		c.add(Item{Topic: Violation, Concern: Look, Subject: strings.TrimPrefix(v.Error(), "agentevents: ")})
	}
	if n := c.s.ViolationCount - len(c.s.Violations); n > 0 {
		c.add(Item{
			Topic: Violation, Concern: Look,
			Subject: "and " + view.Count(n, "more violation") + "; 'agentevents check' lists them",
		})
	}
	if c.s.Refused > 0 {
		c.add(Item{
			Topic: Violation, Concern: Look, Subject: view.Count(c.s.Refused, "event") + " refused while the run was recorded",
		})
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func errorText(e agentevents.ErrorInfo) string { return cmp.Or(e.Message, e.Code) }

// asked returns a head and the id of a question. The id of an open one is needed for the answer; a UUID
// of one that is over tells nothing.
func asked(head, id string, open bool) string {
	if _, err := uuid.Parse(id); err == nil && !open {
		return head
	}
	return words(head, id)
}

// Unasked returns the name of a question that is answered and that the log does not have, or "" if the
// log has it. The id may be made up from the answer.
func Unasked(head, id string, requested, answered time.Time) string {
	if !requested.IsZero() || answered.IsZero() {
		return ""
	}
	return asked(head, id, false) + " that the log lacks"
}

// words returns a head and an id. One that a reader has derived from the log tells nothing.
func words(head, id string) string {
	if derived := len(id) == 36 && id[14] == '8'; id == "" || derived { // a UUID of version 8
		return head
	}
	return head + " " + id
}
