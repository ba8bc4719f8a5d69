package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"iter"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/hooks"
)

var update = flag.Bool("update", false, "write testdata/log.txt")

// samples yields an event of every kind with every field set.
func samples(t testing.TB) iter.Seq2[ae.Event, error] {
	f, err := os.Open("../testdata/kinds.jsonl")
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return ae.NewReader(f, ae.ReaderOptions{}).All()
}

// textTo returns a logger for people. With facts its only part of the identity is the sequence.
func textTo(w io.Writer, level slog.Level, facts bool) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if facts && (len(groups) > 0 && a.Key != "sequence" || a.Key == slog.TimeKey) {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestEveryKindIsLoggedWithItsFacts(t *testing.T) {
	var out bytes.Buffer
	log := hooks.Slog{To: textTo(&out, slog.LevelDebug, true)}
	seen := map[ae.Kind]bool{}
	for ev, err := range samples(t) {
		require.NoError(t, err)
		require.NoError(t, log.WriteEvent(t.Context(), ev))
		seen[ev.Kind()] = true
	}
	for info := range ae.Kinds() {
		require.True(t, seen[info.Kind], info.Kind)
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/log.txt", out.Bytes(), 0o644))
	}
	want, err := os.ReadFile("testdata/log.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "-update writes testdata/log.txt")
}

func TestContentIsNotLogged(t *testing.T) {
	write := func(events iter.Seq2[ae.Event, error]) string {
		var out bytes.Buffer
		log := hooks.Slog{To: textTo(&out, slog.LevelDebug, false)}
		for ev, err := range events {
			require.NoError(t, err)
			ev.Marks = 0
			require.NoError(t, log.WriteEvent(t.Context(), ev))
		}
		return out.String()
	}
	masked := (&ae.Policy{Content: ae.ActionMask}).Redact(samples(t))
	require.Equal(t, write(samples(t)), write(masked), "no attribute depends on content")

	var out bytes.Buffer
	log := hooks.Slog{To: slog.New(slog.NewJSONHandler(&out, nil)), Content: true}
	require.NoError(t, log.WriteEvent(t.Context(), ae.Event{Payload: &ae.TextCompleted{Text: "asked for"}}))
	var record struct{ Payload ae.TextCompleted }
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	require.Equal(t, "asked for", record.Payload.Text)
	out.Reset()
	require.NoError(t, log.WriteEvent(t.Context(), ae.Event{Payload: &ae.Unknown{Type: "acme.own", Raw: `{"n":12345678901234567890}`}}))
	require.Contains(t, out.String(), `"msg":"acme.own"`)
	require.Contains(t, out.String(), `12345678901234567890`)
}

func TestLevels(t *testing.T) {
	oops, stopped := ae.Some(ae.ErrorInfo{Code: "oops"}), ae.Some(ae.ErrorInfo{Code: "cancelled"})
	for _, tt := range []struct {
		want slog.Level
		p    ae.Payload
		m    ae.Marks
	}{
		{slog.LevelDebug, &ae.TextDelta{}, 0},
		{slog.LevelDebug, &ae.AgentReasoningDelta{}, 0},
		{slog.LevelDebug, &ae.ToolArgumentsDelta{}, 0},
		{slog.LevelDebug, &ae.RunFailed{}, ae.MarkReplayed},
		{slog.LevelInfo, &ae.RunCompleted{}, 0},
		{slog.LevelInfo, &ae.Unknown{Type: "acme.own"}, 0},
		{slog.LevelInfo, &ae.ToolReturned{Status: ae.ToolStatusOK}, 0},
		{slog.LevelInfo, &ae.ModelReturned{}, 0},
		{slog.LevelInfo, &ae.AuditChecked{Result: ae.AuditPass}, 0},
		{slog.LevelWarn, &ae.AuditChecked{Result: ae.AuditWarn}, 0},
		{slog.LevelWarn, &ae.RunCompleted{}, ae.MarkIllegal},
		{slog.LevelWarn, &ae.ToolReturned{Status: ae.ToolStatusForbidden}, 0},
		{slog.LevelWarn, &ae.ModelReturned{Error: stopped}, 0},
		{slog.LevelWarn, &ae.AgentEnded{Outcome: ae.OutcomeAborted, Error: stopped}, 0},
		{slog.LevelWarn, &ae.TurnEnded{Error: stopped}, 0},
		{slog.LevelWarn, &ae.StepEnded{Error: stopped}, 0},
		{slog.LevelWarn, &ae.SpanRecorded{Phase: "cancelled", ErrorType: "stopped"}, 0},
		{slog.LevelWarn, &ae.AgentErrored{Severity: ae.SeverityWarning}, 0},
		{slog.LevelWarn, &ae.AgentEnded{Outcome: ae.OutcomeAborted}, 0},
		{slog.LevelWarn, &ae.RunCancelled{}, 0},
		{slog.LevelWarn, &ae.BudgetExceeded{}, 0},
		{slog.LevelWarn, &ae.CapBreached{}, 0},
		{slog.LevelWarn, &ae.ApprovalRejected{}, 0},
		{slog.LevelWarn, &ae.EvidenceInsufficient{}, 0},
		{slog.LevelWarn, &ae.IssueFound{}, 0},
		{slog.LevelError, &ae.AgentErrored{}, 0},
		{slog.LevelError, &ae.AgentEnded{Error: oops}, 0},
		{slog.LevelError, &ae.ToolReturned{Status: ae.ToolStatusError}, 0},
		{slog.LevelError, &ae.ModelReturned{Error: oops}, 0},
		{slog.LevelError, &ae.TurnEnded{Error: oops}, 0},
		{slog.LevelError, &ae.StepEnded{Error: oops}, 0},
		{slog.LevelError, &ae.SpanRecorded{ErrorType: "oops"}, 0},
		{slog.LevelError, &ae.SpanRecorded{Phase: "error"}, 0},
		{slog.LevelError, &ae.RunFailed{}, 0},
		{slog.LevelError, &ae.NodeFailed{}, 0},
	} {
		ev := ae.Event{Payload: tt.p, Marks: tt.m}
		require.Equal(t, tt.want, hooks.LevelOf(ev), "%s %s", ev.Kind(), ev.Marks)
	}
	for info := range ae.Kinds() {
		level := hooks.LevelOf(ae.Event{Payload: ae.NewPayload(info.Kind)})
		require.Equal(t, info.Droppable, level == slog.LevelDebug, info.Kind)
	}
}

// A handler that fails.
type broken struct {
	slog.Handler
	err error
}

func (b broken) Handle(context.Context, slog.Record) error { return b.err }

func TestLoggerErrors(t *testing.T) {
	oops := errors.New("the disk is full")
	for name, tt := range map[string]struct {
		log  hooks.Slog
		want string
	}{
		"no logger":    {hooks.Slog{}, "hooks: Slog.To is nil"},
		"handler":      {hooks.Slog{To: slog.New(broken{slog.NewTextHandler(io.Discard, nil), oops})}, "the disk is full"},
		"level panics": {hooks.Slog{To: slog.New(slog.DiscardHandler), Level: func(ae.Event) slog.Level { panic("level") }}, "level"},
		"none":         {hooks.Slog{To: slog.New(slog.NewTextHandler(io.Discard, nil)), Content: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{tt.log, ae.SinkFunc(func(context.Context, ae.Event) error { got++; return nil })}})
			require.NoError(t, err)
			run, err := em.Run("r")
			require.NoError(t, err)
			err = run.Emit(t.Context(), &ae.RunStarted{})
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
				require.ErrorAs(t, err, new(*ae.SinkError))
			}
			require.Equal(t, 1, got, "the other sinks get the event")
		})
	}
}

