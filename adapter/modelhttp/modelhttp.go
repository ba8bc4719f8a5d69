// Package modelhttp records the model calls that a program makes by HTTP: [Recorder].Middleware
// is a middleware of the Go SDKs of OpenAI and Anthropic, and [Recorder].Transport a
// RoundTripper for every other client.
//
//	rec := new(modelhttp.Recorder)
//	client := openai.NewClient(option.WithMiddleware(rec.Middleware))
//	…
//	ctx = agentevents.ContextWithAgent(ctx, agent)
//	answer, err := client.Chat.Completions.New(ctx, params)
//
// The agent of the request's context makes the call. A request without an agent is not
// recorded. Recorded are the model, usage, finish reasons, ids, the time to the
// first token of a stream, attempts, and how the call failed. The formats, each streamed or not:
//
//	provider   API                             answer
//	Anthropic  messages                        JSON, server-sent events
//	OpenAI     chat completions, responses     JSON, server-sent events
//	Gemini     generateContent                 JSON, server-sent events, an array of JSON
//	Ollama     /api/chat, /api/generate        JSON, lines of JSON
//	Bedrock    converse                        JSON, frames of AWS's event stream
//	Bedrock    invoke, with a body of Claude   JSON, frames of AWS's event stream
//
// A call in another format has no usage. The answer itself shows its format, so a gateway may serve
// any of them. The texts of request and answer are not recorded: the program has them, and records
// them with [agentevents.TextCompleted] and its like, and tools are recorded by themselves.
package modelhttp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
)

const (
	maxRequest = 16 << 20 // bytes; the model of a longer request is not known before the answer
	maxFailed  = 64       // attempts that are remembered
)

// A Recorder records model calls. The zero Recorder is usable. One serves all clients of a
// program, and all methods may be called concurrently. A Recorder must not be copied.
//
// A recorder passes everything on unchanged: the bytes of request and answer, errors and panics. It
// reads along as the client reads, and not more. The client waits for the emitter alone, when the
// call and its return are recorded; a sink that is slow belongs into [agentevents.Buffered]. Errors
// of recording go to EmitterOptions.OnViolation and OnError, and EmitterOptions.Guard does not stop
// a request.
//
// A request is a model call when it is a POST whose JSON names a model, or when its path names such
// an operation. If the context carries a model call that is open
// ([agentevents.ContextWithModelCall]), the facts of the answer are noted on that call, and nothing
// else is recorded. The context of the request that is sent carries the call, so that two recorders
// in a row record it once.
//
// The call ends with the last event of a stream, or with the body. A body that the client closes
// before that has failed with code "cancelled", and its usage is the usage reported so far. An
// answer that comes after the end of its context is given up by the client, and has failed so, too.
// A body that the client neither reads to its end nor closes leaves the call open. Of an error of
// the provider are recorded the status as code ("429") and its message, which [agentevents.Policy]
// redacts. Of the headers the provider's id of the request and the sort of its error are recorded,
// and of the URL the provider, and the model if the body names none. A frame that is broken changes
// nothing for the client; the call has failed with code "incomplete".
//
// The SDKs of OpenAI, Anthropic and AWS send every attempt through the recorder, with its number in
// the header X-Stainless-Retry-Count or Amz-Sdk-Request: an attempt names the one before it, which
// had the same body. The attempts of clients without these headers are calls of their own.
type Recorder struct {
	mu     sync.Mutex
	failed []attempt // newest last
}

// An attempt failed, and may be tried again.
type attempt struct {
	request request
	call    *agentevents.ModelCall
}

// A request identifies the attempts of one call, with the number of the attempt from 0.
type request struct {
	run, agent, url string
	body            uint64 // hash
	number          int
}

