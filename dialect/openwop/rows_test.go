package openwop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/effort"
)

// The requirements of the document that a log keeps or breaks as a whole. Each breaks, or
// does not, in its last line.
func TestRequirementsOfLogs(t *testing.T) {
	const (
		run       = `{"type":"run.started","payload":{"workflowId":"wf"}}`
		done      = `{"type":"run.completed","payload":{"outputs":{}}}`
		started   = `{"nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.llm"}}`
		second    = `{"nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.llm","attempt":1}}`
		completed = `{"nodeId":"n1","type":"node.completed","payload":{"nodeId":"n1"}}`
		failed    = `{"nodeId":"n1","type":"node.failed","payload":{"nodeId":"n1","error":{"error":"x","message":"y"}}}`
		skipped   = `{"nodeId":"n1","type":"node.skipped","payload":{"nodeId":"n1"}}`
		retried   = `{"nodeId":"n1","type":"node.retried","payload":{"nodeId":"n1","attempt":2}}`
		waits     = `{"nodeId":"n1","type":"node.suspended","payload":{"nodeId":"n1","interruptId":"i1","reason":"webhook"}}`
		restored  = `{"type":"run.restored-from-snapshot","payload":{}}`
		resumed   = `{"type":"run.resumed","payload":{}}`
		reasoned  = `{"nodeId":"n1","type":"agent.reasoned","payload":{"agentId":"host:a","reasoning":"x"}}`
		low       = `{"nodeId":"n1","type":"agent.decided","payload":{"agentId":"host:a","decision":1,"confidence":0.1}}`
		clarify   = `{"nodeId":"n1","type":"clarification.requested","payload":{"nodeId":"n1","questions":[{"id":"q","question":"?"}]}}`
		silent    = `{"nodeId":"n1","type":"cap.breached","payload":{"kind":"confidence-escalation-suppressed","limit":0.7,"observed":0.1}}`
		suspended = `{"nodeId":"n1","type":"node.suspended","payload":{"nodeId":"n1","interruptId":"i1","reason":"low-confidence"}}`
		closed    = `{"type":"conversation.closed","payload":{"conversationId":"c1","turnCount":1}}`
	)
	n2 := func(line string) string { return strings.ReplaceAll(line, `"n1"`, `"n2"`) }
	delta := func(agent, block string, n int) string {
		return fmt.Sprintf(`{"type":"agent.reasoning.delta","payload":{"agentId":"%s","delta":"x","sequence":%d%s}}`, agent, n, block)
	}
	closes := func(agent, block string) string {
		return `{"type":"agent.reasoned","payload":{"agentId":"` + agent + `","reasoning":"x"` + block + `}}`
	}
	const b1 = `,"blockId":"b1"`
	called := func(call string) string {
		return `{"type":"agent.toolCalled","payload":{"agentId":"host:a","toolId":"x:y","callId":"` + call + `","arguments":1}}`
	}
	returned := func(call, tool, cause string) string {
		return `{"type":"agent.toolReturned","causationId":"evt-000000000-000` + cause + `","payload":{"agentId":"host:a","toolId":"` + tool + `","callId":"` + call + `","result":1}}`
	}
	refusedAtLoad := `{"type":"agent.toolReturned","payload":{"agentId":"host:a","toolId":"x:y","callId":"c","status":"forbidden"}}`
	ask := func(boss, cause string) string {
		return `{"nodeId":"boss","causationId":"` + cause + `","type":"runOrchestrator.decided","payload":{"agentId":"` + boss + `","decision":{"kind":"ask-user","prompt":"?"}}}`
	}
	message := func(group string) string {
		return `{"type":"channel.written","payload":{"channel":"messages","reducer":"applyMessage","value":{"messageId":"m1","from":"host:a","content":"x","ts":1` + group + `}}}`
	}
	names := func(typ string) string {
		return `{"nodeId":"n1","type":"` + typ + `","payload":{"nodeId":"n1","agent":{"agentId":"host:a","agentSharing":"shared:team"}}}`
	}
	handoff := `{"type":"agent.handoff","payload":{"from":{"agentId":"host:b"},"to":{"agentId":"host:a","agentSharing":"shared:team"}}}`
	for _, c := range []struct {
		requirement string
		rule        agentevents.Rule // "" if it is kept
		lines       []string
	}{
		{"the deltas of a block count 0, 1, 2", "", []string{delta("host:a", "", 0), delta("host:a", "", 1), delta("host:a", "", 2)}},
		{"the deltas of a block leave no gap", agentevents.RuleDeltaIndex, []string{delta("host:a", "", 0), delta("host:a", "", 2)}},
		{"the first delta of a block is 0", agentevents.RuleDeltaIndex, []string{delta("host:a", "", 1)}},
		{"the next block counts from 0 again", "", []string{delta("host:a", "", 0), closes("host:a", ""), delta("host:a", "", 0)}},
		{"the agent of a block closes it", "", []string{delta("host:a", b1, 0), delta("host:b", b1, 0), closes("host:b", b1), closes("host:a", b1)}},
		{"no other agent closes a block", RuleBlock, []string{delta("host:a", b1, 0), closes("host:b", b1)}},
		{"a block that is closed is nobody's", "", []string{delta("host:a", b1, 0), delta("host:a", b1, 1), closes("host:a", b1), closes("host:b", b1)}},
		{"an agent may reason while another one does", "", []string{delta("host:a", "", 0), closes("host:b", ""), closes("host:a", "")}},

		{"a return has a call", agentevents.RuleToolCallOpen, []string{returned("c", "x:y", "0")}},
		{"a call returns once", agentevents.RuleToolCallOpen, []string{called("c"), returned("c", "x:y", "0"), returned("c", "x:y", "0")}},
		{"a call id is not used while its call is open", agentevents.RuleToolCallOpen, []string{called("c"), called("c")}},
		{"a call id may be used after its return", "", []string{called("c"), returned("c", "x:y", "0"), called("c"), returned("c", "x:y", "2")}},
		{"a return is of the tool of its call", RuleTool, []string{called("c"), returned("c", "x:z", "0")}},
		{"a return is of its own call", "", []string{called("c"), called("d"), returned("d", "x:y", "1")}},
		{"a refused call names its call, too", RuleCausation, []string{called("c"), refusedAtLoad}},
		{"a return names the event of its call", RuleCausation, []string{called("c"), called("d"), returned("c", "x:y", "1")}},
		{"a call that is refused at load has only a return", "", []string{refusedAtLoad}},

		{"a run has one orchestrator", "", []string{ask("sup", "e"), ask("sup", "e")}},
		{"another orchestrator does not decide", RuleOrchestrator, []string{ask("sup", "e"), ask("other", "e")}},

		{"one action follows a low decision", "", []string{low, clarify, completed}},
		{"a suspension belongs to its action", "", []string{low, clarify, suspended, completed}},
		{"a second action does not follow: suppressed", RuleEscalate, []string{low, clarify, silent}},
		{"a second action does not follow: asked", RuleEscalate, []string{low, clarify, ask("sup", "e")}},
		{"a second action does not follow later: suppressed", RuleEscalate, []string{low, clarify, reasoned, silent}},
		{"a second action does not follow later: by its cause", RuleEscalate, []string{low, clarify, reasoned, ask("sup", "evt-000000000-0000")}},
		{"a question later is another one", "", []string{low, clarify, reasoned, clarify}},
		{"a question of another node is another one", "", []string{low, clarify, n2(clarify)}},
		{"another node is suppressed apart", "", []string{low, clarify, reasoned, n2(silent)}},
		{"two low decisions have two actions", "", []string{low, low, clarify, clarify}},
		{"three actions are too many for two decisions", RuleEscalate, []string{low, low, clarify, clarify, clarify}},

		{"an agent reasons in its node", "", []string{run, started, reasoned, completed, done}},
		{"an agent does not reason before its node starts", RuleNode, []string{run, reasoned, started}},
		{"an agent does not reason after its node", RuleNode, []string{run, started, completed, reasoned}},
		{"a node that completes has started", RuleNode, []string{run, completed}},
		{"a node completes once", RuleNode, []string{run, started, completed, completed}},
		{"a node starts once", RuleNode, []string{run, started, started}},
		{"a node starts again with a further attempt", "", []string{run, started, second, completed}},
		{"a node starts again after a failure", "", []string{run, started, failed, started, completed}},
		{"a node starts again when it is tried again", "", []string{run, started, retried, started}},
		{"a node starts again after it has waited", "", []string{run, started, waits, started, completed}},
		{"a node starts again in a loop", "", []string{run, started, completed, started, reasoned, completed}},
		{"a skipped node has not started", "", []string{run, skipped, done}},
		{"a part of a log does not have the nodes before it", "", []string{reasoned, completed}},
		{"a restored run does not have the nodes before it", "", []string{run, started, restored, started, completed}},
		{"a resumed run does not have the nodes before it", "", []string{run, started, resumed, started, completed}},
		{"an agent may reason in a node that a resumed run goes on with", "", []string{run, started, completed, resumed, reasoned}},
		{"a node without an id is not followed", "", []string{run, closes("host:a", ""), `{"type":"node.started","payload":{}}`}},
		{"a part of a log does not have the start of its node", "", []string{started, started}},
		{"payload and envelope name one node", RuleNode, []string{`{"nodeId":"n1","type":"node.skipped","payload":{"nodeId":"n2"}}`}},

		{"a shared context by node.started needs a group", agentevents.RuleMessageGroup, []string{names("node.started"), message("")}},
		{"a shared context by node.completed needs a group", agentevents.RuleMessageGroup, []string{names("node.completed"), message("")}},
		{"a shared context by a handoff needs a group", agentevents.RuleMessageGroup, []string{handoff, message("")}},
		{"a message with its group", "", []string{names("node.started"), message(`,"groupId":"team"`)}},

		{"nothing follows the end of the run", RuleTerminal, []string{run, done, run}},
		{"no message follows the end of the conversation", RuleTerminal, []string{closed, `{"type":"conversation.exchanged","payload":{"conversationId":"c1","turnIndex":2}}`}},
		{"others may name a conversation that has ended", "", []string{closed, `{"type":"acme.noted","payload":{"conversationId":"c1"}}`}},
		{"another conversation goes on", "", []string{closed, `{"type":"conversation.exchanged","payload":{"conversationId":"c2","turnIndex":2}}`}},
	} {
		t.Run(c.requirement, func(t *testing.T) {
			rule, _ := strictly(t, RFC0002, c.lines...)
			require.Equal(t, c.rule, rule)
		})
	}
}

