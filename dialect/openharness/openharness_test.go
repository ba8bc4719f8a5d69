package openharness

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/dialecttest"
	"github.com/agentevents/agentevents/eventtest"
)

func read(t testing.TB, o agentevents.ReaderOptions, log string) []agentevents.Event {
	t.Helper()
	if o.Decoder == nil {
		o.Decoder = NewDecoder(Options{RunID: run})
	}
	return eventtest.ReadLog(t, strings.NewReader(log), o).Events()
}

// Extra members survive, also in the native format.
func TestUnknownsSurvive(t *testing.T) {
	for _, c := range []struct{ line, extra string }{
		{of("agent:text", `,"content":"x","tokenCount":3,"x":{"a":[1.50]}`), `{"tokenCount":3,"x":{"a":[1.50]}}`},
		{of("agent:text", `,"content":"x","/usage/a":1,"a/b~c":2`), `{"/~1usage~1a":1,"a/b~c":2}`},
		{of("agent:complete", `,"result":"r","usage":{"inputTokens":1,"outputTokens":2,"service/tier":"x"},`+
			`"modelUsage":{"m/1":{"inputTokens":1,"outputTokens":2,"costUSD":0.10}},"durationMs":1,"numTurns":1,"uuid":null`),
			`{"/usage/service~1tier":"x","/modelUsage/m~11/costUSD":0.10,"uuid":null}`},
		{at("state:patch", `,"patch":{"op":"merge","path":"","value":{"a":null},"by":"me"}`), `{"/patch/by":"me"}`},
		{at("command:received", `,"command":{"type":"send","message":"","runId":"e","priority":1},"command2":{}`), `{"/command/priority":1,"command2":{}}`},
		{at("flow:paused", `,"nodeId":1,"runId":null`), `{"nodeId":1,"runId":null}`},
		{of("node:start", `,"status":"complete"`), `{"status":"complete"}`},
	} {
		ev := decodeLines(t, Options{Strict: true}, c.line)[0]
		require.JSONEq(t, c.extra, string(ev.Extra(string(Name))))
		line, _ := encode(t, ev)
		require.Equal(t, c.line+"\n", line)

		native, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		line, losses := encode(t, read(t, agentevents.ReaderOptions{Decoder: agentevents.NewDecoder()}, string(native))...)
		require.Equal(t, c.line+"\n", line)
		for _, l := range losses {
			require.NotContains(t, l.Pointer, "/"+string(Name), "%+v", l)
		}
	}
}

func TestUnknownTypes(t *testing.T) {
	for _, c := range []struct {
		line, kind, raw, nodeID, nodeRunID string
	}{
		{of("agent:aborted", `,"reason":"user"`), "agent:aborted", `{"reason":"user"}`, "task-agent", "exec-1"},
		{of("recording:linked", `,"invocation":1,"mode":"live"`), "recording:linked", `{"invocation":1,"mode":"live"}`, "task-agent", "exec-1"},
		{at("flow:archived", ``), "flow:archived", `{}`, "", ""},
		{at("flow:archived", `,"runId":"the flow's"`), "flow:archived", `{"runId":"the flow's"}`, "", ""},
		{at("x", `,"nodeId":7,"runId":[1]`), "x", `{"nodeId":7,"runId":[1]}`, "", ""},
		{at("x", `,"nodeId":""`), "x", `{"nodeId":""}`, "", ""},
		{at("agent.text", ``), "openharness:agent.text", `{}`, "", ""},
		{at(`flow:complete\u0000complete`, ``), "flow:complete\x00complete", `{}`, "", ""},
		{at("openharness:x", ``), "openharness:openharness:x", `{}`, "", ""},
		{at("flow:complete", `,"flowName":"f","status":"weird"`), "flow:complete", `{"flowName":"f","status":"weird"}`, "", ""},
	} {
		ev := decodeLines(t, Options{}, c.line)[0]
		require.Equal(t, &agentevents.Unknown{Type: agentevents.Kind(c.kind), Raw: agentevents.JSON(c.raw)}, ev.Payload)
		require.Equal(t, c.nodeID, ev.NodeID)
		require.Equal(t, c.nodeRunID, ev.NodeRunID)
		line, _ := encode(t, ev)
		require.Equal(t, c.line+"\n", line)
	}
	// Extra members from elsewhere are written if they have the decoder's form.
	e := NewEncoder(EncoderOptions{})
	line, err := e.Append(nil, agentevents.Event{Time: epoch, Payload: &agentevents.Unknown{Type: "vendor.thing", Raw: `{"a":1}`}})
	require.NoError(t, err)
	require.Equal(t, at("vendor.thing", `,"a":1`)+"\n", string(line))
	for _, p := range []*agentevents.Unknown{
		{Type: "vendor.thing", Raw: `[1]`}, {Type: "vendor.thing", Raw: `{"type":"x"}`}, {Type: "agent:text", Raw: `{"content":"x"}`}, {Type: "agent:text", Raw: `{"content":1}`},
	} {
		_, err := e.Append(nil, agentevents.Event{Time: epoch, Payload: p})
		require.ErrorIs(t, err, dialect.ErrNoCounterpart, "%+v", p)
	}
}

