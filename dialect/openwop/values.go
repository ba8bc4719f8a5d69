package openwop

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A form checks a JSON value that the vocabulary has no field for. It returns the
// broken rule and what is wrong, or "". Nil allows any value.
type form func(p Profile, raw string) (agentevents.Rule, string)

func (f form) check(p Profile, raw string) (agentevents.Rule, string) {
	if f == nil {
		return "", ""
	}
	return f(p, raw)
}

// fits reports whether a value has the form.
func (f form) fits(p Profile, raw string) bool {
	_, detail := f.check(p, raw)
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
	reducers       = []string{"replace", "append", "merge", "counter", "votes", "feedback"}
	interruptKinds = []string{"approval", "clarification", "external-event", "custom"} // SchemaV2 has more

	// suspensionKinds are those of interrupt.requested.
	suspensionKinds = append(slices.Clip(interruptKinds), "conversation.start", "conversation.exchange", "conversation.close", "low-confidence")
)

// actions are the answers that a request for approval may offer. Its forms differ in the
// name of an edit.
func actions(edit string) []string { return []string{"accept", "reject", "refine", edit, "ask"} }

// unlisted returns what is wrong with a word that is not one of words.
func unlisted(word string, words []string) string {
	return jsonwire.Word(word) + " is not one of " + strings.Join(words, ", ")
}

func isText(raw string) bool { return strings.HasPrefix(raw, `"`) }

// declared returns an object without the members that the parts do not have. It
// hands their names to drop.
func declared(object string, parts []part, p Profile, drop func(name string)) string {
	return edited(object, func(name, raw string) (string, bool) {
		_, has := formOf(parts, p, name)
		if !has {
			drop(name)
		}
		return raw, has
	})
}

// edited returns an object with the values that edit returns. It leaves out the
// members that edit rejects. Other values stay.
func edited(object string, edit func(name, raw string) (string, bool)) string {
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

// editedList does the same with the elements of a list.
func editedList(list string, edit func(i int, raw string) string) string {
	if !strings.HasPrefix(list, "[") {
		return list
	}
	var out []string
	for raw := range jsonwire.Elements(list) {
		out = append(out, edit(len(out), raw))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// valueThat requires a value that is good. wrong says what any other is.
func valueThat(good func(raw string) bool, rule agentevents.Rule, wrong string) form {
	return func(_ Profile, raw string) (agentevents.Rule, string) {
		if good(raw) {
			return "", ""
		}
		return rule, wrong
	}
}

// allOf requires all forms. The first one that a value does not have counts.
func allOf(forms ...form) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		for _, f := range forms {
			if rule, detail := f(p, raw); detail != "" {
				return rule, detail
			}
		}
		return "", ""
	}
}

var (
	aText    = valueThat(isText, RuleForm, "is not a text")
	aName    = allOf(aText, valueThat(func(raw string) bool { return raw != `""` }, RuleRange, "is empty"))
	anObject = valueThat(jsonwire.IsObject, RuleForm, "is not an object")
	aBool    = valueThat(func(raw string) bool { return raw == "true" || raw == "false" }, RuleForm, "is neither true nor false")

	aCap     = valueThat(func(raw string) bool { return raw != `""` }, RuleEnum, "is empty")
	aPlainID = anIDOf(PlainID)

	// aVersion is a text under SchemaV1 and a number under SchemaV2.
	aVersion = perSchema(aText, wholeFrom(0))
)

// shortText requires a text of the form that has at most high characters.
func shortText(text form, high int) form {
	return allOf(text, valueThat(func(raw string) bool { return utf8.RuneCountInString(jsonwire.Text(raw)) <= high },
		RuleRange, "is longer than "+strconv.Itoa(high)+" characters"))
}

// perSchema is one form under SchemaV1 and another one under SchemaV2. RFC0002 allows
// any value.
func perSchema(v1, v2 form) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		switch p {
		case SchemaV1:
			return v1.check(p, raw)
		case SchemaV2:
			return v2.check(p, raw)
		}
		return "", ""
	}
}

