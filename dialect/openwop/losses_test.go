package openwop

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

// documents returns one line for each pair of type and payload.
func documents(typesAndPayloads ...string) string {
	var b strings.Builder
	for i := 0; i < len(typesAndPayloads); i += 2 {
		n := string(rune('1' + i/2))
		b.WriteString(`{"eventId":"evt-000000000000` + n + `","runId":"acme/run-000000000001","nodeId":"n1","type":"` + typesAndPayloads[i] +
			`","payload":` + typesAndPayloads[i+1] + `,"timestamp":"2026-05-19T10:00:0` + n + `.000Z","sequence":` + n + `,"schemaVersion":2}` + "\n")
	}
	return b.String()
}

// converted encodes the lines of one profile under another. It returns the type
// and payload of the new lines, and the losses.
func converted(t *testing.T, from, to Profile, lines string) (out string, losses []string) {
	t.Helper()
	return rewritten(t, to, decodeAll(t, Options{Profile: from}, lines))
}

func rewritten(t *testing.T, to Profile, events []agentevents.Event) (out string, losses []string) {
	t.Helper()
	text, lost := encodeAll(t, to, events)
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, `"type":"`)
		rest, _, _ = strings.Cut(rest, `,"timestamp"`)
		typ, payload, _ := strings.Cut(rest, `","payload":`)
		out += typ + " " + payload + "\n"
	}
	for _, l := range lost {
		require.LessOrEqual(t, l.Count, len(events), "a loss counts once for an event: %s", l.Pointer)
		losses = append(losses, l.What.String()+" "+l.Pointer)
	}
	return strings.TrimSuffix(out, "\n"), losses
}

// The extra members of an interrupt are written in its other form, or listed. One that has another
// place there is listed for both places.
func TestInterruptsInTheOtherForm(t *testing.T) {
	const kept, profile = "dropped /openwop/~1payload~1", "dropped /openwop/~0profile"
	moved := func(from, to string, names ...string) (losses []string) {
		for _, name := range names {
			losses = append(losses, kept+from+name, "made up /openwop/~1payload~1"+to+name)
		}
		return losses
	}
	artifact := []string{"artifactId", "artifactType", "actions"}
	approval := `"artifactId":"a1","artifactType":"doc","title":"Publish","actions":["accept"]`
	for name, c := range map[string]struct {
		from, to  Profile
		line, out string
		losses    []string
	}{
		"approval as the RFC": {
			SchemaV2, RFC0002, documents("interrupt.requested", `{"kind":"approval","key":"k","resumeSchema":{},"data":{`+approval+`,"description":"the text","requiredApprovals":2}}`),
			`approval.requested {"nodeId":"n1","interruptId":"k",` + approval + `,"resumeSchema":{},"description":"the text","requiredApprovals":2}`,
			moved("data~1", "", append(artifact, "description", "requiredApprovals")...),
		},
		"approval as version 1": {
			SchemaV2, SchemaV1, documents("interrupt.requested", `{"kind":"approval","key":"k","data":{`+approval+`,"description":"the text"}}`),
			`approval.requested {"nodeId":"n1","interruptId":"k",` + approval + `,"description":"the text"}`,
			moved("data~1", "", append(artifact, "description")...),
		},
		"approval as version 2": {
			SchemaV1, SchemaV2, documents("approval.requested", `{"nodeId":"n1","interruptId":"acme/int-000000000001",`+approval+`,"requiredApprovals":2,"x":1}`),
			`interrupt.requested {"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":"a1","artifactType":"doc","title":"Publish","actions":["accept"],"requiredApprovals":2,"x":1}}`,
			moved("", "data~1", append(artifact, "requiredApprovals", "x")...),
		},
		"beside the data": {
			RFC0002, SchemaV2, documents("approval.requested", `{"nodeId":"n1","interruptId":"acme/int-000000000001",`+approval+`,"resumeSchema":{}}`),
			`interrupt.requested {"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":"a1","artifactType":"doc","title":"Publish","actions":["accept"]},"resumeSchema":{}}`,
			moved("", "data~1", artifact...),
		},
		"an edit has another name": {
			SchemaV1, SchemaV2, documents("approval.requested", `{"nodeId":"n1","interruptId":"acme/int-000000000001","artifactId":"","artifactType":"doc","title":"t","actions":["edit","edit","?"]}`),
			`interrupt.requested {"kind":"approval","key":"acme/int-000000000001","data":{"artifactId":"acme/int-000000000001","artifactType":"doc","title":"t","actions":["edit-accept"]}}`,
			append(moved("", "data~1", artifact...), profile),
		},
		"and back": {
			SchemaV2, SchemaV1, documents("interrupt.requested", `{"kind":"approval","key":"k","data":{"artifactId":"a","artifactType":"doc","title":"t","actions":["reject","edit-accept"]}}`),
			`approval.requested {"nodeId":"n1","interruptId":"k","artifactId":"a","artifactType":"doc","title":"t","actions":["reject","edit"]}`,
			moved("data~1", "", artifact...),
		},
		"clarification as version 2": {
			RFC0002, SchemaV2, documents("clarification.requested", `{"nodeId":"n1","interruptId":"acme/int-000000000001","contextType":"c","foo":1,"questions":[{"id":"q","question":"?","unk":1}]}`),
			`interrupt.requested {"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":"?"}],"contextType":"c"}}`,
			append(moved("", "data~1", "contextType"), kept+"foo", kept+"questions~10~1unk"),
		},
		"clarification as version 1": {
			SchemaV2, SchemaV1, documents("interrupt.requested", `{"kind":"clarification","key":"k","timeoutMs":5,"data":{"contextType":"c","questions":[{"id":"q","question":"?","unk":1}]}}`),
			`clarification.requested {"nodeId":"n1","interruptId":"k","questions":[{"id":"q","question":"?","unk":1}],"timeoutMs":5,"contextType":"c"}`,
			append(moved("data~1", "", "contextType", "questions~10~1unk"), profile),
		},
		"data that version 2 does not have": {
			RFC0002, SchemaV2, documents("interrupt.requested", `{"kind":"clarification","key":"acme/int-000000000001","data":{"foo":1,"questions":[{"id":"q","question":"?","unk":1}]}}`),
			`interrupt.requested {"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":"?"}]}}`,
			[]string{kept + "data~1foo", kept + "data~1questions~10~1unk"},
		},
		"facts without any place": {
			RFC0002, RFC0002, documents("run.paused", `{}`), `run.paused {}`, []string{kept + "error~1host"},
		},
		"both places": {
			SchemaV2, RFC0002, documents("interrupt.requested", `{"kind":"clarification","key":"k","foo":1,"data":{"foo":2,"questions":[]}}`),
			`clarification.requested {"nodeId":"n1","interruptId":"k","questions":[],"foo":1}`, []string{kept + "data~1foo", profile},
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := decodeAll(t, Options{Profile: c.from}, c.line)
			if name == "facts without any place" {
				require.NoError(t, events[0].SetExtra(string(Name), `{"/payload/error/host":"a","schemaVersion":2}`))
			}
			out, losses := rewritten(t, c.to, events)
			require.Equal(t, c.out, out)
			require.ElementsMatch(t, c.losses, losses)
		})
	}
}

