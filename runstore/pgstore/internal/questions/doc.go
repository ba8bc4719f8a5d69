// Package questions runs the questions of docs/questions.md in PostgreSQL, in ClickHouse's engine and in
// DuckDB, and compares the answers with the figures that package stats has.
package questions
