package engine

import "github.com/agentevents/agentevents/dialect/internal/recent"

// A Recent is a map that forgets its oldest entries.
type Recent[K comparable, V any] = recent.Map[K, V]

// Limited appends v to a list of things that are looked for one by one. A list of maxListed
// forgets its older half.
func Limited[T any](list []T, v T) []T {
	if len(list) >= maxListed {
		list = append(list[:0], list[maxListed/2:]...)
	}
	return append(list, v)
}

const maxListed = 1 << 10