// A call that is one event becomes two lines, and the losses of both count. A
// refused call never began.
func TestLossesOfASplit(t *testing.T) {
	ev := agentevents.Event{
		ID: "evt-0000000000001", RunID: "acme/run-000000000001", AgentID: "host:a", Time: t0, SchemaVersion: agentevents.SchemaVersion,
		Scope: agentevents.Scope{SessionID: "s"}, Payload: &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true},
	}
	out, losses := rewritten(t, RFC0002, []agentevents.Event{ev})
	require.Equal(t, `agent.toolCalled {"agentId":"host:a","toolId":"t","callId":"c","arguments":null}`+"\n"+
		`agent.toolReturned {"agentId":"host:a","toolId":"t","callId":"c"}`, out)
	require.ElementsMatch(t, []string{
		"made up ", "made up /causationId", "dropped /payload/oneEvent", "made up /sequence", "dropped /sessionId",
	}, losses)
	_, lost := encodeAll(t, RFC0002, []agentevents.Event{ev})
	for _, l := range lost {
		require.Equal(t, 1, l.Count, l.Pointer)
	}
	other := ev
	other.Time, other.Payload = time.Time{}, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true, Duration: agentevents.Some(time.Hour)}
	require.NoError(t, other.SetExtra(string(Name), `{"/payload/x":1}`))
	out, losses = rewritten(t, RFC0002, []agentevents.Event{ev, other})
	require.Equal(t, 1, strings.Count(out, `"x":1`), "the call has no members of the return")
	require.NotContains(t, losses, "dropped /openwop/~1payload~1x")
	text, _ := encodeAll(t, RFC0002, []agentevents.Event{ev, other, ev})
	require.NotContains(t, text, `"timestamp":"-`)
	require.Contains(t, text, `"sequence":3`, "two calls became two lines before")
	for _, status := range []agentevents.ToolStatus{agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited} {
		for _, p := range []Profile{RFC0002, SchemaV1, SchemaV2} {
			ev.Payload = &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: status, OneEvent: true, Arguments: "1"}
			out, losses = rewritten(t, p, []agentevents.Event{ev})
			require.NotContains(t, out, "\n")
			require.Subset(t, losses, []string{"dropped /payload/oneEvent", "dropped /payload/arguments"})

			line, _ := encodeAll(t, p, []agentevents.Event{ev})
			for _, log := range [][]agentevents.Event{{ev}, decodeAll(t, Options{Profile: p}, line)} {
				f := agentevents.NewFold(agentevents.FoldOptions{})
				f.Apply(log[0])
				s := f.Snapshot()
				require.Equal(t, &agentevents.ToolStats{Refused: 1}, s.Tools["t"])
				require.Zero(t, s.Agents["host:a"].Counted.ToolCalls)
			}
		}
	}
}