// TestLetter has logs that the RFC's text excludes, and that only Options.Letter refuses.
func TestLetter(t *testing.T) {
	const (
		run       = `{"type":"run.started","payload":{"workflowId":"wf"}}`
		done      = `{"type":"run.completed","payload":{"outputs":{}}}`
		started   = `{"nodeId":"n1","type":"node.started","payload":{"nodeId":"n1","typeId":"core.llm"}}`
		completed = `{"nodeId":"n1","type":"node.completed","payload":{"nodeId":"n1"}}`
	)
	inNode := func(line string) string { return `{"nodeId":"n1",` + line[1:] }
	delta := func(agent string) string {
		return `{"type":"agent.reasoning.delta","payload":{"agentId":"` + agent + `","delta":"x","sequence":0}}`
	}
	closes := func(agent string) string {
		return `{"type":"agent.reasoned","payload":{"agentId":"` + agent + `","reasoning":"x"}}`
	}
	called := func(tool string) string {
		return `{"type":"agent.toolCalled","payload":{"agentId":"host:a","toolId":"` + tool + `","callId":"c","arguments":1}}`
	}
	handoff := func(to string) string {
		return `{"type":"agent.handoff","payload":{"from":{"agentId":"host:a"},"to":{"agentId":"` + to + `"}}}`
	}
	for _, c := range []struct {
		requirement string
		rule        agentevents.Rule
		lines       []string
	}{
		{"a node does not complete with a block that another agent seems to have closed", RuleBlock, []string{run, started, inNode(delta("host:a")), inNode(closes("host:b")), completed}},
		{"nor does a run", RuleBlock, []string{run, delta("host:a"), closes("host:b"), done}},
		{"it may, if the agent closes it", "", []string{run, started, inNode(delta("host:a")), inNode(closes("host:b")), inNode(closes("host:a")), completed, done}},
		{"it may with a block that nobody closes", "", []string{run, started, inNode(delta("host:a")), completed, done}},
		{"it may with an agent of another node", "", []string{run, started, inNode(delta("host:a")), closes("host:b"), completed, done}},
		{"a tool has a scope", RuleID, []string{called("Read")}},
		{"a scope is not empty", RuleID, []string{called(":Read")}},
		{"a tool has an id in its scope", RuleID, []string{called("fs:")}},
		{"an id may have a colon", "", []string{called("fs:read:fast")}},
		{"a handoff is within a node", RuleNode, []string{handoff("host:b")}},
		{"a handoff is to another agent", RuleForm, []string{inNode(handoff("host:a"))}},
		{"a handoff in a node", "", []string{inNode(handoff("host:b"))}},
	} {
		t.Run(c.requirement, func(t *testing.T) {
			rule, _ := strictly(t, RFC0002, c.lines...)
			require.Empty(t, rule, "the schemas allow it")
			rule, _ = judged(t, Options{Strict: true, Letter: true}, c.lines...)
			require.Equal(t, c.rule, rule)
		})
	}
}

