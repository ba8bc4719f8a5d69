package endword

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	for list, want := range map[string]Meaning{
		"success ok succeeded done completed complete SUCCESS Ok converged pass accepted granted yes allowed": Succeeded,
		"partial Partially escaped incomplete": Partial,
		"skipped":                              Skipped,
		"failed Failed failure error timeout timed_out timed-out timedOut TIMEDOUT crashed deadline_exceeded max_turns maxTurns MAX_STEPS error_max_turns exhausted": Failed,
		"denied rejected refused forbidden rate_limited refuted blocked BLOCKED no":                                                                                  Refused,
		"cancelled canceled Cancelled aborted interrupted killed":                                                                                                    Cancelled,
		"weird running pending paused progress start completed! 7 née":                                                                                               Unknown,
	} {
		for word := range strings.FieldsSeq(list) {
			require.Equal(t, want, Of(word), word)
		}
	}
	require.Equal(t, Failed, Of(" timed out "))
	require.Equal(t, Unknown, Of(""))
	require.Equal(t, Unknown, Of(strings.Repeat("_", 1<<20)+"ok"), "no program writes that")
}

func TestEnd(t *testing.T) {
	for _, c := range []struct {
		end  End
		want Meaning
	}{
		{End{}, Succeeded},
		{End{Error: true}, Failed},
		{End{Error: true, Code: "canceled"}, Cancelled},
		{End{Code: "canceled"}, Succeeded},
		{End{Error: true, Word: "success", Outcome: "converged"}, Failed},
		{End{Gave: true, Outcome: "converged"}, Failed},
		{End{Word: "success"}, Succeeded},
		{End{Word: "success", Outcome: "partial"}, Partial},
		{End{Word: "timeout", Outcome: "converged"}, Failed},
		{End{Word: "weird", Outcome: "converged"}, Unknown},
		{End{Outcome: "aborted"}, Cancelled},
	} {
		require.Equal(t, c.want, c.end.Meaning(), "%+v", c.end)
	}
}

func TestOfType(t *testing.T) {
	for _, c := range []struct {
		typ, domain, word string
		want              Meaning
	}{
		{"tool.call.failed", "tool.call.", "failed", Failed},
		{"tool.call.timed_out", "tool.call.", "timed_out", Failed},
		{"tool.call.error", "tool.call.", "error", Failed},
		{"tool.call.blocked", "tool.call.", "blocked", Refused},
		{"tool.call.partial", "tool.call.", "partial", Unknown},
		{"tool.call.approved", "tool.call.", "approved", Unknown},
		{"tool.call.done", "tool.call.", "done", Succeeded},
		{"agent.aborted", "agent.", "aborted", Cancelled},
		{"agent.error", "agent.", "error", Unknown},
		{"agent.Blocked", "agent.", "Blocked", Unknown},
		{"session.expired", "session.", "expired", Failed},
		{"workflow.failed", "workflow.", "failed", Failed},
		{"workflow.approved", "workflow.", "approved", Unknown},
		{"workflow.phase.skipped", "workflow.phase.", "skipped", Skipped},
		{"workflow.node.failed", "workflow.", "node.failed", Unknown},
		{"handoff.declined", "handoff.", "declined", Refused},
		{"handoff.approved", "handoff.", "approved", Succeeded},
		{"approval.approved", "approval.", "approved", Succeeded},
		{"approval.", "approval.", "", Unknown},
		{"deploy.failed", "", "", Unknown},
	} {
		domain, word, how := OfType(c.typ)
		require.Equal(t, []any{c.domain, c.word, c.want}, []any{domain, word, how}, c.typ)
	}
}
