package agentevents_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/hooks"
)

// An agent that goes round in circles is told so.
func Example_findings() {
	ctx := context.Background()
	stop := func(context.Context, string, agentevents.BudgetExceeded) error { return nil }
	options := agentevents.EmitterOptions{OnViolation: func(*agentevents.RuleError) {}}
	// README:
	watch := hooks.NewWatch(hooks.WatchOptions{Act: map[findings.Kind]hooks.Action{
		findings.Repeat: hooks.Refuse, // the next call of the loop, with an error for the model
		findings.Retry:  hooks.Ask,    // a person, by an approval
		findings.Waste:  hooks.Stop,   // the run, as a budget does
	}})
	em, err := agentevents.NewEmitter(hooks.Breaker{Watch: watch, Stop: stop}.Install(options))
	// end
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
	if err := coder.Emit(ctx, &agentevents.AgentStarted{}); err != nil {
		fmt.Println(err)
	}
	for n := range 4 {
		_, err := coder.Do(ctx, &agentevents.ToolCalled{ToolID: "Read", Arguments: `{"path":"go.mod"}`}, func(context.Context) (agentevents.JSON, error) {
			return `"module m"`, nil
		})
		var refused *agentevents.RuleError
		if errors.As(err, &refused) {
			fmt.Printf("%d: %s: %s\n", n+1, refused.Rule, refused.Detail)
		}
	}

	// Output:
	// 4: finding-repeat: coder made the same call of Read (go.mod) 3 times in a row and got the same result; do something else
}
