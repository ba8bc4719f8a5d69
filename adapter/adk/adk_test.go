package adk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/plugin/retryandreflect"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/exitlooptool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/adk/v2/workflow"
	"google.golang.org/genai"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/adk"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

var update = flag.Bool("update", false, "write the golden files")

// A script is a scripted model, with an answer for each request.
type script struct {
	mu      sync.Mutex
	answers [][]any // of *model.LLMResponse, error and func(context.Context)
}

func says(answers ...[]any) *script { return &script{answers: answers} }

func (*script) Name() string { return "scripted-1" }

func (s *script) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.mu.Lock()
		if len(s.answers) == 0 {
			s.mu.Unlock()
			yield(nil, errors.New("the script has no more answers"))
			return
		}
		answer := s.answers[0]
		s.answers = s.answers[1:]
		s.mu.Unlock()
		for _, part := range answer {
			switch part := part.(type) {
			case *model.LLMResponse:
				if !yield(clone(part), nil) {
					return
				}
			case error:
				yield(nil, part)
				return
			case func(context.Context):
				part(ctx)
			}
		}
	}
}

func clone(r *model.LLMResponse) *model.LLMResponse {
	out := *r
	if r.Content != nil {
		content := *r.Content
		content.Parts = nil
		for _, p := range r.Content.Parts {
			part := *p
			if part.FunctionCall != nil {
				call := *part.FunctionCall
				part.FunctionCall = &call
			}
			content.Parts = append(content.Parts, &part)
		}
		out.Content = &content
	}
	return &out
}

func whole(parts ...*genai.Part) *model.LLMResponse {
	return &model.LLMResponse{
		Content: genai.NewContentFromParts(parts, genai.RoleModel), FinishReason: genai.FinishReasonStop, ModelVersion: "scripted-1-001", TurnComplete: true,
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 12, CachedContentTokenCount: 2, CandidatesTokenCount: 5, ThoughtsTokenCount: 1, TotalTokenCount: 18},
	}
}

func piece(p *genai.Part) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromParts([]*genai.Part{p}, genai.RoleModel), ModelVersion: "scripted-1-001", Partial: true}
}

func text(t string) *genai.Part    { return genai.NewPartFromText(t) }
func thought(t string) *genai.Part { return &genai.Part{Text: t, Thought: true} }
func call(id, name string, args map[string]any) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: args}}
}

func transfer(id, to string) *genai.Part {
	return call(id, "transfer_to_agent", map[string]any{"agent_name": to})
}

func answer(parts ...*genai.Part) []any { return []any{whole(parts...)} }

type city struct {
	City string `json:"city"`
}
type weather struct {
	Degrees int `json:"degrees"`
}

func function[In, Out any](t testing.TB, cfg functiontool.Config, fn functiontool.Func[In, Out]) tool.Tool {
	t.Helper()
	made, err := functiontool.New(cfg, fn)
	require.NoError(t, err)
	return made
}

func forecast(t testing.TB) tool.Tool {
	return function(t, functiontool.Config{Name: "weather", Description: "tells the weather"}, func(_ agent.Context, in city) (weather, error) {
		if in.City == "Atlantis" {
			return weather{}, errors.New("no such city")
		}
		return weather{len(in.City)}, nil
	})
}

func llm(t testing.TB, cfg llmagent.Config) agent.Agent {
	t.Helper()
	a, err := llmagent.New(cfg)
	require.NoError(t, err)
	return a
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// A rig runs agents and records them.
type rig struct {
	testing.TB
	rec     *eventtest.Recorder // nil: nothing is looked at
	adapter *adk.Recorder
	runner  *runner.Runner
	service session.Service
	before  []*plugin.Plugin // in front of the recorder's
	plugins []*plugin.Plugin // they run after the recorder
	mode    agent.StreamingMode
	stop    func(*session.Event) bool
	ctx     context.Context
	alone   bool // the plugin, without Recorder.Run
	bare    bool // neither
	seen    []*session.Event
}

func newRig(t testing.TB) *rig {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Redaction: &ae.Policy{Reasoning: ae.VerbosityFull}})
	return &rig{TB: t, rec: rec, adapter: &adk.Recorder{Emitter: em}}
}

func user(t string) *genai.Content { return genai.NewContentFromText(t, genai.RoleUser) }

func reply(id, name string, response map[string]any) *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: response}}}}
}

// repeatable makes the ids of ctx count, and its time stand still.
func repeatable(ctx context.Context) context.Context {
	var n atomic.Int64
	ctx = platform.WithTimeProvider(ctx, func() time.Time { return time.Unix(1_800_000_000, 0) })
	return platform.WithUUIDProvider(ctx, func() string { return fmt.Sprint("u", n.Add(1)) })
}

func (g *rig) run(root agent.Agent, msg *genai.Content) error {
	g.Helper()
	if g.service == nil {
		g.service = session.InMemoryService()
	}
	if g.runner == nil {
		plugins := slices.Clone(g.before)
		if !g.bare {
			plugins = append(plugins, g.adapter.Plugin())
		}
		var err error
		g.runner, err = runner.New(runner.Config{
			AppName: "app", Agent: root, SessionService: g.service, AutoCreateSession: true,
			PluginConfig: runner.PluginConfig{Plugins: append(plugins, g.plugins...)},
		})
		require.NoError(g, err)
	}
	if g.ctx == nil {
		g.ctx = repeatable(g.Context())
	}
	events := g.adapter.Run(g.ctx, g.runner, "u", "s", msg, agent.RunConfig{StreamingMode: g.mode})
	if g.alone || g.bare {
		events = g.runner.Run(g.ctx, "u", "s", msg, agent.RunConfig{StreamingMode: g.mode})
	}
	var failed error
	for ev, err := range events {
		failed = errors.Join(failed, err)
		if ev != nil {
			g.seen = append(g.seen, ev)
		}
		if g.stop != nil && ev != nil && g.stop(ev) {
			break
		}
	}
	return failed
}

