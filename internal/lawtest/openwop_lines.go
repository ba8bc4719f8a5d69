package lawtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// otherPayloads are payloads of registered types without a kind in the vocabulary.
var otherPayloads = map[openwop.Profile][][2]string{
	openwop.SchemaV1: {
		{"node.resumed", `{"nodeId":"n 1","interruptId":"i1","resumeValue":1}`},
		{"node.retried", `{"nodeId":"n1","attempt":2,"delayMs":5}`},
		{"node.cancelled", `{"nodeId":"n1","reason":"late"}`},
		{"node.dispatched", `{"childRunId":"r2","childWorkflowId":"w 2"}`},
		{"run.resuming", `{"fromStatus":"paused"}`},
		{"run.restored-from-snapshot", `{"snapshotSeq":3,"engineVersion":"1.2"}`},
		{"run.dead_lettered", `{"runId":"r1","reason":"tired","attempts":3}`},
		{"conversation.opened", `{"conversationId":"c1","openedBy":"ann"}`},
		{"conversation.opened", `{"conversationId":"c1","initialTurn":{"messageId":"m1","from":"ann","content":"x","ts":1},"openedBy":"ann"}`},
		{"conversation.exchanged", `{"conversationId":"c1","turnIndex":0,"outcome":{}}`},
		{"conversation.closed", `{"conversationId":"c1","turnCount":4}`},
		{"interrupt.resolved", `{"nodeId":"n1","interruptId":"i1","kind":"external-event","resumeValue":1}`},
		{"interrupt.requested", `{"kind":"custom","key":"k","data":{"customKind":"x"}}`},
		{"channel.written", `{"channel":"c","value":1,"reducer":"merge","writtenAt":"2026-05-19T10:00:00Z","sourceRunId":"r 2"}`},
		{"agent.invocation.started", `{"invocationId":"i","agentId":"a b","source":"run-api"}`},
		{"agent.invocation.completed", `{"invocationId":"i","agentId":"host:a","outcome":"completed","enqueuedRunId":"r2"}`},
		{"agent.memory.consolidated", `{"memoryRef":"m","inputCount":2,"outputCount":1}`},
		{"memory.written", `{"memoryRef":"m","memoryId":"i","nodeId":"n 1","agentId":"q"}`},
		{"provider.usage", `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"traceId":"t"}`},
		{"provider.usage", `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"costEstimateUsd":0.5,"currency":"EUR","cacheHit":false,"nodeId":"n 1"}`},
		{"output.chunk", `{"nodeId":"n1","chunk":"a"}`},
		{"log.appended", `{"level":"info","message":"m","fields":{}}`},
		{"replay.diverged", `{"sourceRunId":"r0","atSequence":3,"originalEventId":"e3"}`},
		{"variable.changed", `{"name":"v","next":1}`},
		{"approval.overridden", `{"gateId":"g","principal":"p","reason":"r"}`},
		{"acme.done", `{"nodeId":5}`},
	},
	openwop.SchemaV2: {
		{"node.resumed", `{"nodeId":"n1","interruptId":"acme/int-000000000001","x-a":1}`},
		{"provider.usage", `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"cacheReadTokens":1}`},
		{"provider.usage", `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"costEstimateUsd":0.5,"currency":"USD","cacheHit":true,"nodeId":"n1"}`},
		{"output.chunk", `{"nodeId":"n1","runId":"acme/run-000000000001","chunk":"a","isLast":true}`},
		{"interrupt.resolved", `{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"credential","action":"accept"}`},
		{"agent.verified", `{"agentId":"q","target":"t","verdict":"pass"}`},
		{"run.dead-lettered", `{"runId":"acme/run-000000000001","reason":"tired","attempts":3}`},
		{"conversation.opened", `{"conversationId":"c1","agentId":"host:a"}`},
		{"conversation.opened", `{"conversationId":"c1","initialTurn":{"messageId":"m1","from":"ann","content":"x","ts":1,"role":"user","turnIndex":0},"agentId":"host:a"}`},
	},
}

