package discovery

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop/host"
)

func TestServeAndFetch(t *testing.T) {
	c := &host.Capabilities{ReasoningEvents: true, TokenLimit: 128}
	h, err := Handler(c, []byte(`{"protocolVersion":"1","capabilities":{"replay":{"supported":true},"agents":{"toolEvents":true}}}`))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(host.DiscoveryPath, h)
	srv := httptest.NewServer(mux)
	defer srv.Close()

	d, err := Fetch(t.Context(), srv.Client(), srv.URL+"/")
	require.NoError(t, err)
	require.Equal(t, c, d.Agents)

	resp, err := srv.Client().Get(srv.URL + host.DiscoveryPath)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.JSONEq(t, `{"protocolVersion":"1","capabilities":{"replay":{"supported":true},"agents":{
		"reasoningEvents":true,"toolEvents":false,"handoffEvents":false,"decisionEvents":false,"reasoning":{"tokenLimit":128}}}}`, string(text))

	resp, err = srv.Client().Post(srv.URL+host.DiscoveryPath, "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
}

// The handler keeps all members of the document that the capabilities do not set.
func TestHandlerKeepsTheDocument(t *testing.T) {
	serve := func(c *host.Capabilities, document string) string {
		h, err := Handler(c, []byte(document))
		require.NoError(t, err, document)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, host.DiscoveryPath, nil))
		return w.Body.String()
	}
	document := `{"capabilities":{"agents":{"toolEvents":true,"reasoning":{"verbosity":"summary","tokenLimit":9,"streaming":true},"liveRuntime":{"supported":true}}}}`
	require.JSONEq(t, document, serve(nil, document))
	require.JSONEq(t, `{"capabilities":{"agents":{
		"reasoningEvents":true,"toolEvents":false,"handoffEvents":false,"decisionEvents":false,"memoryBackends":["longTerm"],
		"reasoning":{"verbosity":"summary","tokenLimit":128,"streaming":true},"liveRuntime":{"supported":true}}}}`,
		serve(&host.Capabilities{ReasoningEvents: true, TokenLimit: 128, MemoryBackends: []string{host.MemoryLongTerm}}, document))
	require.JSONEq(t, `{"agents":{"supported":true}}`, serve(nil, `{"agents":{"supported":true}}`))
	for _, none := range []string{`{"capabilities":null}`, `{"capabilities":{"agents":null}}`, `{"capabilities":{"agents":{"reasoning":null}}}`} {
		require.Contains(t, serve(&host.Capabilities{TokenLimit: 128}, none), `"reasoning":{"tokenLimit":128}`, none)
	}

	// "supported" stands for all events except the deltas.
	all := host.Capabilities{ReasoningEvents: true, ToolEvents: true, HandoffEvents: true, DecisionEvents: true, Streaming: agentevents.Some(false)}
	require.Contains(t, serve(&all, `{"capabilities":{"agents":{"supported":true}}}`), `"supported":true`)
}

func TestHandlerRefuses(t *testing.T) {
	for _, document := range []string{`[]`, `null`, `{`} {
		_, err := Handler(nil, []byte(document))
		require.Error(t, err, document)
	}
	tools := &host.Capabilities{ToolEvents: true}
	for _, document := range []string{
		`{"capabilities":1}`, `{"capabilities":{"agents":[]}}`, `{"capabilities":{"agents":{"reasoning":1}}}`, `{"capabilities":{"agents":{"supported":1}}}`,
		`{"agents":{"supported":true}}`, `{"Agents":{"supported":true}}`, `{"agents":{"toolEvents":true}}`, // at the root
		`{"capabilities":{"agents":{"supported":true}}}`, `{"capabilities":{"agents":{"Supported":true}}}`, `{"capabilitieſ":{"agents":null}}`,
	} {
		_, err := Handler(tools, []byte(document))
		require.Error(t, err, document)
	}
	_, err := Handler(&host.Capabilities{ReasoningEvents: true}, []byte(`{"capabilities":{"agents":{"reasoning":{"streaming":false}}}}`))
	require.ErrorContains(t, err, "reasoning.streaming")
	_, err = Handler(tools, nil)
	require.NoError(t, err)
	_, err = Handler(nil, nil)
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
