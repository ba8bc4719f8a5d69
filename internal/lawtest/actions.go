package lawtest

import (
	"math"
	"slices"
	"strconv"

	"github.com/agentevents/agentevents"
)

// An action is a kind of step of a generated run. It does one thing, or reports that the
// thing is not possible now.
type action struct {
	weight int
	do     func(*generator) bool
}

var actions = []action{
	{8, (*generator).start},
	{14, (*generator).transition},
	{3, (*generator).end},
	{18, (*generator).delta},
	{8, (*generator).wholeBlock},
	{1, (*generator).strayDelta},
	{10, (*generator).toolCall},
	{5, (*generator).toolArguments},
	{8, (*generator).toolReturn},
	{3, (*generator).toolWithoutCall},
	{6, (*generator).modelCall},
	{5, (*generator).modelReturn},
	{6, (*generator).message},
	{3, (*generator).approval},
	{3, (*generator).handoff},
	{6, (*generator).workflow},
	{3, (*generator).audit},
	{2, (*generator).unknown},
	{2, (*generator).late},
	{2, (*generator).runResumed},
	{30, (*generator).plain},
}

// special are the kinds with an action of their own. All others are plain.
var special = map[agentevents.Kind]bool{
	agentevents.KindRunStarted: true, agentevents.KindRunCompleted: true, agentevents.KindRunFailed: true, agentevents.KindRunCancelled: true,
	agentevents.KindAgentStarted: true, agentevents.KindAgentTransition: true, agentevents.KindAgentEnded: true,
	agentevents.KindAgentReasoned: true, agentevents.KindAgentReasoningDelta: true, agentevents.KindTextDelta: true, agentevents.KindTextCompleted: true,
	agentevents.KindMessageCreated: true, agentevents.KindToolCalled: true, agentevents.KindToolArgumentsDelta: true, agentevents.KindToolReturned: true,
	agentevents.KindModelCalled: true, agentevents.KindModelReturned: true,
	agentevents.KindHandoffAccepted: true, agentevents.KindApprovalGranted: true, agentevents.KindApprovalRejected: true,
	agentevents.KindWorkflowCreated: true, agentevents.KindWorkflowApproved: true, agentevents.KindWorkflowFinalized: true,
	agentevents.KindPhaseStarted: true, agentevents.KindPhaseCompleted: true,
	agentevents.KindCheckpointSaved: true, agentevents.KindCheckpointResumed: true,
}

var plainKinds, allKinds = func() (plain, all []agentevents.KindInfo) {
	for info := range agentevents.Kinds() {
		all = append(all, info)
		if !special[info.Kind] {
			plain = append(plain, info)
		}
	}
	return plain, all
}()

var totalWeight = func() (n int) {
	for _, a := range actions {
		n += a.weight
	}
	return n
}()

// step does one action. Some steps do nothing. The first step mostly opens the run, but
// not always, because only two documents have run.started.
func (g *generator) step() {
	if len(g.out.Events) == 0 && g.chance(70) {
		if g.chance(30) {
			g.offer(agentevents.Event{Payload: g.payload(agentevents.KindSessionStarted)})
		}
		g.offer(agentevents.Event{Scope: g.scope(agentevents.KindRunStarted), Payload: g.payload(agentevents.KindRunStarted)})
		return
	}
	if g.c.Wild && g.chance(15) {
		g.wild()
		return
	}
	n := g.r.IntN(totalWeight)
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			if !a.do(g) {
				g.plain()
			}
			return
		}
	}
}

// scope draws the scope of an event of the kind, by the rule workflow-context.
func (g *generator) scope(k agentevents.Kind) agentevents.Scope {
	var s agentevents.Scope
	if g.chance(20) {
		s.SessionID = "session-" + strconv.Itoa(g.r.IntN(2))
	}
	if g.chance(20) {
		s.TaskID = "task-1"
	}
	if g.chance(20) || len(k) > 5 && (k[:5] == "node." || k[:5] == "edge.") {
		s.NodeID = "node-" + strconv.Itoa(g.r.IntN(3))
	}
	if g.chance(40) {
		s.WorkflowID = "workflow-" + strconv.Itoa(g.r.IntN(2))
		for _, open := range g.phases {
			if open.WorkflowID == s.WorkflowID {
				s.Phase = open.Phase
			}
		}
	}
	return s
}

