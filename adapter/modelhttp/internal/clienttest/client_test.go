// Package clienttest runs package modelhttp in the Go clients of Gemini, Ollama and Bedrock, against
// servers that answer as these do. It is a module of its own, so that no other module needs the
// clients.
package clienttest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	ollama "github.com/ollama/ollama/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/adapter/modelhttp/cassette"
	"github.com/agentevents/agentevents/eventtest"
)

const question = "What is 2 + 2?"

// A client asks a model, and returns its text as far as it came.
type client func(ctx context.Context, h *http.Client, url string, stream bool) (string, error)

func askGemini(ctx context.Context, h *http.Client, url string, stream bool) (said string, err error) {
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: h, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		return "", err
	}
	if !stream {
		got, err := c.Models.GenerateContent(ctx, "model-x", genai.Text(question), nil)
		if err != nil {
			return "", err
		}
		return got.Text(), nil
	}
	for got, err := range c.Models.GenerateContentStream(ctx, "model-x", genai.Text(question), nil) {
		if err != nil {
			return said, err
		}
		said += got.Text()
	}
	return said, nil
}

func askOllamaChat(ctx context.Context, h *http.Client, address string, stream bool) (said string, err error) {
	base, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	request := &ollama.ChatRequest{Model: "model-x", Messages: []ollama.Message{{Role: "user", Content: question}}}
	if !stream { // a stream is the default
		request.Stream = &stream
	}
	err = ollama.NewClient(base, h).Chat(ctx, request, func(r ollama.ChatResponse) error {
		said += r.Message.Content
		return nil
	})
	return said, err
}

func askOllamaGenerate(ctx context.Context, h *http.Client, address string, stream bool) (said string, err error) {
	base, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	err = ollama.NewClient(base, h).Generate(ctx, &ollama.GenerateRequest{Model: "model-x", Prompt: question, Stream: &stream}, func(r ollama.GenerateResponse) error {
		said += r.Response
		return nil
	})
	return said, err
}

func bedrock(h *http.Client, url string, attempts int) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: h, RetryMaxAttempts: attempts,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		}),
	})
}

func askConverse(ctx context.Context, h *http.Client, url string, stream bool) (said string, err error) {
	c := bedrock(h, url, 1)
	messages := []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}}}
	if !stream {
		got, err := c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("model-x"), Messages: messages})
		if err != nil {
			return "", err
		}
		message := got.Output.(*types.ConverseOutputMemberMessage)
		return message.Value.Content[0].(*types.ContentBlockMemberText).Value, nil
	}
	got, err := c.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{ModelId: aws.String("model-x"), Messages: messages})
	if err != nil {
		return "", err
	}
	s := got.GetStream()
	defer s.Close()
	for event := range s.Events() {
		if delta, ok := event.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
			said += delta.Value.Delta.(*types.ContentBlockDeltaMemberText).Value
		}
	}
	return said, s.Err()
}

func askInvoke(ctx context.Context, h *http.Client, url string, stream bool) (said string, err error) {
	c := bedrock(h, url, 1)
	body := []byte(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"` + question + `"}]}`)
	if !stream {
		got, err := c.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String("model-x"), ContentType: aws.String("application/json"), Body: body})
		if err != nil {
			return "", err
		}
		return textOf(got.Body), nil
	}
	got, err := c.InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{ModelId: aws.String("model-x"), ContentType: aws.String("application/json"), Body: body})
	if err != nil {
		return "", err
	}
	s := got.GetStream()
	defer s.Close()
	for event := range s.Events() {
		said += textOf(event.(*types.ResponseStreamMemberChunk).Value.Bytes)
	}
	return said, s.Err()
}

// textOf returns the text of a document of Claude that the server has written.
func textOf(document []byte) string {
	_, rest, _ := bytes.Cut(document, []byte(`"text":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// apis are the ways to ask, with the operation that is recorded, the return of a whole answer and
