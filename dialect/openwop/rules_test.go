package openwop

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// strictly decodes lines of one run and returns the rule that the last one
// breaks, or "". It puts an envelope around {"type":...,"payload":...}.
func strictly(t *testing.T, p Profile, lines ...string) (rule agentevents.Rule, pointer string) {
	t.Helper()
	d := NewDecoder(Options{Strict: true, Profile: p})
	for i, line := range lines {
		rest := ""
		run := "r1"
		if p == SchemaV2 {
			rest, run = `,"schemaVersion":1`, "acme/run-000000000001"
		}
		line = fmt.Sprintf(`{"eventId":"evt-000000000-%04d","runId":"%s","timestamp":"2026-05-19T10:00:00.000Z","sequence":%d%s,%s`, i, run, i, rest, line[1:])
		_, err := d.Decode(nil, []byte(line))
		if i < len(lines)-1 {
			require.NoError(t, err, line)
		} else if err != nil {
			var v *agentevents.RuleError
			require.ErrorAs(t, err, &v, line)
			return v.Rule, v.Pointer
		}
	}
	return "", ""
}

// Call ids are unique to an agent.
func TestCallsArePairedByAgent(t *testing.T) {
	called := func(agent string) string {
		return `{"type":"agent.toolCalled","payload":{"agentId":"` + agent + `","toolId":"x:y","callId":"c","arguments":1}}`
	}
	returned := func(agent, cause string) string {
		return `{"type":"agent.toolReturned","causationId":"` + cause + `","payload":{"agentId":"` + agent + `","toolId":"x:y","callId":"c","result":1}}`
	}
	rule, _ := strictly(t, RFC0002, called("aaa"), called("bbb"), returned("bbb", "evt-000000000-0001"), returned("aaa", "evt-000000000-0000"))
	require.Empty(t, rule)
	rule, pointer := strictly(t, RFC0002, called("aaa"), called("bbb"), returned("bbb", "evt-000000000-0000"))
	require.Equal(t, RuleCausation, rule)
	require.Equal(t, "/causationId", pointer)
}

