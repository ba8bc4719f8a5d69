package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What ls and show say of logs is read by people: read the diff.
func TestShow(t *testing.T) {
	capture := exec("", "import", "claude", "--time", "2026-01-02T15:04:05Z", "../../capture/claude/testdata/subagent.stream.jsonl")
	require.Zero(t, capture.code, capture.err)
	quickstart := exec(capture.out, "ls", "-", clean, broken)
	require.Equal(t, exitProblems, quickstart.code)
	golden(t, "ls.txt", quickstart.out)
	golden(t, "show.txt", exec(capture.out, "show", "-").out+"\n"+exec("", "show", "--all", broken).out+"\n"+exec("", "show", "--run", "r1", clean, broken).out)

	require.Contains(t, exec("", "show", broken).err, "the log has 2 runs: choose one with --run, or all with --all; 'agentevents ls' lists them")
	for _, name := range []string{"show", "tree", "fold"} {
		require.Equal(t, exitUsage, exec("", name, "--run", "nobody", clean).code, name)
		require.Equal(t, exec("", name, clean).out, exec("", name, "--run", "r1", clean, broken).out, name)
	}
	require.Empty(t, exec("", "ls", "--status", "failed", clean).out)
	require.Equal(t, result{}, exec("", "ls", "-"))
	require.Equal(t, result{}, exec("", "show", "-"))
}

// A run that tells no agent what to do is asked what its user says last.
func TestShowOfMessages(t *testing.T) {
	log := func(messages, more string) string {
		return `{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[` + messages + "]}}\n" + more +
			`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hello"}` + "\n"
	}
	asked := `{"id":"1","role":"user","content":"Hi"},{"id":"2","role":"assistant","content":"What?"},{"id":"3","role":"user","content":"Who are\nyou?"}`
	require.Contains(t, exec(log(asked, ""), "show", "-").out, "\nasked      Who are you?\nanswered   Hello\n")
	said := `{"type":"TEXT_MESSAGE_CHUNK","role":"user","messageId":"4","delta":"You there"}` + "\n"
	require.Contains(t, exec(log(asked, said), "show", "-").out, "\nasked      You there\n")
	require.NotContains(t, exec(log("", ""), "show", "-").out, "asked")
}

// Every view marks tokens that are the least that a run used.
func TestTokensOfAKilledCapture(t *testing.T) {
	said := `{"type":"assistant","message":{"id":"m1","model":"m","content":[],"usage":{"input_tokens":7,"output_tokens":2,"cache_read_input_tokens":5}}}` + "\n"
	killed := exec(said, "import", "claude", "-").out
	require.Contains(t, exec(killed, "tree", "-").out, "· at least 7 tokens in, 2 out, 5 cached")
	require.Contains(t, exec(killed, "show", "-").out, "tokens     at least 7 in, 2 out, 5 cached\n")
	require.Regexp(t, `claude .* ≥14`, exec(killed, "show", "-").out)
	require.Contains(t, exec(killed, "ls", "-").out, " ≥14 ")
	require.Regexp(t, `tokens +≥14 +\(7 in, 2 out, 5 read`, exec(killed, "stats", "-").out)
	require.Regexp(t, `m .* ≥7 +≥2`, exec(killed, "stats", "--by", "model", "-").out)
	require.Regexp(t, `claude .* ≥7 +≥2`, exec(killed, "stats", "--by", "agent", "-").out)
	require.Contains(t, exec(killed, "stats", "--json", "-").out, `"partial": true`)
	require.Regexp(t, `tokens +≥14 `, exec("", "stats", "--tokens", write(t, said)).out)
	ended := exec(said+`{"type":"result","subtype":"success","usage":{"input_tokens":7,"output_tokens":9}}`+"\n", "import", "claude", "-").out
	for _, view := range []string{"tree", "show", "ls", "stats"} {
		require.NotRegexp(t, "at least|≥", exec(ended, view, "-").out)
	}
}

// The starts of an agent are turns if it had ended before and is the one that people ask.
func TestTurns(t *testing.T) {
	start := func(n int, agent string) string {
		return fmt.Sprintf(`{"id":"e%d","sequence":%d,"timestamp":"2026-11-01T09:00:00Z","type":"agent.started","runId":"r","agentId":%q,"payload":{}}`+"\n", n, n, agent)
	}
	end := func(n int, agent string) string {
		return fmt.Sprintf(`{"id":"e%d","sequence":%d,"timestamp":"2026-11-01T09:00:00Z","type":"agent.ended","runId":"r","agentId":%q,"payload":{"outcome":"aborted"}}`+"\n", n, n, agent)
	}
	for name, c := range map[string]struct{ log, turns string }{
		"asked again":                 {strings.Replace(start(0, "a"), "{}", `{"providerSessionId":"p"}`, 1) + end(1, "a") + start(2, "a") + end(3, "a") + start(4, "a"), "3"},
		"tried anew":                  {start(0, "a") + end(1, "a") + start(2, "a") + end(3, "a") + start(4, "a"), ""},
		"died":                        {start(0, "a") + start(1, "a"), ""},
		"died after a turn":           {start(0, "a") + end(1, "a") + start(2, "a") + start(3, "a") + end(4, "a"), ""},
		"another agent died":          {start(0, "boss") + start(1, "w") + start(2, "w") + end(3, "w"), ""},
		"another agent is tried anew": {start(0, "boss") + start(1, "w") + end(2, "w") + start(3, "w") + end(4, "w"), ""},
		"a spawned one is tried anew": {start(0, "boss") + strings.Replace(start(1, "w"), `"payload"`, `"parentAgentId":"boss","payload"`, 1) + end(2, "w") + start(3, "w"), ""},
	} {
		shown, listed := exec(c.log, "show", "-").out, exec(c.log, "ls", "-").out
		if c.turns == "" {
			require.NotContains(t, shown, "turns", name)
			require.NotContains(t, listed, "TURNS", name)
			continue
		}
		require.Contains(t, shown, "turns      "+c.turns+"\n", name)
		require.Contains(t, listed, "TURNS", name)
	}
}

