package openwop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// runState is a strict decoder's record of a run. The decoder keeps one for every run of the log.
type runState struct {
	last   uint64
	recent []delivered // the latest events: one that comes again changes nothing
	begun  bool        // the log has the run from its start on
	ended  bool

	invocations  []string // that have not completed
	calls        []call
	blocks       []openBlock
	loose        []looseBlock
	low          []decision // those below the threshold that are not escalated yet
	escalated    []decision // the others
	just         bool       // nothing has come after the action of the last of them
	threshold    agentevents.Opt[float64]
	orchestrator string
	closed       []string // conversations
	nodes        engine.Recent[string, nodeState]

	fold  *agentevents.Fold // nil if the caller has one
	found *agentevents.RuleError
}

// A delivered is an event that was read: its sequence and a hash of its content.
type delivered struct{ sequence, hash uint64 }

// A call is a tool call without a return. Call ids are unique to an agent.
type call struct{ agentID, callID, toolID, eventID string }

// An openBlock is a block of reasoning of which only deltas were read.
type openBlock struct{ agentID, blockID string }

// A decision is one with a confidence below the threshold.
type decision struct {
	node, eventID         string
	confidence, threshold float64
}

// String names the decision, for a person who looks for it.
func (d decision) String() string {
	return fmt.Sprintf("the decision %s has the confidence %g, the threshold is %g", jsonwire.Brief(d.eventID),
		d.confidence, d.threshold)
}

// A nodeState is how far a node is.
type nodeState struct {
	stage   nodeStage
	attempt int
}

type nodeStage uint8

const (
	nodeUnseen nodeStage = iota
	nodeActed            // agents have acted in it, and it has not started
	nodeRuns             // it has started
	nodeRests            // it waits, has failed or was skipped: it may start again
	nodeDone             // it has completed
)

// The rules of package agentevents that the document has, too, and only a fold knows.
var folded = []agentevents.Rule{agentevents.RuleToolCallOpen, agentevents.RuleDeltaIndex, agentevents.RuleMessageGroup}

// checkRun checks a line against the earlier lines of its run. It copies the remembered texts,
// because a text of a line keeps the whole line in memory.
func (d *Decoder) checkRun(line string) *agentevents.RuleError {
	ev := d.r.Ev
	r, known := d.runs.Use(ev.RunID)
	if !known {
		r = new(runState)
		if !d.o.Folded {
			found := func(broken *agentevents.RuleError) {
				if slices.Contains(folded, broken.Rule) {
					r.found = broken
				}
			}
			r.fold = agentevents.NewFold(agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1, OnViolation: found})
		}
		d.runs.Set(strings.Clone(ev.RunID), r)
	}
	this := delivered{ev.Sequence, d.hash(line)}
	switch {
	case slices.Contains(r.recent, this):
		return nil
	case known && ev.Sequence <= r.last:
		return breaks(RuleSequence, "/sequence",
			strconv.FormatUint(ev.Sequence, 10)+" is not above "+strconv.FormatUint(r.last, 10)+
				", the latest sequence of the run")
	case r.ended:
		return breaks(RuleTerminal, "/type", "comes after the end of the run")
	}
	r.last = ev.Sequence
	payload := jsonwire.Member(line, "payload")
	broken := cmp.Or(d.checkNodes(r), d.checkAgents(r), d.checkLoose(r),
		d.checkConversation(r, payload), d.checkEscalation(r))
	if r.fold != nil {
		r.found = nil
		r.fold.Apply(*ev)
		broken = cmp.Or(broken, r.found)
	}
	switch ev.Payload.(type) {
	case *agentevents.RunStarted:
		r.threshold = confidenceOf(payload, "configurable", "escalationThreshold")
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		*r = runState{last: r.last, recent: r.recent, ended: true}
	}
	if broken == nil {
		r.recent = engine.Limited(r.recent, this)
	}
	return broken
}

