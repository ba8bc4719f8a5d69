//go:build unix

package pgstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/columns"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// asked returns the rows of the view, by run and sequence.
func asked(t testing.TB, db *sql.DB) (all []map[string]any) {
	t.Helper()
	rows, err := db.Query(`SELECT * FROM agentevents_columns ORDER BY run_id, sequence`)
	require.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values, places := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		require.NoError(t, rows.Scan(places...))
		row := map[string]any{}
		for i, v := range values {
			if at, ok := v.(time.Time); ok {
				v = at.UTC()
			}
			row[names[i]] = v
		}
		all = append(all, row)
	}
	require.NoError(t, rows.Err())
	return all
}

// made returns the rows that a tracker makes of the events of a log, by run and sequence. Agents
// have their ids and names in all rows.
func made(t testing.TB, entries []runstore.Entry) (all []map[string]any) {
	t.Helper()
	tracker := columns.NewTracker()
	for i := range entries {
		r, err := tracker.Add(&entries[i].Event, entries[i].Line)
		require.NoError(t, err)
		row := map[string]any{}
		for _, c := range columns.Table() {
			row[c.Name] = c.Value(&r)
		}
		if r.AgentWas != "" {
			for _, before := range all {
				for name, now := range map[string]string{"agent_id": r.AgentID, "parent_agent_id": r.AgentID, "agent_name": r.AgentName} {
					if before["run_id"] == r.RunID && before[name] == r.AgentWas {
						before[name] = now
					}
				}
			}
		}
		all = append(all, row)
	}
	slices.SortStableFunc(all, func(a, b map[string]any) int { return strings.Compare(a["run_id"].(string), b["run_id"].(string)) })
	return all
}

func same(t testing.TB, want, got []map[string]any) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i], "run %v, sequence %v", want[i]["run_id"], want[i]["sequence"])
	}
}

