package modelhttp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
)

const (
	maxAnswer   = 8 << 20  // bytes of an answer, or of an event of a stream, that are kept; a longer one says nothing
	maxInflated = 64 << 20 // bytes that a compressed answer is read to
	maxChoices  = 128
)

// An answer reads along what a server answers.
type answer struct {
	status    int
	retryable bool
	requestID string
	length    int64 // of the body; -1 when it is not known
	seen      int64
	stream    bool   // server-sent events
	packed    string // the encoding of the content
	opaque    bool   // too long, or of an unknown encoding: the end cannot be told
	full      bool   // all bytes are here
	json      bool   // as the header says
	whole     bool   // what is no stream is JSON, up to its end
	broken    bool   // what should be JSON is none, or only its beginning

	kept  []byte // of a body that is no stream, or packed
	lines events
	facts
}

func answerOf(resp *http.Response) answer {
	h := resp.Header
	a := answer{
		status:    resp.StatusCode,
		requestID: h.Get("request-id"), // of Anthropic
		length:    resp.ContentLength,
		stream:    mediaType(h) == "text/event-stream",
		packed:    h.Get("Content-Encoding"),
		json:      isJSON(h),
	}
	if a.requestID == "" {
		a.requestID = h.Get("x-request-id") // of OpenAI
	}
	switch h.Get("x-should-retry") { // as both SDKs decide
	case "true":
		a.retryable = true
	case "false":
	default:
		a.retryable = a.status == http.StatusRequestTimeout || a.status == http.StatusConflict ||
			a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError
	}
	a.opaque = a.packed != "" && a.packed != "identity" && a.packed != "gzip"
	return a
}

// write takes the next bytes of the body. Done and full say afterwards that no more come.
func (a *answer) write(p []byte) {
	a.seen += int64(len(p))
	switch {
	case a.opaque:
	case a.stream && a.packed != "gzip":
		a.lines.write(p, a.facts.read)
	case len(a.kept)+len(p) > maxAnswer:
		a.opaque, a.kept = true, nil
	default:
		a.kept = append(a.kept, p...)
	}
	a.full = a.seen == a.length
}

// finish reads what has been kept.
func (a *answer) finish() {
	if a.packed == "gzip" && !a.opaque {
		kept := a.kept
		a.packed, a.kept, a.length = "", nil, -1
		if z, err := gzip.NewReader(bytes.NewReader(kept)); err == nil {
			_, _ = io.Copy(writer{a}, io.LimitReader(z, maxInflated)) // as far as it came
		}
	}
	if a.stream {
		a.lines.write([]byte("\n\n"), a.facts.read)
	} else {
		a.whole = json.Valid(a.kept)
		a.facts.read(a.kept)
		first := json.NewDecoder(bytes.NewReader(a.kept)) // lines of JSON have more than one
		a.broken = a.json && first.Decode(new(json.RawMessage)) != nil
	}
	a.kept, a.lines = nil, events{}
}

type writer struct{ a *answer }

func (w writer) Write(p []byte) (int, error) {
	w.a.write(p)
	return len(p), nil
}

// failure returns why the call has failed that ended for a reason, or nil if it has not.
func (a *answer) failure(reason error) error {
	said := a.fault.text()
	switch {
	case a.status >= http.StatusMultipleChoices:
		if said == "" {
			said = strings.TrimSpace(fmt.Sprintf("status %d %s", a.status, http.StatusText(a.status)))
		}
		return &agentevents.ToolError{Code: strconv.Itoa(a.status), Retryable: agentevents.Some(a.retryable), Err: errors.New(said)}
	case said != "":
		return &agentevents.ToolError{Code: a.fault.code(), Err: errors.New(said)}
	case a.done:
		return nil
	case reason != io.EOF && reason != errClosed:
		return withoutURL(reason)
	case a.whole, a.opaque, len(a.reasons()) > 0:
		return nil
	case reason == errClosed:
		return &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: reason}
	case a.stream && a.known:
		return &agentevents.ToolError{Code: "incomplete", Err: errors.New("the stream ended before the answer did")}
	case a.broken:
		return &agentevents.ToolError{Code: "incomplete", Err: errors.New("the answer is no JSON, or ends within it")}
	}
	return nil
}

// returned returns what is known of the answer.
func (a *answer) returned() *agentevents.ModelReturned {
	return &agentevents.ModelReturned{
		Model: clean(a.model), FinishReasons: a.reasons(), Usage: a.usage.count(),
		RequestID: clean(a.requestID), ResponseID: clean(a.id),
	}
}

// clean returns a name or id as an event may carry it.
func clean(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 256)], "")
}

// facts are what the documents of an answer say: one that is no stream is one document, and
// of a stream each event is one. All formats are read alike, since they do not use a name for
// two things.
type facts struct {
	model, id string
	finish    []string // by choice
	usage     usage
	fault     fault
	known     bool // the format of the stream, which has an end
	piece     bool // the model has begun to answer
	done      bool
}

