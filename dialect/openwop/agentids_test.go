package openwop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// An agent has one id in all places of a log.
func TestAgentsHaveOneID(t *testing.T) {
	events := func(id string) (list []agentevents.Event) {
		ref := agentevents.AgentRef{AgentID: id}
		for i, p := range []agentevents.Payload{
			&agentevents.NodeStarted{TypeID: "a.b", Agent: agentevents.Some(ref)},
			&agentevents.AgentReasoned{Reasoning: "x"},
			&agentevents.AgentHandoff{From: ref, To: ref},
			&agentevents.OrchestratorDecided{Decision: agentevents.JSON(`{"kind":"next-worker","nextWorkerIds":["` + id + `"]}`)},
			&agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", From: id, To: id, Content: "1", Agent: agentevents.Some(ref)}},
			&agentevents.Unknown{Type: "memory.written", Raw: agentevents.JSON(`{"memoryRef":"m","memoryId":"i","agentId":"` + id + `"}`)},
		} {
			ev := agentevents.Event{
				ID: "evt-000000000000" + string(rune('0'+i)), RunID: "acme/run-000000000001", AgentID: id, Sequence: uint64(i),
				SchemaVersion: agentevents.SchemaVersion, Payload: p,
			}
			ev.NodeID = "n1"
			list = append(list, ev)
		}
		return list
	}
	for _, c := range []struct {
		p  Profile
		id string
	}{{SchemaV1, "q"}, {SchemaV2, "q"}, {SchemaV2, "agent one"}} {
		list := events(c.id)
		if c.p == SchemaV1 {
			list = list[:5] // the schema lets memory.written have an id of one character
		}
		text, losses := encodeAll(t, c.p, list)
		require.NotContains(t, text, `"`+c.id+`"`, c.p)
		require.Contains(t, text, `"from":"`+NormalizeID(c.p, HandoffID, c.id)+`"`)
		var pointers []string
		for _, l := range losses {
			pointers = append(pointers, l.Pointer)
		}
		require.Subset(t, pointers, []string{"/agentId", "/payload/decision", "/payload/message/from", "/payload/message/agent/agentId"})
	}
	message := events("q")[4]
	message.Payload.(*agentevents.MessageCreated).Message.To = "r"
	text, _ := encodeAll(t, SchemaV2, []agentevents.Event{message})
	require.Contains(t, text, `"to":"`+NormalizeID(SchemaV2, HandoffID, "r")+`"`, "that of another agent too")
	require.NoError(t, message.SetExtra(string(Name), `{"schemaVersion":2}`))
	text, _ = encodeAll(t, SchemaV1, []agentevents.Event{message})
	require.Contains(t, text, `"from":"`+NormalizeID(SchemaV1, HandoffID, "q")+`"`, "of a line of version 2 too")
	require.Equal(t, events("q")[4].Payload, func() agentevents.Payload {
		list := events("q")
		encodeAll(t, SchemaV2, list)
		return list[4].Payload
	}(), "the event stays as it is")
}

// Ids that the schemas allow come back unchanged.
func TestShortAgentsOfLines(t *testing.T) {
	for p, lines := range map[Profile]string{
		SchemaV2: documents("agent.reasoned", `{"agentId":"q","reasoning":""}`) + documents("orchestrator.decided", `{"agentId":"q","decision":{"kind":"next-worker","nextWorkerIds":["a b"]}}`) +
			documents("memory.written", `{"memoryRef":"m","memoryId":"i","agentId":"q"}`) +
			documents("channel.written", `{"channel":"messages","value":{"messageId":"m","from":"a b","content":1,"ts":1},"reducer":"append","writtenAt":"2026-05-19T10:00:01.000Z"}`),
		SchemaV1: documents("node.started", `{"nodeId":"n1","typeId":"a.b","agent":{"agentId":"q"}}`) +
			documents("runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":["q"]}}`) +
			documents("agent.invocation.started", `{"invocationId":"i","agentId":"q","source":"run-api"}`),
	} {
		events := decodeAll(t, Options{Profile: p}, lines)
		text, losses := encodeAll(t, p, events)
		require.Equal(t, lines, text)
		require.Empty(t, losses)
		require.Len(t, strings.Split(text, "\n"), len(events)+1)
	}
}
