package session

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// A Residue counts the lines and members that readers did not understand. The zero Residue is empty.
type Residue struct{ counts map[Unread]int }

// Unread names lines, or a member of them, that a reader did not understand.
type Unread struct {
	Program, Version string
	Kind             string // of the line, as the program spells it
	Pointer          string // of the member, with * for elements of lists; empty for the line
}

// maxUnread bounds the kinds that are told apart.
const maxUnread = 1 << 12

// Add counts one.
func (r *Residue) Add(u Unread) {
	if r.counts == nil {
		r.counts = map[Unread]int{}
	}
	if _, ok := r.counts[u]; !ok {
		if len(r.counts) >= maxUnread {
			u = Unread{Program: u.Program, Kind: "…"}
		}
		u = Unread{strings.Clone(u.Program), strings.Clone(u.Version), strings.Clone(u.Kind), strings.Clone(u.Pointer)}
	}
	r.counts[u]++
}

// remove takes back one that Add has counted.
func (r *Residue) remove(u Unread) {
	if r.counts[u]--; r.counts[u] <= 0 {
		delete(r.counts, u)
	}
}

// A Count is a row of a residue.
type Count struct {
	Unread
	N int
}

// Counts returns the rows, sorted.
func (r *Residue) Counts() []Count {
	var out []Count
	for u := range maps.Keys(r.counts) {
		out = append(out, Count{u, r.counts[u]})
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Version, b.Version),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pointer, b.Pointer))
	})
	return out
}

// Once recognises repeated ids. The zero Once has seen none.
type Once struct{ seen map[string]bool }

// First reports whether an id is new. The empty id always is.
func (o *Once) First(id string) bool {
	if id == "" {
		return true
	}
	if o.seen[id] {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[strings.Clone(id)] = true
	return true
}
