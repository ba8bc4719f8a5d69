package otelhook_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/spans"
)

// TestMetricsDocument: the instruments, series, labels and span events that METRICS.md names
// exist.
func TestMetricsDocument(t *testing.T) {
	source, err := os.ReadFile("metrics.go")
	require.NoError(t, err)
	doc, err := os.ReadFile("METRICS.md")
	require.NoError(t, err)
	under := func(name string) string { return strings.ReplaceAll(name, ".", "_") }

	series := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b(seconds|counter|Float64Counter)\("([a-z_.]+)"`).FindAllStringSubmatch(string(source), -1) {
		if m[1] != "seconds" {
			series[under(m[2])+"_total"] = true
			continue
		}
		for _, part := range []string{"_count", "_sum", "_bucket"} {
			series[under(m[2])+"_seconds"+part] = true
		}
	}
	require.Greater(t, len(series), 10)

	labels := map[string]bool{"le": true}
	for _, key := range []string{spans.AttrOutcome, spans.AttrEvaluation, spans.AttrScoreLabel, spans.AttrErrorType, spans.AttrToolOutcome, spans.AttrVerdict, "agentevents.handoff.from", "agentevents.handoff.to", "agentevents.finding.kind", "agentevents.finding.severity", "agentevents.approval.decision"} {
		labels[under(key)] = true
	}
	queries := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	require.Len(t, queries, 7, "of eight metrics, two have none; findings have one")
	for _, query := range queries {
		text := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(query[1], `""`)
		for _, m := range regexp.MustCompile(`\b([a-z_]+)(=|!|\{|\[)`).FindAllStringSubmatch(text, -1) {
			if m[2] == "{" || m[2] == "[" {
				require.Contains(t, series, m[1])
			} else {
				require.Contains(t, labels, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			for _, label := range strings.Split(m[1], ", ") {
				require.Contains(t, labels, label)
			}
		}
	}

	points, err := os.ReadFile("../internal/spans/points.go")
	require.NoError(t, err)
	words, err := os.ReadFile("../internal/spans/words.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("`agentevents\\.([a-z_.]+)`").FindAllStringSubmatch(string(doc), -1) {
		whole := `"agentevents.` + m[1] + `"`
		known := strings.Contains(string(source)+string(points)+string(words), whole) || strings.Contains(string(points), `"`+m[1]+`"`)
		require.True(t, known, m[1])
	}
}
