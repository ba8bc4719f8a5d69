package kahn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
)

var noon = time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC)

// native returns an event with nothing that the document has no place for.
func native(p agentevents.Payload) agentevents.Event {
	return agentevents.Event{Time: noon, RunID: "r", AgentID: "a", SchemaVersion: agentevents.SchemaVersion, Payload: p}
}

// pointers returns the change and the place of each loss.
func pointers(e *Encoder) (list []string) {
	for _, l := range e.Losses() {
		list = append(list, l.What.String()+" "+l.Pointer)
	}
	return list
}

func verbatim(t *testing.T, line string) agentevents.Event {
	t.Helper()
	for ev, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
		require.NoError(t, err)
		return ev
	}
	t.Fatal("no event")
	return agentevents.Event{}
}

func TestVerbatimHidesNothing(t *testing.T) {
	const start = `{"ts":"2026-05-05T09:00:00Z","run_id":"r","event":"agent_run_start","agent_id":"a","task":"t"}`
	ev, e := verbatim(t, start), NewEncoder(EncoderOptions{})
	require.Equal(t, start+"\n", encode(t, e, ev))
	require.Empty(t, e.Losses())

	ev.SessionID, ev.TraceID, ev.Marks = "s", "t", agentevents.MarkSynthetic
	require.NoError(t, ev.SetExtra("vendor", `1`))
	e = NewEncoder(EncoderOptions{})
	require.Equal(t, start+"\n", encode(t, e, ev))
	require.Equal(t, []string{"dropped /marks", "dropped /sessionId", "dropped /traceId", "dropped /vendor"}, pointers(e))

	// The comparison includes the end of a long summary and the time below a
	// millisecond.
	long := strings.Repeat("x", MaxSummary)
	tool := `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"tool_invocation","agent_id":"a","step":0,"tool_name":"x","duration_s":0.5,"ok":true,"output_summary":"` + long + `secret"}`
	ev, e = verbatim(t, tool), NewEncoder(EncoderOptions{})
	require.Equal(t, tool+"\n", encode(t, e, ev))
	require.Empty(t, e.Losses())
	p := *ev.Payload.(*agentevents.ToolReturned)
	p.ResultSummary = long + "******"
	ev.Payload = &p
	require.NotContains(t, encode(t, NewEncoder(EncoderOptions{}), ev), "secret")

	fine := strings.Replace(start, "00Z", "00.000000001Z", 1)
	ev = verbatim(t, fine)
	require.Equal(t, fine+"\n", encode(t, NewEncoder(EncoderOptions{}), ev))
	ev.Time = ev.Time.Add(1)
	require.Equal(t, strings.Replace(start, "00Z", "00.000Z", 1)+"\n", encode(t, NewEncoder(EncoderOptions{}), ev))
}

// A fact is written even if it equals the value that the encoder would make up. The original line,
// which lacks it, is not written.
func TestVerbatimIsNotStale(t *testing.T) {
	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":`
	const totals = `"total_steps":0,"total_tool_calls":0,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0`
	for name, c := range map[string]struct {
		line   string
		change func(ev *agentevents.Event)
		want   string // expected on the line
		made   string // or expected among the losses
	}{
		"agent": {base + `"agent_run_start","task":"t"}`, func(ev *agentevents.Event) { ev.AgentID = "coder" }, `"agent_id":"coder"`, ""},
		"node":  {base + `"agent_run_start","task":"t","agent_id":"n"}`, func(ev *agentevents.Event) { ev.AgentID, ev.NodeID = "", "n" }, `"agent_id":"n"`, "made up /agentId"},
		"step": {base + `"agent_transition","agent_id":"a","from":"thinking","to":"failed"}`,
			func(ev *agentevents.Event) { ev.Step = agentevents.Some(0) }, `"step":0`, ""},
		"outcome": {base + `"agent_run_end","agent_id":"a",` + totals + `,"total_duration_s":1.0}`, func(ev *agentevents.Event) {
			ev.Payload.(*agentevents.AgentEnded).Outcome = agentevents.OutcomePartial
		}, `"outcome":"partial"`, ""},
		"totals": {base + `"agent_run_end","agent_id":"a","outcome":"partial",` + totals + `,"total_duration_s":1.0}`, func(ev *agentevents.Event) {
			ev.Payload.(*agentevents.AgentEnded).Totals = agentevents.Opt[agentevents.Totals]{}
		}, totals, "made up /payload/totals"},
	} {
		t.Run(name, func(t *testing.T) {
			ev, e := verbatim(t, c.line), NewEncoder(EncoderOptions{})
			require.Equal(t, c.line+"\n", encode(t, e, ev), "unchanged")
			require.Empty(t, e.Losses())
			c.change(&ev)
			e = NewEncoder(EncoderOptions{})
			require.Contains(t, encode(t, e, ev), c.want)
			if c.made != "" {
				require.Contains(t, pointers(e), c.made)
			}
			for _, l := range e.Losses() {
				require.Equal(t, 1, l.Count, "comparing lines counts nothing: %v", l)
			}
		})
	}
}