func TestVerbatim(t *testing.T) {
	for _, line := range []string{
		`{ "content" : "\u0041" , "x":1, "timestamp":1767517322500.0,"runId":"exec-1","nodeId":"task-agent","type":"agent:text" }`,
		`{"type":"agent:text","timestamp":1.7675173225e12,"content":"no node"}`,
		`{"timestamp":1767517322500,"usage":{"outputTokens":2.0,"inputTokens":1e0},"type":"agent:complete","modelUsage":{"z":{"inputTokens":1,"outputTokens":1},"a":{"outputTokens":1,"inputTokens":1}}}`,
		`{"timestamp":1767517322500,"a":1.50,"type":"later"}`,
		`{"timestamp":1767517322500,"type":"agent:tool","toolName":"x"}`,
	} {
		ev := read(t, agentevents.ReaderOptions{Verbatim: true}, line)[0]
		out, losses := encode(t, ev)
		require.Equal(t, line+"\n", out)
		for _, l := range losses {
			require.NotEqual(t, dialect.Made, l.What, "the line is as it was: %+v", l)
		}
		ev.Time = ev.Time.Add(time.Millisecond)
		out, _ = encode(t, ev)
		require.Contains(t, out, "1767517322501")
		require.NotEqual(t, dialect.Native, dialect.Detect(out))
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Time
		out  string
	}{
		{"0", time.Unix(0, 0), "0"},
		{"-0", time.Unix(0, 0), "0"},
		{"-1", time.UnixMilli(-1), "-1"},
		{"1767517322500.25", epoch.Add(250 * time.Microsecond), "1767517322500.25"},
		{"-1.5", time.Unix(0, -1500000), "-1.5"},
		{"253402300799999", time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), "253402300799999"},
		{"-62167219200000", time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "-62167219200000"},
	} {
		ev := decodeLines(t, Options{}, `{"type":"flow:paused","timestamp":`+c.text+`}`)[0]
		require.True(t, c.want.Equal(ev.Time), c.text)
		require.Equal(t, time.UTC, ev.Time.Location())
		line, _ := encode(t, ev)
		require.Equal(t, `{"type":"flow:paused","timestamp":`+c.out+"}\n", line)
	}
	line, losses := encode(t, agentevents.Event{Time: time.Date(3000, 1, 1, 0, 0, 0, 1, time.UTC), SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.RunPaused{}})
	require.Equal(t, `{"type":"flow:paused","timestamp":32503680000000}`+"\n", line)
	require.Equal(t, []dialect.Loss{{Kind: agentevents.KindRunPaused, Pointer: "/timestamp", What: dialect.Altered, Detail: "written in whole milliseconds", Count: 1}}, losses)
}

func TestRunIDs(t *testing.T) {
	log := []string{of("node:start", ``), at("flow:start", `,"flowName":"a"`), of("node:start", ``), at("flow:complete", `,"flowName":"a","status":"complete"`), at("flow:start", `,"flowName":"a"`)}
	decode := func(o Options) (ids []string, numbers []uint64) {
		d := NewDecoder(o)
		for _, line := range log {
			events, err := d.Decode(nil, []byte(line))
			require.NoError(t, err)
			ids, numbers = append(ids, events[0].RunID), append(numbers, events[0].Sequence)
		}
		return ids, numbers
	}
	ids, numbers := decode(Options{RunID: "r"})
	require.Equal(t, []string{"r", "r", "r", "r", "r"}, ids)
	require.Equal(t, []uint64{0, 1, 2, 3, 4}, numbers)
	ids, numbers = decode(Options{})
	require.NotEmpty(t, ids[0])
	require.NotEqual(t, ids[0], ids[1])
	require.Equal(t, []string{ids[1], ids[1], ids[1]}, ids[1:4])
	require.NotEqual(t, ids[1], ids[4])
	require.Equal(t, []uint64{0, 0, 1, 2, 0}, numbers)
	again, _ := decode(Options{})
	require.Equal(t, ids, again)
}

