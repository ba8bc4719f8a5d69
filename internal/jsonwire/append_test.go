package jsonwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// stdString returns s as encoding/json writes it without HTML escaping.
func stdString(t testing.TB, s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(s))
	return strings.TrimSuffix(b.String(), "\n")
}

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", `""`},
		{"a", `"a"`},
		{"plain text, longer than one word", `"plain text, longer than one word"`},
		{`say "hi" \ bye`, `"say \"hi\" \\ bye"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x1f", `"\u0000\u0001\u001f"`},
		{"\x7f", "\"\x7f\""},
		{"<a href='x'>&</a>", `"<a href='x'>&</a>"`},
		{"\u2028\u2029", "\"\u2028\u2029\""},
		{"grüße, 世界, 😀", `"grüße, 世界, 😀"`},
		{"\uFFFD", "\"\uFFFD\""},
		{"\xff", "\"\uFFFD\""},
		{"a\xff\xfeb", "\"a\uFFFD\uFFFDb\""},
		{"\xed\xa0\xbd", "\"\uFFFD\uFFFD\uFFFD\""},
		{"\xf0\x9f\x98", "\"\uFFFD\uFFFD\uFFFD\""},
		{"12345678\xf0\x9f\x98\x80\n\xc3", "\"12345678😀\\n\uFFFD\""},
	} {
		require.Equal(t, tt.want, string(AppendString(nil, tt.in)), "%q", tt.in)
		require.Equal(t, tt.want, Quote(tt.in))
		require.Equal(t, "x"+tt.want, string(AppendString([]byte("x"), tt.in)))
	}
}

// Every byte below 0x80 at every position of the word that the fast loop loads.
func TestAppendStringExhaustive(t *testing.T) {
	for c := range byte(0x80) {
		var want string
		switch c {
		case '"', '\\':
			want = `\` + string(rune(c))
		case '\b':
			want = `\b`
		case '\f':
			want = `\f`
		case '\n':
			want = `\n`
		case '\r':
			want = `\r`
		case '\t':
			want = `\t`
		default:
			want = string(rune(c))
			if c < 0x20 {
				want = fmt.Sprintf(`\u%04x`, c)
			}
		}
		require.Equal(t, stdString(t, string(rune(c))), `"`+want+`"`)
		for before := range 20 {
			for after := range 10 {
				pre, post := strings.Repeat("x", before), strings.Repeat("y", after)
				in := pre + string(rune(c)) + post
				got := string(AppendString(nil, in))
				require.Equal(t, `"`+pre+want+post+`"`, got)

				end, found, err := scanString(got+" tail beyond", 0)
				require.NoError(t, err)
				require.Equal(t, len(got), end)
				escaped := map[bool]escapes{true: usualEscape}[len(want) > 1]
				require.Equal(t, escaped, found)
			}
		}
	}
}

// Every pair of bytes, so that a borrow in the word arithmetic cannot hide.
func TestAppendStringPairs(t *testing.T) {
	for a := range 256 {
		for b := range 256 {
			s := "ab" + string([]byte{byte(a), byte(b)}) + "cdefgh"
			var got string
			require.NoError(t, json.Unmarshal(AppendString(nil, s), &got))
			if want := strings.ToValidUTF8(s, "\uFFFD"); utf8.ValidString(s) && got != want {
				t.Fatalf("%q reads back as %q", s, got)
			}
		}
	}
}

func TestAppendStringLikeStd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("abcdefgh \"\\\n\t\x00\x1f\x7f<>&éß世界😀\uFFFD")
	for range 5000 {
		rs := make([]rune, rng.IntN(40))
		for i := range rs {
			rs[i] = alphabet[rng.IntN(len(alphabet))]
		}
		s := string(rs)
		require.Equal(t, stdString(t, s), string(AppendString(nil, s)))
	}
}

func TestAppendFloat(t *testing.T) {
	for _, tt := range []struct {
		in   float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "-0"}, {1, "1"}, {-1.5, "-1.5"},
		{0.1, "0.1"}, {1e-6, "0.000001"}, {9.99e-7, "9.99e-7"}, {1e-9, "1e-9"},
		{1e-10, "1e-10"}, {1e20, "100000000000000000000"}, {1e21, "1e+21"},
		{1e100, "1e+100"}, {math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "5e-324"}, {1 << 53, "9007199254740992"},
	} {
		require.Equal(t, tt.want, string(AppendFloat(nil, tt.in)))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		f := math.Float64frombits(rng.Uint64())
		if rng.IntN(2) == 0 {
			f = rng.NormFloat64() * math.Pow10(rng.IntN(60)-30)
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		want, err := json.Marshal(f)
		require.NoError(t, err)
		got := AppendFloat([]byte("e-0"), f) // a prefix that looks like an exponent
		require.Equal(t, "e-0"+string(want), string(got))
	}
}

func TestAppendMillis(t *testing.T) {
	for _, tt := range []struct {
		in   time.Duration
		want string
	}{
		{0, "0"},
		{1, "0.000001"},
		{-1, "-0.000001"},
		{time.Microsecond, "0.001"},
		{1500 * time.Microsecond, "1.5"},
		{-1500 * time.Microsecond, "-1.5"},
		{time.Millisecond, "1"},
		{65 * time.Second, "65000"},
		{1_000_001, "1.000001"},
		{1_100_000, "1.1"},
		{1_010_010, "1.01001"},
		{999_999, "0.999999"},
		{math.MaxInt64, "9223372036854.775807"},
		{math.MinInt64, "-9223372036854.775808"},
	} {
		require.Equal(t, tt.want, string(AppendMillis(nil, tt.in)))
		var s Scanner
		s.Reset(tt.want)
		d, err := s.Millis()
		require.NoError(t, err)
		require.Equal(t, tt.in, d)
	}
}

func TestAppendTime(t *testing.T) {
	east := time.FixedZone("east", 2*3600)
	for _, tt := range []struct {
		in   time.Time
		want string
	}{
		{time.Time{}, `"0001-01-01T00:00:00.000Z"`},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), `"0000-01-01T00:00:00.000Z"`},
		{time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), `"9999-12-31T23:59:59.999999999Z"`},
		{time.Date(2024, 2, 29, 12, 34, 56, 7e6, time.UTC), `"2024-02-29T12:34:56.007Z"`},
		{time.Date(2024, 2, 29, 12, 34, 56, 7e3, time.UTC), `"2024-02-29T12:34:56.000007Z"`},
		{time.Date(2024, 2, 29, 12, 34, 56, 7, time.UTC), `"2024-02-29T12:34:56.000000007Z"`},
		{time.Date(2024, 2, 29, 12, 34, 56, 123456000, time.UTC), `"2024-02-29T12:34:56.123456Z"`},
		{time.Date(2024, 3, 1, 1, 0, 0, 0, east), `"2024-02-29T23:00:00.000Z"`},
		{time.Date(1960, 1, 1, 0, 0, 0, 500e6, time.UTC), `"1960-01-01T00:00:00.500Z"`},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), `"10000-01-01T00:00:00.000000000Z"`},
	} {
		require.Equal(t, tt.want, string(AppendTime(nil, tt.in)))
	}
}

// AppendTime is AppendFormat with three, six or nine digits.
func TestAppendTimeLikeStd(t *testing.T) {
	check := func(at time.Time) {
		t.Helper()
		layout := `"2006-01-02T15:04:05.000000000Z07:00"`
		utc := at.UTC()
		if y := utc.Year(); y >= 0 && y <= 9999 {
			switch ns := at.Nanosecond(); {
			case ns%1e6 == 0:
				layout = `"2006-01-02T15:04:05.000Z07:00"`
			case ns%1e3 == 0:
				layout = `"2006-01-02T15:04:05.000000Z07:00"`
			}
		}
		if got, want := string(AppendTime([]byte("x"), at)), "x"+utc.Format(layout); got != want {
			t.Fatalf("%d: got %s, want %s", at.Unix(), got, want)
		}
	}
	first := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	for days, at := uint32(0), first; !at.After(last); days, at = days+1, at.Add(24*time.Hour) {
		y, m, d := at.Date()
		year, month, day := civil(days)
		if year != uint32(y) || month != uint32(m) || day != uint32(d) {
			t.Fatalf("%v: got %d-%d-%d", at, year, month, day)
		}
	}
	for _, at := range []time.Time{
		{}, first.Add(-1), first.Add(-time.Hour), last, last.Add(1), last.AddDate(1, 0, 0), first.AddDate(-1, 0, 0),
		time.Unix(0, 0), time.Unix(-1, 999e6), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(1<<40, 1), time.Now(),
	} {
		check(at)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		sec := first.Unix() + rng.Int64N(last.Unix()-first.Unix()+1)
		at := time.Unix(sec, rng.Int64N(1e9)).In(time.FixedZone("", rng.IntN(48*3600)-24*3600))
		check(at)
		check(at.Truncate(time.Millisecond))
		check(at.Truncate(time.Microsecond))
		check(time.Unix(int64(rng.Uint64()), 5))
	}
}

// With any free capacity after dst, and any bytes there.
func TestAppendStringRoom(t *testing.T) {
	for _, s := range []string{"", "abc", "plain!!!", "fourteen bytes", "a plain text of some length, forty bytes", strings.Repeat("\x00", 40), strings.Repeat("\xff", 40), "ten bytes \n\n\n\n\n\n\n\n\xff\xff é", strings.Repeat("世", 9)} {
		want := "xy" + string(AppendString(nil, s))
		for room := range 300 {
			dst := append(make([]byte, 0, room+2), "xy"...)
			require.Equal(t, want, string(AppendString(dst, s)))
		}
	}
}

func TestAppendUint(t *testing.T) {
	check := func(v uint64) {
		require.Equal(t, strconv.FormatUint(v, 10), string(AppendUint(nil, v)))
		require.Equal(t, "x"+strconv.FormatInt(int64(v), 10), string(AppendInt([]byte("x"), int64(v))))
	}
	check(0)
	check(math.MaxUint64)
	r := rand.New(rand.NewPCG(7, 8))
	for _, p := range powersOf10 {
		check(p - 1)
		check(p)
		check(p + 1)
		for range 50 {
			check(r.Uint64N(p))
		}
	}
	for shift := range 64 {
		check(1 << shift)
		check(1<<shift - 1)
	}
}

// FirstBytes is the longest beginning that AppendString writes in so many bytes.
func TestFirstBytes(t *testing.T) {
	const s = "plain \"quoted\"\n\x00\x7fé世😀\xff\u2028 end"
	for n := -1; n < 60; n++ {
		got := FirstBytes(s, n)
		require.LessOrEqual(t, len(Quote(s[:got]))-len(`""`), max(n, 0))
		if got < len(s) {
			_, size := utf8.DecodeRuneInString(s[got:])
			require.Greater(t, len(Quote(s[:got+size]))-len(`""`), n)
			require.True(t, utf8.RuneStart(s[got]) || s[got] == 0xff)
		}
	}
}
