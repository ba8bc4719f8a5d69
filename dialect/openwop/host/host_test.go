package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// emitting returns a run of an emitter with the host's rules, and the events that it records. The
// tests are about refusals.
func emitting(t *testing.T, h *Host, mode agentevents.Mode) (*agentevents.Run, *eventtest.Recorder) {
	t.Helper()
	em, log := eventtest.RecordWith(t, agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleStrict, Guard: h.Guard, Follow: h.Follow, Mode: mode,
		OnError: func(err error) { t.Errorf("reported: %v", err) }, OnViolation: func(*agentevents.RuleError) {},
	})
	run, err := em.Run("r")
	require.NoError(t, err)
	return run, log
}

func TestCapabilitiesGateTheirEvents(t *testing.T) {
	on := Capabilities{ReasoningEvents: true, ToolEvents: true, HandoffEvents: true, DecisionEvents: true}
	for name, c := range map[string]struct {
		off    func(*Capabilities)
		events []agentevents.Payload
	}{
		"reasoningEvents": {func(c *Capabilities) { c.ReasoningEvents = false }, []agentevents.Payload{
			&agentevents.AgentReasoned{Reasoning: "x"}, &agentevents.AgentReasoningDelta{Delta: "x"}}},
		"toolEvents": {func(c *Capabilities) { c.ToolEvents = false }, []agentevents.Payload{
			&agentevents.ToolCalled{CallID: "c", ToolID: "t"}, &agentevents.ToolReturned{CallID: "c", ToolID: "t", Status: agentevents.ToolStatusOK}}},
		"handoffEvents":       {func(c *Capabilities) { c.HandoffEvents = false }, []agentevents.Payload{&agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "a"}, To: agentevents.AgentRef{AgentID: "b"}}}},
		"reasoning.streaming": {func(c *Capabilities) { c.Streaming = agentevents.Some(false) }, []agentevents.Payload{&agentevents.AgentReasoningDelta{Delta: "x"}}},
		"decisionEvents":      {func(c *Capabilities) { c.DecisionEvents = false }, []agentevents.Payload{&agentevents.AgentDecided{Decision: `1`}}},
	} {
		t.Run(name, func(t *testing.T) {
			off := on
			c.off(&off)
			refusing, log := emitting(t, &Host{Capabilities: &off}, agentevents.ModeEnforce)
			allowing, _ := emitting(t, &Host{Capabilities: &on}, agentevents.ModeEnforce)
			silent, _ := emitting(t, &Host{}, agentevents.ModeEnforce)
			for _, p := range c.events {
				var v *agentevents.RuleError
				if ret, returned := p.(*agentevents.ToolReturned); returned {
					one := *ret
					one.OneEvent = true
					p = &one
				}
				require.ErrorAs(t, refusing.With(inNode).Agent("a").Emit(t.Context(), p), &v)
				require.Equal(t, RuleCapability, v.Rule)
				require.Contains(t, v.Subject, name)
				require.NoError(t, allowing.With(inNode).Agent("a").Emit(t.Context(), p))
				require.NoError(t, silent.With(inNode).Agent("a").Emit(t.Context(), p), "nothing declared, nothing gated")
				require.False(t, off.Allows(p))
				require.True(t, on.Allows(p))
				require.False(t, (*Capabilities)(nil).Allows(p), "a client waits for nothing that is not declared")
			}
			require.Empty(t, log.Events())
			require.NoError(t, refusing.With(inNode).Agent("a").Emit(t.Context(), &agentevents.TextCompleted{Text: "x"}), "needs no capability")
		})
	}
}

