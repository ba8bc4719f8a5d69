package lawtest

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentevents/agentevents"
)

// The generator reaches every kind, because the laws test only generated kinds.
func TestGeneratorEmitsEveryKind(t *testing.T) {
	draws(t, 1500)
	emitted, unknown := map[agentevents.Kind]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		for _, ev := range Generate(t, Config{Lifecycle: Lifecycles().Draw(t, "lifecycle")}).Events {
			emitted[ev.Kind()]++
			if _, ok := ev.Payload.(*agentevents.Unknown); ok {
				unknown++
			}
		}
	})
	var missing []agentevents.Kind
	for info := range agentevents.Kinds() {
		if emitted[info.Kind] == 0 {
			missing = append(missing, info.Kind)
		}
	}
	require.Empty(t, missing, "kinds of the catalog that no run had")
	require.NotZero(t, unknown, "no run had an unknown kind")
}

// The generator reaches every legal transition of both lifecycles, and every mark that it
// sets.
func TestGeneratorTakesEveryTransition(t *testing.T) {
	if testing.Short() {
		t.Skip("the runs of -short are too few to take every transition")
	}
	draws(t, 1500)
	type edge struct{ from, to agentevents.AgentStatus }
	for _, l := range []agentevents.Lifecycle{agentevents.LifecycleStrict, agentevents.LifecycleRelaxed} {
		taken := map[edge]bool{}
		rapid.Check(t, func(t *rapid.T) {
			for _, ev := range Generate(t, Config{Lifecycle: l}).Events {
				if p, ok := ev.Payload.(*agentevents.AgentTransition); ok {
					taken[edge{p.From, p.To}] = true
				}
			}
		})
		for _, word := range closedWords["AgentStatus"] {
			from := agentevents.AgentStatus(word)
			for _, to := range l.Next(from) {
				require.True(t, taken[edge{from, to}], "%s: %s → %s was never taken", l, from, to)
			}
		}
	}
}

// draws sets how many runs the property tests of t draw. A test that counts the generated cases
// needs the same number in every run of the tests.
func draws(t *testing.T, n int) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	require.NoError(t, checks.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(before)) })
}
