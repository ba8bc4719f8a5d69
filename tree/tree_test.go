package tree_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/scale"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

var update = flag.Bool("update", false, "write the golden files; read the diff before you commit it")

// fold returns the snapshot of a log with one run.
func fold(t *testing.T, path string) *agentevents.RunSnapshot {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	folded, err := agentevents.FoldLog(agentevents.NewReader(f, agentevents.ReaderOptions{}), agentevents.FoldOptions{})
	require.NoError(t, err)
	runs := slices.Collect(folded.Drain())
	require.Len(t, runs, 1)
	return runs[0]
}

func draw(t *testing.T, s *agentevents.RunSnapshot, o tree.Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, tree.Write(&b, s, o))
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		golden, log string
		o           tree.Options
	}{
		{"session.txt", "session.jsonl", tree.Options{}},
		{"interrupted.txt", "interrupted.jsonl", tree.Options{Ended: true}},
		{"running.txt", "interrupted.jsonl", tree.Options{}},
		{"narrow.txt", "interrupted.jsonl", tree.Options{Width: 40, Ended: true}},
		{"workflow.txt", "workflow.jsonl", tree.Options{Ended: true}},
		{"color.txt", "session.jsonl", tree.Options{Color: true}},
	} {
		t.Run(test.golden, func(t *testing.T) {
			s := fold(t, filepath.Join("testdata", test.log))
			got := draw(t, s, test.o)
			golden := filepath.Join("testdata", test.golden)
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			// A snapshot that was written and read again draws the same.
			var again agentevents.RunSnapshot
			require.NoError(t, again.UnmarshalJSON(s.AppendJSON(nil)))
			require.Equal(t, got, draw(t, &again, test.o))
		})
	}
}

func TestRunStatus(t *testing.T) {
	for _, test := range []struct {
		status      agentevents.RunStatus
		open, ended string
	}{
		{agentevents.RunStatusPending, "pending", "! pending (interrupted)"},
		{agentevents.RunStatusRunning, "running", "! running (interrupted)"},
		{agentevents.RunStatusWaiting, "waiting", "waiting"},
		{agentevents.RunStatusPaused, "paused", "paused"},
		{agentevents.RunStatusCompleted, "✓ completed", "✓ completed"},
		{agentevents.RunStatusFailed, "✗ failed", "✗ failed"},
		{agentevents.RunStatusCancelled, "✗ cancelled", "✗ cancelled"},
	} {
		s := &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}, Status: test.status}
		require.Equal(t, "run r "+test.open+"\n0 agents · 0 tool calls\n", draw(t, s, tree.Options{}))
		require.Equal(t, "run r "+test.ended+"\n0 agents · 0 tool calls\n", draw(t, s, tree.Options{Ended: true}))
	}
}

// Nothing is said of the start of an agent that acts without one, or of a document without starts.
func TestAgentWithoutAStart(t *testing.T) {
	for word, a := range map[string]agentevents.AgentSnapshot{
		"a not started\n": {}, "a\n": {Text: "hello"}, "a · 1 tool call\n": {ToolCalls: 1}, "a · node n1\n": {NodeID: "n1"},
	} {
		s := &agentevents.RunSnapshot{Agents: map[string]*agentevents.AgentSnapshot{"a": &a}}
		require.NotContains(t, draw(t, s, tree.Options{}), "not started")
		s.Agents["b"] = &agentevents.AgentSnapshot{AgentState: agentevents.AgentState{AgentID: "b", Started: true}}
		require.Contains(t, draw(t, s, tree.Options{}), "─ "+word)
	}
}

// An id that a reader has derived is none that people know.
func TestDerivedIDs(t *testing.T) {
	s := &agentevents.RunSnapshot{
		Approvals: []agentevents.ApprovalSnapshot{{ApprovalID: dialect.DerivedID("e1", 0, 0), Granted: true}, {ApprovalID: "a1", Granted: true}},
		Issues:    []agentevents.IssueSnapshot{{Issue: "x"}},
	}
	require.Contains(t, draw(t, s, tree.Options{}), "├─ approval ✓ granted\n├─ approval a1 ✓ granted\n└─ issue ! found: x\n")
}

