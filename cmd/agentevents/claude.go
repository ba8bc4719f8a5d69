package main

import (
	"bytes"
	"io"
	"os"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

// newClaudeDecoder returns a decoder of what the Claude CLI prints. A zero time of
// the end means the clock.
func newClaudeDecoder(runID, agentID string, end time.Time, took time.Duration) agentevents.Decoder {
	o := claude.Options{RunID: runID, AgentID: agentID}
	if !end.IsZero() {
		o.Time = func() time.Time { return end }
		o.Started = end.Add(-took)
	}
	return claude.NewDecoder(o)
}

// claudeTook returns how long the run of a saved capture took, as far as the capture
// says. Standard input is kept in memory for it. A file that can be read only once says
// nothing. Who reads the capture is told the errors.
func claudeTook(in *invocation) time.Duration {
	if in.args[0] == "-" {
		text, _ := io.ReadAll(in.stdin)
		in.stdin = io.MultiReader(bytes.NewReader(text), in.stdin)
		took, _ := claude.Duration(bytes.NewReader(text))
		return took
	}
	if info, err := os.Stat(in.args[0]); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	file, err := os.Open(in.args[0])
	if err != nil {
		return 0
	}
	defer file.Close()
	took, _ := claude.Duration(file)
	return took
}
