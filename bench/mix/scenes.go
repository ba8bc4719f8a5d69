package mix

import (
	"time"

	ae "github.com/agentevents/agentevents"
)

// scenes are the rare events of a run. Together with the cycles they have every kind of
// the catalog. A scene plays while agent i is thinking, and leaves nothing open. Audits
// and usage come more often than the rest.
var scenes = []func(s *script, i int){
	audit, usage,
	func(s *script, i int) { // a pause
		s.emit(&ae.RunPaused{Reason: "waiting for the weekend to end"})
		s.emit(&ae.RunResumed{Message: "go on with the tests"})
	},
	func(s *script, i int) { // a rate limit
		s.by(i, &ae.AgentErrored{
			ErrorType: "rate_limit", Message: "429: try again in 20 s",
			Severity: ae.SeverityWarning, RecoveryHint: "wait", Details: `{"retryAfter":20}`,
		})
		s.by(i, &ae.AgentSessionChanged{ProviderSessionID: "sess-124", Reason: "fork"})
	},
	audit, usage,
	func(s *script, i int) { // a full context
		s.by(i, &ae.ContextCompacted{
			TokensBefore: ae.Some[int64](181000), TokensAfter: ae.Some[int64](24000), Trigger: "auto",
		})
		s.by(i, &ae.MemoryChanged{
			Change: ae.MemorySummarized, Section: "conversation", ItemCount: ae.Some(42), Attributes: `{"ratio":0.2}`,
		})
		s.emit(&ae.EventRetracted{EventIDs: []string{"01985f3a-0000-7000-8000-000000000007"},
			Reason: "the model's answer was replaced"})
	},
	func(s *script, i int) { // a task and a plan
		s.by(i, &ae.TaskAssigned{
			Goal: "Add /v2/health", AssignedAgent: roles[i],
			Context: "The router is in api/router.go.", Constraints: `["no new dependencies"]`,
		})
		s.by(i, &ae.IntentClassified{
			Intent: "feature-request", Confidence: ae.Some(0.97), Reasoning: "It asks for a new endpoint.",
		})
		s.by(i, &ae.PlanProposed{
			Steps: []ae.PlanStep{{StepID: "s1", Description: "Read the router", ToolName: "Read"},
				{StepID: "s2", Description: "Add the handler"}}, Strategy: "smallest change first",
		})
	},
	audit, usage,
	func(s *script, i int) { // thinking aloud
		block := s.g.id()
		for n := range 3 {
			s.by(i, &ae.AgentReasoningDelta{
				BlockID: block, Delta: "The router is small; ", Index: ae.Some(n), TokenCount: ae.Some[int64](5),
			})
		}
		s.by(i, &ae.AgentReasoned{
			BlockID: block, Reasoning: "The router is small; The router is small; The router is small; ",
			TokenCount: ae.Some[int64](15),
		})
		s.by(i, &ae.AgentDecided{Decision: `{"approve":true}`, Confidence: ae.Some(0.83), Reasoning: "All tests pass."})
		s.emit(&ae.OrchestratorDecided{Decision: `{"kind":"next-worker","nextWorkerIds":["coder"]}`, Iteration: ae.Some(3)})
	},
	func(s *script, i int) { // a message
		s.by(i, &ae.MessageCreated{
			Message: ae.ConversationMessage{To: "planner", Content: `{"text":"Done <3"}`, Role: "agent", TurnIndex: ae.Some(0)},
		})
	},
	audit, usage,
	func(s *script, i int) { // streamed arguments
		id := s.g.id()
		s.by(i, &ae.ToolArgumentsDelta{CallID: id, Delta: `{"path":`, Index: ae.Some(0)})
		s.by(i, &ae.ToolArgumentsDelta{CallID: id, Delta: `"api/router.go"}`, Index: ae.Some(1)})
		s.by(i, &ae.ToolCalled{CallID: id, ToolID: "Read", Arguments: `{"path":"api/router.go"}`})
		s.by(i, &ae.ToolReturned{
			CallID: id, ToolID: "Read", Status: ae.ToolStatusOK, Result: `{"lines":212}`, Duration: ae.Some(s.g.duration()),
		})
	},
	func(s *script, i int) { // handing over
		s.by(i, &ae.AgentHandoff{
			From: ae.AgentRef{AgentID: roles[i]}, To: ae.AgentRef{AgentID: "coder"},
			Reason: "code to write", Context: `{"ticket":"API-77"}`,
		})
		id := s.g.id()
		s.by(i, &ae.HandoffRequested{
			HandoffID: id, From: ae.AgentRef{AgentID: roles[i]}, To: ae.AgentRef{AgentID: "reviewer"}, Reason: "review",
		})
		s.by(2, &ae.HandoffAccepted{
			HandoffID: id, From: ae.AgentRef{AgentID: roles[i]}, To: ae.AgentRef{AgentID: "reviewer"},
		})
	},
	audit, usage,
	func(s *script, i int) { // a turn and a step, as spans
		span := ae.Event{AgentID: roles[i], TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7"}
		turn := func(p ae.Payload) { ev := span; ev.Payload = p; s.record(ev) }
		turn(&ae.TurnStarted{Turn: ae.Some(s.turns[i]), Name: "turn"})
		turn(&ae.StepStarted{StepID: "s1", Name: "read", Description: "Read the router"})
		turn(&ae.ModelCalled{ModelCallID: "llm-1", Provider: "anthropic", Model: "claude-sonnet-4-5", Operation: "chat"})
		turn(&ae.ModelReturned{
			ModelCallID: "llm-1", Model: "claude-sonnet-4-5", FinishReasons: []string{"stop"},
			Duration: ae.Some(1500 * time.Millisecond), Usage: ae.Some(ae.Usage{InputTokens: 812, OutputTokens: 90}),
		})
		turn(&ae.SpanRecorded{
			Subject: "judge", Phase: "complete", Name: "judge.s1",
			Duration: ae.Some(1500 * time.Microsecond), Attributes: `{"step_id":"s1"}`,
		})
		turn(&ae.StepEnded{StepID: "s1", Name: "read", Duration: ae.Some(900 * time.Millisecond), ResultSummary: "212 lines"})
		turn(&ae.TurnEnded{Turn: ae.Some(s.turns[i]), Name: "turn", Duration: ae.Some(8250 * time.Millisecond)})
		turn(&ae.TurnSummarized{
			Text: "Added the endpoint.", Intent: "feature-request", Usage: ae.Usage{InputTokens: 4100, OutputTokens: 180},
		})
	},
	func(s *script, i int) { // nodes and edges
		node := func(id string, p ae.Payload) {
			s.record(ae.Event{Scope: ae.Scope{NodeID: id, NodeRunID: id + "#1"}, Payload: p})
		}
		node("plan", &ae.NodeStarted{TypeID: "core.agent"})
		node("plan", &ae.NodeCompleted{Outputs: `{"ok":true}`, Duration: ae.Some(61 * time.Second)})
		s.emit(&ae.EdgeFired{EdgeID: "e1", From: "plan", To: "build"})
		node("build", &ae.NodeStarted{TypeID: "core.agent"})
		node("build", &ae.NodeSuspended{Reason: "low-confidence", Details: `{"threshold":0.7,"observed":0.4}`})
		node("build", &ae.NodeFailed{Error: ae.ErrorInfo{Code: "exit", Message: "exit status 1"}})
		s.emit(&ae.EdgeSkipped{EdgeID: "e2", From: "build", To: "deploy"})
		node("deploy", &ae.NodeSkipped{Reason: "edge"})
	},
	audit, usage,
	func(s *script, i int) { // a loop
		s.emit(&ae.LoopIterated{EdgeID: "e1", Iteration: s.cycles})
		s.emit(&ae.LoopRoundCompleted{Round: s.cycles, Score: ae.Some(0.71), Feedback: "The test is missing."})
		s.emit(&ae.StatePatched{Op: ae.PatchMerge, Path: "tasks.open", Value: `{"API-77":"in review"}`})
	},
	func(s *script, i int) { // a workflow
		flow := func(phase string, p ae.Payload) {
			s.record(ae.Event{Scope: ae.Scope{WorkflowID: "wf-1", Phase: phase}, Payload: p})
		}
		flow("", &ae.WorkflowCreated{
			Script: "await phase('scout')", Phases: []string{"scout", "build"}, EstimatedTokens: ae.Some[int64](250000),
		})
		flow("", &ae.WorkflowApproved{ApprovedAt: s.g.now, ApprovedBy: "user:ada"})
		flow("scout", &ae.PhaseStarted{InputCount: ae.Some(14)})
		flow("scout", &ae.CheckpointSaved{StateBytes: 18211})
		flow("scout", &ae.CheckpointResumed{ResumedAt: s.g.now})
		flow("scout", &ae.PhaseCompleted{OutputCount: ae.Some(5), Tokens: ae.Some[int64](61000)})
		flow("", &ae.WorkflowFinalized{TotalTokens: 240100, TotalAgents: 9, Duration: 22 * time.Minute})
	},
	audit, usage,
	func(s *script, i int) { // asking people
		id := s.g.id()
		s.by(i, &ae.ApprovalRequested{
			ApprovalID: id, Action: "git push", Reason: "it leaves the machine",
			Risk: "low", ToolID: "Bash", Arguments: `{"command":"git push"}`,
		})
		s.emit(&ae.ApprovalGranted{ApprovalID: id, ApprovedBy: "user:ada", Feedback: "Go ahead."})
		id = s.g.id()
		s.by(i, &ae.ApprovalRequested{ApprovalID: id, Action: "deploy", Risk: "high"})
		s.emit(&ae.ApprovalRejected{ApprovalID: id, RejectedBy: "user:ada", Feedback: "Not on a Friday."})
	},
	func(s *script, i int) { // a question
		s.move(i, ae.StatusThinking, ae.StatusBlockedOnClarification, "clarification")
		id := s.g.id()
		s.by(i, &ae.ClarificationRequested{InterruptID: id,
			Questions: []ae.Question{{ID: "q1", Question: "Which port?", Schema: `{"type":"integer"}`}}})
		s.emit(&ae.ClarificationResolved{InterruptID: id, Answers: `{"q1":8080}`, AnsweredBy: "user:ada"})
		s.move(i, ae.StatusBlockedOnClarification, ae.StatusThinking, "answered")
	},
	audit, usage,
	func(s *script, i int) { // a command
		id := s.g.id()
		s.record(ae.Event{
			ID: id, Actor: "user:ada",
			Payload: &ae.CommandReceived{Command: ae.Command{Type: ae.CommandSend, Message: "use 8080"}},
		})
		s.emit(&ae.CommandConsumed{EventID: id})
	},
	func(s *script, i int) { // a review
		s.by(i, &ae.ClaimVerified{
			FindingID: "finding-3", VerifierAgentID: "reviewer", Verdict: "accepted", Evidence: `["health.go:14"]`,
		})
		s.by(i, &ae.IssueFound{
			Issue: "The handler ignores HEAD.", Severity: "minor", Evidence: `{"line":14}`, SuggestedFix: "Use http.MethodHead.",
		})
		s.by(i, &ae.CitationFound{
			Claim: "HEAD must be answered", SourceURI: "https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2",
			Confidence: ae.Some(0.99), Verified: ae.Some(true),
		})
		s.by(i, &ae.EvidenceInsufficient{Reason: "no load test", WhatWouldResolve: "a run with 1000 requests"})
	},
	audit, usage,
	func(s *script, i int) { // limits, and shared notes
		s.emit(&ae.BudgetExceeded{Budget: "cost", Limit: 5, Actual: 5.02, Reason: "four agents at once"})
		s.emit(&ae.CapBreached{Cap: "confidence-escalation-suppressed", Limit: ae.Some(0.7), Observed: ae.Some(0.4)})
		s.by(i, &ae.BlackboardItemCreated{
			ItemID: "item-1", ItemType: "fact", Content: `"the router is in api/router.go"`,
			SourceAgent: roles[i], Confidence: ae.Some(0.95),
		})
	},
	func(s *script, i int) { // a kind of another vendor
		s.emit(&ae.Unknown{Type: "vendor.acme.pinged", Raw: `{"rtt":1.50,"ids":[9007199254740993]}`})
	},
}

func audit(s *script, i int) {
	s.by(i, &ae.AuditChecked{
		CheckpointID: "audit:test-coverage.unit", Result: ae.AuditPass,
		Duration: 2300 * time.Millisecond, Evidence: `{"coverage":0.91}`,
	})
}

func usage(s *script, i int) {
	s.by(i, &ae.UsageObserved{
		Model: "claude-sonnet-4-5", Usage: ae.Usage{
			InputTokens: 812, OutputTokens: 90, CacheReadInputTokens: ae.Some[int64](700),
		}, CostUSD: ae.Some(0.0038), Source: "provider",
	})
}
