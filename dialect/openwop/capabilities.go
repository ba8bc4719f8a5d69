package openwop

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/agentevents/agentevents"
)

// DiscoveryPath is where a host serves its [Discovery].
const DiscoveryPath = "/.well-known/openwop"

// Capabilities are the capabilities.agents of a host (section D).
type Capabilities struct {
	ReasoningEvents bool // agent.reasoned, and its deltas unless Streaming says no
	ToolEvents      bool // agent.toolCalled and agent.toolReturned
	HandoffEvents   bool // agent.handoff
	DecisionEvents  bool // agent.decided
	// MemoryBackends are of scratchpad, conversation and longTerm, which the
	// schemas spell long-term.
	MemoryBackends []string
	// Streaming is whether there are deltas of reasoning (reasoning.streaming),
	// which is only asked where there are reasoning events. The RFC has no such
	// flag: absent means that there may be.
	Streaming agentevents.Opt[bool]
	// TokenLimit bounds reasoning of verbosity summary
	// (reasoning.tokenLimit); 0 means 512. Give it to the emitter as
	// Policy.ReasoningTokens.
	TokenLimit int
}

// The memory backends that the document names.
const (
	MemoryScratchpad   = "scratchpad"
	MemoryConversation = "conversation"
	MemoryLongTerm     = "longTerm"
)

// gate returns the capability that an event of this payload needs, and whether
// it is declared. Most events need none.
func (c *Capabilities) gate(p agentevents.Payload) (name string, on bool) {
	switch gated(p) {
	case vDelta:
		if c.ReasoningEvents && !c.Streaming.Or(true) {
			return "reasoning.streaming", false
		}
		return "reasoningEvents", c.ReasoningEvents
	case vReasoned:
		return "reasoningEvents", c.ReasoningEvents
	case vToolCalled, vToolReturned:
		return "toolEvents", c.ToolEvents
	case vHandoff:
		return "handoffEvents", c.HandoffEvents
	case vDecided:
		return "decisionEvents", c.DecisionEvents
	}
	return "", true
}

// gated returns which of the events that need a capability a payload is. An
// [agentevents.Unknown] of a type that is read as such an event is one: its line is.
func gated(p agentevents.Payload) int {
	switch p := p.(type) {
	case *agentevents.AgentReasoned:
		return vReasoned
	case *agentevents.AgentReasoningDelta:
		return vDelta
	case *agentevents.ToolCalled:
		return vToolCalled
	case *agentevents.ToolReturned:
		return vToolReturned
	case *agentevents.AgentHandoff:
		return vHandoff
	case *agentevents.AgentDecided:
		return vDecided
	case *agentevents.Unknown:
		return variantOf(strings.TrimPrefix(string(p.Type), unknownPrefix))
	}
	return vUnknown
}

// Allows reports whether a host with these capabilities emits events like p:
// what a client asks before it waits for some. A host that declares nothing, a
// nil receiver, emits what needs no capability. (A [Host] without Capabilities is
// another matter: it gates nothing.)
func (c *Capabilities) Allows(p agentevents.Payload) bool {
	if c == nil {
		c = &Capabilities{}
	}
	_, on := c.gate(p)
	return on
}

// A Discovery is the part of a host's discovery document that this package
// knows.
type Discovery struct {
	// Agents is nil when the document does not mention agents. Ask its Allows
	// all the same.
	Agents *Capabilities
}

// wireAgents is capabilities.agents on the wire. Hosts of the published schemas
// say "supported" for all the events, or with version 2 nothing but that they
// have agents. Nil is a flag that is not there.
type wireAgents struct {
	Supported       *bool          `json:"supported,omitempty"`
	ReasoningEvents *bool          `json:"reasoningEvents,omitempty"`
	ToolEvents      *bool          `json:"toolEvents,omitempty"`
	HandoffEvents   *bool          `json:"handoffEvents,omitempty"`
	DecisionEvents  *bool          `json:"decisionEvents,omitempty"`
	MemoryBackends  []string       `json:"memoryBackends,omitempty"`
	Reasoning       *wireReasoning `json:"reasoning,omitempty"`
}

type wireReasoning struct {
	TokenLimit int   `json:"tokenLimit,omitempty"`
	Streaming  *bool `json:"streaming,omitempty"`
}

type wireCapabilities struct {
	Agents *wireAgents `json:"agents,omitempty"`
}

// MarshalJSON returns the document as the RFC has it: the agents are under
// capabilities.
func (d Discovery) MarshalJSON() ([]byte, error) {
	var doc struct {
		Capabilities wireCapabilities `json:"capabilities"`
	}
	if c := d.Agents; c != nil {
		doc.Capabilities.Agents = &wireAgents{
			ReasoningEvents: &c.ReasoningEvents, ToolEvents: &c.ToolEvents, HandoffEvents: &c.HandoffEvents, DecisionEvents: &c.DecisionEvents,
			MemoryBackends: c.MemoryBackends,
		}
		if c.TokenLimit != 0 || c.Streaming.OK {
			doc.Capabilities.Agents.Reasoning = &wireReasoning{TokenLimit: c.TokenLimit}
			if c.Streaming.OK {
				doc.Capabilities.Agents.Reasoning.Streaming = &c.Streaming.V
			}
		}
	}
	return json.Marshal(doc)
}

// UnmarshalJSON reads a discovery document in the RFC's form, and in the
// published ones: the agents at the root, and "supported" for every kind of
// event but the deltas of reasoning, which streaming says (it is set to false
// where it is missing). Agents at the root without any of these flags are those
// of version 2, where the record itself is the claim. Other members are passed
// over.
func (d *Discovery) UnmarshalJSON(text []byte) error {
	var doc struct {
		wireCapabilities
		Capabilities wireCapabilities `json:"capabilities"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return err
	}
	a := doc.Agents
	if a == nil {
		a = doc.Capabilities.Agents
	}
	if a == nil {
		d.Agents = nil
		return nil
	}
	flags := [...]*bool{a.ReasoningEvents, a.ToolEvents, a.HandoffEvents, a.DecisionEvents}
	all := a.Supported != nil && *a.Supported
	if doc.Agents != nil && a.Supported == nil && flags == [len(flags)]*bool{} {
		all = true
	}
	on := func(flag *bool) bool { return all || flag != nil && *flag }
	c := &Capabilities{
		ReasoningEvents: on(a.ReasoningEvents), ToolEvents: on(a.ToolEvents), HandoffEvents: on(a.HandoffEvents), DecisionEvents: on(a.DecisionEvents),
		MemoryBackends: a.MemoryBackends,
	}
	for i, name := range c.MemoryBackends {
		if name == "long-term" {
			c.MemoryBackends[i] = MemoryLongTerm
		}
	}
	if a.Reasoning != nil {
		if a.Reasoning.TokenLimit < 0 {
			return errors.New("openwop: agents.reasoning.tokenLimit is below 0")
		}
		c.TokenLimit = a.Reasoning.TokenLimit
		if a.Reasoning.Streaming != nil {
			c.Streaming = agentevents.Some(*a.Reasoning.Streaming)
		}
	}
	if all && !c.Streaming.OK {
		c.Streaming = agentevents.Some(false)
	}
	d.Agents = c
	return nil
}
