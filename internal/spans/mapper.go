package spans

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/internal/endword"
)

// A Mapper maps the events of one run to spans. It is not for concurrent use.
//
// A run has one root, which is never the span of an agent. Agents, their attempts, and workflows
// without a parent are siblings below it. run.started begins the root. A run without one, that
// begins with a turn, has the turn as its root, and another turn has a trace of its own; a turn's
// span goes on until its summary, which may come after its end. Any other run gets a root that is
// made up. It has [AttrMadeUp], begins with the first event of the run, and ends with the session
// or with the last event. One root of each agent in the trace was rejected: Jaeger and samplers
// take the first root for the whole trace. A span below the root has its parent by the ids of the
// events. Spans are open only for work; a question to people and a handoff become spans when they
// are over.
//
// An end whose start is not in the log makes a span that lasts as long as the end states. If the
// end states no duration, the span has none, and [AttrNoStart]. A span of which an event has no
// time has [AttrNoStart] or [AttrNoEnd], unless the end states the duration: [AttrStated]. So has a span
// of an export whose events have one time. An end with MarkSynthetic gives its span [AttrEndMadeUp].
//
// Agents are told apart as a fold does it: by agentId, else by nodeRunId, else by the spanId of
// their start. Of several agents that have one id at a time, each has the events in its span.
//
// MaxOpen and the number of open agents bound the memory of a mapper.
type Mapper struct {
	o       Options
	runID   string
	segment uint64 // sequence with which the trace begins, or 0
	resumed *Link  // to the segment before; the next root gets it

	root    *Span
	owner   *agent    // that the run names, or nil
	began   time.Time // the time of the first event
	latest  time.Time // the time of the last event
	undated bool      // began is lent
	stated  bool      // the log has the end of the run
	over    bool      // the root has ended with something else
	of      key       // the subject of the root beside the run: a turn
	turn    bool      // the run is a turn of the root agent; see isTurn
	summed  bool      // so is the summary of that turn seen
	turned  *ended    // the turn has ended, and its summary may come
	session string
	name    string // of the run
	paused  bool
	errType string                        // of the last error event
	total   struct{ tools, models int64 } // calls of the run
	past    map[endword.Meaning]bool      // how agents went that are forgotten

	open   map[key]*Span
	order  []*Span // the open ones, parents first; ended ones are dropped now and then
	agents map[string]*agent
	recent *agent            // one of agents, or nil
	named  map[string]string // the spans that stand for agents, by the ids that events give them
	starts map[string]string // the agents, by the spans of their latest starts
	twins  map[string]string // the agents that share an id, by the spans of their events
	bare   bool              // an agent has started without an id
	scopes []*Span           // open turns and steps of no agent, the innermost last
	own    map[*Span]*agent  // who works for an open node and for nothing else

	lent     bool                // the event has no time of its own
	early    []Point             // came before the root
	left     []agentevents.Event // began the spans that go on under the next root: see Left
	carrying bool                // the spans that begin now are from left, and the log may have their ids
	waits    map[key]wait        // open questions to people
	unasked  map[key]answer      // answers whose questions are not in the log so far
	handoffs map[string][]Link   // to an agent that did not start yet
	used     map[SpanID]struct{}
	next     []Link            // of the span that begins next
	nodes    map[string]*Span  // the latest span of each node
	edges    map[string][]Link // to a node that did not start yet
	flows    int               // workflows that are finalized
	done     []uint64          // digests of the keys of spans that have ended: the latest maxDone
	seed     maphash.Seed      // of the digests
	doneAt   int               // where the next one goes, once there are so many
	orphans  map[key]*Span     // made of their ends
	waiting  []*Span           // of them those that have ended and wait for their starts
	stood    []stood           // spans that wait until the clock of the log goes on
	spare    []Attr            // for the span that begins next
	noting   Point             // the one that is told of
	saying   []Attr            // its attributes
	store    []Attr            // of points that are kept

	// Unmatched counts ends without an open span.
	Unmatched int
}

// An agent is the latest attempt of one.
type agent struct {
	id    string
	name  string // in few words, or ""
	given string // the name of its start, in few words, or ""
	under string // the agent that its start names as parent
	identity
	span    *Span
	scopes  []*Span // open turns and steps, the innermost last
	started bool    // an agent.started was seen
	attempt int     // 1 for the first
	ended   bool
	failed  bool            // a transition said so
	went    endword.Meaning // the result in its end
	errType string          // of its last error event
	tools   int64
	models  int64
	model   *Span // of the last model call
}

// An identity is how the events of an agent are known. All attempts have it.
type identity struct {
	begun   string   // the span of the latest start
	unnamed bool     // a start has no id: the span stands for it
	spanned bool     // so is it now: an event may name it
	twin    string   // the id that its events have, and another agent has at the same time
	in      []string // the spans of a twin
}

// ended is how a run has ended.
type ended struct{ outcome, incomplete string }

// An answer is one to a question that the log may have later, with an earlier time.
type answer struct {
	ev             agentevents.Event
	decision, said string
}

