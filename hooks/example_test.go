package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/hooks"
)

// The program's own log has the actions of its agents, at the levels that operators know. The
// prompt and the result of the tool stay out of it.
func ExampleLogger() {
	ctx := context.Background()
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // so that the output is the same every time
			switch a.Key {
			case slog.TimeKey, "id", "kind", "duration":
				return slog.Attr{}
			}
			return a
		},
	})
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.BestEffort(hooks.Slog{To: slog.New(handler)})},
	})
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
	coder.Emit(ctx, &agentevents.AgentStarted{Task: "Add /v2/health", Model: "claude-sonnet"})
	coder.Do(ctx, &agentevents.ToolCalled{CallID: "c1", ToolID: "Bash"}, func(context.Context) (agentevents.JSON, error) {
		return "", &agentevents.ToolError{Code: "exit_1", Err: errors.New("main.go:7: undefined: health")}
	})
	coder.Emit(ctx, &agentevents.TextDelta{Delta: "I will"}) // below the handler's level
	run.Emit(ctx, &agentevents.RunFailed{Error: agentevents.Some(agentevents.ErrorInfo{Code: "build_failed"})})
	// Output:
	// level=INFO msg=agent.started event.run=r1 event.sequence=0 event.agent=coder model=claude-sonnet
	// level=INFO msg=agent.transition event.run=r1 event.sequence=1 event.agent=coder event.step=0 event.marks=synthetic from=thinking to=tool_call
	// level=INFO msg=agent.toolCalled event.run=r1 event.sequence=2 event.agent=coder event.step=0 tool=Bash call=c1
	// level=INFO msg=agent.transition event.run=r1 event.sequence=3 event.agent=coder event.step=0 event.marks=synthetic from=tool_call to=tool_result
	// level=ERROR msg=agent.toolReturned event.run=r1 event.sequence=4 event.agent=coder event.step=0 tool=Bash call=c1 status=error error_code=exit_1
	// level=INFO msg=agent.transition event.run=r1 event.sequence=5 event.agent=coder event.step=0 event.marks=synthetic from=tool_result to=response
	// level=ERROR msg=run.failed event.run=r1 event.sequence=7 error_code=build_failed
}

// An agent that would go on for ever is stopped by its budget: the breaker cancels the
// context that the agent works with, and the run ends as failed by its budget.
func ExampleBreaker() {
	work, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	breaker := hooks.Breaker{
		Limits: hooks.Limits{Tokens: 5_000, WallClock: 10 * time.Minute, Failures: 4},
		Stop: func(_ context.Context, _ string, over agentevents.BudgetExceeded) error {
			cancel(&agentevents.BudgetError{Exceeded: over})
			return nil
		},
	}
	emitter, err := agentevents.NewEmitter(breaker.Install(agentevents.EmitterOptions{
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			fmt.Println(ev.Sequence, ev.Kind())
			return nil
		})},
	}))
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
	coder.Emit(work, &agentevents.AgentStarted{Task: "Make all tests pass"})
	for round := 0; work.Err() == nil; round++ { // ask the model, which is never content
		coder.Emit(work, &agentevents.ModelReturned{
			ModelCallID: fmt.Sprint("m", round), OneEvent: true, Usage: agentevents.Some(agentevents.Usage{InputTokens: 1_900, OutputTokens: 100}),
		})
	}
	run.Finish(work, work.Err()) // a cancelled context loses no event
	fmt.Println(context.Cause(work))
	fmt.Println(emitter.Close(context.Background()))
	// Output:
	// 0 agent.started
	// 1 model.returned
	// 2 model.returned
	// 3 model.returned
	// 4 budget.exceeded
	// 5 agent.transition
	// 6 agent.ended
	// 7 run.failed
	// budget "tokens" exceeded: 6000 used of 5000
	// <nil>
}
