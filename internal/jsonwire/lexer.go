package jsonwire

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes is a set of bits for the escapes that a string has.
type escapes uint8

const (
	usualEscape escapes = 1 << iota // as AppendString writes it
	otherEscape
)

// scanString validates the string whose opening quote is text[i] and returns the offset after its
// closing quote and the escapes in it. The error concerns the first wrong byte.
func scanString(text string, i int) (end int, found escapes, err error) {
	for i++; ; {
		if i+8 <= len(text) {
			w := Load64(text, i)
			m := nonPlain(w)
			if m == 0 {
				i += 8
				continue
			}
			j := i + firstByte(m)
			if text[j] == '"' {
				return j + 1, found, nil
			}
			if text[j] == '\\' {
				// Escapes come in clusters. With a mask of all of them in the
				// word, the next word is not waiting for them.
				for m = allNonPlain(w); m != 0; {
					k := firstByte(m)
					j = i + k
					if text[j] != '\\' || j+1 >= len(text) || shortEscapes[text[j+1]] == 0 {
						break
					}
					found |= shortEscapes[text[j+1]]
					m &= m - 1
					m &^= 0x8000 << (k * 8 & 63) // the letter, which may be a quote
				}
				if m == 0 {
					i = max(i+8, j+2)
					continue
				}
			}
			i = j
		} else {
			for i < len(text) && text[i] < utf8.RuneSelf && !endsRun(text[i]) {
				i++
			}
			if i >= len(text) {
				return 0, 0, unexpected(text, i, "the end of a string")
			}
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1, found, nil
		case c == '\\':
			var esc escapes
			if i, esc, err = scanEscape(text, i); err != nil {
				return 0, 0, err
			}
			found |= esc
		case c >= utf8.RuneSelf:
			if i, err = scanRunes(text, i); err != nil {
				return 0, 0, err
			}
		default:
			return 0, 0, errorAt(i, "found control character "+strconv.Quote(text[i:i+1])+" in a string, expected an escape")
		}
	}
}

// scanRunes validates the characters from text[i] on up to the first that is
// ASCII, and returns the offset of that.
func scanRunes(text string, i int) (end int, err error) {
	for i+8 <= len(text) && text[i] >= utf8.RuneSelf {
		size := runeSize(Load64(text, i))
		if size == 0 {
			return 0, invalidUTF8(text, i)
		}
		i += size
	}
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return 0, invalidUTF8(text, i)
		}
		i += size
	}
	return i, nil
}

func invalidUTF8(text string, i int) error {
	return errorAt(i, "found invalid UTF-8 "+strconv.Quote(text[i:i+1]))
}

// shortEscapes holds the letters of the two-byte escapes.
var shortEscapes = [256]escapes{
	'"': usualEscape, '\\': usualEscape, '/': otherEscape,
	'b': usualEscape, 'f': usualEscape, 'n': usualEscape, 'r': usualEscape, 't': usualEscape,
}

// scanEscape validates the escape whose backslash is text[i], a surrogate pair
// counting as one, and returns the offset after it.
func scanEscape(text string, i int) (end int, found escapes, err error) {
	if i+1 >= len(text) {
		return 0, 0, unexpected(text, i+1, "the end of a string")
	}
	if esc := shortEscapes[text[i+1]]; esc != 0 {
		return i + 2, esc, nil
	}
	if text[i+1] == 'u' {
		r, ok := hexEscape(text, i)
		if !ok {
			return 0, 0, errorAt(i, "found \\u without four hex digits in a string")
		}
		if !utf16.IsSurrogate(r) {
			if esc := escapeOf[r&0xff]; r < 0x20 && esc>>56 == 6 && byte(esc>>40) == text[i+5] {
				return i + 6, usualEscape, nil
			}
			return i + 6, otherEscape, nil
		}
		if r2, ok := hexEscape(text, i+6); ok && utf16.DecodeRune(r, r2) != utf8.RuneError {
			return i + 12, otherEscape, nil
		}
		return 0, 0, errorAt(i, "found a lone surrogate in a string, expected a pair")
	}
	return 0, 0, errorAt(i, "found a backslash that begins no escape in a string")
}

