package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/internal/session"
)

// rolloutOf returns the lines of a rollout: each element is a type, a blank and a payload. The
// first line, a turn and a text of the user stand before them.
func rolloutOf(lines ...string) (out []string) {
	const id = "01a0b7d4-09f3-7f10-8b9b-c7ca8030706a"
	begin := []string{
		`session_meta {"id":"` + id + `","cli_version":"0.169.0","cwd":"/home/dev"}`,
		`event_msg {"type":"task_started","turn_id":"01a0b7d4-09f4-7f10-8b9b-c7ca8030706a"}`,
		`turn_context {"model":"m"}`,
		`event_msg {"type":"user_message","message":"Do it"}`,
	}
	for i, line := range append(begin, lines...) {
		kind, payload, _ := strings.Cut(line, " ")
		out = append(out, fmt.Sprintf(`{"timestamp":"2026-11-28T11:00:%02d.000Z","type":%q,"payload":%s}`, i, kind, payload))
	}
	return out
}

// decode returns the events of lines and the fold of them, which has no violations.
func decode(t *testing.T, lines []string) ([]agentevents.Event, *agentevents.RunSnapshot) {
	t.Helper()
	d := session.NewDecoder(nil, Rollout(), session.Options{})
	var events []agentevents.Event
	for _, line := range lines {
		var err error
		events, err = d.Decode(events, []byte(line))
		require.NoError(t, err, line)
	}
	events, err := d.End(events)
	require.NoError(t, err)
	require.Empty(t, d.Residue.Counts())
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range events {
		fold.Apply(ev)
	}
	require.Empty(t, fold.Snapshot().Violations)
	return events, fold.Snapshot()
}