// A reader derives ids from a line and its place, and counts the lines. A line at
// another place, or an event with other ids, is a listed loss.
func TestVerbatimElsewhere(t *testing.T) {
	const line = `{"ts":"2026-05-05T09:00:00Z","run_id":"r","event":"tool_invocation","agent_id":"a","step":0,"tool_name":"x","duration_s":0.5,"ok":true}` + "\n"
	read := func() (events []agentevents.Event) {
		for ev, err := range agentevents.NewReader(strings.NewReader(line+line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
			require.NoError(t, err)
			events = append(events, ev)
		}
		return events
	}
	e := NewEncoder(EncoderOptions{})
	require.Equal(t, line+line, encode(t, e, read()...))
	require.Empty(t, e.Losses())

	e = NewEncoder(EncoderOptions{})
	require.Equal(t, line, encode(t, e, read()[1]))
	require.Equal(t, []string{"dropped /id", "dropped /sequence", "dropped /payload/callId"}, pointers(e))

	ev, e := read()[0], NewEncoder(EncoderOptions{})
	ev.ID, ev.Payload.(*agentevents.ToolReturned).CallID = "changed", "changed-call"
	require.Equal(t, line, encode(t, e, ev))
	require.Equal(t, []string{"dropped /id", "dropped /payload/callId"}, pointers(e))
}

// A missing member is not read as 0, "" or false. The encoder lists the value that it makes up for
// it, and the other members of the line come back.
func TestLinesThatLackMembers(t *testing.T) {
	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":`
	for _, c := range []struct {
		line   string
		check  func(ev agentevents.Event)
		losses []string
		want   string // expected on the line
	}{
		{base + `"agent_run_start","agent_id":"a"}`, nil, []string{"made up /kahn/task"}, `"task":""`},
		{base + `"agent_run_start","agent_id":"a","task":"","model":""}`, nil, nil, `"task":"","model":""}`},
		{base + `"agent_transition","agent_id":"a","step":0,"from":"thinking","to":"failed","reason":""}`, nil, nil, `"reason":""}`},
		{base + `"tool_invocation","agent_id":"a","step":0,"duration_s":1.0}`,
			func(ev agentevents.Event) { require.Empty(t, ev.Payload.(*agentevents.ToolReturned).Status) },
			[]string{"made up /kahn/tool_name", "made up /payload/status"}, `"tool_name":"","duration_s":1.0,"ok":false`},
		{base + `"tool_invocation","agent_id":"a","step":0,"tool_name":"","duration_s":1.0,"ok":false,"input_summary":"","output_summary":""}`,
			func(ev agentevents.Event) {
				require.Equal(t, agentevents.ToolStatusError, ev.Payload.(*agentevents.ToolReturned).Status)
			}, nil, `"tool_name":"","duration_s":1.0,"ok":false,"input_summary":"","output_summary":""}`},
		{base + `"agent_run_end","agent_id":"a","outcome":"partial","total_tool_calls":7,"audits_failed":0,"total_duration_s":1.0}`,
			func(ev agentevents.Event) { require.False(t, ev.Payload.(*agentevents.AgentEnded).Totals.OK) },
			[]string{"dropped /kahn/audits_failed", "dropped /kahn/total_tool_calls", "made up /payload/totals"}, `"total_steps":0,"total_tool_calls":7,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0`},
	} {
		ev := decode(t, Options{}, c.line)[0]
		if c.check != nil {
			c.check(ev)
		}
		ev.ID = ""
		if p, ok := ev.Payload.(*agentevents.ToolReturned); ok {
			c.losses = append([]string{"dropped /payload/callId"}, c.losses...)
			slices.Sort(c.losses)
			p.CallID = "c"
		}
		e := NewEncoder(EncoderOptions{})
		require.Contains(t, encode(t, e, ev), c.want)
		got := pointers(e)
		for _, l := range e.Losses() {
			require.Equal(t, 1, l.Count, l)
		}
		slices.Sort(got)
		require.Equal(t, c.losses, got, c.line)
	}

	// A kept empty text gives way to a text of the event.
	ev, e := decode(t, Options{}, base+`"agent_run_start","agent_id":"a","task":"t","model":""}`)[0], NewEncoder(EncoderOptions{})
	ev.ID, ev.Payload.(*agentevents.AgentStarted).Model = "", "m"
	require.Contains(t, encode(t, e, ev), `"model":"m"}`)
	require.Equal(t, []string{"dropped /kahn/model"}, pointers(e))

	// Totals of the event take precedence over the ones kept of the line.
	ev, e = decode(t, Options{}, base+`"agent_run_end","agent_id":"a","outcome":"partial","total_tool_calls":7,"total_duration_s":1.0}`)[0], NewEncoder(EncoderOptions{})
	ev.ID, ev.Payload.(*agentevents.AgentEnded).Totals = "", agentevents.Some(agentevents.Totals{ToolCalls: 8})
	require.Contains(t, encode(t, e, ev), `"total_tool_calls":8,`)
	require.Equal(t, []string{"dropped /kahn/total_tool_calls"}, pointers(e))
}

// Steps, made up or not, continue through the attempts of an agent. Totals belong to the attempt.
func TestStepsAreMadeUp(t *testing.T) {
	step := func(n int, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.Step = agentevents.Some(n)
		return ev
	}
	tool := func() *agentevents.ToolReturned {
		return &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true}
	}
	events := []agentevents.Event{
		native(&agentevents.AgentStarted{Task: "t"}),
		step(5, tool()),
		native(tool()),
		native(&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}),
		native(&agentevents.AgentStarted{Task: "t", Attempt: agentevents.Some(2)}),
		native(tool()),
		native(tool()),
		native(&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}),
	}
	log := encode(t, NewEncoder(EncoderOptions{}), events...)
	var steps []string
	for line := range strings.Lines(log) {
		for _, name := range []string{`"step":`, `"total_steps":`} {
			if _, rest, ok := strings.Cut(line, name); ok {
				steps = append(steps, rest[:strings.IndexByte(rest, ',')])
			}
		}
	}
	require.Equal(t, []string{"5", "5", "1", "6", "6", "1"}, steps)

	// Steps before the first start belong to the attempt. An attempt without steps leaves its
	// numbers to the next one.
	started, ended := native(&agentevents.AgentStarted{Task: "t"}), native(&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial})
	move := native(&agentevents.AgentTransition{From: agentevents.StatusThinking, To: agentevents.StatusFailed})
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), step(5, tool()), started, ended), `"total_steps":1,`)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), started, ended, started, move, ended), `"step":0,`)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), started, move, ended), `"total_steps":1,`)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), started, step(2, &agentevents.Unknown{Type: "x", Raw: `{}`}), move, ended), `"step":2,"from"`)

	// Without any step in the log, the totals count the one step of the lines.
	log = encode(t, NewEncoder(EncoderOptions{}), native(&agentevents.AgentStarted{Task: "t"}), native(tool()), native(&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}))
	require.Contains(t, log, `"total_steps":1,"total_tool_calls":1`)
	fold := agentevents.NewFold(agentevents.FoldOptions{})
	for _, ev := range decode(t, Options{Strict: true}, log) {
		fold.Apply(ev)
	}
	require.Empty(t, fold.Snapshot().Violations)
}

