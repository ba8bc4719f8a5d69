package openharness

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// RunID is the run of the log. The document's events do not name it, but a host
	// knows it: it is the key of its store and the runId of its snapshot. If RunID
	// is empty, the decoder derives an id from the first line of the log, and a new
	// one from each later flow:start, which begins another run. Reading the same log
	// twice gives the same ids.
	RunID string
	// Strict refuses lines that break a rule of the document, with a
	// [*agentevents.RuleError]; see the Rule constants. Without Strict the decoder
	// reads as much of such a line as it can. Extra members break no rule, and
	// neither do types of other producers. A line of an unknown type still needs a
	// timestamp, and its nodeId and runId must be strings.
	Strict bool
}

// Rejected is the text of [agentevents.CommandReceived].Rejected for a send or reply without runId.
// The document requires a runtime to record such a command unchanged and to refuse it (section
// 5.4). The decoder makes up the text, and a different one if a member of such a command has a
// wrong type.
const Rejected = "runId is missing"

// A Decoder turns lines into events. It implements [agentevents.Decoder]. A Decoder is for one log,
// and must not be used concurrently.
//
// No line has an id, a number, a run, a call or a block: the decoder makes them up.
// [Decoder.Losses] lists them with the other made-up values.
type Decoder struct {
	r      engine.Reader
	o      Options
	run    string // the current run
	blocks blocks
	order  order
	nodes  engine.Shared
	agents engine.Shared // the agents of executions: see nameAgent

	aborted bool // the flow was
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	return &Decoder{r: engine.Reader{F: format, Strict: o.Strict}, o: o, run: o.RunID}
}

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	return engine.Decode(dst, line, func(line string, ev *agentevents.Event) error {
		if err := d.read(line, ev); err != nil {
			return err
		}
		if id, block := d.blocks.line(ev.Payload, cmp.Or(ev.AgentID, ev.NodeRunID)); block != "" {
			*id = block
			d.r.Made("/payload/blockId", "the number of the block")
		}
		switch d.r.Type {
		case "flow:start":
			d.nodes, d.agents = engine.Shared{}, engine.Shared{} // another run
		case "node:start":
			d.nodes.Start(ev.NodeID, ev.NodeRunID)
		case "agent:start":
			startsIn(&d.agents, ev, jsonwire.Text(jsonwire.Member(string(d.r.Kept.Object()), agentMember)))
		}
		return d.r.Finish()
	})
}

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// Losses returns the values of the events so far that their lines lack. See [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// Locate returns the pointer of a field on the line that was decoded last. See [dialect.Locator].
func (d *Decoder) Locate(kind agentevents.Kind, native string) string {
	return d.r.Locate(kind, native)
}

// The parts of a line for which ids are derived.
const (
	partEvent = iota
	partRun
	partCall
)

// read reads a line, except for its block and its extra members.
func (d *Decoder) read(line string, ev *agentevents.Event) error {
	r, shared := &d.r, false
	if err := r.Read(line, ev); err != nil {
		return err
	}
	ev.RunID = d.run
	if run := ev.NodeRunID; run != "" && r.Type != "node:skipped" {
		ev.NodeRunID = d.nodes.ID(ev.NodeID, run, r.Type == "node:start")
		shared = ev.NodeRunID != run
	}
	if r.Strict {
		if err := d.check(line, ev); err != nil {
			return err
		}
	}
	if d.o.RunID == "" {
		if d.run == "" || r.Type == "flow:start" && r.Lines > 1 {
			d.run = dialect.DerivedID(line, r.Lines, partRun)
		}
		r.Made("/runId", "derived from the first line of the run")
	}
	ev.RunID, ev.ID, ev.SchemaVersion = d.run, r.IDs.Derived(line, r.Lines, partEvent), agentevents.SchemaVersion
	ev.Sequence = r.Numbers.Next(d.run)
	r.Made("/id", "derived from the line")
	r.Made("/sequence", "the number of the line in its run")
	if !r.Has("timestamp") {
		r.NoTime()
	}
	if ev.NodeRunID == "" && r.Row != nil && r.Type != "node:skipped" {
		switch {
		case ev.NodeID != "":
			ev.NodeRunID = ev.NodeID
			r.Made("/nodeRunId", "the node, as the line names no execution")
		case isAgent(r.Type):
			ev.NodeRunID = ev.RunID
			r.Made("/nodeRunId", "the run, as the line names no node")
		}
	}
	if shared {
		r.Made("/nodeRunId", sharedRun)
	}
	if isAgent(r.Type) {
		d.nameAgent(ev, string(r.Kept.Object()))
	}
	late := false
	if d.aborted, late = afterAbort(d.aborted, r.Type); late {
		ev.Marks |= agentevents.MarkLate
		r.Made("/marks", afterwards)
	}
	switch p := ev.Payload.(type) {
	case nil:
		ev.Payload = r.Unknown()
	case *agentevents.AgentEnded:
		if p.Outcome == "" {
			p.Outcome = agentevents.OutcomeConverged
			r.Made("/payload/outcome", success)
		}
	case *agentevents.ToolReturned:
		p.CallID, p.OneEvent, p.Status = dialect.DerivedID(line, r.Lines, partCall), true, agentevents.ToolStatusOK
		r.Made("/payload/callId", "derived from the line")
		if p.Error.OK {
			p.Status = agentevents.ToolStatusError
		}
	case *agentevents.CommandReceived:
		if p.Rejected = rejection(&p.Command, string(r.Kept.Object())); p.Rejected != "" {
			r.Made("/payload/rejected", refused)
		}
	}
	return nil
}

