// Package canary plants a marker into lines of JSON, for tests that no error quotes
// content.
package canary

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

const (
	head   = "C4N4RYs3cr3tC4N4RY"
	tail   = "t4ilC4N4RY"
	number = "31415926535897932384" // no integer of 64 bits
)

// Text is content: it begins with a marker, and has another marker after 64 bytes.
const Text = head + " is what an agent read, wrote or thought, and no business of a log of errors, " + tail

// most is how long the text of an error may be.
const most = 1000

// A Line is a line with one value replaced.
type Line struct {
	Text    string
	Pointer string // of the value
	// Quotable reports whether errors may show the beginning of the planted text: it
	// stands where an id or a name of a member may stand. They show up to 64 bytes.
	Quotable bool
}

// wrong are the values that are planted: of every type, and broken in every way.
var wrong = []struct {
	raw  string
	name bool // the text is the name of a member
}{
	{raw: `"@"`},
	{raw: `"2026-01-02T@"`},
	{raw: `["@"]`},
	{raw: `[["@",1]]`},
	{raw: `{"a":"@"}`},
	{raw: `{"a":{"kind":"@"}}`},
	{raw: `{"a":"@"`},
	{raw: `{"a" "@"}`},
	{raw: `["@" "@"]`},
	{raw: `{@:1}`},
	{raw: `@`},
	{raw: `'@'`},
	{raw: `-@`},
	{raw: `1@`},
	{raw: `true@`},
	{raw: `"" @`},
	{raw: `"@`},
	{raw: `"@\@"`},
	{raw: `"@\u12@"`},
	{raw: `"@\ud800@"`},
	{raw: "\"@\n@\""},
	{raw: "\"@\xff@\""},
	{raw: number},
	{raw: `-` + number},
	{raw: number + `.5`},
	{raw: `0` + number},
	{raw: `{"a":` + number + `x}`},
	{raw: `null`},
	{raw: `"` + strings.Repeat(`\u0001`, most) + `"`},
	{raw: `{"@":1}`, name: true},
	{raw: `{"@":{"@":[1,{"@":}]}}`, name: true},
	{raw: `{"@":1,"@":2}`, name: true},
	{raw: `{"@"}`, name: true},
}

// Lines yields a line of JSON with every value replaced by every wrong one. quotable
// reports whether the value at a pointer is an id or a name.
func Lines(line string, quotable func(pointer string) bool) iter.Seq[Line] {
	return func(yield func(Line) bool) {
		each(line, 0, "", func(pointer string, start, end int) bool {
			id := quotable(pointer)
			for _, w := range wrong {
				text := line[:start] + strings.ReplaceAll(w.raw, "@", Text) + line[end:]
				if !yield(Line{text, pointer, w.name || id && w.raw[0] == '"'}) {
					return false
				}
			}
			return true
		})
	}
}

// Leak describes the content that the text of an error reveals, or returns "".
func Leak(text string, quotable bool) string {
	for _, planted := range []string{head, tail, number} {
		if strings.Contains(text, planted) && (planted != head || !quotable) {
			return fmt.Sprintf("an error shows content: %.300q", text)
		}
	}
	if len(text) > most {
		return fmt.Sprintf("an error of %d bytes: %.300q", len(text), text)
	}
	return ""
}

// each calls visit for the value at text[i:], which is valid JSON without blanks, and
// for the values in it. It returns the end of the value, or -1 if visit returned false.
func each(text string, i int, pointer string, visit func(pointer string, start, end int) bool) (end int) {
	start := i
	switch text[i] {
	case '"':
		end = textEnd(text, i)
	case '{', '[':
		for n := 0; ; n++ {
			if i++; text[i] == '}' || text[i] == ']' {
				end = i + 1
				break
			}
			token := strconv.Itoa(n)
			if text[start] == '{' {
				name := i
				i = textEnd(text, i)
				token = text[name+1 : i-1]
				i++ // the colon
			}
			if i = each(text, i, pointer+"/"+token, visit); i < 0 {
				return -1
			}
			if text[i] != ',' {
				end = i + 1
				break
			}
		}
	default:
		end = i + len(text[i:]) - len(strings.TrimLeft(text[i:], "+-.0123456789eEaflnrstu"))
	}
	if !visit(pointer, start, end) {
		return -1
	}
	return end
}

func textEnd(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}
