package lawtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	ae "github.com/agentevents/agentevents"
)

// The checker is a second opinion on the rules. It has no state, reads the whole log
// again for every event, and implements each rule by its statement alone. It is slow.
// The tests damage runs at random. The emitter, in ModeObserve, and the fold must find
// the same events illegal as the checker.

// verdict returns the rules that ev breaks after log. The events of log count even if
// they are illegal themselves.
func verdict(l ae.Lifecycle, log []entry, ev entry) []ae.Rule {
	var broken []ae.Rule
	for rule, breaks := range map[ae.Rule]func(ae.Lifecycle, []entry, entry) bool{
		ae.RuleTerminalLast:          breaksTerminalLast,
		ae.RuleRunOpen:               breaksRunOpen,
		ae.RuleWorkflowContext:       breaksWorkflowContext,
		ae.RuleAgentStartedOnce:      breaksStartedOnce,
		ae.RuleStepMonotonic:         breaksStepMonotonic,
		ae.RuleTransitionFromCurrent: breaksFromCurrent,
		ae.RuleTransitionLegal:       breaksTransitionLegal,
		ae.RuleAgentEndedFinal:       breaksEndedFinal,
		ae.RuleEndedTotals:           breaksEndedTotals,
		ae.RuleToolCallOpen:          breaksToolCallOpen,
		ae.RuleToolCausation:         breaksToolCausation,
		ae.RuleModelCallOpen:         breaksModelCallOpen,
		ae.RuleModelCausation:        breaksModelCausation,
		ae.RuleDeltaIndex:            breaksDeltaIndex,
		ae.RulePhaseOpen:             breaksPhaseOpen,
		ae.RuleApprovalOpen:          breaksApprovalOpen,
		ae.RuleHandoffOpen:           breaksHandoffOpen,
		ae.RuleFieldRequired:         lacksAgent,
	} {
		if breaks(l, log, ev) {
			broken = append(broken, rule)
		}
	}
	slices.Sort(broken)
	return broken
}

// An entry is an event and the id of its agent: agentId, else nodeRunId, else the span
// of the event that started the agent. A nodeRunId belongs to an agent once an agent has
// acted under it. Before that it belongs to a node.
type entry struct {
	ae.Event
	agent string
	ends  bool // it ends the agent
}

func entryOf(log []entry, ev ae.Event) entry {
	agent := ev.AgentID
	if agent == "" && (ev.Step.OK || aboutAgent(ev) || slices.ContainsFunc(of(log, ev.NodeRunID), lasting)) {
		agent = ev.NodeRunID
	}
	if agent == "" && ev.NodeRunID == "" {
		switch ev.Payload.(type) {
		case *ae.AgentStarted, *ae.AgentEnded:
			agent = ev.SpanID
		default:
			if len(of(log, ev.ParentSpanID)) > 0 {
				agent = ev.ParentSpanID
			}
		}
	}
	e := entry{ev, agent, false}
	switch ev.Payload.(type) {
	case *ae.AgentEnded:
		e.ends = true
	case *ae.NodeCompleted, *ae.NodeFailed: // the end of the agent that only the execution identifies
		own := of(log, agent)
		e.ends = ev.AgentID == "" && ev.NodeRunID != "" && has[*ae.AgentStarted](own) && !ended(own)
	}
	return e
}

// lasting reports whether an event must not be dropped from a log.
func lasting(ev entry) bool {
	info, _ := ev.Kind().Info()
	return !info.Droppable
}

func aboutAgent(ev ae.Event) bool {
	info, _ := ev.Kind().Info()
	return info.ByAgent || info.Subject == "agent"
}

// of returns the events of an agent.
func of(log []entry, agent string) []entry {
	var own []entry
	for _, ev := range log {
		if agent != "" && ev.agent == agent {
			own = append(own, ev)
		}
	}
	return own
}

func late(ev entry) bool { return ev.Marks.Has(ae.MarkLate) }

