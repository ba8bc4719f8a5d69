package agui

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write JSON Lines.
type EncoderOptions struct {
	// SSE writes each line as a Server-Sent Event: its data, and a blank line.
	SSE bool
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// An Encoder writes events as AG-UI lines. It implements [dialect.Encoder]. It must not be used
// concurrently. It remembers at least the latest 16,384 runs and threads: a run that goes on after so
// many others begins again, and a thread has an empty state then. Its memory grows with the ids of
// messages and calls of these threads (some 20 bytes each), with the blocks and calls of runs that have
// not ended, and with the names in the state. It remembers 64 blocks that the end of a run has cut, and
// 16,384 other blocks and calls that are not open on its lines. Unless it is Fast, it also holds a
// [Decoder] of its lines, and the events whose lines wait.
//
// It writes the lines that the protocol needs around those of the events: see the documentation of
// the package. The lines of a run wait for the end of the runs that began before it: up to 64 MiB,
// then the one under way ends with an error.
type Encoder struct {
	o       EncoderOptions
	w       engine.Writer
	measure *dialect.Measure                  // nil: the losses are not asked for
	reads   *Decoder                          // reads the lines for it
	s       *streamOut                        // of the event that is written
	streams engine.Recent[string, *streamOut] // by run
	threads engine.Recent[string, *thread]
	calls   map[string]toolCall // that have not returned
	queue   []*streamOut        // runs that have not ended, or wait; the first one is under way
	waiting int                 // length of the lines that wait
	parts   int                 // of the stream so far, each between a start and an end
	again   map[string]int      // how often an id was made of one event
	owner   string              // whose event is written
	block   *block              // of it
	before  *block              // one that is open, and in whose place it comes
	result  string              // the id of the message with the result of a call
	fill    string              // the rest of its text, which no line has
	start   string              // the line that opens it, if it has one
	held    []agentevents.Event // answers that the next event may have in its line
	begins  bool                // that event begins a run of the stream
	check   Decoder             // reads lines as readers of those before do
	rest    string              // the members of the payload that the line lacks
	own     []byte              // the line of the event; the memory is reused, like buf's
	buf     []byte
}

// A streamOut is the state of an encoder in the run under way.
type streamOut struct {
	stream
	blocks      map[string]blocks  // open ones, by agent
	shut        map[shutKey]*block // calls that have not returned, and blocks that were cut
	acts        map[string]acts    // by agent
	returned    ids                // calls that have returned and that no line has begun
	segment     int                // the number of the part of the stream that it is
	spans       bool               // the span of its start is all that names an agent
	lines       []byte             // that wait for the end of the runs before
	usage, told []byte             // reports for the line of its end, and their own lines, if it does not come next
	asked       []byte             // lines of requests, written unless the run's end comes next and lists them
	asking      []asking           // the facts of these that the outcome must have
}

// maxWaiting is the highest number of bytes that wait for the end of a run. It is given up
// when there are more.
const maxWaiting = 64 << 20

// blocks holds the blocks of an agent by their type and the id in its events.
type blocks map[blockKey]*block

type blockKey struct {
	typ blockType
	id  string
}

// A shutKey names a block of an agent that is not open.
type shutKey struct {
	agent string
	blockKey
}

// Numbers of blocks that are remembered although no line is to come before they go on: of a run,
// and of one that is over.
const (
	maxShut = dialect.MaxCalls
	maxOver = 64
)

var _ dialect.Encoder = (*Encoder)(nil)

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	e := new(Encoder)
	e.init(o)
	return e
}

