package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/replay"
	"github.com/agentevents/agentevents/internal/scale"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/internal/txtar"
)

// An otlpSpan is a span of OTLP/JSON, as far as tests look at it.
type otlpSpan struct {
	TraceID string `json:"traceId"`
	ID      string `json:"spanId"`
	Parent  string `json:"parentSpanId"`
	Name    string `json:"name"`
	Kind    int    `json:"kind"`
	Start   string `json:"startTimeUnixNano"`
	End     string `json:"endTimeUnixNano"`
	Attrs   []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	} `json:"attributes"`
	Status struct {
		Code    int
		Message string
	}
}

func (s *otlpSpan) attr(key string) string {
	for _, a := range s.Attrs {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// spansOf reads requests, one a line.
func spansOf(t *testing.T, text string) (all []otlpSpan) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []otlpSpan } }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Len(t, r.ResourceSpans, 1)
		require.Len(t, r.ResourceSpans[0].ScopeSpans, 1)
		all = append(all, r.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return all
}

// requireTrees checks that spans are trees: each trace has one root, each parent is there, no id
// comes twice and nothing ends before it starts. It returns the number of traces.
func requireTrees(t *testing.T, all []otlpSpan) int {
	t.Helper()
	ids, roots, traces := map[string]bool{}, map[string]int{}, map[string]bool{}
	for _, s := range all {
		require.Regexp(t, `^[0-9a-f]{32}$`, s.TraceID)
		require.Regexp(t, `^[0-9a-f]{16}$`, s.ID)
		require.False(t, ids[s.TraceID+s.ID], "%s comes twice", s.Name)
		ids[s.TraceID+s.ID] = true
		traces[s.TraceID] = true
	}
	for _, s := range all {
		if s.Parent == "" {
			roots[s.TraceID]++
		} else {
			require.True(t, ids[s.TraceID+s.Parent], "%s has no parent", s.Name)
		}
		start, err := strconv.ParseInt(s.Start, 10, 64)
		require.NoError(t, err)
		end, err := strconv.ParseInt(s.End, 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, end, start, s.Name)
		require.GreaterOrEqual(t, start, int64(0), s.Name)
		require.NotEmpty(t, s.Name)
	}
	for trace := range traces {
		require.Equal(t, 1, roots[trace], "roots of %s", trace)
	}
	return len(traces)
}

func TestExportOTLP(t *testing.T) {
	r := exec("", "export", "otlp", clean)
	require.Equal(t, exitOK, r.code)
	require.Equal(t, "exported: spans 3, runs 1, events 12\n", r.err)
	golden(t, "clean.otlp.jsonl", r.out)
	all := spansOf(t, r.out)
	require.Equal(t, 1, requireTrees(t, all))
	require.NotContains(t, r.out, "write the notes", "content")

	require.Equal(t, r, exec("", "export", "otlp", clean), "again")
	require.Equal(t, r, exec(read(t, clean), "export", "otlp", "-"))
	require.Equal(t, result{exitOK, r.out, ""}, exec("", "export", "--quiet", "otlp", clean))
	require.Equal(t, result{exitOK, "", "exported: spans 0, runs 0, events 0\n"}, exec("", "export", "otlp", "-"))

	out := filepath.Join(t.TempDir(), "out.jsonl")
	require.Equal(t, result{exitOK, "", r.err}, exec("", "export", "otlp", "--out", out, clean))
	require.Equal(t, r.out, read(t, out))
	require.Equal(t, exitUsage, exec("", "export", "otlp", "--out", out, filepath.Join(t.TempDir(), "no.jsonl")).code)
	require.Equal(t, exitProblems, exec("no event\n", "export", "chrome", "--out", out, "-").code)
	require.Equal(t, r.out, read(t, out), "stays if nothing can be read")

	more := exec("", "export", "otlp", "--content", "--service", "s", "--resource", "a.b=c=d", "--semconv", "1.41.0", clean)
	require.Equal(t, exitOK, more.code, more.err)
	require.Contains(t, more.out, "write the notes")
	require.Contains(t, more.out, `{"key":"a.b","value":{"stringValue":"c=d"}},{"key":"service.name","value":{"stringValue":"s"}}`)
	require.Contains(t, more.out, `"schemaUrl":"https://opentelemetry.io/schemas/1.41.0"`)

	twice := exec("", "export", "otlp", clean, clean)
	require.Equal(t, result{exitOK, r.out, "exported: spans 3, runs 1, events 24\nevents left out: 12: they repeat a sequence of their run, or go back\n"}, twice)

	two := exec("", "export", "otlp", broken)
	require.Equal(t, exitProblems, two.code, "for the bad line")
	require.Contains(t, two.err, broken+":7: ")
	require.Equal(t, 2, requireTrees(t, spansOf(t, two.out)))

	missing := exec("", "export", "otlp", "nowhere.jsonl", clean)
	require.Equal(t, exitUsage, missing.code)
	require.Equal(t, r.out, missing.out, "the other files are exported")
}

