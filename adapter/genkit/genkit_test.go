package genkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	aiexp "github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/core/status"
	"github.com/firebase/genkit/go/genkit"
	genkitexp "github.com/firebase/genkit/go/genkit/exp"
	"github.com/firebase/genkit/go/plugins/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	aegenkit "github.com/agentevents/agentevents/adapter/genkit"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

// patience is how long a test waits before it gives up.
const patience = 30 * time.Second

var update = flag.Bool("update", false, "write the golden trees")

// A line is the answer of a scripted model to one request.
type line struct {
	parts  []*ai.Part
	err    error // after the parts
	panics bool
}

// A script is a model that answers with one line after the other.
type script struct {
	mu    sync.Mutex
	lines []line
}

func (m *script) next() line {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[0]
	m.lines = m.lines[1:]
	return l
}

func (m *script) answer(ctx context.Context, req *ai.ModelRequest, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	l := m.next()
	if l.panics {
		panic("the model broke")
	}
	if stream != nil {
		for _, p := range l.parts {
			if err := stream(ctx, &ai.ModelResponseChunk{Content: []*ai.Part{p}}); err != nil {
				return nil, err
			}
		}
	}
	if err := errors.Join(l.err, ctx.Err()); err != nil {
		return nil, err
	}
	return &ai.ModelResponse{
		Request: req, Message: ai.NewModelMessage(l.parts...), FinishReason: ai.FinishReasonStop,
		Usage: &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 10, ThoughtsTokens: 4, TotalTokens: 110},
	}, nil
}

var supports = &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true, SystemRole: true}}

// begin returns a genkit, and a run whose events are recorded.
func begin(t testing.TB) (*genkit.Genkit, *ae.Run, *eventtest.Recorder) {
	t.Helper()
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{})
	run, err := em.Run("r1")
	require.NoError(t, err)
	return genkit.Init(t.Context()), run, rec
}

// define defines a model without a configuration.
func define(g *genkit.Genkit, name string, fn ai.ModelFunc) *ai.ModelAction {
	return genkit.DefineModelAction(g, name, supports, func(ctx context.Context, req *ai.ModelRequest, _ any, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		return fn(ctx, req, stream)
	})
}

// models defines a model with a script.
func models(g *genkit.Genkit, name string, lines ...line) ai.GenerateOption {
	m := &script{lines: lines}
	return ai.WithModel(define(g, "googleai/"+name, m.answer))
}

// says is an answer in words, which come in two pieces.
func says(text string) line {
	half := len(text) / 2
	return line{parts: []*ai.Part{ai.NewReasoningPart("hm", nil), ai.NewTextPart(text[:half]), ai.NewTextPart(text[half:])}}
}

// calls is an answer that calls tools: pairs of names and texts. The refs count from c1.
func calls(first int, pairs ...string) line {
	var l line
	for i := 0; i < len(pairs); i += 2 {
		l.parts = append(l.parts, ai.NewToolRequestPart(&ai.ToolRequest{Name: pairs[i], Ref: fmt.Sprintf("c%d", first+i/2), Input: map[string]any{"text": pairs[i+1]}}))
	}
	return l
}

// withRefs gives the tool calls of an answer other refs.
func withRefs(l line, ref string) line {
	for _, p := range l.parts {
		p.ToolRequest.Ref = ref
	}
	return l
}

type query struct {
	Text string `json:"text"`
}

func function(g *genkit.Genkit, name string, fn func(ctx *ai.ToolContext, in query) (string, error)) ai.Tool {
	return genkit.DefineTool(g, name, "does "+name, fn)
}

// together returns tools that begin in their order, wait for each other, and return in their
// order, and the middleware that sees to the first.
func together(g *genkit.Genkit, names ...string) (tools []ai.ToolRef, inOrder ai.Middleware) {
	var all sync.WaitGroup
	all.Add(len(names))
	begun, returned := gates(len(names)), gates(len(names))
	for i, name := range names {
		tools = append(tools, function(g, name, func(_ *ai.ToolContext, in query) (string, error) {
			close(begun[i+1])
			all.Done()
			all.Wait()
			<-returned[i]
			if in.Text == "nowhere" {
				return "", errors.New("no such place")
			}
			return name + " of " + in.Text, nil
		}))
	}
	return tools, ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapTool: func(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
			i := slices.Index(names, p.Tool.Name())
			if i < 0 {
				return next(ctx, p)
			}
			<-begun[i]
			defer close(returned[i+1])
			return next(ctx, p)
		}}, nil
	})
}

// gates returns n gates that are closed, after one that is open.
func gates(n int) []chan struct{} {
	out := make([]chan struct{}, n+1)
	for i := range out {
		out[i] = make(chan struct{})
	}
	close(out[0])
	return out
}

func golden(t *testing.T, rec *eventtest.Recorder, name string) {
	t.Helper()
	rec.WantLaws(t, eventtest.LawOptions{Open: strings.HasSuffix(name, "paused")})
	var details report.Details
	for _, ev := range rec.Events() {
		details.Add(&ev)
	}
	var out bytes.Buffer
	require.NoError(t, tree.Write(&out, rec.Snapshot(""), tree.Options{Width: 160, Details: &details}))
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// both runs a test with a model that answers at once, and with one that streams.
func both(t *testing.T, test func(t *testing.T, mode string, how ...ai.GenerateOption)) {
	t.Run("whole", func(t *testing.T) { test(t, "whole") })
	t.Run("stream", func(t *testing.T) {
		test(t, "stream", ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return nil }))
	})
}

