package query_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
)

// echo stands for a provider: it repeats its prompt.
func echo(_ context.Context, r query.Request) iter.Seq2[agentevents.Event, error] {
	return func(yield func(agentevents.Event, error) bool) {
		_ = yield(agentevents.Event{Payload: &agentevents.AgentStarted{Model: "echo-1"}}, nil) &&
			yield(agentevents.Event{Payload: &agentevents.TextCompleted{Text: string(r.Prompt)}}, nil) &&
			yield(agentevents.Event{Payload: &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: string(r.Prompt)}}, nil)
	}
}

func ExampleDo() {
	ctx := context.Background()
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			fmt.Println(ev.AgentID, ev.Kind())
			return nil
		})},
	})
	if err != nil {
		panic(err)
	}
	run, err := em.Run("run-1")
	if err != nil {
		panic(err)
	}
	end, err := query.Do(ctx, run.Agent("writer"), echo, query.Request{Prompt: agentevents.JSONString("Hello")})
	fmt.Println(end.Result, err)
	// Output:
	// writer agent.started
	// writer agent.transition
	// writer agent.text
	// writer agent.transition
	// writer agent.ended
	// "Hello" <nil>
}
