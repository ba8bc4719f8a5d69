package jsonwire

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s to dst as a quoted JSON string and returns the
// extended slice.
//
// It escapes what JSON requires and nothing else: the quote, the backslash and
// the control characters below U+0020, with the short forms \b, \f, \n, \r and
// \t where they exist and \u00xx in lower case otherwise. Each byte of s that is
// not part of valid UTF-8 is written as U+FFFD.
func AppendString(dst []byte, s string) []byte {
	if Plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	dst = append(dst, '"')
	start := 0 // s[start:i] is plain and not yet copied
	for i := 0; ; {
		i = plainPrefix(s, i)
		if i == len(s) {
			break
		}
		// Bytes that need a closer look come in clusters, so stay with them
		// until the first plain one.
		for i < len(s) {
			c := s[i]
			if c >= utf8.RuneSelf {
				r, size := utf8.DecodeRuneInString(s[i:])
				if r != utf8.RuneError || size > 1 {
					i += size
					continue
				}
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
			} else if endsRun(c) {
				dst = append(dst, s[start:i]...)
				dst = appendEscape(dst, c)
			} else {
				break
			}
			i++
			start = i
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Plain reports whether s is ASCII without anything to escape, so that it stands
// between quotes as it is.
func Plain(s string) bool {
	if len(s) < 8 {
		for i := range len(s) {
			if s[i] >= utf8.RuneSelf || endsRun(s[i]) {
				return false
			}
		}
		return true
	}
	for i := 0; i+8 <= len(s); i += 8 {
		if nonPlain(load64(s, i)) != 0 {
			return false
		}
	}
	return nonPlain(load64(s, len(s)-8)) == 0 // the rest, and some bytes again
}

// plainPrefix returns the index, at or after i, of the first byte of s that is
// not plain ASCII text, or len(s).
func plainPrefix(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		if m := nonPlain(load64(s, i)); m != 0 {
			return i + firstByte(m)
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && !endsRun(s[i]) {
		i++
	}
	return i
}

// appendEscape appends the escape for c, which endsRun accepts.
func appendEscape(dst []byte, c byte) []byte {
	if short := shortEscapes[c]; short != 0 {
		return append(dst, '\\', short)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// shortEscapes holds the letters of the two-byte escapes.
var shortEscapes = [256]byte{
	'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't',
}

// AppendFloat appends f to dst as a JSON number and returns the extended slice.
// The text is the shortest that reads back as f, in the form that ECMAScript and
// [encoding/json] use: an exponent only below 1e-6 and from 1e21 on. Negative
// zero is written as -0.
//
// JSON has no text for NaN and the infinities, which callers refuse; null stands
// in their place, as in ECMAScript.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if format == 'e' {
		// strconv pads the exponent to two digits; ES6 writes e-9, not e-09.
		if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
	}
	return dst
}

// AppendMillis appends d to dst as a JSON number of milliseconds and returns the
// extended slice. The number is exact: it has as many fraction digits as d
// needs, at most six, and never an exponent. [Scanner.Millis] reads it back
// as d.
func AppendMillis(dst []byte, d time.Duration) []byte {
	u := uint64(d)
	if d < 0 {
		dst = append(dst, '-')
		u = -u // right for the smallest Duration too, which has no positive twin
	}
	dst = strconv.AppendUint(dst, u/1e6, 10)
	frac := u % 1e6
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.')
	for div := uint64(1e5); frac != 0; div /= 10 {
		dst = append(dst, byte('0'+frac/div))
		frac %= div
	}
	return dst
}

// AppendTime appends t to dst as a quoted RFC 3339 time in UTC, such as
// "2006-01-02T15:04:05.000Z", and returns the extended slice. There are three
// fraction digits, or six or nine if t is finer than that, so nothing of t but
// its location and monotonic reading is lost. [Scanner.Time] reads it back.
//
// The caller guarantees that the year of t in UTC is in 0 to 9999. Other years
// are written as [time.Time.AppendFormat] writes them, which RFC 3339 does not
// allow and Scanner.Time refuses.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	y, month, d := t.Date()
	if y < 0 || y > 9999 {
		return t.AppendFormat(dst, `"2006-01-02T15:04:05.000000000Z07:00"`)
	}
	h, m, s := t.Clock()
	ns := t.Nanosecond()
	dst = append(dst, '"',
		byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+month/10), byte('0'+month%10), '-',
		byte('0'+d/10), byte('0'+d%10), 'T',
		byte('0'+h/10), byte('0'+h%10), ':',
		byte('0'+m/10), byte('0'+m%10), ':',
		byte('0'+s/10), byte('0'+s%10), '.')
	dst = append3(dst, ns/1e6)
	if ns%1e6 != 0 {
		dst = append3(dst, ns/1e3%1e3)
		if ns%1e3 != 0 {
			dst = append3(dst, ns%1e3)
		}
	}
	return append(dst, 'Z', '"')
}

// append3 appends n, which is in 0 to 999, as three digits.
func append3(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
}
