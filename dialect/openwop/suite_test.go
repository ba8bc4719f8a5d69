package openwop

import (
	_ "embed"
	"errors"
	"strings"
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

//go:embed testdata/rfc0002.jsonl
var goldenRFC string

// golden holds lines of each profile, at least one for every type that the
// vocabulary has.
var golden = map[Profile]string{
	RFC0002: goldenRFC,
	SchemaV1: `{"eventId":"e2","runId":"r1","nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":0,"agent":{"agentId":"vendor.acme.support.tier1"}},"timestamp":"2026-05-19T10:00:01.000Z","sequence":1}
{"eventId":"e3","runId":"r1","type":"agent.reasoning.delta","payload":{"agentId":"host:planner","delta":"look up","sequence":0},"timestamp":"2026-05-19T10:00:02.000Z","sequence":2,"schemaVersion":2,"engineVersion":"1.2"}
{"eventId":"e4","runId":"r1","type":"agent.reasoned","payload":{"agentId":"host:planner","reasoning":"","verbosity":"off"},"timestamp":"2026-05-19T10:00:03.000Z","sequence":3}
{"eventId":"e5","runId":"r1","nodeId":"n1","type":"agent.toolCalled","payload":{"agentId":"host:planner","toolName":"orders.lookup","callId":"c1","inputs":{"id":7}},"timestamp":"2026-05-19T10:00:04.000Z","sequence":4}
{"eventId":"e6","runId":"r1","nodeId":"n1","type":"agent.toolReturned","payload":{"agentId":"host:planner","toolName":"orders.lookup","callId":"c1","outcome":null,"status":"ok","durationMs":12},"timestamp":"2026-05-19T10:00:05.000Z","sequence":5,"causationId":"e5"}
{"eventId":"e10","runId":"r1","type":"agent.handoff","payload":{"fromAgentId":"host:planner","toAgentId":"vendor.acme.support.tier1","reason":"billing"},"timestamp":"2026-05-19T10:00:09.000Z","sequence":9}
{"eventId":"e11","runId":"r1","type":"agent.decided","payload":{"agentId":"host:planner","decision":null},"timestamp":"2026-05-19T10:00:10.000Z","sequence":10}
{"eventId":"e12","runId":"r1","type":"cap.breached","payload":{"kind":"loop-iterations","limit":10,"observed":11},"timestamp":"2026-05-19T10:00:11.000Z","sequence":11}
{"eventId":"e13","runId":"r1","type":"runOrchestrator.decided","payload":{"agentId":"core.supervisor","decision":{"kind":"ask-user","prompt":"?"}},"timestamp":"2026-05-19T10:00:12.000Z","sequence":12}
{"eventId":"e14","runId":"r1","nodeId":"n1","type":"interrupt.requested","payload":{"kind":"clarification","key":"i1","data":{"questions":[{"id":"q1","question":"Which one?"}],"contextType":"x"},"timeoutMs":5},"timestamp":"2026-05-19T10:00:13.000Z","sequence":13}
{"eventId":"e15","runId":"r1","nodeId":"n1","type":"interrupt.resolved","payload":{"nodeId":"n1","interruptId":"i1","kind":"clarification","resumeValue":{"q1":"both"}},"timestamp":"2026-05-19T10:00:14.000Z","sequence":14}
{"eventId":"e17","runId":"r1","nodeId":"n1","type":"approval.requested","payload":{"nodeId":"n1","interruptId":"i2","artifactId":"a1","artifactType":"doc","title":"Publish","actions":["accept","reject"]},"timestamp":"2026-05-19T10:00:16.000Z","sequence":16}
{"eventId":"e18","runId":"r1","nodeId":"n1","type":"clarification.requested","payload":{"nodeId":"n1","questions":[{"id":"q1","question":"Which one?"}]},"timestamp":"2026-05-19T10:00:13.000Z","sequence":17}
{"eventId":"e19","runId":"r1","nodeId":"n1","type":"clarification.resolved","payload":{"nodeId":"n1","answers":{"q1":"both"}},"timestamp":"2026-05-19T10:00:14.000Z","sequence":18}
{"eventId":"e20","runId":"r1","nodeId":"n1","type":"conversation.exchanged","payload":{"conversationId":"c1","turnIndex":1,"turn":{"messageId":"m2","from":"user","content":"?","ts":1747648824000,"role":"user","turnIndex":1}},"timestamp":"2026-05-19T10:00:15.000Z","sequence":19}
{"eventId":"h2","runId":"r4","type":"agent.invocation.started","payload":{"invocationId":"inv-1","agentId":"a1","source":"run-api"},"timestamp":"2026-05-19T10:00:28.000Z","sequence":1}
`,
	SchemaV2: `{"eventId":"evt-0000000000-0001","runId":"acme/run-000000000001","nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":0},"timestamp":"2026-05-19T10:00:01.000Z","sequence":1,"schemaVersion":1}
{"eventId":"evt-0000000000-0003","runId":"acme/run-000000000001","type":"agent.reasoning-delta","payload":{"agentId":"host:planner","delta":"look up","sequence":0},"timestamp":"2026-05-19T10:00:02.000Z","sequence":2,"schemaVersion":2,"engineVersion":3}
{"eventId":"evt-0000000000-0007","runId":"acme/run-000000000001","type":"agent.tool-called","payload":{"agentId":"host:planner","toolName":"orders.lookup","callId":"c-1","inputs":{"id":7},"causationHostId":"h","x-tool-id":"orders:lookup"},"timestamp":"2026-05-19T10:00:07.000Z","sequence":7,"schemaVersion":1}
{"eventId":"evt-0000000000-0008","runId":"acme/run-000000000001","type":"agent.tool-returned","payload":{"agentId":"host:planner","toolName":"orders.lookup","callId":"c-1","outcome":1},"timestamp":"2026-05-19T10:00:08.000Z","sequence":8,"schemaVersion":1,"causationId":"evt-0000000000-0007"}
{"eventId":"evt-0000000000-0009","runId":"acme/run-000000000001","type":"agent.handoff","payload":{"fromAgentId":"host:planner","toAgentId":"host:writer"},"timestamp":"2026-05-19T10:00:09.000Z","sequence":9,"schemaVersion":1}
{"eventId":"evt-0000000000-0010","runId":"acme/run-000000000001","type":"orchestrator.decided","payload":{"agentId":"core.supervisor","decision":{"kind":"terminate","successCriteria":[{"key":"k","met":true}]}},"timestamp":"2026-05-19T10:00:10.000Z","sequence":10,"schemaVersion":1}
{"eventId":"evt-0000000000-0011","runId":"acme/run-000000000001","nodeId":"n1","type":"interrupt.requested","payload":{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q1","question":"Which one?"}]}},"timestamp":"2026-05-19T10:00:11.000Z","sequence":11,"schemaVersion":1}
{"eventId":"evt-0000000000-0012","runId":"acme/run-000000000001","nodeId":"n1","type":"interrupt.resolved","payload":{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"clarification","resumeValue":{"q1":"both"}},"timestamp":"2026-05-19T10:00:12.000Z","sequence":12,"schemaVersion":1}
{"eventId":"evt-0000000000-0013","runId":"acme/run-000000000001","nodeId":"n1","type":"interrupt.requested","payload":{"kind":"approval","key":"acme/int-000000000002","data":{"artifactId":"a1","artifactType":"doc","title":"Publish","actions":["accept"]},"timeoutMs":5},"timestamp":"2026-05-19T10:00:13.000Z","sequence":13,"schemaVersion":1}
{"eventId":"evt-0000000000-0014","runId":"acme/run-000000000001","nodeId":"n1","type":"interrupt.resolved","payload":{"nodeId":"n1","interruptId":"acme/int-000000000002","kind":"approval","reason":"fine","decision":"granted"},"timestamp":"2026-05-19T10:00:14.000Z","sequence":14,"schemaVersion":1}
{"eventId":"evt-0000000000-0015","runId":"acme/run-000000000001","type":"node.suspended","payload":{"nodeId":"n1","interruptId":"acme/int-000000000001","kind":"low-confidence","reason":"low-confidence"},"timestamp":"2026-05-19T10:00:15.000Z","sequence":15,"schemaVersion":1}
{"eventId":"evt-0000000000-0015b","runId":"acme/run-000000000001","type":"conversation.exchanged","payload":{"conversationId":"c1","turnIndex":1,"turn":{"messageId":"m2","from":"host:planner","content":"x","ts":1,"role":"agent","turnIndex":1,"speakerId":"host:planner"},"x-a":1},"timestamp":"2026-05-19T10:00:15.000Z","sequence":16,"schemaVersion":1}
{"eventId":"evt-0000000000-0016","runId":"acme/run-000000000001","type":"run.completed","payload":{"outputs":{}},"timestamp":"2026-05-19T10:00:16.000Z","sequence":17,"schemaVersion":1}
`,
}

func goldens(p Profile) (list []dialecttest.Golden) {
	for line := range strings.Lines(golden[p]) {
		_, name, _ := strings.Cut(line, `"type":"`)
		name, _, _ = strings.Cut(name, `"`)
		list = append(list, dialecttest.Golden{Name: name, Lines: strings.TrimSuffix(line, "\n")})
	}
	return list
}

func suite(p Profile) dialecttest.Dialect {
	d := dialecttest.Dialect{
		Name:    Name,
		Decoder: func() agentevents.Decoder { return NewDecoder(Options{Profile: p}) },
		Encoder: func() dialect.Encoder { return NewEncoder(EncoderOptions{Profile: p}) },
		Strict:  func() agentevents.Decoder { return NewDecoder(Options{Profile: p, Strict: true, Folded: true}) },
		Golden:  goldens(p),
		Ignore:  []string{"/openwop/schemaVersion"},
	}
	if p != RFC0002 {
		d.Maps = []string{"/payload/decision", "/payload/decision/successCriteria/*"}
		d.Adapt = func(ev *agentevents.Event) {
			switch pl := ev.Payload.(type) {
			case *agentevents.CapBreached:
				pl.Cap = "loop-iterations"
			case *agentevents.OrchestratorDecided:
				pl.Decision = `{"kind":"ask-user","prompt":"?"}`
			}
		}
	}
	return d
}

func TestSuite(t *testing.T) {
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		if testing.Short() && p != RFC0002 {
			continue
		}
		t.Run(p.String(), func(t *testing.T) { dialecttest.Run(t, suite(p)) })
	}
}

