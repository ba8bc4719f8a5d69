package runstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
)

// A Worker is a [Store] for one of several workers that share the runs of a [Claimer]. It writes
// only runs that it has claimed, and renews its claims until they are released. Give it to
// [NewSink]. Its methods may be called concurrently. A Worker comes from [NewWorker].
//
//	w, err := runstore.NewWorker(store, "host-7", 30*time.Second)
//	…
//	ctx, err := w.Claim(ctx, runID) // ErrClaimed: another worker has the run; ErrEnded: it has ended
//	…
//	restored, err := runstore.Restore(ctx, w, runID, agentevents.FoldOptions{})
//	run, err := em.Resume(restored.Snapshot)
//	… // work with ctx, which is cancelled when the claim is lost
//	err = w.Release(ctx, runID)
type Worker struct {
	store Claimer
	name  string
	lease time.Duration
	base  context.Context // ends with Close
	end   context.CancelFunc
	all   sync.WaitGroup // of the goroutines that renew

	mu   sync.Mutex
	held map[string]*held
}

// held is a claim of a worker.
type held struct {
	claim Claim
	until time.Time       // the earliest end of the lease by the clock of this process; its goroutine has it
	over  context.Context // ends with the claim
	end   context.CancelFunc
	told  context.CancelCauseFunc // ends the context of the caller
}

// NewWorker returns a worker. The name is for people, who read it in errors of other workers: the
// host and the process, for example. The lease is the time after which others may go on with the
// runs of a worker that is gone; it is renewed each third of it. It should be longer than the
// store is away when a server is replaced. Less than a second is an error. A goroutine for each
// claim ends with the claim, or at Close.
func NewWorker(s Claimer, name string, lease time.Duration) (*Worker, error) {
	switch {
	case s == nil:
		return nil, errors.New("runstore: the worker has no store")
	case name == "":
		return nil, errors.New("runstore: the worker has no name")
	case lease < time.Second:
		return nil, fmt.Errorf("runstore: the lease is %v, legal: a second or more", lease)
	}
	w := &Worker{store: s, name: name, lease: lease, held: map[string]*held{}}
	w.base, w.end = context.WithCancel(context.Background())
	return w, nil
}

// Claim claims a run, which may be new. The error is a [*ClaimError] while another worker has it,
// also this one, and wraps [ErrEnded] if it has ended. The context that it returns derives from
// ctx. It ends when the claim does: when it is released or lost, or could not be renewed in time,
// so that another worker may have the run. Then context.Cause is a [*ClaimError], and appends to
// the run fail with one.
func (w *Worker) Claim(ctx context.Context, runID string) (context.Context, error) {
	if w.base == nil || w.base.Err() != nil {
		return ctx, fmt.Errorf("runstore: claiming a run: %w", agentevents.ErrClosed)
	}
	at := time.Now()
	c, err := w.store.Claim(ctx, Claim{RunID: runID, Worker: w.name, Lease: w.lease})
	if err != nil {
		return ctx, err
	}
	if old := w.claimOf(runID); old != nil { // its lease has passed, and it did not know yet
		w.drop(old, &ClaimError{runID, w.name, c.Until})
	}
	h := &held{claim: c, until: at.Add(w.lease)}
	h.over, h.end = context.WithCancel(w.base)
	ctx, h.told = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[runID] = h
	w.all.Go(func() { w.renew(h) })
	return ctx, nil
}

// renew renews a claim until it ends.
func (w *Worker) renew(h *held) {
	tick := time.NewTicker(w.lease / 3)
	defer tick.Stop()
	left := time.NewTimer(w.lease)
	defer left.Stop()
	for {
		select {
		case <-h.over.Done():
			return
		case <-left.C:
			w.drop(h, &ClaimError{RunID: h.claim.RunID})
			return
		case <-tick.C:
		}
		at := time.Now()
		ctx, cancel := context.WithDeadline(h.over, h.until)
		_, err := w.store.Claim(ctx, h.claim)
		cancel()
		if errors.Is(err, ErrClaimed) {
			w.drop(h, err)
			return
		}
		if err == nil { // else again at the next tick
			h.until = at.Add(w.lease)
			left.Reset(time.Until(h.until))
		}
	}
}

