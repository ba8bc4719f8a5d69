package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const orderHint = "with --order sequence it is read in that order"

// A file in any order, as a sort by time makes one, reads as the log that it was, in every
// command. Two runs keep their turns, so nothing else differs either.
func TestOrderOfSequence(t *testing.T) {
	logs := strings.SplitAfter(strings.TrimSuffix(read(t, clean), "\n")+"\n", "\n")
	logs = logs[:len(logs)-1]
	commands := []string{"tree", "show", "ls", "stats", "check", "fold", "cat", "redact", "convert --to native", "export chrome", "replay --speed 0"}
	want := map[string]result{}
	for _, command := range commands {
		want[command] = exec(strings.Join(logs, ""), append(strings.Fields(command), "-")...)
		require.Equal(t, exitOK, want[command].code, command)
		require.NotContains(t, want[command].err+want[command].out, orderHint, command)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		r.Shuffle(len(logs), func(i, j int) { logs[i], logs[j] = logs[j], logs[i] })
		for _, command := range commands {
			require.Equal(t, want[command], exec(strings.Join(logs, ""), append(strings.Fields(command), "--order", "sequence", "-")...), command)
		}
	}
}

// The events of several runs come in their turns, and repeated ones after each other.
func TestOrderOfSeveralRuns(t *testing.T) {
	log := line("a", 1) + line("b", 7) + line("a", 0) + line("b", 5) + line("a", 0) + line("b", 6)
	want := line("a", 0) + line("b", 5) + line("a", 0) + line("b", 6) + line("a", 1) + line("b", 7)
	require.Equal(t, want, exec(log, "cat", "--order", "sequence", "-").out)
}

// A file of which a fold leaves events out, as their sequence goes back, names the option that reads it.
func TestOrderHint(t *testing.T) {
	numbers := func(of ...int) (log string) {
		for _, n := range of {
			log += line("r", n)
		}
		return log
	}
	var gaps []int
	for n := range 100 {
		gaps = append(gaps, 1+2*n)
	}
	for name, c := range map[string]struct {
		log  string
		said bool
	}{
		"in order":              {numbers(0, 1, 2), false},
		"the end first":         {numbers(3, 4, 5, 0, 1, 2), true},
		"two that changed":      {numbers(0, 2, 1, 3, 4), false}, // the fold takes 2 for a false number
		"pairs that changed":    {numbers(0, 3, 4, 1, 2), true},
		"a false number":        {numbers(0, 1, 900, 2, 3), false},
		"begins late":           {numbers(7, 8), false},
		"with gaps":             {numbers(0, 2, 5), false},
		"lines come twice":      {numbers(0, 1, 2, 1, 2, 3), false},
		"read twice":            {numbers(4, 5, 4, 5), false},
		"many gaps, the first":  {numbers(append(slices.Clone(gaps), 0)...), true},
		"many gaps, the latest": {numbers(append(slices.Clone(gaps), 196)...), true},
		"another run":           {numbers(3, 4) + line("s", 0), false},
	} {
		for _, command := range []string{"tree", "stats", "cat"} {
			require.Equal(t, c.said, strings.Contains(exec(c.log, command, "-").err, orderHint), "%s: %s", command, name)
		}
		require.Equal(t, c.said, strings.Contains(exec(c.log, "check", "-").out, "warning: stdin:"), name)
	}
	require.Contains(t, exec(numbers(3, 4, 0), "ls", "-").err, `agentevents ls: stdin:3: run "r" goes back to sequence 0, which was missing`)
	require.Equal(t, exitUsage, exec(numbers(0), "ls", "--order", "time", "-").code)
	require.Equal(t, exitUsage, exec(numbers(0), "tail", "--order", "sequence", "-").code, "tail keeps the order of the file")
}

// A line that breaks a rule of its document and one of the fold is reported once, in any order.
func TestOrderWithADialect(t *testing.T) {
	event := func(n int, kind, payload string) string {
		return fmt.Sprintf(`{"id":"e%d","sequence":%d,"timestamp":"2026-11-01T09:00:00Z","type":%q,"runId":"r","agentId":"a","payload":{%s}}`+"\n", n, n, kind, payload)
	}
	log := exec(event(0, "run.started", "")+event(1, "agent.toolReturned", `"callId":"c","toolId":"Read","status":"ok"`)+event(2, "agent.toolCalled", `"callId":"d","toolId":"Read"`),
		"convert", "--to", "openwop", "-").out
	require.Contains(t, exec(log, "check", "-").out, "tool-call-open")
	for _, order := range []string{"file", "sequence"} {
		got := exec(log, "check", "--dialect", "openwop", "--order", order, "-").out
		require.Contains(t, got, "openwop-causation", order)
		require.NotContains(t, got, "tool-call-open", order)
	}
}
