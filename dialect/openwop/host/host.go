// Package host holds the rules of an OpenWOP host: its capabilities, the manifests and tools of
// its agents, and the action that follows a decision with a low confidence. An emitter applies
// them as its options Guard and Follow.
package host

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The rules of a host, besides the rules of the library.
const (
	// RuleCapability refuses events of a capability that the host does not declare.
	RuleCapability agentevents.Rule = "capability"
	// RuleToolAllowed refuses calls of tools outside the agent's allowlist.
	RuleToolAllowed agentevents.Rule = "tool-allowed"
)

// A Host holds the declarations and decisions of a host, besides the events it emits. The
// zero Host allows everything and escalates decisions below [openwop.DefaultThreshold].
//
//	h := &host.Host{Capabilities: &host.Capabilities{DecisionEvents: true}}
//	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Guard: h.Guard, Follow: h.Follow})
//
// Threshold, Orchestrator and NoEscalation belong to a run. If the runs of an
// emitter differ in them, use a Host for each run:
//
//	Follow: func(ev agentevents.Event) []agentevents.Event { return hostOf(ev.RunID).Follow(ev) }
//
// A Host must not be changed while an emitter uses it. Its methods may be called
// concurrently.
type Host struct {
	// Capabilities are the capabilities that the host declares (section D). Guard
	// refuses events of a capability that is not declared. Nil allows all events.
	Capabilities *Capabilities
	// Agents are the manifests by agent id, and the host's decisions for agents of its
	// own ([TierHost]). See [ParseManifest].
	Agents map[string]Manifest
	// FilterTools returns the tools that an agent with the harness role may use
	// (section A14), and false if the role is not limited. The manifest's allowlist
	// applies too: a tool must be in both. Nil limits nothing.
	FilterTools func(harnessRole string) (allowed []string, limited bool)
	// Threshold is the run's threshold (escalationThreshold). It takes precedence
	// over the agent's. Absent means that the agent's applies.
	Threshold agentevents.Opt[float64]
	// Orchestrator is the id of the run's orchestrator. With an orchestrator, a
	// decision below the threshold leads to its ask-user decision. Without one
	// (empty), it leads to a clarification.
	Orchestrator string
	// NoEscalation opts out of escalation: a decision below the threshold leads only
	// to a cap.breached.
	NoEscalation bool
	// Profile selects the contract of escalation. RFC0002 is the RFC's text. Under
	// the schema profiles, which have the published contract, the node is suspended
	// with the reason low-confidence, whatever the values of Orchestrator and NoEscalation.
	// See [Host.Follow].
	Profile openwop.Profile
}

// Guard refuses events that the host's declarations exclude, and returns that have both a
// result, or the status ok, and an error. It is an
// [agentevents.EmitterOptions] Guard.
func (h *Host) Guard(ev agentevents.Event) *agentevents.RuleError {
	if c := h.Capabilities; c != nil {
		if name, on := c.gate(ev.Payload); !on {
			return &agentevents.RuleError{
				Rule: RuleCapability, Subject: "capability " + name, State: "not declared",
				Detail: "a host must not emit events of a capability that it does not declare",
			}
		}
	}
	if p, ok := ev.Payload.(*agentevents.ToolReturned); ok && p.Error.OK &&
		(p.Result != "" || p.Status == agentevents.ToolStatusOK) {
		return &agentevents.RuleError{
			Rule: openwop.RuleResult, Subject: "call " + jsonwire.Brief(p.CallID),
			Detail: "it has an error beside a result or the status ok; legal: a result on success, an error on failure",
		}
	}
	agents, tools := toolCalls(&ev)
	for _, agentID := range agents {
		for _, toolID := range tools {
			if !h.ToolAllowed(agentID, toolID) {
				return &agentevents.RuleError{
					Rule: RuleToolAllowed, Subject: "tool " + jsonwire.Brief(toolID),
					Detail: "it is not among the tools that the agent may use",
				}
			}
		}
	}
	return nil
}

