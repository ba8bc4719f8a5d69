package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

var update = flag.Bool("update", false, "rewrite the golden files; read the diff")

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fixedClock() time.Time { return testTime }

// decode reads a stream and returns its events and the errors of its lines.
func decode(t testing.TB, o Options, stream string) ([]agentevents.Event, []error) {
	t.Helper()
	if o.Time == nil {
		o.Time = fixedClock
	}
	var events []agentevents.Event
	var errs []error
	r := agentevents.NewReader(strings.NewReader(stream), agentevents.ReaderOptions{Decoder: NewDecoder(o)})
	for ev, err := range r.All() {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		events = append(events, ev)
	}
	checkLog(t, events)
	return events, errs
}

// checkLog checks the properties of every log of this package.
func checkLog(t testing.TB, events []agentevents.Event) {
	t.Helper()
	ids := map[string]bool{}
	for i := range events {
		ev := &events[i]
		require.Equal(t, uint64(i), ev.Sequence)
		require.False(t, ids[ev.ID], "the id of event %d is not unique", i)
		ids[ev.ID] = true
		require.NotEmpty(t, ev.RunID)
		require.Equal(t, events[0].RunID, ev.RunID)
		require.Equal(t, agentevents.SchemaVersion, ev.SchemaVersion)
		require.Equal(t, time.UTC, ev.Time.Location())
		require.Equal(t, ev.Time, ev.Time.Truncate(time.Millisecond))
		if _, ok := ev.Payload.(*agentevents.AgentTransition); ok {
			require.Equal(t, agentevents.MarkSynthetic, ev.Marks)
		}
		line, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		var back agentevents.Event
		require.NoError(t, back.UnmarshalJSON(line))
		again, err := back.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(line), string(again))
	}
	if len(events) > 0 {
		require.Equal(t, agentevents.KindRunStarted, events[0].Kind())
		info, _ := events[len(events)-1].Kind().Info()
		require.Equal(t, "run", info.Subject)
		require.Equal(t, agentevents.RoleCloses, info.Role)
	}
}

// fold folds events, and requires that there are no violations and nothing is open.
func fold(t testing.TB, events []agentevents.Event) *agentevents.RunSnapshot {
	t.Helper()
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	s := f.Snapshot()
	for _, v := range s.Violations {
		require.NoError(t, v)
	}
	require.Zero(t, s.ViolationCount)
	require.Empty(t, s.OpenCalls)
	for _, a := range s.Agents {
		require.False(t, a.Open, a.AgentID)
	}
	return s
}

// emitAgain emits a log once more. Nothing is refused or added: its statuses are those
// that the library derives.
func emitAgain(t testing.TB, events []agentevents.Event) {
	t.Helper()
	if len(events) == 0 {
		return
	}
	em, again := eventtest.RecordWith(t, agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleDerived,
		Redaction: &agentevents.Policy{Off: true},
	})
	r, err := em.Run(events[0].RunID)
	require.NoError(t, err)
	for _, ev := range events {
		_, err := r.Record(t.Context(), ev)
		require.NoError(t, err)
	}
	require.Equal(t, events, again.Events())
}

// run decodes a stream without errors and folds it.
func run(t testing.TB, o Options, lines ...string) ([]agentevents.Event, *agentevents.RunSnapshot) {
	t.Helper()
	events, errs := decode(t, o, strings.Join(lines, "\n")+"\n")
	require.Empty(t, errs)
	return events, fold(t, events)
}

// marked returns the kinds of the events with a mark, without transitions.
func marked(events []agentevents.Event, m agentevents.Marks) []agentevents.Kind {
	var out []agentevents.Kind
	for _, ev := range events {
		if ev.Marks.Has(m) && ev.Kind() != agentevents.KindAgentTransition {
			out = append(out, ev.Kind())
		}
	}
	return out
}

func texts(s *agentevents.RunSnapshot) []string {
	var out []string
	for _, m := range s.Messages {
		var text string
		if json.Unmarshal([]byte(m.Content), &text) != nil {
			text = string(m.Content)
		}
		out = append(out, m.From+": "+text)
	}
	return out
}

func initLine(session string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"init","session_id":%q,"uuid":"init-%[1]s","model":"model-a","cwd":"/w","tools":["Bash","Task"]}`, session)
}

const (
	success = `{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s1","num_turns":2,"duration_ms":1500,"usage":{"input_tokens":3,"output_tokens":4}}`
	hello   = `{"type":"assistant","session_id":"s1","uuid":"u-hello","message":{"id":"m1","model":"model-a","content":[{"type":"text","text":"hello"}]}}`
)

func block(message, block string, more ...string) string {
	return fmt.Sprintf(`{"type":"assistant","session_id":"s1","message":{"id":%q,"model":"model-a","content":[%s]}%s}`, message, block, strings.Join(more, ""))
}

func callBlock(id, tool, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, tool, input)
}

func resultLine(id, content string, more ...string) string {
	return fmt.Sprintf(`{"type":"user","session_id":"s1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}%s}`, id, content, strings.Join(more, ""))
}

func parent(id string) string { return fmt.Sprintf(`,"parent_tool_use_id":%q`, id) }

func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.stream.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			stream, err := os.ReadFile(input)
			require.NoError(t, err)
			events, errs := decode(t, Options{}, string(stream))
			require.Empty(t, errs)
			fold(t, events)
			var got bytes.Buffer
			for i := range events {
				line, err := events[i].AppendJSON(nil)
				require.NoError(t, err)
				got.Write(append(line, '\n'))
			}
			golden := strings.Replace(input, ".stream.", ".events.", 1)
			if *update {
				require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())

			again, _ := decode(t, Options{}, string(stream))
			require.Equal(t, events, again)
			emitAgain(t, events)
		})
	}
}

func TestPartialMessagesChangeOnlyDeltas(t *testing.T) {
	stream, err := os.ReadFile("testdata/partial.stream.jsonl")
	require.NoError(t, err)
	var whole []string
	for line := range strings.Lines(string(stream)) {
		if !strings.Contains(line, `"stream_event"`) {
			whole = append(whole, strings.TrimSpace(line))
		}
	}
	partial, with := run(t, Options{}, strings.TrimSpace(string(stream)))
	plain, without := run(t, Options{}, whole...)
	require.NotEmpty(t, eventtest.Payloads[*agentevents.TextDelta](partial))
	require.NotEmpty(t, eventtest.Payloads[*agentevents.AgentReasoningDelta](partial))
	require.NotEmpty(t, eventtest.Payloads[*agentevents.ToolArgumentsDelta](partial))

	kinds := func(events []agentevents.Event) (out []string) {
		for _, ev := range events {
			if info, _ := ev.Kind().Info(); !info.Droppable {
				out = append(out, fmt.Sprint(ev.Kind(), ev.Step, ev.AgentID))
			}
		}
		return out
	}
	require.Equal(t, kinds(plain), kinds(partial))
	require.Equal(t, texts(without), texts(with))
	require.Equal(t, without.Agents["claude"].Text, with.Agents["claude"].Text)
}

func TestPlainAnswer(t *testing.T) {
	events, s := run(t, Options{Prompt: `"say hello"`}, initLine("s1"), hello, success)
	require.Equal(t, "init-s1", s.RunID)
	require.Equal(t, "s1", s.SessionID)
	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Equal(t, agentevents.JSON(`"done"`), s.Result)
	require.JSONEq(t, `{"model":"model-a","cwd":"/w","tools":["Bash","Task"]}`, string(s.Inputs))
	a := s.Agents["claude"]
	require.Equal(t, agentevents.StatusConverged, a.Status)
	require.Equal(t, agentevents.OutcomeConverged, a.Outcome)
	require.Equal(t, "done", a.Result)
	require.Equal(t, agentevents.Some(2), a.NumTurns)
	require.Equal(t, agentevents.Some(1500*time.Millisecond), a.Duration)
	require.Equal(t, map[string]string{"claude": "s1"}, s.AgentSessions)
	require.Equal(t, agentevents.JSON(`"say hello"`), eventtest.Payloads[*agentevents.AgentStarted](events)[0].Prompt)
	require.Equal(t, []string{"claude: hello"}, texts(s))
	require.Equal(t, int64(4), s.Usage.Usage.OutputTokens)
	require.Empty(t, marked(events, agentevents.MarkSynthetic))
}

func TestOptions(t *testing.T) {
	events, s := run(t, Options{RunID: "r", AgentID: "bot", NodeID: "n", NodeRunID: "n.1", NoTransitions: true}, initLine("s1"), hello, success)
	require.Equal(t, "r", s.RunID)
	require.Empty(t, eventtest.Payloads[*agentevents.AgentTransition](events))
	require.Equal(t, map[string]string{"n": "s1"}, s.AgentSessions)
	require.Contains(t, s.Agents, "bot")
	require.Equal(t, "n.1", events[0].NodeRunID)
	other, _ := run(t, Options{RunID: "q"}, initLine("s1"), hello, success)
	require.NotEqual(t, other[0].ID, events[0].ID)

	events, _ = run(t, Options{Time: time.Now}, initLine("s1"))
	require.False(t, events[0].Time.IsZero())

	// What no line can carry is refused, and said.
	events, errs := decode(t, Options{RunID: "\xff"}, initLine("s1")+"\n"+hello)
	require.Empty(t, events)
	require.NotEmpty(t, errs)
	require.ErrorContains(t, errs[0], "field-utf8")
}

