package openwop

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// checkLetter checks the forms that the RFC's text gives to a tool and to a handoff: see
// [Options.Letter].
func (d *Decoder) checkLetter() *agentevents.RuleError {
	if !d.o.Letter || d.o.Profile != RFC0002 {
		return nil
	}
	tool := ""
	switch p := d.r.Ev.Payload.(type) {
	case *agentevents.ToolCalled:
		tool = p.ToolID
	case *agentevents.ToolReturned:
		tool = p.ToolID
	case *agentevents.AgentHandoff:
		if d.r.Ev.NodeID == "" {
			return breaks(RuleNode, "/nodeId", "is required: an agent hands over within a node")
		}
		if p.From.AgentID == p.To.AgentID {
			return breaks(RuleForm, "/payload/to", "is the agent that hands over; legal: another one")
		}
		return nil
	default:
		return nil
	}
	if scope, id, _ := strings.Cut(tool, ":"); scope == "" || id == "" {
		return breaks(RuleID, "/payload/toolId", jsonwire.Brief(tool)+" is not a scope and an id with a colon between them")
	}
	return nil
}

// A looseBlock is an open block without an id.
type looseBlock struct {
	agentID, node string
	by            string // another agent that has reasoned in the node since, or ""
}

// checkLoose checks that no node, and no run, completes with a block without an id that another agent
// seems to have closed: see [Options.Letter]. Both agents may reason at once: until then the block may
// still be closed.
func (d *Decoder) checkLoose(r *runState) *agentevents.RuleError {
	if !d.o.Letter {
		return nil
	}
	ev := d.r.Ev
	own := func(b looseBlock) bool { return b.agentID == ev.AgentID && b.node == ev.NodeID }
	done := func(b looseBlock) bool { return b.node == ev.NodeID }
	switch p := ev.Payload.(type) {
	case *agentevents.AgentReasoningDelta:
		if p.BlockID == "" && !slices.ContainsFunc(r.loose, own) {
			r.loose = engine.Limited(r.loose, looseBlock{agentID: strings.Clone(ev.AgentID), node: strings.Clone(ev.NodeID)})
		}
		return nil
	case *agentevents.AgentReasoned:
		if i := slices.IndexFunc(r.loose, own); i >= 0 {
			r.loose = slices.Delete(r.loose, i, i+1)
		} else if i := slices.IndexFunc(r.loose, done); i >= 0 && p.BlockID == "" {
			r.loose[i].by = strings.Clone(ev.AgentID)
		}
		return nil
	case *agentevents.NodeCompleted:
	case *agentevents.RunCompleted:
		done = func(looseBlock) bool { return true }
	default:
		return nil
	}
	i := slices.IndexFunc(r.loose, func(b looseBlock) bool { return b.by != "" && done(b) })
	if i < 0 {
		return nil
	}
	b := r.loose[i]
	r.loose = slices.DeleteFunc(r.loose, done) // told once
	return breaks(RuleBlock, "/type",
		"completes with an open block of "+jsonwire.Brief(b.agentID)+", after which "+jsonwire.Brief(b.by)+" reasons")
}
