package jsonwire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/scale"
)

func scanner(text string) *Scanner {
	s := new(Scanner)
	s.Reset(text)
	return s
}

// requireSyntax requires err to be a *SyntaxError with the offset and message.
func requireSyntax(t testing.TB, err error, offset int, msg string, in string) {
	t.Helper()
	var se *SyntaxError
	require.ErrorAs(t, err, &se, "%q", in)
	require.Equal(t, msg, se.Msg, "%q", in)
	require.Equal(t, offset, se.Offset, "%q", in)
	require.Equal(t, msg+" at byte "+strconv.Itoa(offset), err.Error())
}

func TestScannerObject(t *testing.T) {
	s := scanner(" { \"a\" : 1 ,\n\"b\\n\":[ ] , \"c\" : { } ,\"d\":[[], {\"x\":[1 , 2]}]\t} ")
	require.NoError(t, s.Object())

	name, ok, err := s.Member()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "a", name)
	require.Equal(t, byte('1'), s.Text()[s.Offset()])
	n, err := s.Int()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)

	name, ok, err = s.Member()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "b\n", name)
	require.NoError(t, s.Array())
	ok, err = s.Elem()
	require.NoError(t, err)
	require.False(t, ok)

	name, ok, err = s.Member()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "c", name)
	require.NoError(t, s.Object())
	_, ok, err = s.Member()
	require.NoError(t, err)
	require.False(t, ok)

	name, ok, err = s.Member()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "d", name)
	raw, err := s.Raw()
	require.NoError(t, err)
	require.Equal(t, `[[],{"x":[1,2]}]`, raw)

	_, ok, err = s.Member()
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.End())
	require.Equal(t, len(s.Text()), s.Offset())
}

// walk reads one value the way a caller would, with Object, Array and the
// scalar methods, and returns its compact text.
func walk(s *Scanner, dst []byte) ([]byte, error) {
	switch s.Kind() {
	case '{':
		if err := s.Object(); err != nil {
			return nil, err
		}
		dst = append(dst, '{')
		seen := map[string]bool{}
		for {
			name, ok, err := s.Member()
			if err != nil {
				return nil, err
			}
			if !ok {
				return append(dst, '}'), nil
			}
			if seen[name] {
				return nil, s.Duplicate(name)
			}
			if len(seen) > 0 {
				dst = append(dst, ',')
			}
			seen[name] = true
			dst = append(AppendString(dst, name), ':')
			if dst, err = walk(s, dst); err != nil {
				return nil, err
			}
		}
	case '[':
		if err := s.Array(); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for n := 0; ; n++ {
			ok, err := s.Elem()
			if err != nil {
				return nil, err
			}
			if !ok {
				return append(dst, ']'), nil
			}
			if n > 0 {
				dst = append(dst, ',')
			}
			if dst, err = walk(s, dst); err != nil {
				return nil, err
			}
		}
	case '"':
		str, err := s.String()
		return AppendString(dst, str), err
	case 't', 'f':
		b, err := s.Bool()
		return strconv.AppendBool(dst, b), err
	case 'n':
		if s.Null() {
			return append(dst, "null"...), nil
		}
	}
	raw, err := s.Raw() // numbers, whose spelling matters, and errors
	return append(dst, raw...), err
}

