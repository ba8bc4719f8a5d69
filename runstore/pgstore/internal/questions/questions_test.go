//go:build unix

package questions_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/capture/claude"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
)

const root = "../../../.."

// read returns the events of a log, also of lines that a capture has.
func read(t *testing.T, name string, o ae.ReaderOptions) (events []ae.Event) {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	for ev, err := range ae.NewReader(f, o).All() {
		require.NoError(t, err, name)
		events = append(events, ev)
	}
	require.NotEmpty(t, events, name)
	return events
}

// captures returns the events of all captures, as one log: engines need a second for a log's views.
func captures(t *testing.T) log {
	all := log{name: "captures"}
	programs, err := os.ReadDir(filepath.Join(root, "capture/testdata"))
	require.NoError(t, err)
	for _, p := range programs {
		if !p.IsDir() {
			continue
		}
		sessions, err := capture.Open(filepath.Join(root, "capture/testdata", p.Name()), capture.Options{})
		require.NoError(t, err)
		for i, s := range sessions {
			for line, err := range s.Lines() {
				require.NoError(t, err)
				ev := *line.Event
				ev.RunID = fmt.Sprint(p.Name(), " ", i, " ", ev.RunID) // a session may be in several folders
				all.events = append(all.events, ev)
			}
		}
	}
	err = filepath.WalkDir(filepath.Join(root, "capture/claude/testdata"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".stream.jsonl") {
			return err
		}
		for _, ev := range read(t, path, ae.ReaderOptions{Decoder: claude.NewDecoder(claude.Options{})}) {
			ev.RunID = path + " " + ev.RunID
			all.events = append(all.events, ev)
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

// generated returns the log of the benchmarks with about so many events.
func generated(t *testing.T, lines int) (events []ae.Event) {
	c := exec.Command("go", "run", "./genlog", "-n", fmt.Sprint(lines), "-runs", fmt.Sprint(lines/500))
	c.Dir = filepath.Join(root, "bench") // a module of its own
	text, err := c.Output()
	require.NoError(t, err)
	for ev, err := range ae.NewReader(bytes.NewReader(text), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	return events
}

// The answers of each engine to the questions of the page are the figures of stats, also when all events
// were delivered twice.
func TestAnswers(t *testing.T) {
	logs := []log{
		{name: "by hand", events: read(t, "testdata/byhand.jsonl", ae.ReaderOptions{})},
		{name: "stats", events: read(t, filepath.Join(root, "cmd/agentevents/testdata/stats.jsonl"), ae.ReaderOptions{})},
		{name: "spans", events: read(t, "testdata/spans.jsonl", ae.ReaderOptions{})},
		{name: "quickstart", events: read(t, "testdata/quickstart.jsonl", ae.ReaderOptions{})},
		{name: "generated", events: generated(t, effort.Of(3000, 20_000, 300_000))},
	}
	rng := rand.New(rand.NewPCG(effort.Seed(t), 45))
	for i := range effort.Of(2, 5, 20) {
		logs = append(logs, log{name: fmt.Sprint("drawn ", i), events: drawn(rng, 150)})
	}
	logs = append(logs, captures(t))
	for _, l := range logs {
		l.times = 2
		l.name += ", twice"
		logs = append(logs, l)
	}
	for i := range logs {
		logs[i].times = max(1, logs[i].times)
	}
	questions := blocks(t, "question")
	reports := make([]*stats.Report, len(logs))
	for i, l := range logs {
		c := stats.New(stats.ByTool, stats.ByModel, stats.ByAgent)
		for _, ev := range l.events {
			c.Event(ev)
		}
		reports[i] = c.Report()
	}
	for name, ask := range engines {
		t.Run(name, func(t *testing.T) {
			for i, answers := range ask(t, logs, questions) {
				for j, q := range questions {
					t.Run(logs[i].name+"/"+q.heading, func(t *testing.T) { compare(t, reports[i], q.heading, answers[j]) })
				}
			}
		})
	}
}

// The values of the log that was made by hand were computed before it was written.
func TestByHand(t *testing.T) {
	c := stats.New()
	for _, ev := range read(t, "testdata/byhand.jsonl", ae.ReaderOptions{}) {
		c.Event(ev)
	}
	m := c.Report().Metrics
	for name, want := range map[string]struct {
		got         stats.Metric
		above, over float64
	}{
		"success":     {m.TaskSuccessRate, 3, 4},
		"loops":       {m.HandoffLoopRate, 1, 3},
		"rejections":  {m.VerifierRejectionRate, 2, 5},
		"depth":       {m.AverageAgentDepth, 3, 7},
		"tools":       {m.ToolFailureRate, 2, 5},
		"cost":        {m.CostPerSuccessfulTask, 0.60, 3},
		"approval":    {m.HumanApprovalLatency.Metric, 30_000, 2},
		"compression": {m.ContextCompression, 9000, 2500},
	} {
		require.InDelta(t, want.above, want.got.Numerator.V, 1e-9, name)
		require.Equal(t, want.over, want.got.Denominator, name)
	}
}

// compare compares the answer to the question below a heading.
func compare(t *testing.T, r *stats.Report, heading string, a answer) {
	metrics := map[string]stats.Metric{
		"Task success rate": r.Metrics.TaskSuccessRate, "Handoff loop rate": r.Metrics.HandoffLoopRate, "Verifier rejection rate": r.Metrics.VerifierRejectionRate,
		"Average agent depth": r.Metrics.AverageAgentDepth, "Tool failure rate": r.Metrics.ToolFailureRate, "Cost per successful task": r.Metrics.CostPerSuccessfulTask,
		"Human approval latency": r.Metrics.HumanApprovalLatency.Metric, "Context compression ratio": r.Metrics.ContextCompression,
	}
	if m, ok := metrics[heading]; ok {
		require.Len(t, a, 1)
		metric(t, m, a[0])
		return
	}
	tables := map[string]stats.By{"By tool": stats.ByTool, "By model": stats.ByModel, "By agent": stats.ByAgent}
	for _, table := range append([]stats.Table{r.Table}, r.Tables...) {
		if table.By == tables[heading] {
			groups(t, table, a)
			return
		}
	}
	require.Fail(t, "stats has no such figures")
}

func metric(t *testing.T, m stats.Metric, row map[string]any) {
	above, _ := number(t, row, "numerator")
	below, _ := number(t, row, "denominator")
	value, known := number(t, row, "value")
	near(t, m.Numerator.V, above, "numerator")
	near(t, m.Denominator, below, "denominator")
	require.Equal(t, m.Value.OK, known, "there is a value")
	near(t, m.Value.V, value, "value")
}

// near compares figures: sums of floats depend on their order.
func near(t *testing.T, want, got float64, name string) {
	t.Helper()
	require.InDelta(t, want, got, 1e-9*math.Max(1, math.Abs(want)), name)
}

// groups compares a table. The tables of stats have no agent, tool or model without a figure.
func groups(t *testing.T, table stats.Table, a answer) {
	rows := map[string]map[string]any{}
	for _, row := range a {
		rows[row["name"].(string)] = row
	}
	for _, g := range table.Groups {
		row := rows[g.Name]
		require.NotNil(t, row, "%s %q has no row", table.By, g.Name)
		delete(rows, g.Name)
		figures(t, table.By, g, row)
	}
	for name := range rows {
		require.Fail(t, "a group that stats lacks", "%s %q: %v", table.By, name, rows[name])
	}
}

func figures(t *testing.T, by stats.By, g stats.Group, row map[string]any) {
	is := func(name string, want float64) {
		t.Helper()
		got, _ := number(t, row, name)
		near(t, want, got, fmt.Sprintf("%s %q: %s", by, g.Name, name))
	}
	calls := func(prefix, all string, c *stats.Calls) {
		t.Helper()
		if c == nil {
			c = &stats.Calls{}
		}
		if all != "" {
			is(all, float64(c.Calls))
		}
		is(prefix+"failures", float64(c.Failed))
		is(prefix+"mean_ms", c.MeanMS.V)
		s := c.Spread
		if s == nil {
			s = &stats.Spread{}
		}
		is(prefix+"max_ms", s.Max)
		for name, want := range map[string]float64{"p50_ms": s.P50, "p95_ms": s.P95} {
			got, ok := number(t, row, prefix+name)
			require.Equal(t, c.Spread != nil, ok, "%s %q: %s", by, g.Name, prefix+name)
			require.InDelta(t, want, got, 0.008*math.Max(want, got)+1e-9, "%s %q: %s", by, g.Name, prefix+name)
		}
	}
	is("runs", float64(g.Runs))
	if by == stats.ByTool || by == stats.ByAgent {
		calls("", "calls", g.ToolCalls)
		if g.ToolCalls != nil {
			is("returned", float64(g.ToolCalls.Returned))
		}
	}
	if by == stats.ByModel || by == stats.ByAgent {
		calls("model_", "model_calls", g.ModelCalls)
		u := g.Tokens
		if u == nil {
			u = &stats.Tokens{}
		}
		is("input", float64(u.Input))
		is("output", float64(u.Output))
		is("cost", g.CostUSD.V)
	}
	if by != stats.ByAgent {
		return
	}
	m := g.Metrics
	is("succeeded", m.TaskSuccessRate.Numerator.V)
	is("decided", m.TaskSuccessRate.Denominator)
	is("depth", m.AverageAgentDepth.Value.V)
	is("cost_per_success", m.CostPerSuccessfulTask.Value.V)
	is("rejections", m.VerifierRejectionRate.Numerator.V)
	is("verdicts", m.VerifierRejectionRate.Denominator)
	is("approval_ms", m.HumanApprovalLatency.Value.V)
	is("compression", m.ContextCompression.Value.V)
}
