package agui

import "github.com/agentevents/agentevents/dialect"

// words are the reasons of the protocol's losses.
var words = dialect.Words{
	Why: map[string]string{
		"dropped": "the run is over",

		"/id":                                "the protocol has no ids of events",
		"/schemaVersion":                     "readers give the native version",
		"/sequence":                          "readers count the events of a run",
		"/runId":                             "no line names the run",
		"dropped /sessionId":                 "the thread of the run has the run's id",
		"/sessionId":                         "the thread of the run",
		"made up /timestamp":                 "1970 stands for a time that is not known",
		"altered /timestamp":                 "written in whole milliseconds",
		"made up /agentId":                   "readers take the run's agent",
		"dropped /marks":                     "the line has only the mark late",
		"made up /agui/*":                    "read as an extra member",
		"dropped /agui/*":                    "the line has no place for it",
		"dropped /agui/~1start":              "no block begins with it",
		"dropped /agui/~1run":                "no line of that run has it",
		"dropped /agui/outcome":              "the outcome is the open questions",
		"dropped /agui/metadata/agentevents": "the rest of the payload takes its place",
		"dropped /agui/~1timestamp":          "the event has a time",
		"made up /agui/messageId":            "another message has the usual id",

		"/payload/blockId":           "the id is unique in the run",
		"/payload/callId":            "the id is unique in the run",
		"/payload/message/messageId": "the id is unique in the run",
		"dropped /payload/index":     "the lines of the block's other deltas have none",
		"made up /payload":           "null",
	},
	Derived: []string{"/id", "/sequence", "/runId"},
	Every: []string{"/id", "/sequence", "/runId", "/sessionId",
		"/step", "/traceId", "/causationId", "/spanId", "/parentSpanId"},
}
