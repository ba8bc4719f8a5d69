package logfile

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/eventtest"
)

func TestConforms(t *testing.T) {
	except := map[string][]string{"a buffer": {"Commit"}} // without syncs Commit writes nothing
	for name, o := range map[string]Options{
		"zero":               {},
		"every event":        {Sync: SyncEvery},
		"ends":               {Sync: SyncEnds, Buffer: 1 << 10},
		"a buffer":           {Sync: SyncNone, Buffer: 1 << 20},
		"segments":           {MaxBytes: 4 << 10},
		"compressed, chains": {MaxBytes: 4 << 10, Compress: true, Chain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var path string
			eventtest.SinkTest{
				New: func(t testing.TB) ae.Sink {
					path = filepath.Join(t.TempDir(), "log")
					return opened(t, path, o)
				},
				Events: func(t testing.TB, _ ae.Sink) []ae.Event {
					r, err := NewReader(path, ReaderOptions{})
					require.NoError(t, err)
					defer r.Close()
					return eventtest.ReadLog(t, r, ae.ReaderOptions{}).Events()
				},
				Except: except[name],
				Broken: func(t testing.TB) ae.Sink {
					d := newFaults()
					d.fail = func(_ int, call string) error {
						if call == "write log" {
							return errors.New("the disk is full")
						}
						return nil
					}
					o := o
					o.fs = d
					return opened(t, filepath.Join(t.TempDir(), "log"), o)
				},
			}.Run(t)
		})
	}
}

func TestALogThatWasNotOpened(t *testing.T) {
	t.Parallel()
	for _, l := range []*Log{nil, {}} {
		_, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{l}})
		require.ErrorContains(t, err, "it comes from logfile.Open")
		require.ErrorContains(t, l.WriteEvent(t.Context(), ae.Event{Payload: &ae.RunStarted{}}), "logfile.Open")
	}
}
