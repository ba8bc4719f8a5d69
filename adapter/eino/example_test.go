package eino_test

import (
	"context"
	"fmt"
	"os"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/eino"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/tree"
)

func ExampleRecorder() {
	ctx := context.Background()
	rec := new(eventtest.Recorder) // a log takes its place: see agentevents.OpenFile
	options := rec.Options()
	options.Lifecycle = ae.LifecycleDerived
	em, err := ae.NewEmitter(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: traveller(ctx), EnableStreaming: true})

	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	recorder := &eino.Recorder{Run: run}
	events := runner.Query(ctx, "How is the weather in Oslo?", adk.WithCallbacks(recorder))
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			fmt.Println(event.Err)
		}
	}
	if err := recorder.End(ctx); err != nil {
		fmt.Println(err)
	}

	if err := tree.Write(os.Stdout, rec.Snapshot("r1"), tree.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// run r1 ✓ completed · 19s
	// └─ traveller ✓ converged · 17s · 2 steps · 1 tool call · 2 model calls: How is the weather in Oslo?
	//    └─ tool.weather ✓ 2s
	// 1 agent · 1 tool call · 120 tokens in, 20 out, 80 cached
}

// traveller returns an agent with a scripted model in place of one that costs money.
func traveller(ctx context.Context) adk.Agent {
	weather, err := utils.InferTool("weather", "tells the weather", func(_ context.Context, in query) (string, error) {
		return "It rains in " + in.Text + ".", nil
	})
	if err != nil {
		panic(err)
	}
	config := &adk.ChatModelAgentConfig{Name: "traveller", Description: "knows the world", Model: models(
		calls(1, "weather", `{"text":"Oslo"}`),
		says("Take an umbrella."),
	)}
	config.ToolsConfig.Tools = []tool.BaseTool{weather}
	agent, err := adk.NewChatModelAgent(ctx, config)
	if err != nil {
		panic(err)
	}
	return agent
}
