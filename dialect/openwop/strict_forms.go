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

// checkDeclared checks the members that the schemas declare, but the vocabulary
// has no field for.
func (d *Decoder) checkDeclared(f *fields, v int) error {
	for _, u := range d.unknown.pairs {
		name, ok := strings.CutPrefix(u.key, "/payload/")
		if !ok {
			continue
		}
		if v == vAskRequested && strings.HasPrefix(name, "data/") && name != "data/contextType" {
			return broken(RuleClosed, f, u.key, "is an extra member of a closed object")
		}
		if of := declaredForm(v, d.o.Profile, name); of != nil {
			if rule, detail := of(d.o.Profile, u.raw); detail != "" {
				return broken(rule, f, u.key, detail)
			}
		}
	}
	return nil
}

// declaredForm returns the form that a profile's schema declares for a member of
// a variant, or nil.
func declaredForm(v int, p Profile, name string) form {
	for i := range declared {
		if m := &declared[i]; m.name == name && m.of&(1<<v) != 0 && (m.only == RFC0002 || m.only == p) {
			return m.form
		}
	}
	return nil
}

// A form checks a value. It returns the broken rule and what is wrong, or "".
type form func(p Profile, raw string) (agentevents.Rule, string)

// declared are the members of the schemas without a field, by the variants that
// have them. only is the schema, if only one has the member.
var declared = [...]struct {
	of   uint64
	name string
	form form
	only Profile
}{
	{of: 1<<vReasoned | 1<<vToolCalled | 1<<vToolReturned | 1<<vHandoff | 1<<vDecided | 1<<vOrchestrator, name: "causationHostId", form: aName},
	{of: 1 << vRunStarted, name: "transport", form: oneOf("rest", "mcp", "a2a", "ui")},
	{of: 1 << vRunStarted, name: "engineVersion", form: aVersion},
	{of: 1 << vRunStarted, name: "owner", form: anOwner},
	{of: 1 << vRunStarted, name: "tags", form: listOf(aText, 0, false)},
	{of: 1 << vRunStarted, name: "metadata", form: anObject},
	{of: 1<<vRunCompleted | 1<<vRunFailed | 1<<vRunCancelled, name: "durationMs", form: wholeFrom(0)},
	{of: 1 << vRunFailed, name: "failedNodeId", form: anID(NodeID, aText)},
	{of: 1 << vRunCancelled, name: "cancelledBy", form: aText},
	{of: 1 << vRunCancelled, name: "parentRunId", form: anID(RunID, aName)},
	{of: 1 << vRunPaused, name: "drainPolicy", form: oneOf("immediate", "drain-current-node"), only: SchemaV2},
	{of: 1 << vRunPaused, name: "interruptedNodeId", form: anID(NodeID, aText), only: SchemaV2},
	{of: 1 << vRunPaused, name: "interruptedAttempt", form: wholeFrom(1), only: SchemaV2},
	{of: 1 << vNodeFailed, name: "attempts", form: wholeFrom(1)},
	{of: 1 << vCapBreached, name: "nodeId", form: anID(NodeID, aText)},
	{of: 1 << vApprovalRequested, name: "artifactId", form: aText},
	{of: 1 << vApprovalRequested, name: "artifactType", form: aText},
	{of: 1 << vApprovalRequested, name: "actions", form: listOf(oneOf("accept", "reject", "refine", "edit", "ask"), 1, false)},
	{of: 1 << vApprovalRequested, name: "approversList", form: listOf(aText, 0, false)},
	{of: 1 << vApprovalRequested, name: "requiredApprovals", form: wholeFrom(1)},
	{of: 1 << vApprovalGranted, name: "quorumProgress", form: aQuorum},
	{of: 1<<vAskRequested | 1<<vPermitRequested, name: "resumeSchema", form: anObject},
	{of: 1 << vAskRequested, name: "timeoutMs", form: wholeFrom(0)},
	{of: 1 << vAskRequested, name: "data/contextType", form: aText},
	{of: 1 << vPermitRequested, name: "data/artifactId", form: aText},
	{of: 1 << vPermitRequested, name: "data/artifactType", form: aName},
	{of: 1 << vPermitRequested, name: "data/actions", form: listOf(oneOf("accept", "reject", "refine", "edit-accept", "ask"), 1, true)},
	{of: 1 << vPermitRequested, name: "data/description", form: aText},
	{of: 1 << vPermitRequested, name: "data/requiredApprovals", form: wholeFrom(1)},
	{of: 1 << vPermitRequested, name: "data/approversList", form: listOf(aText, 0, false)},
	{of: 1 << vPermitRequested, name: "data/rejectionPolicy", form: oneOf("single-veto", "majority")},
	{of: 1 << vAskResolved, name: "reason", form: aReason, only: SchemaV2},
	{of: 1 << vAskResolved, name: "decision", form: oneOf("granted", "rejected", "overridden"), only: SchemaV2},
	{of: 1<<vAskResolved | 1<<vPermitResolved, name: "action", form: oneOf("accept", "reject", "refine", "edit-accept", "timeout"), only: SchemaV2},
	{of: 1<<vAskResolved | 1<<vPermitResolved, name: "resolvedBy", form: aSubject, only: SchemaV2},
	{of: 1<<vAskResolved | 1<<vPermitResolved, name: "refineFeedback", form: aFeedback, only: SchemaV2},
	{of: 1 << vMessage, name: "nodeId", form: anID(NodeID, anIDOf(NodeID))},
	{of: 1 << vMessage, name: "schemaVersion", form: wholeFrom(1)},
	{of: 1 << vMessage, name: "sourceEngineId", form: aName256},
	{of: 1 << vMessage, name: "sourceRunId", form: anID(RunID, anIDOf(RunID))},
}

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

