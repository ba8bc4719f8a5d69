package claude_test

import (
	"fmt"
	"strings"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/capture/claude"
)

func Example() {
	stdout := strings.NewReader(`{"type":"system","subtype":"init","uuid":"p1","session_id":"s1","model":"model-a"}
{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c1","content":"go.mod"}]}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"There is one file."}]}}
{"type":"result","subtype":"success","is_error":false,"result":"There is one file.","total_cost_usd":0.01}
`)
	reader := agentevents.NewReader(stdout, agentevents.ReaderOptions{
		Decoder: claude.NewDecoder(claude.Options{Prompt: agentevents.JSONString("What is here?")}),
	})
	runs, err := agentevents.FoldLog(reader, agentevents.FoldOptions{})
	if err != nil {
		fmt.Println(err)
	}
	for run := range runs.Drain() {
		fmt.Println(run.RunID, run.SessionID, run.Status, run.Tools["Bash"].Calls, run.Result)
	}
	// Output: p1 s1 completed 1 "There is one file."
}