// hash returns a hash of the event that does not depend on the order of the line's members.
func (d *Decoder) hash(line string) uint64 {
	text, err := d.r.Ev.AppendJSON(d.scratch[:0])
	if err != nil {
		return jsonwire.Hash(line)
	}
	d.scratch = text
	return jsonwire.Hash(text)
}

// checkNodes checks the order of a node's events. Events may be missing if the log does not begin
// with its run, and if the node is paused, restored or resumed.
func (d *Decoder) checkNodes(r *runState) (broken *agentevents.RuleError) {
	id, typ := d.r.Ev.NodeID, d.r.Type
	was, _ := r.nodes.Use(id)
	now, fault := was.after(typ, d.r.Ev.Payload)
	if domain, verb, _ := strings.Cut(typ, "."); domain == "run" {
		r.begun = verb == "started"
		r.nodes = engine.Recent[string, nodeState]{}
		return nil
	}
	if id == "" {
		return nil
	}
	r.nodes.Set(strings.Clone(id), now)
	if fault != "" && (r.begun || !strings.HasPrefix(typ, "node.")) {
		broken = breaks(RuleNode, "/type", fault)
	}
	return broken
}

// The faults of the order of a node's events.
const (
	startsActed    = "comes after an event of an agent in the node"
	startsRunning  = "starts a node that runs, and it is not a further attempt"
	completesUnrun = "completes a node that has not started"
	actsDone       = "belongs to an agent in a node that has completed"
)

// after returns the state of a node after an event, and the fault of the event's place or "".
func (n nodeState) after(typ string, p agentevents.Payload) (now nodeState, fault string) {
	now = n
	switch domain, _, _ := strings.Cut(typ, "."); domain {
	case "node":
		now.stage = nodeRests
		switch p := p.(type) {
		case *agentevents.NodeStarted:
			now = nodeState{nodeRuns, p.Attempt.Or(n.attempt)}
			if n.stage == nodeActed {
				fault = startsActed
			} else if n.stage == nodeRuns && now.attempt <= n.attempt {
				fault = startsRunning
			}
		case *agentevents.NodeCompleted:
			if now.stage = nodeDone; n.stage != nodeRuns && n.stage != nodeRests {
				fault = completesUnrun
			}
		}
	case "agent":
		if n.stage == nodeUnseen {
			now.stage = nodeActed
		} else if n.stage == nodeDone {
			fault = actsDone
		}
	}
	return now, fault
}

// checkAgents checks the actions of agents against their earlier actions.
func (d *Decoder) checkAgents(r *runState) *agentevents.RuleError {
	ev := d.r.Ev
	switch p := ev.Payload.(type) {
	case *agentevents.ToolCalled:
		r.calls = engine.Limited(r.calls,
			call{strings.Clone(ev.AgentID), strings.Clone(p.CallID), strings.Clone(p.ToolID), strings.Clone(ev.ID)})
	case *agentevents.ToolReturned:
		return d.checkReturn(r, p)
	case *agentevents.AgentReasoningDelta:
		if b := (openBlock{ev.AgentID, p.BlockID}); p.BlockID != "" && !slices.Contains(r.blocks, b) {
			r.blocks = engine.Limited(r.blocks, openBlock{strings.Clone(b.agentID), strings.Clone(b.blockID)})
		}
	case *agentevents.AgentReasoned:
		if i := slices.Index(r.blocks, openBlock{ev.AgentID, p.BlockID}); i >= 0 {
			r.blocks = slices.Delete(r.blocks, i, i+1)
		} else if i := slices.IndexFunc(r.blocks, func(b openBlock) bool { return b.blockID == p.BlockID }); i >= 0 {
			return breaks(RuleBlock, "/payload/agentId", "closes a block of "+jsonwire.Brief(r.blocks[i].agentID))
		}
	case *agentevents.Unknown:
		return d.checkInvocation(r, string(p.Raw))
	case *agentevents.OrchestratorDecided:
		if r.orchestrator == "" {
			r.orchestrator = strings.Clone(ev.AgentID)
		} else if r.orchestrator != ev.AgentID {
			return breaks(RuleOrchestrator, "/payload/agentId",
				"is not "+jsonwire.Brief(r.orchestrator)+", the orchestrator of the run")
		}
	}
	return nil
}

