package openharness

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// in returns an event of a run and an agent.
func in(runID, agent string, after time.Duration, p agentevents.Payload) agentevents.Event {
	return agentevents.Event{RunID: runID, AgentID: agent, Time: epoch.Add(after), SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

// find returns the losses of a kind at a pointer.
func find(losses []dialect.Loss, kind agentevents.Kind, pointer string) []dialect.Loss {
	var list []dialect.Loss
	for _, l := range losses {
		if l.Kind == kind && l.Pointer == pointer {
			l.RunID, l.Sequence = "", 0
			list = append(list, l)
		}
	}
	return list
}

// Agents of the same name in two runs have separate starts.
func TestStartsAreOfARun(t *testing.T) {
	line, _ := encode(t,
		in("r1", "planner", 0, &agentevents.AgentStarted{}),
		in("r2", "planner", 10*time.Second, &agentevents.AgentStarted{}),
		in("r1", "planner", 11*time.Second, &agentevents.AgentEnded{}),
		in("r2", "planner", 12*time.Second, &agentevents.AgentEnded{}),
	)
	require.Contains(t, line, `"durationMs":11000,`)
	require.Contains(t, line, `"durationMs":2000,`)
}

// A value that the document has no form for is written in another form.
func TestOtherForms(t *testing.T) {
	for _, c := range []struct {
		payload agentevents.Payload
		has     string
		losses  []string
	}{
		{&agentevents.StatePatched{Op: agentevents.PatchRemove, Path: "p"}, `{"op":"set","path":"p","value":null}`, []string{"altered op", "made up value"}},
		{&agentevents.StatePatched{Op: agentevents.PatchRemove, Path: "p", Value: "1"}, `{"op":"set","path":"p","value":null}`, []string{"altered op", "altered value"}},
		{&agentevents.StatePatched{Op: agentevents.PatchRemove, Path: "p", Value: "null"}, `{"op":"set","path":"p","value":null}`, []string{"altered op"}},
		{&agentevents.AgentStarted{ProviderSessionID: "s", Prompt: `{"a":1}`}, `"prompt":[{"a":1}]`, []string{"altered prompt"}},
		{&agentevents.AgentStarted{ProviderSessionID: "s", Prompt: `["a"]`}, `"prompt":["a"]`, nil},
		{&agentevents.AgentStarted{ProviderSessionID: "s", Prompt: `["a",1]`}, `"prompt":"[\"a\",1]"`, []string{"altered prompt"}},
		{&agentevents.AgentStarted{ProviderSessionID: "s", Prompt: `1.50`}, `"prompt":"1.50"`, []string{"altered prompt"}},
		{&agentevents.AgentStarted{ProviderSessionID: "s", Task: "t"}, `"prompt":"t"`, []string{"dropped task", "made up prompt"}},
		{&agentevents.ToolReturned{ToolID: "x", OneEvent: true, Status: agentevents.ToolStatusOK, ResultSummary: "s"}, `"toolOutput":"s"`, []string{"dropped resultSummary", "made up result"}},
		{&agentevents.ToolReturned{ToolID: "x", OneEvent: true, Status: agentevents.ToolStatusOK, Error: agentevents.Some(agentevents.ErrorInfo{Message: "m"})}, `"error":"m"`, []string{"altered status"}},
		{&agentevents.ToolReturned{ToolID: "x", Status: agentevents.ToolStatusOK}, `"toolName":"x"`, []string{"made up oneEvent"}},
		{&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandSend, Message: "m"}, Rejected: "no"}, `"message":"m"`, []string{"altered rejected"}},
	} {
		ev := in("r", "", 0, c.payload)
		ev.NodeID, ev.NodeRunID = "n", "x"
		line, list := encode(t, ev)
		require.Contains(t, line, c.has)
		var losses []string
		for _, l := range list {
			if rest, ok := strings.CutPrefix(l.Pointer, "/payload/"); ok && rest != "callId" {
				losses = append(losses, l.What.String()+" "+rest)
			}
		}
		require.ElementsMatch(t, c.losses, losses, line)
	}
}

// The result of an end without one is the agent's own last text.
func TestResultIsTheLastText(t *testing.T) {
	for _, c := range []struct{ said, want string }{{"", "b"}, {"said", "said"}} {
		line, losses := encode(t,
			in("r1", "coder", 0, &agentevents.AgentStarted{}),
			in("r1", "other", 0, &agentevents.AgentStarted{}),
			in("r1", "coder", 0, &agentevents.TextCompleted{Text: "a"}),
			in("r1", "coder", 0, &agentevents.TextCompleted{Text: "b"}),
			in("r1", "other", 0, &agentevents.TextCompleted{Text: "c"}),
			in("r1", "coder", 0, &agentevents.AgentEnded{Result: c.said}),
		)
		require.Contains(t, line, `"result":"`+c.want+`"`)
		require.Equal(t, c.said == "", len(find(losses, agentevents.KindAgentEnded, "/payload/result")) == 1)
	}
}