// A node names the agent that it delegated to, and an agent the node that named it.
func TestAgentsOfNodes(t *testing.T) {
	ref := agentevents.AgentRef{AgentID: "a"}
	s := &agentevents.RunSnapshot{
		Agents:     map[string]*agentevents.AgentSnapshot{"a": {Ref: agentevents.Some(ref)}},
		NodeStatus: map[string]agentevents.NodeStatus{"n1": agentevents.NodeStatusDone, "n2": agentevents.NodeStatusDone},
		Facts:      agentevents.Some(agentevents.FactsSnapshot{NodeAgents: map[string]agentevents.AgentRef{"n1": ref, "n2": ref}}),
	}
	text := draw(t, s, tree.Options{})
	require.Contains(t, text, "─ a · node n1\n")
	require.Contains(t, text, "─ node n1 ✓ done · agent a\n")
	require.Contains(t, text, "─ node n2 ✓ done · agent a\n")
}

// Some figures are 0 because their lines lack them.
func TestFiguresThatNobodyStates(t *testing.T) {
	zero := agentevents.Some(0.0)
	s := &agentevents.RunSnapshot{
		Workflows:   []agentevents.WorkflowSnapshot{{WorkflowID: "w", Finalized: true, TotalTokens: agentevents.Some[int64](0), TotalAgents: agentevents.Some(0)}},
		Checkpoints: []agentevents.CheckpointSnapshot{{WorkflowID: "w", Phase: "audit", StateBytes: agentevents.Some[int64](0)}},
		Budgets:     []agentevents.BudgetSnapshot{{Budget: "usd", Limit: zero, Actual: zero}, {Budget: "tokens", Limit: zero, Actual: agentevents.Some(1.0)}},
	}
	require.Contains(t, draw(t, s, tree.Options{}), "workflow w ✓ finalized\n│  └─ checkpoint audit saved\n├─ budget usd ! exceeded\n└─ budget tokens ! exceeded · 1 · limit 0\n")
}

// The cached tokens of a provider are most of the input of many runs, and not a part of
// InputTokens.
func TestCachedTokens(t *testing.T) {
	for _, test := range []struct {
		usage agentevents.Usage
		want  string
	}{
		{agentevents.Usage{InputTokens: 3, OutputTokens: 5}, "· 3 tokens in, 5 out\n"},
		{agentevents.Usage{InputTokens: 3, OutputTokens: 5, CacheReadInputTokens: agentevents.Some[int64](900), CacheCreationInputTokens: agentevents.Some[int64](40)}, "· 3 tokens in, 5 out, 940 cached\n"},
		{agentevents.Usage{TotalTokens: agentevents.Some[int64](512)}, "· 512 tokens\n"},
		{agentevents.Usage{CacheReadInputTokens: agentevents.Some[int64](900)}, "· 0 tokens in, 0 out, 900 cached\n"},
		{agentevents.Usage{CacheReadInputTokens: agentevents.Some[int64](math.MaxInt64), CacheCreationInputTokens: agentevents.Some[int64](1)}, "out, 9223372036854775807 cached\n"},
	} {
		em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
		run, err := em.Run("r")
		require.NoError(t, err)
		require.NoError(t, run.Agent("a").Emit(t.Context(), &agentevents.AgentStarted{}))
		require.NoError(t, run.Agent("a").Emit(t.Context(), &agentevents.ModelReturned{ModelCallID: "m", OneEvent: true, Usage: agentevents.Some(test.usage)}))
		require.Contains(t, draw(t, rec.Snapshot(""), tree.Options{}), test.want)
	}
}

