package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// A sister is a span that a log of sisters means: the generator knows it, and the export has to
// find it. Times are in seconds.
type sister struct {
	name       string
	parent     *sister
	start, end int
}

// A sisterLog makes a log of runs that may lack starts, with several agents, attempts and
// workflows, in the order of their times.
type sisterLog struct {
	rnd   *rand.Rand
	lines map[int]string // by time
	spans []*sister
	names int
}

var sisterDay = time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)

// at adds an event at a time that is free, at the given one or later, and returns that.
func (l *sisterLog) at(t int, kind, envelope, payload string) int {
	for l.lines[t] != "" {
		t++
	}
	l.lines[t] = fmt.Sprintf(`"timestamp":%q,"type":%q,"runId":"R",%s"payload":{%s}}`, sisterDay.Add(time.Duration(t)*time.Second).Format(time.RFC3339), kind, envelope, payload)
	return t
}

func (l *sisterLog) span(name string, parent *sister, start, end int) *sister {
	s := &sister{name, parent, start, end}
	l.spans = append(l.spans, s)
	return s
}

func (l *sisterLog) name(prefix string) string {
	l.names++
	return prefix + strconv.Itoa(l.names)
}

// call adds a tool call: both events, or an end that states a duration, or one that does not.
func (l *sisterLog) call(agent string, parent *sister, t int) (first, last int) {
	id := l.name("t")
	of := `"agentId":"` + agent + `",`
	what := `"callId":"` + id + `","toolId":"` + id + `"`
	start, payload := t, what+`,"status":"ok"`
	switch l.rnd.IntN(3) {
	case 0:
		start = l.at(t, "agent.toolCalled", of, what)
		last = l.at(start+1, "agent.toolReturned", of, payload)
	case 1:
		took := 1 + l.rnd.IntN(3)
		last = l.at(t+took, "agent.toolReturned", of, payload+`,"durationMs":`+strconv.Itoa(1000*took))
		start = last - took
	default:
		last = l.at(t, "agent.toolReturned", of, payload)
		start = last
	}
	l.span("execute_tool "+id, parent, start, last)
	return start, last
}

// agent adds an agent with its attempts. It returns the time after them.
func (l *sisterLog) agent(parent *sister, envelope string, t int, mayAct bool) int {
	name := l.name("a")
	of := envelope + `"agentId":"` + name + `",`
	form := l.rnd.IntN(3)
	switch {
	case form == 0 && mayAct: // no start and no end
		s := l.span("invoke_agent "+name, parent, 1<<30, 0)
		for range 1 + l.rnd.IntN(3) {
			first, last := l.call(name, s, t)
			s.start, s.end, t = min(s.start, first), max(s.end, last), last+1
		}
	case form == 1: // an end alone
		took := l.rnd.IntN(4)
		end := l.at(t+took, "agent.ended", of, `"outcome":"converged","durationMs":`+strconv.Itoa(1000*took))
		l.span("invoke_agent "+name, parent, end-took, end)
		t = end + 1
	default:
		for range 1 + l.rnd.IntN(3) {
			start := l.at(t, "agent.started", of, "")
			s := l.span("invoke_agent "+name, parent, start, 0)
			t = start + 5
			for range l.rnd.IntN(3) {
				_, last := l.call(name, s, t)
				t = last + 5
			}
			s.end = l.at(t, "agent.ended", of, `"outcome":"converged"`)
			t = s.end + 1
		}
	}
	return t
}

// workflow adds a workflow with a phase and its agents, or its end alone.
func (l *sisterLog) workflow(root *sister, t int) {
	name := l.name("w")
	of := `"workflowId":"` + name + `",`
	done := `"totalTokens":1,"totalAgents":1,"durationMs":`
	if l.rnd.IntN(3) == 0 {
		took := 1 + l.rnd.IntN(4)
		end := l.at(t+took, "workflow.finalized", of, done+strconv.Itoa(1000*took))
		l.span("invoke_workflow "+name, root, end-took, end)
		return
	}
	w := l.span("invoke_workflow "+name, root, l.at(t, "workflow.created", of, `"script":"s","phases":["dig"]`), 0)
	of += `"phase":"dig",`
	phase := l.span("run_step dig", w, l.at(w.start+1, "workflow.phase.started", of, ""), 0)
	t = phase.start + 1
	for range l.rnd.IntN(3) {
		name := l.name("a")
		a := l.span("invoke_agent "+name, phase, l.at(t, "agent.started", of+`"agentId":"`+name+`",`, ""), 0)
		a.end = l.at(a.start+1, "agent.ended", of+`"agentId":"`+name+`",`, `"outcome":"converged"`)
		t = a.end + 1
	}
	phase.end = l.at(t, "workflow.phase.completed", of, "")
	w.end = l.at(phase.end+1, "workflow.finalized", of, done+"0")
}

