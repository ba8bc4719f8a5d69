package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// Schema makes the tables, whose names begin with agentevents_, in the schema that the
// connection is set to. It changes nothing where they are.
var Schema = tables + claimTables

//go:embed schema.sql
var tables string

//go:embed claim.sql
var claimTables string

// Create runs [Schema] unless that was done: then it needs no right but to read, and locks
// nothing. Several processes may do so at a time. The database has to be in UTF-8.
func Create(ctx context.Context, db *sql.DB) error {
	if err := create(ctx, db); err != nil {
		return fmt.Errorf("pgstore: making the tables: %w", err)
	}
	return nil
}

func create(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var encoding string
	var has int // columns of the last object of the schema
	err = tx.QueryRowContext(ctx, `SELECT current_setting('server_encoding'), (SELECT count(*) FROM pg_attribute
		WHERE attrelid = to_regclass(format('%I.agentevents_columns', current_schema())) AND attnum > 0
		AND to_regclass(format('%I.agentevents_claims', current_schema())) IS NOT NULL)`).Scan(&encoding, &has)
	switch {
	case err != nil || has > len(fields):
		return err
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s, legal: UTF8", encoding)
	}
	// Without the lock, two callers make a table.
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('agentevents'))`); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, Schema); err != nil {
		return err
	}
	return tx.Commit()
}

// Options configure a [Store]. The zero Options are usable.
type Options struct {
	// Poll is the interval at which [Store.Watch] looks for events of other processes. Events of
	// this Store come at once. 0 and below mean half a second.
	Poll time.Duration
}

// A Store is a [runstore.Store] in PostgreSQL. Its methods may be called concurrently.
//
// Sequences go up to 2^63-2, run ids up to 2,000 bytes. Ids may have any characters; in the columns
// NUL is \x01\x01 and \x01 is \x01\x02, as PostgreSQL has no NUL in texts, and longer values are
// cut to 2,000 bytes. Times are kept to the microsecond, from the year 1 on. Lines are not changed.
type Store struct {
	db      *sql.DB
	poll    time.Duration
	closing sync.Once
	closed  chan struct{}
	turn    chan struct{} // who fills it commits

	trackers trackers

	mu        sync.Mutex
	gathering *round // will be committed next
	running   *round // is committed, or nil
	watched   map[string]*watched
}

// New returns the store in a database that has the tables of [Schema]. The database stays the
// caller's.
func New(db *sql.DB, o Options) *Store {
	return &Store{
		db: db, poll: cmp.Or(max(0, o.Poll), 500*time.Millisecond), closed: make(chan struct{}),
		turn: make(chan struct{}, 1), gathering: newRound(), watched: map[string]*watched{},
	}
}

// Close ends watches. Other calls fail then with [agentevents.ErrClosed]. The database stays
// open. It returns nil.
func (s *Store) Close() error {
	if s.closed != nil {
		s.closing.Do(func() { close(s.closed) })
	}
	return nil
}

// isClosed reports whether the store is closed, or comes from nowhere: the zero Store, or one
// without a database.
func (s *Store) isClosed() bool {
	if s.db == nil {
		return true
	}
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// failed adds the failed operation to an error, or returns that the store is closed.
func (s *Store) failed(err error, what, runID string) error {
	switch {
	case s.isClosed():
		err = agentevents.ErrClosed
	case err == nil:
		return nil
	}
	if runID != "" {
		what += fmt.Sprintf(" run %.64q", runID)
	}
	return fmt.Errorf("pgstore: %s: %w", what, err)
}

// key is an id as the columns have it: without NUL, and in the same order. An id that is not
// UTF-8, which no line has, gets a key that no other one has.
func key(id string) string {
	if strings.IndexByte(id, 0) >= 0 || strings.IndexByte(id, 1) >= 0 {
		id = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02").Replace(id)
	}
	return strings.ToValidUTF8(id, "\x01\x03")
}

// unkey is the id of a key.
func unkey(k string) string {
	return strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01").Replace(k)
}

// maxColumn is the length in bytes of the longest text that is searched by: an index takes 2,700.
const maxColumn = 2000

func cut(text string) string {
	if len(text) > maxColumn {
		return strings.ToValidUTF8(text[:maxColumn], "")
	}
	return text
}

// moment is a time that the database has, or nil.
func moment(t time.Time) *time.Time {
	t = t.UTC() // other zones may be further away than it takes them
	if y := t.Year(); y < 1 || y > 9999 {
		return nil
	}
	return &t
}

// The statements that add events to a run, whose parameters are run, expected sequence, next
// one, terminal, begun, updated, the rows, the ids that earlier rows get and the token of a claim. They add
// all of them or, if another sequence is expected or another claim was given, none. The transaction
// does not wait for the disk.
var (
	lazily = `WITH lazy AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
	` + mine + `,
	head AS (`
	begins = lazily + `INSERT INTO agentevents_runs (run_id, next, terminal, begun, updated, filled, claim)
		SELECT $1, $3::bigint, $4, $5::timestamptz, $6::timestamptz, $3::bigint, $9::bigint FROM lazy WHERE $2::bigint = 0 AND ` + mayBegin + `
		ON CONFLICT (run_id) DO NOTHING RETURNING run_id)` + adds
	goesOn = lazily + `UPDATE agentevents_runs r SET next = $3::bigint, terminal = COALESCE(NULLIF(r.terminal, ''), $4),
			begun = COALESCE(r.begun, $5::timestamptz), updated = $6::timestamptz,
			filled = CASE WHEN r.filled >= $2::bigint THEN $3::bigint ELSE r.filled END, claim = COALESCE(NULLIF($9::bigint, 0), r.claim)
		FROM lazy WHERE r.run_id = $1 AND r.next = $2::bigint AND ` + mayGoOn + ` RETURNING r.run_id)` + adds
	adds = `,
	` + renames("$8") + `
	INSERT INTO agentevents_events (run_id, ` + perField(func(f *field) string { return f.name }) + `)
	SELECT head.run_id, ` + perField(func(f *field) string { return "e." + f.name }) + ` FROM head, ` + recordset("$7")
)

// Append implements [runstore.Store].
func (s *Store) Append(ctx context.Context, runID string, expect uint64, entries ...runstore.Entry) error {
	return s.appendAs(ctx, runID, 0, expect, entries)
}

// appendAs appends with the token of a claim, or 0.
func (s *Store) appendAs(ctx context.Context, runID string,
	token int64, expect uint64, entries []runstore.Entry) error {
	err := s.append(ctx, runID, token, expect, entries)
	if conflict := (*runstore.ConflictError)(nil); errors.As(err, &conflict) && conflict.Next < expect {
		if lost := s.uncommitted(runID); len(lost) > 0 { // by a crash
			if again := s.again(ctx, runID, lost); again == nil {
				err = s.append(ctx, runID, token, expect, entries)
			} else if !errors.As(again, &conflict) {
				err = again
			}
		}
	}
	if err == nil && s.gather(runID, recent{token, expect, slices.Clone(entries)}) > mostUncommitted {
		err = s.Commit(ctx)
	}
	return err
}

func (s *Store) append(ctx context.Context, runID string, token int64, expect uint64, entries []runstore.Entry) error {
	return runstore.AppendTo(ctx, s, runID, expect, entries,
		func(expect uint64, entries []runstore.Entry) (uint64, error) {
			next, err := s.add(ctx, runID, token, expect, entries)
			return next, s.failed(err, "appending to", runID)
		})
}

// add adds the entries if expect is the next sequence of the run and no other claim was given. It
// returns that sequence.
func (s *Store) add(ctx context.Context, runID string, token int64,
	expect uint64, entries []runstore.Entry) (uint64, error) {
	if s.isClosed() {
		return 0, agentevents.ErrClosed
	}
	info := runstore.RunInfo{}
	if n := len(key(runID)); n > maxColumn {
		return 0, fmt.Errorf("%w: its id has %d bytes, legal: up to %d", runstore.ErrRefused, n, maxColumn)
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Event.Sequence >= math.MaxInt64:
			return 0, fmt.Errorf("%w: sequence %d is too high, legal: up to 2^63-2", runstore.ErrRefused, e.Event.Sequence)
		case !utf8.ValidString(e.Line):
			return 0, fmt.Errorf("%w: the line of sequence %d is not UTF-8", runstore.ErrRefused, e.Event.Sequence)
		}
		info.Add(&entries[i].Event)
	}
	for {
		if len(entries) > 0 {
			if done, err := s.insert(ctx, runID, token, expect, entries, &info); err != nil || done {
				return expect, refused(err)
			}
		}
		next, claim, err := s.position(ctx, runID)
		if err == nil && !accepts(next, claim, token) {
			err = s.holder(ctx, runID)
		}
		if err != nil || next != expect || len(entries) == 0 { // else another writer has got there in between
			return next, err
		}
	}
}

// insert adds the entries with their columns, and reports whether expect was the next sequence.
func (s *Store) insert(ctx context.Context, runID string, token int64,
	expect uint64, entries []runstore.Entry, info *runstore.RunInfo) (bool, error) {
	t, err := s.tracker(ctx, runID, expect)
	if err != nil || t == nil {
		return false, err
	}
	rows := make([]row, len(entries))
	for i := range entries {
		if rows[i], err = newRow(t.Tracker, &entries[i]); err != nil {
			return false, err
		}
	}
	text, renamed, err := parameters(rows)
	if err != nil {
		return false, err
	}
	statement := goesOn
	if expect == 0 {
		statement = begins
	}
	done, err := s.db.ExecContext(ctx, statement, key(runID), int64(expect), int64(info.Next),
		string(info.Terminal), moment(info.Begun), moment(info.Updated), text, renamed, token)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err != nil || n == 0 {
		return false, err
	}
	t.next, t.ended = info.Next, t.ended || info.Terminal != ""
	s.trackers.put(t)
	return true, nil
}

// refused marks an error that the same events would cause again: their data are at fault, or a
// limit of PostgreSQL.
func refused(err error) error {
	var state interface{ SQLState() string }
	if errors.As(err, &state) && (strings.HasPrefix(state.SQLState(), "22") || strings.HasPrefix(state.SQLState(), "54")) {
		return fmt.Errorf("%w: %w", runstore.ErrRefused, err)
	}
	return err
}

// next returns the next sequence of a run, or 0.
func (s *Store) next(ctx context.Context, runID string) (next uint64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT next FROM agentevents_runs WHERE run_id = $1`, key(runID)).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return next, err
}

