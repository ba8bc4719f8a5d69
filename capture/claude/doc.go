// Package claude reads the output of Claude Code in print mode,
//
//	claude -p --output-format stream-json --verbose
//
// with and without --include-partial-messages, as agentevents events:
//
//	reader := agentevents.NewReader(stdout, agentevents.ReaderOptions{
//		Decoder: claude.NewDecoder(claude.Options{Prompt: agentevents.JSONString(prompt)}),
//	})
//	for event, err := range reader.All() { … }
//
// Package [github.com/agentevents/agentevents/capture] reads the sessions that Claude Code keeps on disk.
//
// The events have ids and sequence numbers, and a fold reports no violations. An event's
// id is derived from the run's id and the number of its line, so reading the same lines
// again gives the same ids.
//
// Most streams have no times. The events of lines without one have the time of a clock
// ([Options].Time), and the decoder measures no duration between them. In a saved stream
// the timestamps that there are count for the lines after them: see [Options].Saved.
//
// A capture has the agent's inputs, and the decoder redacts nothing: give the events to
// [agentevents.Policy.Redact] before they are kept.
//
// # Lines and their events
//
//	line                                 events
//	system/init, the first               RunStarted (Inputs: cwd, tools, version, …), AgentStarted
//	system/init, after a failed turn     AgentStarted with Resumed
//	system/init, the others              AgentSessionChanged if the session differs, else nothing
//	assistant: text                      TextCompleted and MessageCreated
//	assistant: thinking                  AgentReasoned; verbosity off if the text is withheld
//	assistant: tool_use, *_tool_use      ToolCalled
//	assistant: *_tool_result             ToolReturned
//	assistant: other blocks              Unknown, claude.block.<type>
//	assistant, model <synthetic>         AgentErrored, or a message from core.system
//	assistant.error, of another model    AgentErrored, then the blocks
//	assistant.supersedes                 EventRetracted with the events of those lines
//	user: text                           MessageCreated; from core.system if isSynthetic is set
//	user: tool_result                    ToolReturned; without an open call with OneEvent, marked synthetic
//	stream_event                         TextDelta, AgentReasoningDelta, ToolArgumentsDelta; else nothing
//	result that states a failure         AgentErrored, AgentEnded
//	result, of several turns             TurnEnded, and TurnSummarized if it has a text
//	result, the last                     AgentEnded at the end of the stream
//	usage of API messages                UsageObserved before an AgentEnded without usage
//	task_progress.workflow_progress      AgentStarted and AgentEnded of the agents of a workflow
//	parent_tool_use_id, task_started     AgentStarted of a sub-agent
//	result of the spawning call          AgentEnded of the sub-agent
//	task_notification                    AgentEnded of a sub-agent in the background
//	compact_boundary                     ContextCompacted
//	api_retry, rate_limit_event          AgentErrored, a warning; a limit with status "allowed" is not an error
//	model_refusal_fallback               EventRetracted with the events of the lines it names
//	conversation_reset                   EventRetracted with the messages so far
//	any other, those two and all task_*  Unknown, claude.<type>[.<subtype>], with the complete line
//	end of the stream                    RunCompleted or RunFailed
//
// A BlockID is the id of the API message, a colon and the number of the block. A
// whole block comes before the end of its deltas and has the final text, so the
// decoder leaves out later deltas. It also leaves out signatures, the frame of the
// streamed message, the rest of the init lines, and the timings of a result other than
// its duration.
//
// # Runs, turns and ends
//
// A stream is one run, also if several processes were appended to it, unless [Options].Processes
// is set. The run is named by
// its process and not by its session, because a process that resumes a session prints the
// same session id: see [Options].RunID. A result ends a turn. The main agent
// goes on after that: a turn is not an attempt. A turn that failed ends the agent, and the next
// one begins another attempt. A TurnEnded tells of a turn that is not the only one; for a first turn
// that failed it comes late, before the next attempt. A result may come after the first lines of the next turn, and a
// result with num_turns 0 and without a text changes the totals only. The end of the stream ends
// the agent and the run, with the outcome of the latest turn: the run is complete unless that
// states a failure, by another subtype than success, by is_error, or without a subtype by errors, a
// status of the API or the terminal_reason of a failure. It was cancelled if the user interrupted
// that turn, or its terminal_reason begins with "aborted".
//
// A turn without a result was interrupted. The decoder then closes open calls and
// sub-agents, and ends the agent as aborted and the run as failed, or as cancelled if the
// user interrupted it. It marks all these events synthetic. A result also closes what is still
// open, except background work. A call in its permission_denials is closed as forbidden. The CLI
// returns an error for most of these calls before the result: it is recorded as forbidden too, if
// tool_result_meta or another line said that the call was denied, or if the text is one that the
// CLI has for it. Otherwise a warning tells of the denial. If the stream does not have the call,
// the denial is a ToolReturned with OneEvent. The CLI has one text for calls that the user refused
// and for those that the user interrupted: their return waits until the agent goes on, which makes
// it forbidden, or the turn ends, which makes it cancelled if it was interrupted. Acts of an agent
// after its end are marked late.
//
// Lines before the first init wait for it, because the session ids that hooks print
// there often belong to another session. Texts of the user between turns wait for the
// next turn. The decoder recognizes a turn without an init line by the lines that
// follow, and marks its start synthetic.
//
// A line of the conversation that repeats the uuid of an earlier line is a replay, and
// yields no event.
//
// # Agents
//
// A sub-agent's id is the main agent's id, its type in lower case and eight digits of a
// hash of the spawning call's id, such as "claude:explore:5f0c93ab": the formats that logs
// are converted to allow it. It is the same in every reading, and different for every call. A
// sub-agent starts at its first line, but the event waits for its first message, which names the
// model. Its status and messages follow from its lines. If only the result of the call has its last
// words, they are in AgentEnded.Result.
//
// A step is one round trip to the model. A step begins with each new API message, and each time
// the agent returns to thinking. Streams have no statuses: the decoder passes its events through
// an agentevents.Emitter, which derives the status changes ([agentevents.LifecycleDerived]).
// Each agent.started names that lifecycle. [Options].NoTransitions leaves the status changes
// out. The emitter also counts the totals of an agent's end, and shortens content that would make
// a line longer than [agentevents.DefaultMaxLine].
//
// # Usage
//
// AgentEnded of the main agent has the usage of its own turns. Its ModelUsage and
// TotalCostUSD are the sums over the stream, sub-agents included. The CLI's totals are sums over
// the session, with all its processes: the decoder adds up the usage since the result before, where
// results state it (model_usage_since_last_result). Where they do not, the totals count. These
// may begin again after a reset of the session, and in another process. The decoder sees it when
// one of them is lower than before, or lower in another session than those before and the turn
// together, and adds the amount that was spent until then. If the first totals of a resumed
// session are more than its turn read, the usage of the turn counts, the cost is unknown, and a
// warning (session_totals) has the totals. A price with the costBasis unknown does not count;
// a warning (unknown_price) has it.
//
// An attempt that ends within a turn has no totals: the main agent reports the tokens that results state
// and that later lines state, less those that sub-agents report. Its cost is unknown, and a warning
// (session_totals) has the cost that the results state.
//
// Sub-agents, and a turn whose result is missing or states no usage, have a UsageObserved
// for each model: the sum of the greatest usage that the lines state of each API message.
// It is partial, because the CLI prints lines while their message grows, unless all messages
// were streamed to their end (message_delta). AgentEnded of a
// sub-agent has no usage: the result of its call states the usage of its last message alone.
//
// # Errors
//
// Text that is not JSON and lines that are not messages are errors, and reading goes
// on. A member of the wrong type is an error that names the member, and the decoder
// reads the rest of the line. Damaged characters are replaced, and their events marked
// sanitized. A stream of another format is one error, which names the format if the decoder
// knows it, and no events.
package claude