func TestBeforeInit(t *testing.T) {
	hook := `{"type":"system","subtype":"hook_response","session_id":"other","hook_name":"SessionStart"}`
	user := `{"type":"user","session_id":"s1","uuid":"u1","message":{"role":"user","content":"do it"}}`
	for name, lines := range map[string][]string{
		"text before init": {hook, user, initLine("s1"), hello, success},
		"text after init":  {hook, initLine("s1"), user, hello, success},
	} {
		t.Run(name, func(t *testing.T) {
			events, s := run(t, Options{}, lines...)
			require.Equal(t, "init-s1", s.RunID)
			require.Equal(t, "s1", s.SessionID)
			require.Equal(t, agentevents.JSON(`"do it"`), eventtest.Payloads[*agentevents.AgentStarted](events)[0].Prompt)
			require.Equal(t, []string{"user: do it", "claude: hello"}, texts(s))
			require.Equal(t, 1, s.Unknown["claude.system.hook_response"])
			for _, ev := range events {
				require.Equal(t, "s1", ev.SessionID)
			}
		})
	}
	t.Run("no init", func(t *testing.T) {
		events, s := run(t, Options{}, hook, hello, success)
		require.Equal(t, "s1", s.SessionID)
		require.Equal(t, "model-a", s.Agents["claude"].Model)
		require.Equal(t, []agentevents.Kind{agentevents.KindRunStarted, agentevents.KindAgentStarted}, marked(events, agentevents.MarkSynthetic))
	})
	t.Run("hooks only", func(t *testing.T) {
		events, s := run(t, Options{}, hook)
		require.Equal(t, agentevents.RunStatusFailed, s.Status)
		require.Len(t, marked(events, agentevents.MarkSynthetic), 4)
	})
	t.Run("init only", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"))
		require.Equal(t, "interrupted", s.Error.V.Code)
	})
	t.Run("no session", func(t *testing.T) {
		_, s := run(t, Options{}, `{"type":"keep_alive"}`, `{"type":"system","subtype":"status"}`)
		require.NotEmpty(t, s.RunID)
	})
	t.Run("held lines are bounded", func(t *testing.T) {
		d := NewDecoder(Options{Time: fixedClock})
		var events []agentevents.Event
		var err error
		for range maxHeldLines {
			events, err = d.Decode(events, []byte(hook))
			require.NoError(t, err)
		}
		require.Len(t, events, 2+maxHeldLines)
	})
	t.Run("nothing", func(t *testing.T) {
		events, errs := decode(t, Options{RunID: "r"}, "Error: something\n\n")
		require.Empty(t, events)
		require.Len(t, errs, 1)
	})
}

func TestResults(t *testing.T) {
	tests := []struct {
		name, line string
		status     agentevents.RunStatus
		outcome    agentevents.AgentOutcome
		code, text string
	}{
		{"success", `{"subtype":"success","is_error":false,"result":"x"}`, "completed", "converged", "", ""},
		{"error in result", `{"subtype":"success","is_error":true,"result":"API Error: 500","api_error_status":500,"terminal_reason":"api_error"}`, "failed", "aborted", "api_error", "API Error: 500"},
		{"error in result, completed", `{"subtype":"success","is_error":true,"result":"boom","terminal_reason":"completed"}`, "failed", "aborted", "api_error", "boom"},
		{"max turns, no result", `{"subtype":"error_max_turns","is_error":false}`, "failed", "partial", "error_max_turns", "error_max_turns"},
		{"budget", `{"subtype":"error_max_budget_usd","is_error":true,"errors":["too dear","really"]}`, "failed", "partial", "error_max_budget_usd", "too dear\nreally"},
		{"structured output", `{"subtype":"error_max_structured_output_retries","is_error":true,"errors":[]}`, "failed", "partial", "error_max_structured_output_retries", "error_max_structured_output_retries"},
		{"execution", `{"subtype":"error_during_execution","is_error":true,"errors":[],"terminal_reason":"model_error"}`, "failed", "aborted", "error_during_execution", "model_error"},
		{"execution with result", `{"subtype":"error_during_execution","is_error":true,"result":"half"}`, "failed", "aborted", "error_during_execution", "half"},
		{"interrupt", `{"subtype":"error_during_execution","is_error":false,"terminal_reason":"aborted_tools"}`, "cancelled", "aborted", "interrupted", "aborted_tools"},
		{"interrupt, success", `{"subtype":"success","is_error":false,"result":"","terminal_reason":"aborted_streaming"}`, "cancelled", "aborted", "", ""},
		{"hook", `{"subtype":"success","is_error":false,"result":"x","terminal_reason":"hook_stopped"}`, "completed", "escaped", "", ""},
		{"refusal", `{"subtype":"success","is_error":false,"result":"x","stop_reason":"refusal"}`, "completed", "escaped", "", ""},
		{"no subtype", `{"is_error":false,"result":"x"}`, "completed", "converged", "", ""},
		{"neither subtype nor is_error", `{"result":"x"}`, "completed", "converged", "", ""},
		{"no subtype, is_error", `{"is_error":true,"result":"x"}`, "failed", "aborted", "api_error", "x"},
		{"no subtype, errors", `{"errors":["too dear"]}`, "failed", "aborted", "api_error", "too dear"},
		{"no subtype, status of the API", `{"api_error_status":500,"result":"x"}`, "failed", "aborted", "api_error", "x"},
		{"no subtype, a limit", `{"terminal_reason":"max_turns"}`, "failed", "partial", "max_turns", "max_turns"},
		{"no subtype, the model failed", `{"terminal_reason":"model_error","result":"x"}`, "failed", "aborted", "model_error", "x"},
		{"no subtype, completed", `{"terminal_reason":"completed","result":"x"}`, "completed", "converged", "", ""},
		{"no subtype, interrupt", `{"terminal_reason":"aborted_tools"}`, "cancelled", "aborted", "interrupted", "aborted_tools"},
		{"no subtype, hook", `{"terminal_reason":"hook_stopped","result":"x"}`, "completed", "escaped", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, s := run(t, Options{}, initLine("s1"), hello, `{"type":"result",`+tt.line[1:])
			a := s.Agents["claude"]
			require.Equal(t, tt.status, s.Status)
			require.Equal(t, tt.outcome, a.Outcome)
			require.Equal(t, tt.code, a.Error.V.Code)
			require.Equal(t, tt.text, a.Error.V.Message)
			if tt.status == agentevents.RunStatusCancelled {
				require.NotEmpty(t, s.CancelReason)
			} else {
				require.Equal(t, s.Error, a.Error)
			}
			require.Len(t, eventtest.Payloads[*agentevents.AgentErrored](events), a.Errors)
			require.Equal(t, tt.status == agentevents.RunStatusFailed, a.Errors == 1)
			switch {
			case tt.code != "" || tt.outcome == "aborted":
				require.Equal(t, agentevents.StatusFailed, a.Status)
			case tt.outcome == "converged":
				require.Equal(t, agentevents.StatusConverged, a.Status)
			default:
				require.Equal(t, agentevents.StatusResponse, a.Status)
			}
		})
	}
}

// A run that the user stopped was cancelled, also if the CLI says no more; a later turn counts.
func TestUserInterrupts(t *testing.T) {
	stop := `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`
	for _, tt := range []struct {
		name  string
		lines []string
		want  agentevents.RunStatus
	}{
		{"a result", []string{stop, `{"type":"result","subtype":"error_during_execution","is_error":true}`}, "cancelled"},
		{"no result", []string{stop}, "cancelled"},
		{"another turn", []string{stop, `{"type":"result","subtype":"error_during_execution","is_error":true}`, initLine("s1"), hello, success}, "completed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, s := run(t, Options{}, append([]string{initLine("s1"), hello}, tt.lines...)...)
			require.Equal(t, tt.want, s.Status)
		})
	}
}

func TestStructuredOutput(t *testing.T) {
	_, s := run(t, Options{}, initLine("s1"), `{"type":"result","subtype":"success","is_error":false,"result":"x","structured_output":{"n": 9007199254740993, "a": "<"}}`)
	require.Equal(t, agentevents.JSON(`{"n":9007199254740993,"a":"<"}`), s.Result)
	require.Equal(t, s.Result, s.Agents["claude"].StructuredOutput)
}

