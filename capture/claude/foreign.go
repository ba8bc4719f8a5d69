package claude

import (
	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Lines of other programs have a type too. Read as this stream they would make a run that failed
// and has no content.

// native is the file that needs no import.
var native = foreign.File{Program: "agentevents", Name: "a log of agentevents", Hint: "read it without an import"}

// formatOf returns the other format that a line shows.
func formatOf(text string) (f foreign.File, ok bool) {
	if jsonwire.HasMember(text, "runId") && jsonwire.HasMember(text, "sequence") {
		return native, true
	}
	f, ok = foreign.Line(text)
	return f, ok && f.Name != foreign.ClaudeStream
}

// refusal returns the error for a line of another format.
func refusal(f foreign.File) *agentevents.LineError {
	e := agentevents.ForeignError(f)
	return &agentevents.LineError{Err: &e}
}
