package kaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
)

// losses returns the pointers of an encoder's losses, each after its change.
func losses(e *Encoder) (list []string) {
	for _, l := range e.Losses() {
		list = append(list, l.What.String()+" "+l.Pointer)
	}
	return list
}

func native(p agentevents.Payload) agentevents.Event {
	return agentevents.Event{Time: anchor, RunID: "r", Scope: agentevents.Scope{SessionID: "s"}, AgentID: "a", SpanID: "p1", SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

// readVerbatim returns the events of a log, each with its line.
func readVerbatim(t *testing.T, log string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(testOptions), Verbatim: true}).Events()
}

// In every kind, attributes of a wrong type come back unchanged.
func TestOddAttributesComeBack(t *testing.T) {
	for _, line := range []string{
		spanLine("step", "start", "step.s1", "null", "null", "null", `{"step_id":"s1","description":null}`),
		spanLine("step", "complete", "step.s1", "null", "null", "null", `{"step_id":"s1","result_summary":null,"is_error":null}`),
		spanLine("subagent", "start", "subagent.a", "null", "null", "null", `{"subagent_name":"a","task":null}`),
		spanLine("subagent", "complete", "subagent.a", "null", "null", "null", `{"subagent_name":"a","result_summary":{"x":1}}`),
		spanLine("handoff", "start", "handoff.b", "null", "null", "null", `{"from_agent":"a","to_agent":"b","reason":7}`),
		spanLine("tool_call", "complete", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c","result_summary":null,"is_error":null}`),
	} {
		e := NewEncoder(encoderOptions)
		out, err := e.Append(nil, decodeOne(t, testOptions, line))
		require.NoError(t, err)
		require.Equal(t, line+"\n", string(out))
		for _, l := range losses(e) {
			require.Contains(t, []string{"dropped /id", "made up /payload/oneEvent"}, l, line)
		}
	}
	// A field replaces an extra member whose value the field can have.
	ev := decodeOne(t, testOptions, spanLine("tool_call", "error", "tool.x", "null", "null", `"m"`, `{"tool_name":"x","call_id":"c","is_error":true}`))
	p := *ev.Payload.(*agentevents.ToolReturned)
	p.Status, p.Error = agentevents.ToolStatusOK, agentevents.Opt[agentevents.ErrorInfo]{}
	ev.Payload = &p
	require.Equal(t, agentevents.ToolStatusOK, decodeOne(t, testOptions, encodeOne(t, encoderOptions, ev)).Payload.(*agentevents.ToolReturned).Status)
}

func TestManyAttributes(t *testing.T) {
	var b strings.Builder
	for i := range 3000 {
		b.WriteString(`,"x` + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	line := spanLine("tool_call", "complete", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c","result_summary":"","is_error":false`+b.String()+`}`)
	require.Equal(t, line+"\n", encodeOne(t, encoderOptions, decodeOne(t, testOptions, line)))
}

func TestMisreadFactsAreListed(t *testing.T) {
	start := &agentevents.AgentStarted{Task: "t"}
	span := func(id string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.SpanID = id
		return ev
	}
	child := native(start)
	child.ParentAgentID = "a"
	for _, c := range []struct {
		events []agentevents.Event
		want   []string
	}{
		{[]agentevents.Event{child}, []string{"made up /kaos/agent_id", "dropped /parentAgentId"}},
		{[]agentevents.Event{span("p1", start), span("p2", start), span("p2", &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted})},
			[]string{"dropped /agentId", "made up /kaos/~1attributes~1subagent_name", "dropped /agentId", "made up /payload/agent"}},
		{[]agentevents.Event{span("p1", start), span("p1", &agentevents.AgentEnded{}), span("p2", start)}, nil},
		{[]agentevents.Event{
			span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}), span("p2", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
			span("p2", &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK}),
		}, []string{"made up /kaos/~1attributes~1call_id", "altered /payload/callId", "made up /kaos/~1attributes~1call_id", "altered /payload/callId"}},
		{[]agentevents.Event{span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}), span("c", &agentevents.ToolCalled{CallID: "c", ToolID: "x"})}, nil},
		{[]agentevents.Event{
			span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
			span("p1", &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true, Arguments: `[]`}),
		}, []string{"made up /kaos/~1attributes~1arguments", "dropped /payload/arguments", "dropped /payload/oneEvent"}},
		{[]agentevents.Event{
			span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
			span("p2", &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK}), // another span
			span("p3", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
		}, []string{"made up /kaos/~1attributes~1call_id", "altered /payload/callId", "made up /payload/oneEvent"}},
		{[]agentevents.Event{
			span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
			span("p1", &agentevents.ToolReturned{CallID: "d", ToolID: "x", Status: agentevents.ToolStatusOK}),
		}, []string{"made up /kaos/~1attributes~1call_id", "altered /payload/callId"}},
		{[]agentevents.Event{span("p1", start), func() agentevents.Event {
			ev := span("p1", &agentevents.AgentEnded{})
			ev.AgentID = "b"
			return ev
		}()}, []string{"altered /agentId", "made up /kaos/~1attributes~1subagent_name"}},
		{[]agentevents.Event{ // the second call takes the first one's span, so the id is free again
			span("p1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}), span("p1", &agentevents.ToolCalled{CallID: "d", ToolID: "x"}),
			span("p2", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}),
		}, nil},
		{[]agentevents.Event{native(&agentevents.ClarificationRequested{Questions: []agentevents.Question{{Question: "q"}}})},
			[]string{"made up /kaos/escalation_id", "made up /payload/interruptId", "made up /payload/questions/*/id", "dropped /spanId"}},
		{[]agentevents.Event{native(&agentevents.ToolCalled{CallID: "c"})}, []string{"altered "}},
		{[]agentevents.Event{native(&agentevents.ToolCalled{ToolID: "x"})}, []string{"made up /payload/callId"}},
		{[]agentevents.Event{native(&agentevents.StepStarted{Name: "n"})}, []string{"made up /payload/stepId"}},
	} {
		e := NewEncoder(encoderOptions)
		var out []byte
		var err error
		for i, ev := range c.events {
			ev.Sequence = uint64(i)
			out, err = e.Append(out, ev)
			require.NoError(t, err)
		}
		require.Equal(t, c.want, losses(e))
		kept := false
		for _, ev := range decodeAll(t, string(out)) {
			kept = kept || ev.Extra(string(Name)) != ""
		}
		require.Equal(t, kept, strings.Contains(fmt.Sprint(c.want), "made up /kaos"), "%s%v", out, c.want)
	}
	var rule *agentevents.RuleError
	_, err := NewEncoder(encoderOptions).Append(nil, native((*agentevents.ToolCalled)(nil)))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, agentevents.RulePayload, rule.Rule)
}

