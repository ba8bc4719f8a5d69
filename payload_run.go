package agentevents

// Sessions and runs: the outermost things a log talks about. A session is a
// conversation, a run is one piece of work inside it.

// SessionStarted says that a conversation began. It may stand before
// [RunStarted].
//
// Mirrors: wiki session.started.
type SessionStarted struct {
	// Goal is what the session is for, in the words of whoever opened it.
	Goal string `json:"goal,omitzero" class:"content"`

	extra extras
}

// SessionCompleted says that a conversation ended. It may stand after the
// run's terminal event.
//
// Mirrors: wiki session.completed.
type SessionCompleted struct {
	// Status is the session's own word for how it ended; the document does not
	// list values, so any text is legal.
	Status string `json:"status,omitzero" class:"meta"`
	// Result is what the session produced.
	Result JSON `json:"result,omitzero" class:"content"`

	extra extras
}

// RunStarted opens a run. A log need not use it (KAHN has no such event), but
// where it is used nothing but session events precedes it (rule run-open).
//
// Mirrors: resume spec flow:start; OpenWOP run.started.
type RunStarted struct {
	// Name is the name of the flow or task; the resume spec's flowName.
	Name string `json:"name,omitzero" class:"meta"`
	// Inputs are the values the run was given.
	Inputs JSON `json:"inputs,omitzero" class:"content"`
	// Agent is the run's primary agent, when a single agent owns the run
	// (OpenWOP RunSnapshot.agent).
	Agent Opt[AgentRef] `json:"agent,omitzero" class:"meta"`
	// Definition describes the flow: an object with any of "nodes" (ids, or
	// objects with an "id"), "edges" (objects with "from", "to" and perhaps an
	// "id") and "state" (the initial state). The fold starts from it.
	Definition JSON `json:"definition,omitzero" class:"content"`

	extra extras
}

// RunPaused says that the run stopped for now and can be resumed.
//
// Mirrors: resume spec flow:paused; OpenWOP run.paused.
type RunPaused struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text

	extra extras
}

// RunResumed says that a paused or interrupted run goes on. After it every
// agent may be started again (rule agent-started-once).
//
// Mirrors: resume spec flow:resumed; OpenWOP run.resumed.
type RunResumed struct {
	// Message is what the agents are told on resume. Empty means the resume
	// spec's default, "continue".
	Message string `json:"message,omitzero" class:"content"`

	extra extras
}

// RunCompleted ends a run that did what it was for.
//
// Mirrors: resume spec flow:complete; OpenWOP run.completed.
type RunCompleted struct {
	Outputs JSON `json:"outputs,omitzero" class:"content"` // what the run produced

	extra extras
}

// RunFailed ends a run that could not do what it was for. In the resume spec
// this is flow:complete with status failed.
//
// Mirrors: resume spec flow:complete; OpenWOP run.failed.
type RunFailed struct {
	Error Opt[ErrorInfo] `json:"error,omitzero" class:"content"` // what went wrong

	extra extras
}

// RunCancelled ends a run that somebody stopped.
//
// Mirrors: resume spec flow:aborted; OpenWOP run.cancelled.
type RunCancelled struct {
	Reason string `json:"reason,omitzero" class:"content"` // why; free text

	extra extras
}
