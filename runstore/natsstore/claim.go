package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentevents/agentevents/runstore"
)

// A claim has two parts. The key in the bucket of claims is there while its lease lasts: it keeps
// other workers from claiming the run. The message on the run's subject ends the claim before: an
// append that does not know it is refused. The message decides. A worker that stops between the two
// leaves a key that the server removes.

// A lease is the value of a key.
type lease struct {
	Token  int64         `json:"token"`
	Worker []byte        `json:"worker"` // it may be no UTF-8
	Lease  time.Duration `json:"lease"`

	revision uint64    // of the key; 0 without one
	until    time.Time // by the server's clock
}

// accepts reports whether the run may be written with a token, or 0.
func (t tail) accepts(token uint64) bool {
	if token == 0 {
		return t.claim <= 0
	}
	return t.claim > 0 && uint64(t.claim) == token
}

// Claim implements [runstore.Claimer]. The server measures leases, in seconds: others are rounded up.
func (s *Store) Claim(ctx context.Context, c runstore.Claim) (runstore.Claim, error) {
	if err := runstore.CheckClaim(c); err != nil {
		return c, err
	}
	ctx, done, err := s.begin(ctx)
	defer done()
	doing, change := "claiming", s.claim
	switch {
	case c.Token > 0 && c.Lease > 0:
		doing, change = "renewing the claim of", s.renew
	case c.Token > 0:
		doing, change = "releasing the claim of", s.release
	}
	switch {
	case err != nil:
	case len(c.RunID) > maxRunID:
		err = fmt.Errorf("%w: its id has %d bytes, legal: up to %d", runstore.ErrRefused, len(c.RunID), maxRunID)
	case c.Token > math.MaxInt64:
		err = s.holder(ctx, c.RunID)
	default:
		err = change(ctx, &c)
	}
	return c, s.failed(err, doing, c.RunID)
}

// holder returns who has a run, as an error.
func (s *Store) holder(ctx context.Context, runID string) error {
	l, err := s.lease(ctx, runID)
	if err != nil {
		return err
	}
	return l.held(runID)
}

// lease returns the lease of a run. Its revision is 0 without one.
func (s *Store) lease(ctx context.Context, runID string) (l lease, err error) {
	entry, err := s.claims.Get(ctx, s.key(runID))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(entry.Value(), &l); err != nil {
		return l, fmt.Errorf("key %s of the claims: %w", entry.Key(), err)
	}
	l.revision, l.until = entry.Revision(), entry.Created().Add(l.Lease).UTC()
	return l, nil
}

// held returns who has the run, as an error.
func (l *lease) held(runID string) error {
	return &runstore.ClaimError{RunID: runID, Worker: string(l.Worker), Until: l.until}
}

func (s *Store) key(runID string) string { return s.subject(runID)[len(s.prefix):] }

// claim claims a run.
func (s *Store) claim(ctx context.Context, c *runstore.Claim) error {
	c.Lease = (c.Lease + time.Second - 1).Truncate(time.Second)
	l, err := s.lease(ctx, c.RunID)
	if err != nil {
		return err
	}
	if l.revision != 0 {
		return l.held(c.RunID)
	}
	t, err := s.tail(ctx, c.RunID)
	if err != nil {
		return err
	}
	if t.Terminal != "" {
		return runstore.ErrEnded
	}
	token := max(t.claim, -t.claim) + 1
	revision, err := s.claims.Create(ctx, s.key(c.RunID), value(c, token), jetstream.KeyTTL(c.Lease))
	if err != nil {
		if errors.Is(err, jetstream.ErrKeyExists) {
			return s.holder(ctx, c.RunID)
		}
		return err
	}
	if err = s.mark(ctx, c.RunID, t, token); err == nil {
		c.Token = uint64(token)
		c.Until, err = s.until(ctx, c)
		return err
	}
	// A key without a claim would keep others out for its lease.
	gone := s.claims.Delete(ctx, s.key(c.RunID), jetstream.LastRevision(revision))
	if gone != nil && !errors.Is(err, runstore.ErrClaimed) {
		err = errors.Join(err, gone)
	}
	return err
}

// mark gives a claim, or releases it if it is negative. t is the run's position as far as it is known.
func (s *Store) mark(ctx context.Context, runID string, t tail, claim int64) error {
	for {
		m := &nats.Msg{Subject: s.subject(runID), Header: header(t.Next, &t.RunInfo, claim)}
		seq, err := s.publish(ctx, []*nats.Msg{m}, t.seq)
		if err == nil {
			t.seq, t.claim = seq, claim
			s.keep(runID, t)
			return nil
		}
		if !wrongLast(err) {
			return err
		}
		if t, err = s.tail(ctx, runID); err != nil {
			return err
		}
		switch {
		case claim < 0 && t.claim != -claim:
			return nil // it was lost or released meanwhile
		case claim > 0 && max(t.claim, -t.claim) >= claim:
			return s.holder(ctx, runID)
		case claim > 0 && t.Terminal != "":
			return runstore.ErrEnded
		}
	}
}

func value(c *runstore.Claim, token int64) []byte {
	// A lease has no value that JSON lacks.
	text, _ := json.Marshal(lease{Token: token, Worker: []byte(c.Worker), Lease: c.Lease})
	return text
}

// until returns the end of a lease by the server's clock.
func (s *Store) until(ctx context.Context, c *runstore.Claim) (time.Time, error) {
	l, err := s.lease(ctx, c.RunID)
	return l.until, err
}

// renew writes the key anew, or makes it again.
func (s *Store) renew(ctx context.Context, c *runstore.Claim) error {
	c.Lease = (c.Lease + time.Second - 1).Truncate(time.Second)
	t, err := s.tail(ctx, c.RunID)
	if err != nil {
		return err
	}
	l, err := s.lease(ctx, c.RunID)
	switch {
	case err != nil:
		return err
	case !t.accepts(c.Token), l.revision != 0 && l.Token != t.claim: // or another worker is about to have it
		return l.held(c.RunID)
	case l.revision == 0:
		_, err = s.claims.Create(ctx, s.key(c.RunID), value(c, t.claim), jetstream.KeyTTL(c.Lease))
	default:
		_, err = s.js.Publish(ctx, "$KV."+s.claims.Bucket()+"."+s.key(c.RunID), value(c, t.claim),
			jetstream.WithExpectLastSequencePerSubject(l.revision), jetstream.WithMsgTTL(c.Lease))
	}
	if errors.Is(err, jetstream.ErrKeyExists) || wrongLast(err) {
		return s.holder(ctx, c.RunID)
	}
	if err == nil {
		c.Until, err = s.until(ctx, c)
	}
	return err
}

// release gives a run back.
func (s *Store) release(ctx context.Context, c *runstore.Claim) error {
	t, err := s.tail(ctx, c.RunID)
	if err != nil || !t.accepts(c.Token) {
		return err
	}
	l, err := s.lease(ctx, c.RunID)
	if err == nil {
		err = s.mark(ctx, c.RunID, t, -t.claim)
	}
	if err != nil || l.revision == 0 || l.Token != t.claim {
		return err
	}
	err = s.claims.Delete(ctx, s.key(c.RunID), jetstream.LastRevision(l.revision))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) { // another worker has it
		return nil
	}
	return err
}
