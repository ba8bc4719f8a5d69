package openwop

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// The lines to measure: a short one, one with much text, one with raw JSON, a
// delta.
var benchLines = []dialecttest.BenchLine{
	{Name: "handoff", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.handoff","payload":{"from":{"agentId":"host:planner"},"to":{"agentId":"host:coder"},"reason":"billing"},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{Name: "reasoned", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoned","payload":{"agentId":"host:coder","reasoning":"` +
		strings.Repeat(`and then the next few words\n`, 18) + `"},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{Name: "called", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.toolCalled","payload":{"agentId":"host:coder","toolId":"db:query","callId":"call-2","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],` +
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},` +
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{Name: "returned", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.toolReturned","payload":{"agentId":"host:coder","toolId":"db:query","callId":"call-2","result":{"rows":12},"durationMs":20},"timestamp":"2026-05-05T09:00:01.200Z","sequence":43,"causationId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2"}`},
	{Name: "delta", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoning.delta","payload":{"agentId":"host:coder","delta":"and then the next few words","sequence":3},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42}`},
	{Name: "kept", Lines: `{"eventId":"01a1ffa6-3d64-76a9-bd6f-2c3e675e0fd2","runId":"run-1","nodeId":"n1","type":"agent.reasoning.delta","payload":{"agentId":"host:coder","delta":"and then the next few words","sequence":3},"timestamp":"2026-05-05T09:00:01.200Z","sequence":42,"schemaVersion":2}`},
}

func BenchmarkDecode(b *testing.B) { dialecttest.BenchmarkDecode(b, suite(RFC0002), benchLines) }

func BenchmarkEncode(b *testing.B) { dialecttest.BenchmarkEncode(b, suite(RFC0002), benchLines) }
