package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file has the answers to interrupts. The protocol has them in the run after the one that
// asks; the native events have them in the run that asks.

// answerOf is the extra member of an answer in the input of a run, and remarkRun the run whose line
// has the return of a call of another run.
const (
	answerOf  = "resume"
	remarkRun = "/run"
)

// wait notes that a run waits: a later one of its thread may answer its questions.
func (s *stream) wait() {
	s.waits = true
	if s.of.waiting == nil && len(s.questions.open) > 0 {
		s.of.waiting = map[string]waiter{}
	}
	for id := range s.questions.open {
		s.of.waiting[id] = waiter{s.run, s.kept}
	}
}

// A waiter is a run that waits.
type waiter struct {
	run string
	*kept
}

// An answer is one to an interrupt, and its JSON.
type answer struct {
	waiter
	id, agent, raw string
	payload        agentevents.Payload
}

// answers returns the answers in the input of a run to questions of runs that wait.
func (t *thread) answers(run string, inputs string) (list []answer) {
	if len(t.waiting) == 0 || otherInput(inputs) {
		return nil
	}
	seen := map[string]bool{}
	for raw := range jsonwire.Elements(jsonwire.Member(inputs, "resume")) {
		id := jsonwire.Text(jsonwire.Member(raw, "interruptId"))
		w := t.waiting[id]
		if w.kept == nil || !w.waits || w.questions.open[id] == nil || seen[id] {
			continue
		}
		q := w.questions.open[id]
		if p := q.answer(run, raw); p != nil {
			seen[id], list = true, append(list, answer{w, id, q.agent, raw, p})
		}
	}
	return list
}

// answer returns the answer to a question, or nil if the entry does not tell it. The protocol names
// no person: the run whose input has it answers.
func (q *question) answer(run, raw string) agentevents.Payload {
	status, payload := jsonwire.Text(jsonwire.Member(raw, "status")), jsonwire.Member(raw, "payload")
	approved := payload
	if jsonwire.IsObject(payload) {
		approved = jsonwire.Member(payload, "approved")
	}
	switch {
	case status != "resolved" && status != "cancelled":
		return nil
	case !q.approval && status == "cancelled":
		return &agentevents.ClarificationResolved{InterruptID: q.id, AnsweredBy: run}
	case !q.approval:
		return &agentevents.ClarificationResolved{InterruptID: q.id, AnsweredBy: run,
			Answers: agentevents.JSON(within([]string{q.id}, cmp.Or(payload, "null")))}
	case status == "cancelled":
		return &agentevents.ApprovalRejected{ApprovalID: q.id, RejectedBy: run, Feedback: status}
	case approved == "true":
		return &agentevents.ApprovalGranted{ApprovalID: q.id, ApprovedBy: run}
	case approved == "false":
		return &agentevents.ApprovalRejected{ApprovalID: q.id, RejectedBy: run}
	}
	return nil
}

// event returns the event of an answer, at the time of the run that has it.
func (a *answer) event(thread string, started *agentevents.Event) (agentevents.Event, error) {
	ev := agentevents.Event{SchemaVersion: agentevents.SchemaVersion, Time: started.Time, RunID: a.run,
		AgentID: a.agent, Payload: a.payload}
	if thread != a.run {
		ev.SessionID = thread
	}
	return ev, ev.SetExtra(string(Name), agentevents.JSON(`{"`+answerOf+`":`+a.raw+"}"))
}

// keptOf returns the record of the run of an event, or nil.
func (d *Decoder) keptOf(ev *agentevents.Event) *kept {
	return cmp.Or(d.runs.Of(ev.RunID), d.s.kept)
}

