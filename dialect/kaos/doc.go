// Package kaos reads and writes the events and spans of KAOS agents: one JSON object per line, or
// the same objects as Server-Sent Events.
//
//	{"timestamp":1001.25,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":null,"content":"and then","type":"text_delta"}
//
// The document names the classes. Their members, types and order are those of the public code of
// KAOS. Writers put every member of a class on the line, null for an absent value, and the type
// last. The decoder takes members in any order, and members with a default may be absent. An object
// without timestamp, sequence, session_id and run_id is a bad line, because other streams hold
// objects with a type, too.
//
// # Events of each type
//
//	span turn                     start: turn.started; complete, error, cancelled: turn.ended
//	span step                     step.started, step.ended
//	span tool_call                agent.toolCalled, agent.toolReturned
//	span llm_call                 start: model.called; complete, error, cancelled: model.returned
//	span subagent                 agent.started, agent.ended
//	span handoff                  start: handoff.requested; complete: handoff.accepted
//	span, any other pair          span.recorded
//	intent_classified             intent.classified
//	plan_proposed                 plan.proposed
//	citation_found                citation.found
//	usage_observed                usage.observed; the usage of an agent.ended
//	evidence_insufficient         evidence.insufficient
//	turn_summary                  turn.summarized, before or after the end of the turn
//	memory_event                  memory.changed; context.compacted, see below
//	run_error                     agent.error
//	budget_exceeded               budget.exceeded
//	text_delta                    agent.text.delta; a whole agent.text without deltas
//	thinking_delta                agent.reasoning.delta; a whole agent.reasoned without deltas
//	tool_call_args_delta          tool.arguments.delta
//	tool_call_approval_required   approval.requested
//	escalation_required           of kind clarification_needed: clarification.requested
//
// A line of another type, or another kind of escalation, becomes an [agentevents.Unknown] with the
// members beyond the base. The encoder refuses kinds that are not in the list.
//
// # The root agent
//
// A line whose agent_id is null belongs to the root agent. Its events have the agent [Root], which
// the decoder lists as made up; the encoder writes null for it. If the span of a sub-agent names no
// delegating agent, its parent is Root if the run has an earlier line of the root agent, and empty
// otherwise. An agent with the id root on its lines is another agent: it becomes root', and an
// agent called root' gets a second mark.
//
// # Spans
//
// The conventional attributes of a subject become fields if their values have the expected types.
// KAOS has no attributes for the model, the provider and the answer of an llm_call: the encoder
// writes the free attributes model, provider and response. The other attributes stay in Attributes
// where the kind has that field, and are extra members otherwise.
//
//   - A closing phase finds its start by span_id. The start supplies the call, step or agents that
//     the closing line leaves out.
//   - A step or tool call has failed if it is complete with is_error, or if its phase is error,
//     which also carries the error. A cancelled turn, step or model call ends with an error of code
//     "cancelled", a cancelled sub-agent with outcome aborted.
//   - The call id of a tool or a model is the attribute call_id. It is the span_id instead if that
//     attribute is absent, or if an open call of the agent already has the id (some producers write
//     the tool's name).
//   - A tool_call or llm_call that ends without a start becomes a record of the whole call
//     (oneEvent), because a policy may have kept the start out of the stream.
//   - The agent of a subagent span is subagent_name; its parent is the line's agent_id. If another
//     agent of that name is open in the run, the event has no agentId: readers know the agent by
//     its span, and the start's field agent carries the name.
//   - tokens_used of a sub-agent is the StatedTokens of its end, and the tokens and the cost of an
//     llm_call are extra members: KAOS writes a usage_observed for every model call, and a fold
//     would count both.
//   - A handoff that ends with error or cancelled was not accepted: it becomes span.recorded.
//   - A span without the attribute that names its subject becomes span.recorded.
//   - Arguments keep their form: a list of pairs of texts, or an object.
//   - The encoder writes a tool's result to the free attribute result, because KAOS has only a text
//     for it. If the event has no summary, the first 200 bytes of the result's text become
//     result_summary, and the decoder does not read such a text as a summary.
//
// A memory_event of kind summarized is context.compacted if its attributes count tokens_before or
// tokens_after. KAOS itself has no names for those counts, nor for the summary, which is the
// attribute summary.
//
// # Times and numbers
//
// Timestamps are seconds of a monotonic clock, which has no relation to the wall clock. [Options]
// take an anchor that relates the two. Without an anchor, times are in 1970, and the first event of
// every run has a remark on it. Seconds since 1970 are an exception: they are larger than the clock
// of any machine, and are read as times. Timestamps and durations are read to the nanosecond; finer
// digits are floating-point noise. A line without a readable time becomes an event without a known
// time: see [agentevents.TimeKnown].
//
// A sequence may have gaps, and may repeat after a resume; only the identical line is the same
// event. The decoder numbers events anew ([dialect.Numbers]) and keeps a number that differs as an
// extra member.
//
// A line after the end of its agent or run that is marked late has the member late, which KAOS does
// not have. The start of a sub-agent that continues an earlier one, or follows a run.resumed, has
// the free attribute resumed.
//
// # Members that no field has
//
// The event's extra member "kaos" is an object with the members of the line that no field has:
// extra members, and members of the document such as sequence, run_state_ref, details and name.
// Members of inner objects stand there under a JSON pointer, such as /attributes/cached or
// /steps/0/cost. A name that begins with a slash is written as a pointer, too. Two entries are
// remarks, which the encoder never writes to a line: "/timestamp":"monotonic", and "/type":n for a
// line of an unknown type on which n members follow the type, as they do when somebody adds members
// to a finished line.
//
// # Server-Sent Events
//
// The [Decoder] recognizes the lines of frames by their field name: event, data and id. Only data
// become an event. Comments, retry, event and id are passed over, but a strict decoder compares
// event and id with the data. A line with any other field is a bad line: in a log it is text that
// another program wrote into it. Lines end with LF, CRLF or CR. The encoder derives event and id
// from the data, also for a line that it writes verbatim. It lists no loss for the frame's other
// fields.
//
// An [agentevents.Reader] drops blank lines, so the end of the JSON object ends a frame. An object
// may be split over several data lines. An incomplete object is an error ([io.ErrUnexpectedEOF]) if
// an event line, another object or the end of the log follows, and so is an event line without data
// at the end of the log. One case is ambiguous without blank lines: if both a torn object and the
// next one are split, and no event line stands between them, both are lost with an error.
package kaos

import "github.com/agentevents/agentevents/dialect"

// Name is the name of the dialect. The event's extra member of that name holds the members of the
// line that no field has.
const Name = dialect.KAOS

// Root is the agent of a line without an agent id: the one that the others work for.
const Root = "root"

// rootMark tells an agent that is called as the root agent from it.
const rootMark = "'"
