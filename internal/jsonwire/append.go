package jsonwire

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s to dst as a quoted JSON string and returns the
// extended slice.
//
// It escapes only the characters that JSON requires: the quote, the backslash and the control
// characters below U+0020, with the short forms \b, \f, \n, \r and \t where they exist and \u00xx
// in lower case otherwise. Each byte of s that is not part of valid UTF-8 is written as U+FFFD.
func AppendString(dst []byte, s string) []byte {
	// The bytes of s are moved a word at a time, and a word is stored before it is known how much
	// of it may stay: later bytes overwrite the rest. So there is always room for the rest of s and
	// a few bytes more, and b is dst with its spare capacity, of which n bytes are written.
	n := len(dst)
	b := dst[:cap(dst)]
	if len(b)-n < len(s)+appendSlack {
		b = growTo(dst, len(s)+appendSlack)
	}
	b[n] = '"'
	n++

	// Most strings are plain, at least at their start. The last words of a run
	// overlap those before, which is quicker than to move single bytes.
	i := 0
	switch last := len(s) - 16; {
	case last >= 0:
		for {
			from, to := s[i:i+16], b[n+i:n+i+16]
			w0, w1 := Load64(from, 0), Load64(from, 8)
			binary.LittleEndian.PutUint64(to, w0)
			binary.LittleEndian.PutUint64(to[8:], w1)
			if nonPlain(w0)|nonPlain(w1) != 0 {
				break
			}
			if i == last {
				n += len(s)
				b[n] = '"'
				return b[:n+1]
			}
			i = min(i+16, last)
		}
	case len(s) >= 8:
		to := b[n : n+len(s)]
		w0, w1 := Load64(s, 0), Load64(s, len(s)-8)
		binary.LittleEndian.PutUint64(to, w0)
		binary.LittleEndian.PutUint64(to[len(to)-8:], w1)
		if nonPlain(w0)|nonPlain(w1) == 0 {
			n += len(s)
			b[n] = '"'
			return b[:n+1]
		}
	case len(s) >= 4:
		to := b[n : n+len(s)]
		w0, w1 := load32(s, 0), load32(s, len(s)-4)
		binary.LittleEndian.PutUint32(to, uint32(w0))
		binary.LittleEndian.PutUint32(to[len(to)-4:], uint32(w1))
		if nonPlain(w0|w1<<32) == 0 {
			n += len(s)
			b[n] = '"'
			return b[:n+1]
		}
	}
	return appendRest(b, n+i, s, i)
}

// appendRest is the rest of AppendString from s[i] on, which goes to b[n:]. It is
// a function of its own so that the plain strings do not pay for its frame.
func appendRest(b []byte, n int, s string, i int) []byte {
	for {
		var w uint64
		size := 8
		if i+8 <= len(s) {
			w = Load64(s, i)
		} else if size = len(s) - i; size == 0 {
			break
		} else {
			w = lastWord(s, size)
		}
		binary.LittleEndian.PutUint64(b[n:n+8], w)
		m := nonPlain(w)
		if m == 0 {
			i += size
			n += size
			continue
		}
		k := firstByte(m)
		i += k
		n += k
		if esc := escapeOf[s[i]]; esc != 0 {
			i++
			binary.LittleEndian.PutUint64(b[n:n+8], esc)
			n += int(esc >> 56)
			if len(b)-n < len(s)-i+appendSlack {
				b = growTo(b[:n], len(s)-i+appendSlack)
			}
			continue
		}
		// Text that is not ASCII comes in clusters, so stay with it until the
		// first byte that is.
		for i < len(s) && s[i] >= utf8.RuneSelf {
			if i+8 <= len(s) {
				w = Load64(s, i)
			} else {
				w = lastWord(s, len(s)-i)
			}
			binary.LittleEndian.PutUint64(b[n:n+8], w)
			size := runeSize(w)
			i += size
			n += size
			if size == 0 {
				i++
				n += copy(b[n:], "\uFFFD")
				if len(b)-n < len(s)-i+appendSlack {
					b = growTo(b[:n], len(s)-i+appendSlack)
				}
			}
		}
	}
	b[n] = '"'
	return b[:n+1]
}

// appendSlack is the room that AppendString wants beyond the text that is left: for the closing
// quote, for the extra length of an escape, and for the rest of a word.
const appendSlack = 16

// growTo returns b with room for at least room bytes more and with all of its
// capacity as its length. Like append it grows by a factor, so growing again and
// again is cheap.
//
//go:noinline
func growTo(b []byte, room int) []byte {
	b = append(b, make([]byte, room)...)
	return b[:cap(b)]
}

