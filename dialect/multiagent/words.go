package multiagent

import (
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// words are the reasons of the document's losses.
var words = dialect.Words{
	Why: map[string]string{
		"/schemaVersion":                       "readers give the native version",
		"/sequence":                            "readers count lines",
		"altered /runId":                       sharedRun,
		"made up /id":                          "derived from run and sequence",
		"made up /timestamp":                   "1970 stands for a time that is not known",
		"made up /sessionId":                   "the run's id",
		"made up /traceId":                     "that of the run's event before, or derived from the run",
		"made up /spanId":                      "derived from run, agent and call",
		"made up /parentSpanId":                "the made-up span of the agent or call",
		"made up /actor":                       "the agent's id, or system",
		"dropped /actor":                       "readers take it for the agent",
		"made up /agentId":                     "readers take the actor, or who called, for the agent",
		"altered /agentId":                     "readers take the actor for the agent",
		"dropped /agentId":                     "readers take the actor, or nobody, for the agent",
		"dropped /phase":                       "without a workflow, and on lines of other types, a phase is the payload's own",
		"made up /phase":                       "the payload's own phase, because the event has a workflow now",
		"dropped /step":                        "it is below 0, or lines of this type have none",
		"made up /multiagent/*":                "read as an extra member",
		"dropped /multiagent/*":                "the line has no place for it",
		"/multiagent/schemaVersion":            "1.0",
		"dropped agent.started /payload/agent": "readers know the agent by its span",

		"altered /multiagent":                      "it is not an object",
		"made up /multiagent/~1payload~1handoffId": "empty, as readers would take the id of another handoff",

		"made up /payload":              "an empty object",
		"made up /payload/*":            "made up by readers",
		"made up /payload/oneEvent":     "made up by readers, unless a call of the span is open",
		"altered /payload/totals/steps": engine.UnseenSteps,
		"dropped /payload/answer":       "no member has it, only some types and extra members",
		"made up /payload/answer":       "the type or another member tells it",
		"made up /nodeId":               "made up by readers",
		"altered /payload/message/from": "readers make it up, as the payload has no place for it",
		"altered /payload/status":       "readers take a word for its meaning",
	},
	Derived: []string{"/sequence"},
	Notes:   []string{"/multiagent/~1as", "/multiagent/~1made"},
	Every: []string{"/sequence", "/runId", "made up /traceId", "made up /spanId",
		"made up /parentSpanId", "made up /sessionId", "made up /actor",
		"/multiagent/schemaVersion"},
}
