// Package mcp records what clients and servers of the Go SDK of the Model Context Protocol do,
// as acts of the agent that the context carries ([agentevents.ContextWithAgent]). A client:
//
//	client := mcp.NewClient(info, aemcp.Handlers(mcp.ClientOptions{ElicitationHandler: ask}))
//	client.AddSendingMiddleware(aemcp.Record)
//	…
//	result, err := session.CallTool(agentevents.ContextWithAgent(ctx, agent), params)
//
// A server has a run of its own, with an agent for the process, as here, or one for each user
// or session: what HTTP brings is handled in the context of the HTTP request.
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
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentevents/agentevents"
)

//lint:file-ignore SA1019 sampling is deprecated, and used

// Record is a middleware, for sending and receiving, of clients and servers. It changes nothing
// of what is asked and answered. What fails in recording is told to EmitterOptions.OnViolation
// and OnError alone; only a call that EmitterOptions.Guard forbids is not made, and has that
// error. Without an agent in the context nothing is recorded. It may be called concurrently.
//
//   - tools/call is a tool call: it fails with its error, or with what a result says that is
//     one. If the context carries an open call of the tool, whoever made that records it.
//   - elicitation/create is a clarification. Its answer is the content, or else the action.
//   - sampling/createMessage is a model call, unless the context carries one. Handlers have it
//     in their context, so that package modelhttp adds the usage.
//   - notifications/progress is an [agentevents.SpanRecorded] if the context carries the call,
//     which it does in the server's handler. To a client it comes apart from the call, also
//     after its return, and is not recorded.
//
// Under protocol 2026-07-28 a server asks with the result of a call, and is called again with
// the answers. The client does so behind its middleware: [Handlers] records what it is asked.
// For the server these are two calls. Under older protocols the server's question has the
// values of the context of Connect, which therefore must carry the agent, and names no call.
func Record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		h := func(ctx context.Context, req mcp.Request) (mcp.Result, error) { return next(ctx, method, req) }
		return handler(recorders[method], h)(ctx, req)
	}
}

// Handlers returns the options with handlers that record, as [Record] does, what the server asks.
func Handlers(o mcp.ClientOptions) *mcp.ClientOptions {
	o.ElicitationHandler = handler(elicited, o.ElicitationHandler)
	o.CreateMessageHandler = handler(sampled, o.CreateMessageHandler)
	o.CreateMessageWithToolsHandler = handler(sampled, o.CreateMessageWithToolsHandler)
	return &o
}

// A recorder does what next does, and records it.
type recorder func(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (mcp.Result, error)

type handle func(context.Context) (mcp.Result, error)

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
	return func(ctx context.Context, req Q) (R, error) {
		a := agentevents.AgentFromContext(ctx)
		if a.Run() == nil {
			return h(ctx, req)
		}
		res, err := record(ctx, a, req, func(ctx context.Context) (mcp.Result, error) { return h(ctx, req) })
		out, _ := res.(R)
		return out, err
	}
}

func called(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (res mcp.Result, err error) {
	p := &agentevents.ToolCalled{Transport: agentevents.TransportMCP}
	switch params := req.GetParams().(type) {
	case *mcp.CallToolParams:
		p.ToolID, p.Arguments = params.Name, agentevents.JSONOf(params.Arguments)
	case *mcp.CallToolParamsRaw:
		p.ToolID, p.Arguments = params.Name, agentevents.JSON(params.Arguments)
	}
	if r, ok := req.(*mcp.CallToolRequest); ok && r.ClientInfo() != nil {
		p.Principal = r.ClientInfo().Name
	}
	outer := agentevents.CallFromContext(ctx)
	if p.ToolID == "" || outer.Recorded() && outer.ToolID == p.ToolID && a.OpenCall(outer.ID).Recorded() {
		return next(ctx) // it has no name to record, or is the outer call
	}
	ran := false
	_, refused := a.Do(ctx, p, func(ctx context.Context) (agentevents.JSON, error) {
		ran = true
		res, err = next(ctx)
		if r, _ := res.(*mcp.CallToolResult); err == nil && r != nil && r.IsError {
			return "", failure(r)
		}
		if said := new(jsonrpc.Error); errors.As(err, &said) {
			return "", &agentevents.ToolError{Code: strconv.FormatInt(said.Code, 10), Err: err}
		}
		return agentevents.JSONOf(res), err
	})
	if !ran {
		return nil, refused
	}
	return res, err
}

// failure returns what a tool says of its failure: on the server it is the handler's error.
func failure(r *mcp.CallToolResult) error {
	err := r.GetError()
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok && err == nil {
			err = errors.New(text.Text)
		}
	}
	return &agentevents.ToolError{Result: agentevents.JSONOf(r), Err: err}
}

func elicited(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (res mcp.Result, err error) {
	p, _ := req.GetParams().(*mcp.ElicitParams)
	if p == nil || ctx.Value(p) != nil { // middleware and handler get the same
		return next(ctx)
	}
	q := agentevents.Question{ID: cmp.Or(p.Mode, "form"), Question: strings.TrimSpace(p.Message + " " + p.URL)}
	if p.RequestedSchema != nil {
		q.Schema = agentevents.JSONOf(p.RequestedSchema)
	}
	asked := &agentevents.ClarificationRequested{InterruptID: cmp.Or(p.ElicitationID, rand.Text()[:8]), Questions: []agentevents.Question{q}}
	if call := agentevents.CallFromContext(ctx); call.Recorded() {
		asked.CallID = call.ID
	}
	_ = a.Emit(ctx, asked)
	defer func() {
		var answer any
		switch r, _ := res.(*mcp.ElicitResult); {
		case err != nil:
			answer = map[string]string{"error": fmt.Sprint(err)} // its method may panic
		case r != nil && len(r.Content) > 0:
			answer = r.Content
		case r != nil:
			answer = r.Action
		}
		_ = a.Emit(ctx, &agentevents.ClarificationResolved{InterruptID: asked.InterruptID, Answers: agentevents.JSONOf(map[string]any{q.ID: answer})})
	}()
	return next(context.WithValue(ctx, p, true))
}

func sampled(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (res mcp.Result, err error) {
	if agentevents.ModelCallFromContext(ctx).Open() {
		return next(ctx)
	}
	call, _ := a.Model(ctx, &agentevents.ModelCalled{Request: agentevents.JSONOf(req.GetParams())})
	err = errors.New("the handler panicked or ended its goroutine")
	defer func() {
		if err != nil {
			_ = call.Fail(ctx, err)
			return
		}
		var said struct{ Model, StopReason string }
		p := &agentevents.ModelReturned{Response: agentevents.JSONOf(res)}
		_ = json.Unmarshal([]byte(p.Response), &said)
		p.Model = said.Model
		if said.StopReason != "" {
			p.FinishReasons = []string{said.StopReason}
		}
		_ = call.Return(ctx, p)
	}()
	return next(agentevents.ContextWithModelCall(ctx, call))
}

func progressed(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (mcp.Result, error) {
	p, _ := req.GetParams().(*mcp.ProgressNotificationParams)
	if call := agentevents.CallFromContext(ctx); p != nil && call.Recorded() && a.OpenCall(call.ID).Recorded() {
		said := agentevents.JSONOf(map[string]any{"callId": call.ID, "progress": p.Progress, "total": p.Total, "message": p.Message})
		_ = a.Emit(ctx, &agentevents.SpanRecorded{Subject: "tool_call", Phase: "progress", Name: call.ToolID, Attributes: said})
	}
	return next(ctx)
}
