// Package textdiff describes the difference of two texts, for the errors of tests.
package textdiff

import (
	"fmt"
	"unicode/utf8"
)

// Alike returns how much of two texts is the same at their beginnings and ends, from 0 to 1.
func Alike(a, b string) float64 {
	n := max(len(a), len(b))
	if n == 0 {
		return 1
	}
	head, tail := common(a, b)
	return float64(head+tail) / float64(n)
}

// common returns the lengths of the common beginning and the common end of two texts.
func common(a, b string) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// Excerpts returns the number of the first character, from 1, in which two texts differ, and quotes
// the differing parts: cut to some characters, with a few around them.
func Excerpts(a, b string) (character int, inA, inB string) {
	head, tail := common(a, b)
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	return utf8.RuneCountInString(a[:head]) + 1, excerpt(a, head, tail), excerpt(b, head, tail)
}

// excerpt quotes the differing part of a text.
func excerpt(text string, head, tail int) string {
	const before, most = 12, 40
	runes := []rune(text[:head])
	from := max(0, len(runes)-before)
	middle := []rune(text[head:max(head, len(text)-tail)])
	out := string(runes[from:])
	if from > 0 {
		out = "…" + out
	}
	if len(middle) > most {
		return fmt.Sprintf("%q", out+string(middle[:most])+"…")
	}
	rest := []rune(text[head:])[len(middle):]
	if len(rest) > before {
		return fmt.Sprintf("%q", out+string(middle)+string(rest[:before])+"…")
	}
	return fmt.Sprintf("%q", out+string(middle)+string(rest))
}
