package kahn

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/eventtest"
)

// The document's own example.
const example = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"agent-coder-1","event":"agent_run_start","agent_id":"coder","task":"Add /v2/health"}
{"ts":"2026-05-05T09:00:01.200Z","run_id":"agent-coder-1","event":"agent_transition","agent_id":"coder","step":0,"from":"thinking","to":"tool_call","reason":"tool_call:Read"}
{"ts":"2026-05-05T09:00:01.250Z","run_id":"agent-coder-1","event":"tool_invocation","agent_id":"coder","step":0,"tool_name":"Read","duration_s":0.04,"ok":true}
{"ts":"2026-05-05T09:01:05.000Z","run_id":"agent-coder-1","event":"agent_run_end","agent_id":"coder","outcome":"converged","total_steps":12,"total_tool_calls":7,"total_audit_checkpoints":2,"audits_passed":2,"audits_failed":0,"total_duration_s":65.0,"convergence_score":1.0}
`

// One line of each variant, with all its members.
const full = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"Run_1","event":"agent_run_start","agent_id":"claude-subagent:explore","task":"Say \"hi\"","model":"m-1"}
{"ts":"2026-05-05T09:00:01.000Z","run_id":"Run_1","event":"agent_transition","agent_id":"claude-subagent:explore","step":3,"from":"thinking","to":"failed","reason":"x"}
{"ts":"2026-05-05T09:00:02.000Z","run_id":"Run_1","event":"tool_invocation","agent_id":"claude-subagent:explore","step":3,"tool_name":"Bash","duration_s":1.000000001,"ok":false,"input_summary":"ls","output_summary":"größe","error":"exit 1"}
{"ts":"2026-05-05T09:00:03.000Z","run_id":"Run_1","event":"audit_checkpoint","agent_id":null,"checkpoint_id":"audit:test-coverage.unit","result":"warn","duration_s":0.0,"evidence":{"n":[1,2]}}
{"ts":"2026-05-05T09:00:03.500Z","run_id":"Run_1","event":"audit_checkpoint","agent_id":"claude-subagent:explore","checkpoint_id":"a","result":"pass","duration_s":0.25}
{"ts":"2026-05-05T09:00:04.000Z","run_id":"Run_1","event":"agent_run_end","agent_id":"claude-subagent:explore","outcome":"escaped","total_steps":4,"total_tool_calls":1,"total_audit_checkpoints":1,"audits_passed":1,"audits_failed":0,"total_duration_s":4.0,"convergence_score":0.5}
`

func decode(t testing.TB, o Options, log string) []agentevents.Event {
	t.Helper()
	return eventtest.ReadLog(t, strings.NewReader(log), agentevents.ReaderOptions{Decoder: NewDecoder(o)}).Events()
}

func encode(t testing.TB, e *Encoder, events ...agentevents.Event) string {
	t.Helper()
	var out []byte
	var err error
	for _, ev := range events {
		out, err = e.Append(out, ev)
		require.NoError(t, err)
	}
	out, err = e.End(out)
	require.NoError(t, err)
	return string(out)
}

func TestTheDocumentsExample(t *testing.T) {
	for _, log := range []string{example, full} {
		events := decode(t, Options{Strict: true}, log)
		require.Equal(t, log, encode(t, NewEncoder(EncoderOptions{}), events...))
	}
	events := decode(t, Options{Strict: true}, example)
	require.Len(t, events, 4)
	for i, ev := range events {
		require.EqualValues(t, i, ev.Sequence)
		require.Equal(t, "agent-coder-1", ev.RunID)
		require.Equal(t, "coder", ev.AgentID)
		require.Equal(t, agentevents.SchemaVersion, ev.SchemaVersion)
	}
	require.Equal(t, &agentevents.AgentStarted{Task: "Add /v2/health"}, events[0].Payload)
	require.Equal(t, &agentevents.AgentTransition{From: agentevents.StatusThinking, To: agentevents.StatusToolCall, Reason: "tool_call:Read"}, events[1].Payload)
	require.Equal(t, agentevents.Some(0), events[1].Step)
	call := events[2].Payload.(*agentevents.ToolReturned)
	require.True(t, call.OneEvent)
	require.Equal(t, 40*time.Millisecond, call.Duration.V)
	require.Equal(t, &agentevents.AgentEnded{
		Outcome: agentevents.OutcomeConverged, Duration: agentevents.Some(65 * time.Second), ConvergenceScore: agentevents.Some(1.0),
		Totals: agentevents.Some(agentevents.Totals{Steps: 12, ToolCalls: 7, AuditCheckpoints: 2, AuditsPassed: 2}),
	}, events[3].Payload)
}

