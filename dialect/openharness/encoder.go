package openharness

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions are usable.
type EncoderOptions struct {
	// RunID is the run that readers know the log to be of, as in [Options]. It decides on
	// losses only.
	RunID string
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// An Encoder writes events as lines of the document. It implements
// [dialect.Encoder]. It is for the events of one log, in order, and must not be used
// concurrently.
//
// A tool call is written with its return. Node and agent events without a node or
// its execution get the agent's name for both ([dialect.Names]), or else the run's id. An agent that
// ended with an error or was aborted is written as agent:error with an outcome, because
// agent:complete means success. The encoder refuses numbers that break [RuleRange],
// unless it writes a line verbatim. It writes words that the document does not list,
// because later versions may list them.
type Encoder struct {
	w       engine.Writer
	measure *dialect.Measure // nil: the losses are not asked for
	reads   Decoder          // reads the lines for it
	calls   dialect.Calls    // open calls
	names   dialect.Names    // of agents without an execution
	open                     // runs and agents
	order   order            // the executions that readers see
	nodes   engine.Shared    // the nodes of these, as readers see them
	agents  engine.Shared    // their agents, too
	made    engine.Writer    // of lines that are made up

	running engine.Recent[string, string] // by execution: the agent that has started and not ended
	over    engine.Recent[string, string] // by execution whose agent readers take for ended: the agent that has ended
	check   Decoder                       // reads origins

	// a return together with the facts of its call
	joined   agentevents.Event
	returned agentevents.ToolReturned

	run     string // that readers assume
	aborted bool   // the flow was
}

var _ dialect.Encoder = (*Encoder)(nil)

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	e := &Encoder{w: engine.Writer{F: format}, made: engine.Writer{F: format}}
	if !o.Fast {
		e.reads = *NewDecoder(Options{RunID: o.RunID})
		e.measure = dialect.NewMeasure(Name, &e.reads, reasons)
	}
	return e
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Append appends the event's line; see [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	defer e.release()
	mark, call := len(dst), e.calls.Joined(&ev)
	dst, err := e.write(dst, ev)
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		if err == nil {
			e.called(&ev, p)
			return dst, nil
		}
	case *agentevents.ToolReturned:
		if err == nil && call != nil {
			defer e.calls.Remove(ev.RunID, callerOf(&ev), p.CallID)
		}
	}
	e.measure.Joined(&ev, call, dst[mark:], err)
	return dst, err
}

// write appends the line of an event.
func (e *Encoder) write(dst []byte, ev agentevents.Event) ([]byte, error) {
	typ := typeOf(&ev)
	before := e.ready(&ev, typ)
	flow := slices.Contains(before, "flow:start")
	after, late := afterAbort(e.aborted && !flow, typ)
	if late {
		ev.Marks &^= agentevents.MarkLate // readers set it
	}
	mark, nodes := len(dst), e.nodes
	if flow {
		e.nodes = engine.Shared{}
	}
	dst, _, err := e.w.Append(dst, &ev, (*document)(e))
	if err != nil {
		e.nodes = nodes
		return dst, err
	}
	e.aborted = after
	if len(dst) == mark {
		return dst, nil
	}
	dst = e.insert(dst, mark, &ev, before)
	_, starts := ev.Payload.(*agentevents.RunStarted)
	if starts || e.w.Lines == 1 {
		e.run = strings.Clone(ev.RunID) // the clone does not keep the line alive
	}
	e.open.line(&ev, e.agentOf(&ev), e.execution(&ev))
	e.place(&ev, typ, e.agentOf(&ev))
	switch {
	case starts:
		e.nodes, e.agents = engine.Shared{}, engine.Shared{}
	case typ == "node:start":
		e.nodes.Start(e.nodeOf(&ev), e.execution(&ev))
	case typ == "agent:start":
		startsIn(&e.agents, &ev, named(&ev))
	}
	return dst, nil
}

// release lets go of the event that was written.
func (e *Encoder) release() {
	e.w.Release()
	e.reads.r.Release()
	if e.joined.Payload != nil {
		e.joined, e.returned = agentevents.Event{}, agentevents.ToolReturned{}
	}
}

// runs reports whether readers take the agent of an execution for a running one.
func (e *Encoder) runs(run string) bool {
	_, ok := e.running.Get(run)
	return ok
}

// place notes where the line of an event leaves its execution, and the agent that has started
// there if it does.
func (e *Encoder) place(ev *agentevents.Event, typ, agent string) {
	run := e.work(ev)
	e.order.line(typ, run)
	switch ev.Payload.(type) {
	case *agentevents.RunStarted:
		e.running, e.over = engine.Recent[string, string]{}, engine.Recent[string, string]{}
	case *agentevents.AgentStarted:
		e.running.Set(strings.Clone(run), strings.Clone(agent))
		e.over.Delete(run)
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		_, ends := ev.Payload.(*agentevents.AgentEnded)
		if !ends && ev.AgentID != "" {
			agent = nobody // the end of a node ends no agent that has an id
		}
		if ends || e.runs(run) {
			e.over.Set(strings.Clone(run), strings.Clone(agent))
		}
		e.running.Delete(run)
	}
}

