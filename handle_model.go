package agentevents

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/reentry"
)

// A ModelCall is a handle to a model call: it records what the model streams, and its
// return. Text, Reason and Arguments take the pieces as they come and record each as a
// delta. Ids of blocks and numbers of deltas are the handle's work:
//
//   - Pieces of text that follow each other are one block, and so are pieces of reasoning.
//     A block ends when a piece of another sort comes, or with Return or Fail. Then the
//     whole block is recorded too, as [TextCompleted] or [AgentReasoned], so that a log
//     without deltas has the text.
//   - Arguments belong to a tool call. The [ToolCalled] that follows has the whole of them.
//   - An empty piece is not recorded.
//
// The handle keeps in memory the text of the open block only, and the request, for Retry.
//
// The methods may be called concurrently: each records all it has to before the next one begins.
// The handle of a refused model call, and a nil handle, are safe to use: it records nothing, and
// its methods return nil. After the return all but Retry record nothing and return [ErrClosed]. A
// ModelCall must not be copied.
type ModelCall struct {
	ID string // the model call id

	agent *Agent
	asked *ModelCalled
	start time.Time // zero when it is not known
	dead  bool

	streamed atomic.Bool // a block of text or reasoning has begun

	holder reentry.Holder // of mu
	mu     sync.Mutex     // guards the rest
	within *reentry.Call  // the last one, made when the context changes
	first  Opt[time.Duration]
	ended  bool
	form   *blockForm // of the last delta; nil when no delta came since the last block ended
	block  string     // id of the open block of text or reasoning
	text   strings.Builder
	noted  ModelReturned
}

// A blockForm makes the events of one sort of block.
type blockForm struct {
	delta func(id, text string) Payload
	whole func(id, text string) Payload // nil: a ToolCalled has the whole
}

var (
	textForm = blockForm{
		func(id, text string) Payload { return &TextDelta{BlockID: id, Delta: text} },
		func(id, text string) Payload { return &TextCompleted{BlockID: id, Text: text} },
	}
	reasoningForm = blockForm{
		func(id, text string) Payload { return &AgentReasoningDelta{BlockID: id, Delta: text} },
		func(id, text string) Payload { return &AgentReasoned{BlockID: id, Reasoning: text} },
	}
	argumentsForm = blockForm{
		func(id, text string) Payload { return &ToolArgumentsDelta{CallID: id, Delta: text} },
		nil,
	}
)

// Model records that the agent calls a model, and returns a handle to the call. p names the model,
// and has the known facts of the call: attempt, request, parameters. If ModelCallID is empty, Model
// takes an id from EmitterOptions.NewID. Return or Fail of the handle closes the call. Model calls
// may overlap. Model does not change p, and the caller must not change it afterwards.
//
// The handle is never nil, whatever the error is.
func (a *Agent) Model(ctx context.Context, p *ModelCalled) (*ModelCall, error) {
	if !a.ok() {
		return &ModelCall{dead: true}, ErrZeroValue
	}
	if p == nil {
		p = &ModelCalled{}
	}
	e := a.run.s.e
	if p.ModelCallID == "" {
		out := *p
		out.ModelCallID = e.newID()
		p = &out
	}
	c := &ModelCall{ID: p.ModelCallID, agent: a, asked: p, start: e.now()}
	err := a.Emit(ctx, p)
	c.dead = err != nil && !onlySinks(err)
	s := a.run.s
	s.state.Lock()
	defer s.state.Unlock()
	if call := s.m.modelCalls.Find(callKey{a.key(), p.ModelCallID}); call != nil && !c.dead {
		call.handle = c
	}
	return c, err
}

// OpenModelCall returns the handle to a model call that is open. After [Emitter.Resume] it is a new
// one: a block that the handle before it had begun stays as it is, deltas without the whole block.
// When the agent has no open model call with that id, the handle records nothing.
func (a *Agent) OpenModelCall(id string) *ModelCall {
	if !a.ok() {
		return &ModelCall{dead: true}
	}
	s := a.run.s
	s.state.Lock() // a sink may ask, too
	defer s.state.Unlock()
	call := s.m.modelCalls.Find(callKey{a.key(), id})
	if call == nil {
		return &ModelCall{ID: id, agent: a, dead: true}
	}
	if call.handle != nil {
		return call.handle
	}
	asked := &ModelCalled{ModelCallID: id, Provider: call.Provider, Model: call.Model, Operation: call.Operation, Attempt: call.Attempt, RetryOf: call.RetryOf}
	return &ModelCall{ID: id, agent: a, asked: asked, start: call.StartedAt}
}

func (c *ModelCall) ok() bool { return c != nil && !c.dead && c.agent.ok() }