// Agents that never end are forgotten with their node, or when there are too many.
func TestStartsAreBounded(t *testing.T) {
	started := func(e *Encoder, i int) string {
		id := strconv.Itoa(i)
		for _, p := range []agentevents.Payload{&agentevents.AgentStarted{}, &agentevents.TextDelta{BlockID: "b", Delta: "x"}} {
			_, err := e.Append(nil, in("r"+id, "a"+id, 0, p))
			require.NoError(t, err)
		}
		return id
	}
	for _, end := range []agentevents.Payload{&agentevents.NodeFailed{}, &agentevents.NodeCompleted{}, &agentevents.AgentEnded{}} {
		e := NewEncoder(EncoderOptions{})
		for i := range 100 {
			id := started(e, i)
			_, err := e.Append(nil, in("r"+id, "a"+id, 0, end))
			require.NoError(t, err)
		}
		require.Zero(t, e.started.Len(), "%T", end)
	}
}

// Nodes that never end are forgotten with the flow.
func TestBlocksEndWithTheFlow(t *testing.T) {
	for _, end := range []string{at("flow:aborted", ``), at("flow:complete", `,"flowName":"f","status":"failed"`), at("flow:start", `,"flowName":"f"`)} {
		d := NewDecoder(Options{})
		for i := range 100 {
			for _, line := range []string{
				`{"type":"agent:text:delta","nodeId":"n","runId":"` + strconv.Itoa(i) + `","timestamp":1,"content":"x"}`, end,
			} {
				_, err := d.Decode(nil, []byte(line))
				require.NoError(t, err)
			}
		}
		require.Empty(t, d.blocks.runs)
		events, err := d.Decode(nil, []byte(of("agent:text:delta", `,"content":"x"`)))
		require.NoError(t, err)
		require.Equal(t, "block-101", events[0].Payload.(*agentevents.TextDelta).BlockID, "ids are not given twice")
	}
}

// A block's id is a loss if and only if readers give another one, or none.
func TestBlockLosses(t *testing.T) {
	delta := func(id, text string) agentevents.Payload { return &agentevents.TextDelta{BlockID: id, Delta: text} }
	text := func(id, text string) agentevents.Payload { return &agentevents.TextCompleted{BlockID: id, Text: text} }
	tool := &agentevents.ToolReturned{ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true}
	const kind, deltas = agentevents.KindTextCompleted, agentevents.KindTextDelta
	for _, c := range []struct {
		name   string
		events []agentevents.Payload
		read   string // the result of readers
		losses []dialect.Loss
	}{
		{"no deltas left", []agentevents.Payload{delta("block-1", "a"), tool, delta("block-2", "b"), text("block-2", "b"), text("", "c")}, "block-1 block-2 block-2 -", nil},
		{"the whole of something else", []agentevents.Payload{delta("block-1", "a"), tool, text("b9", "other")}, "block-1 -",
			[]dialect.Loss{{Kind: kind, Pointer: "/payload/blockId", What: dialect.Dropped, Detail: "readers number blocks", Count: 1}}},
		{"an end that is written as an error", []agentevents.Payload{delta("block-1", "a"), &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted}, text("", "a")},
			"block-1 -", nil},
		{"an end", []agentevents.Payload{delta("block-1", "a"), &agentevents.AgentEnded{}, text("", "a")}, "block-1 -", nil},
		{"as the decoder has it", []agentevents.Payload{delta("block-1", "a"), delta("block-1", "b"), text("block-1", "ab")}, "block-1 block-1 block-1", nil},
		{"other ids", []agentevents.Payload{delta("x", "a"), delta("", "b"), text("x", "ab")}, "block-1 block-1 block-1", []dialect.Loss{
			{Kind: kind, Pointer: "/payload/blockId", What: dialect.Altered, Detail: "readers number blocks", Count: 1},
			{Kind: deltas, Pointer: "/payload/blockId", What: dialect.Altered, Detail: "readers number blocks", Count: 1},
			{Kind: deltas, Pointer: "/payload/blockId", What: dialect.Made, Detail: "readers number blocks", Count: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []agentevents.Event
			for _, p := range c.events {
				ev := in("", "", 0, p)
				ev.NodeID, ev.NodeRunID = "n", "x"
				events = append(events, ev)
			}
			lines, losses := encode(t, events...)
			ids := ""
			for _, ev := range decodeLines(t, Options{}, strings.Split(strings.TrimSpace(lines), "\n")...) {
				switch p := ev.Payload.(type) {
				case *agentevents.TextDelta:
					ids += cmp.Or(p.BlockID, "-") + " "
				case *agentevents.TextCompleted:
					ids += cmp.Or(p.BlockID, "-") + " "
				}
			}
			require.Equal(t, c.read, strings.TrimSpace(ids))
			require.ElementsMatch(t, c.losses, append(find(losses, kind, "/payload/blockId"), find(losses, deltas, "/payload/blockId")...))
		})
	}
}

