package pgstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// The zero Store, and one without a database, are closed.
func TestZeroStore(t *testing.T) {
	for _, s := range []*Store{{}, New(nil, Options{})} {
		ctx := t.Context()
		entry, err := runstore.NewEntry(agentevents.Event{ID: "e", RunID: "r", Payload: &agentevents.RunStarted{}})
		require.NoError(t, err)
		require.ErrorIs(t, s.Append(ctx, "r", 0, entry), agentevents.ErrClosed)
		for _, err := range s.Load(ctx, "r", 0) {
			require.ErrorIs(t, err, agentevents.ErrClosed)
		}
		for range s.Watch(ctx, "r", 0) {
			t.Error("there is nothing to watch")
		}
		for _, err := range s.Runs(ctx, "") {
			require.ErrorIs(t, err, agentevents.ErrClosed)
		}
		_, err = s.Run(ctx, "r")
		require.ErrorIs(t, err, agentevents.ErrClosed)
		require.ErrorIs(t, s.SaveSnapshot(ctx, &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}}), agentevents.ErrClosed)
		_, err = s.LoadSnapshot(ctx, "r")
		require.ErrorIs(t, err, agentevents.ErrClosed)
		require.ErrorIs(t, s.Commit(ctx), agentevents.ErrClosed)
		require.NoError(t, s.Close())
	}
}
