package openwop

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Status is the state of a run in a [Snapshot]. Readers take one that they
// do not know for an end.
type Status string

// The statuses.
const (
	StatusPending         Status = "pending"
	StatusRunning         Status = "running"
	StatusPaused          Status = "paused"
	StatusWaitingApproval Status = "waiting-approval"
	StatusWaitingInput    Status = "waiting-input"
	StatusWaitingExternal Status = "waiting-external"
	StatusCompleted       Status = "completed"
	StatusFailed          Status = "failed"
	StatusCancelling      Status = "cancelling"
	StatusCancelled       Status = "cancelled"
)

// A Snapshot is OpenWOP's RunSnapshot (section C), which has nothing but its
// name in common with that of the resume spec. [SnapshotOf] makes one of what a
// fold knows; the rest belongs to the host.
type Snapshot struct {
	RunID         string           // the run
	WorkflowID    string           // required by the schemas
	Status        Status           // required
	Owner         agentevents.JSON // required by SchemaV2; the host's
	CurrentNodeID string           // the node that runs, or holds the interrupt
	StartedAt     time.Time        // zero: absent
	CompletedAt   time.Time        // zero: absent
	// Agent is the run's primary agent, when a single one owns the run.
	Agent agentevents.Opt[agentevents.AgentRef]
	// RunOrchestrator is the supervisor. A fold keeps its decisions and not its
	// name: the host sets it.
	RunOrchestrator agentevents.Opt[agentevents.AgentRef]
	NodeStates      agentevents.JSON                       // an object by node id
	Variables       agentevents.JSON                       // an object: the state
	Channels        agentevents.JSON                       // an object: "messages" is the list of messages
	Error           agentevents.Opt[agentevents.ErrorInfo] // why the run failed
	// ErrorMore are the members of Error that it has no field for, an object.
	ErrorMore agentevents.JSON
	Metrics   agentevents.JSON // {"openwopCost":{usd, tokens{input, output}, model, duration_ms}}
	// More are all other members, an object; they are written after these.
	More agentevents.JSON
}

// SnapshotOf returns what a fold's snapshot says in OpenWOP's terms.
//
// A run waits when the fold says so, and when a node is suspended and no other
// one runs. It waits for an approval when one is open or a node is suspended
// for low confidence or for a turn of a conversation, else for input when a
// question is open, else for something external. The messages are in the
// channel [MessageChannel].
func SnapshotOf(r *agentevents.RunSnapshot) (Snapshot, error) {
	s := Snapshot{
		RunID: r.RunID, WorkflowID: r.WorkflowID, Status: statusOf(r), CurrentNodeID: r.CurrentNodeID, StartedAt: r.StartedAt, CompletedAt: r.CompletedAt,
		Agent: r.Agent, Error: r.Error,
	}
	if s.CurrentNodeID == "" && len(r.Suspended) == 1 {
		for s.CurrentNodeID = range r.Suspended { // started earlier than one that has ended since
		}
	}
	if !s.Agent.OK && len(r.Agents) == 1 {
		for id, a := range r.Agents {
			if a.Ref.OK {
				s.Agent = a.Ref
			} else if id != "" {
				s.Agent = agentevents.Some(agentevents.AgentRef{AgentID: id})
			}
		}
	}
	if len(r.NodeStatus) > 0 {
		s.NodeStates = object(r.NodeStatus, func(dst []byte, v agentevents.NodeStatus) []byte {
			return append(jsonwire.AppendString(append(dst, `{"status":`...), string(v)), '}')
		})
	}
	if len(r.State) > 0 {
		s.Variables = object(r.State, func(dst []byte, v agentevents.JSON) []byte { return append(dst, v...) })
	}
	if len(r.Messages) > 0 {
		out := append(jsonwire.AppendString([]byte{'{'}, MessageChannel), ":["...)
		for i, m := range r.Messages {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = AppendMessage(out, m); err != nil {
				return Snapshot{}, fmt.Errorf("message %q: %w", m.MessageID, err)
			}
		}
		s.Channels = agentevents.JSON(append(out, "]}"...))
	}
	s.Metrics = metrics(r)
	return s, nil
}

func statusOf(r *agentevents.RunSnapshot) Status {
	switch {
	case r.Status == agentevents.RunStatusWaiting:
	case r.Status == agentevents.RunStatusRunning && len(r.Suspended) > 0 && len(r.NodeRuns) == 0:
	default:
		return Status(r.Status) // the other words are the same
	}
	if slices.ContainsFunc(r.Approvals, func(a agentevents.ApprovalSnapshot) bool { return a.Open }) {
		return StatusWaitingApproval
	}
	for _, reason := range r.Suspended {
		if reason == ReasonLowConfidence || reason == "conversation-input" {
			return StatusWaitingApproval
		}
	}
	if slices.ContainsFunc(r.Clarifications, func(c agentevents.ClarificationSnapshot) bool { return c.Open }) {
		return StatusWaitingInput
	}
	return StatusWaitingExternal
}

