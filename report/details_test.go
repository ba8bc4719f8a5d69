package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// A prompt may be a list of messages, with the role and content of each in a member.
func TestPrompt(t *testing.T) {
	for prompt, want := range map[ae.JSON]string{
		`"do it"`:               "do it",
		`[{"content":"do it"}]`: "do it",
		`[{"type":"user","message":{"role":"user","content":[{"type":"text","text":"do it"}]}}]`: "do it",
		`[{"content":5}]`: "",
		`[{"content":"be short"},{"content":"do it"}]`:      "do it (after: be short)",
		`[{"content":"a"},{"content":"b"},{"content":"c"}]`: "c (after: a; b)",
	} {
		require.Equal(t, want, promptText(prompt), string(prompt))
	}
}

func TestShort(t *testing.T) {
	require.Equal(t, strings.Repeat("ä", maxNote)+"…", short(strings.Repeat("ä", 10*maxNote), maxNote))
}
