package agui_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/internal/readback"
)

// problems returns the differences between events and their lines that no loss lists. It does not
// ask which line an event was written for, as requests and answers wait for later events.
func problems(t *testing.T, events []agentevents.Event) []string {
	t.Helper()
	lines, losses := encode(t, agui.EncoderOptions{}, events)
	trip := readback.Trip{Events: events, Text: []byte(lines), Losses: losses}
	dec := agui.NewDecoder(agui.Options{})
	require.Empty(t, trip.Read(agentevents.ReaderOptions{Decoder: dec}))
	for _, l := range dec.Losses() {
		trip.Derived = append(trip.Derived, l.Pointer)
	}
	var list []string
	for _, err := range trip.Compare() {
		list = append(list, err.Error())
	}
	trip.Unlisted(func(_ int, what string) { list = append(list, what) })
	trip.Unreal(func(what string) { list = append(list, what) })
	if len(list) > 0 {
		list = append(list, lines)
	}
	return list
}

// in gives events to a run of the thread of then.
func in(run string, events ...agentevents.Event) []agentevents.Event {
	for i := range events {
		events[i].RunID, events[i].SessionID = run, "s"
	}
	return events
}

// Readers make the events of a log of lines that depend on lines before: results of calls, requests
// and answers.
func TestLinesThatDependOnOthers(t *testing.T) {
	called := func(id string) agentevents.Payload { return &agentevents.ToolCalled{CallID: id, ToolID: "Read"} }
	returned := func(tool string, one bool) agentevents.Payload {
		return &agentevents.ToolReturned{CallID: "c", ToolID: tool, Status: "ok", Result: `"x"`, OneEvent: one}
	}
	asks, pauses := &agentevents.ApprovalRequested{ApprovalID: "q"}, &agentevents.RunPaused{}
	starts := &agentevents.RunStarted{Inputs: `{"threadId":"s","runId":"run-2","messages":[],"resume":[{"interruptId":"q","status":"resolved","payload":true}]}`}
	const interrupt = `{"id":"q","reason":"tool_call","message":"Go?","toolCallId":"c"}`
	asked := func(tool string) agentevents.Payload {
		return &agentevents.ApprovalRequested{ApprovalID: "q", Action: "Go?", CallID: "c", ToolID: tool}
	}
	outcome := func(log []agentevents.Event, requests ...int) []agentevents.Event {
		for i := range log {
			log[i].Time = log[0].Time
		}
		for _, i := range requests {
			with(log, i, `{"interrupt":`+interrupt+`}`)
		}
		return with(log, len(log)-1, `{"outcome":{"type":"interrupt","interrupts":[`+interrupt+`]}}`)
	}
	later := outcome(run("agent", called("c"), asked("Read"), "", pauses), 1)
	later[2].Time = later[2].Time.Add(time.Second)
	for name, log := range map[string][]agentevents.Event{
		"a return without a tool beside the open call of another agent": run("a1", called("c"), "a2", returned("", true)),
		"a return of one event without a tool after another return":     run("", called("c"), returned("Read", false), returned("unknown", true)),
		"two returns of one event without a tool":                       run("", returned("unknown", true), returned("unknown", true)),
		"two returns without a tool in two runs":                        then(run("", returned("unknown", true)), run("", returned("unknown", true))),
		"a call after the return of its id":                             run("", returned("unknown", true), called("c"), returned("Read", false)),
		"a call whose line comes before the return of its id": slices.Concat(in("run-1", run("", text("b", "I "))...), in("run-2", run("", returned("unknown", true))...),
			in("run-1", run("", called("c"))...)),
		"a return while the end of the run that waits is not written": slices.Concat(in("run-1", run("", called("c"), asks, pauses)...),
			in("run-2", run("", text("b", "I "))...), in("run-1", run("", &agentevents.RunCompleted{})...), in("run-2", run("", returned("", true))...)),

		"a second start of a run that waits": run("", asks, pauses, &agentevents.RunStarted{}),
		"a start inside a run":               then(run("", asks, pauses), run("", text("b", "I "), starts)),
		"a start whose line comes after a pause of later": slices.Concat(in("run-1", run("", asks)...), in("run-2", run("", starts)...),
			in("run-1", run("", pauses)...)),

		"a request in an outcome":                       outcome(run("agent", called("c"), asked("Read"), "", pauses), 1),
		"a request with another time than its outcome":  later,
		"a request twice":                               outcome(run("agent", called("c"), asked("Read"), text("b", "I "), asked("Read"), "", pauses), 1, 3),
		"an outcome with a request that has a line":     outcome(run("agent", called("c"), asked("Bash"), "", pauses), 1),
		"an outcome with more requests than the log":    with(outcome(run("agent", asked("Bash"), "", pauses), 0), 1, `{"outcome":{"type":"interrupt","interrupts":[{"id":"r"},`+interrupt+`]}}`),
		"an outcome with a request that the log lacks":  outcome(run("agent", called("c"), asks, "", pauses)),
		"a request about a call that has an id of ours": outcome(run("agent", returned("Bash", true), called("c"), asked("Read"), "", pauses), 2),
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, problems(t, log)) })
	}
}

