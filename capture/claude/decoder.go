package claude

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Options configure a [Decoder]. The zero Options are usable.
type Options struct {
	// RunID names the run. If it is empty, the run's id is the uuid of the first system/init line,
	// or else one that is made of the first line. It names the process: a process that resumes a
	// session prints the session id of the one before.
	RunID string
	// AgentID is the id of the main agent, with which the ids of its sub-agents
	// begin. Empty means "claude".
	AgentID string
	// Prompt is the prompt of the main agent: a JSON string or a list of messages. A
	// stream contains it only if the CLI replays user messages. If Prompt is empty,
	// the decoder takes the first text of the user before the first init line or
	// directly after it, and therefore delays the start until the line after init.
	// AgentStarted has the prompt. It is a message of the conversation only if the
	// stream contains it.
	Prompt agentevents.JSON
	// NodeID and NodeRunID place every event in a node of a flow. A stream itself
	// has no nodes. Empty means no node.
	NodeID    string
	NodeRunID string
	// Time is the clock for lines without a timestamp. Nil means time.Now. The
	// decoder reads it once for each such line. For a saved stream, return the time
	// at which it was saved: with a fixed clock the same lines give the same events.
	Time func() time.Time
	// Started is the time of the start of the run, if the line that shows it has no timestamp. The
	// zero time means the line's time. For a saved stream, it is the time at which it was saved
	// less how long it took; see [Times].
	Started time.Time
	// Saved means that the stream was saved a while ago, so that its timestamps have another clock
	// than Time. After a line with a timestamp, lines without one have its time, and a result that
	// states the duration of its turn has the end of that, if that is later. Time is for the lines
	// before: the first timestamp of the stream fits; see [Times]. A stream that begins with a
	// timestamp of more than an hour ago is taken as saved.
	Saved bool
	// Processes means that the stream may have the lines of several processes, one after another, as a
	// file has to which captures were appended. Each process is a run, with the ids that it has in a
	// stream of its own; RunID, Prompt and Started are for the first one. Otherwise all lines are one
	// run. A process that resumes the session of the one before looks like another turn in versions
	// whose init lines lack messaging_socket_path.
	Processes bool
	// NoTransitions leaves out the status changes of agents, which the stream does not
	// have, and the name of the lifecycle. A step is then one API message.
	NoTransitions bool
}

// A Decoder turns the lines of one stream into events. It implements
// [agentevents.Decoder]. A Decoder is for one stream, and must not be used
// concurrently.
//
// Its memory grows with what is open, and with the number of sub-agents and of
// messages. It remembers the lines that may be repeated or retracted, and forgets the
// oldest, but never one of the latest 16,384.
type Decoder struct {
	o       Options
	runID   string // empty until the run has begun
	session string
	lines   int // number of lines so far
	run     *agentevents.Run
	dst     []agentevents.Event
	reading *line     // the line of this call of Decode
	cur     *line     // the line that is processed: reading, or a held one
	last    time.Time // time of the latest line
	stamp   time.Time // of the latest line with a timestamp, or later; see Options.Saved
	began   time.Time // of the turn
	started bool      // run.started has been emitted
	refuse  bool      // the stream has another format
	shown   bool      // a line of the CLI has come

	held      []*line // lines that wait for the start of a turn
	heldBytes int
	init      *line // the init line of the turn that is about to start

	main     *agent
	agents   map[string]*agent // sub-agents by key: the spawning call, or the task id
	agentIDs map[string]bool
	tasks    map[string]string // keys of sub-agents by task id
	calls    map[string]*call  // open calls
	callSeq  int

	refused  counters          // calls that are recorded as forbidden or cancelled
	failed   map[string]*call  // calls of this turn that returned an error
	blocks   counters          // number of the next whole block, by API message
	streamed counters          // blocks and calls that had deltas
	made     map[string]lineID // the events of the lines of the conversation, by uuid
	madeList []string          // the keys of made, oldest first
	messages []eventRef        // messages since the conversation began

	turns
	ledger
	processes
}

// A line is one line of the stream.
type line struct {
	object
	no      int // line number, from 1
	at      time.Time
	stamped bool // the line has a timestamp
	marks   agentevents.Marks
	kind    string // the member type
	uuid    string
	pos     int // number of its events so far
	faults  faults
}

type lineID struct{ no, events int }
type eventRef struct{ no, pos int }

// Bounds of the decoder's memory, far above what real streams need.
const (
	maxHeldLines = 256
	maxHeldBytes = 4 << 20
	maxMade      = 1 << 15
	maxCounters  = 1 << 13
)

