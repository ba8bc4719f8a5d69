package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/lines"
)

// System is the id of the sender of messages that a program, and no person, wrote.
const System = "core.system"

// Options are the choices of a caller. Package capture has the same, and describes them.
type Options struct {
	RunID     string
	AgentID   string
	MaxLine   int `least:"0"`
	Time      func() time.Time
	Prompt    agentevents.JSON
	Redaction *agentevents.Policy
}

// A Recorder records the events of one run. It has the place that they come from: the line that
// is read.
type Recorder struct {
	Options Options
	Program *Program
	Version string // of the program, for the residue; the reader sets it
	residue *Residue
	em      *agentevents.Emitter
	run     *agentevents.Run
	runID   string
	line    *Line
	last    time.Time
	out     []agentevents.Event
	faults  []error
	notes   []string
	newer   bool
	order   int // number of calls and agents so far
	ids     map[string]bool
	threads map[string]bool // that have files
	torn    map[int]bool    // files that end within a line
	others  []*File
	thread  string // of the lines after the first session of a file
	another bool   // the line begins another session
	strange Unread // the line that was not understood last
	of      *Line  // the same
	again   bool   // the run stands in the file for the second time
	section *section
}

func newRecorder(p *Program, o Options, residue *Residue) *Recorder {
	if o.Time == nil {
		o.Time = time.Now
	}
	return &Recorder{
		Options: o, Program: p, residue: residue, ids: map[string]bool{}, torn: map[int]bool{}, section: &section{},
	}
}

// Started reports whether Begin was called.
func (r *Recorder) Started() bool { return r.runID != "" }

// RunID is the id of the run, once it has begun.
func (r *Recorder) RunID() string { return r.runID }

// Here returns the line that events are of.
func (r *Recorder) Here() *Line { return r.line }

// At gives events another line, such as one that was held back, while f runs.
func (r *Recorder) At(l *Line, f func()) {
	saved := r.line
	r.line = l
	f()
	r.line = saved
}

// Torn reports whether the file of the line ends within a line: the program was killed, or is at work.
func (r *Recorder) Torn() bool { return r.torn[r.line.File] }

// Has reports whether the session has the file of a thread.
func (r *Recorder) Has(thread string) bool { return r.threads[thread] }

// Another notes that the line belongs to another session, or to the output of another process, as do
// those after it. The reader must not have read it: another reader will.
func (r *Recorder) Another() { r.another = true }

// Keep keeps a line of a thread for the processes after this one in the same file. The last one stays.
func (r *Recorder) Keep(thread string) {
	s := r.section
	if n := len(s.kept); n > s.before {
		s.kept = s.kept[:n-1]
	}
	s.kept = append(s.kept, kept{strings.Clone(thread), strings.Clone(r.line.Text)})
}

// Others yields the lines that each other process of a thread has printed, with the number of the
// process: all lines of another file, and the line that an earlier process in this file has kept. A file
// that cannot be read has none.
func (r *Recorder) Others(thread string, yield func(process int, line string)) {
	for i, k := range r.section.kept[:r.section.before] {
		if k.thread == thread {
			yield(len(r.others)+i, k.line)
		}
	}
	for i := range r.others {
		in, err := r.others[i].open()
		if err != nil {
			continue
		}
		from := lines.NewReader(in, cmp.Or(r.Options.MaxLine, agentevents.DefaultMaxLine))
		for line, err := from.Next(); line != nil || err != nil && !from.Ended(); line, err = from.Next() {
			yield(i, string(line))
		}
		_ = in.Close() // it was only read
	}
}

// Fault notes an error of the line that is read. Pointer is the place in it, or empty.
func (r *Recorder) Fault(pointer, format string, args ...any) {
	r.faults = append(r.faults,
		&agentevents.LineError{Pointer: pointer, Err: fmt.Errorf(r.Program.Name+": "+format, args...)})
}

