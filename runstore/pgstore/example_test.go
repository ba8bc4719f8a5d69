package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// work begins a run, or goes on with it where another process has left it.
func work(ctx context.Context, store runstore.Store, id string) error {
	em, err := ae.NewEmitter(ae.EmitterOptions{Sinks: []ae.Sink{runstore.NewSink(store)}})
	if err != nil {
		return err
	}
	defer em.Close(ctx)
	var run *ae.Run
	restored, err := runstore.Restore(ctx, store, id, ae.FoldOptions{})
	switch {
	case errors.Is(err, runstore.ErrNoRun):
		if run, err = em.Run(id); err == nil {
			err = run.Emit(ctx, &ae.RunStarted{})
		}
	case err == nil:
		if run, err = em.Resume(restored.Snapshot); err == nil {
			err = run.Emit(ctx, &ae.RunResumed{})
		}
	}
	if err != nil {
		return err
	}
	return run.Agent("coder").Emit(ctx, &ae.AgentStarted{}) // and so on
}

// mirror keeps the events of a log that is a file, too, for as long as the log is followed.
func mirror(ctx, following context.Context, path string, store runstore.Store) error {
	follower, err := logfile.Follow(following, path, logfile.FollowOptions{})
	if err != nil {
		return err
	}
	defer follower.Close()
	return runstore.Copy(ctx, store, ae.NewReader(follower, ae.ReaderOptions{}).All())
}

func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := pgstore.Create(ctx, db); err != nil {
		log.Fatal(err)
	}
	store := pgstore.New(db, pgstore.Options{})
	if err := work(ctx, store, "release-7"); err != nil {
		log.Fatal(err)
	}
	if err := mirror(ctx, ctx, "other.jsonl", store); err != nil {
		log.Fatal(err)
	}
}
