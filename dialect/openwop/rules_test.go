package openwop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

// A return that is the whole call is a call as well.
func TestAllowlistHoldsForCallsOfOneEvent(t *testing.T) {
	h := &Host{Agents: map[string]Manifest{"coder": {Tools: []string{"fs:read"}}}}
	run, log := emitting(t, h, agentevents.Enforce)
	returned := func(tool string, status agentevents.ToolStatus) error {
		return run.Agent("coder").Emit(t.Context(), &agentevents.ToolReturned{CallID: "c", ToolID: tool, Status: status, OneEvent: true, Arguments: `{}`})
	}
	for _, status := range []agentevents.ToolStatus{agentevents.ToolOK, agentevents.ToolError} {
		var v *agentevents.InvariantError
		require.ErrorAs(t, returned("rm:all", status), &v)
		require.Equal(t, RuleToolAllowed, v.Rule)
	}
	require.Empty(t, *log)
	require.NoError(t, returned("fs:read", agentevents.ToolOK))
	// What was refused never began.
	require.NoError(t, returned("rm:all", agentevents.ToolForbidden))
	require.NoError(t, returned("rm:all", agentevents.ToolRateLimited))
}
