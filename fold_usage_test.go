package agentevents

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/effort"
)

// The leaves of the bill sum up to the usage of the run, of whatever sources it has.
func TestUsageSourcesSumUpToTheRun(t *testing.T) {
	seed := effort.Seed(t)
	whys, sources := map[string]int{}, map[string]int{}
	for n := range effort.Of(200, 2000, 20_000) {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		f := NewFold(FoldOptions{})
		sequence := uint64(0)
		emit := func(agent, parent string, p Payload) {
			f.Apply(Event{ID: fmt.Sprint(sequence), Sequence: sequence, RunID: "r", AgentID: agent, ParentAgentID: parent, Payload: p})
			sequence++
		}
		maybe := func() bool { return r.IntN(2) == 0 }
		opt := func() Opt[int64] {
			if maybe() {
				return Opt[int64]{}
			}
			return Some(r.Int64N(100))
		}
		cost := func() Opt[float64] {
			if maybe() {
				return Opt[float64]{}
			}
			return Some(float64(r.IntN(100)) / 8) // sums are exact
		}
		usage := func() Usage {
			return Usage{
				InputTokens: r.Int64N(1000), OutputTokens: r.Int64N(100), TotalTokens: opt(),
				CacheCreationInputTokens: opt(), CacheReadInputTokens: opt(), ReasoningOutputTokens: opt(),
			}
		}
		model := func() string { return []string{"", "m", "n"}[r.IntN(3)] }
		agents := []string{"a", "b", "c", ""}
		for range 4 + r.IntN(20) {
			i := r.IntN(len(agents))
			agent, parent := agents[i], ""
			if i > 0 && agent != "" {
				parent = agents[i-1]
			}
			act := r.IntN(7)
			if n%8 == 0 {
				act %= 3
			}
			switch act {
			case 0, 1:
				if agent != "" {
					emit(agent, parent, &AgentStarted{Model: model()})
				}
			case 2:
				end := &AgentEnded{TotalCostUSD: cost(), Cumulative: maybe()}
				if maybe() {
					end.Usage = Some(usage())
				}
				for range r.IntN(3) {
					u := usage()
					u.CostUSD = cost()
					if end.ModelUsage == nil {
						end.ModelUsage = map[string]Usage{}
					}
					end.ModelUsage["m"+model()] = u
				}
				if maybe() {
					end.StatedTokens = opt()
				}
				if n%8 == 0 { // nothing else states any
					end = &AgentEnded{StatedTokens: opt(), TotalCostUSD: end.TotalCostUSD}
				}
				if agent != "" {
					emit(agent, parent, end)
				}
			case 3:
				emit(agent, "", &ModelReturned{ModelCallID: fmt.Sprint("c", r.IntN(4)), OneEvent: true, Model: model(), Usage: Some(usage()), CostUSD: cost()})
			case 4:
				emit(agent, "", &UsageObserved{ModelCallID: []string{"", "c1", "c2"}[r.IntN(3)], Model: model(), Usage: usage(), CostUSD: cost(), Cumulative: r.IntN(4) == 0})
			case 5:
				emit(agent, "", &TurnSummarized{Usage: usage(), CostUSD: cost()})
			case 6:
				emit("", "", &WorkflowFinalized{TotalTokens: r.Int64N(1000)})
			}
		}
		s := f.Snapshot()
		var sum Usage
		var dollars Opt[float64]
		for _, l := range s.UsageSources() {
			sum.add(l.Counted)
			addCost(&dollars, l.CountedCost)
			whys[l.Why]++
			sources[l.Source]++
			if l.Why == "" {
				require.Equal(t, l.Usage, l.Counted, "%+v", l)
				require.Equal(t, l.Cost, l.CountedCost, "%+v", l)
			}
		}
		require.Equal(t, s.Usage.Usage, sum, "run %d", n)
		require.Equal(t, s.Usage.CostUSD, dollars, "run %d", n)
	}
	t.Log(whys, sources)
	require.Len(t, whys, 7, "a reason is never drawn")
	require.Len(t, sources, 6)
}

func TestUsageSourcesTellTheDifference(t *testing.T) {
	f := NewFold(FoldOptions{})
	for i, p := range []Payload{
		&AgentStarted{Model: "m"},
		&ModelReturned{ModelCallID: "c", OneEvent: true, Usage: Some(Usage{InputTokens: 60, OutputTokens: 1})},
		&AgentEnded{Usage: Some(Usage{InputTokens: 100, OutputTokens: 9}), TotalCostUSD: Some(0.5)},
	} {
		f.Apply(Event{ID: fmt.Sprint(i), Sequence: uint64(i), RunID: "r", AgentID: "a", Payload: p})
	}
	require.Equal(t, []UsageSource{
		{AgentID: "a", Attempt: 1, Source: "agent.ended usage", Usage: Usage{InputTokens: 100, OutputTokens: 9}, Counted: Usage{InputTokens: 100, OutputTokens: 9}},
		{AgentID: "a", Attempt: 1, Source: "agent.ended totalCostUsd", Cost: Some(0.5), CountedCost: Some(0.5)},
		{AgentID: "a", Attempt: 1, Source: "reports", Usage: Usage{InputTokens: 60, OutputTokens: 1}, Why: "the usage of the end counts", Differs: 48},
	}, f.Snapshot().UsageSources())
}
