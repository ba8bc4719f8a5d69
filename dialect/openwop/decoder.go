package openwop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the profile: see the Rule constants.
	// The error is a [*agentevents.RuleError]. Without Strict the decoder reads such
	// lines as far as it can.
	Strict bool
	// Letter has Strict refuse three things more, which the RFC's text excludes and the schemas and
	// the encoder allow: under RFC0002 a tool without a scope before a colon, and a handoff without
	// a node or to the same agent; under all profiles a block of reasoning without an id that is
	// open at the end of its node or run, if another agent has reasoned since.
	Letter bool
	// Profile selects the rules of Strict. The decoder reads the names of all
	// profiles. If a payload has two spellings of a member, it reads the profile's.
	Profile Profile
	// ThresholdOf returns the confidence threshold of the agent in the run. A
	// decision below it must be escalated before its node completes. The start of a run
	// may state the run's own (configurable.escalationThreshold), which goes first; no line
	// states an agent's. Nil means [DefaultThreshold]. See package host.
	ThresholdOf func(runID, agentID string) float64
	// Folded means that the caller folds the events too. Strict then leaves the document's rules
	// that a fold has to the fold: tool-call-open, delta-index and message-group. Otherwise Strict
	// folds the runs itself, which needs the memory of a fold.
	Folded bool
}

// A Decoder turns run event documents into events. It implements
// [agentevents.Decoder]. It reads one log and is not for concurrent use.
type Decoder struct {
	o    Options
	doc  *document
	r    engine.Reader
	open interrupts
	runs engine.Recent[string, *runState]

	alone   bool // the rules over several lines are left out
	scratch []byte

	// The line that is read.
	row       *row                   // nil for a type that the vocabulary does not have
	foreign   bool                   // it is not in the profile's spelling
	moves     bool                   // the encoder writes another type, which may have another form
	node      string                 // of the payload
	question  string                 // id of the question that the line answers or repeats
	version   string                 // schemaVersion, a JSON number
	reducer   string                 // of a message
	writtenAt string                 // of a message
	details   dialect.Unknowns       // of a suspension
	odd       *agentevents.RuleError // the fault of the first extra member that the profile does not allow
	spelled   []string               // pointers of members that could be left out
	absent    []string               // pointers of required and usual members that the line lacks, in the RFC's names
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	if o.ThresholdOf == nil {
		o.ThresholdOf = func(string, string) float64 { return DefaultThreshold }
	}
	doc := documentOf(o.Profile)
	o.Profile = doc.p
	d := &Decoder{o: o, doc: doc, r: engine.Reader{F: doc.Format, Strict: o.Strict}}
	d.r.Doc = d
	return d
}

func decoderOf(r *engine.Reader) *Decoder { return r.Doc.(*Decoder) }

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
	d.reset()
	if err := r.Read(line, ev); err != nil {
		return err
	}
	ev.SchemaVersion = agentevents.SchemaVersion
	for _, code := range r.Spelled {
		d.spelled = append(d.spelled, inError+code.Name)
	}
	d.envelope(line)
	d.missing()
	if r.Row == nil {
		d.other()
	} else {
		d.finish(jsonwire.Member(line, "payload"))
	}
	d.form()
	if d.o.Strict {
		if err := d.check(line); err != nil {
			return err
		}
	}
	if d.odd != nil && !d.moves {
		r.Kept.Add(keptProfile, jsonwire.Quote(d.o.Profile.String()))
	}
	d.remark(keptSpelled, d.spelled)
	d.remark(keptAbsent, d.absent)
	return r.Finish()
}

// reset forgets the line that was read.
func (d *Decoder) reset() {
	d.row, d.foreign, d.moves, d.node, d.question, d.version, d.reducer, d.writtenAt, d.odd = nil, false, false,
		"", "", "", "", "", nil
	d.details.Reset()
	d.spelled, d.absent = d.spelled[:0], d.absent[:0]
}

func (d *Decoder) remark(name string, pointers []string) {
	if len(pointers) > 0 {
		d.r.Kept.Add(name, `["`+strings.Join(pointers, `","`)+`"]`)
	}
}

