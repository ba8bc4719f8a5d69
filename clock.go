package agentevents

import "time"

// A wallClock tells the time of the events of one run in whole milliseconds. It
// reads the system's clock once a second. Between, time goes on as the monotonic
// clock says, which takes half as long to read. So when the system's clock is
// set, the events follow within a second.
type wallClock struct {
	read time.Time // when the system's clock was read, for the monotonic clock
	wall int64     // what it said, in Unix microseconds
}

func (c *wallClock) now() time.Time {
	since := time.Since(c.read)
	if since >= time.Second || since < 0 {
		c.read, since = time.Now(), 0
		c.wall = c.read.UnixMicro()
	}
	return time.UnixMilli((c.wall + since.Microseconds()) / 1000).UTC()
}
