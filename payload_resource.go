package agentevents

import "time"

// Resources and memory: tokens, budgets, caps, shared notes and memory.

// UsageObserved reports tokens and cost while an agent works. The fold adds the
// reports of an attempt up; a Cumulative report replaces the sum so far. The sum
// counts only when the attempt's end carries no usage: see [RunUsage].
//
// Mirrors: KAOS usage_observed.
type UsageObserved struct {
	// ModelCallID is the model call that the report is about. Tokens and cost that
	// the call's [ModelReturned] states, too, do not count again. Empty when the
	// report is about no single call, or about one that has no events.
	ModelCallID string       `json:"modelCallId,omitzero" class:"id"`
	Model       string       `json:"model,omitzero" class:"meta"`                 // model name as the provider spells it
	Usage       Usage        `json:"usage" class:"meta"`                          // tokens
	CostUSD     Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"` // US dollars
	Source      string       `json:"source,omitzero" class:"meta"`                // open word: the instrument
	// Cumulative means that the figures are running totals, not increments: totals of the model
	// call, or of the attempt if there is none.
	Cumulative bool `json:"cumulative,omitzero" class:"meta"`
	// Partial means that the figures are too low, because they were taken before the work was done.
	Partial bool `json:"partial,omitzero" class:"meta"`

	extra extras
}

// BudgetExceeded records that a budget ran out.
//
// Mirrors: wiki budget.exceeded; KAOS budget_exceeded.
type BudgetExceeded struct {
	Budget string  `json:"budget" class:"meta" check:"required"` // open word: cost, tokens, steps, replans, wall_clock, …
	Limit  float64 `json:"limit" class:"meta"`                   // the budget, in its own unit
	Actual float64 `json:"actual" class:"meta"`                  // the used amount, in the same unit
	Reason string  `json:"reason,omitzero" class:"content"`      // why; free text

	extra extras
}

// CapBreached records that a cap of the host is reached. In OpenWOP it also records that an
// escalation is suppressed.
//
// Mirrors: OpenWOP cap.breached.
type CapBreached struct {
	Cap      string       `json:"cap" class:"meta" check:"required"` // open word: name of the cap; OpenWOP's kind
	Limit    Opt[float64] `json:"limit,omitzero" class:"meta"`       // the cap, in its own unit
	Observed Opt[float64] `json:"observed,omitzero" class:"meta"`    // the measured amount, in the same unit

	extra extras
}

// BlackboardItemCreated writes an item to the state that the agents share. An
// item with the same id is replaced.
//
// Mirrors: wiki blackboard.item.created.
type BlackboardItemCreated struct {
	ItemID      string             `json:"itemId" class:"id" check:"required"`            // id of the item
	ItemType    string             `json:"itemType" class:"meta" check:"required"`        // open word: fact, hypothesis, artifact, decision, task
	Content     JSON               `json:"content" class:"content"`                       // required: any JSON value
	SourceAgent string             `json:"sourceAgent,omitzero" class:"id"`               // id of the agent that wrote the item
	Confidence  Opt[float64]       `json:"confidence,omitzero" class:"meta" check:"unit"` // in [0, 1]
	TTL         Opt[time.Duration] `json:"ttlMs,omitzero" class:"meta" check:"min=0"`     // how long the item is valid; milliseconds on the wire

	extra extras
}

// MemoryChanged records a change of an agent's memory.
//
// Mirrors: KAOS memory_event.
type MemoryChanged struct {
	Change     MemoryChange `json:"change" class:"meta"`                                 // required: the kind of change
	Section    string       `json:"section,omitzero" class:"meta"`                       // part of the memory, by name
	ItemCount  Opt[int]     `json:"itemCount,omitzero" class:"meta" check:"min=0"`       // number of items that changed
	Attributes JSON         `json:"attributes,omitzero" class:"content" broken:"object"` // free object

	extra extras
}