// act reports whether the event is an act of its agent. A message of another sender in
// the agent's conversation is not.
func act(ev entry) bool {
	if p, ok := ev.Payload.(*ae.MessageCreated); ok && p.Message.From != ev.agent {
		return false
	}
	info, ok := ev.Kind().Info()
	return ok && info.ByAgent
}

// last returns the index of the last event with a payload of type P, or -1.
func last[P ae.Payload](log []entry) int {
	for i := len(log) - 1; i >= 0; i-- {
		if _, ok := log[i].Payload.(P); ok {
			return i
		}
	}
	return -1
}

func has[P ae.Payload](log []entry) bool { return last[P](log) >= 0 }

func isA[P ae.Payload](ev entry) bool { _, ok := ev.Payload.(P); return ok }

// status returns the agent's status after its last start or transition.
func status(own []entry) ae.AgentStatus {
	if t := last[*ae.AgentTransition](own); t > last[*ae.AgentStarted](own) {
		return own[t].Payload.(*ae.AgentTransition).To
	}
	return ae.StatusThinking
}

func ended(own []entry) bool {
	return slices.ContainsFunc(own[last[*ae.AgentStarted](own)+1:], func(ev entry) bool { return ev.ends })
}

// attempt returns the agent's events since its last start.
func attempt(own []entry) []entry { return own[max(0, last[*ae.AgentStarted](own)):] }

// lacksAgent reports whether an event of an agent's lifecycle has no agent.
func lacksAgent(_ ae.Lifecycle, log []entry, ev entry) bool {
	return (isA[*ae.AgentStarted](ev) || isA[*ae.AgentTransition](ev) || isA[*ae.AgentEnded](ev)) && ev.agent == ""
}

func breaksTerminalLast(_ ae.Lifecycle, log []entry, ev entry) bool {
	if late(ev) || isA[*ae.SessionStarted](ev) || isA[*ae.SessionCompleted](ev) || isA[*ae.AuditChecked](ev) || isA[*ae.UsageObserved](ev) {
		return false
	}
	return runEnded(log)
}

func runEnded(log []entry) bool {
	return has[*ae.RunCompleted](log) || has[*ae.RunFailed](log) || has[*ae.RunCancelled](log)
}

func breaksRunOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	return isA[*ae.RunStarted](ev) && slices.ContainsFunc(log, func(old entry) bool {
		return !isA[*ae.SessionStarted](old) && !isA[*ae.SessionCompleted](old)
	})
}

func breaksWorkflowContext(_ ae.Lifecycle, log []entry, ev entry) bool {
	switch ev.Payload.(type) {
	case *ae.WorkflowCreated, *ae.WorkflowApproved, *ae.WorkflowFinalized:
		return ev.WorkflowID == ""
	case *ae.PhaseStarted, *ae.PhaseCompleted, *ae.CheckpointSaved, *ae.CheckpointResumed:
		return ev.WorkflowID == "" || ev.Phase == ""
	}
	if ev.Phase != "" {
		return ev.WorkflowID == ""
	}
	if ev.WorkflowID == "" || len(ev.Kind()) < 6 || ev.Kind()[:6] != "agent." || isA[*ae.ToolCalled](ev) || isA[*ae.ToolReturned](ev) {
		return false
	}
	for _, old := range log {
		if old.WorkflowID == ev.WorkflowID && isA[*ae.PhaseStarted](old) && openPhases(log, old.WorkflowID, old.Phase) > 0 {
			return true
		}
	}
	return false
}

func openPhases(log []entry, workflow, phase string) int {
	n, resumed := 0, false
	for _, ev := range log {
		switch {
		case ev.WorkflowID != workflow:
		case isA[*ae.CheckpointResumed](ev):
			resumed = true
		case ev.Phase != phase:
		case isA[*ae.PhaseStarted](ev):
			if !resumed || n == 0 {
				n++
			}
			resumed = false
		case isA[*ae.PhaseCompleted](ev) && n > 0:
			n--
		}
	}
	return n
}

func breaksPhaseOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	return isA[*ae.PhaseCompleted](ev) && openPhases(log, ev.WorkflowID, ev.Phase) == 0
}