// The totals count the audits of the agent, not the audits of the run.
func TestAuditsAreCounted(t *testing.T) {
	audit := func(node string, result agentevents.AuditResult) agentevents.Event {
		ev := native(&agentevents.AuditChecked{CheckpointID: "c", Result: result})
		if node != "" {
			ev.AgentID, ev.NodeID = "", node
		}
		return ev
	}
	log := encode(t, NewEncoder(EncoderOptions{}), audit("", agentevents.AuditPass), audit("", agentevents.AuditFail), audit("", agentevents.AuditFail), audit("", agentevents.AuditWarn),
		audit("a", agentevents.AuditPass), native(&agentevents.AgentEnded{}))
	require.Contains(t, log, `"total_audit_checkpoints":4,"audits_passed":1,"audits_failed":2`)
}

// A call that another one replaces never returns, nor does one too many.
func TestCallsThatNeverReturn(t *testing.T) {
	called := func(id string) agentevents.Event { return native(&agentevents.ToolCalled{CallID: id, ToolID: "x"}) }
	never := func(e *Encoder) (n int) {
		for _, l := range e.Losses() {
			if l.Pointer == "" && l.What == dialect.Dropped {
				n += l.Count
			}
		}
		return n
	}
	e := NewEncoder(EncoderOptions{})
	encode(t, e, called("c"), called("c"), native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK}))
	require.Equal(t, 1, never(e))
	e = NewEncoder(EncoderOptions{})
	for i := range dialect.MaxCalls + 2 {
		_, err := e.Append(nil, called(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.Equal(t, 2, never(e))
}

// The decoder lists the values that it makes up.
func TestLossesOfReading(t *testing.T) {
	d := NewDecoder(Options{})
	for _, line := range []string{`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"x"}`, `{"run_id":"r","event":"tool_invocation"}`} {
		_, err := d.Decode(nil, []byte(line))
		require.NoError(t, err)
	}
	var made []string
	for _, l := range d.Losses() {
		made = append(made, fmt.Sprint(l.What, " ", l.Pointer, " ", l.Count))
	}
	require.Equal(t, []string{"made up /id 2", "made up /sequence 2", "made up /timestamp 1", "made up /payload/callId 1"}, made)
}

// A refusal has a line like a call, so the document's totals count it.
func TestTotalsCountRefusals(t *testing.T) {
	ended := func(calls int) agentevents.Event {
		return native(&agentevents.AgentEnded{
			Outcome: agentevents.OutcomePartial, Totals: agentevents.Some(agentevents.Totals{Steps: 1, ToolCalls: calls, AuditCheckpoints: 1}), Duration: agentevents.Some(time.Second),
		})
	}
	call := &agentevents.ToolReturned{CallID: "c1", ToolID: "t", Status: agentevents.ToolStatusOK, OneEvent: true}
	for _, refusal := range []*agentevents.ToolReturned{
		{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusForbidden, OneEvent: true},
		{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusRateLimited},
	} {
		e := NewEncoder(EncoderOptions{})
		log := encode(t, e, native(&agentevents.AgentStarted{Task: "t"}), native(refusal), native(call), ended(1))
		require.Contains(t, log, `"total_tool_calls":2,"total_audit_checkpoints":1,`)
		require.Contains(t, pointers(e), "altered /payload/totals/toolCalls")
		fold := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range decode(t, Options{Strict: true}, log) {
			fold.Apply(ev)
		}
		require.Empty(t, fold.Snapshot().Violations)

		// Totals that already count it stay as they are, and so do totals that were
		// wrong before.
		for _, calls := range []int{2, 0} {
			e := NewEncoder(EncoderOptions{})
			log := encode(t, e, native(&agentevents.AgentStarted{Task: "t"}), native(refusal), native(call), ended(calls))
			require.Contains(t, log, fmt.Sprintf(`"total_tool_calls":%d`, calls))
			require.NotContains(t, pointers(e), "altered /payload/totals/toolCalls")
		}
	}

	// A refusal of an open call is counted already.
	e := NewEncoder(EncoderOptions{})
	log := encode(t, e, native(&agentevents.AgentStarted{Task: "t"}), native(&agentevents.ToolCalled{CallID: "c", ToolID: "t"}),
		native(&agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusForbidden}), ended(0))
	require.Contains(t, log, `"total_tool_calls":0`)
}

// Agents that differ only in their node stay apart.
func TestAgentsOfNodes(t *testing.T) {
	at := func(node, execution string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.NodeID, ev.NodeRunID = "", node, execution
		return ev
	}
	e := NewEncoder(EncoderOptions{})
	log := encode(t, e, at("n", "n-1", &agentevents.AgentStarted{Task: "t"}), at("n", "n-2", &agentevents.AgentStarted{Task: "t"}), at("m", "", &agentevents.AgentStarted{Task: "t"}),
		at("n", "n-1", &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}))
	var agents []string
	for _, ev := range decode(t, Options{Strict: true}, log) {
		agents = append(agents, ev.AgentID)
	}
	require.Equal(t, []string{"n", "n-2", "m", "n"}, agents)
	require.Contains(t, pointers(e), "made up /agentId")

	e = NewEncoder(EncoderOptions{})
	encode(t, e, at("", "", &agentevents.AgentStarted{Task: "t"}))
	require.Equal(t, "made up /agentId", pointers(e)[0], "nothing names it")
}

