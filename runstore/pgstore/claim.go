package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// The conditions under which an append with a token, or 0, is accepted. A run that begins has no row
// that the append and a claim could both change, so the append locks the row of its claim.
const (
	mayBegin = `CASE WHEN $9::bigint > 0 THEN EXISTS (SELECT FROM mine)
		ELSE NOT EXISTS (SELECT FROM agentevents_claims WHERE run_id = $1) END`
	mine    = `mine AS (SELECT 1 FROM agentevents_claims WHERE run_id = $1 AND token = $9::bigint FOR SHARE)`
	mayGoOn = `CASE WHEN $9::bigint > 0 THEN r.claim <= $9::bigint AND r.claim > -$9::bigint ELSE r.claim <= 0 END`
)

// accepts is these conditions for a run's next sequence and claim. The claim of a run that has not
// begun is the token in the table of claims.
func accepts(next uint64, claim, token int64) bool {
	switch {
	case token == 0:
		return claim <= 0
	case next == 0:
		return claim == token
	}
	return claim <= token && claim > -token
}

// position returns the next sequence of a run, or 0, and its claim.
func (s *Store) position(ctx context.Context, runID string) (next uint64, claim int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT next, claim FROM agentevents_runs WHERE run_id = $1 UNION ALL
		SELECT 0, COALESCE((SELECT token FROM agentevents_claims WHERE run_id = $1), 0) ORDER BY next DESC LIMIT 1`, key(runID)).Scan(&next, &claim)
	return next, claim, err
}

// Claim implements [runstore.Claimer]. The server's clock measures leases.
func (s *Store) Claim(ctx context.Context, c runstore.Claim) (runstore.Claim, error) {
	if err := runstore.CheckClaim(c); err != nil {
		return c, err
	}
	doing := "claiming"
	switch {
	case c.Token > 0 && c.Lease > 0:
		doing = "renewing the claim of"
	case c.Token > 0:
		doing = "releasing the claim of"
	}
	if err := s.failed(nil, doing, c.RunID); err != nil {
		return c, err
	}
	if n := len(key(c.RunID)); n > maxColumn {
		return c, fmt.Errorf("%w: its id has %d bytes, legal: up to %d", runstore.ErrRefused, n, maxColumn)
	}
	var err error
	switch {
	case c.Token > math.MaxInt64:
		err = s.holder(ctx, c.RunID)
	case c.Lease == 0:
		err = s.release(ctx, c)
	case c.Token > 0:
		err = s.renew(ctx, &c)
	default:
		err = s.claim(ctx, &c)
	}
	return c, s.failed(err, doing, c.RunID)
}

// holder returns who has a run, as an error.
func (s *Store) holder(ctx context.Context, runID string) error {
	held, _, err := s.lease(ctx, runID)
	if err != nil {
		return err
	}
	return held
}

// lease returns who has a run, and whether its lease lasts.
func (s *Store) lease(ctx context.Context, runID string) (held *runstore.ClaimError, lasts bool, err error) {
	held = &runstore.ClaimError{RunID: runID}
	err = s.db.QueryRowContext(ctx,
		`SELECT worker, until, until > clock_timestamp() FROM agentevents_claims WHERE run_id = $1`,
		key(runID)).Scan(&held.Worker, &held.Until, &lasts)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, false, err
	}
	held.Worker, held.Until = unkey(held.Worker), held.Until.UTC()
	return held, lasts, nil
}

func (s *Store) release(ctx context.Context, c runstore.Claim) error {
	_, err := s.db.ExecContext(ctx, `WITH gone AS (DELETE FROM agentevents_claims WHERE run_id = $1 AND token = $2::bigint RETURNING run_id)
		UPDATE agentevents_runs r SET claim = -$2::bigint FROM gone WHERE r.run_id = gone.run_id AND r.claim = $2::bigint`, key(c.RunID), int64(c.Token))
	return err
}

func (s *Store) renew(ctx context.Context, c *runstore.Claim) error {
	err := s.db.QueryRowContext(ctx, `UPDATE agentevents_claims SET until = clock_timestamp() + $3::bigint * interval '1 microsecond'
		WHERE run_id = $1 AND token = $2::bigint RETURNING until`, key(c.RunID), int64(c.Token), microseconds(c.Lease)).Scan(&c.Until)
	if errors.Is(err, sql.ErrNoRows) {
		return s.holder(ctx, c.RunID)
	}
	return err
}

// microseconds rounds a lease up.
func microseconds(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func (s *Store) claim(ctx context.Context, c *runstore.Claim) error {
	if held, lasts, err := s.lease(ctx, c.RunID); err != nil || lasts { // most questions need no transaction
		if err == nil {
			err = held
		}
		return err
	}
	for {
		done, err := s.tryClaim(ctx, c)
		if done || err != nil {
			return err
		}
	}
}

// tryClaim claims a run. It reports false if another claim was given and released meanwhile.
func (s *Store) tryClaim(ctx context.Context, c *runstore.Claim) (bool, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	var token int64
	err = tx.QueryRowContext(ctx, `INSERT INTO agentevents_claims AS old (run_id, worker, until) VALUES ($1, $2, clock_timestamp() + $3::bigint * interval '1 microsecond')
		ON CONFLICT (run_id) DO UPDATE SET token = DEFAULT, worker = excluded.worker, until = clock_timestamp() + $3::bigint * interval '1 microsecond'
		WHERE old.until <= clock_timestamp() RETURNING token, until`, key(c.RunID), key(c.Worker), microseconds(c.Lease)).Scan(&token, &c.Until)
	if errors.Is(err, sql.ErrNoRows) {
		_ = tx.Rollback() // its connection is needed
		return false, s.holder(ctx, c.RunID)
	}
	if err != nil {
		return false, err
	}
	var terminal string
	var latest int64
	// It waits for an append that is on its way, and ends those that begin later.
	err = tx.QueryRowContext(ctx, `UPDATE agentevents_runs SET claim = CASE WHEN abs(claim) < $2::bigint THEN $2::bigint ELSE claim END
		WHERE run_id = $1 RETURNING terminal, claim`, key(c.RunID), token).Scan(&terminal, &latest)
	switch {
	case errors.Is(err, sql.ErrNoRows): // it has not begun
	case err != nil:
		return false, err
	case terminal != "":
		return false, runstore.ErrEnded
	case latest != token:
		return false, nil
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	c.Token, c.Until = uint64(token), c.Until.UTC()
	return true, nil
}

// AppendClaimed implements [runstore.Claimer].
func (s *Store) AppendClaimed(ctx context.Context, c runstore.Claim, expect uint64, entries ...runstore.Entry) error {
	if c.Token > math.MaxInt64 {
		if s.isClosed() {
			return s.failed(agentevents.ErrClosed, "appending to", c.RunID)
		}
		return s.holder(ctx, c.RunID)
	}
	return s.appendAs(ctx, c.RunID, int64(c.Token), expect, entries)
}
