package agentevents

// Values that several payloads share.

// Usage counts tokens. Fields that a provider does not report are absent, not
// zero. The names are those of the resume spec.
type Usage struct {
	InputTokens              int64      `json:"inputTokens" class:"meta" check:"min=0"`                       // tokens sent
	OutputTokens             int64      `json:"outputTokens" class:"meta" check:"min=0"`                      // tokens received
	TotalTokens              Opt[int64] `json:"totalTokens,omitzero" class:"meta" check:"min=0"`              // as reported, not computed
	CacheCreationInputTokens Opt[int64] `json:"cacheCreationInputTokens,omitzero" class:"meta" check:"min=0"` // tokens written to the cache
	CacheReadInputTokens     Opt[int64] `json:"cacheReadInputTokens,omitzero" class:"meta" check:"min=0"`     // tokens read from the cache
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
