package agui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

func encode(t testing.TB, o agui.EncoderOptions, events []agentevents.Event) (lines string, losses []dialect.Loss) {
	t.Helper()
	enc := agui.NewEncoder(o)
	var out []byte
	for _, ev := range events {
		var err error
		out, err = enc.Append(out, ev)
		require.NoError(t, err)
	}
	out, err := enc.End(out)
	require.NoError(t, err)
	return string(out), enc.Losses()
}

func decode(t testing.TB, o agui.Options, log string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(o)}).Events()
}

// Frames have the lines, and are read as the same events, also with the fields and comments that
// servers add.
func TestServerSentEvents(t *testing.T) {
	events := dialecttest.StandardRun("run-1")
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	frames, _ := encode(t, agui.EncoderOptions{SSE: true}, events)
	require.Equal(t, "data: "+strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n\ndata: ")+"\n\n", frames)
	want := decode(t, agui.Options{Strict: true}, lines)
	require.Equal(t, want, decode(t, agui.Options{Strict: true}, frames))
	odd := ":\n\nretry: 100\n" + strings.ReplaceAll(frames, "data: ", "id: 7\nevent: message\ndata:")
	require.Equal(t, want, decode(t, agui.Options{Strict: true}, strings.ReplaceAll(odd, "\n", "\r\n")))
	for line := range strings.Lines(frames) {
		if line != "\n" {
			require.Equal(t, dialect.AGUI, dialect.Detect(line), line)
		}
	}
}

// A strict decoder refuses lines that the protocol forbids. A lenient one reads them.
func TestStrict(t *testing.T) {
	run := strings.TrimSuffix(head, "\n") + "\n"
	start := `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}` + "\n"
	for name, c := range map[string]struct {
		log  string
		rule agentevents.Rule
		at   string
	}{
		"no run":                 {start, agui.RuleOrder, "/type"},
		"two runs at a time":     {run + run, agui.RuleOrder, "/type"},
		"after the end":          {run + tail[1:] + "\n" + start, agui.RuleOrder, "/type"},
		"the end of another":     {run + strings.Replace(tail[1:], "run-1", "run-2", 1), agui.RuleOrder, "/type"},
		"an open message":        {run + start + tail[1:], agui.RuleOrder, "/type"},
		"a message twice":        {run + start + start, agui.RuleOrder, "/type"},
		"no message":             {run + `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}`, agui.RuleOrder, "/type"},
		"another's message":      {run + start + `{"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"s"}`, agui.RuleOrder, "/type"},
		"no call":                {run + `{"type":"TOOL_CALL_END","toolCallId":"c"}`, agui.RuleOrder, "/type"},
		"no step":                {run + `{"type":"STEP_FINISHED","stepName":"s"}`, agui.RuleOrder, "/type"},
		"an open step":           {run + `{"type":"STEP_STARTED","stepName":"s"}` + tail, agui.RuleOrder, "/type"},
		"no sub-agent":           {run + `{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`, agui.RuleOrder, "/type"},
		"an open sub-agent":      {run + `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"s"}` + tail, agui.RuleOrder, "/type"},
		"no parent":              {run + `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"s","parentSubagentRunId":"p"}`, agui.RuleOrder, "/type"},
		"a chunk of nothing":     {run + `{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}`, agui.RuleOrder, "/type"},
		"no id":                  {run + `{"type":"TEXT_MESSAGE_START","role":"assistant"}`, agui.RuleRequired, "/messageId"},
		"no thread":              {`{"type":"RUN_STARTED","runId":"r"}`, agui.RuleRequired, "/threadId"},
		"no value":               {run + `{"type":"CUSTOM","name":"x"}`, agui.RuleRequired, "/value"},
		"a patch of no RFC":      {run + `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/n","value":1},{"op":"increment","path":"/n","value":2}]}`, agui.RuleValue, "/delta/1/op"},
		"a patch without a word": {run + `{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"x","patch":[{"path":"/n"}]}`, agui.RuleValue, "/patch/0/op"},
		"a patch of nowhere":     {run + `{"type":"STATE_DELTA","delta":[{"op":"remove"}]}`, agui.RuleValue, "/delta/0/path"},
		"a patch of words":       {run + `{"type":"STATE_DELTA","delta":["add"]}`, agui.RuleValue, "/delta/0"},
		"no sub-agent's id":      {run + `{"type":"SUBAGENT_STARTED","name":"s"}`, agui.RuleRequired, "/subagentRunId"},
		"a role":                 {run + `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"robot"}`, agui.RuleValue, "/role"},
		"a list":                 {run + `{"type":"MESSAGES_SNAPSHOT","messages":{}}`, agui.RuleValue, "/messages"},
		"half a millisecond":     {`{"type":"RUN_STARTED","threadId":"t","runId":"r","timestamp":0.5}`, agui.RuleValue, "/timestamp"},
		"null":                   {run + `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"Read","parentMessageId":null}`, agui.RuleValue, "/parentMessageId"},
		"an outcome":             {run + strings.Replace(tail[1:], `"}`, `","outcome":{"type":"fine"}}`, 1), agui.RuleValue, "/outcome/type"},
		"no interrupts":          {run + strings.Replace(tail[1:], `"}`, `","outcome":{"type":"interrupt"}}`, 1), agui.RuleRequired, "/outcome/interrupts"},
		"metadata":               {`{"type":"RUN_STARTED","threadId":"t","runId":"r","metadata":3}`, agui.RuleValue, "/metadata"},
		"an unknown type":        {run + `{"type":"NEW_THING"}`, agui.RuleType, "/type"},
		"an open reasoning run":  {run + `{"type":"REASONING_START","messageId":"r"}` + tail, agui.RuleOrder, "/type"},
		"no reasoning run":       {run + `{"type":"REASONING_END","messageId":"r"}`, agui.RuleOrder, "/type"},
	} {
		t.Run(name, func(t *testing.T) {
			var broken *agentevents.RuleError
			for _, err := range agentevents.NewReader(strings.NewReader(c.log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{Strict: true})}).All() {
				if err != nil {
					require.ErrorAs(t, err, &broken)
				}
			}
			require.NotNil(t, broken)
			require.Equal(t, [2]string{string(c.rule), c.at}, [2]string{string(broken.Rule), broken.Pointer}, broken)
			if !strings.Contains(name, "no id") && !strings.Contains(name, "no thread") {
				decode(t, agui.Options{}, c.log)
			}
		})
	}
}