// by returns an event of the agent, or of the run if a is nil.
func (g *generator) by(a *agent, p agentevents.Payload) agentevents.Event {
	switch p.(type) {
	case *agentevents.NodeCompleted, *agentevents.NodeFailed:
		if a != nil && a.identity == byNodeRun && a.open {
			g.settle(a) // it ends with its node
		}
	}
	ev := agentevents.Event{Payload: p}
	if a != nil {
		ev = a.envelope(p)
	}
	nodeRun := ev.NodeRunID
	k := ev.Kind()
	ev.Scope = g.scope(k)
	ev.NodeRunID = nodeRun
	if g.chance(5) {
		ev.Actor = "user"
	}
	if info, ok := k.Info(); ok && info.ByAgent && a != nil && g.chance(10) {
		ev.Step = agentevents.Some(a.step + g.r.IntN(2))
	}
	return ev
}

// act offers an event of an agent.
func (g *generator) act(a *agent, p agentevents.Payload) bool { return g.offer(g.by(a, p)) }

// acting returns an agent that may act, and adds one if there is none.
func (g *generator) acting() *agent {
	var able []*agent
	for _, a := range g.agents {
		if a.acts() {
			able = append(able, a)
		}
	}
	if len(able) > 0 {
		return pick(g, able)
	}
	return g.newAgent()
}

// newAgent adds an agent. Most of them also start.
func (g *generator) newAgent() *agent {
	a := &agent{id: "agent-" + strconv.Itoa(len(g.agents)), status: agentevents.StatusThinking}
	switch n := g.r.IntN(100); {
	case g.c.Named:
	case n < 8:
		a.identity, a.id = byNodeRun, "noderun-"+strconv.Itoa(len(g.agents))
	case n < 16:
		a.identity, a.id = bySpan, "span-"+strconv.Itoa(len(g.agents))
	}
	g.agents = append(g.agents, a)
	if a.identity == bySpan || g.chance(85) {
		g.startAgent(a, false)
	}
	return a
}

func (g *generator) startAgent(a *agent, resumed bool) bool {
	g.settle(a)
	p := made[*agentevents.AgentStarted](g, agentevents.KindAgentStarted)
	p.Resumed = resumed
	ev := g.by(a, p)
	if parent := pick(g, g.agents); parent != a && g.chance(50) {
		ev.ParentAgentID = parent.id
		if len(parent.calls) > 0 {
			ev.ParentCallID = pick(g, parent.calls).id
		}
	}
	return g.offer(ev)
}

// start starts a new agent, or one that may start again.
func (g *generator) start() bool {
	if len(g.agents) < 5 && g.chance(60) {
		g.newAgent()
		return true
	}
	if len(g.agents) == 0 {
		return false
	}
	a := pick(g, g.agents)
	moved := !a.started && !a.ended && a.status != agentevents.StatusThinking // strictly it is running
	free := !a.open && !moved || a.restart
	if !free && !g.chance(20) {
		return false
	}
	return g.startAgent(a, !free)
}

// settle closes an agent's open blocks, in runs with Finish. It is called before an
// event that forgets them.
func (g *generator) settle(a *agent) {
	for g.c.Finish && a.acts() && len(a.blocks) > 0 {
		if !g.closeBlock(a, a.blocks[0]) {
			return
		}
	}
}

func (g *generator) transition() bool {
	if len(g.agents) == 0 {
		return false
	}
	a := pick(g, g.agents)
	next := slices.DeleteFunc(slices.Clone(inForce(g.c.Lifecycle, slices.Values(g.out.Events)).Next(a.status)),
		func(to agentevents.AgentStatus) bool {
			return !alsoAllows(g.c.Lifecycle, a.status, to)
		})
	if a.ended || len(next) == 0 {
		return false
	}
	to := pick(g, next)
	if to.Terminal() {
		was := a.status
		if g.settle(a); a.status != was { // a whole block may derive a transition
			return true
		}
	}
	p := &agentevents.AgentTransition{To: to, Reason: pick(g, texts)}
	if g.chance(50) {
		p.From = a.status // otherwise the emitter sets it
	}
	return g.act(a, p)
}

func (g *generator) end() bool {
	if len(g.agents) == 0 {
		return false
	}
	a := pick(g, g.agents)
	return !a.ended && g.endAgent(a)
}

func (g *generator) endAgent(a *agent) bool {
	g.settle(a)
	p := made[*agentevents.AgentEnded](g, agentevents.KindAgentEnded)
	if g.chance(70) {
		p.Totals = agentevents.Opt[agentevents.Totals]{}
	} else {
		p.Totals = agentevents.Some(agentevents.Totals{
			Steps: math.MaxInt32, ToolCalls: math.MaxInt32,
			AuditCheckpoints: 3 << 20, AuditsPassed: 1 << 20, AuditsFailed: 1 << 20,
		})
	}
	return g.act(a, p)
}

