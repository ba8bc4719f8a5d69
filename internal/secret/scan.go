package secret

import (
	"strings"
)

// A region is a part of a text that is masked.
type region struct {
	from    int
	to      int // if the end is known, else 0
	rule    string
	until   until
	chars   *[256]bool // of untilChar
	quote   byte       // of untilQuote
	slashes int        // backslashes in front of the quote
}

// An until says where a region ends.
type until uint8

const (
	untilChar  until = iota // at a character that is not of the set
	untilQuote              // at the quote that opened it
	untilLine               // at the end of the line, or of the string that holds it
	untilEnd                // at the last line of a key in PEM form
)

const pemEnd = "-----END"

// end returns where a region ends that goes on at i. If it is not closed the rest of
// the text belongs to it; what is behind to is needed to find its end.
func (r *region) end(text string, i int) (to int, closed bool) {
	if r.to > 0 {
		return r.to, true
	}
	switch r.until {
	case untilChar:
		for ; i < len(text) && r.chars[text[i]]; i++ {
		}
		return i, i < len(text)
	case untilEnd:
		if n := strings.Index(text[i:], pemEnd); n >= 0 {
			return i + n, true
		}
		for k := max(i, len(text)-len(pemEnd)+1); k < len(text); k++ {
			if strings.HasPrefix(pemEnd, text[k:]) {
				return k, false
			}
		}
		return len(text), false
	}
	for ; i < len(text); i++ {
		n := 0
		for i+n < len(text) && text[i+n] == '\\' {
			n++
		}
		if i+n == len(text) {
			return i, false
		}
		c := text[i+n]
		switch {
		case r.until == untilQuote:
			// A quote of the text in the string has more backslashes. One with fewer ends the
			// string around it.
			if c == r.quote && (n < r.slashes || n%(2*(r.slashes+1)) == r.slashes) {
				return i, true
			}
		case c == '"' || c == '\'' || c == '\n' || c == '\r' || n > 0 && (c == 'n' || c == 'r'):
			return i, true
		}
		i += n
	}
	return i, false
}

// A verdict is what is known of a region at the end of a text.
type verdict uint8

const (
	no    verdict = iota
	maybe         // it depends on what follows
	yes
)

// class says what a byte may begin or, for separators, end.
var class = func() (t [256]uint8) {
	for c := range 256 {
		if byFirst[c] != nil {
			t[c] |= mayToken
		}
	}
	for c := '0'; c <= '9'; c++ {
		t[c] |= mayCard
	}
	t['='] |= maySeparator
	t[':'] |= maySeparator
	t['-'] |= mayDash
	t[' '] |= mayScheme
	t['e'] |= mayJWT
	return t
}()

const (
	mayToken uint8 = 1 << iota
	mayCard
	maySeparator
	mayDash
	mayScheme
	mayJWT
)

// find returns the first region that begins at or behind at. The text from lo to at
// is known; it may have the name or the prefix of the region.
func (s *Scanner) find(text string, lo, at int, final bool) (first region, is verdict) {
	first.from = len(text)
	for i := lo; i < first.from; i++ {
		c := class[text[i]]
		if c == 0 {
			continue
		}
		for _, rule := range rules {
			if c&rule.class == 0 {
				continue
			}
			r, v := rule.find(s, text, lo, i, final)
			if v == no || r.from < at || r.from >= first.from {
				continue
			}
			if v == yes {
				if to, closed := r.end(text, r.from); to == r.from { // nothing of it is there
					if closed || final {
						continue
					}
					v = maybe
				}
			}
			first, is = r, v
		}
	}
	return first, is
}

// rules are the ways to find a region, by the byte at which they look at a text.
var rules = [...]struct {
	class uint8
	find  func(s *Scanner, text string, lo, i int, final bool) (region, verdict)
}{
	{maySeparator, named}, {maySeparator, userInfo}, {mayToken, prefixed}, {mayJWT, webToken}, {mayScheme, scheme}, {mayDash, pem}, {mayDash, flagged}, {mayCard, card},
}

// word reports whether a word may begin at i.
func word(text string, lo, i int) bool { return i == lo || !alnum[text[i-1]] && text[i-1] != '_' }

// random reports whether a text looks like one that nobody made up.
func random(text string) bool {
	var digit, upper, lower bool
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digit = true
		case 'A' <= c && c <= 'Z':
			upper = true
		case 'a' <= c && c <= 'z':
			lower = true
		}
	}
	return digit || upper && lower && len(text) >= 20
}

// run returns the region of the characters from i, which must be at least min.
func run(text string, i, min int, chars *[256]bool, mustBeRandom, final bool) (region, verdict) {
	r := region{from: i, rule: Token, until: untilChar, chars: chars}
	to, closed := r.end(text, i)
	enough := to-i >= min && (!mustBeRandom || random(text[i:to])) || to-i > maxHeld
	switch {
	case enough:
		return r, yes
	case closed:
		return r, no
	case !final:
		return r, maybe
	case to-i >= unfinished && (!mustBeRandom || random(text[i:to])):
		return r, yes
	}
	return r, no
}

