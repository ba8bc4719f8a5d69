package agui

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// Strict refuses lines that break a rule of the protocol, with a
	// [*agentevents.RuleError]; see the Rule constants. Without Strict the decoder reads
	// as much of such a line as it can.
	Strict bool
}

// A Decoder turns AG-UI lines into events. It implements [dialect.Decoder]. It reads JSON Lines and
// Server-Sent Events, and is for one log. It must not be used concurrently. It remembers at
// least the latest 16,384 runs and threads. Its memory grows with the state of these threads, with the
// calls that have not returned, and with the calls, open messages, steps and sub-agents of one run.
//
// A call begins with TOOL_CALL_START. A call without a TOOL_CALL_END is ended by its result and by
// the end of the log. Unless the decoder is strict, the next line that begins or ends a run ends it
// too. The call then has the arguments received so far. A second result names a call that is not
// open, so a fold reports it. A second end is ignored.
//
// A log that begins inside a run gets a run.started with an id derived from its first line.
type Decoder struct {
	r       engine.Reader
	s       stream
	chunk   *block // that chunks are under way of
	runs    engine.Recent[string, *kept]
	threads engine.Recent[string, *thread]

	// Of the line that is read:
	thread, role, tool, rest string
	result, delta            string // the id of the message with the result of a call; a JSON Patch
	patch                    delta
	patches                  []agentevents.StatePatched
	usage                    []string // of a run that ends
	asked                    []string // the interrupts of a run that waits, of which no line has the request
	begun                    bool     // deltas have the id of its block
	aside                    bool     // the line is none of the stream: nothing is settled
	buf                      []byte   // of a payload; its memory is used again
}

// A stream is the state of a reader in the run under way.
type stream struct {
	run, thread string
	*kept
	open   map[string]*block
	calls  map[string]toolCall // that have not returned, also of other runs: see call
	done   map[string]string   // the tools of the run's calls that have returned, by id
	begun  int                 // calls that have begun and not ended, and have no result
	of     *thread
	state  *state
	going  map[string]bool // open sub-agents and reasoning; false for those that ended
	steps  steps           // open ones
	over   bool
	paused bool // it is over, and may go on
}

// A thread keeps facts for its next run.
type thread struct {
	used     ids    // of messages, calls and results
	returned ids    // for an encoder: the calls among them that have returned and that no line has begun
	state    *state // after the run that began last
	runs     int    // for an encoder: that have not ended, or wait
	// waiting has the runs that wait by the ids of their questions.
	waiting map[string]waiter
}

// of returns the thread of that name, and makes it if it is new. full is true if its state has
// values.
func of(threads *engine.Recent[string, *thread], name string, full bool) *thread {
	t, _ := threads.Use(name)
	if t == nil {
		t = &thread{used: ids{}, returned: ids{}, state: &state{full: full}}
		threads.Set(strings.Clone(name), t)
	}
	return t
}

// A kept is the record of a run that may go on.
type kept struct {
	main      string // the run's agent
	named     bool   // a line has named it
	waits     bool   // the run is paused
	questions questions
}

// A toolCall is one that a later run of the thread may return. An encoder knows its id on lines
// and whose it is.
type toolCall struct {
	run, tool, id, owner string
	agent                string // of the event
}

// newStream returns a stream of a run. k is the record of a run that goes on, else nil.
func newStream(run, name string, k *kept, calls map[string]toolCall, t *thread) stream {
	if k == nil {
		k = &kept{main: Agent}
	}
	k.waits = false
	return stream{run: run, thread: name, kept: k, open: map[string]*block{}, calls: calls,
		done: map[string]string{}, of: t, state: t.state, going: map[string]bool{}, steps: steps{}}
}

// call names a call of the thread.
func (s *stream) call(id string) string { return s.thread + "\x00" + id }

// session returns the session of the run's events.
func (s *stream) session() string {
	if s.thread == s.run {
		return ""
	}
	return s.thread
}

var _ dialect.Decoder = (*Decoder)(nil)

// NewDecoder returns a decoder.
func NewDecoder(o Options) *Decoder {
	d := &Decoder{r: engine.Reader{F: format, Strict: o.Strict}}
	d.s = newStream("", "", nil, map[string]toolCall{}, of(&d.threads, "", true))
	d.r.Doc = d
	return d
}

func decoderOf(r *engine.Reader) *Decoder { return r.Doc.(*Decoder) }

// Losses returns the values of the events so far that their lines lack. See [dialect.Decoder].
func (d *Decoder) Losses() []dialect.Loss { return d.r.Losses.List() }

