package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentevents/agentevents/logfile"
	"github.com/agentevents/agentevents/runstore"
	"github.com/agentevents/agentevents/runstore/natsstore"
	"github.com/agentevents/agentevents/runstore/pgstore"
)

// open opens the store of an address.
func open(ctx context.Context, address string) (store runstore.Claimer, end func() error, err error) {
	switch {
	case strings.HasPrefix(address, "postgres://"):
		return openPostgres(ctx, address)
	case strings.HasPrefix(address, "nats://"):
		return openNATS(ctx, address)
	}
	return openFile(ctx, address)
}

// openFile waits until no other process has the store open. A process that is killed leaves it.
func openFile(ctx context.Context, dir string) (runstore.Claimer, func() error, error) {
	for {
		store, err := runstore.Open(dir, runstore.Options{})
		if err == nil {
			return store, store.Close, nil
		}
		if !errors.Is(err, logfile.ErrLocked) {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func openPostgres(ctx context.Context, address string) (runstore.Claimer, func() error, error) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(8)
	if err := pgstore.Create(ctx, db); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return pgstore.New(db, pgstore.Options{}), db.Close, nil
}

func openNATS(ctx context.Context, address string) (runstore.Claimer, func() error, error) {
	nc, err := nats.Connect(address, nats.MaxReconnects(-1))
	if err != nil {
		return nil, nil, err
	}
	end := func() error { nc.Close(); return nil }
	js, err := jetstream.New(nc)
	if err == nil {
		err = natsstore.Create(ctx, js, natsstore.Options{})
	}
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	store, err := natsstore.Open(ctx, js, natsstore.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return store, end, nil
}
