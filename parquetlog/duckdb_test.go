package parquetlog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/capture"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
)

//go:embed testdata/tables.js
var tables string

// duckdb asks DuckDB for the tables of folders.
func duckdb(t *testing.T, folders []string) (answers []struct {
	Tables    map[string]map[string]map[string]float64
	WrongDays int
}) {
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node: install Node.js 20 or newer")
	}
	place := os.Getenv("AGENTEVENTS_DUCKDB")
	if place == "" {
		t.Skip("needs duckdb: the name of a copy of the folder bench/testdata/duckdb in which you ran npm ci")
	}
	in, err := json.Marshal(folders)
	require.NoError(t, err)
	cmd := exec.Command(program, "-e", tables)
	cmd.Stdin, cmd.Env = bytes.NewReader(in), append(os.Environ(), "NODE_PATH="+filepath.Join(place, "node_modules"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	require.NoError(t, json.Unmarshal(out, &answers))
	require.Len(t, answers, len(folders))
	return answers
}

// captures returns the lines of the sessions of each agent program, by program.
func captures(t *testing.T) map[string][]string {
	all := map[string][]string{}
	programs, err := os.ReadDir("../capture/testdata")
	require.NoError(t, err)
	for _, p := range programs {
		if !p.IsDir() {
			continue
		}
		sessions, err := capture.Open(filepath.Join("../capture/testdata", p.Name()), capture.Options{})
		require.NoError(t, err)
		for i, s := range sessions {
			for line, err := range s.Lines() {
				require.NoError(t, err)
				line.Event.RunID = fmt.Sprint(i, " ", line.Event.RunID) // a session may be in several folders
				text, err := line.Event.AppendJSON(nil)
				require.NoError(t, err)
				all[p.Name()] = append(all[p.Name()], string(text))
			}
		}
	}
	require.Greater(t, len(all), 5)
	return all
}

// generated returns the log of the benchmarks with about so many lines.
func generated(t *testing.T, lines int) []string {
	cmd := exec.Command("go", "run", "./genlog", "-n", fmt.Sprint(lines), "-runs", fmt.Sprint(lines/500))
	cmd.Dir = "../bench" // a module of its own
	text, err := cmd.Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// spans is a log of an agent that is known by a span alone in its first half.
var spans = []string{
	`{"id":"1","sequence":0,"timestamp":"2026-03-01T10:00:00.000Z","type":"run.started","runId":"r","payload":{}}`,
	`{"id":"2","sequence":1,"timestamp":"2026-03-01T10:00:01.000Z","type":"agent.started","runId":"r","spanId":"s1","payload":{"model":"m"}}`,
	`{"id":"3","sequence":2,"timestamp":"2026-03-01T10:00:02.000Z","type":"usage.observed","runId":"r","parentSpanId":"s1","payload":{"usage":{"inputTokens":7,"outputTokens":2}}}`,
	`{"id":"4","sequence":3,"timestamp":"2026-03-01T10:00:03.500Z","type":"agent.text","runId":"r","parentSpanId":"s1","payload":{"text":"begun"}}`,
	`{"id":"5","sequence":4,"timestamp":"2026-03-01T10:00:04.000Z","type":"agent.text","runId":"r","agentId":"a","parentSpanId":"s1","payload":{"text":"done"}}`,
	`{"id":"6","sequence":5,"timestamp":"2026-03-01T10:00:05.000Z","type":"run.completed","runId":"r","payload":{}}`,
}

// TestDuckDB has DuckDB answer the tables of stats by agent, model and tool from the files of all captures,
// of the logs of the repository and of a generated log: delivered once, and delivered twice in two
// writings, of which the first one had half of the log.
func TestDuckDB(t *testing.T) {
	all := logs(t)
	maps.Copy(all, captures(t))
	all["generated"] = generated(t, effort.Of(3000, 20_000, 300_000))
	all["spans"] = spans
	drawn := names(all)
	var folders []string
	for _, name := range drawn {
		lines := all[name]
		once, twice := t.TempDir(), t.TempDir()
		_, err := write(t, once, lines)
		require.NoError(t, err, name)
		_, err = write(t, twice, lines[:len(lines)/2+1])
		require.NoError(t, err, name)
		_, err = write(t, twice, append(slices.Clone(lines), lines...))
		require.NoError(t, err, name)
		folders = append(folders, once, twice)
	}
	for i, answer := range duckdb(t, folders) {
		name := drawn[i/2]
		require.Zero(t, answer.WrongDays, name)
		equal(t, name, all[name], answer.Tables)
	}
}

// equal compares tables with the report of stats.
func equal(t *testing.T, name string, lines []string, got map[string]map[string]map[string]float64) {
	c := stats.New(stats.ByAgent, stats.ByModel, stats.ByTool)
	for ev, err := range reader(lines).All() {
		if err == nil {
			c.Event(ev)
		}
	}
	r := c.Report()
	for _, table := range append([]stats.Table{r.Table}, r.Tables...) {
		rows := got[string(table.By)]
		for _, g := range table.Groups {
			for figure, want := range figures(&g) {
				near := 1e-9 * max(1, want)
				if figure == "p95" {
					near = 0.008 * max(want, rows[g.Name][figure])
				}
				require.InDelta(t, want, rows[g.Name][figure], near, "%s: %s of %s %q", name, figure, table.By, g.Name)
			}
			delete(rows, g.Name)
		}
		for name, row := range rows {
			for figure, v := range row {
				require.Zero(t, v, "%s of %s %q, which stats lacks", figure, table.By, name)
			}
		}
	}
}

// figures returns the figures of a group, by the names that they have in tables.js.
func figures(g *stats.Group) map[string]float64 {
	all := map[string]float64{"runs": float64(g.Runs), "cost": g.CostUSD.V}
	if c := g.ToolCalls; c != nil {
		all["calls"], all["returned"], all["failed"], all["mean"] = float64(c.Calls), float64(c.Returned), float64(c.Failed), c.MeanMS.V
		if c.Spread != nil {
			all["p95"] = c.Spread.P95
		}
	}
	if c := g.ModelCalls; c != nil {
		all["model_calls"], all["model_failed"], all["model_mean"] = float64(c.Calls), float64(c.Failed), c.MeanMS.V
	}
	if u := g.Tokens; u != nil {
		all["input"], all["output"], all["cache_read"], all["cache_write"], all["reasoning"] = float64(u.Input), float64(u.Output), float64(u.CacheRead), float64(u.CacheWrite), float64(u.Reasoning)
	}
	return all
}
