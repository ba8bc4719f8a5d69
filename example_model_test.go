package agentevents_test

import (
	"context"
	"errors"
	"fmt"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// A runtime hands on its provider's stream. Statuses, whole blocks and the times of the answer are
// on the log without more code.
func ExampleAgent_Model() {
	ctx := context.Background()
	rec := new(eventtest.Recorder)
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
	coder := run.Agent("coder")
	if err := coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"}); err != nil {
		fmt.Println(err)
	}

	// The stream of a provider.
	stream := []struct{ sort, text string }{
		{"thinking", "The routes"}, {"thinking", " are in main.go."},
		{"text", "I look"}, {"text", " at main.go."},
		{"input", `{"path":`}, {"input", `"main.go"}`},
	}
	call, err := coder.Model(ctx, &ae.ModelCalled{Provider: "anthropic", Model: "claude-sonnet-4-5"})
	for _, piece := range stream {
		switch piece.sort {
		case "thinking":
			err = errors.Join(err, call.Reason(ctx, piece.text))
		case "text":
			err = errors.Join(err, call.Text(ctx, piece.text))
		case "input":
			err = errors.Join(err, call.Arguments(ctx, "toolu_1", piece.text))
		}
	}
	err = errors.Join(err, call.Return(ctx, &ae.ModelReturned{FinishReasons: []string{"tool_use"}}))
	if err != nil {
		fmt.Println(err)
	}
	for _, ev := range rec.Events() {
		fmt.Println(eventtest.Describe(ev))
	}
	returned := rec.Events()[len(rec.Events())-1].Payload.(*ae.ModelReturned)
	fmt.Println("first token after", returned.TimeToFirstToken.V, "and all after", returned.Duration.V)
	// Output:
	// coder agent.started "Add /v2/health"
	// coder model.called id2 anthropic claude-sonnet-4-5
	// coder agent.reasoning.delta id4 "The routes"
	// coder agent.reasoning.delta id4 " are in main.go."
	// coder agent.reasoned id4 "The routes are in main.go."
	// coder agent.transition thinking response [synthetic]
	// coder agent.text.delta id8 "I look"
	// coder agent.text.delta id8 " at main.go."
	// coder agent.text id8 "I look at main.go."
	// coder tool.arguments.delta toolu_1 "{\"path\":"
	// coder tool.arguments.delta toolu_1 "\"main.go\"}"
	// coder model.returned id2
	// first token after 1s and all after 10s
}

// A call that fails keeps the streamed text, and is tried again.
func ExampleModelCall_Retry() {
	ctx := context.Background()
	rec := new(eventtest.Recorder)
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
	coder := run.Agent("coder")
	if err := coder.Emit(ctx, &ae.AgentStarted{}); err != nil {
		fmt.Println(err)
	}

	call, err := coder.Model(ctx, &ae.ModelCalled{Model: "claude-sonnet-4-5"})
	err = errors.Join(err, call.Text(ctx, "The answ"))
	err = errors.Join(err, call.Fail(ctx, errors.New("529 overloaded")))
	again, retryErr := call.Retry(ctx)
	err = errors.Join(err, retryErr, again.Text(ctx, "The answer is 4."), again.Return(ctx, nil))
	if err != nil {
		fmt.Println(err)
	}
	for _, ev := range rec.Events() {
		fmt.Println(eventtest.Describe(ev))
	}
	// Output:
	// coder agent.started
	// coder model.called id2 claude-sonnet-4-5
	// coder agent.transition thinking response [synthetic]
	// coder agent.text.delta id4 "The answ"
	// coder agent.text id4 "The answ"
	// coder model.returned id2
	// coder agent.transition response thinking [synthetic]
	// coder model.called id9 claude-sonnet-4-5 id2
	// coder agent.transition thinking response [synthetic]
	// coder agent.text.delta id12 "The answer is 4."
	// coder agent.text id12 "The answer is 4."
	// coder model.returned id9
}