// Middleware sends a request on to next and records the model call. It has the type
// option.Middleware of both SDKs.
func (m *Recorder) Middleware(r *http.Request,
	next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	x, sent := m.start(r)
	if x == nil {
		return next(sent)
	}
	returned := false
	defer func() {
		if !returned {
			x.end(errors.New("the client panicked or ended its goroutine"))
		}
	}()
	resp, err := next(sent)
	returned = true
	if resp != nil && resp.Request == sent {
		resp.Request = r
	}
	x.answered(resp, err)
	return resp, err
}

// Transport returns a RoundTripper that records the calls through next. A nil next is
// [http.DefaultTransport].
func (m *Recorder) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{m, next}
}

type transport struct {
	m    *Recorder
	next http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.m.Middleware(r, t.next.RoundTrip)
}

// CloseIdleConnections is called by http.Client.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// quietly runs a function that records: the client must not notice a panic there.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

// start records that a model is called. It returns nil for a request that is not recorded, and the
// request to send.
func (m *Recorder) start(r *http.Request) (x *exchange, sent *http.Request) {
	sent = r
	quietly(func() {
		agent := agentevents.AgentFromContext(r.Context())
		op := operationOf(r.URL.Path)
		if m == nil || agent == nil || r.Method != http.MethodPost || op.none {
			return
		}
		var body []byte
		body, sent = peek(r, op)
		var asked struct {
			Model  string `json:"model"`
			Stream bool   `json:"stream"`
		}
		asked.Stream = op.streams
		_ = json.Unmarshal(body, &asked)
		if asked.Model == "" && !op.sure && (body != nil || !op.known) {
			return
		}
		if op.sure && asked.Model == "" {
			asked.Model = op.model(r.URL.Path)
		}
		call := &exchange{m: m, ctx: r.Context(), call: agentevents.ModelCallFromContext(r.Context())}
		if !call.call.Open() {
			call.own = true
			call.request = request{
				run: agent.Run().ID(), agent: agent.ID(), url: r.URL.String(), body: maphash.Bytes(seed, body),
			}
			call.request.number = attemptOf(r.Header)
			p := &agentevents.ModelCalled{Provider: providerOf(r.URL.Hostname()), Model: clean(asked.Model), Operation: op.name}
			if asked.Stream {
				p.Attributes = `{"stream":true}`
			}
			call.call = m.called(call.ctx, agent, p, call.request)
		} else {
			call.provider = providerOf(r.URL.Hostname())
		}
		if call.call.Recorded() {
			x, sent = call, sent.WithContext(agentevents.ContextWithModelCall(call.ctx, call.call))
		}
	})
	return x, sent
}

var seed = maphash.MakeSeed()

// attemptOf returns the number of an attempt from 0, if a header has it.
func attemptOf(h http.Header) int {
	if n, err := strconv.Atoi(h.Get("X-Stainless-Retry-Count")); err == nil {
		return n
	}
	for part := range strings.SplitSeq(h.Get("Amz-Sdk-Request"), ";") { // attempt=2; max=3
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "attempt="); ok {
			n, _ := strconv.Atoi(text)
			return max(0, n-1)
		}
	}
	return 0
}

// called records the call, as one more attempt if the request is one.
func (m *Recorder) called(ctx context.Context, a *agentevents.Agent,
	p *agentevents.ModelCalled, r request) *agentevents.ModelCall {
	if r.number > 0 {
		p.Attempt = agentevents.Some(r.number + 1)
		r.number--
		m.mu.Lock()
		for i, f := range slices.Backward(m.failed) {
			if f.request == r {
				p.RetryOf = f.call.ID
				m.failed = slices.Delete(m.failed, i, i+1)
				break
			}
		}
		m.mu.Unlock()
	}
	call, _ := a.Model(ctx, p)
	return call
}

// remember keeps an attempt that has failed.
func (m *Recorder) remember(f attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failed) == maxFailed {
		m.failed = slices.Delete(m.failed, 0, 1)
	}
	m.failed = append(m.failed, f)
}

