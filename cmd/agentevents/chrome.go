package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/replay"
	"github.com/agentevents/agentevents/internal/spans"
	"github.com/agentevents/agentevents/otlpjson"
)

// A chromeTrace collects the spans of a log for the Trace Event Format. Viewers take a
// track for a stack, so spans of one track that overlap without being nested need two.
type chromeTrace struct {
	w      io.Writer
	log    *replay.Log
	spans  []*spans.Span
	events int
}

func (x *export) chrome(w *output) exporter {
	c := &chromeTrace{w: w}
	c.log = replay.New(spans.Options{
		Ended:   func(s *spans.Span) { c.spans = append(c.spans, s) },
		Content: spans.InTrace(x.options.Content), NoSteps: x.options.NoSteps,
	})
	return c
}

func (c *chromeTrace) Export(_ context.Context, ev *agentevents.Event) error {
	c.events++
	c.log.Feed(ev)
	return nil
}

func (c *chromeTrace) Counts() otlpjson.Counts {
	n := &c.log.Counts
	return otlpjson.Counts{
		Events: c.events, Runs: n.Runs, Spans: n.Spans, Closed: n.Closed,
		Repeated: n.Repeated, Late: n.Late, Unplaced: n.Unplaced, Unopened: n.Unopened,
		Untimed: n.Untimed, Timeless: n.Timeless, // viewers begin with 0, so no date is wrong
	}
}

// A track holds an agent's spans: a thread, and more threads for spans that overlap.
type track struct{ lanes []lane }

// A lane is a thread. Its spans are nested.
type lane struct {
	tid  int
	ends []time.Time // of the spans that are open at the start of the next one, inner ones last
}

// A chromeProcess is a run.
type chromeProcess struct {
	pid    int
	tracks map[string]*track
	tids   int
}

// Close writes the trace.
func (c *chromeTrace) Close(context.Context) error {
	c.log.Close()
	hs := heritages{}
	slices.SortStableFunc(c.spans, func(a, b *spans.Span) int {
		return cmp.Or(a.Start.Compare(b.Start), b.End.Compare(a.End), cmp.Compare(hs.of(a).depth, hs.of(b).depth))
	})
	text := []byte(`{"displayTimeUnit":"ms","traceEvents":[`)
	processes := map[spans.TraceID]*chromeProcess{}
	for i, s := range c.spans {
		if i > 0 {
			text = append(text, ',')
		}
		inherited := hs.of(s).texts
		p := processes[s.TraceID]
		if p == nil {
			p = &chromeProcess{pid: len(processes) + 1, tracks: map[string]*track{}}
			processes[s.TraceID] = p
			text = appendChromeName(text, "process_name", p.pid, 0, "run "+inherited[inheritRun])
		}
		agent := cmp.Or(inherited[inheritAgent], inherited[inheritName], "run")
		tid, isNew := p.place(agent, s)
		if isNew {
			text = appendChromeName(text, "thread_name", p.pid, tid, agent)
		}
		text = appendSlice(text, s, cmp.Or(inherited[inheritOperation], "agentevents"), p.pid, tid, c.spans[0].Start)
		if _, err := c.w.Write(text); err != nil {
			return err
		}
		text = text[:0]
	}
	_, err := c.w.Write(append(text, "\n]}\n"...))
	return err
}

// inheritable are the attributes that the spans below a span share.
var inheritable = [...]string{
	inheritRun: "agentevents.run.id", inheritAgent: "agentevents.agent.id",
	inheritName: "gen_ai.agent.name", inheritOperation: "gen_ai.operation.name",
}

const (
	inheritRun = iota
	inheritAgent
	inheritName
	inheritOperation
)

// A heritage has a span's own and inherited attributes.
type heritage struct {
	depth int
	texts [len(inheritable)]string // "" without one
}

// heritages has the heritage of each span. Each is made once from its parent's: spans that nothing
// ends are deep.
type heritages map[*spans.Span]heritage

