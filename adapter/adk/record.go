package adk

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/agentevents/agentevents"
)

// recording has the callbacks. None has an opinion.
type recording struct {
	em    *agentevents.Emitter
	inner bool // they come from Recorder.Config
}

// quietly is deferred: the framework must not notice a panic in recording.
func quietly() { _ = recover() }

func (r recording) callbacks() plugin.Config {
	return plugin.Config{
		Name:                 "agentevents",
		BeforeRunCallback:    r.beforeRun,
		AfterRunCallback:     r.afterRun,
		OnEventCallback:      r.onEvent,
		BeforeAgentCallback:  r.beforeAgent,
		AfterAgentCallback:   r.afterAgent,
		BeforeModelCallback:  r.beforeModel,
		AfterModelCallback:   r.afterModel,
		OnModelErrorCallback: r.onModelError,
		BeforeToolCallback:   r.beforeTool,
		AfterToolCallback:    r.afterTool,
		OnToolErrorCallback:  r.onToolError,
	}
}

// agent returns the agent of a name: of the run of the invocation or, for an agent that is a
// tool, of the call. It is nil where the other callbacks record it, or none do.
func (r recording) agent(ctx context.Context, invocation, name, branch string) *agentevents.Agent {
	if last := branch[strings.LastIndex(branch, ".")+1:]; strings.HasPrefix(last, name+"@") {
		name = last // it may run several times at once
	}
	run, plugged := r.em.Lookup(invocation)
	call := callOf(ctx)
	switch {
	case plugged && !r.inner:
		return run.Agent(name)
	case !plugged && r.inner && call != nil:
		return call.Agent(name + "/" + call.ID)
	}
	return nil
}

func (r recording) at(ctx agent.Context) *agentevents.Agent {
	return r.agent(ctx, ctx.InvocationID(), ctx.AgentName(), ctx.Branch())
}

func (r recording) beforeRun(ctx agent.InvocationContext) (*genai.Content, error) {
	defer quietly()
	if ctx.RunConfig() == nil {
		return nil, nil // a live run
	}
	if inv := invocationOf(ctx); inv.root == nil { // else it belongs to a runner in a tool
		inv.root, inv.id, inv.speaker = ctx.Agent(), ctx.InvocationID(), ctx.Agent().Name()
	}
	run, _ := r.em.Run(ctx.InvocationID())
	run = run.With(agentevents.Scope{SessionID: ctx.Session().ID()})
	switch run.State().Status {
	case agentevents.RunStatusPending:
		_ = run.Emit(ctx, &agentevents.RunStarted{Name: ctx.Session().AppName()})
	case agentevents.RunStatusPaused:
		_ = run.Emit(ctx, &agentevents.RunResumed{})
	}
	answer(ctx, run, ctx.UserContent())
	return nil, nil
}

// answer records a person's answers to calls and questions that wait for them.
func answer(ctx context.Context, run *agentevents.Run, content *genai.Content) {
	if content == nil {
		return
	}
	state := run.State()
	for _, part := range content.Parts {
		fr := part.FunctionResponse
		if fr == nil {
			continue
		}
		for _, a := range state.Agents {
			_ = run.Agent(a.AgentID).OpenCall(fr.ID).Return(ctx, agentevents.JSONOf(fr.Response))
		}
		if slices.ContainsFunc(state.Questions, func(q agentevents.OpenQuestion) bool {
			return q.Kind == agentevents.KindClarificationRequested && q.ID == fr.ID
		}) {
			_ = run.Emit(ctx, &agentevents.ClarificationResolved{InterruptID: fr.ID, Answers: agentevents.JSONOf(map[string]any{fr.ID: fr.Response})})
		}
	}
}

// waits reports whether the agent waits for a person.
func waits(a *agentevents.Agent) bool {
	status, _ := a.Status()
	return status == agentevents.StatusBlockedOnClarification || len(a.OpenCalls()) > 0
}

func (r recording) afterRun(ctx agent.InvocationContext) {
	defer quietly()
	run, _ := r.em.Lookup(ctx.InvocationID())
	inv, paused := invocationOf(ctx), false
	err := inv.err
	switch {
	case err != nil:
	case inv.away:
		err = errStopped
	case inv.id == ctx.InvocationID():
		err = inv.refusal
	default:
		if status, _ := run.Agent(ctx.Agent().Name()).Status(); status == agentevents.StatusFailed {
			err = errRefused
		}
	}
	for _, v := range run.State().Agents {
		switch a := run.Agent(v.AgentID); {
		case err != nil:
		case waits(a):
			paused = true
		case v.Open && inv.root == nil:
			err = errNotEnded
		}
	}
	if paused && err == nil {
		_ = run.Emit(ctx, &agentevents.RunPaused{Reason: "waits for a person"})
		return
	}
	_ = run.Finish(ctx, err)
}