// toolCalls returns the callers and tools of an event. A return that is the whole
// call states it too, unless the call never began.
func toolCalls(ev *agentevents.Event) (agents, tools []string) {
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		return []string{ev.AgentID}, []string{p.ToolID}
	case *agentevents.ToolReturned:
		if p.OneEvent && !refused(p.Status) {
			return []string{ev.AgentID}, []string{p.ToolID}
		}
	case *agentevents.Unknown:
		// Its line names agent and tool in the payload, and the tool by either name.
		// It does not show whether a return has a call.
		text := func(name string) string { return jsonwire.Text(jsonwire.Member(string(p.Raw), name)) }
		if kind := gated(p); kind == agentevents.KindToolCalled ||
			kind == agentevents.KindToolReturned && !refused(agentevents.ToolStatus(text("status"))) {
			tools = []string{text("toolName"), text("toolId")}
			return []string{ev.AgentID, text("agentId")}, slices.DeleteFunc(tools, func(tool string) bool { return tool == "" })
		}
	}
	return nil, nil
}

// ToolAllowed reports whether an agent may use a tool: both the allowlist of its
// manifest and the filter of its role must have the tool, where they are
// declared.
func (h *Host) ToolAllowed(agentID, toolID string) bool {
	m := h.Agents[agentID]
	if m.Tools != nil && !slices.Contains(m.Tools, toolID) {
		return false
	}
	if h.FilterTools == nil {
		return true
	}
	allowed, limited := h.FilterTools(m.HarnessRole)
	return !limited || slices.Contains(allowed, toolID)
}

// Tools returns the tools that the agent may use, in the given order: offer it
// only these before dispatch.
func (h *Host) Tools(agentID string, tools []string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return !h.ToolAllowed(agentID, tool) })
}

// ThresholdOf returns the confidence below which a decision of the agent
// escalates: the run's, else the agent's, else [openwop.DefaultThreshold]. One that is not
// between 0 and 1 counts as absent: see [Host.Check].
func (h *Host) ThresholdOf(agentID string) float64 {
	for _, t := range []agentevents.Opt[float64]{h.Threshold, h.Agents[agentID].Threshold} {
		if t.OK && isConfidence(t.V) {
			return t.V
		}
	}
	return openwop.DefaultThreshold
}

// Check returns an error that names a threshold which is not between 0 and 1. A host
// that takes thresholds from a configuration calls it before it begins a run.
func (h *Host) Check() error {
	if t := h.Threshold; !isConfidence(t.V) {
		return fmt.Errorf("host: Host.Threshold is %v; legal: 0 to 1", t.V)
	}
	for _, id := range slices.Sorted(maps.Keys(h.Agents)) {
		if t := h.Agents[id].Threshold; !isConfidence(t.V) {
			return fmt.Errorf("host: Host.Agents[%q].Threshold is %v; legal: 0 to 1", id, t.V)
		}
	}
	return nil
}

func isConfidence(v float64) bool { return v >= 0 && v <= 1 }