// A line that is delivered again changes nothing, in whatever order its members are. A line
// that was refused is not accepted when it comes again.
func TestDeliveredAgain(t *testing.T) {
	line := func(n int, typ, payload string) string {
		return fmt.Sprintf(`{"eventId":"e%d","runId":"r","type":"%s","payload":%s,"timestamp":"2026-05-19T10:00:00.000Z","sequence":%d}`, n, typ, payload, n)
	}
	lines := []string{
		line(0, "run.started", `{"workflowId":"wf"}`), line(1, "agent.toolCalled", `{"agentId":"host:a","toolId":"x:y","callId":"c","arguments":1}`),
		strings.Replace(line(2, "agent.toolReturned", `{"agentId":"host:a","toolId":"x:y","callId":"c","result":1}`), `,"seq`, `,"causationId":"e1","seq`, 1),
		line(3, "acme.done", `{"a":1}`), line(4, "run.completed", `{}`),
	}
	d := NewDecoder(Options{Strict: true})
	for i := range lines {
		for j := range i + 1 { // all lines so far come again
			events, err := d.Decode(nil, []byte(lines[j]))
			require.NoError(t, err, lines[j])
			require.Len(t, events, 1)
		}
	}
	head, tail, _ := strings.Cut(lines[0][1:len(lines[0])-1], `,"timestamp"`)
	_, err := d.Decode(nil, []byte(`{"timestamp"`+tail+","+head+"}"))
	require.NoError(t, err)

	for _, other := range []string{
		strings.Replace(lines[1], `"callId":"c"`, `"callId":"d"`, 1), strings.Replace(lines[1], `"eventId":"e1"`, `"eventId":"e9"`, 1), strings.Replace(lines[3], `{"a":1}`, `{"a":2}`, 1),
	} {
		_, err := d.Decode(nil, []byte(other))
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, RuleSequence, broken.Rule)
	}

	d = NewDecoder(Options{Strict: true})
	stray := strings.Replace(lines[2], `"callId":"c"`, `"callId":"d"`, 1)
	for i, want := range []agentevents.Rule{"", "", agentevents.RuleToolCallOpen, RuleSequence, "", "", RuleTerminal, RuleTerminal} {
		again := []string{lines[0], lines[1], stray, stray, lines[3], lines[4], line(5, "run.paused", `{}`), line(5, "run.paused", `{}`)}
		_, err := d.Decode(nil, []byte(again[i]))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, want, broken.Rule)
		require.Contains(t, again[i], fmt.Sprintf(`"sequence":%d}`, broken.Sequence))
	}
}

