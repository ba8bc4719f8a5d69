package agentevents

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// kindSamples is one realistic event of every kind. kindsFile is made from it. It is the quickest
// way to see a kind in Go; the file shows the same events on the wire.
var kindSamples = []Event{
	// Sessions and runs.
	{Payload: &SessionStarted{Goal: "Ship the health endpoint"}, Scope: Scope{SessionID: "sess-41"}},
	{Payload: &SessionCompleted{Status: "completed", Reason: "the patch is merged", Result: `{"pullRequest":812}`, Error: Some(ErrorInfo{Code: "budget", Message: "out of money"})}, Scope: Scope{SessionID: "sess-41"}},
	{Payload: &RunStarted{
		Name: "release", Inputs: `{"branch":"main"}`, Agent: Some(AgentRef{AgentID: "core.lead", ModelClass: ModelReasoning}),
		Definition: `{"nodes":["plan",{"id":"build"}],"edges":[{"id":"e1","from":"plan","to":"build"}],"state":{"open":[]}}`, Lifecycle: LifecycleRelaxed,
	}},
	{Payload: &RunPaused{Reason: "waiting for the weekend to end"}, Actor: "user"},
	{Payload: &RunResumed{Message: "go on with the tests"}, Actor: "user"},
	{Payload: &RunCompleted{Outputs: `{"version":"2.4.0"}`, Refused: 2}},
	{Payload: &RunFailed{Error: Some(ErrorInfo{Code: "build_failed", Message: "go build: exit status 1", Details: `{"package":"./api"}`, Retryable: Some(true)}), FailedNodeID: "build", Refused: 1}},
	{Payload: &RunCancelled{Reason: "superseded by run 43", Refused: 3}, Actor: "user"},

	// Agents.
	{AgentID: "coder", ParentAgentID: "core.lead", ParentCallID: "call-1", Payload: &AgentStarted{
		Agent: Some(AgentRef{AgentID: "coder", AgentSharing: SharingGroup("review"), MemoryRef: "mem:coder", ModelClass: ModelCoding}),
		Name:  "coder", Task: "Add /v2/health", Model: "claude-sonnet-4-5", ProviderSessionID: "sess-123", Prompt: `[{"role":"user","content":"Add /v2/health"}]`, Attempt: Some(2), Resumed: true,
		Lifecycle: LifecycleRelaxed,
	}},
	{AgentID: "coder", Step: Some(0), Payload: &AgentTransition{From: StatusThinking, To: StatusToolCall, Reason: "tool_call:Read"}},
	{AgentID: "coder", Payload: &AgentEnded{StatedTokens: Some[int64](4096),
		Outcome: OutcomeConverged, Status: "done", Reason: "all tests pass", Result: "Added /v2/health with a test.", StructuredOutput: `{"files":["health.go"]}`,
		Usage:        Some(Usage{InputTokens: 41250, OutputTokens: 1830, TotalTokens: Some[int64](43080), CacheReadInputTokens: Some[int64](38000)}),
		ModelUsage:   map[string]Usage{"claude-sonnet-4-5": {InputTokens: 41250, OutputTokens: 1830, CostUSD: Some(0.1512)}},
		TotalCostUSD: Some(0.1512), Cumulative: true, Duration: Some(65 * time.Second), NumTurns: Some(7),
		Totals: Some(Totals{Steps: 12, ToolCalls: 7, AuditCheckpoints: 2, AuditsPassed: 2}), ConvergenceScore: Some(1.0),
		Refused: 2, ResultSchema: `{"type":"object"}`,
	}},
	{AgentID: "coder", Step: Some(3), Payload: &AgentErrored{
		ErrorType: "rate_limit", Message: "429: try again in 20 s", Severity: SeverityWarning, RecoveryHint: "wait", Details: `{"retryAfter":20}`,
	}},
	{AgentID: "coder", Step: Some(4), Payload: &AgentSessionChanged{ProviderSessionID: "sess-124", Reason: "fork"}},
	{Payload: &EventRetracted{EventIDs: []string{"01985f3a-0000-7000-8000-000000000007"}, Reason: "the model's answer was replaced"}},
	{AgentID: "coder", Step: Some(5), Payload: &ContextCompacted{TokensBefore: Some[int64](181000), TokensAfter: Some[int64](24000), Trigger: "auto", Summary: "The router is read; the handler is next."}},
	{AgentID: "core.lead", Scope: Scope{TaskID: "task-9"}, Payload: &TaskAssigned{
		Goal: "Add /v2/health", AssignedAgent: "coder", Context: "The router is in api/router.go.", Constraints: `["no new dependencies"]`, ExpectedOutput: "a pull request",
	}},

	// Reasoning, text, decisions, messages.
	{AgentID: "coder", Step: Some(1), Payload: &AgentReasoned{BlockID: "think-1", Reasoning: "The router is small; a handler will do.", Verbosity: VerbositySummary, TokenCount: Some[int64](11)}},
	{AgentID: "coder", Step: Some(1), Payload: &AgentReasoningDelta{BlockID: "think-1", Delta: "The router ", Index: Some(0), Verbosity: VerbosityFull, TokenCount: Some[int64](3)}},
	{AgentID: "core.lead", Step: Some(2), Payload: &AgentDecided{Decision: `{"approve":true}`, Confidence: Some(0.83), Reasoning: "All tests pass."}},
	{Actor: "orchestrator", Payload: &OrchestratorDecided{Decision: `{"kind":"next-worker","nextWorkerIds":["coder"]}`, Iteration: Some(3)}},
	{AgentID: "core.lead", Step: Some(0), Payload: &IntentClassified{Intent: "feature-request", Confidence: Some(0.97), Reasoning: "It asks for a new endpoint."}},
	{AgentID: "core.lead", Step: Some(0), Payload: &PlanProposed{
		Steps:    []PlanStep{{StepID: "s1", Description: "Read the router", ToolName: "Read"}, {StepID: "s2", Description: "Add the handler"}},
		Strategy: "smallest change first",
	}},
	{AgentID: "coder", Step: Some(1), Payload: &TextDelta{BlockID: "text-1", Delta: "I'll ", Index: Some(0)}},
	{AgentID: "coder", Step: Some(1), Payload: &TextCompleted{BlockID: "text-1", Text: "I'll start by reading the router."}},
	{AgentID: "coder", Step: Some(6), Payload: &MessageCreated{Message: ConversationMessage{
		MessageID: "msg-1", From: "coder", To: "core.lead", GroupID: "review", Content: `{"text":"Done <3"}`, TS: 1777971600000,
		Role: "agent", TurnIndex: Some(0), Agent: Some(AgentRef{AgentID: "coder", AgentSharing: SharingGroup("review")}),
	}}},

	// Models.
	{AgentID: "coder", Step: Some(1), Payload: &ModelCalled{
		ModelCallID: "llm-3", Provider: "anthropic", Model: "claude-sonnet-4-5", Operation: "chat", Attempt: Some(2), RetryOf: "llm-2",
		Request: `{"messages":[{"role":"user","content":"Add /v2/health"}]}`, Attributes: `{"maxTokens":4096}`,
	}},
	{AgentID: "coder", Step: Some(1), CausationID: "01985f3a-0000-7000-8000-000000000003", Payload: &ModelReturned{
		ModelCallID: "llm-3", Provider: "anthropic", Model: "claude-sonnet-4-5-20250929", Operation: "chat", FinishReasons: []string{"tool_calls"},
		TimeToFirstToken: Some(420 * time.Millisecond), Duration: Some(2150 * time.Millisecond),
		Usage:   Some(Usage{InputTokens: 812, OutputTokens: 90, TotalTokens: Some[int64](1602), CacheReadInputTokens: Some[int64](700), ReasoningOutputTokens: Some[int64](31)}),
		CostUSD: Some(0.0038), Error: Some(ErrorInfo{Code: "overloaded", Message: "529: overloaded", Retryable: Some(true)}), RequestID: "req_011", ResponseID: "msg_01",
		Response: `{"role":"assistant"}`, OneEvent: true, Request: `{"messages":[]}`,
	}},

	// Tools.
	{AgentID: "coder", Step: Some(1), Payload: &ToolCalled{
		CallID: "call-7", ToolID: "fs:read_file", Arguments: `"api/router.go"`, ArgumentsText: true, ArgumentsSummary: "api/router.go", Attempt: Some(2), RetryOf: "call-6",
		ArgsHash: "sha256:9f2c", ApprovalID: "ap-0", Principal: "user:ada", Transport: TransportMCP, Attributes: `{"server":"fs"}`,
	}},
	{AgentID: "coder", Step: Some(1), Payload: &ToolArgumentsDelta{CallID: "call-7", Delta: `{"path":`, Index: Some(0)}},
	{AgentID: "coder", Step: Some(1), CausationID: "01985f3a-0000-7000-8000-000000000004", Payload: &ToolReturned{
		CallID: "call-7", ToolID: "fs:read_file", Status: ToolStatusError, StatusWord: "failed", Result: `"no such file"`, ResultText: true, ResultSummary: "no such file",
		Error: Some(ErrorInfo{Code: "not_found", Message: "api/router.go: no such file"}), Duration: Some(40 * time.Millisecond),
		OneEvent: true, Arguments: `"api/router.go"`, ArgumentsText: true, ArgumentsSummary: "api/router.go",
	}},

	// Handing over.
	{AgentID: "core.lead", Step: Some(2), Payload: &AgentHandoff{From: AgentRef{AgentID: "core.lead"}, To: AgentRef{AgentID: "coder"}, Reason: "code to write", Context: `{"ticket":"API-77"}`}},
	{AgentID: "core.lead", Step: Some(2), Payload: &HandoffRequested{HandoffID: "ho-1", From: AgentRef{AgentID: "core.lead"}, To: AgentRef{AgentID: "reviewer"}, Reason: "review", ContextDigest: "sha256:77ab"}},
	{AgentID: "reviewer", Step: Some(0), Payload: &HandoffAccepted{HandoffID: "ho-1", From: AgentRef{AgentID: "core.lead"}, To: AgentRef{AgentID: "reviewer"}, Reason: "free", ContextDigest: "sha256:77ab"}},

	// Structure.
	{AgentID: "coder", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Payload: &TurnStarted{Turn: Some(1), Name: "turn 1", Attributes: `{"channel":"cli"}`}},
	{AgentID: "coder", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Payload: &TurnEnded{Turn: Some(1), Name: "turn 1", Duration: Some(8250 * time.Millisecond), Error: Some(ErrorInfo{Message: "no answer"}), Attributes: `{"tokens":812}`}},
	{AgentID: "coder", Payload: &TurnSummarized{
		Text: "Added the endpoint.", Intent: "feature-request", Usage: Usage{InputTokens: 4100, OutputTokens: 180}, CostUSD: Some(0.02),
		ToolCalls: []ToolCallSummary{{ToolName: "Read", CallID: "call-7", IsError: true, Duration: Some(40 * time.Millisecond), CostUSD: Some(0.0), InputTokens: Some[int64](12), OutputTokens: Some[int64](0)}},
	}},
	{AgentID: "coder", SpanID: "00f067aa0ba902b8", ParentSpanID: "00f067aa0ba902b7", Payload: &StepStarted{StepID: "s1", Name: "read", Description: "Read the router", Attributes: `{"planned":true}`}},
	{AgentID: "coder", SpanID: "00f067aa0ba902b8", ParentSpanID: "00f067aa0ba902b7", Payload: &StepEnded{StepID: "s1", Name: "read", Duration: Some(900 * time.Millisecond), ResultSummary: "212 lines", Error: Some(ErrorInfo{Message: "truncated"}), Attributes: `{"lines":212}`}},
	{AgentID: "coder", SpanID: "00f067aa0ba902b9", Payload: &SpanRecorded{Subject: "judge", Phase: "error", Name: "judge.s1", Duration: Some(1500 * time.Microsecond), ErrorType: "timeout", ErrorMessage: "no verdict in 30 s", Attributes: `{"step_id":"s1"}`}},
	{Scope: Scope{NodeID: "build", NodeRunID: "build#1"}, Payload: &NodeStarted{Agent: Some(AgentRef{AgentID: "coder"}), TypeID: "core.agent", Attempt: Some(0)}},
	{Scope: Scope{NodeID: "build", NodeRunID: "build#1"}, Payload: &NodeCompleted{Outputs: `{"ok":true}`, Agent: Some(AgentRef{AgentID: "coder"}), Duration: Some(61 * time.Second)}},
	{Scope: Scope{NodeID: "build", NodeRunID: "build#1"}, Payload: &NodeFailed{Error: ErrorInfo{Code: "exit", Message: "exit status 1"}}},
	{Scope: Scope{NodeID: "deploy"}, Payload: &NodeSkipped{Reason: "edge"}},
	{Scope: Scope{NodeID: "review", NodeRunID: "review#1"}, Payload: &NodeSuspended{Reason: "low-confidence", Details: `{"threshold":0.7,"observed":0.4}`}},
	{Payload: &EdgeFired{EdgeID: "e1", From: "plan", To: "build"}},
	{Payload: &EdgeSkipped{EdgeID: "e2", From: "build", To: "deploy"}},
	{Payload: &LoopIterated{EdgeID: "e3", Iteration: 2}},
	{Payload: &LoopRoundCompleted{Round: 2, Score: Some(0.71), Feedback: "The test is missing.", Diff: "+ func TestHealth", CostUSD: Some(0.04)}},
	{Payload: &StatePatched{Op: PatchMerge, Path: "tasks.open", Value: `{"API-77":"in review"}`}},

	// Workflows.
	{Scope: Scope{WorkflowID: "wf-1"}, Payload: &WorkflowCreated{Script: "await phase('scout')", Phases: []string{"scout", "build"}, EstimatedTokens: Some[int64](250000)}},
	{Scope: Scope{WorkflowID: "wf-1"}, Payload: &WorkflowApproved{ApprovedAt: rulesEpoch, ApprovedBy: "user:ada"}},
	{Scope: Scope{WorkflowID: "wf-1", Phase: "scout"}, Payload: &PhaseStarted{InputCount: Some(14)}},
	{Scope: Scope{WorkflowID: "wf-1", Phase: "scout"}, Payload: &PhaseCompleted{OutputCount: Some(5), Tokens: Some[int64](61000)}},
	{Scope: Scope{WorkflowID: "wf-1", Phase: "scout"}, Payload: &CheckpointSaved{StateBytes: 18211}},
	{Scope: Scope{WorkflowID: "wf-1", Phase: "scout"}, Payload: &CheckpointResumed{ResumedAt: rulesEpoch.Add(time.Hour)}},
	{Scope: Scope{WorkflowID: "wf-1"}, Payload: &WorkflowFinalized{TotalTokens: 240100, TotalAgents: 9, Duration: 22 * time.Minute}},

	// People.
	{AgentID: "coder", Payload: &ApprovalRequested{
		ApprovalID: "ap-1", Action: "git push", Reason: "it leaves the machine", Scope: "branch health", Risk: "low", CallID: "call-8", ToolID: "Bash", Arguments: `{"command":"git push"}`, ArgumentsHash: "sha256:30b695dacdb9995167363f05ec1090c63a1940c95fb222a845c2eb6b135b15cf", Timeout: Some(10 * time.Minute),
	}},
	{Actor: "user:ada", Payload: &ApprovalGranted{ApprovalID: "ap-1", ApprovedBy: "user:ada", Feedback: "Go ahead.", Answer: "edit-accept"}},
	{Actor: "user:ada", Payload: &ApprovalRejected{ApprovalID: "ap-1", RejectedBy: "user:ada", Feedback: "Not on a Friday.", Answer: "refine"}},
	{AgentID: "coder", Payload: &ClarificationRequested{InterruptID: "int-1", CallID: "call-1", Questions: []Question{{ID: "q1", Question: "Which port?", Schema: `{"type":"integer"}`}}}},
	{Actor: "user:ada", Payload: &ClarificationResolved{InterruptID: "int-1", Answers: `{"q1":8080}`, AnsweredBy: "user:ada"}},
	{Actor: "user:ada", Payload: &CommandReceived{
		Command:  Command{Type: CommandReply, RunID: "build#1", Message: "use 8080", PromptID: "pr-1", Content: "8080", Resumable: Some(false), Reason: "asked"},
		Rejected: "no such prompt",
	}},
	{Payload: &CommandConsumed{EventID: "01985f3a-0000-7000-8000-000000000009"}},

	// Assurance.
	{AgentID: "coder", Payload: &AuditChecked{CheckpointID: "audit:test-coverage.unit", Result: AuditPass, Duration: 2300 * time.Millisecond, Evidence: `{"coverage":0.91}`}},
	{Payload: &ClaimVerified{FindingID: "finding-3", VerifierAgentID: "verifier", Verdict: "accepted", Evidence: `["health.go:14"]`}},
	{AgentID: "verifier", Payload: &IssueFound{Issue: "The handler ignores HEAD.", Severity: "minor", Evidence: `{"line":14}`, SuggestedFix: "Use http.MethodHead."}},
	{AgentID: "coder", Step: Some(7), Payload: &CitationFound{Claim: "HEAD must be answered", SourceURI: "https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2", Confidence: Some(0.99), Verified: Some(true)}},
	{AgentID: "coder", Step: Some(7), Payload: &EvidenceInsufficient{Reason: "no load test", WhatWouldResolve: "a run with 1000 requests"}},

	// Resources and memory.
	{AgentID: "coder", Payload: &UsageObserved{
		ModelCallID: "llm-3", Model: "claude-sonnet-4-5", Usage: Usage{InputTokens: 812, OutputTokens: 90, CacheCreationInputTokens: Some[int64](0)},
		CostUSD: Some(0.0038), Source: "provider", Cumulative: true, Partial: true,
	}},
	{Payload: &BudgetExceeded{Budget: "cost", Limit: 5, Actual: 5.02, Reason: "three agents at once"}},
	{Payload: &CapBreached{Cap: "confidence-escalation-suppressed", Limit: Some(0.7), Observed: Some(0.4)}},
	{AgentID: "scout", Payload: &BlackboardItemCreated{ItemID: "item-1", ItemType: "fact", Content: `"the router is in api/router.go"`, SourceAgent: "scout", Confidence: Some(0.95), TTL: Some(time.Hour)}},
	{AgentID: "coder", Payload: &MemoryChanged{Change: MemorySummarized, Section: "conversation", ItemCount: Some(42), Attributes: `{"ratio":0.2}`}},

	// A kind of somebody else.
	{Payload: &Unknown{Type: "vendor.acme.pinged", Raw: `{"rtt":1.50,"ids":[9007199254740993]}`}},
}

