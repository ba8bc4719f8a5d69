package agentevents

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The snapshot of an agent with very many attempts does not grow with them, and no figure is lost.
func TestAttemptsAreBounded(t *testing.T) {
	size := func(attempts int) int {
		f := NewFold(FoldOptions{})
		at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		sequence := uint64(0)
		add := func(p Payload) {
			f.Apply(Event{ID: fmt.Sprint("e", sequence), Sequence: sequence, Time: at, RunID: "r", AgentID: "a", SchemaVersion: SchemaVersion, Payload: p})
			sequence++
		}
		var input int64
		for n := range attempts {
			add(&AgentStarted{Task: fmt.Sprint("task ", n), Model: "m" + fmt.Sprint(n%2), Resumed: true})
			add(&ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, OneEvent: true})
			usage := Usage{InputTokens: int64(n), CostUSD: Some(0.5)}
			input += int64(n)
			if n%3 == 0 {
				add(&UsageObserved{Usage: usage})
			} else {
				add(&AgentEnded{Usage: Some(usage)})
			}
		}
		s := f.Snapshot()
		a := s.Agents["a"]
		tries := a.AttemptsInOrder()
		require.Len(t, tries, 2*keptAttempts+1)
		require.Equal(t, attempts-len(tries), a.Dropped.V.Count)
		require.Equal(t, attempts, a.Dropped.V.ToolCalls+len(tries))
		for i, try := range tries {
			n := i
			if i >= keptAttempts {
				n = attempts - len(tries) + i
			}
			require.Equal(t, fmt.Sprint("task ", n), try.Task)
			require.Equal(t, n+1, try.Attempt)
			require.Equal(t, 1, try.ToolCalls)
			require.Equal(t, n%3 == 0 && i < len(tries)-1, try.Died)
		}
		require.Equal(t, input, s.Usage.Usage.InputTokens)
		require.InDelta(t, float64(attempts)/2, s.Usage.CostUSD.V, 1e-6)
		require.Equal(t, input, s.Usage.Models["m0"].InputTokens+s.Usage.Models["m1"].InputTokens)
		require.Equal(t, int64(attempts)/2, s.Usage.Models["m1"].InputTokens-s.Usage.Models["m0"].InputTokens)
		return len(s.AppendJSON(nil))
	}
	require.Less(t, float64(size(40_000)), 1.5*float64(size(400)))
}

// An attempt keeps its text, its words and its counts when another one follows, and a turn its text.
func TestAttemptsAndTurnsKeepTheirs(t *testing.T) {
	attempt := func(text string, status ToolStatus, end string) []Event {
		return []Event{
			ev("a", started()), ev("a", &TextDelta{Delta: text}), ev("a", call("c")), ev("a", returned("c", status)), ev("a", &AgentEnded{Status: end}),
		}
	}
	s := fold(t, append(attempt("one", ToolStatusForbidden, "failed"), attempt("two", ToolStatusOK, "done")...)...)
	tries := s.Agents["a"].AttemptsInOrder()
	require.Equal(t, []string{"one", "two"}, []string{tries[0].Text, tries[1].Text})
	require.Equal(t, []string{"failed", "done"}, []string{tries[0].EndStatus, tries[1].EndStatus})
	require.Equal(t, [][2]int{{1, 0}, {0, 1}}, [][2]int{{tries[0].ToolRefusals, tries[0].ToolSuccesses}, {tries[1].ToolRefusals, tries[1].ToolSuccesses}})

	s = fold(t, ev("a", &TextDelta{Delta: "before"}), ev("a", &TurnStarted{Attributes: `{"query":"q"}`}), ev("a", &TextDelta{Delta: "x"}), ev("a", &TextDelta{Delta: "y"}),
		ev("a", &TurnEnded{}), ev("a", &TurnStarted{}), ev("a", &TextDelta{BlockID: "b", Delta: "goes on"}), ev("a", &TurnEnded{}),
		ev("a", &TurnStarted{}), ev("a", &TextCompleted{Text: "whole"}))
	require.Equal(t, []string{"xy", "", "whole"}, []string{s.Turns[0].Said, s.Turns[1].Said, s.Turns[2].Said})
	require.Equal(t, "q", s.Turns[0].Asked)
}

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

