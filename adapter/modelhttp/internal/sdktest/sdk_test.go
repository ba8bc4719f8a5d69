// Package sdktest runs package modelhttp in the Go SDKs of OpenAI and Anthropic, against a
// server that speaks the three formats. It is a module of its own, so that nobody else needs
// the SDKs.
package sdktest

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/tree"
)

var update = flag.Bool("update", false, "write the golden files")

const question = "How warm is it in Rome and in Oslo?"

// A middleware is a function that both SDKs accept.
type middleware = func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// A client asks the model with its conversation so far, and adds to it.
type client interface {
	ask(ctx context.Context, stream bool) (reply, error)
	returned(id, result string)
}

// clients are the SDKs' ways to ask.
var clients = map[string]func(url string, m ...middleware) client{
	"messages":    newMessages,
	"completions": newCompletions,
	"responses":   newResponses,
}

type messagesClient struct {
	c       anthropic.Client
	history []anthropic.MessageParam
	results []anthropic.ContentBlockParamUnion
}

func newMessages(url string, m ...middleware) client {
	return &messagesClient{
		c:       anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("none"), anthropicoption.WithMiddleware(m...)),
		history: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
}

func (c *messagesClient) returned(id, result string) {
	c.results = append(c.results, anthropic.NewToolResultBlock(id, result, false))
}

func (c *messagesClient) ask(ctx context.Context, stream bool) (r reply, err error) {
	if len(c.results) > 0 {
		c.history, c.results = append(c.history, anthropic.NewUserMessage(c.results...)), nil
	}
	asked := anthropic.MessageNewParams{Model: "scripted", MaxTokens: 100, Messages: c.history}
	got := &anthropic.Message{}
	if stream {
		s := c.c.Messages.NewStreaming(ctx, asked)
		for s.Next() {
			if err := got.Accumulate(s.Current()); err != nil {
				return r, err
			}
		}
		err = errors.Join(s.Err(), s.Close())
	} else {
		got, err = c.c.Messages.New(ctx, asked)
	}
	if err != nil {
		return r, err
	}
	c.history = append(c.history, got.ToParam())
	for _, b := range got.Content {
		switch b.Type {
		case "text":
			r.text += b.Text
		case "tool_use":
			r.calls = append(r.calls, toolCall{b.ID, b.Name, string(b.Input)})
		}
	}
	return r, nil
}

type completionsClient struct {
	c       openai.Client
	history []openai.ChatCompletionMessageParamUnion
}

func newCompletions(url string, m ...middleware) client {
	return &completionsClient{
		c:       openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMiddleware(m...)),
		history: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	}
}

func (c *completionsClient) returned(id, result string) {
	c.history = append(c.history, openai.ToolMessage(result, id))
}

func (c *completionsClient) ask(ctx context.Context, stream bool) (r reply, err error) {
	asked := openai.ChatCompletionNewParams{Model: "scripted", Messages: c.history}
	got := &openai.ChatCompletion{}
	if stream {
		asked.StreamOptions.IncludeUsage = openai.Bool(true)
		s := c.c.Chat.Completions.NewStreaming(ctx, asked)
		var acc openai.ChatCompletionAccumulator
		for s.Next() {
			acc.AddChunk(s.Current())
		}
		got, err = &acc.ChatCompletion, errors.Join(s.Err(), s.Close())
	} else {
		got, err = c.c.Chat.Completions.New(ctx, asked)
	}
	if err != nil {
		return r, err
	}
	message := got.Choices[0].Message
	c.history = append(c.history, message.ToParam())
	r.text = message.Content
	for _, t := range message.ToolCalls {
		r.calls = append(r.calls, toolCall{t.ID, t.Function.Name, t.Function.Arguments})
	}
	return r, nil
}

type responsesClient struct {
	c       openai.Client
	history openairesponses.ResponseInputParam
}

func newResponses(url string, m ...middleware) client {
	return &responsesClient{
		c:       openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("none"), openaioption.WithMiddleware(m...)),
		history: openairesponses.ResponseInputParam{openairesponses.ResponseInputItemParamOfMessage(question, openairesponses.EasyInputMessageRoleUser)},
	}
}