// The end of a failed node ends the agent that is identified only by the execution.
func TestAgentsOfFailedNodes(t *testing.T) {
	at := func(agent, execution string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.NodeID, ev.NodeRunID = agent, "n", execution
		return ev
	}
	failed := &agentevents.NodeFailed{Error: agentevents.ErrorInfo{Message: "m"}}
	e := NewEncoder(EncoderOptions{})
	log := encode(t, e, at("", "n-1", &agentevents.AgentStarted{Task: "t"}), at("", "n-1", failed))
	events := decode(t, Options{Strict: true}, log)
	require.Len(t, events, 2)
	require.Equal(t, agentevents.OutcomeAborted, events[1].Payload.(*agentevents.AgentEnded).Outcome)
	require.Equal(t, "n", events[1].AgentID)
	require.Subset(t, pointers(e), []string{"altered ", "dropped /payload/error"})
	// It has ended, did not start, or is another one's.
	for _, ev := range []agentevents.Event{at("", "n-1", failed), at("", "n-2", failed), at("a", "n-1", failed)} {
		_, err := e.Append(nil, ev)
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	}
}

// Calls of the same id belong to the agents that made them, also if these differ
// only in their node.
func TestCallsOfNodes(t *testing.T) {
	at := func(seconds int, execution string, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.AgentID, ev.NodeRunID, ev.Time = "", execution, noon.Add(time.Duration(seconds)*time.Second)
		return ev
	}
	called := func(args agentevents.JSON) agentevents.Payload {
		return &agentevents.ToolCalled{CallID: "c1", ToolID: "x", Arguments: args}
	}
	returned := func() agentevents.Payload {
		return &agentevents.ToolReturned{CallID: "c1", ToolID: "x", Status: agentevents.ToolStatusOK}
	}
	e := NewEncoder(EncoderOptions{})
	log := encode(t, e, at(0, "n1", called(`1`)), at(1, "n2", called(`2`)), at(5, "n1", returned()), at(7, "n2", returned()))
	var got []string
	for _, ev := range decode(t, Options{Strict: true}, log) {
		p := ev.Payload.(*agentevents.ToolReturned)
		got = append(got, ev.AgentID+" "+p.ArgumentsSummary+" "+p.Duration.V.String())
	}
	require.Equal(t, []string{"n1 1 5s", "n2 2 6s"}, got)
	for _, l := range e.Losses() {
		require.NotEqual(t, "the call never returned", l.Detail)
	}
}

