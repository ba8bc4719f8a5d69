package discovery

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/dialect/openwop"
)

func TestServeAndFetch(t *testing.T) {
	c := &openwop.Capabilities{ReasoningEvents: true, TokenLimit: 128}
	h, err := Handler(c, []byte(`{"protocolVersion":"1","capabilities":{"replay":{"supported":true},"agents":{"toolEvents":true}}}`))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(openwop.DiscoveryPath, h)
	srv := httptest.NewServer(mux)
	defer srv.Close()

	d, err := Fetch(t.Context(), srv.Client(), srv.URL+"/")
	require.NoError(t, err)
	require.Equal(t, c, d.Agents)

	resp, err := srv.Client().Get(srv.URL + openwop.DiscoveryPath)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.JSONEq(t, `{"protocolVersion":"1","capabilities":{"replay":{"supported":true},"agents":{
		"reasoningEvents":true,"toolEvents":false,"handoffEvents":false,"decisionEvents":false,"reasoning":{"tokenLimit":128}}}}`, string(text))

	resp, err = srv.Client().Post(srv.URL+openwop.DiscoveryPath, "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
}

func TestHandlerRefusesDocumentsThatAreNoObjects(t *testing.T) {
	for _, document := range []string{`[]`, `null`, `{`, `{"capabilities":1}`, `{"agents":{"supported":true}}`, `{"Agents":{}}`} {
		_, err := Handler(nil, []byte(document))
		require.Error(t, err, document)
	}
	_, err := Handler(nil, nil)
	require.NoError(t, err)
	_, err = Handler(nil, []byte(`{"capabilities":null}`))
	require.NoError(t, err)
}

func TestFetchErrors(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer srv.Close()
	for name, a := range map[string]func(http.ResponseWriter, *http.Request){
		"404":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(" ", maxDocument+1))
		},
	} {
		answer = a
		_, err := Fetch(t.Context(), nil, srv.URL)
		require.Error(t, err, name)
	}
	_, err := Fetch(t.Context(), nil, "http://\x7f")
	require.Error(t, err)
}