// drop ends a claim, unless a later one is there.
func (w *Worker) drop(h *held, cause error) {
	h.end()
	h.told(cause)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[h.claim.RunID] == h {
		delete(w.held, h.claim.RunID)
	}
}

func (w *Worker) claimOf(runID string) *held {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[runID]
}

// Release gives a run back, so that another worker may claim it at once. It does nothing without a
// claim. After an error the claim ends with its lease.
func (w *Worker) Release(ctx context.Context, runID string) error {
	h := w.claimOf(runID)
	if h == nil {
		return nil
	}
	h.end()
	c := h.claim
	c.Lease = 0
	_, err := w.store.Claim(ctx, c)
	w.drop(h, &ClaimError{RunID: runID}) // now, as ctx may be the context of the claim
	return err
}

// Close releases the claims and ends their contexts. The store stays open.
func (w *Worker) Close() error {
	if w.base == nil {
		return nil
	}
	w.end()
	w.all.Wait()
	w.mu.Lock()
	ids := make([]string, 0, len(w.held))
	for id := range w.held {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), w.lease) // then they have ended anyway
	defer cancel()
	var errs []error
	for _, id := range ids {
		errs = append(errs, w.Release(ctx, id))
	}
	return errors.Join(errs...)
}

// Append implements [Store]. The error is a [*ClaimError] for a run that the worker has not claimed.
// It names the worker that has the run, unless the store fails.
func (w *Worker) Append(ctx context.Context, runID string, expect uint64, entries ...Entry) error {
	h := w.claimOf(runID)
	if h == nil {
		return w.refuse(ctx, runID)
	}
	err := w.store.AppendClaimed(ctx, h.claim, expect, entries...)
	if errors.Is(err, ErrClaimed) {
		w.drop(h, err)
	}
	return err
}

// refuse returns the error of a run that the worker has not claimed. An append without a token and
// without entries asks the store who has the run.
func (w *Worker) refuse(ctx context.Context, runID string) error {
	if w.store != nil {
		if err := w.store.AppendClaimed(ctx, Claim{RunID: runID}, 0); errors.Is(err, ErrClaimed) {
			return err
		}
	}
	return &ClaimError{RunID: runID}
}

// Commit implements [Store].
func (w *Worker) Commit(ctx context.Context) error {
	if w.store == nil {
		return agentevents.ErrZeroValue
	}
	return w.store.Commit(ctx)
}

// Load implements [Store]. It reads any run.
func (w *Worker) Load(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	if w.store == nil {
		return none[Entry]
	}
	return w.store.Load(ctx, runID, from)
}

// Watch implements [Store]. It reads any run.
func (w *Worker) Watch(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	if w.store == nil {
		return none[Entry]
	}
	return w.store.Watch(ctx, runID, from)
}

// Run implements [Store].
func (w *Worker) Run(ctx context.Context, runID string) (RunInfo, error) {
	if w.store == nil {
		return RunInfo{}, agentevents.ErrZeroValue
	}
	return w.store.Run(ctx, runID)
}

// Runs implements [Store]. It lists the runs of all workers.
func (w *Worker) Runs(ctx context.Context, after string) iter.Seq2[RunInfo, error] {
	if w.store == nil {
		return none[RunInfo]
	}
	return w.store.Runs(ctx, after)
}

// SaveSnapshot implements [Store]. A snapshot is a cache, so it needs no claim.
func (w *Worker) SaveSnapshot(ctx context.Context, snapshot *agentevents.RunSnapshot) error {
	if w.store == nil {
		return agentevents.ErrZeroValue
	}
	return w.store.SaveSnapshot(ctx, snapshot)
}

// LoadSnapshot implements [Store].
func (w *Worker) LoadSnapshot(ctx context.Context, runID string) (*agentevents.RunSnapshot, error) {
	if w.store == nil {
		return nil, agentevents.ErrZeroValue
	}
	return w.store.LoadSnapshot(ctx, runID)
}

// none yields the error of the zero Worker.
func none[T any](yield func(T, error) bool) {
	var zero T
	yield(zero, agentevents.ErrZeroValue)
}