// The error of a tool is an ErrorEnvelope in the RFC's text, and has a code under the
// schemas. Readers take both, and a line of the RFC keeps the name that it has.
func TestErrorsOfTools(t *testing.T) {
	envelope := documents("agent.toolReturned", `{"agentId":"host:a","toolId":"x:y","callId":"c","error":{"error":"timeout","message":"slow","details":{"after":5}}}`)
	envelope = strings.Replace(envelope, `,"schemaVersion":2`, `,"causationId":"evt-0000000000009"`, 1)
	code := strings.Replace(envelope, `{"error":"timeout"`, `{"code":"timeout"`, 1)
	for _, line := range []string{envelope, code} {
		ev := decodeAll(t, Options{Strict: true, Folded: true}, line)[0]
		require.Equal(t, "timeout", ev.Payload.(*agentevents.ToolReturned).Error.V.Code)
		out, losses := encodeAll(t, RFC0002, []agentevents.Event{ev})
		require.Equal(t, line, out)
		require.Empty(t, losses)
		out, _ = encodeAll(t, SchemaV1, []agentevents.Event{ev})
		require.Contains(t, out, `"error":{"code":"timeout","message":"slow","details":{"after":5}}`)
	}
	schema := strings.Replace(code, "toolId", "toolName", 1)
	out, losses := encodeAll(t, RFC0002, decodeAll(t, Options{Strict: true, Folded: true, Profile: SchemaV1}, schema))
	require.Equal(t, envelope, out, "a line of the schema becomes one of the RFC")
	require.Empty(t, losses)

	neither := strings.Replace(code, `"code":"timeout",`, "", 1)
	_, err := NewDecoder(Options{Strict: true, Folded: true}).Decode(nil, []byte(strings.TrimSuffix(neither, "\n")))
	var broken *agentevents.RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, [2]string{string(RuleRequired), "/payload/error/error"}, [2]string{string(broken.Rule), broken.Pointer})
}

