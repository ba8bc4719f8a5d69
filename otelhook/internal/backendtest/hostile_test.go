package backendtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/otelhook/internal/backendtest"
	"github.com/agentevents/agentevents/otlpjson"
)

// script returns the events of a run that no emitter would have written: "1 b<a begins" is that
// after a second b begins, which a has started; "2 b calls 1" has the id of a call.
func script(t *testing.T, runID, text string) (list []ae.Event) {
	t.Helper()
	for i, line := range strings.Split(text, ", ") {
		var at float64
		var who, verb, call string
		_, _ = fmt.Sscan(line, &at, &who, &verb, &call) // call may be absent
		agent, parent, _ := strings.Cut(who, "<")
		payload := map[string]ae.Payload{
			"run begins": &ae.RunStarted{Name: "n"}, "run ends": &ae.RunCompleted{},
			"begins": &ae.AgentStarted{}, "ends": &ae.AgentEnded{Outcome: ae.OutcomeConverged},
			"calls": &ae.ToolCalled{CallID: call, ToolID: "t" + call}, "returns": &ae.ToolReturned{CallID: call, ToolID: "t" + call, Status: ae.ToolStatusOK},
		}
		if agent == "run" {
			agent, verb = "", "run "+verb
		}
		require.Contains(t, payload, verb)
		list = append(list, ae.Event{
			ID: line, Sequence: uint64(i + 1), RunID: runID, AgentID: agent, ParentAgentID: parent, Payload: payload[verb],
			Time: epoch.Add(time.Duration(at * float64(time.Second))),
		})
	}
	return list
}

// TestHostileOrder: whatever the order of events, and of their times, Jaeger finds nothing
// wrong with the trace, and an export of the log has the same spans as the hook.
func TestHostileOrder(t *testing.T) {
	live, exported := backendtest.StartJaeger(t), backendtest.StartJaeger(t)
	for _, c := range []struct{ name, script, want string }{
		{"a long child begins after its parent's end", "0 run begins, 0 a begins, 1 b<a begins, 2 b ends, " +
			"3 c<b begins, 4 c calls 1, 5 c returns 1, 6 c ends, 7 a ends, 8 run ends", `
invoke_workflow n  8s
└─ invoke_agent a  7s
   └─ invoke_agent b  1s
      └─ invoke_agent c  3s
         └─ execute_tool t1  1s
`},
		{"a short child begins after its parent's end", "0 run begins, 0 a begins, 1 b<a begins, 3 b ends, " +
			"4 c<b begins, 4.5 c ends, 7 a ends, 8 run ends", `
invoke_workflow n  8s
└─ invoke_agent a  7s
   └─ invoke_agent b  2s
      └─ invoke_agent c  500ms
`},
		{"a child begins after the run's end", "0 run begins, 0 a begins, 1 a ends, 2 run ends, 3 c<a begins, 3.5 c ends", `
invoke_workflow n  2s
└─ invoke_agent a  1s
   └─ invoke_agent c  500ms
`},
		{"a child ends after its parent", "0 run begins, 0 a begins, 1 b<a begins, 2 a ends, 4 b ends, 5 run ends", `
invoke_workflow n  5s
└─ invoke_agent a  2s
   └─ invoke_agent b  3s
`},
		{"an end before the start", "0 run begins, 0 a begins, 1 a returns 1, 2 a calls 1, 3 a ends, 4 run ends", `
invoke_workflow n  4s
└─ invoke_agent a  3s
   ├─ execute_tool t1  0s
   └─ execute_tool t1  0s
`},
		{"a start twice", "0 run begins, 0 a begins, 1 a calls 1, 2 a calls 1, 3 a returns 1, 4 a begins, 5 a ends, 6 run begins, 7 run ends", `
invoke_workflow n  7s
├─ invoke_agent a  3s  error: agentevents.incomplete
│  ├─ execute_tool t1  0s  error: agentevents.incomplete
│  └─ execute_tool t1  1s
└─ invoke_agent a  1s
`},
		{"an end without a start", "0 run begins, 0 a begins, 1 a returns 1, 1 b<a ends, 2 a ends, 2 a ends, 3 run ends, 4 run ends", `
invoke_workflow n  3s
└─ invoke_agent a  2s
   ├─ execute_tool t1  0s
   └─ invoke_agent b  0s
`},
		{"pairs that cross", "0 run begins, 0 a begins, 1 a calls 1, 2 a calls 2, 3 a returns 1, 4 a returns 2, 5 a ends, 6 run ends", `
invoke_workflow n  6s
└─ invoke_agent a  5s
   ├─ execute_tool t1  2s
   └─ execute_tool t2  2s
`},
		{"times that run backwards", "9 run begins, 9 a begins, 8 b<a begins, 7 b calls 1, 6 b returns 1, 5 b ends, 4 a ends, 3 run ends", `
invoke_workflow n  0s
└─ invoke_agent a  0s
   └─ invoke_agent b  0s
      └─ execute_tool t1  0s
`},
		{"one time", "0 run begins, 0 a begins, 0 b<a begins, 0 b calls 1, 0 b returns 1, 0 b calls 2, 0 b returns 2, 0 b ends, 0 a ends, 0 run ends", `
invoke_workflow n  0s
└─ invoke_agent a  0s
   └─ invoke_agent b  0s
      ├─ execute_tool t1  0s
      └─ execute_tool t2  0s
`},
		{"no end", "0 run begins, 0 a begins, 1 b<a begins, 2 b calls 1", `
invoke_workflow n  2s  error: agentevents.incomplete
└─ invoke_agent a  2s  error: agentevents.incomplete
   └─ invoke_agent b  1s  error: agentevents.incomplete
      └─ execute_tool t1  0s  error: agentevents.incomplete
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := script(t, c.name, c.script)
			r := newRig(t, setup{traces: []string{live.Endpoint}, resource: address})
			id := ""
			for _, ev := range list {
				id = r.hook.Trace(t.Context(), ev).TraceID
			}
			require.NoError(t, r.hook.Close())
			r.export(t)
			n := int(r.hook.Stats().Spans)
			require.Equal(t, n, replay(t, exported.Endpoint, otlpjson.Options{Service: service, Resource: address}, list).Spans)
			for _, jaeger := range []*backendtest.Jaeger{live, exported} {
				tr := jaeger.Trace(t, id, n)
				tr.Check(t, "")
				require.Equal(t, c.want, "\n"+tr.Tree())
			}
		})
	}
}
