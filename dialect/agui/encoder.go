package agui

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/wire"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// EncoderOptions configure an [Encoder]. The zero EncoderOptions write JSON Lines.
type EncoderOptions struct {
	// SSE writes each line as a Server-Sent Event: its data, and a blank line.
	SSE bool
}

// An Encoder writes events as AG-UI lines. It implements [dialect.Encoder]. It must not be
// used concurrently. Its memory grows with the number of runs, and with the blocks and
// calls of those that have not ended.
//
// It writes the lines that the protocol needs around those of the events: see the
// documentation of the package. The lines of a run wait for the end of the runs that
// began before it: up to 64 MiB, then the one under way ends with an error.
type Encoder struct {
	o       EncoderOptions
	w       wire.Writer
	s       *streamOut            // of the event that is written
	streams map[string]*streamOut // by run
	calls   map[string]toolCall   // that have not returned
	queue   []*streamOut          // runs that have not ended, or wait; the first one is under way
	waiting int                   // length of the lines that wait
	numbers dialect.Numbers
	block   *block  // of the event that is written
	start   string  // the line that opens it, if it has one
	begins  bool    // that event begins a run of the stream
	check   Decoder // reads lines as readers of those before do
	rest    string  // what the line lacks of the payload
	own     []byte  // the line of the event; its memory is used again, as that of buf
	buf     []byte
}

// A streamOut is what an encoder knows of the run under way.
type streamOut struct {
	stream
	blocks map[string]blocks // open ones, and calls that have not returned, by agent
	used   map[string]int    // ids of messages and calls: how many were made of one
	spans  bool              // the span of its start is all that names an agent
	lines  []byte            // that wait for the end of the runs before
	usage  string            // reports of it that the line of its end says
	told   string            // lines of their own for these, if the end does not come next
}

// maxWaiting is the highest number of bytes that wait for the end of a run. It is given up
// when there are more.
const maxWaiting = 64 << 20

// blocks are those of an agent, by their type and the id in its events.
type blocks map[blockKey]*block

type blockKey struct {
	typ blockType
	id  string
}

var _ dialect.Encoder = (*Encoder)(nil)

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	e := &Encoder{o: o, w: wire.Writer{F: format}, streams: map[string]*streamOut{}, calls: map[string]toolCall{}}
	e.check = *NewDecoder(Options{})
	e.check.r.Doc, e.check.aside = &e.check, true
	return e
}

func encoderOf(w *wire.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Losses returns the losses so far. See [dialect.Encoder].
func (e *Encoder) Losses() []dialect.Loss { return e.w.Losses.List() }

// called is the role of a block of a call that has not returned.
const called = "called"

// newStreamOut returns the stream of a run. Of one that goes on, before is the one so far.
func (e *Encoder) newStreamOut(run, session string, before *streamOut) *streamOut {
	if before == nil {
		before = &streamOut{}
	}
	return &streamOut{stream: newStream(run, cmp.Or(session, run), before.kept, e.calls), spans: before.spans, blocks: map[string]blocks{}, used: map[string]int{}}
}

// Append appends the lines of an event; see [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	if ev.RunID == "" {
		return dst, &agentevents.RuleError{Rule: RuleRequired, Kind: ev.Kind(), EventID: ev.ID, Sequence: ev.Sequence, Pointer: "/runId", Detail: "is required"}
	}
	before, begins := e.turn(&ev)
	if e.s.over {
		e.w.Losses.Add(&ev, dialect.Dropped, "", "the run is over")
		return dst, nil
	}
	if _, starts := ev.Payload.(*agentevents.AgentStarted); starts && ev.AgentID == "" && ev.NodeRunID == "" {
		e.s.spans = true
	}
	e.block = e.enter(&ev)
	line, verbatim, err := e.w.Append(e.own[:0], &ev, (*document)(e))
	if e.own = line; err != nil {
		return dst, err
	}
	e.everywhere(&ev, verbatim)
	if u, ok := ev.Payload.(*agentevents.UsageObserved); ok && !begins {
		raw := string(dialect.Unknown(&ev, Name, "usage"))
		if p := reportOf(raw); p != nil && *p == *u {
			e.s.usage += "," + raw
			e.s.told += string(line)
			return dst, nil
		}
	}
	if typ := e.w.Type(); typ != "RUN_FINISHED" && typ != "RUN_ERROR" {
		before += e.s.told
	}
	e.s.usage, e.s.told = "", ""
	before += e.prepare(&ev)
	e.after(&ev)
	return e.emit(dst, before, line, begins), nil
}