// An Unknown with a type of the vocabulary does not evade the rules: its line is the line of the
// event.
func TestUnknownTypesAreGated(t *testing.T) {
	run, log := emitting(t, &Host{Capabilities: &Capabilities{}}, agentevents.ModeEnforce)
	for typ, capability := range map[agentevents.Kind]string{
		"agent.tool-called": "toolEvents", "agent.tool-returned": "toolEvents", "openwop:agent.toolCalled": "toolEvents", "openwop:agent.toolReturned": "toolEvents",
		"agent.reasoning-delta": "reasoningEvents", "openwop:agent.reasoned": "reasoningEvents", "openwop:agent.handoff": "handoffEvents", "openwop:agent.decided": "decisionEvents",
	} {
		var v *agentevents.RuleError
		require.ErrorAs(t, run.With(inNode).Agent("a").Emit(t.Context(), &agentevents.Unknown{Type: typ, Raw: `{}`}), &v, typ)
		require.Equal(t, RuleCapability, v.Rule)
		require.Contains(t, v.Subject, capability)
	}
	require.Empty(t, log.Events())
	require.NoError(t, run.With(inNode).Agent("a").Emit(t.Context(), &agentevents.Unknown{Type: "agent.verified", Raw: `{}`}), "needs no capability")

	run, log = emitting(t, &Host{Agents: map[string]Manifest{"a": {Tools: []string{"fs:read"}}}}, agentevents.ModeEnforce)
	for _, typ := range []agentevents.Kind{"agent.tool-called", "openwop:agent.toolCalled", "openwop:agent.toolReturned"} {
		for _, raw := range []agentevents.JSON{`{"toolName":"rm"}`, `{"toolId":"rm"}`, `{"toolId":"fs:read","toolName":"rm"}`, `{"agentId":"b","toolName":"rm"}`} {
			var v *agentevents.RuleError
			require.ErrorAs(t, run.With(inNode).Agent("a").Emit(t.Context(), &agentevents.Unknown{Type: typ, Raw: raw}), &v, "%s %s", typ, raw)
			require.Equal(t, RuleToolAllowed, v.Rule)
		}
		require.Error(t, run.With(inNode).Agent("b").Emit(t.Context(), &agentevents.Unknown{Type: typ, Raw: `{"agentId":"a","toolName":"rm"}`}))
	}
	require.Empty(t, log.Events())
	for typ, raw := range map[agentevents.Kind]agentevents.JSON{
		"agent.tool-called": `{"toolName":"fs:read"}`, "openwop:agent.toolReturned": `{"toolName":"rm","status":"forbidden"}`, "tool.session.opened": `{"toolId":"rm"}`,
	} {
		require.NoError(t, run.With(inNode).Agent("a").Emit(t.Context(), &agentevents.Unknown{Type: typ, Raw: raw}), typ)
	}
}

func TestToolsOutsideTheAllowlistAreRefused(t *testing.T) {
	h := &Host{
		Agents: map[string]Manifest{
			"coder":  {HarnessRole: "dev", Tools: []string{"fs:read", "fs:write", "net:get"}},
			"none":   {Tools: []string{}},
			"tester": {HarnessRole: "dev"},
		},
		FilterTools: func(role string) ([]string, bool) { return []string{"fs:read", "fs:write", "sh:run"}, role == "dev" },
	}
	all := []string{"fs:read", "net:get", "sh:run"}
	require.Equal(t, []string{"fs:read"}, h.Tools("coder", all), "in both lists")
	require.Empty(t, h.Tools("none", all))
	require.Equal(t, []string{"fs:read", "sh:run"}, h.Tools("tester", all))
	require.Equal(t, all, h.Tools("stranger", all), "nothing declared, nothing gated")

	run, log := emitting(t, h, agentevents.ModeEnforce)
	_, err := run.With(inNode).Agent("coder").Call(t.Context(), &agentevents.ToolCalled{ToolID: "net:get", Arguments: `{}`})
	var v *agentevents.RuleError
	require.ErrorAs(t, err, &v)
	require.Equal(t, RuleToolAllowed, v.Rule)
	require.Empty(t, log.Events())
	_, err = run.With(inNode).Agent("coder").Call(t.Context(), &agentevents.ToolCalled{ToolID: "fs:read", Arguments: `{}`})
	require.NoError(t, err)
	// A call without an agent is the system's.
	_, err = run.Agent(openwop.CoreSystem).Call(t.Context(), &agentevents.ToolCalled{ToolID: "net:get", Arguments: `{}`})
	require.NoError(t, err)
}