// Recorded reports whether the model call is on the log. The other methods do something
// only then.
func (c *ModelCall) Recorded() bool { return c.ok() }

// Open reports whether the model call is on the log and has not returned. A sink may ask.
func (c *ModelCall) Open() bool { return c.ok() && c.agent.OpenModelCall(c.ID).ok() }

// Streamed reports whether Text or Reason has recorded a piece: then the handle records the model's
// whole answer, too. A sink may call it.
func (c *ModelCall) Streamed() bool { return c != nil && c.streamed.Load() }

// Retry records that the agent calls the model again with the same request: a new call
// that names this one and counts the attempts. The request of a handle from
// [Agent.OpenModelCall] is not known.
func (c *ModelCall) Retry(ctx context.Context) (*ModelCall, error) {
	if !c.ok() {
		return &ModelCall{dead: true}, nil
	}
	p := c.asked
	return c.agent.Model(ctx, &ModelCalled{
		Provider: p.Provider, Model: p.Model, Operation: p.Operation, Request: p.Request, Attributes: p.Attributes,
		Attempt: Some(plus(p.Attempt.Or(1), 1)), RetryOf: c.ID,
	})
}

// Text records the next piece of the text that the model writes.
func (c *ModelCall) Text(ctx context.Context, delta string) error {
	return c.stream(ctx, &textForm, "", delta)
}

// Reason records the next piece of the model's reasoning. How much of it is kept, in deltas
// and in the whole block, is up to [Policy].Reasoning.
func (c *ModelCall) Reason(ctx context.Context, delta string) error {
	return c.stream(ctx, &reasoningForm, "", delta)
}

// Arguments records the next piece of the arguments of the tool call that the model writes.
// Calls may take turns. [Agent.Call] records the call itself.
func (c *ModelCall) Arguments(ctx context.Context, callID, delta string) error {
	return c.stream(ctx, &argumentsForm, callID, delta)
}

// Piece tells that a piece of the answer has come, for a caller that records none: its first call
// sets the time to the first token. It records nothing.
func (c *ModelCall) Piece(ctx context.Context) error {
	if !c.ok() {
		return nil
	}
	act, err := c.begin(ctx)
	if err == nil {
		c.heard()
		act.end(&err)
	}
	return err
}

// Note keeps facts of the answer that another part of the program knows, such as a recorder in the
// client: Return and Fail take from them the fields that their own payload lacks: provider, model,
// finish reasons, times, usage, cost and ids of the answer. The last value of each field counts. A
// failure without a code gets the code of the noted error, and whether a retry may help; an answer
// with finish reasons takes back the error of an attempt before it. Note records nothing. Its
// payload must not be changed afterwards.
func (c *ModelCall) Note(ctx context.Context, p *ModelReturned) error {
	if !c.ok() || p == nil {
		return nil
	}
	act, err := c.begin(ctx)
	if err == nil {
		out := *p
		out.fill(&c.noted)
		if len(p.FinishReasons) == 0 {
			fillOpt(&out.Error, c.noted.Error)
		}
		c.noted = out
		act.end(&err)
	}
	return err
}

// fill sets the fields that p lacks, from the facts that Note names.
func (p *ModelReturned) fill(from *ModelReturned) {
	fillText(&p.Provider, from.Provider)
	fillText(&p.Model, from.Model)
	fillText(&p.RequestID, from.RequestID)
	fillText(&p.ResponseID, from.ResponseID)
	if len(p.FinishReasons) == 0 {
		p.FinishReasons = from.FinishReasons
	}
	fillOpt(&p.TimeToFirstToken, from.TimeToFirstToken)
	fillOpt(&p.Duration, from.Duration)
	fillOpt(&p.Usage, from.Usage)
	fillOpt(&p.CostUSD, from.CostUSD)
	if p.Error.OK && p.Error.V.Code == "" {
		p.Error.V.Code = from.Error.V.Code
		fillOpt(&p.Error.V.Retryable, from.Error.V.Retryable)
	}
}

func fillOpt[T any](to *Opt[T], from Opt[T]) {
	if !to.OK {
		*to = from
	}
}

// Return records that the model returned. If a block of the answer is open, Return first records
// it whole. p has the known facts of the answer: finish reasons, usage, ids. Return fills in missing
// facts: those given to Note, the model call id and, counted from Model, the duration and the time to
// the first piece. Return does not change p, and the caller must not change it afterwards. If the
// return is refused, the call stays open. The return is marked as by [Call.End].
func (c *ModelCall) Return(ctx context.Context, p *ModelReturned) (err error) {
	if !c.ok() {
		return nil
	}
	act, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer act.end(&err)
	act.returns = true
	act.endBlock()
	var out ModelReturned
	if p != nil {
		out = *p
	}
	out.fill(&c.noted)
	fillText(&out.ModelCallID, c.ID)
	fillOpt(&out.TimeToFirstToken, c.first)
	if !out.Duration.OK {
		out.Duration = c.age()
	}
	c.ended = act.emit(&out)
	return nil
}

