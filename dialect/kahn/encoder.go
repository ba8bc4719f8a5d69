package kahn

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An Encoder writes events as KAHN lines. It implements [dialect.Encoder]. It is
// not for concurrent use.
//
// It refuses an event with a status, an outcome or a result that the document
// does not list, or with a number outside its range. The error is a
// [*agentevents.RuleError] with a rule of this package. An unchanged event that
// was read with Verbatim is not refused: its line is written as it was read.
//
// A ToolCalled writes nothing: its ToolReturned writes the line for both. A call
// that never returns is dropped and listed. Where an event lacks a required
// member, the encoder makes it up from the log so far and lists it: the agent's
// current step, its totals, the time since its start. Agents without an id are named
// after their nodes ([dialect.Names]), and end when these fail. It keeps a few numbers for each of the
// latest agents, as [dialect.MaxCalls] bounds it.
type Encoder struct {
	w       engine.Writer
	measure *dialect.Measure // nil: the losses are not asked for
	reads   Decoder          // reads the lines for it
	agents  engine.Recent[agentKey, *agentState]
	a       *agentState // the agent of the current event
	names   dialect.Names
	calls   dialect.Calls // the calls that have not returned
	check   Decoder       // reads origin lines
}

type agentKey struct{ run, agent string }

// agentState is the encoder's record of an agent. The line of the agent's end needs most of it.
type agentState struct {
	key     agentKey
	step    int
	stepped bool // an event of the agent had a step
	from    int  // the first step of this attempt
	totals  agentevents.Totals
	refused int          // returns without a call of this attempt, in totals.ToolCalls: their lines look like calls
	since   uint64       // the sequence of the start
	own     engine.Steps // of the events
	read    engine.Steps // of their lines
	started time.Time
	failed  bool // it is at the status failed
}

// EncoderOptions configure an [Encoder]. The zero EncoderOptions are usable.
type EncoderOptions struct {
	// Fast leaves the losses out: Losses returns nil. The lines are the same.
	Fast bool
}

// NewEncoder returns an encoder.
func NewEncoder(o EncoderOptions) *Encoder {
	e := &Encoder{w: engine.Writer{F: format}}
	if !o.Fast {
		e.reads = *NewDecoder(Options{})
		e.measure = dialect.NewMeasure(Name, &e.reads, words)
	}
	return e
}

func encoderOf(w *engine.Writer) *Encoder { return (*Encoder)(w.Doc.(*document)) }

// Append appends the line of an event. See [dialect.Encoder].
func (e *Encoder) Append(dst []byte, ev agentevents.Event) ([]byte, error) {
	e.a = e.agent(&ev)
	e.a.own.Event(&ev)
	mark, call := len(dst), e.calls.Joined(&ev)
	dst, _, err := e.w.Append(dst, &ev, (*document)(e))
	if _, waits := ev.Payload.(*agentevents.ToolCalled); !waits || err != nil {
		e.measure.Joined(&ev, call, dst[mark:], err)
	}
	e.w.Release()
	e.reads.r.Release()
	if err != nil {
		return dst, err
	}
	if len(dst) > mark {
		e.a.line(&ev)
	}
	e.remember(&ev, e.a, call)
	return dst, nil
}

// A document is the part of an Encoder that its Writer asks.
type document Encoder

func (e *document) Line(w *engine.Writer, dst []byte) ([]byte, error) {
	if _, waits := w.Ev.Payload.(*agentevents.ToolCalled); waits {
		return dst, nil
	}
	if name := e.a.key.agent; w.Ev.AgentID != "" && w.Ev.AgentID != name && w.Ev != &w.Read {
		ev := *w.Ev
		ev.AgentID = name
		w.Say(&ev)
	}
	return w.Line(dst, format.Row(w.Ev.Kind()))
}

func (e *document) Reread(w *engine.Writer, line string) error {
	e.check.r.Continue(w)
	err := e.check.read(line, &w.Read)
	if err == nil && !w.Broken() && jsonwire.HasMember(string(w.Read.Extra(string(Name))), "agent_id") {
		err = errEmptyAgent // if the line is broken otherwise, it cannot be said better
	}
	return err
}

