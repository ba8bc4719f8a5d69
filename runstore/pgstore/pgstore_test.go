//go:build unix

package pgstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
	"github.com/agentevents/agentevents/runstore/pgstore/internal/pgtest"
	"github.com/agentevents/agentevents/runstore/runstoretest"
)

// The server of the tests, or why there is none.
var (
	shared  *server
	missing error
)

// A server is a PostgreSQL of the tests' own.
type server struct{ *pgtest.Server }

func TestMain(m *testing.M) {
	if connection := os.Getenv(writerEnv); connection != "" {
		fmt.Println("error", writer(context.Background(), connection))
		os.Exit(3)
	}
	if connection := os.Getenv(fillerEnv); connection != "" {
		fmt.Println("error", filler(context.Background(), connection))
		os.Exit(3)
	}
	os.Exit(pgtest.Main(m, func(s *pgtest.Server, err error) { shared, missing = &server{s}, err }))
}

// crash has the server crash, and starts it again. The connections are new then.
func (s *server) crash(t testing.TB, db *sql.DB) {
	require.NoError(t, s.Stop("immediate"))
	db.SetMaxIdleConns(-1)
	db.SetMaxIdleConns(8)
	require.NoError(t, s.Start())
}

// fresh returns a connection to an empty schema with the tables.
func (s *server) fresh(t testing.TB) (db *sql.DB, schema string) {
	db, schema = s.Empty(t)
	require.NoError(t, pgstore.Create(t.Context(), db))
	return db, schema
}

// own returns a server for one test.
func own(t testing.TB) *server {
	if testing.Short() {
		t.Skip("it makes a server of its own")
	}
	need(t)
	return &server{pgtest.Own(t)}
}

func need(t testing.TB) *server {
	pgtest.Need(t, shared.Server, missing)
	return shared
}

func TestStore(t *testing.T) {
	s := need(t)
	in := map[runstore.Store]string{}
	again := func(t testing.TB, st runstore.Store) runstore.Store {
		schema := in[st]
		other := pgstore.New(s.Open(t, schema), pgstore.Options{Poll: 10 * time.Millisecond})
		in[other] = schema
		return other
	}
	f := runstoretest.Features{
		Open: func(t testing.TB) runstore.Store {
			db, schema := s.fresh(t)
			st := pgstore.New(db, pgstore.Options{})
			in[st] = schema
			return st
		},
		Second: again,
		Reopen: func(t testing.TB, st runstore.Store) runstore.Store {
			require.NoError(t, st.(io.Closer).Close())
			return again(t, st)
		},
	}
	runstoretest.Run(t, f)
	runstoretest.Claims(t, f)
}

// Processes make the tables at the same time, and one that finds them changes nothing.
func TestCreate(t *testing.T) {
	s := need(t)
	db, schema := s.fresh(t)
	_, err := db.Exec("DROP SCHEMA " + schema + " CASCADE; CREATE SCHEMA " + schema)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := pgstore.Create(t.Context(), s.Open(t, schema)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st := pgstore.New(db, pgstore.Options{})
	require.NoError(t, st.Append(t.Context(), "r", 0, events(t, "r", 3)...))
	require.NoError(t, pgstore.Create(t.Context(), db))
	require.Len(t, load(t, st, "r"), 3)
}

// Tables that are there are used as they are: they need no right to make some, and wait for no
// lock, behind which all writers would wait.
func TestCreateAgain(t *testing.T) {
	s := need(t)
	db, schema := s.fresh(t)
	held, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer held.Rollback()
	_, err = held.Exec("LOCK TABLE agentevents_events IN ROW EXCLUSIVE MODE")
	require.NoError(t, err)
	_, err = db.Exec(fmt.Sprintf("CREATE ROLE %[1]s LOGIN; GRANT USAGE ON SCHEMA %[1]s TO %[1]s", schema))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, pgstore.Create(ctx, s.Open(t, schema, "user="+schema)))
	require.NoError(t, pgstore.Create(ctx, db))
}