// Random logs of three runs of a thread, with few names.
func TestRandomReturns(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 2))
		require.Empty(t, problems(t, randomReturns(r)), "seed %d", seed)
	}
}

func randomReturns(r *rand.Rand) (log []agentevents.Event) {
	pick := func(list ...string) string { return oneOf(r, list) }
	numbers, over, session := map[string]uint64{}, map[string]bool{}, pick("", "th", "th")
	for i := range 3 + r.IntN(20) {
		run, id, tool := pick("one", "one", "two", "two", "three"), pick("c", "c", "d", ""), pick("Read", "Bash", "", "unknown")
		resume := agentevents.JSON(pick("", `{"threadId":"th","runId":"`+run+`","messages":[],"resume":[{"interruptId":"q1","status":"resolved","payload":true}]}`))
		returned := &agentevents.ToolReturned{CallID: id, ToolID: tool, Status: agentevents.ToolStatus(pick("ok", "", "error")), Result: agentevents.JSON(pick("", `"x"`)), OneEvent: r.IntN(2) == 0}
		returned.Arguments = agentevents.JSON(pick("", "", "", `{"b":2}`))
		ofRun := []agentevents.Payload{&agentevents.RunPaused{}, &agentevents.RunStarted{Inputs: resume}, &agentevents.RunResumed{}, &agentevents.RunCompleted{}, &agentevents.RunFailed{}}
		ofAgent := []agentevents.Payload{
			returned, returned, returned, returned,
			&agentevents.ToolCalled{CallID: id, ToolID: tool, Arguments: agentevents.JSON(pick("", `{"a":1}`))},
			&agentevents.ToolCalled{CallID: id, ToolID: tool},
			&agentevents.ToolArgumentsDelta{CallID: id, Delta: pick(`{"a"`, `:1}`)},
			&agentevents.TextDelta{BlockID: id, Delta: "t"},
			&agentevents.ApprovalRequested{ApprovalID: pick("q1", "q2"), CallID: pick("", "c"), ToolID: pick("", "Read")},
			&agentevents.ApprovalGranted{ApprovalID: pick("q1", "q2"), ApprovedBy: "two"},
		}
		ev := agentevents.Event{ID: fmt.Sprint("e", i), RunID: run, SchemaVersion: "1.0", Time: time.UnixMilli(1777971600000 + int64(i)).UTC()}
		switch ev.SessionID = session; {
		case over[run] && r.IntN(2) == 0:
			continue
		case over[run]:
			ev.Payload = &agentevents.RunResumed{}
		case r.IntN(3) == 0:
			ev.Payload = oneOf(r, ofRun)
		default:
			ev.Payload = oneOf(r, ofAgent)
			if ev.AgentID = pick("", "agent", "a1", "a1", "a2"); r.IntN(12) == 0 {
				ev.NodeRunID, ev.AgentID = "n", ""
			}
		}
		switch ev.Payload.(type) {
		case *agentevents.RunCompleted, *agentevents.RunFailed:
			over[run] = true
		case *agentevents.RunResumed:
			over[run] = false
		}
		ev.Sequence = numbers[run]
		numbers[run]++
		log = append(log, ev)
	}
	return log
}

