package openwop

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents/internal/jsonwire"
)

// runState is what a strict decoder knows of a run. It is kept for every run
// of the log.
type runState struct {
	last  uint64
	ended bool
	calls []call
	low   []string // nodes of decisions below the threshold that wait for their escalation
}

// A call waits for its return. Its id is the agent's.
type call struct{ agentID, callID, eventID string }

// checkRun checks what a line says against those before it. What it remembers
// it copies: texts of a line keep the whole line in memory.
func (d *Decoder) checkRun(f *fields, v int) error {
	r := d.runs[f.runID]
	if r == nil {
		if d.runs == nil {
			d.runs = map[string]*runState{}
		}
		r = &runState{}
		d.runs[strings.Clone(f.runID)] = r
	} else if f.sequence <= r.last {
		return broken(RuleSequence, f, "/sequence", strconv.FormatUint(f.sequence, 10)+" does not follow "+strconv.FormatUint(r.last, 10))
	}
	if r.ended {
		return broken(RuleTerminal, f, "/type", "the run has ended")
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
		// A confidence of 0 that is not there is none.
		if f.seen.has(mConfidence) && f.number[0] < d.threshold(f) && len(r.low) < maxOpen {
			r.low = append(r.low, strings.Clone(node))
		}
	case vNodeSuspended, vCapBreached, vOrchestrator, vClarRequested, vAskRequested:
		if len(r.low) == 0 || !d.escalates(f, v) {
			break
		}
		// One action for one decision: that of the same node, or else, as an
		// orchestrator has a node of its own, the latest, or else one of no node.
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
			return broken(RuleEscalate, f, "/type", "the node decided with a confidence below the threshold, and nothing was done about it")
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

// threshold returns the confidence below which a decision is to be escalated.
func (d *Decoder) threshold(f *fields) float64 {
	if d.o.ThresholdOf == nil {
		return DefaultThreshold
	}
	return d.o.ThresholdOf(f.runID, f.val[mAgentID])
}

// escalates reports whether a line is the action that is asked for after a
// decision below the threshold: what is published, a suspension for low
// confidence, or under RFC0002 one of the three of its section F.
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