func TestBadLines(t *testing.T) {
	for _, c := range []struct{ name, line, pointer, want string }{
		{"empty", ` x`, "", "expected an object"},
		{"not an object", `7`, "", "expected an object"},
		{"torn", `{"type":"agent:te`, "/type", "the end of a string"},
		{"no type", `{"timestamp":1}`, "", `"type" is missing`},
		{"empty type", `{"type":"","timestamp":1}`, "", `"type" is missing`},
		{"null type", `{"type":null,"timestamp":1}`, "/type", "null"},
		{"torn time", `{"type":"flow:paused","timestamp":12x}`, "/timestamp", "',' or '}'"},
		{"node is a number", `{"type":"node:start","nodeId":1,"timestamp":1}`, "/nodeId", "a string"},
		{"null content", of("agent:text", `,"content":null`), "/content", "null"},
		{"duration is text", of("agent:tool", `,"durationMs":"1"`), "/durationMs", "a number"},
		{"huge duration", of("agent:tool", `,"durationMs":1e30`), "/durationMs", "out of range"},
		{"half a token", of("agent:thinking", `,"tokenCount":1.5`), "/tokenCount", "an integer"},
		{"huge count", of("agent:thinking", `,"tokenCount":9223372036854775808`), "/tokenCount", "out of range"},
		{"null usage", of("agent:complete", `,"usage":null`), "/usage", "an object"},
		{"usage of text", of("agent:complete", `,"usage":{"inputTokens":"1"}`), "/usage/inputTokens", "an integer"},
		{"usage twice", of("agent:complete", `,"usage":{"inputTokens":1,"inputTokens":1}`), "/usage/inputTokens", "duplicate"},
		{"usage unknown twice", of("agent:complete", `,"usage":{"x":1,"x":1}`), "/usage/x", "duplicate"},
		{"model twice", of("agent:complete", `,"modelUsage":{"m":{},"m":{}}`), "/modelUsage/m", "duplicate"},
		{"cost is infinite", of("agent:complete", `,"totalCostUsd":1e999`), "/totalCostUsd", "out of range"},
		{"patch is a list", at("state:patch", `,"patch":[]`), "/patch", "an object"},
		{"patch op twice", at("state:patch", `,"patch":{"op":"set","op":"set"}`), "/patch/op", "duplicate"},
		{"duplicate in a value", at("state:patch", `,"patch":{"value":{"a":1,"a":2}}`), "/patch/value/a", "duplicate"},
		{"command is null", at("command:received", `,"command":null`), "/command", "an object"},
		{"member twice", of("agent:text", `,"content":"","content":""`), "/content", "duplicate"},
		{"type twice", `{"type":"flow:paused","timestamp":1,"type":"flow:paused"}`, "/type", "duplicate"},
		{"unknown member twice", of("agent:text", `,"x":1,"x":2`), "/x", "duplicate"},
		{"member twice in an unknown type", of("x", `,"x":1,"x":2`), "/x", "duplicate"},
		{"invalid UTF-8", of("agent:text", ",\"content\":\"\xff\""), "/content", "UTF-8"},
		{"more after the object", of("agent:text", "") + "x", "", "end of text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := c.line + "\n" + of("node:start", "") + "\n"
			n := 0
			for ev, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
				if n++; n == 2 {
					require.NoError(t, err)
					require.Equal(t, agentevents.KindNodeStarted, ev.Kind())
					continue
				}
				var le *agentevents.LineError
				require.ErrorAs(t, err, &le)
				require.Equal(t, c.pointer, le.Pointer)
				require.ErrorContains(t, err, c.want)
			}
			require.Equal(t, 2, n)
		})
	}
}

