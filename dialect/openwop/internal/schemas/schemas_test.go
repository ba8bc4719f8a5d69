package schemas

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/facts"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The grammars that ids are normalised by are the grammars of the published schemas.
func TestGrammarsAreThePublishedPatterns(t *testing.T) {
	table, err := facts.Parse(v2Demands) // without the grammars
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	chars := []rune("aAz09.._~--::/é ")
	for name, form := range PublishedIDs {
		require.NotEmpty(t, table[name].Pattern(), name)
		seen := map[bool]int{}
		for range 8000 {
			var b strings.Builder
			if r.IntN(2) == 0 {
				b.WriteString([]string{"anon:", "acme/", "a.z", "anon:acme/"}[r.IntN(4)])
			}
			limit, n := 8+r.IntN(len(chars)-8), r.IntN(40)
			if r.IntN(4) == 0 {
				n += 110
			}
			for range n {
				b.WriteRune(chars[r.IntN(limit+1)])
			}
			id := b.String()
			want := table[name].Fits(jsonwire.Quote(id))
			require.Equal(t, want, ValidID(SchemaV2, form, id), "%s %q", name, id)
			seen[want]++
		}
		require.Greater(t, seen[true], 20, name)
		require.Greater(t, seen[false], 20, name)
	}
	for name, form := range map[string]IDForm{"eventId": EventID, "runId": RunID, "nodeId": NodeID, "causationId": EventID} {
		of, _, _ := Table(SchemaV1)["envelope"].Member(name)
		g := grammars[form]
		require.Equal(t, []int{g.low1, g.high1}, []int{of.Low, of.High}, name)
	}
}

// The error for an id names the legal form.
func TestLegalIDs(t *testing.T) {
	for want, of := range map[string]struct {
		v    Version
		form IDForm
	}{
		"any text that is not empty":                                  {RFC0002, RunID},
		"1 to 128 characters":                                         {SchemaV1, EventID},
		"3 to 256 characters":                                         {SchemaV1, HandoffID},
		"16 to 128 letters, digits and . _ ~ -":                       {SchemaV2, EventID},
		"3 to 128 letters, digits and . _ ~ - :":                      {SchemaV2, HandoffID},
		"a tenant, a slash and 16 to 128 letters, digits and . _ ~ -": {SchemaV2, RunID},
		"a dotted name such as core.llm":                              {SchemaV2, TypeID},
	} {
		require.Equal(t, want, of.form.legal(of.v))
	}
}