// the errors of others.
var apis = []struct {
	name      string
	ask       client
	answers   func(stream bool) script
	operation string
	returned  ae.ModelReturned
	refused   ae.ErrorInfo // by a status
	broken    ae.ErrorInfo // by an error within a stream
	hides     bool         // the client takes a stream that is cut for a whole one
}{
	{name: "gemini", ask: askGemini, answers: gemini, operation: "generate_content",
		returned: ae.ModelReturned{Model: "model-x-1", ResponseID: "g_1", FinishReasons: []string{"STOP"}, Usage: ae.Some(ae.Usage{
			InputTokens: 15, OutputTokens: 9, TotalTokens: ae.Some[int64](64), CacheReadInputTokens: ae.Some[int64](40), ReasoningOutputTokens: ae.Some[int64](2)})},
		refused: ae.ErrorInfo{Code: "429", Message: "RESOURCE_EXHAUSTED: slow down", Retryable: ae.Some(true)},
		broken:  ae.ErrorInfo{Code: "UNAVAILABLE", Message: "UNAVAILABLE: no luck"}},
	{name: "ollama chat", ask: askOllamaChat, answers: ollamaChat, operation: "chat",
		returned: ae.ModelReturned{Model: "model-x", FinishReasons: []string{"stop"}, Usage: ae.Some(ae.Usage{InputTokens: 26, OutputTokens: 9})},
		refused:  ae.ErrorInfo{Code: "404", Message: `model "model-x" not found, try pulling it first`, Retryable: ae.Some(false)},
		broken:   ae.ErrorInfo{Message: "no luck"}},
	{name: "ollama generate", ask: askOllamaGenerate, answers: ollamaGenerate, operation: "text_completion",
		returned: ae.ModelReturned{Model: "model-x", FinishReasons: []string{"stop"}, Usage: ae.Some(ae.Usage{InputTokens: 26, OutputTokens: 9})},
		refused:  ae.ErrorInfo{Code: "404", Message: `model "model-x" not found, try pulling it first`, Retryable: ae.Some(false)},
		broken:   ae.ErrorInfo{Message: "no luck"}},
	{name: "converse", hides: true, ask: askConverse, answers: converse, operation: "chat",
		returned: ae.ModelReturned{RequestID: "req_1", FinishReasons: []string{"end_turn"}, Usage: ae.Some(ae.Usage{
			InputTokens: 12, OutputTokens: 9, TotalTokens: ae.Some[int64](64), CacheReadInputTokens: ae.Some[int64](40), CacheCreationInputTokens: ae.Some[int64](3)})},
		refused: ae.ErrorInfo{Code: "429", Message: "ThrottlingException: slow down", Retryable: ae.Some(true)},
		broken:  ae.ErrorInfo{Code: "modelStreamErrorException", Message: "modelStreamErrorException: no luck"}},
	{name: "invoke", hides: true, ask: askInvoke, answers: invoke, operation: "chat",
		returned: ae.ModelReturned{Model: "model-x-1", ResponseID: "msg_1", RequestID: "req_1", FinishReasons: []string{"end_turn"}, Usage: ae.Some(ae.Usage{
			InputTokens: 12, OutputTokens: 9, CacheReadInputTokens: ae.Some[int64](40), CacheCreationInputTokens: ae.Some[int64](3)})},
		refused: ae.ErrorInfo{Code: "429", Message: "ThrottlingException: slow down", Retryable: ae.Some(true)},
		broken:  ae.ErrorInfo{Code: "modelStreamErrorException", Message: "modelStreamErrorException: no luck"}},
}

// Each client is recorded, streamed and not, from a server and from a cassette: the client has the
// same text and error as without a recorder, and the log is the same.
func TestClients(t *testing.T) {
	for _, api := range apis {
		for _, how := range []string{"whole", "refused", "stream", "stream refused", "stream broken", "stream cut"} {
			stream, way := strings.HasPrefix(how, "stream"), strings.TrimPrefix(how, "stream ")
			t.Run(api.name+"/"+how, func(t *testing.T) {
				s := api.answers(stream)
				server := serve(t, s, way)
				bare, bareErr := api.ask(t.Context(), server.Client(), server.URL, stream)
				require.Equal(t, way == "whole" || way == "stream" || way == "cut" && api.hides, bareErr == nil, bareErr)

				file := filepath.Join(t.TempDir(), "tape.json")
				tape := cassette.New(cassette.Options{})
				live := record(t, api.ask, tape.Transport(server.Client().Transport), server.URL, stream)
				require.Equal(t, bare, live.said)
				require.Equal(t, fmt.Sprint(bareErr), fmt.Sprint(live.err))
				require.NoError(t, tape.Save(file))

				require.Equal(t, "model-x", live.called.Model)
				require.Equal(t, api.operation, live.called.Operation)
				require.Equal(t, stream, live.called.Attributes == `{"stream":true}`)
				require.Equal(t, stream && way != "refused", live.returned.TimeToFirstToken.OK)
				got := ae.ModelReturned{Model: live.returned.Model, ResponseID: live.returned.ResponseID, RequestID: live.returned.RequestID,
					FinishReasons: live.returned.FinishReasons, Usage: live.returned.Usage, Error: live.returned.Error}
				switch way {
				case "whole", "stream":
					require.Equal(t, "Four.", live.said)
					require.Equal(t, api.returned, got)
				case "refused":
					require.Equal(t, ae.Some(api.refused), got.Error)
				case "broken":
					require.Equal(t, "Four.", live.said)
					require.Equal(t, ae.Some(api.broken), got.Error)
				case "cut":
					require.Equal(t, "Four.", live.said)
					require.Equal(t, "unexpected EOF", got.Error.V.Message)
					require.Equal(t, api.returned.Model, got.Model)
				}

				server.Close()
				again, err := cassette.Load(file, cassette.Options{})
				require.NoError(t, err)
				played := record(t, api.ask, again.Transport(nil), server.URL, stream)
				require.Equal(t, live.said, played.said)
				require.Equal(t, live.err == nil, played.err == nil, played.err)
				require.Equal(t, live.log, played.log)
				require.Empty(t, again.Unused())
			})
		}
	}
}