// Follow returns the action that section F requires after a decision with a
// confidence below the threshold. It is an [agentevents.EmitterOptions] Follow. A
// decision without a confidence, or with one that is not a number, does not
// escalate. The action on a decision that is marked late is marked late too.
//
// Under SchemaV1 the action is an [agentevents.NodeSuspended] with the details
// interruptId, threshold, observed and decision. The node.suspended of SchemaV2
// has no place for the last three: its details are interruptId and kind, and an
// interrupt.requested before it carries the data. The suspended node is the node of
// the decision; without one, it is a node with the id of the agent. The node goes
// on with an [agentevents.Unknown] of type node.resumed whose payload has that
// nodeId and interruptId.
func (h *Host) Follow(ev agentevents.Event) []agentevents.Event {
	p, ok := ev.Payload.(*agentevents.AgentDecided)
	threshold := h.ThresholdOf(ev.AgentID)
	if !ok || !p.Confidence.OK || !(p.Confidence.V < threshold) || math.IsInf(p.Confidence.V, -1) {
		return nil // NaN is not below
	}
	next := agentevents.Event{Scope: ev.Scope, AgentID: ev.AgentID, Marks: ev.Marks & agentevents.MarkLate}
	question := "The agent " + strconv.Quote(ev.AgentID) + " decided with confidence " + number(p.Confidence.V) +
		", below " + number(threshold) + ". Go on?"
	switch {
	case h.Profile != openwop.RFC0002:
		return suspended(h.Profile, ev, next, p, threshold)
	case h.NoEscalation:
		next.Payload = &agentevents.CapBreached{
			Cap: openwop.CapConfidenceEscalationSuppressed, Limit: agentevents.Some(threshold), Observed: p.Confidence,
		}
	case h.Orchestrator != "":
		next.AgentID = h.Orchestrator
		next.Payload = &agentevents.OrchestratorDecided{
			Decision: agentevents.JSON(`{"kind":"ask-user","prompt":` + string(agentevents.JSONString(question)) + `}`),
		}
	default:
		next.Payload = &agentevents.ClarificationRequested{
			InterruptID: escalationID(h.Profile, ev), Questions: []agentevents.Question{{ID: "proceed", Question: question}},
		}
	}
	return []agentevents.Event{next}
}

// suspended returns the action of the published contract. next has no payload
// yet.
func suspended(profile openwop.Profile, ev, next agentevents.Event, p *agentevents.AgentDecided,
	threshold float64) []agentevents.Event {
	// A suspension without a node tells a reader of the log nothing, and one node
	// for all such decisions would mix them up.
	next.NodeID = cmp.Or(ev.NodeID, ev.AgentID, "unknown")
	id := jsonwire.Quote(escalationID(profile, ev))
	data := `"threshold":` + number(threshold) + `,"observed":` + number(p.Confidence.V) + `,"decision":` +
		cmp.Or(string(p.Decision), "null") + "}"
	if profile == openwop.SchemaV1 {
		// The first edition of SchemaV1 has no kind low-confidence. The agent is
		// the agent of the event.
		next.Payload = &agentevents.NodeSuspended{Reason: openwop.ReasonLowConfidence,
			Details: agentevents.JSON(`{"interruptId":` + id + `,` + data)}
		return []agentevents.Event{next}
	}
	asked := next
	asked.AgentID = "" // the line has the agent only in the data, in the profile's form
	agent := openwop.NormalizeID(openwop.SchemaV2, openwop.HandoffID, cmp.Or(ev.AgentID, openwop.CoreSystem))
	asked.Payload = &agentevents.Unknown{Type: "interrupt.requested",
		Raw: agentevents.JSON(`{"kind":"` + openwop.ReasonLowConfidence + `","key":` + id +
			`,"data":{"agentId":` + jsonwire.Quote(agent) + `,` + data + "}")}
	next.Payload = &agentevents.NodeSuspended{Reason: openwop.ReasonLowConfidence,
		Details: agentevents.JSON(`{"interruptId":` + id + `,"kind":"` + openwop.ReasonLowConfidence + `"}`)}
	return []agentevents.Event{asked, next}
}

// escalationID returns the id of the interrupt for a decision. It is the same in
// every replay. Under SchemaV2 it begins with the tenant of the run.
func escalationID(p openwop.Profile, ev agentevents.Event) string {
	if p != openwop.SchemaV2 {
		return "escalation:" + ev.ID
	}
	tenant, _, ok := strings.Cut(ev.RunID, "/")
	if !ok {
		tenant = "local" // as NormalizeID does for such a run
	}
	return openwop.NormalizeID(p, openwop.InterruptID, tenant+"/escalation-"+ev.ID)
}

// refused reports whether the call of a return with that status never began.
func refused(status agentevents.ToolStatus) bool {
	return status == agentevents.ToolStatusForbidden || status == agentevents.ToolStatusRateLimited
}

func number(f float64) string { return string(jsonwire.AppendFloat(nil, f)) }