// Readers know a call or an agent by the lines before, which may differ from the events.
func TestNamesThatReadersKnow(t *testing.T) {
	agent := func(id, span string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.SpanID = id, span
		return ev
	}
	called := func(span string) agentevents.Event {
		return agent("a", span, &agentevents.ToolCalled{CallID: "c", ToolID: "x"})
	}
	named := &agentevents.AgentStarted{Agent: agentevents.Some(agentevents.AgentRef{AgentID: "a"})}
	end := &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted}
	node := agent("", "p1", end)
	node.NodeID = "n"
	kept := agent("", "p2", end)
	require.NoError(t, kept.SetExtra(string(Name), `{"/attributes/subagent_name":"a"}`))
	of := func(parent string, ev agentevents.Event) agentevents.Event {
		ev.ParentAgentID = parent
		return ev
	}
	own := of("lead", agent("a", "p1", end))
	require.NoError(t, own.SetExtra(string(Name), `{"agent_id":"a"}`))
	asked := agent("a", "", &agentevents.ClarificationRequested{InterruptID: "x", Questions: []agentevents.Question{{ID: "x", Question: "q"}}})
	require.NoError(t, asked.SetExtra(string(Name), `{"escalation_id":""}`))
	for _, c := range []struct {
		name   string
		events []agentevents.Event
		want   []string
	}{
		{`an end without a parent: "agent_id":"lead"`, []agentevents.Event{of("lead", agent("a", "p1", &agentevents.AgentStarted{})), agent("a", "p1", end)},
			[]string{"made up /parentAgentId"}},
		{"an end without the parent that nobody knows", []agentevents.Event{of(Root, agent("a", "p1", &agentevents.AgentStarted{})), agent("a", "p1", end)},
			[]string{"dropped /parentAgentId"}},
		{`a question that got an id: "escalation_id":"x"`, []agentevents.Event{asked}, []string{"dropped /kaos/escalation_id"}},
		{`an error without a code: "error_type":null,"error_message":"m"`, []agentevents.Event{
			called("p1"), agent("a", "p1", &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusError, Error: failure("", "m")}),
		}, nil},
		{"an agent that no longer works for itself", []agentevents.Event{own}, []string{"dropped /kaos/agent_id"}},
		{"an agent that only its payload names", []agentevents.Event{agent("", "p1", named), agent("a", "p2", &agentevents.AgentStarted{})},
			[]string{"made up /agentId", "dropped /agentId", "dropped /payload/agent", "made up /payload/agent"}},
		{"another agent of the name is open, too", []agentevents.Event{agent("a", "p1", &agentevents.AgentStarted{}), agent("", "p2", named), agent("", "p2", end)}, nil},
		{"the first of two calls is open when the second one has ended", []agentevents.Event{
			called("p1"), called("p2"), agent("a", "p2", &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK}), called("p3"),
		}, []string{"made up /kaos/~1attributes~1call_id", "altered /payload/callId", "made up /kaos/~1attributes~1call_id", "altered /payload/callId"}},
		{"an end without an agent", []agentevents.Event{agent("a", "p1", &agentevents.AgentStarted{}), agent("", "p1", end)}, []string{"made up /agentId"}},
		{"an end with only a node", []agentevents.Event{agent("", "p1", &agentevents.AgentStarted{}), node},
			[]string{"made up /kaos/~1attributes~1subagent_name", "dropped /nodeId"}},
		{"the span of a sub-agent does not belong to the root agent", []agentevents.Event{
			agent(Root, "p1", &agentevents.SpanRecorded{Subject: "subagent", Phase: "error"}), of(Root, agent("a", "p2", &agentevents.AgentStarted{})),
		}, []string{"dropped /parentAgentId", "altered ", "dropped /agentId", "made up /kaos/name", "dropped /payload/subject"}},
		{"a name that was kept for the other agent", []agentevents.Event{kept}, []string{"made up /agentId", "dropped /kaos/~1attributes~1subagent_name"}},
	} {
		e, line := NewEncoder(encoderOptions), []byte(nil)
		for i, ev := range c.events {
			ev.Sequence = uint64(i)
			var err error
			line, err = e.Append(line[:0], ev)
			require.NoError(t, err)
		}
		require.Equal(t, c.want, losses(e), c.name)
		_, said, _ := strings.Cut(c.name, ": ")
		require.Contains(t, string(line), said)
	}
}

