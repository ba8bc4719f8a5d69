package kaos

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the document, with a
	// [*agentevents.RuleError]; see the Rule constants. Without Strict the decoder
	// reads as much of such a line as it can.
	Strict bool
	// Anchor is a moment of the wall clock, and AnchorSeconds the reading of the producing
	// process's monotonic clock at that moment. They turn timestamps into times. With the zero
	// Anchor, the decoder assumes that the monotonic clock started at the Unix epoch: times are in
	// 1970, their differences are right, and the first event of every run has
	// "/timestamp":"monotonic" in its extra member. AnchorSeconds may be negative; a value that is
	// not finite counts as 0.
	Anchor        time.Time
	AnchorSeconds float64
}

// A Decoder turns KAOS lines into events. It implements [dialect.Decoder]. It
// reads JSON Lines and Server-Sent Events, also mixed in one log. A Decoder is for
// one log, and must not be used concurrently.
//
// A line that is identical to an earlier one, with a timestamp and a sequence, is that
// event again and gives none; a strict decoder refuses it once.
//
// The memory of a Decoder grows with the number of runs and of open spans. It
// forgets the oldest open spans and the oldest lines, but never one of the latest 8,192.
type Decoder struct {
	o     Options
	clock clock
	r     engine.Reader
	open  opens
	roots roots
	// seen has the sequences of the latest lines by their hashes. A sequence may repeat, so that
	// only the identical line is the same event: a stream that begins again where it broke off
	// has some lines twice. A line without a time or a sequence may be two events.
	seen  engine.Recent[uint64, int64]
	frame frame
	// Of the line that is read:
	said    said
	change  change
	refused *agentevents.RuleError // of a strict decoder
}

// said holds the facts that forms read from a line beside the event.
type said struct {
	sequence  int64
	name      string // of a span
	agent     string // the name of a sub-agent
	failed    bool   // is_error
	delegates bool   // the line's agent is the parent of the event's
	below     bool   // the parent is the agent of the span around it
	agentMade string // why the line's agent has another id, if it has
	asides    dialect.Unknowns
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	d := &Decoder{o: o, clock: newClock(o.Anchor, o.AnchorSeconds), r: engine.Reader{F: format, Strict: o.Strict}}
	d.r.Doc = d
	return d
}

func decoderOf(r *engine.Reader) *Decoder { return r.Doc.(*Decoder) }

// Losses returns the values of the events so far that their lines lack. See [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// Locate returns the pointer of a field on the line that was decoded last. See [dialect.Locator].
func (d *Decoder) Locate(kind agentevents.Kind, native string) string {
	return d.r.Locate(kind, native)
}

// release lets go of the line that was read last.
func (d *Decoder) release() {
	d.r.Release()
	d.said, d.change = said{}, change{}
}

// errForeign is the error of an object of another format: other streams hold
// objects with a type, too.
var errForeign = errors.New("not a KAOS event: it has none of the members timestamp, sequence, session_id and run_id")

// document appends the event of one JSON object: a line, or the data of a frame. A repeated object
// appends none.
func (d *Decoder) document(dst []agentevents.Event, text []byte) ([]agentevents.Event, error) {
	n, hash := len(dst), jsonwire.Hash(text)
	if sequence, again := d.seen.Get(hash); again {
		d.frame.sequence = sequence
		return dst, nil
	}
	dst = append(dst, agentevents.Event{}) // an event is large: read it in place
	if err := d.read(string(text), &dst[n]); err != nil {
		d.r.Lines-- // the object may only be torn
		return dst[:n], err
	}
	d.open.settle(&d.change)
	d.r.Numbers.Next(dst[n].RunID)
	d.roots.note(&dst[n])
	if d.identifies() {
		d.seen.Set(hash, d.said.sequence)
	}
	if d.refused != nil {
		return dst[:n], d.refused
	}
	return dst, nil
}

// identifies reports whether no other event has the line that was read.
func (d *Decoder) identifies() bool { return d.r.LineHas("timestamp") && d.r.LineHas("sequence") }

