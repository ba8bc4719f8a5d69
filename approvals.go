package agentevents

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/agentevents/agentevents/internal/canonjson"
)

// An approval is the state of an ApprovalRequested until its one call is made.
type approval struct {
	callKey             // the agent that may call, and the call that the request names
	tool, digest string // of the call to allow; empty for any
	stands       Opt[time.Duration]
	asked        time.Time // time of the request
	granted      bool
	answered     time.Time // time of the grant
	at           int       // index of the record in a fold
}

// tooOld reports whether the time of a grant is over.
func (x *approval) tooOld(now time.Time) bool {
	return x.stands.OK && now.After(x.answered.Add(x.stands.V))
}

// approvals are those that are asked for or granted, and not used.
type approvals struct {
	byID   map[string]*approval
	byCall map[callKey]string  // ids of granted ones by the calls that their requests name
	spans  map[string][]string // ids by the agents that have no id of their own yet
	free   *approval           // for use again
}

// next returns an approval to fill.
func (a *approvals) next() *approval {
	if x := a.free; x != nil {
		a.free = nil
		return x
	}
	return new(approval)
}

func (a *approvals) add(id string, x *approval) {
	put(&a.byID, id, x)
	if x.granted && x.call != "" {
		put(&a.byCall, x.callKey, id)
	}
}

// rename gives the approvals of an agent that had no id to its id.
func (a *approvals) rename(agent, to string) {
	for _, id := range a.spans[agent] {
		if x := a.byID[id]; x != nil && x.agent == agent {
			if a.byCall[x.callKey] == id {
				delete(a.byCall, x.callKey)
			}
			x.agent = to
			a.add(id, x)
		}
	}
	delete(a.spans, agent)
}

// unnamed notes that the agent of an approval has no id of its own yet.
func (a *approvals) unnamed(agent, id string) { put(&a.spans, agent, append(a.spans[agent], id)) }

func (a *approvals) drop(id string) {
	x := a.byID[id]
	if x == nil {
		return
	}
	if a.byCall[x.callKey] == id {
		delete(a.byCall, x.callKey)
	}
	delete(a.byID, id)
	a.free = x
}

// grant notes that an approval is granted at a time.
func (a *approvals) grant(id string, at time.Time) {
	if x := a.byID[id]; x != nil {
		x.granted, x.answered = true, at
		a.add(id, x)
	}
}

// digest returns the name of the hash and the SHA-256 of arguments in their canonical form.
// Absent arguments have the digest of the empty text.
func (j JSON) digest() string {
	text, err := canonjson.Append(nil, string(j))
	if err != nil { // absent, or as another program wrote them
		text = []byte(j)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// RuleApprovalBinds: a call that names an approval is the one that was approved: the approval
// is granted and not used yet, the call has its agent, tool and arguments, and comes within
// the Timeout of the request after the grant.
const RuleApprovalBinds Rule = "approval-binds"

// checkApproval checks rule approval-binds. It is apart from check because it needs the
// arguments as they are recorded.
func (m *machine) checkApproval(ev *Event, sub *subject) *RuleError {
	p, ok := ev.Payload.(*ToolCalled)
	if !ok || p.ApprovalID == "" {
		return nil
	}
	state := ""
	x := m.approvals.byID[p.ApprovalID]
	switch {
	case x == nil && m.Resume.cut:
		return nil
	case x == nil:
		state = "not granted, or used"
	case !x.granted:
		state = "open"
	case x.agent != "" && x.agent != sub.key:
		state = "another agent's"
	case x.tool != "" && x.tool != p.ToolID:
		state = "for another tool"
	case x.digest != "" && x.digest != p.Arguments.digest():
		state = "for other arguments"
	case x.tooOld(ev.Time):
		state = "too old"
	default:
		return nil
	}
	return m.refuse(ev, RuleApprovalBinds, named("approval", p.ApprovalID), state, "an approval allows one call, as it was approved and in its time; legal: approval.granted for this call first")
}

// useApproval notes that the call that an approval allows was made.
func (m *machine) useApproval(id, call string) {
	x := m.approvals.byID[id]
	if x == nil {
		return
	}
	if m.view != nil {
		m.view.s.Approvals[x.at].UsedBy = call
	}
	m.approvals.drop(id)
}

// bindApproval gives a request the digest of the arguments that it names, unless it has one. It
// returns the payload to record: a copy, as the caller's may be read elsewhere.
func (p *ApprovalRequested) bindApproval() *ApprovalRequested {
	if p.ArgumentsHash != "" || p.Arguments == "" && (p.ToolID == "" || p.CallID != "") {
		return p
	}
	out := *p
	out.ArgumentsHash = out.Arguments.digest()
	return &out
}
