package openwop

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// An IDForm is the required form of an id.
type IDForm uint8

// The forms of ids. SchemaV1 limits their length, counted in code points.
// SchemaV2 allows letters, digits and . _ ~ - and, where noted, the colon.
const (
	EventID     IDForm = iota // 1 to 128; V2: 16 to 128
	RunID                     // 1 to 128; V2: tenant/opaque, the second part 16 to 128
	NodeID                    // 1 to 128; V2: with colons
	AgentID                   // 3 to 256; V2: 1 to 128, with colons
	HandoffID                 // an agent in a handoff: 3 to 256; V2: 3 to 128, with colons
	WorkflowID                // any length; V2: 1 to 128, with colons
	InterruptID               // 1 to 256, as the keys of interrupts; V2: as RunID
	TypeID                    // any length; V2: dotted names such as core.llm, at most 256
	PlainID                   // any
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

// ValidID reports whether an id has the form that the profile requires. RFC0002
// only requires that it is not empty.
func ValidID(p Profile, form IDForm, id string) bool {
	g := &grammars[form]
	switch {
	case p == RFC0002 || form == PlainID:
		return id != ""
	case p == SchemaV1:
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

// legal says what ids of the form are legal.
func (form IDForm) legal(p Profile) string {
	g := &grammars[form]
	low, high := g.low1, g.high1
	if p == SchemaV2 {
		low, high = g.low2, g.high2
	}
	length := strconv.Itoa(low) + " to " + strconv.Itoa(high)
	switch {
	case p == RFC0002 || form == PlainID || p == SchemaV1 && high == math.MaxInt:
		return lengths(1, 0)
	case p == SchemaV1:
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
		if !isWord(part, capitals+"_") {
			return false
		}
	}
	return dotted && len(id) <= 256 && first == strings.ToLower(first)
}

// NormalizeID returns an id in the form that the profile requires. It returns an
// id that has it unchanged. Of any other it keeps the beginning, replaces
// characters that are not allowed, and adds a hash of the whole id, so that
// different ids stay different. It does not change its own results.
func NormalizeID(p Profile, form IDForm, id string) string {
	if id == "" || ValidID(p, form, id) {
		return id
	}
	g, keep := &grammars[form], 60
	var buf [96]byte
	b := buf[:0]
	if p == SchemaV2 && g.tenant {
		b = append(b, "local/"...)
		keep += len(b)
	}
	allowed, sep := idLetters+g.also, byte('~')
	if form == TypeID {
		b, allowed, sep = append(b, "core.t"...), letters+capitals+"_", '-'
	}
	for i := 0; i < len(id) && len(b) < keep; i++ {
		c := id[i]
		if p == SchemaV2 && strings.IndexByte(allowed, c) < 0 || c >= utf8.RuneSelf {
			c = '_'
		}
		b = append(b, c)
	}
	return string(jsonwire.AppendHex(append(b, sep), jsonwire.Hash(id)))
}

// vendorType reports whether an unregistered type is legal for a vendor under the
// profile.
func vendorType(p Profile, typ string) bool {
	first, rest, ok := strings.Cut(typ, ".")
	if !ok || !isWord(first, capitals+"_") {
		return false
	}
	if p == SchemaV2 {
		verb, more, two := strings.Cut(rest, ".")
		return first != "openwop" && !registered2().domains[first] && kebab(first) && kebab(verb) && (!two || kebab(more))
	}
	switch first {
	case "openwop", "core", "community", "vendor", "private", "local":
		return false
	}
	for part := range strings.SplitSeq(typ, ".") {
		if part == "" || strings.Trim(part, letters+capitals+"_") != "" {
			return false
		}
	}
	return true
}

// letters are the characters of kebab case, idLetters those of SchemaV2's ids.
const (
	letters   = "abcdefghijklmnopqrstuvwxyz0123456789-"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	idLetters = letters + capitals + "._~"
)

// isWord reports whether s begins with a small letter and has only characters of
// kebab case and more.
func isWord(s, more string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, letters+more) == ""
}

// kebab reports whether s is in kebab case: words of small letters and digits,
// joined by dashes. The first word begins with a letter.
func kebab(s string) bool { return isWord(s, "") && s[len(s)-1] != '-' && !strings.Contains(s, "--") }

// legalType reports whether the profile allows writing a type. The pattern of
// SchemaV1 matches any name of two parts, also misspelt and invented types of the
// protocol's own domains. The text of the specification does not allow those.
func legalType(p Profile, typ string) bool {
	if p == SchemaV1 {
		first, _, _ := strings.Cut(typ, ".")
		return registered1().has(typ) || !registered1().domains[first] && knownType(p, typ)
	}
	return knownType(p, typ)
}

// knownType reports whether a reader of the profile accepts a type: it matches
// the schema and is not merely the other major version's spelling. A type that is
// not registered is skipped, not refused.
func knownType(p Profile, typ string) bool {
	switch p {
	case SchemaV1:
		return registered1().has(typ) || vendorType(p, typ) && renamed(p, typ) == typ
	case SchemaV2:
		return registered2().has(typ) || vendorType(p, typ)
	}
	return typ != ""
}

// names are the types of SchemaV1 by their names in SchemaV2 and the other way round.
var names = sync.OnceValues(func() (to1, to2 map[string]string) {
	to1, to2 = map[string]string{}, map[string]string{}
	vocabulary := map[string]string{}
	for _, r := range rows(SchemaV2) {
		vocabulary[r.typ] = cmp.Or(r.v2, r.typ)
	}
	for typ := range registered1().types {
		name := cmp.Or(vocabulary[typ], name2(typ))
		to1[name], to2[typ] = typ, name
	}
	return to1, to2
})

// renames2 are the types that SchemaV2 has under another word.
var renames2 = map[string]string{"run.resuming": "run.resume-started", "core.dispatch.fanOut": "dispatch.fanned-out", "core.dispatch.join": "dispatch.joined"}

// name2 returns SchemaV2's name of a type of SchemaV1: in kebab case, with one dot.
func name2(typ string) string {
	if name := renames2[typ]; name != "" {
		return name
	}
	domain, verb, _ := strings.Cut(strings.TrimPrefix(typ, "core."), ".")
	name := domain + "." + strings.NewReplacer("_", "-", ".", "-").Replace(verb)
	for c := 'A'; c <= 'Z'; c++ {
		name = strings.ReplaceAll(name, string(c), "-"+string(unicode.ToLower(c)))
	}
	return name
}

// renamed returns a type of the other major version in the profile's spelling,
// and any other type unchanged.
func renamed(p Profile, typ string) string {
	to1, to2 := names()
	if p == SchemaV2 {
		return cmp.Or(to2[typ], typ)
	}
	return cmp.Or(to1[typ], typ)
}