// Lines without runId belong to one node run, also verbatim ones.
func TestBlocksOfVerbatimLines(t *testing.T) {
	const log = `{"type":"agent:text:delta","timestamp":1,"content":"a"}
{"type":"agent:text","timestamp":1,"content":"a"}
`
	out, losses := encode(t, read(t, agentevents.ReaderOptions{Verbatim: true}, log)...)
	require.Equal(t, log, out)
	require.Empty(t, find(losses, agentevents.KindTextCompleted, "/payload/blockId"))
}

// Extra members never make a line that a reader refuses. The encoder leaves out those
// that the line already has, and those in a form that no decoder makes.
func TestKeptMembers(t *testing.T) {
	end := func() agentevents.Payload {
		return &agentevents.AgentEnded{Result: "r", ModelUsage: map[string]agentevents.Usage{"m": {}, "a~b": {}}}
	}
	patch := func() agentevents.Payload { return &agentevents.StatePatched{Op: agentevents.PatchSet, Path: "p"} }
	for _, c := range []struct {
		payload agentevents.Payload
		extra   string
		has     string   // the members of the line
		lost    []string // the names of extra members that are dropped or altered, as tokens
	}{
		{patch(), `{"/patch/op":3}`, `"patch":{"op":"set","path":"p"}}`, []string{"~1patch~1op"}},
		{patch(), `{"/patch/value":3}`, `"patch":{"op":"set","path":"p"}}`, []string{"~1patch~1value"}},
		{patch(), `{"/patch/a~0":1,"/patch/a~":2}`, `"patch":{"op":"set","path":"p","a~":1}}`, []string{"~1patch~1a~0"}},
		{patch(), `{"/usage/x":1,"/patch/a/b":2,"/patch":3}`, `"path":"p"}}`, []string{"~1usage~1x", "~1patch~1a~1b", "~1patch"}},
		{end(), `{"/usage/inputTokens":3,"/usage/cacheReadInputTokens":4}`, `"usage":{"inputTokens":0,"outputTokens":0},`, []string{"~1usage~1inputTokens", "~1usage~1cacheReadInputTokens"}},
		{end(), `{"/modelUsage/m/inputTokens":3,"/modelUsage/m/cacheReadInputTokens":4}`, `"m":{"inputTokens":0,"outputTokens":0,"cacheReadInputTokens":4}`,
			[]string{"~1modelUsage~1m~1inputTokens"}},
		{end(), `{"/modelUsage/a~b/x":3,"/modelUsage/none/x":4}`, `"a~b":{"inputTokens":0,"outputTokens":0}`, []string{"~1modelUsage~1a~0b~1x", "~1modelUsage~1none~1x"}},
		{&agentevents.CommandReceived{Command: agentevents.Command{Type: agentevents.CommandAbort}}, `{"/command/type":3,"/command/x":1}`,
			`"command":{"type":"abort","x":1}}`, []string{"~1command~1type"}},
		{&agentevents.RunPaused{}, `{"z":3,"/z":4}`, `"z":3}`, []string{"~1z"}},
		{&agentevents.RunPaused{}, `{"/~1z":3,"/~1z~":4}`, `"/z":3}`, []string{"~1~01z~0"}},
		{&agentevents.RunPaused{}, `{"type":3,"timestamp":4}`, `}`, []string{"type", "timestamp"}},
		{&agentevents.RunStarted{Name: "f"}, `{"flowName":"g"}`, `"flowName":"f"}`, []string{"flowName"}},
		{&agentevents.RunCompleted{}, `{"flowName":"g"}`, `"flowName":"g",`, nil},
		{&agentevents.RunCompleted{}, `{"flowName":7}`, `"flowName":"",`, []string{"flowName"}},
	} {
		ev := in("r", "", 0, c.payload)
		ev.NodeID, ev.NodeRunID = "n", "x"
		require.NoError(t, ev.SetExtra(string(Name), agentevents.JSON(c.extra)))
		line, losses := encode(t, ev)
		require.Contains(t, line, c.has)
		decodeLines(t, Options{}, strings.TrimSpace(line))
		var lost []string
		for _, l := range losses {
			if key, ok := strings.CutPrefix(l.Pointer, "/openharness/"); ok && l.What != dialect.Made {
				lost = append(lost, key)
			}
		}
		require.ElementsMatch(t, c.lost, lost, c.extra)
	}
}

