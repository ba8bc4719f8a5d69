// Package agui reads and writes the events of AG-UI 1.0, the Agent-User Interaction
// protocol, by which agents talk to user interfaces: one JSON object per line, or the
// same objects as Server-Sent Events.
//
//	{"type":"TEXT_MESSAGE_CONTENT","timestamp":1767517322500,"messageId":"b1","delta":"The endpoint "}
//
// # What becomes what
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
// The lines that only open a message or a call, TEXT_MESSAGE_START and the like, are no
// events, nor are pieces without text. Chunks are read as what they stand for, and so are the THINKING types of
// earlier versions, whose blocks get ids. All other types (ACTIVITY, MESSAGES_SNAPSHOT,
// RAW, foreign CUSTOM, REASONING_START and _END, later types) become an
// [agentevents.Unknown]. So does a STATE_DELTA that cannot be applied: see State.
//
// The result of a call may come in a later run of its thread. It is an event of the run with the
// call if that waits: see Questions. The tool of one whose call no line has is "unknown".
//
// The encoder writes kinds without a type of their own as CUSTOM. So it does with a delta of
// arguments before the call, which can only begin with the name of its tool, and with a
// delta without text. Every kind can be written and comes back; what no line says of an
// event is the rest of the envelope, and of other deltas the index and the counts. A return
// without a call, such as a refusal, is written as a call and its result.
//
// Of the envelope a line has, beside the protocol's members and under their native names,
// what the rules ask for: workflowId and phase, nodeId and nodeRunId, and late for that
// mark. A command has commandId, the id of its event, for the event that consumes it. A line has spanId and parentSpanId in a run with an agent that only the span of its
// start names.
//
// # The member agentevents of metadata
//
// The protocol's metadata are free. A line that does not say all of its event's payload
// has the rest there: {"metadata":{"agentevents":{"status":"error"}}}. Fields that readers
// of the line make up, and the payload lacks, are listed under "absent". A line that
// stands for no event, because only the protocol needs it, says "made" in its place: the
// text of a block that had no deltas, the end of what is open when its run ends. The
// decoder makes no event of it.
//
// # Agents
//
// The protocol has one agent without an id, and sub-agents. The first agent.started that
// is no SUBAGENT_STARTED is a CUSTOM line that names the run's agent in subagentRunId;
// the lines of that agent do not name it. Without that line its id is [Agent]. The
// events of all other agents name theirs, or have the node or the span that does.
//
// # One run at a time
//
// A stream has one run at a time, and nothing after its end. The encoder writes runs that
// a log interleaves one after the other: lines wait until the runs before have ended. It
// drops the events of a run that has ended; a run.resumed begins it again. A run that
// never ends gets a RUN_ERROR, which is no event, when others wait. A run without a
// session has its own id for the thread.
//
// # Ids
//
// The ids of messages, calls and results are the thread's. The encoder keeps those of the log.
// Where an event has none, or another message or call of the thread has its id, it makes one
// of the run and the event's sequence: block~RUN~7, or b1~RUN~7 for a second b1. Such an id is
// another one in each run, also if each run has an encoder of its own, and the same one
// whenever the log is converted. A return that names no tool keeps the id of its call only if no
// other message or call has that id, as readers would take it for the return of that one. Encoders
// do not know each other: if each run of a thread has its own, as in live.Feed.EncodedHandler,
// blocks and calls of two runs must not share an id.
//
// # Blocks that are cut
//
// A pause, or the end of a run or a sub-agent, ends the blocks that are open. A block that goes
// on after that begins once more with its id, and only the text that no line has is written.
// A block without an id ends with the next call, move or model call of its agent, by the rules
// of the log.
//
// # State
//
// A JSON Patch can only name places that are there, so the encoder follows the state of the
// thread: the patches of the runs so far, the state in the protocol's input of a run.started, and
// the state in its definition, which gets a STATE_DELTA. A state.patched makes the objects that it
// needs, and one that changes nothing is a STATE_DELTA without an operation. More of the front end's
// state is not known: a patch inside a member that no event has set makes the
// member anew. A run that begins before the ones before it in its thread have ended begins
// with an empty state, as its lines may follow any others.
//
// A decoder applies a STATE_DELTA (RFC 6902) to the state that the lines before have told, and
// makes patches of the change. An append to a list sets one element. An insertion into a list, and
// the removal of an element, set the whole list, once for each line: such a line costs as much as
// the list is long. So does the first change inside a list that an earlier run of the thread, or the
// input of this one, has told. A name with a dot needs a merge into the object around it.
//
// A STATE_DELTA that cannot be applied changes nothing and becomes an [agentevents.Unknown]; the
// losses of the decoder name the operation. A strict decoder refuses it if a front end does, too.
// It accepts one for a member that no line has told, because the log may begin later than the
// state; of the members that such a line names nothing is known from then on.
//
// # Questions
//
// A run.paused ends its run with an interrupt for each approval and clarification that is
// open, and is a CUSTOM line without one. What comes next begins the run again, under its
// id; a second run.started is a CUSTOM line after that. The answer of a front end is the host's to
// read: see EncodedHandler in package live.
//
// An interrupt of which no line has the request becomes one before the run.paused: an
// approval.requested if its reason is tool_call or confirmation or its form asks for the member
// approved, else a clarification.requested. The event has the interrupt as its extra member
// "interrupt" and is written as a part of the outcome again.
//
// In the protocol another run of the thread has the answers, in the resume of its input. They
// become events of the run that asks, before the run.started: approval.granted and rejected by the
// payload, or its member approved, and clarification.resolved. Who answers is that other run, as no
// line names a person. An entry that is cancelled rejects an approval, and resolves a
// clarification without answers. An entry with neither yes nor no answers nothing. The event has
// the entry as its extra member "resume". The encoder holds it back until the next event, and
// writes no line for it if that is the run.started with the entry. The result of a call of the run
// that waits is an event of that run, too; its remark "/run" names the run whose line has it.
// Results in the messages of an input are not read.
//
// # Extra members
//
// The event's extra member "agui" is an object with everything of the line that no field
// has, by its name or its JSON pointer. Three entries are remarks. "/start" is the line
// that opened the message or call, if the encoder would not write it like that: its role is not
// assistant, for example, or the thread had its id before. "/timestamp" says that the line has
// no time. The time of the event is not known: see [agentevents.TimeKnown]. "/run" is the run whose line has the
// return of a call: see Questions.
//
// # Server-Sent Events
//
// The decoder reads the data of frames, one object per data line, and passes over the
// other fields and comments.
package agui

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds what the
// line says and no field has.
const Name = dialect.AGUI

// Agent is the id of the run's agent when no line names it.
const Agent = "agent"
