package otelhook_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/txtar"
	"github.com/agentevents/agentevents/otelhook"
)

var update = flag.Bool("update", false, "write the golden files")

// planted are the words of content in the logs of testdata.
var planted = regexp.MustCompile(`zebra-[a-z]+`)

// A row is a line of a digest: a span, an event of it or a log record.
type row struct {
	id    string // the row's place, the same for all values of Options.Content
	depth int
	head  string
	keys  []string // of its attributes, each with the planted words in the value
}

// Keys that are left out of the digest, because every span or every log record has them.
var (
	everySpan = []string{"agentevents.run.id", "agentevents.schema", "agentevents.seq.first", "agentevents.seq.last", "gen_ai.operation.name"}
	everyLog  = []string{"agentevents.run.id", "agentevents.seq"}
)

const legend = `A log, and what the hook makes of it: spans, events of spans and log records, with the
keys of their attributes. What follows [spans both] is there only with these values of
Options.Content, and the rest always. A word in brackets behind a key is content of the log.
Every span has agentevents.run.id, .schema, .seq.first, .seq.last and gen_ai.operation.name
as well, every log record agentevents.run.id and .seq. Details have what their span has.

`

// own are the keys of a span's row: the keys of details without the ones that they repeat.
func own(name string, keys, ofSpan []string) []string {
	if !strings.HasSuffix(name, ".details") {
		return keys
	}
	return slices.DeleteFunc(keys, func(k string) bool {
		is := func(c string) bool { return strings.HasPrefix(k, c) }
		content := slices.ContainsFunc([]string{"gen_ai.input.", "gen_ai.output.", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "agentevents.approval.answer", "agentevents.clarification.answer"}, is)
		return !content && slices.Contains(slices.Concat(everySpan, ofSpan), k)
	})
}

// keys returns the keys of attributes, without those that all have.
func keys(t testing.TB, attrs []attribute.KeyValue, all []string) (keys []string) {
	t.Helper()
	found := 0
	for _, a := range attrs {
		if slices.Contains(all, string(a.Key)) {
			found++
			continue
		}
		keys = append(keys, with(string(a.Key), a.Value.String()))
	}
	require.Equal(t, len(all), found)
	slices.Sort(keys)
	return keys
}

// with is a key with the planted words of its value.
func with(key, value string) string {
	if words := planted.FindAllString(value, -1); len(words) > 0 {
		return key + "(" + strings.Join(words, " ") + ")"
	}
	return key
}

// digest returns the rows of a trace, the children of a span after it.
func digest(t testing.TB, list []tracetest.SpanStub, logs []record) (rows []row) {
	seen := map[string]int{}
	add := func(under string, depth int, head string, keys []string) string {
		id := under + "/" + head
		seen[id]++
		id = fmt.Sprint(id, "#", seen[id])
		rows = append(rows, row{id, depth, head, keys})
		return id
	}
	var below func(parent trace.SpanID, under string, depth int)
	below = func(parent trace.SpanID, under string, depth int) {
		for _, s := range list {
			if s.Parent.SpanID() != parent {
				continue
			}
			head := s.Name + ", " + s.SpanKind.String()
			if s.Status.Code == codes.Error {
				head += ", error"
			}
			for _, l := range s.Links {
				head += ", linked"
				for _, a := range l.Attributes {
					head += " " + a.Value.String()
				}
			}
			of := keys(t, s.Attributes, everySpan)
			if s.Status.Description != "" {
				of = append(of, with("status.description", s.Status.Description))
			}
			id := add(under, depth, head, of)
			for _, e := range s.Events {
				add(id, depth+1, "event "+e.Name, own(e.Name, keys(t, e.Attributes, nil), of))
			}
			for _, rec := range logs {
				if rec.span.SpanID() == s.SpanContext.SpanID() {
					severity := map[int]string{5: "DEBUG", 9: "INFO", 13: "WARN", 17: "ERROR"}[rec.Severity]
					require.NotEmpty(t, severity)
					add(id, depth+1, "log "+rec.EventName, append([]string{severity}, own(rec.EventName, keys(t, rec.Attributes, everyLog), of)...))
				}
			}
			below(s.SpanContext.SpanID(), id, depth+1)
		}
	}
	below(trace.SpanID{}, "", 0)
	return rows
}

var contents = []otelhook.Content{otelhook.ContentNone, otelhook.ContentSpans, otelhook.ContentEvents, otelhook.ContentBoth}

