package kahn

import (
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/internal/engine"
)

// words are the reasons of the document's losses.
var words = dialect.Words{
	Why: map[string]string{
		"dropped agent.toolCalled": "the call never returned",
		"altered agent.toolCalled": "written with its return",

		"/id":                                 "the document has no event ids",
		"/schemaVersion":                      "readers give the native version",
		"/sequence":                           "readers count lines",
		"made up /timestamp":                  "1970 stands for a time that is not known",
		"altered /timestamp":                  "cut to milliseconds",
		"dropped agent.toolCalled /timestamp": "the line has the time of the return",
		"made up /agentId":                    "required; the name of the node, or the span of the start",
		"altered /agentId":                    "normalised, as it does not match " + PatternAgentID + ", or the span that its start has in the place of an id",
		"made up /step":                       "the step the agent is at",
		"made up /marks":                      "the line says that it is late",
		"dropped /marks":                      "the line has only the mark late",
		"made up /kahn/task":                  "written as an empty text",
		"made up /kahn/tool_name":             "written as an empty text",
		"made up /kahn/*":                     "read as an extra member",
		"dropped /kahn/*":                     "the line has no place for it",
		"altered /kahn/*":                     "the line has another value, which is made up",
		"dropped /kahn/agent_id":              "null stands for the run",

		"made up /payload":                               "an empty object",
		"/payload/callId":                                "the document has no call ids",
		"made up /payload/oneEvent":                      "the call and its return are one line",
		"made up /payload/status":                        "written as not ok",
		"altered /payload/status":                        "the document has only ok and not ok",
		"dropped /payload/arguments":                     "written as a summary, or the line has one",
		"dropped agent.toolReturned /payload/result":     "written as a summary, or the line has one",
		"made up /payload/argumentsSummary":              "the value's text",
		"made up /payload/resultSummary":                 "the value's text",
		"altered /payload/resultSummary":                 cut,
		"made up /payload/task":                          "the prompt",
		"made up /payload/resumed":                       "the run was resumed",
		"made up /payload/checkpointId":                  "required",
		"altered /payload/checkpointId":                  "normalised: it does not match " + PatternCheckpointID,
		"dropped /payload/evidence":                      "the document allows only an object",
		"made up /payload/outcome":                       "aborted with an error or a word or status of failure, partial with a word for a part, converged otherwise",
		"altered /payload/durationMs":                    "the time since the start",
		"made up agent.toolReturned /payload/durationMs": "the time since the call, or 0",
		"made up agent.ended /payload/durationMs":        "the time since the start, or 0",
		"made up /payload/totals":                        "counted by the encoder",
		"made up /payload/totals/steps":                  engine.UnseenSteps,
		"altered /payload/totals/steps":                  engine.UnseenSteps,
		"made up /payload/totals/toolCalls":              refusedCalls,
		"altered /payload/totals/toolCalls":              refusedCalls,
	},
	Derived: []string{"/id", "/sequence", "/payload/callId"},
	Every:   []string{"/id", "/sequence"},
}

const refusedCalls = "refused calls, and those of before the start, have a line and are counted"