func walkAll(text string) (string, error) {
	s := scanner(text)
	out, err := walk(s, nil)
	if err != nil {
		return "", err
	}
	return string(out), s.End()
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		in     string
		offset int
		msg    string
	}{
		{"", 0, "found end of text, expected a value"},
		{"  ", 2, "found end of text, expected a value"},
		{"}", 0, `found "}", expected a value`},
		{"{", 1, `found end of text, expected a member name or '}'`},
		{"[", 1, ""},
		{`{a:1}`, 1, `found a bare word of 1 byte, expected a member name or '}'`},
		{`{1:1}`, 1, `found a number, expected a member name or '}'`},
		{`{"a"}`, 4, `found "}", expected ':'`},
		{`{"a" 1}`, 5, `found a number, expected ':'`},
		{`{"a":}`, 5, `found "}", expected a value`},
		{`{"a":1,}`, 7, `found "}", expected a member name`},
		{`{"a":1,,}`, 7, `found ",", expected a member name`},
		{`{,}`, 1, `found ",", expected a member name or '}'`},
		{`{"a":1 "b":2}`, 7, `found a string of 1 byte, expected ',' or '}'`},
		{`{"a":1]`, 6, `found "]", expected ',' or '}'`},
		{`{"a":1`, 6, `found end of text, expected ',' or '}'`},
		{`[1,]`, 3, `found "]", expected a value`},
		{`[1,`, 3, `found end of text, expected a value`},
		{`[,1]`, 1, `found ",", expected a value`},
		{`[1 2]`, 3, `found a number, expected ',' or ']'`},
		{`[1}`, 2, `found "}", expected ',' or ']'`},
		{`[1`, 2, `found end of text, expected ',' or ']'`},
		{`[1]]`, 3, `found "]", expected end of text`},
		{`{} {}`, 3, `found an object, expected end of text`},
		{`1 []`, 2, `found an array, expected end of text`},
		{`nul`, 0, `found a bare word of 3 bytes, expected a value`},
		{`nullx`, 4, `found a bare word of 1 byte, expected end of text`},
		{`True`, 0, `found a bare word of 4 bytes, expected a value`},
		{`tru`, 0, ``},
		{`fals`, 0, ``},
		{`NaN`, 0, `found a bare word of 3 bytes, expected a value`},
		{`'a'`, 0, `found "'", expected a value`},
		{"\uFEFF1", 0, `found "\ufeff", expected a value`},
		{"\v1", 0, `found "\v", expected a value`},
		{`01`, 0, `found a number with a leading zero`},
		{`-01`, 1, `found a number with a leading zero`},
		{`-`, 1, `found end of text, expected a digit`},
		{`-a`, 1, `found a bare word of 1 byte, expected a digit`},
		{`+1`, 0, `found "+", expected a value`},
		{`.5`, 0, `found ".", expected a value`},
		{`1.`, 2, `found end of text, expected a digit after '.'`},
		{`1.e5`, 2, `found a bare word of 2 bytes, expected a digit after '.'`},
		{`1e`, 2, `found end of text, expected a digit in the exponent`},
		{`1e+`, 3, `found end of text, expected a digit in the exponent`},
		{`1ex`, 2, `found a bare word of 1 byte, expected a digit in the exponent`},
		{`0x10`, 1, `found a bare word of 3 bytes, expected end of text`},
		{`"abc`, 4, `found end of text, expected the end of a string`},
		{`"abc\`, 5, `found end of text, expected the end of a string`},
		{`"abc\"`, 6, `found end of text, expected the end of a string`},
		{"\"a\nb\"", 2, `found control character "\n" in a string, expected an escape`},
		{"\"a\x00b\"", 2, `found control character "\x00" in a string, expected an escape`},
		{`"a\qb"`, 2, `found a backslash that begins no escape in a string`},
		{`"a\世"`, 2, `found a backslash that begins no escape in a string`},
		{`"\u12"`, 1, `found \u without four hex digits in a string`},
		{`"\u12g4"`, 1, `found \u without four hex digits in a string`},
		{`"\U1234"`, 1, `found a backslash that begins no escape in a string`},
		{`"\ud83d"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`"\ude00"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`"\ud83d\ud83d\ude00"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`"\ud83d\u0041"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`"\ud83dx"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`"\ude00\ud83d"`, 1, `found a lone surrogate in a string, expected a pair`},
		{`{"a\q":1}`, 3, `found a backslash that begins no escape in a string`},
		{`abcdefghijklmnopqrstuvwxyz`, 0, `found a bare word of 26 bytes, expected a value`},
		{`abcdefghijklmnopqrs世`, 0, `found a bare word of 22 bytes, expected a value`},
	} {
		_, err := Compact(tt.in)
		if tt.msg != "" {
			requireSyntax(t, err, tt.offset, tt.msg, tt.in)
		}
		require.Error(t, err, "%q", tt.in)
		require.Equal(t, err, Valid(tt.in))
		_, err = walkAll(tt.in)
		var se *SyntaxError
		require.ErrorAs(t, err, &se, "%q", tt.in)
		require.Equal(t, tt.offset, se.Offset, "%q", tt.in)
	}
}

func TestDuplicates(t *testing.T) {
	for _, tt := range []struct {
		in     string
		offset int
		name   string
	}{
		{`{"a":1,"a":2}`, 7, `"a"`},
		{`{"a":1,"b":2, "\u0061":2}`, 14, `"a"`},
		{`{"\n":1,"\u000A":2}`, 8, `"\n"`},
		{`[{"x":{"":1,"":2}}]`, 12, `""`},
		{`{"abcdefghijklmnopqrstuvwxyz":1,"abcdefghijklmnopqrstuvwxyz":2}`, 32, `"abcdefghijklmnopqrstuvwxyz"`},
	} {
		_, err := Compact(tt.in)
		requireSyntax(t, err, tt.offset, "found duplicate member name "+tt.name, tt.in)
		_, err = walkAll(tt.in)
		require.ErrorContains(t, err, "found duplicate member name "+tt.name)
	}

	// The same name in different objects is fine.
	for _, in := range []string{`{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":1}]`, `{"a":{"b":1},"b":2}`, `{"a":1,"A":2}`} {
		require.NoError(t, Valid(in))
	}

	// Around the size at which the set changes its form, a repetition of each
	// member is found; and without one, nothing is.
	for n := 1; n < 40; n++ {
		members := make([]string, n)
		for i := range members {
			members[i] = `"name` + strconv.Itoa(i) + `":{"name0":0}`
		}
		all := strings.Join(members, ",")
		require.NoError(t, Valid("{"+all+"}"))
		for i, m := range members {
			err := Valid("{" + all + "," + m + "}")
			requireSyntax(t, err, len(all)+2, `found duplicate member name "name`+strconv.Itoa(i)+`"`, m)
		}
	}
}

func TestLargeObject(t *testing.T) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range 100_000 {
		b.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	require.NoError(t, Valid(b.String()+`"x":0}`))
	require.Error(t, Valid(b.String()+`"0":0}`))
}

func TestLargeObjectIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	scale.Linear(t, 10_000, func(n int) func() {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"` + strconv.Itoa(i) + `":0,`)
		}
		object := "{" + b.String() + `"x":0}`
		return func() { require.NoError(t, Valid(object)) }
	})
}

func TestDepth(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	const msg = "found a value nested deeper than 1000 levels"

	require.NoError(t, Valid(nest(MaxDepth)))
	require.NoError(t, Valid(objects(MaxDepth)))
	requireSyntax(t, Valid(nest(MaxDepth+1)), MaxDepth, msg, "arrays")
	requireSyntax(t, Valid(objects(MaxDepth+1)), 5*MaxDepth, msg, "objects")
	_, err := walkAll(nest(MaxDepth))
	require.NoError(t, err)
	_, err = walkAll(nest(MaxDepth + 1))
	requireSyntax(t, err, MaxDepth, msg, "arrays")
	_, err = walkAll(objects(MaxDepth + 1))
	requireSyntax(t, err, 5*MaxDepth, msg, "objects")
	require.Error(t, Valid(strings.Repeat("[", 10_000_000)))

	// Levels of the caller and of Skip add up, and closing gives them back.
	s := scanner("[" + nest(10) + "," + nest(MaxDepth-1) + "," + nest(MaxDepth) + "]")
	require.NoError(t, s.Array())
	for range 2 {
		ok, err := s.Elem()
		require.NoError(t, err)
		require.True(t, ok)
		_, err = walk(s, nil)
		require.NoError(t, err)
	}
	_, err = s.Elem()
	require.NoError(t, err)
	at := s.Offset()
	requireSyntax(t, s.Skip(), at+MaxDepth-1, msg, "rest")
	require.Equal(t, at, s.Offset())
}

func TestKindNull(t *testing.T) {
	for in, want := range map[string]byte{
		"": 0, " ": 0, "{": '{', " [": '[', "\n\"": '"', "true": 't', "false": 'f', "null": 'n',
		"-1": '-', "0": '0', "7": '0', "9": '0', "+": 0, "}": 0, ",": 0, "x": 0,
	} {
		s := scanner(in)
		require.Equal(t, want, s.Kind(), "%q", in)
		require.Equal(t, want, s.Kind(), "%q", in)
	}
	s := scanner(" null 1")
	require.True(t, s.Null())
	require.False(t, s.Null())
	n, err := s.Int()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.False(t, s.Null())
	require.False(t, scanner("nul").Null())
}

func TestStringBool(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"abc"`: "abc", ` "x"`: "x", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u4e16"`: "Aé世", `"\ud83d\ude00"`: "😀", `"\uD83D\uDE00!"`: "😀!",
		`"a\u0000b"`: "a\x00b", "\"\x7f\u2028\"": "\x7f\u2028", `"\ufffd"`: "\uFFFD",
		`"é世😀 longer than eight bytes \n"`: "é世😀 longer than eight bytes \n",
	} {
		got, err := scanner(in).String()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for in, msg := range map[string]string{
		"":     "found end of text, expected a string",
		"null": `found null, expected a string`,
		"12":   `found a number, expected a string`,
		"[]":   `found an array, expected a string`,
	} {
		_, err := scanner(in).String()
		requireSyntax(t, err, 0, msg, in)
	}
	for in, want := range map[string]bool{"true": true, " false": false} {
		got, err := scanner(in).Bool()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := scanner(" 0").Bool()
	requireSyntax(t, err, 1, `found a number, expected true or false`, " 0")
	requireSyntax(t, scanner(`"x"`).Object(), 0, "found a string of 1 byte, expected an object", "")
	requireSyntax(t, scanner(``).Array(), 0, "found end of text, expected an array", "")
}

func TestInts(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, " 7": 7, "-12": -12, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		got, err := scanner(in).Int()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for in, msg := range map[string]string{
		"9223372036854775808":      `found a number, which is out of range for int64`,
		"-9223372036854775809":     `found a number, which is out of range for int64`,
		"18446744073709551615":     `found a number, which is out of range for int64`,
		"18446744073709551616":     `found a number, which is out of range for 64 bits`,
		"123456789012345678901234": `found a number, which is out of range for 64 bits`,
		"1.0":                      `found a number with a fraction or an exponent, expected an integer`,
		"1e2":                      `found a number with a fraction or an exponent, expected an integer`,
		"1E2":                      `found a number with a fraction or an exponent, expected an integer`,
		`"1"`:                      `found a string of 1 byte, expected an integer`,
		"00":                       `found a number with a leading zero`,
	} {
		_, err := scanner(in).Int()
		requireSyntax(t, err, 0, msg, in)
	}
	for in, want := range map[string]uint64{"0": 0, "-0": 0, "18446744073709551615": math.MaxUint64, "9999999999999999999": 9999999999999999999} {
		got, err := scanner(in).Uint()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"-1", "18446744073709551616", "99999999999999999999", "1.5", "", "-", "true"} {
		_, err := scanner(in).Uint()
		require.Error(t, err)
	}
}

// A number that only rounds to a whole one is refused, and is there to be read again.
func TestWhole(t *testing.T) {
	for in, want := range map[string]int64{
		"7": 7, " -7": -7, "9223372036854775807": math.MaxInt64, "1.0": 1, "1e3": 1000, "-1500e-2": -15, "1.50e1": 15, "0.0": 0, "-0e-7": 0, "9007199254740991.0": 1<<53 - 1,
	} {
		s := scanner(in)
		n, err := Whole[int64](s)
		require.NoError(t, err, in)
		require.Equal(t, want, n, in)
		require.NoError(t, s.End(), in)
	}
	for _, in := range []string{"1.5", "1700000000374.999999", "1e-400", "15e-2", "9007199254740993.0", "9223372036854775808", "1e309", "null", ""} {
		s := scanner(in)
		_, err := Whole[int64](s)
		require.Error(t, err, in)
		require.Equal(t, in, s.Rest())
	}
}

func TestFloat(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "1": 1, "-1.5": -1.5, "1e3": 1000, "1E-3": 0.001, "1.25e+2": 125, "1e-999": 0, "5e-324": 5e-324,
		"1.7976931348623157e308": math.MaxFloat64,
	} {
		got, err := scanner(in).Float()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f, err := scanner("-0").Float()
	require.NoError(t, err)
	require.True(t, math.Signbit(f))
	_, err = scanner("1e309").Float()
	requireSyntax(t, err, 0, `found a number, which is out of range for float64`, "")
	for _, in := range []string{"", "NaN", "Infinity", "0x1p3", "1_0", `"1"`, "1.", "01"} {
		s := scanner(in)
		if _, err = s.Float(); err == nil {
			err = s.End()
		}
		require.Error(t, err, "%q", in)
	}
}

func TestMillis(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0": 0, "-0": 0, "0.0": 0, "0e99999999999999999999": 0, "1": 1e6, "1.5": 1.5e6, "-1.5": -1.5e6, "65000": 65e9,
		"0.000001": 1, "0.0000001": 0, "0.0000005": 1, "-0.0000005": -1, "0.00000049999999999999": 0,
		"0.00000050000000000001": 1, "0.0000014": 1, "0.0000015": 2, "1.9999999": 2e6, "0.9999995": 1e6,
		"1e3": 1e9, "1E3": 1e9, "1.5e+3": 1.5e9, "1500e-3": 1.5e6, "1e-6": 1, "5e-7": 1, "4e-7": 0, "1e-99999999999999999999": 0,
		"0.001e3": 1e6, "0.00123e2": 123e3, "100e-2": 1e6,
		"9223372036854.775807": math.MaxInt64, "-9223372036854.775808": math.MinInt64,
		"9223372036854.7758074": math.MaxInt64, "-9223372036854.7758084": math.MinInt64,
		"9223372036854775807e-6": math.MaxInt64, "0.000009223372036854775807e18": math.MaxInt64,
		"0." + strings.Repeat("0", 400) + "1e401": 1e6,
		"1" + strings.Repeat("0", 400) + "e-400":  1e6,
	} {
		got, err := scanner(in).Millis()
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{
		"9223372036854.775808", "-9223372036854.775809", "9223372036854.7758075", "-9223372036854.7758085", "1e13",
		"1e99999999999999999999", "99999999999999999999", "9999999999999", "18446744073709.551616", "10000000000000000000",
	} {
		_, err := scanner(in).Millis()
		require.ErrorContains(t, err, "out of range", in)
	}
	for _, in := range []string{"", `"1"`, "null", "1.", "01", "-", "1e"} {
		_, err := scanner(in).Millis()
		require.Error(t, err, in)
	}
}

func TestTime(t *testing.T) {
	for in, want := range map[string]time.Time{
		`"2024-02-29T12:34:56Z"`:              time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC),
		`"2024-02-29T12:34:56.5Z"`:            time.Date(2024, 2, 29, 12, 34, 56, 5e8, time.UTC),
		`"2024-02-29T12:34:56.000Z"`:          time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC),
		`"2024-02-29T12:34:56.123456789Z"`:    time.Date(2024, 2, 29, 12, 34, 56, 123456789, time.UTC),
		`"2024-03-01T01:00:00+02:00"`:         time.Date(2024, 2, 29, 23, 0, 0, 0, time.UTC),
		`"2024-02-29T23:30:00.25-23:59"`:      time.Date(2024, 3, 1, 23, 29, 0, 25e7, time.UTC),
		`"2024-01-01T00:00:00-00:00"`:         time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		`"2000-02-29T00:00:00Z"`:              time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC),
		`"0000-01-01T00:00:00Z"`:              time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		`"9999-12-31T23:59:59.999999999Z"`:    time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		`"2024\u002d01-01T00:00:00\u005a"`:    time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		` "1969-12-31T23:59:59.999999999Z"  `: time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
	} {
		got, err := scanner(in).Time()
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
		require.Equal(t, time.UTC, got.Location())
	}
	for _, tt := range []struct {
		in     string
		offset int
		msg    string
	}{
		{`12`, 0, `found a number, expected a time in a string`},
		{`""`, 1, `found a time of 0 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"yesterday"`, 1, `found a time of 9 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-01-01"`, 11, `found a time of 10 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-01-01T00:00:00"`, 20, `found a time of 19 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-01-01t00:00:00Z"`, 11, `found a time of 20 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-01-01 00:00:00Z"`, 11, `found a time of 20 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-01-01T0x:00:00Z"`, 13, `found a time of 20 bytes with wrong form, expected 2006-01-02T15:04:05Z`},
		{`"2024-00-01T00:00:00Z"`, 6, `found a time of 20 bytes with month out of range`},
		{`"2024-13-01T00:00:00Z"`, 6, `found a time of 20 bytes with month out of range`},
		{`"2024-01-00T00:00:00Z"`, 9, `found a time of 20 bytes with day out of range`},
		{`"2024-04-31T00:00:00Z"`, 9, `found a time of 20 bytes with day out of range`},
		{`"2023-02-29T00:00:00Z"`, 9, `found a time of 20 bytes with day out of range`},
		{`"1900-02-29T00:00:00Z"`, 9, `found a time of 20 bytes with day out of range`},
		{`"2024-01-01T24:00:00Z"`, 12, `found a time of 20 bytes with hour out of range`},
		{`"2024-01-01T00:60:00Z"`, 15, `found a time of 20 bytes with minute out of range`},
		{`"2016-12-31T23:59:60Z"`, 18, `found a time of 20 bytes with second out of range`},
		{`"2024-01-01T00:00:00.Z"`, 21, `found a time of 21 bytes with no digit after '.'`},
		{`"2024-01-01T00:00:00,5Z"`, 20, `found a time of 22 bytes with no offset, expected Z or +00:00`},
		{`"2024-01-01T00:00:00.1234567890Z"`, 30, `found a time of 31 bytes with more than 9 fraction digits`},
		{`"2024-01-01T00:00:00.5"`, 22, `found a time of 21 bytes with no offset, expected Z or +00:00`},
		{`"2024-01-01T00:00:00z"`, 20, `found a time of 20 bytes with no offset, expected Z or +00:00`},
		{`"2024-01-01T00:00:00ZZ"`, 21, `found a time of 21 bytes with something after the Z`},
		{`"2024-01-01T00:00:00+0000"`, 20, `found a time of 24 bytes with no offset, expected Z or +00:00`},
		{`"2024-01-01T00:00:00+24:00"`, 20, `found a time of 25 bytes with offset out of range`},
		{`"2024-01-01T00:00:00+00:60"`, 20, `found a time of 25 bytes with offset out of range`},
		{`"0000-01-01T00:00:00+01:00"`, 1, `found a time of 25 bytes with year out of range in UTC`},
		{`"9999-12-31T23:30:00-01:00"`, 1, `found a time of 25 bytes with year out of range in UTC`},
		{`"2024\u002d13-01T00:00:00Z"`, 0, `found a time of 20 bytes with month out of range`},
		{`"2024`, 5, `found end of text, expected the end of a string`},
	} {
		_, err := scanner(tt.in).Time()
		requireSyntax(t, err, tt.offset, tt.msg, tt.in)
	}
}

