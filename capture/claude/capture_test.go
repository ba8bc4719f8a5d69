package claude

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// session reads the stream of a whole session.
func session(t testing.TB, name string) []byte {
	t.Helper()
	stream, err := os.ReadFile(filepath.Join("testdata", "sessions", name+".stream.jsonl"))
	require.NoError(t, err)
	return stream
}

// Sessions have the calls, agents and tokens that the scripted model was asked for and gave.
func TestSessions(t *testing.T) {
	type counts struct {
		agents, steps, ok, failed int // a step is a model call
		usage                     agentevents.Usage
	}
	tokens := func(in, out, read, written int64) agentevents.Usage {
		return agentevents.Usage{InputTokens: in, OutputTokens: out, CacheReadInputTokens: agentevents.Some(read), CacheCreationInputTokens: agentevents.Some(written)}
	}
	for name, want := range map[string]counts{
		"subagents": {4, 7, 5, 0, tokens(420, 136, 3520, 1370)},
		"failures":  {1, 3, 0, 6, tokens(800, 105, 1100, 600)},
		"partial":   {1, 2, 2, 0, tokens(320, 90, 4500, 420)},
	} {
		events, errs := decode(t, Options{}, string(session(t, name)))
		require.Empty(t, errs, name)
		s := fold(t, events)
		require.Equal(t, agentevents.RunStatusCompleted, s.Status, name)
		got := counts{agents: len(s.Agents), usage: s.Usage.Usage}
		for _, tool := range s.Tools {
			got.ok += tool.OK
			got.failed += tool.Failed
		}
		for _, a := range s.Agents {
			got.steps += a.Step.V + 1
		}
		require.Equal(t, want, got, name)
		require.Empty(t, s.OpenCalls, name)
	}
}

// A session that is killed after any line has the tokens that its lines state: the greatest
// of each message.
func TestKilledSessions(t *testing.T) {
	type counts struct {
		In      int64 `json:"input_tokens"`
		Out     int64 `json:"output_tokens"`
		Read    int64 `json:"cache_read_input_tokens"`
		Written int64 `json:"cache_creation_input_tokens"`
	}
	for _, name := range []string{"subagents", "failures", "skill"} {
		used, most := map[string]counts{}, counts{}
		var cut []byte
		for text := range bytes.Lines(session(t, name)) {
			var line struct {
				Type    string
				Message struct {
					ID    string
					Usage counts
				}
			}
			require.NoError(t, json.Unmarshal(text, &line))
			if line.Type == "result" {
				break
			}
			if line.Type == "stream_event" {
				continue // TestUsageOfMessages has these
			}
			cut = append(cut, text...)
			if line.Type == "assistant" {
				u, v := used[line.Message.ID], line.Message.Usage
				used[line.Message.ID] = counts{max(u.In, v.In), max(u.Out, v.Out), max(u.Read, v.Read), max(u.Written, v.Written)}
			}
			var want counts
			for _, u := range used {
				want = counts{want.In + u.In, want.Out + u.Out, want.Read + u.Read, want.Written + u.Written}
			}
			events, errs := decode(t, Options{}, string(cut))
			require.Empty(t, errs)
			u := fold(t, events).Usage
			got := counts{u.Usage.InputTokens, u.Usage.OutputTokens, u.Usage.CacheReadInputTokens.V, u.Usage.CacheCreationInputTokens.V}
			require.Equal(t, want, got, "%s after %d bytes", name, len(cut))
			require.Equal(t, want != counts{}, u.Partial)
			most = got
		}
		require.NotZero(t, most, name)
	}
}

