package eventtest

import "testing"

// Case runs one case of the kit.
func (k SinkTest) Case(t testing.TB, name string) {
	for _, c := range sinkCases {
		if c.name == name {
			k.test(t, &c)
			return
		}
	}
	t.Errorf("there is no case %s", name)
}

// SinkCases returns the names of the cases.
func SinkCases() (names []string) {
	for _, c := range sinkCases {
		names = append(names, c.name)
	}
	return names
}