func TestFactsThatNoLineHas(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	var rule *agentevents.RuleError
	for _, ev := range []agentevents.Event{
		native(nil), native((*agentevents.AgentStarted)(nil)), native(&agentevents.Unknown{Raw: `{"a":1}`}),
		native(&agentevents.AgentEnded{ConvergenceScore: agentevents.Some(math.NaN())}),
		native(&agentevents.AuditChecked{CheckpointID: "C", Result: agentevents.AuditPass, Evidence: `{`}),
		native(&agentevents.ToolReturned{CallID: "c", ToolID: "\xff", OneEvent: true}),
		{Time: noon.AddDate(9000, 0, 0), RunID: "r", AgentID: "a", Payload: &agentevents.AgentStarted{Task: "t"}},
	} {
		out, err := e.Append([]byte("x"), ev)
		require.ErrorAs(t, err, &rule)
		require.Equal(t, "x", string(out))
	}
	require.Empty(t, e.Losses(), "a refused event loses nothing")
	for _, kind := range []agentevents.Kind{"agent_run_start", "kahn:", "kahn:agent_run_end"} {
		_, err := e.Append(nil, native(&agentevents.Unknown{Type: kind, Raw: `{"a":1}`}))
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	}
	for _, c := range []struct {
		payload agentevents.Payload
		extra   agentevents.JSON
		want    []string
	}{
		{&agentevents.Unknown{Type: "kahn:foo", Raw: `{}`}, "", []string{"altered "}},
		{&agentevents.Unknown{Type: "foo", Raw: `{}`}, `{"b":2}`, []string{"dropped /kahn/b"}},
		{&agentevents.Unknown{Type: "foo"}, "", []string{"made up /payload"}},
		{&agentevents.AgentStarted{Task: "t"}, `{"task":"other","y/":1}`, []string{"dropped /kahn/task"}},
		{&agentevents.AgentStarted{Task: "t"}, `[1]`, []string{"dropped /kahn"}},
		{&agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditPass, Evidence: `null`}, "", []string{"dropped /payload/evidence"}},
	} {
		ev, e := native(c.payload), NewEncoder(EncoderOptions{})
		if c.extra != "" {
			require.NoError(t, ev.SetExtra("kahn", c.extra))
		}
		decode(t, Options{}, encode(t, e, ev))
		require.Equal(t, c.want, pointers(e))
	}
	// The line of the return has the call, except for the call's envelope.
	call, back := native(&agentevents.ToolCalled{CallID: "c", ToolID: "x"}), native(&agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, Duration: agentevents.Some(time.Second)})
	call.ID, call.TraceID, call.Step, back.Step = "e1", "t", agentevents.Some(7), agentevents.Some(8)
	require.NoError(t, call.SetExtra("vendor", `1`))
	e = NewEncoder(EncoderOptions{})
	encode(t, e, call, back)
	require.Equal(t, []string{"dropped /id", "altered ", "dropped /payload/callId", "dropped /step", "dropped /timestamp", "dropped /traceId", "dropped /vendor", "dropped /payload/callId"}, pointers(e))
	require.Equal(t, agentevents.KindToolCalled, e.Losses()[1].Kind)
	call.ID, call.TraceID, call.Step, call.Payload = "", "", back.Step, &agentevents.ToolCalled{CallID: "c", ToolID: "y", Arguments: "1", ArgumentsSummary: "s"}
	require.NoError(t, call.SetExtra("vendor", ""))
	require.NoError(t, call.SetExtra("kahn", `{"x":1}`))
	p := *back.Payload.(*agentevents.ToolReturned)
	p.Arguments, p.ArgumentsSummary = "2", "z"
	back.Payload, e = &p, NewEncoder(EncoderOptions{})
	encode(t, e, call, back)
	require.Equal(t, []string{"altered ", "dropped /kahn/x", "dropped /payload/arguments", "dropped /payload/callId", "dropped /payload/toolId",
		"dropped /timestamp", "dropped /payload/arguments", "dropped /payload/argumentsSummary", "dropped /payload/callId"}, pointers(e))
	old := native(&agentevents.AgentStarted{Task: "t"})
	old.SchemaVersion, old.Time = "9.9", time.Time{}
	e = NewEncoder(EncoderOptions{})
	encode(t, e, old)
	require.Equal(t, []string{"altered /schemaVersion", "made up /timestamp"}, pointers(e))
}

