package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/dialect/openwop"
)

// The forms that OpenWOP RFC 0002, section A1, reserves, and other ids, which are
// opaque.
func TestNamespaces(t *testing.T) {
	for id, want := range map[string]Namespace{
		"vendor.acme.tools.coder":      {TierVendor, "acme", "tools", "coder"},
		"community.acme.tools.coder.2": {TierCommunity, "acme", "tools", "coder.2"},
		"private.a.b.c":                {TierPrivate, "a", "b", "c"},
		"local.a.b.c":                  {TierLocal, "a", "b", "c"},
		"core.system":                  {Tier: TierCore, Agent: "system"},
		"core.a.b":                     {Tier: TierCore, Agent: "a.b"},
		"host:47":                      {Tier: TierHost, Agent: "47"},
		"host:core.x":                  {Tier: TierHost, Agent: "core.x"},
	} {
		got, ok := ParseAgentID(id)
		require.True(t, ok, id)
		require.Equal(t, want, got)
		require.Equal(t, id, got.String())
		require.Equal(t, want.Tier != TierHost, got.Manifest(), "hosts refuse manifests with host-local ids")
	}
	for _, id := range []string{
		"", "coder", "claude-subagent:explore", "vendor", "vendor.", "vendor.acme", "vendor.acme.tools", "vendor.acme.tools.", "vendor..tools.x", "vendor.acme..x",
		"core.", "core", "host:", "host", "Vendor.a.b.c", "other.a.b.c", ".a.b.c",
	} {
		_, ok := ParseAgentID(id)
		require.False(t, ok, id)
	}
	id, ok := ParseAgentID(openwop.CoreSystem)
	require.True(t, ok)
	require.Equal(t, TierCore, id.Tier)
}