// The decoder makes up the time of a line without one, and the encoder the time of an event without
// one. Both list it. A verbatim line stays as it is.
func TestMissingTimestamp(t *testing.T) {
	const line = `{"type":"agent:text","nodeId":"n","runId":"x","content":"c"}`
	made := []dialect.Loss{{Kind: agentevents.KindTextCompleted, Pointer: "/timestamp", What: dialect.Made, Detail: "1970 stands for a time that is not known", Count: 1}}
	d := NewDecoder(Options{})
	events, err := d.Decode(nil, []byte(line))
	require.NoError(t, err)
	require.Equal(t, time.Unix(0, 0).UTC(), events[0].Time, "no line came before")
	require.Len(t, find(d.Losses(), "", "/timestamp"), 1)
	require.Equal(t, "1970 stands for a time that is not known", find(d.Losses(), "", "/timestamp")[0].Detail)
	out, losses := encode(t, events...)
	require.Contains(t, out, `"timestamp":0,`)
	require.Empty(t, find(losses, agentevents.KindTextCompleted, "/timestamp"))

	later := decodeLines(t, Options{}, at("flow:paused", ""), line)
	require.False(t, agentevents.TimeKnown(later[1].Time), "nor has that of another line")
	later[1].Time = time.Time{}
	out, losses = encode(t, later...)
	require.Contains(t, out, `"timestamp":0,"content"`)
	require.Equal(t, made, find(losses, agentevents.KindTextCompleted, "/timestamp"))

	out, losses = encode(t, read(t, agentevents.ReaderOptions{Verbatim: true}, line)...)
	require.Equal(t, line+"\n", out)
	require.Empty(t, find(losses, agentevents.KindTextCompleted, "/timestamp"))
}

// A strict decoder names the first fault.
func TestFirstFault(t *testing.T) {
	for _, c := range []struct{ usage, pointer string }{
		{`{}`, "/usage/inputTokens"},
		{`{"inputTokens":-1,"outputTokens":-2}`, "/usage/inputTokens"},
		{`{"inputTokens":1,"outputTokens":-2}`, "/usage/outputTokens"},
		{`{},"modelUsage":{"m":{}}`, "/usage/inputTokens"},
	} {
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(of("agent:complete", `,"result":"r","durationMs":1,"numTurns":1,"usage":`+c.usage)))
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, c.pointer, rule.Pointer, c.usage)
	}
}

// A flow:complete without the status of the flow comes back unchanged.
func TestFlowWithoutStatus(t *testing.T) {
	line := at("flow:complete", `,"flowName":"f"`)
	events := decodeLines(t, Options{}, line)
	require.Equal(t, &agentevents.Unknown{Type: "flow:complete", Raw: `{"flowName":"f"}`}, events[0].Payload)
	out, losses := encode(t, events...)
	require.Equal(t, line+"\n", out)
	require.Empty(t, find(losses, "flow:complete", "/payload"))
	_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
	require.ErrorContains(t, err, "/status")
}

// An unknown type may use the names of the envelope for other things.
func TestForeignTimestamps(t *testing.T) {
	for _, value := range []string{`"2026-01-01T00:00:00Z"`, `null`, `{"a":1}`, `1e400`, `253402300800000`} {
		line := `{"type":"later","timestamp":` + value + `}`
		events := decodeLines(t, Options{}, line)
		require.Equal(t, &agentevents.Unknown{Type: "later", Raw: agentevents.JSON(`{"timestamp":` + value + `}`)}, events[0].Payload)
		require.Equal(t, time.Unix(0, 0).UTC(), events[0].Time, "no line came before")
		out, losses := encode(t, events...)
		require.Equal(t, line+"\n", out)
		require.Empty(t, find(losses, "later", "/timestamp"))
	}
	out, losses := encode(t, in("r", "", 0, &agentevents.Unknown{Type: "later", Raw: `{"timestamp":null}`}))
	require.Equal(t, `{"type":"later","timestamp":null}`+"\n", out)
	require.Equal(t, []dialect.Loss{{Kind: "later", Pointer: "/timestamp", What: dialect.Dropped, Count: 1}}, find(losses, "later", "/timestamp"))
	_, err := NewEncoder(EncoderOptions{}).Append(nil, in("r", "", 0, &agentevents.Unknown{Type: "later", Raw: `{"timestamp":1}`}))
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	for _, line := range []string{
		`{"type":"later","timestamp":null,"timestamp":1}`, `{"type":"later","nodeId":1,"nodeId":"n"}`, `{"type":"later","timestamp":tru}`, `{"type":"later","timestamp":"x`,
	} {
		_, err := NewDecoder(Options{}).Decode(nil, []byte(line))
		require.Error(t, err, line)
	}
}

