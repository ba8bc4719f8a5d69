// Package credential knows the member names whose values are credentials.
//
// Case, '-', '_', '.' and blanks of a name do not count, and a name matches when it
// ends with one of those known: the comparison is of folded names, from their end.
package credential

import (
	"math"
	"slices"
)

// known are folded names whose values are masked.
var known = []string{
	"password", "passwd", "pwd", "passphrase", "secret", "secretkey", "apikey", "accesskey", "privatekey", "signingkey",
	"token", "authorization", "cookie", "cookies", "credential", "credentials", "connectionstring",
}

// harmless names end like credentials and are none.
var harmless = []string{"pagetoken", "nexttoken", "continuationtoken", "synctoken", "canceltoken", "cancellationtoken"}

// Names are the names whose values are masked. They are for concurrent use.
type Names struct {
	keep   []string      // folded
	byLast [256][]string // folded names by their last byte
	tails  [32]uint32    // low bits of the last two bytes of names
}

// NewNames returns the known names and more, without those to keep.
func NewNames(more, keep []string) *Names {
	n := &Names{keep: foldAll(harmless, keep)}
	for _, name := range foldAll(known, more) {
		last := name[len(name)-1]
		n.byLast[last] = append(n.byLast[last], name)
		if len(name) == 1 {
			n.tails[last%32] = math.MaxUint32 // whatever comes before it
		} else {
			n.tails[last%32] |= 1 << (name[len(name)-2] % 32)
		}
	}
	return n
}

// Suspicious reports whether values of members of this name may be masked. The last
// two letters rule out most names.
func (n *Names) Suspicious(name string) bool {
	if len(name) >= 2 {
		last, before := fold(name[len(name)-1]), fold(name[len(name)-2])
		if last != 0 && before != 0 && n.tails[last%32]&(1<<(before%32)) == 0 {
			return false
		}
	}
	return n.Masks(name, '"')
}

// Masks reports whether a value is masked for its member name. value is the first
// byte of its JSON text.
func (n *Names) Masks(name string, value byte) bool {
	switch value {
	case 'n', 't', 'f': // null, true and false tell nothing
		return false
	}
	for _, k := range n.byLast[lastLetter(name)] {
		if !endsLike(name, k) {
			continue
		}
		if k == "token" && (value == '0' || value == '-') {
			return false // a count
		}
		return !slices.ContainsFunc(n.keep, func(keep string) bool { return endsLike(name, keep) })
	}
	return false
}

// foldAll returns base and the folded names.
func foldAll(base, names []string) []string {
	out := slices.Clip(base)
	for _, name := range names {
		var folded []byte
		for i := range len(name) {
			if c := fold(name[i]); c != 0 {
				folded = append(folded, c)
			}
		}
		if len(folded) > 0 {
			out = append(out, string(folded))
		}
	}
	return out
}

// lastLetter returns the last byte of a folded name, 0 when there is none.
func lastLetter(name string) byte {
	for i := len(name) - 1; i >= 0; i-- {
		if c := fold(name[i]); c != 0 {
			return c
		}
	}
	return 0
}

// endsLike reports whether name, folded, ends with the folded end.
func endsLike(name, end string) bool {
	j := len(end) - 1
	for i := len(name) - 1; i >= 0 && j >= 0; i-- {
		c := fold(name[i])
		if c == 0 {
			continue
		}
		if c != end[j] {
			return false
		}
		j--
	}
	return j < 0
}

// fold returns c in lower case, and 0 for what names are written with or without.
func fold(c byte) byte {
	switch {
	case c == '-' || c == '_' || c == '.' || c == ' ':
		return 0
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}