func TestCreateWantsUTF8(t *testing.T) {
	s := need(t)
	_, err := s.Open(t, "public").Exec("CREATE DATABASE latin1 TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
	require.NoError(t, err)
	require.ErrorContains(t, pgstore.Create(t.Context(), s.Open(t, "public", "dbname=latin1")), "encoding LATIN1, legal: UTF8")
}

// events returns the first n events of a run.
func events(t testing.TB, run string, n int) (list []runstore.Entry) {
	for i := range n {
		e, err := runstore.NewEntry(ae.Event{
			ID: fmt.Sprintf("%s-%d", run, i), RunID: run, Sequence: uint64(i), Time: time.Date(2026, 5, 5, 9, 0, i, 0, time.UTC),
			AgentID: "coder", SchemaVersion: ae.SchemaVersion, Payload: &ae.TextCompleted{Text: fmt.Sprint("text ", i)},
		})
		require.NoError(t, err)
		list = append(list, e)
	}
	return list
}

func load(t testing.TB, s runstore.Store, run string) (lines []string) {
	for e, err := range s.Load(t.Context(), run, 0) {
		require.NoError(t, err)
		lines = append(lines, e.Line)
	}
	return lines
}

// The columns are what the event says, and NULL where it says nothing. What the columns lack
// is asked of the line.
func TestColumns(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{runstore.NewSink(st)}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	run = run.With(ae.Scope{SessionID: "s", WorkflowID: "w", Phase: "audit", TaskID: "t"})
	coder := run.Agent("coder")
	ctx := t.Context()
	require.NoError(t, run.Emit(ctx, &ae.RunStarted{}))
	require.NoError(t, coder.Emit(ctx, &ae.AgentStarted{}))
	for i, status := range []ae.ToolStatus{ae.ToolStatusOK, ae.ToolStatusError, ae.ToolStatusError} {
		call, err := coder.Call(ctx, &ae.ToolCalled{CallID: fmt.Sprint(i), ToolID: "Bash"})
		require.NoError(t, err)
		require.NoError(t, call.End(ctx, &ae.ToolReturned{Status: status, Result: `"\\u0000 is NUL: \u0000\u0000\\\u0000"`}))
	}
	require.NoError(t, run.Emit(ctx, &ae.RunCompleted{}))

	var failed, in int
	var by, tool, text string
	require.NoError(t, db.QueryRow(`SELECT agent_id, agentevents_json(line) #>> '{payload,toolId}' AS tool, count(*)
		FROM agentevents_events
		WHERE type = 'agent.toolReturned' AND agentevents_json(line) #>> '{payload,status}' = 'error'
		  AND time > now() - interval '1 day'
		GROUP BY 1, 2 ORDER BY 3 DESC`).Scan(&by, &tool, &failed))
	require.Equal(t, []any{"coder", "Bash", 2}, []any{by, tool, failed})
	require.NoError(t, db.QueryRow(`SELECT agentevents_json(line) #>> '{payload,result}' FROM agentevents_events WHERE type = 'agent.toolReturned' LIMIT 1`).Scan(&text))
	require.Equal(t, `\u0000 is NUL: `+"\ufffd\ufffd\\\ufffd", text)
	for _, line := range []string{`{"a":"\ud800"}`, `no json`} {
		var none sql.NullString
		require.NoError(t, db.QueryRow(`SELECT agentevents_json($1)`, line).Scan(&none))
		require.False(t, none.Valid, line)
	}
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM agentevents_events WHERE phase = 'audit' AND workflow_id = 'w' AND session_id = 's' AND task_id = 't'
		AND node_id IS NULL AND trace_id IS NULL AND parent_agent_id IS NULL`).Scan(&in))
	require.Equal(t, len(load(t, st, "r")), in)
	var kind, agent string
	var at time.Time
	require.NoError(t, db.QueryRow(`SELECT type, agent_id, time FROM agentevents_events WHERE run_id = 'r' AND sequence = 1`).Scan(&kind, &agent, &at))
	require.Equal(t, []string{"agent.started", "coder"}, []string{kind, agent})
	require.WithinDuration(t, time.Now(), at, time.Minute)
	var terminal string
	require.NoError(t, db.QueryRow(`SELECT terminal FROM agentevents_runs`).Scan(&terminal))
	require.Equal(t, "run.completed", terminal)
}

// What the database cannot have is refused, and nothing of it is there.
func TestLimits(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	bad := events(t, "r", 2)
	bad[1].Event.Sequence = 1<<63 - 1
	require.ErrorContains(t, st.Append(t.Context(), "r", 0, bad...), "sequence 9223372036854775807 is too high")
	bad = events(t, "r", 2)
	bad[1].Line = "{\xff}"
	require.ErrorContains(t, st.Append(t.Context(), "r", 0, bad...), "not UTF-8")
	_, err := st.Run(t.Context(), "r")
	require.ErrorIs(t, err, runstore.ErrNoRun)

	// PostgreSQL compresses texts before it says that they are too long for an index.
	long := make([]byte, 3000)
	for i := range long {
		long[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[rand.IntN(36)]
	}
	require.ErrorIs(t, st.Append(t.Context(), string(long), 0, events(t, string(long), 1)...), runstore.ErrRefused)
	limit := string(long[:2000])
	require.NoError(t, st.Append(t.Context(), limit, 0, events(t, limit, 1)...))
	require.Len(t, load(t, st, limit), 1)

	for name, change := range map[string]func(*ae.Event){
		"a type":    func(ev *ae.Event) { ev.Payload = &ae.Unknown{Type: ae.Kind("x." + string(long)), Raw: `{}`} },
		"an agent":  func(ev *ae.Event) { ev.AgentID = "é" + string(long) },
		"an agent2": func(ev *ae.Event) { ev.AgentID = "ü" + strings.Repeat("é", 3000) },
		"a time":    func(ev *ae.Event) { ev.Time = time.Time{}.Add(-time.Hour) },
		"a zone":    func(ev *ae.Event) { ev.Time = time.Now().In(time.FixedZone("", 23*3600)) },
	} {
		e := events(t, name, 1)[0]
		change(&e.Event)
		line := e.Line
		if f, err := runstore.NewEntry(e.Event); err == nil {
			e, line = f, f.Line
		}
		require.NoError(t, st.Append(t.Context(), name, 0, e), name)
		require.Equal(t, []string{line}, load(t, st, name))
	}
	info, err := st.Run(t.Context(), "a time")
	require.NoError(t, err)
	require.True(t, info.Begun.IsZero())

	_, err = st.Run(t.Context(), "no UTF-8: \xff")
	require.ErrorIs(t, err, runstore.ErrNoRun)
	require.Empty(t, load(t, st, "no UTF-8: \xff"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range pgstore.New(db, pgstore.Options{Poll: -1}).Watch(ctx, "r", 0) {
	}
}

// Long lines are not all in memory at the same time.
func TestLoadOfLongLines(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	for i := range 12 {
		e, err := runstore.NewEntry(ae.Event{RunID: "r", Sequence: uint64(i), SchemaVersion: ae.SchemaVersion, Payload: &ae.TextCompleted{Text: strings.Repeat("x", 1<<20)}})
		require.NoError(t, err)
		require.NoError(t, st.Append(t.Context(), "r", uint64(i), e))
	}
	require.Len(t, load(t, st, "r"), 12)
	n := 0
	for _, err := range st.Load(t.Context(), "r", 0) {
		require.NoError(t, err)
		if n++; n == 1 { // what was read by now is in memory
			_, err := db.Exec("DELETE FROM agentevents_events")
			require.NoError(t, err)
		}
	}
	require.Equal(t, 4, n)
}

// What was committed outlives a crash of the server, and what was appended is whole.
func TestServerCrash(t *testing.T) {
	s := own(t)
	db, schema := s.fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	var acked [8]uint64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range acked {
		wg.Go(func() {
			run := fmt.Sprint("r", w)
			for _, e := range events(t, run, 5000) {
				if st.Append(context.Background(), run, e.Event.Sequence, e) != nil || st.Commit(context.Background()) != nil {
					return
				}
				acked[w] = e.Event.Sequence + 1
				if w == 0 && e.Event.Sequence == 100 {
					close(stop)
				}
			}
		})
	}
	<-stop
	require.NoError(t, s.Stop("immediate"))
	wg.Wait()
	require.NoError(t, s.Start())
	st = pgstore.New(s.Open(t, schema), pgstore.Options{})
	for w, n := range acked {
		run := fmt.Sprint("r", w)
		lines := load(t, st, run)
		require.GreaterOrEqual(t, len(lines), int(n), "%s lost acknowledged events", run)
		for i, e := range events(t, run, len(lines)) {
			require.Equal(t, e.Line, lines[i])
		}
		info, err := st.Run(t.Context(), run)
		require.NoError(t, err)
		require.EqualValues(t, len(lines), info.Next)
	}
}

// A server that is away for a while loses nothing: the sink keeps what was not taken.
func TestServerAway(t *testing.T) {
	s := own(t)
	db, _ := s.fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{runstore.NewSink(st)}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, run.Emit(ctx, &ae.RunStarted{}))
	require.NoError(t, s.Stop("fast"))
	for i := range 3 {
		var sink *ae.SinkError
		require.ErrorAs(t, run.Emit(ctx, &ae.StatePatched{Path: "n", Op: ae.PatchSet, Value: ae.JSON(strconv.Itoa(i))}), &sink)
	}
	require.NoError(t, s.Start())
	require.NoError(t, run.Emit(ctx, &ae.RunCompleted{}))
	restored, err := runstore.Restore(ctx, st, "r", ae.FoldOptions{})
	require.NoError(t, err)
	require.Equal(t, ae.RunStatusCompleted, restored.Snapshot.Status)
	require.Equal(t, 5, restored.Folded)
}

// A log that is a file is mirrored, and again when it has grown.
func TestCopy(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	var log bytes.Buffer
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{ae.NewWriter(&log, ae.WriterOptions{})}})
	require.NoError(t, err)
	for i := range 40 {
		run, err := em.Run(fmt.Sprint("r", i%20) + strings.Repeat("'", i/20))
		require.NoError(t, err)
		require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
		a := run.Agent("coder")
		require.NoError(t, a.Emit(t.Context(), &ae.AgentStarted{}))
		for range 20 {
			require.NoError(t, a.Emit(t.Context(), &ae.TextCompleted{Text: "one\ntwo"}))
		}
	}
	lines := slices.Collect(strings.Lines(log.String()))
	for _, part := range []int{len(lines) / 3, len(lines), len(lines)} {
		require.NoError(t, runstore.Copy(t.Context(), st, ae.NewReader(strings.NewReader(strings.Join(lines[:part], "")), ae.ReaderOptions{}).All()))
	}
	var mirrored []string
	for info, err := range st.Runs(t.Context(), "") {
		require.NoError(t, err)
		for _, line := range load(t, st, info.RunID) {
			mirrored = append(mirrored, line+"\n")
		}
	}
	require.ElementsMatch(t, lines, mirrored)
}

// The functions of the example do what they say.
func TestExample(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	require.NoError(t, work(t.Context(), st, "r"))
	require.NoError(t, work(t.Context(), st, "r"))
	restored, err := runstore.Restore(t.Context(), st, "r", ae.FoldOptions{})
	require.NoError(t, err)
	require.Empty(t, restored.Snapshot.Violations)
	require.EqualValues(t, 4, restored.Snapshot.NextSequence)

	path := filepath.Join(t.TempDir(), "log.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(events(t, "mirrored", 1)[0].Line+"\n"), 0o600))
	following, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mirror(t.Context(), following, path, st) }()
	for e, err := range st.Watch(t.Context(), "mirrored", 0) {
		require.NoError(t, err)
		require.Equal(t, "mirrored-0", e.Event.ID)
		break
	}
	stop()
	require.NoError(t, <-done)
}

// A watch goes on when the server is back, and tells an error that waiting does not mend.
func TestWatchOutlivesTheServer(t *testing.T) {
	s := own(t)
	for _, how := range []string{"immediate", "fast"} {
		db, schema := s.fresh(t)
		st := pgstore.New(db, pgstore.Options{})
		all := events(t, "r", 3)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		seen, ended := make(chan string), make(chan error)
		go func() {
			for e, err := range pgstore.New(s.Open(t, schema), pgstore.Options{Poll: 5 * time.Millisecond}).Watch(ctx, "r", 0) {
				if err != nil {
					ended <- err
					return
				}
				seen <- e.Line
			}
		}()
		next := func(want runstore.Entry) {
			select {
			case line := <-seen:
				require.Equal(t, want.Line, line)
			case err := <-ended:
				require.NoError(t, err)
			}
		}
		for i, e := range all[:2] {
			require.NoError(t, st.Append(ctx, "r", uint64(i), e))
			require.NoError(t, st.Commit(ctx))
			next(e)
		}
		require.NoError(t, s.Stop(how))
		for _, err := range st.Watch(ctx, "r", 0) {
			require.ErrorContains(t, err, `loading run "r"`, "of the first look")
		}
		require.NoError(t, s.Start())
		require.Eventually(t, func() bool { return db.PingContext(ctx) == nil }, time.Minute, time.Millisecond)
		require.NoError(t, st.Append(ctx, "r", 2, all[2]))
		require.NoError(t, st.Commit(ctx))
		next(all[2])
		_, err := db.Exec("ALTER TABLE agentevents_runs RENAME TO elsewhere")
		require.NoError(t, err)
		require.ErrorContains(t, <-ended, "agentevents_runs")
	}
}

func BenchmarkEmit(b *testing.B) {
	db, _ := need(b).fresh(b)
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(pgstore.New(db, pgstore.Options{}))}})
	require.NoError(b, err)
	for _, size := range [...]struct{ writers, runs int }{{1, 1}, {64, 64}, {64, 1}} {
		b.Run(fmt.Sprintf("writers=%d/runs=%d", size.writers, size.runs), func(b *testing.B) {
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			for w := range size.writers {
				run, err := em.Run(fmt.Sprintf("r%v-%d-%d", size, b.N, w%size.runs))
				require.NoError(b, err)
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := run.Emit(b.Context(), &ae.StatePatched{Path: "n", Op: ae.PatchSet, Value: "1"}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
