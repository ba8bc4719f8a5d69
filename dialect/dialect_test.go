package dialect

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		line string
		want Name
	}{
		{`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{}}`, Native},
		{`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","actor":"user","traceId":"t","payload":{}}`, Native},
		{`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_run_start"}`, KAHN},
		{`{"id":"e","traceId":"t","spanId":"s","sessionId":"s","runId":"r","actor":"a","type":"session.started","payload":null,"timestamp":"2026-05-05T09:00:00Z","schemaVersion":"1"}`, MultiAgent},
		{`{"type":"span","timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r","subject":"TURN","phase":"start"}`, KAOS},
		{`data: {"type":"text_delta"}`, KAOS},
		{`event: text_delta`, KAOS},
		{`id: 7`, KAOS},
		{`retry: 100`, KAOS},
		{"retry: 100\rdata: {}", KAOS},
		{`retry: 3 of 5 failed`, ""},
		{`retry:`, ""},
		{`data`, ""},
		{`ERROR: data`, ""},
		{`: a comment`, KAOS},
		{`dates: 7`, ""},
		{`{"type":"agent:text","nodeId":"n","runId":"r","timestamp":1777971600000,"content":"x"}`, OpenHarness},
		{`{"type":"flow:start","flowName":"f","timestamp":1777971600000}`, OpenHarness},
		{`{"eventId":"e","runId":"r","type":"agent.reasoned","payload":{},"timestamp":"2026-05-05T09:00:00Z","sequence":0}`, OpenWOP},
		{`{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":1777971600000}`, AGUI},
		{`{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"x"}`, AGUI},
		{`data: {"type":"CUSTOM","name":"x","value":1}`, AGUI},
		{`data:{"type":"RAW","event":{}}`, AGUI},
		{`{"type":"RAWER"}`, ""},
		{`{"type":"RUN"}`, ""},
		// Lines that lack a member, or have an extra one.
		{`{"id":"1","timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","payload":{}}`, Native},
		{`{"id":"1","timestamp":"2026-05-05T09:00:00.000Z","type":"agent.text","runId":"r","agentId":"a","traceId":"t","spanId":"s","payload":{}}`, Native},
		{`{"agentId":"a","eventId":"x","id":"1","payload":{},"runId":"r","schemaVersion":"1.0","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"x"}`, Native},
		{`{"id":"1","sequence":0,"runId":"r","type":"run.paused","event":"x","payload":{}}`, Native},
		{`{"id":"e","traceId":"t","type":"x","payload":null}`, MultiAgent},
		{`{"id":"e","traceId":"t","actor":"a","runId":"r","type":"x","payload":null,"event":"x","eventId":"x","schemaVersion":"1.0"}`, MultiAgent},
		{`{"type":"vendor:thing","timestamp":1.5,"sequence":0,"session_id":"s","run_id":"r"}`, KAOS},
		{`{"type":"span","timestamp":"1.5","sequence":0,"session_id":"s","run_id":"r","event":"x"}`, KAOS},
		{`{"type":"span","session_id":"s","run_id":"r"}`, KAOS},
		{`{"type":"agent:text","nodeId":"n","runId":"r","timestamp":"2026-05-05T09:00:00Z","event":"x"}`, OpenHarness},
		{`{"type":"agent:start","sessionId":"s"}`, OpenHarness},
		{`{"type":"vendor:thing","timestamp":1777971600000,"sequence":1}`, OpenHarness},
		{`{"eventId":"e","id":"1","runId":"r","type":"x","payload":{},"sequence":0,"schemaVersion":1,"event":"x"}`, OpenWOP},
		{`{"ts":1,"run_id":"r","event":5}`, KAHN},
		{`{"ts":1,"run_id":"r","event":"x","type":7}`, KAHN},
		{`{"ts":1,"event":"x"}`, ""},
		{`{"id":"chatcmpl-1","type":"response","payload":{"x":1}}`, ""},
		{`{"type":"vendor:thing"}`, ""},
		{`{"type":"agent"}`, ""},
		{`{"type":"system","subtype":"init","session_id":"s"}`, ""},
		{`{"type":"user","message":{}}`, ""},
		{`{}`, ""},
		{`[]`, ""},
		{``, ""},
		{`{"type":1}`, ""},
		{`{"type":"x"`, ""},
	} {
		require.Equal(t, c.want, Detect(c.line), c.line)
	}
}

