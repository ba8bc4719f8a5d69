package kahn

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata")

// The schema is in the tree, so that changes to it show in a review.
func TestSchema(t *testing.T) {
	const path = "testdata/agent_transitions.schema.json"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, Schema(), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(Schema()), "go test ./dialect/kahn -update")

	var schema struct {
		OneOf []struct {
			Ref string `json:"$ref"`
		}
		Defs map[string]struct {
			Properties map[string]any
			Required   []string
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	require.Len(t, schema.OneOf, 5)
	require.Equal(t, []string{"ts", "run_id", "event", "agent_id", "step", "tool_name", "duration_s", "ok"}, schema.Defs["tool_invocation"].Required)
	require.Len(t, schema.Defs["agent_run_end"].Properties, 13)
}
