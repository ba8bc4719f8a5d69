package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// DiscoveryPath is the path at which a host serves its [Discovery].
const DiscoveryPath = "/.well-known/openwop"

// Capabilities are the capabilities.agents of a host (section D).
type Capabilities struct {
	ReasoningEvents bool // agent.reasoned, and its deltas unless Streaming is false
	ToolEvents      bool // agent.toolCalled and agent.toolReturned
	HandoffEvents   bool // agent.handoff
	DecisionEvents  bool // agent.decided
	// MemoryBackends holds the words scratchpad, conversation and longTerm. The
	// schemas spell the last one long-term.
	MemoryBackends []string
	// Streaming tells whether there are deltas of reasoning (reasoning.streaming). It
	// counts only if there are reasoning events. The RFC does not have this flag:
	// absent means that there may be deltas.
	Streaming agentevents.Opt[bool]
	// TokenLimit limits reasoning of verbosity summary (reasoning.tokenLimit); 0
	// means 512. Give it to the emitter as Policy.ReasoningTokens.
	TokenLimit int
}

// The memory backends that the document names.
const (
	MemoryScratchpad   = "scratchpad"
	MemoryConversation = "conversation"
	MemoryLongTerm     = "longTerm"
)

// gate returns the capability that an event with this payload needs, and whether
// it is declared. Most events need none.
func (c *Capabilities) gate(p agentevents.Payload) (name string, on bool) {
	switch gated(p) {
	case agentevents.KindAgentReasoningDelta:
		if c.ReasoningEvents && !c.Streaming.Or(true) {
			return "reasoning.streaming", false
		}
		return "reasoningEvents", c.ReasoningEvents
	case agentevents.KindAgentReasoned:
		return "reasoningEvents", c.ReasoningEvents
	case agentevents.KindToolCalled, agentevents.KindToolReturned:
		return "toolEvents", c.ToolEvents
	case agentevents.KindAgentHandoff:
		return "handoffEvents", c.HandoffEvents
	case agentevents.KindAgentDecided:
		return "decisionEvents", c.DecisionEvents
	}
	return "", true
}

// gated returns the kind of a payload. An [agentevents.Unknown] with the type of an
// event that needs a capability counts as that event, because its line is read so.
func gated(p agentevents.Payload) agentevents.Kind {
	if u, ok := p.(*agentevents.Unknown); ok {
		if kind := gatedTypes[strings.TrimPrefix(string(u.Type), string(openwop.Name)+":")]; kind != "" {
			return kind
		}
	}
	ev := agentevents.Event{Payload: p}
	return ev.Kind()
}

// gatedTypes are the types of those lines, as all profiles have them.
var gatedTypes = map[string]agentevents.Kind{
	"agent.reasoned": agentevents.KindAgentReasoned, "agent.handoff": agentevents.KindAgentHandoff, "agent.decided": agentevents.KindAgentDecided,
	"agent.reasoning.delta": agentevents.KindAgentReasoningDelta, "agent.reasoning-delta": agentevents.KindAgentReasoningDelta,
	"agent.toolCalled": agentevents.KindToolCalled, "agent.tool-called": agentevents.KindToolCalled,
	"agent.toolReturned": agentevents.KindToolReturned, "agent.tool-returned": agentevents.KindToolReturned,
}

// Allows reports whether a host with these capabilities emits events like p. A
// client asks it before it waits for such events. A host that declares nothing, a
// nil receiver, emits the events that need no capability. (A [Host] without
// Capabilities differs: it allows everything.)
func (c *Capabilities) Allows(p agentevents.Payload) bool {
	if c == nil {
		c = &Capabilities{}
	}
	_, on := c.gate(p)
	return on
}

// A Discovery is the part of a host's discovery document that this package reads.
type Discovery struct {
	// Agents is nil if the document does not mention agents. Its Allows may be
	// called even then.
	Agents *Capabilities
}

// wireAgents is capabilities.agents on the wire. Hosts of the published schemas
// write "supported" for all events; with version 2 the record alone means that.
type wireAgents struct {
	Supported       agentevents.Opt[bool] `json:"supported,omitzero"`
	ReasoningEvents agentevents.Opt[bool] `json:"reasoningEvents,omitzero"`
	ToolEvents      agentevents.Opt[bool] `json:"toolEvents,omitzero"`
	HandoffEvents   agentevents.Opt[bool] `json:"handoffEvents,omitzero"`
	DecisionEvents  agentevents.Opt[bool] `json:"decisionEvents,omitzero"`
	MemoryBackends  []string              `json:"memoryBackends,omitempty"`
	Reasoning       struct {
		TokenLimit int                   `json:"tokenLimit,omitempty"`
		Streaming  agentevents.Opt[bool] `json:"streaming,omitzero"`
	} `json:"reasoning,omitzero"`
}

type wireCapabilities struct {
	Agents *wireAgents `json:"agents,omitempty"`
}

// MarshalJSON returns the document in the RFC's form, with the agents under
// capabilities.
func (d Discovery) MarshalJSON() ([]byte, error) {
	var doc struct {
		Capabilities wireCapabilities `json:"capabilities"`
	}
	if c := d.Agents; c != nil {
		a := wireAgents{
			ReasoningEvents: agentevents.Some(c.ReasoningEvents), ToolEvents: agentevents.Some(c.ToolEvents),
			HandoffEvents: agentevents.Some(c.HandoffEvents), DecisionEvents: agentevents.Some(c.DecisionEvents),
			MemoryBackends: c.MemoryBackends,
		}
		a.Reasoning.TokenLimit, a.Reasoning.Streaming = c.TokenLimit, c.Streaming
		doc.Capabilities.Agents = &a
	}
	return json.Marshal(doc)
}

// UnmarshalJSON reads a discovery document in the RFC's form or a published one.
// The published ones have the agents at the root, and "supported" for all events
// except the deltas of reasoning. Streaming decides about the deltas: it is set
// to false where it is missing. Agents at the root without any of the flags are
// the agents of version 2, where the record itself declares all events. Other members
// are ignored.
func (d *Discovery) UnmarshalJSON(text []byte) error {
	var doc struct {
		wireCapabilities
		Capabilities wireCapabilities `json:"capabilities"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	a := cmp.Or(doc.Agents, doc.Capabilities.Agents)
	if a == nil {
		d.Agents = nil
		return nil
	}
	if a.Reasoning.TokenLimit < 0 {
		return errors.New("host: agents.reasoning.tokenLimit must not be below 0")
	}
	flags := a.Supported.OK || a.ReasoningEvents.OK || a.ToolEvents.OK || a.HandoffEvents.OK || a.DecisionEvents.OK
	all := a.Supported.V || a == doc.Agents && !flags
	c := &Capabilities{
		ReasoningEvents: all || a.ReasoningEvents.V, ToolEvents: all || a.ToolEvents.V, HandoffEvents: all ||
			a.HandoffEvents.V,
		DecisionEvents: all || a.DecisionEvents.V, MemoryBackends: a.MemoryBackends, Streaming: a.Reasoning.Streaming,
		TokenLimit: a.Reasoning.TokenLimit,
	}
	for i, name := range c.MemoryBackends {
		if name == "long-term" {
			c.MemoryBackends[i] = MemoryLongTerm
		}
	}
	if all && !c.Streaming.OK {
		c.Streaming = agentevents.Some(false)
	}
	d.Agents = c
	return nil
}
