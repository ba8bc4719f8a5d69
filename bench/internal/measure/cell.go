// Package measure times operations by their CPU time in interleaved rounds, in a process
// of their own, and compares the figures. A comparison has an interval, and a verdict only
// where the interval leaves no doubt.
package measure

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// A Cell is one timed operation.
type Cell struct {
	Name   string               // unique in its section
	Events int                  // events in one operation; 0 means 1
	Bytes  int                  // bytes in one operation, to print MB/s; 0 prints none
	Clock  func() time.Duration // nil means ProcessTime
	Thread bool                 // count the CPU time of the loop's thread only
	Procs  int                  // GOMAXPROCS; 0 means 1

	// Cold leaves out the untimed operations before each round, for cells whose operations are
	// long. Without them the first of two same cells costs up to 5 % more, as another cell
	// has used the caches and the collector's memory before it.
	Cold bool

	// Control marks an operation without any code of the library and without a disk. Between
	// two commits of the library its figure does not change.
	Control bool

	// Setup returns the loop, which does n operations. It runs once, before the timing,
	// and may set Events, Bytes and Clock of the cell. A machine that cannot measure the cell
	// returns a Missing.
	Setup func(c *Cell) (loop func(n int) error, err error)

	loop func(n int) error
}

// Missing is the reason why this machine cannot measure a cell.
type Missing string

func (m Missing) Error() string { return string(m) }

// Each makes the setup of a cell from its operation.
func Each(op func() error) func(*Cell) (func(int) error, error) {
	return func(*Cell) (func(int) error, error) { return Repeat(op), nil }
}

// Repeat returns a loop of an operation.
func Repeat(op func() error) func(n int) error {
	return func(n int) error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	}
}

// A Series has the figures of a cell.
type Series struct {
	Name    string
	N       int // operations in one round
	Events  int
	Bytes   int
	CPU     []float64 // nanoseconds of each event, one for each round
	Wall    []float64 // likewise, of wall time
	Missing string    // why there are no figures, or empty
}

// perRound is about how much CPU time a cell uses in one round.
const perRound = 50 * time.Millisecond

// Cells times the cells in interleaved rounds: A, B, A, B, and so on. A disturbance of the
// machine then affects all of them. The number of operations of a round is taken from n, by
// the name of the cell; a cell that is not in n is calibrated.
func Cells(cells []*Cell, rounds int, n map[string]int) ([]Series, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	out := make([]Series, len(cells))
	for i, c := range cells {
		s := &out[i]
		s.Name = c.Name
		var err error
		if s.N, err = c.prepare(n[c.Name]); err != nil {
			var missing Missing
			if !errors.As(err, &missing) {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			s.Missing = string(missing)
		}
		s.Events, s.Bytes = max(1, c.Events), c.Bytes
	}
	for range rounds {
		for i, c := range cells {
			s := &out[i]
			if s.Missing != "" {
				continue
			}
			cpu, wall, err := c.run(s.N)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			events := float64(s.N) * float64(s.Events)
			s.CPU = append(s.CPU, float64(cpu.Nanoseconds())/events)
			s.Wall = append(s.Wall, float64(wall.Nanoseconds())/events)
		}
	}
	for _, c := range cells {
		c.loop = nil // frees its memory
	}
	return out, nil
}

// prepare sets the cell up. It returns the number of operations of a round:
// the given one, or one that takes about perRound.
func (c *Cell) prepare(n int) (int, error) {
	loop, err := c.Setup(c)
	if err != nil {
		return 0, err
	}
	c.loop = loop
	if n > 0 {
		return n, loop((n + 7) / 8) // a cold cell too makes the allocations that happen only once
	}
	for n = 1; ; {
		cpu, wall, err := c.run(n)
		// A cell that mostly waits is limited by its wall time.
		took := max(cpu, wall/8)
		if err != nil || took >= perRound*2/3 || n >= 1<<30 {
			return n, err
		}
		grow := float64(perRound) / float64(max(took, time.Microsecond))
		n = max(n+1, int(float64(n)*min(grow, 50)))
	}
}

// run times n operations.
func (c *Cell) run(n int) (cpu, wall time.Duration, err error) {
	runtime.GOMAXPROCS(max(1, c.Procs))
	if !c.Cold {
		if err := c.loop((n + 7) / 8); err != nil {
			return 0, 0, err
		}
	}
	runtime.GC() // the cell pays only for its own garbage
	clock := c.Clock
	switch {
	case c.Thread:
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock = ThreadTime
	case clock == nil:
		clock = ProcessTime
	}
	wall, cpu = wallTime(), clock()
	err = c.loop(n)
	return clock() - cpu, wallTime() - wall, err
}

var began = time.Now()

func wallTime() time.Duration { return time.Since(began) }
