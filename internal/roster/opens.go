package roster

// Opens is an index of open items. It keeps the places of the items in a list of
// the caller, by key, in the order in which they were opened. The zero Opens is
// empty.
//
// Opens keeps the keys given to Add. It does not keep a key given to another
// method.
type Opens[K comparable] struct {
	first map[K]*place
	free  *place // places to use again
}

// A place is the place of an open item. The places of a key are linked; the first
// one has the last one.
type place struct {
	at               int
	nowhere          int // number of further items that are in no list
	prev, next, last *place
}

// NoPlace is the place of an item that is in no list.
const NoPlace = -1

// Len returns the number of keys.
func (o *Opens[K]) Len() int { return len(o.first) }

// Add adds an item that was opened at the place at.
func (o *Opens[K]) Add(key K, at int) {
	first := o.first[key]
	if first != nil && at == NoPlace {
		first.nowhere++
		return
	}
	p := o.free
	if p == nil {
		p = &place{}
	} else {
		o.free = p.next
	}
	if first != nil {
		*p = place{at: at, prev: first.last}
		first.last.next, first.last = p, p
		return
	}
	*p = place{at: at, last: p}
	if o.first == nil {
		o.first = map[K]*place{}
	}
	o.first[key] = p
}

// First returns the place of the item of the key that was opened first.
func (o *Opens[K]) First(key K) (at int, ok bool) {
	if first := o.first[key]; first != nil {
		return first.at, true
	}
	return 0, false
}

// Take removes the item of the key that was opened first and returns its place.
func (o *Opens[K]) Take(key K) (at int, ok bool) {
	first := o.first[key]
	if first == nil {
		return 0, false
	}
	if first.nowhere > 0 {
		first.nowhere--
		return NoPlace, true
	}
	at = first.at
	next := first.next
	if next == nil {
		delete(o.first, key)
		o.drop(first)
		return at, true
	}
	// Writing to the map would keep the caller's key. So the first place stays in
	// the map and takes over the second one.
	first.at, first.next = next.at, next.next
	if first.next == nil {
		first.last = first
	} else {
		first.next.prev = first
	}
	o.drop(next)
	return at, true
}

// LastOpen returns the place of the last item of the key for which open is true. It removes the
// items after it.
func (o *Opens[K]) LastOpen(key K, open func(at int) bool) (at int, ok bool) {
	for {
		first := o.first[key]
		switch {
		case first == nil:
			return 0, false
		case open(first.last.at):
			return first.last.at, true
		case first.last == first:
			delete(o.first, key)
			o.drop(first)
		default:
			last := first.last
			first.last, last.prev.next = last.prev, nil
			o.drop(last)
		}
	}
}

func (o *Opens[K]) drop(p *place) {
	*p = place{next: o.free}
	o.free = p
}
