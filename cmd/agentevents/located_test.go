package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// emptied returns a line with one of its texts emptied, and the pointer of that text.
func emptied(r *rand.Rand, line string) (out, pointer string) {
	var root any
	if json.Unmarshal([]byte(line), &root) != nil {
		return line, ""
	}
	type place struct {
		pointer string
		set     func()
	}
	var places []place
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if _, text := v[name].(string); text && name != "type" && name != "event" {
					places = append(places, place{at + "/" + name, func() { v[name] = "" }})
				}
				walk(at+"/"+name, v[name])
			}
		case []any:
			for i := range v {
				walk(fmt.Sprint(at, "/", i), v[i])
			}
		}
	}
	walk("", root)
	if len(places) == 0 {
		return line, ""
	}
	p := places[r.IntN(len(places))]
	p.set()
	text, _ := json.Marshal(root) // as it was parsed
	return string(text), p.pointer
}

// The place of a missing text is a place on the document's own line, also if a rule of the library
// finds it.
func TestAFindingNamesThePlaceOnItsLine(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 0))
	asked := `{"id":"q1","sequence":900,"timestamp":"2026-05-05T09:00:01Z","type":"clarification.requested","runId":"q","agentId":"a","schemaVersion":"1.0","payload":{"interruptId":"i","questions":[{"id":"one","question":"?"},{"id":"two","question":"?"}]}}
{"id":"q2","sequence":901,"timestamp":"2026-05-05T09:00:01Z","type":"message.created","runId":"q","agentId":"a","schemaVersion":"1.0","payload":{"message":{"messageId":"m","from":"a","role":"user","content":"x","ts":"2026-05-05T09:00:01Z"}}}
{"id":"q3","sequence":902,"timestamp":"2026-05-05T09:00:01Z","type":"agent.handoff","runId":"q","agentId":"a","schemaVersion":"1.0","payload":{"from":{"agentId":"abc"},"to":{"agentId":"xyz"}}}
`
	found := map[string]int{}
	for _, format := range []string{"kahn", "multiagent", "kaos", "openharness", "openwop", "openwop:v1", "openwop:v2", "agui"} {
		log := exec(read(t, "testdata/clean.jsonl")+asked, "convert", "--quiet", "--to", format, "-").out
		lines := strings.SplitAfter(strings.TrimSpace(log), "\n")
		for range effort.Of(40, 120, 1200) {
			n := r.IntN(len(lines))
			line, pointer := emptied(r, strings.TrimSpace(lines[n]))
			if pointer == "" {
				continue
			}
			damaged := strings.Join(lines[:n], "") + line + "\n" + strings.Join(lines[n+1:], "")
			check := exec(damaged, "check", "--dialect", format, "-")
			for finding := range strings.Lines(check.out) {
				place, rest, _ := strings.Cut(finding, ": ")
				rest = strings.TrimPrefix(rest, "warning: ")
				parts := strings.SplitN(rest, ": ", 4)
				if place != fmt.Sprint("stdin:", n+1) || len(parts) < 4 || parts[0] != "field-required" {
					continue
				}
				found[format]++
				require.Equal(t, pointer, parts[2], "%s: %s\n%s", format, finding, line)
			}
		}
	}
	require.Greater(t, len(found), 2, "%v", found)
}