// The turns of a conversation are messages: a fold has them, once each. A turn without an
// id, or with a member of another type, is an event of an unknown kind.
func TestTurnsAreMessages(t *testing.T) {
	turn := func(id, content string) string {
		return `{"conversationId":"c1","turnIndex":1,"turn":{"messageId":` + id + `,"from":"user","content":` + content + `,"ts":1,"role":"user","turnIndex":1}}`
	}
	log := documents("conversation.exchanged", turn(`"m1"`, `"a"`), "conversation.exchanged", turn(`"m1"`, `"a"`), "conversation.exchanged", turn(`"m2"`, `"b"`),
		"conversation.exchanged", turn(`5`, `"b"`), "conversation.exchanged", strings.Replace(turn(`"m3"`, `1`), `"ts":1`, `"ts":"now"`, 1), "conversation.exchanged", `{"conversationId":"c1","turnIndex":1}`)
	f := agentevents.NewFold(agentevents.FoldOptions{})
	events := decodeAll(t, Options{}, log)
	for _, ev := range events {
		f.Apply(ev)
	}
	s := f.Snapshot()
	require.Empty(t, s.Violations)
	require.Len(t, s.Messages, 2)
	require.Equal(t, "user", s.Messages[1].Role)
	require.Equal(t, map[string]int{"conversation.exchanged": 3}, s.Unknown)
	for _, p := range []Profile{RFC0002, SchemaV1} {
		out, losses := encodeAll(t, p, events)
		require.Equal(t, log, out)
		require.Empty(t, losses)
	}
	const role = `"role":"user"`
	good := `{"conversationId":"c","turnIndex":1,"turn":{"messageId":"m","from":"a","content":1,"ts":1,"turnIndex":1,` + role + `}}`
	for edit, want := range map[[2]string]agentevents.Rule{
		{"", ""}:                      "",
		{`"conversationId":"c",`, ""}: RuleRequired,
		{`"conversationId":"c"`, `"conversationId":""`}: RuleID,
		{`:1,"turn":`, `:-1,"turn":`}:                   RuleRange,
		{`"turn":`, `"turns":0,"turn":`}:                RuleClosed,
		{role, `"role":"agent"`}:                        RuleRequired,
		{role, `"role":"agent","speakerId":"a"`}:        "",
		{`"content":1,`, ""}:                            RuleRequired,
		{role, role + `,"x":1`}:                         RuleClosed,
	} {
		rule, _ := strictly(t, SchemaV2, `{"type":"conversation.exchanged","payload":`+strings.Replace(good, edit[0], edit[1], 1)+`}`)
		require.Equal(t, want, rule, edit)
	}
}

