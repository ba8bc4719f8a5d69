package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	aemcp "github.com/agentevents/agentevents/adapter/mcp"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/tree"
)

var update = flag.Bool("update", false, "write the golden files")

// The protocols: that of sessions without ids, which is the default, and the one before it.
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
	var details tree.Details
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

// A meeting is where parallel calls wait for each other: all have begun before any returns,
// and they return in the order of their cities.
type meeting struct {
	all    sync.WaitGroup
	cities []string
	turns  map[string]chan struct{}
}

func meet(cities ...string) *meeting {
	m := &meeting{cities: cities, turns: map[string]chan struct{}{}}
	m.all.Add(len(cities))
	for _, c := range cities {
		m.turns[c] = make(chan struct{})
	}
	return m
}

// A world is what the scripted server knows.
type world struct {
	began chan string   // cities whose weather is asked for
	go_   chan struct{} // one token for each answer
}

func newServer(w *world) *mcp.Server {
	s := mcp.NewServer(info, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	mcp.AddTool(s, &mcp.Tool{Name: "weather"}, func(ctx context.Context, req *mcp.CallToolRequest, in place) (*mcp.CallToolResult, place, error) {
		if in.City == "Atlantis" {
			return nil, place{}, errors.New("no such city: Atlantis")
		}
		if w != nil {
			w.began <- in.City
			<-w.go_
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
			// What a recorder in the model's client would note.
			call := agentevents.ModelCallFromContext(ctx)
			_ = call.Note(ctx, &agentevents.ModelReturned{Usage: agentevents.Some(agentevents.Usage{InputTokens: 9, OutputTokens: 4})})
			return &mcp.CreateMessageResult{Model: "small-1", Role: "assistant", StopReason: "endTurn", Content: &mcp.TextContent{Text: "O city"}}, nil
		},
	}
}

// connect connects a client with a server in memory. A log that is nil is not recorded.
func connect(t *testing.T, protocol string, s *mcp.Server, server, client *log, o mcp.ClientOptions, wire io.Writer) *mcp.ClientSession {
	here, there := mcp.NewInMemoryTransports()
	serve, ask, options := t.Context(), t.Context(), &o
	if server != nil {
		s.AddReceivingMiddleware(aemcp.Record)
		s.AddSendingMiddleware(aemcp.Record)
		serve = server.context(t)
	}
	if client != nil {
		options, ask = aemcp.Handlers(o), client.context(t)
	}
	c := mcp.NewClient(info, options)
	if client != nil {
		c.AddSendingMiddleware(aemcp.Record)
		c.AddReceivingMiddleware(aemcp.Record)
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
			w := &world{began: make(chan string), go_: make(chan struct{})}
			cs := connect(t, protocol, newServer(w), server, client, answers(), nil)
			ctx := client.context(t)

			var calls sync.WaitGroup
			for _, city := range []string{"Paris", "Rome", "Oslo"} { // all have begun before the first returns
				calls.Go(func() {
					res, err := call(ctx, cs, "weather", city)
					require.NoError(t, err)
					require.False(t, res.IsError)
				})
				require.Equal(t, city, <-w.began)
			}
			for range 3 {
				w.go_ <- struct{}{}
			}
			calls.Wait()

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
			client.rec.Golden(t, filepath.Join("testdata", "client-"+protocol+".jsonl"))
		})
	}
	_ = time.Second
}
