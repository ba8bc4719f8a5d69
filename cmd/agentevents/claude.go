package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

// A claudeClock has the times of a saved capture. The zero one is for a capture that is
// printed right now.
type claudeClock struct {
	saved time.Time     // when it was saved
	first time.Time     // its first timestamp; zero without one
	took  time.Duration // by its results
}

// newClaudeDecoder returns a decoder of the Claude CLI's output.
func newClaudeDecoder(runID, agentID string, c claudeClock) agentevents.Decoder {
	o := claude.Options{RunID: runID, AgentID: agentID}
	switch {
	case !c.first.IsZero():
		o.Time, o.Saved = func() time.Time { return c.first }, true
	case !c.saved.IsZero():
		o.Time = func() time.Time { return c.saved }
		o.Started = c.saved.Add(-c.took)
	}
	return claude.NewDecoder(o)
}

// read takes the times of a saved capture. Standard input is kept in memory for it. A file that can
// be read only once is not read here. The reader of the capture reports the errors.
func (c *claudeClock) read(in *invocation) {
	if in.args[0] == "-" {
		text, _ := io.ReadAll(in.stdin)
		in.stdin = io.MultiReader(bytes.NewReader(text), in.stdin)
		c.first, c.took, _ = claude.Times(&decompressed{in: bufio.NewReader(bytes.NewReader(text))})
		return
	}
	if info, err := os.Stat(in.args[0]); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := os.Open(in.args[0])
	if err != nil {
		return
	}
	defer file.Close()
	c.first, c.took, _ = claude.Times(&decompressed{in: bufio.NewReader(file)})
}