// contents are the members of a payload that would reveal the content of an invocation, whose lines
// have only identifiers and counts.
var contents = []string{"prompt", "result", "body", "input", "output", "apiKey", "secret", "credentials", "token"}

// checkInvocation checks the lines of an invocation and of a memory, which the vocabulary does
// not have.
func (d *Decoder) checkInvocation(r *runState, payload string) *agentevents.RuleError {
	at := func(name string) string { return jsonwire.Member(payload, name) }
	id := jsonwire.Text(at("invocationId"))
	switch renamed(SchemaV1, d.r.Type) {
	case "agent.memory.consolidated":
		var in, out int64
		if json.Unmarshal([]byte(at("inputCount")), &in) == nil &&
			json.Unmarshal([]byte(at("outputCount")), &out) == nil && out > in {
			return breaks(RuleMemory, "/payload/outputCount",
				strconv.FormatInt(out, 10)+" is above inputCount, "+strconv.FormatInt(in, 10))
		}
		return nil
	case "agent.invocation.started":
		r.invocations = engine.Limited(r.invocations, strings.Clone(id))
	case "agent.invocation.completed":
		if i := slices.Index(r.invocations, id); i >= 0 {
			r.invocations = slices.Delete(r.invocations, i, i+1)
		} else if r.begun {
			return breaks(RuleInvocation, "/payload/invocationId", "completes an invocation that has not started")
		}
	default:
		return nil
	}
	for _, name := range contents {
		if at(name) != "" {
			return breaks(RuleInvocation, "/payload/"+name, "has content; legal: identifiers and counts")
		}
	}
	return nil
}

// checkReturn checks a return against its call. That there is one is a rule of the fold.
func (d *Decoder) checkReturn(r *runState, p *agentevents.ToolReturned) *agentevents.RuleError {
	ev := d.r.Ev
	i := slices.IndexFunc(r.calls, func(c call) bool { return c.callID == p.CallID && c.agentID == ev.AgentID })
	if i < 0 {
		if ev.CausationID == "" && !refused(p.Status) {
			return breaks(RuleCausation, "/causationId", "is required: it names the event of the call")
		}
		return nil
	}
	c := r.calls[i]
	r.calls = slices.Delete(r.calls, i, i+1)
	switch {
	case ev.CausationID != c.eventID:
		return breaks(RuleCausation, "/causationId", "is not "+jsonwire.Brief(c.eventID)+", the event of the call")
	case c.toolID != p.ToolID:
		return breaks(RuleTool, "/payload/"+d.doc.toolName, "is not "+jsonwire.Brief(c.toolID)+", the tool of the call")
	}
	return nil
}

// checkConversation checks that nothing follows the end of a conversation.
func (d *Decoder) checkConversation(r *runState, payload string) *agentevents.RuleError {
	if !strings.HasPrefix(d.r.Type, "conversation.") {
		return nil
	}
	id := jsonwire.Text(jsonwire.Member(payload, "conversationId"))
	if d.r.Type == "conversation.closed" {
		r.closed = engine.Limited(r.closed, strings.Clone(id))
	} else if slices.Contains(r.closed, id) {
		return breaks(RuleTerminal, "/payload/conversationId", "comes after the end of the conversation")
	}
	return nil
}