// counters counts by name. It forgets the oldest names when there are many.
type counters struct{ young, old map[string]int }

func (c *counters) get(name string) int {
	if n, ok := c.young[name]; ok {
		return n
	}
	return c.old[name]
}

func (c *counters) set(name string, n int) {
	if c.young == nil || len(c.young) >= maxCounters {
		c.young, c.old = map[string]int{}, c.young
	}
	c.young[strings.Clone(name)] = n
}

// NewDecoder returns a decoder for one stream.
func NewDecoder(o Options) *Decoder {
	if o.AgentID == "" {
		o.AgentID = "claude"
	}
	if o.Time == nil {
		o.Time = time.Now
	}
	d := &Decoder{
		o: o, agents: map[string]*agent{}, agentIDs: map[string]bool{o.AgentID: true}, tasks: map[string]string{},
		calls: map[string]*call{}, failed: map[string]*call{},
		made: map[string]lineID{}, ledger: ledger{unstated: map[string]messageUsage{}},
	}
	d.main = newAgent(o.AgentID, nil, "")
	return d
}

// Decode appends the events of one line to dst. It may return events together with an
// error about a part of the line. If a line before the start of the run is one of
// another format, the error names the format, and the decoder skips all other lines.
func (d *Decoder) Decode(dst []agentevents.Event, text []byte) ([]agentevents.Event, error) {
	d.lines++
	if d.refuse {
		return dst, nil
	}
	if !d.started && d.init == nil {
		if f, ok := formatOf(string(text)); ok {
			d.refuse = true
			return dst, refusal(f)
		}
	}
	l, err := d.read(string(text))
	if err != nil {
		return dst, err
	}
	if d.o.Processes {
		return d.split(dst, l)
	}
	return d.see(dst, l)
}

// see returns the events of a line.
func (d *Decoder) see(dst []agentevents.Event, l *line) ([]agentevents.Event, error) {
	d.shown = d.shown || l.ofStream()
	d.dst, d.reading = dst, l
	d.accept(l)
	return d.done()
}

// unlike refuses a stream that no line shows to be one of the CLI. Its unknown lines would make a
// failed run without content.
func (d *Decoder) unlike() *agentevents.LineError {
	d.refuse = true
	return refusal(foreign.File{
		Name: "not what claude -p --output-format stream-json prints",
		Hint: "no line is a whole one of the type system, user, assistant, stream_event or result; the first has " +
			jsonwire.Brief(d.held[0].kind),
	})
}

// done returns the events of the current line and its first fault.
func (d *Decoder) done() ([]agentevents.Event, error) {
	dst, fault := d.dst, d.reading.faults.first
	d.reading.faults.first = nil // a held line is processed later
	d.dst, d.reading = nil, nil
	if fault != nil {
		return dst, fault
	}
	return dst, nil
}

// read parses a line.
func (d *Decoder) read(raw string) (*line, error) {
	repaired, changed := jsonwire.Repair(raw)
	text, err := jsonwire.Compact(repaired)
	if err != nil {
		out := &agentevents.LineError{Err: fmt.Errorf("claude: not JSON (plain text between lines is skipped): %w", err)}
		var syntax *jsonwire.SyntaxError
		if errors.As(err, &syntax) && !changed {
			out.Column, out.Pointer = syntax.Offset, jsonwire.Pointer(raw, syntax.Offset)
		}
		return nil, out
	}
	if text[0] != '{' {
		return nil, &agentevents.LineError{
			Err: fmt.Errorf("claude: not a message: found %s, expected an object", jsonwire.Describe(text)),
		}
	}
	if err := checkNesting(text); err != nil {
		return nil, &agentevents.LineError{Err: fmt.Errorf("claude: %w", err)}
	}
	l := &line{no: d.lines}
	if changed {
		l.marks = agentevents.MarkSanitized
	}
	l.object = parseObject(text, "", &l.faults)
	if l.kind = l.str("type"); l.kind == "" {
		l.faults.add("/type", `member "type" is required`)
		return nil, l.faults.first
	}
	l.uuid = l.str("uuid")
	l.at, l.stamped = d.time(l)
	d.last = l.at
	return l, nil
}