func TestTools(t *testing.T) {
	both(t, func(t *testing.T, mode string, how ...ai.GenerateOption) {
		g, run, rec := begin(t)
		tools, inOrder := together(g, "search", "weather", "hotels")
		tools = append(tools, function(g, "book", func(*ai.ToolContext, query) (string, error) { return "12A", nil }))
		r := &aegenkit.Recorder{Run: run, Agent: "travel"}
		resp, err := genkit.Generate(t.Context(), g, append(how, ai.WithPrompt("Book a flight to Oslo"), ai.WithTools(tools...), ai.WithUse(inOrder, r),
			models(g, "gemini-x", calls(1, "search", "Oslo", "weather", "Oslo", "hotels", "Oslo"), calls(4, "book", "SK 1"), says("You fly on Monday.")))...)
		require.NoError(t, err)
		require.Equal(t, "You fly on Monday.", resp.Text())
		require.NoError(t, r.End(t.Context()))
		golden(t, rec, "tools-"+mode)
		require.Equal(t, int64(3*60), rec.Snapshot("").Usage.Usage.InputTokens)
		asked := eventtest.Payloads[*ae.ModelCalled](rec.Events())
		require.Len(t, asked, 3)
		require.Equal(t, []string{"gcp.gemini", "gemini-x"}, []string{asked[0].Provider, asked[0].Model})
		require.Equal(t, []string{"stop"}, eventtest.Payloads[*ae.ModelReturned](rec.Events())[2].FinishReasons)
		var deltas strings.Builder
		for _, d := range eventtest.Payloads[*ae.TextDelta](rec.Events()) {
			deltas.WriteString(d.Delta)
		}
		if mode == "stream" {
			require.Equal(t, resp.Text(), deltas.String())
			require.Len(t, eventtest.Payloads[*ae.ToolArgumentsDelta](rec.Events()), 4)
		}
		require.Len(t, eventtest.Payloads[*ae.TextCompleted](rec.Events()), 1)
		require.Len(t, eventtest.Payloads[*ae.AgentReasoned](rec.Events()), 1)
	})
}

var errDown = status.Errorf(status.ErrUnavailable, "the model is down")

// play generates and records it under one name.
func play(t *testing.T, name string, setup func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption) (*ai.ModelResponse, error) {
	t.Helper()
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	resp, err := genkit.Generate(t.Context(), g, append([]ai.GenerateOption{ai.WithPrompt("Go")}, setup(g, r)...)...)
	require.NoError(t, r.End(t.Context()))
	golden(t, rec, name)
	return resp, err
}

func TestFailingTool(t *testing.T) {
	both(t, func(t *testing.T, mode string, how ...ai.GenerateOption) {
		_, err := play(t, "toolfails-"+mode, func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
			tools, inOrder := together(g, "search", "weather", "hotels")
			return append(how, ai.WithTools(tools...), ai.WithUse(inOrder, r), models(g, "m", calls(1, "search", "nowhere", "weather", "Oslo", "hotels", "Oslo")))
		})
		require.ErrorIs(t, err, ai.ErrToolFailed)
	})
}

// TestToolsAfterAFailure has tools that begin after the failure of another one has ended Generate.
func TestToolsAfterAFailure(t *testing.T) {
	g, run, rec := begin(t)
	failed, release := make(chan struct{}), make(chan struct{})
	bad := function(g, "bad", func(*ai.ToolContext, query) (string, error) { return "", errors.New("no such place") })
	slow := function(g, "slow", func(ctx *ai.ToolContext, _ query) (string, error) {
		require.NotNil(t, ae.CallFromContext(ctx))
		<-release
		return "at last", nil
	})
	held := ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapTool: func(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
			if p.Tool.Name() == "slow" {
				<-failed
			}
			return next(ctx, p)
		}}, nil
	})
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(bad, slow), ai.WithUse(held, r), models(g, "m", calls(1, "bad", "x", "slow", "y")))
	require.ErrorIs(t, err, ai.ErrToolFailed)
	require.True(t, run.Agent("a").Open())
	close(failed)
	require.Eventually(t, func() bool { return len(run.Agent("a").OpenCalls()) == 1 }, patience, patience/10000)
	close(release)
	require.NoError(t, r.End(t.Context()))
	golden(t, rec, "afterfailure")
}

// TestNoToolIsLost has a tool that fails at once, as genkit may return before it begins the others.
func TestNoToolIsLost(t *testing.T) {
	for range 20 {
		g, run, rec := begin(t)
		var others sync.WaitGroup
		others.Add(3)
		bad := function(g, "bad", func(*ai.ToolContext, query) (string, error) { return "", errors.New("no such place") })
		good := function(g, "good", func(ctx *ai.ToolContext, in query) (string, error) { others.Done(); return in.Text, nil })
		r := &aegenkit.Recorder{Run: run}
		_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(bad, good), ai.WithUse(r), models(g, "m", calls(1, "good", "a", "good", "b", "good", "c", "bad", "x")))
		require.ErrorIs(t, err, ai.ErrToolFailed)
		require.NoError(t, r.End(t.Context()))
		others.Wait()
		rec.WantLaws(t, eventtest.LawOptions{})
		require.Len(t, eventtest.Payloads[*ae.ToolCalled](rec.Events()), 4)
	}
}