// of returns the payloads of one type.
func of[P agentevents.Payload](events []agentevents.Event) (out []P) {
	for _, ev := range events {
		if p, ok := ev.Payload.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

const done = `event_msg {"type":"task_complete","last_agent_message":"Done."}`

// How a call went is in the text of its return.
func TestReturns(t *testing.T) {
	for text, want := range map[string]struct {
		status  agentevents.ToolStatus
		code    string
		message string
	}{
		"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nhi\n":  {agentevents.ToolStatusOK, "", ""},
		"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\nbad\n": {agentevents.ToolStatusError, "exit_3", "bad"},
		"Command: /bin/sh -c 'a\nb'\nChunk ID: 1\nProcess exited with code 1\nOutput:\n":  {agentevents.ToolStatusError, "exit_1", "exit code 1"},
		"Exit code: 2\nWall time: 0 seconds\nOutput:\nno":                                 {agentevents.ToolStatusError, "exit_2", "no"},
		"Exit code: 0\nWall time: 0 seconds\nOutput:\nProcess exited with code 5":         {agentevents.ToolStatusOK, "", ""},
		`{"output":"bad","metadata":{"exit_code":127,"duration_seconds":0.5}}`:            {agentevents.ToolStatusError, "exit_127", "bad"},
		`{"output":"good","metadata":{"exit_code":0,"duration_seconds":0.5}}`:             {agentevents.ToolStatusOK, "", ""},
		`{"goal":"x"}`: {agentevents.ToolStatusOK, "", ""},
		"Wall time: 2.3 seconds\naborted by user": {agentevents.ToolStatusCancelled, "cancelled", "aborted by user"},
		"aborted":                                        {agentevents.ToolStatusCancelled, "cancelled", "aborted"},
		"exec command rejected by user":                  {agentevents.ToolStatusForbidden, "forbidden", "exec command rejected by user"},
		"patch rejected by user":                         {agentevents.ToolStatusForbidden, "forbidden", "patch rejected by user"},
		"failed to parse function arguments: EOF":        {agentevents.ToolStatusError, "error", "failed to parse function arguments: EOF"},
		"unsupported call: x":                            {agentevents.ToolStatusError, "error", "unsupported call: x"},
		"apply_patch verification failed: y":             {agentevents.ToolStatusError, "error", "apply_patch verification failed: y"},
		"write_stdin failed: Unknown process id 1":       {agentevents.ToolStatusError, "error", "write_stdin failed: Unknown process id 1"},
		"unable to locate image at `x`: No such file":    {agentevents.ToolStatusError, "error", "unable to locate image at `x`: No such file"},
		"The test failed: 3 of 4":                        {agentevents.ToolStatusOK, "", ""},
		"Success. Updated the following files:\nM a.txt": {agentevents.ToolStatusOK, "", ""},
		"": {agentevents.ToolStatusOK, "", ""},
	} {
		events, _ := decode(t, rolloutOf(
			`response_item {"type":"function_call","name":"x","arguments":"{}","call_id":"c"}`,
			`response_item {"type":"function_call_output","call_id":"c","output":`+string(agentevents.JSONString(text))+`}`, done))
		returned := of[*agentevents.ToolReturned](events)
		require.Len(t, returned, 1, text)
		require.Equal(t, want.status, returned[0].Status, text)
		require.Equal(t, want.code, returned[0].Error.V.Code, text)
		require.Equal(t, want.message, returned[0].Error.V.Message, text)
	}
}

// A command that ran tells of its process. Any other return of one is a failure.
func TestReturnsOfCommands(t *testing.T) {
	for text, want := range map[string]agentevents.ToolStatus{
		"some new words of a refusal":                               agentevents.ToolStatusError,
		"approval policy is Never; reject command — you cannot ask": agentevents.ToolStatusForbidden,
		"Wall time: 0.1 seconds\nOutput:\nhi":                       agentevents.ToolStatusOK,
		`{"output":"good","metadata":{"exit_code":0}}`:              agentevents.ToolStatusOK,
	} {
		events, _ := decode(t, rolloutOf(
			`response_item {"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}`,
			`response_item {"type":"function_call_output","call_id":"c","output":`+string(agentevents.JSONString(text))+`}`, done))
		require.Equal(t, want, of[*agentevents.ToolReturned](events)[0].Status, text)
	}
}

// A command that runs on in the background returns with its item, or with the end of the program.
func TestBackgroundCommands(t *testing.T) {
	begin := []string{
		`response_item {"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"x\"}","call_id":"c"}`,
		`response_item {"type":"function_call_output","call_id":"c","output":"Chunk ID: 1\nProcess running with session ID 7\nOutput:\n"}`,
	}
	poll := func(returned string) (out []string) {
		return []string{
			`response_item {"type":"function_call","name":"write_stdin","arguments":"{\"session_id\":7,\"chars\":\"\"}","call_id":"p"}`,
			`response_item {"type":"function_call_output","call_id":"p","output":"Chunk ID: 2\nProcess ` + returned + `\nOutput:\nout"}`,
		}
	}
	item := `event_msg {"type":"item_completed","item":{"type":"CommandExecution","id":"c","status":%q,"exit_code":%d,"aggregated_output":"out"}}`
	for name, c := range map[string]struct {
		lines []string
		want  agentevents.ToolStatus
	}{
		"it ends":                {[]string{fmt.Sprintf(item, "completed", 0), done}, agentevents.ToolStatusOK},
		"it ends after turn":     {[]string{done, fmt.Sprintf(item, "completed", 0)}, agentevents.ToolStatusOK},
		"it fails":               {[]string{fmt.Sprintf(item, "failed", 2), done}, agentevents.ToolStatusError},
		"it is killed":           {[]string{done, fmt.Sprintf(item, "failed", -1)}, agentevents.ToolStatusInterrupted},
		"nothing tells its end":  {[]string{done}, agentevents.ToolStatusInterrupted},
		"an older line":          {[]string{`event_msg {"type":"exec_command_end","call_id":"c","exit_code":1,"aggregated_output":"out"}`, done}, agentevents.ToolStatusError},
		"a poll tells its end":   {append(poll("exited with code 0"), done), agentevents.ToolStatusOK},
		"a poll tells a failure": {append(poll("exited with code 3"), done), agentevents.ToolStatusError},
		"the second poll":        {append(append(poll("running with session ID 7"), poll("exited with code 3")...), done), agentevents.ToolStatusError},
		"a poll, and the item":   {append(poll("exited with code 3"), fmt.Sprintf(item, "failed", 3), done), agentevents.ToolStatusError},
		"the item, and a poll":   {append([]string{fmt.Sprintf(item, "failed", 3)}, append(poll("exited with code 3"), done)...), agentevents.ToolStatusError},
		"after the turn":         {append([]string{done}, poll("exited with code 3")...), agentevents.ToolStatusError},
		"only polled":            {append(poll("running with session ID 7"), done), agentevents.ToolStatusInterrupted},
	} {
		events, snapshot := decode(t, rolloutOf(append(begin, c.lines...)...))
		returned := of[*agentevents.ToolReturned](events)
		returned = slices.DeleteFunc(returned, func(p *agentevents.ToolReturned) bool {
			if p.CallID == "p" {
				require.Equal(t, agentevents.ToolStatusOK, p.Status, name)
			}
			return p.CallID == "p"
		})
		require.Len(t, returned, 1, name)
		require.Equal(t, c.want, returned[0].Status, name)
		require.Equal(t, agentevents.RunStatusCompleted, snapshot.Status, name)
	}
}

// totals is a line with running totals: input, cached input and output of all calls and of the last.
func totals(input, cached, output, last, lastCached, lastOutput int) string {
	return fmt.Sprintf(`event_msg {"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d},`+
		`"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d}}}`, input, cached, output, last, lastCached, lastOutput)
}

const text = `response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi."}]}`

// Running totals come again, begin anew in another process, and leave out calls.
func TestRunningTotals(t *testing.T) {
	for name, c := range map[string]struct {
		lines         []string
		models        int
		input, output int64
	}{
		"one":              {[]string{text, totals(100, 80, 5, 100, 80, 5)}, 1, 20, 5},
		"the same again":   {[]string{text, totals(100, 80, 5, 100, 80, 5), totals(100, 80, 5, 100, 80, 5), totals(100, 80, 5, 0, 0, 0)}, 1, 20, 5},
		"two":              {[]string{text, totals(100, 80, 5, 100, 80, 5), text, totals(210, 90, 8, 110, 10, 3)}, 2, 120, 8},
		"anew and lower":   {[]string{text, totals(100, 80, 5, 100, 80, 5), text, totals(50, 0, 2, 50, 0, 2)}, 2, 70, 7},
		"anew and higher":  {[]string{text, totals(100, 80, 5, 100, 80, 5), text, totals(300, 0, 9, 300, 0, 9)}, 2, 320, 14},
		"one was left out": {[]string{text, totals(100, 0, 5, 100, 0, 5), text, text, totals(400, 0, 20, 120, 0, 5)}, 2, 400, 20},
		"nothing is known": {[]string{text, `event_msg {"type":"token_count","info":null}`}, 1, 0, 0},
		"before the parts": {[]string{totals(100, 80, 5, 100, 80, 5), text, totals(210, 90, 8, 110, 10, 3), text}, 2, 120, 8},
		"after the tools": {[]string{
			`response_item {"type":"function_call","name":"x","arguments":"{}","call_id":"c"}`,
			`response_item {"type":"function_call_output","call_id":"c","output":"ok"}`, totals(100, 80, 5, 100, 80, 5), text, totals(210, 90, 8, 110, 10, 3),
		}, 2, 120, 8},
	} {
		events, snapshot := decode(t, rolloutOf(append(c.lines, done)...))
		require.Len(t, of[*agentevents.ModelReturned](events), c.models, name)
		require.Equal(t, c.input, snapshot.Usage.Usage.InputTokens, name)
		require.Equal(t, c.output, snapshot.Usage.Usage.OutputTokens, name)
	}
}

// The lines of events of older versions tell how a call went.
func TestOlderEvents(t *testing.T) {
	call := `response_item {"type":"function_call","name":"x","arguments":"{}","call_id":"c"}`
	output := `response_item {"type":"function_call_output","call_id":"c","output":"something"}`
	for event, want := range map[string]agentevents.ToolStatus{
		`{"type":"exec_command_end","call_id":"c","exit_code":0,"duration":{"secs":1,"nanos":5000000}}`:                      agentevents.ToolStatusOK,
		`{"type":"exec_command_end","call_id":"c","exit_code":4,"duration":{"secs":1,"nanos":5000000}}`:                      agentevents.ToolStatusError,
		`{"type":"exec_command_end","call_id":"c","status":"declined","duration":{"secs":1,"nanos":5000000}}`:                agentevents.ToolStatusForbidden,
		`{"type":"patch_apply_end","call_id":"c","success":false,"duration":{"secs":1,"nanos":5000000}}`:                     agentevents.ToolStatusError,
		`{"type":"mcp_tool_call_end","call_id":"c","duration":{"secs":1,"nanos":5000000},"result":{"Ok":{"content":[]}}}`:    agentevents.ToolStatusOK,
		`{"type":"mcp_tool_call_end","call_id":"c","duration":{"secs":1,"nanos":5000000},"result":{"Ok":{"isError":true}}}`:  agentevents.ToolStatusError,
		`{"type":"mcp_tool_call_end","call_id":"c","duration":{"secs":1,"nanos":5000000},"result":{"Err":"no such server"}}`: agentevents.ToolStatusError,
	} {
		events, _ := decode(t, rolloutOf(call, "event_msg "+event, output, done))
		returned := of[*agentevents.ToolReturned](events)
		require.Len(t, returned, 1)
		require.Equal(t, want, returned[0].Status, event)
		require.EqualValues(t, 1005, returned[0].Duration.V.Milliseconds(), event)
	}
}

// How a session ended is how its last turn did.
func TestEnds(t *testing.T) {
	next := `event_msg {"type":"task_started","turn_id":"01a0b7d4-09f5-7f10-8b9b-c7ca8030706a"}`
	for name, c := range map[string]struct {
		lines []string
		want  agentevents.RunStatus
	}{
		"completed":                 {[]string{text, done}, agentevents.RunStatusCompleted},
		"an error in the end":       {[]string{`event_msg {"type":"task_complete","last_agent_message":null,"error":{"message":"x","codex_error_info":"other"}}`}, agentevents.RunStatusFailed},
		"an error before the end":   {[]string{`event_msg {"type":"error","message":"x"}`, `event_msg {"type":"task_complete","last_agent_message":null}`}, agentevents.RunStatusFailed},
		"an error that was mended":  {[]string{`event_msg {"type":"error","message":"x"}`, text, done}, agentevents.RunStatusCompleted},
		"stopped":                   {[]string{`event_msg {"type":"turn_aborted","reason":"interrupted"}`}, agentevents.RunStatusCancelled},
		"out of budget":             {[]string{`event_msg {"type":"turn_aborted","reason":"budget_limited"}`}, agentevents.RunStatusFailed},
		"killed":                    {[]string{text}, agentevents.RunStatusFailed},
		"killed and resumed":        {[]string{text, next, text, done}, agentevents.RunStatusCompleted},
		"stopped and resumed":       {[]string{`event_msg {"type":"turn_aborted","reason":"interrupted"}`, next, text, done}, agentevents.RunStatusCompleted},
		"completed and then failed": {[]string{text, done, next, `event_msg {"type":"task_complete","last_agent_message":null,"error":{"message":"x"}}`}, agentevents.RunStatusFailed},
	} {
		_, snapshot := decode(t, rolloutOf(c.lines...))
		require.Equal(t, c.want, snapshot.Status, name)
	}
}

// A turn without an end fails with the error that came last in it.
func TestErrorsOfTurnsWithoutEnds(t *testing.T) {
	const limit = `event_msg {"type":"error","message":"You've hit your usage limit","codex_error_info":"usage_limit_exceeded"}`
	next := `event_msg {"type":"task_started","turn_id":"01a0b7d4-09f5-7f10-8b9b-c7ca8030706a"}`
	for want, lines := range map[string][]string{
		"usage_limit_exceeded":                    {limit},
		"interrupted":                             {limit, text},
		"usage_limit_exceeded of an earlier turn": {limit, next, text, done},
	} {
		events, snapshot := decode(t, rolloutOf(lines...))
		want, _, earlier := strings.Cut(want, " ")
		require.Equal(t, want, of[*agentevents.TurnEnded](events)[0].Error.V.Code)
		require.Equal(t, earlier, snapshot.Status == agentevents.RunStatusCompleted)
	}
}

// Several kinds of lines tell one prompt. A prompt that comes again is another one, and begins a turn in
// versions that tell none.
func TestPromptsThatComeAgain(t *testing.T) {
	const (
		response = `response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"Go on"}]}`
		event    = `event_msg {"type":"user_message","message":"Go on","kind":"plain"}`
		item     = `event_msg {"type":"item_completed","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"Go on"}]}}`
	)
	const picture = `response_item {"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,xx"}]}`
	older := func(lines ...string) []string {
		return slices.Delete(rolloutOf(append([]string{text}, lines...)...), 1, 2)
	}
	for name, c := range map[string]struct {
		lines            []string
		turns, questions int
	}{
		"in a turn":                {rolloutOf(response, event, text, response, event, text, done), 1, 3},
		"in a turn, by items":      {rolloutOf(response, item, text, response, item, text, done), 1, 3},
		"in a turn, told by three": {rolloutOf(response, event, item, text, item, response, event, text, done), 1, 3},
		"of older versions":        {older(response, event, text, response, event, text), 3, 3},
		"images of the program":    {older(event, picture, text, picture, text), 2, 2},
		"an image of the user":     {older(picture, `event_msg {"type":"user_message","message":"","images":["data:image/png;base64,xx"]}`, text), 2, 2},
		"told by one":              {older(event, text, event, text), 3, 3},
	} {
		events, snapshot := decode(t, c.lines)
		require.Len(t, of[*agentevents.TurnStarted](events), c.turns, name)
		questions := slices.DeleteFunc(snapshot.Messages, func(m agentevents.ConversationMessage) bool { return m.Role != "user" })
		require.Len(t, questions, c.questions, name)
	}
}

// Turns that the user took back are retracted; what they used stays spent.
func TestRolledBack(t *testing.T) {
	next := func(n int) string {
		return fmt.Sprintf(`event_msg {"type":"task_started","turn_id":"01a0b7d4-09f%d-7f10-8b9b-c7ca8030706a"}`, n)
	}
	ask := func(words string) string { return fmt.Sprintf(`event_msg {"type":"user_message","message":%q}`, words) }
	events, snapshot := decode(t, rolloutOf(
		text, totals(100, 0, 5, 100, 0, 5), done, next(5), ask("Second"), text, totals(200, 0, 10, 100, 0, 5), done,
		`event_msg {"type":"thread_rolled_back","num_turns":1}`, next(6), ask("Third"), text, totals(300, 0, 15, 100, 0, 5), done))
	require.Len(t, of[*agentevents.EventRetracted](events), 1)
	var words []string
	for _, m := range snapshot.Messages {
		words = append(words, string(m.Content))
	}
	require.Equal(t, []string{`"Do it"`, `"Hi."`, `"Third"`, `"Hi."`}, words)
	require.EqualValues(t, 300, snapshot.Usage.Usage.InputTokens)
}

// A history that was copied is no work of the thread, also if it has copied histories itself.
func TestCopiedHistory(t *testing.T) {
	events, snapshot := decode(t, []string{
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"session_meta","payload":{"id":"01a0b7d4-2000-7f10-8b9b-c7ca8030706a","session_id":"01a0b7d4-0000-7f10-8b9b-c7ca8030706a","parent_thread_id":"01a0b7d4-1000-7f10-8b9b-c7ca8030706a"}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"session_meta","payload":{"id":"01a0b7d4-1000-7f10-8b9b-c7ca8030706a","session_id":"01a0b7d4-0000-7f10-8b9b-c7ca8030706a"}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"turn_context","payload":{"model":"m"}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"01a0b7d4-1001-7f10-8b9b-c7ca8030706a","parent_turn_id":"01a0b7d4-0001-7f10-8b9b-c7ca8030706a"}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Of the parent"}]}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"response_item","payload":{"type":"function_call","name":"x","arguments":"{}","call_id":"c"}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000,"output_tokens":50},"last_token_usage":{"input_tokens":1000,"output_tokens":50}}}}`,
		`{"timestamp":"2026-11-28T11:00:00.000Z","type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}`,
		`{"timestamp":"2026-11-28T11:00:01.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"01a0b7d4-2001-7f10-8b9b-c7ca8030706a","parent_turn_id":"01a0b7d4-1001-7f10-8b9b-c7ca8030706a"}}`,
		`{"timestamp":"2026-11-28T11:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Its own"}]}}`,
		`{"timestamp":"2026-11-28T11:00:02.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi."}]}}`,
		`{"timestamp":"2026-11-28T11:00:02.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1100,"output_tokens":55},"last_token_usage":{"input_tokens":100,"output_tokens":5}}}}`,
		`{"timestamp":"2026-11-28T11:00:03.000Z","type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Hi."}}`,
	})
	require.Empty(t, of[*agentevents.ToolCalled](events))
	require.Equal(t, agentevents.JSON(`"Its own"`), of[*agentevents.AgentStarted](events)[0].Prompt)
	require.EqualValues(t, 100, snapshot.Usage.Usage.InputTokens)
	require.Equal(t, agentevents.RunStatusCompleted, snapshot.Status)
	require.Len(t, of[*agentevents.TurnStarted](events), 1)
}

// The first line of a thread has the time at which the thread began, and is written later: an agent
// takes at least as long as its turn.
func TestThreadBeginsBeforeItsFirstLine(t *testing.T) {
	lines := rolloutOf(`event_msg {"type":"task_complete","turn_id":"01a0b7d4-09f4-7f10-8b9b-c7ca8030706a","last_agent_message":"Done.","duration_ms":4200}`)
	lines[0] = strings.Replace(lines[0], `"cwd"`, `"timestamp":"2026-11-28T10:59:59.500Z","cwd"`, 1)
	_, s := decode(t, lines)
	agent := s.Agents["codex"]
	require.Equal(t, time.Date(2026, 11, 28, 10, 59, 59, 5e8, time.UTC), s.StartedAt)
	require.Equal(t, s.StartedAt, agent.StartedAt)
	require.Equal(t, 4500*time.Millisecond, agent.Duration.V)
	require.LessOrEqual(t, s.Turns[0].Duration.V, agent.Duration.V)

	lines[0] = strings.Replace(lines[0], "10:59:59.5", "11:59:59.5", 1)
	_, s = decode(t, lines)
	require.Equal(t, time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC), s.StartedAt, "a later time is not that of the beginning")
}