// Locate returns the pointer of a field on the line that was decoded last. See [dialect.Locator].
func (d *Decoder) Locate(kind agentevents.Kind, native string) string {
	if field, is := strings.CutPrefix(native, "/payload/"); is && d.r.Type == "CUSTOM" {
		return "/value/" + field // a payload of this library
	}
	return d.r.Locate(kind, native)
}

// Decode appends the events of a line.
func (d *Decoder) Decode(dst []agentevents.Event, text []byte) ([]agentevents.Event, error) {
	line := strings.TrimSuffix(string(text), "\r")
	if field, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "{") {
		switch field {
		case "data":
			if line = strings.TrimPrefix(value, " "); line == engine.Done {
				return dst, nil
			}
		case "", "event", "id", "retry":
			return dst, nil
		}
	}
	if d.chunk == nil && d.s.run != "" && d.s.begun == 0 { // as mostly
		return d.line(dst, line)
	}
	typ, before := jsonwire.Text(jsonwire.Member(line, "type")), ""
	if b := d.chunk; b != nil {
		prefix, name, _ := b.typ.words()
		if id := jsonwire.Text(jsonwire.Member(line, name)); typ != prefix+"_CHUNK" || id != "" && id != b.id {
			d.chunk, before = nil, b.implied()
		}
	}
	if _, opens := opens[typ]; d.s.run == "" && types[typ] && typ != "RUN_STARTED" && !opens && !d.r.Strict {
		run := dialect.DerivedID(line, 0, 1)
		before = lineOf("RUN_STARTED", "", "", `,"threadId":"`+run+`","runId":"`+run+`"`, false)
	}
	if before != "" {
		var err error
		if dst, err = d.line(dst, before); err != nil {
			return dst, err
		}
	}
	var err error
	switch {
	case d.s.begun == 0:
	case typ == "TOOL_CALL_RESULT":
		key := string(call) + jsonwire.Text(jsonwire.Member(line, "toolCallId"))
		if b := d.s.open[key]; b != nil && !b.returned {
			if dst, err = d.line(dst, b.implied()); err != nil {
				return dst, err
			}
			d.s.open[key], b.returned = b, true // its own END comes later
		}
	case ends[typ] && !d.r.Strict:
		if dst, err = d.endCalls(dst); err != nil {
			return dst, err
		}
	}
	return d.line(dst, line)
}

// ends are the types of lines after which a call of the run before does not go on.
var ends = map[string]bool{"RUN_STARTED": true, "RUN_FINISHED": true, "RUN_ERROR": true}

// endCalls ends the calls that lines have begun and not ended, in the order in which they began.
// Each has the arguments received so far.
func (d *Decoder) endCalls(dst []agentevents.Event) ([]agentevents.Event, error) {
	var begun []*block
	for _, b := range d.s.open {
		if b.typ == call && !b.returned {
			begun = append(begun, b)
		}
	}
	slices.SortFunc(begun, func(a, b *block) int { return cmp.Compare(a.at, b.at) })
	for _, b := range begun {
		var err error
		if dst, err = d.line(dst, b.implied()); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// End ends the message that chunks are under way of, and the calls that have begun.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	if b := d.chunk; b != nil {
		d.chunk = nil
		var err error
		if dst, err = d.line(dst, b.implied()); err != nil {
			return dst, err
		}
	}
	return d.endCalls(dst)
}

// pick returns the row of the line that is read.
func (d *Decoder) pick() *engine.Row {
	typ, line := d.r.Type, d.r.S.Text()
	name := caseOf(typ, line)
	switch typ {
	case "STATE_DELTA":
		d.patch = d.s.state.delta(jsonwire.Member(line, "delta"))
		if len(d.patch.patches) > 0 || jsonwire.HasMember(jsonwire.Member(line, "metadata"), "agentevents") {
			name = casePatch
		}
	case "RUN_STARTED":
		if d.runs.Of(jsonwire.Text(jsonwire.Member(line, "runId"))) != nil {
			name = caseResumed
		}
	case "TEXT_MESSAGE_END":
		if b := d.s.open[string(text)+jsonwire.Text(jsonwire.Member(line, "messageId"))]; b != nil && b.role != assistant {
			name = caseMessage
		}
	}
	if row := d.r.F.CaseRow(typ, name); row != nil || typ == "CUSTOM" || typ == "STATE_DELTA" {
		return row
	}
	return d.r.F.CaseRow(typ, "")
}