// The events of interrupts and answers with some left out, in another place, twice or changed.
func TestRandomAnswers(t *testing.T) {
	all := decode(t, agui.Options{}, asking+answering)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 3))
		log := slices.Clone(all)
		for range 1 + r.IntN(4) {
			i, j := r.IntN(len(log)), r.IntN(len(log))
			switch r.IntN(4) {
			case 0:
				log = slices.Delete(log, i, i+1)
			case 1:
				log[i], log[j] = log[j], log[i]
			case 2:
				log = slices.Insert(log, j, log[i])
			case 3:
				change := []func(ev *agentevents.Event){
					func(ev *agentevents.Event) { ev.Time = ev.Time.Add(time.Millisecond) }, func(ev *agentevents.Event) { ev.NodeID = "n" },
					func(ev *agentevents.Event) { ev.WorkflowID = "w" }, func(ev *agentevents.Event) { ev.Marks ^= agentevents.MarkLate },
				}
				oneOf(r, change)(&log[i])
			}
		}
		numbers := map[string]uint64{}
		for i := range log {
			ev := &log[i]
			ev.ID, ev.Sequence = fmt.Sprint("e", i), numbers[ev.RunID]
			numbers[ev.RunID]++
		}
		require.Empty(t, problems(t, log), "seed %d", seed)
	}
}

// Neither an encoder nor a decoder keeps the text of a line alive for a name in it.
func TestNamesAreCopied(t *testing.T) {
	const long, n = 1 << 20, 16
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	enc, dec := agui.NewEncoder(agui.EncoderOptions{}), agui.NewDecoder(agui.Options{})
	encodes := func(i int) {
		line := fmt.Sprintf("c%02dReadcoder%02d", i, i) + strings.Repeat("x", long)
		id, tool, agent := line[:3], line[3:7], line[7:14]
		ev := agentevents.Event{RunID: "r", AgentID: agent, Sequence: uint64(i)}
		for _, p := range []agentevents.Payload{&agentevents.ToolCalled{CallID: id, ToolID: tool}, &agentevents.TextDelta{BlockID: id + "t", Delta: "x"}, &agentevents.StepStarted{StepID: agent}} {
			ev.Payload = p
			_, err := enc.Append(nil, ev)
			require.NoError(t, err)
		}
	}
	decodes := func(i int) {
		for _, line := range []string{
			`{"type":"RUN_STARTED","runId":"r%02d","threadId":"t%02d"`, `{"type":"SUBAGENT_STARTED","subagentRunId":"coder%02d","name":"n%02d"`, `{"type":"STEP_STARTED","stepName":"s%02d%02d"`,
			`{"type":"TOOL_CALL_START","toolCallId":"c%02d","toolCallName":"Read%02d"`, `{"type":"TOOL_CALL_END","toolCallId":"c%02d","x":%d`,
		} {
			_, err := dec.Decode(nil, []byte(fmt.Sprintf(line, i, i)+`,"extra":"`+strings.Repeat("x", long)+`"}`))
			require.NoError(t, err)
		}
	}
	for name, step := range map[string]func(i int){"encoder": encodes, "decoder": decodes} {
		t.Run(name, func(t *testing.T) {
			step(0)
			before := inUse()
			for i := range n {
				step(1 + i)
			}
			require.Less(t, int64(inUse())-int64(before), int64(n*long/4))
		})
	}
	runtime.KeepAlive(enc)
	runtime.KeepAlive(dec)
}