// Members of a foreign payload that a reader takes for members of the envelope.
func TestUnknownEventsFromElsewhere(t *testing.T) {
	ev := native(&agentevents.Unknown{Type: "x.foo", Raw: `{"agent_id":"Z","step":4,"ts":1,"x":1}`})
	e := NewEncoder(EncoderOptions{})
	back := decode(t, Options{Strict: true}, encode(t, e, ev))[0]
	require.Equal(t, agentevents.JSON(`{"x":1}`), back.Payload.(*agentevents.Unknown).Raw)
	require.Equal(t, "a", back.AgentID)
	require.Equal(t, agentevents.Some(4), back.Step)
	require.Equal(t, []string{"dropped /payload/agent_id", "dropped /payload/step", "dropped /payload/ts", "made up /step"}, pointers(e))

	ev.AgentID, ev.Step, e = "", agentevents.Some(3), NewEncoder(EncoderOptions{})
	back = decode(t, Options{Strict: true}, encode(t, e, ev))[0]
	require.Equal(t, NormalizeAgentID("Z"), back.AgentID)
	require.Equal(t, agentevents.Some(3), back.Step)
	require.Equal(t, []string{"made up /agentId", "dropped /payload/agent_id", "dropped /payload/step", "dropped /payload/ts"}, pointers(e))
}

