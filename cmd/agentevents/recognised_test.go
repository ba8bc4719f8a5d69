package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// A log that the command has written is recognised without the name of its format: it gives as many
// events and the same exit code as with that name. So no line is taken for a line of the program whose
// members it carries. The profiles of OpenWOP share their lines, so the events may differ in a member.
// Lines of Open-Harness that are of unknown types alone are no known format without its name.
func TestWrittenLogsAreRecognised(t *testing.T) {
	logs := logsOfTheTree(t)
	var names []string
	for name := range logs {
		names = append(names, name)
	}
	slices.Sort(names)
	compared := 0
	for i, name := range names {
		native := exec(logs[name], "convert", "--quiet", "--to", "native", "-").out
		if native == "" {
			continue
		}
		all := wires()
		if !strings.Contains(name, "claude") {
			all = effort.Of(all[i%len(all):i%len(all)+1], all[i%len(all):i%len(all)+1], all)
		}
		for _, w := range all {
			written := exec(native, "convert", "--quiet", "--fast", "--to", w.name, "-").out
			named := exec(written, "convert", "--quiet", "--from", w.name, "--to", "native", "-")
			found := exec(written, "convert", "--quiet", "--to", "native", "-")
			if named.out != "" && (w.name != "openharness" || strings.Contains(name, "claude")) {
				compared++
				if strings.Count(named.out, "\n") != strings.Count(found.out, "\n") || named.code != found.code {
					t.Errorf("%s as %s: %d events, exit code %d; with the name %d, %d: %s", name, w.name,
						strings.Count(found.out, "\n"), found.code, strings.Count(named.out, "\n"), named.code, found.err)
				}
			}
		}
	}
	require.Greater(t, compared, 100)
}
