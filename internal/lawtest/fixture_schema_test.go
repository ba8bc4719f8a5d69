package lawtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/query"
	"github.com/agentevents/agentevents/querytest"
)

// The schema of fixtures accepts those that people write and those that are recorded.
func TestFixtureSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(querytest.Schema())))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("fixture.schema.json", doc))
	schema, err := c.Compile("fixture.schema.json")
	require.NoError(t, err)

	dir := t.TempDir()
	for _, prompt := range []agentevents.JSON{`"Do it"`, `[{"role":"user","content":"Do it"}]`} {
		call, err := querytest.NewCall(query.Request{Prompt: prompt, Options: `{"maxTurns":1}`, SessionID: "s"},
			[]agentevents.Event{{Payload: &agentevents.AgentStarted{}}, {Payload: &agentevents.AgentEnded{
				Usage: agentevents.Some(agentevents.Usage{InputTokens: 1}), NumTurns: agentevents.Some(1),
			}}}, nil, querytest.RecordOptions{})
		require.NoError(t, err)
		require.NoError(t, querytest.Save(dir, "recorded "+string(prompt[0]), &querytest.Fixture{Calls: []querytest.Call{*call}}))
	}
	var files []string
	for _, pattern := range []string{"../../querytest/testdata/*/*.json", dir + "/*.json"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Len(t, files, 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(value), file)
	}
	for _, bad := range []string{`[]`, `{}`, `{"calls":[{}]}`, `{"calls":[{"input":{"prompt":5},"output":{},"events":[]}]}`,
		`{"calls":[{"input":{},"output":{"usage":{"inputTokens":-1}},"events":[]}]}`, `{"calls":[{"input":{},"output":{},"events":[{}]}]}`} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		require.NoError(t, err)
		require.Error(t, schema.Validate(value), bad)
	}
}