// init makes a zero Encoder ready.
func (e *Encoder) init(o EncoderOptions) {
	*e = Encoder{o: o, w: engine.Writer{F: format},
		calls: map[string]toolCall{}, again: map[string]int{}}
	e.check = *NewDecoder(Options{})
	e.check.r.Doc, e.check.aside = &e.check, true
	if !o.Fast {
		e.reads = NewDecoder(Options{})
		e.measure = dialect.NewMeasure(Name, e.reads, words)
	}
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Losses returns the losses so far: the encoder reads the lines back, see [dialect.Measure].
// Lines that wait are read later.
func (e *Encoder) Losses() []dialect.Loss { return e.measure.Losses() }

// called is the role of a block of a call that has not returned.
const called = "called"

// newStreamOut returns the stream of a run. Of one that goes on, before is the one so far.
func (e *Encoder) newStreamOut(run, session string, before *streamOut) *streamOut {
	e.parts++
	s := &streamOut{segment: e.parts, blocks: map[string]blocks{}, shut: map[shutKey]*block{},
		acts: map[string]acts{}, returned: ids{}}
	name, k := cmp.Or(session, run), (*kept)(nil)
	if before != nil {
		name, k, s.shut, s.acts, s.spans = before.thread, before.kept, before.shut, before.acts, before.spans
	}
	t := of(&e.threads, name, false)
	if t.runs > 0 { // where its lines will come, a front end may have any state: it begins with an empty one
		t.state = &state{}
	}
	s.stream = newStream(run, name, k, e.calls, t)
	return s
}

// Append appends the lines of an event; see [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) (out []byte, _ error) {
	if e.holds(&ev) {
		e.held = append(e.held, ev)
		return dst, nil
	}
	mark, err := len(dst), error(nil)
	defer func() { e.came(out[mark:]) }()
	if len(e.held) > 0 && !e.answeredBy(&ev) {
		dst, err = e.flush(dst)
	}
	dst, failed := e.append(dst, ev)
	return dst, cmp.Or(failed, err)
}

func (e *Encoder) append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.RunID == "" {
		return dst, &agentevents.RuleError{Rule: RuleRequired, Kind: ev.Kind(), EventID: ev.ID, Sequence: ev.Sequence,
			Pointer: "/runId", Detail: "is required"}
	}
	if e.w.F == nil { // it is the zero Encoder
		e.init(e.o)
	}
	defer e.release()
	before, begins := e.turn(&ev)
	if e.s.over {
		e.measure.Wrote(&ev, nil, nil)
		return dst, nil
	}
	switch ev.Payload.(type) {
	case *agentevents.AgentStarted, *agentevents.AgentEnded:
		if ev.AgentID == "" && ev.NodeRunID == "" && ev.SpanID != "" {
			e.s.spans = true
		}
	}
	e.enter(&ev)
	line, _, err := e.w.Append(e.own[:0], &ev, (*document)(e))
	if e.own = line; err != nil {
		e.measure.Wrote(&ev, nil, err)
		return dst, err
	}
	e.measure.Waits(&ev)
	if u, ok := ev.Payload.(*agentevents.UsageObserved); ok && !begins {
		raw := string(dialect.Unknown(&ev, Name, "usage"))
		if p := reportOf(raw); p != nil && *p == *u {
			e.s.usage = append(append(e.s.usage, ','), raw...)
			e.s.told = append(e.s.told, line...)
			return dst, nil
		}
	}
	if raw := string(dialect.Unknown(&ev, Name, interruptOf)); raw != "" && !begins && e.s.requests(&ev, raw) {
		e.s.asked, e.s.asking = append(append(e.s.asked, before...), line...),
			append(e.s.asking, asking{strings.Clone(raw), headOf(&ev)})
		e.after(&ev)
		return dst, nil
	}
	if typ := e.w.Type(); typ != "RUN_FINISHED" && typ != "RUN_ERROR" {
		before += string(e.s.told)
	}
	if !e.s.said(&ev) {
		before += string(e.s.asked)
	}
	e.s.usage, e.s.told, e.s.asked, e.s.asking = e.s.usage[:0], e.s.told[:0], e.s.asked[:0], nil
	before += e.prepare(&ev)
	e.after(&ev)
	if p, ok := ev.Payload.(*agentevents.RunStarted); ok {
		if initial := stateOf(p); initial != "" {
			line = append(append(line, lineOf("STATE_DELTA", "", "", `,"delta":`+setAll("", initial), true)...), '\n')
		}
	}
	return e.emit(dst, before, line, begins), nil
}

// release lets go of the event that was written.
func (e *Encoder) release() {
	e.w.Release()
	e.own, e.buf, e.rest, e.start, e.block = engine.Buffer(e.own), engine.Buffer(e.buf), "", "", nil
	e.before, e.owner, e.result, e.fill = nil, "", "", ""
	e.check.release()
	clear(e.check.s.open)
}

