package lawtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		{"output.chunk", `{"nodeId":"n1","runId":"acme/run-000000000001","chunk":"a","isLast":true}`},
		{"interrupt.resolved", `{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"credential","action":"accept"}`},
		{"agent.verified", `{"agentId":"q","target":"t","verdict":"pass"}`},
		{"run.dead-lettered", `{"runId":"acme/run-000000000001","reason":"tired","attempts":3}`},
		{"conversation.opened", `{"conversationId":"c1","agentId":"host:a"}`},
	},
}

// crossLines returns the initial lines: every kind as each profile writes it, payloads of
// other types, and the test vectors.
func crossLines(t *testing.T) (lines []string) {
	t.Helper()
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
				if !errors.Is(err, dialect.ErrNoCounterpart) {
					require.NoError(t, err)
					lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
				}
			}
		}
		for _, other := range otherPayloads[p] {
			head, tail := `{"eventId":"e1","runId":"r1"`, `}`
			if p == openwop.SchemaV2 {
				head, tail = `{"eventId":"evt-0000000000-0001","runId":"acme/run-000000000001"`, `,"schemaVersion":1}`
			}
			lines = append(lines, head+`,"type":"`+other[0]+`","payload":`+other[1]+`,"timestamp":"2026-05-19T10:00:00.000Z","sequence":1`+tail)
		}
	}
	file, err := os.Open(filepath.Join("..", "..", "shared", "vectors", "openwop.jsonl"))
	if err != nil {
		return lines // the vectors are not part of the project
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v struct{ Event json.RawMessage }
		require.NoError(t, json.Unmarshal(s.Bytes(), &v))
		var b bytes.Buffer
		require.NoError(t, json.Compact(&b, v.Event))
		lines = append(lines, b.String())
	}
	require.NoError(t, s.Err())
	return lines
}

// crossNames and crossValues are put into lines: names and values of the schemas, of the
// RFC, and of neither.
var (
	crossNames = strings.Fields(`agentId nodeId runId toolId toolName arguments inputs result outcome error status durationMs from to fromAgentId toAgentId
		reason context kind key data interruptId x-a openwop-b vendor.z extra causationHostId /a~b answers answeredBy resumeValue decision principal
		title scope risk artifactId artifactType actions questions metadata tags owner transport engineVersion failedNodeId attempts attempt
		quorumProgress resolvedBy action writtenAt reducer resumeSchema timeoutMs refineFeedback drainPolicy interruptedNodeId interruptedAttempt
		cancelledBy parentRunId approversList requiredApprovals verbosity agent confidence sequence iteration workflowId message reasoning delta
		outputs limit observed gateId traceId typeId callId argsHash sourceRunId sourceEngineId schemaVersion blockId`)
	crossValues = []string{
		`null`, `1`, `-1`, `0.5`, `9007199254`, `""`, `"x"`, `"é y"`, `{}`, `[]`, `{"a":1}`, `["accept"]`, `{"tenant":"a"}`, `true`, `"granted"`, `"approval"`,
		`"clarification"`, `"low-confidence"`, `["a","a"]`, `"acme/int-000000000001"`, `"host:a"`, `{"agentId":"q"}`, `{"code":"c","message":"m","error":{}}`,
		`{"scope":"whole"}`, `"` + strings.Repeat("k", 300) + `"`,
	}
)

// strange returns a line with some members added, replaced or removed.
func strange(r *rand.Rand, line string) string {
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
		if names := keys(payload); len(names) > 0 && r.IntN(6) == 0 {
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

// beyondSchemas are the rules of a strict decoder that no schema has.
var beyondSchemas = []agentevents.Rule{
	openwop.RuleCausation, openwop.RuleResult, openwop.RuleDuration, openwop.RuleNode, openwop.RuleType, openwop.RuleEscalate,
}

// Every line that a schema describes can be read, and keeps the rules of a strict decoder but
// those that no schema has. A strict decoder refuses payloads of types without a kind that
// break their schema. Every event that is read under one
// profile and written under another keeps the published schema of the other, and can be
// read again. Of the data of an interrupt that the vocabulary does not have only the type is
// checked, so there the result keeps the schema only if the line that was read does.
func TestOpenWOPProfilesKeepThePublishedSchemasOfEachOther(t *testing.T) {
	schemas := map[openwop.Profile]*published{openwop.SchemaV1: loadPublished(t, "v1"), openwop.SchemaV2: loadPublished(t, "v2")}
	profiles := []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2}
	lines := crossLines(t)
	r := rand.New(rand.NewPCG(1, 2))
	written, others, valid, refused := 0, 0, 0, 0
	otherTypes := map[string]bool{}
	for _, list := range otherPayloads {
		for _, other := range list {
			otherTypes[other[0]] = true
		}
	}
	for i := range 40 * len(lines) {
		line := lines[i%len(lines)]
		if i >= len(lines) {
			line = strange(r, line)
		}
		for _, from := range profiles {
			verbatim := i%2 == 0 // the event has its line, which another profile may not take as it is
			read := agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: openwop.NewDecoder(openwop.Options{Profile: from}), Verbatim: verbatim})
			next, stop := iter.Pull2(read.All())
			ev, err, _ := next()
			stop()
			described := false
			if s := schemas[from]; s != nil {
				typ, checked, broken := s.check(line)
				described = checked && broken == nil
				_, strict := openwop.NewDecoder(openwop.Options{Profile: from, Strict: true, Folded: true}).Decode(nil, []byte(line))
				var rule *agentevents.RuleError
				if described && errors.As(strict, &rule) {
					require.Contains(t, beyondSchemas, rule.Rule, "%s\n%s\n%v", from, line, strict)
				}
				if otherTypes[typ] && checked && broken != nil && !(typ == "interrupt.requested" && strings.Contains(broken.Error(), "- at '/data'")) {
					require.Error(t, strict, "%s\n%s\n%v", from, line, broken)
					refused++
				}
			}
			if described {
				require.NoError(t, err, "%s\n%s", from, line)
				valid++
			}
			if err != nil {
				continue
			}
			_, other := ev.Payload.(*agentevents.Unknown)
			interrupt := ev.Kind() == "interrupt.requested"
			for _, to := range profiles {
				out, err := openwop.NewEncoder(openwop.EncoderOptions{Profile: to}).Append(nil, ev)
				if err != nil {
					require.False(t, described && from == to && !other, "%s\n%s\n%v", to, line, err)
					continue
				}
				_, err = openwop.NewDecoder(openwop.Options{Profile: to}).Decode(nil, bytes.TrimSuffix(out, []byte("\n")))
				require.NoError(t, err, "%s to %s\n%s\n%s", from, to, line, out)
				if to == openwop.RFC0002 || !described && (from == to || other && interrupt) {
					continue // no schema applies, or the line itself did not keep one
				}
				_, _, err = schemas[to].check(string(out))
				require.NoError(t, err, "%s to %s\n%s\n%s", from, to, line, out)
				written++
				if other {
					others++
				}
			}
		}
	}
	require.Greater(t, written, 10*len(lines))
	require.Greater(t, others, len(lines))
	require.Greater(t, valid, 5*len(lines))
	require.Greater(t, refused, len(lines)/2)
}

func keys(object map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(object))
}