// A method that fails leaves the Scanner where another can read the value.
func TestStays(t *testing.T) {
	s := scanner(`[ {"a":[1.5 , 2]} , "x"]`)
	require.NoError(t, s.Array())
	for _, want := range []string{`{"a":[1.5,2]}`, `"x"`} {
		ok, err := s.Elem()
		require.NoError(t, err)
		require.True(t, ok)
		_, err = s.Int()
		require.Error(t, err)
		_, err = s.Uint()
		require.Error(t, err)
		_, err = s.Float()
		require.Error(t, err)
		_, err = s.Millis()
		require.Error(t, err)
		_, err = s.Time()
		require.Error(t, err)
		_, err = s.Bool()
		require.Error(t, err)
		require.Error(t, s.Array())
		require.False(t, s.Null())
		raw, err := s.Raw()
		require.NoError(t, err)
		require.Equal(t, want, raw)
	}
	ok, err := s.Elem()
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.End())
}

func TestCheckUTF8(t *testing.T) {
	require.NoError(t, CheckUTF8(""))
	require.NoError(t, CheckUTF8("grüße \uFFFD 😀"))
	requireSyntax(t, CheckUTF8("ü\uFFFD\xffx"), 5, `found invalid UTF-8 "\xff"`, "")
	requireSyntax(t, CheckUTF8("\xed\xa0\x80"), 0, `found invalid UTF-8 "\xed"`, "")
}

