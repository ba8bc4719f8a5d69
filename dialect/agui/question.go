package agui

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A question is one that a run waits with for a person, and the JSON of its interrupt.
type question struct {
	id, agent, call, interrupt string
	number                     int // of the questions of the run
	approval                   bool
}

// questions holds the open questions of a run. Opening and closing one costs the same however many
// there are. The zero value is empty.
type questions struct {
	open  map[string]*question             // by id
	of    map[about]map[*question]struct{} // by the agent and the call that they are about
	asked int
}

// An about is an agent or a call.
type about struct{ agent, call string }

func (q *questions) add(asked question) {
	if q.open == nil {
		q.open, q.of = map[string]*question{}, map[about]map[*question]struct{}{}
	}
	q.close(asked.id)
	q.asked++
	asked.id, asked.agent, asked.call, asked.number = strings.Clone(asked.id), strings.Clone(asked.agent),
		strings.Clone(asked.call), q.asked
	q.open[asked.id] = &asked
	for _, of := range asked.about() {
		if q.of[of] == nil {
			q.of[of] = map[*question]struct{}{}
		}
		q.of[of][&asked] = struct{}{}
	}
}

// close closes the question of that id, if it is open.
func (q *questions) close(id string) {
	was := q.open[id]
	if delete(q.open, id); was == nil {
		return
	}
	for _, of := range was.about() {
		if delete(q.of[of], was); len(q.of[of]) == 0 {
			delete(q.of, of)
		}
	}
}

// closeOf closes the questions about an agent or a call.
func (q *questions) closeOf(of about) {
	for asked := range q.of[of] {
		q.close(asked.id)
	}
}

// about returns the agent and the call of a question, unless they are empty.
func (q *question) about() (list []about) {
	if q.agent != "" {
		list = append(list, about{agent: q.agent})
	}
	if q.call != "" {
		list = append(list, about{call: q.call})
	}
	return list
}

// ask records the questions that an event opens and closes.
func (k *kept) ask(ev *agentevents.Event) {
	q, reason, message, form := question{agent: ev.AgentID}, "", "", "" // the reasons are the protocol's
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRequested:
		q.approval = true
		q.id, q.call, reason, message = p.ApprovalID, p.CallID, "confirmation", cmp.Or(p.Action, p.ToolID)+": "+p.Reason
		if form = `,"responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"}}}`; q.call != "" {
			reason = "tool_call"
		}
	case *agentevents.ClarificationRequested:
		q.id, q.call, reason = p.InterruptID, p.CallID, "input_required"
		var texts strings.Builder
		for i := range p.Questions {
			texts.WriteString(p.Questions[i].Question + "\n")
		}
		message = texts.String()
	case *agentevents.ApprovalGranted:
		k.questions.close(p.ApprovalID)
	case *agentevents.ApprovalRejected:
		k.questions.close(p.ApprovalID)
	case *agentevents.ClarificationResolved:
		k.questions.close(p.InterruptID)
	case *agentevents.ToolReturned:
		k.questions.closeOf(about{call: p.CallID})
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		k.questions.closeOf(about{agent: ev.AgentID})
	}
	if reason == "" {
		return
	}
	if q.call != "" {
		form = `,"toolCallId":` + jsonwire.Quote(q.call) + form
	}
	if raw := dialect.Unknown(ev, Name, interruptOf); raw != "" {
		q.interrupt = strings.Clone(string(raw))
		k.questions.add(q)
		return
	}
	q.interrupt = `{"id":` + jsonwire.Quote(q.id) + `,"reason":"` + reason + `","message":` +
		jsonwire.Quote(strings.Trim(message, ": \n")) + form + "}"
	k.questions.add(q)
}

// outcome returns the outcome of a run that waits for the open questions.
func (k *kept) outcome() string {
	var list []byte
	byNumber := func(a, b *question) int { return cmp.Compare(a.number, b.number) }
	for _, q := range slices.SortedFunc(maps.Values(k.questions.open), byNumber) {
		list = append(append(list, ','), q.interrupt...)
	}
	return `{"type":"interrupt","interrupts":[` + string(bytes.TrimPrefix(list, []byte(","))) + `]}`
}

// interrupts yields the interrupts of an outcome.
func interrupts(outcome string) iter.Seq[string] {
	return jsonwire.Elements(jsonwire.Member(outcome, "interrupts"))
}

// A waitsForm is the outcome of a run that waits. Its interrupts are open questions: readers make
// requests of the others.
type waitsForm struct{ keptForm }

