package multiagent

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// sortedJSON returns a JSON value with the members of its objects sorted by name, and
// nothing else changed.
func sortedJSON(raw string) string {
	var s jsonwire.Scanner
	s.Reset(raw)
	switch s.Kind() {
	case '{':
		_ = s.Object()
		var members []string
		for {
			name, ok, err := s.Member()
			if err != nil || !ok {
				break
			}
			value, _ := s.Raw()
			members = append(members, jsonwire.Quote(name)+":"+sortedJSON(value))
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ",") + "}"
	case '[':
		_ = s.Array()
		var elems []string
		for {
			ok, err := s.Elem()
			if err != nil || !ok {
				break
			}
			value, _ := s.Raw()
			elems = append(elems, sortedJSON(value))
		}
		return "[" + strings.Join(elems, ",") + "]"
	}
	return raw
}
