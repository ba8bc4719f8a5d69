package dialecttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/readback"
)

// StandardRun returns the events of a run as an emitter records them. It has two
// agents, one spawned by a call of the other, with transitions, calls that return
// and fail, audits, text, reasoning, messages, usage and an approval. Times and
// ids are the same in every call.
func StandardRun(runID string) []agentevents.Event {
	s := story{ctx: context.Background()}
	now := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC)
	id := 0
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleStrict,
		Sinks: []agentevents.Sink{agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error {
			s.events = append(s.events, ev)
			return nil
		})},
		Clock: func() time.Time { now = now.Add(250 * time.Millisecond); return now },
		NewID: func() string { id++; return fmt.Sprintf("%s-id-%d", runID, id) },
	})
	s.must(err)
	run, err := em.Run(runID)
	s.must(err)
	s.must(run.Emit(s.ctx, &agentevents.RunStarted{Name: "standard", Inputs: `{"goal":"health"}`}))
	planner := run.Agent("planner")
	s.must(planner.Emit(s.ctx, &agentevents.AgentStarted{Task: "Plan /v2/health", Model: "model-a"}))
	s.must(planner.Emit(s.ctx, &agentevents.AgentReasoned{Reasoning: "Read first.", Verbosity: agentevents.VerbosityFull}))
	s.must(planner.To(s.ctx, agentevents.StatusToolCall))
	read, err := planner.Call(s.ctx, &agentevents.ToolCalled{ToolID: "Read", Arguments: `{"path":"main.go"}`})
	s.must(err)
	spawn, err := planner.Call(s.ctx, &agentevents.ToolCalled{ToolID: "Task", Arguments: `{"agent":"coder"}`})
	s.must(err)

	coder := spawn.Agent("coder")
	s.must(coder.Emit(s.ctx, &agentevents.AgentStarted{Task: "Write it", Model: "model-b"}))
	s.must(coder.To(s.ctx, agentevents.StatusToolCall))
	bash, err := coder.Call(s.ctx, &agentevents.ToolCalled{ToolID: "Bash", Arguments: `{"command":"go test"}`})
	s.must(err)
	s.must(read.Return(s.ctx, `{"lines":120}`))
	s.must(bash.Fail(s.ctx, errors.New("exit status 1")))
	s.must(coder.Emit(s.ctx, &agentevents.AuditChecked{CheckpointID: "audit:tests.unit",
		Result: agentevents.AuditFail, Duration: 1500 * time.Millisecond, Evidence: `{"failed":1}`}))
	again, err := bash.Retry(s.ctx)
	s.must(err)
	s.must(again.Return(s.ctx, `"ok"`))
	s.must(coder.Emit(s.ctx, &agentevents.AuditChecked{CheckpointID: "audit:tests.unit",
		Result: agentevents.AuditPass, Duration: 1250 * time.Millisecond}))
	s.must(coder.To(s.ctx, agentevents.StatusToolResult, agentevents.StatusResponse, agentevents.StatusReflect,
		agentevents.StatusConverged))
	s.must(coder.Emit(s.ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomeConverged, Result: "done",
		ConvergenceScore: agentevents.Some(1.0),
		Duration:         agentevents.Some(4 * time.Second)}))

	s.must(spawn.Return(s.ctx, `"done"`))
	s.must(planner.Emit(s.ctx, &agentevents.UsageObserved{Model: "model-a",
		Usage: agentevents.Usage{InputTokens: 1200, OutputTokens: 340}, CostUSD: agentevents.Some(0.25)}))
	s.must(planner.To(s.ctx, agentevents.StatusToolResult, agentevents.StatusResponse))
	for i, delta := range []string{"The endpoint ", "is there."} {
		s.must(planner.Emit(s.ctx, &agentevents.TextDelta{BlockID: "b1", Delta: delta, Index: agentevents.Some(i)}))
	}
	s.must(planner.Emit(s.ctx, &agentevents.TextCompleted{BlockID: "b1", Text: "The endpoint is there."}))
	s.must(planner.Emit(s.ctx, &agentevents.MessageCreated{Message: agentevents.ConversationMessage{To: "user",
		Content: `"The endpoint is there."`}}))
	s.must(planner.Emit(s.ctx, &agentevents.ApprovalRequested{ApprovalID: "deploy", Action: "deploy"}))
	s.must(planner.Emit(s.ctx, &agentevents.ApprovalGranted{ApprovalID: "deploy", ApprovedBy: "user"}))
	s.must(planner.To(s.ctx, agentevents.StatusReflect, agentevents.StatusConverged))
	s.must(planner.Emit(s.ctx, &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial,
		ConvergenceScore: agentevents.Some(0.5),
		Duration:         agentevents.Some(9 * time.Second)}))
	s.must(run.Emit(s.ctx, &agentevents.RunCompleted{Outputs: `{"files":2}`}))
	return s.events
}