// Fail records that the model call failed with err. If a block of the answer is open, Fail first
// records the pieces so far as a whole block. The code is "cancelled", "deadline_exceeded" or
// "panic" in the same cases as for [Call.Fail]. The fields of a [*ToolError] in err are recorded.
func (c *ModelCall) Fail(ctx context.Context, err error) error {
	if !c.ok() {
		return nil
	}
	p := failed(orBackground(ctx), err)
	return c.Return(ctx, &ModelReturned{Error: p.coded(), Response: p.Result})
}

// heard keeps the time of the first piece. The caller has the handle for itself.
func (c *ModelCall) heard() {
	if !c.first.OK {
		c.first = c.age()
	}
}

// age returns the time since the call began.
func (c *ModelCall) age() Opt[time.Duration] {
	if c.start.IsZero() {
		return Opt[time.Duration]{}
	}
	return Some(max(0, c.agent.run.s.e.now().Sub(c.start)))
}

// stream records a delta. The open block ends first if it has another sort.
func (c *ModelCall) stream(ctx context.Context, form *blockForm, id, delta string) (err error) {
	if !c.ok() || delta == "" {
		return nil
	}
	act, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer act.end(&err)
	c.heard()
	if c.form != form {
		act.endBlock()
		c.form = form
		if form.whole != nil {
			c.block = c.agent.run.s.e.newID()
			c.streamed.Store(true)
		}
	}
	if form.whole != nil {
		id = c.block
	}
	if act.emit(form.delta(id, delta)) && form.whole != nil {
		c.text.WriteString(delta)
	}
	return nil
}

// number gives a delta of a handle the index that the rules expect: also after a resume,
// after a new start of the agent, and for a call id that is used again. A block of no agent
// has no indexes. Nobody else has the payload yet.
func (sub *subject) number(ev *Event) {
	if sub.key == "" {
		return
	}
	next, piece := Some(0), pieceOf(ev, sub)
	if sub.agent != nil {
		if b := sub.agent.block(piece.subject, piece.id); b != nil {
			next.V = b.next
		}
	}
	switch p := ev.Payload.(type) {
	case *TextDelta:
		p.Index = next
	case *AgentReasoningDelta:
		p.Index = next
	case *ToolArgumentsDelta:
		p.Index = next
	}
}

// A modelAct is the work of one method while it holds the handle: it records at most the whole
// block that ends, and an event of its own.
type modelAct struct {
	c       *ModelCall
	outer   *reentry.Call // the call of the caller, or nil
	returns bool          // as in outcome
	done    [2]outcome
	n       int // of done
	err     error
}

// begin waits until the handle is free. A sink that is told of an event of the handle must
// not wait for it.
func (c *ModelCall) begin(ctx context.Context) (modelAct, error) {
	ctx = orBackground(ctx)
	outer := reentry.Of(ctx)
	if !outer.Await(&c.holder) {
		return modelAct{}, fmt.Errorf("%w (model call %s)", ErrReentrant, jsonwire.Brief(c.ID))
	}
	c.mu.Lock()
	outer.Waited()
	if c.ended {
		c.mu.Unlock()
		return modelAct{}, fmt.Errorf("%w (model call %s has returned)", ErrClosed, jsonwire.Brief(c.ID))
	}
	if !c.within.MadeOf(ctx) {
		c.within = reentry.New(ctx, nil, &c.holder, outer)
	}
	return modelAct{c: c, outer: outer}, nil
}

// emit is the locked part of Agent.Emit, and reports whether the event was recorded.
func (act *modelAct) emit(p Payload) (recorded bool) {
	a, done := act.c.agent, &act.done[act.n]
	act.n++
	done.number, done.returns = true, act.returns
	ev := Event{Scope: a.run.scope, AgentID: a.id, Payload: p}
	act.err = join(act.err, a.run.s.emit(a.run.s.callFor(act.c.within), &ev, a.head, done))
	return done.recorded
}

// endBlock records the whole of the block that is open.
func (act *modelAct) endBlock() {
	c := act.c
	if c.text.Len() > 0 {
		act.emit(c.form.whole(c.block, c.text.String()))
	}
	c.form, c.block = nil, ""
	c.text.Reset()
}

// end releases the handle. Hooks are called after that: they may use it.
func (act *modelAct) end(err *error) {
	act.c.mu.Unlock()
	for i := range act.n {
		act.c.agent.run.s.tell(act.outer, &act.done[i])
	}
	*err = act.err
}