// TestToolThatNeverEnds has End give up when its context ends.
func TestToolThatNeverEnds(t *testing.T) {
	g, run, rec := begin(t)
	begun, release, gone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	bad := function(g, "bad", func(*ai.ToolContext, query) (string, error) { return "", errors.New("no such place") })
	stuck := function(g, "stuck", func(*ai.ToolContext, query) (string, error) { close(begun); <-release; return "late", nil })
	watched := ai.MiddlewareFunc(func(context.Context) (*ai.Hooks, error) {
		return &ai.Hooks{WrapTool: func(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
			if p.Tool.Name() == "stuck" {
				defer close(gone)
			} else {
				<-begun
			}
			return next(ctx, p)
		}}, nil
	})
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(bad, stuck), ai.WithUse(watched, r), models(g, "m", calls(1, "bad", "x", "stuck", "y")))
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.End(ctx))
	close(release)
	<-gone
	golden(t, rec, "stuck")
}

func TestUnknownTool(t *testing.T) {
	_, err := play(t, "unknowntool", func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
		look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
		return []ai.GenerateOption{ai.WithTools(look), ai.WithUse(r), models(g, "m", calls(1, "gone", "x"))}
	})
	require.ErrorIs(t, err, ai.ErrToolNotFound)
}

func TestTurnsRunOut(t *testing.T) {
	_, err := play(t, "turns", func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
		look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
		return []ai.GenerateOption{ai.WithTools(look), ai.WithMaxTurns(1), ai.WithUse(r), models(g, "m", calls(1, "look", "x"), calls(2, "look", "y"))}
	})
	require.ErrorIs(t, err, ai.ErrMaxTurnsExceeded)
}

func TestFailingModel(t *testing.T) {
	both(t, func(t *testing.T, mode string, how ...ai.GenerateOption) {
		_, err := play(t, "modelfails-"+mode, func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
			half := says("I am not finished.")
			half.parts, half.err = half.parts[:2], errDown
			return append(how, ai.WithUse(r), models(g, "m", half))
		})
		require.ErrorIs(t, err, status.ErrUnavailable)
	})
}

func TestCancelled(t *testing.T) {
	g, run, rec := begin(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := function(g, "stop", func(*ai.ToolContext, query) (string, error) { cancel(errors.New("the user left")); return "ok", nil })
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	_, err := genkit.Generate(ctx, g, ai.WithPrompt("Go"), ai.WithTools(stop), ai.WithUse(r), models(g, "m", calls(1, "stop", "x"), says("Never.")))
	require.Error(t, err)
	require.NoError(t, r.End(t.Context()))
	golden(t, rec, "cancelled")
}

func TestRetry(t *testing.T) {
	_, err := play(t, "retry", func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
		look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
		return []ai.GenerateOption{ai.WithTools(look), ai.WithUse(&middleware.Retry{InitialDelayMs: 1, NoJitter: true}, r), models(g, "m", line{err: errDown}, calls(1, "look", "x"), line{err: errDown}, says("Here I am."))}
	})
	require.NoError(t, err)
}

// TestFallback has a model that only the middleware knows: the agent has its words all the same.
func TestFallback(t *testing.T) {
	resp, err := play(t, "fallback", func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
		models(g, "spare", says("Here I am."))
		return []ai.GenerateOption{ai.WithUse(&middleware.Fallback{Models: []ai.ModelRef{ai.NewModelRef("googleai/spare", nil)}}, r), models(g, "m", line{err: errDown})}
	})
	require.NoError(t, err)
	require.Equal(t, "Here I am.", resp.Text())
}

func TestPanics(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	require.PanicsWithValue(t, "the model broke", func() {
		_, _ = genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithUse(r), models(g, "m", line{panics: true}))
	})
	require.NoError(t, r.End(t.Context()))
	golden(t, rec, "panics")
}

// TestRefs has calls without a ref, calls with the same, and one that another turn has used.
func TestRefs(t *testing.T) {
	_, err := play(t, "refs", func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
		tools, inOrder := together(g, "one", "two", "three")
		return []ai.GenerateOption{ai.WithTools(tools...), ai.WithUse(inOrder, r), models(g, "m", withRefs(calls(1, "one", "a", "two", "b", "three", "c"), "same"), says("Done."))}
	})
	require.NoError(t, err)
	for _, ref := range []string{"", "again"} {
		g, run, rec := begin(t)
		look := function(g, "look", func(_ *ai.ToolContext, in query) (string, error) { return in.Text, nil })
		r := &aegenkit.Recorder{Run: run}
		_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(look), ai.WithUse(r), models(g, "m", withRefs(calls(1, "look", "a", "look", "b"), ref), withRefs(calls(1, "look", "c"), ref), says("Done.")))
		require.NoError(t, err)
		require.NoError(t, r.End(t.Context()))
		rec.WantLaws(t, eventtest.LawOptions{})
		arguments := map[string]string{}
		for _, ev := range rec.Events() {
			switch p := ev.Payload.(type) {
			case *ae.ToolCalled:
				arguments[p.CallID] = string(p.Arguments)
			case *ae.ToolReturned:
				require.Equal(t, `{"text":`+string(p.Result)+`}`, arguments[p.CallID])
				delete(arguments, p.CallID)
			}
		}
		require.Len(t, eventtest.Payloads[*ae.ToolReturned](rec.Events()), 3)
		require.Empty(t, arguments)
	}
}