// A wait is a question to a person that has no answer yet, or a handoff that nobody has accepted.
type wait struct {
	at     time.Time
	lent   bool // the time is not the question's
	first  uint64
	parent *Span
	ends   time.Time // when the question lapses, or zero

	span, from, to string             // of a handoff
	free           *agentevents.Event // its event, if that has attributes
}

// Bounds of the memory for later events.
const (
	maxPoints = 128
	maxEarly  = 16
	maxWaits  = 256
	maxAgents = 1024 // ended ones among them
	maxUsed   = 1 << 16
	maxDone   = 1024
)

// New returns a mapper for the run. Events of other runs must not be fed.
func New(runID string, o Options) *Mapper {
	o.ContentBytes = cmp.Or(o.ContentBytes, 8192)
	o.MaxOpen = cmp.Or(o.MaxOpen, 1024)
	return &Mapper{o: o, runID: runID, agents: map[string]*agent{}, seed: maphash.MakeSeed()}
}

// Resume makes the mapper one for the rest of a run that began elsewhere. The rest has a
// trace of its own, from the event with this sequence on. name is the run's, and previous
// is the root before, or nil if it is not known. It is called before Feed.
func (m *Mapper) Resume(sequence uint64, session, name string, previous *Link) {
	m.segment, m.session, m.name, m.resumed, m.stated = sequence, session, label(name), previous, true
}

// Left tells of an agent or a call that is open where the run is resumed, by an event as the
// one that began it. Its span begins anew with the trace, at the old time. It is called after
// Resume.
func (m *Mapper) Left(ev agentevents.Event) {
	if !ev.Time.IsZero() {
		m.left = append(m.left, ev)
	}
}

// leave is Left for all that is open in a trace that ends.
func (m *Mapper) leave() {
	for _, s := range m.order {
		ev := agentevents.Event{RunID: m.runID, AgentID: s.key.agent, Time: s.Start, Sequence: s.First}
		a := m.agents[s.key.agent]
		if a != nil {
			ev.ParentAgentID = a.under
		}
		if up := s.Parent; up != nil && up.key.kind == "tool" {
			ev.ParentCallID = up.key.id
		}
		switch {
		case s.ended:
			continue
		case s.key.kind == "agent":
			start := &agentevents.AgentStarted{Model: s.Attr(AttrRequestModel).Text}
			if a != nil {
				start.Name = a.given
			}
			if a != nil && a.unnamed {
				ev.AgentID, ev.SpanID, start.Agent = "", a.id, agentevents.Some(agentevents.AgentRef{AgentID: a.twin})
			}
			ev.Payload = start
		case s.key.kind == "tool":
			ev.Payload = &agentevents.ToolCalled{CallID: s.key.id, ToolID: s.Attr(AttrTool).Text}
		case s.key.kind == "model":
			ev.Payload = &agentevents.ModelCalled{ModelCallID: s.key.id, Provider: s.Attr(AttrProvider).Text,
				Model: s.Attr(AttrRequestModel).Text, Operation: s.Attr(AttrOperation).Text}
		default:
			continue
		}
		m.Left(ev)
	}
}

