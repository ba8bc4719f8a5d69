package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/disk"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otlpjson"
)

// headersEnv is the variable of OpenTelemetry for headers. Arguments are seen by everyone on a
// machine, so a key belongs there.
const headersEnv = "OTEL_EXPORTER_OTLP_HEADERS"

func exportCommand() command {
	return command{
		name:    "export",
		args:    "otlp|chrome [flags] FILE...",
		purpose: "write the spans of a log for a tracing back end or a timeline viewer",
		about: `
Each run becomes a tree of spans: the run, its workflows, phases and steps, its agents,
their model calls and their tool calls. If the log lacks the start of a run, its root span
is marked as made up. If the log lacks the start of another span, the span gets the duration
that its end states. A span without an end, as after a crash, ends with its last event.
An event without a time gets the time of the event before it in its run, or else the first
time of the run; a run without times is left out.

otlp writes OTLP/JSON, one request per line, or posts the requests to the --endpoint of an
OpenTelemetry collector or a back end. It repeats a request if the server is too busy. The
FILE - may be a log that is still being written, as from 'tail -f': ended spans are sent
after 5 seconds, or after --flush-every. Metrics are not exported; METRICS.md of otelhook
lists them. Headers, such as keys, are also read from ` + headersEnv + `.

A span has the ids in the log, or else ids derived from the ids of the run and its events:
a second export gives the same spans. A run that a second process continued is two linked
traces if the log has the ids of both. Otherwise it is one trace, and a pause is a gap
between its spans. If all events of a log have one time, as in a stream of Qwen Code, spans
begin earlier, by the durations that their ends state: agentevents.time.stated.

chrome writes the Trace Event Format, which ui.perfetto.dev and chrome://tracing open:
a process for each run and a track for each agent, or more if its work overlaps. It keeps
all spans in memory.

Prompts, texts, arguments and results are left out unless --content is given. Export does
not mask the secrets in them: run 'agentevents redact' first.

Standard error has the counts of exported, closed and left-out spans. If the endpoint
refuses spans, the exit status is 1; if it cannot be reached, 2.`,
		examples: []string{
			"agentevents export otlp --endpoint http://localhost:4318 run.jsonl",
			"agentevents redact run.jsonl | agentevents export chrome --content --out run.trace.json -",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			var from wireFlag
			var x export
			l.flags(fs)
			fs.Var(&from, "from", "the `FORMAT` of the files; default: detected line by line")
			x.flags(fs)
			return func(in *invocation) error {
				if len(in.args) == 0 {
					return usageError("a form is needed: otlp, chrome")
				}
				form := in.args[0]
				begin := exportForms[form]
				if begin == nil {
					return usageError(fmt.Sprintf("unknown form %q; known: otlp, chrome", form))
				}
				in.args = in.args[1:]
				if err := x.check(in, form, fs); err != nil {
					return err
				}
				l.decoder = from.newDecoder(reading{run: l.run})
				lines, err := l.each(in)
				if err != nil {
					return err
				}
				return x.run(in, begin, lines, &l)
			}
		},
	}
}

// run exports the events of a log.
func (x *export) run(in *invocation, begin func(*export, *output) exporter, lines lineSeq, log *logReader) error {
	// The output file stays unchanged if nothing can be read.
	var to exporter
	var done func() error
	start := func() error {
		w, end, err := x.open(in)
		if err == nil {
			to, done = begin(x, w), end
		}
		return err
	}
	var err error
	for _, line := range lines {
		if to == nil {
			if err := start(); err != nil {
				return err
			}
		}
		if err = to.Export(context.Background(), line.Event); err != nil {
			break
		}
	}
	if to == nil {
		if err := log.result(); err != nil {
			return err
		}
		if err := start(); err != nil {
			return err
		}
	}
	if cerr := to.Close(context.Background()); err == nil {
		err = cerr
	}
	if werr := cmp.Or(in.stdout.Flush(), done()); werr != nil {
		return werr // the written part is not known
	}
	var refused *otlpjson.PartialError
	partly := errors.As(err, &refused)
	if c := to.Counts(); !x.quiet && (err == nil || partly || c.Spans > 0) {
		x.report(in, c)
	}
	if partly {
		fmt.Fprintf(in.stderr, "agentevents export: %s\n", clip(visible(err.Error())))
		if err = nil; refused.Rejected > 0 {
			err = errProblems
		}
	}
	return cmp.Or(err, log.result())
}

