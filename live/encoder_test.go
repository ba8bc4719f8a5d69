package live_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/scale"
	"github.com/agentevents/agentevents/live"
)

func aguiHandler(page *live.Feed) http.Handler {
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
	require.Contains(t, next(), `"type":"TEXT_MESSAGE_END"`, "open blocks and calls end before the run")
	require.Contains(t, next(), `"type":"RUN_FINISHED"`)
	require.Empty(t, next(), "nothing about the stream follows")
}

// The stream of a run that waits for a person ends, and another one goes on where the run
// is resumed.
func TestEncodedStreamOfAQuestion(t *testing.T) {
	page, run, _, em := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{}, &ae.ApprovalRequested{ApprovalID: "a"}, &ae.RunPaused{})
	get := func(query string) []string {
		w := httptest.NewRecorder()
		aguiHandler(page).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/runs/r/agui"+query, nil))
		return types(t, data(w.Body.String()))
	}
	require.Equal(t, []string{"run.started", "approval.requested", "run.paused"}, get(""))
	from := run.State().NextSequence
	emit(t, run, &ae.RunResumed{}, &ae.ApprovalGranted{ApprovalID: "a"}, &ae.RunCompleted{})
	require.NoError(t, em.Close(t.Context()))
	require.Equal(t, []string{"run.started", "approval.granted", "run.completed"}, get(fmt.Sprint("?from=", from)))
}

// A client that comes when the beginning is not kept any more learns who works, and which
// calls are open. It gets no piece of a text, but all of it.
func TestEncodedStreamLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := live.New(live.Options{Linger: -1, KeepBytes: 4000})
		em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{page}})
		require.NoError(t, err)
		run, err := em.Run("r")
		require.NoError(t, err)
		lead, helper := run.Agent("lead"), run.Agent("lead").Agent("helper")
		require.NoError(t, lead.Emit(t.Context(), &ae.AgentStarted{Task: "Count"}))
		require.NoError(t, helper.Emit(t.Context(), &ae.AgentStarted{}))
		_, err = lead.Call(t.Context(), &ae.ToolCalled{CallID: "c", ToolID: "Count"})
		require.NoError(t, err)
		words := ""
		for i := range 20 {
			words += fmt.Sprint(i, " ")
			require.NoError(t, lead.Emit(t.Context(), &ae.TextDelta{BlockID: "b", Delta: fmt.Sprint(i, " ")}))
		}
		require.NoError(t, lead.Emit(t.Context(), &ae.TextCompleted{BlockID: "b", Text: words}))
		require.NoError(t, lead.Emit(t.Context(), &ae.TextDelta{BlockID: "b2", Delta: "Done"}))
		require.NoError(t, page.Close()) // the streams end, and not the run
		whole := []string{"RUN_STARTED", "CUSTOM lead Count", "SUBAGENT_STARTED helper", "TOOL_CALL_START c", "TOOL_CALL_END c",
			"TEXT_MESSAGE_START b", "TEXT_MESSAGE_CONTENT b " + words, "TEXT_MESSAGE_END b", "TEXT_MESSAGE_START b2", "TEXT_MESSAGE_CONTENT b2 Done"}
		for cursor, want := range map[string][]string{
			"":   whole,
			"99": whole, // of another log
			"22": {"TEXT_MESSAGE_CONTENT b 19 ", "TEXT_MESSAGE_END b", "TEXT_MESSAGE_START b2", "TEXT_MESSAGE_CONTENT b2 Done"},
		} {
			req := httptest.NewRequest(http.MethodGet, "/runs/r/agui?agent=nobody&kind=run.started", nil)
			req.Header.Set("Last-Event-ID", cursor)
			w := httptest.NewRecorder()
			aguiHandler(page).ServeHTTP(w, req)
			var got []string
			for _, line := range data(w.Body.String()) {
				said := jsonwire.Text(jsonwire.Member(line, "type"))
				for _, name := range []string{"subagentRunId", "messageId", "toolCallId", "delta"} {
					if raw := jsonwire.Member(line, name); raw != "" {
						said += " " + jsonwire.Text(raw)
					}
				}
				if task := jsonwire.Text(jsonwire.Member(jsonwire.Member(line, "value"), "task")); task != "" {
					said += " " + task
				}
				got = append(got, said)
			}
			require.Equal(t, want, got, cursor)
		}
	})
}

// A client that reconnects gets the lines after the event that it names. A client that comes too
// late for the kept events gets a whole stream.
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
			rest := data(w.Body.String())
			require.Len(t, rest, 2)
			require.Contains(t, rest[0], `"type":"TEXT_MESSAGE_END"`)
			require.Equal(t, whole[len(whole)-1], rest[1])
		}
	})
}

