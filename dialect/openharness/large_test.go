package openharness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/scale"
)

// A line of the allowed size has room for very many models with extra members. No
// one of them is searched for among all others.
func TestManyModels(t *testing.T) {
	prepare := func(n int) func() {
		var models []string
		for i := range n {
			models = append(models, fmt.Sprintf(`"m%06d":{"inputTokens":1,"outputTokens":2,"costUSD":%d}`, i, i))
		}
		line := `{"type":"agent:complete","nodeId":"n","runId":"x","timestamp":1,"result":"r","usage":{"inputTokens":1,"outputTokens":2},"modelUsage":{` +
			strings.Join(models, ",") + `},"durationMs":1,"numTurns":1}`
		return func() {
			events, err := NewDecoder(Options{}).Decode(nil, []byte(line))
			require.NoError(t, err)
			out, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
			require.NoError(t, err)
			require.True(t, string(out) == line+"\n")
		}
	}
	prepare(10_000)()
	if !testing.Short() {
		scale.Linear(t, 1000, prepare)
	}
}

// Extra members of models are written only in their own object, in any order, and not if
// a field has their name.
func TestKeptMembersOfModels(t *testing.T) {
	ev := agentevents.Event{RunID: "r", Scope: agentevents.Scope{NodeRunID: "x"}, Payload: &agentevents.AgentEnded{ModelUsage: map[string]agentevents.Usage{"a": {}, "a/b": {}}}}
	require.NoError(t, ev.SetExtra(string(Name), `{"/modelUsage/a~1b/y":2,"/modelUsage/a/b/y":3,"/modelUsage/a/x":1,"/modelUsage/a/inputTokens":4,"/modelUsage/c/x":5}`))
	e := NewEncoder(EncoderOptions{})
	out, err := e.Append(nil, ev)
	require.NoError(t, err)
	require.Contains(t, string(out), `"modelUsage":{"a":{"inputTokens":0,"outputTokens":0,"x":1},"a/b":{"inputTokens":0,"outputTokens":0,"y":2}}`)
	var dropped []string
	for _, l := range e.Losses() {
		if strings.HasPrefix(l.Pointer, "/openharness/") {
			dropped = append(dropped, l.Pointer)
		}
	}
	require.Equal(t, []string{"/openharness/~1modelUsage~1a~1b~1y", "/openharness/~1modelUsage~1a~1inputTokens", "/openharness/~1modelUsage~1c~1x"}, dropped)
}

// The durations of very many agents at the same time are measured from their starts.
func TestManyAgents(t *testing.T) {
	const n = 10_000
	e := NewEncoder(EncoderOptions{})
	line := func(i int, after time.Duration, p agentevents.Payload) string {
		text, err := e.Append(nil, in("r", fmt.Sprint("a", i), after, p))
		require.NoError(t, err)
		return string(text)
	}
	for i := range n {
		line(i, time.Duration(i)*time.Second, &agentevents.AgentStarted{})
	}
	for i := range n {
		require.Contains(t, line(i, time.Duration(2*i)*time.Second, &agentevents.AgentEnded{}), fmt.Sprintf(`"durationMs":%d,`, i*1000))
	}
	require.Zero(t, e.started.Len())
}