// line appends the events of an object.
func (d *Decoder) line(dst []agentevents.Event, line string) ([]agentevents.Event, error) {
	r := &d.r
	dst = append(dst, agentevents.Event{})
	mark := len(dst) - 1
	ev := &dst[mark]
	d.thread, d.role, d.tool, d.rest, d.patch, d.patches = "", assistant, "", "", delta{}, nil
	d.usage, d.asked, d.begun, d.result, d.delta = nil, nil, false, "", ""
	if err := r.Read(line, ev); err != nil {
		return dst[:mark], err
	}
	if r.Strict {
		if err := d.check(ev, line); err != nil {
			return dst[:mark], err
		}
	}
	said, err := d.apply(ev, line)
	if !d.aside && r.Row != nil && err == nil {
		if d.s.settle(r.Type, ev); d.rest != made {
			d.s.state.note(d.s.run, ev.Payload)
			for i := 1; i < len(d.patches); i++ {
				d.s.state.note(d.s.run, &d.patches[i])
			}
		}
	}
	if err != nil || !said || d.rest == made {
		return dst[:mark], err
	}
	ev.SchemaVersion = agentevents.SchemaVersion
	if ev.Sequence = r.Numbers.Next(ev.RunID); ev.ID == "" {
		ev.ID = r.IDs.Derived(line, r.Lines, 0)
		r.Made("/id", "derived from the line")
	}
	r.Made("/sequence", "the number of the event in its run")
	if r.Row == nil && d.patch.fault != "" {
		r.Losses.Add(ev, dialect.Dropped, "/delta"+d.patch.at, d.patch.fault)
		if !d.patch.refused && !d.aside {
			d.s.state.forget(d.patch.names)
		}
	}
	if !r.LineHas("timestamp") {
		r.NoTime()
		r.Kept.Add(remarkTime, "null")
	}
	plain := *ev
	if err := r.Finish(); err != nil {
		return dst[:mark], err
	}
	if !d.aside {
		d.keptOf(ev).ask(ev)
	}
	for i := 1; i < len(d.patches); i++ {
		plain.ID, plain.Sequence, plain.Payload = r.IDs.Derived(line, r.Lines, i), r.Numbers.Next(ev.RunID), &d.patches[i]
		dst = append(dst, plain)
	}
	for i, raw := range slices.Concat(d.usage, d.asked) {
		other, err := plain, error(nil)
		if other.ID = r.IDs.Derived(line, r.Lines, i+1); i < len(d.usage) {
			other.Payload = reportOf(raw)
			err = other.SetExtra(string(Name), agentevents.JSON(`{"usage":`+raw+"}"))
		} else if err = d.s.request(&other, raw); err == nil && !d.aside {
			d.s.ask(&other)
		}
		if err != nil {
			return dst[:mark], err
		}
		dst = slices.Insert(dst, mark+i, other)
		plain.Sequence = r.Numbers.Next(plain.RunID)
		dst[mark+i+1].Sequence = plain.Sequence
	}
	if _, pauses := plain.Payload.(*agentevents.RunPaused); pauses && d.s.paused && !d.aside {
		d.s.wait()
	}
	answers, err := d.answered(&plain, line)
	return slices.Insert(dst, mark, answers...), err
}

