package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// needed are the columns of the tables that are read. All others are printed if they are there.
var needed = map[string][]string{
	"session": {"id"},
	"message": {"id", "session_id", "data"},
	"part":    {"id", "message_id", "session_id", "data"},
	"event":   {"aggregate_id", "seq", "type", "data"},
}

// A store is the database, and the sessions in it.
type store struct {
	db       *sql.DB
	name     string
	tables   map[string]bool
	sessions map[string]session
	order    []string            // ids by time
	kids     map[string][]string // sub-agents by their parents
	whole    map[string]bool     // sessions with a whole journal
}

// A session is a row that is printed later.
type session struct {
	parent, title    string
	created, changed int64
	text             []byte
}

func openStore(ctx context.Context, db *sql.DB, name string) (*store, error) {
	s := &store{db: db, name: name, tables: map[string]bool{}, sessions: map[string]session{}, kids: map[string][]string{}, whole: map[string]bool{}}
	for table, columns := range needed {
		found, err := s.columns(ctx, table)
		if err != nil {
			return nil, s.unreadable(err)
		}
		if s.tables[table] = len(found) > 0; !s.tables[table] {
			continue
		}
		for _, column := range columns {
			if !slices.Contains(found, column) {
				return nil, fmt.Errorf("%s: table %s has no column %s: the version of opencode that wrote it is not known; use opencode export", name, table, column)
			}
		}
	}
	if !s.tables["session"] {
		return nil, fmt.Errorf("%s has no table session: opencode keeps its rows in the file %s-wal until a checkpoint, which must be beside it; or another database is meant (--db)", name, name)
	}
	if !s.tables["event"] && (!s.tables["message"] || !s.tables["part"]) {
		return nil, fmt.Errorf("%s has no tables message and part: the version of opencode that wrote it is not known; use opencode export", name)
	}
	return s, s.unreadable(s.read(ctx))
}

// unreadable adds the next step to an error of the database.
func (s *store) unreadable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s cannot be read: %w; if opencode reads it, end opencode and try again, or use opencode export", s.name, err)
}

// columns returns the columns of a table, none if it is not there.
func (s *store) columns(ctx context.Context, table string) (out []string, err error) {
	err = s.rows(ctx, `SELECT name FROM pragma_table_info(?)`, []any{table}, func(_ []string, values []any) error {
		out = append(out, fmt.Sprint(values[0]))
		return nil
	})
	return out, err
}

// read reads the sessions.
func (s *store) read(ctx context.Context) error {
	err := s.rows(ctx, `SELECT * FROM session`, nil, func(columns []string, values []any) error {
		var row session
		var id string
		for i, column := range columns {
			text, _ := values[i].(string)
			number, _ := values[i].(int64)
			switch column {
			case "id":
				id = text
			case "parent_id":
				row.parent = text
			case "title":
				row.title = text
			case "time_created":
				row.created = number
			case "time_updated":
				row.changed = number
			}
		}
		var err error
		row.text, err = line(columns, values)
		s.sessions[id] = row
		s.order = append(s.order, id)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(s.order, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.sessions[a].created, s.sessions[b].created), cmp.Compare(a, b))
	})
	for _, id := range s.order {
		if parent := s.sessions[id].parent; parent != "" && parent != id {
			s.kids[parent] = append(s.kids[parent], id)
		}
	}
	if !s.tables["event"] {
		return nil
	}
	return s.rows(ctx, `SELECT aggregate_id FROM event WHERE seq = 0`, nil, func(_ []string, values []any) error {
		s.whole[fmt.Sprint(values[0])] = true
		return nil
	})
}

// isRoot reports whether a session works for itself, or its parent is not here.
func (s *store) isRoot(id string) bool {
	_, ok := s.sessions[s.sessions[id].parent]
	return !ok
}

// choose returns the sessions of ids, or of the beginnings of ids; without any, all.
func (s *store) choose(ids []string) (out []string, err error) {
	if len(ids) == 0 {
		for _, id := range s.order {
			if s.isRoot(id) {
				out = append(out, id)
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("%s has no session", s.name)
		}
		return out, nil
	}
	for _, want := range ids {
		var found []string
		for _, id := range s.order {
			if id == want {
				found = []string{id}
				break
			}
			if strings.HasPrefix(id, want) {
				found = append(found, id)
			}
		}
		switch len(found) {
		case 0:
			return nil, fmt.Errorf("%s has no session %s; --list prints them", s.name, want)
		case 1:
			out = append(out, found[0])
		default:
			return nil, fmt.Errorf("%s begins the ids of %d sessions: %s", want, len(found), strings.Join(found, ", "))
		}
	}
	return out, nil
}

// print writes the rows of a session and its sub-agents: of each its row, and its journal, or its
// messages and their parts where the journal does not begin with the session.
func (s *store) print(ctx context.Context, id string, out io.Writer) error {
	seen := map[string]bool{}
	todo := []string{id}
	for len(todo) > 0 {
		id, todo = todo[0], todo[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		todo = append(todo, s.kids[id]...)
		if _, err := out.Write(s.sessions[id].text); err != nil {
			return err
		}
		queries := []string{`SELECT * FROM event WHERE aggregate_id = ? ORDER BY seq`}
		if !s.whole[id] && s.tables["message"] && s.tables["part"] {
			queries = []string{`SELECT * FROM message WHERE session_id = ? ORDER BY id`, `SELECT * FROM part WHERE session_id = ? ORDER BY id`}
		}
		for _, query := range queries {
			err := s.rows(ctx, query, []any{id}, func(columns []string, values []any) error {
				text, err := line(columns, values)
				if err == nil {
					_, err = out.Write(text)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rows calls f with each row of a query.
func (s *store) rows(ctx context.Context, query string, args []any, f func(columns []string, values []any) error) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		if err := f(columns, values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// line returns a row as an object on a line, in the order of its columns. Columns without a value
// are left out.
func line(columns []string, values []any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, column := range columns {
		value := values[i]
		if value == nil {
			continue
		}
		if blob, ok := value.([]byte); ok {
			value = string(blob)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if err := e.Encode(column); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // the newline of the encoder
		b.WriteByte(':')
		if err := e.Encode(value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}
