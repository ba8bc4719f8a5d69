package genkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"

	"github.com/agentevents/agentevents"
)

// hooks serve one Generate. Their state is in the context: see generation.
type hooks struct{ r *Recorder }

// A generation is a Generate whose agent is recorded.
type generation struct {
	by      *hooks
	home    *Recorder // waits for it in End: the one around it, or its own
	outer   *generation
	call    *agentevents.Call // that it is in, or nil
	agent   *agentevents.Agent
	options *ai.GenerateActionOptions
	within  bool            // in another agent
	ctx     context.Context // of the Generate
	done    chan struct{}   // closed when it has ended, or waits for an answer

	mu       sync.Mutex
	asked    int                    // tool calls of the latest answer that have not begun
	running  map[string]struct{}    // ids of the calls of tools that run
	failed   *agentevents.ModelCall // the latest model call, if it has failed
	messages int                    // of its request
	said     string                 // the latest text that is recorded
	sleeping []*generation          // in tools, which wait for an answer
	returned bool                   // Generate has
	over     bool                   // the agent has ended, or waits for an answer
	err      error                  // of Generate
}

type generationKey struct{}

func generationOf(ctx context.Context) *generation {
	g, _ := ctx.Value(generationKey{}).(*generation)
	return g
}

// of returns the generation that the hooks record, or nil: another Recorder records it.
func (h *hooks) of(ctx context.Context) *generation {
	if g := generationOf(ctx); g != nil && g.by == h {
		return g
	}
	return nil
}

var errExited = errors.New("the goroutine ended")

// watch runs fn, and then end with the outcome of fn, also if that is a panic, which goes on.
func watch[T any](fn func() (T, error), end func(T, error)) (out T, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil {
			end(out, errExited)
			return
		}
		end(out, &agentevents.PanicError{Value: v})
		panic(v)
	}()
	out, err = fn()
	returned = true
	end(out, err)
	return out, err
}

// generate is the hook of an iteration. The first one has the others within it.
func (h *hooks) generate(ctx context.Context, p *ai.GenerateParams, next ai.GenerateNext) (*ai.ModelResponse, error) {
	outer := generationOf(ctx)
	if p.Iteration > 0 || outer != nil && outer.options == p.Options { // else the options have two Recorders
		return next(ctx, p)
	}
	g := h.begin(ctx, p.Options, outer)
	return watch(func() (*ai.ModelResponse, error) { return next(g.ctx, p) }, g.end)
}

// begin records that an agent starts, or goes on if the options resume it.
func (h *hooks) begin(ctx context.Context, options *ai.GenerateActionOptions, outer *generation) *generation {
	g := &generation{by: h, home: h.r, outer: outer, call: agentevents.CallFromContext(ctx), options: options, done: make(chan struct{}), running: map[string]struct{}{}}
	run, around := h.r.Run, agentevents.AgentFromContext(ctx)
	if around != nil {
		run, g.within = around.Run(), true
	}
	if outer != nil {
		g.home = outer.home
	}
	if run.State().Status == agentevents.RunStatusPaused {
		_ = run.Emit(ctx, &agentevents.RunResumed{})
	}
	g.agent = waiting(run, options.Resume)
	if g.agent != nil {
		g.asked = len(options.Resume.Restart)
		g.answer(ctx)
	} else {
		g.start(ctx, run, around)
	}
	g.ctx = context.WithValue(agentevents.ContextWithAgent(ctx, g.agent), generationKey{}, g)
	g.home.began(g)
	return g
}

// start records that an agent starts, with an id that the run does not know.
func (g *generation) start(ctx context.Context, run *agentevents.Run, around *agentevents.Agent) {
	tool, suffix := "", ""
	if g.call != nil {
		tool, suffix = g.call.ToolID, "/"+g.call.ID
	}
	name := cmp.Or(g.by.r.Agent, g.options.StepName, tool, core.FlowNameFromContext(ctx), "generate")
	began := &agentevents.AgentStarted{Task: taskOf(g.options.Messages)}
	_, began.Model = modelOf(g.options.Model)
	g.home.naming.Lock()
	defer g.home.naming.Unlock()
	id := g.home.unused(run, name+suffix, around == nil)
	switch {
	case g.call != nil:
		g.agent = g.call.Agent(id)
	case around != nil:
		g.agent = around.Agent(id)
	default:
		g.agent = run.Agent(id)
	}
	if id != name {
		began.Name = name
	}
	_ = g.agent.Emit(ctx, began)
}

