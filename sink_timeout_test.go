package agentevents

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A door is a sink that hangs while it is shut.
type door struct {
	mu     sync.Mutex
	shut   chan struct{} // nil while it is open
	events []Event
	lines  []string
	closed bool
}

func (g *door) Close() error { g.mu.Lock(); defer g.mu.Unlock(); g.closed = true; return nil }

func (g *door) WriteEvent(context.Context, Event) error { panic("a LineSink") }

func (g *door) WriteLine(_ context.Context, ev Event, line []byte) error {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events, g.lines = append(g.events, ev), append(g.lines, string(line))
	return nil
}

func (g *door) close() { g.mu.Lock(); g.shut = make(chan struct{}); g.mu.Unlock() }

func (g *door) open() { g.mu.Lock(); close(g.shut); g.shut = nil; g.mu.Unlock() }

// hanging returns a run whose second sink is a door, and the errors that OnError was told.
func hanging(t *testing.T, wrap func(Sink) Sink) (*Run, *sinkLog, *door, func() []error) {
	var mu sync.Mutex
	var told []error
	g, last := &door{}, &sinkLog{}
	e, err := NewEmitter(EmitterOptions{
		Sinks:   []Sink{wrap(g), last},
		OnError: func(err error) { mu.Lock(); told = append(told, err); mu.Unlock() },
	})
	require.NoError(t, err)
	r, err := e.Run("r")
	require.NoError(t, err)
	require.NoError(t, r.Emit(t.Context(), &RunStarted{}))
	return r, last, g, func() []error { mu.Lock(); defer mu.Unlock(); out := told; told = nil; return out }
}

// A required sink without a limit is told by name, run and event within seconds, once; other
// runs go on, and the event is there when it returns.
func TestHangingSinkIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, last, g, told := hanging(t, func(s Sink) Sink { return s })
		g.close()
		done := make(chan error)
		go func() { done <- r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "a", Value: "1"}) }()
		time.Sleep(4 * time.Second)
		require.Empty(t, told())
		time.Sleep(4 * time.Second)
		var failed *SinkError
		errs := told()
		require.Len(t, errs, 1)
		require.ErrorAs(t, errs[0], &failed)
		require.ErrorIs(t, errs[0], ErrSinkHangs)
		require.Equal(t, SinkError{Sink: "*agentevents.door", RunID: "r", Sequence: 1, Err: failed.Err}, *failed)
		time.Sleep(time.Hour)
		require.Empty(t, told())
		g.open()
		require.NoError(t, <-done)
		require.Len(t, last.events, 2)
		time.Sleep(time.Minute)
		require.False(t, r.s.e.watching.Load(), "nobody looks when nothing is emitted")
		g.close() // and again
		go func() { done <- r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "a", Value: "2"}) }()
		time.Sleep(8 * time.Second)
		require.Len(t, told(), 1)
		g.open()
		require.NoError(t, <-done)
	})
}

// A sink with a limit stops nobody: it is set aside, other sinks get all events, and it is
// taken back when it returns, with the number of events that it has missed.
func TestHangingSinkIsSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		wrap     func(Sink) Sink
		limit    time.Duration
		required bool
	}{
		"best effort":                 {BestEffort, 5 * time.Second, false},
		"required":                    {func(s Sink) Sink { return Timeout(s, time.Second) }, time.Second, true},
		"best effort, another limit":  {func(s Sink) Sink { return BestEffort(Timeout(s, 2*time.Second)) }, 2 * time.Second, false},
		"another limit, inside other": {func(s Sink) Sink { return Timeout(BestEffort(WithoutDeltas(s)), 3*time.Second) }, 3 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, last, g, told := hanging(t, c.wrap)
				g.close()
				emit := func(value JSON) error {
					return r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "a", Value: value})
				}
				began := time.Now()
				first := emit("1")
				require.Equal(t, c.limit, time.Since(began))
				require.Equal(t, c.required, errors.Is(first, ErrSinkHangs))
				for range 100 {
					require.Equal(t, c.required, errors.Is(emit("2"), ErrSinkHangs))
				}
				require.Equal(t, c.limit, time.Since(began), "nobody waits")
				require.Len(t, last.events, 102)
				time.Sleep(time.Minute)
				errs := told()
				require.ErrorIs(t, errs[0], ErrSinkHangs)
				require.Len(t, errs, map[bool]int{true: 101, false: 1}[c.required])
				require.Len(t, g.events, 1)
				g.open()
				synctest.Wait()
				require.Equal(t, []string{last.lines[0], last.lines[1]}, g.lines, "its line is whole")
				back := told()
				require.Len(t, back, 1)
				require.ErrorContains(t, back[0], "has missed 100 events")
				require.NoError(t, emit("3"))
				require.Equal(t, last.lines[102], g.lines[2])
				require.Empty(t, told())
				require.NoError(t, r.s.e.Close(t.Context()))
			})
		})
	}
}

// A sink that hangs is not closed: Close waits for it for its limit, names it, and may be called
// again.
func TestCloseWaitsForAHangingSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, g, told := hanging(t, func(s Sink) Sink { return BestEffort(Timeout(s, time.Second)) })
		g.close()
		for i := range 3 {
			require.NoError(t, r.Emit(t.Context(), &StatePatched{Op: PatchSet, Path: "a", Value: JSON(strconv.Itoa(i))}))
		}
		for range 2 {
			began := time.Now()
			err := r.s.e.Close(t.Context())
			require.Equal(t, time.Second, time.Since(began))
			require.ErrorIs(t, err, ErrSinkHangs)
			require.ErrorContains(t, err, "door: the sink does not return: an event is still being written to it, and it has missed 2 events")
			require.False(t, g.closed)
			told()
		}
		time.AfterFunc(time.Second/2, g.open)
		require.NoError(t, r.s.e.Close(t.Context()))
		require.True(t, g.closed)
		require.ErrorContains(t, told()[0], "has missed 2 events")
	})
}
