// Package snapshot reads and writes OpenWOP's RunSnapshot, and makes one of a fold's snapshot.
package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
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
// the snapshot of the resume spec. [Of] sets the fields that a fold
// knows. The host sets the others.
type Snapshot struct {
	RunID         string           // the run
	WorkflowID    string           // required by the schemas
	Status        Status           // required
	Owner         agentevents.JSON // required by SchemaV2; set by the host
	CurrentNodeID string           // the node that runs or holds the interrupt
	StartedAt     time.Time        // zero: absent
	CompletedAt   time.Time        // zero: absent
	// Agent is the run's primary agent: RunStarted.Agent, else the only agent that acts in
	// the run or that a node or a handoff names.
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

// Of returns a fold's snapshot in OpenWOP's terms.
//
// A run waits if it waits in the fold, or if a node is suspended and no other node
// runs. It waits for an approval if one is open, or if a node is suspended for
// low confidence or for a turn of a conversation. Otherwise it waits for input if
// a question is open, and else for something external. The messages are in the
// channel [openwop.MessageChannel].
func Of(r *agentevents.RunSnapshot) (Snapshot, error) {
	s := Snapshot{
		RunID: r.RunID, WorkflowID: r.WorkflowID, Status: statusOf(r), CurrentNodeID: r.CurrentNodeID,
		StartedAt: r.StartedAt, CompletedAt: r.CompletedAt,
		Agent: r.Agent, Error: r.Error,
	}
	if s.CurrentNodeID == "" && len(r.Suspended) == 1 {
		for s.CurrentNodeID = range r.Suspended { // the fold has none if a node that started later has ended
		}
	}
	if !s.Agent.OK {
		s.Agent = ownerOf(r)
	}
	s.NodeStates = object(r.NodeStatus,
		func(v agentevents.NodeStatus) string { return `{"status":` + jsonwire.Quote(string(v)) + "}" })
	s.Variables = object(r.State, func(v agentevents.JSON) string { return string(v) })
	var messages []byte
	for _, m := range r.Messages {
		var err error
		if messages, err = openwop.AppendMessage(append(messages, ','), m); err != nil {
			return Snapshot{}, fmt.Errorf("message %s: %w", jsonwire.Brief(m.MessageID), err)
		}
	}
	if len(messages) > 0 {
		s.Channels = agentevents.JSON(`{"` + openwop.MessageChannel + `":[` + string(messages[1:]) + "]}")
	}
	s.Metrics = metrics(r)
	return s, nil
}

// ownerOf returns the only agent that acts in the run or that a node or a handoff names.
// It is absent if there are several. CoreSystem stands for calls that no agent made.
func ownerOf(r *agentevents.RunSnapshot) (owner agentevents.Opt[agentevents.AgentRef]) {
	refs := map[string]agentevents.AgentRef{}
	for _, h := range r.Handoffs {
		refs[h.From], refs[h.To] = agentevents.AgentRef{AgentID: h.From}, agentevents.AgentRef{AgentID: h.To}
	}
	for _, ref := range r.Facts.V.NodeAgents {
		refs[ref.AgentID] = ref
	}
	for id, a := range r.Agents {
		if a.Ref.OK {
			refs[id] = a.Ref.V
		} else if refs[id].AgentID == "" {
			refs[id] = agentevents.AgentRef{AgentID: id}
		}
	}
	delete(refs, "")
	delete(refs, openwop.CoreSystem)
	if len(refs) != 1 {
		return owner
	}
	for _, ref := range refs {
		owner = agentevents.Some(ref)
	}
	return owner
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
		if reason == openwop.ReasonLowConfidence || reason == "conversation-input" {
			return StatusWaitingApproval
		}
	}
	if slices.ContainsFunc(r.Clarifications, func(c agentevents.ClarificationSnapshot) bool { return c.Open }) {
		return StatusWaitingInput
	}
	return StatusWaitingExternal
}

// object writes a map, ordered by its keys. It returns "" if the map is empty.
func object[V any](m map[string]V, value func(V) string) agentevents.JSON {
	var out dialect.Unknowns
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out.Add(key, value(m[key]))
	}
	return out.Object()
}

