package claude

import "slices"

// A foreign format also has lines of JSON with a type. Read as this stream they would
// make a run that failed and says nothing.
type foreign struct {
	name  string
	types []string         // the types of lines that only this format has
	shows func(*line) bool // or nil
}

var foreigns = []foreign{
	{name: "a transcript of Claude Code, as it keeps them on disk", shows: (*line).ofTranscript},
	{name: "a stream of codex exec --json", types: []string{
		"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed"}},
	{name: "a session of Codex, as it keeps them on disk", types: []string{"session_meta", "turn_context", "response_item", "event_msg"}},
	{name: "a stream of gemini --output-format stream-json", types: []string{"init", "message", "tool_use", "tool_result"}},
	{name: "a log of agentevents", shows: func(l *line) bool { return l.raw("runId") != "" && l.raw("sequence") != "" }},
}

// ofTranscript reports whether a line has the links of a transcript and not those of a
// stream. What the Agent SDK prints has both.
func (l *line) ofTranscript() bool {
	return l.has("parentUuid") && l.has("sessionId") && !l.has("parent_tool_use_id") && !l.has("session_id")
}

// formatOf returns the name of the foreign format that a line shows, or "".
func formatOf(l *line) string {
	for _, f := range foreigns {
		if slices.Contains(f.types, l.kind) || f.shows != nil && f.shows(l) {
			return f.name
		}
	}
	return ""
}