// A document has the members of all formats that matter.
type document struct {
	Type       string          `json:"type"`
	Object     string          `json:"object"`
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	StopReason string          `json:"stop_reason"`
	Usage      *usage          `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Message    json.RawMessage `json:"message"`  // a document in messages, a text in errors
	Response   json.RawMessage `json:"response"` // a document
	Delta      struct {
		StopReason string `json:"stop_reason"`
	} `json:"delta"` // a text in responses
	Groq struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
	Choices []struct {
		Index        int             `json:"index"`
		FinishReason string          `json:"finish_reason"`
		Text         string          `json:"text"`
		Error        json.RawMessage `json:"error"` // of OpenRouter
		Delta        struct {
			Content          string            `json:"content"`
			Reasoning        string            `json:"reasoning"`
			ReasoningContent string            `json:"reasoning_content"`
			Refusal          string            `json:"refusal"`
			ToolCalls        []json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// lasts are the types of the last events of a stream.
var lasts = map[string]bool{
	"message_stop": true, "error": true,
	"response.completed": true, "response.failed": true, "response.incomplete": true, "response.cancelled": true,
}

// read takes a document. One that is no JSON says nothing.
func (f *facts) read(text []byte) {
	if string(bytes.TrimSpace(text)) == "[DONE]" {
		f.done = true
		return
	}
	f.document(text, true)
}

func (f *facts) document(text []byte, outer bool) {
	d := document{Usage: &f.usage} // so that later figures replace earlier ones, each by itself
	d.Groq.Usage = &f.usage
	_ = json.Unmarshal(text, &d) // a member of another type is left out
	if d.Model != "" {
		f.model = d.Model
	}
	if d.ID != "" {
		f.id = d.ID
	}
	f.stop(0, d.StopReason)
	f.stop(0, d.Delta.StopReason)
	if d.Object == "response" {
		switch d.Status {
		case "completed", "incomplete":
			f.stop(0, d.Status)
			f.stop(0, d.Incomplete.Reason)
		}
	}
	for _, c := range d.Choices {
		f.stop(c.Index, c.FinishReason)
		if text := string(c.Error); text != "" && text != "null" {
			d.Error = c.Error
		}
		t := c.Delta
		f.piece = f.piece || c.Text+t.Content+t.Reasoning+t.ReasoningContent+t.Refusal != "" || len(t.ToolCalls) > 0
	}
	if d.Type == "content_block_delta" || strings.HasSuffix(d.Type, ".delta") {
		f.piece = true
	}
	f.known = f.known || d.Choices != nil || d.Type == "message_start" || strings.HasPrefix(d.Type, "response.")
	if len(d.Error) > 0 && string(d.Error) != "null" {
		f.fault.read(d.Error)
	} else if d.Type == "error" { // of responses; the type says nothing of the fault
		f.fault.read(text)
		f.fault.Type = ""
	}
	failed := d.Type == "error" || d.Object == "response" && (d.Status == "failed" || d.Status == "cancelled")
	if failed && f.fault.text() == "" {
		f.fault.Type = cmp.Or(d.Status, "error")
	}
	if !outer {
		return
	}
	for _, inner := range []json.RawMessage{d.Message, d.Response} {
		if len(inner) > 0 && inner[0] == '{' {
			f.document(inner, false)
		}
	}
	f.done = f.done || lasts[d.Type]
}

// stop takes why a choice has stopped.
func (f *facts) stop(choice int, reason string) {
	if reason == "" || choice < 0 || choice >= maxChoices {
		return
	}
	for len(f.finish) <= choice {
		f.finish = append(f.finish, "")
	}
	f.finish[choice] = clean(reason)
}

func (f *facts) reasons() (out []string) {
	for _, r := range f.finish {
		if r != "" {
			out = append(out, r)
		}
	}
	return out
}

// A fault is an error as the providers tell it.
type fault struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a text, a number or null
	Message string          `json:"message"`
}

func (f *fault) read(text []byte) {
	if json.Unmarshal(text, &f.Message) == nil { // some servers send a text
		return
	}
	_ = json.Unmarshal(text, f)
	if f.text() == "" {
		f.Type = "error"
	}
}

// code returns the word for programs.
func (f *fault) code() string {
	if f.Type != "" {
		return clean(f.Type)
	}
	return clean(f.word())
}

// word returns the code as the provider has it.
func (f *fault) word() string {
	word := strings.Trim(string(f.Code), `"`)
	if word == "null" {
		return ""
	}
	return word
}

// text returns the text for people, and nothing when there is no fault.
func (f *fault) text() string {
	if f.Message != "" && f.code() != "" {
		return f.code() + ": " + f.Message
	}
	return f.code() + f.Message
}