// A verbatim line has no losses, whatever it lacks.
func TestVerbatimLosesNothing(t *testing.T) {
	first := head + `"content":"a","type":"text_delta"}`
	for _, line := range []string{
		`{"timestamp":101.5,"session_id":"s","run_id":"run_0123456789ab","content":"b","type":"text_delta"}`,
		`{"timestamp":101.5,"sequence":1,"run_id":"run_0123456789ab","content":"b","type":"text_delta"}`,
		`{"timestamp":101.5,"sequence":7,"session_id":"s","content":"b","type":"text_delta"}`,
		strings.Replace(spanLine("subagent", "start", "subagent.a", "null", "null", "null", `{"subagent_name":"a","task":7}`), `"sequence":0`, `"sequence":1`, 1),
	} {
		e := NewEncoder(encoderOptions)
		var out []byte
		for _, ev := range readVerbatim(t, first+"\n"+line) {
			var err error
			out, err = e.Append(out, ev)
			require.NoError(t, err, line)
		}
		require.Equal(t, first+"\n"+line+"\n", string(out))
		require.Empty(t, e.Losses(), line)
	}
	// A changed event is not written verbatim.
	log := spanLine("step", "complete", "step.s1", "null", "null", "null", `{"result_summary":"","is_error":false}`)
	ev := readVerbatim(t, log)[0]
	require.Equal(t, log+"\n", encodeOne(t, encoderOptions, ev))
	p := *ev.Payload.(*agentevents.StepEnded)
	p.StepID = "system"
	ev.Payload = &p
	require.Contains(t, encodeOne(t, encoderOptions, ev), `"step_id":"system"`)
	ev.RunID = ""
	_, err := NewEncoder(encoderOptions).Append(nil, ev)
	require.Error(t, err)
}

