// Package resume lists the things that a run needs to go on after a pause or a crash, and records
// the resumption.
//
// A [Plan] is made of the snapshot of the run, wherever that comes from: a fold of the log, or a
// store. It names each agent that was running, with its session at the provider and its prompt, and
// everything that is open. [Plan.Apply] records the resumption in the run that
// [agentevents.Emitter.Resume] has returned. To call the provider again is up to the runtime:
//
//	plan, err := resume.New(snapshot, resume.Options{Message: message})
//	run, err := emitter.Resume(plan.Snapshot)
//	receipt, err := plan.Apply(ctx, run)
//	for _, a := range plan.Agents {
//		run.Agent(a.AgentID).Emit(ctx, &agentevents.AgentStarted{Task: a.Task, Resumed: true})
//		go query(ctx, a.SessionID, a.Prompt)
//	}
//
// A runtime without such sessions sends the model the messages that the log has of an agent:
// see [Conversation].
//
// Log and snapshot have texts and arguments redacted, and cut where they were too long for a
// line. So another process cannot run a call that waits for its approval from
// ApprovalRequested.Arguments: a runtime that has to keeps the arguments apart.
//
// Mirrors: the resume specification, "Resume Semantics".
package resume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentevents/agentevents"
)

// DefaultPrompt is the prompt of agents without another one.
const DefaultPrompt = "continue"

// An Action is the treatment of something that is open.
type Action uint8

// The actions.
const (
	// Default lets questions wait, and closes each call in which nothing waits: no question
	// about it, and nothing of a sub-agent that is part of it.
	Default Action = iota
	// Close records that it came to no end: a call is interrupted, an approval rejected.
	// Clarifications have no such answer and cannot be closed. A call closes with all that is part
	// of it: questions about it that wait, and sub-agents with their calls and questions. An agent
	// that starts again asks anew.
	Close
	// Wait leaves it open: somebody still works on the call, or answers the question. The
	// agent is not started again before that, as its start would close the question. Waiting
	// has more.
	Wait
	// AskAgain records an approval or a clarification once more, for people who have not
	// seen it or have forgotten it; it then waits. The approval allows the same call as
	// before; its Reason, Scope, Risk and Arguments stand in the first request only. A question
	// about a call that is closed is asked again, too. Calls cannot be asked again: an agent
	// that starts again calls its tools itself.
	AskAgain

	actions = iota
)

// Options configure a [Plan]. The zero Options are usable.
type Options struct {
	// Message is the prompt for the agents: Command.Message of the resume command. "" means
	// DefaultPrompt.
	Message string
	// NextSequence is the position in the log of a snapshot that has none, as snapshots in
	// the form of the resume specification have none: one above the highest sequence of
	// the run's log. 0 means that the snapshot has one.
	NextSequence uint64

	// The treatment of each open call and question. Nil means Default for all. Calls of models are
	// always closed: a broken connection cannot bring an answer.
	Call          func(*agentevents.ToolCallSnapshot) Action
	Approval      func(*agentevents.ApprovalSnapshot) Action
	Clarification func(*agentevents.ClarificationSnapshot) Action
}

// A Plan lists the steps by which a run goes on. It is not for concurrent use.
type Plan struct {
	// Snapshot is for Emitter.Resume. It is the one that New was given, with a position.
	Snapshot *agentevents.RunSnapshot
	// Prompt is the prompt for agents.
	Prompt string
	// Agents are those that were running and start again, in the order of their first
	// events. A sub-agent is one of them if it is part of no call of its parent, or of one
	// that stays open.
	Agents []Agent
	// Waiting are those that wait for an answer or a call, in the same order. They go on
	// when it comes. A runtime waits for an answer with Agent.Ask or AskQuestions and the id of
	// the question, and for a call as long as it takes. It then goes on with the agent: the call
	// that the question is about ends with Agent.OpenCall, and an AgentStarted with Resumed may
	// follow, but not come before the answer.
	Waiting []Agent
	// Ended are sub-agents that are part of a call that is closed, in the same order. Apply ends
	// them as aborted. They start again with the next call of their parent.
	Ended []Agent
	// Nodes are the ids of nodes that were running without an open agent, in order. Their work
	// is lost unless the runtime does it again.
	Nodes []string
	// Inbox are the commands that were received and not consumed.
	Inbox []agentevents.InboxItem

	modelCalls     []agentevents.ModelCallSnapshot
	calls          []*agentevents.ToolCallSnapshot            // to close, of agents that go on or do not work
	inside         map[string][]*agentevents.ToolCallSnapshot // to close, by the agents that end
	approvals      []question[agentevents.ApprovalSnapshot]
	clarifications []question[agentevents.ClarificationSnapshot]
	message        string
	applied        bool
}