// runID returns the id of the run of an event, the last one by default.
func (g *rig) runID() string {
	events := g.rec.Events()
	require.NotEmpty(g, events)
	return events[len(events)-1].RunID
}

func (g *rig) tree() string {
	var b strings.Builder
	details := new(report.Details)
	for _, ev := range g.rec.Events() {
		details.Add(&ev)
	}
	require.NoError(g, tree.Write(&b, g.rec.Snapshot(g.runID()), tree.Options{Width: 200, Details: details}))
	return b.String()
}

// golden compares the tree with a file. Nothing is open in a run that is over.
func (g *rig) golden(name string) {
	g.Helper()
	if g.rec == nil {
		return
	}
	got := g.tree()
	s := g.rec.Snapshot(g.runID())
	require.Zero(g, s.ViolationCount)
	if s.Status.Terminal() {
		require.Empty(g, s.OpenCalls)
		require.Empty(g, s.OpenModelCalls)
		g.rec.WantLaws(g, eventtest.LawOptions{})
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(g, os.MkdirAll("testdata", 0o755))
		require.NoError(g, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(g, err)
	require.Equal(g, string(want), got)
}

var scenarios = map[string]func(g *rig){
	"answer": func(g *rig) {
		root := llm(g, llmagent.Config{Name: "guide", Model: says(answer(thought("easy"), text("Oslo is in Norway.")))})
		require.NoError(g, g.run(root, user("Where is Oslo?")))
	},
	"state": func(g *rig) {
		remember := function(g, functiontool.Config{Name: "remember", Description: "remembers"}, func(ctx agent.Context, in city) (weather, error) {
			ctx.Actions().StateDelta["seen"] = map[string]any{"last": in.City}
			return weather{4}, nil
		})
		root := llm(g, llmagent.Config{Name: "guide", OutputKey: "answer", Tools: []tool.Tool{remember}, Model: says(
			answer(call("c1", "remember", map[string]any{"city": "Oslo"})), answer(text("Noted.")),
		)})
		require.NoError(g, g.run(root, user("Where is Oslo?")))
	},
	"streaming": func(g *rig) {
		g.mode = agent.StreamingModeSSE
		aggregate := whole(thought("cold"), text("It is 4 degrees."))
		aggregate.ModelVersion = "" // as the framework makes it
		model := says(
			[]any{piece(thought("I ask ")), piece(thought("the tool.")), whole(thought("I ask the tool."), call("c1", "weather", map[string]any{"city": "Oslo"}))},
			[]any{piece(thought("cold")), piece(text("It is ")), piece(text("4 degrees.")), aggregate},
		)
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{forecast(g)}})
		require.NoError(g, g.run(root, user("Is it cold in Oslo?")))
	},
	"parallel-tools": func(g *rig) {
		o := g.overlap()
		wait := func(name, id string) tool.Tool {
			return function(g, functiontool.Config{Name: name, Description: "waits"}, func(ctx agent.Context, in city) (weather, error) {
				o.during(id)
				if g.rec != nil {
					require.Equal(g, id, ae.CallFromContext(ctx).ID)
				}
				if in.City == "Atlantis" {
					return weather{}, errors.New("no such city")
				}
				return weather{len(in.City)}, nil
			})
		}
		model := says(
			answer(text("I ask both."), call("c1", "weather", map[string]any{"city": "Oslo"}), call("c2", "weather2", map[string]any{"city": "Atlantis"})),
			answer(text("4 degrees, and a myth.")),
		)
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{wait("weather", "c1"), wait("weather2", "c2")}})
		require.NoError(g, g.run(root, user("Oslo and Atlantis?")))
	},
	"unknown-tool": func(g *rig) {
		model := says(answer(call("c1", "wether", map[string]any{"city": "Oslo"})), answer(text("I cannot.")))
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{forecast(g)}})
		require.NoError(g, g.run(root, user("Is it cold in Oslo?")))
	},
	"retry": func(g *rig) {
		g.plugins = append(g.plugins, must[*plugin.Plugin](g)(retryandreflect.New()))
		model := says(
			answer(call("c1", "weather", map[string]any{"city": "Atlantis"})), answer(call("c2", "weather", map[string]any{"city": "Oslo"})), answer(text("4 degrees.")),
		)
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{forecast(g)}})
		require.NoError(g, g.run(root, user("Is it cold?")))
	},
	"model-error": func(g *rig) {
		model := says(answer(call("c1", "weather", map[string]any{"city": "Oslo"})), []any{genai.APIError{Code: 503, Message: "the model is overloaded"}})
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{forecast(g)}})
		require.ErrorContains(g, g.run(root, user("Is it cold?")), "overloaded")
	},
	"stopped": func(g *rig) {
		g.mode = agent.StreamingModeSSE
		// The caller gets pieces as they come, and the model may be ahead: it waits for the end.
		model := says([]any{piece(text("It ")), func(ctx context.Context) { <-ctx.Done() }, context.Canceled})
		root := llm(g, llmagent.Config{Name: "guide", Model: model})
		g.stop = func(*session.Event) bool { return true }
		require.NoError(g, g.run(root, user("Is it cold?")))
	},
	"cancelled": func(g *rig) {
		ctx, cancel := context.WithCancel(repeatable(g.Context()))
		g.ctx = ctx
		slow := function(g, functiontool.Config{Name: "slow", Description: "waits"}, func(ctx agent.Context, _ city) (weather, error) {
			cancel()
			<-ctx.Done()
			return weather{}, ctx.Err()
		})
		model := says(answer(call("c1", "slow", map[string]any{"city": "Oslo"})), []any{context.Canceled})
		root := llm(g, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{slow}})
		require.ErrorIs(g, g.run(root, user("Is it cold?")), context.Canceled)
	},
	"transfer": func(g *rig) {
		billing := llm(g, llmagent.Config{Name: "billing", Description: "knows bills", Model: says(
			answer(call("c2", "weather", map[string]any{"city": "Oslo"})), answer(text("Your bill is right.")),
		), Tools: []tool.Tool{forecast(g)}})
		root := llm(g, llmagent.Config{Name: "desk", Model: says(answer(text("Billing helps you."), transfer("c1", "billing"))), SubAgents: []agent.Agent{billing}})
		require.NoError(g, g.run(root, user("Is my bill right?")))
	},
	"transfer-back": func(g *rig) {
		billing := llm(g, llmagent.Config{Name: "billing", Description: "knows bills", Model: says(answer(text("That is no bill."), transfer("c2", "desk")))})
		root := llm(g, llmagent.Config{Name: "desk", Model: says(answer(transfer("c1", "billing")), answer(text("Then I help you."))), SubAgents: []agent.Agent{billing}})
		require.NoError(g, g.run(root, user("Is my bill right?")))
	},
	"agent-tool": func(g *rig) {
		inner := llm(g, g.adapter.Config(llmagent.Config{Name: "researcher", Description: "finds things", Model: says(
			[]any{piece(text("I look.")), whole(text("I look."), call("c2", "weather", map[string]any{"city": "Oslo"}))}, answer(text("It is cold.")),
		), Tools: []tool.Tool{forecast(g)}}))
		root := llm(g, llmagent.Config{
			Name: "lead", Model: says(answer(call("c1", "researcher", map[string]any{"request": "How is Oslo?"})), answer(text("Oslo is cold."))),
			Tools: []tool.Tool{agenttool.New(inner, nil)},
		})
		require.NoError(g, g.run(root, user("Shall I go to Oslo?")))
	},
	"agent-tool-fails": func(g *rig) {
		inner := llm(g, g.adapter.Config(llmagent.Config{Name: "researcher", Description: "finds things", Model: says([]any{errors.New("the model is overloaded")})}))
		root := llm(g, llmagent.Config{
			Name: "lead", Model: says(answer(call("c1", "researcher", map[string]any{"request": "How is Oslo?"})), answer(text("I do not know."))),
			Tools: []tool.Tool{agenttool.New(inner, nil)},
		})
		require.NoError(g, g.run(root, user("Shall I go to Oslo?")))
	},
	"agent-tools-at-once": func(g *rig) {
		o := g.overlap()
		inner := llm(g, g.adapter.Config(llmagent.Config{Name: "researcher", Description: "finds things", Mode: llmagent.ModeChat, Model: says(
			[]any{func(context.Context) { o.during("c1") }, whole(text("Cold."))}, []any{func(context.Context) { o.during("c2") }, whole(text("Warm."))},
		)}))
		root := llm(g, llmagent.Config{
			Name: "lead", Model: says(answer(call("c1", "researcher", map[string]any{"request": "Oslo?"}), call("c2", "researcher", map[string]any{"request": "Rome?"})), answer(text("Rome."))),
			Tools: []tool.Tool{agenttool.New(inner, nil)},
		})
		require.NoError(g, g.run(root, user("Oslo or Rome?")))
	},
	"workflow": func(g *rig) {
		step := func(name string, answers ...[]any) agent.Agent {
			return llm(g, llmagent.Config{Name: name, Description: name, Model: says(answers...), Tools: []tool.Tool{must[tool.Tool](g)(exitlooptool.New())}})
		}
		// North asks its model, south starts and asks its own, north is answered and ends, south.
		var order turns
		north := []any{func(context.Context) { order.next(); order.wait(2) }, whole(text("Cold."))}
		south := []any{func(context.Context) { order.next(); order.wait(3) }, whole(text("Warm."))}
		at := func(agentName string, do func()) func(agent.Context) (*genai.Content, error) {
			return func(ctx agent.Context) (*genai.Content, error) {
				if ctx.AgentName() == agentName {
					do()
				}
				return nil, nil
			}
		}
		g.before = append(g.before, must[*plugin.Plugin](g)(plugin.New(plugin.Config{Name: "before", BeforeAgentCallback: at("south", func() { order.wait(1) })})))
		g.plugins = append(g.plugins, must[*plugin.Plugin](g)(plugin.New(plugin.Config{Name: "after", AfterAgentCallback: at("north", order.next)})))
		both := must[agent.Agent](g)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
			Name: "both", SubAgents: []agent.Agent{step("north", north), step("south", south)},
		}}))
		loop := must[agent.Agent](g)(loopagent.New(loopagent.Config{MaxIterations: 3, AgentConfig: agent.Config{
			Name: "polish", SubAgents: []agent.Agent{step("critic", answer(text("Too short.")), answer(call("c1", "exit_loop", nil)))},
		}}))
		root := must[agent.Agent](g)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "report", SubAgents: []agent.Agent{both, loop}}}))
		require.NoError(g, g.run(root, user("Write a report.")))
	},
	"asked": func(g *rig) {
		ask := workflow.NewEmittingFunctionNode("ask", func(ctx agent.Context, in any, emit func(*session.Event) error) (any, error) {
			return nil, emit(workflow.NewRequestInputEvent(ctx, session.RequestInput{InterruptID: "q1", Message: "Which city?"}))
		}, workflow.NodeConfig{})
		tell := workflow.NewFunctionNode("tell", func(_ agent.Context, in any) (any, error) { return fmt.Sprint(in), nil }, workflow.NodeConfig{})
		root := must[agent.Agent](g)(workflowagent.New(workflowagent.Config{Name: "trip", Edges: workflow.Chain(workflow.Start, ask, tell)}))
		require.NoError(g, g.run(root, user("Plan a trip.")))
		g.golden("asked-waits")
		require.NoError(g, g.run(root, reply("q1", workflow.WorkflowInputFunctionCallName, map[string]any{"response": "Oslo"})))
	},
	"without-a-model": func(g *rig) {
		custom := must[agent.Agent](g)(agent.New(agent.Config{Name: "clock", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.LLMResponse.Content = genai.NewContentFromText("It is noon.", genai.RoleModel)
				yield(ev, nil)
			}
		}}))
		require.NoError(g, g.run(custom, user("What time is it?")))
	},
	"callbacks": func(g *rig) { // that answer in the place of the model, and of a tool, and after an error
		n := 0
		root := llm(g, llmagent.Config{
			Name: "guide", Model: says(answer(call("c2", "weather", map[string]any{"city": "Rome"})), []any{errors.New("the model is overloaded")}), Tools: []tool.Tool{forecast(g)},
			BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
				if n++; n == 1 {
					return whole(text("I know that."), call("c1", "weather", map[string]any{"city": "Oslo"})), nil
				}
				return nil, nil
			}},
			OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
				return &model.LLMResponse{Content: genai.NewContentFromText("I am busy.", genai.RoleModel)}, nil
			}},
			BeforeToolCallbacks: []llmagent.BeforeToolCallback{func(ctx agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
				if args["city"] == "Rome" {
					return map[string]any{"cached": 20}, nil
				}
				return nil, nil
			}},
		})
		require.NoError(g, g.run(root, user("How is it?")))
	},
	"ended-by-a-callback": func(g *rig) {
		root := llm(g, llmagent.Config{Name: "guide", Model: says(), BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) {
			return genai.NewContentFromText("We are closed.", genai.RoleModel), nil
		}}})
		require.NoError(g, g.run(root, user("How is it?")))
	},
	"refused-by-the-model": func(g *rig) {
		root := llm(g, llmagent.Config{Name: "guide", Model: says([]any{&model.LLMResponse{ErrorCode: "SAFETY", ErrorMessage: "blocked", FinishReason: genai.FinishReasonSafety}})})
		require.NoError(g, g.run(root, user("How is it?")))
	},
	"refused-by-the-last-model": func(g *rig) { // the run ends as its last agent does
		billing := llm(g, llmagent.Config{Name: "billing", Description: "knows bills", Model: says([]any{&model.LLMResponse{ErrorCode: "RECITATION"}})})
		root := llm(g, llmagent.Config{Name: "desk", Model: says(answer(transfer("c1", "billing"))), SubAgents: []agent.Agent{billing}})
		require.NoError(g, g.run(root, user("Is my bill right?")))
	},
	"refused-by-the-first-model": func(g *rig) { // the next agent of the workflow answers
		draft := llm(g, llmagent.Config{Name: "draft", Model: says([]any{&model.LLMResponse{ErrorCode: "SAFETY"}})})
		root, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
			Name: "write", SubAgents: []agent.Agent{draft, llm(g, llmagent.Config{Name: "review", Model: says(answer(text("Nothing to review.")))})},
		}})
		require.NoError(g, err)
		require.NoError(g, g.run(root, user("Write.")))
	},
	"refused-to-a-tool": func(g *rig) {
		inner := llm(g, g.adapter.Config(llmagent.Config{Name: "inner", Description: "looks", Model: says([]any{&model.LLMResponse{ErrorCode: "SAFETY", ErrorMessage: "blocked"}})}))
		root := llm(g, llmagent.Config{Name: "guide", Tools: []tool.Tool{agenttool.New(inner, nil)}, Model: says(answer(call("c1", "inner", map[string]any{"request": "Look."})), answer(text("No.")))})
		require.NoError(g, g.run(root, user("Look.")))
	},
	"left-at-the-answer": func(g *rig) {
		g.stop = (*session.Event).IsFinalResponse
		root := llm(g, llmagent.Config{Name: "guide", Tools: []tool.Tool{forecast(g)}, Model: says(answer(call("c1", "weather", map[string]any{"city": "Oslo"})), answer(text("It is cold.")))})
		require.NoError(g, g.run(root, user("Is it cold?")))
	},
	"left-at-the-streamed-answer": func(g *rig) {
		g.mode = agent.StreamingModeSSE
		g.stop = (*session.Event).IsFinalResponse
		root := llm(g, llmagent.Config{Name: "guide", Model: says([]any{piece(text("It ")), piece(text("is cold.")), whole(text("It is cold."))})})
		require.NoError(g, g.run(root, user("Is it cold?")))
	},
	"left-at-the-refusal": func(g *rig) {
		g.stop = (*session.Event).IsFinalResponse
		root := llm(g, llmagent.Config{Name: "guide", Model: says([]any{&model.LLMResponse{ErrorCode: "SAFETY", ErrorMessage: "blocked"}})})
		require.NoError(g, g.run(root, user("How is it?")))
	},
	"left-at-the-answer-after-a-transfer": func(g *rig) {
		g.stop = (*session.Event).IsFinalResponse
		billing := llm(g, llmagent.Config{Name: "billing", Description: "knows bills", Model: says(answer(text("Your bill is right.")))})
		root := llm(g, llmagent.Config{Name: "desk", Model: says(answer(transfer("c1", "billing"))), SubAgents: []agent.Agent{billing}})
		require.NoError(g, g.run(root, user("Is my bill right?")))
	},
	"left-in-a-workflow": func(g *rig) { // the answer of its first agent is not the last one
		g.stop = (*session.Event).IsFinalResponse
		root, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
			Name: "write", SubAgents: []agent.Agent{llm(g, llmagent.Config{Name: "draft", Model: says(answer(text("Once.")))}), llm(g, llmagent.Config{Name: "review", Model: says()})},
		}})
		require.NoError(g, err)
		require.NoError(g, g.run(root, user("Write.")))
	},
	"left-at-a-question": func(g *rig) {
		g.stop = (*session.Event).IsFinalResponse
		long := function(g, functiontool.Config{Name: "slow", Description: "a person answers", IsLongRunning: true}, func(agent.Context, city) (weather, error) { return weather{}, nil })
		root := llm(g, llmagent.Config{Name: "guide", Tools: []tool.Tool{long}, Model: says(answer(call("c1", "slow", map[string]any{"city": "Oslo"})), answer(text("Please wait.")))})
		require.NoError(g, g.run(root, user("Is it cold?")))
	},
	"single-turn": func(g *rig) { // sub-agents that the framework makes tools
		sub := llm(g, llmagent.Config{Name: "researcher", Description: "finds things", Mode: llmagent.ModeSingleTurn, Model: says(
			answer(call("c2", "weather", map[string]any{"city": "Oslo"})), answer(text("It is cold.")),
		), Tools: []tool.Tool{forecast(g)}})
		root := llm(g, llmagent.Config{Name: "lead", SubAgents: []agent.Agent{sub}, Model: says(
			answer(call("c1", "researcher", map[string]any{"request": "How is Oslo?"})), answer(text("Oslo is cold.")),
		)})
		require.NoError(g, g.run(root, user("Shall I go to Oslo?")))
	},
	"single-turns-at-once": func(g *rig) {
		o := g.overlap()
		sub := llm(g, llmagent.Config{Name: "researcher", Description: "finds things", Mode: llmagent.ModeSingleTurn, Model: says(
			[]any{func(context.Context) { o.during("c1") }, whole(text("Cold."))}, []any{func(context.Context) { o.during("c2") }, whole(text("Warm."))},
		)})
		root := llm(g, llmagent.Config{Name: "lead", SubAgents: []agent.Agent{sub}, Model: says(
			answer(call("c1", "researcher", map[string]any{"request": "Oslo?"}), call("c2", "researcher", map[string]any{"request": "Rome?"})), answer(text("Rome.")),
		)})
		require.NoError(g, g.run(root, user("Oslo or Rome?")))
	},
	"task": func(g *rig) {
		sub := llm(g, llmagent.Config{Name: "researcher", Description: "finds things", Mode: llmagent.ModeTask, Model: says(
			answer(call("c2", "weather", map[string]any{"city": "Oslo"})), answer(call("c3", "finish_task", map[string]any{"result": "It is cold."})),
		), Tools: []tool.Tool{forecast(g)}})
		root := llm(g, llmagent.Config{Name: "lead", SubAgents: []agent.Agent{sub}, Model: says(
			answer(call("c1", "researcher", map[string]any{"request": "How is Oslo?"})), answer(text("Oslo is cold.")),
		)})
		require.NoError(g, g.run(root, user("Shall I go to Oslo?")))
	},
	"confirmed": func(g *rig) { confirm(g, true) },
	"rejected":  func(g *rig) { confirm(g, false) },
	"long-running": func(g *rig) {
		ticket := function(g, functiontool.Config{Name: "ticket", Description: "opens a ticket", IsLongRunning: true}, func(agent.Context, city) (map[string]any, error) {
			return map[string]any{"ticket": "T-1", "status": "pending"}, nil
		})
		root := llm(g, llmagent.Config{Name: "desk", Model: says(
			answer(call("c1", "ticket", map[string]any{"city": "Oslo"})), answer(text("I have opened ticket T-1.")), answer(text("It is done.")),
		), Tools: []tool.Tool{ticket}})
		require.NoError(g, g.run(root, user("Open a ticket.")))
		g.golden("long-running-waits")
		require.NoError(g, g.run(root, reply("c1", "ticket", map[string]any{"status": "done"})))
	},
}

