package agui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
)

// asking is a run that ends with interrupts, and answering the run with the answers and results.
const (
	asking = `{"type":"RUN_STARTED","timestamp":1777971600000,"threadId":"th","runId":"one"}
{"type":"TOOL_CALL_START","timestamp":1777971600100,"toolCallId":"p1","toolCallName":"pay"}
{"type":"TOOL_CALL_ARGS","timestamp":1777971600100,"toolCallId":"p1","delta":"{\"to\":\"Ann\"}"}
{"type":"TOOL_CALL_END","timestamp":1777971600100,"toolCallId":"p1"}
{"type":"TOOL_CALL_START","timestamp":1777971600200,"toolCallId":"p2","toolCallName":"pay"}
{"type":"TOOL_CALL_END","timestamp":1777971600200,"toolCallId":"p2"}
{"type":"RUN_FINISHED","timestamp":1777971600500,"threadId":"th","runId":"one","outcome":{"type":"interrupt","interrupts":[{"id":"q1","reason":"tool_call","message":"Pay Ann?","toolCallId":"p1"},{"id":"q2","reason":"x:own","message":"Pay Bob?","toolCallId":"p2","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"}}}},{"id":"q3","reason":"input_required","message":"From where?"},{"id":"q4","reason":"confirmation"}]}}
`
	answering = `{"type":"RUN_STARTED","timestamp":1777971660500,"threadId":"th","runId":"two","input":{"threadId":"th","runId":"two","messages":[],"resume":[{"interruptId":"q1","status":"resolved","payload":{"approved":true}},{"interruptId":"q2","status":"resolved","payload":{"approved":false}},{"interruptId":"q3","status":"resolved","payload":{"account":7}},{"interruptId":"q4","status":"cancelled"},{"interruptId":"q5","status":"resolved"}]}}
{"type":"TOOL_CALL_RESULT","timestamp":1777971661100,"toolCallId":"p1","messageId":"p1-result","content":"paid"}
{"type":"TOOL_CALL_RESULT","timestamp":1777971661200,"toolCallId":"p2","messageId":"m-9","content":"denied"}
{"type":"RUN_FINISHED","timestamp":1777971661500,"threadId":"th","runId":"two"}
`
)

// snapshots returns the folds of the runs of events, which keep the rules.
func snapshots(t *testing.T, events []agentevents.Event) map[string]*agentevents.RunSnapshot {
	f := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for _, ev := range events {
		f.Apply(ev)
	}
	all := map[string]*agentevents.RunSnapshot{}
	for s := range f.Drain() {
		require.Empty(t, s.Violations)
		all[s.RunID] = s
	}
	return all
}

// A run that ends with interrupts waits for a request each.
func TestInterrupts(t *testing.T) {
	events := decode(t, agui.Options{Strict: true}, asking)
	s := snapshots(t, events)["one"]
	require.Equal(t, agentevents.RunStatusPaused, s.Status)
	var got []string
	for _, a := range s.Approvals {
		require.True(t, a.Open)
		got = append(got, a.ApprovalID+" "+a.CallID+" "+a.Action)
	}
	require.Equal(t, []string{"q1 p1 Pay Ann?", "q2 p2 Pay Bob?", "q4  "}, got)
	require.Len(t, s.Clarifications, 1)
	require.Equal(t, "From where?", s.Clarifications[0].Questions[0].Question)
	require.Len(t, s.OpenCalls, 2)
	require.IsType(t, &agentevents.RunPaused{}, events[len(events)-1].Payload)
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	require.Equal(t, asking, lines)
}

// The answers to interrupts, and the results of calls of a run that waits, belong to that run.
func TestAnswers(t *testing.T) {
	events := decode(t, agui.Options{Strict: true}, asking+answering)
	all := snapshots(t, events)
	one, two := all["one"], all["two"]
	require.Equal(t, [2]agentevents.RunStatus{agentevents.RunStatusPaused, agentevents.RunStatusCompleted}, [2]agentevents.RunStatus{one.Status, two.Status})
	var got []string
	for _, a := range one.Approvals {
		require.Equal(t, time.Minute, a.AnsweredAt.Sub(a.RequestedAt))
		got = append(got, fmt.Sprint(a.ApprovalID, a.Open, a.Granted, a.By, a.Feedback))
	}
	require.Equal(t, []string{fmt.Sprint("q1", false, true, "two", ""), fmt.Sprint("q2", false, false, "two", ""), fmt.Sprint("q4", false, false, "two", "cancelled")}, got)
	require.JSONEq(t, `{"q3":{"account":7}}`, string(one.Clarifications[0].Answers))
	require.Empty(t, one.OpenCalls)
	require.Empty(t, two.Tools)
	require.Equal(t, 2, one.Tools["pay"].OK)
	require.Equal(t, [2]int{2, 0}, [2]int{len(one.ClosedCalls), len(two.ClosedCalls)})
	lines, _ := encode(t, agui.EncoderOptions{}, events)
	require.Equal(t, asking+answering, lines)
}

// A log that lacks an event of these, or has one more often, is written so that readers get the
// same events: no line tells one that the log lacks.
func TestAnswersAreNotMadeUp(t *testing.T) {
	events := decode(t, agui.Options{}, asking+answering)
	plain := func(events []agentevents.Event) (list []string) {
		for _, ev := range events {
			only := agentevents.Event{ID: "-", RunID: ev.RunID, AgentID: ev.AgentID, Time: ev.Time, Payload: ev.Payload}
			only.SessionID = ev.SessionID
			line, err := only.AppendJSON(nil)
			require.NoError(t, err)
			list = append(list, string(line))
		}
		return list
	}
	own := func(ev agentevents.Event) bool { // no line depends on it
		switch ev.Payload.(type) {
		case *agentevents.RunStarted, *agentevents.ToolCalled, *agentevents.RunPaused, *agentevents.RunCompleted:
			return false
		}
		return true
	}
	n := 0
	for i := range events {
		if !own(events[i]) {
			continue
		}
		n++
		for _, log := range [][]agentevents.Event{
			slices.Delete(slices.Clone(events), i, i+1),
			events[:i+1],
		} {
			lines, _ := encode(t, agui.EncoderOptions{}, log)
			require.Equal(t, plain(sortedByRun(log)), plain(sortedByRun(decode(t, agui.Options{}, lines))), lines)
		}
	}
	require.Equal(t, 11, n)
	// An answer alone, in a thread whose run waits.
	lines, _ := encode(t, agui.EncoderOptions{}, events[:slices.IndexFunc(events, func(ev agentevents.Event) bool { return ev.Kind() == agentevents.KindApprovalGranted })+1])
	require.Contains(t, lines, `"agentevents.approval.granted"`)
	require.True(t, strings.HasPrefix(lines, asking))
}

// sortedByRun returns the events of the first run, then the other events.
func sortedByRun(events []agentevents.Event) []agentevents.Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b agentevents.Event) int { return strings.Compare(a.RunID, b.RunID) })
	return events
}
