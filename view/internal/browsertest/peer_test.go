package browsertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/view"
)

// claudeSession writes a session as Claude Code does: each prompt is followed by calls, and by an answer.
func claudeSession(t *testing.T, prompts, calls int) (name string, lines int) {
	var b bytes.Buffer
	at, parent := time.Date(2026, 5, 2, 6, 0, 0, 0, time.UTC), "null"
	draw := rand.New(rand.NewPCG(1, 2))
	text := func(words int) string { // packs to about a quarter, as sessions do
		var b strings.Builder
		for n := range words {
			fmt.Fprintf(&b, "w%d%c", draw.IntN(1+draw.IntN(4000)), " \n"[min(n%12/11, 1)])
		}
		return b.String()
	}
	add := func(kind, message string) {
		id := fmt.Sprintf(`"00000000-0000-4000-8000-%012d"`, lines)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"type":%q,"message":%s,"uuid":%s,"timestamp":%q,"cwd":"/repo","sessionId":"11111111-1111-4111-8111-111111111111","version":"2.1.328"}`+"\n",
			parent, kind, message, id, at.Format("2006-01-02T15:04:05.000Z"))
		parent, at, lines = id, at.Add(300*time.Millisecond), lines+1
	}
	assistant := func(n int, stop, content string) {
		add("assistant", fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"claude-opus-5-5","content":[%s],"stop_reason":%q,"usage":{"input_tokens":100,"output_tokens":60}}`, n, content, stop))
	}
	for p := range prompts {
		add("user", fmt.Sprintf(`{"role":"user","content":"Prompt %d: look at the next files."}`, p))
		for c := range calls {
			n := p*calls + c
			assistant(n, "tool_use", fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/repo/part%d/file%d.go"}}`, n, n%97, n))
			add("user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]}`, n, text(150)))
		}
		assistant(prompts*calls+p, "end_turn", fmt.Sprintf(`{"type":"text","text":%q}`, text(60)))
	}
	name = filepath.Join(t.TempDir(), "session.jsonl")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name, lines
}

// shownAt notes the time of the frame after the one in which a page is ready. Both pages mark that with
// the same attribute.
const shownAt = `new MutationObserver((_, o) => {
	if (!document.querySelector("[data-ready]")) return;
	o.disconnect();
	requestAnimationFrame(() => setTimeout(() => { window.shownAt = performance.now(); }));
}).observe(document, { attributes: true, childList: true, subtree: true, attributeFilter: ["data-ready"] });`

// The page of a session beside the one that claude-replay writes of the same session: bytes, and
// milliseconds until it is shown, by the browser's own clock. The test prints them and does not judge.
func TestBesideClaudeReplay(t *testing.T) {
	folder := os.Getenv("AGENTEVENTS_REPLAY")
	if folder == "" {
		t.Skip("needs claude-replay: run 'npm install --ignore-scripts claude-replay@0.9.0' in a folder and set AGENTEVENTS_REPLAY to it")
	}
	ctx := browser(t)
	for _, prompts := range effort.Of([]int{20}, []int{20, 200}, []int{20, 200, 2000}) {
		session, lines := claudeSession(t, prompts, 24)
		var events []agentevents.Event
		sessions, err := capture.Open(session, capture.Options{})
		require.NoError(t, err)
		for _, s := range sessions {
			for line, err := range s.Lines() {
				require.NoError(t, err)
				events = append(events, *line.Event)
			}
		}
		ours := save(t, view.Options{}, view.Log{Name: "session", Events: seq(events)})
		theirs := filepath.Join(t.TempDir(), "replay.html")
		out, err := exec.Command("node", filepath.Join(folder, "node_modules/claude-replay/bin/claude-replay.mjs"), session, "-o", theirs).CombinedOutput()
		require.NoError(t, err, string(out))
		for _, page := range []struct{ name, file, calls string }{
			{"agentevents", ours, `app.run.calls.length`}, {"claude-replay", theirs, `document.querySelectorAll(".tool-block").length`},
		} {
			info, err := os.Stat(page.file)
			require.NoError(t, err)
			var shown, heap, nodes []float64
			for range 5 {
				p := visit(t, ctx, page.file, shownAt)
				for deadline := time.Now().Add(5 * time.Minute); !eval[bool](p, `"shownAt" in window`); time.Sleep(50 * time.Millisecond) {
					require.True(t, time.Now().Before(deadline), "the page is not shown")
				}
				shown = append(shown, eval[float64](p, `window.shownAt`))
				heap = append(heap, eval[float64](p, `performance.memory.usedJSHeapSize`)/1e6)
				nodes = append(nodes, eval[float64](p, `document.querySelectorAll("*").length`))
				require.Equal(t, prompts*24, eval[int](p, page.calls))
			}
			slices.Sort(shown)
			slices.Sort(heap)
			t.Logf("%d lines, %s: %.1f MB, shown after %.0f ms, heap %.0f MB, %.0f elements", lines, page.name, float64(info.Size())/1e6, shown[2], heap[2], nodes[0])
		}
	}
}
