package agentevents

import (
	"slices"
	"strings"
)

// AgentRef is the identity of an agent that acts in a run (OpenWOP RFC 0002,
// section A).
type AgentRef struct {
	// AgentID is required. Any non-empty text is legal. Readers treat it as
	// opaque: only the host that issued it resolves it. Package dialect/openwop
	// reads the forms that the RFC reserves.
	AgentID string `json:"agentId" class:"id" check:"required"`
	// AgentSharing is the way in which the agent shares its context; empty means [SharingIsolated].
	AgentSharing AgentSharing `json:"agentSharing,omitzero" class:"meta"`
	// MemoryRef is an opaque handle of memory that outlives the run.
	MemoryRef string `json:"memoryRef,omitzero" class:"id"`
	// ModelClass is the capability that the agent's model needs; empty means that the agent names
	// none.
	ModelClass ModelClass `json:"modelClass,omitzero" class:"meta"`

	extra extras
}

// AgentSharing is the way in which an agent shares its context (OpenWOP RFC 0002, section A):
// [SharingIsolated], [SharingShared], or a value that [SharingGroup] returns. The empty string
// means SharingIsolated.
type AgentSharing string

// The sharing values without a group.
const (
	SharingIsolated AgentSharing = "isolated" // each node gets a fresh context
	SharingShared   AgentSharing = "shared"   // all nodes of the run share one context
)

const sharedPrefix = "shared:"

// SharingGroup returns the value with which the nodes of a group share one
// context. group must not be empty. Messages of such an agent carry the group's
// id (rule message-group).
func SharingGroup(group string) AgentSharing { return AgentSharing(sharedPrefix + group) }

// Group returns the id of the group, and whether s names a group.
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

// ModelClass names a capability of a model. The list is closed (rule field-enum).
type ModelClass string

// The model classes of OpenWOP RFC 0002, section A.
const (
	ModelReasoning      ModelClass = "reasoning"      // thinking a problem through
	ModelWriting        ModelClass = "writing"        // writing prose
	ModelCoding         ModelClass = "coding"         // writing programs
	ModelResearch       ModelClass = "research"       // finding and comparing sources
	ModelClassification ModelClass = "classification" // sorting inputs into classes
	ModelGeneral        ModelClass = "general"        // no specialty
)

var modelClasses = []ModelClass{ModelReasoning, ModelWriting,
	ModelCoding, ModelResearch, ModelClassification, ModelGeneral}

func (m ModelClass) known() bool { return slices.Contains(modelClasses, m) }

func (ModelClass) words() []ModelClass { return modelClasses }