func TestEscalationIsTheNodes(t *testing.T) {
	const (
		low    = `{"type":"agent.decided","payload":{"agentId":"abc","decision":1,"confidence":0.1}}`
		lowN1  = `{"nodeId":"n1","type":"agent.decided","payload":{"agentId":"abc","decision":1,"confidence":0.1}}`
		doneN1 = `{"type":"node.completed","payload":{"nodeId":"n1"}}`
		doneN9 = `{"type":"node.completed","payload":{"nodeId":"n9"}}`
		done   = `{"type":"run.completed","payload":{"outputs":{}}}`
		starts = `{"type":"node.started","payload":{"nodeId":"n1"}}`
		ask    = `{"nodeId":"boss","type":"runOrchestrator.decided","payload":{"agentId":"sup","decision":{"kind":"ask-user","prompt":"?"}}}`
		next   = `{"nodeId":"n1","type":"runOrchestrator.decided","payload":{"agentId":"sup","decision":{"kind":"next-worker","nextWorkerIds":["w"]}}}`
		loops  = `{"nodeId":"n1","type":"cap.breached","payload":{"kind":"loop-iterations","limit":1,"observed":2}}`
		silent = `{"type":"cap.breached","payload":{"kind":"confidence-escalation-suppressed","limit":0.7,"observed":0.1}}`
		clarN1 = `{"type":"clarification.requested","payload":{"nodeId":"n1","questions":[{"id":"q","question":"?"}]}}`
		clarN9 = `{"type":"clarification.requested","payload":{"nodeId":"n9","questions":[{"id":"q","question":"?"}]}}`
	)
	half := strings.Replace(lowN1, "0.1", "0.5", 1)
	begins := func(threshold string) string {
		return `{"type":"run.started","payload":{"configurable":{"escalationThreshold":` + threshold + `}}}`
	}
	suspended := func(node, reason string) string {
		return `{"type":"node.suspended","payload":{"nodeId":"` + node + `","interruptId":"acme/int-000000000001","reason":"` + reason + `"}}`
	}
	for _, c := range []struct {
		p     Profile
		lines []string
		want  agentevents.Rule
	}{
		{RFC0002, []string{low, doneN9}, ""},
		{RFC0002, []string{low, doneN9, done}, RuleEscalate},
		{RFC0002, []string{lowN1, doneN9}, ""},
		{RFC0002, []string{lowN1, doneN1}, RuleEscalate},
		{RFC0002, []string{lowN1, next, doneN1}, RuleEscalate},
		{RFC0002, []string{lowN1, loops, doneN1}, RuleEscalate},
		{RFC0002, []string{lowN1, clarN9, doneN1}, RuleEscalate},
		{RFC0002, []string{lowN1, suspended("n9", "webhook"), doneN1}, RuleEscalate},
		{RFC0002, []string{lowN1, ask, doneN1, done}, ""},
		{RFC0002, []string{lowN1, silent, doneN1, done}, ""},
		{RFC0002, []string{lowN1, clarN1, doneN1, done}, ""},
		{RFC0002, []string{low, clarN1, done}, ""},
		{SchemaV1, []string{lowN1, doneN1}, RuleEscalate},
		{SchemaV1, []string{lowN1, ask, doneN1}, RuleEscalate},
		{SchemaV2, []string{lowN1, strings.Replace(suspended("n1", "low-confidence"), "reason", "kind", 1), doneN1, done}, ""},
		{SchemaV1, []string{lowN1, clarN1, doneN1}, RuleEscalate},
		{SchemaV1, []string{lowN1, suspended("n1", "webhook"), doneN1}, RuleEscalate},
		{SchemaV1, []string{lowN1, suspended("n9", "low-confidence"), doneN1}, RuleEscalate},
		{SchemaV1, []string{lowN1, suspended("n1", "low-confidence"), doneN1, done}, ""},
		{SchemaV2, []string{low, suspended("n1", "low-confidence"), doneN1, done}, ""},
		{RFC0002, []string{next, lowN1, clarN1, doneN1}, RuleEscalate}, // the orchestrator asks
		{RFC0002, []string{begins("0.05"), starts, lowN1, doneN1, done}, ""},
		{RFC0002, []string{begins("0.9"), starts, half, doneN1}, RuleEscalate},
		{RFC0002, []string{begins("0.4"), starts, half, doneN1, done}, ""},
		{RFC0002, []string{begins("40"), starts, half, doneN1}, RuleEscalate}, // not a confidence
		{RFC0002, []string{begins("40"), starts, strings.Replace(lowN1, "0.1", "0.8", 1), doneN1, done}, ""},
		{RFC0002, []string{`{"type":"run.started","payload":{}}`, starts, lowN1, doneN1}, RuleEscalate},
	} {
		rule, _ := strictly(t, c.p, c.lines...)
		require.Equal(t, c.want, rule, "%s: %s", c.p, strings.Join(c.lines, "\n"))
	}
}

// A decoder does not keep lines alive.
func TestDecoderKeepsNoLinesAlive(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	d := NewDecoder(Options{Strict: true})
	large := strings.Repeat("x", 100<<10)
	line := func(run, n int, typ, payload string) {
		_, err := d.Decode(nil, fmt.Appendf(nil, `{"eventId":"e%d-%d","runId":"r%d","nodeId":"n%d","timestamp":"2026-05-19T10:00:00.000Z","sequence":%d,"type":"%s","x":"%s","payload":%s}`,
			run, n, run, run, n, typ, large, payload))
		require.NoError(t, err)
	}
	before := heap()
	for run := range 100 {
		line(run, 0, "agent.toolCalled", `{"agentId":"a","toolId":"x:y","callId":"c","arguments":1}`)
		line(run, 1, "agent.decided", `{"agentId":"a","decision":1,"confidence":0.1}`)
		line(run, 2, "clarification.requested", `{"interruptId":"i","questions":[{"id":"q","question":"?"}]}`)
		line(run, 3, "agent.decided", `{"agentId":"a","decision":1,"confidence":0.1}`)
		if run%2 == 0 {
			line(run, 4, "run.failed", `{}`)
			require.Empty(t, d.runs.Of(fmt.Sprintf("r%d", run)).calls)
			require.Empty(t, d.runs.Of(fmt.Sprintf("r%d", run)).low)
		}
	}
	after := heap()
	require.Less(t, int64(after)-int64(before), int64(2<<20))
	runtime.KeepAlive(d)
}