// peek returns the JSON that is sent, and a request with a body that has it still. It returns
// no JSON and the request itself when there is none, or too much. A known path without a
// type in the header takes JSON.
func peek(r *http.Request, op operation) ([]byte, *http.Request) {
	json := isJSON(r.Header) || op.known && mediaType(r.Header) == ""
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > maxRequest || !json {
		return nil, r
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err}
	}
	sent := r.WithContext(r.Context())
	sent.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), rest), r.Body}
	return text, sent
}

// failing fails as the body did.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func isJSON(h http.Header) bool {
	t := mediaType(h)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

func mediaType(h http.Header) string {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t
}

// An exchange is one request and its answer.
type exchange struct {
	m        *Recorder
	ctx      context.Context // of the request
	call     *agentevents.ModelCall
	own      bool // the recorder has opened the call, and returns it
	request  request
	provider string // for who has opened the call

	mu     sync.Mutex // a client may close while it reads
	ended  bool
	heard  bool
	answer answer
}

// answered takes the response or error that the client got.
func (x *exchange) answered(resp *http.Response, err error) {
	if err != nil || resp == nil {
		err = cmp.Or(withoutURL(err), errors.New("the client has no answer"))
		if err == io.EOF { // it is not the end of an answer
			err = io.ErrUnexpectedEOF
		}
		x.end(err)
		return
	}
	quietly(func() { x.answer = answerOf(resp) })
	if resp.Body == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		x.end(io.EOF)
		return
	}
	resp.Body = &body{resp.Body, x}
	if err := x.ctx.Err(); err != nil { // the SDKs give up the answer, and do not close it
		x.end(err)
	}
}

// A body hands the bytes of the answer to the client, and to the exchange.
type body struct {
	from io.ReadCloser
	x    *exchange
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	quietly(func() { b.x.read(p[:n]) })
	if err != nil {
		b.x.end(err)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.from.Close()
	b.x.end(errClosed)
	return err
}

// errClosed is how an exchange ends whose body the client has closed.
var errClosed = errors.New("the client closed the answer before its end")

// read takes the next bytes of the answer.
func (x *exchange) read(p []byte) {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return
	}
	quietly(func() { x.answer.write(p) })
	first := x.answer.piece && !x.heard
	x.heard = x.answer.piece
	done := x.answer.done || x.answer.full
	x.mu.Unlock()
	if first {
		_ = x.call.Piece(x.ctx)
	}
	if done {
		x.end(io.EOF)
	}
}

// end records how the exchange ended, once. The reason is io.EOF, errClosed or an error of
// the client.
func (x *exchange) end(reason error) {
	x.mu.Lock()
	ended := x.ended
	x.ended = true
	x.mu.Unlock()
	if ended {
		return
	}
	quietly(func() { // nobody else has the answer any more
		var failure error
		if reason != io.EOF {
			failure = withoutURL(reason)
		}
		quietly(func() { // an answer that cannot be read is one of which nothing is known
			x.answer.finish()
			failure = x.answer.failure(reason)
			said := x.answer.returned()
			said.Provider = x.provider
			if told := (*agentevents.ToolError)(nil); errors.As(failure, &told) && !x.own {
				said.Error = agentevents.Some(agentevents.ErrorInfo{
					Code: told.Code, Message: told.Error(), Retryable: told.Retryable,
				})
			}
			_ = x.call.Note(x.ctx, said)
		})
		switch {
		case !x.own:
		case failure == nil:
			_ = x.call.Return(x.ctx, nil)
		default:
			x.m.remember(attempt{x.request, x.call})
			_ = x.call.Fail(x.ctx, failure)
		}
	})
}

// withoutURL returns the cause of an error of net/http: a URL may hold a key.
func withoutURL(err error) error {
	for {
		var u *url.Error
		if !errors.As(err, &u) || u.Err == nil {
			return err
		}
		err = u.Err
	}
}

