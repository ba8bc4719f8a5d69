package openwop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/internal/effort"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A provider.usage is the usage of a model, and its line is written back unchanged.
func TestProviderUsage(t *testing.T) {
	rfc, both, all := []Profile{RFC0002}, []Profile{RFC0002, SchemaV2}, []Profile{RFC0002, SchemaV1, SchemaV2}
	count, cost := agentevents.Some[int64], agentevents.Some[float64]
	for name, c := range map[string]struct {
		from    []Profile
		payload string
		want    agentevents.Payload
		kept    map[string]string
	}{
		"all members": {
			both, `{"provider":"acme","model":"m-1","inputTokens":70,"outputTokens":11,"totalTokens":81,"costEstimateUsd":0.125,"currency":"USD","cacheHit":false,` +
				`"cacheReadTokens":4,"cacheWriteTokens":5,"nodeId":"n1","traceId":"0123456789abcdef0123456789abcdef"}`,
			&agentevents.UsageObserved{Model: "m-1", CostUSD: cost(0.125), Usage: agentevents.Usage{
				InputTokens: 70, OutputTokens: 11, TotalTokens: count(81), CacheReadInputTokens: count(4), CacheCreationInputTokens: count(5),
			}},
			map[string]string{"provider": `"acme"`, "currency": `"USD"`, "cacheHit": "false", "traceId": `"0123456789abcdef0123456789abcdef"`},
		},
		"few members": {all, `{"provider":"acme","model":"m-1","inputTokens":0,"outputTokens":3}`, &agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{OutputTokens: 3}}, nil},
		"a cost in euros": {
			all, `{"provider":"acme","model":"m-1","inputTokens":1,"outputTokens":3,"costEstimateUsd":0.5,"currency":"EUR"}`,
			&agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{InputTokens: 1, OutputTokens: 3}}, map[string]string{costEstimate: "0.5", currency: `"EUR"`},
		},
		"no currency's code": {
			all, `{"provider":"acme","model":"m-1","inputTokens":1,"outputTokens":3,"costEstimateUsd":0.5,"currency":"credits","cacheHit":null}`,
			&agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{InputTokens: 1, OutputTokens: 3}}, map[string]string{costEstimate: "0.5", currency: `"credits"`, "cacheHit": "null"},
		},
		"an extra member": {
			all, `{"provider":"acme","model":"m-1","inputTokens":1,"outputTokens":3,"batch":true}`,
			&agentevents.UsageObserved{Model: "m-1", Usage: agentevents.Usage{InputTokens: 1, OutputTokens: 3}}, map[string]string{"batch": "true"},
		},
		"no model and provider":   {rfc, `{"inputTokens":1,"outputTokens":3}`, &agentevents.UsageObserved{Usage: agentevents.Usage{InputTokens: 1, OutputTokens: 3}}, nil},
		"an answer of the cache":  {all, `{"provider":"acme","model":"m-1","inputTokens":70,"outputTokens":11,"costEstimateUsd":0.5,"cacheHit":true}`, nil, nil},
		"a count is not a number": {all, `{"provider":"acme","model":"m-1","inputTokens":"many","outputTokens":11}`, nil, nil},
		"a count is too high":     {all, `{"provider":"acme","model":"m-1","inputTokens":9300000000000000000,"outputTokens":11}`, nil, nil},
		"a count is missing":      {all, `{"provider":"acme","model":"m-1","inputTokens":70}`, nil, nil},
		"a cost is negative":      {all, `{"provider":"acme","model":"m-1","inputTokens":70,"outputTokens":11,"costEstimateUsd":-1}`, nil, nil},
		"no object":               {all, `[]`, nil, nil},
	} {
		for _, p := range c.from {
			t.Run(name+" "+p.String(), func(t *testing.T) {
				line := documents(providerUsage, c.payload)
				ev := decodeAll(t, Options{Profile: p}, line)[0]
				if c.want == nil {
					require.Equal(t, &agentevents.Unknown{Type: providerUsage, Raw: agentevents.JSON(c.payload)}, ev.Payload)
				} else {
					require.Equal(t, c.want, ev.Payload)
				}
				for name, raw := range c.kept {
					require.Equal(t, raw, string(dialectMember(ev, "/payload/"+name)), name)
				}
				out, losses := encodeAll(t, p, []agentevents.Event{ev})
				require.Equal(t, line, out)
				require.Empty(t, losses)
			})
		}
	}
}