// answered returns the answers in the line of a run.started. Those that are closed are no more
// open for the lines after it.
func (d *Decoder) answered(ev *agentevents.Event, line string) (list []agentevents.Event, err error) {
	p, starts := ev.Payload.(*agentevents.RunStarted)
	if !starts || d.r.Type == "CUSTOM" ||
		slices.Contains(slices.Collect(jsonwire.Elements(jsonwire.Member(d.rest, absent))), jsonwire.Quote("/"+answerOf)) {
		return nil, nil
	}
	for i, a := range d.s.of.answers(ev.RunID, string(p.Inputs)) {
		other, err := a.event(d.s.thread, ev)
		if err != nil {
			return nil, err
		}
		other.ID, other.Sequence = d.r.IDs.Derived(line, d.r.Lines, i+1), d.r.Numbers.Next(a.run)
		if list = append(list, other); !d.aside {
			a.ask(&other)
			delete(d.s.of.waiting, a.id)
		}
	}
	return list, nil
}

// waits reports whether the run of an event waits for answers, for an encoder.
func (e *Encoder) waits(ev *agentevents.Event) bool {
	s := e.streams.Of(ev.RunID)
	return s != nil && s.over && s.paused && s.waits
}

// holds reports whether an event is an answer that the next run may have in its input.
func (e *Encoder) holds(ev *agentevents.Event) bool {
	switch ev.Payload.(type) {
	case *agentevents.ApprovalGranted, *agentevents.ApprovalRejected, *agentevents.ClarificationResolved:
		return e.waits(ev) && dialect.Unknown(ev, Name, answerOf) != ""
	}
	return false
}

// answeredBy reports whether the line of an event has the answers that are held, and notes them.
func (e *Encoder) answeredBy(ev *agentevents.Event) bool {
	p, starts := ev.Payload.(*agentevents.RunStarted)
	t := e.threads.Of(cmp.Or(ev.SessionID, ev.RunID))
	if !starts || t == nil || t.runs > 0 || e.streams.Of(ev.RunID) != nil {
		return false
	}
	list := t.answers(ev.RunID, string(p.Inputs))
	if len(list) != len(e.held) {
		return false
	}
	for i := range list {
		read, err := list[i].event(cmp.Or(ev.SessionID, ev.RunID), ev)
		held := e.held[i]
		read.ID, read.Sequence, read.SchemaVersion = held.ID, held.Sequence, held.SchemaVersion
		a, wrong := read.AppendJSON(nil)
		b, other := held.AppendJSON(nil)
		if err != nil || wrong != nil || other != nil || string(a) != string(b) {
			return false
		}
	}
	for i := range e.held {
		e.s = e.streams.Of(e.held[i].RunID)
		e.measure.Waits(&e.held[i])
		e.s.ask(&e.held[i])
		delete(t.waiting, list[i].id)
	}
	e.held = nil
	return true
}

// mayAnswer reports whether readers may take answers from the line of an event although no run
// waits yet: runs of the thread are under way, and the line comes after their ends.
func (e *Encoder) mayAnswer(ev *agentevents.Event) bool {
	p, starts := ev.Payload.(*agentevents.RunStarted)
	return starts && e.begins && e.s.of.runs > 0 && jsonwire.HasMember(string(p.Inputs), "resume")
}

// flush writes the answers that are held as lines of their own.
func (e *Encoder) flush(dst []byte) (out []byte, err error) {
	held := e.held
	e.held = nil
	for _, ev := range held {
		var failed error
		dst, failed = e.append(dst, ev)
		err = cmp.Or(err, failed)
	}
	return dst, err
}

// other returns the stream of the run that has the return of a call of a run that waits, or nil.
func (e *Encoder) other(ev *agentevents.Event) *streamOut {
	p, returns := ev.Payload.(*agentevents.ToolReturned)
	if !returns || p.OneEvent || !e.waits(ev) {
		return nil
	}
	own, s := e.streams.Of(ev.RunID), e.streams.Of(jsonwire.Text(string(dialect.Unknown(ev, Name, remarkRun))))
	if s == nil || s.over || s.of != own.of || s.segment < own.segment {
		return nil
	}
	c, open := e.calls[s.call(p.CallID)]
	if !open || c.run != ev.RunID || c.agent != ev.AgentID || ev.NodeRunID != "" || strings.TrimSpace(c.agent) == "" {
		return nil
	}
	return s
}
