package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
)

// TestPairsOfTools has an agent that calls tools with two models, and one that has none.
func TestPairsOfTools(t *testing.T) {
	c := New(ByAgentTool, ByModelTool)
	for _, ev := range log(
		entry{agent: "a", p: &ae.AgentStarted{Name: "Ann", Model: "small"}},
		entry{agent: "a", p: &ae.ToolCalled{CallID: "1", ToolID: "read"}},
		entry{agent: "a", p: &ae.ToolReturned{CallID: "1", ToolID: "read", Status: ae.ToolStatusOK, Duration: ae.Some(2 * time.Second)}},
		entry{agent: "a", p: &ae.ModelCalled{ModelCallID: "m", Model: "big"}},
		entry{agent: "a", p: &ae.ToolCalled{CallID: "2", ToolID: "read"}},
		entry{agent: "a", p: &ae.ToolReturned{CallID: "2", ToolID: "read", Status: ae.ToolStatusError, Duration: ae.Some(4 * time.Second)}},
		entry{agent: "b", p: &ae.ToolReturned{CallID: "3", ToolID: "read", Status: ae.ToolStatusForbidden}},
		entry{agent: "b", p: &ae.ToolCalled{CallID: "4", ToolID: "write"}},
	) {
		c.Event(ev)
	}
	r := c.Report()
	rows := func(table Table) (out []string) {
		for _, g := range table.Groups {
			v := g.ToolCalls
			out = append(out, fmt.Sprintf("%s %s: %d runs, %d calls, %d returned, %d failed, %d refused, %d open, mean %v", g.Name, g.Tool, g.Runs, v.Calls, v.Returned, v.Failed, v.Refused, v.Open, v.MeanMS.V))
		}
		slices.Sort(out)
		return out
	}
	require.Equal(t, []string{
		"Ann read: 1 runs, 2 calls, 2 returned, 1 failed, 0 refused, 0 open, mean 3000",
		"b read: 1 runs, 0 calls, 0 returned, 0 failed, 1 refused, 0 open, mean 0",
		"b write: 1 runs, 1 calls, 0 returned, 0 failed, 0 refused, 1 open, mean 0",
	}, rows(r.Table))
	require.Equal(t, []string{
		" read: 1 runs, 0 calls, 0 returned, 0 failed, 1 refused, 0 open, mean 0",
		" write: 1 runs, 1 calls, 0 returned, 0 failed, 0 refused, 1 open, mean 0",
		"big read: 1 runs, 1 calls, 1 returned, 1 failed, 0 refused, 0 open, mean 4000",
		"small read: 1 runs, 1 calls, 1 returned, 0 failed, 0 refused, 0 open, mean 2000",
	}, rows(r.Tables[0]))
}

// TestPairsAddUp adds the rows of both pairs, which count events, and compares each tool with the
// table by tool, which has the counts of the folds. The logs have calls that never return, that
// began before the log, that return in any way, and events that come again.
func TestPairsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(effort.Seed(t), 40))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 200 {
		var entries []entry
		for i := range 40 {
			run, agent := pick("x", "y"), pick("a", "b", "c")
			if rng.IntN(4) == 0 {
				entries = append(entries, entry{run: run, agent: agent, p: &ae.ModelCalled{ModelCallID: fmt.Sprint("m", i), Model: pick("big", "small")}})
				continue
			}
			call, tool, word := fmt.Sprint(i), pick("read", "write"), ae.ToolStatus(pick("ok", "error", "forbidden", "rate_limited", "cancelled", "interrupted"))
			end := &ae.ToolReturned{CallID: call, ToolID: tool, Status: word, Duration: ae.Some(time.Duration(rng.Int64N(9e9)))}
			whole := rng.IntN(5) == 0
			if end.OneEvent = whole; !whole && rng.IntN(5) > 0 {
				entries = append(entries, entry{run: run, agent: agent, p: &ae.ToolCalled{CallID: call, ToolID: tool}})
			}
			if whole || rng.IntN(5) > 0 {
				entries = append(entries, entry{run: run, agent: agent, p: end})
			}
		}
		c := New(ByTool, ByAgentTool, ByModelTool)
		for _, ev := range log(entries...) {
			for range 1 + rng.IntN(8)/7 {
				c.Event(ev)
			}
		}
		r := c.Report()
		want := sums(r.Table, func(g Group) string { return g.Name })
		for _, pairs := range r.Tables {
			require.Equal(t, want, sums(pairs, func(g Group) string { return g.Tool }), pairs.By)
		}
	}
}

// sums adds the counts of the groups with the same tool.
func sums(table Table, tool func(Group) string) map[string]Calls {
	all := map[string]Calls{}
	for _, g := range table.Groups {
		sum, v := all[tool(g)], g.ToolCalls
		sum.Calls, sum.Returned, sum.Failed = sum.Calls+v.Calls, sum.Returned+v.Returned, sum.Failed+v.Failed
		sum.Open, sum.Refused, sum.Undecided = sum.Open+v.Open, sum.Refused+v.Refused, sum.Undecided+v.Undecided
		all[tool(g)] = sum
	}
	return all
}
