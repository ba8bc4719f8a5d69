package columns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
)

// A figure has the sums of the rows of one group, as the questions in SQL compute them.
type figure struct {
	runs                                  int
	calls, returned, failed, timed        int
	refused, undecided                    int
	millis                                float64
	models, modelsFailed, modelsTimed     int
	modelMillis                           float64
	in, out, cacheRead, cacheWrite, think int64
	cost                                  float64
}

// questions are the tables of stats, as sums over rows.
type questions struct {
	all                   figure
	agents, models, tools map[string]*figure
	runs                  map[[3]string]bool
	gone                  map[[2]string]bool
	names                 map[[2]string]string // of the agents, by run and id
	open                  map[[3]string]*Row   // model calls
	rows                  []Row
}

func ask(t *testing.T, events []ae.Event) *questions {
	q := &questions{agents: map[string]*figure{}, models: map[string]*figure{}, tools: map[string]*figure{}, runs: map[[3]string]bool{}, gone: map[[2]string]bool{}, names: map[[2]string]string{}, open: map[[3]string]*Row{}}
	tracker := NewTracker()
	was := map[[2]string]string{}
	for i := range events {
		row, err := tracker.Add(&events[i], "")
		if err != nil {
			require.ErrorIs(t, err, ErrLeftOut)
			continue
		}
		q.rows = append(q.rows, row)
		if row.AgentWas != "" {
			was[[2]string{row.RunID, row.AgentWas}] = row.AgentID
		}
	}
	for i := range q.rows {
		r := &q.rows[i]
		if id, ok := was[[2]string{r.RunID, r.AgentID}]; ok {
			r.AgentID = id
		}
		if r.AgentID != "" {
			q.names[[2]string{r.RunID, r.AgentID}] = r.AgentName
		}
	}
	for i := range q.rows {
		q.add(t, &q.rows[i])
	}
	for _, r := range q.open { // a call counts for the model that answers, else for the one that is asked
		q.all.models++
		if r.AgentID != "" {
			group(q.agents, q.names[[2]string{r.RunID, r.AgentID}]).models++
		}
		if r.Model != "" {
			group(q.models, r.Model).models++
		}
	}
	return q
}

func group(of map[string]*figure, name string) *figure {
	if of[name] == nil {
		of[name] = &figure{}
	}
	return of[name]
}

func (q *questions) in(of map[string]*figure, table, name string, r *Row, id string) *figure {
	f := group(of, name)
	if key := [3]string{table, r.RunID, id}; !q.runs[key] {
		q.runs[key] = true
		f.runs++
	}
	return f
}

func (q *questions) add(t *testing.T, r *Row) {
	groups := []*figure{&q.all}
	if r.AgentID != "" {
		groups = append(groups, q.in(q.agents, "agent", q.names[[2]string{r.RunID, r.AgentID}], r, r.AgentID))
	}
	switch ae.Kind(r.Kind) {
	case ae.KindToolCalled, ae.KindToolReturned:
		if r.Kind == string(ae.KindToolCalled) || r.Status != "" {
			groups = append(groups, q.in(q.tools, "tool", r.Tool, r, r.Tool))
		}
		for _, f := range groups {
			f.calls += int(r.Begins)
			switch r.Status {
			case "":
			case "succeeded", "failed":
				f.returned++
				if r.Failed.V {
					f.failed++
				}
			case "refused":
				f.refused++
			default:
				f.undecided++
			}
			if r.DurationMS.OK {
				f.timed, f.millis = f.timed+1, f.millis+r.DurationMS.V
			}
		}
	case ae.KindModelCalled:
		q.open[[3]string{r.RunID, r.AgentID, r.ModelCallID}] = r
	case ae.KindModelReturned:
		delete(q.open, [3]string{r.RunID, r.AgentID, r.ModelCallID})
		if r.Model != "" {
			groups = append(groups, group(q.models, r.Model))
		}
		for _, f := range groups {
			f.models++
			if r.Failed.V {
				f.modelsFailed++
			}
			if r.DurationMS.OK {
				f.modelsTimed, f.modelMillis = f.modelsTimed+1, f.modelMillis+r.DurationMS.V
			}
		}
	}
	if !r.InputTokens.OK {
		return
	}
	flat := change{Input: r.InputTokens.V, Output: r.OutputTokens.V, CacheRead: r.CacheReadTokens.V, CacheWrite: r.CacheWriteTokens.V, Reasoning: r.ReasoningTokens.V, Cost: &r.Cost.V}
	q.all.spend(&flat)
	var split struct{ Agents, Models []change }
	if r.UsageSplit == "" {
		if r.AgentID != "" {
			c := flat
			c.AgentID = r.AgentID
			split.Agents = []change{c}
		}
		if r.Model != "" {
			c := flat
			c.Model = r.Model
			split.Models = []change{c}
		}
	} else {
		require.NoError(t, json.Unmarshal([]byte(r.UsageSplit), &split))
	}
	for i := range split.Agents {
		group(q.agents, q.names[[2]string{r.RunID, r.AgentID}]).spend(&split.Agents[i])
	}
	for i := range split.Models {
		c := &split.Models[i]
		f := group(q.models, c.Model)
		f.spend(c)
		if key := [3]string{"model", r.RunID, c.Model}; q.runs[key] == c.Gone {
			q.runs[key] = !c.Gone
			f.runs += map[bool]int{true: -1, false: 1}[c.Gone]
		}
	}
}

