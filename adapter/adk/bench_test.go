package adk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/adk"
)

// A run has two model calls and a tool call, and a session of its own.
func BenchmarkRun(b *testing.B) {
	discard, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{sink(func() error { return nil })}})
	require.NoError(b, err)
	for name, how := range map[string]struct {
		plugged bool
		rec     *adk.Recorder
	}{
		"alone":     {false, nil},
		"off":       {true, &adk.Recorder{}},
		"recording": {true, &adk.Recorder{Emitter: discard}},
	} {
		b.Run(name, func(b *testing.B) {
			root := llm(b, llmagent.Config{Name: "guide", Tools: []tool.Tool{forecast(b)}, Model: once{
				answer(call("", "weather", map[string]any{"city": "Oslo"})), answer(text("It is 4 degrees.")),
			}})
			var plugins []*plugin.Plugin
			if how.plugged {
				plugins = append(plugins, how.rec.Plugin())
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := runner.New(runner.Config{
					AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
					PluginConfig: runner.PluginConfig{Plugins: plugins},
				})
				require.NoError(b, err)
				events := r.Run(context.Background(), "u", "s", user("Is it cold?"), agent.RunConfig{})
				if how.plugged {
					events = how.rec.Run(context.Background(), r, "u", "s", user("Is it cold?"), agent.RunConfig{})
				}
				for _, err := range events {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
