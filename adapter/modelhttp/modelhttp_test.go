package modelhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp"
	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
	"github.com/agentevents/agentevents/eventtest"
)

// Streams as the providers send them, made up by hand.
const (
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-1","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":40,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Four."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":2}}}

event: message_stop
data: {"type":"message_stop"}

`
	chatStream = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-1","choices":[{"index":0,"delta":{"content":"Four."},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-x-1","choices":[],"usage":{"prompt_tokens":55,"completion_tokens":9,"total_tokens":64,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}

data: [DONE]

`
	responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-x-1","error":null,"incomplete_details":null,"usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":1,"item_id":"item_1","delta":"Four."}

event: response.completed
data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","object":"response","status":"completed","model":"gpt-x-1","error":null,"incomplete_details":null,"usage":{"input_tokens":55,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":3},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":64}}}

`
)

const sse = "text/event-stream; charset=utf-8"

func opt[T any](v T) agentevents.Opt[T] { return agentevents.Some(v) }

func usage(total bool) agentevents.Opt[agentevents.Usage] {
	u := agentevents.Usage{InputTokens: 12, OutputTokens: 9, CacheCreationInputTokens: opt[int64](3), CacheReadInputTokens: opt[int64](40), ReasoningOutputTokens: opt[int64](2)}
	if total {
		u.TotalTokens = opt[int64](64)
	}
	return opt(u)
}

// Usage as Gemini and Ollama tell it.
var (
	geminiUsage = opt(agentevents.Usage{InputTokens: 15, OutputTokens: 9, TotalTokens: opt[int64](64), CacheReadInputTokens: opt[int64](40), ReasoningOutputTokens: opt[int64](2)})
	ollamaUsage = opt(agentevents.Usage{InputTokens: 26, OutputTokens: 9})
)

const (
	geminiChunks = `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":50,"totalTokenCount":52,"thoughtsTokenCount":2},"modelVersion":"gemini-x-1","responseId":"g_1"}
