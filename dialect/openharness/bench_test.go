package openharness

import (
	"strings"
	"testing"

	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// The lines of the root's benchmarks that the document has: a short one (T), much text
// (U), raw JSON (W), a delta (D).
var benchLines = []dialecttest.BenchLine{
	{Name: "T", Lines: of("node:start", "")},
	{Name: "U", Lines: of("agent:text", `,"content":"`+strings.Repeat(`ok  \texample.com/pkg\t0.012s\n`, 18)+`"`)},
	{Name: "W", Lines: of("agent:tool", `,"toolName":"db:query","toolInput":{"query":"select id, title from docs where title match ?","params":["agent events",42,true,null],`+
		`"options":{"limit":50,"offset":0,"order":[{"by":"score","dir":"desc"},{"by":"id","dir":"asc"}],"timeoutMs":1500.5},`+
		`"context":{"repo":"example/agentevents","ref":"refs/heads/main","paths":["internal/wire","cmd"],"depth":3}},"toolOutput":"ok","durationMs":20`)},
	{Name: "D", Lines: of("agent:text:delta", `,"content":"and then the next few words"`)},
}

func BenchmarkDecode(b *testing.B) { dialecttest.BenchmarkDecode(b, suite(false), benchLines) }

func BenchmarkEncode(b *testing.B) { dialecttest.BenchmarkEncode(b, suite(false), benchLines) }
