// Package kahn reads and writes the agent transition events of KAHN (seed 000):
// flat JSON Lines with the members ts, run_id and event.
//
//	{"ts":"2026-05-05T09:00:01.200Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":0,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}
//
// The five variants and their kinds:
//
//	agent_run_start    agent.started
//	agent_transition   agent.transition
//	tool_invocation    agent.toolReturned with oneEvent; a call and its return become one line
//	audit_checkpoint   audit.checked; agent_id is null when the run is audited
//	agent_run_end      agent.ended
//
// KAHN has no event ids and no sequence numbers: the decoder makes them up. It
// has patterns for its ids and a limit for summaries: the encoder normalises
// foreign ids ([NormalizeAgentID] and its siblings) and cuts long summaries,
// and lists both among its losses. Numbers and words outside the document's ranges
// and enums have no such form: it refuses the event.
//
// # Lines that lack something
//
// A decoder that is not strict takes nothing that a line lacks for empty: a tool
// invocation without ok has no status, and an end that has only some of the totals
// has none. (An audit without duration_s took no time: the field cannot tell.) An
// encoder that needs such a member makes it up and lists it. Texts that are there
// and empty, and some of the totals, are kept:
//
//	"kahn":{"x":1,"model":"","total_steps":3}
//	         │     │          └ of an end without all five totals
//	         │     └ there, and empty; also of the other texts
//	         └ a member that the document does not have
//
// A line that is written as it was read (Verbatim) keeps its spelling. The ids and
// numbers that readers make up depend on its place in the log: where they come out
// otherwise, that is listed. Other lines are written with numbers as the vocabulary
// has them: digits beyond a float64 and below a nanosecond are rounded.
package kahn

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the document.
const Name = dialect.KAHN
