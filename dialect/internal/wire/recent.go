package wire

import (
	"iter"
	"maps"

	"github.com/agentevents/agentevents/dialect"
)

// MaxRecent bounds the memory of a reader or writer, because a log may begin any number of things
// that never end. A [Recent] has at least the latest MaxRecent entries, and at most twice as many.
const MaxRecent = dialect.MaxCalls

// A Recent is a map that forgets its oldest entries. Keys must not be parts of lines. The zero
// Recent is empty.
type Recent[K comparable, V any] struct{ young, old map[K]V }

// Get returns the value of a key, and whether there is one.
func (r *Recent[K, V]) Get(k K) (v V, ok bool) {
	if v, ok = r.young[k]; !ok {
		v, ok = r.old[k]
	}
	return v, ok
}

// Of returns the value of a key, or the zero value.
func (r *Recent[K, V]) Of(k K) V {
	v, _ := r.Get(k)
	return v
}

// Set makes an entry the latest one.
func (r *Recent[K, V]) Set(k K, v V) {
	if _, known := r.young[k]; !known && len(r.young) >= MaxRecent {
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
func (r *Recent[K, V]) Delete(k K) {
	delete(r.young, k)
	delete(r.old, k)
}

// Len returns the number of entries.
func (r *Recent[K, V]) Len() int { return len(r.young) + len(r.old) }

// All yields the entries, whose values may be set meanwhile.
func (r *Recent[K, V]) All() iter.Seq2[K, V] {
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

// Limited appends v to a list of things that are looked for one by one. A list of maxListed
// forgets its older half.
func Limited[T any](list []T, v T) []T {
	if len(list) >= maxListed {
		list = append(list[:0], list[maxListed/2:]...)
	}
	return append(list, v)
}

const maxListed = 1 << 10
