package jsonwire

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Compact validates raw as one whole JSON value and returns it without the
// whitespace around and between its tokens: a substring of raw if there is none
// between them, which is raw itself if there is none at all, and a new string
// otherwise. Everything else is kept byte for byte.
//
// The error is a [*SyntaxError]: raw is not valid UTF-8, is not one value that
// [Scanner.Raw] accepts, or has something after that value.
func Compact(raw string) (string, error) {
	out, _, err := CompactWatched(raw, nil)
	return out, err
}

// A Watch is interested in some strings of JSON. It is asked about names and texts with an
// escape, with a byte of [Busy] or with one of its ends, and about numbers of at least
// LongNumber bytes.
type Watch interface {
	// Ends returns the possible ends of a string of interest.
	Ends() *Ends
	// Text reports whether a string is of interest. raw is its text without quotes; escaped tells
	// whether it has escapes.
	Text(raw string, escaped bool) bool
}

// Ends are ends of texts by their last three letters a, b and c, of which the lowest five bits
// count: bit a of the word at c<<5|b is set if one exists. Any a is set for texts of two letters.
type Ends [1 << 10]uint32

// has reports whether a text of n bytes, with the last four in w, may be of interest for its end:
// it may be if the end has a byte that is not a letter.
func (e *Ends) has(w uint32, n int) bool {
	letters := uint32(0x40404000) // bytes from 0x40 on: letters and few others
	if n == 2 {
		letters = 0x40400000
	}
	return w&letters != letters || e[w>>24%32<<5|w>>16%32]>>(w>>8%32)&1 != 0
}

// LongNumber is the length of the numbers about which a [Watch] is asked.
const LongNumber = 13

// CompactWatched is Compact for a caller that is interested in some strings, at any depth: it
// reports whether watch returned true for one. After that watch is not called again. A nil watch
// finds none.
func CompactWatched(raw string, watch Watch) (compact string, found bool, err error) {
	s := Scanner{text: raw, watch: watch}
	if watch != nil {
		s.ends = watch.Ends()
	}
	out, err := s.Raw()
	if err != nil {
		return "", false, err
	}
	if err := s.End(); err != nil {
		return "", false, err
	}
	return out, watch != nil && s.watch == nil, nil
}

// Members are the names, unescaped, and the values of an object's members, as
// [Scanner.Raw] returns them, up to the first that is not valid. Anything else has
// none.
func Members(object string) iter.Seq2[string, string] {
	return func(yield func(name, raw string) bool) {
		if object == "" {
			return // the usual case; the error of Object would cost more
		}
		var s Scanner
		s.Reset(object)
		if s.Object() != nil {
			return
		}
		for {
			name, ok, err := s.Member()
			if err != nil || !ok {
				return
			}
			raw, err := s.Raw()
			if err != nil || !yield(name, raw) {
				return
			}
		}
	}
}

// Elements is Members for an array.
func Elements(array string) iter.Seq[string] {
	return func(yield func(raw string) bool) {
		var s Scanner
		s.Reset(array)
		if s.Array() != nil {
			return
		}
		for {
			ok, err := s.Elem()
			if err != nil || !ok {
				return
			}
			raw, err := s.Raw()
			if err != nil || !yield(raw) {
				return
			}
		}
	}
}

// Member returns a member of an object, or "".
func Member(object, name string) string {
	for n, raw := range Members(object) {
		if n == name {
			return raw
		}
	}
	return ""
}

// HasMember reports whether an object has a member of that name before anything
// in it that is not valid.
func HasMember(object, name string) bool { return Member(object, name) != "" }

// Text returns the text of a JSON string, and none of anything else.
func Text(raw string) string {
	if len(raw) == 0 || raw[0] != '"' {
		return "" // without the cost of an error
	}
	var s Scanner
	s.Reset(raw)
	text, err := s.String()
	if err != nil {
		return ""
	}
	return text
}

