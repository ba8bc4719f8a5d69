package agentevents

import "time"

// Resources and memory: tokens, budgets, caps, shared notes and memory.

// UsageObserved reports tokens and cost as they are spent. The fold sums the
// reports of an agent only when its end carries no usage; a Cumulative report
// replaces the sum so far.
//
// Mirrors: KAOS usage_observed.
type UsageObserved struct {
	Model      string       `json:"model,omitzero" class:"meta"`                 // model name
	Usage      Usage        `json:"usage" class:"meta"`                          // tokens
	CostUSD    Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"` // US dollars
	Source     string       `json:"source,omitzero" class:"meta"`                // who measured
	Cumulative bool         `json:"cumulative,omitzero" class:"meta"`            // a running total, not an increment

	extra extras
}

// BudgetExceeded says that a budget ran out.
//
// Mirrors: wiki budget.exceeded; KAOS budget_exceeded.
type BudgetExceeded struct {
	Budget string  `json:"budget" class:"meta" check:"required"` // cost, tokens, steps, replans, wall_clock, …
	Limit  float64 `json:"limit" class:"meta" check:"finite"`    // in the budget's own unit
	Actual float64 `json:"actual" class:"meta" check:"finite"`   // in the budget's own unit
	Reason string  `json:"reason,omitzero" class:"content"`      // free text

	extra extras
}

// CapBreached says that a cap of the host was reached; in OpenWOP also that
// an escalation was suppressed.
//
// Mirrors: OpenWOP cap.breached.
type CapBreached struct {
	Cap      string       `json:"cap" class:"meta" check:"required"`             // which cap; OpenWOP's kind
	Limit    Opt[float64] `json:"limit,omitzero" class:"meta" check:"finite"`    // in the cap's own unit
	Observed Opt[float64] `json:"observed,omitzero" class:"meta" check:"finite"` // in the cap's own unit

	extra extras
}

// BlackboardItemCreated writes an item of shared state.
//
// Mirrors: wiki blackboard.item.created.
type BlackboardItemCreated struct {
	ItemID      string             `json:"itemId" class:"id" check:"required"`            // id of the item
	ItemType    string             `json:"itemType" class:"meta" check:"required"`        // fact, hypothesis, artifact, decision, task; open
	Content     JSON               `json:"content" class:"content"`                       // any JSON
	SourceAgent string             `json:"sourceAgent,omitzero" class:"id"`               // who wrote it
	Confidence  Opt[float64]       `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	TTL         Opt[time.Duration] `json:"ttlMs,omitzero" class:"meta" check:"min=0"`     // milliseconds on the wire

	extra extras
}

// MemoryChanged says that an agent's memory changed.
//
// Mirrors: KAOS memory_event.
type MemoryChanged struct {
	Change     MemoryChange `json:"change" class:"meta"`                           // what happened
	Section    string       `json:"section,omitzero" class:"meta"`                 // which part of memory
	ItemCount  Opt[int]     `json:"itemCount,omitzero" class:"meta" check:"min=0"` // items touched
	Attributes JSON         `json:"attributes,omitzero" class:"content"`           // free object

	extra extras
}