// A log that a crash cut off anywhere is exported, and its spans have the ids of the whole log's
// spans.
func TestExportCutLogs(t *testing.T) {
	lines := strings.SplitAfter(read(t, clean), "\n")
	whole := map[string]string{} // names by id
	for _, s := range spansOf(t, exec("", "export", "otlp", clean).out) {
		whole[s.TraceID+s.ID] = s.Name
	}
	for n := 1; n < len(lines)-1; n++ {
		cut := exec(strings.Join(lines[:n], ""), "export", "otlp", "-")
		require.Equal(t, exitOK, cut.code)
		all := spansOf(t, cut.out)
		require.Equal(t, 1, requireTrees(t, all))
		for _, s := range all {
			require.Equal(t, whole[s.TraceID+s.ID], s.Name)
		}
		root := all[slices.IndexFunc(all, func(s otlpSpan) bool { return s.Parent == "" })]
		if strings.Contains(strings.Join(lines[:n], ""), "run.completed") {
			continue
		}
		require.Regexp(t, `spans without an end event: \d+ \(.*shutdown \d+\)\n`, cut.err)
		require.Equal(t, "shutdown", root.attr("agentevents.closed.reason"))
		require.Equal(t, 2, root.Status.Code)
	}
}

// A collector is a test server that takes requests.
func collector(t *testing.T, handle func(n int, w http.ResponseWriter)) (url string, bodies, headers *[]string) {
	bodies, headers = &[]string{}, &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if req.URL.Path != "/v1/traces" || req.Method != http.MethodPost || !json.Valid(body) {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		*bodies = append(*bodies, string(body)+"\n")
		*headers = append(*headers, req.Header.Get("X-Key")+" "+req.Header.Get("X-Other"))
		handle(len(*bodies), w)
	}))
	t.Cleanup(server.Close)
	return server.URL, bodies, headers
}

func TestExportEndpoint(t *testing.T) {
	file := exec("", "export", "otlp", clean)
	url, bodies, headers := collector(t, func(n int, w http.ResponseWriter) {
		if n == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
	})
	env := map[string]string{headersEnv: "x-key=a%20b,x-other=env"}
	r := execEnv(env, "", "export", "otlp", "--endpoint", url, "--header", "x-other=flag", clean)
	require.Equal(t, result{exitOK, "", file.err}, r)
	require.Equal(t, []string{file.out, file.out}, *bodies)
	require.Equal(t, []string{"a b flag", "a b flag"}, *headers)

	url, bodies, _ = collector(t, func(_ int, w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too \u001b[2Jold"}}`)
	})
	r = exec("", "export", "otlp", "--endpoint", url, clean)
	require.Equal(t, exitProblems, r.code)
	require.Equal(t, "exported: spans 1, runs 1, events 12\nagentevents export: the endpoint refused 2 spans: too \\x1b[2Jold\n", r.err)
	require.Len(t, *bodies, 1)

	url, _, _ = collector(t, func(_ int, w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) })
	r = exec("", "export", "otlp", "--endpoint", url, clean)
	require.Equal(t, exitUsage, r.code)
	require.Equal(t, "agentevents export: the endpoint answered 401 Unauthorized\n", r.err)

	server := httptest.NewServer(nil)
	server.Close()
	r = exec("", "export", "otlp", "--endpoint", server.URL, "--retries", "0", clean)
	require.Equal(t, exitUsage, r.code)
	require.True(t, strings.HasPrefix(r.err, "agentevents export: otlpjson: no answer from 127.0.0.1:"), r.err)
}

