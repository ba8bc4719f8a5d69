//go:build unix

package questions_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
	"github.com/agentevents/agentevents/runstore/pgstore/internal/pgtest"
)

var (
	server  *pgtest.Server
	missing error // why there is none
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, func(s *pgtest.Server, err error) { server, missing = s, err }))
}

// An answer has the rows of a question: numbers, texts and nil, by the name of the column.
type answer []map[string]any

// A log has the events of some runs. Engines get them more than once.
type log struct {
	name   string
	events []ae.Event
	times  int
}

// An engine answers the questions about each log.
type engine func(t *testing.T, logs []log, questions []block) [][]answer

var engines = map[string]engine{"PostgreSQL": postgresql, "ClickHouse": clickhouse, "DuckDB": duckdb}

// postgresql has package pgstore write the logs.
func postgresql(t *testing.T, logs []log, questions []block) (all [][]answer) {
	s := pgtest.Need(t, server, missing)
	for _, l := range logs {
		db, _ := s.Empty(t)
		require.NoError(t, pgstore.Create(t.Context(), db))
		for range l.times {
			require.NoError(t, runstore.Copy(t.Context(), pgstore.New(db, pgstore.Options{}), func(yield func(ae.Event, error) bool) {
				for _, ev := range l.events {
					if !yield(ev, nil) {
						return
					}
				}
			}))
		}
		for _, b := range blocks(t, "postgresql", "view") {
			_, err := db.Exec(b.sql)
			require.NoError(t, err, b.heading)
		}
		_, err := db.Exec("ANALYZE agentevents_events")
		require.NoError(t, err)
		var answers []answer
		for _, q := range questions {
			rows, err := db.Query(q.sql)
			require.NoError(t, err, "%s: %s", l.name, q.heading)
			names, err := rows.Columns()
			require.NoError(t, err)
			var a answer
			for rows.Next() {
				values, places := make([]any, len(names)), make([]any, len(names))
				for i := range values {
					places[i] = &values[i]
				}
				require.NoError(t, rows.Scan(places...))
				row := map[string]any{}
				for i, name := range names {
					row[name] = values[i]
				}
				a = append(a, row)
			}
			require.NoError(t, rows.Err())
			answers = append(answers, a)
		}
		all = append(all, answers)
	}
	return all
}

func clickhouse(t *testing.T, logs []log, questions []block) [][]answer {
	var sets [][]string
	write := writer(t)
	for _, l := range logs {
		set := []string{"DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d", "SET max_threads = 1", "SET date_time_input_format = 'best_effort'"}
		for _, b := range blocks(t, "clickhouse", "view") {
			set = append(set, b.sql)
		}
		file := write(l)
		for range l.times {
			set = append(set, "INSERT INTO agentevents_rows SELECT * FROM file('"+file+"', 'JSONEachRow', '"+
				strings.ReplaceAll(ddl("", "", (*columns.Column).ClickHouse), "'", "\\'")+"')")
		}
		sets = append(sets, set)
	}
	return node(t, "clickhouse", "AGENTEVENTS_CLICKHOUSE", sets, questions)
}

// duckdb reads rows from a table in place of Parquet files.
func duckdb(t *testing.T, logs []log, questions []block) [][]answer {
	var sets [][]string
	write := writer(t)
	for _, l := range logs {
		set := []string{"DROP SCHEMA IF EXISTS d CASCADE", "CREATE SCHEMA d", "USE d", "CREATE TABLE agentevents_rows (" + ddl("", "", (*columns.Column).DuckDB) + ")"}
		var types []string
		for _, c := range columns.Table() {
			types = append(types, "'"+c.Name+"': '"+strings.TrimSuffix(c.DuckDB(), " NOT NULL")+"'")
		}
		file := write(l)
		for range l.times {
			set = append(set, "INSERT INTO agentevents_rows SELECT * FROM read_json('"+file+"', format = 'newline_delimited', columns = {"+strings.Join(types, ", ")+"})")
		}
		for _, b := range blocks(t, "duckdb", "view") {
			sql := strings.ReplaceAll(b.sql, "read_parquet('columns/**/*.parquet')", "agentevents_rows")
			set = append(set, sql)
		}
		sets = append(sets, set)
	}
	return node(t, "duckdb", "AGENTEVENTS_DUCKDB", sets, questions)
}

// writer returns a function that writes the rows of a log as JSON, one a line, and returns the name of
// the file.
func writer(t *testing.T) func(l log) string {
	written, dir := map[*ae.Event]string{}, t.TempDir()
	return func(l log) string {
		of := &l.events[0]
		if written[of] == "" {
			written[of] = filepath.Join(dir, fmt.Sprint(len(written), ".jsonl"))
			write(t, written[of], l.events)
		}
		return written[of]
	}
}

func write(t *testing.T, name string, events []ae.Event) {
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	w := bufio.NewWriter(f)
	tracker, table := columns.NewTracker(), columns.Table()
	for i := range events {
		r, err := tracker.Add(&events[i], "")
		if err != nil {
			require.ErrorIs(t, err, columns.ErrLeftOut)
			continue
		}
		row := map[string]any{}
		for j := range table {
			v := table[j].Value(&r)
			if at, ok := v.(time.Time); ok {
				v = at.UTC().Format("2006-01-02T15:04:05.000000Z")
			}
			if v != nil {
				row[table[j].Name] = v
			}
		}
		require.NoError(t, json.NewEncoder(w).Encode(row))
	}
	require.NoError(t, w.Flush())
}

// node has an engine answer that runs in node, with the packages in the folder that the variable names.
func node(t *testing.T, name, variable string, sets [][]string, questions []block) (all [][]answer) {
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node: install Node.js 20 or newer")
	}
	place := os.Getenv(variable)
	if place == "" {
		t.Skipf("needs %s: the name of a copy of the folder %s in which you ran npm ci", name, folders[name])
	}
	var queries []string
	for _, q := range questions {
		queries = append(queries, q.sql)
	}
	in, err := json.Marshal(map[string]any{"engine": name, "sets": sets, "queries": queries})
	require.NoError(t, err)
	script, err := os.ReadFile("testdata/engine.js")
	require.NoError(t, err)
	c := exec.Command(program, "-e", string(script))
	c.Stdin, c.Env = bytes.NewReader(in), append(os.Environ(), "NODE_PATH="+filepath.Join(place, "node_modules"))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, stderr.String())
	require.NoError(t, json.Unmarshal(out, &all))
	require.Len(t, all, len(sets))
	return all
}

// folders has the packages of the engines, from the folder of the repository.
var folders = map[string]string{"clickhouse": "runstore/pgstore/internal/questions/testdata/clickhouse", "duckdb": "bench/testdata/duckdb"}

// number is a value of an answer: NaN without one.
func number(t *testing.T, row map[string]any, name string) (v float64, ok bool) {
	t.Helper()
	value, known := row[name]
	require.True(t, known, "no column %s", name)
	switch v := value.(type) {
	case nil:
		return 0, false
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		require.Fail(t, "a bool", name)
	case string:
		f, err := strconv.ParseFloat(v, 64)
		require.NoError(t, err)
		return f, true
	}
	require.Fail(t, fmt.Sprintf("%s has the type %T", name, value))
	return 0, false
}
