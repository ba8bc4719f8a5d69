package turns

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errOwn = errors.New("own")

func fails(context.Context) error { return errOwn }

func TestNext(t *testing.T) {
	for _, ctx := range []context.Context{context.Background(), t.Context()} {
		turns := New()
		finished, err := turns.Next(ctx, "A", fails)
		require.True(t, finished)
		require.ErrorIs(t, err, errOwn)
		finished, err = turns.Last(ctx, "B", fails)
		require.True(t, finished)
		require.ErrorIs(t, err, errOwn)
		for _, call := range []func(context.Context, string, func(context.Context) error) (bool, error){turns.Next, turns.Last} {
			finished, err = call(ctx, "C", func(context.Context) error { t.Error("it was the last call"); return nil })
			require.True(t, finished)
			require.NoError(t, err)
		}
	}
	_, err := New().Next(t.Context(), "A", func(context.Context) error { runtime.Goexit(); return nil })
	require.ErrorIs(t, err, ErrGoexit)
}

func TestACallThatHangsHoldsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, open := New(), make(chan struct{})
		var calls atomic.Int32
		hangs := func(context.Context) error { calls.Add(1); <-open; return errOwn }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		for _, want := range []time.Duration{10 * time.Second, 10*time.Second + LastChance} {
			finished, err := turns.Next(ctx, "Flush", hangs)
			require.False(t, finished)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "Flush did not finish")
			require.Equal(t, want, time.Since(began), "one whose context has ended has a last chance")
		}
		require.EqualValues(t, 1, calls.Load(), "the second one waits for the first")
		close(open)
		synctest.Wait()
		finished, err := turns.Next(t.Context(), "Flush", func(context.Context) error { return nil })
		require.True(t, finished)
		require.ErrorIs(t, err, errOwn, "the error of the call that nobody waited for")
		_, err = turns.Next(t.Context(), "Flush", func(context.Context) error { return nil })
		require.NoError(t, err)
	})
}

func TestAContextsOwnErrorIsNotReportedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		finished, _ := turns.Next(ctx, "Flush", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		})
		require.False(t, finished)
		_, err := turns.Next(t.Context(), "Flush", func(context.Context) error { return nil })
		require.NoError(t, err)
	})
}

func TestGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	same, stop := Grace(ctx)
	stop()
	require.Equal(t, ctx, same)
	require.NoError(t, ctx.Err())
	cancel()
	other, stop := Grace(ctx)
	defer stop()
	require.NoError(t, other.Err())
	_, bounded := other.Deadline()
	require.True(t, bounded)
}
