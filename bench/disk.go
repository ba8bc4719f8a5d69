package main

import (
	"os"
	"path/filepath"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/appends"
	"github.com/agentevents/agentevents/logfile"
)

// diskSection compares events that are on disk before Emit returns with an fsync for each
// line and with nothing but a group commit of lines that are written already (M7). CPU time
// is judged. The wall time, most of which is the disk's, is for information.
func diskSection() []comparison {
	each := appends.Cell("fsync per event", 1, func(*cell) (appends.Append, error) {
		f, err := os.Create(filepath.Join(scratch, "each"))
		return func(int, int) error {
			if _, err := f.Write(appends.Line); err != nil {
				return err
			}
			return f.Sync()
		}, err
	})
	var (
		bare = appends.Cell("bare group commit", appends.Waiters, appends.Bare(scratch))
		ours = appends.Cell("durable emit", appends.Waiters,
			appends.Ours(scratch, logfile.Options{Sync: logfile.SyncEvery}))
		chained = appends.Cell("durable emit, chained", appends.Waiters,
			appends.Ours(scratch, logfile.Options{Sync: logfile.SyncEvery, Chain: true}))
		alone = appends.Cell("durable emit, alone", 1, appends.Ours(scratch, logfile.Options{Sync: logfile.SyncEvery}))
		none  = appends.Cell("emit to a log file, no sync", 1,
			appends.Ours(scratch, logfile.Options{Sync: logfile.SyncNone}))
		writer = appends.Cell("emit to a Writer", 1, func(*cell) (appends.Append, error) {
			sink, err := ae.OpenFile(filepath.Join(scratch, "writer"), ae.WriterOptions{})
			if err != nil {
				return nil, err
			}
			return appends.Emit(sink)
		})
	)
	return []comparison{
		versus("M7", "T on disk, 64 emitters / fsync per event, one goroutine", atLeast(5), ours, each),
		inWallTime("M7", "T on disk, 64 emitters / fsync per event, one goroutine", ours, each),
		versus("M7", "T on disk, 64 emitters / a bare group commit", atLeast(0.5), ours, bare),
		inWallTime("M7", "T on disk, 64 emitters / a bare group commit", ours, bare),
		versus("M7", "T on disk, 64 emitters: chained / not", bar{}, chained, ours),
		versus("M7", "T on disk, one emitter / fsync per event", bar{}, alone, each),
		inWallTime("M7", "T on disk, one emitter / fsync per event", alone, each),
		versus("M7", "T, no sync: log file / Writer", bar{}, none, writer),
	}
}

// durablePeers are the cells of bench/durable.
var durablePeers = []struct {
	name string
	bar  bar
}{
	{"bare group commit", bar{}},
	{"pebble, Set with Sync", atLeast(1)},
	{"bbolt, Batch", atLeast(1)},
	{"SQLite, a transaction for each line", atLeast(1)},
	{"SQLite, a transaction for all who wait", atLeast(1)},
	{"JetStream's file store, sync always", atLeast(1)},
	{"PostgreSQL, a transaction for each line", atLeast(1)},
}

// durableSection is M8: 64 writers that wait until their append is on disk, in the library
// and in stores. The stores keep lines without any check. The program of bench/durable,
// which depends on them, has the cells.
func durableSection() []comparison {
	ours := &cell{Name: "durable emit"}
	var out []comparison
	for _, p := range durablePeers {
		theirs := &cell{Name: p.name}
		what := "T on disk, 64 emitters / 64 writers: " + p.name
		out = append(out, versus("M8", what, p.bar, ours, theirs), inWallTime("M8", what, ours, theirs))
	}
	return out
}
