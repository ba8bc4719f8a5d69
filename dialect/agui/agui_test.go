package agui_test

import (
	"testing"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect"
	"github.com/agentevents/agentevents/dialect/agui"
	"github.com/agentevents/agentevents/dialect/dialecttest"
)

// head begins the run of golden lines.
const head = `{"type":"RUN_STARTED","timestamp":1777971600000,"threadId":"t-1","runId":"run-1"}` + "\n"

// tail ends it.
const tail = "\n" + `{"type":"RUN_FINISHED","timestamp":1777971601000,"threadId":"t-1","runId":"run-1"}`

// suite is the dialect as the shared suite tests it.
var suite = dialecttest.Dialect{
	Name:    agui.Name,
	Decoder: func() agentevents.Decoder { return agui.NewDecoder(agui.Options{}) },
	Encoder: func() dialect.Encoder { return agui.NewEncoder(agui.EncoderOptions{}) },
	Strict:  func() agentevents.Decoder { return agui.NewDecoder(agui.Options{Strict: true}) },
	Unknown: `{"type":"NEW_THING","timestamp":1777971600250,"a":1.50}`,
	Golden:  golden,
}

func TestDialect(t *testing.T) { dialecttest.Run(t, suite) }

var golden = []dialecttest.Golden{
	{Name: "run", Lines: head +
		`{"type":"RUN_FINISHED","timestamp":1777971600250,"threadId":"t-1","runId":"run-1","result":{"a":1.50}}`},
	{Name: "input", Lines: `{"type":"RUN_STARTED","timestamp":1777971600000,"threadId":"t-1","runId":"run-1","input":{"threadId":"t-1","runId":"run-1","messages":[]},"protocolVersion":"1.0"}` + tail},
	{Name: "success", Lines: head +
		`{"type":"RUN_FINISHED","timestamp":1777971600250,"threadId":"t-1","runId":"run-1","outcome":{"type":"success"},"usage":[{"inputTokens":3}]}`},
	{Name: "cancelled", Lines: head +
		`{"type":"RUN_FINISHED","timestamp":1777971600250,"threadId":"t-1","runId":"run-1","outcome":{"type":"cancelled"}}`},
	{Name: "interrupt", Lines: head +
		`{"type":"RUN_FINISHED","timestamp":1777971600250,"threadId":"t-1","runId":"run-1","outcome":{"type":"interrupt","interrupts":[{"id":"i-1","reason":"ask"}]}}` + "\n" +
		`{"type":"RUN_STARTED","timestamp":1777971600500,"threadId":"t-1","runId":"run-1"}` + tail},
	{Name: "error", Lines: head +
		`{"type":"RUN_ERROR","timestamp":1777971600250,"message":"no disk","code":"io","usage":[{"provider":"p","model":"m-1","inputTokens":9,"outputTokens":4,"cachedInputTokens":2},{"model":"m-2","outputTokens":1}]}`},
	{Name: "step", Lines: head +
		`{"type":"STEP_STARTED","timestamp":1777971600250,"stepName":"plan"}` + "\n" +
		`{"type":"STEP_FINISHED","timestamp":1777971600500,"stepName":"plan"}` + tail},
	{Name: "text", Lines: head +
		`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"assistant"}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m-1","delta":"The "}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600500,"messageId":"m-1","delta":"end."}` + "\n" +
		`{"type":"TEXT_MESSAGE_END","timestamp":1777971600750,"messageId":"m-1"}` + tail},
	{Name: "text of a sub-agent, started oddly", Lines: head +
		`{"messageId":"m-1","subagentRunId":"coder","type":"TEXT_MESSAGE_START"}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"subagentRunId":"coder","messageId":"m-1","delta":"The "}` + "\n" +
		`{"type":"TEXT_MESSAGE_END","timestamp":1777971600750,"subagentRunId":"coder","messageId":"m-1"}` + tail},
	{Name: "user", Lines: head +
		`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"user"}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m-1","delta":"Go"}` + "\n" +
		`{"type":"TEXT_MESSAGE_END","timestamp":1777971600750,"messageId":"m-1"}` + tail,
		Written: head +
			`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"user"}` + "\n" +
			`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600750,"messageId":"m-1","delta":"Go","metadata":{"agentevents":"made"}}` + "\n" +
			`{"type":"TEXT_MESSAGE_END","timestamp":1777971600750,"messageId":"m-1"}` + tail},
	{Name: "user, all at one time", Lines: head +
		`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"user"}` + "\n" +
		`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m-1","delta":"Go"}` + "\n" +
		`{"type":"TEXT_MESSAGE_END","timestamp":1777971600250,"messageId":"m-1"}` + tail,
		Written: head +
			`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"user"}` + "\n" +
			`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m-1","delta":"Go","metadata":{"agentevents":"made"}}` + "\n" +
			`{"type":"TEXT_MESSAGE_END","timestamp":1777971600250,"messageId":"m-1"}` + tail},
	{Name: "reasoning", Lines: head +
		`{"type":"REASONING_START","timestamp":1777971600250,"messageId":"r-1"}` + "\n" +
		`{"type":"REASONING_MESSAGE_START","timestamp":1777971600250,"messageId":"r-1","role":"reasoning"}` + "\n" +
		`{"type":"REASONING_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"r-1","delta":"Read first."}` + "\n" +
		`{"type":"REASONING_MESSAGE_END","timestamp":1777971600250,"messageId":"r-1"}` + "\n" +
		`{"type":"REASONING_END","timestamp":1777971600250,"messageId":"r-1"}` + tail},
	{Name: "call", Lines: head +
		`{"type":"TOOL_CALL_START","timestamp":1777971600250,"toolCallId":"c-1","toolCallName":"Read","parentMessageId":"m-1"}` + "\n" +
		`{"type":"TOOL_CALL_ARGS","timestamp":1777971600250,"toolCallId":"c-1","delta":"{\"path\":"}` + "\n" +
		`{"type":"TOOL_CALL_ARGS","timestamp":1777971600250,"toolCallId":"c-1","delta":"\"a.go\"}"}` + "\n" +
		`{"type":"TOOL_CALL_END","timestamp":1777971600500,"toolCallId":"c-1"}` + "\n" +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971600750,"toolCallId":"c-1","messageId":"c-1-result","content":"{\"lines\":120}"}` + tail},
	{Name: "result of a failed call", Lines: head +
		`{"type":"TOOL_CALL_START","timestamp":1777971600500,"toolCallId":"c-1","toolCallName":"Bash"}` + "\n" +
		`{"type":"TOOL_CALL_END","timestamp":1777971600500,"toolCallId":"c-1"}` + "\n" +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971600750,"toolCallId":"c-1","messageId":"m-2","content":"exit status 1","metadata":{"agentevents":{"absent":["result"],"status":"error","error":{"message":"exit status 1"}}},"role":"tool"}` + tail},
	{Name: "result in a later run", Lines: head +
		`{"type":"TOOL_CALL_START","timestamp":1777971600500,"toolCallId":"c-1","toolCallName":"Deploy"}` + "\n" +
		`{"type":"TOOL_CALL_END","timestamp":1777971600500,"toolCallId":"c-1"}` + tail + "\n" +
		`{"type":"RUN_STARTED","timestamp":1777971602000,"threadId":"t-1","runId":"run-2"}` + "\n" +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971602250,"toolCallId":"c-1","messageId":"c-1-result","content":"done"}` + "\n" +
		`{"type":"RUN_FINISHED","timestamp":1777971602250,"threadId":"t-1","runId":"run-2"}`},
	{Name: "result of a call that nothing names", Lines: head +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971600250,"toolCallId":"c-1","messageId":"c-1-result","content":"done"}` + tail},
	{Name: "result after an interrupt", Lines: head +
		`{"type":"TOOL_CALL_START","timestamp":1777971600500,"toolCallId":"c-1","toolCallName":"Deploy"}` + "\n" +
		`{"type":"TOOL_CALL_END","timestamp":1777971600500,"toolCallId":"c-1"}` + "\n" +
		`{"type":"RUN_FINISHED","timestamp":1777971600500,"threadId":"t-1","runId":"run-1","outcome":{"type":"interrupt","interrupts":[{"id":"i-1","reason":"ask"}]}}` + "\n" +
		`{"type":"RUN_STARTED","timestamp":1777971600750,"threadId":"t-1","runId":"run-1"}` + "\n" +
		`{"type":"TOOL_CALL_RESULT","timestamp":1777971600750,"toolCallId":"c-1","messageId":"c-1-result","content":"done"}` + tail},
	{Name: "state", Lines: head +
		`{"type":"STATE_SNAPSHOT","timestamp":1777971600250,"snapshot":{"tasks":{}}}` + "\n" +
		`{"type":"STATE_DELTA","timestamp":1777971600500,"delta":[{"op":"add","path":"/tasks/open","value":[1.50]}]}` + "\n" +
		`{"type":"STATE_DELTA","timestamp":1777971600500,"delta":[{"op":"remove","path":"/tasks/open"}]}` + tail},
	{Name: "state without a patch", Lines: head +
		`{"type":"STATE_DELTA","timestamp":1777971600500,"delta":[{"op":"move","from":"/a","path":"/b"}]}` + tail},
	{Name: "sub-agent", Lines: head +
		`{"type":"SUBAGENT_STARTED","timestamp":1777971600250,"subagentRunId":"coder","name":"coder","description":"Write it","parentToolCallId":"c-1"}` + "\n" +
		`{"type":"SUBAGENT_STARTED","timestamp":1777971600250,"subagentRunId":"tester","name":"The tester","parentSubagentRunId":"coder"}` + "\n" +
		`{"type":"SUBAGENT_ERROR","timestamp":1777971600500,"subagentRunId":"tester","message":"no tests","code":"none"}` + "\n" +
		`{"type":"SUBAGENT_FINISHED","timestamp":1777971600500,"subagentRunId":"coder","result":{"files":2}}` + tail},
	{Name: "other types", Lines: head +
		`{"type":"MESSAGES_SNAPSHOT","timestamp":1777971600250,"messages":[]}` + "\n" +
		`{"type":"ACTIVITY_SNAPSHOT","timestamp":1777971600250,"messageId":"a-1","activityType":"PLAN","content":{}}` + "\n" +
		`{"type":"RAW","timestamp":1777971600250,"event":{"a":1.50},"metadata":{"x":1}}` + "\n" +
		`{"type":"CUSTOM","timestamp":1777971600250,"name":"progress","value":50}` + tail},
	{Name: "kinds of ours", Lines: head +
		`{"type":"CUSTOM","timestamp":1777971600250,"subagentRunId":"planner","name":"agentevents.agent.started","value":{"task":"Plan"}}` + "\n" +
		`{"type":"CUSTOM","timestamp":1777971600250,"name":"agentevents.usage.observed","value":{"model":"model-a","usage":{"inputTokens":1200,"outputTokens":340}}}` + "\n" +
		`{"type":"CUSTOM","timestamp":1777971600250,"name":"agentevents.x-vendor.new","value":{"a":1.50}}` + tail},
	{Name: "no times", Lines: `{"type":"RUN_STARTED","threadId":"t-1","runId":"run-1"}` + "\n" +
		`{"type":"TOOL_CALL_START","toolCallId":"c-1","toolCallName":"Read"}` + "\n" +
		`{"type":"TOOL_CALL_ARGS","toolCallId":"c-1","delta":"{}"}` + "\n" +
		`{"type":"TOOL_CALL_END","toolCallId":"c-1"}` + "\n" +
		`{"type":"REASONING_MESSAGE_START","messageId":"r-1","role":"reasoning"}` + "\n" +
		`{"type":"REASONING_MESSAGE_END","messageId":"r-1","x":{}}` + "\n" +
		`{"type":"RUN_FINISHED","threadId":"t-1","runId":"run-1"}`},
	{Name: "chunks", Lines: head +
		`{"type":"TEXT_MESSAGE_CHUNK","timestamp":1777971600250,"messageId":"m-1","delta":"The "}` + "\n" +
		`{"type":"TEXT_MESSAGE_CHUNK","timestamp":1777971600500,"delta":"end."}` + "\n" +
		`{"type":"RUN_FINISHED","timestamp":1777971600750,"threadId":"t-1","runId":"run-1"}`,
		Written: head +
			`{"type":"TEXT_MESSAGE_START","timestamp":1777971600250,"messageId":"m-1","role":"assistant"}` + "\n" +
			`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600250,"messageId":"m-1","delta":"The "}` + "\n" +
			`{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971600500,"messageId":"m-1","delta":"end."}` + "\n" +
			`{"type":"TEXT_MESSAGE_END","timestamp":1777971600500,"messageId":"m-1"}` + "\n" +
			`{"type":"RUN_FINISHED","timestamp":1777971600750,"threadId":"t-1","runId":"run-1"}`},
}
