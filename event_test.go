package agentevents

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogValues(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}}))
	em, err := NewEmitter(EmitterOptions{Lifecycle: LifecycleStrict})
	require.NoError(t, err)
	run, err := em.Run("r1")
	require.NoError(t, err)
	var rule *RuleError
	require.True(t, errors.As(run.Agent("coder").To(t.Context(), StatusConverged), &rule))
	log.Warn("refused", "err", rule)
	log.Info("event", "ev", Event{
		ID: "e1", RunID: "r1", Sequence: 7, Time: time.UnixMilli(1_700_000_000_000), AgentID: "coder", Step: Some(2), Marks: MarkLate,
		Payload: &TextCompleted{Text: "not for the program's log"},
	})
	require.Equal(t, `msg=refused err.rule=transition-legal err.kind=agent.transition err.run=r1 err.sequence=0 err.agent=coder err.subject="agent \"coder\"" err.state=thinking err.detail="thinking → converged is not in the strict table; legal: tool_call, blocked-on-clarification, failed; lifecycles that allow it: derived" err.refused=true
msg=event ev.kind=agent.text ev.run=r1 ev.sequence=7 ev.id=e1 ev.time=2023-11-14T22:13:20Z ev.agent=coder ev.step=2 ev.marks=late
`, out.String())
}

func TestExtraMembersOfAnEvent(t *testing.T) {
	const line = `{"id":"1","x\"1":[1, 2],"sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","sessionId":"","payload":{},"z":null}`
	e := decodeLine(t, line)
	extras := func() string {
		var out []string
		for name, value := range e.Extras() {
			out = append(out, name+"="+string(value))
			require.Equal(t, value, e.Extra(name))
		}
		return strings.Join(out, " ")
	}
	require.Equal(t, `x"1=[1,2] z=null`, extras())
	require.Empty(t, e.Extra("sessionId"), "a field's")
	require.Empty(t, e.Extra("none"))

	require.NoError(t, e.SetExtra("kahn", `{ "a" : 1 }`))
	require.Equal(t, `x"1=[1,2] z=null kahn={"a":1}`, extras())
	require.NoError(t, e.SetExtra(`x"1`, `true`))
	require.NoError(t, e.SetExtra("z", ""))
	require.NoError(t, e.SetExtra("none", ""))
	require.Equal(t, `kahn={"a":1} x"1=true`, extras())
	text := encodeEvent(t, e)
	require.Equal(t, `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.paused","runId":"r","sessionId":"","payload":{},"kahn":{"a":1},"x\"1":true}`, text)
	require.Equal(t, text, encodeEvent(t, decodeLine(t, text)))

	for name := range e.Extras() {
		_ = name
		break // an iterator may be left
	}
	for _, f := range envelopeFields {
		require.Error(t, e.SetExtra(f.Name, "1"), f.Name)
	}
	require.Error(t, e.SetExtra("", "1"))
	require.Error(t, e.SetExtra("\xff", "1"))
	require.ErrorContains(t, e.SetExtra("y", `{"a":1,"a":2}`), "duplicate")
	require.Equal(t, text, encodeEvent(t, e), "nothing changed")
}

// Extra members are content: the redaction step sees them.
func TestExtraMembersAreRedacted(t *testing.T) {
	r, log := startRun(t, EmitterOptions{})
	ev := Event{Payload: &RunPaused{}}
	require.NoError(t, ev.SetExtra("kahn", `{"api_key":"k","n":1}`))
	require.NoError(t, errOf(r.Record(t.Context(), ev)))
	require.Contains(t, log.lines[0], `"kahn":{"api_key":"[REDACTED:key]","n":1}`)
}

func TestOriginIsTheLineOfOneEvent(t *testing.T) {
	const line = `{"sequence":0, "id":"1","timestamp":"2026-05-05T09:00:00Z","type":"run.paused","runId":"r","payload":{}}`
	for _, verbatim := range []bool{false, true} {
		for _, dec := range []Decoder{nil, &twice{}} {
			for ev, err := range NewReader(strings.NewReader(line+"\n"), ReaderOptions{Verbatim: verbatim, Decoder: dec}).All() {
				require.NoError(t, err)
				if verbatim && dec == nil {
					require.Equal(t, line, ev.Origin())
					ev.RunID = "other"
					require.Equal(t, line, ev.Origin())
					require.NotEqual(t, line, encodeEvent(t, ev))
				} else {
					require.Empty(t, ev.Origin())
				}
			}
		}
	}
}

// twice makes every line two events.
type twice struct{ nativeDecoder }

func (d *twice) Decode(dst []Event, line []byte) ([]Event, error) {
	dst, err := d.nativeDecoder.Decode(dst, line)
	if err == nil {
		dst, err = d.nativeDecoder.Decode(dst, line)
	}
	return dst, err
}

func TestPayloadExtra(t *testing.T) {
	for payload, want := range map[string]bool{
		`"run.paused","payload":{"reason":""}`:                                                  false,
		`"run.paused","payload":{"x":1}`:                                                        true,
		`"run.failed","payload":{"error":{"message":"x"}}`:                                      false,
		`"run.failed","payload":{"error":{"message":"x","y":1}}`:                                true,
		`"agent.ended","payload":{"modelUsage":{"m":{"inputTokens":1,"outputTokens":1,"y":1}}}`: true,
		`"clarification.requested","payload":{"interruptId":"i","questions":[{"id":"a","question":"b"},{"id":"a","question":"b","y":1}]}`: true,
		`"vendor.thing","payload":{"x":1}`: false,
	} {
		e := decodeLine(t, `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","runId":"r","type":`+payload+`}`)
		require.Equal(t, want, e.PayloadExtra(), payload)
	}
	require.False(t, new(Event).PayloadExtra())
}
