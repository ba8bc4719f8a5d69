package live_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/live"
)

func mux(page *live.Feed) *http.ServeMux {
	m := http.NewServeMux()
	m.Handle("/runs/{run}", page.SnapshotHandler())
	m.Handle("/runs/{run}/events", page.EventsHandler())
	m.Handle("/events", page.EventsHandler())
	return m
}

// get answers a request that ends by itself.
func get(page *live.Feed, method, url, last string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, url, nil)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	w := httptest.NewRecorder()
	mux(page).ServeHTTP(w, req)
	w.Body = bytes.NewBufferString(withoutEpoch(w.Body.String()))
	return w
}

var epochs = regexp.MustCompile(`(?m)^(id: [0-9]+)-[0-9a-z]{1,7}$`)

// withoutEpoch returns a stream whose ids are sequences.
func withoutEpoch(stream string) string { return epochs.ReplaceAllString(stream, "$1") }

func TestHandlersAnswer(t *testing.T) {
	page, run, _, em := start(t, live.Options{Linger: -1, KeepBytes: 800})
	paused, err := em.Run("paused")
	require.NoError(t, err)
	emit(t, paused, &ae.RunPaused{})
	require.NoError(t, paused.Close())
	emit(t, run, &ae.RunStarted{Name: "name"})
	deltas(t, run, 10)
	emit(t, run, &ae.RunCompleted{})
	oldest := int(page.Runs()[1].Oldest)
	require.Greater(t, oldest, 1)
	for _, test := range []struct {
		method, url, last string
		code              int
		body              string
	}{
		{"GET", "/runs/r", "", 200, string(page.Snapshot("r").AppendJSON(nil))},
		{"HEAD", "/runs/r", "", 200, ""},
		{"GET", "/runs/x", "", 404, "agentevents/live: the run is not known\n"},
		{"POST", "/runs/r", "", 405, "only GET and HEAD\n"},
		{"GET", "/runs/x/events", "", 404, "agentevents/live: the run is not known\n"},
		{"GET", "/runs/r/events", "x", 400, "Last-Event-ID is not the id of an event\n"},
		{"GET", "/runs/r/events", "18446744073709551615", 400, "Last-Event-ID is not the id of an event\n"},
		{"GET", "/runs/r/events?from=-1", "", 400, "from is not a sequence\n"},
		{"POST", "/runs/r/events", "", 405, "only GET and HEAD\n"},
		{"HEAD", "/runs/r/events", "", 200, ""},
		{"GET", "/runs/r/events?from=12", "", 204, ""},
		{"GET", "/runs/r/events?from=0", "11", 204, ""}, // the header goes first
		{"GET", "/events?run=r", "11", 204, ""},
		{"GET", "/runs/paused/events?from=1", "", 200, ":\n\n"}, // another process may go on
		{"GET", "/runs/r/events?from=1", "", 200, fmt.Sprintf(":\n\nid: 11\nevent: resync\ndata: {\"from\":1,\"oldest\":%d,\"next\":12}\n\nid: 11\nevent: end\ndata: {\"next\":12}\n\n", oldest)},
		{"GET", "/runs/r/events?from=99", "", 200, fmt.Sprintf(":\n\nid: 11\nevent: resync\ndata: {\"from\":99,\"oldest\":%d,\"next\":12}\n\nid: 11\nevent: end\ndata: {\"next\":12}\n\n", oldest)},
	} {
		w := get(page, test.method, test.url, test.last)
		body := w.Body.String()
		if test.method == "HEAD" {
			body = ""
		}
		require.Equal(t, test.code, w.Code, "%s %s", test.method, test.url)
		require.Equal(t, test.body, body, "%s %s", test.method, test.url)
		h := w.Header()
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.NotContains(t, h, "Access-Control-Allow-Origin")
		switch {
		case test.code != 200:
		case strings.Contains(test.url, "events"):
			require.Equal(t, "text/event-stream", h.Get("Content-Type"))
		default:
			require.Equal(t, "application/json", h.Get("Content-Type"))
		}
	}
	open := live.New(live.Options{AllowOrigin: "https://example.org"})
	require.Equal(t, "https://example.org", get(open, "GET", "/runs/x", "").Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "https://example.org", get(open, "GET", "/runs/x/events", "").Header().Get("Access-Control-Allow-Origin"))
}