// A story is a run while it is recorded.
type story struct {
	ctx    context.Context
	events []agentevents.Event
}

func (s *story) must(err error) {
	if err != nil {
		panic("dialecttest: the standard run is not legal: " + err.Error())
	}
}

// standard returns the dialect's story, adapted.
func (d *Dialect) standard(runID string) []agentevents.Event {
	story := d.Story
	if story == nil {
		story = StandardRun
	}
	events := story(runID)
	if d.Adapt != nil {
		for i := range events {
			d.Adapt(&events[i])
		}
	}
	return events
}

func foldCases(d *Dialect) []testCase { return d.logCases(d.standard("run-1")) }

// logCases checks a log of one run.
func (d *Dialect) logCases(events []agentevents.Event) []testCase {
	return []testCase{
		{"losses", func(r *report) { d.checkRunLosses(r, slices.Clone(events)) }},
		{"snapshot", func(r *report) { d.checkFold(r, events) }},
		{"refused", func(r *report) { d.checkRefused(r, events) }},
	}
}

// checkRunLosses checks a whole run like a single kind: every difference is a
// loss.
func (d *Dialect) checkRunLosses(r *report, events []agentevents.Event) {
	for i := range events {
		events[i].Sequence += 1000 // no number is right by chance
	}
	t := d.trip(r, events)
	if !t.sound {
		return
	}
	t.verify(r)
	r.checkSound(t.Back)
	seen := map[string]bool{}
	for _, ev := range t.Back {
		if seen[ev.ID] {
			r.errorf("two events of a run have the id %s", ev.ID)
		}
		seen[ev.ID] = true
	}
}

// checkRefused checks that events which an encoder refuses, because no line can have their
// time, change nothing.
func (d *Dialect) checkRefused(r *report, events []agentevents.Event) {
	write := func(bad bool) string {
		enc := d.Encoder()
		var out []byte
		for _, ev := range events {
			if wrong := ev; bad {
				wrong.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
				more, err := enc.Append(out, wrong)
				if len(more) > len(out) {
					r.errorf("a %s of the year 10000 is written", ev.Kind())
				}
				if err == nil { // it has no line
					continue
				}
			}
			out, _ = enc.Append(out, ev) // other refusals are not tested here
		}
		out, _ = enc.End(out)
		return fmt.Sprint(string(out), enc.Losses())
	}
	if bad, good := write(true), write(false); bad != good {
		r.errorf("refused events change the lines of others:\n%s\n%s", good, bad)
	}
}

func fold(r *report, events []agentevents.Event) *agentevents.RunSnapshot {
	folded := agentevents.NewFoldSet(agentevents.FoldOptions{})
	for _, ev := range events {
		folded.Apply(ev)
	}
	list := slices.Collect(folded.Drain())
	if len(list) != 1 {
		r.errorf("one run became %d", len(list))
		return nil
	}
	return list[0]
}

