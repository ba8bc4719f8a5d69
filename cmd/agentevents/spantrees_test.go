package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// An exportedSpan is a span of OTLP/JSON, with all kinds of values.
type exportedSpan struct {
	Name                               string
	SpanID, ParentSpanID               string
	StartTimeUnixNano, EndTimeUnixNano string
	Attributes                         []exportedAttr
	Links                              []struct {
		SpanID     string
		Attributes []exportedAttr
	}
	Status struct{ Code int }
}

type exportedAttr struct {
	Key   string
	Value map[string]any
}

func (a *exportedAttr) String() string {
	for _, v := range a.Value {
		return fmt.Sprint(a.Key, "=", v)
	}
	return a.Key
}

// ofSpans are the attributes that a drawn tree has.
var ofSpans = []string{"agentevents.made_up", "agentevents.start.unknown", "agentevents.end.unknown", "agentevents.time.stated", "agentevents.wait", "agentevents.handoff.decision", "agentevents.run.outcome", "error.type", "agentevents.agent.attempt", "agentevents.attribute.", "agentevents.agent.stated_tokens", "agentevents.closed.reason"}

// drawSpans draws the spans of an export as trees, with times in seconds since the first start.
func drawSpans(t *testing.T, out string) string {
	t.Helper()
	var all []exportedSpan
	for line := range strings.Lines(out) {
		var r struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []exportedSpan }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		all = append(all, r.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	nanos := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	slices.SortStableFunc(all, func(a, b exportedSpan) int {
		return strings.Compare(a.StartTimeUnixNano+a.Name, b.StartTimeUnixNano+b.Name)
	})
	names := map[string]string{}
	for _, s := range all {
		names[s.SpanID] = s.Name
	}
	var b strings.Builder
	drawn := 0
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, s := range all {
			if s.ParentSpanID != parent {
				continue
			}
			drawn++
			start, end := nanos(s.StartTimeUnixNano), nanos(s.EndTimeUnixNano)
			fmt.Fprintf(&b, "%s%s %d-%d", strings.Repeat("  ", depth), s.Name, (start-nanos(all[0].StartTimeUnixNano))/1e9, (end-nanos(all[0].StartTimeUnixNano))/1e9)
			if s.Status.Code != 0 {
				b.WriteString(" error")
			}
			for _, a := range s.Attributes {
				if slices.ContainsFunc(ofSpans, func(prefix string) bool { return strings.HasPrefix(a.Key, prefix) }) {
					b.WriteString(" " + strings.TrimPrefix(a.String(), "agentevents."))
				}
			}
			for _, l := range s.Links {
				fmt.Fprintf(&b, " -> %s (%s)", names[l.SpanID], l.Attributes[0].Value["stringValue"])
			}
			b.WriteString("\n")
			draw(s.SpanID, depth+1)
		}
	}
	draw("", 0)
	require.Equal(t, len(all), drawn, "each parent is there")
	return b.String()
}

// TestSpanTrees exports the logs of testdata/spans.txtar. The Chrome form has the same spans.
func TestSpanTrees(t *testing.T) {
	file := filepath.Join("testdata", "spans.txtar")
	a := txtar.Parse(read(t, file))
	require.NotEmpty(t, a.Files)
	for i := 0; i+1 < len(a.Files); i += 2 {
		log, tree := a.Files[i], &a.Files[i+1]
		require.Equal(t, "tree", tree.Name)
		t.Run(log.Name, func(t *testing.T) {
			r := exec(log.Text, "export", "otlp", "-")
			require.Equal(t, exitOK, r.code, r.err)
			got := drawSpans(t, r.out)
			if *update {
				tree.Text = got
			}
			require.Equal(t, tree.Text, got)

			var names, drawn []string
			for line := range strings.Lines(got) {
				names = append(names, strings.Fields(line)[0])
			}
			for _, e := range chromeEvents(t, exec(log.Text, "export", "chrome", "-").out) {
				if e.Ph == "X" {
					drawn = append(drawn, strings.Fields(e.Name)[0])
				}
			}
			require.ElementsMatch(t, names, drawn)

			if content := exec(log.Text, "export", "otlp", "--content", "-").out; strings.Contains(log.Text, "mind the rope") {
				require.Contains(t, content, "mind the rope")
				require.NotContains(t, r.out, "mind the rope")
			}
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(a.String()), 0o644))
	}
}
