// Package rundiff finds the differences between two runs. It compares the acts of agents, agent by
// agent and in their order, and ignores fields that differ between any two runs: minted ids, times,
// durations, tokens, and how text was cut into deltas.
//
// An act is an event, or all events of a tool call, a model call or a block of text. Left
// out are status changes without a reason, which follow from the acts, and reports of usage,
// which are in the totals.
//
// A comparison takes time and memory in proportion to the two logs. See [align] for the price.
package rundiff

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// A Log has the acts of the runs of a log. The zero Log has no runs. It is not for concurrent use,
// but may be compared any number of times.
type Log struct {
	runs  map[string]*run
	order []*run
}

type run struct {
	id     string
	asked  uint64 // hash of its name and its task; 0 is nothing
	begun  bool   // an agent has started
	fold   *agentevents.Fold
	seen   view.Sequences
	agents map[string]*agent
	order  []*agent
}

// An agent is whoever acts: an agent, a node without one, or the run itself, which has no id.
type agent struct {
	id, task   string
	role       string           // the words of the id without a digit: others are minted
	lineage    uint64           // hash of the roles of the agents above
	tasks      uint64           // hash of their roles and tasks
	acts, done []*act           // as they came; see finish
	open       map[string]*act  // calls by id; blocks by kind and id, also those that are whole
	block      agentevents.Kind // of the block without an id that goes on
}

// An act is something that an agent did.
type act struct {
	kind     agentevents.Kind
	sequence uint64
	phase    string
	payload  string // as JSON
	text     []byte // of a block that consists of deltas only
	gone     bool   // a whole block, elsewhere, replaces it
}

// Run returns a log with nothing but the run of that id, and whether there is one.
func (l *Log) Run(id string) (*Log, bool) {
	r := l.runs[id]
	return &Log{order: []*run{r}, runs: map[string]*run{id: r}}, r != nil
}

// Add adds the next event of a log. An event that comes again is left out. The error means that the
// event is invalid.
func (l *Log) Add(ev *agentevents.Event) error { return l.AddLine(agentevents.Line{Event: ev}) }

// AddLine is Add for an event and its line, as [agentevents.Reader.Lines] yields both. It keeps no
// part of the event.
func (l *Log) AddLine(line agentevents.Line) error {
	ev := line.Event
	r := l.runs[ev.RunID]
	if r == nil {
		if l.runs == nil {
			l.runs = map[string]*run{}
		}
		r = &run{id: strings.Clone(ev.RunID), agents: map[string]*agent{}}
		r.fold = agentevents.NewFold(agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1})
		l.runs[r.id] = r
		l.order = append(l.order, r)
	}
	if line.Text != "" {
		r.fold.ApplyLine(*ev, line.Text)
	} else {
		r.fold.Apply(*ev)
	}
	if r.seen.Again(ev.Sequence) {
		return nil
	}
	switch p := ev.Payload.(type) {
	case *agentevents.UsageObserved, *agentevents.ToolArgumentsDelta:
		return nil
	case *agentevents.AgentTransition:
		if p.Reason == "" || ev.Marks.Has(agentevents.MarkSynthetic) {
			return nil
		}
	case *agentevents.TextDelta:
		r.agent(ev).delta(ev, agentevents.KindTextCompleted, p.BlockID, p.Delta)
		return nil
	case *agentevents.AgentReasoningDelta:
		r.agent(ev).delta(ev, agentevents.KindAgentReasoned, p.BlockID, p.Delta)
		return nil
	}
	if line.Text == "" {
		text, err := ev.AppendJSON(nil)
		if err != nil {
			return err
		}
		line.Text = string(text)
	}
	a := r.agent(ev)
	e := newAct(ev, ev.Kind())
	e.payload = strings.Clone(cmp.Or(jsonwire.Member(line.Text, "payload"), "null"))
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if parent := r.agents[ev.ParentAgentID]; ev.ParentAgentID != "" {
			e.payload = merged(`{"parentAgentId":`+jsonwire.Quote(ev.ParentAgentID)+`}`, e.payload)
			if parent != nil && parent != a {
				a.lineage = jsonwire.Mix(parent.lineage, jsonwire.Hash(parent.role))
				a.tasks = jsonwire.Mix(parent.tasks, jsonwire.Hash(parent.role+"\x00"+parent.task))
			}
		}
		a.task = cmp.Or(a.task, strings.Clone(p.Task))
		if !r.begun {
			r.ask(p.Task, string(p.Prompt))
		}
		r.begun = true
	case *agentevents.RunStarted:
		r.ask(p.Name, string(p.Inputs))
	case *agentevents.TextCompleted:
		a.whole(e, p.BlockID)
	case *agentevents.AgentReasoned:
		a.whole(e, p.BlockID)
	case *agentevents.ToolCalled:
		a.open["call "+p.CallID] = e
	case *agentevents.ModelCalled:
		a.open["model "+p.ModelCallID] = e
	case *agentevents.ToolReturned:
		e = a.returned("call "+p.CallID, e, agentevents.KindToolCalled)
	case *agentevents.ModelReturned:
		e = a.returned("model "+p.ModelCallID, e, agentevents.KindModelCalled)
	}
	if a.block = ""; e != nil {
		a.acts = append(a.acts, e)
	}
	return nil
}