// merged writes the digests of all contents as one: the last one has all rows.
func merged(t testing.TB, digests map[otelhook.Content][]row) string {
	in := map[string]map[otelhook.Content]row{} // by the row's place
	for c, rows := range digests {
		for _, r := range rows {
			if in[r.id] == nil {
				in[r.id] = map[otelhook.Content]row{}
			}
			in[r.id][c] = r
		}
	}
	all := digests[otelhook.ContentBoth]
	require.Len(t, all, len(in), "content adds rows and takes none away")
	var b strings.Builder
	for _, r := range all {
		there := in[r.id]
		indent := strings.Repeat("  ", r.depth)
		head := only(func(c otelhook.Content) bool { _, ok := there[c]; return ok })
		groups := map[string][]string{} // of keys, by the contents that have them
		var order []string
		var every []string
		for _, c := range contents {
			every = append(every, there[c].keys...)
		}
		slices.Sort(every)
		for _, k := range slices.Compact(every) {
			in := only(func(c otelhook.Content) bool { return slices.Contains(there[c].keys, k) })
			if groups[in] == nil && in != head {
				order = append(order, in)
			}
			groups[in] = append(groups[in], k)
		}
		fmt.Fprintf(&b, "%s%s%s", indent, head, r.head)
		if same := groups[head]; same != nil {
			b.WriteString(": " + strings.Join(same, " "))
		}
		b.WriteString("\n")
		for _, in := range order {
			fmt.Fprintf(&b, "%s    %s%s\n", indent, in, strings.Join(groups[in], " "))
		}
	}
	return b.String()
}

// only names the contents for which something holds, or is empty if it holds for all.
func only(holds func(otelhook.Content) bool) string {
	var names []string
	for _, c := range contents {
		if holds(c) {
			names = append(names, string(c))
		}
	}
	if len(names) == len(contents) {
		return ""
	}
	return "[" + strings.Join(names, " ") + "] "
}

// TestDialects: a log of each dialect becomes the tree of its golden file. Without content no text
// of people, models and tools gets out; with it, only in the selected places.
func TestDialects(t *testing.T) {
	t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
	for name, decoder := range map[string]func() ae.Decoder{
		"kahn":       func() ae.Decoder { return kahn.NewDecoder(kahn.Options{}) },
		"multiagent": func() ae.Decoder { return multiagent.NewDecoder(multiagent.Options{}) },
		"kaos": func() ae.Decoder {
			return kaos.NewDecoder(kaos.Options{Anchor: time.Unix(1777971600, 0), AnchorSeconds: 1000})
		},
		"openharness": func() ae.Decoder { return openharness.NewDecoder(openharness.Options{RunID: "run"}) },
		"openwop":     func() ae.Decoder { return openwop.NewDecoder(openwop.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".txtar")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			golden := txtar.Parse(string(text))
			log := golden.Get("log")
			words := planted.FindAllString(log, -1)
			slices.Sort(words)
			words = slices.Compact(words)
			require.Greater(t, len(words), 5)

			digests := map[otelhook.Content][]row{}
			for _, c := range contents {
				digests[c] = play(t, log, decoder(), c)
			}
			got := txtar.Archive{Comment: legend}
			got.Add("log", log)
			tree := merged(t, digests)
			got.Add("tree", tree)
			nowhere := slices.DeleteFunc(words, func(w string) bool { return slices.Contains(planted.FindAllString(tree, -1), w) })
			got.Add("nowhere", strings.Join(append(nowhere, ""), "\n"))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o666))
				return
			}
			require.Equal(t, string(text), got.String(), "if this is meant, run go test -update and read the diff")
		})
	}
}

// play gives a log to a hook and returns the rows of its spans. Events are both logs and events of
// spans, and reasoning is requested, which has no effect without content.
func play(t testing.TB, log string, d ae.Decoder, content otelhook.Content) []row {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	o := otelhook.Options{Content: content, Reasoning: true, Events: otelhook.EventsBoth, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
	if content == otelhook.ContentNone {
		o.Content = "" // the default
	}
	r, logs := logged(t, o)
	for ev, err := range ae.NewReader(strings.NewReader(log), ae.ReaderOptions{Decoder: d}).All() {
		require.NoError(t, err)
		require.NoError(t, r.hook.WriteEvent(context.Background(), ev))
	}
	require.NoError(t, r.hook.Close())
	list := r.spans()
	wantOneTree(t, list)
	rows := digest(t, list, logs.list)

	onSpans, onEvents := "", logs.String()
	for _, s := range list {
		for _, e := range s.Events {
			onEvents += fmt.Sprintf("%+v\n", e)
		}
		s.Events = nil
		onSpans += fmt.Sprintf("%+v\n", s)
	}
	require.NotRegexp(t, planted, strings.Join(measured(t, reader), "\n"))
	for where, text := range map[otelhook.Content]string{otelhook.ContentSpans: onSpans, otelhook.ContentEvents: onEvents} {
		require.Equal(t, content == where || content == otelhook.ContentBoth, planted.MatchString(text), "content %s, in %s", content, where)
	}
	events := 0
	for _, row := range rows {
		if strings.HasPrefix(row.head, "log ") {
			events++
		}
	}
	require.Len(t, logs.list, events, "every log record belongs to a span")
	return rows
}
