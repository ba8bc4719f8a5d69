//lint:file-ignore SA1019 sampling is deprecated, and used

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	aemcp "github.com/agentevents/agentevents/adapter/mcp"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

var update = flag.Bool("update", false, "write the golden files")

// The protocols: the one with sessions without ids, which is the default, and the one before it.
var protocols = []string{"2026-07-28", "2025-11-25"}

// A log is one emitter with a run of one agent.
type log struct {
	rec   *eventtest.Recorder
	run   *agentevents.Run
	agent *agentevents.Agent
}

func record(t *testing.T, name string, o agentevents.EmitterOptions) *log {
	o.Lifecycle = agentevents.LifecycleDerived
	em, rec := eventtest.RecordWith(t, o)
	run, err := em.Run(name)
	require.NoError(t, err)
	l := &log{rec, run, run.Agent(name)}
	require.NoError(t, l.agent.Emit(t.Context(), &agentevents.AgentStarted{}))
	return l
}

func (l *log) context(t *testing.T) context.Context {
	return agentevents.ContextWithAgent(t.Context(), l.agent)
}

// end ends agent and run, which leaves no call open, and checks the log.
func (l *log) end(t *testing.T) {
	require.NoError(t, l.agent.Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	require.NoError(t, l.run.Emit(t.Context(), &agentevents.RunCompleted{}))
	l.rec.WantLaws(t, eventtest.LawOptions{})
}

var minted = regexp.MustCompile(`clarification [A-Z2-7]{8}`)

func (l *log) tree(t *testing.T) string {
	var details report.Details
	for _, ev := range l.rec.Events() {
		details.Add(&ev)
	}
	var b strings.Builder
	require.NoError(t, tree.Write(&b, l.rec.Snapshot(l.run.ID()), tree.Options{Details: &details}))
	return minted.ReplaceAllString(b.String(), "clarification ID")
}

func golden(t *testing.T, path, got string) {
	path = filepath.Join("testdata", path)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

var info = &mcp.Implementation{Name: "test", Version: "1"}

type place struct {
	City string `json:"city"`
}

// A gate is where parallel calls of a tool wait, so that they begin and return in order.
type gate struct {
	began chan string // cities
	goOn  map[string]chan struct{}
}

func newGate(cities ...string) *gate {
	g := &gate{began: make(chan string), goOn: map[string]chan struct{}{}}
	for _, c := range cities {
		g.goOn[c] = make(chan struct{})
	}
	return g
}

func newServer(g *gate) *mcp.Server {
	s := mcp.NewServer(info, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	mcp.AddTool(s, &mcp.Tool{Name: "weather"}, func(ctx context.Context, req *mcp.CallToolRequest, in place) (*mcp.CallToolResult, place, error) {
		if in.City == "Atlantis" {
			return nil, place{}, errors.New("no such city: Atlantis")
		}
		if g != nil && g.goOn[in.City] != nil {
			g.began <- in.City
			select {
			case <-g.goOn[in.City]:
			case <-ctx.Done():
				return nil, place{}, ctx.Err()
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "sunny in " + in.City}}}, in, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "book"}, func(ctx context.Context, req *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
		seat, _ := req.Params.InputResponses["seat"].(*mcp.ElicitResult)
		if seat == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"seat": &mcp.ElicitParams{
				Mode: "form", Message: "Which seat to " + in.City + "?",
				RequestedSchema: json.RawMessage(`{"type":"object","properties":{"seat":{"type":"string"}}}`),
			}}}, nil, nil
		}
		text := "not booked: " + seat.Action
		if seat.Action == "accept" {
			text = "booked " + seat.Content["seat"].(string)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "poem"}, func(ctx context.Context, req *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "asking"})
		}
		poem, _ := req.Params.InputResponses["poem"].(mcp.Result)
		if poem == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"poem": &mcp.CreateMessageParams{
				MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a poem on " + in.City}}},
				ModelPreferences: &mcp.ModelPreferences{Hints: []*mcp.ModelHint{{Name: "small"}}},
			}}}, nil, nil
		}
		text, err := json.Marshal(poem)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
	})
	return s
}

// answers is a client's options: a person who is asked for seats, and a model.
func answers() mcp.ClientOptions {
	return mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			switch {
			case strings.Contains(req.Params.Message, "Rome"):
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"seat": "14C"}}, nil
			case strings.Contains(req.Params.Message, "Oslo"):
				return &mcp.ElicitResult{Action: "decline"}, nil
			case strings.Contains(req.Params.Message, "Bonn"):
				return &mcp.ElicitResult{Action: "cancel"}, nil
			}
			return nil, errors.New("nobody is there")
		},
		CreateMessageHandler: func(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			// The facts that a recorder in the model's client would add.
			call := agentevents.ModelCallFromContext(ctx)
			_ = call.Note(ctx, &agentevents.ModelReturned{Usage: agentevents.Some(agentevents.Usage{InputTokens: 9, OutputTokens: 4})})
			return &mcp.CreateMessageResult{Model: "small-1", Role: "assistant", StopReason: "endTurn", Content: &mcp.TextContent{Text: "O city"}}, nil
		},
	}
}

