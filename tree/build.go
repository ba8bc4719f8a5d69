package tree

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
	"github.com/agentevents/agentevents/internal/view"
	"github.com/agentevents/agentevents/report"
)

// A builder makes the nodes of one run. Snapshots may have been read from
// JSON, so parents may be missing or form a circle, and elements of lists may be
// nil.
type builder struct {
	s       *agentevents.RunSnapshot
	o       Options
	details *report.Details
	items   []report.Item
	taken   *view.Taken

	agents     map[string][]*agentNode // the attempts of an agent in order, by its id
	asking     map[string]int          // number of open model calls, by agent id
	nodeOf     map[string]string       // the first node that names the agent, by agent id
	executions map[string]int          // number of agents that only executions identify, by node
	order      []*agentNode            // in the order in which the agents appeared, and further attempts started
	calls      map[callKey][]*node     // in order
	named      map[callKey]bool        // calls that other lines refer to
	spawns     map[string]bool         // ids of calls that agents work for
	phases     map[phaseKey]*phaseNodes
	flows      map[string][]*node // workflows in order, by their ids
}

type callKey struct{ agent, call string }

// A phaseKey is the key of a phase of a workflow, or without one of all.
type phaseKey struct {
	flow *node
	name string
}

// An agentNode is an attempt of an agent.
type agentNode struct {
	node
	id    string
	a     view.Attempt
	nth   int  // from 0
	last  bool // the current one
	below []*agentNode
	at    *node // its parent node; nil until it is placed
	depth int
}

// run builds the whole tree.
func (b *builder) run() *node {
	b.makeAgents()
	root := &node{line: b.runLine()}
	if n := b.s.DroppedCalls; n > 0 {
		root.add(&node{line: line{head: view.Count(n, "tool call") + " not kept in the snapshot"}})
	}
	var rest []*node // of the run itself
	add := func(agent string, n *node) {
		if owner := b.attempt(agent, n.seq); owner != nil {
			owner.add(n)
			return
		}
		rest = append(rest, n)
	}
	b.acts(add)
	b.spans(add)
	b.workflows(root)
	b.placeAgents(root)
	for _, a := range b.order {
		a.children = nest(a.children)
	}
	for _, calls := range b.calls {
		for _, c := range calls {
			sortBySeq(c.children)
		}
	}
	root.children = append(root.children, nest(rest)...)
	b.said(root)
	b.state(root)
	return root
}

func sortBySeq(nodes []*node) {
	slices.SortStableFunc(nodes, func(x, y *node) int { return cmp.Compare(x.seq, y.seq) })
}

// nest sorts the nodes of an agent, and hangs those that came while a turn or a step was
// open below the latest one. It returns the others.
func nest(nodes []*node) (top []*node) {
	sortBySeq(nodes)
	var open []*node
	for _, n := range nodes {
		for len(open) > 0 {
			last := open[len(open)-1]
			if n.seq <= last.until && n.level < last.level {
				break
			}
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1].add(n)
		} else {
			top = append(top, n)
		}
		if n.level != other {
			open = append(open, n)
		}
	}
	for _, n := range nodes {
		if n.level != other {
			n.children = join(n.children)
		}
	}
	return join(top)
}

func (b *builder) runLine() line {
	s := b.s
	l := line{bold: true}
	l.word, l.mark = view.Run(s)
	if s.SessionID != "" && s.SessionID != s.RunID {
		l.head = "session " + s.SessionID + " · "
	}
	l.head += "run " + s.RunID
	if s.Name != "" {
		l.head += " (" + s.Name + ")"
	}
	if l.mark == view.Open {
		l.mark = none
		b.goesOn(&l)
	}
	if b.details != nil && s.StartedAt.Year() > 1970 { // a clock without a date may begin there
		l.fact(s.StartedAt.UTC().Format("2006-01-02 15:04:05Z"))
	}
	l.fact(view.Duration(view.Length(b.s)))
	if work := b.details.AtWork(b.s); work > 0 {
		l.fact("at work " + view.Duration(work))
	}
	if b.details != nil {
		l.fact(report.Cause(s))
	}
	switch {
	case s.Error.OK:
		l.detail = errorText(s.Error.V)
	case s.CancelReason != "":
		l.detail = s.CancelReason
	case s.Facts.V.SessionReason != "":
		l.detail = report.Dashed(s.SessionGoal, s.Facts.V.SessionReason)
	default:
		l.detail = s.SessionGoal
	}
	return l
}