func breaksStartedOnce(l ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.AgentStarted)
	own := of(log, ev.agent)
	start := last[*ae.AgentStarted](own)
	moved := l == ae.LifecycleStrict && status(own) != ae.StatusThinking
	if !ok || p.Resumed || start < 0 && !moved || ended(own) {
		return false
	}
	resumed := last[*ae.RunResumed](log)
	return resumed < 0 || len(of(log[:resumed], ev.agent)) <= start
}

func breaksStepMonotonic(_ ae.Lifecycle, log []entry, ev entry) bool {
	if !ev.Step.OK || ev.agent == "" {
		return false
	}
	if isA[*ae.AgentStarted](ev) || isA[*ae.AgentEnded](ev) || isA[*ae.AuditChecked](ev) {
		return true
	}
	// Only the previous step counts: after a step that goes back, the agent continues
	// from there. The step of a delta counts only while the agent is active.
	at, deltas := -1, -1
	resting := false
	for _, old := range log {
		switch {
		case isA[*ae.RunCompleted](old) || isA[*ae.RunFailed](old) || isA[*ae.RunCancelled](old):
			deltas, resting = -1, true
		case old.agent != ev.agent:
		case old.ends:
			deltas, resting = -1, true
		case isA[*ae.AgentStarted](old):
			deltas, resting = -1, runEnded(log)
		case old.Step.OK && !lasting(old) && !resting:
			deltas = old.Step.V
		}
		if old.agent == ev.agent && old.Step.OK && lasting(old) {
			at, deltas = old.Step.V, -1
		}
	}
	return ev.Step.V < at && deltas < 0 || ev.Step.V < deltas
}

func breaksFromCurrent(_ ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.AgentTransition)
	return ok && ev.agent != "" && p.From != status(of(log, ev.agent))
}

func breaksTransitionLegal(l ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.AgentTransition)
	return ok && ev.agent != "" && !slices.Contains(l.Next(p.From), p.To)
}

func breaksEndedFinal(l ae.Lifecycle, log []entry, ev entry) bool {
	own := of(log, ev.agent)
	if late(ev) || len(own) == 0 {
		return false
	}
	if isA[*ae.AgentEnded](ev) {
		return ended(own)
	}
	if !act(ev) {
		return false
	}
	stuck := status(own).Terminal()
	if isA[*ae.AgentTransition](ev) {
		stuck = stuck && len(l.Next(status(own))) == 0
	}
	return ended(own) || stuck
}

func breaksEndedTotals(_ ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.AgentEnded)
	if !ok || !p.Totals.OK {
		return false
	}
	own := of(log, ev.agent)
	before := own[:len(own)-len(attempt(own))]
	top, steps := -1, own // events before the first start belong to the first attempt
	if has[*ae.AgentStarted](before) {
		top, steps = highest(own[:len(before)+1]), attempt(own)
	}
	var counted ae.Totals
	for _, old := range steps {
		if old.Step.OK && lasting(old) && old.Step.V > top {
			top = old.Step.V
			counted.Steps++
		}
	}
	for _, old := range attempt(own) {
		switch p := old.Payload.(type) {
		case *ae.ToolCalled:
			counted.ToolCalls++
		case *ae.ToolReturned:
			if p.OneEvent && p.Status != ae.ToolStatusForbidden && p.Status != ae.ToolStatusRateLimited {
				counted.ToolCalls++
			}
		case *ae.AuditChecked:
			counted.AuditCheckpoints++
			if p.Result == ae.AuditPass {
				counted.AuditsPassed++
			} else if p.Result == ae.AuditFail {
				counted.AuditsFailed++
			}
		}
	}
	given := p.Totals.V
	return given.Steps < counted.Steps || given.ToolCalls < counted.ToolCalls || given.AuditCheckpoints < counted.AuditCheckpoints ||
		given.AuditsPassed < counted.AuditsPassed || given.AuditsFailed < counted.AuditsFailed
}

