package findings_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/findings"
)

// The word of a status decides whether a call failed, as in all views: one that the table of words
// lacks decides nothing.
func TestWordsOfFailure(t *testing.T) {
	for status, failed := range map[ae.ToolStatus]bool{
		"error": true, "timeout": true, "crashed": true, "denied": true, ae.ToolStatusForbidden: true,
		"ok": false, "success": false, "partial": false, "wobble": false, "": false, "cancelled": false, "aborted": false,
	} {
		f := findings.New(findings.Options{})
		for i := range 8 {
			f.Add(&ae.Event{RunID: "r", Sequence: uint64(i), AgentID: "a", Payload: &ae.ToolReturned{
				CallID: fmt.Sprint(i), ToolID: fmt.Sprint("t", i), Status: status, OneEvent: true, Result: ae.JSON(fmt.Sprint(i)),
			}})
		}
		kinds := map[findings.Kind]bool{}
		for _, one := range f.Findings() {
			kinds[one.Kind] = true
		}
		require.Equal(t, failed, kinds[findings.FailureStreak], status)
	}
}

// A streak of calls that were refused does not read as one of calls that failed.
func TestRefusedStreak(t *testing.T) {
	for want, statuses := range map[string][]ae.ToolStatus{
		"8 calls of a were refused in a row":           {"denied", ae.ToolStatusForbidden},
		"8 calls of a failed in a row":                 {"timeout", ae.ToolStatusError},
		"8 calls of a failed or were refused in a row": {"denied", ae.ToolStatusError},
	} {
		f := findings.New(findings.Options{})
		for i := range 8 {
			f.Add(&ae.Event{RunID: "r", Sequence: uint64(i), AgentID: "a", Payload: &ae.ToolReturned{
				CallID: fmt.Sprint(i), ToolID: fmt.Sprint("t", i), Status: statuses[i%2], OneEvent: true, ResultSummary: string(rune('a' + i)),
			}})
		}
		all := f.Findings()
		require.Len(t, all, 1)
		require.Contains(t, all[0].Text, want)
	}
}
