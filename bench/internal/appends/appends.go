// Package appends has cells of goroutines that append to one store, each of which waits
// until its append is on disk.
package appends

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/logfile"
)

// Waiters is how many goroutines append at the same time.
const Waiters = 64

// Line is as long as an event of load T.
var Line = append(make([]byte, 400), '\n')

// An Append appends once. It is told which goroutine calls it, and how often that did.
type Append func(g, i int) error

// Cell is a cell of so many goroutines, on two cores. It counts the CPU time of all of the
// process.
func Cell(name string, goroutines int, setup func(c *measure.Cell) (Append, error)) *measure.Cell {
	return &measure.Cell{Name: name, Procs: 2, Setup: func(c *measure.Cell) (func(int) error, error) {
		write, err := setup(c)
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

// Ours is the library: emitters of load T into a log file in the folder.
func Ours(folder string, o logfile.Options) func(*measure.Cell) (Append, error) {
	return func(*measure.Cell) (Append, error) {
		dir, err := os.MkdirTemp(folder, "log-")
		if err != nil {
			return nil, err
		}
		sink, err := logfile.Open(filepath.Join(dir, "log.jsonl"), o)
		if err != nil {
			return nil, err
		}
		return Emit(sink)
	}
}

// path is the statuses of load T: once round the lifecycle.
var path = []ae.AgentStatus{ae.StatusToolCall, ae.StatusToolResult,
	ae.StatusResponse, ae.StatusReflect, ae.StatusThinking, ae.StatusToolCall}

// Emit emits load T to a sink, each goroutine in a run of its own.
func Emit(sink ae.Sink) (Append, error) {
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict, Sinks: []ae.Sink{sink}})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	agents := make([]*ae.Agent, Waiters)
	for g := range agents {
		run, err := em.Run(fmt.Sprint("run-", g))
		if err != nil {
			return nil, err
		}
		agents[g] = run.Agent("coder")
		if err := agents[g].Emit(ctx, &ae.AgentStarted{}); err != nil {
			return nil, err
		}
		if err := agents[g].To(ctx, path[0]); err != nil {
			return nil, err
		}
	}
	var payloads []ae.Payload
	for i := range path[1:] {
		payloads = append(payloads, &ae.AgentTransition{From: path[i], To: path[i+1], Reason: "tool_call:Read"})
	}
	return func(g, i int) error { return agents[g].Emit(ctx, payloads[i%len(payloads)]) }, nil
}

// Bare is nothing but a group commit of lines that are written already.
func Bare(folder string) func(*measure.Cell) (Append, error) {
	return func(*measure.Cell) (Append, error) {
		f, err := os.CreateTemp(folder, "bare-")
		if err != nil {
			return nil, err
		}
		var buf []byte // one commit comes after the other
		return Grouped(func(lines [][]byte) error {
			buf = buf[:0]
			for _, l := range lines {
				buf = append(buf, l...)
			}
			if _, err := f.Write(buf); err != nil {
				return err
			}
			return f.Sync()
		}), nil
	}
}

// Grouped appends Line by commits, each of which has the lines of all who wait.
func Grouped(commit func(lines [][]byte) error) Append {
	g := &group{commit: commit}
	g.committed = sync.NewCond(&g.mu)
	return func(int, int) error { return g.add(Line) }
}

type group struct {
	commit         func(lines [][]byte) error
	mu             sync.Mutex
	committed      *sync.Cond
	waiting, spare [][]byte
	accepted, done int
	busy           bool
	err            error // of a commit; the group is over then
}

func (g *group) add(line []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, line)
	g.accepted++
	for mine := g.accepted; g.done < mine && g.err == nil; {
		if g.busy {
			g.committed.Wait()
			continue
		}
		g.busy = true
		lines, upTo := g.waiting, g.accepted
		g.waiting = g.spare[:0]
		g.mu.Unlock()
		err := g.commit(lines)
		g.mu.Lock()
		g.spare, g.busy = lines, false
		g.err, g.done = err, upTo
		g.committed.Broadcast()
	}
	return g.err
}
