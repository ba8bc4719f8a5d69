package readback_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/internal/readback"
)

// A value with many members is one difference for each, which one loss lists. Comparing takes
// work in proportion to them, not to their square: events are flattened once.
func TestWorkIsLinear(t *testing.T) {
	work := func(members int) float64 {
		list := make([]string, members)
		for i := range list {
			list[i] = fmt.Sprintf(`"m%d":%d`, i, i)
		}
		wide := agentevents.JSON("{" + strings.Join(list, ",") + "}")
		events := []agentevents.Event{
			{ID: "1", RunID: "r", AgentID: "a", Payload: &agentevents.ToolCalled{CallID: "c", ToolID: "t", Arguments: wide}},
			{ID: "2", RunID: "r", AgentID: "a", Sequence: 1, Payload: &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, Result: wide}},
		}
		return testing.AllocsPerRun(3, func() {
			var trip readback.Trip
			require.Empty(t, trip.Problems(events, kahn.NewEncoder(kahn.EncoderOptions{}), kahn.NewDecoder(kahn.Options{})))
		})
	}
	few, many := work(100), work(400)
	require.Less(t, many, 5*few)
}

// The members that a line lacked are a set: one that is made up leaves the others as they are.
func TestAbsentMembersAreASet(t *testing.T) {
	with := func(absent agentevents.JSON) agentevents.Event {
		ev := agentevents.Event{ID: "e", RunID: "r", SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.RunPaused{}}
		require.NoError(t, ev.SetExtra("openwop", `{"~absent":`+absent+`}`))
		return ev
	}
	diffs, err := readback.Diff(with(`["/payload","/payload/toolId","/payload/callId"]`), with(`["/payload/toolId","/payload/callId"]`))
	require.NoError(t, err)
	require.Equal(t, []readback.Difference{{Pointer: "/openwop/~0absent/~1payload", Before: "true"}}, diffs)
}