// checkFold compares the folds of a run before and after the trip.
func (d *Dialect) checkFold(r *report, events []agentevents.Event) {
	t := d.trip(r, events)
	if !t.sound {
		return
	}
	var sent []agentevents.Event // the events that have a counterpart
	carried := map[agentevents.Kind]bool{}
	for i, ev := range t.Events {
		if t.Refused[i] == nil && (ev.Kind() == agentevents.KindToolCalled || !t.Lost(ev.Kind(), "", dialect.Dropped)) {
			sent = append(sent, ev)
			carried[ev.Kind()] = true
		}
	}
	if len(sent) == 0 || len(t.Back) == 0 {
		r.errorf("nothing of the run came back: the dialect needs a Story")
		return
	}
	was, now := fold(r, sent), fold(r, t.Back)
	if was == nil || now == nil {
		return
	}
	c := foldCheck{r: r, trip: t, kinds: carried, was: was, now: now}
	if c.carries(agentevents.KindAgentStarted, "/runId") {
		c.equal("the run's id", was.RunID, now.RunID)
	}
	c.agents()
	c.tools()
	c.audits()
	if carried[agentevents.KindMessageCreated] {
		c.equal("messages", len(was.Messages), len(now.Messages))
	}
	if carried[agentevents.KindApprovalGranted] && carried[agentevents.KindApprovalRequested] {
		c.equal("approvals", len(was.Approvals), len(now.Approvals))
	}
	if c.carries(agentevents.KindUsageObserved, "/payload/usage") {
		c.equal("input tokens", was.Usage.Usage.InputTokens, now.Usage.Usage.InputTokens)
		c.equal("output tokens", was.Usage.Usage.OutputTokens, now.Usage.Usage.OutputTokens)
	}
	if c.carries(agentevents.KindRunCompleted) {
		c.equal("status of the run", was.Status, now.Status)
	}
	// Report the rules that only the events of the trip break.
	broken := map[agentevents.Rule]bool{}
	for _, v := range was.Violations {
		broken[v.Rule] = true
	}
	for _, v := range now.Violations {
		if !broken[v.Rule] {
			r.errorf("the events that came back break a rule: %v", v)
		}
	}
}

// A foldCheck compares two folds of a run, in the facts that the document can represent.
type foldCheck struct {
	r        *report
	trip     *trip
	kinds    map[agentevents.Kind]bool // kinds of the events that were sent
	was, now *agentevents.RunSnapshot
}

// carries reports whether the document can represent the facts at the pointers.
func (c *foldCheck) carries(kind agentevents.Kind, pointers ...string) bool {
	return c.kinds[kind] && !slices.ContainsFunc(pointers, func(p string) bool { return c.trip.Touched(kind, p) })
}

func (c *foldCheck) equal(fact string, a, b any) {
	if fmt.Sprint(a) != fmt.Sprint(b) {
		c.r.errorf("%s: %v became %v", fact, a, b)
	}
}

func (c *foldCheck) agents() {
	if !c.carries(agentevents.KindAgentStarted, "/agentId") {
		return
	}
	for id, a := range c.was.Agents {
		if !a.Started {
			continue
		}
		b := c.now.Agents[id]
		if b == nil {
			c.r.errorf("agent %s did not come back", id)
			continue
		}
		c.equal("starts of "+id, a.Attempts, b.Attempts)
		if c.carries(agentevents.KindAgentStarted, "/payload/task") {
			c.equal("task of "+id, a.Task, b.Task)
		}
		if c.carries(agentevents.KindAgentStarted, "/parentAgentId") {
			c.equal("parent of "+id, a.ParentAgentID, b.ParentAgentID)
		}
		if c.carries(agentevents.KindAgentTransition, "/agentId", "/payload") {
			c.equal("transitions of "+id, a.Transitions, b.Transitions)
			c.equal("status of "+id, a.Status, b.Status)
		}
		if c.carries(agentevents.KindToolReturned, "/agentId", "/payload/status") {
			c.equal("failed calls of "+id, a.ToolFailures, b.ToolFailures)
		}
		if c.carries(agentevents.KindAgentEnded, "/agentId", "/payload/outcome") {
			c.equal("end of "+id, a.Ended, b.Ended)
			c.equal("outcome of "+id, a.Outcome, b.Outcome)
		}
		if c.carries(agentevents.KindTextCompleted, "/agentId", "/payload/text") {
			c.equal("text of "+id, a.Text, b.Text)
		}
	}
}

func (c *foldCheck) tools() {
	if !c.carries(agentevents.KindToolReturned, "/payload/toolId", "/payload/status") {
		return
	}
	for id, a := range c.was.Tools {
		if b := c.now.Tools[id]; b == nil {
			c.r.errorf("tool %s did not come back", id)
		} else {
			c.equal("calls of "+id, a.Calls, b.Calls)
			c.equal("successes of "+id, a.OK, b.OK)
			c.equal("failures of "+id, a.Failed, b.Failed)
			if c.carries(agentevents.KindToolReturned, "/payload/durationMs") {
				c.equal("duration of "+id, a.Duration, b.Duration)
			}
		}
	}
}

