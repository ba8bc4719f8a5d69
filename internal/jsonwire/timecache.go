package jsonwire

import "time"

// A TimeCache reads and writes the times of a log, in which one second is
// mostly the same as that of the time before. The zero TimeCache is ready.
type TimeCache struct {
	second [20]byte // "2006-01-02T15:04:05." of the time read last
	base   time.Time

	unix  int64 // the second written last
	text  [20]byte
	valid bool // text is of unix
}

const fixedTime = `"2006-01-02T15:04:05.000Z"`

// Time is Scanner.Time of s.
func (c *TimeCache) Time(s *Scanner) (time.Time, error) {
	i := s.next()
	if len(s.text)-i >= len(fixedTime) {
		t := s.text[i : i+len(fixedTime)]
		if t[:1] == `"` && t[24:] == `Z"` && t[1:21] == string(c.second[:]) && isDigit(t[21]) && isDigit(t[22]) && isDigit(t[23]) {
			s.pos = i + len(fixedTime)
			ms := int(t[21]-'0')*100 + int(t[22]-'0')*10 + int(t[23]-'0')
			return c.base.Add(time.Duration(ms) * time.Millisecond), nil
		}
	}
	t, err := s.Time()
	if err == nil && s.pos-i == len(fixedTime) && s.text[s.pos-2] == 'Z' && s.text[i+20] == '.' {
		copy(c.second[:], s.text[i+1:i+21])
		c.base = t.Truncate(time.Second)
	}
	return t, err
}

// Append is AppendTime.
func (c *TimeCache) Append(dst []byte, t time.Time) []byte {
	sec, ns := t.Unix(), t.Nanosecond()
	if ns%1e6 != 0 {
		return AppendTime(dst, t)
	}
	if !c.valid || sec != c.unix {
		start := len(dst)
		dst = AppendTime(dst, t)
		c.valid = len(dst)-start == len(fixedTime)
		if c.valid {
			c.unix = sec
			copy(c.text[:], dst[start+1:])
		}
		return dst
	}
	ms := ns / 1e6
	dst = append(dst, '"')
	dst = append(dst, c.text[:]...)
	return append(dst, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}