// highest returns the highest step of the lasting events, or -1.
func highest(own []entry) int {
	top := -1
	for _, ev := range own {
		if ev.Step.OK && lasting(ev) {
			top = max(top, ev.Step.V)
		}
	}
	return top
}

// opener returns the open call of an agent with that id, or nil.
func opener(log []entry, agent, id string) *entry {
	var open *entry
	for i := range log {
		if log[i].agent != agent {
			continue
		}
		switch p := log[i].Payload.(type) {
		case *ae.ToolCalled:
			if p.CallID == id {
				open = &log[i]
			}
		case *ae.ToolReturned:
			if p.CallID == id && !p.OneEvent {
				open = nil
			}
		}
	}
	return open
}

func breaksToolCallOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	switch p := ev.Payload.(type) {
	case *ae.ToolCalled:
		return opener(log, ev.agent, p.CallID) != nil
	case *ae.ToolReturned:
		exempt := p.OneEvent || p.Status == ae.ToolStatusForbidden || p.Status == ae.ToolStatusRateLimited
		return !exempt && opener(log, ev.agent, p.CallID) == nil
	}
	return false
}

func breaksToolCausation(_ ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.ToolReturned)
	if !ok || p.OneEvent || ev.CausationID == "" {
		return false
	}
	call := opener(log, ev.agent, p.CallID)
	return call != nil && call.ID != ev.CausationID
}

// modelOpener returns the open model call of an agent with that id, or nil.
func modelOpener(log []entry, agent, id string) *entry {
	var open *entry
	for i := range log {
		if log[i].agent != agent {
			continue
		}
		switch p := log[i].Payload.(type) {
		case *ae.ModelCalled:
			if p.ModelCallID == id {
				open = &log[i]
			}
		case *ae.ModelReturned:
			if p.ModelCallID == id && !p.OneEvent {
				open = nil
			}
		}
	}
	return open
}

func breaksModelCallOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	switch p := ev.Payload.(type) {
	case *ae.ModelCalled:
		return modelOpener(log, ev.agent, p.ModelCallID) != nil
	case *ae.ModelReturned:
		return !p.OneEvent && modelOpener(log, ev.agent, p.ModelCallID) == nil
	}
	return false
}

func breaksModelCausation(_ ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.ModelReturned)
	if !ok || p.OneEvent || ev.CausationID == "" {
		return false
	}
	call := modelOpener(log, ev.agent, p.ModelCallID)
	return call != nil && call.ID != ev.CausationID
}

// piece returns the block of a delta, and the delta's index.
func piece(ev entry) (subject, id string, index ae.Opt[int]) {
	switch p := ev.Payload.(type) {
	case *ae.TextDelta:
		return "text", p.BlockID, p.Index
	case *ae.AgentReasoningDelta:
		return "reasoning", p.BlockID, p.Index
	case *ae.ToolArgumentsDelta:
		return "arguments", p.CallID, p.Index
	}
	return "", "", ae.Opt[int]{}
}

func breaksDeltaIndex(_ ae.Lifecycle, log []entry, ev entry) bool {
	subject, id, index := piece(ev)
	if !index.OK || id == "" && index.V == 0 {
		return false // a block without an id may always begin
	}
	if runEnded(log) {
		return false // deltas after the end of the run do not count
	}
	want, over := 0, false // over: an act has ended the blocks without an id
	for _, old := range attempt(of(log, ev.agent)) {
		if old.ends {
			return false // nor do they after the end of the agent
		}
		switch p := old.Payload.(type) {
		case *ae.ToolCalled, *ae.ModelCalled, *ae.AgentTransition, *ae.TurnStarted, *ae.TurnEnded:
			over = id == "" && subject != "arguments"
		case *ae.ToolReturned:
			if subject == "arguments" && p.CallID == id && !p.OneEvent {
				want = 0
			}
		case *ae.TextCompleted:
			if subject == "text" && p.BlockID == id {
				if id != "" {
					return false // nor after the whole block
				}
				want = 0
			}
		case *ae.AgentReasoned:
			if subject == "reasoning" && p.BlockID == id {
				if id != "" {
					return false
				}
				want = 0
			}
		}
		if s, i, n := piece(old); s == subject && i == id {
			if over {
				want, over = 0, false
			}
			if n.OK {
				want = n.V + 1
			}
		}
	}
	return index.V != want
}

func breaksApprovalOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	id, ok := answered(ev)
	if !ok {
		return false
	}
	open := false
	_, grants := ev.Payload.(*ae.ApprovalGranted)
	for i, old := range log {
		if p, ok := old.Payload.(*ae.ApprovalRequested); ok && p.ApprovalID == id {
			over := p.Timeout.OK && ev.Time.Sub(old.Time) > p.Timeout.V
			open = !outdated(log, i, p.CallID) && !(grants && over)
		}
		if a, ok := answered(old); ok && a == id {
			open = false
		}
	}
	return !open
}

// outdated reports whether something else than an answer has closed the request at
// log[i] about a call: a return of the call, the end or a new attempt of its agent, or the
// end of the run.
func outdated(log []entry, i int, call string) bool {
	if runEnded(log) || late(log[i]) && ended(of(log[:i], log[i].agent)) {
		return true
	}
	agent := log[i].agent
	for at := i + 1; at < len(log); at++ {
		ev := log[at]
		if p, ok := ev.Payload.(*ae.ToolReturned); ok && call != "" && p.CallID == call && (agent == "" || ev.agent == agent) {
			return true
		}
		if agent == "" || ev.agent != agent {
			continue
		}
		if ev.ends || isA[*ae.AgentStarted](ev) && has[*ae.AgentStarted](of(log[:at], agent)) {
			return true
		}
	}
	return false
}

func answered(ev entry) (id string, ok bool) {
	switch p := ev.Payload.(type) {
	case *ae.ApprovalGranted:
		return p.ApprovalID, true
	case *ae.ApprovalRejected:
		return p.ApprovalID, true
	}
	return "", false
}

func breaksHandoffOpen(_ ae.Lifecycle, log []entry, ev entry) bool {
	p, ok := ev.Payload.(*ae.HandoffAccepted)
	if !ok {
		return false
	}
	name, open := handoffName(p.HandoffID, p.From, p.To), 0
	for _, old := range log {
		switch p := old.Payload.(type) {
		case *ae.HandoffRequested:
			if handoffName(p.HandoffID, p.From, p.To) == name {
				open++
			}
		case *ae.HandoffAccepted:
			if handoffName(p.HandoffID, p.From, p.To) == name && open > 0 {
				open--
			}
		}
	}
	return open == 0
}

// damage drops, repeats, swaps or changes some events of a log.
func damage(t *rapid.T, events []ae.Event) []ae.Event {
	out := slices.Clone(events)
	for range rapid.IntRange(1, 4).Draw(t, "damages") {
		if len(out) < 2 {
			break
		}
		i := rapid.IntRange(0, len(out)-2).Draw(t, "where")
		switch rapid.SampledFrom([]string{"drop", "repeat", "swap", "change", "number"}).Draw(t, "damage") {
		case "drop":
			out = slices.Delete(out, i, i+1)
		case "repeat":
			out = slices.Insert(out, rapid.IntRange(i, len(out)).Draw(t, "to"), out[i])
		case "swap":
			out[i], out[i+1] = out[i+1], out[i]
		case "change":
			out[i] = changed(t, out[i])
		case "number":
			out[i].Sequence += uint64(rapid.SampledFrom([]int{1, 2, 5, 1000}).Draw(t, "more"))
		}
	}
	return out
}

