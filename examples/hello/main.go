// Command hello is the README's first program: an agent that reads a file and answers. It
// writes the log of its run to standard output.
package main

import (
	"context"
	"log"
	"os"

	ae "github.com/agentevents/agentevents"
)

func main() {
	ctx := context.Background()
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks: []ae.Sink{ae.NewWriter(os.Stdout, ae.WriterOptions{})},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer em.Close(ctx)
	run, err := em.Run("r1")
	if err != nil {
		log.Fatal(err)
	}
	coder := run.Agent("coder")
	coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"})
	coder.Do(ctx, &ae.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go","api_key":"k-123"}`}, readFile)
	coder.Emit(ctx, &ae.TextCompleted{Text: "It is there now."})
	run.Finish(ctx, nil)
}

func readFile(context.Context) (ae.JSON, error) { return ae.JSONString("package main"), nil }