func (r *run) ask(texts ...string) {
	if text := strings.Join(texts, "\x00"); len(text) > len(texts)-1 {
		r.asked = jsonwire.Mix(r.asked, jsonwire.Hash(text))
	}
}

func newAct(ev *agentevents.Event, kind agentevents.Kind) *act {
	return &act{kind: agentevents.Kind(strings.Clone(string(kind))), sequence: ev.Sequence, phase: strings.Clone(ev.Phase)}
}

// agent returns who acts in an event.
func (r *run) agent(ev *agentevents.Event) *agent {
	id := cmp.Or(ev.AgentID, ev.NodeRunID, ev.NodeID)
	a := r.agents[id]
	if a == nil {
		a = &agent{id: strings.Clone(id), open: map[string]*act{}}
		name := ""
		if p, ok := ev.Payload.(*agentevents.AgentStarted); ok {
			name = p.Name
		}
		words := strings.FieldsFunc(cmp.Or(name, ev.AgentID, ev.NodeID),
			func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
		if id == "" {
			a.role = "\x00" // like nobody's
		}
		for _, word := range words {
			if !strings.ContainsFunc(word, unicode.IsDigit) {
				a.role += word + " "
			}
		}
		r.agents[a.id] = a
		r.order = append(r.order, a)
	}
	return a
}

// returned adds a return to its call. A return that has none is the call.
func (a *agent) returned(id string, e *act, call agentevents.Kind) *act {
	e.kind = call
	opened := a.open[id]
	if opened == nil {
		return e
	}
	delete(a.open, id)
	opened.payload = merged(opened.payload, e.payload)
	return nil
}

// merged returns an object with the members of two, the second one's first.
func merged(a, b string) string {
	var o jsonwire.Object
	for _, object := range [...]string{a, b} {
		for name, raw := range jsonwire.Members(object) {
			o.Set(name, raw)
		}
	}
	out := []byte{'{'}
	for name, raw := range o.All() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, name), ':'), raw...)
	}
	return string(append(out, '}'))
}

// delta adds a piece to a block, which is an act where it begins until it is whole. A block without
// an id ends with the next event, unless that is a delta of it.
func (a *agent) delta(ev *agentevents.Event, kind agentevents.Kind, id, text string) {
	key := string(kind) + " " + id
	if id == "" && a.block != kind {
		a.block = kind
		delete(a.open, key)
	}
	b := a.open[key]
	if b == nil {
		b = newAct(ev, kind)
		a.open[key] = b
		a.acts = append(a.acts, b)
	}
	if b.payload == "" { // else it is whole, and the delta is late
		b.text = append(b.text, text...)
	}
}

// whole puts a whole block in the place of its deltas.
func (a *agent) whole(e *act, id string) {
	key := string(e.kind) + " " + id
	if b := a.open[key]; b != nil && b.payload == "" && (id != "" || a.block == e.kind) {
		b.gone = true
	}
	if id != "" {
		a.open[key] = e
	}
}

// finish makes the list of the agent's acts. A block that consists of deltas only counts as a whole
// one.
func (a *agent) finish() []*act {
	a.done = a.done[:0]
	for _, e := range a.acts {
		switch {
		case e.gone:
			continue
		case e.payload == "":
			whole, name := *e, "text"
			if e.kind == agentevents.KindAgentReasoned {
				name = "reasoning"
			}
			whole.payload = `{"` + name + `":` + jsonwire.Quote(string(e.text)) + `}`
			e = &whole
		}
		a.done = append(a.done, e)
	}
	return a.done
}