// hexEscape returns the code unit of the \u escape at text[i:], if there is one.
func hexEscape(text string, i int) (r rune, ok bool) {
	if i+6 > len(text) || text[i] != '\\' || text[i+1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(text[i+2 : i+6]) {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape returns the string that raw, the part between the quotes, stands for. Since [Pointer]
// uses it on texts that nobody has validated, it takes everything: lone surrogates become U+FFFD,
// and an invalid escape stands for itself.
func unescape(raw string) string {
	var b strings.Builder
	b.Grow(len(raw))
	writeUnescaped(&b, raw)
	return b.String()
}

// textPiece is how much memory unescapeInto asks for at a time.
const textPiece = 8 << 10

// unescapeInto is unescape into a piece of memory that others share.
func unescapeInto(b *strings.Builder, raw string) string {
	if len(raw) > textPiece/4 {
		return unescape(raw)
	}
	if b.Cap()-b.Len() < len(raw) {
		*b = strings.Builder{}
		b.Grow(textPiece)
	}
	start := b.Len()
	writeUnescaped(b, raw)
	return b.String()[start:]
}

func writeUnescaped(b *strings.Builder, raw string) {
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			b.WriteString(raw)
			return
		}
		b.WriteString(raw[:i])
		c, size := raw[i+1], 2
		switch c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, ok := hexEscape(raw, i)
			if !ok {
				b.WriteString(raw[i : i+2])
				break
			}
			size = 6
			if utf16.IsSurrogate(r) {
				r2, _ := hexEscape(raw, i+6)
				if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
					size = 12
				}
			}
			b.WriteRune(r)
		default:
			b.WriteString(raw[i : i+2])
		}
		raw = raw[i+size:]
	}
}

// scanNumber validates the number at text[i:] and returns the offset after it.
func scanNumber(text string, i int) (end int, err error) {
	want := "a number"
	if i < len(text) && text[i] == '-' {
		i++
		want = "a digit"
	}
	if i >= len(text) || !isDigit(text[i]) {
		return 0, unexpected(text, i, want)
	}
	if text[i] == '0' {
		i++
		if i < len(text) && isDigit(text[i]) {
			return 0, leadingZero(text, i-1)
		}
	} else {
		i = skipDigits(text, i)
	}
	if i < len(text) && text[i] == '.' {
		i++
		if i >= len(text) || !isDigit(text[i]) {
			return 0, unexpected(text, i, "a digit after '.'")
		}
		i = skipDigits(text, i)
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if i >= len(text) || !isDigit(text[i]) {
			return 0, unexpected(text, i, "a digit in the exponent")
		}
		i = skipDigits(text, i)
	}
	return i, nil
}

// scanInteger reads the number at text[i:], which has neither fraction nor
// exponent, and returns its magnitude and the offset after it.
func scanInteger(text string, i int) (u uint64, end int, err error) {
	start := i
	want := "an integer"
	if i < len(text) && text[i] == '-' {
		i++
		want = "a digit"
	}
	first := i
	for i < len(text) && isDigit(text[i]) {
		u = u*10 + uint64(text[i]-'0')
		i++
	}
	switch {
	case i == first:
		return 0, 0, unexpected(text, i, want)
	case text[first] == '0' && i > first+1:
		return 0, 0, leadingZero(text, first)
	case i < len(text) && (text[i] == '.' || text[i]|0x20 == 'e'):
		return 0, 0, errorAt(start, "found a number with a fraction or an exponent, expected an integer")
	}
	if i-first > 19 { // 19 digits always fit, 20 may, and u has wrapped around if not
		if u, err = strconv.ParseUint(text[first:i], 10, 64); err != nil {
			return 0, 0, outOfRange(text, start, "64 bits")
		}
	}
	return u, i, nil
}

func skipDigits(text string, i int) int {
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	return i
}

func leadingZero(text string, i int) error {
	return errorAt(i, "found "+describe(text, i)+" with a leading zero")
}

