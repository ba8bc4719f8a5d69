package browsertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/view"
)

// hostile are texts that a page must show and not run.
var hostile = []string{
	`</script><script>window.hit=1</script>`, `<img src=x onerror="window.hit=1">`, `--><svg/onload=window.hit=1>`, `javascript:window.hit=1`,
	"\u202egnp.exe\u2066", "{{data}}{{script}}", `\u003cb\u003e`, "a\nb\r\nc\x00d\x1b[31m", "\u2028\u2029", strings.Repeat("long ", 220_000),
}

// A log with markup, scripts, bidirectional text, lone surrogates, values of a megabyte and unknown
// kinds runs nothing and breaks nothing.
func TestHostileLog(t *testing.T) {
	ctx := browser(t)
	at := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC)
	var events []agentevents.Event
	add := func(agent string, p agentevents.Payload) {
		n := uint64(len(events))
		events = append(events, agentevents.Event{ID: fmt.Sprint("e", n), RunID: hostile[0], Sequence: n, Time: at.Add(time.Duration(n) * time.Second), AgentID: agent, SchemaVersion: agentevents.SchemaVersion, Payload: p})
	}
	add("", &agentevents.RunStarted{Name: hostile[1]})
	for i, text := range hostile {
		agent := "a" + text[:min(len(text), 40)]
		add(agent, &agentevents.AgentStarted{Task: text, Name: text})
		add(agent, &agentevents.ToolCalled{CallID: text[:min(len(text), 100)], ToolID: text[:min(len(text), 100)], Arguments: agentevents.JSON(agentevents.JSONString(text))})
		add(agent, &agentevents.ToolReturned{CallID: text[:min(len(text), 100)], ToolID: text[:min(len(text), 100)], Status: agentevents.ToolStatusError, Error: agentevents.Some(agentevents.ErrorInfo{Message: text})})
		add(agent, &agentevents.TextCompleted{BlockID: fmt.Sprint(i), Text: text})
		add(agent, &agentevents.Unknown{Type: agentevents.Kind("x." + text[:min(len(text), 40)]), Raw: agentevents.JSON(`{"lone":"\ud800","text":` + string(agentevents.JSONString(text)) + `}`)})
	}
	p := open(t, ctx, view.Options{Title: hostile[0]}, view.Log{Name: hostile[1], Events: seq(events)}, view.Log{Name: "b", Events: seq(events[:7])})
	for _, tab := range []string{"Diff", "Summary", "Timeline", "Transcript", "Events"} {
		eval[bool](p, fmt.Sprintf(`(app.open(%q), true)`, tab))
		for i := range events {
			eval[bool](p, fmt.Sprintf(`(app.go(%d), true)`, i))
		}
	}
	require.False(t, eval[bool](p, `"hit" in window`))
	require.Zero(t, eval[int](p, `document.querySelectorAll("main img, main svg, main script, header img").length`))
	require.NotContains(t, eval[string](p, `document.body.textContent`), "\u202e")
	p.clean()
}

// A log without events has a page that tells so.
func TestNoEvents(t *testing.T) {
	p := open(t, browser(t), view.Options{}, view.Log{Name: "empty", Events: seq(nil)})
	require.Equal(t, "The log has no events", eval[string](p, `$("heading").textContent`))
	p.clean()
}

// The keys alone lead to each failure, question and event.
func TestKeys(t *testing.T) {
	ctx := browser(t)
	at0 := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC)
	var events []agentevents.Event
	for n := range uint64(60) {
		ev := agentevents.Event{ID: fmt.Sprint("e", n), RunID: "r", Sequence: n, Time: at0.Add(time.Duration(n) * time.Second), AgentID: "a", SchemaVersion: agentevents.SchemaVersion}
		p := &agentevents.ToolReturned{CallID: fmt.Sprint("c", n/2), ToolID: "tool", Status: agentevents.ToolStatusOK}
		switch {
		case n%2 == 0:
			ev.Payload = &agentevents.ToolCalled{CallID: p.CallID, ToolID: "tool"}
		case n%9 == 0:
			p.Status, p.Error = agentevents.ToolStatusError, agentevents.Some(agentevents.ErrorInfo{Message: "no such file"})
			fallthrough
		default:
			ev.Payload = p
		}
		events = append(events, ev)
	}
	p := open(t, ctx, view.Options{}, view.Log{Name: "drawn", Events: seq(events)})
	at := func() int { return eval[int](p, `app.at`) }
	p.keys(kb.Home)
	require.Zero(t, at())
	p.keys(kb.ArrowRight + "l" + kb.ArrowLeft)
	require.Equal(t, 1, at())
	p.keys(kb.End)
	require.Equal(t, len(events)-1, at())
	for i, tab := range []string{"Summary", "Timeline", "Transcript", "Events"} {
		p.keys(fmt.Sprint(i + 1))
		require.Equal(t, tab, eval[string](p, `app.tab`))
	}
	failed := eval[[]int](p, `app.run.rows.flatMap((r, i) => r[MARK] === 2 ? [i] : [])`)
	require.NotEmpty(t, failed)
	p.keys(kb.Home)
	for _, want := range failed {
		p.keys("n")
		require.Equal(t, want, at())
	}
	p.keys("/")
	require.Equal(t, "find", eval[string](p, `document.activeElement.id`))
	eval[string](p, `$("find").value = ""`) // the driver types the key although the page has used it
	p.keys("tool" + kb.Enter)
	require.Positive(t, eval[int](p, `app.hits.length`))
	p.keys(kb.Escape + "?")
	require.True(t, eval[bool](p, `document.getElementById("help").open`))
	p.keys(kb.Escape + "4" + kb.Home)
	require.Zero(t, at())
	p.clean()
}