// anID requires an id of the given form. Under SchemaV1 it requires v1.
func anID(of IDForm, v1 form) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if p == SchemaV1 {
			return v1(p, raw)
		}
		return anIDOf(of)(p, raw)
	}
}

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

// anOwner requires {tenant, workspace?, principal?}. Under SchemaV2 a subject
// replaces the principal.
func anOwner(p Profile, raw string) (agentevents.Rule, string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	tenant, subject := false, p != SchemaV2
	for name, value := range jsonwire.Members(raw) {
		switch {
		case name == "subject" && p == SchemaV2:
			if rule, detail := aSubject(p, value); detail != "" {
				return rule, "has a subject that " + detail
			}
			subject = true
		case name == "tenant", name == "workspace", name == "principal" && p == SchemaV1:
			if rule, detail := aName(p, value); detail != "" {
				return rule, "has a " + name + " that " + detail
			}
			id := jsonwire.Text(value)
			if name == "tenant" {
				id = strings.TrimPrefix(id, "anon:")
			}
			if p == SchemaV2 && !opaque(id, 1, 128, false) {
				return RuleID, "has a " + name + " that " + badID(id)
			}
			tenant = tenant || name == "tenant"
		default:
			return RuleClosed, "has the extra member " + strconv.Quote(name) + ", but is closed"
		}
	}
	if !tenant || !subject {
		return RuleRequired, "lacks its tenant or subject"
	}
	return "", ""
}

// aSubject requires the identity of a caller, under SchemaV2: {issuer, subjectId,
// tenant, lane, kind, keyClass?, actor?}. The actor is a subject on whose behalf
// the caller acted, at most four deep.
func aSubject(p Profile, raw string) (agentevents.Rule, string) { return subjectOf(p, raw, 4) }