func outOfRange(text string, i int, typ string) error {
	return errorAt(i, "found "+describe(text, i)+", which is out of range for "+typ)
}

// parseMillis converts num, a valid JSON number of milliseconds. It reports false
// if the result does not fit.
func parseMillis(num string) (d time.Duration, ok bool) {
	if len(num) <= 12 { // the usual case, in which nothing can overflow
		u, frac := time.Duration(0), -1 // digits after the point
		neg := num[0] == '-'
		i := 0
		if neg {
			i++
		}
		for ; i < len(num) && frac < 6; i++ {
			if isDigit(num[i]) {
				u = u*10 + time.Duration(num[i]-'0')
			} else if num[i] != '.' {
				break
			}
			if frac >= 0 || num[i] == '.' {
				frac++
			}
		}
		if i == len(num) {
			for range 6 - max(frac, 0) {
				u *= 10
			}
			if neg {
				u = -u
			}
			return u, true
		}
	}
	return parseDuration(num, 6)
}

// parseDuration converts num, a valid JSON number whose unit is 10^unit
// nanoseconds. It reports false if the result does not fit.
func parseDuration(num string, unit int64) (d time.Duration, ok bool) {
	neg := num[0] == '-'
	if neg {
		num = num[1:]
	}
	// The value is 0.DDD * 10^point nanoseconds, where DDD are the digits of num
	// without leading zeros. The digits before the point are collected in u.
	digits, exp := num, int64(0)
	if i := strings.IndexAny(num, "eE"); i >= 0 {
		digits, exp = num[:i], parseExponent(num[i+1:])
	}
	point := exp + unit
	if dot := strings.IndexByte(digits, '.'); dot >= 0 {
		point += int64(dot)
	} else {
		point += int64(len(digits))
	}
	for len(digits) > 0 && (digits[0] == '0' || digits[0] == '.') {
		if digits[0] == '0' {
			point--
		}
		digits = digits[1:]
	}
	if digits == "" || point < 0 {
		return 0, true
	}
	if point > 19 {
		return 0, false // the first digit is not 0, so at least 1e19
	}
	var u uint64 // below 1e19, which fits
	n := int64(0)
	for i := 0; i < len(digits); i++ {
		c := digits[i]
		if c == '.' {
			continue
		}
		if n == point {
			if c >= '5' {
				u++
			}
			break
		}
		u = u*10 + uint64(c-'0')
		n++
	}
	for ; n < point; n++ {
		u *= 10
	}
	if neg {
		return time.Duration(-u), u <= 1<<63
	}
	return time.Duration(u), u <= math.MaxInt64
}

// parseExponent converts the exponent of a valid JSON number. Where it returns
// something nearer to zero than the exponent, that is still beyond the number of
// digits of any text.
func parseExponent(s string) int64 {
	neg := s[0] == '-'
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	var e int64
	for i := 0; i < len(s) && e < 1<<56; i++ {
		e = e*10 + int64(s[i]-'0')
	}
	if neg {
		return -e
	}
	return e
}

// isWhole reports whether num, a valid JSON number, is whole.
func isWhole(num string) bool {
	exp := int64(0)
	if i := strings.IndexAny(num, "eE"); i >= 0 {
		num, exp = num[:i], parseExponent(num[i+1:])
	}
	whole, frac, _ := strings.Cut(num, ".")
	digits := strings.TrimRight(whole+frac, "0")
	return digits == "" || digits == "-" || exp >= int64(len(digits)-len(whole))
}

// usualFloat reports whether AppendFloat writes f as num, a valid JSON number
// that reads as f.
func usualFloat(num string, f float64) bool {
	// A number of up to 15 digits is the shortest that reads as it does, but for
	// zeros at the end of its fraction.
	if len(num) <= 15 && !strings.ContainsAny(num, "eE") && (f == 0 || math.Abs(f) >= 1e-6) {
		return usualFraction(num)
	}
	var buf [32]byte
	return string(AppendFloat(buf[:0], f)) == num
}

// usualFraction reports whether num, a valid JSON number without an exponent, has
// no zeros at the end of its fraction.
func usualFraction(num string) bool {
	return num[len(num)-1] != '0' || strings.IndexByte(num, '.') < 0
}