func TestEventsAreFiltered(t *testing.T) {
	page, run, file, _ := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{})
	for _, agent := range []string{"a", "b", "c"} {
		require.NoError(t, run.Agent(agent).Emit(t.Context(), &ae.AgentStarted{}))
		require.NoError(t, run.Agent(agent).Emit(t.Context(), &ae.TextDelta{Delta: "x"}))
	}
	emit(t, run, &ae.RunCompleted{})
	lines := linesOf(file)
	for query, want := range map[string][]int{
		"":                               {0, 1, 2, 3, 4, 5, 6, 7},
		"?agent=a":                       {1, 2},
		"?agent=a&agent=c":               {1, 2, 5, 6},
		"?kind=agent.started":            {1, 3, 5},
		"?agent=b&kind=agent.text.delta": {4},
		"?kind=run.started&kind=run.completed&from=1": {7},
		"?kind=vendor.x": nil,
	} {
		text := ":\n\n"
		for _, i := range want {
			text += fmt.Sprintf("id: %d\ndata: %s\n\n", i, lines[i])
		}
		text += "id: 7\nevent: end\ndata: {\"next\":8}\n\n"
		require.Equal(t, text, get(page, "GET", "/runs/r/events"+query, "").Body.String(), query)
	}
}

func TestAMisspeltKindIsABadRequest(t *testing.T) {
	page, run, _, _ := start(t, live.Options{})
	emit(t, run, &ae.RunStarted{})
	for _, kind := range []string{"toolCalled", "agent.toolcalled", "", "agent.toolCalled&kind=x"} {
		require.Equal(t, http.StatusBadRequest, get(page, "GET", "/runs/r/events?kind="+kind, "").Code, kind)
	}
}

// A filter that cannot be read, or is misspelt, does not let all events through.
func TestAnUnreadableQueryIsABadRequest(t *testing.T) {
	page, run, _, _ := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{}, &ae.RunCompleted{})
	encoded := page.EncodedHandler(func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) })
	for _, query := range []string{
		"agent=%zz", "agent=b;x", "from=%zz", "kind=run.started&%", strings.Repeat("agent=b&", 10_001),
		"agents=b", "agentId=b", "Agent=b", "kinds=run.started", "KIND=run.started", "kind[]=run.started",
		"run=r&run=s", "from=1&from=2", "kind=", "from=x", "run=%zz",
	} {
		for name, h := range map[string]http.Handler{"events": page.EventsHandler(), "encoded": encoded, "snapshot": page.SnapshotHandler()} {
			if name == "snapshot" && !strings.Contains(query, "%") && !strings.Contains(query, "run=r&run=s") {
				continue // it has no filter
			}
			w := httptest.NewRecorder()
			req := httptest.NewRequest("GET", "/?run=r", nil)
			req.URL.RawQuery = query
			if !strings.Contains(query, "run=r") {
				req.URL.RawQuery += "&run=r"
			}
			h.ServeHTTP(w, req)
			require.Equal(t, http.StatusBadRequest, w.Code, "%s: %.40s", name, query)
			require.NotContains(t, w.Body.String(), "data:")
		}
	}
	for _, query := range []string{"token=x", "from=", "agent=", "kind=vendor.x&access_token=y"} {
		require.Equal(t, http.StatusOK, get(page, "GET", "/runs/r/events?"+query, "").Code, query)
	}
}

// A slowWriter is a connection. It keeps the flushed bytes.
type slowWriter struct {
	httptest.ResponseRecorder
	mu        sync.Mutex
	flushed   []string
	at        int
	deadlines []time.Time
	fails     error
}

func (w *slowWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = append(w.flushed, withoutEpoch(w.Body.String()[w.at:]))
	w.at = w.Body.Len()
	return w.fails
}

