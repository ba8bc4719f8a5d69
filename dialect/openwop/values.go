package openwop

import (
	"cmp"
	"strings"

	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

func isText(raw string) bool { return strings.HasPrefix(raw, `"`) }

// edited returns an object with the values that edit returns. It leaves out the
// members that edit rejects. Other values stay.
func edited(object string, edit func(name, raw string) (string, bool)) string {
	if !jsonwire.IsObject(object) {
		return object
	}
	var out dialect.Unknowns
	for name, raw := range jsonwire.Members(object) {
		if raw, ok := edit(name, raw); ok {
			out.Add(name, raw)
		}
	}
	return string(cmp.Or(out.Object(), "{}"))
}

// editedList does the same with the elements of a list.
func editedList(list string, edit func(i int, raw string) string) string {
	if !strings.HasPrefix(list, "[") {
		return list
	}
	var out []string
	for raw := range jsonwire.Elements(list) {
		out = append(out, edit(len(out), raw))
	}
	return "[" + strings.Join(out, ",") + "]"
}
