package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
)

// Duration formats d short: 12ms, 1.2s, 3m05s, 2h07m. No time at all, as
// Between events of a log without a clock, is "".
func Duration(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "-" + Duration(-d)
	}
	switch {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms"
	}
	if tenths := d.Round(100 * time.Millisecond); tenths < time.Minute {
		return strings.TrimSuffix(strconv.FormatFloat(tenths.Seconds(), 'f', 1, 64), ".0") + "s"
	}
	if s := int64(d.Round(time.Second) / time.Second); s < 3600 {
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	m := int64(d.Round(time.Minute) / time.Minute)
	return fmt.Sprintf("%dh%02dm", m/60, m%60)
}

// Between returns the duration from one time to the other, or "" when one of
// them is not known.
func Between(from, to time.Time) string {
	if !agentevents.TimeKnown(from) || !agentevents.TimeKnown(to) {
		return ""
	}
	return Duration(to.Sub(from))
}

// Dollars formats a cost in US dollars.
func Dollars(v float64) string {
	digits := 4
	if math.Abs(v) >= 1 {
		digits = 2
	}
	return "$" + strconv.FormatFloat(v, 'f', digits, 64)
}

// Count returns "1 thing" or "2 things".
func Count[T int | int64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(int64(n), 10) + " " + thing + "s"
}