// The encoder writes nothing that a strict decoder refuses, except original lines
// that it would have refused before.
func TestRefused(t *testing.T) {
	step := func(n int, p agentevents.Payload) agentevents.Event {
		ev := native(p)
		ev.Step = agentevents.Some(n)
		return ev
	}
	tool := &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true}
	slow := *tool
	slow.Duration = agentevents.Some(-time.Second)
	move := &agentevents.AgentTransition{From: agentevents.StatusThinking, To: agentevents.StatusFailed}
	ended := func(change func(p *agentevents.AgentEnded)) agentevents.Event {
		p := &agentevents.AgentEnded{Outcome: agentevents.OutcomePartial, Duration: agentevents.Some(time.Second)}
		change(p)
		return native(p)
	}
	for _, c := range []struct {
		ev      agentevents.Event
		rule    agentevents.Rule
		pointer string
	}{
		{step(-1, move), RuleRange, "/step"},
		{step(-1, tool), RuleRange, "/step"},
		{step(-1, &agentevents.Unknown{Type: "x", Raw: `{}`}), RuleRange, "/step"},
		{step(0, &slow), RuleRange, "/payload/durationMs"},
		{native(&agentevents.AgentTransition{From: "warming_up", To: agentevents.StatusFailed}), RuleEnum, "/payload/from"},
		{native(&agentevents.AgentTransition{From: agentevents.StatusThinking}), RuleEnum, "/payload/to"},
		{native(&agentevents.AuditChecked{CheckpointID: "c", Result: "skipped"}), RuleEnum, "/payload/result"},
		{native(&agentevents.AuditChecked{CheckpointID: "c", Result: agentevents.AuditPass, Duration: -1}), RuleRange, "/payload/durationMs"},
		{ended(func(p *agentevents.AgentEnded) { p.Outcome = "unknown" }), RuleEnum, "/payload/outcome"},
		{ended(func(p *agentevents.AgentEnded) { p.ConvergenceScore = agentevents.Some(1.5) }), RuleRange, "/payload/convergenceScore"},
		{ended(func(p *agentevents.AgentEnded) { p.ConvergenceScore = agentevents.Some(math.NaN()) }), RuleRange, "/payload/convergenceScore"},
		{ended(func(p *agentevents.AgentEnded) { p.Duration.V = -1 }), RuleRange, "/payload/durationMs"},
		{ended(func(p *agentevents.AgentEnded) { p.Totals = agentevents.Some(agentevents.Totals{ToolCalls: -3}) }), RuleRange, "/payload/totals/toolCalls"},
	} {
		e := NewEncoder(EncoderOptions{})
		out, err := e.Append([]byte("x"), c.ev)
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, c.rule, rule.Rule)
		require.Equal(t, c.pointer, rule.Pointer)
		require.Equal(t, "x", string(out))
		require.Empty(t, e.Losses())
	}

	for _, from := range statuses {
		encode(t, NewEncoder(EncoderOptions{}), step(0, &agentevents.AgentTransition{From: agentevents.AgentStatus(from), To: agentevents.StatusFailed}))
	}

	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":`
	for _, line := range []string{
		base + `"agent_transition","agent_id":"a","step":-5,"from":"warming_up","to":"failed"}`,
		base + `"audit_checkpoint","agent_id":"a","checkpoint_id":"c","result":"skipped","duration_s":-1}`,
		base + `"agent_run_end","agent_id":"a","outcome":"partial","total_steps":-3}`,
	} {
		ev, e := verbatim(t, line), NewEncoder(EncoderOptions{})
		require.Equal(t, line+"\n", encode(t, e, ev))
		require.Empty(t, e.Losses())
		end := encode(t, e, native(&agentevents.AgentEnded{Outcome: agentevents.OutcomePartial}))
		decode(t, Options{Strict: true}, end) // the encoder did not count with the broken original
		ev.Time = ev.Time.Add(time.Second)
		_, err := NewEncoder(EncoderOptions{}).Append(nil, ev)
		var rule *agentevents.RuleError
		require.ErrorAs(t, err, &rule)
	}
}

