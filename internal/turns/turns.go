// Package turns makes calls that may hang, one after the other, and waits for each no
// longer than a context allows.
package turns

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// LastChance is how long a call is waited for when the context ended before it began.
const LastChance = time.Second

// ErrGoexit is the error of a call that ended the goroutine it was made on.
var ErrGoexit = errors.New("the sink ended the goroutine (runtime.Goexit, as FailNow of a test does)")

// Turns are the calls of one callee.
type Turns struct {
	busy  chan struct{} // holds a token while a call goes on; guards the rest
	ended bool          // Last was called
	late  error         // of a call that nobody waited for
}

// New returns turns that nobody takes.
func New() *Turns { return &Turns{busy: make(chan struct{}, 1)} }

// Next calls f, unless Last did so before, and returns its error. When the context ends first, f
// goes on by itself: the next call waits for it before its own f, so that a callee that hangs holds
// one goroutine. It returns the error of both, unless that is the one of the context. The argument
// what names the call in the error for an unfinished one.
func (t *Turns) Next(ctx context.Context, what string, f func(context.Context) error) (finished bool, err error) {
	waiting, cancel := Grace(ctx)
	defer cancel()
	unfinished := func() (bool, error) { return false, fmt.Errorf("%s did not finish: %w", what, ctx.Err()) }
	select {
	case t.busy <- struct{}{}:
	case <-waiting.Done():
		return unfinished()
	}
	run := func() error {
		late := t.late
		t.late = nil
		if t.ended {
			return late
		}
		return errors.Join(late, f(waiting))
	}
	if waiting.Done() == nil {
		defer func() { <-t.busy }()
		return true, run()
	}
	done := make(chan error)
	go func() {
		err := ErrGoexit
		defer func() {
			select {
			case done <- err:
			case <-waiting.Done():
				if !errors.Is(err, waiting.Err()) {
					t.late = err
				}
			}
			<-t.busy
		}()
		err = run()
	}()
	select {
	case err := <-done:
		return true, err
	case <-waiting.Done():
		return unfinished()
	}
}

// Last is Next for the last call.
func (t *Turns) Last(ctx context.Context, what string, f func(context.Context) error) (finished bool, err error) {
	return t.Next(ctx, what, func(ctx context.Context) error {
		t.ended = true
		return f(ctx)
	})
}

// Grace returns a context to wait with: ctx, or one that ends after LastChance when
// ctx has ended already.
func Grace(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), LastChance)
}