// The counts on the line of an attempt are all its own.
func TestCountsAreOfTheirAttempt(t *testing.T) {
	em, rec := eventtest.RecordWith(t, agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleDerived})
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	for attempt := range 2 {
		require.NoError(t, a.Emit(t.Context(), &agentevents.AgentStarted{}))
		for step := range 3 - attempt {
			id := fmt.Sprint(attempt, step)
			require.NoError(t, a.Emit(t.Context(), &agentevents.ModelReturned{ModelCallID: id, OneEvent: true}))
			require.NoError(t, a.Emit(t.Context(), &agentevents.ToolReturned{CallID: id, ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true}))
		}
		if attempt == 1 {
			require.Contains(t, draw(t, rec.Snapshot(""), tree.Options{}), "a (attempt 2) tool_result · 2 steps · 2 tool calls · 2 model calls\n")
		}
		require.NoError(t, a.Emit(t.Context(), &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged}))
	}
	require.Contains(t, draw(t, rec.Snapshot(""), tree.Options{}), "a (attempt 1) ✓ converged · 12s · 3 steps · 3 tool calls · 3 model calls\n")
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct {
		by   agentevents.Kind
		want string
	}{
		{agentevents.KindToolReturned, "! unanswered when the call returned"},
		{agentevents.KindAgentEnded, "! unanswered when the agent ended"},
		{agentevents.KindAgentStarted, "! unanswered when the agent started again"},
		{agentevents.KindRunCancelled, "! unanswered when the run ended"},
	} {
		s := &agentevents.RunSnapshot{
			Approvals:      []agentevents.ApprovalSnapshot{{ApprovalID: "p", ClosedBy: test.by}},
			Clarifications: []agentevents.ClarificationSnapshot{{InterruptID: "i", ClosedBy: test.by}},
		}
		got := draw(t, s, tree.Options{})
		require.Contains(t, got, "approval p "+test.want+"\n")
		require.Contains(t, got, "clarification i "+test.want+"\n")
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		answers agentevents.JSON
		want    string
	}{
		{`{"q":"14C","r":"no"}`, "clarification i ✓ answered: Which seat? — 14C\n"},
		{`{"q":{ "seat": "14C" }}`, "clarification i ✓ answered: Which seat? — { \"seat\": \"14C\" }\n"},
		{agentevents.JSON(`{"q":"a\nb` + strings.Repeat("c", 500) + `"}`), "clarification i ✓ answered: Which seat? — a bccc"},
		{`{"q":null}`, "clarification i ✓ answered: Which seat?\n"},
		{`{"r":"no"}`, "clarification i ✓ answered: Which seat?\n"},
		{"", "clarification i ✓ answered: Which seat?\n"},
	} {
		s := &agentevents.RunSnapshot{Clarifications: []agentevents.ClarificationSnapshot{{
			InterruptID: "i", Questions: []agentevents.Question{{ID: "q", Question: "Which seat?"}},
			ClosedBy: agentevents.KindClarificationResolved, Answers: test.answers,
		}}}
		require.Contains(t, draw(t, s, tree.Options{}), test.want)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               "",
		time.Microsecond:                "<1ms",
		12 * time.Millisecond:           "12ms",
		999 * time.Millisecond:          "999ms",
		time.Second:                     "1s",
		1234 * time.Millisecond:         "1.2s",
		59949 * time.Millisecond:        "59.9s",
		59950 * time.Millisecond:        "1m00s",
		185 * time.Second:               "3m05s",
		3599*time.Second + 600e6:        "1h00m",
		2*time.Hour + 7*time.Minute:     "2h07m",
		-1500 * time.Millisecond:        "-1.5s",
		time.Duration(math.MinInt64):    "-2562047h47m",
		time.Duration(math.MaxInt64):    "2562047h47m",
		100*time.Hour + 59*time.Minute:  "100h59m",
		time.Hour - 500*time.Nanosecond: "1h00m",
	} {
		s := &agentevents.RunSnapshot{Audits: []agentevents.AuditSnapshot{{CheckpointID: "audit:x", Result: agentevents.AuditPass, Duration: d}}}
		if want != "" {
			want = " · " + want
		}
		require.Contains(t, draw(t, s, tree.Options{}), "audit:x ✓ pass"+want+"\n", "%d", d)
	}
}