func errorText(e agentevents.ErrorInfo) string {
	if e.Message == "" {
		return e.Code
	}
	return e.Message
}

// makeAgents makes a node for every agent.
func (b *builder) makeAgents() {
	b.agents = map[string][]*agentNode{}
	b.calls = map[callKey][]*node{}
	b.asking = map[string]int{}
	for i := range b.s.OpenModelCalls {
		b.asking[b.s.OpenModelCalls[i].AgentID]++
	}
	b.nodeOf = map[string]string{}
	for node, ref := range b.s.Facts.V.NodeAgents {
		if was, named := b.nodeOf[ref.AgentID]; !named || node < was {
			b.nodeOf[ref.AgentID] = node
		}
	}
	ids := make(map[*agentevents.AgentSnapshot]string, len(b.s.Agents))
	b.executions = map[string]int{}
	agents := view.Of(b.s)
	b.spawns = map[string]bool{}
	for id, a := range b.s.Agents {
		ids[a] = id
		if a != nil {
			b.spawns[a.ParentCallID] = true
		}
		if view.Executes(id, a) {
			b.executions[a.NodeID]++
		}
	}
	var further []*agentNode // attempts
	for _, a := range b.s.AgentsInOrder() {
		id, attempts := ids[a], view.Attempts(a)
		for i, t := range attempts {
			n := &agentNode{id: id, a: t, nth: i, last: i == len(attempts)-1}
			n.seq = t.Sequence
			n.line = b.agentLine(n, agents)
			b.agents[id] = append(b.agents[id], n)
			if i == 0 {
				b.order = append(b.order, n)
			} else {
				further = append(further, n)
			}
		}
	}
	slices.SortStableFunc(further, func(x, y *agentNode) int { return cmp.Compare(x.seq, y.seq) })
	first := b.order
	b.order = make([]*agentNode, 0, len(first)+len(further))
	for _, n := range first {
		for len(further) > 0 && further[0].seq < n.seq {
			b.order, further = append(b.order, further[0]), further[1:]
		}
		b.order = append(b.order, n)
	}
	b.order = append(b.order, further...)
}

// attempt returns the attempt of an agent in which an event of a sequence falls, or the first
// one; nil without an agent.
func (b *builder) attempt(id string, sequence uint64) *agentNode {
	all := b.agents[id]
	if len(all) == 0 {
		return nil
	}
	n := sort.Search(len(all), func(i int) bool { return all[i].seq > sequence })
	return all[max(0, n-1)]
}

// call returns the call of an id within which an event of a sequence falls: the latest one
// before it, else the last one; nil without a call.
func (b *builder) call(key callKey, sequence uint64) *node {
	all := b.calls[key]
	if len(all) == 0 {
		return nil
	}
	n := sort.Search(len(all), func(i int) bool { return all[i].seq > sequence })
	if n == 0 {
		n = len(all)
	}
	return all[n-1]
}