// A question is an open question with its treatment.
type question[T any] struct {
	of     T
	action Action
}

// An Agent is one that was running.
type Agent struct {
	AgentID       string // its id, or its node's id in a snapshot without agents
	ParentAgentID string // the agent that started it, or ""
	NodeID        string // its node, or ""
	SessionID     string // its session at the provider, or "" if none was recorded: the conversation is lost
	Prompt        string // the prompt
	Task          string // AgentStarted.Task
	Model         string // AgentStarted.Model
}

// ErrEnded means that a run is over: nothing is left to go on with.
var ErrEnded = errors.New("resume: the run has ended")

// ErrNoPosition means that a snapshot lacks the position at which the log goes on: new events would
// have the sequences of old ones, and be lost as repeated ones. Set Options.NextSequence, or fold
// the log.
var ErrNoPosition = errors.New("resume: the snapshot has no position in the log")

// New returns the plan of a run. The snapshot is not changed.
func New(s *agentevents.RunSnapshot, o Options) (*Plan, error) {
	switch {
	case s == nil:
		return nil, errors.New("resume: the snapshot is nil")
	case s.TerminalKind != "" || s.Status.Terminal():
		return nil, fmt.Errorf("%w: it is %s", ErrEnded, cmp.Or(string(s.Status), string(s.TerminalKind)))
	case s.NextSequence == 0 && o.NextSequence == 0:
		return nil, ErrNoPosition
	case s.NextSequence != 0 && o.NextSequence != 0 && s.NextSequence != o.NextSequence:
		return nil, fmt.Errorf("resume: Options.NextSequence is %d, and the snapshot's is %d", o.NextSequence, s.NextSequence)
	}
	at := *s
	at.NextSequence = cmp.Or(s.NextSequence, o.NextSequence)
	p := &Plan{Snapshot: &at, Prompt: cmp.Or(o.Message, DefaultPrompt), Inbox: slices.Clone(s.Inbox),
		message: o.Message, modelCalls: slices.Clone(s.OpenModelCalls), inside: map[string][]*agentevents.ToolCallSnapshot{}}
	x, err := p.settle(s, o)
	if err != nil {
		return nil, err
	}
	p.place(s, x)
	return p, nil
}

// settle decides about everything that is open.
func (p *Plan) settle(s *agentevents.RunSnapshot, o Options) (*settling, error) {
	x := &settling{agents: s.Agents, kept: map[callKey]bool{}, closed: map[callKey]bool{},
		ended: map[string]bool{}, waiting: map[string]bool{}}
	if err := p.questions(s, o, x); err != nil {
		return nil, err
	}
	actions := make([]Action, len(s.OpenCalls))
	for i, c := range s.OpenCalls {
		var err error
		if actions[i], err = decide("call", c.CallID, o.Call, c, Default, Close, Wait); err != nil {
			return nil, err
		}
		if actions[i] == Wait {
			x.keep(callKey{c.AgentID, c.CallID})
		}
	}
	for i, c := range s.OpenCalls {
		at := callKey{c.AgentID, c.CallID}
		x.closed[at] = actions[i] == Close || actions[i] == Default && !x.kept[at]
	}
	for _, c := range s.OpenCalls {
		switch {
		case x.ends(c.AgentID):
			p.inside[c.AgentID] = append(p.inside[c.AgentID], c)
		case x.closed[callKey{c.AgentID, c.CallID}]:
			p.calls = append(p.calls, c)
		default:
			x.waiting[c.AgentID] = true
		}
	}
	p.approvals = slices.DeleteFunc(p.approvals, func(q question[agentevents.ApprovalSnapshot]) bool {
		return q.action != Close && !x.waits(callKey{q.of.AgentID, q.of.CallID}, q.action)
	})
	p.clarifications = slices.DeleteFunc(p.clarifications, func(q question[agentevents.ClarificationSnapshot]) bool {
		return !x.waits(callKey{q.of.AgentID, q.of.CallID}, q.action)
	})
	return x, nil
}

