package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// snapshots folds the sessions below a folder.
func snapshots(t *testing.T, name string) (out []*agentevents.RunSnapshot, notes []string) {
	t.Helper()
	sessions, err := Open(name, Options{})
	require.NoError(t, err)
	for _, s := range sessions {
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for line, err := range s.Lines() {
			require.NoError(t, err)
			fold.Apply(*line.Event)
		}
		out = append(out, fold.Snapshot())
		notes = append(notes, s.Notes()...)
	}
	return out, notes
}

// Messages of branches that were left, and those before a rewind, are retracted, and no others.
func TestRetracted(t *testing.T) {
	for name, want := range map[string][]string{
		"pi/tree":         {"It is 42.", "And the other file?", "There is none.", "Look again", "Only notes.txt."},
		"pi/resume":       nil,
		"gemini/rewind":   {"It is 42."},
		"gemini/resume":   nil,
		"gemini/compress": nil,
		"qwen/rewind":     {"Try again", "I cannot."},
		"qwen/subagent":   nil,
	} {
		all, _ := snapshots(t, "testdata/"+name)
		var got []string
		for _, s := range all {
			for _, m := range s.RetractedMessages {
				got = append(got, jsonwire.Text(string(m.Content)))
			}
		}
		require.Equal(t, want, got, name)
	}
}

// A turn begins with a text of a person, or with the task of a sub-agent, and with nothing that a
// program writes in their name.
func TestTurnsOfChats(t *testing.T) {
	for name, want := range map[string]int{
		"pi/resume": 3, "pi/rpc": 8, "pi/tree": 4, "pi-json/resume": 3, "gemini/tools": 1, "gemini/resume": 2, "gemini/subagent": 2, "gemini/compress": 2,
		"gemini-stream/tools": 1, "qwen/subagent": 2, "qwen/badargs": 1, "qwen/fork": 1, "qwen-stream/subagent": 2, "opencode/tools": 1, "opencode-run/tools": 1,
	} {
		sessions, err := Open("testdata/"+name, Options{})
		require.NoError(t, err)
		turns := 0
		for _, s := range sessions {
			for line, err := range s.Lines() {
				require.NoError(t, err)
				if line.Event.Kind() == agentevents.KindTurnStarted {
					turns++
				}
			}
		}
		require.Equal(t, want, turns, name)
	}
}

// A turn without an end fails with its error, unless the agent goes on after it or has answered before.
func TestErrorsOfChats(t *testing.T) {
	geminiLines := []string{
		`{"sessionId":"2975cdc3-26c8-4f89-8bba-dd20f1413e24","projectHash":"d6","startTime":"2026-11-28T11:00:00.000Z","kind":"main"}`,
		`{"id":"1","timestamp":"2026-11-28T11:00:01.000Z","type":"user","content":[{"text":"Go"}]}`,
		`{"id":"2","timestamp":"2026-11-28T11:00:02.000Z","type":"error","content":"429"}`,
		`{"id":"3","timestamp":"2026-11-28T11:00:03.000Z","type":"gemini","content":"Fine","model":"m"}`,
	}
	const head = `{"sessionId":"c8493294-8e4e-5e76-9d82-1f447bf0a642","version":"0.24.4","timestamp":"2026-11-28T11:00:00.000Z",`
	qwenLines := []string{
		"",
		head + `"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","parts":[{"text":"Go"}]}}`,
		head + `"uuid":"2","parentUuid":"1","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","error":"429"}}}`,
		head + `"uuid":"3","parentUuid":"2","type":"assistant","model":"m","message":{"role":"model","parts":[{"text":"Fine"}]}}`,
	}
	for _, l := range [][]string{geminiLines, qwenLines} {
		for _, c := range []struct {
			want  string
			lines []string
		}{
			{"429", []string{l[0], l[1], l[2]}},
			{"429", []string{l[0], l[1], l[2], strings.NewReplacer(`"1"`, `"4"`, "null", `"2"`).Replace(l[1]), l[3]}},
			{"", []string{l[0], l[1], l[2], l[3]}},
			{"", []string{l[0], l[1], l[3], l[2]}},
		} {
			s, refused := decode(t, slices.DeleteFunc(c.lines, func(line string) bool { return line == "" }))
			require.NoError(t, refused)
			require.Equal(t, c.want, s.Turns[0].Error.V.Message, "%q", c.lines)
		}
	}
}