// Valid lines are valid events. The result of a call that an earlier run made, or none, is one
// event, with the name of the tool that the thread has.
func TestValid(t *testing.T) {
	tools := map[string]agentevents.ToolReturned{
		"result in a later run":               {ToolID: "Deploy", OneEvent: true},
		"result of a call that nothing names": {ToolID: "unknown", OneEvent: true},
		"result after an interrupt":           {ToolID: "Deploy"},
	}
	for _, g := range golden {
		f := agentevents.NewFoldSet(agentevents.FoldOptions{})
		for _, ev := range decode(t, agui.Options{Strict: true}, g.Lines) {
			f.Apply(ev)
			if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && tools[g.Name].ToolID != "" {
				require.Equal(t, tools[g.Name], agentevents.ToolReturned{ToolID: p.ToolID, OneEvent: p.OneEvent}, g.Name)
				delete(tools, g.Name)
			}
		}
		for s := range f.Drain() {
			require.Empty(t, s.Violations, g.Name)
		}
	}
	require.Empty(t, tools)
}

// Facts that the protocol cannot represent are listed.
func TestLosses(t *testing.T) {
	texts := func(losses []dialect.Loss) (list []string) {
		for _, l := range losses {
			if l.Pointer != "/id" && l.Pointer != "/sequence" {
				list = append(list, l.What.String()+" "+string(l.Kind)+" "+l.Pointer)
			}
		}
		return list
	}
	for name, want := range map[string][]string{
		"several agents":  {"altered agent.text.delta /payload/blockId"},
		"two nodes":       {"altered agent.text /payload/blockId", "altered agent.text.delta /payload/blockId"},
		"after the end":   {"dropped session.completed "},
		"no names":        {"made up agent.text /payload/blockId", "made up agent.text.delta /payload/blockId"},
		"questions":       nil,
		"arguments only":  nil,
		"arguments first": nil,
		"a call id again": nil,
	} {
		_, losses := encode(t, agui.EncoderOptions{}, hard[name])
		require.Equal(t, want, texts(losses), name)
	}
	for sessions, want := range map[[2]string]string{{"s", "s"}: "", {"s", ""}: "made up  /sessionId", {"s", "t"}: "altered  /sessionId", {"", "run-1"}: "dropped  /sessionId"} {
		events := run("", &agentevents.RunStarted{}, &agentevents.RunCompleted{})
		events[0].SessionID, events[1].SessionID = sessions[0], sessions[1]
		_, losses := encode(t, agui.EncoderOptions{}, events)
		require.Equal(t, want, strings.Join(texts(losses), ""), sessions)
	}
	untimed := decode(t, agui.Options{}, `{"type":"RUN_STARTED","threadId":"t-1","runId":"run-1"}`+"\n"+`{"type":"RUN_FINISHED","threadId":"t-1","runId":"run-1"}`)
	out, losses := encode(t, agui.EncoderOptions{}, append(run("", &agentevents.RunStarted{}), untimed[1]))
	require.Equal(t, []string{"dropped  /sessionId"}, texts(losses))
	require.Equal(t, 1, strings.Count(out, `"timestamp"`), "a line without a time does not get another line's")
	untimed[1].Time = untimed[1].Time.AddDate(56, 0, 0)
	_, losses = encode(t, agui.EncoderOptions{}, append(run("", &agentevents.RunStarted{}), untimed[1]))
	require.Contains(t, texts(losses), "dropped run.completed /agui/~1timestamp")
}

