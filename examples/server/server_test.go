package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// A client is a client of a server under test. It stays with it when the server changes.
type client struct {
	url  string
	http http.Client
}

// post sends a command, and returns the status of the answer.
func (c *client) post(t testing.TB, path, body string) int {
	t.Helper()
	resp, err := c.http.Post(c.url+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, resp.Body)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// An observer follows one run over HTTP, over as many connections as it takes.
type observer struct {
	id     string
	last   string         // id of the last event, for Last-Event-ID
	events []ae.Event     // in the order in which they came
	limit  func() int     // events per connection; nil means no limit
	on     func(ae.Event) // told each event; may be nil
	gap    func() error   // told that events were missed
}

// follow follows the run until it is over, or the server is gone.
func (o *observer) follow(ctx context.Context, c *client) error {
	for {
		over, err := o.connect(ctx, c)
		if over || err != nil {
			return err
		}
	}
}

// connect follows the run over one connection.
func (o *observer) connect(ctx context.Context, c *client) (over bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", c.url+"/runs/"+o.id+"/events", nil)
	if err != nil {
		return false, err
	}
	if o.last != "" {
		req.Header.Set("Last-Event-ID", o.last)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent:
		return true, nil
	default:
		return false, errors.New(resp.Status)
	}
	left := -1
	if o.limit != nil {
		left = o.limit()
	}
	name, id := "", ""
	for in := bufio.NewReader(resp.Body); left != 0; {
		line, err := in.ReadString('\n')
		if err != nil {
			return false, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			o.last = id
			switch name {
			case "":
				var ev ae.Event
				if err := ev.UnmarshalJSON([]byte(value)); err != nil {
					return false, err
				}
				o.events = append(o.events, ev)
				left--
				if o.on != nil {
					o.on(ev)
				}
			case "resync":
				if err := o.gap(); err != nil {
					return false, err
				}
			case "end":
				return true, nil
			}
			name = ""
		}
	}
	return false, nil
}

// begin starts a server in this process.
func begin(t *testing.T, pace time.Duration) (*runtime, *client, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	rt, err := open(path, pace)
	require.NoError(t, err)
	server := httptest.NewServer(rt.handler())
	c := &client{url: server.URL}
	t.Cleanup(func() {
		require.NoError(t, rt.close(context.Background()))
		c.http.CloseIdleConnections()
		server.Close()
	})
	return rt, c, path
}

// start starts a run.
func (c *client) start(t testing.TB, budget float64) string {
	t.Helper()
	var started row
	require.NoError(t, call(context.Background(), "POST", c.url+"/runs", inputs{"Release 1.4.0", budget}, &started))
	require.Equal(t, ae.RunStatusRunning, started.Status)
	return started.RunID
}

// until waits until a run has another event of a kind, from a sequence on.
func until(t *testing.T, rt *runtime, id string, from uint64, kind ae.Kind) ae.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ev, err := range rt.page.Events(ctx, id, from) {
		require.NoError(t, err)
		if ev.Kind() == kind {
			return ev
		}
	}
	require.FailNow(t, "the run ended without "+string(kind))
	return ae.Event{}
}

