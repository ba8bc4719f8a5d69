package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/txtar"
)

// TestViews shows logs of every format in all views: people read them side by side, so read
// the diff for what one says and another does not.
func TestViews(t *testing.T) {
	logs := txtar.Parse(read(t, "testdata/views.txtar"))
	var b strings.Builder
	for _, log := range logs.Files {
		b.WriteString("== " + log.Name + "\n")
		for _, view := range []string{"tree", "show", "ls"} {
			r := exec(log.Text, view, "-")
			b.WriteString(r.out + r.err + "\n")
		}
		figures := strings.Split(exec(log.Text, "stats", "--by", "agent", "-").out, "\n\n")
		b.WriteString(figures[0] + "\n\n" + figures[2] + "\n")
	}
	golden(t, "views.txt", b.String())
}

// What stands for an agent without an id in the views finds its events.
func TestAgentWithoutID(t *testing.T) {
	logs := txtar.Parse(read(t, "testdata/views.txtar"))
	for agent, of := range map[string]string{"task-agent": "execution of a node", "exec-1": "execution of a node", "sp1": "fan-out"} {
		require.Contains(t, exec(logs.Get(of), "cat", "--agent", agent, "-").out, `"type":"agent.started"`, agent)
	}
}
