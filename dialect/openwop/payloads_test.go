package openwop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Payloads of registered types outside the vocabulary get the form of the profile, as far as it is
// known. The changes are listed.
func TestPayloadsOfOtherTypes(t *testing.T) {
	const run = `"acme/run-000000000001"`
	for name, c := range map[string]struct {
		from, to          Profile
		typ, payload, out string
		losses            []string
	}{
		"ids": {
			from: SchemaV1, to: SchemaV2, typ: "node.resumed", payload: `{"nodeId":"n 1","interruptId":"i1","x-a":1,"resumeValue":{"nodeId":"n 1"}}`,
			out:    `{"nodeId":"` + NormalizeID(SchemaV2, NodeID, "n 1") + `","interruptId":"` + NormalizeID(SchemaV2, InterruptID, "i1") + `","x-a":1,"resumeValue":{"nodeId":"n 1"}}`,
			losses: []string{"altered /payload/nodeId", "altered /payload/interruptId"},
		},
		"ids of a type that is only registered": {
			from: SchemaV1, to: SchemaV2, typ: "artifact.created", payload: `{"runId":"r","agentId":"a b","any":1}`,
			out:    `{"runId":"` + NormalizeID(SchemaV2, RunID, "r") + `","agentId":"` + NormalizeID(SchemaV2, HandoffID, "a b") + `","any":1}`,
			losses: []string{"altered /payload/runId", "altered /payload/agentId", "altered /agentId"},
		},
		"a vendor's": {from: SchemaV1, to: SchemaV2, typ: "acme.done", payload: `{"runId":"r","nodeId":"n 1"}`, out: `{"runId":"r","nodeId":"n 1"}`},
		"a member that is not declared": {
			from: SchemaV1, to: SchemaV2, typ: "conversation.closed", payload: `{"conversationId":"c1","turns":4}`, out: `{"conversationId":"c1"}`,
			losses: []string{"dropped /payload/turns"},
		},
		"one without extensions": {
			from: SchemaV2, to: SchemaV1, typ: "provider.usage", payload: `{"provider":"p","model":"m","inputTokens":1,"outputTokens":1,"cacheReadTokens":1}`,
			out: `{"provider":"p","model":"m","inputTokens":1,"outputTokens":1}`, losses: []string{"dropped /payload/usage/cacheReadInputTokens"},
		},
		"a value that both describe": {
			from: SchemaV1, to: SchemaV2, typ: "provider.usage", payload: `{"provider":"p","model":"m","inputTokens":1,"outputTokens":1,"traceId":"t"}`,
			out: `{"provider":"p","model":"m","inputTokens":1,"outputTokens":1}`, losses: []string{"dropped /openwop/~1payload~1traceId"},
		},
		"a version": {
			from: SchemaV1, to: SchemaV2, typ: "run.restored-from-snapshot", payload: `{"snapshotSeq":1,"engineVersion":"1.2"}`, out: `{"snapshotSeq":1}`,
			losses: []string{"dropped /payload/engineVersion"},
		},
		"a kind of interrupt": {
			from: SchemaV2, to: SchemaV1, typ: "interrupt.resolved", payload: `{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"credential"}`,
			out: `{"nodeId":"n1","interruptId":"acme/int-000000000001"}`, losses: []string{"dropped /payload/kind"},
		},
		"a resolution": {
			from: SchemaV1, to: SchemaV2, typ: "interrupt.resolved", payload: `{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"external-event","action":"edit"}`,
			out: `{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"external-event"}`, losses: []string{"dropped /payload/action"},
		},
		"the requirements of version 2": {
			from: SchemaV1, to: SchemaV2, typ: "output.chunk", payload: `{"nodeId":"n1","chunk":"a"}`,
			out: `{"nodeId":"n1","chunk":"a","runId":` + run + `,"isLast":false}`, losses: []string{"made up /payload/runId", "made up /payload/isLast"},
		},
		"no id": {
			from: SchemaV1, to: SchemaV2, typ: "log.appended", payload: `{"level":"info","message":"m","nodeId":""}`, out: `{"level":"info","message":"m"}`,
			losses: []string{"dropped /payload/nodeId"},
		},
		"no id of its own": {
			from: SchemaV2, to: SchemaV2, typ: "log.appended", payload: `{"level":"info","message":"m","nodeId":""}`,
			out: `{"level":"info","message":"m","nodeId":""}`,
		},
		"another channel": {
			from: RFC0002, to: SchemaV1, typ: "channel.written",
			payload: `{"channel":"c","value":1,"reducer":"merge","writtenAt":"2026-05-19T10:00:01.000Z","schemaVersion":0}`,
			out:     `{"channel":"c","value":1,"reducer":"merge","writtenAt":"2026-05-19T10:00:01.000Z"}`, losses: []string{"dropped /payload/schemaVersion"},
		},
		"its own profile": {from: SchemaV2, to: SchemaV2, typ: "conversation.closed", payload: `{"conversationId":"c1","turns":4}`, out: `{"conversationId":"c1","turns":4}`},
		"lacking":         {from: SchemaV1, to: SchemaV1, typ: "provider.usage", payload: `{"provider":"p","x":1}`, out: `{"provider":"p","x":1}`},
		"no object":       {from: SchemaV2, to: SchemaV2, typ: "log.appended", payload: `null`, out: `null`},
		"the RFC":         {from: SchemaV2, to: RFC0002, typ: "provider.usage", payload: `{"x":1}`, out: `{"x":1}`, losses: []string{"dropped /openwop/~0profile"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, losses := converted(t, c.from, c.to, documents(c.typ, c.payload))
			require.Equal(t, c.typ+" "+c.out, out)
			require.ElementsMatch(t, c.losses, losses)
		})
	}

	for typ, payload := range map[string]string{
		"provider.usage": `{}`, "node.resumed": `{"interruptId":"i"}`, "log.appended": `[]`, "approval.overridden": `{"gateId":"g","principal":"p","reason":"r"}`,
	} {
		ev := agentevents.Event{ID: "evt-0000000000-0001", RunID: "acme/run-000000000001", Payload: &agentevents.Unknown{Type: agentevents.Kind(typ), Raw: agentevents.JSON(payload)}}
		enc := NewEncoder(EncoderOptions{Profile: SchemaV2})
		out, err := enc.Append(nil, ev)
		require.ErrorIs(t, err, dialect.ErrNoCounterpart, typ)
		require.Empty(t, out)
		require.Len(t, enc.Losses(), 1)
	}
}

// A node is suspended and resumed by the same interrupt.
func TestInterruptsOfNodesArePaired(t *testing.T) {
	out, _ := converted(t, SchemaV1, SchemaV2, documents("node.suspended", `{"nodeId":"n1","interruptId":"i1"}`, "node.resumed", `{"nodeId":"n1","interruptId":"i1"}`))
	suspended, resumed, _ := strings.Cut(out, "\n")
	_, suspended, _ = strings.Cut(suspended, " ")
	_, resumed, _ = strings.Cut(resumed, " ")
	require.Equal(t, suspended, resumed)
}
