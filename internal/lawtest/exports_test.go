package lawtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/otlpjson"
)

// A drawnSpan is a span that an export must have, as the generator knows it. Spans are known by their
// names and by the numbers of the lines that open them; a wait is known by the line that ends it.
type drawnSpan struct {
	name, parent string
	from, to     int // seconds
	marks        string
	bad          bool
}

func (s drawnSpan) String() string {
	return fmt.Sprintf("%s below %s, %d-%d%s bad=%t", s.name, s.parent, s.from, s.to, s.marks, s.bad)
}

// An exportLog writes a log of agents that work at once, many under one name, and the expected
// export. Some lines have no time.
type exportLog struct {
	strings.Builder
	rng    *rand.Rand
	kaos   bool
	n, now int // lines, and the last time that is known
	want   []drawnSpan
	open   []*exportAgent
	of     map[string]*exportAgent // by the exported span
	names  map[string]bool         // of agents that have ended: they would be tried again
	count  int
	waits  []exportWait
	went   [6]bool
}

type exportAgent struct {
	name, span string
	at         exportTime
	id, below  string // of the exported span, and of the one around it
	around     string // the span around it, in the log
	calls      int
}

// An exportTime is the time of a line: the last known one if it has none.
type exportTime struct {
	at    int
	known bool
}

type exportWait struct {
	kind, id, span, by, parent string
	at                         exportTime
}

// stamp draws the time of the next line.
func (l *exportLog) stamp() (exportTime, string) {
	if l.n > 0 && l.rng.IntN(4) == 0 {
		return exportTime{l.now, false}, ""
	}
	l.now += l.rng.IntN(4)
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(l.now) * time.Second)
	if l.kaos {
		return exportTime{l.now, true}, fmt.Sprintf(`"timestamp":%d.0,`, at.Unix())
	}
	return exportTime{l.now, true}, fmt.Sprintf(`"timestamp":%q,`, at.Format(time.RFC3339))
}

// wiki writes a line of the wiki.
func (l *exportLog) wiki(span, parent, actor, typ, payload string) exportTime {
	at, text := l.stamp()
	fmt.Fprintf(l, `{"id":"e%d","traceId":"T","spanId":%q,"parentSpanId":%q,"sessionId":"S","runId":"R","actor":%q,"type":%q,"payload":%s,%s"schemaVersion":"1.0"}`+"\n",
		l.n, span, parent, actor, typ, payload, text)
	l.n++
	return at
}

// span writes a line of KAOS.
func (l *exportLog) span(subject, phase, span, parent, agent, attributes string, took int) exportTime {
	at, text := l.stamp()
	null := func(s string) string {
		if s == "" {
			return "null"
		}
		return strconv.Quote(s)
	}
	failure, duration := "", "null"
	if phase == "error" {
		failure = "Broken"
	}
	if took > 0 {
		duration = strconv.Itoa(1000 * took)
	}
	fmt.Fprintf(l, `{%s"sequence":%d,"session_id":"s","run_id":"R","agent_id":%s,"subject":%q,"phase":%q,"span_id":%q,"parent_span_id":%s,"name":%q,"duration_ms":%s,"error_type":%s,"error_message":null,"attributes":%s,"type":"span"}`+"\n",
		text, l.n, null(agent), subject, phase, span, null(parent), subject, duration, null(failure), attributes)
	l.n++
	return at
}

// took draws a duration that an end states, or 0.
func (l *exportLog) took() int { return max(0, l.rng.IntN(12)-5) }

// done adds a span that is over.
func (l *exportLog) done(s drawnSpan, start, end exportTime, took int) {
	s.from, s.to = start.at, end.at
	switch {
	case start.known && end.known:
	case took == 0:
		for _, mark := range []struct {
			known bool
			name  string
		}{{start.known, " start.unknown"}, {end.known, " end.unknown"}} {
			if !mark.known {
				s.marks += mark.name
			}
		}
	case end.known:
		s.from, s.marks = end.at-took, " stated"
	case start.known:
		s.to, s.marks = start.at+took, " stated"
	default:
		s.to, s.marks = start.at+took, " start.unknown stated"
	}
	l.want = append(l.want, s)
}

