package eino

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentevents/agentevents"
)

// A place has the agents of the ADK that an address names.
type place struct {
	names  []string               // of those that lead there, within the last tool call if there is one
	suffix string                 // of their ids: each call of an agent as a tool is an agent
	id     string                 // of the last one; empty for a graph that is none
	tool   compose.AddressSegment // the call that the last one makes, if any
}

func placeOf(address compose.Address) (p place) {
	for _, s := range address {
		switch s.Type {
		case adk.AddressSegmentAgent:
			p = place{names: append(p.names, s.ID), suffix: p.suffix, id: s.ID + p.suffix}
		case adk.AddressSegmentTool:
			p = place{suffix: "/" + s.SubID, id: p.id, tool: s}
		}
	}
	return p
}

// agent begins an agent of the ADK.
func (r *Recorder) agent(ctx context.Context, info *callbacks.RunInfo, in any, s *scope) context.Context {
	p := placeOf(compose.GetCurrentAddress(ctx))
	if len(p.names) == 0 {
		p.names, p.id = []string{info.Name}, info.Name
	}
	leading, name := p.names[:len(p.names)-1], p.names[len(p.names)-1]
	input := cmp.Or(adk.ConvAgentCallbackInput(in), &adk.AgentCallbackInput{}).Input // nil when it is resumed
	run, outer, call := r.Run, agentevents.AgentFromContext(ctx), agentevents.CallFromContext(ctx)
	if outer != nil {
		run = outer.Run()
	}
	agent, task := run.Agent(p.id), ""
	if outer.ID() == p.id { // another recorder records it
		s.take = func(out any, _ bool) { each(out, func(*adk.AgentEvent, string) {}) }
		return ctx
	}
	switch {
	case len(leading) > 0:
		giver := run.Agent(leading[len(leading)-1] + p.suffix)
		agent = giver.Agent(p.id)
		if input != nil && outer.ID() != giver.ID() { // else the giver is a workflow
			_ = giver.Emit(ctx, &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: giver.ID()}, To: agentevents.AgentRef{AgentID: p.id}})
		}
	case call != nil:
		agent = call.Agent(p.id)
	case outer != nil:
		agent = outer.Agent(p.id)
	}
	if input != nil && len(leading) == 0 {
		task = lastOf(input.Messages)
	}
	s.within = p.suffix != ""
	s.topmost = !s.within && len(leading) == 0
	s.serial = info.Type == "Sequential" || info.Type == "Loop"
	ctx = r.start(ctx, s, agent, name, task)
	var waits, gave bool
	var result string
	var failure error
	s.take = func(out any, _ bool) {
		each(out, func(event *adk.AgentEvent, text string) {
			failure = cmp.Or(event.Err, failure)
			if text != "" && event.AgentName == name && !s.asked.Load() {
				result = text // of no model call
			}
			if a := event.Action; a != nil && a.Interrupted != nil {
				waits = true
				r.ask(ctx, agent, a.Interrupted.InterruptContexts)
			} else if a != nil && a.TransferToAgent != nil {
				gave = true
			}
		})
	}
	s.end = func(err error) {
		if slices.Contains(leading, name) {
			return // the agent took back work it had handed over, and ends where it began
		}
		r.await(s.addr + within)
		waits = waits || gave && len(run.State().Questions) > 0
		r.stop(ctx, s, agent, cmp.Or(err, failure), result, waits)
	}
	return ctx
}

// each reads the events of an agent to the end, and closes their streams. text is the agent's text
// in an event.
func each(out any, do func(event *adk.AgentEvent, text string)) {
	events := out.(*adk.AgentCallbackOutput).Events
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		text := ""
		if o := event.Output; o != nil && o.MessageOutput != nil {
			text = heard(o.MessageOutput)
			if o.MessageOutput.Role != schema.Assistant {
				text = "" // a tool's
			}
		}
		do(event, text)
	}
}

// heard returns the text of a message, and closes its stream.
func heard(m *adk.MessageVariant) string {
	if !m.IsStreaming {
		return lastOf([]*schema.Message{m.Message})
	}
	defer m.MessageStream.Close()
	var text strings.Builder
	for {
		piece, err := m.MessageStream.Recv()
		if err != nil {
			return text.String()
		}
		text.WriteString(lastOf([]*schema.Message{piece}))
	}
}

// graph begins a graph. The agent of the context makes its calls, or the graph is an agent.
func (r *Recorder) graph(ctx context.Context, info *callbacks.RunInfo, in any, s *scope) context.Context {
	if agentevents.AgentFromContext(ctx) != nil {
		return ctx
	}
	agent := r.Run.Agent(cmp.Or(info.Name, string(info.Component)))
	task, _ := in.(string)
	if messages, ok := in.([]*schema.Message); ok {
		task = lastOf(messages)
	}
	s.topmost = true
	ctx = r.start(ctx, s, agent, agent.ID(), task)
	s.end = func(err error) {
		r.await(s.addr + within)
		stop, waits := compose.ExtractInterruptInfo(err)
		if waits {
			r.ask(ctx, agent, stop.InterruptContexts)
		}
		r.stop(ctx, s, agent, err, "", waits)
	}
	return ctx
}