// The SDK of AWS numbers its attempts, so the second one names the first.
func TestAttempts(t *testing.T) {
	calls := 0
	answers := converse(false)
	server := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			answers.answer(w, "refused")
			return
		}
		answers.answer(w, "whole")
	})
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	ctx := atWork(t, em)
	c := bedrock(&http.Client{Transport: new(modelhttp.Recorder).Transport(nil)}, server.URL, 2)
	_, err := c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("anthropic.model-x-v1:0"), Messages: []types.Message{
		{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}}}})
	require.NoError(t, err)
	called, returned := modelCalls(rec)
	require.Len(t, called, 2)
	require.Len(t, returned, 2)
	require.Equal(t, "anthropic.model-x-v1:0", called[1].Model)
	require.Equal(t, ae.Some(2), called[1].Attempt)
	require.Equal(t, called[0].ModelCallID, called[1].RetryOf)
	require.True(t, returned[0].Error.OK)
	require.False(t, returned[1].Error.OK)
}

// A frame whose bits have flipped is an error of the SDK, with a recorder as without one.
func TestBrokenFrame(t *testing.T) {
	answers := converse(true)
	whole := strings.Join(answers.pieces, "")
	at := strings.Index(whole, "end_turn")
	broken := whole[:at] + "End_turn" + whole[at+len("end_turn"):]
	server := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", answers.media)
		fmt.Fprint(w, broken)
	})
	said, bare := askConverse(t.Context(), http.DefaultClient, server.URL, true)
	require.Error(t, bare)
	got := record(t, askConverse, nil, server.URL, true)
	require.EqualError(t, got.err, bare.Error())
	require.Equal(t, said, got.said)
	require.Equal(t, ae.Some(ae.ErrorInfo{Code: "incomplete", Message: "a frame of the stream is broken"}), got.returned.Error)
}

// recorded is one call, as the client and the log have it.
type recorded struct {
	said     string
	err      error
	log      string
	called   *ae.ModelCalled
	returned *ae.ModelReturned
}

func record(t *testing.T, ask client, next http.RoundTripper, url string, stream bool) (r recorded) {
	t.Helper()
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Lifecycle: ae.LifecycleDerived})
	ctx := atWork(t, em)
	r.said, r.err = ask(ctx, &http.Client{Transport: new(modelhttp.Recorder).Transport(next)}, url, stream)
	called, returned := modelCalls(rec)
	require.Len(t, called, 1)
	require.Len(t, returned, 1)
	r.called, r.returned = called[0], returned[0]
	var log strings.Builder
	for _, ev := range rec.Events() {
		line, err := ev.MarshalJSON()
		require.NoError(t, err)
		log.Write(append(line, '\n'))
	}
	r.log = log.String()
	return r
}

// atWork returns a context with an agent that has started.
func atWork(t *testing.T, em *ae.Emitter) context.Context {
	run, err := em.Run("r1")
	require.NoError(t, err)
	a := run.Agent("guide")
	require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
	return ae.ContextWithAgent(t.Context(), a)
}

func modelCalls(rec *eventtest.Recorder) (called []*ae.ModelCalled, returned []*ae.ModelReturned) {
	for _, ev := range rec.Events() {
		switch p := ev.Payload.(type) {
		case *ae.ModelCalled:
			called = append(called, p)
		case *ae.ModelReturned:
			returned = append(returned, p)
		}
	}
	return called, returned
}