func TestTools(t *testing.T) {
	stamp := func(s string) string { return `,"timestamp":"2026-01-01T00:00:0` + s + `Z"` }
	events, s := run(t, Options{}, initLine("s1"),
		block("m1", callBlock("c1", "Bash", `{"n": 9007199254740993}`), stamp("1")),
		block("m1", callBlock("c2", "Read", `{}`)),
		block("m1", callBlock("c3", "mcp__x__y", `{}`)),
		`{"type":"tool_progress","tool_use_id":"c3","tool_name":"mcp__x__y","elapsed_time_seconds":2.5}`,
		resultLine("c2", `"text"`, `,"tool_use_result":{"file":{"x":1},"durationMs":7}`),
		resultLine("c1", `"all well"`, stamp("3.25"), `,"tool_use_result":"all well"`),
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c3","content":[{"type":"text","text":"no"},{"type":"text","text":"way"}],"is_error":true}]},"tool_use_result":"Error: no"}`,
		resultLine("c9", `"orphan"`),
		success)
	returned := eventtest.Payloads[*agentevents.ToolReturned](events)
	require.Len(t, returned, 4)

	require.Equal(t, "Read", returned[0].ToolID)
	require.Equal(t, agentevents.JSON(`{"file":{"x":1},"durationMs":7}`), returned[0].Result)
	require.Equal(t, "text", returned[0].ResultSummary)
	require.Equal(t, agentevents.Some(7*time.Millisecond), returned[0].Duration)

	require.Equal(t, agentevents.JSON(`"all well"`), returned[1].Result)
	require.Equal(t, agentevents.Some(2250*time.Millisecond), returned[1].Duration)

	require.Equal(t, agentevents.ToolStatusError, returned[2].Status)
	require.Equal(t, "no\nway", returned[2].Error.V.Message)
	require.Equal(t, agentevents.Some(2500*time.Millisecond), returned[2].Duration)

	require.True(t, returned[3].OneEvent)
	require.Equal(t, []agentevents.Kind{agentevents.KindToolReturned}, marked(events, agentevents.MarkSynthetic))

	called := eventtest.Payloads[*agentevents.ToolCalled](events)
	require.Equal(t, agentevents.JSON(`{"n":9007199254740993}`), called[0].Arguments)
	require.Equal(t, agentevents.TransportMCP, called[2].Transport)
	byID := map[string]string{}
	for _, ev := range events {
		switch p := ev.Payload.(type) {
		case *agentevents.ToolCalled:
			byID[p.CallID] = ev.ID
		case *agentevents.ToolReturned:
			require.Equal(t, byID[p.CallID], ev.CausationID)
		}
	}
	require.Equal(t, 4, s.Agents["claude"].ToolCalls)
	require.Equal(t, 1, s.Agents["claude"].ToolFailures)
}

func TestServerTools(t *testing.T) {
	events, s := run(t, Options{}, initLine("s1"),
		block("m1", `{"type":"server_tool_use","id":"c1","name":"web_search","input":{"query":"x"}}`),
		block("m1", `{"type":"web_search_tool_result","tool_use_id":"c1","content":{"type":"web_search_tool_result_error","error_code":"unavailable"}}`),
		block("m1", `{"type":"mcp_tool_use","id":"c2","name":"look","input":{}}`),
		block("m1", `{"type":"mcp_tool_result","tool_use_id":"c2","content":[]}`),
		block("m1", `{"type":"server_tool_use","id":"c3","name":"code_execution","input":{}}`),
		block("m1", `{"type":"code_execution_tool_result","tool_use_id":"c3","content":{"type":"code_execution_result","stdout":"","stderr":"boom","return_code":1}}`),
		block("m1", `{"type":"server_tool_use","id":"c4","name":"code_execution","input":{}}`),
		block("m1", `{"type":"code_execution_tool_result","tool_use_id":"c4","content":{"type":"code_execution_result","stdout":"2","stderr":"","return_code":0}}`),
		block("m1", `{"type":"image","source":{}}`),
		block("m2", `{"type":"redacted_thinking","data":"xyz"}`),
		success)
	require.Equal(t, 1, s.Tools["web_search"].Failed)
	require.Equal(t, 1, s.Tools["look"].OK)
	require.Equal(t, 1, s.Tools["code_execution"].Failed)
	require.Equal(t, 1, s.Tools["code_execution"].OK)
	returned := eventtest.Payloads[*agentevents.ToolReturned](events)
	require.Equal(t, "unavailable", returned[0].Error.V.Message)
	require.Equal(t, "boom", returned[2].Error.V.Message)
	require.Equal(t, 1, s.Unknown["claude.block.image"])
	reasoned := eventtest.Payloads[*agentevents.AgentReasoned](events)
	require.Equal(t, "m2:0", reasoned[0].BlockID)
	require.Equal(t, agentevents.VerbosityOff, reasoned[0].Verbosity)
}

func TestDenied(t *testing.T) {
	failed := `,"tool_use_result":"Error: no"`
	refuse := func(id, text string) string {
		return strings.Replace(resultLine(id, `"`+text+`"`, failed), `"tool_use_id"`, `"is_error":true,"tool_use_id"`, 1)
	}
	events, s := run(t, Options{}, initLine("s1"),
		block("m1", callBlock("open", "Bash", `{}`)),
		block("m1", callBlock("told", "Bash", `{}`)),
		block("m1", callBlock("text", "Bash", `{}`)),
		block("m1", callBlock("other", "Bash", `{}`)),
		block("m1", callBlock("failed", "Bash", `{}`)),
		block("m1", callBlock("never", "Bash", `{}`)),
		`{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"told","message":"no"}`,
		refuse("told", "some text"),
		refuse("text", "Claude requested permissions to use Bash, but you haven't granted it yet."),
		refuse("other", "a text of a later version"),
		refuse("failed", "exit status 1"),
		`{"type":"result","subtype":"success","is_error":false,"result":"","permission_denials":[`+
			`{"tool_name":"Bash","tool_use_id":"open"},{"tool_name":"Bash","tool_use_id":"told"},{"tool_name":"Bash","tool_use_id":"text"},`+
			`{"tool_name":"Bash","tool_use_id":"other","tool_input":{"command":"rm"}},{"tool_name":"Web","tool_use_id":"nowhere"}]}`)
	var got []string
	for _, p := range eventtest.Payloads[*agentevents.ToolReturned](events) {
		got = append(got, fmt.Sprint(p.CallID, " ", p.ToolID, " ", p.Status, " ", p.Error.V.Code, " ", p.OneEvent))
	}
	require.Equal(t, []string{
		"told Bash forbidden permission_denied false",
		"text Bash forbidden permission_denied false",
		"other Bash error error_tool_use false",
		"failed Bash error error_tool_use false",
		"open Bash forbidden permission_denied false",
		"nowhere Web forbidden permission_denied true",
		"never Bash interrupted interrupted false",
	}, got)
	require.Equal(t, []agentevents.Kind{agentevents.KindToolReturned}, marked(events, agentevents.MarkSynthetic))
	require.Equal(t, 1, s.Unknown["claude.system.permission_denied"])
	require.Equal(t, agentevents.ToolStats{Calls: 6, Failed: 2, Refused: 3, Undecided: 1}, *s.Tools["Bash"])
	require.Equal(t, agentevents.ToolStats{Refused: 1}, *s.Tools["Web"])

	t.Run("a later result lists it again", func(t *testing.T) {
		denied := `{"type":"result","subtype":"success","permission_denials":[{"tool_name":"Web","tool_use_id":"c1"}]}`
		events, _ := run(t, Options{}, initLine("s1"), denied, initLine("s1"), denied)
		require.Len(t, eventtest.Payloads[*agentevents.ToolReturned](events), 1)
	})
}

func TestInterrupted(t *testing.T) {
	events, s := run(t, Options{}, initLine("s1"),
		block("m1", callBlock("toolu_00000001", "Task", `{"subagent_type":"Explore","description":"look around"}`)),
		block("m2", callBlock("c2", "Bash", `{}`), parent("toolu_00000001")))
	require.Equal(t, agentevents.RunStatusFailed, s.Status)
	require.Equal(t, "interrupted", s.Error.V.Code)
	require.Equal(t, []agentevents.Kind{
		agentevents.KindToolReturned, agentevents.KindAgentEnded, // of the sub-agent
		agentevents.KindToolReturned, agentevents.KindAgentEnded, agentevents.KindRunFailed,
	}, marked(events, agentevents.MarkSynthetic))
	for _, a := range s.Agents {
		require.Equal(t, agentevents.OutcomeAborted, a.Outcome)
		require.Equal(t, agentevents.StatusFailed, a.Status)
	}
}

