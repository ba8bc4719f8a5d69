package openwop

import (
	"slices"
	"strconv"
	"strings"

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
func (d *Decoder) checkRun(f *fields, v int) error {
	r := d.runs[f.runID]
	if r == nil {
		if d.runs == nil {
			d.runs = map[string]*runState{}
		}
		r = &runState{}
		d.runs[strings.Clone(f.runID)] = r
	} else if f.sequence <= r.last {
		return broken(RuleSequence, f, "/sequence", strconv.FormatUint(f.sequence, 10)+" is not above "+strconv.FormatUint(r.last, 10)+", the latest sequence of the run")
	}
	if r.ended {
		return broken(RuleTerminal, f, "/type", "comes after the end of the run")
	}
	node := f.nodeID
	if node == "" {
		node = f.val[mNodeID]
	}
	switch v {
	case vToolCalled:
		if len(r.calls) == maxOpen {
			r.calls = append(r.calls[:0], r.calls[maxOpen/2:]...)
		}
		r.calls = append(r.calls, call{strings.Clone(f.val[mAgentID]), strings.Clone(f.val[mCallID]), strings.Clone(f.eventID)})
	case vToolReturned:
		i := slices.IndexFunc(r.calls, func(c call) bool { return c.callID == f.val[mCallID] && c.agentID == f.val[mAgentID] })
		switch {
		case i >= 0 && (f.causationID == r.calls[i].eventID || f.causationID == "" && refused(f.val[mStatus])):
			r.calls = slices.Delete(r.calls, i, i+1)
		case i >= 0:
			return broken(RuleCausation, f, "/causationId", "is not "+strconv.Quote(r.calls[i].eventID)+", the event of the call")
		case f.causationID == "" && !refused(f.val[mStatus]):
			return broken(RuleCausation, f, "/causationId", "is required: it names the event of the call")
		}
	case vDecided:
		// An absent confidence reads as 0, so look at seen.
		if f.seen.has(mConfidence) && f.number[0] < d.threshold(f) && len(r.low) < maxOpen {
			r.low = append(r.low, strings.Clone(node))
		}
	case vNodeSuspended, vCapBreached, vOrchestrator, vClarRequested, vAskRequested:
		if len(r.low) == 0 || !d.escalates(f, v) {
			break
		}
		// One action belongs to one decision: that of the same node. An orchestrator
		// has a node of its own, and an action may have none: then the latest
		// decision counts. Otherwise it is a decision without a node.
		i := slices.Index(r.low, node)
		if i < 0 && (v == vOrchestrator || node == "") {
			i = len(r.low) - 1
		}
		if i < 0 {
			i = slices.Index(r.low, "")
		}
		if i >= 0 {
			r.low = slices.Delete(r.low, i, i+1)
		}
	case vNodeCompleted:
		if node != "" && slices.Contains(r.low, node) {
			return broken(RuleEscalate, f, "/type", "the node decided with a confidence below the threshold, and the decision was not escalated")
		}
	case vRunCompleted:
		if len(r.low) > 0 {
			return broken(RuleEscalate, f, "/type", "a decision with a confidence below the threshold was not escalated")
		}
		r.ended = true
	case vRunFailed, vRunCancelled:
		r.ended = true
	}
	if r.ended {
		r.calls, r.low = nil, nil
	}
	r.last = f.sequence
	return nil
}

// threshold returns the confidence below which a decision must be escalated.
func (d *Decoder) threshold(f *fields) float64 {
	if d.o.ThresholdOf == nil {
		return DefaultThreshold
	}
	return d.o.ThresholdOf(f.runID, f.val[mAgentID])
}

// escalates reports whether a line is the action that must follow a decision
// below the threshold. That is the published one, a suspension for low
// confidence, or under RFC0002 also one of the three of its section F.
func (d *Decoder) escalates(f *fields, v int) bool {
	if v == vNodeSuspended {
		return f.val[mReason] == ReasonLowConfidence || memberText(string(f.details)+"}", "kind") == ReasonLowConfidence
	}
	if d.o.Profile != RFC0002 {
		return false
	}
	switch v {
	case vCapBreached:
		return f.val[mKind] == CapConfidenceEscalationSuppressed
	case vOrchestrator:
		return memberText(f.val[mDecision], "kind") == "ask-user"
	}
	return v == vClarRequested || v == vAskRequested
}

// memberText returns the text of a member of an object, or "".
func memberText(object, member string) string {
	for name, value := range jsonwire.Members(object) {
		if name == member {
			return jsonwire.Text(value)
		}
	}
	return ""
}