// checkEscalation checks that exactly one action follows a decision below the threshold,
// before its node or the run ends.
func (d *Decoder) checkEscalation(r *runState) *agentevents.RuleError {
	ev, node := d.r.Ev, d.r.Ev.NodeID
	just := r.just
	r.just = false
	switch p := ev.Payload.(type) {
	case *agentevents.AgentDecided:
		if threshold := r.threshold.Or(d.o.ThresholdOf(ev.RunID, ev.AgentID)); p.Confidence.OK && p.Confidence.V < threshold {
			r.low = engine.Limited(r.low, decision{strings.Clone(node), strings.Clone(ev.ID), p.Confidence.V, threshold})
		}
	case *agentevents.NodeSuspended, *agentevents.CapBreached, *agentevents.OrchestratorDecided,
		*agentevents.ClarificationRequested:
		if !d.escalates(r, p) {
			break
		}
		// One action belongs to one decision, preferably of the same node. An orchestrator has a
		// node of its own, and an action may have none: then the latest decision counts. Otherwise
		// it is a decision without a node.
		at := func(node string) int {
			return slices.IndexFunc(r.low, func(d decision) bool { return d.node == node })
		}
		_, orchestrated := p.(*agentevents.OrchestratorDecided)
		i := len(r.low) - 1
		if node != "" && !orchestrated {
			if i = at(node); i < 0 {
				i = at("")
			}
		}
		if i >= 0 {
			r.escalated = engine.Limited(r.escalated, r.low[i])
			r.low = slices.Delete(r.low, i, i+1)
			r.just = true
		} else if _, waits := p.(*agentevents.NodeSuspended); !waits && again(r, ev, just) {
			return breaks(RuleEscalate, "/type",
				"is a second action after a decision with a confidence below the threshold; legal: one")
		}
	case *agentevents.NodeCompleted:
		own := func(d decision) bool { return d.node == node }
		if i := slices.IndexFunc(r.low, own); i >= 0 {
			broken := breaks(RuleEscalate, "/type", "completes a node whose decision was not escalated: "+r.low[i].String())
			r.low = slices.DeleteFunc(r.low, own) // told once
			return broken
		}
	case *agentevents.RunCompleted:
		if len(r.low) > 0 {
			return breaks(RuleEscalate, "/type", "completes a run with a decision that was not escalated: "+r.low[0].String())
		}
	}
	return nil
}

// again reports whether an action is the second one after a decision: it names the
// decision as its cause, or comes directly after the first action, or can only be about a
// decision. Questions and decisions of the orchestrator may be about something else.
func again(r *runState, ev *agentevents.Event, just bool) bool {
	_, asked := ev.Payload.(*agentevents.ClarificationRequested)
	_, suppressed := ev.Payload.(*agentevents.CapBreached)
	return slices.ContainsFunc(r.escalated, func(made decision) bool {
		own := made.node == ev.NodeID
		return made.eventID == ev.CausationID || just && (own || !asked) || suppressed && own
	})
}

// escalates reports whether an event is the action that must follow a decision
// below the threshold. That is the published one, a suspension for low
// confidence, or under RFC0002 also one of the three of its section F.
// A clarification is that only in a run without an orchestrator, which would have to ask.
func (d *Decoder) escalates(r *runState, p agentevents.Payload) bool {
	switch p := p.(type) {
	case *agentevents.NodeSuspended:
		return p.Reason == ReasonLowConfidence ||
			jsonwire.Text(jsonwire.Member(string(p.Details), "kind")) == ReasonLowConfidence
	case *agentevents.CapBreached:
		return p.Cap == CapConfidenceEscalationSuppressed // only RFC0002 has it
	case *agentevents.OrchestratorDecided:
		return d.o.Profile == RFC0002 && jsonwire.Text(jsonwire.Member(string(p.Decision), "kind")) == "ask-user"
	case *agentevents.ClarificationRequested:
		return d.o.Profile == RFC0002 && r.orchestrator == ""
	}
	return false
}

// confidenceOf returns the confidence that an object has in another one, if it is one.
func confidenceOf(raw, object, name string) agentevents.Opt[float64] {
	v, err := strconv.ParseFloat(jsonwire.Member(jsonwire.Member(raw, object), name), 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return agentevents.Opt[float64]{}
	}
	return agentevents.Some(v)
}