// A stream of Gemini CLI states the tokens of each model. The total counts if they are not all of it.
func TestModelsOfGeminiStreams(t *testing.T) {
	models := `"pro":{"total_tokens":70,"input_tokens":60,"output_tokens":8,"cached":20},"flash":{"total_tokens":50,"input_tokens":40,"output_tokens":7,"cached":20}`
	for _, c := range []struct {
		models string
		want   map[string]int64
	}{
		{models, map[string]int64{"pro": 40, "flash": 20}},
		{"", map[string]int64{"auto": 60}},
		{models[:strings.Index(models, `,"flash"`)], map[string]int64{"auto": 60}},
	} {
		s, refused := decode(t, []string{
			`{"type":"init","timestamp":"2026-11-28T11:00:00.000Z","session_id":"2975cdc3-26c8-4f89-8bba-dd20f1413e24","model":"auto"}`,
			`{"type":"message","timestamp":"2026-11-28T11:00:01.000Z","role":"user","content":"Go"}`,
			`{"type":"message","timestamp":"2026-11-28T11:00:02.000Z","role":"assistant","content":"Done","delta":true}`,
			`{"type":"result","timestamp":"2026-11-28T11:00:03.000Z","status":"success","stats":{"total_tokens":120,"input_tokens":100,"output_tokens":15,"cached":40,"models":{` + c.models + `}}}`,
		})
		require.NoError(t, refused)
		require.EqualValues(t, 120, s.Usage.Usage.InputTokens+s.Usage.Usage.CacheReadInputTokens.V+s.Usage.Usage.OutputTokens)
		got := map[string]int64{}
		for model, used := range s.Usage.Models {
			got[model] = used.InputTokens
		}
		require.Equal(t, c.want, got)
	}
}

// Older versions of Copilot CLI tell the lines of a sub-agent by the call that started it.
func TestSubAgentsByTheirCalls(t *testing.T) {
	var lines []string
	for i, line := range []string{
		`"session.start","data":{"sessionId":"a5c73d8f-987a-4727-96df-26b22847d64a","selectedModel":"m"}`,
		`"user.message","data":{"content":"Go"}`,
		`"assistant.turn_start","data":{}`,
		`"assistant.message","data":{"messageId":"1","content":"","toolRequests":[{"toolCallId":"t","name":"task","arguments":{"prompt":"Look"}}]}`,
		`"tool.execution_start","data":{"toolCallId":"t","toolName":"task","arguments":{"prompt":"Look"}}`,
		`"subagent.started","data":{"toolCallId":"t","agentName":"explore"}`,
		`"tool.execution_start","data":{"toolCallId":"b","toolName":"bash","arguments":{"command":"ls"},"parentToolCallId":"t"}`,
		`"tool.execution_complete","data":{"toolCallId":"b","success":true,"result":{"content":"x"},"parentToolCallId":"t"}`,
		`"assistant.message","data":{"messageId":"2","content":"Found","toolRequests":[],"parentToolCallId":"t"}`,
		`"subagent.completed","data":{"toolCallId":"t","agentName":"explore"}`,
		`"tool.execution_complete","data":{"toolCallId":"t","success":true,"result":{"content":"Found"}}`,
		`"assistant.turn_end","data":{}`,
		`"assistant.turn_start","data":{}`,
		`"assistant.message","data":{"messageId":"3","content":"Done","toolRequests":[]}`,
		`"assistant.turn_end","data":{}`,
	} {
		lines = append(lines, fmt.Sprintf(`{"type":%s,"id":"%d","parentId":null,"timestamp":"2026-11-28T11:00:%02d.000Z"}`, line, i, i))
	}
	s, refused := decode(t, lines)
	require.NoError(t, refused)
	require.Len(t, s.Agents, 2)
	require.Len(t, s.Turns, 2)
	for id, agent := range s.Agents {
		want := "Done"
		if id != "copilot" {
			want = "Found"
			require.Equal(t, "copilot", agent.ParentAgentID)
			require.Equal(t, "Look", agent.Task)
		}
		require.Equal(t, agentevents.OutcomeConverged, agent.Outcome)
		require.Equal(t, want, agent.Result)
		require.Equal(t, 1, agent.ToolCalls)
	}
}

// chatFile returns the only session of a folder, or the first one.
func chatFile(t *testing.T, dir string) string {
	t.Helper()
	sessions, err := Open(filepath.Join("testdata", dir), Options{})
	require.NoError(t, err)
	return sessions[0].Files()[0]
}

// With the file of a session come the files of its sub-agents, which are in another folder, also if its
// name has no folder.
func TestFilesOfSubAgentsOfChats(t *testing.T) {
	for _, dir := range []string{"gemini/subagent", "qwen/subagent"} {
		t.Run(dir, func(t *testing.T) {
			file := chatFile(t, dir)
			whole, notes := snapshots(t, file)
			require.Len(t, whole, 1)
			require.Len(t, whole[0].Agents, 2)
			require.Empty(t, notes)
			sessions, err := Open(file, Options{})
			require.NoError(t, err)
			_, notes = snapshots(t, sessions[0].Files()[1])
			require.Len(t, notes, 1)
			require.Contains(t, notes[0], "this is the file of a sub-agent")
			t.Chdir(filepath.Dir(file))
			whole, _ = snapshots(t, filepath.Base(file))
			require.Len(t, whole[0].Agents, 2)
		})
	}
}

