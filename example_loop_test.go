package agentevents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/resume"
	"github.com/agentevents/agentevents/tree"
	"github.com/stretchr/testify/require"
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
func (l loop) work(ctx context.Context, a *ae.Agent, name string, messages []resume.Message) (answer string, err error) {
	a.Emit(ctx, &ae.AgentStarted{Name: name, Task: messages[0].Text, Resumed: len(messages) > 1})
	var end ae.AgentEnded
	defer a.FinishDeferred(ctx, &err, &end)
	for range 20 {
		text, calls, err := l.ask(ctx, a, name, messages)
		if err != nil || len(calls) == 0 {
			end.Result = text
			return text, err
		}
		messages = append(messages,
			resume.Message{Role: resume.RoleAssistant, Text: text, Calls: calls},
			resume.Message{Role: resume.RoleTool, Results: l.use(ctx, a, calls)})
	}
	return "", errors.New("no answer after 20 steps")
}

// ask asks the model, up to three times, and records the stream of the answer.
func (l loop) ask(ctx context.Context, a *ae.Agent, name string, messages []resume.Message) (text string, calls []resume.Call, err error) {
	call, _ := a.Model(ctx, &ae.ModelCalled{Model: "some-model"})
	for try := 1; ; try++ {
		var end ae.ModelReturned
		text, calls, err = "", nil, nil
		for c, broken := range l.model(ctx, name, messages) {
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

// use uses tools at once. Their calls start in order. A tool that fails or panics is a result for the model.
func (l loop) use(ctx context.Context, a *ae.Agent, calls []resume.Call) []resume.Result {
	results := make([]resume.Result, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		call, _ := a.Call(ctx, &ae.ToolCalled{CallID: c.ID, ToolID: c.Tool, Arguments: ae.JSON(c.Arguments.String())})
		all.Go(func() {
			r := resume.Result{CallID: c.ID, Tool: c.Tool, Status: ae.ToolStatusError}
			defer func() {
				if recover() != nil { // Do has recorded it
					r.Error = ae.Some(ae.ErrorInfo{Message: "the tool panicked"})
				}
				results[i] = r
			}()
			out, err := call.Do(ctx, func(ctx context.Context) (ae.JSON, error) {
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

// delegate runs a sub-agent. Each call has another one: providers may use the ids of calls again.
func (l loop) delegate(ctx context.Context, name, task string) (ae.JSON, error) {
	scout := ae.CallFromContext(ctx).NewAgent()
	answer, err := l.work(ctx, scout, name, []resume.Message{{Role: resume.RoleUser, Text: task}})
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
		"lead":  {{text: "I look.", calls: []resume.Call{use("call_0", "read", `{"path":"a.go"}`), use("call_1", "burn", `{}`), use("call_2", "scout", `"find it"`)}}, {calls: []resume.Call{use("call_2", "scout", `"find more"`)}}, {text: "Done."}},
		"scout": {{text: "broken"}, {calls: []resume.Call{use("call_0", "read", `{"path":"b.go"}`)}}, {text: "Found."}, {text: "No more."}},
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
	answer, err := loop{model, tools}.work(t.Context(), run.Agent("lead"), "lead", []resume.Message{{Role: resume.RoleUser, Text: "Go"}})
	require.NoError(t, err)
	require.Equal(t, "Done.", answer)
	require.NoError(t, run.Finish(t.Context(), nil))
	require.NoError(t, em.Close(t.Context()))

	runs, err := ae.FoldLog(ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	s := runs.Snapshot("r1")
	require.Empty(t, s.Violations)
	require.Equal(t, ae.RunStatusCompleted, s.Status)
	require.Equal(t, 4, s.Agents["lead"].ToolCalls)
	require.Equal(t, 1, s.Agents["lead"].ToolFailures)
	agents := s.AgentsInOrder()
	require.Len(t, agents, 3)
	for i, c := range []struct {
		calls, failures int
		answer, talk    string
	}{
		{3, 1, "Found.", `[{find it} { [call_0]} {Found. []}]`},
		{1, 0, "No more.", `[{find more} {No more. []}]`},
	} {
		scout := agents[i+1]
		require.Equal(t, []any{"scout", "lead", "call_2", 1}, []any{scout.Name, scout.ParentAgentID, scout.ParentCallID, scout.Attempts})
		require.Equal(t, []any{c.calls, c.failures, c.answer}, []any{scout.ModelCalls, scout.ModelFailures, scout.Result})
		messages, err := resume.Conversation(ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All(), "r1", scout.AgentID)
		require.NoError(t, err)
		require.Equal(t, c.talk, strings.ReplaceAll(fmt.Sprint(brief(messages)), `"`, ""))
	}
	var calls []string
	for ev, err := range ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		if p, ok := ev.Payload.(*ae.ToolCalled); ok && ev.AgentID == "lead" {
			calls = append(calls, p.ToolID)
		}
	}
	require.Equal(t, []string{"read", "burn", "scout", "scout"}, calls)
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

// runAgent is the program under test: an agent that reads a file.
func runAgent(ctx context.Context, em *ae.Emitter) error {
	run, err := em.Run("")
	if err != nil {
		return err
	}
	coder := run.Agent("coder")
	err = errors.Join(run.Emit(ctx, &ae.RunStarted{Name: "release"}), coder.Emit(ctx, &ae.AgentStarted{Task: "Add /v2/health"}))
	_, failed := coder.Do(ctx, &ae.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go"}`}, func(context.Context) (ae.JSON, error) {
		return `{"lines":120}`, nil
	})
	return errors.Join(err, failed, coder.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}), run.Emit(ctx, &ae.RunCompleted{}))
}

// README:
func TestAgent(t *testing.T) {
	em, rec := eventtest.Record(t)
	if err := runAgent(t.Context(), em); err != nil { // your agent
		t.Fatal(err)
	}
	called := eventtest.Match("coder", func(p *ae.ToolCalled) bool { return p.ToolID == "Read" && p.Arguments != "" })
	rec.Want(t, "coder agent.started Add…", called, "agent.toolReturned Read ok", "agent.ended converged")
	rec.WantNone(t, "agent.toolCalled Write", "agent.error")
	rec.WantLaws(t, eventtest.LawOptions{}) // no rule is broken, nothing is open
	rec.Golden(t, "testdata/agent.jsonl")   // all of it; AGENTEVENTS_UPDATE=1 writes the file
}

// end

// README:

// Parallel tools: Do may be called from goroutines.
func gather(ctx context.Context, planner *ae.Agent) {
	var both sync.WaitGroup
	both.Go(func() { planner.Do(ctx, &ae.ToolCalled{ToolID: "weather", Arguments: `{"city":"Oslo"}`}, forecast) })
	both.Go(func() { planner.Do(ctx, &ae.ToolCalled{ToolID: "hotels", Arguments: `{"city":"Oslo"}`}, hotels) })
	both.Wait()
}

// A tool that is an agent: the agent of CallFromContext stands below the call.
func hotels(ctx context.Context) (found ae.JSON, err error) {
	scout := ae.CallFromContext(ctx).Agent("scout")
	scout.Emit(ctx, &ae.AgentStarted{Task: "Find three hotels"})
	defer scout.FinishDeferred(ctx, &err, nil)
	return scout.Do(ctx, &ae.ToolCalled{ToolID: "search", Arguments: `{"query":"hotels in Oslo"}`}, search)
}

// Streaming: a model call makes one block of the pieces of an answer.
func answer(ctx context.Context, a *ae.Agent, pieces iter.Seq[string]) error {
	call, err := a.Model(ctx, &ae.ModelCalled{Model: "some-model"})
	for piece := range pieces {
		call.Text(ctx, piece)
	}
	call.Return(ctx, &ae.ModelReturned{Usage: ae.Some(ae.Usage{InputTokens: 900, OutputTokens: 40})})
	return err
}

// end

func forecast(context.Context) (ae.JSON, error) { return `{"degrees":7}`, nil }
func search(context.Context) (ae.JSON, error)   { return `["Fjord","Opera","Vika"]`, nil }

// The README shows the tree of its recipes. The two tools run at once, so their order in the
// tree is open.
func TestReadmesRecipes(t *testing.T) {
	ctx := t.Context()
	var log bytes.Buffer
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})},
		Clock: func() time.Time { return time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC) },
	})
	require.NoError(t, err)
	run, err := em.Run("trip")
	require.NoError(t, err)
	planner := run.Agent("planner")
	require.NoError(t, planner.Emit(ctx, &ae.AgentStarted{Task: "Plan a weekend in Oslo"}))
	gather(ctx, planner)
	require.NoError(t, answer(ctx, planner, slices.Values([]string{"Stay at the Fjord, ", "and take a coat."})))
	require.NoError(t, run.Finish(ctx, nil))
	require.NoError(t, em.Close(ctx))

	var details report.Details
	for ev, err := range ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		details.Add(&ev)
	}
	runs, err := ae.FoldLog(ae.NewReader(&log, ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	var drawn strings.Builder
	for s := range runs.Drain() {
		require.Empty(t, s.Violations)
		require.NoError(t, tree.Write(&drawn, s, tree.Options{Details: &details}))
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(readme), "```\nrun trip")
	shown, _, _ = strings.Cut("run trip"+shown, "```\n")
	require.Equal(t, branches(shown), branches(drawn.String()), drawn.String())
}

// branches returns the lines of a tree without the lines that connect them, sorted.
func branches(drawn string) []string {
	var lines []string
	for line := range strings.Lines(drawn) {
		lines = append(lines, strings.TrimLeft(line, "│├└─ "))
	}
	slices.Sort(lines)
	return lines
}

// The agent of the recipe fails when its search does, like the call that it stands below.
func TestReadmesAgentFailsWithItsSearch(t *testing.T) {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{
		Lifecycle:   ae.LifecycleDerived,
		OnViolation: func(*ae.RuleError) {},
		Guard: func(ev ae.Event) *ae.RuleError {
			if p, ok := ev.Payload.(*ae.ToolCalled); ok && p.ToolID == "search" {
				return &ae.RuleError{Rule: "no-search"}
			}
			return nil
		},
	})
	run, err := em.Run("trip")
	require.NoError(t, err)
	planner := run.Agent("planner")
	require.NoError(t, planner.Emit(t.Context(), &ae.AgentStarted{}))
	_, err = planner.Do(t.Context(), &ae.ToolCalled{ToolID: "hotels"}, hotels)
	require.Error(t, err)
	require.NoError(t, run.Finish(t.Context(), nil))
	var statuses []ae.AgentStatus
	for _, ev := range rec.Events() {
		if p, ok := ev.Payload.(*ae.AgentTransition); ok && ev.AgentID == "scout" {
			statuses = append(statuses, p.To)
		}
	}
	require.Equal(t, ae.StatusFailed, statuses[len(statuses)-1])
}
