package agentevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
