// Package roster finds what is in a list, or open, by its key. Adding, finding and
// taking out cost the same however long the list is.
package roster

import "slices"

// A Roster is a list in order, any member of which can be taken out by its key. Of
// several with a key the first one goes first. The zero Roster is empty.
//
// The key of Add is kept. A key that is only looked up is not.
type Roster[K comparable, V any] struct {
	keys []K
	list []V
	gone []bool    // by place, once there is an index
	less int       // how many are gone
	at   *Opens[K] // places by key; nil while the list is short, or nobody has asked
}

// Few is the length up to which looking through the list takes less time than an
// index.
const Few = 16

// Len returns the number of members.
func (r *Roster[K, V]) Len() int { return len(r.list) - r.less }

// Add adds a member at the end.
func (r *Roster[K, V]) Add(key K, v V) {
	r.keys, r.list = append(r.keys, key), append(r.list, v)
	if r.at != nil {
		r.gone = append(r.gone, false)
		r.at.Add(key, len(r.list)-1)
	}
}

// Find returns the first member of the key, or nil. It is valid until the next Add
// or Take.
func (r *Roster[K, V]) Find(key K) *V {
	if i, ok := r.place(key); ok {
		return &r.list[i]
	}
	return nil
}

func (r *Roster[K, V]) place(key K) (int, bool) {
	if r.at == nil {
		if len(r.list) <= Few {
			i := slices.Index(r.keys, key)
			return i, i >= 0
		}
		r.at, r.gone = &Opens[K]{}, make([]bool, len(r.list))
		for i, key := range r.keys {
			r.at.Add(key, i)
		}
	}
	return r.at.First(key)
}

// Take takes out the first member of the key.
func (r *Roster[K, V]) Take(key K) (v V, ok bool) {
	i, ok := r.place(key)
	if !ok {
		return v, false
	}
	v = r.list[i]
	if r.at == nil {
		r.keys, r.list = slices.Delete(r.keys, i, i+1), slices.Delete(r.list, i, i+1)
		return v, true
	}
	r.at.Take(key)
	clear(r.list[i : i+1])
	r.gone[i] = true
	// Closing the gaps costs as much as there are places: do it when half are gone.
	if r.less++; r.less > len(r.list)/2 {
		r.All()
	}
	return v, true
}

// All returns the keys and the members in order. Both stay the roster's.
func (r *Roster[K, V]) All() ([]K, []V) {
	if r.less > 0 {
		n := 0
		for i := range r.list {
			if !r.gone[i] {
				r.keys[n], r.list[n] = r.keys[i], r.list[i]
				n++
			}
		}
		clear(r.keys[n:])
		clear(r.list[n:])
		r.keys, r.list = r.keys[:n], r.list[:n]
		r.at, r.gone, r.less = nil, nil, 0
	}
	return r.keys, r.list
}

// Reset takes everything out and keeps the memory.
func (r *Roster[K, V]) Reset() {
	clear(r.keys)
	clear(r.list)
	*r = Roster[K, V]{keys: r.keys[:0], list: r.list[:0]}
}
