// Package kahn reads and writes the agent transition events of KAHN: flat JSON Lines with the
// members ts, run_id and event.
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
// KAHN has no event ids and no sequence numbers: the decoder derives them. KAHN has patterns for
// the ids of agents and checkpoints, and a limit for output_summary. The encoder normalises ids
// that do not match ([NormalizeAgentID], [NormalizeCheckpointID]), cuts long output summaries, and
// lists both among its losses. It refuses an event with a number or a word outside the document's
// ranges and enums.
//
// The encoder adds three members that the document does not have, because without them a reader
// finds broken rules. A start has lifecycle, the table that its agent's transitions keep. A start
// that goes on with an earlier one, or follows a run.resumed, has resumed. A line after the end of
// its agent has late.
//
// # Lines that lack members
//
// A missing member is not an empty one. Without strict decoding, a tool invocation without ok has
// no status, and an end with only some of the five totals has no totals. (An audit without
// duration_s took no time: its field cannot be absent.) The encoder makes up a missing member that
// the document requires, and lists it. The decoder keeps empty texts and single totals in the extra
// member of the event:
//
//	"kahn":{"x":1,"model":"","total_steps":3}
//	         │     │          └ of an end without all five totals
//	         │     └ present and empty; also for the other texts
//	         └ an extra member of the line
//
// A line that is written as it was read (Verbatim) keeps its spelling. Its place in the log decides
// which ids and numbers a reader derives: if they differ from the event's, the encoder lists that.
// Other lines have numbers in the precision of the vocabulary: digits beyond a float64 and below a
// nanosecond are rounded.
package kahn

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name. Events carry the extra members of their line in an
// extra member with this name.
const Name = dialect.KAHN