// questions decides about the open questions, and keeps the calls of those that stay open.
func (p *Plan) questions(s *agentevents.RunSnapshot, o Options, x *settling) error {
	for _, a := range s.Approvals {
		if !a.Open {
			continue
		}
		action, err := decide("approval", a.ApprovalID, o.Approval, &a, Wait, Close, AskAgain)
		if err != nil {
			return err
		}
		p.approvals = append(p.approvals, question[agentevents.ApprovalSnapshot]{a, action})
		if action != Close {
			x.keep(callKey{a.AgentID, a.CallID})
		}
	}
	for _, c := range s.Clarifications {
		if !c.Open {
			continue
		}
		action, err := decide("clarification", c.InterruptID, o.Clarification, &c, Wait, AskAgain)
		if err != nil {
			return err
		}
		p.clarifications = append(p.clarifications, question[agentevents.ClarificationSnapshot]{c, action})
		x.keep(callKey{c.AgentID, c.CallID})
	}
	return nil
}

// A settling has the consequences of the decisions about calls and questions: for the calls around
// them, and for the agents that are part of calls.
type settling struct {
	agents  map[string]*agentevents.AgentSnapshot
	kept    map[callKey]bool // something in it waits
	closed  map[callKey]bool // open calls, and whether Apply closes them
	ended   map[string]bool  // agents, and whether Apply ends them
	waiting map[string]bool  // agents that wait
}

// A callKey is an agent and the id of its call, which may be empty.
type callKey struct{ agent, call string }

// keep notes that something in a call waits, and so in each call that the call's agent is
// part of.
func (x *settling) keep(at callKey) {
	for !x.kept[at] {
		x.kept[at] = true
		a := x.agents[at.agent]
		if a == nil {
			return
		}
		at = callKey{a.ParentAgentID, a.ParentCallID}
	}
}

// ends reports whether Apply ends an agent: the call that it is part of is closed, or its
// parent ends.
func (x *settling) ends(agent string) bool {
	end, known := x.ended[agent]
	a := x.agents[agent]
	if known || a == nil || !a.Open || agent == "" {
		return end
	}
	x.ended[agent] = false // until it is known: in a log of others an agent may be its own ancestor
	end = a.ParentCallID != "" && x.closed[callKey{a.ParentAgentID, a.ParentCallID}] || x.ends(a.ParentAgentID)
	x.ended[agent] = end
	return end
}

// waits notes that an agent waits for a question that stays open or is asked again, and reports
// whether it does: a question closes with its call and its agent.
func (x *settling) waits(about callKey, action Action) bool {
	if x.ends(about.agent) || action == Wait && x.closed[about] {
		return false
	}
	x.waiting[about.agent] = true
	return true
}

// agent returns an agent as a plan has it.
func (p *Plan) agent(s *agentevents.RunSnapshot, a *agentevents.AgentSnapshot) Agent {
	return Agent{
		AgentID: a.AgentID, ParentAgentID: a.ParentAgentID, NodeID: a.NodeID, Prompt: p.Prompt, Task: a.Task, Model: a.Model,
		SessionID: cmp.Or(a.ProviderSessionID, s.AgentSessions[cmp.Or(a.NodeID, a.AgentID)]),
	}
}

