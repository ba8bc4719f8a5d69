package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openharness"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// flow returns the events of a flow with everything that Open-Harness and OpenWOP can represent:
// two nodes whose agents work, one of which fails, tools, text, state, sessions, usage, a loop and
// commands. An agent has the id of its execution, because Open-Harness has no other.
func flow(t *testing.T) []ae.Event {
	t.Helper()
	var log []ae.Event
	at := time.Date(2026, 1, 4, 9, 0, 0, 0, time.UTC)
	emitter, err := ae.NewEmitter(ae.EmitterOptions{
		Lifecycle: ae.LifecycleStrict,
		Clock:     func() time.Time { at = at.Add(10 * time.Millisecond); return at },
		Sinks:     []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error { log = append(log, ev); return nil })},
	})
	require.NoError(t, err)
	run, err := emitter.Run("run-1")
	require.NoError(t, err)
	plan, build := ae.Scope{NodeID: "plan", NodeRunID: "host:plan-1"}, ae.Scope{NodeID: "build", NodeRunID: "host:build-1"}
	for _, e := range []struct {
		scope ae.Scope
		acts  bool // the agent of the execution does it
		p     ae.Payload
	}{
		{p: &ae.RunStarted{Name: "wf"}},
		{scope: plan, p: &ae.NodeStarted{}},
		{scope: plan, acts: true, p: &ae.AgentStarted{ProviderSessionID: "sess-plan", Model: "m-1", Prompt: `"Plan it"`}},
		{scope: plan, acts: true, p: &ae.AgentReasoningDelta{BlockID: "block-1", Delta: "Let me "}},
		{scope: plan, acts: true, p: &ae.AgentReasoningDelta{BlockID: "block-1", Delta: "think."}},
		{scope: plan, acts: true, p: &ae.AgentReasoned{BlockID: "block-1", Reasoning: "Let me think."}},
		{scope: plan, acts: true, p: &ae.ToolReturned{CallID: "c-1", ToolID: "read", Arguments: `{"path":"a.go"}`, Result: `{"lines":3}`, Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(5 * time.Millisecond)}},
		{scope: plan, acts: true, p: &ae.ToolReturned{CallID: "c-2", ToolID: "bash", Arguments: `"ls"`, Error: ae.Some(ae.ErrorInfo{Code: "exit", Message: "exit status 1"}), Status: ae.ToolStatusError, OneEvent: true, Duration: ae.Some(7 * time.Millisecond)}},
		{p: &ae.StatePatched{Op: ae.PatchSet, Path: "tasks", Value: `[{"done":false},{"done":false}]`}},
		{p: &ae.StatePatched{Op: ae.PatchSet, Path: "tasks.0.done", Value: `true`}},
		{scope: plan, acts: true, p: &ae.TextCompleted{Text: "The plan."}},
		{scope: plan, acts: true, p: &ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: "The plan.", Usage: ae.Some(ae.Usage{InputTokens: 10, OutputTokens: 20}),
			ModelUsage: map[string]ae.Usage{"m-1": {InputTokens: 10, OutputTokens: 20}}, TotalCostUSD: ae.Some(0.25), Duration: ae.Some(80 * time.Millisecond), NumTurns: ae.Some(2)}},
		{scope: plan, p: &ae.NodeCompleted{Outputs: `{"text":"The plan."}`}},
		{p: &ae.EdgeFired{EdgeID: "e-1", From: "plan", To: "build"}},
		{p: &ae.LoopIterated{EdgeID: "e-1", Iteration: 2}},
		{scope: ae.Scope{NodeID: "review"}, p: &ae.NodeSkipped{Reason: "when"}},
		{scope: build, p: &ae.NodeStarted{}},
		{p: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, RunID: "host:build-1", Message: "hurry"}}},
		{p: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, RunID: "host:later-1", Message: "wait"}}},
		{p: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandReply, PromptID: "p", Content: "to nobody"}}},
		{p: &ae.CommandReceived{Command: ae.Command{Type: "pause"}}},
		{scope: build, acts: true, p: &ae.AgentStarted{ProviderSessionID: "sess-build", Prompt: `"Build it"`}},
		{scope: build, acts: true, p: &ae.TextDelta{BlockID: "block-2", Delta: "Half a sen"}},
		{scope: build, acts: true, p: &ae.AgentErrored{ErrorType: "error_max_turns", Message: "too many turns"}},
		{scope: build, p: &ae.NodeFailed{Error: ae.ErrorInfo{Message: "too many turns"}}},
		{p: &ae.RunFailed{}},
	} {
		ev := ae.Event{Scope: e.scope, Payload: e.p}
		if e.acts {
			ev.AgentID = e.scope.NodeRunID
		}
		require.NoError(t, func() error { _, err := run.Record(t.Context(), ev); return err }())
	}
	return log
}