// idThat requires a text of the form that is a legal id. want says what is legal.
func idThat(text form, legal func(id string) bool, want string) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		rule, detail := text(p, raw)
		if id := jsonwire.Text(raw); detail == "" && !legal(id) {
			return RuleID, jsonwire.Brief(id) + " is not legal; legal: " + want
		}
		return rule, detail
	}
}

// anID requires an id of the given form. Under SchemaV1 it requires v1.
func anID(of IDForm, v1 form) form { return perSchema(v1, anIDOf(of)) }

func anIDOf(of IDForm) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		rule, detail := aText(p, raw)
		switch id := jsonwire.Text(raw); {
		case detail != "" || ValidID(p, of, id):
			return rule, detail
		case id == "":
			return RuleID, "is empty; legal: " + of.legal(p)
		default:
			return RuleID, jsonwire.Brief(id) + " does not have the form of " + p.String() + "; legal: " + of.legal(p)
		}
	}
}

// numberIn requires a number from low to high: want says so.
func numberIn(low, high float64, want string) form {
	return valueThat(func(raw string) bool {
		n, err := strconv.ParseFloat(raw, 64)
		return err == nil && n >= low && n <= high
	}, RuleRange, "is not "+want)
}

func wholeFrom(low uint64) form {
	return valueThat(func(raw string) bool {
		var s jsonwire.Scanner
		s.Reset(raw)
		n, err := sequence(&s)
		return err == nil && n >= low
	}, RuleRange, "is not a whole number from "+strconv.FormatUint(low, 10)+" on")
}

func oneOf(words ...string) form {
	return func(_ Profile, raw string) (agentevents.Rule, string) {
		word := jsonwire.Text(raw)
		switch {
		case !isText(raw):
			return RuleEnum, jsonwire.Describe(raw) + " is not one of " + strings.Join(words, ", ")
		case !slices.Contains(words, word):
			return RuleEnum, unlisted(word, words)
		}
		return "", ""
	}
}

// listOf requires a list of at least low (0 or 1) values, without repetitions if
// unique is set.
func listOf(of form, low int, unique bool) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if !strings.HasPrefix(raw, "[") {
			return RuleForm, "is not a list"
		}
		seen := map[string]bool{}
		for value := range jsonwire.Elements(raw) {
			if rule, detail := of(p, value); detail != "" {
				return rule, detail
			}
			text := jsonwire.Text(value)
			if unique && seen[text] {
				return RuleForm, "has an element twice"
			}
			seen[text] = true
		}
		if len(seen) < low {
			return RuleRange, "is empty"
		}
		return "", ""
	}
}

// A part is a member of an object.
type part struct {
	name string
	form form    // nil: any value
	need bool    // objects without it are refused
	only Profile // the schema that has it, if only one has
}

func must(name string, form form) part { return part{name: name, form: form, need: true} }
func may(name string, form form) part  { return part{name: name, form: form} }

// in returns the part as one that only a schema has.
func (m part) in(p Profile) part { m.only = p; return m }

func (m *part) of(p Profile) bool { return m.only == RFC0002 || m.only == p }

// formOf returns the form of the part of that name, and whether the profile has it.
func formOf(parts []part, p Profile, name string) (of form, has bool) {
	for i := range parts {
		if m := &parts[i]; m.name == name && m.of(p) {
			return m.form, true
		}
	}
	return nil, false
}

// brokenPart returns the first member of an object that is not as the parts say, the
// rule that it breaks and what is wrong, or "". An open object may have other members.
func brokenPart(parts []part, open bool, p Profile, object string) (name string, rule agentevents.Rule, detail string) {
	for name, value := range jsonwire.Members(object) {
		of, has := formOf(parts, p, name)
		if rule, detail := of.check(p, value); detail != "" {
			return name, rule, detail
		}
		if !has && !open {
			return name, RuleClosed, extraMember
		}
	}
	for _, m := range parts {
		if m.need && m.of(p) && !jsonwire.HasMember(object, m.name) {
			return m.name, RuleRequired, "is required"
		}
	}
	return "", "", ""
}

