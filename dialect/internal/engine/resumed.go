package engine

import (
	"cmp"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// Resumed is a member of the row of a start: the start continues an earlier one. It is for
// documents without such a member, because without it a second start breaks a rule.
func Resumed() Member {
	m := May("resumed", "resumed", resumed{})
	m.Loose, m.Plain = true, true
	return m
}

type resumed struct{ Value }

func (resumed) Parse(r *Reader, at any) error {
	if is, err := r.S.Bool(); err != nil || !is {
		return ErrMisfit
	}
	*at.(*bool) = true
	return nil
}

func (resumed) Schema() map[string]any { return map[string]any{} } // another value is an extra member

// restarts finds the starts that are legal only because their run was resumed. It is for documents
// that have no line for the resume of a run, so that the line of the start records it. Runs and
// agents are known by hashes.
type restarts struct {
	resumes Recent[uint64, int] // of runs
	open    Recent[uint64, int] // agents that have not ended: the resumes of their run before the start
	ends    bool                // the event ends the execution that alone identifies an open agent
}

// resume notes an event. It sets Resumed in a start that is legal only because its run was
// resumed. A node that fails ends the agent that only its execution identifies: see line.
func (w *Writer) resume(ev *agentevents.Event) {
	r := &w.restarts
	run := func() uint64 { return jsonwire.Hash(ev.RunID) }
	key := func(agent string) uint64 { return jsonwire.Mix(run(), jsonwire.Hash(agent)) }
	switch p := ev.Payload.(type) {
	case *agentevents.RunResumed:
		r.resumes.Set(run(), r.resumes.Of(run())+1)
	case *agentevents.AgentEnded, *agentevents.NodeCompleted, *agentevents.NodeFailed:
		_, r.ends = r.open.Get(key(ev.NodeRunID))
		r.ends = r.ends && ev.AgentID == "" && ev.NodeRunID != ""
		if _, agent := p.(*agentevents.AgentEnded); agent {
			r.open.Delete(key(ev.SpanID))
			r.open.Delete(key(cmp.Or(ev.AgentID, ev.NodeRunID)))
		} else if r.ends { // an agent with an id goes on
			r.open.Delete(key(ev.NodeRunID))
		}
	case *agentevents.AgentStarted:
		agent, resumes := key(cmp.Or(ev.AgentID, ev.NodeRunID, ev.SpanID)), r.resumes.Of(run())
		if before, open := r.open.Get(agent); open && before < resumes && !p.Resumed {
			again := *p
			again.Resumed = true
			ev.Payload = &again
		}
		r.open.Set(agent, resumes)
	}
}