// place finds the agents that start again, wait or end, and the nodes whose work is lost.
func (p *Plan) place(s *agentevents.RunSnapshot, x *settling) {
	withAgent := map[string]bool{} // nodes of agents, and whether one is open
	for _, a := range s.AgentsInOrder() {
		withAgent[a.NodeID] = withAgent[a.NodeID] || a.Open
		if !a.Open {
			continue
		}
		switch agent := p.agent(s, a); {
		case x.ends(a.AgentID):
			p.Ended = append(p.Ended, agent)
		case x.waiting[a.AgentID] && a.AgentID != "":
			p.Waiting = append(p.Waiting, agent)
		default:
			p.Agents = append(p.Agents, agent)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.NodeStatus)) {
		open, known := withAgent[id]
		if s.NodeStatus[id] != agentevents.NodeStatusRunning || open {
			continue
		}
		// a snapshot of the specification knows agents by nodes only
		if session := s.AgentSessions[id]; session != "" && !known {
			p.Agents = append(p.Agents, Agent{AgentID: id, NodeID: id, SessionID: session, Prompt: p.Prompt})
		} else {
			p.Nodes = append(p.Nodes, id)
		}
	}
}

// decide returns the action for something that is open. The first that may be is the
// default.
func decide[T any](what, id string, ask func(T) Action, of T, may ...Action) (Action, error) {
	action := Default
	if ask != nil {
		action = ask(of)
	}
	switch {
	case action == Default:
		return may[0], nil
	case slices.Contains(may, action):
		return action, nil
	case action >= actions:
		return 0, fmt.Errorf("resume: no action %d (%s %q)", action, what, id)
	}
	return 0, fmt.Errorf("resume: a %s cannot be %s (%q)", what,
		[...]string{Close: "closed", Wait: "left open", AskAgain: "asked again"}[action], id)
}

// A Receipt lists the recorded events.
type Receipt struct {
	Resumed    []Agent  // start again
	Waiting    []Agent  // wait
	Ended      []Agent  // sub-agents that were ended, in the order of their ends
	Nodes      []string // ran without an open agent, and do so no more
	ModelCalls []string // ids of model calls that were closed
	Calls      []string // ids of calls that were closed as interrupted
	Rejected   []string // ids of approvals that were closed
	Asked      []string // ids of approvals and clarifications that were asked again
}

// ErrApplied means that a plan was applied before: a run is resumed once.
var ErrApplied = errors.New("resume: the plan was applied before")

// Apply records that the run goes on: the message as a resume command if there is one, run.resumed
// once, then the ends of closed calls and agents, sub-agents before the calls that they are part
// of, and the questions that are asked again. The run is the one that Emitter.Resume returned for
// Plan.Snapshot. Any other is refused, and the plan is as it was.
//
// An error of the run ends it; the receipt lists the events that were recorded before.
func (p *Plan) Apply(ctx context.Context, run *agentevents.Run) (*Receipt, error) {
	if p.applied {
		return &Receipt{}, ErrApplied
	}
	if p.Snapshot == nil {
		return &Receipt{}, errors.New("resume: the plan has no snapshot: it comes from New")
	}
	if id := run.ID(); id != p.Snapshot.RunID {
		return &Receipt{}, fmt.Errorf("resume: the plan is for run %q, and not for run %q", p.Snapshot.RunID, id)
	}
	p.applied = true
	r := &Receipt{}
	if p.message != "" {
		c := agentevents.Command{Type: agentevents.CommandResume, Message: p.message}
		if err := run.Emit(ctx, &agentevents.CommandReceived{Command: c}); err != nil {
			return r, err
		}
	}
	if err := run.Emit(ctx, &agentevents.RunResumed{Message: p.message}); err != nil {
		return r, err
	}
	r.Nodes = p.Nodes
	for _, do := range []func(context.Context, *agentevents.Run, *Receipt) error{p.reject,
		p.closeModelCalls, p.end, p.closeCalls, p.askAgain} {
		if err := do(ctx, run, r); err != nil {
			return r, err
		}
	}
	r.Resumed, r.Waiting = p.Agents, p.Waiting
	return r, nil
}

