package agui_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// shown returns the messages that a client ends with, as "role id: text": it adds each text to
// the message of its id, and the arguments of a call to the call.
func shown(t *testing.T, lines string) (list []string) {
	t.Helper()
	decode(t, agui.Options{Strict: true}, lines)
	at := map[string]int{}
	for line := range strings.Lines(lines) {
		member := func(name string) string { return jsonwire.Text(jsonwire.Member(line, name)) }
		id, role := member("messageId"), member("role")
		switch prefix, word, _ := strings.Cut(member("type"), "_"); {
		case member("type") == "TOOL_CALL_RESULT":
			list = append(list, "tool "+id+": "+member("content"))
			continue
		case prefix == "TOOL":
			id, role = member("toolCallId"), member("toolCallName")
			fallthrough
		case prefix == "TEXT", prefix == "REASONING" && strings.HasPrefix(word, "MESSAGE"):
			if _, known := at[id]; !known {
				at[id] = len(list)
				list = append(list, role+" "+id+": ")
			}
			list[at[id]] += member("delta")
		}
	}
	return list
}

// A client has the texts of a thread that its log has, each once and by itself, whatever runs
// and pauses it has. An id that is made up is another one in each run, also if each has an
// encoder of its own, and the same one again.
func TestThread(t *testing.T) {
	done, failed, cancelled := &agentevents.RunCompleted{}, &agentevents.RunFailed{}, &agentevents.RunCancelled{}
	whole := func(text string) agentevents.Payload { return &agentevents.TextCompleted{Text: text} }
	thought := func(text string) agentevents.Payload { return &agentevents.AgentReasoned{Reasoning: text} }
	block := func(id, text string) agentevents.Payload { return &agentevents.TextCompleted{BlockID: id, Text: text} }
	asks, pauses, resumes := &agentevents.ApprovalRequested{ApprovalID: "a"}, &agentevents.RunPaused{}, &agentevents.RunResumed{}
	args := func(delta string) agentevents.Payload {
		return &agentevents.ToolArgumentsDelta{CallID: "c", Delta: delta}
	}
	began := func(events []agentevents.Event) []agentevents.Event {
		return with(events, 0, `{"/start":{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"Read"}}`)
	}
	called, returned := &agentevents.ToolCalled{CallID: "c", ToolID: "Read", Arguments: `{"a":1}`}, &agentevents.ToolReturned{CallID: "c", ToolID: "Read", Status: "ok", Result: `"x"`}
	for name, c := range map[string]struct {
		log  []agentevents.Event
		want []string
	}{
		"two runs": {then(run("", whole("Hello."), thought("?"), done), run("", whole("Goodbye."), thought("!"), done)),
			[]string{"assistant block~run-1~0: Hello.", "reasoning block~run-1~1: ?", "assistant block~run-2~0: Goodbye.", "reasoning block~run-2~1: !"}},
		"before and after a pause": {run("", asks, whole("Hello."), thought("?"), pauses, resumes, whole("Goodbye."), thought("!"), done),
			[]string{"assistant block~run-1~1: Hello.", "reasoning block~run-1~2: ?", "assistant block~run-1~5: Goodbye.", "reasoning block~run-1~6: !"}},
		"an id of two runs": {then(run("", block("b", "Hello."), done), run("", block("b", "Goodbye."), done)),
			[]string{"assistant b: Hello.", "assistant b~run-2~0: Goodbye."}},
		"an id of a message and a call": {run("", block("c", "Hello."), called, returned),
			[]string{"assistant c: Hello.", `Read c~run-1~1: {"a":1}`, "tool c~run-1~1-result: x"}},
		"a result twice": {run("", called, returned, &agentevents.ToolReturned{CallID: "c", ToolID: "Read", Status: "forbidden"}),
			[]string{`Read c: {"a":1}`, "tool c-result: x", "Read c~run-1~2: ", "tool c~run-1~2-result: "}},
		"a call of one event while one of its id is open": {run("", called, &agentevents.ToolReturned{CallID: "c", ToolID: "Bash", Status: "ok", Result: `"y"`, OneEvent: true}, returned),
			[]string{`Read c: {"a":1}`, "Bash c~run-1~1: ", "tool c~run-1~1-result: y", "tool c-result: x"}},

		"cut by a pause, and complete":       {run("", asks, text("b", "I will "), pauses, resumes, block("b", "I will ")), []string{"assistant b: I will "}},
		"cut by a pause, and completed":      {run("", asks, text("b", "I will "), pauses, resumes, block("b", "I will order.")), []string{"assistant b: I will order."}},
		"cut by two pauses":                  {run("", asks, text("b", "I "), pauses, resumes, text("b", "will "), pauses, resumes, block("b", "I will order.")), []string{"assistant b: I will order."}},
		"cut by a pause, without an id":      {run("", asks, text("", "I will "), pauses, resumes, text("", "order"), whole("I will order.")), []string{"assistant block~run-1~1: I will order."}},
		"cut by a pause, with another text":  {run("", asks, text("b", "I will "), pauses, resumes, block("b", "No.")), []string{"assistant b: I will "}},
		"cut by a failure":                   {run("", text("b", "I will "), failed, resumes, block("b", "I will order.")), []string{"assistant b: I will order."}},
		"cut by a cancellation":              {run("", text("b", "I will "), cancelled, resumes, text("b", "order."), block("b", "I will order.")), []string{"assistant b: I will order."}},
		"cut by the end of its agent":        {run("", &agentevents.RunStarted{}, "planner", &agentevents.AgentStarted{}, "coder", &agentevents.AgentStarted{}, text("b", "I will "), &agentevents.AgentEnded{}, block("b", "I will order.")), []string{"assistant b: I will order."}},
		"cut by the next run of the log":     {then(run("", text("b", "I will ")), run("", whole("Hello."), done)), []string{"assistant b: I will ", "assistant block~run-2~0: Hello."}},
		"reasoning cut by a pause":           {run("", asks, &agentevents.AgentReasoningDelta{BlockID: "b", Delta: "Read "}, pauses, resumes, &agentevents.AgentReasoned{BlockID: "b", Reasoning: "Read first."}), []string{"reasoning b: Read first."}},
		"arguments cut by a pause":           {began(run("", args(`{"a":`), asks, pauses, resumes, called, returned)), []string{`Read c: {"a":1}`, "tool c-result: x"}},
		"arguments complete before a pause":  {began(run("", args(`{"a":1}`), asks, pauses, resumes, called, returned)), []string{`Read c: {"a":1}`, "tool c-result: x"}},
		"arguments that are not streamed":    {began(run("", args(`{"a":`), called)), []string{`Read c: {"a":1}`}},
		"a call of before a pause":           {run("", called, asks, pauses, resumes, returned), []string{`Read c: {"a":1}`, "tool c-result: x"}},
		"a call of before a failure":         {run("", called, failed, resumes, returned), []string{`Read c: {"a":1}`, "tool c-result: x"}},
		"texts without ids around a call":    {run("", text("", "I "), called, text("", "We "), whole("We do.")), []string{"assistant block~run-1~0: I ", `Read c: {"a":1}`, "assistant block~run-1~2: We do."}},
		"a text that ends after a call":      {run("", text("", "I "), called, whole("I do.")), []string{"assistant block~run-1~0: I do.", `Read c: {"a":1}`}},
		"a text that a call does not end":    {run("", text("b", "I "), called, text("b", "do"), block("b", "I do.")), []string{"assistant b: I do.", `Read c: {"a":1}`}},
		"a block of the agent's next start":  {run("planner", text("b", "I "), &agentevents.AgentStarted{}, text("b", "We ")), []string{"assistant b: I ", "assistant b~run-1~2: We "}},
		"deltas that are numbered once more": {run("", delta("I ", 0), delta("do", 1), delta("We ", 0)), []string{"assistant block~run-1~0: I do", "assistant block~run-1~2: We "}},
	} {
		t.Run(name, func(t *testing.T) {
			lines, _ := encode(t, agui.EncoderOptions{}, c.log)
			if c.want != nil {
				require.Equal(t, c.want, shown(t, lines), lines)
			}
			again, _ := encode(t, agui.EncoderOptions{}, c.log)
			require.Equal(t, lines, again)
		})
	}
	// Each run has an encoder of its own.
	first, second := "", ""
	log := then(run("", whole("Hello."), whole("Hello?"), done), run("", whole("Goodbye."), whole("Goodbye?"), done))
	first, _ = encode(t, agui.EncoderOptions{}, log[:3])
	second, _ = encode(t, agui.EncoderOptions{}, log[3:])
	both, _ := encode(t, agui.EncoderOptions{}, log)
	require.Equal(t, both, first+second)
	require.Len(t, shown(t, both), 4)
	// Events without numbers.
	for i := range log {
		log[i].Sequence = 0
	}
	lines, _ := encode(t, agui.EncoderOptions{}, log)
	require.Equal(t, []string{"assistant block~run-1~0: Hello.", "assistant block~run-1~0~1: Hello?", "assistant block~run-2~0: Goodbye.", "assistant block~run-2~0~1: Goodbye?"}, shown(t, lines))
}