// usage has the figures of all formats.
type usage struct {
	Input      figure `json:"input_tokens"`      // messages, responses
	Output     figure `json:"output_tokens"`     // messages, responses
	Prompt     figure `json:"prompt_tokens"`     // chat completions
	Completion figure `json:"completion_tokens"` // chat completions
	Total      figure `json:"total_tokens"`
	CacheWrite figure `json:"cache_creation_input_tokens"` // messages
	CacheRead  figure `json:"cache_read_input_tokens"`     // messages
	CacheHit   figure `json:"prompt_cache_hit_tokens"`     // DeepSeek
	In         detail `json:"input_tokens_details"`        // responses
	Out        detail `json:"output_tokens_details"`       // messages, responses
	PromptPart detail `json:"prompt_tokens_details"`       // chat completions
	OutPart    detail `json:"completion_tokens_details"`   // chat completions
}

type detail struct {
	Cached    figure `json:"cached_tokens"`
	Written   figure `json:"cache_write_tokens"`
	Reasoning figure `json:"reasoning_tokens"`
	Thinking  figure `json:"thinking_tokens"` // messages
}

// count returns the figures as [agentevents.Usage] has them: the input without what caches
// were used for, the output with the reasoning. There is none without an input and an output.
func (u *usage) count() (out agentevents.Opt[agentevents.Usage]) {
	n := agentevents.Usage{
		TotalTokens:              first(u.Total),
		CacheCreationInputTokens: first(u.CacheWrite, u.In.Written, u.PromptPart.Written),
		CacheReadInputTokens:     first(u.CacheRead, u.In.Cached, u.PromptPart.Cached, u.CacheHit),
		ReasoningOutputTokens:    first(u.Out.Reasoning, u.Out.Thinking, u.OutPart.Reasoning),
	}
	in, output, total := first(u.Input, u.Prompt), first(u.Output, u.Completion), n.TotalTokens
	if !output.OK && total.OK {
		output = agentevents.Some(total.V - in.V) // embeddings
	}
	if !in.OK || !output.OK {
		return out
	}
	n.InputTokens, n.OutputTokens = in.V, output.V
	if reasoning := n.ReasoningOutputTokens.V; total.OK && total.V-in.V-output.V == reasoning {
		n.OutputTokens += reasoning // some leave it out, but count it in the total
	}
	cached := n.CacheCreationInputTokens.V + n.CacheReadInputTokens.V
	if within := u.Prompt.OK || u.In.Cached.OK || u.In.Written.OK; within && cached <= n.InputTokens {
		n.InputTokens -= cached
	}
	for _, v := range []int64{n.InputTokens, n.OutputTokens, total.V, n.CacheCreationInputTokens.V, n.CacheReadInputTokens.V, n.ReasoningOutputTokens.V} {
		if v < 0 {
			return out // nonsense
		}
	}
	return agentevents.Some(n)
}

// A figure is a number, if there is one. What is no number, and null, leaves it as it is.
type figure agentevents.Opt[int64]

func (n *figure) UnmarshalJSON(text []byte) error {
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*n = figure{V: v, OK: true}
	}
	return nil
}

// first returns the first figure that is there.
func first(figures ...figure) (out agentevents.Opt[int64]) {
	for _, n := range figures {
		if n.OK {
			return agentevents.Opt[int64](n)
		}
	}
	return out
}

// events splits a stream of server-sent events into the data of each. The data of an event
// that is too long is left out.
type events struct {
	line, data []byte // the line that has begun, the data of the event so far
	begun      bool   // the line is not empty
	long       bool   // the event is too long
	cr         bool   // the last byte was a carriage return
}

// write takes the next bytes, cut anywhere.
func (e *events) write(p []byte, event func([]byte)) {
	for len(p) > 0 {
		if e.cr && p[0] == '\n' {
			e.cr, p = false, p[1:]
			continue
		}
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			e.cr = false
			e.keep(p)
			return
		}
		e.keep(p[:i])
		e.cr = p[i] == '\r'
		p = p[i+1:]
		e.endLine(event)
	}
}

// keep keeps a piece of a line.
func (e *events) keep(p []byte) {
	e.begun = e.begun || len(p) > 0
	e.long = e.long || len(e.line)+len(e.data)+len(p) > maxAnswer
	if e.long {
		e.line, e.data = nil, nil
		return
	}
	e.line = append(e.line, p...)
}

// endLine takes the line. An empty one ends the event.
func (e *events) endLine(event func([]byte)) {
	if !e.begun {
		if len(e.data) > 0 {
			event(e.data)
		}
		e.data, e.long = e.data[:0], false
	} else if data, ok := bytes.CutPrefix(e.line, []byte("data:")); ok {
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, bytes.TrimPrefix(data, []byte(" "))...)
	}
	e.line, e.begun = e.line[:0], false
}
