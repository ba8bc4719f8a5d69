package lawtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A front is the right ending of a front end of AG-UI after a log. It is made from the events
// alone, without a line of the protocol.
type front struct {
	messages []*frontMessage
	run      string // whose events are added
	state    string // empty if runs of the thread overlap: then each begins with an empty state
}

// A frontMessage is a message that a client shows: a text, reasoning, a call or its result. In a
// front, ID is the log's, which may be empty, and a result follows its call.
type frontMessage struct {
	ID, Role, Content string
	ToolCallID        string // of a client's result
	Calls             []frontCall

	run string // in a front: whose message it is
}

type frontCall struct{ ID, Name, Arguments string }

// A part is a piece of a run between a start and an end of the protocol.
type part struct {
	run    *partedRun
	events []int // in the log
	over   bool  // its last event ends it
}

// A partedRun decides where the parts of a run begin and end.
type partedRun struct {
	last         *part
	over, paused bool
	asked        []question
	open         map[frontBlock]*openBlock
}

// A question waits for an answer. It is about an agent and a call, which may be empty.
type question struct{ id, agent, call string }

// A frontBlock names a block of an agent. kind is the kind of its deltas.
type frontBlock struct {
	agent string
	kind  agentevents.Kind
	id    string
}

// An openBlock is a block of which there are deltas. It has ended if another act has ended it.
type openBlock struct {
	message *frontMessage
	ended   bool
}

// frontOf returns the right ending for a log.
func frontOf(log []agentevents.Event) *front {
	f := &front{}
	parts, overlap := partsOf(log)
	callOf := returnsOf(log, parts)
	shown := map[int]*frontMessage{} // calls, by their place in the log
	state, patches := agentevents.NewFold(agentevents.FoldOptions{}), uint64(0)
	for _, p := range parts {
		for _, i := range p.events {
			f.run = log[i].RunID
			switch payload := log[i].Payload.(type) {
			case *agentevents.ToolCalled:
				shown[i] = f.call(payload.CallID, payload.ToolID, payload.Arguments)
			case *agentevents.ToolReturned:
				before, known := callOf[i]
				f.returned(payload, shown[before], known)
			case *agentevents.RunStarted, *agentevents.StatePatched:
				state.Apply(agentevents.Event{ID: fmt.Sprint(i), Sequence: patches, RunID: "run", Time: log[i].Time, Payload: payload, SchemaVersion: agentevents.SchemaVersion})
				patches++
			}
			f.block(&log[i], p.run.open)
		}
	}
	if members := state.Snapshot().State; !overlap && len(members) == 0 {
		f.state = "{}"
	} else if !overlap {
		text, _ := json.Marshal(members)
		f.state = string(text)
	}
	return f
}

// partsOf splits a log like a stream of the protocol, which has run after run. It leaves out the
// events of a run that is over and does not go on. overlap reports whether a run begins before
// another one is over.
func partsOf(log []agentevents.Event) (parts []*part, overlap bool) {
	runs := map[string]*partedRun{}
	for i := range log {
		ev := &log[i]
		r := runs[ev.RunID]
		if r == nil {
			r = &partedRun{open: map[frontBlock]*openBlock{}}
			runs[ev.RunID] = r
		}
		_, resumes := ev.Payload.(*agentevents.RunResumed)
		switch {
		case r.last == nil, r.over && (resumes || r.paused):
			for _, other := range runs {
				overlap = overlap || other != r && other.last != nil && !other.over
			}
			r.last, r.over = &part{run: r}, false
			parts = append(parts, r.last)
		case r.over:
			continue
		}
		r.last.events = append(r.last.events, i)
		r.ask(ev)
		switch ev.Payload.(type) {
		case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
			r.over, r.paused = true, false
		case *agentevents.RunPaused: // without a question the run just goes on
			r.over = len(r.asked) > 0
			r.paused = r.over
		}
		r.last.over = r.over
	}
	return parts, overlap
}

