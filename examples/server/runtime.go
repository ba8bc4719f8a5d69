package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/live"
	"github.com/agentevents/agentevents/resume"
)

// Why a run stops before it has an answer: causes of the end of its context.
var (
	errPaused    = errors.New("paused")
	errCancelled = errors.New("cancelled")
)

// A runtime works on runs.
type runtime struct {
	path  string // the log
	em    *ae.Emitter
	page  *live.Feed // asked for the state of a run
	model model

	ctx  context.Context // of all runs
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu      sync.Mutex     // orders the starts and stops of runs
	running map[string]job // by run id
}

// A job is the work on a run.
type job struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// open reads a log, and goes on with the runs in it that are not finished.
func open(path string, pace time.Duration) (*runtime, error) {
	runs, err := read(path)
	if err != nil {
		return nil, err
	}
	file, err := ae.OpenFile(path, ae.WriterOptions{})
	if err != nil {
		return nil, err
	}
	rt := &runtime{path: path, page: live.New(live.Options{Linger: -1}), model: model{pace}, running: map[string]job{}}
	rt.ctx, rt.stop = context.WithCancelCause(context.Background())
	// A log must not stop an agent, so agents look at no error of recording: these two
	// functions hear of all of them.
	rt.em, err = ae.NewEmitter(ae.EmitterOptions{
		Sinks:       []ae.Sink{ae.BestEffort(file), ae.BestEffort(rt.page)},
		OnError:     func(err error) { slog.Error("recording", "error", err) },
		OnViolation: func(err *ae.RuleError) { slog.Warn("recording", "violation", err) },
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	for s := range runs.Drain() {
		if s.Status.Terminal() { // only to be looked at
			err = errors.Join(err, rt.page.ResumeRun(rt.ctx, s), rt.page.ReleaseRun(rt.ctx, s.RunID))
			continue
		}
		run, resumeErr := rt.em.Resume(s)
		if resumeErr == nil {
			resumeErr = rt.resume(run)
		}
		err = errors.Join(err, resumeErr)
	}
	if err != nil {
		return nil, errors.Join(err, rt.close(context.Background()))
	}
	return rt, nil
}

// read folds a log. It cuts off a last line that a crash has torn.
func read(path string) (*ae.FoldSet, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600) // a log is confidential
	if err != nil {
		return nil, err
	}
	defer file.Close()
	runs, err := ae.FoldLog(ae.NewReader(file, ae.ReaderOptions{}), ae.FoldOptions{})
	var line *ae.LineError
	if errors.As(err, &line) && errors.Is(line, io.ErrUnexpectedEOF) {
		err = os.Truncate(path, line.Offset)
	}
	return runs, err
}

// conversation returns the messages of an agent, as the log has them.
func (rt *runtime) conversation(run, agent string) ([]resume.Message, error) {
	file, err := os.Open(rt.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	messages, err := resume.Conversation(ae.NewReader(file, ae.ReaderOptions{}).All(), run, agent)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // another run is writing the last line
	}
	return finished(messages), err
}

// close pauses all runs and closes the log. The next process goes on with them.
func (rt *runtime) close(ctx context.Context) error {
	rt.mu.Lock()
	rt.stop(errPaused)
	rt.mu.Unlock()
	paused := make(chan struct{})
	go func() { rt.work.Wait(); close(paused) }()
	select {
	case <-paused:
	case <-ctx.Done():
	}
	return rt.em.Close(ctx)
}

// inputs are the inputs of a run.
type inputs struct {
	Task      string  `json:"task"`
	BudgetUSD float64 `json:"budgetUsd"` // 0 means no budget
}

// start begins a run.
func (rt *runtime) start(in inputs) (*ae.Run, error) {
	values, err := ae.ToJSON(in)
	if err != nil {
		return nil, err
	}
	run, err := rt.em.Run("")
	if err != nil {
		return nil, err
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run.Emit(rt.ctx, &ae.RunStarted{Name: "agent", Inputs: values})
	rt.drive(run)
	return run, nil
}

// drive works on a run in a goroutine, until the run ends or is paused. rt.mu is held.
func (rt *runtime) drive(run *ae.Run) {
	if rt.ctx.Err() != nil {
		return // the next process does it
	}
	ctx, cancel := context.WithCancelCause(rt.ctx)
	rt.running[run.ID()] = job{ctx, cancel}
	rt.work.Go(func() {
		defer cancel(nil)
		w := &worker{rt: rt, run: run, cancel: cancel}
		err := json.Unmarshal([]byte(rt.page.Snapshot(run.ID()).Inputs), &w.inputs)
		var answer string
		if err == nil {
			answer, err = w.agent(ctx, run.Agent("main"), w.Task)
		}
		rt.mu.Lock()
		defer rt.mu.Unlock()
		delete(rt.running, run.ID())
		switch {
		case err == nil:
			run.Emit(ctx, &ae.RunCompleted{Outputs: ae.JSONString(answer)})
		case errors.Is(err, errPaused):
			run.Emit(ctx, &ae.RunPaused{})
		default:
			run.Finish(ctx, err)
		}
	})
}

// halt stops the work on a run. A paused run, on which nobody works, can be cancelled, too.
func (rt *runtime) halt(run *ae.Run, why error) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	j, working := rt.running[run.ID()]
	switch {
	case working && j.ctx.Err() == nil:
		j.cancel(why)
		return nil
	case !working && why == errCancelled:
		return run.Emit(rt.ctx, &ae.RunCancelled{})
	}
	return errors.New("the run is not under way, or is about to stop")
}

// resume goes on with a run that is paused, or whose process died. Work that was under way when it
// died is lost: the agents start again and repeat it.
func (rt *runtime) resume(run *ae.Run) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if _, working := rt.running[run.ID()]; working {
		return errors.New("the run is under way")
	}
	if err := run.Emit(rt.ctx, &ae.RunResumed{}); err != nil {
		return err
	}
	s := rt.page.Snapshot(run.ID())
	died := &ae.ToolError{Status: ae.ToolStatusInterrupted, Code: "interrupted", Err: errors.New("the process died")}
	for _, c := range s.OpenCalls {
		run.Agent(c.AgentID).OpenCall(c.CallID).Fail(rt.ctx, died)
	}
	for _, c := range s.OpenModelCalls {
		run.Agent(c.AgentID).OpenModelCall(c.ModelCallID).Fail(rt.ctx, died)
	}
	for _, a := range s.AgentsInOrder() {
		if a.Open {
			ended(rt.ctx, run.Agent(a.AgentID), "", died)
		}
	}
	rt.drive(run)
	return nil
}
