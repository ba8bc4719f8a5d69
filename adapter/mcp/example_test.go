package mcp_test

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	ae "github.com/agentevents/agentevents"
	aemcp "github.com/agentevents/agentevents/adapter/mcp"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// A client whose agent deletes files, if a person agrees. The server asks for that.
func Example() {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "files"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "delete"}, deleteFiles)
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		fmt.Println(err)
		return
	}

	rec := new(eventtest.Recorder) // ids and times that repeat; a program has a log
	options := rec.Options()
	options.Lifecycle = ae.LifecycleDerived
	em, err := ae.NewEmitter(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := run.Agent("janitor")
	agent.Emit(ctx, &ae.AgentStarted{Task: "clean up"})

	recorder := new(aemcp.Recorder) // one for the program
	client := mcp.NewClient(&mcp.Implementation{Name: "janitor"}, recorder.Handlers(mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	}))
	client.AddSendingMiddleware(recorder.Record)
	ctx = ae.ContextWithAgent(ctx, agent)
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "delete", Arguments: map[string]any{"path": "old"}})
	if err != nil {
		fmt.Println(err)
	}

	agent.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged})
	run.Emit(ctx, &ae.RunCompleted{})
	var details report.Details
	for _, ev := range rec.Events() {
		details.Add(&ev)
	}
	s := rec.Snapshot("r1")
	s.Clarifications[0].InterruptID = "1" // it is random
	tree.Write(os.Stdout, s, tree.Options{Details: &details})
	// Output:
	// run r1 ✓ completed · 2026-05-05 09:00:00Z · 11s
	// └─ janitor ✓ converged · 9s · 1 step · 1 tool call (1 failed): clean up
	//    ├─ tool.delete ✗ error · 6s: old — not deleted: decline
	//    └─ clarification 1 ✓ answered · 2s: Delete old? — decline
	// 1 agent · 1 tool call (1 failed)
}

func deleteFiles(_ context.Context, req *mcp.CallToolRequest, in struct {
	Path string `json:"path"`
}) (*mcp.CallToolResult, any, error) {
	answer, _ := req.Params.InputResponses["sure"].(*mcp.ElicitResult)
	switch {
	case answer == nil:
		ask := &mcp.ElicitParams{Mode: "form", Message: "Delete " + in.Path + "?", RequestedSchema: map[string]any{"type": "object"}}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": ask}}, nil, nil
	case answer.Action != "accept":
		return nil, nil, fmt.Errorf("not deleted: %s", answer.Action)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil, nil
}
