package agentevents_test

import (
	"context"
	"fmt"
	"time"

	ae "github.com/agentevents/agentevents"
)

// README:
// push asks a person and runs the tool if that person allows it. A call with other arguments, a
// late one and a second one are refused, and the tool does not run.
func push(ctx context.Context, agent *ae.Agent, args ae.JSON, tool func(context.Context) (ae.JSON, error)) (ae.JSON, error) {
	approval, err := agent.Ask(ctx, &ae.ApprovalRequested{
		Action: "git push", ToolID: "git", Arguments: args, Timeout: ae.Some(10 * time.Minute),
	})
	if err != nil || !approval.Granted {
		return "", err // nobody answered, or a person said no: approval.By, approval.Feedback
	}
	return agent.Do(ctx, &ae.ToolCalled{ToolID: "git", Arguments: args, ApprovalID: approval.ID}, tool)
}

// grant is the other side, such as the handler of a page.
func grant(ctx context.Context, run *ae.Run, id, person string) error {
	return run.Answer(ctx, &ae.ApprovalGranted{ApprovalID: id, ApprovedBy: person}) // ae.ErrAnswered if it is not open
}

// end

// An agent asks a person. The second person is told that the question is answered, and the
// approval allows no second call.
func ExampleAgent_Ask() {
	ctx := context.Background()
	asked, used := make(chan string, 1), ""
	emitter, err := ae.NewEmitter(ae.EmitterOptions{
		OnViolation: func(err *ae.RuleError) { fmt.Println("refused:", err.Rule) },
		Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
			if p, ok := ev.Payload.(*ae.ApprovalRequested); ok {
				asked <- p.ApprovalID
				used = p.ApprovalID
			}
			return nil
		})},
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
	coder.Emit(ctx, &ae.AgentStarted{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		id := <-asked
		fmt.Println("ann:", grant(ctx, run, id, "ann"))
		fmt.Println("bob:", grant(ctx, run, id, "bob") != nil)
	}()
	result, err := push(ctx, coder, `{"to":"main"}`, func(context.Context) (ae.JSON, error) { <-answered; return `"pushed"`, nil })
	fmt.Println(result, err)
	_, err = coder.Call(ctx, &ae.ToolCalled{ToolID: "git", Arguments: `{"to":"main"}`, ApprovalID: used})
	fmt.Println(err != nil)
	// Output:
	// ann: <nil>
	// bob: true
	// "pushed" <nil>
	// refused: approval-binds
	// true
}