func TestStrictRules(t *testing.T) {
	const end = `,"result":"r","usage":{"inputTokens":1,"outputTokens":2},"durationMs":1,"numTurns":1`
	change := strings.NewReplacer
	for _, c := range []struct {
		rule      agentevents.Rule
		pointer   string
		bad, good string
	}{
		{RuleNode, "/nodeId", `{"type":"node:start","runId":"e","timestamp":1}`, `{"type":"node:start","nodeId":"n","runId":"e","timestamp":1}`},
		{RuleNode, "/runId", `{"type":"agent:text","nodeId":"n","timestamp":1,"content":""}`, of("agent:text", `,"content":""`)},
		{RuleNode, "/runId", `{"type":"agent:text","nodeId":"n","runId":"","timestamp":1,"content":""}`, of("agent:text", `,"content":""`)},
		{RuleRequired, "/timestamp", `{"type":"flow:paused"}`, `{"type":"flow:paused","timestamp":0}`},
		{RuleRequired, "/sessionId", of("agent:start", `,"prompt":""`), of("agent:start", `,"sessionId":"s","prompt":[]`)},
		{RuleRequired, "/prompt", of("agent:start", `,"sessionId":"s"`), of("agent:start", `,"sessionId":"s","prompt":""`)},
		{RuleRequired, "/content", of("agent:text:delta", ``), of("agent:text:delta", `,"content":""`)},
		{RuleRequired, "/toolName", of("agent:tool", ``), of("agent:tool", `,"toolName":"unknown"`)},
		{RuleRequired, "/message", of("agent:error", `,"errorType":"x"`), of("agent:error", `,"errorType":"x","message":""`)},
		{RuleRequired, "/usage", of("agent:complete", change(`"usage"`, `"usage2"`).Replace(end)), of("agent:complete", end)},
		{RuleRequired, "/usage/outputTokens", of("agent:complete", change(`,"outputTokens":2`, ``).Replace(end)), of("agent:complete", end)},
		{RuleRequired, "/modelUsage/a~1b/inputTokens", of("agent:complete", end+`,"modelUsage":{"a/b":{"outputTokens":1}}`),
			of("agent:complete", end+`,"modelUsage":{"a/b":{"inputTokens":1,"outputTokens":1}}`)},
		{RuleRequired, "/flowName", at("flow:start", ``), at("flow:start", `,"flowName":""`)},
		{RuleRequired, "/status", at("flow:complete", `,"flowName":""`), at("flow:complete", `,"flowName":"","status":"failed"`)},
		{RuleRequired, "/reason", `{"type":"node:skipped","nodeId":"n","timestamp":1}`, `{"type":"node:skipped","nodeId":"n","timestamp":1,"reason":"edge"}`},
		{RuleRequired, "/to", at("edge:fire", `,"from":"a"`), at("edge:fire", `,"from":"a","to":"b"`)},
		{RuleRequired, "/patch/path", at("state:patch", `,"patch":{"op":"set","value":1}`), at("state:patch", `,"patch":{"op":"set","path":"","value":1}`)},
		{RuleRequired, "/command/promptId", at("command:received", `,"command":{"type":"reply","content":"","runId":"e"}`),
			at("command:received", `,"command":{"type":"reply","content":"","promptId":"","runId":"e"}`)},
		{RuleRequired, "/command/type", at("command:received", `,"command":{}`), at("command:received", `,"command":{"type":"resume"}`)},
		{RuleEnum, "/status", at("flow:complete", `,"flowName":"","status":"done"`), at("flow:complete", `,"flowName":"","status":"complete"`)},
		{RuleEnum, "/patch/op", at("state:patch", `,"patch":{"op":"add","path":"","value":1}`), at("state:patch", `,"patch":{"op":"merge","path":"","value":1}`)},
		{RuleEnum, "/command/type", at("command:received", `,"command":{"type":"stop"}`), at("command:received", `,"command":{"type":"abort"}`)},
		{RuleRequired, "/sessionId", of("agent:start", `,"sessionId":"","prompt":""`), of("agent:start", `,"sessionId":"s","prompt":""`)},
		{RuleForm, "/prompt", of("agent:start", `,"sessionId":"s","prompt":1`), of("agent:start", `,"sessionId":"s","prompt":"1"`)},
		{RuleForm, "/prompt", of("agent:start", `,"sessionId":"s","prompt":{"content":"hi"}`), of("agent:start", `,"sessionId":"s","prompt":[{"content":"hi"}]`)},
		{RuleForm, "/prompt", of("agent:start", `,"sessionId":"s","prompt":["hi",null]`), of("agent:start", `,"sessionId":"s","prompt":["hi"]`)},
		{RuleForm, "/command/resumable", at("command:received", `,"command":{"type":"abort","resumable":1}`), at("command:received", `,"command":{"type":"abort","resumable":true}`)},
		{RuleForm, "/command/runId", at("command:received", `,"command":{"type":"send","message":"hi","runId":5}`), at("command:received", `,"command":{"type":"send","message":"hi"}`)},
		{RuleForm, "/command/message", at("command:received", `,"command":{"type":"resume","message":null}`), at("command:received", `,"command":{"type":"resume"}`)},
		{RuleRange, "/tokenCount", of("agent:thinking", `,"content":"","tokenCount":-1`), of("agent:thinking", `,"content":"","tokenCount":0`)},
		{RuleRange, "/durationMs", of("agent:tool", `,"toolName":"x","durationMs":-0.1`), of("agent:tool", `,"toolName":"x","durationMs":0`)},
		{RuleRange, "/numTurns", of("agent:complete", change(`"numTurns":1`, `"numTurns":-1`).Replace(end)), of("agent:complete", end)},
		{RuleRange, "/totalCostUsd", of("agent:complete", end+`,"totalCostUsd":-1`), of("agent:complete", end+`,"totalCostUsd":0`)},
		{RuleRange, "/usage/inputTokens", of("agent:complete", change(`"inputTokens":1`, `"inputTokens":-1`).Replace(end)), of("agent:complete", end)},
		{RuleRange, "/iteration", at("loop:iterate", `,"iteration":0`), at("loop:iterate", `,"iteration":1`)},
	} {
		t.Run(string(c.rule)+c.pointer, func(t *testing.T) {
			_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(c.bad))
			var rule *agentevents.RuleError
			require.ErrorAs(t, err, &rule)
			require.Equal(t, c.rule, rule.Rule)
			require.Equal(t, c.pointer, rule.Pointer)
			_, err = NewDecoder(Options{Strict: true}).Decode(nil, []byte(c.good))
			require.NoError(t, err)
			events, err := NewDecoder(Options{}).Decode(nil, []byte(c.bad))
			require.NoError(t, err, "not strict: read as far as it can be")
			require.Len(t, events, 1)
		})
	}
}

