package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// counts are the figures of a folder of sessions.
type counts struct {
	runs, agents, models, ok, failed, refused, unfinished int
	used                                                  agentevents.Usage
	ends                                                  []string
}

// count reads sessions and folds their events. There are no faults and no violations.
func count(t *testing.T, name string) (c counts, sessions []*Session) {
	t.Helper()
	sessions, err := Open(name, Options{})
	require.NoError(t, err)
	slices.SortFunc(sessions, func(a, b *Session) int { return strings.Compare(a.Files()[0], b.Files()[0]) }) // files without times
	for _, s := range sessions {
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		ids := map[string]bool{}
		for line, err := range s.Lines() {
			require.NoError(t, err, "%s:%d", s.Files()[line.File], line.Number)
			require.False(t, ids[line.Event.ID], "%s:%d: two events have one id", s.Files()[line.File], line.Number)
			ids[line.Event.ID] = true
			fold.Apply(*line.Event)
			c.event(line.Event)
		}
		snapshot := fold.Snapshot()
		require.Empty(t, snapshot.Violations, s.Files()[0])
		c.runs++
		c.add(snapshot.Usage.Usage)
		c.ends = append(c.ends, string(snapshot.Status))
	}
	return c, sessions
}

func (c *counts) event(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.AgentStarted:
		if !p.Resumed {
			c.agents++
		}
	case *agentevents.ModelReturned:
		c.models++
	case *agentevents.ToolReturned:
		switch p.Status {
		case agentevents.ToolStatusOK:
			c.ok++
		case agentevents.ToolStatusError:
			c.failed++
		case agentevents.ToolStatusForbidden:
			c.refused++
		default:
			c.unfinished++
		}
	}
}

func (c *counts) add(u agentevents.Usage) {
	c.used.InputTokens += u.InputTokens
	c.used.OutputTokens += u.OutputTokens
	c.used.CacheReadInputTokens.V += u.CacheReadInputTokens.V
	c.used.CacheCreationInputTokens.V += u.CacheCreationInputTokens.V
	c.used.ReasoningOutputTokens.V += u.ReasoningOutputTokens.V
}

func (c *counts) row(name string) string {
	u := &c.used
	return fmt.Sprintf("%-22s %4d %6d %6d %4d %6d %7d %10d %6d %6d %7d %6d %9d  %s", name, c.runs, c.agents, c.models, c.ok, c.failed, c.refused, c.unfinished,
		u.InputTokens, u.CacheReadInputTokens.V, u.CacheCreationInputTokens.V, u.OutputTokens, u.ReasoningOutputTokens.V, strings.Join(c.ends, " "))
}

// The sessions below testdata have the counts of counts.txt, which are those of the scripts that
// the programs were recorded with.
func TestCounts(t *testing.T) {
	text, err := os.ReadFile("testdata/counts.txt")
	require.NoError(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "#") || !strings.Contains(name, "/") {
			got.WriteString(line)
			continue
		}
		c, _ := count(t, filepath.Join("testdata", name))
		got.WriteString(c.row(name) + "\n")
	}
	require.Equal(t, string(text), got.String())
}

// The tokens are the least that a run used if the tokens of a sub-agent are not in the files.
func TestUnseenTokens(t *testing.T) {
	for name, want := range map[string]bool{
		"qwen-stream/subagent": true, "codex-exec/agents-v1": true, "qwen/subagent": false, "codex/agents-v1": false,
	} {
		all, _ := snapshots(t, "testdata/"+name)
		require.Equal(t, want, all[0].Usage.Partial, name)
		require.Positive(t, all[0].Usage.Usage.InputTokens, name)
	}
	to := t.TempDir()
	put(t, to, chatFile(t, "gemini/subagent"))
	all, _ := snapshots(t, to)
	require.True(t, all[0].Usage.Partial)
}

// Reading again gives the same events with the same ids.
func TestSameEvents(t *testing.T) {
	read := func() (text []byte) {
		sessions, err := Open("testdata/codex/tools", Options{})
		require.NoError(t, err)
		for _, s := range sessions {
			for line, err := range s.Lines() {
				require.NoError(t, err)
				text, err = line.Event.AppendJSON(text)
				require.NoError(t, err)
			}
		}
		return text
	}
	first := read()
	require.NotEmpty(t, first)
	require.Equal(t, string(first), string(read()))
}

// The cost of a session is its own: what the totals of the program grew by while it lasted. It is
// unknown after a fork, the first totals of which have the cost of another session, with a model
// without a price, and after a kill.
func TestCosts(t *testing.T) {
	for name, want := range map[string][]string{
		"agents": {"0.012736"}, "agents-fg": {"0.011954"}, "compact": {"0.015332"}, "resume": {"0.010654", "unknown"}, "cost": {"unknown", "0.018000", "0.005000"},
		"input": {"0.002752"}, "text": {"0.002540"}, "fallback": {"0.000480"}, "maxturns": {"0.000640", "0.000664"}, "sigint": {"0.001304", "0.000640", "unknown"},
	} {
		sessions, err := Open("testdata/claude/"+name, Options{})
		require.NoError(t, err)
		var got []string
		for _, s := range sessions {
			fold := agentevents.NewFold(agentevents.FoldOptions{})
			for line, err := range s.Lines() {
				require.NoError(t, err)
				fold.Apply(*line.Event)
			}
			cost := "unknown"
			if c := fold.Snapshot().Usage.CostUSD; c.OK {
				cost = fmt.Sprintf("%.6f", c.V)
			}
			got = append(got, cost)
		}
		require.Equal(t, want, got, name)
	}
}