func (hs heritages) of(s *spans.Span) heritage {
	var anew []*spans.Span
	for ; s != nil; s = s.Parent {
		if _, known := hs[s]; known {
			break
		}
		anew = append(anew, s)
	}
	h := hs[s] // none above a root
	for _, s := range slices.Backward(anew) {
		h.depth++
		for _, a := range s.Attributes {
			if i := slices.Index(inheritable[:], a.Key); i >= 0 && a.Value == nil {
				h.texts[i] = a.Text
			}
		}
		hs[s] = h
	}
	return h
}

// place returns the thread of an agent's span, and whether no span was placed there before.
// Spans come in the order of their starts, outer ones first.
func (p *chromeProcess) place(agent string, s *spans.Span) (tid int, isNew bool) {
	t := p.tracks[agent]
	if t == nil {
		t = &track{}
		p.tracks[agent] = t
	}
	for i := range t.lanes {
		l := &t.lanes[i]
		for n := len(l.ends); n > 0 && !l.ends[n-1].After(s.Start); n-- {
			l.ends = l.ends[:n-1]
		}
		if n := len(l.ends); n == 0 || !s.End.After(l.ends[n-1]) {
			l.ends = append(l.ends, s.End)
			return l.tid, false
		}
	}
	p.tids++
	t.lanes = append(t.lanes, lane{p.tids, []time.Time{s.End}})
	return p.tids, true
}

func appendChromeName(dst []byte, what string, pid, tid int, name string) []byte {
	dst = append(dst, "\n{\"ph\":\"M\",\"name\":\""...)
	dst = append(dst, what...)
	dst = appendThread(append(dst, '"'), pid, tid)
	dst = append(dst, `,"args":{"name":`...)
	dst = jsonwire.AppendString(dst, name)
	return append(dst, "}},"...)
}

func appendThread(dst []byte, pid, tid int) []byte {
	dst = append(dst, `,"pid":`...)
	dst = strconv.AppendInt(dst, int64(pid), 10)
	dst = append(dst, `,"tid":`...)
	return strconv.AppendInt(dst, int64(tid), 10)
}

// appendSlice appends a complete event. Its time is in microseconds since the first span
// began: viewers show no others, and a float64 holds it to the nanosecond.
func appendSlice(dst []byte, s *spans.Span, category string, pid, tid int, first time.Time) []byte {
	dst = append(dst, "\n{\"ph\":\"X\",\"name\":"...)
	dst = jsonwire.AppendString(dst, s.Name)
	dst = append(dst, `,"cat":`...)
	dst = jsonwire.AppendString(dst, category)
	dst = appendThread(dst, pid, tid)
	dst = append(dst, `,"ts":`...)
	dst = appendMicros(dst, s.Start.Sub(first))
	dst = append(dst, `,"dur":`...)
	dst = appendMicros(dst, s.End.Sub(s.Start))
	dst = appendArgs(append(dst, `,"args":{`...), s.Attributes)
	if s.Status == spans.StatusError {
		dst = jsonwire.AppendString(appendKey(dst, "error"), s.Description)
	}
	if s.DroppedPoints > 0 {
		dst = strconv.AppendInt(appendKey(dst, "earlier events left out"), int64(s.DroppedPoints), 10)
	}
	for i := range s.Points {
		pt := &s.Points[i]
		after, sign := pt.Time.Sub(s.Start), "+"
		if after < 0 {
			sign = "" // the duration has one
		}
		dst = append(appendKey(dst, fmt.Sprintf("%d %s", pt.Sequence, pt.Name)), '{')
		dst = jsonwire.AppendString(appendKey(dst, "at"), sign+after.String())
		dst = append(appendArgs(dst, pt.Attributes), '}')
	}
	return append(dst, "}}"...)
}

// appendArgs appends attributes as members of an object.
func appendArgs(dst []byte, attrs []spans.Attr) []byte {
	for _, a := range attrs {
		if value, err := json.Marshal(a.Any()); err == nil { // else no number of JSON
			dst = append(appendKey(dst, a.Key), value...)
		}
	}
	return dst
}

// appendKey appends the name of an argument, after a comma unless it is the first.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(jsonwire.AppendString(dst, key), ':')
}

func appendMicros(dst []byte, d time.Duration) []byte {
	return jsonwire.AppendFloat(dst, float64(d)/float64(time.Microsecond))
}