func TestPlacesOfErrors(t *testing.T) {
	d := NewDecoder(Options{Strict: true})
	var rule *agentevents.RuleError
	_, err := d.Decode(nil, []byte(head+`"steps":[{"step_id":"s1","description":"","tool_name":null}],"strategy":"","type":"plan_proposed"}`))
	require.NoError(t, err, "empty is not missing")
	_, err = d.Decode(nil, []byte(head+`"steps":[{"step_id":"s1","tool_name":null}],"strategy":"","type":"plan_proposed"}`))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, "/steps/0/description", rule.Pointer)
	for _, err := range agentevents.NewReader(strings.NewReader(strings.Replace(goldens[0].line, "1001.25", "1e14", 1)), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Strict: true})}).All() {
		var le *agentevents.LineError
		require.ErrorAs(t, err, &le)
		require.Equal(t, "/timestamp", le.Pointer)
	}
}

// Agents that differ only in their node stay apart.
func TestAgentsOfNodes(t *testing.T) {
	at := func(node, execution string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.SpanID, ev.NodeID, ev.NodeRunID = "", "", node, execution
		return ev
	}
	e := NewEncoder(encoderOptions)
	var log []byte
	for i, ev := range []agentevents.Event{
		at("n", "n-1", &agentevents.AgentStarted{Task: "t"}), at("n", "n-2", &agentevents.AgentStarted{Task: "t"}), at("m", "", &agentevents.AgentStarted{Task: "t"}),
		at("n", "n-1", &agentevents.ToolCalled{CallID: "c", ToolID: "x"}), at("n", "n-1", &agentevents.AgentEnded{Result: "r"}),
	} {
		var err error
		ev.Sequence = uint64(i)
		log, err = e.Append(log, ev)
		require.NoError(t, err)
	}
	var agents []string
	for _, ev := range decodeAll(t, string(log)) {
		agents = append(agents, ev.AgentID)
	}
	require.Equal(t, []string{"n", "n-2", "m", "n", "n"}, agents)
	require.Contains(t, losses(e), "made up /agentId")
}

