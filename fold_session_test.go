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

// A fold that serves a further run knows nothing of the one before.
func TestAFoldThatIsUsedAgainIsEmpty(t *testing.T) {
	set := NewFoldSet(FoldOptions{})
	for run := range 4 * maxEnded {
		id := fmt.Sprint("r", run)
		alone := NewFold(FoldOptions{})
		sequence := uint64(0)
		add := func(p Payload) {
			ev := Event{
				ID: fmt.Sprint(id, sequence), Sequence: sequence, Time: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), RunID: id, AgentID: "a", SchemaVersion: SchemaVersion,
				Scope: Scope{WorkflowID: "w", Phase: "p"}, Payload: p,
			}
			set.Apply(ev)
			alone.Apply(ev)
			sequence++
		}
		add(&RunStarted{})
		switch run % 4 {
		case 0: // it leaves open what the next ones end
			add(&WorkflowCreated{Phases: []string{"p"}})
			add(&PhaseStarted{})
			add(&CommandReceived{Command: Command{Type: CommandSend, RunID: "a"}})
		case 1:
			add(&WorkflowFinalized{})
		case 2:
			add(&PhaseCompleted{})
		default:
			add(&WorkflowCreated{})
			add(&TurnEnded{})
		}
		add(&RunCompleted{})
		require.Equal(t, string(alone.Snapshot().AppendJSON(nil)), string(set.Snapshot(id).AppendJSON(nil)))
	}
}