// Lines state the usage of their API message as far as it is known. The greatest of each
// message counts, once, and only if no result states the usage of the turn.
func TestUsageOfMessages(t *testing.T) {
	const task = "toolu_00000001"
	said := func(id, model string, in, out, read int64, more ...string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":%q,"content":[{"type":"text","text":"x"}],`+
			`"usage":{"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":%d}}%s}`, id, model, in, out, read, strings.Join(more, ""))
	}
	stream := func(event string) string { return `{"type":"stream_event","event":` + event + `}` }
	start := func(id string, in, out int) string {
		return stream(fmt.Sprintf(`{"type":"message_start","message":{"id":%q,"model":"model-a","usage":{"input_tokens":%d,"output_tokens":%d}}}`, id, in, out))
	}
	spawn := block("m0", callBlock(task, "Task", `{"subagent_type":"Explore"}`))
	child := parent(task)
	tokens := func(in, out, read int64) agentevents.Usage {
		return agentevents.Usage{InputTokens: in, OutputTokens: out, CacheReadInputTokens: agentevents.Some(read)}
	}
	killed := []string{said("m1", "model-a", 100, 1, 50), said("m1", "model-a", 100, 20, 50), said("m1", "model-a", 100, 20, 50), said("m2", "model-a", 160, 6, 50)}
	stated := `{"type":"result","subtype":"success","usage":{"input_tokens":300,"output_tokens":90}`
	for _, tt := range []struct {
		name    string
		lines   []string
		run     agentevents.Usage
		child   agentevents.Usage
		partial bool
	}{
		{"killed", killed, tokens(260, 26, 100), agentevents.Usage{}, true},
		{"a result without usage", append(slices.Clone(killed), `{"type":"result","subtype":"success"}`), tokens(260, 26, 100), agentevents.Usage{}, true},
		{"a result with usage", append(slices.Clone(killed), stated+`}`), agentevents.Usage{InputTokens: 300, OutputTokens: 90}, agentevents.Usage{}, false},
		{"two models", []string{said("m1", "model-a", 100, 1, 0), said("m2", "model-b", 10, 2, 0)}, tokens(110, 3, 0), agentevents.Usage{}, true},
		{"of deltas", []string{start("m1", 7, 1), stream(`{"type":"message_delta","usage":{"output_tokens":40}}`), start("m2", 9, 2)},
			agentevents.Usage{InputTokens: 16, OutputTokens: 42}, agentevents.Usage{}, true},
		{"deltas and whole blocks", []string{start("m1", 7, 1), said("m1", "model-a", 7, 1, 5), stream(`{"type":"message_delta","usage":{"output_tokens":40}}`)},
			tokens(7, 40, 5), agentevents.Usage{}, false},
		{"a message without an id", []string{said("", "model-a", 7, 1, 0)}, agentevents.Usage{}, agentevents.Usage{}, false},
		{"a message of the CLI itself", []string{said("m1", "<synthetic>", 0, 0, 0)}, agentevents.Usage{}, agentevents.Usage{}, false},
		{"more than a number holds", []string{said("m1", "model-a", math.MaxInt64, 1, 0), said("m2", "model-a", 1, 1, 0)}, tokens(math.MaxInt64, 2, 0), agentevents.Usage{}, true},
		{"a sub-agent, killed", []string{spawn, said("m1", "model-a", 100, 1, 0), said("k1", "model-b", 10, 2, 3, child)}, tokens(110, 3, 3), tokens(10, 2, 3), true},
		{"a sub-agent, usage of the turn", []string{spawn, said("k1", "model-b", 10, 2, 3, child), resultLine(task, `"x"`), stated + `}`}, tokens(310, 92, 3), tokens(10, 2, 3), true},
		{"a sub-agent, usage of all", []string{spawn, said("k1", "model-b", 10, 2, 3, child), said("k1", "model-b", 10, 5, 3, child), resultLine(task, `"x"`),
			stated + `,"modelUsage":{"model-a":{"inputTokens":300,"outputTokens":90},"model-b":{"inputTokens":12,"outputTokens":8,"cacheReadInputTokens":3}}}`},
			tokens(312, 98, 3), tokens(10, 5, 3), false},
		{"a turn that was killed after another", append([]string{said("m0", "model-a", 50, 5, 0), `{"type":"result","subtype":"success","usage":{"input_tokens":50,"output_tokens":9},` +
			`"modelUsage":{"model-a":{"inputTokens":50,"outputTokens":9}}}`, initLine("s1")}, killed...), tokens(310, 35, 100), agentevents.Usage{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, s := run(t, Options{}, append([]string{initLine("s1")}, tt.lines...)...)
			require.Equal(t, tt.run, s.Usage.Usage)
			require.Equal(t, tt.partial, s.Usage.Partial)
			if a := s.Agents[idOf("Explore", task)]; a != nil {
				own, _ := a.Usage.Total()
				require.Equal(t, tt.child, own)
			}
		})
	}
}

// In a stream that ends within a turn, the tokens of the agents add up to those of the run, and the
// cost is unknown, unless no message has used more than the results state.
func TestKilledTurns(t *testing.T) {
	said := func(id string, in int, content string, more ...string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"model-a","content":[%s],"usage":{"input_tokens":%d,"output_tokens":1}}%s}`,
			id, content, in, strings.Join(more, ""))
	}
	const words = `{"type":"text","text":"x"}`
	total := func(main, all int) string {
		return fmt.Sprintf(`{"type":"result","subtype":"success","result":"x","total_cost_usd":0.5,"usage":{"input_tokens":%d,"output_tokens":9}`+
			`,"modelUsage":{"model-a":{"inputTokens":%d,"outputTokens":9,"costUSD":0.5}}}`, main, all)
	}
	const turn = `{"type":"result","subtype":"success","result":"x","total_cost_usd":0.5,"usage":{"input_tokens":50,"output_tokens":9}}`
	user := `{"type":"user","isReplay":true,"message":{"content":"and now?"}}`
	spawn := callBlock("c1", "Task", `{"subagent_type":"Explore","run_in_background":true}`)
	of := parent("c1")
	for name, c := range map[string]struct {
		lines     []string
		main, sub int64
	}{
		"usage of the turn":       {[]string{said("m1", 50, words), turn, user, said("m2", 30, words)}, 80, 0},
		"two turns":               {[]string{said("m1", 50, words), turn, user, said("m2", 40, words), turn, user, said("m3", 30, words)}, 130, 0},
		"totals":                  {[]string{said("m1", 50, words), total(50, 60), user, said("m2", 30, words)}, 90, 0},
		"a sub-agent":             {[]string{said("m1", 50, words), turn, user, said("m2", 30, spawn), said("k1", 70, words, of)}, 80, 70},
		"a sub-agent in totals":   {[]string{said("m1", 50, spawn), said("k1", 70, words, of), resultLine("c1", `"x"`), total(50, 120), user, said("m2", 30, words)}, 80, 70},
		"a sub-agent beyond them": {[]string{said("m1", 50, spawn), said("k1", 70, words, of), total(50, 120), user, said("m2", 30, words), said("k2", 7, words, of)}, 80, 77},
		"after a failure": {[]string{said("m0", 20, words), strings.Replace(total(20, 20), "success", "error", 1),
			user, said("m1", 50, words), total(50, 70), user, said("m2", 30, words)}, 100, 0},
	} {
		t.Run(name, func(t *testing.T) {
			events, s := run(t, Options{}, append([]string{initLine("s1")}, c.lines...)...)
			require.Equal(t, c.main+c.sub, s.Usage.Usage.InputTokens)
			own, cost := s.Agents["claude"].Usage.Total()
			require.Equal(t, c.main, own.InputTokens)
			require.True(t, s.Agents["claude"].Usage.Partial())
			if a := s.Agents[idOf("Explore", "c1")]; a != nil {
				own, _ = a.Usage.Total()
				require.Equal(t, c.sub, own.InputTokens)
			}
			warned := false
			for _, p := range eventtest.Payloads[*agentevents.AgentErrored](events) {
				warned = warned || p.ErrorType == "session_totals"
			}
			require.True(t, warned)
			require.Equal(t, name == "after a failure", cost.OK, "an attempt with an end has its cost")
		})
	}
	_, s := run(t, Options{}, initLine("s1"), said("m1", 50, words), turn, user, `{"type":"assistant","message":{"model":"model-a","content":[]}}`)
	require.Equal(t, agentevents.RunStatusFailed, s.Status)
	require.Equal(t, 0.5, s.Usage.CostUSD.V)
	require.False(t, s.Usage.Partial)
}

func TestSubAgents(t *testing.T) {
	const outer, inner = "toolu_outer001", "toolu_inner001"
	events, s := run(t, Options{}, initLine("s1"),
		block("m1", callBlock(outer, "Task", `{"subagent_type":"Explore","description":"look around","prompt":"Look.","model":"small"}`)),
		`{"type":"user","uuid":"p1","message":{"content":[{"type":"text","text":"Look."}]}`+parent(outer)+`}`,
		`{"type":"assistant","message":{"id":"k1","model":"model-b","content":[{"type":"text","text":"Looking."}]}`+parent(outer)+`}`,
		block("k1", callBlock(inner, "Agent", `{"prompt":"Deeper."}`), parent(outer)),
		block("n1", callBlock("c1", "Read", `{}`), parent(inner)),
		resultLine("c1", `"x"`, parent(inner)),
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"`+inner+`","content":"lost","is_error":true}]}`+parent(outer)+`}`,
		resultLine(outer, `[{"type":"text","text":"Found."}]`, `,"tool_use_result":{"status":"completed","content":[{"type":"text","text":"Found."}],"totalDurationMs":1200,"usage":{"input_tokens":5,"output_tokens":6}}`),
		success)
	child := s.Agents[idOf("Explore", outer)]
	require.NotNil(t, child)
	require.Equal(t, "claude", child.ParentAgentID)
	require.Equal(t, outer, child.ParentCallID)
	require.Equal(t, "look around", child.Task)
	require.Equal(t, "model-b", child.Model)
	require.Equal(t, "Found.", child.Result)
	require.Equal(t, agentevents.OutcomeConverged, child.Outcome)
	require.Equal(t, agentevents.Some(1200*time.Millisecond), child.Duration)
	require.False(t, child.Usage.Ended.OK, "the usage beside the result is that of the last message")
	grandchild := s.Agents[idOf("", inner)]
	require.NotNil(t, grandchild)
	require.Equal(t, child.AgentID, grandchild.ParentAgentID)
	require.Equal(t, "Deeper.", grandchild.Task)
	require.Equal(t, agentevents.OutcomeAborted, grandchild.Outcome)
	require.Equal(t, "lost", grandchild.Error.V.Message)
	require.Equal(t, []string{"claude: Look.", idOf("Explore", outer) + ": Looking."}, texts(s))
	require.Empty(t, marked(events, agentevents.MarkSynthetic))
}