func TestTheHostsLevelDecides(t *testing.T) {
	var out strings.Builder
	log := hooks.Slog{To: textTo(&out, slog.LevelInfo, false), Level: func(ev ae.Event) slog.Level {
		if ev.Kind() == ae.KindTextDelta {
			return slog.LevelError
		}
		return slog.LevelDebug
	}}
	at := time.Date(2026, 5, 5, 9, 0, 1, 0, time.UTC)
	require.NoError(t, log.WriteEvent(t.Context(), ae.Event{Payload: &ae.RunFailed{}}))
	require.NoError(t, log.WriteEvent(t.Context(), ae.Event{
		ID: "e1", RunID: "r1", Sequence: 3, Time: at, AgentID: "a", Marks: ae.MarkSynthetic, TraceID: "t1", SpanID: "s1", Payload: &ae.TextDelta{Delta: "x"},
	}))
	require.Equal(t, "time=2026-05-05T09:00:01.000Z level=ERROR msg=agent.text.delta event.kind=agent.text.delta event.run=r1 event.sequence=3 event.id=e1 event.time=2026-05-05T09:00:01Z "+
		"event.agent=a event.marks=synthetic trace_id=t1 span_id=s1\n", out.String())
}

func TestADisabledLevelCostsNothing(t *testing.T) {
	log := hooks.Slog{To: slog.New(slog.NewTextHandler(io.Discard, nil))}
	var sink ae.Sink = log
	ev, ctx := ae.Event{RunID: "r", Payload: &ae.TextDelta{Delta: "x"}}, t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = sink.WriteEvent(ctx, ev) }))
}

func BenchmarkLogger(b *testing.B) {
	for name, tt := range map[string]ae.Payload{
		"disabled": &ae.TextDelta{Delta: "x"},
		"enabled":  &ae.ToolReturned{CallID: "c", ToolID: "Read", Status: ae.ToolStatusOK, Duration: ae.Some(time.Second)},
	} {
		b.Run(name, func(b *testing.B) {
			var sink ae.Sink = hooks.Slog{To: slog.New(slog.NewTextHandler(io.Discard, nil))}
			ev := ae.Event{ID: "e1", RunID: "r", Sequence: 7, AgentID: "a", Time: time.Now(), Payload: tt}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := sink.WriteEvent(ctx, ev); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
