package foreign

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForm(t *testing.T) {
	for _, c := range []struct {
		line     string
		badStart bool
		want     string
	}{
		{"\x1f\x8b\x08", false, "gzip"},
		{"\x28\xb5\x2f\xfd\x64", false, "zstd"},
		{"\xfd7zXZ\x00\x00", false, "xz"},
		{"BZh91AY&SY", true, "bzip2"},
		{"\xff\xfe{\x00", false, "UTF-16"},
		{"\xfe\xff\x00{", false, "UTF-16"},
		{"{\x00\"\x00i\x00", false, "UTF-16"},
		{"\x00{\x00\"\x00i", true, "UTF-16"},
		{"\x00\x00\x00\x00", true, ""},
		{"{\x00\x00\x00", true, ""},
		{"SQLite format 3\x00\x10\x00", true, "a SQLite database"},
		{"7\x7f\x06\x82\x00", true, "write-ahead log"},
		{"\x89PNG\x00\x01", true, "binary data"},
		{"\x7fELF\x02\x01\x01\x00", true, "binary data"},
		{"\x00\x00\x00{\"id\":\"1\"}", true, ""},
		{`[`, false, "jq -c '.[]'"},
		{` [ {"a":1},`, false, "jq -c '.[]'"},
		{`[]`, false, "jq -c '.[]'"},
		{`{`, false, "jq -c ."},
		{`data: {"a":1}`, true, "sed"},
		{`event: x`, true, "sed"},
		{`data: {"a":1`, false, ""},
		{`[INFO] starting`, true, ""},
		{`{"a":1}`, true, ""},
		{`{"a":1`, false, ""},
		{`error: no such file`, true, ""},
		{``, true, ""},
	} {
		file, _, ok := Form(Fault{Line: []byte(c.line), First: true, BadStart: c.badStart})
		if c.want == "" {
			require.False(t, ok, c.line)
			continue
		}
		require.Contains(t, file.Name+": "+file.Hint, c.want, c.line)
	}
	for _, line := range []string{"[", "{", "{\x00\"\x00", "\x89PNG\x00"} {
		_, _, ok := Form(Fault{Line: []byte(line), BadStart: true})
		require.False(t, ok, "a line within a log: %q", line)
	}
}

// A document of a program whose lines are read needs lines, and a line of it that goes on has no
// name.
func TestFormOfReadPrograms(t *testing.T) {
	f, _, ok := Form(Fault{Line: []byte("{"), First: true, After: []byte(`  "sessionId": "a", "projectHash": "b"`)})
	require.True(t, ok)
	require.Equal(t, "a session of Gemini CLI as JSON over several lines", f.Name)
	require.Contains(t, f.Hint, "jq -c .")
	_, _, ok = Form(Fault{Line: []byte(`{"sessionId":"a","projectHash":"b",`), First: true})
	require.False(t, ok)
}
