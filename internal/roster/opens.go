package roster

// Opens finds what is open by its key: places in somebody's list, in the order in
// which they were opened. The zero Opens is empty.
//
// The key of Add is kept. A key that is only looked up is not.
type Opens[K comparable] struct {
	first map[K]*place
	free  *place // to be used again
}

// A place is where something is that is open. The first one of a key knows the
// last one.
type place struct {
	at               int
	nowhere          int // further ones that are in no list
	prev, next, last *place
}

// NoPlace is the place of what is in no list.
const NoPlace = -1

// Len returns the number of keys.
func (o *Opens[K]) Len() int { return len(o.first) }

// Add opens something at a place.
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

// First returns what was opened first.
func (o *Opens[K]) First(key K) (at int, ok bool) {
	if first := o.first[key]; first != nil {
		return first.at, true
	}
	return 0, false
}

// Take takes out what was opened first.
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
	// The map keeps the key that it is written with, so it is not written: the first
	// place stays, and says what the second one said.
	first.at, first.next = next.at, next.next
	if first.next == nil {
		first.last = first
	} else {
		first.next.prev = first
	}
	o.drop(next)
	return at, true
}

// LastOpen returns what was opened last of what is open still, as open says. It
// takes out the others on the way.
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
