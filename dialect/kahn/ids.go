package kahn

import (
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The document's patterns. It has no pattern for run_id.
const (
	PatternAgentID      = `^[a-z0-9][a-z0-9:-]{0,63}$`
	PatternCheckpointID = `^[a-z0-9][a-z0-9:.-]{0,127}$`
	PatternTime         = `\.[0-9]{3}Z$` // the end of an RFC 3339 time
)

// A pattern is a set of characters with a maximum length.
type pattern struct {
	max    int
	first  [256]bool // the characters that an id may begin with
	rest   [256]bool // the others may be these too
	syntax string
}

var (
	agentPattern      = newPattern(64, ":-", PatternAgentID)
	checkpointPattern = newPattern(128, ":.-", PatternCheckpointID)
)

func newPattern(max int, extra, syntax string) pattern {
	p := pattern{max: max, syntax: syntax}
	for c := range p.first {
		p.first[c] = '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
		p.rest[c] = p.first[c] || strings.IndexByte(extra, byte(c)) >= 0
	}
	return p
}

func (p *pattern) matches(id string) bool {
	if id == "" || len(id) > p.max || !p.first[id[0]] {
		return false
	}
	for i := range len(id) {
		if !p.rest[id[i]] {
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
func NormalizeAgentID(id string) string { return string(agentPattern.append(nil, id)) }

// NormalizeCheckpointID is [NormalizeAgentID] for [PatternCheckpointID].
func NormalizeCheckpointID(id string) string { return string(checkpointPattern.append(nil, id)) }

// append appends the id, normalised.
func (p *pattern) append(dst []byte, id string) []byte {
	if p.matches(id) {
		return append(dst, id...)
	}
	const digits = 16
	mark := len(dst)
	for i := 0; i < len(id) && len(dst)-mark < p.max-1-digits; {
		c := id[i]
		_, size := utf8.DecodeRuneInString(id[i:])
		i += size
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case p.first[c], len(dst) > mark && p.rest[c]:
			dst = append(dst, c)
		case len(dst) > mark:
			dst = append(dst, '-')
		}
	}
	if len(dst) == mark {
		dst = append(dst, 'x')
	}
	return jsonwire.AppendHex(append(dst, '-'), jsonwire.Hash(id))
}
