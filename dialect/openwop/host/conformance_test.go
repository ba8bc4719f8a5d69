package host

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/snapshot"
	"github.com/agentevents/agentevents/eventtest"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The document names five conformance scenarios. The tests check their intent on
// a reference host: an emitter, a Host and this dialect.

// wireSink writes events as OpenWOP lines.
type wireSink struct {
	host *Host
	enc  *openwop.Encoder
	buf  bytes.Buffer
	t    *testing.T
}

func (s *wireSink) WriteEvent(_ context.Context, ev agentevents.Event) error {
	line, err := s.enc.Append(nil, ev)
	s.buf.Write(line)
	return err
}

// referenceHost returns a run on a host, and the sink with the lines that it
// writes.
func referenceHost(t *testing.T, h *Host, more ...agentevents.Sink) (*agentevents.Run, *wireSink) {
	t.Helper()
	s := &wireSink{host: h, enc: openwop.NewEncoder(openwop.EncoderOptions{Profile: h.Profile}), t: t}
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{
		Lifecycle: agentevents.LifecycleStrict,
		Sinks:     append(more, s), Guard: h.Guard, Follow: h.Follow, OnError: func(err error) { t.Errorf("reported: %v", err) },
	})
	require.NoError(t, err)
	run, err := em.Run("run_1")
	require.NoError(t, err)
	return run, s
}

// read decodes the lines strictly.
func (s *wireSink) read() []agentevents.Event {
	s.t.Helper()
	d := openwop.NewDecoder(openwop.Options{
		Strict: true, Profile: s.host.Profile, ThresholdOf: func(_, agentID string) float64 { return s.host.ThresholdOf(agentID) },
	})
	return eventtest.ReadLog(s.t, bytes.NewReader(s.buf.Bytes()), agentevents.ReaderOptions{Decoder: d}).Events()
}

// inNode is the scope of an agent's acts in a node. OpenWOP has no starts of agents.
var inNode = agentevents.Scope{NodeID: "n"}

var everything = Capabilities{ReasoningEvents: true, ToolEvents: true, HandoffEvents: true, DecisionEvents: true}

// identity-passthrough: the agent field comes back unchanged.
func TestConformanceIdentityPassthrough(t *testing.T) {
	ref := agentevents.AgentRef{AgentID: "vendor.acme.support.tier1", AgentSharing: "shared:team-a", MemoryRef: "mem-1", ModelClass: agentevents.ModelReasoning}
	run, log := referenceHost(t, &Host{})
	node := run.With(agentevents.Scope{NodeID: "n1"})
	require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{Agent: agentevents.Some(ref)}))
	require.NoError(t, node.Emit(t.Context(), &agentevents.NodeStarted{Agent: agentevents.Some(ref)}))
	require.NoError(t, node.Emit(t.Context(), &agentevents.NodeCompleted{Agent: agentevents.Some(ref)}))
	events := log.read()
	require.Len(t, events, 3)
	require.Equal(t, ref, events[1].Payload.(*agentevents.NodeStarted).Agent.V)
	require.Equal(t, ref, events[2].Payload.(*agentevents.NodeCompleted).Agent.V)
}

// multi-node-ordering: events come in the order of their sequence. An agent's
// reasoning lies between the start and the end of its node.
func TestConformanceMultiNodeOrdering(t *testing.T) {
	run, log := referenceHost(t, &Host{Capabilities: &everything})
	for _, id := range []string{"a", "b", "c"} {
		node := run.With(agentevents.Scope{NodeID: id})
		require.NoError(t, node.Emit(t.Context(), &agentevents.NodeStarted{}))
		require.NoError(t, node.Agent("host:"+id).Emit(t.Context(), &agentevents.AgentReasoned{Reasoning: "about " + id}))
		require.NoError(t, node.Emit(t.Context(), &agentevents.NodeCompleted{}))
	}
	var order []string
	for i, ev := range log.read() {
		require.EqualValues(t, i, ev.Sequence)
		order = append(order, string(ev.Kind())+" "+ev.NodeID)
	}
	require.Equal(t, strings.Fields(`node.started a agent.reasoned a node.completed a node.started b agent.reasoned b node.completed b
		node.started c agent.reasoned c node.completed c`), strings.Fields(strings.Join(order, " ")))
}

