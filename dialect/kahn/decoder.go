package kahn

import (
	"slices"
	"strconv"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict makes the decoder refuse a line that breaks a rule of the document. The line then
	// has an event in small letters and underscores that is not one of the document's five, lacks
	// a required member, or has an id that does not match its pattern, a word that its enum does
	// not list, a number outside its range, an output_summary over [MaxSummary] characters, or a
	// time in another form than the document's. The error is a [*agentevents.RuleError] whose Rule
	// is one of this package's. Without Strict the decoder reads the valid members of such a line.
	Strict bool
}

// A Decoder turns KAHN lines into events. It implements [agentevents.Decoder]. It reads one log and
// is not for concurrent use.
//
// A tool_invocation becomes one ToolReturned with OneEvent set. A line with an event that the
// document does not list becomes [agentevents.Unknown], with the members of the line that are not
// in the envelope.
//
// The document has no ids of events and calls, and no sequence numbers: the decoder derives them
// from the line and its place in the log. [Decoder.Losses] lists them with the other made-up
// values.
type Decoder struct{ r engine.Reader }

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{engine.Reader{F: format, Strict: o.Strict}} }

// Decode appends the event of a line.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	return engine.Decode(dst, line, d.read)
}

// End appends nothing: every line is complete.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// Losses returns the values of the events so far that their lines lack. See [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// Locate returns the pointer of a field on the line that was decoded last. See [dialect.Locator].
func (d *Decoder) Locate(kind agentevents.Kind, native string) string {
	return d.r.Locate(kind, native)
}

func (d *Decoder) read(line string, ev *agentevents.Event) error {
	r := &d.r
	if err := r.Read(line, ev); err != nil {
		return err
	}
	if r.Strict {
		if err := r.Check(); err != nil {
			return err
		}
	}
	ev.ID, ev.Sequence, ev.SchemaVersion = r.IDs.Derived(line, r.Lines, 0), r.Numbers.Next(ev.RunID),
		agentevents.SchemaVersion
	r.Made("/id", "derived from the line")
	r.Made("/sequence", "the number of the line in its run")
	if !r.Has("ts") {
		r.NoTime()
	}
	switch p := ev.Payload.(type) {
	case nil:
		ev.Payload = r.Unknown()
	case *agentevents.ToolReturned:
		p.CallID, p.OneEvent = dialect.DerivedID(line, r.Lines, 1), true
		r.Made("/payload/callId", "derived from the line")
	case *agentevents.AgentEnded:
		d.someTotals(p)
	}
	return r.Finish()
}

// someTotals keeps the totals of an end that lacks some of them: the missing ones
// are not 0.
func (d *Decoder) someTotals(p *agentevents.AgentEnded) {
	if !slices.ContainsFunc(totals, func(name string) bool { return !d.r.Has(name) }) {
		return
	}
	for _, name := range totals {
		if d.r.Has(name) {
			d.r.Kept.Add(name, strconv.Itoa(totalIn(&p.Totals.V, name)))
		}
	}
	p.Totals = agentevents.Opt[agentevents.Totals]{}
}
