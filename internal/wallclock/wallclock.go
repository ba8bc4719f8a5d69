// Package wallclock tells the time in half the time that the system takes.
package wallclock

import "time"

// A Clock tells the time in whole milliseconds. It reads the system's clock once a second. Between,
// it adds the time of the monotonic clock, which takes half as long to read. When the system's
// clock is set, the Clock follows within a second.
//
// The zero Clock is ready to use; it is not for concurrent use.
type Clock struct {
	read time.Time // when the system's clock was read, for the monotonic clock
	wall int64     // its reading, in Unix microseconds
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	since := time.Since(c.read)
	if since >= time.Second || since < 0 {
		c.read, since = time.Now(), 0
		c.wall = c.read.UnixMicro()
	}
	return time.UnixMilli((c.wall + since.Microseconds()) / 1000).UTC()
}
