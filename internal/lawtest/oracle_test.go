package lawtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// These tests compare jsonwire with jsontext, an independent implementation of the same
// RFCs and a future package of Go.

// damaged are valid and damaged lines, as real logs have them.
var damaged = []string{
	``, ` `, `{}`, `{"a":1}`, " {\"a\" : [1, 2.50 ,\t\"x\"] }\r\n", `[[],{},null,true,false]`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1},"b":{"b":1}}`, `{"é":1,"\u00e9":2}`,
	`{"a":1`, `{"a":`, `{"a"`, `{"`, `[1,`, `"abc`, `"\`, `"\u12`, `{"a":1}}`, `{"a":1} {"b":2}`, `[1,]`, `{"a":1,}`, `{,}`,
	`"\ud83c\udfb2"`, `"\ud83c"`, `"\udfb2"`, `"\ud83c\u0041"`, `"\uD83C\uD83C"`, "\"\xff\"", "\"\xc3(\"", "\"\xed\xa0\x80\"", "{\"\xff\":1}",
	"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\u2028\"", `"\/\b\f\n\r\t\"\\"`, `"\x"`, `"\U0041"`, `'a'`,
	`0`, `-0`, `-`, `01`, `1.`, `.5`, `+1`, `1e5`, `1E+05`, `1e`, `1e400`, `0x1`, `NaN`, `Infinity`, `9007199254740993`,
	`nul`, `nullx`, `True`, "\xef\xbb\xbf{}", "{}\x00", "\v1", "\u00a01", `{1:2}`, `{"a" 1}`, `[1 2]`, `/**/1`,
}

// deep reports whether text may nest deeper than jsonwire reads, for which jsontext has a
// limit ten times as high. It counts brackets inside strings, too, which does no harm.
func deep(text string) bool {
	return strings.Count(text, "[")+strings.Count(text, "{") > jsonwire.MaxDepth
}

// FuzzScanner checks that jsonwire and jsontext accept the same texts, and read the same
// from them.
func FuzzScanner(f *testing.F) {
	for _, line := range damaged {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if deep(text) {
			t.Skip("nested deeper than the limit of jsonwire, which jsontext does not share")
		}
		theirs := jsontext.Value(text).IsValid()
		ours := jsonwire.Valid(text)
		require.Equal(t, theirs, ours == nil, "%q: jsonwire returns %v, jsontext %v", text, ours, theirs)

		compact, err := jsonwire.Compact(text)
		require.Equal(t, ours == nil, err == nil, "Compact and Valid disagree on %q: %v", text, err)
		if err != nil {
			return
		}
		value := jsontext.Value(strings.Clone(text))
		// Compact of jsontext keeps the spelling of strings and numbers.
		require.NoError(t, value.Compact(jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false)))
		require.Equal(t, string(value), compact)
		requireSameTokens(t, text)
	})
}

// requireSameTokens reads a valid text with both, and requires the same values.
func requireSameTokens(t *testing.T, text string) {
	var s jsonwire.Scanner
	s.Reset(text)
	d := jsontext.NewDecoder(strings.NewReader(text))
	requireSameValue(t, &s, d)
	require.NoError(t, s.End())
}

func requireSameValue(t *testing.T, s *jsonwire.Scanner, d *jsontext.Decoder) {
	kind := s.Kind()
	if theirs := byte(d.PeekKind()); theirs != '0' {
		require.Equal(t, string(theirs), string(kind))
	}
	switch kind {
	case '{':
		requireSameObject(t, s, d)
	case '[':
		requireSameArray(t, s, d)
	case '"':
		ours, err := s.String()
		require.NoError(t, err)
		token, err := d.ReadToken()
		require.NoError(t, err)
		require.Equal(t, token.String(), ours)
	default:
		ours, err := s.Raw()
		require.NoError(t, err)
		theirs, err := d.ReadValue()
		require.NoError(t, err)
		require.Equal(t, string(theirs), ours)
	}
}

func requireSameObject(t *testing.T, s *jsonwire.Scanner, d *jsontext.Decoder) {
	require.NoError(t, s.Object())
	_, err := d.ReadToken()
	require.NoError(t, err)
	for {
		name, ok, err := s.Member()
		require.NoError(t, err)
		token, err := d.ReadToken()
		require.NoError(t, err)
		if !ok {
			require.Equal(t, jsontext.EndObject.Kind(), token.Kind())
			return
		}
		require.Equal(t, token.String(), name)
		requireSameValue(t, s, d)
	}
}

func requireSameArray(t *testing.T, s *jsonwire.Scanner, d *jsontext.Decoder) {
	require.NoError(t, s.Array())
	_, err := d.ReadToken()
	require.NoError(t, err)
	for {
		ok, err := s.Elem()
		require.NoError(t, err)
		if !ok {
			token, err := d.ReadToken()
			require.NoError(t, err)
			require.Equal(t, jsontext.EndArray.Kind(), token.Kind())
			return
		}
		requireSameValue(t, s, d)
	}
}

// FuzzEvent checks that jsontext accepts every line that Event accepts, and that the
// encoding is stable: an event that is written, read and written again is the same event
// with the same text.
func FuzzEvent(f *testing.F) {
	for _, line := range damaged {
		f.Add([]byte(line))
		f.Add([]byte(`{"id":"1","sequence":0,"timestamp":"2026-01-02T03:04:05.678Z","type":"agent.toolCalled","runId":"r","payload":{"callId":"c","toolId":"t","arguments":` + line + `}}`))
		f.Add([]byte(`{"type":"x.y","payload":` + line + `,"z":` + line + `}`))
	}
	for info := range agentevents.Kinds() {
		f.Add([]byte(`{"payload":{"new":[1]},"type":"` + string(info.Kind) + `","step":3,"marks":["late","new"],"agentId":"","x":{"y": 1}}`))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var ev agentevents.Event
		if deep(string(line)) || json.Unmarshal(line, &ev) != nil {
			t.Skip("deeper than our limit, or not an event")
		}
		require.True(t, jsontext.Value(line).IsValid(), "jsontext refuses %q", line)
		once, err := ev.AppendJSON(nil)
		require.NoError(t, err)
		require.True(t, jsontext.Value(once).IsValid(), "jsontext refuses the written text: %q", once)
		require.False(t, bytes.ContainsAny(once, "\n\r"), "a line has to stay a line: %q", once)

		var again agentevents.Event
		require.NoError(t, again.UnmarshalJSON(once))
		twice, err := again.AppendJSON(nil)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))

		var last agentevents.Event
		require.NoError(t, last.UnmarshalJSON(twice))
		require.Equal(t, again, last)
	})
}