func metrics(r *agentevents.RunSnapshot) agentevents.JSON {
	var cost dialect.Unknowns
	u := &r.Usage
	if u.CostUSD.OK {
		cost.Add("usd", string(jsonwire.AppendFloat(nil, u.CostUSD.V)))
	}
	if u.Usage.InputTokens != 0 || u.Usage.OutputTokens != 0 {
		cost.Add("tokens", fmt.Sprintf(`{"input":%d,"output":%d}`, u.Usage.InputTokens, u.Usage.OutputTokens))
	}
	if len(u.Models) == 1 {
		for model := range u.Models {
			cost.Add("model", jsonwire.Quote(model))
		}
	}
	if cost.Object() == "" {
		return ""
	}
	if d := r.CompletedAt.Sub(r.StartedAt); agentevents.TimeKnown(r.StartedAt) &&
		agentevents.TimeKnown(r.CompletedAt) && d >= 0 {
		cost.Add("duration_ms", strconv.FormatInt(d.Milliseconds(), 10))
	}
	return `{"openwopCost":` + cost.Object() + "}"
}

// A snapshotField is a member of a snapshot and its field.
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

// Parse reads a snapshot of any profile. It fails at the first place
// where the text is not JSON or a member has the wrong type, or if runId or
// status is missing.
func Parse(text []byte) (Snapshot, error) {
	if err := jsonwire.Valid(string(text)); err != nil { // this finds duplicates too
		return Snapshot{}, err
	}
	var (
		s    Snapshot
		r    engine.Reader
		more dialect.Unknowns
	)
	fields := s.fields()
	r.S.Reset(string(text))
	if err := r.S.Object(); err != nil {
		return Snapshot{}, err
	}
	for {
		name, ok, err := r.S.Member()
		if err != nil || !ok {
			break // at the end: the text is valid
		}
		other := agentevents.JSON("")
		at := any(&other)
		if i := slices.IndexFunc(fields, func(f snapshotField) bool { return f.name == name }); i >= 0 {
			at = fields[i].at
		}
		if err := s.parse(&r, at); err != nil {
			return Snapshot{}, err
		}
		if other != "" {
			more.Add(name, string(other))
		}
	}
	for _, name := range [...]string{"runId", "status"} {
		if !jsonwire.HasMember(string(text), name) {
			return Snapshot{}, &jsonwire.SyntaxError{Offset: len(text) - 1, Msg: name + " is missing"}
		}
	}
	s.More = more.Object()
	return s, nil
}

// parse reads a value into a field.
func (s *Snapshot) parse(r *engine.Reader, at any) (err error) {
	switch v := at.(type) {
	case *agentevents.Opt[agentevents.AgentRef]:
		v.OK = true
		start := r.S.Offset()
		raw, err := r.S.Raw()
		if err != nil {
			return err
		}
		if !jsonwire.IsObject(raw) {
			return &jsonwire.SyntaxError{Offset: start, Msg: "found a value that is not an object, expected an object"}
		}
		if err := v.V.UnmarshalJSON([]byte(raw)); err != nil {
			return &jsonwire.SyntaxError{Offset: start, Msg: err.Error()}
		}
		return nil
	case *agentevents.Opt[agentevents.ErrorInfo]:
		start := r.S.Offset()
		raw, err := r.S.Raw()
		if err == nil {
			*v, s.ErrorMore, err = snapshotError(raw, start)
		}
		return err
	}
	return engine.Value{}.Parse(r, at)
}

// snapshotError reads the error of a run, which begins at an offset of the text.
// The ErrorEnvelope of HTTP answers has error in place of code.
func snapshotError(raw string, at int) (info agentevents.Opt[agentevents.ErrorInfo], more agentevents.JSON, err error) {
	of, _, _ := schemas.Table(schemas.RFC0002)["snapshot"].Member("error")
	if fault := of.Check(raw); fault != nil {
		return info, "", &jsonwire.SyntaxError{Offset: at,
			Msg: "found another value than an error: " + strings.TrimPrefix(fault.Pointer+" ", "/") + fault.Detail}
	}
	info.OK = true
	var rest dialect.Unknowns
	for name, value := range jsonwire.Members(raw) {
		switch {
		case name == "message":
			info.V.Message = jsonwire.Text(value)
		case name == "code" && text(value), name == "error" && text(value) && !text(jsonwire.Member(raw, "code")):
			info.V.Code = jsonwire.Text(value)
		case name == "details":
			info.V.Details = agentevents.JSON(value)
		case name == "retryable" && (value == "true" || value == "false"):
			info.V.Retryable = agentevents.Some(value == "true")
		default:
			rest.Add(name, value)
		}
	}
	return info, rest.Object(), nil
}

func text(raw string) bool { return strings.HasPrefix(raw, `"`) }