// sampleEvents returns the samples with id, number and time. These come from the
// name of the kind, so that another sample does not change them.
func sampleEvents() []Event {
	var out []Event
	for _, e := range kindSamples {
		h := fnv.New32a()
		h.Write([]byte(e.Kind()))
		n := h.Sum32()
		e.ID = fmt.Sprintf("01985f3a-0000-7000-8000-%012x", n)
		e.Sequence, e.Time, e.RunID, e.SchemaVersion = uint64(n%1000), rulesEpoch.Add(time.Duration(n%86_400_000)*time.Millisecond), "run-42", SchemaVersion
		out = append(out, e)
	}
	return out
}

// kindsFile holds a line of every kind, in the order of kindSamples.
const kindsFile = "testdata/kinds.jsonl"

// kindLines returns the lines of kindsFile, each with its newline.
func kindLines(t testing.TB) []string {
	t.Helper()
	log, err := os.ReadFile(kindsFile)
	require.NoError(t, err, "run go test . -run TestKindGolden -update")
	return slices.Collect(strings.Lines(string(log)))
}

func TestKindGolden(t *testing.T) {
	samples := sampleEvents()
	if *update {
		var log []byte
		for _, e := range samples {
			line, err := e.AppendJSON(nil)
			require.NoError(t, err)
			log = append(append(log, line...), '\n')
		}
		require.NoError(t, os.WriteFile(kindsFile, log, 0o644))
	}
	lines := kindLines(t)
	require.Len(t, lines, len(samples), "run go test . -run TestKindGolden -update")
	seen := map[Kind]bool{}
	for i, e := range samples {
		t.Run(string(e.Kind()), func(t *testing.T) {
			require.False(t, seen[e.Kind()], "two samples of one kind")
			seen[e.Kind()] = true
			require.Nil(t, e.check(ops(e.Payload), false), "a sample passes its checks")
			golden := lines[i]
			want, err := e.AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, string(want)+"\n", golden, "if it is meant, run go test . -run TestKindGolden -update")

			var back Event
			require.NoError(t, json.Unmarshal([]byte(golden), &back))
			require.Equal(t, e, back)
			again, err := back.AppendJSON(nil)
			require.NoError(t, err)
			require.Equal(t, golden, string(again)+"\n")

			// A sample that leaves a field out documents less than it could.
			if _, unknown := e.Payload.(*Unknown); !unknown {
				members := membersOf(t, payloadText(ops(e.Payload)))
				for _, f := range wireFields(e.Payload) {
					if e.Kind() == KindAgentEnded && f.name == "error" {
						continue // a converged agent has none
					}
					require.Less(t, len(withoutMember(members, f.name)), len(members), "the sample has no %s", f.name)
				}
			}

			f := NewFold(FoldOptions{})
			f.Apply(back)
			text, err := json.Marshal(f.Snapshot())
			require.NoError(t, err)
			require.True(t, json.Valid(text))
		})
	}
	for info := range Kinds() {
		require.True(t, seen[info.Kind], "no sample of %s", info.Kind)
	}
	require.Len(t, seen, len(catalog)+1)
}

