package adk_test

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/adk"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/tree"
)

// A guide asks a researcher, an agent that is a tool and has a tool itself. Recorded are an
// emitter, a plugin, a loop, and a line for the agent that is a tool. The model is a script:
// nothing goes over the network.
func Example() {
	ctx, em, show := program()
	rec := &adk.Recorder{Emitter: em}
	researcher, err := llmagent.New(rec.Config(llmagent.Config{Name: "researcher", Description: "finds things out", Model: researcherModel, Tools: []tool.Tool{weatherTool}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	guide, err := llmagent.New(llmagent.Config{Name: "guide", Model: guideModel, Tools: []tool.Tool{agenttool.New(researcher, nil)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{
		AppName: "travel", Agent: guide, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{rec.Plugin()}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	question := genai.NewContentFromText("Do I need a coat in Oslo?", genai.RoleUser)
	for event, err := range rec.Run(ctx, r, "ann", "s1", question, agent.RunConfig{}) {
		if err != nil {
			fmt.Println(err)
		} else if event.IsFinalResponse() {
			fmt.Println(event.Content.Parts[0].Text)
		}
	}
	show()
	// Output:
	// Yes, it is cold.
	// session s1 · run e-u1 (travel) ✓ completed · 29s
	// └─ guide ✓ converged · 26s · 2 steps · 1 tool call · 2 model calls: Do I need a coat in Oslo?
	//    └─ tool.researcher ✓ 16s
	//       └─ researcher ✓ converged · 12s · 2 steps · 1 tool call · 2 model calls: Weather in Oslo
	//          └─ tool.weather ✓ 2s
	// 2 agents · 2 tool calls · 40 tokens in, 24 out, 8 cached
}

// program returns an emitter, and a function that draws the recorded run. Ids and times repeat.
func program() (ctx context.Context, em *ae.Emitter, show func()) {
	log := new(eventtest.Recorder)
	options := log.Options()
	options.Lifecycle = ae.LifecycleDerived
	em, err := ae.NewEmitter(options)
	if err != nil {
		fmt.Println(err)
	}
	return repeatable(context.Background()), em, func() {
		if err := tree.Write(os.Stdout, log.Snapshot(log.Events()[0].RunID), tree.Options{}); err != nil {
			fmt.Println(err)
		}
	}
}

var (
	guideModel      model.LLM = says(answer(call("c1", "researcher", map[string]any{"request": "Weather in Oslo"})), answer(text("Yes, it is cold.")))
	researcherModel model.LLM = says(answer(call("c2", "weather", map[string]any{"city": "Oslo"})), answer(text("4 degrees")))
	weatherTool, _            = functiontool.New(functiontool.Config{Name: "weather", Description: "tells the weather"}, func(agent.Context, city) (weather, error) { return weather{4}, nil })
)