// hostile is text that must not reach a terminal as it is.
const hostile = "a\x1b[2J\nb\r\x00\u009b\u202e\u2028\xff c"

func TestTextsAreVisible(t *testing.T) {
	s := everywhere(hostile)
	for _, o := range []tree.Options{{}, {Width: -1}, {Width: 10}, {Ended: true}} {
		got := draw(t, s, o)
		require.True(t, utf8.ValidString(got))
		for _, c := range []string{"\x1b", "\r", "\x00", "\u009b", "\u202e", "\u2028", "\xff"} {
			require.NotContains(t, got, c)
		}
		require.Equal(t, strings.Count(draw(t, everywhere("a"), o), "\n"), strings.Count(got, "\n"))
	}
	require.Contains(t, draw(t, s, tree.Options{Width: -1}), `a\x1b[2J\nb\r\x00\u009b\u202e\u2028`+"\ufffd c")
}

// everywhere returns a snapshot with text wherever there can be some.
func everywhere(text string) *agentevents.RunSnapshot {
	info := agentevents.Some(agentevents.ErrorInfo{Code: text, Message: text})
	return &agentevents.RunSnapshot{
		RunState: agentevents.RunState{RunID: text}, SessionID: text, Name: text, Status: agentevents.RunStatus(text), SessionGoal: text, Error: info,
		Agents: map[string]*agentevents.AgentSnapshot{
			text: {
				AgentState:    agentevents.AgentState{AgentID: text, Status: agentevents.AgentStatus(text), Started: true, Ended: true},
				ParentAgentID: text, ParentCallID: text, NodeID: text, Phase: text, Task: text, Outcome: agentevents.AgentOutcome(text), Error: info,
			},
			"b": {AgentState: agentevents.AgentState{Started: true, Open: true, Status: agentevents.AgentStatus(text)}, ParentAgentID: text, ParentCallID: text},
			"c": {ParentAgentID: text + "?", Task: text},
		},
		OpenCalls:      []*agentevents.ToolCallSnapshot{{CallID: text, ToolID: text, AgentID: text, RetryOf: text}},
		ClosedCalls:    []*agentevents.ToolCallSnapshot{{CallID: text, ToolID: text, Status: agentevents.ToolStatus(text), Error: text}},
		Workflows:      []agentevents.WorkflowSnapshot{{WorkflowID: text, ApprovedBy: text, Phases: []string{text, "p"}}},
		Phases:         []agentevents.PhaseSnapshot{{Phase: text}},
		Checkpoints:    []agentevents.CheckpointSnapshot{{Phase: text}},
		Approvals:      []agentevents.ApprovalSnapshot{{ApprovalID: text, CallID: text, AgentID: text, Action: text, Feedback: text, By: text}},
		Clarifications: []agentevents.ClarificationSnapshot{{InterruptID: text, AgentID: text, AnsweredBy: text, Questions: []agentevents.Question{{Question: text}}}},
		Handoffs:       []agentevents.HandoffSnapshot{{From: text, To: text, Reason: text}},
		Tasks:          []agentevents.TaskSnapshot{{TaskID: text, Goal: text}},
		Audits:         []agentevents.AuditSnapshot{{CheckpointID: text, Result: agentevents.AuditResult(text)}},
		Claims:         []agentevents.ClaimSnapshot{{FindingID: text, Verdict: text}},
		Issues:         []agentevents.IssueSnapshot{{Issue: text, Severity: text}},
		Turns:          []agentevents.TurnSnapshot{{Name: text, AgentID: text, Text: text}, {AgentID: "b", Error: info}},
		Steps:          []agentevents.StepSnapshot{{StepID: text, Name: text, AgentID: text, Description: text}, {StepID: text, Error: info}},
		Facts: agentevents.Some(agentevents.FactsSnapshot{
			Intents:         []agentevents.IntentSnapshot{{AgentID: text, Intent: text}},
			Plans:           []agentevents.PlanSnapshot{{AgentID: text, Strategy: text, Steps: []agentevents.PlanStep{{Description: text}}}},
			Citations:       []agentevents.CitationSnapshot{{AgentID: text, SourceURI: text, Claim: text}},
			Insufficiencies: []agentevents.InsufficiencySnapshot{{AgentID: text, Reason: text}},
		}),
		Budgets:    []agentevents.BudgetSnapshot{{Budget: text}, {Budget: text, Cap: true}},
		NodeStatus: map[string]agentevents.NodeStatus{text: agentevents.NodeStatus(text)},
	}
}

