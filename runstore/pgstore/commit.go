package pgstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/runstore"
)

// An append does not wait for the disk, so a server that crashes may lose it. Appended events are
// therefore kept until a commit has found them durable on the server. Missing events are appended
// again.

// A round has the events that one commit makes durable. Waiting callers share it.
type round struct {
	runs map[string][]recent // by run id
	size int                 // bytes of the lines
	done chan struct{}
	err  error // may be read when done is closed
	left bool  // likewise: the context of whoever committed it has ended, so another one has to
}

func newRound() *round { return &round{runs: map[string][]recent{}, done: make(chan struct{})} }

// recent is an append.
type recent struct {
	token   int64 // of the claim
	expect  uint64
	entries []runstore.Entry
}

// mostUncommitted bounds the bytes of lines that are kept. An append beyond it commits.
const mostUncommitted = 16 << 20

// gather keeps an append for the next commit. It returns how many bytes that has.
func (s *Store) gather(runID string, a recent) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(a.entries) > 0 {
		s.gathering.runs[runID] = append(s.gathering.runs[runID], a)
	}
	for i := range a.entries {
		s.gathering.size += len(a.entries[i].Line)
	}
	return s.gathering.size
}

// uncommitted returns the appends to a run that are not known to be durable.
func (s *Store) uncommitted(runID string) (all []recent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		all = slices.Clone(s.running.runs[runID])
	}
	return append(all, s.gathering.runs[runID]...)
}

// again appends to a run the events that the server may have lost.
func (s *Store) again(ctx context.Context, runID string, lost []recent) error {
	for _, a := range slices.SortedStableFunc(slices.Values(lost),
		func(a, b recent) int { return cmp.Compare(a.expect, b.expect) }) {
		if err := s.append(ctx, runID, a.token, a.expect, a.entries); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements [runstore.Store]. Those who wait share a round trip, and a sync of the
// server's disk.
func (s *Store) Commit(ctx context.Context) error { return s.failed(s.commit(ctx), "committing", "") }

func (s *Store) commit(ctx context.Context) error {
	if s.db == nil {
		return nil // the caller returns ErrClosed
	}
	for {
		s.mu.Lock()
		r := s.gathering
		if len(r.runs) == 0 {
			r = s.running
		}
		s.mu.Unlock()
		if r == nil {
			return nil
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		case s.turn <- struct{}{}:
			s.run(ctx, r)
		}
		select {
		case <-r.done:
			if !r.left || ctx.Err() != nil {
				return r.err
			}
		default: // another round was run
		}
	}
}

// run commits a round, unless that was done. The caller has the turn, which ends.
func (s *Store) run(ctx context.Context, r *round) {
	defer func() { <-s.turn }()
	s.mu.Lock()
	if r != s.gathering {
		s.mu.Unlock()
		return
	}
	s.gathering, s.running = newRound(), r
	s.mu.Unlock()
	taken, err := error(nil), errors.New("the driver has panicked")
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = nil
		if err != nil {
			s.gathering.size += r.size
		}
		for id, appends := range r.runs {
			if err != nil {
				s.gathering.runs[id] = append(appends, s.gathering.runs[id]...)
			} else if w := s.watched[id]; w != nil {
				w.wake()
			}
		}
		r.err, r.left = errors.Join(err, taken), err != nil && ctx.Err() != nil
		close(r.done)
	}()
	taken, err = s.settle(ctx, r)
}

// settle makes the appended events durable, and appends those again that a crash has lost. taken is
// the error for runs with which another writer has gone on meanwhile.
func (s *Store) settle(ctx context.Context, r *round) (taken, err error) {
	for {
		lost, err := s.sync(ctx, r)
		if err != nil || len(lost) == 0 {
			return taken, err
		}
		for _, id := range lost {
			err := s.again(ctx, id, r.runs[id])
			switch {
			case errors.Is(err, agentevents.ErrFenced):
				taken = errors.Join(taken, fmt.Errorf("the server has lost events: %w", err))
				s.mu.Lock()
				delete(r.runs, id)
				s.mu.Unlock()
			case err != nil:
				return taken, err
			}
		}
	}
}

// barrier is a statement whose transaction waits until its own record in the server's log is
// durable, as all before it are; also where somebody has set that transactions do not wait. It
// returns the runs whose last event is not there, as a JSON array, or NULL.
const barrier = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true),
	pg_logical_emit_message(true, 'agentevents', ''),
	(SELECT json_agg(p.run_id) FROM json_to_recordset($1::json) AS p(run_id text, sequence bigint, event_id text)
		WHERE p.event_id IS DISTINCT FROM (SELECT e.event_id FROM agentevents_events e WHERE e.run_id = p.run_id AND e.sequence = p.sequence))`

// sync makes the server's events durable, and returns the runs of which it has lost events.
func (s *Store) sync(ctx context.Context, r *round) ([]string, error) {
	type last struct {
		RunID    string `json:"run_id"`
		Sequence uint64 `json:"sequence"`
		EventID  string `json:"event_id"`
	}
	list := make([]last, 0, len(r.runs))
	for id, appends := range r.runs {
		of := last{RunID: key(id)}
		for _, a := range appends {
			if e := &a.entries[len(a.entries)-1].Event; e.Sequence >= of.Sequence {
				of.Sequence, of.EventID = e.Sequence, key(e.ID)
			}
		}
		list = append(list, of)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var lost []byte
	if err := s.db.QueryRowContext(ctx, barrier, string(text)).Scan(new(any), new(any), &lost); err != nil || lost == nil {
		return nil, err
	}
	var keys []string
	if err := json.Unmarshal(lost, &keys); err != nil {
		return nil, err
	}
	for i := range keys {
		keys[i] = unkey(keys[i])
	}
	return keys, nil
}

// watched wakes who watches a run. Store.mu guards it.
type watched struct {
	watchers int
	woken    chan struct{} // is closed when something of the run is committed
}

func (w *watched) wake() {
	close(w.woken)
	w.woken = make(chan struct{})
}

// watch registers a watcher of a run. woken returns a channel that the next commit closes.
func (s *Store) watch(runID string) (woken func() <-chan struct{}, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[runID]
	if w == nil {
		w = &watched{woken: make(chan struct{})}
		s.watched[runID] = w
	}
	w.watchers++
	woken = func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return w.woken
	}
	return woken, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.watchers--; w.watchers == 0 {
			delete(s.watched, runID)
		}
	}
}