// A sub-agent whose file is missing is what its parent tells of it.
func TestMissingFilesOfChats(t *testing.T) {
	for dir, want := range map[string]agentevents.AgentOutcome{"gemini/subagent": agentevents.OutcomeAborted, "qwen/subagent": agentevents.OutcomeConverged, "qwen/missing": agentevents.OutcomeAborted} {
		to := t.TempDir()
		put(t, to, chatFile(t, dir))
		all, notes := snapshots(t, to)
		require.Len(t, notes, 1, dir)
		require.Contains(t, notes[0], "the file of the sub-agent")
		require.Len(t, all[0].Agents, 2, dir)
		for id, a := range all[0].Agents {
			if strings.Contains(id, ":") {
				require.Equal(t, want, a.Outcome, dir)
			}
		}
		require.Equal(t, agentevents.RunStatusCompleted, all[0].Status)
		require.Empty(t, all[0].Violations)
	}
}

// The file of a sub-agent that no call tells of shows that the program was stopped in the call,
// which the session lacks.
func TestStoppedInASubAgent(t *testing.T) {
	file := chatFile(t, "gemini/subagent")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, _, ok := strings.Cut(string(text), `{"id":"04a35920-efe8-5143-802b-d416378fb048"`)
	require.True(t, ok)
	answer := strings.Split(strings.TrimPrefix(string(text), before), "\n")[0]
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(before+answer+"\n"), 0o600))
	all, _ := snapshots(t, dir)
	require.Equal(t, agentevents.RunStatusCompleted, all[0].Status)
	sessions, err := Open(file, Options{})
	require.NoError(t, err)
	sub := sessions[0].Files()[1]
	below := filepath.Join(dir, filepath.Base(filepath.Dir(sub)))
	require.NoError(t, os.Mkdir(below, 0o700))
	put(t, below, sub)
	all, _ = snapshots(t, dir)
	require.Len(t, all[0].Agents, 2)
	require.Equal(t, agentevents.RunStatusFailed, all[0].Status)
}

// A line and a member that are not known are counted, and a version that is newer is told once.
func TestUnreadOfChats(t *testing.T) {
	for _, c := range []struct{ dir, old, new, line, kind, pointer, newer string }{
		{"pi/tools", `"toolName":"bash"`, `"toolName":"bash","mood":1`, `{"type":"mood","id":"m","parentId":"x"}`, "message/toolResult", "/message/mood", ""},
		{"pi/tools", `"version":3`, `"version":4`, "", "", "", "version 4 is newer than 3"},
		{"pi-json/tools", `"type":"tool_execution_end"`, `"type":"tool_execution_end","mood":1`, `{"type":"mood"}`, "tool_execution_end", "/mood", ""},
		{"gemini/tools", `"displayName":"Shell"`, `"displayName":"Shell","mood":1`, `{"type":"mood","id":"m"}`, "gemini", "/toolCalls/*/mood", ""},
		{"gemini/tools", `"$set":{"lastUpdated":"2026-11-28T11:05:57.537Z"`, `"$set":{"mood":1,"lastUpdated":"2026-11-28T11:05:57.537Z"`, `{"type":"mood"}`, "$set", "/$set/mood", ""},
		{"gemini-stream/tools", `"delta":true`, `"delta":true,"mood":1`, `{"type":"mood"}`, "message", "/mood", ""},
		{"qwen/tools", `"executionStatus":"success"}`, `"mood":1,"executionStatus":"success"}`, `{"type":"system","subtype":"mood","uuid":"m"}`, "tool_result", "/toolCallResult/mood", ""},
		{"qwen/tools", `"version":"0.24.4"`, `"version":"0.25.0"`, "", "", "", "version 0.25.0 is newer than 0.24.4"},
		{"qwen-stream/tools", `"type":"tool_use","id"`, `"type":"tool_use","mood":1,"id"`, `{"type":"mood"}`, "assistant", "/message/content/*/mood", ""},
		{"qwen-stream/tools", `"qwen_code_version":"0.24.4"`, `"qwen_code_version":"0.25.0"`, "", "", "", "version 0.25.0 is newer than 0.24.4"},
	} {
		text, err := os.ReadFile(chatFile(t, c.dir))
		require.NoError(t, err)
		require.Contains(t, string(text), c.old, c.dir)
		changed := strings.ReplaceAll(string(text), c.old, c.new) + c.line
		path := filepath.Join(t.TempDir(), "a name")
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		sessions, err := Open(path, Options{})
		require.NoError(t, err)
		for _, err := range sessions[0].Lines() {
			require.NoError(t, err)
		}
		if c.newer != "" {
			require.Len(t, sessions[0].Notes(), 1, c.dir)
			require.Contains(t, sessions[0].Notes()[0], c.newer)
			continue
		}
		var lines, members int
		for _, u := range sessions[0].Unread() {
			switch {
			case u.Pointer == "" && strings.HasSuffix(u.Kind, "mood"):
				lines += u.Count
			case u.Kind == c.kind && u.Pointer == c.pointer:
				members += u.Count
			default:
				t.Fatalf("%s: %+v", c.dir, u)
			}
		}
		require.Equal(t, 1, lines, c.dir)
		require.Equal(t, strings.Count(changed, `"mood":1`), members, c.dir)
	}
}

