// Package openwop reads and writes the run event documents of OpenWOP (seed
// 004, RFC 0002 "Agent Identity and Reasoning Events"), one document per line.
//
//	{"eventId":"evt-7","runId":"run-1","nodeId":"n1","type":"agent.toolCalled",
//	 "payload":{"agentId":"host:planner","toolId":"orders:lookup","callId":"c1","arguments":{"id":7}},
//	 "timestamp":"2026-05-19T10:00:07.000Z","sequence":7,"causationId":"evt-6"}
//
// Members are written in the order eventId, runId, nodeId, type, payload,
// timestamp, sequence, schemaVersion, engineVersion, causationId. The agent of
// an event is its payload's agentId; for a handoff it is the one who hands over.
//
// # Profiles
//
// The text of the RFC and the published schemas disagree about names. A
// [Profile] says which of them the [Encoder] writes and whose rules a strict
// [Decoder] keeps. Every decoder reads all of them:
//
//	RFC0002             SchemaV1                    SchemaV2
//	agent.toolCalled    agent.toolCalled            agent.tool-called
//	  toolId, arguments   toolName, inputs            toolName, inputs
//	agent.toolReturned  agent.toolReturned          agent.tool-returned
//	  toolId, result      toolName, outcome           toolName, outcome
//	agent.handoff       agent.handoff               agent.handoff
//	  from, to, context   fromAgentId, toAgentId      fromAgentId, toAgentId
//	agent.reasoning.delta                           agent.reasoning-delta
//	runOrchestrator.decided                         orchestrator.decided
//	clarification.requested, .resolved              interrupt.requested, .resolved (kind clarification)
//	approval.requested, .granted, .rejected         interrupt.requested, .resolved (kind approval)
//
// A payload that has a member in both spellings is read by that of the
// profile; the other one is kept as a member that is not known, and written
// back where it does not collide.
//
// A member that the profile does not declare and the vocabulary has may be of any
// type: where it is not what the vocabulary has, it is one that is not known.
//
// Payloads of the first two profiles are open, so they carry what the document
// has no member for but has a name for elsewhere: agentId on any event,
// context, reasoning and agent under SchemaV1, the tool of an approval; and the
// blockId of reasoning, without which blocks cannot be told apart. The
// payloads of SchemaV2 are closed: there it is dropped and listed.
//
// Ids are opaque on read. On writing, SchemaV1 bounds their length and
// SchemaV2 has grammars for them: an id that does not fit is replaced by
// [NormalizeID] and listed. An agent's id has the form of a handoff's ([HandoffID])
// in every place, also in an AgentRef, a message and a list of next workers, so
// that the agent stays one. Lines of SchemaV2 keep the others that their schema
// allows, and of those places SchemaV1 changes the acting agent's only.
//
// # Kinds
//
// The agent.*, node.*, run.*, cap.breached, runOrchestrator.decided,
// clarification.* and approval.* types that the vocabulary has, and messages as
// channel.written of the channel [MessageChannel] and of the reducer applyMessage;
// the schemas have none such, and append is made up there. All other published types
// are read as [agentevents.Unknown] and written back. Of the payloads of these
// the schemas bind the names and, under SchemaV2, the ids: members that a closed
// payload does not have are dropped and listed, and an event without a member
// that its type needs has no counterpart, unless the line was read under the same
// profile. Their other values are not looked at, nor are payloads of vendors, nor
// those of a few types whose schemas are not known here. A tool call that is one
// event becomes two lines, agent.toolCalled and agent.toolReturned; the
// sequence numbers after it move up by one.
//
// # Members that the vocabulary has no place for
//
// They are kept in the event's extra member "openwop", an object:
//
//	"schemaVersion":2                  a member of the envelope, by its name
//	"/payload/model":"m-1"             a member of the payload
//	"/payload/error/host":"a"          a member of an object in it
//	"~spelled":["/payload/status"]     members that the line has although they could be left out
//	"~absent":["/payload/nodeId"]      members that the line lacks although they are usual or required
//	"~type":"interrupt.requested"      the line's type, where the profile would write another one
//	"~profile":"SchemaV2"              the line has members that this profile does not allow, or not in that form
//
// The name of an envelope member that begins with / or ~ is kept as a pointer
// too. The encoder puts all of it back, but for what its profile does not allow,
// members of another form than the schema declares among it: that is listed,
// unless the line was read under the same profile. Members that a published
// schema requires are written there whatever the line lacked.
//
// An AgentRef and a message keep their unknown members themselves, and
// node.suspended keeps all but nodeId, reason and agentId as its details. The node
// of a node.resumed, which a fold asks for, is taken from the payload where the
// envelope has none.
//
// # Hosts and clients
//
// A [Host] has the rules that no line can say, as options of an emitter: the
// events and tools that it declares, and what follows a decision below the
// threshold. [Capabilities] are what it declares and clients look up, and package
// discovery serves and fetches them. [SnapshotOf] makes the document's snapshot of
// what a fold knows, and [AppendSnapshot] writes it.
package openwop

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the vocabulary.
const Name = dialect.OpenWOP