func (b *builder) agentLine(n *agentNode, agents *view.Agents) line {
	a := n.a.AgentSnapshot
	l := line{head: view.Name(n.id, a), bold: true}
	if n.a.Several {
		l.head += " (attempt " + strconv.Itoa(a.Attempts) + ")"
	}
	l.word, l.mark = agents.Status(n.id, a)
	if n.a.Dropped > 0 {
		l.head, l.word, l.mark = view.Name(n.id, a), view.Count(n.a.Dropped, "attempt")+" not kept", none
	}
	if l.mark == view.Open {
		l.mark = none
		b.goesOn(&l)
	}
	switch {
	case a.Error.OK && errorText(a.Error.V) != "":
		l.detail = errorText(a.Error.V)
	case l.mark != good && a.LastError.OK && errorText(a.LastError.V) != "":
		l.detail = errorText(a.LastError.V)
	case l.mark != good && a.EndReason != "":
		l.detail = a.EndReason
	case l.mark == bad && b.why(n) != "":
		l.detail = b.why(n)
	default:
		l.detail = a.Task
	}
	if a.ConvergenceScore.OK {
		l.fact("convergence " + strconv.FormatFloat(a.ConvergenceScore.V, 'g', 4, 64))
	}
	if !n.a.Several && a.Attempts > 1 {
		l.fact(view.Count(a.Attempts, "turn"))
	}
	took := view.Took(a)
	if a.Duration.OK {
		l.fact(view.Duration(took))
	}
	if work := b.details.Worked(b.s.RunID, n.id, took); !n.a.Several && work > 0 {
		l.fact("at work " + view.Duration(work))
	}
	if b.details != nil && a.Model != "" {
		l.fact(view.Model(a))
	}
	switch node := cmp.Or(a.NodeID, b.nodeOf[n.id]); {
	case !view.Executes(n.id, a):
		if node != "" {
			l.fact("node " + node)
		}
	case b.executions[a.NodeID] > 1:
		l.fact("execution " + n.id)
	}
	if steps := view.Steps(a); steps > 0 {
		l.fact(view.Count(steps, "step"))
	}
	if a.ToolCalls+a.ToolFailures+a.ToolRefusals+a.ToolsUndecided > 0 {
		l.fact(withOthers(view.Count(a.ToolCalls, "tool call"), a.ToolFailures, a.ToolRefusals, a.ToolsUndecided))
	}
	if calls, audits := view.Unlogged(a); calls+audits > 0 {
		if calls > 0 {
			l.fact(view.Count(a.Totals.V.ToolCalls, "tool call") + " stated")
		}
		if audits > 0 {
			l.fact(withFailed(view.Count(a.Totals.V.AuditCheckpoints, "audit")+" stated", a.Totals.V.AuditsFailed))
		}
	}
	if a.ModelCalls > 0 {
		text := withFailed(view.Count(a.ModelCalls, "model call"), a.ModelFailures)
		why := b.details.ModelFailure(b.s.RunID, n.id)
		if why != "" && a.ModelFailures > 0 && !strings.Contains(l.detail, strings.TrimSuffix(why, "…")) {
			text = strings.TrimSuffix(text, ")") + ": " + why + ")"
		}
		if open := b.asking[n.id]; open > 0 && n.last {
			text += ", " + strconv.Itoa(open) + " open"
		}
		l.fact(text)
	}
	tokens, cost := a.Usage.Total()
	if b.details != nil {
		l.fact(tokensText(tokens, a.Usage.Partial()))
		if n := view.Stated(&a.Usage); n > 0 {
			l.fact(tokensText(agentevents.Usage{TotalTokens: agentevents.Some(n)}, false) + " stated")
		}
	}
	if cost.OK {
		l.fact(view.Dollars(cost.V))
	}
	return l
}

// why returns why an attempt has failed or waits.
func (b *builder) why(n *agentNode) string {
	if n.last {
		return b.details.Why(b.s.RunID, n.id)
	}
	return b.details.WhyEarlier(b.s.RunID, n.id, n.a.Sequence)
}

func withFailed(text string, failed int) string { return withOthers(text, failed, 0, 0) }

// withOthers adds to a number of calls those that did not succeed.
func withOthers(text string, failed, refused, undecided int) string {
	var parts []string
	for _, p := range [...]struct {
		n    int
		word string
	}{{failed, "failed"}, {refused, "refused"}, {undecided, "undecided"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.word)
		}
	}
	if parts == nil {
		return text
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}

// placeAgents hangs every agent once: under the call that spawned it, under
// its parent, under its phase or under the run.
func (b *builder) placeAgents(root *node) {
	spawners := map[string]callKey{} // by call id
	for key := range b.calls {
		spawner := key
		if _, again := spawners[key.call]; again {
			spawner = callKey{} // several agents have a call of this id
		}
		spawners[key.call] = spawner
	}
	var roots []*agentNode
	for _, n := range b.order {
		parent := n.a.ParentAgentID
		if key := spawners[n.a.ParentCallID]; parent == "" && n.a.ParentCallID != "" && key.agent != n.id {
			parent = key.agent
		}
		if p := b.attempt(parent, n.seq); p != nil && parent != n.id {
			p.below = append(p.below, n)
		} else {
			roots = append(roots, n)
		}
	}
	for _, n := range roots {
		if id := n.a.ParentAgentID; id != "" && id != n.id {
			n.line.head += " (below " + id + ", which is not in the log)"
		}
		b.place(n, root)
	}
	for _, n := range b.order {
		if n.at == nil {
			n.line.head += " (its parents form a circle)"
			b.place(n, root)
		}
	}
}

