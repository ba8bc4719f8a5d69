package columns

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/view"
)

// ErrLeftOut means that an event makes no row: it comes again, or its sequence goes back in a way that
// shows that it is false.
var ErrLeftOut = errors.New("columns: the event comes again, or its sequence goes back")

// The bounds of the runs whose state a Tracker keeps.
const (
	maxEnded = 64   // that have ended: audits, usage and late events follow the end
	maxOpen  = 4096 // that have not
)

// A Tracker makes the rows of the events of any number of runs. It keeps the state of the runs that
// have not ended, as a fold with open calls and agents, at most of 4,096 runs, and of the 64 that
// ended last: the runs whose latest events are oldest go first, and the rows of later events of such
// a run are made as if the log began there. A Tracker must not be used concurrently.
type Tracker struct {
	runs        map[string]*run
	last        *run
	open, ended *list.List // of *run; those with the oldest events in front
	buf         []byte
}

type run struct {
	id     string
	fold   *agentevents.Fold
	status agentevents.RunStatus
	in     *list.List
	at     *list.Element
}

// NewTracker returns a tracker without events.
func NewTracker() *Tracker {
	return &Tracker{runs: map[string]*run{}, open: list.New(), ended: list.New()}
}

// Resume takes the state of a run from a snapshot in place of the events before: the rows of the next
// events are those that they have in the whole log. It keeps no part of the snapshot. The error comes from
// [agentevents.ResumeFold].
func (t *Tracker) Resume(s *agentevents.RunSnapshot) error {
	fold, err := agentevents.ResumeFold(s, options())
	if err != nil {
		return err
	}
	t.Forget(s.RunID)
	t.add(s.RunID, fold).status = s.Status
	return nil
}

// Forget drops the state of a run.
func (t *Tracker) Forget(runID string) {
	if r := t.runs[runID]; r != nil {
		r.in.Remove(r.at)
		delete(t.runs, r.id)
	}
	t.last = nil
}

func options() agentevents.FoldOptions {
	return agentevents.FoldOptions{KeepCalls: 64, MaxViolations: -1}
}

func (t *Tracker) add(id string, fold *agentevents.Fold) *run {
	r := &run{id: string(append([]byte(nil), id...)), fold: fold, in: t.open}
	r.at = r.in.PushBack(r)
	t.runs[r.id] = r
	return r
}

// run returns the run with that id.
func (t *Tracker) run(id string) *run {
	if t.last != nil && t.last.id == id {
		return t.last
	}
	r := t.runs[id]
	if r == nil {
		r = t.add(id, agentevents.NewFold(options()))
	} else {
		r.in.MoveToBack(r.at)
	}
	for _, l := range [...]struct {
		of   *list.List
		most int
	}{{t.open, maxOpen}, {t.ended, maxEnded}} {
		if l.of.Len() > l.most {
			delete(t.runs, l.of.Remove(l.of.Front()).(*run).id)
		}
	}
	t.last = r
	return r
}

// Add returns the row of an event. Events of one run come in their order. The text is the event as
// [agentevents.Event.AppendJSON] writes it; where it is empty, Add writes the event. The error is
// [ErrLeftOut], or tells why the event can have no row: it cannot be written, or its sequence is
// above 2^63-1.
func (t *Tracker) Add(ev *agentevents.Event, text string) (Row, error) {
	if ev.Sequence > math.MaxInt64 {
		return Row{}, fmt.Errorf("columns: event %s of run %s has the sequence %d, legal: up to 2^63-1",
			jsonwire.Brief(ev.ID), jsonwire.Brief(ev.RunID), ev.Sequence)
	}
	if text == "" {
		line, err := ev.AppendJSON(t.buf[:0])
		if err != nil {
			return Row{}, fmt.Errorf("columns: %w", err)
		}
		t.buf, text = line, string(line)
	}
	r := t.run(ev.RunID)
	e := r.fold.Effect(ev, text)
	if !e.Counted {
		return Row{}, ErrLeftOut
	}
	over := ends(ev)
	if over && r.in == t.open {
		t.open.Remove(r.at)
		r.in, r.at = t.ended, t.ended.PushBack(r)
	}
	row := Row{
		RunID: ev.RunID, Sequence: int64(ev.Sequence), EventID: ev.ID, Kind: string(ev.Kind()),
		SessionID: ev.SessionID, TaskID: ev.TaskID, WorkflowID: ev.WorkflowID,
		Phase: ev.Phase, NodeID: ev.NodeID, NodeRunID: ev.NodeRunID,
		AgentID: ev.AgentID, AgentName: ev.AgentID, AgentWas: e.Formerly, ParentAgentID: ev.ParentAgentID, Actor: ev.Actor,
		Begins: int64(e.Begins), HandsOver: e.From, RunStatus: r.change(ev),
		TraceID: ev.TraceID, SpanID: ev.SpanID, ParentSpanID: ev.ParentSpanID, Line: text,
	}
	if row.Ends = over; agentevents.TimeKnown(ev.Time) {
		row.Time = ev.Time
	}
	if ev.Step.OK {
		row.Step = agentevents.Some(int64(ev.Step.V))
	}
	if a := e.Agent; a != nil {
		row.AgentID, row.AgentName, row.ParentAgentID = a.AgentID, view.Name(a.AgentID, a), a.ParentAgentID
		row.Unnamed = a.AgentID == a.SpanID
	}
	row.payload(ev, &e)
	row.Name = first(e.To, row.Name)
	row.usage(&e)
	return row, nil
}

