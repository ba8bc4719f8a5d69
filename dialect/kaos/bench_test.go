package kaos

import (
	"strconv"
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// The benchmark lines stress different things: a delta, usage, a tool call with
// arguments that opens and closes, a closing span with much text, and one with
// little.
var benchLines = []dialecttest.BenchLine{
	{Name: "text", Number: numbered, Lines: head + `"content":"and then the next few words","type":"text_delta"}`},
	{Name: "usage", Number: numbered, Lines: head + `"input_tokens":1024,"output_tokens":412,"total_tokens":1436,"cost_usd":0.0125,"source":"respond","type":"usage_observed"}`},
	{Name: "call", Number: numbered, Lines: spanLine("tool_call", "start", "tool.search", "null", "null", "null",
		`{"tool_name":"search","call_id":"call-1","arguments":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}}}`) + "\n" +
		spanLine("tool_call", "complete", "tool.search", "412.125", "null", "null", `{"tool_name":"search","call_id":"call-1","result_summary":"50 rows","is_error":false}`)},
	{Name: "complete", Number: numbered, Lines: spanLine("tool_call", "complete", "tool.Bash", "412.125", "null", "null",
		`{"tool_name":"Bash","call_id":"call-1","result_summary":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 16)+`","is_error":false}`)},
	{Name: "step", Number: numbered, Lines: spanLine("step", "complete", "step.s001", "412.125", "null", "null", `{"step_id":"s001","result_summary":"done","is_error":false}`)},
}

// numbered gives a line the number i.
func numbered(line string, i int) string {
	return strings.Replace(line, `"sequence":0`, `"sequence":`+strconv.Itoa(i), 1)
}

func BenchmarkDecode(b *testing.B) {
	dialecttest.BenchmarkDecode(b, suite(testOptions, encoderOptions), benchLines)
}

func BenchmarkEncode(b *testing.B) {
	dialecttest.BenchmarkEncode(b, suite(testOptions, encoderOptions), benchLines)
}