// A refused event leaves no trace: no loss, and no span opened or closed.
func TestRefusedEventsLeaveNothing(t *testing.T) {
	refuse := func(e *Encoder, ev agentevents.Event) {
		out, err := e.Append([]byte("x"), ev)
		require.Error(t, err)
		require.Equal(t, "x", string(out))
	}
	bad := native(&agentevents.ToolCalled{CallID: "c", ToolID: "x", ArgsHash: "h", Arguments: "{bad"})
	bad.TaskID, bad.TraceID = "t", "t"
	e := NewEncoder(encoderOptions)
	refuse(e, bad)
	bad = native(&agentevents.TextDelta{BlockID: "b"})
	bad.RunID = ""
	refuse(e, bad)
	require.Empty(t, e.Losses())

	// An end finds no start that was refused.
	returned := &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK}
	e = NewEncoder(encoderOptions)
	refuse(e, native(&agentevents.ToolCalled{CallID: "c", ToolID: "x", Arguments: "{bad"}))
	_, err := e.Append(nil, native(returned))
	require.NoError(t, err)
	require.Equal(t, []string{"made up /payload/oneEvent"}, losses(e))

	// A refused end closes nothing, not even an old span.
	for _, between := range []int{0, 2 * maxRecent} {
		e = NewEncoder(encoderOptions)
		var out []byte
		add := func(ev agentevents.Event) {
			ev.SpanID = ""
			ev.Sequence = uint64(strings.Count(string(out), "\n"))
			out, err = e.Append(out, ev)
			require.NoError(t, err)
		}
		add(native(&agentevents.ToolCalled{CallID: "c", ToolID: "x"}))
		for i := range between {
			add(native(&agentevents.ToolCalled{CallID: "c" + strconv.Itoa(i), ToolID: "x"}))
		}
		ev := native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, Result: "{bad"})
		ev.SpanID = ""
		refuse(e, ev)
		add(native(returned))
		events := decodeAll(t, string(out))
		end := events[len(events)-1]
		require.Equal(t, events[0].SpanID, end.SpanID)
		require.False(t, end.Payload.(*agentevents.ToolReturned).OneEvent)
		require.NotContains(t, losses(e), "made up /payload/oneEvent")
		require.Len(t, e.open.recent, min(between, maxRecent))
	}

	// A refused second start leaves the first one open.
	e = NewEncoder(encoderOptions)
	_, err = e.Append(nil, native(&agentevents.ToolCalled{CallID: "c", ToolID: "x"}))
	require.NoError(t, err)
	again := native(&agentevents.ToolCalled{CallID: "c", ToolID: "x", Arguments: "{bad"})
	again.SpanID = "p2"
	refuse(e, again)
	end := native(returned)
	end.Sequence = 1
	_, err = e.Append(nil, end)
	require.NoError(t, err)
	require.Empty(t, e.Losses())
}

