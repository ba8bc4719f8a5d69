package resume_test

import (
	"fmt"
	"log"
	"strings"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/resume"
)

// The context was compacted, and then the process died while a tool ran.
func ExampleConversation() {
	const lines = `
{"id":"e0","sequence":0,"timestamp":"2026-05-05T09:00:00Z","type":"agent.started","runId":"r1","agentId":"coder","payload":{"task":"Add /v2/health"}}
{"id":"e1","sequence":1,"timestamp":"2026-05-05T09:00:01Z","type":"agent.text","runId":"r1","agentId":"coder","payload":{"text":"I read the router."}}
{"id":"e2","sequence":2,"timestamp":"2026-05-05T09:00:02Z","type":"context.compacted","runId":"r1","agentId":"coder","payload":{"summary":"Add /v2/health. The router is in api/router.go."}}
{"id":"e3","sequence":3,"timestamp":"2026-05-05T09:00:03Z","type":"agent.text","runId":"r1","agentId":"coder","payload":{"text":"I test it."}}
{"id":"e4","sequence":4,"timestamp":"2026-05-05T09:00:04Z","type":"agent.toolCalled","runId":"r1","agentId":"coder","payload":{"callId":"c1","toolId":"vet"}}
{"id":"e5","sequence":5,"timestamp":"2026-05-05T09:00:05Z","type":"agent.toolCalled","runId":"r1","agentId":"coder","payload":{"callId":"c2","toolId":"test","arguments":{"package":"api"}}}
{"id":"e6","sequence":6,"timestamp":"2026-05-05T09:00:06Z","type":"agent.toolReturned","runId":"r1","agentId":"coder","payload":{"callId":"c1","toolId":"vet","status":"ok","result":"no problems","resultText":true}}
`
	messages, err := resume.Conversation(ae.NewReader(strings.NewReader(lines), ae.ReaderOptions{}).All(), "r1", "coder")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		if m.Role != resume.RoleTool {
			fmt.Printf("%s: %s\n", m.Role, m.Text)
		}
		for _, c := range m.Calls {
			fmt.Printf("  call %s: %s(%s)\n", c.ID, c.Tool, c.Arguments)
		}
		for _, r := range m.Results {
			fmt.Printf("  result %s: %q, %s\n", r.CallID, r.Status, r.Value)
		}
	}
	// Output:
	// user: Add /v2/health. The router is in api/router.go.
	// assistant: I test it.
	//   call c1: vet()
	//   call c2: test({"package":"api"})
	//   result c1: "ok", no problems
	//   result c2: "",
}
