package jsonwire

import "strings"

// The methods of this file are for a caller that knows how its text mostly goes on. Each consumes
// lead and a value after it if exactly that is next, in the form in which the functions Append
// write it, and without whitespace. If not, it consumes nothing and the caller reads the value in
// the general way.

// Literal consumes lead.
func (s *Scanner) Literal(lead string) bool {
	if !strings.HasPrefix(s.text[s.pos:], lead) {
		return false
	}
	s.pos += len(lead)
	s.fresh = false
	return true
}

// PlainText consumes lead and the string that follows it. lead ends with the opening quote of the
// string. The string has at least one character, only ASCII characters and no escapes.
func (s *Scanner) PlainText(lead string) (text string, ok bool) {
	rest, ok := strings.CutPrefix(s.text[s.pos:], lead)
	if !ok {
		return "", false
	}
	n := plainLen(rest)
	if n == 0 || n == len(rest) || rest[n] != '"' {
		return "", false
	}
	s.pos += len(lead) + n + 1
	s.fresh = false
	return rest[:n], true
}

// PlainUint consumes lead and a number without a sign, which has at most nine digits
// and so fits in every integer type.
func (s *Scanner) PlainUint(lead string) (u uint64, ok bool) {
	rest, ok := strings.CutPrefix(s.text[s.pos:], lead)
	if !ok {
		return 0, false
	}
	n := 0
	for n < len(rest) && isDigit(rest[n]) {
		u = u*10 + uint64(rest[n]-'0')
		n++
	}
	if n == 0 || n > 9 || n == len(rest) || n > 1 && rest[0] == '0' || rest[n] == '.' || rest[n]|0x20 == 'e' {
		return 0, false
	}
	s.pos += len(lead) + n
	s.fresh = false
	return u, true
}