// came reads lines that are written.
func (e *Encoder) came(lines []byte) {
	e.measure.Came(lines)
	if e.measure != nil {
		e.reads.release()
	}
}

// release lets go of the line that was read last.
func (d *Decoder) release() {
	d.r.Release()
	d.buf, d.thread, d.role, d.tool, d.rest, d.patch, d.patches, d.usage = engine.Buffer(d.buf), "", "", "", "",
		delta{}, nil, nil
	d.result, d.delta = "", ""
}

// turn makes the stream of the event's run the one that is written. It returns the line
// that begins it, if that is not the event's.
func (e *Encoder) turn(ev *agentevents.Event) (before string, begins bool) {
	if s := e.other(ev); s != nil {
		e.s, e.begins = s, false
		return "", false
	}
	_, resumes := ev.Payload.(*agentevents.RunResumed)
	_, starts := ev.Payload.(*agentevents.RunStarted)
	e.s, _ = e.streams.Use(ev.RunID)
	e.begins = false
	switch known := e.s != nil; {
	case known && !(e.s.over && (resumes || e.s.paused)):
	case e.streams.Len() == 0 && isOther(ev.Payload): // it begins nothing
		e.s = e.newStreamOut("", "", nil)
	default:
		e.s = e.newStreamOut(strings.Clone(ev.RunID), strings.Clone(ev.SessionID), e.s)
		if begins, e.begins = true, known && resumes || !known && starts; !e.begins {
			before = lineOf("RUN_STARTED", "", "",
				`,"threadId":`+jsonwire.Quote(e.s.thread)+`,"runId":`+jsonwire.Quote(e.s.run), true) + "\n"
		}
	}
	return before, begins
}

// emit appends the lines in before and the line of an event. If the run has to wait, it keeps them
// until the runs before have ended. begins is true for the first lines of a run.
func (e *Encoder) emit(dst []byte, before string, line []byte, begins bool) []byte {
	if begins {
		e.streams.Set(e.s.run, e.s)
		e.queue = append(e.queue, e.s)
		e.s.of.runs++
	}
	if e.s.run == "" || e.s == e.queue[0] {
		return e.next(frame(e, frame(e, dst, before), line))
	}
	e.s.lines = append(append(e.s.lines, before...), line...)
	if e.waiting += len(before) + len(line); e.waiting > maxWaiting {
		dst = e.giveUp(dst)
	}
	return dst
}

// next appends the lines that wait for the end of the run under way, if it is over.
func (e *Encoder) next(dst []byte) []byte {
	for len(e.queue) > 0 && e.queue[0].over {
		e.queue[0].of.runs--
		if e.queue = e.queue[1:]; len(e.queue) > 0 {
			next := e.queue[0]
			dst = frame(e, dst, next.lines)
			e.waiting, next.lines = e.waiting-len(next.lines), nil
		}
	}
	return dst
}

// giveUp ends the run under way, which has not ended.
func (e *Encoder) giveUp(dst []byte) []byte {
	e.s = e.queue[0]
	lines := string(e.s.told) + string(e.s.asked) + e.close("", true) +
		lineOf("RUN_ERROR", "", "", `,"message":"the log goes on with another run"`, true) + "\n"
	e.s.over = true
	return e.next(frame(e, dst, lines))
}

// Over reports whether the last event has ended or paused its run for the readers.
func (e *Encoder) Over() bool { return e.s != nil && e.s.over }

// End ends all runs but the last, and closes the open blocks and calls of the last.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	mark := len(dst)
	dst, err := e.flush(dst)
	for len(e.queue) > 1 {
		dst = e.giveUp(dst)
	}
	if len(e.queue) == 1 {
		e.s = e.queue[0]
		dst = frame(e, dst, string(e.s.told)+string(e.s.asked)+e.close("", true))
	}
	e.came(dst[mark:])
	e.measure.Ends()
	return dst, err
}

// isOther reports whether an event is a line of a type that the protocol does not have.
func isOther(p agentevents.Payload) bool {
	u, ok := p.(*agentevents.Unknown)
	return ok && isType(typeOf(u)) && !types[typeOf(u)]
}

