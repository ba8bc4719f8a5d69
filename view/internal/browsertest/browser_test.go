// Package browsertest opens pages of package view in Chromium.
package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/txtar"
	shown "github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/view"
)

// browser returns a context with a browser, or skips the test where there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	name := ""
	for _, n := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(n); err == nil {
			name = path
			break
		}
	}
	if name == "" {
		t.Skip("needs chromium: install Chromium")
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(name), chromedp.NoSandbox, chromedp.WindowSize(1400, 900))...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// A page is an open page.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // of the console, and requests
}

// open writes the page of logs and opens it in a tab of its own.
func open(t *testing.T, ctx context.Context, o view.Options, logs ...view.Log) *page {
	t.Helper()
	p := visit(t, ctx, save(t, o, logs...))
	p.wait()
	return p
}

// save writes the page of logs to a file.
func save(t *testing.T, o view.Options, logs ...view.Log) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, view.Write(&b, o, logs...))
	name := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

// visit opens a file in a tab of its own. The commands run before its scripts.
func visit(t *testing.T, ctx context.Context, name string, commands ...string) *page {
	t.Helper()
	tab, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	p := &page{t: t, ctx: tab}
	require.NoError(t, chromedp.Listen(tab, p.listen))
	_, err := chromedp.Call(tab, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	_, err = chromedp.Call(tab, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	for _, c := range commands {
		_, err = chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: c})
		require.NoError(t, err)
	}
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate("file://"+name)))
	return p
}

// listen notes errors and requests.
func (p *page) listen(ev any) {
	text := ""
	switch e := ev.(type) {
	case *log.EventEntryAdded:
		text = e.Entry.Text
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *network.EventRequestWillBeSent:
		if e.Request.URL != "" && !strings.HasPrefix(e.Request.URL, "file:") {
			text = "request " + e.Request.URL
		}
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, text)
	}
}

// clean fails the test if the page has logged an error or made a request.
func (p *page) clean() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, p.errors)
}

func (p *page) wait() {
	p.t.Helper()
	for range 600 {
		if eval[bool](p, `document.documentElement.dataset.ready !== undefined`) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.t.Fatalf("the page does not become ready: %s; %q", eval[string](p, `document.body.innerText.slice(0, 200)`), p.errors)
}

// eval evaluates an expression.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	require.NoError(p.t, err, expression)
	return v
}

// keys presses keys.
func (p *page) keys(keys string) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
}

// logsOf returns the native logs of the project's goldens, and the logs of its formats, by name.
func logsOf(t *testing.T, most int) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob("../../../dialect/testdata/golden/*.txtar")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../*/testdata/*.jsonl")
	require.NoError(t, err)
	for _, name := range append(more, names...) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, ".jsonl") {
			all[name] = string(text)
			continue
		}
		for _, f := range txtar.Parse(string(text)).Files {
			if !strings.Contains(f.Name, " ") && len(all) < most && len(f.Text) > 400 {
				all[filepath.Base(name)+" "+f.Name] = f.Text
			}
		}
	}
	return all
}

// sessionsOf returns the events of the sessions of agent CLIs, by folder.
func sessionsOf(t *testing.T) map[string][]agentevents.Event {
	t.Helper()
	folders, err := filepath.Glob("../../../capture/testdata/*/*")
	require.NoError(t, err)
	all := map[string][]agentevents.Event{}
	for _, folder := range folders {
		sessions, err := capture.Open(folder, capture.Options{})
		require.NoError(t, err, folder)
		for _, s := range sessions {
			for line, err := range s.Lines() {
				if err == nil && line.Event != nil {
					all[folder] = append(all[folder], *line.Event)
				}
			}
		}
	}
	return all
}

// read returns the events of a log of any format.
func read(text string) (events []agentevents.Event) {
	auto := &dialect.Auto{Decoders: map[dialect.Name]agentevents.Decoder{
		dialect.AGUI: agui.NewDecoder(agui.Options{}), dialect.KAHN: kahn.NewDecoder(kahn.Options{}), dialect.KAOS: kaos.NewDecoder(kaos.Options{}),
		dialect.MultiAgent: multiagent.NewDecoder(multiagent.Options{}), dialect.OpenHarness: openharness.NewDecoder(openharness.Options{}), dialect.OpenWOP: openwop.NewDecoder(openwop.Options{}),
	}}
	for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: auto}).All() {
		if err == nil {
			events = append(events, ev)
		}
	}
	return events
}