func (f waitsForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	s, kept := encoderOf(w).s, w.Kept(m.Name)
	if own := s.outcome(); !s.asks(kept) || kept == own && !s.said(w.Ev) {
		return append(dst, own...), true
	}
	return f.keptForm.Append(w, dst, m, at)
}

func (f waitsForm) Parse(r *engine.Reader, at any) error {
	d := decoderOf(r)
	scan := r.S
	raw, _ := scan.Raw()
	for interrupt := range interrupts(raw) {
		id := jsonwire.Text(jsonwire.Member(interrupt, "id"))
		if _, open := d.s.questions.open[id]; !open && id != "" {
			d.asked = append(d.asked, interrupt)
		}
	}
	return f.keptForm.Parse(r, at)
}

// asks reports whether all interrupts of an outcome are open questions of the run.
func (k *kept) asks(outcome string) bool {
	for interrupt := range interrupts(outcome) {
		if k.questions.open[jsonwire.Text(jsonwire.Member(interrupt, "id"))] == nil {
			return false
		}
	}
	return true
}

// request returns the request that an interrupt is: for a reason of the protocol that asks for yes
// or no, or a form with the member approved, an approval.
func (s *stream) request(ev *agentevents.Event, interrupt string) error {
	member := func(name string) string { return jsonwire.Member(interrupt, name) }
	id, reason, message, call := jsonwire.Text(member("id")), jsonwire.Text(member("reason")),
		jsonwire.Text(member("message")), jsonwire.Text(member("toolCallId"))
	ev.AgentID = s.main
	if sub := jsonwire.Text(member("subagentRunId")); sub != "" {
		ev.AgentID = sub
	}
	if reason == "tool_call" || reason == "confirmation" ||
		jsonwire.HasMember(jsonwire.Member(member("responseSchema"), "properties"), "approved") {
		c := s.calls[s.call(call)]
		if c.id != "" && c.id != call { // on the lines it has another id
			c = toolCall{}
		}
		ev.Payload = &agentevents.ApprovalRequested{ApprovalID: id, Action: message, CallID: call, ToolID: c.tool}
	} else {
		ev.Payload = &agentevents.ClarificationRequested{InterruptID: id, CallID: call, Questions: []agentevents.Question{
			{ID: id, Question: cmp.Or(message, reason), Schema: agentevents.JSON(member("responseSchema"))},
		}}
	}
	return ev.SetExtra(string(Name), agentevents.JSON(`{"`+interruptOf+`":`+interrupt+"}"))
}

// An asking is a request that an encoder holds back for the outcome of the run: its interrupt, and
// the envelope that readers of the outcome give it.
type asking struct{ interrupt, head string }

// headOf returns the envelope of an event, as far as its line may have it, without the agent.
func headOf(ev *agentevents.Event) string {
	return strings.Join([]string{ev.Time.UTC().Format(time.RFC3339Nano), ev.WorkflowID, ev.Phase, ev.NodeID,
		ev.NodeRunID, ev.SpanID, ev.ParentSpanID, strconv.FormatBool(ev.Marks&agentevents.MarkLate != 0)}, "\x00")
}

// requests reports whether readers make the event of an interrupt.
func (s *streamOut) requests(ev *agentevents.Event, interrupt string) bool {
	read, id := agentevents.Event{}, jsonwire.Text(jsonwire.Member(interrupt, "id"))
	if id == "" || s.questions.open[id] != nil || s.request(&read, interrupt) != nil ||
		read.AgentID != ev.AgentID || read.Extra(string(Name)) != ev.Extra(string(Name)) {
		return false
	}
	a, err := appendPayload(nil, read.Payload)
	b, other := appendPayload(nil, ev.Payload)
	return err == nil && other == nil && read.Kind() == ev.Kind() && string(a) == string(b)
}

// said reports whether an event is a pause of whose line readers make the requests that wait for it.
func (s *streamOut) said(ev *agentevents.Event) bool {
	if _, pauses := ev.Payload.(*agentevents.RunPaused); !pauses || len(s.asking) == 0 {
		return false
	}
	list, head := slices.Collect(interrupts(string(dialect.Unknown(ev, Name, "outcome")))), headOf(ev)
	return slices.EqualFunc(list, s.asking, func(interrupt string, a asking) bool { return a == asking{interrupt, head} })
}

// interruptOf is the extra member of a request that an interrupt is.
const interruptOf = "interrupt"
