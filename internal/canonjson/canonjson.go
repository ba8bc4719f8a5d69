// Package canonjson writes JSON values in one canonical form, for digests: RFC 8785, except
// that a number keeps its exact decimal value where a float64 would change it, so that two
// long integers that differ have different digests.
package canonjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Append appends the canonical form of a JSON value to dst. It returns an error for text that
// is not one JSON value. An object that repeats a name has the last value of the name.
func Append(dst []byte, text string) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return dst, fmt.Errorf("canonjson: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return dst, fmt.Errorf("canonjson: text after the value, at offset %d", d.InputOffset())
	}
	return appendValue(dst, v), nil
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for i, name := range sorted(v) {
			dst = appendValue(append(appendString(separate(dst, i), name), ':'), v[name])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, element := range v {
			dst = appendValue(separate(dst, i), element)
		}
		return append(dst, ']')
	case string:
		return appendString(dst, v)
	case json.Number:
		return appendNumber(dst, v.String())
	case bool:
		return strconv.AppendBool(dst, v)
	}
	return append(dst, "null"...)
}

func separate(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

// sorted returns the names of an object in the order of their UTF-16 code units.
func sorted(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return names
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r >= ' ':
			dst = utf8.AppendRune(dst, r)
		case strings.ContainsRune("\b\t\n\f\r", r):
			dst = append(dst, '\\', "btn-fr"[r-'\b'])
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return append(dst, '"')
}

// appendNumber appends a number as ECMAScript prints it, or by its decimal digits if that
// would be another number.
func appendNumber(dst []byte, text string) []byte {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && !math.IsInf(f, 0) {
		if printed := ecmaScript(f); decimal(printed) == decimal(text) {
			return append(dst, printed...)
		}
	}
	return append(dst, decimal(text)...)
}

// ecmaScript returns a number as ECMAScript prints it.
func ecmaScript(f float64) string {
	if f == 0 {
		return "0"
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	digits, exponent, has := strings.Cut(text, "e")
	if !has {
		return text
	}
	return digits + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// decimal returns the digits of a number without zeros at their ends, and the exponent of the
// last one: 1200 and 1.2e3 are 12e2. It takes JSON numbers of any length.
func decimal(text string) string {
	text, negative := strings.CutPrefix(text, "-")
	digits, power := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		digits, power = text[:i], text[i+1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	shift := len(digits) - len(trimmed) - len(fraction)
	exponent, err := strconv.ParseInt(cmpPlus(power), 10, 64)
	if err != nil || exponent > math.MaxInt64/2 || exponent < math.MinInt64/2 { // nobody writes it
		return strings.Join([]string{sign(negative), trimmed, "e", power, "e", strconv.Itoa(shift)}, "")
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s", sign(negative), trimmed)
	if e := exponent + int64(shift); e != 0 {
		fmt.Fprintf(&b, "e%d", e)
	}
	return b.String()
}

func sign(negative bool) string {
	if negative {
		return "-"
	}
	return ""
}

// cmpPlus returns the digits of an exponent without a plus.
func cmpPlus(power string) string {
	if power == "" {
		return "0"
	}
	return strings.TrimPrefix(power, "+")
}
