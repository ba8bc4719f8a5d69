package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

var (
	ids       = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	times     = regexp.MustCompile(`"timestamp":"[^"]*"`)
	durations = regexp.MustCompile(`"durationMs":[0-9.]+`)
)

// The page about lifecycles shows the program's output, except for ids, times and durations, and
// its tree.
func TestOutputIsThePages(t *testing.T) {
	page, err := os.ReadFile("../../docs/lifecycles.md")
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(page), "```\n{")
	require.True(t, ok)
	shown, _, ok = strings.Cut("{"+shown, "```\n")
	require.True(t, ok)

	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stdout = w
	main()
	require.NoError(t, w.Close())
	printed, err := io.ReadAll(r)
	require.NoError(t, err)

	names := map[string]string{}
	log := ids.ReplaceAllStringFunc(string(printed), func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("id-%d", len(names)+1)
		}
		return names[id]
	})
	log = times.ReplaceAllString(log, `"timestamp":"2026-05-05T09:00:00.000Z"`)
	log = durations.ReplaceAllString(log, `"durationMs":80`)
	require.Equal(t, shown, log)

	runs, err := ae.FoldLog(ae.NewReader(strings.NewReader(log), ae.ReaderOptions{}), ae.FoldOptions{})
	require.NoError(t, err)
	var drawn strings.Builder
	var details report.Details
	for ev, err := range ae.NewReader(strings.NewReader(log), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		details.Add(&ev)
	}
	for s := range runs.Drain() {
		require.Empty(t, s.Violations)
		require.NoError(t, tree.Write(&drawn, s, tree.Options{Details: &details}))
	}
	require.True(t, strings.Contains(string(page), "```\n"+drawn.String()+"```\n"), "the page does not show\n%s", drawn.String())
}