func dialectMember(ev agentevents.Event, name string) agentevents.JSON {
	for member, raw := range jsonwire.Members(string(ev.Extra(string(Name)))) {
		if member == name {
			return agentevents.JSON(raw)
		}
	}
	return ""
}

// An event of another log gets the members that the schemas require. A cost in dollars has no
// other currency.
func TestUsageOfOtherLogs(t *testing.T) {
	used := agentevents.Event{ID: "e", RunID: "r", AgentID: "a", Time: t0, SchemaVersion: agentevents.SchemaVersion, Payload: &agentevents.UsageObserved{
		ModelCallID: "c", Usage: agentevents.Usage{InputTokens: 2, OutputTokens: 3, ReasoningOutputTokens: agentevents.Some[int64](1)},
	}}
	out, losses := rewritten(t, SchemaV1, []agentevents.Event{used})
	require.Equal(t, `provider.usage {"provider":"unknown","model":"unknown","inputTokens":2,"outputTokens":3}`, out)
	require.ElementsMatch(t, []string{
		"made up /openwop/~1payload~1provider", "made up /payload/model", "dropped /agentId", "dropped /payload/modelCallId", "dropped /payload/usage/reasoningOutputTokens",
	}, losses)

	euros := decodeAll(t, Options{}, documents(providerUsage, `{"provider":"acme","model":"m","inputTokens":1,"outputTokens":3,"costEstimateUsd":0.5,"currency":"EUR"}`))
	euros[0].Payload.(*agentevents.UsageObserved).CostUSD = agentevents.Some(0.25)
	out, losses = rewritten(t, RFC0002, euros)
	require.Equal(t, `provider.usage {"provider":"acme","model":"m","inputTokens":1,"outputTokens":3,"costEstimateUsd":0.25}`, out)
	require.ElementsMatch(t, []string{"dropped /openwop/~1payload~1costEstimateUsd", "dropped /openwop/~1payload~1currency"}, losses)
}

// A line has the usage of one call, so a running total or a part of it has no line. Nothing comes
// after the end of a run, so a report there has none either.
func TestUsageWithoutALine(t *testing.T) {
	e := NewEncoder(EncoderOptions{Profile: SchemaV1})
	for _, p := range []agentevents.UsageObserved{{Cumulative: true}, {Partial: true}} {
		_, err := e.Append(nil, agentevents.Event{ID: "d", RunID: "r", Time: t0, Payload: &p})
		require.ErrorIs(t, err, dialect.ErrNoCounterpart)
	}
	_, err := e.Append(nil, agentevents.Event{ID: "e", RunID: "r", Time: t0, Payload: &agentevents.RunCompleted{}})
	require.NoError(t, err)
	_, err = e.Append(nil, agentevents.Event{ID: "f", RunID: "r", Time: t0, Payload: &agentevents.UsageObserved{}})
	require.ErrorIs(t, err, dialect.ErrNoCounterpart)
}

func TestStrictUsage(t *testing.T) {
	const good = `{"provider":"acme","model":"m","inputTokens":1,"outputTokens":3,"costEstimateUsd":0.5,"currency":"EUR","cacheHit":false}`
	for edit, want := range map[[2]string][2]string{
		{"", ""}:                         {},
		{`"provider":"acme",`, ""}:       {string(RuleRequired), "/payload/provider"},
		{`"m"`, `""`}:                    {string(RuleRange), "/payload/model"},
		{`:0.5`, `:-1`}:                  {string(RuleRange), "/payload/" + costEstimate},
		{`EUR`, `eur`}:                   {string(RuleID), "/payload/" + currency},
		{`:false`, `:0`}:                 {string(RuleForm), "/payload/cacheHit"},
		{`:false`, `:false,"batch":1`}:   {string(RuleClosed), "/payload/batch"},
		{`:false`, `:false,"nodeId":[]`}: {string(RuleForm), "/payload/nodeId"},
		{`:1,`, `:1.5,`}:                 {string(RuleRange), "/payload/inputTokens"},
	} {
		for _, p := range []Profile{SchemaV1, SchemaV2} {
			rule, pointer := strictly(t, p, `{"type":"provider.usage","payload":`+strings.Replace(good, edit[0], edit[1], 1)+`}`)
			require.Equal(t, want, [2]string{string(rule), pointer}, "%s %v", p, edit)
		}
	}
	rule, pointer := strictly(t, SchemaV1, `{"type":"provider.usage","payload":{"provider":"acme","model":"m","inputTokens":1,"outputTokens":3,"cacheReadTokens":1}}`)
	require.Equal(t, [2]string{string(RuleClosed), "/payload/cacheReadTokens"}, [2]string{string(rule), pointer})
}

