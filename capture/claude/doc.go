// Package claude reads what Claude Code prints in print mode,
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
// The events are complete: they have ids and sequence numbers, and folding
// them under [agentevents.LifecycleRelaxed] reports no violations. An event's id
// follows from the run's id and the place of its line, so that reading the
// same lines again gives the same ids.
//
// # What becomes of what
//
//	line                                 events
//	system/init, the first               RunStarted (Inputs: cwd, tools, version, …), AgentStarted
//	system/init, after a result          AgentStarted with Resumed; AgentSessionChanged if the session is another
//	system/init, inside a turn           AgentSessionChanged if the session is another, else nothing
//	assistant: text                      TextCompleted and MessageCreated
//	assistant: thinking                  AgentReasoned; verbosity off where the text is withheld
//	assistant: tool_use, *_tool_use      ToolCalled
//	assistant: *_tool_result             ToolReturned
//	assistant: other blocks              Unknown, claude.block.<type>
//	assistant.error                      AgentErrored, then the blocks
//	assistant.supersedes                 EventRetracted with the events of those lines
//	user: text                           MessageCreated; from core.system where isSynthetic is set
//	user: tool_result                    ToolReturned; without a call one with OneEvent, marked synthetic
//	stream_event                         TextDelta, AgentReasoningDelta, ToolArgumentsDelta; else nothing
//	result                               AgentErrored unless it is complete, AgentEnded
//	parent_tool_use_id, task_started     AgentStarted of a sub-agent
//	result of the spawning call          AgentEnded of the sub-agent
//	task_notification                    AgentEnded of a sub-agent in the background
//	compact_boundary                     ContextCompacted
//	api_retry, rate_limit_event          AgentErrored, a warning; a limit with status "allowed" is no error
//	model_refusal_fallback               EventRetracted with the events of the lines it names
//	conversation_reset                   EventRetracted with the messages so far
//	any other, those two and all task_*  Unknown, claude.<type>[.<subtype>], with the whole line
//	end of the stream                    RunCompleted or RunFailed
//
// A BlockID is the id of the API message, a colon and the number of the block.
// A whole block comes before the end of its deltas and is the truth; deltas
// after it are left out. Also left out are signatures, the frame of the
// streamed message and the usage in it, the usage of assistant lines (it is
// not complete and never to be summed), the rest of the init lines, and the
// timings of a result other than its duration.
//
// # Runs, turns and ends
//
// A stream is one run. A result ends a turn, and with it the main agent; an
// init after it begins the next turn. So the run ends with the stream, as the
// latest result says: it is complete if and only if its subtype is success and
// is_error is false. Where a turn has no result, it was interrupted: open calls
// and sub-agents are closed, the agent ends as aborted and the run has failed,
// all of it marked synthetic. A result closes what is still open too, except
// what runs in the background; a call in its permission_denials is closed as
// forbidden. What an agent does after its end is marked late.
//
// Lines before the first init wait for it, as the session ids that hooks print
// there are often those of another session. Texts of the user between turns
// wait for the next turn. A turn without an init line is recognized by what
// follows: its start is marked synthetic.
//
// A line of the conversation that comes again under its uuid, as replays do,
// says nothing new and yields nothing.
//
// # Agents
//
// A sub-agent's id is its parent's id, its type and the end of the id of the
// call that spawned it, such as "claude:Explore:x1Yz23Ab": the same in every
// reading, and different for every call. It starts at its first line; the
// event is held back until its first message tells the model. Its status and
// messages follow its lines; where its last words come only as the result of
// the call, they are in AgentEnded.Result.
//
// A step is one round trip to the model: it begins with a new API message, and
// when the agent thinks again. Status changes follow from the blocks (thinking,
// tool_use, tool_result, text, result). They are marked synthetic, their reason
// begins with "synthetic:", and only those that the lifecycle allows are made;
// [EmitterOptions].NoTransitions leaves them out.
//
// # Usage
//
// AgentEnded of the main agent has the usage of its own turn and, in
// ModelUsage and TotalCostUSD, the CLI's running totals, which include
// sub-agents and, if the session was resumed, what it had spent before. After a
// reset of the session the totals begin again; what was spent up to then is
// added.
//
// # Errors
//
// Text between the lines that is not JSON, and lines that are no messages, are
// errors; reading goes on. A member of the wrong type is an error that names
// it; the rest of the line is read. Damaged characters are replaced and the
// events marked sanitized.
package claude