// apply completes the event of a line with the facts of the lines before. It reports false for a
// line without an event.
func (d *Decoder) apply(ev *agentevents.Event, line string) (said bool, err error) {
	r, s := &d.r, &d.s
	if r.Type == "RUN_STARTED" {
		open := s.open
		if *s = newStream(strings.Clone(ev.RunID), strings.Clone(d.thread), d.runs.Of(ev.RunID), s.calls,
			of(&d.threads, d.thread, true)); d.runs.Len() == 0 {
			s.open = open
		}
		d.runs.Set(s.run, s.kept)
	} else if ev.RunID == "" {
		if ev.RunID = s.run; s.run == "" {
			ev.RunID = dialect.DerivedID(line, 0, 1)
			r.Made("/runId", "derived from the line")
		}
	}
	ev.SessionID = s.session()
	if r.Row == nil {
		p := r.Unknown()
		ev.Payload = p
		kind, ours := strings.CutPrefix(jsonwire.Text(jsonwire.Member(line, "name")), custom)
		if ours && kind != "" && r.Type == "CUSTOM" { // of an unknown kind: known ones have a row
			for name, raw := range jsonwire.Members(string(p.Raw)) {
				if name != "name" && name != "value" {
					r.Kept.Add(name, raw)
				}
			}
			*p = agentevents.Unknown{Type: agentevents.Kind(kind), Raw: agentevents.JSON(jsonwire.Member(line, "value"))}
		}
		return true, nil
	}
	if ev.AgentID == "" && ofMain(ev, true) {
		if ev.AgentID = s.main; !s.named {
			r.Made("/agentId", "no line names the run's agent")
		}
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if r.Type == "SUBAGENT_STARTED" && ev.ParentAgentID == "" {
			ev.ParentAgentID = s.main
		}
	case *agentevents.AgentEnded:
		if p.Outcome = agentevents.OutcomeConverged; p.Error.OK {
			p.Outcome = agentevents.OutcomeAborted
		}
	case *agentevents.StatePatched:
		if d.rest != "" && len(d.patches) != 1 { // the rest is the payload
			d.patches = nil
		}
		if p.Op = agentevents.PatchSet; len(d.patches) > 0 {
			*p = d.patches[0]
		}
		if d.rest == "" && len(d.patches) == 1 && d.patch.plain && d.delta != s.state.patch(p) {
			r.Kept.Add("delta", d.delta)
		}
	case *agentevents.ToolReturned:
		if r.Type != "CUSTOM" {
			c, known := s.calls[s.call(p.CallID)]
			if !d.aside {
				s.of.used.add(d.result)
				s.of.used.add(p.CallID)
			}
			delete(s.calls, s.call(p.CallID))
			if tool, again := s.done[p.CallID]; again && !known && p.CallID != "" {
				c, known = toolCall{run: s.run, tool: tool}, true // a repeat, which closes no call
			}
			s.done[strings.Clone(p.CallID)] = strings.Clone(cmp.Or(c.tool, unknown))
			p.Status, p.ToolID, p.OneEvent = agentevents.ToolStatusOK, c.tool, c.run != s.run
			if asks := d.runs.Of(c.run); c.run != s.run && asks != nil && asks.waits && c.agent != "" { // its call goes on there
				p.OneEvent, ev.RunID, ev.AgentID = false, c.run, c.agent
				if ev.SessionID = s.thread; s.thread == c.run {
					ev.SessionID = ""
				}
				r.Kept.Add(remarkRun, jsonwire.Quote(s.run))
			}
			if !known {
				if p.ToolID = unknown; !jsonwire.HasMember(d.rest, "toolId") {
					r.Made("/payload/toolId", "no line names the tool")
				}
			}
		}
	}
	if typ, id, delta := blockOf(ev.Payload); id != nil && r.Type != "CUSTOM" {
		if !d.block(typ, id, delta, ev, line) {
			return false, nil
		}
	}
	if jsonwire.IsObject(d.rest) {
		ev.Payload, err = d.merged(ev)
	}
	return true, err
}

// block applies a line of a message or a call. It reports whether the line is an event.
func (d *Decoder) block(typ blockType, id, delta *string, ev *agentevents.Event, line string) bool {
	r, s := &d.r, &d.s
	key := string(typ) + *id
	b := s.open[key]
	isChunk := strings.HasSuffix(r.Type, "_CHUNK")
	if isChunk && d.chunk != nil {
		b, key = d.chunk, string(typ)+d.chunk.id
	}
	_, opens := opens[r.Type]
	if !opens && typ == call && s.ignores(b, *id, delta == nil) {
		return false
	}
	if opens || b == nil {
		if opens && b != nil {
			s.drop(b)
		}
		b = &block{typ: typ, id: *id, agent: jsonwire.Member(line, "subagentRunId"), role: d.role, tool: d.tool, at: r.Lines}
		if b.id == "" && typ != call {
			b.id = dialect.DerivedID(line, r.Lines, 1)
		}
		if opens && *id != "" {
			b.start, _ = jsonwire.Compact(line)
		}
		if isChunk {
			d.chunk, key = b, string(typ)+b.id
		}
		if s.open[key] = b; typ == call {
			s.begun++
		}
		if b.again = s.of.used.has(b.id); b.again && b.start == "" {
			b.start = b.line("START", jsonwire.Member(line, "timestamp"), "", false)
		}
		if !d.aside {
			s.of.used.add(b.id)
		}
	}
	*id, d.begun = b.id, b.begun
	said := d.rest != made
	if b.latest = ev.Time; delta != nil {
		b.text = append(b.text, *delta...)
		said = said && !opens && *delta != "" && (b.role == assistant || typ != text)
		b.begun = b.begun || said
	} else {
		b.end(ev.Payload, ev.Time)
		if !said && !d.aside { // it may go on
			s.of.used.remove(b.id)
		}
		if s.drop(b); typ == call {
			s.calls[s.call(b.id)] = toolCall{run: s.run, tool: strings.Clone(b.tool), agent: strings.Clone(ev.AgentID)}
		}
	}
	if said && b.start != "" {
		at, tool := jsonwire.Member(line, "timestamp"), b.tool
		if b.again || b.start != b.line("START", at, "", false) || delta != nil && tool != "" ||
			typ == text && b.role != assistant {
			r.Kept.Add(remarkStart, b.start)
		}
		b.start = ""
	}
	return said
}