// connect connects a client with a server in memory. A log that is nil is not recorded.
func connect(t *testing.T, protocol string, s *mcp.Server, server, client *log, o mcp.ClientOptions, wire io.Writer) *mcp.ClientSession {
	here, there := mcp.NewInMemoryTransports()
	recorder := new(aemcp.Recorder)
	serve, ask, options := t.Context(), t.Context(), &o
	if server != nil {
		s.AddReceivingMiddleware(recorder.Record)
		s.AddSendingMiddleware(recorder.Record)
		serve = server.context(t)
	}
	if client != nil {
		options, ask = recorder.Handlers(o), client.context(t)
	}
	c := mcp.NewClient(info, options)
	if client != nil {
		c.AddSendingMiddleware(recorder.Record)
		c.AddReceivingMiddleware(recorder.Record)
	}
	served, err := s.Connect(serve, there, nil)
	require.NoError(t, err)
	var transport mcp.Transport = here
	if wire != nil {
		transport = &mcp.LoggingTransport{Transport: here, Writer: wire}
	}
	cs, err := c.Connect(ask, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	require.NoError(t, err)
	require.Equal(t, protocol, cs.InitializeResult().ProtocolVersion)
	t.Cleanup(func() {
		require.NoError(t, cs.Close())
		require.NoError(t, served.Wait())
	})
	return cs
}

func call(ctx context.Context, cs *mcp.ClientSession, tool, city string) (*mcp.CallToolResult, error) {
	p := &mcp.CallToolParams{Name: tool, Arguments: place{city}}
	if tool == "poem" {
		p.SetProgressToken("p1")
	}
	return cs.CallTool(ctx, p)
}

func TestTree(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
			cities := []string{"Paris", "Rome", "Oslo"}
			g := newGate(cities...)
			cs := connect(t, protocol, newServer(g), server, client, answers(), nil)
			ctx := client.context(t)

			var done []chan struct{}
			for _, city := range cities { // all have begun before the first returns
				d := make(chan struct{})
				done = append(done, d)
				go func() {
					defer close(d)
					res, err := call(ctx, cs, "weather", city)
					if err != nil || res.IsError {
						t.Errorf("weather in %s: %v", city, err)
					}
				}()
				require.Equal(t, city, <-g.began)
			}
			for i, city := range cities {
				close(g.goOn[city])
				<-done[i]
			}

			res, err := call(ctx, cs, "weather", "Atlantis")
			require.NoError(t, err)
			require.True(t, res.IsError)
			_, err = call(ctx, cs, "wether", "Rome")
			require.ErrorContains(t, err, "unknown tool")
			res, err = cs.CallTool(ctx, &mcp.CallToolParams{Name: "weather", Arguments: json.RawMessage(`{"city":7}`)})
			require.NoError(t, err)
			require.True(t, res.IsError)
			for _, city := range []string{"Rome", "Oslo", "Bonn"} {
				_, err = call(ctx, cs, "book", city)
				require.NoError(t, err)
			}
			_, err = call(ctx, cs, "book", "Bern")
			require.ErrorContains(t, err, "nobody is there")
			res, err = call(ctx, cs, "poem", "Rome")
			require.NoError(t, err)
			require.False(t, res.IsError)

			client.end(t)
			server.end(t)
			golden(t, "client-"+protocol+".txt", client.tree(t))
			golden(t, "server-"+protocol+".txt", server.tree(t))
		})
	}
}

// An error that has no code on the wire has none in the log.
func TestErrorsWithoutCode(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
			s := newServer(nil)
			s.AddTool(&mcp.Tool{Name: "fuse", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, errors.New("blown")
			})
			_, err := call(client.context(t), connect(t, protocol, s, server, client, answers(), nil), "fuse", "Rome")
			require.ErrorContains(t, err, "blown")
			client.end(t)
			server.end(t)
			for _, l := range []*log{client, server} {
				failure := eventtest.Payloads[*agentevents.ToolReturned](l.rec.Events())[0].Error.V
				require.Empty(t, failure.Code)
				require.Contains(t, failure.Message, "blown")
			}
		})
	}
}

