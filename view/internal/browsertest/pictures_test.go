package browsertest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/view"
)

var pictures = flag.Bool("pictures", false, "write the pictures of docs/page.md")

// logOf records a log with a clock that the program moves.
func logOf(t *testing.T, f func(em *ae.Emitter, wait func(time.Duration))) []ae.Event {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	em, rec := eventtest.RecordWith(t, ae.EmitterOptions{Clock: func() time.Time { return now }})
	f(em, func(d time.Duration) { now = now.Add(d) })
	return rec.Events()
}

// audit is a run whose lead hands 24 modules to agents that work at the same time.
func audit(t *testing.T) []ae.Event {
	return logOf(t, func(em *ae.Emitter, wait func(time.Duration)) {
		run, err := em.Run("audit-7")
		require.NoError(t, err)
		ctx := t.Context()
		ok := func(err error) { require.NoError(t, err) }
		ok(run.Emit(ctx, &ae.RunStarted{Name: "audit of 24 modules"}))
		lead := run.Agent("lead")
		ok(lead.Emit(ctx, &ae.AgentStarted{Task: "Audit all modules for unchecked errors"}))
		wait(2 * time.Second)
		const n = 24
		var agents [n]*ae.Agent
		var calls [n]*ae.Call
		for i := range n {
			agents[i] = lead.Agent(fmt.Sprintf("auditor-%02d", i))
			ok(agents[i].Emit(ctx, &ae.AgentStarted{Task: fmt.Sprintf("Audit module %02d", i)}))
			wait(120 * time.Millisecond)
		}
		for round := range 4 {
			for i, a := range agents {
				var err error
				calls[i], err = a.Call(ctx, &ae.ToolCalled{ToolID: []string{"Grep", "Read", "Read", "Bash"}[round], Arguments: ae.JSON(fmt.Sprintf(`{"path":"module%02d/main.go"}`, i))})
				ok(err)
				wait(time.Duration(40+(i*37+round*11)%90) * time.Millisecond)
			}
			for k := range n {
				i := (k*7 + round*5) % n
				if round == 3 && i%9 == 4 {
					ok(calls[i].Fail(ctx, fmt.Errorf("go vet: exit status 1 in module%02d", i)))
				} else {
					ok(calls[i].Return(ctx, ae.JSON(`"ok"`)))
				}
				wait(time.Duration(60+(i*53+round*29)%170) * time.Millisecond)
			}
		}
		for i, a := range agents {
			ok(a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Usage: ae.Some(ae.Usage{InputTokens: int64(9000 + 431*i), OutputTokens: int64(600 + 17*i)})}))
			wait(90 * time.Millisecond)
		}
		wait(3 * time.Second)
		ok(lead.Emit(ctx, &ae.TextCompleted{Text: "Three modules ignore errors: 04, 13 and 22."}))
		ok(lead.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged, Usage: ae.Some(ae.Usage{InputTokens: 41000, OutputTokens: 2900})}))
		ok(run.Emit(ctx, &ae.RunCompleted{}))
	})
}

// release is a run that waits for a person. With an answer it goes on.
func release(t *testing.T, answered bool) []ae.Event {
	return logOf(t, func(em *ae.Emitter, wait func(time.Duration)) {
		run, err := em.Run("release-14")
		require.NoError(t, err)
		ctx := t.Context()
		ok := func(err error) { require.NoError(t, err) }
		ok(run.Emit(ctx, &ae.RunStarted{Name: "release 1.4"}))
		a := run.Agent("releaser")
		ok(a.Emit(ctx, &ae.AgentStarted{Task: "Publish version 1.4"}))
		wait(3 * time.Second)
		use := func(tool, arguments, result string, took time.Duration) {
			c, err := a.Call(ctx, &ae.ToolCalled{ToolID: tool, Arguments: ae.JSON(arguments)})
			ok(err)
			wait(took)
			ok(c.Return(ctx, ae.JSON(result)))
			wait(2 * time.Second)
		}
		use("Bash", `{"command":"go test ./..."}`, `"ok"`, 47*time.Second)
		use("Bash", `{"command":"git tag v1.4.0"}`, `""`, time.Second)
		ok(a.Emit(ctx, &ae.TextCompleted{Text: "All tests pass. The tag is ready to be pushed."}))
		ok(a.Emit(ctx, &ae.ApprovalRequested{ApprovalID: "p1", Action: "git push origin v1.4.0", Reason: "the tag is public and cannot be taken back"}))
		wait(4 * time.Minute)
		if !answered {
			return
		}
		ok(a.Emit(ctx, &ae.ApprovalGranted{ApprovalID: "p1", ApprovedBy: "ada"}))
		use("Bash", `{"command":"git push origin v1.4.0"}`, `"pushed"`, 2*time.Second)
		ok(a.Emit(ctx, &ae.AgentEnded{Outcome: ae.OutcomeConverged}))
		ok(run.Emit(ctx, &ae.RunCompleted{}))
	})
}

