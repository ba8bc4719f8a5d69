package openwop

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	w := snapshotWriter{s: &s, p: p, dst: append(dst, '{')}
	w.write()
	if w.err != nil {
		return dst, nil, w.err
	}
	return append(w.dst, '}'), w.losses, nil
}

// A snapshotWriter writes one snapshot.
type snapshotWriter struct {
	s      *Snapshot
	p      Profile
	dst    []byte
	at     string // pointer of the current object
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

func (w *snapshotWriter) write() {
	s, p := w.s, w.p
	switch {
	case !ValidID(p, RunID, s.RunID):
		w.fail(RuleID, "/runId", badID(s.RunID))
	case p != RFC0002 && !ValidID(p, WorkflowID, s.WorkflowID):
		w.fail(RuleID, "/workflowId", badID(s.WorkflowID))
	case s.Status == "":
		w.fail(RuleRequired, "/status", "is required")
	case p == SchemaV2 && s.Owner == "":
		w.fail(RuleRequired, "/owner", "is required")
	}
	if p != RFC0002 {
		w.check()
	}
	for _, f := range s.fields() {
		if f.name == "metrics" && p == SchemaV2 && !jsonwire.HasMember(string(s.More), "eventLogSchemaVersion") {
			w.raw("eventLogSchemaVersion", madeLogVersion)
			w.lose(dialect.Made, "/eventLogSchemaVersion", madeLogVersion)
		}
		switch v := f.at.(type) {
		case *string:
			w.text(f.name, *v)
		case *time.Time:
			w.time(f.name, *v)
		case *agentevents.JSON:
			w.raw(f.name, string(*v))
		case *agentevents.Opt[agentevents.AgentRef]:
			w.ref(f.name, *v)
		case *agentevents.Opt[agentevents.ErrorInfo]:
			if v.OK {
				w.error(&v.V)
			}
		}
	}
	if s.More != "" && (!isObject(string(s.More)) || jsonwire.Valid(string(s.More)) != nil) {
		w.fail(agentevents.RuleFieldJSON, "", "More is not an object")
	}
	for name, value := range jsonwire.Members(string(s.More)) {
		if !s.hasField(name) {
			w.raw(name, value)
		} else {
			w.lose(dialect.Dropped, "/"+jsonwire.Token(name), "a field has this name")
		}
	}
}

// madeLogVersion is the version that hosts of SchemaV2 write.
const madeLogVersion = "3"

func (w *snapshotWriter) name(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(jsonwire.AppendString(w.dst, name), ':')
}

// text writes an id or a word.
func (w *snapshotWriter) text(name, v string) {
	if v == "" {
		return
	}
	if !jsonwire.ValidUTF8(v) {
		w.fail(agentevents.RuleFieldUTF8, "/"+name, "is not valid UTF-8")
	}
	w.name(name)
	w.dst = jsonwire.AppendString(w.dst, v)
}

func (w *snapshotWriter) raw(name, v string) {
	if v == "" {
		return
	}
	c, err := jsonwire.Compact(v)
	if err != nil {
		w.fail(agentevents.RuleFieldJSON, w.at+"/"+jsonwire.Token(name), err.Error())
		return
	}
	w.name(name)
	w.dst = append(w.dst, c...)
}

func (w *snapshotWriter) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		w.fail(agentevents.RuleFieldRange, "/"+name, "is outside the years 0 to 9999")
		return
	}
	w.name(name)
	w.dst = jsonwire.AppendTime(w.dst, t)
}

