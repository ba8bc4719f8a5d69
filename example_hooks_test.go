package agentevents_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/agentevents/agentevents"
)

// A host has a rule of its own: agents do not use the shell. Do runs no tool that the
// rule refuses.
func ExampleEmitterOptions_guard() {
	ctx := context.Background()
	agent := derivedRun(agentevents.EmitterOptions{
		Guard: func(ev agentevents.Event) *agentevents.RuleError {
			call, ok := ev.Payload.(*agentevents.ToolCalled)
			if !ok || call.ToolID != "shell" {
				return nil
			}
			return &agentevents.RuleError{Rule: "acme-no-shell", Subject: "tool shell", State: "forbidden", Detail: "agents have no shell; legal: another tool"}
		},
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})

	_, err := agent.Do(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "shell"}, func(context.Context) (agentevents.JSON, error) {
		fmt.Println("the tool runs")
		return "", nil
	})
	fmt.Println(err)
	// Output:
	// coder: agent.started
	// agentevents: agent.toolCalled: agents have no shell; legal: another tool; tool shell is forbidden (rule acme-no-shell, run "r1", sequence 2)
}

// Follow records an event directly after another one, with nothing of the run in between: here,
// that the budget is used up.
func ExampleEmitterOptions_follow() {
	ctx := context.Background()
	var calls atomic.Int64
	agent := derivedRun(agentevents.EmitterOptions{
		Follow: func(ev agentevents.Event) []agentevents.Event {
			if ev.Kind() != agentevents.KindToolCalled || calls.Add(1) != 2 {
				return nil
			}
			return []agentevents.Event{{AgentID: ev.AgentID, Payload: &agentevents.BudgetExceeded{Budget: "tool_calls", Limit: 1, Actual: 2}}}
		},
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	for _, id := range []string{"toolu_1", "toolu_2"} {
		call, _ := agent.Call(ctx, &agentevents.ToolCalled{CallID: id, ToolID: "Read"})
		call.Return(ctx, "")
	}
	// Output:
	// coder: agent.started
	// coder: thinking → tool_call
	// coder calls Read
	// coder: tool_call → tool_result
	// Read: ok
	// coder: tool_result → tool_call
	// coder calls Read
	// coder: budget.exceeded
	// coder: tool_call → tool_result
	// Read: ok
}

// Every violation is told in one place. The program's own log gets the fields of the
// error, and no content.
func ExampleEmitterOptions_onViolation() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // so that the output is the same every time
			}
			return a
		},
	}))
	agent := derivedRun(agentevents.EmitterOptions{
		OnViolation: func(err *agentevents.RuleError) { logger.Warn("agent log", "violation", err) },
	}).Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	agent.Emit(ctx, &agentevents.ToolReturned{CallID: "toolu_1", ToolID: "Read", Status: agentevents.ToolStatusOK})
	agent.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}) // reports that an event is missing
	// Output:
	// coder: agent.started
	// level=WARN msg="agent log" violation.rule=tool-call-open violation.kind=agent.toolReturned violation.run=r1 violation.sequence=2 violation.agent=coder violation.subject="call \"toolu_1\"" violation.state="not open" violation.detail="agent \"coder\" has no open call with this id; legal: agent.toolCalled first, or oneEvent" violation.refused=true
	// coder: agent.ended
}

// A page asks for the state of open runs. Lookup opens none: the id may come from anywhere. When
// the program stops, it pauses the open runs.
func ExampleEmitter_Lookup() {
	ctx := context.Background()
	emitter, err := agentevents.NewEmitter(agentevents.EmitterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/runs/{run}", func(w http.ResponseWriter, r *http.Request) {
		run, ok := emitter.Lookup(r.PathValue("run"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		state := run.State() // waits for no sink
		fmt.Fprintf(w, "%s is %s\n", state.RunID, state.Status)
		for _, a := range state.Agents {
			fmt.Fprintf(w, "%s is in %s, open calls: %v\n", a.AgentID, a.Status, a.OpenCalls)
		}
	})

	run, err := emitter.Run("r1")
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := run.Agent("coder")
	agent.Emit(ctx, &agentevents.AgentStarted{})
	agent.Call(ctx, &agentevents.ToolCalled{CallID: "toolu_1", ToolID: "Read"})
	for _, id := range []string{"r1", "r2"} {
		page := httptest.NewRecorder()
		mux.ServeHTTP(page, httptest.NewRequest("GET", "/runs/"+id, nil))
		fmt.Print(page.Code, " ", page.Body)
	}

	for run := range emitter.Runs() {
		if err := run.Emit(ctx, &agentevents.RunPaused{Reason: "shutdown"}); err != nil {
			fmt.Println(err)
		}
		fmt.Println(run.ID(), "is", run.State().Status)
	}
	// Output:
	// 200 r1 is running
	// coder is in tool_call, open calls: [toolu_1]
	// 404 404 page not found
	// r1 is paused
}