// The logs of a client and of its server.
func TestEvents(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
			cs := connect(t, protocol, newServer(nil), server, client, answers(), nil)
			_, err := call(client.context(t), cs, "weather", "Rome")
			require.NoError(t, err)
			_, err = call(client.context(t), cs, "weather", "Atlantis")
			require.NoError(t, err)
			_, err = call(client.context(t), cs, "wether", "Rome")
			require.Error(t, err)
			_, err = call(client.context(t), cs, "book", "Rome")
			require.NoError(t, err)
			_, err = call(client.context(t), cs, "poem", "Rome")
			require.NoError(t, err)
			client.end(t)
			server.end(t)

			for _, l := range []*log{client, server} {
				calls := eventtest.Payloads[*agentevents.ToolCalled](l.rec.Events())
				require.Equal(t, agentevents.TransportMCP, calls[0].Transport)
				require.Equal(t, "weather", calls[0].ToolID)
				require.JSONEq(t, `{"city":"Rome"}`, string(calls[0].Arguments))
				returns := eventtest.Payloads[*agentevents.ToolReturned](l.rec.Events())
				require.Len(t, returns, len(calls))
				require.Equal(t, agentevents.ToolStatusOK, returns[0].Status)
				require.Contains(t, returns[0].Result, `"structuredContent":{"city":"Rome"}`)
				require.Equal(t, agentevents.ToolStatusError, returns[1].Status)
				require.Equal(t, "no such city: Atlantis", returns[1].Error.V.Message)
				require.Contains(t, returns[1].Result, `"isError":true`)
				require.Equal(t, agentevents.ToolStatusError, returns[2].Status)
				require.Contains(t, returns[2].Error.V.Message, `unknown tool "wether"`)
				require.Equal(t, "-32602", returns[2].Error.V.Code)
				require.Empty(t, returns[2].Result)
			}
			require.Empty(t, eventtest.Payloads[*agentevents.SpanRecorded](client.rec.Events()))
			span := eventtest.Payloads[*agentevents.SpanRecorded](server.rec.Events())[0]
			require.Equal(t, "tool_call progress poem", span.Subject+" "+span.Phase+" "+span.Name)
			calls := eventtest.Payloads[*agentevents.ToolCalled](server.rec.Events())
			poem := slices.IndexFunc(calls, func(p *agentevents.ToolCalled) bool { return p.ToolID == "poem" })
			require.JSONEq(t, `{"callId":"`+calls[poem].CallID+`","progress":1,"total":2,"message":"asking"}`, string(span.Attributes))
			require.Empty(t, eventtest.Payloads[*agentevents.ToolCalled](client.rec.Events())[0].Principal)
			require.Equal(t, "test", eventtest.Payloads[*agentevents.ToolCalled](server.rec.Events())[0].Principal)

			asked := eventtest.Payloads[*agentevents.ClarificationRequested](client.rec.Events())
			require.Len(t, asked, 1) // once, also where the question passes middleware and handler
			require.Equal(t, "Which seat to Rome?", asked[0].Questions[0].Question)
			require.JSONEq(t, `{"type":"object","properties":{"seat":{"type":"string"}}}`, string(asked[0].Questions[0].Schema))
			resolved := eventtest.Payloads[*agentevents.ClarificationResolved](client.rec.Events())
			require.Len(t, resolved, 1)
			require.Equal(t, asked[0].InterruptID, resolved[0].InterruptID)
			require.JSONEq(t, `{"form":{"seat":"14C"}}`, string(resolved[0].Answers))
			models := eventtest.Payloads[*agentevents.ModelReturned](client.rec.Events())
			require.Len(t, models, 1)
			require.Equal(t, "small-1", models[0].Model)
			require.Equal(t, []string{"endTurn"}, models[0].FinishReasons)
			require.EqualValues(t, 9, models[0].Usage.V.InputTokens)
			require.Contains(t, models[0].Response, "O city")
			require.Contains(t, eventtest.Payloads[*agentevents.ModelCalled](client.rec.Events())[0].Request, "a poem on Rome")
			require.EqualValues(t, 9, client.rec.Snapshot("").Usage.Usage.InputTokens)

			// Only the older protocol asks apart from the call.
			require.NotEmpty(t, asked[0].CallID)
			inCall, onServer := protocol == protocols[0], len(eventtest.Payloads[*agentevents.ClarificationRequested](server.rec.Events()))
			require.Equal(t, inCall, onServer == 0)
			require.Equal(t, inCall, len(eventtest.Payloads[*agentevents.ModelCalled](server.rec.Events())) == 0)
		})
	}
}

