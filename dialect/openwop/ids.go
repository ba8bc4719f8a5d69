package openwop

import (
	"cmp"
	"strings"
	"sync"
	"unicode"

	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
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

// ValidID reports whether an id has the form that the profile requires. RFC0002
// only requires that it is not empty.
func ValidID(p Profile, form IDForm, id string) bool {
	return schemas.ValidID(schemas.Version(p), schemas.IDForm(form), id)
}

// NormalizeID returns an id in the form that the profile requires. It returns an
// id that has it unchanged. Of any other it keeps the beginning, replaces
// characters that are not allowed, and adds a hash of the whole id, so that
// different ids stay different. It does not change its own results.
func NormalizeID(p Profile, form IDForm, id string) string {
	return schemas.NormalizeID(schemas.Version(p), schemas.IDForm(form), id)
}

// vendorType reports whether an unregistered type is legal for a vendor under the
// profile.
func vendorType(p Profile, typ string) bool {
	first, rest, ok := strings.Cut(typ, ".")
	if !ok || !schemas.IsWord(first, schemas.Capitals+"_") {
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
		if part == "" || strings.Trim(part, schemas.Letters+schemas.Capitals+"_") != "" {
			return false
		}
	}
	return true
}

// kebab reports whether s is in kebab case: words of small letters and digits,
// joined by dashes. The first word begins with a letter.
func kebab(s string) bool {
	return schemas.IsWord(s, "") && s[len(s)-1] != '-' && !strings.Contains(s, "--")
}

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
var renames2 = map[string]string{"run.resuming": "run.resume-started",
	"core.dispatch.fanOut": "dispatch.fanned-out", "core.dispatch.join": "dispatch.joined"}

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
