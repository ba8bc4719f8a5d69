package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/canary"
)

// ids matches the places of native lines whose text a message may show.
var ids = regexp.MustCompile(`/(type|actor|phase|from|to|[a-zA-Z]*[iI]d)$`)

// The messages of a command on a bad log go to places where the log does not go: no message shows
// content.
func TestMessagesQuoteNoContent(t *testing.T) {
	const some = 300 // lines in a log; only 1,000 bad ones are reported
	var logs [2][]string
	n := 0
	for line := range strings.Lines(read(t, "../../testdata/kinds.jsonl")) {
		for l := range canary.Lines(strings.TrimSpace(line), ids.MatchString) {
			if n++; n%7 != 0 || strings.Contains(l.Text, "\n") {
				continue
			}
			i := 0
			if l.Quotable {
				i = 1
			}
			logs[i] = append(logs[i], l.Text)
		}
	}
	for i, lines := range logs {
		require.NotEmpty(t, lines)
		for len(lines) > 0 {
			log := strings.Join(lines[:min(some, len(lines))], "\n")
			lines = lines[min(some, len(lines)):]
			said := ""
			for _, dialect := range []string{"", "kahn", "kaos", "multiagent", "openharness", "openwop:v2"} {
				args := []string{"check", "-"}
				if dialect != "" {
					args = append(args, "--dialect", dialect)
				}
				r := exec(log, args...)
				said += r.out + r.err
			}
			for _, command := range []string{"cat", "fold", "redact", "tree"} {
				said += exec(log, command, "-").err
			}
			for _, format := range []string{"native", "kahn", "multiagent", "openwop:v1"} {
				said += exec(log, "convert", "--to", format, "--verify", "-").err + exec(log, "convert", "--to", format, "--redact", "--verify", "-").err
			}
			said += exec(log, "import", "claude", "-").err + exec(log, "export", "otlp", "-").err + exec(log, "export", "chrome", "-").err
			require.NotEmpty(t, said)
			for text := range strings.Lines(said) {
				if why := canary.Leak(text, i == 1); why != "" {
					t.Fatal(why)
				}
			}
		}
	}
}