func (c *responsesClient) returned(id, result string) {
	item := openairesponses.ResponseInputItemParamOfFunctionCallOutput(result)
	item.OfFunctionCallOutput.CallID = openai.String(id)
	c.history = append(c.history, item)
}

func (c *responsesClient) ask(ctx context.Context, stream bool) (r reply, err error) {
	asked := openairesponses.ResponseNewParams{Model: "scripted", Input: openairesponses.ResponseNewParamsInputUnion{OfInputItemList: c.history}}
	got := &openairesponses.Response{}
	if stream {
		s := c.c.Responses.NewStreaming(ctx, asked)
		for s.Next() {
			if e := s.Current(); e.Type == "response.completed" {
				*got = e.Response
			}
		}
		err = errors.Join(s.Err(), s.Close())
	} else {
		got, err = c.c.Responses.New(ctx, asked)
	}
	if err != nil {
		return r, err
	}
	r.text = got.OutputText()
	for _, o := range got.Output {
		if o.Type == "function_call" {
			args := o.Arguments.OfString
			r.calls = append(r.calls, toolCall{o.CallID, o.Name, args})
			c.history = append(c.history, openairesponses.ResponseInputItemParamOfFunctionCall(args, o.CallID, o.Name))
		}
	}
	return r, nil
}

// thermometer is the runtime's tool.
func thermometer(_ context.Context, args string) (string, error) {
	if strings.Contains(args, "Oslo") {
		return "", errors.New("the station in Oslo is closed")
	}
	return "31 °C", nil
}

// runtime is an agent's loop as in a program that calls models by an SDK. It returns the agent's
// answers.
func runtime(ctx context.Context, run *ae.Run, c client, stream bool) (said []string, err error) {
	agent := run.Agent("guide")
	if err := errors.Join(run.Emit(ctx, &ae.RunStarted{}), agent.Emit(ctx, &ae.AgentStarted{Task: question})); err != nil {
		return nil, err
	}
	ctx = ae.ContextWithAgent(ctx, agent)
	for {
		r, err := c.ask(ctx, stream)
		said = append(said, r.text)
		if err != nil {
			after := context.WithoutCancel(ctx)
			end := ae.Payload(&ae.RunFailed{Error: ae.Some(ae.ErrorInfo{Message: "the model did not answer"})})
			if ctx.Err() != nil {
				end = &ae.RunCancelled{}
			}
			return said, errors.Join(err, agent.Emit(after, &ae.AgentEnded{Outcome: ae.OutcomeAborted}), run.Emit(after, end))
		}
		if r.text != "" {
			if err := agent.Emit(ctx, &ae.TextCompleted{Text: r.text}); err != nil {
				return said, err
			}
		}
		if len(r.calls) == 0 {
			return said, errors.Join(agent.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}), run.Emit(ctx, &ae.RunCompleted{}))
		}
		open := make([]*ae.Call, len(r.calls))
		for i, call := range r.calls {
			if open[i], err = agent.Call(ctx, &ae.ToolCalled{CallID: call.id, ToolID: call.name, Arguments: ae.JSON(call.args)}); err != nil {
				return said, err
			}
		}
		results, errs := make([]string, len(open)), make([]error, len(open))
		var wg sync.WaitGroup
		for i, call := range r.calls {
			wg.Go(func() { results[i], errs[i] = thermometer(ctx, call.args) })
		}
		wg.Wait()
		for i, call := range open { // in order, so that a log is the same each time
			if errs[i] != nil {
				c.returned(call.ID, errs[i].Error())
				err = call.Fail(ctx, errs[i])
			} else {
				c.returned(call.ID, results[i])
				err = call.Return(ctx, ae.JSONString(results[i]))
			}
			if err != nil {
				return said, err
			}
		}
	}
}

var bothCities = []toolCall{{"c1", "thermometer", `{"city":"Rome"}`}, {"c2", "thermometer", `{"city":"Oslo"}`}}