// Somebody else records the call: a runtime around the client, and a wrapped tool in the server.
func TestRecordedOnce(t *testing.T) {
	server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
	s := mcp.NewServer(info, nil)
	add := agentevents.WrapTool("add", func(_ context.Context, in [2]int) (int, error) { return in[0] + in[1], nil })
	s.AddTool(&mcp.Tool{Name: "add", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := add(ctx, [2]int{1, 2})
		return &mcp.CallToolResult{}, err
	})
	cs := connect(t, protocols[0], s, server, client, mcp.ClientOptions{}, nil)
	use := func(ctx context.Context) (agentevents.JSON, error) {
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "add"})
		return "", err
	}
	var closed context.Context
	_, err := client.agent.Do(client.context(t), &agentevents.ToolCalled{ToolID: "add"}, func(ctx context.Context) (agentevents.JSON, error) {
		closed = ctx
		return use(ctx)
	})
	require.NoError(t, err)
	_, err = use(closed) // that call has returned
	require.NoError(t, err)
	_, err = client.agent.Do(client.context(t), &agentevents.ToolCalled{ToolID: "sum"}, use) // another tool
	require.NoError(t, err)
	client.end(t)
	server.end(t)
	calls := func(l *log) (ids []string) {
		for _, c := range eventtest.Payloads[*agentevents.ToolCalled](l.rec.Events()) {
			ids = append(ids, c.ToolID+" "+string(c.Transport))
		}
		return ids
	}
	require.Equal(t, []string{"add ", "add mcp", "sum ", "add mcp"}, calls(client))
	require.Equal(t, []string{"add mcp", "add mcp", "add mcp"}, calls(server))
}

func TestCancelledCall(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
			g := newGate("Rome")
			cs := connect(t, protocol, newServer(g), server, client, answers(), nil)
			ctx, cancel := context.WithCancelCause(client.context(t))
			go func() {
				<-g.began
				cancel(errors.New("the person pressed stop"))
			}()
			_, err := call(ctx, cs, "weather", "Rome")
			require.ErrorIs(t, err, context.Canceled)
			client.end(t)
			require.Eventually(t, func() bool {
				return len(eventtest.Payloads[*agentevents.ToolReturned](server.rec.Events())) == 1
			}, time.Minute, time.Millisecond)
			server.end(t)
			for _, l := range []*log{client, server} {
				returned := eventtest.Payloads[*agentevents.ToolReturned](l.rec.Events())
				require.Len(t, returned, 1)
				require.Equal(t, agentevents.ToolStatusCancelled, returned[0].Status)
			}
			client.rec.Want(t, `agent.toolReturned weather cancelled error.message="the person pressed stop"`)
		})
	}
}

// The server is a process that dies in the middle of a call.
func TestCrash(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			client := record(t, "planner", agentevents.EmitterOptions{})
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "MCP_TEST_SERVER=1")
			c := mcp.NewClient(info, nil)
			c.AddSendingMiddleware(new(aemcp.Recorder).Record)
			cs, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
			require.NoError(t, err)
			res, err := call(client.context(t), cs, "weather", "Rome")
			require.NoError(t, err)
			require.False(t, res.IsError)
			_, err = call(client.context(t), cs, "die", "Rome")
			require.Error(t, err)
			_, err = call(client.context(t), cs, "weather", "Oslo") // nobody is there any more
			require.Error(t, err)
			_ = cs.Close()
			client.end(t)
			golden(t, "crash.txt", client.tree(t))
		})
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") == "" {
		os.Exit(m.Run())
	}
	s := newServer(nil)
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, place) (*mcp.CallToolResult, any, error) {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
		select {}
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// Recording does not change the bytes that the client sends and gets, nor the results of its calls.
func TestRecordingChangesNothing(t *testing.T) {
	talk := func(t *testing.T, protocol string, server, client *log) string {
		var wire safeBuilder
		cs := connect(t, protocol, newServer(nil), server, client, answers(), &wire)
		ctx := t.Context()
		if client != nil {
			ctx = client.context(t)
		}
		var told strings.Builder
		for _, c := range [][2]string{{"weather", "Rome"}, {"weather", "Atlantis"}, {"wether", "Rome"}, {"book", "Rome"}, {"book", "Oslo"}, {"book", "Bern"}, {"poem", "Rome"}, {"", "Rome"}} {
			res, err := call(ctx, cs, c[0], c[1])
			text, _ := json.Marshal(res)
			fmt.Fprintln(&told, string(text), err)
		}
		lines := strings.SplitAfter(wire.String(), "\n")
		slices.Sort(lines) // the SDK logs a line after it is sent, when another may have been
		return told.String() + strings.Join(lines, "")
	}
	broken := func(t *testing.T, sink agentevents.Sink) *log {
		em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived, Sinks: []agentevents.Sink{sink}})
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		l := &log{run: run, agent: run.Agent("a")}
		_ = l.agent.Emit(t.Context(), &agentevents.AgentStarted{})
		return l
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			want := talk(t, protocol, nil, nil)
			require.Contains(t, want, "booked 14C")
			for name, make := range map[string]func(t *testing.T) *log{
				"recorded":       func(t *testing.T) *log { return record(t, "r", agentevents.EmitterOptions{}) },
				"failing sink":   func(t *testing.T) *log { return broken(t, sink(func() error { return errors.New("full") })) },
				"panicking sink": func(t *testing.T) *log { return broken(t, sink(func() error { panic("no") })) },
				"closed emitter": func(t *testing.T) *log {
					l := broken(t, sink(func() error { return nil }))
					require.NoError(t, l.run.Close())
					return l
				},
				"nil emitter": func(t *testing.T) *log {
					var em *agentevents.Emitter
					run, err := em.Run("r")
					require.Error(t, err)
					return &log{run: run, agent: run.Agent("a")}
				},
				"zero agent": func(t *testing.T) *log { return &log{agent: new(agentevents.Agent)} },
				"agent that never started": func(t *testing.T) *log {
					l := broken(t, sink(func() error { return nil }))
					l.agent = l.run.Agent("b")
					return l
				},
			} {
				t.Run(name, func(t *testing.T) { require.Equal(t, want, talk(t, protocol, make(t), make(t))) })
			}
		})
	}
}

