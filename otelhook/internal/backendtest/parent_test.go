package backendtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/otelhook"
	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
	"github.com/agentevents/agentevents/otlpjson"
)

// The flags that OTLP has for a span: it is sampled, the process of its parent is known, and the
// parent belongs to another process.
const (
	flagsLocal  = 0x101
	flagsRemote = 0x301
)

// TestRemoteParent: a run that a host has requested with a traceparent is below the host's span,
// and marks it as remote, while the run goes on and when the log is exported.
func TestRemoteParent(t *testing.T) {
	const hostTrace, hostSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	const host = "TRACEPARENT=00-" + hostTrace + "-" + hostSpan
	t.Run("joined", func(t *testing.T) {
		live, exported, jaeger := backendtest.StartCollector(t), backendtest.StartCollector(t), backendtest.StartJaeger(t)
		r := newRig(t, setup{traces: []string{live.Endpoint, jaeger.Endpoint}})
		release(t, r, otelhook.ContextFromEnviron(t.Context(), []string{host + "-01"}), "run-1")
		r.export(t)
		n := int(r.hook.Stats().Spans)
		require.Equal(t, n, replay(t, exported.Endpoint, otlpjson.Options{Service: service}, r.events(t)).Spans)
		for _, c := range []*backendtest.Collector{live, exported} {
			spans, below := c.Data(t).Spans, 0
			require.Len(t, spans, n)
			for _, s := range spans {
				require.Equal(t, hostTrace, s.TraceID)
				want := uint32(flagsLocal)
				if s.ParentSpanID == hostSpan {
					below++
					want = flagsRemote
					require.Equal(t, "invoke_workflow release", s.Name)
				}
				require.Equalf(t, want, s.Flags, "%s has the flags %#x", s.Name, s.Flags)
			}
			require.Equal(t, 1, below)
		}
		jaeger.Trace(t, hostTrace, n).Check(t, hostSpan)
	})
	t.Run("a root of its own", func(t *testing.T) {
		c := backendtest.StartCollector(t)
		r := newRig(t, setup{traces: []string{c.Endpoint}, hook: otelhook.Options{NewRoot: true}})
		release(t, r, otelhook.ContextFromEnviron(t.Context(), []string{host + "-00"}), "run-1")
		r.export(t)
		roots := 0
		for _, s := range c.Data(t).Spans {
			require.NotEqual(t, hostTrace, s.TraceID)
			require.Equal(t, uint32(flagsLocal), s.Flags)
			if s.ParentSpanID == "" {
				roots++
				require.Equal(t, []backendtest.Link{{TraceID: hostTrace, SpanID: hostSpan, Attributes: map[string]any{"agentevents.link.type": "host"}}}, s.Links)
			}
		}
		require.Equal(t, 1, roots)
	})
	t.Run("not sampled", func(t *testing.T) {
		c := backendtest.StartCollector(t)
		r := newRig(t, setup{traces: []string{c.Endpoint}, logs: c.Endpoint})
		release(t, r, otelhook.ContextFromEnviron(t.Context(), []string{host + "-00"}), "run-1")
		r.export(t)
		d := c.Data(t)
		require.Empty(t, d.Spans)
		require.NotEmpty(t, d.Logs, "a sampler is for traces")
		require.Equal(t, hostTrace, d.Logs[0].TraceID)
	})
}