// idOf returns the id of the sub-agent of a type that a call spawned.
func idOf(kind, call string) string { return NewDecoder(Options{}).subAgentID(kind, call) }

// The ids of sub-agents have the form that all formats allow.
func TestSubAgentIDs(t *testing.T) {
	_, s := run(t, Options{}, initLine("s1"),
		block("a1", `{"type":"text","text":"x"}`, parent("1-same-end")),
		block("a2", `{"type":"text","text":"y"}`, parent("2-same-end")), success)
	require.Len(t, s.Agents, 3)
	require.Contains(t, s.Agents, "claude:agent:d2c36f1c")
	require.Contains(t, s.Agents, idOf("", "1-same-end"))
	require.Contains(t, s.Agents, idOf("", "2-same-end"))
	for kind, want := range map[string]string{
		"Explore": "claude:explore:", "general-purpose": "claude:general-purpose:", "my_Plugin:É x": "claude:my-plugin:--x:",
		strings.Repeat("x", 90): "claude:" + strings.Repeat("x", 32) + ":",
	} {
		require.Regexp(t, "^"+want+"[0-9a-f]{8}$", idOf(kind, "toolu_1"))
	}
	d := NewDecoder(Options{})
	short := d.subAgentID("a", "toolu_1")
	d.agentIDs[short] = true
	require.Regexp(t, "^"+short+"[0-9a-f]{8}$", d.subAgentID("a", "toolu_1"), "another call of that hash")
}

// An agent is in tool_call while one of its calls is open, be it that of a sub-agent.
func TestStatuses(t *testing.T) {
	events, _ := run(t, Options{}, initLine("s1"),
		block("m1", `{"type":"thinking","thinking":"hm"}`),
		block("m1", `{"type":"text","text":"Two at once."}`),
		block("m1", callBlock("c1", "Task", `{"subagent_type":"Explore"}`)),
		block("m1", callBlock("c2", "Read", `{}`)),
		resultLine("c2", `"x"`),
		block("k1", `{"type":"text","text":"Looking."}`, parent("c1")),
		block("k1", callBlock("c3", "Grep", `{}`), parent("c1")),
		resultLine("c3", `"y"`, parent("c1")),
		resultLine("c1", `"found"`),
		block("m2", `{"type":"thinking","thinking":"so"}`),
		block("m2", `{"type":"text","text":"Done."}`), success)
	got := map[string][]string{}
	for _, ev := range events {
		word := string(ev.Kind())
		switch p := ev.Payload.(type) {
		case *agentevents.AgentTransition:
			word = fmt.Sprint("→", p.To, "/", ev.Step.V)
		case *agentevents.ToolCalled:
			word = "call " + p.CallID
		case *agentevents.ToolReturned:
			word = "return " + p.CallID
		}
		got[ev.AgentID] = append(got[ev.AgentID], word)
	}
	require.Equal(t, "agent.started model.returned agent.reasoned →response/0 agent.text agent.message.created →tool_call/0 call c1 call c2 return c2 "+
		"→tool_result/0 return c1 →thinking/1 model.returned agent.reasoned →response/1 agent.text agent.message.created →converged/1 agent.ended",
		strings.Join(got["claude"], " "))
	require.Equal(t, "agent.started model.returned →response/0 agent.text agent.message.created →tool_call/0 call c3 →tool_result/0 return c3 →converged/0 agent.ended",
		strings.Join(got[idOf("Explore", "c1")], " "))
}

func TestBackgroundTask(t *testing.T) {
	const id = "toolu_back0001"
	started := `{"type":"system","subtype":"task_started","task_id":"t1","tool_use_id":"` + id + `","description":"dig","subagent_type":"Explore","is_backgrounded":true}`
	launched := resultLine(id, `"launched"`, `,"tool_use_result":{"status":"async_launched"}`)
	lines := []string{
		initLine("s1"),
		block("m1", callBlock(id, "Task", `{"subagent_type":"Explore","prompt":"Dig.","run_in_background":true}`)),
		started, launched,
		block("k1", `{"type":"text","text":"digging"}`, `,"agent_id":"t1"`),
		success,
	}
	notified := `{"type":"system","subtype":"task_notification","task_id":"t1","status":"completed","summary":"dug","usage":{"total_tokens":9,"tool_uses":1,"duration_ms":77}}`
	t.Run("notified after the result", func(t *testing.T) {
		events, s := run(t, Options{}, append(lines, block("k2", `{"type":"text","text":"more"}`, parent(id)), notified)...)
		child := s.Agents[idOf("Explore", id)]
		require.Equal(t, "dug", child.Result)
		require.Equal(t, agentevents.OutcomeConverged, child.Outcome)
		require.Equal(t, agentevents.Some(77*time.Millisecond), child.Duration)
		require.Equal(t, agentevents.RunStatusCompleted, s.Status)
		require.Equal(t, agentevents.StatusConverged, child.Status)
		require.Empty(t, marked(events, agentevents.MarkLate))
		require.Empty(t, marked(events, agentevents.MarkSynthetic))
	})
	t.Run("never notified", func(t *testing.T) {
		events, s := run(t, Options{}, lines...)
		require.Equal(t, agentevents.RunStatusCompleted, s.Status)
		require.Equal(t, agentevents.OutcomeAborted, s.Agents[idOf("Explore", id)].Outcome)
		require.Equal(t, []agentevents.Kind{agentevents.KindAgentEnded}, marked(events, agentevents.MarkSynthetic))
	})
	t.Run("failed", func(t *testing.T) {
		_, s := run(t, Options{}, append(lines, strings.Replace(notified, "completed", "failed", 1))...)
		require.Equal(t, "failed", s.Agents[idOf("Explore", id)].Error.V.Code)
	})
	t.Run("without a status", func(t *testing.T) {
		_, s := run(t, Options{}, append(lines, strings.Replace(notified, `"status":"completed",`, "", 1))...)
		require.Equal(t, agentevents.OutcomeConverged, s.Agents[idOf("Explore", id)].Outcome)
		require.Equal(t, "dug", s.Agents[idOf("Explore", id)].Result)
	})
	t.Run("foreground sub-agents end with their call", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"),
			block("m1", callBlock(id, "Task", `{"subagent_type":"Explore"}`)),
			strings.Replace(started, "true", "false", 1), notified,
			resultLine(id, `"found"`), success)
		require.Equal(t, "found", s.Agents[idOf("Explore", id)].Result)
		require.Empty(t, marked(events, agentevents.MarkLate))
	})
	t.Run("commands are no agents", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"),
			block("m1", callBlock("c1", "Bash", `{"run_in_background":true}`)),
			`{"type":"system","subtype":"task_started","task_id":"t1","tool_use_id":"c1","task_type":"local_bash"}`,
			`{"type":"system","subtype":"task_updated","task_id":"t1","patch":{"status":"running"}}`,
			success, resultLine("c1", `"late"`))
		require.Len(t, s.Agents, 1)
		require.Equal(t, 1, s.Tools["Bash"].OK)
	})
}