// If a call and its return differ, the line has the call's values.
func TestJoinedCallsThatDiffer(t *testing.T) {
	node := func(id string, ev agentevents.Event) agentevents.Event {
		ev.NodeID, ev.NodeRunID = id, id+"-1"
		return ev
	}
	call := &agentevents.ToolCalled{CallID: "c", ToolID: "Read", Arguments: `{"a":1}`}
	ret := &agentevents.ToolReturned{CallID: "c", ToolID: "Write", Arguments: `{"a":2}`, ArgumentsSummary: "two", Status: agentevents.ToolStatusOK}
	line, losses := encode(t, node("n", in("r", "a", 0, call)), node("m", in("r", "a", 0, ret)))
	require.Contains(t, line, `"nodeId":"m","runId":"m-1",`)
	require.Contains(t, line, `"toolName":"Write","toolInput":{"a":1}`)
	for _, pointer := range []string{"/nodeId", "/nodeRunId", "/payload/toolId"} {
		require.Equal(t, []dialect.Loss{{Kind: agentevents.KindToolCalled, Pointer: pointer, What: dialect.Dropped, Count: 1}}, find(losses, agentevents.KindToolCalled, pointer))
	}
	for pointer, detail := range map[string]string{"/payload/arguments": "", "/payload/argumentsSummary": "on the line only in place of a missing value"} {
		require.Equal(t, []dialect.Loss{{Kind: agentevents.KindToolReturned, Pointer: pointer, What: dialect.Dropped, Detail: detail, Count: 1}},
			find(losses, agentevents.KindToolReturned, pointer))
	}

	// They agree in node and tool, and the return fills in the fields that the call lacks.
	call, ret = &agentevents.ToolCalled{CallID: "c", ToolID: "Read"}, &agentevents.ToolReturned{CallID: "c", ToolID: "Read", Arguments: `{"a":2}`, Status: agentevents.ToolStatusOK}
	line, losses = encode(t, node("n", in("r", "a", 0, call)), node("n", in("r", "a", 0, ret)))
	require.Contains(t, line, `"toolName":"Read","toolInput":{"a":2}`)
	for _, pointer := range []string{"/nodeId", "/nodeRunId", "/payload/toolId"} {
		require.Empty(t, find(losses, agentevents.KindToolCalled, pointer))
	}
	require.Empty(t, find(losses, agentevents.KindToolReturned, "/payload/arguments"))
}

// agent:error always has a type and a message.
func TestMadeUpErrors(t *testing.T) {
	made := func(end agentevents.AgentEnded) (pointers []string) {
		_, losses := encode(t, in("r", "a", 0, &end))
		for _, l := range losses {
			if l.What == dialect.Made && strings.HasPrefix(l.Pointer, "/payload/") {
				pointers = append(pointers, l.Pointer)
			}
		}
		return pointers
	}
	const code, message = "/payload/error/code", "/payload/error/message"
	require.Equal(t, []string{code, "/payload/outcome"}, made(agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Details: `1`})}), "a native error has a message, too")
	require.Equal(t, []string{code, message, "/payload/outcome"}, made(agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Details: `1`}), Result: "r"}))
	require.Equal(t, []string{"/payload/error"}, made(agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted}))
	require.Equal(t, []string{"/payload/outcome"}, made(agentevents.AgentEnded{Error: agentevents.Some(agentevents.ErrorInfo{Code: "c", Message: "m"})}))
	require.Empty(t, made(agentevents.AgentEnded{Outcome: agentevents.OutcomePartial, Error: agentevents.Some(agentevents.ErrorInfo{Code: "c", Message: "m"})}))
}