// One fold takes all samples, one after the other: it must bear any order of
// events.
func TestKindSamplesFoldTogether(t *testing.T) {
	f := NewFold(FoldOptions{Lifecycle: LifecycleRelaxed})
	events := sampleEvents()
	for i, e := range events {
		e.Sequence = uint64(i)
		f.Apply(e)
	}
	s := f.Snapshot()
	require.Equal(t, uint64(len(events)), s.NextSequence)
	require.Equal(t, map[string]int{"vendor.acme.pinged": 1}, s.Unknown)
	for _, v := range s.Violations {
		require.NotEqual(t, RulePayload, v.Rule, "the fold handles every kind")
	}
}

// packageSource parses the package's own files without tests.
func packageSource(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_gen.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

// typeDocs returns the doc comment of every type of the package.
func typeDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	for _, f := range packageSource(t) {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				ts := spec.(*ast.TypeSpec)
				doc := gen.Doc.Text()
				if ts.Doc != nil {
					doc = ts.Doc.Text()
				}
				docs[ts.Name.Name] = doc
			}
		}
	}
	return docs
}

func structName(k Kind) string { return reflect.TypeOf(NewPayload(k)).Elem().Name() }

// The generator and the dialects' tests check the Mirrors paragraphs.
func TestPayloadDocs(t *testing.T) {
	docs := typeDocs(t)
	for info := range Kinds() {
		name := structName(info.Kind)
		require.True(t, strings.HasPrefix(docs[name], name+" "), "the doc comment of %s begins with its name", name)
	}
}