// ask notes an event that asks or answers.
func (r *partedRun) ask(ev *agentevents.Event) {
	closes := func(is func(q question) bool) { r.asked = slices.DeleteFunc(r.asked, is) }
	named := func(id string) { closes(func(q question) bool { return q.id == id }) }
	asks := func(id, call string) {
		named(id)
		r.asked = append(r.asked, question{id, ev.AgentID, call})
	}
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRequested:
		asks(p.ApprovalID, p.CallID)
	case *agentevents.ClarificationRequested:
		asks(p.InterruptID, p.CallID)
	case *agentevents.ApprovalGranted:
		named(p.ApprovalID)
	case *agentevents.ApprovalRejected:
		named(p.ApprovalID)
	case *agentevents.ClarificationResolved:
		named(p.InterruptID)
	case *agentevents.ToolReturned:
		closes(func(q question) bool { return q.call != "" && q.call == p.CallID })
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		closes(func(q question) bool { return q.agent != "" && q.agent == ev.AgentID })
	}
}

// returnsOf returns the call of each return, by their places in the log. It is the call of its
// agent, or the latest one of the thread by that id, in another run that is over and whose lines
// come before.
func returnsOf(log []agentevents.Event, parts []*part) map[int]int {
	partOf := map[int]int{}
	for n, p := range parts {
		for _, i := range p.events {
			partOf[i] = n
		}
	}
	type called struct{ run, agent, id string }
	open, latest, calls, over, waits := map[called]int{}, map[string]int{}, map[int]int{}, map[string]bool{}, map[string]bool{}
	for i := range log {
		n, said := partOf[i]
		if !said {
			continue
		}
		p := parts[n]
		over[log[i].RunID] = p.over && i == p.events[len(p.events)-1]
		waits[log[i].RunID] = over[log[i].RunID] && log[i].Kind() == agentevents.KindRunPaused // its calls are its own
		run, agent := log[i].RunID, ownerOf(&log[i])
		switch p := log[i].Payload.(type) {
		case *agentevents.ToolCalled:
			open[called{run, agent, p.CallID}], latest[p.CallID] = i, i
		case *agentevents.ToolReturned:
			before, known := open[called{run, agent, p.CallID}]
			if known = known && !p.OneEvent; !known {
				before, known = latest[p.CallID]
				known = known && log[before].RunID != run && over[log[before].RunID] && !waits[log[before].RunID] && partOf[before] < n
			}
			if !known {
				continue // a call of its own
			}
			calls[i] = before
			delete(open, called{log[before].RunID, ownerOf(&log[before]), p.CallID})
			if latest[p.CallID] == before {
				delete(latest, p.CallID)
			}
		}
	}
	return calls
}

// ownerOf names the agent of an event.
func ownerOf(ev *agentevents.Event) string {
	span := ev.ParentSpanID
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		span = ev.SpanID
	}
	for _, id := range []string{ev.AgentID, ev.NodeRunID, span} {
		if id != "" {
			return id
		}
	}
	return ""
}

func (f *front) add(id, role, content string) *frontMessage {
	m := &frontMessage{ID: id, Role: role, Content: strings.ToValidUTF8(content, "\ufffd"), run: f.run}
	f.messages = append(f.messages, m)
	return m
}

func (f *front) call(id, tool string, arguments agentevents.JSON) *frontMessage {
	m := f.add(id, "assistant", "")
	m.Calls = []frontCall{{id, tool, string(arguments)}}
	return m
}

// returned adds a result after its call and the results that are there, and a call if none is
// known.
func (f *front) returned(p *agentevents.ToolReturned, call *frontMessage, known bool) {
	if !known {
		call = f.call(p.CallID, p.ToolID, p.Arguments)
	}
	content := ""
	switch {
	case p.Result == "" && p.Error.OK:
		content = p.Error.V.Message
	default:
		if content, _ = jsonwire.Compact(string(p.Result)); strings.HasPrefix(content, `"`) {
			content = jsonwire.Text(content)
		}
	}
	at := slices.Index(f.messages, call) + 1
	for at < len(f.messages) && f.messages[at].Role == "tool" {
		at++
	}
	f.messages = slices.Insert(f.messages, at, &frontMessage{Role: "tool", Content: strings.ToValidUTF8(content, "\ufffd"), run: f.run})
}