func TestTurns(t *testing.T) {
	total := func(cost, in string) string {
		return `{"type":"result","subtype":"success","is_error":false,"result":"ok","total_cost_usd":` + cost +
			`,"usage":{"input_tokens":10,"output_tokens":1},"modelUsage":{"model-a":{"inputTokens":` + in + `,"outputTokens":1,"cacheReadInputTokens":2,"costUSD":` + cost + `}}}`
	}
	user := `{"type":"user","uuid":"u2","session_id":"s1","isReplay":true,"message":{"content":"and now?"}}`
	t.Run("totals run on", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), hello, total("0.5", "100"), user, initLine("s1"), user, block("m2", `{"type":"text","text":"more"}`), total("0.75", "150"), user)
		require.Equal(t, 0.75, s.Usage.CostUSD.V)
		require.Equal(t, int64(150), s.Usage.Usage.InputTokens)
		require.Equal(t, 1, s.Agents["claude"].Attempts, "a turn is no attempt")
		require.Equal(t, agentevents.Some(1), s.Agents["claude"].Step)
		require.Equal(t, []string{"claude: hello", "user: and now?", "claude: more"}, texts(s))
		require.Len(t, eventtest.Payloads[*agentevents.AgentStarted](events), 1)
		require.Len(t, s.Turns, 2)
		require.Len(t, eventtest.Payloads[*agentevents.RunCompleted](events), 1)
		require.Empty(t, marked(events, agentevents.MarkLate))
	})
	t.Run("the session is reset", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), hello, total("0.5", "100"), initLine("s2"), total("0.25", "40"))
		require.Equal(t, 0.75, s.Usage.CostUSD.V)
		require.Equal(t, int64(140), s.Usage.Usage.InputTokens)
		require.Equal(t, "s2", s.AgentSessions["claude"])
		require.Len(t, eventtest.Payloads[*agentevents.AgentSessionChanged](events), 1)
		require.Equal(t, "init-s1", s.RunID)
	})
	t.Run("inside a turn", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), initLine("s1"), hello, initLine("s2"), success)
		require.Len(t, eventtest.Payloads[*agentevents.AgentSessionChanged](events), 1)
		require.Equal(t, 1, s.Agents["claude"].Attempts)
	})
	t.Run("without totals per model", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"), `{"type":"result","subtype":"success","total_cost_usd":0.5}`, initLine("s1"), `{"type":"result","subtype":"success","total_cost_usd":0.75}`)
		require.Equal(t, 0.75, s.Usage.CostUSD.V)
	})
	t.Run("the last turn decides", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"), `{"type":"result","subtype":"error_max_turns","is_error":false}`, initLine("s1"), hello, success)
		require.Equal(t, agentevents.RunStatusCompleted, s.Status)
		_, s = run(t, Options{}, initLine("s1"), hello, success, initLine("s1"))
		require.Equal(t, agentevents.RunStatusFailed, s.Status)
	})
	t.Run("turns that fail", func(t *testing.T) {
		const failed = `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500"}`
		_, s := run(t, Options{}, initLine("s1"), failed)
		require.Empty(t, s.Turns, "the end of the agent tells of it")
		_, s = run(t, Options{}, initLine("s1"), failed, user, hello, success, user, hello, failed, user, hello, success)
		var codes []string
		for i, turn := range s.Turns {
			require.Equal(t, agentevents.Some(i+1), turn.Turn)
			codes = append(codes, turn.Error.V.Code)
		}
		require.Equal(t, []string{"api_error", "", "api_error", ""}, codes)
		require.Equal(t, 3, s.Agents["claude"].Attempts)
	})
	t.Run("several processes", func(t *testing.T) {
		process := func(cost, in string) []string {
			return []string{initLine("s1"), block("m"+in, `{"type":"text","text":"x"}`), total(cost, in)}
		}
		_, s := run(t, Options{}, slices.Concat(process("0.5", "100"), process("0.25", "40"), process("0.375", "20"))...)
		require.Equal(t, 1.125, s.Usage.CostUSD.V, "the cost of the third is above that of the second, but its tokens are below")
		require.Equal(t, int64(160), s.Usage.Usage.InputTokens)
		_, s = run(t, Options{}, initLine("s1"), `{"type":"result","subtype":"success","total_cost_usd":0.5}`, initLine("s1"), `{"type":"result","subtype":"success","total_cost_usd":0.25}`)
		require.Equal(t, 0.75, s.Usage.CostUSD.V, "without totals per model")
		_, s = run(t, Options{}, initLine("s1"), hello, total("0.5", "100"), initLine("s2"), total("0.5", "100"), initLine("s3"), total("0.5", "100"))
		require.Equal(t, 1.5, s.Usage.CostUSD.V, "equal totals of other sessions, which would have risen")
		require.Equal(t, int64(300), s.Usage.Usage.InputTokens)
		_, s = run(t, Options{}, initLine("s1"), total("0.5", "100"), initLine("s2"), total("0.75", "150"))
		require.Equal(t, 0.75, s.Usage.CostUSD.V, "another session of the same process: the totals run on")
	})
	t.Run("no init between", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), hello, success, user, block("m2", `{"type":"text","text":"more"}`), total("1", "1"), total("2", "2"))
		require.Equal(t, 1, s.Agents["claude"].Attempts)
		require.Len(t, s.Turns, 3)
		require.Empty(t, marked(events, agentevents.MarkSynthetic))
		require.Equal(t, 2.0, s.Usage.CostUSD.V)
	})
	t.Run("stragglers", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), hello, success,
			`{"type":"system","subtype":"session_state_changed","state":"idle"}`,
			`{"type":"stream_event","event":{"type":"message_stop"}}`,
			block("m2", `{"type":"text","text":"more"}`), user)
		require.Equal(t, 1, s.Agents["claude"].Attempts)
		require.Equal(t, agentevents.RunStatusCompleted, s.Status)
		require.Empty(t, marked(events, agentevents.MarkLate), "the process may go on")
	})
}

func TestSteps(t *testing.T) {
	for off, want := range map[bool][]int{false: {0, 0, 1, 2, 2}, true: {0, 0, 0, 1, 1}} {
		events, s := run(t, Options{NoTransitions: off}, initLine("s1"),
			block("m1", `{"type":"thinking","thinking":"hm"}`),
			block("m1", `{"type":"text","text":"first"}`),
			block("m1", `{"type":"thinking","thinking":"wait"}`), // the agent thinks again
			block("m1", callBlock("c1", "Bash", `{}`)),
			resultLine("c1", `"x"`),
			block("m2", `{"type":"thinking","thinking":"so"}`),
			block("m2", `{"type":"text","text":"second"}`), success)
		require.Equal(t, agentevents.Some(want[4]), s.Agents["claude"].Step)
		var steps []int
		for _, ev := range events {
			if ev.Kind() == agentevents.KindAgentReasoned || ev.Kind() == agentevents.KindTextCompleted {
				steps = append(steps, ev.Step.V)
			}
		}
		require.Equal(t, want, steps)
	}
}

func TestRetraction(t *testing.T) {
	line := func(uuid, message, text string, more ...string) string {
		return block(message, `{"type":"text","text":"`+text+`"}`, `,"uuid":"`+uuid+`"`, strings.Join(more, ""))
	}
	t.Run("supersedes", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), line("u1", "m1", "draft"), line("u2", "m2", "final", `,"supersedes":["u1","unknown"]`), success)
		require.Equal(t, []string{"claude: final"}, texts(s))
		retracted := eventtest.Payloads[*agentevents.EventRetracted](events)
		require.Len(t, retracted, 1)
		require.Len(t, retracted[0].EventIDs, 4) // the model call, the transition, the text and the message
	})
	t.Run("refusal", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"), line("u1", "m1", "draft"), `{"type":"system","subtype":"model_refusal_fallback","retracted_message_uuids":["u1"]}`, success)
		require.Empty(t, s.Messages)
		require.Equal(t, 1, s.Unknown["claude.system.model_refusal_fallback"])
	})
	t.Run("reset", func(t *testing.T) {
		_, s := run(t, Options{}, initLine("s1"), line("u1", "m1", "a"), line("u2", "m2", "b"), `{"type":"conversation_reset"}`, line("u3", "m3", "c"), success)
		require.Equal(t, []string{"claude: c"}, texts(s))
	})
	t.Run("replayed", func(t *testing.T) {
		events, s := run(t, Options{}, initLine("s1"), line("u1", "m1", "a"), line("u1", "m1", "a"), success)
		require.Len(t, s.Messages, 1)
		require.Len(t, eventtest.Payloads[*agentevents.TextCompleted](events), 1)
	})
}

