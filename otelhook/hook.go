package otelhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/option"
	"github.com/agentevents/agentevents/internal/spans"
)

// ScopeName is the name of the instrumentation scope.
const ScopeName = "github.com/agentevents/agentevents/otelhook"

// A Semconv is a version of the GenAI conventions, which are in development. Names that
// all versions share are used in any case.
type Semconv string

// The versions.
const (
	SemconvShared Semconv = "shared"                     // names that v1.41.0 and the latest share; no schema URL
	SemconvV1_41  Semconv = Semconv(spans.SemconvV1_41)  // also the names that only v1.41.0 has, with its schema URL
	SemconvLatest Semconv = Semconv(spans.SemconvLatest) // also the names that only the latest has; no schema URL
)

// Content selects the place of content: prompts, arguments, results, texts of agents, questions and
// errors. Content is redacted in the same way as the log.
type Content string

// The places.
const (
	ContentNone   Content = "none"   // nowhere
	ContentSpans  Content = "spans"  // attributes of spans, as JSON in a string
	ContentEvents Content = "events" // attributes of events, with structure where they are logs
	ContentBoth   Content = "both"
)

// Events selects the place of events that have no span: transitions, audits, handoffs, errors, …
type Events string

// The places.
const (
	EventsAuto   Events = ""      // logs if Options.Logs is set, else events of spans
	EventsOnSpan Events = "spans" // events of spans: the newest 128 of each
	EventsAsLogs Events = "logs"  // log records with an event name; needs Options.Logs
	EventsBoth   Events = "both"  // both
)

// Environment variables of OpenTelemetry that stand in for options that are not set.
const (
	contentEnv = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	semconvEnv = "OTEL_SEMCONV_STABILITY_OPT_IN"
)

// Options configure a [Hook].
type Options struct {
	// TracerProvider is the host's. It is required. It must copy the attributes and options that it
	// keeps, as the SDK's does: the hook uses their memory again.
	TracerProvider trace.TracerProvider
	// MeterProvider is the host's, for metrics. They are recorded of runs that are not
	// sampled, too, but not of events that are marked replayed. nil means no metrics.
	MeterProvider metric.MeterProvider
	// Logs makes events log records: otellogs.New(provider) of module otelhook/otellogs gives them
	// to the host's provider. They are recorded of runs that are not sampled, too, but not of events
	// that are marked replayed. [New] calls it once, unless Events is EventsOnSpan, with the schema
	// URL of the scope [ScopeName], which may be empty. nil, or a nil Logger, means no logs.
	Logs func(schemaURL string) Logger
	// Events selects the place of events. The zero value is EventsAuto.
	Events Events
	// Semconv selects the names of GenAI. The zero value is SemconvLatest if the variable
	// OTEL_SEMCONV_STABILITY_OPT_IN has gen_ai_latest_experimental in its list, else
	// SemconvShared.
	Semconv Semconv
	// Content selects the place of content. The zero value takes it from the variable
	// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT (SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT;
	// true means the last), else ContentNone.
	Content Content
	// Reasoning adds the reasoning of models to content on events. Without it, events of reasoning
	// have its size only.
	Reasoning bool
	// Redact returns the redacted content before it is bounded, by the key of its attribute; the
	// key of a status description is "status". nil means all. It may be called concurrently for
	// different runs, and must not call the hook.
	Redact func(key, value string) string
	// ContentBytes bounds one such value. JSON that is longer becomes an object with its
	// length and its beginning. 0 means 8,192.
	ContentBytes int `least:"0"`
	// NoSteps makes events of phases, nodes, turns and steps, in place of spans.
	NoSteps bool
	// DeltaCounts counts the parts that a model streams, on the spans of model calls that
	// the log has the start of, with the time until the first one.
	DeltaCounts bool
	// StartMarkers makes a span without duration, agentevents.started, when a run or an agent
	// begins: back ends see a span only after its end, and otherwise nothing of a run that goes on.
	StartMarkers bool
	// NewRoot gives every run a trace of its own, with a link to the host's span: for
	// hosts whose requests are shorter than runs, or are not sampled.
	NewRoot bool
	// Attributes returns more attributes of a span that begins, such as attributes for a back end.
	// attrs are the span's attributes; they must not be changed or kept. nil means none. It may be
	// called concurrently for different runs, and must not call the hook.
	Attributes func(name string, attrs []attribute.KeyValue) []attribute.KeyValue
	// Findings makes an event agentevents.finding of each finding that begins, and once more when it
	// has grown tenfold, and counts them by kind: see package findings of the root module. Their
	// sentences are content and are left out. Of a resumed run the events after the resume are
	// looked at, and of a replayed one none. nil looks for none.
	Findings *findings.Options
	// Previous returns the root span of a run that is resumed and that this hook does not
	// know, so that the new trace is linked to it: the latest run.started or run.resumed in the log has
	// its ids. Without Previous the trace of a run that another process began, or another hook, has no
	// link. It is called with the id of the run.
	Previous func(runID string) trace.SpanContext
	// IdleTTL is how long a run may have no event before its spans are closed. It is looked
	// at when events come, and by [Hook.Expire]. 0 means an hour, negative means for ever.
	IdleTTL time.Duration
	// MaxOpen bounds the open spans of all runs: beyond it, the runs that were active the
	// longest ago are closed. One run may have as many. 0 means 10,000.
	MaxOpen int `least:"0"`
	// KeepRuns is the number of runs without an open span that are kept, for late events and for
	// links. 0 means 1,024.
	KeepRuns int `least:"0"`
	// Clock tells the time for IdleTTL. nil means [time.Now].
	Clock func() time.Time
}