// The doc comment of Payload is the list of the union that readers see.
func TestPayloadDocListsEveryStruct(t *testing.T) {
	doc := typeDocs(t)["Payload"]
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`\[(\w+)\]`).FindAllStringSubmatch(doc, -1) {
		listed[m[1]] = true
	}
	for info := range Kinds() {
		require.True(t, listed[structName(info.Kind)], "the doc comment of Payload does not list %s", structName(info.Kind))
		delete(listed, structName(info.Kind))
	}
	require.Equal(t, map[string]bool{"Unknown": true, "Event": true}, listed)
}

// Tags drive the codec, the checks and redaction: a field without one would be
// lost or masked.
func TestEveryFieldIsTagged(t *testing.T) {
	classes := []string{"id", "meta", "content", "secret"}
	lower := regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			visit(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		if v, ok := typ.FieldByName("V"); ok && typ.NumField() == 2 && strings.HasPrefix(typ.Name(), "Opt[") {
			visit(v.Type)
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				require.Equal(t, "extra", f.Name, typ.Name())
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.Regexp(t, lower, name, "%s.%s has no lower-case wire name", typ.Name(), f.Name)
			require.Contains(t, classes, f.Tag.Get("class"), "%s.%s has no class", typ.Name(), f.Name)
			if optional := strings.HasPrefix(f.Type.Name(), "Opt["); optional {
				require.Contains(t, f.Tag.Get("json"), ",omitzero", "%s.%s is optional", typ.Name(), f.Name)
			}
			visit(f.Type)
		}
	}
	for info := range Kinds() {
		visit(reflect.TypeOf(NewPayload(info.Kind)).Elem())
	}
	require.Greater(t, len(seen), len(catalog))

	// Every exported field of a payload has a comment.
	for _, file := range packageSource(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok || !slices.ContainsFunc(st.Fields.List, func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "class:") }) {
				return false
			}
			for i, f := range st.Fields.List {
				if len(f.Names) == 0 || !f.Names[0].IsExported() {
					continue
				}
				// One comment may head a group of fields.
				documented := f.Doc.Text() != "" || f.Comment.Text() != "" || i > 0 && st.Fields.List[i-1].Doc.Text() != ""
				require.True(t, documented, "%s.%s has no comment", ts.Name.Name, f.Names[0].Name)
			}
			return false
		})
	}
}