// drop forgets an open block.
func (s *stream) drop(b *block) {
	if delete(s.open, string(b.typ)+b.id); b.typ == call && !b.returned {
		s.begun--
	}
}

// ignores reports whether a piece or the end of a call is redundant, because the call has returned
// or ended. b is the open block with the id, or nil.
func (s *stream) ignores(b *block, id string, end bool) bool {
	if b != nil {
		if b.returned && end {
			s.drop(b)
		}
		return b.returned
	}
	_, waits := s.calls[s.call(id)]
	_, done := s.done[id]
	return waits || done
}

// steps are the names of steps by agent.
type steps map[string]map[string]bool

// settle records the blocks, calls, steps and agents that the line of an event begins and ends.
func (s *stream) settle(typ string, ev *agentevents.Event) {
	if _, starts := ev.Payload.(*agentevents.AgentStarted); typ == "CUSTOM" {
		if starts && ev.AgentID != "" && !s.named {
			s.main, s.named = strings.Clone(ev.AgentID), true
		}
		return
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		s.going[strings.Clone(ev.AgentID)] = true
	case *agentevents.AgentEnded:
		s.going[ev.AgentID] = false
	case *agentevents.StepStarted:
		if s.steps[ev.AgentID] == nil {
			s.steps[strings.Clone(ev.AgentID)] = map[string]bool{}
		}
		s.steps[ev.AgentID][strings.Clone(p.StepID)] = true
	case *agentevents.StepEnded:
		delete(s.steps[ev.AgentID], p.StepID)
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		s.over, s.paused = true, false
	case *agentevents.RunPaused:
		s.over, s.paused = true, true
	}
}

// merged returns the payload of an event, with the metadata's members in place of those that the
// line gave it. The value of a CUSTOM line is the whole payload.
func (d *Decoder) merged(ev *agentevents.Event) (agentevents.Payload, error) {
	all, rest := d.rest, d.rest
	if d.r.Type != "CUSTOM" {
		own, err := payloadOf(&d.buf, ev.Payload)
		if err != nil {
			return nil, err
		}
		gone := slices.Collect(jsonwire.Elements(jsonwire.Member(rest, absent)))
		same := func(name string) bool { return name == "blockId" && d.begun } // as in its deltas
		members := []byte{'{'}
		add := func(name, raw string) {
			if len(members) > 1 {
				members = append(members, ',')
			}
			members = append(append(jsonwire.AppendString(members, name), ':'), raw...)
		}
		for name, raw := range jsonwire.Members(own) {
			if other := jsonwire.Member(rest, name); other != "" && !same(name) { // in its place: extra members keep theirs
				add(name, other)
			} else if same(name) || !slices.Contains(gone, jsonwire.Quote(name)) {
				add(name, raw)
			}
		}
		for name, raw := range jsonwire.Members(rest) {
			if name != absent && !same(name) && !jsonwire.HasMember(own, name) {
				add(name, raw)
			}
		}
		all = string(append(members, '}'))
	}
	var whole agentevents.Event
	err := whole.UnmarshalJSON([]byte(`{"id":"-","sequence":0,"timestamp":"1970-01-01T00:00:00Z","runId":"-","type":` +
		jsonwire.Quote(string(ev.Kind())) + `,"payload":` + all + `}`))
	if err != nil {
		return nil, &agentevents.LineError{Err: errors.New("the payload in the line: " + err.Error())}
	}
	return whole.Payload, nil
}

// unknown is the tool of a result whose call no line has.
const unknown = "unknown"

// assistant is the role of an agent's messages.
const assistant = "assistant"

// people are the other roles of messages.
var people = []string{"developer", "system", "user"}

// types are the types of the protocol.
var types = func() map[string]bool {
	all := map[string]bool{}
	for typ := range others {
		all[typ] = true
	}
	for i := range format.Rows {
		all[format.Rows[i].Type] = true
	}
	return all
}()