// A Hook makes spans of events. It is a sink and the tracer of an emitter, and may serve several
// emitters whose runs have different ids. Do not wrap it in Buffered: the parents of runs are found
// in the context of Emit.
//
// The methods may be called concurrently. They return no errors and wait only for the provider,
// when spans start and end.
type Hook struct {
	o        Options
	spans    spans.Options
	meters   *meters // or nil
	logger   Logger  // or nil
	tracer   trace.Tracer
	open     atomic.Int64
	openRuns atomic.Int64
	known    atomic.Int64 // how many runs there are
	swept    atomic.Int64 // when runs that are idle were looked for, in Unix nanoseconds

	mu     sync.Mutex
	runs   map[string]*run
	last   atomic.Pointer[run] // the one of runs that an event came for; changed under mu
	closed bool

	stats struct {
		sync.Mutex
		spans     uint64
		foreign   uint64
		closed    map[string]uint64
		unmatched uint64
	}
}

// A run is the hook's state of a run.
type run struct {
	h      *Hook
	id     string
	active atomic.Int64 // when the last event came, in Unix nanoseconds

	mu       sync.Mutex
	ctx      context.Context // of the event that is mapped
	replayed bool            // so is the event
	room     room
	m        *spans.Mapper
	found    *findings.Run            // or nil
	off      atomic.Bool              // the root is not recorded, and so is nothing
	at       agentevents.TraceContext // of a run that is off; set before
	next     atomic.Uint64            // sequence of the next event; others were mapped

	opened atomic.Int64 // spans that are open; 1 while the run is off and not released
}

// A room has lists that calls of the provider share: the provider copies the parts that it keeps.
type room struct {
	attrs []attribute.KeyValue
	start []trace.SpanStartOption
	end   []trace.SpanEndOption
	event []trace.EventOption
	log   []spans.Attr
	json  []int
}

