// Package lawtest holds the laws of agentevents as property tests, its
// concurrency tests, and differential tests against another JSON package. It
// is never published, so it may depend on what the library must not.
//
// The package itself is a generator of runs. [Generate] drives a real
// [agentevents.Emitter] with choices drawn from [rapid.T]; what the emitter
// accepted is a [Run]. The generator keeps a model of its own of what is legal,
// far simpler than the library's machine, and fails the test when the emitter
// refuses what the model allows.
//
// Kinds join by themselves: a kind that the generator has no action for gets a
// payload filled by reflection and is emitted as a plain event, by an agent
// when the catalog says that it is an act of one.
package lawtest

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// A Config says what kind of run to generate.
type Config struct {
	Lifecycle agentevents.Lifecycle
	// Finish brings every run to its end, with the whole of every block that
	// has deltas in the log. Otherwise runs stop anywhere.
	Finish bool
	// Wild also offers events without asking whether they are legal. The
	// emitter decides, and what it accepts goes into the log.
	Wild bool
}

// Lifecycles draws one of the two tables.
func Lifecycles() *rapid.Generator[agentevents.Lifecycle] {
	return rapid.SampledFrom([]agentevents.Lifecycle{agentevents.LifecycleStrict, agentevents.LifecycleRelaxed})
}

// A Run is what came out.
type Run struct {
	ID        string
	Lifecycle agentevents.Lifecycle
	Offers    []Offer             // everything that was offered, in order
	Events    []agentevents.Event // what was accepted, as the sinks saw it
}

// An Offer is an event as it was given to the emitter, and what became of it.
type Offer struct {
	Event   agentevents.Event
	Refused error
}

// Generate draws a run.
func Generate(t *rapid.T, c Config) *Run {
	g := newGenerator(t, c)
	t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		// One number per step, so that rapid can shrink a run by leaving out
		// steps: what a step does depends on its number and on the state only.
		g.seed(rapid.Uint64().Draw(t, "step"))
		g.step()
	}})
	g.seed(rapid.Uint64().Draw(t, "end"))
	if c.Finish || g.chance(50) {
		g.finish()
	}
	return g.out
}

// A Clock counts milliseconds, and IDs counts ids: two emitters that share
// them continue each other.
type (
	Clock struct{ n int64 }
	IDs   struct{ n int }
)

// Now returns the next time. The steps are uneven so that durations differ.
func (c *Clock) Now() time.Time {
	c.n++
	return time.UnixMilli(1_700_000_000_000 + c.n*c.n%7 + 10*c.n).UTC()
}

// New returns the next id.
func (i *IDs) New() string {
	i.n++
	return "id-" + strconv.Itoa(i.n)
}

// generator is the run being made and the model of it.
type generator struct {
	t   *rapid.T
	c   Config
	pcg *rand.PCG
	r   *rand.Rand // of the current step
	run *agentevents.Run
	out *Run

	opened, ended bool
	agents        []*agent
	phases        []agentevents.Scope // open ones, by workflow and phase
	approvals     []string            // open
	handoffs      []*agentevents.HandoffRequested
	messages      []agentevents.ConversationMessage
	messageEvents []string // ids of their events
	commands      []string // ids of their events
	blocks        int      // counts block ids
}

func newGenerator(t *rapid.T, c Config) *generator {
	g := &generator{t: t, c: c, pcg: rand.NewPCG(0, 0), out: &Run{ID: "run", Lifecycle: c.Lifecycle}}
	g.r = rand.New(g.pcg)
	clock, ids := &Clock{}, &IDs{}
	e := NewEmitter(t, c.Lifecycle, agentevents.ModeEnforce, clock, ids, func(ev agentevents.Event) {
		g.out.Events = append(g.out.Events, ev)
	})
	var err error
	if g.run, err = e.Run(g.out.ID); err != nil {
		t.Fatalf("Emitter.Run: %v", err)
	}
	return g
}

// NewEmitter returns an emitter on a clock and ids that delivers to record.
func NewEmitter(t rapid.TB, l agentevents.Lifecycle, m agentevents.Mode, clock *Clock, ids *IDs, record func(agentevents.Event)) *agentevents.Emitter {
	e, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: l, Mode: m, Clock: clock.Now, NewID: ids.New,
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			record(ev)
			return nil
		})},
	})
	if err != nil {
		t.Fatalf("NewEmitter: %v", err)
	}
	return e
}

func (g *generator) seed(n uint64) { g.pcg.Seed(n, 0x9e3779b97f4a7c15) }

// chance reports true in percent of the cases.
func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

// offer gives an event to the emitter and reports whether it was accepted.
// The model allows it unless the run is wild.
func (g *generator) offer(ev agentevents.Event) bool {
	n := len(g.out.Events)
	err := g.send(ev)
	g.out.Offers = append(g.out.Offers, Offer{ev, err})
	if err != nil {
		if !g.c.Wild {
			g.t.Fatalf("the emitter refused what the generator takes to be legal, after %d events: %v\n%#v", n, err, ev.Payload)
		}
		return false
	}
	if len(g.out.Events) != n+1 {
		g.t.Fatalf("one offer made %d events", len(g.out.Events)-n)
	}
	g.note(&g.out.Events[n])
	return true
}

// send uses a handle where one can say the same as the event.
func (g *generator) send(ev agentevents.Event) error {
	ctx := context.Background()
	simple := agentevents.Event{Scope: ev.Scope, AgentID: ev.AgentID, Payload: ev.Payload}
	if sameEnvelope(ev, simple) && g.chance(50) {
		run := g.run.With(ev.Scope)
		if ev.AgentID == "" {
			return run.Emit(ctx, ev.Payload)
		}
		return run.Agent(ev.AgentID).Emit(ctx, ev.Payload)
	}
	return g.run.Record(ctx, ev)
}

func sameEnvelope(a, b agentevents.Event) bool {
	return a.Scope == b.Scope && a.AgentID == b.AgentID && a.NodeRunID == b.NodeRunID && a.Step == b.Step && a.Marks == b.Marks &&
		a.ParentAgentID == b.ParentAgentID && a.ParentCallID == b.ParentCallID && a.SpanID == b.SpanID &&
		a.ParentSpanID == b.ParentSpanID && a.Actor == b.Actor && a.CausationID == b.CausationID
}
