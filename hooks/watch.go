package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
)

// An Action is the answer of a [Watch] to a finding. Each but Tell is on the log as a
// budget.exceeded, whose budget is the kind of the finding and whose reason is its sentence.
type Action uint8

// The actions.
const (
	// Tell calls WatchOptions.Found and does no more.
	Tell Action = iota
	// Refuse has the emitter refuse the tool calls that would go on with a [findings.Repeat], a
	// [findings.PingPong] or a [findings.Retry], and after any other finding of an agent its next call. The
	// error is an [*agentevents.RuleError] with the rule "finding-" and the kind, whose Detail
	// can be shown to the model; with [agentevents.Agent.Do] the tool does not run.
	Refuse
	// Ask records an approval.requested of the agent, and refuses its tool calls, or the calls of all agents
	// when the finding is about the run, until the approval is granted or the agent ends.
	Ask
	// Stop calls Breaker.Stop.
	Stop
)

// WatchOptions are the options of a [Watch].
type WatchOptions struct {
	// Options are the numbers from which on a pattern is a finding.
	Options findings.Options
	// Found is told once of a finding that begins, and again when it has grown tenfold. It is
	// called with the lock of the run held, must not wait for the run, and does not emit into it.
	// Its error, or the value that it panics with, is the sink's. Nil tells nobody.
	Found func(context.Context, findings.Change) error
	// Act has the actions by kind. Kinds without an entry are told.
	Act map[findings.Kind]Action
	// Log returns the events of a run from its beginning. It is called when a run is resumed,
	// so that the findings after it are the same as in the whole log; events beyond the snapshot are
	// left out. Nil looks at the events after the resume alone.
	Log func(ctx context.Context, runID string) iter.Seq2[agentevents.Event, error]
}

// A Watch looks for findings in the runs of an emitter while they go on. They are those that a fold of
// the log has at the same event. It is installed by the [Breaker] whose field it is: budgets and
// findings stop a run through one door. One Watch may be installed for several emitters whose runs
// have different ids. Its methods may be called concurrently.
//
// Replayed events count and are not acted upon. A stall is found when the
// next event comes; until then [Watch.Idle] tells it.
type Watch struct {
	o    WatchOptions
	mu   sync.RWMutex // nothing is waited for while it is held
	runs map[string]*watched
	last atomic.Pointer[watched] // the run that was asked for last; changed with mu held
	owed atomic.Int64            // runs with something to record
}

// NewWatch returns a Watch without runs.
func NewWatch(o WatchOptions) *Watch { return &Watch{o: o, runs: map[string]*watched{}} }

// A watched is a run of a Watch.
type watched struct {
	mu      sync.Mutex
	found   *findings.Run
	held    []hold
	pending []agentevents.Event // to be recorded
	over    bool
}

// A hold refuses calls.
type hold struct {
	finding  findings.Finding
	approval string // that ends it; empty for a refusal
	once     bool
}

// Findings returns the findings of a run that is open, in the order in which they began.
func (w *Watch) Findings(runID string) []findings.Finding {
	r := w.run(runID)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found.Findings()
}

// Idle returns the open runs that stand still at a time, and for how long, if an event of an agent
// at that time would make it a [findings.Stall]. It changes nothing. A host calls it now and then.
func (w *Watch) Idle(now time.Time) map[string]time.Duration {
	w.mu.RLock()
	defer w.mu.RUnlock()
	idle := map[string]time.Duration{}
	for id, r := range w.runs {
		r.mu.Lock()
		if d := r.found.Idle(now); d > 0 {
			idle[id] = d
		}
		r.mu.Unlock()
	}
	return idle
}

