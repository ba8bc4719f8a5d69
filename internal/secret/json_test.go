package secret

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

func TestJSON(t *testing.T) {
	s := scanner("C4N4RYs3cr3t", "12345678")
	const key, value = `"[REDACTED:key]"`, `"[REDACTED:secret]"`
	for _, c := range []struct{ in, want string }{
		{`1.5`, `1.5`}, {`"x"`, `"x"`}, {`null`, `null`}, {`{}`, `{}`}, {`[]`, `[]`},
		{`"C4N4RYs3cr3t"`, value}, {`12345678`, value}, {`1.2345678e7`, value}, {`[12345678,1]`, `[` + value + `,1]`},
		{`{"password":"x","a":"b"}`, `{"password":` + key + `,"a":"b"}`},
		{`{"password":"","b":null}`, `{"password":"","b":null}`},
		{`{"password":true,"tokens":12,"max_tokens":"12"}`, `{"password":true,"tokens":12,"max_tokens":"12"}`},
		{`{"password":1234,"pin":1234,"pin2":12}`, `{"password":` + key + `,"pin":` + key + `,"pin2":12}`},
		{`{"secrets":["a","b"],"credentials":{"a":1}}`, `{"secrets":` + key + `,"credentials":` + key + `}`},
		{`["Authorization","Bearer x"]`, `["Authorization",` + key + `]`},
		{`["Accept","*/*","Authorization","Basic dXNlcg","Host","x"]`, `["Accept","*/*","Authorization",` + key + `,"Host","x"]`},
		{`["password","username","token"]`, `["password","username","token"]`},
		{`["mysql","--password","letmein","--host","x"]`, `["mysql","--password",` + key + `,"--host","x"]`},
		{`{"name":"password","value":"x"}`, `{"name":"password","value":` + key + `}`},
		{`{"value":"x","name":"password"}`, `{"value":` + key + `,"name":"password"}`},
		{`{"name":"city","value":"x"}`, `{"name":"city","value":"x"}`},
		{`{"body":"{\"password\":\"x\",\"a\":[1]}"}`, `{"body":"{\"password\":\"[REDACTED:key]\",\"a\":[1]}"}`},
		{`{"token":{"value":"abcd1234","expires":3600}}`, `{"token":"[REDACTED:key]"}`},
		{`{"Token":["abcd1234"],"password=":"hunter2x"}`, `{"Token":"[REDACTED:key]","password=":"[REDACTED:key]"}`},
		{`{"token":["abcd1234","efgh5678"],"tokens":{"input":12}}`, `{"token":["abcd1234","efgh5678"],"tokens":{"input":12}}`},
		{`{"body":"{ \"a\" : \"{\\\"token\\\":\\\"abcd1234\\\"}\" }"}`, `{"body":"{ \"a\" : \"{\\\"token\\\":\\\"[REDACTED:key]\\\"}\" }"}`},
		{`{"body":"{\"password\":\"x"}`, `{"body":"{\"password\":\"[REDACTED:key]"}`},
		{`{"C4N4RYs3cr3t":1,"x C4N4RYs3cr3t":2,"[REDACTED:secret]":3}`, `{"[REDACTED:secret]-2":1,"x [REDACTED:secret]":2,"[REDACTED:secret]":3}`},
		{`{"a":{"C4N4RYs3cr3t":{"password":"x"}}}`, `{"a":{"[REDACTED:secret]":{"password":` + key + `}}}`},
		{`{"properties":{"password":{"type":"string"}}}`, `{"properties":{"password":{"type":"string"}}}`},
	} {
		got, err := s.JSON(c.in, nil, nil)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got)
		again, err := s.JSON(got, nil, nil)
		require.NoError(t, err)
		require.Equal(t, got, again, "masked text stays")
	}
	for _, bad := range []string{``, `{"a"`, `["a"`, `{"x":{"secret":`, `tru`} {
		_, err := s.JSON(bad, nil, nil)
		require.Error(t, err, bad)
	}
}

// Masked strings go through the function of the caller, with the name around them.
func TestJSONText(t *testing.T) {
	s := scanner("C4N4RYs3cr3t")
	var seen []string
	got, err := s.JSON(`{"a":["b","C4N4RYs3cr3t"],"password":"x","c":{"d":"{\"password\":\"y\"}"}}`, nil, func(member, text string) string {
		seen = append(seen, member+"="+text)
		return strings.ToUpper(text)
	})
	require.NoError(t, err)
	require.Equal(t, `{"a":["B","[REDACTED:SECRET]"],"password":"[REDACTED:key]","c":{"d":"{\"PASSWORD\":\"[REDACTED:KEY]\"}"}}`, got)
	require.Equal(t, []string{"a=b", "a=[REDACTED:secret]", `d={"password":"[REDACTED:key]"}`}, seen)

	taken := jsonwire.Taken{}
	taken.Add("[REDACTED:secret]")
	got, err = s.JSON(`{"C4N4RYs3cr3t":1}`, taken, nil)
	require.NoError(t, err)
	require.Equal(t, `{"[REDACTED:secret]-2":1}`, got)
}

// Nothing is copied when nothing changes.
func TestJSONWithoutSecrets(t *testing.T) {
	s := scanner()
	const text = `{"path":"internal/x.go","lines":[1,2,3],"note":"nothing here","deep":{"a":{"b":"c"}},"tokens":12}`
	require.Zero(t, testing.AllocsPerRun(10, func() {
		if out, err := s.JSON(text, nil, nil); err != nil || out != text {
			panic(fmt.Sprint(out, err))
		}
	}))
}

// Quiet text has nothing to be masked, wherever it is in a value. Most text without secrets is
// quiet.
func TestQuiet(t *testing.T) {
	s := scanner()
	for _, file := range []string{"planted.txt", "harmless.txt"} {
		quiet, n := 0, 0
		for _, c := range samples(t, file) {
			q := jsonwire.Quote(c.Text)
			values := []string{q, `{"a":` + q + `}`, `{` + q + `:"x7abcde"}`, `[` + q + `,"x7abcde"]`, `{"value":"x7abcde","name":` + q + `,"b":1}`, `{"b":1,"value":` + q + `,"name":"c"}`}
			if jsonwire.Valid(c.Text) == nil {
				values = append(values, c.Text, `{"a":[1,`+c.Text+`]}`)
			}
			for _, v := range values {
				raw, is, err := s.Compact(v)
				require.NoError(t, err)
				n++
				if !is {
					continue
				}
				quiet++
				out, err := s.JSON(raw, nil, nil)
				require.NoError(t, err)
				require.Equal(t, raw, out)
			}
		}
		t.Logf("%s: %d of %d are quiet", file, quiet, n)
		if file == "harmless.txt" {
			require.Greater(t, quiet, n/2)
		}
	}
}

// The texts of the corpus are cut at the end, as a string of JSON may be.
func TestQuietEnds(t *testing.T) {
	s := scanner()
	for _, c := range samples(t, "planted.txt") {
		for i := range len(c.Text) {
			raw := jsonwire.Quote(c.Text[:i])
			if _, quiet, err := s.Compact(raw); quiet {
				require.NoError(t, err)
				out, err := s.JSON(raw, nil, nil)
				require.NoError(t, err)
				require.Equal(t, raw, out)
			}
		}
	}
}