// delta begins a block or continues one.
func (g *generator) delta() bool {
	a := g.acting()
	if len(a.blocks) > 0 && g.chance(65) {
		return g.piece(a, pick(g, a.blocks), 0)
	}
	b := &block{kind: pick(g, []agentevents.Kind{agentevents.KindTextDelta, agentevents.KindAgentReasoningDelta}),
		numbered: g.chance(50)}
	if g.chance(65) {
		g.blocks++
		b.id = "block-" + strconv.Itoa(g.blocks)
	} else if old := a.block(b.kind, ""); old != nil {
		b = old // an agent has at most one open block without an id
	}
	return g.piece(a, b, 0)
}

// piece offers the next delta of a block.
func (g *generator) piece(a *agent, b *block, m agentevents.Marks) bool {
	var index agentevents.Opt[int]
	if b.numbered {
		index = agentevents.Some(b.next)
	}
	var p agentevents.Payload
	if b.kind == agentevents.KindTextDelta {
		p = &agentevents.TextDelta{BlockID: b.id, Delta: pick(g, g.c.Texts), Index: index}
	} else {
		p = &agentevents.AgentReasoningDelta{BlockID: b.id, Delta: pick(g, g.c.Texts), Index: index, Verbosity: g.verbosity()}
	}
	ev := g.by(a, p)
	ev.Marks = m
	return g.offer(ev)
}

func (g *generator) verbosity() agentevents.Verbosity {
	return agentevents.Verbosity(pick(g, []string{"", "", "", "full", "summary", "off"}))
}

// wholeBlock closes a block, or emits a whole block without deltas.
func (g *generator) wholeBlock() bool {
	a := g.acting()
	if len(a.blocks) > 0 && g.chance(70) {
		return g.closeBlock(a, pick(g, a.blocks))
	}
	k := pick(g, []agentevents.Kind{agentevents.KindTextDelta, agentevents.KindAgentReasoningDelta})
	b := &block{kind: k, text: pick(g, g.c.Texts)}
	if g.chance(50) {
		g.blocks++
		b.id = "block-" + strconv.Itoa(g.blocks)
	}
	return g.closeBlock(a, b)
}

// closeBlock offers a whole block: its deltas joined, or another text.
func (g *generator) closeBlock(a *agent, b *block) bool {
	text := b.text
	if g.chance(20) {
		text = pick(g, g.c.Texts)
	}
	if b.kind == agentevents.KindTextDelta {
		return g.act(a, &agentevents.TextCompleted{BlockID: b.id, Text: text})
	}
	return g.act(a, &agentevents.AgentReasoned{BlockID: b.id, Reasoning: text, Verbosity: g.verbosity()})
}

// strayDelta offers a delta after its whole block.
func (g *generator) strayDelta() bool {
	a := g.acting()
	g.blocks++
	b := &block{kind: agentevents.KindTextDelta, id: "block-" + strconv.Itoa(g.blocks)}
	if !g.piece(a, b, 0) || !g.closeBlock(a, b) {
		return false
	}
	ok := g.piece(a, b, 0)
	a.whole(b.kind, b.id)
	return ok
}

func (g *generator) toolCall() bool {
	a := g.acting()
	p := made[*agentevents.ToolCalled](g, agentevents.KindToolCalled)
	if a.call(p.CallID) != nil {
		return false
	}
	p.ApprovalID = ""
	if i := slices.IndexFunc(g.granted, func(old approval) bool { return old.agent == "" || old.agent == a.id }); i >= 0 {
		under := g.granted[i]
		p.ApprovalID, p.ToolID, p.Arguments = under.id, under.asked.ToolID, under.asked.Arguments
	}
	return g.act(a, p)
}

// toolArguments offers the next arguments delta of an open call.
func (g *generator) toolArguments() bool {
	a := g.acting()
	if len(a.calls) == 0 {
		return false
	}
	c := pick(g, a.calls)
	p := &agentevents.ToolArgumentsDelta{CallID: c.id, Delta: pick(g, g.c.Texts)}
	if c.next > 0 || g.chance(50) {
		p.Index = agentevents.Some(c.next)
	}
	return g.act(a, p)
}

