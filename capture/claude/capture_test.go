package claude

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// capturePath is a real stream, which is not part of the project.
var capturePath = filepath.Join("..", "..", "..", "shared", "real", "claude-stream-json", "ai-systems", "raw-sdk-messages.jsonl")

func readCapture(t testing.TB) []byte {
	t.Helper()
	stream, err := os.ReadFile(capturePath)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the real capture is not here; it is not part of the project")
	}
	require.NoError(t, err)
	return stream
}

func TestRealCapture(t *testing.T) {
	stream := readCapture(t)
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
	require.Equal(t, agentevents.Some(2330*time.Millisecond), child.Duration)

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
	require.Equal(t, agentevents.Some(0.13437175), s.Usage.CostUSD)
	u := result.object("usage")
	require.Equal(t, agentevents.Some(usage(&u)), main.Usage.Ended)
	require.Equal(t, agentevents.Usage{
		InputTokens: 1608 + 11, OutputTokens: 395 + 874,
		CacheCreationInputTokens: agentevents.Some[int64](15218 + 22631), CacheReadInputTokens: agentevents.Some[int64](15044 + 40842),
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
	stream := readCapture(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		r := agentevents.NewReader(bytes.NewReader(stream), agentevents.ReaderOptions{Decoder: NewDecoder(Options{Time: fixedClock})})
		for _, err := range r.All() {
			require.NoError(b, err)
		}
	}
}
