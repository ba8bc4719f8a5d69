package agentevents

// Values that several payloads share.

// Usage counts tokens. Fields that a provider does not report are absent, not
// zero. The names are those of the resume spec.
//
// The three input counts do not overlap: their sum is the whole input. Most providers report an
// input that includes the cached tokens, and some an output without the reasoning: a recorder of
// such figures subtracts the cached tokens and adds the reasoning. A reader of a document takes its
// figures unchanged.
type Usage struct {
	InputTokens              int64      `json:"inputTokens" class:"meta" check:"min=0"`                       // tokens sent that no cache was used for
	OutputTokens             int64      `json:"outputTokens" class:"meta" check:"min=0"`                      // all tokens generated, reasoning included
	TotalTokens              Opt[int64] `json:"totalTokens,omitzero" class:"meta" check:"min=0"`              // as reported, not computed
	CacheCreationInputTokens Opt[int64] `json:"cacheCreationInputTokens,omitzero" class:"meta" check:"min=0"` // tokens sent and written to the cache
	CacheReadInputTokens     Opt[int64] `json:"cacheReadInputTokens,omitzero" class:"meta" check:"min=0"`     // tokens sent and read from the cache
	ReasoningOutputTokens    Opt[int64] `json:"reasoningOutputTokens,omitzero" class:"meta" check:"min=0"`    // the part of OutputTokens that is reasoning
	// CostUSD is the cost in US dollars, in [AgentEnded].ModelUsage. Other
	// payloads have a field of their own for the cost.
	CostUSD Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// ErrorInfo is an error as data (OpenWOP's ErrorEnvelope).
type ErrorInfo struct {
	Code      string    `json:"code,omitzero" class:"meta"`       // open word for programs, such as "not_found"
	Message   string    `json:"message" class:"content"`          // text for people
	Details   JSON      `json:"details,omitzero" class:"content"` // any JSON value
	Retryable Opt[bool] `json:"retryable,omitzero" class:"meta"`  // whether trying again may help

	extra extras
}
