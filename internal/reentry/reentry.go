// Package reentry finds calls that would wait for themselves: a callback calls a function that
// waits until the callback returns. It recognises them by the context that a callback gets and
// passes on.
package reentry

import (
	"context"
	"reflect"
	"sync/atomic"
)

// A Call is the context that a callback gets. It has the values of the caller's context and is
// never cancelled. It knows the holders of the call's goroutine.
//
// A Call does not change, so a callback may keep it.
type Call struct {
	context.Context
	// Unheld is the same call without a holder, if its maker needs one too.
	Unheld *Call

	from  context.Context // the caller's, to know it again; or nil
	owner any             // whose callback is called, if it is known
	holds *Holder         // or nil
	outer *Call           // the call during which this one is made; or nil
}

// A Holder is a resource that a goroutine holds while it calls back, such as a lock.
type Holder struct {
	waits atomic.Pointer[Holder] // the holder that the goroutine waits for
}

type callKey struct{}

// Of returns the call that ctx is or derives from, or nil.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// New returns a call of a callback of owner, made with ctx and during the call outer
// by a goroutine that holds a Holder; each but ctx may be nil.
func New(ctx context.Context, owner any, holds *Holder, outer *Call) *Call {
	c := &Call{Context: ctx, owner: owner, holds: holds, outer: outer}
	// Contexts of other types may not be comparable.
	if reflect.TypeOf(ctx).Kind() == reflect.Pointer || ctx == context.Background() || ctx == context.TODO() {
		c.from = ctx
	}
	if inner, ok := ctx.(*Call); ok {
		c.Context = inner.Context // or contexts would grow when one call leads to the next
	} else if ctx.Done() != nil {
		c.Context = context.WithoutCancel(ctx)
	}
	return c
}

// Value returns the call itself for the package's own key.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// MadeOf reports whether c, which may be nil, was made of ctx.
func (c *Call) MadeOf(ctx context.Context) bool { return c != nil && c.from == ctx }

// Outer returns the call during which c is made, or nil.
func (c *Call) Outer() *Call { return c.outer }

// Owner returns whose callback is called. A nil call has no owner.
func (c *Call) Owner() any {
	if c == nil {
		return nil
	}
	return c.owner
}

// Inside reports whether the call is made by a callback of owner.
func (c *Call) Inside(owner any) bool {
	for ; c != nil; c = c.outer {
		if c.owner == owner {
			return true
		}
	}
	return false
}

// holding reports whether the goroutine of the call holds h.
func (c *Call) holding(h *Holder) bool {
	for ; c != nil; c = c.outer {
		if c.holds == h {
			return true
		}
	}
	return false
}

// waitsFor notes the holder that the goroutine of the call waits for.
func (c *Call) waitsFor(h *Holder) {
	for ; c != nil; c = c.outer {
		if c.holds != nil {
			c.holds.waits.Store(h)
		}
	}
}

// Await notes that the goroutine of the call, which may be nil, is going to wait for
// h. It returns false when that would be for ever: h is held by the goroutine itself,
// or by one that waits for it. Of two goroutines that find each other, one or both
// are told so, as each notes before it looks. After the wait comes Waited.
func (c *Call) Await(h *Holder) bool {
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

// Waited notes that the goroutine of the call waits no longer.
func (c *Call) Waited() { c.waitsFor(nil) }

// maxWaiting bounds the goroutines that Await looks at: they may be about to find
// that they wait for each other.
const maxWaiting = 1000