func (r recording) beforeAgent(ctx agent.Context) (*genai.Content, error) {
	defer quietly()
	a := r.at(ctx)
	if a == nil || a.Open() { // an agent that takes back work it has handed over works on
		return nil, nil
	}
	start := &agentevents.AgentStarted{Task: textOf(ctx.UserContent(), false)}
	if name := ctx.AgentName(); name != a.ID() {
		start.Name = name // the id has the call
	}
	if t := taskOf(ctx); r.inner {
		t.inside.Store(&inside{agentevents.ContextWithAgent(t.Context, nil), callOf(ctx)})
	} else if parent := parentOf(invocationOf(ctx).root, ctx.AgentName()); parent != "" {
		a, start.Task = a.Run().Agent(parent).Agent(a.ID()), ""
	}
	_ = a.Emit(ctx, start)
	return nil, nil
}

// parentOf returns the name of the agent at or below root that has the sub-agent.
func parentOf(root agent.Agent, name string) string {
	if root == nil {
		return ""
	}
	for _, sub := range root.SubAgents() {
		if sub.Name() == name {
			return root.Name()
		}
		if parent := parentOf(sub, name); parent != "" {
			return parent
		}
	}
	return ""
}

func (r recording) afterAgent(ctx agent.Context) (*genai.Content, error) {
	defer quietly()
	if a := r.at(ctx); !waits(a) {
		returned(ctx, a, nil)
		_ = a.Finish(ctx, nil, nil)
	}
	return nil, nil
}

func (r recording) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	defer quietly()
	a := r.at(ctx)
	returned(ctx, a, nil)
	_, _ = a.Model(ctx, &agentevents.ModelCalled{Model: req.Model})
	return nil, nil
}

func (r recording) afterModel(ctx agent.Context, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
	defer quietly()
	a := r.at(ctx)
	for _, id := range a.OpenModelCalls() {
		c, p := a.OpenModelCall(id), answerOf(resp)
		if p.Error.OK {
			_ = c.Return(ctx, p)
			continue
		}
		_ = c.Note(ctx, p) // it returns with its event: see said
		if resp.Partial {
			_ = c.Piece(ctx)
			_ = c.Reason(ctx, textOf(resp.Content, true))
			_ = c.Text(ctx, textOf(resp.Content, false))
		}
	}
	if r.inner && !resp.Partial {
		said(ctx, a, resp.Content)
	}
	return nil, nil
}

func (r recording) onModelError(ctx agent.Context, _ *model.LLMRequest, err error) (*model.LLMResponse, error) {
	defer quietly()
	returned(ctx, r.at(ctx), err)
	return nil, nil
}

// answerOf returns the facts of a response for its model call.
func answerOf(resp *model.LLMResponse) *agentevents.ModelReturned {
	p := &agentevents.ModelReturned{Model: resp.ModelVersion, Usage: usageOf(resp.UsageMetadata)}
	if resp.FinishReason != "" {
		p.FinishReasons = []string{strings.ToLower(string(resp.FinishReason))}
	}
	if resp.ErrorCode != "" {
		p.Error = agentevents.Some(agentevents.ErrorInfo{Code: resp.ErrorCode, Message: cmp.Or(resp.ErrorMessage, resp.ErrorCode)})
	}
	return p
}

// refusalOf returns the error that a response states, or nil.
func refusalOf(resp *model.LLMResponse) error {
	if e := answerOf(resp).Error; e.OK {
		return &agentevents.ToolError{Code: e.V.Code, Err: errors.New(e.V.Message)}
	}
	return nil
}

// returned closes the open model call, if there is one. It reports whether the call has recorded
// the model's text.
func returned(ctx context.Context, a *agentevents.Agent, err error) (streamed bool) {
	if said := (genai.APIError{}); errors.As(err, &said) {
		again := said.Code == http.StatusTooManyRequests || said.Code >= http.StatusInternalServerError
		err = &agentevents.ToolError{Code: strconv.Itoa(said.Code), Retryable: agentevents.Some(again), Err: err}
	}
	for _, id := range a.OpenModelCalls() {
		c := a.OpenModelCall(id)
		if streamed = streamed || c.Streamed(); err != nil {
			_ = c.Fail(ctx, err)
		} else {
			_ = c.Return(ctx, nil)
		}
	}
	return streamed
}

// onEvent records changes of the state, and whole texts: events also have the texts of callbacks,
// and of agents without a model.
func (r recording) onEvent(ctx agent.InvocationContext, ev *session.Event) (*session.Event, error) {
	defer quietly()
	if run, ok := r.em.Lookup(ctx.InvocationID()); ok && !ev.Partial && len(ev.Actions.StateDelta) > 0 {
		_ = run.Emit(ctx, &agentevents.StatePatched{Op: agentevents.PatchMerge, Value: agentevents.JSONOf(ev.Actions.StateDelta)})
	}
	a := r.agent(ctx, ctx.InvocationID(), ev.Author, ev.Branch)
	if ev.Partial || !a.Open() {
		return nil, nil
	}
	said(ctx, a, ev.Content)
	if ev.IsFinalResponse() {
		refusal := refusalOf(&ev.LLMResponse)
		if inv := invocationOf(ctx); inv.id == ctx.InvocationID() {
			inv.refusal = refusal
		}
		if refusal != nil && !waits(a) {
			_ = a.Finish(ctx, refusal, nil)
		}
	}
	if ask := ev.RequestedInput; ask != nil {
		question := agentevents.Question{ID: ask.InterruptID, Question: ask.Message}
		_ = a.Emit(ctx, &agentevents.ClarificationRequested{InterruptID: ask.InterruptID, Questions: []agentevents.Question{question}})
	}
	return nil, nil
}