func TestWidth(t *testing.T) {
	long := strings.Repeat("é", 300)
	s := &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}, Status: agentevents.RunStatusFailed, SessionGoal: long}
	for width, want := range map[int]int{0: 100, 60: 60, 20: utf8.RuneCountInString("run r ✗ failed: ") + 24, -1: 0} {
		first, _, _ := strings.Cut(draw(t, s, tree.Options{Width: width}), "\n")
		if width == -1 {
			require.Contains(t, first, long)
			continue
		}
		require.Equal(t, want, utf8.RuneCountInString(first), first)
		require.True(t, strings.HasSuffix(first, "é…"))
	}
	s.Name = strings.Repeat("n", 300)
	first, _, _ := strings.Cut(draw(t, s, tree.Options{}), "\n")
	require.Equal(t, 50, strings.Count(first, "é")+1, "a failure gets half a line on any line")
	s.Status = agentevents.RunStatusRunning
	first, _, _ = strings.Cut(draw(t, s, tree.Options{}), "\n")
	require.Equal(t, 24, strings.Count(first, "é")+1)
}

// TestOddSnapshots draws snapshots that no fold makes but a file may hold.
func TestOddSnapshots(t *testing.T) {
	require.Error(t, tree.Write(&bytes.Buffer{}, nil, tree.Options{}))
	draw(t, &agentevents.RunSnapshot{}, tree.Options{})

	agent := func(parent string, order int) *agentevents.AgentSnapshot {
		a := ended(t, order)
		a.ParentAgentID = parent
		return a
	}
	s := &agentevents.RunSnapshot{
		RunState: agentevents.RunState{RunID: "r"},
		Agents: map[string]*agentevents.AgentSnapshot{
			"nil": nil, "self": agent("self", 0), "orphan": agent("gone", 1),
			"x": agent("y", 2), "y": agent("z", 3), "z": agent("x", 4), "below": agent("z", 5), "under-nil": agent("nil", 6),
		},
		OpenCalls:   []*agentevents.ToolCallSnapshot{nil, {CallID: "c", AgentID: "nil"}},
		ClosedCalls: []*agentevents.ToolCallSnapshot{nil, nil},
		Tools:       map[string]*agentevents.ToolStats{"x": nil},
		Violations:  []*agentevents.RuleError{nil},
	}
	require.Equal(t, `run r
├─ self ✓ ended
├─ orphan (below gone, which is not in the log) ✓ ended
├─ under-nil (below nil, which is not in the log) ✓ ended
├─ x (its parents form a circle) ✓ ended
│  └─ z ✓ ended
│     ├─ y ✓ ended
│     └─ below ✓ ended
└─ tool. open
7 agents · 0 tool calls
`, draw(t, s, tree.Options{}))
}