// A strict decoder knows the payloads of registered types that the vocabulary does not have,
// and a message without an id.
func TestStrictPayloadsOfOtherTypes(t *testing.T) {
	for _, c := range []struct {
		p             Profile
		typ, payload  string
		rule, pointer string
	}{
		{SchemaV1, "agent.invocation.started", `{"invocationId":"i","agentId":"a1","source":"run-api"}`, "", ""},
		{SchemaV1, "agent.invocation.started", `{"invocationId":"i","agentId":"a1","source":"cron"}`, "openwop-enum", "/payload/source"},
		{SchemaV1, "agent.invocation.started", `{"invocationId":"i","agentId":"a1"}`, "openwop-required", "/payload/source"},
		{SchemaV2, "agent.invocation-completed", `{"invocationId":"i","agentId":"a 1","outcome":"failed"}`, "openwop-id", "/payload/agentId"},
		{SchemaV2, "agent.invocation-completed", `{"invocationId":"i","agentId":"a1","outcome":"failed","note":"x"}`, "openwop-closed", "/payload/note"},
		{SchemaV2, "agent.invocation-completed", `{"invocationId":"i","agentId":"a1","outcome":"failed","x-note":"x","openwop-a":1,"vendor.a":1}`, "", ""},
		{SchemaV1, "agent.promptResolved", `{"nodeId":"n1","kind":"system","chain":[],"resolved":null,"body":"x"}`, "openwop-closed", "/payload/body"},
		{SchemaV1, "provider.usage", `{"provider":"p","model":"m","inputTokens":-1,"outputTokens":2}`, "openwop-range", "/payload/inputTokens"},
		{SchemaV1, "memory.written", `{"memoryRef":"","memoryId":"i"}`, "openwop-range", "/payload/memoryRef"},
		{SchemaV1, "memory.written", `[]`, "openwop-form", "/payload"},
		{SchemaV1, "acme.memory.written", `{"memoryRef":1}`, "", ""},
		{RFC0002, "memory.written", `{"memoryRef":1}`, "", ""},
		{RFC0002, "channel.written", `{"channel":"messages","reducer":"applyMessage","value":{"from":"user","content":"x","ts":1}}`, "openwop-required", "/payload/value/messageId"},
		{RFC0002, "channel.written", `{"channel":"messages","value":{"messageId":5,"from":"user","content":"x","ts":1}}`, "openwop-required", "/payload/value/messageId"},
		{RFC0002, "channel.written", `{"channel":"messages","reducer":"counter","value":1}`, "", ""},
		{RFC0002, "channel.written", `{"channel":"votes","value":1}`, "", ""},
		{RFC0002, "acme.written", `{"channel":"messages","value":1}`, "", ""},
	} {
		rule, pointer := strictly(t, c.p, `{"type":"`+c.typ+`","payload":`+c.payload+`}`)
		require.Equal(t, c.rule, string(rule), c.payload)
		require.Equal(t, c.pointer, pointer, c.payload)
	}
}

// Times may have small letters, as RFC 3339 has it.
func TestTimesInSmallLetters(t *testing.T) {
	line := documents("run.paused", `{}`)
	small := strings.Replace(line, "2026-05-19T10:00:01.000Z", "2026-05-19t10:00:01.000z", 1)
	require.Equal(t, decodeAll(t, Options{Strict: true}, line), decodeAll(t, Options{Strict: true}, small))
	_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(strings.Replace(strings.TrimSuffix(line, "\n"), "2026-05-19T10", "2026-05-19z10", 1)))
	require.ErrorContains(t, err, "time")
}

