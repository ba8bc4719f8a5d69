package eventtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentevents/agentevents"
)

// A SinkTest is a conformance test for a sink, whoever wrote it:
//
//	func TestSink(t *testing.T) {
//		eventtest.SinkTest{
//			New:    func(t testing.TB) agentevents.Sink { return mysink.New(mysink.Options{}) },
//			Events: func(t testing.TB, s agentevents.Sink) []agentevents.Event { return s.(*mysink.Sink).Events() },
//		}.Run(t)
//	}
//
// The cases are the duties of [agentevents.Sink] and its optional interfaces; cases of an interface
// that the sink lacks are skipped. A failure names the case and the duty. Run the test with -race
// as well.
type SinkTest struct {
	// New returns a new sink. It is called for each case. Remove files of the sink with t.Cleanup.
	// It is required.
	New func(t testing.TB) agentevents.Sink
	// Events returns the events that have arrived at a sink of New: the events of each run in their
	// order. It is called after Flush, Commit or Close. Nil is for sinks that cannot be read: then
	// errors, panics and changed events are found, and lost ones are not.
	Events func(t testing.TB, s agentevents.Sink) []agentevents.Event
	// Omits reports whether the sink leaves out an event because it is meant to. Nil
	// means that it leaves out none.
	Omits func(agentevents.Event) bool
	// Except are names of cases that do not hold for the sink because it is meant to be
	// another one. They are skipped. A name that no case has fails the test.
	Except []string
	// Broken returns a new sink that cannot deliver any event: its disk is full, its
	// server is gone. Nil skips the case.
	Broken func(t testing.TB) agentevents.Sink
}

// Run runs the cases as subtests.
func (k SinkTest) Run(t *testing.T) {
	t.Helper()
	for _, name := range k.Except {
		if !slices.ContainsFunc(sinkCases, func(c sinkCase) bool { return c.name == name }) {
			t.Errorf("eventtest: SinkTest.Except: unknown case %q", name)
		}
	}
	for _, c := range sinkCases {
		t.Run(c.name, func(t *testing.T) { k.test(t, &c) })
	}
}

// test runs a case and fails the test for each problem.
func (k *SinkTest) test(t testing.TB, c *sinkCase) {
	t.Helper()
	if c.name == "broken" && k.Broken == nil {
		t.Skip("SinkTest.Broken is nil")
	}
	if slices.Contains(k.Except, c.name) {
		t.Skip("SinkTest.Except has it")
	}
	label := strconv.FormatInt(labels.Add(1), 10)
	var r *sinkRig
	pprof.Do(context.Background(), pprof.Labels(labelKey, label), func(ctx context.Context) { // goroutines inherit it
		make := k.New
		if c.name == "broken" {
			make = k.Broken
		}
		if r = newSinkRig(t, k, make(t), label); r == nil {
			return
		}
		if c.needs != nil && !c.needs(r.sink) {
			_ = r.em.Close(ctx) // other cases look at its error
			t.Skip("the sink does not have the interface")
		}
		r.guard(func() { c.act(r) })
		if !r.hung {
			r.guard(r.close)
		}
	})
	if r == nil {
		return
	}
	if r.hung {
		t.Errorf("eventtest: a call of the sink did not return after %v\n%s.", maxWait, c.explanation)
		return
	}
	for _, check := range c.checks {
		if problem := check(r); problem != "" {
			problem, stack, _ := strings.Cut(problem, "\n")
			t.Errorf("%s", strings.TrimSpace("eventtest: "+problem+"\n"+c.explanation+".\n"+stack))
		}
	}
}

// labelKey is the label of the goroutines that a case begins.
const labelKey = "eventtest.SinkTest"

var labels atomic.Int64

// A sinkCase is one thing that a sink owes.
type sinkCase struct {
	name        string
	explanation string
	needs       func(agentevents.Sink) bool // further conditions on the sink; nil: none
	act         func(*sinkRig)
	checks      []sinkCheck
}

// A sinkCheck returns the fault after a case, or "".
type sinkCheck func(*sinkRig) string