func (d *Decoder) read(line string, ev *agentevents.Event) error {
	r := &d.r
	d.change.reset()
	if err := d.members(line, ev); err != nil {
		return err
	}
	if r.Strict {
		d.refused, _ = d.check(line).(*agentevents.RuleError)
	}
	if !slices.ContainsFunc(base[:4], r.Has) {
		if d.refused != nil {
			return d.refused
		}
		return &agentevents.LineError{Err: errForeign}
	}
	if r.Row == nil {
		ev.Payload = r.Unknown()
	}
	d.frame.sequence = d.said.sequence
	number := r.Numbers.Peek(ev.RunID)
	d.number(number)
	if r.Row != nil && r.Row.Type == "span" && !d.span(ev) {
		r.Plain = true
		r.Lines--
		err := d.members(line, ev)
		r.Plain = false
		if err != nil {
			return err
		}
		d.number(number)
	}
	ev.ID, ev.SchemaVersion = r.IDs.Derived(line, r.Lines, 0), agentevents.SchemaVersion
	r.Made("/id", "derived from the line")
	if !r.Has("timestamp") {
		r.NoTime()
	} else if d.monotonic(ev) {
		r.Made("/timestamp", "the monotonic clock is taken to begin in 1970")
	}
	switch p := ev.Payload.(type) {
	case *agentevents.Unknown:
		d.after(line)
	case *agentevents.ApprovalRequested:
		p.ApprovalID = cmp.Or(p.CallID, ev.RunID)
		r.Made("/payload/approvalId", "the id of the call or, without a call, of the run")
	case *agentevents.ClarificationRequested:
		d.clarification(p)
	}
	switch {
	case d.said.agentMade == "":
	case !d.said.delegates:
		r.Made("/agentId", d.said.agentMade)
	case ev.ParentAgentID == Root && !d.roots.have(ev.RunID):
		ev.ParentAgentID = ""
	case ev.ParentAgentID != "":
		r.Made("/parentAgentId", d.said.agentMade)
	}
	r.KeepBody()
	for name, raw := range jsonwire.Members(string(d.said.asides.Object())) {
		r.Kept.Add(name, raw)
	}
	if ev.Sequence == 0 && d.monotonic(ev) {
		r.Kept.Add(monotonic, `"monotonic"`)
	}
	return r.Finish()
}

// monotonic reports whether the time of an event is a reading of a clock without a date: one
// that counts seconds since 1970 is later than any machine has run.
func (d *Decoder) monotonic(ev *agentevents.Event) bool {
	return d.o.Anchor.IsZero() && ev.Time.Year() < 2000
}

// number gives the event its number, and keeps the line's if it differs.
func (d *Decoder) number(n uint64) {
	r := &d.r
	r.Ev.Sequence = n
	if said := r.Has("sequence"); !said || uint64(d.said.sequence) != n {
		r.Made("/sequence", "the number of the line in its run")
		if said {
			r.Kept.Add("sequence", strconv.FormatInt(d.said.sequence, 10))
		}
	}
}

// members reads the members of a line.
func (d *Decoder) members(line string, ev *agentevents.Event) error {
	*ev = agentevents.Event{}
	d.said = said{}
	err := d.r.Read(line, ev)
	switch said := ev.AgentID; {
	case said == "":
		ev.AgentID, d.said.agentMade = Root, "the root agent has no id"
	case named(said) != said:
		ev.AgentID, d.said.agentMade = named(said), "another agent than the root agent, which has no id"
	}
	return err
}

// check checks the rules of the document.
func (d *Decoder) check(line string) error {
	r := &d.r
	if err := r.Check(); err != nil {
		return err
	}
	if d.frame.named && d.frame.event != r.Type {
		return r.Refused(&agentevents.RuleError{Rule: RuleFrame, Pointer: "/type",
			Detail: "the event line of the frame has " + jsonwire.Word(d.frame.event)})
	}
	if r.Type != "span" {
		return nil
	}
	phase := jsonwire.Text(jsonwire.Member(line, "phase"))
	for name, raw := range jsonwire.Members(line) {
		if raw != "null" && nullIn(phase, name) {
			return r.Refused(&agentevents.RuleError{Rule: RulePhase, Pointer: "/" + name, Detail: mustBeNull + phase})
		}
	}
	return nil
}

// base are the members of every line, in front of the others.
var base = [...]string{"timestamp", "sequence", "session_id", "run_id", "agent_id"}

// after keeps how many members of a line of an unknown type follow the type.
func (d *Decoder) after(line string) {
	before, after := 0, 0
	count := &before
	for name := range jsonwire.Members(line) {
		switch {
		case name == "type":
			count = &after
		case !slices.Contains(base[:], name):
			*count++
		case before > 0:
			return // writers put it in front
		}
	}
	if before > 0 && after > 0 {
		d.r.Kept.Add(afterType, strconv.Itoa(after))
	}
}

// clarification makes the ids of a question.
func (d *Decoder) clarification(p *agentevents.ClarificationRequested) {
	r := &d.r
	token := jsonwire.Member(string(d.said.asides.Object()), "resume_token")
	if token != "" {
		r.Kept.Add("resume_token", token)
	}
	if p.InterruptID == "" {
		p.InterruptID = cmp.Or(jsonwire.Text(token), r.Ev.RunID)
		r.Made("/payload/interruptId", "the resume token or, without one, the run's id")
	}
	if len(p.Questions) == 0 {
		p.Questions = []agentevents.Question{{}}
	}
	p.Questions[0].ID = p.InterruptID
	r.Made("/payload/questions/0/id", "the interrupt's id")
}