// No line names its run. An event of another run gets a flow:start in front of it. Readers
// take verbatim lines of mixed runs for one, which is a loss of its own.
func TestMixedRuns(t *testing.T) {
	readMixed := false // count the events that come back in another run
	mixed := func(events ...agentevents.Event) (n int) {
		_, losses := encode(t, events...)
		for _, l := range losses {
			flow := l.What == dialect.Made && l.Pointer == "" && l.Detail == "flow:start in front of it"
			if flow || readMixed && l.What == dialect.Dropped && l.Pointer == "/runId" {
				n += l.Count
			}
		}
		return n
	}
	start := func(run string) agentevents.Event { return in(run, "", 0, &agentevents.RunStarted{Name: "f"}) }
	node := func(run string) agentevents.Event { return in(run, "a", 0, &agentevents.NodeStarted{}) }
	end := func(run string) agentevents.Event { return in(run, "", 0, &agentevents.RunCompleted{}) }
	require.Zero(t, mixed(start("r1"), node("r1"), end("r1"), node("r1")))
	require.Zero(t, mixed(start("r1"), end("r1"), start("r2"), node("r2"), end("r2")))
	require.Zero(t, mixed(node("r1"), start("r1")))
	require.Equal(t, 2, mixed(start("r1"), start("r2"), node("r1"), node("r2")), "r2 goes on, too")
	require.Equal(t, 3, mixed(start("r1"), node("r2"), node("r1"), node("r2")))
	require.Equal(t, 1, mixed(start("r1"), end("r1"), node("r2")), "no flow:start")

	// Verbatim lines have no such loss, unless the log mixes runs.
	log := []string{at("flow:start", `,"flowName":"f"`), of("node:start", ``), of("agent:tool", `,"toolName":"x"`), of("agent:text:delta", `,"content":"x"`), at("flow:start", `,"flowName":"f"`), of("node:start", ``)}
	verbatim := func(lines ...string) []agentevents.Event {
		return read(t, agentevents.ReaderOptions{Verbatim: true, Decoder: NewDecoder(Options{})}, strings.Join(lines, "\n"))
	}
	_, losses := encode(t, verbatim(log...)...)
	require.Empty(t, losses)
	e := NewEncoder(EncoderOptions{RunID: run})
	for _, ev := range read(t, agentevents.ReaderOptions{Verbatim: true, Decoder: NewDecoder(Options{RunID: run})}, strings.Join(log, "\n")) {
		_, err := e.Append(nil, ev)
		require.NoError(t, err)
	}
	require.Empty(t, e.Losses(), "the reader that names the run counts on")
	one, other := verbatim(log[:2]...), verbatim(strings.Replace(log[0], `"f"`, `"g"`, 1), log[1])
	readMixed = true
	require.Equal(t, 3, mixed(one[0], other[0], one[1], other[1]), "a reader names the second run after its line")
}

// The encoder refuses numbers that a strict decoder refuses, except on verbatim lines.
func TestOutOfRange(t *testing.T) {
	tokens, cost, duration := agentevents.Some(int64(-1)), agentevents.Some(-1.0), agentevents.Some(-time.Millisecond)
	for _, c := range []struct {
		payload agentevents.Payload
		pointer string
	}{
		{&agentevents.LoopIterated{}, "/payload/iteration"},
		{&agentevents.AgentReasoned{TokenCount: tokens}, "/payload/tokenCount"},
		{&agentevents.AgentReasoningDelta{TokenCount: tokens}, "/payload/tokenCount"},
		{&agentevents.ToolReturned{OneEvent: true, Status: agentevents.ToolStatusOK, Duration: duration}, "/payload/durationMs"},
		{&agentevents.AgentEnded{Duration: duration}, "/payload/durationMs"},
		{&agentevents.AgentEnded{NumTurns: agentevents.Some(-1)}, "/payload/numTurns"},
		{&agentevents.AgentEnded{TotalCostUSD: cost}, "/payload/totalCostUsd"},
		{&agentevents.AgentEnded{Usage: agentevents.Some(agentevents.Usage{InputTokens: -1})}, "/payload/usage/inputTokens"},
		{&agentevents.AgentEnded{Usage: agentevents.Some(agentevents.Usage{OutputTokens: -1})}, "/payload/usage/outputTokens"},
		{&agentevents.AgentEnded{Usage: agentevents.Some(agentevents.Usage{CacheCreationInputTokens: tokens})}, "/payload/usage/cacheCreationInputTokens"},
		{&agentevents.AgentEnded{Usage: agentevents.Some(agentevents.Usage{CacheReadInputTokens: tokens})}, "/payload/usage/cacheReadInputTokens"},
		{&agentevents.AgentEnded{ModelUsage: map[string]agentevents.Usage{"a/b": {OutputTokens: -1}}}, "/payload/modelUsage/a~1b/outputTokens"},
	} {
		e := NewEncoder(EncoderOptions{})
		out, err := e.Append([]byte("x"), in("r", "a", 0, c.payload))
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, RuleRange, rule.Rule)
		require.Equal(t, c.pointer, rule.Pointer)
		require.Equal(t, "x", string(out))
		require.Empty(t, e.Losses())
	}
	_, err := NewEncoder(EncoderOptions{}).Append(nil, in("r", "a", 0, &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted, Duration: duration}))
	require.Error(t, err, "an end without success has these numbers too")
	for _, line := range []string{at("loop:iterate", `,"iteration":0`), at("loop:iterate", ``), of("agent:tool", `,"toolName":"x","durationMs":-1`)} {
		out, _ := encode(t, read(t, agentevents.ReaderOptions{Verbatim: true}, line)...)
		require.Equal(t, line+"\n", out)
	}
}

