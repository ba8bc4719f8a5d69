package agentevents

import (
	"context"
	"errors"
	"time"
)

// ErrZeroValue means that a method was called of nil or of a zero value. Nothing
// was done. Methods that return a handle return nil then.
var ErrZeroValue = errors.New("agentevents: a nil or zero value cannot be used: it comes from NewEmitter, NewWriter, OpenFile, Buffered or the method of another handle")

// A Run is a handle to a run: what it emits belongs to no agent.
type Run struct {
	s     *runState
	scope Scope
	head  string // of the lines of its events
}

func (r *Run) ok() bool { return r != nil && r.s != nil }

func newRun(s *runState, scope Scope) *Run {
	ev := Event{RunID: s.m.RunID, Scope: scope}
	return &Run{s: s, scope: scope, head: ev.head()}
}

// head returns the part of the event's line that is the same for all events of
// a handle, made once: from runId to parentCallId. It is empty when it cannot
// stand on a line.
func (e *Event) head() string {
	if e.envelopeWritable() != nil {
		return ""
	}
	return string(e.appendHead(nil))
}

// ID returns the run's id.
func (r *Run) ID() string {
	if !r.ok() {
		return ""
	}
	return r.s.m.RunID
}

// With returns a handle whose events carry the fields of s that are set, and
// those of r's scope where they are not.
func (r *Run) With(s Scope) *Run {
	if !r.ok() {
		return nil
	}
	return newRun(r.s, r.scope.with(s))
}

func (s Scope) with(over Scope) Scope {
	set := func(to *string, from string) {
		if from != "" {
			*to = from
		}
	}
	set(&s.SessionID, over.SessionID)
	set(&s.TaskID, over.TaskID)
	set(&s.WorkflowID, over.WorkflowID)
	set(&s.Phase, over.Phase)
	set(&s.NodeID, over.NodeID)
	set(&s.NodeRunID, over.NodeRunID)
	return s
}

// Emit records one payload as an event of the run; the library fills in the
// envelope. It returns nil, or a [*RuleError] when nothing was recorded,
// or a [*SinkError] (several are joined) when the event was recorded and a
// required sink failed. The payload belongs to the log from then on: it must
// not be changed.
//
// Cancelling the context does not lose the event. A nil context is taken as
// context.Background().
func (r *Run) Emit(ctx context.Context, p Payload) error {
	if !r.ok() {
		return ErrZeroValue
	}
	var ev Event // field by field: a literal is built elsewhere and copied
	ev.Scope, ev.Payload = r.scope, p
	return r.s.record(ctx, &ev, r.head)
}

// Record is [Run.Emit] for an event of which the caller has filled in some of
// the envelope: captures and bridges. ID, Time, Step, CausationID and the
// scope are kept where they are set; RunID must be empty or the run's;
// Sequence and SchemaVersion are the library's.
func (r *Run) Record(ctx context.Context, ev Event) error {
	if !r.ok() {
		return ErrZeroValue
	}
	ev.Scope = r.scope.with(ev.Scope)
	return r.s.record(ctx, &ev, "")
}

// Agent returns a handle to an agent of the run. It emits nothing: the agent
// starts with an [AgentStarted].
func (r *Run) Agent(id string) *Agent { return newAgent(r, id, "", "") }

// Close releases the run without a terminal event, as when it goes on
// elsewhere. Handles of the run return [ErrClosed] from then on.
//
// What the redaction step holds back of blocks that have not ended is recorded (see
// [Policy]); the error is a [*SinkError] then. Close does not wait for an event that
// another goroutine is emitting, so a sink may call it: that goroutine records it.
func (r *Run) Close() (err error) {
	if !r.ok() {
		return ErrZeroValue
	}
	s := r.s
	s.closed.Store(true)
	defer s.leave()
	if s.enter() { // else the emitter's Close does it
		err = s.close(context.Background())
		s.e.release(s)
	}
	return err
}

// An Agent is a handle to one agent of a run: what it emits carries the
// agent's id and its current step. One method is one event, except To and Do;
// under [LifecycleDerived] a transition may stand in front. An illegal move is an error
// that lists the legal ones.
type Agent struct {
	run    *Run
	id     string
	parent string // agent that spawned it
	call   string // by this call
	head   string // as in Run
}

func (a *Agent) ok() bool { return a != nil && a.run.ok() }

func newAgent(r *Run, id, parent, call string) *Agent {
	if !r.ok() {
		return nil
	}
	ev := Event{RunID: r.s.m.RunID, Scope: r.scope, AgentID: id}
	return &Agent{run: r, id: id, parent: parent, call: call, head: ev.head()}
}

// ID returns the agent's id.
func (a *Agent) ID() string {
	if !a.ok() {
		return ""
	}
	return a.id
}

// With returns a handle whose events carry the fields of s that are set.
func (a *Agent) With(s Scope) *Agent {
	if !a.ok() {
		return nil
	}
	return newAgent(a.run.With(s), a.id, a.parent, a.call)
}

// Agent returns a handle to a sub-agent; its start says who spawned it.
func (a *Agent) Agent(id string) *Agent {
	if !a.ok() {
		return nil
	}
	return newAgent(a.run, id, a.id, "")
}

