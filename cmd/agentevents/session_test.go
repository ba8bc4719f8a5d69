package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sessions are the captures of whole sessions, and oneCapture is one of them.
const (
	sessions   = "../../capture/claude/testdata/sessions/"
	oneCapture = sessions + "skill.stream.jsonl"
)

// TestSessionTrees draws sessions as they are, and one of them in each of the formats.
func TestSessionTrees(t *testing.T) {
	var b strings.Builder
	draw := func(title, log string) {
		drawn := exec(log, "tree", "-")
		require.Zero(t, drawn.code, drawn.err)
		b.WriteString("== " + title + "\n" + drawn.out)
	}
	captures, err := filepath.Glob(sessions + "*.stream.jsonl")
	require.NoError(t, err)
	require.Len(t, captures, 4)
	for _, path := range captures {
		log := exec("", "import", "claude", "--time", "2026-01-02T00:00:00Z", path)
		require.Zero(t, log.code, log.err)
		name := filepath.Base(path)
		draw(name, log.out)
		if path != oneCapture {
			continue
		}
		for _, format := range []string{"kahn", "multiagent", "kaos", "openharness", "openwop", "openwop:v2"} {
			converted := exec(log.out, "convert", "--quiet", "--to", format, "-")
			require.Zero(t, converted.code, converted.err)
			draw(name+" as "+format, converted.out)
		}
	}
	golden(t, "session_trees.txt", b.String())
}