// turn makes the stream of the event's run the one that is written. It returns the line
// that begins it, if that is not the event's.
func (e *Encoder) turn(ev *agentevents.Event) (before string, begins bool) {
	_, resumes := ev.Payload.(*agentevents.RunResumed)
	_, starts := ev.Payload.(*agentevents.RunStarted)
	e.s, e.begins = e.streams[ev.RunID], false
	switch known := e.s != nil; {
	case known && !(e.s.over && (resumes || e.s.paused)):
	case len(e.streams) == 0 && isOther(ev.Payload): // it begins nothing
		e.s = e.newStreamOut("", "", nil)
	default:
		e.s = e.newStreamOut(strings.Clone(ev.RunID), strings.Clone(ev.SessionID), e.s)
		if begins, e.begins = true, starts || known && resumes; !e.begins {
			before = lineOf("RUN_STARTED", "", "", `,"threadId":`+jsonwire.Quote(e.s.thread)+`,"runId":`+jsonwire.Quote(e.s.run), true) + "\n"
		}
	}
	return before, begins
}

// emit appends lines of the run that is written, or lets them wait until the runs before
// have ended: those before the line of an event, and that line. begins says that they are
// the first ones.
func (e *Encoder) emit(dst []byte, before string, line []byte, begins bool) []byte {
	if begins {
		e.streams[e.s.run] = e.s
		e.queue = append(e.queue, e.s)
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
		e.queue[0].blocks, e.queue[0].used = nil, nil
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
	lines := e.s.told + e.close("", true) + lineOf("RUN_ERROR", "", "", `,"message":"the log goes on with another run"`, true) + "\n"
	e.s.over = true
	return e.next(frame(e, dst, lines))
}

// Over reports whether the last event has ended or paused its run for the readers.
func (e *Encoder) Over() bool { return e.s != nil && e.s.over }

// End ends what is open. It does not end the last run.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	for len(e.queue) > 1 {
		dst = e.giveUp(dst)
	}
	if len(e.queue) == 1 {
		e.s = e.queue[0]
		dst = frame(e, dst, e.s.told+e.close("", true))
	}
	return dst, nil
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

// enter returns the block of an event, or nil: a new one, if it is not open.
func (e *Encoder) enter(ev *agentevents.Event) *block {
	typ, id, delta := blockOf(ev.Payload)
	e.start = string(dialect.Unknown(ev, Name, remarkStart))
	role, tool := assistant, jsonwire.Text(jsonwire.Member(e.start, "toolCallName"))
	calls, returns := false, false
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		calls, tool = true, cmp.Or(p.ToolID, tool)
	case *agentevents.ToolReturned:
		if typ, id, returns = call, &p.CallID, true; p.OneEvent && p.ToolID != unknown {
			tool = p.ToolID
		}
	case *agentevents.MessageCreated:
		if role = p.Message.From; e.start == "" || !slices.Contains(people, role) {
			return nil
		}
	}
	if id == nil || delta != nil && *delta == "" {
		return nil
	}
	key, agent := blockKey{typ, *id}, cmp.Or(ev.AgentID, ev.NodeRunID)
	b := e.s.blocks[agent][key]
	switch {
	case typ == call && delta != nil && (b == nil && tool == "" || b != nil && b.role == called):
		return nil // no line can begin the call, or its arguments are complete
	case typ == text && b != nil && b.role != role:
		return nil // the message is another's
	case b != nil && !(calls && b.role == called): // or else the id names another call now
		return b
	}
	b = &block{typ: typ, role: role, tool: tool, id: e.unique(typ, *id), start: e.start, run: e.s.run, owner: agent, key: key}
	if c, open := e.s.calls[e.s.call(b.id)]; open && returns {
		b.role, b.tool, b.run = called, c.tool, c.run
	}
	return b
}

