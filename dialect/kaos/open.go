package kaos

import "slices"

const (
	maxRecent = 16      // entries in the list, which are searched one by one
	maxOpen   = 1 << 13 // entries in each of the two maps
)

// openMap remembers the open spans, of which a log mostly has few: the latest are
// in a list, the others in maps. Many spans never end (most logs have no end of a
// handoff), so a full map makes the older map forgotten.
type openMap[K comparable, V any] struct {
	recent     []openEntry[K, V] // the latest entry last
	young, old map[K]V
	// own, if not nil, copies the texts of an entry that moves to a map. In the
	// list they may be parts of lines.
	own func(K, V) (K, V)
}

type openEntry[K comparable, V any] struct {
	key   K
	value V
}

// unlisted reports whether the maps have entries.
func (m *openMap[K, V]) unlisted() bool { return len(m.young)+len(m.old) > 0 }

// index returns the index of k in the list, or -1. It takes a pointer for the
// reason that openKey.set states.
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

// take returns an entry and removes it.
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

// removeAt removes entry i of the list.
func (m *openMap[K, V]) removeAt(i int) { m.recent = slices.Delete(m.recent, i, i+1) }

// put adds an entry for k, which must not be there yet. The value behind the
// returned pointer is that of an old entry: the caller must set it at once. put
// also returns the entry that moved from the list to a map, if one did, and the
// entries that are forgotten.
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

// cloned copies texts that are parts of lines, so that an entry does not keep the
// lines alive. It allocates once.
func cloned(a, b, c, d string) (string, string, string, string) {
	all := a + b + c + d
	i, j, k := len(a), len(a)+len(b), len(a)+len(b)+len(c)
	return all[:i], all[i:j], all[j:k], all[k:]
}
