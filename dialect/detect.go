package dialect

import (
	"strings"

	"github.com/agentevents/agentevents/internal/foreign"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Name names a dialect.
type Name string

// The names. Native is the format of package agentevents itself.
const (
	Native      Name = "native"
	KAHN        Name = "kahn"
	MultiAgent  Name = "multiagent"
	KAOS        Name = "kaos"
	OpenHarness Name = "openharness"
	OpenWOP     Name = "openwop"
	AGUI        Name = "agui"
)

// Detect returns the dialect of a line, judged by its members. It returns "" when the members fit
// no dialect, or fit several. A Server-Sent Event is KAOS unless its data have members of AG-UI.
//
// A line that lacks a member of its dialect, or has an extra one, is still detected when its other
// members fit that dialect alone. The decoder then reports the error. A line of another program
// that has such members by chance, or that has an event of a dialect in one of its members, is not
// detected.
func Detect(line string) Name {
	if isFrame(line) {
		if data, ok := strings.CutPrefix(line, "data:"); ok && strings.HasPrefix(strings.TrimLeft(data, " "), "{") &&
			Detect(strings.TrimLeft(data, " ")) == AGUI {
			return AGUI
		}
		return KAOS
	}
	l, ok := look(line)
	if !ok {
		return ""
	}
	return l.detect(line)
}

// detect returns the dialect of a line with these members. The lines of other programs that
// may have them have names of their own.
func (l *looks) detect(line string) Name {
	name := l.dialect()
	anyValue := l.kind == "CUSTOM" || l.kind == "RAW" // such lines of AG-UI hold lines of other programs
	if name == AGUI && !anyValue && (strings.Contains(line, `_id":`) || strings.Contains(line, `_name":`) ||
		strings.Contains(line, `"data":`)) ||
		name == KAOS && !l.numeric && !l.any(hasSequence) {
		if _, ok := foreign.Line(line); ok {
			return ""
		}
	}
	return name
}

// looks holds the traits of a line that tell the dialects apart.
type looks struct {
	has     looksSet // members
	kind    string   // the type
	numeric bool     // the timestamp is a number
	text    bool     // the schema version is a string
}

type looksSet uint32

const (
	hasType looksSet = 1 << iota
	hasEvent
	hasTS
	hasRunID // run_id
	hasEventID
	hasActor
	hasTraceID
	hasSpanID
	hasSequence
	hasSessionID // session_id
	hasTimestamp
	hasPayload
	hasID
	hasRun // runId
	hasNodeID
	hasAgentID
	hasSchemaVersion
)

var looksNames = [...]string{
	`"type":`, `"event":`, `"ts":`, `"run_id":`, `"eventId":`, `"actor":`, `"traceId":`, `"spanId":`, `"sequence":`, `"session_id":`,
	`"timestamp":`, `"payload":`, `"id":`, `"runId":`, `"nodeId":`, `"agentId":`, `"schemaVersion":`,
}

// all reports whether l has all of the members; any, whether it has one of them.
func (l *looks) all(members looksSet) bool { return l.has&members == members }
func (l *looks) any(members looksSet) bool { return l.has&members != 0 }

// look reads the object at the start of a line. It reports false if there is
// none.
func look(line string) (l looks, ok bool) {
	var s jsonwire.Scanner
	s.Reset(line)
	if s.Object() != nil {
		return looks{}, false
	}
	for {
		n, _, err := s.Field(looksNames[:], 0)
		switch {
		case err != nil:
			return looks{}, false
		case n < 0:
			return l, true
		case n > 0:
			l.has |= 1 << (n - 1)
		}
		switch first := s.Kind(); {
		case n == 0:
		case 1<<(n-1) == hasType && first == '"':
			if l.kind, err = s.String(); err != nil {
				return looks{}, false
			}
			continue
		case 1<<(n-1) == hasTimestamp:
			l.numeric = first == '0' || first == '-'
		case 1<<(n-1) == hasSchemaVersion:
			l.text = first == '"'
		}
		if s.Skip() != nil {
			return looks{}, false
		}
	}
}

// dialect returns the dialect that has these members.
func (l *looks) dialect() Name {
	switch {
	case l.all(hasTS | hasRunID | hasEvent):
		return KAHN
	case !l.any(hasType):
	case isAGUI(l.kind) && !l.any(hasID|hasSequence|hasPayload|hasEventID|hasActor):
		return AGUI
	case l.any(hasEventID) && !(l.any(hasID) && l.text): // only OpenWOP writes versions as numbers
		return OpenWOP
	case l.all(hasActor|hasTraceID) && !l.any(hasSequence):
		return MultiAgent
	case l.all(hasSessionID | hasRunID):
		return KAOS
	case l.numeric && strings.Contains(l.kind, ":"),
		isHarness(l.kind) && !l.any(hasID|hasSequence|hasPayload):
		return OpenHarness
	case l.numeric && l.any(hasSessionID|hasRunID|hasSequence) && !l.any(hasPayload):
		return KAOS
	case l.all(hasID|hasSequence) && l.any(hasPayload|hasRun):
		return Native
	case l.all(hasID|hasPayload) && l.any(hasActor|hasTraceID|hasSpanID) && !l.any(hasAgentID):
		return MultiAgent
	case l.all(hasID | hasRun | hasTimestamp):
		return Native
	}
	return ""
}

// Fits reports whether a line may be of a dialect. It returns false if the line is detected as
// another dialect and lacks the typical members of this one, or if its only member of the dialect
// is a type. looks is the dialect that is detected, or "". Text that is not an object fits every
// dialect: the decoder reports its error.
func Fits(line string, name Name) (looks Name, ok bool) {
	l, object := look(line)
	if !object {
		return "", true
	}
	switch looks = l.detect(line); looks {
	case name:
		return looks, true
	case "":
		return looks, l.mayBe(name)
	}
	switch name {
	case Native:
		ok = l.all(hasID | hasSequence | hasRun)
	case MultiAgent:
		ok = l.all(hasActor | hasTraceID | hasSpanID)
	case OpenHarness:
		ok = isHarness(l.kind)
	}
	return looks, ok
}

// isHarness reports whether a type begins like a type of the resume
// specification. No other dialect has colons in its types.
func isHarness(kind string) bool {
	switch head, _, _ := strings.Cut(kind, ":"); head {
	case "agent", "flow", "node", "edge", "loop", "state", "command":
		return len(head) < len(kind)
	}
	return false
}

// isAGUI reports whether a type begins like a type of AG-UI. No other dialect's types are
// in upper case.
func isAGUI(kind string) bool {
	switch head, _, _ := strings.Cut(kind, "_"); head {
	case "RUN", "STEP", "TEXT", "THINKING", "REASONING", "TOOL", "STATE", "MESSAGES", "ACTIVITY", "SUBAGENT":
		return len(head) < len(kind)
	}
	return kind == "RAW" || kind == "CUSTOM"
}

// mayBe reports whether an undetected line may belong to the dialect name, the dialect of the line
// before. The line needs a member of that dialect besides a type.
func (l *looks) mayBe(name Name) bool {
	switch name {
	case KAHN:
		return l.any(hasTS|hasRunID) || l.any(hasEvent) && !l.any(hasType)
	case MultiAgent:
		return l.any(hasActor|hasTraceID|hasSpanID) || l.all(hasID|hasPayload)
	case KAOS:
		return l.numeric || l.any(hasRunID|hasSequence)
	case OpenHarness:
		return l.numeric || l.any(hasRun|hasNodeID)
	case OpenWOP:
		return l.any(hasEventID) || l.any(hasRun) && l.any(hasSequence|hasPayload)
	case AGUI:
		return l.kind != "" && strings.ToUpper(l.kind) == l.kind
	case "", Native:
		return l.any(hasID | hasSequence | hasRun)
	}
	return true // a dialect of another module: its decoder decides
}

// isFrame reports whether a line is part of a Server-Sent Event: a field with its
// value, or a comment. The standard also has fields without a value, and ignores
// a retry that is not a number. Such lines do not tell their dialect.
func isFrame(line string) bool {
	field, value, colon := strings.Cut(line, ":")
	if !colon {
		return false
	}
	switch field {
	case "", "data", "event", "id":
		return true
	case "retry":
		value, _, _ = strings.Cut(value, "\r") // lines may end with \r alone
		value = strings.TrimPrefix(value, " ")
		return value != "" && strings.Trim(value, "0123456789") == ""
	}
	return false
}

// beginsFrame reports whether a line starts Server-Sent Events in the middle of
// other lines: data that is an object, or the name of an event. Other fields are
// a word and a colon, which programs also write between the lines of a log.
func beginsFrame(line string) bool {
	field, value, _ := strings.Cut(line, ":")
	value = strings.TrimLeft(value, " ")
	switch field {
	case "data":
		return strings.HasPrefix(value, "{")
	case "event":
		value, _, _ = strings.Cut(value, "\r")
		return value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_") == ""
	}
	return false
}