// pi tells the cost of each answer, and one of a fork is its own.
func TestCostOfPi(t *testing.T) {
	all, _ := snapshots(t, "testdata/pi/resume")
	require.InDelta(t, 0.0102, all[0].Usage.CostUSD.V, 1e-9)
	require.InDelta(t, 0.0051, all[1].Usage.CostUSD.V, 1e-9)
}

// What was printed of a session that is in the folder, too, does not count again.
func TestPrintedBesideChats(t *testing.T) {
	for _, c := range []struct{ session, stream string }{{"pi/tools", "pi-json/tools"}, {"gemini/tools", "gemini-stream/tools"}, {"qwen/tools", "qwen-stream/tools"}} {
		dir := t.TempDir()
		put(t, dir, chatFile(t, c.session), chatFile(t, c.stream))
		all, notes := snapshots(t, dir)
		require.Len(t, all, 1, c.session)
		require.EqualValues(t, 2700, all[0].Usage.Usage.InputTokens)
		require.Len(t, notes, 1)
		require.Contains(t, notes[0], "was printed of this session and is left out")
	}
}

// However a file of a session with sub-agents is damaged, what is read keeps the rules, and agents
// and calls have ends.
func TestDamagedFilesOfChats(t *testing.T) {
	for _, name := range []string{"gemini/subagent", "qwen/subagent"} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
		sessions, err := Open(dir, Options{})
		require.NoError(t, err)
		for _, file := range sessions[0].Files() {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := strings.SplitAfter(string(text), "\n")
			for i := range lines {
				for _, damaged := range [][]string{
					lines[:i], slices.Delete(slices.Clone(lines), i, i+1), slices.Insert(slices.Clone(lines), i, lines[i]),
					slices.Insert(slices.Delete(slices.Clone(lines), i, i+1), max(0, i-1), lines[i]),
				} {
					require.NoError(t, os.WriteFile(file, []byte(strings.Join(damaged, "")), 0o600))
					all, err := Open(dir, Options{})
					require.NoError(t, err)
					for _, s := range all {
						checkEnds(t, s, i+1)
					}
				}
			}
			require.NoError(t, os.WriteFile(file, text, 0o600))
		}
	}
}

func checkEnds(t *testing.T, s *Session, line int) {
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for l, err := range s.Lines() {
		require.NoError(t, err, "%s line %d", s.Files()[0], line)
		fold.Apply(*l.Event)
	}
	snapshot := fold.Snapshot()
	require.Empty(t, snapshot.Violations, "%s line %d", s.Files()[0], line)
	require.True(t, snapshot.RunID == "" || snapshot.Status.Terminal(), "%s line %d", s.Files()[0], line)
	require.Empty(t, snapshot.OpenCalls, "%s line %d", s.Files()[0], line)
	for id, a := range snapshot.Agents {
		require.NotEmpty(t, a.Outcome, "%s line %d: %s", s.Files()[0], line, id)
	}
}

// Claude Code states the cost of a session by the model. It belongs to the agent of a session, and to the run
// where there are sub-agents: no agent has the cost of others.
func TestCostsOfModels(t *testing.T) {
	for name, alone := range map[string]bool{"text": true, "fallback": true, "compact": true, "agents": false, "agents-fg": false} {
		all, _ := snapshots(t, "testdata/claude/"+name)
		for _, s := range all {
			models, agents := 0.0, 0.0
			for model, u := range s.Usage.Models {
				require.True(t, u.CostUSD.OK, "%s: %s", name, model)
				models += u.CostUSD.V
			}
			for _, a := range s.Agents {
				_, cost := a.Usage.Total()
				agents += cost.V
			}
			require.Positive(t, s.Usage.CostUSD.V)
			require.InDelta(t, s.Usage.CostUSD.V, models, 1e-9, name)
			require.InDelta(t, map[bool]float64{true: s.Usage.CostUSD.V}[alone], agents, 1e-9, name)
		}
	}
}