func confirm(g *rig, yes bool) {
	ran := 0
	pay := function(g, functiontool.Config{Name: "pay", Description: "pays", RequireConfirmation: true}, func(agent.Context, city) (weather, error) {
		ran++
		return weather{7}, nil
	})
	said := map[bool]string{true: "Paid.", false: "Then not."}[yes]
	root := llm(g, llmagent.Config{Name: "clerk", Model: says(
		answer(text("I pay."), call("c1", "pay", map[string]any{"city": "Oslo"})), answer(text(said)),
	), Tools: []tool.Tool{pay}})
	require.NoError(g, g.run(root, user("Pay the bill.")))
	g.golden("confirmation-asked")
	asked := ""
	for _, ev := range g.seen {
		for _, id := range ev.LongRunningToolIDs {
			asked = id
		}
	}
	require.NoError(g, g.run(root, reply(asked, toolconfirmation.FunctionCallName, map[string]any{"confirmed": yes})))
	require.Equal(g, map[bool]int{true: 1, false: 0}[yes], ran)
}

// An overlap of the calls c1 and c2: c1 begins, c2 begins, c1 ends, c2 ends.
type overlap struct {
	turns
	off bool
}

// overlap makes the runner's calls overlap; where nothing is recorded they run in turn.
func (g *rig) overlap() *overlap {
	o := &overlap{off: g.rec == nil}
	if o.off {
		g.ctx = platform.WithTaskRunner(repeatable(g.Context()), inTurn)
		return o
	}
	g.before = append(g.before, must[*plugin.Plugin](g)(plugin.New(plugin.Config{
		Name: "before",
		BeforeToolCallback: func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
			if ctx.FunctionCallID() == "c2" {
				o.wait(1)
			}
			return nil, nil
		},
	})))
	g.plugins = append(g.plugins, must[*plugin.Plugin](g)(plugin.New(plugin.Config{
		Name: "after",
		AfterToolCallback: func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
			o.next()
			return nil, nil
		},
	})))
	return o
}

