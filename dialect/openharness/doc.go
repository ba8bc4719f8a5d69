// Package openharness reads and writes the Agent Observability & Resume Specification: flat JSON
// Lines of a flow, its nodes and the agents in them, and the document's RunSnapshot.
//
//	{"type":"agent:tool","nodeId":"task-agent","runId":"9f2c…","timestamp":1767517322500,"toolName":"read_file","toolInput":{"path":"a.go"},"toolOutput":"package a","durationMs":12}
//
// The runId of a line is one execution of one node. It becomes the NodeRunID of the event's scope,
// and identifies the agent of events without agentId. If it is missing, the node replaces it, as in
// the document's own listings, or the run for an agent without a node. If several agents with
// agentIds of their own start in one execution, the first has the id of the execution, and each
// other one the runId, a slash and its agentId. The document has neither agentId nor parentAgentId,
// so they stay extra members. If several nodes start with one runId, it identifies the execution of
// the first. The execution of another node is the runId, a slash and the node; its lines are
// written with the runId alone. No line names its run; see [Options]. Timestamps are milliseconds
// since the epoch, and may have fractions. A line without a readable time becomes an event without
// a known time: see [agentevents.TimeKnown]. A flow may end with a word other than complete and
// failed: a lenient decoder uses the word's meaning.
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
// [agentevents.Unknown] with the members outside of the envelope. The envelope is nodeId,
// timestamp, and runId if there is a nodeId. A flow:complete whose status is neither complete nor
// failed becomes an Unknown too, because the result of the flow is not known. A patch cannot
// remove: a removal is written as a set with null.
//
// Lines that a runtime sends after flow:aborted, while its agents stop, are marked as late
// ([agentevents.MarkLate]). A send or reply without runId, or with a member of another type, is a
// rejected command; its members are kept as they came. A command of a type other than the
// document's four becomes an event too. A value that every event has and the line lacks is empty,
// and listed as made up.
//
// # Deltas and whole blocks
//
// Text and thinking come as deltas, as whole blocks, or as both. The seed has whole blocks as a
// fallback, and its implementation repeats the deltas in them. The decoder gives a block and its
// deltas the same block id, so a fold has each text once.
//
// # Members that the document does not have
//
// The encoder writes some facts that the document has no member for, because without them a reader
// counts wrongly or finds broken rules. Other readers ignore these members. An agent:error that is
// an end has outcome and the members of agent:complete. A partial or escaped agent:complete has
// outcome. Ends whose figures include earlier attempts have cumulative. An agent:start has
// parentRunId, the execution of the delegating agent, whose modelUsage includes this agent's. A
// line after the end of its agent has late, a start has lifecycle, and an agent:start that
// continues an earlier one has resumed.
//
// # Order
//
// Each event gets a place that the document allows. A flow:start stands before an event of another
// run, because no line names its run. An agent:start stands before the lines of an agent in an
// execution in which it has not started, or in which readers have seen its end. A node:start stands
// before an agent:start after the end of its node; other events after that end are written as late.
// These inserted lines have no other content, and are listed as made up.
//
// # Extra members
//
// The event's extra member "openharness" is an object with the members of the line that no field
// has, which the encoder writes back. A member of the line stands there under its name. A member of
// an inner object stands there under its JSON pointer: "/usage/tier", "/modelUsage/opus/costUSD",
// "/patch/by", "/command/priority". A name that begins with a slash is written as a pointer, too
// ("/~1name"). The flowName of flow:complete is an extra member as well.
//
// Two properties of a line change unless the reader has [agentevents.ReaderOptions].Verbatim:
// optional members that are empty, such as a model of "", disappear, and the keys of modelUsage are
// sorted.
package openharness

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds the members of the
// line that no field has.
const Name = dialect.OpenHarness
