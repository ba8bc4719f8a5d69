package agentevents

// Values that stand inside several payloads.

// Usage counts tokens. Fields that a provider does not report are absent, not
// zero. The names are those of the resume spec.
type Usage struct {
	InputTokens              int64      `json:"inputTokens" class:"meta" check:"min=0"`                       // tokens sent
	OutputTokens             int64      `json:"outputTokens" class:"meta" check:"min=0"`                      // tokens received
	TotalTokens              Opt[int64] `json:"totalTokens,omitzero" class:"meta" check:"min=0"`              // as reported, not computed
	CacheCreationInputTokens Opt[int64] `json:"cacheCreationInputTokens,omitzero" class:"meta" check:"min=0"` // tokens written to the cache
	CacheReadInputTokens     Opt[int64] `json:"cacheReadInputTokens,omitzero" class:"meta" check:"min=0"`     // tokens read from the cache
	// CostUSD is in US dollars. It is used in [AgentEnded].ModelUsage, where
	// there is a cost per model; elsewhere cost has a field of its own.
	CostUSD Opt[float64] `json:"costUsd,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// ErrorInfo is an error on the wire; OpenWOP's ErrorEnvelope. Codes are open
// words such as "not_found".
type ErrorInfo struct {
	Code      string    `json:"code,omitzero" class:"meta"`       // machine-readable class
	Message   string    `json:"message" class:"content"`          // for people
	Details   JSON      `json:"details,omitzero" class:"content"` // anything more
	Retryable Opt[bool] `json:"retryable,omitzero" class:"meta"`  // whether trying again may help

	extra extras
}