// Types that the protocol's own domains do not register are read, but not
// written.
func TestInventedTypesAreNotWritten(t *testing.T) {
	write := func(p Profile, typ string) (string, error) {
		const raw = `{"nodeId":"n1","invocationId":"i1","agentId":"abc","source":"run-api","kind":"system","chain":[],"resolved":null}` // the members that any of them requires
		ev := agentevents.Event{ID: "evt-0000000000-0001", RunID: "acme/run-000000000001", Payload: &agentevents.Unknown{Type: agentevents.Kind(typ), Raw: raw}}
		out, err := NewEncoder(EncoderOptions{Profile: p}).Append(nil, ev)
		return string(out), err
	}
	for _, typ := range []string{"agent.toolcalled", "agent.thought", "node.foo", "run.resume", "channel.presence", "tool.called", "core.workflowChain.x", "agent.decided handoff"} {
		_, err := write(SchemaV1, typ)
		require.ErrorIs(t, err, dialect.ErrNoCounterpart, typ)
		_, err = write(RFC0002, typ)
		require.NoError(t, err, typ)
	}
	_, err := write(SchemaV2, "agent.decided handoff")
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	for typ, want := range map[string]string{
		"acme.canvas.published": "", "node.resumed": "", "core.workflowChain.event": "", "agent.invocation.started": "", "run.resume-started": "run.resuming",
		"agent.prompt-resolved": "agent.promptResolved", "budget.threshold-crossed": "budget.threshold.crossed",
	} {
		out, err := write(SchemaV1, typ)
		require.NoError(t, err, typ)
		if want == "" {
			want = typ
		}
		require.Contains(t, out, `"type":"`+want+`"`)
	}
	for typ := range registered1().types {
		require.True(t, legalType(SchemaV1, typ), typ)
		require.True(t, registered2().has(renamed(SchemaV2, typ)), typ)
		require.Equal(t, typ, renamed(SchemaV1, renamed(SchemaV2, typ)))
	}
	rule, _ := strictly(t, SchemaV1, `{"type":"agent.thought","payload":{}}`)
	require.Empty(t, rule, "readers pass over what they do not know")
	for _, typ := range []string{"agent.tool-called", "run.resume-started", "orchestrator.decided", "workflow-chain.event"} {
		rule, pointer := strictly(t, SchemaV1, `{"type":"`+typ+`","payload":{}}`)
		require.Equal(t, RuleType, rule, typ)
		require.Equal(t, "/type", pointer)
		require.False(t, legalType(SchemaV1, typ))
	}
}

// A profile that does not exist has the rules of the RFC.
func TestUnknownProfiles(t *testing.T) {
	for line := range strings.Lines(goldenRFC) {
		line = strings.TrimSuffix(line, "\n")
		for _, strict := range []bool{false, true} {
			want, wantErr := NewDecoder(Options{Strict: strict}).Decode(nil, []byte(line))
			got, err := NewDecoder(Options{Strict: strict, Profile: 7}).Decode(nil, []byte(line))
			require.Equal(t, wantErr, err)
			require.Equal(t, want, got)
		}
	}
}

// SchemaV1 counts the characters of an id.
func TestIDLengthsAreCharacters(t *testing.T) {
	for id, want := range map[string]bool{"éé": false, "ééé": true, "ab": false, "abc": true, "日本": false, "日本語": true, "😀😀": false, strings.Repeat("日", 256): true, strings.Repeat("日", 257): false} {
		require.Equal(t, want, ValidID(SchemaV1, AgentID, id), id)
		require.True(t, ValidID(SchemaV1, AgentID, NormalizeID(SchemaV1, AgentID, id)), id)
	}
}

