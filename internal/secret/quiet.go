package secret

import "strings"

// Suspicious reports whether the value of a member of this name may be masked for it:
// see [Scanner.Quiet].
func (n *Names) Suspicious(name string) bool {
	w := uint32(0x60606060) // in front of a short name is no letter
	for i := max(0, len(name)-4); i < len(name); i++ {
		w = w>>8 | uint32(name[i])<<24
	}
	return !n.dull(w) && n.strength(name) != none
}

// Quiet reports that [Scanner.JSON] finds nothing in raw, a JSON value without
// insignificant whitespace and without a member whose name is [Names.Suspicious]. It
// looks at raw as at one text, which costs far less. When it returns false, as always
// with registered values, JSON may find something, or not.
func (s *Scanner) Quiet(raw string) bool {
	if v := s.values(); v != nil && len(v.forms) > 0 || !quietEscapes(raw) {
		return false
	}
	f := found{hold: len(raw), resume: len(raw), list: true}
	neighbor, label := false, false // a member is called like the value of a pair, and a string like a credential
	for i := 0; i < len(raw); i += short {
		for m := marked(raw[:min(len(raw), i+short)], i, '"'); m != 0; m &= m - 1 {
			k := i + place(m)
			if raw[k] != '"' {
				member := raw[k] == ':' && k > 1 && raw[k-1] == '"' && raw[k-2] != '\\' && raw[k+1] != '/'
				if !member && !s.quietMark(raw, k) {
					return false
				}
				continue
			}
			end := byte(',')
			if k+1 < len(raw) {
				end = raw[k+1]
			}
			if !endsString[end] {
				continue
			}
			if k >= leastEnd && unbroken(load64(raw, k-8)) && tokenChars[raw[k-leastEnd]] {
				f.tokens(raw[:k], k-1, 0, true)
			}
			if k >= 4 && s.names.dull(load32(raw, k-4)) || !s.names.near(raw, k) {
				continue
			}
			text := raw[:k]
			text = text[max(strings.LastIndexByte(text, '"')+1, k-maxName):]
			switch {
			case end == ':':
				neighbor = neighbor || isOne(text, neighbors)
			case s.names.strength(text) != none:
				if end == ',' && k+2 < len(raw) && raw[k+2] == '"' { // perhaps of a list
					return false
				}
				label = true
			}
		}
	}
	f.runs(raw, 0, true)
	return f.regions == nil && !(neighbor && label)
}

// endsString are what follows a string.
var endsString = [256]bool{',': true, ':': true, '}': true, ']': true}

// quietEscapes reports that a text may be looked at with its escapes in it, and that no
// string in it is JSON with strings.
func quietEscapes(raw string) bool {
	inner := false
	for i := 0; ; i += 2 {
		n := strings.IndexByte(raw[i:], '\\')
		if n < 0 {
			break
		}
		switch i += n; raw[i+1] {
		case 'n', 'r', 't', '\\':
		case '"':
			inner = true
		default:
			return false
		}
	}
	for i := 0; inner; i++ {
		n := strings.IndexByte(raw[i:], '"')
		if n < 0 || i+n+1 >= len(raw) {
			break
		}
		if i += n; i > 0 && raw[i-1] == '\\' {
			continue
		}
		switch raw[i+1] {
		case '{', '[', ' ', '\\':
			return false
		}
	}
	return true
}

// quietMark reports that no rule finds a thing at a mark in a string. Marks between
// strings are quiet, too.
func (s *Scanner) quietMark(raw string, i int) bool {
	if i == 0 || i+1 == len(raw) {
		return true
	}
	before, after := raw[i-1], raw[i+1]
	switch raw[i] {
	case ':', '=':
		if raw[i] == ':' {
			switch {
			case after == '/':
				text := raw[:i+strings.IndexByte(raw[i:], '"')]
				if _, v := location(s, text, i, true); v != no {
					return false
				}
			case i == 1:
				return true // the first of the string
			case after == 'A' && before-'0' <= 9:
				return false
			}
		}
		if i >= 4 && s.names.dull(load32(raw, i-4)) || !s.names.near(raw, i) {
			return true
		}
		name, from, _ := nameBefore(raw, i)
		first := from
		for ; first > 0 && from-first < maxName && (alnum[raw[first-1]] || raw[first-1] == ' '); first-- {
		}
		return len(name) < maxName && s.names.strength(name) == none && s.names.strength(raw[first:from]+name) == none &&
			!isOne(name, neighbors) && !isOne(name, typed) && before != '\\' && before != ':'
	case 'z':
		return before != 'i' || after != 'a' || s.quietName(raw, i)
	}
	switch {
	case before == ' ':
		return !isFlag[after]
	case before == '-':
		n := span(raw, i+1, nameChars)
		return n == 0 || n < enough && raw[i-2] != 'Y' && raw[i-2] != 'K' && s.names.strength(raw[i+1:i+1+n]) == none
	}
	return !letters[after] || s.quietName(raw, i)
}

// quietName reports that the word with the byte at i is not the name of a credential in
// quotes.
func (s *Scanner) quietName(raw string, i int) bool {
	end := i + 1 + span(raw, i+1, alnum)
	if c := raw[end]; c != '\'' && c != '\\' {
		return true // or the end of the string, which is looked at
	}
	from := i
	for from > 0 && end-from < maxName && nameChars[raw[from-1]] {
		from--
	}
	return s.names.strength(raw[from:end]) == none
}