// folded folds a log. It has no bad line, no gap and no violation.
func folded(t testing.TB, path string) map[string]*ae.RunSnapshot {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	log, err := ae.FoldLog(ae.NewReader(file, ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	for id, c := range log.Coverage() {
		require.Equal(t, ae.Coverage{}, c, id)
	}
	runs := map[string]*ae.RunSnapshot{}
	for s := range log.Drain() {
		require.Empty(t, s.Violations)
		require.Zero(t, s.Refused)
		runs[s.RunID] = s
	}
	return runs
}

// Every client sees every event of its run once and in order, though its connection drops again and
// again, and answers the questions of its run.
func TestManyRuns(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 20 // 200 take seconds
	}
	rt, c, path := begin(t, 0)
	observers := make([]observer, n)
	errs := make([]error, n)
	answers := make([]int, n)
	var wg sync.WaitGroup
	for i := range observers {
		wg.Go(func() {
			o := &observers[i]
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			o.limit = func() int { return 1 + rng.IntN(70) }
			o.on = func(ev ae.Event) {
				if p, ok := ev.Payload.(*ae.ApprovalRequested); ok {
					answers[i] = c.post(t, "/runs/"+o.id+"/approvals/"+p.ApprovalID, fmt.Sprintf(`{"granted":%v,"by":"ada"}`, i%2 == 0))
				}
			}
			o.gap = func() error { return errors.New("events are missing") }
			o.id = c.start(t, 1)
			errs[i] = o.follow(t.Context(), c)
		})
	}
	wg.Wait()
	runs := folded(t, path)
	require.Len(t, runs, n)
	for i := range observers {
		o := &observers[i]
		require.NoError(t, errs[i])
		require.Equal(t, http.StatusNoContent, answers[i])
		s := runs[o.id]
		require.Equal(t, ae.RunStatusCompleted, s.Status)
		require.EqualValues(t, len(o.events), s.NextSequence)
		for at, ev := range o.events {
			require.EqualValues(t, at, ev.Sequence)
		}
		require.Equal(t, i%2 == 0, s.Approvals[0].Granted)
		if live := rt.page.Snapshot(o.id); live != nil { // the page keeps some of the runs that are over
			require.Equal(t, string(s.AppendJSON(nil)), string(live.AppendJSON(nil)))
		}
	}
}

// The events of one run of the script.
func TestRun(t *testing.T) {
	rt, c, path := begin(t, 0)
	id := c.start(t, 1)
	asked := until(t, rt, id, 0, ae.KindApprovalRequested)
	run, ok := rt.em.Lookup(id)
	require.True(t, ok)
	require.Equal(t, ae.RunStatusWaiting, run.State().Status)
	status, _ := run.Agent("main").Status()
	require.Equal(t, ae.StatusBlockedOnClarification, status)

	approval := "/runs/" + id + "/approvals/" + asked.Payload.(*ae.ApprovalRequested).ApprovalID
	require.Equal(t, http.StatusConflict, c.post(t, approval, `no`))
	require.Equal(t, http.StatusNoContent, c.post(t, approval, `{"granted":true,"by":"ada"}`))
	until(t, rt, id, 0, ae.KindRunCompleted)
	s := folded(t, path)[id]
	require.Equal(t, ae.RunStatusCompleted, s.Status)
	require.Equal(t, ae.JSON(`"That is all."`), s.Result)
	require.Equal(t, `{"task":"Release 1.4.0","budgetUsd":1}`, string(s.Inputs))
	main, researcher := s.Agents["main"], s.Agents["researcher"]
	for _, a := range []*ae.AgentSnapshot{main, researcher} {
		require.Equal(t, ae.StatusConverged, a.Status)
		require.Equal(t, ae.OutcomeConverged, a.Outcome)
		require.Equal(t, 1, a.ModelFailures, "the first request is refused")
		require.Equal(t, len(turns[a.AgentID])+1, a.ModelCalls)
		require.Equal(t, len(turns[a.AgentID]), a.Counted.Steps)
	}
	require.Equal(t, "main", researcher.ParentAgentID)
	require.NotEmpty(t, researcher.ParentCallID)
	got := map[string]string{}
	for _, c := range s.ClosedCalls {
		got[c.AgentID+" "+c.ToolID] = string(c.Status) + " " + c.Error
	}
	require.Equal(t, map[string]string{
		"main search": "ok ", "main fetch": "error the server is busy", "main render": "error panic: no page 1", "main crawl": "error context deadline exceeded",
		"main delegate": "ok ", "main deploy": "ok ", "researcher search": "ok ",
	}, got)
	require.Empty(t, s.OpenCalls)
	require.Empty(t, s.OpenModelCalls)
	require.Positive(t, s.Usage.CostUSD.V)
	require.Equal(t, "That is all.", main.Text)

	require.Equal(t, http.StatusNotFound, c.post(t, approval, `{"granted":true}`))
	require.Equal(t, http.StatusNotFound, c.post(t, "/runs/"+id+"/cancel", ""))
	require.Equal(t, http.StatusBadRequest, c.post(t, "/runs", "no"))
	var rows []row
	require.NoError(t, call(t.Context(), "GET", c.url+"/runs", nil, &rows))
	require.Equal(t, []row{{id, ae.RunStatusCompleted, s.NextSequence, s.Usage.CostUSD.V}}, rows)
}

// The ways to stop a run, and the commands that are legal then. Each run stands at its question
// first.
func TestStops(t *testing.T) {
	for name, tt := range map[string]struct {
		budget float64
		do     []string // commands, each after the effect of the one before
		status ae.RunStatus
		main   ae.AgentStatus
	}{
		"budget":                     {0.003, nil, ae.RunStatusFailed, ae.StatusFailed},
		"granted":                    {0, []string{"grant"}, ae.RunStatusCompleted, ae.StatusConverged},
		"rejected":                   {1, []string{"reject"}, ae.RunStatusCompleted, ae.StatusConverged},
		"cancel":                     {1, []string{"cancel"}, ae.RunStatusCancelled, ae.StatusFailed},
		"pause":                      {1, []string{"pause"}, ae.RunStatusPaused, ae.StatusToolResult},
		"pause, cancel":              {1, []string{"pause", "cancel"}, ae.RunStatusCancelled, ae.StatusToolResult},
		"pause, resume, grant":       {1, []string{"pause", "resume", "grant"}, ae.RunStatusCompleted, ae.StatusConverged},
		"twice paused, then cancel":  {1, []string{"pause", "resume", "pause", "resume", "cancel"}, ae.RunStatusCancelled, ae.StatusFailed},
		"a resumed run has a budget": {0.004, []string{"pause", "resume"}, ae.RunStatusFailed, ae.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, c, path := begin(t, 0)
			id := c.start(t, tt.budget)
			run := "/runs/" + id
			var at uint64
			for _, command := range tt.do {
				if command == "resume" {
					require.Equal(t, http.StatusConflict, c.post(t, run+"/pause", ""))
					require.Equal(t, http.StatusNoContent, c.post(t, run+"/resume", ""))
					require.NotEqual(t, http.StatusNoContent, c.post(t, run+"/resume", "")) // it is under way, or over already
					continue
				}
				if command != "cancel" || rt.page.Snapshot(id).Status != ae.RunStatusPaused {
					asked := until(t, rt, id, at, ae.KindApprovalRequested)
					at = asked.Sequence + 1
					if command == "grant" || command == "reject" {
						path := run + "/approvals/" + asked.Payload.(*ae.ApprovalRequested).ApprovalID
						require.Equal(t, http.StatusNoContent, c.post(t, path, `{"granted":`+strconv.FormatBool(command == "grant")+`,"by":"ada"}`))
						continue
					}
				}
				require.Equal(t, http.StatusNoContent, c.post(t, run+"/"+command, ""))
				if command == "pause" {
					at = until(t, rt, id, at, ae.KindRunPaused).Sequence
				}
			}
			if tt.status.Terminal() {
				for _, err := range rt.page.Events(t.Context(), id, 0) { // ends with the run
					require.NoError(t, err)
				}
			}
			s := folded(t, path)[id]
			require.Equal(t, tt.status, s.Status)
			require.Equal(t, tt.main, s.Agents["main"].Status)
			require.Equal(t, 1+strings.Count(strings.Join(tt.do, ""), "resume"), s.Agents["main"].Attempts)
			require.Empty(t, s.OpenCalls)
			require.Empty(t, s.OpenModelCalls)
			for _, a := range s.Approvals {
				require.False(t, a.Open)
			}
			require.Equal(t, tt.status == ae.RunStatusFailed, len(s.Budgets) > 0)
			if name == "rejected" {
				require.Equal(t, ae.ToolStatusForbidden, s.ClosedCalls[len(s.ClosedCalls)-1].Status)
			}
			require.Equal(t, string(s.AppendJSON(nil)), string(rt.page.Snapshot(id).AppendJSON(nil)))
		})
	}
}

