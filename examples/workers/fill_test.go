//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// BenchmarkFill fills each store with runs, and reports the figures of docs/scale.md:
//
//	AGENTEVENTS_FILL_RUNS=100000 AGENTEVENTS_FILL_EVENTS=5 AGENTEVENTS_FILL_BATCH=5 go test -run '^$' -bench Fill -benchtime 1x
//
// A run has so many events, which are appended so many at a time. 64 runs are written at the same
// time, and each append is committed.
func BenchmarkFill(b *testing.B) {
	runs, events, batch := setting("RUNS", 100), setting("EVENTS", 20), setting("BATCH", 1)
	for name, address := range stores {
		b.Run(name, func(b *testing.B) {
			at := address(b)
			store, end, err := open(b.Context(), at)
			require.NoError(b, err)
			before := size(b, at)
			began := time.Now()
			for b.Loop() {
				fill(b, store, runs, events, batch)
			}
			took := time.Since(began).Seconds()
			b.ReportMetric(float64(runs*events)/took, "events/s")
			b.ReportMetric(float64(runs*(events/batch))/took, "appends/s")
			b.ReportMetric(float64(size(b, at)-before)/float64(runs*events), "bytes/event")
			list(b, store, runs)
			require.NoError(b, end())
			began = time.Now()
			_, end, err = open(b.Context(), at)
			require.NoError(b, err)
			b.ReportMetric(time.Since(began).Seconds(), "s/open")
			require.NoError(b, end())
		})
	}
}

func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv("AGENTEVENTS_FILL_" + name)); err == nil {
		return n
	}
	return usual
}

// fill writes the runs.
func fill(b *testing.B, store runstore.Store, runs, events, batch int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(runs); i = next.Add(1) - 1 {
				id := fmt.Sprintf("018f3a2b-%012d", i)
				for seq := 0; seq < events; seq += batch {
					entries := make([]runstore.Entry, min(batch, events-seq))
					for j := range entries {
						entries[j] = event(b, id, seq+j, seq+j == events-1)
					}
					if err := store.Append(b.Context(), id, uint64(seq), entries...); err != nil {
						b.Error(err)
						return
					}
					if err := store.Commit(b.Context()); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

// event returns an event of a run: calls of tools, with arguments and results as coding agents have
// them.
func event(b *testing.B, id string, seq int, last bool) runstore.Entry {
	call := fmt.Sprintf("call-%d", seq/2)
	var p ae.Payload = &ae.ToolCalled{CallID: call, ToolID: "read_file", Arguments: ae.JSON(`{"path":"internal/server/handler.go","offset":120,"limit":80}`)}
	switch {
	case seq == 0:
		p = &ae.RunStarted{Name: "fill"}
	case last:
		p = &ae.RunCompleted{}
	case seq%2 == 1:
		p = &ae.ToolReturned{CallID: call, ToolID: "read_file", Status: ae.ToolStatusOK, Result: ae.JSONString(strings.Repeat("func handle(w http.ResponseWriter) ", 12))}
	}
	e, err := runstore.NewEntry(ae.Event{ID: fmt.Sprintf("%s-%06d", id, seq), RunID: id, Sequence: uint64(seq), AgentID: "coder", Time: time.Date(2026, 5, 5, 9, 0, seq, 0, time.UTC), SchemaVersion: ae.SchemaVersion, Payload: p})
	if err != nil {
		b.Error(err)
	}
	return e
}

// list reads the list of runs: its first page of 100, and all of it.
func list(b *testing.B, store runstore.Store, runs int) {
	began, n := time.Now(), 0
	for _, err := range store.Runs(b.Context(), "") {
		require.NoError(b, err)
		if n++; n == 100 {
			b.ReportMetric(time.Since(began).Seconds(), "s/page")
		}
	}
	require.Equal(b, runs, n)
	b.ReportMetric(time.Since(began).Seconds(), "s/list")
}

// size returns the bytes that a store has on its disk.
func size(b *testing.B, address string) int64 {
	switch {
	case strings.HasPrefix(address, "postgres:"):
		db, err := sql.Open("pgx", address)
		require.NoError(b, err)
		defer db.Close()
		var n int64
		require.NoError(b, db.QueryRow("SELECT pg_database_size(current_database())").Scan(&n))
		return n
	case strings.HasPrefix(address, "nats:"):
		nc, err := nats.Connect(address)
		require.NoError(b, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(b, err)
		info, err := js.AccountInfo(b.Context())
		require.NoError(b, err)
		return int64(info.Store)
	}
	n := int64(0)
	_ = filepath.WalkDir(address, func(path string, d fs.DirEntry, err error) error {
		if info, statErr := d.Info(); err == nil && statErr == nil && !d.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}
