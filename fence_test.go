package agentevents

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// releasing counts the notices to a sink.
type releasing struct {
	events   []Event
	released []string
	fail     error // of the event with sequence 1 of run r
}

func (r *releasing) WriteEvent(_ context.Context, ev Event) error {
	if r.fail != nil && ev.Sequence >= 1 && ev.RunID == "r" {
		return r.fail
	}
	r.events = append(r.events, ev)
	return nil
}

func (r *releasing) ReleaseRun(_ context.Context, runID string) error {
	r.released = append(r.released, runID)
	return nil
}

// A sink that fences a run closes it, and no later sink gets the event, nor later events.
func TestFenced(t *testing.T) {
	fence := fmt.Errorf("sequence 1 is taken: %w", ErrFenced)
	for _, c := range []struct {
		name  string
		fence func(*releasing) Sink
		after int // events that the later sink gets
		err   error
	}{
		{"required", func(r *releasing) Sink { return r }, 1, ErrFenced},
		{"best effort", func(r *releasing) Sink { return BestEffort(r) }, 5, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, fencer, after := &releasing{}, &releasing{fail: fence}, &releasing{}
			e, err := NewEmitter(EmitterOptions{
				Sinks: []Sink{before, c.fence(fencer), after},
				Follow: func(ev Event) []Event {
					if ev.Kind() == KindStatePatched {
						return []Event{{Payload: &Unknown{Type: "x.follows"}}}
					}
					return nil
				},
				OnError: func(error) {},
			})
			require.NoError(t, err)
			run, err := e.Run("r")
			require.NoError(t, err)
			require.NoError(t, run.Emit(t.Context(), &RunStarted{}))
			err = run.Emit(t.Context(), &StatePatched{Path: "x", Op: "set", Value: "1"})
			require.ErrorIs(t, err, c.err)
			again := run.Emit(t.Context(), &StatePatched{Path: "x", Op: "set", Value: "2"})
			if c.err == nil {
				require.NoError(t, again)
				require.Len(t, after.events, c.after)
				require.Empty(t, after.released)
				return
			}
			require.ErrorContains(t, err, "sequence 1 (not recorded)")
			require.ErrorIs(t, again, ErrClosed)
			require.Len(t, before.events, 2)
			require.Len(t, after.events, c.after)
			for _, s := range []*releasing{before, fencer, after} {
				require.Equal(t, []string{"r"}, s.released)
			}
			_, err = e.Run("r")
			require.ErrorIs(t, err, ErrRunReleased)
			other, err := e.Run("other")
			require.NoError(t, err)
			require.NoError(t, other.Emit(t.Context(), &RunStarted{}))
			require.NoError(t, e.Close(t.Context()))
		})
	}
}

// Held-back text is not delivered once its run is fenced.
func TestFencedStream(t *testing.T) {
	fencer, after := &releasing{}, &releasing{}
	e, err := NewEmitter(EmitterOptions{Sinks: []Sink{fencer, after}, Lifecycle: LifecycleDerived})
	require.NoError(t, err)
	run, err := e.Run("r")
	require.NoError(t, err)
	agent := run.Agent("a")
	require.NoError(t, agent.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, agent.Emit(t.Context(), &TextDelta{Delta: "a text of which the end is held back: sk-ant-api03-"}))
	had := len(after.events)
	fencer.fail = ErrFenced
	require.ErrorIs(t, agent.Emit(t.Context(), &AgentErrored{ErrorType: "x", Message: "x"}), ErrFenced)
	require.NoError(t, e.Close(t.Context()))
	require.Len(t, after.events, had)
	require.Equal(t, []string{"r"}, after.released)
}