// The bounds of one query: so many lines, or as many as begin in so many bytes. A query is over
// when its events are handed on, so a loop may use the database, and take its time.
const (
	loadAtOnce = 256
	loadBytes  = 4 << 20
	loads      = `SELECT line, sequence FROM (
		SELECT line, sequence, sum(octet_length(line)) OVER (ORDER BY sequence) - octet_length(line) AS begins FROM (
			SELECT line, sequence FROM agentevents_events WHERE run_id = $1 AND sequence >= $2::bigint AND sequence < $3::bigint ORDER BY sequence LIMIT $4
		) AS most
	) AS page WHERE begins < $5 ORDER BY sequence`
)

// Load implements [runstore.Store].
func (s *Store) Load(ctx context.Context, runID string, from uint64) iter.Seq2[runstore.Entry, error] {
	return func(yield func(runstore.Entry, error) bool) {
		err := s.failed(nil, "loading", runID)
		var end uint64
		if err == nil {
			end, err = s.next(ctx, runID)
		}
		if err == nil {
			for l, failed := range s.lines(ctx, runID, from, end) {
				e := runstore.Entry{}
				if err = failed; err == nil {
					e, err = l.entry(runID)
				}
				if err != nil {
					break
				}
				if !yield(e, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(runstore.Entry{}, s.failed(err, "loading", runID))
		}
	}
}

// column1 returns the only column of a query.
func column1[T any](ctx context.Context, db *sql.DB, query string, args ...any) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Watch implements [runstore.Store]: it looks when this Store commits, and every
// [Options].Poll. It waits while the server is away, unless that fails its first look.
func (s *Store) Watch(ctx context.Context, runID string, from uint64) iter.Seq2[runstore.Entry, error] {
	return func(yield func(runstore.Entry, error) bool) {
		if s.isClosed() {
			return
		}
		timer := time.NewTicker(s.poll)
		defer timer.Stop()
		next, stop := s.watch(runID)
		defer stop()
		for looked := false; ctx.Err() == nil && !s.isClosed(); {
			woken := next() // before the look, or an event in between wakes nobody
			var err error
			for e, failed := range s.Load(ctx, runID, from) {
				if err = failed; err != nil {
					break
				}
				if !yield(e, nil) {
					return
				}
				from = e.Event.Sequence + 1
			}
			if err != nil && !(looked && away(err)) {
				if ctx.Err() == nil && !errors.Is(err, agentevents.ErrClosed) {
					yield(runstore.Entry{}, err)
				}
				return
			}
			looked = true
			select {
			case <-woken:
			case <-timer.C:
			case <-s.closed:
			case <-ctx.Done():
			}
		}
	}
}

// away reports whether an error is of the connection: the server stops, starts, has no room for one
// more client, or cannot be reached.
func away(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		code := state.SQLState()
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") && code != databaseDropped || code == tooManyConnections
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

const (
	tooManyConnections = "53300"
	databaseDropped    = "57P04"
)

// Run implements [runstore.Store].
func (s *Store) Run(ctx context.Context, runID string) (runstore.RunInfo, error) {
	list, err := s.infos(ctx, `run_id = $1`, key(runID))
	if err == nil && len(list) == 0 {
		return runstore.RunInfo{}, fmt.Errorf("%w (run %.64q)", runstore.ErrNoRun, runID)
	}
	if err != nil {
		return runstore.RunInfo{}, s.failed(err, "looking for", runID)
	}
	return list[0], nil
}

// Runs implements [runstore.Store].
func (s *Store) Runs(ctx context.Context, after string) iter.Seq2[runstore.RunInfo, error] {
	return func(yield func(runstore.RunInfo, error) bool) {
		for after := key(after); ; {
			list, err := s.infos(ctx, `run_id > $1 ORDER BY run_id LIMIT 256`, after)
			if err != nil {
				yield(runstore.RunInfo{}, s.failed(err, "listing runs", ""))
				return
			}
			for _, info := range list {
				if !yield(info, nil) {
					return
				}
				after = key(info.RunID)
			}
			if len(list) == 0 {
				return
			}
		}
	}
}

func (s *Store) infos(ctx context.Context, where, arg string) (list []runstore.RunInfo, err error) {
	if s.isClosed() {
		return nil, agentevents.ErrClosed
	}
	rows, err := s.db.QueryContext(ctx,
		`SELECT run_id, next, terminal, begun, updated FROM agentevents_runs WHERE `+where, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var info runstore.RunInfo
		var begun, updated sql.NullTime
		if err := rows.Scan(&info.RunID, &info.Next, &info.Terminal, &begun, &updated); err != nil {
			return nil, err
		}
		info.RunID, info.Begun, info.Updated = unkey(info.RunID), begun.Time.UTC(), updated.Time.UTC()
		list = append(list, info)
	}
	return list, rows.Err()
}

// SaveSnapshot implements [runstore.Store].
func (s *Store) SaveSnapshot(ctx context.Context, snapshot *agentevents.RunSnapshot) error {
	if snapshot == nil {
		return runstore.CheckSnapshot(nil, 0)
	}
	err := s.failed(nil, "saving the snapshot of", snapshot.RunID)
	var next uint64
	if err == nil {
		next, err = s.next(ctx, snapshot.RunID)
	}
	if err == nil {
		err = runstore.CheckSnapshot(snapshot, next)
	}
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO agentevents_snapshots AS old (run_id, next, snapshot) VALUES ($1, $2::bigint, $3)
		ON CONFLICT (run_id) DO UPDATE SET next = excluded.next, snapshot = excluded.snapshot WHERE old.next <= excluded.next`,
		key(snapshot.RunID), int64(snapshot.NextSequence), string(snapshot.AppendJSON(nil)))
	return s.failed(err, "saving the snapshot of", snapshot.RunID)
}

// LoadSnapshot implements [runstore.Store].
func (s *Store) LoadSnapshot(ctx context.Context, runID string) (*agentevents.RunSnapshot, error) {
	if s.isClosed() {
		return nil, s.failed(nil, "loading the snapshot of", runID)
	}
	list, err := column1[string](ctx, s.db, `SELECT snapshot FROM agentevents_snapshots WHERE run_id = $1`, key(runID))
	if err := s.failed(err, "loading the snapshot of", runID); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w (run %.64q)", runstore.ErrNoSnapshot, runID)
	}
	snapshot := new(agentevents.RunSnapshot)
	if err := json.Unmarshal([]byte(list[0]), snapshot); err != nil {
		return nil, fmt.Errorf("pgstore: the snapshot of run %.64q is damaged: %w", runID, err)
	}
	return snapshot, nil
}
