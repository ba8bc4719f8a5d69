package backendtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
)

// release is a run with a bit of everything: phases, model calls, tools that work, fail and
// are forbidden, an approval, a sub-agent, a handoff, audits and an error.
func release(t testing.TB, r *rig, ctx context.Context, id string) {
	t.Helper()
	run := r.run(t, id).With(ae.Scope{SessionID: "session-1", TaskID: "task-1"})
	require.NoError(t, run.Emit(ctx, &ae.RunStarted{Name: "release", Inputs: ae.JSONString(secrets[0])}))
	build := run.With(ae.Scope{WorkflowID: "release", Phase: "build"})
	r.emit(t, build, &ae.PhaseStarted{InputCount: ae.Some(2)})

	lead := build.Agent("lead")
	r.emit(t, lead, &ae.AgentStarted{Task: secrets[1], Prompt: ae.JSONString(secrets[2])},
		&ae.TaskAssigned{Goal: secrets[3], AssignedAgent: "lead"},
		&ae.ModelCalled{ModelCallID: "m1", Model: "claude-opus", Provider: "anthropic", Request: ae.JSON(`[{"role":"user","parts":[{"type":"text","content":"` + secrets[4] + `"}]}]`)},
		&ae.TextDelta{BlockID: "b1", Delta: secrets[5]},
		&ae.AgentReasoned{Reasoning: secrets[6]},
		&ae.TextCompleted{BlockID: "b1", Text: secrets[5]},
		&ae.ModelReturned{
			ModelCallID: "m1", FinishReasons: []string{"tool_use"}, ResponseID: "resp-1", CostUSD: ae.Some(0.25), Response: ae.JSON(`{"text":"` + secrets[7] + `"}`),
			Usage: ae.Some(ae.Usage{InputTokens: 1000, OutputTokens: 200, CacheReadInputTokens: ae.Some[int64](50), CacheCreationInputTokens: ae.Some[int64](20)}),
		},
		&ae.PlanProposed{Steps: []ae.PlanStep{{StepID: "1", Description: secrets[8]}}})
	_, err := lead.Do(ctx, &ae.ToolCalled{CallID: "c1", ToolID: "Read", Arguments: ae.JSON(`{"path":"` + secrets[9] + `"}`)}, func(context.Context) (ae.JSON, error) {
		r.pass(250 * time.Millisecond)
		return ae.JSONString(secrets[10]), nil
	})
	require.NoError(t, err)
	_, err = lead.Do(ctx, &ae.ToolCalled{CallID: "c2", ToolID: "Bash", Arguments: `{"command":"make"}`}, func(context.Context) (ae.JSON, error) {
		r.pass(1500 * time.Millisecond)
		return "", &ae.ToolError{Code: "exit_1", Err: errors.New(secrets[11])}
	})
	require.Error(t, err)
	r.emit(t, lead, &ae.ToolReturned{CallID: "c3", ToolID: "Deploy", Status: ae.ToolStatusForbidden},
		&ae.AgentErrored{ErrorType: "rate_limit", Message: secrets[12], Severity: ae.SeverityWarning})

	task, err := lead.Call(ctx, &ae.ToolCalled{CallID: "c4", ToolID: "Task", Arguments: ae.JSON(`{"prompt":"` + secrets[9] + `"}`)})
	require.NoError(t, err)
	tester := task.Agent("tester")
	r.emit(t, tester, &ae.AgentStarted{Task: secrets[1]},
		&ae.ToolReturned{CallID: "c1", ToolID: "Grep", Status: ae.ToolStatusOK, OneEvent: true, Duration: ae.Some(50 * time.Millisecond), Arguments: ae.JSONString(secrets[9]), Result: ae.JSONString(secrets[10])},
		&ae.AuditChecked{CheckpointID: "audit:tests", Result: ae.AuditPass, Evidence: ae.JSON(`{"log":"` + secrets[13] + `"}`)},
		&ae.CitationFound{Claim: secrets[13], SourceURI: secrets[14], Verified: ae.Some(true), Confidence: ae.Some(0.75)},
		&ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: secrets[10], Usage: ae.Some(ae.Usage{InputTokens: 300, OutputTokens: 40})})
	require.NoError(t, task.Return(ctx, ae.JSONString(secrets[10])))

	push, err := lead.Call(ctx, &ae.ToolCalled{CallID: "c5", ToolID: "Push"})
	require.NoError(t, err)
	r.emit(t, lead, &ae.ApprovalRequested{ApprovalID: "ap1", Action: secrets[15], Reason: secrets[15], CallID: "c5", ToolID: "Push"})
	r.pass(5 * time.Second)
	r.emit(t, lead, &ae.ApprovalGranted{ApprovalID: "ap1", ApprovedBy: secrets[16], Feedback: secrets[15]})
	require.NoError(t, push.Return(ctx, "true"))
	r.emit(t, lead, &ae.HandoffRequested{HandoffID: "h1", From: ae.AgentRef{AgentID: "lead"}, To: ae.AgentRef{AgentID: "reviewer"}, Reason: secrets[15]},
		&ae.AgentEnded{Outcome: ae.OutcomeConverged, Result: secrets[10]})
	r.emit(t, build, &ae.PhaseCompleted{OutputCount: ae.Some(1)})

	reviewer := run.Agent("reviewer")
	r.emit(t, reviewer, &ae.AgentStarted{},
		&ae.HandoffAccepted{HandoffID: "h1", From: ae.AgentRef{AgentID: "lead"}, To: ae.AgentRef{AgentID: "reviewer"}},
		&ae.ModelCalled{ModelCallID: "m1", Model: "claude-haiku", Provider: "anthropic"},
		&ae.ModelReturned{ModelCallID: "m1", Error: ae.Some(ae.ErrorInfo{Code: "overloaded", Message: secrets[12]})},
		&ae.ClaimVerified{FindingID: "f1", VerifierAgentID: "reviewer", Verdict: "rejected", Evidence: ae.JSONString(secrets[13])},
		&ae.IssueFound{Issue: secrets[13], Severity: "major", SuggestedFix: secrets[13]},
		&ae.BudgetExceeded{Budget: "tokens", Limit: 1000, Actual: 1200, Reason: secrets[15]},
		&ae.AgentEnded{Outcome: ae.OutcomePartial})
	r.emit(t, run, &ae.RunCompleted{Outputs: ae.JSONString(secrets[10])})
}

// secrets are contents that must not get out unless that is asked for. They look like no
// credential, so that redaction leaves them in the log.
var secrets = [...]string{
	"zqinputs", "zqtask", "zqprompt", "zqgoal", "zqrequest", "zqtext", "zqreasoning", "zqresponse", "zqplan",
	"zqarguments", "zqresult", "zqtoolerror", "zqerror", "zqevidence", "zqsource", "zqreason", "zqapprover",
}