func (f *figure) spend(c *change) {
	f.in, f.out, f.cacheRead, f.cacheWrite, f.think = f.in+c.Input, f.out+c.Output, f.cacheRead+c.CacheRead, f.cacheWrite+c.CacheWrite, f.think+c.Reasoning
	if c.Cost != nil {
		f.cost += *c.Cost
	}
}

// text is the figure as the tables show it.
func (f *figure) text(runs bool) string {
	n := ""
	if runs {
		n = fmt.Sprintf("%d runs, ", f.runs)
	}
	return n + fmt.Sprintf("tools %d (%d returned, %d failed, %d refused, %d undecided), models %d (%d failed), tokens %d %d %d %d %d, cost %.6f",
		f.calls, f.returned, f.failed, f.refused, f.undecided, f.models, f.modelsFailed, f.in, f.out, f.cacheRead, f.cacheWrite, f.think, f.cost+0)
}

func (f *figure) times() string {
	return fmt.Sprintf("%.3f %.3f", mean(f.millis, f.timed), mean(f.modelMillis, f.modelsTimed))
}

func mean(sum float64, n int) float64 { return sum / max(1, float64(n)) }

// of is the figure of a report.
func of(g *stats.Figures) *figure {
	f := &figure{runs: g.Runs, cost: g.CostUSD.V}
	if c := g.ToolCalls; c != nil {
		f.calls, f.returned, f.failed, f.refused, f.undecided = c.Calls, c.Returned, c.Failed, c.Refused, c.Undecided
		f.millis, f.timed = c.MeanMS.V, 1
	}
	if c := g.ModelCalls; c != nil {
		f.models, f.modelsFailed, f.modelMillis, f.modelsTimed = c.Calls, c.Failed, c.MeanMS.V, 1
	}
	if u := g.Tokens; u != nil {
		f.in, f.out, f.cacheRead, f.cacheWrite, f.think = u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning
	}
	return f
}

// equal compares the rows of a log with stats.
func equal(t *testing.T, events []ae.Event, times bool) {
	c := stats.New(stats.ByAgent, stats.ByModel, stats.ByTool)
	for _, ev := range events {
		c.Event(ev)
	}
	want, got := c.Report(), ask(t, events)
	require.Equal(t, of(&want.Figures).text(false), got.all.text(false))
	for i, table := range append([]stats.Table{want.Table}, want.Tables...) {
		groups := [...]map[string]*figure{got.agents, got.models, got.tools}[i]
		for _, g := range table.Groups {
			f := cmp.Or(groups[g.Name], &figure{})
			require.Equal(t, of(&g.Figures).text(true), f.text(true), "%s %q", table.By, g.Name)
			if times {
				require.Equal(t, of(&g.Figures).times(), f.times(), "%s %q", table.By, g.Name)
			}
			delete(groups, g.Name)
		}
		for name, f := range groups {
			require.Equal(t, (&figure{}).text(true), f.text(true), "%s %q is in no table of stats", table.By, name)
		}
	}
}

// logs returns the logs of the repository: native ones, and captures as the importer reads them.
func logs(t *testing.T) map[string][]ae.Event {
	all := map[string][]ae.Event{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var events []ae.Event
		o := ae.ReaderOptions{}
		if strings.HasSuffix(path, ".stream.jsonl") {
			o.Decoder = claude.NewDecoder(claude.Options{})
		}
		for ev, err := range ae.NewReader(strings.NewReader(string(text)), o).All() {
			if err == nil {
				events = append(events, ev)
			}
		}
		if len(events) > 0 {
			all[path] = events
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(all), 10)
	return all
}

// TestRowsAddUp compares the sums over the rows of each log of the repository with stats; and again
// after every event has come twice.
func TestRowsAddUp(t *testing.T) {
	all := logs(t)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		t.Run(path, func(t *testing.T) {
			equal(t, all[path], true)
			var twice []ae.Event
			for _, ev := range all[path] {
				twice = append(twice, ev, ev)
			}
			require.Equal(t, ask(t, all[path]).rows, ask(t, twice).rows)
		})
	}
}

