package findings

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

const (
	kept        = 16   // acts of an agent that are known
	keptOpen    = 16   // open calls of an agent that are known
	keptArgs    = 1024 // bytes of arguments that are known
	keptAgents  = 64   // agents of a run
	keptFound   = 64   // findings of a run
	keptAsked   = 64   // questions of a run
	keptReports = 16   // model calls of an agent whose reported usage is known
	keptEnds    = 8    // sequences at each end of a finding
)

// A Run finds in the events of one run. The zero Run has the default options. It is not for concurrent use.
type Run struct {
	id string
	o  *Options

	seen     view.Sequences
	agents   map[string]*agent
	recent   *agent    // acted last
	acts     uint64    // clock of the agents
	last     time.Time // the latest time of an event
	answered bool      // the last lasting event was a text: a person may have the turn
	models   bool      // the run has model calls
	open     int       // tool calls
	asking   int       // model calls
	working  int       // agents that started and did not end
	started  bool      // an agent started
	paused   bool
	over     bool
	asked    []question
	hands    hands
	waste    *found
	idle     *found
	ended    []question // that their end closed

	found   []*found
	more    int
	changes []Change
}

// A found is a finding that may grow.
type found struct {
	Finding
	about  string // the call, or the error
	parts  int    // calls of a round, sorts of calls, refused calls of a streak, or tokens of the input
	room   int64  // limit of the input
	long   time.Duration
	base   spent   // of the agent, at the beginning
	size   float64 // grows
	told   float64 // size when the host was told
	beyond bool    // there are too many: it is counted, and nobody is told
	loops  bool    // its cost is waste
	write  func(*found) string
}

// A spent is the use of an agent's model calls.
type spent struct {
	tokens, calls int64
	cost          float64
	known, priced bool // somebody has stated tokens, or cost
}

// seed is drawn by the process: hashes never leave it.
var seed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(seed, text) }

// NewRun returns the fold of a run without events.
func NewRun(id string, o Options) *Run {
	o = o.filled()
	return newRun(id, &o)
}

func newRun(id string, o *Options) *Run {
	return &Run{id: strings.Clone(id), o: o}
}

// Findings returns the findings in the order in which they began.
func (r *Run) Findings() []Finding {
	all := make([]Finding, 0, len(r.found))
	for _, f := range r.found {
		all = append(all, f.copied())
	}
	return all
}

// More returns the number of findings beyond those that are kept.
func (r *Run) More() int { return r.more }

// ID returns the id of the run.
func (r *Run) ID() string { return r.id }

// Next returns the sequence after the last event.
func (r *Run) Next() uint64 { return r.seen.Next }

func (f *found) copied() Finding {
	c := f.Finding
	c.Text = f.write(f)
	c.Sequences = slices.Clone(c.Sequences)
	return c
}

// Add adds the next event and returns the changes that it makes. Neither keeps the other's memory.
func (r *Run) Add(ev *agentevents.Event) []Change {
	switch ev.Payload.(type) {
	case *agentevents.TextDelta, *agentevents.AgentReasoningDelta, *agentevents.ToolArgumentsDelta:
		return nil // a log may lack them
	}
	if r.o == nil {
		*r = *NewRun(ev.RunID, Options{})
	}
	if r.seen.Again(ev.Sequence) {
		return nil
	}
	r.changes = nil
	r.gap(ev)
	r.overdue(ev)
	r.event(ev)
	return r.changes
}

// event notes an event by its kind.
func (r *Run) event(ev *agentevents.Event) {
	answered := false
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		r.agent(ev).called(r, ev, p)
	case *agentevents.ToolReturned:
		r.agent(ev).returned(r, ev, p)
	case *agentevents.ModelCalled:
		r.models = true
		r.agent(ev).asks(r, p.ModelCallID)
	case *agentevents.ModelReturned:
		r.models = true
		r.agent(ev).modelReturned(r, ev, p)
	case *agentevents.AgentErrored:
		r.agent(ev).errored(r, ev, p)
		answered = r.answered
	case *agentevents.UsageObserved:
		r.agent(ev).observed(p)
	case *agentevents.ContextCompacted:
		r.agent(ev).compacted(r, ev)
	case *agentevents.AgentStarted:
		r.agent(ev).started(r)
	case *agentevents.AgentEnded:
		r.agent(ev).ended(r, ev, p)
	case *agentevents.AgentHandoff:
		r.handover(ev, p.From.AgentID, p.To.AgentID)
	case *agentevents.HandoffRequested:
		r.handover(ev, p.From.AgentID, p.To.AgentID)
	case *agentevents.ApprovalRequested:
		r.ask(ev, p.ApprovalID, p.Timeout)
	case *agentevents.ClarificationRequested:
		r.ask(ev, p.InterruptID, agentevents.Opt[time.Duration]{})
	case *agentevents.ApprovalGranted:
		r.answer(ev, p.ApprovalID, p.Answer)
	case *agentevents.ApprovalRejected:
		r.answer(ev, p.ApprovalID, p.Answer)
	case *agentevents.ClarificationResolved:
		r.answer(ev, p.InterruptID, "")
	case *agentevents.MessageCreated:
		if p.Message.Role == "user" || p.Message.From == "user" {
			for _, a := range r.agents {
				a.anew()
			}
		}
		answered = true
	case *agentevents.TextCompleted, *agentevents.TurnSummarized:
		if a := r.agents[cmp.Or(ev.AgentID, ev.NodeRunID)]; a != nil {
			a.goesOn()
		}
		answered = true
	case *agentevents.RunPaused:
		r.paused = true
	case *agentevents.RunStarted, *agentevents.RunResumed:
		r.paused, r.over = false, false
	case *agentevents.SessionCompleted:
		r.end()
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		r.end()
		r.forgetAll()
	default:
		answered = r.answered
	}
	r.answered = answered
}