// nested defines a tool that generates, by a flow of its own.
func nested(g *genkit.Genkit, lines ...line) ai.Tool {
	m := models(g, "inner", lines...)
	read := function(g, "read", func(_ *ai.ToolContext, in query) (string, error) { return "ships", nil })
	flow := genkit.DefineFlow(g, "researchFlow", func(ctx context.Context, in query) (string, error) {
		return genkit.GenerateText(ctx, g, ai.WithPrompt("Read %s", in.Text), ai.WithTools(read), ai.WithUse(&aegenkit.Recorder{}), m)
	})
	return function(g, "research", func(ctx *ai.ToolContext, in query) (string, error) { return flow.Run(ctx, in) })
}

func TestAgentInTool(t *testing.T) {
	both(t, func(t *testing.T, mode string, how ...ai.GenerateOption) {
		_, err := play(t, "nested-"+mode, func(g *genkit.Genkit, r *aegenkit.Recorder) []ai.GenerateOption {
			return append(how, ai.WithTools(nested(g, calls(1, "read", "a.txt"), says("It is about ships."), says("And trains."))), ai.WithUse(r), models(g, "m",
				calls(1, "research", "a.txt"), calls(2, "research", "b.txt"), says("Ships and trains.")))
		})
		require.NoError(t, err)
	})
}

// TestAgentTwiceAtOnce has two calls of a tool at once whose Generates wait for each other.
func TestAgentTwiceAtOnce(t *testing.T) {
	g, run, rec := begin(t)
	var both sync.WaitGroup
	both.Add(2)
	inner := define(g, "inner", func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		both.Done()
		both.Wait()
		return &ai.ModelResponse{Message: ai.NewModelTextMessage("It is " + req.Messages[0].Text()), Request: req}, nil
	})
	research := function(g, "research", func(ctx *ai.ToolContext, in query) (string, error) {
		return genkit.GenerateText(ctx, g, ai.WithPrompt("%s", in.Text), ai.WithModel(inner), ai.WithUse(&aegenkit.Recorder{Agent: "researcher"}))
	})
	r := &aegenkit.Recorder{Run: run, Agent: "lead"}
	_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(research), ai.WithUse(r), models(g, "m", calls(1, "research", "a", "research", "b"), says("Done.")))
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	for i, text := range []string{"a", "b"} {
		id := fmt.Sprintf("c%d", i+1)
		rec.Want(t, "lead agent.toolCalled research "+id, "researcher/"+id+" agent.started name=researcher parentAgentId=lead parentCallId="+id+" task="+text,
			"researcher/"+id+" agent.text \"It is "+text+"\"", "researcher/"+id+" agent.ended converged", "lead agent.toolReturned research "+id, "run.completed")
	}
}

// janitor returns the options of a Generate whose tool wants approval.
func janitor(g *genkit.Genkit, r *aegenkit.Recorder, lines ...line) []ai.GenerateOption {
	remove := function(g, "delete", func(ctx *ai.ToolContext, in query) (string, error) {
		if !ctx.IsResumed() {
			return "", ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"question": "May I delete " + in.Text + "?"}})
		}
		if ctx.Resumed["approved"] == false {
			return "kept", nil
		}
		return "deleted", nil
	})
	look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
	return []ai.GenerateOption{ai.WithTools(remove, look), ai.WithUse(r), models(g, "m", lines...)}
}

// again returns options that resume a Generate.
func again(options []ai.GenerateOption, resp *ai.ModelResponse, resume ai.GenerateOption) []ai.GenerateOption {
	return append(options, ai.WithMessages(resp.History()...), resume)
}

func restart(g *genkit.Genkit, p *ai.Part, metadata any) ai.GenerateOption {
	return ai.WithToolRestarts(genkit.LookupTool(g, p.ToolRequest.Name).Restart(p, &ai.RestartOptions{ResumedMetadata: metadata}))
}

func respond(g *genkit.Genkit, p *ai.Part, output any) ai.GenerateOption {
	return ai.WithToolResponses(genkit.LookupTool(g, p.ToolRequest.Name).Respond(p, output, nil))
}

// TestInterrupts pauses a run, and has another Recorder go on with it, or the same one without a
// pause.
func TestInterrupts(t *testing.T) {
	for name, resume := range map[string]func(*genkit.Genkit, *ai.Part) ai.GenerateOption{
		"granted": func(g *genkit.Genkit, p *ai.Part) ai.GenerateOption { return restart(g, p, nil) },
		"rejected": func(g *genkit.Genkit, p *ai.Part) ai.GenerateOption {
			return restart(g, p, map[string]any{"approved": false})
		},
		"responded":        func(g *genkit.Genkit, p *ai.Part) ai.GenerateOption { return respond(g, p, "I keep it") },
		"respondedgranted": func(g *genkit.Genkit, p *ai.Part) ai.GenerateOption { return respond(g, p, `{"approved":true}`) },
	} {
		t.Run(name, func(t *testing.T) {
			g, run, rec := begin(t)
			r := &aegenkit.Recorder{Run: run, Agent: "janitor"}
			options := janitor(g, r, calls(1, "delete", "a.txt"), says("That is all."))
			resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithPrompt("Go"))...)
			require.NoError(t, err)
			require.Equal(t, ai.FinishReasonInterrupted, resp.FinishReason)
			if name != "responded" {
				require.NoError(t, r.End(t.Context()))
				require.NoError(t, r.End(t.Context()))
				require.Equal(t, ae.RunStatusPaused, run.State().Status)
			}
			if name == "granted" {
				golden(t, rec, "paused")
			}
			resp, err = genkit.Generate(t.Context(), g, again(options, resp, resume(g, resp.Interrupts()[0]))...)
			require.NoError(t, err)
			require.Equal(t, "That is all.", resp.Text())
			require.NoError(t, r.End(t.Context()))
			rec.Want(t, "janitor agent.started", "janitor agent.toolCalled delete c1", "janitor approval.requested callId=c1 toolId=delete", "janitor agent.ended converged", "run.completed")
			golden(t, rec, name)
		})
	}
}

