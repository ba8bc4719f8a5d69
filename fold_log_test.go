package agentevents

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Lines and their events are two ways to the same snapshots.
func TestFoldLogIsApply(t *testing.T) {
	var log []byte
	runs := 0
	for _, e := range sampleEvents() {
		for _, run := range []string{"a", "b"} {
			e.RunID, e.Sequence = run, uint64(runs/2)
			line, err := e.AppendJSON(nil)
			require.NoError(t, err)
			log = append(append(log, line...), '\n')
			runs++
		}
	}
	log = append(log, "not a line\n\n{\"type\":\"x.y\",\"runId\":\"c\"}\n{\"type\":\"run.paused\",\"runId\":\"c\",\"sequence\":1}\n{\"torn"...)
	opts := FoldOptions{KeepCalls: 2, Lifecycle: LifecycleRelaxed}
	want, wantErr := foldSeq(NewReader(bytes.NewReader(log), ReaderOptions{}).All(), opts)
	require.Len(t, want, 3)
	for _, opts.Workers = range []int{0, 1, 2, 5} {
		got, gotErr := snapshotsOf(NewReader(bytes.NewReader(log), ReaderOptions{}), opts)
		require.Equal(t, wantErr.Error(), gotErr.Error())
		for i := range want {
			require.Equal(t, want[i], got[i])
		}
	}

	// A reader that was used before, in the middle of a line's events.
	r := NewReader(bytes.NewReader(log), ReaderOptions{})
	for range r.All() {
		break
	}
	rest, _ := snapshotsOf(r, opts)
	require.Len(t, rest, 3)
	require.Equal(t, "b", rest[0].RunID)
}

// Many interleaved runs on many workers: as on one, in the same order.
func TestFoldReaderWorkers(t *testing.T) {
	var log bytes.Buffer
	em, err := NewEmitter(EmitterOptions{Sinks: []Sink{NewWriter(&log, WriterOptions{})}})
	require.NoError(t, err)
	var agents []*Agent
	for n := range 60 {
		run, err := em.Run(fmt.Sprintf("run \"%d\"", n)) // ids that are escaped take the slow path
		if n%2 == 0 {
			run, err = em.Run(fmt.Sprint("run-", n))
		}
		require.NoError(t, err)
		agents = append(agents, run.Agent("a"))
		require.NoError(t, agents[n].Emit(t.Context(), &AgentStarted{Task: strings.Repeat("much text ", 500)}))
	}
	for n := range 3000 {
		a := agents[n*7%len(agents)]
		require.NoError(t, a.Emit(t.Context(), &CommandReceived{Command: Command{Type: CommandSend, RunID: "not the run", Message: fmt.Sprint(n)}}))
	}
	want, err := snapshotsOf(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{})
	require.NoError(t, err)
	require.Len(t, want, 60)
	for _, workers := range []int{2, 3, 16} {
		got, err := snapshotsOf(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}), FoldOptions{Workers: workers})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// A fold must not keep the log alive: of a line that was read long ago, only the snapshot's values
// are reachable.
func TestFoldKeepsNoLineAlive(t *testing.T) {
	const events = 2000
	ballast := strings.Repeat("x", 10<<10)
	var log bytes.Buffer
	em, err := NewEmitter(EmitterOptions{Sinks: []Sink{NewWriter(&log, WriterOptions{})}})
	require.NoError(t, err)
	run, err := em.Run("r")
	require.NoError(t, err)
	a := run.Agent("a")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	for range events {
		require.NoError(t, a.Emit(t.Context(), &AuditChecked{CheckpointID: "audit:x", Result: AuditPass, Evidence: JSON(`{"b":"` + ballast + `"}`)}))
	}
	for _, fold := range []func(*Reader) ([]*RunSnapshot, error){
		func(r *Reader) ([]*RunSnapshot, error) { return snapshotsOf(r, FoldOptions{}) },
		func(r *Reader) ([]*RunSnapshot, error) { return foldSeq(r.All(), FoldOptions{}) },
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := fold(NewReader(bytes.NewReader(log.Bytes()), ReaderOptions{}))
		require.NoError(t, err)
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Len(t, s[0].Audits, events)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20), "of a log of %d bytes", log.Len())
	}
}

