package tree

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/view"
)

// A builder makes the nodes of one run. Snapshots may have been read from
// JSON, so parents may be missing or form a circle, and elements of lists may be
// nil.
type builder struct {
	s       *agentevents.RunSnapshot
	o       Options
	details *runDetails

	agents     map[string]*agentNode
	asking     map[string]int    // number of open model calls, by agent id
	nodeOf     map[string]string // the first node that names the agent, by agent id
	executions map[string]int    // number of agents that only executions identify, by node
	order      []*agentNode      // in the order in which the agents appeared
	calls      map[callKey]*node
	named      map[callKey]bool // calls that other lines refer to
	phases     map[string]*phaseNodes
}

type callKey struct{ agent, call string }

type agentNode struct {
	node
	id    string
	a     *agentevents.AgentSnapshot
	below []*agentNode
	at    *node // what it hangs from; nil until it is placed
	depth int
}

// run builds the whole tree.
func (b *builder) run() *node {
	b.makeAgents()
	root := &node{line: b.runLine()}
	if n := b.s.DroppedCalls; n > 0 {
		root.add(&node{line: line{head: count(n, "tool call") + " not kept in the snapshot"}})
	}
	var rest []*node // of the run itself
	add := func(agent string, n *node) {
		if owner := b.agents[agent]; owner != nil {
			owner.add(n)
			return
		}
		rest = append(rest, n)
	}
	b.items(add)
	b.spans(add)
	b.notes(add)
	b.workflow(root)
	b.placeAgents(root)
	for _, a := range b.order {
		a.children = nest(a.children)
		b.said(a)
	}
	for _, c := range b.calls {
		sortBySeq(c.children)
	}
	root.children = append(root.children, nest(rest)...)
	b.nodes(root)
	b.budgets(root)
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
	l := line{bold: true, word: string(s.Status)}
	if s.SessionID != "" && s.SessionID != s.RunID {
		l.head = "session " + s.SessionID + " · "
	}
	l.head += "run " + s.RunID
	if s.Name != "" {
		l.head += " (" + s.Name + ")"
	}
	switch s.Status {
	case agentevents.RunStatusCompleted:
		l.mark = good
	case agentevents.RunStatusFailed, agentevents.RunStatusCancelled:
		l.mark = bad
	case agentevents.RunStatusPaused: // it means to go on
	default:
		b.goesOn(&l)
	}
	if b.details != nil && s.StartedAt.Year() > 1970 { // a log without times may begin at the epoch
		l.fact(s.StartedAt.UTC().Format("2006-01-02 15:04:05Z"))
	}
	l.fact(duration(view.Length(b.s)))
	if work := b.working(); work > 0 {
		l.fact("at work " + duration(work))
	}
	if b.details != nil {
		l.fact(why(s))
	}
	switch {
	case s.Error.OK:
		l.detail = errorText(s.Error.V)
	case s.CancelReason != "":
		l.detail = s.CancelReason
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
	b.agents = map[string]*agentNode{}
	b.calls = map[callKey]*node{}
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
	for id, a := range b.s.Agents {
		ids[a] = id
		if view.Executes(id, a) {
			b.executions[a.NodeID]++
		}
	}
	for _, a := range b.s.AgentsInOrder() {
		n := &agentNode{id: ids[a], a: a}
		n.seq = a.Sequence
		n.line = b.agentLine(n, agents)
		b.agents[n.id] = n
		b.order = append(b.order, n)
	}
}

func (b *builder) agentLine(n *agentNode, agents *view.Agents) line {
	a := n.a
	l := line{head: view.Name(n.id, a), bold: true}
	if a.Attempts > 1 {
		l.head += " (attempt " + strconv.Itoa(a.Attempts) + ")"
	}
	l.word, l.mark = agents.Status(n.id, a)
	if l.mark == view.Open {
		l.mark = none
		b.goesOn(&l)
	}
	switch {
	case a.Error.OK && errorText(a.Error.V) != "":
		l.detail = errorText(a.Error.V)
	case l.mark != good && a.LastError.OK && errorText(a.LastError.V) != "":
		l.detail = errorText(a.LastError.V)
	case l.mark == bad && b.details.of(n.id).why != "":
		l.detail = b.details.of(n.id).why
	default:
		l.detail = a.Task
	}
	if a.ConvergenceScore.OK {
		l.fact("convergence " + strconv.FormatFloat(a.ConvergenceScore.V, 'g', 4, 64))
	}
	took, work := b.details.of(n.id).took(a)
	if a.Duration.OK {
		l.fact(duration(took))
	}
	if work > 0 {
		l.fact("at work " + duration(work))
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
	steps := a.Totals.Or(a.Counted).Steps
	if a.Attempts > 1 && a.Step.OK { // the counts are of the last attempt, and the calls beside them of all
		steps = max(steps, a.Step.V+1)
	}
	if steps > 0 {
		l.fact(count(steps, "step"))
	}
	if a.ToolCalls > 0 || a.ToolFailures > 0 {
		l.fact(withFailed(count(a.ToolCalls, "tool call"), a.ToolFailures))
	}
	// A document may be an excerpt, of which only the totals of its agents tell.
	if t := a.Totals.V; t.ToolCalls > a.Counted.ToolCalls {
		l.fact(count(t.ToolCalls, "tool call") + " stated")
	}
	if t := a.Totals.V; t.AuditCheckpoints > a.Counted.AuditCheckpoints {
		l.fact(withFailed(count(t.AuditCheckpoints, "audit")+" stated", t.AuditsFailed))
	}
	if a.ModelCalls > 0 {
		text := withFailed(count(a.ModelCalls, "model call"), a.ModelFailures)
		if why := b.details.of(n.id).failure; why != "" && a.ModelFailures > 0 && !strings.Contains(l.detail, strings.TrimSuffix(why, "…")) {
			text = strings.TrimSuffix(text, ")") + ": " + why + ")"
		}
		if open := b.asking[n.id]; open > 0 {
			text += ", " + strconv.Itoa(open) + " open"
		}
		l.fact(text)
	}
	tokens, cost := a.Usage.Total()
	if b.details != nil {
		l.fact(tokensText(tokens, a.Usage.Partial()))
	}
	if cost.OK {
		l.fact(dollars(cost.V))
	}
	return l
}

func withFailed(text string, failed int) string {
	if failed == 0 {
		return text
	}
	return text + " (" + strconv.Itoa(failed) + " failed)"
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
		if p := b.agents[parent]; p != nil && parent != n.id {
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
			if call := b.calls[callKey{parent.id, n.a.ParentCallID}]; call != nil {
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

// top returns what an agent without a parent hangs from: a call that no agent
// made, the passage through the phase in which it started, or the run.
func (b *builder) top(n *agentNode, root *node) *node {
	if n.a.ParentAgentID == "" {
		if call := b.calls[callKey{"", n.a.ParentCallID}]; call != nil {
			return call
		}
	}
	if phase := b.phases[n.a.Phase]; phase != nil && n.a.Phase != "" {
		return phase.at(n.a.StartedAt)
	}
	return root
}

// A phaseNodes holds the passages through one phase.
type phaseNodes struct {
	first *node
	later []passage // in rising order of their start
}

type passage struct {
	node  *node
	start time.Time
}

// add adds the next passage of the snapshot. An earlier one that did not start
// before it is left out of later: at never returns it.
func (p *phaseNodes) add(next passage) {
	if p.first == nil {
		p.first = next.node
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

// at returns the last passage that has started at a time, or the first one.
func (p *phaseNodes) at(t time.Time) *node {
	n := sort.Search(len(p.later), func(i int) bool { return p.later[i].start.After(t) })
	if n == 0 {
		return p.first
	}
	return p.later[n-1].node
}

// items calls place for everything an agent did.
func (b *builder) items(place func(agent string, n *node)) {
	add := func(agent string, seq uint64, l line) { place(agent, &node{line: l, seq: seq}) }
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
		if old := b.calls[key]; c.CallID != "" && (old == nil || old.seq <= n.seq) {
			b.calls[key] = n // the latest call of an id is the one that spawned agents
		}
		place(c.AgentID, n)
	}
	for i := range s.Audits {
		a := &s.Audits[i]
		add(a.AgentID, a.Sequence, auditLine(a))
	}
	for i := range s.Handoffs {
		h := &s.Handoffs[i]
		l := line{head: "handoff " + h.From + " → " + h.To, detail: h.Reason}
		b.closed(&l, h.Open, good, "")
		add(h.From, h.Sequence, l)
	}
	for i := range s.Approvals {
		add(s.Approvals[i].AgentID, s.Approvals[i].Sequence, b.approvalLine(&s.Approvals[i]))
	}
	for i := range s.Clarifications {
		add(s.Clarifications[i].AgentID, s.Clarifications[i].Sequence, b.clarificationLine(&s.Clarifications[i]))
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		add(t.AgentID, t.Sequence, line{head: words("task", t.TaskID), detail: t.Goal})
	}
	for i := range s.Issues {
		is := &s.Issues[i]
		add(is.AgentID, is.Sequence, line{head: "issue", mark: warn, word: cmp.Or(is.Severity, "found"), detail: is.Issue})
	}
	for i := range s.Facts.V.Intents {
		in := &s.Facts.V.Intents[i]
		l := line{head: "intent", word: in.Intent}
		confidence(&l, in.Confidence)
		add(in.AgentID, in.Sequence, l)
	}
	for i := range s.Facts.V.Plans {
		p := &s.Facts.V.Plans[i]
		l := line{head: "plan", word: p.Strategy}
		l.fact(count(len(p.Steps), "step"))
		for i := range p.Steps {
			l.detail += "; " + p.Steps[i].Description
		}
		l.detail = strings.TrimPrefix(l.detail, "; ")
		add(p.AgentID, p.Sequence, l)
	}
	for i := range s.Facts.V.Citations {
		c := &s.Facts.V.Citations[i]
		l := line{head: words("citation", c.SourceURI), detail: c.Claim}
		if c.Verified {
			l.mark, l.word = good, "verified"
		}
		confidence(&l, c.Confidence)
		add(c.AgentID, c.Sequence, l)
	}
	for i := range s.Facts.V.Insufficiencies {
		in := &s.Facts.V.Insufficiencies[i]
		add(in.AgentID, in.Sequence, line{head: "evidence", mark: warn, word: "insufficient", detail: in.Reason})
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		l := line{head: "claim " + c.FindingID, word: c.Verdict}
		switch c.Verdict {
		case "accepted":
			l.mark = good
		case "rejected":
			l.mark = bad
		}
		add(c.VerifierAgentID, c.Sequence, l)
	}
}

func confidence(l *line, c agentevents.Opt[float64]) {
	if c.OK {
		l.fact("confidence " + strconv.FormatFloat(c.V, 'g', 4, 64))
	}
}

// words returns a head and an id. One that a reader has derived from the log says nothing.
func words(head, id string) string {
	if derived := len(id) == 36 && id[14] == '8'; id == "" || derived { // a UUID of version 8
		return head
	}
	return head + " " + id
}

// closed gives a line the mark and word of something that is done, or says
// that it is open.
func (b *builder) closed(l *line, open bool, m view.Mark, word string) {
	if !open {
		l.mark, l.word = m, word
		return
	}
	l.word = "open"
	b.goesOn(l)
}

// ended is closed for what a completed run may lack the end of.
func (b *builder) ended(l *line, open bool, m view.Mark, word string) {
	if open && b.s.Status == agentevents.RunStatusCompleted {
		m, word, open = none, view.NoEnd, false
	}
	b.closed(l, open, m, word)
}

// goesOn says of something that has not ended whether it was interrupted.
func (b *builder) goesOn(l *line) {
	if b.o.Ended {
		l.mark = warn
		l.word += " (interrupted)"
	}
}

func (b *builder) callLine(c *agentevents.ToolCallSnapshot) line {
	l := line{head: "tool." + c.ToolID, detail: dashed(b.details.of(c.AgentID).calls[c.CallID], c.Error)}
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
	m, word := bad, string(c.Status)
	if c.Status == agentevents.ToolStatusOK {
		m, word = good, ""
	}
	b.closed(&l, c.Status == "", m, word)
	if c.Duration.OK {
		l.fact(duration(c.Duration.V))
	}
	return l
}

func auditLine(a *agentevents.AuditSnapshot) line {
	l := line{head: a.CheckpointID, word: string(a.Result)}
	if !strings.HasPrefix(l.head, "audit:") {
		l.head = words("audit", a.CheckpointID)
	}
	switch a.Result {
	case agentevents.AuditPass:
		l.mark = good
	case agentevents.AuditFail:
		l.mark = bad
	default:
		l.mark = warn
	}
	l.fact(duration(a.Duration))
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
	for i := range b.s.Turns {
		t := &b.s.Turns[i]
		l := line{head: t.Name, detail: t.Text}
		if l.head == "" {
			l.head = "turn"
			if t.Turn.OK {
				l.head += " " + strconv.Itoa(t.Turn.V)
			}
		}
		b.span(&l, t.EndedAt.IsZero(), t.Error, t.Duration)
		span(t.AgentID, l, turn, t.Sequence, t.EndSequence, t.EndedAt.IsZero())
	}
	for i := range b.s.Steps {
		st := &b.s.Steps[i]
		l := line{head: st.Name, detail: st.Description}
		if l.head == "" {
			l.head = words("step", st.StepID)
		}
		b.span(&l, st.EndedAt.IsZero(), st.Error, st.Duration)
		span(st.AgentID, l, step, st.Sequence, st.EndSequence, st.EndedAt.IsZero())
	}
}

// span says on the line of a turn or a step how it went.
func (b *builder) span(l *line, open bool, failure agentevents.Opt[agentevents.ErrorInfo], took agentevents.Opt[time.Duration]) {
	m, word := good, "completed"
	if failure.OK {
		m, word = bad, "failed"
	}
	b.ended(l, open, m, word)
	if took.OK {
		l.fact(duration(took.V))
	}
	if text := errorText(failure.V); text != "" {
		l.detail = text
	}
}

// unanswered says why a question has no answer, by the kind of event that closed it.
var unanswered = map[agentevents.Kind]string{
	agentevents.KindApprovalRequested:      "asked again",
	agentevents.KindClarificationRequested: "asked again",
	agentevents.KindToolReturned:           "unanswered when the call returned",
	agentevents.KindAgentEnded:             "unanswered when the agent ended",
	agentevents.KindAgentStarted:           "unanswered when the agent started again",
	agentevents.KindRunCompleted:           "unanswered when the run ended",
	agentevents.KindRunFailed:              "unanswered when the run ended",
	agentevents.KindRunCancelled:           "unanswered when the run ended",
}

func (b *builder) approvalLine(ap *agentevents.ApprovalSnapshot) line {
	l := line{head: words("approval", ap.ApprovalID)}
	if ap.CallID != "" {
		l.head += " of call " + ap.CallID
	}
	m, word := bad, "rejected"
	if ap.Granted {
		m, word = good, "granted"
	}
	if ap.By != "" {
		word += " by " + ap.By
	}
	if why := unanswered[ap.ClosedBy]; why != "" {
		m, word = warn, why
	}
	b.closed(&l, ap.Open, m, word)
	l.fact(between(ap.RequestedAt, ap.AnsweredAt))
	l.detail = dashed(ap.Action, ap.Feedback)
	return l
}

func (b *builder) clarificationLine(c *agentevents.ClarificationSnapshot) line {
	l := line{head: words("clarification", c.InterruptID)}
	m, word := good, "answered"
	if c.AnsweredBy != "" {
		word += " by " + c.AnsweredBy
	}
	if why := unanswered[c.ClosedBy]; why != "" {
		m, word = warn, why
	}
	b.closed(&l, c.Open, m, word)
	l.fact(between(c.RequestedAt, c.AnsweredAt))
	if n := len(c.Questions); n > 1 {
		l.fact(count(n, "question"))
	}
	if len(c.Questions) > 0 {
		l.detail = dashed(c.Questions[0].Question, answerTo(c.Questions[0].ID, c.Answers))
	}
	return l
}

// answerTo returns the answer to a question, a text as it is and other JSON on one line.
func answerTo(id string, answers agentevents.JSON) string {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(answers), &all) != nil || all[id] == nil {
		return ""
	}
	var text string
	if json.Unmarshal(all[id], &text) != nil {
		text = string(all[id])
	}
	return short(text, maxNote)
}

// workflow hangs the workflow and its phases under the run. Agents join their
// phase later.
func (b *builder) workflow(root *node) {
	s := b.s
	if !s.Workflow.OK && len(s.Phases) == 0 && len(s.Checkpoints) == 0 {
		return
	}
	w := &s.Workflow.V
	top := &node{line: line{head: words("workflow", w.WorkflowID), bold: true}}
	b.closed(&top.line, s.Workflow.OK && !w.Finalized && !s.Status.Terminal(), none, "")
	if w.Finalized {
		top.line.mark, top.line.word = good, "finalized"
	}
	if w.Duration.OK {
		top.line.fact(duration(w.Duration.V))
	}
	if w.ApprovedBy != "" {
		top.line.fact("approved by " + w.ApprovedBy)
	}
	if w.TotalAgents.V > 0 { // else the log may not say it
		top.line.fact(count(w.TotalAgents.V, "agent"))
	}
	if w.TotalTokens.V > 0 {
		top.line.fact(count(w.TotalTokens.V, "token"))
	}
	root.add(top)
	b.phases = map[string]*phaseNodes{}
	for i := range s.Phases {
		ph := &s.Phases[i]
		n := &node{line: line{head: "phase " + ph.Phase}}
		b.ended(&n.line, ph.Open, good, "completed")
		n.line.fact(between(ph.StartedAt, ph.EndedAt))
		if ph.InputCount.OK {
			n.line.fact(strconv.Itoa(ph.InputCount.V) + " in")
		}
		if ph.OutputCount.OK {
			n.line.fact(strconv.Itoa(ph.OutputCount.V) + " out")
		}
		if ph.Tokens.OK {
			n.line.fact(count(ph.Tokens.V, "token"))
		}
		if b.phases[ph.Phase] == nil {
			b.phases[ph.Phase] = &phaseNodes{}
		}
		b.phases[ph.Phase].add(passage{n, ph.StartedAt})
		top.add(n)
	}
	for _, phase := range w.Phases {
		if b.phases[phase] == nil {
			top.add(&node{line: line{head: "phase " + phase, word: "not started"}})
		}
	}
	for i := range s.Checkpoints {
		c := &s.Checkpoints[i]
		l := line{head: words("checkpoint", c.Phase), word: "saved"}
		if c.Resumed {
			l.word = "resumed"
		}
		if c.StateBytes.V > 0 {
			l.fact(count(c.StateBytes.V, "byte"))
		}
		top.add(&node{line: l})
	}
}

// nodes hangs the nodes of the flow under the run.
func (b *builder) nodes(root *node) {
	for _, id := range slices.Sorted(maps.Keys(b.s.NodeStatus)) {
		st := b.s.NodeStatus[id]
		l := line{head: "node " + id}
		l.word, l.detail = view.Node(b.s, id)
		switch st {
		case agentevents.NodeStatusDone:
			if l.word == string(st) { // else it is skipped
				l.mark = good
			}
		case agentevents.NodeStatusFailed:
			l.mark = bad
		case agentevents.NodeStatusRunning, agentevents.NodeStatusSuspended:
			if b.s.Status == agentevents.RunStatusCompleted {
				l.word = view.NoEnd
			} else {
				b.goesOn(&l)
			}
		}
		if agent := b.s.Facts.V.NodeAgents[id].AgentID; agent != "" {
			l.fact("agent " + agent)
		}
		root.add(&node{line: l})
	}
}

func (b *builder) budgets(root *node) {
	for i := range b.s.Budgets {
		bu := &b.s.Budgets[i]
		l := line{head: "budget " + bu.Budget, mark: warn, word: "exceeded"}
		if bu.Cap {
			l.head, l.word = "cap "+bu.Budget, "reached"
		}
		if bu.Actual.V != 0 || bu.Limit.V != 0 { // else the log may not say them
			if bu.Actual.OK {
				l.fact(number(bu.Actual.V))
			}
			if bu.Limit.OK {
				l.fact("limit " + number(bu.Limit.V))
			}
		}
		root.add(&node{line: l})
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func tokensText(u agentevents.Usage, partial bool) (text string) {
	if partial {
		text = "at least "
	}
	cached := view.Cached(u)
	if u.InputTokens == 0 && u.OutputTokens == 0 && cached == 0 {
		if u.TotalTokens.V == 0 {
			return ""
		}
		return text + count(u.TotalTokens.V, "token")
	}
	text += count(u.InputTokens, "token") + " in, " + strconv.FormatInt(u.OutputTokens, 10) + " out"
	if cached > 0 {
		text += ", " + strconv.FormatInt(cached, 10) + " cached"
	}
	return text
}

// totals sums up the run.
func (b *builder) totals() line {
	s := b.s
	var l line
	l.fact(count(len(b.agents), "agent"))
	calls, failed, refused := 0, 0, 0
	for _, t := range s.Tools {
		if t != nil {
			calls, failed, refused = calls+t.Calls, failed+t.Failed, refused+t.Refused
		}
	}
	l.fact(withFailed(count(calls, "tool call"), failed))
	if refused > 0 {
		l.fact(strconv.Itoa(refused) + " refused")
	}
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
		text := count(n, "audit")
		if len(parts) > 0 {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		l.fact(text)
	}
	if n := len(s.Messages); n > 0 {
		l.fact(count(n, "message"))
	}
	l.fact(tokensText(s.Usage.Usage, s.Usage.Partial))
	if s.Usage.CostUSD.OK {
		l.fact(dollars(s.Usage.CostUSD.V))
	}
	if s.ViolationCount > 0 {
		l.fact(count(s.ViolationCount, "violation"))
	}
	if s.Refused > 0 {
		l.fact(count(s.Refused, "refused event"))
	}
	return l
}