// A run ends once: a later end is a violation, or late, and changes nothing.
func TestFirstEndOfARunStands(t *testing.T) {
	ends := []Payload{
		&RunCompleted{Outputs: `"done"`, Refused: 1}, &RunFailed{Error: Some(ErrorInfo{Message: "tool raised"}), Refused: 2},
		&RunFailed{Error: Some(ErrorInfo{Message: "other"})}, &RunCancelled{Reason: "stopped", Refused: 3},
	}
	for _, first := range ends {
		for _, second := range ends {
			for _, late := range []bool{false, true} {
				log := foldLog(t, ev("", &RunStarted{}), ev("a", &AgentStarted{}), ev("", first))
				want := foldEvents(FoldOptions{}, log)
				again := log[2]
				again.Payload, again.Sequence, again.ID, again.Time = second, 3, "again", again.Time.Add(time.Second)
				if late {
					again.Marks |= MarkLate
				}
				log = append(log, again)
				s := foldEvents(FoldOptions{}, log)
				require.Equal(t, !late, s.ViolationCount == 1 && s.Violations[0].Rule == RuleTerminalLast)
				requireSplitFolds(t, log, s)
				want.NextSequence, want.Resume.recent, want.Violations, want.ViolationCount = s.NextSequence, s.Resume.recent, s.Violations, s.ViolationCount
				require.Equal(t, string(want.AppendJSON(nil)), string(s.AppendJSON(nil)), "%T, %T", first, second)
			}
		}
	}
}

// The end of a session ends its runs in every kind of FoldSet: of events, of lines, on workers.
func TestTheEndOfASessionEndsItsRuns(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	next := map[string]uint64{}
	var events []Event
	add := func(run, session, agent string, p Payload) {
		at = at.Add(time.Second)
		events = append(events, Event{ID: fmt.Sprint(run, next[run]), Sequence: next[run], Time: at, RunID: run, Scope: Scope{SessionID: session}, AgentID: agent, SchemaVersion: SchemaVersion, Payload: p})
		next[run]++
	}
	message := func(run, session string) {
		add(run, session, "a", &MessageCreated{Message: ConversationMessage{MessageID: "m" + run, From: "a", To: "b", Role: "assistant", Content: `"x"`}})
	}
	message("before", "s")
	message("goes on", "s")
	message("another's", "t")
	message("none's", "")
	add("opened", "s", "", &RunStarted{})
	add("carrier", "s", "", &SessionCompleted{Status: "failed"})
	end := at
	message("before", "s") // no start: the run is still over
	add("goes on", "s", "a", &AgentStarted{})
	message("after", "s")

	want := map[string]RunStatus{
		"before": RunStatusFailed, "goes on": RunStatusRunning, "another's": RunStatusRunning, "none's": RunStatusRunning,
		"opened": RunStatusRunning, "carrier": RunStatusFailed, "after": RunStatusRunning,
	}
	var log bytes.Buffer
	set := NewFoldSet(FoldOptions{})
	for i := range events {
		set.Apply(events[i])
		line, err := events[i].AppendJSON(nil)
		require.NoError(t, err)
		log.Write(append(line, '\n'))
	}
	for run := range want {
		require.Equal(t, want[run], set.Snapshot(run).Status, run)
	}
	require.Equal(t, end, set.Snapshot("before").CompletedAt)
	for _, workers := range []int{0, 3} {
		set, err := FoldLog(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		for s := range set.Drain() {
			require.Equal(t, want[s.RunID], s.Status, s.RunID)
		}
	}
}

// A fold that serves a further run knows nothing of the one before.
func TestAFoldThatIsUsedAgainIsEmpty(t *testing.T) {
	set := NewFoldSet(FoldOptions{})
	for run := range 4 * maxEnded {
		id := fmt.Sprint("r", run)
		alone := NewFold(FoldOptions{})
		sequence := uint64(0)
		add := func(p Payload) {
			ev := Event{
				ID: fmt.Sprint(id, sequence), Sequence: sequence, Time: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), RunID: id, AgentID: "a", SchemaVersion: SchemaVersion,
				Scope: Scope{WorkflowID: "w", Phase: "p"}, Payload: p,
			}
			set.Apply(ev)
			alone.Apply(ev)
			sequence++
		}
		add(&RunStarted{})
		switch run % 4 {
		case 0: // it leaves open subjects that the next runs end
			add(&WorkflowCreated{Phases: []string{"p"}})
			add(&PhaseStarted{})
			add(&CommandReceived{Command: Command{Type: CommandSend, RunID: "a"}})
		case 1:
			add(&WorkflowFinalized{})
		case 2:
			add(&PhaseCompleted{})
		default:
			add(&WorkflowCreated{})
			add(&TurnEnded{})
		}
		add(&RunCompleted{})
		require.Equal(t, string(alone.Snapshot().AppendJSON(nil)), string(set.Snapshot(id).AppendJSON(nil)))
	}
}
