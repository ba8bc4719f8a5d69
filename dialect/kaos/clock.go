package kaos

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A clock relates the monotonic clock to Unix time: it is the Unix time at which
// the monotonic clock read zero.
type clock struct{ sec, ns int64 }

// newClock returns the clock that read seconds at anchor. The zero anchor is
// the Unix epoch.
func newClock(anchor time.Time, seconds float64) clock {
	var c clock
	if !anchor.IsZero() {
		c = clock{anchor.Unix(), int64(anchor.Nanosecond())}
	}
	if !math.IsNaN(seconds) && !math.IsInf(seconds, 0) {
		if sec, ns, ok := parseSeconds(strconv.FormatFloat(seconds, 'f', -1, 64)); ok {
			c.sec, c.ns = c.sec-sec, c.ns-ns
		}
	}
	return c
}

// time returns the time of a reading, and false if that is outside the years 0 to
// 9999.
func (c clock) time(sec, ns int64) (time.Time, bool) {
	t := time.Unix(c.sec+sec, c.ns+ns).UTC()
	u := t.Unix()
	return t, u >= -62167219200 && u <= 253402300799
}

// append appends the clock's reading at t, in seconds, in Python's form of floats.
func (c clock) append(dst []byte, t time.Time) []byte {
	sec, ns := t.Unix()-c.sec, int64(t.Nanosecond())-c.ns
	for ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	for ns >= 1e9 {
		sec, ns = sec+1, ns-1e9
	}
	return appendSeconds(dst, sec, ns)
}

// appendSeconds appends sec seconds plus ns nanoseconds, as a number of seconds.
func appendSeconds(dst []byte, sec, ns int64) []byte {
	if sec < 0 {
		dst = append(dst, '-')
		if ns > 0 {
			sec, ns = sec+1, 1e9-ns
		}
		sec = -sec
	}
	return appendFraction(jsonwire.AppendUint(dst, uint64(sec)), uint64(ns), 9)
}

// appendMillis appends a duration in milliseconds, in Python's form of floats.
func appendMillis(dst []byte, d time.Duration) []byte {
	u := uint64(d)
	if d < 0 {
		dst, u = append(dst, '-'), -u
	}
	return appendFraction(jsonwire.AppendUint(dst, u/1e6), u%1e6, 6)
}

// appendFraction appends the point and the fraction frac, a number of width
// digits, without trailing zeros.
func appendFraction(dst []byte, frac uint64, width int) []byte {
	dst = append(dst, '.')
	if frac == 0 {
		return append(dst, '0')
	}
	return jsonwire.AppendFraction(dst, frac, width)
}

// appendFloat appends a finite number in Python's form of floats: with an exponent
// below 1e-4 and from 1e16 on, with a point otherwise.
func appendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	mark := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[mark:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, '.', '0')
}

// seconds reads a number of seconds, rounded to the nanosecond, halves away
// from zero.
func seconds(s *jsonwire.Scanner) (sec, ns int64, err error) {
	if k := s.Kind(); k != '0' && k != '-' {
		_, err = s.Float() // the error says what is there instead
		return 0, 0, err
	}
	at := s.Offset()
	if err := s.Skip(); err != nil {
		return 0, 0, err
	}
	sec, ns, ok := parseSeconds(s.Text()[at:s.Offset()])
	if !ok {
		return 0, 0, &jsonwire.SyntaxError{Offset: at, Msg: "found a number out of range for a time in seconds"}
	}
	return sec, ns, nil
}

// parseSeconds converts a valid JSON number.
func parseSeconds(num string) (sec, ns int64, ok bool) {
	digits, neg := strings.CutPrefix(num, "-")
	i := 0
	for ; i < len(digits) && digits[i]-'0' <= 9; i++ {
		if i == 15 {
			return 0, 0, false
		}
		sec = sec*10 + int64(digits[i]-'0')
	}
	if i < len(digits) && digits[i] == '.' {
		frac := 0
		for i++; i < len(digits) && digits[i]-'0' <= 9; i, frac = i+1, frac+1 {
			if frac < 9 {
				ns = ns*10 + int64(digits[i]-'0')
			} else if frac == 9 && digits[i] >= '5' {
				ns++
			}
		}
		for ; frac < 9; frac++ {
			ns *= 10
		}
	}
	if i < len(digits) { // an exponent
		mantissa, exponent, _ := strings.Cut(strings.ToLower(num), "e")
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1<<20 || e < -1<<20 {
			e = max(-1<<20, min(1<<20, len(exponent)<<20))
			if strings.HasPrefix(exponent, "-") {
				e = -1 << 20
			}
		}
		var s jsonwire.Scanner
		s.Reset(mantissa + "e" + strconv.Itoa(e+3))
		d, err := s.Millis()
		return int64(d / time.Second), int64(d % time.Second), err == nil
	}
	if neg {
		sec, ns = -sec, -ns
	}
	return sec, ns, true
}