// unique returns an id for a message or a call that no other one of the run has.
func (e *Encoder) unique(typ blockType, id string) string {
	own, count := id, typ.space()+id
	for n := max(1, e.s.used[count]); own == "" || e.s.used[typ.space()+own] > 0; n++ {
		own = cmp.Or(id, "block") + "~" + strconv.Itoa(n)
		e.s.used[count] = n
	}
	return own
}

// prepare returns the lines that the protocol needs before the line of an event.
func (e *Encoder) prepare(ev *agentevents.Event) (before string) {
	b, typ := e.block, e.w.Type()
	member := func(name string) string { return jsonwire.Member(string(e.own), name) }
	if e.start != "" && (b == nil || b.begun || !b.starts(member("subagentRunId"))) {
		e.w.Losses.Add(ev, dialect.Dropped, "/"+string(Name)+"/"+jsonwire.Token(remarkStart), "no block begins with it")
	}
	step := func(other, name string, ends bool) {
		if e.s.steps[ev.AgentID][name] != ends {
			before = lineOf(other, member("timestamp"), member("subagentRunId"), `,"stepName":`+jsonwire.Quote(name), true) + "\n"
		}
	}
	switch p := ev.Payload.(type) {
	case *agentevents.StepStarted:
		step("STEP_FINISHED", p.StepID, false)
	case *agentevents.StepEnded:
		step("STEP_STARTED", p.StepID, true)
	}
	switch typ {
	case "SUBAGENT_FINISHED", "SUBAGENT_ERROR":
		before = e.close(ev.AgentID, false)
	case "RUN_FINISHED", "RUN_ERROR":
		before = e.close("", true)
	}
	if b == nil {
		return before
	}
	_, returned := ev.Payload.(*agentevents.ToolReturned)
	if returned && (b.role == called || b.tool == "") {
		return before
	}
	at := member("timestamp")
	if !b.begun {
		b.begun, b.agent = true, member("subagentRunId")
		if !b.starts(b.agent) {
			b.start = b.line("START", at, "", false)
		}
		before += b.start + "\n"
	}
	if rest := e.fill(ev.Payload); rest != "" {
		before += b.line("", at, rest, true) + "\n"
	}
	if returned {
		before += b.line("END", at, "", true) + "\n"
	}
	return before
}

// after notes the line of an event.
func (e *Encoder) after(ev *agentevents.Event) {
	e.s.settle(e.w.Type(), ev)
	e.s.ask(ev)
	b := e.block
	if b == nil {
		return
	}
	e.s.used[b.typ.space()+b.id] = max(1, e.s.used[b.typ.space()+b.id])
	_, _, delta := blockOf(ev.Payload)
	switch _, calls := ev.Payload.(*agentevents.ToolCalled); {
	case delta != nil:
		b.text = append(b.text, *delta...)
	case calls:
		b.role, b.text = called, nil
		e.calls[e.s.call(b.id)] = toolCall{e.s.run, strings.Clone(b.tool)}
	default:
		e.forget(b)
		if b.typ == call {
			delete(e.calls, e.s.call(b.id))
		}
		return
	}
	if e.s.blocks[b.owner] == nil {
		e.s.blocks[b.owner] = blocks{}
	}
	e.s.blocks[b.owner][b.key] = b
}

// forget removes a block that is not open.
func (e *Encoder) forget(b *block) {
	if delete(e.s.blocks[b.owner], b.key); len(e.s.blocks[b.owner]) == 0 {
		delete(e.s.blocks, b.owner)
	}
}

