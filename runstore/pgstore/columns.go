package pgstore

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/runstore"
)

// The columns of an event are made by a [columns.Tracker], which has to see the events of the run
// from the first one on. A store keeps the trackers of the runs that it writes. It makes others of
// the events in the database. Before the sequence agentevents_runs.filled all events have their columns.

// A field is a column of the table of events.
type field struct {
	columns.Column
	name  string
	whole bool // a text that is not searched by, and not cut
}

// fields has the columns of the table but for the run.
var fields = func() (all []field) {
	for _, c := range columns.Table() {
		f := field{c, c.Name, slices.Contains([]string{"event_id", "result", "error", "usage_split", "line"}, c.Name)}
		if c.Name == "kind" {
			f.name = "type" // as in the tables of earlier versions
		}
		if c.Name != "run_id" {
			all = append(all, f)
		}
	}
	return all
}()

// perField joins the texts that a function makes of each column.
func perField(text func(*field) string) string {
	list := make([]string, len(fields))
	for i := range fields {
		list[i] = text(&fields[i])
	}
	return strings.Join(list, ", ")
}

// A row is an event as the statements read it.
type row struct {
	columns.Row
	made bool // by a tracker; else it has the columns of the envelope alone
}

// plainRow is the row of an event with the columns of the envelope alone.
func plainRow(e *runstore.Entry) columns.Row {
	ev := &e.Event
	return columns.Row{
		RunID: ev.RunID, Sequence: int64(ev.Sequence), EventID: ev.ID, Kind: string(ev.Kind()), Time: ev.Time,
		SessionID: ev.SessionID, TaskID: ev.TaskID, WorkflowID: ev.WorkflowID, Phase: ev.Phase, NodeID: ev.NodeID,
		AgentID: ev.AgentID, ParentAgentID: ev.ParentAgentID, TraceID: ev.TraceID, SpanID: ev.SpanID, Line: e.Line,
	}
}

// newRow makes the row of the next event of the tracker's run. An event that the tracker leaves out
// is kept, and the view agentevents_columns lacks it.
func newRow(t *columns.Tracker, e *runstore.Entry) (row, error) {
	made, err := t.Add(&e.Event, e.Line)
	if errors.Is(err, columns.ErrLeftOut) {
		return row{plainRow(e), false}, nil
	}
	return row{made, true}, err
}

// appendJSON appends the row as json_to_recordset reads it: without the members that are NULL.
func (r *row) appendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	for i := range fields {
		f := &fields[i]
		v := f.Value(&r.Row)
		switch of := v.(type) {
		case string:
			if f.name != "line" {
				of = key(of)
			}
			if !f.whole {
				of = cut(of)
			}
			v = of
		case time.Time:
			if at := moment(of); at != nil {
				v = *at
			} else {
				v = nil
			}
		}
		if v == nil || !r.made && f.name == "begins" {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), f.name...), '"', ':')
		dst = append(dst, text...)
	}
	return append(dst, '}'), nil
}

// A renaming gives the earlier rows of an agent its id, and its name: they have a span in their place.
type renaming struct {
	Was  string `json:"was"`
	Now  string `json:"now"`
	Name string `json:"name"`
}

// parameters returns rows, and the ids that the rows before them get, as a statement reads them. These
// rows themselves get theirs here.
func parameters(rows []row) (text, renamed string, err error) {
	var all []renaming
	for i := range rows {
		r := &rows[i]
		if r.AgentWas == "" {
			continue
		}
		for j := range rows[:i] {
			before := &rows[j].Row
			for _, c := range [...]struct {
				of  *string
				now string
			}{{&before.AgentID, r.AgentID}, {&before.ParentAgentID, r.AgentID}, {&before.AgentName, r.AgentName}} {
				if *c.of == r.AgentWas {
					*c.of = c.now
				}
			}
		}
		all = append(all, renaming{cut(key(r.AgentWas)), cut(key(r.AgentID)), cut(key(r.AgentName))})
	}
	list := []byte{'['}
	for i := range rows {
		if i > 0 {
			list = append(list, ',')
		}
		if list, err = rows[i].appendJSON(list); err != nil {
			return "", "", err
		}
	}
	names, err := json.Marshal(all)
	if err != nil || len(all) == 0 {
		names = []byte("[]")
	}
	return string(append(list, ']')), string(names), err
}

