// Package stats computes the figures of many runs from their logs alone: the eight metrics of the
// Multi-Agent Wiki, and the other figures that people ask for.
//
// Every metric is a quotient, with its numerator and denominator. If the denominator is 0 the
// metric has no value.
//
//   - Task success rate: tasks that succeeded / tasks that are decided. The taskId of an envelope
//     names a task of the session; a run without one is a task itself. A run that failed or was
//     cancelled fails. The result of a completed run follows from the word in its
//     session.completed, as package endword knows it: a partial success counts as failed, and an
//     unknown word leaves the run undecided. Without a word, a run with a run.completed succeeds,
//     unless it has agents without a parent and none of them succeeded. A run without a
//     run.completed has the result of the agent without a parent that ended last. An agent succeeds
//     if it ended without an error, and converged or states no outcome. In a run of several tasks
//     the agent of a task that ended last decides it. Tried in several runs, a task succeeds if it
//     does so in one; else the last one decides. A task that may go on is not decided.
//   - Handoff loop rate: sessions in which an agent hands over to the same agent once more /
//     sessions. A run without a session counts as a session. A request is a handoff, accepted or
//     not. Without any handoff there is no value.
//   - Verifier rejection rate: claims with the verdict "rejected", or another word for it, and
//     failed audits / claims with a verdict and audits.
//   - Average agent depth: parents above the agents / agents. An agent without a parent has depth
//     0.
//   - Tool failure rate: calls that failed / calls that succeeded or failed. Calls that were
//     refused, cancelled or interrupted count in neither.
//   - Cost per successful task: the known cost of all runs in US dollars / tasks that succeeded.
//   - Human approval latency: time from the requests of approvals to their answers / requests that
//     a person answered. A request that expires, or is made again, does not count.
//   - Context compression ratio: tokens of contexts before they were compacted / tokens after, of
//     the compactions that state both.
package stats