// An event of an unknown type never fails, whatever its members are.
func TestUnknownEventsAreTolerant(t *testing.T) {
	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"dreamed"`
	for members, want := range map[string]agentevents.Event{
		`,"agent_id":null`:          {Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"agent_id":null}`}},
		`,"agent_id":""`:            {Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"agent_id":""}`}},
		`,"agent_id":{"a":1}`:       {Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"agent_id":{"a":1}}`}},
		`,"agent_id":"a","step":-1`: {AgentID: "a", Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"step":-1}`}},
		`,"step":"a"`:               {Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"step":"a"}`}},
		`,"step":1.5`:               {Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{"step":1.5}`}},
		`,"step":3`:                 {Step: agentevents.Some(3), Payload: &agentevents.Unknown{Type: "dreamed", Raw: `{}`}},
	} {
		line := base + members + "}\n"
		ev := decode(t, Options{}, line)[0]
		require.Equal(t, want.AgentID, ev.AgentID)
		require.Equal(t, want.Step, ev.Step)
		require.Equal(t, want.Payload, ev.Payload)
		e := NewEncoder(EncoderOptions{})
		require.Equal(t, line, encode(t, e, ev))
		require.Empty(t, e.Losses(), "a reader of the line derives the same id")
	}
	for _, twice := range []string{`,"step":"a","step":1`, `,"step":1,"step":"a"`, `,"step":"a","step":"a"`} {
		_, err := NewDecoder(Options{}).Decode(nil, []byte(base+twice+"}"))
		require.ErrorContains(t, err, "duplicate")
	}
}

func TestNumbersAndTimes(t *testing.T) {
	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"tool_invocation","agent_id":"a","step":1.0,"tool_name":"x","duration_s":9007199254.740993,"ok":true}`
	ev := decode(t, Options{Strict: true}, base)[0]
	require.Equal(t, agentevents.Some(1), ev.Step)
	require.Equal(t, agentevents.Some(9007199254740993*time.Microsecond), ev.Payload.(*agentevents.ToolReturned).Duration)
	require.Contains(t, encode(t, NewEncoder(EncoderOptions{}), ev), `"duration_s":9007199254.740993,`)

	var rule *agentevents.RuleError
	for _, ts := range []string{"2026-05-05T11:00:00.000+02:00", "2026-05-05T09:00:00Z", "2026-05-05T09:00:00.000000Z"} {
		line := strings.Replace(base, "2026-05-05T09:00:00.000Z", ts, 1)
		_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line))
		require.ErrorAs(t, err, &rule)
		require.Equal(t, RuleTime, rule.Rule)
		require.Equal(t, ev.Time, decode(t, Options{}, line)[0].Time)
	}

	// Only null stands for an audit of the run.
	const audit = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"audit_checkpoint","agent_id":"","checkpoint_id":"c","result":"pass","duration_s":0.0}`
	_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(audit))
	require.ErrorAs(t, err, &rule)
	require.Equal(t, RuleID, rule.Rule)
	e := NewEncoder(EncoderOptions{})
	require.Equal(t, strings.Replace(audit, `""`, "null", 1)+"\n", encode(t, e, decode(t, Options{}, audit)...))
	require.Contains(t, pointers(e), "dropped /kahn/agent_id")
}