// place hangs an agent and everything below it. It does not recurse, as a
// snapshot may nest without limit.
func (b *builder) place(top *agentNode, root *node) {
	top.hang(b.top(top, root), 1)
	for todo := []*agentNode{top}; len(todo) > 0; {
		parent := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, n := range parent.below {
			if n.at != nil {
				continue // the circle closes here
			}
			at, depth := &parent.node, parent.depth+1
			if call := b.call(callKey{parent.id, n.a.ParentCallID}, n.seq); call != nil {
				at, depth = call, depth+1
			}
			if depth > maxDepth {
				n.line.head += " (below " + parent.id + ")"
				at, depth = parent.at, parent.depth
			}
			n.hang(at, depth)
			todo = append(todo, n)
		}
	}
}

func (n *agentNode) hang(at *node, depth int) {
	at.add(&n.node)
	n.at, n.depth = at, depth
}

// top returns the node above an agent without a parent: a call that no agent made, the passage
// through the phase in which it started, or the run.
func (b *builder) top(n *agentNode, root *node) *node {
	if n.a.ParentAgentID == "" {
		if call := b.call(callKey{"", n.a.ParentCallID}, n.seq); call != nil {
			return call
		}
	}
	var flow *node // any, when it names none
	if len(b.flows[n.a.WorkflowID]) > 0 && n.a.WorkflowID != "" {
		flow = b.flow(root, n.a.WorkflowID, n.seq)
	}
	if phase := b.phases[phaseKey{flow, n.a.Phase}]; phase != nil && n.a.Phase != "" {
		return phase.at(n.a.StartedAt, n.a.ParentSpanID)
	}
	return cmp.Or(flow, root)
}

// A phaseNodes holds the passages through one phase.
type phaseNodes struct {
	first *node
	later []passage        // in rising order of their start
	spans map[string]*node // by span
}

type passage struct {
	node  *node
	start time.Time
	span  string
}

// add adds the next passage of the snapshot. An earlier one that did not start
// before it is left out of later: at never returns it.
func (p *phaseNodes) add(next passage) {
	if p.first == nil {
		p.first, p.spans = next.node, map[string]*node{}
	}
	if next.span != "" {
		p.spans[next.span] = next.node
	}
	if next.start.IsZero() {
		return
	}
	n := len(p.later)
	for n > 0 && !p.later[n-1].start.Before(next.start) {
		n--
	}
	p.later = append(p.later[:n], next)
}

// at returns the passage of a span, else the last one that has started at a time, or the first
// one.
func (p *phaseNodes) at(t time.Time, span string) *node {
	if n := p.spans[span]; n != nil {
		return n
	}
	n := sort.Search(len(p.later), func(i int) bool { return p.later[i].start.After(t) })
	if n == 0 {
		return p.first
	}
	return p.later[n-1].node
}

// acts calls place for everything that an agent did.
func (b *builder) acts(place func(agent string, n *node)) {
	s := b.s
	b.named = map[callKey]bool{}
	all := slices.Concat(s.ClosedCalls, s.OpenCalls)
	for _, c := range all {
		if c != nil && c.RetryOf != "" {
			b.named[callKey{c.AgentID, c.RetryOf}] = true
		}
	}
	for i := range s.Approvals {
		if ap := &s.Approvals[i]; ap.CallID != "" {
			b.named[callKey{ap.AgentID, ap.CallID}] = true
		}
	}
	for _, c := range all {
		if c == nil {
			continue
		}
		key := callKey{c.AgentID, c.CallID}
		n := &node{line: b.callLine(c), seq: c.Sequence}
		if c.Status == agentevents.ToolStatusOK && !b.named[key] && c.RetryOf == "" && c.Attempt.V < 2 {
			n.tool, n.took = c.ToolID, c.Duration.V
		}
		if c.CallID != "" {
			b.calls[key] = append(b.calls[key], n) // agents that it spawned hang from it
		}
		place(b.inside(c.AgentID, c.Within, c.CallID), n)
	}
	for _, calls := range b.calls {
		sortBySeq(calls)
	}
	heard := b.heard()
	for i := range b.items {
		switch it := &b.items[i]; {
		case structural[it.Topic]:
		case it.Topic == report.Message && (b.details == nil || heard[i]):
			// Without details a message has no place, and otherwise another line has the same text.
			// No line has a question to nobody.
		default:
			b.item(place, it)
		}
	}
}

