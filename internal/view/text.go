package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is the one place where text of a log is made safe for a terminal: it must not move
// the cursor, end the line, or turn the text around.

// joiner joins emoji, and is harmless.
const joiner = '\u200d'

// Visible returns at most limit characters of s with everything escaped that is not printable,
// and an ellipsis if there are more. A negative limit means no limit.
func Visible(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		e, size := string(r), 1
		if !unicode.IsPrint(r) && r != joiner {
			e = escape(r)
			size = len(e)
		}
		if limit >= 0 && n+size > limit {
			return cut(b.String(), limit)
		}
		b.WriteString(e)
		n += size
	}
	return b.String()
}

// cut returns the first limit-1 characters of s and an ellipsis.
func cut(s string, limit int) string {
	if limit <= 0 {
		return ""
	}
	n := 0
	for i := range s {
		if n++; n == limit {
			return s[:i] + "…"
		}
	}
	return s + "…"
}

func escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// ForTerminal returns a text with the escapes of JSON in the place of characters that
// may control a terminal and that JSON need not escape: DEL, the controls of C1, marks of text direction and
// other characters without a picture. The JSON is the same value. Controls below a blank stay:
// they are the command's own.
func ForTerminal(text []byte) []byte {
	var out []byte
	from := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if controls(r) || r == utf8.RuneError && size == 1 {
			out = append(out, text[from:i]...)
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			from = i + size
		}
		i += size
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

// controls reports whether a character that JSON need not escape may control a terminal.
func controls(r rune) bool {
	return r == 0x7f || r >= 0x80 && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
