package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRealTrees draws what a real program printed, as it is and in each of the formats. The
// golden file has the lines without their texts, which are not ours.
func TestRealTrees(t *testing.T) {
	const path = "../../../shared/real/claude-stream-json/ai-systems/raw-sdk-messages.jsonl"
	if _, err := os.Stat(path); err != nil {
		t.Skip("the captures are not beside the project: ", err)
	}
	log := exec("", "import", "claude", path)
	require.Zero(t, log.code, log.err)
	var b strings.Builder
	for _, format := range []string{"native", "kahn", "multiagent", "kaos", "openharness", "openwop", "openwop:v2"} {
		converted := exec(log.out, "convert", "--quiet", "--to", format, "-")
		require.Zero(t, converted.code, converted.err)
		b.WriteString("== " + format + "\n")
		for line := range strings.Lines(exec(converted.out, "tree", "--width", "-1", "-").out) {
			line, _, _ = strings.Cut(line, ": ")
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	golden(t, "real_trees.txt", b.String())
}