,
{"candidates":[{"content":{"parts":[{"text":"Four."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":50,"totalTokenCount":55},"modelVersion":"gemini-x-1","responseId":"g_1"}
,
{"candidates":[{"content":{"parts":[{"text":" [Sure]"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":7,"totalTokenCount":64,"cachedContentTokenCount":40,"thoughtsTokenCount":2,"toolUsePromptTokenCount":5},"modelVersion":"gemini-x-1","responseId":"g_1"}`
	geminiArray = "[" + geminiChunks + "\n]\n"
	ollamaLines = `{"model":"llama-x","created_at":"2026-05-05T09:00:00Z","message":{"role":"assistant","content":""},"done":false}
{"model":"llama-x","created_at":"2026-05-05T09:00:00Z","message":{"role":"assistant","content":"Four."},"done":false}
{"model":"llama-x","created_at":"2026-05-05T09:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":5,"prompt_eval_count":26,"eval_count":9}
`
)

var geminiStream = "data: " + strings.ReplaceAll(geminiChunks, "\n,\n", "\r\n\r\ndata: ") + "\r\n\r\n"

// aFrame returns a frame of Bedrock.
func aFrame(kind, sort, payload string) string {
	f := frames.Frame{Header: map[string]string{frames.MessageType: kind, ":" + kind + "-type": sort, ":content-type": "application/json"}, Payload: []byte(payload)}
	text, err := f.Append(nil)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var (
	converseBegin = aFrame("event", "messageStart", `{"p":"ab","role":"assistant"}`) +
		aFrame("event", "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Four."},"p":"abcd"}`) +
		aFrame("event", "contentBlockStop", `{"contentBlockIndex":0}`)
	converseEnd = aFrame("event", "messageStop", `{"p":"a","stopReason":"end_turn"}`) +
		aFrame("event", "metadata", `{"metrics":{"latencyMs":5},"trace":{"promptRouter":{"invokedModelId":"arn:aws:bedrock:x"}},"usage":{"inputTokens":12,"outputTokens":9,"totalTokens":64,"cacheReadInputTokens":40,"cacheWriteInputTokens":3}}`)
	converseUsage = func() agentevents.Opt[agentevents.Usage] {
		u := usage(true)
		u.V.ReasoningOutputTokens = agentevents.Opt[int64]{}
		return u
	}()
)

// invokeStream returns the events of a stream of Claude as Bedrock sends them.
func invokeStream(stream string) (out string) {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out += aFrame("event", "chunk", fmt.Sprintf(`{"bytes":%q,"p":"abc"}`, base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(data)))))
		}
	}
	return out
}

func failed(code, message string) agentevents.Opt[agentevents.ErrorInfo] {
	return opt(agentevents.ErrorInfo{Code: code, Message: message})
}

var incomplete = agentevents.ModelReturned{Error: opt(agentevents.ErrorInfo{Code: "incomplete", Message: "the answer is invalid or truncated JSON"})}

var formats = []struct {
	name, path, media, answer string
	want                      agentevents.ModelReturned
}{
	{"anthropic stream", "/v1/messages", sse, anthropicStream,
		agentevents.ModelReturned{Model: "claude-x-1", ResponseID: "msg_1", FinishReasons: []string{"end_turn"}, Usage: usage(false)}},
	{"chat stream", "/v1/chat/completions", sse, chatStream,
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "chatcmpl-1", FinishReasons: []string{"stop"}, Usage: usage(true)}},
	{"responses stream", "/v1/responses", sse, responsesStream,
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "resp_1", FinishReasons: []string{"completed"}, Usage: usage(true)}},
	{"carriage returns", "/v1/responses", sse, strings.ReplaceAll(responsesStream, "\n", "\r\n"),
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "resp_1", FinishReasons: []string{"completed"}, Usage: usage(true)}},
	{"anthropic", "/v1/messages", "application/json", `{"id":"msg_1","type":"message","model":"claude-x-1","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"usage":{"input_tokens":99}}}],"stop_reason":"tool_use","usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":40,"output_tokens":9,"output_tokens_details":{"thinking_tokens":2}}}`,
		agentevents.ModelReturned{Model: "claude-x-1", ResponseID: "msg_1", FinishReasons: []string{"tool_use"}, Usage: usage(false)}},
	{"chat", "/v1/chat/completions", "application/json", `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-x-1","choices":[{"index":1,"finish_reason":"length"},{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":55,"completion_tokens":9,"total_tokens":64,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "chatcmpl-1", FinishReasons: []string{"stop", "length"}, Usage: usage(true)}},
	{"output without reasoning", "/v1/chat/completions", "application/json", `{"id":"chatcmpl-1","choices":[{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":55,"completion_tokens":7,"total_tokens":64,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		agentevents.ModelReturned{ResponseID: "chatcmpl-1", FinishReasons: []string{"stop"}, Usage: usage(true)}},
	{"responses", "/v1/responses", "application/json", `{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"gpt-x-1","usage":{"input_tokens":55,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":3},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":64}}`,
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "resp_1", FinishReasons: []string{"max_output_tokens"}, Usage: usage(true)}},
	{"embeddings", "/v1/embeddings", "application/json", `{"object":"list","data":[],"model":"emb-1","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		agentevents.ModelReturned{Model: "emb-1", Usage: opt(agentevents.Usage{InputTokens: 8, TotalTokens: opt[int64](8)})}},
	{"responses failed", "/v1/responses", sse, `data: {"type":"response.failed","response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"no luck"}}}` + "\n\n",
		agentevents.ModelReturned{ResponseID: "resp_1", Error: opt(agentevents.ErrorInfo{Code: "server_error", Message: "server_error: no luck"})}},
	{"error event of responses", "/v1/responses", sse, `data: {"type":"error","code":"server_error","message":"no luck"}` + "\n\n",
		agentevents.ModelReturned{Error: opt(agentevents.ErrorInfo{Code: "server_error", Message: "server_error: no luck"})}},
	{"error event of messages", "/v1/messages", sse, "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"no luck"}}` + "\n\n",
		agentevents.ModelReturned{Error: opt(agentevents.ErrorInfo{Code: "overloaded_error", Message: "overloaded_error: no luck"})}},
	{"error in chat", "/v1/chat/completions", sse, `data: {"error":{"message":"no luck","code":502}}` + "\n\n",
		agentevents.ModelReturned{Error: opt(agentevents.ErrorInfo{Code: "502", Message: "502: no luck"})}},
	{"error of a choice", "/v1/chat/completions", "application/json", `{"choices":[{"index":0,"finish_reason":"error","error":{"message":"no luck","code":502}}]}`,
		agentevents.ModelReturned{FinishReasons: []string{"error"}, Error: opt(agentevents.ErrorInfo{Code: "502", Message: "502: no luck"})}},
	{"usage of DeepSeek", "/v1/chat/completions", "application/json", `{"choices":[],"usage":{"prompt_tokens":55,"completion_tokens":9,"prompt_cache_hit_tokens":40,"prompt_cache_miss_tokens":15}}`,
		agentevents.ModelReturned{Usage: opt(agentevents.Usage{InputTokens: 15, OutputTokens: 9, CacheReadInputTokens: opt[int64](40)})}},
	{"usage of Groq", "/v1/chat/completions", sse, `data: {"choices":[{"index":0,"finish_reason":"stop"}],"x_groq":{"id":"req_2","usage":{"prompt_tokens":5,"completion_tokens":9}}}` + "\n\ndata: [DONE]\n\n",
		agentevents.ModelReturned{FinishReasons: []string{"stop"}, Usage: opt(agentevents.Usage{InputTokens: 5, OutputTokens: 9})}},
	{"cut off", "/v1/chat/completions", sse, chatStream[:300],
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "chatcmpl-1", Error: opt(agentevents.ErrorInfo{Code: "incomplete", Message: "the stream ended before the answer did"})}},
	{"no DONE", "/v1/chat/completions", sse, strings.ReplaceAll(chatStream, "data: [DONE]\n\n", ""),
		agentevents.ModelReturned{Model: "gpt-x-1", ResponseID: "chatcmpl-1", FinishReasons: []string{"stop"}, Usage: usage(true)}},
	{"unknown stream", "/v1/songs", sse, "data: {\"la\":1}\n\ndata: la\n\n", agentevents.ModelReturned{}},
	{"unknown", "/v1/songs", "application/json", `{"tokens":"many","usage":{"input_tokens":"12","output_tokens":true},"choices":7,"error":null}`, agentevents.ModelReturned{}},
	{"negative", "/v1/messages", "application/json", `{"usage":{"input_tokens":-1,"output_tokens":3}}`, agentevents.ModelReturned{}},
	{"broken", "/v1/messages", "application/json", `{"id":"msg_1","usage":{"inp`, incomplete},
	{"no JSON", "/v1/messages", "text/html", `<html>`, agentevents.ModelReturned{}},
	{"nothing", "/v1/messages", "application/json", ``, incomplete},
	{"lines", "/v1/songs", "application/stream+json", "{}\n{}\n", agentevents.ModelReturned{}},

	{"gemini", "/v1beta/models/gemini-x:generateContent", "application/json", `{"candidates":[{"content":{"parts":[{"text":"Five."}]},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":55,"candidatesTokenCount":7,"totalTokenCount":64,"cachedContentTokenCount":40,"thoughtsTokenCount":2},"modelVersion":"gemini-x-1","responseId":"g_1"}`,
		agentevents.ModelReturned{Model: "gemini-x-1", ResponseID: "g_1", FinishReasons: []string{"MAX_TOKENS"}, Usage: geminiUsage}},
	{"gemini stream", "/v1beta/models/gemini-x:streamGenerateContent", "text/event-stream", geminiStream,
		agentevents.ModelReturned{Model: "gemini-x-1", ResponseID: "g_1", FinishReasons: []string{"STOP"}, Usage: geminiUsage}},
	{"gemini array", "/v1beta/models/gemini-x:streamGenerateContent", "application/json", geminiArray,
		agentevents.ModelReturned{Model: "gemini-x-1", ResponseID: "g_1", FinishReasons: []string{"STOP"}, Usage: geminiUsage}},
	{"gemini array cut off", "/v1beta/models/gemini-x:streamGenerateContent", "application/json", geminiArray[:strings.Index(geminiArray, "[Sure]")],
		agentevents.ModelReturned{Model: "gemini-x-1", ResponseID: "g_1", Usage: opt(agentevents.Usage{InputTokens: 50, OutputTokens: 5, TotalTokens: opt[int64](55), ReasoningOutputTokens: opt[int64](2)}), Error: failed("incomplete", "the stream ended before the answer did")}},
	{"gemini stream cut off", "/v1beta/models/gemini-x:streamGenerateContent", "text/event-stream", geminiStream[:strings.Index(geminiStream, "[Sure]")],
		agentevents.ModelReturned{Model: "gemini-x-1", ResponseID: "g_1", Usage: opt(agentevents.Usage{InputTokens: 50, OutputTokens: 5, TotalTokens: opt[int64](55), ReasoningOutputTokens: opt[int64](2)}), Error: failed("incomplete", "the stream ended before the answer did")}},
	{"gemini error in a stream", "/v1beta/models/gemini-x:streamGenerateContent", "application/json", `[{"error":{"code":503,"message":"no luck","status":"UNAVAILABLE"}}]`,
		agentevents.ModelReturned{Error: failed("UNAVAILABLE", "UNAVAILABLE: no luck")}},
	{"gemini prompt blocked", "/v1beta/models/gemini-x:generateContent", "application/json", `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4},"modelVersion":"gemini-x-1"}`,
		agentevents.ModelReturned{Model: "gemini-x-1", FinishReasons: []string{"SAFETY"}, Usage: opt(agentevents.Usage{InputTokens: 4, TotalTokens: opt[int64](4)})}},

	{"ollama", "/api/chat", "application/json; charset=utf-8", `{"model":"llama-x","message":{"role":"assistant","content":"Five."},"done":true,"done_reason":"length","prompt_eval_count":26,"eval_count":9}`,
		agentevents.ModelReturned{Model: "llama-x", FinishReasons: []string{"length"}, Usage: ollamaUsage}},
	{"ollama stream", "/api/chat", "application/x-ndjson", ollamaLines,
		agentevents.ModelReturned{Model: "llama-x", FinishReasons: []string{"stop"}, Usage: ollamaUsage}},
	{"ollama generate", "/api/generate", "application/x-ndjson", `{"model":"llama-x","response":"Four.","done":false}` + "\n" + `{"model":"llama-x","response":"","done":true,"done_reason":"stop","context":[1,2],"eval_count":9}`,
		agentevents.ModelReturned{Model: "llama-x", FinishReasons: []string{"stop"}, Usage: opt(agentevents.Usage{OutputTokens: 9})}},
	{"ollama cut off", "/api/chat", "application/x-ndjson", ollamaLines[:strings.Index(ollamaLines, `"done":true`)],
		agentevents.ModelReturned{Model: "llama-x", Error: failed("incomplete", "the stream ended before the answer did")}},
	{"ollama one line", "/api/chat", "application/x-ndjson", ollamaLines[:strings.Index(ollamaLines, "\n")],
		agentevents.ModelReturned{Model: "llama-x", Error: failed("incomplete", "the stream ended before the answer did")}},
	{"ollama error in a stream", "/api/chat", "application/x-ndjson", `{"model":"llama-x","message":{"content":"Four."},"done":false}` + "\n" + `{"error":"an error was encountered while running the model"}`,
		agentevents.ModelReturned{Model: "llama-x", Error: failed("", "an error was encountered while running the model")}},
	{"ollama embed", "/api/embed", "application/json", `{"model":"emb-x","embeddings":[[0.1,-2e-3],[1,2]],"prompt_eval_count":8}`,
		agentevents.ModelReturned{Model: "emb-x", Usage: opt(agentevents.Usage{InputTokens: 8})}},

	{"converse", "/model/claude-x/converse", "application/json", `{"metrics":{"latencyMs":5},"output":{"message":{"content":[{"text":"Five."}],"role":"assistant"}},"stopReason":"tool_use","usage":{"inputTokens":12,"outputTokens":9,"totalTokens":64,"cacheReadInputTokens":40,"cacheWriteInputTokens":3}}`,
		agentevents.ModelReturned{FinishReasons: []string{"tool_use"}, Usage: converseUsage}},
	{"converse stream", "/model/claude-x/converse-stream", frames.MediaType, converseBegin + converseEnd,
		agentevents.ModelReturned{Model: "arn:aws:bedrock:x", FinishReasons: []string{"end_turn"}, Usage: converseUsage}},
	{"converse stream cut off", "/model/claude-x/converse-stream", frames.MediaType, converseBegin + converseEnd[:20],
		agentevents.ModelReturned{Error: failed("incomplete", "the stream ended before the answer did")}},
	{"converse stream with a broken frame", "/model/claude-x/converse-stream", frames.MediaType, converseBegin + strings.Replace(converseEnd, "end_turn", "end-turn", 1),
		agentevents.ModelReturned{Error: failed("incomplete", "a frame of the stream is broken")}},
	{"converse stream with an exception", "/model/claude-x/converse-stream", frames.MediaType, converseBegin + aFrame("exception", "modelStreamErrorException", `{"message":"no luck","originalStatusCode":500}`),
		agentevents.ModelReturned{Error: failed("modelStreamErrorException", "modelStreamErrorException: no luck")}},
	{"converse stream with an error", "/model/claude-x/converse-stream", frames.MediaType, converseBegin + aFrame("error", "", ``),
		agentevents.ModelReturned{Error: failed("error", "error")}},
	{"no frames", "/model/claude-x/converse-stream", frames.MediaType, "<html>no luck</html>",
		agentevents.ModelReturned{Error: failed("incomplete", "a frame of the stream is broken")}},
	{"invoke stream", "/model/claude-x/invoke-with-response-stream", frames.MediaType, aFrame("event", "ping", "Four.") + invokeStream(anthropicStream),
		agentevents.ModelReturned{Model: "claude-x-1", ResponseID: "msg_1", FinishReasons: []string{"end_turn"}, Usage: usage(false)}},
	{"invoke stream of another model", "/model/llama-x/invoke-with-response-stream", frames.MediaType, invokeStream(`data: {"generation":"5","stop_reason":"stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":26,"outputTokenCount":9}}`),
		agentevents.ModelReturned{FinishReasons: []string{"stop"}, Usage: ollamaUsage}},
}

// atWork returns a context with an agent that has started, and the recorder of its events.
func atWork(t testing.TB) (context.Context, *agentevents.Agent, *eventtest.Recorder) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r1")
	require.NoError(t, err)
	a := run.Agent("guide")
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{}))
	return agentevents.ContextWithAgent(t.Context(), a), a, rec
}

// modelCalls returns the model calls on the log, and their returns.
func modelCalls(rec *eventtest.Recorder) (called []*agentevents.ModelCalled, returned []*agentevents.ModelReturned) {
	for _, ev := range rec.Events() {
		switch p := ev.Payload.(type) {
		case *agentevents.ModelCalled:
			called = append(called, p)
		case *agentevents.ModelReturned:
			returned = append(returned, p)
		}
	}
	return called, returned
}

// serve returns the address of a server that sends an answer in pieces of n bytes, and a function
// that returns its last request.
func serve(t testing.TB, status int, media, answer string, n int) (string, func() []byte) {
	var mu sync.Mutex
	var asked []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = body
		mu.Unlock()
		w.Header().Set("Content-Type", media)
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(status)
		for rest := answer; rest != ""; {
			piece := rest[:min(n, len(rest))]
			rest = rest[len(piece):]
			_, _ = io.WriteString(w, piece)
			if n < len(answer) {
				w.(http.Flusher).Flush()
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []byte { mu.Lock(); defer mu.Unlock(); return asked }
}

const question = `{"messages":[{"role":"user","content":"2 + 2?"}],"model":"some-model","stream":true}`

func post(ctx context.Context, rt http.RoundTripper, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(question))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-secret")
	return (&http.Client{Transport: rt}).Do(r)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFormats(t *testing.T) {
	for _, f := range formats {
		for _, n := range []int{1, 7, 64, 1 << 20} {
			t.Run(fmt.Sprint(f.name, " in pieces of ", n), func(t *testing.T) {
				ctx, _, rec := atWork(t)
				url, asked := serve(t, 200, f.media, f.answer, n)
				resp, err := post(ctx, new(modelhttp.Recorder).Transport(nil), url+f.path)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, f.answer, string(got))
				require.Equal(t, question, string(asked()))

				called, returned := modelCalls(rec)
				require.Len(t, called, 1)
				require.Equal(t, "some-model", called[0].Model)
				require.Equal(t, agentevents.JSON(`{"stream":true}`), called[0].Attributes)
				require.Len(t, returned, 1)
				piece := strings.Contains(f.answer, "Four.") && f.name != "cut off"
				require.Equal(t, piece, returned[0].TimeToFirstToken.OK)
				want := f.want
				want.ModelCallID, want.RequestID = called[0].ModelCallID, "req_1"
				want.Duration, want.TimeToFirstToken = returned[0].Duration, returned[0].TimeToFirstToken
				require.Equal(t, want, *returned[0])
			})
		}
	}
}

// The client gets the same results with and without a recorder: answers of every status, and the
// errors of connections that break.
func TestTransparent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		switch r.URL.Path {
		case "/cut/messages":
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/none/messages":
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	for _, path := range []string{"/v1/messages", "/cut/messages", "/none/messages"} {
		see := func(ctx context.Context, rt http.RoundTripper) string {
			resp, err := post(ctx, rt, s.URL+path)
			if err != nil {
				return fmt.Sprintf("%T %v", err, err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			return fmt.Sprint(resp.StatusCode, resp.Request.URL, string(got), err)
		}
		ctx, _, rec := atWork(t)
		require.Equal(t, see(ctx, http.DefaultTransport), see(ctx, new(modelhttp.Recorder).Transport(nil)))
		called, returned := modelCalls(rec)
		require.Len(t, called, 1)
		require.Len(t, returned, 1)
		require.Equal(t, path != "/v1/messages", returned[0].Error.OK, path)
		if returned[0].Error.OK {
			require.NotContains(t, returned[0].Error.V.Message, s.URL)
		}
	}
}

func TestErrorStatus(t *testing.T) {
	for _, tt := range []struct {
		status    int
		body      string
		read      bool
		message   string
		retryable bool
	}{
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, true, "rate_limit_error: slow down", true},
		{401, `{"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}`, true, "invalid_request_error: bad key", false},
		{500, `<html>`, true, "status 500 Internal Server Error", true},
		{404, `{"error":"no such model"}`, true, "no such model", false},
		{503, `{"error":{"message":"x"}}`, false, "status 503 Service Unavailable", true},
		{599, `{"error":{}}`, true, "error", true},
		{429, `[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]`, true, "RESOURCE_EXHAUSTED: slow down", true},
		{400, `{"message":"bad model id"}`, true, "bad model id", false},
	} {
		ctx, _, rec := atWork(t)
		url, _ := serve(t, tt.status, "application/json", tt.body, 1<<20)
		resp, err := post(ctx, new(modelhttp.Recorder).Transport(nil), url+"/v1/messages")
		require.NoError(t, err)
		if tt.read {
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
		}
		require.NoError(t, resp.Body.Close())
		_, returned := modelCalls(rec)
		require.Len(t, returned, 1)
		require.Equal(t, opt(agentevents.ErrorInfo{Code: fmt.Sprint(tt.status), Message: tt.message, Retryable: opt(tt.retryable)}), returned[0].Error)
	}
}

// The path tells the model, and whether a stream is asked for, if the body does not.
func TestPaths(t *testing.T) {
	for _, tt := range []struct{ url, body, model, operation, provider, attributes string }{
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{}`, "gemini-x", "generate_content", "gcp.gemini", `{"stream":true}`},
		{"https://generativelanguage.googleapis.com/v1beta/models/emb-x:batchEmbedContents", `{}`, "emb-x", "embeddings", "gcp.gemini", ``},
		{"https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", `{}`, "gemini-x", "generate_content", "gcp.vertex_ai", ``},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x-v1%3A0/converse", `{}`, "anthropic.claude-x-v1:0", "chat", "aws.bedrock", ``},
		{"https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream", `{}`, "arn:aws:bedrock:us-east-1:1:inference-profile/us.x", "chat", "aws.bedrock", `{"stream":true}`},
		{"http://127.0.0.1:11434/api/chat", `{"model":"llama-x"}`, "llama-x", "chat", "", `{"stream":true}`},
		{"http://127.0.0.1:11434/api/generate", `{"model":"llama-x","stream":false}`, "llama-x", "text_completion", "", ``},
		{"http://127.0.0.1:11434/api/pull", `{"model":"llama-x"}`, "", "", "", ``},
		{"http://127.0.0.1:11434/api/show", `{"model":"llama-x"}`, "", "", "", ``},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-x:countTokens", `{"model":"gemini-x"}`, "", "", "", ``},
		{"https://generativelanguage.googleapis.com/v1beta/cachedContents", `{"model":"models/gemini-x"}`, "", "", "", ``},
	} {
		ctx, _, rec := atWork(t)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, tt.url, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		resp, err := new(modelhttp.Recorder).Middleware(r, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2}, nil
		})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		called, _ := modelCalls(rec)
		if tt.model == "" {
			require.Empty(t, called, tt.url)
			continue
		}
		require.Len(t, called, 1, tt.url)
		want := agentevents.ModelCalled{ModelCallID: called[0].ModelCallID, Model: tt.model, Operation: tt.operation, Provider: tt.provider, Attributes: agentevents.JSON(tt.attributes)}
		require.Equal(t, want, *called[0])
	}
}

func TestARequestWithoutAType(t *testing.T) {
	for url, body := range map[string]string{
		"https://api.openai.com/v1/responses":                                       `{"model":"m"}`,
		"https://generativelanguage.googleapis.com/v1beta/models/m:generateContent": `{"contents":[]}`,
	} {
		ctx, _, rec := atWork(t)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		resp, err := new(modelhttp.Recorder).Middleware(r, func(r *http.Request) (*http.Response, error) {
			sent, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(sent))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2}, nil
		})
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		called, _ := modelCalls(rec)
		require.Len(t, called, 1)
		require.Equal(t, "m", called[0].Model)
	}
}

// Both SDKs number their attempts. Two requests with different bodies are tried again at the
// same time.
func TestAttempts(t *testing.T) {
	ctx, _, rec := atWork(t)
	m := new(modelhttp.Recorder)
	send := func(body string, retry, status int) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "https://api.openai.com/v1/responses", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(retry))
		resp, err := m.Middleware(r, func(r *http.Request) (*http.Response, error) {
			sent, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(sent))
			if status == 0 {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), ContentLength: 2}, nil
		})
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
	}
	a, b := `{"model":"a"}`, `{"model":"b"}`
	send(a, 0, 429)
	send(b, 0, 0)
	send(a, 1, 500)
	send(b, 1, 200)
	send(a, 2, 200)
	send(`{"model":"c"}`, 1, 200) // nobody has seen its first attempt
	called, returned := modelCalls(rec)
	require.Len(t, returned, 6)
	for i, want := range []struct {
		model   string
		attempt int
		of      string
	}{{"a", 0, ""}, {"b", 0, ""}, {"a", 2, called[0].ModelCallID}, {"b", 2, called[1].ModelCallID}, {"a", 3, called[2].ModelCallID}, {"c", 2, ""}} {
		require.Equal(t, want.model, called[i].Model)
		require.Equal(t, want.attempt, called[i].Attempt.V)
		require.Equal(t, want.of, called[i].RetryOf)
		require.Equal(t, "openai", called[i].Provider)
	}
	require.Equal(t, "no route", returned[1].Error.V.Message)
}

func TestClientCloses(t *testing.T) {
	ctx, _, rec := atWork(t)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sse)
		_, _ = io.WriteString(w, chatStream[:400])
		w.(http.Flusher).Flush()
		<-release
	}))
	defer s.Close()
	defer close(release)
	m := new(modelhttp.Recorder)

	resp, err := post(ctx, m.Transport(nil), s.URL+"/v1/chat/completions")
	require.NoError(t, err)
	buf := make([]byte, 400)
	_, err = io.ReadFull(resp.Body, buf) // the pieces come before the stream has ended
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	ctx, stop := context.WithCancelCause(ctx)
	resp, err = post(ctx, m.Transport(nil), s.URL+"/v1/chat/completions")
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, buf)
	require.NoError(t, err)
	pressed := errors.New("the person pressed stop")
	stop(pressed)
	_, err = io.ReadAll(resp.Body)
	require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, pressed), err)

	_, err = post(ctx, m.Transport(nil), s.URL+"/v1/chat/completions")
	require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, pressed), err)

	// A client that is cancelled as the answer comes does not look at it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	resp, err = post(ctx, m.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		cancel()
		return resp, err
	})), s.URL+"/v1/chat/completions")
	require.NoError(t, err)
	defer resp.Body.Close()

	_, returned := modelCalls(rec)
	require.Len(t, returned, 4)
	for _, p := range returned {
		require.Equal(t, "cancelled", p.Error.V.Code)
	}
	for _, p := range returned[1:3] {
		require.Contains(t, p.Error.V.Message, "the person pressed stop")
	}
	require.Equal(t, "gpt-x-1", returned[0].Model)
}

// A client that decodes one value and closes has not read to the end, but has all.
func TestClientDoesNotReadTheEnd(t *testing.T) {
	ctx, _, rec := atWork(t)
	answer := formats[4].answer
	url, _ := serve(t, 200, "application/json", answer, 100) // without a Content-Length
	resp, err := post(ctx, new(modelhttp.Recorder).Transport(nil), url+"/v1/messages")
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, len(answer)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	_, returned := modelCalls(rec)
	require.False(t, returned[0].Error.OK)
	require.Equal(t, usage(false), returned[0].Usage)
}

// A client that asks for gzip unpacks it itself.
func TestGzip(t *testing.T) {
	for _, f := range formats {
		if f.want.Error.OK {
			continue
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := io.WriteString(z, f.answer)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		for _, encoding := range []string{"gzip", "br"} {
			ctx, _, rec := atWork(t)
			resp, err := new(modelhttp.Recorder).Middleware(request(ctx), func(*http.Request) (*http.Response, error) {
				h := http.Header{"Content-Type": {f.media}, "Content-Encoding": {encoding}}
				return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(bytes.NewReader(packed.Bytes())), ContentLength: -1}, nil
			})
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, packed.Bytes(), got)
			_, returned := modelCalls(rec)
			require.Len(t, returned, 1)
			require.False(t, returned[0].Error.OK)
			if encoding == "gzip" {
				require.Equal(t, f.want.Usage, returned[0].Usage)
				require.Equal(t, f.want.FinishReasons, returned[0].FinishReasons)
			} else {
				require.False(t, returned[0].Usage.OK)
			}
		}
	}
}

func request(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "https://us-east5-aiplatform.googleapis.com/v1/messages", strings.NewReader(question))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// An answer with a document that does not end is read in bounded memory.
func TestLongAnswers(t *testing.T) {
	long := strings.Repeat("x", 20<<20)
	for _, tt := range []struct{ name, media, begin, end string }{
		{"an event", sse, "data: ", "\n\n" + anthropicStream},
		{"a value", "application/json", `{"x":"`, `"}`},
		{"a line", "application/x-ndjson", `{"done":false,"response":"`, "\"}\n" + ollamaLines},
		{"an element", "application/json", `[{"x":"`, `"},` + geminiArray[1:]},
	} {
		ctx, _, rec := atWork(t)
		body := io.MultiReader(strings.NewReader(tt.begin), strings.NewReader(long), strings.NewReader(tt.end))
		resp, err := new(modelhttp.Recorder).Middleware(request(ctx), func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {tt.media}}, Body: io.NopCloser(body), ContentLength: -1}, nil
		})
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.EqualValues(t, len(tt.begin)+len(long)+len(tt.end), n)
		_, returned := modelCalls(rec)
		require.Len(t, returned, 1)
		require.False(t, returned[0].Error.OK, tt.name)
		require.Equal(t, tt.name != "a value", returned[0].Usage.OK, "the documents after a long one count")
	}
}

// Two recorders in a row, and an adapter that has opened the call, record it once.
func TestOpenModelCall(t *testing.T) {
	ctx, a, rec := atWork(t)
	m := new(modelhttp.Recorder)
	url, _ := serve(t, 200, sse, anthropicStream, 50)
	ask := func(ctx context.Context) {
		resp, err := post(ctx, m.Transport(m.Transport(nil)), url+"/v1/messages")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
	}
	ask(ctx)
	call, err := a.Model(ctx, &agentevents.ModelCalled{Model: "adapter"})
	require.NoError(t, err)
	ctx = agentevents.ContextWithModelCall(ctx, call)
	ask(ctx)
	require.NoError(t, call.Return(ctx, &agentevents.ModelReturned{Model: "said by the adapter"}))
	ask(ctx) // the call has returned: this is another
	called, returned := modelCalls(rec)
	require.Len(t, called, 3)
	require.Len(t, returned, 3)
	for _, p := range returned {
		require.Equal(t, usage(false), p.Usage)
		require.Equal(t, "req_1", p.RequestID)
		require.True(t, p.TimeToFirstToken.OK)
	}
	require.Equal(t, "said by the adapter", returned[1].Model)
}

// An adapter learns from the client who has failed, and how.
func TestOpenModelCallFails(t *testing.T) {
	ctx, a, rec := atWork(t)
	call, err := a.Model(ctx, &agentevents.ModelCalled{})
	require.NoError(t, err)
	ctx = agentevents.ContextWithModelCall(ctx, call)
	resp, err := new(modelhttp.Recorder).Middleware(request(ctx), func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"busy"}}`))}, nil
	})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.NoError(t, call.Fail(ctx, errors.New("no answer")))
	_, returned := modelCalls(rec)
	require.Equal(t, "gcp.vertex_ai", returned[0].Provider)
	require.Equal(t, opt(agentevents.ErrorInfo{Code: "503", Message: "no answer", Retryable: opt(true)}), returned[0].Error)
}

// A request that is not a model call is not recorded, and without an agent no request is.
func TestNotRecorded(t *testing.T) {
	ctx, _, rec := atWork(t)
	url, asked := serve(t, 200, "application/json", `{}`, 10)
	rt := new(modelhttp.Recorder).Transport(nil)
	for _, path := range []string{"/v1/messages/count_tokens", "/v1/responses/input_tokens"} {
		resp, err := post(ctx, rt, url+path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	resp, err := post(t.Context(), rt, url+"/v1/messages")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for _, r := range []struct{ method, body string }{{"GET", ""}, {"POST", `{"messages":[]}`}, {"DELETE", ""}} {
		req, err := http.NewRequestWithContext(ctx, r.method, url+"/v1/threads/1/messages", strings.NewReader(r.body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, r.body, string(asked()))
	}
	called, _ := modelCalls(rec)
	require.Empty(t, called)
}

// Errors on the way stay the same, and are recorded.
func TestClientBreaks(t *testing.T) {
	ctx, _, rec := atWork(t)
	m := new(modelhttp.Recorder)
	require.PanicsWithValue(t, "boom", func() {
		_, _ = m.Middleware(request(ctx), func(*http.Request) (*http.Response, error) { panic("boom") })
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = m.Middleware(request(ctx), func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil })
	}()
	<-done
	resp, err := m.Middleware(request(ctx), func(*http.Request) (*http.Response, error) { return nil, io.EOF })
	require.Nil(t, resp)
	require.True(t, err == io.EOF)
	resp, err = m.Middleware(request(ctx), func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 204}, nil })
	require.NoError(t, err)
	require.Nil(t, resp.Body)
	called, returned := modelCalls(rec)
	require.Len(t, returned, 4)
	require.Equal(t, "gcp.vertex_ai", called[0].Provider)
	for _, p := range returned[:3] {
		require.True(t, p.Error.OK)
	}
	require.False(t, returned[3].Error.OK)

	body := &breaking{}
	r := request(ctx)
	r.Body = body
	_, err = m.Middleware(r, func(r *http.Request) (*http.Response, error) {
		_, err := io.ReadAll(r.Body)
		return nil, errors.Join(err, r.Body.Close())
	})
	require.ErrorIs(t, err, errBreaking)
	require.True(t, body.closed)
}

var errBreaking = errors.New("the disk has gone")

// breaking is a body that fails after a while.
type breaking struct{ read, closed bool }

func (b *breaking) Read(p []byte) (int, error) {
	if b.read {
		return 0, errBreaking
	}
	b.read = true
	return copy(p, `{"mod`), nil
}

func (b *breaking) Close() error { b.closed = true; return nil }

// An emitter that panics does not reach the client, nor does one that refuses.
func TestRecordingBreaks(t *testing.T) {
	for _, o := range []agentevents.EmitterOptions{
		{Clock: func() time.Time { panic("clock") }},
		{NewID: func() string { panic("id") }},
		{}, // the agent has not started
	} {
		o.OnViolation = func(*agentevents.RuleError) {}
		em, err := agentevents.NewEmitter(o)
		require.NoError(t, err)
		run, err := em.Run("r1")
		require.NoError(t, err)
		ctx := agentevents.ContextWithAgent(t.Context(), run.Agent("guide"))
		url, asked := serve(t, 200, sse, chatStream, 100)
		resp, err := post(ctx, new(modelhttp.Recorder).Transport(nil), url+"/v1/chat/completions")
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, chatStream, string(got))
		require.Equal(t, question, string(asked()))
	}
}

// Clients share a recorder, and close bodies while they read.
func TestConcurrent(t *testing.T) {
	ctx, _, rec := atWork(t)
	url, _ := serve(t, 200, sse, anthropicStream, 20)
	rt := new(modelhttp.Recorder).Transport(nil)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			resp, err := post(ctx, rt, url+"/v1/messages")
			if err != nil {
				t.Error(err)
				return
			}
			if i%2 == 0 {
				wg.Go(func() { resp.Body.Close() })
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	wg.Wait()
	called, returned := modelCalls(rec)
	require.Len(t, called, 16)
	require.Len(t, returned, 16)
}

// Neither headers nor the URL, where clients put keys, are on the log.
func TestKeys(t *testing.T) {
	ctx, _, rec := atWork(t)
	url, _ := serve(t, 429, "application/json", `{"error":{"type":"rate_limit_error"}}`, 10)
	rt := new(modelhttp.Recorder).Transport(nil)
	for _, url := range []string{url, "http://127.0.0.1:1"} {
		m := new(modelhttp.Recorder)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages?key=k-secret", strings.NewReader(question))
		require.NoError(t, err)
		r.Header.Set("X-Api-Key", "sk-secret")
		resp, err := m.Middleware(r, (&http.Client{Transport: rt}).Do) // an error of Do names the URL
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		} else {
			require.ErrorContains(t, err, "k-secret")
		}
	}
	called, returned := modelCalls(rec)
	require.Len(t, called, 2)
	require.Len(t, returned, 2)
	for _, ev := range rec.Events() {
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.NotContains(t, string(line), "secret")
	}
}

func BenchmarkStream(b *testing.B) {
	stream := anthropicStream
	delta := stream[strings.Index(stream, "event: content_block_delta"):strings.Index(stream, "event: content_block_stop")]
	stream = strings.Replace(stream, delta, strings.Repeat(delta, 500), 1)
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	require.NoError(b, err)
	run, err := em.Run("r1")
	require.NoError(b, err)
	a := run.Agent("guide")
	require.NoError(b, a.Emit(b.Context(), &agentevents.AgentStarted{}))
	m := new(modelhttp.Recorder)
	for name, ctx := range map[string]context.Context{"off": b.Context(), "500 deltas": agentevents.ContextWithAgent(b.Context(), a)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				resp, err := m.Middleware(request(ctx), func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {sse}}, Body: io.NopCloser(strings.NewReader(stream)), ContentLength: -1}, nil
				})
				require.NoError(b, err)
				_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 512))
				require.NoError(b, err)
			}
		})
	}
}