var scenarios = []struct {
	name    string
	script  []reply
	said    []string
	failed  string // a part of the error
	usages  int    // how many answers had a usage
	streams bool
}{
	{name: "tools", script: []reply{{status: 429}, {text: "Let me look.", calls: bothCities}, {status: 503}, {status: 429}, {text: "It is 31 °C in Rome."}},
		said: []string{"Let me look.", "It is 31 °C in Rome."}, usages: 2},
	{name: "refused", script: []reply{{status: 400}}, said: []string{""}, failed: "400"},
	{name: "busy", script: []reply{{status: 503}, {status: 503}, {status: 503}}, said: []string{""}, failed: "503"},
	{name: "cut", script: []reply{{text: "Let me", cut: true}}, said: []string{""}, failed: "unexpected EOF", streams: true},
	{name: "cancelled", script: []reply{{text: "Let me", hangs: true}}, said: []string{""}, failed: "context canceled", streams: true},
	{name: "given-up", script: []reply{{text: "Let me", hangs: true}}, said: []string{""}, failed: "context canceled", streams: true},
}

// Every SDK is recorded, streamed and not, from a server and from a cassette: the run is the
// same, the log is one that the rules allow, and the tree is the golden one.
func TestSDKs(t *testing.T) {
	for api, newClient := range clients {
		for _, stream := range []bool{false, true} {
			mode := map[bool]string{false: "whole", true: "stream"}[stream]
			for _, s := range scenarios {
				if !stream && s.streams {
					continue // these are of streams
				}
				t.Run(strings.Join([]string{api, mode, s.name}, "/"), func(t *testing.T) {
					tape := filepath.Join(t.TempDir(), "tape.json")
					var log string
					for _, record := range []bool{true, false} {
						url := "http://provider.invalid"
						if record {
							url = provider(t, s.script).URL
						}
						em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
						run, err := em.Run("r1")
						require.NoError(t, err)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						// Somebody cancels when the answer has begun, or when the client has read of it.
						cancels := func(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
							resp, err := next(r)
							switch {
							case err != nil:
							case s.name == "given-up":
								cancel()
							case s.name == "cancelled":
								resp.Body = cancelling{resp.Body, cancel}
							}
							return resp, err
						}
						recorder := new(modelhttp.Recorder)
						var said []string
						t.Run("", func(t *testing.T) {
							box := cassette.Open(t, tape, cassette.Options{Record: record})
							said, err = runtime(ctx, run, newClient(url, recorder.Middleware, cancels, box.Middleware), stream)
						})
						if s.failed == "" {
							require.NoError(t, err)
						} else {
							require.ErrorContains(t, err, s.failed)
						}
						require.Equal(t, s.said, said)
						rec.WantLaws(t, eventtest.LawOptions{})
						snapshot := rec.Snapshot("r1")
						if s.usages > 0 { // of a stream that breaks, messages have a part
							require.EqualValues(t, s.usages*(inTokens-cachedTokens), snapshot.Usage.Usage.InputTokens)
							require.EqualValues(t, s.usages*cachedTokens, snapshot.Usage.Usage.CacheReadInputTokens.V)
							require.EqualValues(t, s.usages*outTokens, snapshot.Usage.Usage.OutputTokens)
						}
						var drawn strings.Builder
						require.NoError(t, tree.Write(&drawn, snapshot, tree.Options{}))
						file := s.name + ".txt" // the same for all, but that messages begin with a usage
						if s.streams && api == "messages" {
							file = "messages-" + file
						}
						golden(t, filepath.Join("testdata", file), drawn.String())
						if record {
							log = lines(t, rec)
						} else {
							require.Equal(t, log, lines(t, rec), "a played answer is recorded like the original")
						}
					}
				})
			}
		}
	}
}

// cancelling is a body whose reader is cancelled by the first bytes.
type cancelling struct {
	io.ReadCloser
	cancel func()
}

func (c cancelling) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.cancel()
	return n, err
}

func lines(t *testing.T, rec *eventtest.Recorder) string {
	var b strings.Builder
	for _, ev := range rec.Events() {
		text, err := ev.MarshalJSON()
		require.NoError(t, err)
		b.Write(append(text, '\n'))
	}
	return b.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
