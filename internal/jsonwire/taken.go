package jsonwire

import "strconv"

// Taken holds names that are taken. Each has the last number that was appended to make another
// name, or 1.
type Taken map[string]int

// Add adds a name.
func (t Taken) Add(name string) { t[name] = 1 }

// Unique returns name if it is free, or else with the first number, from 2, that
// makes it so. The result is taken from then on.
func (t Taken) Unique(name string) string {
	n := t[name]
	out := name
	for t[out] > 0 {
		n++
		out = name + "-" + strconv.Itoa(n)
	}
	if n > 0 {
		t[name] = n // the numbers up to n are taken
	}
	t.Add(out)
	return out
}
