// Package schemas has the demands of the versions of OpenWOP on its documents: the facts of the
// published schemas, and the forms of ids.
package schemas

import (
	"cmp"
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Version is one of the forms of the document: a profile of package openwop.
type Version uint8

// The versions.
const (
	RFC0002 Version = iota
	SchemaV1
	SchemaV2
)

// The rules that a fault breaks. See package openwop.
const (
	RuleRequired agentevents.Rule = "openwop-required"
	RuleID       agentevents.Rule = "openwop-id"
	RuleEnum     agentevents.Rule = "openwop-enum"
	RuleRange    agentevents.Rule = "openwop-range"
	RuleForm     agentevents.Rule = "openwop-form"
	RuleClosed   agentevents.Rule = "openwop-closed"
)

// Table returns the schemas of a version by name. An unknown version is RFC0002.
func Table(v Version) facts.Table { return demands[known(v)]() }

func known(v Version) Version {
	if v > SchemaV2 {
		return RFC0002
	}
	return v
}

// The demands of the versions. internal/lawtest/internal/openwopschemas writes the demands of the published
// schemas. A file of more has facts that the known files lack.
var (
	//go:embed rfc0002.txt
	rfcDemands string
	//go:embed v1.txt
	v1Demands string
	//go:embed more-v1.txt
	v1More string
	//go:embed v2.txt
	v2Demands string
	//go:embed more-v2.txt
	v2More string
)

// demands has the schemas of a version by name.
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
		for name, form := range PublishedIDs {
			if s := t[name]; s != nil {
				s.Legal = func(id string) bool { return ValidID(SchemaV2, form, id) }
			}
		}
		return t
	})
}

// PublishedIDs are the forms of ids by the names that the files of SchemaV2 give them.
var PublishedIDs = map[string]IDForm{
	"ids.eventId": EventID, "ids.runId": RunID, "ids.nodeId": NodeID, "ids.agentId": AgentID, "ids.workflowId": WorkflowID,
	"ids.interruptId": InterruptID, "ids.typeId": TypeID,
}

// names are the names of the versions.
var names = [...]string{RFC0002: "RFC0002", SchemaV1: "SchemaV1", SchemaV2: "SchemaV2"}

// Breach returns the rule that a fault of the value at a pointer breaks.
func Breach(v Version, at string, f *facts.Fault) *agentevents.RuleError {
	at += f.Pointer
	rule, detail := breaches[f.Breach], f.Detail
	id, legal := jsonwire.Text(f.Value), legalText(v, f.Of)
	switch {
	case !strings.HasPrefix(f.Value, `"`) || legal == "" ||
		f.Breach != facts.Pattern && (f.Breach != facts.Range || !isID(at)):
	case f.Breach == facts.Pattern && strings.Contains(f.Of.Pattern(), "|"): // a list with open ends
		rule, detail = RuleEnum, jsonwire.Word(id)+" is not "+legal
	case id == "":
		rule, detail = RuleID, "is empty; legal: "+legal
	default:
		rule, detail = RuleID, jsonwire.Brief(id)+" does not have the form of "+names[known(v)]+"; legal: "+legal
	}
	return &agentevents.RuleError{Rule: rule, Pointer: at, Detail: detail}
}

var breaches = [...]agentevents.Rule{
	facts.Type: RuleForm, facts.Range: RuleRange, facts.Pattern: RuleForm, facts.Word: RuleEnum,
	facts.Closed: RuleClosed, facts.Required: RuleRequired,
}

// isID reports whether the member at a pointer is an id.
func isID(at string) bool { return strings.HasSuffix(at, "Id") || strings.HasSuffix(at, "/toolName") }

// legalText describes the texts that a schema has.
func legalText(v Version, s *facts.Schema) string {
	if form, is := PublishedIDs[s.Name]; is {
		return form.legal(v)
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

// Fitted returns an object without the members that its schema refuses, and without optional
// ones that have another form than it declares.
func Fitted(s *facts.Schema, object string) string {
	return trimmed(s, "", object, func(of *facts.Schema, need bool, raw string) string {
		if fault := of.Check(raw); fault != nil && !need {
			return fault.Detail
		}
		return ""
	}, nil)
}

// Declared returns a value without the members that closed objects in it must not have. It
// hands their pointers to drop, which may be nil.
func Declared(s *facts.Schema, at, raw string, drop func(pointer, why string)) string {
	return trimmed(s, at, raw, func(*facts.Schema, bool, string) string { return "" }, drop)
}

func trimmed(s *facts.Schema, at, raw string, odd func(of *facts.Schema, need bool, raw string) string,
	drop func(pointer, why string)) string {
	s = s.Choice(raw)
	raw = EditedList(raw, func(i int, raw string) string {
		return trimmed(s.Element(), at+"/"+strconv.Itoa(i), raw, odd, drop)
	})
	return Edited(raw, func(name, raw string) (string, bool) {
		at := at + "/" + jsonwire.Token(name)
		of, _, need := s.Member(name)
		why := ""
		if s.Refuses(name) {
			why = facts.ExtraMember
		} else if raw = trimmed(of, at, raw, odd, drop); why == "" {
			why = odd(of, need, raw)
		}
		if why != "" && drop != nil {
			drop(at, why)
		}
		return raw, why == ""
	})
}

// Edited returns an object with the values that edit returns. It leaves out the
// members that edit rejects. Other values stay.
func Edited(object string, edit func(name, raw string) (string, bool)) string {
	if !jsonwire.IsObject(object) {
		return object
	}
	var out dialect.Unknowns
	for name, raw := range jsonwire.Members(object) {
		if raw, ok := edit(name, raw); ok {
			out.Add(name, raw)
		}
	}
	return string(cmp.Or(out.Object(), "{}"))
}

// EditedList does the same with the elements of a list.
func EditedList(list string, edit func(i int, raw string) string) string {
	if !strings.HasPrefix(list, "[") {
		return list
	}
	var out []string
	for raw := range jsonwire.Elements(list) {
		out = append(out, edit(len(out), raw))
	}
	return "[" + strings.Join(out, ",") + "]"
}
