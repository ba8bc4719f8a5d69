package view

import (
	"slices"
	"time"

	"github.com/agentevents/agentevents"
)

// An Attempt is the part of an agent that a view shows in one place: one of its attempts, or all
// turns of a conversation.
type Attempt struct {
	// AgentSnapshot is the agent as if there were no other attempt: Sequence, the task, the counts,
	// the figures and the end belong to this one.
	*agentevents.AgentSnapshot
	Dropped int  // number of attempts that the snapshot has not kept and that this one stands for
	Several bool // the agent has other attempts
}

// Attempts returns the attempts of an agent in order.
func Attempts(a *agentevents.AgentSnapshot) []Attempt {
	if len(a.Earlier) == 0 || Conversation(a) {
		return []Attempt{{AgentSnapshot: a, Several: a.Attempts > 1 && !Conversation(a)}}
	}
	usage := map[uint64]agentevents.AttemptUsage{}
	for _, u := range a.Usage.Earlier {
		usage[u.Sequence] = u
	}
	var out []Attempt
	for i, t := range a.AttemptsInOrder() {
		one := alone(a, &t)
		if i == len(a.Earlier) {
			one.Open, one.Ended, one.Text, one.Reasoning = a.Open, a.Ended, a.Text, a.Reasoning
			one.StructuredOutput, one.ResultSchema = a.StructuredOutput, a.ResultSchema
			one.Usage.AttemptUsage = a.Usage.AttemptUsage
		} else {
			one.Usage.AttemptUsage = usage[t.Sequence]
			delete(usage, t.Sequence)
		}
		out = append(out, Attempt{AgentSnapshot: one, Several: true})
	}
	d := &a.Dropped.V
	if d.Count == 0 {
		return out
	}
	at := (len(a.Earlier) + 1) / 2 // the snapshot keeps as many of the first as of the latest
	gap := alone(a, &agentevents.AttemptSnapshot{
		Attempt: out[at-1].Attempts + 1, Sequence: d.Sequence, ToolCalls: d.ToolCalls, ToolFailures: d.ToolFailures,
		ToolSuccesses: d.ToolSuccesses, ToolRefusals: d.ToolRefusals, ToolsUndecided: d.ToolsUndecided,
		ModelCalls: d.ModelCalls, ModelFailures: d.ModelFailures, Errors: d.Errors,
	})
	for _, u := range a.Usage.Earlier {
		if _, left := usage[u.Sequence]; left {
			gap.Usage.Earlier = append(gap.Usage.Earlier, u)
		}
	}
	return slices.Insert(out, at, Attempt{gap, d.Count, true})
}

// alone returns an agent with an attempt as its only one, without the texts and figures of it.
func alone(a *agentevents.AgentSnapshot, t *agentevents.AttemptSnapshot) *agentevents.AgentSnapshot {
	one := *a
	one.Attempts, one.Sequence, one.Status, one.Counted, one.Totals = t.Attempt, t.Sequence, t.Status, t.Counted, t.Totals
	one.Open, one.Ended = false, !t.Died
	one.ParentAgentID, one.ParentSpanID, one.ParentCallID = t.ParentAgentID, t.ParentSpanID, t.ParentCallID
	one.WorkflowID, one.Phase, one.Task = t.WorkflowID, t.Phase, t.Task
	one.StartedAt, one.EndedAt, one.Duration = t.StartedAt, t.EndedAt, t.Duration
	one.ToolSuccesses, one.ToolRefusals, one.ToolsUndecided = t.ToolSuccesses, t.ToolRefusals, t.ToolsUndecided
	one.ToolCalls, one.ToolFailures = t.ToolCalls, t.ToolFailures
	one.ModelCalls, one.ModelFailures = t.ModelCalls, t.ModelFailures
	one.Errors, one.LastError = t.Errors, t.LastError
	one.EndStatus, one.EndReason, one.EndMadeUp = t.EndStatus, t.EndReason, t.EndMadeUp
	one.Outcome, one.Error, one.Result = t.Outcome, t.Error, t.Result
	one.NumTurns, one.ConvergenceScore = t.NumTurns, t.ConvergenceScore
	one.Text, one.Reasoning, one.StructuredOutput, one.ResultSchema = t.Text, "", "", ""
	one.Usage = agentevents.AgentUsage{}
	one.Earlier, one.Dropped = nil, agentevents.Opt[agentevents.DroppedAttempts]{}
	return &one
}

// Conversation reports whether the starts of an agent are turns of a conversation with a person:
// nobody spawned it, its provider keeps a session, and no turn before the last was cut off or failed.
func Conversation(a *agentevents.AgentSnapshot) bool {
	return a.ProviderSessionID != "" && a.ParentAgentID == "" && a.ParentCallID == "" &&
		!slices.ContainsFunc(a.Earlier, func(t agentevents.AttemptSnapshot) bool { return t.Died || t.Error.OK })
}

// Turns returns how many turns a run has, if it has turns: the log tells them, or the run is a
// conversation.
func Turns(s *agentevents.RunSnapshot) int {
	if n := len(s.Turns); n > 0 {
		return n
	}
	n := 0
	for _, a := range s.Agents {
		if a == nil || a.ParentAgentID != "" || a.ParentCallID != "" {
			continue
		}
		if n > 0 || a.Attempts < 2 || !Conversation(a) {
			return 0
		}
		n = a.Attempts
	}
	return n
}

// Took returns how long an attempt took, or the turns of a conversation from the first one on.
func Took(a *agentevents.AgentSnapshot) time.Duration {
	took := a.Duration.V
	if len(a.Earlier) > 0 && !a.Earlier[0].StartedAt.IsZero() && a.EndedAt.After(a.Earlier[0].StartedAt) {
		took = max(took, a.EndedAt.Sub(a.Earlier[0].StartedAt))
	}
	return took
}

// Steps returns how many steps an attempt, or the turns of a conversation, had.
func Steps(a *agentevents.AgentSnapshot) int {
	steps := a.Totals.Or(a.Counted).Steps
	if len(a.Earlier) > 0 && a.Step.OK { // the counts are of the last turn
		steps = max(steps, a.Step.V+1)
	}
	return steps
}
