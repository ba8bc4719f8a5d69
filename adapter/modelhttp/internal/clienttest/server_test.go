package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream/eventstreamapi"
)

// A script is how an API answers.
type script struct {
	media   string
	pieces  []string // of a whole answer
	begun   int      // how many pieces come before a break: the model has said "Four."
	failure string   // the piece that breaks a stream
	status  int      // of a refusal
	sort    string   // of a refusal of AWS
	refusal string
}

// answer writes an answer: "whole" or "stream", "refused", "broken" by an error within a stream, or
// "cut" within a piece.
func (s script) answer(w http.ResponseWriter, way string) {
	w.Header().Set("Content-Type", s.media)
	if s.sort != "" {
		w.Header().Set("X-Amzn-Requestid", "req_1")
	}
	pieces := s.pieces
	switch way {
	case "refused":
		w.Header().Set("Content-Type", "application/json")
		if s.sort != "" {
			w.Header().Set("X-Amzn-Errortype", s.sort+":http://internal.amazon.com/coral/com.amazon.bedrock/")
		}
		w.WriteHeader(s.status)
		fmt.Fprint(w, s.refusal)
		return
	case "broken":
		pieces = append(pieces[:s.begun:s.begun], s.failure)
	case "cut":
		next := pieces[s.begun]
		pieces = append(pieces[:s.begun:s.begun], next[:len(next)/2])
	}
	for _, p := range pieces {
		fmt.Fprint(w, p)
		w.(http.Flusher).Flush()
	}
	if way == "cut" {
		panic(http.ErrAbortHandler)
	}
}

func serve(t *testing.T, s script, way string) *httptest.Server {
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, way) })
}

func serveFunc(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func gemini(stream bool) script {
	const end = `"modelVersion":"model-x-1","responseId":"g_1"}`
	const usage = `"usageMetadata":{"promptTokenCount":55,"candidatesTokenCount":7,"totalTokenCount":64,"cachedContentTokenCount":40,"thoughtsTokenCount":2},`
	s := script{media: "application/json; charset=UTF-8", status: http.StatusTooManyRequests,
		refusal: `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`,
		pieces:  []string{`{"candidates":[{"content":{"parts":[{"text":"Four."}],"role":"model"},"finishReason":"STOP","index":0}],` + usage + end}}
	if stream {
		s.media, s.begun = "text/event-stream", 1
		s.failure = `data: {"error":{"code":503,"message":"no luck","status":"UNAVAILABLE"}}` + "\r\n\r\n"
		s.pieces = []string{
			`data: {"candidates":[{"content":{"parts":[{"text":"Four."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":55,"totalTokenCount":57,"thoughtsTokenCount":2},` + end + "\r\n\r\n",
			`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],` + usage + end + "\r\n\r\n",
		}
	}
	return s
}

func ollamaChat(stream bool) script {
	return ollamaScript(stream, `"message":{"role":"assistant","content":%q}`)
}

func ollamaGenerate(stream bool) script { return ollamaScript(stream, `"response":%q`) }

func ollamaScript(stream bool, said string) script {
	const begin = `{"model":"model-x","created_at":"2026-05-05T09:00:00Z",`
	const end = `,"done":true,"done_reason":"stop","total_duration":5,"prompt_eval_count":26,"eval_count":9}`
	s := script{media: "application/json; charset=utf-8", status: http.StatusNotFound,
		refusal: `{"error":"model \"model-x\" not found, try pulling it first"}`,
		pieces:  []string{begin + fmt.Sprintf(said, "Four.") + end}}
	if stream {
		s.media, s.begun, s.failure = "application/x-ndjson", 1, `{"error":"no luck"}`+"\n"
		s.pieces = []string{begin + fmt.Sprintf(said, "Four.") + `,"done":false}` + "\n", begin + fmt.Sprintf(said, "") + end + "\n"}
	}
	return s
}

// frame writes a frame by the encoder of AWS.
func frame(kind, sort, payload string) string {
	m := eventstream.Message{Payload: []byte(payload)}
	m.Headers.Set(eventstreamapi.MessageTypeHeader, eventstream.StringValue(kind))
	m.Headers.Set(":"+kind+"-type", eventstream.StringValue(sort))
	m.Headers.Set(eventstreamapi.ContentTypeHeader, eventstream.StringValue("application/json"))
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
		panic(err)
	}
	return out.String()
}

// bedrockScript is an answer of Bedrock, streamed or not.
func bedrockScript(stream bool, whole string, begun int, events []string) script {
	s := script{media: "application/json", pieces: []string{whole}, status: http.StatusTooManyRequests, sort: "ThrottlingException", refusal: `{"message":"slow down"}`}
	if stream {
		s.media, s.pieces, s.begun = "application/vnd.amazon.eventstream", events, begun
		s.failure = frame("exception", "modelStreamErrorException", `{"message":"no luck","originalStatusCode":500}`)
	}
	return s
}

func converse(stream bool) script {
	const usage = `"usage":{"inputTokens":12,"outputTokens":9,"totalTokens":64,"cacheReadInputTokens":40,"cacheWriteInputTokens":3},"metrics":{"latencyMs":5}}`
	return bedrockScript(stream, `{"output":{"message":{"role":"assistant","content":[{"text":"Four."}]}},"stopReason":"end_turn",`+usage, 2, []string{
		frame("event", "messageStart", `{"p":"abcd","role":"assistant"}`),
		frame("event", "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Four."},"p":"ab"}`),
		frame("event", "contentBlockStop", `{"contentBlockIndex":0,"p":"abcdef"}`),
		frame("event", "messageStop", `{"p":"a","stopReason":"end_turn"}`),
		frame("event", "metadata", `{"p":"abc",`+usage),
	})
}

func invoke(stream bool) script {
	chunk := func(document string) string {
		text, err := json.Marshal(map[string]any{"bytes": []byte(document), "p": "abc"})
		if err != nil {
			panic(err)
		}
		return frame("event", "chunk", string(text))
	}
	const usage = `"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":40,"output_tokens":`
	return bedrockScript(stream, `{"id":"msg_1","type":"message","model":"model-x-1","content":[{"type":"text","text":"Four."}],"stop_reason":"end_turn",`+usage+`9}}`, 2, []string{
		chunk(`{"type":"message_start","message":{"id":"msg_1","type":"message","model":"model-x-1","content":[],"stop_reason":null,` + usage + `1}}}`),
		chunk(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Four."}}`),
		chunk(`{"type":"content_block_stop","index":0}`),
		chunk(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}`),
		chunk(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":12,"outputTokenCount":9,"invocationLatency":5,"firstByteLatency":2}}`),
	})
}
