package openwop

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A form checks a value that the vocabulary has no field for. It returns the broken
// rule and what is wrong, or "".
type form func(p Profile, raw string) (agentevents.Rule, string)

// fits reports whether a value has a form, if there is one.
func (f form) fits(p Profile, raw string) bool {
	if f == nil {
		return true
	}
	_, detail := f(p, raw)
	return detail == ""
}

// The words of closed lists.
var (
	transports   = []string{string(agentevents.TransportMCP), string(agentevents.TransportHTTP), string(agentevents.TransportNative)}
	verbosities  = []string{string(agentevents.VerbositySummary), string(agentevents.VerbosityFull), string(agentevents.VerbosityOff)}
	toolStatuses = []string{string(agentevents.ToolStatusOK), string(agentevents.ToolStatusError), string(agentevents.ToolStatusForbidden), string(agentevents.ToolStatusRateLimited)}
	modelWords   = []string{"reasoning", "writing", "coding", "research", "classification", "general"}

	capKinds = []string{
		"clarification", "schema", "envelopes", "node-executions", "wasm-memory", "wasm-fuel", "wasm-execution-time", "run-duration", "loop-iterations",
		"budget-tokens", "budget-cost", "budget-tool-calls", "budget-retries",
	}
	actions         = []string{"accept", "reject", "refine", "ask"} // and one for an edit, whose name differs between the forms of an approval
	reducers        = []string{"replace", "append", "merge", "counter", "votes", "feedback"}
	interruptKinds1 = []string{"approval", "clarification", "external-event", "custom"}
	interruptKinds2 = append(interruptKinds1[:4:4], "conversation.start", "conversation.exchange", "conversation.close", "low-confidence", "credential")
)

func interruptKinds(p Profile) []string {
	if p == SchemaV2 {
		return interruptKinds2
	}
	return interruptKinds1
}

// unlisted returns what is wrong with a word that is not one of words.
func unlisted(word string, words []string) string {
	return strconv.Quote(word) + " is not one of " + strings.Join(words, ", ")
}

// isObject reports whether a JSON value is an object.
func isObject(raw string) bool { return strings.HasPrefix(strings.TrimLeft(raw, " \t\r\n"), "{") }

func isText(raw string) bool { return strings.HasPrefix(raw, `"`) }

func aText(_ Profile, raw string) (agentevents.Rule, string) {
	if !isText(raw) {
		return RuleForm, "is not a text"
	}
	return "", ""
}

func aName(p Profile, raw string) (agentevents.Rule, string) {
	if raw == `""` {
		return RuleRange, "is empty"
	}
	return aText(p, raw)
}

func aName256(p Profile, raw string) (agentevents.Rule, string) {
	if utf8.RuneCountInString(jsonwire.Text(raw)) > 256 {
		return RuleRange, "is longer than 256 characters"
	}
	return aName(p, raw)
}

func aReason(p Profile, raw string) (agentevents.Rule, string) {
	if utf8.RuneCountInString(jsonwire.Text(raw)) > 64 {
		return RuleRange, "must have 1 to 64 characters"
	}
	return aName(p, raw)
}

func anObject(_ Profile, raw string) (agentevents.Rule, string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	return "", ""
}

// aVersion requires a text under SchemaV1 and a number under SchemaV2.
func aVersion(p Profile, raw string) (agentevents.Rule, string) {
	if p == SchemaV2 {
		return wholeFrom(0)(p, raw)
	}
	return aText(p, raw)
}

// perSchema is one form under SchemaV1 and another one under SchemaV2.
func perSchema(v1, v2 form) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if p == SchemaV1 {
			return v1(p, raw)
		}
		return v2(p, raw)
	}
}

// anID requires an id of the given form. Under SchemaV1 it requires v1.
func anID(of IDForm, v1 form) form { return perSchema(v1, anIDOf(of)) }

func anIDOf(of IDForm) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if !isText(raw) {
			return RuleForm, "is not a text"
		}
		if id := jsonwire.Text(raw); !ValidID(p, of, id) {
			return RuleID, badID(id)
		}
		return "", ""
	}
}

func wholeFrom(low int) form {
	return func(_ Profile, raw string) (agentevents.Rule, string) {
		if !whole(raw) {
			return RuleRange, "is not a whole number from 0 on"
		}
		if n, err := strconv.ParseFloat(raw, 64); err == nil && n < float64(low) {
			return RuleRange, "is below " + strconv.Itoa(low)
		}
		return "", ""
	}
}

func oneOf(words ...string) form {
	return func(_ Profile, raw string) (agentevents.Rule, string) {
		if !isText(raw) || !slices.Contains(words, jsonwire.Text(raw)) {
			return RuleEnum, raw + " is not one of " + strings.Join(words, ", ")
		}
		return "", ""
	}
}