const extraMember = "is an extra member of a closed object"

// closedObject requires an object that has only the parts.
func closedObject(parts ...part) form { return objectOf(parts, false) }

// openObject requires an object of the parts, perhaps with other members.
func openObject(parts ...part) form { return objectOf(parts, true) }

func objectOf(parts []part, open bool) form {
	return allOf(anObject, func(p Profile, raw string) (agentevents.Rule, string) {
		name, rule, detail := brokenPart(parts, open, p, raw)
		if detail != "" {
			detail = jsonwire.Brief(name) + " " + detail
		}
		return rule, detail
	})
}

// anOwner requires {tenant, workspace?, principal?}. Under SchemaV2 a subject
// replaces the principal.
var anOwner = perSchema(
	closedObject(must("tenant", aName), may("workspace", aName), may("principal", aName)),
	closedObject(must("tenant", aTenant), may("workspace", anOpaque), must("subject", aSubject)),
)

// aSubject requires the identity of a caller, under SchemaV2. The actor is a
// subject on whose behalf the caller acted, at most four deep.
var aSubject = subjectOf(4)

func subjectOf(actors int) form {
	parts := []part{
		must("issuer", spaceless(1024, "", "1 to 1024 characters without blanks")), must("subjectId", spaceless(256, "/", "1 to 256 characters without blanks and /")), must("tenant", aTenant),
		must("lane", oneOf("api-key", "oauth2", "oidc", "mtls", "saml", "scim", "ldap", "workload", "session", "anonymous")),
		must("kind", oneOf("user", "agent", "anonymous", "workload")), may("keyClass", oneOf("opaque-idp", "configured-immutable")),
	}
	if actors > 0 {
		parts = append(parts, may("actor", subjectOf(actors-1)))
	}
	anonymous := valueThat(func(raw string) bool {
		return (jsonwire.Text(jsonwire.Member(raw, "lane")) == "anonymous") == (jsonwire.Text(jsonwire.Member(raw, "kind")) == "anonymous")
	}, RuleForm, "must have both an anonymous lane and an anonymous kind, or neither")
	keyed := valueThat(func(raw string) bool {
		lane := jsonwire.Text(jsonwire.Member(raw, "lane"))
		return (lane == "saml" || lane == "scim") == jsonwire.HasMember(raw, "keyClass")
	}, RuleForm, "must have a keyClass if its lane is saml or scim, and only then")
	return allOf(closedObject(parts...), anonymous, keyed)
}

var (
	anOpaque = idThat(aName, func(id string) bool { return opaque(id, 1, 128, "") }, opaqueText)
	aTenant  = idThat(aName, func(id string) bool { return opaque(strings.TrimPrefix(id, "anon:"), 1, 128, "") }, opaqueText+", perhaps after anon:")

	// aTrace is any text under SchemaV1, and under SchemaV2 in the form of W3C Trace
	// Context.
	aTrace = perSchema(aText, idThat(aText, func(id string) bool {
		return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
	}, "32 hexadecimal digits in lower case"))

	anInterruptKind = perSchema(oneOf(interruptKinds...), oneOf(append(slices.Clip(suspensionKinds), "credential")...))

	// aFeedback is what a person wants to have refined.
	aFeedback = closedObject(
		must("scope", oneOf("whole", "section", "items")), may("sectionPath", aText), may("itemIds", listOf(aText, 0, false)),
		may("tags", listOf(aText, 0, false)), may("text", aText),
	)

	// aQuorum is how many have granted of how many.
	aQuorum = closedObject(may("granted", wholeFrom(0)), may("required", wholeFrom(1)))
)

// opaqueText says what opaque allows.
const opaqueText = "1 to 128 letters, digits and . _ ~ -"

// spaceless requires a text of 1 to high characters without blanks and without
// the characters of others. want says so.
func spaceless(high int, others, want string) form {
	return idThat(aName, func(id string) bool {
		return utf8.RuneCountInString(id) <= high && !strings.ContainsFunc(id, unicode.IsSpace) && !strings.ContainsAny(id, others+"\ufeff")
	}, want)
}
