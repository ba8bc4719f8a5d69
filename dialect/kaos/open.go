package kaos

import "slices"

// How many open spans are looked through one by one, and how many more are
// remembered at least.
const (
	maxRecent = 16
	maxOpen   = 1 << 13
)

// openMap remembers what is open, mostly little: the latest are in a list, the
// others in maps. Much is never closed (a handoff has no end in most logs), so
// the oldest are forgotten when there are many.
type openMap[K comparable, V any] struct {
	recent     []openEntry[K, V] // the latest last
	young, old map[K]V
	// own, if not nil, returns copies that do not keep lines alive: what is in
	// the list may.
	own func(K, V) (K, V)
}

type openEntry[K comparable, V any] struct {
	key   K
	value V
}

func (m *openMap[K, V]) get(k K) (v V, ok bool) {
	for i := len(m.recent) - 1; i >= 0; i-- {
		if m.recent[i].key == k {
			return m.recent[i].value, true
		}
	}
	if len(m.young) > 0 {
		v, ok = m.young[k]
	}
	if !ok && len(m.old) > 0 {
		v, ok = m.old[k]
	}
	return v, ok
}

// take is get and remove.
func (m *openMap[K, V]) take(k K) (v V, ok bool) {
	for i := len(m.recent) - 1; i >= 0; i-- {
		if m.recent[i].key == k {
			v = m.recent[i].value
			m.recent = slices.Delete(m.recent, i, i+1)
			return v, true
		}
	}
	if len(m.young)+len(m.old) == 0 {
		return v, false
	}
	if v, ok = m.get(k); ok {
		m.remove(k)
	}
	return v, ok
}

// put adds what is not there, with the zero value, and returns a pointer to that,
// which is good until the next call. It returns what left the list for that, if
// anything, and what is forgotten.
func (m *openMap[K, V]) put(k K) (v *V, left *V, forgotten map[K]V) {
	if len(m.recent) == maxRecent {
		if m.young == nil {
			m.young = map[K]V{}
		}
		oldest := m.recent[0]
		copy(m.recent, m.recent[1:])
		m.recent = m.recent[:maxRecent-1]
		if m.own != nil {
			oldest.key, oldest.value = m.own(oldest.key, oldest.value)
		}
		if m.young[oldest.key] = oldest.value; len(m.young) >= maxOpen {
			forgotten = m.old
			m.young, m.old = nil, m.young
		}
		left = &oldest.value
	}
	n := len(m.recent)
	m.recent = slices.Grow(m.recent, 1)[:n+1]
	e := &m.recent[n]
	var zero V
	e.key, e.value = k, zero
	return &e.value, left, forgotten
}

// remove reports whether the list had it.
func (m *openMap[K, V]) remove(k K) bool {
	for i := len(m.recent) - 1; i >= 0; i-- {
		if m.recent[i].key == k {
			m.recent = slices.Delete(m.recent, i, i+1)
			return true
		}
	}
	if len(m.young) > 0 {
		delete(m.young, k)
	}
	if len(m.old) > 0 {
		delete(m.old, k)
	}
	return false
}

// cloned returns copies of texts that are cut from lines, so that what is
// remembered does not keep the lines alive.
func cloned(a, b, c, d string) (string, string, string, string) {
	all := a + b + c + d
	i, j, k := len(a), len(a)+len(b), len(a)+len(b)+len(c)
	return all[:i], all[i:j], all[j:k], all[k:]
}