// rewritten checks that the lines of a log come back unchanged and without losses.
func rewritten(t *testing.T, log string) {
	t.Helper()
	e := NewEncoder(encoderOptions)
	var out []byte
	for _, ev := range readVerbatim(t, log) {
		var err error
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	require.Equal(t, log, string(out))
	require.Empty(t, e.Losses())
}

// Facts that the document has no place for are not lost if the line is written verbatim.
func TestVerbatimLinesLoseNothing(t *testing.T) {
	for _, line := range []string{
		head + `"call_id":"c","tool_name":"x","arguments":{},"reason":"","run_state_ref":"","type":"tool_call_approval_required"}`,
		head + `"kind":"summarized","section":"","item_count":0,"attributes":{"x":1},"odd":1,"type":"memory_event"}`,
		spanLine("tool_call", "complete", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c","result":"r"}`),
		spanLine("step", "error", "step.s", "null", `"E"`, `"m"`, `{"step_id":7,"result_summary":"r","tool_name":"x"}`),
		spanLine("subagent", "complete", "subagent.a", "null", "null", "null", `{"subagent_name":7}`),
		spanLine("turn", "start", "turn.1", "null", "null", "null", `{"turn_number":"one","tool_name":1}`),
	} {
		rewritten(t, line+"\n")
		rewritten(t, reversed(splitMembers(t, line))+"\n")
	}
	for _, g := range goldens {
		rewritten(t, g.line+"\n")
		rewritten(t, reversed(splitMembers(t, g.line))+"\n")
	}
	// A fact that was added to the event since is a loss.
	ev := readVerbatim(t, head+`"call_id":"c","tool_name":"x","arguments":{},"reason":"","run_state_ref":"","type":"tool_call_approval_required"}`)[0]
	ev.TaskID = "t"
	e := NewEncoder(encoderOptions)
	_, err := e.Append(nil, ev)
	require.NoError(t, err)
	require.Equal(t, []string{"dropped /taskId"}, losses(e), "but members added since are")
}

// A span without an id is written verbatim at any place in the log, even without
// its run.
func TestVerbatimSpansWithoutIDs(t *testing.T) {
	text := `{"timestamp":1.0,"sequence":0,"session_id":"s","run_id":"r","agent_id":null,"content":"x","type":"text_delta"}`
	for _, subject := range []string{"turn", "step", "tool_call", "subagent", "handoff", "judge"} {
		for _, id := range []string{"", `"span_id":"",`} {
			span := func(n int, run, phase string) string {
				return `{"timestamp":2.0,"sequence":` + strconv.Itoa(n) + `,"session_id":"s",` + run + `"subject":"` + subject + `","phase":"` + phase + `",` + id +
					`"attributes":{"tool_name":"x","call_id":"c","step_id":"1","subagent_name":"a","from_agent":"a","to_agent":"b"},"type":"span"}`
			}
			run := `"run_id":"r",`
			rewritten(t, strings.Join([]string{text, span(1, run, "start"), span(2, run, "complete"), span(3, run, "start"), span(4, run, "error"), ""}, "\n"))
			if id == "" { // without an id nothing opens: the span is recorded
				known := strings.Replace(span(0, run, "start"), `"attributes"`, `"span_id":"p","attributes"`, 1)
				rewritten(t, strings.Join([]string{known, span(1, run, "start"), span(2, run, "complete"), ""}, "\n"))
			}
			rewritten(t, strings.Join([]string{text, span(0, "", "start"), span(1, "", "start"), span(2, "", "complete"), ""}, "\n"))
		}
	}
}

// A closing phase finds its start by its span, whatever its agent is, and long
// after the start.
func TestVerbatimEndsOfOtherAgents(t *testing.T) {
	for _, between := range []int{0, 1, maxRecent, 2 * maxRecent} {
		for _, attributes := range []string{"{}", `{"call_id":"c","is_error":true}`} {
			span := func(n int, agent, phase, id, attributes string) string {
				return `{"timestamp":2.0,"sequence":` + strconv.Itoa(n) + `,"session_id":"s","run_id":"r","agent_id":` + agent + `,"subject":"tool_call","phase":"` + phase +
					`","span_id":"` + id + `","attributes":` + attributes + `,"type":"span"}` + "\n"
			}
			log := span(0, "null", "start", "sp1", `{"tool_name":"x","call_id":"c"}`)
			for i := range between {
				log += span(1+i, "null", "start", "other"+strconv.Itoa(i), `{"tool_name":"x","call_id":"c`+strconv.Itoa(i)+`"}`)
			}
			log += span(1+between, `"start"`, "complete", "sp1", attributes)
			rewritten(t, log)

			// Without the lines the events have the same facts, and the span is closed.
			e := NewEncoder(encoderOptions)
			var out []byte
			for _, ev := range decodeAll(t, log) {
				var err error
				out, err = e.Append(out, ev)
				require.NoError(t, err)
			}
			events := decodeAll(t, string(out))
			require.False(t, events[len(events)-1].Payload.(*agentevents.ToolReturned).OneEvent)
			require.NotContains(t, losses(e), "made up /payload/oneEvent")
			require.Len(t, e.open.recent, min(between, maxRecent))
			require.Len(t, e.check.open.recent, min(between, maxRecent))
			require.Equal(t, 2*max(0, between-maxRecent), e.open.others.Len())
		}
	}
}

// A decoder lists the values that it makes up, and makes up no time before 1970.
func TestDecoderLosses(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{head + `"content":"x","type":"text_delta"}`, nil},
		{`{"session_id":"s","run_id":"r","content":"x","type":"text_delta"}`, []string{"/sequence", "/timestamp"}},
		{strings.Replace(head, `"sequence":0`, `"sequence":7`, 1) + `"content":"x","type":"text_delta"}`, []string{"/sequence"}},
		{head + `"call_id":"c","tool_name":"x","arguments":[],"type":"tool_call_approval_required"}`, []string{"/payload/approvalId"}},
		{head + `"kind":"clarification_needed","reason":"why?","escalation_id":"e","type":"escalation_required"}`, []string{"/payload/questions/0/id"}},
		{head + `"kind":"clarification_needed","reason":"why?","type":"escalation_required"}`, []string{"/payload/interruptId", "/payload/questions/0/id"}},
		{spanLine("tool_call", "complete", "tool.x", "null", "null", "null", `{}`), []string{"/payload/callId", "/payload/status", "/payload/toolId"}},
		{spanLine("tool_call", "complete", "tool.x", "null", "null", "null", `{"tool_name":"x","call_id":"c","is_error":false}`), nil},
		{spanLine("step", "start", "step.s1", "null", "null", "null", `{}`), []string{"/payload/stepId"}},
		{spanLine("handoff", "start", "", "null", "null", "null", `{}`), nil},
	} {
		d := NewDecoder(testOptions)
		events, err := d.Decode(nil, []byte(c.line))
		require.NoError(t, err)
		require.GreaterOrEqual(t, events[0].Time.Year(), 1970)
		var made []string
		for _, l := range d.Losses() {
			require.Equal(t, "made up", l.What.String())
			made = append(made, l.Pointer)
		}
		require.ElementsMatch(t, append([]string{"/agentId", "/id"}, c.want...), made, c.line)
	}
	d := NewDecoder(Options{})
	_, err := d.Decode(nil, []byte(head+`"content":"x","type":"text_delta"}`))
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(d.Losses()), "/timestamp")

	e := NewEncoder(EncoderOptions{})
	ev := native(&agentevents.TextDelta{})
	ev.Time = time.Time{}
	line, err := e.Append(nil, ev)
	require.NoError(t, err)
	require.Contains(t, string(line), `{"timestamp":0.0,`)
	require.Contains(t, losses(e), "made up /timestamp")
}