// Payloads built from Go structs give the example's lines too.
func TestTheDocumentsExampleFromStructs(t *testing.T) {
	at := func(ms int) time.Time {
		return time.Date(2026, 5, 5, 9, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	}
	event := func(ms int, p agentevents.Payload) agentevents.Event {
		return agentevents.Event{Time: at(ms), RunID: "agent-coder-1", AgentID: "coder", Payload: p}
	}
	step := func(ev agentevents.Event) agentevents.Event { ev.Step = agentevents.Some(0); return ev }
	e := NewEncoder(EncoderOptions{})
	require.Equal(t, example, encode(t, e,
		event(0, &agentevents.AgentStarted{Task: "Add /v2/health"}),
		step(event(1200, &agentevents.AgentTransition{From: agentevents.StatusThinking, To: agentevents.StatusToolCall, Reason: "tool_call:Read"})),
		step(event(1205, &agentevents.ToolCalled{CallID: "c", ToolID: "Read"})),
		step(event(1250, &agentevents.ToolReturned{CallID: "c", ToolID: "Read", Status: agentevents.ToolStatusOK, Duration: agentevents.Some(40 * time.Millisecond)})),
		event(65000, &agentevents.AgentEnded{
			Outcome: agentevents.OutcomeConverged, Duration: agentevents.Some(65 * time.Second), ConvergenceScore: agentevents.Some(1.0),
			Totals: agentevents.Some(agentevents.Totals{Steps: 12, ToolCalls: 7, AuditCheckpoints: 2, AuditsPassed: 2}),
		}),
	))
	for _, l := range e.Losses() {
		require.Contains(t, []string{"/id", "/sequence", "/timestamp", "/schemaVersion", "", "/payload/callId"}, l.Pointer)
	}
}

func TestUnknownEventsAndMembersSurvive(t *testing.T) {
	const log = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_transition","agent_id":"a","step":0,"from":"thinking","to":"failed","task":"not a member of this variant","x":{"a":[1.50]}}
{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_dreamed","agent_id":"a","step":0,"of":"sheep","n":1.50}
{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent.text"}
`
	events := decode(t, Options{}, log)
	require.Equal(t, agentevents.JSON(`{"task":"not a member of this variant","x":{"a":[1.50]}}`), events[0].Extra("kahn"))
	require.Equal(t, &agentevents.Unknown{Type: "agent_dreamed", Raw: `{"of":"sheep","n":1.50}`}, events[1].Payload)
	require.Equal(t, agentevents.Kind("kahn:agent.text"), events[2].Kind(), "the name is taken")
	require.Equal(t, log, encode(t, NewEncoder(EncoderOptions{}), events...))

	// The same holds through a native log.
	var native []byte
	for _, ev := range events {
		var err error
		native, err = ev.AppendJSON(native)
		require.NoError(t, err)
		native = append(native, '\n')
	}
	back := eventtest.ReadLog(t, bytes.NewReader(native), agentevents.ReaderOptions{}).Events()
	require.Equal(t, log, encode(t, NewEncoder(EncoderOptions{}), back...))
}

func TestVerbatim(t *testing.T) {
	const line = `{ "event":"agent_transition","x":1, "ts":"2026-05-05T09:00:00Z","agent_id":"a","step":0,"run_id":"r","to":"failed","from":"thinking"}`
	for ev, err := range agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
		require.NoError(t, err)
		require.Equal(t, line+"\n", encode(t, NewEncoder(EncoderOptions{}), ev))
		changed := ev
		changed.AgentID = "b"
		require.Equal(t, `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"agent_transition","agent_id":"b","step":0,"from":"thinking","to":"failed","x":1}`+"\n",
			encode(t, NewEncoder(EncoderOptions{}), changed))
	}
}

func TestBadLines(t *testing.T) {
	const base = `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":`
	for _, c := range []struct{ name, line, pointer, want string }{
		{"not an object", `7`, "", "expected an object"},
		{"torn", base + `"agent_run_`, "/event", "the end of a string"},
		{"no event", `{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","task":"x"}`, "", `"event" is missing`},
		{"empty event", base + `""}`, "", `"event" is missing`},
		{"null agent", base + `"agent_transition","agent_id":null}`, "/agent_id", "null"},
		{"step is text", base + `"agent_transition","agent_id":"a","step":"0"}`, "/step", "expected an integer"},
		{"step overflows", base + `"agent_transition","agent_id":"a","step":9223372036854775808}`, "/step", "out of range"},
		{"ok is a number", base + `"tool_invocation","ok":1}`, "/ok", "true or false"},
		{"duration overflows", base + `"tool_invocation","duration_s":1e30}`, "/duration_s", "out of range"},
		{"evidence is a list", base + `"audit_checkpoint","evidence":[]}`, "/evidence", "an object"},
		{"time", `{"ts":[1,"run_id":"r","event":"agent_run_start"}`, "/ts", "',' or ']'"},
		{"member twice", base + `"agent_run_start","task":"","task":""}`, "/task", "duplicate"},
		{"unknown member twice", base + `"agent_run_start","x":1,"x":2}`, "/x", "duplicate"},
		{"invalid UTF-8", base + "\"agent_run_start\",\"task\":\"\xff\"}", "/task", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range agentevents.NewReader(strings.NewReader(c.line+"\n"+base+`"agent_run_start","agent_id":"a","task":"good"}`), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}).All() {
				var le *agentevents.LineError
				require.ErrorAs(t, err, &le)
				require.Equal(t, c.pointer, le.Pointer)
				require.ErrorContains(t, err, c.want)
				return
			}
			t.Fatal("no error")
		})
	}
}

