package agentevents

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The end of a session ends its runs in every kind of FoldSet: of events, of lines, on workers.
func TestTheEndOfASessionEndsItsRuns(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	next := map[string]uint64{}
	var events []Event
	add := func(run, session, agent string, p Payload) {
		at = at.Add(time.Second)
		events = append(events, Event{ID: fmt.Sprint(run, next[run]), Sequence: next[run], Time: at, RunID: run, Scope: Scope{SessionID: session}, AgentID: agent, SchemaVersion: SchemaVersion, Payload: p})
		next[run]++
	}
	message := func(run, session string) {
		add(run, session, "a", &MessageCreated{Message: ConversationMessage{MessageID: "m" + run, From: "a", To: "b", Role: "assistant", Content: `"x"`}})
	}
	message("before", "s")
	message("goes on", "s")
	message("another's", "t")
	message("none's", "")
	add("opened", "s", "", &RunStarted{})
	add("carrier", "s", "", &SessionCompleted{Status: "failed"})
	end := at
	message("before", "s") // no start: the run is still over
	add("goes on", "s", "a", &AgentStarted{})
	message("after", "s")

	want := map[string]RunStatus{
		"before": RunStatusFailed, "goes on": RunStatusRunning, "another's": RunStatusRunning, "none's": RunStatusRunning,
		"opened": RunStatusRunning, "carrier": RunStatusFailed, "after": RunStatusRunning,
	}
	var log bytes.Buffer
	set := NewFoldSet(FoldOptions{})
	for i := range events {
		set.Apply(events[i])
		line, err := events[i].AppendJSON(nil)
		require.NoError(t, err)
		log.Write(append(line, '\n'))
	}
	for run := range want {
		require.Equal(t, want[run], set.Snapshot(run).Status, run)
	}
	require.Equal(t, end, set.Snapshot("before").CompletedAt)
	for _, workers := range []int{0, 3} {
		set, err := FoldLog(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		for s := range set.Drain() {
			require.Equal(t, want[s.RunID], s.Status, s.RunID)
		}
	}
}
