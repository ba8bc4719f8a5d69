package jsonwire

import (
	"strings"
	"time"
)

// A TimeReader reads the times of a log, in which most times have the second of the time before.
// The zero TimeReader is ready.
type TimeReader struct {
	second [20]byte // "2006-01-02T15:04:05." of the time read last
	start  int64    // of that second, in Unix time
}

// A TimeWriter writes such times. The zero TimeWriter is ready.
type TimeWriter struct {
	unix  int64                // the second written last
	text  [len(fixedTime)]byte // of it
	valid bool                 // text belongs to unix
}

const fixedTime = `"2006-01-02T15:04:05.000Z"`

// Time is Scanner.Time of s.
func (c *TimeReader) Time(s *Scanner) (time.Time, error) {
	s.next()
	if t, ok := c.Plain(s, `"`); ok {
		return t, nil
	}
	return s.Time()
}

// Plain consumes lead, which ends with a quote, and the rest of a time in the form
// that Append gives it, in whole milliseconds. See [Scanner.PlainText].
func (c *TimeReader) Plain(s *Scanner, lead string) (t time.Time, ok bool) {
	const size = len(fixedTime) - len(`"`)
	text, ok := strings.CutPrefix(s.text[s.pos:], lead)
	if !ok || len(text) < size || text[size-2:size] != `Z"` ||
		!isDigit(text[20]) || !isDigit(text[21]) || !isDigit(text[22]) {
		return time.Time{}, false
	}
	if text[:len(c.second)] != string(c.second[:]) {
		t, _, msg := parseTime(text[:size-1])
		if msg != "" || text[19] != '.' {
			return time.Time{}, false
		}
		copy(c.second[:], text)
		c.start = t.Unix()
	}
	s.pos += len(lead) + size
	s.fresh = false
	ms := int64(text[20]-'0')*100 + int64(text[21]-'0')*10 + int64(text[22]-'0')
	return time.Unix(c.start, ms*1e6).UTC(), true
}

// Append is AppendTime.
func (c *TimeWriter) Append(dst []byte, t time.Time) []byte {
	sec, ns := t.Unix(), uint32(t.Nanosecond())
	ms := ns / 1e6
	if !c.valid || sec != c.unix || ms*1e6 != ns {
		start := len(dst)
		dst = AppendTime(dst, t)
		if c.valid = len(dst)-start == len(fixedTime); c.valid {
			c.unix = sec
			copy(c.text[:], dst[start:])
		}
		return dst
	}
	c.text[21], c.text[22], c.text[23] = byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)
	return append(dst, c.text[:]...)
}