// New returns a hook. It fails without a TracerProvider, with numbers below 0 but for IdleTTL and
// with words other than the constants ([*agentevents.OptionError]), and if events are to be logs
// without Options.Logs.
func New(o Options) (*Hook, error) {
	if err := option.Check("otelhook.Options", o); err != nil {
		return nil, err
	}
	if o.Findings != nil {
		if err := o.Findings.Check(); err != nil {
			return nil, err
		}
	}
	if o.TracerProvider == nil {
		return nil, errors.New("otelhook: Options.TracerProvider is required")
	}
	semconv, ok := o.semconv()
	if !ok {
		return nil, option.NoConstant("otelhook.Options.Semconv", string(o.Semconv))
	}
	content, ok := o.content()
	if !ok {
		return nil, option.NoConstant("otelhook.Options.Content", string(o.Content))
	}
	if !slices.Contains([]Events{EventsAuto, EventsOnSpan, EventsAsLogs, EventsBoth}, o.Events) {
		return nil, option.NoConstant("otelhook.Options.Events", string(o.Events))
	}
	o.IdleTTL = cmp.Or(o.IdleTTL, time.Hour)
	o.MaxOpen = cmp.Or(o.MaxOpen, 10_000)
	o.KeepRuns = cmp.Or(o.KeepRuns, 1024)
	if o.Clock == nil {
		began := time.Now()
		o.Clock = func() time.Time { return began.Add(time.Since(began)) } // reads one clock, Now reads two
	}
	h := &Hook{o: o, runs: map[string]*run{}}
	h.stats.closed = map[string]uint64{}
	h.tracer = o.TracerProvider.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL()))
	if o.MeterProvider != nil {
		var err error
		if h.meters, err = newMeters(o.MeterProvider, semconv); err != nil {
			return nil, fmt.Errorf("otelhook: %w", err)
		}
	}
	if o.Logs != nil && o.Events != EventsOnSpan {
		h.logger = o.Logs(semconv.SchemaURL())
	}
	if h.logger == nil && (o.Events == EventsAsLogs || o.Events == EventsBoth) {
		return nil, fmt.Errorf("otelhook: Options.Events %q needs Options.Logs", o.Events)
	}
	h.spans = spans.Options{
		Semconv: semconv, Content: content, ContentBytes: o.ContentBytes, Redact: o.Redact,
		NoSteps: o.NoSteps, NoPoints: h.logger != nil && o.Events != EventsBoth,
		Deltas: o.DeltaCounts, Markers: o.StartMarkers, MaxOpen: o.MaxOpen,
	}
	return h, nil
}

// semconv is the version that the option or the environment names.
func (o *Options) semconv() (spans.Semconv, bool) {
	switch o.Semconv {
	case SemconvShared, SemconvV1_41, SemconvLatest:
		return spans.Semconv(strings.TrimPrefix(string(o.Semconv), string(SemconvShared))), true
	case "":
		for _, word := range strings.Split(os.Getenv(semconvEnv), ",") {
			if strings.TrimSpace(word) == "gen_ai_latest_experimental" {
				return spans.SemconvLatest, true
			}
		}
		return spans.SemconvShared, true
	}
	return "", false
}

// content are the places that the option or the environment names. Words of the environment
// that are not known mean nothing: content gets out only where that is asked for.
func (o *Options) content() (spans.Capture, bool) {
	places := map[Content]spans.Capture{
		ContentNone: 0, ContentSpans: spans.OnSpans, ContentEvents: spans.Details | spans.OnPoints,
		ContentBoth: spans.OnSpans | spans.Details | spans.OnPoints,
	}
	c := o.Content
	if c == "" {
		c = map[string]Content{"span_only": ContentSpans, "event_only": ContentEvents,
			"span_and_event": ContentBoth, "true": ContentBoth}[strings.ToLower(os.Getenv(contentEnv))]
		c = cmp.Or(c, ContentNone)
	}
	to, ok := places[c]
	if o.Reasoning {
		to |= spans.Reasoning
	}
	return to, ok
}

// Stats are the hook's own counts.
type Stats struct {
	Open      int               // spans that are open
	Spans     uint64            // spans that have ended and were recorded
	Foreign   uint64            // calls and agents that have ended and whose spans others have made
	Closed    map[string]uint64 // those among them that ended without their event, by reason
	Unmatched uint64            // ends without an open span
}

// Stats returns the counts so far.
func (h *Hook) Stats() Stats {
	h.stats.Lock()
	defer h.stats.Unlock()
	return Stats{
		Open: int(h.open.Load()), Spans: h.stats.spans, Foreign: h.stats.foreign,
		Closed: maps.Clone(h.stats.closed), Unmatched: h.stats.unmatched,
	}
}

// CheckSink returns an error unless the hook comes from [New]; see [agentevents.Checker].
func (h *Hook) CheckSink() error {
	if h == nil || h.runs == nil {
		return agentevents.ErrZeroValue
	}
	return nil
}