// An operation is the request that a path names.
type operation struct {
	suffix  string
	name    string
	known   bool // a model call, unless the body contradicts
	sure    bool // a model call, whatever the body has: the path names the model
	none    bool // no model call, although the body names a model
	streams bool // the answer is a stream, unless the body contradicts
}

// operations are the paths, the more special ones first.
var operations = []operation{
	{suffix: "/count_tokens", none: true},
	{suffix: "/input_tokens", none: true},
	{suffix: "/fine_tuning/jobs", none: true},
	{suffix: "/assistants", none: true},
	{suffix: "/realtime/client_secrets", none: true},
	{suffix: "/chat/completions", name: "chat", known: true},
	{suffix: "/messages", name: "chat", known: true},
	{suffix: "/responses", name: "chat", known: true},
	{suffix: "/completions", name: "text_completion", known: true},
	{suffix: "/embeddings", name: "embeddings", known: true},
	// Vertex
	{suffix: ":rawPredict", name: "chat", sure: true},
	{suffix: ":streamRawPredict", name: "chat", sure: true, streams: true},
	// Bedrock
	{suffix: "/invoke", name: "chat", sure: true},
	{suffix: "/invoke-with-response-stream", name: "chat", sure: true, streams: true},
	{suffix: "/converse", name: "chat", sure: true},
	{suffix: "/converse-stream", name: "chat", sure: true, streams: true},
	// Gemini
	{suffix: ":generateContent", name: "generate_content", sure: true},
	{suffix: ":streamGenerateContent", name: "generate_content", sure: true, streams: true},
	{suffix: ":embedContent", name: "embeddings", sure: true},
	{suffix: ":batchEmbedContents", name: "embeddings", sure: true},
	{suffix: ":countTokens", none: true},
	{suffix: ":computeTokens", none: true},
	{suffix: "/cachedContents", none: true},
	// Ollama
	{suffix: "/api/chat", name: "chat", known: true, streams: true},
	{suffix: "/api/generate", name: "text_completion", known: true, streams: true},
	{suffix: "/api/embed", name: "embeddings", known: true},
	{suffix: "/api/show", none: true},
	{suffix: "/api/create", none: true},
	{suffix: "/api/pull", none: true},
	{suffix: "/api/push", none: true},
}

// model returns the model that a path names.
func (op operation) model(urlPath string) string {
	rest := strings.TrimSuffix(strings.TrimRight(urlPath, "/"), op.suffix)
	if _, id, ok := strings.Cut(rest, "/model/"); ok {
		return id // of Bedrock: an ARN has slashes
	}
	return path.Base(rest)
}

// operationOf returns the operation that a path names. An unknown one has the name of its last
// segment.
func operationOf(path string) operation {
	path = strings.TrimRight(path, "/")
	for _, op := range operations {
		if strings.HasSuffix(path, op.suffix) {
			return op
		}
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	if strings.Trim(last, "abcdefghijklmnopqrstuvwxyz_") != "" {
		last = ""
	}
	return operation{name: last}
}

// providers are known by their hosts. The words are OpenTelemetry's.
var providers = []struct{ host, name string }{
	{"anthropic.com", "anthropic"},
	{"openai.com", "openai"},
	{"openai.azure.com", "azure.ai.openai"},
	{"services.ai.azure.com", "azure.ai.inference"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"googleapis.com", "gcp.vertex_ai"},
	{"amazonaws.com", "aws.bedrock"},
	{"cohere.com", "cohere"},
	{"deepseek.com", "deepseek"},
	{"groq.com", "groq"},
	{"mistral.ai", "mistral_ai"},
	{"perplexity.ai", "perplexity"},
	{"x.ai", "x_ai"},
}

// providerOf returns who serves the model, or nothing when the host does not tell.
func providerOf(host string) string {
	for _, p := range providers {
		if sub, ok := strings.CutSuffix(host, p.host); ok && (sub == "" || strings.HasSuffix(sub, ".")) {
			return p.name
		}
	}
	return ""
}