// OpenWOPLines returns lines of all profiles: every kind as each profile writes it, payloads
// of other types, and the lines of the file of test vectors.
func OpenWOPLines(vectors string) (lines []string, err error) {
	for _, p := range []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2} {
		enc := openwop.NewEncoder(openwop.EncoderOptions{Profile: p})
		for info := range agentevents.Kinds() {
			for _, ev := range []agentevents.Event{dialecttest.Minimal(info.Kind), dialecttest.Filled(info.Kind)} {
				switch p := ev.Payload.(type) { // the schemas have closed lists for these
				case *agentevents.OrchestratorDecided:
					p.Decision = `{"kind":"next-worker","nextWorkerIds":["agent one"]}`
				case *agentevents.CapBreached:
					p.Cap = "loop-iterations"
				}
				text, err := enc.Append(nil, ev)
				if errors.Is(err, dialect.ErrNoCounterpart) {
					continue
				} else if err != nil {
					return nil, err
				}
				lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
			}
		}
		for _, other := range otherPayloads[p] {
			head, tail := `{"eventId":"e1","runId":"r1"`, `}`
			if p == openwop.SchemaV2 {
				head, tail = `{"eventId":"evt-0000000000-0001","runId":"acme/run-000000000001"`, `,"schemaVersion":1}`
			}
			lines = append(lines, head+`,"type":"`+other[0]+`","payload":`+
				other[1]+`,"timestamp":"2026-05-19T10:00:00.000Z","sequence":1`+tail)
		}
	}
	text, err := os.ReadFile(vectors)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var v struct{ Line json.RawMessage }
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, err
		}
		lines = append(lines, string(v.Line))
	}
	return lines, nil
}

// crossNames and crossValues are put into lines: names and values of the schemas, of the
// RFC, and of neither.
var (
	crossNames = strings.Fields(`agentId nodeId runId toolId toolName arguments inputs result outcome error status
		durationMs from to fromAgentId toAgentId reason context kind key data interruptId x-a openwop-b vendor.z extra
		causationHostId /a~b answers answeredBy resumeValue decision principal title scope risk artifactId
		artifactType actions questions metadata tags owner transport engineVersion failedNodeId attempts attempt
		quorumProgress resolvedBy action writtenAt reducer resumeSchema timeoutMs refineFeedback drainPolicy
		interruptedNodeId interruptedAttempt cancelledBy parentRunId approversList requiredApprovals verbosity agent
		confidence sequence iteration workflowId message reasoning delta outputs limit observed gateId traceId typeId
		callId argsHash sourceRunId sourceEngineId schemaVersion blockId provider model inputTokens outputTokens
		totalTokens costEstimateUsd currency cacheHit cacheReadTokens cacheWriteTokens initialTurn openedBy`)
	crossValues = []string{
		`null`, `1`, `-1`, `0.5`, `9007199254`, `""`, `"x"`, `"é y"`, `{}`, `[]`, `{"a":1}`, `["accept"]`, `{"tenant":"a"}`, `true`, `"granted"`, `"approval"`,
		`"clarification"`, `"low-confidence"`, `["a","a"]`, `"acme/int-000000000001"`, `"host:a"`, `{"agentId":"q"}`, `{"code":"c","message":"m","error":{}}`,
		`{"scope":"whole"}`, `"` + strings.Repeat("k", 300) + `"`,
	}
)

// Strange returns a line with some members added, replaced or removed.
func Strange(r *rand.Rand, line string) string {
	var envelope, payload map[string]json.RawMessage
	if json.Unmarshal([]byte(line), &envelope) != nil {
		return line
	}
	put := func(object map[string]json.RawMessage) {
		object[crossNames[r.IntN(len(crossNames))]] = json.RawMessage(crossValues[r.IntN(len(crossValues))])
	}
	if json.Unmarshal(envelope["payload"], &payload) == nil && payload != nil {
		for range r.IntN(3) {
			put(payload)
		}
		if names := slices.Sorted(maps.Keys(payload)); len(names) > 0 && r.IntN(6) == 0 {
			delete(payload, names[r.IntN(len(names))])
		}
		envelope["payload"], _ = json.Marshal(payload) // never fails
	}
	if r.IntN(8) == 0 {
		put(envelope)
	}
	out, _ := json.Marshal(envelope) // never fails
	return string(out)
}