func TestStrictRules(t *testing.T) {
	line := func(event, members string) string {
		return fmt.Sprintf(`{"ts":"2026-05-05T09:00:00.000Z","run_id":"r","event":"%s",%s}`, event, members)
	}
	long := strings.Repeat("é", MaxSummary)
	const end = `"agent_id":"a","outcome":"partial","total_steps":0,"total_tool_calls":0,"total_audit_checkpoints":0,"audits_passed":0,"audits_failed":0,"total_duration_s":0`
	for _, c := range []struct {
		rule             agentevents.Rule
		pointer          string
		event, bad, good string
	}{
		{RuleRequired, "/task", "agent_run_start", `"agent_id":"a"`, `"agent_id":"a","task":""`},
		{RuleRequired, "/agent_id", "audit_checkpoint", `"checkpoint_id":"c","result":"pass","duration_s":0`, `"agent_id":null,"checkpoint_id":"c","result":"pass","duration_s":0`},
		{RuleID, "/agent_id", "agent_run_start", `"agent_id":"Coder","task":""`, `"agent_id":"0:-","task":""`},
		{RuleID, "/agent_id", "agent_run_start", `"agent_id":"` + strings.Repeat("a", 65) + `","task":""`, `"agent_id":"` + strings.Repeat("a", 64) + `","task":""`},
		{RuleID, "/agent_id", "agent_run_start", `"agent_id":"a_b","task":""`, `"agent_id":"a-b","task":""`},
		{RuleID, "/checkpoint_id", "audit_checkpoint", `"agent_id":"a","checkpoint_id":".c","result":"pass","duration_s":0`, `"agent_id":"a","checkpoint_id":"c.","result":"pass","duration_s":0`},
		{RuleEnum, "/result", "audit_checkpoint", `"agent_id":"a","checkpoint_id":"c","result":"PASS","duration_s":0`, `"agent_id":"a","checkpoint_id":"c","result":"warn","duration_s":0`},
		{RuleEnum, "/to", "agent_transition", `"agent_id":"a","step":0,"from":"thinking","to":"x"`, `"agent_id":"a","step":0,"from":"thinking","to":"failed"`},
		{RuleRange, "/step", "agent_transition", `"agent_id":"a","step":-1,"from":"thinking","to":"failed"`, `"agent_id":"a","step":0,"from":"thinking","to":"failed"`},
		{RuleRange, "/duration_s", "tool_invocation", `"agent_id":"a","step":0,"tool_name":"x","duration_s":-0.1,"ok":true`, `"agent_id":"a","step":0,"tool_name":"x","duration_s":0,"ok":true`},
		{RuleSummary, "/output_summary", "tool_invocation", `"agent_id":"a","step":0,"tool_name":"x","duration_s":0,"ok":true,"output_summary":"` + long + `é"`,
			`"agent_id":"a","step":0,"tool_name":"x","duration_s":0,"ok":true,"output_summary":"` + long + `"`},
		{RuleEnum, "/outcome", "agent_run_end", strings.Replace(end, "partial", "unknown", 1), end},
		{RuleRange, "/total_steps", "agent_run_end", strings.Replace(end, `"total_steps":0`, `"total_steps":-1`, 1), end},
		{RuleRange, "/convergence_score", "agent_run_end", end + `,"convergence_score":1.01`, end + `,"convergence_score":0`},
	} {
		t.Run(string(c.rule)+c.pointer, func(t *testing.T) {
			_, err := NewDecoder(Options{Strict: true}).Decode(nil, []byte(line(c.event, c.bad)))
			var rule *agentevents.RuleError
			require.ErrorAs(t, err, &rule)
			require.Equal(t, c.rule, rule.Rule)
			require.Equal(t, c.pointer, rule.Pointer)
			_, err = NewDecoder(Options{Strict: true}).Decode(nil, []byte(line(c.event, c.good)))
			require.NoError(t, err)
			events, err := NewDecoder(Options{}).Decode(nil, []byte(line(c.event, c.bad)))
			require.NoError(t, err, "not strict: read as far as it can be")
			require.Len(t, events, 1)
		})
	}
}