// FuzzWrite draws whatever can be read as a snapshot.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":"1.0","runId":"r","status":"running","nextSequence":0,"agents":{"a":null,"b":null},"tools":{"t":null},"openCalls":[null],"closedCalls":[null]}`))
	for _, text := range []string{"a", hostile} {
		f.Add(everywhere(text).AppendJSON(nil))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s agentevents.RunSnapshot
		if s.UnmarshalJSON(text) != nil {
			return
		}
		for _, o := range []tree.Options{{}, {Width: 1, Ended: true}} {
			got := draw(t, &s, o)
			require.True(t, utf8.ValidString(got))
			require.True(t, strings.HasSuffix(got, "\n"))
			require.Equal(t, got, draw(t, &s, o))
			require.Less(t, strings.IndexFunc(strings.ReplaceAll(got, "\n", ""), unicode.IsControl), 0)
		}
	})
}

// ended returns an agent that has ended, with a place among the agents of its run.
func ended(t *testing.T, order int) *agentevents.AgentSnapshot {
	t.Helper()
	var a agentevents.AgentSnapshot
	require.NoError(t, a.UnmarshalJSON(fmt.Appendf(nil, `{"started":true,"ended":true,"resume":{"order":%d}}`, order)))
	return &a
}

func TestDeepParents(t *testing.T) {
	const n = 20000
	s := &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}, Agents: map[string]*agentevents.AgentSnapshot{}}
	for i := range n {
		a := &agentevents.AgentSnapshot{AgentState: agentevents.AgentState{Started: true}, Sequence: uint64(i)}
		if i > 0 {
			a.ParentAgentID = fmt.Sprint(i - 1)
		}
		s.Agents[fmt.Sprint(i)] = a
	}
	got := draw(t, s, tree.Options{})
	require.Equal(t, n+2, strings.Count(got, "\n"))
	require.Less(t, len(got), n*200)
}

func TestModelCalls(t *testing.T) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	var details report.Details
	for i, p := range []agentevents.Payload{
		&agentevents.AgentStarted{}, &agentevents.ModelCalled{ModelCallID: "m1"}, &agentevents.ModelReturned{ModelCallID: "m1", Error: agentevents.Some(agentevents.ErrorInfo{Message: "overloaded"})},
		&agentevents.ModelCalled{ModelCallID: "m2"}, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial},
	} {
		ev := agentevents.Event{ID: fmt.Sprint("e", i), RunID: "r", AgentID: "a", Sequence: uint64(i), Time: time.Unix(int64(i), 0).UTC(), Payload: p}
		f.Apply(ev)
		details.Add(&ev)
	}
	s := f.Snapshot()
	require.Contains(t, draw(t, s, tree.Options{}), "2 model calls (1 failed), 1 open")
	require.Contains(t, draw(t, s, tree.Options{Details: &details}), "2 model calls (1 failed: overloaded), 1 open")
	s.Agents["a"].Error = agentevents.Some(agentevents.ErrorInfo{Message: "the model is overloaded"})
	require.Contains(t, draw(t, s, tree.Options{Details: &details}), "2 model calls (1 failed), 1 open: the model is overloaded", "said once")
}

