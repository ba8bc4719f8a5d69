package kahn

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// The lines to measure: a short one, and one with much text.
var benchLines = []dialecttest.BenchLine{
	{Name: "transition", Lines: `{"ts":"2026-05-05T09:00:01.200Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":3,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}`},
	{Name: "invocation", Lines: `{"ts":"2026-05-05T09:00:01.250Z","run_id":"agent-coder-1","event":"tool_invocation","agent_id":"coder","step":3,"tool_name":"Bash","duration_s":0.412,"ok":true,"output_summary":"` +
		strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16) + `"}`},
}

func BenchmarkDecode(b *testing.B) { dialecttest.BenchmarkDecode(b, suite, benchLines) }

func BenchmarkEncode(b *testing.B) { dialecttest.BenchmarkEncode(b, suite, benchLines) }