// A run that waits tells for which answers, and the calls and answers of the next run of its
// thread are its own. A state has the elements that a log appends.
func TestQuestionsOfProtocol(t *testing.T) {
	asks := `{"type":"RUN_STARTED","threadId":"t","runId":"one","timestamp":1777971600000}
{"type":"STATE_SNAPSHOT","snapshot":{"log":["a"],"n":1},"timestamp":1777971600000}
{"type":"STATE_DELTA","delta":[{"op":"add","path":"/log/-","value":"b"},{"op":"replace","path":"/n","value":2}],"timestamp":1777971600000}
{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/log/0"}],"timestamp":1777971600000}
{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"move","timestamp":1777971600000}
{"type":"TOOL_CALL_END","toolCallId":"c1","timestamp":1777971600000}
{"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"move","timestamp":1777971600000}
{"type":"TOOL_CALL_END","toolCallId":"c2","timestamp":1777971600000}
{"type":"RUN_FINISHED","threadId":"t","runId":"one","timestamp":1777971601000,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_call","message":"Move x?","toolCallId":"c1"},{"id":"i2","reason":"tool_call","message":"Move y?","toolCallId":"c2"}]}}
`
	answers := `{"type":"RUN_STARTED","threadId":"t","runId":"two","timestamp":1777971631000,"input":{"threadId":"t","runId":"two","messages":[],"resume":[{"interruptId":"i1","status":"resolved","payload":{"approved":true}},{"interruptId":"i2","status":"resolved","payload":{"approved":false}}]}}
{"type":"TOOL_CALL_RESULT","messageId":"m1","toolCallId":"c1","content":"moved","timestamp":1777971632000}
{"type":"TOOL_CALL_RESULT","messageId":"m2","toolCallId":"c2","content":"denied","timestamp":1777971632000}
{"type":"RUN_FINISHED","threadId":"t","runId":"two","timestamp":1777971632000}
`
	for _, command := range []string{"show", "tree"} {
		out := exec(asks, command, "-").out
		require.Contains(t, out, "paused")
		require.Contains(t, out, "Move x?")
		require.Contains(t, out, "Move y?")
	}
	require.Contains(t, exec(asks+answers, "show", "--run", "one", "-").out, `
answers
QUESTION  ANSWER    BY   WAITED
Move x?   granted   two     30s
Move y?   rejected  two     30s
`)
	tree := exec(asks+answers, "tree", "-").out
	require.Contains(t, tree, "approval i1 of call c1 ✓ granted by two · 30s: Move x?")
	require.Contains(t, tree, "approval i2 of call c2 ✗ rejected by two · 30s: Move y?")
	require.Contains(t, exec(asks+answers, "stats", "-").out, "tool calls                 2          (mean 32s)")
	require.Contains(t, exec(asks+answers, "fold", "-").out, `"state":{"log":["b"],"n":2}`)
	require.Zero(t, exec(asks+answers, "check", "--dialect", "agui", "-").code)

	// A log that begins later tells of the patch that it cannot apply, and of the answers nothing.
	later := answers + `{"type":"RUN_STARTED","threadId":"t","runId":"three","timestamp":1777971633000}
{"type":"STATE_DELTA","delta":[{"op":"add","path":"/log/-","value":"c"}],"timestamp":1777971633000}
`
	require.Contains(t, exec(later, "tree", "-").out, "STATE_DELTA")
	require.Contains(t, exec(later, "convert", "--to", "native", "-").err, "dropped: STATE_DELTA /delta/0: the state there is not known")
	require.NotContains(t, exec(later, "tree", "-").out, "approval")
	refused := strings.Replace(asks, "/log/0", "/log/7", 1)
	require.Contains(t, exec(refused, "check", "--dialect", "agui", "-").out, "stdin:4: agui-state: STATE_DELTA: /delta/0: the list has no such element")
}

// Columns stand below each other on a terminal, also behind wide characters.
func TestTablesOfWideNames(t *testing.T) {
	log := line("運行", 0) + line("r", 0)
	require.Contains(t, exec(log, "ls", "-").out, "r     running  ")
	require.Contains(t, exec(log, "ls", "-").out, "運行  running  ")
	for text, want := range map[string]int{"run": 3, "運行": 4, "실행": 4, "カタ": 4, "ｶﾀ": 2, "（）": 4, "e\u0301": 1, "🚀": 2, "ы": 1} {
		require.Equal(t, want, columnsOf(text), text)
	}
}

func TestDurations(t *testing.T) {
	for ms, want := range map[float64]string{0: "0s", 12.5: "12.5ms", 59_949: "59.9s", 59_950: "1m00s", 65_400: "1m05s", 3_599_500: "1h00m", 3_900_000: "1h05m"} {
		require.Equal(t, want, milliseconds(ms))
	}
}
