package runstore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
)

// BenchmarkFile emits events that are on disk when Emit returns, from several runs at the
// same time, which share the syncs.
func BenchmarkFile(b *testing.B) {
	for _, runs := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			s := open(b, b.TempDir(), runstore.Options{})
			e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(s)}})
			require.NoError(b, err)
			b.ReportAllocs()
			var wg sync.WaitGroup
			for n := range runs {
				run, err := e.Run(fmt.Sprint(n))
				require.NoError(b, err)
				wg.Go(func() {
					for range b.N / runs {
						if err := run.Emit(b.Context(), &ae.StatePatched{Path: "x", Op: "set", Value: "1"}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkDelta emits tokens of a model.
func BenchmarkDelta(b *testing.B) {
	for name, sink := range map[string]func(runstore.Store) ae.Sink{
		"left out": runstore.NewSink,
		"kept":     func(s runstore.Store) ae.Sink { return runstore.NewSinkWithDeltas(s) },
	} {
		b.Run(name, func(b *testing.B) {
			e, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{sink(open(b, b.TempDir(), runstore.Options{}))}})
			require.NoError(b, err)
			run, err := e.Run("r")
			require.NoError(b, err)
			require.NoError(b, run.Agent("a").Emit(b.Context(), &ae.AgentStarted{}))
			call, err := run.Agent("a").Model(b.Context(), nil)
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, call.Text(b.Context(), "word "))
			}
		})
	}
}

// BenchmarkOpen opens a store of 100 runs with 1,000 events each.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	o := runstore.Options{Log: &logfile.Options{Sync: logfile.SyncNone}}
	s := open(b, dir, o)
	for seq := range uint64(1000) {
		for run := range 100 {
			id := fmt.Sprint("run-", run)
			require.NoError(b, s.Append(b.Context(), id, seq, entry(b, id, seq, "text")))
		}
	}
	require.NoError(b, s.Close())
	for b.Loop() {
		s := open(b, dir, o)
		require.NoError(b, s.Close())
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100_000, "µs/event")
}
