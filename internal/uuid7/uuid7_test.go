package uuid7

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var uuidV7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

var noon = time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC)

func TestIDsAreUUIDv7IncreasingAndUnique(t *testing.T) {
	var ids Source
	at := noon
	seen := make(map[string]struct{}, 100_000)
	last := ""
	for i := range 100_000 {
		switch i % 50 {
		case 10:
			at = at.Add(time.Millisecond)
		case 20:
			at = at.Add(-5 * time.Millisecond) // the clock goes back
		case 30:
			at = at.Add(4500 * time.Microsecond)
		}
		id := ids.Next(at)
		require.Regexp(t, uuidV7, id)
		require.Greater(t, id, last)
		last = id
		seen[id] = struct{}{}
	}
	require.Len(t, seen, 100_000)
	ms, err := strconv.ParseInt(last[:8]+last[9:13], 16, 64)
	require.NoError(t, err)
	require.InDelta(t, at.UnixMilli(), ms, 1000, "the time stays near the clock's")
}

func TestIDsIncreaseOverManyInOneMillisecond(t *testing.T) {
	var ids Source
	last := ""
	for range 3 << 12 {
		id := ids.Next(noon)
		require.Greater(t, id, last)
		last = id
	}
	require.Greater(t, ids.Next(time.Unix(-1, 0)), last, "a clock before 1970 does no harm")
}
