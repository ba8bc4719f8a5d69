package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShowUsage(t *testing.T) {
	const log = `{"id":"e0","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.started","runId":"r1","agentId":"main","schemaVersion":"1.0","payload":{"task":"t"}}
{"id":"e1","sequence":1,"timestamp":"2026-05-05T09:00:01.000Z","type":"model.returned","runId":"r1","agentId":"main","schemaVersion":"1.0","payload":{"modelCallId":"m1","model":"large","oneEvent":true,"usage":{"inputTokens":60,"outputTokens":1}}}
{"id":"e2","sequence":2,"timestamp":"2026-05-05T09:00:02.000Z","type":"agent.started","runId":"r1","agentId":"sub","parentAgentId":"main","schemaVersion":"1.0","payload":{"task":"t"}}
{"id":"e3","sequence":3,"timestamp":"2026-05-05T09:00:03.000Z","type":"agent.ended","runId":"r1","agentId":"sub","schemaVersion":"1.0","payload":{"outcome":"converged","usage":{"inputTokens":40,"outputTokens":5}}}
{"id":"e4","sequence":4,"timestamp":"2026-05-05T09:00:04.000Z","type":"agent.ended","runId":"r1","agentId":"main","schemaVersion":"1.0","payload":{"outcome":"converged","usage":{"inputTokens":100,"outputTokens":9,"cacheReadInputTokens":7},"modelUsage":{"large":{"inputTokens":100,"outputTokens":9,"costUsd":0.25}}}}
`
	require.Equal(t, `run r1: 100 in, 9 out, 7 read from the cache, $0.2500

main, attempt 1
  + agent.ended modelUsage of large: 100 in, 9 out, $0.2500
  + agent.ended usage: 7 read from the cache of 100 in, 9 out, 7 read from the cache; the modelUsage of the end counts
  - reports of large: 60 in, 1 out; the modelUsage of the end counts; 55 tokens fewer

sub, attempt 1, below main
  - agent.ended usage: 40 in, 5 out; an attempt of an agent above it includes it
`, exec(log, "show", "--usage", "-").out)
	least := strings.Replace(log[:strings.Index(log, "\n")+1], `agent.started`, `usage.observed`, 1)
	least = strings.Replace(least, `{"task":"t"}`, `{"usage":{"inputTokens":40,"outputTokens":12},"partial":true}`, 1)
	require.Contains(t, exec(least, "show", "--usage", "-").out, "run r1: at least 40 in, 12 out\n")
	require.Equal(t, "run r1: no data\n", exec(loopLog(1)[:170], "show", "--usage", "-").out)
}
