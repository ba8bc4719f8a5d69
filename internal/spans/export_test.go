package spans

// Open returns the number of open spans.
func (m *Mapper) Open() int {
	n := len(m.open)
	if m.root != nil && !m.root.ended {
		n++
	}
	return n
}