// changed returns the event with another step, agent or content.
func changed(t *rapid.T, ev ae.Event) ae.Event {
	n := rapid.IntRange(0, 3).Draw(t, "by")
	switch p := ev.Payload.(type) {
	case *ae.AgentTransition:
		out := *p
		out.To = ae.AgentStatus(closedWords["AgentStatus"][n])
		ev.Payload = &out
	case *ae.TextDelta:
		out := *p
		out.Index = ae.Some(n)
		ev.Payload = &out
	case *ae.ToolReturned:
		out := *p
		out.CallID += "x"
		ev.Payload = &out
	case *ae.ApprovalRequested:
		out := *p
		out.Timeout = ae.Some(time.Duration(n) * 10 * time.Millisecond)
		ev.Payload = &out
	case *ae.ApprovalGranted:
		ev.Payload = &ae.ApprovalGranted{ApprovalID: "approvalid-" + string(rune('0'+n))}
	default:
		if ev.AgentID != "" && n > 1 {
			ev.AgentID = "agent-" + string(rune('0'+n))
		} else {
			ev.Step = ae.Some(n)
		}
	}
	return ev
}

// The emitter in ModeObserve reports exactly the events that the checker finds illegal.
func TestObserveAgreesWithSlowChecker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		var log []entry
		var found *ae.RuleError
		e, err := ae.NewEmitter(ae.EmitterOptions{
			Lifecycle: r.Lifecycle, Mode: ae.ModeObserve, OnViolation: func(err *ae.RuleError) { found = err },
			Sinks: []ae.Sink{ae.SinkFunc(func(_ context.Context, ev ae.Event) error {
				log = append(log, entryOf(log, ev))
				return nil
			})},
		})
		require.NoError(t, err)
		run, err := e.Run(r.ID)
		require.NoError(t, err)
		for _, ev := range damage(t, r.Events) {
			found = nil
			require.NoError(t, errOf(run.Record(context.Background(), ev)))
			n := len(log) - 1
			table := inForce(r.Lifecycle, func(yield func(ae.Event) bool) {
				for i := 0; i < n && yield(log[i].Event); i++ {
				}
			})
			broken := verdict(table, log[:n], log[n])
			if p, ok := log[n].Event.Payload.(*ae.AgentTransition); ok && !alsoAllows(r.Lifecycle, p.From, p.To) {
				broken = append(broken, ae.RuleTransitionLegal)
			}
			requireVerdict(t, broken, found, log[n].Event)
		}
	})
}

// requireVerdict requires that the two verdicts on an event agree. The library stops at
// the first broken rule, the checker lists all of them.
func requireVerdict(t tester, broken []ae.Rule, found *ae.RuleError, ev ae.Event) {
	if found == nil && len(broken) == 0 || found != nil && slices.Contains(broken, found.Rule) {
		return
	}
	if found != nil && found.Rule == ae.RuleMessageGroup {
		return // the checker does not have this rule, which a swap can break
	}
	line, _ := ev.AppendJSON(nil)
	t.Fatalf("%s\nthe checker returns %v, the library %v", line, broken, found)
}

// The fold reports a sequence that goes back or is taken, and otherwise the checker's findings. An
// event that goes back counts if only the sequence of the event before it is higher, which is
// false. The test cuts runs to the window in which a fold remembers sequences.
func TestFoldAgreesWithSlowChecker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		f := ae.NewFold(ae.FoldOptions{Lifecycle: r.Lifecycle})
		var log []entry  // the events that count
		var sure []entry // those without a false sequence
		for _, ev := range damage(t, r.Events[:min(len(r.Events), 55)]) {
			before := f.Snapshot()
			f.Apply(ev)
			s := f.Snapshot()
			var found *ae.RuleError
			if s.ViolationCount > before.ViolationCount {
				found = s.Violations[len(s.Violations)-1]
			}
			e := entryOf(log, ev)
			var broken []ae.Rule
			if len(log) > 0 && (ev.Sequence <= log[len(log)-1].Sequence || came(log, ev)) {
				broken = sequenceVerdict(log, ev)
				counts := s.NextSequence != before.NextSequence
				// The fold does not promise how long it remembers droppable events.
				higher := slices.DeleteFunc(slices.Clone(sure), func(old entry) bool { return old.Sequence < ev.Sequence })
				if lasting(e) && !slices.ContainsFunc(higher, func(old entry) bool { return !lasting(old) }) {
					last := len(higher) == 1 && higher[0].Sequence > ev.Sequence && broken != nil
					require.Equal(t, last, counts, "%d after %v", ev.Sequence, sequences(log))
				}
				if !counts {
					if lasting(e) {
						requireVerdict(t, broken, found, ev)
					}
					continue
				}
				if sure = sure[:len(sure)-1]; !lasting(e) {
					broken = []ae.Rule{ae.RuleSequence} // though it came: the fold has forgotten it
				}
			}
			broken = append(broken, verdict(r.Lifecycle, log, e)...)
			if cut := append(slices.Clip(log), e); beginsInside(cut) {
				broken = slices.DeleteFunc(broken, func(rule ae.Rule) bool { return pardoned(rule, log, e, found) })
			}
			requireVerdict(t, broken, found, ev)
			log, sure = append(log, e), append(sure, e)
		}
	})
}

