package inbox_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/inbox"
)

// A person writes to an agent that works in a node. The agent gets the message between two
// of its turns; a message for nobody is an error.
func Example() {
	ctx := context.Background()
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := em.Run("run-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	in := inbox.New(run, inbox.Options{})
	box := in.Open("plan-1")
	if err := in.Deliver(ctx, agentevents.Command{Type: agentevents.CommandSend, RunID: "plan-1", Message: "Be brief."}); err != nil {
		fmt.Println(err)
	}
	err = in.Deliver(ctx, agentevents.Command{Type: agentevents.CommandSend, Message: "Anybody?"})
	fmt.Println(errors.Is(err, inbox.ErrNoExecution))

	command, err := box.Receive(ctx)
	fmt.Println(command.Message, err)
	fmt.Println(box.Close(ctx))
	// Output:
	// true
	// Be brief. <nil>
	// <nil>
}
