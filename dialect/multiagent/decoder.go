package multiagent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
}

// A Decoder turns each line of the document into one event. It implements
// [dialect.Decoder]. A Decoder is for one log, and must not be used concurrently.
//
// It remembers a bounded list of open calls, approvals and handoffs, the latest [Window]
// lines, and a counter for each run.
type Decoder struct {
	r        engine.Reader
	open     openThings
	past     repeats
	sessions engine.Shared // of runs

	// The state of the current line.
	lacking []byte                 // fields that the line lacks: the entries of /made, each after a comma
	named   bool                   // the payload names the agent
	noID    bool                   // it has no id
	parent  string                 // parentSpanId of the payload
	tokens  agentevents.Opt[int64] // of agent.completed
	answer  string                 // to a request for approval, besides the rejection
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder { return &Decoder{r: engine.Reader{F: format, Strict: o.Strict}} }

// decoderOf returns the decoder of a reader. A reader of single values has none.
func decoderOf(r *engine.Reader) *Decoder {
	if d, ok := r.Doc.(*Decoder); ok {
		return d
	}
	return new(Decoder)
}

// Decode appends the event of a line. A line with the same id and bytes as one of the latest
// [Window] lines was delivered again, and has no event.
func (d *Decoder) Decode(dst []agentevents.Event, line []byte) ([]agentevents.Event, error) {
	hash, again := d.past.has(line)
	if again {
		return dst, nil
	}
	return engine.Decode(dst, line, func(line string, ev *agentevents.Event) error {
		if err := d.read(line, ev, &d.open); err != nil {
			return err
		}
		if _, starts := ev.Payload.(*agentevents.SessionStarted); starts {
			d.sessions.Start(ev.SessionID, ev.RunID)
		}
		d.open.note(ev, len(line) > longLine)
		if !d.noID {
			d.past.add(hash)
		}
		return nil
	})
}

// sharedRun is the detail of a run with the runId of another session.
const sharedRun = "another session has started with this runId"

// longLine is the size above which a line is not kept alive for one of its ids.
const longLine = 4 << 10

// End appends nothing: every line is an event by itself.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) { return dst, nil }

// Losses returns the values of the events so far that their lines lack. See [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// Locate returns the pointer of a field on the line that was decoded last. See [dialect.Locator].
func (d *Decoder) Locate(kind agentevents.Kind, native string) string {
	return d.r.Locate(kind, native)
}

// read reads a line into an empty event. open holds the calls and requests that are open before it.
func (d *Decoder) read(line string, ev *agentevents.Event, open *openThings) error {
	r := &d.r
	r.Doc, d.lacking, d.parent, d.tokens, d.answer = d, d.lacking[:0], "", agentevents.Opt[int64]{}, ""
	if err := r.Read(line, ev); err != nil {
		return err
	}
	if ev.Payload == nil {
		ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, r.Type), Raw: agentevents.JSON(r.Body)}
	}
	if d.noID = ev.ID == ""; d.noID {
		ev.ID = r.IDs.Derived(line, r.Lines, 0)
		r.Made("/id", "derived from the line")
	}
	if !r.Has("timestamp") {
		r.NoTime()
	}
	if run := ev.RunID; run != "" {
		_, starts := ev.Payload.(*agentevents.SessionStarted)
		if ev.RunID = d.sessions.ID(ev.SessionID, run, starts); ev.RunID != run {
			r.Made("/runId", sharedRun)
		}
	}
	d.scope(ev, open)
	if r.Strict {
		if err := d.check(ev); err != nil {
			return err
		}
	}
	ev.Sequence, ev.SchemaVersion = r.Numbers.Next(ev.RunID), agentevents.SchemaVersion
	r.Made("/sequence", "the number of the line in its run")
	d.complete(ev, open)
	d.keepRemarks()
	return r.Finish()
}

// check returns the rule that the line breaks, or nil.
func (d *Decoder) check(ev *agentevents.Event) error {
	r := &d.r
	if err := r.Check(); err != nil {
		return err
	}
	broken := contextRule(r.Row, ev)
	if r.Type == "" {
		broken = &agentevents.RuleError{Rule: RuleEnvelope, Pointer: "/type", Detail: needed}
	}
	if broken == nil {
		return nil
	}
	return r.Refused(broken)
}

// contextRule returns the rule about workflowId and phase that an event of a row
// breaks, or nil.
func contextRule(row *engine.Row, ev *agentevents.Event) *agentevents.RuleError {
	needs := factsOf(row)
	switch {
	case !needs.workflow || ev.WorkflowID == "" && ofAgents(row.Kind):
	case ev.WorkflowID == "":
		return &agentevents.RuleError{Rule: RuleWorkflow, Pointer: "/payload/workflowId",
			Detail: "is required in an event of a workflow"}
	case needs.phase && ev.Phase == "":
		return &agentevents.RuleError{Rule: RulePhase, Pointer: "/payload/phase",
			Detail: "is required in a phase, a checkpoint, and an agent of a workflow"}
	}
	return nil
}