func TestSession(t *testing.T) {
	stream := session(t, "skill")
	events, errs := decode(t, Options{}, string(stream))
	require.Empty(t, errs)
	s := fold(t, events)

	// The test takes the expected values from the lines directly.
	var f faults
	var process string
	var result, spawn, childMessage object
	for text := range bytes.Lines(stream) {
		line := parseObject(string(bytes.TrimSpace(text)), "", &f)
		message := line.object("message")
		switch line.str("type") {
		case "system":
			if line.str("subtype") == "init" {
				process = line.str("uuid")
			}
		case "result":
			result = line
		case "assistant":
			for _, b := range message.objects("content") {
				if b.str("name") == "Task" {
					spawn = b
				}
			}
			if line.str("parent_tool_use_id") != "" {
				childMessage = message
			}
		}
	}
	task, call := spawn.object("input"), spawn.str("id")

	require.Equal(t, agentevents.RunStatusCompleted, s.Status)
	require.Len(t, s.Agents, 2)
	main := s.AgentsInOrder()[0]
	child := s.AgentsInOrder()[1]
	require.Equal(t, "claude", main.AgentID)
	require.Equal(t, idOf(task.str("subagent_type"), call), child.AgentID)
	require.Equal(t, main.AgentID, child.ParentAgentID)
	require.Equal(t, call, child.ParentCallID)
	require.Equal(t, childMessage.str("model"), child.Model)
	require.Equal(t, task.str("description"), child.Task)
	require.Equal(t, agentevents.OutcomeConverged, child.Outcome)
	require.Equal(t, agentevents.Some(1740*time.Millisecond), child.Duration)

	require.Equal(t, 3, main.ToolCalls)
	require.Equal(t, 1, child.ToolCalls)
	require.Len(t, s.Tools, 3)
	require.Equal(t, 1, s.Tools["Skill"].OK)
	require.Equal(t, 1, s.Tools["Task"].OK)
	require.Equal(t, 2, s.Tools["Write"].OK)

	require.Equal(t, agentevents.StatusConverged, main.Status)
	require.Equal(t, agentevents.OutcomeConverged, main.Outcome)
	require.Equal(t, result.str("result"), main.Result)
	require.Equal(t, result.str("result"), main.Text)
	require.Equal(t, result.millis("duration_ms"), main.Duration)
	require.Equal(t, result.count("num_turns").V, int64(main.NumTurns.V))
	require.Equal(t, result.str("session_id"), main.ProviderSessionID)
	require.Equal(t, process, s.RunID)
	require.Equal(t, result.str("session_id"), s.SessionID)
	require.Equal(t, agentevents.Some(0.041875), s.Usage.CostUSD)
	u := result.object("usage")
	require.Equal(t, agentevents.Some(usage(&u)), main.Usage.Ended)
	require.Equal(t, agentevents.Usage{
		InputTokens: 702 + 12, OutputTokens: 215 + 538,
		CacheCreationInputTokens: agentevents.Some[int64](940 + 1620), CacheReadInputTokens: agentevents.Some[int64](900 + 2515),
	}, s.Usage.Usage)
	require.Len(t, s.Usage.Models, 2)

	var from []string
	for _, m := range s.Messages {
		from = append(from, m.From+" to "+m.To)
	}
	require.Equal(t, []string{
		"user to claude", "claude to user", "core.system to claude", "claude to " + child.AgentID, "claude to user", "claude to user",
	}, from)
	require.Equal(t, 4, s.Unknown["claude.system.hook_response"])
	require.Empty(t, marked(events, agentevents.MarkSynthetic))
	require.Nil(t, f.first)

	// A stream that is cut anywhere is an interrupted run.
	for cut := len(stream) / 7; cut < len(stream)-1; cut += len(stream) / 7 {
		events, _ := decode(t, Options{}, string(stream[:cut]))
		s := fold(t, events)
		require.Equal(t, agentevents.RunStatusFailed, s.Status)
		require.Equal(t, "interrupted", s.Error.V.Code)
	}
}

func BenchmarkDecode(b *testing.B) {
	stream := session(b, "skill")
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		r := agentevents.NewReader(bytes.NewReader(stream), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Time: fixedClock})})
		for _, err := range r.All() {
			require.NoError(b, err)
		}
	}
}