// during is called while a call runs.
func (o *overlap) during(id string) {
	if o.off {
		return
	}
	o.next()
	o.wait(map[string]int{"c1": 2, "c2": 3}[id])
}

// inTurn runs tasks one after the other.
func inTurn(ctx context.Context, tasks []func(context.Context)) {
	for _, run := range tasks {
		run(ctx)
	}
}

// turns let things happen one after the other.
type turns struct {
	mu   sync.Mutex
	cond *sync.Cond
	at   int
}

func (o *turns) wait(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cond == nil {
		o.cond = sync.NewCond(&o.mu)
	}
	for o.at < n {
		o.cond.Wait()
	}
}

func (o *turns) next() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at++
	if o.cond != nil {
		o.cond.Broadcast()
	}
}

// TestMain fails when anything is written to the standard logger.
func TestMain(m *testing.M) {
	var said bytes.Buffer
	log.SetOutput(&said)
	code := m.Run()
	if said.Len() > 0 && code == 0 {
		fmt.Fprintln(os.Stderr, "the standard logger was used:", said.String())
		code = 1
	}
	os.Exit(code)
}

func TestTrees(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			scenario(g)
			if t.Failed() {
				return
			}
			g.golden(name)
			if !g.rec.Snapshot(g.runID()).Status.Terminal() {
				t.Error("the run is not over")
			}
		})
	}
}

