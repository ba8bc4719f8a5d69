package jsonwire

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2024-02-29T12:34:56Z", "2024-02-29T12:34:56.123456789+02:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z",
		"2026-01-02T03:04:05.100000Z", "2026-01-02T03:04:05.100200Z", "2026-01-02T03:04:05.000000001Z", "2023-02-29T00:00:00Z", "2024-01-01T00:00:00+24:00", "2024-01-01t00:00:00z", "2024-01-01T1:00:00Z",
	} {
		f.Add(s, int64(1709210096), int64(123456789))
	}
	f.Fuzz(func(t *testing.T, str string, sec, nsec int64) {
		// Any time survives a round trip, and reads as the standard library
		// reads it.
		in := time.Unix(sec, nsec).UTC()
		if y := in.Year(); y >= 0 && y <= 9999 {
			wire := string(AppendTime(nil, in))
			got, err := scanner(wire).Time()
			require.NoError(t, err)
			require.Equal(t, in, got)
			std, err := time.Parse(`"`+time.RFC3339Nano+`"`, wire)
			require.NoError(t, err)
			require.True(t, std.Equal(got))
		}

		// A time of this package is the same time to encoding/json. A time of encoding/json only is
		// not RFC 3339 or is beyond the promised range.
		wire := Quote(str)
		s := scanner(wire)
		got, err := s.Time()
		if err == nil {
			require.Equal(t, wire != string(AppendTime(nil, got)), s.Odd, wire)
		}
		var std time.Time
		stdErr := json.Unmarshal([]byte(wire), &std)
		if err == nil {
			require.NoError(t, stdErr)
			require.True(t, std.Equal(got), "%s: %v, %v", wire, std, got)
			require.Regexp(t, rfc3339, str)
		} else if stdErr == nil && rfc3339.MatchString(str) {
			y := std.UTC().Year()
			require.True(t, y < 0 || y > 9999, "%s: %v", wire, err)
		}
	})
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func FuzzMillis(f *testing.F) {
	for _, s := range []string{"0", "1.5", "-0.0000005", "1e3", "9223372036854.775807", "1e-7", "0.00123e2", "1E+2",
		"-0", "0.0", "1.50", "9007199254740993", "123456789.123456", "0.000001", "0.0000001", "1e21", "1e+21", "0.30000000000000004",
	} {
		f.Add(s, int64(1))
	}
	f.Add("1", int64(-1<<63))
	f.Fuzz(func(t *testing.T, num string, ns int64) {
		d := time.Duration(ns)
		wire := string(AppendMillis(nil, d))
		got, err := scanner(wire).Millis()
		require.NoError(t, err)
		require.Equal(t, d, got)
		require.True(t, json.Valid([]byte(wire)))

		// Against exact arithmetic. Big exponents are too slow there.
		s := scanner(num)
		got, err = s.Millis()
		if err == nil && s.End() == nil {
			require.Equal(t, num != string(AppendMillis(nil, got)), s.Odd, num)
		}
		s = scanner(num)
		if f, err := s.Float(); err == nil && s.End() == nil {
			require.Equal(t, num != string(AppendFloat(nil, f)), s.Odd, num)
		}
		if !json.Valid([]byte(num)) || strings.Trim(num, "+-.0123456789eE") != "" {
			// Not a number and nothing else, so an error now or later.
			s = scanner(num)
			if _, err := s.Millis(); err == nil {
				require.True(t, s.End() != nil || strings.TrimSpace(num) != num, "%q", num)
			}
			return
		}
		if _, e, ok := strings.Cut(strings.ToLower(num), "e"); ok {
			if n, err := strconv.Atoi(e); err != nil || n > 1000 || n < -1000 {
				return
			}
		}
		r, ok := new(big.Rat).SetString(num)
		require.True(t, ok)
		r.Mul(r, big.NewRat(1e6, 1))
		half := big.NewRat(1, 2)
		if r.Sign() < 0 {
			half.Neg(half)
		}
		r.Add(r, half) // and truncate: rounds halves away from zero
		n := new(big.Int).Quo(r.Num(), r.Denom())
		if !n.IsInt64() {
			require.ErrorContains(t, err, "out of range")
			return
		}
		require.NoError(t, err)
		require.Equal(t, n.Int64(), int64(got))
	})
}