var sinkCases = []sinkCase{
	{
		name:        "run",
		explanation: "a sink takes each event of a run, in the order in which they come",
		act:         func(r *sinkRig) { r.story(r.ctx, "r1") },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name:        "nothing",
		explanation: "a sink that gets no event is flushed and closed like others",
		act:         func(r *sinkRig) { r.note(r.em.Flush(r.ctx)) },
		checks:      []sinkCheck{noError, arrived},
	},
	{
		name:        "concurrent-runs",
		explanation: "events of different runs may come at the same time, also while the sink is flushed",
		act:         func(r *sinkRig) { r.together(func(id string) { r.story(r.ctx, id); r.note(r.em.Flush(r.ctx)) }) },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name: "cancelled-context",
		explanation: "an event is taken although the context of who emits it has ended: " +
			"it may be the event that explains the end",
		act:    func(r *sinkRig) { r.story(ended(), "r1") },
		checks: []sinkCheck{noError, arrived},
	},
	{
		name:        "context",
		explanation: "a sink needs no deadline, no values and no emitter in its context",
		act:         func(r *sinkRig) { r.direct(context.Background(), r.example("r1")) },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name:        "unknown",
		explanation: "kinds and members that nobody knows stay, and a long text stays whole",
		act:         func(r *sinkRig) { r.odd(r.ctx, "r1") },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name:        "line",
		explanation: "WriteLine must not keep or change the line, whose memory is used again",
		needs:       is[agentevents.LineSink],
		act:         func(r *sinkRig) { r.direct(r.ctx, r.example("r1")) },
		checks:      []sinkCheck{noError, arrived, unchangedLines},
	},
	{
		name:        "WriteEvent-of-LineSink",
		explanation: "WriteEvent of a LineSink takes the same events as WriteLine",
		needs:       is[agentevents.LineSink],
		act:         func(r *sinkRig) { r.withoutLines(r.example("r1")) },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name:        "Flush",
		explanation: "after Flush the events before it have arrived",
		needs:       is[agentevents.Flusher],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); r.note(r.em.Flush(r.ctx)); r.look() },
		checks:      []sinkCheck{noError, arrivedThen, arrived},
	},
	{
		name:        "Flush-ended-context",
		explanation: "Flush returns soon when its context has ended, with an error or without, and loses nothing",
		needs:       is[agentevents.Flusher],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); _ = r.sink.(agentevents.Flusher).Flush(ended()) },
		checks:      []sinkCheck{noError, arrived},
	},
	{
		name:        "Commit",
		explanation: "after Commit, which many call at the same time, the events before it have arrived",
		needs:       is[agentevents.Committer],
		act: func(r *sinkRig) {
			r.together(func(id string) { r.story(r.ctx, id); r.note(r.sink.(agentevents.Committer).Commit(r.ctx)) })
			r.look()
		},
		checks: []sinkCheck{noError, arrivedThen, arrived},
	},
	{
		name:        "Trace",
		explanation: "a Tracer returns ids of lower-case hex, of 32 digits for a trace and 16 for a span, or none",
		needs:       is[agentevents.Tracer],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1") },
		checks:      []sinkCheck{noError, traced},
	},
	{
		name:        "ResumeRun",
		explanation: "a run goes on from a snapshot, which belongs to the sink, and the sink takes the rest of its events",
		act:         func(r *sinkRig) { r.resume("r1") },
		checks:      []sinkCheck{noError, arrived, unchanged},
	},
	{
		name:        "after-ReleaseRun",
		explanation: "events that may follow the end of a run come after ReleaseRun, and the sink takes them",
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); r.emit(r.ctx, r.runs["r1"], &agentevents.SessionCompleted{}) },
		checks:      []sinkCheck{noError, arrived},
	},
	{
		name:        "Close-twice",
		explanation: "a sink that is closed or flushed after Close may return an error, and does not panic",
		needs:       is[io.Closer],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); r.close(); r.again() },
		checks:      []sinkCheck{noError, arrived},
	},
	{
		name:        "after-Close",
		explanation: "an event that comes after Close is refused with an error, or arrives; an emitter sends none",
		needs:       is[io.Closer],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); r.close(); r.late() },
		checks:      []sinkCheck{noError, arrived},
	},
	{
		name:        "goroutines",
		explanation: "after Close the sink has no goroutine",
		needs:       is[io.Closer],
		act:         func(r *sinkRig) { r.story(r.ctx, "r1") },
		checks:      []sinkCheck{noError, noGoroutine},
	},
	{
		name:        "broken",
		explanation: "a sink reports an undelivered event with an error: of WriteEvent, Commit, Flush or Close",
		act:         func(r *sinkRig) { r.story(r.ctx, "r1"); r.note(r.em.Flush(r.ctx)) },
		checks:      []sinkCheck{anError, noPanic, unchanged},
	},
}

