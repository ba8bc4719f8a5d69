package agentevents

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/scale"
)

// eventsOf reads a log that is sound.
func eventsOf(t testing.TB, log []byte) []Event {
	t.Helper()
	events := make([]Event, 0, bytes.Count(log, []byte("\n")))
	for ev, err := range NewReader(bytes.NewReader(log), ReaderOptions{}).All() {
		if err != nil {
			require.NoError(t, err)
		}
		events = append(events, ev)
	}
	return events
}

// TestShapes holds the shapes to what their names promise.
func TestShapes(t *testing.T) {
	for _, shape := range scale.Shapes() {
		l, err := FoldLog(NewReader(bytes.NewReader(shape.Log(10)), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err, shape.Name)
		violations, unknown := 0, 0
		for s := range l.Drain() {
			violations += s.ViolationCount
			unknown += len(s.Unknown)
		}
		require.True(t, shape.Refused || violations == 0, "%s: %d violations", shape.Name, violations)
		require.Equal(t, shape.Name == "unknown kinds", unknown > 0, shape.Name)
	}
}

// things is the number of things that a test compares with eight times as many.
const things = 1000

// linear runs a test that compares times, for every shape that an emitter may make
// or for all.
func linear(t *testing.T, refused bool, prepare func(log []byte) (work func())) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	for _, shape := range scale.Shapes() {
		if shape.Refused && !refused {
			continue
		}
		t.Run(shape.Name, func(t *testing.T) {
			scale.Linear(t, things, func(n int) func() { return prepare(shape.Log(n)) })
		})
	}
}

func TestFoldIsLinear(t *testing.T) {
	linear(t, true, func(log []byte) func() {
		events := eventsOf(t, log)
		return func() {
			l, err := FoldLog(NewReader(bytes.NewReader(log), ReaderOptions{}), FoldOptions{})
			require.NoError(t, err)
			for range l.Drain() {
			}
			l = NewFoldSet(FoldOptions{})
			for i := range events {
				l.Apply(events[i])
			}
			l.Snapshot(events[0].RunID)
		}
	})
}

func TestEmitterIsLinear(t *testing.T) {
	linear(t, false, func(log []byte) func() {
		events := eventsOf(t, log)
		return func() {
			em, err := NewEmitter(EmitterOptions{Sinks: []Sink{NewWriter(io.Discard, WriterOptions{})}})
			require.NoError(t, err)
			runs := map[string]*Run{}
			for i := range events {
				run := runs[events[i].RunID]
				if run == nil {
					run, err = em.Run(events[i].RunID)
					require.NoError(t, err)
					runs[events[i].RunID] = run
				}
				if _, err := run.Record(t.Context(), events[i]); err != nil {
					require.NoError(t, err)
				}
			}
			require.NoError(t, em.Close(t.Context()))
		}
	})
}

// TestRedactionIsLinear redacts one event that has many of something.
func TestRedactionIsLinear(t *testing.T) {
	const secret = "correct horse"
	join := func(n int, item string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(item, "$", strconv.Itoa(i)))
		}
		return b.String()
	}
	for _, test := range []struct {
		name    string
		payload func(n int) Payload
	}{
		{"member names with a secret", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON("{" + join(n, `"`+secret+` $":1`) + "}")}
		}},
		{"the same behind another level", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON(`{"a":[{` + join(n, `"`+secret+` $":1`) + "}]}")}
		}},
		{"member names of credentials", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON("{" + join(n, `"$_password":"x"`) + "}")}
		}},
		{"member values with a secret", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON("{" + join(n, `"$":"`+secret+`"`) + "}")}
		}},
		{"elements with a secret", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON("[" + join(n, `"`+secret+`"`) + "]")}
		}},
		{"secrets in a text", func(n int) Payload { return &TextCompleted{Text: join(n, secret)} }},
		{"almost secrets in a text", func(n int) Payload { return &TextCompleted{Text: join(n, secret[:len(secret)-1])} }},
		{"escaped secrets in a text", func(n int) Payload {
			return &ToolCalled{CallID: "c", ToolID: "t", Arguments: JSON(`"` + join(n, `\u0063`+secret[1:]) + `"`)}
		}},
		{"models with a secret", func(n int) Payload {
			models := map[string]Usage{}
			for i := range n {
				models[secret+strconv.Itoa(i)] = Usage{}
			}
			return &AgentEnded{ModelUsage: models}
		}},
		{"extra members", func(n int) Payload {
			p := parsedPayload(t, KindTextCompleted, `{"text":"x",`+join(n, `"x$":"`+secret+`"`)+`}`)
			return p
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("it compares times")
			}
			scale.Linear(t, things, func(n int) func() {
				payload := test.payload(n)
				return func() {
					var secrets Secrets
					require.NoError(t, secrets.Add(secret))
					em, err := NewEmitter(EmitterOptions{Redaction: &Policy{Secrets: &secrets}, Sinks: []Sink{NewWriter(io.Discard, WriterOptions{})}})
					require.NoError(t, err)
					run, err := em.Run("r")
					require.NoError(t, err)
					recordOf(t, run.Agent("a"), payload)
				}
			})
		})
	}
}

// TestEndedRunsTakeLittleMemory folds runs that end with their only event.
func TestEndedRunsTakeLittleMemory(t *testing.T) {
	const runs = 20_000
	i := slices.IndexFunc(scale.Shapes(), func(s scale.Shape) bool { return s.Name == "ended runs" })
	log := scale.Shapes()[i].Log(runs)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := FoldLog(NewReader(bytes.NewReader(log), ReaderOptions{}), FoldOptions{})
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Len(t, l.order, runs)
	perRun := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / runs
	require.Less(t, perRun, int64(1000), "bytes")
	runtime.KeepAlive(log) // so that its own memory is on both sides
}
