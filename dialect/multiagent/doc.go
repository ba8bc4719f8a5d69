// Package multiagent reads and writes the AgentEvent envelope of the multi-agent wiki
// (Observability and Event Model).
//
//	{"id":"e7","traceId":"4bf9…","spanId":"00f0…","parentSpanId":"…","sessionId":"s1","runId":"r1","taskId":"t1","actor":"planner",
//	 │                                                               taskId and parentSpanId are optional ┘         │
//	 └ members in this order the agent, or the one who acted instead of it ┘
//	 "type":"tool.call.started","payload":{"callId":"c1","toolId":"web_search"},"timestamp":"2026-05-05T09:00:01.200Z","schemaVersion":"1.0"}
//
// # Types
//
// The document lists 15 types without payloads, and 10 of workflow runs with their key fields.
// These become kinds of other names:
//
//	workflow.node.enter    node.started
//	tool.call.started      agent.toolCalled
//	tool.call.completed    agent.toolReturned
//	agent.spawned          agent.started; agentTask is its Task
//	agent.completed        agent.ended; tokens is Usage.TotalTokens
//
// The others have the name of their kind: session.started, .completed; agent.message.created,
// .task.assigned; handoff.requested, .accepted; blackboard.item.created; approval.requested,
// .granted; verifier.issue.found; loop.round.completed; budget.exceeded; workflow.created,
// .approved, .phase.started, .phase.completed, .checkpoint.saved, .checkpoint.resumed, .finalized;
// claim.verified. Other kinds have no counterpart. A line of another type becomes an
// [agentevents.Unknown] with the complete payload. Its type gets the prefix "multiagent:" if the
// vocabulary has a kind of that name.
//
// A type that the document does not list may end something by its last word. Tool.call., agent. and
// session. with a word of success, failure, refusal or cancellation, such as agent.failed, are read
// as the .completed of the domain, and the word is the status. Words of consent make
// approval.granted and handoff.accepted. Words for an end without a grant make approval.rejected; a
// word that does not mean a refusal, such as expired, is its Answer. Such a type is written only if
// the line had it. The ends of workflows and phases, and of handoffs that nobody accepts, such as
// workflow.failed, stay unknown. They close the workflow, phase or handoff in a snapshot. All other
// words stay unknown and end nothing: tool.call.progress, agent.error, agent.blocked and
// tool.call.partial among them.
//
// # Payloads
//
// The document does not define payloads, so the decoder accepts any JSON. A member becomes a field
// if it has the field's native name and a fitting value. Other spellings of the name are read too:
//
//	callId       toolCallId, id                   messageId       id, in agent.message.created
//	toolId       toolName, tool, name             content         text, message (unless it is an object)
//	arguments    input, args                      itemId          id, in blackboard.item.created
//	result       output                           itemType        type, in blackboard.item.created
//	nodeId       node, workflowNode               approvalId      id, in approval.*
//	from, to     fromAgent, toAgent               contextDigest   context_digest
//	goal         task                             expectedOutput  expected_output
//	suggestedFix suggested_fix                    budget          kind
//	rejectedBy   deniedBy, declinedBy             feedback        reason, message, comment, in approval.rejected
//	agentTask    task, in agent.spawned           status, reason  outcome, message, in session.completed
//	reason       message, in agent.completed      resultSummary   reason, message, summary, in tool.call.completed
//
// The fields of a message are members of the payload or, as in the native format, of its member
// message. An AgentRef may be a string, which is its agentId. A time may be a whole number of
// milliseconds since 1970. An error may be a string, which is its message. A tool status may be any
// word for a status, such as success, failed, timeout or denied, which the event keeps as
// StatusWord. Agents and sessions have the word as their status. The members success, ok and
// isError stand for a status. Everything else is an extra member: a member that no field has, a
// member whose value does not fit its field, and a payload that is not an object.
//
// Envelope fields without a place in the document are members of the payload, under their native
// names: agentId, workflowId, phase, nodeId, nodeRunId, step, parentAgentId, parentCallId,
// causationId and marks. In three cases such a member belongs to the payload: it stays an extra
// member, and the event's field is lost. They are phase without workflowId in a type that does not
// name it, a step below 0, and the step of agent.spawned and agent.completed.
//
// A line has no place for the following, which the encoder lists as losses: the sequence (readers
// count), the schemaVersion (readers set the native version; the line has the document's), and
// extra members of other dialects and of payloads. The payload of an Unknown is written unchanged:
// its workflowId, phase, nodeId, nodeRunId, step, marks, causationId, parentAgentId, parentCallId,
// and an agent beside an actor are lost too.
//
// A number with more digits than its field, a float64 or nanoseconds, is rounded there, and kept as
// an extra member: the line gets it back exactly. One property of a line changes silently, unless
// it is written verbatim: if the fields of a message stand partly in the payload and partly in its
// member message, all move to message. A line without an id is written verbatim only if readers
// derive the event's id from it again. Otherwise, as in a part of the log, it gets the id.
//
// # Workflows
//
// The encoder and a strict decoder require workflowId in the types named workflow.*, except
// workflow.node.enter, and phase in phases, in checkpoints, and in those agent.spawned and
// agent.completed that have a workflowId. The document requires workflowId in every event of a
// workflow, but agents and claims also occur outside of workflows, and it does not list workflowId
// among the key fields of agent.completed and claim.verified.
//
// A present key field has the type of its native field. Only six missing ones break a rule
// (field-required, which binds the events of every document), because the vocabulary has no value
// that stands for their absence: approvedAt, approvedBy, resumedAt, findingId, verifierAgentId and
// verdict.
//
// # Agent and actor
//
// The agent is payload.agentId. If that is absent the agent is the actor, unless the actor is user,
// human, orchestrator or system, in upper or lower case. Event.Actor is empty if the actor is the
// agent, and set if the line names both. The encoder writes the actor, or else the agent, or else
// "system". It adds agentId if readers would not take the actor for the agent.
//
// In four cases another actor is not the agent. The actor of a workflow's own events (workflow.*,
// except workflow.node.enter) is its script or approver. The actor of session.*, approval.granted,
// approval.rejected and budget.exceeded is a person or a service. The actor of agent.spawned is the
// spawning agent: without payload.agentId the event has no agent, and the spanId stands for the
// agent until an event names it (see [agentevents.AgentState]). The same holds for the
// agent.completed of such a span, whose actor is the reporter. (Without a spanId the actor is the
// agent.) The actor of tool.call.completed may be the runner of the tools: if its call is open, the
// agent is the caller.
//
// An agent that is spawned while another one of its id is at work in another span is a twin: its
// start has the id in its field agent, which the encoder writes, and the span stands for the twin.
//
// # Sessions of one run
//
// A run belongs to one session. If another session starts with its runId, that session's lines
// belong to a second run, whose id is the runId, a slash and the session. The encoder writes them
// with the runId alone.
//
// # Lines that are delivered again
//
// A line with the same id and bytes as one of the latest [Window] lines has no event, also for a
// strict decoder. A line with the id of another line and other bytes is an event: the document does
// not say that ids are unique.
//
// # Values made up for a line
//
// The decoder makes up the values that the vocabulary requires. [Decoder.Losses] lists them, and
// the number of each line.
//
//   - callId, messageId, itemId, approvalId and nodeId are derived from the event's id.
//   - A tool.call.completed without callId closes the latest open call of its span, and of its tool
//     if it names one. Without such a call it is a call of its own (OneEvent).
//   - An approval.granted or approval.rejected without approvalId answers the latest open request
//     of its span, or of the span around it, or else the only open one of the run.
//   - A handoff.accepted takes missing fields from the latest open request to the agent, preferably
//     of its span.
//   - toolId, itemType, budget and the other side of a handoff are "unknown".
//   - The sender of a message and the near side of a handoff are the agent.
//   - A tool status follows from the members success, ok, isError or is_error of the payload, if
//     one is true or false, else from error; content is null, phases are none, and other figures
//     are 0.
//   - A line without a readable time has no known time: the event's is 1970 (see
//     [agentevents.TimeKnown]). A number and a text of digits are read as seconds or milliseconds
//     since 1970, by their size.
//
// The encoder leaves made-up values out again, as long as they are unchanged and readers make up
// the same ones. For example, it writes the word unknown if the actor becomes system, and writes an
// id that depends on the open calls of a span if it makes up that span. A payload that is not an
// object is always written unchanged; the values that readers make up for it are listed.
//
// # Values made up for an event
//
// The document requires traceId, spanId, sessionId, actor and schemaVersion. The encoder takes a
// missing trace id from the run's previous event, or else derives it from the run. It derives a
// missing span id from run and agent, so the events of an agent share a span. A tool call has a
// span of its own, whose parent is the agent's span. The parent span of a spawned agent is the span
// of its parent agent, or of the call that spawned it. The session is the run. The encoder lists
// all of this as made up.
//
// # Extra members
//
// The event's extra member "multiagent" ([agentevents.Event.Extra]) is an object with the members
// of the line that no field has:
//
//	"schemaVersion":"1.0"        the document's version, which is not the native one; always there
//	"x":1                        a member of the envelope
//	"/payload/x":1               a member of the payload, by JSON pointer
//	"/payload/error/x":1         a member inside a field
//	"/payload":"text"            a payload that is not an object
//	"/~1x":1                     a member of the envelope whose name begins with a slash
//	"/as":{"toolId":"tool"}      a field that has another name on the line
//	"/made":["callId"]           a field that the line lacks
//
// The member type of /as is the type of a line that the document does not list.
//
// The encoder writes these members after its own members of the same object. It leaves out a member
// that has the name of a field if the field has another value. It also leaves out a member with
// another spelling of a field's name once the field is cleared, because readers would take it for
// the field.
package multiagent

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds the members of the
// line that no field has.
const Name = dialect.MultiAgent