// object writes a map in the order of its keys.
func object[V any](m map[string]V, value func([]byte, V) []byte) agentevents.JSON {
	out := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = value(append(jsonwire.AppendString(out, key), ':'), m[key])
	}
	return agentevents.JSON(append(out, '}'))
}

func metrics(r *agentevents.RunSnapshot) agentevents.JSON {
	u := &r.Usage
	out := []byte(`{"openwopCost":{`)
	empty := len(out)
	sep := func() {
		if len(out) > empty {
			out = append(out, ',')
		}
	}
	if u.CostUSD.OK {
		out = jsonwire.AppendFloat(append(out, `"usd":`...), u.CostUSD.V)
	}
	if u.Usage.InputTokens != 0 || u.Usage.OutputTokens != 0 {
		sep()
		out = jsonwire.AppendInt(append(out, `"tokens":{"input":`...), u.Usage.InputTokens)
		out = append(jsonwire.AppendInt(append(out, `,"output":`...), u.Usage.OutputTokens), '}')
	}
	if len(u.Models) == 1 {
		sep()
		for model := range u.Models {
			out = jsonwire.AppendString(append(out, `"model":`...), model)
		}
	}
	if len(out) == empty {
		return ""
	}
	if d := r.CompletedAt.Sub(r.StartedAt); !r.CompletedAt.IsZero() && !r.StartedAt.IsZero() && d >= 0 {
		sep()
		out = jsonwire.AppendInt(append(out, `"duration_ms":`...), d.Milliseconds())
	}
	return agentevents.JSON(append(out, "}}"...))
}

// AppendSnapshot appends the snapshot as one JSON object without a newline. It
// appends nothing and returns an [*agentevents.InvariantError] when the profile
// asks for something that is missing (workflowId under the schemas, owner
// under SchemaV2), for another id, status or value, or has no such member
// (SchemaV2), or when the raw JSON is none.
//
// The schemas have an AgentRef without agentSharing and other model classes,
// and an error without retryable and other members: those are left out, and
// coding becomes code.
func AppendSnapshot(dst []byte, s Snapshot, p Profile) ([]byte, error) {
	mark := len(dst)
	var err error
	fail := func(rule agentevents.Rule, pointer, detail string) {
		if err == nil {
			err = &agentevents.InvariantError{Rule: rule, RunID: s.RunID, Pointer: pointer, Detail: detail}
		}
	}
	text := func(name, v string) {
		if v == "" {
			return
		}
		if !jsonwire.ValidUTF8(v) {
			fail(agentevents.RuleFieldUTF8, "/"+name, "is not valid UTF-8")
		}
		if len(dst) > mark+1 {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(append(jsonwire.AppendString(dst, name), ':'), v)
	}
	raw := func(name string, v string) {
		if v == "" {
			return
		}
		c, cerr := jsonwire.Compact(v)
		if cerr != nil {
			fail(agentevents.RuleFieldJSON, "/"+name, cerr.Error())
			return
		}
		dst = append(append(jsonwire.AppendString(append(dst, ','), name), ':'), c...)
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			raw(name, string(jsonwire.AppendTime(nil, t)))
		}
	}
	switch {
	case !ValidID(p, RunID, s.RunID):
		fail(RuleID, "/runId", badID(s.RunID))
	case p != RFC0002 && !ValidID(p, WorkflowID, s.WorkflowID):
		fail(RuleID, "/workflowId", badID(s.WorkflowID))
	case s.Status == "":
		fail(RuleRequired, "/status", "is required")
	case p == SchemaV2 && s.Owner == "":
		fail(RuleRequired, "/owner", "is required")
	}
	if p != RFC0002 {
		s.check(p, fail)
	}
	dst = append(dst, '{')
	text("runId", s.RunID)
	text("workflowId", s.WorkflowID)
	text("status", string(s.Status))
	raw("owner", string(s.Owner))
	text("currentNodeId", s.CurrentNodeID)
	at("startedAt", s.StartedAt)
	at("completedAt", s.CompletedAt)
	for _, a := range [...]struct {
		name string
		ref  agentevents.Opt[agentevents.AgentRef]
	}{{"agent", s.Agent}, {"runOrchestrator", s.RunOrchestrator}} {
		if !a.ref.OK {
			continue
		}
		if !ValidID(p, AgentID, a.ref.V.AgentID) {
			fail(RuleID, "/"+a.name+"/agentId", badID(a.ref.V.AgentID))
		}
		out, _ := a.ref.V.MarshalJSON() // never fails
		raw(a.name, string(snapshotRef(out, p)))
	}
	raw("nodeStates", string(s.NodeStates))
	raw("variables", string(s.Variables))
	raw("channels", string(s.Channels))
	if s.Error.OK {
		raw("error", string(snapshotError(&s.Error.V, string(s.ErrorMore), p)))
	}
	if p == SchemaV2 && !jsonwire.HasMember(string(s.More), "eventLogSchemaVersion") {
		raw("eventLogSchemaVersion", "3")
	}
	raw("metrics", string(s.Metrics))
	if s.ErrorMore != "" && !isObject(string(s.ErrorMore)) {
		fail(agentevents.RuleFieldJSON, "/error", "the other members are no object")
	}
	if s.More != "" && !isObject(string(s.More)) || s.More != "" && jsonwire.Valid(string(s.More)) != nil {
		fail(agentevents.RuleFieldJSON, "", "the other members are no object")
	}
	for name, value := range jsonwire.Members(string(s.More)) {
		if numberOf(snapshotNames[:], name) == 0 {
			raw(name, value)
		}
	}
	if err != nil {
		return dst[:mark], err
	}
	return append(dst, '}'), nil
}

