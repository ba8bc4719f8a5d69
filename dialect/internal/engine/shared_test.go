package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The id of a line comes back from the execution, where readers see the same.
func TestShared(t *testing.T) {
	var n Shared
	n.Start("x", "x")
	n.Start("a", "x")
	require.Equal(t, "x/b", n.ID("b", "x", true))
	require.Equal(t, "x", n.ID("b", "x", false), "b has not started")
	n.Start("b", "x/b")
	require.Equal(t, []string{"x", "x/b", "x", "y", "x"}, []string{n.ID("a", "x", true), n.ID("b", "x", false), n.ID("", "x", false), n.ID("b", "y", true), n.ID("x", "x", false)})
	require.Equal(t, "x", n.Line("b", "x/b", false))
	require.Equal(t, "y/b", n.Line("b", "y/b", true), "nobody else has y")
	require.Equal(t, "x/b", n.Line("a", "x/b", false))
}
