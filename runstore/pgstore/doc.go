// Package pgstore keeps runs in PostgreSQL, for the processes of many machines: a run that one
// of them has begun another goes on with, and of two that write the same run one is stopped. It
// is a [runstore.Store] for any driver of package database/sql.
//
//	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
//	…
//	err = pgstore.Create(ctx, db) // or Schema, among the program's migrations
//	…
//	store := pgstore.New(db, pgstore.Options{})
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(store)}})
//
// The line of an event is kept as it is. The view agentevents_columns has the columns of package
// columns besides: the agent, also where a span alone tells it, the tool, the model, how a call ended
// and how long it took, tokens, cost, span and more. agentevents_json has the rest.
//
//	SELECT agent_name, tool, count(*), avg(duration_ms)
//	FROM agentevents_columns
//	WHERE kind = 'agent.toolReturned' AND failed AND time > now() - interval '1 day'
//	GROUP BY 1, 2 ORDER BY 3 DESC;
//
// docs/questions.md has more questions, for other engines, too.
//
// # Columns of earlier events
//
// The columns are written with the event, in one transaction. The first append of a store to a run that
// another one has begun reads the run's events, or those after its latest snapshot.
//
// [Create] adds the columns to the tables of an earlier version. Events in them get their columns
// when a store appends to their run, or from [Store.Fill]: call it once after the change. Until then
// the view lacks them. Processes with the earlier version may go on to write.
//
// A log that is a file, and mirrored here, is copied by [runstore.Copy].
//
// # Costs
//
// An append is one statement, whose transaction does not wait for the disk. A commit is another
// one, which does, also where synchronous_commit is off. Those who wait share it: with a disk that
// takes 4 ms for a sync, one emitter records 250 events a second, and 64 record 2,500.
//
// Each run that emits uses a connection meanwhile, so bound the pool (SetMaxOpenConns): the
// default has no bound, and a server refuses clients beyond its own. Emit waits for a server that
// hangs, and for a lock; statement_timeout and lock_timeout end that with an error.
//
// # Claims
//
// A claim ([runstore.Claimer]) is a row of agentevents_claims, and its token is a column of the
// run's row. A claim and a renewal each wait for the disk. A worker needs the rights to select,
// insert, update and delete there.
//
// # When the server is away
//
// The store keeps uncommitted events, 16 MiB at most, and appends them again to a server that has
// crashed and comes back without it. So a crash costs errors from Emit, and no event, unless the
// process ends before the server is back. A standby that takes over lacks the events that the
// server has not sent it, unless it is in synchronous_standby_names: then a process that goes on
// with a run of which committed events are missing is stopped by a [runstore.ConflictError], and
// goes on with [runstore.Restore].
//
// The documents: the multi-agent wiki (minimum viable pipeline: "mirror key fields into
// Postgres"), the resume spec (storage).
package pgstore
