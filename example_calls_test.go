package agentevents_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/runstore"
)

// derivedRun returns a run whose events are printed.
func derivedRun(o ae.EmitterOptions) *ae.Run {
	o.Lifecycle = ae.LifecycleDerived
	o.Sinks = []ae.Sink{console{}}
	emitter, err := ae.NewEmitter(o)
	if err != nil {
		panic(err)
	}
	run, err := emitter.Run("r1")
	if err != nil {
		panic(err)
	}
	return run
}

// A model asks for two tools at once. Their calls are open at the same time, under the
// ids that the model's provider has given them. One fails and is tried again.
func ExampleAgent_Call() {
	ctx := context.Background()
	agent := derivedRun(ae.EmitterOptions{}).Agent("guide")
	agent.Emit(ctx, &ae.AgentStarted{})

	weather, err := agent.Call(ctx, &ae.ToolCalled{CallID: "toolu_1", ToolID: "weather", Arguments: `{"city":"Oslo"}`})
	if err != nil {
		fmt.Println(err) // the handle is safe to use all the same: the tool runs on
	}
	trains, err := agent.Call(ctx, &ae.ToolCalled{CallID: "toolu_2", ToolID: "trains", Transport: ae.TransportMCP})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println("open:", agent.OpenCalls())
	weather.Return(ctx, `{"degrees":7}`)
	trains.Fail(ctx, &ae.ToolError{
		Status: ae.ToolStatusRateLimited, Code: "429", Retryable: ae.Some(true), Err: errors.New("try again in 1 s"),
	})

	again, err := trains.Retry(ctx) // names the call before, and counts the attempts
	if err != nil {
		fmt.Println(err)
	}
	again.End(ctx, &ae.ToolReturned{Status: ae.ToolStatusOK, Result: `["08:12"]`, ResultSummary: "1 train"})
	fmt.Println("open:", agent.OpenCalls())
	// Output:
	// guide: agent.started
	// guide: thinking → tool_call
	// guide calls weather {"city":"Oslo"}
	// guide calls trains
	// open: [toolu_1 toolu_2]
	// weather: ok {"degrees":7}
	// guide: tool_call → tool_result
	// trains: rate_limited try again in 1 s
	// guide: tool_result → tool_call
	// guide calls trains toolu_2
	// guide: tool_call → tool_result
	// trains: ok ["08:12"]
	// open: []
}

// A failed tool returns an error with a status, a code, and a result, as servers of MCP do.
func ExampleToolError() {
	ctx := context.Background()
	agent := derivedRun(ae.EmitterOptions{}).Agent("ops")
	agent.Emit(ctx, &ae.AgentStarted{})

	_, err := agent.Do(ctx, &ae.ToolCalled{CallID: "toolu_1", ToolID: "query"}, func(context.Context) (ae.JSON, error) {
		return "", &ae.ToolError{Result: `{"rows":0}`, Err: errors.New("no such table")}
	})
	fmt.Println("->", err)
	_, err = agent.Do(ctx, &ae.ToolCalled{CallID: "toolu_2", ToolID: "deploy"}, func(context.Context) (ae.JSON, error) {
		return "", &ae.ToolError{Status: ae.ToolStatusForbidden, Code: "approval_rejected"}
	})
	fmt.Println("->", err)
	// Output:
	// ops: agent.started
	// ops: thinking → tool_call
	// ops calls query
	// ops: tool_call → tool_result
	// query: error {"rows":0} no such table
	// -> no such table
	// ops: tool_result → tool_call
	// ops calls deploy
	// ops: tool_call → tool_result
	// deploy: forbidden approval_rejected
	// -> approval_rejected
}

// Two tools of one step ask a person. The agent is blocked until both have their answer.
func ExampleApprovalRequested() {
	ctx := context.Background()
	run := derivedRun(ae.EmitterOptions{})
	agent := run.Agent("ops")
	agent.Emit(ctx, &ae.AgentStarted{})
	for _, id := range []string{"toolu_1", "toolu_2"} {
		agent.Call(ctx, &ae.ToolCalled{CallID: id, ToolID: "deploy"})
		agent.Emit(ctx, &ae.ApprovalRequested{ApprovalID: "ask-" + id, CallID: id, Risk: "downtime"})
	}
	fmt.Println("run:", run.State().Status)

	// The answers come from elsewhere, such as the handler of a web page.
	run.Emit(ctx, &ae.ApprovalGranted{ApprovalID: "ask-toolu_1", ApprovedBy: "ann"})
	run.Emit(ctx, &ae.ApprovalRejected{ApprovalID: "ask-toolu_2", RejectedBy: "ann"})
	again := run.Emit(ctx, &ae.ApprovalGranted{ApprovalID: "ask-toolu_2", ApprovedBy: "bob"})
	fmt.Println("answered twice:", again)

	agent.OpenCall("toolu_1").Return(ctx, `"done"`)
	agent.OpenCall("toolu_2").End(ctx, &ae.ToolReturned{Status: ae.ToolStatusForbidden})
	// Output:
	// ops: agent.started
	// ops: thinking → tool_call
	// ops calls deploy
	// ops: tool_call → blocked-on-clarification
	// ops: approval.requested
	// ops calls deploy
	// ops: approval.requested
	// run: waiting
	// r1: approval.granted
	// ops: blocked-on-clarification → tool_call
	// r1: approval.rejected
	// answered twice: agentevents: approval.granted: only an open approval is answered; legal: approval.requested first; approval "ask-toolu_2" is not open (rule approval-open, run "r1", sequence 10)
	// deploy: ok "done"
	// ops: tool_call → tool_result
	// deploy: forbidden
}

