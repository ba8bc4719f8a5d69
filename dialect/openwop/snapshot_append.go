package openwop

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// AppendSnapshot appends the snapshot as one JSON object without a newline. It
// returns what the object does not say of the snapshot, and what it says beyond
// it, with pointers into the object.
//
// The schemas differ from the fields in three places. Their AgentRef has no
// agentSharing and other model classes: they call the RFC's coding code. Their
// error has no retryable and no extra members, and its details are an object.
// SchemaV2 requires eventLogSchemaVersion.
//
// AppendSnapshot appends nothing and returns an [*agentevents.RuleError] in these
// cases: a member that the profile requires is missing (workflowId under the
// schemas, owner under SchemaV2); an id, the status or a value does not have the
// profile's form; SchemaV2 does not have a member; raw JSON is not valid.
func AppendSnapshot(dst []byte, s Snapshot, p Profile) ([]byte, []dialect.Loss, error) {
	w := snapshotWriter{s: &s, p: p}
	var out dialect.Unknowns
	for _, f := range s.fields() {
		if f.name == "metrics" && p == SchemaV2 && !jsonwire.HasMember(string(s.More), "eventLogSchemaVersion") {
			out.Add("eventLogSchemaVersion", madeLogVersion)
			w.lose(dialect.Made, "/eventLogSchemaVersion", madeLogVersion)
		}
		if raw := w.value("/"+f.name, f.at); raw != "" {
			out.Add(f.name, raw)
		}
	}
	w.rest(&out, "", "More", s.More)
	parts := snapshotParts
	if p == RFC0002 {
		parts = snapshotOfRFC
	}
	object := string(out.Object())
	if name, rule, detail := brokenPart(parts, p != SchemaV2, p, object); detail != "" {
		w.fail(rule, "/"+jsonwire.Token(name), detail)
	}
	if w.err != nil {
		return dst, nil, w.err
	}
	return append(dst, object...), w.losses, nil
}

// madeLogVersion is the version that hosts of SchemaV2 write.
const madeLogVersion = "3"

// A snapshotWriter writes one snapshot.
type snapshotWriter struct {
	s      *Snapshot
	p      Profile
	losses []dialect.Loss
	err    error
}

func (w *snapshotWriter) fail(rule agentevents.Rule, pointer, detail string) {
	if w.err == nil {
		w.err = &agentevents.RuleError{Rule: rule, RunID: w.s.RunID, Pointer: pointer, Detail: detail}
	}
}

func (w *snapshotWriter) lose(what dialect.Change, pointer, detail string) {
	w.losses = append(w.losses, dialect.Loss{What: what, Pointer: pointer, Detail: detail, Count: 1, RunID: w.s.RunID})
}

// The members of a snapshot.
var (
	snapshotOfRFC = []part{must("runId", nil), must("status", nil)}
	snapshotParts = []part{
		must("runId", anIDOf(RunID)), must("workflowId", anIDOf(WorkflowID)),
		must("status", oneOf(
			string(StatusPending), string(StatusRunning), string(StatusPaused), string(StatusWaitingApproval), string(StatusWaitingInput),
			string(StatusWaitingExternal), string(StatusCompleted), string(StatusFailed), string(StatusCancelling), string(StatusCancelled),
		)),
		must("owner", anOwner).in(SchemaV2), may("owner", anOwner), may("currentNodeId", anID(NodeID, aText)), may("startedAt", nil), may("completedAt", nil),
		may("agent", nil), may("runOrchestrator", nil), may("error", nil), may("nodeStates", anObject), may("variables", anObject), may("channels", anObject),
		may("metrics", perSchema(openObject(may("openwopCost", aCost)), closedObject(may("openwopCost", aCost)))),
		may("engineVersion", aVersion), may("eventLogSchemaVersion", perSchema(wholeFrom(0), wholeFrom(2))), may("metadata", anObject), may("configurable", anObject),
		may("tags", allOf(listOf(shortText(aText, 256), 0, false), atMost100)), may("inputs", anObject).in(SchemaV2), may("extensions", theExtensions).in(SchemaV2),
		may("parentRunId", anIDOf(RunID)).in(SchemaV2),
		may("compensationStatus", oneOf("none", "pending", "running", "completed", "partial", "failed", "manual")).in(SchemaV2),
	}
	aCost = closedObject(
		may("usd", numberIn(0, math.Inf(1), "a number from 0 on")), may("tokens", closedObject(may("input", wholeFrom(0)), may("output", wholeFrom(0)))),
		may("model", aText), may("provider", aText), may("duration_ms", wholeFrom(0)),
	)
	atMost100 = valueThat(func(raw string) bool { return len(slices.Collect(jsonwire.Elements(raw))) <= 100 }, RuleRange, "has more than 100 elements")
	// The members of its AgentRefs and its error under the schemas.
	refParts = []part{
		must("agentId", anIDOf(AgentID)), may("memoryRef", shortText(aName, 256)), may("name", shortText(aText, 256)), may("version", shortText(aText, 64)),
		may("channel", shortText(aName, 64)), may("sourceManifestId", shortText(aText, 256)), may("modelClass", nil),
	}
	errorParts   = []part{may("code", nil), may("message", nil), may("details", nil)}
	modelClasses = []string{"reasoning", "tool-using", "chat", "code", "vision", "multimodal", "embedding", "classification", "retrieval"}
)

