package kaos

// maxOpen is how many open spans are remembered at least.
const maxOpen = 1 << 13

// openMap remembers what is open. Much of it is never closed (a handoff has no
// end in most logs), so the oldest are forgotten when there are many.
type openMap[K comparable, V any] struct{ young, old map[K]V }

func (m *openMap[K, V]) get(k K) (V, bool) {
	v, ok := m.young[k]
	if !ok && len(m.old) > 0 {
		v, ok = m.old[k]
	}
	return v, ok
}

// put returns what is forgotten for it.
func (m *openMap[K, V]) put(k K, v V) (forgotten map[K]V) {
	if m.young == nil {
		m.young = map[K]V{}
	}
	if len(m.old) > 0 {
		delete(m.old, k)
	}
	if m.young[k] = v; len(m.young) < maxOpen {
		return nil
	}
	forgotten = m.old
	m.young, m.old = nil, m.young
	return forgotten
}

func (m *openMap[K, V]) remove(k K) {
	delete(m.young, k)
	if len(m.old) > 0 {
		delete(m.old, k)
	}
}

// cloned returns copies of texts that are cut from lines, so that what is
// remembered does not keep the lines alive.
func cloned(a, b, c, d string) (string, string, string, string) {
	all := a + b + c + d
	i, j, k := len(a), len(a)+len(b), len(a)+len(b)+len(c)
	return all[:i], all[i:j], all[j:k], all[k:]
}