// The usage in the end of a run is reported before it, and written there again. It has a line of
// its own if another event comes next, or none.
func TestUsage(t *testing.T) {
	end := `{"type":"RUN_FINISHED","timestamp":1777971601000,"threadId":"t-1","runId":"run-1","usage":[{"provider":"p","model":"m-1","inputTokens":9,"outputTokens":4,"cachedInputTokens":2}]}` + "\n"
	events := decode(t, agui.Options{Strict: true}, head+end)
	require.Len(t, events, 3)
	used := &agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{InputTokens: 7, OutputTokens: 4, CacheReadInputTokens: agentevents.Some[int64](2)}}
	require.Equal(t, used, events[1].Payload)
	lines, losses := encode(t, agui.EncoderOptions{}, events)
	require.Equal(t, head+end, lines)
	require.Empty(t, losses, "readers derive the same ids")

	custom := `{"type":"CUSTOM","timestamp":1777971601000,"name":"agentevents.usage.observed","value":{"model":"m-1","usage":{"inputTokens":7,"outputTokens":4,"cacheReadInputTokens":2}},"usage":{"provider":"p","model":"m-1","inputTokens":9,"outputTokens":4,"cachedInputTokens":2}}` + "\n"
	lines, _ = encode(t, agui.EncoderOptions{}, events[:2])
	require.Equal(t, head+custom, lines)
	step := events[2]
	step.Payload = &agentevents.StepStarted{StepID: "s"}
	lines, _ = encode(t, agui.EncoderOptions{}, append(events[:2:2], step))
	require.True(t, strings.HasPrefix(lines, head+custom), lines)
	changed := events[1]
	changed.Payload = &agentevents.UsageObserved{Model: "m-2"}
	lines, _ = encode(t, agui.EncoderOptions{}, []agentevents.Event{events[0], changed, events[2]})
	require.NotContains(t, lines, `"usage":[`)
}

// A run that pauses with open questions ends with an interrupt for each. A question that an answer
// closes, or the return of its call, is not asked again.
func TestQuestions(t *testing.T) {
	lines, _ := encode(t, agui.EncoderOptions{}, hard["questions"])
	var got []string
	for line := range strings.Lines(lines) {
		if outcome := jsonwire.Member(line, "outcome"); outcome != "" {
			got = append(got, outcome)
		}
	}
	where := `{"id":"q","reason":"input_required","message":"Where?\nWhen?"}`
	require.Equal(t, []string{
		`{"type":"suspended"}`,
		`{"type":"interrupt","interrupts":[{"id":"a","reason":"tool_call","message":"Deploy: it is late","toolCallId":"c","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"}}}},` + where + `]}`,
		`{"type":"interrupt","interrupts":[` + where + `]}`,
	}, got)
	for i, ev := range decode(t, agui.Options{Strict: true}, lines) {
		require.Equal(t, hard["questions"][i].Payload, ev.Payload)
		require.Empty(t, ev.Extra("agui"), ev.Kind())
	}
}

