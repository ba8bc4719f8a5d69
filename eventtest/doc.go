// Package eventtest helps programs test the events that their agents record.
//
//	func TestAgent(t *testing.T) {
//		em, rec := eventtest.Record(t)
//		runAgent(em)
//		rec.Want(t,
//			"main agent.started",
//			"main agent.toolCalled read c1",
//			"main agent.toolReturned c1 ok",
//			"main agent.ended converged",
//		)
//		rec.WantLaws(t, eventtest.LawOptions{})
//		rec.Golden(t, "testdata/agent.jsonl")
//	}
//
// The same events give the same log: ids are id1, id2, …, and the time goes on by one second with
// each recorded event. Every test, also a parallel one, has a recorder of its own. Events that
// goroutines record at the same time come in any order: there, want the lines of each agent or call
// by themselves, or compare the acts of each agent with a golden log (GoldenOptions.Acts).
//
// # Lines
//
// [Describe] writes an event as a line of words: the agent, if the event has one, the kind, the
// main facts of the payload, and the marks in brackets.
//
//	main agent.started "Add /v2/health"
//	main agent.toolReturned read c1 error timeout
//	main agent.ended converged [late]
//	run.completed
//
// A wanted line matches an event if each of its words is one of the event's words, in
// this order. Words that are not written may be anything: "agent.toolReturned c1 error"
// matches the second event above. A word is written in one of these ways:
//
//   - plainly: c1
//   - in quotes as in Go, if it has spaces, quotes or an equals sign: "Add /v2/health"
//   - by its beginning: Add…
//   - as name=value, for any member of the event's line, shown or not: step=1,
//     callId=c1, error.code=timeout, result={"n":1} (JSON without spaces). The payload is
//     asked first, then the envelope. Such words may stand anywhere. Without a value
//     (error=) the member must be absent or empty.
//
// A member that no event of the line's kind has fails the test: it would always be absent.
// [Recorder.WantNone] fails as well for a line without a kind but with a word that was not
// recorded and begins as a kind does, or differs in one letter from one. In quotes the word
// is taken as it is: "run.tests".
//
// Under [agentevents.LifecycleDerived] the emitter writes transitions of its own.
// [Recorder.Filter] leaves them out:
//
//	rec.Filter(eventtest.NotSynthetic).WantExactly(t, …)
//
// Failures show the lines of the recorded events, in a form that can be wanted.
//
// # Conditions beyond a line
//
// [Match] describes a wanted event by a function that checks its payload; pass it in place of a
// line. [Payloads] returns all recorded payloads of one type, for other checks.
// [Recorder.WantLaws] checks that each run breaks no rule, leaves nothing open, and gives the same
// state however its log is folded. [ReadLog] makes a recorder from a log that another program has
// written.
//
// # Other test packages
//
// The package needs a [testing.TB] and nothing else: it takes T() of a suite as well. In a
// bubble of testing/synctest the emitter is made and closed inside; give it the Clock
// time.Now for times of the bubble.
//
// # Sinks
//
// [SinkTest] tests a sink that you write: its duties towards an emitter and other sinks.
package eventtest
