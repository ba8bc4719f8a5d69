package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/option"
)

// The limits of a [Breaker], as BudgetExceeded.Budget names them.
const (
	BudgetTokens    = "tokens"     // Limits.Tokens
	BudgetCost      = "cost"       // Limits.CostUSD; in US dollars
	BudgetSteps     = "steps"      // Limits.Steps
	BudgetWallClock = "wall_clock" // Limits.WallClock; in milliseconds
	BudgetFailures  = "failures"   // Limits.Failures
)

// Limits bound the usage of a run. A limit of 0 means no limit, and one below 0 is refused with an
// [*agentevents.OptionError]: the rest of a budget may be below 0. A limit is exceeded by usage
// above it, WallClock when that time has passed.
type Limits struct {
	// Tokens is the number of tokens of all agents: sent, written to and read from
	// caches, and generated. They count once, as in the totals of a fold
	// ([agentevents.RunUsage]), however often agents, model calls and reports state them.
	Tokens int64 `least:"0"`
	// CostUSD is the cost of all agents in US dollars, counted in the same way.
	CostUSD float64 `least:"0"`
	// Steps is the number of steps of all agents: for each the highest Event.Step, and
	// one, over all its attempts.
	Steps int `least:"0"`
	// WallClock is the time since the first event of the run that is not marked
	// [agentevents.MarkReplayed]; of a resumed run since RunSnapshot.StartedAt. Pauses and
	// waits count, and so does the time between two processes.
	WallClock time.Duration `least:"0"`
	// Failures is the number of failures in a row: of one tool, as in KAOS, or of all model calls,
	// as the model that is asked between two failures of a tool does not make the tool work. A
	// failure is an agent.toolReturned with status error, forbidden or rate_limited, or a
	// model.returned with an error. A stopped call (status cancelled or interrupted, error code
	// cancelled) is neither a failure nor a success; any other return ends the row. Failures: 4
	// allows four.
	Failures int `least:"0"`
}

// A Breaker stops runs that use too much: it calls Stop, once for each run, and has a
// budget.exceeded ([agentevents.BudgetExceeded]) recorded, once. Its limits refuse no event: how
// the run ends is up to the program that Stop stops, and is recorded as always. KAOS's
// breaker, which keeps one tool from being called until it has rested, can be an
// EmitterOptions.Guard.
//
// The budget.exceeded has the limit, its value and the usage; its reason names the tool or model
// whose failures count, as "tool Bash" or "model". A run that exceeds two limits with one event
// exceeds the first in the order of [Limits].
//
// Earlier usage counts in a resumed run: usage and steps come from the snapshot, and failures in a
// row from its latest closed tool calls. If a limit is already exceeded, Stop is called once more,
// with the first event; a budget.exceeded that the snapshot has, of the same budget and limit, is
// not recorded again. Replayed events ([agentevents.MarkReplayed]) count, too, but only an event
// that is not replayed stops the run.
//
// # When it is recorded
//
// The budget.exceeded directly follows the event that exceeds the limit. If EmitterOptions.Follow
// is not called for that event, as for a transition of [agentevents.LifecycleDerived], it follows
// the next one. The wall clock needs no event to stop the run, but to be recorded: its
// budget.exceeded follows the next one too, and is marked [agentevents.MarkLate] when that ends the
// run. A run that is closed without another event has none in its log; Stop was called all the
// same.
//
// # Costs
//
// The state of a run is kept until the emitter releases it, and grows with the run's
// agents, not with its events. With WallClock a run has a timer, which stops with the run.
// A breaker has no goroutine but the one in which a timer calls Stop.
//
// Mirrors: KAOS hooks circuit breakers, cost tracking; wiki budget.exceeded.
type Breaker struct {
	// Limits are the limits of every run.
	Limits Limits
	// LimitsOf returns the limits of one run, before its first event. Nil means Limits for all. A
	// panic is the sink's error, and so is a limit below 0; the run has Limits then.
	LimitsOf func(runID string) Limits
	// Stop stops the run, mostly by cancelling a context with an [*agentevents.BudgetError] as
	// the cause: the run then ends as failed by its budget. Nil means that the
	// budget.exceeded is enough. It is called with the lock of the run held, or by a timer:
	// it must not wait for the run, and does not emit into it ([agentevents.ErrReentrant]
	// with its context). The context has the values of the event's and is never cancelled.
	//
	// Its error or panic is the sink's error. If the timer called it, the error comes back with the
	// run's next event, with the run's release, or from Emitter.Close.
	Stop func(ctx context.Context, runID string, exceeded agentevents.BudgetExceeded) error
	// Watch looks for loops, stalls and waste in the runs, and acts on them: see [WatchOptions].
	// Nil looks for none. Its Stop is the one of the breaker, which is then called for the first
	// limit that is exceeded and for each finding with that action.
	Watch *Watch
}