// usageLog is a log with reports of usage, and the sums of them.
type usageLog struct {
	lines                        string
	input, output, read, written int64
	cost                         float64
	priced                       bool
}

// A fold has the sums of all reports, in any order of members, and other profiles write lines
// with the same sums.
func TestSumsOfUsage(t *testing.T) {
	r := rand.New(rand.NewPCG(effort.Seed(t), 1))
	for range effort.Of(50, 300, 5000) {
		log := drawUsage(r)
		events := decodeAll(t, Options{Profile: Profile(r.IntN(3))}, log.lines)
		check := func(events []agentevents.Event) {
			f := agentevents.NewFold(agentevents.FoldOptions{})
			for _, ev := range events {
				f.Apply(ev)
			}
			s := f.Snapshot()
			require.Empty(t, s.Violations)
			u := s.Usage
			require.Equal(t, [4]int64{log.input, log.output, log.read, log.written},
				[4]int64{u.Usage.InputTokens, u.Usage.OutputTokens, u.Usage.CacheReadInputTokens.V, u.Usage.CacheCreationInputTokens.V}, log.lines)
			require.Equal(t, agentevents.Opt[float64]{V: log.cost, OK: log.priced}, u.CostUSD, log.lines)
		}
		check(events)
		p := []Profile{RFC0002, SchemaV2}[r.IntN(2)] // SchemaV1 has no cache
		out, _ := encodeAll(t, p, events)
		check(decodeAll(t, Options{Profile: p}, out))
	}
}

func drawUsage(r *rand.Rand) (log usageLog) {
	var lines strings.Builder
	for i := range 1 + r.IntN(6) {
		input, output, cost := r.Int64N(5000), r.Int64N(900), float64(r.IntN(4000))/1024
		members := []string{`"provider":"acme"`, fmt.Sprintf(`"model":"m-%d"`, r.IntN(3)), fmt.Sprintf(`"inputTokens":%d`, input), fmt.Sprintf(`"outputTokens":%d`, output)}
		put := func(chance int, member string) bool {
			has := r.IntN(chance) == 0
			if has {
				members = append(members, member)
			}
			return has
		}
		cached := put(5, `"cacheHit":true`)
		money := []string{"EUR", "USD", "JPY", ""}[r.IntN(4)]
		priced := put(2, `"costEstimateUsd":`+strconv.FormatFloat(cost, 'f', -1, 64))
		if money != "" {
			put(1, `"currency":"`+money+`"`)
		}
		put(3, fmt.Sprintf(`"totalTokens":%d`, input+output))
		put(3, `"nodeId":"n1"`)
		read, written := r.Int64N(300), r.Int64N(300)
		reads, writes := put(3, fmt.Sprintf(`"cacheReadTokens":%d`, read)), put(3, fmt.Sprintf(`"cacheWriteTokens":%d`, written))
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		if !cached {
			log.input, log.output = log.input+input, log.output+output
			if reads {
				log.read += read
			}
			if writes {
				log.written += written
			}
			if priced && slices.Contains([]string{"", "USD"}, money) {
				log.cost, log.priced = log.cost+cost, true
			}
		}
		fmt.Fprintf(&lines, `{"eventId":"evt-0000000000-%04d","runId":"acme/run-000000000001","type":"provider.usage","payload":{%s},"timestamp":"2026-05-19T10:00:00.000Z","sequence":%d,"schemaVersion":1}`+"\n",
			i, strings.Join(members, ","), i)
	}
	log.lines = lines.String()
	return log
}