// time returns the time of a line, and whether the line has it.
func (d *Decoder) time(l *line) (time.Time, bool) {
	at, stamped := timestamp(&l.object)
	if stamped && d.lines == 1 && d.o.Time().Sub(at) > time.Hour {
		d.o.Saved = true // a stream that is printed right now begins with a line without a time
	}
	if !stamped && l.str("timestamp") != "" {
		l.faults.add("/timestamp",
			"member %q: found a string that is not an RFC 3339 time of the years 0 to 9999", "timestamp")
	}
	switch {
	case stamped:
	case !d.o.Saved || d.stamp.IsZero():
		return d.o.Time().UTC().Truncate(time.Millisecond), false
	default:
		at = d.stamp
		if end := d.began.Add(l.millis("duration_ms").V); l.kind == "result" && end.After(at) {
			at = end
		}
	}
	if d.o.Saved && at.Before(d.stamp) { // a prompt that waited has the time at which the user sent it
		at = d.stamp
	}
	d.stamp = at
	return at, stamped
}

// timestamp returns the time that a line states, if it does.
func timestamp(l *object) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, l.str("timestamp"))
	at = at.UTC()
	return at.Truncate(time.Millisecond), err == nil && at.Year() >= 0 && at.Year() <= 9999
}

// sent returns the time that a line states, or else its time.
func (l *line) sent() time.Time {
	if at, ok := timestamp(&l.object); ok {
		return at
	}
	return l.at
}

// accept decides whether a line begins a turn, waits for one, or is processed now.
func (d *Decoder) accept(l *line) {
	switch {
	case d.main.open && !d.idle:
		d.process(l)
	case d.repeated(l):
	case l.isInit() && d.init == nil:
		d.init = l
		if d.started || d.o.Prompt != "" || d.heldPrompt() {
			d.begin(l)
		} // otherwise the next line may be the prompt
	case d.isUserText(l):
		d.hold(l)
		if d.init != nil {
			d.begin(l)
		}
	case d.opens(l):
		d.begin(l)
		d.process(l)
	case !d.started:
		d.hold(l)
	default: // between turns
		d.process(l)
	}
}

func (l *line) isInit() bool { return l.kind == "system" && l.str("subtype") == "init" }

// inConversation reports whether a line has one of the types that replays repeat under
// the same uuid.
func (l *line) inConversation() bool {
	return l.kind == "assistant" || l.kind == "user" || l.kind == "result"
}

// ofStream reports whether a line has one of the types that the CLI prints, and the members of
// all its lines of that type. Other programs have lines of the same types.
func (l *line) ofStream() bool {
	switch l.kind {
	case "assistant", "user":
		return strings.HasPrefix(l.raw("message"), "{")
	case "system":
		return l.has("subtype") || l.has("session_id")
	case "result":
		return l.has("subtype") || l.has("session_id") || l.has("is_error")
	case "stream_event":
		return l.has("event")
	}
	return false
}

// isUserText reports whether a line is text for the main agent and has no tool result.
func (d *Decoder) isUserText(l *line) bool {
	return l.kind == "user" && d.agentKey(l) == "" && !hasToolResult(l)
}

// asks reports whether a line is a text of the user: the CLI writes some lines of the user's side.
func (d *Decoder) asks(l *line) bool {
	if !d.isUserText(l) || l.flag("isSynthetic") {
		return false
	}
	message := l.object.object("message")
	content, _ := messageContent(&message)
	return !fromCommand(contentText(string(content)))
}

// fromCommand reports whether a text is the output of a command of the CLI, such as /model.
func fromCommand(text string) bool { return strings.HasPrefix(text, "<local-command-") }

func hasToolResult(l *line) bool {
	message := l.object.object("message")
	content := message.raw("content")
	if content == "" || content[0] != '[' {
		return false
	}
	for _, elem := range elements(content) {
		var ignored faults
		block := parseObject(elem, "", &ignored)
		if block.str("type") == "tool_result" {
			return true
		}
	}
	return false
}

// opens reports whether a line shows a turn without an init line. After a result, a
// straggling line of the agent is not enough. It takes a text of the user before the
// line, the start of a new message, or another result.
func (d *Decoder) opens(l *line) bool {
	if !d.started {
		return l.ofStream() && l.kind != "system"
	}
	if d.agentKey(l) != "" {
		return false
	}
	switch l.kind {
	case "assistant":
		return len(d.held) > 0
	case "stream_event":
		event := l.object.object("event")
		return event.str("type") == "message_start"
	}
	return l.kind == "result" && !d.main.open && !isEmpty(l)
}

// hold keeps a line until a turn begins. If too many lines wait, it begins one.
func (d *Decoder) hold(l *line) {
	d.held = append(d.held, l)
	d.heldBytes += len(l.text)
	switch full := len(d.held) >= maxHeldLines || d.heldBytes >= maxHeldBytes; {
	case full && !d.shown:
		l.faults.first = d.unlike()
	case full:
		d.begin(l)
	}
}

