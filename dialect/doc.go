// Package dialect is what the packages below it have in common: each reads and
// writes the wire format of one source document, and all of them speak the
// vocabulary of package agentevents in between.
//
//	kahn         seed 000, flat JSON Lines: ts, run_id, event
//	multiagent   seed 001, the AgentEvent envelope of the multi-agent wiki
//	kaos         seed 002, spans and value events, also as Server-Sent Events
//	openharness  seed 003, the Agent Observability & Resume Specification
//	openwop      seed 004, OpenWOP RFC 0002 and the published schemas
//
// A decoder is an [agentevents.Decoder], to be given to an
// [agentevents.Reader]; an [Encoder] goes the other way. Both are stateful: a
// call and its return may be one line, and one line a turn with its usage.
//
// # What a document cannot say
//
// A document has no place for some of the vocabulary, and asks for members
// that an event does not have. Neither passes silently: encoders list what
// they dropped, altered and made up ([Encoder.Losses]), and refuse kinds that
// the document does not have with [ErrNoCounterpart].
//
// # What the vocabulary cannot say
//
// Members of a line that the dialect does not know are kept with the event, as
// one extra member with the dialect's name ([agentevents.Event.Extra]), whose
// value is an object of them. The encoder of the same dialect writes them
// after its own, the native format carries them in between, and the encoders
// of other dialects list them as dropped. Lines of unknown types become
// [agentevents.Unknown] and are written back as they were.
//
// A line that says more in its spelling (the order of members, blanks, 1.50)
// is written back byte for byte when the reader is told to keep it: see
// [agentevents.ReaderOptions], Verbatim.
//
// # Ids, numbers and times that a document does not have
//
// Where a document has no event ids or no usable sequence numbers, the decoder
// makes them up from the line and its position ([DerivedID], [Numbers]), so
// that reading twice gives the same events.
//
// # Dialects of others
//
// A dialect may live in any module: a decoder and an encoder, a [Name] of its
// own for the extra members of its events, and what this package has for all
// of them ([Unknowns], [Losses], [Calls], [Numbers], [DerivedID]). Package
// dialecttest tests it like the ones here. [Auto] reads it beside them when its
// Decoders have the name and its Detect tells the lines: [Detect] and the
// command know those of this module only.
package dialect