// Spans that have ended in a log that goes on are sent before the log ends.
func TestExportFollows(t *testing.T) {
	const log = `{"id":"1","sequence":0,"timestamp":"2026-01-02T10:00:00Z","type":"run.started","runId":"r","payload":{}}
{"id":"2","sequence":1,"timestamp":"2026-01-02T10:00:01Z","type":"agent.toolReturned","runId":"r","agentId":"a","payload":{"callId":"c","toolId":"t","status":"ok","oneEvent":true,"durationMs":5}}
`
	sent := make(chan string, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		sent <- string(body)
	}))
	defer server.Close()
	for _, to := range [][]string{{"--endpoint", server.URL}, nil} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan int)
		go func() {
			args := append([]string{"export", "otlp", "--quiet", "--flush-every", "1ms", "-"}, to...)
			code := run(args, inR, outW, io.Discard, func(string) string { return "" })
			outW.Close()
			done <- code
		}()
		if to == nil {
			go func() {
				for lines := bufio.NewScanner(outR); lines.Scan(); {
					sent <- lines.Text()
				}
			}()
		}
		_, err := io.WriteString(inW, log)
		require.NoError(t, err)
		first := spansOf(t, <-sent) // while the log goes on
		require.Len(t, first, 1)
		require.Equal(t, "execute_tool t", first[0].Name)
		require.NoError(t, inW.Close())
		require.Equal(t, exitOK, <-done)
		last := spansOf(t, <-sent)
		require.Len(t, last, 1)
		require.Equal(t, first[0].Parent, last[0].ID)
	}
}

func TestExportUsage(t *testing.T) {
	own := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(own, []byte(read(t, clean)), 0o600))
	for _, test := range []struct{ args, want string }{
		{"", "a form is needed: otlp, chrome"},
		{"otel -", `unknown form "otel"; known: otlp, chrome`},
		{"otlp", "a FILE is needed; - is standard input"},
		{"otlp --endpoint x --out y -", "--endpoint and --out exclude each other: give one of them"},
		{"otlp --endpoint localhost:4318?key=secret -", "--endpoint is not a URL like http://localhost:4318"},
		{"otlp --endpoint http://x --header secret -", "--header: want NAME=VALUE"},
		{"otlp --resource =secret -", "--resource: want NAME=VALUE"},
		{"otlp --endpoint http://x --retries -1 -", "--retries must not be negative"},
		{"otlp --flush-every -1s -", "--flush-every must not be negative"},
		{"chrome --flush-every 1s -", "--flush-every is a flag of otlp"},
		{"otlp --semconv 1.0 -", `invalid value "1.0" for flag --semconv: want 1.41.0, latest`},
		{"otlp --out " + own + " " + own, "--out is a FILE that is read: name another file"},
		{"otlp --out " + own + " --resource secret -", "--resource: want NAME=VALUE"},
		{"otlp --out " + own, "a FILE is needed; - is standard input"},
		{"chrome --endpoint http://x -", "--endpoint is a flag of otlp"},
		{"chrome --new-ids -", "--new-ids is a flag of otlp"},
		{"otlp --header a=b -", "--header needs --endpoint"},
		{"otlp --gzip -", "--gzip needs --endpoint"},
	} {
		r := exec("", strings.Fields("export "+test.args)...)
		require.Equal(t, result{exitUsage, "", "agentevents export: " + test.want + "\nRun 'agentevents help export' for usage.\n"}, r)
	}
	require.Equal(t, read(t, clean), read(t, own))
	r := execEnv(map[string]string{headersEnv: "k=%zz"}, "", "export", "otlp", "--endpoint", "http://x", "-")
	require.Equal(t, "agentevents export: "+headersEnv+" has a value that is not percent-encoded\nRun 'agentevents help export' for usage.\n", r.err)
	require.Equal(t, exitUsage, exec("", "export", "otlp", "--out", t.TempDir(), clean).code, "a folder")
}

