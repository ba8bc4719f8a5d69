package runstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/agentevents/agentevents"
)

// This file has the parts that both stores share.

// A signal wakes all who wait for it. The zero signal is ready for use.
type signal struct {
	mu sync.Mutex
	c  chan struct{} // nil when nobody waits
}

// next returns a channel that the next send closes.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// watch is Watch for a store that sends the signal when something was committed.
func watch(ctx context.Context, load func(from uint64) iter.Seq2[Entry, error],
	committed *signal, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for ctx.Err() == nil {
			next := committed.next() // before the look, or an event in between wakes nobody
			for e, err := range load(from) {
				if err != nil {
					if ctx.Err() == nil && !errors.Is(err, agentevents.ErrClosed) {
						yield(Entry{}, err)
					}
					return
				}
				if !yield(e, nil) {
					return
				}
				from = e.Event.Sequence + 1
			}
			select {
			case <-next:
			case <-ctx.Done():
			}
		}
	}
}

// sorted returns the ids of runs in order. ids are the result of the last call, and runs never go
// away: a caller that reads page after page does not wait for a sort each time.
func sorted[Run any](ids []string, runs map[string]Run) []string {
	if len(ids) == len(runs) {
		return ids
	}
	return slices.Sorted(maps.Keys(runs))
}

// listRuns yields the runs after one, and reports whether it has yielded all. The ids are in order.
func listRuns(ctx context.Context, ids []string, after string,
	known func(id string) (RunInfo, error), yield func(RunInfo, error) bool) bool {
	i, found := slices.BinarySearch(ids, after)
	if found {
		i++
	}
	for _, id := range ids[i:] {
		info, err := known(id)
		if err == nil {
			err = ctx.Err()
		}
		if !yield(info, err) || err != nil {
			return false
		}
	}
	return true
}

func parseSnapshot(text []byte) (*agentevents.RunSnapshot, error) {
	s := new(agentevents.RunSnapshot)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("runstore: the snapshot is damaged: %w", err)
	}
	return s, nil
}
