package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
)

// A Slog is a sink that makes each event a record of the program's log.
//
// The record's message is the event's kind, and its time is the event's. Its attributes are
//
//   - event: a group with the event's identity, as [agentevents.Event.LogValue] has it;
//   - trace_id and span_id, where the event has them;
//   - the facts of its kind that a person looks for, such as tool, status, duration, tokens and the
//     code of an error: the words are the names of the payload's fields. Durations have
//     [slog.KindDuration], which slog's JSON handler writes in nanoseconds.
//
// Prompts, texts, arguments, results, messages of errors and names of people are not
// among them. Deltas are logged like all events, at [slog.LevelDebug]; an event whose level
// the handler does not take costs some nanoseconds and no memory.
//
// Events marked [agentevents.MarkReplayed] are old: they are logged at [slog.LevelDebug] whatever
// their kind, or an alert would go off again. In [agentevents.SkipReplayed] a logger does not get
// them at all.
//
// The error of the handler is the sink's. A program that goes on without its log puts the logger in
// [agentevents.BestEffort], and a slow handler in [agentevents.Buffered].
//
// Mirrors: KAOS hook logging.
type Slog struct {
	// To is where the records go. It is required: without it WriteEvent returns an error.
	To *slog.Logger
	// Level is the level of an event; nil means [LevelOf]. It is called for every event,
	// concurrently for different runs.
	Level func(agentevents.Event) slog.Level
	// Content adds the attribute payload: all of the payload, as JSON, with prompts and results. It
	// was redacted by the emitter's policy, and may be long.
	Content bool
}

// WriteEvent logs the event.
func (l Slog) WriteEvent(ctx context.Context, ev agentevents.Event) error {
	if l.To == nil {
		return errors.New("hooks: Slog.To is nil")
	}
	level := LevelOf
	if l.Level != nil {
		level = l.Level
	}
	at := level(ev)
	if !l.To.Enabled(ctx, at) {
		return nil
	}
	return l.log(ctx, at, ev)
}

// log is apart from WriteEvent because its event moves to the heap.
func (l Slog) log(ctx context.Context, level slog.Level, ev agentevents.Event) error {
	list := facts{slog.Any("event", ev)}
	list.text("trace_id", ev.TraceID)
	list.text("span_id", ev.SpanID)
	list.add(&ev)
	if l.Content {
		payload, err := json.Marshal(ev.Payload)
		if err != nil {
			return fmt.Errorf("hooks: the payload as JSON: %w", err)
		}
		list = append(list, slog.Any("payload", json.RawMessage(payload)))
	}
	r := slog.NewRecord(ev.Time, level, string(ev.Kind()), 0)
	r.AddAttrs(list...)
	return l.To.Handler().Handle(ctx, r)
}

