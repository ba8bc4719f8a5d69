package agentevents

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Retention removes the beginning of a run, so the openings and the table of the missing events are
// unknown. A rule that needs them accuses nobody.
func TestRunThatBeganBeforeItsLog(t *testing.T) {
	log := foldLog(t, ev("", &RunStarted{Lifecycle: LifecycleDerived}), ev("a", &AgentStarted{}),
		ev("a", &AgentTransition{From: StatusThinking, To: StatusResponse}), ev("a", &TextDelta{BlockID: "b", Index: Some(0), Delta: "O"}),
		ev("a", &TextDelta{BlockID: "b", Index: Some(1), Delta: "ne."}), ev("a", &TextCompleted{BlockID: "b", Text: "One."}),
		ev("a", &AgentTransition{From: StatusResponse, To: StatusToolCall}), ev("a", &ToolCalled{CallID: "c", ToolID: "Read"}),
		ev("a", &ModelCalled{ModelCallID: "m"}), ev("a", &ModelReturned{ModelCallID: "m"}),
		ev("a", &ApprovalRequested{ApprovalID: "p"}), ev("a", &ApprovalGranted{ApprovalID: "p"}),
		ev("a", &ToolReturned{CallID: "c", ToolID: "Read", Status: ToolStatusOK}),
		ev("a", &AgentTransition{From: StatusToolCall, To: StatusToolResult}), ev("a", &AgentTransition{From: StatusToolResult, To: StatusConverged}),
		ev("a", &AgentEnded{Outcome: OutcomeConverged}), ev("", &RunCompleted{}))
	requireLegalTails(t, log)
	for cut := range log {
		requireSplitFolds(t, log[cut:], foldEvents(FoldOptions{}, log[cut:]))
	}

	s := foldEvents(FoldOptions{}, log[7:9])
	require.Equal(t, AgentStatus(""), s.Agents["a"].Status, "no event tells it")
	s = foldEvents(FoldOptions{}, log[7:14])
	require.Equal(t, StatusToolResult, s.Agents["a"].Status)
	require.Equal(t, 1, s.Tools["Read"].Calls)
}

// The rest of the log still counts, and so do violations that no beginning makes legal.
func TestRunThatBeganBeforeItsLogKeepsItsRules(t *testing.T) {
	at := func(n uint64, e Event) Event {
		e.Sequence, e.ID, e.RunID = n, "e"+utoa(n), "run-1"
		return e
	}
	move := func(from, to AgentStatus) Event { return ev("a", &AgentTransition{From: from, To: to}) }
	for name, c := range map[string]struct {
		log  []Event
		rule Rule
	}{
		"from another status than that of the last move": {[]Event{move(StatusResponse, StatusToolCall), move(StatusResponse, StatusReflect)}, RuleTransitionFromCurrent},
		"in no table":                              {[]Event{move(StatusFailed, StatusThinking)}, RuleTransitionLegal},
		"not in the table that a start names":      {[]Event{ev("a", &AgentStarted{Lifecycle: LifecycleRelaxed}), move(StatusThinking, StatusConverged)}, RuleTransitionLegal},
		"from another status than that of a start": {[]Event{ev("a", &AgentStarted{}), move(StatusResponse, StatusReflect)}, RuleTransitionFromCurrent},
		"a call id twice":                          {[]Event{ev("a", &ToolCalled{CallID: "c", ToolID: "t"}), ev("a", &ToolCalled{CallID: "c", ToolID: "t"})}, RuleToolCallOpen},
		"after the end of the run":                 {[]Event{ev("", &RunCompleted{}), ev("a", &ToolCalled{CallID: "c", ToolID: "t"})}, RuleTerminalLast},
		"a delta goes back":                        {[]Event{ev("a", &TextDelta{BlockID: "b", Index: Some(7), Delta: "x"}), ev("a", &TextDelta{BlockID: "b", Index: Some(9), Delta: "x"})}, RuleDeltaIndex},
		"from another event that is whole":         {[]Event{at(0, ev("", &RunStarted{})), move(StatusResponse, StatusReflect)}, RuleTransitionFromCurrent},
	} {
		for i := range c.log {
			if c.log[i].RunID == "" {
				c.log[i] = at(uint64(40+i), c.log[i])
			}
		}
		s := foldEvents(FoldOptions{}, c.log)
		var rules []Rule
		for _, v := range s.Violations {
			rules = append(rules, v.Rule)
		}
		require.Contains(t, rules, c.rule, name)
		requireSplitFolds(t, c.log, s)
	}
}

// A first event with a false sequence hides no beginning.
func TestFalseFirstSequenceIsNoMissingBeginning(t *testing.T) {
	log := foldLog(t, ev("a", &ToolCalled{CallID: "c", ToolID: "t"}), ev("a", &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK}), ev("a", &ToolCalled{CallID: "d", ToolID: "t"}))
	log = append(log, log[1])
	log[3].Sequence, log[3].ID = 2, "e-2"
	log[0].Sequence, log[1].Sequence, log[2].Sequence = 9, 0, 1
	s := foldEvents(FoldOptions{}, log)
	require.Equal(t, 2, s.ViolationCount)
	require.Equal(t, RuleSequence, s.Violations[0].Rule)
	require.Equal(t, RuleToolCallOpen, s.Violations[1].Rule)
	require.Equal(t, StatusThinking, s.Agents["a"].Status)
}