// block adds texts and reasoning. The rules of the log decide which deltas are one block.
func (f *front) block(ev *agentevents.Event, open map[frontBlock]*openBlock) {
	agent := ownerOf(ev)
	ends := func(all bool) {
		for key, b := range open {
			b.ended = b.ended || key.agent == agent && (all || key.id == "")
		}
	}
	const texts, thoughts = agentevents.KindTextDelta, agentevents.KindAgentReasoningDelta
	delta := func(kind agentevents.Kind, role, id, text string, index agentevents.Opt[int]) {
		if text == "" {
			return // the protocol has no line for it
		}
		key := frontBlock{agent, kind, id}
		b := open[key]
		if b == nil || b.ended || id == "" && index.OK && index.V == 0 {
			b = &openBlock{message: f.add(id, role, "")}
			open[key] = b
		}
		b.message.Content += strings.ToValidUTF8(text, "\ufffd")
	}
	// A streamed text stays, also if the whole has another one.
	whole := func(kind agentevents.Kind, role, id, text string) {
		key := frontBlock{agent, kind, id}
		b := open[key]
		delete(open, key)
		switch text = strings.ToValidUTF8(text, "\ufffd"); {
		case b != nil && strings.HasPrefix(text, b.message.Content):
			b.message.Content = text
		case b == nil || b.ended:
			f.add(id, role, text)
		}
	}
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		delta(texts, "assistant", p.BlockID, p.Delta, p.Index)
	case *agentevents.AgentReasoningDelta:
		delta(thoughts, "reasoning", p.BlockID, p.Delta, p.Index)
	case *agentevents.TextCompleted:
		whole(texts, "assistant", p.BlockID, p.Text)
	case *agentevents.AgentReasoned:
		whole(thoughts, "reasoning", p.BlockID, p.Reasoning)
	case *agentevents.ToolCalled, *agentevents.ModelCalled:
		ends(false)
	case *agentevents.AgentTransition:
		ends(p.To.Terminal())
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		ends(true)
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		if ev.AgentID == "" && ev.NodeRunID != "" {
			ends(true)
		}
	}
}

// differs lists the differences of a client's messages, or returns "". An id is the log's, or
// made from it. Each message has another id, and each id of the log is on a message.
func (f *front) differs(got []frontMessage) string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	ids, wanted, call := map[string]bool{}, map[string]bool{}, ""
	for i, g := range got {
		if i >= len(f.messages) {
			say("message %d is too many: %+v", i, g)
			break
		}
		w := f.messages[i]
		if g.Role != w.Role || g.Content != w.Content || len(g.Calls) != len(w.Calls) || g.ID != w.ID && !strings.HasPrefix(g.ID, w.ID+"~") && w.ID != "" {
			say("message %d is %+v, not %+v", i, g, *w)
			continue
		}
		for j, call := range g.Calls {
			if want := w.Calls[j]; call.ID != g.ID || call.Name != want.Name || compact(call.Arguments) != compact(want.Arguments) {
				say("call %d is %+v, not %+v", i, call, want)
			}
		}
		if len(g.Calls) > 0 {
			call = g.ID
		}
		if g.Role == "tool" && g.ToolCallID != call {
			say("message %d is a result of %q, not of %q", i, g.ToolCallID, call)
		}
		if ids[g.ID] {
			say("two messages have the id %q", g.ID)
		}
		ids[g.ID], wanted[w.ID] = true, true
	}
	if len(got) < len(f.messages) {
		say("message %d is missing: %+v", len(got), *f.messages[len(got)])
	}
	for id := range wanted {
		if id != "" && !ids[id] {
			say("no message has the log's id %q", id)
		}
	}
	return strings.Join(list, "\n")
}

func compact(raw string) string {
	compact, _ := jsonwire.Compact(raw)
	return compact
}
