package playback_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/playback"
)

// Example plays a run twice as fast as it was, and asks for the state of every point.
func Example() {
	at := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	events := []ae.Event{ // as a Reader gives them
		{ID: "1", RunID: "r1", Time: at, Payload: &ae.RunStarted{}},
		{ID: "2", RunID: "r1", Sequence: 1, Time: at, AgentID: "coder", Payload: &ae.AgentStarted{}},
		{ID: "3", RunID: "r1", Sequence: 2, Time: at.Add(20 * time.Millisecond), AgentID: "coder", Payload: &ae.AgentEnded{Outcome: ae.OutcomePartial}},
		{ID: "4", RunID: "r1", Sequence: 3, Time: at.Add(20 * time.Millisecond), Payload: &ae.RunCompleted{}},
	}
	player, err := playback.New(slices.Values(events), playback.Options{})
	if err != nil {
		log.Fatal(err)
	}
	err = player.Play(context.Background(), playback.Timing{Speed: 2, MaxWait: time.Second}, func(ev ae.Event) error {
		s := player.Snapshot()
		fmt.Println(ev.Sequence, ev.Kind(), s.Status, len(s.Agents))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := player.Seek(2); err != nil { // back again
		log.Fatal(err)
	}
	fmt.Println("before 2:", player.Snapshot().Agents["coder"].Status)
	// Output:
	// 0 run.started running 0
	// 1 agent.started running 1
	// 2 agent.ended running 1
	// 3 run.completed completed 1
	// before 2: thinking
}
