// Package cassette records the HTTP of a program's model calls once, and plays it in tests
// without a network.
//
//	var record = flag.Bool("record", false, "ask the models, and write down what they answer")
//
//	func TestWeather(t *testing.T) {
//		tape := cassette.Open(t, "testdata/weather.json", cassette.Options{Record: *record})
//		client := openai.NewClient(option.WithMiddleware(recorder.Middleware, tape.Middleware))
//		…
//	}
//
// A [Cassette] follows a recorder of package modelhttp, which records played answers in the same
// way as a provider's. It also serves any other client of HTTP.
//
// # Requests
//
// A request gets the answer of the first recorded call with the same method, path, query and body
// that is not played yet. So the second of two equal requests gets the second answer, as a retry
// must, and requests that differ may come in any order. Bodies of JSON are the same if their values
// are. Host and headers do not matter. A request without an answer is a [*MissError], which names
// the nearest recorded call and the differences.
//
// # Files
//
// A file is JSON, to be read and changed by people. Credentials are masked in URLs, bodies and
// errors by an [agentevents.Policy], and in the part of a path that follows the name of one, as in
// /token/x; one that a stream cuts in pieces is not found. Of the headers only the answer's type,
// the provider's id of the request and X-Should-Retry are kept. A stream is kept, and played, event
// by event, a stream of Bedrock frame by frame with new checksums, and other text line by line. An
// answer whose frames are broken cannot be recorded. Nothing waits: played answers come at once,
// and an error has Retry-After-Ms: 0.
package cassette

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/adapter/modelhttp/internal/frames"
	"github.com/agentevents/agentevents/internal/disk"
)

// Options configure a [Cassette]. The zero Options play the recorded calls.
type Options struct {
	// Record makes Open record. Usually it is the value of a flag of the test.
	Record bool
	// Policy masks recorded calls and requests; nil means the default policy.
	Policy *agentevents.Policy
	// Edit changes a request before it is masked, compared and written: it is for parts that differ
	// each time, such as the date in a prompt. The sent request is not changed. It is called
	// concurrently if requests are made so. Nil changes nothing.
	Edit func(*Request)
}

// A Call is a request and how it was answered.
type Call struct {
	Request Request `json:"request"` // the request
	Answer  Answer  `json:"answer"`  // the response
}

// A Request is an HTTP request without its headers.
type Request struct {
	Method string `json:"method"` // of HTTP
	URL    string `json:"url"`    // path and query
	Body
}

// An Answer is an HTTP response.
type Answer struct {
	Status int               `json:"status,omitzero"` // of HTTP; 0 if there was no answer at all
	Header map[string]string `json:"header,omitzero"` // those that are kept
	Body
	// Cut tells who ended the answer before its end: "closed" means that the client closed it, and
	// "cancelled" that the context of the request ended. Reading beyond it is an error in the first
	// case, and waits for the end of the context in the second.
	Cut string `json:"cut,omitzero"`
	// Error is the text of the error with which the request, or reading its answer, failed.
	Error string `json:"error,omitzero"`
}

// A Body is the body of a request or an answer. It has one of its fields at most.
type Body struct {
	JSON   json.RawMessage `json:"json,omitzero"`   // without white space
	Text   []string        `json:"text,omitzero"`   // in pieces
	Frames []Frame         `json:"frames,omitzero"` // of AWS's event stream
	Binary []byte          `json:"binary,omitzero"` // a body that is not text, unchanged
}

const (
	cutClosed    = "closed"
	cutCancelled = "cancelled"
)

// A Cassette records calls, or plays recorded ones. All methods may be called concurrently.
// A Cassette must not be copied.
type Cassette struct {
	o      Options
	record bool
	file   string // for errors

	mu     sync.Mutex
	calls  []*call // in the order in which they were asked
	misses []*MissError
}

type call struct {
	Call
	played bool
	failed error // it cannot be recorded
}

// Open returns the cassette of a file for a test, which plays the file. The test fails at its
// end for each request without an answer, and if calls were not made. With Options.Record the
// cassette records, and the file is written when the test ends, unless it failed.
func Open(t testing.TB, file string, o Options) *Cassette {
	t.Helper()
	if o.Record {
		c := New(o)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("cassette: %s is not written, as the test failed", file)
			} else if err := c.Save(file); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	c, err := Load(file, o)
	if err != nil {
		t.Fatalf("%v (Options.Record records it)", err)
	}
	t.Cleanup(func() {
		for _, miss := range c.Misses() {
			t.Error(miss)
		}
		if t.Failed() {
			return
		}
		for _, n := range c.Unused() {
			t.Errorf("cassette: %s: call %d was not made: %s", file, n, c.calls[n-1].Request.brief())
		}
	})
	return c
}

// New returns a cassette that records.
func New(o Options) *Cassette { return &Cassette{o: o, record: true} }