// Install returns o with the breaker added: its sinks follow the sinks of o, and its Follow returns
// the breaker's events before those of the Follow of o. With a Watch it may also replace Guard by
// one that asks the Guard of o. Do not set Follow or Guard of the result. To install several
// breakers, pass the result to the next Install. One breaker may be installed for several emitters:
// it keeps their runs apart.
func (b Breaker) Install(o agentevents.EmitterOptions) agentevents.EmitterOptions {
	if b.Watch != nil {
		o = b.Watch.install(o, b.Stop)
		if b.Limits == (Limits{}) && b.LimitsOf == nil {
			return o
		}
	}
	s := &breaker{Breaker: b, runs: map[string]*run{}}
	o.Sinks = append(slices.Clip(o.Sinks), s)
	o.Follow = s.follow(o.Follow)
	return o
}

// A breaker is a Breaker in an emitter.
type breaker struct {
	Breaker

	mu     sync.RWMutex // nothing is waited for while it is held
	runs   map[string]*run
	errs   []error // of Stop, of runs that were released meanwhile
	closed bool
	timers sync.WaitGroup // that are calling Stop
}

// A run is a breaker's state of a run. The emitter's lock of the run guards what mu does not guard.
type run struct {
	id       string
	limits   Limits
	began    time.Time
	usage    *usage           // nil when no limit is about it
	steps    map[string]int64 // by agent
	allSteps int64
	rows     map[string]int // failures in a row, by tool; "" is the models
	tooLong  int            // number of rows that exceed the limit
	known    []agentevents.BudgetSnapshot

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool // or released: Stop is not called any more
	pending *agentevents.BudgetExceeded
	err     error // of a Stop that the timer called
}

// WriteEvent counts the event, and stops the run when that was too much.
func (s *breaker) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	r, err := s.find(&ev)
	if r == nil {
		return err
	}
	stopped, late := r.look()
	if err = errors.Join(err, late); stopped {
		return err
	}
	r.count(&ev)
	if ev.Marks.Has(agentevents.MarkReplayed) {
		return err
	}
	s.start(r)
	if over := r.exceeded(); over != nil {
		err = errors.Join(err, s.stop(ctx, r, over))
	}
	return err
}

// find returns the event's run, or nil when it has no limits. Sequence 0 begins a run: an event of
// an unknown run with another sequence is late, from a run that was released.
func (s *breaker) find(ev *agentevents.Event) (*run, error) {
	s.mu.RLock()
	r := s.runs[ev.RunID]
	s.mu.RUnlock()
	if r != nil || ev.Sequence != 0 {
		return r, nil
	}
	return s.begin(ev.RunID)
}