func session(t *testing.T, path string) (events []ae.Event) {
	sessions, err := capture.Open(path, capture.Options{})
	require.NoError(t, err)
	for _, s := range sessions {
		for line, err := range s.Lines() {
			require.NoError(t, err)
			events = append(events, *line.Event)
		}
	}
	return events
}

// TestPictures opens the pages that docs/page.md shows. None is wider than its window, in a wide and
// in a narrow one. With -pictures it writes the pictures.
func TestPictures(t *testing.T) {
	ctx := browser(t)
	log := func(name string, events []ae.Event) view.Log { return view.Log{Name: name, Events: seq(events)} }
	failing := audit(t)
	for _, c := range []struct {
		name, keys string // of the file, and that lead to the view
		logs       []view.Log
	}{
		{"agents", "2", []view.Log{log("a Claude Code session with sub-agents", session(t, "../../../capture/testdata/claude/agents"))}},
		{"codex", "3", []view.Log{log("a Codex session", session(t, "../../../capture/testdata/codex/agents-v2"))}},
		{"parallel", "2", []view.Log{log("24 agents", failing)}},
		{"waiting", "1", []view.Log{log("a run that waits for a person", release(t, false))}},
		{"diff", "5", []view.Log{log("yesterday", release(t, false)), log("today", release(t, true))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, ctx, view.Options{}, c.logs...)
			for _, width := range []int64{400, 1200} {
				require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 720)))
				for _, keys := range []string{"1", "2", "3", "4", c.keys} {
					p.keys(keys)
					require.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth`), int(width), "the page is wider than its window")
					require.LessOrEqual(t, eval[int](p, `Math.max(...[...document.querySelectorAll("#pane canvas")].map(c => c.getBoundingClientRect().right - $("pane").getBoundingClientRect().right), 0)`), 0, "a picture is wider than its pane")
				}
				require.NotContains(t, eval[string](p, `document.body.innerText`), "undefined")
			}
			p.clean()
			if *pictures {
				shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join("../../../docs/pictures", c.name+".png"), small(t, shot), 0o644))
			}
		})
	}
}

// small returns a picture with 256 colours, which takes half of the bytes: those that it has most of
// and that differ enough.
func small(t *testing.T, text []byte) []byte {
	full, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	counts := map[color.RGBA]int{}
	b := full.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, c color.RGBA) int {
		return cmp.Or(counts[c]-counts[a], int(a.R)-int(c.R), int(a.G)-int(c.G), int(a.B)-int(c.B))
	})
	var palette color.Palette
	for _, c := range colours {
		square := func(a, c uint8) int { return (int(a) - int(c)) * (int(a) - int(c)) }
		near := slices.ContainsFunc(palette, func(p color.Color) bool {
			o := p.(color.RGBA)
			return square(o.R, c.R)+square(o.G, c.G)+square(o.B, c.B) < 60
		})
		if !near && len(palette) < 256 {
			palette = append(palette, c)
		}
	}
	out := image.NewPaletted(b, palette)
	draw.Draw(out, b, full, b.Min, draw.Src)
	var w bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out))
	return w.Bytes()
}
