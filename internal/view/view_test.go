package view_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

func TestTokens(t *testing.T) {
	require.Equal(t, int64(512), view.Tokens(agentevents.Usage{TotalTokens: agentevents.Some[int64](512)}), "all that is stated")
	require.Equal(t, int64(10), view.Tokens(agentevents.Usage{InputTokens: 1, OutputTokens: 2, CacheReadInputTokens: agentevents.Some[int64](3), CacheCreationInputTokens: agentevents.Some[int64](4)}))
	require.Equal(t, int64(math.MaxInt64), view.Tokens(agentevents.Usage{InputTokens: math.MaxInt64, OutputTokens: 1}))
}

func TestNode(t *testing.T) {
	s := &agentevents.RunSnapshot{NodeStatus: map[string]agentevents.NodeStatus{}, Outputs: map[string]agentevents.JSON{}}
	for _, c := range []struct {
		status    agentevents.NodeStatus
		output    agentevents.JSON
		word, why string
	}{
		{agentevents.NodeStatusDone, `{"skipped":true,"reason":"n1 failed"}`, "skipped", "n1 failed"},
		{agentevents.NodeStatusDone, `{"reason":"n1 failed"}`, "done", ""},
		{agentevents.NodeStatusFailed, `{"error":"out of memory"}`, "failed", "out of memory"},
		{agentevents.NodeStatusFailed, `"text"`, "failed", ""},
		{agentevents.NodeStatusRunning, "", "running", ""},
	} {
		s.NodeStatus["n"], s.Outputs["n"] = c.status, c.output
		word, why := view.Node(s, "n")
		require.Equal(t, []string{c.word, c.why}, []string{word, why}, c.output)
	}
}

func TestAgentsAndTheirRun(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	a := &agentevents.AgentSnapshot{}
	a.AgentID, a.NodeID, a.NodeRunID, a.Ended, a.Duration = "exec-1", "writer", "exec-1", true, agentevents.Some(9*time.Second)
	s := &agentevents.RunSnapshot{Agents: map[string]*agentevents.AgentSnapshot{"exec-1": a}}
	s.StartedAt, s.CompletedAt = began, began.Add(time.Second)
	require.Equal(t, "writer", view.Name("exec-1", a), "its execution is not a name")
	require.Equal(t, 9*time.Second, view.Length(s), "no run is shorter than its agents")
	for outcome, how := range map[agentevents.AgentOutcome]view.Mark{"": view.Good, agentevents.OutcomePartial: view.Warn, agentevents.OutcomeAborted: view.Bad} {
		a.Outcome = outcome
		word, mark := view.Of(s).Status("exec-1", a)
		require.Equal(t, how, mark, word)
	}
	a.Status, a.Outcome = agentevents.StatusFailed, agentevents.OutcomeConverged
	word, mark := view.Of(s).Status("exec-1", a)
	require.Equal(t, "failed", word, "whatever its end states")
	require.Equal(t, view.Bad, mark)
}

func TestArgument(t *testing.T) {
	for arguments, want := range map[agentevents.JSON]string{
		``:                                     "",
		`{}`:                                   "",
		`5`:                                    "",
		`"whole"`:                              "whole",
		`{"a":1,"b":{"command":"x"}}`:          "x",
		`{"b":{"command":"x"},"c":"flat"}`:     "flat",
		`{"b":{"c":{"command":"x"}}}`:          "",
		`{"zeta":"first text","alpha":"next"}`: "first text",
		`{"note":"n","QUERY":"q","path":""}`:   "q",
		`{"command":["a"],"cmd":"c"}`:          "c",
		`{"command":["go","test"]}`:            "go test",
		`{"command":["/bin/bash","-lc","ls"]}`: "ls",
		`{"numbers":["a"]}`:                    "",
		`{"commands":["sleep 1","ls"]}`:        "sleep 1, ls",
		`{"paths":[{"path":"a"},"b",5]}`:       "a, b",
		`{"commands":["[REDACTED:key]","ls"]}`: "ls",
		`{"commands":["a"],"command":"c"}`:     "c",
		`{"commands":["ls"],"workdir":"/tmp"}`: "ls",
		`{"workdir":"/tmp","command":["ls"]}`:  "ls",
		`{"command":"cut off`:                  "",
		`{"changes":[{"kind":"add","path":"a"},{"path":"b"}]}`: "a, b",
		`{"changes":[{"path":"a"}],"note":"n"}`:                "n",
		`{"a":{"changes":[{"path":"a"}]}}`:                     "",

		`{"truncated":{"bytes":2000,"sha256":"6f1e","head":"{\"x\":\"AAA"}}`:                   `cut, 2000 bytes: {"x":"AAA`,
		`{"truncated":{"bytes":2000,"sha256":"6f1e","head":"{\"path\":\"a.go\",\"x\":\"AAA"}}`: "cut, 2000 bytes: a.go",
		`{"truncated":true,"path":"a.go"}`:                                                     "a.go",
	} {
		require.Equal(t, want, view.Argument(arguments), string(arguments))
	}
}

// A node that is suspended for a low confidence shows the confidence and the threshold.
func TestSuspendedNode(t *testing.T) {
	for details, want := range map[agentevents.JSON]string{
		`{"interruptId":"i","threshold":0.7,"observed":0.65}`: "low-confidence (0.65 of 0.7)",
		`{"threshold":1,"observed":0}`:                        "low-confidence (0 of 1)",
		`{"threshold":0.7}`:                                   "low-confidence",
		`{"threshold":"0.7","observed":0.65}`:                 "low-confidence",
		`"0.65"`:                                              "low-confidence",
		"":                                                    "low-confidence",
	} {
		f := agentevents.NewFold(agentevents.FoldOptions{})
		suspend := agentevents.Event{RunID: "r", Scope: agentevents.Scope{NodeID: "n"}, Payload: &agentevents.NodeSuspended{Reason: "low-confidence", Details: details}}
		f.Apply(suspend)
		word, why := view.Node(f.Snapshot(), "n")
		require.Equal(t, [2]string{"suspended", want}, [2]string{word, why}, details)
		f.Apply(agentevents.Event{RunID: "r", Sequence: 1, Scope: suspend.Scope, Payload: &agentevents.NodeStarted{}})
		word, why = view.Node(f.Snapshot(), "n")
		require.Equal(t, [2]string{"running", ""}, [2]string{word, why})
	}
}
