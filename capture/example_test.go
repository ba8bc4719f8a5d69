package capture_test

import (
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
)

// The sessions below a folder, and their tokens.
func ExampleOpen() {
	sessions, err := capture.Open("testdata/codex/agents-v1", capture.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range sessions {
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for line, err := range s.Lines() {
			if err != nil {
				fmt.Println(s.Files()[line.File], line.Number, err)
				continue
			}
			fold.Apply(*line.Event)
		}
		run := fold.Snapshot()
		fmt.Println(s.Program(), run.Status, len(run.Agents), "agents", run.Usage.Usage.InputTokens, run.Usage.Usage.OutputTokens)
	}
	// Output:
	// Codex completed 3 agents 695 219
}
