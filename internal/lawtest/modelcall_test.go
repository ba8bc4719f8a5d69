package lawtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// A streamer uses handles of model calls in any legal order.
type streamer struct {
	t     *rapid.T
	a     *agentevents.Agent
	open  []*agentevents.ModelCall
	tools bool // tools may be called at any time
}

var (
	modelPieces = []string{"", "a", "é\n", " the C4N4", "RYs3cr3t", "password=", "hunter2-longer", `{"api_key":"`, `k-123"}`}
	modelTools  = []string{"call_0", "call_1"}
)

// step does one thing.
func (s *streamer) step(i int) {
	ctx := context.Background()
	var err error
	what := rapid.IntRange(0, 9).Draw(s.t, "what")
	if len(s.open) == 0 && what > 1 {
		what = 0
	}
	switch what {
	case 0:
		var c *agentevents.ModelCall
		c, err = s.a.Model(ctx, &agentevents.ModelCalled{Model: "m"})
		s.open = append(s.open, c)
	case 1:
		s.tool(i)
	case 2, 3:
		k := rapid.IntRange(0, len(s.open)-1).Draw(s.t, "ended")
		c := s.open[k]
		s.open = append(s.open[:k:k], s.open[k+1:]...)
		if what == 2 {
			err = c.Return(ctx, nil)
			break
		}
		err = c.Fail(ctx, errors.New("503"))
		if rapid.Bool().Draw(s.t, "again") {
			again, retryErr := c.Retry(ctx)
			err = errors.Join(err, retryErr)
			s.open = append(s.open, again)
		}
	default:
		c := s.open[rapid.IntRange(0, len(s.open)-1).Draw(s.t, "handle")]
		piece := rapid.SampledFrom(modelPieces).Draw(s.t, "piece")
		switch what % 3 {
		case 0:
			err = c.Text(ctx, piece)
		case 1:
			err = c.Reason(ctx, piece)
		case 2:
			err = c.Arguments(ctx, rapid.SampledFrom(modelTools).Draw(s.t, "call"), piece)
		}
	}
	require.NoError(s.t, err)
}

// tool calls a tool, or returns from it.
func (s *streamer) tool(i int) {
	if !s.tools {
		return
	}
	ctx, id := context.Background(), rapid.SampledFrom(modelTools).Draw(s.t, "tool")
	var err error
	if c := s.a.OpenCall(id); c.Recorded() {
		err = c.Return(ctx, agentevents.JSON(fmt.Sprint(i)))
	} else {
		_, err = s.a.Call(ctx, &agentevents.ToolCalled{CallID: id, ToolID: "t"})
	}
	require.NoError(s.t, err)
}

// finish ends the open calls and blocks, then the agent and the run.
func (s *streamer) finish(run *agentevents.Run) {
	ctx := context.Background()
	for _, c := range s.open {
		require.NoError(s.t, c.Return(ctx, nil))
	}
	for _, id := range s.a.OpenCalls() {
		require.NoError(s.t, s.a.OpenCall(id).Return(ctx, `1`))
	}
	require.NoError(s.t, s.a.Emit(ctx, &agentevents.AgentEnded{}))
	require.NoError(s.t, run.Emit(ctx, &agentevents.RunCompleted{}))
}

// modelPolicies are redactions under which deltas join to their whole block.
func modelPolicies(t *rapid.T) *agentevents.Policy {
	if rapid.Bool().Draw(t, "off") {
		return &agentevents.Policy{Off: true}
	}
	secrets := new(agentevents.Secrets)
	require.NoError(t, secrets.Add("C4N4RYs3cr3t"))
	return &agentevents.Policy{
		Secrets:   secrets,
		Reasoning: rapid.SampledFrom([]agentevents.Verbosity{"", agentevents.VerbosityOff, agentevents.VerbositySummary, agentevents.VerbosityFull}).Draw(t, "verbosity"), ReasoningTokens: 3,
	}
}

// Every stream of a model through its handle is legal. The deltas of each block join to the whole
// block, and a log without them has the same snapshot.
func TestModelCallHandlesWriteWholeBlocks(t *testing.T) {
	blocks := 0
	rapid.Check(t, func(t *rapid.T) {
		lifecycle := Lifecycles().Draw(t, "lifecycle")
		var events []agentevents.Event
		em := NewEmitter(t, lifecycle, agentevents.ModeEnforce, &Clock{}, &IDs{}, modelPolicies(t), func(ev agentevents.Event) { events = append(events, ev) })
		run, err := em.Run("r")
		require.NoError(t, err)
		s := &streamer{t: t, a: run.Agent("a"), tools: lifecycle == agentevents.LifecycleDerived}
		require.NoError(t, s.a.Emit(context.Background(), &agentevents.AgentStarted{}))
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			s.step(i)
		}
		s.finish(run)

		said, sizes := map[string]string{}, map[string]int{}
		var kept []agentevents.Event
		for _, ev := range events {
			id, text := "", ""
			switch p := ev.Payload.(type) {
			case *agentevents.TextCompleted:
				id, text = p.BlockID, p.Text
			case *agentevents.AgentReasoned:
				id, text = p.BlockID, p.Reasoning
			case *agentevents.TextDelta:
				said[p.BlockID] += p.Delta
				require.Equal(t, agentevents.Some(sizes[p.BlockID]), p.Index)
				sizes[p.BlockID]++
			case *agentevents.AgentReasoningDelta:
				said[p.BlockID] += p.Delta
				require.Equal(t, agentevents.Some(sizes[p.BlockID]), p.Index)
				sizes[p.BlockID]++
			}
			if id != "" {
				require.Positive(t, sizes[id])
				require.Equal(t, said[id], text)
				delete(said, id)
				blocks++
			}
			if info, _ := ev.Kind().Info(); !info.Droppable {
				kept = append(kept, ev)
			}
		}
		require.Empty(t, said, "blocks without their whole")
		with := fold(events, agentevents.FoldOptions{})
		require.Empty(t, with.Violations)
		requireSame(t, with, fold(kept, agentevents.FoldOptions{}), "without deltas")
	})
	require.Positive(t, blocks)
}

// After a crash the handles are requested again, and their events are legal.
func TestModelCallHandlesGoOnAfterAResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lifecycle, policy, ids := Lifecycles().Draw(t, "lifecycle"), modelPolicies(t), &IDs{}
		var events []agentevents.Event
		emitter := func() *agentevents.Emitter {
			return NewEmitter(t, lifecycle, agentevents.ModeEnforce, &Clock{}, ids, policy, func(ev agentevents.Event) { events = append(events, ev) })
		}
		run, err := emitter().Run("r")
		require.NoError(t, err)
		s := &streamer{t: t, a: run.Agent("a"), tools: lifecycle == agentevents.LifecycleDerived}
		require.NoError(t, s.a.Emit(context.Background(), &agentevents.AgentStarted{}))
		for range rapid.IntRange(1, 3).Draw(t, "crashes") {
			for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
				s.step(i)
			}
			run, err = emitter().Resume(fold(events, agentevents.FoldOptions{}))
			require.NoError(t, err)
			s.a = run.Agent("a")
			for i, c := range s.open {
				s.open[i] = s.a.OpenModelCall(c.ID)
				require.True(t, s.open[i].Recorded())
			}
		}
		s.finish(run)
		snapshot := fold(events, agentevents.FoldOptions{})
		require.Empty(t, snapshot.Violations)
		require.Empty(t, snapshot.OpenModelCalls)
	})
}
