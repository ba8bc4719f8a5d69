package dialect

import (
	"strings"

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
)

// Detect returns the dialect of a line by the members it has, and "" when it is
// none of them. A line of Server-Sent Events is of KAOS.
func Detect(line string) Name {
	if isFrame(line) {
		return KAOS
	}
	var s jsonwire.Scanner
	s.Reset(line)
	if s.Object() != nil {
		return ""
	}
	var (
		has     [len(detectNames)]bool
		kind    string
		clock   byte // first byte of timestamp
		payload bool
	)
	for {
		n, _, err := s.Field(detectNames[:], 0)
		if err != nil {
			return ""
		}
		if n < 0 {
			break
		}
		if n > 0 {
			has[n-1] = true
		}
		switch n {
		case hasType, hasEvent:
			if kind, err = s.String(); err != nil {
				return ""
			}
			continue
		case hasTimestamp:
			clock = s.Kind()
		case hasPayload:
			payload = true
		}
		if s.Skip() != nil {
			return ""
		}
	}
	numeric := clock == '0' || clock == '-'
	switch {
	case has[hasEvent-1]:
		if has[hasTS-1] && has[hasRunID-1] {
			return KAHN
		}
	case !has[hasType-1]:
	case has[hasEventID-1]:
		return OpenWOP
	case has[hasActor-1] && has[hasTraceID-1] && !has[hasSequence-1]:
		return MultiAgent
	case numeric && strings.Contains(kind, ":"):
		return OpenHarness
	case numeric && !payload && (has[hasSessionID-1] || has[hasRunID-1] || has[hasSequence-1]):
		return KAOS
	case payload && has[hasID-1] && has[hasSequence-1]:
		return Native
	case payload && has[hasID-1]:
		return MultiAgent
	}
	return ""
}

// Numbers of the names that tell the dialects apart, as Scanner.Field counts.
const (
	hasType = 1 + iota
	hasEvent
	hasTS
	hasRunID
	hasEventID
	hasActor
	hasTraceID
	hasSequence
	hasSessionID
	hasTimestamp
	hasPayload
	hasID
)

var detectNames = [...]string{
	`"type":`, `"event":`, `"ts":`, `"run_id":`, `"eventId":`, `"actor":`, `"traceId":`, `"sequence":`, `"session_id":`, `"timestamp":`, `"payload":`, `"id":`,
}

// isFrame reports whether a line is one of a Server-Sent Event: a field with
// its value, or a comment. The standard also has fields without a value, and
// ignores a retry that is no number; a line like that tells nothing.
func isFrame(line string) bool {
	field, value, colon := strings.Cut(line, ":")
	if !colon {
		return false
	}
	switch field {
	case "", "data", "event", "id":
		return true
	case "retry":
		value, _, _ = strings.Cut(value, "\r") // where lines end with it alone
		value = strings.TrimPrefix(value, " ")
		return value != "" && strings.Trim(value, "0123456789") == ""
	}
	return false
}