func (d *Decoder) heldPrompt() bool {
	for _, l := range d.held {
		if d.asks(l) {
			return true
		}
	}
	return false
}

// begin starts a turn of the main agent, and before the first turn the run. Then it
// processes the held lines. because is the line that shows the turn when the stream lacks the
// init line.
func (d *Decoder) begin(because *line) {
	from := d.init
	var synthetic agentevents.Marks
	if from == nil {
		from, synthetic = because, agentevents.MarkSynthetic
	}
	held, saved := d.held, d.cur
	d.init, d.held, d.heldBytes = nil, nil, 0
	d.cur = from
	d.beginTurn(from, held, synthetic)
	d.cur = saved
	for _, l := range held {
		d.process(l)
	}
}

func (d *Decoder) beginTurn(from *line, held []*line, synthetic agentevents.Marks) {
	before := d.session
	if session := from.str("session_id"); session != "" {
		d.session = strings.Clone(session)
	}
	start := &agentevents.AgentStarted{
		Agent:             agentevents.Some(agentevents.AgentRef{AgentID: d.main.id}),
		Model:             from.str("model"),
		ProviderSessionID: d.session,
	}
	switch from.kind {
	case "assistant":
		message := from.object.object("message")
		start.Model = message.str("model")
	case "stream_event":
		event := from.object.object("event")
		message := event.object("message")
		start.Model = message.str("model")
	}
	for _, l := range held {
		if d.session == "" {
			d.session = strings.Clone(l.str("session_id"))
		}
		if start.Prompt == "" && d.asks(l) {
			message := l.object.object("message")
			start.Prompt, _ = messageContent(&message)
		}
	}
	if !d.started {
		if d.o.Prompt != "" {
			start.Prompt = d.o.Prompt
		}
		d.started = true
		if d.runID = d.o.RunID; d.runID == "" {
			d.runID = processID(from, held)
		}
		d.open()
		if started := d.o.Started.UTC(); !from.stamped && !started.IsZero() && started.Year() >= 0 {
			defer func(at time.Time) { from.at = at }(from.at) // of the line's part beyond the start
			from.at = started.Truncate(time.Millisecond)
		}
		d.emit(nil, &agentevents.RunStarted{Inputs: inputs(from), Agent: start.Agent}, synthetic)
	}
	first := d.main.starts == 0
	d.anew = d.anew || !first && from.isInit()
	d.began, d.idle, d.fresh = from.at, false, true
	if d.main.model = strings.Clone(start.Model); !d.main.open {
		if !first { // the attempt before has failed
			d.tell()
			start.Resumed, start.Attempt = true, agentevents.Some(d.main.starts+1)
		}
		d.main.begin()
		d.attempt = attempt{began: from.at, before: d.counted}
		d.emit(d.main, start, synthetic)
	}
	if !first {
		d.sessionChanged(before)
	}
}

// processID returns the uuid of an init line, which no other process prints. Without
// one, it is made of the first line, so that the same lines give the same id.
func processID(from *line, held []*line) string {
	if from.isInit() && from.uuid != "" {
		return strings.Clone(from.uuid)
	}
	first := from
	if len(held) > 0 && held[0].no < from.no {
		first = held[0]
	}
	return uuid.NewSHA1(namespace, []byte(first.text)).String()
}

// sessionChanged emits an event if the session id differs from before.
func (d *Decoder) sessionChanged(before string) {
	if before != "" && before != d.session {
		d.anew, d.moved = true, true
		d.emit(d.main, &agentevents.AgentSessionChanged{ProviderSessionID: d.session}, 0)
	}
}

// inputs returns the environment of the run in an init line.
func inputs(l *line) agentevents.JSON {
	if !l.isInit() {
		return ""
	}
	return l.pick("cwd", "model", "permissionMode", "claude_code_version", "output_style", "effort",
		"tools", "mcp_servers", "agents", "skills", "capabilities", "betas")
}

// process emits the events of a line, inside a turn or between turns.
func (d *Decoder) process(l *line) {
	saved := d.cur
	d.cur = l
	if !d.idle && (l.kind == "assistant" || l.kind == "user" || l.kind == "stream_event") && d.agentKey(l) == "" {
		d.goesOn(l.kind != "user" || d.untold != nil && d.asks(l))
	}
	switch {
	case d.repeated(l):
	case l.kind == "assistant":
		d.assistant(l)
	case l.kind == "user":
		d.user(l)
	case l.kind == "stream_event":
		d.streamEvent(l)
	case l.kind == "result":
		d.result(l)
	case l.kind == "system":
		d.system(l)
	default:
		d.other(l)
	}
	if l.inConversation() && l.uuid != "" && l.pos > 0 {
		d.remember(l)
	}
	d.cur = saved
	if f := l.faults.first; f != nil && l != d.reading {
		d.reading.faults.add(f.Pointer, "in a line that was held back (line %d): %w", d.before+l.no, f.Err)
	}
}

