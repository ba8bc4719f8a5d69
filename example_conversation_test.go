package agentevents_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// README:
// chat returns the conversation of an agent, as a chat API takes it.
func chat(log iter.Seq2[ae.Event, error], runID, agentID string) (chat []map[string]any, err error) {
	messages, err := resume.Conversation(log, runID, agentID)
	for _, m := range messages {
		content := cmp.Or(m.Text, string(m.JSON))
		switch {
		case m.Role == resume.RoleTool:
			for _, r := range m.Results {
				content := cmp.Or(r.Value.String(), r.Error.V.Message, string(r.Status))
				chat = append(chat, map[string]any{"role": "tool", "tool_call_id": r.CallID, "content": content})
			}
		case len(m.Calls) > 0:
			var calls []map[string]any
			for _, c := range m.Calls {
				function := map[string]any{"name": c.Tool, "arguments": c.Arguments.String()}
				calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": function})
			}
			chat = append(chat, map[string]any{"role": "assistant", "content": content, "tool_calls": calls})
		default:
			chat = append(chat, map[string]any{"role": m.Role, "content": content})
		}
	}
	return chat, err
}

// end

// The conversation of an agent is in its log: without the attempt that broke, and with the last
// attempt of a call under the id that the model gave.
func Example_conversation() {
	ctx := context.Background()
	var log []ae.Event
	emitter, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
		log = append(log, ev)
		return nil
	})}})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := emitter.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	coder.Emit(ctx, &ae.AgentStarted{Task: "Read main.go"})
	ask, _ := coder.Model(ctx, nil)
	ask.Text(ctx, "I re")
	ask.Fail(ctx, errors.New("the stream broke"))
	ask, _ = ask.Retry(ctx)
	ask.Text(ctx, "I read it.")
	ask.Return(ctx, nil)
	call, _ := coder.Call(ctx, &ae.ToolCalled{CallID: "call_0", ToolID: "read", Arguments: `{"path":"main.go"}`})
	call.Fail(ctx, errors.New("busy"))
	call, _ = call.Retry(ctx)
	call.Return(ctx, ae.JSON("package main")) // a text, and the log tells that it is one
	ask, _ = coder.Model(ctx, nil)
	ask.Text(ctx, "It is a pro") // and the process dies

	messages, err := chat(func(yield func(ae.Event, error) bool) {
		for _, ev := range log {
			if !yield(ev, nil) {
				return
			}
		}
	}, "r1", "coder")
	if err != nil {
		fmt.Println(err)
	}
	for _, m := range messages {
		line, err := json.Marshal(m)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(string(line))
	}
	// Output:
	// {"content":"Read main.go","role":"user"}
	// {"content":"I read it.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"path\":\"main.go\"}","name":"read"},"id":"call_0","type":"function"}]}
	// {"content":"package main","role":"tool","tool_call_id":"call_0"}
}
