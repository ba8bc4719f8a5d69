// Package openwop reads and writes the run event documents of OpenWOP (RFC 0002 "Agent Identity and
// Reasoning Events"), one on each line.
//
//	{"eventId":"evt-7","runId":"run-1","nodeId":"n1","type":"agent.toolCalled",
//	 "payload":{"agentId":"host:planner","toolId":"orders:lookup","callId":"c1","arguments":{"id":7}},
//	 "timestamp":"2026-05-19T10:00:07.000Z","sequence":7,"causationId":"evt-6"}
//
// The encoder writes members in the order eventId, runId, nodeId, type, payload, timestamp,
// sequence, schemaVersion, engineVersion, causationId. The agent of an event is the agentId of its
// payload. For a handoff it is the delegating agent.
//
// # Profiles
//
// The text of the RFC and the published schemas disagree about names. A [Profile] selects the names
// that the [Encoder] writes and the rules that a strict [Decoder] applies. Every decoder reads the
// names of all profiles:
//
//	RFC0002             SchemaV1                    SchemaV2
//	agent.toolCalled    agent.toolCalled            agent.tool-called
//	  toolId, arguments   toolName, inputs            toolName, inputs
//	agent.toolReturned  agent.toolReturned          agent.tool-returned
//	  toolId, result      toolName, outcome           toolName, outcome
//	  error: error        error: code                 error: code
//	agent.handoff       agent.handoff               agent.handoff
//	  from, to, context   fromAgentId, toAgentId      fromAgentId, toAgentId
//	agent.reasoning.delta                           agent.reasoning-delta
//	runOrchestrator.decided                         orchestrator.decided
//	clarification.requested, .resolved              interrupt.requested, .resolved (kind clarification)
//	approval.requested, .granted, .rejected         interrupt.requested, .resolved (kind approval)
//
// If a payload has a member in both spellings, the decoder reads the profile's spelling. The other
// one is an extra member, and is written back where it does not collide.
//
// A member that the vocabulary has, but the profile does not declare, may have a value of any type.
// A value whose type differs from the vocabulary's is an extra member.
//
// Payloads of the first two profiles are open. They carry some facts under a name that the document
// uses elsewhere: agentId on any event, context, reasoning and agent under SchemaV1, the tool of an
// approval. They also carry the blockId of reasoning, because blocks cannot be told apart without
// it. Payloads of SchemaV2 are closed: there the encoder drops these facts and lists them.
//
// The decoder does not check ids unless it is strict. SchemaV1 limits the length of ids and
// SchemaV2 has grammars for them: the encoder replaces an id that does not fit by [NormalizeID] and
// lists it. An agent's id gets the form of a handoff's ([HandoffID]) in every place, also in an
// AgentRef, a message and a list of next workers, so that the agent has one id everywhere. There
// are two exceptions. An event from a line of SchemaV2 keeps the other forms that its schema
// allows. In an AgentRef, a message and a list of next workers, SchemaV1 changes only the id of the
// acting agent.
//
// # Kinds
//
// The vocabulary has the types agent.*, node.*, run.*, cap.breached, runOrchestrator.decided,
// clarification.* and approval.*. A message is a channel.written with the channel [MessageChannel]
// and the reducer applyMessage, or the turn of a conversation.exchanged or the initialTurn of a
// conversation.opened, whose other members are extra members. The schemas do not have that reducer:
// under them the encoder makes up append.
//
// A provider.usage is an [agentevents.UsageObserved]. A running total or a partial report has no
// line, because readers would add it up. Its provider, its currency and a cost in another currency
// than US dollars are extra members. An answer from the cache ("cacheHit":true) repeats the figures
// of the first call. It is therefore read as a type that the vocabulary does not have.
//
// All other published types are read as [agentevents.Unknown] and written back. The schemas decide
// the members of their payloads and, under SchemaV2, the ids. The encoder drops and lists members
// that a closed payload does not have, and members whose form the schema does not allow. It refuses
// an event that lacks a member its type requires with [dialect.ErrNoCounterpart]. Neither happens
// to an event that was read under the same profile. The payloads of vendors and of a few types
// whose schemas are not known here are not checked.
//
// A tool call that is one event becomes two lines, agent.toolCalled and agent.toolReturned. The
// sequence numbers after it move up by one.
//
// # Extra members
//
// The decoder keeps members that the vocabulary does not have in the event's extra member
// "openwop", an object:
//
//	"schemaVersion":2                  a member of the envelope, by its name
//	"/payload/model":"m-1"             a member of the payload
//	"/payload/error/host":"a"          a member of an object in it
//	"~spelled":["/payload/status"]     members that the line has although they could be left out
//	"~absent":["/payload/nodeId"]      members that the line lacks although they are usual or required
//	"~type":"interrupt.requested"      the line's type, where the profile would write another one
//	"~profile":"SchemaV2"              the line has members that this profile does not allow, or not in that form
//
// An envelope member whose name begins with / or ~ is kept as a pointer too. The encoder writes all
// of this back, except what its profile does not allow, and except members in another form than the
// schema declares: it lists those. An event that was read under the same profile, from a line of
// one of its types, loses neither. The encoder always writes the members that a published schema
// requires, even if the line lacked them. Under a schema it writes a line that the reader kept
// (Verbatim) as it was only if the line keeps the rules of that profile.
//
// An AgentRef and a message keep their extra members themselves. The details of a node.suspended
// are all members of its payload except nodeId, reason and agentId. A fold needs the node of a
// node.resumed: the decoder takes it from the payload if the envelope has none.
//
// # Hosts and clients
//
// Package host applies the rules that no line shows, as options of an emitter: the events and tools
// that the host declares, and the action that follows a decision below the threshold. Clients look
// up its capabilities; package discovery serves and fetches them. Package snapshot makes the
// document's snapshot from a fold's snapshot.
package openwop

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name. The event's extra member of this name holds the members of its line
// that the vocabulary does not have.
const Name = dialect.OpenWOP