// TestInterruptBesideAResult has a tool return while another one waits.
func TestInterruptBesideAResult(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "janitor"}
	options := janitor(g, r, calls(1, "look", "a.txt", "delete", "a.txt"), says("That is all."))
	resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithPrompt("Go"))...)
	require.NoError(t, err)
	require.Equal(t, []string{"c2"}, run.Agent("janitor").OpenCalls())
	_, err = genkit.Generate(t.Context(), g, again(options, resp, restart(g, resp.Interrupts()[0], nil))...)
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	rec.Want(t, "janitor agent.toolReturned look c1 ok", "janitor approval.requested callId=c2", "approval.granted approvalId=c2", "janitor agent.toolReturned delete c2 ok", "run.completed")
	require.Len(t, eventtest.Payloads[*ae.ToolCalled](rec.Events()), 2)
}

// TestInterruptAcrossProcesses has the emitter, the Recorder and genkit of another process go on.
func TestInterruptAcrossProcesses(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "janitor"}
	resp, err := genkit.Generate(t.Context(), g, append(janitor(g, r, calls(1, "delete", "a.txt")), ai.WithPrompt("Go"))...)
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	history, err := json.Marshal(resp.History())
	require.NoError(t, err)
	snapshot := rec.Snapshot("")

	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{})
	run, err = em.Resume(snapshot)
	require.NoError(t, err)
	g = genkit.Init(t.Context())
	r = &aegenkit.Recorder{Run: run, Agent: "janitor"}
	options := janitor(g, r, says("That is all."))
	var messages []*ai.Message
	require.NoError(t, json.Unmarshal(history, &messages))
	asked := messages[len(messages)-1].Content[0]
	_, err = genkit.Generate(t.Context(), g, append(options, ai.WithMessages(messages...), restart(g, asked, map[string]any{"approved": true}))...)
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{From: []*ae.RunSnapshot{snapshot}})
	rec.Want(t, "run.resumed", "approval.granted approvalId=c1", "janitor agent.toolReturned delete c1 ok", "janitor agent.text \"That is all.\"", "janitor agent.ended converged", "run.completed")
	rec.WantNone(t, "agent.started", "agent.toolCalled")
}

func TestQuestions(t *testing.T) {
	for _, broken := range []bool{false, true} {
		g, run, rec := begin(t)
		ask := function(g, "ask", func(ctx *ai.ToolContext, in query) (string, error) {
			return "", ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"text": in.Text}})
		})
		r := &aegenkit.Recorder{Run: run, Agent: "a", Questions: func(metadata map[string]any) []ae.Question {
			if broken {
				panic("no questions")
			}
			return []ae.Question{{ID: "answer", Question: metadata["text"].(string)}}
		}}
		options := []ai.GenerateOption{ai.WithTools(ask), ai.WithUse(r), models(g, "m", calls(1, "ask", "Which city?"), says("On to Oslo."))}
		resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithPrompt("Go"))...)
		require.NoError(t, err)
		_, err = genkit.Generate(t.Context(), g, again(options, resp, respond(g, resp.Interrupts()[0], "Oslo"))...)
		require.NoError(t, err)
		require.NoError(t, r.End(t.Context()))
		if broken {
			rec.Want(t, "approval.requested", "approval.rejected", "run.completed")
			continue
		}
		rec.Want(t, "clarification.requested callId=c1", "clarification.resolved answers={\"answer\":\"Oslo\"}", "a agent.toolReturned ask c1 ok result=\"Oslo\"", "run.completed")
		golden(t, rec, "questions")
	}
}

// TestToolApproval has a middleware that holds a tool before the Recorder sees the call.
func TestToolApproval(t *testing.T) {
	g, run, rec := begin(t)
	look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	options := []ai.GenerateOption{ai.WithTools(look), ai.WithUse(&middleware.ToolApproval{}, r), models(g, "m", calls(1, "look", "a.txt"), says("Done."))}
	resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithPrompt("Go"))...)
	require.NoError(t, err)
	_, err = genkit.Generate(t.Context(), g, again(options, resp, restart(g, resp.Interrupts()[0], map[string]any{"toolApproved": true}))...)
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	golden(t, rec, "toolapproval")
}

// TestInterruptWithin has the agent in a tool wait: for the tool to begin again, or in vain.
func TestInterruptWithin(t *testing.T) {
	for _, passedOn := range []bool{true, false} {
		t.Run(fmt.Sprint(passedOn), func(t *testing.T) {
			g, run, rec := begin(t)
			inner := janitor(g, &aegenkit.Recorder{}, calls(1, "delete", "a.txt"), says("It is gone."))
			var first *ai.ModelResponse
			clean := function(g, "clean", func(ctx *ai.ToolContext, _ query) (string, error) {
				if ctx.IsResumed() {
					return genkit.GenerateText(ctx, g, again(inner, first, restart(g, first.Interrupts()[0], nil))...)
				}
				resp, err := genkit.Generate(ctx, g, append(inner, ai.WithPrompt("Clean up"))...)
				if err != nil || !passedOn {
					return "nobody was there", err
				}
				first = resp
				return "", ctx.Interrupt(nil)
			})
			r := &aegenkit.Recorder{Run: run, Agent: "lead"}
			outer := []ai.GenerateOption{ai.WithTools(clean), ai.WithUse(r), models(g, "outer", calls(7, "clean", "all"), says("Done."))}
			resp, err := genkit.Generate(t.Context(), g, append(outer, ai.WithPrompt("Go"))...)
			require.NoError(t, err)
			if passedOn {
				require.NoError(t, r.End(t.Context()))
				golden(t, rec, "within-paused")
				_, err = genkit.Generate(t.Context(), g, again(outer, resp, restart(g, resp.Interrupts()[0], nil))...)
				require.NoError(t, err)
			}
			require.NoError(t, r.End(t.Context()))
			golden(t, rec, fmt.Sprintf("within-%v", passedOn))
			require.Equal(t, ae.RunStatusCompleted, run.State().Status)
		})
	}
}