// Words that the document does not list come back as long as the status is the same. The
// flags of the run agree with the status.
func TestSnapshotWords(t *testing.T) {
	for word, want := range map[string]agentevents.RunStatus{
		"completed": agentevents.RunStatusCompleted, "failed": agentevents.RunStatusFailed, "waiting": agentevents.RunStatusWaiting,
		"pending": agentevents.RunStatusPending, "cancelled": agentevents.RunStatusCancelled, "cancelling": agentevents.RunStatusCancelling,
		"": "", "stopped": "stopped", "idle": agentevents.RunStatusPending, "complete": agentevents.RunStatusCompleted,
		"aborted": agentevents.RunStatusCancelled, "paused": agentevents.RunStatusPaused, "running": agentevents.RunStatusRunning,
	} {
		s, err := ParseSnapshot([]byte(`{"status":"` + word + `","nodeStatus":{"a":"suspended","b":"later"}}`))
		require.NoError(t, err)
		require.Equal(t, want, s.Run.Status)
		require.Equal(t, want.Terminal(), s.Run.TerminalKind != "", word)
		out, err := s.AppendJSON(nil)
		require.NoError(t, err)
		require.Contains(t, string(out), `{"status":"`+word+`",`)
		require.Contains(t, string(out), `"nodeStatus":{"a":"suspended","b":"later"}`)

		s.Run.RunID = run
		f, err := agentevents.ResumeFold(s.Run, agentevents.FoldOptions{})
		require.NoError(t, err)
		switch want {
		case "": // the line has no value
			require.Equal(t, agentevents.RunStatusPending, f.Snapshot().Status)
		case "stopped", agentevents.RunStatusWaiting: // the run has no question to wait for
			require.Equal(t, agentevents.RunStatusRunning, f.Snapshot().Status)
		default:
			require.Equal(t, want, f.Snapshot().Status, word)
		}

		s.Run.Status = agentevents.RunStatusRunning
		s.Run.NodeStatus["a"] = agentevents.NodeStatusRunning
		out, err = s.AppendJSON(nil)
		require.NoError(t, err)
		require.Contains(t, string(out), `"status":"running",`)
		require.Contains(t, string(out), `"a":"running"`)
	}
}

// The hash of a text does not depend on how it is cut.
func TestHash(t *testing.T) {
	const text = "The quick brown fox"
	want := hash(hashStart, text)
	for i := range text {
		for j := i; j <= len(text); j++ {
			require.Equal(t, want, hash(hash(hash(hashStart, text[:i]), text[i:j]), text[j:]))
		}
	}
	require.NotEqual(t, want, hash(hashStart, "The quick brown fxo"))
}

// FuzzKept checks that a line with any extra members can be read, and is written the same
// again.
func FuzzKept(f *testing.F) {
	for _, extra := range []string{`{"/patch/op":3}`, `{"z":3,"/z":4}`, `{"/modelUsage/a~0b/x":{},"/usage/":1}`, `{"/~1z":3,"":4}`, `{"/command/type":3,"/command/x~1y":1}`, `{"flowName":[]}`, `3`} {
		f.Add(extra)
	}
	f.Fuzz(func(t *testing.T, extra string) {
		for _, g := range golden {
			ev := g.event(t)
			if ev.SetExtra(string(Name), agentevents.JSON(extra)) != nil {
				return
			}
			line, err := NewEncoder(EncoderOptions{}).Append(nil, ev)
			require.NoError(t, err)
			events, err := NewDecoder(Options{RunID: run, Strict: true}).Decode(nil, line[:len(line)-1])
			require.NoError(t, err, "%s", line)
			again, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
			require.NoError(t, err)
			require.Equal(t, string(line), string(again))
		}
	})
}

