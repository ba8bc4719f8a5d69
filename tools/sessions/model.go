package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A reply is an answer of the model.
type reply struct {
	think, text string
	calls       []call
}

// A call is a call of a tool in an answer.
type call struct {
	tool  string
	input map[string]any
}

// object is JSON.
type object = map[string]any

// A model is a server that gives the replies of a script, one for each request that declares tools. Other
// requests, such as those for a title, get a short text. It knows Anthropic's Messages,
// OpenAI's Responses and Chat Completions, and Gemini's generateContent. Answer k has 1000k
// tokens of input, 100k of them cached, 10k of visible output and k of reasoning.
type model struct {
	mu       sync.Mutex
	replies  []reply
	answered int // replies that were given
	asides   int // other answers
	others   map[string]bool
	ids      int
}

// tokens count an answer.
type tokens struct{ input, cached, output, reasoning int }

// next returns the reply to a request, its number and its tokens.
func (m *model) next(main bool) (reply, int, tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !main {
		m.asides++
		return reply{text: "An aside"}, 1000 + m.asides, tokens{input: 7, output: 3}
	}
	m.answered++
	k := m.answered
	r := reply{text: "The script is over."}
	if k <= len(m.replies) {
		r = m.replies[k-1]
	}
	return r, k, tokens{1000 * k, 100 * k, 10 * k, k}
}

// id returns an id that no other part of an answer has.
func (m *model) id(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("%s_%06dmade", prefix, m.ids)
}

// A wire is a protocol: the answer as one object, and as the data of a stream.
type wire struct {
	path  string // a part of the URL's
	named bool   // events have their types as names
	done  string // the last line
	whole func(m *model, r reply, k int, t tokens, name string) object
	parts func(m *model, r reply, k int, t tokens, name string) []object
}

var wires = []wire{
	{path: "/messages", named: true, whole: anthropicWhole, parts: anthropicParts},
	{path: "/responses", named: true, whole: responsesWhole, parts: responsesParts},
	{path: "/chat/completions", done: "[DONE]", whole: chatWhole, parts: chatParts},
	{path: "enerateContent", whole: geminiWhole, parts: geminiParts},
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request struct {
		Model  string
		Stream bool
		Tools  []any
	}
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &request)
	}
	path := r.URL.Path
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case strings.Contains(path, "ount"): // count_tokens, countTokens
		writeJSON(w, object{"input_tokens": 100, "totalTokens": 100})
		return
	}
	for _, form := range wires {
		if r.Method == http.MethodPost && strings.Contains(path, form.path) {
			answer, k, t := m.next(len(request.Tools) > 0)
			if form.path == "enerateContent" {
				_, after, _ := strings.Cut(path, "models/")
				request.Model, _, _ = strings.Cut(after, ":")
				request.Stream = strings.Contains(path, "streamGenerate")
			}
			if !request.Stream {
				writeJSON(w, form.whole(m, answer, k, t, request.Model))
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range form.parts(m, answer, k, t, request.Model) {
				data, _ := json.Marshal(part) // of maps, texts and numbers
				if form.named {
					fmt.Fprintf(w, "event: %s\n", part["type"])
				}
				fmt.Fprintf(w, "data: %s\n\n", data)
				w.(http.Flusher).Flush()
			}
			if form.done != "" {
				fmt.Fprintf(w, "data: %s\n\n", form.done)
			}
			return
		}
	}
	m.mu.Lock()
	m.others[r.Method+" "+path] = true
	m.mu.Unlock()
	if strings.HasSuffix(path, "/models") {
		writeJSON(w, object{"object": "list",
			"data": []any{object{"id": "demo-model", "object": "model"}}, "models": []any{}})
		return
	}
	w.WriteHeader(http.StatusNotFound)
	writeJSON(w, object{"error": object{"type": "not_found_error", "message": "not here"}})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the program may have ended
}

// text returns a value as JSON text.
func text(v any) string {
	data, _ := json.Marshal(v) // of maps, texts and numbers
	return string(data)
}

func anthropicUsage(t tokens, output int) object {
	return object{"input_tokens": t.input - t.cached, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": t.cached, "output_tokens": output}
}

func anthropicBlocks(m *model, r reply) (blocks []object) {
	if r.think != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": r.think, "signature": "c2lnbmF0dXJl"})
	}
	if r.text != "" {
		blocks = append(blocks, object{"type": "text", "text": r.text})
	}
	for _, c := range r.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": m.id("toolu"), "name": c.tool, "input": c.input})
	}
	return blocks
}

func anthropicWhole(m *model, r reply, k int, t tokens, name string) object {
	stop := "end_turn"
	if len(r.calls) > 0 {
		stop = "tool_use"
	}
	return object{"id": fmt.Sprintf("msg_%04d", k), "type": "message",
		"role": "assistant", "model": name, "content": anthropicBlocks(m, r),
		"stop_reason": stop, "stop_sequence": nil, "usage": anthropicUsage(t, t.output+t.reasoning)}
}

