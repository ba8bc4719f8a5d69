package agentevents

import (
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