// Facts that trees do not show.
func TestFirstTokenAndState(t *testing.T) {
	g := newRig(t)
	scenarios["streaming"](g)
	returns, said := 0, []string{}
	for _, ev := range g.rec.Events() {
		switch p := ev.Payload.(type) {
		case *ae.ModelReturned:
			returns++
			require.True(t, p.TimeToFirstToken.OK)
			require.True(t, p.Duration.OK)
			require.Equal(t, "scripted-1-001", p.Model)
		case *ae.AgentReasoned:
			said = append(said, "thought: "+p.Reasoning)
		case *ae.TextCompleted:
			said = append(said, p.Text)
		}
	}
	require.Equal(t, 2, returns)
	require.Equal(t, []string{"thought: I ask the tool.", "thought: cold", "It is 4 degrees."}, said, "each whole, and once")

	g = newRig(t)
	scenarios["model-error"](g)
	g.rec.Want(t, "guide model.returned error.code=503 error.retryable=true")

	g = newRig(t)
	scenarios["state"](g)
	require.Equal(t, map[string]ae.JSON{"seen": `{"last":"Oslo"}`, "answer": `"Noted."`}, g.rec.Snapshot(g.runID()).State)
}

// The framework gets the same bytes with and without the recorder.
func TestNothingChanges(t *testing.T) {
	emitter := func(t testing.TB, sinks ...ae.Sink) *ae.Emitter {
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: sinks, OnError: func(error) {}})
		require.NoError(t, err)
		return em
	}
	recorders := map[string]func(t testing.TB) *adk.Recorder{
		"nil recorder": func(testing.TB) *adk.Recorder { return nil },
		"nil emitter":  func(testing.TB) *adk.Recorder { return &adk.Recorder{} },
		"recording":    func(t testing.TB) *adk.Recorder { return &adk.Recorder{Emitter: emitter(t)} },
		"sink panics": func(t testing.TB) *adk.Recorder {
			return &adk.Recorder{Emitter: emitter(t, sink(func() error { panic("the sink") }))}
		},
		"sink fails": func(t testing.TB) *adk.Recorder {
			return &adk.Recorder{Emitter: emitter(t, sink(func() error { return errors.New("the disk is full") }))}
		},
		"closed": func(t testing.TB) *adk.Recorder {
			em := emitter(t)
			require.NoError(t, em.Close(t.Context()))
			return &adk.Recorder{Emitter: em}
		},
		"all is refused": func(t testing.TB) *adk.Recorder {
			em, err := ae.NewEmitter(ae.EmitterOptions{OnViolation: func(*ae.RuleError) {}, Guard: func(ae.Event) *ae.RuleError { return &ae.RuleError{Rule: "no"} }})
			require.NoError(t, err)
			return &adk.Recorder{Emitter: em}
		},
		"guard panics": func(t testing.TB) *adk.Recorder {
			em, err := ae.NewEmitter(ae.EmitterOptions{OnViolation: func(*ae.RuleError) {}, Guard: func(ae.Event) *ae.RuleError { panic("the guard") }})
			require.NoError(t, err)
			return &adk.Recorder{Emitter: em}
		},
	}
	for name, scenario := range scenarios {
		bare := &rig{TB: t, bare: true}
		scenario(bare)
		want, err := json.Marshal(bare.seen)
		require.NoError(t, err)
		for how, recorder := range recorders {
			t.Run(name+"/"+how, func(t *testing.T) {
				g := &rig{TB: t, adapter: recorder(t)}
				scenario(g)
				got, err := json.Marshal(g.seen)
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
			})
		}
	}
}