// A line of an unknown type breaks a rule if it lacks the members of every line, like lines of
// other formats.
func TestStrictUnknownTypes(t *testing.T) {
	for _, c := range []struct {
		line string
		rule agentevents.Rule // empty if it breaks none
		at   string
	}{
		{`{"type":"later","timestamp":1}`, "", ""},
		{`{"type":"agent:paused","nodeId":"n","runId":"x","timestamp":1.5,"sessionId":7}`, "", ""},
		{`{"type":"later","runId":"x","timestamp":1}`, "", ""},
		{`{"type":"x"}`, RuleRequired, "/timestamp"},
		{`{"type":"agent:paused","nodeId":"n","runId":"x","timestamp":"yesterday"}`, RuleRequired, "/timestamp"},
		{`{"type":"run.paused","id":"e","runId":"r","sequence":0,"timestamp":"2026-01-01T00:00:00Z","payload":{}}`, RuleRequired, "/timestamp"},
		{`{"type":"later","timestamp":null}`, RuleRequired, "/timestamp"},
		{`{"type":"later","nodeId":7,"runId":"x","timestamp":1}`, RuleNode, "/nodeId"},
		{`{"type":"later","nodeId":"n","runId":null,"timestamp":1}`, RuleNode, "/runId"},
	} {
		_, err := NewDecoder(Options{}).Decode(nil, []byte(c.line))
		require.NoError(t, err, c.line)
		_, err = NewDecoder(Options{Strict: true}).Decode(nil, []byte(c.line))
		if c.rule == "" {
			require.NoError(t, err, c.line)
			continue
		}
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule, c.line)
		require.Equal(t, []string{string(c.rule), c.at}, []string{string(rule.Rule), rule.Pointer}, c.line)
	}
}

// A whole number of milliseconds is read in any spelling.
func TestSpellingsOfTimestamps(t *testing.T) {
	want := decodeLines(t, Options{}, `{"type":"flow:paused","timestamp":10000000000000}`)[0].Time
	require.Equal(t, 2286, want.Year())
	for _, spelled := range []string{"1e13", "1E+13", "10000000000000.0", "1.0e13", "100000000000000e-1"} {
		require.Equal(t, want, decodeLines(t, Options{}, `{"type":"flow:paused","timestamp":`+spelled+`}`)[0].Time, spelled)
	}
	require.Equal(t, 1500*time.Microsecond, decodeLines(t, Options{}, `{"type":"flow:paused","timestamp":1.5}`)[0].Time.Sub(time.Unix(0, 0)))
	for _, bad := range []string{"1e15", "-1e15", `"1"`} {
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(`{"type":"flow:paused","timestamp":`+bad+`}`))
		require.Error(t, err, bad)
	}
}

// A call without an id gets one from the reader.
func TestCallsWithoutIDs(t *testing.T) {
	line, losses := encode(t, in("r", "a", 0, &agentevents.ToolReturned{ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true}))
	require.NotEmpty(t, decodeLines(t, Options{}, strings.TrimSpace(line))[0].Payload.(*agentevents.ToolReturned).CallID)
	require.Empty(t, find(losses, agentevents.KindToolReturned, "/payload/callId"), "reading lists it, as other ids")
}

// Events that have no place in the order of the document get one.
func TestOrderOfWrittenLines(t *testing.T) {
	var (
		node  = in("r", "a", 0, &agentevents.NodeStarted{})
		agent = in("r", "a", 0, &agentevents.AgentStarted{})
		text  = in("r", "a", 0, &agentevents.TextCompleted{Text: "x"})
		ended = in("r", "a", 0, &agentevents.AgentEnded{})
		done  = in("r", "a", 0, &agentevents.NodeCompleted{})
		flow  = in("r", "", 0, &agentevents.RunStarted{})
		end   = in("r", "", 0, &agentevents.RunCompleted{})
		other = in("r2", "b", 0, &agentevents.TextCompleted{Text: "x"})
	)
	for _, c := range []struct {
		name   string
		events []agentevents.Event
		types  string
	}{
		{"an agent without a start", []agentevents.Event{node, text, text}, "node:start agent:start agent:text agent:text"},
		{"an agent before its node", []agentevents.Event{agent, node, text}, "agent:start node:start agent:start resumed agent:text"},
		{"a start that comes later", []agentevents.Event{node, text, agent, ended}, "node:start agent:start agent:text agent:start resumed agent:complete"},
		{"an event after the end of its node", []agentevents.Event{node, agent, done, text}, "node:start agent:start node:complete agent:text late"},
		{"an agent that starts after the end of its node", []agentevents.Event{node, done, agent, text}, "node:start node:complete node:start agent:start agent:text"},
		{"two runs", []agentevents.Event{flow, end, other, text}, "flow:start flow:complete flow:start agent:text flow:start agent:text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, losses := encode(t, c.events...)
			var types []string
			for line := range strings.Lines(text) {
				types = append(types, jsonwire.Text(jsonwire.Member(line, "type")))
				for _, m := range []string{"resumed", "late"} {
					if jsonwire.HasMember(line, m) {
						types = append(types, m)
					}
				}
			}
			require.Equal(t, c.types, strings.Join(types, " "))
			log := agentevents.NewFoldSet(agentevents.FoldOptions{OnViolation: func(v *agentevents.RuleError) { t.Error(v) }})
			for ev, err := range agentevents.NewReader(strings.NewReader(text), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Strict: true})}).All() {
				require.NoError(t, err)
				log.Apply(ev)
			}
			require.NotEmpty(t, losses)
		})
	}
}
