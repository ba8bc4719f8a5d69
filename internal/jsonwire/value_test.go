package jsonwire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var validTexts = []string{
	`null`, `true`, `false`, `0`, `-0`, `12`, `-1.5e+10`, `1E5`, `""`, `"a"`, `"\u00e9\ud83d\ude00\/"`, `[]`, `{}`,
	`[1,2,3]`, `{"a":1}`, `{"a":[{"b":null}],"c":"d e"}`, nested, `[[],{},[{}]]`, "\"\u2028 \x7f\"",
	" null ", "\t1\n", "[ ]", "{ }", "[ 1 ,\r\n2 ]", `{ "a b" : "c  d" , "e" : [ { } , "\" : , " ] }`,
	"{\n  \"a\": 1.0,\n  \"b\": [\n    true,\n    \"x\\\\\"\n  ]\n}\n", `{"z":1,"a":2}`, `[1e1000, 1.000]`, `{"":{"":{"":0}}}`,
}

func TestAppendRespelled(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":[1,"x"]}`:                `{"a":[1,"x"]}`,
		`{"a\"":"\n\\u0041\\/","b":1}`: `{"a\"":"\n\\u0041\\/","b":1}`,
		`{"\u0061":"\u00e9\ud83d\ude00\/","\/":"\u000A\u001F\u0022\u005C"}`: `{"a":"é😀/","/":"\n\u001f\"\\"}`,
		`["\u0001","\"\u0041\"","\u4e2d\u6587"]`:                            `["\u0001","\"A\"","中文"]`,
	} {
		text := append(make([]byte, 0, 200), in...)
		require.Equal(t, in+want, string(AppendRespelled(text, text)))
		require.Equal(t, want, string(AppendRespelled(nil, []byte(want))))
		require.Zero(t, testing.AllocsPerRun(10, func() { AppendRespelled(text, text) }))
	}
	for _, in := range validTexts {
		for _, tail := range []int{0, 1, 2, 5} { // of text that is not valid
			AppendRespelled(nil, []byte(in[:len(in)-min(tail, len(in))]))
		}
		require.JSONEq(t, strings.ReplaceAll(in, "1e1000", "1"), strings.ReplaceAll(string(AppendRespelled(nil, []byte(in))), "1e1000", "1"))
	}
}

