package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// TestCaptureCases runs commands on the logs of captures of the Claude CLI.
func TestCaptureCases(t *testing.T) {
	cases := txtar.Parse(read(t, filepath.Join("testdata", "captures.txtar"))).Files
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			at := strings.Index(c.Text, "\n{") + 1
			var log string
			for capture := range strings.SplitSeq(c.Text[at:], "\n\n") {
				got := exec(capture, "import", "claude", "--time", "2026-04-01T08:00:00Z", "-")
				require.Equal(t, result{out: got.out}, got)
				log += got.out
			}
			path := filepath.Join(t.TempDir(), "run.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(log), 0o600))
			require.Equal(t, result{}, exec("", "check", path))
			for _, command := range strings.Split(c.Text[:at], "$ ")[1:] {
				args, wants, _ := strings.Cut(command, "\n")
				r := &ran{exec("", append(strings.Fields(args), path)...), log}
				require.Empty(t, r.err)
				for want := range strings.SplitSeq(strings.TrimSuffix(wants, "\n"), "\n") {
					word, rest, _ := strings.Cut(want, " ")
					require.NotNil(t, conditions[word], want)
					if err := conditions[word](r, rest); err != nil {
						t.Errorf("%s: %s: %v\n%s", args, want, err, r.out)
					}
				}
			}
		})
	}
}

// A file of another format is refused by its name, and an empty one as empty.
func TestNoCapture(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"started","key":"v1","agentId":"n1"}` + "\n" + `{"type":"result","key":"v1","agentId":"n1","result":"Green."}`: "this is the journal of a workflow of Claude Code",
		`{"type":"result","key":"v1","agentId":"n1","result":"Green."}`:                                                         "this is the journal of a workflow of Claude Code",
		"": "is empty",
	} {
		got := exec(text, "import", "claude", "-")
		require.Equal(t, exitProblems, got.code, text)
		require.Empty(t, got.out)
		require.Contains(t, got.err, want)
	}
}
