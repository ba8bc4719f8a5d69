package agentevents

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// heldPiece is a text of which the end is held back, as a token may begin there. Pieces
// never make a token together.
const heldPiece = " see sk-proj-"

// An ended run takes late events. The text that its old handle holds back belongs to the run
// that goes on: one writer gives the sequences.
func TestResumeTakesOverHeldText(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			old, log := startRun(t, EmitterOptions{Mode: mode})
			late := func(r *Run, block string) error {
				ev := Event{Payload: &TextDelta{BlockID: block, Delta: heldPiece}}
				if mode == ModeEnforce {
					ev.Marks = MarkLate
				}
				return errOf(r.Record(t.Context(), ev))
			}
			require.NoError(t, late(old, "early"))
			require.NoError(t, old.Emit(t.Context(), &RunCompleted{}))
			require.NoError(t, late(old, "b"))
			next, err := old.s.e.Resume(log.snapshot(t))
			require.NoError(t, err)
			require.NoError(t, late(next, "c"))
			require.ErrorIs(t, late(old, "b"), ErrClosed)
			require.NoError(t, old.Close())
			require.NoError(t, next.Close())
			require.NoError(t, next.s.e.Close(t.Context()))
			requireOneWriter(t, log)
			require.Equal(t, map[string]string{"early": heldPiece, "b": heldPiece, "c": heldPiece}, log.texts())
		})
	}
}

// Text that an ended run holds back is recorded when the emitter closes, though its handle was
// never closed.
func TestCloseRecordsWhatAnEndedRunHoldsBack(t *testing.T) {
	r, log := startRun(t, EmitterOptions{Mode: ModeObserve})
	require.NoError(t, r.Emit(t.Context(), &RunCompleted{}))
	require.NoError(t, r.Emit(t.Context(), &TextDelta{BlockID: "b", Delta: heldPiece}))
	require.NoError(t, r.s.e.Close(t.Context()))
	require.Equal(t, map[string]string{"b": heldPiece}, log.texts())
	requireOneWriter(t, log)
}

// requireOneWriter fails if a sequence is missing or there twice.
func requireOneWriter(t testing.TB, log *sinkLog) {
	t.Helper()
	for i := range log.events {
		require.EqualValues(t, i, log.events[i].Sequence, "%v", said(log.events))
	}
}

// texts returns the texts of the blocks.
func (s *sinkLog) texts() map[string]string {
	texts := map[string]string{}
	for i := range s.events {
		if p, ok := s.events[i].Payload.(*TextDelta); ok {
			texts[p.BlockID] += p.Delta
		}
	}
	return texts
}

// A writerGame plays with the handles of one run.
type writerGame struct {
	e    *Emitter
	log  *sinkLog
	mode Mode

	mu      sync.Mutex // guards the rest
	handles []*Run
	ids     []string // of acknowledged events
	texts   map[string]string
}

func newWriterGame(t testing.TB, mode Mode) *writerGame {
	e, log := startEmitter(t, EmitterOptions{Mode: mode, OnError: func(error) {}})
	r, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	return &writerGame{e: e, log: log, mode: mode, handles: []*Run{r}, texts: map[string]string{}}
}

// step does one thing with a handle, mostly a newer one. block is of the caller alone.
func (g *writerGame) step(r *rand.Rand, block string) error {
	g.mu.Lock()
	h := g.handles[max(r.IntN(len(g.handles)), r.IntN(len(g.handles)))]
	g.mu.Unlock()
	var marks Marks
	if r.IntN(2) == 0 {
		marks = MarkLate
	}
	switch n := r.IntN(20); {
	case n < 9:
		return g.record(h, Event{Marks: marks, Payload: &TextDelta{BlockID: block, Delta: heldPiece}})
	case n < 12:
		return g.record(h, Event{Marks: marks, Payload: &UsageObserved{}})
	case n < 13:
		return g.record(h, Event{Payload: &RunCompleted{}})
	case n < 16:
		return h.Close()
	default:
		return g.resume()
	}
}

func (g *writerGame) record(h *Run, ev Event) error {
	out, err := h.Record(context.Background(), ev)
	var rule *RuleError
	switch {
	case err == nil:
		g.mu.Lock()
		g.ids = append(g.ids, out.ID)
		if p, ok := ev.Payload.(*TextDelta); ok {
			g.texts[p.BlockID] += p.Delta
		}
		g.mu.Unlock()
		return nil
	case errors.Is(err, ErrClosed), errors.As(err, &rule) && g.mode == ModeEnforce:
		return nil
	}
	return err
}

// resume goes on from all that was recorded so far. It is refused for one of four reasons.
func (g *writerGame) resume() error {
	g.log.mu.Lock()
	events := sinkLog{events: slices.Clone(g.log.events)}
	g.log.mu.Unlock()
	runs, err := foldSeq(events.all, FoldOptions{})
	if err != nil {
		return err
	}
	h, err := g.e.Resume(runs[0])
	if err != nil {
		for _, reason := range []string{"is open", "still being recorded", "is stale", ErrClosed.Error()} {
			if strings.Contains(err.Error(), reason) {
				return nil
			}
		}
		return err
	}
	g.mu.Lock()
	g.handles = append(g.handles, h)
	g.mu.Unlock()
	return nil
}

// check closes the handles and the emitter, and looks at the log.
func (g *writerGame) check(t testing.TB, r *rand.Rand) {
	for _, i := range r.Perm(len(g.handles))[:r.IntN(len(g.handles)+1)] {
		require.NoError(t, g.handles[i].Close())
	}
	require.NoError(t, g.e.Close(t.Context()))
	requireOneWriter(t, g.log)
	recorded := map[string]int{}
	for i := range g.log.events {
		recorded[g.log.events[i].ID]++
	}
	for _, id := range g.ids {
		require.Equal(t, 1, recorded[id])
	}
	require.Equal(t, g.texts, g.log.texts())
}

// Whatever is done with old and new handles of a run, no sequence is there twice, and all
// that was acknowledged is there, the texts whole.
func TestHandlesOfOneRun(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			resumed := 0
			for seed := range uint64(400) {
				r := rand.New(rand.NewPCG(seed, 3))
				g := newWriterGame(t, mode)
				for range 40 {
					require.NoError(t, g.step(r, fmt.Sprint("b", r.IntN(2))), "seed %d", seed)
				}
				g.check(t, r)
				resumed += len(g.handles) - 1
			}
			require.Greater(t, resumed, 400)
		})
	}
}

func TestHandlesOfOneRunInGoroutines(t *testing.T) {
	for _, mode := range []Mode{ModeObserve, ModeEnforce} {
		t.Run(mode.String(), func(t *testing.T) {
			for seed := range uint64(10) {
				g := newWriterGame(t, mode)
				errs := make([]error, 16)
				var wg sync.WaitGroup
				for i := range errs {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(i)))
						for range 40 {
							errs[i] = errors.Join(errs[i], g.step(r, fmt.Sprint("b", i)))
						}
					})
				}
				wg.Wait()
				require.NoError(t, errors.Join(errs...))
				g.check(t, rand.New(rand.NewPCG(seed, 0)))
			}
		})
	}
}
