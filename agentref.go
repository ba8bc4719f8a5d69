package agentevents

import (
	"strings"
)

// AgentRef is the identity of an agent that acts in a run (OpenWOP RFC 0002,
// section A).
type AgentRef struct {
	// AgentID is opaque to readers: only the host that issued it resolves it.
	// It is required and any non-empty text is legal on the wire.
	// [AgentRef.Namespace] reads the forms that the RFC reserves.
	AgentID string `json:"agentId" class:"id" check:"required"`
	// AgentSharing says who shares the agent's context; empty means isolated.
	AgentSharing AgentSharing `json:"agentSharing,omitzero" class:"meta"`
	// MemoryRef is an opaque handle for memory across runs.
	MemoryRef string `json:"memoryRef,omitzero" class:"id"`
	// ModelClass is what kind of model the agent wants.
	ModelClass ModelClass `json:"modelClass,omitzero" class:"meta"`

	extra extras
}

// AgentSharing says with whom an agent shares its context: [Isolated],
// [Shared], or the value of [SharedBy] for a group. The empty string means
// isolated.
type AgentSharing string

// The two sharing values that are not a group.
const (
	Isolated AgentSharing = "isolated" // a fresh context per node; the default
	Shared   AgentSharing = "shared"   // one context across all nodes of the run
)

const sharedPrefix = "shared:"

// SharedBy returns the sharing of a group: one context across the nodes that
// name the same group. Messages of such an agent carry the group's id (rule
// message-group).
func SharedBy(group string) AgentSharing { return AgentSharing(sharedPrefix + group) }

// Group returns the group's id and whether s shares by group.
func (s AgentSharing) Group() (string, bool) {
	if g, ok := strings.CutPrefix(string(s), sharedPrefix); ok && g != "" {
		return g, true
	}
	return "", false
}

func (s AgentSharing) known() bool {
	if s == Isolated || s == Shared {
		return true
	}
	_, ok := s.Group()
	return ok
}

// ModelClass is a closed list of what models are good at.
type ModelClass string

// The model classes of OpenWOP RFC 0002, section A.
const (
	ModelReasoning      ModelClass = "reasoning"
	ModelWriting        ModelClass = "writing"
	ModelCoding         ModelClass = "coding"
	ModelResearch       ModelClass = "research"
	ModelClassification ModelClass = "classification"
	ModelGeneral        ModelClass = "general"
)

func (m ModelClass) known() bool {
	switch m {
	case ModelReasoning, ModelWriting, ModelCoding, ModelResearch, ModelClassification, ModelGeneral:
		return true
	}
	return false
}

// CoreSystem is the reserved agent of calls that no agent made.
const CoreSystem = "core.system"

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

// Namespace is an agent id taken apart.
type Namespace struct {
	Tier  Tier   // the tier; it decides which of the others are set
	Org   string // manifest tiers only
	Pack  string // manifest tiers only
	Agent string // the agent, the core name or the host's id
}

// String puts the id together again.
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
// Hosts refuse manifests that claim a host-local id.
func (n Namespace) Manifest() bool { return n.Tier != TierHost }

// Namespace takes the agent id apart. It reports false for an id of no
// reserved form, which is legal: ids are opaque on read.
func (r AgentRef) Namespace() (Namespace, bool) { return ParseAgentID(r.AgentID) }

// ParseAgentID takes an agent id apart by the forms of OpenWOP RFC 0002,
// section A1. It reports false for any other id.
func ParseAgentID(id string) (Namespace, bool) {
	if rest, ok := strings.CutPrefix(id, "host:"); ok {
		return Namespace{Tier: TierHost, Agent: rest}, rest != ""
	}
	tier, rest, ok := strings.Cut(id, ".")
	if !ok {
		return Namespace{}, false
	}
	if Tier(tier) == TierCore {
		return Namespace{Tier: TierCore, Agent: rest}, rest != ""
	}
	switch Tier(tier) {
	case TierVendor, TierCommunity, TierPrivate, TierLocal:
	default:
		return Namespace{}, false
	}
	parts := strings.SplitN(rest, ".", 3)
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Namespace{}, false
	}
	return Namespace{Tier: Tier(tier), Org: parts[0], Pack: parts[1], Agent: parts[2]}, true
}
