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

// unlisted reports whether there is something that is not in the list.
func (m *openMap[K, V]) unlisted() bool { return len(m.young)+len(m.old) > 0 }

// index returns where in the list something is, or -1. The key is not passed by
// value: it would be copied to be compared, and the processor would wait for what
// it has just stored.
func (m *openMap[K, V]) index(k *K) int {
	i := len(m.recent) - 1
	for i >= 0 && m.recent[i].key != *k {
		i--
	}
	return i
}

func (m *openMap[K, V]) get(k *K) (v V, ok bool) {
	if i := m.index(k); i >= 0 {
		return m.recent[i].value, true
	}
	if len(m.young) > 0 {
		v, ok = m.young[*k]
	}
	if !ok && len(m.old) > 0 {
		v, ok = m.old[*k]
	}
	return v, ok
}

// take is get and remove.
func (m *openMap[K, V]) take(k *K) (v V, ok bool) {
	if i := m.index(k); i >= 0 {
		v = m.recent[i].value
		m.removeAt(i)
		return v, true
	}
	if !m.unlisted() {
		return v, false
	}
	if v, ok = m.get(k); ok {
		delete(m.young, *k)
		delete(m.old, *k)
	}
	return v, ok
}

// removeAt removes what is at index i of the list.
func (m *openMap[K, V]) removeAt(i int) { m.recent = slices.Delete(m.recent, i, i+1) }

// put adds what is not there, and returns a pointer to the value, which the caller
// sets at once: whatever is there is of another one. It returns what left the list
// for that, if anything, and what is forgotten.
func (m *openMap[K, V]) put(k *K) (v *V, left *openEntry[K, V], forgotten map[K]V) {
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
		left = &oldest
	}
	n := len(m.recent)
	m.recent = slices.Grow(m.recent, 1)[:n+1]
	e := &m.recent[n]
	e.key = *k
	return &e.value, left, forgotten
}

// cloned returns copies of texts that are cut from lines, so that what is
// remembered does not keep the lines alive.
func cloned(a, b, c, d string) (string, string, string, string) {
	all := a + b + c + d
	i, j, k := len(a), len(a)+len(b), len(a)+len(b)+len(c)
	return all[:i], all[i:j], all[j:k], all[k:]
}
