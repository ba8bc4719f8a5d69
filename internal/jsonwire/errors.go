package jsonwire

import (
	"strconv"
	"unicode/utf8"
)

// A SyntaxError describes a text that is not what its reader expects: malformed
// JSON, or a value of another type or outside the range that was asked for.
type SyntaxError struct {
	Offset int    // byte offset of the offending place in the text
	Msg    string // what was found and what was expected, without the offset
}

// Error returns the message followed by the offset.
func (e *SyntaxError) Error() string {
	return e.Msg + " at byte " + strconv.Itoa(e.Offset)
}

func errorAt(offset int, msg string) error {
	return &SyntaxError{Offset: offset, Msg: msg}
}

// unexpected returns the error for finding what is at text[i:] instead of want.
func unexpected(text string, i int, want string) error {
	return errorAt(i, "found "+describe(text, i)+", expected "+want)
}

// describe names what starts at text[i:]. Strings, objects and arrays are named
// by their kind only: their content says little and may be none of the reader's
// business.
func describe(text string, i int) string {
	if i >= len(text) {
		return "end of text"
	}
	switch c := text[i]; {
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '-' || isDigit(c):
		return "number " + excerpt(text[i:scalarEnd(text, i)])
	case isLetter(c):
		return excerpt(text[i:scalarEnd(text, i)])
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return strconv.Quote(text[i : i+size])
}

// excerpt quotes s, or the start of it if it is long.
func excerpt(s string) string {
	const limit = 20
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	n := limit
	for n > limit-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(s[:n]) + "..."
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
