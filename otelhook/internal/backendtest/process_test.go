package backendtest_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
	"github.com/agentevents/agentevents/otlpjson"
)

// roleVariable has the name of the test whose other process this is.
const roleVariable = "BACKENDTEST_ROLE"

// other returns a Jaeger and a process, to be started, that does the work with a rig that
// exports there and whose log is a file. In that process it does the work and returns nil.
func other(t *testing.T, work func(r *rig)) (jaeger *backendtest.Jaeger, cmd *exec.Cmd, log string) {
	t.Helper()
	if os.Getenv(roleVariable) == t.Name() {
		file, err := os.OpenFile(os.Getenv("BACKENDTEST_LOG"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		work(newRig(t, setup{traces: []string{os.Getenv("BACKENDTEST_ENDPOINT")}, log: file}))
		return nil, nil, ""
	}
	jaeger, log = backendtest.StartJaeger(t), filepath.Join(t.TempDir(), "run.jsonl")
	cmd = exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), roleVariable+"="+t.Name(), "BACKENDTEST_LOG="+log, "BACKENDTEST_ENDPOINT="+jaeger.Endpoint)
	return jaeger, cmd, log
}

// TestKilled: a process dies in the middle of a run. Its log has all spans, and they end with
// the last event.
func TestKilled(t *testing.T) {
	jaeger, cmd, log := other(t, func(r *rig) {
		run := r.run(t, "run-1")
		r.emit(t, run, &ae.RunStarted{Name: "n"})
		r.emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ModelCalled{ModelCallID: "m", Model: "x"}, &ae.ModelReturned{ModelCallID: "m"},
			&ae.ToolCalled{CallID: "c", ToolID: "Bash"})
		_, _ = io.WriteString(os.Stdout, "\nworking\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or nobody is there to do so
	})
	if cmd == nil {
		return
	}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "working"; {
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	f, err := os.Open(log)
	require.NoError(t, err)
	defer f.Close()
	list := events(t, f)
	require.Len(t, list, 6, "with a transition of the agent's")
	counts := replay(t, jaeger.Endpoint, otlpjson.Options{Service: service}, list)
	require.Equal(t, map[string]int{spans.ReasonShutdown: 3}, counts.Closed)
	tr := jaeger.Trace(t, traceOf(t, list), 4)
	tr.Check(t, "")
	last := list[len(list)-1].Time
	for _, s := range tr.Spans {
		if s.Name == "chat x" {
			continue
		}
		require.Equal(t, "agentevents.incomplete", s.Error(), s.Name)
		require.Equal(t, spans.ReasonShutdown, s.Tags["agentevents.closed.reason"])
		require.WithinDuration(t, last, s.Start.Add(s.Duration), time.Microsecond, s.Name)
	}
}

// TestLongWait: a run waits three hours for a person, in another process than it began in.
func TestLongWait(t *testing.T) {
	jaeger, cmd, log := other(t, func(r *rig) {
		run := r.run(t, "run-1")
		r.emit(t, run, &ae.RunStarted{Name: "n"})
		r.emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ApprovalRequested{ApprovalID: "p"})
		r.emit(t, run, &ae.RunPaused{})
		require.NoError(t, run.Close())
		require.Zero(t, r.hook.Stats().Open, "nothing is open while a person thinks")
		r.export(t)
	})
	if cmd == nil {
		return
	}
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))

	f, err := os.Open(log)
	require.NoError(t, err)
	defer f.Close()
	list := events(t, f)
	fold := ae.NewFold(ae.FoldOptions{Lifecycle: ae.LifecycleDerived})
	for _, ev := range list {
		fold.Apply(ev)
	}
	first, last := list[0], list[len(list)-1]
	r := newRig(t, setup{traces: []string{jaeger.Endpoint}, hook: otelhook.Options{Previous: func(string) trace.SpanContext {
		traceID, err := trace.TraceIDFromHex(first.TraceID)
		require.NoError(t, err)
		spanID, err := trace.SpanIDFromHex(first.SpanID)
		require.NoError(t, err)
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID})
	}}})
	r.now = last.Time.Add(3 * time.Hour)
	run, err := r.em.Resume(fold.Snapshot())
	require.NoError(t, err)
	r.emit(t, run, &ae.RunResumed{}, &ae.RunCompleted{})
	require.NoError(t, run.Close())
	r.export(t)

	before := jaeger.Trace(t, first.TraceID, 2)
	before.Check(t, "")
	rest := r.events(t)
	require.NotEqual(t, first.TraceID, traceOf(t, rest))
	after := jaeger.Trace(t, traceOf(t, rest), 1)
	after.Check(t, "")
	require.Equal(t, before.Spans[0].Tags["agentevents.run.id"], after.Spans[0].Tags["agentevents.run.id"])
	require.Equal(t, []backendtest.Reference{{Type: "FOLLOWS_FROM", TraceID: first.TraceID, SpanID: before.Spans[0].SpanID}}, after.Spans[0].Links())
	require.Equal(t, "paused", before.Spans[0].Tags["agentevents.run.outcome"])
	require.Empty(t, before.Spans[0].Error())
}