// A whole block is one delta, unless its deltas are there.
func TestWholeBlocks(t *testing.T) {
	text := func(id, text string) agentevents.Payload { return &agentevents.TextCompleted{BlockID: id, Text: text} }
	delta := func(id, text string) agentevents.Payload { return &agentevents.TextDelta{BlockID: id, Delta: text} }
	reasoned := func(id, text string) agentevents.Payload {
		return &agentevents.AgentReasoned{BlockID: id, Reasoning: text}
	}
	for _, c := range []struct {
		name   string
		events []agentevents.Payload
		want   string // the deltas
	}{
		{"whole", []agentevents.Payload{text("1", "a"), reasoned("2", "b")}, "agent.text.delta a agent.reasoning.delta b"},
		{"without ids", []agentevents.Payload{text("", "a"), text("", "b"), delta("", "c"), text("", "c"), text("", "d")}, "agent.text.delta a agent.text.delta b agent.text.delta c agent.text.delta d"},
		{"deltas", []agentevents.Payload{delta("1", "a"), delta("1", "b"), text("1", "ab"), reasoned("1", "c"), text("1", "d")},
			"agent.text.delta a agent.text.delta b agent.reasoning.delta c agent.text.delta d"},
		{"deltas of reasoning", []agentevents.Payload{&agentevents.AgentReasoningDelta{BlockID: "1", Delta: "a"}, reasoned("1", "a")}, "agent.reasoning.delta a"},
		{"another attempt", []agentevents.Payload{delta("1", "a"), &agentevents.AgentEnded{}, text("1", "b")}, "agent.text.delta a agent.text.delta b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, out := NewEncoder(encoderOptions), []byte(nil)
			for i, p := range c.events {
				var err error
				out, err = e.Append(out, agentevents.Event{RunID: "r", AgentID: "a", Sequence: uint64(i), Time: anchor, Payload: p})
				require.NoError(t, err)
			}
			var got []string
			for _, ev := range decodeAll(t, string(out)) {
				switch p := ev.Payload.(type) {
				case *agentevents.TextDelta:
					got = append(got, string(ev.Kind()), p.Delta)
				case *agentevents.AgentReasoningDelta:
					got = append(got, string(ev.Kind()), p.Delta)
				}
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
	_, err := NewEncoder(encoderOptions).Append(nil, agentevents.Event{RunID: "r", Payload: text("1", "")})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
}

// The usage in the ends of agents has lines of its own, each figure once.
func TestUsageOfEnds(t *testing.T) {
	used := func(in, out int64) agentevents.Usage { return agentevents.Usage{InputTokens: in, OutputTokens: out} }
	end := func(in, out int64, cost float64) *agentevents.AgentEnded {
		return &agentevents.AgentEnded{Usage: agentevents.Some(used(in, out)), TotalCostUSD: agentevents.Some(cost)}
	}
	total := func(in, out int64, cost float64) *agentevents.AgentEnded { // with sub-agents and earlier attempts
		return &agentevents.AgentEnded{Usage: agentevents.Some(used(1, 1)), ModelUsage: map[string]agentevents.Usage{"m": used(in, out)}, TotalCostUSD: agentevents.Some(cost), Cumulative: true}
	}
	attempt := func(in, out int64, cost float64) *agentevents.AgentEnded { // with sub-agents
		p := total(in, out, cost)
		p.Cumulative = false
		return p
	}
	type step struct {
		agent string
		p     agentevents.Payload
	}
	start := func(agent string) step { return step{agent, &agentevents.AgentStarted{}} }
	for name, steps := range map[string][]step{
		"one agent":                        {start("a"), {"a", end(10, 5, 0.5)}},
		"attempts":                         {start("a"), {"a", end(10, 5, 0.5)}, start("a"), {"a", end(7, 3, 0.25)}},
		"running totals":                   {start("a"), {"a", total(10, 5, 0.03)}, start("a"), {"a", total(14, 8, 0.05)}},
		"sub-agents":                       {start("a"), start("b"), {"b", end(4, 2, 0.01)}, {"a", total(10, 5, 0.03)}, start("a"), start("b"), {"b", end(1, 1, 0.01)}, {"a", total(14, 8, 0.05)}},
		"sub-agents of those":              {start("a"), start("b"), start("c"), {"c", end(1, 1, 0.01)}, {"b", &agentevents.AgentEnded{}}, {"a", total(10, 5, 0.03)}},
		"sub-agents, then a running total": {start("a"), start("b"), {"b", end(4, 2, 0.01)}, {"a", end(6, 3, 0.02)}, start("a"), {"a", total(14, 8, 0.05)}},
		"totals of attempts":               {start("a"), {"a", attempt(10, 5, 0.03)}, start("a"), {"a", attempt(4, 3, 0.02)}},
		"running, but without models":      {start("a"), {"a", end(10, 5, 0.5)}, start("a"), {"a", &agentevents.AgentEnded{Usage: agentevents.Some(used(4, 2)), Cumulative: true}}},
		"reported by sub-agents":           {start("a"), start("b"), {"b", &agentevents.UsageObserved{Usage: used(4, 2)}}, {"b", end(4, 2, 0)}, {"a", total(10, 5, 0)}},
		"reported":                         {start("a"), {"a", &agentevents.UsageObserved{Usage: used(10, 5)}}, {"a", end(10, 5, 0)}},
		"nothing":                          {start("a"), {"a", &agentevents.AgentEnded{}}, start("b"), {"b", end(0, 0, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			parents := map[string]string{"b": "a", "c": "b"}
			e, out := NewEncoder(encoderOptions), []byte(nil)
			want, got := agentevents.NewFoldSet(agentevents.FoldOptions{}), agentevents.NewFoldSet(agentevents.FoldOptions{})
			for i, s := range append([]step{{"", &agentevents.RunStarted{}}}, steps...) {
				ev := agentevents.Event{RunID: "r", AgentID: s.agent, ParentAgentID: parents[s.agent], Sequence: uint64(i), Time: anchor, SchemaVersion: agentevents.SchemaVersion, Payload: s.p}
				want.Apply(ev)
				text, err := e.Append(out, ev)
				if i > 0 {
					require.NoError(t, err)
				}
				out = text
			}
			for _, ev := range decodeAll(t, string(out)) {
				got.Apply(ev)
			}
			a, b := slices.Collect(want.Drain())[0], slices.Collect(got.Drain())[0]
			require.Equal(t, a.Usage.Usage, b.Usage.Usage)
			require.Equal(t, a.Usage.CostUSD.V, b.Usage.CostUSD.V)
		})
	}
}
