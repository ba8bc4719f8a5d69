package stats

import (
	"slices"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// This file keeps the memory of many runs small. The figures of a run are known when its
// last event is, and that may come long after its end: an audit, the end of the session,
// another file. So a run without events for a while is put away as a small text, from
// which its fold can be made again.

func newFold() *agentevents.Fold { return agentevents.NewFold(options()) }

func options() agentevents.FoldOptions {
	return agentevents.FoldOptions{KeepCalls: -1, MaxViolations: -1}
}

// note notes that a run has a further event, and puts away a run that had none since the
// last look at it when there are many. A run that goes on after it was put away keeps its
// fold until it has had as many events again, and not few, or ends: to pack costs more than an event.
func (c *Collector) note(r *run, p agentevents.Payload) {
	r.events++
	r.active = true
	switch p.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		r.keep = 0
	}
	if r.queued || r.events < r.keep {
		return
	}
	r.queued = true
	c.live = append(c.live, r)
	for len(c.live) > maxLive {
		first := c.live[0]
		c.live = c.live[1:]
		if first.active {
			first.active = false
			c.live = append(c.live, first)
		} else {
			first.queued = false
			c.putAway(first)
		}
	}
}

// putAway takes the fold of a run.
func (c *Collector) putAway(r *run) {
	s := r.fold.Snapshot()
	lighten(s)
	c.buf = s.AppendJSON(c.buf[:0])
	r.fold, r.packed = nil, sparse(string(c.buf))
}

// lighten takes out of a snapshot what is large and no figure is about.
func lighten(s *agentevents.RunSnapshot) {
	s.Inputs, s.Result, s.SessionResult, s.RunOrchestrator = "", "", "", ""
	s.SessionGoal, s.Name, s.CancelReason, s.CurrentNodeID = "", "", "", ""
	s.State, s.Outputs, s.Blackboard, s.Inbox = nil, nil, nil, nil
	s.NodeStatus, s.NodeRuns, s.Suspended, s.EdgeStatus, s.LoopCounters, s.AgentSessions = nil, nil, nil, nil, nil, nil
	s.Messages, s.RetractedMessages, s.Retracted, s.Clarifications, s.Budgets, s.Checkpoints, s.Unknown = nil, nil, nil, nil, nil, nil, nil
	for _, a := range s.Agents {
		a.Task, a.Text, a.Reasoning, a.Result, a.StructuredOutput, a.ProviderSessionID = "", "", "", "", "", ""
		a.LastError = agentevents.Opt[agentevents.ErrorInfo]{}
		a.Error.V = agentevents.ErrorInfo{} // that there is one is said
		for i := range a.Earlier {
			t := &a.Earlier[i]
			t.Task, t.Result, t.Error, t.LastError = "", "", agentevents.Opt[agentevents.ErrorInfo]{}, agentevents.Opt[agentevents.ErrorInfo]{}
		}
	}
	for i := range s.Issues {
		s.Issues[i].Issue = ""
	}
	for i := range s.Handoffs {
		s.Handoffs[i].Reason = ""
	}
	for i := range s.Tasks {
		s.Tasks[i].Goal = ""
	}
	for i := range s.Approvals {
		s.Approvals[i].Action, s.Approvals[i].Feedback = "", ""
	}
}

// sparse leaves out the members of a snapshot that are empty, and what the fold remembers
// to tell repeated events: Event does not give it those.
func sparse(snapshot string) string {
	var b strings.Builder
	sep := byte('{')
	for name, value := range jsonwire.Members(snapshot) {
		switch value {
		case "[]", "{}", `""`, "0":
			continue
		}
		if name == "resume" && jsonwire.HasMember(value, "begun") { // without it, all of it tells that the fold made it
			value = only(value, "opened", "begun", "cut", "resumes", "workflows", "finalized")
		}
		b.WriteByte(sep)
		sep = ','
		b.WriteString(jsonwire.Quote(name))
		b.WriteByte(':')
		b.WriteString(value)
	}
	b.WriteByte('}')
	return noUsage.Replace(b.String())
}

// noUsage takes out the empty members of the usage of agents. A quote inside a JSON string
// is escaped, so they are not parts of texts.
var noUsage = strings.NewReplacer(`"models":{},`, "", `"reported":[],`, "", `,"earlier":[]`, "")

// only returns an object with the members that have one of the names.
func only(object string, names ...string) string {
	var b strings.Builder
	b.WriteByte('{')
	for name, value := range jsonwire.Members(object) {
		if slices.Contains(names, name) {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteString(jsonwire.Quote(name) + ":" + value)
		}
	}
	b.WriteByte('}')
	return b.String()
}

// wake gives a run that was put away a fold.
func (r *run) wake() {
	fold, err := agentevents.ResumeFold(r.unpack(), options())
	if err != nil {
		panic("stats: a packed snapshot is damaged: " + err.Error()) // impossible: putAway wrote it
	}
	r.fold, r.packed, r.keep = fold, "", r.events+max(r.events, 32)
}

// snapshot returns the state of a run.
func (r *run) snapshot() *agentevents.RunSnapshot {
	if r.fold == nil {
		return r.unpack()
	}
	return r.fold.Snapshot()
}

// ended returns the state of a run after the last event of all runs: the end of its session may
// be another run's.
func (c *Collector) ended(r *run) *agentevents.RunSnapshot {
	s := r.snapshot()
	end, ended := c.ends.After(s.SessionID, r.went)
	if !ended || s.Status.Terminal() {
		return s
	}
	s.SessionEndedAt, s.SessionStatus = end.Time, end.Status
	fold, err := agentevents.ResumeFold(s, options())
	if err != nil {
		return s // impossible: a fold made the snapshot
	}
	return fold.Snapshot()
}

func (r *run) unpack() *agentevents.RunSnapshot {
	s := &agentevents.RunSnapshot{}
	if err := s.UnmarshalJSON([]byte(r.packed)); err != nil {
		panic("stats: a packed snapshot is damaged: " + err.Error()) // impossible: putAway wrote it
	}
	return s
}