// snapshotForms are the forms of a snapshot's members under the schemas.
var snapshotForms = [...]struct {
	name string
	form form
	only Profile // the schema that has it, if it is one
}{
	{name: "nodeStates", form: anObject},
	{name: "variables", form: anObject},
	{name: "channels", form: anObject},
	{name: "metrics", form: anObject},
	{name: "owner", form: anOwner},
	{name: "engineVersion", form: aVersion},
	{name: "eventLogSchemaVersion", form: aLogVersion},
	{name: "tags", form: listOf(aText, 0, false)},
	{name: "metadata", form: anObject},
	{name: "configurable", form: anObject},
	{name: "inputs", form: anObject, only: SchemaV2},
	{name: "extensions", form: anObject, only: SchemaV2},
	{name: "parentRunId", form: anIDOf(RunID), only: SchemaV2},
	{name: "compensationStatus", form: oneOf("none", "pending", "running", "completed", "partial", "failed", "manual"), only: SchemaV2},
}

func aLogVersion(p Profile, raw string) (agentevents.Rule, string) {
	if p == SchemaV2 {
		return wholeFrom(2)(p, raw)
	}
	return wholeFrom(0)(p, raw)
}

// check checks what the schemas say of the members.
func (s *Snapshot) check(p Profile, fail func(rule agentevents.Rule, pointer, detail string)) {
	switch s.Status {
	case StatusPending, StatusRunning, StatusPaused, StatusWaitingApproval, StatusWaitingInput, StatusWaitingExternal, StatusCompleted, StatusFailed,
		StatusCancelling, StatusCancelled:
	default:
		fail(RuleEnum, "/status", strconv.Quote(string(s.Status))+" is not one of the values")
	}
	if p == SchemaV2 && s.CurrentNodeID != "" && !ValidID(p, NodeID, s.CurrentNodeID) {
		fail(RuleID, "/currentNodeId", badID(s.CurrentNodeID))
	}
	member := func(name, value string) {
		for i := range snapshotForms {
			m := &snapshotForms[i]
			if m.name != name || m.only != RFC0002 && m.only != p {
				continue
			}
			if rule, detail := m.form(p, value); detail != "" {
				fail(rule, "/"+name, detail)
			}
			return
		}
		if p == SchemaV2 {
			fail(RuleClosed, "/"+jsonwire.Token(name), "is not a member of what is closed")
		}
	}
	for _, m := range [...]struct {
		name  string
		value agentevents.JSON
	}{{"owner", s.Owner}, {"nodeStates", s.NodeStates}, {"variables", s.Variables}, {"channels", s.Channels}, {"metrics", s.Metrics}} {
		if value := string(m.value); jsonwire.Valid(value) == nil { // what is no JSON is refused where it is written
			member(m.name, strings.TrimSpace(value))
		}
	}
	if more := string(s.More); jsonwire.Valid(more) == nil {
		for name, value := range jsonwire.Members(more) {
			if numberOf(snapshotNames[:], name) == 0 {
				member(name, value)
			}
		}
	}
}

// snapshotRef returns an AgentRef as the profile has it.
func snapshotRef(ref []byte, p Profile) []byte {
	if p == RFC0002 {
		return ref
	}
	out := []byte{'{'}
	for name, value := range jsonwire.Members(string(ref)) {
		switch name {
		case "agentId", "memoryRef", "name", "version", "channel", "sourceManifestId":
		case "modelClass":
			switch jsonwire.Text(value) {
			case "coding":
				value = `"code"`
			case "reasoning", "tool-using", "chat", "code", "vision", "multimodal", "embedding", "classification", "retrieval":
			default:
				continue
			}
		default:
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonwire.AppendString(out, name), ':'), value...)
	}
	return append(out, '}')
}