// Damaged characters are replaced in words too. An id with damaged characters is
// refused.
func TestLossesOfDamagedCharacters(t *testing.T) {
	base := agentevents.Event{ID: "evt-0000000000001", RunID: "r", Time: t0, SchemaVersion: agentevents.SchemaVersion}
	for pointer, p := range map[string]agentevents.Payload{ // an event without a native line is altered as a whole, too
		"/payload/agent/agentSharing": &agentevents.NodeStarted{Agent: agentevents.Some(agentevents.AgentRef{AgentID: "a", AgentSharing: "sh\xff"})},
		"/payload/agent/modelClass":   &agentevents.NodeStarted{Agent: agentevents.Some(agentevents.AgentRef{AgentID: "a", ModelClass: "m\xff"})},
		"/payload":                    &agentevents.Unknown{Type: "acme.x\xff", Raw: "{}"},
	} {
		ev := base
		ev.Payload = p
		_, losses := rewritten(t, RFC0002, []agentevents.Event{ev})
		require.Equal(t, []string{"altered ", "altered " + pointer}, losses)
	}
	ev := base
	ev.Payload = &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", From: "a\xff"}}
	_, err := NewEncoder(EncoderOptions{}).Append(nil, ev)
	var broken *agentevents.RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, agentevents.RuleFieldUTF8, broken.Rule)
	require.Equal(t, "/payload/message/from", broken.Pointer)
}

