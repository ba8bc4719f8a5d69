package runstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Memory is a store that ends with the process. The zero Memory is empty and ready for
// use. It must not be copied.
type Memory struct {
	mu     sync.Mutex
	runs   map[string]*memoryRun
	ids    []string // of runs, as Runs had them last
	claims claims
	signal signal
}

type memoryRun struct {
	info     RunInfo
	entries  []Entry // only appended to
	snapshot []byte
	covers   uint64 // the NextSequence of snapshot
}

// Append implements [Store].
func (m *Memory) Append(ctx context.Context, runID string, expect uint64, entries ...Entry) error {
	return m.AppendClaimed(ctx, Claim{RunID: runID}, expect, entries...)
}

// AppendClaimed implements [Claimer].
func (m *Memory) AppendClaimed(ctx context.Context, c Claim, expect uint64, entries ...Entry) error {
	runID := c.RunID
	return AppendTo(ctx, m, runID, expect, entries, func(expect uint64, entries []Entry) (uint64, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if err := m.claims.refuse(runID, c.Token); err != nil {
			return 0, err
		}
		r := m.runs[runID]
		if next := r.next(); next != expect || len(entries) == 0 {
			return next, nil
		}
		if r == nil {
			if m.runs == nil {
				m.runs = map[string]*memoryRun{}
			}
			r = &memoryRun{}
			m.runs[runID] = r
		}
		for i := range entries {
			r.info.Add(&entries[i].Event)
		}
		r.entries = append(r.entries, entries...)
		return expect, nil
	})
}

// Claim implements [Claimer].
func (m *Memory) Claim(_ context.Context, c Claim) (Claim, error) {
	if err := CheckClaim(c); err != nil {
		return c, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[c.RunID]
	return m.claims.change(c, r != nil && r.info.Terminal != "")
}

func (r *memoryRun) next() uint64 {
	if r == nil {
		return 0
	}
	return r.info.Next
}

// Commit wakes those who watch.
func (m *Memory) Commit(context.Context) error {
	m.signal.send()
	return nil
}

// Load implements [Store].
func (m *Memory) Load(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		m.mu.Lock()
		var entries []Entry
		if r := m.runs[runID]; r != nil {
			entries = r.entries
		}
		m.mu.Unlock()
		i, _ := slices.BinarySearchFunc(entries, from,
			func(e Entry, from uint64) int { return cmp.Compare(e.Event.Sequence, from) })
		for _, e := range entries[i:] {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Watch implements [Store].
func (m *Memory) Watch(ctx context.Context, runID string, from uint64) iter.Seq2[Entry, error] {
	return watch(ctx, func(from uint64) iter.Seq2[Entry, error] { return m.Load(ctx, runID, from) }, &m.signal, from)
}

// Run implements [Store].
func (m *Memory) Run(_ context.Context, runID string) (RunInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[runID]
	if r == nil {
		return RunInfo{}, fmt.Errorf("%w (run %s)", ErrNoRun, jsonwire.Brief(runID))
	}
	return r.info, nil
}

// Runs implements [Store].
func (m *Memory) Runs(ctx context.Context, after string) iter.Seq2[RunInfo, error] {
	return func(yield func(RunInfo, error) bool) {
		m.mu.Lock()
		m.ids = sorted(m.ids, m.runs)
		ids := m.ids
		m.mu.Unlock()
		listRuns(ctx, ids, after, func(id string) (RunInfo, error) { return m.Run(ctx, id) }, yield)
	}
}

// SaveSnapshot implements [Store].
func (m *Memory) SaveSnapshot(_ context.Context, snapshot *agentevents.RunSnapshot) error {
	if snapshot == nil {
		return CheckSnapshot(nil, 0)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[snapshot.RunID]
	if err := CheckSnapshot(snapshot, r.next()); err != nil {
		return err
	}
	if snapshot.NextSequence >= r.covers {
		r.snapshot, r.covers = snapshot.AppendJSON(nil), snapshot.NextSequence
	}
	return nil
}

// LoadSnapshot implements [Store].
func (m *Memory) LoadSnapshot(_ context.Context, runID string) (*agentevents.RunSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[runID]
	if r == nil || r.snapshot == nil {
		return nil, fmt.Errorf("%w (run %s)", ErrNoSnapshot, jsonwire.Brief(runID))
	}
	return parseSnapshot(r.snapshot)
}
