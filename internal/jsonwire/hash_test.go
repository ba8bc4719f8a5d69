package jsonwire

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHashTellsTextsApart(t *testing.T) {
	seen := map[uint64]string{}
	base := strings.Repeat("a line of a log, with some text in it. ", 4)
	add := func(s string) {
		h := Hash(s)
		require.Equal(t, h, Hash([]byte(s)))
		if old, ok := seen[h]; ok && old != s {
			t.Fatalf("%q and %q have the same hash", old, s)
		}
		seen[h] = s
	}
	for n := range len(base) + 1 {
		add(base[:n])
		add(base[:n] + "\x00")
		for bit := range 8 {
			if n < len(base) {
				b := []byte(base)
				b[n] ^= 1 << bit
				add(string(b))
			}
		}
	}
	add(base[32:64] + base[:32] + base[64:])
	add(base[16:32] + base[:16] + base[32:])
}

// The hash stands in snapshots, so it must not change.
func TestHashIsFixed(t *testing.T) {
	require.Equal(t, uint64(0x718ff276e9f5ed95), Hash(""))
	digits := strings.Repeat("0123456789", 40)
	for n, want := range map[int]uint64{
		5: 0xcbb5e473256d99b8, 8: 0xd861016bfeec883c, 31: 0xab8d9f8ed70a6e15, 100: 0x931ce46b925d21c8, 137: 0x1ab9fea523f58f18, 400: 0x532721be16c1861e,
	} {
		require.Equal(t, want, Hash(digits[:n]), n)
	}
}

func BenchmarkHash(b *testing.B) {
	s := strings.Repeat("0123456789", 40)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Hash(s)
	}
}

func TestAppendHex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, v := range []uint64{0, 1, 0x0123456789abcdef, 0xfedcba9876543210, math.MaxUint64, r.Uint64(), r.Uint64(), r.Uint64()} {
		require.Equal(t, fmt.Sprintf("x%016x", v), string(AppendHex([]byte("x"), v)))
		w := r.Uint64()
		require.Equal(t, fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", v>>32, v>>16&0xffff, v&0xffff, w>>48, w&(1<<48-1)), UUID(v, w))
	}
}