// change returns the status of the run after an event, if it has changed.
func (r *run) change(ev *agentevents.Event) string {
	switch ev.Payload.(type) {
	case *agentevents.ToolCalled, *agentevents.ToolReturned, *agentevents.ToolArgumentsDelta,
		*agentevents.TextDelta, *agentevents.AgentReasoningDelta,
		*agentevents.ModelCalled, *agentevents.ModelReturned, *agentevents.UsageObserved:
		if r.status != "" {
			return "" // they are frequent, and change nothing
		}
	}
	status := r.fold.State().Status
	if status == r.status {
		return ""
	}
	r.status = status
	return string(status)
}

// ends reports whether an event ends its run.
func ends(ev *agentevents.Event) bool {
	switch ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		return true
	}
	return false
}

// payload sets the columns that the kind has.
func (r *Row) payload(ev *agentevents.Event, e *agentevents.Effect) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		r.Name, r.Tool, r.CallID = p.ToolID, p.ToolID, p.CallID
	case *agentevents.ToolArgumentsDelta:
		r.CallID = p.CallID
	case *agentevents.ToolReturned:
		r.returned(ev, p, e)
	case *agentevents.ModelCalled:
		r.Name, r.Model, r.ModelCallID, r.Provider = p.Operation, p.Model, p.ModelCallID, p.Provider
	case *agentevents.ModelReturned:
		r.Name, r.ModelCallID, r.Result = p.Operation, p.ModelCallID, string(p.Response)
		r.Model, r.Provider = first(p.Model, e.Model), first(p.Provider, e.Provider)
		r.error(p.Error)
		if e.Again {
			return
		}
		r.ended(map[bool]endword.Meaning{false: endword.Succeeded, true: endword.Failed}[p.Error.OK])
		r.took(p.Duration, e.Began, ev.Time, true)
	case *agentevents.UsageObserved:
		r.Model, r.ModelCallID = p.Model, p.ModelCallID
	case *agentevents.AgentStarted:
		r.Name, r.Model = p.Name, p.Model
	case *agentevents.AgentEnded:
		r.Result = string(p.StructuredOutput)
		if r.Result == "" && p.Result != "" {
			r.Result = jsonwire.Quote(p.Result)
		}
		r.error(p.Error)
		if e.Agent != nil {
			r.ended(view.Ending(e.Agent))
		}
		r.took(p.Duration, e.Began, ev.Time, false)
	case *agentevents.AgentErrored:
		r.Error = first(p.Message, p.ErrorType)
	case *agentevents.ContextCompacted:
		r.TokensBefore, r.TokensAfter = p.TokensBefore, p.TokensAfter
	case *agentevents.MessageCreated:
		r.MessageID = p.Message.MessageID
	case *agentevents.TaskAssigned:
		r.Name = first(p.AssignedAgent, r.AgentID)
	case *agentevents.AgentHandoff:
		r.Name = p.To.AgentID
	case *agentevents.HandoffRequested:
		r.Name = p.To.AgentID
	case *agentevents.HandoffAccepted:
		r.Name = p.To.AgentID
		r.ended(endword.Succeeded)
	default:
		r.people(ev, e)
	}
}

// returned sets the columns of the return of a tool call.
func (r *Row) returned(ev *agentevents.Event, p *agentevents.ToolReturned, e *agentevents.Effect) {
	r.Tool, r.CallID, r.Result = first(p.ToolID, e.Tool), p.CallID, string(p.Result)
	if r.Name = r.Tool; r.Result == "" && p.ResultSummary != "" {
		r.Result = jsonwire.Quote(p.ResultSummary)
	}
	r.error(p.Error)
	if e.Again {
		return
	}
	r.ended(endword.Of(string(p.Status)))
	if !e.Began.IsZero() || p.OneEvent {
		r.took(p.Duration, e.Began, ev.Time, true)
	}
}

// people sets the columns of the kinds that people, verifiers and workflows have.
func (r *Row) people(ev *agentevents.Event, e *agentevents.Effect) {
	switch p := ev.Payload.(type) {
	case *agentevents.ApprovalRequested:
		r.Tool, r.CallID = p.ToolID, p.CallID
	case *agentevents.ApprovalGranted:
		r.ended(endword.Succeeded)
		r.waited(e.Began, ev.Time, p.Answer)
	case *agentevents.ApprovalRejected:
		r.ended(endword.Refused)
		r.waited(e.Began, ev.Time, p.Answer)
	case *agentevents.AuditChecked:
		r.Name, r.Result = p.CheckpointID, string(p.Evidence)
		r.ended(endword.Of(string(p.Result)))
		r.DurationMS = milliseconds(p.Duration)
	case *agentevents.ClaimVerified:
		r.Name, r.Result = p.FindingID, string(p.Evidence)
		r.ended(endword.Of(p.Verdict))
	case *agentevents.LoopRoundCompleted:
		r.Name = strconv.Itoa(p.Round)
	default:
		r.flow(ev, e)
	}
}