// unused returns the id, or the id with the lowest number that the run does not know. The ids of
// the run's own agents are counted, as there may be many of one name.
func (r *Recorder) unused(run *agentevents.Run, id string, counted bool) string {
	n := 1
	if counted {
		if r.ids == nil {
			r.ids = map[string]int{}
		}
		n = r.ids[id] + 1
		defer func() { r.ids[id] = n }()
	}
	for ; ; n++ {
		numbered := id
		if n > 1 {
			numbered += "@" + strconv.Itoa(n)
		}
		if _, known := run.Agent(numbered).Status(); !known {
			return numbered
		}
	}
}

// taskOf returns the text of the last message, without the instructions that genkit adds.
func taskOf(messages []*ai.Message) string {
	if len(messages) == 0 || messages[len(messages)-1] == nil {
		return ""
	}
	var text strings.Builder
	for _, p := range messages[len(messages)-1].Content {
		if p.IsText() && p.Metadata["purpose"] != "output" {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// providers are the names of OpenTelemetry for the plugins that have others.
var providers = map[string]string{"googleai": "gcp.gemini", "vertexai": "gcp.vertex_ai", "xai": "x_ai"}

// modelOf splits the name of a model in genkit: plugin/model.
func modelOf(name string) (provider, model string) {
	plugin, model, ok := strings.Cut(name, "/")
	if !ok {
		return "", name
	}
	return cmp.Or(providers[plugin], plugin), model
}

// end records the outcome of a Generate.
func (g *generation) end(resp *ai.ModelResponse, err error) {
	waits := err == nil && g.ask(resp)
	g.mu.Lock()
	g.returned, g.err = true, err
	result := ""
	if err == nil && resp.Text() != g.said {
		result = resp.Text() // no model call that is recorded said it
	}
	if errors.Is(err, ai.ErrToolNotFound) && !errors.Is(err, ai.ErrToolFailed) {
		g.asked-- // it will not begin
	}
	left := err != nil && g.left()
	if waits {
		g.over = true
	}
	g.mu.Unlock()
	switch {
	case waits:
		if g.outer != nil {
			g.outer.mu.Lock()
			g.outer.sleeping = append(g.outer.sleeping, g)
			g.outer.mu.Unlock()
		}
		g.home.ended(g, nil)
		close(g.done)
	case !left:
		g.finish(err, result)
	}
}

// left reports whether tools are left that the failure of another one has not ended: genkit waits
// for them otherwise. One that has not begun counts only if an End will come. The caller has the
// lock.
func (g *generation) left() bool {
	failed := errors.Is(g.err, ai.ErrToolFailed) || errors.Is(g.err, ai.ErrToolNotFound) || errors.Is(g.err, ai.ErrUnresolvedToolRequest)
	return len(g.running) > 0 || failed && g.asked > 0 && g.home.Run != nil
}

// waitsForTools reports whether Generate has returned, and all that is left are tools that have
// not begun.
func (g *generation) waitsForTools() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.returned && !g.over && len(g.running) == 0
}

// finish ends the agent, once.
func (g *generation) finish(err error, result ...string) {
	g.mu.Lock()
	over := g.over
	g.over = true
	g.mu.Unlock()
	if over {
		return
	}
	_ = g.agent.Finish(g.ctx, err, &agentevents.AgentEnded{Result: strings.Join(result, "")})
	g.home.ended(g, caused(g.ctx, err))
	close(g.done)
}

// ask records the questions of the interrupts, and reports whether there is one.
func (g *generation) ask(resp *ai.ModelResponse) (asks bool) {
	for _, p := range resp.Interrupts() {
		if p.ToolRequest == nil {
			continue
		}
		asks = true
		call := g.agent.OpenCall(p.ToolRequest.Ref)
		if !call.Recorded() { // a middleware further out held it
			call, _ = g.agent.Call(g.ctx, called(p.ToolRequest))
		}
		metadata, _ := p.Metadata["interrupt"].(map[string]any)
		if questions := g.by.r.questions(metadata); len(questions) > 0 {
			_ = g.agent.Emit(g.ctx, &agentevents.ClarificationRequested{InterruptID: call.ID, Questions: questions, CallID: call.ID})
			continue
		}
		ask := &agentevents.ApprovalRequested{ApprovalID: call.ID, CallID: call.ID, ToolID: call.ToolID}
		if metadata != nil {
			ask.Action = textOf(metadata)
		}
		_ = g.agent.Emit(g.ctx, ask)
	}
	return asks
}

func (r *Recorder) questions(metadata map[string]any) (questions []agentevents.Question) {
	if r.Questions == nil {
		return nil
	}
	defer func() { _ = recover() }() // genkit must not notice
	return r.Questions(metadata)
}

// waiting returns the agent with a call that is resumed, or nil.
func waiting(run *agentevents.Run, resume *ai.GenerateActionResume) *agentevents.Agent {
	if resume == nil {
		return nil
	}
	refs := map[string]bool{}
	for _, p := range resume.Restart {
		if p.IsToolRequest() {
			refs[p.ToolRequest.Ref] = true
		}
	}
	for _, p := range resume.Respond {
		if p.IsToolResponse() {
			refs[p.ToolResponse.Ref] = true
		}
	}
	for _, a := range run.State().Agents {
		for _, id := range a.OpenCalls {
			if refs[id] {
				return run.Agent(a.AgentID)
			}
		}
	}
	return nil
}

// answer records the answers that a Generate is resumed with.
func (g *generation) answer(ctx context.Context) {
	for _, p := range g.options.Resume.Restart {
		if p.IsToolRequest() {
			g.resolve(ctx, p.ToolRequest.Ref, p.Metadata["resumed"], true)
		}
	}
	for _, p := range g.options.Resume.Respond {
		if p.IsToolResponse() {
			g.resolve(ctx, p.ToolResponse.Ref, p.ToolResponse.Output, false)
			_ = g.agent.OpenCall(p.ToolResponse.Ref).Return(ctx, agentevents.JSONOf(p.ToolResponse.Output))
		}
	}
}

// resolve records the answer to a question, if it is open. A tool that runs is approved, and one
// that gets its output from elsewhere is not, unless the answer has another verdict.
func (g *generation) resolve(ctx context.Context, id string, data any, runs bool) {
	run := g.agent.Run()
	for _, q := range run.State().Questions {
		if q.ID != id {
			continue
		}
		text := textOf(data)
		if data == true {
			text = ""
		}
		if q.Kind == agentevents.KindClarificationRequested {
			answers := agentevents.JSONOf(data)
			if !strings.HasPrefix(string(answers), "{") {
				answers = `{"answer":` + answers + `}`
			}
			_ = run.Emit(ctx, &agentevents.ClarificationResolved{InterruptID: id, Answers: answers})
			continue
		}
		verdict := struct{ Approved, ToolApproved *bool }{}
		_ = json.Unmarshal([]byte(textOf(data)), &verdict)
		if yes := cmp.Or(verdict.Approved, verdict.ToolApproved); yes != nil {
			runs = *yes
		}
		if runs {
			_ = run.Emit(ctx, &agentevents.ApprovalGranted{ApprovalID: id, Feedback: text})
		} else {
			_ = run.Emit(ctx, &agentevents.ApprovalRejected{ApprovalID: id, Feedback: text})
		}
	}
}

// textOf returns a value of the program as text: JSON unless it is a string.
func textOf(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	return string(agentevents.JSONOf(v))
}
