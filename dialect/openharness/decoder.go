package openharness

import (
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
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
	// reads as much of such a line as it can. Extra members and unknown types break
	// no rule. A line of an unknown type still needs a timestamp, and its nodeId and
	// runId must be strings.
	Strict bool
}

// Rejected is the text of [agentevents.CommandReceived].Rejected for a send or reply
// without runId. The document says that a runtime records such a command and refuses it
// (section 5.4). The decoder makes the text up.
const Rejected = "runId is missing"

// A Decoder turns lines into events. It implements [agentevents.Decoder]. A Decoder is
// for one log, and must not be used concurrently.
//
// No line has an id, a number, a run, a call or a block: the decoder makes them up.
// [Decoder.Losses] lists them, and what else a line does not say.
type Decoder struct {
	r      wire.Reader
	o      Options
	run    string // the current run
	blocks blocks
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	return &Decoder{r: wire.Reader{F: format, Strict: o.Strict}, o: o, run: o.RunID}
}

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	return wire.Decode(dst, line, func(line string, ev *agentevents.Event) error {
		if err := d.read(line, ev); err != nil {
			return err
		}
		if id, block := d.blocks.line(ev.Payload, ev.NodeRunID); block != "" {
			*id = block
			d.r.Made("/payload/blockId", "the number of the block")
		}
		return d.r.Finish()
	})
}

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// Losses returns what the events so far say that their lines do not. See
// [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// The parts of a line for which ids are derived.
const (
	partEvent = iota
	partRun
	partCall
)

// read reads a line, except for its block and its extra members.
func (d *Decoder) read(line string, ev *agentevents.Event) error {
	r := &d.r
	if err := r.Read(line, ev); err != nil {
		return err
	}
	ev.RunID = d.run
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
	switch p := ev.Payload.(type) {
	case nil:
		ev.Payload = r.Unknown()
	case *agentevents.ToolReturned:
		p.CallID, p.OneEvent, p.Status = dialect.DerivedID(line, r.Lines, partCall), true, agentevents.ToolStatusOK
		r.Made("/payload/callId", "derived from the line")
		if p.Error.OK {
			p.Status = agentevents.ToolStatusError
		}
	case *agentevents.CommandReceived:
		if misrouted(&p.Command) {
			p.Rejected = Rejected
			r.Made("/payload/rejected", "a runtime refuses a command without runId")
		}
	}
	return nil
}

// misrouted reports whether a runtime rejects the command (section 5.4).
func misrouted(c *agentevents.Command) bool {
	return c.RunID == "" && (c.Type == agentevents.CommandSend || c.Type == agentevents.CommandReply)
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
		for name, raw := range jsonwire.Members(line) {
			for _, need := range commandNeeds[p.Command.Type] {
				if name == "command" && !jsonwire.HasMember(raw, need) {
					return refuse(RuleRequired, "/command/"+need, "is required")
				}
			}
		}
	case d.r.Row != nil:
	case d.r.Type == "flow:complete":
		if !jsonwire.HasMember(line, "status") {
			return refuse(RuleRequired, "/status", "is required")
		}
		return refuse(RuleEnum, "/status", fmt.Sprintf("%s is not one of %s, %s", jsonwire.Word(caseOf(d.r.Type, line)), statusComplete, statusFailed))
	case !d.r.Has("timestamp"):
		return refuse(RuleRequired, "/timestamp", "is missing, or is not a time in milliseconds")
	}
	return nil
}