// flow sets the columns of the kinds of runs, sessions, turns, steps and nodes.
func (r *Row) flow(ev *agentevents.Event, e *agentevents.Effect) {
	switch p := ev.Payload.(type) {
	case *agentevents.SessionCompleted:
		r.Result = string(p.Result)
		r.error(p.Error)
		if p.Status != "" || p.Error.OK {
			r.ended(endword.Of(first(p.Status, "failed")))
		}
	case *agentevents.RunStarted:
		r.Name = p.Name
	case *agentevents.RunCompleted:
		r.Result = string(p.Outputs)
		r.over(endword.Succeeded, ev, e)
	case *agentevents.RunFailed:
		r.error(p.Error)
		r.over(endword.Failed, ev, e)
	case *agentevents.RunCancelled:
		r.Error = p.Reason
		r.over(endword.Cancelled, ev, e)
	case *agentevents.TurnStarted:
		r.Name = p.Name
	case *agentevents.TurnEnded:
		r.Name = p.Name
		r.work(p.Error, p.Duration, ev, e)
	case *agentevents.StepStarted:
		r.Name = first(p.Name, p.StepID)
	case *agentevents.StepEnded:
		if r.Name = first(p.Name, p.StepID); p.ResultSummary != "" {
			r.Result = jsonwire.Quote(p.ResultSummary)
		}
		r.work(p.Error, p.Duration, ev, e)
	case *agentevents.SpanRecorded:
		r.Name, r.Error = first(p.Name, p.Subject), first(p.ErrorMessage, p.ErrorType)
		r.took(p.Duration, time.Time{}, time.Time{}, false)
	case *agentevents.NodeCompleted:
		r.Result = string(p.Outputs)
		r.ended(endword.Succeeded)
		r.took(p.Duration, time.Time{}, time.Time{}, false)
	case *agentevents.NodeFailed:
		r.error(agentevents.Some(p.Error))
		r.ended(endword.Failed)
	case *agentevents.NodeSkipped:
		r.ended(endword.Skipped)
	case *agentevents.PhaseCompleted:
		r.ended(endword.Succeeded)
		r.took(agentevents.Opt[time.Duration]{}, e.Began, ev.Time, false)
	case *agentevents.WorkflowFinalized:
		r.ended(endword.Succeeded)
		r.DurationMS = milliseconds(p.Duration)
	}
}

// over sets the columns of the end of a run.
func (r *Row) over(how endword.Meaning, ev *agentevents.Event, e *agentevents.Effect) {
	r.ended(how)
	r.took(agentevents.Opt[time.Duration]{}, e.Began, ev.Time, false)
}

// work sets the columns of the end of a turn or a step.
func (r *Row) work(err agentevents.Opt[agentevents.ErrorInfo],
	stated agentevents.Opt[time.Duration], ev *agentevents.Event, e *agentevents.Effect) {
	r.error(err)
	r.ended(endword.End{Error: err.OK, Code: err.V.Code}.Meaning())
	r.took(stated, e.Began, ev.Time, false)
}

func (r *Row) ended(how endword.Meaning) {
	r.Status = how.String()
	if how == endword.Succeeded || how == endword.Failed {
		r.Failed = agentevents.Some(how == endword.Failed)
	}
}

func (r *Row) error(err agentevents.Opt[agentevents.ErrorInfo]) {
	r.Error = first(err.V.Message, err.V.Code)
}

// took sets the duration: the stated one, else the time between two events. moves tells that the
// clock of a log has to move between them: without a clock, as in most captures, events have one time
// and tell nothing.
func (r *Row) took(stated agentevents.Opt[time.Duration], from, to time.Time, moves bool) {
	switch {
	case stated.OK:
		r.DurationMS = milliseconds(stated.V)
	case agentevents.TimeKnown(from) && agentevents.TimeKnown(to) &&
		!from.IsZero() && (to.After(from) || !moves && to.Equal(from)):
		r.DurationMS = milliseconds(to.Sub(from))
	}
}

// waited sets the time from a request for an approval to a person's answer. word is the answer's own.
func (r *Row) waited(from, to time.Time, word string) {
	if !endword.Lapsed(word) {
		r.took(agentevents.Opt[time.Duration]{}, from, to, false)
	}
}

func milliseconds(d time.Duration) agentevents.Opt[float64] {
	return agentevents.Some(float64(d) / float64(time.Millisecond))
}

func first(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return texts[i]
}