func (w *slowWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

func newSlowWriter() *slowWriter {
	return &slowWriter{ResponseRecorder: *httptest.NewRecorder()}
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, _, _ := start(t, live.Options{Heartbeat: 10 * time.Second, WriteTimeout: time.Minute})
		deltas(t, run, 1)
		ctx, cancel := context.WithCancel(t.Context())
		w := newSlowWriter()
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			mux(page).ServeHTTP(w, httptest.NewRequest("GET", "/runs/r/events?kind=run.paused", nil).WithContext(ctx))
		}()
		time.Sleep(25 * time.Second)
		emit(t, run, &ae.RunPaused{})
		for range 40 { // events that the query leaves out do not keep the stream alive
			time.Sleep(time.Second)
			deltas(t, run, 1)
		}
		synctest.Wait()
		cancel()
		<-done
		require.Equal(t, []string{":\n\n", ":\nid: 0\n\n", ":\n\n"}, w.flushed[:3])
		require.Contains(t, w.flushed[3], "id: 1\ndata: {")
		require.Equal(t, []string{":\nid: 11\n\n", ":\nid: 21\n\n", ":\nid: 31\n\n", ":\nid: 41\n\n"}, w.flushed[4:])
		require.Equal(t, began.Add(time.Minute), w.deadlines[0])
	})
}

// A reader has the end of the run at once, and the end of the stream after Linger.
func TestAStreamEndsAfterLinger(t *testing.T) {
	for linger, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Minute: time.Minute, -1: 0} {
		synctest.Test(t, func(t *testing.T) {
			page, run, _, _ := start(t, live.Options{Linger: linger, Heartbeat: -1})
			emit(t, run, &ae.RunStarted{})
			began := time.Now()
			var ended time.Duration
			done := make(chan struct{})
			w := newSlowWriter()
			go func() {
				defer close(done)
				mux(page).ServeHTTP(w, httptest.NewRequest("GET", "/runs/r/events", nil))
				ended = time.Since(began)
			}()
			emit(t, run, &ae.RunCompleted{})
			time.Sleep(time.Second)
			synctest.Wait()
			w.mu.Lock()
			require.Contains(t, strings.Join(w.flushed, ""), "run.completed")
			w.mu.Unlock()
			<-done
			require.Contains(t, w.flushed[len(w.flushed)-1], "event: end")
			require.Equal(t, want, ended)
		})
	}
}

func TestAStreamEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, _, _ := start(t, live.Options{Heartbeat: -1, WriteTimeout: -1})
		deltas(t, run, 1)
		w := newSlowWriter()
		w.fails = errors.New("gone")
		mux(page).ServeHTTP(w, httptest.NewRequest("GET", "/runs/r/events", nil))
		require.Equal(t, []string{":\n\n"}, w.flushed)
		require.Equal(t, []time.Time{{}}, w.deadlines)
	})
}

// A stream that is too slow gets a resync, goes on with new events, and its next cursor is valid.
func TestASlowStreamIsToldToResync(t *testing.T) {
	page, run, _, em := start(t, live.Options{KeepBytes: 2000, Linger: -1})
	deltas(t, run, 3)
	w := &gateWriter{slowWriter: newSlowWriter(), at: func(n int) {
		if n == 2 {
			deltas(t, run, 100)
		}
		if n == 3 {
			deltas(t, run, 1)
			require.NoError(t, em.Close(context.Background()))
		}
	}}
	mux(page).ServeHTTP(w, httptest.NewRequest("GET", "/runs/r/events", nil))
	require.Len(t, w.flushed, 4, "no end: another process may go on")
	require.Contains(t, w.flushed[1], "id: 2\ndata: {")
	require.Regexp(t, `^id: 102\nevent: resync\ndata: {"from":3,"oldest":\d+,"next":103}\n\n$`, w.flushed[2])
	require.Contains(t, w.flushed[3], "id: 103\ndata: {")
}

type gateWriter struct {
	*slowWriter
	at func(flushed int)
}

func (w *gateWriter) FlushError() error {
	err := w.slowWriter.FlushError()
	w.at(len(w.flushed))
	return err
}