func TestThresholdsResolveRunAgentDefault(t *testing.T) {
	h := &Host{Agents: map[string]Manifest{"a": {Threshold: agentevents.Some(0.5)}, "zero": {Threshold: agentevents.Some(0.0)}}}
	require.Equal(t, 0.5, h.ThresholdOf("a"))
	require.Equal(t, 0.0, h.ThresholdOf("zero"))
	require.Equal(t, 0.7, h.ThresholdOf("other"))
	h.Threshold = agentevents.Some(0.9)
	require.Equal(t, 0.9, h.ThresholdOf("a"))
	require.Equal(t, 0.9, h.ThresholdOf("other"))
	require.NoError(t, h.Check())

	for _, wrong := range []float64{math.NaN(), math.Inf(1), -0.1, 70} {
		h.Threshold = agentevents.Some(wrong)
		require.Equal(t, 0.5, h.ThresholdOf("a"), "as if it were absent")
		require.ErrorContains(t, h.Check(), "host: Host.Threshold is ")
		h := &Host{Agents: map[string]Manifest{"a": {}, "b": {Threshold: agentevents.Some(wrong)}}}
		require.Equal(t, openwop.DefaultThreshold, h.ThresholdOf("b"))
		require.ErrorContains(t, h.Check(), `host: Host.Agents["b"].Threshold is `)
	}
}

func TestExactlyOneActionBelowTheThreshold(t *testing.T) {
	for name, c := range map[string]struct {
		host Host
		want agentevents.Payload
		by   string
	}{
		"an orchestrator asks": {Host{Orchestrator: "boss"}, &agentevents.OrchestratorDecided{
			Decision: `{"kind":"ask-user","prompt":"The agent \"a\" decided with confidence 0.6, below 0.7. Go on?"}`}, "boss"},
		"none: a clarification": {Host{}, nil, "a"},
		"opted out": {Host{NoEscalation: true, Orchestrator: "boss"}, &agentevents.CapBreached{
			Cap: "confidence-escalation-suppressed", Limit: agentevents.Some(0.7), Observed: agentevents.Some(0.6)}, "a"},
		"the published contract": {Host{Profile: openwop.SchemaV1, Orchestrator: "boss"}, &agentevents.NodeSuspended{
			Reason: "low-confidence", Details: `{"interruptId":"ID","threshold":0.7,"observed":0.6,"decision":{"do":"it"}}`}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			run, log := emitting(t, &c.host, agentevents.ModeEnforce)
			a := run.With(agentevents.Scope{NodeID: "n"}).Agent("a")
			emit := func(confidence agentevents.Opt[float64]) {
				require.NoError(t, a.Emit(t.Context(), &agentevents.AgentDecided{Decision: `{"do":"it"}`, Confidence: confidence}))
			}
			emit(agentevents.Opt[float64]{})
			emit(agentevents.Some(0.7))
			emit(agentevents.Some(1.0))
			require.Len(t, log.Events(), 3, "no signal, or enough: no escalation")
			emit(agentevents.Some(0.6))
			require.Len(t, log.Events(), 5)
			decided, action := log.Events()[3], log.Events()[4]
			require.Equal(t, decided.ID, action.CausationID)
			require.Equal(t, decided.Sequence+1, action.Sequence)
			require.Equal(t, "n", action.NodeID)
			require.Equal(t, c.by, action.AgentID)
			if p, ok := c.want.(*agentevents.NodeSuspended); ok {
				p.Details = agentevents.JSON(strings.Replace(string(p.Details), "ID", "escalation:"+decided.ID, 1))
			}
			if c.want != nil {
				require.Equal(t, c.want, action.Payload)
			} else {
				p := action.Payload.(*agentevents.ClarificationRequested)
				require.Equal(t, "escalation:"+decided.ID, p.InterruptID)
				require.Len(t, p.Questions, 1)
			}

			// A replayed decision does not escalate; an observed one does.
			require.NoError(t, errOf(a.Record(t.Context(), agentevents.Event{Marks: agentevents.MarkReplayed, Payload: decided.Payload})))
			require.Len(t, log.Events(), 6)
			observed, log := emitting(t, &c.host, agentevents.ModeObserve)
			require.NoError(t, observed.With(inNode).Agent("a").Emit(t.Context(), decided.Payload))
			require.Len(t, log.Events(), 2)
			require.Equal(t, action.Kind(), log.Events()[1].Kind())
		})
	}
	require.Nil(t, (&Host{}).Follow(agentevents.Event{Payload: &agentevents.AgentDecided{Confidence: agentevents.Some(math.NaN())}}))
	require.Nil(t, (&Host{}).Follow(agentevents.Event{Payload: &agentevents.AgentDecided{Confidence: agentevents.Some(math.Inf(-1))}}))
	require.Nil(t, (&Host{}).Follow(agentevents.Event{}))
}