func TestDerivedID(t *testing.T) {
	seen := map[string]bool{}
	var ids IDs
	var made []string
	for _, line := range []string{"", "a", `{"a":1}`, `{"a":2}`} {
		for number := range 50 {
			for part := range 5 {
				id := DerivedID(line, number, part)
				require.Equal(t, id, DerivedID(line, number, part))
				require.False(t, seen[id])
				made = append(made, ids.Derived(line, number, part))
				require.Equal(t, id, made[len(made)-1])
				seen[id] = true
				require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
			}
		}
	}
	for _, id := range made { // a later id did not overwrite it
		delete(seen, id)
	}
	require.Empty(t, seen)
}

func TestNumbers(t *testing.T) {
	var n Numbers
	for want := range uint64(3) {
		require.Equal(t, want, n.Peek("a"))
		require.Equal(t, want, n.Peek("a"), "nothing is taken")
		require.Equal(t, want, n.Next("a"))
		require.Equal(t, want, n.Next(""))
		require.Equal(t, want, n.Next("b"))
	}
}

// Calls behaves like a map for any number of open calls and any order of returns.
func TestCalls(t *testing.T) {
	type key struct{ run, agent, call string }
	var c Calls
	open := map[key]uint64{}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range uint64(20_000) {
		k := key{"r" + strconv.Itoa(r.IntN(2)), "a" + strconv.Itoa(r.IntN(2)), strconv.Itoa(r.IntN(20))}
		sequence, ok := open[k]
		if got := c.Get(k.run, k.agent, k.call); ok {
			require.Equal(t, sequence, got.Sequence)
		} else {
			require.Nil(t, got)
		}
		if r.IntN(2) == 0 {
			old, put := c.Put(&agentevents.Event{RunID: k.run, Sequence: n}, k.agent, k.call)
			require.True(t, put)
			require.Equal(t, ok, old != nil)
			if ok {
				require.Equal(t, sequence, old.Sequence)
			}
			open[k] = n
		} else {
			c.Remove(k.run, k.agent, k.call)
			delete(open, k)
		}
	}
	left := c.Clear()
	require.Len(t, left, len(open))
	require.Greater(t, len(left), 16, "the test holds few calls")
	require.True(t, slices.IsSortedFunc(left, func(a, b *agentevents.Event) int {
		return cmp.Or(cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Sequence, b.Sequence))
	}))
	require.Empty(t, c.Clear())

	for i := range MaxCalls {
		_, ok := c.Put(&agentevents.Event{}, "", strconv.Itoa(i))
		require.True(t, ok)
	}
	_, ok := c.Put(&agentevents.Event{}, "", "one more")
	require.False(t, ok)
	require.Nil(t, c.Get("", "", "one more"))
	_, ok = c.Put(&agentevents.Event{Sequence: 7}, "", "3")
	require.True(t, ok, "it is in the place of the other")
	require.EqualValues(t, 7, c.Get("", "", "3").Sequence)
}

func TestLosses(t *testing.T) {
	var l Losses
	ev := agentevents.Event{RunID: "r", Sequence: 7, Payload: &agentevents.RunPaused{}}
	other := agentevents.Event{RunID: "r", Sequence: 9, Payload: &agentevents.RunResumed{}}
	require.Empty(t, l.List())
	for range 3 {
		l.Every(&ev, Dropped, "/id", "none")
		l.Drop(&ev, "/payload/reason", true)
		l.Drop(&ev, "/payload/reason", false)
		l.Add(&ev, Made, "/step", "")
		l.Every(&other, Dropped, "/id", "none")
		err := l.Refuse(&other)
		require.ErrorIs(t, err, ErrNoCounterpart)
		require.ErrorContains(t, err, "run.resumed")
	}
	l.Add(&ev, Altered, "/step", "")
	require.Equal(t, []Loss{
		{Pointer: "/id", What: Dropped, Detail: "none", Count: 6, RunID: "r", Sequence: 7},
		{Kind: "run.paused", Pointer: "/payload/reason", What: Dropped, Count: 3, RunID: "r", Sequence: 7},
		{Kind: "run.paused", Pointer: "/step", What: Altered, Count: 1, RunID: "r", Sequence: 7},
		{Kind: "run.paused", Pointer: "/step", What: Made, Count: 3, RunID: "r", Sequence: 7},
		{Kind: "run.resumed", What: Dropped, Detail: "no counterpart", Count: 3, RunID: "r", Sequence: 9},
	}, l.List())
	require.Equal(t, "dropped altered made up", fmt.Sprint(Dropped, " ", Altered, " ", Made))
}