// delta returns a piece of a text without an id.
func delta(text string, index int) agentevents.Payload {
	return &agentevents.TextDelta{Delta: text, Index: agentevents.Some(index)}
}

// A message or a call that the protocol's lines begin once more comes back like that, and the
// result of a call keeps its id.
func TestAgain(t *testing.T) {
	message := `{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m","role":"assistant"}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m","delta":"I "}` + "\n" +
		`{"type":"TEXT_MESSAGE_END","timestamp":1777971600250,"messageId":"m"}` + "\n" +
		`{"type":"TOOL_CALL_START","timestamp":1777971600500,"toolCallId":"c","toolCallName":"Read"}` + "\n" +
		`{"type":"TOOL_CALL_END","timestamp":1777971600500,"toolCallId":"c"}` + "\n" +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971600500,"toolCallId":"c","messageId":"c-result","content":"x"}` + "\n"
	log := head + message + message + strings.TrimPrefix(tail, "\n") + "\n" + head + message + strings.TrimPrefix(tail, "\n") + "\n"
	lines, _ := encode(t, agui.EncoderOptions{}, decode(t, agui.Options{Strict: true}, log))
	require.Equal(t, log, lines)
}

// The return of a call of another run, which is over, leaves the agent's own open call of that id.
func TestReturnOfAnotherRunsCall(t *testing.T) {
	at := func(run string, sequence uint64, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{ID: run + string(rune('a'+sequence)), RunID: run, Sequence: sequence, Scope: agentevents.Scope{SessionID: "t"}, AgentID: "a", Payload: p}
	}
	called := func(tool string) agentevents.Payload { return &agentevents.ToolCalled{CallID: "c", ToolID: tool} }
	returned := func(tool, result string, whole bool) agentevents.Payload {
		return &agentevents.ToolReturned{CallID: "c", ToolID: tool, Status: agentevents.ToolStatusOK, Result: agentevents.JSONString(result), OneEvent: whole}
	}
	ended := at("two", 1, &agentevents.RunCompleted{})
	ended.AgentID = ""
	lines, _ := encode(t, agui.EncoderOptions{}, []agentevents.Event{
		at("one", 0, called("Read")), at("one", 1, &agentevents.ApprovalRequested{ApprovalID: "q"}), at("one", 2, &agentevents.RunPaused{}),
		at("two", 0, called("Bash")), ended,
		at("one", 3, &agentevents.RunResumed{}), at("one", 4, returned("Bash", "y", true)), at("one", 5, returned("Read", "x", false)),
	})
	require.Equal(t, []string{"Read c: ", "Bash c~two~0: ", "tool c~two~0-result: y", "tool c-result: x"}, shown(t, lines), lines)
}