// A Scanner finds invalid UTF-8 by itself, wherever it stands: text that CheckUTF8 refuses is an
// error, and in a string the same error.
func TestScannerUTF8(t *testing.T) {
	for _, in := range []string{"\xff", "\"\\\xff\"", "{\"\xc3\":\xc3", "[\xf0\x9f", "aaaaaaaaaaaaaaaaaaaaaa\xff", "aaaaaaaaaaaaaaaaaaa\x80\x80\x80\x80\x80\x80"} {
		_, err := walkAll(in)
		require.Error(t, err)
		require.Error(t, Valid(in))
	}
	for _, ok := range []string{"", "a", "ü", "世", "😀", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"} {
		for _, bad := range []string{"", "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xe3\x81", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"} {
			for before := range 10 {
				for after := range 10 {
					body := strings.Repeat("x", before) + ok + bad + strings.Repeat("y", after)
					want := CheckUTF8(`"` + body)
					require.Equal(t, bad == "", want == nil)
					for _, in := range []string{`"` + body + `"`, `"` + body + `\n", "more text"`} {
						_, err := scanner(in).String()
						require.Equal(t, want, err, "%q", in)
						_, err = scanner(in).Raw()
						require.Equal(t, want, err, "%q", in)
					}
					s := scanner(`{"` + body + `":1}`)
					require.NoError(t, s.Object())
					_, _, err := s.Member()
					require.Equal(t, want == nil, err == nil)
					require.Equal(t, want == nil, Valid(`{"`+body+`":1}`) == nil)
					require.Equal(t, strings.ToValidUTF8(body, "?") == body, want == nil)
					require.Equal(t, `"`+string([]rune(body))+`"`, Quote(body))
				}
			}
		}
	}
	// The error that comes first.
	_, err := scanner("\"\\q\xff\"").String()
	requireSyntax(t, err, 1, `found a backslash that begins no escape in a string`, "")
	_, err = scanner("\"\xff\\q\"").String()
	requireSyntax(t, err, 1, `found invalid UTF-8 "\xff"`, "")
}