// replayDeterminism: emitting the same events again writes the same bytes and
// reaches no outside system.
func TestConformanceReplayDeterminism(t *testing.T) {
	run, log := referenceHost(t, &Host{Capabilities: &everything})
	a := run.With(agentevents.Scope{NodeID: "n1"}).Agent("host:planner")
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentReasoned{Reasoning: "first the order, then \u2028 the refund", Verbosity: agentevents.VerbosityFull}))
	require.NoError(t, a.Emit(t.Context(), &agentevents.AgentDecided{Decision: `{"z":9007199254740993,"a":1.50,"n":null}`, Confidence: agentevents.Some(0.6)}))
	first := log.read()
	require.Len(t, first, 3, "the decision was escalated")

	outside := 0
	webhook := agentevents.SkipReplayed(agentevents.SinkFunc(func(context.Context, agentevents.Event) error { outside++; return nil }))
	again := &wireSink{enc: openwop.NewEncoder(openwop.EncoderOptions{}), t: t}
	h := &Host{Capabilities: &everything}
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Lifecycle: agentevents.LifecycleStrict, Sinks: []agentevents.Sink{again, webhook}, Guard: h.Guard, Follow: h.Follow})
	require.NoError(t, err)
	replay, err := em.Run("run_1")
	require.NoError(t, err)
	for _, ev := range first {
		ev.Marks |= agentevents.MarkReplayed
		require.NoError(t, errOf(replay.Record(t.Context(), ev)))
	}
	require.Equal(t, log.buf.String(), again.buf.String(), "ids, payloads and all, and no second escalation")
	require.Zero(t, outside)
}

// agent-reasoning-events: a host that declares them emits all five, and the
// return of a call names the event of the call. A host that does not declare them
// emits none.
func TestConformanceAgentReasoningEvents(t *testing.T) {
	emit := func(run *agentevents.Run) error {
		ctx := t.Context()
		a := run.With(agentevents.Scope{NodeID: "n1"}).Agent("host:planner")
		if err := a.Emit(ctx, &agentevents.AgentReasoned{Reasoning: "look up"}); err != nil {
			return err
		}
		c, err := a.Call(ctx, &agentevents.ToolCalled{ToolID: "orders:lookup", Arguments: `{"id":7}`})
		if err != nil {
			return err
		}
		if err := c.Return(ctx, `{"ok":true}`); err != nil {
			return err
		}
		if err := a.Emit(ctx, &agentevents.AgentDecided{Decision: `"refund"`, Confidence: agentevents.Some(0.9)}); err != nil {
			return err
		}
		return a.Emit(ctx, &agentevents.AgentHandoff{From: agentevents.AgentRef{AgentID: "host:planner"}, To: agentevents.AgentRef{AgentID: "host:clerk"}})
	}
	run, log := referenceHost(t, &Host{Capabilities: &everything})
	require.NoError(t, emit(run))
	seen := map[agentevents.Kind]agentevents.Event{}
	for _, ev := range log.read() {
		require.GreaterOrEqual(t, len(ev.AgentID), 3)
		seen[ev.Kind()] = ev
	}
	require.Len(t, seen, 5)
	called, returned := seen[agentevents.KindToolCalled], seen[agentevents.KindToolReturned]
	require.Equal(t, called.ID, returned.CausationID)

	// The discovery document tells a client which events to expect.
	client := Discovery{Agents: &everything}
	require.True(t, client.Agents.Allows(called.Payload))

	run, log = referenceHost(t, &Host{Capabilities: &Capabilities{}})
	var v *agentevents.RuleError
	require.ErrorAs(t, emit(run), &v)
	require.Equal(t, RuleCapability, v.Rule)
	require.Empty(t, log.buf.String())
}

