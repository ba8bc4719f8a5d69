package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// A worker works on one run. Its agents share it. They look at no error of recording (see
// open), but where nothing can go on without the record.
type worker struct {
	rt     *runtime
	run    *ae.Run
	cancel context.CancelCauseFunc
	inputs
}

// agent runs an agent until it has an answer. It goes on with the conversation that the log
// has, redacted, if the agent is not new.
func (w *worker) agent(ctx context.Context, a *ae.Agent, task string) (answer string, err error) {
	conversation := []resume.Message{{Role: resume.RoleUser, Text: task}}
	known := w.rt.page.Snapshot(w.run.ID()).Agents[a.ID()] != nil
	if known {
		conversation, err = w.rt.conversation(w.run.ID(), a.ID())
	}
	a.Emit(ctx, &ae.AgentStarted{Task: task, Model: modelName, Resumed: known})
	defer func() { ended(ctx, a, answer, err) }()
	if err != nil {
		return "", err
	}
	if n := len(conversation); n > 0 && conversation[n-1].Role == resume.RoleAssistant {
		return conversation[n-1].Text, nil // it had the answer
	}
	for {
		text, uses, err := w.ask(ctx, a, conversation)
		if err != nil || len(uses) == 0 {
			return text, err
		}
		asked := resume.Message{Role: resume.RoleAssistant, Text: text}
		for _, u := range uses {
			asked.Calls = append(asked.Calls, resume.Call{ID: u.id, Tool: u.tool, Arguments: resume.Value{Text: u.args}})
		}
		conversation = append(conversation, asked, resume.Message{Role: resume.RoleTool, Results: w.useAll(ctx, a, uses)})
		if ctx.Err() != nil { // finished leaves this round out
			return "", context.Cause(ctx)
		}
	}
}

// finished leaves out the rounds that a pause or a crash has stopped: the agent makes them
// once more.
func finished(messages []resume.Message) (out []resume.Message) {
	for _, m := range messages {
		stopped := func(r resume.Result) bool {
			return r.Status == "" || r.Status == ae.ToolStatusInterrupted || r.Status == ae.ToolStatusCancelled
		}
		if slices.ContainsFunc(m.Results, stopped) {
			out = out[:len(out)-1] // the answer with the calls
			continue
		}
		out = append(out, m)
	}
	return out
}

// ended records how an agent ended that came to an answer or an error.
func ended(ctx context.Context, a *ae.Agent, answer string, err error) {
	switch {
	case err == nil:
		a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: answer})
	case errors.Is(err, errPaused):
		a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomePartial})
	default:
		a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeAborted, Error: ae.Some(ae.ErrorInfo{Message: err.Error()})})
	}
}

// ask asks the model for the next turn, up to three times if it is busy.
func (w *worker) ask(ctx context.Context, a *ae.Agent,
	conversation []resume.Message) (text string, uses []use, err error) {
	call, _ := a.Model(ctx, &ae.ModelCalled{Provider: "script", Model: modelName})
	for attempt := 1; ; attempt++ {
		text, uses, err = stream(ctx, call, w.rt.model.stream(ctx, a.ID(), conversation, attempt))
		if err == nil {
			return text, uses, w.checkBudget(ctx)
		}
		call.Fail(ctx, err)
		if attempt == 3 || !errors.Is(err, errRateLimit) {
			return "", nil, err
		}
		call, _ = call.Retry(ctx)
	}
}

// stream reads and records one turn of the model.
func stream(ctx context.Context, call *ae.ModelCall,
	chunks iter.Seq2[chunk, error]) (text string, uses []use, err error) {
	for c, err := range chunks {
		switch {
		case err != nil:
			return "", nil, err
		case c.reasoning != "":
			call.Reason(ctx, c.reasoning)
		case c.text != "":
			call.Text(ctx, c.text)
			text += c.text
		case c.arguments != "":
			call.Arguments(ctx, c.use.id, c.arguments)
		case c.returned != nil:
			call.Return(ctx, c.returned)
			return text, c.uses, nil
		}
	}
	return "", nil, errors.New("the stream broke off")
}

// checkBudget stops the run when it has exceeded its budget. The log has the usage of all agents of
// the run, also from before a pause or a crash.
func (w *worker) checkBudget(ctx context.Context) error {
	cost := w.rt.page.Snapshot(w.run.ID()).Usage.CostUSD.V
	if w.BudgetUSD == 0 || cost <= w.BudgetUSD {
		return nil
	}
	over := ae.BudgetExceeded{Budget: "cost", Limit: w.BudgetUSD, Actual: cost}
	w.run.Emit(ctx, &over)
	err := &ae.BudgetError{Exceeded: over}
	w.cancel(err)
	return err
}

// useAll uses tools in parallel and waits for all of them.
func (w *worker) useAll(ctx context.Context, a *ae.Agent, uses []use) []resume.Result {
	results := make([]resume.Result, len(uses))
	var wg sync.WaitGroup
	for i, u := range uses {
		wg.Go(func() { results[i] = w.use(ctx, a, u) })
	}
	wg.Wait()
	return results
}

// use uses a tool.
func (w *worker) use(ctx context.Context, a *ae.Agent, u use) (r resume.Result) {
	r = resume.Result{CallID: u.id, Tool: u.tool, Status: ae.ToolStatusError}
	defer func() {
		if v := recover(); v != nil { // Do has recorded it
			r.Error = ae.Some(ae.ErrorInfo{Message: "the tool panicked"})
		}
	}()
	called := &ae.ToolCalled{CallID: u.id, ToolID: u.tool, Arguments: ae.JSON(u.args)}
	result, err := a.Do(ctx, called, func(ctx context.Context) (ae.JSON, error) { return w.tool(ctx, u) })
	if r.Value.JSON = result; err != nil {
		r.Error = ae.Some(ae.ErrorInfo{Message: err.Error()})
	} else {
		r.Status = ae.ToolStatusOK
	}
	return r
}

// delegate is a tool: a sub-agent does the work.
func (w *worker) delegate(ctx context.Context, u use) (ae.JSON, error) {
	var args struct{ Agent, Task string }
	if err := json.Unmarshal([]byte(u.args), &args); err != nil {
		return "", err
	}
	answer, err := w.agent(ctx, ae.CallFromContext(ctx).Agent(args.Agent), args.Task)
	return ae.JSONString(answer), err
}

// approve asks a person, and waits for the answer.
func (w *worker) approve(ctx context.Context, u use) error {
	approval, err := ae.AgentFromContext(ctx).Ask(ctx, &ae.ApprovalRequested{
		ApprovalID: u.id, Action: u.tool, CallID: u.id, ToolID: u.tool, Arguments: ae.JSON(u.args),
	})
	if err == nil && !approval.Granted {
		err = &ae.ToolError{Status: ae.ToolStatusForbidden, Err: errors.New("rejected by " + approval.By)}
	}
	return err
}