// reject closes approvals. It comes first: the return of a call closes the questions about it.
func (p *Plan) reject(ctx context.Context, run *agentevents.Run, r *Receipt) error {
	for _, q := range p.approvals {
		if q.action != Close {
			continue
		}
		if err := run.Agent(q.of.AgentID).Emit(ctx,
			&agentevents.ApprovalRejected{ApprovalID: q.of.ApprovalID, Feedback: codeInterrupted, Answer: codeInterrupted}); err != nil {
			return fmt.Errorf("resume: closing approval %q: %w", q.of.ApprovalID, err)
		}
		r.Rejected = append(r.Rejected, q.of.ApprovalID)
	}
	return nil
}

// codeInterrupted is ErrorInfo.Code of all that a crash cut off.
const codeInterrupted = "interrupted"

func (p *Plan) closeModelCalls(ctx context.Context, run *agentevents.Run, r *Receipt) error {
	for _, c := range p.modelCalls {
		lost := &agentevents.ModelReturned{Model: c.Model,
			Error: agentevents.Some(agentevents.ErrorInfo{Code: codeInterrupted})}
		if err := run.Agent(c.AgentID).OpenModelCall(c.ModelCallID).Return(ctx, lost); err != nil {
			return fmt.Errorf("resume: closing model call %q: %w", c.ModelCallID, err)
		}
		r.ModelCalls = append(r.ModelCalls, c.ModelCallID)
	}
	return nil
}

// end ends sub-agents whose calls are closed, with everything that they have open: the latest
// starts first.
func (p *Plan) end(ctx context.Context, run *agentevents.Run, r *Receipt) error {
	for _, a := range slices.Backward(p.Ended) {
		if err := closeCalls(ctx, run, r, p.inside[a.AgentID]); err != nil {
			return err
		}
		lost := &agentevents.AgentEnded{Outcome: agentevents.OutcomeAborted,
			Error: agentevents.Some(agentevents.ErrorInfo{Code: codeInterrupted, Message: "the process ended"})}
		if err := run.Agent(a.AgentID).Emit(ctx, lost); err != nil {
			return fmt.Errorf("resume: ending sub-agent %q: %w", a.AgentID, err)
		}
		r.Ended = append(r.Ended, a)
	}
	return nil
}

func (p *Plan) closeCalls(ctx context.Context, run *agentevents.Run, r *Receipt) error {
	return closeCalls(ctx, run, r, p.calls)
}

func closeCalls(ctx context.Context, run *agentevents.Run, r *Receipt, calls []*agentevents.ToolCallSnapshot) error {
	for _, c := range calls {
		lost := &agentevents.ToolReturned{Status: agentevents.ToolStatusInterrupted}
		if err := run.Agent(c.AgentID).OpenCall(c.CallID).End(ctx, lost); err != nil {
			return fmt.Errorf("resume: closing call %q: %w", c.CallID, err)
		}
		r.Calls = append(r.Calls, c.CallID)
	}
	return nil
}

func (p *Plan) askAgain(ctx context.Context, run *agentevents.Run, r *Receipt) error {
	for _, q := range p.approvals {
		if q.action != AskAgain {
			continue
		}
		again := &agentevents.ApprovalRequested{
			ApprovalID: q.of.ApprovalID, Action: q.of.Action, CallID: q.of.CallID,
			ToolID: q.of.ToolID, ArgumentsHash: q.of.ArgumentsHash, Timeout: q.of.Timeout, // without these it allows any call
		}
		if err := run.Agent(q.of.AgentID).Emit(ctx, again); err != nil {
			return fmt.Errorf("resume: asking for approval %q again: %w", q.of.ApprovalID, err)
		}
		r.Asked = append(r.Asked, q.of.ApprovalID)
	}
	for _, q := range p.clarifications {
		if q.action != AskAgain {
			continue
		}
		again := &agentevents.ClarificationRequested{InterruptID: q.of.InterruptID, CallID: q.of.CallID,
			Questions: q.of.Questions}
		if err := run.Agent(q.of.AgentID).Emit(ctx, again); err != nil {
			return fmt.Errorf("resume: asking for clarification %q again: %w", q.of.InterruptID, err)
		}
		r.Asked = append(r.Asked, q.of.InterruptID)
	}
	return nil
}