// An exporter takes the events of a log. [otlpjson.Exporter] is one.
type exporter interface {
	Export(context.Context, *agentevents.Event) error
	Close(context.Context) error
	Counts() otlpjson.Counts
}

// exportForms are the forms of export, each with the function that begins one.
var exportForms = map[string]func(*export, *output) exporter{
	"otlp":   (*export).otlp,
	"chrome": (*export).chrome,
}

// An export has the flags of the command.
type export struct {
	out, endpoint     string
	headers, resource list
	gzip, quiet       bool
	retries           int
	flushEvery        time.Duration
	semconv           choice
	client            *otlpjson.Client // nil without an endpoint
	options           otlpjson.Options
}

func (x *export) flags(fs *flag.FlagSet) {
	x.semconv.values = []string{string(spans.SemconvV1_41), string(spans.SemconvLatest)}
	fs.StringVar(&x.out, "out", "", "write to `FILE`; default: standard output")
	fs.StringVar(&x.endpoint, "endpoint", "", "otlp: post to `URL`/v1/traces")
	fs.Var(&x.headers, "header", "otlp: add the header `NAME=VALUE` to posts; may be given several times")
	fs.BoolVar(&x.gzip, "gzip", false, "otlp: compress posts")
	fs.IntVar(&x.retries, "retries", 4, "otlp: send a post again `N` times at most; default: 4")
	fs.DurationVar(&x.flushEvery, "flush-every", 0,
		"otlp: send ended spans after `DURATION`; default: 5s for -, else never")
	fs.StringVar(&x.options.Service, "service", "", "otlp: the `NAME` of the service; default: agentevents")
	fs.Var(&x.resource, "resource", "otlp: add `NAME=VALUE` to the resource; may be given several times")
	fs.Var(&x.semconv, "semconv", "otlp: `VERSION` of attribute names: 1.41.0, latest; default: both")
	fs.BoolVar(&x.options.NewIDs, "new-ids", false, "otlp: derive all ids, and ignore the ids in the log")
	fs.BoolVar(&x.options.Content, "content", false, "add prompts, texts, arguments and results")
	fs.BoolVar(&x.options.NoSteps, "no-steps", false, "leave out the spans of phases, nodes, turns and steps")
	fs.BoolVar(&x.quiet, "quiet", false, "do not count exported and left-out events")
}

// check reports flags without effect and flags that exclude each other, before anything is written.
func (x *export) check(in *invocation, form string, fs *flag.FlagSet) error {
	var err error
	fs.Visit(func(f *flag.Flag) {
		switch {
		case form != "otlp" && strings.HasPrefix(f.Usage, "otlp: "):
			err = usageError("--" + f.Name + " is a flag of otlp")
		case x.endpoint == "" && slices.Contains([]string{"header", "gzip", "retries"}, f.Name):
			err = usageError("--" + f.Name + " needs --endpoint")
		}
	})
	if err != nil {
		return err
	}
	if x.endpoint != "" && x.out != "" {
		return usageError("--endpoint and --out exclude each other: give one of them")
	}
	if in.reads(os.Stat(x.out)) {
		return usageError("--out is a FILE that is read: name another file")
	}
	if x.retries < 0 {
		return usageError("--retries must not be negative")
	}
	if x.flushEvery < 0 {
		return usageError("--flush-every must not be negative")
	}
	if x.flushEvery == 0 && slices.Contains(in.args, "-") {
		x.flushEvery = 5 * time.Second
	}
	x.options.Semconv = x.semconv.value
	if x.options.Resource, err = pairs("--resource", x.resource); err != nil || x.endpoint == "" {
		return err
	}
	return x.connect(in)
}

// open returns the output, and the function that ends it.
func (x *export) open(in *invocation) (*output, func() error, error) {
	if x.out == "" || x.out == "-" {
		return in.stdout, func() error { return nil }, nil
	}
	f, err := disk.Create(x.out)
	if err != nil {
		return nil, nil, fmt.Errorf("--out: %w", err)
	}
	o := newOutput(f)
	return o, func() error { return cmp.Or(o.Flush(), f.Close()) }, nil
}