// TestInterruptOfTwins has two calls with one ref wait for an answer, which genkit gives to both.
func TestInterruptOfTwins(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "janitor"}
	options := janitor(g, r, withRefs(calls(1, "delete", "a.txt", "delete", "b.txt"), "same"), says("That is all."))
	resp, err := genkit.Generate(t.Context(), g, append(options, ai.WithPrompt("Go"))...)
	require.NoError(t, err)
	_, err = genkit.Generate(t.Context(), g, again(options, resp, restart(g, resp.Interrupts()[0], nil))...)
	require.NoError(t, err)
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	require.Equal(t, ae.RunStatusCompleted, run.State().Status)
}

// A steady model looks once, and then answers.
func steady(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
	l := says("I saw it.")
	if req.Messages[len(req.Messages)-1].Role != ai.RoleTool {
		l = calls(1, "look", "x")
	}
	return &ai.ModelResponse{Request: req, Message: ai.NewModelMessage(l.parts...)}, nil
}

func TestConcurrentGenerates(t *testing.T) {
	g, run, rec := begin(t)
	look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
	model := define(g, "steady", steady)
	r := &aegenkit.Recorder{Run: run}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			text, err := genkit.GenerateText(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(look), ai.WithModel(model), ai.WithUse(r))
			assert.NoError(t, err)
			assert.Equal(t, "I saw it.", text)
		})
	}
	all.Wait()
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	ids := map[string]bool{}
	for _, a := range rec.Snapshot("").Agents {
		ids[a.AgentID] = true
	}
	for n := range 50 {
		id := "generate"
		if n > 0 {
			id = fmt.Sprintf("generate@%d", n+1)
		}
		require.True(t, ids[id], id)
		rec.Want(t, id+" agent.started", id+" agent.toolCalled look c1", id+" agent.toolReturned look c1 ok", id+" agent.text \"I saw it.\"", id+" agent.ended converged", "run.completed")
	}
	require.Len(t, ids, 50)
	require.Len(t, eventtest.Payloads[*ae.ToolReturned](rec.Events()), 50)
}

func TestNames(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run}
	model := define(g, "steady", steady)
	look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
	flow := genkit.DefineFlow(g, "watch", func(ctx context.Context, text string) (string, error) {
		return genkit.GenerateText(ctx, g, ai.WithPrompt("%s", text), ai.WithTools(look), ai.WithModel(model), ai.WithUse(r))
	})
	for range 2 {
		_, err := flow.Run(t.Context(), "Go")
		require.NoError(t, err)
	}
	_, err := genkit.Generate(t.Context(), g, ai.WithStepName("step"), ai.WithPrompt("Go"), ai.WithTools(look), ai.WithModel(model), ai.WithUse(r))
	require.NoError(t, err)
	prompt := genkit.DefinePrompt(g, "greet", ai.WithPrompt("Hello {{name}}"), ai.WithInputType(map[string]any{}), ai.WithTools(look), ai.WithModel(model), ai.WithUse(&aegenkit.Recorder{}))
	host := run.Agent("host")
	require.NoError(t, host.Emit(t.Context(), &ae.AgentStarted{}))
	_, err = prompt.Execute(ae.ContextWithAgent(t.Context(), host), ai.WithInput(map[string]any{"name": "you"}))
	require.NoError(t, err)
	require.NoError(t, host.Finish(t.Context(), nil, nil))
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	rec.Want(t, "watch agent.started task=Go", "watch@2 agent.started name=watch task=Go", "step agent.started", "host agent.started", "generate agent.started parentAgentId=host task=\"Hello you\"", "generate agent.ended converged", "host agent.ended", "run.completed")
}

// TestTask leaves out of the task the instructions that genkit adds to the prompt.
func TestTask(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run}
	out, _, err := genkit.GenerateData[query](t.Context(), g, ai.WithPrompt("Where?"), models(g, "m", line{parts: []*ai.Part{ai.NewTextPart(`{"text":"Oslo"}`)}}), ai.WithUse(r))
	require.NoError(t, err)
	require.Equal(t, "Oslo", out.Text)
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	require.Equal(t, "Where?", eventtest.Payloads[*ae.AgentStarted](rec.Events())[0].Task)
}