// unfinished is the length from which the beginning of a secret is masked when the
// text ends in it.
const unfinished = 8

// prefixed finds a token by its prefix.
func prefixed(_ *Scanner, text string, lo, i int, final bool) (region, verdict) {
	if !word(text, lo, i) {
		return region{}, no
	}
	for _, t := range byFirst[text[i]] {
		if strings.HasPrefix(text[i:], t.prefix) {
			return run(text, i+len(t.prefix), t.min, t.chars, t.random, final)
		}
	}
	return region{}, no
}

// webToken finds the claims and the signature of a JSON web token behind its header.
func webToken(_ *Scanner, text string, lo, i int, final bool) (region, verdict) {
	if !strings.HasPrefix(text[i:], "eyJ") || !word(text, lo, i) {
		return region{}, no
	}
	header := region{until: untilChar, chars: urlSafe}
	dot, closed := header.end(text, i)
	if !closed || dot-i < 8 || text[dot] != '.' {
		return region{}, no
	}
	return run(text, dot+1, 16, dotted, true, final)
}

// scheme finds what follows the name of a scheme of authorization.
func scheme(_ *Scanner, text string, lo, i int, final bool) (region, verdict) {
	for _, name := range [...]string{"bearer", "basic"} {
		if at := i - len(name); at >= lo && strings.EqualFold(text[at:i], name) && word(text, lo, at) {
			return run(text, i+1, 8, credentialChars, true, final)
		}
	}
	return region{}, no
}

var credentialChars = chars("-_.~+/=:")

// userInfo finds the password in the authority of a URL.
func userInfo(_ *Scanner, text string, _, i int, final bool) (region, verdict) {
	if !strings.HasPrefix(text[i:], "://") {
		return region{}, no
	}
	colon := -1
	for k := i + 3; ; k++ {
		if k == len(text) {
			if colon < 0 {
				return region{}, no
			}
			if final {
				return region{}, no // a port, or nothing that a URL has
			}
			return region{from: colon + 1, rule: Key}, maybe
		}
		switch c := text[k]; {
		case c == ':' && colon < 0:
			colon = k
		case colon >= 0 && k-colon > maxHeld:
			return region{from: colon + 1, rule: Key, until: untilChar, chars: valueChars}, yes
		case c == '@':
			if colon < 0 || colon+1 == k {
				return region{}, no
			}
			return region{from: colon + 1, to: k, rule: Key}, yes
		case c <= ' ' || c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '\\':
			return region{}, no
		}
	}
}

// pem finds a private key behind its first line.
func pem(_ *Scanner, text string, _, i int, _ bool) (region, verdict) {
	const begin, private, dashes = "-----BEGIN ", "PRIVATE KEY", "-----"
	if !strings.HasPrefix(text[i:], begin) {
		return region{}, no
	}
	line := text[i+len(begin) : min(len(text), i+60)]
	n := strings.Index(line, private)
	if n < 0 {
		return region{}, no
	}
	after := strings.Index(line[n:], dashes)
	if after < 0 {
		return region{}, no
	}
	return region{from: i + len(begin) + n + after + len(dashes), rule: Token, until: untilEnd}, yes
}

// card finds the number of a payment card behind its first six digits.
func card(_ *Scanner, text string, lo, i int, final bool) (region, verdict) {
	const known, least, most = 6, 13, 19
	if text[i] < '3' || text[i] > '6' || !word(text, lo, i) || i > lo && strings.IndexByte(".-+/,", text[i-1]) >= 0 {
		return region{}, no
	}
	n, sum, from, k := 0, 0, -1, i
	var digits [most]byte
	for ; k < len(text); k++ {
		c := text[k]
		if c >= '0' && c <= '9' {
			if n == most {
				return region{}, no
			}
			if n == known {
				from = k
			}
			digits[n] = c - '0'
			n++
			continue
		}
		if c != ' ' && c != '-' || k+1 < len(text) && (text[k+1] < '0' || text[k+1] > '9') || n%4 != 0 && n != 10 {
			break
		}
	}
	if k == len(text) && !final {
		if n >= known {
			return region{from: max(from, i), rule: Card}, maybe
		}
		return region{}, no
	}
	if n < least || k < len(text) && (alnum[text[k]] || text[k] == '.' && k+1 < len(text) && alnum[text[k+1]]) {
		return region{}, no
	}
	for j := range n {
		d := int(digits[n-1-j])
		if j%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	if sum%10 != 0 {
		return region{}, no
	}
	return region{from: from, to: k, rule: Card}, yes
}
