// Package multiagent reads and writes the AgentEvent envelope of the
// multi-agent wiki (seed 001, Observability and Event Model).
//
//	{"id":"e7","traceId":"4bf9…","spanId":"00f0…","parentSpanId":"…","sessionId":"s1","runId":"r1","taskId":"t1","actor":"planner",
//	 │                                                               taskId and parentSpanId are optional ┘         │
//	 └ members in this order                                    the agent, or who did it when that is not the agent ┘
//	 "type":"tool.call.started","payload":{"callId":"c1","toolId":"web_search"},"timestamp":"2026-05-05T09:00:01.200Z","schemaVersion":"1.0"}
//
// # Types
//
// The document lists 15 types, without payloads:
//
//	session.started         session.started          handoff.accepted        handoff.accepted
//	workflow.node.enter     node.started             blackboard.item.created blackboard.item.created
//	agent.message.created   agent.message.created    approval.requested      approval.requested
//	agent.task.assigned     agent.task.assigned      approval.granted        approval.granted
//	tool.call.started       agent.toolCalled         verifier.issue.found    verifier.issue.found
//	tool.call.completed     agent.toolReturned       loop.round.completed    loop.round.completed
//	handoff.requested       handoff.requested        budget.exceeded         budget.exceeded
//	                                                 session.completed       session.completed
//
// and 10 of workflow runs, with their key fields: workflow.created,
// workflow.approved, workflow.phase.started, workflow.phase.completed,
// claim.verified, workflow.checkpoint.saved, workflow.checkpoint.resumed and
// workflow.finalized are the kinds of the same names; agent.spawned is
// agent.started (agentTask is its Task) and agent.completed is agent.ended
// (tokens is Usage.TotalTokens). Other kinds have no counterpart. Lines of
// other types become [agentevents.Unknown] with the whole payload; the type
// gets the prefix "multiagent:" when the vocabulary uses it for something else.
//
// # Payloads
//
// A payload is unknown in the document: any JSON is accepted and kept. Members
// with the vocabulary's own names (those of the native format) and of the fitting
// type go to the struct's fields, and so do these other spellings:
//
//	callId       toolCallId, id                   messageId       id, in agent.message.created
//	toolId       toolName, tool, name             content         text, message (when it is no object)
//	arguments    input, args                      itemId          id, in blackboard.item.created
//	result       output                           itemType        type, in blackboard.item.created
//	nodeId       node, workflowNode               approvalId      id, in approval.*
//	from, to     fromAgent, toAgent               contextDigest   context_digest
//	goal         task                             expectedOutput  expected_output
//	suggestedFix suggested_fix                    budget          kind
//	agentTask    task, in agent.spawned
//
// The fields of a message may stand in the payload itself or, as in the native
// format, in its member message. An AgentRef may be a string, its agentId; an
// error may be a string, its message; a tool status may be success, completed,
// failed or failure. Everything else is kept as it is: members that no field
// has, and members whose value does not fit the field. A payload that is no
// object is kept whole.
//
// Envelope fields that the document has no place for are members of the payload
// under their native names: agentId, workflowId, phase, nodeId, nodeRunId, step,
// parentAgentId, parentCallId, causationId and marks. Where phase stands without
// workflowId, in a type that is not of a workflow, it is the payload's own word.
// A step below 0, and that of agent.spawned and agent.completed, is too.
//
// What a line does not say of an event is among the losses:
//
//	sequence                                      readers count
//	schemaVersion                                 readers give the native one; the document's is another
//	step of agent.spawned and agent.completed, and one below 0
//	phase without workflowId, in a type that does not name it
//	extra members of others, and of payloads
//	of Unknown, whose payload is its own: workflowId, phase, nodeId, nodeRunId, step, marks, causationId, parentAgentId,
//	    parentCallId, and the agent beside an actor
//
// Numbers are read as the vocabulary has them: one with more digits than a float64
// is rounded, and so is a duration below a nanosecond. The fields of a message that
// stand in part in the payload and in part in its member message are written in
// message. A line that is written as it was read (Verbatim) keeps all that. One
// without an id is written so only where readers derive the event's id from it
// again: elsewhere, as in a part of the log, it gets the id.
//
// # Workflows
//
// The document wants the workflowId in every event of a workflow, and the phase in
// those of its agents. The types named workflow.* must have the workflowId, and
// with it agent.spawned and agent.completed must have the phase. But agents and
// claims are accepted without workflowId: they occur outside of workflows too, and
// the document does not list it among the key fields of agent.completed and
// claim.verified.
//
// # Agent and actor
//
// The agent is payload.agentId, else the actor, unless that is one of user,
// human, orchestrator and system. When the actor is the agent, Event.Actor is
// empty; it is set when the line names agent and actor apart. The encoder
// writes the actor, else the agent, else "system", and agentId where the actor
// would not be taken for the agent.
//
// # What is made up when a line lacks it
//
// Ids that the vocabulary asks for are derived from the event's id: callId,
// messageId, itemId, approvalId, nodeId. A tool.call.completed without callId
// closes the call that was opened last in its span, the last of its tool if it
// names one; if there is none it is a call by itself (OneEvent). An
// approval.granted without approvalId answers the request that was opened last
// in its span. toolId, itemType, budget and the other side of a handoff are
// "unknown"; the sender of a message and the near side of a handoff are the
// agent; a tool status follows from error; content is null. The encoder leaves out
// again what was made up, as long as it is unchanged and readers would make up the
// same: not the word unknown where the actor becomes system, and no id that depends
// on what is open in a span where the span is made up. Only a payload that is no
// object stays all the same; what readers make of it is listed.
//
// # What is made up when an event lacks it
//
// The document requires traceId, spanId, sessionId, actor and schemaVersion. A
// trace id is derived from the run, a span id from run and agent, so the events
// of an agent share one; a tool call has a span of its own whose parent is the
// agent's, and an agent that is spawned has the span of its parent, or of the
// call that spawned it, as its parent. The session is the run. All of it is
// listed as made up.
//
// # Unknown members
//
// What a line says beyond the vocabulary is kept as the event's extra member
// "multiagent" ([agentevents.Event.Extra]), an object:
//
//	"schemaVersion":"1.0"        the document's version, which is not the native one; always
//	"x":1                        a member of the envelope
//	"/payload/x":1               a member of the payload, by JSON pointer
//	"/payload/error/x":1         a member inside a field
//	"/payload":"text"            a payload that is no object
//	"/~1x":1                     a member of the envelope whose name begins with a slash
//	"/as":{"toolId":"tool"}      a field that has another name on the line
//	"/made":["callId"]           a field that the line lacks
//
// The encoder writes these members after its own of the same object. One that
// is named like a field is written only as long as the field does not say
// something else, and one with another name of a field only as long as that is not
// cleared: readers would take it for the field.
package multiagent

import (
	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the vocabulary.
const Name = dialect.MultiAgent

// The rules of the document. A strict [Decoder] and the [Encoder] enforce them.
const (
	RuleEnvelope  agentevents.Rule = "multiagent-envelope"  // a required member of the envelope is missing or empty
	RuleTimestamp agentevents.Rule = "multiagent-timestamp" // timestamp is not an RFC 3339 time
	RuleWorkflow  agentevents.Rule = "multiagent-workflow"  // a workflow event without workflowId
	RulePhase     agentevents.Rule = "multiagent-phase"     // an agent event of a workflow, a phase or a checkpoint without phase
	RuleField     agentevents.Rule = "multiagent-field"     // a key field of a workflow type has another type than its name says
)
