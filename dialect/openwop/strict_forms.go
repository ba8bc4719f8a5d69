package openwop

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// checkDeclared checks the members that the schemas declare and the vocabulary
// has no field for.
func (d *Decoder) checkDeclared(f *fields, v int) error {
	for _, u := range d.unknown.pairs {
		name, ok := strings.CutPrefix(u.key, "/payload/")
		if !ok {
			continue
		}
		if v == vAskRequested && strings.HasPrefix(name, "data/") && name != "data/contextType" {
			return broken(RuleClosed, f, u.key, "is not a member of what is closed")
		}
		for i := range declared {
			m := &declared[i]
			if m.name != name || m.of&(1<<v) == 0 || m.only != RFC0002 && m.only != d.o.Profile {
				continue
			}
			if rule, detail := m.form(d.o.Profile, u.raw); detail != "" {
				return broken(rule, f, u.key, detail)
			}
		}
	}
	return nil
}

// A form is what a value must be. It returns the broken rule and what is wrong.
type form func(p Profile, raw string) (agentevents.Rule, string)

// declared are the members of the schemas without a field, by the variants that
// have them. only is the schema that has them, if it is one.
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
	{of: 1<<vAskResolved | 1<<vPermitResolved, name: "resolvedBy", form: anObject, only: SchemaV2},
	{of: 1<<vAskResolved | 1<<vPermitResolved, name: "refineFeedback", form: anObject, only: SchemaV2},
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
		return RuleRange, "has not 1 to 64 characters"
	}
	return aName(p, raw)
}

func anObject(_ Profile, raw string) (agentevents.Rule, string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	return "", ""
}

// aVersion is a text under SchemaV1 and a number under SchemaV2.
func aVersion(p Profile, raw string) (agentevents.Rule, string) {
	if p == SchemaV2 {
		return wholeFrom(0)(p, raw)
	}
	return aText(p, raw)
}

// anID is an id of the form under SchemaV2; under SchemaV1 it is what v1 says.
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
			return RuleEnum, raw + " is not one of the values"
		}
		return "", ""
	}
}

// listOf is a list of at least so many values, without repetitions if they are
// unique.
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

// anOwner is {tenant, workspace?, principal?}, under SchemaV2 with a subject in
// place of the principal.
func anOwner(p Profile, raw string) (agentevents.Rule, string) {
	if !isObject(raw) {
		return RuleForm, "is not an object"
	}
	tenant, subject := false, p != SchemaV2
	for name, value := range jsonwire.Members(raw) {
		switch {
		case name == "subject" && p == SchemaV2:
			if subject = isObject(value); !subject {
				return RuleForm, "has a subject that is not an object"
			}
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
			return RuleClosed, "has the member " + strconv.Quote(name) + ", which it does not have"
		}
	}
	if !tenant || !subject {
		return RuleRequired, "lacks its tenant or subject"
	}
	return "", ""
}

// aQuorum is {granted?, required?}.
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
			rule, detail = RuleClosed, "is not one of its members"
		}
		if detail != "" {
			return rule, strconv.Quote(name) + " " + detail
		}
	}
	return "", ""
}

// validReducer reports whether the schemas have a reducer, or let vendors have
// it.
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
