// Package columns makes rows of events: one for each event, with the same columns in every engine.
//
//	tracker := columns.NewTracker()
//	for line, err := range agentevents.NewReader(file, agentevents.ReaderOptions{}).Lines() {
//		…
//		row, err := tracker.Add(line.Event, line.Text)
//		…
//	}
//
// [Table] lists the columns. Their definitions for PostgreSQL, ClickHouse and DuckDB, the schema of
// Parquet files and the pages about them are made of it.
//
// # Rows without joins
//
// The end of a call, a model call, an approval, a turn, a step, a phase, an agent and a run has the
// duration, and how it went. The end of a call has its tool also where only the start names it.
// Events that name their agent by a span alone have its id and name, as a fold resolves them.
//
// # Figures that add up
//
// Tokens and cost are changes: the sums over the rows of a run are those of its snapshot
// ([agentevents.RunUsage]), although logs state figures more than once. So the row of an event that
// repeats known figures has 0, and one that corrects them may be negative. Most often all of a change
// counts for the agent and the model of the row. Where it does not, because a total includes
// sub-agents or names several models, the column usage_split has the changes by agent and by model.
//
// # Identity
//
// The identity of a row is its run and sequence. An event that comes again makes no row, and a log
// that is read again makes the same rows.
package columns
