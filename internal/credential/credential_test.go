package credential

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFoldedNamesMatchByTheirEnds(t *testing.T) {
	n := NewNames(nil, nil)
	for i := range 200 {
		name := strings.Repeat("-", i) + "api" + strings.Repeat("_", i%7) + "key"
		require.True(t, n.Masks(name, '"'), strconv.Quote(name))
	}
	require.False(t, n.Masks("", '"'))
}

// The quick look at the end of a name never overlooks a credential.
func TestSuspiciousOverlooksNothing(t *testing.T) {
	n := NewNames([]string{"x", "@", "né", "P I N", "k2"}, []string{"page_token"})
	keys := foldAll(known, []string{"x", "@", "né", "P I N", "k2"})
	rng := rand.New(rand.NewPCG(1, 2))
	const alphabet = "_-. @2xXnNéeEkKpPiItToOdDrRsSyYwWaAcC"
	found := 0
	for range 200_000 {
		name := ""
		for range rng.IntN(5) {
			name += string(alphabet[rng.IntN(len(alphabet))])
		}
		if i := rng.IntN(2 * len(keys)); i < len(keys) {
			name += keys[i]
		}
		if size := len(name); size > 0 && rng.IntN(3) == 0 {
			at := rng.IntN(size)
			name = name[:at] + string(alphabet[rng.IntN(len(alphabet))]) + name[at:]
		}
		want := n.Masks(name, '"')
		require.Equal(t, want, n.Suspicious(name), "%q", name)
		if want {
			found++
		}
	}
	require.Greater(t, found, 10_000)
}