// fold folds a log of one run, which breaks no rule.
func fold(t testing.TB, events []agentevents.Event) *agentevents.RunSnapshot {
	t.Helper()
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	s := f.Snapshot()
	require.Empty(t, s.Violations)
	return s
}

// Section 3.1 and its implementations: deltas alone, blocks alone, and blocks that repeat
// their deltas, in the orders of the producers.
func TestBlocks(t *testing.T) {
	start := of("agent:start", `,"sessionId":"s","prompt":""`)
	thinkDelta := func(s string) string { return of("agent:thinking:delta", `,"content":"`+s+`"`) }
	think := func(s string) string { return of("agent:thinking", `,"content":"`+s+`"`) }
	delta := func(s string) string { return of("agent:text:delta", `,"content":"`+s+`"`) }
	text := func(s string) string { return of("agent:text", `,"content":"`+s+`"`) }
	tool := of("agent:tool", `,"toolName":"x"`)
	for _, c := range []struct {
		name            string
		lines           []string
		blocks          string // the block ids of text and thinking, in order
		text, reasoning string
	}{
		{"deltas", []string{thinkDelta("Let me "), thinkDelta("analyze..."), delta("I'll "), delta("start by..."), tool, delta("Done! "), delta("I've")},
			"block-1 block-1 block-2 block-2 block-3 block-3", "Done! I've", "Let me analyze..."},
		{"whole blocks", []string{think("hm"), text("I'll"), tool, text("Done!")}, "- - -", "Done!", "hm"},
		{"both", []string{delta("I'll "), delta("start"), text("I'll start"), tool, delta("Do"), delta("ne"), text("Done")},
			"block-1 block-1 block-1 block-2 block-2 block-2", "Done", ""},
		{"whole blocks at the message's end", []string{thinkDelta("h"), thinkDelta("m"), delta("a"), delta("b"), think("hm"), text("ab"), delta("c"), text("c")},
			"block-1 block-1 block-2 block-2 block-1 block-2 block-3 block-3", "c", "hm"},
		{"the whole after another act", []string{delta("a"), tool, delta("b"), text("a"), delta("c"), text("bc")},
			"block-1 block-2 block-1 block-2 block-2", "bc", ""},
		{"the whole differs", []string{delta("a"), delta("b"), text("a b"), delta("c")}, "block-1 block-1 block-1 block-2", "c", ""},
		{"the deltas are late", []string{text("ab"), delta("c")}, "- block-1", "c", ""},
		{"the whole of something else", []string{delta("a"), tool, text("x")}, "block-1 -", "x", ""},
		{"an error between", []string{delta("a"), of("agent:error", `,"errorType":"x","message":""`), delta("b")}, "block-1 block-2", "b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := decodeLines(t, Options{}, append([]string{start}, c.lines...)...)
			var ids []string
			add := func(id string) {
				if id == "" {
					id = "-"
				}
				ids = append(ids, id)
			}
			for _, ev := range events {
				switch p := ev.Payload.(type) {
				case *agentevents.TextDelta:
					add(p.BlockID)
				case *agentevents.TextCompleted:
					add(p.BlockID)
				case *agentevents.AgentReasoningDelta:
					add(p.BlockID)
				case *agentevents.AgentReasoned:
					add(p.BlockID)
				}
			}
			require.Equal(t, c.blocks, strings.Join(ids, " "))
			a := fold(t, events).Agents["exec-1"]
			require.Equal(t, c.text, a.Text)
			require.Equal(t, c.reasoning, a.Reasoning)

			// Two nodes at the same time have separate blocks.
			var both []string
			for _, line := range append([]string{start}, c.lines...) {
				both = append(both, line, strings.ReplaceAll(strings.ReplaceAll(line, "task-agent", "other"), "exec-1", "exec-2"))
			}
			s := fold(t, decodeLines(t, Options{}, both...))
			for _, id := range []string{"exec-1", "exec-2"} {
				require.Equal(t, c.text, s.Agents[id].Text)
				require.Equal(t, c.reasoning, s.Agents[id].Reasoning)
			}
		})
	}
}