// sisters returns a log and the spans that it means.
func sisters(seed uint64) (log string, spans []*sister) {
	l := &sisterLog{rnd: rand.New(rand.NewPCG(seed, 38)), lines: map[int]string{}}
	root := l.span("invoke_workflow", nil, 0, 0)
	stated := l.rnd.IntN(2) == 0
	switch {
	case stated:
		root.name = "invoke_workflow haul"
		l.at(0, "run.started", "", `"name":"haul"`)
	case l.rnd.IntN(2) == 0:
		l.at(0, "session.started", "", `"goal":"haul"`)
	}
	for range 1 + l.rnd.IntN(4) {
		l.agent(root, "", 1+l.rnd.IntN(30), !stated)
	}
	for range l.rnd.IntN(4) {
		l.workflow(root, 1+l.rnd.IntN(30))
	}
	last := 0
	for t := range l.lines {
		last = max(last, t)
	}
	if stated {
		last = l.at(last+1, "run.completed", "", "")
	}
	root.end = last
	if l.lines[0] == "" { // then the first work is the beginning
		root.start = 1 << 30
		for t := range l.lines {
			root.start = min(root.start, t)
		}
		for _, s := range l.spans[1:] {
			root.start = min(root.start, s.start)
		}
	}
	var b strings.Builder
	n := 0
	for t := range last + 1 {
		if line := l.lines[t]; line != "" {
			fmt.Fprintf(&b, "{\"id\":\"e%d\",\"sequence\":%d,%s\n", n, n, line)
			n++
		}
	}
	return b.String(), l.spans
}

// TestSisters exports logs whose spans are known: agents with and without a start, in runs with
// and without one, several workflows, attempts, and ends alone. Names are unique but for attempts
// and phases, which their times tell apart.
func TestSisters(t *testing.T) {
	for seed := range uint64(effort.Of(100, 400, 5000)) {
		log, means := sisters(seed)
		var want, tracks []string
		draw := func(s *sister) string { return fmt.Sprintf("%s %d-%d", s.name, s.start, s.end) }
		for _, s := range means {
			up := "none"
			if s.parent != nil {
				up = draw(s.parent)
			}
			want = append(want, draw(s)+" below "+up)
			tracks = append(tracks, draw(s))
		}
		seconds := func(text string) int {
			n, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			return int(time.Unix(0, n).Sub(sisterDay) / time.Second) // a span without a duration has a nanosecond
		}
		r := exec(log, "export", "otlp", "-")
		require.Equal(t, exitOK, r.code, r.err)
		all := spansOf(t, r.out)
		byID := map[string]string{"": "none"}
		line := func(s *otlpSpan) string { return fmt.Sprintf("%s %d-%d", s.Name, seconds(s.Start), seconds(s.End)) }
		for i := range all {
			byID[all[i].ID] = line(&all[i])
		}
		var got []string
		for i := range all {
			got = append(got, line(&all[i])+" below "+byID[all[i].Parent])
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got, "seed %d\n%s", seed, log)

		first := means[0].start
		for _, s := range means {
			first = min(first, s.start)
		}
		var drawn []string
		for _, e := range chromeEvents(t, exec(log, "export", "chrome", "-").out) {
			if e.Ph == "X" {
				start := first + int(e.Ts/1e6)
				drawn = append(drawn, fmt.Sprintf("%s %d-%d", e.Name, start, start+int(e.Dur/1e6)))
			}
		}
		slices.Sort(tracks)
		slices.Sort(drawn)
		require.Equal(t, tracks, drawn, "seed %d, chrome\n%s", seed, log)
	}
}