func (c *foldCheck) audits() {
	if !c.kinds[agentevents.KindAuditChecked] {
		return
	}
	c.equal("audits", len(c.was.Audits), len(c.now.Audits))
	for i := range min(len(c.was.Audits), len(c.now.Audits)) {
		if c.carries(agentevents.KindAuditChecked, "/payload/result") {
			c.equal("result of an audit", c.was.Audits[i].Result, c.now.Audits[i].Result)
		}
		if c.carries(agentevents.KindAuditChecked, "/payload/checkpointId") {
			c.equal("checkpoint of an audit", c.was.Audits[i].CheckpointID, c.now.Audits[i].CheckpointID)
		}
	}
}

func runCases(d *Dialect) []testCase {
	return []testCase{{"interleaved", d.checkInterleaved}}
}

// checkInterleaved writes two runs into one log, event by event. It ends early
// for a document that does not name the run: its log has one run.
func (d *Dialect) checkInterleaved(r *report) {
	first, second := d.standard("run-1"), d.standard("run-2")
	var both []agentevents.Event
	for i := range first {
		both = append(both, first[i], second[i])
	}
	t := d.trip(r, both)
	if !t.sound {
		return
	}
	if slices.ContainsFunc(t.Losses, func(l dialect.Loss) bool { return l.Pointer == "/runId" && l.What == dialect.Dropped }) {
		return // one log is one run
	}
	runs := map[string][]agentevents.Event{}
	for _, ev := range t.Back {
		runs[ev.RunID] = append(runs[ev.RunID], ev)
	}
	if len(runs) == 0 {
		r.errorf("nothing of the two runs came back: the dialect needs a Story")
		return
	}
	if len(runs) != 2 {
		r.errorf("two runs became %d", len(runs))
		return
	}
	for _, events := range [][]agentevents.Event{first, second} {
		alone := d.trip(r, events)
		if !alone.sound || len(alone.Back) == 0 {
			return
		}
		runID := alone.Back[0].RunID
		want, got := t.plain(alone.Back), t.plain(runs[runID])
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) {
				r.errorf("run %s has %d events alone and %d beside another run", runID, len(want), len(got))
				break
			}
			for _, diff := range want[i].Diff(got[i]) {
				r.errorf("run %s, event %d, beside another run: %s", runID, i, diff)
			}
		}
	}
}

// plain flattens events and removes the parts that depend on the position of their lines: ids,
// numbers, and members that are made up for facts that the document cannot represent.
func (t *trip) plain(events []agentevents.Event) []readback.Facts {
	ids := map[string]string{}
	for i := range events {
		ids[string(agentevents.JSONString(events[i].ID))] = fmt.Sprintf("#%d", i)
	}
	var list []readback.Facts
	for i := range events {
		f, err := readback.FactsOf(&events[i])
		if err != nil {
			continue
		}
		for pointer, text := range f.Leaves {
			if id := ids[text]; id != "" {
				f.Leaves[pointer] = id
			}
			unsaid := slices.ContainsFunc(t.Losses, func(l dialect.Loss) bool {
				return readback.IsOf(l, events[i].Kind()) && l.Pointer != "" && readback.Covers(l.Pointer, pointer)
			})
			if unsaid || t.Derives(pointer) || pointer == "/id" || pointer == "/sequence" ||
				readback.Covers("/"+string(t.d.Name), pointer) {
				delete(f.Leaves, pointer)
			}
		}
		list = append(list, f)
	}
	return list
}

func instanceCases(d *Dialect) []testCase {
	return []testCase{{"parallel", d.checkParallel}}
}

// checkParallel uses many instances at the same time.
func (d *Dialect) checkParallel(r *report) {
	work := func(runID string) (text string, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		var b strings.Builder
		log, _ := d.encode(d.standard(runID))
		for _, g := range d.Golden {
			log += g.Lines + "\n"
		}
		events, err := d.decode(log, false)
		if err != nil {
			return "", err
		}
		b.WriteString(lines(events))
		log, _ = d.encode(events)
		b.WriteString(log)
		return b.String(), nil
	}
	const instances = 8
	var want, got [instances]string
	var errs [instances]error
	for i := range want {
		want[i], errs[i] = work(fmt.Sprint("run-", i))
		if errs[i] != nil {
			r.errorf("%v", errs[i])
			return
		}
	}
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], errs[i] = work(fmt.Sprint("run-", i)) })
	}
	wg.Wait()
	for i := range got {
		if errs[i] != nil {
			r.errorf("at the same time: %v", errs[i])
		} else if got[i] != want[i] {
			r.errorf("decoders and encoders give other events when used at the same time")
		}
	}
}
