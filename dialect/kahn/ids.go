package kahn

import (
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The document's patterns. PatternRunID is taken from its sibling schema for CI:
// both schemas share the base members.
const (
	PatternAgentID      = `^[a-z0-9][a-z0-9:-]{0,63}$`
	PatternCheckpointID = `^[a-z0-9][a-z0-9:.-]{0,127}$`
	PatternRunID        = `^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$`
	PatternTime         = `\.[0-9]{3}Z$` // the end of an RFC 3339 time
)

// A pattern is a set of characters with a maximum length.
type pattern struct {
	max    int
	extra  string // allowed after the first character, besides letters and digits
	upper  bool   // capital letters are allowed
	syntax string
}

var (
	agentPattern      = pattern{64, ":-", false, PatternAgentID}
	checkpointPattern = pattern{128, ":.-", false, PatternCheckpointID}
	runPattern        = pattern{64, "_-", true, PatternRunID}
)

func (p *pattern) alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || p.upper && 'A' <= c && c <= 'Z'
}

func (p *pattern) matches(id string) bool {
	if id == "" || len(id) > p.max || !p.alnum(id[0]) {
		return false
	}
	for i := 1; i < len(id); i++ {
		if !p.alnum(id[i]) && strings.IndexByte(p.extra, id[i]) < 0 {
			return false
		}
	}
	return true
}

// NormalizeAgentID returns id as an agent_id. It returns an id that matches
// [PatternAgentID] unchanged. Of any other it makes lower case, puts a hyphen for
// every character that is not allowed, cuts it, and appends a hyphen and sixteen
// hexadecimal digits computed from the whole id. Equal ids give equal results and
// different ids different ones, except when one id already is the result for the
// other.
func NormalizeAgentID(id string) string { return agentPattern.normalize(id) }

// NormalizeCheckpointID does what [NormalizeAgentID] does, for
// [PatternCheckpointID].
func NormalizeCheckpointID(id string) string { return checkpointPattern.normalize(id) }

// NormalizeRunID does what [NormalizeAgentID] does, for [PatternRunID], which
// allows capital letters.
func NormalizeRunID(id string) string { return runPattern.normalize(id) }

func (p *pattern) normalize(id string) string {
	if p.matches(id) {
		return id
	}
	const digits = 16
	out := make([]byte, 0, p.max)
	for i := 0; i < len(id) && len(out) < p.max-1-digits; {
		c := id[i]
		_, size := utf8.DecodeRuneInString(id[i:])
		i += size
		if !p.upper && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case p.alnum(c), len(out) > 0 && strings.IndexByte(p.extra, c) >= 0:
			out = append(out, c)
		case len(out) > 0:
			out = append(out, '-')
		}
	}
	if len(out) == 0 {
		out = append(out, 'x')
	}
	out = append(out, '-')
	h := jsonwire.Hash(id)
	for shift := 60; shift >= 0; shift -= 4 {
		out = append(out, "0123456789abcdef"[h>>shift&15])
	}
	return string(out)
}