// is reports whether a sink has an interface.
func is[T any](s agentevents.Sink) bool { _, ok := s.(T); return ok }

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A sinkRig is a case that runs: an emitter with the sink.
type sinkRig struct {
	t     testing.TB
	kit   *SinkTest
	label string
	ctx   context.Context
	sink  agentevents.Sink
	sent  *lineKeeper // before the sink
	em    *agentevents.Emitter
	runs  map[string]*agentevents.Run

	mu      sync.Mutex
	errs    []error
	panics  []string
	closed  bool
	hung    bool   // a call does not return
	problem string // of look
	lines   string // of unchangedLines
}

func newSinkRig(t testing.TB, k *SinkTest, s agentevents.Sink, label string) *sinkRig {
	t.Helper()
	r := &sinkRig{
		t: t, kit: k, label: label, ctx: context.Background(), sink: s,
		sent: new(lineKeeper), runs: map[string]*agentevents.Run{},
	}
	var err error
	r.em, err = agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived,
		Sinks: []agentevents.Sink{r.sent, s}})
	if err != nil {
		t.Errorf("eventtest: the sink cannot be one of an emitter: %v", err)
		return nil
	}
	return r
}

// note keeps an error, which may be nil.
func (r *sinkRig) note(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// maxWait is how long the calls of a case may take.
const maxWait = 30 * time.Second

// guard calls f. A panic is a problem, and so is a call that does not return.
func (r *sinkRig) guard(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.panics = append(r.panics, fmt.Sprintf("the sink panics: %v\n%s", v, debug.Stack()))
			}
		}()
		f()
	}()
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hung = true
	}
}

// together calls f with the ids of several runs at the same time.
func (r *sinkRig) together(f func(id string)) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { r.guard(func() { f("r" + strconv.Itoa(i+1)) }) })
	}
	all.Wait()
}

func (r *sinkRig) run(id string) *agentevents.Run {
	run, err := r.em.Run(id)
	r.note(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[id] = run
	return run
}

func (r *sinkRig) emit(ctx context.Context, e interface {
	Emit(context.Context, agentevents.Payload) error
}, payloads ...agentevents.Payload) {
	for _, p := range payloads {
		r.note(e.Emit(ctx, p))
	}
}

// begin emits the first part of a run.
func (r *sinkRig) begin(ctx context.Context, id string) *agentevents.Run {
	run := r.run(id)
	a := run.Agent("main")
	r.emit(ctx, run, &agentevents.RunStarted{Name: "conformance", Inputs: `{"a": 1}`})
	r.emit(ctx, a, &agentevents.AgentStarted{Task: "Add \u2028 \"x\""})
	for i, delta := range []string{"It ", "is", " there\n"} {
		r.emit(ctx, a, &agentevents.TextDelta{BlockID: "b1", Delta: delta, Index: agentevents.Some(i)})
	}
	r.emit(ctx, a, &agentevents.TextCompleted{BlockID: "b1", Text: "It is there\n"},
		&agentevents.ToolCalled{CallID: "c1", ToolID: "read", Arguments: `{ "path" : "a b" }`})
	return run
}

// story emits a run.
func (r *sinkRig) story(ctx context.Context, id string) { r.end(ctx, r.begin(ctx, id)) }

func (r *sinkRig) end(ctx context.Context, run *agentevents.Run) {
	r.emit(ctx, run.Agent("main"),
		&agentevents.ToolReturned{
			CallID: "c1", ToolID: "read", Status: agentevents.ToolStatusError,
			Error: agentevents.Some(agentevents.ErrorInfo{Code: "timeout"}),
		},
		&agentevents.MessageCreated{Message: agentevents.ConversationMessage{To: "user", Content: `[1.50, null]`}},
		&agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 12}},
		&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial})
	r.emit(ctx, run, &agentevents.RunCompleted{})
}

// odd emits a run with events that a sink may not expect.
func (r *sinkRig) odd(ctx context.Context, id string) {
	run := r.run(id)
	ev := agentevents.Event{Payload: &agentevents.Unknown{Type: "acme.note", Raw: `{"n":1.50}`}}
	r.note(ev.SetExtra("acme", `{"x":[]}`))
	_, err := run.Record(ctx, ev)
	r.note(err)
	r.emit(ctx, run.Agent("main"), &agentevents.AgentStarted{},
		&agentevents.TextCompleted{Text: strings.Repeat("long \u00e9 ", 1<<17)})
	r.emit(ctx, run, &agentevents.RunCompleted{})
}