// entriesOf returns the events of a native log.
func entriesOf(t testing.TB, log string) (all []runstore.Entry) {
	t.Helper()
	for ev, err := range ae.NewReader(strings.NewReader(log), ae.ReaderOptions{}).All() {
		require.NoError(t, err)
		e, err := runstore.NewEntry(ev)
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// spanned is a run whose agents have spans: one starts before its id is known, and so does one below
// it; another never gets an id.
func spanned(run string) (all []ae.Event) {
	for i, e := range []ae.Event{
		{SpanID: "u1", Payload: &ae.AgentStarted{Task: "bake"}},
		{SpanID: "u2", ParentSpanID: "u1", Payload: &ae.AgentStarted{Task: "heat"}},
		{SpanID: "u3", Payload: &ae.AgentStarted{}},
		{SpanID: "c1", ParentSpanID: "u2", AgentID: "oven", Payload: &ae.ToolCalled{CallID: "c1", ToolID: "heat"}},
		{SpanID: "c1", ParentSpanID: "u2", AgentID: "oven", Payload: &ae.ToolReturned{CallID: "c1", Status: ae.ToolStatusError}},
		{SpanID: "u2", AgentID: "oven", Payload: &ae.AgentEnded{}},
		{SpanID: "u1", AgentID: "baker", Payload: &ae.AgentEnded{}},
	} {
		e.ID, e.RunID, e.Sequence, e.SchemaVersion = fmt.Sprint(run, i), run, uint64(i), ae.SchemaVersion
		e.Time = time.Date(2026, 6, 1, 8, 0, i, 0, time.UTC)
		all = append(all, e)
	}
	return all
}

func quickstart(t testing.TB) []runstore.Entry {
	t.Helper()
	dump, err := os.ReadFile("testdata/466d346.sql")
	require.NoError(t, err)
	var log strings.Builder
	for line := range strings.Lines(string(dump)) {
		if _, text, ok := strings.Cut(line, ", '{\"id\":"); ok && strings.Contains(text, `"sessionId":"quickstart"`) {
			text, _, _ = strings.Cut(text, "}')")
			log.WriteString(`{"id":` + strings.ReplaceAll(text, "''", "'") + "}\n")
		}
	}
	return entriesOf(t, log.String())
}

// Whatever stores have written a run, and however many events at a time, the rows are those that a
// tracker makes of the whole log.
func TestRows(t *testing.T) {
	log := quickstart(t)
	require.Greater(t, len(log), 50)
	for _, ev := range spanned("spans\x00and\x01more") {
		e, err := runstore.NewEntry(ev)
		require.NoError(t, err)
		log = append(log, e)
	}
	want := made(t, log)
	for _, row := range want { // PostgreSQL has no NUL
		for _, name := range []string{"run_id", "event_id"} {
			row[name] = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02").Replace(row[name].(string))
		}
	}
	ran := map[string][]runstore.Entry{}
	for _, e := range log {
		ran[e.Event.RunID] = append(ran[e.Event.RunID], e)
	}
	for name, with := range map[string]struct {
		atOnce   int
		reopen   bool
		snapshot bool
	}{
		"one by one":                  {1, false, false},
		"all at once":                 {1000, false, false},
		"by three":                    {3, false, false},
		"each by a store of its own":  {2, true, false},
		"the same, and snapshots":     {2, true, true},
		"snapshots that are not used": {5, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := need(t).fresh(t)
			st := pgstore.New(db, pgstore.Options{})
			for run, entries := range ran {
				fold := ae.NewFold(ae.FoldOptions{})
				for part := range slices.Chunk(entries, with.atOnce) {
					require.NoError(t, st.Append(t.Context(), run, part[0].Event.Sequence, part...))
					for _, e := range part {
						fold.Apply(e.Event)
					}
					if with.snapshot && part[0].Event.Sequence%4 == 0 {
						require.NoError(t, st.SaveSnapshot(t.Context(), fold.Snapshot()))
					}
					if with.reopen {
						st = pgstore.New(db, pgstore.Options{})
					}
				}
			}
			same(t, want, asked(t, db))
		})
	}
}

// The start of an agent that is known by its span is found by the id that the agent gets later.
func TestRowsOfSpans(t *testing.T) {
	db, _ := need(t).fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	for _, ev := range spanned("r") {
		e, err := runstore.NewEntry(ev)
		require.NoError(t, err)
		require.NoError(t, st.Append(t.Context(), "r", ev.Sequence, e))
	}
	agents, err := db.Query(`SELECT coalesce(agent_id, ''), coalesce(parent_agent_id, ''), parent_span_id, kind FROM agentevents_columns ORDER BY sequence LIMIT 4`)
	require.NoError(t, err)
	defer agents.Close()
	var got []string
	for agents.Next() {
		var agent, parent, kind string
		var around sql.NullString
		require.NoError(t, agents.Scan(&agent, &parent, &around, &kind))
		got = append(got, fmt.Sprint(agent, " below ", parent, " in ", around.String, ": ", kind))
	}
	require.Equal(t, []string{"baker below  in : agent.started", "oven below baker in u1: agent.started", "u3 below  in : agent.started", "oven below baker in u2: agent.toolCalled"}, got)
}

// old loads the database that an earlier revision has filled.
func old(t testing.TB) (*sql.DB, string) {
	t.Helper()
	db, schema := need(t).Empty(t)
	dump, err := os.ReadFile("testdata/466d346.sql")
	require.NoError(t, err)
	_, err = db.Exec(string(dump))
	require.NoError(t, err)
	return db, schema
}

func stored(t testing.TB, st *pgstore.Store) (all []runstore.Entry) {
	t.Helper()
	for info, err := range st.Runs(t.Context(), "") {
		require.NoError(t, err)
		for e, err := range st.Load(t.Context(), info.RunID, 0) {
			require.NoError(t, err)
			all = append(all, e)
		}
	}
	return all
}

// A database that revision 466d346 has filled gets the new columns, and is read and written.
func TestMigration(t *testing.T) {
	db, _ := old(t)
	require.NoError(t, pgstore.Create(t.Context(), db))
	require.NoError(t, pgstore.Create(t.Context(), db))
	st := pgstore.New(db, pgstore.Options{})
	before := stored(t, st)
	require.Empty(t, asked(t, db), "events without columns are no rows")

	// A run that goes on has its columns then.
	restored, err := runstore.Restore(t.Context(), st, "open run", ae.FoldOptions{})
	require.NoError(t, err)
	require.Zero(t, restored.Folded, "the snapshot is read")
	em, err := ae.NewEmitter(ae.EmitterOptions{Lifecycle: ae.LifecycleDerived, Sinks: []ae.Sink{runstore.NewSink(st)}})
	require.NoError(t, err)
	run, err := em.Resume(restored.Snapshot)
	require.NoError(t, err)
	require.NoError(t, run.Agent("coder").Emit(t.Context(), &ae.ToolReturned{CallID: "c1", ToolID: "Bash", Status: ae.ToolStatusOK}))
	require.NoError(t, em.Close(t.Context()))
	after := stored(t, st)
	require.Greater(t, len(after), len(before))
	ofRun := func(e runstore.Entry) bool { return e.Event.RunID != "open run" }
	same(t, made(t, slices.DeleteFunc(slices.Clone(after), ofRun)), asked(t, db))
	var took float64
	require.NoError(t, db.QueryRow(`SELECT duration_ms FROM agentevents_columns WHERE tool = 'Bash' AND status = 'succeeded'`).Scan(&took))
	require.Positive(t, took)

	require.NoError(t, st.Fill(t.Context()))
	same(t, made(t, after), asked(t, db))
	require.NoError(t, st.Fill(t.Context()))
	same(t, made(t, after), asked(t, db))
	var starts int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM agentevents_events WHERE agent_id = 'oven' AND type = 'agent.started'`).Scan(&starts))
	require.Equal(t, 1, starts)
}

// An earlier version may go on to write: its events get their columns from the next writer, or from Fill.
func TestRowsAfterAnEarlierVersion(t *testing.T) {
	for _, how := range []string{"writer", "fill"} {
		db, _ := need(t).fresh(t)
		all := events(t, "r", 6)
		put := func(from, to int) {
			require.NoError(t, pgstore.New(db, pgstore.Options{}).Append(t.Context(), "r", uint64(from), all[from:to]...))
		}
		put(0, 2)
		for _, e := range all[2:4] {
			_, err := db.Exec(`INSERT INTO agentevents_events (run_id, sequence, event_id, type, line) VALUES ('r', $1, $2, 'text', $3)`, e.Event.Sequence, e.Event.ID, e.Line)
			require.NoError(t, err)
		}
		_, err := db.Exec(`UPDATE agentevents_runs SET next = 4`)
		require.NoError(t, err)
		if how == "writer" {
			put(4, 6)
		} else {
			require.NoError(t, pgstore.New(db, pgstore.Options{}).Fill(t.Context()))
			all = all[:4]
		}
		same(t, made(t, all), asked(t, db))
	}
}

// A line that is damaged, or another event's, keeps nobody from going on with the run: it has no row.
// A load ends there with an error that names the row.
func TestRowsOfDamagedLines(t *testing.T) {
	db, _ := need(t).fresh(t)
	for id, bad := range map[string]struct{ line, err string }{
		"text":           {"no event", ""},
		"cut":            {`{"id": "cut-1", "runId": `, ""},
		"other sequence": {events(t, "other sequence", 3)[2].Line, `: its line has sequence 2 of run "other sequence"`},
		"other run":      {events(t, "r", 2)[1].Line, `: its line has sequence 1 of run "r"`},
	} {
		all := events(t, id, 4)
		require.NoError(t, pgstore.New(db, pgstore.Options{}).Append(t.Context(), id, 0, all[:3]...))
		_, err := db.Exec(`UPDATE agentevents_events SET line = $2, begins = NULL WHERE run_id = $1 AND sequence = 1`, id, bad.line)
		require.NoError(t, err)
		_, err = db.Exec(`UPDATE agentevents_runs SET filled = 0 WHERE run_id = $1`, id)
		require.NoError(t, err)
		st := pgstore.New(db, pgstore.Options{})
		require.NoError(t, st.Append(t.Context(), id, 3, all[3:]...))
		for _, read := range []iter.Seq2[runstore.Entry, error]{st.Load(t.Context(), id, 1), st.Watch(t.Context(), id, 1)} {
			n := 0
			for _, err := range read {
				require.ErrorContains(t, err, fmt.Sprintf("loading run %q: the row with sequence 1: ", id))
				require.ErrorContains(t, err, bad.err)
				n++
			}
			require.Equal(t, 1, n)
		}
		same(t, made(t, slices.Concat(all[:1], all[2:])), asked(t, db))
		_, err = db.Exec(`TRUNCATE agentevents_runs CASCADE`)
		require.NoError(t, err)
	}
}

// filler has the test program fill columns until it is killed.
func filler(ctx context.Context, connection string) error {
	db, err := sql.Open("pgx", connection)
	if err != nil {
		return err
	}
	fmt.Println("fills")
	return pgstore.New(db, pgstore.Options{}).Fill(ctx)
}

// Processes that fill columns are killed in the middle of a run, and others fill and write it
// at the same time: in the end all rows are there.
func TestKilledFillers(t *testing.T) {
	s := need(t)
	db, schema := s.fresh(t)
	st := pgstore.New(db, pgstore.Options{})
	n := effort.Of(3000, 20_000, 60_000)
	all := events(t, "r", n)
	for _, ev := range spanned("s") {
		e, err := runstore.NewEntry(ev)
		require.NoError(t, err)
		all = append(all, e)
	}
	for part := range slices.Chunk(all[:n-10], 1000) {
		require.NoError(t, st.Append(t.Context(), "r", part[0].Event.Sequence, part...))
	}
	require.NoError(t, st.Append(t.Context(), "s", 0, all[n:]...))
	_, err := db.Exec(`UPDATE agentevents_events SET begins = NULL, agent_id = NULL; UPDATE agentevents_runs SET filled = 0`)
	require.NoError(t, err)
	partly := 0
	for range 6 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), fillerEnv+"="+s.Connection(schema))
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		require.NoError(t, err)
		c.Stdout = out
		require.NoError(t, c.Start())
		for before, now := filledOf(t, db), 0; now <= before && c.ProcessState == nil; now = filledOf(t, db) {
			told, err := os.ReadFile(out.Name())
			require.NoError(t, err)
			require.NotContains(t, string(told), "error")
			if before >= n-10 {
				break
			}
		}
		require.NoError(t, c.Process.Kill())
		_ = c.Wait() // it was killed
		require.NoError(t, out.Close())
		if at := filledOf(t, db); at > 0 && at < n-10 {
			partly++
		}
	}
	require.Positive(t, partly, "a process was killed in the middle of the run")
	done := make(chan error)
	for range 2 {
		go func() { done <- pgstore.New(db, pgstore.Options{}).Fill(context.WithoutCancel(t.Context())) }()
	}
	for _, e := range all[n-10 : n] {
		require.NoError(t, pgstore.New(db, pgstore.Options{}).Append(t.Context(), "r", e.Event.Sequence, e))
	}
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	same(t, made(t, all), asked(t, db))
}

func filledOf(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT filled FROM agentevents_runs WHERE run_id = 'r'`).Scan(&n))
	return n
}