// ref writes an AgentRef in the profile's form.
func (w *snapshotWriter) ref(at string, ref agentevents.Opt[agentevents.AgentRef]) {
	if !ref.OK {
		return
	}
	r := &ref.V
	if !ValidID(w.p, AgentID, r.AgentID) {
		w.fail(RuleID, "/"+at+"/agentId", badID(r.AgentID))
	}
	for _, text := range [...]string{r.AgentID, r.MemoryRef, string(r.AgentSharing), string(r.ModelClass)} {
		if !jsonwire.ValidUTF8(text) {
			w.fail(agentevents.RuleFieldUTF8, "/"+at, "is not valid UTF-8")
		}
	}
	out, _ := r.MarshalJSON() // never fails
	if w.p == RFC0002 {
		w.raw(at, string(out))
		return
	}
	w.name(at)
	w.dst = append(w.dst, '{')
	for name, value := range jsonwire.Members(string(out)) {
		pointer := "/" + at + "/" + jsonwire.Token(name)
		i := slices.IndexFunc(refForms[:], func(m extra) bool { return m.name == name })
		switch {
		case name == "agentId":
		case name == "modelClass" && value == `"`+string(agentevents.ModelCoding)+`"`:
			value = `"code"`
			w.lose(dialect.Altered, pointer, "the schemas call it code")
		case name == "modelClass":
			if !slices.Contains(modelClasses, jsonwire.Text(value)) {
				w.lose(dialect.Dropped, pointer, "not one of the schema's words")
				continue
			}
		case i < 0:
			w.lose(dialect.Dropped, pointer, "the profile has no place for it")
			continue
		default:
			if rule, detail := refForms[i].form(w.p, value); detail != "" {
				w.fail(rule, pointer, detail)
			}
			if name == "channel" && jsonwire.HasMember(string(out), "version") {
				w.fail(RuleForm, pointer, "must not stand beside a version")
			}
		}
		w.name(name)
		w.dst = append(w.dst, value...)
	}
	w.dst = append(w.dst, '}')
}

// refForms are the forms of an AgentRef's members under the schemas, except
// agentId and modelClass.
var refForms = [...]extra{
	{name: "memoryRef", form: textOf(1, 256)}, {name: "name", form: textOf(0, 256)}, {name: "version", form: textOf(0, 64)},
	{name: "channel", form: textOf(1, 64)}, {name: "sourceManifestId", form: textOf(0, 256)},
}

// modelClasses are the model classes of the schemas.
var modelClasses = []string{"reasoning", "tool-using", "chat", "code", "vision", "multimodal", "embedding", "classification", "retrieval"}

// errorNames are the members of an error that have fields.
var errorNames = [...]string{"code", "message", "details", "retryable"}

// error writes the run's error in the profile's form.
func (w *snapshotWriter) error(e *agentevents.ErrorInfo) {
	code, message, details := e.Code, e.Message, string(e.Details)
	if w.p != RFC0002 {
		if code == "" {
			code = unknownError
			w.lose(dialect.Made, "/error/code", code)
		}
		if message == "" {
			message = code
			w.lose(dialect.Made, "/error/message", "the code")
		}
		if details != "" && !isObject(details) {
			details = `{"value":` + details + `}`
			w.lose(dialect.Altered, "/error/details", `is not an object: written as the member "value" of one`)
		}
	}
	w.name("error")
	w.dst = append(w.dst, '{')
	w.at = "/error"
	word := func(name, text string) {
		if !jsonwire.ValidUTF8(text) {
			w.lose(dialect.Altered, "/error/"+name, dialect.DamagedText)
		}
		w.name(name)
		w.dst = jsonwire.AppendString(w.dst, text)
	}
	if code != "" {
		word("code", code)
	}
	word("message", message)
	w.raw("details", details)
	switch {
	case !e.Retryable.OK:
	case w.p == RFC0002:
		w.raw("retryable", strconv.FormatBool(e.Retryable.V))
	default:
		w.lose(dialect.Dropped, "/error/retryable", "the profile has no place for it")
	}
	more := string(w.s.ErrorMore)
	if more != "" && (!isObject(more) || jsonwire.Valid(more) != nil) {
		w.fail(agentevents.RuleFieldJSON, "/error", "ErrorMore is not an object")
	}
	for name, value := range jsonwire.Members(more) {
		switch {
		case slices.Contains(errorNames[:], name):
			w.lose(dialect.Dropped, "/error/"+name, "a field has this name")
		case w.p != RFC0002:
			w.lose(dialect.Dropped, "/error/"+jsonwire.Token(name), "the profile has no place for it")
		default:
			w.raw(name, value)
		}
	}
	w.at = ""
	w.dst = append(w.dst, '}')
}

// snapshotForms are the forms of a snapshot's members under the schemas.
var snapshotForms = [...]struct {
	name string
	form form
	only Profile // the schema, if only one has the member
}{
	{name: "nodeStates", form: anObject},
	{name: "variables", form: anObject},
	{name: "channels", form: anObject},
	{name: "metrics", form: theMetrics},
	{name: "owner", form: anOwner},
	{name: "engineVersion", form: aVersion},
	{name: "eventLogSchemaVersion", form: aLogVersion},
	{name: "tags", form: theTags},
	{name: "metadata", form: anObject},
	{name: "configurable", form: anObject},
	{name: "inputs", form: anObject, only: SchemaV2},
	{name: "extensions", form: theExtensions, only: SchemaV2},
	{name: "parentRunId", form: anIDOf(RunID), only: SchemaV2},
	{name: "compensationStatus", form: oneOf("none", "pending", "running", "completed", "partial", "failed", "manual"), only: SchemaV2},
}

