package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The leaves of a payload, as present reports them, stand on its native line, and
// whatever stands there and is not zero is one of them. A list or a map counts as
// one.
func TestLeavesAreWhatTheLineSays(t *testing.T) {
	for k := range agentevents.Kinds() {
		for _, ev := range []agentevents.Event{dialecttest.Filled(k.Kind), dialecttest.Minimal(k.Kind)} {
			name := payloadName(k.Kind)
			var got []string
			for i, leaf := range leaves[name] {
				if present(ev.Payload)&(1<<i) != 0 {
					got = append(got, leaf)
				}
			}
			all, zero := said(t, ev, name)
			require.Subset(t, all, got, k.Kind)
			require.Subset(t, got, slices.DeleteFunc(all, func(at string) bool { return zero[at] }), k.Kind)
		}
	}
	var none agentevents.Event
	require.Zero(t, presentIn(&none))
	full := dialecttest.Filled(agentevents.KindRunPaused)
	require.Equal(t, 1<<envelopeLeaves-1, int(presentIn(&full)&(1<<envelopeLeaves-1)))
}

// said returns the leaves on the native line of an event, and those that are zero.
func said(t *testing.T, ev agentevents.Event, name string) (list []string, zero map[string]bool) {
	line, err := ev.AppendJSON(nil)
	require.NoError(t, err)
	zero = map[string]bool{}
	var walk func(at, raw string)
	walk = func(at, raw string) {
		if raw[0] == '{' && (at == "/payload" || slices.ContainsFunc(leaves[name], func(leaf string) bool { return strings.HasPrefix(leaf, at+"/") })) {
			if slices.Contains(leaves[name], at) { // it may be absent
				list = append(list, at)
			}
			for member, value := range jsonwire.Members(raw) {
				walk(at+"/"+member, value)
			}
			return
		}
		list = append(list, at)
		zero[at] = slices.Contains([]string{`""`, "0", "false", "null", `"0001-01-01T00:00:00.000Z"`}, raw)
	}
	for member, value := range jsonwire.Members(string(line)) {
		if member == "payload" {
			walk("/payload", value)
		}
	}
	return list, zero
}

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
	require.PanicsWithValue(t, "wire: toy, row pause, member why: RunPaused has no field reasn; misspelt, or go run ./internal/gen", func() { New(misspelt) })
	for _, row := range []Row{{Kind: agentevents.KindRunPaused, Members: []Member{May("why", "reason reasn")}}, {Kind: agentevents.KindRunPaused, Says: "reasn"}} {
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
		require.Empty(t, w.Losses.List(), line)
	}
	// Another name of a member is read; a second one of them is kept.
	var ev agentevents.Event
	d := toyDocument{Reader{F: toy}}
	require.NoError(t, d.read(`{"t":"end","run":"r","msg":"m","message":"n"}`, &ev))
	require.Equal(t, "m", ev.Payload.(*agentevents.AgentEnded).Error.V.Message)
	require.Equal(t, agentevents.JSON(`{"message":"n"}`), ev.Extra("toy"))
}

// What no member says is lost: a whole value by its own place, fields of a list's
// elements and of a map's by theirs. A kept member without a place is lost too.
func TestLossesBySubtraction(t *testing.T) {
	ev := agentevents.Event{RunID: "r", SchemaVersion: agentevents.SchemaVersion, TraceID: "t", Payload: &agentevents.AgentEnded{
		Outcome: agentevents.OutcomePartial,
		Error:   agentevents.Some(agentevents.ErrorInfo{Message: "m", Code: "c"}),
		Totals:  agentevents.Some(agentevents.Totals{Steps: 1, ToolCalls: 2}),
		Usage:   agentevents.Some(agentevents.Usage{InputTokens: 1, OutputTokens: 2}),
		ModelUsage: map[string]agentevents.Usage{
			"a/b": {InputTokens: 1, TotalTokens: agentevents.Some(int64(3))},
		},
	}}
	require.NoError(t, ev.SetExtra("toy", `{"/plan/x":1,"t":2}`))
	require.NoError(t, ev.SetExtra("other", `1`))
	w := Writer{F: toy}
	_, _, err := w.Append(nil, &ev, &toyDocument{})
	require.NoError(t, err)
	var got []string
	for _, l := range w.Losses.List() {
		got = append(got, l.What.String()+" "+l.Pointer)
	}
	require.ElementsMatch(t, []string{
		"dropped /traceId", "dropped /other", "dropped /toy/~1plan~1x", "dropped /toy/t", "dropped /payload/outcome", "dropped /payload/error/code",
		"dropped /payload/totals", "dropped /payload/usage/outputTokens", "dropped /payload/modelUsage/a~1b/totalTokens",
	}, got)
	_, _, err = w.Append(nil, &agentevents.Event{Payload: &agentevents.RunPaused{}}, &toyDocument{})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	_, _, err = w.Append(nil, &agentevents.Event{Payload: &agentevents.Unknown{Type: "end", Raw: "{}"}}, &toyDocument{})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	require.EqualError(t, err, "dialect: end is a type of the document: its kind is agent.ended")
	require.Contains(t, w.Losses.List(), dialect.Loss{Kind: "end", Detail: "no counterpart", Count: 1})
}