// Members of the schemas without a field in the vocabulary are checked too.
func TestStrictChecksDeclaredMembers(t *testing.T) {
	const (
		approval  = `"nodeId":"n1","artifactId":"a","artifactType":"t"`
		permit    = `"artifactId":"a","artifactType":"t","title":"T"`
		questions = `"questions":[{"id":"q","question":"?"}]`
		message   = `"channel":"messages","value":{"messageId":"m","from":"abc","content":1,"ts":1}`
	)
	for _, c := range []struct {
		p            Profile
		typ, payload string
		rule         agentevents.Rule
		pointer      string
		alsoV2       bool
	}{
		{p: SchemaV1, typ: "run.started", payload: `{"workflowId":"w","transport":"mcp","owner":{"tenant":"t","principal":"p"},"tags":["a"],"metadata":{},"engineVersion":"1"}`},
		{p: SchemaV2, typ: "run.started", payload: `{"workflowId":"w","transport":"mcp","owner":{"tenant":"t","subject":` + goodSubject + `},"engineVersion":1}`},
		{SchemaV1, "run.started", `{"workflowId":"w","transport":"pigeon"}`, RuleEnum, "/payload/transport", true},
		{SchemaV1, "run.started", `{"workflowId":"w","transport":5}`, RuleEnum, "/payload/transport", true},
		{SchemaV1, "run.started", `{"workflowId":"w","owner":5}`, RuleForm, "/payload/owner", true},
		{SchemaV1, "run.started", `{"workflowId":"w","owner":{}}`, RuleRequired, "/payload/owner/tenant", false},
		{SchemaV2, "run.started", `{"workflowId":"w","owner":{}}`, RuleRequired, "/payload/owner/subject", false},
		{SchemaV1, "run.started", `{"workflowId":"w","owner":{"tenant":""}}`, RuleRange, "/payload/owner/tenant", false},
		{SchemaV2, "run.started", `{"workflowId":"w","owner":{"tenant":""}}`, RuleID, "/payload/owner/tenant", false},
		{SchemaV1, "run.started", `{"workflowId":"w","owner":{"tenant":"t","x":1}}`, RuleClosed, "/payload/owner/x", true},
		{SchemaV1, "run.started", `{"workflowId":"w","tags":[1]}`, RuleForm, "/payload/tags/0", true},
		{SchemaV1, "run.started", `{"workflowId":"w","metadata":[]}`, RuleForm, "/payload/metadata", true},
		{p: SchemaV1, typ: "run.started", payload: `{"workflowId":"w","engineVersion":1}`, rule: RuleForm, pointer: "/payload/engineVersion"},
		{p: SchemaV2, typ: "run.started", payload: `{"workflowId":"w","engineVersion":"1"}`, rule: RuleRange, pointer: "/payload/engineVersion"},
		{SchemaV1, "run.failed", `{"error":{"code":"c","message":"m"},"durationMs":-1}`, RuleRange, "/payload/durationMs", true},
		{SchemaV1, "run.cancelled", `{"cancelledBy":1}`, RuleForm, "/payload/cancelledBy", true},
		{SchemaV1, "node.failed", `{"nodeId":"n","error":{"code":"c","message":"m"},"attempts":0}`, RuleRange, "/payload/attempts", true},
		{SchemaV1, "agent.reasoned", `{"agentId":"abc","reasoning":"","causationHostId":""}`, RuleID, "/payload/causationHostId", true},
		{SchemaV1, "node.failed", `{"nodeId":"n","error":{"code":"c","message":""}}`, RuleRange, "/payload/error/message", true},
		{SchemaV1, "node.failed", `{"nodeId":"n","error":{"code":"","message":"m"}}`, RuleRange, "/payload/error/code", true},
		{p: RFC0002, typ: "agent.decided", payload: `{"agentId":"abc","decision":1,"causationHostId":""}`},
		{p: SchemaV2, typ: "orchestrator.decided", payload: `{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":["abc"],"nextWorkerInputs":[{}]}}`},
		{p: SchemaV2, typ: "node.failed", payload: `{"nodeId":"n","error":{"code":"c","message":"m","host":"h"}}`, rule: RuleClosed, pointer: "/payload/error/host"},
		{p: SchemaV2, typ: "node.failed", payload: `{"nodeId":"n","error":{"code":"c","message":"m","x-host":"h"}}`},
		{SchemaV1, "cap.breached", `{"kind":"loop-iterations","limit":1,"observed":-1}`, RuleRange, "/payload/observed", true},
		{SchemaV1, "cap.breached", `{"kind":"loop-iterations","limit":-1,"observed":1}`, RuleRange, "/payload/limit", true},

		{p: SchemaV1, typ: "approval.requested", payload: `{` + approval + `,"actions":["accept","edit"],"requiredApprovals":2}`},
		{p: SchemaV1, typ: "approval.requested", payload: `{"nodeId":"n1","artifactId":1,"artifactType":"t","actions":["accept"]}`, rule: RuleForm, pointer: "/payload/artifactId"},
		{p: SchemaV1, typ: "approval.requested", payload: `{` + approval + `,"actions":3}`, rule: RuleForm, pointer: "/payload/actions"},
		{p: SchemaV1, typ: "approval.requested", payload: `{` + approval + `,"actions":[]}`, rule: RuleRange, pointer: "/payload/actions"},
		{p: SchemaV1, typ: "approval.requested", payload: `{` + approval + `,"actions":["edit-accept"]}`, rule: RuleEnum, pointer: "/payload/actions/0"},
		{p: SchemaV1, typ: "approval.requested", payload: `{` + approval + `,"actions":["ask"],"requiredApprovals":0}`, rule: RuleRange, pointer: "/payload/requiredApprovals"},
		{p: SchemaV1, typ: "approval.granted", payload: `{"gateId":"g","principal":"p","quorumProgress":{"granted":1,"required":2}}`},
		{p: SchemaV1, typ: "approval.granted", payload: `{"gateId":"g","principal":"p","quorumProgress":{"required":0}}`, rule: RuleRange, pointer: "/payload/quorumProgress/required"},

		{p: SchemaV1, typ: "clarification.requested", payload: `{"nodeId":"n","questions":[{"id":"","question":"","schema":{},"x":1}]}`},
		{p: SchemaV1, typ: "clarification.requested", payload: `{"nodeId":"n","questions":[]}`},
		{p: RFC0002, typ: "agent.toolReturned", payload: `{"agentId":"a","toolId":"x:y","callId":"c","status":"forbidden","durationMs":0}`},
		{p: SchemaV1, typ: "clarification.requested", payload: `{"nodeId":"n","questions":[{"id":"a","question":"b"},{"id":"a","question":"b","schema":1}]}`, rule: RuleForm, pointer: "/payload/questions/1/schema"},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{` + questions + `,"contextType":"c"},"timeoutMs":1,"resumeSchema":{}}`, "", "", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{` + questions + `,"x":1}}`, RuleClosed, "/payload/data/x", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":"?","x":1}]}}`, RuleClosed, "/payload/data/questions/0/x", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"","question":"?"}]}}`, RuleRange, "/payload/data/questions/0/id", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":""}]}}`, RuleRange, "/payload/data/questions/0/question", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q"}]}}`, RuleRequired, "/payload/data/questions/0/question", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[]}}`, RuleRange, "/payload/data/questions", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"` + strings.Repeat("k", 257) + `","data":{` + questions + `}}`, RuleRange, "/payload/key", true},
		{p: RFC0002, typ: "interrupt.requested", payload: `{"kind":"clarification","key":"` + strings.Repeat("k", 257) + `","data":{"questions":[{"id":"","question":""}]}}`},
		{p: RFC0002, typ: "interrupt.resolved", payload: `{"interruptId":"","kind":"clarification"}`},
		{p: SchemaV1, typ: "interrupt.resolved", payload: `{"nodeId":"n1","interruptId":"","kind":"clarification"}`},
		{p: SchemaV1, typ: "node.suspended", payload: `{"nodeId":"n1","interruptId":"` + strings.Repeat("k", 257) + `"}`},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{}}`, RuleRequired, "/payload/data/questions", true},
		{SchemaV1, "interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{` + questions + `},"timeoutMs":-1}`, RuleRange, "/payload/timeoutMs", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{` + permit + `,"actions":["edit-accept"]}}`, "", "", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{` + permit + `,"actions":["boo"]}}`, RuleEnum, "/payload/data/actions/0", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{` + permit + `,"actions":["ask","ask"]}}`, RuleForm, "/payload/data/actions", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":5,"artifactType":"t","title":"T","actions":["ask"]}}`, RuleForm, "/payload/data/artifactId", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":"a","artifactType":"t","actions":["ask"]}}`, RuleRequired, "/payload/data/title", true},
		{SchemaV1, "interrupt.requested", `{"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":"a","artifactType":"t","title":"","actions":["ask"]}}`, RuleRange, "/payload/data/title", true},

		{SchemaV1, "channel.written", `{` + message + `,"reducer":"append","writtenAt":"2026-05-19T10:00:00Z","schemaVersion":1}`, "", "", true},
		{SchemaV1, "channel.written", `{` + message + `,"reducer":"vendor.acme.mine","writtenAt":"2026-05-19T10:00:00Z"}`, "", "", true},
		{SchemaV1, "channel.written", `{` + message + `,"reducer":"message","writtenAt":"2026-05-19T10:00:00Z"}`, RuleEnum, "/payload/reducer", true},
		{SchemaV1, "channel.written", `{` + message + `,"reducer":"append","writtenAt":"yesterday"}`, RuleForm, "/payload/writtenAt", true},
		{SchemaV1, "channel.written", `{` + message + `,"reducer":"append","writtenAt":"2026-05-19T10:00:00Z","schemaVersion":0}`, RuleRange, "/payload/schemaVersion", true},
		{SchemaV1, "channel.written", `{` + message + `,"reducer":"append","writtenAt":"2026-05-19T10:00:00Z","nodeId":""}`, RuleID, "/payload/nodeId", true},
	} {
		profiles := []Profile{c.p}
		if c.alsoV2 {
			profiles = append(profiles, SchemaV2)
		}
		for _, p := range profiles {
			rule, pointer := strictly(t, p, `{"type":"`+c.typ+`","payload":`+c.payload+`}`)
			require.Equal(t, c.rule, rule, "%s %s %s", p, c.typ, c.payload)
			require.Equal(t, c.pointer, pointer, "%s %s %s", p, c.typ, c.payload)
		}
	}
}

