// Package parquetlog writes logs and stores as Parquet files, for questions over months of runs.
//
//	w, err := parquetlog.Open("columns")
//	…
//	err = w.Log(reader) // tells which lines have no row
//	report, err := w.Close()
//
// A file has the columns of [columns.Table], one row for each event. Files are in folders by day in
// UTC, as engines read partitions:
//
//	columns/day=2026-05-05/part-000001.parquet
//	columns/day=2026-05-05/part-000002.parquet
//	columns/day=__HIVE_DEFAULT_PARTITION__/part-000001.parquet   events without a time
//
// DuckDB reads them all with read_parquet('columns/*/*.parquet', hive_partitioning=true).
//
// # Later writings
//
// A writer adds files and changes none. It reads which runs and sequences the folder has, and writes
// the rows of other events alone, so the same logs may be given again after they have grown. A run that
// goes on has to be given from its beginning: rows have the durations of calls and the changes of
// figures, which earlier events decide.
//
// # Memory
//
// A writer keeps a row group of at most four days, the open runs as [columns.Tracker] does, and some
// 100 bytes for each run of the folder. Rows of agents that are known by a span alone wait for the id,
// up to 100,000 rows or 32 MiB.
//
// # Crashes
//
// Files get their names when they are complete. A writer that is killed before has written nothing;
// one that is killed while it renames its files leaves a list by which the next [Open] goes on.
package parquetlog