type sink func() error

func (s sink) WriteEvent(context.Context, ae.Event) error { return s() }

// The plugin alone, as in a server of the framework, knows how a run ends that goes well.
func TestPluginAlone(t *testing.T) {
	g := newRig(t)
	g.alone = true
	scenarios["transfer-back"](g)
	require.Equal(t, ae.RunStatusCompleted, g.rec.Snapshot(g.runID()).Status)
	g.rec.Want(t, "desk agent.started Is…", "desk agent.handoff billing", "billing agent.ended converged", "run.completed")
	g.rec.WantLaws(t, eventtest.LawOptions{})

	g = newRig(t)
	g.alone = true
	confirm(g, true)
	require.Equal(t, ae.RunStatusCompleted, g.rec.Snapshot(g.runID()).Status)

	g = newRig(t)
	g.alone = true
	scenarios["model-error"](g)
	g.rec.Want(t, "model.returned error.code=503", "guide agent.ended error.message=an…", "run.failed")
	g.rec.WantLaws(t, eventtest.LawOptions{})

	g = newRig(t)
	g.alone = true
	scenarios["refused-by-the-model"](g)
	g.rec.Want(t, "model.returned error.code=SAFETY", "guide agent.ended error.message=blocked", "run.failed")
	g.rec.WantLaws(t, eventtest.LawOptions{})
}