// LevelOf returns the level of an event: the first row that fits.
//
//	Debug  events marked replayed; deltas
//	Error  run.failed, node.failed; agent.error, unless it is a warning; a tool that returned
//	       error; an end of an agent, turn, step, span or model call with an error, unless
//	       that is a cancellation
//	Warn   run.cancelled, budget.exceeded, cap.breached, approval.rejected,
//	       evidence.insufficient, verifier.issue.found; an audit that did not pass; a tool
//	       that returned another status than ok; an end with a cancellation for an error; an
//	       agent that was aborted; agent.error that is a warning; events marked illegal
//	Info   all others, also unknown kinds
func LevelOf(ev agentevents.Event) slog.Level {
	if ev.Marks.Has(agentevents.MarkReplayed) {
		return slog.LevelDebug
	}
	level := slog.LevelInfo
	raise := func(to slog.Level, when bool) {
		if when {
			level = max(level, to)
		}
	}
	raise(slog.LevelWarn, ev.Marks.Has(agentevents.MarkIllegal))
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta, *agentevents.AgentReasoningDelta, *agentevents.ToolArgumentsDelta:
		return slog.LevelDebug
	case *agentevents.RunFailed, *agentevents.NodeFailed:
		return slog.LevelError
	case *agentevents.AgentErrored:
		raise(slog.LevelWarn, true)
		raise(slog.LevelError, p.Severity != agentevents.SeverityWarning)
	case *agentevents.AgentEnded:
		raise(slog.LevelWarn, p.Outcome == agentevents.OutcomeAborted)
		raise(failure(p.Error), p.Error.OK)
	case *agentevents.ToolReturned:
		raise(slog.LevelWarn, p.Status != agentevents.ToolStatusOK)
		raise(slog.LevelError, p.Status == agentevents.ToolStatusError)
	case *agentevents.ModelReturned:
		raise(failure(p.Error), p.Error.OK)
	case *agentevents.TurnEnded:
		raise(failure(p.Error), p.Error.OK)
	case *agentevents.StepEnded:
		raise(failure(p.Error), p.Error.OK)
	case *agentevents.SpanRecorded:
		raise(slog.LevelWarn, p.Phase == "cancelled")
		raise(slog.LevelError, p.Phase == "error" || p.Phase != "cancelled" && p.ErrorType != "")
	case *agentevents.AuditChecked:
		raise(slog.LevelWarn, p.Result != agentevents.AuditPass)
	case *agentevents.RunCancelled, *agentevents.BudgetExceeded, *agentevents.CapBreached, *agentevents.ApprovalRejected,
		*agentevents.EvidenceInsufficient, *agentevents.IssueFound:
		raise(slog.LevelWarn, true)
	}
	return level
}

// failure is the level of an end with an error.
func failure(err agentevents.Opt[agentevents.ErrorInfo]) slog.Level {
	if cancelled(err) {
		return slog.LevelWarn
	}
	return slog.LevelError
}

func cancelled(err agentevents.Opt[agentevents.ErrorInfo]) bool {
	return endword.Of(err.V.Code) == endword.Cancelled
}

// facts are the attributes of a record. Absent facts are left out.
type facts []slog.Attr

func (f *facts) text(key, value string) {
	if value != "" {
		*f = append(*f, slog.String(key, value))
	}
}

func (f *facts) number(key string, n int) { *f = append(*f, slog.Int(key, n)) }

func optional[T any](f *facts, key string, v agentevents.Opt[T]) {
	if v.OK {
		*f = append(*f, slog.Any(key, v.V))
	}
}

// failure adds the code of an error; its message is content.
func (f *facts) failure(e agentevents.Opt[agentevents.ErrorInfo]) {
	if e.OK {
		f.text("error_code", e.V.Code)
	}
}

func (f *facts) used(u agentevents.Usage) {
	*f = append(*f, slog.Int64("input_tokens", u.InputTokens), slog.Int64("output_tokens", u.OutputTokens))
	optional(f, "cache_creation_input_tokens", u.CacheCreationInputTokens)
	optional(f, "cache_read_input_tokens", u.CacheReadInputTokens)
}

