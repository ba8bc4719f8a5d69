package openwop

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

var snapshotNames = [...]string{
	`"runId":`, `"workflowId":`, `"status":`, `"owner":`, `"currentNodeId":`, `"startedAt":`, `"completedAt":`, `"agent":`, `"runOrchestrator":`,
	`"nodeStates":`, `"variables":`, `"channels":`, `"error":`, `"metrics":`,
}

// ParseSnapshot reads a snapshot of any profile. It fails at the first place
// where the text is not JSON or a member has the wrong type, or if runId or
// status is missing.
func ParseSnapshot(text []byte) (Snapshot, error) {
	var (
		s    Snapshot
		sc   jsonwire.Scanner
		seen set
		d    Decoder

		more, errorMore []byte
	)
	if err := jsonwire.Valid(string(text)); err != nil { // this finds duplicates too
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
				for _, u := range d.unknown.pairs { // d keeps only members of the error
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
