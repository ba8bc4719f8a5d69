// Package questions runs the questions of docs/questions.md in PostgreSQL, in ClickHouse's engine and in
// DuckDB, and compares the answers with those of package stats.
package questions
