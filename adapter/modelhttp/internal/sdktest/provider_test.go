package sdktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A reply is the scripted model's answer to one request.
type reply struct {
	status int // of an error; 0 means none
	text   string
	calls  []toolCall
	cut    bool // the connection breaks in the middle of the stream
	hangs  bool // nothing follows the first event of the stream
}

type toolCall struct{ id, name, args string }

// The usage of every reply.
const (
	inTokens     = 20 // of them:
	cachedTokens = 5
	outTokens    = 7
)

// provider is a server that speaks the three formats of its paths, streamed or not, and
// answers by a script.
func provider(t *testing.T, script []reply) *httptest.Server {
	var mu sync.Mutex
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var asked struct{ Stream bool }
		if err != nil || json.Unmarshal(body, &asked) != nil {
			t.Errorf("the request cannot be read: %s", body)
		}
		mu.Lock()
		if len(script) == 0 {
			mu.Unlock()
			t.Error("the script has no more answers")
			http.Error(w, "no more", http.StatusTeapot)
			return
		}
		next := script[0]
		script = script[1:]
		n := len(script)
		mu.Unlock()
		w.Header().Set("X-Request-Id", fmt.Sprint("req_", n))
		if next.status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(next.status)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"refused","message":"try again, %d"}}`, next.status)
			return
		}
		whole, events := formats[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/'):]](fmt.Sprint(n), next)
		if !asked.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, whole)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		switch {
		case next.hangs:
			events = events[:1]
		case next.cut:
			events = events[:len(events)/2]
		}
		for _, e := range events {
			fmt.Fprint(w, e)
			w.(http.Flusher).Flush()
		}
		if next.hangs {
			select {
			case <-r.Context().Done():
			case <-release:
			}
		}
		if next.cut {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(func() {
		close(release)
		s.Close()
	})
	return s
}

// formats write a reply as one body, and as the events of a stream.
var formats = map[string]func(id string, r reply) (whole string, events []string){
	"/messages":    messages,
	"/completions": completions,
	"/responses":   responses,
}

type object = map[string]any

func text(v any) string {
	t, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(t)
}

func event(v object) string {
	if t, ok := v["type"].(string); ok {
		return "event: " + t + "\ndata: " + text(v) + "\n\n"
	}
	return "data: " + text(v) + "\n\n"
}

func messages(id string, r reply) (string, []string) {
	usage := object{"input_tokens": inTokens - cachedTokens, "cache_read_input_tokens": cachedTokens, "output_tokens": outTokens}
	content := []object{}
	message := object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": "scripted-1", "content": content, "stop_reason": nil, "usage": object{"input_tokens": inTokens - cachedTokens, "cache_read_input_tokens": cachedTokens, "output_tokens": 1}}
	events := []string{event(object{"type": "message_start", "message": message})}
	block := func(start object, delta object) {
		i := len(content)
		events = append(events,
			event(object{"type": "content_block_start", "index": i, "content_block": start}),
			event(object{"type": "content_block_delta", "index": i, "delta": delta}),
			event(object{"type": "content_block_stop", "index": i}))
	}
	stop := "end_turn"
	if r.text != "" {
		block(object{"type": "text", "text": ""}, object{"type": "text_delta", "text": r.text})
		content = append(content, object{"type": "text", "text": r.text})
	}
	for _, c := range r.calls {
		stop = "tool_use"
		block(object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}}, object{"type": "input_json_delta", "partial_json": c.args})
		content = append(content, object{"type": "tool_use", "id": c.id, "name": c.name, "input": json.RawMessage(c.args)})
	}
	events = append(events, event(object{"type": "message_delta", "delta": object{"stop_reason": stop}, "usage": object{"output_tokens": outTokens}}),
		event(object{"type": "message_stop"}))
	message["content"], message["stop_reason"], message["usage"] = content, stop, usage
	return text(message), events
}

func completions(id string, r reply) (string, []string) {
	usage := object{"prompt_tokens": inTokens, "completion_tokens": outTokens, "total_tokens": inTokens + outTokens, "prompt_tokens_details": object{"cached_tokens": cachedTokens}}
	stop := "stop"
	calls := []object{}
	for i, c := range r.calls {
		stop = "tool_calls"
		calls = append(calls, object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.args}})
	}
	chunk := func(choices []object, usage any) string {
		return event(object{"id": "chatcmpl-" + id, "object": "chat.completion.chunk", "model": "scripted-1", "choices": choices, "usage": usage})
	}
	delta := func(d object) string { return chunk([]object{{"index": 0, "delta": d}}, nil) }
	events := []string{delta(object{"role": "assistant", "content": ""})}
	if r.text != "" {
		events = append(events, delta(object{"content": r.text}))
	}
	for _, c := range calls {
		events = append(events, delta(object{"tool_calls": []object{c}}))
	}
	events = append(events, chunk([]object{{"index": 0, "delta": object{}, "finish_reason": stop}}, nil), chunk([]object{}, usage), "data: [DONE]\n\n")
	message := object{"role": "assistant", "content": r.text}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return text(object{"id": "chatcmpl-" + id, "object": "chat.completion", "model": "scripted-1",
		"choices": []object{{"index": 0, "message": message, "finish_reason": stop}}, "usage": usage}), events
}

func responses(id string, r reply) (string, []string) {
	output := []object{}
	if r.text != "" {
		output = append(output, object{"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": r.text, "annotations": []object{}}}})
	}
	for _, c := range r.calls {
		output = append(output, object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.name, "arguments": c.args, "status": "completed"})
	}
	response := func(status string, usage any) object {
		return object{"id": "resp_" + id, "object": "response", "status": status, "model": "scripted-1", "output": output, "usage": usage}
	}
	done := response("completed", object{"input_tokens": inTokens, "input_tokens_details": object{"cached_tokens": cachedTokens}, "output_tokens": outTokens, "total_tokens": inTokens + outTokens})
	events := []string{event(object{"type": "response.created", "sequence_number": 0, "response": response("in_progress", nil)})}
	for i, o := range output {
		events = append(events, event(object{"type": "response.output_item.added", "sequence_number": len(events), "output_index": i, "item": o}))
		if o["type"] == "message" {
			events = append(events, event(object{"type": "response.output_text.delta", "sequence_number": len(events), "output_index": i, "item_id": o["id"], "content_index": 0, "delta": r.text}))
		}
		events = append(events, event(object{"type": "response.output_item.done", "sequence_number": len(events), "output_index": i, "item": o}))
	}
	return text(done), append(events, event(object{"type": "response.completed", "sequence_number": len(events), "response": done}))
}
