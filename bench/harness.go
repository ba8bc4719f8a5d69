package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/agentevents/agentevents/bench/internal/measure"
)

type cell = measure.Cell

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

// scratch is the folder for the files of this process.
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
