package effort_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

func TestOf(t *testing.T) {
	t.Setenv("AGENTEVENTS_LONG", "")
	usual, long := 2, 3
	if testing.Short() {
		usual, long = 1, 1
	}
	require.False(t, effort.Long())
	require.Equal(t, usual, effort.Of(1, 2, 3))
	t.Setenv("AGENTEVENTS_LONG", "1")
	require.True(t, effort.Long())
	require.Equal(t, long, effort.Of(1, 2, 3))
}

func TestSeed(t *testing.T) {
	t.Setenv("AGENTEVENTS_SEED", "")
	t.Setenv("AGENTEVENTS_LONG", "")
	require.Equal(t, effort.Seed(t), effort.Seed(t))
	t.Setenv("AGENTEVENTS_LONG", "1")
	require.NotEqual(t, effort.Seed(t), effort.Seed(t))
	t.Setenv("AGENTEVENTS_SEED", "7")
	require.EqualValues(t, 7, effort.Seed(t))
}
