package genkit

import (
	"context"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentevents/agentevents"
)

// model is the hook of a call of a model.
func (h *hooks) model(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	g := h.of(ctx)
	if g == nil {
		return next(ctx, p)
	}
	call := g.model(ctx, p)
	own := *p
	if cb := p.Callback; cb != nil {
		pieces := &pieces{call: call}
		own.Callback = func(ctx context.Context, chunk *ai.ModelResponseChunk) error {
			pieces.take(ctx, chunk)
			return cb(ctx, chunk)
		}
	}
	return watch(func() (*ai.ModelResponse, error) {
		return next(agentevents.ContextWithModelCall(ctx, call), &own)
	}, func(resp *ai.ModelResponse, err error) { g.modelled(ctx, call, resp, err) })
}

// model records that a model is called. The same request after a failure is a retry.
func (g *generation) model(ctx context.Context, p *ai.ModelParams) (call *agentevents.ModelCall) {
	messages := 0
	if p.Request != nil {
		messages = len(p.Request.Messages)
	}
	g.mu.Lock()
	failed := g.failed
	if messages != g.messages {
		failed = nil
	}
	g.failed, g.messages, g.asked = nil, messages, 0
	g.mu.Unlock()
	if failed != nil {
		call, _ = failed.Retry(ctx)
		return call
	}
	asks := &agentevents.ModelCalled{}
	asks.Provider, asks.Model = modelOf(g.options.Model)
	call, _ = g.agent.Model(ctx, asks)
	return call
}

// modelled records that a model has answered, or failed.
func (g *generation) modelled(ctx context.Context, call *agentevents.ModelCall, resp *ai.ModelResponse, err error) {
	if err != nil {
		_ = call.Fail(ctx, err)
		g.mu.Lock()
		g.failed = call
		g.mu.Unlock()
		return
	}
	said := &agentevents.ModelReturned{}
	if resp != nil {
		said.Usage = usageOf(resp.Usage)
		if resp.FinishReason != "" {
			said.FinishReasons = []string{string(resp.FinishReason)}
		}
	}
	reasoning, text := resp.Reasoning(), resp.Text()
	if call.Open() && !call.Streamed() {
		if reasoning != "" {
			_ = g.agent.Emit(ctx, &agentevents.AgentReasoned{Reasoning: reasoning})
		}
		if text != "" {
			_ = g.agent.Emit(ctx, &agentevents.TextCompleted{Text: text})
		}
	}
	_ = call.Return(ctx, said)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said = text
	if !g.options.ReturnToolRequests {
		g.asked = len(resp.ToolRequests())
	}
}

// usageOf returns the figures of genkit. Its plugins hand on the providers' own, so the input may
// include the tokens from the cache, and the output the tokens for reasoning; the total tells. It
// also counts characters itself, for a model that counts no tokens.
func usageOf(u *ai.GenerationUsage) agentevents.Opt[agentevents.Usage] {
	if u == nil || max(u.InputTokens, u.OutputTokens, u.TotalTokens, u.CachedContentTokens, u.ThoughtsTokens) <= 0 {
		return agentevents.Opt[agentevents.Usage]{}
	}
	in, out, cached, thoughts := u.InputTokens, u.OutputTokens, u.CachedContentTokens, u.ThoughtsTokens
	beside := u.TotalTokens - in - out // counted in neither
	if thoughts > 0 && beside >= thoughts {
		out, beside = out+thoughts, beside-thoughts
	}
	if cached <= in && beside != cached && u.TotalTokens > 0 {
		in -= cached
	}
	counted := agentevents.Usage{InputTokens: count(in).V, OutputTokens: count(out).V}
	counted.TotalTokens, counted.CacheReadInputTokens, counted.ReasoningOutputTokens = count(u.TotalTokens), count(cached), count(thoughts)
	return agentevents.Some(counted)
}

// count returns a figure of genkit, where 0 also means that it is not known.
func count(n int) agentevents.Opt[int64] {
	return agentevents.Opt[int64]{V: max(0, int64(n)), OK: n > 0}
}

