package openwop

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A lined is the state of a run in a strict reader of the lines, as far as the order of lines
// depends on it.
type lined struct {
	begun, ended bool
	orchestrator string
	nodes        engine.Recent[string, nodeState]
	running      engine.Recent[string, string] // executions of nodes that run
	names        engine.Recent[string, string] // nodes that stand for executions beside another one
	blocks       []openBlock
}

// An outOfOrder is the error for an event that has no place in the order of the document.
type outOfOrder string

func (e outOfOrder) Error() string { return "openwop: the event " + string(e) }

// Unwrap returns the error for an event without a counterpart.
func (outOfOrder) Unwrap() error { return dialect.ErrNoCounterpart }

// alreadyTold is the error for a second line of a question. SchemaV2 has one line for it.
const alreadyTold outOfOrder = "repeats the line of a question or answer"

// own reports whether the event was read from a line of the document, which keeps its place.
func own(ev *agentevents.Event, typ string) bool {
	line := ev.Origin()
	return ev.Extra(string(Name)) != "" ||
		line != "" && jsonwire.HasMember(line, "eventId") && jsonwire.Text(jsonwire.Member(line, "type")) == typ
}

// order fits the event that is written into the order of the lines: it changes events that a strict
// reader would refuse.
func (e *Encoder) order(w *engine.Writer, typ string) error {
	used, _ := w.Ev.Payload.(*agentevents.UsageObserved)
	if used != nil && (used.Cumulative || used.Partial) { // readers add the lines up
		return outOfOrder(string(agentevents.KindUsageObserved) +
			" is a running total or partial, and a line has the amount of one call")
	}
	r := e.runs.Of(w.Ev.RunID)
	if r == nil || w.Whole || own(w.Ev, typ) {
		return nil
	}
	if r.ended && (used != nil || w.Ev.Marks.Has(agentevents.MarkLate)) {
		return outOfOrder("comes after the end of the run")
	}
	if name, _ := r.names.Use(w.Ev.NodeRunID); name != "" && w.Ev.NodeRunID != "" {
		e.otherNode(w, name)
	}
	switch p := w.Ev.Payload.(type) {
	case *agentevents.OrchestratorDecided:
		if name := e.agentOf(w.Ev); r.orchestrator != "" && name != r.orchestrator {
			return outOfOrder("is not of the orchestrator of the run")
		}
	case *agentevents.AgentReasoned:
		if b := (openBlock{e.agentOf(w.Ev), p.BlockID}); r.ofAnother(b) {
			ev, whole := *w.Ev, *p
			whole.BlockID, ev.Payload = "", &whole
			w.Say(&ev)
		}
	}
	if e.nodeID == "" || !r.begun && strings.HasPrefix(typ, "node.") {
		return nil
	}
	was, _ := r.nodes.Use(e.nodeID)
	switch _, fault := was.after(typ, w.Ev.Payload); fault {
	case startsRunning:
		if run := w.Ev.NodeRunID; run != "" && run != r.running.Of(e.nodeID) {
			e.otherNode(w, r.name(e.nodeID, run))
			return nil
		}
		ev, again := *w.Ev, *w.Ev.Payload.(*agentevents.NodeStarted)
		again.Attempt, ev.Payload = agentevents.Some(was.attempt+1), &again
		w.Say(&ev)
	case actsDone:
		e.nodeID = ""
	case startsActed, completesUnrun:
		return outOfOrder(fault)
	}
	return nil
}

// otherNode writes the event as one of another node.
func (e *Encoder) otherNode(w *engine.Writer, name string) {
	if e.nodeID != "" {
		e.nodeID = name
	}
}

// name gives an execution of a node a node of its own.
func (r *lined) name(node, run string) string {
	name := ""
	for n := 2; name == "" || r.nodes.Of(name).stage != nodeUnseen; n++ {
		name = node + "-" + strconv.Itoa(n)
	}
	r.names.Set(strings.Clone(run), name)
	return name
}

// ofAnother reports whether only another agent has an open block of the id.
func (r *lined) ofAnother(of openBlock) (other bool) {
	for _, b := range r.blocks {
		if b == of {
			return false
		}
		other = other || b.blockID == of.blockID
	}
	return other
}

// place notes an event whose line was written.
func (e *Encoder) place(ev *agentevents.Event) {
	r, _ := e.runs.Use(ev.RunID)
	if r == nil {
		r = new(lined)
		e.runs.Set(strings.Clone(ev.RunID), r)
	}
	domain, verb, _ := strings.Cut(e.w.Type(), ".")
	switch p := ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		*r = lined{ended: true}
		return
	case *agentevents.OrchestratorDecided:
		if r.orchestrator == "" {
			r.orchestrator = strings.Clone(e.agentOf(ev))
		}
	case *agentevents.AgentReasoningDelta:
		if b := (openBlock{e.agentOf(ev), p.BlockID}); p.BlockID != "" && !slices.Contains(r.blocks, b) {
			r.blocks = engine.Limited(r.blocks, openBlock{strings.Clone(b.agentID), strings.Clone(b.blockID)})
		}
	case *agentevents.AgentReasoned:
		if i := slices.Index(r.blocks, openBlock{e.agentOf(ev), p.BlockID}); i >= 0 {
			r.blocks = slices.Delete(r.blocks, i, i+1)
		}
	case *agentevents.NodeStarted:
		r.running.Set(strings.Clone(e.nodeID), strings.Clone(ev.NodeRunID))
	}
	if domain == "run" {
		r.begun = verb == "started"
		*r = lined{begun: r.begun, ended: r.ended, orchestrator: r.orchestrator, blocks: r.blocks}
		return
	}
	if e.nodeID == "" {
		return
	}
	was, _ := r.nodes.Use(e.nodeID)
	if now, _ := was.after(e.w.Type(), e.payload); now != was {
		r.nodes.Set(strings.Clone(e.nodeID), now)
	}
}
