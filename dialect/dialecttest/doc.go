// Package dialecttest is the suite that every dialect passes: what the contract
// of package dialect promises, tested on the lines of the dialect's own document
// and on every kind of the vocabulary. It is for tests only.
//
//	func TestDialect(t *testing.T) {
//		dialecttest.Run(t, dialecttest.Dialect{
//			Name:    kahn.Name,
//			Decoder: func() agentevents.Decoder { return kahn.NewDecoder(kahn.Options{}) },
//			Encoder: func() dialect.Encoder { return kahn.NewEncoder() },
//			Golden: []dialecttest.Golden{
//				{Name: "start", Lines: `{"ts":…}`, Events: []agentevents.Event{{…}}, Build: true},
//			},
//		})
//	}
//
// One check alone: go test -run 'TestDialect/kinds/agent.started'.
//
// # The checks
//
//	golden           lines decode to the events stated, and come back byte for byte
//	kinds            every kind, as events with few, all and single members: what comes
//	                 back differs by the listed losses and by nothing else, and every
//	                 listed loss is a difference
//	unknown members  are kept, also through the native format, in any spelling
//	unknown types    are kept likewise
//	bad lines        torn, damaged and wrong ones are errors or events, and never a panic
//	fold             a run folds to the same agents, calls, audits, messages and usage
//	runs             two runs in one log keep apart; not for a document that does not
//	                 name the run, whose logs are of one
//	instances        decoders and encoders share nothing; run the tests with -race
//	verbatim lists nothing
//	                 a line that was read with Verbatim and is written as it was has no
//	                 losses
//
// # Losses
//
// Events are compared as native lines, by JSON pointer. A difference is covered
// by a loss of the event's kind, or of no kind, whose Pointer is the place or one
// above it; a token * of the Pointer stands for any member or element. Marks are
// a set: the place of one is /marks/late.
//
//	Dropped  covers what is missing, or is a member that every native line has
//	         and that the decoder had to make up (/id, /payload/callId)
//	Made     covers what is new
//	Altered  covers what is another value; something must still be there, or
//	         come back elsewhere and be listed as made
//
// With Pointer "" they stand for the whole event: it has no line, an event came
// back that nobody wrote, it came back as something else. What became of a
// call that was written on the line of its return is looked for in the return
// (oneEvent): the facts that are not there are losses of the call. That oneEvent
// itself is new need not be listed. A call that never returns is Dropped; that it
// is written with its return is listed when it is.
//
// Three things cannot be seen and are believed: a dropped schemaVersion, because
// decoders write the constant; a member that was made up with a value that
// reads as none, such as the empty string; and a dropped member of a joined
// call, because the return may say the same.
package dialecttest