// repeated reports whether a line of the conversation is a replay: it has the uuid of an
// earlier line.
func (d *Decoder) repeated(l *line) bool {
	if l.uuid == "" || !l.inConversation() {
		return false
	}
	_, ok := d.made[l.uuid]
	return ok
}

// remember records the number of a line's events, for replays and retractions.
func (d *Decoder) remember(l *line) {
	if _, ok := d.made[l.uuid]; !ok {
		if len(d.madeList) >= maxMade {
			for _, id := range d.madeList[:maxMade/2] {
				delete(d.made, id)
			}
			d.madeList = append(d.madeList[:0], d.madeList[maxMade/2:]...)
		}
		d.madeList = append(d.madeList, strings.Clone(l.uuid))
	}
	d.made[strings.Clone(l.uuid)] = lineID{l.no, l.pos}
}

// namespace is the UUID namespace of the event ids.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/agentevents/agentevents/capture/claude"))

// eventID returns the id of event pos of line no, which is the same in every reading.
func (d *Decoder) eventID(no, pos int) string {
	name := make([]byte, 0, 64)
	name = append(name, d.runID...)
	name = append(name, 0)
	name = jsonwire.AppendInt(name, int64(no))
	name = append(name, '.')
	name = jsonwire.AppendInt(name, int64(pos))
	return uuid.NewSHA1(namespace, name).String()
}

// open opens the run. Its emitter writes the status changes: they follow from the agents' acts, as
// for any runtime.
func (d *Decoder) open() {
	o := agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived,
		Mode:      agentevents.ModeObserve,
		Redaction: &agentevents.Policy{Off: true},
		Clock:     func() time.Time { return d.cur.at },
		NewID: func() string {
			d.cur.pos++
			return d.eventID(d.cur.no, d.cur.pos-1)
		},
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			d.dst = append(d.dst, ev)
			return nil
		})},
	}
	if d.o.NoTransitions {
		o.Lifecycle = agentevents.LifecycleStrict
	}
	em, err := agentevents.NewEmitter(o)
	if err == nil {
		d.run, err = em.Run(d.runID)
	}
	if err != nil {
		d.reading.faults.add("", "%w", err)
	}
}

// emit records an event of the current line. a is nil for events of the run.
func (d *Decoder) emit(a *agent, p agentevents.Payload, marks agentevents.Marks) {
	d.record(a, agentevents.Event{Marks: marks, Payload: p})
}

// record completes an event of the current line and records it.
func (d *Decoder) record(a *agent, ev agentevents.Event) {
	ev.SessionID, ev.NodeID, ev.NodeRunID = d.session, d.o.NodeID, d.o.NodeRunID
	ev.Marks |= d.cur.marks
	if a != nil {
		ev.AgentID = a.id
		if a.ended {
			ev.Marks |= agentevents.MarkLate
		} else if a.turned {
			ev.Step = agentevents.Some(a.step + 1)
		}
	}
	n := len(d.dst)
	if _, err := d.run.Record(context.Background(), ev); err != nil {
		d.reading.faults.add("", "%w", err)
	}
	for i := range d.dst[n:] { // the event, and the status change in front of it
		if step := d.dst[n+i].Step; step.OK && a != nil {
			a.step, a.turned = step.V, false
		}
	}
}

// End appends the end of the run. A turn without a result was interrupted. The decoder
// must not be used after End.
func (d *Decoder) End(dst []agentevents.Event) ([]agentevents.Event, error) {
	dst, err := d.release(dst)
	dst, last := d.finishRun(dst)
	return dst, errors.Join(err, last)
}

func (d *Decoder) finishRun(dst []agentevents.Event) ([]agentevents.Event, error) {
	if d.refuse || d.init == nil && len(d.held) == 0 && !d.started {
		return dst, nil // there were no lines
	}
	if !d.shown {
		return dst, d.unlike()
	}
	end := &line{no: d.lines + 1, at: d.last}
	d.dst, d.reading = dst, end
	if !d.started || d.init != nil {
		because := d.init
		if because == nil {
			because = d.held[0]
		}
		d.begin(because)
	}
	for _, l := range d.held { // texts for a turn that never began
		d.process(l)
	}
	d.cur, d.held = end, nil
	d.finish()
	return d.done()
}
