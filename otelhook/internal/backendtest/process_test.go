package backendtest_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// follows lists the targets of the trace's links: spans that Jaeger has.
func follows(t *testing.T, jaeger *backendtest.Jaeger, tr *backendtest.Trace) (list []string) {
	t.Helper()
	for _, s := range tr.Spans {
		for _, l := range s.Links() {
			to := jaeger.Trace(t, l.TraceID, 1).Spans
			i := slices.IndexFunc(to, func(s backendtest.JaegerSpan) bool { return s.SpanID == l.SpanID })
			require.GreaterOrEqual(t, i, 0, "Jaeger has no span %s, which %s links to", l.SpanID, s.Name)
			list = append(list, s.Name+" follows "+to[i].Name)
		}
	}
	return list
}

// TestLongApproval: an agent waits three hours for a person, and hands over then.
func TestLongApproval(t *testing.T) {
	jaeger := backendtest.StartJaeger(t)
	r := newRig(t, setup{traces: []string{jaeger.Endpoint}})
	run := r.run(t, "run-1")
	a, b := ae.AgentRef{AgentID: "a"}, ae.AgentRef{AgentID: "b"}
	r.emit(t, run, &ae.RunStarted{Name: "n"})
	r.emit(t, run.Agent("a"), &ae.AgentStarted{}, &ae.ToolCalled{CallID: "c", ToolID: "Push"})
	open := r.hook.Stats().Open
	r.emit(t, run.Agent("a"), &ae.ApprovalRequested{ApprovalID: "p", CallID: "c"})
	require.Equal(t, open, r.hook.Stats().Open, "no span is open for the approval")
	r.pass(3*time.Hour - 100*time.Millisecond)
	r.emit(t, run.Agent("a"), &ae.ApprovalGranted{ApprovalID: "p"}, &ae.ToolReturned{CallID: "c", ToolID: "Push", Status: ae.ToolStatusOK},
		&ae.HandoffRequested{HandoffID: "h", From: a, To: b}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	r.emit(t, run.Agent("b"), &ae.AgentStarted{}, &ae.HandoffAccepted{HandoffID: "h", From: a, To: b}, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	r.emit(t, run, &ae.RunCompleted{})
	r.export(t)
	tr := jaeger.Trace(t, traceOf(t, r.events(t)), int(r.hook.Stats().Spans))
	tr.Check(t, "")
	require.Equal(t, []string{"invoke_agent b follows invoke_agent a"}, follows(t, jaeger, tr))
	require.Equal(t, `
invoke_workflow n  3h0m1s
├─ invoke_agent a  3h0m0.5s
│  └─ execute_tool Push  3h0m0.2s
│     └─ agentevents.approval  3h0m0s
├─ agentevents.handoff  300ms
└─ invoke_agent b  200ms
`, "\n"+tr.Tree())
}

// TestLongWait: a run waits three hours for a person, who answers to another process than it
// began in.
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
	first, asked := list[0], list[slices.IndexFunc(list, func(ev ae.Event) bool { return ev.Kind() == ae.KindApprovalRequested })]
	r := newRig(t, setup{traces: []string{jaeger.Endpoint}, resource: address, hook: otelhook.Options{Previous: func(string) trace.SpanContext {
		traceID, err := trace.TraceIDFromHex(first.TraceID)
		require.NoError(t, err)
		spanID, err := trace.SpanIDFromHex(first.SpanID)
		require.NoError(t, err)
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID})
	}}})
	r.now = asked.Time.Add(3*time.Hour - 100*time.Millisecond)
	run, err := r.em.Resume(fold.Snapshot())
	require.NoError(t, err)
	r.emit(t, run, &ae.RunResumed{})
	r.emit(t, run.Agent("a"), &ae.ApprovalGranted{ApprovalID: "p"})
	r.emit(t, run, &ae.RunCompleted{})
	require.NoError(t, run.Close())
	r.export(t)

	before := jaeger.Trace(t, first.TraceID, 2)
	before.Check(t, "")
	rest := r.events(t)
	require.NotEqual(t, first.TraceID, traceOf(t, rest))
	after := jaeger.Trace(t, traceOf(t, rest), 3)
	after.Check(t, "")
	require.Equal(t, []string{"invoke_workflow n follows invoke_workflow n"}, follows(t, jaeger, after))
	require.Equal(t, "\ninvoke_workflow n  200ms\n├─ invoke_agent a  3h0m0.1s\n└─ agentevents.approval  3h0m0s\n", "\n"+after.Tree())
	for _, s := range after.Spans {
		require.Equal(t, before.Spans[0].Tags["agentevents.run.id"], s.Tags["agentevents.run.id"])
	}
	require.Equal(t, "paused", before.Spans[0].Tags["agentevents.run.outcome"])
	require.Empty(t, before.Spans[0].Error())

	exported := backendtest.StartJaeger(t)
	replay(t, exported.Endpoint, otlpjson.Options{Service: service, Resource: address}, slices.Concat(list, rest))
	again := exported.Trace(t, after.ID, len(after.Spans))
	again.Check(t, "")
	require.Equal(t, before.Tree(), exported.Trace(t, before.ID, len(before.Spans)).Tree())
	require.Equal(t, after.Tree(), again.Tree())
	require.Equal(t, []string{"agentevents.approval follows invoke_agent a", "invoke_workflow n follows invoke_workflow n"}, follows(t, exported, again))
}