// Load returns a cassette that plays a file. Options.Record does not matter.
func Load(file string, o Options) (*Cassette, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cassette: %w", err)
	}
	var content struct{ Calls []*call }
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&content); err != nil {
		return nil, fmt.Errorf("cassette: %s: %w", file, err)
	}
	for i, call := range content.Calls {
		if call != nil {
			for n, frame := range slices.Concat(call.Request.Frames, call.Answer.Frames) {
				if _, err := frame.append(nil); err != nil {
					return nil, fmt.Errorf("cassette: %s: call %d, frame %d: %w", file, i+1, n+1, err)
				}
			}
		}
		if call == nil || call.Request.Method == "" ||
			call.Answer.Status == 0 && call.Answer.Error == "" && call.Answer.Cut == "" {
			return nil, fmt.Errorf("cassette: %s: call %d has no method, or neither status, error nor cut", file, i+1)
		}
	}
	return &Cassette{o: o, file: file, calls: content.Calls}, nil
}

// Save writes the calls so far to a file, which takes the place of one that is there,
// for its owner only, and creates its folder. It fails if a call cannot be recorded.
func (c *Cassette) Save(file string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var content struct {
		Calls []Call `json:"calls"`
	}
	content.Calls = []Call{}
	for i, call := range c.calls {
		masked := call.Call
		err := call.failed
		if err == nil {
			masked, err = c.masked(call.Call)
		}
		if err != nil {
			return fmt.Errorf("cassette: %s: call %d, %s: %w", file, i+1, call.Request.brief(), err)
		}
		content.Calls = append(content.Calls, masked)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(content); err != nil {
		return fmt.Errorf("cassette: %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("cassette: %w", err)
	}
	if err := disk.Replace(file, text.Bytes()); err != nil {
		return fmt.Errorf("cassette: %w", err)
	}
	return nil
}

// Unused returns the numbers of the recorded calls, from 1, that were not played.
func (c *Cassette) Unused() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unused []int
	for i, call := range c.calls {
		if !call.played && !c.record {
			unused = append(unused, i+1)
		}
	}
	return unused
}

// Misses returns the requests that had no answer, each once.
func (c *Cassette) Misses() []*MissError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*MissError(nil), c.misses...)
}

// Transport returns a RoundTripper for an http.Client, which records the calls through next, or
// plays. A nil next is [http.DefaultTransport].
func (c *Cassette) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{c, next}
}

type transport struct {
	c    *Cassette
	next http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.c.Middleware(r, t.next.RoundTrip)
}

// CloseIdleConnections is called by http.Client.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Middleware answers a request as recorded, or sends it on to next and records the answer. It has
// the type option.Middleware of the Go SDKs of OpenAI and Anthropic.
func (c *Cassette) Middleware(r *http.Request,
	next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	asked := Request{Method: cmp.Or(r.Method, http.MethodGet), URL: r.URL.RequestURI()}
	sent := r
	if r.Body != nil && r.Body != http.NoBody {
		text, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		asked.Body = bodyOf(text, "")
		sent = r.WithContext(r.Context())
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		sent.Body, _ = sent.GetBody()
	}
	if c.o.Edit != nil {
		c.o.Edit(&asked)
	}
	if !c.record {
		return c.play(r, asked)
	}
	call := &call{Call: Call{Request: asked, Answer: Answer{Cut: cutClosed}}}
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	resp, err := next(sent)
	if err != nil || resp == nil {
		c.answered(call, Answer{Error: "the client has no answer"}.failed(r.Context(), err), nil)
		return resp, err
	}
	if resp.Request == sent {
		resp.Request = r
	}
	whole := &recording{
		from: resp.Body, c: c, call: call, ctx: r.Context(),
		answer: Answer{Status: resp.StatusCode}, encoding: resp.Header.Get("Content-Encoding"),
	}
	for _, name := range kept {
		if value := resp.Header.Get(name); value != "" {
			if whole.answer.Header == nil {
				whole.answer.Header = map[string]string{}
			}
			whole.answer.Header[name] = value
		}
	}
	begun := whole.answer
	begun.Cut = cutClosed // unless more is read
	c.answered(call, begun, nil)
	resp.Body = whole
	return resp, nil
}

// failed returns the answer with the error that ended it.
func (a Answer) failed(ctx context.Context, err error) Answer {
	switch {
	case ctx.Err() != nil:
		a.Cut, a.Error = cutCancelled, ""
	case err != nil:
		a.Error = err.Error()
	}
	return a
}

func (c *Cassette) answered(call *call, a Answer, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.Answer, call.failed = a, failed
}

// A recording hands on the bytes of an answer, and keeps them.
type recording struct {
	from     io.ReadCloser
	c        *Cassette
	call     *call
	ctx      context.Context
	answer   Answer // as far as it is known
	encoding string

	mu    sync.Mutex // a client may close while it reads
	text  []byte
	ended bool
}

func (r *recording) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.mu.Lock()
	r.text = append(r.text, p[:n]...)
	r.mu.Unlock()
	switch err {
	case nil:
	case io.EOF:
		r.end("", nil)
	default:
		r.end("", err)
	}
	return n, err
}

func (r *recording) Close() error {
	err := r.from.Close()
	r.end(cutClosed, nil)
	return err
}

