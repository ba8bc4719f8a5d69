// Package roster finds items by their keys: the items of a list, and open items.
// Adding, finding and removing an item cost the same however many there are.
package roster

import (
	"iter"
	"slices"
)

// A Roster is a list of members with keys. Find and Take look at the first member
// of a key. The zero Roster is empty, and so is a nil one.
//
// A Roster keeps the keys given to Add. It does not keep a key given to another
// method.
type Roster[K comparable, V any] struct {
	keys  []K
	list  []V
	less  int       // number of empty places
	index *index[K] // nil until a long list is searched
}

// An index has the positions of the members of a long list.
type index[K comparable] struct {
	at   Opens[K] // places by key
	gone []bool   // which places are empty
}

// Few is the length of the longest list that is searched without an index: in a
// short list a search takes less time.
const Few = 16

// Len returns the number of members.
func (r *Roster[K, V]) Len() int {
	if r == nil {
		return 0
	}
	return len(r.list) - r.less
}

// Add adds a member at the end.
func (r *Roster[K, V]) Add(key K, v V) {
	r.keys, r.list = append(r.keys, key), append(r.list, v)
	if x := r.index; x != nil {
		x.gone = append(x.gone, false)
		x.at.Add(key, len(r.list)-1)
	}
}

// Find returns a pointer to the first member of the key, or nil. The pointer is
// valid until the next Add, Take or All.
func (r *Roster[K, V]) Find(key K) *V {
	if i, ok := r.place(key); ok {
		return &r.list[i]
	}
	return nil
}

func (r *Roster[K, V]) place(key K) (int, bool) {
	if r == nil {
		return 0, false
	}
	if r.index == nil {
		if len(r.list) <= Few {
			i := slices.Index(r.keys, key)
			return i, i >= 0
		}
		r.index = &index[K]{gone: make([]bool, len(r.list))}
		for i, key := range r.keys {
			r.index.at.Add(key, i)
		}
	}
	return r.index.at.First(key)
}

// Take removes the first member of the key and returns it.
func (r *Roster[K, V]) Take(key K) (v V, ok bool) {
	i, ok := r.place(key)
	if !ok {
		return v, false
	}
	v = r.list[i]
	x := r.index
	if x == nil {
		r.keys, r.list = slices.Delete(r.keys, i, i+1), slices.Delete(r.list, i, i+1)
		return v, true
	}
	x.at.Take(key)
	clear(r.list[i : i+1])
	x.gone[i] = true
	// Closing the gaps takes time for every place: wait until half of them are empty.
	if r.less++; r.less > len(r.list)/2 {
		r.All()
	}
	return v, true
}

// All returns the keys and the members in order. Both lists belong to the roster.
func (r *Roster[K, V]) All() ([]K, []V) {
	if r == nil {
		return nil, nil
	}
	if r.less > 0 {
		n := 0
		for i := range r.list {
			if !r.index.gone[i] {
				r.keys[n], r.list[n] = r.keys[i], r.list[i]
				n++
			}
		}
		clear(r.keys[n:])
		clear(r.list[n:])
		r.keys, r.list = r.keys[:n], r.list[:n]
		r.index, r.less = nil, 0
	}
	return r.keys, r.list
}

// Rekey gives every member the key that the function of returns.
func (r *Roster[K, V]) Rekey(of func(K, *V) K) {
	if r == nil {
		return
	}
	keys, list := r.All()
	for i := range keys {
		keys[i] = of(keys[i], &list[i])
	}
	r.index = nil
}

// Each yields the keys and the members in order. It changes nothing: a Find may go on at
// the same time.
func (r *Roster[K, V]) Each() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		if r == nil {
			return
		}
		for i := range r.list {
			if gone := r.less > 0 && r.index.gone[i]; !gone && !yield(r.keys[i], &r.list[i]) {
				return
			}
		}
	}
}

// Reset removes all members and keeps the memory.
func (r *Roster[K, V]) Reset() {
	clear(r.keys)
	clear(r.list)
	*r = Roster[K, V]{keys: r.keys[:0], list: r.list[:0]}
}