// The node.suspended of SchemaV2 has no place for the data. They stand in the
// interrupt, and both name it.
func TestEscalationUnderSchemaV2(t *testing.T) {
	for runID, tenant := range map[string]string{"acme/run-000000000001": "acme", "anon:x/run-000000000001": "anon:x", "r": "local", "two words/run-000000000001": "local"} {
		events := (&Host{Profile: openwop.SchemaV2}).Follow(agentevents.Event{
			ID: "evt-000000000000001", RunID: runID, AgentID: "host:a", Payload: &agentevents.AgentDecided{Decision: `[1]`, Confidence: agentevents.Some(0.25)},
		})
		require.Len(t, events, 2)
		asked := events[0].Payload.(*agentevents.Unknown)
		require.Equal(t, agentevents.Kind("interrupt.requested"), asked.Type)
		id := jsonwire.Text(jsonwire.Member(string(asked.Raw), "key"))
		require.True(t, openwop.ValidID(openwop.SchemaV2, openwop.InterruptID, id), id)
		require.True(t, strings.HasPrefix(id, tenant+"/"), id)
		require.JSONEq(t, `{"kind":"low-confidence","key":"`+id+`","data":{"agentId":"host:a","threshold":0.7,"observed":0.25,"decision":[1]}}`, string(asked.Raw))
		require.Equal(t, &agentevents.NodeSuspended{
			Reason: openwop.ReasonLowConfidence, Details: agentevents.JSON(`{"interruptId":"` + id + `","kind":"low-confidence"}`),
		}, events[1].Payload)
	}
}

// A decision without a node escalates like any other. The action on a late one is
// late.
func TestEscalationWithoutNodeAndLate(t *testing.T) {
	for _, p := range []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2} {
		run, log := emitting(t, &Host{Profile: p}, agentevents.ModeEnforce)
		ctx := t.Context()
		require.NoError(t, run.Emit(ctx, &agentevents.RunStarted{}))
		unsure := &agentevents.AgentDecided{Decision: `1`, Confidence: agentevents.Some(0.1)}
		require.NoError(t, errOf(run.Agent("host:a").Record(ctx, agentevents.Event{Payload: unsure})))
		require.NoError(t, errOf(run.Agent("host:b").Record(ctx, agentevents.Event{Payload: unsure})))
		f := agentevents.NewFold(agentevents.FoldOptions{})
		for _, ev := range log.Events() {
			f.Apply(ev)
		}
		if s := f.Snapshot(); p == openwop.RFC0002 {
			require.Len(t, s.Clarifications, 2)
		} else {
			require.Equal(t, map[string]string{"host:a": openwop.ReasonLowConfidence, "host:b": openwop.ReasonLowConfidence}, s.Suspended)
		}
		before := len(log.Events())
		require.NoError(t, run.Emit(ctx, &agentevents.RunCompleted{}))
		require.NoError(t, errOf(run.Record(ctx, agentevents.Event{AgentID: "host:a", Marks: agentevents.MarkLate, Payload: unsure})))
		require.Greater(t, len(log.Events()), before+2, "not refused: emitting fails the test on reported violations")
		for _, ev := range log.Events()[before+1:] {
			require.True(t, ev.Marks.Has(agentevents.MarkLate), ev.Kind())
		}
	}
	followed := (&Host{Profile: openwop.SchemaV1}).Follow(agentevents.Event{Payload: &agentevents.AgentDecided{Confidence: agentevents.Some(0.1)}})
	require.Equal(t, "unknown", followed[0].NodeID)
}