func (w *Watch) run(id string) *watched {
	if r := w.last.Load(); r != nil && r.found.ID() == id {
		return r
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	r := w.runs[id]
	if r != nil {
		w.last.Store(r)
	}
	return r
}

// install returns the options with the watch in them.
func (w *Watch) install(o agentevents.EmitterOptions,
	stop func(context.Context, string, agentevents.BudgetExceeded) error) agentevents.EmitterOptions {
	o.Sinks = append(slices.Clip(o.Sinks), &watchSink{w, stop})
	if slices.ContainsFunc(findings.Kinds(), func(k findings.Kind) bool { return w.o.Act[k] != Tell }) {
		o.Follow = w.follow(o.Follow)
	}
	if slices.ContainsFunc(findings.Kinds(),
		func(k findings.Kind) bool { return w.o.Act[k] == Refuse || w.o.Act[k] == Ask }) {
		o.Guard = w.guard(o.Guard)
	}
	return o
}

// A watchSink is a Watch in an emitter.
type watchSink struct {
	*Watch
	stop func(context.Context, string, agentevents.BudgetExceeded) error
}

// CheckSink returns an error if an option makes no sense.
func (s *watchSink) CheckSink() error {
	if s.Watch == nil || s.runs == nil {
		return agentevents.ErrZeroValue
	}
	return s.o.Options.Check()
}

// WriteEvent looks at an event.
func (s *watchSink) WriteEvent(ctx context.Context, ev agentevents.Event) (err error) {
	switch ev.Payload.(type) {
	case *agentevents.TextDelta, *agentevents.AgentReasoningDelta, *agentevents.ToolArgumentsDelta:
		return nil // no finding is about them
	}
	r := s.run(ev.RunID)
	if r == nil {
		if ev.Sequence != 0 {
			return nil // late, of a run that was released
		}
		r = s.begin(ev.RunID)
	}
	r.mu.Lock()
	changes := r.add(&ev)
	r.mu.Unlock()
	if ev.Marks.Has(agentevents.MarkReplayed) {
		return nil
	}
	for i := range changes {
		err = errors.Join(err, s.act(ctx, r, &changes[i]))
	}
	return err
}

func (w *Watch) begin(id string) *watched {
	r := &watched{found: findings.NewRun(id, w.o.Options)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[id] = r
	w.last.Store(r)
	return r
}

// ResumeRun reads the events of the run before the snapshot.
func (s *watchSink) ResumeRun(ctx context.Context, snapshot *agentevents.RunSnapshot) error {
	r := s.begin(snapshot.RunID)
	if s.o.Log == nil {
		return nil
	}
	return contained("Watch.Log", func() error {
		for ev, err := range s.o.Log(ctx, snapshot.RunID) {
			if err != nil {
				return fmt.Errorf("hooks: WatchOptions.Log: %w", err)
			}
			if ev.RunID == snapshot.RunID && ev.Sequence < snapshot.NextSequence {
				r.mu.Lock()
				r.add(&ev)
				r.mu.Unlock()
			}
		}
		return nil
	})
}

// ReleaseRun forgets the run.
func (s *watchSink) ReleaseRun(_ context.Context, runID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[runID]; r != nil && len(r.pending) > 0 {
		s.owed.Add(-1)
	}
	delete(s.runs, runID)
	s.last.Store(nil)
	return nil
}

// askID begins the ids of the approvals that a Watch requests.
const askID = "finding:"

// add adds an event. The holds of questions follow from the events, so that a resumed run has
// them again.
func (r *watched) add(ev *agentevents.Event) []findings.Change {
	changes := r.found.Add(ev)
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRequested:
		if kind, ok := strings.CutPrefix(p.ApprovalID, askID); ok {
			kind, _, _ = strings.Cut(kind, ":")
			r.held = append(r.held, hold{finding: findings.Finding{Kind: findings.Kind(kind), AgentID: ev.AgentID,
				Text: p.Reason}, approval: p.ApprovalID})
		}
	case *agentevents.ApprovalGranted:
		r.release(func(h *hold) bool { return h.approval == p.ApprovalID })
	case *agentevents.AgentEnded:
		r.release(func(h *hold) bool { return h.finding.AgentID == ev.AgentID })
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		r.held, r.over = nil, true
	case *agentevents.RunResumed:
		r.over = false
	}
	return changes
}

func (r *watched) release(which func(*hold) bool) {
	r.held = slices.DeleteFunc(r.held, func(h hold) bool { return which(&h) })
}

// act tells the host of a change, and carries out its choice.
func (s *watchSink) act(ctx context.Context, r *watched, c *findings.Change) (err error) {
	if s.o.Found != nil {
		err = contained("Watch.Found", func() error { return s.o.Found(ctx, *c) })
	}
	action := s.o.Act[c.Kind]
	if action == Tell {
		return err
	}
	over := agentevents.BudgetExceeded{Budget: string(c.Kind), Limit: float64(c.Count), Actual: float64(c.Count),
		Reason: c.Text}
	r.mu.Lock()
	if len(r.pending) == 0 {
		s.owed.Add(1)
	}
	r.pending = append(r.pending, agentevents.Event{AgentID: c.AgentID, Payload: &over})
	switch {
	case r.over:
	case action == Refuse:
		h := hold{finding: c.Finding}
		h.once = c.Kind != findings.Repeat && c.Kind != findings.PingPong && c.Kind != findings.Retry
		if h.once {
			r.held = append(r.held, h)
		}
	case action == Ask:
		id := askID + string(c.Kind) + ":" + strconv.FormatUint(r.found.Next(), 10)
		r.pending = append(r.pending,
			agentevents.Event{AgentID: c.AgentID,
				Payload: &agentevents.ApprovalRequested{ApprovalID: id, Action: "go on", Reason: c.Text}})
	}
	r.mu.Unlock()
	if action == Stop && s.stop != nil {
		err = errors.Join(err, contained("Stop", func() error { return s.stop(ctx, r.found.ID(), over) }))
	}
	return err
}

// follow returns a Follow that records the answers to findings.
func (w *Watch) follow(host func(agentevents.Event) []agentevents.Event) func(agentevents.Event) []agentevents.Event {
	return func(ev agentevents.Event) []agentevents.Event {
		var events []agentevents.Event
		if host != nil {
			events = host(ev)
		}
		if w.owed.Load() == 0 { // the usual case
			return events
		}
		r := w.run(ev.RunID)
		if r == nil || ev.Kind() == agentevents.KindSessionStarted {
			return events
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		own := r.pending
		if len(own) == 0 {
			return events
		}
		w.owed.Add(-1)
		r.pending = nil
		_, ended := ev.Payload.(*agentevents.AgentEnded)
		for i := range own {
			if r.over || ended && own[i].AgentID == ev.AgentID {
				own[i].Marks = agentevents.MarkLate
			}
		}
		own = slices.DeleteFunc(own, func(e agentevents.Event) bool { // nobody is asked after an end
			return e.Marks.Has(agentevents.MarkLate) && e.Kind() == agentevents.KindApprovalRequested
		})
		return append(own, events...)
	}
}

// guard returns a Guard that refuses tool calls.
func (w *Watch) guard(
	host func(agentevents.Event) *agentevents.RuleError,
) func(agentevents.Event) *agentevents.RuleError {
	return func(ev agentevents.Event) *agentevents.RuleError {
		if host != nil {
			if refused := host(ev); refused != nil {
				return refused
			}
		}
		p, ok := ev.Payload.(*agentevents.ToolCalled)
		if !ok {
			return nil
		}
		r := w.run(ev.RunID)
		if r == nil {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		f, detail := r.refuses(&ev, p, w.o.Act)
		if f == nil {
			return nil
		}
		return &agentevents.RuleError{
			Rule: agentevents.Rule("finding-" + string(f.Kind)), Kind: ev.Kind(), RunID: ev.RunID, AgentID: ev.AgentID,
			EventID: ev.ID, Sequence: ev.Sequence,
			Subject: "call " + strconv.Quote(p.CallID), Detail: detail, Refused: true,
		}
	}
}

// refuses returns the finding for which a call is refused, and the reason.
func (r *watched) refuses(ev *agentevents.Event, p *agentevents.ToolCalled,
	act map[findings.Kind]Action) (*findings.Finding, string) {
	if f := r.found.GoesOn(cmp.Or(ev.AgentID, ev.NodeRunID), p); f != nil && act[f.Kind] == Refuse {
		return f, f.Text + "; do something else"
	}
	for i := range r.held {
		h := r.held[i]
		if h.finding.AgentID != "" && h.finding.AgentID != ev.AgentID ||
			h.once && h.finding.ToolID != "" && h.finding.ToolID != p.ToolID {
			continue
		}
		if h.once {
			r.held = slices.Delete(r.held, i, i+1)
			return &h.finding, h.finding.Text + "; the next call is allowed again"
		}
		return &h.finding, h.finding.Text + "; approval " + h.approval + " is not granted"
	}
	return nil, ""
}
