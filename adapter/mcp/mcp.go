// Package mcp records the calls of clients and servers of the Go SDK of the Model Context Protocol,
// as acts of the agent that the context carries ([agentevents.ContextWithAgent]). A client:
//
//	rec := new(aemcp.Recorder)
//	client := mcp.NewClient(info, rec.Handlers(mcp.ClientOptions{ElicitationHandler: ask}))
//	client.AddSendingMiddleware(rec.Record)
//	…
//	result, err := session.CallTool(agentevents.ContextWithAgent(ctx, agent), params)
//
// A server has a run of its own, with an agent for the process, as here, or one for each user or
// session: the SDK handles a request over HTTP in the context of the HTTP request.
//
//	rec := new(aemcp.Recorder)
//	server.AddReceivingMiddleware(rec.Record)
//	server.AddSendingMiddleware(rec.Record)
//	err := server.Run(agentevents.ContextWithAgent(ctx, agent), &mcp.StdioTransport{})
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentevents/agentevents"
)

//lint:file-ignore SA1019 sampling is deprecated, and used

// A Recorder records clients and servers. The zero Recorder is usable. One serves all clients and
// servers of a program, and all methods may be called concurrently. A Recorder must not be copied.
//
// A server's question to a client names no call, and under protocols before 2026-07-28 it comes in
// the context of Connect. So a Recorder keeps the requests that each session of a client has
// open. If all of them are of one agent, the question is that agent's, and if there is only one, its
// handler's context carries the call. Otherwise nobody can tell the agent: an elicitation is recorded
// as one of the run, without an agent, and a sampling is not recorded. That run is the run of the
// open requests, or of the agent in the context of Connect if no request is open; open requests of
// several runs leave nothing to record.
type Recorder struct {
	mu   sync.Mutex
	open []*request
}

// A request of a client is open, in the course of which the server may ask.
type request struct {
	session *mcp.ClientSession
	agent   *agentevents.Agent // may be nil
	call    *agentevents.Call  // may be nil
}

// Record is a middleware, for sending and receiving, of clients and servers. It does not change
// requests and answers. Errors of recording go only to EmitterOptions.OnViolation and OnError; only
// a call that EmitterOptions.Guard forbids is not made, and has that error. Without an agent in the
// context nothing is recorded. It may be called concurrently.
//
//   - tools/call is a tool call: it fails with its error, or with a result that is marked as an
//     error. If the context carries an open call of the tool, the recorder of that call records it.
//   - elicitation/create is a clarification. Its answer is the content, or else the action.
//   - sampling/createMessage is a model call, unless the context carries one. Handlers have it
//     in their context, so that package modelhttp adds the usage.
//   - notifications/progress is an [agentevents.SpanRecorded] if the context carries the call,
//     which it does in the server's handler. To a client it comes apart from the call, also
//     after its return, and is not recorded.
//
// Under protocol 2026-07-28 a server asks with the result of a call, and is called again with the
// answers. The client does so below its middleware: [Handlers] records the questions. For the
// server these are two calls.
func (r *Recorder) Record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		h := func(ctx context.Context, req mcp.Request) (mcp.Result, error) { return next(ctx, method, req) }
		if cs := clientOf(req); cs != nil && asking[method] {
			h = func(ctx context.Context, req mcp.Request) (mcp.Result, error) {
				ctx, end := r.begin(ctx, cs)
				defer end()
				return next(ctx, method, req)
			}
		}
		return handler(r, recordings[method], h)(ctx, req)
	}
}

// Handlers returns the options with handlers that record the server's questions, as
// [Recorder.Record] does.
func (r *Recorder) Handlers(o mcp.ClientOptions) *mcp.ClientOptions {
	o.ElicitationHandler = handler(r, elicited, o.ElicitationHandler)
	o.CreateMessageHandler = handler(r, sampled, o.CreateMessageHandler)
	o.CreateMessageWithToolsHandler = handler(r, sampled, o.CreateMessageWithToolsHandler)
	return &o
}

// asking are the methods in the course of which a server may ask its client.
var asking = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// clientOf returns the session of a client that sends or gets a request, or nil.
func clientOf(req mcp.Request) *mcp.ClientSession {
	cs, _ := req.GetSession().(*mcp.ClientSession)
	return cs
}