// TestTwice has two Recorders in one Generate, where one of them records.
func TestTwice(t *testing.T) {
	play := func(use func(r *aegenkit.Recorder) []ai.Middleware) []string {
		g, run, rec := begin(t)
		look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
		r := &aegenkit.Recorder{Run: run}
		_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(look), ai.WithUse(use(r)...), models(g, "m", calls(1, "look", "x"), says("Done.")))
		require.NoError(t, err)
		require.NoError(t, r.End(t.Context()))
		rec.WantLaws(t, eventtest.LawOptions{})
		var kinds []string
		for _, ev := range rec.Events() {
			kinds = append(kinds, string(ev.Kind()))
		}
		return kinds
	}
	once := play(func(r *aegenkit.Recorder) []ai.Middleware { return []ai.Middleware{r} })
	require.Equal(t, once, play(func(r *aegenkit.Recorder) []ai.Middleware { return []ai.Middleware{r, r} }))
	require.Equal(t, once, play(func(r *aegenkit.Recorder) []ai.Middleware { return []ai.Middleware{r, &aegenkit.Recorder{Run: r.Run}} }))
	require.Equal(t, once, play(func(r *aegenkit.Recorder) []ai.Middleware {
		return []ai.Middleware{(*aegenkit.Recorder)(nil), r, &aegenkit.Recorder{}}
	}))
}

type panicking struct{}

func (panicking) WriteEvent(context.Context, ae.Event) error { panic("the sink broke") }

// TestRecordingChangesNothing compares the output of genkit without a recorder, and with recorders
// that cannot record.
func TestRecordingChangesNothing(t *testing.T) {
	type outcome struct {
		text, err string
		pieces    []string
	}
	generate := func(use ...ai.Middleware) (out outcome) {
		g := genkit.Init(t.Context())
		tools, inOrder := together(g, "search", "weather")
		ask := genkit.DefineTool(g, "ask", "asks", func(ctx *ai.ToolContext, _ query) (string, error) { return "", ctx.Interrupt(nil) })
		tools = append(tools, ask, nested(g, says("It is about ships.")))
		for i, lines := range [][]line{
			{calls(1, "research", "a.txt"), calls(2, "search", "Oslo", "weather", "Oslo"), says("Done.")},
			{calls(4, "ask", "x")},
			{{err: errDown}},
			{calls(4, "gone", "x")},
		} {
			resp, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithTools(tools...), ai.WithUse(append([]ai.Middleware{inOrder}, use...)...), models(g, fmt.Sprint("m", i), lines...),
				ai.WithStreaming(func(_ context.Context, c *ai.ModelResponseChunk) error {
					out.pieces = append(out.pieces, fmt.Sprint(c.Role, c.Index, string(ae.JSONOf(c.Content))))
					return nil
				}))
			if err != nil {
				out.err += err.Error()
				continue
			}
			out.text += string(ae.JSONOf(resp.Message)) + string(resp.FinishReason)
		}
		return out
	}
	alone := generate()
	require.NotEmpty(t, alone.text)
	require.NotEmpty(t, alone.err)
	run := func(o ae.EmitterOptions) *ae.Run {
		o.OnViolation = func(*ae.RuleError) {}
		em, err := ae.NewEmitter(o)
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		return run
	}
	closed := run(ae.EmitterOptions{})
	require.NoError(t, closed.Close())
	over := run(ae.EmitterOptions{})
	require.NoError(t, over.Finish(t.Context(), nil))
	for name, r := range map[string]*aegenkit.Recorder{
		"nil": nil, "zero": {}, "zero run": {Run: new(ae.Run)}, "closed": {Run: closed}, "over": {Run: over},
		"failing":  {Run: run(ae.EmitterOptions{Sinks: []ae.Sink{panicking{}}, OnError: func(error) {}})},
		"refusing": {Run: run(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict})},
		"working":  {Run: run(ae.EmitterOptions{})},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, alone, generate(r))
			_ = r.End(t.Context())
		})
	}
}

// TestSpans has the JSON of a recorder: genkit writes it into the span of each generation.
func TestSpans(t *testing.T) {
	_, run, _ := begin(t)
	require.JSONEq(t, `{}`, string(ae.JSONOf(&aegenkit.Recorder{Run: run, Agent: "a", Questions: func(map[string]any) []ae.Question { return nil }})))
	require.NoError(t, run.Finish(t.Context(), nil))
}

// TestUsage has the figures of genkit's plugins, which count in different ways.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		plugin string
		usage  *ai.GenerationUsage
		want   ae.Usage // zero: none is recorded
	}{
		{"none", nil, ae.Usage{}},
		{"characters", &ai.GenerationUsage{InputCharacters: 7}, ae.Usage{}},
		{"gemini", &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 10, ThoughtsTokens: 30, TotalTokens: 140}, ae.Usage{InputTokens: 60, OutputTokens: 40, TotalTokens: ae.Some(int64(140)), CacheReadInputTokens: ae.Some(int64(40)), ReasoningOutputTokens: ae.Some(int64(30))}},
		{"openai", &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 10, ThoughtsTokens: 4, TotalTokens: 110}, ae.Usage{InputTokens: 60, OutputTokens: 10, TotalTokens: ae.Some(int64(110)), CacheReadInputTokens: ae.Some(int64(40)), ReasoningOutputTokens: ae.Some(int64(4))}},
		{"anthropic", &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 10}, ae.Usage{InputTokens: 100, OutputTokens: 10, CacheReadInputTokens: ae.Some(int64(40))}},
		{"exclusive", &ai.GenerationUsage{InputTokens: 100, CachedContentTokens: 40, OutputTokens: 10, TotalTokens: 150}, ae.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: ae.Some(int64(150)), CacheReadInputTokens: ae.Some(int64(40))}},
		{"ollama", &ai.GenerationUsage{InputTokens: 100, OutputTokens: 10}, ae.Usage{InputTokens: 100, OutputTokens: 10}},
		{"negative", &ai.GenerationUsage{InputTokens: -1, CachedContentTokens: 40, OutputTokens: 10}, ae.Usage{OutputTokens: 10, CacheReadInputTokens: ae.Some(int64(40))}},
	} {
		g, run, rec := begin(t)
		r := &aegenkit.Recorder{Run: run}
		m := define(g, c.plugin, func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			return &ai.ModelResponse{Request: req, Message: ai.NewModelTextMessage("x"), Usage: c.usage}, nil
		})
		_, err := genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithModel(m), ai.WithUse(r))
		require.NoError(t, err)
		require.NoError(t, r.End(t.Context()))
		want := ae.Some(c.want)
		want.OK = c.want.InputTokens+c.want.OutputTokens > 0
		require.Equal(t, want, eventtest.Payloads[*ae.ModelReturned](rec.Events())[0].Usage, c.plugin)
	}
}