func TestOtherLines(t *testing.T) {
	events, s := run(t, Options{}, initLine("s1"), hello,
		`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":1000,"post_tokens":10}}`,
		`{"type":"system","subtype":"api_retry","attempt":1,"error":"overloaded"}`,
		`{"type":"system","subtype":"api_retry","attempt":1,"error":null}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`,
		`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool"}}`,
		`{"type":"keep_alive"}`,
		`{"type":"new_thing","subtype":"odd","x": [1, 2]}`,
		`{"type":"stream_event","event":{"type":"new_event"}}`,
		`{"type":"assistant","error":"rate_limit","message":{"id":"m9","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}`,
		`{"type":"user","isSynthetic":true,"message":{"content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}}`,
		success)
	require.Equal(t, map[string]int{
		"claude.rate_limit_event": 1, "claude.control_request": 1, "claude.keep_alive": 1, "claude.new_thing.odd": 1, "claude.stream_event.new_event": 1,
	}, s.Unknown)
	require.Equal(t, int64(10), eventtest.Payloads[*agentevents.ContextCompacted](events)[0].TokensAfter.V)
	errored := eventtest.Payloads[*agentevents.AgentErrored](events)
	require.Len(t, errored, 4)
	require.Equal(t, "overloaded", errored[0].ErrorType)
	require.Equal(t, "api_retry", errored[1].ErrorType)
	require.Equal(t, agentevents.SeverityWarning, errored[2].Severity)
	require.Equal(t, "API Error", errored[3].Message)
	require.Equal(t, 1, s.Agents["claude"].Errors)
	last := s.Messages[len(s.Messages)-1]
	require.Equal(t, "core.system", last.From)
	require.Equal(t, agentevents.JSON(`[{"type":"text","text":"a"},{"type":"image","source":{}}]`), last.Content)
	for _, ev := range events {
		if u, ok := ev.Payload.(*agentevents.Unknown); ok && u.Type == "claude.new_thing.odd" {
			require.Equal(t, agentevents.JSON(`{"type":"new_thing","subtype":"odd","x":[1,2]}`), u.Raw)
		}
	}
}

func TestDamagedCharacters(t *testing.T) {
	events, s := run(t, Options{}, initLine("s1"), block("m1", `{"type":"text","text":"a\ud800b`+"\xff"+`"}`), success)
	require.Equal(t, []string{"claude: a\ufffdb\ufffd"}, texts(s))
	require.Equal(t, []agentevents.Kind{agentevents.KindModelReturned, agentevents.KindTextCompleted, agentevents.KindMessageCreated}, marked(events, agentevents.MarkSanitized))
}

func TestBadLines(t *testing.T) {
	tests := []struct{ name, line, pointer, text string }{
		{"plain text", `Warning: no config`, "", "not JSON"},
		{"cut", `{"type":"assistant","message":{`, "", "not JSON"},
		{"array", `[1]`, "", "expected an object"},
		{"no type", `{"x":1}`, "/type", `"type"`},
		{"type", `{"type":7}`, "/type", `"type"`},
		{"message", `{"type":"assistant","message":5}`, "/message", `"message"`},
		{"content", `{"type":"assistant","message":{"content":{}}}`, "/message/content", `"content"`},
		{"block", `{"type":"assistant","message":{"content":[5]}}`, "/message/content/0", "expected an object"},
		{"block type", `{"type":"assistant","message":{"content":[{}]}}`, "/message/content/0/type", `"type"`},
		{"text", `{"type":"assistant","message":{"content":[{"type":"text","text":5}]}}`, "/message/content/0/text", `"text"`},
		{"call id", `{"type":"assistant","message":{"content":[{"type":"tool_use","id":[],"name":"x"}]}}`, "/message/content/0/id", `"id"`},
		{"result id", `{"type":"user","message":{"content":[{"type":"tool_result"}]}}`, "/message/content/0/tool_use_id", `"tool_use_id"`},
		{"flag", `{"type":"user","isSynthetic":1,"message":{"content":"x"}}`, "/isSynthetic", `"isSynthetic"`},
		{"timestamp", `{"type":"keep_alive","timestamp":"yesterday"}`, "/timestamp", `"timestamp"`},
		{"duration", `{"type":"result","subtype":"success","duration_ms":-1}`, "/duration_ms", `"duration_ms"`},
		{"cost", `{"type":"result","subtype":"success","total_cost_usd":1e999}`, "/total_cost_usd", `"total_cost_usd"`},
		{"turns", `{"type":"result","subtype":"success","num_turns":1.5}`, "/num_turns", `"num_turns"`},
		{"model usage", `{"type":"result","subtype":"success","modelUsage":{"a/b":1}}`, "/modelUsage/a~1b", `"a/b"`},
		{"errors", `{"type":"result","subtype":"success","is_error":true,"errors":[1]}`, "/errors/0", "expected a string"},
		{"delta", `{"type":"stream_event","event":{"type":"content_block_start","index":"x"}}`, "/event/index", `"index"`},
		{"uuids", `{"type":"assistant","supersedes":"x","message":{}}`, "/supersedes", `"supersedes"`},
		{"deep", `{"type":"x","x":` + strings.Repeat("[", 950) + strings.Repeat("]", 950) + `}`, "", "nested"},
		{"duplicate member", `{"type":"x","a":1,"a":2}`, "", "duplicate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, errs := decode(t, Options{}, initLine("s1")+"\n"+hello+"\n"+tt.line+"\n"+success+"\n")
			require.Len(t, errs, 1)
			var le *agentevents.LineError
			require.ErrorAs(t, errs[0], &le)
			require.Equal(t, 3, le.Line)
			require.ErrorContains(t, le, tt.text)
			if tt.pointer != "" {
				require.Equal(t, tt.pointer, le.Pointer)
			}
			s := fold(t, events)
			require.Equal(t, "hello", s.Agents["claude"].AttemptsInOrder()[0].Text)
		})
	}
	t.Run("repeated call", func(t *testing.T) {
		call := block("m1", callBlock("c1", "Bash", `{}`))
		events, errs := decode(t, Options{}, initLine("s1")+"\n"+call+"\n"+call+"\n"+success)
		require.Len(t, errs, 1)
		require.Equal(t, 1, fold(t, events).Tools["Bash"].Calls)
	})
	t.Run("in a line that was held back", func(t *testing.T) {
		_, errs := decode(t, Options{}, `{"type":"user","isSynthetic":"x","message":{"content":[{"type":"text","text":5}]}}`+"\n"+initLine("s1")+"\n"+success)
		require.NotEmpty(t, errs)
		require.ErrorContains(t, errors.Join(errs...), "held back")
	})
}

func TestDeltasAfterTheWholeBlock(t *testing.T) {
	ev := func(event string) string {
		return `{"type":"stream_event","event":` + event + `,"session_id":"s1"}`
	}
	events, s := run(t, Options{}, initLine("s1"),
		ev(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"headless"}}`),
		ev(`{"type":"message_start","message":{"id":"m1","model":"model-a"}}`),
		ev(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`),
		ev(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"he"}}`),
		ev(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":""}}`),
		ev(`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta"}}`),
		hello,
		ev(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"llo"}}`),
		ev(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`),
		ev(`{"type":"content_block_stop","index":1}`), ev(`{"type":"ping"}`), ev(`{"type":"message_delta"}`), ev(`{"type":"message_stop"}`),
		success)
	deltas := eventtest.Payloads[*agentevents.TextDelta](events)
	require.Equal(t, []*agentevents.TextDelta{{BlockID: "m1:1", Delta: "he", Index: agentevents.Some(0)}}, deltas)
	require.Equal(t, "m1:1", eventtest.Payloads[*agentevents.TextCompleted](events)[0].BlockID)
	require.Equal(t, "hello", s.Agents["claude"].Text)
}

