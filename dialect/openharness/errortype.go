package openharness

// Error types of agent:error that the document lists, for
// [agentevents.AgentErrored].ErrorType. The set is open.
const (
	ErrorTypeToolUse   = "error_tool_use"  // a tool call failed
	ErrorTypeMaxTurns  = "error_max_turns" // the turn limit was reached
	ErrorTypeUser      = "error_user"      // the user rejected or cancelled something
	ErrorTypeNetwork   = "network_error"   // no connection
	ErrorTypeRateLimit = "rate_limit"      // the API limits the rate
	ErrorTypeException = "exception"       // the stream itself broke
)