func TestKindsAreInTheCatalogOnce(t *testing.T) {
	seen := map[Kind]bool{}
	for info := range Kinds() {
		require.False(t, seen[info.Kind], info.Kind)
		seen[info.Kind] = true
		got, ok := info.Kind.Info()
		require.True(t, ok)
		require.Equal(t, info, got)
		require.NotEmpty(t, info.Subject)
		require.Contains(t, []string{"point", "opens", "delta", "closes"}, info.Role.String())
		require.Equal(t, info.Role == RoleDelta, info.Droppable, "%s: deltas, and nothing else, may be dropped", info.Kind)
		for _, r := range string(info.Kind) {
			require.True(t, unicode.IsLetter(r) || r == '.', info.Kind)
		}
	}
	require.Len(t, seen, len(catalog))
	for range Kinds() {
		break // an iterator must bear being left
	}
	info, ok := Kind("vendor.thing").Info()
	require.False(t, ok)
	require.Equal(t, KindInfo{Kind: "vendor.thing"}, info)
	require.Equal(t, &Unknown{Type: "vendor.thing"}, NewPayload("vendor.thing"))
}

// The examples of the source documents, as native events. The examples of a document must be legal
// here.

// Seed 000: "A coder agent that converges". It shows four lines of a longer
// run: the end counts 12 steps and 7 calls, of which the log has one.
func TestSeed000Example(t *testing.T) {
	ctx := context.Background()
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	at := func(clock string) func(*Event) {
		return func(e *Event) {
			var err error
			e.Time, err = time.Parse(time.RFC3339, "2026-05-05T"+clock+"Z")
			require.NoError(t, err)
		}
	}
	for _, e := range []Event{
		ev("coder", &AgentStarted{Task: "Add /v2/health"}, at("09:00:00.000")),
		ev("coder", &AgentTransition{From: StatusThinking, To: StatusToolCall, Reason: "tool_call:Read"}, atStep(0), at("09:00:01.200")),
		ev("coder", &ToolReturned{CallID: "derived-1", ToolID: "Read", Status: ToolStatusOK, Duration: Some(40 * time.Millisecond), OneEvent: true}, atStep(0), at("09:00:01.250")),
		ev("coder", &AgentEnded{
			Outcome: OutcomeConverged, Duration: Some(65 * time.Second), ConvergenceScore: Some(1.0),
			Totals: Some(Totals{Steps: 12, ToolCalls: 7, AuditCheckpoints: 2, AuditsPassed: 2, AuditsFailed: 0}),
		}, at("09:01:05.000")),
	} {
		require.NoError(t, errOf(run.Record(ctx, e)))
	}
	s := foldEvents(FoldOptions{}, log.events)
	require.Empty(t, s.Violations)
	requireSplitFolds(t, log.events, s)

	coder := s.Agents["coder"]
	require.Equal(t, RunStatusCompleted, s.Status)
	require.Equal(t, OutcomeConverged, coder.Outcome)
	require.Equal(t, StatusToolCall, coder.Status, "the log leaves out how it went on")
	require.Equal(t, 12, coder.Totals.V.Steps)
	require.Equal(t, Totals{Steps: 1, ToolCalls: 1}, coder.Counted)
	require.Equal(t, Some(65*time.Second), coder.Duration)
	require.Equal(t, rulesEpoch.Add(1210*time.Millisecond), s.ClosedCalls[0].StartedAt)
	require.Equal(t, rulesEpoch, s.StartedAt)
	require.Equal(t, rulesEpoch.Add(65*time.Second), s.CompletedAt)
}

