package agentevents

import (
	"slices"
	"strings"
)

// AgentRef is the identity of an agent that acts in a run (OpenWOP RFC 0002,
// section A).
type AgentRef struct {
	// AgentID is opaque to readers: only the host that issued it resolves it.
	// It is required and any non-empty text is legal on the wire. Package
	// dialect/openwop reads the forms that the RFC reserves.
	AgentID string `json:"agentId" class:"id" check:"required"`
	// AgentSharing says who shares the agent's context; empty means isolated.
	AgentSharing AgentSharing `json:"agentSharing,omitzero" class:"meta"`
	// MemoryRef is an opaque handle for memory across runs.
	MemoryRef string `json:"memoryRef,omitzero" class:"id"`
	// ModelClass is what kind of model the agent wants.
	ModelClass ModelClass `json:"modelClass,omitzero" class:"meta"`

	extra extras
}

// AgentSharing says with whom an agent shares its context: [SharingIsolated],
// [SharingShared], or the value of [SharingGroup] for a group. The empty string means
// isolated.
type AgentSharing string

// The two sharing values that are not a group.
const (
	SharingIsolated AgentSharing = "isolated" // a fresh context per node; the default
	SharingShared   AgentSharing = "shared"   // one context across all nodes of the run
)

const sharedPrefix = "shared:"

// SharingGroup returns the sharing of a group: one context across the nodes that
// name the same group. Messages of such an agent carry the group's id (rule
// message-group).
func SharingGroup(group string) AgentSharing { return AgentSharing(sharedPrefix + group) }

// Group returns the group's id and whether s shares by group.
func (s AgentSharing) Group() (string, bool) {
	if g, ok := strings.CutPrefix(string(s), sharedPrefix); ok && g != "" {
		return g, true
	}
	return "", false
}

func (s AgentSharing) known() bool {
	if s == SharingIsolated || s == SharingShared {
		return true
	}
	_, ok := s.Group()
	return ok
}

func (AgentSharing) words() []AgentSharing {
	return []AgentSharing{SharingIsolated, SharingShared, SharingGroup("<group>")}
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

var modelClasses = []ModelClass{ModelReasoning, ModelWriting, ModelCoding, ModelResearch, ModelClassification, ModelGeneral}

func (m ModelClass) known() bool { return slices.Contains(modelClasses, m) }

func (ModelClass) words() []ModelClass { return modelClasses }