// kept are the headers of an answer that are recorded.
var kept = []string{"Content-Type", "Request-Id", "X-Request-Id",
	"X-Should-Retry", "X-Amzn-Requestid", "X-Amzn-Errortype"}

// end records the answer, once.
func (r *recording) end(cut string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	a := r.answer
	a.Cut = cut
	if cut != "" || err != nil {
		a = a.failed(r.ctx, err)
	}
	text, err := unpacked(r.text, r.encoding)
	if media, _, _ := mime.ParseMediaType(a.Header["Content-Type"]); media == frames.MediaType && err == nil {
		a.Frames, err = framesOf(text)
	} else {
		a.Body = bodyOf(text, a.Header["Content-Type"])
	}
	r.c.answered(r.call, a, err)
}

// unpacked returns the text of a body. Packed text would hide its credentials.
func unpacked(text []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return text, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		unpacked, err := io.ReadAll(z)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil // it is as long as the answer was
		}
		return unpacked, err
	}
	return nil, fmt.Errorf("the answer is encoded as %q, which cannot be masked", encoding)
}

// bodyOf returns a body of a type.
func bodyOf(text []byte, contentType string) Body {
	switch {
	case len(text) == 0:
		return Body{}
	case !utf8.Valid(text):
		return Body{Binary: text}
	case json.Valid(text):
		return Body{JSON: compact(text)}
	}
	return Body{Text: cut(string(text), contentType)}
}

// cut returns a text in pieces: events of a stream, or lines.
func cut(text, contentType string) []string {
	end := "\n"
	if strings.HasPrefix(contentType, "text/event-stream") {
		end = "\n\n"
		if strings.Contains(text, "\r\n\r\n") {
			end = "\r\n\r\n"
		}
	}
	pieces := strings.SplitAfter(text, end)
	if pieces[len(pieces)-1] == "" {
		pieces = pieces[:len(pieces)-1]
	}
	return pieces
}

func compact(j json.RawMessage) json.RawMessage {
	var text bytes.Buffer
	if json.Compact(&text, j) != nil {
		return j
	}
	return text.Bytes()
}

// masked returns a call as the policy lets it be recorded. Text is masked as a whole, because a
// secret may be on several lines and its name on another one, and then in its pieces, which may
// be JSON.
func (c *Cassette) masked(call Call) (Call, error) {
	var whole agentevents.Policy
	if c.o.Policy != nil {
		whole = *c.o.Policy
		whole.Redactor = nil // it is asked about the pieces
	}
	asked, answered := call.Request.Binary, call.Answer.Binary
	call.Request.Binary, call.Answer.Binary = nil, nil // their text may look like a token
	path, _, _ := strings.Cut(call.Request.URL, "?")
	m := maskable{call, strings.Split(path, "/")}
	m.texts(func(text, _ string) []string { return []string{text} })
	if err := m.mask(&whole); err != nil {
		return Call{}, err
	}
	m.texts(cut)
	if err := m.mask(c.o.Policy); err != nil {
		return Call{}, err
	}
	m.Call.Request.URL = withPath(m.Call.Request.URL, strings.Split(path, "/"), m.Path)
	m.Call.Request.Binary, m.Call.Answer.Binary = asked, answered
	return m.Call, nil
}

// A maskable is a call with the parts of its path in a list: in a list the policy masks the
// element after the name of a credential.
type maskable struct {
	Call Call     `json:"call"`
	Path []string `json:"path"`
}

// texts gives the texts of bodies other pieces.
func (m *maskable) texts(pieces func(text, contentType string) []string) {
	for b, contentType := range map[*Body]string{&m.Call.Request.Body: "",
		&m.Call.Answer.Body: m.Call.Answer.Header["Content-Type"]} {
		if b.Text != nil {
			b.Text = pieces(strings.Join(b.Text, ""), contentType)
		}
	}
}

func (m *maskable) mask(p *agentevents.Policy) error {
	text, err := agentevents.ToJSON(m)
	if err != nil {
		return err
	}
	whole := agentevents.Event{
		RunID: "r", ID: "e", AgentID: "a", Time: time.UnixMilli(0),
		Payload: &agentevents.ToolReturned{
			CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true, Result: text,
		},
	}
	for ev, err := range p.Redact(func(yield func(agentevents.Event, error) bool) { yield(whole, nil) }) {
		if err != nil {
			return err
		}
		text = ev.Payload.(*agentevents.ToolReturned).Result
	}
	*m = maskable{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return fmt.Errorf("the policy leaves no call: %w", err)
	}
	return nil
}

// withPath returns a masked URL with the masked parts of its path. Numbers and short words stay:
// they tell requests apart.
func withPath(url string, parts, masked []string) string {
	const least = 8
	path, query, asked := strings.Cut(url, "?")
	now := strings.Split(path, "/")
	if len(now) != len(parts) || len(masked) != len(parts) {
		return url
	}
	for i, part := range parts {
		if len(part) >= least && masked[i] != part && strings.Trim(part, "0123456789") != "" {
			now[i] = masked[i]
		}
	}
	if path = strings.Join(now, "/"); asked {
		path += "?" + query
	}
	return path
}
