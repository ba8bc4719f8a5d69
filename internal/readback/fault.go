package readback

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// OwnFault reports whether the fault that a strict decoder finds in a written line is one of
// the line that the event was read from: both have the same value in that place, or none; an
// empty text is none. An encoder that writes again whatever is odd in a line writes such a
// fault, but no other.
func OwnFault(read, written string, fault error) bool {
	var (
		rule    *agentevents.RuleError
		syntax  *jsonwire.SyntaxError // of a value, such as a text in the place of a time
		pointer string
	)
	switch {
	case errors.As(fault, &rule):
		pointer = rule.Pointer
	case errors.As(fault, &syntax):
		pointer = jsonwire.Pointer(written, syntax.Offset)
	}
	return pointer != "" && reflect.DeepEqual(valueAt(read, pointer), valueAt(written, pointer))
}

// valueAt returns the value at a pointer into a line, nil if there is none or an empty text.
func valueAt(line, pointer string) (v any) {
	if json.Unmarshal([]byte(line), &v) != nil {
		return nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[jsonwire.Untoken(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	if v == "" {
		return nil
	}
	return v
}