func TestCompact(t *testing.T) {
	for _, in := range validTexts {
		var b bytes.Buffer
		require.NoError(t, json.Compact(&b, []byte(in)))
		got, err := Compact(in)
		require.NoError(t, err, in)
		require.Equal(t, b.String(), got)
		require.NoError(t, Valid(in))

		again, err := Compact(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
		if !strings.Contains(got, `\`) { // escaped names have to be unescaped
			require.Zero(t, testing.AllocsPerRun(1, func() { _, _ = Compact(got) }))
		}

		walked, err := walkAll(in)
		require.NoError(t, err)
		require.JSONEq(t, strings.ReplaceAll(got, "1e1000", "1"), strings.ReplaceAll(walked, "1e1000", "1"))
	}
	_, err := Compact("[\"\xff\"]")
	requireSyntax(t, err, 2, `found invalid UTF-8 "\xff"`, "")
	requireSyntax(t, Valid("[\"\xff\"]"), 2, `found invalid UTF-8 "\xff"`, "")
}

func TestRepair(t *testing.T) {
	for _, in := range append(validTexts, "", `\ud83d`, `"\\ud83d"`, `"\`, `"\u`, `"\ud83`, `"\ud83d\ude00`, `"\u00dd"`, `{"a":"\uD83D\uDE00"`, `"\q\u12g4"`) {
		got, changed := Repair(in)
		require.False(t, changed, "%q", in)
		require.Equal(t, in, got)
	}
	for _, tt := range []struct{ in, want string }{
		{"\xff", "\uFFFD"},
		{"[\"a\xff\xfe\"]", "[\"a\uFFFD\uFFFD\"]"},
		{"\"\xed\xa0\xbd\"", "\"\uFFFD\uFFFD\uFFFD\""},
		{`"\ud83d"`, `"\ufffd"`},
		{`"\uDE00"`, `"\ufffd"`},
		{`{"\ud83d":"\ude00"}`, `{"\ufffd":"\ufffd"}`},
		{`"x\ud83dy"`, `"x\ufffdy"`},
		{`"\ud83d\ud83d\ude00\ude00"`, `"\ufffd\ud83d\ude00\ufffd"`},
		{`"\ud83d\u0041"`, `"\ufffd\u0041"`},
		{`"\ud83d\n"`, `"\ufffd\n"`},
		{`"\\\ud83d\""`, `"\\\ufffd\""`},
		{`"\"\ud83d" \ud83d`, `"\"\ufffd" \ud83d`},
		{"\"\\ud83d\xff\"", "\"\\ufffd\uFFFD\""},
		{`"\ud83d`, `"\ufffd`},
		{"\"\\\xff\\ud83d\"", "\"\\\uFFFD\\ufffd\""},
	} {
		got, changed := Repair(tt.in)
		require.True(t, changed, "%q", tt.in)
		require.Equal(t, tt.want, got)
		again, changed := Repair(got)
		require.False(t, changed)
		require.Equal(t, got, again)
	}
}

func TestPointer(t *testing.T) {
	// Each entry is a text in which | marks the offset.
	for _, tt := range []struct{ in, want string }{
		{`|`, ``}, {`|1`, ``}, {`1|2`, ``}, {`1 |x`, ``}, {`|{}`, ``}, {`{|}`, ``}, {`{}|`, ``}, {`{} |{}`, ``},
		{`{|"a":1}`, `/a`}, {`{"|a":1}`, `/a`}, {`{"a"|:1}`, `/a`}, {`{"a":|1}`, `/a`}, {`{"a": | 1}`, `/a`}, {`{"a":1|}`, ``},
		{`{ | "a":1}`, ``}, {`{"a":1|,"b":2}`, ``}, {`{"a":1,|"b":2}`, `/b`}, {`{"a":1,"b":|2}`, `/b`},
		{`{"a":{"b":{"c":|0}}}`, `/a/b/c`}, {`{"a":{"b":{"c":0}},"d":|0}`, `/d`}, {`{"a":{"b":|{"c":0}}}`, `/a/b`},
		{`{"a":{"b":{}|}}`, `/a`}, {`{"a":{"b":{}, |}}`, `/a`},
		{`[|1]`, `/0`}, {`[1,|2]`, `/1`}, {`[1, | 2]`, `/1`}, {`[1|,2]`, ``}, {`[1,2|]`, ``}, {`[|]`, ``}, {`[1,|]`, ``},
		{`[[],[{"x":[0,1,|2]}]]`, `/1/0/x/2`}, {`[1,"a,b]",|3]`, `/2`},
		{`{"a/b":{"m~n":|1}}`, `/a~1b/m~0n`}, {`{"~1":|1}`, `/~01`}, {`{"":|1}`, `/`}, {`{"":{"":|1}}`, `//`},
		{`{"\u0061\n\"":|1}`, "/a\n\""}, {`{"\ud83d":|1}`, "/\uFFFD"}, {"{\"\xff\":|1}", "/\uFFFD"},
		{`{"a":"x|yz"}`, `/a`}, {`{"a":"x\"|z"}`, `/a`}, {`{"a":[1,2],"b":|tru}`, `/b`}, {`{"a":tru|}`, `/a`}, {`{"a":true|}`, ``},
		// Malformed or cut off at the offset.
		{`{"a":|`, `/a`}, {`{"a"|`, `/a`}, {`{"a|`, ``}, {`{|`, ``}, {`[|`, `/0`}, {`[1,|`, `/1`}, {`[1|`, ``}, {`{"a":"xyz|`, `/a`},
		{`{"a":|}`, `/a`}, {`{"a":|]`, `/a`}, {`{"a":|,"b":1}`, `/a`}, {`{"a":1.|}`, `/a`}, {`{"a":-|}`, `/a`}, {`{"a":0|1}`, `/a`},
		{`{"a":1.|,"b":2}`, `/a`}, {`[1e|]`, `/0`}, {`[1,1e+|`, `/1`},
		{`{"a":1,|x}`, ``}, {`{"a":1,|}`, ``}, {`{"a":1 |"b":2}`, ``}, {`{"a" |1}`, `/a`}, {`{"a":[1 |2]}`, `/a`}, {`{"a":[1|}`, `/a`},
		{`{"a":|'x'}`, `/a`}, {"{\"a\":|\v}", `/a`}, {"{\"a\":\"x|\n\"}", `/a`}, {`{"a":"\|q"}`, `/a`}, {`{"a\|q":1}`, `/a\q`},
		{`[[[[|`, `/0/0/0/0`}, {`{"a":{"b":[true,{|`, `/a/b/1`},
		// Malformed before the offset.
		{`{"a":[}, "b":|1}`, ``}, {`{"a" 1, "b":|1}`, ``}, {`{x:1, "b":|1}`, ``}, {`[1 2, |3]`, ``}, {`{"a":}, "b":|1}`, ``}, {`] |1`, ``},
	} {
		before, after, ok := strings.Cut(tt.in, "|")
		require.True(t, ok)
		require.Equal(t, tt.want, Pointer(before+after, len(before)), tt.in)
	}
	require.Equal(t, "/a", Pointer(`{"a":`, 1000))
	require.Equal(t, "", Pointer(`{"a":1}`, -1))

	// The pointers of real errors.
	for in, want := range map[string]string{
		`{"a":{"b":[1,{"c":01}]}}`:        "/a/b/1/c",
		`{"a":{"b":1,"b":2}}`:             "/a/b",
		`{"a":{"b":"\ud83d"}}`:            "/a/b",
		`{"a":[1,2,3`:                     "/a",
		`{"a":{"x":1,"b\ud83d":1}}`:       "/a/b\uFFFD",
		"{\"a\":[\"\xff\"]}":              "/a/0",
		`[` + strings.Repeat(`[`, 2000):   strings.Repeat("/0", MaxDepth),
		`{"a":[0,1.,2]}`:                  "/a/1",
		`{"a":[0,truth,2]}`:               "/a/1",
		`{"a":[0,nil,2]}`:                 "/a/1",
		`{"a":{"type":"x","n":-},"b":[]}`: "/a/n",
	} {
		err := Valid(in)
		var se *SyntaxError
		require.ErrorAs(t, err, &se)
		require.Equal(t, want, Pointer(in, se.Offset), in)
	}
}

// lookup returns the value in v that pointer leads to.
func lookup(v any, pointer string) (any, bool) {
	for _, tok := range strings.Split(pointer, "/")[1:] {
		tok = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[tok]; !ok {
				return nil, false
			}
		case []any:
			i := 0
			for _, c := range tok {
				i = i*10 + int(c-'0')
			}
			if i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// In a valid text every offset has a pointer that leads to a value.
func TestPointerLeadsSomewhere(t *testing.T) {
	for _, in := range validTexts {
		if strings.Contains(in, "1e1000") || in == "[ ]" {
			continue // not a float64; the value after a '[' counts as element 0
		}
		var v any
		require.NoError(t, json.Unmarshal([]byte(in), &v))
		for i := range len(in) + 1 {
			p := Pointer(in, i)
			_, ok := lookup(v, p)
			require.True(t, ok, "%s at %d: %s", in, i, p)
		}
	}
}

func FuzzRaw(f *testing.F) {
	for _, s := range validTexts {
		f.Add(s)
	}
	for _, s := range []string{`{"a":1,"a":2}`, `"\ud83d"`, `[1,]`, `{"a":}`, `01`, "\"\xff\"", `[[[[`, `{"a" :[ 1 , {"b": "\u00`, `1e`, "\"\n\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Compact(in)
		require.Equal(t, err, Valid(in))

		s := scanner(in)
		walked, walkErr := walk(s, nil)
		if walkErr == nil {
			walkErr = s.End()
		}

		if err != nil {
			var se *SyntaxError
			require.ErrorAs(t, err, &se)
			require.True(t, 0 <= se.Offset && se.Offset <= len(in))
			for _, off := range []int{se.Offset, 0, len(in) / 2, len(in)} {
				require.True(t, utf8.ValidString(Pointer(in, off)))
			}
			stricter := !utf8.ValidString(in) || strings.Contains(se.Msg, "duplicate") ||
				strings.Contains(se.Msg, "surrogate") || strings.Contains(se.Msg, "nested deeper")
			require.Equal(t, false, !stricter && json.Valid([]byte(in)), "%q: %v", in, err)
			if utf8.ValidString(in) {
				require.Error(t, walkErr)
				repaired, changed := Repair(in)
				if changed {
					require.Equal(t, json.Valid([]byte(in)), json.Valid([]byte(repaired)))
					require.Equal(t, len(in), len(repaired))
				} else {
					require.NotContains(t, se.Msg, "lone surrogate")
				}
			}
			return
		}

		var b bytes.Buffer
		require.True(t, json.Valid([]byte(in)))
		require.NoError(t, json.Compact(&b, []byte(in)))
		require.Equal(t, b.String(), got)
		require.NoError(t, walkErr)
		if !strings.Contains(got, `\`) {
			require.Equal(t, got, string(walked))
		}
		_, changed := Repair(in)
		require.False(t, changed)
	})
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "abc", "\"\\\n", "\xff", "é世😀", "12345678\x00", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		wire := Quote(in)
		want := string([]rune(in)) // one U+FFFD for each invalid byte
		got, err := scanner(wire).String()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, Valid(wire))
		checkSpells(t, wire, want)
		var std string
		require.NoError(t, json.Unmarshal([]byte(wire), &std))
		require.Equal(t, want, std)

		// As a text, not a value: both packages make the same of an arbitrary body, unless this one
		// refuses it.
		body := `"` + in + `"`
		s := scanner(body)
		if got, err := s.String(); err == nil && s.End() == nil && utf8.ValidString(body) {
			require.NoError(t, json.Unmarshal([]byte(body), &std))
			require.Equal(t, std, got)
			checkSpells(t, body, got)
		}
	})
}

// checkSpells compares Spells with Text, for text and its neighbours.
func checkSpells(t *testing.T, raw, text string) {
	t.Helper()
	require.True(t, Spells(raw, text), "%s %q", raw, text)
	for i := 0; i <= len(text); i += 1 + len(text)/40 {
		for _, other := range []string{text[:i], text[i:], text[:i] + "\\" + text[i:], text[:i] + "x" + text[min(i+1, len(text)):]} {
			require.Equal(t, Text(raw) == other, Spells(raw, other), "%s %q", raw, other)
		}
	}
}

func TestSpells(t *testing.T) {
	for _, raw := range []string{
		`""`, `"a"`, `"0123456"`, `"01234567"`, `"012345678"`, `"0123456\n"`, `"\"0123456\\"`, `"\\n"`, `"\n"`, `"\u006e"`, `"\/"`, `"01234567\""`, `"{\"a\":[\"b\",\"c d\"]}"`, `"é\u00e9😀\ud83d\ude00"`,
	} {
		checkSpells(t, raw, Text(raw))
	}
	require.False(t, Spells("", ""))
	require.False(t, Spells("12", ""))
}

func TestTokensOfPointers(t *testing.T) {
	for name, token := range map[string]string{"": "", "a": "a", "a/b": "a~1b", "~": "~0", "~1": "~01", "/~/": "~1~0~1"} {
		if got := Token(name); got != token {
			t.Errorf("Token(%q) is %q", name, got)
		}
		if got := Untoken(token); got != name {
			t.Errorf("Untoken(%q) is %q", token, got)
		}
	}
}

func TestMembers(t *testing.T) {
	for object, want := range map[string]string{
		`{"a": 1,"b\n":{"c": [ ]}}`: "a=1;b\n={\"c\":[]};",
		`{"a":1,"b":}`:              "a=1;",
		`{"a":1,"b":2]`:             "a=1;b=2;",
		`[1]`:                       "", `{}`: "", ``: "",
	} {
		got := ""
		for name, raw := range Members(object) {
			got += name + "=" + raw + ";"
			require.True(t, HasMember(object, name))
		}
		require.Equal(t, want, got, object)
		require.False(t, HasMember(object, "c"), object)
	}
	for array, want := range map[string]string{
		`[1, {"c": [ ]},"a"]`: `1;{"c":[]};"a";`, `[1,]`: "1;", `[1}`: "1;", `{"a":1}`: "", `[]`: "", ``: "",
	} {
		got := ""
		for raw := range Elements(array) {
			got += raw + ";"
		}
		require.Equal(t, want, got, array)
	}
	for range Elements(`[1,2]`) {
		break // as Members, it may be left
	}
	for range Members(`{"a":1,"b":2}`) {
		break
	}
	if Text(`"a\u0062"`) != "ab" || Text(`1`) != "" || Text(`"`) != "" {
		t.Error("Text")
	}
}