func seq(events []agentevents.Event) func(func(agentevents.Event, error) bool) {
	return func(yield func(agentevents.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// The page prints durations below a day as the terminal does, and nothing for one that is unknown.
func TestDurationsOfThePage(t *testing.T) {
	p := open(t, browser(t), view.Options{}, view.Log{Name: "plain", Events: seq(read("{\"id\":\"a\",\"sequence\":0,\"type\":\"run.started\",\"runId\":\"r\",\"schemaVersion\":\"1.0\",\"payload\":{}}\n"))})
	for _, ms := range []float64{0, 0.25, 1, 999.6, 1000, 9960, 12_340, 59_949, 59_950, 119_499, 119_500, 3_599_499, 3_599_500, 7_199_000, 86_369_999} {
		require.Equal(t, shown.Duration(time.Duration(ms*float64(time.Millisecond))), eval[string](p, fmt.Sprintf(`lasted(%v)`, ms)), ms)
	}
	require.Equal(t, "1d0h", eval[string](p, `span(86400e3)`))
	require.Empty(t, eval[string](p, `lasted(-1)`))
	p.clean()
}

// The transcript has each text once, although a log has it as a block and as a message.
func TestTranscriptHasTextsOnce(t *testing.T) {
	events := session(t, "../../../capture/testdata/claude/agents")
	p := open(t, browser(t), view.Options{}, view.Log{Name: "agents", Events: seq(events)})
	p.keys("3")
	texts := 0
	for i := range events {
		if m, ok := events[i].Payload.(*agentevents.MessageCreated); ok && i > 0 {
			if text, ok := events[i-1].Payload.(*agentevents.TextCompleted); ok && string(m.Message.Content) == string(agentevents.JSONString(text.Text)) {
				texts++
				require.False(t, eval[bool](p, fmt.Sprintf(`document.querySelector('#pane [data-i="%d"]') !== null`, i)), text.Text)
				require.True(t, eval[bool](p, fmt.Sprintf(`document.querySelector('#pane [data-i="%d"]') !== null`, i-1)), text.Text)
			}
		}
	}
	require.Greater(t, texts, 3)
}

// Older browsers have no decoder of base64 for bytes.
func TestOlderBrowser(t *testing.T) {
	p := visit(t, browser(t), save(t, view.Options{}, view.Log{Name: "agents", Events: seq(session(t, "../../../capture/testdata/claude/agents"))}), `delete Uint8Array.fromBase64`)
	p.wait()
	require.Positive(t, eval[int](p, `app.run.rows.length`))
	p.clean()
}

// A state is the state that the page shows after an event.
type state struct {
	Status    string              `json:"status"`
	Open      map[string][]string `json:"open"`
	Questions []string            `json:"questions"`
	Counters  struct {
		Calls, Failed, Models, Messages, Violations int
		Tokens                                      int64
		Least                                       bool
	} `json:"counters"`
	Tree map[string]json.RawMessage `json:"tree"`
}

// The figures of a page equal the fold's, and the state after each event equals the fold of the
// events until then.
func TestPageHasTheFiguresOfTheFold(t *testing.T) {
	ctx := browser(t)
	logs := logsOf(t, 60)
	require.Greater(t, len(logs), 40)
	pages := 0
	all := map[string][]agentevents.Event{}
	for name, text := range logs {
		all[name] = read(text)
	}
	maps.Copy(all, sessionsOf(t))
	for name, events := range all {
		if len(events) == 0 {
			continue
		}
		pages++
		t.Run(name, func(t *testing.T) {
			p := open(t, ctx, view.Options{Unredacted: true}, view.Log{Name: name, Events: seq(events)})
			var ids []string
			for i := range events {
				if !slices.Contains(ids, events[i].RunID) {
					ids = append(ids, events[i].RunID)
				}
			}
			for n, id := range ids {
				eval[bool](p, fmt.Sprintf(`(app.choose(app.runs[%d]), true)`, n))
				own := slices.DeleteFunc(slices.Clone(events), func(ev agentevents.Event) bool { return ev.RunID != id })
				fold := agentevents.NewFold(agentevents.FoldOptions{KeepCalls: math.MaxInt})
				for i := range own {
					fold.Apply(own[i])
					if i%max(1, len(own)/12) == 0 || i == len(own)-1 || i%512 < 2 {
						sameState(t, fold.Snapshot(), eval[state](p, fmt.Sprintf(`stateAt(app.run, %d)`, i)), i)
					}
				}
				s := fold.Snapshot()
				require.Equal(t, s.ViolationCount, eval[int](p, `app.run.violations`))
				require.Equal(t, len(own), eval[int](p, `app.run.rows.length`))
				require.Equal(t, len(s.OpenCalls)+len(s.ClosedCalls), eval[int](p, `app.run.calls.length`))
				require.ElementsMatch(t, slices.Collect(func(yield func(string) bool) {
					for id := range s.Agents {
						if !yield(id) {
							return
						}
					}
				}), eval[[]string](p, `[...new Set(app.run.agents.map(a => a.id))]`))
				for _, tab := range []string{"Summary", "Timeline", "Transcript", "Events"} {
					eval[bool](p, fmt.Sprintf(`(app.open(%q), app.go(0), app.go(app.run.rows.length - 1), true)`, tab))
				}
			}
			p.clean()
		})
	}
	require.GreaterOrEqual(t, pages, 80)
}

// sameState compares the state of the page after an event with the fold's.
func sameState(t *testing.T, want *agentevents.RunSnapshot, got state, at int) {
	t.Helper()
	require.Equal(t, string(want.Status), got.Status, at)
	open := map[string][]string{}
	for _, c := range want.OpenCalls {
		open[c.AgentID] = append(open[c.AgentID], c.CallID)
	}
	for agent, ids := range got.Open {
		if len(ids) == 0 {
			delete(got.Open, agent)
		}
	}
	require.Equal(t, open, got.Open, at)
	questions, calls, failed, models := 0, 0, 0, 0
	for _, a := range want.Approvals {
		if a.Open {
			questions++
		}
	}
	for _, c := range want.Clarifications {
		if c.Open {
			questions++
		}
	}
	for _, n := range want.Tools {
		calls, failed = calls+n.Calls, failed+n.Failed
	}
	for _, a := range want.Agents {
		models += a.ModelCalls
	}
	c := got.Counters
	require.Equal(t, shown.Tokens(want.Usage.Usage), c.Tokens, at)
	require.Equal(t, want.Usage.Partial, c.Least, at)
	require.Equal(t, []int{questions, calls, failed, models, len(want.Messages), want.ViolationCount}, []int{len(got.Questions), c.Calls, c.Failed, c.Models, c.Messages, c.Violations}, at)
	require.Equal(t, len(want.State), len(got.Tree), at)
	for k, v := range want.State {
		require.JSONEq(t, string(v), string(got.Tree[k]), at)
	}
}