// snapshotError returns an error as the profile has it, with more members.
func snapshotError(e *agentevents.ErrorInfo, more string, p Profile) []byte {
	code, message, details := e.Code, e.Message, string(e.Details)
	if p != RFC0002 {
		if code == "" {
			code = unknownError
		}
		if message == "" {
			message = code
		}
		if details != "" && !isObject(details) {
			details = `{"value":` + details + `}`
		}
	}
	out := []byte{'{'}
	if code != "" {
		out = append(jsonwire.AppendString(append(out, `"code":`...), code), ',')
	}
	out = jsonwire.AppendString(append(out, `"message":`...), message)
	if details != "" {
		out = append(append(out, `,"details":`...), details...)
	}
	if e.Retryable.OK && p == RFC0002 {
		out = strconv.AppendBool(append(out, `,"retryable":`...), e.Retryable.V)
	}
	if p == RFC0002 {
		for name, value := range jsonwire.Members(more) {
			if numberOf(errorNames[:], name) == 0 || name == "error" {
				out = append(append(jsonwire.AppendString(append(out, ','), name), ':'), value...)
			}
		}
	}
	return append(out, '}')
}

var snapshotNames = [...]string{
	`"runId":`, `"workflowId":`, `"status":`, `"owner":`, `"currentNodeId":`, `"startedAt":`, `"completedAt":`, `"agent":`, `"runOrchestrator":`,
	`"nodeStates":`, `"variables":`, `"channels":`, `"error":`, `"metrics":`,
}

// ParseSnapshot reads a snapshot of any profile. The error is that of the
// first place where the text is not JSON, a member has another type, or runId
// or status is missing.
func ParseSnapshot(text []byte) (Snapshot, error) {
	var (
		s    Snapshot
		sc   jsonwire.Scanner
		seen set
		d    Decoder

		more, errorMore []byte
	)
	if err := jsonwire.Valid(string(text)); err != nil { // duplicates too
		return Snapshot{}, err
	}
	sc.Reset(string(text))
	if err := sc.Object(); err != nil {
		return Snapshot{}, err
	}
	for last := 0; ; {
		n, name, err := sc.Field(snapshotNames[:], last)
		if err != nil {
			return Snapshot{}, err
		}
		if n < 0 {
			break
		}
		last = n
		seen |= 1 << n
		var raw string
		switch n {
		case 1:
			s.RunID, err = sc.String()
		case 2:
			s.WorkflowID, err = sc.String()
		case 3:
			raw, err = sc.String()
			s.Status = Status(raw)
		case 5:
			s.CurrentNodeID, err = sc.String()
		case 6:
			s.StartedAt, err = sc.Time()
		case 7:
			s.CompletedAt, err = sc.Time()
		case 8:
			s.Agent.OK = true
			err = agentRef(&sc, &s.Agent.V)
		case 9:
			s.RunOrchestrator.OK = true
			err = agentRef(&sc, &s.RunOrchestrator.V)
		case 13:
			var f fields
			if err = d.errorInfo(&sc, &f); err == nil {
				s.Error = agentevents.Some(f.err)
				for _, u := range d.unknown.pairs { // nothing but the error is kept by d
					if errorMore == nil {
						errorMore = append(errorMore, '{')
					} else {
						errorMore = append(errorMore, ',')
					}
					name := jsonwire.Untoken(strings.TrimPrefix(u.key, "/payload/error/"))
					errorMore = append(append(jsonwire.AppendString(errorMore, name), ':'), u.raw...)
				}
			}
		default:
			if raw, err = sc.Raw(); err != nil {
				break
			}
			switch n {
			case 4:
				s.Owner = agentevents.JSON(raw)
			case 10:
				s.NodeStates = agentevents.JSON(raw)
			case 11:
				s.Variables = agentevents.JSON(raw)
			case 12:
				s.Channels = agentevents.JSON(raw)
			case 14:
				s.Metrics = agentevents.JSON(raw)
			default:
				if more == nil {
					more = append(more, '{')
				} else {
					more = append(more, ',')
				}
				more = append(append(jsonwire.AppendString(more, name), ':'), raw...)
			}
		}
		if err != nil {
			return Snapshot{}, err
		}
	}
	if !seen.has(1) || !seen.has(3) {
		return Snapshot{}, &jsonwire.SyntaxError{Offset: len(text) - 1, Msg: "runId or status is missing"}
	}
	if more != nil {
		s.More = agentevents.JSON(append(more, '}'))
	}
	if errorMore != nil {
		s.ErrorMore = agentevents.JSON(append(errorMore, '}'))
	}
	return s, nil
}