type sink func() error

func (s sink) WriteEvent(context.Context, agentevents.Event) error { return s() }

// A safeBuilder may be written to concurrently.
type safeBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *safeBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A guard that forbids a tool stops it on both sides.
func TestGuard(t *testing.T) {
	forbidden := &agentevents.RuleError{Rule: "tool-allowed", Detail: "no weather"}
	guard := agentevents.EmitterOptions{
		OnViolation: func(*agentevents.RuleError) {},
		Guard: func(ev agentevents.Event) *agentevents.RuleError {
			if p, ok := ev.Payload.(*agentevents.ToolCalled); ok && p.ToolID == "weather" {
				return forbidden
			}
			return nil
		},
	}
	g := newGate("Rome") // the tool would wait
	client := record(t, "planner", guard)
	cs := connect(t, protocols[0], newServer(g), nil, client, answers(), nil)
	_, err := call(client.context(t), cs, "weather", "Rome")
	require.ErrorAs(t, err, new(*agentevents.RuleError))
	server := record(t, "server", guard)
	cs = connect(t, protocols[0], newServer(g), server, nil, answers(), nil)
	_, err = call(t.Context(), cs, "weather", "Rome")
	require.ErrorContains(t, err, "tool-allowed")
}

// A panic goes on, and open calls are closed.
func TestPanics(t *testing.T) {
	l := record(t, "planner", agentevents.EmitterOptions{})
	for method, req := range map[string]mcp.Request{
		"tools/call":             &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "add"}},
		"elicitation/create":     &mcp.ElicitRequest{Params: &mcp.ElicitParams{Message: "Which?"}},
		"sampling/createMessage": &mcp.CreateMessageRequest{Params: &mcp.CreateMessageParams{}},
		"notifications/progress": &mcp.ProgressNotificationClientRequest{Params: &mcp.ProgressNotificationParams{}},
	} {
		h := new(aemcp.Recorder).Record(func(context.Context, string, mcp.Request) (mcp.Result, error) { panic(method) })
		require.PanicsWithValue(t, method, func() { _, _ = h(l.context(t), method, req) })
	}
	l.end(t)
	require.Equal(t, "panic", eventtest.Payloads[*agentevents.ToolReturned](l.rec.Events())[0].Error.V.Code)
	require.True(t, eventtest.Payloads[*agentevents.ModelReturned](l.rec.Events())[0].Error.OK)
	require.Len(t, eventtest.Payloads[*agentevents.ClarificationResolved](l.rec.Events()), 1)
}

// A question to confirm has no schema, and its answer is only an action.
func TestConfirmation(t *testing.T) {
	l := record(t, "planner", agentevents.EmitterOptions{})
	h := new(aemcp.Recorder).Record(func(context.Context, string, mcp.Request) (mcp.Result, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
	})
	_, err := h(l.context(t), "elicitation/create", &mcp.ElicitRequest{Params: &mcp.ElicitParams{Message: "Sure?"}})
	require.NoError(t, err)
	l.end(t)
	require.Empty(t, eventtest.Payloads[*agentevents.ClarificationRequested](l.rec.Events())[0].Questions[0].Schema)
	require.Equal(t, agentevents.JSON(`{"form":"accept"}`), eventtest.Payloads[*agentevents.ClarificationResolved](l.rec.Events())[0].Answers)
}

