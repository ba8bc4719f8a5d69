package firsterrs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	var l List
	require.Empty(t, l.Take(""))
	a, b := errors.New("a"), errors.New("b")
	l.Add(3)
	l.Add(3, a)
	l.Add(3, a, b)
	require.Equal(t, []error{a, a, b}, l.Take(""))
	require.Empty(t, l.Take(""))
	l.Add(2, a, b, a)
	l.Add(2, a)
	errs := l.Take(" of a sink")
	require.Len(t, errs, 3)
	require.EqualError(t, errs[2], "agentevents: 2 more errors of a sink")
	require.Empty(t, l.Take(""))
}
