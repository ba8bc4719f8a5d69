// Package runstore keeps runs so that they can go on: after a crash, in another process,
// from the event that was acknowledged last.
//
//	store, err := runstore.Open("runs", runstore.Options{})
//	…
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(store)}})
//	…
//	restored, err := runstore.Restore(ctx, store, "release-7", agentevents.FoldOptions{})
//	run, err := em.Resume(restored.Snapshot)
//
// A [Store] has the events of runs, and of each run the latest snapshot. The events are the
// truth, and the snapshot a cache: [Restore] uses it as far as it belongs to the events, and
// folds them otherwise.
//
// Each event is a commit: some 70 µs on a local disk, a round trip with a server. A token that a
// model streams is an event, too, so [NewSink] leaves deltas out: they cost the store nothing, and the
// events that end their blocks have the whole texts. The sequences of a stored run have gaps
// where deltas were, and Restored.Coverage counts them. A crash loses the blocks that are open, and
// a run that is resumed may use the sequences of their deltas again: a reader that got them from
// another sink begins anew with a snapshot. [NewSinkWithDeltas] stores each token, for a commit
// each.
//
// # One writer of a run
//
// Every append names the sequence that it expects to be the run's next one. If the run has gone on
// meanwhile, the append is refused with a [*ConflictError] and nothing is written. The sink's error
// closes the run in the emitter ([agentevents.ErrFenced]), so that a process that was taken for
// dead, and comes back, does no harm. For the same reason a run that the store knows cannot begin
// again: it goes on with Emitter.Resume.
//
// The same append again changes nothing, so it is safe to repeat one whose outcome is not
// known. The [Sink] does that with an append that failed, before the run's next event.
//
// # Many workers
//
// Workers that share a store claim the runs that they write. A [Worker] is such a store for one of
// them: it claims a run for a lease, renews it, and has its appends refused once another worker has
// claimed the run. Stores that can do this are Claimers.
//
//	worker, err := runstore.NewWorker(store, "host-7", 30*time.Second)
//	…
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(worker)}})
//	…
//	ctx, err := worker.Claim(ctx, "release-7") // ErrClaimed: another worker has it
//
// # The stores
//
// [File] is a directory with one log for all runs, so that runs that go on at the same time
// share the syncs of the disk. [Memory] is for tests. Package runstoretest tells whether a
// further store does what this package promises. Modules pgstore and natsstore, below this package,
// have runs in PostgreSQL and in NATS JetStream, for the processes of many machines. [Copy] moves
// runs between stores and logs.
//
// What happens to a [File] and what comes of it:
//
//	the snapshot is missing, damaged, of another     Restore folds the events; Restored.Distrust
//	run, of another log or newer than the log        has the reason
//	the snapshot is older than the log               Restore folds the events after it
//	the process was killed, the machine went down    Open cuts a torn last line off (File.Torn); it
//	                                                 was not acknowledged
//	the saved index is missing, stale or damaged     Open reads the log
//	a line inside the log is damaged, or a segment   Options.OnError is told; the events that are
//	is missing                                       left come, and Restored.Coverage names the gap
//	the disk is full                                 Commit fails; written events can be read, and the
//	                                                 others are written once there is room
//	another program changes the log                  every call fails with logfile.ErrChanged until
//	                                                 the store is opened again
//	two processes open the store                     the second one's Open fails with logfile.ErrLocked
//	two writers go on with the same run              the second one's append is a *ConflictError
//
// The resume spec (storage and resume) asks for what is here; [agentevents] names it under
// Sources.
package runstore