// Published lines read the same with and without their profile, and writing them
// again makes nothing up.
func TestPublishedLinesNeedNoProfile(t *testing.T) {
	v2 := `{"eventId":"evt-0000000000-0017","runId":"acme/run-000000000001","type":"channel.written","payload":{"channel":"messages","value":{"messageId":"m","from":"abc","content":1,"ts":1},"reducer":"append","writtenAt":"2026-05-19T10:00:17.000Z"},"timestamp":"2026-05-19T10:00:17.000Z","sequence":17,"schemaVersion":1}
`
	for p, lines := range map[Profile]string{SchemaV1: golden[SchemaV1] + strings.Replace(v2, `,"schemaVersion":1`, "", 1), SchemaV2: golden[SchemaV2] + v2} {
		for line := range strings.Lines(lines) {
			named := decodeAll(t, Options{Profile: p}, line)
			plain := decodeAll(t, Options{}, line)
			require.Equal(t, named, plain, line)
			enc := NewEncoder(EncoderOptions{Profile: p})
			out, err := enc.Append(nil, plain[0])
			require.NoError(t, err)
			require.Equal(t, line, string(out))
			for _, l := range enc.Losses() {
				require.NotEqual(t, "/openwop/schemaVersion", l.Pointer)
				require.NotEqual(t, "/openwop/~1payload~1reducer", l.Pointer)
			}
			if plain[0].Kind() == agentevents.KindMessageCreated && p == SchemaV1 && !strings.Contains(line, exchanged) {
				require.JSONEq(t, `{"/payload/reducer":"append"}`, string(plain[0].Extra(string(Name))))
				enc := NewEncoder(EncoderOptions{})
				out, err := enc.Append(nil, plain[0])
				require.NoError(t, err)
				require.Contains(t, string(out), `"reducer":"append"`)
				require.Empty(t, enc.Losses())
			}
		}
	}
	// A value other than the default is kept, beside the version too.
	ev := decodeAll(t, Options{Profile: SchemaV2}, strings.Replace(v2, `"append"`, `"vendor.a.b"`, 1))[0]
	require.JSONEq(t, `{"schemaVersion":1,"/payload/reducer":"vendor.a.b"}`, string(ev.Extra(string(Name))))
	ev = decodeAll(t, Options{}, strings.Replace(v2, `"schemaVersion":1`, `"schemaVersion":2`, 1))[0]
	require.JSONEq(t, `{"schemaVersion":2,"/payload/reducer":"append"}`, string(ev.Extra(string(Name))))

	// A line is written as it was, unless the schema does not have its reducer.
	rewrite := func(p Profile, reducer string) string {
		line := strings.Replace(v2, `"append"`, `"`+reducer+`"`, 1)
		for ev, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Verbatim: true, Decoder: NewDecoder(Options{Profile: p})}).All() {
			require.NoError(t, err)
			out, err := NewEncoder(EncoderOptions{Profile: p}).Append(nil, ev)
			require.NoError(t, err)
			_, rest, _ := strings.Cut(string(out), `"reducer":"`)
			reducer, _, _ = strings.Cut(rest, `"`)
		}
		return reducer
	}
	require.Equal(t, "append", rewrite(RFC0002, "append"))
	require.Equal(t, "applyMessage", rewrite(RFC0002, "applyMessage"))
	require.Equal(t, "append", rewrite(SchemaV1, "applyMessage"))
	require.Equal(t, "append", rewrite(SchemaV2, "append"))
}