// usualMillis reports whether num, a valid JSON number, is written as
// AppendMillis writes the duration that it reads as.
func usualMillis(num string) bool {
	if strings.ContainsAny(num, "eE") || num == "-0" {
		return false
	}
	point := strings.IndexByte(num, '.')
	return point < 0 || len(num)-point <= len(".000000") && num[len(num)-1] != '0'
}

// usualTime reports whether AppendTime writes str, a valid time, as it stands.
func usualTime(str string) bool {
	const seconds = len("2006-01-02T15:04:05.")
	if str[len(str)-1] != 'Z' {
		return false
	}
	switch len(str) - seconds - len("Z") {
	case 3:
		return true
	case 6, 9:
		return str[len(str)-4:] != "000Z"
	}
	return false
}

// parseTime converts an RFC 3339 time. If s is not one, msg describes the fault and at is its
// offset in s.
func parseTime(s string) (t time.Time, at int, msg string) {
	const layout = "0000-00-00T00:00:00"
	if len(s) <= len(layout) || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, timeMismatch(s, layout), "wrong form, expected 2006-01-02T15:04:05Z"
	}
	century, year := twoDigits(s, 0), twoDigits(s, 2)
	month, day := twoDigits(s, 5), twoDigits(s, 8)
	hour, minute, second := twoDigits(s, 11), twoDigits(s, 14), twoDigits(s, 17)
	if max(century, year, month, day, hour, minute, second) > 99 {
		return time.Time{}, timeMismatch(s, layout), "wrong form, expected 2006-01-02T15:04:05Z"
	}
	year += century * 100
	switch {
	case month < 1 || month > 12:
		return time.Time{}, 5, "month out of range"
	case day < 1 || day > daysIn(month, year):
		return time.Time{}, 8, "day out of range"
	case hour > 23:
		return time.Time{}, 11, "hour out of range"
	case minute > 59:
		return time.Time{}, 14, "minute out of range"
	case second > 59:
		return time.Time{}, 17, "second out of range"
	}

	i := len(layout)
	ns := 0
	if s[i] == '.' {
		i++
		start := i
		for ; i < len(s) && isDigit(s[i]); i++ {
			if i == start+9 {
				return time.Time{}, i, "more than 9 fraction digits"
			}
			ns = ns*10 + int(s[i]-'0')
		}
		if i == start {
			return time.Time{}, i, "no digit after '.'"
		}
		for n := i - start; n < 9; n++ {
			ns *= 10
		}
	}

	t = time.Date(year, time.Month(month), day, hour, minute, second, ns, time.UTC)
	if i < len(s) && s[i] == 'Z' {
		if i+1 < len(s) {
			return time.Time{}, i + 1, "something after the Z"
		}
		return t, 0, ""
	}
	if i+6 != len(s) || (s[i] != '+' && s[i] != '-') || s[i+3] != ':' {
		return time.Time{}, i, "no offset, expected Z or +00:00"
	}
	hour, minute = twoDigits(s, i+1), twoDigits(s, i+4)
	if hour > 23 || minute > 59 {
		return time.Time{}, i, "offset out of range"
	}
	offset := time.Duration(hour*60+minute) * time.Minute
	if s[i] == '+' {
		offset = -offset
	}
	t = t.Add(offset)
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}, 0, "year out of range in UTC"
	}
	return t, 0, ""
}

// twoDigits returns the number that s[i:i+2] spells, or one above 99 if they are
// not digits.
func twoDigits(s string, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return 100
	}
	return int(a)*10 + int(b)
}

func daysIn(month, year int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// timeMismatch returns the offset of the first byte of s that layout, in which 0
// stands for any digit, does not allow, or the length of the shorter one.
func timeMismatch(s, layout string) int {
	for i := range min(len(s), len(layout)) {
		if layout[i] == '0' && !isDigit(s[i]) || layout[i] != '0' && s[i] != layout[i] {
			return i
		}
	}
	return min(len(s), len(layout))
}
