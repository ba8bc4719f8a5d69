package secret

import (
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A region is a part of a text that is masked.
type region struct {
	trigger int // where the rule looked
	from    int
	at      int  // the end, or where to look for it
	closed  bool // at is the end
	rule    string
	until   until
	chars   *[256]bool // of untilChar
	quote   byte       // of untilQuote, and of the strings in untilClose
	slashes int        // backslashes in front of the quote
	depth   int        // of untilClose: brackets that were opened in it
	inside  bool       // of untilClose: in a string
}

// An until decides where a region ends.
type until uint8

const (
	untilThere until = iota // at a place that the rule knows
	untilChar               // at a character that is not of the set
	untilQuote              // at the quote that opened it
	untilLine               // at the end of the line, or of the string that holds it
	untilEnd                // at the last line of a key in PEM form, or at the first byte that cannot belong to a key
	untilClose              // at the bracket that closes a list or an object
)

const pemEnd = "-----END"

var pemChars = chars("+/=-:, \t\r\n\\")

// end looks for the end of a region. The text up to at belongs to it; if it is not closed, the text
// after it is needed to find its end.
func (r *region) end(text string) {
	i := r.at
	switch {
	case r.closed:
	case r.until == untilChar:
		for ; i < len(text) && r.chars[text[i]]; i++ {
			if text[i] == '|' && r.chars == pipedChars && (i+1 == len(text) || !valueChars[text[i+1]]) {
				break
			}
		}
		r.closed = i < len(text) && (i+1 < len(text) || r.chars != pipedChars || text[i] != '|')
	case r.until == untilEnd:
		for ; i < len(text) && pemChars[text[i]]; i++ {
			if text[i] == '-' && (strings.HasPrefix(text[i:], pemEnd) || strings.HasPrefix(pemEnd, text[i:])) {
				break
			}
		}
		r.closed = i < len(text) && (text[i] != '-' || len(text)-i >= len(pemEnd))
	case r.until == untilClose:
		for i < len(text) && !r.closed {
			n := i
			for n < len(text) && text[n] == '\\' {
				n++
			}
			if n == len(text) {
				break
			}
			switch c := text[n]; {
			case c == r.quote && (n-i)%(2*(r.slashes+1)) == r.slashes:
				r.inside = !r.inside
			case r.inside:
			case c == '[' || c == '{':
				r.depth++
			case c == ']' || c == '}':
				r.depth--
				r.closed = r.depth < 0
			}
			if i = n; !r.closed {
				i++
			}
		}
	default:
		i, r.closed = r.quoted(text, i)
	}
	r.at = i
}

// quoted is end for a region that ends at a quote.
func (r *region) quoted(text string, i int) (to int, closed bool) {
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

// same reports whether two regions that overlap end at the same place.
func (r *region) same(o *region) bool {
	return r.until == o.until && r.chars == o.chars && r.quote == o.quote && r.slashes == o.slashes
}

// A verdict is the certainty about a region at the end of a text.
type verdict uint8

const (
	no    verdict = iota
	maybe         // it depends on the next bytes
	yes
)

// known is how far in front of its byte a rule looks, at most.
const known = 256

// A rule looks at a text around the byte at i. The region that it returns begins after i. If it is
// maybe, the text from its start on must not be passed on yet.
type rule func(s *Scanner, text string, i int, final bool) (region, verdict)

// rules are the rules by the bytes at which they look: the marks of a text. To look for
// a byte costs time in all texts, so there are few of them.
var rules = [256][]rule{
	':': {named, location, botToken},
	'=': {named},
	'-': {flag, command, pem, paired, arrow, below},
	'z': {paired},
	'|': {cell, otherwise},
	'%': {percent},
}

// found are the regions in a text.
type found struct {
	regions []region
	ends    []int // the last region of each kind of end
	hold    int   // the text after it may not be passed on yet
	resume  int   // from here on rules must look again
	tail    int   // where the last word of a stream begins
}

// add adds a region and finds its end. A region inside one of the same kind is left out: the time
// to look for ends stays linear.
func (f *found) add(text string, trigger int, r region, v verdict) {
	if v == maybe {
		f.hold, f.resume = min(f.hold, r.from), min(f.resume, trigger)
		return
	}
	r.trigger = trigger
	if r.closed = r.until == untilThere; !r.closed {
		r.at = r.from
	}
	f.close(text, r)
}

// close adds a region whose end is looked for from its field at on.
func (f *found) close(text string, r region) {
	kind := -1
	if r.until != untilThere {
		for k, i := range f.ends {
			o := &f.regions[i]
			if !o.same(&r) {
				continue
			}
			if o.from <= r.from && r.at < o.at {
				return
			}
			kind = k
		}
		if kind < 0 {
			kind = len(f.ends)
			f.ends = append(f.ends, 0)
		}
		f.ends[kind] = len(f.regions)
	}
	if r.end(text); !r.closed {
		f.hold = min(f.hold, r.at)
	}
	f.regions = append(f.regions, r)
}

// marks are the bytes that have rules.
const marks = ":=-z|%"

// find adds the regions of rules that look at bytes from at on.
func (s *Scanner) find(f *found, text string, from int, final bool) {
	if len(text)-from <= short {
		m, odd := marked(text, from)
		for ; m != 0; m &= m - 1 {
			s.look(f, text, from+place(m), final)
		}
		if n := len(text); final && (!odd || n < leastEnd) {
			return
		} else if !odd || final && n < leastToken &&
			(n < leastDigits || !cardLike(jsonwire.Load64(text, leastToken-1-leastDigits))) {
			f.last(text, from, from, final) // too short for runs
			return
		}
		f.runs(text, from, final)
		return
	}
	for k := range len(marks) {
		for i := from; ; i++ {
			n := strings.IndexByte(text[i:], marks[k])
			if n < 0 {
				break
			}
			i += n
			s.look(f, text, i, final)
		}
	}
	f.runs(text, from, final)
}

// look asks rules about the mark at i, if the bytes around it are such that they must look
// at it: for most marks they need not.
func (s *Scanner) look(f *found, text string, i int, final bool) {
	before, after := byte(' '), byte(0)
	if i+1 < len(text) {
		after = text[i+1]
	} else if final {
		return // all rules look at the next bytes
	}
	if i > 0 {
		before = text[i-1]
	}
	c := text[i]
	switch c {
	case ':', '=':
		if c == '=' && before == 'e' && codeBefore(text, i) {
			break
		}
		if i >= 4 && after != '/' && after != 'A' && after != 0 && s.names.dull(load32(text, i-4)) {
			return
		}
		if !s.names.near(text, i) && after != 0 && (c == '=' || after != '/' && (after != 'A' || before-'0' > 9)) {
			return
		}
	case '|', '%':
		if k := i + 3; c == '|' && after == '|' && k < len(text) && text[k-1] == ' ' && kindOf[text[k]] != 0 {
			return // no default in quotes
		}
		if after != 0 &&
			(c == '|' && after != '|' && (before != ' ' || after != ' ') || c == '%' && after != '3' || !s.names.near(text, i)) {
			return
		}
	case 'z': // authorization: see paired
		if before != 'i' || after != 'a' && after != 0 {
			return
		}
	default:
		switch {
		case after == 0:
		case before <= ' ':
			if !isFlag[after] && after != '>' && (after < 'A' || after > 'Z') {
				return
			}
		case before == '-': // a flag, or after KEY----- or BLOCK-----
			if (!nameChars[after] || i > 1 && text[i-2] == '-') && (i < 5 || text[i-5] != 'Y' && text[i-5] != 'K') {
				return
			}
		case !letters[after]: // X-Api-Key: see paired
			return
		}
	}
	for _, rule := range rules[c] {
		if r, v := rule(s, text, i, final); v != no {
			f.add(text, i, r, v)
		}
	}
}

// codeBefore reports whether the parameter code of a URL ends at i: no other name ends so.
func codeBefore(text string, i int) bool {
	return i > len(code) && text[i-len(code):i] == code && parameter(text, i-len(code))
}

// word reports whether a word may begin at i.
func word(text string, i int) bool {
	return i == 0 || !alnum[text[i-1]] && text[i-1] != '_' || escaped(text, i)
}

// escaped reports whether an escape of JSON ends at i: its letter is none of a word.
func escaped(text string, i int) bool {
	return i > 1 && text[i-2] == '\\' && strings.IndexByte("nrt", text[i-1]) >= 0
}

// kinds are kinds of characters.
type kinds uint8

const (
	digit kinds = 1 << iota
	lower
	upper
)

// kindOf is the kind of a character, 0 of others.
var kindOf = func() (of [256]kinds) {
	for c := range 26 {
		of['a'+c], of['A'+c] = lower, upper
	}
	for c := '0'; c <= '9'; c++ {
		of[c] = digit
	}
	return of
}()

func kindsOf(text string) (all kinds) {
	for i := range len(text) {
		all |= kindOf[text[i]]
	}
	return all
}

// random reports whether a text looks like one that nobody made up.
func random(text string) bool {
	all := kindsOf(text)
	return all&digit != 0 || all == upper|lower && len(text) >= 20
}

// worded reports whether a text is names: words and numbers with signs between them, as in
// loading-spinner-1, or with camel also capitals, as in CommonUtilities. The last one may go on.
func worded(text string, camel bool) bool {
	const leastCamel, mostWord, mostNumber = 4, 15, 8
	before := kinds(0) // of the characters in front of a word, 0 for a sign
	for i := 0; i < len(text); {
		from, first := i, kindOf[text[i]]
		for i < len(text) && kindOf[text[i]] == first {
			i++
		}
		capitals := 0
		if first == upper {
			for capitals = i - from; i < len(text) && kindOf[text[i]] == lower; i++ {
			}
		}
		n, ended := i-from, i < len(text)
		switch {
		case first == 0:
		case first == digit:
			if n > mostNumber {
				return false
			}
		case n > mostWord || before != 0 && (!camel || first == lower) || capitals > 1 && n > capitals:
			return false
		case ended && (before != 0 && n < leastCamel || capitals > 0 && n == 2 && kindOf[text[i]] == digit): // Ab3
			return false
		case n > capitals && !spoken(text[from+max(0, capitals-1):i], ended):
			return false
		}
		before = first
	}
	return true
}

// spoken reports whether a word has vowels, and never many other letters side by side.
func spoken(word string, ended bool) bool {
	const most = 4
	n, none := 0, true
	for i := range len(word) {
		if n++; strings.IndexByte("aeiouyAEIOUY", word[i]) >= 0 {
			n, none = 0, false
		} else if n > most {
			return false
		}
	}
	return !none || !ended || len(word) < 3
}
