package queue

import (
	"slices"
	"sync"
	"time"
)

// How long a temporary error is borne.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
	retryFor     = 30 * time.Second
)

// A Retry repeats an attempt that fails with a temporary error. After 30 seconds of such errors alone, it
// tries nothing again until an attempt ends in another way. One goroutine calls Do; Hurry is for any.
type Retry struct {
	down time.Time // since when all errors are temporary; zero if none is
	stop chan struct{}
	once sync.Once
}

// NewRetry returns a Retry.
func NewRetry() *Retry { return &Retry{stop: make(chan struct{})} }

// Do calls try, and calls it again as long as its error is temporary, the time is not over and
// nobody called Hurry; after Hurry it makes one more try only. It returns the last error. The
// argument of try is the number of tries before.
func (r *Retry) Do(try func(before int) error) error {
	err := try(0)
	for i, pause, last := 1, firstPause, false; !last && Temporary(err); i, pause = i+1, min(2*pause, longestPause) {
		if r.down.IsZero() {
			r.down = time.Now()
		}
		left := retryFor - time.Since(r.down)
		if left <= 0 {
			break
		}
		last = !r.sleep(min(pause, left)) || left <= pause
		err = try(i)
	}
	if !Temporary(err) {
		r.down = time.Time{}
	}
	return err
}

// sleep returns false, at once, when nobody is to wait.
func (r *Retry) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	}
}

// Hurry ends the pause before another try, and all later ones.
func (r *Retry) Hurry() { r.once.Do(func() { close(r.stop) }) }

// Temporary reports whether an error of err's tree has a method Temporary() bool that returns true.
// An error whose methods panic is not temporary.
func Temporary(err error) (is bool) {
	if err == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return anyTemporary(err)
}

func anyTemporary(err error) bool {
	if t, ok := err.(interface{ Temporary() bool }); ok && t.Temporary() {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return anyTemporary(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), anyTemporary)
	}
	return false
}