// Trace adds the event to the spans of its run, and returns the ids of the span that the event
// belongs to. The emitter calls it before it gives the event to the sinks: see [agentevents.Tracer].
func (h *Hook) Trace(ctx context.Context, ev agentevents.Event) agentevents.TraceContext {
	if h.CheckSink() != nil {
		return agentevents.TraceContext{}
	}
	now := h.o.Clock().UnixNano()
	r := h.run(ev.RunID, now)
	if r == nil {
		return agentevents.TraceContext{}
	}
	r.active.Store(now)
	if r.off.Load() {
		r.next.Store(ev.Sequence + 1)
		return r.at
	}
	at := r.trace(ctx, &ev)
	h.tidy(r, now)
	return at
}

// WriteEvent adds the event to the spans of its run, unless Trace has done so. It serves events
// that do not come from an emitter.
func (h *Hook) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	if r := h.find(ev.RunID); r == nil || ev.Sequence >= r.next.Load() {
		h.Trace(ctx, ev)
	}
	return nil
}

// find returns the run of that id, or nil.
func (h *Hook) find(id string) *run {
	if r := h.last.Load(); r != nil && r.id == id {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[id]
	h.last.Store(r)
	return r
}

// run returns the run with the id, which may be a new one, or nil after Close.
func (h *Hook) run(id string, now int64) *run {
	if r := h.find(id); r != nil {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[id] // another goroutine may have been faster
	if r == nil && !h.closed {
		r = h.begin(strings.Clone(id), now)
	}
	return r
}

// begin adds a run. h.mu is held.
func (h *Hook) begin(id string, now int64) *run {
	r := &run{h: h, id: id}
	r.active.Store(now)
	o := h.spans
	o.Started, o.Ended = r.started, r.ended
	if h.meters != nil || h.logger != nil {
		o.Noted = r.noted
	}
	r.m = spans.New(id, o)
	if f := h.o.Findings; f != nil {
		r.found = findings.NewRun(id, *f)
	}
	h.runs[id] = r
	h.known.Store(int64(len(h.runs)))
	h.last.Store(r)
	return r
}

// trace maps an event that was not mapped before.
//
//go:noinline
func (r *run) trace(ctx context.Context, ev *agentevents.Event) agentevents.TraceContext {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ev.Sequence < r.next.Load() || r.off.Load() {
		return r.at
	}
	r.ctx, r.replayed = ctx, ev.Marks.Has(agentevents.MarkReplayed)
	unmatched := r.m.Unmatched
	s := r.m.Feed(ev)
	if r.found != nil && !r.replayed {
		for _, c := range r.found.Add(ev) {
			r.m.Found(ev, string(c.Kind), string(c.Severity), c.ToolID, c.Count, c.Began)
		}
	}
	r.ctx = nil
	r.next.Store(ev.Sequence + 1)
	if n := r.m.Unmatched - unmatched; n > 0 {
		r.h.stats.Lock()
		r.h.stats.unmatched += uint64(n)
		r.h.stats.Unlock()
	}
	if s == nil {
		return agentevents.TraceContext{}
	}
	d := s.Data.(*data)
	if root := r.m.Root().Data.(*data); !root.recording && r.h.meters == nil && r.h.logger == nil {
		// A sampler decides for the trace: the spans below would not be recorded either.
		r.m.Close(spans.ReasonShutdown)
		r.at = root.at
		r.off.Store(true)
		r.opens(1) // until it is released: a later event would begin a trace again
	}
	return d.at
}

// kinds are options, made once.
var kinds = [...]trace.SpanStartOption{
	spans.KindInternal: trace.WithSpanKind(trace.SpanKindInternal),
	spans.KindClient:   trace.WithSpanKind(trace.SpanKindClient),
}

// data is the hook's state of a span.
type data struct {
	run       *run // with of, for a Generator
	of        *spans.Span
	context   trace.SpanContext
	at        agentevents.TraceContext
	recording bool
	foreign   bool       // somebody else has made the span and ends it
	span      trace.Span // nil once it has ended
}

// in returns ctx with the span. An open one needs no wrapper.
func (d *data) in(ctx context.Context) context.Context {
	if d.span != nil {
		return trace.ContextWithSpan(ctx, d.span)
	}
	return trace.ContextWithSpanContext(ctx, d.context)
}

// started begins a span of the provider's, and takes its ids. r.mu is held.
func (r *run) started(s *spans.Span) {
	ctx := r.ctx
	if d := foreign(ctx, s); d != nil {
		r.begun(s, d)
		return
	}
	attrs := r.values(s.Attributes)
	if f := r.h.o.Attributes; f != nil {
		attrs = append(attrs, f(s.Name, attrs)...)
	}
	options := append(r.room.start[:0], trace.WithTimestamp(s.Start), kinds[s.Kind], trace.WithAttributes(attrs...))
	var links []trace.Link
	for _, l := range s.Links {
		links = append(links, trace.Link{SpanContext: spanContext(l.TraceID, l.SpanID), Attributes: values(l.Attributes)})
	}
	d := &data{run: r, of: s}
	ctx = context.WithValue(ctx, dataKey{}, d) // the span goes on top, as it is looked for more often
	var parent trace.SpanContext
	var up agentevents.TraceContext // the parent's, as text
	switch host := trace.SpanContextFromContext(ctx); {
	case s.Parent != nil:
		above := s.Parent.Data.(*data)
		parent, up = above.context, above.at
		ctx = above.in(ctx)
	case r.h.o.NewRoot && host.IsValid():
		options = append(options, trace.WithNewRoot())
		links = append(links, trace.Link{SpanContext: host,
			Attributes: []attribute.KeyValue{attribute.String(spans.AttrLinkType, "host")}})
	default:
		parent = host
	}
	if len(links) > 0 {
		options = append(options, trace.WithLinks(links...))
	}
	r.room.start = options
	_, span := r.h.tracer.Start(ctx, s.Name, options...)
	sc := span.SpanContext()
	d.context, d.recording, d.span = sc, span.IsRecording(), span
	d.at.ParentSpanID = up.SpanID
	if sc.TraceID() == parent.TraceID() {
		d.at.TraceID = up.TraceID
	}
	if s.Parent == nil && parent.IsValid() {
		d.at.ParentSpanID = parent.SpanID().String()
		s.ParentID, s.Remote = spans.SpanID(parent.SpanID()), parent.IsRemote()
	}
	r.begun(s, d)
}

// begun counts a span that has begun, and gives it the ids of the provider's.
func (r *run) begun(s *spans.Span, d *data) {
	sc := d.context
	s.TraceID, s.ID = spans.TraceID(sc.TraceID()), spans.SpanID(sc.SpanID())
	if sc.IsValid() {
		d.at.SpanID = sc.SpanID().String()
		if d.at.TraceID == "" {
			d.at.TraceID = sc.TraceID().String()
		}
	}
	s.Data = d
	r.opens(1)
	r.h.open.Add(1)
	if x := r.h.meters; x != nil {
		x.open.Add(context.Background(), 1)
	}
}

// noted counts a point and logs it. r.mu is held.
func (r *run) noted(s *spans.Span, p *spans.Point) {
	if r.replayed {
		return
	}
	ctx := context.Background()
	if s != nil {
		ctx = s.Data.(*data).in(ctx)
	}
	if x := r.h.meters; x != nil {
		x.noted(ctx, p)
	}
	if r.h.logger != nil {
		r.log(ctx, p)
	}
}

// opens counts the open things of the run, and the runs that have any.
func (r *run) opens(n int64) {
	switch now := r.opened.Add(n); {
	case now == n:
		r.h.openRuns.Add(1)
	case now == 0:
		r.h.openRuns.Add(-1)
	}
}

// ended ends the provider's span. r.mu is held.
func (r *run) ended(s *spans.Span) {
	d := s.Data.(*data)
	span := d.span
	h := r.h
	h.open.Add(-1)
	r.opens(-1)
	if h.meters != nil {
		h.meters.open.Add(context.Background(), -1)
		if !r.replayed {
			h.meters.ended(d, s)
		}
	}
	if d.recording {
		h.stats.Lock()
		if d.foreign {
			h.stats.foreign++
		} else {
			h.stats.spans++
		}
		if s.ClosedReason != "" {
			h.stats.closed[s.ClosedReason]++
		}
		h.stats.Unlock()
		late := s.Late()
		if d.foreign {
			late = ours(late)
		}
		if len(late) > 0 {
			span.SetAttributes(r.values(late)...)
		}
		if s.DroppedPoints > 0 {
			span.SetAttributes(attribute.Int("agentevents.events.dropped", s.DroppedPoints))
		}
		for i := range s.Points {
			p := &s.Points[i]
			r.room.event = append(r.room.event[:0], trace.WithTimestamp(p.Time), trace.WithAttributes(r.values(p.Attributes)...))
			span.AddEvent(p.Name, r.room.event...)
		}
		if s.Status == spans.StatusError && !d.foreign {
			span.SetStatus(codes.Error, s.Description)
		}
	}
	if !d.foreign {
		r.room.end = append(r.room.end[:0], trace.WithTimestamp(s.Until()))
		span.End(r.room.end...)
	}
	d.span = nil
	r.m.Reuse(s) // the run may keep the span for its ids
	if r.opened.Load() == 0 {
		r.room = room{} // a run that has ended is kept for long
	}
}

func spanContext(t spans.TraceID, s spans.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(t), SpanID: trace.SpanID(s), TraceFlags: trace.FlagsSampled,
	})
}