func TestDiscoveryDocument(t *testing.T) {
	c := &Capabilities{ToolEvents: true, DecisionEvents: true, MemoryBackends: []string{MemoryScratchpad, MemoryLongTerm}, TokenLimit: 256}
	text, err := json.Marshal(Discovery{Agents: c})
	require.NoError(t, err)
	require.JSONEq(t, `{"capabilities":{"agents":{"reasoningEvents":false,"toolEvents":true,"handoffEvents":false,"decisionEvents":true,
		"memoryBackends":["scratchpad","longTerm"],"reasoning":{"tokenLimit":256}}}}`, string(text))
	var d Discovery
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, Discovery{Agents: c}, d)

	// The published form: at the root, with one word for all events.
	require.NoError(t, json.Unmarshal([]byte(`{"agents":{"supported":true,"memoryBackends":["longTerm"]},"capabilities":{"agents":{}},"more":1}`), &d))
	require.Equal(t, &Capabilities{
		ReasoningEvents: true, ToolEvents: true, HandoffEvents: true, DecisionEvents: true, Streaming: agentevents.Some(false), MemoryBackends: []string{"longTerm"},
	}, d.Agents)
	for doc, allowed := range map[string][3]bool{ // reasoning, its deltas, text
		`{}`:                             {false, false, true},
		`{"capabilities":{}}`:            {false, false, true},
		`{"agents":{"supported":false}}`: {false, false, true},
		`{"agents":{"supported":true}}`:  {true, false, true},
		`{"agents":{}}`:                  {true, false, true},
		`{"agents":{"supported":true,"reasoning":{"streaming":false}}}`:                        {true, false, true},
		`{"agents":{"supported":true,"reasoning":{"streaming":true}}}`:                         {true, true, true},
		`{"capabilities":{"agents":{"reasoningEvents":true}}}`:                                 {true, true, true},
		`{"capabilities":{"agents":{"reasoningEvents":true,"reasoning":{"streaming":false}}}}`: {true, false, true},
		`{"capabilities":{"agents":{"reasoning":{"streaming":true}}}}`:                         {false, false, true},
	} {
		var d Discovery
		require.NoError(t, json.Unmarshal([]byte(doc), &d))
		require.Equal(t, allowed, [3]bool{
			d.Agents.Allows(&agentevents.AgentReasoned{}), d.Agents.Allows(&agentevents.AgentReasoningDelta{}), d.Agents.Allows(&agentevents.TextDelta{}),
		}, doc)
		if d.Agents != nil {
			text, err := json.Marshal(d)
			require.NoError(t, err)
			var again Discovery
			require.NoError(t, json.Unmarshal(text, &again))
			require.Equal(t, d, again, doc)
		}
	}
	require.NoError(t, json.Unmarshal([]byte(`{"capabilities":{}}`), &d))
	require.Nil(t, d.Agents)
	require.Error(t, json.Unmarshal([]byte(`{"agents":{"reasoning":{"tokenLimit":-1}}}`), &d))
	require.Error(t, json.Unmarshal([]byte(`{"agents":1}`), &d))
}

// errOf returns the error of two results.
func errOf[T any](_ T, err error) error { return err }

// A return that is the whole call counts as a call too.
func TestAllowlistHoldsForCallsOfOneEvent(t *testing.T) {
	h := &Host{Agents: map[string]Manifest{"coder": {Tools: []string{"fs:read"}}}}
	run, log := emitting(t, h, agentevents.ModeEnforce)
	returned := func(tool string, status agentevents.ToolStatus) error {
		return run.Agent("coder").Emit(t.Context(), &agentevents.ToolReturned{CallID: "c", ToolID: tool, Status: status, OneEvent: true, Arguments: `{}`})
	}
	for _, status := range []agentevents.ToolStatus{agentevents.ToolStatusOK, agentevents.ToolStatusError} {
		var v *agentevents.RuleError
		require.ErrorAs(t, returned("rm:all", status), &v)
		require.Equal(t, RuleToolAllowed, v.Rule)
	}
	require.Empty(t, log.Events())
	require.NoError(t, returned("fs:read", agentevents.ToolStatusOK))
	// A refused call never began.
	require.NoError(t, returned("rm:all", agentevents.ToolStatusForbidden))
	require.NoError(t, returned("rm:all", agentevents.ToolStatusRateLimited))
}