// agent-confidence-escalation: exactly one action follows a decision below the
// threshold, and none follows one at it. In the published contract the node is
// suspended and the run waits for an approval, with or without a node, also for a
// reader of the lines.
func TestConformanceAgentConfidenceEscalation(t *testing.T) {
	for name, c := range map[string]struct {
		host    Host
		actions []agentevents.Kind
		status  snapshot.Status
		lines   []string
	}{
		"ask-user":      {Host{Orchestrator: "host:boss"}, []agentevents.Kind{agentevents.KindOrchestratorDecided}, snapshot.StatusRunning, []string{`"kind":"ask-user"`}},
		"clarification": {Host{}, []agentevents.Kind{agentevents.KindClarificationRequested}, snapshot.StatusWaitingInput, nil},
		"suppressed":    {Host{NoEscalation: true}, []agentevents.Kind{agentevents.KindCapBreached}, snapshot.StatusRunning, []string{`"kind":"confidence-escalation-suppressed"`}},
		"v1": {Host{Profile: openwop.SchemaV1}, []agentevents.Kind{agentevents.KindNodeSuspended}, snapshot.StatusWaitingApproval,
			[]string{`"reason":"low-confidence","agentId":"host:planner","threshold":0.8,"observed":0.79,"decision":2}`}},
		"v2": {Host{Profile: openwop.SchemaV2}, []agentevents.Kind{"interrupt.requested", agentevents.KindNodeSuspended}, snapshot.StatusWaitingApproval,
			[]string{`"data":{"agentId":"host:planner","threshold":0.8,"observed":0.79,"decision":2}}`, `"kind":"low-confidence","reason":"low-confidence"}`}},
	} {
		for _, nodeID := range []string{"n1", ""} {
			t.Run(name+" "+nodeID, func(t *testing.T) {
				host := c.host
				host.Capabilities = &everything
				host.Threshold = agentevents.Some(0.8)
				native := agentevents.NewFold(agentevents.FoldOptions{})
				run, log := referenceHost(t, &host, agentevents.SinkFunc(func(_ context.Context, ev agentevents.Event) error { native.Apply(ev); return nil }))
				require.NoError(t, run.Emit(t.Context(), &agentevents.RunStarted{}))
				node := run.With(agentevents.Scope{NodeID: nodeID})
				if nodeID != "" {
					require.NoError(t, node.Emit(t.Context(), &agentevents.NodeStarted{}))
				}
				a := node.Agent("host:planner")
				for _, p := range []agentevents.Payload{
					&agentevents.AgentDecided{Decision: `1`, Confidence: agentevents.Some(0.8)},
					&agentevents.AgentDecided{Decision: `2`, Confidence: agentevents.Some(0.79)},
				} {
					require.NoError(t, errOf(a.Record(t.Context(), agentevents.Event{Payload: p})))
				}

				events := log.read()
				low := len(events) - len(c.actions) - 1
				require.Equal(t, agentevents.JSON("2"), events[low].Payload.(*agentevents.AgentDecided).Decision)
				require.Equal(t, agentevents.KindAgentDecided, events[low-1].Kind(), "the one before is not escalated")
				back := agentevents.NewFold(agentevents.FoldOptions{})
				for _, ev := range events {
					back.Apply(ev)
				}
				for i, kind := range c.actions {
					require.Equal(t, kind, events[low+1+i].Kind())
					require.Equal(t, events[low].ID, events[low+1+i].CausationID)
				}
				for _, part := range c.lines {
					require.Contains(t, log.buf.String(), part)
				}
				for _, f := range []*agentevents.Fold{native, back} {
					s, err := snapshot.Of(f.Snapshot())
					require.NoError(t, err)
					require.Equal(t, c.status, s.Status)
					if c.status == snapshot.StatusWaitingApproval {
						require.NotEmpty(t, s.CurrentNodeID)
						require.Contains(t, string(s.NodeStates), `"suspended"`)
					}
				}
				if c.status != snapshot.StatusWaitingApproval {
					return
				}

				// After the decision is ratified the node goes on, and names the
				// interrupt.
				waiting := events[len(events)-1]
				id := jsonwire.Text(jsonwire.Member(string(waiting.Payload.(*agentevents.NodeSuspended).Details), "interruptId"))
				resumed := agentevents.JSON(`{"nodeId":"` + waiting.NodeID + `","interruptId":"` + id + `"}`)
				require.NoError(t, run.With(agentevents.Scope{NodeID: waiting.NodeID}).Emit(t.Context(), &agentevents.Unknown{Type: "node.resumed", Raw: resumed}))
				back.Apply(log.read()[len(events)])
				for _, f := range []*agentevents.Fold{native, back} {
					s, err := snapshot.Of(f.Snapshot())
					require.NoError(t, err)
					require.Equal(t, snapshot.StatusRunning, s.Status)
					require.Equal(t, `{"`+waiting.NodeID+`":{"status":"running"}}`, string(s.NodeStates))
				}
			})
		}
	}
}