// errEmptyAgent keeps a line from being copied.
var errEmptyAgent = errors.New("kahn: null stands for the run")

// End lists the calls that never returned.
func (e *Encoder) End(dst []byte) ([]byte, error) {
	for _, call := range e.calls.Clear() {
		e.measure.Wrote(call, nil, nil)
	}
	return dst, nil
}

// Losses returns the losses so far: the encoder reads each line back, see [dialect.Measure].
func (e *Encoder) Losses() []dialect.Loss { return e.measure.Losses() }

// callerOf returns the agent whose call ids the event's is one of, as the rules of
// the library see it: the node does not count.
func callerOf(ev *agentevents.Event) string { return cmp.Or(ev.AgentID, ev.NodeRunID) }

// agent returns the state of the event's agent.
func (e *Encoder) agent(ev *agentevents.Event) *agentState {
	key := agentKey{ev.RunID, e.names.Of(ev)}
	if e.a != nil && e.a.key == key {
		return e.a
	}
	a, _ := e.agents.Use(key)
	if a == nil {
		a = &agentState{key: agentKey{strings.Clone(key.run), strings.Clone(key.agent)}} // copies do not keep the line alive
		e.agents.Set(a.key, a)
	}
	return a
}

// remember records the facts of ev that later lines need. call is the call that ev returns, or nil.
func (e *Encoder) remember(ev *agentevents.Event, a *agentState, call *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		e.open(ev, p)
	case *agentevents.ToolReturned:
		if call == nil && (p.Status == agentevents.ToolStatusForbidden || p.Status == agentevents.ToolStatusRateLimited) {
			a.refused++
		}
		if call != nil {
			if call.Sequence < a.since {
				a.refused++
			}
			e.calls.Remove(ev.RunID, callerOf(ev), p.CallID)
		}
	}
	if ev.Step.OK {
		a.reach(ev.Step.V)
	}
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		a.totals, a.refused = agentevents.Totals{}, 0
		if !a.started.IsZero() && a.stepped {
			a.from = a.step + 1
		}
		a.started, a.since, a.failed = ev.Time, ev.Sequence, false
	case *agentevents.AgentTransition:
		a.failed = p.To == agentevents.StatusFailed
	case *agentevents.ToolReturned:
		a.totals.ToolCalls++
	case *agentevents.AuditChecked:
		if ev.AgentID == "" {
			break // an audit of the run
		}
		a.totals.AuditCheckpoints++
		switch p.Result {
		case agentevents.AuditPass:
			a.totals.AuditsPassed++
		case agentevents.AuditFail:
			a.totals.AuditsFailed++
		}
	}
}

// line notes the step of a line. A move or a return without a step gets one on its line.
func (a *agentState) line(ev *agentevents.Event) {
	switch ev.Payload.(type) {
	case *agentevents.AgentTransition, *agentevents.ToolReturned:
		step := ev.Step.Or(a.at(ev))
		a.read.Reach(step)
		if !ends(ev) {
			a.reach(step)
		}
	}
	a.read.Event(ev)
}

// at returns the step for the line of an event without one: the current one of the attempt. A
// transition to the end of an attempt that took no step has the one before it, which moves no
// later step.
func (a *agentState) at(ev *agentevents.Event) int {
	if ends(ev) {
		return a.step
	}
	return max(a.step, a.from)
}

// ends reports whether an event is a transition to an end, in no step.
func ends(ev *agentevents.Event) bool {
	p, ok := ev.Payload.(*agentevents.AgentTransition)
	return ok && p.To.Terminal() && !ev.Step.OK
}

// reach notes a step.
func (a *agentState) reach(step int) {
	if !a.stepped || step > a.step {
		a.step, a.stepped = step, true
	}
}

// open keeps a call until it returns.
func (e *Encoder) open(ev *agentevents.Event, p *agentevents.ToolCalled) {
	old, ok := e.calls.Put(ev, callerOf(ev), p.CallID)
	if old != nil {
		e.measure.Wrote(old, nil, nil)
	}
	if !ok {
		e.measure.Wrote(ev, nil, nil)
	}
}