// A fold has the agent that a node delegated to, with its reference, even if that agent has emitted
// nothing, and the nodes in which the agents of the log work.
func TestAgentsOfNodes(t *testing.T) {
	log := documents("node.started", `{"nodeId":"n1","agent":{"agentId":"host:a","agentSharing":"shared:team","modelClass":"reasoning"}}`,
		"agent.handoff", `{"from":{"agentId":"host:a"},"to":{"agentId":"host:b","modelClass":"writing"}}`, "agent.decided", `{"agentId":"host:b","decision":1}`,
		"node.completed", `{"nodeId":"n1","agent":{"agentId":"host:a"}}`)
	for _, p := range []Profile{RFC0002, SchemaV1} {
		f := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range decodeAll(t, Options{Profile: p}, log) {
			f.Apply(ev)
		}
		s := f.Snapshot()
		a := agentevents.AgentRef{AgentID: "host:a", AgentSharing: "shared:team", ModelClass: agentevents.ModelReasoning}
		require.Equal(t, map[string]agentevents.AgentRef{"n1": a}, s.Facts.V.NodeAgents)
		require.Equal(t, agentevents.Some(a), s.Agents["host:a"].Ref)
		require.Equal(t, agentevents.Some(agentevents.AgentRef{AgentID: "host:b", ModelClass: agentevents.ModelWriting}), s.Agents["host:b"].Ref)
		require.Equal(t, "n1", s.Agents["host:b"].NodeID)
		require.Equal(t, 1, s.Agents["host:b"].Decisions)
	}
}

// A run that fails names the node that failed, which may have no end of its own.
func TestFailedNodes(t *testing.T) {
	log := documents("node.started", `{"nodeId":"n1","typeId":"core.llm"}`, "run.failed", `{"error":{"code":"c","message":"m"},"failedNodeId":"n1"}`)
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		events := decodeAll(t, Options{Profile: p}, log)
		f := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range events {
			f.Apply(ev)
		}
		s := f.Snapshot()
		require.Equal(t, agentevents.NodeStatusFailed, s.NodeStatus["n1"])
		require.Equal(t, agentevents.JSON(`{"error":"m"}`), s.Outputs["n1"])
		out, losses := encodeAll(t, p, events)
		require.Equal(t, log, out)
		require.Empty(t, losses)
	}
	out, losses := converted(t, SchemaV1, SchemaV2, documents("run.failed", `{"error":{"code":"c","message":"m"},"failedNodeId":"step one"}`))
	require.Contains(t, out, `"failedNodeId":"`+NormalizeID(SchemaV2, NodeID, "step one")+`"`)
	require.Contains(t, losses, "altered /payload/failedNodeId")
	rule, pointer := strictly(t, SchemaV2, `{"type":"run.failed","payload":{"error":{"code":"c","message":"m"},"failedNodeId":"step one"}}`)
	require.Equal(t, [2]string{string(RuleID), "/payload/failedNodeId"}, [2]string{string(rule), pointer})
}

