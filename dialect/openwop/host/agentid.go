package host

import "strings"

// Tier is the first part of an agent id's namespace.
type Tier string

// The namespaces that OpenWOP RFC 0002, section A1, reserves.
const (
	TierVendor    Tier = "vendor"    // vendor.<org>.<pack>.<agent>
	TierCommunity Tier = "community" // community.<org>.<pack>.<agent>
	TierPrivate   Tier = "private"   // private.<org>.<pack>.<agent>
	TierLocal     Tier = "local"     // local.<org>.<pack>.<agent>
	TierCore      Tier = "core"      // core.<name>
	TierHost      Tier = "host"      // host:<id>, instantiated by the host without a manifest
)

// Namespace holds the parts of an agent id.
type Namespace struct {
	Tier  Tier   // it decides which of the other fields are set
	Org   string // manifest tiers only
	Pack  string // manifest tiers only
	Agent string // the agent, the core name or the host's id
}

// String joins the parts to an id.
func (n Namespace) String() string {
	switch n.Tier {
	case TierHost:
		return "host:" + n.Agent
	case TierCore:
		return "core." + n.Agent
	}
	return string(n.Tier) + "." + n.Org + "." + n.Pack + "." + n.Agent
}

// Manifest reports whether an agent with this id may come from a manifest.
// Hosts refuse manifests that claim a host-local id: see [ParseManifest].
func (n Namespace) Manifest() bool { return n.Tier != TierHost }

// ParseAgentID splits an agent id by the forms of OpenWOP RFC 0002, section A1.
// It reports false for any other id.
func ParseAgentID(id string) (Namespace, bool) {
	if rest, ok := strings.CutPrefix(id, "host:"); ok {
		return Namespace{Tier: TierHost, Agent: rest}, rest != ""
	}
	tier, rest, _ := strings.Cut(id, ".")
	switch n := (Namespace{Tier: Tier(tier), Agent: rest}); n.Tier {
	case TierCore:
		return n, rest != ""
	case TierVendor, TierCommunity, TierPrivate, TierLocal:
		n.Org, rest, _ = strings.Cut(rest, ".")
		n.Pack, n.Agent, _ = strings.Cut(rest, ".")
		return n, n.Org != "" && n.Pack != "" && n.Agent != ""
	}
	return Namespace{}, false
}