func TestSpawnedByCall(t *testing.T) {
	call := func(agent, id string, seq uint64) *agentevents.ToolCallSnapshot {
		return &agentevents.ToolCallSnapshot{AgentID: agent, CallID: id, ToolID: "Task", Sequence: seq, Status: agentevents.ToolStatusOK}
	}
	child := func(parent, call string, order int) *agentevents.AgentSnapshot {
		a := ended(t, order)
		a.ParentAgentID, a.ParentCallID, a.Sequence = parent, call, uint64(order)
		return a
	}
	s := &agentevents.RunSnapshot{
		RunState: agentevents.RunState{RunID: "r"},
		Agents: map[string]*agentevents.AgentSnapshot{
			"main": child("", "", 0), "named": child("main", "c1", 2), "by-call": child("", "c2", 3),
			"dropped": child("main", "c0", 4), "of-nobody": child("", "c9", 5), "unclear": child("", "c3", 6),
		},
		ClosedCalls: []*agentevents.ToolCallSnapshot{
			call("main", "c2", 2), call("main", "c1", 1), call("", "c9", 9), call("main", "c3", 7), call("named", "c3", 8),
		},
		DroppedCalls: 1,
	}
	require.Equal(t, `run r
├─ 1 tool call not kept in the snapshot
├─ main ✓ ended
│  ├─ tool.Task ✓
│  │  └─ named ✓ ended
│  │     └─ tool.Task ✓
│  ├─ tool.Task ✓
│  │  └─ by-call ✓ ended
│  ├─ dropped ✓ ended
│  └─ tool.Task ✓
├─ unclear ✓ ended
└─ tool.Task ✓
   └─ of-nobody ✓ ended
6 agents · 0 tool calls
`, draw(t, s, tree.Options{}))
}

// TestTurns hangs the acts of an agent below its turns and steps.
func TestTurns(t *testing.T) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	n := 0
	apply := func(agent string, p agentevents.Payload, set ...func(ev *agentevents.Event)) {
		ev := agentevents.Event{ID: fmt.Sprint("e", n), RunID: "r", AgentID: agent, Sequence: uint64(n), Time: time.Unix(int64(n), 0).UTC(), Payload: p}
		for _, f := range set {
			f(&ev)
		}
		f.Apply(ev)
		n++
	}
	in := func(span string) func(ev *agentevents.Event) {
		return func(ev *agentevents.Event) { ev.SpanID = span }
	}
	call := func(agent, id string) {
		apply(agent, &agentevents.ToolReturned{CallID: id, ToolID: id, Status: agentevents.ToolStatusOK, OneEvent: true})
	}
	call("root", "early")
	apply("root", &agentevents.TurnStarted{Turn: agentevents.Some(1)}, in("1"))
	apply("root", &agentevents.IntentClassified{Intent: "research", Confidence: agentevents.Some(0.9)})
	apply("root", &agentevents.PlanProposed{Strategy: "direct", Steps: []agentevents.PlanStep{{StepID: "s1", Description: "search"}, {StepID: "s2", Description: "write"}}})
	apply("root", &agentevents.StepStarted{StepID: "s1", Description: "search"})
	apply("reader", &agentevents.AgentStarted{Task: "read"}, func(ev *agentevents.Event) { ev.ParentAgentID = "root" })
	call("reader", "fetch")
	apply("root", &agentevents.StepStarted{StepID: "s2"}) // while the first one goes on
	call("root", "write")
	apply("root", &agentevents.StepEnded{StepID: "s1"})
	apply("root", &agentevents.StepEnded{StepID: "s2", Error: agentevents.Some(agentevents.ErrorInfo{Message: "no paper"})})
	apply("root", &agentevents.CitationFound{SourceURI: "u", Claim: "c", Verified: agentevents.Some(true)})
	apply("root", &agentevents.EvidenceInsufficient{Reason: "one source"})
	apply("root", &agentevents.TurnStarted{Name: "turn.2"}, in("2"))
	apply("root", &agentevents.TurnEnded{}, in("1"))
	call("root", "second")
	apply("root", &agentevents.TurnSummarized{Text: "done"})
	apply("root", &agentevents.TurnEnded{Error: agentevents.Some(agentevents.ErrorInfo{Code: "timeout"})}, in("2"))
	call("root", "late")
	apply("", &agentevents.TurnStarted{})
	call("", "nobody")
	require.Equal(t, `run r running
├─ root ✗ failed · 4 tool calls
│  ├─ tool.early ✓
│  ├─ turn 1 ✓ completed · 13s
│  │  ├─ intent research · confidence 0.9
│  │  ├─ plan direct · 2 steps: search; write
│  │  ├─ step s1 ✓ completed · 5s: search
│  │  │  └─ reader thinking · 1 tool call: read
│  │  │     └─ tool.fetch ✓
│  │  ├─ step s2 ✗ failed · 3s: no paper
│  │  │  └─ tool.write ✓
│  │  ├─ citation u ✓ verified: c
│  │  └─ evidence ! insufficient: one source
│  ├─ turn.2 ✗ failed · 4s: timeout
│  │  └─ tool.second ✓
│  └─ tool.late ✓
└─ turn open
   └─ tool.nobody ✓
2 agents · 6 tool calls
`, draw(t, f.Snapshot(), tree.Options{}))
}