// The parts of statements that write rows. $1 is the run, $2 the sequence of the first row. The texts
// from parameters have other numbers.
var (
	recordset = func(parameter string) string {
		return "json_to_recordset(" + parameter + "::json) AS e(" +
			perField(func(f *field) string { return f.name + " " + f.sqlType() }) + ")"
	}
	renames = func(parameter string) string {
		return `renamed AS (UPDATE agentevents_events t
			SET agent_id = CASE WHEN t.agent_id = n.was THEN n.now ELSE t.agent_id END, parent_agent_id = CASE WHEN t.parent_agent_id = n.was THEN n.now ELSE t.parent_agent_id END,
				agent_name = CASE WHEN t.agent_name = n.was THEN n.name ELSE t.agent_name END
			FROM head, json_to_recordset(` + parameter + `::json) AS n(was text, now text, name text)
			WHERE t.run_id = head.run_id AND t.sequence < $2::bigint AND n.was IN (t.agent_id, t.parent_agent_id))`
	}
	// fills sets the columns of rows from the sequence on before which all have theirs, and returns
	// 0 if that is another one.
	fills = `WITH head AS (UPDATE agentevents_runs SET filled = $3::bigint WHERE run_id = $1 AND filled = $2::bigint RETURNING run_id),
	` + renames("$5") + `,
	written AS (UPDATE agentevents_events t SET (` + perField(func(f *field) string { return f.name }) + `) = (` + perField(func(f *field) string { return "e." + f.name }) + `)
		FROM head, ` + recordset("$4") + ` WHERE t.run_id = head.run_id AND t.sequence = e.sequence)
	SELECT count(*) FROM head`
)

// sqlType is the type of the column. None is NOT NULL: events that have no row lack it.
func (f *field) sqlType() string { return strings.TrimSuffix(f.PostgreSQL(), " NOT NULL") }

// Fill sets the columns of the events that lack them, as an earlier version of this package wrote them. A
// call that ends in the middle of a run is continued by the next one, and by an append to the run.
// Several processes may fill the same database, while others write. It takes the memory of one run.
func (s *Store) Fill(ctx context.Context) error {
	for after := ""; ; {
		if s.isClosed() {
			return s.failed(nil, "filling columns", "")
		}
		runs, err := column1[string](ctx, s.db,
			`SELECT run_id FROM agentevents_runs WHERE filled < next AND run_id > $1 ORDER BY run_id LIMIT 256`, after)
		if err != nil {
			return s.failed(err, "filling columns", "")
		}
		if len(runs) == 0 {
			return nil
		}
		for _, k := range runs {
			id := unkey(k)
			next, err := s.next(ctx, id)
			if err == nil {
				_, err = s.replay(ctx, id, next)
			}
			if err != nil {
				return s.failed(err, "filling columns of", id)
			}
			after = k
		}
	}
}

// replay returns the tracker of a run at a sequence, made of the events in the database. It sets the
// columns of events that lack them. A line that is damaged gets none.
func (s *Store) replay(ctx context.Context, runID string, end uint64) (*columns.Tracker, error) {
	filled, err := s.filled(ctx, runID)
	if err != nil {
		return nil, err
	}
	t, from := columns.NewTracker(), uint64(0)
	if filled >= end {
		from = s.resume(ctx, t, runID, end)
	}
	var rows []row
	size := 0
	for l, err := range s.lines(ctx, runID, from, end) {
		if err != nil {
			return nil, err
		}
		e, err := l.entry(runID)
		if err != nil {
			continue
		}
		r, err := newRow(t, &e)
		if err != nil {
			return nil, err
		}
		if e.Event.Sequence < filled {
			continue
		}
		rows, size = append(rows, r), size+len(l.text)
		if len(rows) >= loadAtOnce || size >= loadBytes {
			if filled, err = s.fill(ctx, runID, filled, e.Event.Sequence+1, rows); err != nil {
				return nil, err
			}
			rows, size = rows[:0], 0
		}
	}
	if filled < end {
		_, err = s.fill(ctx, runID, filled, end, rows)
	}
	return t, err
}

// resume gives a tracker the state in the run's snapshot, and returns the sequence of the next event
// that it needs: 0 without a snapshot up to the end.
func (s *Store) resume(ctx context.Context, t *columns.Tracker, runID string, end uint64) uint64 {
	snapshot, err := s.LoadSnapshot(ctx, runID)
	if err != nil || snapshot.NextSequence > end || t.Resume(snapshot) != nil {
		return 0
	}
	return snapshot.NextSequence
}

// filled returns the sequence before which all events of a run have their columns.
func (s *Store) filled(ctx context.Context, runID string) (uint64, error) {
	list, err := column1[uint64](ctx, s.db, `SELECT filled FROM agentevents_runs WHERE run_id = $1`, key(runID))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0], nil
}