func folded(t *testing.T, events []ae.Event) map[string]any {
	t.Helper()
	f := ae.NewFold(ae.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	s := f.Snapshot()
	require.Empty(t, s.Violations)
	var out map[string]any
	require.NoError(t, json.Unmarshal(s.AppendJSON(nil), &out))
	return out
}

// differences calls f with every place at which two values differ.
func differences(at string, a, b any, f func(at string, a, b any)) {
	am, isA := a.(map[string]any)
	bm, isB := b.(map[string]any)
	al, isAList := a.([]any)
	bl, isBList := b.([]any)
	switch {
	case isA && isB:
		for name := range am {
			differences(at+"/"+name, am[name], bm[name], f)
		}
		for name := range bm {
			if _, both := am[name]; !both {
				differences(at+"/"+name, nil, bm[name], f)
			}
		}
	case isAList && isBList && len(al) == len(bl):
		for i := range al {
			differences(fmt.Sprint(at, "/", i), al[i], bl[i], f)
		}
	case !reflect.DeepEqual(a, b):
		f(at, a, b)
	}
}

// The snapshot of a flow is the same whether it is folded from the library's own log or from a
// document's lines, in every field that the document has. The fields that it does not have are
// listed here, with the reason.
func TestSnapshotsAgree(t *testing.T) {
	log := flow(t)
	native := folded(t, log)
	for _, c := range []struct {
		name    string
		encoder dialect.Encoder
		decoder ae.Decoder
		forced  []string // a pattern of places, a blank, and the reason
	}{
		{"openharness", openharness.NewEncoder(openharness.EncoderOptions{}), openharness.NewDecoder(openharness.Options{RunID: "run-1"}), []string{
			"/resume/recent/.* hashes of other lines",
			"/(inbox|closedCalls)/./eventId no line has an id",
			"/closedCalls/./callId nor has a call",
			"/closedCalls/./step nor has any line a step",
			"/agents/[^/]*/(step|counted/steps) nor has any line a step",
			"/agents/[^/]*/totals agent:complete has no counts",
		}},
		{"openwop", openwop.NewEncoder(openwop.EncoderOptions{}), openwop.NewDecoder(openwop.Options{}), []string{
			"/resume/recent hashes of other lines",
			"/(sequence|nextSequence|closedCalls/./sequence) lines have other numbers: an agent.toolReturned of its own needs a call",
			"/closedCalls/./eventId no line of a joined call has the id of the event",
			"/(closedCalls/.|agents/[^/]*)/step no line has a step",
			"/name run.started has no name",
			"/agents/[^/]*/nodeRunId nor have nodes executions",
			"/(state|loopCounters|edgeStatus|resume/lastEdge).* there are no patches, loops and edges",
			"/(inbox|paused) nor commands",
			"/agentSessions/.* nor sessions of providers",
			"/agents/host:build-1 an agent without reasoning, calls and decisions has no line",
			"/agents/[^/]*/(started|startedAt|sequence|attempts|model|providerSessionId|usage/sequence|usage/model|ended|endedAt|durationMs|outcome|result|numTurns|totals|usage/.*|counted/steps|resume/act|text) there are no starts, ends and texts of agents",
			"/usage/.* usage stands on the ends of agents",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text []byte
			for _, ev := range log {
				if out, err := c.encoder.Append(text, ev); err == nil {
					text = out
				}
			}
			text, err := c.encoder.End(text)
			require.NoError(t, err)
			var events []ae.Event
			for ev, err := range ae.NewReader(bytes.NewReader(text), ae.ReaderOptions{Decoder: c.decoder}).All() {
				require.NoError(t, err)
				events = append(events, ev)
			}
			used := make([]bool, len(c.forced))
			differences("", native, folded(t, events), func(at string, a, b any) {
				for i, forced := range c.forced {
					pattern, _, _ := strings.Cut(forced, " ")
					if regexp.MustCompile("^" + pattern + "$").MatchString(at) {
						used[i] = true
						return
					}
				}
				t.Errorf("%s: natively %v, then %v", at, a, b)
			})
			for i, forced := range c.forced {
				require.True(t, used[i], "no difference: %s", forced)
			}
		})
	}
}