// listOf requires a list of at least low values, without repetitions if unique is
// set.
func listOf(of form, low int, unique bool) form {
	return func(p Profile, raw string) (rule agentevents.Rule, detail string) {
		seen := map[string]bool{}
		n, ok := count(raw, func(value string) bool {
			if detail == "" {
				rule, detail = of(p, value)
			}
			if unique && seen[jsonwire.Text(value)] && detail == "" {
				rule, detail = RuleForm, "has "+value+" twice"
			}
			seen[jsonwire.Text(value)] = true
			return true
		})
		switch {
		case detail != "":
			return rule, detail
		case !ok:
			return RuleForm, "is not a list"
		case n < low:
			return RuleRange, "is empty"
		}
		return "", ""
	}
}

// A part is a member of a closed object.
type part struct {
	name string
	form form
	need bool
}

// closedObject requires an object that has only the parts.
func closedObject(parts ...part) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if !isObject(raw) {
			return RuleForm, "is not an object"
		}
		for name, value := range jsonwire.Members(raw) {
			i := slices.IndexFunc(parts, func(m part) bool { return m.name == name })
			if i < 0 {
				return RuleClosed, "has the extra member " + strconv.Quote(name) + ", but is closed"
			}
			if rule, detail := parts[i].form(p, value); detail != "" {
				return rule, "has a " + name + " that " + detail
			}
		}
		for _, m := range parts {
			if m.need && !jsonwire.HasMember(raw, m.name) {
				return RuleRequired, "lacks its " + m.name
			}
		}
		return "", ""
	}
}

// anOwner requires {tenant, workspace?, principal?}. Under SchemaV2 a subject
// replaces the principal.
var anOwner = perSchema(
	closedObject(part{"tenant", aName, true}, part{"workspace", aName, false}, part{"principal", aName, false}),
	closedObject(part{"tenant", aTenant, true}, part{"workspace", aWorkspace, false}, part{"subject", aSubject, true}),
)

// aSubject requires the identity of a caller, under SchemaV2. The actor is a
// subject on whose behalf the caller acted, at most four deep.
var aSubject = subjectOf(4)

func subjectOf(actors int) form {
	parts := []part{
		{"issuer", spaceless(1024, ""), true}, {"subjectId", spaceless(256, "/"), true}, {"tenant", aTenant, true},
		{"lane", oneOf("api-key", "oauth2", "oidc", "mtls", "saml", "scim", "ldap", "workload", "session", "anonymous"), true},
		{"kind", oneOf("user", "agent", "anonymous", "workload"), true}, {"keyClass", oneOf("opaque-idp", "configured-immutable"), false},
	}
	if actors > 0 {
		parts = append(parts, part{"actor", subjectOf(actors - 1), false})
	}
	closed := closedObject(parts...)
	return func(p Profile, raw string) (agentevents.Rule, string) {
		lane := memberText(raw, "lane")
		switch rule, detail := closed(p, raw); {
		case detail != "":
			return rule, detail
		case (lane == "anonymous") != (memberText(raw, "kind") == "anonymous"):
			return RuleForm, "must have both an anonymous lane and an anonymous kind, or neither"
		case (lane == "saml" || lane == "scim") != jsonwire.HasMember(raw, "keyClass"):
			return RuleForm, "must have a keyClass if its lane is saml or scim, and only then"
		}
		return "", ""
	}
}

// aTrace requires the id of a trace: any text under SchemaV1, the form of W3C
// Trace Context under SchemaV2.
func aTrace(p Profile, raw string) (agentevents.Rule, string) {
	if id := jsonwire.Text(raw); p == SchemaV2 && (len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "") {
		return RuleID, badID(id)
	}
	return aText(p, raw)
}

// anInterruptKind requires a kind of interrupt. SchemaV2 has more of them.
func anInterruptKind(p Profile, raw string) (agentevents.Rule, string) {
	return oneOf(interruptKinds(p)...)(p, raw)
}

// spaceless requires a text of 1 to high characters without blanks and without
// the characters of others.
func spaceless(high int, others string) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if rule, detail := aName(p, raw); detail != "" {
			return rule, detail
		}
		id := jsonwire.Text(raw)
		if utf8.RuneCountInString(id) > high || strings.ContainsFunc(id, unicode.IsSpace) || strings.ContainsAny(id, others+"\ufeff") {
			return RuleID, badID(id)
		}
		return "", ""
	}
}

func aTenant(p Profile, raw string) (agentevents.Rule, string) {
	if rest, ok := strings.CutPrefix(raw, `"anon:`); ok {
		raw = `"` + rest
	}
	return aWorkspace(p, raw)
}

func aWorkspace(p Profile, raw string) (agentevents.Rule, string) {
	if rule, detail := aName(p, raw); detail != "" {
		return rule, detail
	}
	if id := jsonwire.Text(raw); !opaque(id, 1, 128, false) {
		return RuleID, badID(id)
	}
	return "", ""
}

// aFeedback requires what a person wants to have refined.
var aFeedback = closedObject(
	part{"scope", oneOf("whole", "section", "items"), true}, part{"sectionPath", aText, false}, part{"itemIds", listOf(aText, 0, false), false},
	part{"tags", listOf(aText, 0, false), false}, part{"text", aText, false},
)

// aQuorum requires how many have granted of how many.
var aQuorum = closedObject(part{"granted", wholeFrom(0), false}, part{"required", wholeFrom(1), false})