// For any event, the encoder keeps the rules of its profile.
func TestWrittenIsStrict(t *testing.T) {
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		for info := range agentevents.Kinds() {
			full := dialecttest.Filled(info.Kind)
			empty := agentevents.Event{Payload: agentevents.NewPayload(info.Kind)}
			for _, ev := range []agentevents.Event{full, empty} {
				switch pl := ev.Payload.(type) {
				case *agentevents.CapBreached:
					pl.Cap = "loop-iterations"
				case *agentevents.OrchestratorDecided:
					pl.Decision = `{"kind":"ask-user","prompt":"?"}`
				case *agentevents.ToolReturned:
					pl.OneEvent = true // so that its call is written too
				case *agentevents.ClarificationRequested:
					if pl.Questions == nil {
						pl.Questions = []agentevents.Question{{ID: "q", Question: "?"}}
					}
				}
				out, err := NewEncoder(EncoderOptions{Profile: p}).Append(nil, ev)
				if errors.Is(err, dialect.ErrNoCounterpart) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %s: %v", p, info.Kind, err)
					continue
				}
				d := NewDecoder(Options{Strict: true, Profile: p, Folded: true})
				for line := range strings.Lines(string(out)) {
					if _, err := d.Decode(nil, []byte(strings.TrimSuffix(line, "\n"))); err != nil {
						t.Errorf("%s: %v\n%s", p, err, line)
					}
				}
			}
		}
	}
}