// The members of lines that tell several agents of an execution apart. The document has none.
const (
	agentMember  = "agentId"
	parentMember = "parentAgentId"
)

// nameAgent gives the agent of a line an id if another one has started in its execution. kept are
// the extra members of the line, of which two may name the agent and the one that it works for.
func (d *Decoder) nameAgent(ev *agentevents.Event, kept string) {
	name := jsonwire.Text(jsonwire.Member(kept, agentMember))
	if name == "" {
		return
	}
	run := ev.NodeRunID
	p, starts := ev.Payload.(*agentevents.AgentStarted)
	if id := d.agents.ID(name, run, starts); id != run {
		ev.AgentID = id
		d.r.Made("/agentId", beside)
	}
	if !starts {
		return
	}
	p.Name = name
	d.r.Made("/payload/name", beside)
	if parent := jsonwire.Text(jsonwire.Member(kept, parentMember)); parent != "" && ev.ParentAgentID == "" {
		if id := d.agents.ID(parent, run, false); id != run || d.agents.Owner(run) == parent {
			ev.ParentAgentID = id
			d.r.Made("/parentAgentId", beside)
		}
	}
}

// startsIn notes the start of an agent of that name, which may be empty, in an execution.
func startsIn(agents *engine.Shared, ev *agentevents.Event, name string) {
	agents.Start(cmp.Or(name, nobody), cmp.Or(ev.AgentID, ev.NodeRunID))
}

const (
	beside  = "from an extra member"
	success = "agent:complete means success"
	refused = "a runtime refuses a command that it cannot route"
	aborted = "flow:aborted"

	afterwards = "the flow was aborted before"
)

func isAgent(typ string) bool { return strings.HasPrefix(typ, "agent:") }

// afterAbort reports whether a line of a type is the abort of its flow or comes after it;
// before is the report for the line before. A line is late if it tells how the work
// stops, edges and loops and the end of the flow included: a node that starts is new work.
func afterAbort(before bool, typ string) (after, late bool) {
	switch {
	case before && typ == "flow:complete":
	case strings.HasPrefix(typ, "flow:"):
		return typ == aborted, false
	case typ == "node:start":
		return before, false
	}
	return before, before
}

// rejection returns the reason for which a runtime rejects a command (section 5.4), or "". kept are
// the extra members of the line.
func rejection(c *agentevents.Command, kept string) string {
	needs := commandNeeds[c.Type]
	if needs == nil {
		return ""
	}
	for _, name := range append([]string{"runId"}, needs...) {
		if raw := jsonwire.Member(kept, "/command/"+name); raw != "" && raw != "null" {
			return name + " is of another type"
		}
	}
	if c.RunID == "" {
		return Rejected
	}
	return ""
}

// check checks a line against the rules of the document.
func (d *Decoder) check(line string, ev *agentevents.Event) error {
	if err := d.r.Check(); err != nil {
		return err
	}
	refuse := func(rule agentevents.Rule, pointer, detail string) error {
		return d.r.Refused(&agentevents.RuleError{Rule: rule, Pointer: pointer, Detail: detail})
	}
	p, isCommand := ev.Payload.(*agentevents.CommandReceived)
	switch {
	case isCommand:
		for _, need := range commandNeeds[p.Command.Type] {
			if !jsonwire.HasMember(jsonwire.Member(line, "command"), need) {
				return refuse(RuleRequired, "/command/"+need, "is required")
			}
		}
	case d.r.Type == "flow:complete":
		status := jsonwire.Text(jsonwire.Member(line, "status"))
		if !jsonwire.HasMember(line, "status") {
			return refuse(RuleRequired, "/status", "is required")
		} else if status != statusComplete && status != statusFailed {
			return refuse(RuleEnum, "/status",
				fmt.Sprintf("%s is not one of %s, %s", jsonwire.Word(status), statusComplete, statusFailed))
		}
	case d.r.Row != nil:
	case !d.r.Has("timestamp"):
		return refuse(RuleRequired, "/timestamp", "is missing, or is not a time in milliseconds")
	}
	if detail := d.order.fault(d.r.Type, ev.NodeRunID, ev.Marks.Has(agentevents.MarkLate)); detail != "" &&
		d.r.Row != nil && !d.aborted {
		return refuse(RuleOrder, "", detail)
	}
	d.order.line(d.r.Type, ev.NodeRunID)
	return nil
}
