// Package report lists the things that a person must be told of a run: the request and the
// answer, messages between agents, questions that wait, failures with their reasons,
// decisions, findings, and commands of people.
//
//	var details report.Details
//	for ev, err := range reader.All() {
//		…
//		details.Add(&ev)
//		fold.Apply(ev)
//	}
//	for _, item := range report.Attention(report.Of(fold.Snapshot(), &details)) {
//		fmt.Println(item.Sentence())
//	}
//
// A [github.com/agentevents/agentevents.RunSnapshot] has most of it. [Details] add the texts
// that a snapshot leaves out. The command's views (tree, show, ls, replay) and package tree
// take their lines from here, so that they agree.
//
// The texts come from the log: a program that prints them to a terminal escapes control
// characters. The wording may change between versions.
package report