// resume emits a run that goes on from a snapshot of its first part, which the sink did
// not see.
func (r *sinkRig) resume(id string) {
	first := r.apart(func(other *sinkRig) { other.begin(r.ctx, id) })
	run, err := r.em.Resume(first.Snapshot(id))
	r.note(err)
	if err != nil {
		return
	}
	r.emit(r.ctx, run, &agentevents.RunResumed{})
	r.end(r.ctx, run)
}

// example returns the events of a run that the sink has not seen.
func (r *sinkRig) example(id string) []agentevents.Event {
	return r.apart(func(other *sinkRig) { other.story(r.ctx, id) }).Events()
}

// apart returns the events that f emits with a rig without the sink.
func (r *sinkRig) apart(f func(*sinkRig)) *Recorder {
	events := new(Recorder)
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived,
		Sinks: []agentevents.Sink{events}})
	r.note(err)
	other := &sinkRig{em: em, runs: map[string]*agentevents.Run{}}
	f(other)
	r.note(errors.Join(other.errs...))
	return events
}

// direct gives events to the sink as an emitter does, with a line that it uses again.
func (r *sinkRig) direct(ctx context.Context, events []agentevents.Event) {
	sink, ok := r.sink.(agentevents.LineSink)
	if !ok {
		r.withoutLines(events)
		return
	}
	var line []byte
	for _, ev := range events {
		line, _ = ev.AppendJSON(line[:0])
		r.note(r.sent.WriteLine(ctx, ev, line))
		before := string(line)
		r.note(sink.WriteLine(ctx, ev, line))
		if string(line) != before && r.lines == "" {
			r.lines = "the line of sequence " + strconv.FormatUint(ev.Sequence, 10) + " is changed by WriteLine"
		}
		copy(line, bytes.Repeat([]byte("#"), len(line)))
	}
}

// withoutLines gives events to WriteEvent of the sink.
func (r *sinkRig) withoutLines(events []agentevents.Event) {
	for _, ev := range events {
		r.note(r.sent.WriteEvent(r.ctx, ev))
		r.note(r.sink.WriteEvent(r.ctx, ev))
	}
}

// close closes the emitter, and the sink with it, once.
func (r *sinkRig) close() {
	if r.closed {
		return
	}
	r.closed = true
	r.note(r.em.Close(r.ctx))
}

// again closes and flushes the sink once more.
func (r *sinkRig) again() {
	_ = r.sink.(io.Closer).Close()
	if f, ok := r.sink.(agentevents.Flusher); ok {
		_ = f.Flush(r.ctx)
	}
}

// late gives the sink an event after Close.
func (r *sinkRig) late() {
	ev := r.example("late")[0]
	if err := r.sink.WriteEvent(r.ctx, ev); err == nil {
		r.note(r.sent.WriteEvent(r.ctx, ev))
	}
}

// look checks the arrived events before the emitter is closed.
func (r *sinkRig) look() { r.problem = arrived(r) }

// A lineKeeper keeps the events as they are before the sink gets them.
type lineKeeper struct {
	mu     sync.Mutex
	events []agentevents.Event
	lines  []string
}

// WriteEvent is WriteLine for a caller that has no line.
func (k *lineKeeper) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	line, err := ev.AppendJSON(nil)
	if err != nil {
		return err
	}
	return k.WriteLine(ctx, ev, line)
}

// WriteLine keeps the event and its line.
func (k *lineKeeper) WriteLine(_ context.Context, ev agentevents.Event, line []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events, k.lines = append(k.events, ev), append(k.lines, string(line))
	return nil
}

func noError(r *sinkRig) string {
	if p := noPanic(r); p != "" || len(r.errs) == 0 {
		return p
	}
	return fmt.Sprintf("the sink fails: %v", errors.Join(r.errs...))
}

func noPanic(r *sinkRig) string {
	for _, err := range r.errs {
		var p *agentevents.PanicError
		if errors.As(err, &p) {
			return fmt.Sprintf("the sink panics: %v\n%s", p.Value, p.Stack)
		}
	}
	return strings.Join(r.panics, "\n")
}