// A message that is applied by its id is only appended under the schemas. A
// message that is appended stays one.
func TestReducersOfMessages(t *testing.T) {
	line := func(reducer string) string {
		return documents("channel.written", `{"channel":"messages","value":{"messageId":"m","from":"abc","content":1,"ts":1},`+reducer+`"writtenAt":"2026-05-19T10:00:01.000Z"}`)
	}
	const made = "made up /openwop/~1payload~1reducer"
	for _, c := range []struct {
		from, to     Profile
		was, reducer string
		losses       []string
	}{
		{RFC0002, RFC0002, `"reducer":"applyMessage",`, `"reducer":"applyMessage"`, nil},
		{RFC0002, RFC0002, `"reducer":"append",`, `"reducer":"append"`, nil},
		{RFC0002, SchemaV1, `"reducer":"applyMessage",`, `"reducer":"append"`, []string{made}},
		{RFC0002, SchemaV2, `"reducer":"append",`, `"reducer":"append"`, nil},
		{SchemaV1, SchemaV1, `"reducer":"append",`, `"reducer":"append"`, nil},
		{SchemaV1, RFC0002, `"reducer":"append",`, `"reducer":"append"`, nil},
		{SchemaV2, SchemaV1, `"reducer":"applyMessage",`, `"reducer":"append"`, []string{made}},
		{RFC0002, SchemaV1, `"reducer":"message",`, `"reducer":"append"`, []string{"altered /openwop/~1payload~1reducer"}},
		{RFC0002, SchemaV1, ``, `"reducer":"append"`, []string{made, "made up /openwop/~0absent"}},
	} {
		out, losses := converted(t, c.from, c.to, line(c.was))
		require.Contains(t, out, c.reducer, c)
		require.ElementsMatch(t, c.losses, losses, c)
	}
}

// The RFC's text sets no limits for the sign of a limit and the length of a key.
// A line written under it must pass its rules.
func TestTheRFCHasNoBounds(t *testing.T) {
	list := []agentevents.Event{
		{Payload: &agentevents.CapBreached{Cap: "c", Limit: agentevents.Some(-1.5), Observed: agentevents.Some(-1.0)}},
		{Payload: &agentevents.ClarificationRequested{InterruptID: strings.Repeat("k", 257)}},
	}
	require.NoError(t, list[1].SetExtra(string(Name), `{"~type":"interrupt.requested"}`))
	for i := range list {
		list[i].ID, list[i].RunID, list[i].Sequence = "e"+string(rune('0'+i)), "r", uint64(i)
	}
	require.Len(t, strictTo(t, RFC0002, list), 2)
	for _, p := range []Profile{SchemaV1, SchemaV2} {
		_, err := NewEncoder(EncoderOptions{Profile: p}).Append(nil, list[0])
		require.Error(t, err, "the schemas do")
	}
}