// The error of a refused line has the number that its event would have got. The
// next event gets that number.
func TestRefusedLinesHaveANumber(t *testing.T) {
	line := func(run, task string) []byte {
		return []byte(`{"ts":"2026-05-05T09:00:00.000Z","run_id":"` + run + `","event":"agent_run_start","agent_id":"a"` + task + `}`)
	}
	d := NewDecoder(Options{Strict: true})
	for i, want := range []uint64{0, 1, 0, 2} {
		run := "r"
		if i == 2 {
			run = "other"
		}
		for range 2 {
			var rule *agentevents.RuleError
			_, err := d.Decode(nil, line(run, ""))
			require.ErrorAs(t, err, &rule)
			require.Equal(t, want, rule.Sequence)
		}
		events, err := d.Decode(nil, line(run, `,"task":"t"`))
		require.NoError(t, err)
		require.Equal(t, want, events[0].Sequence)
	}
}

func TestNormalize(t *testing.T) {
	require.Equal(t, "coder", NormalizeAgentID("coder"))
	require.Equal(t, "audit:test.unit", NormalizeCheckpointID("audit:test.unit"))
	require.Equal(t, "az-z0:9-", NormalizeAgentID("@AZ[z0:9")[:8], "letters are made small")
	seen := map[string]string{}
	for _, id := range []string{
		"", "Coder", "coder.", "coder-", "CODER", "vendor.acme.pack.agent", "vendor-acme-pack-agent", "größe", "grösse", strings.Repeat("a", 64), strings.Repeat("a", 65),
		strings.Repeat("a", 66), "日本", "日本語", "-", ":", "a b", "a_b", "\xff", "a\x00b",
	} {
		for _, p := range []*pattern{&agentPattern, &checkpointPattern} {
			n := string(p.append(nil, id))
			require.True(t, p.matches(n), "%q from %q", n, id)
			require.Equal(t, n, string(p.append(nil, n)), "it is normal")
			key := p.syntax + n
			require.NotContains(t, seen, key, "%q and %q", id, seen[key])
			seen[key] = id
		}
	}
}

