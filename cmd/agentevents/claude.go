package main

import (
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

// newClaudeDecoder returns a decoder of what the Claude CLI prints. A zero
// time means the clock.
func newClaudeDecoder(runID, agentID string, t time.Time) agentevents.Decoder {
	o := claude.Options{RunID: runID, AgentID: agentID}
	if !t.IsZero() {
		o.Time = func() time.Time { return t }
	}
	return claude.NewDecoder(o)
}
