package runstore_test

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/runstoretest"
)

func TestMemory(t *testing.T) {
	f := runstoretest.Features{
		Open: func(testing.TB) runstore.Store { return new(runstore.Memory) },
	}
	runstoretest.Run(t, f)
	runstoretest.Claims(t, f)
}

// The file store keeps its promises under every policy of the log.
func TestFile(t *testing.T) {
	for name, o := range map[string]*logfile.Options{
		"default":      nil,
		"small chunks": {Sync: logfile.SyncEvery, MaxBytes: 700, Compress: true, Chain: true},
		"buffered":     {Buffer: 1 << 20},
		"no sync":      {Sync: logfile.SyncNone},
		"ends":         {Sync: logfile.SyncEnds, MaxBytes: 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := func(t testing.TB, dir string) runstore.Store {
				o := runstore.Options{Log: o, OnError: func(err error) { t.Error(err) }}
				if name != "default" {
					o = o.SaveIndexAlways()
				}
				s, err := runstore.Open(dir, o)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, s.Close()) })
				return s
			}
			var dir string
			f := runstoretest.Features{
				Open: func(t testing.TB) runstore.Store {
					dir = filepath.Join(t.TempDir(), "store")
					return open(t, dir)
				},
				Reopen: func(t testing.TB, s runstore.Store) runstore.Store {
					require.NoError(t, s.(io.Closer).Close())
					return open(t, dir)
				},
			}
			runstoretest.Run(t, f)
			if name == "default" { // claims do not depend on the policy
				runstoretest.Claims(t, f)
			}
		})
	}
}