// Emit records one payload as an event of the agent. See [Run.Emit].
func (a *Agent) Emit(ctx context.Context, p Payload) error {
	if !a.ok() {
		return ErrZeroValue
	}
	var ev Event // as in Run.Emit
	ev.Scope, ev.AgentID, ev.Payload = a.run.scope, a.id, p
	if _, ok := p.(*AgentStarted); ok && a.parent != "" {
		ev.ParentAgentID, ev.ParentCallID = a.parent, a.call
		return a.run.s.record(ctx, &ev, "")
	}
	return a.run.s.record(ctx, &ev, a.head)
}

// Record is [Run.Record] for an event of the agent.
func (a *Agent) Record(ctx context.Context, ev Event) error {
	if !a.ok() {
		return ErrZeroValue
	}
	if ev.AgentID == "" {
		ev.AgentID = a.id
	}
	if _, ok := ev.Payload.(*AgentStarted); ok && ev.AgentID == a.id {
		fillText(&ev.ParentAgentID, a.parent)
		fillText(&ev.ParentCallID, a.call)
	}
	return a.run.Record(ctx, ev)
}

// To moves the agent along a path of statuses, one transition each, and stops
// at the first that is refused.
func (a *Agent) To(ctx context.Context, path ...AgentStatus) error {
	for _, s := range path {
		if err := a.Emit(ctx, &AgentTransition{To: s}); err != nil {
			return err
		}
	}
	return nil
}

// A Call is a handle to an open tool call.
type Call struct {
	ID     string // the call id
	ToolID string // the tool

	agent   *Agent
	args    JSON
	attempt int
	start   time.Time
}

// Call records that the agent calls a tool, under a new call id. Return or
// Fail closes it. Calls may overlap.
func (a *Agent) Call(ctx context.Context, tool string, args JSON) (*Call, error) {
	if !a.ok() {
		return nil, ErrZeroValue
	}
	c := &Call{ID: a.run.s.e.newID(), ToolID: tool, agent: a, args: args, attempt: 1, start: a.run.s.e.now()}
	if err := a.Emit(ctx, &ToolCalled{CallID: c.ID, ToolID: tool, Arguments: args}); err != nil {
		return c.unlessRefused(err), err
	}
	return c, nil
}

// Retry records that the agent calls the tool again with the same arguments:
// a new call that names this one and counts the attempts.
func (c *Call) Retry(ctx context.Context) (*Call, error) {
	if !c.ok() {
		return nil, ErrZeroValue
	}
	e := c.agent.run.s.e
	again := &Call{ID: e.newID(), ToolID: c.ToolID, agent: c.agent, args: c.args, attempt: c.attempt + 1, start: e.now()}
	p := &ToolCalled{CallID: again.ID, ToolID: c.ToolID, Arguments: c.args, Attempt: Some(again.attempt), RetryOf: c.ID}
	if err := c.agent.Emit(ctx, p); err != nil {
		return again.unlessRefused(err), err
	}
	return again, nil
}

func (c *Call) ok() bool { return c != nil && c.agent.ok() }

// unlessRefused returns c when the call was recorded in spite of err.
func (c *Call) unlessRefused(err error) *Call {
	var sink *SinkError
	if errors.As(err, &sink) {
		return c
	}
	return nil
}

// Agent returns a handle to a sub-agent that this call spawned.
func (c *Call) Agent(id string) *Agent {
	if !c.ok() {
		return nil
	}
	return newAgent(c.agent.run, id, c.agent.id, c.ID)
}

// Return records that the tool returned. Its duration is counted from Call.
func (c *Call) Return(ctx context.Context, result JSON) error {
	if !c.ok() {
		return ErrZeroValue
	}
	return c.agent.Emit(ctx, &ToolReturned{CallID: c.ID, ToolID: c.ToolID, Status: ToolStatusOK, Result: result, Duration: c.duration()})
}

// Fail records that the tool failed with err: status cancelled when err is
// context.Canceled, error otherwise.
func (c *Call) Fail(ctx context.Context, err error) error {
	if !c.ok() {
		return ErrZeroValue
	}
	status := ToolStatusError
	if errors.Is(err, context.Canceled) {
		status = ToolStatusCancelled
	}
	message := "failed"
	if err != nil {
		message = err.Error()
	}
	return c.agent.Emit(ctx, &ToolReturned{CallID: c.ID, ToolID: c.ToolID, Status: status, Error: Some(ErrorInfo{Message: message}), Duration: c.duration()})
}

func (c *Call) duration() Opt[time.Duration] {
	return Some(max(0, c.agent.run.s.e.now().Sub(c.start)))
}

// Do is a serial tool use: it records the call, runs fn, and records its
// return or failure. A panic of fn is recorded as a failure and goes on. The
// error is fn's, joined with one of recording.
//
// Do makes no transitions. Under [LifecycleStrict] an agent that uses a tool goes
// To(ctx, ToolCall) before and To(ctx, ToolResult) after. A nil fn is an error,
// and nothing is recorded.
func (a *Agent) Do(ctx context.Context, tool string, args JSON, fn func(context.Context) (JSON, error)) (result JSON, err error) {
	if fn == nil {
		return "", errors.New("agentevents: Do: the function is nil")
	}
	c, emitErr := a.Call(ctx, tool, args)
	if c == nil {
		return "", emitErr
	}
	returned := false
	defer func() {
		if !returned { // fn panicked or ended the goroutine
			_ = c.Fail(ctx, errors.New("the tool panicked"))
		}
	}()
	result, err = fn(orBackground(ctx))
	returned = true
	if err != nil {
		return result, errors.Join(err, emitErr, c.Fail(ctx, err))
	}
	return result, errors.Join(emitErr, c.Return(ctx, result))
}