// A process asks, and another one gets the answer.
func TestConfirmationAfterACrash(t *testing.T) {
	g := newRig(t)
	clerk := func(answers ...[]any) agent.Agent {
		pay := function(t, functiontool.Config{Name: "pay", Description: "pays", RequireConfirmation: true}, func(agent.Context, city) (weather, error) { return weather{7}, nil })
		return llm(t, llmagent.Config{Name: "clerk", Model: says(answers...), Tools: []tool.Tool{pay}})
	}
	require.NoError(t, g.run(clerk(answer(call("c1", "pay", map[string]any{"city": "Oslo"}))), user("Pay the bill.")))
	asked := g.seen[len(g.seen)-1].LongRunningToolIDs[0]
	snapshot := g.rec.Snapshot(g.runID())

	next := newRig(t)
	next.service = g.service
	_, err := next.adapter.Emitter.Resume(snapshot)
	require.NoError(t, err)
	require.NoError(t, next.run(clerk(answer(text("Paid."))), reply(asked, toolconfirmation.FunctionCallName, map[string]any{"confirmed": true})))
	next.rec.Filter(eventtest.NotSynthetic).Want(t, "run.resumed", "approval.granted c1", "agent.toolReturned c1 ok", "agent.text Paid.", "agent.ended converged", "run.completed")
	require.Empty(t, next.rec.Find(t, "agent.toolReturned")[1:])
}

// One recorder serves runs at the same time, and does not mix up their events.
func TestConcurrentRuns(t *testing.T) {
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	adapter := &adk.Recorder{Emitter: em}
	// Without a mode the runner sets it, which is a race of its own.
	inner := llm(t, adapter.Config(llmagent.Config{Name: "researcher", Description: "finds things", Mode: llmagent.ModeChat, Model: once{answer(text("Cold."))}}))
	root := llm(t, llmagent.Config{
		Name: "lead", Mode: llmagent.ModeChat, Tools: []tool.Tool{agenttool.New(inner, nil), forecast(t)}, Model: once{
			answer(call("", "researcher", map[string]any{"request": "Oslo?"}), call("", "weather", map[string]any{"city": "Atlantis"}), call("", "researcher", map[string]any{"request": "Rome?"})),
			answer(text("Rome.")),
		},
	})
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{adapter.Plugin()}},
	})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for _, err := range adapter.Run(t.Context(), r, "u", fmt.Sprint("s", i), user("Oslo or Rome?"), agent.RunConfig{}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	runs := map[string]bool{}
	for _, ev := range rec.Events() {
		runs[ev.RunID] = true
	}
	require.Len(t, runs, 16)
	for id := range runs {
		s := rec.Snapshot(id)
		require.Equal(t, ae.RunStatusCompleted, s.Status)
		require.Len(t, s.Agents, 3)
		require.EqualValues(t, 4*10, s.Usage.Usage.InputTokens)
		require.Equal(t, 3, len(s.ClosedCalls))
	}
	rec.WantLaws(t, eventtest.LawOptions{})
}

// once answers the n-th request of a conversation with the n-th answer.
type once [][]any

func (once) Name() string { return "scripted-1" }

func (o once) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	n := 0
	for _, c := range req.Contents {
		if c.Role == genai.RoleModel {
			n++
		}
	}
	return says(o[n]).GenerateContent(ctx, req, stream)
}

// The context of a tool carries the call, and the context of a model no agent: the call that a
// recorder in its client would add is recorded already.
func TestContexts(t *testing.T) {
	g := newRig(t)
	type key struct{}
	g.ctx = platform.WithTaskRunner(repeatable(t.Context()), func(ctx context.Context, tasks []func(context.Context)) {
		for i, run := range tasks {
			run(context.WithValue(ctx, key{}, i+1))
		}
	})
	var seen []string
	look := function(t, functiontool.Config{Name: "look", Description: "looks"}, func(ctx agent.Context, in city) (weather, error) {
		c := ae.CallFromContext(ctx)
		seen = append(seen, fmt.Sprint(ae.AgentFromContext(ctx).ID(), " ", c.ID, " ", ctx.Value(key{})))
		return weather{1}, ae.AgentFromContext(ctx).Emit(ctx, &ae.TextCompleted{Text: "from " + c.ID})
	})
	alone := func(ctx context.Context) { require.Nil(t, ae.AgentFromContext(ctx)) }
	inner := llm(t, g.adapter.Config(llmagent.Config{Name: "inner", Description: "looks", Tools: []tool.Tool{look}, Model: says(
		[]any{alone, whole(call("c3", "look", map[string]any{"city": "Rome"}))}, []any{alone, whole(text("Seen."))},
	)}))
	root := llm(t, llmagent.Config{Name: "outer", Tools: []tool.Tool{look, agenttool.New(inner, nil)}, Model: says(
		[]any{alone, whole(call("c1", "look", map[string]any{"city": "Oslo"}), call("c2", "inner", map[string]any{"request": "Look."}))}, []any{alone, whole(text("Done."))},
	)})
	outer, err := g.adapter.Emitter.Run("outer")
	require.NoError(t, err)
	g.ctx = ae.ContextWithAgent(g.ctx, outer.Agent("somebody"))
	require.NoError(t, g.run(root, user("Look.")))
	require.Equal(t, []string{"outer c1 1", "inner/c2 c3 1"}, seen)
	g.rec.WantLaws(t, eventtest.LawOptions{})
	require.Empty(t, outer.State().Agents)
}