// Note notes a fact that is not a fault of a line, once.
func (r *Recorder) Note(format string, args ...any) {
	if text := r.Program.Name + ": " + fmt.Sprintf(format, args...); !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// SetVersion notes the version of the program that wrote the lines that follow. One that is
// newer than the newest that was tested is told once.
func (r *Recorder) SetVersion(version string) {
	if version == "" {
		return
	}
	r.Version = strings.Clone(version)
	if !r.newer && Newer(version, r.Program.Tested) {
		r.newer = true
		r.Note("%s", newer(r.Program, version))
	}
}

// newer tells that a version of a program was not tested.
func newer(p *Program, version string) string {
	return fmt.Sprintf("version %s is newer than %s, the newest that was tested; "+
		"import --report lists lines that were not understood", version, p.Tested)
}

// Unread counts a line, or the member at pointer, that was not understood.
func (r *Recorder) Unread(kind, pointer string) {
	u := Unread{r.Program.Name, r.Version, kind, pointer}
	if pointer == "" {
		r.strange, r.of = u, r.line
	}
	r.residue.Add(u)
}

// Rest counts the members of an object that nobody asked for.
func (r *Recorder) Rest(kind, pointer string, o *Object) {
	o.Unasked(func(name string) { r.Unread(kind, pointer+"/"+jsonwire.Token(name)) })
}

// namespace is the UUID namespace of the ids.
var namespace = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/agentevents/agentevents/capture/session"))

// ID makes an id of texts, which is the same in every reading.
func ID(parts ...string) string {
	return uuid.NewSHA1(namespace, []byte(strings.Join(parts, "\x00"))).String()
}

func (r *Recorder) newID() string {
	l := r.line
	name := make([]byte, 0, 128)
	name = append(append(name, r.runID...), 0)
	name = append(append(name, cmp.Or(l.Thread, r.thread)...), 0)
	name = append(jsonwire.AppendInt(name, int64(l.Number)), '.')
	name = jsonwire.AppendInt(name, int64(l.pos))
	l.pos++
	return uuid.NewSHA1(namespace, name).String()
}

// Begin opens the run. Options.RunID names it, if it is set.
func (r *Recorder) Begin(runID string) {
	r.runID = r.section.begin(r, strings.Clone(cmp.Or(r.Options.RunID, runID)))
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived,
		Redaction: r.Options.Redaction,
		Clock:     func() time.Time { return r.line.At },
		NewID:     r.newID,
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			r.out = append(r.out, ev)
			return nil
		})},
		OnViolation: func(*agentevents.RuleError) {}, // Record returns it
	})
	if err == nil {
		r.em = em
		r.run, err = em.Run(r.runID)
	}
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// An Agent is an agent of the run: the main one, or a sub-agent.
type Agent struct {
	ID     string
	Parent *Agent // nil for the main agent
	Thread string // its id for the program
	Open   bool   // it has started and not ended
	Ended  bool

	step   int
	turned bool // a new answer of the model has begun
	order  int
	calls  map[string]*Call
	kids   []*Agent
}

// A Call is an open tool call.
type Call struct {
	ID, Tool  string
	Arguments string // JSON
	Agent     *Agent
	At        time.Time
	Stamped   bool
	// Background means that the program went on without the call's return.
	Background bool
	order      int
}

// NewAgent returns an agent that has not started. parent is nil for the main one. kind is its
// type or name and key its id for the program, of which its id is made: the id of the parent's
// root, the kind in lower case and eight digits of a hash.
func (r *Recorder) NewAgent(main string, parent *Agent, kind, key string) *Agent {
	r.order++
	a := &Agent{ID: main, Parent: parent, Thread: strings.Clone(key), order: r.order, calls: map[string]*Call{}}
	if parent != nil {
		a.ID = r.agentID(main, kind, key)
		parent.kids = append(parent.kids, a)
	}
	r.ids[a.ID] = true
	return a
}

func (r *Recorder) agentID(main, kind, key string) string {
	const most, digits = 32, 8
	lower := func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == ':':
			return c
		}
		return '-'
	}
	if kind == "" {
		kind = "agent"
	}
	kind = strings.Map(lower, kind)
	id := main + ":" + kind[:min(most, len(kind))] + ":"
	hash := string(jsonwire.AppendHex(nil, jsonwire.Hash(key)))
	if short := id + hash[:digits]; !r.ids[short] {
		return short
	}
	return id + hash
}

// Emit records an event of the line. a is nil for events of the run.
func (r *Recorder) Emit(a *Agent, p agentevents.Payload, marks agentevents.Marks) {
	r.Record(a, agentevents.Event{Marks: marks, Payload: p})
}

// Record completes an event of the line and records it. An act of an agent after its end is
// marked late.
// It returns the event's id.
func (r *Recorder) Record(a *Agent, ev agentevents.Event) (id string) {
	if r.run == nil {
		return ""
	}
	if r.line.Repaired {
		ev.Marks |= agentevents.MarkSanitized
	}
	if a != nil {
		ev.AgentID = a.ID
		if a.Ended {
			ev.Marks |= agentevents.MarkLate
		} else if a.turned {
			ev.Step = agentevents.Some(a.step + 1)
		}
	}
	n := len(r.out)
	recorded, err := r.run.Record(context.Background(), ev)
	if err != nil {
		r.faults = append(r.faults, &agentevents.LineError{
			Err: fmt.Errorf("%s: the line does not fit to those before it, "+
				"and an event of it is left out: %w", r.Program.Name, err),
		})
	}
	for i := range r.out[n:] { // the event, and the status change in front of it
		if step := r.out[n+i].Step; step.OK && a != nil {
			a.step, a.turned = step.V, false
		}
	}
	return recorded.ID
}

// Answers notes that a new answer of the model begins: the next event of the agent has another
// step.
func (a *Agent) Answers() { a.turned = true }

// Start opens an agent. call is the id of the call that spawned it, or empty.
func (r *Recorder) Start(a *Agent, call string, p *agentevents.AgentStarted) {
	p.Agent = agentevents.Some(agentevents.AgentRef{AgentID: a.ID})
	a.Open, a.Ended = true, false
	ev := agentevents.Event{Payload: p, ParentCallID: call}
	if a.Parent != nil {
		ev.ParentAgentID = a.Parent.ID
	}
	r.Record(a, ev)
	a.turned = false
}

