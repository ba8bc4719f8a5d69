package multiagent

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/readback"
)

var suite = dialecttest.Dialect{
	Name:    Name,
	Decoder: func() agentevents.Decoder { return NewDecoder(Options{}) },
	Encoder: func() dialect.Encoder { return NewEncoder(EncoderOptions{}) },
	Strict:  func() agentevents.Decoder { return NewDecoder(Options{Strict: true}) },
	Ignore:  []string{"/multiagent/schemaVersion", "/multiagent/~1made"},
	Maps:    []string{"/payload/modelUsage"},
}

func TestSuite(t *testing.T) {
	d := suite
	for _, g := range goldens() {
		ev := g.event
		require.NoError(t, ev.SetExtra(string(Name), `{"schemaVersion":"1.0"}`))
		d.Golden = append(d.Golden, dialecttest.Golden{Name: g.name, Lines: g.line, Events: []agentevents.Event{ev}, Build: true})
	}
	dialecttest.Run(t, d)
}

// The losses are exact for events of other producers. They lack the fields that an emitter fills
// in, and have any agent and actor. Each event stands alone, and after the request that it may
// answer.
func TestForeignEvents(t *testing.T) {
	person, agent := "user", "coder"
	by := func(agent, actor string) func(ev *agentevents.Event) { return forAgent(agent, actor) }
	edits := map[string]func(ev *agentevents.Event){
		"as it is": func(*agentevents.Event) {}, "nobody": by("", ""), "no agent": by("", agent), "a person": by("", person), "an agent": by(agent, ""), "both": by(agent, "planner"),
		"an agent by a person": by(agent, person), "an agent by itself": by(agent, agent), "an agent called system": by("system", ""),
		"an agent called system by itself": by("system", "system"), "an agent called system by an agent": by("system", agent),
		"nothing that is made up": func(ev *agentevents.Event) {
			ev.ID, ev.TraceID, ev.SpanID, ev.SessionID, ev.Scope.NodeID = "", "", "", "", ""
		},
		"a span for a parent": func(ev *agentevents.Event) { ev.ParentSpanID = up },
		"a scope":             func(ev *agentevents.Event) { ev.Phase, ev.Step, ev.Scope.NodeRunID = "p", agentevents.Some(1), "x" },
		"a step below 0":      func(ev *agentevents.Event) { ev.Step = agentevents.Some(-1) },
		"marks":               func(ev *agentevents.Event) { ev.Marks = 1<<6 - 1 },
		"no payload":          func(ev *agentevents.Event) { ev.Payload = agentevents.NewPayload(ev.Kind()) },
	}
	var opened []agentevents.Event
	for _, g := range goldens() {
		switch g.event.Kind() {
		case agentevents.KindAgentStarted, agentevents.KindToolCalled, agentevents.KindHandoffRequested, agentevents.KindApprovalRequested:
			g.event.ID = "before-" + g.name
			opened = append(opened, g.event)
		}
	}
	exact := func(t *testing.T, name string, log ...agentevents.Event) {
		t.Helper()
		trip := readback.Trip{Ignore: suite.Ignore, Derived: []string{"/multiagent"}} // members that a reader keeps of the line are not lost
		require.Empty(t, trip.Problems(log, NewEncoder(EncoderOptions{}), NewDecoder(Options{})), name)
	}
	run := func(t *testing.T, name string, ev agentevents.Event) {
		exact(t, name, ev)
		others := slices.DeleteFunc(slices.Clone(opened), func(o agentevents.Event) bool { return o.Kind() == ev.Kind() })
		exact(t, name+", after others", append(others, ev)...)
	}
	ref := func(id string) agentevents.AgentRef { return agentevents.AgentRef{AgentID: id} }
	for _, id := range []string{"", "h"} {
		exact(t, "a handoff", event(&agentevents.HandoffRequested{HandoffID: id, From: ref("a"), To: ref("b")}), event(&agentevents.HandoffAccepted{To: ref("b")}))
	}
	exact(t, "a call in one event", event(&agentevents.ToolReturned{ToolID: "x", Status: "ok", OneEvent: true}))
	exact(t, "a call of the system", event(&agentevents.ToolCalled{CallID: "c", ToolID: "x"}, by("system", "")), event(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: "ok"}, by("system", "")))
	others := []golden{{event: event(&agentevents.ToolReturned{CallID: "c1", ToolID: "x", Status: "success"})}}
	for _, typ := range []agentevents.Kind{"odd", "multiagent:odd", "multiagent:run.started", "multiagent:session.started", "session.started"} {
		others = append(others, golden{event: event(&agentevents.Unknown{Type: typ, Raw: `{}`})}, golden{event: event(&agentevents.Unknown{Type: typ})})
	}
	for i, g := range append(goldens(), others...) {
		t.Run(string(g.event.Kind()), func(t *testing.T) {
			for name, edit := range edits {
				ev := g.event
				edit(&ev)
				run(t, name, ev)
			}
			if g.name == "" {
				return
			}
			for f := range reflect.TypeOf(g.event.Payload).Elem().NumField() {
				ev := goldens()[i].event
				if field := reflect.ValueOf(ev.Payload).Elem().Field(f); field.CanSet() && !field.IsZero() {
					field.SetZero()
					run(t, fmt.Sprint("without field ", f), ev)
				}
			}
		})
	}
}