// The host decides whether a decision is escalated, by run and by agent.
func TestStrictThresholds(t *testing.T) {
	hosts := map[string]*Host{
		"r1": {Agents: map[string]Manifest{"host:a": {Threshold: agentevents.Some(0.5)}, "host:b": {Threshold: agentevents.Some(0.9)}}},
		"r2": {Threshold: agentevents.Some(0.1)},
	}
	o := openwop.Options{Strict: true, ThresholdOf: func(runID, agentID string) float64 { return hosts[runID].ThresholdOf(agentID) }}
	for _, c := range []struct {
		run, agent string
		confidence float64
		escalated  bool
	}{{"r1", "host:a", 0.6, false}, {"r1", "host:a", 0.4, true}, {"r1", "host:b", 0.8, true}, {"r1", "host:c", 0.8, false}, {"r2", "host:b", 0.2, false}} {
		line := func(n int, typ, payload string) string {
			return fmt.Sprintf(`{"eventId":"e%d","runId":"%s","nodeId":"n1","type":"%s","payload":%s,"timestamp":"2026-05-19T10:00:00.000Z","sequence":%d}`, n, c.run, typ, payload, n)
		}
		decided := line(0, "agent.decided", fmt.Sprintf(`{"agentId":"%s","decision":1,"confidence":%v}`, c.agent, c.confidence))
		d := openwop.NewDecoder(o)
		_, err := d.Decode(nil, []byte(decided))
		require.NoError(t, err)
		_, err = d.Decode(nil, []byte(line(1, "node.completed", `{"nodeId":"n1"}`)))
		require.Equal(t, c.escalated, err != nil, "%+v: %v", c, err)
		_, err = d.Decode(nil, []byte(line(2, "run.completed", `{}`)))
		require.NoError(t, err, "it is told once")
	}
}

// In version 2 a host with agents has all their events. Only the deltas of
// reasoning are declared separately.
func TestDiscoveryOfPublishedHosts(t *testing.T) {
	read := func(text string) *Capabilities {
		var d Discovery
		require.NoError(t, json.Unmarshal([]byte(text), &d), text)
		return d.Agents
	}
	all := Capabilities{ReasoningEvents: true, ToolEvents: true, HandoffEvents: true, DecisionEvents: true, Streaming: agentevents.Some(false)}
	require.Equal(t, &all, read(`{"agents":{}}`))
	limited := all
	limited.TokenLimit, limited.MemoryBackends = 256, []string{MemoryLongTerm, MemoryScratchpad}
	require.Equal(t, &limited, read(`{"agents":{"reasoning":{"tokenLimit":256},"memoryBackends":["long-term","scratchpad"]}}`))
	require.Equal(t, &Capabilities{}, read(`{"agents":{"supported":false}}`))
	require.Equal(t, &Capabilities{ToolEvents: true}, read(`{"agents":{"toolEvents":true}}`))
	require.Equal(t, &Capabilities{}, read(`{"agents":{"toolEvents":false}}`))
	require.Equal(t, &Capabilities{}, read(`{"capabilities":{"agents":{}}}`), "the RFC's form has flags")
}