func (l *exportLog) start() {
	a := &exportAgent{name: oneOf(l.rng, []string{"w", "x"}), span: fmt.Sprintf("u%d", l.count), id: fmt.Sprintf("#%d", l.n)}
	if l.names[a.name] {
		a.name = fmt.Sprintf("n%d", l.count)
	}
	l.count++
	a.id, a.below, a.around = "invoke_agent "+a.name+a.id, "root", "root"
	if len(l.open) > 0 && l.rng.IntN(3) == 0 {
		up := oneOf(l.rng, l.open)
		a.below, a.around = up.id, up.span
	}
	if l.kaos {
		a.at = l.span("subagent", "start", a.span, a.around, "", fmt.Sprintf(`{"subagent_name":%q,"task":"t"}`, a.name), 0)
	} else {
		a.at = l.wiki(a.span, a.around, "boss", "agent.spawned", fmt.Sprintf(`{"agentTask":"t","agentId":%q}`, a.name))
	}
	l.open, l.of[a.id] = append(l.open, a), a
}

func (l *exportLog) call(a *exportAgent) {
	a.calls++
	id, tool, took := fmt.Sprintf("%s-%d", a.span, a.calls), "of-"+a.span, l.took()
	s := drawnSpan{name: fmt.Sprintf("execute_tool %s#%d", tool, l.n), parent: a.id}
	var start, end exportTime
	if l.kaos {
		start = l.span("tool_call", "start", id, a.span, a.name, fmt.Sprintf(`{"tool_name":%q,"call_id":"c"}`, tool), 0)
		end = l.span("tool_call", "complete", id, "", a.name, fmt.Sprintf(`{"tool_name":%q,"call_id":"c","is_error":false}`, tool), took)
	} else {
		in := oneOf(l.rng, []string{id, a.span})
		start = l.wiki(in, a.span, a.name, "tool.call.started", fmt.Sprintf(`{"callId":"c","toolId":%q}`, tool))
		end = l.wiki(in, a.span, a.name, "tool.call.completed", fmt.Sprintf(`{"callId":"c","toolId":%q,"status":"ok"%s}`, tool, stated(took)))
	}
	l.done(s, start, end, took)
}

func stated(took int) string {
	if took == 0 {
		return ""
	}
	return fmt.Sprintf(`,"durationMs":%d`, 1000*took)
}

func (l *exportLog) end(i int) {
	a, took := l.open[i], l.took()
	l.open = append(l.open[:i:i], l.open[i+1:]...)
	how := l.rng.IntN(len(endWords))
	var end exportTime
	if l.kaos {
		how = oneOf(l.rng, []int{well, badly, stopped})
		end = l.span("subagent", map[int]string{well: "complete", badly: "error", stopped: "cancelled"}[how], a.span, "", "", fmt.Sprintf(`{"subagent_name":%q}`, a.name), took)
	} else {
		end = l.wiki(a.span, a.around, a.name, "agent.completed", fmt.Sprintf(`{"agentId":%q,"tokens":1,"status":%q%s}`, a.name, spell(l.rng, oneOf(l.rng, endWords[how])), stated(took)))
	}
	l.names[a.name], l.went[how] = true, true
	l.done(drawnSpan{name: a.id, parent: a.below, bad: how == badly || how == refusedEnd || how == stopped}, a.at, end, took)
}

// ask begins a handoff, or in the wiki a question to a person.
func (l *exportLog) ask(a *exportAgent) {
	w := exportWait{kind: "handoff", id: fmt.Sprintf("i%d", l.n), span: fmt.Sprintf("%s-h%d", a.span, l.n), by: a.name, parent: a.id}
	switch {
	case l.kaos:
		w.parent = "root" // the line names no agent
		w.at = l.span("handoff", "start", w.span, "", "", fmt.Sprintf(`{"from_agent":%q,"to_agent":"z%d"}`, a.name, l.n), 0)
	case l.rng.IntN(2) == 0:
		w.at = l.wiki(w.span, a.span, a.name, "handoff.requested", fmt.Sprintf(`{"handoffId":%q,"from":%q,"to":"zed"}`, w.id, a.name))
	default:
		w.kind = "approval"
		w.at = l.wiki(w.span, a.span, a.name, "approval.requested", fmt.Sprintf(`{"approvalId":%q,"action":"go"}`, w.id))
	}
	l.waits = append(l.waits, w)
}