// Extra members have any names: many different losses are counted like a few.
func TestLossesOfManyPlaces(t *testing.T) {
	const places, rounds = 100_000, 3
	var l Losses
	ev := agentevents.Event{RunID: "r", Payload: &agentevents.RunPaused{}}
	for round := range rounds {
		for i := range places {
			if round == 1 {
				i = places - 1 - i // not in the expected order
			}
			l.Add(&ev, Change(i%3), "/payload/"+strconv.Itoa(i/6), strconv.Itoa(i%6/3))
		}
	}
	list := l.List()
	require.Len(t, list, places)
	for _, loss := range list {
		require.Equal(t, rounds, loss.Count)
	}
}

func TestUnknowns(t *testing.T) {
	var u Unknowns
	ev := agentevents.Event{Payload: &agentevents.RunPaused{}}
	require.NoError(t, u.Keep(&ev, KAHN))
	require.Empty(t, ev.Extra("kahn"))
	require.Empty(t, u.Object())
	require.True(t, u.Add(`a"b`, `1`))
	for i := range 3 * fewNames {
		require.True(t, u.Add(fmt.Sprint("n", i), "{}"))
	}
	require.True(t, u.Add("", `null`))
	for _, again := range []string{`a"b`, "n0", "n47", ""} {
		require.False(t, u.Add(again, "1"), again)
	}
	require.NoError(t, u.Keep(&ev, KAHN))
	require.Equal(t, agentevents.JSON("1"), Unknown(&ev, KAHN, `a"b`))
	require.Equal(t, agentevents.JSON("null"), Unknown(&ev, KAHN, ""))
	require.Empty(t, Unknown(&ev, KAHN, "n48"))
	require.Empty(t, Unknown(&ev, KAOS, "n1"))

	u.Reset()
	require.True(t, u.Add("x", "1"))
	require.True(t, u.Add("y", `[2]`))
	require.NoError(t, u.Keep(&ev, KAHN))

	// An extra member of another program does not cause an error.
	require.NoError(t, ev.SetExtra("kahn", `[1]`))
	require.Empty(t, Unknown(&ev, KAHN, "x"))

	require.NoError(t, ev.SetExtra("a/b~", `1`))
	var l Losses
	l.DropExtras(&ev, KAHN)
	require.Len(t, l.List(), 1)
	require.Equal(t, "/a~1b~0", l.List()[0].Pointer)
	require.True(t, errors.Is(l.Refuse(&ev), ErrNoCounterpart))

	// Extra members inside the payload belong to the native format.
	require.NoError(t, ev.UnmarshalJSON([]byte(`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00Z","type":"run.failed","runId":"r","payload":{"error":{"message":"x","of":"y"}}}`)))
	l = Losses{}
	l.DropExtras(&ev, KAHN)
	require.Len(t, l.List(), 1)
	require.Equal(t, "/payload", l.List()[0].Pointer)
}

func TestNativeEncoder(t *testing.T) {
	var e Encoder = NativeEncoder{}
	ev := agentevents.Event{ID: "1", RunID: "r", Payload: &agentevents.RunPaused{}}
	want, err := ev.AppendJSON([]byte("x"))
	require.NoError(t, err)
	out, err := e.Append([]byte("x"), ev)
	require.NoError(t, err)
	require.Equal(t, string(want)+"\n", string(out))
	ev.Payload = nil
	out, err = e.Append([]byte("x"), ev)
	require.Error(t, err)
	require.Equal(t, "x", string(out))
	out, err = e.End(out)
	require.NoError(t, err)
	require.Equal(t, "x", string(out))
	require.Empty(t, e.Losses())
}

func TestUnknownKind(t *testing.T) {
	for typ, want := range map[string]agentevents.Kind{
		"custom": "custom", "": "kaos:", "agent.started": "kaos:agent.started", "kaos:x": "kaos:kaos:x", "kahn:x": "kahn:x",
	} {
		require.Equal(t, want, UnknownKind(KAOS, typ), "%q", typ)
	}
}
