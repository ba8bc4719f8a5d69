// Package effort sets how much a test does: little with -short, more in an ordinary run,
// most in the long run before a release.
package effort

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

const (
	longEnv = "AGENTEVENTS_LONG" // any value asks for the long run
	seedEnv = "AGENTEVENTS_SEED" // the seed of a run to repeat
)

// Long reports whether the environment asks for the long run.
func Long() bool { return os.Getenv(longEnv) != "" }

// Of returns short under -short, long in the long run, and usual otherwise. -short wins.
func Of[T any](short, usual, long T) T {
	switch {
	case testing.Short():
		return short
	case Long():
		return long
	}
	return usual
}

// Seed returns the seed of a test that draws its input, and logs it. The long run draws a new
// one; other runs have the same one, so that a failure is due to the change at hand. A failed
// test is repeated with the seed in the variable AGENTEVENTS_SEED.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if Long() {
		seed = rand.Uint64()
	}
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	t.Logf("drawn with %s=%d", seedEnv, seed)
	return seed
}
