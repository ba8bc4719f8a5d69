package genkit_test

import (
	"context"
	"fmt"
	"os"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	ae "github.com/agentevents/agentevents"
	aegenkit "github.com/agentevents/agentevents/adapter/genkit"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/tree"
)

func ExampleRecorder() {
	ctx := context.Background()
	rec := new(eventtest.Recorder) // a log takes its place: see agentevents.OpenFile
	em, err := ae.NewEmitter(rec.Options())
	if err != nil {
		fmt.Println(err)
		return
	}
	g := genkit.Init(ctx)
	model := models(g, "gemini-x", calls(1, "weather", "Oslo"), says("Take an umbrella.")) // in place of one that costs money
	weather := genkit.DefineTool(g, "weather", "tells the weather", func(_ *ai.ToolContext, in query) (string, error) {
		return "It rains in " + in.Text + ".", nil
	})

	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	recorder := &aegenkit.Recorder{Run: run, Agent: "traveller"}
	_, err = genkit.Generate(ctx, g, model, ai.WithPrompt("How is the weather in Oslo?"), ai.WithTools(weather), ai.WithUse(recorder))
	if err != nil {
		fmt.Println(err)
	}
	if err := recorder.End(ctx); err != nil {
		fmt.Println(err)
	}

	if err := tree.Write(os.Stdout, rec.Snapshot("r1"), tree.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// run r1 ✓ completed · 15s
	// └─ traveller ✓ converged · 13s · 2 steps · 1 tool call · 2 model calls: How is the weather in Oslo?
	//    └─ tool.weather ✓ 2s
	// 1 agent · 1 tool call · 120 tokens in, 20 out, 80 cached
}
