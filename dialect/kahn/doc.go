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
// and lists both among its losses.
package kahn

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the document.
const Name = dialect.KAHN
