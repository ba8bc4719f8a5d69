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
	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
)

const (
	maxAnswer   = 8 << 20  // bytes of a document, or of a packed answer, that are kept; a longer one is not read
	maxInflated = 64 << 20 // bytes that a compressed answer is read to
	maxChoices  = 128
)

// An answer reads along the body of a server's response.
type answer struct {
	status    int
	retryable bool
	requestID string
	length    int64 // of the body; -1 when it is not known
	seen      int64
	packed    string // the encoding of the content
	opaque    bool   // too long, or of an unknown encoding: the end cannot be told
	full      bool   // all bytes are here
	json      bool   // by the header

	kept    []byte  // of a body that is packed
	framing framing // of a body that is not packed
	facts
}

// A framing splits a body into documents.
type framing interface {
	write(p []byte, f *facts) // takes the next bytes, cut anywhere
	end(f *facts)             // follows the last bytes
}

// framings split the bodies of these types. A body of any other type has values of JSON.
var framings = map[string]func() framing{
	"text/event-stream": func() framing { return new(events) },
	frames.MediaType:    func() framing { return &frameReader{frames.Reader{Most: maxAnswer}} },
}

// requestIDs are the headers with the provider's id of the request.
var requestIDs = []string{
	"request-id",       // Anthropic
	"x-request-id",     // OpenAI
	"x-amzn-requestid", // Bedrock
}

func answerOf(resp *http.Response) answer {
	h := resp.Header
	a := answer{
		status: resp.StatusCode,
		length: resp.ContentLength,
		packed: h.Get("Content-Encoding"),
		json:   isJSON(h),
	}
	for _, name := range requestIDs {
		a.requestID = cmp.Or(a.requestID, h.Get(name))
	}
	a.sort, _, _ = strings.Cut(h.Get("x-amzn-errortype"), ":") // a URL may follow
	if framing := framings[mediaType(h)]; framing != nil {
		a.framing, a.stream = framing(), true
	} else {
		a.framing = new(values)
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

// write takes the next bytes of the body. done and full report afterwards that no more come.
func (a *answer) write(p []byte) {
	a.seen += int64(len(p))
	switch {
	case a.opaque:
	case a.packed != "gzip":
		a.framing.write(p, &a.facts)
	case len(a.kept)+len(p) > maxAnswer:
		a.opaque, a.kept = true, nil
	default:
		a.kept = append(a.kept, p...)
	}
	a.full = a.seen == a.length
}

// finish reads the kept bytes.
func (a *answer) finish() {
	if a.packed == "gzip" && !a.opaque {
		kept := a.kept
		a.packed, a.kept, a.length = "", nil, -1
		if z, err := gzip.NewReader(bytes.NewReader(kept)); err == nil {
			_, _ = io.Copy(writer{a}, io.LimitReader(z, maxInflated)) // as far as it came
		}
	}
	a.framing.end(&a.facts)
	a.framing = nil
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
			said = (&fault{Type: a.sort, Message: a.message}).text() // of Bedrock
		}
		if said == "" {
			said = strings.TrimSpace(fmt.Sprintf("status %d %s", a.status, http.StatusText(a.status)))
		}
		return &agentevents.ToolError{
			Code: strconv.Itoa(a.status), Retryable: agentevents.Some(a.retryable), Err: errors.New(said),
		}
	case said != "":
		return &agentevents.ToolError{Code: a.fault.code(), Err: errors.New(said)}
	case a.torn != nil:
		return &agentevents.ToolError{Code: "incomplete", Err: a.torn}
	case a.done:
		return nil
	case reason != io.EOF && reason != errClosed:
		return withoutURL(reason)
	case a.whole && !a.more, a.opaque, len(a.reasons()) > 0:
		return nil
	case reason == errClosed:
		return &agentevents.ToolError{Status: agentevents.ToolStatusCancelled, Err: reason}
	case a.stream && a.known, a.more:
		return &agentevents.ToolError{Code: "incomplete", Err: errors.New("the stream ended before the answer did")}
	case a.json && a.broken:
		return &agentevents.ToolError{Code: "incomplete", Err: errors.New("the answer is invalid or truncated JSON")}
	}
	return nil
}

// returned returns the known facts of the answer.
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

