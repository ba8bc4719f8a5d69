// Package findings tells where a run of agents went round in circles, stood still or burned money:
// the same on a log and while the run goes on.
//
//	f := findings.New(findings.Options{})
//	for ev, err := range reader.All() {
//		…
//		f.Add(&ev)
//	}
//	for _, one := range f.Findings() {
//		fmt.Println(one.Text)
//	}
//
// A [Run] is the fold of one run, and a [Fold] has one for each run of a log. Both take events in
// their order, leave out those that come again, and need no clock: the same events give the same
// findings, wherever they come from. Package hooks gives them to a host while the run goes on,
// and package report lists them among the things that somebody has to look at.
//
// # Kinds
//
//   - [Repeat]: an agent makes the same call and gets the same result, again and again
//   - [PingPong]: calls in turn without a new result, or agents that hand over in turn
//   - [FailureStreak]: a tool, an agent, its calls or its model calls fail in a row, or it has
//     errors in a row without an answer of the model
//   - [Retry]: a call that failed is made again as it was, and fails again
//   - [Stall]: nothing happens, and nothing in the run explains the wait
//   - [Context]: the input of a model nears the limit, or compactions follow one another
//   - [Waste]: the tokens and dollars of the former are many
//   - [AskedTooLate]: a person was waited for very long, or answers after the end
//
// [Defaults] has the numbers of all kinds.
//
// # No findings
//
// Arguments count in canonical JSON. A result counts as it was recorded, so polling with progress is
// not a loop: the result changes. [Options.Polls] names tools that may get one result many times.
// Calls that are open at the same time, or that one answer of the model asks for, are one act: a
// fan-out is not a loop. Attempts whose pauses grow are back-off, and are allowed twice the
// number. A prompt or a message of a user begins anew. An open tool call or question explains
// a gap of any length; an open model call explains one up to [Options.ModelStall].
//
// # Memory
//
// A run takes some 4 KB for an agent whose arguments are short, and never more than 42 KB: of
// an agent the last 16 acts and 16 open calls are known, with 1 KB of their arguments at most;
// longer ones are compared as text. Of a run the 64 agents are known that acted last, and 64
// findings; more are counted ([Run.More]).
package findings