// A log of deltas alone needs bounded memory.
func TestBlocksAreBounded(t *testing.T) {
	d := NewDecoder(Options{})
	for range 100 {
		for _, line := range []string{of("agent:text:delta", `,"content":"x"`), of("agent:tool", `,"toolName":"x"`)} {
			_, err := d.Decode(nil, []byte(line))
			require.NoError(t, err)
		}
	}
	require.Len(t, d.blocks.runs.Of("exec-1").list[textBlock], maxOpen)
	_, err := d.Decode(nil, []byte(of("agent:complete", "")))
	require.NoError(t, err)
	require.Zero(t, d.blocks.runs.Len())
}

// Section 3.2, completed with the members that its shorthand leaves out.
func TestTheDocumentsFlow(t *testing.T) {
	log := []string{
		of("agent:start", `,"sessionId":"sess-123","prompt":"..."`),
		of("agent:thinking:delta", `,"content":"Let me "`),
		of("agent:thinking:delta", `,"content":"analyze..."`),
		of("agent:text:delta", `,"content":"I'll "`),
		of("agent:text:delta", `,"content":"start by..."`),
		of("agent:tool", `,"toolName":"read_file","toolInput":{},"toolOutput":{}`),
		of("agent:tool", `,"toolName":"write_file","toolInput":{},"toolOutput":{},"durationMs":20`),
		of("agent:text:delta", `,"content":"Done! "`),
		of("agent:text:delta", `,"content":"I've updated..."`),
		of("agent:complete", `,"result":"...","usage":{"inputTokens":150,"outputTokens":200},"durationMs":4523,"numTurns":1`),
	}
	events := decodeLines(t, Options{Strict: true}, log...)
	line, losses := encode(t, events...)
	require.Equal(t, strings.Join(log, "\n")+"\n", line)
	for _, l := range losses {
		require.NotEqual(t, "", l.Pointer, "%+v", l)
	}

	s := fold(t, events)
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Equal(t, map[string]string{"task-agent": "sess-123"}, s.AgentSessions)
	require.Len(t, s.Agents, 1)
	a := s.Agents["exec-1"]
	require.Equal(t, "task-agent", a.NodeID)
	require.Equal(t, "Done! I've updated...", a.Text)
	require.Equal(t, "Let me analyze...", a.Reasoning)
	require.Equal(t, "...", a.Result)
	require.Equal(t, 2, a.ToolCalls)
	require.Equal(t, 4523*time.Millisecond, a.Duration.V)
	require.Len(t, s.ClosedCalls, 2)
	require.NotEqual(t, s.ClosedCalls[0].CallID, s.ClosedCalls[1].CallID)
	require.Equal(t, epoch.Add(-20*time.Millisecond), s.ClosedCalls[1].StartedAt)
	require.EqualValues(t, 150, s.Usage.Usage.InputTokens)
	require.EqualValues(t, 200, s.Usage.Usage.OutputTokens)
}

// Section 6.2: the events of a fixture have no envelope. The decoder reads their members, and they
// come back unchanged.
func TestTheDocumentsFixture(t *testing.T) {
	const fixture = `{ "type": "agent:start", "sessionId": "sess-fixture-1" }
{ "type": "agent:text", "content": "I've analyzed..." }
{ "type": "agent:complete", "result": "..." }
`
	events := read(t, agentevents.ReaderOptions{Verbatim: true}, fixture)
	require.Equal(t, &agentevents.AgentStarted{ProviderSessionID: "sess-fixture-1"}, events[0].Payload)
	require.Equal(t, &agentevents.TextCompleted{Text: "I've analyzed..."}, events[1].Payload)
	require.Equal(t, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "..."}, events[2].Payload)
	line, _ := encode(t, events...)
	require.Equal(t, fixture, line)
}

