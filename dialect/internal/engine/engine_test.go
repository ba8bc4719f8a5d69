package engine

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Every field of every struct can be reached, and marking it makes the structs
// around it present.
func TestFields(t *testing.T) {
	for name, fields := range structFields {
		for _, f := range fields {
			require.NotEmpty(t, f.name, name)
			require.True(t, f.ok == nil || f.in != "", "%s.%s", name, f.name)
		}
	}
	p := new(agentevents.AgentEnded)
	f := fieldAt("AgentEnded", "usage/inputTokens")
	at, said := f.at(nil, p)
	require.False(t, said)
	*at.(*int64) = 7
	f.mark(p)
	_, said = f.at(nil, p)
	require.True(t, said)
	require.Equal(t, agentevents.Some(agentevents.Usage{InputTokens: 7}), p.Usage)
	require.Nil(t, fieldAt("AgentEnded", "usage/none"))
	require.Nil(t, fieldAt("AgentEnded", "/none"))
	misspelt := Format{Name: "toy", Head: toy.Head, Rows: []Row{{Type: "pause", Kind: agentevents.KindRunPaused, Members: []Member{May("why", "reasn")}}}}
	require.PanicsWithValue(t, "engine: toy, row pause, member why: RunPaused has no field reasn; misspelt, or go run ./internal/gen", func() { New(misspelt) })
	for _, row := range []Row{{Kind: agentevents.KindRunPaused, Members: []Member{May("why", "reason reasn")}}, {Kind: agentevents.KindRunPaused, Fields: "reasn"}} {
		require.Panics(t, func() { New(Format{Name: "toy", Head: toy.Head, Rows: []Row{row}}) }, "another place")
	}
	for says := range envelopeFields {
		at, said := fieldAt("", says).at(new(agentevents.Event), nil)
		require.True(t, said)
		require.Equal(t, reflect.Pointer, reflect.TypeOf(at).Kind())
	}
}

// toy is a document with an inner object, a list and a map.
var toy = New(Format{
	Name: "toy", Required: "toy-required",
	Head: []Member{Need("t", "", Type), Need("run", "/runId")},
	Rows: []Row{
		{Type: "end", Kind: agentevents.KindAgentEnded, Members: []Member{
			May("usage", "usage", Object(Need("in", "inputTokens"), May("cost", "costUsd"))),
			May("models", "modelUsage", Dict[agentevents.Usage](Need("in", "inputTokens"))),
			May("message", "error/message").As("msg"),
		}},
		{Type: "plan", Kind: agentevents.KindPlanProposed, Members: []Member{
			Need("steps", "steps", List[agentevents.PlanStep](Need("id", "stepId"))),
		}},
	},
	Tail: []Member{May("agent", "/agentId")},
})

type toyDocument struct{ r Reader }

func (d *toyDocument) Line(w *Writer, dst []byte) ([]byte, error) {
	return w.Line(dst, toy.Row(w.Ev.Kind()))
}

func (d *toyDocument) Reread(w *Writer, line string) error {
	d.r.Continue(w)
	return d.read(line, &w.Read)
}

func (d *toyDocument) read(line string, ev *agentevents.Event) error {
	if err := d.r.Read(line, ev); err != nil {
		return err
	}
	ev.SchemaVersion = agentevents.SchemaVersion
	return d.r.Finish()
}

func TestToy(t *testing.T) {
	for line, want := range map[string]struct {
		extra  agentevents.JSON
		lacks  string
		losses []string
	}{
		`{"t":"end","run":"r","usage":{"in":1,"cost":0.5,"x":1},"models":{"a/b":{"in":2,"y":[]}},"message":"m","agent":"a","z":{}}`: {
			extra: `{"/usage/x":1,"/models/a~1b/y":[],"z":{}}`},
		`{"t":"end","run":"r","agent":"a","/odd":1}`:                   {extra: `{"/~1odd":1}`},
		`{"t":"plan","run":"r","steps":[{"id":"1"},{"id":"2","n":0}]}`: {extra: `{"/steps/1/n":0}`},
		`{"t":"end","run":"r","usage":{}}`:                             {lacks: "/usage/in"},
	} {
		d := toyDocument{Reader{F: toy, Strict: true}}
		var ev agentevents.Event
		require.NoError(t, d.read(line, &ev), line)
		require.Equal(t, want.extra, ev.Extra("toy"), line)
		if want.lacks != "" {
			var rule *agentevents.RuleError
			require.ErrorAs(t, d.r.Check(), &rule)
			require.Equal(t, want.lacks, rule.Pointer)
			continue
		}
		require.NoError(t, d.r.Check())
		w := Writer{F: toy}
		out, _, err := w.Append(nil, &ev, &d)
		require.NoError(t, err)
		require.Equal(t, line+"\n", string(out))
	}
	// Another name of a member is read; a second one of them is kept.
	var ev agentevents.Event
	d := toyDocument{Reader{F: toy}}
	require.NoError(t, d.read(`{"t":"end","run":"r","msg":"m","message":"n"}`, &ev))
	require.Equal(t, "m", ev.Payload.(*agentevents.AgentEnded).Error.V.Message)
	require.Equal(t, agentevents.JSON(`{"message":"n"}`), ev.Extra("toy"))
}

// A kind without a row is refused, and so is an unknown event whose type has one.
func TestNoCounterpart(t *testing.T) {
	w := Writer{F: toy}
	_, _, err := w.Append(nil, &agentevents.Event{Payload: &agentevents.RunPaused{}}, &toyDocument{})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	require.ErrorContains(t, err, "run.paused")
	_, _, err = w.Append(nil, &agentevents.Event{Payload: &agentevents.Unknown{Type: "end", Raw: "{}"}}, &toyDocument{})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	require.EqualError(t, err, "dialect: end is a type of the document: its kind is agent.ended")
}
