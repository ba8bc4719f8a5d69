package engine

import "strings"

// Shared are the owners of ids that a document gives to several things: the nodes of an
// execution, the sessions of a run. The first owner that starts with an id has it, the others
// get ids of their own. The zero Shared has none.
type Shared struct{ first Recent[string, string] }

// ID returns the id of an owner whose line has a shared id. The result is that id, unless the owner
// starts with the id of another owner. starts is true for the line of the owner's start. An owner
// that is empty, or named like the id, never differs from the id.
func (s *Shared) ID(owner, id string, starts bool) string {
	if first := s.first.Of(id); first == "" || first == owner || owner == "" || owner == id {
		return id
	}
	if own := id + "/" + owner; starts || s.first.Of(own) == owner {
		return own
	}
	return id
}

// Owner returns the first owner of an id, or "".
func (s *Shared) Owner(id string) string { return s.first.Of(id) }

// Line returns the id of the line for which ID returns an id.
func (s *Shared) Line(owner, id string, starts bool) string {
	if shared, cut := strings.CutSuffix(id, "/"+owner); cut && owner != "" && s.ID(owner, shared, starts) == id {
		return shared
	}
	return id
}

// Start records the start of an owner. id is the result of ID.
func (s *Shared) Start(owner, id string) {
	if owner != "" && owner != id && s.first.Of(id) == "" {
		s.first.Set(strings.Clone(id), strings.Clone(owner)) // the clones do not keep the line alive
	}
}