type badWriter struct{}

func (badWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteError(t *testing.T) {
	require.EqualError(t, tree.Write(badWriter{}, &agentevents.RunSnapshot{}, tree.Options{}), "full")
}

// TestWriteIsLinear draws logs of every shape with many things.
func TestWriteIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it compares times")
	}
	for _, shape := range scale.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			scale.Linear(t, 1000, func(n int) func() {
				folded, err := agentevents.FoldLog(agentevents.NewReader(bytes.NewReader(shape.Log(n)), agentevents.ReaderOptions{}),
					agentevents.FoldOptions{KeepCalls: math.MaxInt})
				require.NoError(t, err)
				runs := slices.Collect(folded.Drain())
				return func() {
					for _, s := range runs {
						require.NoError(t, tree.Write(io.Discard, s, tree.Options{}))
					}
				}
			})
		})
	}
}

// TestPassages hangs agents from the passage through their phase in which they
// started.
func TestPassages(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 5, 5, 9, 0, second, 0, time.UTC) }
	s := &agentevents.RunSnapshot{RunState: agentevents.RunState{RunID: "r"}, Agents: map[string]*agentevents.AgentSnapshot{}}
	for _, start := range []time.Time{at(10), {}, at(30), at(20)} { // a clock went back
		s.Phases = append(s.Phases, agentevents.PhaseSnapshot{Phase: "p", StartedAt: start, InputCount: agentevents.Some(len(s.Phases))})
	}
	for i, start := range []time.Time{{}, at(5), at(10), at(19), at(20), at(40)} {
		a := ended(t, i)
		a.Phase, a.StartedAt = "p", start
		s.Agents[fmt.Sprint("a", i)] = a
	}
	other := ended(t, 9)
	other.Phase = "q"
	s.Agents["other"] = other
	require.Equal(t, `run r
├─ workflow
│  ├─ phase p ✓ completed · 0 in
│  │  ├─ a0 ✓ ended
│  │  ├─ a1 ✓ ended
│  │  ├─ a2 ✓ ended
│  │  └─ a3 ✓ ended
│  ├─ phase p ✓ completed · 1 in
│  ├─ phase p ✓ completed · 2 in
│  └─ phase p ✓ completed · 3 in
│     ├─ a4 ✓ ended
│     └─ a5 ✓ ended
└─ other ✓ ended
7 agents · 0 tool calls
`, draw(t, s, tree.Options{}))
}

// An agent that only the execution of its node identifies has the name of the node.
func TestAgentsOfExecutions(t *testing.T) {
	f := agentevents.NewFold(agentevents.FoldOptions{})
	for i, scope := range []agentevents.Scope{{NodeID: "plan", NodeRunID: "f608"}, {NodeID: "build", NodeRunID: "aa-1"}, {NodeID: "build", NodeRunID: "aa-2"}} {
		f.Apply(agentevents.Event{RunID: "r", Sequence: uint64(i), Scope: scope, Payload: &agentevents.AgentStarted{}})
	}
	text := draw(t, f.Snapshot(), tree.Options{})
	require.Contains(t, text, "─ plan thinking\n")
	require.Contains(t, text, "─ build thinking · execution aa-1\n")
	require.Contains(t, text, "─ build thinking · execution aa-2\n")
	require.NotContains(t, text, "f608")
}