// fill sets the columns of the rows from one sequence to another, and returns the sequence before
// which all rows have theirs then: further ones, if another process has filled them meanwhile.
func (s *Store) fill(ctx context.Context, runID string, from, to uint64, rows []row) (uint64, error) {
	for from < to {
		rows = slices.DeleteFunc(rows, func(r row) bool { return uint64(r.Sequence) < from })
		text, renamed, err := parameters(rows)
		if err != nil {
			return 0, err
		}
		var done int
		row := s.db.QueryRowContext(ctx, fills, key(runID), int64(from), int64(to), text, renamed)
		if err := row.Scan(&done); err != nil {
			return 0, err
		}
		if done > 0 {
			return to, nil
		}
		now, err := s.filled(ctx, runID)
		if err != nil || now <= from {
			return 0, errors.Join(err, errGone)
		}
		from = now
	}
	return from, nil
}

// errGone means that a run was deleted while its columns were filled.
var errGone = fmt.Errorf("%w any more", runstore.ErrNoRun)

// lines yields the lines of a run from a sequence on, up to another one.
func (s *Store) lines(ctx context.Context, runID string, from, end uint64) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		for from < end {
			page, err := s.page(ctx, runID, from, end)
			if err != nil {
				yield(line{}, err)
				return
			}
			if len(page) == 0 {
				return // those that are left were deleted
			}
			for _, l := range page {
				if !yield(l, nil) {
					return
				}
				from = l.sequence + 1
			}
		}
	}
}

// A line is the line of an event, with its sequence in the table.
type line struct {
	text     string
	sequence uint64
}

// entry returns the entry of a line, which has to be the row's.
func (l line) entry(runID string) (runstore.Entry, error) {
	e, err := runstore.ParseEntry(l.text)
	if err == nil && (e.Event.RunID != runID || e.Event.Sequence != l.sequence) {
		err = fmt.Errorf("its line has sequence %d of run %.64q", e.Event.Sequence, e.Event.RunID)
	}
	if err != nil {
		err = fmt.Errorf("the row with sequence %d: %w", l.sequence, err)
	}
	return e, err
}

// page returns the next lines of a run.
func (s *Store) page(ctx context.Context, runID string, from, end uint64) (page []line, err error) {
	rows, err := s.db.QueryContext(ctx, loads, key(runID), int64(from), int64(end), loadAtOnce, loadBytes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l line
		if err := rows.Scan(&l.text, &l.sequence); err != nil {
			return nil, err
		}
		page = append(page, l)
	}
	return page, rows.Err()
}

// The numbers of trackers that a store keeps, of runs that go on and of runs that have ended. An
// event of another run has its tracker made anew.
const (
	mostOpen  = 4096
	mostEnded = 64
)

// trackers keeps the trackers of the runs that a store writes. One that is taken is not in it.
type trackers struct {
	mu          sync.Mutex
	of          map[string]*list.Element // by run id
	open, ended list.List                // of *tracked; those that were not used for longest in front
}

type tracked struct {
	runID string
	next  uint64
	ended bool
	*columns.Tracker
}

// take returns the tracker of a run at a sequence, and drops that at another one.
func (t *trackers) take(runID string, next uint64) *tracked {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.of[runID]
	if at == nil {
		return nil
	}
	one := t.remove(at)
	if one.next != next {
		return nil
	}
	return one
}

func (t *trackers) list(one *tracked) *list.List {
	if one.ended {
		return &t.ended
	}
	return &t.open
}

func (t *trackers) remove(at *list.Element) *tracked {
	one := at.Value.(*tracked)
	t.list(one).Remove(at)
	delete(t.of, one.runID)
	return one
}

// put keeps a tracker.
func (t *trackers) put(one *tracked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.of[one.runID]; at != nil {
		t.remove(at)
	}
	if t.of == nil {
		t.of = map[string]*list.Element{}
	}
	t.of[one.runID] = t.list(one).PushBack(one)
	if t.open.Len() > mostOpen {
		t.remove(t.open.Front())
	}
	if t.ended.Len() > mostEnded {
		t.remove(t.ended.Front())
	}
}

// tracker returns the tracker of a run at a sequence, or nil if the run is at another one.
func (s *Store) tracker(ctx context.Context, runID string, next uint64) (*tracked, error) {
	if t := s.trackers.take(runID, next); t != nil {
		return t, nil
	}
	one := &tracked{runID: strings.Clone(runID), next: next}
	if next == 0 {
		one.Tracker = columns.NewTracker()
		return one, nil
	}
	now, err := s.next(ctx, runID)
	if err != nil || now != next {
		return nil, err
	}
	one.Tracker, err = s.replay(ctx, runID, next)
	return one, err
}
