package openwop

import (
	"strconv"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/internal/engine"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// The use of a provider: one line for each call of a model.

// providerUsage is the type of the line. costEstimate is its member with the cost, and
// currency the one that takes the place of US dollars.
const (
	providerUsage = "provider.usage"
	costEstimate  = "costEstimateUsd"
	currency      = "currency"
)

// usageRow is the row of the type. Both schemas close the payload, so the agent has a place
// only under RFC0002, which has no schema.
func usageRow(p Profile, agent column) row {
	m := func(name, says string, form engine.Form) column {
		return column{Member: engine.May(name, says, form), p: p}
	}
	tokens := countFrom(0)
	return row{typ: providerUsage, kind: agentevents.KindUsageObserved, members: []column{
		m("provider", "", keptForm{}).or(made("unknown")),
		m("model", "model", text).or(made("unknown")),
		m("inputTokens", "usage/inputTokens", tokens), m("outputTokens", "usage/outputTokens", tokens),
		m("totalTokens", "usage/totalTokens", tokens),
		m(costEstimate, "costUsd", costForm{engine.AtLeast(RuleRange, engine.Value{}, 0)}), m(currency, "", currencyForm{}),
		m("cacheHit", "", keptForm{}),
		m("cacheReadTokens", "usage/cacheReadInputTokens", tokens),
		m("cacheWriteTokens", "usage/cacheCreationInputTokens", tokens),
		m("nodeId", "", nodeForm).written(),
		m("traceId", "", keptForm{}), agent,
	}}
}

// isUsage reports whether a payload of the type states the tokens of a call: it has both counts,
// and no member that its field cannot hold. A call that the cache answered
// repeats the counts of the first call, and used nothing. Others are events of an unknown kind.
func isUsage(payload string) bool {
	if jsonwire.Member(payload, "cacheHit") == "true" {
		return false
	}
	for _, of := range [...]struct {
		fits  func(raw string) bool
		names string
		need  bool
	}{
		{isCount, "inputTokens outputTokens", true}, {isCount, "totalTokens cacheReadTokens cacheWriteTokens", false},
		{isText, "provider model nodeId", false}, {isCost, costEstimate, false},
	} {
		for name := range strings.FieldsSeq(of.names) {
			raw := jsonwire.Member(payload, name)
			if absent := raw == "" || raw == "null" && name != "provider" && name != "model"; absent && of.need ||
				!absent && !of.fits(raw) {
				return false
			}
		}
	}
	return true
}

// isCount reports whether a value is a whole number that a count of tokens can hold.
func isCount(raw string) bool {
	var s jsonwire.Scanner
	s.Reset(raw)
	n, err := jsonwire.Whole[int64](&s)
	return err == nil && n >= 0
}

func isCost(raw string) bool {
	cost, err := strconv.ParseFloat(raw, 64)
	return err == nil && cost >= 0
}

// inDollars reports whether a cost with that currency is one in US dollars, as one without is.
func inDollars(currency string) bool {
	return currency == "" || currency == "null" || strings.EqualFold(jsonwire.Text(currency), "USD")
}

// A costForm is a cost in US dollars. One in another currency is an extra member.
type costForm struct{ engine.Form }

func (f costForm) Parse(r *engine.Reader, at any) error {
	if !inDollars(jsonwire.Member(jsonwire.Member(r.S.Text(), "payload"), currency)) {
		return engine.ErrMisfit
	}
	return f.Form.Parse(r, at)
}

func (f costForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if !at.(*agentevents.Opt[float64]).OK && !inDollars(w.Kept(currency)) {
		raw := w.Use(m.Name)
		return append(dst, raw...), raw != ""
	}
	return f.Form.Append(w, dst, m, at)
}

// A currencyForm is the currency of a cost.
type currencyForm struct{ keptForm }

func (f currencyForm) Append(w *engine.Writer, dst []byte, m *engine.Member, at any) ([]byte, bool) {
	if w.Ev.Payload.(*agentevents.UsageObserved).CostUSD.OK && !inDollars(w.Kept(m.Name)) {
		w.Use(m.Name)
		return dst, false
	}
	return f.keptForm.Append(w, dst, m, at)
}