// toolReturn closes any open call, because returns come in any order.
func (g *generator) toolReturn() bool {
	a := g.acting()
	if len(a.calls) == 0 {
		return false
	}
	c := pick(g, a.calls)
	p := made[*agentevents.ToolReturned](g, agentevents.KindToolReturned)
	p.CallID, p.ToolID, p.OneEvent, p.Arguments, p.ArgumentsSummary = c.id, c.tool, false, "", ""
	return g.act(a, p)
}

// toolWithoutCall offers a return that needs no call before it. It may have the id of an
// open call.
func (g *generator) toolWithoutCall() bool {
	p := made[*agentevents.ToolReturned](g, agentevents.KindToolReturned)
	if p.OneEvent = g.chance(60); !p.OneEvent {
		p.Status = pick(g, []agentevents.ToolStatus{agentevents.ToolStatusForbidden, agentevents.ToolStatusRateLimited})
	}
	a := g.acting()
	for _, c := range a.calls {
		if c.id == p.CallID && !p.OneEvent { // it is the return of that call
			p.ToolID = c.tool
		}
	}
	return g.act(a, p)
}

func (g *generator) modelCall() bool {
	a := g.acting()
	p := made[*agentevents.ModelCalled](g, agentevents.KindModelCalled)
	if slices.Contains(a.modelCalls, p.ModelCallID) {
		return false
	}
	return g.act(a, p)
}

// modelReturn closes any open model call, or records a whole one. A whole one may have
// the id of an open call.
func (g *generator) modelReturn() bool {
	a := g.acting()
	p := made[*agentevents.ModelReturned](g, agentevents.KindModelReturned)
	if p.OneEvent = len(a.modelCalls) == 0 || g.chance(20); !p.OneEvent {
		p.ModelCallID, p.Request = pick(g, a.modelCalls), ""
	}
	return g.act(a, p)
}

// message offers a new message, or repeats one unchanged.
func (g *generator) message() bool {
	a := g.acting()
	p := made[*agentevents.MessageCreated](g, agentevents.KindMessageCreated)
	if len(g.messages) > 0 && g.chance(30) {
		p.Message = pick(g, g.messages)
	} else {
		p.Message.MessageID = "message-" + strconv.Itoa(len(g.messages)) + "-" + strconv.Itoa(len(g.out.Events))
		p.Message.GroupID = "group-1" // legal for every sender, required for some
		if g.chance(30) {
			p.Message.MessageID, p.Message.From, p.Message.TS = "", "", 0 // the emitter sets them
			if a.identity != byAgentID {
				p.Message.From = "user"
			}
		}
	}
	return g.act(a, p)
}

// approval requests an approval or answers one. The same request may come twice.
func (g *generator) approval() bool {
	if len(g.approvals) == 0 || g.chance(30) {
		p := made[*agentevents.ApprovalRequested](g, agentevents.KindApprovalRequested)
		p.ArgumentsHash = "" // the emitter computes it
		return g.act(g.acting(), p)
	}
	id := pick(g, g.approvals).id
	if g.chance(50) {
		return g.offer(g.by(nil, &agentevents.ApprovalGranted{ApprovalID: id, ApprovedBy: "user", Feedback: pick(g, texts)}))
	}
	return g.offer(g.by(nil, &agentevents.ApprovalRejected{ApprovalID: id, RejectedBy: "user"}))
}

func (g *generator) handoff() bool {
	if len(g.handoffs) == 0 {
		return g.act(g.acting(), g.payload(agentevents.KindHandoffRequested))
	}
	h := pick(g, g.handoffs)
	return g.act(g.acting(), &agentevents.HandoffAccepted{HandoffID: h.HandoffID, From: h.From, To: h.To})
}

// workflow offers an event of a workflow or of one of its phases.
func (g *generator) workflow() bool {
	k := pick(g, []agentevents.Kind{
		agentevents.KindWorkflowCreated, agentevents.KindWorkflowApproved, agentevents.KindWorkflowFinalized,
		agentevents.KindPhaseStarted, agentevents.KindPhaseStarted, agentevents.KindPhaseCompleted, agentevents.KindPhaseCompleted,
		agentevents.KindCheckpointSaved, agentevents.KindCheckpointResumed,
	})
	ev := g.by(nil, g.payload(k))
	ev.WorkflowID, ev.Phase = "workflow-"+strconv.Itoa(g.r.IntN(2)), "phase-"+strconv.Itoa(g.r.IntN(3))
	if k == agentevents.KindPhaseCompleted {
		if len(g.phases) == 0 {
			return false
		}
		open := pick(g, g.phases)
		ev.WorkflowID, ev.Phase = open.WorkflowID, open.Phase
	}
	return g.offer(ev)
}