// Unseen notes that the tokens of an agent, or a part of them, are not in the files: the sum is the least that was used.
func (r *Recorder) Unseen(a *Agent) {
	r.Emit(a, &agentevents.UsageObserved{Partial: true, Source: "not in the files"}, 0)
}

// Call opens a tool call. One that is open already stays as it is. One without an id or a name is a fault, and nil.
func (r *Recorder) Call(a *Agent, p *agentevents.ToolCalled, marks agentevents.Marks) *Call {
	if c := a.calls[p.CallID]; c != nil {
		return c
	}
	if p.CallID == "" || p.ToolID == "" {
		r.Fault("", "a call of a tool lacks its id or its name")
		return nil
	}
	r.order++
	c := &Call{
		ID: strings.Clone(p.CallID), Tool: strings.Clone(p.ToolID), Arguments: string(p.Arguments),
		Agent: a, At: r.line.At, Stamped: r.line.Stamped, order: r.order,
	}
	r.Emit(a, p, marks)
	a.calls[c.ID] = c
	return c
}

// OpenCall returns the open call of an id, or nil.
func (a *Agent) OpenCall(id string) *Call { return a.calls[id] }

// Calls returns the open calls in their order.
func (a *Agent) Calls() []*Call {
	out := make([]*Call, 0, len(a.calls))
	for _, c := range a.calls {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Call) int { return a.order - b.order })
	return out
}

// Kids returns the sub-agents that have not ended, in their order.
func (a *Agent) Kids() []*Agent { return slices.Clone(a.kids) }

// Return closes an open call. Without a duration, it is the time between the lines. The return of
// a call that is not open is one event, marked synthetic.
func (r *Recorder) Return(a *Agent, p *agentevents.ToolReturned, marks agentevents.Marks) {
	c := a.calls[p.CallID]
	if c == nil {
		if p.ToolID == "" {
			p.ToolID = "unknown"
		}
		p.OneEvent = true
		r.Emit(a, p, marks|agentevents.MarkSynthetic)
		return
	}
	p.CallID, p.ToolID = c.ID, c.Tool
	if took := r.line.At.Sub(c.At); !p.Duration.OK && c.Stamped && r.line.Stamped && took >= 0 {
		p.Duration = agentevents.Some(took)
	}
	r.Emit(a, p, marks)
	delete(a.calls, c.ID)
}

// Interrupt closes the open calls of an agent, which did not return: its status is interrupted,
// or cancelled if somebody stopped them. Calls in the background stay open unless all is set.
func (r *Recorder) Interrupt(a *Agent, status agentevents.ToolStatus, message string, all bool) {
	for _, c := range a.Calls() {
		if c.Background && !all {
			continue
		}
		r.Return(a, &agentevents.ToolReturned{
			CallID: c.ID, Status: status, Error: agentevents.Some(agentevents.ErrorInfo{Code: Word(status), Message: message}),
		}, agentevents.MarkSynthetic)
	}
}

// Word is the code of the error of a call that did not return.
func Word(status agentevents.ToolStatus) string {
	if status == agentevents.ToolStatusCancelled {
		return "cancelled"
	}
	return "interrupted"
}

// End ends an agent, and before it its open calls and sub-agents.
func (r *Recorder) End(a *Agent, p *agentevents.AgentEnded, marks agentevents.Marks) {
	if !a.Open {
		return
	}
	for _, b := range a.Kids() {
		r.End(b, Interrupted("the sub-agent did not end"), agentevents.MarkSynthetic)
	}
	r.Interrupt(a, agentevents.ToolStatusInterrupted, "the call did not return", true)
	a.turned = false
	r.Emit(a, p, marks)
	a.Open, a.Ended = false, true
	if a.Parent != nil {
		a.Parent.kids = slices.DeleteFunc(a.Parent.kids, func(b *Agent) bool { return a == b })
	}
}

// Interrupted is the end of an agent that was cut off.
func Interrupted(message string) *agentevents.AgentEnded {
	return &agentevents.AgentEnded{
		Outcome: agentevents.OutcomeAborted,
		Error:   agentevents.Some(agentevents.ErrorInfo{Code: "interrupted", Message: message}),
	}
}

// close ends the emitter, which otherwise looks after its runs for some seconds more.
func (r *Recorder) close() {
	if r.em == nil {
		return
	}
	if err := r.em.Close(context.Background()); err != nil {
		r.faults = append(r.faults, err)
	}
}

// take returns the events and faults since the last call.
func (r *Recorder) take() (events []agentevents.Event, faults []error) {
	if r.again {
		r.out, r.faults = nil, nil
	}
	events, faults = r.out, r.faults
	r.out, r.faults = r.out[len(r.out):], nil
	if cap(r.out) < 16 {
		r.out = nil
	}
	return events, faults
}
