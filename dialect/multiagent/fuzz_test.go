package multiagent

import (
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// FuzzDecode checks the properties of [dialecttest.CheckLog].
func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		f.Add(g.line)
	}
	for _, payload := range []string{`{}`, `"x"`, `{"from":"a","to":{},"agent":"b","x":{"y":1}}`, `{"message":{"text":"a"},"role":""}`, `{"tool":"a","error":"b","status":"failed"}`,
		`{"agentId":null,"step":-1,"phase":"p","marks":["late","x"]}`, `{"round":"1","usage":{"inputTokens":null},"modelUsage":{"a":{}}}`} {
		for i := range format.Rows {
			f.Add(docLine(format.Rows[i].Type, payload))
		}
	}
	f.Add(`{"id":"0","runId":"0","payload":{}}`)
	f.Add(`{"type":"x","payload":1,"/x":2,"timestamp":"","schemaVersion":"2","id":""}`)
	f.Fuzz(func(t *testing.T, log string) { dialecttest.CheckLog(t, suite, log) })
}