// pieces takes the chunks that a model streams.
type pieces struct {
	call  *agentevents.ModelCall
	taken map[string]int // bytes by the sort of the piece
}

func (s *pieces) take(ctx context.Context, chunk *ai.ModelResponseChunk) {
	if chunk == nil {
		return
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	again := map[string]int{} // bytes of this chunk that were in those before
	if chunk.Aggregated {
		for sort, n := range s.taken {
			again[sort] = n
		}
	}
	for _, p := range chunk.Content {
		sort, text := "", ""
		var record func(text string) error
		switch {
		case p.IsText():
			sort, text = "text", p.Text
			record = func(text string) error { return s.call.Text(ctx, text) }
		case p.IsReasoning():
			sort, text = "reasoning", p.Text
			record = func(text string) error { return s.call.Reason(ctx, text) }
		case p.IsToolRequest() && p.ToolRequest.Ref != "":
			sort, text = "call "+p.ToolRequest.Ref, textOf(p.ToolRequest.Input)
			record = func(text string) error { return s.call.Arguments(ctx, p.ToolRequest.Ref, text) }
		default:
			continue
		}
		known := min(again[sort], len(text))
		again[sort] -= known
		s.taken[sort] += len(text) - known
		_ = record(text[known:])
	}
}

// tool is the hook of a call of a tool.
func (h *hooks) tool(ctx context.Context, p *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
	g := h.of(ctx)
	if g == nil {
		return next(ctx, p)
	}
	call := g.enter(ctx, p.Request)
	if call == nil {
		return next(agentevents.ContextWithAgent(ctx, nil), p)
	}
	return watch(func() (*ai.MultipartToolResponse, error) {
		return next(agentevents.ContextWithCall(ctx, call), p)
	}, func(resp *ai.MultipartToolResponse, err error) {
		if asks, _ := ai.IsToolInterruptError(err); !asks {
			g.wake(call)
			if g.agent.OpenCall(call.ID).Recorded() { // else End did not wait
				returned(ctx, call, resp, err)
			}
		}
		g.leave(call)
	})
}

// enter records that a tool is called, or goes on with a call that an interrupt left open. It
// returns nil if the agent has ended.
func (g *generation) enter(ctx context.Context, req *ai.ToolRequest) *agentevents.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil
	}
	g.asked--
	asks := called(req)
	if _, twin := g.running[asks.CallID]; twin {
		asks.CallID = ""
	}
	call := g.agent.OpenCall(asks.CallID)
	if !call.Recorded() {
		call, _ = g.agent.Call(ctx, asks)
	}
	g.running[call.ID] = struct{}{}
	return call
}

func called(req *ai.ToolRequest) *agentevents.ToolCalled {
	return &agentevents.ToolCalled{CallID: req.Ref, ToolID: req.Name, Arguments: agentevents.JSONOf(req.Input)}
}

func returned(ctx context.Context, call *agentevents.Call, resp *ai.MultipartToolResponse, err error) {
	switch {
	case err != nil:
		_ = call.Fail(ctx, err)
	case resp != nil && len(resp.Content) > 0:
		_ = call.Return(ctx, agentevents.JSONOf(resp))
	case resp != nil:
		_ = call.Return(ctx, agentevents.JSONOf(resp.Output))
	default:
		_ = call.Return(ctx, agentevents.JSONOf(nil))
	}
}

// wake ends the agents in a tool that has returned: nobody will answer their questions.
func (g *generation) wake(call *agentevents.Call) {
	g.mu.Lock()
	sleeping := g.sleeping
	g.sleeping = nil
	g.mu.Unlock()
	for _, s := range sleeping {
		if s.call == nil || s.call.ID != call.ID {
			g.mu.Lock()
			g.sleeping = append(g.sleeping, s)
			g.mu.Unlock()
			continue
		}
		_ = s.agent.Finish(s.ctx, nil, nil)
	}
}

// leave ends the generation with its last tool, if genkit has not waited for that.
func (g *generation) leave(call *agentevents.Call) {
	g.mu.Lock()
	delete(g.running, call.ID)
	ends, err := g.returned && !g.left(), g.err
	g.mu.Unlock()
	if ends {
		g.finish(err)
	}
}
