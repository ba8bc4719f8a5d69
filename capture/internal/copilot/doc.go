// Package copilot reads the sessions of GitHub Copilot CLI: the events.jsonl that it keeps below
// ~/.copilot/session-state, a folder for each session, and the output of copilot --output-format
// json, which has the same lines without the tokens, and others in addition that are marked ephemeral.
//
// A file has all agents of a session; agentId tells a sub-agent's lines. Turns begin with a
// user.message: turnId is the number of a call of the model, and starts at 0 again. Tokens come
// from session.usage_record, one for each call of the model. The totals of session.shutdown cover
// the session since its beginning, over all processes, and are left out.
package copilot