// lastOf returns the text of the last message, if there is one.
func lastOf(messages []*schema.Message) string {
	if n := len(messages); n > 0 && messages[n-1] != nil {
		return messages[n-1].Content
	}
	return ""
}

// start records that an agent starts, or goes on if it has not ended.
func (r *Recorder) start(ctx context.Context, s *scope, agent *agentevents.Agent, name, task string) context.Context {
	run := agent.Run()
	s.key, s.by = s.addr, s
	if run.State().Status == agentevents.RunStatusPaused {
		_ = run.Emit(ctx, &agentevents.RunResumed{})
	}
	if agent.Open() {
		answer(ctx, run, agent.ID())
	} else {
		if name == agent.ID() {
			name = "" // the id is also the name
		}
		_ = agent.Emit(ctx, &agentevents.AgentStarted{Name: name, Task: task})
	}
	return agentevents.ContextWithAgent(ctx, agent)
}

// stop records that an agent ends, or that the run pauses because the agent waits for an answer.
func (r *Recorder) stop(ctx context.Context, s *scope, agent *agentevents.Agent, err error, result string, waits bool) {
	if waits && s.topmost {
		_ = agent.Run().Emit(ctx, &agentevents.RunPaused{})
	}
	if waits {
		return
	}
	if cause := errors.Unwrap(err); cause != nil && strings.Contains(err.Error(), "RunError] ") {
		err = cause // without the path to the node of a graph
	}
	err = withoutStack(err)
	if cancelled := (*adk.CancelError)(nil); errors.As(err, &cancelled) {
		err = &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: err}
	}
	if err != nil && !s.within {
		r.mu.Lock()
		r.err = err
		if end, cause := ctx.Err(), context.Cause(ctx); cause != end && (errors.Is(err, end) || errors.Is(err, cause)) {
			own := &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: cause} // the context of End is another one
			if end == context.DeadlineExceeded {
				own.Status, own.Code = "", "deadline_exceeded"
			}
			r.err = own
		}
		r.mu.Unlock()
	}
	_ = agent.Finish(ctx, err, &agentevents.AgentEnded{Result: result})
}

// withoutStack returns the error without the stack that eino adds to a panic: kilobytes of paths.
func withoutStack(err error) error {
	if err != nil {
		if text, _, panicked := strings.Cut(err.Error(), ", \nstack: "); panicked {
			return &agentevents.ToolError{Code: "panic", Err: errors.New(text)}
		}
	}
	return err
}

// ask records the questions of an interrupt. The id is the tool call's, or the agent's.
func (r *Recorder) ask(ctx context.Context, agent *agentevents.Agent, interrupts []*compose.InterruptCtx) {
	defer func() { _ = recover() }() // of Questions
	for _, c := range interrupts {
		p := placeOf(c.Address)
		if p.id != "" && p.id != agent.ID() {
			continue // it is for that agent to ask
		}
		id := cmp.Or(p.tool.SubID, agent.ID())
		var questions []agentevents.Question
		if r.Questions != nil {
			questions = r.Questions(c.Info)
		} else if text, ok := c.Info.(string); ok && p.tool.SubID == "" {
			questions = []agentevents.Question{{ID: "answer", Question: text}}
		}
		switch {
		case len(questions) > 0:
			_ = agent.Emit(ctx, &agentevents.ClarificationRequested{InterruptID: id, Questions: questions, CallID: p.tool.SubID})
		case p.tool.SubID != "":
			_ = agent.Emit(ctx, &agentevents.ApprovalRequested{ApprovalID: id, Action: textOf(c.Info), CallID: id, ToolID: p.tool.ID})
		}
	}
}

// answer records the answer that the run was resumed with, if the question is open: see ask.
func answer(ctx context.Context, run *agentevents.Run, id string) {
	target, _, data := compose.GetResumeContext[any](ctx)
	if !target {
		return // it asks again, or works as if it was allowed
	}
	for _, q := range run.State().Questions {
		text := textOf(data)
		verdict := struct{ Approved *bool }{}
		if yes, ok := data.(bool); ok {
			verdict.Approved, text = &yes, ""
		} else {
			_ = json.Unmarshal([]byte(text), &verdict)
		}
		switch {
		case q.ID != id:
		case q.Kind == agentevents.KindClarificationRequested:
			answers := agentevents.JSONOrString(text)
			if !strings.HasPrefix(text, "{") {
				answers = `{"answer":` + answers + `}`
			}
			_ = run.Emit(ctx, &agentevents.ClarificationResolved{InterruptID: id, Answers: answers})
		case verdict.Approved != nil && !*verdict.Approved:
			_ = run.Emit(ctx, &agentevents.ApprovalRejected{ApprovalID: id, Feedback: text})
		default:
			_ = run.Emit(ctx, &agentevents.ApprovalGranted{ApprovalID: id, Feedback: text})
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