// An end that records that its event has no blockId still ends the block of its deltas.
func TestAbsentBlock(t *testing.T) {
	log := head + `{"type":"REASONING_MESSAGE_START","timestamp":1777971600250,"messageId":"block~1","role":"reasoning"}` + "\n" +
		`{"type":"REASONING_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"block~1","delta":"Read "}` + "\n" +
		`{"type":"REASONING_MESSAGE_CONTENT","timestamp":1777971600500,"messageId":"block~1","delta":"first.","metadata":{"agentevents":"made"}}` + "\n" +
		`{"type":"REASONING_MESSAGE_END","timestamp":1777971600500,"messageId":"block~1","metadata":{"agentevents":{"absent":["blockId"],"verbosity":"full"}}}` + tail + "\n"
	events := eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{}), Verbatim: true}).Events()
	require.Equal(t, &agentevents.AgentReasoned{BlockID: "block~1", Reasoning: "Read first.", Verbosity: "full"}, events[2].Payload)
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	require.Equal(t, log, lines)
}

// Lines have the members of the envelope that rules need: agents that only a node or a span names,
// workflows, and late marks.
func TestEnvelope(t *testing.T) {
	node := func(ev *agentevents.Event) { ev.AgentID, ev.NodeID, ev.NodeRunID = "", "build", "x-1" }
	span := func(ev *agentevents.Event) { ev.AgentID, ev.SpanID = "", "s-1" }
	inner := func(ev *agentevents.Event) { ev.AgentID, ev.SpanID, ev.ParentSpanID = "", "s-2", "s-1" }
	late := func(ev *agentevents.Event) { ev.Marks = agentevents.MarkLate }
	flow := func(ev *agentevents.Event) { ev.AgentID, ev.WorkflowID, ev.Phase = "", "w", "p" }
	start, end, text := &agentevents.AgentStarted{}, &agentevents.AgentEnded{Outcome: "converged"}, &agentevents.TextCompleted{Text: "x"}
	for name, c := range map[string]struct {
		list []any
		say  []func(ev *agentevents.Event)
	}{
		"node":     {[]any{"", &agentevents.NodeStarted{}, start, text, end, &agentevents.NodeCompleted{}}, []func(*agentevents.Event){node, node, node, node, node}},
		"span":     {[]any{"", start, &agentevents.ToolCalled{CallID: "c", ToolID: "A"}, end}, []func(*agentevents.Event){span, inner, span}},
		"late":     {[]any{"planner", start, end, text}, []func(*agentevents.Event){2: late}},
		"no spans": {[]any{"", &agentevents.NodeStarted{}, start, "planner", start, "", &agentevents.PhaseStarted{}}, []func(*agentevents.Event){node, node, nil, flow}},
		"workflow": {[]any{"", &agentevents.PhaseStarted{}}, []func(*agentevents.Event){flow}},
	} {
		events := run(c.list...)
		for i, say := range c.say {
			if say != nil {
				say(&events[i])
			}
		}
		lines, _ := encode(t, agui.EncoderOptions{}, events)
		f := agentevents.NewFoldSet(agentevents.FoldOptions{})
		for i, ev := range decode(t, agui.Options{Strict: true}, lines) {
			events[i].ID = ev.ID
			require.Equal(t, events[i], ev, name)
			f.Apply(ev)
		}
		for s := range f.Drain() {
			require.Empty(t, s.Violations, name)
		}
	}
}

// Runs that a log interleaves are written one after the other, whole, also if one does not
// end.
func TestInterleavedRuns(t *testing.T) {
	first, second := dialecttest.StandardRun("run-1"), dialecttest.StandardRun("run-2")
	for n, both := range [][]agentevents.Event{together(first, second), together(first[:len(first)-1], second)} {
		alone, _ := encode(t, agui.EncoderOptions{}, first[:len(first)-n])
		if n == 1 {
			alone += `{"type":"RUN_ERROR","message":"the log goes on with another run","metadata":{"agentevents":"made"}}` + "\n"
		}
		other, _ := encode(t, agui.EncoderOptions{}, second[:len(first)-n])
		lines, _ := encode(t, agui.EncoderOptions{}, both)
		require.Equal(t, alone+other, lines)
		require.Len(t, decode(t, agui.Options{Strict: true}, lines), len(both))
	}
}

