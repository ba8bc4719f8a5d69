// Package agui reads and writes the events of AG-UI 1.0, the Agent-User Interaction protocol, by
// which agents talk to user interfaces: one JSON object per line, or the same objects as
// Server-Sent Events.
//
//	{"type":"TEXT_MESSAGE_CONTENT","timestamp":1767517322500,"messageId":"b1","delta":"The endpoint "}
//
// # Events of each type
//
//	RUN_STARTED                 run.started; of a run that the log had before, run.resumed
//	RUN_FINISHED                run.completed; by its outcome run.paused (interrupt) or run.cancelled
//	interrupts of these         approval.requested, clarification.requested: see Questions
//	RUN_ERROR                   run.failed
//	usage of these              usage.observed before them, one for each report
//	STEP_STARTED, _FINISHED     step.started, step.ended
//	TEXT_MESSAGE_CONTENT        agent.text.delta
//	TEXT_MESSAGE_END            agent.text; message.created for another role than assistant
//	REASONING_MESSAGE_CONTENT   agent.reasoning.delta
//	REASONING_MESSAGE_END       agent.reasoned
//	TOOL_CALL_ARGS              tool.arguments.delta
//	TOOL_CALL_END               agent.toolCalled: the arguments are complete
//	TOOL_CALL_RESULT            agent.toolReturned, with oneEvent if no run that may go on has such a call
//	STATE_SNAPSHOT              state.patched, a set of the whole state
//	STATE_DELTA                 state.patched, one for each operation: see State
//	SUBAGENT_STARTED            agent.started
//	SUBAGENT_FINISHED, _ERROR   agent.ended
//	CUSTOM "agentevents.KIND"   the kind; its value is the payload
//
// A line that only opens a message or a call, such as TEXT_MESSAGE_START, becomes no event. Neither
// does a piece without text. Chunks are read like the lines that they abbreviate. The THINKING
// types of earlier versions are read like their successors, and their blocks get ids. All other
// types (ACTIVITY, MESSAGES_SNAPSHOT, RAW, foreign CUSTOM, REASONING_START and _END, later types)
// become an [agentevents.Unknown]. So does a STATE_DELTA that cannot be applied: see State.
//
// The result of a call may come in a later run of its thread. Its event belongs to the run with the
// call if that run waits: see Questions. If no line has the call, the tool is "unknown".
//
// The encoder writes kinds without a type of their own as CUSTOM. It also writes a delta of
// arguments before the call as CUSTOM, because a call can only begin with the name of its tool, and
// a delta without text. Every kind can be written and comes back. No line has the rest of the
// envelope, nor the index and the counts of other deltas. A return without a call, such as a
// refusal, is written as a call and its result.
//
// Beside the protocol's members, a line has the members of the envelope that the rules need, under
// their native names: workflowId and phase, nodeId and nodeRunId, and late for that mark. A command
// has commandId, the id of its event, for the event that consumes it. In a run with an agent that
// only the span of its start names, a line has spanId and parentSpanId.
//
// # The member agentevents of metadata
//
// The protocol leaves the metadata to programs. If the protocol's members cannot hold the whole
// payload, the metadata have the rest: {"metadata":{"agentevents":{"status":"error"}}}. Fields that
// readers of the line make up, and the payload lacks, are listed under "absent". The metadata of a
// line that only the protocol needs are "made" instead, and the decoder makes no event of it. Such
// lines are the text of a block without deltas, and the ends of the blocks and calls that are open
// when their run ends.
//
// # Agents
//
// The protocol has one agent without an id, and sub-agents. The first agent.started that is not a
// SUBAGENT_STARTED is a CUSTOM line that names the run's agent in subagentRunId; the later lines of
// that agent do not name it. Without that line its id is [Agent]. The lines of all other agents
// name their agent, or have the node or the span that names it.
//
// # One run at a time
//
// A stream has one run at a time, and nothing after its end. The encoder writes runs that a log
// interleaves one after the other: lines wait until the runs before have ended. It drops the events
// of a run that has ended; a run.resumed begins it again. A run that never ends gets a RUN_ERROR,
// which is read as no event, if other runs wait. The thread of a run without a session has the
// run's id.
//
// # Ids
//
// The ids of messages, calls and results are the thread's. The encoder keeps those of the log. If
// an event has no id, or another message or call of the thread has the same id, the encoder derives
// one from the run and the event's sequence: block~RUN~7, or b1~RUN~7 for a second b1. Derived ids
// differ between runs, even if each run has its own encoder, and are the same in each conversion of
// the log. A return that names no tool keeps the id of its call only if no other message or call
// has that id. Otherwise readers would pair it with the other one. Encoders share no state: if each
// run of a thread has its own, as in live.Feed.EncodedHandler, blocks and calls of two runs must
// not share an id.
//
// # Blocks that another event cuts
//
// A pause, or the end of a run or a sub-agent, ends the blocks that are open. A block that goes on
// later begins again with its id, and only the text that has not been written follows. A block
// without an id ends with the next call, move or model call of its agent, by the rules of the log.
//
// # State
//
// A JSON Patch can only name places that exist, so the encoder follows the state of the thread. It
// knows the patches of the runs so far, the state in the protocol's input of a run.started, and the
// state in its definition, which gets a STATE_DELTA. A state.patched makes the objects that it
// needs; one that changes nothing becomes a STATE_DELTA without operations. The encoder does not
// know the other parts of the front end's state: a patch inside a member that no event has set
// makes the member anew. If a run begins while earlier runs of its thread are open, it begins with
// an empty state, because its lines may follow any of theirs.
//
// A decoder applies a STATE_DELTA (RFC 6902) to the state that the lines before have set, and makes
// patches of the change. An append to a list sets one element. An insertion into a list, and the
// removal of an element, set the whole list, once for each line: such a line costs as much as the
// list is long. So does the first change inside a list that an earlier run of the thread, or the
// input of this run, has set. A name with a dot needs a merge into the object around it.
//
// A STATE_DELTA that cannot be applied changes nothing and becomes an [agentevents.Unknown]; the
// losses of the decoder name the operation. A strict decoder refuses it if a front end would refuse
// it too. It accepts one that changes a member that no line has set, because the log may begin
// later than the state. From then on the decoder treats the members that such a line names as
// unknown.
//
// # Questions
//
// A run.paused ends its run with an interrupt for each open approval and clarification. Without
// open ones it is a CUSTOM line. The next event begins the run again, under the same id; a second
// run.started is a CUSTOM line after that. The host reads the answer of a front end: see
// EncodedHandler in package live.
//
// An interrupt whose request no line has becomes a request before the run.paused. It is an
// approval.requested if its reason is tool_call or confirmation, or if its form has the member
// approved. Otherwise it is a clarification.requested. The event has the interrupt as its extra
// member "interrupt", and is written as a part of the outcome.
//
// In the protocol another run of the thread has the answers, in the resume of its input. They
// become events of the run that asks, before the run.started: approval.granted or
// approval.rejected, by the payload or its member approved, and clarification.resolved. The
// answering side is that other run, because no line names a person. A cancelled entry rejects an
// approval, and resolves a clarification without answers. An entry that is neither yes nor no
// becomes no event. The event has the entry as its extra member "resume". The encoder holds the
// event back until the next one, and writes no line for it if the next one is the run.started with
// the entry. The result of a call of the waiting run is an event of that run too; its remark "/run"
// names the run whose line has it. Results in the messages of an input are not read.
//
// # Extra members
//
// The event's extra member "agui" is an object with the members of the line that no field has, by
// name or JSON pointer. Three entries are remarks. "/start" is the line that opened the message or
// call, if the encoder would write it differently: for example if its role is not assistant, or if
// the thread had its id before. "/timestamp" marks a line without a time. The event then has no
// known time: see [agentevents.TimeKnown]. "/run" is the run whose line has the return of a call:
// see Questions.
//
// # Server-Sent Events
//
// The decoder reads the data of frames, one object per data line, and passes over the other fields
// and comments.
package agui

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds the members of the
// line that no field has.
const Name = dialect.AGUI

// Agent is the id of the run's agent when no line names it.
const Agent = "agent"
