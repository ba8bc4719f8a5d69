package agentevents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/tree"
)

// README:
// A chatModel streams the answer to a conversation. The last chunk has the calls of tools.
type chatModel func(ctx context.Context, agent string, messages []resume.Message) iter.Seq2[chunk, error]

type chunk struct {
	text  string
	calls []resume.Call
	usage ae.Usage
}

// A toolbox has the tools of all agents by name.
type toolbox map[string]func(ctx context.Context, args string) (ae.JSON, error)

// A loop is a runtime: agents ask a model and use tools until the model has an answer.
type loop struct {
	model chatModel
	tools toolbox
}

// work runs an agent, which is new or goes on with the messages of its log.
func (l loop) work(ctx context.Context, a *ae.Agent, messages []resume.Message) (answer string, err error) {
	a.Emit(ctx, &ae.AgentStarted{Task: messages[0].Text, Resumed: len(messages) > 1})
	defer func() { a.Finish(ctx, err, &ae.AgentEnded{Result: answer}) }()
	for range 20 {
		text, calls, err := l.ask(ctx, a, messages)
		if err != nil || len(calls) == 0 {
			return text, err
		}
		messages = append(messages,
			resume.Message{Role: resume.RoleAssistant, Text: text, Calls: calls},
			resume.Message{Role: resume.RoleTool, Results: l.use(ctx, a, calls)})
	}
	return "", errors.New("no answer after 20 steps")
}

// ask asks the model, up to three times, and records the stream of the answer.
func (l loop) ask(ctx context.Context, a *ae.Agent, messages []resume.Message) (text string, calls []resume.Call, err error) {
	call, _ := a.Model(ctx, &ae.ModelCalled{Model: "some-model"})
	for try := 1; ; try++ {
		var end ae.ModelReturned
		text, calls, err = "", nil, nil
		for c, broken := range l.model(ctx, a.ID(), messages) {
			if err = broken; err != nil {
				break
			}
			call.Text(ctx, c.text)
			text, calls, end.Usage = text+c.text, append(calls, c.calls...), ae.Some(c.usage)
		}
		if err == nil {
			if end.FinishReasons = []string{"stop"}; len(calls) > 0 {
				end.FinishReasons[0] = "tool_calls"
			}
			call.Return(ctx, &end)
			return text, calls, nil
		}
		call.Fail(ctx, err)
		if try == 3 {
			return "", nil, err
		}
		call, _ = call.Retry(ctx)
	}
}

// use uses tools at once. A tool that fails or panics is a result for the model.
func (l loop) use(ctx context.Context, a *ae.Agent, calls []resume.Call) []resume.Result {
	results := make([]resume.Result, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() {
			r := resume.Result{CallID: c.ID, Tool: c.Tool, Status: ae.ToolStatusError}
			defer func() {
				if recover() != nil { // Do has recorded it
					r.Error = ae.Some(ae.ErrorInfo{Message: "the tool panicked"})
				}
				results[i] = r
			}()
			out, err := a.Do(ctx, &ae.ToolCalled{CallID: c.ID, ToolID: c.Tool, Arguments: ae.JSON(c.Arguments.String())}, func(ctx context.Context) (ae.JSON, error) {
				if tool := l.tools[c.Tool]; tool != nil {
					return tool(ctx, c.Arguments.String())
				}
				return l.delegate(ctx, c.Tool, c.Arguments.String()) // every other name is an agent
			})
			if r.Value.JSON = out; err != nil {
				r.Error = ae.Some(ae.ErrorInfo{Message: err.Error()})
			} else {
				r.Status = ae.ToolStatusOK
			}
		})
	}
	all.Wait()
	return results
}

// delegate runs a sub-agent. Its id has the call, as it may run twice at once; its name has not.
func (l loop) delegate(ctx context.Context, name, task string) (ae.JSON, error) {
	call := ae.CallFromContext(ctx)
	answer, err := l.work(ctx, call.Agent(name+"/"+call.ID), []resume.Message{{Role: resume.RoleUser, Text: task}})
	return ae.JSONString(answer), err
}

// end

// The loop records parallel tools, one that panics, a sub-agent below its call, an answer that
// breaks, and no violation.
func TestLoopOfItsOwn(t *testing.T) {
	use := func(id, tool, args string) resume.Call {
		return resume.Call{ID: id, Tool: tool, Arguments: resume.Value{JSON: ae.JSON(args)}}
	}
	script := map[string][]chunk{
		"lead":         {{text: "I look.", calls: []resume.Call{use("call_0", "read", `{"path":"a.go"}`), use("call_1", "burn", `{}`), use("call_2", "scout", `"find it"`)}}, {text: "Done."}},
		"scout/call_2": {{text: "broken"}, {calls: []resume.Call{use("call_0", "read", `{"path":"b.go"}`)}}, {text: "Found."}},
	}
	var mu sync.Mutex
	model := func(_ context.Context, agent string, _ []resume.Message) iter.Seq2[chunk, error] {
		mu.Lock()
		defer mu.Unlock()
		c := script[agent][0]
		script[agent] = script[agent][1:]
		return func(yield func(chunk, error) bool) {
			if c.text == "broken" && yield(chunk{text: "bro"}, nil) {
				yield(chunk{}, errors.New("the stream broke"))
			} else if c.text != "broken" {
				yield(c, nil)
			}
		}
	}
	tools := toolbox{
		"read": func(_ context.Context, args string) (ae.JSON, error) { return ae.JSONString("package main"), nil },
		"burn": func(context.Context, string) (ae.JSON, error) { panic("fire") },
	}
	var log bytes.Buffer
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks:       []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})},
		OnViolation: func(v *ae.RuleError) { t.Error(v) },
	})
	require.NoError(t, err)
	run, err := em.Run("r1")
	require.NoError(t, err)
	answer, err := loop{model, tools}.work(t.Context(), run.Agent("lead"), []resume.Message{{Role: resume.RoleUser, Text: "Go"}})
	require.NoError(t, err)
	require.Equal(t, "Done.", answer)
	require.NoError(t, run.Finish(t.Context(), nil))
	require.NoError(t, em.Close(t.Context()))

	runs, err := ae.FoldLog(ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	s := runs.Snapshot("r1")
	require.Empty(t, s.Violations)
	require.Equal(t, ae.RunStatusCompleted, s.Status)
	scout := s.Agents["scout/call_2"]
	require.Equal(t, []any{"lead", "call_2", 3, 1}, []any{scout.ParentAgentID, scout.ParentCallID, scout.ModelCalls, scout.ModelFailures})
	require.Equal(t, 3, s.Agents["lead"].ToolCalls)
	require.Equal(t, 1, s.Agents["lead"].ToolFailures)
	messages, err := resume.Conversation(ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All(), "r1", "scout/call_2")
	require.NoError(t, err)
	require.Equal(t, `[{"find it"} { [call_0]} {Found. []}]`, fmt.Sprint(brief(messages)))
	var drawn bytes.Buffer
	require.NoError(t, tree.Write(&drawn, s, tree.Options{}))
	require.Contains(t, drawn.String(), "tool.scout")
}

// brief returns the texts and the ids of the calls of messages, without results.
func brief(messages []resume.Message) (out []string) {
	for _, m := range messages {
		ids := []string{}
		for _, c := range m.Calls {
			ids = append(ids, c.ID)
		}
		switch m.Role {
		case resume.RoleUser:
			out = append(out, "{"+m.Text+"}")
		case resume.RoleAssistant:
			out = append(out, fmt.Sprintf("{%s %v}", m.Text, ids))
		}
	}
	return slices.Clip(out)
}