// TestDrawnRowsAddUp has agents that state usage in any way: in reports, in returns, at their ends, of
// several models, with sub-agents, as running totals, and in several attempts.
func TestDrawnRowsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 45))
	for range 300 {
		equal(t, draw(rng), false)
	}
}

func draw(rng *rand.Rand) (events []ae.Event) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	often := func() bool { return rng.IntN(3) > 0 }
	usage := func() ae.Usage {
		u := ae.Usage{InputTokens: rng.Int64N(100), OutputTokens: rng.Int64N(50)}
		if !often() {
			u.CacheReadInputTokens = ae.Some(rng.Int64N(9))
		}
		return u
	}
	cost := func() ae.Opt[float64] {
		if often() {
			return ae.Opt[float64]{}
		}
		return ae.Some(float64(rng.IntN(100)) / 4)
	}
	next := map[string]uint64{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	open := map[string]bool{}
	for i := range 10 + rng.IntN(60) {
		ev := ae.Event{ID: fmt.Sprint(i), RunID: pick("x", "y"), AgentID: pick("a", "b", "c", "a", ""), Time: at.Add(time.Duration(i) * time.Second)}
		id := ev.RunID + ev.AgentID + pick("1", "2")
		switch rng.IntN(8) {
		case 0:
			ev.Payload = &ae.AgentStarted{Model: pick("", "m", "n")}
			if ev.AgentID = pick("a", "b", "c"); ev.AgentID != "a" {
				ev.ParentAgentID = pick("a", "")
			}
		case 1:
			p := &ae.AgentEnded{TotalCostUSD: cost(), Cumulative: !often()}
			if often() {
				p.Usage = ae.Some(usage())
			}
			for range rng.IntN(3) {
				if p.ModelUsage == nil {
					p.ModelUsage = map[string]ae.Usage{}
				}
				u := usage()
				u.CostUSD = cost()
				p.ModelUsage[pick("m", "n", "o")] = u
			}
			if !often() {
				p.StatedTokens = ae.Some(rng.Int64N(500))
			}
			ev.Payload, ev.AgentID = p, pick("a", "b", "c")
		case 2, 3:
			ev.Payload = &ae.UsageObserved{Model: pick("", "m", "n"), Usage: usage(), CostUSD: cost(), Cumulative: !often(), ModelCallID: pick("", id)}
		case 4:
			if open[id] {
				continue
			}
			open[id] = true
			ev.Payload = &ae.ModelCalled{ModelCallID: id, Model: pick("", "m", "n")}
		case 5:
			if !open[id] {
				continue
			}
			open[id] = false
			p := &ae.ModelReturned{ModelCallID: id, CostUSD: cost(), Model: pick("", "m", "n")}
			if often() {
				p.Usage = ae.Some(usage())
			}
			ev.Payload = p
		case 6:
			ev.Payload = &ae.TurnSummarized{Usage: usage(), CostUSD: cost()}
		case 7:
			ev.Payload = &ae.ToolReturned{CallID: fmt.Sprint(i), ToolID: pick("read", "write"), Status: ae.ToolStatus(pick("ok", "error", "forbidden", "cancelled")), OneEvent: true}
		}
		ev.Sequence = next[ev.RunID]
		next[ev.RunID]++
		events = append(events, ev)
	}
	return events
}

// TestRunStatus has the column run_status tell, after each event, the status that a fold has.
func TestRunStatus(t *testing.T) {
	all := logs(t)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		tracker, folds, told := NewTracker(), map[string]*ae.Fold{}, map[string]string{}
		for i := range all[path] {
			ev := &all[path][i]
			fold := folds[ev.RunID]
			if fold == nil {
				fold = ae.NewFold(ae.FoldOptions{})
				folds[ev.RunID] = fold
			}
			fold.Apply(*ev)
			row, err := tracker.Add(ev, "")
			if err != nil {
				require.ErrorIs(t, err, ErrLeftOut)
				continue
			}
			told[ev.RunID] = first(row.RunStatus, told[ev.RunID])
			require.EqualValues(t, fold.State().Status, told[ev.RunID], "%s, %s of run %s, sequence %d", path, ev.Kind(), ev.RunID, ev.Sequence)
		}
		for id, fold := range folds {
			require.EqualValues(t, fold.Snapshot().Status, told[id], "%s, run %s", path, id)
		}
	}
}