// said closes the model call, and records the agent's text unless the call has.
func said(ctx context.Context, a *agentevents.Agent, content *genai.Content) {
	if returned(ctx, a, nil) {
		return
	}
	if text := textOf(content, true); text != "" {
		_ = a.Emit(ctx, &agentevents.AgentReasoned{Reasoning: text})
	}
	if text := textOf(content, false); text != "" {
		_ = a.Emit(ctx, &agentevents.TextCompleted{Text: text})
	}
}

// call returns the agent and the call of the tool to which ctx belongs. The call may not be open.
func (r recording) call(ctx agent.Context) (*agentevents.Agent, *agentevents.Call) {
	outer := context.Context(ctx)
	if t := taskOf(ctx); t != nil {
		outer = t.Context
	}
	a := r.agent(outer, ctx.InvocationID(), ctx.AgentName(), ctx.Branch())
	return a, a.OpenCall(ctx.FunctionCallID())
}

func (r recording) beforeTool(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	defer quietly()
	a, c := r.call(ctx)
	answer := ctx.ToolConfirmation()
	switch {
	case !c.Recorded():
		c, _ = a.Call(ctx, &agentevents.ToolCalled{CallID: c.ID, ToolID: t.Name(), Arguments: agentevents.JSONOf(args)})
	case answer != nil && answer.Confirmed:
		_ = a.Emit(ctx, &agentevents.ApprovalGranted{ApprovalID: c.ID})
	case answer != nil:
		_ = a.Emit(ctx, &agentevents.ApprovalRejected{ApprovalID: c.ID})
	}
	if task := taskOf(ctx); task != nil && c.Recorded() {
		task.inside.Store(&inside{agentevents.ContextWithCall(task.Context, c), c})
	}
	return nil, nil
}

func (r recording) onToolError(ctx agent.Context, t tool.Tool, args map[string]any, err error) (map[string]any, error) {
	defer quietly()
	if _, c := r.call(ctx); !c.Recorded() { // the tool does not exist
		_, _ = r.beforeTool(ctx, t, args)
	}
	if !errors.Is(err, tool.ErrConfirmationRequired) {
		_, _ = r.afterTool(ctx, t, args, nil, err)
	}
	return nil, nil
}

func (r recording) afterTool(ctx agent.Context, t tool.Tool, args, result map[string]any, err error) (map[string]any, error) {
	defer quietly()
	a, c := r.call(ctx)
	asked, asks := ctx.Actions().RequestedToolConfirmations[c.ID]
	to := ctx.Actions().TransferToAgent
	switch {
	case !c.Recorded():
		return nil, nil
	case asks:
		_ = a.Emit(ctx, &agentevents.ApprovalRequested{ApprovalID: c.ID, CallID: c.ID, ToolID: t.Name(), Arguments: agentevents.JSONOf(args), Reason: asked.Hint})
	case errors.Is(err, tool.ErrConfirmationRejected):
		_ = c.Fail(ctx, &agentevents.ToolError{Status: agentevents.ToolStatusForbidden, Err: err})
	case err != nil:
		for _, inner := range a.Run().State().Agents {
			if strings.HasSuffix(inner.AgentID, "/"+c.ID) {
				_ = a.Run().Agent(inner.AgentID).Finish(ctx, err, nil)
			}
		}
		_ = c.Fail(ctx, err)
	case !t.IsLongRunning(): // else a person answers
		_ = c.Return(ctx, agentevents.JSONOf(result))
	}
	if err == nil && to != "" {
		_ = a.Emit(ctx, &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: a.ID()}, To: agentevents.AgentRef{AgentID: to}})
	}
	return nil, nil
}

func textOf(content *genai.Content, thought bool) (text string) {
	if content == nil {
		return ""
	}
	for _, part := range content.Parts {
		if part != nil && part.Thought == thought {
			text += part.Text
		}
	}
	return text
}

func usageOf(m *genai.GenerateContentResponseUsageMetadata) (u agentevents.Opt[agentevents.Usage]) {
	if m == nil {
		return u
	}
	return agentevents.Some(agentevents.Usage{
		InputTokens:           int64(max(0, m.PromptTokenCount+m.ToolUsePromptTokenCount-m.CachedContentTokenCount)),
		OutputTokens:          int64(m.CandidatesTokenCount + m.ThoughtsTokenCount),
		CacheReadInputTokens:  agentevents.Opt[int64]{V: int64(m.CachedContentTokenCount), OK: m.CachedContentTokenCount > 0},
		ReasoningOutputTokens: agentevents.Opt[int64]{V: int64(m.ThoughtsTokenCount), OK: m.ThoughtsTokenCount > 0},
		TotalTokens:           agentevents.Opt[int64]{V: int64(m.TotalTokenCount), OK: m.TotalTokenCount > 0},
	})
}
