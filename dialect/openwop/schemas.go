package openwop

import (
	"slices"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// tableOf returns the schemas of a profile by name.
func tableOf(p Profile) facts.Table { return schemas.Table(schemas.Version(p)) }

// breach returns the rule that a fault of the value at a pointer breaks.
func breach(p Profile, at string, f *facts.Fault) *agentevents.RuleError {
	return schemas.Breach(schemas.Version(p), at, f)
}

// envelopeOf returns the schema of the lines of a profile.
func envelopeOf(p Profile) *facts.Schema { return tableOf(p)["envelope"] }

// payloadOf returns the schema of the payload of a type, or nil.
func payloadOf(p Profile, typ string) *facts.Schema { return tableOf(p)["payload:"+typ] }

// wrong returns the rule that a member of an object breaks, and the fault or "".
func wrong(p Profile, of *facts.Schema, name, value string) (agentevents.Rule, string) {
	if of.Refuses(name) {
		return RuleClosed, facts.ExtraMember
	}
	member, _, _ := of.Member(name)
	if fault := member.Check(value); fault != nil {
		broken := breach(p, "/"+jsonwire.Token(name), fault)
		return broken.Rule, broken.Detail
	}
	return "", ""
}

// registry has the types that a schema registers, and their domains.
type registry struct{ types, domains map[string]bool }

func (r *registry) has(typ string) bool { return r.types[typ] }

var (
	registered1 = registryOf(SchemaV1)
	registered2 = registryOf(SchemaV2)
)

// later1 are types that SchemaV1 registers in later versions than the one in the table.
var later1 = []string{"core.dispatch.fanOut", "core.dispatch.join"}

func registryOf(p Profile) func() *registry {
	return sync.OnceValue(func() *registry {
		r := &registry{map[string]bool{}, map[string]bool{}}
		typ, _, _ := envelopeOf(p).Member("type")
		names := typ.Vocabulary()
		if p == SchemaV1 {
			names = slices.Concat(names, later1)
		}
		for _, name := range names {
			domain, _, _ := strings.Cut(name, ".")
			r.types[name], r.domains[domain] = true, true
		}
		return r
	})
}

// payloadIDs are the members of payloads that are ids under SchemaV2. A name has the same form
// in all schemas.
var payloadIDs = sync.OnceValue(func() map[string]IDForm {
	ids := map[string]IDForm{}
	for _, s := range tableOf(SchemaV2) {
		for name, of := range s.Members() {
			if form, is := schemas.PublishedIDs[of.Whole().Name]; is && form != schemas.TypeID {
				ids[name] = IDForm(form)
			}
		}
	}
	return ids
})

// wordsOf returns the closed list of a member of the payload of a type, or nil.
func wordsOf(p Profile, typ, member string) []string {
	of, _, _ := payloadOf(p, typ).Member(member)
	if of = of.Whole(); of == nil {
		return nil
	}
	return slices.Clip(of.Words)
}

func isText(raw string) bool { return strings.HasPrefix(raw, `"`) }
