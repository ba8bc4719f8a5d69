package agentevents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrZeroValue means that a method was called of nil or of a zero value, also in other
// packages. Nothing was done. Methods that return a [Run] or an [Agent] return nil then, and those that return
// a [Call] or a [ModelCall] return one that records nothing. The methods of a nil Call or
// ModelCall record nothing either, and return no error.
var ErrZeroValue = errors.New("agentevents: a nil or zero value cannot be used: make the value with its function New or Open, or with the method of another handle")

// A Run is a handle to a run. Its events belong to no agent.
type Run struct {
	s     *runState
	scope Scope
	head  string // of the lines of its events
}

func (r *Run) ok() bool { return r != nil && r.s != nil }

func newRun(s *runState, scope Scope) *Run {
	if scope.SessionID == "" {
		s.state.Lock()
		scope.SessionID = s.session
		s.state.Unlock()
	}
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

// With returns a handle whose events carry the fields of s that are set, and otherwise the fields
// of r's scope.
//
// A run has one session: the first SessionID that an event of it carries (deltas do not count), or
// the session of the snapshot it was resumed from. Events without one get it, from any handle. A
// handle with another SessionID keeps that. All else of a scope belongs to the handle.
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
// required sink failed. The caller must not change the payload afterwards.
//
// Some rules bind Emit and the other methods of handles, but not Record: an agent acts after its
// start, a tool is called in status tool_call, a good end agrees with the status and leaves no call
// open, and only a paused or open thing can be resumed, resolved or ended. [Rules] lists them.
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

// Record is [Run.Emit] for an event of which the caller has filled in some of the envelope:
// captures and bridges, which report the acts of others, so that fewer rules bind it. ID, Time,
// Step, CausationID and the scope are kept where they are set; RunID must be empty or the run's;
// Sequence and SchemaVersion are the library's.
//
// It returns the event as it was recorded, and the zero Event when nothing was. Its
// payload belongs to the log.
func (r *Run) Record(ctx context.Context, ev Event) (Event, error) {
	if !r.ok() {
		return Event{}, ErrZeroValue
	}
	ev.Scope = r.scope.with(ev.Scope)
	err := r.s.record(ctx, &ev, "")
	if err != nil && !onlySinks(err) {
		return Event{}, err
	}
	return ev, err
}

// onlySinks reports whether an event was recorded in spite of err.
func onlySinks(err error) bool {
	return errors.As(err, new(*SinkError)) && !errors.As(err, new(*RuleError))
}

// Agent returns a handle to an agent of the run. It emits nothing: the agent
// starts with an [AgentStarted].
func (r *Run) Agent(id string) *Agent { return newAgent(r, id, "", "") }

// Close releases the run without a terminal event, as when it goes on
// elsewhere. Handles of the run return [ErrClosed] from then on.
//
// Held-back text of open blocks is recorded (see [Policy]); the error is a [*SinkError] then. Close
// does not wait for an event that another goroutine is emitting, so a sink may call it: that
// goroutine records it.
func (r *Run) Close() (err error) {
	if !r.ok() {
		return ErrZeroValue
	}
	s := r.s
	s.end.closed.Store(true)
	defer s.leave()
	if s.enter() { // else the emitter's Close does it
		err = s.close(context.Background())
		s.e.release(s)
	}
	return err
}

// An Agent is a handle to one agent of a run. Its events carry the agent's id and current step. One
// method is one event, except To and Do; under [LifecycleDerived] a transition may stand in front.
// An illegal move is an error that lists the legal ones.
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

// Run returns the handle to the agent's run, with the agent's scope.
func (a *Agent) Run() *Run {
	if !a.ok() {
		return nil
	}
	return a.run
}

// key returns the key of the agent in machine.agents.
func (a *Agent) key() string { return cmp.Or(a.id, a.run.scope.NodeRunID) }

// With returns a handle whose events carry the fields of s that are set.
func (a *Agent) With(s Scope) *Agent {
	if !a.ok() {
		return nil
	}
	return newAgent(a.run.With(s), a.id, a.parent, a.call)
}

// Agent returns a handle to a sub-agent; its start names the parent.
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

// Record is [Run.Record] for an event of the agent. An event with another AgentID stays an event of
// that agent.
func (a *Agent) Record(ctx context.Context, ev Event) (Event, error) {
	if !a.ok() {
		return Event{}, ErrZeroValue
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

// To moves the agent along a path of statuses, one transition each, and stops at the
// first that is refused. An error of a sink does not stop it: the transition was recorded.
func (a *Agent) To(ctx context.Context, path ...AgentStatus) (errs error) {
	for _, s := range path {
		if err := a.Emit(ctx, &AgentTransition{To: s}); err != nil {
			errs = join(errs, err)
			if !onlySinks(err) {
				break
			}
		}
	}
	return errs
}

// A Call is a handle to a tool call. The handle of a call that was refused, or of none, is
// safe to use: it records nothing, and its methods return nil.
type Call struct {
	ID     string // the call id
	ToolID string // the tool

	agent   *Agent
	args    JSON
	attempt int
	start   time.Time // zero when it is not known
	dead    bool
	denied  error // why the tool must not run; nil when it may
}

// Call records that the agent calls a tool, and returns a handle to the call. p names the tool, and
// has the known facts of the call: the provider's call id, arguments, attempt, transport. If CallID
// is empty, Call takes an id from EmitterOptions.NewID. Return, Fail or End of the handle closes the
// call. The calls of an agent may overlap. Call does not change p, and the caller must not change it
// afterwards.
//
// The handle is never nil, whatever the error is.
func (a *Agent) Call(ctx context.Context, p *ToolCalled) (*Call, error) {
	if !a.ok() {
		return &Call{dead: true}, ErrZeroValue
	}
	if p == nil {
		p = &ToolCalled{}
	}
	e := a.run.s.e
	if p.CallID == "" {
		out := *p
		out.CallID = e.newID()
		p = &out
	}
	c := &Call{ID: p.CallID, ToolID: p.ToolID, agent: a, args: p.Arguments, attempt: p.Attempt.Or(1), start: e.now()}
	err := a.Emit(ctx, p)
	if c.dead = err != nil && !onlySinks(err); c.dead && (p.ApprovalID != "" || e.forbids(err)) {
		c.denied = err
	}
	return c, err
}

// OpenCall returns a handle to a call that is open, as after [Emitter.Resume]. When the
// agent has no open call with that id, the handle records nothing.
func (a *Agent) OpenCall(id string) *Call {
	if !a.ok() {
		return &Call{dead: true}
	}
	s := a.run.s
	s.state.Lock() // a sink may ask, too
	defer s.state.Unlock()
	call := s.m.calls.Find(callKey{a.key(), id})
	if call == nil {
		return &Call{ID: id, agent: a, dead: true}
	}
	return &Call{ID: id, ToolID: call.tool, agent: a, attempt: 1, start: call.start}
}

func (c *Call) ok() bool { return c != nil && !c.dead && c.agent.ok() }

// Recorded reports whether the call is on the log. Return, Fail and End do something only
// then.
func (c *Call) Recorded() bool { return c.ok() }

// Retry records that the agent calls the tool again with the same arguments:
// a new call that names this one and counts the attempts.
func (c *Call) Retry(ctx context.Context) (*Call, error) {
	if !c.ok() {
		return &Call{dead: true}, nil
	}
	return c.agent.Call(ctx, &ToolCalled{ToolID: c.ToolID, Arguments: c.args, Attempt: Some(c.attempt + 1), RetryOf: c.ID})
}

// NewAgent returns a handle to a sub-agent that this call spawned, with an id that no other
// agent has. It is for tools that are agents, which may run more than once: an id of the tool or
// of the call may come again, and the agent of that id would start again. Give the agent
// a name for people in its [AgentStarted].
func (c *Call) NewAgent() *Agent {
	if c == nil || !c.agent.ok() {
		return nil
	}
	return c.Agent(c.agent.run.s.e.newID())
}

// Agent returns a handle to a sub-agent that this call spawned.
func (c *Call) Agent(id string) *Agent {
	if c == nil || !c.agent.ok() {
		return nil
	}
	call := c.ID
	if c.dead {
		call = ""
	}
	return newAgent(c.agent.run, id, c.agent.id, call)
}

// Return records that the tool returned. Its duration is counted from Call.
func (c *Call) Return(ctx context.Context, result JSON) error {
	return c.End(ctx, &ToolReturned{Status: ToolStatusOK, Result: result})
}

// Fail records that the tool failed with err. The status, result and code of a [*ToolError] in err
// are recorded; otherwise the status is cancelled when err is context.Canceled or the cause of the
// cancellation of ctx, and error otherwise. The code of a deadline, or of the cause of one, is
// "deadline_exceeded", the code of a [*PanicError] is "panic", and the code of a [*BudgetError], in err or as the cause of the
// cancellation, is "budget_exceeded".
//
// An error that is the end of ctx is recorded with the context.Cause of ctx.
//
// An error that joins context.Canceled with others is a cancellation, too: pass the one that
// counts. To know the cause Fail needs the context that was cancelled, not one of
// context.WithoutCancel, and a cancelled context loses no event.
func (c *Call) Fail(ctx context.Context, err error) error {
	return c.End(ctx, failed(orBackground(ctx), err))
}

// End records how the call ended. p has its status, result and error; the call id, the tool and,
// counted from Call, the duration are filled in where they are missing. End does not change p, and
// the caller must not change it afterwards.
//
// A call may outlive its agent: the return of a call that is open is marked [MarkLate] when
// the agent or the run has ended, or the agent has moved to a terminal status.
func (c *Call) End(ctx context.Context, p *ToolReturned) error {
	if !c.ok() {
		return nil
	}
	var out ToolReturned
	if p != nil {
		out = *p
	}
	fillText(&out.CallID, c.ID)
	fillText(&out.ToolID, c.ToolID)
	if !out.Duration.OK && !c.start.IsZero() {
		out.Duration = Some(max(0, c.agent.run.s.e.now().Sub(c.start)))
	}
	ev := Event{Scope: c.agent.run.scope, AgentID: c.agent.id, Payload: &out}
	return c.agent.run.s.recordAs(ctx, &ev, c.agent.head, &outcome{returns: true})
}

// A ToolError is an error with the status, result and code for the return of a failed call: see
// [Call.Fail].
type ToolError struct {
	Status    ToolStatus // default: as without a ToolError
	Code      string     // ErrorInfo.Code
	Retryable Opt[bool]  // ErrorInfo.Retryable
	Result    JSON       // the tool's result beside the error
	Err       error      // the cause; may be nil
}

// Error returns the text of the cause, else the code or the status.
func (e *ToolError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return cmp.Or(e.Code, string(e.Status), "failed")
}

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }

// because returns the text of err and, if err is the end of ctx, the cause that the caller of
// its cancel function gave.
func because(ctx context.Context, err error) string {
	text, end, cause := err.Error(), ctx.Err(), context.Cause(ctx)
	switch {
	case end == nil || !errors.Is(err, end) || errors.Is(err, cause) || strings.Contains(text, cause.Error()):
		return text
	case text == end.Error():
		return cause.Error()
	}
	return text + ": " + cause.Error()
}

// failed returns the return of a call that failed with err.
func failed(ctx context.Context, err error) (p *ToolReturned) {
	told := false
	defer func() { // methods of err may panic, for example on a nil pointer
		if !told {
			_ = recover()
			p = &ToolReturned{Status: ToolStatusError, Error: Some(ErrorInfo{Message: fmt.Sprintf("%T", err)})}
		}
	}()
	p = &ToolReturned{Status: ToolStatusError}
	info := ErrorInfo{Message: "failed"}
	if err != nil {
		info.Message = cmp.Or(because(ctx, err), info.Message)
	}
	var tool *ToolError
	var panicked *PanicError
	switch budget := budgetOf(ctx, err); {
	case budget != nil:
		p.Status, info.Code, info.Message = ToolStatusCancelled, codeBudget, budget.Error()
	case errors.Is(err, context.Canceled), ctx.Err() == context.Canceled && errors.Is(err, context.Cause(ctx)):
		p.Status = ToolStatusCancelled
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() == context.DeadlineExceeded && errors.Is(err, context.Cause(ctx)):
		info.Code = "deadline_exceeded"
	case errors.As(err, &panicked):
		info.Code = "panic"
	}
	if errors.As(err, &tool) {
		p.Status = cmp.Or(tool.Status, p.Status)
		p.Result = tool.Result
		info.Code, info.Retryable = cmp.Or(tool.Code, info.Code), tool.Retryable
	}
	p.Error, told = Some(info), true
	return p
}

// Do is a serial tool use: it records the call, runs fn, and records its return or failure
// (see [Call.Fail]). The context of fn carries the call: see [CallFromContext]. A panic of
// fn is recorded as a failure and goes on. The error is fn's, joined with one of recording.
//
// Do may be called from goroutines. Their calls start in any order then: where that matters, as
// for a golden log, use Call in order and [Call.Do] in the goroutines.
//
// A log must not stop the tool: fn runs also when the call is not recorded, as when the emitter
// is closed. An agent that is nil, as of a context without one, runs fn and records nothing.
// There are two exceptions. With an EmitterOptions.Guard fn does not run when that refuses the
// call or could not be asked. And a call that names an approval runs only when it is recorded:
// only the record uses the approval up. A nil fn is an error, and nothing is recorded.
//
// Under [LifecycleDerived] the agent's status follows. Under the other tables an agent that
// uses a tool goes To(ctx, StatusToolCall) before and To(ctx, StatusToolResult) after.
func (a *Agent) Do(ctx context.Context, p *ToolCalled, fn func(context.Context) (JSON, error)) (JSON, error) {
	if fn == nil {
		return "", errNoFunction
	}
	if !a.ok() {
		return fn(orBackground(ctx))
	}
	c, recordErr := a.Call(ctx, p)
	if c.denied != nil {
		return "", c.denied
	}
	return c.do(ctx, recordErr, fn)
}

var errNoFunction = errors.New("agentevents: Do: the function is nil")

// Do runs fn, and records its return or failure, as [Agent.Do] does for a call that it records
// itself. It is for calls that run at once and start in order:
//
//	for _, p := range calls {
//		call, _ := agent.Call(ctx, p)
//		all.Go(func() { call.Do(ctx, tool) })
//	}
//
// The error is fn's, joined with one of recording the end. For a call that is not recorded fn runs
// and nothing is recorded, with the two exceptions of [Agent.Do]: then the error is
// the one which [Agent.Call] returned. A nil fn is an error, and the call fails with it.
func (c *Call) Do(ctx context.Context, fn func(context.Context) (JSON, error)) (JSON, error) {
	switch {
	case fn == nil:
		return "", join(errNoFunction, c.Fail(ctx, errNoFunction))
	case c != nil && c.denied != nil:
		return "", c.denied
	case c == nil || !c.agent.ok():
		return fn(orBackground(ctx))
	}
	return c.do(ctx, nil, fn)
}

// do is Do; recordErr is the error of recording the call.
func (c *Call) do(ctx context.Context, recordErr error, fn func(context.Context) (JSON, error)) (result JSON, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			_ = c.Fail(ctx, &PanicError{Value: v})
			panic(v)
		}
		_ = c.Fail(ctx, errors.New("the tool ended its goroutine"))
	}()
	result, err = fn(ContextWithCall(orBackground(ctx), c))
	returned = true
	if err != nil {
		return result, join(err, join(recordErr, c.Fail(ctx, err)))
	}
	returnErr := c.Return(ctx, result)
	var rule *RuleError
	if returnErr != nil && !onlySinks(returnErr) && !(errors.As(returnErr, &rule) && rule.Rule.ours()) {
		// The call must not stay open. A rule of ours would refuse any return.
		returnErr = errors.Join(returnErr, c.Fail(ctx, errors.New("the result could not be recorded")))
	}
	return result, errors.Join(recordErr, returnErr)
}

