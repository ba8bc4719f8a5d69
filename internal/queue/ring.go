// Package queue has the parts of a buffered delivery that know nothing of events: a ring that grows,
// and the tries after a temporary error.
package queue

// A Ring is a queue whose memory is used again. The zero value is empty. Nothing in it locks.
type Ring[T any] struct {
	items   []T
	head, n int
}

// Len returns the number of items.
func (r *Ring[T]) Len() int { return r.n }

// At returns the i-th item, 0 <= i < Len. The pointer is valid until the next call of another
// method.
func (r *Ring[T]) At(i int) *T { return &r.items[(r.head+i)%len(r.items)] }

// Push adds an item at the end.
func (r *Ring[T]) Push(item T) {
	if r.n == len(r.items) {
		longer := make([]T, max(8, 2*r.n))
		copy(longer[copy(longer, r.items[r.head:]):], r.items[:r.head])
		r.items, r.head = longer, 0
	}
	r.n++
	*r.At(r.n - 1) = item
}

// Pop removes the first item of a ring that is not empty, and drops the ring's reference to it.
func (r *Ring[T]) Pop() T {
	first := r.At(0)
	item := *first
	clear(r.items[r.head : r.head+1])
	r.head = (r.head + 1) % len(r.items)
	r.n--
	return item
}

// Delete removes the i-th item; the others keep their order. It takes time in proportion to i.
func (r *Ring[T]) Delete(i int) {
	for ; i > 0; i-- {
		*r.At(i) = *r.At(i - 1)
	}
	r.Pop()
}

// DeleteFunc removes the items for which del returns true. It calls del once for each item, in
// order.
func (r *Ring[T]) DeleteFunc(del func(*T) bool) {
	kept := 0
	for i := range r.n {
		item := r.At(i)
		if del(item) {
			continue
		}
		if kept < i {
			*r.At(kept) = *item
		}
		kept++
	}
	var zero T
	for i := kept; i < r.n; i++ {
		*r.At(i) = zero
	}
	r.n = kept
}