// A call that returns has a result on success and an error on failure, for a host as for a
// reader.
func TestResultOrError(t *testing.T) {
	failed := agentevents.Some(agentevents.ErrorInfo{Code: "x", Message: "y"})
	for _, c := range []struct {
		returned agentevents.ToolReturned
		payload  string
		legal    bool
	}{
		{agentevents.ToolReturned{Status: "ok", Result: "1"}, `"result":1,"status":"ok"`, true},
		{agentevents.ToolReturned{Status: "error", Error: failed}, `"error":{"error":"x","message":"y"},"status":"error"`, true},
		{agentevents.ToolReturned{Status: "error", Error: failed, Result: "1"}, `"error":{"error":"x","message":"y"},"status":"error","result":1`, false},
		{agentevents.ToolReturned{Status: "ok", Error: failed}, `"error":{"error":"x","message":"y"},"status":"ok"`, false},
	} {
		err := (&Host{}).Guard(agentevents.Event{Payload: &c.returned})
		d := openwop.NewDecoder(openwop.Options{Strict: true})
		var rule agentevents.Rule
		for i, rest := range []string{`{"type":"agent.toolCalled","payload":{"agentId":"host:a","toolId":"x:y","callId":"c","arguments":1}}`, `{"type":"agent.toolReturned","causationId":"evt-000000000-0000","payload":{"agentId":"host:a","toolId":"x:y","callId":"c",` + c.payload + `}}`} {
			line := fmt.Sprintf(`{"eventId":"evt-000000000-%04d","runId":"r1","timestamp":"2026-05-19T10:00:00.000Z","sequence":%d,%s`, i, i, rest[1:])
			var broken *agentevents.RuleError
			if _, err := d.Decode(nil, []byte(line)); errors.As(err, &broken) {
				rule = broken.Rule
			}
		}
		if c.legal {
			require.Nil(t, err)
			require.Empty(t, rule)
			continue
		}
		require.Equal(t, openwop.RuleResult, err.Rule)
		require.Equal(t, openwop.RuleResult, rule)
	}
}

// A run with a suspended node waits: for a person if the agent was not sure.
func TestSuspendedNodesWait(t *testing.T) {
	for _, p := range []openwop.Profile{openwop.SchemaV1, openwop.SchemaV2} {
		run, log := emitting(t, &Host{Profile: p}, agentevents.ModeEnforce)
		node := run.With(agentevents.Scope{NodeID: "n1"})
		status := func(more ...agentevents.Event) snapshot.Snapshot {
			f := agentevents.NewFold(agentevents.FoldOptions{})
			for _, ev := range append(log.Events(), more...) {
				f.Apply(ev)
			}
			text, err := f.Snapshot().MarshalJSON()
			require.NoError(t, err)
			var r agentevents.RunSnapshot
			require.NoError(t, r.UnmarshalJSON(text))
			s, err := snapshot.Of(&r)
			require.NoError(t, err)
			return s
		}
		require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
		require.NoError(t, node.Emit(t.Context(), &agentevents.NodeStarted{}))
		require.Equal(t, snapshot.StatusRunning, status().Status)
		require.NoError(t, node.Agent("abc").Emit(t.Context(), &agentevents.AgentDecided{Decision: `1`, Confidence: agentevents.Some(0.1)}))
		s := status()
		require.Equal(t, snapshot.StatusWaitingApproval, s.Status)
		require.Equal(t, "n1", s.CurrentNodeID)

		next := func(p agentevents.Payload) agentevents.Event {
			return agentevents.Event{ID: "x", RunID: "r", Scope: agentevents.Scope{NodeID: "n1"}, Sequence: uint64(len(log.Events())), Time: log.Events()[0].Time, Payload: p}
		}
		require.Equal(t, snapshot.StatusWaitingExternal, status(next(&agentevents.NodeSuspended{Reason: "webhook"})).Status)
		other := next(&agentevents.NodeStarted{})
		other.NodeID = "n2"
		require.Equal(t, snapshot.StatusRunning, status(other).Status, "another node runs")
		for _, p := range []agentevents.Payload{
			&agentevents.NodeStarted{}, &agentevents.NodeCompleted{}, &agentevents.NodeFailed{}, &agentevents.NodeSkipped{}, &agentevents.RunResumed{},
			&agentevents.ApprovalGranted{ApprovalID: "a"}, &agentevents.ApprovalRejected{ApprovalID: "a"}, &agentevents.ClarificationResolved{InterruptID: "i"},
			&agentevents.Unknown{Type: "node.resumed", Raw: `{}`},
		} {
			require.Equal(t, snapshot.StatusRunning, status(next(p)).Status, p)
		}
		require.Equal(t, snapshot.StatusCompleted, status(next(&agentevents.RunCompleted{})).Status)
	}
}