// values are attributes as OpenTelemetry has them.
func values(attrs []spans.Attr) []attribute.KeyValue { return appendValues(nil, attrs) }

// values are good until the next call.
func (r *run) values(attrs []spans.Attr) []attribute.KeyValue {
	r.room.attrs = appendValues(r.room.attrs[:0], attrs)
	return r.room.attrs
}

func appendValues(list []attribute.KeyValue, attrs []spans.Attr) []attribute.KeyValue {
	list = slices.Grow(list, len(attrs))
	for i := range attrs {
		list = appendValue(list, &attrs[i])
	}
	return list
}

// appendValue sets the new element where it stands: to copy one costs more than to make it.
func appendValue(list []attribute.KeyValue, a *spans.Attr) []attribute.KeyValue {
	list = append(list, attribute.KeyValue{})
	to := &list[len(list)-1]
	to.Key = attribute.Key(a.Key)
	if a.Value == nil {
		to.Value = text(a.Text)
	} else {
		to.Value = value(a.Value)
	}
	return list
}

func value(v any) attribute.Value {
	switch v := v.(type) {
	case bool:
		return attribute.BoolValue(v)
	case int64:
		return attribute.Int64Value(v)
	case float64:
		return attribute.Float64Value(v)
	case []string:
		return attribute.StringSliceValue(v)
	case spans.Content:
		return text(v.Text)
	}
	return attribute.Value{}
}

