package natsstore_test

import (
	"context"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
)

// A program writes its runs to JetStream. Another process goes on with a run that it left open.
func Example() {
	nc, err := nats.Connect("nats://localhost:4222")
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := natsstore.Create(ctx, js, natsstore.Options{Replicas: 3}); err != nil {
		log.Fatal(err)
	}
	store, err := natsstore.Open(ctx, js, natsstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{runstore.NewSink(store)}})
	if err != nil {
		log.Fatal(err)
	}
	defer em.Close(ctx)
	restored, err := runstore.Restore(ctx, store, "release-7", agentevents.FoldOptions{})
	if err != nil {
		log.Fatal(err)
	}
	run, err := em.Resume(restored.Snapshot)
	if err != nil {
		log.Fatal(err)
	}
	run.Emit(ctx, &agentevents.RunResumed{})
}