// beginsInside reports whether a log begins inside its run: the first event, and the first
// lasting one, is none that a run begins with.
func beginsInside(log []entry) bool {
	first := max(0, slices.IndexFunc(log, lasting))
	return log[first].Sequence > 0 && !slices.ContainsFunc(log[first:], func(ev entry) bool {
		return ev.Sequence == 0 || isA[*ae.RunStarted](ev)
	})
}

// pardoned reports whether an event of a log that begins inside its run may keep the rule because
// of events before the log.
func pardoned(rule ae.Rule, log []entry, ev entry, found *ae.RuleError) bool {
	own := of(log, ev.agent)
	switch rule {
	case ae.RulePhaseOpen, ae.RuleApprovalOpen, ae.RuleHandoffOpen:
		return true
	case ae.RuleFieldRequired:
		return ev.ParentSpanID != "" // perhaps the span of a start
	case ae.RuleToolCallOpen:
		return isA[*ae.ToolReturned](ev)
	case ae.RuleModelCallOpen:
		return isA[*ae.ModelReturned](ev)
	case ae.RuleTransitionFromCurrent:
		return !has[*ae.AgentStarted](own) && !has[*ae.AgentTransition](own)
	case ae.RuleAgentStartedOnce:
		return !has[*ae.AgentStarted](own)
	case ae.RuleEndedTotals: // the steps before a start are of an earlier one
		return found == nil && has[*ae.AgentStarted](own)
	case ae.RuleDeltaIndex: // the first delta of a block; the fold forgets blocks
		return found == nil && !has[*ae.AgentStarted](own)
	}
	return false
}

// The tail of a legal run breaks no rule, wherever it begins.
func TestTailsOfLegalRunsAreLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Generate(t, Config{Lifecycle: rapid.SampledFrom([]ae.Lifecycle{ae.LifecycleRelaxed, ae.LifecycleStrict, ae.LifecycleDerived}).Draw(t, "lifecycle")})
		if len(r.Events) == 0 {
			return
		}
		tail := r.Events[rapid.IntRange(0, len(r.Events)-1).Draw(t, "cut"):]
		for _, table := range []ae.Lifecycle{"", r.Lifecycle} {
			f := ae.NewFold(ae.FoldOptions{Lifecycle: table})
			for _, ev := range tail {
				f.Apply(ev)
			}
			s := f.Snapshot()
			if table == "" && tail[0].Sequence == 0 {
				continue // a whole log that names no table is judged by the relaxed one
			}
			require.Empty(t, s.Violations, "%q", table)
		}
	})
}

// sequenceVerdict returns the verdict on an event whose sequence is not above the last
// one. Unless it repeats an event, it breaks the rule of sequences.
func sequenceVerdict(log []entry, ev ae.Event) []ae.Rule {
	if came(log, ev) {
		return nil
	}
	return []ae.Rule{ae.RuleSequence}
}

// came reports whether the event is in the log.
func came(log []entry, ev ae.Event) bool {
	line, _ := ev.AppendJSON(nil)
	return slices.ContainsFunc(log, func(old entry) bool {
		text, _ := old.AppendJSON(nil)
		return string(text) == string(line)
	})
}

func sequences(log []entry) (out []uint64) {
	for _, ev := range log {
		out = append(out, ev.Sequence)
	}
	return out
}
