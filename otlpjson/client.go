package otlpjson

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/option"
)

// A Sender takes requests: each is the JSON of one ExportTraceServiceRequest, on one line
// and without a newline. It keeps no part of the request. A [*PartialError] means that all
// but some spans were taken; after any other error the request counts as lost.
//
// [Lines] and [Client] are Senders.
type Sender interface {
	Send(ctx context.Context, request []byte) error
}

// Lines returns a Sender that writes every request as one line, the form of OTLP files.
// The lines of one log are the same every time.
func Lines(w io.Writer) Sender { return &lineSender{w: w} }

type lineSender struct {
	w    io.Writer
	line []byte
}

func (l *lineSender) Send(_ context.Context, request []byte) error {
	l.line = append(append(l.line[:0], request...), '\n')
	_, err := l.w.Write(l.line)
	return err
}

// A PartialError reports that an endpoint took a request and refused some of its spans
// (partialSuccess in the answer).
type PartialError struct {
	Rejected int64  // how many spans it refused; 0 is a warning
	Message  string // message of the endpoint; may be empty
}

// Error has the number of refused spans, and the endpoint's message.
func (e *PartialError) Error() string {
	text := fmt.Sprintf("the endpoint refused %d spans", e.Rejected)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// A StatusError is an answer that is not a success.
type StatusError struct {
	Code    int    // the HTTP status
	Message string // message of the endpoint; may be empty
}

// Error has the status, and the endpoint's message.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the endpoint answered %d %s", e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// ErrNotOTLP means that an endpoint answers 200 with something else than an answer to OTLP/JSON,
// such as a web page.
var ErrNotOTLP = errors.New("the answer does not come from an OTLP/HTTP endpoint that speaks JSON")

// A Client posts requests to an OTLP/HTTP endpoint. The fields must not change once it is
// used. It may be used concurrently.
//
// Requests for which the endpoint is too busy (429, 502, 503, 504) or that did not reach it are
// sent again, after the time in Retry-After, else after 0.25 s, 0.5 s, 1 s and so on. Sending twice
// is harmless to back ends that tell spans by their ids, which a replay never changes.
type Client struct {
	// Endpoint is the URL, such as http://localhost:4318; required. The path /v1/traces is
	// appended unless it ends so.
	Endpoint string
	// Header is added to every request, such as a key.
	Header http.Header
	// Gzip compresses the requests.
	Gzip bool
	// Retries is how often one request is sent again at most; 0 means 4, negative never.
	Retries int
	// MaxWait is the longest time before a request is sent again, also if Retry-After is longer; 0
	// means 30 s.
	MaxWait time.Duration `least:"0"`
	// HTTP does the requests; nil means a client that waits 30 s for an answer and
	// follows no redirect, so that keys go to no other host.
	HTTP *http.Client

	wait func(context.Context, time.Duration) error // for tests; nil sleeps
}

const (
	defaultRetries = 4
	defaultMaxWait = 30 * time.Second
	answerTime     = 30 * time.Second
	firstWait      = 250 * time.Millisecond
	maxAnswer      = 64 << 10 // bytes of an answer that are read
	maxMessage     = 512      // bytes of an endpoint's message that an error keeps
)

// URL returns the address of requests. The error means that Endpoint is not an HTTP URL; it does
// not show the Endpoint, which may hold a key.
func (c *Client) URL() (*url.URL, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("otlpjson: the endpoint is not a URL like http://localhost:4318")
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return u, nil
}

// Send posts one request. It returns a [*StatusError], a [*PartialError], [ErrNotOTLP], or the
// error that kept the request from being answered; ctx ends it.
func (c *Client) Send(ctx context.Context, request []byte) error {
	if err := option.Check("otlpjson.Client", c); err != nil {
		return err
	}
	u, err := c.URL()
	if err != nil {
		return err
	}
	body := request
	if c.Gzip {
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		_, _ = zw.Write(request) // a bytes.Buffer takes everything
		_ = zw.Close()
		body = b.Bytes()
	}
	retries, maxWait, wait := c.Retries, c.MaxWait, c.wait
	if retries == 0 {
		retries = defaultRetries
	}
	if maxWait == 0 {
		maxWait = defaultMaxWait
	}
	if wait == nil {
		wait = sleep
	}
	for next := firstWait; ; next = min(2*next, maxWait) {
		after, again, err := c.post(ctx, u, body)
		if err == nil || !again || retries <= 0 || ctx.Err() != nil {
			return err
		}
		retries--
		if after < 0 {
			after = next
		}
		if werr := wait(ctx, min(after, maxWait)); werr != nil {
			return errors.Join(err, werr)
		}
	}
}

// post sends once. again means that a retry may help, after the time unless that is negative.
func (c *Client) post(ctx context.Context, u *url.URL, body []byte) (after time.Duration, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return -1, false, err
	}
	for name, values := range c.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	client := c.HTTP
	if client == nil {
		client = &http.Client{Timeout: answerTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a key
		}
		return -1, true, fmt.Errorf("otlpjson: no answer from %s: %w", u.Host, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return -1, true, fmt.Errorf("otlpjson: the answer of %s broke off: %w", u.Host, err)
	}
	if resp.StatusCode/100 != 2 {
		switch resp.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			again = true
		}
		return retryAfter(resp.Header), again, &StatusError{resp.StatusCode, message(answer)}
	}
	return -1, false, partial(answer)
}

// partial reads the answer of a success: ExportTraceServiceResponse, or nothing.
func partial(answer []byte) error {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil
	}
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, as text or not
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return ErrNotOTLP
	}
	p := &a.PartialSuccess
	n, _ := strconv.ParseInt(strings.Trim(string(p.RejectedSpans), `"`), 10, 64) // 0 when it is missing
	if n == 0 && p.ErrorMessage == "" {
		return nil
	}
	return &PartialError{n, clip(p.ErrorMessage)}
}

// message returns the message of a Status in the answer of a failure, or "".
func message(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &status) // many endpoints answer with something else
	return clip(status.Message)
}

func clip(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// retryAfter returns the seconds of Retry-After, or -1. A date counts as no value: it needs
// two clocks that agree.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(h.Get("Retry-After")), 10, 31)
	if err != nil {
		return -1
	}
	return time.Duration(n) * time.Second
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