// text is a string without broken characters, which would not be exported.
func text(s string) attribute.Value {
	if !jsonwire.ValidUTF8(s) { // which is asked much faster than it is mended
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return attribute.StringValue(s)
}

// tidy keeps the bounds, after an event of this run. No lock is held.
func (h *Hook) tidy(current *run, now int64) {
	if h.o.IdleTTL > 0 {
		if last := h.swept.Load(); now-last > int64(h.o.IdleTTL)/8 && h.swept.CompareAndSwap(last, now) {
			h.expire(now)
		}
	}
	for h.open.Load() > int64(h.o.MaxOpen) {
		oldest := h.oldest(current)
		if oldest == nil {
			return // the run bounds its own
		}
		oldest.close(spans.ReasonEvicted)
	}
	if h.known.Load()-h.openRuns.Load() > int64(h.o.KeepRuns) {
		h.forget(current)
	}
}

// forget drops a quarter of the runs without an open span, those that were active the longest
// ago. The current run stays: the event that it has traced is yet to be written.
func (h *Hook) forget(current *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var quiet []*run
	for _, r := range h.runs {
		if r.opened.Load() == 0 {
			quiet = append(quiet, r)
		}
	}
	slices.SortFunc(quiet, func(a, b *run) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
	for _, r := range quiet[:max(0, len(quiet)-max(1, h.o.KeepRuns*3/4))] {
		if r != current {
			delete(h.runs, r.id)
		}
	}
	h.known.Store(int64(len(h.runs)))
	h.last.Store(nil)
}

// oldest returns the run that was active the longest ago and has an open span, or nil.
func (h *Hook) oldest(but *run) (oldest *run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.runs {
		if r != but && !r.off.Load() && r.opened.Load() > 0 && (oldest == nil || r.active.Load() < oldest.active.Load()) {
			oldest = r
		}
	}
	return oldest
}

// close closes everything that the run has open. No lock is held.
func (r *run) close(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.m.Close(reason)
	r.letGo()
}

// letGo lets a run that is off be forgotten. r.mu is held.
func (r *run) letGo() {
	if r.off.Load() && r.opened.Load() > 0 {
		r.opens(-1)
	}
}

// Expire closes the spans of runs that had no event for Options.IdleTTL. The hook has no
// goroutine: call it now and then where it may happen that no events come at all.
func (h *Hook) Expire() {
	if h.CheckSink() == nil {
		h.expire(h.o.Clock().UnixNano())
	}
}

func (h *Hook) expire(now int64) {
	if h.o.IdleTTL < 0 {
		return
	}
	for _, r := range h.all() {
		if r.opened.Load() > 0 && now-r.active.Load() >= int64(h.o.IdleTTL) {
			r.close(spans.ReasonIdle)
		}
	}
}

// all returns the runs.
func (h *Hook) all() []*run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.runs))
}

