// Package lawtest tests the laws of agentevents: property tests, concurrency tests, and
// differential tests against another JSON package. It is never published, so it may have
// dependencies that the library must not have.
//
// The package itself generates runs. [Generate] drives a real [agentevents.Emitter] with choices
// drawn from [rapid.T], and returns the accepted events as a [Run]. The generator has a model of
// the legal events, which is far simpler than the library's rules. The test fails if the emitter
// refuses what the model allows.
//
// New kinds need no code: the generator fills the payload of a kind without an action by reflection
// and emits it as a plain event. The event has an agent if the catalog lists the kind as an act of
// an agent.
package lawtest

import (
	"context"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// A Config selects the kind of run to generate.
type Config struct {
	Lifecycle agentevents.Lifecycle
	// Finish brings every run to its end, and closes every block that has deltas.
	// Otherwise runs stop anywhere.
	Finish bool
	// Wild gives the emitter also events that may be illegal. The log has those that the
	// emitter accepts.
	Wild bool
	// Named gives all agents an id. Otherwise an execution of a node or a span identifies
	// some of them.
	Named bool
	// Redaction is the emitter's policy, and Texts are the texts of deltas and whole blocks; nil
	// means a few harmless ones.
	Redaction *agentevents.Policy
	Texts     []string
	// Watch is called with the run and every accepted event of it, by the sink.
	Watch func(*agentevents.Run, agentevents.Event)
}

// inForce returns the table that an emitter goes by after the events of a run: the derived
// one only once a start has named it.
func inForce(l agentevents.Lifecycle, events iter.Seq[agentevents.Event]) agentevents.Lifecycle {
	if l != agentevents.LifecycleDerived {
		return l
	}
	for ev := range events {
		if kind := ev.Kind(); kind == agentevents.KindRunStarted || kind == agentevents.KindAgentStarted {
			return l
		}
	}
	return agentevents.LifecycleRelaxed
}

// alsoAllows reports whether an emitter's own table allows a move that the table in force
// allows: the derived one binds it before a start has named it, too.
func alsoAllows(l agentevents.Lifecycle, from, to agentevents.AgentStatus) bool {
	return l != agentevents.LifecycleDerived || l.Allows(from, to)
}

// Lifecycles draws a lifecycle.
func Lifecycles() *rapid.Generator[agentevents.Lifecycle] {
	return rapid.SampledFrom([]agentevents.Lifecycle{agentevents.LifecycleStrict,
		agentevents.LifecycleRelaxed, agentevents.LifecycleDerived})
}

// A Run is a generated run.
type Run struct {
	ID        string
	Lifecycle agentevents.Lifecycle
	Redaction *agentevents.Policy
	Offers    []Offer             // all offered events, in order
	Events    []agentevents.Event // the accepted events, as sinks see them
}

// An Offer is an event that the emitter is given, and the emitter's verdict.
type Offer struct {
	Event   agentevents.Event
	Refused error
}

// Generate draws a run.
func Generate(t *rapid.T, c Config) *Run {
	g := newGenerator(t, c)
	t.Repeat(map[string]func(*rapid.T){"step": func(t *rapid.T) {
		// Each step draws one number and depends only on that and on the state, so
		// rapid can shrink a run by leaving out steps.
		g.seed(rapid.Uint64().Draw(t, "step"))
		g.step()
	}})
	g.seed(rapid.Uint64().Draw(t, "end"))
	if c.Finish || g.chance(50) {
		g.finish()
	}
	return g.out
}

// A Clock counts milliseconds, and IDs counts ids. An emitter that shares them with
// another one continues where the other stopped.
type (
	Clock struct{ n int64 }
	IDs   struct{ n int }
)

// Now returns the next time, at uneven distances, so that durations differ.
func (c *Clock) Now() time.Time {
	c.n++
	return time.UnixMilli(1_700_000_000_000 + c.n*c.n%7 + 10*c.n).UTC()
}

// New returns the next id.
func (i *IDs) New() string {
	i.n++
	return "id-" + strconv.Itoa(i.n)
}

// generator is a run in the making, and the model of it.
type generator struct {
	t   *rapid.T
	c   Config
	pcg *rand.PCG
	r   *rand.Rand // of the current step
	run *agentevents.Run
	out *Run

	opened, ended bool
	agents        []*agent
	phases        []agentevents.Scope        // open phases, with workflow and phase
	resumed       map[agentevents.Scope]bool // the scopes whose workflow has resumed from a checkpoint since
	approvals     []approval                 // open approvals
	granted       []approval                 // granted ones that a call may name
	handoffs      []*agentevents.HandoffRequested
	messages      []agentevents.ConversationMessage
	messageEvents []string // event ids of the messages
	commands      []string // event ids of the commands
	blocks        int      // number of block ids so far
}

func newGenerator(t *rapid.T, c Config) *generator {
	g := &generator{
		t: t, c: c, pcg: rand.NewPCG(0, 0), resumed: map[agentevents.Scope]bool{},
		out: &Run{ID: "run", Lifecycle: c.Lifecycle, Redaction: c.Redaction},
	}
	if g.c.Texts == nil {
		g.c.Texts = texts
	}
	g.r = rand.New(g.pcg)
	clock, ids := &Clock{}, &IDs{}
	e := NewEmitter(t, c.Lifecycle, agentevents.ModeEnforce, clock, ids, c.Redaction, func(ev agentevents.Event) {
		g.out.Events = append(g.out.Events, ev)
		if c.Watch != nil {
			c.Watch(g.run, ev)
		}
	})
	var err error
	if g.run, err = e.Run(g.out.ID); err != nil {
		t.Fatalf("Emitter.Run: %v", err)
	}
	return g
}

// NewEmitter returns an emitter with a clock, ids and a policy, which delivers to record.
func NewEmitter(t rapid.TB, l agentevents.Lifecycle, m agentevents.Mode, clock *Clock,
	ids *IDs, redaction *agentevents.Policy, record func(agentevents.Event)) *agentevents.Emitter {
	e, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: l, Mode: m, Redaction: redaction, Clock: clock.Now, NewID: ids.New,
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

// chance reports true in the given percentage of cases.
func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

// offer gives an event to the emitter and reports whether it is accepted. A refusal fails
// the test unless the run is wild.
func (g *generator) offer(ev agentevents.Event) bool {
	n := len(g.out.Events)
	if info, _ := ev.Kind().Info(); n == 0 && info.Droppable {
		return false // a fold takes a run that begins with a delta for one whose beginning is missing
	}
	err := g.send(ev)
	g.out.Offers = append(g.out.Offers, Offer{ev, err})
	if err != nil {
		if !g.c.Wild {
			g.t.Fatalf("the emitter refused an event that the generator takes to be legal, after %d events: %v\n%#v",
				n, err, ev.Payload)
		}
		return false
	}
	made := g.out.Events[n:]
	for i := range made {
		// The held-back text of a block comes before the event that ends the block.
		if i < len(made)-1 && !made[i].Marks.Has(agentevents.MarkSynthetic) {
			g.t.Fatalf("one offer made %d events", len(made))
		}
		g.note(&made[i])
	}
	if len(made) == 0 || made[len(made)-1].Kind() != ev.Kind() {
		g.t.Fatalf("the offered event is not the last one of %d", len(made))
	}
	return true
}

// send emits an event by the method of a handle if the method records the same event, and if no
// rule of these methods alone concerns it.
func (g *generator) send(ev agentevents.Event) error {
	ctx := context.Background()
	simple := agentevents.Event{Scope: ev.Scope, AgentID: ev.AgentID, Payload: ev.Payload}
	if sameEnvelope(ev, simple) && !g.bound(ev) && g.chance(50) {
		run := g.run.With(ev.Scope)
		if ev.AgentID == "" {
			return run.Emit(ctx, ev.Payload)
		}
		return run.Agent(ev.AgentID).Emit(ctx, ev.Payload)
	}
	_, err := g.run.Record(ctx, ev)
	return err
}

// bound reports whether a rule that does not bind Record may refuse the event.
func (g *generator) bound(ev agentevents.Event) bool {
	switch ev.Payload.(type) {
	case *agentevents.ToolCalled, *agentevents.AgentEnded, *agentevents.RunResumed,
		*agentevents.ClarificationResolved, *agentevents.TurnEnded, *agentevents.StepEnded:
		return true
	}
	a := g.agentOf(&ev)
	return ev.AgentID != "" && (a == nil || !a.started)
}

func sameEnvelope(a, b agentevents.Event) bool {
	return a.Scope == b.Scope && a.AgentID == b.AgentID &&
		a.NodeRunID == b.NodeRunID && a.Step == b.Step && a.Marks == b.Marks &&
		a.ParentAgentID == b.ParentAgentID && a.ParentCallID == b.ParentCallID && a.SpanID == b.SpanID &&
		a.ParentSpanID == b.ParentSpanID && a.Actor == b.Actor && a.CausationID == b.CausationID
}
