// Package recent has the memory of readers and writers, which is bounded.
package recent

import (
	"iter"
	"maps"
)

// Max bounds the memory that a reader or a writer has of a log, which may begin any number of
// things that never end: the latest Max entries of a [Map] are surely known, and it
// holds at most twice as many.
const Max = 1 << 14

// A Map is a map that forgets its oldest entries. Keys must not be parts of lines. The zero
// Map is empty.
type Map[K comparable, V any] struct{ young, old map[K]V }

// Get returns the value of a key, and whether there is one.
func (r *Map[K, V]) Get(k K) (v V, ok bool) {
	if v, ok = r.young[k]; !ok {
		v, ok = r.old[k]
	}
	return v, ok
}

// Use is Get for an entry that is in use: it becomes the latest one.
func (r *Map[K, V]) Use(k K) (v V, ok bool) {
	if v, ok = r.young[k]; ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		r.Set(k, v)
	}
	return v, ok
}

// Of returns the value of a key, or the zero value.
func (r *Map[K, V]) Of(k K) V {
	v, _ := r.Get(k)
	return v
}

// Set makes an entry the latest one.
func (r *Map[K, V]) Set(k K, v V) {
	if _, known := r.young[k]; !known && len(r.young) >= Max {
		r.young, r.old = r.old, r.young
		clear(r.young)
	}
	if r.young == nil {
		r.young = map[K]V{}
	}
	delete(r.old, k) // an old value must not come back
	r.young[k] = v
}

// Delete removes an entry.
func (r *Map[K, V]) Delete(k K) {
	delete(r.young, k)
	delete(r.old, k)
}

// Clear removes all entries, and keeps the memory for others.
func (r *Map[K, V]) Clear() {
	clear(r.young)
	clear(r.old)
}

// Len returns the number of entries.
func (r *Map[K, V]) Len() int { return len(r.young) + len(r.old) }

// All yields the entries, whose values may be set meanwhile.
func (r *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, m := range [...]map[K]V{maps.Clone(r.young), maps.Clone(r.old)} {
			for k, v := range m {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
