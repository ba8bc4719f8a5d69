package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
)

const waiters = 64

// diskSection compares events that are on disk before Emit returns with an fsync for each
// line and with nothing but a group commit of lines that are written already (M7). Their
// wall time counts: a disk is waited for.
func diskSection() ([]comparison, error) {
	each := diskCell("fsync per event", 1, func() (func(int, int) error, error) {
		f, err := os.Create(filepath.Join(scratch, "each"))
		return func(int, int) error {
			if _, err := f.Write(diskLine); err != nil {
				return err
			}
			return f.Sync()
		}, err
	})
	bare := diskCell("bare group commit", waiters, func() (func(int, int) error, error) {
		f, err := os.Create(filepath.Join(scratch, "bare"))
		g := &groupCommit{f: f}
		g.synced = sync.NewCond(&g.mu)
		return func(int, int) error { return g.write(diskLine) }, err
	})
	ours := diskCell("durable emit", waiters, durable(logfile.Options{Sync: logfile.SyncEvery}))
	chained := diskCell("durable emit, chained", waiters, durable(logfile.Options{Sync: logfile.SyncEvery, Chain: true}))
	alone := diskCell("durable emit, alone", 1, durable(logfile.Options{Sync: logfile.SyncEvery}))
	none := diskCell("emit to a log file, no sync", 1, durable(logfile.Options{Sync: logfile.SyncNone}))
	writer := diskCell("emit to a Writer", 1, emitting(func() (ae.Sink, error) {
		return ae.OpenFile(filepath.Join(scratch, "writer"), ae.WriterOptions{})
	}))
	return []comparison{
		compare("M7", "T on disk, 64 emitters: fsync per event / ours", atLeast(15), ours, each),
		compare("M7", "T on disk, 64 emitters: a bare group commit / ours", atLeast(0.8), ours, bare),
		compare("M7", "T on disk, 64 emitters: chained / not", bar{}, chained, ours),
		compare("M7", "T on disk, one emitter: ours / fsync per event", bar{}, alone, each),
		compare("M7", "T, no sync: log file / Writer", bar{}, none, writer),
	}, nil
}

// diskLine is as long as an event of load T.
var diskLine = append(make([]byte, 400), '\n')

// diskCell is a cell of so many goroutines. write is told which one calls it, and how
// often that did.
func diskCell(name string, goroutines int, setup func() (write func(g, i int) error, err error)) *cell {
	return &cell{name: name, wall: true, procs: 2, setup: func() (func(int) error, error) {
		write, err := setup()
		if err != nil {
			return nil, err
		}
		done := make([]int, goroutines)
		return func(n int) error {
			errs := make([]error, goroutines)
			var wg sync.WaitGroup
			for g := range goroutines {
				share := n / goroutines
				if g < n%goroutines {
					share++
				}
				wg.Go(func() {
					for range share {
						if errs[g] = write(g, done[g]); errs[g] != nil {
							return
						}
						done[g]++
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

var logs int

// durable emits load T into a log file.
func durable(o logfile.Options) func() (func(g, i int) error, error) {
	return emitting(func() (ae.Sink, error) {
		logs++
		return logfile.Open(filepath.Join(scratch, fmt.Sprint("log-", logs)), o)
	})
}

func emitting(open func() (ae.Sink, error)) func() (func(g, i int) error, error) {
	return func() (func(int, int) error, error) {
		sink, err := open()
		if err != nil {
			return nil, err
		}
		em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{sink}})
		if err != nil {
			return nil, err
		}
		agents := make([]*ae.Agent, waiters)
		for g := range agents {
			if agents[g], err = startAgent(em, fmt.Sprint("run-", g)); err != nil {
				return nil, err
			}
		}
		var payloads []ae.Payload
		for _, l := range loads {
			if l.name == "T" {
				payloads = l.payloads
			}
		}
		return func(g, i int) error { return agents[g].Emit(context.Background(), payloads[i%len(payloads)]) }, nil
	}
}

// A groupCommit writes lines and syncs them for all who wait.
type groupCommit struct {
	f                 *os.File
	mu                sync.Mutex
	synced            *sync.Cond
	buf, spare        []byte
	accepted, durable int
	busy              bool
}

func (g *groupCommit) write(line []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.buf = append(g.buf, line...)
	g.accepted++
	for mine := g.accepted; g.durable < mine; {
		if g.busy {
			g.synced.Wait()
			continue
		}
		g.busy = true
		buf, upTo := g.buf, g.accepted
		g.buf = g.spare[:0]
		g.mu.Unlock()
		_, err := g.f.Write(buf)
		if err == nil {
			err = g.f.Sync()
		}
		g.mu.Lock()
		g.spare, g.busy = buf, false
		if err != nil {
			return err
		}
		g.durable = upTo
		g.synced.Broadcast()
	}
	return nil
}
