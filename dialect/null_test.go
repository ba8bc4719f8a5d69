package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/kahn"
	"github.com/agentevents/agentevents/dialect/kaos"
	"github.com/agentevents/agentevents/dialect/multiagent"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// Null in an optional member has no effect: the event equals the event of the line without the
// member. Null comes back, or is listed as lost. A strict decoder refuses it.
func TestNullInAnOptionalMember(t *testing.T) {
	for _, c := range []struct {
		name          dialect.Name
		decoder       func(strict bool) agentevents.Decoder
		encoder       dialect.Encoder
		line, without string
	}{
		{dialect.KAHN, func(strict bool) agentevents.Decoder { return kahn.NewDecoder(kahn.Options{Strict: strict}) }, kahn.NewEncoder(kahn.EncoderOptions{}),
			`{"ts":"2026-05-05T09:00:01.000Z","run_id":"r1","event":"agent_transition","agent_id":"coder","step":0,"from":"thinking","to":"tool_call","reason":null}`,
			`,"reason":null`},
		{dialect.MultiAgent, func(strict bool) agentevents.Decoder {
			return multiagent.NewDecoder(multiagent.Options{Strict: strict})
		}, multiagent.NewEncoder(multiagent.EncoderOptions{}),
			`{"id":"e1","traceId":"T","spanId":"root","sessionId":"S","runId":"R","actor":"user","type":"session.started","payload":{"goal":"g"},"timestamp":"2026-05-05T09:00:01.000Z","schemaVersion":"1.0","parentSpanId":null}`,
			`,"parentSpanId":null`},
		{dialect.KAOS, func(strict bool) agentevents.Decoder { return kaos.NewDecoder(kaos.Options{Strict: strict}) }, kaos.NewEncoder(kaos.EncoderOptions{}),
			`{"timestamp":1000.5,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":"a","content":null,"type":"text_delta"}`,
			`"content":null,`},
		{dialect.OpenHarness, func(strict bool) agentevents.Decoder {
			return openharness.NewDecoder(openharness.Options{Strict: strict})
		}, openharness.NewEncoder(openharness.EncoderOptions{}),
			`{"type":"agent:tool","nodeId":"n","runId":"x","timestamp":1767517322010,"toolName":"t","toolInput":{},"toolOutput":1,"error":null}`,
			`,"error":null`},
		{dialect.OpenWOP, func(strict bool) agentevents.Decoder { return openwop.NewDecoder(openwop.Options{Strict: strict}) }, openwop.NewEncoder(openwop.EncoderOptions{}),
			`{"eventId":"e1","runId":"r","nodeId":"n1","type":"agent.decided","payload":{"agentId":"host:a","decision":"d","confidence":null},"timestamp":"2026-05-19T10:00:07.000Z","sequence":0}`,
			`,"confidence":null`},
	} {
		t.Run(string(c.name), func(t *testing.T) {
			with, err := c.decoder(false).Decode(nil, []byte(c.line))
			require.NoError(t, err)
			plain := strings.Replace(c.line, c.without, "", 1)
			require.NotEqual(t, c.line, plain)
			without, err := c.decoder(false).Decode(nil, []byte(plain))
			require.NoError(t, err)
			if p, ok := with[0].Payload.(*agentevents.ToolReturned); ok {
				without[0].Payload.(*agentevents.ToolReturned).CallID = p.CallID // derived from the line
			}
			require.Equal(t, without[0].Payload, with[0].Payload)
			require.Equal(t, without[0].Scope, with[0].Scope)

			out, err := c.encoder.Append(nil, with[0])
			require.NoError(t, err)
			back := strings.Contains(string(out), c.without)
			lost := slices.ContainsFunc(c.encoder.Losses(), func(l dialect.Loss) bool {
				return l.What == dialect.Dropped && strings.HasPrefix(l.Pointer, "/"+string(c.name))
			})
			require.NotEqual(t, back, lost, "%s%v", out, c.encoder.Losses())

			_, err = c.decoder(true).Decode(nil, []byte(c.line))
			require.Error(t, err)
		})
	}
}
