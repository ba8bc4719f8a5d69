// Package view makes a page of one or two logs for a browser: who worked, when, on which task, how it
// ended, and each event with its line.
//
//	err := view.Write(file, view.Options{Title: "nightly run"}, view.Log{Name: "run.jsonl", Events: reader.All()})
//
// The page is one file. It needs no network: its Content-Security-Policy forbids every request, and
// all scripts and styles are in it. The events are redacted by the default policy before they are
// written, unless [Options.Unredacted] is set, and the page tells which of the two it is.
//
// All figures come from the fold of package agentevents, the findings, package report and the
// comparison of 'agentevents diff'. The page computes none of its own: the state after an event is
// the fold's state, which the page has as differences from event to event.
//
// Of two logs the page shows the runs of both, and their differences.
package view