func native(p agentevents.Payload, after time.Duration) agentevents.Event {
	return agentevents.Event{ID: "e", RunID: "r1", Sequence: 1, Time: epoch.Add(after), AgentID: "coder", SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

func TestCallsAreJoined(t *testing.T) {
	line, losses := encode(t,
		native(&agentevents.ToolCalled{CallID: "c1", ToolID: "Read", Arguments: `{"path":"a.go"}`, Attempt: agentevents.Some(1)}, 0),
		native(&agentevents.ToolCalled{CallID: "c2", ToolID: "Bash", ArgumentsSummary: "ls"}, time.Millisecond),
		native(&agentevents.ToolReturned{CallID: "c2", ToolID: "Bash", Status: agentevents.ToolStatusCancelled}, 5*time.Millisecond),
		native(&agentevents.ToolReturned{CallID: "c1", ToolID: "Read", Status: agentevents.ToolStatusOK, Result: `"x"`, Duration: agentevents.Some(3 * time.Millisecond)}, 6*time.Millisecond),
		native(&agentevents.ToolCalled{CallID: "c3", ToolID: "Bash"}, 7*time.Millisecond),
	)
	require.Equal(t, `{"type":"agent:tool","nodeId":"coder","runId":"coder","timestamp":1767517322505,"toolName":"Bash","toolInput":"ls","durationMs":4,"error":"cancelled"}
{"type":"agent:tool","nodeId":"coder","runId":"coder","timestamp":1767517322506,"toolName":"Read","toolInput":{"path":"a.go"},"toolOutput":"x","durationMs":3}
`, line)
	require.Contains(t, losses, dialect.Loss{Kind: agentevents.KindToolCalled, What: dialect.Dropped, Detail: "the call did not return", Count: 1, RunID: "r1", Sequence: 1})
	require.Contains(t, losses, dialect.Loss{Kind: agentevents.KindToolCalled, Pointer: "/payload/attempt", What: dialect.Dropped, Count: 1, RunID: "r1", Sequence: 1})
	require.Contains(t, losses, dialect.Loss{
		Kind: agentevents.KindToolReturned, Pointer: "/payload/status", What: dialect.Altered, Detail: "readers know a success and an error", Count: 1, RunID: "r1", Sequence: 1,
	})
}

// Calls that never return need bounded memory.
func TestOpenCallsAreBounded(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	for i := range dialect.MaxCalls + 1 {
		_, err := e.Append(nil, native(&agentevents.ToolCalled{CallID: strconv.Itoa(i), ToolID: "x"}, 0))
		require.NoError(t, err)
	}
	require.Equal(t, dialect.MaxCalls, e.Losses()[0].Count)
	_, err := e.End(nil)
	require.NoError(t, err)
	require.Equal(t, dialect.MaxCalls+1, e.Losses()[0].Count)
}

// agent:complete means success.
func TestFailedAgents(t *testing.T) {
	for _, c := range []struct {
		end  agentevents.AgentEnded
		want string
	}{
		{agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted, Result: "half"}, `"agent:error","nodeId":"coder","runId":"coder","timestamp":1767517322500,"errorType":"aborted","message":"half","outcome":"aborted","result":"half"`},
		{agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Code: "rate_limit", Message: "slow down", Details: `{"n":1}`})},
			`"agent:error","nodeId":"coder","runId":"coder","timestamp":1767517322500,"errorType":"rate_limit","message":"slow down","details":{"n":1},"outcome":"aborted"`},
		{agentevents.AgentEnded{Outcome: agentevents.OutcomePartial, Result: "half"},
			`"agent:complete","nodeId":"coder","runId":"coder","timestamp":1767517322500,"result":"half","outcome":"partial","usage":{"inputTokens":0,"outputTokens":0},"durationMs":0,"numTurns":0`},
	} {
		line, _ := encode(t, native(&c.end, 0))
		require.Equal(t, `{"type":`+c.want+"}\n", line)
	}
	// The duration is measured from the start.
	line, _ := encode(t, native(&agentevents.AgentStarted{}, 0), native(&agentevents.AgentEnded{}, 1500*time.Millisecond))
	require.Contains(t, line, `"durationMs":1500,`)
}