// heard returns the messages that other lines tell, by their place among the items: a request, an
// answer or the last text. Of several messages of one text a request is the first one, an answer the
// last.
func (b *builder) heard() map[int]bool {
	type said struct {
		topic       report.Topic
		agent, text string
	}
	asked := map[uint64]bool{} // turns whose lines have the request
	for i := range b.s.Turns {
		asked[b.s.Turns[i].Sequence] = b.s.Turns[i].Asked != ""
	}
	told := map[said]int{} // times
	for i := range b.items {
		if it := &b.items[i]; it.Turn == "" || it.Topic != report.Said && (it.Topic != report.Asked || asked[it.Sequence]) {
			told[said{it.Topic, it.AgentID, start(it.Text)}]++
		}
	}
	heard := map[int]bool{}
	tells := func(i int, topic report.Topic, agent string) {
		key := said{topic, agent, start(b.items[i].Text)}
		if b.items[i].Topic == report.Message && !heard[i] && told[key] > 0 {
			heard[i], told[key] = true, told[key]-1
		}
	}
	for i := range b.items {
		if to := b.items[i].To; to != "" {
			tells(i, report.Asked, to)
		}
	}
	for i := range slices.Backward(b.items) {
		tells(i, report.Answered, b.items[i].AgentID)
		tells(i, report.Said, b.items[i].AgentID)
	}
	return heard
}

// inside returns the agent below which a call or a step of an agent hangs: the one in whose span it
// began, if that works for the agent and the call has spawned none.
func (b *builder) inside(agent, within, call string) string {
	if within == "" || b.spawns[call] && call != "" {
		return agent
	}
	up := within
	for range maxDepth {
		a := b.s.Agents[up]
		if a == nil || a.ParentAgentID == "" {
			break
		}
		if up = a.ParentAgentID; up == agent {
			return within
		}
	}
	return agent
}