func (l *exportLog) answer(i int) {
	w := l.waits[i]
	l.waits = append(l.waits[:i:i], l.waits[i+1:]...)
	good := l.rng.IntN(2) == 0
	for up := l.of[w.parent]; up != nil && !slices.Contains(l.open, up); up = l.of[w.parent] { // a span that is over has no more
		w.parent = up.below
	}
	s := drawnSpan{name: fmt.Sprintf("agentevents.%s#%d", w.kind, l.n), parent: w.parent, bad: !good && w.kind == "handoff"}
	var end exportTime
	switch {
	case l.kaos:
		phase := "complete"
		if !good {
			phase = oneOf(l.rng, []string{"error", "cancelled"})
		}
		end = l.span("handoff", phase, w.span, "", "", `{}`, 0)
	case w.kind == "handoff" && good:
		end = l.wiki(w.span, "", "zed", "handoff.accepted", fmt.Sprintf(`{"handoffId":%q,"from":%q,"to":"zed"}`, w.id, w.by))
	case w.kind == "handoff":
		end = l.wiki(w.span, "", "zed", "handoff."+oneOf(l.rng, []string{"rejected", "declined", "failed", "cancelled"}), fmt.Sprintf(`{"handoffId":%q}`, w.id))
	default:
		end = l.wiki(w.span, "", "ann", map[bool]string{true: "approval.granted", false: "approval.rejected"}[good], fmt.Sprintf(`{"approvalId":%q}`, w.id))
	}
	if w.at.known && end.known {
		s.marks = fmt.Sprintf(" wait=%d", end.at-w.at.at)
	}
	l.done(s, w.at, end, 0)
}

// draw writes the log and returns how the run went.
func (l *exportLog) draw() (outcome string) {
	begun := exportTime{}
	if l.kaos {
		l.start()
		begun = l.open[0].at
	} else {
		begun = l.wiki("root", "", "user", "session.started", `{"goal":"g"}`)
		l.start()
	}
	for range 6 + l.rng.IntN(20) {
		switch act := l.rng.IntN(6); {
		case act == 0 && l.count < 6:
			l.start()
		case act == 1 && len(l.waits) > 0:
			l.answer(l.rng.IntN(len(l.waits)))
		case len(l.open) == 0:
		case act == 2:
			l.ask(oneOf(l.rng, l.open))
		case act == 3 && len(l.open) > 1:
			l.end(l.rng.IntN(len(l.open)))
		default:
			l.call(oneOf(l.rng, l.open))
		}
	}
	for len(l.open) > 0 {
		l.end(l.rng.IntN(len(l.open)))
	}
	root := drawnSpan{name: "root", from: begun.at, to: l.now}
	for _, s := range l.want {
		root.from = min(root.from, s.from)
		if l.kaos {
			root.to = max(root.to, s.to)
		}
	}
	switch {
	case l.went[badly], l.went[refusedEnd], l.kaos && l.went[stopped]: // a sub-agent that is cancelled is aborted, and that is a failure
		outcome = "failed"
	case l.went[stopped]:
		outcome = "cancelled"
	default:
		outcome = "completed"
	}
	if !l.kaos {
		payload := "{}"
		if how := l.rng.IntN(2 * len(endWords)); how < len(endWords) {
			word := oneOf(l.rng, endWords[how])
			payload = fmt.Sprintf(`{"status":%q}`, word)
			outcome = [...]string{well: "completed", badly: "failed", refusedEnd: "failed", stopped: "cancelled", inPart: word, nobodyKnows: word}[how]
		}
		end := l.wiki("root", "", "boss", "session.completed", payload)
		if root.to = end.at; !end.known {
			root.marks = " end.unknown"
		}
	}
	root.bad = outcome == "failed" || outcome == "cancelled"
	l.want = append(l.want, root)
	return outcome
}