func TestLongSummariesAreCut(t *testing.T) {
	e := NewEncoder(EncoderOptions{})
	line := encode(t, e, agentevents.Event{
		RunID: "r", AgentID: "a", Step: agentevents.Some(1),
		Payload: &agentevents.ToolReturned{CallID: "c", ToolID: "x", Status: agentevents.ToolStatusOK, OneEvent: true, ResultSummary: strings.Repeat("é", MaxSummary+1)},
	})
	events := decode(t, Options{Strict: true}, line)
	require.Equal(t, strings.Repeat("é", MaxSummary), events[0].Payload.(*agentevents.ToolReturned).ResultSummary)
	require.Contains(t, e.Losses(), dialect.Loss{
		Kind: agentevents.KindToolReturned, Pointer: "/payload/resultSummary", What: dialect.Altered, Detail: "cut to 2048 characters", Count: 1, RunID: "r",
	})
}

func TestFold(t *testing.T) {
	folded, err := agentevents.FoldLog(agentevents.NewReader(strings.NewReader(full), agentevents.ReaderOptions{Decoder: NewDecoder(Options{})}), agentevents.FoldOptions{})
	require.NoError(t, err)
	snapshots := slices.Collect(folded.Drain())
	require.Len(t, snapshots, 1)
	a := snapshots[0].Agents["claude-subagent:explore"]
	require.Equal(t, agentevents.OutcomeEscaped, a.Outcome)
	require.Equal(t, 1, a.ToolCalls)
	require.Len(t, snapshots[0].Audits, 2)
	require.Empty(t, snapshots[0].Audits[0].AgentID, "of the run")
}

func FuzzDecode(f *testing.F) {
	for line := range strings.Lines(example + full) {
		f.Add([]byte(strings.TrimSuffix(line, "\n")))
	}
	f.Add([]byte(`{"event":"x","ts":"2026-05-05T09:00:00Z","agent_id":"","step":1,"step2":null}`))
	f.Add([]byte(`{"event":"audit_checkpoint","agent_id":""}`))
	for _, agent := range []string{`{}`, `null`, `7`, `["a"]`} { // none is the agent of a vendor's line
		f.Add([]byte(`{"event":"0","agent_id":` + agent + `}`))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, strict := range []bool{false, true} {
			events, err := NewDecoder(Options{Strict: strict}).Decode(nil, line)
			if err != nil {
				require.Empty(t, events)
				continue
			}
			require.Len(t, events, 1)
			for ev, err := range agentevents.NewReader(bytes.NewReader(line), agentevents.ReaderOptions{Decoder: NewDecoder(Options{}), Verbatim: true}).All() {
				if err != nil {
					break // a line may become several
				}
				e := NewEncoder(EncoderOptions{})
				text := encode(t, e, ev)
				if _, audit := ev.Payload.(*agentevents.AuditChecked); audit && strings.Contains(string(ev.Extra(string(Name))), `"agent_id"`) {
					break // null stands for an agent that is not a text
				}
				require.Equal(t, ev.Origin()+"\n", text)
				require.Empty(t, e.Losses())
				break
			}
			text, err := NewEncoder(EncoderOptions{}).Append(nil, events[0])
			if err != nil {
				var rule *agentevents.RuleError
				require.ErrorAs(t, err, &rule)
				require.False(t, strict, "events of a strict decoder can be written")
				continue
			}
			_, err = NewDecoder(Options{Strict: true}).Decode(nil, text[:len(text)-1])
			if rule := (*agentevents.RuleError)(nil); errors.As(err, &rule) && rule.Rule == RuleType {
				err = nil // unknown events are written as they are
			}
			if !strict && !agentevents.TimeKnown(events[0].Time) {
				err = nil // and so is a text that is not a time
			}
			require.NoError(t, err, "a strict decoder reads the written lines: %s", text)
			again, err := NewDecoder(Options{}).Decode(nil, text[:len(text)-1])
			require.NoError(t, err, "%s", text)
			text2, err := NewEncoder(EncoderOptions{}).Append(nil, again[0])
			require.NoError(t, err)
			require.Equal(t, string(text), string(text2))
		}
	})
}