func anError(r *sinkRig) string {
	if len(r.errs) > 0 {
		return ""
	}
	return fmt.Sprintf("%s are lost, and no call returns an error", events(len(r.sent.lines)))
}

// unchanged checks that the sink did not change the events.
func unchanged(r *sinkRig) string {
	for i, ev := range r.sent.events {
		line, err := ev.AppendJSON(nil)
		if err != nil || string(line) != r.sent.lines[i] {
			return fmt.Sprintf("the sink changes the event of sequence %d (%s), which other sinks share%s",
				ev.Sequence, describe([]byte(r.sent.lines[i])), firstDifference([]byte(r.sent.lines[i]), line))
		}
	}
	return ""
}

func unchangedLines(r *sinkRig) string {
	if r.lines != "" {
		return r.lines
	}
	return unchanged(r)
}

// arrived checks that the sink has the sent events: each event of a run once, in order.
func arrived(r *sinkRig) string {
	if r.kit.Events == nil {
		return ""
	}
	want, got := map[string][]string{}, map[string][]string{}
	for i, ev := range r.sent.events {
		if r.kit.Omits == nil || !r.kit.Omits(ev) {
			want[ev.RunID] = append(want[ev.RunID], r.sent.lines[i])
		}
	}
	for _, ev := range r.kit.Events(r.t, r.sink) {
		line, err := ev.AppendJSON(nil)
		if err != nil {
			return fmt.Sprintf("an event that arrived has no line: %v", err)
		}
		got[ev.RunID] = append(got[ev.RunID], string(line))
	}
	ids := maps.Clone(want)
	maps.Copy(ids, got)
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if diff := arrivedOf(got[id], want[id]); diff != "" {
			return "run " + spell(cut(id)) + ": " + diff
		}
	}
	return ""
}

// arrivedOf returns the first difference between the arrived and the sent events of a run, or "".
func arrivedOf(got, want []string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	switch {
	case at == len(got) && at == len(want):
		return ""
	case at == len(got):
		return fmt.Sprintf("the last %s did not arrive, from %s", events(len(want)-at), numbered(want[at]))
	case slices.Contains(got[:at], got[at]):
		return numbered(got[at]) + " arrived twice"
	case at == len(want):
		return numbered(got[at]) + " arrived and was not sent"
	case member(got[at], "id") == member(want[at], "id"):
		return numbered(want[at]) + " arrived changed" + firstDifference([]byte(want[at]), []byte(got[at]))
	case !slices.Contains(got, want[at]):
		return numbered(want[at]) + " did not arrive"
	}
	return numbered(got[at]) + " arrived before " + numbered(want[at])
}

// numbered returns the event of a line, for a failure.
func numbered(line string) string {
	return "sequence " + member(line, "sequence") + " (" + describe([]byte(line)) + ")"
}

// arrivedThen is the result of arrived before the emitter was closed.
func arrivedThen(r *sinkRig) string {
	if r.problem == "" {
		return ""
	}
	return "before Close: " + r.problem
}

var (
	traceID = regexp.MustCompile(`^([0-9a-f]{32})?$`)
	spanID  = regexp.MustCompile(`^([0-9a-f]{16})?$`)
)

func traced(r *sinkRig) string {
	for _, ev := range r.sent.events {
		if !traceID.MatchString(ev.TraceID) || !spanID.MatchString(ev.SpanID) || !spanID.MatchString(ev.ParentSpanID) {
			return fmt.Sprintf("the event of sequence %d (%s) has trace %q, span %q and parent %q",
				ev.Sequence, Describe(ev), ev.TraceID, ev.SpanID, ev.ParentSpanID)
		}
	}
	return ""
}

// noGoroutine checks that no goroutine has the label of the case any more. It looks 1,000
// times, a millisecond apart, for those that are about to end: a number of looks is fair to
// them on a busy machine too.
func noGoroutine(r *sinkRig) string {
	left := goroutines(r.label)
	for range 1000 {
		if left == "" {
			return ""
		}
		time.Sleep(time.Millisecond)
		left = goroutines(r.label)
	}
	return "a goroutine that the sink began is left:\n" + left
}

// goroutines returns the goroutines with a label, or "".
func goroutines(label string) string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return ""
	}
	for group := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(group, fmt.Sprintf("%q:%q", labelKey, label)) {
			return strings.TrimSpace(group)
		}
	}
	return ""
}