// everywhere counts what no line says. Readers of a verbatim line read the same again.
func (e *Encoder) everywhere(ev *agentevents.Event, verbatim bool) {
	number, session := e.numbers.Next(e.s.run), e.s.session()
	if verbatim {
		return
	}
	every := func(lost bool, what dialect.Change, pointer, detail string) {
		if lost {
			e.w.Losses.Every(ev, what, pointer, detail)
		}
	}
	every(ev.ID != "", dialect.Dropped, "/id", "the protocol has no ids of events")
	every(ev.Sequence != number, dialect.Dropped, "/sequence", "readers count the events of a run")
	every(e.s.run == "", dialect.Dropped, "/runId", "no line names the run")
	switch {
	case session == "":
		every(ev.SessionID != "", dialect.Dropped, "/sessionId", "the thread of the run has the run's id")
	case ev.SessionID == "":
		every(true, dialect.Made, "/sessionId", "the thread of the run")
	default:
		every(session != ev.SessionID, dialect.Altered, "/sessionId", "the thread of the run")
	}
}

// close returns the lines that end what is open, of an agent or of all.
func (e *Encoder) close(agent string, all bool) string {
	var lines strings.Builder
	agents, suspended := []string{agent}, ""
	if all {
		agents = slices.Sorted(maps.Keys(e.s.blocks))
	}
	if _, pauses := e.w.Ev.Payload.(*agentevents.RunPaused); pauses {
		suspended = `,"outcome":{"type":"suspended"}`
	}
	for _, typ := range []blockType{call, reasoning, text} {
		for _, agent := range agents {
			for _, b := range slices.SortedFunc(maps.Values(e.s.blocks[agent]), func(a, b *block) int { return cmp.Compare(a.key.id, b.key.id) }) {
				if b.typ == typ && b.role != called {
					lines.WriteString(b.line("END", "", "", true) + "\n")
					e.forget(b)
				}
			}
		}
	}
	if all {
		agents = slices.Sorted(maps.Keys(e.s.steps))
	}
	for _, agent := range agents {
		for _, name := range slices.Sorted(maps.Keys(e.s.steps[agent])) {
			lines.WriteString(lineOf("STEP_FINISHED", "", quoted(agent), `,"stepName":`+jsonwire.Quote(name), true) + "\n")
		}
		delete(e.s.steps, agent)
	}
	if all {
		for _, id := range slices.Sorted(maps.Keys(e.s.going)) {
			if e.s.going[id] {
				lines.WriteString(lineOf("SUBAGENT_FINISHED", "", quoted(id), suspended, true) + "\n")
				e.s.going[id] = false
			}
		}
	}
	return lines.String()
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

func (d *document) Line(w *wire.Writer, dst []byte) ([]byte, error) {
	e, p := (*Encoder)(d), w.Ev.Payload
	if u, ok := p.(*agentevents.Unknown); ok && !isType(typeOf(u)) {
		if u.Raw == "" {
			w.Lose(dialect.Made, "/payload", "null")
		}
		other := *w.Ev
		other.Payload = &agentevents.Unknown{Type: "CUSTOM", Raw: agentevents.JSON(`{"name":` + jsonwire.Quote(custom+string(u.Type)) + `,"value":` + cmp.Or(string(u.Raw), "null") + `}`)}
		w.Say(&other)
	}
	row, mark, losses := e.row(w.Ev), len(dst), w.Pend.Len()
	e.rest = ""
	dst, err := w.Line(dst, row)
	if err != nil || row == nil || row.Type == "CUSTOM" || isDelta(row.Kind) {
		return dst, err
	}
	if e.rest = e.unsaid(w, string(dst[mark:])); e.rest == "" {
		return dst, nil
	}
	w.Pend.Cut(losses)
	w.Say(w.Ev)
	return w.Line(dst[:mark], row)
}

// row returns the row that an event is written as, or nil.
func (e *Encoder) row(ev *agentevents.Event) *wire.Row {
	own := !ofBlock(ev.Payload) || e.block != nil // or else as CUSTOM: no line of a block without one
	switch p := ev.Payload.(type) {
	case *agentevents.Unknown:
		return nil
	case *agentevents.RunStarted, *agentevents.RunResumed:
		own = e.begins
	case *agentevents.RunPaused:
		own = dialect.Unknown(ev, Name, "outcome") != "" || len(e.s.questions) > 0
	case *agentevents.StatePatched:
		if p.Op == agentevents.PatchSet && p.Path == "" && p.Value != "" {
			return format.CaseRow(typeSnapshot, "")
		}
	case *agentevents.AgentStarted:
		_, known := e.s.going[ev.AgentID]
		_, parent := e.s.going[ev.ParentAgentID]
		own = !known && ev.AgentID != "" && ev.AgentID != e.s.main && ev.ParentAgentID != "" && (parent || ev.ParentAgentID == e.s.main)
	case *agentevents.AgentEnded:
		if own = e.s.going[ev.AgentID]; own && p.Error.OK {
			return format.CaseRow(typeSubagentError, "")
		}
	}
	if own {
		return format.Row(ev.Kind())
	}
	return format.CaseRow("CUSTOM", string(ev.Kind()))
}

func (d *document) Reread(w *wire.Writer, line string) error {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ")
	b, member := d.block, func(name string) string { return jsonwire.Text(jsonwire.Member(line, name)) }
	if w.Origin = line; strings.ContainsAny(line, "\r\n") || member("type") != w.Type() || b != nil && member(b.idName()) != b.id {
		return wire.ErrMisfit // it says something only beside others, or the lines after it miss the event's own
	}
	d.check.r.Continue(w)
	list, err := (*Encoder)(d).reread(w.Ev.Payload, line)
	if err != nil || len(list) != 1 {
		return cmp.Or(err, wire.ErrMisfit)
	}
	w.Read = list[0]
	return nil
}

// reread returns what readers of the lines so far make of a line for an event with the
// payload.
func (e *Encoder) reread(p agentevents.Payload, line string) ([]agentevents.Event, error) {
	d, open, calls := &e.check, e.check.s.open, e.check.s.calls
	clear(open)
	clear(calls)
	clear(d.runs)
	d.s, d.s.open, d.s.calls = e.s.stream, open, calls
	if e.streams[e.s.run] != nil {
		d.runs[e.s.run] = e.s.kept
	}
	if b := e.block; b != nil {
		read := *b
		read.text = append(read.text[:len(read.text):len(read.text)], e.fill(p)...)
		if open[string(b.typ)+b.id] = &read; b.role == called || b.tool != "" { // or else readers know no call
			calls[e.s.call(b.id)] = toolCall{b.run, b.tool}
		}
	}
	return d.line(nil, line)
}

// fill returns the text that readers lack of the block that an event ends: all of it, if
// there were no deltas.
func (e *Encoder) fill(p agentevents.Payload) string {
	whole, b := wholeOf(p), e.block
	if rest, ok := strings.CutPrefix(whole, string(b.text)); ok && (len(b.text) == 0 || b.typ != call) {
		return rest
	}
	return ""
}

// unsaid returns the members of the payload that readers of a line lack. Those that they
// make up are listed under absent.
func (e *Encoder) unsaid(w *wire.Writer, line string) (rest string) {
	own, err := payloadOf(&e.buf, w.Ev.Payload)
	if err != nil {
		w.Fail(agentevents.RuleFieldJSON, "/payload", err.Error())
		return ""
	}
	list, err := e.reread(w.Ev.Payload, line)
	if err != nil {
		w.Fail(agentevents.RulePayload, "/payload", "readers refuse the line: "+err.Error())
		return ""
	}
	said, gone := "", ""
	if n := len(list); n > 0 { // reports of usage come before the end of a run
		if said, _ = payloadOf(&e.buf, list[n-1].Payload); said == own { // as mostly
			return ""
		}
	}
	same := func(name string) bool { return name == "blockId" && e.block.begun } // as in its deltas
	for name := range jsonwire.Members(said) {
		if !jsonwire.HasMember(own, name) && !same(name) {
			gone += "," + jsonwire.Quote(name)
		}
	}
	if gone != "" {
		rest = `,"` + absent + `":[` + gone[1:] + "]"
	}
	for name, raw := range jsonwire.Members(own) {
		if jsonwire.Member(said, name) != raw && !same(name) {
			rest += "," + jsonwire.Quote(name) + ":" + raw
		}
	}
	return strings.TrimPrefix(rest, ",")
}

// absent is the name, beside those of fields, of a list of fields that the payload lacks.
const absent = "absent"