// ready returns the types of the lines that the order of the document needs before the line of an
// event. It makes an event after the end of its node late. A line of the document's own keeps its
// place.
func (e *Encoder) ready(ev *agentevents.Event, typ string) (before []string) {
	if typ == "" || own(ev.Origin(), typ) {
		return nil
	}
	seen := e.order
	if ev.RunID != e.run && e.w.Lines > 0 && typ != "flow:start" {
		before, seen = append(before, "flow:start"), order{}
	}
	if format.Row(ev.Kind()) == nil || e.aborted && before == nil {
		return before
	}
	run, late := e.work(ev), ev.Marks.Has(agentevents.MarkLate)
	ended, over := e.over.Get(run)
	switch seen.fault(typ, run, late) {
	case behindNode:
		if typ == "agent:start" {
			return append(before, "node:start")
		}
		ev.Marks |= agentevents.MarkLate
	case beforeAgent:
		return append(before, "agent:start")
	case "":
		if over && ended != e.agentOf(ev) && before == nil && !late && isAgent(typ) && typ != "agent:start" {
			return append(before, "agent:start")
		}
	}
	return before
}

// own reports whether a line that an event was read from is one of the document, of the type.
func own(line, typ string) bool {
	if line == "" || jsonwire.Text(jsonwire.Member(line, "type")) != typ {
		return false
	}
	of := dialect.Detect(line)
	return of == "" || of == Name
}

// insert inserts lines of types before the line of an event, which begins at mark. They exist only
// for the order of the lines.
func (e *Encoder) insert(dst []byte, mark int, ev *agentevents.Event, types []string) []byte {
	var lines []byte
	for _, typ := range types {
		made := agentevents.Event{RunID: ev.RunID, Time: ev.Time}
		if typ != "flow:start" {
			made.Marks = ev.Marks & agentevents.MarkLate
			made.NodeID, made.NodeRunID = e.nodeOf(ev), e.execution(ev)
		}
		switch typ {
		case "flow:start":
			made.Payload = &agentevents.RunStarted{}
			e.run = strings.Clone(ev.RunID)
		case "node:start":
			// another node's start would begin another execution
			made.NodeID = cmp.Or(e.nodes.Owner(made.NodeRunID), made.NodeID)
			made.Payload = &agentevents.NodeStarted{}
		default:
			made.Payload = &agentevents.AgentStarted{ProviderSessionID: made.NodeRunID, Prompt: `""`,
				Resumed: e.runs(made.NodeRunID)}
		}
		lines, _, _ = e.made.Append(lines, &made, (*document)(e))
		e.w.Lines++
		e.place(&made, typ, nobody)
		if typ == "node:start" {
			e.nodes.Start(made.NodeID, made.NodeRunID)
		}
	}
	return slices.Insert(dst, mark, lines...)
}

// typeOf returns the type of the line of an event.
func typeOf(ev *agentevents.Event) string {
	if p, ok := ev.Payload.(*agentevents.Unknown); ok {
		return strings.TrimPrefix(string(p.Type), string(Name)+":")
	}
	if p, ok := ev.Payload.(*agentevents.AgentEnded); ok && failed(p) {
		return ended.Type
	}
	if row := format.Row(ev.Kind()); row != nil {
		if ev.Kind() == agentevents.KindRunCancelled && dialect.Unknown(ev, Name, "status") != "" {
			return stoppedAtEnd.Type
		}
		return row.Type
	}
	return ""
}

// nobody is the agent of a start that is made up, and of an end that only readers see.
const nobody = "\x00"

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (e *document) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	row := format.Row(w.Ev.Kind())
	switch p := w.Ev.Payload.(type) {
	case *agentevents.RunCancelled:
		if dialect.Unknown(w.Ev, Name, "status") != "" {
			row = stoppedAtEnd
		}
	case *agentevents.ToolCalled:
		return dst, nil
	case *agentevents.Unknown:
		return other(w, dst, p)
	case *agentevents.ToolReturned:
		(*Encoder)(e).join(w, p)
	case *agentevents.AgentStarted:
		enc := (*Encoder)(e)
		if run := enc.work(w.Ev); !p.Resumed && !w.Whole && enc.runs(run) && e.running.Of(run) != enc.agentOf(w.Ev) {
			ev, again := *w.Ev, *p
			again.Resumed, ev.Payload = true, &again
			w.Say(&ev)
		}
	case *agentevents.AgentEnded:
		if failed(p) {
			row = ended
		}
	case *agentevents.StatePatched:
		if p.Op == agentevents.PatchRemove { // the document cannot remove
			ev, set := *w.Ev, *p
			set.Op, set.Value, ev.Payload = agentevents.PatchSet, "null", &set
			w.Say(&ev)
		}
	}
	return w.Line(dst, row)
}