// An otlpSpan is a span of OTLP/JSON, as far as the checker reads it.
type otlpSpan struct {
	Name, SpanID, ParentSpanID         string
	StartTimeUnixNano, EndTimeUnixNano string
	Attributes                         []struct {
		Key   string
		Value struct {
			StringValue, IntValue string
			BoolValue             bool
			DoubleValue           json.Number
		}
	}
	Status struct{ Code int }
}

// exported exports the events and reads the spans, as the generator writes them.
func exported(t *testing.T, events []agentevents.Event) (got []string, outcome string) {
	t.Helper()
	var out bytes.Buffer
	x := otlpjson.NewExporter(otlpjson.Lines(&out), otlpjson.Options{})
	for i := range events {
		require.NoError(t, x.Export(t.Context(), &events[i]))
	}
	require.NoError(t, x.Close(t.Context()))
	require.Zero(t, x.Counts().Unopened)
	var all []otlpSpan
	for line := range bytes.Lines(out.Bytes()) {
		var r struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []otlpSpan } }
		}
		require.NoError(t, json.Unmarshal(line, &r))
		all = append(all, r.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	names, spans := map[string]string{"": ""}, map[string]drawnSpan{}
	seconds := func(nano string) int {
		n, err := strconv.ParseInt(nano, 10, 64)
		require.NoError(t, err)
		return int(time.Unix(0, n).Sub(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)).Truncate(time.Millisecond) / time.Second)
	}
	for _, s := range all {
		one := drawnSpan{from: seconds(s.StartTimeUnixNano), to: seconds(s.EndTimeUnixNano), bad: s.Status.Code == 2}
		name, wait, marks := s.Name, "", map[string]bool{}
		for _, a := range s.Attributes {
			switch a.Key {
			case "agentevents.seq.first":
				name += "#" + a.Value.IntValue
			case "agentevents.wait":
				wait = " wait=" + a.Value.DoubleValue.String()
			case "agentevents.run.outcome":
				outcome = a.Value.StringValue
			default:
				marks[a.Key] = a.Value.BoolValue
			}
		}
		one.marks = wait
		for _, mark := range []string{"start.unknown", "end.unknown", "time.stated"} {
			if marks["agentevents."+mark] {
				one.marks += " " + strings.TrimPrefix(mark, "time.")
			}
		}
		if s.ParentSpanID == "" {
			name = "root"
		}
		names[s.SpanID], spans[s.SpanID] = name, one
	}
	for _, s := range all {
		one := spans[s.SpanID]
		one.name, one.parent = names[s.SpanID], names[s.ParentSpanID]
		got = append(got, one.String())
	}
	return got, outcome
}

// TestExportsShowWhoWorkedAndWhen draws logs of agents that work at once, many under one name, with
// calls, handoffs and questions to people, some of whose lines have no time. The generator knows
// the parents of spans and the known times from the spans of the log alone. An export has just
// these spans, and the outcome of the run.
func TestExportsShowWhoWorkedAndWhen(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 382))
	for i := range effort.Of(100, 400, 5000) {
		l := &exportLog{rng: rng, kaos: i%2 == 1, names: map[string]bool{}, of: map[string]*exportAgent{}}
		outcome := l.draw()
		log := l.String()
		var events []agentevents.Event
		if l.kaos {
			for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: kaos.NewDecoder(kaos.Options{})}).All() {
				require.NoError(t, err, log)
				events = append(events, ev)
			}
		} else {
			events = readWiki(t, log)
		}
		want := make([]string, len(l.want))
		for i, s := range l.want {
			want[i] = s.String()
		}
		got, went := exported(t, events)
		require.ElementsMatch(t, want, got, log)
		require.Equal(t, outcome, went, log)
	}
}
