package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/measure"
	"github.com/agentevents/agentevents/internal/scale"
)

// S1 compares one of many things with one of few.
const (
	few  = 1_000
	many = 100_000
)

// growSections compare logs of many things with logs of few. Its logs are large, so each
// row is a section of its own.
func growSections() []section {
	var out []section
	for _, shape := range scale.Shapes() {
		for _, w := range scaleWork {
			if w.accepted && shape.Refused {
				continue
			}
			out = append(out, grow(shape.Name+": "+w.name, atMost(3),
				func(n int) (func() error, error) { return w.prepare(shape.Log(n)) }))
		}
	}
	return append(out, grow("a map of agents, for comparison", bar{}, mapOfAgents))
}

// memorySection counts the memory that a run costs after its end.
func memorySection() []comparison {
	return []comparison{
		{goal: "S2", what: "memory of FoldLog per ended run of one event", direct: foldMemory},
		{goal: "S2", what: "peak memory of the command's check, likewise", direct: commandMemory("check")},
		{goal: "S2", what: "peak memory of the command's tree, likewise", direct: commandMemory("tree")},
	}
}

// scaleWork are the uses of a log in S1.
var scaleWork = []struct {
	name     string
	accepted bool // by an emitter
	prepare  func(log []byte) (func() error, error)
}{
	{"FoldLog", false, func(log []byte) (func() error, error) {
		return func() error { _, err := foldLog(log); return err }, nil
	}},
	{"Reader.All, FoldSet.Apply", false, func(log []byte) (func() error, error) {
		return func() error {
			folded := ae.NewFoldSet(ae.FoldOptions{KeepCalls: -1, MaxViolations: -1})
			for ev, err := range readLog(log) {
				if err != nil {
					return err
				}
				folded.Apply(ev)
			}
			return nil
		}, nil
	}},
	{"Emit", true, func(log []byte) (func() error, error) {
		var events []ae.Event
		for ev, err := range readLog(log) {
			if err != nil {
				return nil, err
			}
			events = append(events, ev)
		}
		return func() error { return emitAll(events) }, nil
	}},
}

// emitAll records events of any runs.
func emitAll(events []ae.Event) error {
	ctx := context.Background()
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleStrict,
		Sinks: []ae.Sink{ae.NewWriter(io.Discard, ae.WriterOptions{})}})
	if err != nil {
		return err
	}
	runs := map[string]*ae.Run{}
	for i := range events {
		run := runs[events[i].RunID]
		if run == nil {
			if run, err = em.Run(events[i].RunID); err != nil {
				return err
			}
			runs[events[i].RunID] = run
		}
		if _, err := run.Record(ctx, events[i]); err != nil {
			return err
		}
	}
	return em.Close(ctx)
}

func mapOfAgents(n int) (func() error, error) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("a", i)
	}
	return func() error {
		agents := map[string]*int{}
		for _, id := range ids {
			agents[id] = new(int)
		}
		if len(agents) < n {
			return errors.New("an agent is missing")
		}
		return nil
	}, nil
}

// grow makes the section of a row of S1.
func grow(what string, b bar, prepare func(n int) (func() error, error)) section {
	at := func(n int) *cell {
		setup := func(*cell) (func(int) error, error) {
			op, err := prepare(n)
			return measure.Repeat(op), err
		}
		return &cell{Name: fmt.Sprintf("%s, %d", what, n), Events: n, Cold: true, Setup: setup}
	}
	return section{name: "growing, " + what, once: true, comparisons: func() []comparison {
		return []comparison{versus("S1", what, b, at(many), at(few))}
	}}
}

const endedRuns = 200_000

// endedLog is a log of runs that end with their only event.
func endedLog(n int) []byte {
	shapes := scale.Shapes()
	return shapes[slices.IndexFunc(shapes, func(s scale.Shape) bool { return s.Name == "ended runs" })].Log(n)
}

func memoryRow(perRun float64) row { return limitRow(perRun, 1000, "%.0f B") }

func foldMemory() (row, error) {
	log := endedLog(endedRuns)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	folded, err := ae.FoldLog(ae.NewReader(bytes.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{})
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(folded)
	runtime.KeepAlive(log) // so that its own memory is on both sides
	return memoryRow(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / endedRuns), err
}

// commandMemory measures the peak of a process, less the peak of one with a single run.
func commandMemory(name string) func() (row, error) {
	return func() (row, error) {
		bin, err := command()
		if err != nil {
			return row{}, err
		}
		var peaks [2]float64
		for i, n := range [...]int{1, endedRuns} {
			log := filepath.Join(scratch, "ended.jsonl")
			if err := os.WriteFile(log, endedLog(n), 0o644); err != nil {
				return row{}, err
			}
			if peaks[i], err = peakOf(exec.Command(bin, name, log)); err != nil {
				return row{}, err
			}
		}
		return memoryRow((peaks[1] - peaks[0]) / endedRuns), nil
	}
}

// peakOf runs a process and returns its largest memory, in bytes. It samples while the process
// runs, because the system's figure after the end includes this process, of which the new one is a
// copy at first.
func peakOf(cmd *exec.Cmd) (float64, error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peak := 0.0
	for {
		select {
		case err := <-done:
			return peak * 1024, err
		case <-time.After(2 * time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)) // gone when it has ended
			if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
				fmt.Sscan(text, &peak)
			}
		}
	}
}