// mixedLog is a log of runs that are under way three at a time: as many cycles of deltas, calls and
// audits each, an end, and the events that may follow it. Its texts have no escapes, so that
// reading them allocates nothing.
func mixedLog(t *testing.T, runs, cycles int) []byte {
	var log bytes.Buffer
	now, ids := time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC), 0
	em, err := NewEmitter(EmitterOptions{
		Lifecycle: LifecycleStrict,
		Sinks:     []Sink{NewWriter(&log, WriterOptions{BufferSize: 64 << 10})},
		Clock:     func() time.Time { now = now.Add(7 * time.Millisecond); return now },
		NewID:     func() string { ids++; return fmt.Sprintf("01985f3a-0000-7000-8000-%012d", ids) },
	})
	require.NoError(t, err)
	var open, ended []*script
	for begun := 0; begun < runs || len(open) > 0; {
		for ; len(open) < 3 && begun < runs; begun++ {
			open = append(open, beginScript(t, em, begun))
		}
		s := open[0]
		open = append(open[1:], s)
		s.cycle()
		if s.cycles == cycles {
			s.end()
			open = open[:len(open)-1]
			ended = append(ended, s)
		}
	}
	for _, s := range ended {
		s.late()
	}
	require.NoError(t, em.Close(t.Context()))
	return log.Bytes()
}

// A script is a run of a mixed log.
type script struct {
	t      *testing.T
	run    *Run
	number int
	agents []*Agent
	cycles int
}