func TestAllocs(t *testing.T) {
	buf := make([]byte, 0, 4096)
	now := time.Date(2024, 2, 29, 12, 34, 56, 123456789, time.UTC)
	plain := strings.Repeat("The quick brown fox. ", 20)
	var s Scanner
	none := func(name string, f func()) {
		t.Helper()
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	none("AppendString", func() { buf = AppendString(buf[:0], plain) })
	none("AppendFloat", func() { buf = AppendFloat(buf[:0], 1.25e-9) })
	none("AppendMillis", func() { buf = AppendMillis(buf[:0], 1234567) })
	none("AppendTime", func() { buf = AppendTime(buf[:0], now) })
	none("Scanner", func() {
		s.Reset(`{"s":"text","i":-12,"u":12,"f":1.5,"d":12.25,"t":"2024-02-29T12:34:56.123Z","b":true,"n":null,"a":[1,2],"r":{"x":[{}]}}`)
		check(s.Object())
		for {
			name, ok, err := s.Member()
			check(err)
			if !ok {
				break
			}
			switch name {
			case "s":
				_, err = s.String()
			case "i":
				_, err = s.Int()
			case "u":
				_, err = s.Uint()
			case "f":
				_, err = s.Float()
			case "d":
				_, err = s.Millis()
			case "t":
				_, err = s.Time()
			case "b":
				_, err = s.Bool()
			case "n":
				s.Null()
			case "a":
				check(s.Array())
				for {
					ok, err = s.Elem()
					check(err)
					if !ok {
						break
					}
					check(s.Skip())
				}
			default:
				_, err = s.Raw()
			}
			check(err)
		}
		check(s.End())
	})
	none("Compact", func() {
		_, err := Compact(nested)
		check(err)
	})
	none("Valid", func() { check(Valid(nested)) })
	none("Repair", func() { Repair(`{"a":"gr\u00fc\ud83d\ude00 é"}`) })
	none("CheckUTF8", func() { check(CheckUTF8(nested)) })
}

// nested is a compact object of about 300 bytes.
const nested = `{"tool":"search","arguments":{"query":"golang json scanner","limit":25,"filters":{"lang":["en","de"],"safe":true}},"result":{"hits":[{"id":"a1","score":0.87,"title":"Scanning JSON"},{"id":"b2","score":0.55,"title":"Appending JSON \"fast\""}],"total":2},"elapsed":12.625,"retries":0,"cursor":null,"ok":true}`

func TestSyntaxErrorAs(t *testing.T) {
	var se *SyntaxError
	require.True(t, errors.As(scanner("x").Skip(), &se))
	require.True(t, json.Valid([]byte(nested)))
	s := scanner(`{"a":1}`)
	require.NoError(t, s.Object())
	_, _, err := s.Member()
	require.NoError(t, err)
	requireSyntax(t, s.Duplicate("a"), 5, `found duplicate member name "a"`, "")
}

func TestAside(t *testing.T) {
	const text = `"a\n\ud83d\ude00"`
	var s Scanner
	s.Reset(text)
	got, err := s.Aside()
	require.NoError(t, err)
	require.Equal(t, "a\n😀", got)
	s.Reset(text)
	s.Brief = true
	got, err = s.Aside()
	require.NoError(t, err)
	require.Equal(t, `a\n\ud83d\ude00`, got)
	s.Reset(`"a\ud83d"`)
	s.Brief = true
	_, err = s.Aside()
	require.Error(t, err, "unread values are validated all the same")
}

func TestBusy(t *testing.T) {
	for c := range 256 {
		for i := range 8 {
			s := []byte("a, y.b!x")
			s[i] = byte(c)
			busy := c == '%' || c == '-' || c >= '0' && c <= '\\' || c >= 'z'
			require.Equal(t, busy, Busy(Load64(string(s), 0))&hi != 0, "%q", s)
		}
	}
}

func TestValidUTF8(t *testing.T) {
	for n := range 70 {
		s := strings.Repeat("a", n)
		require.True(t, ValidUTF8(s))
		for at := range n {
			require.False(t, ValidUTF8(s[:at]+"\x80"+s[at+1:]), "%d of %d", at, n)
			require.True(t, ValidUTF8(s[:at]+"é"+s[at+1:]))
			require.False(t, ValidUTF8((s[:at] + "é")[:at+1]+s[at+1:]))
		}
	}
}

func TestSmallInt(t *testing.T) {
	var s Scanner
	s.Reset("[1, -2147483648, 3000000000]")
	require.NoError(t, s.Array())
	for _, want := range []int64{1, -2147483648, 3000000000} {
		ok, err := s.Elem()
		require.NoError(t, err)
		require.True(t, ok)
		at := s.Offset()
		n, err := s.SmallInt()
		if int64(int(want)) != want { // where an int has 32 bits
			require.EqualError(t, err, `found a number, which is out of range for int at byte 17`)
			require.Equal(t, at, s.Offset(), "the number is still next")
			return
		}
		require.NoError(t, err)
		require.EqualValues(t, want, n)
	}
}

func TestFirstCharacters(t *testing.T) {
	for n := range 40 {
		for at := range n {
			for _, odd := range []string{"a", "é", "😀", "\x80", "\xe2\x82", "\ufffd"} {
				s := strings.Repeat("b", at) + odd + strings.Repeat("c", n-at-1)
				for want := range 45 {
					i := len(s)
					if runes := []rune(s); want < len(runes) {
						i = 0
						for range want {
							_, size := utf8.DecodeRuneInString(s[i:])
							i += size
						}
					}
					require.Equal(t, i, FirstCharacters(s, want), "%q %d", s, want)
				}
			}
		}
	}
}