// end notes that the run or its session is over: nothing waits any more.
func (r *Run) end() {
	r.over = true
	r.close("")
}

// forgetAll closes all findings, and forgets the agents of a run that has ended.
func (r *Run) forgetAll() {
	for _, f := range r.found {
		f.Open = false
	}
	// The empty maps of many runs take memory.
	r.agents, r.recent, r.open, r.asking, r.working, r.idle, r.hands = nil, nil, 0, 0, 0, nil, hands{}
}

// begin adds a finding that began earlier, with the events that it has so far.
func (r *Run) begin(ev *agentevents.Event, f found) *found {
	if slices.Contains(r.o.Off, f.Kind) {
		return nil
	}
	own := f
	own.RunID, own.Severity, own.Open = r.id, cmp.Or(f.Severity, Warning), true
	own.AgentID, own.ToolID, own.CallID = strings.Clone(f.AgentID), strings.Clone(f.ToolID), strings.Clone(f.CallID)
	own.Until = known(ev.Time)
	if own.beyond = len(r.found) == keptFound; own.beyond {
		r.more++
	} else {
		r.found = append(r.found, &own)
	}
	return &own
}

// tell notes that the host is to be told of a finding, if it began or has grown tenfold.
func (r *Run) tell(f *found) {
	began := f.told == 0
	if f.beyond || !began && f.size < 10*f.told {
		return
	}
	if f.told = f.size; !began {
		f.Severity = Serious
	}
	r.changes = append(r.changes, Change{Finding: f.copied(), Began: began})
}

// grow adds an event to a finding.
func (f *found) grow(ev *agentevents.Event, sequences ...uint64) {
	for _, s := range sequences {
		if len(f.Sequences) == 2*keptEnds {
			f.Sequences = slices.Delete(f.Sequences, keptEnds, keptEnds+1)
		}
		f.Sequences = append(f.Sequences, s)
	}
	if t := known(ev.Time); !t.IsZero() {
		f.Until = t
	}
}

// known returns a time that is known, else the zero time.
func known(t time.Time) time.Time {
	if !agentevents.TimeKnown(t) {
		return time.Time{}
	}
	return t
}

// wasted sums up the findings that cost something for nothing.
func (r *Run) wasted(last *found) {
	var all spent
	calls := 0
	for _, f := range r.found {
		if !f.loops || f.Kind == Waste {
			continue
		}
		all.tokens, all.cost = all.tokens+f.Cost.Tokens.V, all.cost+f.Cost.CostUSD.V
		all.known, all.priced = all.known || f.Cost.Tokens.OK, all.priced || f.Cost.CostUSD.OK
		calls += f.Cost.ModelCalls
	}
	tooMuch := all.tokens >= r.o.WasteTokens || all.cost >= r.o.WasteCostUSD
	if r.waste == nil && !tooMuch {
		return
	}
	ev := &agentevents.Event{Time: last.Until}
	if r.waste == nil {
		if r.waste = r.begin(ev, found{Finding: Finding{Kind: Waste, Since: last.Since}, write: wasteText}); r.waste == nil {
			return
		}
	}
	w := r.waste
	w.Count++
	w.Cost = Cost{ModelCalls: calls, From: "findings"}
	if all.known {
		w.Cost.Tokens = agentevents.Some(all.tokens)
	}
	if all.priced {
		w.Cost.CostUSD = agentevents.Some(all.cost)
	}
	w.size = max(float64(all.tokens), all.cost*float64(r.o.WasteTokens)/r.o.WasteCostUSD)
	w.grow(ev, last.Sequences[len(last.Sequences)-1])
	r.tell(w)
}
