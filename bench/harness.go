package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// A cell is one timed operation.
type cell struct {
	name    string
	events  int   // events in one operation; 0 means 1
	bytes   int   // bytes in one operation, to print MB/s; 0 prints none
	wall    bool  // measure wall time, not CPU time
	thread  bool  // measure the CPU time of the loop's thread only
	procs   int   // GOMAXPROCS; 0 means 1
	missing error // why this machine cannot measure the cell, or nil

	// setup returns the loop, which does n operations. It runs once, before the
	// timing.
	setup func() (loop func(n int) error, err error)

	loop func(n int) error
	n    int
	ns   []float64 // per event, one for each round
}

// each makes a loop of a function.
func each(op func() error) func() (func(int) error, error) {
	return func() (func(int) error, error) {
		return func(n int) error {
			for range n {
				if err := op(); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
}

// perCell is about how long a cell runs in one round.
const perCell = 75 * time.Millisecond

// measureAll times the cells in interleaved rounds: A, B, A, B, and so on. Disturbances
// of the machine then affect all cells.
func measureAll(cells []*cell, rounds int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range cells {
		if err := c.prepare(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for range rounds {
		for _, c := range cells {
			if c.missing != nil {
				continue
			}
			took, err := c.run(c.n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.ns = append(c.ns, float64(took.Nanoseconds())/float64(c.n)/float64(max(1, c.events)))
		}
	}
	for _, c := range cells {
		c.loop = nil // frees what the loop holds
	}
	return nil
}

// prepare sets the cell up, warms it up and calibrates its loop.
func (c *cell) prepare() error {
	if c.missing != nil {
		return nil
	}
	loop, err := c.setup()
	if err != nil {
		return err
	}
	c.loop = loop
	for c.n = 1; ; {
		took, err := c.run(c.n)
		if err != nil {
			return err
		}
		if took >= perCell*2/3 || c.n >= 1<<30 {
			return nil
		}
		grow := float64(perCell) / float64(max(took, time.Microsecond))
		c.n = max(c.n+1, int(float64(c.n)*min(grow, 50)))
	}
}

// run times n operations.
func (c *cell) run(n int) (time.Duration, error) {
	runtime.GOMAXPROCS(max(1, c.procs))
	runtime.GC() // the cell pays only for its own garbage
	clock := cpuTime
	switch {
	case c.wall:
		clock = wallTime
	case c.thread:
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock = threadTime
	}
	start := clock()
	err := c.loop(n)
	return clock() - start, err
}

// median returns the cell's figure: nanoseconds per event.
func (c *cell) median() float64 { return median(c.ns) }

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	at := q * float64(len(s)-1)
	i := int(at)
	if i+1 == len(s) {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

var began = time.Now()

func wallTime() time.Duration { return time.Since(began) }

// allocations returns the allocations of one op, averaged over many. Unlike
// testing.AllocsPerRun it keeps the fraction.
func allocations(n int, op func() error) (float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range n/10 + 1 { // make the allocations that happen only once
		if err := op(); err != nil {
			return 0, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := op(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// An overwriter writes the same region of a file again and again. With fresh pages a
// benchmark measures how the machine provides memory.
type overwriter struct {
	f   *os.File
	off int64
}

const region = 4 << 20

// scratch is the folder for the files of this run.
var scratch string

var files int

func newOverwriter() (*overwriter, error) {
	if scratch == "" {
		return nil, errors.New("no scratch folder")
	}
	files++
	f, err := os.Create(filepath.Join(scratch, fmt.Sprint("log-", files)))
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, region)); err != nil {
		return nil, err
	}
	return &overwriter{f: f}, nil
}

func (o *overwriter) Write(p []byte) (int, error) {
	if o.off+int64(len(p)) > region {
		o.off = 0
	}
	n, err := o.f.WriteAt(p, o.off)
	o.off += int64(n)
	return n, err
}