func subjectOf(p Profile, raw string, actors int) (agentevents.Rule, string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	var words [len(subjectMembers)]string
	for name, value := range jsonwire.Members(raw) {
		if name == "actor" && actors > 0 {
			if rule, detail := subjectOf(p, value, actors-1); detail != "" {
				return rule, "has an actor that " + detail
			}
			continue
		}
		i := slices.IndexFunc(subjectMembers[:], func(m subjectMember) bool { return m.name == name })
		if i < 0 {
			return RuleClosed, "has the extra member " + strconv.Quote(name) + ", but is closed"
		}
		if rule, detail := subjectMembers[i].form(p, value); detail != "" {
			return rule, "has a " + name + " that " + detail
		}
		words[i] = jsonwire.Text(value)
	}
	for i, word := range words[:subjectRequired] {
		if word == "" {
			return RuleRequired, "lacks its " + subjectMembers[i].name
		}
	}
	const lane, kind, keyClass = 3, 4, 5
	if (words[lane] == "anonymous") != (words[kind] == "anonymous") {
		return RuleForm, "must have both an anonymous lane and an anonymous kind, or neither"
	}
	if (words[lane] == "saml" || words[lane] == "scim") != (words[keyClass] != "") {
		return RuleForm, "must have a keyClass if its lane is saml or scim, and only then"
	}
	return "", ""
}

type subjectMember struct {
	name string
	form form
}

// subjectMembers are the members of a subject. The required ones come first.
var subjectMembers = [...]subjectMember{
	{"issuer", spaceless(1024, "")}, {"subjectId", spaceless(256, "/")}, {"tenant", aTenant},
	{"lane", oneOf("api-key", "oauth2", "oidc", "mtls", "saml", "scim", "ldap", "workload", "session", "anonymous")},
	{"kind", oneOf("user", "agent", "anonymous", "workload")},
	{"keyClass", oneOf("opaque-idp", "configured-immutable")},
}

const subjectRequired = 5

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
	id := jsonwire.Text(raw)
	if !isText(raw) || !opaque(strings.TrimPrefix(id, "anon:"), 1, 128, false) {
		return RuleID, badID(id)
	}
	return "", ""
}

// aFeedback requires {scope, sectionPath?, itemIds?, tags?, text?}.
func aFeedback(p Profile, raw string) (rule agentevents.Rule, detail string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	scope := false
	for name, value := range jsonwire.Members(raw) {
		switch name {
		case "scope":
			scope = true
			rule, detail = oneOf("whole", "section", "items")(p, value)
		case "sectionPath", "text":
			rule, detail = aText(p, value)
		case "itemIds", "tags":
			rule, detail = listOf(aText, 0, false)(p, value)
		default:
			rule, detail = RuleClosed, "is an extra member of a closed object"
		}
		if detail != "" {
			return rule, strconv.Quote(name) + " " + detail
		}
	}
	if !scope {
		return RuleRequired, "lacks its scope"
	}
	return "", ""
}

// aQuorum requires {granted?, required?}.
func aQuorum(p Profile, raw string) (rule agentevents.Rule, detail string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	for name, value := range jsonwire.Members(raw) {
		switch name {
		case "granted":
			rule, detail = wholeFrom(0)(p, value)
		case "required":
			rule, detail = wholeFrom(1)(p, value)
		default:
			rule, detail = RuleClosed, "is an extra member of a closed object"
		}
		if detail != "" {
			return rule, strconv.Quote(name) + " " + detail
		}
	}
	return "", ""
}

// validReducer reports whether a reducer is the schemas' or a vendor's.
func validReducer(name string) bool {
	switch name {
	case "replace", "append", "merge", "counter", "votes", "feedback":
		return true
	}
	rest, ok := strings.CutPrefix(name, "vendor.")
	org, own, two := strings.Cut(rest, ".")
	good := func(s string) bool {
		return s != "" && s[0] >= 'a' && s[0] <= 'z' &&
			strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	}
	return ok && two && good(org) && good(own)
}

func validTime(text string) bool {
	var s jsonwire.Scanner
	s.Reset(jsonwire.Quote(text))
	_, err := s.Time()
	return err == nil
}