// follow reads a run over connections that drop again and again, as a browser would, and
// returns the sequences it has seen.
func follow(client *http.Client, url string, rng *rand.Rand) (seen []uint64, err error) {
	last := ""
	for {
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			cancel()
			return seen, err
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := client.Do(req)
		if err != nil {
			cancel()
			return seen, err
		}
		over, err := readStream(resp.Body, 1+rng.IntN(60), &last, &seen)
		cancel()
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 200 && resp.StatusCode != 204 {
			return seen, fmt.Errorf("status %d", resp.StatusCode)
		}
		if over || err != nil || resp.StatusCode == 204 {
			return seen, err
		}
	}
}

// readStream reads events until limit of them have come.
func readStream(body io.Reader, limit int, last *string, seen *[]uint64) (over bool, err error) {
	id, event := "", ""
	for in := bufio.NewReader(body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return false, nil // the connection is gone
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			switch {
			case event == "end":
				return true, nil
			case event != "":
				return true, fmt.Errorf("event %s %s", event, value)
			}
			var ev ae.Event
			if err := ev.UnmarshalJSON([]byte(value)); err != nil {
				return true, err
			}
			if sequence, _, _ := strings.Cut(id, "-"); strconv.FormatUint(ev.Sequence, 10) != sequence {
				return true, fmt.Errorf("id %s of event %d", id, ev.Sequence)
			}
			*seen = append(*seen, ev.Sequence)
		case "":
			if id != "" { // dispatched
				*last = id
			}
			if id, event = "", ""; limit == 0 {
				return false, nil
			}
			limit--
		}
	}
}

// TestConcurrentSafeManyReaders has as many readers as runs, over HTTP, whose connections
// drop. Each sees every event of its run once and in order.
func TestConcurrentSafeManyReaders(t *testing.T) {
	runs, events := effort.Of(40, 200, 2000), 60
	page := live.New(live.Options{Linger: time.Minute, KeepRuns: runs}) // a slow machine may take long between the last two events
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleRelaxed, Sinks: []ae.Sink{page}})
	require.NoError(t, err)
	server := httptest.NewServer(mux(page))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * runs}}

	var readers, writers sync.WaitGroup
	for i := range runs {
		id := fmt.Sprint("run-", i)
		run, err := em.Run(id)
		require.NoError(t, err)
		emit(t, run, &ae.RunStarted{})
		readers.Go(func() {
			seen, err := follow(client, server.URL+"/runs/"+id+"/events", rand.New(rand.NewPCG(1, uint64(i))))
			if err != nil || len(seen) != events+3 {
				t.Errorf("%s: %d events, %v", id, len(seen), err)
				return
			}
			for at, sequence := range seen {
				if sequence != uint64(at) {
					t.Errorf("%s: event %d is number %d", id, at, sequence)
					return
				}
			}
		})
		writers.Go(func() {
			for n := range events {
				if err := run.Emit(context.Background(), &ae.TextDelta{Delta: fmt.Sprint(n)}); err != nil {
					t.Error(err)
				}
				if n%10 == 0 {
					page.Snapshot(id)
				}
			}
			if err := errors.Join(run.Emit(context.Background(), &ae.RunCompleted{}), run.Emit(context.Background(), &ae.SessionCompleted{})); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	// Those who have the last event need not wait for another one: it is the last.
	require.NoError(t, em.Close(t.Context()))
	readers.Wait()
}

func TestALineIsOneLineOfAStream(t *testing.T) {
	page, run, _, _ := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{Inputs: "{\r\n\"a\":\r[1,\n2]}", Name: "a\rb\nc"})
	ev := ae.Event{Payload: &ae.RunCompleted{}}
	require.NoError(t, ev.SetExtra("x", "[1,\r2,\n3]"))
	_, err := run.Record(t.Context(), ev)
	require.NoError(t, err)
	body := get(page, "GET", "/runs/r/events", "").Body.Bytes()
	require.NotContains(t, string(body), "\r")
	require.Equal(t, 3, bytes.Count(body, []byte("data: ")))
	for _, line := range strings.Split(string(body), "\n") {
		require.Regexp(t, `^(|:|(id|data|event): .*)$`, line)
	}
}
