package agentevents

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
)

// ErrReentrant means that a sink, with the context it was given, called
// something that waits for that sink: an event of the run it is called for,
// Flush or Close of the emitter or buffer it belongs to, or an event of a run
// whose sink is waiting for this one. Nothing was done.
var ErrReentrant = errors.New("agentevents: called from a sink that the call would wait for")

// A sinkCall is the context that a sink, tracer or committer gets. It has the
// values of the caller's context and is never cancelled. It says what the
// goroutine of the call holds, so that a call back that would wait for itself is
// found.
//
// A sinkCall does not change, so a sink may keep it. A run makes one when the
// context of its events changes, and not for every event.
type sinkCall struct {
	context.Context
	from   context.Context // the caller's, to know it again; or nil
	e      *Emitter        // whose sink is called, if it is known
	holds  *holder         // or nil
	outer  *sinkCall       // the call during which this one is made; or nil
	commit *sinkCall       // the same for Commit, where the run's lock is not held
}

// A holder is what a goroutine has for itself while it calls a sink: the lock of
// a run, or the delivering end of a buffer.
type holder struct {
	waits atomic.Pointer[holder] // what the goroutine waits for
}

type sinkCallKey struct{}

// orBackground returns ctx, or what stands for a nil one.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// callOf returns the call that ctx is of or derives from, or nil.
func callOf(ctx context.Context) *sinkCall {
	c, _ := ctx.Value(sinkCallKey{}).(*sinkCall)
	return c
}

func newCall(ctx context.Context, e *Emitter, holds *holder, outer *sinkCall) *sinkCall {
	c := &sinkCall{Context: ctx, e: e, holds: holds, outer: outer}
	// Contexts of other types may not be comparable.
	if reflect.TypeOf(ctx).Kind() == reflect.Pointer || ctx == context.Background() || ctx == context.TODO() {
		c.from = ctx
	}
	if inner, ok := ctx.(*sinkCall); ok {
		c.Context = inner.Context // or contexts would grow when one event leads to the next
	} else if ctx.Done() != nil {
		c.Context = context.WithoutCancel(ctx)
	}
	return c
}

// Value returns the call itself for the package's own key.
func (c *sinkCall) Value(key any) any {
	if key == (sinkCallKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// of reports whether c was made of ctx, which is not nil.
func (c *sinkCall) of(ctx context.Context) bool { return c != nil && c.from == ctx }

// inside reports whether the call is made by a sink of e.
func (c *sinkCall) inside(e *Emitter) bool {
	for ; c != nil; c = c.outer {
		if c.e == e {
			return true
		}
	}
	return false
}

// holding reports whether the goroutine of the call holds h.
func (c *sinkCall) holding(h *holder) bool {
	for ; c != nil; c = c.outer {
		if c.holds == h {
			return true
		}
	}
	return false
}

// waitsFor notes what the goroutine of the call waits for.
func (c *sinkCall) waitsFor(h *holder) {
	for ; c != nil; c = c.outer {
		if c.holds != nil {
			c.holds.waits.Store(h)
		}
	}
}

// await notes that the goroutine of the call is going to wait for h. It returns
// false when that would be for ever: h is held by the goroutine itself, or by
// one that waits for it. Of two goroutines that find each other, one or both
// are told so, as each notes before it looks.
func (c *sinkCall) await(h *holder) bool {
	c.waitsFor(h)
	for n := 0; c != nil && h != nil && n < maxWaiting; n++ {
		if c.holding(h) {
			c.waitsFor(nil)
			return false
		}
		h = h.waits.Load()
	}
	return true
}

// maxWaiting bounds the goroutines that await looks at: they may be about to
// find that they wait for each other.
const maxWaiting = 1000
