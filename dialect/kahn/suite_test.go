package kahn

import (
	"reflect"
	"strings"
	"testing"
	"time"

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
}

func TestSuite(t *testing.T) {
	d := suite
	for line := range strings.Lines(example + full) {
		_, name, _ := strings.Cut(line, `"event":"`)
		name, _, _ = strings.Cut(name, `"`)
		d.Golden = append(d.Golden, dialecttest.Golden{Name: name, Lines: strings.TrimSuffix(line, "\n")})
	}
	dialecttest.Run(t, d)
}

// The losses are exact for events of other producers, which lack the fields that an emitter fills
// in.
func TestForeignEvents(t *testing.T) {
	one := func(name string, log ...agentevents.Event) {
		t.Helper()
		trip := readback.Trip{}
		require.Empty(t, trip.Problems(log, NewEncoder(EncoderOptions{}), NewDecoder(Options{})), name)
	}
	with := func(p agentevents.Payload, change func(ev *agentevents.Event)) agentevents.Event {
		ev := native(p)
		change(&ev)
		return ev
	}
	for _, row := range format.Rows {
		filled := func() agentevents.Event { return dialecttest.Filled(row.Kind) }
		for name, edit := range map[string]func(ev *agentevents.Event){
			"filled": func(*agentevents.Event) {}, "no payload": func(ev *agentevents.Event) { ev.Payload = agentevents.NewPayload(row.Kind) },
			"nobody": func(ev *agentevents.Event) { ev.AgentID, ev.Scope = "", agentevents.Scope{} },
			"a node": func(ev *agentevents.Event) { ev.AgentID, ev.NodeID, ev.NodeRunID = "", "n", "n-1" },
			"a nobody": func(ev *agentevents.Event) {
				ev.AgentID, ev.Scope, ev.SpanID, ev.ParentSpanID = "", agentevents.Scope{}, "", ""
			},
			"fine": func(ev *agentevents.Event) { ev.Time = ev.Time.Add(1) }, "no time": func(ev *agentevents.Event) { ev.Time = time.Time{} },
			"no step": func(ev *agentevents.Event) { ev.Step.OK = false }, "no ids": func(ev *agentevents.Event) { ev.ID, ev.SchemaVersion = "", "" },
			"an id": func(ev *agentevents.Event) { ev.AgentID = "Ü" },
		} {
			ev := filled()
			edit(&ev)
			one(row.Type+" "+name, ev)
		}
		for i := range reflect.TypeOf(filled().Payload).Elem().NumField() {
			ev := filled()
			if f := reflect.ValueOf(ev.Payload).Elem().Field(i); f.CanSet() {
				f.SetZero()
				one(row.Type+" without "+reflect.TypeOf(ev.Payload).Elem().Field(i).Name, ev)
			}
		}
	}
	for _, status := range []agentevents.ToolStatus{"ok", "error", "forbidden", "cancelled", "odd"} {
		one("status "+string(status), native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: status, OneEvent: true}))
	}
	for _, value := range []agentevents.JSON{`null`, `"text"`, `{"a":1}`, `""`} {
		one("value "+string(value), with(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: "ok", OneEvent: true, Result: value, Arguments: value}, func(ev *agentevents.Event) { ev.Step = agentevents.Some(0) }))
		one("prompt "+string(value), native(&agentevents.AgentStarted{Prompt: value}))
		one("evidence "+string(value), native(&agentevents.AuditChecked{CheckpointID: "c", Result: "pass", Evidence: value}))
	}
	for _, summary := range []string{strings.Repeat("é", MaxSummary), strings.Repeat("é", MaxSummary+1)} {
		one("summary", native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: "ok", OneEvent: true, ResultSummary: summary, ArgumentsSummary: summary}))
	}
	called := func(change func(p *agentevents.ToolCalled)) agentevents.Event {
		p := &agentevents.ToolCalled{CallID: "c", ToolID: "x", Arguments: `"a"`, ArgumentsSummary: "s"}
		change(p)
		return native(p)
	}
	asked := called(func(*agentevents.ToolCalled) {})
	back := native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: "ok"})
	said := native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: "ok", Arguments: `"b"`, ArgumentsSummary: "z"})
	one("a call", asked, back)
	one("a call with an id", with(asked.Payload, func(ev *agentevents.Event) { ev.ID = "e" }), back)
	one("a call with another step", with(asked.Payload, func(ev *agentevents.Event) { ev.Step = agentevents.Some(3) }), back)
	one("a call with an extra member", with(asked.Payload, func(ev *agentevents.Event) { _ = ev.SetExtra(string(Name), `{"x":1}`) }), back)
	one("a call of another tool", called(func(p *agentevents.ToolCalled) { p.ToolID = "y" }), back)
	one("a call with other arguments", asked, said)
	one("a call without a summary", called(func(p *agentevents.ToolCalled) { p.ArgumentsSummary = "" }), back)
	one("a call that never returned", asked)
	one("a call again", asked, asked, back)
	one("a node that fails", with(&agentevents.AgentStarted{Task: "t"}, func(ev *agentevents.Event) { ev.AgentID, ev.NodeRunID = "", "n-1" }),
		with(&agentevents.NodeFailed{Error: agentevents.ErrorInfo{Message: "m"}}, func(ev *agentevents.Event) { ev.AgentID, ev.NodeRunID = "", "n-1" }))
}
