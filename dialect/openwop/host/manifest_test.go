package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// A host reads the manifests of its packs, and refuses those with an id of its own agents.
func TestParseManifest(t *testing.T) {
	ref, m, err := ParseManifest([]byte(`{"agentId":"vendor.acme.support.tier1","persona":"Support","modelClass":"coding","systemPrompt":"Help.","harnessRole":"worker",
		"toolAllowlist":["mcp:search","acme.crm:read"],"confidence":{"defaultThreshold":0.9}}`))
	require.NoError(t, err)
	require.Equal(t, agentevents.AgentRef{AgentID: "vendor.acme.support.tier1", ModelClass: agentevents.ModelCoding}, ref)
	require.Equal(t, Manifest{HarnessRole: "worker", Tools: []string{"mcp:search", "acme.crm:read"}, Threshold: agentevents.Some(0.9)}, m)

	h := Host{
		Agents:      map[string]Manifest{ref.AgentID: m},
		FilterTools: func(role string) ([]string, bool) { return []string{"mcp:search"}, role == "worker" },
	}
	require.Equal(t, 0.9, h.ThresholdOf(ref.AgentID))
	require.Equal(t, []string{"mcp:search"}, h.Tools(ref.AgentID, []string{"mcp:search", "acme.crm:read", "mcp:delete"}))

	_, m, err = ParseManifest([]byte(`{"agentId":"core.supervisor"}`))
	require.NoError(t, err)
	require.Equal(t, Manifest{}, m, "no list allows every tool")
	_, m, err = ParseManifest([]byte(`{"agentId":"core.supervisor","toolAllowlist":[]}`))
	require.NoError(t, err)
	require.Equal(t, Manifest{Tools: []string{}}, m, "an empty one allows none")

	for text, want := range map[string][2]string{
		`{"agentId":"host:planner"}`:               {string(openwop.RuleID), "/agentId"},
		`{"agentId":"planner"}`:                    {string(openwop.RuleID), "/agentId"},
		`{"agentId":"vendor.acme.support"}`:        {string(openwop.RuleID), "/agentId"},
		`{"agentId":1}`:                            {string(openwop.RuleForm), "/agentId"},
		`{}`:                                       {string(openwop.RuleRequired), "/agentId"},
		`{"agentId":"core.a","modelClass":"chat"}`: {string(openwop.RuleEnum), "/modelClass"},
		`{"agentId":"core.a","toolAllowlist":"mcp:search"}`:            {string(openwop.RuleForm), "/toolAllowlist"},
		`{"agentId":"core.a","toolAllowlist":[""]}`:                    {string(openwop.RuleRange), "/toolAllowlist/0"},
		`{"agentId":"core.a","confidence":{"defaultThreshold":70}}`:    {string(openwop.RuleRange), "/confidence/defaultThreshold"},
		`{"agentId":"core.a","confidence":{"defaultThreshold":"0.7"}}`: {string(openwop.RuleRange), "/confidence/defaultThreshold"},
		`{"agentId":"core.a","harnessRole":["worker"]}`:                {string(openwop.RuleForm), "/harnessRole"},
		`["core.a"]`: {string(openwop.RuleForm), ""},
	} {
		_, _, err := ParseManifest([]byte(text))
		var broken *agentevents.RuleError
		require.ErrorAs(t, err, &broken, text)
		require.Equal(t, want, [2]string{string(broken.Rule), broken.Pointer}, text)
	}
	for _, text := range []string{``, `{`, `{"agentId":"core.a","agentId":"host:a"}`} {
		_, _, err := ParseManifest([]byte(text))
		require.Error(t, err, text)
	}
}