func (x *export) otlp(w *output) exporter {
	to := otlpjson.Lines(w)
	if x.client != nil {
		to = x.client
	}
	if x.flushEvery == 0 {
		return otlpjson.NewExporter(to, x.options)
	}
	return &follower{Exporter: otlpjson.NewExporter(to, x.options), out: w, every: x.flushEvery}
}

// A follower exports a log that may go on: it sends ended spans some time after an event, whether
// another one comes or not. Close stops its timer.
type follower struct {
	*otlpjson.Exporter
	out   *output
	every time.Duration

	mu    sync.Mutex // guards the exporter
	timer *time.Timer
	idle  bool // no flush is due
	over  bool
}

func (f *follower) Export(ctx context.Context, ev *agentevents.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.timer == nil:
		f.timer = time.AfterFunc(f.every, f.flush)
	case f.idle:
		f.timer.Reset(f.every)
	}
	f.idle = false
	return f.Exporter.Export(ctx, ev)
}

// flush sends the ended spans. The next event, or Close, reports an error.
func (f *follower) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle = true; !f.over {
		_ = f.Exporter.Flush(context.Background())
		_ = f.out.Flush()
	}
}

func (f *follower) Close(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over = true; f.timer != nil {
		f.timer.Stop()
	}
	return f.Exporter.Close(ctx)
}

// connect makes the client of the endpoint.
func (x *export) connect(in *invocation) error {
	x.client = &otlpjson.Client{Endpoint: x.endpoint, Header: http.Header{}, Gzip: x.gzip, Retries: cmp.Or(x.retries, -1)}
	if _, err := x.client.URL(); err != nil {
		return usageError("--endpoint is not a URL like http://localhost:4318")
	}
	var env list
	if text := in.env(headersEnv); text != "" {
		env = strings.Split(text, ",")
	}
	fromEnv, err := pairs(headersEnv, env)
	if err != nil {
		return err
	}
	for name, value := range fromEnv {
		if value, err = url.PathUnescape(value); err != nil {
			return usageError(headersEnv + " has a value that is not percent-encoded")
		}
		x.client.Header.Set(name, value)
	}
	given, err := pairs("--header", x.headers)
	for name, value := range given {
		x.client.Header.Set(name, value)
	}
	return err
}

// pairs splits NAME=VALUE. Its error does not show them: the value may be a key.
func pairs(of string, list list) (map[string]string, error) {
	m := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usageError(of + ": want NAME=VALUE")
		}
		m[name] = strings.TrimSpace(value)
	}
	return m, nil
}

// report prints the counts of the export.
func (x *export) report(in *invocation, c otlpjson.Counts) {
	in.stdout.Flush() // keep both outputs in order
	fmt.Fprintf(in.stderr, "exported: spans %d, runs %d, events %d\n", int64(c.Spans)-c.Rejected, c.Runs, c.Events)
	closed, text := 0, ""
	for _, reason := range slices.Sorted(maps.Keys(c.Closed)) {
		closed += c.Closed[reason]
		text += fmt.Sprintf(", %s %d", reason, c.Closed[reason])
	}
	if closed > 0 {
		fmt.Fprintf(in.stderr, "spans without an end event: %d (%s)\n", closed, text[2:])
	}
	for _, left := range []struct {
		n    int
		what string
	}{
		{c.Repeated, "they repeat a sequence of their run, or go back"},
		{c.Late, "they come long after the end of their run"},
		{c.Unplaced, "they belong to no span, or to one that has ended"},
		{c.Unopened, "they end subjects that have not begun"},
		{c.Timeless, "they have no time, and no event before them in their run has one"},
	} {
		if left.n > 0 {
			fmt.Fprintf(in.stderr, "events left out: %d: %s\n", left.n, left.what)
		}
	}
	if c.Untimed > 0 {
		fmt.Fprintf(in.stderr,
			"events without a time: %d: they get the time of the event before them, or of the first event with a time\n",
			c.Untimed)
	}
	if c.NoDate > 0 {
		fmt.Fprintf(in.stderr, "events of 1970: %d: their clock has no date, and back ends look for newer spans\n", c.NoDate)
	}
}