// typeOf returns the type of the line of an unknown kind.
func typeOf(u *agentevents.Unknown) string {
	return strings.TrimPrefix(string(u.Type), string(Name)+":")
}

// isType reports whether a word looks like a type of the protocol.
func isType(word string) bool {
	return word != "" && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// quoted returns the tag of an agent: none for the run's.
func quoted(agent string) string {
	if agent == "" {
		return ""
	}
	return jsonwire.Quote(agent)
}

// frame appends lines, as frames if they are to be Server-Sent Events.
func frame[T string | []byte](e *Encoder, dst []byte, lines T) []byte {
	if !e.o.SSE {
		return append(dst, lines...)
	}
	for line := range strings.Lines(string(lines)) {
		dst = append(append(append(dst, "data: "...), line...), '\n')
	}
	return dst
}

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (d *document) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	e, p := (*Encoder)(d), w.Ev.Payload
	if u, ok := p.(*agentevents.Unknown); ok && !isType(typeOf(u)) {
		other := *w.Ev
		other.Payload = &agentevents.Unknown{Type: "CUSTOM",
			Raw: agentevents.JSON(`{"name":` + jsonwire.Quote(custom+string(u.Type)) + `,"value":` +
				cmp.Or(string(u.Raw), "null") + `}`)}
		w.Say(&other)
	}
	row, mark := e.row(w.Ev), len(dst)
	e.rest = ""
	if row != nil && row.Type == "CUSTOM" && !w.Whole {
		uncount(w)
	}
	dst, err := w.Line(dst, row)
	if err != nil || row == nil || row.Type == "CUSTOM" || isDelta(row.Kind) {
		return dst, err
	}
	if e.rest = e.unsaid(w, string(dst[mark:])); e.rest == "" {
		return dst, nil
	}
	w.Say(w.Ev)
	return w.Line(dst[:mark], row)
}

// uncount removes the index of a delta in a line CUSTOM: the lines of other deltas of the block
// have none, and readers would miss them.
func uncount(w *engine.Writer) {
	ev := *w.Ev
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta:
		piece := *p
		piece.Index, ev.Payload = agentevents.Opt[int]{}, &piece
	case *agentevents.AgentReasoningDelta:
		piece := *p
		piece.Index, ev.Payload = agentevents.Opt[int]{}, &piece
	case *agentevents.ToolArgumentsDelta:
		piece := *p
		piece.Index, ev.Payload = agentevents.Opt[int]{}, &piece
	default:
		return
	}
	w.Say(&ev)
}

// badEnds are how a sub-agent ends that has not finished its work.
var badEnds = map[endword.Meaning]bool{endword.Failed: true, endword.Refused: true, endword.Cancelled: true}

// row returns the row that an event is written as, or nil.
func (e *Encoder) row(ev *agentevents.Event) *engine.Row {
	own := !ofBlock(ev.Payload) || e.block != nil // or else as CUSTOM: no line of a block without one
	switch p := ev.Payload.(type) {
	case *agentevents.Unknown:
		return nil
	case *agentevents.RunStarted, *agentevents.RunResumed:
		own = e.begins
	case *agentevents.RunPaused:
		outcome := string(dialect.Unknown(ev, Name, "outcome"))
		own = outcome != "" && e.s.asks(outcome) || len(e.s.questions.open) > 0
	case *agentevents.StatePatched:
		if p.Op == agentevents.PatchSet && jsonwire.Path(p.Path) == "" && p.Value != "" {
			return format.CaseRow(typeSnapshot, "")
		}
	case *agentevents.AgentStarted:
		_, known := e.s.going[ev.AgentID]
		_, parent := e.s.going[ev.ParentAgentID]
		own = !known && ev.AgentID != "" && ev.AgentID != e.s.main && ev.ParentAgentID != "" &&
			(parent || ev.ParentAgentID == e.s.main)
	case *agentevents.RunFailed:
		if dialect.Unknown(ev, Name, "outcome") != "" {
			return format.CaseRow("RUN_FINISHED", caseFailed)
		}
	case *agentevents.AgentEnded:
		if own = e.s.going[ev.AgentID]; own && (p.Error.OK || p.Status != "" && badEnds[engine.Ending(p)]) {
			return format.CaseRow(typeSubagentError, "")
		}
	}
	if own {
		return format.Row(ev.Kind())
	}
	return format.CaseRow("CUSTOM", string(ev.Kind()))
}

