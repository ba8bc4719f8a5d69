// Package openharness reads and writes the Agent Observability & Resume
// Specification: flat JSON Lines of a flow, its nodes and the agents
// in them, and the document's RunSnapshot.
//
//	{"type":"agent:tool","nodeId":"task-agent","runId":"9f2c…","timestamp":1767517322500,"toolName":"read_file","toolInput":{"path":"a.go"},"toolOutput":"package a","durationMs":12}
//
// The runId of a line is one execution of one node. It becomes the NodeRunID of the
// event's scope, and identifies the agent of events without agentId. In the place of one
// that is missing stands the node, as in the document's own listings, and the run for an
// agent without a node. Of several agents with agentIds of their own that start in one execution, the
// first is the execution, and the id of another one is the runId, a slash and its agentId. The document has
// neither agentId nor parentAgentId, so they stay extra members. A runId with which several nodes start is the execution of the first of
// these alone: that of another one is the runId, a slash and the node, and its lines are
// written with the runId again. No line names its run; see [Options]. Timestamps are milliseconds
// since the epoch, and may have fractions. The time of a line without one that can be read
// is not known: see [agentevents.TimeKnown]. A flow may end with another word than complete
// and failed: a lenient decoder goes by its meaning.
//
// The variants and their kinds:
//
//	agent:start                  agent.started (sessionId is providerSessionId)
//	agent:thinking:delta         agent.reasoning.delta
//	agent:thinking               agent.reasoned
//	agent:text:delta             agent.text.delta
//	agent:text                   agent.text
//	agent:tool                   agent.toolReturned with oneEvent; a call and its return become one line
//	agent:error                  agent.error; with an outcome agent.ended, without success
//	agent:complete               agent.ended, with the outcome converged unless it has one
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
// A line of another type, such as the agent:paused of later versions, becomes an
// [agentevents.Unknown] with the members outside of the envelope. The envelope is
// nodeId, timestamp, and runId if there is a nodeId. A flow:complete becomes an
// Unknown, too, if its status is neither complete nor failed, because it does not
// say how the flow ended. A patch cannot remove: a removal is written as a set with
// null.
//
// What a runtime sends behind flow:aborted, as its agents stop, is marked as late
// ([agentevents.MarkLate]). A send or reply without runId, or with a member of another
// type, is a rejected command; its members are kept as they came. A command of another
// type than the four of the document is an event like these. What a line lacks although
// every event has it is empty, and listed as made up.
//
// # Deltas and whole blocks
//
// Text and thinking come as deltas, as whole blocks, or as both. The seed has whole
// blocks as a fallback, and its implementation repeats the deltas in them. The
// decoder gives a block and its deltas the same block id, so a fold has each text
// once.
//
// # Members that the document does not have
//
// The encoder writes some facts that the document has no member for, because without
// them a reader counts wrongly or finds broken rules: outcome of an agent:error that is
// an end, with the members of agent:complete; outcome of an agent:complete that is partial or
// escaped; cumulative of ends whose figures include
// earlier attempts; parentRunId of an agent:start, the execution of the agent that
// delegates, whose modelUsage includes this one's; late of a line behind the end of its
// agent; lifecycle of starts; resumed of an agent:start that goes on with an earlier one. Other readers pass over them.
//
// # Order
//
// Each event gets a place that the document allows. A flow:start stands in front of an
// event of another run, as no line names its run, an agent:start in front of what an agent
// does in an execution where it has not started or where readers see its end, and a node:start in front of an agent:start
// after the end of its node; what else comes after that end is written as late. These lines
// say nothing else, and are listed as made up.
//
// # Extra members
//
// The event's extra member "openharness" is an object with everything of the line
// that no field has, which the encoder writes back. A member of the line stands
// there under its name. A member of an inner object stands there under its JSON
// pointer: "/usage/tier", "/modelUsage/opus/costUSD", "/patch/by",
// "/command/priority". A name that begins with a slash is written as a pointer, too
// ("/~1name"). The flowName of flow:complete is an extra member as well.
//
// Two things of a line change unless the reader has
// [agentevents.ReaderOptions].Verbatim: optional members that are empty, such as a
// model of "", disappear, and the keys of modelUsage are sorted.
package openharness

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds
// what the line says and no field has.
const Name = dialect.OpenHarness