// begin notes an open request. The context carries it, and the client's own requests within it.
func (r *Recorder) begin(ctx context.Context, cs *mcp.ClientSession) (context.Context, func()) {
	q := &request{cs, agentevents.AgentFromContext(ctx), agentevents.CallFromContext(ctx)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, q)
	return context.WithValue(ctx, requestKey{}, q), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open = slices.DeleteFunc(r.open, func(o *request) bool { return o == q })
	}
}

type requestKey struct{}

// asker returns whom a question to a client is for, and a context that carries the agent. It is a
// handle without an id if only the run is known, and then the context carries none.
func (r *Recorder) asker(ctx context.Context, cs *mcp.ClientSession) (context.Context, *agentevents.Agent) {
	a := agentevents.AgentFromContext(ctx)
	if q, _ := ctx.Value(requestKey{}).(*request); cs == nil || q != nil && q.session == cs {
		return ctx, a // a server, or a client that asks within its request
	}
	ctx = context.WithValue(ctx, requestKey{}, &request{session: cs}) // the handler after a middleware asks again
	r.mu.Lock()
	var open []*request
	for _, q := range r.open {
		if q.session == cs {
			open = append(open, q)
		}
	}
	r.mu.Unlock()
	runs, agents := map[string]*agentevents.Run{}, map[[2]string]*request{}
	for _, q := range open {
		agents[[2]string{q.agent.Run().ID(), q.agent.ID()}] = q
		if run := q.agent.Run(); run != nil {
			runs[run.ID()] = run
		}
	}
	switch {
	case len(open) == 1 && open[0].call.Recorded():
		return agentevents.ContextWithCall(ctx, open[0].call), open[0].agent
	case len(agents) == 1 && len(runs) == 1:
		return agentevents.ContextWithAgent(ctx, open[0].agent), open[0].agent
	case len(runs) == 0 && a.Run() != nil:
		runs[a.Run().ID()] = a.Run()
	}
	ctx = agentevents.ContextWithAgent(ctx, nil)
	if one := slices.Collect(maps.Values(runs)); len(one) == 1 {
		return ctx, one[0].Agent("")
	}
	return ctx, nil
}

// A recording calls next, and records the call.
type recording func(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (mcp.Result, error)

type handle func(context.Context) (mcp.Result, error)

var recordings = map[string]recording{
	"tools/call":             called,
	"elicitation/create":     elicited,
	"sampling/createMessage": sampled,
	"notifications/progress": progressed,
}

// handler returns h with a recording around it. Nil stays nil: it means that a client lacks the
// capability.
func handler[Q mcp.Request, R mcp.Result](r *Recorder, record recording,
	h func(context.Context, Q) (R, error)) func(context.Context, Q) (R, error) {
	if record == nil || h == nil {
		return h
	}
	return func(ctx context.Context, req Q) (R, error) {
		a := agentevents.AgentFromContext(ctx)
		if _, question := req.GetParams().(mcp.InputRequest); question {
			ctx, a = r.asker(ctx, clientOf(req))
		}
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
		if said := new(jsonrpc.Error); errors.As(err, &said) && said.Code != 0 { // 0 stands for none
			return "", &agentevents.ToolError{Code: strconv.FormatInt(said.Code, 10), Err: err}
		}
		return agentevents.JSONOf(res), err
	})
	if !ran {
		return nil, refused
	}
	return res, err
}

// failure returns the error in a tool's result: on the server it is the handler's error.
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
	asked := &agentevents.ClarificationRequested{InterruptID: cmp.Or(p.ElicitationID, rand.Text()[:8]),
		Questions: []agentevents.Question{q}}
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
		_ = a.Emit(ctx, &agentevents.ClarificationResolved{InterruptID: asked.InterruptID,
			Answers: agentevents.JSONOf(map[string]any{q.ID: answer})})
	}()
	return next(context.WithValue(ctx, p, true))
}

func sampled(ctx context.Context, a *agentevents.Agent, req mcp.Request, next handle) (res mcp.Result, err error) {
	if agentevents.ModelCallFromContext(ctx).Open() || agentevents.AgentFromContext(ctx) == nil {
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
		said := agentevents.JSONOf(map[string]any{"callId": call.ID,
			"progress": p.Progress, "total": p.Total, "message": p.Message})
		_ = a.Emit(ctx, &agentevents.SpanRecorded{
			Subject: "tool_call", Phase: "progress", Name: call.ToolID, Attributes: said,
		})
	}
	return next(ctx)
}
