// Package natsstore keeps runs in NATS JetStream, for the processes of many machines: each run is a
// subject of a stream, and of two writers of the same run one is stopped. It is a [runstore.Store].
//
//	nc, err := nats.Connect(url)
//	…
//	js, err := jetstream.New(nc)
//	…
//	err = natsstore.Create(ctx, js, natsstore.Options{Replicas: 3})
//	…
//	store, err := natsstore.Open(ctx, js, natsstore.Options{})
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(store)}})
//
// # Messages
//
// An append is one message with the lines of its events, so it is stored whole or not at all. An
// append that is longer than the server's max_payload is an atomic batch of messages (nats-server
// 2.12). A message names the last message of its subject that its writer knows, and the server
// refuses it if the subject has a later one. The first event of a message, and the run's position
// after it, are in its headers:
//
//	subject                        agentevents.BASE64URL-OF-THE-RUN-ID
//	Agentevents-First              sequence of the message's first event
//	Agentevents-Next               one more than the sequence of its last event
//	Agentevents-Begun, -Updated    times of the run's first event, and of the message's last event
//	Agentevents-Terminal           kind of the event that ended the run
//	Agentevents-Claim              token of the latest claim, negative once it was released
//
// # Claims
//
// A claim ([runstore.Claimer]) is a message without events on the run's subject. So the next append
// of the worker before is refused by the server: it expects another last message. How long a claim
// lasts is a key of the bucket agentevents-claims, whose time to live the server measures, in seconds.
//
// # Durability
//
// Append returns when a majority of the replicas has the message, so Commit has nothing to do. A
// server writes a message to its file at once and syncs the file every two minutes by default
// (sync_interval). With three replicas on three machines no acknowledged event is lost while two of
// them keep running. A power failure of all machines at the same time may lose the events since the
// last sync; with sync_interval: always it does not, and each append waits for the disk.
//
// An acknowledgement that is lost is not a loss: the same append again finds its events in the
// stream. The [runstore.Sink] repeats an append that failed.
//
// # Limits
//
// A line, and the headers of its message, must fit into the server's max_payload (1 MiB by default):
// set EmitterOptions.MaxLine to less. A run id has at most 1,500 bytes. A server keeps an entry in
// memory for each subject of a stream, which is each run: [Store.Delete] removes runs.
//
// The documents: the resume spec (storage and resume).
package natsstore
