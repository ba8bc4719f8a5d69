package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// nodes are the steps of a run.
var nodes = []string{"plan", "read", "write", "check"}

// work claims runs and works on them until all of them have ended.
func work(ctx context.Context, o options, out io.Writer) (err error) {
	store, end, err := open(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	worker, err := runstore.NewWorker(store, o.worker, o.lease)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Close()) }()
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(worker)}})
	if err != nil {
		return err
	}
	s := &shift{options: o, worker: worker, em: em, out: out, free: make(chan bool, o.most), failed: make(chan error, 1)}
	err = s.all(ctx)
	s.busy.Wait()
	return errors.Join(err, em.Close(ctx))
}

// A shift is the work of one process.
type shift struct {
	options
	worker *runstore.Worker
	em     *ae.Emitter
	out    io.Writer
	free   chan bool // who fills it works on a run
	busy   sync.WaitGroup
	ended  sync.Map // the ids of runs that have ended
	failed chan error
}

// all claims the runs, again and again, until all have ended.
func (s *shift) all(ctx context.Context) error {
	for left := true; left; {
		left = false
		for i := range s.runs {
			id := fmt.Sprintf("run-%03d", i)
			if _, ended := s.ended.Load(id); ended {
				continue
			}
			left = true
			s.free <- true
			s.busy.Go(func() {
				s.fail(s.try(ctx, id))
				<-s.free
			})
		}
		select {
		case err := <-s.failed:
			return err
		case <-time.After(s.lease / 20):
		}
	}
	return nil
}

// try works on a run if this worker gets it.
func (s *shift) try(ctx context.Context, id string) error {
	at, err := s.worker.Claim(ctx, id)
	if errors.Is(err, runstore.ErrEnded) {
		s.ended.Store(id, true)
		return nil
	}
	if err != nil {
		return err
	}
	return s.one(at, id)
}

// fail keeps the first error. A run that belongs to another worker is none.
func (s *shift) fail(err error) {
	if err != nil && !errors.Is(err, runstore.ErrClaimed) {
		select {
		case s.failed <- err:
		default:
		}
	}
}

// one begins a run or goes on with it. ctx ends if the run is lost.
func (s *shift) one(ctx context.Context, id string) error {
	run, done, err := begin(ctx, s.worker, s.em, id, s.out)
	if err == nil {
		err = steps(ctx, run, done, func(node string) {
			fmt.Fprintln(s.out, id, node)
			select {
			case <-ctx.Done():
			case <-time.After(s.pace):
			}
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, s.worker.Release(ctx, id))
}

// begin returns a run, and the status of the nodes that it has worked on before.
func begin(ctx context.Context, store runstore.Store, em *ae.Emitter,
	id string, out io.Writer) (*ae.Run, map[string]ae.NodeStatus, error) {
	restored, err := runstore.Restore(ctx, store, id, ae.FoldOptions{})
	if errors.Is(err, runstore.ErrNoRun) {
		run, err := em.Run(id)
		if err == nil {
			err = run.Emit(ctx, &ae.RunStarted{Name: "report"})
		}
		return run, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	run, err := em.Resume(restored.Snapshot)
	if err == nil {
		err = run.Emit(ctx, &ae.RunResumed{})
		fmt.Fprintln(out, id, "goes on")
	}
	return run, restored.Snapshot.NodeStatus, err
}

// steps works on the nodes that are not done. middle is called in the middle of each.
func steps(ctx context.Context, run *ae.Run, status map[string]ae.NodeStatus, middle func(node string)) error {
	for _, node := range nodes {
		if status[node] == ae.NodeStatusDone {
			continue
		}
		at := run.With(ae.Scope{NodeID: node, NodeRunID: node + "-1"})
		if err := at.Emit(ctx, &ae.NodeStarted{}); err != nil {
			return err
		}
		middle(node)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := at.Emit(ctx, &ae.NodeCompleted{Outputs: ae.JSONString(node + " of " + run.ID())}); err != nil {
			return err
		}
	}
	return run.Emit(ctx, &ae.RunCompleted{})
}