// A client that comes when the beginning is not kept any more gets the state, and patches that it
// can apply.
func TestEncodedStreamLateState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, run, _, _ := start(t, live.Options{Linger: -1, KeepBytes: 600})
		patch := func(path, value string) {
			emit(t, run, &ae.StatePatched{Op: ae.PatchSet, Path: path, Value: ae.JSON(value)})
		}
		patch("tasks.open", `{"a":1}`)
		for i := range 10 {
			patch(fmt.Sprint("n.k", i), fmt.Sprint(i))
		}
		patch("tasks.open.b", "2")
		patch("tasks.done.c", "3")
		require.NoError(t, page.Close())
		w := httptest.NewRecorder()
		aguiHandler(page).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/"+run.ID()+"/agui", nil))
		got := data(w.Body.String())
		types(t, got)
		require.Contains(t, got[0], "RUN_STARTED")
		require.JSONEq(t, `{"tasks":{"open":{"a":1,"b":2},"done":{"c":3}},"n":{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9}}`, jsonwire.Member(got[1], "snapshot"))
		require.JSONEq(t, `[{"op":"add","path":"/tasks/open/b","value":2}]`, jsonwire.Member(got[len(got)-2], "delta"))
		require.JSONEq(t, `[{"op":"add","path":"/tasks/done/c","value":3}]`, jsonwire.Member(got[len(got)-1], "delta"))
	})
}

// One more of many things costs a stream with an encoder no more than the others.
func TestEncodedStreamIsLinear(t *testing.T) {
	long := strings.Repeat("word", 100)
	shapes := map[string]struct {
		n int // an eighth of them
		p func(i int) ae.Payload
	}{
		"deltas of a text":      {500, func(int) ae.Payload { return &ae.TextDelta{BlockID: "b", Delta: long} }},
		"deltas of a reasoning": {500, func(int) ae.Payload { return &ae.AgentReasoningDelta{BlockID: "b", Delta: long} }},
		"open approvals":        {1000, func(i int) ae.Payload { return &ae.ApprovalRequested{ApprovalID: fmt.Sprint(long, i)} }},
		"keys of one merge":     {500, nil},
	}
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("AGENTEVENTS_LONG") != "" {
				c.n = 12_500
			}
			scale.Linear(t, c.n, func(n int) func() {
				page := live.New(live.Options{Linger: -1, KeepBytes: 1 << 30})
				write := func(i int, p ae.Payload) {
					require.NoError(t, page.WriteEvent(t.Context(), ae.Event{ID: "e", RunID: "r", AgentID: "a", Sequence: uint64(i), SchemaVersion: ae.SchemaVersion, Payload: p}))
				}
				if c.p == nil {
					keys := map[string]string{}
					for i := range n {
						keys[fmt.Sprint("k", i)] = long
					}
					write(0, &ae.StatePatched{Op: ae.PatchMerge, Path: "s", Value: ae.JSONOf(keys)})
				} else {
					for i := range n {
						write(i, c.p(i))
					}
				}
				require.NoError(t, page.Close())
				return func() {
					w := httptest.NewRecorder()
					aguiHandler(page).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/r/agui", nil))
					require.Greater(t, w.Body.Len(), n*len(long))
				}
			})
		})
	}
}

// The answer has the frames of the encoder, with the ids of the stream: a frame in a
// frame would name no event.
func TestEncodedStreamOfFrames(t *testing.T) {
	asKAOS := func(sse bool) func() live.Encoder {
		return func() live.Encoder { return kaos.NewEncoder(kaos.EncoderOptions{SSE: sse}) }
	}
	asAGUI := func(sse bool) func() live.Encoder {
		return func() live.Encoder { return agui.NewEncoder(agui.EncoderOptions{SSE: sse}) }
	}
	page, run, _, em := start(t, live.Options{Linger: -1})
	emit(t, run, &ae.RunStarted{Name: "name"})
	emit(t, run, &ae.IntentClassified{Intent: "event: x\ndata: y\n\n"})
	deltas(t, run, 2)
	emit(t, run, &ae.RunCompleted{})
	require.NoError(t, em.Close(t.Context()))
	fields := func(newEncoder func() live.Encoder) []string {
		m := http.NewServeMux()
		m.Handle("/runs/{run}", page.EncodedHandler(newEncoder))
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/runs/"+run.ID(), nil))
		comment, frames, _ := strings.Cut(answer.Body.String(), "\n\n")
		require.Equal(t, ":", comment)
		return strings.Split(strings.TrimSuffix(frames, "\n\n"), "\n\n")
	}
	plain, framed := fields(asKAOS(false)), fields(asKAOS(true))
	require.Len(t, plain, 3)
	for i, frame := range plain {
		typ := []string{"intent_classified", "text_delta", "text_delta"}[i]
		require.Equal(t, strings.Replace(frame, "data:", "event: "+typ+"\ndata:", 1), framed[i])
		require.Regexp(t, fmt.Sprintf(`^id: %d-[0-9a-z]+\ndata: \{[^\n]*\}$`, i+1), frame)
	}
	require.Equal(t, fields(asAGUI(false)), fields(asAGUI(true)))
}
