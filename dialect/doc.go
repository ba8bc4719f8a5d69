// Package dialect holds the parts that the packages below it share. Each of these packages reads
// and writes the wire format of one document, and maps it to the events of package agentevents.
//
//	kahn         the events of KAHN, flat JSON Lines: ts, run_id, event
//	multiagent   the AgentEvent envelope of the multi-agent wiki
//	kaos         spans and value events of KAOS, also as Server-Sent Events
//	openharness  the Agent Observability & Resume Specification
//	openwop      OpenWOP RFC 0002 and the published schemas
//	agui         AG-UI 1.0, the Agent-User Interaction protocol, also as Server-Sent Events
//
// A decoder is an [agentevents.Decoder]: give it to an [agentevents.Reader]. An [Encoder] writes
// events as lines. Both are stateful, because a document may write a call and its return, or a turn
// and its usage, as one line.
//
// # Events that a document cannot represent
//
// A document has no place for some facts of the vocabulary, and requires members that an event does
// not have. Encoders report both: they list what they dropped, altered and made up
// ([Encoder.Losses]). They refuse kinds that the document does not have with [ErrNoCounterpart].
//
// # Lines that the vocabulary cannot represent
//
// A JSON member that no field has is an extra member. The decoder keeps the extra members of a line
// together, as one object in an extra member of the event that has the dialect's name
// ([agentevents.Event.Extra]). The encoder of the same dialect writes them after its own members.
// The native format carries them, and the encoders of other dialects list them as dropped. A line
// of an unknown type becomes [agentevents.Unknown] and is written back as it was.
//
// Null in an optional member is kept as an extra member too, unless the field is raw JSON. A strict
// decoder refuses such a null.
//
// Spelling is a property of the line, not of the event: the order of members, blanks, the digits of
// 1.50. Encoders write a line back byte for byte if the reader kept it: see Verbatim of
// [agentevents.ReaderOptions].
//
// # Ids, numbers and times that a document does not have
//
// Where a document has no event ids or no usable sequence numbers, the decoder derives them from
// the line and its position ([DerivedID], [Numbers]). Reading a log twice gives the same events.
//
// # Lines that a document does not allow
//
// A strict decoder refuses a line that breaks a rule of its document, and returns no events for it.
// A checker of logs also reads the line with a lenient decoder and folds its events. Otherwise the
// following lines would break rules too.
//
// # Dialects of other modules
//
// A dialect may live in any module. It needs a decoder, an encoder, and a [Name] of its own for the
// extra members of its events. This package has the parts that all dialects use: [Unknowns],
// [Measure], [Losses], [Calls], [Numbers], [DerivedID]. Package dialecttest tests such a dialect
// like the ones here. [Auto] reads it beside the others when its Decoders have the name and its
// Detect recognises the lines. [Detect] and the command recognise only the dialects of this module.
package dialect
