//go:build unix

package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// A run goes on, and has every event once, after the server was too slow, had no disk left, or
// refused the credential.
func TestARunGoesOnAfterTrouble(t *testing.T) {
	s := need(t)
	for name, trouble := range map[string]struct{ begin, end, err string }{
		"slow": {`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(20); RETURN NEW; END $$;
			CREATE TRIGGER trouble BEFORE INSERT ON agentevents_events FOR EACH ROW EXECUTE FUNCTION wait()`,
			`DROP TRIGGER trouble ON agentevents_events`, "statement timeout"},
		"full": {`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER trouble BEFORE INSERT ON agentevents_events FOR EACH ROW EXECUTE FUNCTION full_disk()`,
			`DROP TRIGGER trouble ON agentevents_events`, "No space left"},
		"refused": {`REVOKE INSERT ON agentevents_events FROM worker`, `GRANT INSERT ON agentevents_events TO worker`, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			db, schema := s.fresh(t)
			_, err := db.Exec(fmt.Sprintf(`DO $$ BEGIN CREATE ROLE worker; EXCEPTION WHEN duplicate_object THEN END $$;
				GRANT USAGE ON SCHEMA %s TO worker; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %[1]s TO worker`, schema))
			require.NoError(t, err)
			st := pgstore.New(s.Open(t, schema, "role=worker", "statement_timeout=300"), pgstore.Options{})
			w, err := runstore.NewWorker(st, "w", time.Minute)
			require.NoError(t, err)
			defer w.Close()
			_, err = w.Claim(t.Context(), "r")
			require.NoError(t, err, "a worker needs no right to the tables but these")
			em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(w)}, OnError: func(error) {}})
			require.NoError(t, err)
			run, err := em.Run("r")
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &ae.RunStarted{}))
			_, err = db.Exec(trouble.begin)
			require.NoError(t, err)
			for n := range 3 {
				err := run.Emit(t.Context(), &ae.StatePatched{Path: "n", Op: "set", Value: ae.JSON(fmt.Sprint(n))})
				var sink *ae.SinkError
				require.ErrorAs(t, err, &sink)
				require.ErrorContains(t, err, `appending to run "r"`)
				require.ErrorContains(t, err, trouble.err)
				require.NotErrorIs(t, err, ae.ErrFenced)
			}
			_, err = db.Exec(trouble.end)
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &ae.RunCompleted{}))
			require.Len(t, ids(t, st, "r"), 5)
		})
	}
}
