package wallclock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheClockIsTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		for _, wait := range []time.Duration{0, time.Microsecond, 999 * time.Microsecond, 300 * time.Millisecond, 699 * time.Millisecond, time.Second, time.Hour} {
			time.Sleep(wait)
			require.Equal(t, time.Now().UTC().Truncate(time.Millisecond), c.Now())
		}
	})
}

func TestTheClockFollowsTheSystemsWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			var c Clock
			c.Now()
			c.wall -= step.Microseconds() // as if the system's clock were set after it was read
			time.Sleep(999 * time.Millisecond)
			require.Equal(t, time.Now().UTC().Truncate(time.Millisecond).Add(-step), c.Now(), "it is asked once a second")
			time.Sleep(time.Millisecond)
			require.Equal(t, time.Now().UTC().Truncate(time.Millisecond), c.Now())
		}
	})
}