// goOn begins the spans of left that are still at work now. An agent that is resumed by a start has
// its span.
func (m *Mapper) goOn(now time.Time) {
	left := m.left
	m.left, m.carrying = nil, m.o.Recorded
	slices.SortFunc(left, func(a, b agentevents.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for i := range left {
		ev := &left[i]
		m.feed(ev).last = now
		if _, starts := ev.Payload.(*agentevents.AgentStarted); starts {
			m.counted(ev).started = false
		}
	}
	m.carrying = false
}

// adopt gives a span that goes on the id that the log has of it.
func (m *Mapper) adopt(s *Span, id string) {
	if s != nil && s.carried && s.ID == (SpanID{}) {
		m.record(s, id)
	}
}

// TraceID is the one that is derived for the run as it is now.
func (m *Mapper) TraceID() TraceID { return DeriveTraceID(m.runID, m.segment) }

// Session returns the session of the run, or "".
func (m *Mapper) Session() string { return m.session }

// Root returns the root span, which may have ended, or nil.
func (m *Mapper) Root() *Span { return m.root }

// At returns the span of an agent's model call or tool call. If the ids of calls are empty, it
// returns the surrounding span: the agent's, or the root. It returns nil without a root.
func (m *Mapper) At(agentID, callID, modelCallID string) *Span {
	agentID = cmp.Or(m.named[agentID], agentID)
	if s := m.open[key{"model", agentID, modelCallID}]; s != nil {
		return s
	}
	if s := m.open[key{"tool", agentID, callID}]; s != nil {
		return s
	}
	if agentID == "" && callID != "" { // of an agent without an id
		for _, s := range slices.Backward(m.order) {
			if !s.ended && s.key.kind == "tool" && s.key.id == callID {
				return s
			}
		}
	}
	return m.scope(&agentevents.Event{AgentID: agentID})
}

// FeedAt is Feed for an event that has no time: at is where it is shown, and is in no duration.
func (m *Mapper) FeedAt(ev *agentevents.Event, at time.Time) *Span {
	timed := *ev
	timed.Time, m.lent = at, true
	defer func() { m.lent = false }()
	return m.Feed(&timed)
}

// Feed maps one event. It returns the span that the event belongs to, which may have
// ended, or nil: its ids are the event's place in the trace. An event whose time is not known is
// shown at the time of the event before.
func (m *Mapper) Feed(ev *agentevents.Event) *Span {
	switch known := agentevents.TimeKnown(ev.Time); {
	case !known && !m.lent:
		at := ev.Time
		if !m.latest.IsZero() {
			at = m.latest
		}
		return m.FeedAt(ev, at)
	case known:
		if m.latest = ev.Time; len(m.stood) > 0 && !ev.Time.Equal(m.began) {
			m.release(false)
		}
	}
	if m.session == "" {
		m.session = ev.SessionID
	}
	if m.began.IsZero() {
		m.began, m.undated = ev.Time, m.lent
	}
	if m.isTurn(ev) {
		as := *ev
		for _, id := range [...]*string{&as.AgentID, &as.ParentAgentID} {
			if *id == rootAgent {
				*id = ""
			}
		}
		ev = &as
	}
	m.identify(ev)
	if len(m.left) > 0 {
		m.ensureRoot(ev)
	}
	at := m.feed(ev)
	at.touch(ev.Time, ev.Sequence)
	return at
}

// rootAgent is the agent of KAOS lines that name none. Its actions belong to the run.
const rootAgent = "root"

// isTurn reports whether the event belongs to the root agent, or an agent that works for it, in a
// run that is a turn of the root agent. Such a run begins with the turn, and the agent never
// starts.
func (m *Mapper) isTurn(ev *agentevents.Event) bool {
	if ev.AgentID != rootAgent && ev.ParentAgentID != rootAgent {
		return false
	}
	switch p := ev.Payload.(type) {
	case *agentevents.TurnStarted:
		m.turn = m.turn || m.root == nil
	case *agentevents.SpanRecorded:
		m.turn = m.turn || m.root == nil && p.Subject == "run" && p.Phase == "start"
	case *agentevents.AgentStarted:
		m.turn = m.turn && ev.AgentID != rootAgent
	}
	return m.turn
}

// touch notes an event of the span, or of the first one around it that is open. Those around
// that one are told when it ends.
func (s *Span) touch(at time.Time, sequence uint64) {
	for s != nil && s.ended {
		s = s.Parent
	}
	if s == nil {
		return
	}
	if at.After(s.last) {
		s.last = at
	}
	s.Last = max(s.Last, sequence)
}

func (m *Mapper) feed(ev *agentevents.Event) *Span {
	switch p := ev.Payload.(type) {
	case *agentevents.TextDelta, *agentevents.AgentReasoningDelta:
		m.delta(ev)
		return m.scope(ev)
	case *agentevents.ToolArgumentsDelta:
		m.delta(ev)
		if s := m.open[key{"tool", m.who(ev), p.CallID}]; s != nil {
			return s
		}
		return m.scope(ev)

	case *agentevents.RunStarted:
		return m.runStarted(ev, p)
	case *agentevents.RunPaused:
		m.paused = true
	case *agentevents.RunResumed:
		m.paused = false
		return m.runResumed(ev)
	case *agentevents.RunCompleted:
		m.endsAlone(ev)
		return m.runEnded(ev, "completed", "")
	case *agentevents.RunFailed:
		m.endsAlone(ev)
		m.fail(m.root, errorType(p.Error, cmp.Or(m.errType, ErrorOther)), p.Error.V.Message)
		return m.runEnded(ev, "failed", ReasonRunEnded)
	case *agentevents.RunCancelled:
		m.endsAlone(ev)
		m.fail(m.root, "cancelled", p.Reason)
		return m.runEnded(ev, "cancelled", ReasonRunEnded)

	case *agentevents.AgentStarted:
		return m.agentStarted(ev, p)
	case *agentevents.AgentEnded:
		return m.agentEnded(ev, p)
	case *agentevents.AgentTransition:
		if p.To == agentevents.StatusFailed {
			m.counted(ev).failed = true
		}
	case *agentevents.SessionCompleted:
		return m.sessionEnded(ev, p)
	case *agentevents.WorkflowCreated:
		return m.pointAt(m.workflow(ev), ev)
	case *agentevents.WorkflowFinalized:
		return m.finalized(ev, p)
	case *agentevents.TurnSummarized:
		if m.of.kind == "turn" && m.is(m.of) && m.who(ev) == "" {
			return m.turnSummarized(ev, p)
		}
	case *agentevents.UsageObserved:
		m.observed(ev, p)
	case *agentevents.AgentErrored:
		if p.Severity != agentevents.SeverityWarning {
			m.errType = word(p.ErrorType)
			m.counted(ev).errType = m.errType
		}

	case *agentevents.ModelCalled:
		return m.modelCalled(ev, time.Time{}, p)
	case *agentevents.ModelReturned:
		return m.modelReturned(ev, p)
	case *agentevents.ToolCalled:
		return m.toolCalled(ev, time.Time{}, p)
	case *agentevents.ToolReturned:
		return m.toolReturned(ev, p)

	case *agentevents.EdgeFired:
		m.edge(p)
	case *agentevents.HandoffRequested:
		m.wait(ev, handoffKey(p.HandoffID, p.From, p.To),
			wait{parent: m.scope(ev), span: ev.SpanID, from: p.From.AgentID, to: p.To.AgentID, free: attributed(ev)})
		m.handoff(ev, p.To)
	case *agentevents.HandoffAccepted:
		s := m.point(ev)
		k := handoffKey(p.HandoffID, p.From, p.To)
		m.handedOver(ev, func(of key, _ wait) bool { return of == k }, "accepted", agentevents.ErrorInfo{})
		return s
	case *agentevents.Unknown:
		s := m.point(ev)
		m.notAccepted(ev, p)
		m.notCompleted(ev, p)
		return s
	case *agentevents.AgentHandoff:
		m.handoff(ev, p.To)
	case *agentevents.ApprovalRequested:
		return m.asked(ev, "approval", p.ApprovalID, p.CallID, p.Timeout)
	case *agentevents.ApprovalGranted:
		return m.answered(ev, "approval", p.ApprovalID, decision(p.Answer, "granted"), p.Feedback)
	case *agentevents.ApprovalRejected:
		return m.answered(ev, "approval", p.ApprovalID, decision(p.Answer, "denied"), p.Feedback)
	case *agentevents.ClarificationRequested:
		return m.asked(ev, "clarification", p.InterruptID, p.CallID, agentevents.Opt[time.Duration]{})
	case *agentevents.ClarificationResolved:
		return m.answered(ev, "clarification", p.InterruptID, "answered", string(p.Answers))

	default:
		if !m.o.NoSteps || m.ofRun(ev) {
			if s, ok := m.step(ev); ok {
				return s
			}
		}
	}
	return m.point(ev)
}

// A shape holds the properties with which a span begins.
type shape struct {
	name  string
	kind  Kind
	start time.Time // zero means the event's
	attrs []Attr
}

// common are the attributes that every span begins with; those that a sampler may look
// at come first.
func (m *Mapper) common(ev *agentevents.Event, operation string, more ...Attr) []Attr {
	attrs := slices.Grow(m.spare, 10+len(more))
	m.spare = nil
	attrs = append(attrs, str(AttrOperation, operation))
	for _, a := range more {
		if !a.none() {
			attrs = append(attrs, a)
		}
	}
	if session := cmp.Or(ev.SessionID, m.session); session != "" {
		attrs = append(attrs, str(AttrConversation, cut(session, maxText)))
	}
	attrs = append(attrs, str(AttrRun, cut(m.runID, maxText)), str(AttrSchema, agentevents.SchemaVersion),
		val(AttrFirst, int64(ev.Sequence)))
	if id := m.known(ev); id != "" {
		attrs = append(attrs, str(AttrAgentID, cut(id, maxText)))
	}
	return attrs
}

// ensureRoot makes up a root where an event opens something and the run has none. Below a
// root that is made up, an agent that acts without a start has a span that is made up as well.
func (m *Mapper) ensureRoot(ev *agentevents.Event) {
	if m.root == nil && m.stated {
		m.workflowRoot(ev)
	}
	if m.root == nil {
		as, lent := *ev, m.lent
		if m.segment == 0 { // it begins with the first event
			m.lent = m.undated
			if m.began.Before(ev.Time) {
				as.Time = m.began
			}
		}
		m.workflowRoot(&as, val(AttrMadeUp, true))
		m.root.madeUp, m.lent = true, lent
	}
	_, starts := ev.Payload.(*agentevents.AgentStarted)
	if m.root.madeUp && !starts && ev.AgentID != "" && m.agent(ev) == nil {
		id := m.who(ev)
		parent := m.place(ev)
		if up := m.spawner(ev); up != nil {
			parent = up.span
		}
		as := *ev
		as.SpanID, as.ParentSpanID = "", "" // the act has them
		h := m.invoke(&as, "")
		h.attrs = append(h.attrs, val(AttrMadeUp, true))
		m.newAgent(&as, id, "", parent, h).span.madeUp = true
	}
}

// endsAlone makes up the root of a run of which only the end is in the log.
func (m *Mapper) endsAlone(ev *agentevents.Event) {
	if m.root == nil {
		m.ensureRoot(m.ofRunAt(ev))
	}
}

// workflowRoot makes the root of the run.
func (m *Mapper) workflowRoot(ev *agentevents.Event, more ...Attr) {
	as := *ev
	as.AgentID = "" // it belongs to no agent
	m.makeRoot(ev, shape{name: title(OpWorkflow, m.name),
		attrs: m.common(&as, OpWorkflow, append(more, str(AttrWorkflow, m.name))...)})
}

// is reports whether the open root is the span of this as well.
func (m *Mapper) is(k key) bool { return m.of == k && m.root != nil && !m.root.ended }

func (m *Mapper) makeRoot(ev *agentevents.Event, h shape) {
	s := m.span(ev, nil, h)
	if m.o.Recorded {
		if id, ok := ParseTraceID(ev.TraceID); ok {
			s.TraceID = id
		}
		_, opens := ev.Payload.(*agentevents.RunStarted)
		_, resumes := ev.Payload.(*agentevents.RunResumed)
		if opens || resumes || m.of.kind != "" {
			m.record(s, ev.SpanID)
			s.ParentID, s.Remote = parent(ev)
		} else {
			m.record(s, ev.ParentSpanID)
		}
	}
	if m.resumed != nil {
		s.Links = append(s.Links, Link{m.resumed.TraceID, m.resumed.SpanID, []Attr{str(AttrLinkType, "resumed")}})
		m.resumed = nil
	}
	m.root = s
	m.tell(s)
	for i := range m.early {
		m.add(s, &m.early[i])
	}
	m.early = nil
	m.mark(ev, s)
	if len(m.left) > 0 {
		m.goOn(ev.Time)
	}
}

// parent is the one that the log has recorded for a root.
func parent(ev *agentevents.Event) (id SpanID, ok bool) {
	if id, ok = ParseSpanID(ev.ParentSpanID); !ok || ev.ParentSpanID == ev.SpanID {
		return SpanID{}, false
	}
	return id, true
}

// record gives the span an id that the log has, if no other span has it.
func (m *Mapper) record(s *Span, text string) {
	id, ok := ParseSpanID(text)
	if !ok || len(m.used) >= maxUsed {
		return
	}
	if _, twice := m.used[id]; twice {
		return
	}
	if m.used == nil {
		m.used = map[SpanID]struct{}{}
	}
	m.used[id] = struct{}{}
	s.ID = id
}

// Derive gives a span the ids that it lacks. [Options].Started may call it.
func (m *Mapper) Derive(s *Span) {
	if s.TraceID == (TraceID{}) {
		s.TraceID = m.TraceID()
	}
	switch {
	case s.ID != (SpanID{}):
	case s == m.root:
		s.ID = DeriveSpanID(m.runID, "run", m.runID, s.First)
	default:
		s.ID = DeriveSpanID(m.runID, s.key.kind, s.key.agent+"\x00"+s.key.id, s.First)
	}
}

func (m *Mapper) span(ev *agentevents.Event, parent *Span, h shape) *Span {
	if h.start.IsZero() {
		h.start = ev.Time
		if m.lent {
			h.attrs = append(h.attrs, val(AttrNoStart, true))
		}
	}
	return &Span{
		Parent: parent, Name: h.name, Kind: cmp.Or(h.kind, KindInternal), Start: h.start, last: h.start,
		Attributes: h.attrs, Links: m.next, First: ev.Sequence, Last: ev.Sequence,
	}
}

// make makes a span below another one.
func (m *Mapper) make(ev *agentevents.Event, parent *Span, k key, h shape) *Span {
	s := m.span(ev, parent, h)
	s.TraceID, s.key, s.carried = m.root.TraceID, k, m.carrying
	m.covers(s)
	if m.o.Recorded {
		m.adopt(parent, ev.ParentSpanID)
		m.record(s, ev.SpanID)
	}
	return s
}

// covers has the spans around that are made up begin with the span at the latest. An export has
// it so; a provider's spans have begun.
func (m *Mapper) covers(s *Span) {
	for up := s.Parent; up != nil; up = up.Parent {
		if up.madeUp && up.Start.After(s.Start) {
			up.Start = s.Start
		}
	}
}

// begin opens a span. One of the same key that is open has begun again.
func (m *Mapper) begin(ev *agentevents.Event, parent *Span, k key, h shape) *Span {
	if old := m.open[k]; old != nil {
		if parent == old {
			parent = old.Parent
		}
		m.closeBelow(old, ReasonRestarted, true)
		m.close(old, ReasonRestarted, true)
	}
	m.makeRoom()
	s := m.make(ev, parent, k, h)
	if m.open == nil {
		m.open = map[key]*Span{}
	}
	m.open[k] = s
	m.order = append(m.order, s)
	m.tell(s)
	return s
}

// mark tells of a span of no duration below one that has begun.
func (m *Mapper) mark(ev *agentevents.Event, of *Span) {
	if !m.o.Markers {
		return
	}
	s := m.make(ev, of, key{"started", ev.AgentID, ev.RunID},
		shape{name: OpStarted, attrs: m.common(ev, OpStarted, str(AttrStarted, of.Name))})
	m.tell(s)
	m.finish(s, ev.Time)
}

// Reuse takes the lists of a span that has ended. The next span has its attributes in them, so
// nobody may have kept them.
func (m *Mapper) Reuse(s *Span) {
	if len(m.open) > 0 {
		m.spare = s.Attributes[:0]
	}
	s.Attributes, s.Points, s.Links = nil, nil, nil
}

func (m *Mapper) tell(s *Span) {
	if m.o.Started != nil {
		m.o.Started(s)
	}
	if !s.carried {
		m.Derive(s)
	}
	s.told = len(s.Attributes)
}

// makeRoom closes the span that is open longest, and prefers calls.
func (m *Mapper) makeRoom() {
	if len(m.order) > 2*len(m.open)+16 {
		m.order = slices.DeleteFunc(m.order, func(s *Span) bool { return s.ended })
	}
	if len(m.open) < m.o.MaxOpen {
		return
	}
	var oldest *Span
	for _, s := range m.order {
		if s.ended {
			continue
		}
		if s.call() {
			oldest = s
			break
		}
		if oldest == nil {
			oldest = s
		}
	}
	if oldest != nil {
		m.closeBelow(oldest, ReasonEvicted, true)
		m.close(oldest, ReasonEvicted, true)
	}
}

// end ends a span with its event.
func (m *Mapper) end(s *Span, ev *agentevents.Event) *Span {
	if s == nil || s.ended {
		return s
	}
	m.attributes(s, ev)
	s.touch(ev.Time, ev.Sequence)
	m.adopt(s, ev.SpanID)
	m.adopt(s.Parent, ev.ParentSpanID)
	m.finish(s, m.timed(s, ev))
	return s
}

// madeUp reports whether a reader made up the end of a run, an agent, a turn or a tool call. The mark of
// a call in one event tells that its beginning is made up.
func madeUp(ev *agentevents.Event) bool {
	if !ev.Marks.Has(agentevents.MarkSynthetic) {
		return false
	}
	switch p := ev.Payload.(type) {
	case *agentevents.RunCompleted, *agentevents.RunFailed, *agentevents.RunCancelled, *agentevents.SessionCompleted,
		*agentevents.AgentEnded, *agentevents.TurnEnded:
		return true
	case *agentevents.ToolReturned:
		return !p.OneEvent
	}
	return false
}

// timed returns the time at which a span ends. Where only one of its two times is known, and the
// event states how long the work took, the other one follows.
func (m *Mapper) timed(s *Span, ev *agentevents.Event) time.Time {
	if madeUp(ev) {
		s.set(val(AttrEndMadeUp, true))
	}
	took, at := durationOf(ev.Payload), ev.Time
	unbegun := s.Attr(AttrNoStart).Value == true
	if m.lent && took <= 0 {
		s.set(val(AttrNoEnd, true))
	}
	if took <= 0 || !unbegun && !m.lent {
		m.stand(s, at, took)
		return at
	}
	s.set(val(AttrStated, true))
	switch {
	case m.lent:
		at = s.Start.Add(took)
		s.touch(at, s.Last)
	default:
		s.Start = at.Add(-took)
		s.set(val(AttrNoStart, false))
		m.covers(s)
	}
	return at
}

// A stood is a span that has ended while the clock of its log stood still.
type stood struct {
	s    *Span
	took time.Duration // as its end states
}

// stand has a span wait for the end of its run if the clock has stood still since the run began. A
// provider's spans have begun.
func (m *Mapper) stand(s *Span, at time.Time, took time.Duration) {
	if m.o.Late && took >= time.Millisecond && at.Equal(m.began) && !m.undated && s != m.root && !s.waits && len(m.waiting) < maxWaits {
		s.waits = true
		m.stood = append(m.stood, stood{s, took})
	}
}

// release tells of the spans that stood still. If the clock has never gone on, nothing was measured: they begin
// earlier, with the spans around them, by the durations that their ends state.
func (m *Mapper) release(never bool) {
	for _, w := range m.stood {
		if never {
			m.stretch(w.s, w.s.End.Add(-w.took))
		}
	}
	for _, w := range m.stood {
		if i := slices.Index(m.waiting, w.s); i >= 0 {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			m.o.Ended(w.s)
		}
	}
	m.stood = nil
}

// stretch has a span, and those around it that were not told of yet, begin at a time at the latest.
func (m *Mapper) stretch(s *Span, start time.Time) {
	for ; s != nil && s.Start.After(start) && (!s.ended || s.waits); s = s.Parent {
		if s.Start = start; !s.madeUp {
			s.set(val(AttrStated, true))
		}
	}
}

// durationOf is the duration that an ending event states, or 0.
func durationOf(p agentevents.Payload) time.Duration {
	switch p := p.(type) {
	case *agentevents.AgentEnded:
		return p.Duration.V
	case *agentevents.ToolReturned:
		if refused(p.Status) {
			return 0
		}
		return p.Duration.V
	case *agentevents.ModelReturned:
		return p.Duration.V
	case *agentevents.NodeCompleted:
		return p.Duration.V
	case *agentevents.TurnEnded:
		return p.Duration.V
	case *agentevents.StepEnded:
		return p.Duration.V
	case *agentevents.SpanRecorded:
		return p.Duration.V
	case *agentevents.WorkflowFinalized:
		return p.Duration
	}
	return 0
}

// refused reports whether a call did not run.
func refused(s agentevents.ToolStatus) bool {
	return s == agentevents.ToolStatusForbidden || s == agentevents.ToolStatusRateLimited
}

func (m *Mapper) finish(s *Span, at time.Time) {
	s.End = at
	if at.Before(s.Start) {
		s.End = s.Start
		s.set(val(AttrAdjusted, true))
	}
	if up := s.Parent; up != nil && !up.ended {
		if until := s.Until(); until.After(up.below) {
			up.below = until
		}
	}
	m.Derive(s) // sets the ids that the log did not have, also for spans that go on
	if s.Parent != nil {
		m.Derive(s.Parent)
	}
	m.spend(s)
	s.Attributes = append(s.Attributes, val(AttrLast, int64(s.Last)))
	if s.deltas > 0 {
		s.set(val(AttrDeltas, int64(s.deltas)))
		if s.Attr(AttrFirstChunk).none() && !s.delta.IsZero() && s.Attr(AttrNoStart).Value != true {
			s.set(val(AttrFirstChunk, max(0, s.delta.Sub(s.Start)).Seconds()))
		}
	}
	if len(s.content) > 0 {
		m.details(s)
	}
	s.ended = true
	s.Parent.touch(s.last, s.Last)
	if len(m.own) > 0 {
		delete(m.own, s)
	}
	if len(s.Points) > maxPoints {
		s.DroppedPoints += len(s.Points) - maxPoints
		s.Points = s.Points[len(s.Points)-maxPoints:]
	}
	k := s.key
	if s == m.root {
		k = m.of
	} else {
		delete(m.open, k)
	}
	if k.kind != "" {
		m.remember(k)
	}
	switch {
	case m.o.Ended == nil:
	case s.waits && len(m.waiting) < maxWaits:
		m.waiting = append(m.waiting, s)
	default:
		m.o.Ended(s)
	}
}

// close ends a span without its event, at the time of the last one below it.
func (m *Mapper) close(s *Span, reason string, failed bool) {
	if s == nil || s.ended {
		return
	}
	if !s.madeUp { // or else it has no event of its end
		s.ClosedReason = reason
		s.set(str(AttrClosedReason, reason))
		if failed {
			m.fail(s, ErrorIncomplete, "")
		}
	}
	m.finish(s, s.last)
}

// closeBelow closes the open spans below a span, children before parents.
func (m *Mapper) closeBelow(of *Span, reason string, failed bool) {
	if len(m.open) == 0 {
		return
	}
	for _, s := range slices.Backward(m.order) {
		for up := s.Parent; up != nil && !s.ended; up = up.Parent {
			if up == of {
				m.close(s, reason, failed)
			}
		}
	}
}

// remember notes that a span of the key has ended.
func (m *Mapper) remember(k key) {
	if len(m.done) < maxDone {
		m.done = append(m.done, maphash.Comparable(m.seed, k))
		return
	}
	m.done[m.doneAt] = maphash.Comparable(m.seed, k)
	m.doneAt = (m.doneAt + 1) % maxDone
}

// unbegun reports whether an end ends no span that was ever open: its start is not in the log.
func (m *Mapper) unbegun(k key) bool {
	open := m.root == nil || !m.root.ended || m.over && k.kind == "turn"
	return open && !slices.Contains(m.done, maphash.Comparable(m.seed, k))
}

// orphan completes a span that is made of its end. A start of it that comes later, but is not
// later in time, makes no second one.
func (m *Mapper) orphan(s *Span, took time.Duration) *Span {
	if took <= 0 || m.lent {
		s.set(val(AttrNoStart, true))
	} else {
		s.set(val(AttrStated, true))
	}
	if s == m.root || s.key.kind == "" {
		return s
	}
	if m.orphans == nil {
		m.orphans = map[key]*Span{}
	}
	if len(m.orphans) < maxWaits {
		m.orphans[s.key] = s
		s.waits = m.o.Late
	}
	return s
}

// started tells of a span that waited for its start, which is this event.
func (m *Mapper) started(s *Span, ev *agentevents.Event) {
	i := slices.Index(m.waiting, s)
	if i < 0 {
		return
	}
	m.waiting = slices.Delete(m.waiting, i, i+1)
	if !m.lent {
		s.Start = ev.Time
		m.covers(s)
		for _, made := range [...]string{AttrNoStart, AttrStated, AttrMadeUp} {
			s.Attributes = slices.DeleteFunc(s.Attributes, func(a Attr) bool { return a.Key == made })
		}
	}
	m.o.Ended(s)
}

// flushed is the span of a start that comes after its end, or nil.
func (m *Mapper) flushed(ev *agentevents.Event, k key) *Span {
	s := m.orphans[k]
	if s == nil && k.kind == "tool" && ev.SpanID != "" { // another agent may have returned the call
		s = m.orphans[returned(ev, k)]
	}
	if s == nil {
		return nil
	}
	delete(m.orphans, s.key)
	delete(m.orphans, returned(ev, k))
	if !s.ended || ev.Time.After(s.End) {
		return nil
	}
	m.started(s, ev)
	return s
}

// returned is the key of a call by the span of its return.
func returned(ev *agentevents.Event, k key) key { return key{"return", ev.SpanID, k.id} }

// under reports whether a span is below another one, or is the same.
func (s *Span) under(of *Span) bool {
	for ; s != nil; s = s.Parent {
		if s == of {
			return true
		}
	}
	return false
}

// Close ends all open spans at the time of their last event, for the reason. The end of a paused
// run is not an error, nor is the idle time of a run that waits for people. A made-up root below which
// only calls of ended agents are open ends without a reason.
//
// Events may still be fed: they belong to spans that have ended, and open new ones below.
func (m *Mapper) Close(reason string) {
	m.settle()
	for _, s := range m.waiting {
		m.o.Ended(s)
	}
	m.waiting, m.stood = nil, nil
	failed := reason != ReasonPaused && !(reason == ReasonIdle && (m.paused || len(m.waits) > 0))
	done := true
	for _, s := range m.open {
		outlives, _ := s.outlives()
		done = done && (s.madeUp || s.call() && outlives)
	}
	for _, s := range slices.Backward(m.order) {
		m.close(s, reason, failed)
	}
	m.order = nil
	for i := range m.early { // the run has had no root, or only ended ones
		m.add(nil, &m.early[i])
	}
	m.early = nil
	switch {
	case m.root == nil || m.root.ended:
	case done && (m.root.madeUp || m.owner != nil && m.owner.ended):
		if m.root.madeUp && (m.flows > 0 || m.rested()) {
			m.turnsOut("")
		}
		m.counts()
		m.finish(m.root, m.root.last)
	default:
		m.root.madeUp = false // its work is cut off
		if reason == ReasonPaused {
			m.root.set(str(AttrOutcome, "paused"))
		}
		m.close(m.root, reason, failed)
	}
}

// Release is Close for a run that its process lets go: a paused one means to go on.
func (m *Mapper) Release() {
	reason := ReasonShutdown
	if m.paused {
		reason = ReasonPaused
	}
	m.Close(reason)
}

// set adds an attribute; one that Started was told is changed.
func (s *Span) set(a Attr) {
	if a.none() {
		return
	}
	a.Text = cut(a.Text, maxText)
	for i := range s.Attributes {
		if s.Attributes[i].Key == a.Key {
			if i < s.told && s.Attributes[i] != a {
				s.told = 0
			}
			s.Attributes[i] = a
			return
		}
	}
	s.Attributes = append(s.Attributes, a)
}

// fail gives a span the status of an error. The text of one is content.
func (m *Mapper) fail(s *Span, errType, text string) {
	if s == nil || s.ended {
		return
	}
	s.Status = StatusError
	s.set(str(AttrErrorType, errType))
	if m.o.Content&OnSpans != 0 && text != "" {
		s.Description = cut(m.o.redact("status", text), maxText)
	}
}

// add adds a point to a span.
func (m *Mapper) add(s *Span, p *Point) {
	if s != nil && !s.ended && !m.o.NoPoints {
		s.Points = append(s.Points, m.kept(p))
		if len(s.Points) >= 2*maxPoints {
			s.DroppedPoints += len(s.Points) - maxPoints
			s.Points = append(s.Points[:0], s.Points[len(s.Points)-maxPoints:]...)
		}
	}
	if m.o.Noted != nil {
		m.o.Noted(s, p)
	}
}

// scope is the span that an agent's event belongs to: the innermost one of the agent,
// its node or its phase that is open, else the root.
func (m *Mapper) scope(ev *agentevents.Event) *Span {
	a := m.agent(ev)
	if in := m.agents[m.starts[ev.ParentSpanID]]; in != nil && in != a && !in.span.ended {
		return in.span // its line names the agent around it, or none
	}
	if a != nil {
		if s := innermost(a.scopes, ""); s != nil {
			return s
		}
		return a.span
	}
	return m.place(ev)
}

// place is the innermost open span around the agents: the node, the phase or the root, or a
// turn or step of no agent that is below it.
func (m *Mapper) place(ev *agentevents.Event) *Span {
	var around *Span
	if ev.NodeID != "" || ev.NodeRunID != "" {
		around = m.open[nodeKey(ev)]
	}
	if around == nil {
		around = m.phase(ev)
	}
	if step := innermost(m.scopes, ""); step != nil && (around == m.root || step.under(around)) { // all are below the root
		return step
	}
	return around
}

// innermost is the last one of the kind, or of any, that is open, or nil.
func innermost(scopes []*Span, kind string) *Span {
	for n := len(scopes); n > 0; n-- {
		if s := scopes[n-1]; !s.ended && (kind == "" || s.key.kind == kind) {
			return s
		}
	}
	return nil
}

func (m *Mapper) phase(ev *agentevents.Event) *Span {
	if ev.Phase != "" {
		if s := m.open[phaseKey(ev)]; s != nil {
			return s
		}
	}
	if ev.WorkflowID != "" {
		if s := m.open[workflowKey(ev)]; s != nil {
			return s
		}
	}
	return m.root
}

func workflowKey(ev *agentevents.Event) key { return key{"workflow", "", ev.WorkflowID} }

func nodeKey(ev *agentevents.Event) key { return key{"node", "", cmp.Or(ev.NodeRunID, ev.NodeID)} }

func phaseKey(ev *agentevents.Event) key { return key{"phase", ev.WorkflowID, ev.Phase} }