func (s *script) emit(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

func beginScript(t *testing.T, em *Emitter, number int) *script {
	run, err := em.Run(fmt.Sprint("run-", number))
	require.NoError(t, err)
	s := &script{t: t, run: run, number: number}
	s.emit(run.Emit(t.Context(), &RunStarted{
		Name: "release", Inputs: `{"dryRun":false}`,
		Definition: `{"nodes":["plan",{"id":"build"}],"edges":[{"id":"e1","from":"plan","to":"build"},{"from":"build","to":"plan"}],"state":{"open":[]}}`,
	}))
	for _, id := range []string{"planner", "coder"} {
		a := run.Agent(id)
		s.emit(a.Emit(t.Context(), &AgentStarted{Agent: Some(AgentRef{AgentID: id, ModelClass: "coding"}),
			Task: "Add the endpoint", Model: "some-model"}))
		s.agents = append(s.agents, a)
	}
	return s
}

func (s *script) cycle() {
	n := s.cycles
	s.cycles++
	a := s.agents[n%len(s.agents)]
	block := fmt.Sprint("block-", n)
	for range 6 {
		s.emit(a.Emit(s.t.Context(), &TextDelta{BlockID: block,
			Delta: "reading the router, and then the next few words; "}))
	}
	if n%3 == 0 {
		s.emit(a.Emit(s.t.Context(), &TextCompleted{BlockID: block, Text: "the whole text"}))
	}
	s.emit(a.Emit(s.t.Context(), &AgentTransition{From: StatusThinking, To: StatusToolCall}))
	for call := range 3 {
		id := fmt.Sprintf("call-%d-%d-%d", s.number, n, call)
		s.emit(a.Emit(s.t.Context(), &ToolCalled{CallID: id, ToolID: "Read",
			Arguments: `{"path":"api/router.go","lines":[1,2,3]}`}))
		p := &ToolReturned{CallID: id, ToolID: "Read", Status: ToolStatusOK,
			ResultSummary: strings.Repeat("some text of the result ", 20)}
		if call == n%4 {
			p.Status, p.Error = ToolStatusError, Some(ErrorInfo{Code: "exit", Message: "exit status 1"})
		}
		s.emit(a.Emit(s.t.Context(), p))
	}
	s.emit(a.Emit(s.t.Context(), &ToolReturned{CallID: fmt.Sprint("one-", n), ToolID: "Bash", Status: ToolStatusOK,
		OneEvent: true, Duration: Some(time.Second)}))
	round := []AgentStatus{StatusToolCall, StatusToolResult, StatusResponse, StatusReflect, StatusThinking}
	for i, to := range round[1:] {
		s.emit(a.Emit(s.t.Context(), &AgentTransition{From: round[i], To: to}))
	}
	if n%4 == 0 {
		s.emit(a.Emit(s.t.Context(), &AuditChecked{CheckpointID: "audit:unit", Result: AuditPass}))
		s.emit(a.Emit(s.t.Context(), &UsageObserved{Model: "some-model", Usage: Usage{InputTokens: 812,
			OutputTokens: 90}}))
	}
	if n%16 == 1 {
		s.emit(a.Emit(s.t.Context(), &MessageCreated{Message: ConversationMessage{MessageID: fmt.Sprint("m-", n),
			From: a.ID(), To: "planner", Content: `{"text":"Done"}`, Role: "agent"}}))
		s.emit(s.run.Emit(s.t.Context(), &OrchestratorDecided{Decision: `{"kind":"next-worker"}`}))
	}
}

func (s *script) end() {
	if s.number%4 != 3 { // one leaves a call and agents open
		for _, a := range s.agents {
			s.emit(a.Emit(s.t.Context(), &AgentEnded{Outcome: OutcomePartial, Result: "Added."}))
		}
	} else {
		s.emit(s.agents[0].To(s.t.Context(), StatusToolCall))
		s.emit(s.agents[0].Emit(s.t.Context(), &ToolCalled{CallID: "left open", ToolID: "Bash"}))
	}
	switch s.number % 3 {
	case 0:
		s.emit(s.run.Emit(s.t.Context(), &RunCompleted{Outputs: `{"version":"2.4.0"}`}))
	case 1:
		s.emit(s.run.Emit(s.t.Context(), &RunFailed{Error: Some(ErrorInfo{Code: "build", Message: "exit status 1"})}))
	}
}

// late emits an event long after the end of the run.
func (s *script) late() {
	switch s.number % 5 {
	case 0:
		s.emit(s.run.Emit(s.t.Context(), &SessionCompleted{Status: "completed", Result: `{"n":1}`}))
	case 1:
		s.emit(s.agents[0].Emit(s.t.Context(), &AuditChecked{CheckpointID: "audit:late", Result: AuditFail}))
	case 2:
		s.emit(errOf(s.agents[1].Record(s.t.Context(), Event{Marks: MarkLate, Payload: &ToolReturned{CallID: "late",
			ToolID: "Bash", Status: ToolStatusOK, OneEvent: true}})))
	}
}

// Ended runs are put away and their memory serves others. Their snapshots equal
// those of separate folds, also when events come late, repeatedly, or against the
// rules.
func TestFoldReaderIsFoldsApart(t *testing.T) {
	log := mixedLog(t, 40, 12)
	var events []Event
	for ev, err := range NewReader(bytes.NewReader(log), ReaderOptions{}).All() {
		require.NoError(t, err)
		events = append(events, ev)
	}
	for i := 0; i < len(events); i += 97 { // again; the early ones are too old to be known
		line, err := events[i].AppendJSON(nil)
		require.NoError(t, err)
		log = append(append(log, line...), '\n')
		events = append(events[:len(events):len(events)], events[i])
	}
	for n := range 40 { // after the end
		ev := Event{ID: "x", RunID: fmt.Sprint("run-", n), Sequence: 1e6, Time: events[0].Time, AgentID: "coder", Payload: &TextDelta{Delta: "one more"}}
		again := ev
		again.Payload = &TextDelta{Delta: "another"}
		for _, ev := range []Event{ev, ev, again} {
			line, err := ev.AppendJSON(nil)
			require.NoError(t, err)
			log = append(append(log, line...), '\n')
			events = append(events, ev)
		}
	}
	for _, keep := range []int{0, 5, -1} {
		o := FoldOptions{KeepCalls: keep}
		folds := map[string]*Fold{}
		for _, ev := range events {
			if folds[ev.RunID] == nil {
				folds[ev.RunID] = NewFold(o)
			}
			folds[ev.RunID].Apply(ev)
		}
		for _, o.Workers = range []int{1, 2} {
			got, err := snapshotsOf(NewReader(bytes.NewReader(log), ReaderOptions{}), o)
			require.NoError(t, err)
			require.Len(t, got, len(folds))
			for _, s := range got {
				require.Equal(t, folds[s.RunID].Snapshot(), s)
			}
		}
		all, err := foldSeq(NewReader(bytes.NewReader(log), ReaderOptions{}).All(), o)
		require.NoError(t, err)
		for _, s := range all {
			require.Equal(t, folds[s.RunID].Snapshot(), s)
		}
	}
}

// Late events do not unpack and pack a run repeatedly.
func TestLateEventsKeepTheFold(t *testing.T) {
	l := NewFoldSet(FoldOptions{})
	away := 0
	count := func() int {
		n := 0
		for _, run := range l.order {
			if run.fold == nil {
				n++
				require.True(t, (run.rest == nil) != run.text.IsZero())
			}
		}
		return n
	}
	for line, err := range NewReader(bytes.NewReader(mixedLog(t, 40, 3)), ReaderOptions{}).Lines() {
		require.NoError(t, err)
		ev := line.Event
		was := l.runs[ev.RunID]
		late := was != nil && was.fold == nil
		l.ApplyLine(ev, line.Text)
		run := l.runs[ev.RunID]
		require.NotNil(t, run.fold)
		if late {
			require.NotContains(t, l.ended, run)
		}
		away = max(away, count())
		require.LessOrEqual(t, len(l.ended), maxEnded)
		require.LessOrEqual(t, len(l.idle), maxEnded)
	}
	require.Greater(t, away, 15)
	require.Less(t, count(), away, "late events wake")
}

// Many runs that are open at the same time and end together leave no more memory than few.
func TestIdleFoldsAreBounded(t *testing.T) {
	l := NewFoldSet(FoldOptions{})
	for sequence, p := range []Payload{&RunStarted{}, &RunCompleted{}} {
		for n := range 100 {
			l.Apply(Event{ID: fmt.Sprint(sequence, n), RunID: fmt.Sprint("r", n), Sequence: uint64(sequence), Payload: p})
		}
	}
	require.LessOrEqual(t, len(l.idle), maxEnded)
	n := 0
	for s := range l.Drain() {
		require.Equal(t, fmt.Sprint("r", n), s.RunID)
		require.Equal(t, RunStatusCompleted, s.Status)
		n++
	}
	require.Equal(t, 100, n)
	require.Nil(t, l.Snapshot("r1"), "it was handed over")
	l.Apply(Event{ID: "again", RunID: "r1", Sequence: 7, Payload: &RunStarted{}})
	require.Equal(t, uint64(8), l.Snapshot("r1").NextSequence, "and may come again")
}

// A snapshot that was taken stays as it is, whatever the fold uses again.
func TestSnapshotsOfARing(t *testing.T) {
	events := make([]Event, 12)
	for i := range events {
		events[i] = Event{ID: fmt.Sprint("e", i), RunID: "r", Sequence: uint64(i), AgentID: "a", Payload: &ToolReturned{CallID: fmt.Sprint("c", i), ToolID: "T", Status: ToolStatusOK, OneEvent: true}}
	}
	calls := func(s *RunSnapshot) (out []string) {
		for _, c := range s.ClosedCalls {
			out = append(out, c.CallID+" "+c.EventID)
		}
		return out
	}
	latest := func(n, keep int) (out []string) {
		for i := max(0, n-keep); i < n; i++ {
			out = append(out, fmt.Sprintf("c%d e%d", i, i))
		}
		return out
	}
	f := NewFold(FoldOptions{KeepCalls: 3})
	var taken []*RunSnapshot
	for i, ev := range events {
		f.Apply(ev)
		if i%2 == 0 || i > 7 {
			taken = append(taken, f.Snapshot())
		}
		for _, keep := range []int{-1, 2, 3, 4} { // and goes on under another limit
			g, err := ResumeFold(f.Snapshot(), FoldOptions{KeepCalls: keep})
			require.NoError(t, err)
			for _, ev := range events[i+1:] {
				g.Apply(ev)
			}
			s := g.Snapshot()
			require.Equal(t, len(events), len(s.ClosedCalls)+s.DroppedCalls)
			want := latest(len(events), min(max(keep, 0), len(events)-max(0, i+1-3)))
			require.Equal(t, want, calls(s))
		}
	}
	for _, s := range taken {
		require.Equal(t, latest(int(s.NextSequence), 3), calls(s))
		require.Equal(t, max(0, int(s.NextSequence)-3), s.DroppedCalls)
	}
}

// The state of the rules must not keep the log alive either.
func TestFoldOfOpenThingsKeepsNoLineAlive(t *testing.T) {
	ballast := strings.Repeat("x", 10<<10)
	for name, payload := range map[string]func(n int) Event{
		"approvals": func(n int) Event {
			return Event{Payload: &ApprovalRequested{ApprovalID: fmt.Sprint("ap", n), Action: "push", Reason: ballast}}
		},
		"handoffs": func(n int) Event {
			return Event{Payload: &HandoffRequested{HandoffID: fmt.Sprint("h", n), From: AgentRef{AgentID: "a"}, To: AgentRef{AgentID: "b"}, Reason: "r"}, ID: ballast + fmt.Sprint(n)}
		},
		"calls": func(n int) Event {
			return Event{Payload: &ToolCalled{CallID: fmt.Sprint("c", n), ToolID: "T", Arguments: JSON(`"` + ballast + `"`)}}
		},
		"nodes": func(n int) Event {
			return Event{Scope: Scope{NodeID: fmt.Sprint("n", n/2)}, Payload: &NodeStarted{TypeID: ballast}}
		},
		"phases": func(n int) Event {
			return Event{ID: ballast + fmt.Sprint(n), Scope: Scope{WorkflowID: "w", Phase: fmt.Sprint("p", n)}, Payload: &PhaseStarted{}}
		},
		"blocks": func(n int) Event {
			return Event{ID: ballast + fmt.Sprint(n), AgentID: fmt.Sprint("a", n%100), Payload: &TextDelta{BlockID: fmt.Sprint("b", n), Delta: "x"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log []byte
			const events = 1000
			for n := range events {
				ev := payload(n)
				ev.RunID, ev.Sequence = "r", uint64(n)
				if ev.ID == "" {
					ev.ID = fmt.Sprint("e", n)
				}
				var err error
				log, err = ev.AppendJSON(log)
				require.NoError(t, err)
				log = append(log, '\n')
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			l, err := FoldLog(NewReader(bytes.NewReader(log), ReaderOptions{}), FoldOptions{})
			require.NoError(t, err)
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.EqualValues(t, events, l.order[0].fold.m.NextSequence)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(len(log)/8))
			runtime.KeepAlive(log) // so that its own memory is on both sides
		})
	}
}

// Folding allocates little: the snapshot of a run, a few pieces of memory for its
// texts, and the pieces that lines are read into.
func TestFoldReaderAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads a long log")
	}
	log := mixedLog(t, 12, 250)
	events := bytes.Count(log, []byte("\n"))
	require.Greater(t, events, 50_000)
	for _, workers := range []int{1, 2} {
		allocs := testing.AllocsPerRun(1, func() {
			_, err := snapshotsOf(NewReader(bytes.NewReader(log), ReaderOptions{}), FoldOptions{Workers: workers})
			require.NoError(t, err)
		})
		t.Logf("%d workers: %.0f allocations for %d events, %.4f each", workers, allocs, events, allocs/float64(events))
		require.Less(t, allocs/float64(events), 0.2) // 0.04 alone, 0.06 to 0.1 beside other processes
	}
}

