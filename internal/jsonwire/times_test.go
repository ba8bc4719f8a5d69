package jsonwire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The cache gives the results of the functions without it, whatever came before.
func TestTimesAreKept(t *testing.T) {
	texts := []string{
		`"2026-05-05T09:00:00.000Z"`, `"2026-05-05T09:00:00.999Z"`, `"2026-05-05T09:00:00.5Z"`, `"2026-05-05T09:00:00Z"`,
		`"2026-05-05T09:00:00.001Z"`, `"2026-05-05T09:00:00.001+02:00"`, `"2026-05-05T09:00:01.010Z"`, `"2026-05-05T09:00:01.0x0Z"`,
		`"2026-05-05T09:00:01.012345Z"`, `"1969-12-31T23:59:59.999Z"`, `"1969-12-31T23:59:59.001Z"`, `"0000-01-01T00:00:00.000Z"`,
		`"9999-12-31T23:59:59.999Z"`, `"2026-02-30T00:00:00.000Z"`, `"2026-05-05T09:00:01.010Z`, `"\u0032026-05-05T09:00:01.010Z"`, `7`, ``,
		`"2026-05-05T09:00:01.010z"`,
	}
	for _, first := range texts {
		for _, second := range texts {
			var c TimeReader
			var w TimeWriter
			for _, text := range []string{first, second, first} {
				var a, b Scanner
				a.Reset(text)
				b.Reset(text)
				want, wantErr := a.Time()
				got, err := c.Time(&b)
				require.Equal(t, wantErr, err, text)
				require.Equal(t, want, got, text)
				require.Equal(t, a.Offset(), b.Offset(), text)
				if err == nil {
					require.Equal(t, string(AppendTime(nil, want)), string(w.Append(nil, want)), text)
				}
			}
		}
	}
	var w TimeWriter
	for _, at := range []time.Time{{}, time.Unix(-1, 0), time.UnixMilli(-1), time.UnixMilli(0), time.UnixMilli(1), time.Unix(1, 1), time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(2, 5e6)} {
		require.Equal(t, string(AppendTime(nil, at)), string(w.Append(nil, at)), at)
		require.Equal(t, string(AppendTime(nil, at)), string(w.Append(nil, at)), at)
	}
}
