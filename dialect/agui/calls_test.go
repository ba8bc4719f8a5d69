package agui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
)

// A call exists from TOOL_CALL_START on. Its first result closes it, also before its END; a
// second one is told and makes no call. A call without END is there, as far as it is known.
func TestOneCallIsOneCall(t *testing.T) {
	at := 0
	line := func(typ, id, rest string) string {
		at += 100
		return fmt.Sprintf(`{"type":"TOOL_CALL_%s","toolCallId":%q%s,"timestamp":%d}`+"\n", typ, id, rest, 1793523600000+int64(at))
	}
	started := `{"type":"RUN_STARTED","threadId":"th","runId":"rn","timestamp":1793523600000}` + "\n"
	finished := `{"type":"RUN_FINISHED","threadId":"th","runId":"rn","timestamp":1793523609000}` + "\n"
	failed := `{"type":"RUN_ERROR","message":"no","timestamp":1793523609000}` + "\n"
	start := line("START", "c", `,"toolCallName":"pay"`)
	args := line("ARGS", "c", `,"delta":"{\"n\":1}"`)
	torn := line("START", "t", `,"toolCallName":"fly"`) + line("ARGS", "t", `,"delta":"{\"from\":\"LU"`)
	end, result := line("END", "c", ""), line("RESULT", "c", `,"messageId":"m","content":"paid"`)
	for name, c := range map[string]struct {
		log                     string
		calls, open, violations int
	}{
		"as it should be":                {started + start + args + end + result + finished, 1, 0, 0},
		"a second result":                {started + start + args + end + result + result + finished, 1, 0, 1},
		"a result before the end":        {started + start + args + result + end + finished, 1, 0, 0},
		"a result before more arguments": {started + start + result + args + end + finished, 1, 0, 0},
		"a result without an end":        {started + start + args + result + finished, 1, 0, 0},
		"a result before and after":      {started + start + args + result + end + result + finished, 1, 0, 1},
		"a second end":                   {started + start + args + end + end + result + end + finished, 1, 0, 0},
		"the id of a call again":         {started + start + args + end + result + start + end + result + finished, 2, 0, 0},
		"no end when the run ends":       {started + start + args + torn + end + result + finished, 2, 1, 0},
		"no end when the run fails":      {started + start + args + torn + end + result + failed, 2, 1, 0},
		"no end when the log stops":      {started + start + args + torn, 2, 2, 0},
		"no end when another run begins": {started + torn + strings.ReplaceAll(started, `"rn"`, `"other"`), 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := agentevents.NewFoldSet(agentevents.FoldOptions{})
			arguments := map[string]agentevents.JSON{}
			for _, ev := range decode(t, agui.Options{}, c.log) {
				f.Apply(ev)
				if p, ok := ev.Payload.(*agentevents.ToolCalled); ok {
					arguments[p.ToolID] = p.Arguments
				}
			}
			s := f.Snapshot("rn")
			require.Equal(t, c.violations, s.ViolationCount, s.Violations)
			calls, ok := 0, 0
			for id, tool := range s.Tools {
				require.NotEqual(t, "unknown", id)
				calls, ok = calls+tool.Calls, ok+tool.OK
			}
			require.Equal(t, [3]int{c.calls, c.calls - c.open, c.open}, [3]int{calls, ok, len(s.OpenCalls)})
			require.Len(t, s.ClosedCalls, c.calls-c.open)
			if strings.Contains(c.log, "LU") {
				last := s.OpenCalls[len(s.OpenCalls)-1]
				require.Equal(t, "fly", last.ToolID)
				require.Equal(t, agentevents.JSON(`"{\"from\":\"LU"`), arguments["fly"])
			}
			if name == "a second result" {
				require.Equal(t, agentevents.Some(100*time.Millisecond), s.ClosedCalls[0].Duration)
			}
		})
	}
}

// The protocol takes a result before END as the call's, and refuses the end of a run with a call
// that has no END.
func TestStrictCallsWithoutEnd(t *testing.T) {
	head := `{"type":"RUN_STARTED","threadId":"th","runId":"rn"}` + "\n" + `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"pay"}` + "\n"
	result := `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"paid"}` + "\n"
	end := `{"type":"TOOL_CALL_END","toolCallId":"c"}` + "\n"
	finished := `{"type":"RUN_FINISHED","threadId":"th","runId":"rn"}` + "\n"
	decode(t, agui.Options{Strict: true}, head+result+end+finished)
	for _, log := range []string{head + finished, head + result + finished} {
		var broken *agentevents.RuleError
		for _, err := range agentevents.NewReader(strings.NewReader(log), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{Strict: true})}).All() {
			if err != nil {
				require.ErrorAs(t, err, &broken)
			}
		}
		require.NotNil(t, broken)
		require.Equal(t, agui.RuleOrder, broken.Rule)
	}
}

// A call that no line ends has the time of its latest line, so that its duration is known.
func TestImpliedEndsHaveATime(t *testing.T) {
	lines := `{"type":"RUN_STARTED","timestamp":1777971600000,"threadId":"t","runId":"r"}
{"type":"TOOL_CALL_CHUNK","timestamp":1777971601000,"toolCallId":"c","toolCallName":"ls","delta":"{}"}
{"type":"TOOL_CALL_RESULT","timestamp":1777971603000,"messageId":"m","toolCallId":"c","content":"ok"}
{"type":"TOOL_CALL_CHUNK","timestamp":1777971604000,"toolCallId":"d","toolCallName":"ls","delta":"{}"}
`
	var calls []time.Time
	for ev, err := range agentevents.NewReader(strings.NewReader(lines), agentevents.ReaderOptions{Decoder: agui.NewDecoder(agui.Options{})}).All() {
		require.NoError(t, err)
		if _, is := ev.Payload.(*agentevents.ToolCalled); is {
			calls = append(calls, ev.Time)
		}
	}
	require.Equal(t, []time.Time{time.UnixMilli(1777971601000).UTC(), time.UnixMilli(1777971604000).UTC()}, calls)
}