// Seed 003, section 3.2: a node's agent that streams. Its document has no
// agent ids: the agent is the execution of the node.
func TestSeed003Flow(t *testing.T) {
	ctx := context.Background()
	run, log := ruleRun(t, LifecycleStrict, ModeEnforce)
	taskAgent := run.With(Scope{NodeID: "task-agent", NodeRunID: "task-agent#1"})
	tool := func(id, name string) *ToolReturned {
		return &ToolReturned{CallID: id, ToolID: name, Status: ToolStatusOK, OneEvent: true, Arguments: `{"path":"a.go"}`, Result: `{"ok":true}`, Duration: Some(time.Millisecond)}
	}
	for _, p := range []Payload{
		&AgentStarted{ProviderSessionID: "sess-123", Prompt: `"..."`},
		&AgentReasoningDelta{Delta: "Let me "},
		&AgentReasoningDelta{Delta: "analyze..."},
		&TextDelta{Delta: "I'll "},
		&TextDelta{Delta: "start by..."},
		tool("derived-5", "read_file"),
		tool("derived-6", "write_file"),
		&TextDelta{Delta: "Done! "},
		&TextDelta{Delta: "I've updated..."},
		&AgentEnded{Result: "...", Usage: Some(Usage{InputTokens: 150, OutputTokens: 200}), Duration: Some(4523 * time.Millisecond)},
	} {
		require.NoError(t, taskAgent.Emit(ctx, p))
	}
	s := foldEvents(FoldOptions{}, log.events)
	require.Empty(t, s.Violations)
	requireSplitFolds(t, log.events, s)

	require.Equal(t, map[string]string{"task-agent": "sess-123"}, s.AgentSessions, "the state that the resume spec resumes from")
	require.Len(t, s.Agents, 1)
	a := s.Agents["task-agent#1"]
	require.Equal(t, "Let me analyze...", a.Reasoning, "deltas alone: the fold puts them together")
	require.Contains(t, a.Text, "Done! I've updated...")
	require.Equal(t, "...", a.Result)
	require.Equal(t, 2, a.ToolCalls)
	require.Equal(t, []string{"read_file", "write_file"}, []string{s.ClosedCalls[0].ToolID, s.ClosedCalls[1].ToolID})
	require.Equal(t, Usage{InputTokens: 150, OutputTokens: 200}, s.Usage.Usage)
	require.Equal(t, RunStatusCompleted, s.Status)
}
