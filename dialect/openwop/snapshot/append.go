package snapshot

import (
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Append appends the snapshot to dst as one JSON object without a newline. The losses that it
// returns are the parts of the snapshot that the object lacks, and the members that the snapshot
// lacks. Their pointers point into the object.
//
// The schemas differ from the fields in three places. Their AgentRef has no
// agentSharing and other model classes: they call the RFC's coding code. Their
// error has no retryable and no extra members, and its details are an object.
// SchemaV2 requires eventLogSchemaVersion.
//
// Append appends nothing and returns an [*agentevents.RuleError] in these
// cases: a member that the profile requires is missing (workflowId under the
// schemas, owner under SchemaV2); an id, the status or a value does not have the
// profile's form; SchemaV2 does not have a member; raw JSON is not valid.
func Append(dst []byte, s Snapshot, p openwop.Profile) ([]byte, []dialect.Loss, error) {
	w := snapshotWriter{s: &s, p: p}
	var out dialect.Unknowns
	for _, f := range s.fields() {
		if f.name == "metrics" && p == openwop.SchemaV2 && !jsonwire.HasMember(string(s.More), "eventLogSchemaVersion") {
			out.Add("eventLogSchemaVersion", madeLogVersion)
			w.lose(dialect.Made, "/eventLogSchemaVersion", madeLogVersion)
		}
		if raw := w.value("/"+f.name, f.at); raw != "" {
			out.Add(f.name, raw)
		}
	}
	w.rest(&out, "", "More", s.More)
	object := string(out.Object())
	w.check("", schemas.Table(schemas.Version(p))["snapshot"], object)
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
	p      openwop.Profile
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

// check refuses a value that breaks its schema.
func (w *snapshotWriter) check(pointer string, of *facts.Schema, raw string) {
	if fault := of.Check(raw); fault != nil {
		broken := schemas.Breach(schemas.Version(w.p), pointer, fault)
		w.fail(broken.Rule, broken.Pointer, broken.Detail)
	}
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

// declared returns the value of a member without the members that the profile has no place for.
func (w *snapshotWriter) declared(pointer, object string) (string, *facts.Schema) {
	of, _, _ := schemas.Table(schemas.Version(w.p))["snapshot"].Member(pointer[1:])
	return schemas.Declared(of, pointer, object,
		func(at, _ string) { w.lose(dialect.Dropped, at, "the profile has no place for it") }), of
}

// ref returns an AgentRef in the profile's form.
func (w *snapshotWriter) ref(pointer string, ref *agentevents.AgentRef) string {
	for _, text := range [...]string{ref.AgentID, ref.MemoryRef, string(ref.AgentSharing), string(ref.ModelClass)} {
		w.valid(pointer, text)
	}
	raw, _ := ref.MarshalJSON() // never fails
	object, of := w.declared(pointer, string(raw))
	classes, declared, _ := of.Member("modelClass")
	object = schemas.Edited(object, func(name, value string) (string, bool) {
		switch {
		case name != "modelClass" || !declared || classes.Fits(value):
		case jsonwire.Text(value) == string(agentevents.ModelCoding):
			w.lose(dialect.Altered, pointer+"/modelClass", "the schemas call it code")
			return `"code"`, true
		default:
			w.lose(dialect.Dropped, pointer+"/modelClass", "not one of the schema's words")
			return "", false
		}
		return value, true
	})
	w.check(pointer, of, object)
	return object
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
	if w.p != openwop.RFC0002 {
		if e.Code == "" {
			e.Code = "error"
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
	object, _ := w.declared(pointer, string(out.Object()))
	return object
}