func anthropicParts(m *model, r reply, k int, t tokens, name string) []object {
	whole := anthropicWhole(m, r, k, t, name)
	head := object{"id": whole["id"], "type": "message", "role": "assistant", "model": name,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": anthropicUsage(t, 1)}
	out := []object{{"type": "message_start", "message": head}}
	for i, b := range whole["content"].([]object) {
		var empty object
		var deltas []object
		switch b["type"] {
		case "thinking":
			empty = object{"type": "thinking", "thinking": "", "signature": ""}
			deltas = []object{{"type": "thinking_delta", "thinking": b["thinking"]},
				{"type": "signature_delta", "signature": b["signature"]}}
		case "text":
			empty, deltas = object{"type": "text", "text": ""}, []object{{"type": "text_delta", "text": b["text"]}}
		default:
			empty = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			deltas = []object{{"type": "input_json_delta", "partial_json": text(b["input"])}}
		}
		out = append(out, object{"type": "content_block_start", "index": i, "content_block": empty})
		for _, d := range deltas {
			out = append(out, object{"type": "content_block_delta", "index": i, "delta": d})
		}
		out = append(out, object{"type": "content_block_stop", "index": i})
	}
	stop := object{"stop_reason": whole["stop_reason"], "stop_sequence": nil}
	return append(out, object{"type": "message_delta", "delta": stop, "usage": whole["usage"]},
		object{"type": "message_stop"})
}

func responsesWhole(m *model, r reply, k int, t tokens, name string) object {
	items := []object{}
	if r.think != "" {
		items = append(items, object{"type": "reasoning", "id": m.id("rs"),
			"summary": []any{object{"type": "summary_text", "text": r.think}}, "encrypted_content": "ZW5jcnlwdGVk"})
	}
	if r.text != "" {
		items = append(items, object{"type": "message", "id": m.id("msg"), "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": r.text, "annotations": []any{}}}})
	}
	for _, c := range r.calls {
		items = append(items, object{"type": "function_call", "id": m.id("fc"),
			"call_id": m.id("call"), "name": c.tool, "arguments": text(c.input), "status": "completed"})
	}
	return object{"id": fmt.Sprintf("resp_%04d", k), "object": "response",
		"created_at": 1790000000, "model": name, "status": "completed", "output": items,
		"usage": object{"input_tokens": t.input, "input_tokens_details": object{"cached_tokens": t.cached},
			"output_tokens":         t.output + t.reasoning,
			"output_tokens_details": object{"reasoning_tokens": t.reasoning}, "total_tokens": t.input + t.output + t.reasoning}}
}

func responsesParts(m *model, r reply, k int, t tokens, name string) []object {
	whole := responsesWhole(m, r, k, t, name)
	out := []object{
		{"type": "response.created", "response": object{"id": whole["id"],
			"object": "response", "model": name, "status": "in_progress", "output": []any{}}},
	}
	for i, item := range whole["output"].([]object) {
		out = append(out, object{"type": "response.output_item.added", "output_index": i, "item": item})
		if item["type"] == "message" {
			out = append(out, object{"type": "response.output_text.delta",
				"item_id": item["id"], "output_index": i, "content_index": 0, "delta": r.text})
		}
		out = append(out, object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	out = append(out, object{"type": "response.completed", "response": whole})
	for i := range out {
		out[i]["sequence_number"] = i
	}
	return out
}

func chatCalls(m *model, r reply) (calls []object) {
	for i, c := range r.calls {
		calls = append(calls, object{"index": i, "id": m.id("call"), "type": "function",
			"function": object{"name": c.tool, "arguments": text(c.input)}})
	}
	return calls
}

func chatUsage(t tokens) object {
	return object{"prompt_tokens": t.input, "completion_tokens": t.output + t.reasoning,
		"total_tokens":          t.input + t.output + t.reasoning,
		"prompt_tokens_details": object{"cached_tokens": t.cached}, "completion_tokens_details": object{"reasoning_tokens": t.reasoning}}
}

func chatFinish(r reply) string {
	if len(r.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatWhole(m *model, r reply, k int, t tokens, name string) object {
	message := object{"role": "assistant", "content": r.text}
	if calls := chatCalls(m, r); calls != nil {
		message["tool_calls"] = calls
	}
	return object{"id": fmt.Sprintf("chatcmpl-%d", k), "object": "chat.completion",
		"created": 1790000000, "model": name, "usage": chatUsage(t),
		"choices": []any{object{"index": 0, "finish_reason": chatFinish(r), "message": message}}}
}

func chatParts(m *model, r reply, k int, t tokens, name string) (out []object) {
	chunk := func(choices ...any) object {
		return object{"id": fmt.Sprintf("chatcmpl-%d", k), "object": "chat.completion.chunk",
			"created": 1790000000, "model": name, "choices": choices}
	}
	delta := func(d object, finish any) {
		out = append(out, chunk(object{"index": 0, "delta": d, "finish_reason": finish}))
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	if r.think != "" {
		delta(object{"reasoning_content": r.think}, nil)
	}
	if r.text != "" {
		delta(object{"content": r.text}, nil)
	}
	if calls := chatCalls(m, r); calls != nil {
		delta(object{"tool_calls": calls}, nil)
	}
	delta(object{}, chatFinish(r))
	last := chunk()
	last["choices"], last["usage"] = []any{}, chatUsage(t)
	return append(out, last)
}

func geminiWhole(m *model, r reply, k int, t tokens, name string) object {
	parts := []object{}
	if r.think != "" {
		parts = append(parts, object{"text": r.think, "thought": true})
	}
	if r.text != "" {
		parts = append(parts, object{"text": r.text})
	}
	for _, c := range r.calls {
		parts = append(parts, object{"functionCall": object{"name": c.tool, "args": c.input}, "thoughtSignature": "c2ln"})
	}
	return object{"candidates": []any{object{"content": object{"role": "model", "parts": parts},
		"finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": t.input, "candidatesTokenCount": t.output, "totalTokenCount": t.input + t.output + t.reasoning, "cachedContentTokenCount": t.cached, "thoughtsTokenCount": t.reasoning},
		"modelVersion":  name, "responseId": fmt.Sprintf("resp-%d", k)}
}

func geminiParts(m *model, r reply, k int, t tokens, name string) []object {
	return []object{geminiWhole(m, r, k, t, name)}
}