// envelope makes up the members of the envelope that the line lacks.
func (d *Decoder) envelope(line string) {
	r := &d.r
	if !r.Has("eventId") {
		r.Ev.ID = r.IDs.Derived(line, r.Lines, 0)
		r.Made("/id", "derived from the line")
	}
	if !r.Has("sequence") {
		r.Ev.Sequence = uint64(r.Lines - 1)
		r.Made("/sequence", "the number of the line")
	}
	if !r.Has("timestamp") {
		r.NoTime()
	}
}

// missing notes the required and usual members that the line lacks.
func (d *Decoder) missing() {
	r := &d.r
	for at, m := range r.Missing() {
		twin := func(o engine.Member) bool { return o.For == m.Name && r.BodyHas(o.Name) }
		if r.Row != nil && slices.ContainsFunc(r.Row.Members, twin) {
			continue
		}
		d.absent = append(d.absent, strings.TrimSuffix(at, m.Name)+cmp.Or(rfcNames[m.Name], m.Name))
		if r.Row != nil && native(r.Row.Kind, m.Fields) {
			r.Made("/payload/"+m.Fields, "the line lacks it")
		}
	}
	if d.row == nil {
		return
	}
	for _, name := range d.row.usual {
		if !r.BodyHas(name) && (name != "nodeId" || r.Ev.NodeID != "") {
			d.absent = append(d.absent, "/payload/"+name)
		}
	}
	switch id := r.Ev.NodeID; {
	case !r.BodyHas("nodeId"), id == d.node:
	case id == "":
		r.Ev.NodeID = d.node
		d.absent = append(d.absent, "/nodeId")
	default:
		r.Kept.Add("/payload/nodeId", jsonwire.Quote(d.node))
	}
}

// native reports whether the native line of a kind always has the field: readers of it take an
// empty one for known.
func native(kind agentevents.Kind, field string) bool {
	empty := agentevents.Event{Payload: agentevents.NewPayload(kind)}
	line, _ := empty.AppendJSON(nil) // an empty payload has a line, too
	return field != "" && jsonwire.Member(jsonwire.Member(string(line), "payload"), field) != ""
}

// other reads a line whose type the vocabulary does not have.
func (d *Decoder) other() {
	r := &d.r
	r.Ev.Payload = &agentevents.Unknown{Type: dialect.UnknownKind(Name, r.Type), Raw: agentevents.JSON(r.Body)}
	r.Ev.AgentID = agentOf(r.Body)
	if d.question != "" {
		r.Kept.Add(keptTwin, jsonwire.Quote(d.question))
	}
	d.open.note(r.Ev, r.Type)
	if p := d.o.Profile; p != RFC0002 {
		d.odd = cmp.Or(d.odd, brokenPayload(p, payloadOf(p, r.Type), r.Body))
	}
	if (r.Type == nodeResumed || r.Type == nodeCancelled) && !r.Has("nodeId") {
		// The fold needs the node, but only the payload must have it.
		r.Ev.NodeID = jsonwire.Text(jsonwire.Member(r.Body, "nodeId"))
		d.absent = append(d.absent, "/nodeId")
	}
}

// finish sets the fields that more than one member decides.
func (d *Decoder) finish(payload string) {
	r, ev := &d.r, d.r.Ev
	if id, pointer := interruptOf(ev.Payload); id != nil {
		d.pair(id, pointer)
	}
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		if derived := derivedStatus(p); !r.Has("status") {
			p.Status = derived
		} else if p.Status == derived {
			d.spelled = append(d.spelled, "/payload/status")
		}
	case *agentevents.ApprovalGranted:
		answeredBy(payload, "granted", &p.Answer, &p.Feedback)
	case *agentevents.ApprovalRejected:
		answeredBy(payload, "rejected", &p.Answer, &p.Feedback)
	case *agentevents.AgentHandoff:
		ev.AgentID = cmp.Or(ev.AgentID, p.From.AgentID)
	case *agentevents.NodeSuspended:
		p.Details = d.details.Object()
		d.open.note(ev, r.Type)
	case *agentevents.MessageCreated:
		if r.Has("reducer") && d.reducer != reducerRFC {
			r.Kept.Add("/payload/reducer", jsonwire.Quote(d.reducer))
		}
		if r.Has("writtenAt") && d.writtenAt != jsonwire.Text(string(jsonwire.AppendTime(nil, ev.Time))) {
			r.Kept.Add("/payload/writtenAt", jsonwire.Quote(d.writtenAt))
		}
	}
}

