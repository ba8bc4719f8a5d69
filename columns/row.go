package columns

import (
	"time"

	"github.com/agentevents/agentevents"
)

// A Row is one event in columns. [Table] tells the name, unit and source of each. Texts are empty and
// other values absent where the event has none. Texts may share memory with the event and the state of
// the [Tracker]: a row that is kept longer than its event has to be copied.
type Row struct {
	RunID     string    // the run
	Sequence  int64     // number of the event in its run
	EventID   string    // the event
	Time      time.Time // when it happened, in UTC; zero if the log does not tell
	Kind      string    // the type of the event
	SessionID string    // the session
	TaskID    string    // the task

	WorkflowID string                 // the workflow
	Phase      string                 // the phase of the workflow
	NodeID     string                 // the node
	NodeRunID  string                 // the execution of the node
	Step       agentevents.Opt[int64] // number of the step of the agent

	AgentID       string // the agent for which the event counts
	AgentName     string // its name for people
	AgentWas      string // the id that earlier rows have for the agent
	ParentAgentID string // the agent above it
	Actor         string // who acts instead of the agent

	Name        string // the tool, operation, turn, step, span or the agent that takes over
	Tool        string // the tool
	CallID      string // the call of a tool
	Model       string // the model
	ModelCallID string // the call of a model
	Provider    string // the provider of the model
	MessageID   string // the message

	Begins     int64                    // number of calls and handoffs that begin
	HandsOver  string                   // the agent that hands over in a handoff that begins
	RunStatus  string                   // the status of the run after the event, if it has changed
	Status     string                   // how it ended
	Failed     agentevents.Opt[bool]    // whether it failed
	DurationMS agentevents.Opt[float64] // how long it took, in milliseconds
	Result     string                   // the result, as JSON
	Error      string                   // the text of the error

	InputTokens      agentevents.Opt[int64]   // tokens sent that no cache was used for
	OutputTokens     agentevents.Opt[int64]   // tokens generated
	CacheReadTokens  agentevents.Opt[int64]   // tokens read from a cache
	CacheWriteTokens agentevents.Opt[int64]   // tokens written to a cache
	ReasoningTokens  agentevents.Opt[int64]   // the part of the generated tokens that is reasoning
	TotalTokens      agentevents.Opt[int64]   // all tokens, as stated
	Cost             agentevents.Opt[float64] // the cost
	Currency         string                   // of the cost
	UsageSplit       string                   // the changes by agent and model, as JSON
	TokensBefore     agentevents.Opt[int64]   // tokens of a context before it was compacted
	TokensAfter      agentevents.Opt[int64]   // tokens of it afterwards

	TraceID      string // the trace
	SpanID       string // the span
	ParentSpanID string // the span around it

	Line string // the whole event
}
