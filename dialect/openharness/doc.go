// Package openharness reads and writes the Agent Observability & Resume
// Specification (seed 003): flat JSON Lines of a flow, its nodes and the agents
// in them, and the document's RunSnapshot.
//
//	{"type":"agent:tool","nodeId":"task-agent","runId":"9f2c…","timestamp":1767517322500,"toolName":"read_file","toolInput":{"path":"a.go"},"toolOutput":"package a","durationMs":12}
//
// The runId of a line is one execution of one node: it becomes the NodeRunID of
// the event's scope, which is the agent of events that name no other. No line
// says which run it is of; see [EmitterOptions]. Timestamps are milliseconds since the
// epoch; fractions are read and, where an event has them, written.
//
// The variants and their kinds:
//
//	agent:start                  agent.started (sessionId is providerSessionId)
//	agent:thinking:delta         agent.reasoning.delta
//	agent:thinking               agent.reasoned
//	agent:text:delta             agent.text.delta
//	agent:text                   agent.text
//	agent:tool                   agent.toolReturned with oneEvent; a call and its return become one line
//	agent:error                  agent.error; an agent.ended that was no success
//	agent:complete               agent.ended
//	flow:start                   run.started
//	flow:complete                run.completed, or run.failed by its status
//	flow:paused, :resumed        run.paused, run.resumed
//	flow:aborted                 run.cancelled
//	node:start, :complete        node.started, node.completed
//	node:error, :skipped         node.failed, node.skipped
//	edge:fire                    edge.fired
//	loop:iterate                 loop.iterated
//	state:patch                  state.patched
//	command:received             command.received
//
// Other types, such as the agent:paused of later versions, become
// [agentevents.Unknown] with the members of the line that are not in the
// envelope: nodeId, runId (if there is a nodeId) and timestamp are. So does a
// flow:complete whose status is neither complete nor failed: how the flow ended is
// not known.
//
// # Deltas and whole blocks
//
// Text and thinking may come as deltas, as whole blocks, or as both: the seed
// has whole blocks as a fallback, and its implementation repeats the deltas in
// them. The decoder gives the deltas of a block and the block that repeats them
// the same block id, so a fold has each text once.
//
// # Members that the vocabulary does not have
//
// They are kept in the event's extra member "openharness", an object of them,
// and written back. A member of the line goes by its name, one of an object in
// it by its JSON pointer: "/usage/tier", "/modelUsage/opus/costUSD",
// "/patch/by", "/command/priority". A name that itself begins with a slash is
// written as a pointer too ("/~1name"). The flowName of flow:complete is kept
// there as well. Without [agentevents.ReaderOptions].Verbatim, optional members
// that are empty, such as a model of "", disappear, and the keys of modelUsage
// come out in order.
package openharness

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the document.
const Name = dialect.OpenHarness