// begin adds a run, in place of one with its id.
func (s *breaker) begin(id string) (*run, error) {
	limits, err := s.limits(id)
	if limits == (Limits{}) {
		return nil, err
	}
	r := &run{id: id, limits: limits}
	if limits.Tokens > 0 || limits.CostUSD > 0 {
		r.usage = newUsage()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.runs[id]; old != nil {
		old.end()
	}
	s.runs[id] = r
	return r, err
}

func (s *breaker) limits(id string) (limits Limits, err error) {
	if s.LimitsOf == nil {
		return s.Limits, nil
	}
	limits = s.Limits
	err = contained("LimitsOf", func() error {
		own := s.LimitsOf(id)
		if err := option.Check("hooks.Limits", own); err != nil {
			return err
		}
		limits = own
		return nil
	})
	return limits, err
}

// CheckSink returns an error if a limit makes no sense: it must not pass for none.
func (s *breaker) CheckSink() error { return option.Check("hooks.Limits", s.Limits) }

// ResumeRun counts the usage of the snapshot.
func (s *breaker) ResumeRun(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	r, err := s.begin(snapshot.RunID)
	if r == nil {
		return err
	}
	if r.known = snapshot.Budgets; agentevents.TimeKnown(snapshot.StartedAt) {
		r.began = snapshot.StartedAt
	}
	if r.usage != nil {
		err = errors.Join(err, r.usage.resume(snapshot))
	}
	for id, a := range snapshot.Agents {
		r.step(id, a.Step)
	}
	for _, c := range snapshot.ClosedCalls {
		r.returned(c.ToolID, outcomeOf(c.Status))
	}
	return err
}

// ReleaseRun forgets the run.
func (s *breaker) ReleaseRun(_ context.Context, runID string) error {
	s.mu.Lock()
	r := s.runs[runID]
	delete(s.runs, runID)
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.end()
	_, err := r.look()
	return err
}

// Close stops all timers, and waits for those that are calling Stop.
func (s *breaker) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, r := range s.runs {
		r.end()
	}
	s.mu.Unlock()
	s.timers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := s.errs
	for _, r := range s.runs {
		_, err := r.look()
		errs = append(errs, err)
	}
	clear(s.runs)
	s.errs = nil
	return errors.Join(errs...)
}

// follow returns the function that records the budget.exceeded of a run. A session event may
// precede run.started, which nothing else does.
func (s *breaker) follow(host func(agentevents.Event) []agentevents.Event) func(agentevents.Event) []agentevents.Event {
	return func(ev agentevents.Event) []agentevents.Event {
		var events []agentevents.Event
		if host != nil {
			events = host(ev)
		}
		s.mu.RLock()
		r := s.runs[ev.RunID]
		s.mu.RUnlock()
		if r == nil || ev.Kind() == agentevents.KindSessionStarted {
			return events
		}
		over := r.take()
		if over == nil {
			return events
		}
		own := agentevents.Event{Payload: over}
		switch ev.Payload.(type) {
		case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
			own.Marks = agentevents.MarkLate
		}
		return append([]agentevents.Event{own}, events...)
	}
}

// start starts the clock of a run.
func (s *breaker) start(r *run) {
	if r.limits.WallClock <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil || r.stopped {
		return
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	began := r.began
	r.timer = time.AfterFunc(r.limits.WallClock-time.Since(began), func() { s.expire(r, time.Since(began)) })
}

// expire is called by the timer of a run.
func (s *breaker) expire(r *run, passed time.Duration) {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return
	}
	s.timers.Add(1) // with the lock, or Close would not wait
	s.mu.RUnlock()
	defer s.timers.Done()
	err := errors.New("hooks: Breaker.Stop ended its goroutine")
	defer func() { s.late(r, err) }()
	over := &agentevents.BudgetExceeded{Budget: BudgetWallClock, Limit: milliseconds(r.limits.WallClock),
		Actual: math.Ceil(milliseconds(passed))}
	err = contained("Stop", func() error { return s.stop(context.Background(), r, over) })
}

// late keeps the error of a Stop that a timer called.
func (s *breaker) late(r *run, err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[r.id] != r {
		s.errs = append(s.errs, fmt.Errorf("run %s: %w", jsonwire.Brief(r.id), err))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// stop notes that a limit is exceeded and calls Stop, once. No lock is held then.
func (s *breaker) stop(ctx context.Context, r *run, over *agentevents.BudgetExceeded) error {
	if !r.trip(over) || s.Stop == nil {
		return nil
	}
	if err := s.Stop(ctx, r.id, *over); err != nil {
		return fmt.Errorf("hooks: Breaker.Stop: %w", err)
	}
	return nil
}

// trip reports whether the run is to be stopped now.
func (r *run) trip(over *agentevents.BudgetExceeded) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	r.halt()
	if !slices.ContainsFunc(r.known, func(b agentevents.BudgetSnapshot) bool {
		return !b.Cap && b.Budget == over.Budget && b.Limit == agentevents.Some(over.Limit)
	}) {
		r.pending = over
	}
	return true
}

// halt stops the timer, and counts no more. r.mu is held.
func (r *run) halt() {
	r.stopped = true
	if r.timer != nil {
		r.timer.Stop()
	}
}

// end keeps Stop from being called.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.halt()
}