// start returns the beginning of a text, as one that was cut at another place has it.
func start(text string) string {
	const most = 140
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// structural are the topics that the tree draws from the snapshot, or in a place of their own.
var structural = map[report.Topic]bool{
	report.Agent: true, report.Call: true, report.Turn: true, report.Step: true, report.Node: true, report.Budget: true, report.Violation: true, report.Stated: true, report.Asked: true, report.Answered: true,
	report.Said: true, report.Ended: true, report.Workflow: true,
}

// item hangs an item below its agent. A message whose sender is not an agent hangs below its
// receiver.
func (b *builder) item(place func(agent string, n *node), it *report.Item) {
	l := b.itemLine(it)
	agent := it.AgentID
	if it.Topic == report.Message && b.agents[agent] == nil {
		agent = it.To
		l.head = "message from " + it.AgentID
		if b.agents[agent] == nil {
			l.head = strings.Replace(it.Subject, "message", l.head, 1)
		}
	}
	same := ""
	if l.mark == bad && it.Topic == report.Error {
		same = l.head + " " + l.word
	}
	place(agent, &node{line: l, seq: it.Sequence, tool: same})
}

func (b *builder) itemLine(it *report.Item) line {
	l := line{head: it.Subject, mark: it.Mark, word: it.Status, facts: it.Facts, detail: it.Text}
	if n := it.Times(); n > 1 {
		l.head += times(n)
	}
	if it.Open {
		b.goesOn(&l)
	}
	return l
}

// words returns a head and an id. One that a reader has derived from the log tells nothing.
func words(head, id string) string {
	if derived := len(id) == 36 && id[14] == '8'; id == "" || derived { // a UUID of version 8
		return head
	}
	return head + " " + id
}

// closed gives a line the mark and word of a finished subject, or the word "open".
func (b *builder) closed(l *line, open bool, m view.Mark, word string) {
	if !open {
		l.mark, l.word = m, word
		return
	}
	l.word = "open"
	b.goesOn(l)
}

// ended is closed for subjects whose end a completed run may lack.
func (b *builder) ended(l *line, open bool, m view.Mark, word string) {
	if open && view.Over(b.s) {
		m, word, open = none, view.NoEnd, false
	}
	b.closed(l, open, m, word)
}

// goesOn tells of something that has not ended that it was interrupted. A run that is paused or
// waits was not.
func (b *builder) goesOn(l *line) {
	waits := b.s.Status == agentevents.RunStatusPaused || b.s.Status == agentevents.RunStatusWaiting
	if b.o.Ended && !waits {
		l.mark = warn
		l.word += " (interrupted)"
	}
}

func (b *builder) callLine(c *agentevents.ToolCallSnapshot) line {
	l := line{head: "tool." + c.ToolID, detail: report.Dashed(b.details.Call(b.s.RunID, c.AgentID, c.Sequence), c.Error)}
	if b.named[callKey{c.AgentID, c.CallID}] {
		l.head += " [" + c.CallID + "]"
	}
	if c.RetryOf != "" || c.Attempt.V > 1 {
		l.head += " retry"
		if c.Attempt.OK {
			l.head += " " + strconv.Itoa(c.Attempt.V)
		}
		if c.RetryOf != "" {
			l.head += " of " + c.RetryOf
		}
	}
	m, word := view.MarkOf(endword.Of(string(c.Status))), cmp.Or(c.Word, string(c.Status))
	if m == good {
		word = ""
	}
	b.closed(&l, c.Status == "", m, word)
	if c.Duration.OK {
		l.fact(view.Duration(c.Duration.V))
	}
	return l
}

// spans calls add for every turn and step.
func (b *builder) spans(add func(agent string, n *node)) {
	span := func(agent string, l line, of level, from, until uint64, open bool) {
		if open {
			until = math.MaxUint64
		}
		add(agent, &node{line: l, seq: from, level: of, until: until})
	}
	unanswered := map[uint64]bool{} // turns whose last text is not the answer: it has its own line
	for i := range b.items {
		if it := &b.items[i]; it.Turn != "" && it.Topic == report.Said {
			unanswered[it.Sequence] = true
		}
	}
	for i := range b.s.Turns {
		t := &b.s.Turns[i]
		l := line{head: report.TurnName(t), detail: cmp.Or(t.Text, t.Said)}
		if unanswered[t.Sequence] && b.details != nil {
			l.detail = ""
		}
		b.span(&l, t.EndedAt.IsZero(), t.Error, t.Duration)
		l.word += view.MadeUp(t.EndMadeUp)
		if b.taken.Text(t.AgentID, cmp.Or(t.Text, t.Said)) {
			l.mark, l.word = warn, view.TakenBack
		}
		l.detail = report.Dashed(t.Asked, l.detail)
		span(t.AgentID, l, turn, t.Sequence, t.EndSequence, t.EndedAt.IsZero())
	}
	for i := range b.s.Steps {
		st := &b.s.Steps[i]
		l := line{head: st.Name, detail: st.Description}
		if l.head == "" {
			l.head = words("step", st.StepID)
		}
		b.span(&l, st.EndedAt.IsZero(), st.Error, st.Duration)
		span(b.inside(st.AgentID, st.Within, ""), l, step, st.Sequence, st.EndSequence, st.EndedAt.IsZero())
	}
}

// span adds the result of a turn or a step to its line.
func (b *builder) span(l *line, open bool,
	failure agentevents.Opt[agentevents.ErrorInfo], took agentevents.Opt[time.Duration]) {
	word, how := view.Error(failure)
	b.ended(l, open, view.MarkOf(how), word)
	if took.OK {
		l.fact(view.Duration(took.V))
	}
	if text := errorText(failure.V); text != "" {
		l.detail = text
	}
}

// workflows hangs the workflows, their phases and their checkpoints under the run. Agents join
// their phase later.
func (b *builder) workflows(root *node) {
	s := b.s
	b.phases = map[phaseKey]*phaseNodes{}
	b.flows = map[string][]*node{}
	for i := range s.Workflows {
		b.workflow(root, &s.Workflows[i])
	}
	for i := range s.Phases {
		ph := &s.Phases[i]
		n := &node{line: line{head: "phase " + ph.Phase}, seq: ph.Sequence}
		word, how := view.Phase(s, ph), none
		if !ph.Open {
			how = view.MarkOf(endword.Of(word))
		}
		b.closed(&n.line, ph.Open && word != view.NoEnd, how, word)
		n.line.detail = ph.Error.V.Message
		n.line.fact(view.Between(ph.StartedAt, ph.EndedAt))
		if ph.InputCount.OK {
			n.line.fact(strconv.Itoa(ph.InputCount.V) + " in")
		}
		if ph.OutputCount.OK {
			n.line.fact(strconv.Itoa(ph.OutputCount.V) + " out")
		}
		if ph.Tokens.OK {
			n.line.fact(view.Count(ph.Tokens.V, "token"))
		}
		flow := b.flow(root, ph.WorkflowID, ph.Sequence)
		for _, key := range [...]phaseKey{{flow, ph.Phase}, {nil, ph.Phase}} {
			if b.phases[key] == nil {
				b.phases[key] = &phaseNodes{}
			}
			b.phases[key].add(passage{n, ph.StartedAt, ph.SpanID})
		}
		flow.add(n)
	}
	for i := range s.Workflows {
		w := &s.Workflows[i]
		flow := b.flow(root, w.WorkflowID, w.Sequence)
		for _, phase := range w.Phases {
			if b.phases[phaseKey{flow, phase}] == nil {
				flow.add(&node{line: line{head: "phase " + phase, word: "not started"}})
			}
		}
	}
	for i := range s.Checkpoints {
		c := &s.Checkpoints[i]
		l := line{head: words("checkpoint", c.Phase), word: "saved"}
		if c.Resumed {
			l.word = "resumed"
		}
		if c.StateBytes.V > 0 {
			l.fact(view.Count(c.StateBytes.V, "byte"))
		}
		b.flow(root, c.WorkflowID, c.Sequence).add(&node{line: l})
	}
}

// workflow hangs a workflow under the run.
func (b *builder) workflow(root *node, w *agentevents.WorkflowSnapshot) {
	top := &node{line: line{head: words("workflow", w.WorkflowID), bold: true}, seq: w.Sequence}
	b.closed(&top.line, !w.Finalized && !b.s.Status.Terminal(), none, "")
	if w.Finalized {
		top.line.mark, top.line.word = good, "finalized"
		if w.Ended != "" {
			top.line.mark, top.line.word, top.line.detail = view.MarkOf(endword.Of(w.Ended)), w.Ended, w.Error.V.Message
		}
	}
	if w.Duration.OK {
		top.line.fact(view.Duration(w.Duration.V))
	}
	if w.ApprovedBy != "" {
		top.line.fact("approved by " + w.ApprovedBy)
	}
	if w.TotalAgents.V > 0 { // 0 may mean that the log lacks it
		top.line.fact(view.Count(w.TotalAgents.V, "agent"))
	}
	if w.TotalTokens.V > 0 {
		top.line.fact(view.Count(w.TotalTokens.V, "token"))
	}
	root.add(top)
	b.flows[w.WorkflowID] = append(b.flows[w.WorkflowID], top)
}

// flow returns the node of the workflow with an id that an event of a sequence is about: the
// latest one that has begun, or the first. One that is not in the snapshot gets a node.
func (b *builder) flow(root *node, id string, sequence uint64) *node {
	all := b.flows[id]
	if len(all) == 0 {
		top := &node{line: line{head: words("workflow", id), bold: true}}
		root.add(top)
		b.flows[id] = []*node{top}
		return top
	}
	for _, flow := range slices.Backward(all) {
		if flow.seq <= sequence {
			return flow
		}
	}
	return all[0]
}

// state hangs the nodes of the flow and the budgets under the run.
func (b *builder) state(root *node) {
	entered := map[string]bool{} // a line for each visit is in the tree
	for i := range b.items {
		if it := &b.items[i]; it.Topic == report.Visit {
			entered[it.Subject] = true
		}
	}
	for i := range b.items {
		it := &b.items[i]
		if it.Topic != report.Node && it.Topic != report.Budget || it.Status == "visited" && entered["enters "+it.Subject] {
			continue
		}
		root.add(&node{line: b.itemLine(it)})
	}
}

func tokensText(u agentevents.Usage, partial bool) (text string) {
	if partial {
		text = "at least "
	}
	cached := view.Cached(u)
	if u.InputTokens == 0 && u.OutputTokens == 0 && cached == 0 {
		if u.TotalTokens.V == 0 {
			return ""
		}
		return text + view.Count(u.TotalTokens.V, "token")
	}
	text += view.Count(u.InputTokens, "token") + " in, " + strconv.FormatInt(u.OutputTokens, 10) + " out"
	if cached > 0 {
		text += ", " + strconv.FormatInt(cached, 10) + " cached"
	}
	return text
}

// totals sums up the run.
func (b *builder) totals() line {
	s := b.s
	var l line
	l.fact(view.Count(len(b.agents), "agent"))
	calls, failed, refused, undecided := 0, 0, 0, 0
	for _, t := range s.Tools {
		if t != nil {
			calls, failed, refused, undecided = calls+t.Calls, failed+t.Failed, refused+t.Refused, undecided+t.Undecided
		}
	}
	l.fact(withOthers(view.Count(calls, "tool call"), failed, refused, undecided))
	if n := len(s.Audits); n > 0 {
		results := map[agentevents.AuditResult]int{}
		for i := range s.Audits {
			results[s.Audits[i].Result]++
		}
		var parts []string
		for _, r := range [...]struct {
			result agentevents.AuditResult
			word   string
		}{{agentevents.AuditPass, "passed"}, {agentevents.AuditFail, "failed"}, {agentevents.AuditWarn, "warned"}} {
			if k := results[r.result]; k > 0 {
				parts = append(parts, strconv.Itoa(k)+" "+r.word)
			}
		}
		text := view.Count(n, "audit")
		if len(parts) > 0 {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		l.fact(text)
	}
	if n := len(s.Messages); n > 0 {
		l.fact(view.Count(n, "message"))
	}
	l.fact(tokensText(s.Usage.Usage, s.Usage.Partial))
	if s.Usage.CostUSD.OK {
		l.fact(view.Dollars(s.Usage.CostUSD.V))
	}
	if s.ViolationCount > 0 {
		l.fact(view.Count(s.ViolationCount, "violation"))
	}
	if s.Refused > 0 {
		l.fact(view.Count(s.Refused, "refused event"))
	}
	return l
}

// said hangs the question to an attempt of an agent first below it, and its answer last. The line
// of the call that it works for, or its own line, may have the same text.
func (b *builder) said(root *node) {
	if b.details == nil {
		return
	}
	for i := range b.items {
		it := &b.items[i]
		n := b.attempt(it.AgentID, it.Sequence)
		l := b.itemLine(it)
		switch {
		case it.Turn != "": // the line of the turn tells it
		case it.Topic == report.Answered && n == nil:
			root.add(&node{line: l})
		case it.Topic == report.Answered && !n.a.Several && len(n.a.Earlier) > 0,
			it.Topic == report.Asked && n != nil && it.Sequence > n.seq && !n.a.Several:
			n.turn(&node{line: l, seq: it.Sequence}, it.Topic == report.Answered)
		case it.Topic == report.Ended && n != nil && n.line.detail == n.a.EndReason: // the line of the agent tells it
		case it.Topic == report.Answered, it.Topic == report.Said && n != nil, it.Topic == report.Ended && n != nil:
			n.add(&node{line: l})
		case it.Topic == report.Asked && n != nil && it.Text != n.a.Task && it.Text != b.told(n):
			n.children = slices.Insert(n.children, 0, &node{line: l})
		}
	}
}

// turn adds the question or the answer of a turn of a conversation before the nodes of later turns.
func (n *agentNode) turn(child *node, answer bool) {
	until := child.seq
	if answer {
		until = math.MaxUint64
		for _, t := range n.a.AttemptsInOrder() {
			if t.Sequence > child.seq {
				until = min(until, t.Sequence)
			}
		}
	}
	at := slices.IndexFunc(n.children, func(c *node) bool { return c.seq >= until })
	if at < 0 {
		at = len(n.children)
	}
	n.children = slices.Insert(n.children, at, child)
}

// told returns the main argument of the call that an attempt works for.
func (b *builder) told(n *agentNode) string {
	if call := b.call(callKey{n.a.ParentAgentID, n.a.ParentCallID}, n.seq); call != nil && n.a.ParentCallID != "" {
		return b.details.Call(b.s.RunID, n.a.ParentAgentID, call.seq)
	}
	return ""
}
