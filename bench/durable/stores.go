package main

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite"

	"github.com/agentevents/agentevents/bench/internal/appends"
	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/logfile"
)

// stores are the stores that were opened, in a folder.
type stores struct {
	folder  string
	closers []func()
}

func (s *stores) close() {
	for _, c := range s.closers {
		c()
	}
}

func (s *stores) path(name string) string { return filepath.Join(s.folder, name) }

// cells returns a cell for each store. Command bench asks for them by these names.
func (s *stores) cells() []*measure.Cell {
	cell := func(name string, setup func(*measure.Cell) (appends.Append, error)) *measure.Cell {
		return appends.Cell(name, appends.Waiters, setup)
	}
	return []*measure.Cell{
		cell("durable emit", appends.Ours(s.folder, logfile.Options{Sync: logfile.SyncEvery})),
		cell("bare group commit", appends.Bare(s.folder)),
		cell("pebble, Set with Sync", s.pebble),
		cell("bbolt, Batch", s.bbolt),
		cell("SQLite, a transaction for each line", s.sqlite(false)),
		cell("SQLite, a transaction for all who wait", s.sqlite(true)),
		cell("JetStream's file store, sync always", s.jetStream),
		cell("PostgreSQL, a transaction for each line", s.postgres),
	}
}

// key returns the key of the nth line, in the order of bytes.
func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (s *stores) pebble(*measure.Cell) (appends.Append, error) {
	db, err := pebble.Open(s.path("pebble"), &pebble.Options{Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { _ = db.Close() })
	var n atomic.Uint64
	return func(int, int) error { return db.Set(key(n.Add(1)), appends.Line, pebble.Sync) }, nil
}

type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// bbolt appends by Batch, which makes a transaction for all who call it within MaxBatchDelay,
// at most MaxBatchSize. With as many as there are writers no delay is waited for.
func (s *stores) bbolt(*measure.Cell) (appends.Append, error) {
	db, err := bolt.Open(s.path("bbolt"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() { _ = db.Close() })
	db.MaxBatchSize = appends.Waiters
	name := []byte("lines")
	err = db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(name); return err })
	return func(int, int) error {
		return db.Batch(func(tx *bolt.Tx) error {
			b := tx.Bucket(name)
			n, err := b.NextSequence()
			if err != nil {
				return err
			}
			return b.Put(key(n), appends.Line)
		})
	}, err
}

// sqlite appends rows in WAL mode, with an fsync at each commit. There is one
// connection, as SQLite has one writer at a time. A grouped transaction has the lines of all
// who wait, another one has one line.
func (s *stores) sqlite(grouped bool) func(*measure.Cell) (appends.Append, error) {
	return func(*measure.Cell) (appends.Append, error) {
		db, err := sql.Open("sqlite", "file:"+s.path(fmt.Sprintf("sqlite-%t.db", grouped))+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, func() { _ = db.Close() })
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE lines(id INTEGER PRIMARY KEY, line BLOB)"); err != nil {
			return nil, err
		}
		insert, err := db.Prepare("INSERT INTO lines(line) VALUES(?)")
		if err != nil {
			return nil, err
		}
		if !grouped {
			return func(int, int) error { _, err := insert.Exec(appends.Line); return err }, nil
		}
		return appends.Grouped(func(lines [][]byte) error {
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			in := tx.Stmt(insert)
			for _, l := range lines {
				if _, err := in.Exec(l); err != nil {
					return errors.Join(err, tx.Rollback())
				}
			}
			return tx.Commit()
		}), nil
	}
}

// jetStream publishes to a server in this process, over a connection without a network, to
// a stream in files that is synced at each message before its acknowledgement. The CPU time
// has the client's part too.
func (s *stores) jetStream(*measure.Cell) (appends.Append, error) {
	srv, err := server.NewServer(&server.Options{JetStream: true, StoreDir: s.path("jetstream"), SyncAlways: true, DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		return nil, err
	}
	srv.Start()
	s.closers = append(s.closers, func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, conn.Close)
	js, err := conn.JetStream()
	if err != nil {
		return nil, err
	}
	_, err = js.AddStream(&nats.StreamConfig{Name: "lines", Subjects: []string{"lines"}, Storage: nats.FileStorage})
	return func(int, int) error { _, err := js.Publish("lines", appends.Line); return err }, err
}