// pair gives a question or an answer the id of its question.
func (d *Decoder) pair(id *string, pointer string) {
	r, own := &d.r, d.question
	name := "interruptId"
	if !r.BodyHas(name) {
		name = "gateId"
	}
	switch {
	case own != "" && *id != "" && *id != own &&
		(d.o.Profile != SchemaV2 || *id != NormalizeID(SchemaV2, InterruptID, own)):
		r.Kept.Add("/payload/"+name, jsonwire.Quote(*id))
		fallthrough
	case own != "":
		*id = own
	case *id == "":
		*id = madeInterruptID(r.Ev)
		r.Made(pointer, "derived from the event")
	}
	d.open.note(r.Ev, r.Type)
}

// form notes a type or a spelling that is not the profile's.
func (d *Decoder) form() {
	r := &d.r
	if d.row == nil {
		return
	}
	// encoders make up an empty one
	v2 := likeV2(d.version, r.Ev.RunID) && (r.Ev.ID == "" || ValidID(SchemaV2, EventID, r.Ev.ID))
	d.foreign = r.Foreign()
	if of := d.row.of; of == ofTurn || of == ofOpening || of != "" && (r.Type != d.row.typ || !v2) {
		r.Kept.Add(keptType, jsonwire.Quote(r.Type))
	} else if r.Type != d.doc.Row(d.row.kind).Type {
		d.foreign, d.moves = true, true
	}
}

// likeV2 reports whether a line seems to be one of SchemaV2: it has a version, and its run
// has the form of SchemaV2.
func likeV2(version, runID string) bool {
	return version != "" && ValidID(SchemaV2, RunID, runID)
}

// spell notes that the line has the member that is read.
func (d *Decoder) spell(r *engine.Reader) { d.spelled = append(d.spelled, r.Pointer()) }

// pick returns the row of a line.
func pick(r *engine.Reader) *engine.Row {
	d := decoderOf(r)
	asked, twin := d.asked(r.S.Text())
	if twin {
		return nil
	}
	line := d.doc.rows[look(r.S.Text(), r.Type, asked)]
	if line != nil {
		d.row = line.More.(*row)
	}
	return line
}

// asked returns the kind of the question that a line answers, or "". It reports true for a
// line that asks or answers as an earlier line does.
func (d *Decoder) asked(line string) (kind string, twin bool) {
	if saidTypes[d.r.Type].form == 0 {
		return "", false
	}
	s, is := saidBy(d.r.Type, jsonwire.Text(jsonwire.Member(line, "runId")),
		jsonwire.Text(jsonwire.Member(line, "nodeId")), jsonwire.Member(line, "payload"))
	if !is {
		return "", false
	}
	q := (*question)(nil)
	if s.answers {
		q, twin = d.open.answered(&s)
	} else {
		q = d.open.twin(&s)
		twin = q != nil
	}
	if q == nil {
		return "", false
	}
	if d.question = q.id; twin {
		return "", true
	}
	return q.kind, false
}

// keep records the first extra member that breaks a schema. It takes the extra members of a
// suspension as its details.
func keep(r *engine.Reader, name, raw string) (taken bool, err error) {
	d, p := decoderOf(r), decoderOf(r).o.Profile
	at := r.PointerTo(name)
	in := at[:strings.LastIndexByte(at, '/')]
	switch {
	case d.odd != nil:
	case p != RFC0002:
		if rule, detail := wrong(p, d.row.object(p, in), name, raw); detail != "" {
			d.odd = breaks(rule, at, detail)
		}
	}
	if in != "/payload" || d.row.kind != agentevents.KindNodeSuspended {
		return false, nil
	}
	if !d.details.Add(name, raw) {
		return false, r.S.Duplicate(name)
	}
	return true, nil
}

// unknownPrefix goes before a type whose name is taken: see
// [dialect.UnknownKind].
const unknownPrefix = string(Name) + ":"

// Types that the vocabulary does not have but the fold uses.
const (
	nodeResumed   = "node.resumed"
	nodeCancelled = "node.cancelled"
)

// agentOf returns the agentId of a payload, or "".
func agentOf(raw string) string {
	return jsonwire.Text(jsonwire.Member(raw, "agentId"))
}

// rfcNames are the RFC's names of members that a line may lack.
var rfcNames = map[string]string{"toolName": "toolId", "fromAgentId": "from", "toAgentId": "to"}