// The log has the reason that the caller gives for a cancellation.
func TestCauseOfACancellation(t *testing.T) {
	g := newRig(t)
	ctx, cancel := context.WithCancelCause(repeatable(t.Context()))
	g.ctx = ctx
	slow := function(t, functiontool.Config{Name: "slow", Description: "waits"}, func(ctx agent.Context, _ city) (weather, error) {
		cancel(errors.New("the person pressed stop"))
		<-ctx.Done()
		return weather{}, ctx.Err()
	})
	model := says(answer(call("c1", "slow", map[string]any{"city": "Oslo"})), []any{context.Canceled})
	require.Error(t, g.run(llm(t, llmagent.Config{Name: "guide", Model: model, Tools: []tool.Tool{slow}}), user("Is it cold?")))
	g.rec.Want(t, `guide agent.toolReturned slow cancelled error.message="the person pressed stop"`, `guide agent.ended aborted error.message="the person pressed stop"`, `run.cancelled reason="the person pressed stop"`)
	g.rec.WantLaws(t, eventtest.LawOptions{})
}

// A caller whose loop panics has stopped reading.
func TestCallerPanics(t *testing.T) {
	g := newRig(t)
	g.stop = func(*session.Event) bool { panic("the caller") }
	require.PanicsWithValue(t, "the caller", func() {
		_ = g.run(llm(t, llmagent.Config{Name: "guide", Model: says(answer(text("Hello.")))}), user("Hello?"))
	})
	g.rec.Want(t, "guide agent.ended aborted", "run.cancelled the…")
	g.rec.WantLaws(t, eventtest.LawOptions{})
}

// Config is for agents that are tools. Where the plugin reaches the agent it changes nothing.
func TestConfigBesideThePlugin(t *testing.T) {
	log := func(config func(*rig, llmagent.Config) llmagent.Config) (lines []string) {
		g := newRig(t)
		g.mode = agent.StreamingModeSSE
		require.NoError(t, g.run(llm(t, config(g, llmagent.Config{Name: "guide", Tools: []tool.Tool{forecast(t)}, Model: says(
			[]any{piece(text("I ")), piece(text("ask.")), whole(text("I ask."), call("c1", "weather", map[string]any{"city": "Atlantis"}))}, answer(text("No.")),
		)})), user("Is it cold?")))
		for _, ev := range g.rec.Events() {
			lines = append(lines, eventtest.Describe(ev))
		}
		return lines
	}
	require.Equal(t,
		log(func(_ *rig, cfg llmagent.Config) llmagent.Config { return cfg }),
		log(func(g *rig, cfg llmagent.Config) llmagent.Config { return g.adapter.Config(cfg) }),
	)
}

// In a live run the framework does not report the starts and ends of agents.
func TestLiveRun(t *testing.T) {
	g := newRig(t)
	root := llm(t, llmagent.Config{Name: "guide", Model: says(answer(text("Hello.")))})
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{g.adapter.Plugin()}},
	})
	require.NoError(t, err)
	_, _, err = r.RunLive(t.Context(), "u", "s", agent.LiveRunConfig{})
	require.ErrorContains(t, err, "live")
	require.Empty(t, g.rec.Events())
}

// A tool that runs a runner has a run in its run. The agents of the outer one stay whose they are.
func TestRunnerInATool(t *testing.T) {
	g := newRig(t)
	inner, err := runner.New(runner.Config{
		AppName: "inner", Agent: llm(t, g.adapter.Config(llmagent.Config{Name: "aide", Model: says(answer(text("Here.")))})), SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{g.adapter.Plugin()}},
	})
	require.NoError(t, err)
	ask := function(t, functiontool.Config{Name: "ask", Description: "asks"}, func(ctx agent.Context, _ city) (weather, error) {
		for _, err := range inner.Run(ctx, "u", "s", user("Are you there?"), agent.RunConfig{}) {
			require.NoError(t, err)
		}
		return weather{}, nil
	})
	sub := llm(t, llmagent.Config{Name: "sub", Description: "helps", Model: says(answer(text("Done.")))})
	require.NoError(t, g.run(llm(t, llmagent.Config{
		Name: "lead", Tools: []tool.Tool{ask}, SubAgents: []agent.Agent{sub}, Model: says(answer(call("c1", "ask", map[string]any{"city": "Oslo"})), answer(transfer("c2", "sub"))),
	}), user("Ask.")))
	g.rec.WantLaws(t, eventtest.LawOptions{})
	require.Equal(t, "lead", g.rec.Snapshot(g.runID()).Agents["sub"].ParentAgentID)
	require.Len(t, g.rec.Snapshot(g.runID()).Agents, 2)
	require.Len(t, g.rec.Find(t, "run.completed"), 2)
}

func TestNothingLeaks(t *testing.T) {
	secrets := new(ae.Secrets)
	const secret = "C4N4RYs3cr3t"
	require.NoError(t, secrets.Add(secret))
	var log strings.Builder
	em, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})},
		Redaction: &ae.Policy{Secrets: secrets, Reasoning: ae.VerbosityFull},
	})
	require.NoError(t, err)
	fail := function(t, functiontool.Config{Name: "fail", Description: "fails"}, func(agent.Context, city) (weather, error) { return weather{}, errors.New(secret) })
	g := &rig{TB: t, adapter: &adk.Recorder{Emitter: em}, mode: agent.StreamingModeSSE}
	_ = g.run(llm(t, llmagent.Config{Name: "guide", Tools: []tool.Tool{fail}, Model: says(
		[]any{piece(thought("C4N4")), piece(thought("RYs3cr3t")), piece(text("C4N4RY")), piece(text("s3cr3t")), whole(thought(secret), text(secret), call("c1", "fail", map[string]any{"city": secret}))},
		[]any{errors.New(secret)},
	)}), user(secret))
	require.NoError(t, em.Close(t.Context()))
	require.Contains(t, log.String(), "REDACTED")
	require.NotContains(t, log.String(), secret)
	require.NotContains(t, log.String(), "s3cr3t")
}