// ResumeRun begins a trace for the rest of the run. It is linked to the one before if this hook had
// that, or if [Options].Previous returns its root: a snapshot does not have the ids. Agents and
// calls that are open have spans in it, from when they began, and the answer to a question that
// is open makes the span of the wait. It is called by the emitter.
func (h *Hook) ResumeRun(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	var previous *spans.Link
	if old := h.find(snapshot.RunID); old != nil {
		old.mu.Lock()
		old.m.Release()
		old.letGo()
		if root := old.m.Root(); root != nil {
			previous = &spans.Link{TraceID: root.TraceID, SpanID: root.ID}
		}
		old.mu.Unlock()
	} else if f := h.o.Previous; f != nil {
		if sc := f(snapshot.RunID); sc.IsValid() {
			previous = &spans.Link{TraceID: spans.TraceID(sc.TraceID()), SpanID: spans.SpanID(sc.SpanID())}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		r := h.begin(snapshot.RunID, h.o.Clock().UnixNano())
		r.m.Resume(snapshot.NextSequence, snapshot.SessionID, snapshot.Name, previous)
		for _, a := range snapshot.Approvals {
			if a.Open {
				r.m.Await("approval", a.ApprovalID, a.RequestedAt, a.Sequence)
			}
		}
		for _, c := range snapshot.Clarifications {
			if c.Open {
				r.m.Await("clarification", c.InterruptID, c.RequestedAt, c.Sequence)
			}
		}
		left := func(agentID string, at time.Time, sequence uint64, p agentevents.Payload) {
			ev := agentevents.Event{RunID: r.id, AgentID: agentID, Time: at, Sequence: sequence, Payload: p}
			if a := snapshot.Agents[agentID]; a != nil {
				ev.ParentAgentID, ev.ParentCallID = a.ParentAgentID, a.ParentCallID
			}
			r.m.Left(ev)
		}
		for id, a := range snapshot.Agents {
			if a.Open {
				left(id, a.StartedAt, a.Sequence, &agentevents.AgentStarted{Name: a.Name, Model: a.Model})
			}
		}
		for _, c := range snapshot.OpenCalls {
			left(c.AgentID, c.StartedAt, c.Sequence, &agentevents.ToolCalled{CallID: c.CallID, ToolID: c.ToolID})
		}
		for _, c := range snapshot.OpenModelCalls {
			left(c.AgentID, c.StartedAt, c.Sequence,
				&agentevents.ModelCalled{ModelCallID: c.ModelCallID, Provider: c.Provider, Model: c.Model, Operation: c.Operation})
		}
		r.next.Store(snapshot.NextSequence)
	}
	return nil
}

// ReleaseRun closes everything that is open: nobody records its end. It is called by the emitter.
func (h *Hook) ReleaseRun(_ context.Context, runID string) error {
	if r := h.find(runID); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.m.Release()
		r.letGo()
	}
	return nil
}

// Close closes all spans. Events that come later belong to no span. It does not shut the
// provider down, which is the host's. It returns nil.
func (h *Hook) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, r := range h.all() {
		r.mu.Lock()
		r.m.Release()
		r.letGo()
		r.off.Store(true) // a start makes no span any more
		r.mu.Unlock()
	}
	return nil
}