// TestPieces has a model that streams each time all it has written so far, and one that stops its
// reader.
func TestPieces(t *testing.T) {
	g, run, rec := begin(t)
	r := &aegenkit.Recorder{Run: run, Agent: "a"}
	all := []*ai.Part{ai.NewReasoningPart("hm, let me see", nil), ai.NewTextPart("On to "), ai.NewTextPart("Oslo.")}
	m := define(g, "m", func(ctx context.Context, req *ai.ModelRequest, stream ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		for _, parts := range [][]*ai.Part{{ai.NewReasoningPart("hm, ", nil)}, {ai.NewReasoningPart("hm, let me see", nil)}, {all[0], ai.NewTextPart("On")}, all[:2], all} {
			if err := stream(ctx, &ai.ModelResponseChunk{Content: parts, Aggregated: true}); err != nil {
				return nil, err
			}
		}
		return &ai.ModelResponse{Request: req, Message: ai.NewModelMessage(all...)}, nil
	})
	generate := func(err error) error {
		_, err = genkit.Generate(t.Context(), g, ai.WithPrompt("Go"), ai.WithModel(m), ai.WithUse(r), ai.WithStreaming(func(context.Context, *ai.ModelResponseChunk) error { return err }))
		return err
	}
	require.NoError(t, generate(nil))
	require.Equal(t, "On to Oslo.", eventtest.Payloads[*ae.TextCompleted](rec.Events())[0].Text)
	require.Equal(t, "hm, let me see", eventtest.Payloads[*ae.AgentReasoned](rec.Events())[0].Reasoning)
	require.ErrorContains(t, generate(errors.New("nobody listens")), "nobody listens")
	require.NoError(t, r.End(t.Context()))
	rec.WantLaws(t, eventtest.LawOptions{})
	rec.Want(t, "a@2 agent.started", "a@2 agent.ended error.message=\"nobody listens\"", "run.failed")
}

// TestExperimentalAgent has an agent of genkit: each turn of its session is a Generate.
func TestExperimentalAgent(t *testing.T) {
	_, run, rec := begin(t)
	g := genkit.Init(t.Context(), genkit.WithExperimental())
	janitor(g, nil, says("Hello."), calls(1, "delete", "a.txt"), says("It is gone."))
	agent := genkitexp.DefineAgent[any](g, "chat", aiexp.InlinePrompt{ai.WithModelName("googleai/m"), ai.WithTools(ai.ToolName("delete")), ai.WithUse(&aegenkit.Recorder{})})
	host := run.Agent("chat")
	require.NoError(t, host.Emit(t.Context(), &ae.AgentStarted{}))
	conn, err := agent.Connect(ae.ContextWithAgent(t.Context(), host))
	require.NoError(t, err)
	require.NoError(t, conn.SendText("Hi"))
	require.NoError(t, conn.SendText("Delete a.txt"))
	var asked *ai.Part
	for chunk, err := range conn.Receive() {
		require.NoError(t, err)
		if chunk.ModelChunk != nil {
			for _, p := range chunk.ModelChunk.Content {
				if p.IsInterrupt() {
					asked = p
				}
			}
		}
		if asked != nil && chunk.TurnEnd != nil {
			break
		}
	}
	require.NoError(t, conn.SendResume(&aiexp.ToolResume{Restart: []*ai.Part{genkit.LookupTool(g, "delete").Restart(asked, nil)}}))
	require.NoError(t, conn.Close())
	out, err := conn.Output()
	require.NoError(t, err)
	require.Equal(t, "It is gone.", out.Message.Text())
	require.NoError(t, host.Finish(t.Context(), nil, nil))
	require.NoError(t, run.Finish(t.Context(), nil))
	golden(t, rec, "session")
}

func BenchmarkGenerate(b *testing.B) {
	g := genkit.Init(b.Context())
	look := function(g, "look", func(*ai.ToolContext, query) (string, error) { return "seen", nil })
	model := define(g, "steady", steady)
	generate := func(b *testing.B, use ...ai.Middleware) {
		_, err := genkit.Generate(b.Context(), g, ai.WithPrompt("Go"), ai.WithTools(look), ai.WithModel(model), ai.WithUse(use...))
		require.NoError(b, err)
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			generate(b)
		}
	})
	b.Run("off", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			generate(b, (*aegenkit.Recorder)(nil))
		}
	})
	b.Run("on", func(b *testing.B) {
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{ae.NewWriter(io.Discard, ae.WriterOptions{})}})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			run, err := em.Run("")
			require.NoError(b, err)
			r := &aegenkit.Recorder{Run: run}
			generate(b, r)
			require.NoError(b, r.End(b.Context()))
		}
	})
}
