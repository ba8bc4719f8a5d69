package schemas

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An IDForm is the required form of an id. See package openwop.
type IDForm uint8

// The forms of ids.
const (
	EventID IDForm = iota
	RunID
	NodeID
	AgentID
	HandoffID
	WorkflowID
	InterruptID
	TypeID
	PlainID
)

// grammars are the lengths of ids under both schemas. Ids of SchemaV2 may also have
// colons, or begin with a tenant.
var grammars = [...]struct {
	low1, high1, low2, high2 int
	also                     string
	tenant                   bool
}{
	EventID:     {low1: 1, high1: 128, low2: 16, high2: 128},
	RunID:       {low1: 1, high1: 128, low2: 16, high2: 128, tenant: true},
	NodeID:      {low1: 1, high1: 128, low2: 1, high2: 128, also: ":"},
	AgentID:     {low1: 3, high1: 256, low2: 1, high2: 128, also: ":"},
	HandoffID:   {low1: 3, high1: 256, low2: 3, high2: 128, also: ":"},
	WorkflowID:  {low1: 1, high1: math.MaxInt, low2: 1, high2: 128, also: ":"},
	InterruptID: {low1: 1, high1: 256, low2: 16, high2: 128, tenant: true},
	TypeID:      {low1: 1, high1: math.MaxInt},
	PlainID:     {low1: 1, high1: math.MaxInt},
}

// ValidID reports whether an id has the form that a version requires. RFC0002
// only requires that it is not empty.
func ValidID(v Version, form IDForm, id string) bool {
	g := &grammars[form]
	switch {
	case v == RFC0002 || form == PlainID:
		return id != ""
	case v == SchemaV1:
		n := utf8.RuneCountInString(id)
		return n >= g.low1 && n <= g.high1
	case form == TypeID:
		return validTypeID(id)
	case g.tenant:
		tenant, rest, ok := strings.Cut(strings.TrimPrefix(id, "anon:"), "/")
		return ok && opaque(tenant, 1, 128, "") && opaque(rest, g.low2, g.high2, "")
	}
	return opaque(id, g.low2, g.high2, g.also)
}

// legal describes the legal ids of the form.
func (form IDForm) legal(v Version) string {
	g := &grammars[form]
	low, high := g.low1, g.high1
	if v == SchemaV2 {
		low, high = g.low2, g.high2
	}
	length := strconv.Itoa(low) + " to " + strconv.Itoa(high)
	switch {
	case v == RFC0002 || form == PlainID || v == SchemaV1 && high == math.MaxInt:
		return lengths(1, 0)
	case v == SchemaV1:
		return lengths(low, high)
	case form == TypeID:
		return "a dotted name such as core.llm"
	case g.tenant:
		return "a tenant, a slash and " + length + " letters, digits and . _ ~ -"
	}
	return strings.TrimRight(length+" letters, digits and . _ ~ - "+g.also, " ")
}

// lengths describes the texts with a length from low to high characters. A high of 0 sets no limit.
func lengths(low, high int) string {
	switch {
	case high == 0 && low > 1:
		return "at least " + strconv.Itoa(low) + " characters"
	case high == 0:
		return "any text that is not empty"
	}
	return strconv.Itoa(low) + " to " + strconv.Itoa(high) + " characters"
}

// opaque reports whether id has a legal length and only characters of SchemaV2's
// ids, and also those.
func opaque(id string, low, high int, also string) bool {
	return len(id) >= low && len(id) <= high && strings.Trim(id, idLetters+also) == ""
}

// validTypeID reports whether id is a dotted name of at least two parts. Each
// part begins with a small letter, and the first has no capital letters.
func validTypeID(id string) bool {
	first, _, dotted := strings.Cut(id, ".")
	for part := range strings.SplitSeq(id, ".") {
		if !IsWord(part, Capitals+"_") {
			return false
		}
	}
	return dotted && len(id) <= 256 && first == strings.ToLower(first)
}

// NormalizeID returns an id in the form that a version requires. It returns an
// id that has it unchanged. Of any other it keeps the beginning, replaces
// characters that are not allowed, and adds a hash of the whole id, so that
// different ids stay different. It does not change its own results.
func NormalizeID(v Version, form IDForm, id string) string {
	if id == "" || ValidID(v, form, id) {
		return id
	}
	g, keep := &grammars[form], 60
	var buf [96]byte
	b := buf[:0]
	if v == SchemaV2 && g.tenant {
		b = append(b, "local/"...)
		keep += len(b)
	}
	allowed, sep := idLetters+g.also, byte('~')
	if form == TypeID {
		b, allowed, sep = append(b, "core.t"...), Letters+Capitals+"_", '-'
	}
	for i := 0; i < len(id) && len(b) < keep; i++ {
		c := id[i]
		if v == SchemaV2 && strings.IndexByte(allowed, c) < 0 || c >= utf8.RuneSelf {
			c = '_'
		}
		b = append(b, c)
	}
	return string(jsonwire.AppendHex(append(b, sep), jsonwire.Hash(id)))
}

// Letters are the characters of kebab case, idLetters the characters of SchemaV2's ids.
const (
	Letters   = "abcdefghijklmnopqrstuvwxyz0123456789-"
	Capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	idLetters = Letters + Capitals + "._~"
)

// IsWord reports whether s begins with a small letter and has only characters of
// kebab case and more.
func IsWord(s, more string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, Letters+more) == ""
}
