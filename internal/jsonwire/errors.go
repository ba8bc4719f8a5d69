package jsonwire

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A SyntaxError describes a text that its reader does not expect: malformed JSON, or a value of
// another type or outside the range that was asked for.
type SyntaxError struct {
	Offset int    // byte offset of the offending place in the text
	Msg    string // the found and the expected text, without the offset
}

// Error returns the message followed by the offset.
func (e *SyntaxError) Error() string {
	return e.Msg + " at byte " + strconv.Itoa(e.Offset)
}

func errorAt(offset int, msg string) error {
	return &SyntaxError{Offset: offset, Msg: msg}
}

// unexpected returns the error for text[i:] in place of want.
func unexpected(text string, i int, want string) error {
	return errorAt(i, "found "+describe(text, i)+", expected "+want)
}

// Errors go to program logs, which redaction does not reach. All errors of the library, also those
// of other packages, take the quoted parts of an event from the functions below: an id, a name or a
// word at a bounded length, and the type and length of any other value.

// maxBrief is how many bytes an error shows of one id, name or word.
const maxBrief = 64

// Brief returns an id or a name as errors show it: quoted, and if that takes more than
// 64 bytes its length only. It shows no part of one: a secret in it could not be told
// any more. Do not give it content.
func Brief(s string) string {
	if shown, ok := escaped(s); ok {
		return `"` + shown + `"`
	}
	return "(" + strconv.Itoa(len(s)) + " bytes)"
}

// escaped returns s escaped as in a string of Go, and whether it is short.
func escaped(s string) (string, bool) {
	if len(s) > maxBrief {
		return "", false
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1], len(q) <= maxBrief+2
}

// BriefName is [Brief] without quotes for a name that is a word, such as a type.
func BriefName(s string) string {
	if isWord(s) {
		return s
	}
	return Brief(s)
}

// Word returns a word of a closed list as errors show it: quoted if it is a word, and described
// otherwise.
func Word(s string) string {
	if isWord(s) {
		return `"` + s + `"`
	}
	return "a text" + ofBytes(len(s))
}

// isWord reports whether s is short and of letters, digits and "-_.:" only.
func isWord(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte("-_.:", c) < 0 {
			return false
		}
	}
	return 0 < len(s) && len(s) <= maxBrief
}

// BriefPointer returns a JSON pointer as errors show it: its names are shown as ids are,
// and a long pointer ends after some names.
func BriefPointer(p string) string {
	if p == "" {
		return ""
	}
	var b strings.Builder
	for name := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if b.Len() > 4*maxBrief {
			b.WriteString("/…")
			break
		}
		b.WriteByte('/')
		if shown, ok := escaped(name); ok {
			b.WriteString(shown)
		} else {
			b.WriteString(Brief(name))
		}
	}
	return b.String()
}

// Describe describes a JSON value by its type and its length.
func Describe(raw string) string {
	what := describe(raw, 0)
	if raw != "" && (raw[0] == '{' || raw[0] == '[') {
		what += ofBytes(len(raw))
	}
	return what
}

func ofBytes(n int) string {
	if n == 1 {
		return " of 1 byte"
	}
	return " of " + strconv.Itoa(n) + " bytes"
}

// describe names the token at text[i:], which may be malformed. It shows a single character that is
// neither letter nor digit; it gives the length of a longer token.
func describe(text string, i int) string {
	if i >= len(text) {
		return "end of text"
	}
	switch c := text[i]; {
	case c == '"':
		end, ok := lenientString(text, i)
		if !ok {
			return "a string without an end"
		}
		return "a string" + ofBytes(end-i-2)
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '-' || isDigit(c):
		return "a number"
	case isLetter(c):
		switch word := text[i:scalarEnd(text, i)]; word {
		case "null":
			return word
		case "true", "false":
			return "a boolean"
		default:
			return "a bare word" + ofBytes(len(word))
		}
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return strconv.Quote(text[i : i+size])
}

// scalarEnd returns the end of the run of bytes from i on that no structural
// byte, quote or whitespace interrupts: a number or a literal in well-formed
// text.
func scalarEnd(text string, i int) int {
	for i < len(text) {
		switch c := text[i]; c {
		case ',', ':', '{', '}', '[', ']', '"':
			return i
		default:
			if c <= ' ' {
				return i
			}
		}
		i++
	}
	return i
}

func isDigit(c byte) bool  { return c-'0' <= 9 }
func isLetter(c byte) bool { return c|0x20-'a' <= 'z'-'a' }