func aLogVersion(p Profile, raw string) (agentevents.Rule, string) {
	if p == SchemaV2 {
		return wholeFrom(2)(p, raw)
	}
	return wholeFrom(0)(p, raw)
}

// textOf requires a text of low to high characters.
func textOf(low, high int) form {
	return func(p Profile, raw string) (agentevents.Rule, string) {
		if n := utf8.RuneCountInString(jsonwire.Text(raw)); isText(raw) && (n < low || n > high) {
			return RuleRange, "must have " + strconv.Itoa(low) + " to " + strconv.Itoa(high) + " characters"
		}
		return aText(p, raw)
	}
}

// theTags requires at most 100 short texts.
func theTags(p Profile, raw string) (agentevents.Rule, string) {
	if n, ok := count(raw, func(string) bool { return true }); ok && n > 100 {
		return RuleRange, "has more than 100 elements"
	}
	return listOf(textOf(0, 256), 0, false)(p, raw)
}

// theExtensions requires objects, with names such as acme.state.
func theExtensions(p Profile, raw string) (agentevents.Rule, string) {
	for name, value := range jsonwire.Members(raw) {
		org, own, _ := strings.Cut(name, ".")
		if !kebab(org) || !kebab(own) {
			return RuleForm, "has the member " + strconv.Quote(name) + ", but a name must be an organization, a dot and a word"
		}
		if !isObject(value) {
			return RuleForm, strconv.Quote(name) + " is not an object"
		}
	}
	return anObject(p, raw)
}

// theMetrics requires the costs and, under SchemaV1, allows any other member.
func theMetrics(p Profile, raw string) (agentevents.Rule, string) {
	if p == SchemaV2 {
		return closedObject(part{"openwopCost", theCost, false})(p, raw)
	}
	for name, value := range jsonwire.Members(raw) {
		if rule, detail := theCost(p, value); name == "openwopCost" && detail != "" {
			return rule, strconv.Quote(name) + " " + detail
		}
	}
	return anObject(p, raw)
}

var theCost = closedObject(
	part{"usd", aCost, false}, part{"tokens", closedObject(part{"input", wholeFrom(0), false}, part{"output", wholeFrom(0), false}), false},
	part{"model", aText, false}, part{"provider", aText, false}, part{"duration_ms", wholeFrom(0), false},
)

func aCost(_ Profile, raw string) (agentevents.Rule, string) {
	if n, err := strconv.ParseFloat(raw, 64); err != nil || n < 0 {
		return RuleRange, "is not a number from 0 on"
	}
	return "", ""
}

// check checks the members against the schemas.
func (w *snapshotWriter) check() {
	s, p := w.s, w.p
	switch s.Status {
	case StatusPending, StatusRunning, StatusPaused, StatusWaitingApproval, StatusWaitingInput, StatusWaitingExternal, StatusCompleted, StatusFailed,
		StatusCancelling, StatusCancelled:
	default:
		w.fail(RuleEnum, "/status", strconv.Quote(string(s.Status))+" is not a status of the schema")
	}
	if p == SchemaV2 && s.CurrentNodeID != "" && !ValidID(p, NodeID, s.CurrentNodeID) {
		w.fail(RuleID, "/currentNodeId", badID(s.CurrentNodeID))
	}
	member := func(name, value string) {
		for i := range snapshotForms {
			m := &snapshotForms[i]
			if m.name != name || m.only != RFC0002 && m.only != p {
				continue
			}
			if rule, detail := m.form(p, value); detail != "" {
				w.fail(rule, "/"+name, detail)
			}
			return
		}
		if p == SchemaV2 {
			w.fail(RuleClosed, "/"+jsonwire.Token(name), "is an extra member of a closed object")
		}
	}
	for _, f := range s.fields() {
		if raw, ok := f.at.(*agentevents.JSON); ok && jsonwire.Valid(string(*raw)) == nil { // invalid JSON is refused where it is written
			member(f.name, strings.TrimSpace(string(*raw)))
		}
	}
	if more := string(s.More); jsonwire.Valid(more) == nil {
		for name, value := range jsonwire.Members(more) {
			if !s.hasField(name) {
				member(name, value)
			}
		}
	}
}