// audit offers an audit of any agent at any time, or of the run.
func (g *generator) audit() bool {
	return g.offer(g.by(g.anyone(), g.payload(agentevents.KindAuditChecked)))
}

// anyone returns any agent, or nil.
func (g *generator) anyone() *agent {
	if len(g.agents) == 0 || g.chance(40) {
		return nil
	}
	return pick(g, g.agents)
}

func (g *generator) unknown() bool {
	p := &agentevents.Unknown{Type: agentevents.Kind(pick(g, []string{"vendor.ping", "x-ü"}))}
	if g.chance(70) {
		p.Raw = agentevents.JSON(g.json())
	}
	return g.offer(g.by(g.anyone(), p))
}

// runResumed lets every agent start again.
func (g *generator) runResumed() bool {
	return g.offer(g.by(nil, g.payload(agentevents.KindRunResumed)))
}

// late offers an event of an agent after its end, which is marked late.
func (g *generator) late() bool {
	var ended []*agent
	for _, a := range g.agents {
		if a.ended {
			ended = append(ended, a)
		}
	}
	if len(ended) == 0 {
		return false
	}
	return g.lateAct(pick(g, ended))
}

func (g *generator) lateAct(a *agent) bool {
	if g.chance(30) { // a text delta and its whole block
		g.blocks++
		b := &block{kind: agentevents.KindTextDelta, id: "block-" + strconv.Itoa(g.blocks), numbered: g.chance(50)}
		if !g.piece(a, b, agentevents.MarkLate) {
			return false
		}
		ev := g.by(a, &agentevents.TextCompleted{BlockID: b.id, Text: "late"})
		ev.Marks = agentevents.MarkLate
		return g.offer(ev)
	}
	info := pick(g, plainKinds)
	ev := g.by(a, g.payload(info.Kind))
	ev.Marks = agentevents.MarkLate
	return g.offer(ev)
}

// plain offers a payload of any kind that has no rules of its own.
func (g *generator) plain() bool {
	info := pick(g, plainKinds)
	if info.ByAgent {
		return g.act(g.acting(), g.payload(info.Kind))
	}
	a := g.anyone()
	if turn := info.Subject == "turn"; turn && a != nil {
		g.settle(a) // a block ends with its turn
	}
	return g.offer(g.by(a, g.payload(info.Kind)))
}

// wild offers an event that may be illegal.
func (g *generator) wild() {
	a := g.anyone()
	k := pick(g, allKinds)
	if k.Role != agentevents.RoleCloses && g.chance(30) {
		k = pick(g, allKinds) // prefer events that need something open
	}
	ev := g.by(a, g.payload(k.Kind))
	if p, ok := ev.Payload.(*agentevents.MessageCreated); ok {
		// Only the fold checks that a message id has one content.
		p.Message.MessageID = "wild-" + strconv.Itoa(len(g.out.Offers))
	}
	switch ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled:
		return // they end the run
	}
	if g.chance(20) {
		ev.Step = agentevents.Some(g.r.IntN(3))
	}
	if g.chance(10) {
		ev.Marks = agentevents.MarkLate
	}
	if g.chance(20) {
		ev.WorkflowID, ev.Phase = "workflow-1", pick(g, []string{"", "phase-1"})
	}
	g.offer(ev)
}

// finish ends the run, by an event or by the ends of its agents, and adds events that
// are legal after that.
func (g *generator) finish() {
	for _, a := range g.agents {
		g.settle(a)
	}
	byEvent := g.opened || g.chance(70)
	for _, a := range g.agents {
		if !a.ended && (!byEvent && a.identity != bySpan || a.open && (!byEvent || g.chance(60))) {
			g.endAgent(a)
		}
	}
	if !byEvent {
		return
	}
	k := pick(g, []agentevents.Kind{agentevents.KindRunCompleted, agentevents.KindRunFailed, agentevents.KindRunCancelled})
	g.offer(g.by(nil, g.payload(k)))
	for g.chance(50) {
		switch {
		case g.chance(40) && len(g.agents) > 0:
			g.lateAct(pick(g, g.agents))
		case g.chance(50):
			g.audit()
		default:
			k := pick(g, []agentevents.Kind{agentevents.KindSessionStarted,
				agentevents.KindSessionCompleted, agentevents.KindUsageObserved})
			g.offer(g.by(g.anyone(), g.payload(k)))
		}
	}
}
