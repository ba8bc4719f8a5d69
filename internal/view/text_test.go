package view

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// directions are the marks that turn a text around.
const directions = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"

func TestNoMarkOfDirectionIsShown(t *testing.T) {
	for _, r := range directions + "\u009b\u0085\u007f\u2028\u2029\ufeff\u00ad\U000e0001" {
		text := "a" + string(r) + "b"
		require.NotContains(t, Visible(text, -1), string(r), "%U", r)
		shown := string(ForTerminal([]byte(`"` + text + `"`)))
		require.NotContains(t, shown, string(r), "%U", r)
		var back string
		require.NoError(t, json.Unmarshal([]byte(shown), &back))
		require.Equal(t, text, back)
	}
	for _, text := range []string{`{"a":"größe 漢字　\u00a0"}`, "👩\u200d💻", "\x1b[31mred\x1b[0m\n"} {
		require.Equal(t, text, string(ForTerminal([]byte(text))))
	}
	require.Equal(t, `\ufffd[31m`, string(ForTerminal([]byte("\x9b[31m"))))
	require.Equal(t, `\x1b\n\u202e…`, Visible("\x1b\n\u202eabc", 13))
	require.True(t, utf8.ValidString(strings.Repeat(Visible("\xff", -1), 2)))
}