// A run that is about to stop is not stopped once more: a command that is answered with yes is
// done.
func TestStopsOnce(t *testing.T) {
	rt, c, path := begin(t, 0)
	kinds := map[error]ae.Kind{errPaused: ae.KindRunPaused, errCancelled: ae.KindRunCancelled}
	for _, pair := range [][2]error{{errPaused, errCancelled}, {errCancelled, errPaused}, {errCancelled, errCancelled}} {
		id := c.start(t, 1)
		until(t, rt, id, 0, ae.KindApprovalRequested)
		run, _ := rt.em.Lookup(id)
		require.NoError(t, rt.halt(run, pair[0]))
		again := rt.halt(run, pair[1]) // before the run has stopped, mostly
		until(t, rt, id, 0, kinds[pair[0]])
		if again == nil {
			until(t, rt, id, 0, kinds[pair[1]])
		}
	}
	require.Len(t, folded(t, path), 3)
}

// The demo prints the output that the README shows.
func TestDemo(t *testing.T) {
	var out strings.Builder
	path := filepath.Join(t.TempDir(), "log.jsonl")
	require.NoError(t, serve(t.Context(), &out, "127.0.0.1:0", path, 4, 0))
	for _, want := range []string{"granted is true", "granted is false", "cancel it", "└─ researcher ✓ converged", "panic: no page 1", "granted by ada",
		"run 1: completed", "run 2: completed", "run 3: failed", "run 4: cancelled"} {
		require.Contains(t, out.String(), want)
	}
	require.Len(t, folded(t, path), 4)
}
