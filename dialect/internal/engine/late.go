package engine

import "github.com/agentevents/agentevents"

// AddLate adds a member to each row for a fact that arrives after the end of its agent or run. The
// document has no marks, and without the member such a line breaks a rule.
func AddLate(rows []Row) {
	m := May("late", "/marks", late{})
	m.Loose = true
	for i := range rows {
		rows[i].Members = append(rows[i].Members[:len(rows[i].Members):len(rows[i].Members)], m)
	}
}

// late is whether an event has the mark.
type late struct{ Value }

func (late) Append(_ *Writer, dst []byte, _ *Member, at any) ([]byte, bool) {
	return append(dst, "true"...), at.(*agentevents.Marks).Has(agentevents.MarkLate)
}

func (late) Parse(r *Reader, at any) error {
	if is, err := r.S.Bool(); err != nil || !is {
		return ErrMisfit
	}
	*at.(*agentevents.Marks) |= agentevents.MarkLate
	return nil
}

func (late) Schema() map[string]any { return map[string]any{} } // another value is an extra member