func TestRefused(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	for _, p := range []agentevents.Payload{
		&agentevents.AgentTransition{}, &agentevents.EdgeSkipped{From: "a", To: "b"}, &agentevents.CommandConsumed{EventID: "x"}, &agentevents.NodeSuspended{},
		&agentevents.AgentSessionChanged{ProviderSessionID: "s"},
	} {
		out, err := e.Append([]byte("x"), native(p, 0))
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
		require.Equal(t, "x", string(out))
	}
	require.Len(t, e.Losses(), 5)
	var invariant *agentevents.RuleError
	for _, ev := range []agentevents.Event{
		{}, {Payload: (*agentevents.RunPaused)(nil)}, {Payload: &agentevents.RunPaused{}, Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		native(&agentevents.NodeCompleted{Outputs: `{`}, 0), native(&agentevents.AgentEnded{TotalCostUSD: agentevents.Some(nan())}, 0),
		native(&agentevents.ToolReturned{CallID: "c", ToolID: "\xff", OneEvent: true, Status: agentevents.ToolStatusOK}, 0),
	} {
		out, err := e.Append([]byte("x"), ev)
		require.ErrorAs(t, err, &invariant)
		require.Equal(t, "x", string(out))
	}
	require.Len(t, e.Losses(), 5)
}

func nan() float64 { zero := 0.0; return zero / zero }

func FuzzDecode(f *testing.F) {
	for _, g := range golden {
		f.Add([]byte(g.line))
	}
	f.Add([]byte(`{"x":[{"a":1}],"timestamp":-1.5,"runId":"","type":"agent:complete","usage":{"a/b":1},"modelUsage":{"":{"~":null}}}`))
	f.Add([]byte(`{"/a":1,"timestamp":1e3,"type":"x","nodeId":"","runId":"r"}`))
	f.Add([]byte(`{"type":"agent:"}`))
	f.Add([]byte(`{"type":"x","nodeId":0}`))
	f.Fuzz(func(t *testing.T, log []byte) { dialecttest.CheckLog(t, suite(false), string(log)) })
}

// A line names the execution of the agent that delegates, as its own lines do.
func TestParents(t *testing.T) {
	of := func(agent, execution, parent string, p agentevents.Payload) agentevents.Event {
		ev := in("r", agent, 0, p)
		ev.NodeRunID, ev.ParentAgentID = execution, parent
		return ev
	}
	start := &agentevents.AgentStarted{}
	lines, losses := encode(t, of("a", "", "", start), of("b", "x1", "a", start), of("c", "", "b", start), of("d", "", "gone", start))
	var got []string
	for _, ev := range decodeLines(t, Options{Strict: true}, strings.Split(strings.TrimSpace(lines), "\n")...) {
		got = append(got, ev.NodeRunID+"<"+ev.ParentAgentID)
	}
	require.Equal(t, []string{"a<", "x1<a", "c<x1", "d<gone"}, got)
	altered := find(losses, agentevents.KindAgentStarted, "/parentAgentId")
	require.Len(t, altered, 1)
	require.Equal(t, dialect.Altered, altered[0].What)
	require.Equal(t, 1, altered[0].Count)
}

// An event after the end of its agent is marked late on the line. After flow:aborted readers know
// it without the mark.
func TestLate(t *testing.T) {
	late := in("r", "a", 0, &agentevents.TextCompleted{Text: "x"})
	late.Marks = agentevents.MarkLate | agentevents.MarkSynthetic
	lines, losses := encode(t, in("r", "a", 0, &agentevents.AgentStarted{}), in("r", "a", 0, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}), late,
		in("r", "", 0, &agentevents.RunCancelled{}), late)
	require.Equal(t, 1, strings.Count(lines, `"late":true`))
	events := decodeLines(t, Options{Strict: true}, strings.Split(strings.TrimSpace(lines), "\n")...)
	require.Equal(t, agentevents.MarkLate, events[2].Marks)
	require.Equal(t, agentevents.MarkLate, events[4].Marks)
	require.Len(t, find(losses, agentevents.KindTextCompleted, "/marks"), 1, "the other mark")
	// Another value is an extra member.
	ev := decodeLines(t, Options{}, strings.Replace(strings.Split(lines, "\n")[2], `"late":true`, `"late":"x"`, 1))[0]
	require.Zero(t, ev.Marks)
	again, _ := encode(t, ev)
	require.Contains(t, again, `"late":"x"`)
}

// A flow may end with another word than the document's. Its meaning decides, and it is kept.
func TestWordsOfFlowEnds(t *testing.T) {
	for word, want := range map[string]agentevents.Payload{
		"completed": &agentevents.RunCompleted{}, "SUCCESS": &agentevents.RunCompleted{},
		"error": &agentevents.RunFailed{}, "timed_out": &agentevents.RunFailed{}, "denied": &agentevents.RunFailed{},
		"cancelled": &agentevents.RunCancelled{}, "aborted": &agentevents.RunCancelled{},
	} {
		line := at("flow:complete", `,"flowName":"f","status":"`+word+`"`)
		ev := decodeLines(t, Options{}, line)[0]
		require.IsType(t, want, ev.Payload, word)
		back, _ := encode(t, ev)
		require.Equal(t, line+"\n", back)
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
		require.ErrorContains(t, err, "is not one of complete, failed", word)
	}
}
