package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file reads times that programs write in another form than their document's. A time never
// costs its line: one that cannot be read is not known, and the value on the line is kept.

// NoTime is the time of an event whose line has none that can be read: see
// [agentevents.TimeKnown].
var NoTime = time.Unix(0, 0).UTC()

const noTime = "1970 stands for a time that is not known"

// AnyTime returns a form for the time of a line that own reads and writes. It reads other forms,
// too: RFC 3339, a number of seconds, milliseconds, microseconds or nanoseconds since 1970, by
// its size, and such a number as a text. A number that is too small for a date has the unit. A
// strict reader refuses the forms that own does not read, by the rule that own reports.
func AnyTime(own Form, unit time.Duration) Form { return anyTime{own, unit} }

type anyTime struct {
	Form
	unit time.Duration
}

func (f anyTime) Append(w *Writer, dst []byte, m *Member, at any) ([]byte, bool) {
	if raw := w.Kept(m.Name); raw != "" {
		if t, _ := TimeOf(raw, f.unit); w.Ev.Time.Equal(t) {
			return append(dst, w.Use(m.Name)...), true
		}
	}
	return f.Form.Append(w, dst, m, at)
}

func (f anyTime) Parse(r *Reader, at any) error {
	t, before := at.(*time.Time), r.S
	err := f.Form.Parse(r, at)
	if err == nil && !t.IsZero() && (f.unit != time.Millisecond || !mayBeSeconds(*t)) {
		return nil
	}
	if err != nil && r.Strict && r.broken == nil {
		return err
	}
	r.S = before
	raw, wrong := r.S.Raw()
	if wrong != nil {
		return wrong
	}
	known := false
	if *t, known = TimeOf(raw, f.unit); !known {
		r.NoTime()
	}
	r.KeepAs(raw)
	return nil
}

func (f anyTime) Schema() map[string]any {
	if s, ok := f.Form.(interface{ Schema() map[string]any }); ok {
		return s.Schema()
	}
	return nil
}

// mayBeSeconds reports whether milliseconds since 1970 are seconds: as such they are of our time,
// and as milliseconds of 1970 to 1973.
func mayBeSeconds(t time.Time) bool { return t.Unix() >= dates/1e3 && t.Unix() < 1e8 }

// dates is the least number that is a date in seconds: of 2001. A clock that counts from the start
// of a machine or a process does not reach it.
const dates = 1e9

// TimeOf returns the time that a JSON value is, in any form that [AnyTime] reads, else NoTime and
// false.
func TimeOf(raw string, unit time.Duration) (time.Time, bool) {
	text := raw
	if strings.HasPrefix(raw, `"`) {
		text = strings.TrimSpace(jsonwire.Text(raw))
		if len(text) > len("2006-01-02") && text[len("2006-01-02")] == ' ' { // as Python prints one
			text = strings.Replace(text, " ", "T", 1)
		}
		if t, err := CutTime(text); err == nil && agentevents.TimeKnown(t) {
			return t, true
		}
	}
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0123456789") != "" {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v < 1<<62) { // a NaN is neither
			return NoTime, false
		}
		n, fraction = int64(v), ""
	}
	if n < 0 {
		return NoTime, false
	}
	switch {
	case n >= dates*1e8:
		unit = time.Nanosecond
	case n >= dates*1e5:
		unit = time.Microsecond
	case n >= dates*1e2:
		unit = time.Millisecond
	case n >= dates:
		unit = time.Second
	}
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	per := int64(time.Second / unit)
	t := time.Unix(n/per, n%per*int64(unit)+nanos/per).UTC()
	return t, agentevents.TimeKnown(t)
}

// CutTime reads a time that may have more fraction digits than nanoseconds have, which
// RFC 3339 allows. The others are cut off.
func CutTime(text string) (time.Time, error) {
	if seconds, fraction, ok := strings.Cut(text, "."); ok {
		zone := strings.TrimLeft(fraction, "0123456789")
		digits := fraction[:len(fraction)-len(zone)]
		text = seconds + "." + digits[:min(9, len(digits))] + zone
	}
	var s jsonwire.Scanner
	s.Reset(jsonwire.Quote(text))
	return s.Time()
}