// Facts that the line has are not listed.
func TestWrittenFactsAreNotLosses(t *testing.T) {
	for name, c := range map[string]struct {
		p     Profile
		lines string
	}{
		"approval":               {SchemaV1, documents("approval.requested", `{"nodeId":"n1","artifactId":"a1","artifactType":"doc","actions":["edit"],"x":1}`)},
		"another node":           {SchemaV1, documents("node.started", `{"nodeId":"n2","typeId":"core.llm"}`)},
		"another reducer":        {SchemaV1, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","to":"b","content":1,"ts":0},"reducer":"merge","writtenAt":"2026-05-19T10:00:01.000Z"}`)},
		"the RFC's, another one": {RFC0002, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","to":"b","content":1,"ts":0},"reducer":"merge","writtenAt":"x"}`)},
		"a vendor's reducer":     {SchemaV2, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","to":"b","content":1,"ts":0},"reducer":"vendor.acme.x-1","writtenAt":"2026-05-19T10:00:00.000Z"}`)},
		"details of any form":    {RFC0002, documents("node.suspended", `{"nodeId":"n1","interruptId":5,"kind":[],"key":{}}`)},
		"broken details":         {SchemaV2, documents("node.suspended", `{"nodeId":"n1","interruptId":"acme/int-000000000001","foo":1}`)},
		"an empty question":      {RFC0002, strings.Replace(documents("interrupt.requested", `{"kind":"clarification","key":"k","data":{"questions":[{"id":"","question":""}]}}`), `,"schemaVersion":2`, "", 1)},
		"an approval's artifact": {RFC0002, strings.Replace(documents("interrupt.requested", `{"kind":"approval","key":"k","data":{"artifactId":5,"artifactType":{},"title":"t","actions":["x"]}}`), `,"schemaVersion":2`, "", 1)},
		"empty texts":            {RFC0002, documents("agent.toolCalled", `{"agentId":"","toolId":"","callId":"","arguments":1,"argsHash":"","transport":""}`, "run.failed", `{"error":{"code":"","message":""}}`)},
		"an empty reason":        {SchemaV1, documents("run.paused", `{"reason":""}`)},
		"members of the data":    {RFC0002, strings.Replace(documents("interrupt.requested", `{"kind":"clarification","key":"k","data":{"questions":[],"foo":1}}`), `,"schemaVersion":2`, "", 1)},
		"no payload":             {RFC0002, strings.Replace(documents("acme.x", `{}`), `"payload":{},`, "", 1)},
		"members of agents": {RFC0002, documents("node.started", `{"nodeId":"n1","agent":{"agentId":"abc","x":1}}`,
			"node.completed", `{"nodeId":"n1","agent":{"agentId":"abc","x":1}}`, "agent.handoff", `{"from":{"agentId":"abc","x":1},"to":{"agentId":"abc","x":1}}`)},
		"members of messages":     {RFC0002, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","content":1,"ts":0,"x":1},"reducer":"applyMessage","writtenAt":"2026-05-19T10:00:01.000Z"}`)},
		"a message without words": {RFC0002, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","to":"b","ts":0}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			events := decodeAll(t, Options{Profile: c.p}, c.lines)
			out, losses := encodeAll(t, c.p, events)
			require.Equal(t, c.lines, out)
			require.Empty(t, losses)
		})
	}
	_, losses := converted(t, SchemaV1, SchemaV2, documents("channel.written", `{"channel":"messages","value":{"messageId":"m1","from":"a","to":"b","content":1,"ts":0},"reducer":"vendor.acme","writtenAt":"yesterday"}`))
	require.Equal(t, []string{"altered /openwop/~1payload~1reducer", "dropped /openwop/~1payload~1writtenAt"}, losses)
	_, losses = rewritten(t, RFC0002, []agentevents.Event{{ID: "e1", RunID: "r", Time: t0, SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.Unknown{Type: "acme.x"}}})
	require.Equal(t, []string{"made up /payload"}, losses)
	_, losses = converted(t, RFC0002, SchemaV1, documents("agent.toolCalled", `{"agentId":"abc","toolId":"t","callId":"c","arguments":1,"toolName":"t","inputs":2}`))
	require.Equal(t, []string{"dropped /openwop/~1payload~1inputs", "dropped /openwop/~1payload~1toolName"}, losses)
}

// An original line is copied only if it has the form of the profile. Its content
// is not listed.
func TestLossesOfVerbatim(t *testing.T) {
	read := func(p Profile, lines string) []agentevents.Event {
		var events []agentevents.Event
		for ev, err := range agentevents.NewReader(strings.NewReader(lines), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Profile: p}), Verbatim: true}).All() {
			require.NoError(t, err)
			events = append(events, ev)
		}
		return events
	}
	out, losses := rewritten(t, SchemaV1, read(RFC0002, documents("run.completed", `{"outputs": 1}`)))
	require.Equal(t, `run.completed {"outputs":{"value":1}}`, out)
	require.Equal(t, []string{"altered /payload/outputs"}, losses)
	out, losses = rewritten(t, SchemaV2, read(RFC0002, documents("run.paused", `{"agentId": "a"}`)))
	require.Equal(t, `run.paused {}`, out)
	require.Equal(t, []string{"dropped /agentId"}, losses)
	_, losses = rewritten(t, SchemaV1, read(RFC0002, documents("agent.reasoning.delta", `{"agentId": "abc","delta":"d"}`)))
	require.Equal(t, []string{"made up /payload/index"}, losses)

	both := documents("agent.toolReturned", `{"agentId":"abc","toolId":"t","callId":"c","result":1,"error":{"code":"c","message":"m"},"durationMs":1.5}`)
	events := read(RFC0002, both)
	text, lost := encodeAll(t, RFC0002, events)
	require.Equal(t, both, text)
	require.Empty(t, lost)
	events[0].Payload.(*agentevents.ToolReturned).Result = "2"
	_, losses = rewritten(t, RFC0002, events)
	require.Equal(t, []string{"altered /payload/result"}, losses)

	failed := documents("agent.toolReturned", `{"agentId":"abc","toolId":"t","callId":"c","error":{"code":"c","message":"m"}}`)
	events = read(RFC0002, failed)
	events[0].Payload.(*agentevents.ToolReturned).Status = agentevents.ToolStatusCancelled
	text, lost = encodeAll(t, RFC0002, events)
	require.Equal(t, failed, text)
	require.Len(t, lost, 1, "the line is the same, but not the event")

	first := strings.Replace(documents("run.paused", `{}`), `"schemaVersion":2`, `"schemaVersion":1`, 1)
	events = read(SchemaV2, first)
	text, lost = encodeAll(t, SchemaV2, events)
	require.Equal(t, first, text)
	require.Empty(t, lost)
	events[0].SessionID = "s"
	_, losses = rewritten(t, SchemaV2, events)
	require.Equal(t, []string{"dropped /sessionId"}, losses)
}

