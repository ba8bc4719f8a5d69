package multiagent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// benchLines stress different things: a short line, much text, raw JSON, and an
// agent's end.
var benchLines = []dialecttest.BenchLine{
	{Name: "phase", Lines: docLine("workflow.phase.started", `{"workflowId":"w1","phase":"audit","inputCount":12}`)},
	{Name: "returned", Lines: docLine("tool.call.completed", `{"callId":"call-1","toolId":"Bash","status":"ok","resultSummary":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16)+`","durationMs":412}`)},
	{Name: "called", Lines: docLine("tool.call.started", `{"callId":"call-2","toolId":"db:query","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],`+
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},`+
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}}`)},
	{Name: "ended", Lines: docLine("agent.completed", `{"agentId":"planner","tokens":512,"durationMs":3000,"workflowId":"w1","phase":"audit","outcome":"converged","numTurns":3}`)},
}

func BenchmarkDecode(b *testing.B) {
	lines := slices.Clone(benchLines)
	for i := range lines { // a line again would have no event
		lines[i].Number = func(line string, i int) string { return strings.Replace(line, `"e1"`, fmt.Sprintf(`"e%d"`, i), 1) }
	}
	dialecttest.BenchmarkDecode(b, suite, lines)
}

func BenchmarkEncode(b *testing.B) { dialecttest.BenchmarkEncode(b, suite, benchLines) }
