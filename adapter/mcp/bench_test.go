package mcp_test

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentevents/agentevents"
	aemcp "github.com/agentevents/agentevents/adapter/mcp"
)

// A call between a client and a server in one process, of which the client is recorded or not,
// and the middleware alone.
func BenchmarkCall(b *testing.B) {
	for _, with := range []string{"without", "off", "on"} {
		b.Run(with, func(b *testing.B) {
			c := mcp.NewClient(info, nil)
			if with != "without" {
				c.AddSendingMiddleware(new(aemcp.Recorder).Record)
			}
			here, there := mcp.NewInMemoryTransports()
			if _, err := newServer(nil).Connect(b.Context(), there, nil); err != nil {
				b.Fatal(err)
			}
			cs, err := c.Connect(b.Context(), here, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer cs.Close()
			ctx := benchContext(b, with)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call(ctx, cs, "weather", "Rome"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMiddleware(b *testing.B) {
	res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sunny in Rome"}}}
	next := func(context.Context, string, mcp.Request) (mcp.Result, error) { return res, nil }
	req := &mcp.ClientRequest[mcp.Params]{Params: &mcp.CallToolParams{Name: "weather", Arguments: place{"Rome"}}}
	for _, with := range []string{"without", "off", "on"} {
		b.Run(with, func(b *testing.B) {
			h, ctx := next, benchContext(b, with)
			if with != "without" {
				h = new(aemcp.Recorder).Record(next)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h(ctx, "tools/call", req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchContext(b *testing.B, with string) context.Context {
	if with != "on" {
		return b.Context()
	}
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived, Sinks: []agentevents.Sink{sink(func() error { return nil })},
	})
	if err != nil {
		b.Fatal(err)
	}
	run, err := em.Run("")
	if err != nil {
		b.Fatal(err)
	}
	agent := run.Agent("planner")
	if err := agent.Emit(b.Context(), &agentevents.AgentStarted{}); err != nil {
		b.Fatal(err)
	}
	return agentevents.ContextWithAgent(b.Context(), agent)
}
