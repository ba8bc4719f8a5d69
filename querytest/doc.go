// Package querytest tests programs that ask agents (package query) without a network: a
// mock answers from fixtures, which a recorder has made of real answers.
//
//	func TestReport(t *testing.T) {
//		em, rec := eventtest.Record(t)
//		ask := querytest.MockQuery(t, "testdata/report")
//		runReport(em, ask)
//		rec.Want(t, "writer agent.ended converged")
//	}
//
// To make the fixtures, run the program once with
//
//	ask := querytest.Record(provider, "testdata/report", querytest.RecordOptions{})
//
// or record a program of agents: agentevents record --output testdata/report -- claude -p …
//
// # Fixtures
//
// A folder has a file for each node that is asked, NODE.json, with its calls in order:
//
//	{"calls": [{
//	  "input": {"prompt": "Analyze the task list", "options": {"maxTurns": 10}},
//	  "output": {"text": "…", "usage": {"inputTokens": 150, "outputTokens": 200}, "durationMs": 1234, "sessionId": "s-1"},
//	  "events": [
//	    {"type": "agent:start", "sessionId": "s-1"},
//	    {"type": "agent:text", "content": "…"},
//	    {"type": "agent:complete", "result": "…"}
//	  ]
//	}]}
//
// The events are in one of three forms: events of the resume specification, as above; native events
// without the members that every run has of its own, as [Record] writes them; messages of the
// Claude SDK, as the recordings of that specification's own runtime have them. Members that events
// leave out come from input and output: session, prompt, model, usage, the end itself. [Schema] is
// the JSON Schema of a file.
//
// Mirrors: the resume specification, "Testing Infrastructure".
package querytest