// Spells reports whether Text(raw) is text, for a raw that is a valid string. It
// builds nothing.
func Spells(raw, text string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	raw = raw[1 : len(raw)-1]
	for len(raw) >= 8 && len(text) >= 8 {
		w := Load64(raw, 0)
		escapes := w ^ lo*'\\'
		escapes = (escapes - lo) & ^escapes & hi
		other := w ^ Load64(text, 0)
		if escapes == 0 {
			if other != 0 {
				return false
			}
			raw, text = raw[8:], text[8:]
			continue
		}
		n := firstByte(escapes) // the bytes before the first escape
		if other&(1<<(8*n)-1) != 0 {
			return false
		}
		if c := raw[n+1]; c != '"' && c != '\\' || text[n] != c {
			return unescape(raw) == text
		}
		raw, text = raw[n+2:], text[n+1:]
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return raw == text
	}
	return unescape(raw) == text
}

// Valid returns nil if raw is one whole JSON value, possibly with whitespace
// around it, and otherwise the error that Compact would.
func Valid(raw string) error {
	var s Scanner
	s.Reset(raw)
	if err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

// AppendRespelled appends valid JSON with the escapes in its strings as [AppendString] writes
// them. dst may be text.
func AppendRespelled(dst, text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u`)) && !bytes.Contains(text, []byte(`\/`)) {
		return append(dst, text...)
	}
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i:]
		size := 2
		switch text[1] {
		case '/':
			dst = append(dst, '/')
		case 'u':
			escape := string(text[:min(12, len(text))]) // on the stack
			r, _ := hexEscape(escape, 0)
			size = min(6, len(text))
			if r2, _ := hexEscape(escape, 6); utf16.DecodeRune(r, r2) != utf8.RuneError {
				r, size = utf16.DecodeRune(r, r2), 12
			}
			start := len(dst)
			dst = AppendString(dst, string(r))
			dst = append(dst[:start], dst[start+1:len(dst)-1]...) // without its quotes
		default:
			dst = append(dst, text[:2]...)
		}
		text = text[size:]
	}
}

// Quote returns s as a quoted JSON string, in the form of [AppendString].
func Quote(s string) string {
	var buf [144]byte // on the stack, so that a short s costs one allocation
	return string(AppendString(buf[:0], s))
}

// Repair mends the damage to the characters of a JSON text that a careless
// writer does: each byte that is not part of valid UTF-8 becomes U+FFFD, and in
// strings each \u escape of a surrogate without its other half becomes \ufffd.
// Everything else stays as it is, valid or not. Repair reports whether it changed
// anything; if not, it returns text itself and does not allocate.
func Repair(text string) (string, bool) {
	repaired := repairSurrogates(repairUTF8(text))
	// Comparing a string with itself is cheap, and a replacement always differs from the replaced
	// text.
	return repaired, repaired != text
}

func repairUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 2*utf8.UTFMax)
	// Ranging over a string yields one U+FFFD for each invalid byte.
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

func repairSurrogates(text string) string {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return text
	}
	var b strings.Builder
	start := 0 // text[start:i] is not yet copied
	inString := false
	for i := 0; i < len(text); {
		switch {
		case text[i] == '"':
			inString = !inString
			i++
		case text[i] != '\\' || !inString:
			i++
		default:
			r, ok := hexEscape(text, i)
			if !ok {
				i += 2 // an escaped quote or backslash is neither
				break
			}
			if !utf16.IsSurrogate(r) {
				i += 6
				break
			}
			if r2, _ := hexEscape(text, i+6); utf16.DecodeRune(r, r2) != utf8.RuneError {
				i += 12
				break
			}
			b.WriteString(text[start:i])
			b.WriteString(`\ufffd`)
			i += 6
			start = i
		}
	}
	if start == 0 {
		return text
	}
	b.WriteString(text[start:])
	return b.String()
}