// Each failed call of a session is three keys or fewer from the start page, with its text.
func TestFailuresAreNear(t *testing.T) {
	ctx := browser(t)
	var events []agentevents.Event
	sessions, err := capture.Open("../../../capture/testdata/claude/fail", capture.Options{})
	require.NoError(t, err)
	for _, s := range sessions {
		for line, err := range s.Lines() {
			require.NoError(t, err)
			events = append(events, *line.Event)
		}
	}
	p := open(t, ctx, view.Options{}, view.Log{Name: "fail", Events: seq(events)})
	failed := 0
	for i := range events {
		r, ok := events[i].Payload.(*agentevents.ToolReturned)
		if !ok || r.Status != agentevents.ToolStatusError {
			continue
		}
		failed++
		reached := false
		for key := '1'; key <= '9' && !reached; key++ {
			p.keys("1a" + string(key))
			right := eval[string](p, `$("right").textContent`)
			reached = strings.Contains(right, r.CallID) && strings.Contains(right, strings.Fields(r.Error.V.Message + r.ResultSummary + string(r.Result))[0])
		}
		require.True(t, reached, r.CallID)
	}
	require.Greater(t, failed, 3)
	p.clean()
}

// A page of many events is ready soon, and a step of its cursor is short: by the browser's own
// clock, which this test prints and does not judge, as machines differ.
func TestLargeLog(t *testing.T) {
	ctx := browser(t)
	n := effort.Of(2_000, 10_000, 100_000)
	events := make([]agentevents.Event, 0, n)
	at := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC)
	size := 0
	for i := range n {
		ev := agentevents.Event{ID: fmt.Sprint("e", i), RunID: "r", Sequence: uint64(i), Time: at.Add(time.Duration(i) * 300 * time.Millisecond), AgentID: fmt.Sprint("agent-", i/2%8), SchemaVersion: agentevents.SchemaVersion}
		call := fmt.Sprint("c", i/2)
		switch i % 2 {
		case 0:
			ev.Payload = &agentevents.ToolCalled{CallID: call, ToolID: fmt.Sprint("tool", i%7), Arguments: agentevents.JSON(fmt.Sprintf(`{"path":"f%d.go","text":%q}`, i, strings.Repeat(fmt.Sprint("word", i%97, " "), 40)))}
		default:
			ev.Payload = &agentevents.ToolReturned{CallID: call, ToolID: fmt.Sprint("tool", (i-1)%7), Status: agentevents.ToolStatusOK, Result: agentevents.JSON(agentevents.JSONString(strings.Repeat(fmt.Sprint("line", i%89, " "), 40)))}
		}
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		size += len(line)
		events = append(events, ev)
	}
	name := save(t, view.Options{Unredacted: true}, view.Log{Name: "large", Events: seq(events)})
	figures := map[string][]float64{}
	for range 5 {
		p := visit(t, ctx, name)
		p.wait()
		note := func(what, expression string) { figures[what] = append(figures[what], eval[float64](p, expression)) }
		note("ready, ms", `Number(document.documentElement.dataset.ready)`)
		for _, tab := range []string{"Summary", "Timeline", "Transcript", "Events"} {
			note(tab+": to draw it, ms", fmt.Sprintf(`(() => { const t = performance.now(); app.open(%q); return performance.now() - t; })()`, tab))
			for what, at := range map[string]string{"step": `app.at + 1`, "jump": `Math.floor(app.run.rows.length * (i * 37 % 50) / 50)`} {
				note(tab+": a "+what+" of the cursor, ms", fmt.Sprintf(`(() => { const all = []; for (let i = 0; i < 50; i++) { const t = performance.now(); app.go(%s); all.push(performance.now() - t); } return all.sort((a, b) => a - b)[25]; })()`, at))
			}
		}
		note("heap, bytes of the log", fmt.Sprintf(`performance.memory.usedJSHeapSize / %d`, size))
		require.Equal(t, n, eval[int](p, `app.run.rows.length`))
		p.clean()
	}
	t.Logf("%d events, %d MB: medians of five, and the least", n, size>>20)
	for _, what := range slices.Sorted(maps.Keys(figures)) {
		slices.Sort(figures[what])
		t.Logf("%s: %.1f (%.1f)", what, figures[what][2], figures[what][0])
	}
}
