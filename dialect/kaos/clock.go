package kaos

import (
	"bytes"
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
func newClock(anchor time.Time, at float64) clock {
	var c clock
	if !anchor.IsZero() {
		c = clock{anchor.Unix(), int64(anchor.Nanosecond())}
	}
	var s jsonwire.Scanner
	s.Reset(strconv.FormatFloat(at, 'f', -1, 64))
	if sec, ns, err := seconds(&s); err == nil {
		c = clock{c.sec - sec, c.ns - ns}
	}
	return c
}

// append appends the clock's reading at t, in seconds.
func (c clock) append(dst []byte, t time.Time) []byte {
	sec, ns := t.Unix()-c.sec, int64(t.Nanosecond())-c.ns
	sec, ns = sec+ns/1e9, ns%1e9
	if ns < 0 {
		sec, ns = sec-1, ns+1e9
	}
	if sec < 0 {
		dst = append(dst, '-')
		if sec = -sec; ns > 0 {
			sec, ns = sec-1, 1e9-ns
		}
	}
	mark := len(dst)
	dst = jsonwire.AppendUint(dst, uint64(sec))
	if ns > 0 {
		dst = jsonwire.AppendFraction(append(dst, '.'), uint64(ns), 9)
	}
	return pointed(dst, mark)
}

// pointed makes a number a float of Python, which has a point.
func pointed(dst []byte, from int) []byte {
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

// seconds reads a number of seconds, rounded to the nanosecond, halves away
// from zero.
func seconds(s *jsonwire.Scanner) (sec, ns int64, err error) {
	d, err := s.Seconds()
	if err == nil {
		return int64(d / time.Second), int64(d % time.Second), nil
	}
	// A Duration has room for 292 years only.
	from := s.Offset()
	if s.Skip() != nil {
		return 0, 0, err
	}
	whole, frac, _ := strings.Cut(s.Text()[from:s.Offset()], ".")
	sec, bad := strconv.ParseInt(whole, 10, 64)
	if bad != nil || max(sec, -sec) >= 1e15 || strings.ContainsAny(frac, "eE") {
		return 0, 0, err
	}
	part, _ := strconv.ParseFloat("0."+frac, 64)
	if ns = int64(math.Round(part * 1e9)); sec < 0 {
		ns = -ns
	}
	return sec, ns, nil
}
