package mix

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// TestWrite checks the promises of the package comment: the log is legal, has every
// kind in the stated proportions, and is always the same.
func TestWrite(t *testing.T) {
	o := Options{Lines: 40_000, Runs: 80}
	var log, again bytes.Buffer
	require.NoError(t, Write(&log, o))
	require.NoError(t, Write(&again, o))
	require.Equal(t, log.String(), again.String())

	counts := map[ae.Kind]int{}
	lines := 0
	for ev, err := range ae.NewReader(bytes.NewReader(log.Bytes()), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		counts[ev.Kind()]++
		lines++
	}
	for info := range ae.Kinds() {
		require.NotZero(t, counts[info.Kind], "no %s", info.Kind)
	}
	require.NotZero(t, counts["vendor.acme.pinged"])
	share := func(want float64, k ae.Kind) {
		require.InDelta(t, want, 100*float64(counts[k])/float64(lines), 1, k)
	}
	share(35, ae.KindTextDelta)
	share(22, ae.KindAgentTransition)
	share(22, ae.KindToolReturned)
	share(16, ae.KindToolCalled)
	require.InDelta(t, o.Lines, lines, 0.1*float64(o.Lines))

	folded, err := ae.FoldLog(ae.NewReader(&log, ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	snapshots := slices.Collect(folded.Drain())
	require.Len(t, snapshots, o.Runs)
	for _, s := range snapshots {
		require.Zero(t, s.ViolationCount, s.Violations)
		require.Empty(t, s.OpenCalls)
	}
}