// scope decides which of actor and agent a line names, and whose its phase is.
func (d *Decoder) scope(ev *agentevents.Event, open *openThings) {
	d.named = ev.AgentID != ""
	switch {
	case d.named:
		if (ofAgents(ev.Kind()) || byOthers(ev.Kind())) && ev.Actor == ev.AgentID {
			ev.Actor = ""
		}
		// A twin is known by its span.
		if p, ok := ev.Payload.(*agentevents.AgentStarted); ok && !p.Agent.OK && !p.Resumed && !p.Attempt.OK &&
			open.twin(ev, ev.AgentID) {
			p.Agent, ev.AgentID = agentevents.Some(agentevents.AgentRef{AgentID: ev.AgentID}), ""
		}
		if span := open.ofTwin(ev, ev.AgentID); span != "" {
			d.r.Kept.Add("/payload/agentId", jsonwire.Quote(ev.AgentID))
			ev.AgentID = span
		}
	case open.hasSpan(ev), byOthers(ev.Kind()), d.r.Row == nil && unlisted(d.r.Type): // the actor spawns or reports
	case !nonAgent(ev.Actor):
		ev.AgentID, ev.Actor = ev.Actor, ""
	}
	if ev.Phase != "" && ev.WorkflowID == "" && !factsOf(d.r.Row).phase {
		d.r.Kept.Add("/payload/phase", jsonwire.Quote(ev.Phase))
		ev.Phase = ""
	}
}

// nonAgent reports whether readers do not take an actor of that name for an agent.
func nonAgent(actor string) bool {
	return slices.ContainsFunc([]string{"user", "human", "orchestrator", "system"},
		func(word string) bool { return strings.EqualFold(word, actor) })
}

// lacks notes that the line lacks a field.
func (d *Decoder) lacks(field string) {
	d.lacking = jsonwire.AppendString(append(d.lacking, ','), field)
}

// complete makes up the values that the vocabulary requires and the line lacks.
func (d *Decoder) complete(ev *agentevents.Event, open *openThings) {
	r := &d.r
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		switch said := d.parent; {
		case said == ev.ParentSpanID:
		case said == "":
			d.lacks("parentSpanId")
		case ev.ParentSpanID == "":
			ev.ParentSpanID = said
			d.lacks(envelopeParent)
		default:
			r.Kept.Add("/payload/parentSpanId", jsonwire.Quote(said))
		}
	case *agentevents.AgentEnded:
		switch {
		case !p.Usage.OK && d.tokens.OK:
			p.Usage = agentevents.Some(agentevents.Usage{TotalTokens: d.tokens})
		case d.tokens != tokensOf(p):
			if d.tokens.OK {
				r.Kept.Add("/payload/tokens", strconv.FormatInt(d.tokens.V, 10))
			}
			d.lacks("tokens")
		}
		if !d.named && ev.AgentID != "" {
			d.lacks("agentId")
		}
	}
	list := factsOf(r.Row).made
	for i := range list {
		f := &list[i]
		if text := f.text(ev); *text == "" {
			d.makeUp(ev, f, text, open)
		}
	}
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRejected:
		if p.Answer = d.answer; p.Answer != "" {
			r.Made("/payload/answer", "the type or another member tells it")
		}
	case *agentevents.MessageCreated:
		if !r.Has("ts") {
			p.Message.TS = ev.Time.UnixMilli()
			r.Made("/payload/message/ts", "the line lacks it")
			d.lacks("ts")
		}
	case *agentevents.ToolReturned:
		if caller, ok := open.caller(ev, p, ev.AgentID); ok && !d.named && caller != ev.AgentID {
			ev.AgentID, ev.Actor = caller, cmp.Or(ev.Actor, ev.AgentID)
			if caller != "" {
				d.lacks("agentId")
			}
		}
	}
}

// makeUp makes up the text of a field.
func (d *Decoder) makeUp(ev *agentevents.Event, f *madeUp, text *string, open *openThings) {
	r := &d.r
	word := wordOf(r.Type)
	value, alone := made(f.from, ev, open, string(r.Kept.Object()), word)
	if value == "" || f.from == ofHandoff && r.Has(f.name) { // an empty id names no handoff
		return
	}
	*text = value
	if p, returns := ev.Payload.(*agentevents.ToolReturned); returns && f.from == ofError && word != "" {
		setStatus(p, word)
	}
	if _, said := succeeded(string(r.Kept.Object())); !said && word == "" || f.from != ofError && f.from != ofFlag {
		r.Made(f.pointer, "the line lacks it")
	}
	if r.Has(f.name) && !jsonwire.HasMember(string(r.Kept.Object()), "/payload/"+d.spelled(f.name)) {
		d.lacks(f.inside) // the line has the agent as an object without this member
	} else {
		d.lacks(f.name)
	}
	if p, _ := ev.Payload.(*agentevents.ToolReturned); alone && !p.OneEvent {
		p.OneEvent = true
		r.Made("/payload/oneEvent", "no open call matches")
		d.lacks("oneEvent")
	}
}

// spelled returns the name that a field has on the line.
func (d *Decoder) spelled(field string) string {
	for _, s := range d.r.Spelled {
		if s.Member.Name == field {
			return s.Name
		}
	}
	return field
}

// envelopeParent is the envelope's parentSpanId in /made, where parentSpanId is the
// payload's.
const envelopeParent = "/parentSpanId"

// keepRemarks keeps the members /as and /made.
func (d *Decoder) keepRemarks() {
	var as []byte
	for _, s := range d.r.Spelled {
		as = append(jsonwire.AppendString(append(as, ','), s.Member.Name), ':')
		as = jsonwire.AppendString(as, s.Name)
	}
	if row := d.r.Row; row != nil && (row.Reads || row.Type != d.r.Type) {
		as = jsonwire.AppendString(append(as, `,"type":`...), d.r.Type)
	}
	if len(as) > 0 {
		d.r.Kept.Add("/as", "{"+string(as[1:])+"}")
	}
	if len(d.lacking) > 0 {
		d.r.Kept.Add("/made", "["+string(d.lacking[1:])+"]")
	}
}
