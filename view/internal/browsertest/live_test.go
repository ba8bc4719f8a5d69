package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
	"github.com/agentevents/agentevents/view"
)

// A cutter is a server whose connections can be cut.
type cutter struct {
	mu   sync.Mutex
	cuts map[int]context.CancelFunc
	n    int
	next http.Handler
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	c.mu.Lock()
	c.n++
	c.cuts[c.n] = stop
	c.mu.Unlock()
	c.next.ServeHTTP(w, r.WithContext(ctx))
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stop := range c.cuts {
		stop()
	}
}

// A live page has each event once, over three cut connections, and the figures of the fold at the end.
func TestLivePage(t *testing.T) {
	ctx := browser(t)
	feed := live.New(live.Options{Linger: 100 * time.Millisecond})
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{feed}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	server := &cutter{cuts: map[int]context.CancelFunc{}, next: http.StripPrefix("/view", view.Live(feed, view.Options{}))}
	web := httptest.NewServer(server)
	defer web.Close()
	agent := run.Agent("a")
	emit := func(p agentevents.Payload) { require.NoError(t, agent.Emit(ctx, p)) }
	require.NoError(t, run.Emit(ctx, &agentevents.RunStarted{Name: "bake"}))
	emit(&agentevents.AgentStarted{Task: "bread"})

	tab, stop := chromedp.NewContext(ctx)
	defer stop()
	p := &page{t: t, ctx: tab}
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(web.URL+"/view/?run=r")))
	p.wait()
	shows := func(n int) {
		t.Helper()
		for range 1000 {
			if eval[int](p, `app.run.rows.length`) == n {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("the page has %d events, not %d: %s", eval[int](p, `app.run.rows.length`), n, eval[string](p, `document.getElementById("live").textContent`))
	}
	shows(2)
	sent := 2
	for round := range 4 {
		for i := range 10 {
			id := fmt.Sprint(round, "-", i)
			emit(&agentevents.ToolCalled{CallID: id, ToolID: "oven"})
			emit(&agentevents.ToolReturned{CallID: id, ToolID: "oven", Status: agentevents.ToolStatusOK})
		}
		if round < 3 {
			server.cut()
		}
		sent = int(run.State().NextSequence)
		shows(sent)
	}
	require.Equal(t, sent, eval[int](p, `new Set(app.run.rows.map(r => r[SEQ])).size`))
	emit(&agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged})
	require.NoError(t, run.Emit(ctx, &agentevents.RunCompleted{}))
	s := feed.Snapshot("r")
	require.NoError(t, run.Close())
	for range 1000 {
		if eval[string](p, `document.getElementById("live").textContent`) == "the run is over" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.Equal(t, "the run is over", eval[string](p, `document.getElementById("live").textContent`))
	require.Equal(t, "completed", eval[string](p, `app.run.status`))
	require.Equal(t, s.Agents["a"].ToolCalls, eval[int](p, `app.run.calls.length`))
	sameState(t, s, eval[state](p, `stateAt(app.run, app.run.rows.length - 1)`), int(s.NextSequence)-1)
}