// The first turn of a conversation is a message, too, and counts once if the conversation
// exchanges it again. Its line keeps its type and its other members.
func TestInitialTurns(t *testing.T) {
	turn := func(id, content string) string {
		return `{"messageId":"` + id + `","from":"ann","content":"` + content + `","ts":1,"role":"user","turnIndex":0}`
	}
	opening := func(turn string) string {
		return `{"conversationId":"c1","initialTurn":` + turn + `,"openedBy":"ann","agentId":"host:a"}`
	}
	log := documents("conversation.opened", opening(turn("m1", "hello")), "conversation.exchanged", `{"conversationId":"c1","turnIndex":0,"turn":`+turn("m1", "hello")+`}`,
		"conversation.exchanged", `{"conversationId":"c1","turnIndex":1,"turn":`+turn("m2", "and?")+`}`)
	for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
		f := agentevents.NewFold(agentevents.FoldOptions{})
		events := decodeAll(t, Options{Profile: p}, log)
		for _, ev := range events {
			f.Apply(ev)
		}
		s := f.Snapshot()
		require.Empty(t, s.Violations)
		require.Len(t, s.Messages, 2)
		require.Equal(t, agentevents.JSON(`"hello"`), s.Messages[0].Content)
		require.Equal(t, "host:a", events[0].AgentID)
		for _, to := range []Profile{p, RFC0002} {
			out, losses := encodeAll(t, to, events)
			if to == p {
				require.Equal(t, strings.Replace(log, `,"openedBy":"ann","agentId":"host:a"`, `,"agentId":"host:a","openedBy":"ann"`, 1), out)
				require.Empty(t, losses)
			}
			require.Len(t, strings.Split(out, `"conversation.opened"`), 2)
		}
	}
	for _, first := range []string{`{"from":"ann"}`, `5`, strings.Replace(turn("m", "x"), `"ts":1`, `"ts":"now"`, 1)} {
		require.IsType(t, &agentevents.Unknown{}, decodeAll(t, Options{}, documents("conversation.opened", opening(first)))[0].Payload, first)
	}

	bare := `{"conversationId":"c1"}`
	require.IsType(t, &agentevents.Unknown{}, decodeAll(t, Options{}, documents("conversation.opened", bare))[0].Payload)
	for edit, want := range map[[2]string]agentevents.Rule{
		{"", ""}:                   "",
		{`"c1"`, `""`}:             RuleID,
		{`"role":"user",`, ""}:     RuleRequired,
		{`"host:a"`, `"a b"`}:      RuleID,
		{`"openedBy"`, `"opener"`}: RuleClosed,
	} {
		rule, _ := strictly(t, SchemaV2, `{"type":"conversation.opened","payload":`+strings.Replace(opening(turn("m1", "x")), edit[0], edit[1], 1)+`}`)
		require.Equal(t, want, rule, edit)
	}
}

// A fold has each turn of random conversations once, in the order in which it came first,
// whichever type of line it came on and how often.
func TestTurnsCountOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 2))
	for range effort.Of(50, 300, 5000) {
		var log strings.Builder
		var want []string
		for i := range 1 + r.IntN(9) {
			id, typ, member := fmt.Sprintf("m%d", r.IntN(5)), "conversation.exchanged", "turn"
			if r.IntN(3) == 0 {
				typ, member = "conversation.opened", "initialTurn"
			}
			payload := fmt.Sprintf(`{"conversationId":"c%d","turnIndex":%d`, r.IntN(2), i)
			if r.IntN(5) > 0 {
				payload += `,"` + member + `":{"messageId":"` + id + `","from":"ann","content":"of ` + id + `","ts":1,"role":"user","turnIndex":0}`
				if !slices.Contains(want, id) {
					want = append(want, id)
				}
			}
			fmt.Fprintf(&log, `{"eventId":"e%d","runId":"r","type":"%s","payload":%s},"timestamp":"2026-05-19T10:00:00.000Z","sequence":%d}`+"\n", i, typ, payload, i)
		}
		events := decodeAll(t, Options{}, log.String())
		f := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range events {
			f.Apply(ev)
		}
		s := f.Snapshot()
		require.Empty(t, s.Violations)
		var got []string
		for _, m := range s.Messages {
			got = append(got, m.MessageID)
			require.Equal(t, agentevents.JSON(`"of `+m.MessageID+`"`), m.Content)
		}
		require.Equal(t, want, got, log.String())
		for _, p := range []Profile{RFC0002, SchemaV1} {
			out, _ := encodeAll(t, p, events)
			require.Equal(t, strings.Count(log.String(), `"initialTurn"`), strings.Count(out, `"initialTurn"`))
			require.Equal(t, strings.Count(log.String(), `"turn"`), strings.Count(out, `"turn"`))
		}
	}
}