// A chromeEvent is one of the Trace Event Format.
type chromeEvent struct {
	Ph, Name, Cat string
	Pid, Tid      int
	Ts, Dur       float64
	Args          map[string]any
}

func chromeEvents(t *testing.T, text string) []chromeEvent {
	t.Helper()
	var trace struct {
		TraceEvents []chromeEvent
	}
	require.NoError(t, json.Unmarshal([]byte(text), &trace))
	require.NotNil(t, trace.TraceEvents)
	return trace.TraceEvents
}

// requireNested checks that the complete events of a track are nested: viewers show no others.
// It returns the names of the tracks.
func requireNested(t *testing.T, events []chromeEvent) (names []string) {
	t.Helper()
	type thread struct{ pid, tid int }
	named, open := map[thread]string{}, map[thread][]float64{}
	for _, e := range events {
		at := thread{e.Pid, e.Tid}
		if e.Ph == "M" {
			if e.Name == "thread_name" {
				require.NotContains(t, named, at)
				named[at] = e.Args["name"].(string)
				names = append(names, named[at])
			}
			continue
		}
		require.Equal(t, "X", e.Ph)
		require.Contains(t, named, at)
		require.GreaterOrEqual(t, e.Ts, 0.0)
		require.GreaterOrEqual(t, e.Dur, 0.0)
		ends := open[at]
		for len(ends) > 0 && ends[len(ends)-1] <= e.Ts {
			ends = ends[:len(ends)-1]
		}
		if len(ends) > 0 {
			require.LessOrEqual(t, e.Ts+e.Dur, ends[len(ends)-1]+0.001, e.Name)
		}
		open[at] = append(ends, e.Ts+e.Dur)
	}
	return names
}

func TestExportChrome(t *testing.T) {
	r := exec("", "export", "chrome", clean)
	require.Equal(t, exitOK, r.code)
	require.Equal(t, "exported: spans 3, runs 1, events 12\n", r.err)
	golden(t, "clean.trace.json", r.out)
	events := chromeEvents(t, r.out)
	require.Equal(t, []string{"run", "writer"}, requireNested(t, events))
	require.NotContains(t, r.out, "write the notes")
	require.Contains(t, exec("", "export", "chrome", "--content", clean).out, "write the notes")
	require.Equal(t, r, exec("", "export", "chrome", clean), "again")

	kinds := exec("", "export", "chrome", "../../testdata/kinds.jsonl")
	require.Equal(t, exitOK, kinds.code)
	attrs := 0
	for _, e := range chromeEvents(t, kinds.out) {
		for key, value := range e.Args {
			if point, ok := value.(map[string]any); ok {
				require.Regexp(t, `^\d+ `, key)
				require.Regexp(t, `^[+-]\d`, point["at"])
				attrs += len(point) - 1
			}
		}
	}
	require.Positive(t, attrs, "events of spans have attributes")

	empty := exec("", "export", "chrome", "-")
	require.Equal(t, exitOK, empty.code)
	require.Empty(t, chromeEvents(t, empty.out))

	// Two calls that overlap need two tracks, and a third after them none.
	log := ""
	for i, e := range []struct{ kind, payload string }{
		{"agent.started", `{"task":"t"}`},
		{"agent.toolCalled", `{"toolId":"a","callId":"1","arguments":{}}`},
		{"agent.toolCalled", `{"toolId":"b","callId":"2","arguments":{}}`},
		{"agent.toolReturned", `{"toolId":"a","callId":"1","status":"ok"}`},
		{"agent.toolReturned", `{"toolId":"b","callId":"2","status":"ok"}`},
		{"agent.toolCalled", `{"toolId":"c","callId":"3","arguments":{}}`},
		{"agent.toolReturned", `{"toolId":"c","callId":"3","status":"ok"}`},
	} {
		n := strconv.Itoa(i)
		log += `{"id":"` + n + `","sequence":` + n + `,"timestamp":"2026-01-02T10:00:0` + n + `Z","type":"` + e.kind + `","runId":"r","agentId":"w","payload":` + e.payload + "}\n"
	}
	r = exec(log, "export", "chrome", "-")
	require.Equal(t, exitOK, r.code, r.err)
	events = chromeEvents(t, r.out)
	names := requireNested(t, events)
	require.Equal(t, 2, len(slices.DeleteFunc(names, func(name string) bool { return name != "w" })))
	tid := map[string]int{}
	for _, e := range events {
		tid[e.Name] = e.Tid
	}
	require.NotEqual(t, tid["execute_tool a"], tid["execute_tool b"])
	require.Equal(t, tid["execute_tool a"], tid["execute_tool c"])
}

