// Package mcp records what clients and servers of the Go SDK of MCP do, as acts of the agent
// that the context carries ([agentevents.ContextWithAgent]). A client:
//
//	client := mcp.NewClient(info, aemcp.Handlers(mcp.ClientOptions{ElicitationHandler: ask}))
//	client.AddSendingMiddleware(aemcp.Record)
//	…
//	result, err := session.CallTool(agentevents.ContextWithAgent(ctx, agent), params)
//
// A server, with an agent in a run of its own for the process (for a session or a user over
// HTTP, where the contexts are those of the HTTP requests):
//
//	server.AddReceivingMiddleware(aemcp.Record)
//	server.AddSendingMiddleware(aemcp.Record)
//	err := server.Run(agentevents.ContextWithAgent(ctx, agent), &mcp.StdioTransport{})
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentevents/agentevents"
)

// Record is a middleware of clients and servers, for sending and receiving. Recorded are
// tools/call, elicitation/create, sampling/createMessage and notifications/progress.
func Record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		h := func(ctx context.Context, req mcp.Request) (mcp.Result, error) { return next(ctx, method, req) }
		return handler(recorders[method], h)(ctx, req)
	}
}

// Handlers returns the options with handlers that record what the server asks the client.
func Handlers(o mcp.ClientOptions) *mcp.ClientOptions {
	o.ElicitationHandler = handler(elicited, o.ElicitationHandler)
	o.CreateMessageHandler = handler(sampled, o.CreateMessageHandler)
	o.CreateMessageWithToolsHandler = handler(sampled, o.CreateMessageWithToolsHandler)
	return &o
}

// A recorder calls next, and records that. It returns an error if next must not be called.
type recorder func(ctx context.Context, a *agentevents.Agent, params mcp.Params, next next) error

type next func(context.Context) (mcp.Result, error)

var recorders = map[string]recorder{
	"tools/call":             called,
	"elicitation/create":     elicited,
	"sampling/createMessage": sampled,
	"notifications/progress": progressed,
}

// handler returns h with a recorder around it. Nil stays nil: it says what a client cannot do.
func handler[Q mcp.Request, R mcp.Result](record recorder, h func(context.Context, Q) (R, error)) func(context.Context, Q) (R, error) {
	if record == nil || h == nil {
		return h
	}
	return func(ctx context.Context, req Q) (res R, err error) {
		a := agentevents.AgentFromContext(ctx)
		if a.Run() == nil {
			return h(ctx, req)
		}
		refused := record(ctx, a, req.GetParams(), func(ctx context.Context) (mcp.Result, error) {
			res, err = h(ctx, req)
			return res, err
		})
		return res, cmp.Or(refused, err)
	}
}

func called(ctx context.Context, a *agentevents.Agent, params mcp.Params, next next) error {
	p := &agentevents.ToolCalled{Transport: agentevents.TransportMCP}
	switch params := params.(type) {
	case *mcp.CallToolParams:
		p.ToolID, p.Arguments = params.Name, toJSON(params.Arguments)
	case *mcp.CallToolParamsRaw:
		p.ToolID, p.Arguments = params.Name, agentevents.JSON(params.Arguments)
	}
	if meta := params.GetMeta(); len(meta) > 0 {
		p.Attributes = toJSON(meta)
	}
	outer := agentevents.CallFromContext(ctx)
	if p.ToolID == "" || outer.Recorded() && outer.ToolID == p.ToolID && a.OpenCall(outer.ID).Recorded() {
		_, _ = next(ctx) // without a name, or recorded by who has made the call
		return nil
	}
	ran := false
	_, err := a.Do(ctx, p, func(ctx context.Context) (agentevents.JSON, error) {
		ran = true
		res, err := next(ctx)
		if r, _ := res.(*mcp.CallToolResult); err == nil && r != nil && r.IsError {
			err = &agentevents.ToolError{Result: toJSON(r), Err: errorOf(r)}
		}
		return toJSON(res), err
	})
	if ran {
		return nil
	}
	return err
}

// errorOf returns what the tool says of its failure.
func errorOf(r *mcp.CallToolResult) error {
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			return errors.New(c.Text)
		}
	}
	return r.GetError()
}

func elicited(ctx context.Context, a *agentevents.Agent, params mcp.Params, next next) error {
	p, _ := params.(*mcp.ElicitParams)
	if p == nil || ctx.Value(p) != nil {
		_, _ = next(ctx)
		return nil
	}
	q := agentevents.Question{ID: cmp.Or(p.Mode, "form"), Question: p.Message, Schema: toJSON(p.RequestedSchema)}
	asked := &agentevents.ClarificationRequested{InterruptID: cmp.Or(p.ElicitationID, rand.Text()[:8]), Questions: []agentevents.Question{q}}
	if call := agentevents.CallFromContext(ctx); call.Recorded() {
		asked.CallID = call.ID
	}
	_ = a.Emit(ctx, asked)
	answered := &agentevents.ClarificationResolved{InterruptID: asked.InterruptID}
	defer func() { _ = a.Emit(ctx, answered) }()
	res, err := next(context.WithValue(ctx, p, true))
	if err == nil {
		answered.Answers = toJSON(map[string]any{q.ID: res})
	}
	return nil
}

func sampled(ctx context.Context, a *agentevents.Agent, params mcp.Params, next next) error {
	if agentevents.ModelCallFromContext(ctx).Open() {
		_, _ = next(ctx)
		return nil
	}
	call, _ := a.Model(ctx, &agentevents.ModelCalled{Request: toJSON(params)})
	err := errors.New("the handler panicked or ended its goroutine")
	p := &agentevents.ModelReturned{}
	defer func() {
		if err != nil {
			_ = call.Fail(ctx, err)
		} else {
			_ = call.Return(ctx, p)
		}
	}()
	var res mcp.Result
	res, err = next(agentevents.ContextWithModelCall(ctx, call))
	p.Response = toJSON(res)
	var said struct{ Model, StopReason string }
	_ = json.Unmarshal([]byte(p.Response), &said)
	p.Model = said.Model
	if said.StopReason != "" {
		p.FinishReasons = []string{said.StopReason}
	}
	return nil
}

func progressed(ctx context.Context, a *agentevents.Agent, params mcp.Params, next next) error {
	_ = a.Emit(ctx, &agentevents.SpanRecorded{Subject: "tool_call", Phase: "progress", Attributes: toJSON(params)})
	_, _ = next(ctx)
	return nil
}

// toJSON leaves out what cannot be written: the SDK cannot send it either.
func toJSON(v any) agentevents.JSON {
	j, _ := agentevents.ToJSON(v)
	return j
}
