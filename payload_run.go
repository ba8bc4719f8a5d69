package agentevents

// Sessions and runs. A session is a conversation, a run is one piece of work
// inside it.

// SessionStarted opens a session. It may come before [RunStarted].
//
// Mirrors: wiki session.started.
type SessionStarted struct {
	// Goal is the purpose of the session, as free text.
	Goal string `json:"goal,omitzero" class:"content"`

	extra extras
}

// SessionCompleted closes a session. It may come after the run's terminal event.
//
// Mirrors: wiki session.completed.
type SessionCompleted struct {
	// Status is the outcome of the session. It is an open word: the wiki lists no values.
	Status string `json:"status,omitzero" class:"meta"`
	// Reason is why the session ended so; free text.
	Reason string `json:"reason,omitzero" class:"content"`
	// Result is the session's product; any JSON value.
	Result JSON `json:"result,omitzero" class:"content"`
	// Error is why the session failed.
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"`

	extra extras
}

// RunStarted opens a run. It is optional, since KAHN has no such event. Only
// session events may precede it (rule run-open).
//
// Mirrors: resume spec flow:start; OpenWOP run.started.
type RunStarted struct {
	// Name is the name of the flow or task; the resume spec's flowName.
	Name string `json:"name,omitzero" class:"meta"`
	// Inputs are the inputs of the run; any JSON value.
	Inputs JSON `json:"inputs,omitzero" class:"content"`
	// Agent is the run's primary agent, when one agent owns the run (OpenWOP
	// RunSnapshot.agent).
	Agent Opt[AgentRef] `json:"agent,omitzero" class:"meta"`
	// Definition describes the flow. The fold reads three members of it: "nodes"
	// (a list of ids, or of objects with an "id"), "edges" (a list of objects
	// with "from", "to" and an optional "id") and "state" (the initial state).
	Definition JSON `json:"definition,omitzero" class:"content"`
	// Lifecycle is the table that the agents' transitions keep. The emitter sets it:
	// to nothing for [LifecycleStrict]. See [RunState].
	Lifecycle Lifecycle `json:"lifecycle,omitzero" class:"meta"`

	extra extras
}

// RunPaused pauses a run. [RunResumed] resumes it.
//
// Mirrors: resume spec flow:paused; OpenWOP run.paused.
type RunPaused struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text

	extra extras
}

// RunResumed resumes a paused or interrupted run. After it every agent may start
// again (rule agent-started-once).
//
// Mirrors: resume spec flow:resumed; OpenWOP run.resumed.
type RunResumed struct {
	// Message is the prompt for the agents. Empty means the resume spec's default, "continue".
	Message string `json:"message,omitzero" class:"content"`

	extra extras
}

// RunCompleted closes a run that succeeded. No rule asks that its calls have returned: a tool may
// outlive the run, and its return is a late event then. [Run.Finish] first closes everything that
// is open.
//
// Mirrors: resume spec flow:complete; OpenWOP run.completed.
type RunCompleted struct {
	Outputs JSON `json:"outputs,omitzero" class:"content"` // the run's outputs; any JSON value
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// RunFailed closes a run that failed. In the resume spec it is flow:complete with
// status failed.
//
// Mirrors: resume spec flow:complete; OpenWOP run.failed.
type RunFailed struct {
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"` // the cause
	// FailedNodeID is the node whose failure the run failed with, if the log has no
	// [NodeFailed] of it. The fold shows the node as failed, with the error of the run.
	FailedNodeID string `json:"failedNodeId,omitzero" class:"id"`
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}

// RunCancelled closes a run that was stopped from outside.
//
// Mirrors: resume spec flow:aborted; OpenWOP run.cancelled.
type RunCancelled struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text
	// Refused is the number of the run's events that the emitter refused, since the
	// start or the last [Emitter.Resume]. The emitter fills it in when it is 0.
	Refused int `json:"refused,omitzero" class:"meta" check:"min=0"`

	extra extras
}