// facts are taken from the documents of an answer: a response without a stream is one document, and
// each event of a stream is one. All formats are read alike, since they do not use a name for two
// things.
type facts struct {
	stream bool  // the body has a document for each piece
	whole  bool  // the body is one value of JSON, up to its end
	broken bool  // the body is not JSON, or only its beginning
	torn   error // a frame could not be read

	model, id string
	finish    []string // by choice
	usage     usage
	fault     fault
	sort      string // of the error, from a header
	message   string // a text that is an error if the status is one
	known     bool   // the format of the stream, which has an end
	piece     bool   // the model has begun to answer
	more      bool   // the last document has said that another follows
	done      bool
}

// A document has the members of all formats that matter.
type document struct {
	Type       string          `json:"type"`
	Object     string          `json:"object"`
	ID         string          `json:"id"`
	ResponseID string          `json:"responseId"` // Gemini
	Model      string          `json:"model"`
	Version    string          `json:"modelVersion"` // Gemini
	Status     string          `json:"status"`
	StopReason string          `json:"stop_reason"`
	Stopped    string          `json:"stopReason"`  // Bedrock
	DoneReason string          `json:"done_reason"` // Ollama
	Done       *bool           `json:"done"`        // Ollama
	Usage      *usage          `json:"usage"`
	Metadata   *usage          `json:"usageMetadata"`     // Gemini
	Prompt     *figure         `json:"prompt_eval_count"` // Ollama
	Eval       *figure         `json:"eval_count"`        // Ollama
	Error      json.RawMessage `json:"error"`
	Message    json.RawMessage `json:"message"`  // a document in messages, a text in errors, the answer of Ollama's model
	Response   json.RawMessage `json:"response"` // a document, or a text of Ollama's model
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
	Candidates []struct {
		Index        int    `json:"index"`
		FinishReason string `json:"finishReason"`
		Content      struct {
			Parts []struct {
				Text *string `json:"text"` // or the part is something else
			} `json:"parts"`
		} `json:"content"`
	} `json:"candidates"` // Gemini
	Feedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"` // Gemini
	Trace struct {
		Router struct {
			Model string `json:"invokedModelId"`
		} `json:"promptRouter"`
	} `json:"trace"` // Bedrock
	Metrics struct {
		Input  *figure `json:"inputTokenCount"`
		Output *figure `json:"outputTokenCount"`
	} `json:"amazon-bedrock-invocationMetrics"` // of a model of any maker
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// begun reports whether this document of a stream has a piece of the answer.
func (d *document) begun() bool {
	for _, c := range d.Choices {
		t := c.Delta
		if c.Text+t.Content+t.Reasoning+t.ReasoningContent+t.Refusal != "" || len(t.ToolCalls) > 0 {
			return true
		}
	}
	for _, c := range d.Candidates {
		for _, p := range c.Content.Parts {
			if p.Text == nil || *p.Text != "" {
				return true
			}
		}
	}
	if d.Done != nil {
		return ollamaSays(d.Response) || ollamaSays(d.Message)
	}
	return pieces[d.Type] || strings.HasSuffix(d.Type, ".delta")
}

// ollamaSays reports whether a message or a response of Ollama has content.
func ollamaSays(said json.RawMessage) bool {
	var text string
	var message struct {
		Content   string            `json:"content"`
		Thinking  string            `json:"thinking"`
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	_, _ = json.Unmarshal(said, &text), json.Unmarshal(said, &message) // it is one of them
	return text+message.Content+message.Thinking != "" || len(message.ToolCalls) > 0
}

var (
	// firsts are the types of the first events of a stream that has a last one.
	firsts = map[string]bool{"message_start": true, "messageStart": true}
	// pieces are the types of the events with a piece of the answer.
	pieces = map[string]bool{"content_block_delta": true, "contentBlockDelta": true}
	// lasts are the types of the last events of a stream.
	lasts = map[string]bool{
		"message_stop": true, "error": true, "metadata": true,
		"response.completed": true, "response.failed": true, "response.incomplete": true, "response.cancelled": true,
	}
)

// read takes a document. It ignores one that is not JSON. The sort is its type, if the framing
// has it.
func (f *facts) read(text []byte, sort string) {
	if string(bytes.TrimSpace(text)) == "[DONE]" {
		f.done = true
		return
	}
	f.document(text, sort, true)
}

func (f *facts) document(text []byte, sort string, outer bool) {
	u := &f.usage
	// so that later figures replace earlier ones, each by itself
	d := document{Usage: u, Metadata: u, Prompt: &u.PromptEval, Eval: &u.Eval}
	d.Groq.Usage, d.Metrics.Input, d.Metrics.Output = u, &u.MetricsIn, &u.MetricsOut
	_ = json.Unmarshal(text, &d) // a member of another type is left out
	d.Type = cmp.Or(d.Type, sort)
	f.model = cmp.Or(d.Model, d.Version, d.Trace.Router.Model, f.model)
	f.id = cmp.Or(d.ID, d.ResponseID, f.id)
	for _, reason := range []string{d.StopReason, d.Delta.StopReason, d.Stopped, d.DoneReason, d.Feedback.BlockReason} {
		f.stop(0, reason)
	}
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
	}
	for _, c := range d.Candidates {
		f.stop(c.Index, c.FinishReason)
	}
	if d.Done != nil {
		f.more = !*d.Done
		f.done = f.done || *d.Done
	}
	f.piece = f.piece || (f.stream || f.more) && d.begun()
	f.known = f.known || d.Choices != nil || d.Candidates != nil ||
		firsts[d.Type] || strings.HasPrefix(d.Type, "response.")
	if len(d.Error) > 0 && string(d.Error) != "null" {
		f.fault.read(d.Error)
	} else if d.Type == "error" { // of responses; the type does not describe the fault
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
	if len(d.Message) > 0 && d.Message[0] == '"' {
		_ = json.Unmarshal(d.Message, &f.message)
	}
	for _, inner := range []json.RawMessage{d.Message, d.Response} {
		if len(inner) > 0 && inner[0] == '{' {
			f.document(inner, "", false)
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
	Status  string          `json:"status"` // of Gemini, beside a number
	Code    json.RawMessage `json:"code"`   // a text, a number or null
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
	return clean(cmp.Or(f.Type, f.Status, f.word()))
}

// word returns the code as the provider has it.
func (f *fault) word() string {
	word := strings.Trim(string(f.Code), `"`)
	if word == "null" {
		return ""
	}
	return word
}

// text returns the text for people, or "" without a fault.
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

	ConverseIn    figure `json:"inputTokens"`
	ConverseOut   figure `json:"outputTokens"`
	ConverseTotal figure `json:"totalTokens"`
	ConverseRead  figure `json:"cacheReadInputTokens"`
	ConverseWrite figure `json:"cacheWriteInputTokens"`

	GeminiIn       figure `json:"promptTokenCount"` // with the cached tokens
	GeminiTools    figure `json:"toolUsePromptTokenCount"`
	GeminiOut      figure `json:"candidatesTokenCount"` // without thoughts
	GeminiThoughts figure `json:"thoughtsTokenCount"`
	GeminiCached   figure `json:"cachedContentTokenCount"`
	GeminiTotal    figure `json:"totalTokenCount"`

	PromptEval, Eval      figure `json:"-"` // Ollama, which leaves out a zero
	MetricsIn, MetricsOut figure `json:"-"` // a stream of Bedrock's invoke
}

type detail struct {
	Cached    figure `json:"cached_tokens"`
	Written   figure `json:"cache_write_tokens"`
	Reasoning figure `json:"reasoning_tokens"`
	Thinking  figure `json:"thinking_tokens"` // messages
}

// count returns the figures as [agentevents.Usage] has them: the input without cached tokens, the
// output with the reasoning. It is absent without an input and an output.
func (u *usage) count() (out agentevents.Opt[agentevents.Usage]) {
	n := agentevents.Usage{
		TotalTokens:              first(u.Total, u.ConverseTotal, u.GeminiTotal),
		CacheCreationInputTokens: first(u.CacheWrite, u.In.Written, u.PromptPart.Written, u.ConverseWrite),
		CacheReadInputTokens: first(u.CacheRead, u.In.Cached,
			u.PromptPart.Cached, u.CacheHit, u.ConverseRead, u.GeminiCached),
		ReasoningOutputTokens: first(u.Out.Reasoning, u.Out.Thinking, u.OutPart.Reasoning, u.GeminiThoughts),
	}
	if u.PromptEval.OK || u.Eval.OK {
		u.PromptEval.OK, u.Eval.OK = true, true
	}
	in := first(u.Input, u.Prompt, u.ConverseIn, u.GeminiIn, u.PromptEval, u.MetricsIn)
	output := first(u.Output, u.Completion, u.ConverseOut, u.GeminiOut, u.Eval, u.MetricsOut)
	in.V += u.GeminiTools.V
	total := n.TotalTokens
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
	if within := u.Prompt.OK || u.GeminiIn.OK || u.In.Cached.OK || u.In.Written.OK; within && cached <= n.InputTokens {
		n.InputTokens -= cached
	}
	for _, v := range []int64{n.InputTokens, n.OutputTokens, total.V,
		n.CacheCreationInputTokens.V, n.CacheReadInputTokens.V, n.ReasoningOutputTokens.V} {
		if v < 0 {
			return out // nonsense
		}
	}
	return agentevents.Some(n)
}

// A figure is an optional number. A value that is not a number, and null, leave it unchanged.
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

func (e *events) write(p []byte, f *facts) {
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
		e.endLine(f)
	}
}

func (e *events) end(f *facts) { e.write([]byte("\n\n"), f) }

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
func (e *events) endLine(f *facts) {
	if !e.begun {
		if len(e.data) > 0 {
			f.read(e.data, "")
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

// values splits a body of JSON into its values: one, one after the other, or the elements of an
// array, which Gemini streams. A value that is too long is left out. Nothing is read after one that
// is not JSON.
type values struct {
	value   []byte // the one that has begun
	begun   bool   // there is one
	depth   int    // of brackets in it
	quoted  bool   // within a string
	escaped bool   // after a backslash
	long    bool   // the value is too long
	some    bool   // a value has been read
	array   bool   // the body is an array
	closed  bool   // and has ended
	several bool   // values follow each other
	bad     bool   // these bytes are not JSON
}

func (v *values) write(p []byte, f *facts) {
	from := 0
	for i, c := range p {
		switch {
		case v.bad:
			return
		case v.quoted:
			v.quoted = v.escaped || c != '"'
			v.escaped = !v.escaped && c == '\\'
			continue
		case c == '"':
			v.quoted, v.begun = true, true
			continue
		case c == '[' && !v.begun && !v.array && !v.some:
			v.array, f.stream, from = true, true, i+1
			continue
		case c == '{', c == '[':
			v.begun = true
			v.depth++
			continue
		case v.depth > 0:
			if c != '}' && c != ']' {
				continue
			}
			if v.depth--; v.depth > 0 {
				continue
			}
			v.keep(p[from : i+1])
			v.next(f)
		case strings.IndexByte(" \t\r\n,]", c) < 0:
			v.begun = true
			continue
		default: // a value that has no brackets ends here
			v.keep(p[from:i])
			v.next(f)
			v.bad = v.bad || c == ',' && !v.array || c == ']' && (!v.array || v.closed)
			v.closed = v.closed || c == ']'
		}
		from = i + 1
	}
	v.keep(p[from:])
}

// keep keeps a piece of a value.
func (v *values) keep(p []byte) {
	v.long = v.long || len(v.value)+len(p) > maxAnswer
	if v.long {
		v.value = nil
	} else if v.begun {
		v.value = append(v.value, p...)
	}
}

// next reads the value, if there is one.
func (v *values) next(f *facts) {
	if v.begun && !v.long {
		v.bad = !json.Valid(v.value)
		if !v.bad {
			f.read(v.value, "")
		}
	}
	if v.begun && !v.bad {
		v.several = v.several || v.closed || v.some && !v.array
		v.some = true
	}
	v.value, v.begun, v.long = v.value[:0], false, false
}

func (v *values) end(f *facts) {
	open := v.quoted || v.depth > 0
	if !open && !v.bad {
		v.next(f)
	}
	whole := v.some || v.array
	if v.array {
		whole = v.closed
	}
	f.whole = whole && !open && !v.bad && !v.several
	f.broken = !whole && !v.long
}

// frameReader reads the frames of a stream of Bedrock.
type frameReader struct{ frames.Reader }

func (r *frameReader) write(p []byte, f *facts) {
	if err := r.Write(p, f.frame); err != nil {
		f.torn = err
	}
}

func (r *frameReader) end(*facts) {}

// frame takes a frame. Its payload is a document, or has one of the model's own format.
func (f *facts) frame(frame frames.Frame) {
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	switch h := frame.Header; h[frames.MessageType] {
	case "exception":
		f.fault.read(frame.Payload)
		f.fault.Type = cmp.Or(h[frames.ExceptionType], "exception")
		f.done = true
	case "error":
		f.fault = fault{Type: cmp.Or(h[frames.ErrorCode], "error"), Message: strings.ToValidUTF8(h[frames.ErrorMessage], "")}
		f.done = true
	default:
		if h[frames.EventType] == "chunk" && json.Unmarshal(frame.Payload, &chunk) == nil {
			f.read(chunk.Bytes, "")
			return
		}
		f.read(frame.Payload, h[frames.EventType])
	}
}
