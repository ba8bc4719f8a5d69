package lawtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/stats"
)

// With ReuseText a reader reads every line into the same memory, so who keeps a text must copy it. In
// the test each line is followed by one that overwrites that memory.
func TestTextsOfLinesAreCopied(t *testing.T) {
	t.Run("generated", func(t *testing.T) {
		draws(t, effort.Of(400, 6000, 40_000))
		rapid.Check(t, func(t *rapid.T) {
			run := Generate(t, Config{Lifecycle: Lifecycles().Draw(t, "lifecycle"), Wild: rapid.Bool().Draw(t, "wild")})
			var lines [][]byte
			for _, ev := range run.Events {
				text, err := ev.AppendJSON(nil)
				require.NoError(t, err)
				lines = append(lines, text)
			}
			if len(lines) > 0 {
				line := rapid.IntRange(0, len(lines)-1)
				for range rapid.IntRange(0, 4).Draw(t, "violations of rules") {
					lines[line.Draw(t, "lost")] = lines[line.Draw(t, "repeated")]
				}
			}
			copied(t, lines)
		})
	})
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) < 1<<20 {
			t.Run(filepath.ToSlash(path), func(t *testing.T) { copied(t, bytes.Split(text, []byte("\n"))) })
		}
		return err
	})
	require.NoError(t, err)
}

// Workers read lines into the memory of batches, which they use again: their fold of many megabytes is
// the fold of one goroutine.
func TestTextsOfBatchesAreCopied(t *testing.T) {
	var logs [][]byte
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && len(text) < 1<<20 {
			logs = append(logs, text)
		}
		return err
	})
	require.NoError(t, err)
	var all bytes.Buffer
	for n := 0; all.Len() < effort.Of(8, 16, 80)<<20; n++ {
		for _, text := range logs {
			all.Write(bytes.ReplaceAll(text, []byte(`"runId":"`), fmt.Appendf(nil, `"runId":"%d-`, n)))
			all.WriteByte('\n')
		}
	}
	fold := func(workers int) (texts, broken []string) {
		var mu sync.Mutex
		var errs []*agentevents.RuleError
		o := agentevents.FoldOptions{Workers: workers, OnViolation: func(v *agentevents.RuleError) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, v)
		}}
		l, err := agentevents.FoldLog(agentevents.NewReader(bytes.NewReader(all.Bytes()), agentevents.ReaderOptions{}), o)
		texts = append(texts, fmt.Sprint(err))
		for s := range l.Drain() {
			text, err := json.Marshal(s)
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
		for _, v := range errs {
			broken = append(broken, fmt.Sprintf("%+v", *v))
		}
		slices.Sort(broken)
		return texts, broken
	}
	want, broken := fold(0)
	require.Greater(t, len(want), 100)
	require.NotEmpty(t, broken)
	got, gotBroken := fold(3)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	require.Equal(t, broken, gotBroken)
}

// copied compares all that is made of lines with the same where each line has memory of its own.
func copied(t require.TestingT, lines [][]byte) {
	var plain, mixed bytes.Buffer
	for _, line := range lines {
		fmt.Fprintf(&plain, "%s\n", line)
		fmt.Fprintf(&mixed, "%s\n%s\n", line, bytes.Repeat([]byte("~"), len(line)+8))
	}
	a, b := newGathered(), newGathered()
	for ev, err := range agentevents.NewReader(&plain, agentevents.ReaderOptions{}).All() {
		if err == nil {
			a.add(t, agentevents.Line{Event: &ev})
		}
	}
	for line, err := range agentevents.NewReader(&mixed, agentevents.ReaderOptions{ReuseText: true}).Lines() {
		if err == nil {
			b.add(t, line)
		}
	}
	want, got := a.text(t), b.text(t)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
}

// gathered is all that is made of the events of a log.
type gathered struct {
	fold    *agentevents.FoldSet
	stats   *stats.Collector
	columns *columns.Tracker
	rows    []string
	broken  []*agentevents.RuleError
}

func newGathered() *gathered {
	m := &gathered{
		stats:   stats.New(stats.ByAgent, stats.ByTool, stats.ByModel, stats.ByAgentModel, stats.ByAgentTool, stats.ByModelTool),
		columns: columns.NewTracker(),
	}
	m.fold = agentevents.NewFoldSet(agentevents.FoldOptions{
		OnViolation: func(v *agentevents.RuleError) { m.broken = append(m.broken, v) },
	})
	return m
}

func (m *gathered) add(t require.TestingT, line agentevents.Line) {
	m.fold.ApplyLine(line.Event, line.Text)
	m.stats.Line(line)
	row, err := m.columns.Add(line.Event, line.Text)
	m.rows = append(m.rows, fmt.Sprintf("%+v %v", row, err))
}

func (m *gathered) text(t require.TestingT) []string {
	texts := m.rows
	for _, v := range m.broken {
		texts = append(texts, fmt.Sprintf("%+v", *v))
	}
	for s := range m.fold.Drain() {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	report, err := json.Marshal(m.stats.Report())
	require.NoError(t, err)
	return append(texts, string(report))
}
