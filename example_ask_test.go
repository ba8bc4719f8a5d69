package agentevents_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// README:
// push asks a person and runs the tool if that person allows it. A call with other arguments, a
// late one and a second one are refused, and the tool does not run.
func push(ctx context.Context, agent *ae.Agent, id string, args ae.JSON, tool func(context.Context) (ae.JSON, error)) (ae.JSON, error) {
	approval, err := agent.Ask(ctx, &ae.ApprovalRequested{
		ApprovalID: id, // "" for a new question
		Action:     "git push", ToolID: "git", Arguments: args, Timeout: ae.Some(10 * time.Minute),
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
	result, err := push(ctx, coder, "", `{"to":"main"}`, func(context.Context) (ae.JSON, error) { <-answered; return `"pushed"`, nil })
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

// README:
// pushAgain goes on with the agents that waited for a person when the process ended. The tool
// comes after the answer, and so may an AgentStarted: before it, a start closes the question. The
// arguments are the runtime's own copy, as the log has secrets masked.
func pushAgain(ctx context.Context, run *ae.Run, plan *resume.Plan, args ae.JSON, tool func(context.Context) (ae.JSON, error)) (errs error) {
	for _, a := range plan.Waiting {
		for _, q := range plan.Snapshot.Approvals {
			if !q.Open || q.AgentID != a.AgentID {
				continue
			}
			agent := run.Agent(a.AgentID)
			_, err := push(ctx, agent, q.ApprovalID, args, tool)
			errs = errors.Join(errs, err, agent.Emit(ctx, &ae.AgentStarted{Task: a.Task, Resumed: true}))
		}
	}
	return errs
}

// end

// A process ends while an agent waits for a person. The next one waits for the same question, and
// the agent goes on after the answer. Its conversation comes from the store.
func ExampleAgent_Ask_resumed() {
	ctx := context.Background()
	store := new(runstore.Memory)
	emitter := func() *ae.Emitter {
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
		if err != nil {
			panic(err)
		}
		return em
	}
	args, tool := ae.JSON(`{"to":"main"}`), func(context.Context) (ae.JSON, error) { return "pushed", nil }
	run, err := emitter().Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	coder := run.Agent("coder")
	coder.Emit(ctx, &ae.AgentStarted{Task: "Release it"})
	crash, stop := context.WithCancel(ctx)
	stop()
	_, err = push(crash, coder, "ap", args, tool)
	fmt.Println("first:", err)

	restored, err := runstore.Restore(ctx, store, "r1", ae.FoldOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := resume.New(restored.Snapshot, resume.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if run, err = emitter().Resume(plan.Snapshot); err != nil {
		fmt.Println(err)
		return
	}
	if _, err = plan.Apply(ctx, run); err != nil {
		fmt.Println(err)
		return
	}
	go grant(ctx, run, "ap", "ann")
	fmt.Println("second:", pushAgain(ctx, run, plan, args, tool))
	run.Finish(ctx, nil)

	messages, err := chat(runstore.Events(store.Load(ctx, "r1", 0)), "r1", "coder")
	for _, m := range messages {
		fmt.Printf("%s %q\n", m["role"], m["content"])
	}
	fmt.Println(err)
	// Output:
	// first: context canceled
	// second: <nil>
	// user "Release it"
	// assistant ""
	// tool "pushed"
	// <nil>
}
