// Package dialecttest is the test suite for dialects. It checks the promises of package dialect on
// the lines of the dialect's own document, and on every kind of the vocabulary. It is for tests
// only.
//
//	func TestDialect(t *testing.T) {
//		dialecttest.Run(t, dialecttest.Dialect{
//			Name:    kahn.Name,
//			Decoder: func() agentevents.Decoder { return kahn.NewDecoder(kahn.Options{}) },
//			Encoder: func() dialect.Encoder { return kahn.NewEncoder(kahn.EncoderOptions{}) },
//			Golden: []dialecttest.Golden{
//				{Name: "start", Lines: `{"ts":…}`, Events: []agentevents.Event{{…}}, Build: true},
//			},
//		})
//	}
//
// To run a single check: go test -run 'TestDialect/kinds/agent.started'.
//
// # The checks
//
//	golden           lines decode to the expected events, and come back byte for byte
//	kinds            every kind, in events with few, all and single members: what comes
//	                 back differs by the listed losses and by nothing else, and every
//	                 listed loss is a difference
//	extra members    come back in any spelling, also through the native format
//	unknown types    come back likewise
//	bad lines        torn, damaged and wrong lines are errors or events, never a panic
//	fold             a run folds to the same agents, calls, audits, messages and usage; events
//	                 that are refused change nothing
//	runs             two runs in one log stay apart; skipped for a document that does not
//	                 name the run, because its logs have one run
//	properties       of golden lines in odd spellings and with odd values: see [CheckLog], which
//	                 checks any text, such as the input of a fuzz test
//	instances        decoders and encoders share nothing; run the tests with -race
//	verbatim lists nothing
//	                 a line that is read with Verbatim and written as it was has no
//	                 losses
//
// With -short the suite leaves out most cases of two checks. It sends only the events "filled" and
// "minimal" of a kind, with and without extra members. It damages about 20 places of a line instead
// of 400, and replaces values by null, true and false instead of by 15 wrong values. All other
// checks are complete.
//
// # Losses
//
// The suite compares events as native lines, by JSON pointer. A loss covers a difference if it is
// counted for the event's kind, or over all kinds, and its Pointer is the place or a place above
// it. A token * of the Pointer matches any member or element. Marks are a set: the mark late has
// the place /marks/late.
//
//	Dropped  covers a missing value, and another value of a member that the decoder
//	         derives because every native line has it (/id, /payload/callId)
//	Made     covers a new value
//	Altered  covers another value; there must still be one at the place, or one that
//	         comes back elsewhere and is listed as made
//
// A loss with Pointer "" stands for the whole event: the event has no line, or it came back without
// being written, or it came back as something else. When the line of a return (oneEvent) also has
// the call, the suite looks for the call in the return: facts that are missing there are losses of
// the call. The new oneEvent itself need not be listed. A call that never returns is listed as
// dropped. A call that is written with its return is listed when it is written.
//
// The suite cannot detect three losses and accepts them. One is a dropped schemaVersion, because
// decoders always set the same version. The second is a made-up member with a value that reads as absent,
// such as the empty string. The third is a dropped member of a call that is written with its
// return, because the return may have the same member.
package dialecttest