// look reports whether Stop was called, and takes the error of the timer's call.
func (r *run) look() (stopped bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err, r.err = r.err, nil
	return r.stopped, err
}

// take takes the budget.exceeded that is to be recorded.
func (r *run) take() *agentevents.BudgetExceeded {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := r.pending
	r.pending = nil
	return over
}

// contained calls a function of the host, and returns a panic of it as an error.
func contained(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("hooks: Breaker.%s: %w", what, &agentevents.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	return f()
}

// count adds the usage and the failures of the event.
func (r *run) count(ev *agentevents.Event) {
	r.step(agentOf(ev), ev.Step)
	switch p := ev.Payload.(type) {
	case *agentevents.ToolReturned:
		r.returned(p.ToolID, outcomeOf(p.Status))
	case *agentevents.ModelReturned:
		switch {
		case !p.Error.OK:
			r.returned("", succeeded)
		case !cancelled(p.Error):
			r.returned("", failed)
		}
	}
	if r.usage != nil {
		r.usage.count(ev)
	}
}

// agentOf returns the id of the agent of an event.
func agentOf(ev *agentevents.Event) string { return cmp.Or(ev.AgentID, ev.NodeRunID) }

// step notes the step of an agent.
func (r *run) step(agent string, step agentevents.Opt[int]) {
	if r.limits.Steps <= 0 || !step.OK || agent == "" {
		return
	}
	if more := plus(int64(step.V), 1) - r.steps[agent]; more > 0 {
		if r.steps == nil {
			r.steps = map[string]int64{}
		}
		r.steps[agent] += more
		r.allSteps = plus(r.allSteps, more)
	}
}

// An outcome is the result of a return for a tool, or for the models.
type outcome int

const (
	stopped outcome = iota // nothing: somebody stopped the call
	succeeded
	failed
)

func outcomeOf(status agentevents.ToolStatus) outcome {
	switch status {
	case agentevents.ToolStatusCancelled, agentevents.ToolStatusInterrupted:
		return stopped
	case agentevents.ToolStatusError, agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited:
		return failed
	}
	return succeeded
}

// returned notes the return of a tool, or of a model.
func (r *run) returned(tool string, how outcome) {
	switch {
	case r.limits.Failures <= 0:
	case how == succeeded:
		if r.rows[tool] > r.limits.Failures {
			r.tooLong--
		}
		delete(r.rows, tool)
	case how == failed:
		if r.rows == nil {
			r.rows = map[string]int{}
		}
		if r.rows[tool]++; r.rows[tool] == r.limits.Failures+1 {
			r.tooLong++
		}
	}
}

// exceeded returns the first limit that is exceeded, or nil.
func (r *run) exceeded() *agentevents.BudgetExceeded {
	l := &r.limits
	if r.usage != nil {
		tokens, cost := r.usage.total(l)
		if l.Tokens > 0 && tokens > l.Tokens {
			return &agentevents.BudgetExceeded{Budget: BudgetTokens, Limit: float64(l.Tokens), Actual: float64(tokens)}
		}
		if l.CostUSD > 0 && cost > l.CostUSD {
			return &agentevents.BudgetExceeded{Budget: BudgetCost, Limit: l.CostUSD, Actual: cost}
		}
	}
	if l.Steps > 0 && r.allSteps > int64(l.Steps) {
		return &agentevents.BudgetExceeded{Budget: BudgetSteps, Limit: float64(l.Steps), Actual: float64(r.allSteps)}
	}
	if r.tooLong == 0 {
		return nil
	}
	for _, tool := range slices.Sorted(maps.Keys(r.rows)) {
		if n := r.rows[tool]; n > l.Failures {
			why := "tool " + tool
			if tool == "" {
				why = "model"
			}
			return &agentevents.BudgetExceeded{Budget: BudgetFailures, Limit: float64(l.Failures), Actual: float64(n),
				Reason: why}
		}
	}
	return nil
}
