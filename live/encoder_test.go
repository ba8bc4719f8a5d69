package live_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/live"
)

func aguiHandler(page *live.Log) http.Handler {
	m := http.NewServeMux()
	m.Handle("/runs/{run}/agui", page.EncodedHandler(func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) }))
	return m
}

// data returns the data of frames as a client of AG-UI reads them: only data lines.
func data(body string) (lines []string) {
	for frame := range strings.SplitSeq(body, "\n\n") {
		for line := range strings.SplitSeq(frame, "\n") {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				lines = append(lines, text)
			}
		}
	}
	return lines
}

// types reads lines with a strict decoder, and returns the types of the events.
func types(t *testing.T, lines []string) (types []string) {
	t.Helper()
	r := ae.NewReader(strings.NewReader(strings.Join(lines, "\n")), ae.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{Strict: true})})
	for ev, err := range r.All() {
		require.NoError(t, err)
		types = append(types, string(ev.Kind()))
	}
	return types
}

// A client of AG-UI reads a run while it goes on.
func TestEncodedStream(t *testing.T) {
	page, run, _, em := start(t, live.Options{Linger: -1})
	server := httptest.NewServer(aguiHandler(page))
	defer server.Close()
	emit(t, run, &ae.RunStarted{Name: "name"})
	resp, err := http.Post(server.URL+"/runs/"+run.ID()+"/agui", "application/json", strings.NewReader(`{}`))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		return ""
	}
	require.Contains(t, next(), `"type":"RUN_STARTED"`)
	deltas(t, run, 2)
	require.Contains(t, next(), `"type":"TEXT_MESSAGE_START"`, "before the run goes on")
	require.Contains(t, next(), `"type":"TEXT_MESSAGE_CONTENT"`)
	require.Contains(t, next(), `"type":"TEXT_MESSAGE_CONTENT"`)
	emit(t, run, &ae.RunCompleted{})
	require.NoError(t, em.Close(t.Context()))
	require.Contains(t, next(), `"type":"TEXT_MESSAGE_END"`, "what is open ends before the run")
	require.Contains(t, next(), `"type":"RUN_FINISHED"`)
	require.Empty(t, next(), "nothing about the stream follows")
}

// A client that comes again gets the lines behind the event that it names, and one that
// comes late for what is kept a stream that is whole.
func TestEncodedStreamAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, keep := range []int{0, 800} {
			page, run, _, em := start(t, live.Options{Linger: -1, KeepBytes: keep})
			emit(t, run, &ae.RunStarted{Name: "name"})
			deltas(t, run, 10)
			emit(t, run, &ae.RunCompleted{})
			require.NoError(t, em.Close(t.Context()))
			req := httptest.NewRequest(http.MethodGet, "/runs/"+run.ID()+"/agui", nil)
			w := httptest.NewRecorder()
			aguiHandler(page).ServeHTTP(w, req)
			whole := data(w.Body.String())
			require.Equal(t, "run.completed", types(t, whole)[len(types(t, whole))-1])
			req.Header.Set("Last-Event-ID", "10")
			w = httptest.NewRecorder()
			aguiHandler(page).ServeHTTP(w, req)
			require.Equal(t, whole[len(whole)-2:], data(w.Body.String()))
		}
	})
}