// fetch is a client that many agents use. It finds out by its context who is at work.
func fetch(ctx context.Context, url string) {
	ae.AgentFromContext(ctx).Emit(ctx, &ae.AgentErrored{
		ErrorType: "rate_limit", Message: url, Severity: ae.SeverityWarning,
	})
}

// A context carries the agent that is at work to wrappers and clients that it calls.
// Without one nothing is recorded.
func ExampleContextWithAgent() {
	agent := derivedRun(ae.EmitterOptions{}).Agent("reader")
	ctx := ae.ContextWithAgent(context.Background(), agent)
	agent.Emit(ctx, &ae.AgentStarted{})
	fetch(ctx, "https://example.org")
	fetch(context.Background(), "https://example.org")
	// Output:
	// reader: agent.started
	// reader: agent.error
}

// research is a tool that is an agent itself.
func research(ctx context.Context) (ae.JSON, error) {
	sub := ae.CallFromContext(ctx).Agent("researcher") // its start names the call
	err := errors.Join(
		sub.Emit(ctx, &ae.AgentStarted{Task: "Find the sources"}),
		sub.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: "two sources"}))
	return `"two sources"`, err
}

// Do gives a tool a context that carries the call.
func ExampleCallFromContext() {
	ctx := context.Background()
	agent := derivedRun(ae.EmitterOptions{}).Agent("lead")
	agent.Emit(ctx, &ae.AgentStarted{})
	if _, err := agent.Do(ctx, &ae.ToolCalled{CallID: "toolu_1", ToolID: "research"}, research); err != nil {
		fmt.Println(err)
	}
	// Output:
	// lead: agent.started
	// lead: thinking → tool_call
	// lead calls research
	// researcher: agent.started
	// researcher: thinking → converged
	// researcher: agent.ended
	// lead: tool_call → tool_result
	// research: ok "two sources"
}

// A runtime whose tools are plain functions wraps each once.
func ExampleWrapTool() {
	type place struct {
		City string `json:"city"`
	}
	forecast := ae.WrapTool("weather", func(_ context.Context, p place) (string, error) {
		if p.City == "" {
			return "", errors.New("no city")
		}
		return "7 degrees", nil
	})

	agent := derivedRun(ae.EmitterOptions{}).Agent("guide")
	ctx := ae.ContextWithAgent(context.Background(), agent)
	agent.Emit(ctx, &ae.AgentStarted{})
	fmt.Println(forecast(ctx, place{"Oslo"}))
	fmt.Println(forecast(ctx, place{}))
	// Output:
	// guide: agent.started
	// guide: thinking → tool_call
	// guide calls weather {"city":"Oslo"}
	// guide: tool_call → tool_result
	// weather: ok "7 degrees"
	// 7 degrees <nil>
	// guide: tool_result → tool_call
	// guide calls weather {"city":""}
	// guide: tool_call → tool_result
	// weather: error no city
	//  no city
}

// An agent that fails has left a call open. FinishDeferred ends the run, and everything that is
// open in it, on every way out.
func ExampleRun_FinishDeferred() {
	ctx := context.Background()
	work := func(run *ae.Run) (err error) {
		defer run.FinishDeferred(ctx, &err)
		agent := run.Agent("guide")
		agent.Emit(ctx, &ae.AgentStarted{})
		agent.Call(ctx, &ae.ToolCalled{CallID: "toolu_1", ToolID: "weather"})
		return errors.New("the model is down")
	}
	fmt.Println(work(derivedRun(ae.EmitterOptions{})))
	// Output:
	// guide: agent.started
	// guide: thinking → tool_call
	// guide calls weather
	// guide: tool_call → tool_result
	// weather: error the model is down
	// guide: tool_result → failed
	// guide: agent.ended
	// r1: run.failed
	// the model is down
}

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