// A client gets no handler that it did not have: the server sees the client's own handlers.
func TestHandlers(t *testing.T) {
	o := new(aemcp.Recorder).Handlers(mcp.ClientOptions{})
	require.Nil(t, o.ElicitationHandler)
	require.Nil(t, o.CreateMessageHandler)
	require.Nil(t, o.CreateMessageWithToolsHandler)
	o = new(aemcp.Recorder).Handlers(mcp.ClientOptions{CreateMessageWithToolsHandler: func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
		return nil, errors.New("overloaded")
	}})
	l := record(t, "planner", agentevents.EmitterOptions{})
	res, err := o.CreateMessageWithToolsHandler(l.context(t), &mcp.CreateMessageWithToolsRequest{Params: &mcp.CreateMessageWithToolsParams{}})
	require.Nil(t, res)
	require.EqualError(t, err, "overloaded")
	l.end(t)
	require.Equal(t, "overloaded", eventtest.Payloads[*agentevents.ModelReturned](l.rec.Events())[0].Error.V.Message)
}

// Over HTTP each request has a context of its own, in which an earlier handler names the caller.
func TestAgentsOfUsers(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		t.Run(fmt.Sprint("stateless ", stateless), func(t *testing.T) {
			l := record(t, "server", agentevents.EmitterOptions{})
			s := newServer(nil)
			s.AddReceivingMiddleware(new(aemcp.Recorder).Record)
			h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				agent := l.run.Agent(r.URL.Query().Get("user"))
				h.ServeHTTP(w, r.WithContext(agentevents.ContextWithAgent(r.Context(), agent)))
			}))
			defer web.Close()
			var users sync.WaitGroup
			for _, user := range []string{"ada", "kim"} {
				agent := l.run.Agent(user)
				require.NoError(t, agent.Emit(t.Context(), &agentevents.AgentStarted{}))
				users.Go(func() {
					cs, err := mcp.NewClient(info, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "?user=" + user}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					for range 20 {
						if _, err := call(t.Context(), cs, "weather", user); err != nil {
							t.Error(err)
						}
					}
					if err := cs.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			users.Wait()
			for _, user := range []string{"ada", "kim"} {
				require.NoError(t, l.run.Agent(user).Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
			}
			l.end(t)
			n := map[string]int{}
			for _, ev := range l.rec.Events() {
				if p, ok := ev.Payload.(*agentevents.ToolCalled); ok {
					require.JSONEq(t, `{"city":"`+ev.AgentID+`"}`, string(p.Arguments))
					n[ev.AgentID]++
				}
			}
			require.Equal(t, map[string]int{"ada": 20, "kim": 20}, n)
		})
	}
}