func TestMuchIsForgotten(t *testing.T) {
	var b strings.Builder
	b.WriteString(initLine("s1") + "\n")
	for i := range maxMade + 10 {
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"u%d","message":{"id":"m%d","content":[{"type":"text","text":"x"}]}}`+"\n", i, i)
	}
	d := NewDecoder(Options{Time: fixedClock})
	var events []agentevents.Event
	for line := range strings.Lines(b.String()) {
		var err error
		events, err = d.Decode(events[:0], []byte(strings.TrimSpace(line)))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(d.made), maxMade)
	require.Len(t, d.madeList, len(d.made))
	require.LessOrEqual(t, len(d.blocks.young), maxCounters)
}

func TestLongLine(t *testing.T) {
	text := strings.Repeat("x", 3<<20)
	_, s := run(t, Options{}, initLine("s1"), block("m1", callBlock("c1", "Read", `{}`)),
		resultLine("c1", `"`+strings.Repeat("é", 3000)+`"`, `,"tool_use_result":{"content":"`+text+`"}`), success)
	require.Equal(t, 1, s.Tools["Read"].OK)
	require.Len(t, summary(strings.Repeat("é", 3000)), 2*2048)
}

// Two processes of one session print the same session id. Their logs stay two runs when
// they are put together in any order.
func TestRunIsItsProcess(t *testing.T) {
	process := func(uuid, text string) []agentevents.Event {
		init := strings.Replace(initLine("s1"), "init-s1", uuid, 1)
		events, s := run(t, Options{}, init, block("m-"+text, `{"type":"text","text":"`+text+`"}`), success)
		require.Equal(t, uuid, s.RunID)
		require.Equal(t, "s1", s.SessionID)
		require.Equal(t, "s1", s.Agents["claude"].ProviderSessionID)
		return events
	}
	first, second := process("p1", "one"), process("p2", "two")
	for _, events := range [][]agentevents.Event{slices.Concat(first, second), slices.Concat(second, first)} {
		var log []byte
		for i := range events {
			line, err := events[i].AppendJSON(nil)
			require.NoError(t, err)
			log = append(append(log, line...), '\n')
		}
		runs, err := agentevents.FoldLog(agentevents.NewReader(bytes.NewReader(log), agentevents.ReaderOptions{}), agentevents.FoldOptions{})
		require.NoError(t, err)
		got := map[string][]string{}
		for s := range runs.Drain() {
			require.Zero(t, s.ViolationCount)
			got[s.RunID] = texts(s)
		}
		require.Equal(t, map[string][]string{"p1": {"claude: one"}, "p2": {"claude: two"}}, got)
	}

	// Without a uuid the first line names the run, whatever comes before the init line.
	bare := strings.Replace(initLine("s1"), `"uuid":"init-s1",`, "", 1)
	hook := `{"type":"system","subtype":"hook_response","session_id":"s1","uuid":"%s"}`
	ids := map[string]bool{}
	for _, lines := range [][]string{{bare, hello}, {bare, hello, success}, {fmt.Sprintf(hook, "a"), bare}, {fmt.Sprintf(hook, "b"), bare}, {hello}} {
		_, s := run(t, Options{}, lines...)
		require.NotEqual(t, "s1", s.RunID)
		ids[s.RunID] = true
	}
	require.Len(t, ids, 4, "the first two have the same first line")
}

// Nobody measures between lines that have no time.
func TestTimes(t *testing.T) {
	lines := []string{initLine("s1"), block("m1", callBlock("c1", "Bash", `{}`)), resultLine("c1", `"x"`), hello, success}
	first, took, err := Times(strings.NewReader("plain text\n" + strings.Join(lines, "\n")))
	require.NoError(t, err)
	require.Zero(t, first)
	require.Equal(t, 1500*time.Millisecond, took)
	_, s := run(t, Options{Started: testTime.Add(-took)}, lines...)
	require.Equal(t, testTime.Add(-took), s.StartedAt)
	require.Equal(t, testTime, s.CompletedAt)
	a := s.Agents["claude"]
	require.Equal(t, testTime.Add(-took), a.StartedAt)
	require.Equal(t, testTime, a.EndedAt)
	require.Equal(t, agentevents.Some(took), a.Duration)
	require.Len(t, s.ClosedCalls, 1)
	require.Equal(t, testTime, s.ClosedCalls[0].StartedAt)
	require.False(t, s.ClosedCalls[0].Duration.OK)

	_, s = run(t, Options{}, lines[:3]...)
	require.False(t, s.Agents["claude"].Duration.OK)

	// A line that has a time keeps it.
	stamped := strings.Replace(initLine("s1"), `"uuid"`, `"timestamp":"2026-01-01T00:00:00Z","uuid"`, 1)
	_, s = run(t, Options{Started: testTime.Add(-took)}, append([]string{stamped}, lines[1:]...)...)
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), s.StartedAt)

	// The line that shows the start says more than the start.
	events, s := run(t, Options{Started: testTime.Add(-took)}, lines[1:]...)
	require.Equal(t, testTime.Add(-took), s.StartedAt)
	require.Equal(t, testTime, events[len(events)-1].Time)
	require.False(t, s.ClosedCalls[0].Duration.OK)
	require.Equal(t, testTime, s.ClosedCalls[0].StartedAt)

	long := `{"type":"result","duration_ms":9223372036854}`
	_, took, err = Times(strings.NewReader(long + "\n" + long))
	require.NoError(t, err)
	require.Equal(t, time.Duration(math.MaxInt64), took)
	_, _, err = Times(iotest.ErrReader(errors.New("gone")))
	require.EqualError(t, err, "gone")
}

// A prompt that waited has the time at which the user sent it, which is that of its message. The stream does
// not go back. The turn before a prompt ends before it.
func TestPromptThatWaited(t *testing.T) {
	at := func(line, stamp string) string {
		return strings.Replace(line, `"type"`, `"timestamp":"`+stamp+`","type"`, 1)
	}
	said := func(text string) string {
		return `{"type":"user","session_id":"s1","message":{"role":"user","content":"` + text + `"}}`
	}
	lines := []string{
		initLine("s1"), at(hello, "2026-01-01T10:00:00Z"), block("m1", callBlock("c1", "Bash", `{}`)), at(resultLine("c1", `"x"`), "2026-01-01T10:00:09Z"),
		at(said("Second"), "2026-01-01T10:00:02Z"), block("m2", callBlock("c2", "Bash", `{}`)), success,
		at(said("Third"), "2026-01-01T10:00:20Z"), block("m3", callBlock("c3", "Bash", `{}`)), success,
	}
	var events []agentevents.Event
	ten := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	d := NewDecoder(Options{Saved: true, Time: func() time.Time { return ten }})
	for _, l := range lines {
		var err error
		events, err = d.Decode(events, []byte(l))
		require.NoError(t, err)
	}
	var order []string
	for i, ev := range events {
		if i > 0 {
			require.False(t, ev.Time.Before(events[i-1].Time), "%d %s", i, ev.Kind())
		}
		switch p := ev.Payload.(type) {
		case *agentevents.TurnEnded:
			order = append(order, "end")
		case *agentevents.MessageCreated:
			if order = append(order, string(p.Message.Content)); p.Message.Content == `"Second"` {
				require.Equal(t, ten.Add(2*time.Second).UnixMilli(), p.Message.TS)
			}
		}
	}
	require.Contains(t, strings.Join(order, " "), `"Second" end "Third"`)
}

// In a saved stream with some timestamps nothing has the time at which it was saved.
func TestSavedTimes(t *testing.T) {
	at := func(line, stamp string) string {
		return strings.Replace(line, `"type"`, `"timestamp":"`+stamp+`","type"`, 1)
	}
	lines := []string{
		initLine("s1"), at(hello, "2026-01-01T10:00:00Z"), block("m1", callBlock("c1", "Bash", `{}`)), at(resultLine("c1", `"x"`), "2026-01-01T10:00:01Z"), success,
	}
	first, took, err := Times(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	ten := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	require.Equal(t, ten, first)
	o := Options{Saved: true, Time: func() time.Time { return first }}
	_, s := run(t, o, lines...)
	require.Equal(t, ten, s.StartedAt)
	require.Equal(t, ten, s.Agents["claude"].StartedAt)
	require.Equal(t, ten, s.ClosedCalls[0].StartedAt)
	require.Equal(t, agentevents.Some(time.Second), s.ClosedCalls[0].Duration)
	require.Equal(t, ten.Add(took), s.CompletedAt, "1.5 s, as the result states")

	// What comes later is not before it, and a turn that goes on has its own duration.
	_, s = run(t, o, append(lines, initLine("s1"), hello, success)...)
	require.Equal(t, ten.Add(2*took), s.CompletedAt)
	_, s = run(t, o, append(lines[:4:4], at(success, "2026-01-01T10:01:00Z"))...)
	require.Equal(t, ten.Add(time.Minute), s.CompletedAt)
	_, s = run(t, o, append(lines[:3:3], at(resultLine("c1", `"x"`), "2026-01-01T10:01:00Z"), success)...)
	require.Equal(t, ten.Add(time.Minute), s.CompletedAt)

	// Who pipes a saved stream cannot look for its times first.
	_, s = run(t, Options{}, append([]string{at(lines[0], "2026-01-01T09:59:59Z")}, lines[1:]...)...)
	require.Equal(t, ten.Add(time.Second), s.CompletedAt)
}

func TestForeignFormats(t *testing.T) {
	transcript := `{"parentUuid":null,"isSidechain":false,"sessionId":"s1","type":"user","uuid":"u1","message":{"role":"user","content":"x"}}`
	for name, lines := range map[string][]string{
		"transcript":  {`{"type":"summary","summary":"x","leafUuid":"u"}`, transcript},
		"codex exec":  {`{"type":"thread.started","thread_id":"t"}`, `{"type":"turn.started"}`},
		"Codex":       {`{"type":"session_meta","payload":{}}`},
		"gemini":      {`{"type":"init","session_id":"s","model":"m"}`, `{"type":"message","role":"user","content":"x"}`},
		"agentevents": {`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"run.started","runId":"r","payload":{}}`},
		"RUN_STARTED": slices.Repeat([]string{`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`}, maxHeldLines),
	} {
		t.Run(name, func(t *testing.T) {
			events, errs := decode(t, Options{}, strings.Join(append(lines, transcript, success), "\n"))
			require.Empty(t, events)
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], name)
		})
	}
	// Nothing shows what a short one is before its end.
	events, errs := decode(t, Options{}, `{"type":"foo"}`+"\n"+`{"type":"keep_alive"}`)
	require.Empty(t, events)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], `no line is a whole one of the type system, user, assistant, stream_event or result; the first has "foo"`)
	// What the Agent SDK prints has the links of both, and inside a run nothing is refused.
	_, s := run(t, Options{}, strings.Replace(transcript, `"type"`, `"parent_tool_use_id":null,"type"`, 1), initLine("s1"), transcript, success)
	require.Equal(t, []string{"user: x"}, texts(s))
}