// The lines that wait for the end of a run are bounded: then the run is given up. Written lines do
// not wait any more.
func TestWaitingRuns(t *testing.T) {
	enc := agui.NewEncoder(agui.EncoderOptions{})
	write := func(run string, p agentevents.Payload, n int) (lines string) {
		for range n {
			out, err := enc.Append(nil, agentevents.Event{RunID: run, Payload: p})
			require.NoError(t, err)
			lines += string(out)
		}
		return lines
	}
	big := &agentevents.RunStarted{Inputs: agentevents.JSONString(strings.Repeat("x", 4<<20))}
	write("run-1", &agentevents.StepStarted{StepID: "s"}, 1)
	require.Empty(t, write("run-2", big, 10))
	require.Greater(t, len(write("run-1", &agentevents.RunCompleted{}, 1)), 40<<20)
	require.Empty(t, write("run-3", big, 15))
	lines := write("run-3", big, 1)
	require.True(t, strings.HasPrefix(lines, `{"type":"RUN_ERROR","message":"the log goes on`), lines[:min(100, len(lines))])
	require.Greater(t, len(lines), 64<<20)
	require.Empty(t, write("run-2", &agentevents.RunCompleted{}, 1))
	require.NotEmpty(t, write("run-3", text("b", "open"), 1))
	write("run-2", &agentevents.RunCompleted{}, 1)
	out, err := enc.End(nil)
	require.NoError(t, err)
	require.Equal(t, `{"type":"TEXT_MESSAGE_END","messageId":"b","metadata":{"agentevents":"made"}}`+"\n", string(out))
	_, err = enc.Append(nil, agentevents.Event{Payload: &agentevents.RunCompleted{}})
	var broken *agentevents.RuleError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, "/runId", broken.Pointer)
}

// Streams in the form of the .NET implementation, with raw events and escapes that Go does not
// write, are read as the run was, keep the rules, and are written back byte for byte.
func TestOtherImplementation(t *testing.T) {
	for name, want := range map[string]struct {
		tools  []string
		tokens int64
	}{
		"backend-tool":   {[]string{"FindTrains"}, 585},
		"parallel-tools": {[]string{"get_tide", "get_moon"}, 753},
	} {
		file, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		require.NoError(t, err)
		log := string(file)
		events := decode(t, agui.Options{Strict: true}, log)
		back, losses := encode(t, agui.EncoderOptions{}, events)
		require.Equal(t, strings.Count(log, "\n"), strings.Count(back, "\n"))
		verbatim := eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{}), Verbatim: true})
		back, _ = encode(t, agui.EncoderOptions{}, verbatim.Events())
		require.Equal(t, log, back)
		for _, l := range losses {
			require.Equal(t, "/id", l.Pointer, l)
		}
		f := agentevents.NewFoldSet(agentevents.FoldOptions{})
		for _, ev := range events {
			f.Apply(ev)
		}
		runs := 0
		for s := range f.Drain() {
			runs++
			require.Equal(t, agentevents.RunStatus("completed"), s.Status)
			require.Empty(t, s.Violations)
			require.Equal(t, want.tokens, s.Usage.Usage.TotalTokens.V)
			require.Len(t, s.Agents, 1)
			require.NotEmpty(t, s.Agents[agui.Agent].Text)
			require.Len(t, s.Tools, len(want.tools))
			for _, tool := range want.tools {
				require.Equal(t, 1, s.Tools[tool].OK, tool)
			}
		}
		require.Equal(t, 1, runs)
	}
}

// No input makes a decoder or an encoder panic, and the decoded events are written in the order of
// the protocol.
func FuzzDecode(f *testing.F) {
	for _, g := range golden {
		f.Add(g.Lines)
	}
	for _, events := range hard {
		lines, _ := encode(f, agui.EncoderOptions{}, events)
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, log string) { dialecttest.CheckLog(t, suite, log) })
}

// A kind that the protocol has a type for is written as that, also if the line that it was read
// from is a CUSTOM one. A step whose line does not name it has a name all the same.
func TestOwnTypes(t *testing.T) {
	log := head + `{"type":"CUSTOM","timestamp":1777971600250,"name":"agentevents.step.started","value":{"stepId":"plan"}}` + "\n" +
		`{"type":"STEP_FINISHED","timestamp":1777971600250,"x":1}` + "\n" +
		`{"type":"CUSTOM","timestamp":1777971600500,"name":"agentevents.run.completed","value":{}}` + "\n"
	events := eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{}), Verbatim: true}).Events()
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	decode(t, agui.Options{}, lines)
	require.Equal(t, []string{"RUN_STARTED", "STEP_STARTED", "STEP_STARTED", "STEP_FINISHED", "STEP_FINISHED", "RUN_FINISHED"}, typesOf(lines))
}

// typesOf returns the types of lines.
func typesOf(lines string) (types []string) {
	for line := range strings.Lines(lines) {
		types = append(types, jsonwire.Text(jsonwire.Member(line, "type")))
	}
	return types
}
