package openwop

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// A member that the profile does not declare is an extra member if its value is
// not of the vocabulary's type. It is written back.
func TestUndeclaredMembersMayBeAnything(t *testing.T) {
	const (
		called   = `"agentId":"host:p","toolName":"a","callId":"c"`
		returned = `"agentId":"host:p","toolName":"a","callId":"c"`
		failure  = `"error":{"code":"c","message":"m"`
		id       = `"interruptId":"acme/int-000000000001"`
	)
	for _, c := range []struct {
		p            Profile
		typ, payload string
		key          string // the key of the extra member
	}{
		{SchemaV1, "node.completed", `{"nodeId":"n1","agent":null}`, "/payload/agent"},
		{SchemaV1, "node.completed", `{"nodeId":"n1","agent":"abc"}`, "/payload/agent"},
		{SchemaV1, "node.started", `{"nodeId":"n1","typeId":"a.b","agent":{"agentId":"abc","memoryRef":5}}`, "/payload/agent"},
		{SchemaV1, "agent.handoff", `{"fromAgentId":"host:p","toAgentId":"abc","from":"host:p","to":"abc"}`, "/payload/to"},
		{SchemaV1, "agent.decided", `{"agentId":"abc","decision":1,"reasoning":["a"]}`, "/payload/reasoning"},
		{SchemaV1, "approval.requested", `{"nodeId":"n1","artifactId":"a","artifactType":"t","actions":["accept"],"scope":{"x":1}}`, "/payload/scope"},
		{SchemaV1, "approval.requested", `{"nodeId":"n1","artifactId":"a","artifactType":"t","actions":["accept"],"timeoutMs":"soon"}`, "/payload/timeoutMs"},
		{SchemaV1, "interrupt.resolved", `{"nodeId":"n1",` + id + `,"kind":"approval","decision":"granted","principal":{"id":1}}`, "/payload/principal"},
		{SchemaV1, "run.paused", `{"agentId":5}`, "/payload/agentId"},
		{SchemaV1, "node.failed", `{"nodeId":"n1",` + failure + `},"agentId":null}`, "/payload/agentId"},
		{SchemaV1, "agent.toolCalled", `{` + called + `,"toolId":7}`, "/payload/toolId"},
		{SchemaV1, "agent.toolReturned", `{` + returned + `,` + failure + `,"error":{"x":1}}}`, "/payload/error/error"},
		{SchemaV1, "clarification.resolved", `{"nodeId":"n1","answers":{},"interruptId":5}`, "/payload/interruptId"},
		{SchemaV2, "run.resumed", `{"message":{"a":1}}`, "/payload/message"},
		{SchemaV2, "run.resumed", `{"agentId":null}`, "/payload/agentId"},
		{SchemaV2, "run.paused", `{"agentId":[]}`, "/payload/agentId"}, // closed, but readers do not mind
		{RFC0002, "agent.toolCalled", `{"agentId":"host:p","toolId":"a","callId":"c","arguments":1,"toolName":7}`, "/payload/toolName"},
		{RFC0002, "agent.toolReturned", `{"agentId":"host:p","toolId":"a","callId":"c","error":{"error":"e","message":"m","code":7,"retryable":"no"}}`, "/payload/error/code"},
		{RFC0002, "node.failed", `{"nodeId":"n1","error":{"message":"m","code":7}}`, "/payload/error/code"},
		{RFC0002, "agent.handoff", `{"from":{"agentId":"a"},"to":{"agentId":"b"},"toAgentId":5}`, "/payload/toAgentId"},
	} {
		lines := documents(c.typ, c.payload)
		if c.typ == "interrupt.resolved" {
			lines = strings.Replace(lines, "acme/run-000000000001", "r", 1) // otherwise it would be a line of version 2
		}
		events := decodeAll(t, Options{Profile: c.p}, lines)
		require.True(t, keptAs(events[0], c.key), c.payload)
		out, losses := rewritten(t, c.p, events)
		require.Equal(t, c.typ+" "+c.payload, out)
		require.Empty(t, losses, c.payload)
		for _, to := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			text, _ := encodeAll(t, to, events)
			decodeAll(t, Options{Profile: to}, text)
		}
	}

	events := decodeAll(t, Options{Profile: SchemaV1}, documents("node.suspended", `{"nodeId":"n1",`+id+`,"reason":null,"agentId":{}}`))
	require.Equal(t, agentevents.JSON(`{`+id+`,"reason":null,"agentId":{}}`), events[0].Payload.(*agentevents.NodeSuspended).Details)
	out, losses := rewritten(t, SchemaV1, events)
	require.Equal(t, `node.suspended {"nodeId":"n1",`+id+`,"reason":null,"agentId":{}}`, out)
	require.Empty(t, losses)
	out, losses = rewritten(t, SchemaV2, events)
	require.Equal(t, `node.suspended {"nodeId":"n1",`+id+`}`, out)
	require.ElementsMatch(t, []string{"altered /payload/details"}, losses)

	// A declared member must have its type.
	for p, line := range map[Profile]string{
		SchemaV1: documents("run.paused", `{"reason":5}`), SchemaV2: documents("node.suspended", `{"nodeId":"n1",`+id+`,"reason":5}`),
		RFC0002: documents("node.completed", `{"nodeId":"n1","agent":7}`),
	} {
		_, err := NewDecoder(Options{Profile: p}).Decode(nil, []byte(line))
		require.Error(t, err, line)
	}
	for _, payload := range []string{`{"agentId":5,"agentId":"abc"}`, `{"agentId":"abc","agentId":5}`, `{"agentId":5,"agentId":6}`, `{"agentId":tru}`} {
		_, err := NewDecoder(Options{Profile: SchemaV1}).Decode(nil, []byte(documents("run.paused", payload)))
		require.Error(t, err, payload)
	}

	// A member of another type is not written where the profile declares it. An
	// answer of version 2 declares reason, but the line was not one.
	out, losses = converted(t, SchemaV2, SchemaV2, documents("approval.granted", `{"gateId":"acme/int-000000000001","principal":"p","reason":1}`))
	require.NotContains(t, out, "reason")
	require.Contains(t, losses, "dropped /openwop/~1payload~1reason")
}

func keptAs(ev agentevents.Event, key string) bool {
	return dialect.Unknown(&ev, Name, key) != ""
}

// Counts have the range of the vocabulary.
func TestCountsAreRead(t *testing.T) {
	big := math.MaxInt
	for _, payload := range []agentevents.Payload{
		&agentevents.AgentReasoningDelta{Index: agentevents.Some(big)}, &agentevents.NodeStarted{TypeID: "a.b", Attempt: agentevents.Some(big)},
		&agentevents.OrchestratorDecided{Decision: `{"kind":"terminate"}`, Iteration: agentevents.Some(big)},
	} {
		ev := agentevents.Event{ID: "evt-0000000000-0001", RunID: "acme/run-000000000001", AgentID: "abc", SchemaVersion: agentevents.SchemaVersion, Payload: payload}
		ev.NodeID = "n1"
		for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			text, _ := encodeAll(t, p, []agentevents.Event{ev})
			back := decodeAll(t, Options{Profile: p, Strict: true, Folded: true}, text)
			require.Equal(t, payload, back[0].Payload)
		}
	}
	_, err := NewDecoder(Options{}).Decode(nil, []byte(documents("node.started", `{"nodeId":"n1","attempt":`+strconv.FormatUint(uint64(big)+1, 10)+`}`)))
	require.ErrorContains(t, err, "out of range")
}
