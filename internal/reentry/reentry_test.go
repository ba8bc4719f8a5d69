package reentry

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAwait(t *testing.T) {
	ctx := context.Background()
	var a, b, c Holder
	inA := New(ctx, nil, &a, nil)
	inB := New(ctx, nil, &b, nil)
	inAB := New(inA, nil, &b, Of(inA))
	require.False(t, inA.Await(&a), "its own")
	require.False(t, inAB.Await(&a), "that of the call around it")
	require.True(t, inA.Await(&b))
	require.False(t, inB.Await(&a), "each would wait for the other")
	require.True(t, inB.Await(&c))
	inB.Waited()
	inA.Waited()
	require.True(t, inB.Await(&a))
	require.False(t, New(ctx, nil, &c, nil).Await(&c))

	// Three that wait for each other.
	require.True(t, New(ctx, nil, &c, nil).Await(&b))
	require.False(t, inA.Await(&c))

	var none *Call
	require.True(t, none.Await(&a), "one that holds nothing waits for anything")
	none.Waited()
}

func TestOwner(t *testing.T) {
	ctx := context.Background()
	one, other := new(int), new(int)
	outer := New(ctx, one, nil, nil)
	inner := New(outer, other, nil, outer)
	require.True(t, inner.Inside(one))
	require.True(t, inner.Inside(other))
	require.False(t, outer.Inside(other))
	require.Equal(t, outer, inner.Outer())
	require.Equal(t, any(one), outer.Owner())
	var none *Call
	require.Nil(t, none.Owner())
	require.False(t, none.Inside(one))
	require.Nil(t, Of(ctx))
}

// uncomparable is a context of a type that panics when two of it are compared.
type uncomparable struct {
	context.Context
	_ []int
}

func TestContext(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
	c := New(ctx, nil, nil, nil)
	require.True(t, c.MadeOf(ctx))
	require.False(t, c.MadeOf(t.Context()))
	cancel(errors.New("cause"))
	require.NoError(t, c.Err(), "values only")
	require.Equal(t, 1, c.Value(key{}))
	require.Equal(t, c, Of(context.WithValue(c, key{}, 2)))

	odd := uncomparable{Context: ctx}
	require.False(t, New(odd, nil, nil, nil).MadeOf(odd))
	var none *Call
	require.False(t, none.MadeOf(ctx))

	c = New(context.Background(), nil, nil, nil)
	for range 10 {
		c = New(c, nil, nil, nil)
	}
	require.Equal(t, context.Background(), c.Context, "contexts do not grow")
}
