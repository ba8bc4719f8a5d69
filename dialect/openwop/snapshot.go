package openwop

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Status is the state of a run in a [Snapshot]. Readers treat an unknown one as
// terminal.
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
	StatusCancelling      Status = "cancelling" // not in the first edition of SchemaV1
	StatusCancelled       Status = "cancelled"
)

// A Snapshot is OpenWOP's RunSnapshot (section C). It shares only its name with
// the snapshot of the resume spec. [SnapshotOf] sets the fields that a fold
// knows. The host sets the others.
type Snapshot struct {
	RunID         string           // the run
	WorkflowID    string           // required by the schemas
	Status        Status           // required
	Owner         agentevents.JSON // required by SchemaV2; set by the host
	CurrentNodeID string           // the node that runs or holds the interrupt
	StartedAt     time.Time        // zero: absent
	CompletedAt   time.Time        // zero: absent
	// Agent is the run's primary agent, if a single agent owns the run.
	Agent agentevents.Opt[agentevents.AgentRef]
	// RunOrchestrator is the supervisor. A fold keeps its decisions but not its
	// name, so the host sets it.
	RunOrchestrator agentevents.Opt[agentevents.AgentRef]
	NodeStates      agentevents.JSON                       // an object by node id
	Variables       agentevents.JSON                       // an object: the state
	Channels        agentevents.JSON                       // an object: "messages" is the list of messages
	Error           agentevents.Opt[agentevents.ErrorInfo] // why the run failed
	// ErrorMore holds the extra members of Error, as an object.
	ErrorMore agentevents.JSON
	Metrics   agentevents.JSON // {"openwopCost":{usd, tokens{input, output}, model, duration_ms}}
	// More holds all other members, as an object. They are written last.
	More agentevents.JSON
}

// SnapshotOf returns a fold's snapshot in OpenWOP's terms.
//
// A run waits if the fold says so, or if a node is suspended and no other node
// runs. It waits for an approval if one is open, or if a node is suspended for
// low confidence or for a turn of a conversation. Otherwise it waits for input if
// a question is open, and else for something external. The messages are in the
// channel [MessageChannel].
func SnapshotOf(r *agentevents.RunSnapshot) (Snapshot, error) {
	s := Snapshot{
		RunID: r.RunID, WorkflowID: r.WorkflowID, Status: statusOf(r), CurrentNodeID: r.CurrentNodeID, StartedAt: r.StartedAt, CompletedAt: r.CompletedAt,
		Agent: r.Agent, Error: r.Error,
	}
	if s.CurrentNodeID == "" && len(r.Suspended) == 1 {
		for s.CurrentNodeID = range r.Suspended { // the fold has none if a node that started later has ended
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
		return Status(r.Status) // the other words are equal
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

// object writes a map, ordered by its keys.
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

// A snapshotField is a member of a snapshot and the field that it says.
type snapshotField struct {
	name string
	at   any
}

func (s *Snapshot) fields() []snapshotField {
	return []snapshotField{
		{"runId", &s.RunID}, {"workflowId", &s.WorkflowID}, {"status", (*string)(&s.Status)}, {"owner", &s.Owner}, {"currentNodeId", &s.CurrentNodeID},
		{"startedAt", &s.StartedAt}, {"completedAt", &s.CompletedAt}, {"agent", &s.Agent}, {"runOrchestrator", &s.RunOrchestrator}, {"nodeStates", &s.NodeStates},
		{"variables", &s.Variables}, {"channels", &s.Channels}, {"error", &s.Error}, {"metrics", &s.Metrics},
	}
}

// hasField reports whether a member of that name has a field.
func (s *Snapshot) hasField(name string) bool {
	return slices.ContainsFunc(s.fields(), func(f snapshotField) bool { return f.name == name })
}

// ParseSnapshot reads a snapshot of any profile. It fails at the first place
// where the text is not JSON or a member has the wrong type, or if runId or
// status is missing.
func ParseSnapshot(text []byte) (Snapshot, error) {
	var (
		s  Snapshot
		sc jsonwire.Scanner
	)
	if err := jsonwire.Valid(string(text)); err != nil { // this finds duplicates too
		return Snapshot{}, err
	}
	sc.Reset(string(text))
	if err := sc.Object(); err != nil {
		return Snapshot{}, err
	}
	fields, more := s.fields(), []byte{'{'}
	for {
		name, ok, err := sc.Member()
		if err != nil {
			return Snapshot{}, err
		}
		if !ok {
			break
		}
		if i := slices.IndexFunc(fields, func(f snapshotField) bool { return f.name == name }); i >= 0 {
			err = s.parse(&sc, fields[i].at)
		} else {
			var raw string
			raw, err = sc.Raw()
			more = appendMember(more, name, raw)
		}
		if err != nil {
			return Snapshot{}, err
		}
	}
	if !jsonwire.HasMember(string(text), "runId") || !jsonwire.HasMember(string(text), "status") {
		return Snapshot{}, &jsonwire.SyntaxError{Offset: len(text) - 1, Msg: "runId or status is missing"}
	}
	if len(more) > 1 {
		s.More = agentevents.JSON(append(more, '}'))
	}
	return s, nil
}

// parse reads a value into a field.
func (s *Snapshot) parse(sc *jsonwire.Scanner, at any) (err error) {
	start := sc.Offset()
	switch v := at.(type) {
	case *string:
		*v, err = sc.String()
	case *time.Time:
		*v, err = sc.Time()
	case *agentevents.Opt[agentevents.AgentRef]:
		v.OK = true
		err = agentRef(sc, &v.V)
	case *agentevents.JSON:
		var raw string
		raw, err = sc.Raw()
		*v = agentevents.JSON(raw)
	case *agentevents.Opt[agentevents.ErrorInfo]:
		var raw string
		if raw, err = sc.Raw(); err == nil {
			*v, s.ErrorMore, err = snapshotError(raw, start)
		}
	}
	return err
}

// snapshotError reads the error of a run, which begins at an offset of the text.
// The ErrorEnvelope of HTTP answers has error in place of code.
func snapshotError(raw string, at int) (info agentevents.Opt[agentevents.ErrorInfo], more agentevents.JSON, err error) {
	if !isObject(raw) {
		return info, "", &jsonwire.SyntaxError{Offset: at, Msg: "found a value that is not an object, expected an object"}
	}
	info.OK = true
	rest := []byte{'{'}
	for name, value := range jsonwire.Members(raw) {
		switch {
		case name == "message" && !isText(value):
			return info, "", &jsonwire.SyntaxError{Offset: at, Msg: "the message is not a text"}
		case name == "message":
			info.V.Message = jsonwire.Text(value)
		case name == "code" && isText(value), name == "error" && isText(value) && !hasText(raw, "code"):
			info.V.Code = jsonwire.Text(value)
		case name == "details":
			info.V.Details = agentevents.JSON(value)
		case name == "retryable" && (value == "true" || value == "false"):
			info.V.Retryable = agentevents.Some(value == "true")
		default:
			rest = appendMember(rest, name, value)
		}
	}
	if len(rest) > 1 {
		more = agentevents.JSON(append(rest, '}'))
	}
	return info, more, nil
}