// Content that the schemas do not allow is dropped and listed.
func TestValuesThatTheSchemasForbid(t *testing.T) {
	const id = `"interruptId":"acme/int-000000000001"`
	long := strings.Repeat("é", 65)
	both := []Profile{SchemaV1, SchemaV2}
	artifacts := []string{"made up /openwop/~1payload~1artifactId", "made up /openwop/~1payload~1artifactType", "made up /openwop/~1payload~1actions"}
	v2, spelled := both[1:], []string{"dropped /openwop/~0spelled"}
	for name, c := range map[string]struct {
		profiles          []Profile
		typ, payload, out string // out is without the type
		losses            []string
	}{
		"a decision": {both, "runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"ask-user","prompt":"?","urgency":"high"}}`,
			`{"agentId":"abc","decision":{"kind":"ask-user","prompt":"?"}}`, []string{"altered /payload/decision"}},
		"the inputs of version 2": {both[:1], "runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":["a"],"nextWorkerInputs":[{}]}}`,
			`{"agentId":"abc","decision":{"kind":"next-worker","nextWorkerIds":["a"]}}`, []string{"altered /payload/decision"}},
		"criteria": {v2, "runOrchestrator.decided", `{"agentId":"abc","decision":{"kind":"terminate","successCriteria":[{"key":"k","met":true},{"key":"k","why":1,"met":true}]}}`,
			`{"agentId":"abc","decision":{"kind":"terminate","successCriteria":[{"key":"k","met":true},{"key":"k","met":true}]}}`,
			[]string{"altered /payload/decision"}},
		"a long reason": {v2, "node.suspended", `{"nodeId":"n1",` + id + `,"reason":"` + long + `"}`, `{"nodeId":"n1",` + id + `,"reason":"` + long[:128] + `"}`,
			[]string{"altered /payload/reason"}},
		"no reason": {v2, "node.suspended", `{"nodeId":"n1",` + id + `,"reason":""}`, `{"nodeId":"n1",` + id + `}`, spelled},
		"a key":     {both, "node.suspended", `{"nodeId":"n1",` + id + `,"key":""}`, `{"nodeId":"n1",` + id + `}`, []string{"altered /payload/details"}},
		"an approval": {both[:1], "approval.requested", `{"nodeId":"n1",` + id + `}`,
			`{"nodeId":"n1",` + id + `,"artifactId":"acme/int-000000000001","artifactType":"action","actions":["accept","reject"]}`, artifacts},
		"an approval of a call": {both[:1], "approval.requested", `{"nodeId":"n1",` + id + `,"callId":"c"}`,
			`{"nodeId":"n1",` + id + `,"artifactId":"c","artifactType":"tool-call","actions":["accept","reject"],"callId":"c"}`, artifacts},
		"no questions": {v2, "clarification.requested", `{"nodeId":"n1",` + id + `,"questions":[]}`,
			`{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q1","question":"?"}]}}`, []string{"made up /payload/questions/*"}},
		"an empty question": {v2, "clarification.requested", `{"nodeId":"n1",` + id + `,"questions":[{"id":"","question":""}]}`,
			`{"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q1","question":"?"}]}}`,
			[]string{"made up /payload/questions/*/id", "made up /payload/questions/*/question"}},
		"an empty word": {both, "agent.reasoned", `{"agentId":"abc","reasoning":"","verbosity":""}`, `{"agentId":"abc","reasoning":""}`, spelled},
		"no agent":      {both, "agent.reasoned", `{"reasoning":""}`, `{"agentId":"core.system","reasoning":""}`, []string{"made up /agentId", "made up /openwop/~0absent"}},
		"no error":      {both, "run.failed", `{"error":{}}`, `{"error":{"code":"error","message":"error"}}`, []string{"made up /payload/error/code", "made up /payload/error/message", "made up /openwop/~0absent"}},
		"an empty code": {both, "run.failed", `{"error":{"code":"","message":"m"}}`, `{"error":{"code":"error","message":"m"}}`, append(spelled, "made up /payload/error/code")},
		"an empty resolution": {v2, "interrupt.resolved", `{"nodeId":"n1",` + id + `,"kind":"approval","decision":"granted","reason":""}`,
			`{"nodeId":"n1",` + id + `,"kind":"approval","decision":"granted"}`, spelled},
	} {
		for _, p := range c.profiles {
			out, losses := converted(t, RFC0002, p, documents(c.typ, c.payload))
			_, out, _ = strings.Cut(out, " ")
			require.Equal(t, c.out, out, name)
			require.ElementsMatch(t, c.losses, losses, name)
		}
	}

	for _, p := range both {
		out, losses := converted(t, RFC0002, p, documents("node.suspended", `{"nodeId":"n1","interruptId":5}`))
		require.NotContains(t, out, `"interruptId":5`)
		require.Contains(t, out, `"interruptId":"`)
		require.Equal(t, []string{"altered /payload/details"}, losses)

		text, lost := encodeAll(t, p, decodeAll(t, Options{}, strings.Replace(documents("run.paused", `{}`), `"schemaVersion":2`, `"schemaVersion":2.5,"engineVersion":1.5`, 1)))
		require.NotContains(t, text, ".5")
		require.NotEmpty(t, lost)

		text, _ = encodeAll(t, p, decodeAll(t, Options{}, `{"eventId":"evt-0000000000001","runId":"r","type":"acme.x","sequence":0}`))
		require.Contains(t, text, `"timestamp"`)
		require.Contains(t, text, `"payload":{}`)
	}

	// Extra members of an interrupt that the form of its profile does not have are dropped.
	line := documents("interrupt.requested",
		`{"kind":"clarification","key":"acme/int-000000000001","data":{"foo":1,"contextType":"c","questions":[{"id":"q","question":"?","hint":1}]}}`)
	out, losses := converted(t, SchemaV1, SchemaV2, strings.Replace(line, "acme/run-000000000001", "r", 1))
	require.Equal(t, `interrupt.requested {"kind":"clarification","key":"acme/int-000000000001","data":{"questions":[{"id":"q","question":"?"}],"contextType":"c"}}`, out)
	require.Len(t, losses, 5, "and the id of the run, the type, and the profile that the line broke")
}

// A value that a line needs and an event lacks is made up and listed.
func TestMadeUpValues(t *testing.T) {
	message := &agentevents.MessageCreated{Message: agentevents.ConversationMessage{MessageID: "m", From: "abc", TS: 1}}
	for _, c := range []struct {
		p       Profile
		payload agentevents.Payload
		extra   agentevents.JSON
		out     string
		losses  []string
	}{
		{RFC0002, &agentevents.AgentDecided{Decision: "1"}, "", `agent.decided {"agentId":"n 1","decision":1}`, []string{"made up /agentId"}},
		{SchemaV2, &agentevents.AgentDecided{Decision: "1"}, "", `agent.decided {"agentId":"` + NormalizeID(SchemaV2, AgentID, "n 1") + `","decision":1}`,
			[]string{"made up /agentId", "altered /nodeId", "made up /openwop/schemaVersion"}},
		{SchemaV1, message, `{"~type":"conversation.exchanged"}`, `conversation.exchanged {"conversationId":"unknown","turnIndex":0,"turn":{"messageId":"m","from":"abc","ts":1}}`,
			[]string{"made up /openwop/~1payload~1conversationId", "made up /openwop/~1payload~1turnIndex"}},
	} {
		ev := agentevents.Event{ID: "evt-0000000000001", RunID: "acme/run-000000000001", Time: t0, SchemaVersion: agentevents.SchemaVersion, Payload: c.payload}
		ev.NodeID, ev.NodeRunID = "n 1", "x"
		if c.extra != "" {
			require.NoError(t, ev.SetExtra(string(Name), c.extra))
		}
		out, losses := rewritten(t, c.p, []agentevents.Event{ev})
		require.Equal(t, c.out, out)
		require.ElementsMatch(t, append(c.losses, "dropped /nodeRunId"), losses)
	}
}

// Version 1 has the payload of an interrupt only under the types of interrupts.
func TestTypesOfInterrupts(t *testing.T) {
	out, losses := converted(t, RFC0002, SchemaV1, documents("clarification.requested", `{"kind":"clarification","key":"k","data":{"foo":1,"questions":[{"id":"q","question":"?"}]}}`))
	require.Equal(t, `interrupt.requested {"kind":"clarification","key":"k","data":{"questions":[{"id":"q","question":"?"}]}}`, out)
	require.ElementsMatch(t, []string{"dropped /openwop/~1payload~1data~1foo", "dropped /openwop/~0type"}, losses)
}

// The key of an interrupt is a text. It stays as it is even if it is
// not an interrupt id.
func TestKeysOfInterrupts(t *testing.T) {
	const key = `"key":"acme/run-000000000001:n1:0"`
	for _, line := range []string{
		`{"eventId":"acme/evt-000000000001","runId":"acme/run-000000000001","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","schemaVersion":1,"type":"interrupt.requested","nodeId":"n1","payload":{"kind":"clarification",` + key + `,"data":{"questions":[{"id":"q1","question":"?"}]}}}`,
		`{"eventId":"acme/evt-000000000001","runId":"acme/run-000000000001","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","schemaVersion":1,"type":"interrupt.requested","nodeId":"n1","payload":{"kind":"approval",` + key + `,"data":{"title":"t","artifactId":"a1","artifactType":"doc","actions":["accept"]}}}`,
	} {
		events, err := NewDecoder(Options{Profile: SchemaV2}).Decode(nil, []byte(line))
		require.NoError(t, err)
		require.Len(t, events, 1)
		out, err := NewEncoder(EncoderOptions{Profile: SchemaV2}).Append(nil, events[0])
		require.NoError(t, err)
		require.Contains(t, string(out), key)
		long := strings.Repeat("k", 257)
		for _, c := range []struct {
			from, to  Profile
			was, want string
		}{
			{SchemaV2, SchemaV2, long, NormalizeID(SchemaV2, InterruptID, long)}, {RFC0002, RFC0002, long, long},
			{RFC0002, SchemaV2, "k", "k"}, {SchemaV2, SchemaV2, "", "a6e9bb96-"}, // derived from the event
		} {
			text, _ := converted(t, c.from, c.to, strings.Replace(line, key, `"key":"`+c.was+`"`, 1))
			require.Contains(t, text, `"key":"`+c.want)
		}
	}
}

// Details that no member can hold are listed.
func TestLossesOfDetails(t *testing.T) {
	for _, c := range []struct {
		details, out string // out is under the RFC
		losses, v2   string
	}{
		{`{"nodeId":1}`, `{"nodeId":"n1"}`, "dropped /payload/details", "altered /payload/details"},
		{`{"reason":1}`, `{"nodeId":"n1","reason":1}`, "", "altered /payload/details"},
		{`{"reason":"x"}`, `{"nodeId":"n1"}`, "dropped /payload/details", "altered /payload/details"},
		{`{"agentId":1}`, `{"nodeId":"n1","agentId":1}`, "", "altered /payload/details"},
		{`{"agentId":"x"}`, `{"nodeId":"n1"}`, "dropped /payload/details", "altered /payload/details"},
		{`{"kind":"x"}`, `{"nodeId":"n1","kind":"x"}`, "", "altered /payload/details"},
		{`{"kind":"custom","x-a":1}`, `{"nodeId":"n1","kind":"custom","x-a":1}`, "", "altered /payload/details"},
		{`{"reason":1,"agentId":1,"of both":1}`, `{"nodeId":"n1","reason":"r","agentId":"abc","of both":1}`, "altered /payload/details", "altered /payload/details dropped /agentId"},
		{`{}`, `{"nodeId":"n1"}`, "dropped /payload/details", "made up /payload/details"}, // version 2 adds an interruptId
		{`[1]`, `{"nodeId":"n1","details":[1]}`, "altered /payload/details", "altered /payload/details"},
		{`{"a":1}`, `{"nodeId":"n1","a":1}`, "", "altered /payload/details"},
	} {
		ev := agentevents.Event{
			ID: "evt-0000000000001", RunID: "acme/run-000000000001", Time: t0, SchemaVersion: agentevents.SchemaVersion,
			Payload: &agentevents.NodeSuspended{Details: agentevents.JSON(c.details)},
		}
		ev.NodeID = "n1"
		if strings.Contains(c.details, "of both") {
			ev.AgentID, ev.Payload.(*agentevents.NodeSuspended).Reason = "abc", "r"
		}
		out, losses := rewritten(t, RFC0002, []agentevents.Event{ev})
		require.Equal(t, "node.suspended "+c.out, out)
		slices.Sort(losses)
		require.Equal(t, c.losses, strings.Join(losses, " "))
		require.NoError(t, ev.SetExtra(string(Name), `{"schemaVersion":1}`))
		_, losses = rewritten(t, SchemaV2, []agentevents.Event{ev})
		slices.Sort(losses)
		require.Equal(t, c.v2, strings.Join(losses, " "))
	}
}

// An answer names the interrupt as the question did, even if the key was too
// long.
func TestLongKeysAreAnswered(t *testing.T) {
	long := strings.Repeat("é", 257)
	var events []agentevents.Event
	for i, p := range []agentevents.Payload{
		&agentevents.ClarificationRequested{InterruptID: long, Questions: []agentevents.Question{{ID: "q", Question: "?"}}},
		&agentevents.ClarificationResolved{InterruptID: long, Answers: `{}`},
		&agentevents.ApprovalRequested{ApprovalID: long + "2", Action: "a"}, &agentevents.ApprovalGranted{ApprovalID: long + "2"},
	} {
		ev := agentevents.Event{ID: "evt-000000000000" + string(rune('0'+i)), RunID: "r", Sequence: uint64(i), SchemaVersion: agentevents.SchemaVersion, Payload: p}
		ev.NodeID = "n1"
		typ := []string{"requested", "resolved"}[i%2]
		require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON(`{"~type":"interrupt.`+typ+`"}`)))
		events = append(events, ev)
	}
	for _, p := range []Profile{SchemaV1, SchemaV2} {
		text, losses := encodeAll(t, p, events)
		back := decodeAll(t, Options{Profile: p, Strict: true}, text)
		require.Equal(t, back[0].Payload.(*agentevents.ClarificationRequested).InterruptID, back[1].Payload.(*agentevents.ClarificationResolved).InterruptID)
		require.Equal(t, back[2].Payload.(*agentevents.ApprovalRequested).ApprovalID, back[3].Payload.(*agentevents.ApprovalGranted).ApprovalID)
		require.False(t, foldOf(t, back).Clarifications[0].Open)
		altered := 0
		for _, l := range losses {
			if l.Pointer == "/payload/interruptId" || l.Pointer == "/payload/approvalId" {
				altered++
			}
		}
		require.Equal(t, 4, altered)
	}
}

// Extra members of a decision are dropped, whatever they are.
func TestDecisionsWithStrangeMembers(t *testing.T) {
	for _, c := range []struct {
		profiles      []Profile
		decision, out string
		refusedV2     bool
	}{
		{[]Profile{SchemaV1}, `{"kind":"next-worker","nextWorkerIds":["abc"],"nextWorkerInputs":5}`, `{"kind":"next-worker","nextWorkerIds":["abc"]}`, true},
		{[]Profile{SchemaV1, SchemaV2}, `{"kind":"ask-user","prompt":"?","reason":"","confidence":7,"nextWorkerIds":1}`, `{"kind":"ask-user","prompt":"?"}`, false},
		{[]Profile{SchemaV1}, `{"kind":"terminate","successCriteria":1}`, `{"kind":"terminate"}`, true},
	} {
		lines := documents("runOrchestrator.decided", `{"agentId":"abc","decision":`+c.decision+`}`)
		for _, p := range c.profiles {
			out, losses := converted(t, RFC0002, p, lines)
			require.Equal(t, documentOf(p).Row(agentevents.KindOrchestratorDecided).Type+` {"agentId":"abc","decision":`+c.out+`}`, out)
			require.Equal(t, []string{"altered /payload/decision"}, losses)
		}
		if c.refusedV2 {
			_, err := NewEncoder(EncoderOptions{Profile: SchemaV2}).Append(nil, decodeAll(t, Options{}, lines)[0])
			require.Error(t, err, "version 2 has the member")
		}
	}
}

// A line without the id of its interrupt is written without one, unless a program has given the
// interrupt another id than readers make up.
func TestIDsOfInterruptsThatAProgramSets(t *testing.T) {
	log := documents("clarification.requested", `{"nodeId":"n1","questions":[{"id":"q", "question":"?"}]}`, "clarification.resolved", `{"nodeId":"n1","answers":{}}`,
		"clarification.resolved", `{"nodeId":"n1","answers":{}}`)
	for _, p := range []Profile{RFC0002, SchemaV1} {
		for _, verbatim := range []bool{false, true} {
			events := eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Profile: p}), Verbatim: verbatim}).Events()
			asked, answered := events[0].Payload.(*agentevents.ClarificationRequested), events[1].Payload.(*agentevents.ClarificationResolved)
			require.Equal(t, asked.InterruptID, answered.InterruptID)
			require.NotEqual(t, asked.InterruptID, events[2].Payload.(*agentevents.ClarificationResolved).InterruptID, "it is answered")
			out, losses := encodeAll(t, p, events)
			require.Equal(t, log, strings.ReplaceAll(out, `"q","question"`, `"q", "question"`))
			require.Equal(t, verbatim, out == log)
			require.Empty(t, losses)

			asked.InterruptID, answered.InterruptID = "mine", "mine"
			out, losses = encodeAll(t, p, events)
			require.Equal(t, 1, strings.Count(out, `"interruptId":"mine"`), "readers know which question is answered")
			require.Len(t, losses, 1)
			require.Equal(t, "/openwop/~0absent", losses[0].Pointer, "the question has an id now")
			back := decodeAll(t, Options{Profile: p}, out)
			require.Equal(t, "mine", back[1].Payload.(*agentevents.ClarificationResolved).InterruptID)
			require.Equal(t, events[2].Payload, back[2].Payload)

			asked.InterruptID = "other" // the answer is to another question than a reader would take
			out, _ = encodeAll(t, p, events[:2])
			require.Equal(t, "mine", decodeAll(t, Options{Profile: p}, out)[1].Payload.(*agentevents.ClarificationResolved).InterruptID)
		}
	}
}