// other appends a line of an unknown type. It refuses the event if readers do not read
// the same from the line.
func other(w *engine.Writer, dst []byte, p *agentevents.Unknown) ([]byte, error) {
	mark := len(dst)
	dst, err := w.Line(dst, nil)
	if err != nil {
		return dst, err
	}
	raw, _ := jsonwire.Compact(string(cmp.Or(p.Raw, "{}")))
	var back agentevents.Event
	d, e := NewDecoder(Options{RunID: w.Ev.RunID}), encoderOf(w)
	d.nodes, d.agents = e.nodes, e.agents
	if d.read(string(dst[mark:]), &back) != nil || back.NodeID != w.Ev.NodeID ||
		back.NodeID != "" && back.NodeRunID != w.Ev.NodeRunID && back.NodeRunID != e.execution(w.Ev) {
		return dst, dialect.ErrNoCounterpart
	}
	if u, ok := back.Payload.(*agentevents.Unknown); !ok || string(u.Raw) != raw {
		return dst, dialect.ErrNoCounterpart
	}
	return dst, nil
}

func (e *document) Reread(w *engine.Writer, line string) error {
	e.check.o.RunID, e.check.run, e.check.aborted = w.Ev.RunID, w.Ev.RunID, false // Append records the marks of an abort
	e.check.nodes, e.check.agents = e.nodes, e.agents
	e.check.r.Continue(w)
	if err := e.check.read(line, &w.Read); err != nil {
		return err
	}
	return e.check.r.Finish()
}

// End counts the calls that did not return as losses, because the document has no line
// for them.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	e.forget()
	return dst, nil
}

// forget removes the open calls and counts them as losses.
func (e *Encoder) forget() {
	for _, call := range e.calls.Clear() {
		e.measure.Wrote(call, nil, nil)
	}
}

// Losses returns the losses so far: the encoder reads each line back, see [dialect.Measure].
func (e *Encoder) Losses() []dialect.Loss { return e.measure.Losses() }

// agentOf returns the name of the agent of an event. An execution of a node needs no other.
func (e *Encoder) agentOf(ev *agentevents.Event) string {
	if ev.AgentID == "" && ev.NodeRunID != "" {
		return ev.NodeRunID
	}
	return e.names.Of(ev)
}

// start returns the start of the agent of an event, or nil.
func (e *Encoder) start(ev *agentevents.Event) *start {
	return e.started.Of(agent{ev.RunID, e.agentOf(ev)})
}

// runID returns the runId of the line of an event.
func (e *Encoder) runID(ev *agentevents.Event) string {
	_, starts := ev.Payload.(*agentevents.NodeStarted)
	return e.nodes.Line(e.nodeOf(ev), cmp.Or(ev.NodeRunID, e.agentOf(ev), ev.RunID), starts)
}

// execution returns the execution of a node that readers see in the line of an event.
func (e *Encoder) execution(ev *agentevents.Event) string {
	_, starts := ev.Payload.(*agentevents.NodeStarted)
	return e.nodes.ID(e.nodeOf(ev), e.runID(ev), starts)
}

// work returns the execution in which readers see the agent of an event at work: its own, if an extra
// member tells it from the one that has started there.
func (e *Encoder) work(ev *agentevents.Event) string {
	run := e.execution(ev)
	if ev.AgentID == "" || !isAgent(typeOf(ev)) {
		return run
	}
	return e.agents.ID(named(ev), run, ev.Kind() == agentevents.KindAgentStarted)
}

// named returns the name of the agent that an extra member of the line tells, or "".
func named(ev *agentevents.Event) string {
	return jsonwire.Text(string(dialect.Unknown(ev, Name, agentMember)))
}

// nodeOf returns the node that the line of an event names.
func (e *Encoder) nodeOf(ev *agentevents.Event) string {
	return cmp.Or(ev.NodeID, e.agentOf(ev), ev.RunID)
}

// callerOf returns the agent whose call ids the event's is one of, as the rules of the
// library see it.
func callerOf(ev *agentevents.Event) string { return cmp.Or(ev.AgentID, ev.NodeRunID) }

// called keeps a call until it returns.
func (e *Encoder) called(ev *agentevents.Event, p *agentevents.ToolCalled) {
	old, ok := e.calls.Put(ev, callerOf(ev), p.CallID)
	if old != nil {
		e.measure.Wrote(old, nil, nil)
	}
	if !ok {
		e.forget()
		e.calls.Put(ev, callerOf(ev), p.CallID)
	}
}

// join makes w.Ev a return with the facts of its call, which stand first.
func (e *Encoder) join(w *engine.Writer, p *agentevents.ToolReturned) {
	call := e.calls.Joined(w.Ev)
	if call == nil {
		return
	}
	c := call.Payload.(*agentevents.ToolCalled)
	e.joined, e.returned = *w.Ev, *p
	p = &e.returned
	p.Arguments, p.ArgumentsSummary = cmp.Or(c.Arguments, p.Arguments), cmp.Or(c.ArgumentsSummary, p.ArgumentsSummary)
	if d := w.Ev.Time.Sub(call.Time); !p.Duration.OK && d >= 0 && agentevents.TimeKnown(call.Time) &&
		agentevents.TimeKnown(w.Ev.Time) {
		p.Duration = agentevents.Some(d)
	}
	e.joined.Payload = p
	w.Say(&e.joined)
}