// Spans that nothing ends are deep, and all may begin and end at the same time.
func TestExportChromeIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	scale.Linear(t, 2000, func(n int) func() {
		deep := []*spans.Span{{}}
		for range n {
			deep = append(deep, &spans.Span{Parent: deep[len(deep)-1]})
		}
		slices.Reverse(deep) // inner ones end first
		return func() {
			c := &chromeTrace{w: io.Discard, log: replay.New(spans.Options{}), spans: slices.Clone(deep)}
			require.NoError(t, c.Close(t.Context()))
		}
	})
}

func TestExportOutputFails(t *testing.T) {
	noEnv := func(string) string { return "" }
	for _, form := range []string{"otlp", "chrome"} {
		var errs strings.Builder
		code := run([]string{"export", form, clean}, nil, pipeEnd{errors.New("disk full")}, &errs, noEnv)
		require.Equal(t, exitUsage, code, form)
		require.Equal(t, "agentevents export: writing the output: disk full\n", errs.String())
	}
}

// Every capture is exported as connected trees, the same each time.
func TestExportCaptures(t *testing.T) {
	small, err := filepath.Glob("../../capture/claude/testdata/*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, small)
	whole, err := filepath.Glob(sessions + "*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, whole)
	for _, name := range append(small, whole...) {
		log := exec("", "import", "claude", "--time", "2026-01-02T00:00:00Z", name)
		require.Equal(t, exitOK, log.code, "%s: %s", name, log.err)
		r := exec(log.out, "export", "otlp", "-")
		require.Equal(t, exitOK, r.code, name)
		require.NotContains(t, r.err, "left out", name)
		all := spansOf(t, r.out)
		require.Equal(t, 1, requireTrees(t, all), name)
		require.Equal(t, r, exec(log.out, "export", "otlp", "-"), name)
		drawn := exec(log.out, "export", "chrome", "-")
		require.Equal(t, exitOK, drawn.code, name)
		require.Len(t, regexp.MustCompile(`"ph":"X"`).FindAllString(drawn.out, -1), len(all))
		requireNested(t, chromeEvents(t, drawn.out))
	}
}

// A saved capture that has some times gets no others: its spans are no months long, and none
// begins after those below it.
func TestExportCaptureTimes(t *testing.T) {
	for _, args := range []string{"import claude", "import claude --time 2027-01-01T00:00:00Z"} {
		log := exec("", append(strings.Fields(args), "../../capture/claude/testdata/subagent.stream.jsonl")...)
		all := spansOf(t, exec(log.out, "export", "otlp", "-").out)
		root := all[len(all)-1]
		require.Empty(t, root.Parent)
		for _, s := range all {
			require.GreaterOrEqual(t, s.Start, root.Start, s.Name)
			require.LessOrEqual(t, s.End, root.End, s.Name)
			require.True(t, strings.HasPrefix(s.Start, "17699400"), "%s is of the capture's ten seconds: %s", s.Name, s.Start)
		}
	}
}

// Logs of all formats are exported as connected trees, and nothing of a good log is repeated.
func TestExportFormats(t *testing.T) {
	files, err := filepath.Glob("../../dialect/testdata/golden/variants-*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range append(files, "../../dialect/testdata/golden/quickstart.txtar", "../../dialect/testdata/golden/standard.txtar") {
		n := 0
		for _, file := range txtar.Parse(read(t, name)).Files {
			if findWire(file.Name) == nil {
				continue // a list of losses, or the events that came back
			}
			n++
			at := name + " " + file.Name
			for _, flags := range []string{"", "--new-ids", "--content --no-steps"} {
				r := exec(file.Text, append(strings.Fields("export otlp - --from "+file.Name), strings.Fields(flags)...)...)
				require.Equal(t, exitOK, r.code, "%s: %s", at, r.err)
				all := spansOf(t, r.out)
				if flags == "--new-ids" {
					requireTrees(t, all)
				}
				if strings.Contains(name, "quickstart") {
					require.NotContains(t, r.err, "repeat", at)
				}
				seen := map[string]bool{}
				for _, s := range all {
					require.False(t, seen[s.TraceID+s.ID], "%s: %s comes twice", at, s.Name)
					seen[s.TraceID+s.ID] = true
				}
			}
			drawn := exec(file.Text, "export", "chrome", "--from", file.Name, "-")
			require.Equal(t, exitOK, drawn.code, at)
			requireNested(t, chromeEvents(t, drawn.out))
		}
		require.Positive(t, n)
	}
	r := exec("", "export", "otlp", "--new-ids", "../../testdata/kinds.jsonl")
	require.Equal(t, exitOK, r.code, r.err)
	requireTrees(t, spansOf(t, r.out))
}

// A run that a second process goes on with is one trace, and the spans that had ended before
// keep their ids.
func TestExportResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	ctx := t.Context()
	open := func() (*agentevents.Emitter, *agentevents.Writer) {
		log, err := agentevents.OpenFile(path, agentevents.WriterOptions{})
		require.NoError(t, err)
		em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived, Sinks: []agentevents.Sink{log}})
		require.NoError(t, err)
		return em, log
	}
	em, log := open()
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	require.NoError(t, run.Emit(ctx, &agentevents.RunStarted{}))
	require.NoError(t, a.Emit(ctx, &agentevents.AgentStarted{Task: "t"}))
	_, err = a.Do(ctx, &agentevents.ToolCalled{ToolID: "first"}, func(context.Context) (agentevents.JSON, error) { return "1", nil })
	require.NoError(t, err)
	require.NoError(t, log.Close()) // the process ends here
	before := exec("", "export", "otlp", path)
	require.Equal(t, exitOK, before.code, before.err)

	file, err := os.Open(path)
	require.NoError(t, err)
	folded, err := agentevents.FoldLog(agentevents.NewReader(file, agentevents.ReaderOptions{}), agentevents.FoldOptions{})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	em, log = open()
	run, err = em.Resume(folded.Snapshot("r"))
	require.NoError(t, err)
	a = run.Agent("a")
	_, err = a.Do(ctx, &agentevents.ToolCalled{ToolID: "second"}, func(context.Context) (agentevents.JSON, error) { return "2", nil })
	require.NoError(t, err)
	require.NoError(t, a.Emit(ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	require.NoError(t, run.Emit(ctx, &agentevents.RunCompleted{}))
	require.NoError(t, log.Close())

	after := exec("", "export", "otlp", path)
	require.Equal(t, exitOK, after.code, after.err)
	require.Equal(t, after, exec("", "export", "otlp", path))
	require.NotContains(t, after.err, "without an event")
	all := spansOf(t, after.out)
	require.Equal(t, 1, requireTrees(t, all))
	ids := map[string]string{}
	for _, s := range all {
		ids[s.TraceID+s.ID] = s.Name
	}
	for _, s := range spansOf(t, before.out) {
		require.Equal(t, s.Name, ids[s.TraceID+s.ID])
	}
	require.Len(t, all, 4)
}

// The spans have the ids that the log recorded, unless new ones are requested.
func TestExportRecordedIDs(t *testing.T) {
	const trace, span, host = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "00f067aa0ba902b8"
	log := `{"id":"1","sequence":0,"timestamp":"2026-01-02T10:00:00Z","type":"run.started","runId":"r","traceId":"` + trace + `","spanId":"` + span + `","parentSpanId":"` + host + `","payload":{}}
{"id":"2","sequence":1,"timestamp":"2026-01-02T10:00:01Z","type":"run.completed","runId":"r","traceId":"` + trace + `","spanId":"` + span + `","payload":{}}
`
	all := spansOf(t, exec(log, "export", "otlp", "-").out)
	require.Len(t, all, 1)
	require.Equal(t, []string{trace, span, host}, []string{all[0].TraceID, all[0].ID, all[0].Parent})
	all = spansOf(t, exec(log, "export", "otlp", "--new-ids", "-").out)
	require.Len(t, all, 1)
	require.NotEqual(t, trace, all[0].TraceID)
	require.NotEqual(t, span, all[0].ID)
	require.Empty(t, all[0].Parent)
}

// A log of another program may have no times. Nothing is exported as of 1970 that has another time.
func TestExportWithoutTimes(t *testing.T) {
	line := func(n, at, kind, payload string) string {
		return `{"id":"` + n + `","sequence":` + n + `,` + at + `"type":"` + kind + `","runId":"r","agentId":"a","payload":` + payload + "}\n"
	}
	at := `"timestamp":"2026-01-02T10:00:00Z",`
	log := line("0", "", "agent.started", "{}") + line("1", at, "agent.toolCalled", `{"callId":"c","toolId":"t"}`) +
		line("2", "", "agent.toolReturned", `{"callId":"c","toolId":"t","status":"ok"}`)
	const counted = "events without a time: 2: they get the time of the event before them, or of the first event with a time\n"
	r := exec(log, "export", "otlp", "-")
	require.Equal(t, exitOK, r.code)
	require.Contains(t, r.err, counted)
	all := spansOf(t, r.out)
	require.Len(t, all, 3)
	for _, s := range all {
		require.Equal(t, "1767348000000000000", s.Start)
		require.Equal(t, "1767348000000000001", s.End)
	}
	drawn := exec(log, "export", "chrome", "-")
	require.Contains(t, drawn.err, counted)
	for _, e := range chromeEvents(t, drawn.out) {
		require.Zero(t, e.Ts+e.Dur)
	}

	log = strings.ReplaceAll(log, at, "")
	for _, form := range []string{"otlp", "chrome"} {
		r := exec(log, "export", form, "-")
		require.Equal(t, "exported: spans 0, runs 0, events 3\nevents left out: 3: they have no time, and no event before them in their run has one\n", r.err)
	}

	const kaos = `{"timestamp":1001.25,"sequence":0,"session_id":"s","run_id":"run_1","agent_id":null,"content":"x","type":"text_delta"}
{"timestamp":1002,"sequence":1,"session_id":"s","run_id":"run_1","agent_id":"a","subject":"turn","phase":"start","span_id":"s1","parent_span_id":null,"name":"turn","attributes":{},"type":"span"}
`
	require.Contains(t, exec(kaos, "export", "otlp", "-").err, "events of 1970: 2: their clock has no date, and back ends look for newer spans\n")
	require.NotContains(t, exec(kaos, "export", "chrome", "-").err, "1970")
}
