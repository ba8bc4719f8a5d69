package otlpjson

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer is a test server's reply to one request.
type answer struct {
	code  int
	after string // Retry-After
	body  string
}

// serve returns a client of a server that gives the answers in order, and how long the client
// waited between requests. The last answer is repeated.
func serve(t *testing.T, answers ...answer) (c *Client, got *[]*http.Request, waits *[]time.Duration) {
	got, waits = &[]*http.Request{}, &[]time.Duration{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		a := answers[min(len(*got), len(answers)-1)]
		*got = append(*got, req)
		if a.after != "" {
			w.Header().Set("Retry-After", a.after)
		}
		if a.code == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(a.code)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	return &Client{Endpoint: server.URL, wait: func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}}, got, waits
}

func TestClientRetries(t *testing.T) {
	busy := answer{503, "", ""}
	for _, test := range []struct {
		name    string
		answers []answer
		retries int
		waits   []time.Duration
		code    int // of the error; 0 means none
	}{
		{"taken", []answer{{200, "", "{}"}}, 0, nil, 0},
		{"empty answer", []answer{{200, "", ""}}, 0, nil, 0},
		{"202", []answer{{202, "", ""}}, 0, nil, 0},
		{"grows", []answer{busy, busy, busy, {200, "", ""}}, 0, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}, 0},
		{"Retry-After", []answer{{429, "7", ""}, {503, "0", ""}, {200, "", ""}}, 0, []time.Duration{7 * time.Second, 0}, 0},
		{"bounded", []answer{{429, "86400", ""}, {200, "", ""}}, 0, []time.Duration{30 * time.Second}, 0},
		{"a date", []answer{{502, "Wed, 21 Oct 2026 07:28:00 GMT", ""}, {200, "", ""}}, 0, []time.Duration{250 * time.Millisecond}, 0},
		{"gives up", []answer{{504, "1", ""}}, 2, []time.Duration{time.Second, time.Second}, 504},
		{"never", []answer{busy}, -1, nil, 503},
		{"no use", []answer{{400, "1", ""}}, 0, nil, 400},
		{"no redirect", []answer{{307, "", ""}, {200, "", ""}}, 0, nil, 307},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, got, waits := serve(t, test.answers...)
			c.Retries = test.retries
			err := c.Send(t.Context(), []byte(`{"resourceSpans":[]}`))
			if test.code == 0 {
				require.NoError(t, err)
			} else {
				var status *StatusError
				require.ErrorAs(t, err, &status)
				require.Equal(t, test.code, status.Code)
			}
			require.Equal(t, test.waits, append([]time.Duration(nil), *waits...))
			require.Len(t, *got, len(test.waits)+1)
			for _, req := range *got {
				body, err := io.ReadAll(req.Body)
				require.NoError(t, err)
				require.Equal(t, `{"resourceSpans":[]}`, string(body), "whole every time")
			}
		})
	}
}

func TestClientRequest(t *testing.T) {
	c, got, _ := serve(t, answer{200, "", "{}"})
	base := c.Endpoint
	for i, endpoint := range []string{base, base + "/", base + "/v1/traces", base + "/otel?k=v"} {
		c.Endpoint, c.Gzip, c.Header = endpoint, i == 1, http.Header{"x-key": {"k"}}
		require.NoError(t, c.Send(t.Context(), []byte("{}")))
	}
	for i, want := range []string{"/v1/traces", "/v1/traces", "/v1/traces", "/otel/v1/traces?k=v"} {
		req := (*got)[i]
		require.Equal(t, want, req.URL.RequestURI())
		require.Equal(t, http.MethodPost, req.Method)
		require.Equal(t, "application/json", req.Header.Get("Content-Type"))
		require.Equal(t, "k", req.Header.Get("X-Key"))
	}
	require.Equal(t, "gzip", (*got)[1].Header.Get("Content-Encoding"))
	zr, err := gzip.NewReader((*got)[1].Body)
	require.NoError(t, err)
	body, err := io.ReadAll(zr)
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))
	require.Equal(t, map[string][]string{"x-key": {"k"}}, map[string][]string(c.Header), "the caller's header stays")
}

func TestClientAnswers(t *testing.T) {
	long := strings.Repeat("é", maxMessage)
	for _, test := range []struct {
		body string
		want error
	}{
		{`{"partialSuccess":{}}`, nil},
		{`{"partialSuccess":{"rejectedSpans":"0","errorMessage":""}}`, nil},
		{`{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`, &PartialError{3, "too old"}},
		{`{"partialSuccess":{"rejectedSpans":3}}`, &PartialError{3, ""}},
		{`{"partialSuccess":{"errorMessage":"soon gone"}}`, &PartialError{0, "soon gone"}},
		{`{"partialSuccess":{"rejectedSpans":1,"errorMessage":"` + long + `"}}`, &PartialError{1, long[:maxMessage] + "…"}},
		{`<!doctype html>`, ErrNotOTLP},
	} {
		c, _, _ := serve(t, answer{200, "", test.body})
		require.Equal(t, test.want, c.Send(t.Context(), []byte("{}")), test.body)
	}
	c, _, _ := serve(t, answer{400, "", `{"code":3,"message":"no such thing"}`})
	require.EqualError(t, c.Send(t.Context(), []byte("{}")), "the endpoint answered 400 Bad Request: no such thing")
}

func TestClientBroken(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close() // nobody listens there any more
	waits := 0
	c := &Client{Endpoint: server.URL + "/?key=abcdef", Retries: 2, wait: func(context.Context, time.Duration) error { waits++; return nil }}
	err := c.Send(t.Context(), []byte("{}"))
	require.ErrorContains(t, err, "otlpjson: no answer from 127.0.0.1:")
	require.NotContains(t, err.Error(), "abcdef")
	require.Equal(t, 2, waits)

	for _, bad := range []string{"", "localhost:4318", "ftp://x", "http://", "http://[::1", "http://h/%zz?key=abcdef"} {
		err := (&Client{Endpoint: bad}).Send(t.Context(), []byte("{}"))
		require.EqualError(t, err, "otlpjson: the endpoint is not a URL like http://localhost:4318", bad)
	}
}

func TestClientContext(t *testing.T) {
	c, got, _ := serve(t, answer{503, "3600", ""})
	ctx, cancel := context.WithCancel(t.Context())
	c.wait = func(ctx context.Context, d time.Duration) error {
		cancel()
		return sleep(ctx, d)
	}
	err := c.Send(ctx, []byte("{}"))
	require.ErrorIs(t, err, context.Canceled)
	var status *StatusError
	require.ErrorAs(t, err, &status)
	require.Len(t, *got, 1)

	require.ErrorIs(t, c.Send(ctx, []byte("{}")), context.Canceled)
	require.NoError(t, sleep(t.Context(), 0))
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	s := Lines(&b)
	require.NoError(t, s.Send(t.Context(), []byte(`{"a":1}`)))
	require.NoError(t, s.Send(t.Context(), []byte(`{}`)))
	require.Equal(t, "{\"a\":1}\n{}\n", b.String())
	full := errors.New("disk full")
	r, w := io.Pipe()
	r.CloseWithError(full)
	require.ErrorIs(t, Lines(w).Send(t.Context(), []byte("{}")), full)
}
