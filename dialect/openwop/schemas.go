package openwop

import (
	"cmp"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The demands of the profiles. Those of the published schemas are written by
// lawtest/internal/openwopschemas. A file of more has facts that the known files lack.
var (
	//go:embed schemas/rfc0002.txt
	rfcDemands string
	//go:embed schemas/v1.txt
	v1Demands string
	//go:embed schemas/more-v1.txt
	v1More string
	//go:embed schemas/v2.txt
	v2Demands string
	//go:embed schemas/more-v2.txt
	v2More string
)

// demands has the schemas of a profile by name.
var demands = [...]func() facts.Table{
	RFC0002:  table(&rfcDemands),
	SchemaV1: table(&v1Demands, &v1More),
	SchemaV2: table(&v2Demands, &v2More),
}

// table returns a function that reads texts once.
func table(texts ...*string) func() facts.Table {
	return sync.OnceValue(func() facts.Table {
		var all strings.Builder
		for _, text := range texts {
			all.WriteString(*text)
		}
		t, err := facts.Parse(all.String())
		if err != nil {
			panic(err) // the texts are constants of the package
		}
		for name, form := range publishedIDs {
			if s := t[name]; s != nil {
				s.Legal = func(id string) bool { return ValidID(SchemaV2, form, id) }
			}
		}
		return t
	})
}

// publishedIDs are the forms of ids by the names that the files of SchemaV2 give them.
var publishedIDs = map[string]IDForm{
	"ids.eventId": EventID, "ids.runId": RunID, "ids.nodeId": NodeID, "ids.agentId": AgentID, "ids.workflowId": WorkflowID,
	"ids.interruptId": InterruptID, "ids.typeId": TypeID,
}

// envelopeOf returns the schema of the lines of a profile.
func envelopeOf(p Profile) *facts.Schema { return demands[p]()["envelope"] }

// payloadOf returns the schema of the payload of a type, or nil.
func payloadOf(p Profile, typ string) *facts.Schema { return demands[p]()["payload:"+typ] }

// wrong returns the rule that a member of an object breaks and what is wrong, or "".
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

// breach returns the rule that a fault of the value at a pointer breaks.
func breach(p Profile, at string, f *facts.Fault) *agentevents.RuleError {
	at += f.Pointer
	rule, detail := breaches[f.Breach], f.Detail
	id, legal := jsonwire.Text(f.Value), legalText(p, f.Of)
	switch {
	case !isText(f.Value) || legal == "" || f.Breach != facts.Pattern && (f.Breach != facts.Range || !isID(at)):
	case f.Breach == facts.Pattern && strings.Contains(f.Of.Pattern(), "|"): // a list with open ends
		rule, detail = RuleEnum, jsonwire.Word(id)+" is not "+legal
	case id == "":
		rule, detail = RuleID, "is empty; legal: "+legal
	default:
		rule, detail = RuleID, jsonwire.Brief(id)+" does not have the form of "+p.String()+"; legal: "+legal
	}
	return breaks(rule, at, detail)
}

var breaches = [...]agentevents.Rule{
	facts.Type: RuleForm, facts.Range: RuleRange, facts.Pattern: RuleForm, facts.Word: RuleEnum, facts.Closed: RuleClosed, facts.Required: RuleRequired,
}

// isID reports whether the member at a pointer is an id.
func isID(at string) bool { return strings.HasSuffix(at, "Id") || strings.HasSuffix(at, "/toolName") }

// legalText describes the texts that a schema has.
func legalText(p Profile, s *facts.Schema) string {
	if form, is := publishedIDs[s.Name]; is {
		return form.legal(p)
	}
	if legal := cmp.Or(legalTexts[s.Name], legalTexts[s.Pattern()]); legal != "" || s.Pattern() != "" {
		return legal
	}
	return lengths(s.Low, s.High)
}

// legalTexts describes the texts of published names and patterns.
var legalTexts = map[string]string{
	"ids.tenantId": opaqueText + ", perhaps after anon:", "ids.workspaceId": opaqueText, "ids.subjectId": "1 to 256 characters without blanks and /",
	"ids.traceId": "32 hexadecimal digits in lower case", `^[A-Z]{3}$`: "3 capitals, such as EUR", `^\S+$`: "1 to 1024 characters without blanks",
	`^(isolated|shared|shared:.+)$`: "isolated, shared or shared:<group>",
	`^(replace|append|merge|counter|votes|feedback|vendor\.[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*)$`: "one of replace, append, merge, counter, votes, feedback, and not vendor.<org>.<name>",
}

// opaqueText describes an id of SchemaV2 without a tenant.
const opaqueText = "1 to 128 letters, digits and . _ ~ -"

// registry has the types that a schema registers, and their domains.
type registry struct{ types, domains map[string]bool }

func (r *registry) has(typ string) bool { return r.types[typ] }

// registered returns the types of a schema.
func registered(p Profile) *registry {
	if p == SchemaV1 {
		return registered1()
	}
	return registered2()
}

var (
	registered1 = registryOf(SchemaV1)
	registered2 = registryOf(SchemaV2)
)

func registryOf(p Profile) func() *registry {
	return sync.OnceValue(func() *registry {
		r := &registry{map[string]bool{}, map[string]bool{}}
		typ, _, _ := envelopeOf(p).Member("type")
		for _, name := range typ.Vocabulary() {
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
	for _, s := range demands[SchemaV2]() {
		for name, of := range s.Members() {
			if form, is := publishedIDs[of.Whole().Name]; is && form != TypeID {
				ids[name] = form
			}
		}
	}
	return ids
})

// fitted returns an object without the members that its schema refuses, and without optional
// ones that have another form than it declares. It hands the pointers of those to drop.
func fitted(s *facts.Schema, at, object string, drop func(pointer, why string)) string {
	return trimmed(s, at, object, func(of *facts.Schema, need bool, raw string) string {
		if fault := of.Check(raw); fault != nil && !need {
			return fault.Detail
		}
		return ""
	}, drop)
}

// declaredOnly returns a value without the members that closed objects in it must not have. It
// hands their pointers to drop.
func declaredOnly(s *facts.Schema, at, raw string, drop func(pointer, why string)) string {
	return trimmed(s, at, raw, func(*facts.Schema, bool, string) string { return "" }, drop)
}

func trimmed(s *facts.Schema, at, raw string, odd func(of *facts.Schema, need bool, raw string) string, drop func(pointer, why string)) string {
	s = s.Choice(raw)
	raw = editedList(raw, func(i int, raw string) string {
		return trimmed(s.Element(), at+"/"+strconv.Itoa(i), raw, odd, drop)
	})
	return edited(raw, func(name, raw string) (string, bool) {
		at := at + "/" + jsonwire.Token(name)
		of, _, need := s.Member(name)
		why := ""
		if s.Refuses(name) {
			why = facts.ExtraMember
		} else if raw = trimmed(of, at, raw, odd, drop); why == "" {
			why = odd(of, need, raw)
		}
		if why != "" {
			drop(at, why)
		}
		return raw, why == ""
	})
}

// words returns the closed list of a member of the payload of a type, or nil.
func words(p Profile, typ, member string) []string {
	of, _, _ := payloadOf(p, typ).Member(member)
	if of = of.Whole(); of == nil {
		return nil
	}
	return slices.Clip(of.Words)
}