// add adds the facts of the event's kind. They are of the classes meta and id; a test
// masks all content and finds the same.
func (f *facts) add(ev *agentevents.Event) {
	switch p := ev.Payload.(type) {
	case *agentevents.SessionCompleted:
		f.text("status", p.Status)
	case *agentevents.RunStarted:
		f.text("name", p.Name)
	case *agentevents.RunCompleted:
		f.refused(p.Refused)
	case *agentevents.RunFailed:
		f.failure(p.Error)
		f.refused(p.Refused)
	case *agentevents.RunCancelled:
		f.refused(p.Refused)

	case *agentevents.AgentStarted:
		f.text("parent", ev.ParentAgentID)
		f.text("model", p.Model)
		optional(f, "attempt", p.Attempt)
	case *agentevents.AgentTransition:
		f.text("from", string(p.From))
		f.text("to", string(p.To))
	case *agentevents.AgentEnded:
		f.text("outcome", string(p.Outcome))
		f.failure(p.Error)
		optional(f, "duration", p.Duration)
		optional(f, "turns", p.NumTurns)
		if p.Totals.OK {
			f.number("steps", p.Totals.V.Steps)
			f.number("tool_calls", p.Totals.V.ToolCalls)
		}
		if p.Usage.OK {
			f.used(p.Usage.V)
		}
		optional(f, "cost_usd", p.TotalCostUSD)
		f.refused(p.Refused)
	case *agentevents.AgentErrored:
		f.text("error_type", p.ErrorType)
	case *agentevents.EventRetracted:
		f.number("events", len(p.EventIDs))
	case *agentevents.ContextCompacted:
		optional(f, "tokens_before", p.TokensBefore)
		optional(f, "tokens_after", p.TokensAfter)
		f.text("trigger", p.Trigger)
	case *agentevents.TaskAssigned:
		f.text("task", ev.TaskID)
		f.text("assigned_agent", p.AssignedAgent)

	case *agentevents.AgentReasoned:
		f.text("verbosity", string(p.Verbosity))
		optional(f, "tokens", p.TokenCount)
	case *agentevents.AgentDecided:
		optional(f, "confidence", p.Confidence)
	case *agentevents.OrchestratorDecided:
		optional(f, "iteration", p.Iteration)
	case *agentevents.IntentClassified:
		f.text("intent", p.Intent)
		optional(f, "confidence", p.Confidence)

	case *agentevents.ModelCalled:
		f.text("model_call", p.ModelCallID)
		f.text("provider", p.Provider)
		f.text("model", p.Model)
		optional(f, "attempt", p.Attempt)
	case *agentevents.ModelReturned:
		f.text("model_call", p.ModelCallID)
		f.text("provider", p.Provider)
		f.text("model", p.Model)
		optional(f, "duration", p.Duration)
		optional(f, "time_to_first_token", p.TimeToFirstToken)
		if p.Usage.OK {
			f.used(p.Usage.V)
		}
		optional(f, "cost_usd", p.CostUSD)
		if len(p.FinishReasons) > 0 {
			*f = append(*f, slog.Any("finish_reasons", p.FinishReasons))
		}
		f.failure(p.Error)
		f.text("request", p.RequestID)

	case *agentevents.ToolCalled:
		f.text("tool", p.ToolID)
		f.text("call", p.CallID)
		optional(f, "attempt", p.Attempt)
		f.text("retry_of", p.RetryOf)
	case *agentevents.ToolReturned:
		f.text("tool", p.ToolID)
		f.text("call", p.CallID)
		f.text("status", string(p.Status))
		optional(f, "duration", p.Duration)
		f.failure(p.Error)

	case *agentevents.AgentHandoff:
		f.pair(p.From.AgentID, p.To.AgentID)
	case *agentevents.HandoffRequested:
		f.pair(p.From.AgentID, p.To.AgentID)
	case *agentevents.HandoffAccepted:
		f.pair(p.From.AgentID, p.To.AgentID)

	case *agentevents.TurnStarted:
		optional(f, "turn", p.Turn)
	case *agentevents.TurnEnded:
		optional(f, "turn", p.Turn)
		optional(f, "duration", p.Duration)
		f.failure(p.Error)
	case *agentevents.TurnSummarized:
		f.number("tool_calls", len(p.ToolCalls))
		f.used(p.Usage)
		optional(f, "cost_usd", p.CostUSD)
	case *agentevents.StepStarted:
		f.text("plan_step", p.StepID)
	case *agentevents.StepEnded:
		f.text("plan_step", p.StepID)
		optional(f, "duration", p.Duration)
		f.failure(p.Error)
	case *agentevents.SpanRecorded:
		f.text("subject", p.Subject)
		f.text("phase", p.Phase)
		optional(f, "duration", p.Duration)
		f.text("error_type", p.ErrorType)
	case *agentevents.NodeStarted:
		f.text("node", ev.NodeID)
		optional(f, "attempt", p.Attempt)
	case *agentevents.NodeCompleted:
		f.text("node", ev.NodeID)
		optional(f, "duration", p.Duration)
	case *agentevents.NodeFailed:
		f.text("node", ev.NodeID)
		f.text("error_code", p.Error.Code)
	case *agentevents.NodeSkipped:
		f.text("node", ev.NodeID)
		f.text("reason", p.Reason)
	case *agentevents.NodeSuspended:
		f.text("node", ev.NodeID)
		f.text("reason", p.Reason)
	case *agentevents.EdgeFired:
		f.pair(p.From, p.To)
	case *agentevents.EdgeSkipped:
		f.pair(p.From, p.To)
	case *agentevents.LoopIterated:
		f.number("iteration", p.Iteration)
	case *agentevents.LoopRoundCompleted:
		f.number("round", p.Round)
		optional(f, "score", p.Score)
		optional(f, "cost_usd", p.CostUSD)
	case *agentevents.StatePatched:
		f.text("op", string(p.Op))

	case *agentevents.WorkflowCreated, *agentevents.WorkflowApproved, *agentevents.CheckpointResumed:
		f.workflow(ev)
	case *agentevents.PhaseStarted:
		f.workflow(ev)
		optional(f, "inputs", p.InputCount)
	case *agentevents.PhaseCompleted:
		f.workflow(ev)
		optional(f, "outputs", p.OutputCount)
		optional(f, "tokens", p.Tokens)
	case *agentevents.CheckpointSaved:
		f.workflow(ev)
		*f = append(*f, slog.Int64("bytes", p.StateBytes))
	case *agentevents.WorkflowFinalized:
		f.workflow(ev)
		f.number("agents", p.TotalAgents)
		*f = append(*f, slog.Int64("tokens", p.TotalTokens), slog.Duration("duration", p.Duration))

	case *agentevents.ApprovalRequested:
		f.text("approval", p.ApprovalID)
		f.text("tool", p.ToolID)
		f.text("call", p.CallID)
		optional(f, "timeout", p.Timeout)
	case *agentevents.ApprovalGranted:
		f.text("approval", p.ApprovalID)
	case *agentevents.ApprovalRejected:
		f.text("approval", p.ApprovalID)
	case *agentevents.ClarificationRequested:
		f.text("clarification", p.InterruptID)
		f.number("questions", len(p.Questions))
	case *agentevents.ClarificationResolved:
		f.text("clarification", p.InterruptID)
	case *agentevents.CommandReceived:
		f.text("command", string(p.Command.Type))

	case *agentevents.AuditChecked:
		f.text("audit", p.CheckpointID)
		f.text("result", string(p.Result))
		*f = append(*f, slog.Duration("duration", p.Duration))
	case *agentevents.ClaimVerified:
		f.text("finding", p.FindingID)
		f.text("verdict", p.Verdict)
	case *agentevents.IssueFound:
		f.text("severity", p.Severity)
	case *agentevents.CitationFound:
		optional(f, "verified", p.Verified)

	case *agentevents.UsageObserved:
		f.text("model", p.Model)
		f.used(p.Usage)
		optional(f, "cost_usd", p.CostUSD)
	case *agentevents.BudgetExceeded:
		f.text("budget", p.Budget)
		*f = append(*f, slog.Float64("limit", p.Limit), slog.Float64("actual", p.Actual))
	case *agentevents.CapBreached:
		f.text("cap", p.Cap)
		optional(f, "limit", p.Limit)
		optional(f, "observed", p.Observed)
	case *agentevents.BlackboardItemCreated:
		f.text("item", p.ItemID)
		f.text("item_type", p.ItemType)
	case *agentevents.MemoryChanged:
		f.text("change", string(p.Change))
		f.text("section", p.Section)
		optional(f, "items", p.ItemCount)
	}
}

func (f *facts) refused(n int) {
	if n > 0 {
		f.number("refused", n)
	}
}

func (f *facts) pair(from, to string) {
	f.text("from", from)
	f.text("to", to)
}

func (f *facts) workflow(ev *agentevents.Event) {
	f.text("workflow", ev.WorkflowID)
	f.text("phase", ev.Phase)
}
