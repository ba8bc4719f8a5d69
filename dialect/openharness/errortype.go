package openharness

// The error types that the document lists for agent:error, as values of
// [agentevents.AgentErrored].ErrorType. Others are legal.
const (
	ErrorTypeToolUse   = "error_tool_use"  // a tool call failed
	ErrorTypeMaxTurns  = "error_max_turns" // the turn limit was reached
	ErrorTypeUser      = "error_user"      // the user rejected or cancelled something
	ErrorTypeNetwork   = "network_error"   // no connection
	ErrorTypeRateLimit = "rate_limit"      // the API refused the rate of requests
	ErrorTypeException = "exception"       // the stream broke
)
