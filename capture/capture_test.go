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
		for line, err := range s.Lines() {
			require.NoError(t, err, "%s:%d", s.Files()[line.File], line.Number)
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