func (d *document) Reread(w *engine.Writer, line string) error {
	line = dataOf(line)
	typ := jsonwire.Text(jsonwire.Member(line, "type"))
	if w.Origin = line; (*Encoder)(d).mayAnswer(w.Ev) || strings.ContainsAny(line, "\r\n") || typ != w.Type() ||
		d.block != nil && !d.block.isOn(line) {
		return engine.ErrMisfit // the line has a meaning only beside others, or the lines after it miss the event's own
	}
	d.check.r.Continue(w)
	list, err := (*Encoder)(d).reread(line)
	if err != nil || len(list) != 1 || len(d.check.patches) > 0 && !d.check.patch.plain { // the state has no values
		return cmp.Or(err, engine.ErrMisfit)
	}
	w.Read = list[0]
	return nil
}

// reread returns the events that readers of the lines so far make of a line.
func (e *Encoder) reread(line string) ([]agentevents.Event, error) {
	d, open, calls, done := &e.check, e.check.s.open, e.check.s.calls, e.check.s.done
	clear(open)
	clear(calls)
	clear(done)
	d.runs.Clear()
	d.threads.Clear()
	d.s, d.s.open, d.s.calls, d.s.done = e.s.stream, open, calls, done
	for _, run := range []string{e.s.run, e.w.Ev.RunID} {
		if s := e.streams.Of(run); s != nil {
			d.runs.Set(s.run, s.kept) // not run, which may hold all of the event's line
		}
	}
	d.threads.Set(e.s.thread, e.s.of)
	if b := e.block; b != nil {
		read := *b
		if read.text = nil; !isDelta(e.w.Ev.Kind()) { // a delta does not depend on it
			read.text = append(b.text[:len(b.text):len(b.text)], e.fill...)
		}
		if open[string(b.typ)+b.id] = &read; b.role == called || b.tool != "" { // or else readers know no call
			calls[e.s.call(b.id)] = toolCall{run: b.run, tool: b.tool, agent: e.w.Ev.AgentID}
		} else if e.s.returned.has(b.id) {
			done[b.id] = unknown
		}
	}
	return d.line(nil, line)
}

// unsaid returns the members of the payload that readers of a line lack. Those that they
// make up are listed under absent.
func (e *Encoder) unsaid(w *engine.Writer, line string) string {
	own, err := payloadOf(&e.buf, w.Ev.Payload)
	if err != nil {
		w.Fail(agentevents.RuleFieldJSON, "/payload", err.Error())
		return ""
	}
	list, err := e.reread(line)
	if err != nil {
		w.Fail(agentevents.RulePayload, "/payload", "readers refuse the line: "+err.Error())
		return ""
	}
	said, gone := "", ""
	// The line may have answers that the log has not.
	if _, starts := w.Ev.Payload.(*agentevents.RunStarted); starts && len(list) > 1 || e.mayAnswer(w.Ev) {
		gone = "," + jsonwire.Quote("/"+answerOf)
	}
	if n := len(list); n > 0 { // reports of usage come before the end of a run
		if said, _ = payloadOf(&e.buf, list[n-1].Payload); said == own && gone == "" { // as mostly
			return ""
		}
	}
	same := func(name string) bool { return name == "blockId" && e.block.begun } // as in its deltas
	for name := range jsonwire.Members(said) {
		if !jsonwire.HasMember(own, name) && !same(name) {
			gone += "," + jsonwire.Quote(name)
		}
	}
	var lacks []byte
	if gone != "" {
		lacks = append(lacks, `,"`+absent+`":[`+gone[1:]+"]"...)
	}
	for name, raw := range jsonwire.Members(own) {
		if jsonwire.Member(said, name) != raw && !same(name) {
			lacks = append(append(jsonwire.AppendString(append(lacks, ','), name), ':'), raw...)
		}
	}
	return strings.TrimPrefix(string(lacks), ",")
}

// absent is the key under which the payload's missing fields are listed.
const absent = "absent"