// escapeOf holds the escapes of the bytes that need one, as a word that starts
// with the escape and has its length as its last byte, and 0 for other bytes.
var escapeOf = func() (table [256]uint64) {
	for c := range byte(utf8.RuneSelf) {
		esc := `\u00` + hexDigits[c>>4:c>>4+1] + hexDigits[c&0xf:c&0xf+1]
		switch c {
		case '"', '\\':
			esc = `\` + string(rune(c))
		case '\b':
			esc = `\b`
		case '\f':
			esc = `\f`
		case '\n':
			esc = `\n`
		case '\r':
			esc = `\r`
		case '\t':
			esc = `\t`
		default:
			if c >= 0x20 {
				continue
			}
		}
		word := [8]byte{7: byte(len(esc))}
		copy(word[:], esc)
		table[c] = binary.LittleEndian.Uint64(word[:])
	}
	return table
}()

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
	dst = AppendUint(dst, u/1e6)
	frac := u % 1e6
	if frac == 0 {
		return dst
	}
	return AppendFraction(append(dst, '.'), frac, 6)
}

// AppendFraction appends the digits of frac, of which there are width with the
// zeros at its start, up to the last that is not zero. width is at most 9.
func AppendFraction(dst []byte, frac uint64, width int) []byte {
	switch width { // those that there are
	case 9:
	case 6:
		frac *= 1e3
	case 3:
		frac *= 1e6
	default:
		for ; width < 9; width++ {
			frac *= 10
		}
	}
	n := len(dst)
	b := dst[:cap(dst)]
	if len(b)-n < 16 {
		b = growTo(dst, 16)
	}
	high, low := frac/1e6, uint32(frac%1e6)
	to := b[n : n+16]
	binary.LittleEndian.PutUint64(to, digits3(uint32(high))|digits3(low/1e3)<<24)
	binary.LittleEndian.PutUint64(to[6:], digits3(low%1e3))
	start := n
	n += 9
	if low == 0 { // milliseconds, or none
		n -= 6
	}
	for n > start && b[n-1] == '0' {
		n--
	}
	return b[:n]
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
	sec, ns := t.Unix(), uint32(t.Nanosecond())
	since := uint64(sec) - firstSecond // of year 0
	if since >= secondsTo9999 {
		return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000000000Z07:00"`)
	}
	year, month, day := civil(uint32(since / 86400))
	clock := uint32(since % 86400)
	hour, minute := clock/3600, clock/60%60

	n := len(dst)
	b := dst[:cap(dst)]
	if len(b)-n < 32 {
		b = growTo(dst, 32)
	}
	to := b[n : n+32] // enough for nine digits
	binary.LittleEndian.PutUint64(to, '"'|digits2(year/100)<<8|digits2(year%100)<<24|'-'<<40|digits2(month)<<48)
	binary.LittleEndian.PutUint64(to[8:], '-'|digits2(day)<<8|'T'<<24|digits2(hour)<<32|':'<<48|digits2(minute)<<56)
	binary.LittleEndian.PutUint64(to[16:], digits2(minute)>>8|':'<<8|digits2(clock%60)<<16|'.'<<32|digits3(ns/1e6)<<40)
	end := 24
	if ns%1e6 != 0 {
		binary.LittleEndian.PutUint32(to[24:], uint32(digits3(ns/1e3%1e3)))
		end = 27
		if ns%1e3 != 0 {
			binary.LittleEndian.PutUint32(to[27:], uint32(digits3(ns%1e3)))
			end = 30
		}
	}
	to[end], to[end+1] = 'Z', '"'
	return b[:n+end+2]
}

// The seconds of Unix time at the start of year 0, as they stand in a uint64, and
// how many there are until the end of year 9999, which is 25 times 400 years.
const (
	firstSecond   = 1<<64 - 719528*86400
	secondsTo9999 = 25 * 146097 * 86400
)

// civil returns the date that is days after the first of January of year 0. It
// is the algorithm of Neri and Schneider, "Euclidean affine functions and their
// application to calendar algorithms" (2022): years begin in March, so that leap
// days come last, and the divisions are by constants.
func civil(days uint32) (year, month, day uint32) {
	// The year 0 that the algorithm counts from starts on the first of March,
	// 60 days later; 400 years more keep everything above 0.
	n := 4*(days+146097-60) + 3
	century, n := n/146097, n%146097
	p := uint64(2939745) * uint64(n|3)
	year, dayOfYear := uint32(p>>32), uint32(p)/2939745/4
	n = 2141*dayOfYear + 197913
	month, day = n>>16, n&0xFFFF/2141+1
	year += 100*century - 400
	if dayOfYear >= 306 { // January or February
		year++
		month -= 12
	}
	return year, month, day
}

// digits2 returns the two digits of n, which is in 0 to 99, as the text that a
// little-endian word of them is.
func digits2(n uint32) uint64 {
	tens := n * 103 >> 10
	return uint64('0'*0x101 + tens + (n-10*tens)<<8)
}

// digits3 is digits2 with three digits, for 0 to 999.
func digits3(n uint32) uint64 {
	return uint64('0'+n/100) | digits2(n%100)<<8
}
