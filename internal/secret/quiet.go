package secret

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Compact is [jsonwire.Compact]. It reports whether [Scanner.JSON] finds nothing in the
// value, which is the usual case and costs far less than to ask JSON. When it returns false,
// as it always does with registered values, JSON may find something or not.
func (s *Scanner) Compact(raw string) (compact string, quiet bool, err error) {
	if v := s.values(); v != nil && len(v.forms) > 0 {
		compact, err = jsonwire.Compact(raw)
		return compact, false, err
	}
	compact, found, err := jsonwire.CompactWatched(raw, s)
	return compact, !found, err
}

// Ends returns the ends of names, among them all bytes that are no letters. It is a method
// of [jsonwire.Watch].
func (s *Scanner) Ends() *jsonwire.Ends { return &s.names.tails }

// Text reports whether a string may be masked, or something for it: next to the value
// of a pair, and in a list, it may be the name of a credential, as the name of a member is.
// It is a method of [jsonwire.Watch].
func (s *Scanner) Text(raw string, escaped bool) bool {
	switch {
	case escaped:
		return !s.quiet(raw)
	case opens[raw[0]] && isJSON(raw):
		return true
	}
	return s.names.tells(raw) || s.finds(raw)
}

// finds reports whether a text has something to be masked, without registered values.
func (s *Scanner) finds(text string) bool {
	f := found{hold: len(text), resume: len(text)}
	s.find(&f, text, 0, true)
	return f.regions != nil
}

// quiet reports that nothing is masked in a string, or for it, that is looked at with its
// escapes in it.
func (s *Scanner) quiet(raw string) bool {
	for i := 0; ; i += 2 {
		n := strings.IndexByte(raw[i:], '\\')
		if n < 0 {
			break
		}
		if i += n; strings.IndexByte(`nrt\"`, raw[i+1]) < 0 {
			return false
		}
	}
	// To cut the letters of escapes off, too, can only lead to more that looks like JSON.
	if (raw[0] == '\\' || opens[raw[0]]) && isJSON(strings.Trim(raw, ` \nrt`)) || s.names.tells(raw) {
		return false
	}
	for i := 0; i < len(raw); i += short {
		for m, _ := marked(raw[:min(len(raw), i+short)], i); m != 0; m &= m - 1 {
			if !s.quietMark(raw, i+place(m)) {
				return false
			}
		}
	}
	f := found{hold: len(raw), resume: len(raw)}
	f.runs(raw, 0, true)
	return f.regions == nil
}

// quietMark reports that no rule finds a thing at a mark in a string with its escapes.
func (s *Scanner) quietMark(raw string, i int) bool {
	if i+1 == len(raw) {
		return true
	}
	before, after := byte(' '), raw[i+1]
	if i > 0 {
		before = raw[i-1]
	}
	switch raw[i] {
	case ':', '=':
		if raw[i] == ':' {
			switch {
			case after == '/':
				if _, v := location(s, raw, i, true); v != no {
					return false
				}
			case after == 'A' && before-'0' <= 9:
				return false
			}
		}
		if raw[i] == '=' && codeBefore(raw, i) {
			return false
		}
		if i >= 4 && s.names.dull(load32(raw, i-4)) || !s.names.near(raw, i) {
			return true
		}
		name, from, _ := nameBefore(raw, i)
		first := from
		for ; first > 0 && from-first < maxName && (alnum[raw[first-1]] || raw[first-1] == ' '); first-- {
		}
		return len(name) < maxName && s.names.strength(name) == none && s.names.strength(raw[first:from]+name) == none &&
			!isOne(name, neighbors) && !isOne(name, typed) &&
			(raw[i] == ':' || !isOne(name, others)) && strings.IndexByte(`\:!?*;`, before) < 0
	case '|', '%':
		return raw[i] == '|' && before != ' ' && after != '|' || raw[i] == '%' && after != '3' || !s.names.near(raw, i)
	case 'z':
		return before != 'i' || after != 'a' || s.quietName(raw, i)
	case '-':
		switch {
		case before == ' ' && after == '>':
			name, _, _ := nameBefore(raw, i)
			return s.names.strength(name) == none
		case before == ' ' || before == '-':
			n := span(raw, i+1, nameChars)
			word := raw[i+1 : i+1+n]
			return (before == '-' || !isFlag[after]) &&
				(n == 0 || n < enough && (i < 2 || raw[i-2] != 'Y' && raw[i-2] != 'K') &&
					s.names.strength(word) == none && !isOne(word, userFlags))
		}
		return !letters[after] ||
			s.quietName(raw, i) && (before != 'm' || after != 'd') && (before != 'e' || after != 'L') // see below
	}
	return true
}

// quietName reports that the word with the byte at i is not the name of a credential in
// quotes.
func (s *Scanner) quietName(raw string, i int) bool {
	end := i + 1 + span(raw, i+1, alnum)
	if end == len(raw) || raw[end] != '\'' && raw[end] != '\\' {
		return true
	}
	from := i
	for from > 0 && end-from < maxName && nameChars[raw[from-1]] {
		from--
	}
	return s.names.strength(raw[from:end]) == none
}
