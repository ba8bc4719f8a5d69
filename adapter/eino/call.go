package eino

import (
	"cmp"
	"context"
	"strings"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentevents/agentevents"
)

// model begins a call of a chat model. A recorder further out may have recorded it: then it is told.
func (r *Recorder) model(ctx context.Context, _ *callbacks.RunInfo, in any, s *scope) context.Context {
	agent := agentevents.AgentFromContext(ctx)
	s.key = s.by.addr + within + "model:" + s.addr
	r.await(s.by.addr + within + "tool:") // the stream of the tools comes before
	r.await(s.key)                        // and so does an attempt that failed
	var said agentevents.ModelReturned
	asked := &agentevents.ModelCalled{}
	if in := model.ConvCallbackInput(in); in != nil && in.Config != nil {
		asked.Model = in.Config.Model
	}
	if outer := agentevents.ModelCallFromContext(ctx); outer.Open() {
		s.take = func(out any, _ bool) { tell(&said, out, asked.Model) }
		s.end = func(error) { _ = outer.Note(ctx, &said) }
		return ctx
	}
	var call *agentevents.ModelCall
	s.by.asked.Store(true)
	if failed := s.by.failed.Swap(nil); failed != nil {
		call, _ = failed.Retry(ctx)
	} else {
		call, _ = agent.Model(ctx, asked)
	}
	ids := map[int]string{} // of the tool calls that the model streams
	s.take = func(out any, whole bool) {
		m := tell(&said, out, asked.Model)
		if m == nil || !call.Open() {
			return
		}
		if whole {
			if m.ReasoningContent != "" {
				_ = agent.Emit(ctx, &agentevents.AgentReasoned{Reasoning: m.ReasoningContent})
			}
			if m.Content != "" {
				_ = agent.Emit(ctx, &agentevents.TextCompleted{Text: m.Content})
			}
			return
		}
		_ = call.Reason(ctx, m.ReasoningContent)
		_ = call.Text(ctx, m.Content)
		for i, c := range m.ToolCalls {
			if c.Index != nil {
				i = *c.Index
			}
			if ids[i] = cmp.Or(c.ID, ids[i]); ids[i] != "" {
				_ = call.Arguments(ctx, ids[i], c.Function.Arguments)
			}
		}
	}
	s.end = func(err error) {
		switch {
		case !call.Open(): // it was closed with its agent: eino waits for nobody when it is cancelled
		case err == nil:
			_ = call.Return(ctx, &said)
		default:
			_ = call.Note(ctx, &said)
			_ = call.Fail(ctx, err)
			s.by.failed.Store(call)
		}
	}
	return agentevents.ContextWithModelCall(ctx, call)
}

// tell takes the facts of the call from an answer, or a piece of it, and returns its message. A
// model that repeats the requested name does not tell which model has answered; its client may
// know.
func tell(said *agentevents.ModelReturned, out any, asked string) *schema.Message {
	o := model.ConvCallbackOutput(out)
	if o == nil {
		return nil
	}
	if o.Config != nil && o.Config.Model != asked {
		said.Model = cmp.Or(o.Config.Model, said.Model)
	}
	if m := o.Message; m != nil && m.ResponseMeta != nil {
		if m.ResponseMeta.FinishReason != "" {
			said.FinishReasons = []string{m.ResponseMeta.FinishReason}
		}
		if u := m.ResponseMeta.Usage; u != nil && o.TokenUsage == nil {
			count(said, u.PromptTokens, u.PromptTokenDetails.CachedTokens, u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens, u.TotalTokens)
		}
	}
	if u := o.TokenUsage; u != nil {
		count(said, u.PromptTokens, u.PromptTokenDetails.CachedTokens, u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens, u.TotalTokens)
	}
	return o.Message
}

// count takes figures of eino, where the input includes cached tokens. The highest figure of all
// pieces counts, as in schema.ConcatMessages.
func count(said *agentevents.ModelReturned, in, cached, out, reasoning, total int) {
	u := said.Usage.V
	highest := func(was agentevents.Opt[int64], n int) agentevents.Opt[int64] {
		was.V = max(was.V, int64(n))
		was.OK = was.V > 0
		return was
	}
	whole := max(u.InputTokens+u.CacheReadInputTokens.V, int64(in))
	u.CacheReadInputTokens = highest(u.CacheReadInputTokens, cached)
	u.InputTokens = max(0, whole-u.CacheReadInputTokens.V)
	u.OutputTokens = max(u.OutputTokens, int64(out))
	u.ReasoningOutputTokens = highest(u.ReasoningOutputTokens, reasoning)
	u.TotalTokens = highest(u.TotalTokens, total)
	said.Usage = agentevents.Some(u)
}

// tool begins a call of a tool, or goes on with one that an interrupt left open.
func (r *Recorder) tool(ctx context.Context, info *callbacks.RunInfo, in any, s *scope) context.Context {
	agent, id := agentevents.AgentFromContext(ctx), compose.GetToolCallID(ctx)
	s.key = s.by.addr + within + "tool:" + s.addr
	r.await(s.by.addr + within + "model:") // the stream of the model comes before
	if outer := agentevents.CallFromContext(ctx); outer != nil && outer.ID == id {
		if outer.ToolID == info.Name {
			return ctx // somebody else records the call
		}
		id = "" // a tool within a tool has no id of its own
	}
	call := agent.OpenCall(id)
	if call.Recorded() {
		answer(ctx, agent.Run(), id)
	} else {
		asked := &agentevents.ToolCalled{CallID: id, ToolID: info.Name}
		if in := tool.ConvCallbackInput(in); in != nil {
			asked.Arguments = agentevents.JSON(in.ArgumentsInJSON)
		}
		call, _ = agent.Call(ctx, asked)
	}
	var text strings.Builder
	s.take = func(out any, _ bool) {
		if o := tool.ConvCallbackOutput(out); o != nil && o.ToolOutput != nil {
			text.WriteString(string(agentevents.JSONOf(o.ToolOutput)))
		} else if o != nil {
			text.WriteString(o.Response)
		}
	}
	s.end = func(err error) {
		r.await(s.addr + within)
		_, waits := compose.IsInterruptRerunError(err)
		switch {
		case waits, !agent.OpenCall(call.ID).Recorded(): // see model
		case err == nil:
			_ = call.Return(ctx, agentevents.JSON(text.String()))
		default:
			_ = call.Fail(ctx, withoutStack(err))
		}
	}
	return agentevents.ContextWithCall(ctx, call)
}