// forbids reports whether a tool must not run, the call of which was not recorded because
// of err: Guard refuses it, or was not asked.
func (e *Emitter) forbids(err error) bool {
	var rule *RuleError
	if errors.As(err, &rule) {
		return !rule.Rule.ours()
	}
	return e.opts.Guard != nil
}

// working is the value that a context carries.
type working struct {
	agent *Agent
	call  *Call      // of the agent; may be nil
	model *ModelCall // of the agent; may be nil
	taken bool       // the call runs a function of WrapTool
}

type workingKey struct{}

func workingOf(ctx context.Context) working {
	w, _ := orBackground(ctx).Value(workingKey{}).(working)
	return w
}

// ContextWithAgent returns a context that carries the agent that is at work, for tools,
// wrappers and hooks that the agent calls. It carries no call and no model call.
func ContextWithAgent(ctx context.Context, a *Agent) context.Context {
	return context.WithValue(orBackground(ctx), workingKey{}, working{agent: a})
}

// AgentFromContext returns the agent that is at work, or nil. The methods of a nil agent
// return [ErrZeroValue].
func AgentFromContext(ctx context.Context) *Agent { return workingOf(ctx).agent }

// ContextWithCall returns a context that carries a call and its agent, and no model call.
// [Agent.Do] gives the tool such a context.
func ContextWithCall(ctx context.Context, c *Call) context.Context {
	w := working{call: c}
	if c != nil {
		w.agent = c.agent
	}
	return context.WithValue(orBackground(ctx), workingKey{}, w)
}

// CallFromContext returns the call that the agent of [AgentFromContext] is making, or nil.
// A nil call is safe to use and records nothing.
func CallFromContext(ctx context.Context) *Call { return workingOf(ctx).call }

// ContextWithModelCall returns a context that carries a model call and its agent, for the client
// that asks the model: a recorder in the client then adds its knowledge to that call (see
// [ModelCall.Note]) and does not record another. The context keeps the tool call that it carries if
// it belongs to the same agent.
func ContextWithModelCall(ctx context.Context, c *ModelCall) context.Context {
	w := workingOf(ctx)
	if c != nil && !w.agent.same(c.agent) {
		w = working{agent: c.agent}
	}
	w.model = c
	return context.WithValue(orBackground(ctx), workingKey{}, w)
}

// ModelCallFromContext returns the model call of [ContextWithModelCall], or nil. It may have
// returned since: [ModelCall.Open] tells. A nil model call is safe to use and records nothing.
func ModelCallFromContext(ctx context.Context) *ModelCall { return workingOf(ctx).model }

// same reports whether two handles are to the same agent.
func (a *Agent) same(b *Agent) bool {
	return a == b || a.ok() && b.ok() && a.run.s == b.run.s && a.key() == b.key()
}
