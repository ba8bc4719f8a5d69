// Package kaos reads and writes the events and spans of KAOS agents (seed 002):
// one JSON object per line, or the same objects as Server-Sent Events.
//
//	{"timestamp":1001.25,"sequence":0,"session_id":"s-1","run_id":"run_0123456789ab","agent_id":null,"content":"and then","type":"text_delta"}
//
// Seed 002 names the classes; their members, types and order are those of the
// public code of KAOS. Writers put every member of a class on the line, null
// where there is nothing, and the type last. Readers take members in any order,
// and leave out what has a default. An object with none of timestamp, sequence,
// session_id and run_id is a bad line: streams of others, too, hold objects with a
// type.
//
// # What becomes what
//
//	span turn                     start: turn.started; complete, error, cancelled: turn.ended
//	span step                     step.started, step.ended
//	span tool_call                agent.toolCalled, agent.toolReturned
//	span subagent                 agent.started, agent.ended
//	span handoff                  start: handoff.requested; complete: handoff.accepted
//	span, any other pair          span.recorded
//	intent_classified             intent.classified
//	plan_proposed                 plan.proposed
//	citation_found                citation.found
//	usage_observed                usage.observed
//	evidence_insufficient         evidence.insufficient
//	turn_summary                  turn.summarized; it may come before or after the turn's end
//	memory_event                  memory.changed; context.compacted, see below
//	run_error                     agent.error
//	budget_exceeded               budget.exceeded
//	text_delta                    agent.text.delta
//	thinking_delta                agent.reasoning.delta
//	tool_call_args_delta          tool.arguments.delta
//	tool_call_approval_required   approval.requested
//	escalation_required           of kind clarification_needed: clarification.requested
//
// Lines of other types, and other escalations, become [agentevents.Unknown]
// with the members beyond the base. Kinds that are not in the list are refused
// by the encoder.
//
// # Spans
//
// The conventional attributes of a subject become fields, if they have the
// types they should have. The rest stays in Attributes where the kind has them.
//
//   - A closing phase finds what its start opened by span_id, and takes from it
//     the call, step or agents that its own attributes leave out.
//   - A step or tool call that is complete with is_error failed; so did one
//     with phase error, which also says how. A turn or step that was cancelled
//     ends with an error of code "cancelled", a sub-agent with outcome aborted.
//   - The call id is the attribute call_id. Without one, or if an open call of
//     the agent has it (some producers give the tool's name), it is the span_id.
//   - A tool_call that ends without a start is a record of the whole call
//     (oneEvent): a policy may have kept the start out of the stream.
//   - The agent of a subagent span is subagent_name, and the line's agent_id its
//     parent. If another one of that name is open in the run, the event has no
//     agentId: that agent is known by its span, and the start's agent has the
//     name. tokens_used is kept as an extra member, since KAOS counts usage by
//     usage_observed and would count it twice.
//   - A handoff that ends with error or cancelled was not accepted: span.recorded.
//   - A span that does not say what it is about is span.recorded.
//   - Arguments are kept as they are: a list of pairs of texts or an object.
//   - A tool's result stands as it is beside the text that KAOS has for it: the
//     free attributes take a member result. Without a summary the first 200
//     bytes of its text stand as result_summary, and are not read as one.
//
// A memory_event of kind summarized whose attributes count tokens_before or
// tokens_after is context.compacted; KAOS itself has no names for those counts.
//
// # Times and numbers
//
// Timestamps are seconds of a monotonic clock and say nothing of the wall
// clock: [EmitterOptions] takes an anchor. Without one times are in 1970, and the
// first event of every run says so. Timestamps and durations are read to the
// nanosecond; what is finer is the noise of floating point.
//
// A sequence may have gaps and repeat after a resume. Events are numbered anew
// ([dialect.Numbers]); a number that differs is kept.
//
// # What the vocabulary has no place for
//
// Unknown members of a line are kept in the event's extra member "kaos" under
// their name, and so are known ones without a field: sequence, run_state_ref,
// details, name, … Members inside are kept under a JSON pointer, such as
// /attributes/cached or /steps/0/cost. The name of a member that begins with a
// slash is written as a pointer too. Two entries are remarks and never written:
// "/timestamp":"monotonic", and "/type":1 where that many members follow the type
// of an unknown line which otherwise is in the order of writers.
//
// Text that is not UTF-8 is written with U+FFFD for what is damaged, and that is not
// listed. Neither the emitter nor a reader lets such text through.
//
// # Server-Sent Events
//
// The [Decoder] knows the lines of frames by their field. A frame is
//
//	event: text_delta
//	data: {…}
//	id: 0
//
// and a blank line. Only the data of a frame becomes an event: comments and retry
// are passed over, and so are event and id, which a strict decoder compares with
// the data. The encoder writes event and id from the data and nothing else, also
// for a line that is written as it was read, and lists no loss for that. A line
// with any other field is a bad line: in a log it is text that somebody else wrote
// into it. Lines may end with CRLF, CR or LF. An [agentevents.Reader] drops blank
// lines, so a frame ends where its document does: a data line with a whole document
// is an event at once, and one document may be split over several data lines. What
// is left of a document when an event line, another document or the end of the
// log follows is reported as torn ([io.ErrUnexpectedEOF]), and so is an event
// line at the end without data. One thing cannot be told without blank lines:
// where both a torn document and the next one are split and no event line
// stands between them, both are lost, with an error.
package kaos

import "github.com/agentevents/agentevents/dialect"

// Name is the dialect's name, and that of the extra member in which events
// carry what their line said beyond the vocabulary.
const Name = dialect.KAOS
