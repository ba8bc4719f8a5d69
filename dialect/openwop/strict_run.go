package openwop

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// runState is what a strict decoder remembers of a run. It keeps one for every
// run of the log.
type runState struct {
	last  uint64
	ended bool
	calls []call
	low   []string // the nodes of decisions below the threshold that are not escalated yet
}

// A call is a tool call without a return. Call ids are unique to an agent.
type call struct{ agentID, callID, eventID string }

// checkRun checks a line against the earlier lines of its run. It copies what it
// remembers, because a text of a line keeps the whole line in memory.
func (d *Decoder) checkRun() *agentevents.RuleError {
	ev := d.r.Ev
	r := d.runs[ev.RunID]
	if d.runs == nil {
		d.runs = map[string]*runState{}
	}
	if r == nil {
		r = &runState{}
		d.runs[strings.Clone(ev.RunID)] = r
	} else if ev.Sequence <= r.last {
		return breaks(RuleSequence, "/sequence", strconv.FormatUint(ev.Sequence, 10)+" is not above "+strconv.FormatUint(r.last, 10)+", the latest sequence of the run")
	}
	if r.ended {
		return breaks(RuleTerminal, "/type", "comes after the end of the run")
	}
	node := cmp.Or(ev.NodeID, d.node)
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		r.calls = limited(r.calls, call{strings.Clone(ev.AgentID), strings.Clone(p.CallID), strings.Clone(ev.ID)})
	case *agentevents.ToolReturned:
		i := slices.IndexFunc(r.calls, func(c call) bool { return c.callID == p.CallID && c.agentID == ev.AgentID })
		switch {
		case i >= 0 && (ev.CausationID == r.calls[i].eventID || ev.CausationID == "" && refused(string(p.Status))):
			r.calls = slices.Delete(r.calls, i, i+1)
		case i >= 0:
			return breaks(RuleCausation, "/causationId", "is not "+jsonwire.Brief(r.calls[i].eventID)+", the event of the call")
		case ev.CausationID == "" && !refused(string(p.Status)):
			return breaks(RuleCausation, "/causationId", "is required: it names the event of the call")
		}
	case *agentevents.AgentDecided:
		threshold := DefaultThreshold
		if d.o.ThresholdOf != nil {
			threshold = d.o.ThresholdOf(ev.RunID, ev.AgentID)
		}
		if p.Confidence.OK && p.Confidence.V < threshold && len(r.low) < maxOpen {
			r.low = append(r.low, strings.Clone(node))
		}
	case *agentevents.NodeSuspended, *agentevents.CapBreached, *agentevents.OrchestratorDecided, *agentevents.ClarificationRequested:
		if len(r.low) == 0 || !d.escalates(p) {
			break
		}
		// One action belongs to one decision: that of the same node. An orchestrator
		// has a node of its own, and an action may have none: then the latest
		// decision counts. Otherwise it is a decision without a node.
		i := slices.Index(r.low, node)
		if _, orchestrated := p.(*agentevents.OrchestratorDecided); i < 0 && (orchestrated || node == "") {
			i = len(r.low) - 1
		}
		if i < 0 {
			i = slices.Index(r.low, "")
		}
		if i >= 0 {
			r.low = slices.Delete(r.low, i, i+1)
		}
	case *agentevents.NodeCompleted:
		if node != "" && slices.Contains(r.low, node) {
			return breaks(RuleEscalate, "/type", "the node decided with a confidence below the threshold, and the decision was not escalated")
		}
	case *agentevents.RunCompleted:
		if len(r.low) > 0 {
			return breaks(RuleEscalate, "/type", "a decision with a confidence below the threshold was not escalated")
		}
		r.ended = true
	case *agentevents.RunFailed, *agentevents.RunCancelled:
		r.ended = true
	}
	if r.ended {
		r.calls, r.low = nil, nil
	}
	r.last = ev.Sequence
	return nil
}

// escalates reports whether an event is the action that must follow a decision
// below the threshold. That is the published one, a suspension for low
// confidence, or under RFC0002 also one of the three of its section F.
func (d *Decoder) escalates(p agentevents.Payload) bool {
	switch p := p.(type) {
	case *agentevents.NodeSuspended:
		return p.Reason == ReasonLowConfidence || memberText(string(p.Details), "kind") == ReasonLowConfidence
	case *agentevents.CapBreached:
		return d.o.Profile == RFC0002 && p.Cap == CapConfidenceEscalationSuppressed
	case *agentevents.OrchestratorDecided:
		return d.o.Profile == RFC0002 && memberText(string(p.Decision), "kind") == "ask-user"
	case *agentevents.ClarificationRequested:
		return d.o.Profile == RFC0002
	}
	return false
}
