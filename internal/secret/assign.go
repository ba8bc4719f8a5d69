package secret

import "strings"

// maxName is how far a name is looked for in front of its value.
const maxName = 64

// nameChars are the characters of names of variables, headers and parameters.
var nameChars = chars("_-.")

// named finds the value behind a name and '=' or ':', whatever language the text is
// written in: members of JSON, also of JSON in strings, headers, assignments,
// parameters.
func named(s *Scanner, text string, lo, i int, final bool) (region, verdict) {
	end := i
	if text[i] == '=' && i > lo && strings.IndexByte("=!<>+-:", text[i-1]) >= 0 { // an operator
		return region{}, no
	}
	for end > lo && text[end-1] == ' ' {
		end--
	}
	quoted := false
	if end > lo && (text[end-1] == '"' || text[end-1] == '\'') {
		quoted = true
		for end--; end > lo && text[end-1] == '\\'; {
			end--
		}
	}
	from := end
	for from > lo && end-from < maxName && (nameChars[text[from-1]] || quoted && text[from-1] == ' ' || text[from-1] == ']' || text[from-1] == '[') {
		from--
	}
	name := text[from:end]
	of := s.names.strength(name)
	if of == none {
		return region{}, no
	}
	// The value.
	k := i + 1
	for k < len(text) && (text[k] == ' ' || text[k] == '\t') {
		k++
	}
	start := k
	for k < len(text) && text[k] == '\\' {
		k++
	}
	if k == len(text) { // nothing of it is there, but perhaps what is in front of a quote
		return region{from: start, rule: Key}, verdictOf(k > start && !final)
	}
	if c := text[k]; c == '"' || c == '\'' || c == '`' {
		return region{from: k + 1, rule: Key, until: untilQuote, quote: c, slashes: k - start}, yes
	}
	if quoted && text[i] == ':' { // of JSON, but no text
		r := region{from: start, rule: Key, until: untilChar, chars: numberChars}
		to, closed := r.end(text, start)
		switch {
		case to == start || of == count || to-start < 4 && of == weak && closed:
			return region{}, no
		case !closed && !final:
			return r, maybe
		}
		return r, yes
	}
	return bare(of, name, text, i, start, final)
}

func verdictOf(mayBe bool) verdict {
	if mayBe {
		return maybe
	}
	return no
}

var numberChars = func() *[256]bool {
	set := new([256]bool)
	for c := '0'; c <= '9'; c++ {
		set[c] = true
	}
	for _, c := range "+-.eE" {
		set[c] = true
	}
	return set
}()

// valueChars are those of a value without quotes.
var valueChars = func() *[256]bool {
	set := new([256]bool)
	for c := 0x21; c < 256; c++ {
		set[c] = strings.IndexByte("&;,\"'`<>()[]{}|\\", byte(c)) < 0
	}
	return set
}()

// bare finds a value without quotes that begins at start. The separator is at i.
func bare(of strength, name, text string, i, start int, final bool) (region, verdict) {
	if header(name) && text[i] == ':' {
		return region{from: start, rule: Key, until: untilLine}, yes
	}
	r := region{from: start, rule: Key, until: untilChar, chars: valueChars}
	to, closed := r.end(text, start)
	value := text[start:min(to, start+maxName)] // what a stream sees before it decides
	spaced := start > i+1 || i > 0 && text[i-1] == ' '
	switch {
	case !closed && !final && len(value) < maxName:
		return r, maybe
	case value == "" || value[0] == '$' || value[0] == '%' || value[0] == '*' || strings.EqualFold(value, name):
		return r, no
	case of == count && digits(value), len(value) < 4:
		return r, no
	case spaced, of != strong: // a sentence, or code
		if !random(value) || !closed && !final && len(value) < unfinished {
			return r, no
		}
	case text[i] == ':' && !random(value):
		return r, no
	}
	return r, yes
}

// header reports whether the value of a header is all that follows on the line.
func header(name string) bool {
	for _, h := range [...]string{"authorization", "cookie"} {
		if len(name) >= len(h) && strings.EqualFold(name[len(name)-len(h):], h) {
			return true
		}
	}
	return false
}

func digits(text string) bool { return strings.Trim(text, "0123456789.,_") == "" }

// flagged finds the value of a flag of a command: --password x, --token=x is named.
func flagged(s *Scanner, text string, lo, i int, final bool) (region, verdict) {
	if !strings.HasPrefix(text[i:], "--") || i > lo && text[i-1] > ' ' && text[i-1] != '"' && text[i-1] != '\'' {
		return region{}, no
	}
	k := i + 2
	for k < len(text) && nameChars[text[k]] {
		k++
	}
	if k == len(text) || text[k] != ' ' {
		return region{}, no
	}
	of := s.names.strength(text[i+2 : k])
	if of < count {
		return region{}, no
	}
	start := k + 1
	if start == len(text) {
		return region{}, no
	}
	if c := text[start]; c == '"' || c == '\'' {
		return region{from: start + 1, rule: Key, until: untilQuote, quote: c}, yes
	}
	r := region{from: start, rule: Key, until: untilChar, chars: valueChars}
	to, closed := r.end(text, start)
	switch value := text[start:min(to, start+maxName)]; {
	case !closed && !final && len(value) < maxName:
		return r, maybe
	case value == "" || value[0] == '-' || value[0] == '$' || of == count && digits(value):
		return r, no
	}
	return r, yes
}