// A log that is read twice leaves no more folds than one that is read once.
func TestRunsArePutAwayAgain(t *testing.T) {
	var log strings.Builder
	const runs, steps = 40, 2 * firstWait
	for run := range runs {
		for n := range steps {
			kind := [...]string{0: "run.started", steps - 1: "run.completed"}[n]
			fmt.Fprintf(&log, `{"id":"%d-%d","sequence":%d,"timestamp":"2026-05-05T09:00:00Z","type":%q,"runId":"r%d","schemaVersion":%q,"payload":{}}`+"\n",
				run, n, n, cmp.Or(kind, "run.resumed"), run, SchemaVersion)
		}
	}
	folds := func(times int) (n int) {
		l, err := FoldLog(NewReader(strings.NewReader(strings.Repeat(log.String(), times)), ReaderOptions{}), FoldOptions{})
		require.NoError(t, err)
		require.Equal(t, uint64(steps), l.Snapshot("r0").NextSequence)
		for _, run := range l.order {
			if run.fold != nil {
				n++
			}
		}
		return n
	}
	require.LessOrEqual(t, folds(1), maxEnded)
	require.LessOrEqual(t, folds(2), maxEnded)
}

// A run of 32 events and four agents is packed when it has ended, and its snapshot is the same.
func TestRunOfFourAgentsIsPacked(t *testing.T) {
	var log strings.Builder
	const runs = 2 * maxEnded
	for run := range runs {
		n := 0
		emit := func(kind, agent, payload string) {
			fmt.Fprintf(&log, `{"id":"%d-%d","sequence":%d,"timestamp":"2026-05-05T09:00:00Z","type":%q,"runId":"r%d","agentId":%q,"schemaVersion":%q,"payload":%s}`+"\n",
				run, n, n, kind, run, agent, SchemaVersion, payload)
			n++
		}
		emit("run.started", "", `{"name":"release"}`)
		for a := range 4 {
			agent := fmt.Sprint("a", a)
			emit("agent.started", agent, `{"model":"m","task":"`+strings.Repeat("Add an endpoint. ", 20)+`"}`)
			for call := range 3 {
				emit("agent.toolCalled", agent, fmt.Sprintf(`{"callId":"%d-%d","toolId":"Bash"}`, a, call))
				emit("agent.toolReturned", agent, fmt.Sprintf(`{"callId":"%d-%d","status":"ok"}`, a, call))
			}
		}
		emit("run.completed", "", `{}`)
		require.InDelta(t, 32, n, 3)
	}
	o := FoldOptions{KeepCalls: -1, MaxViolations: -1}
	l, err := FoldLog(NewReader(strings.NewReader(log.String()), ReaderOptions{}), o)
	require.NoError(t, err)
	packed := 0
	for _, run := range l.order {
		if run.fold == nil {
			require.False(t, run.text.IsZero())
			packed++
		}
	}
	require.GreaterOrEqual(t, packed, maxEnded-1)
	plain := map[string]*Fold{}
	for ev, err := range NewReader(strings.NewReader(log.String()), ReaderOptions{}).All() {
		require.NoError(t, err)
		if plain[ev.RunID] == nil {
			plain[ev.RunID] = NewFold(o)
		}
		plain[ev.RunID].Apply(ev)
	}
	for id, f := range plain {
		require.Equal(t, string(f.Snapshot().AppendJSON(nil)), string(l.Snapshot(id).AppendJSON(nil)))
	}
}