// Many calls at once, of many agents, on one client and one server.
func TestConcurrent(t *testing.T) {
	server, client := record(t, "server", agentevents.EmitterOptions{}), record(t, "planner", agentevents.EmitterOptions{})
	cs := connect(t, protocols[0], newServer(nil), server, client, answers(), nil)
	var calls sync.WaitGroup
	for i := range 60 {
		agent := client.agent.Agent(fmt.Sprint("worker ", i%6))
		if i < 6 {
			require.NoError(t, agent.Emit(t.Context(), &agentevents.AgentStarted{}))
		}
		calls.Go(func() {
			tool := []string{"weather", "book", "poem"}[i%3]
			if _, err := call(agentevents.ContextWithAgent(t.Context(), agent), cs, tool, "Rome"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	for i := range 6 {
		require.NoError(t, client.run.Agent(fmt.Sprint("worker ", i)).Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	}
	client.end(t)
	server.end(t)
	require.Len(t, eventtest.Payloads[*agentevents.ToolCalled](client.rec.Events()), 60)
	require.Len(t, eventtest.Payloads[*agentevents.ClarificationResolved](client.rec.Events()), 20)
	require.Len(t, eventtest.Payloads[*agentevents.ModelReturned](client.rec.Events()), 20)
}

// A handler that asks a model by HTTP makes no second model call, and its usage counts once.
func TestSamplingByHTTP(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"msg_1","model":"small-1-2026","stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`)
	}))
	defer model.Close()
	client := record(t, "planner", agentevents.EmitterOptions{})
	o := answers()
	plain := o.CreateMessageHandler
	o.CreateMessageHandler = func(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		ask, err := http.NewRequestWithContext(ctx, http.MethodPost, model.URL+"/v1/messages", strings.NewReader(`{"model":"small"}`))
		if err != nil {
			return nil, err
		}
		ask.Header.Set("Content-Type", "application/json")
		res, err := (&http.Client{Transport: new(modelhttp.Recorder).Transport(nil)}).Do(ask)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return nil, err
		}
		return plain(context.Background(), req)
	}
	cs := connect(t, protocols[0], newServer(nil), nil, client, o, nil)
	_, err := call(client.context(t), cs, "poem", "Rome")
	require.NoError(t, err)
	client.end(t)
	require.Len(t, eventtest.Payloads[*agentevents.ModelCalled](client.rec.Events()), 1)
	returned := eventtest.Payloads[*agentevents.ModelReturned](client.rec.Events())
	require.Len(t, returned, 1)
	require.Equal(t, "msg_1", returned[0].ResponseID)
	require.EqualValues(t, 13, client.rec.Snapshot("").Usage.Usage.InputTokens+client.rec.Snapshot("").Usage.Usage.OutputTokens)
}

// A server asks over HTTP, in the context of Connect, which carries agent a. The question belongs to
// the agent whose request is open on the session. If it can be one of several agents', it is the run's.
func TestQuestionsByHTTP(t *testing.T) {
	type of struct{ agent, tool string } // a request that is open while the server asks
	for _, tt := range []struct {
		name     string
		protocol string
		open     []of   // in front of the call of b that asks
		asker    string // the agent of the question, and of the model call that follows
		named    bool   // the question names the call
	}{
		{"one call", "2025-11-25", nil, "b", true},
		{"another call of the agent", "2025-11-25", []of{{"b", "wait"}}, "b", false},
		{"a call of another agent", "2025-11-25", []of{{"a", "wait"}}, "", false},
		{"a call of nobody", "2025-11-25", []of{{"", "wait"}}, "", false},
		{"a prompt of another agent", "2025-11-25", []of{{"a", ""}}, "", false},
		{"within a call", "2026-07-28", []of{{"a", "wait"}, {"b", "wait"}}, "b", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			waits, goOn := make(chan struct{}), make(chan struct{})
			wait := func(ctx context.Context) {
				waits <- struct{}{}
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			}
			s := newServer(nil)
			mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ place) (*mcp.CallToolResult, any, error) {
				wait(ctx)
				return &mcp.CallToolResult{}, nil, nil
			})
			s.AddPrompt(&mcp.Prompt{Name: "wait"}, func(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				wait(ctx)
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
			})
			web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: tt.protocol == protocols[0]}))
			defer web.Close()
			defer web.CloseClientConnections()
			var others sync.WaitGroup
			defer others.Wait()
			release := sync.OnceFunc(func() { close(goOn) })
			defer release()

			l := record(t, "a", agentevents.EmitterOptions{})
			agents := map[string]context.Context{"": t.Context()}
			for _, name := range []string{"a", "b"} {
				agent := l.run.Agent(name)
				if name != "a" {
					require.NoError(t, agent.Emit(t.Context(), &agentevents.AgentStarted{}))
				}
				agents[name] = agentevents.ContextWithAgent(t.Context(), agent)
			}
			rec := new(aemcp.Recorder)
			o := answers()
			plain := o.ElicitationHandler
			seen := make(chan string, 1) // the agent in the handler's context
			o.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				seen <- agentevents.AgentFromContext(ctx).ID()
				return plain(ctx, req)
			}
			c := mcp.NewClient(info, rec.Handlers(o))
			c.AddSendingMiddleware(rec.Record)
			c.AddReceivingMiddleware(rec.Record)
			cs, err := c.Connect(agents["a"], &mcp.StreamableClientTransport{Endpoint: web.URL}, &mcp.ClientSessionOptions{ProtocolVersion: tt.protocol})
			require.NoError(t, err)

			for _, q := range tt.open {
				others.Go(func() {
					var err error
					if q.tool == "" {
						_, err = cs.GetPrompt(agents[q.agent], &mcp.GetPromptParams{Name: "wait"})
					} else {
						_, err = call(agents[q.agent], cs, q.tool, "Rome")
					}
					if err != nil {
						t.Error(err)
					}
				})
				<-waits
			}
			_, err = call(agents["b"], cs, "book", "Rome")
			require.NoError(t, err)
			require.Equal(t, tt.asker, <-seen)
			_, err = call(agents["b"], cs, "poem", "Rome")
			require.NoError(t, err)
			release()
			others.Wait()
			require.NoError(t, cs.Close())

			require.NoError(t, l.run.Agent("b").Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
			l.end(t)
			requireAsker(t, l.rec.Events(), tt.asker, tt.named)
		})
	}
}

// requireAsker checks that one question and its answer belong to the agent, and a model call if there is
// an agent. A named question belongs to the call of b.
func requireAsker(t *testing.T, events []agentevents.Event, asker string, named bool) {
	t.Helper()
	calls, asked, models := map[string]string{}, 0, 0
	for _, ev := range events {
		switch p := ev.Payload.(type) {
		case *agentevents.ToolCalled:
			calls[p.CallID] = ev.AgentID + " " + p.ToolID
		case *agentevents.ClarificationRequested:
			asked++
			require.Equal(t, asker, ev.AgentID)
			require.Equal(t, named, p.CallID != "")
			if named {
				require.Equal(t, "b book", calls[p.CallID])
			}
		case *agentevents.ClarificationResolved:
			require.Equal(t, asker, ev.AgentID)
		case *agentevents.ModelCalled:
			models++
			require.Equal(t, asker, ev.AgentID)
		}
	}
	require.Equal(t, 1, asked)
	require.Equal(t, asker != "", models == 1, "a model call needs an agent")
}