// theExtensions requires objects, with names such as acme.state.
func theExtensions(p Profile, raw string) (agentevents.Rule, string) {
	for name, value := range jsonwire.Members(raw) {
		org, own, _ := strings.Cut(name, ".")
		if !kebab(org) || !kebab(own) {
			return RuleForm, "has the member " + jsonwire.Brief(name) + ", but a name must be an organization, a dot and a word"
		}
		if !jsonwire.IsObject(value) {
			return RuleForm, jsonwire.Brief(name) + " is not an object"
		}
	}
	return anObject(p, raw)
}

// value returns the value of a field, or "".
func (w *snapshotWriter) value(pointer string, at any) string {
	switch v := at.(type) {
	case *string:
		if *v != "" {
			w.valid(pointer, *v)
			return jsonwire.Quote(*v)
		}
	case *time.Time:
		if y := v.UTC().Year(); y < 0 || y > 9999 {
			w.fail(agentevents.RuleFieldRange, pointer, "is outside the years 0 to 9999")
		} else if !v.IsZero() {
			return string(jsonwire.AppendTime(nil, *v))
		}
	case *agentevents.JSON:
		return w.json(pointer, *v)
	case *agentevents.Opt[agentevents.AgentRef]:
		if v.OK {
			return w.ref(pointer, &v.V)
		}
	case *agentevents.Opt[agentevents.ErrorInfo]:
		if v.OK {
			return w.error(pointer, v.V)
		}
	}
	return ""
}

// valid refuses ids and words that are not UTF-8.
func (w *snapshotWriter) valid(pointer, text string) {
	if !jsonwire.ValidUTF8(text) {
		w.fail(agentevents.RuleFieldUTF8, pointer, "is not valid UTF-8")
	}
}

// json returns raw JSON without blanks.
func (w *snapshotWriter) json(pointer string, raw agentevents.JSON) string {
	if raw == "" {
		return ""
	}
	out, err := jsonwire.Compact(string(raw))
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, pointer, err.Error())
	}
	return out
}

// rest adds the members of more to an object, but those that it has.
func (w *snapshotWriter) rest(out *dialect.Unknowns, pointer, what string, more agentevents.JSON) {
	raw := w.json(pointer, more)
	if raw != "" && !jsonwire.IsObject(raw) {
		w.fail(agentevents.RuleFieldJSON, pointer, what+" is not an object")
	}
	for name, value := range jsonwire.Members(raw) {
		if !out.Add(name, value) {
			w.lose(dialect.Dropped, pointer+"/"+jsonwire.Token(name), "a field has this name")
		}
	}
}

// declared returns an object with the members that the profile has.
func (w *snapshotWriter) declared(pointer, object string, parts []part) string {
	if w.p != RFC0002 {
		object = declared(object, parts, w.p, func(name string) {
			w.lose(dialect.Dropped, pointer+"/"+jsonwire.Token(name), "the profile has no place for it")
		})
	}
	if name, rule, detail := brokenPart(parts, true, w.p, object); detail != "" {
		w.fail(rule, pointer+"/"+jsonwire.Token(name), detail)
	}
	return object
}

// ref returns an AgentRef in the profile's form.
func (w *snapshotWriter) ref(pointer string, ref *agentevents.AgentRef) string {
	for _, text := range [...]string{ref.AgentID, ref.MemoryRef, string(ref.AgentSharing), string(ref.ModelClass)} {
		w.valid(pointer, text)
	}
	raw, _ := ref.MarshalJSON() // never fails
	if w.p == RFC0002 {
		return w.declared(pointer, string(raw), refParts[:1]) // it requires an id
	}
	object := w.declared(pointer, string(raw), refParts)
	if jsonwire.HasMember(object, "channel") && jsonwire.HasMember(object, "version") {
		w.fail(RuleForm, pointer+"/channel", "must not stand beside a version")
	}
	return edited(object, func(name, value string) (string, bool) {
		switch class := jsonwire.Text(value); {
		case name != "modelClass" || slices.Contains(modelClasses, class):
		case class == string(agentevents.ModelCoding):
			w.lose(dialect.Altered, pointer+"/modelClass", "the schemas call it code")
			return `"code"`, true
		default:
			w.lose(dialect.Dropped, pointer+"/modelClass", "not one of the schema's words")
			return "", false
		}
		return value, true
	})
}

// error returns the run's error in the profile's form.
func (w *snapshotWriter) error(pointer string, e agentevents.ErrorInfo) string {
	for _, word := range [...]struct{ name, text string }{{"code", e.Code}, {"message", e.Message}} {
		if !jsonwire.ValidUTF8(word.text) {
			w.lose(dialect.Altered, pointer+"/"+word.name, dialect.DamagedText)
		}
	}
	e.Code = jsonwire.Text(jsonwire.Quote(e.Code)) // without the damage, which MarshalJSON refuses
	e.Details = agentevents.JSON(w.json(pointer+"/details", e.Details))
	if w.p != RFC0002 {
		if e.Code == "" {
			e.Code = unknownError
			w.lose(dialect.Made, pointer+"/code", e.Code)
		}
		if e.Message == "" {
			e.Message = e.Code
			w.lose(dialect.Made, pointer+"/message", "the code")
		}
		if e.Details != "" && !jsonwire.IsObject(string(e.Details)) {
			e.Details = `{"value":` + e.Details + `}`
			w.lose(dialect.Altered, pointer+"/details", `is not an object: written as the member "value" of one`)
		}
	}
	raw, _ := e.MarshalJSON() // never fails on that
	var out dialect.Unknowns
	w.rest(&out, pointer, "Error", agentevents.JSON(raw))
	w.rest(&out, pointer, "ErrorMore", w.s.ErrorMore)
	return w.declared(pointer, string(out.Object()), errorParts)
}