// A question that comes without an open request is the run's whose agent has connected. One that can
// be of several runs is recorded in none, and requests of other sessions do not count.
func TestQuestionsOfNobody(t *testing.T) {
	for _, tt := range []struct {
		runs     []string // of the open requests
		recorded string   // the run and the agent of the question
	}{
		{nil, "a/"},
		{[]string{"b"}, "b/b"},
		{[]string{"a", "b"}, ""},
	} {
		rec := new(aemcp.Recorder)
		logs := map[string]*log{"a": record(t, "a", agentevents.EmitterOptions{}), "b": record(t, "b", agentevents.EmitterOptions{})}
		cs, other := new(mcp.ClientSession), new(mcp.ClientSession)
		asked := false
		ask := rec.Handlers(mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = true
			return &mcp.ElicitResult{Action: "accept"}, nil
		}}).ElicitationHandler
		within := func() {
			_, err := ask(logs["a"].context(t), &mcp.ElicitRequest{Session: cs, Params: &mcp.ElicitParams{Message: "Sure?"}})
			require.NoError(t, err)
		}
		request := func(session *mcp.ClientSession, name string) {
			inner := within
			within = func() {
				h := rec.Record(func(context.Context, string, mcp.Request) (mcp.Result, error) {
					inner()
					return &mcp.CallToolResult{}, nil
				})
				_, err := h(logs[name].context(t), "tools/call", &mcp.ClientRequest[*mcp.CallToolParams]{Session: session, Params: &mcp.CallToolParams{Name: "tool"}})
				require.NoError(t, err)
			}
		}
		request(other, "a")
		for _, name := range tt.runs {
			request(cs, name)
		}
		within()
		require.True(t, asked)
		recorded := ""
		for name, l := range logs {
			l.end(t)
			for _, ev := range l.rec.Events() {
				if _, ok := ev.Payload.(*agentevents.ClarificationRequested); ok {
					recorded += name + "/" + ev.AgentID
				}
			}
		}
		require.Equal(t, tt.recorded, recorded)
	}
}

// All content goes through the emitter's policy.
func TestRedaction(t *testing.T) {
	const secret = "hunter2-hunter2"
	secrets := new(agentevents.Secrets)
	secrets.Add(secret)
	l := record(t, "planner", agentevents.EmitterOptions{Redaction: &agentevents.Policy{Secrets: secrets}})
	text := []mcp.Content{&mcp.TextContent{Text: secret}}
	for _, c := range []struct {
		method string
		params mcp.Params
		res    mcp.Result
		err    error
	}{
		{"tools/call", &mcp.CallToolParams{Name: "a", Arguments: map[string]string{"a": secret}}, &mcp.CallToolResult{Content: text, StructuredContent: secret}, nil},
		{"tools/call", &mcp.CallToolParamsRaw{Name: "b", Arguments: json.RawMessage(`{"a":"` + secret + `"}`)}, &mcp.CallToolResult{Content: text, IsError: true}, nil},
		{"tools/call", &mcp.CallToolParams{Name: "c"}, nil, errors.New(secret)},
		{"elicitation/create", &mcp.ElicitParams{Message: secret, URL: secret, RequestedSchema: secret}, &mcp.ElicitResult{Content: map[string]any{"a": secret}}, nil},
		{"elicitation/create", &mcp.ElicitParams{}, nil, errors.New(secret)},
		{"sampling/createMessage", &mcp.CreateMessageParams{SystemPrompt: secret}, &mcp.CreateMessageResult{Content: text[0]}, nil},
		{"sampling/createMessage", &mcp.CreateMessageParams{}, nil, errors.New(secret)},
		{"notifications/progress", &mcp.ProgressNotificationParams{ProgressToken: 1, Message: secret}, nil, nil},
	} {
		h := new(aemcp.Recorder).Record(func(context.Context, string, mcp.Request) (mcp.Result, error) { return c.res, c.err })
		open, openErr := l.agent.Call(t.Context(), &agentevents.ToolCalled{ToolID: "outer"})
		require.NoError(t, openErr)
		res, err := h(agentevents.ContextWithCall(t.Context(), open), c.method, &mcp.ClientRequest[mcp.Params]{Params: c.params})
		require.NoError(t, open.Return(t.Context(), ""))
		require.Equal(t, c.res, res)
		require.Equal(t, c.err, err)
	}
	l.end(t)
	redacted := 0
	for _, ev := range l.rec.Events() {
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.NotContains(t, string(line), secret)
		if ev.Marks.Has(agentevents.MarkRedacted) {
			redacted++
		}
	}
	require.Equal(t, 12, redacted)
}
