package scale

// Shapes returns the shapes that a log may have without limit.
func Shapes() []Shape {
	return []Shape{
		{Name: "agents", parts: []part{
			each(`agent.started "agentId":"a$"`),
		}},
		{Name: "sub-agents one after the other", parts: []part{
			once(`agent.started "agentId":"main"`),
			each(`agent.started "agentId":"a$","parentAgentId":"main"`, `agent.ended "agentId":"a$"`),
		}},
		{Name: "starts of one agent", parts: []part{
			each(`agent.started "agentId":"a"`, `agent.ended "agentId":"a"`),
		}},
		{Name: "attempts of one agent, with usage, and a sub-agent in each", parts: []part{
			each(`agent.started "agentId":"a"`, `usage.observed "agentId":"a","payload":{"model":"m","usage":{"inputTokens":1,"outputTokens":1}}`,
				`agent.started "agentId":"b$","parentAgentId":"a"`, `agent.ended "agentId":"a"`),
		}},
		{Name: "running totals", parts: []part{
			each(`agent.started "agentId":"a"`, `agent.ended "agentId":"a","payload":{"modelUsage":{"m":{"inputTokens":1,"outputTokens":1}},"cumulative":true}`),
		}},
		{Name: "models that are reported", parts: []part{
			each(`usage.observed "agentId":"a","payload":{"model":"m$","usage":{"inputTokens":1,"outputTokens":1}}`),
		}},
		{Name: "parents above parents, with usage", parts: []part{
			each(`agent.started "agentId":"a$","parentAgentId":"a$-"`),
			backwards(`agent.ended "agentId":"a$","payload":{"modelUsage":{"m":{"inputTokens":1,"outputTokens":1}}}`),
		}},
		{Name: "models", parts: []part{
			each(`agent.started "agentId":"a$"`, `agent.ended "agentId":"a$","payload":{"modelUsage":{"m$":{"inputTokens":1,"outputTokens":1}}}`),
		}},
		{Name: "models of one agent", parts: []part{
			once(`agent.started "agentId":"a"`, `agent.ended "agentId":"a","payload":{"modelUsage":{<"m$":{"inputTokens":1,"outputTokens":1}>}}`),
		}},
		{Name: "steps of an agent", parts: []part{
			once(`agent.started "agentId":"a"`),
			each(`agent.text "agentId":"a","step":$,"payload":{"text":"x"}`),
		}},
		{Name: "deltas of one block", parts: []part{
			once(`agent.started "agentId":"a"`),
			each(`agent.text.delta "agentId":"a","payload":{"blockId":"b","delta":"word ","index":$}`),
		}},
		{Name: "blocks", parts: []part{
			once(`agent.started "agentId":"a"`),
			each(`agent.text.delta "agentId":"a","payload":{"blockId":"b$","delta":"word "}`),
		}},
		{Name: "open calls", parts: []part{
			each(called),
		}},
		{Name: "calls returned in their order", parts: []part{
			each(called), each(returned),
		}},
		{Name: "calls returned in reverse", parts: []part{
			each(called), backwards(returned),
		}},
		{Name: "open model calls", parts: []part{
			each(asked),
		}},
		{Name: "model calls returned in reverse", parts: []part{
			each(asked), backwards(answered),
		}},
		{Name: "reports about model calls", parts: []part{
			each(asked, `usage.observed "agentId":"a","payload":{"modelCallId":"c$","usage":{"inputTokens":1,"outputTokens":1}}`), each(answered),
		}},
		{Name: "tools", parts: []part{
			each(`agent.toolReturned "agentId":"a","payload":{"callId":"c$","toolId":"t$","status":"ok","oneEvent":true}`),
		}},
		{Name: "approvals", parts: []part{
			each(`approval.requested "payload":{"approvalId":"p$"}`), each(`approval.granted "payload":{"approvalId":"p$"}`),
		}},
		{Name: "approvals of one agent", parts: []part{
			once(`agent.started "agentId":"a"`),
			each(`approval.requested "agentId":"a","payload":{"approvalId":"p$","callId":"c$"}`), each(called), backwards(returned),
		}},
		{Name: "clarifications about one call", parts: []part{
			once(`agent.started "agentId":"a"`),
			each(`clarification.requested "agentId":"a","payload":{"interruptId":"i$","questions":[],"callId":"c"}`),
			each(`clarification.resolved "payload":{"interruptId":"i$"}`),
		}},
		{Name: "one approval, asked again and again", parts: []part{
			each(`approval.requested "payload":{"approvalId":"p"}`),
		}},
		{Name: "clarifications", parts: []part{
			each(`clarification.requested "payload":{"interruptId":"i$","questions":[]}`), each(`clarification.resolved "payload":{"interruptId":"i$"}`),
		}},
		{Name: "inbox commands", parts: []part{
			each(`command.received "payload":{"command":{"type":"send","runId":"r","message":"x"}}`),
			each(`command.consumed "payload":{"eventId":"e$"}`),
		}},
		{Name: "handoffs", parts: []part{
			each(`handoff.requested "payload":{"handoffId":"h$","from":{"agentId":"a"},"to":{"agentId":"b"}}`),
			each(`handoff.accepted "payload":{"handoffId":"h$","from":{"agentId":"a"},"to":{"agentId":"b"}}`),
		}},
		{Name: "handoffs to agents that then act", parts: []part{
			each(`agent.handoff "payload":{"from":{"agentId":"a"},"to":{"agentId":"b$"}}`), backwards(`agent.text "agentId":"b$","payload":{"text":"x"}`),
		}},
		{Name: "handoffs without an id", parts: []part{
			each(`handoff.requested "payload":{"from":{"agentId":"a"},"to":{"agentId":"b"}}`),
			each(`handoff.accepted "payload":{"from":{"agentId":"a"},"to":{"agentId":"b"}}`),
		}},
		{Name: "turns", parts: []part{
			each(`turn.started "agentId":"a","payload":{"turn":$}`), each(`turn.ended "agentId":"a","payload":{"turn":$}`),
		}},
		{Name: "turns without a number", parts: []part{
			each(`turn.started "agentId":"a"`), each(`turn.ended "agentId":"a"`),
		}},
		{Name: "steps", parts: []part{
			each(`step.started "agentId":"a","payload":{"stepId":"s$"}`), backwards(`step.ended "agentId":"a","payload":{"stepId":"s$"}`),
		}},
		{Name: "starts of one step", parts: []part{
			each(`step.started "agentId":"a","payload":{"stepId":"s"}`), each(`step.ended "agentId":"a","payload":{"stepId":"s"}`),
		}},
		{Name: "turns and steps of spans", parts: []part{
			each(`turn.started "spanId":"t$"`, `step.started "spanId":"s$","payload":{"stepId":"x"}`),
			each(`turn.ended "spanId":"t$"`, `step.ended "spanId":"s$","payload":{"stepId":"y"}`),
		}},
		{Name: "messages", parts: []part{
			each(message),
		}},
		{Name: "retractions", parts: []part{
			each(message), each(`event.retracted "payload":{"eventIds":["e$"]}`),
		}},
		{Name: "retractions of what came last", parts: []part{
			each(message), backwards(`event.retracted "payload":{"eventIds":["e$"]}`),
		}},
		{Name: "one retraction of all", parts: []part{
			each(message), once(`event.retracted "payload":{"eventIds":[<"e$">]}`),
		}},
		{Name: "nodes", parts: []part{
			each(`node.started "nodeId":"n$"`), each(`node.completed "nodeId":"n$","payload":{"outputs":{}}`),
		}},
		{Name: "executions of one node", parts: []part{
			each(`node.started "nodeId":"n"`), each(`node.completed "nodeId":"n","payload":{"outputs":{}}`),
		}},
		{Name: "nodes and edges of a definition", parts: []part{
			once(`run.started "payload":{"definition":{"nodes":[<"n$">],"edges":[<{"from":"n$-","to":"n$"}>]}}`),
		}},
		{Name: "edges", parts: []part{
			each(`edge.fired "payload":{"from":"n$-","to":"n$"}`, `loop.iterated "payload":{"iteration":1}`),
		}},
		{Name: "keys of the state", parts: []part{
			each(`state.patched "payload":{"op":"set","path":"k$","value":1}`),
		}},
		{Name: "keys of an object of the state", parts: []part{
			each(`state.patched "payload":{"op":"set","path":"s.k$","value":1}`),
		}},
		{Name: "keys removed from the state", parts: []part{
			each(`state.patched "payload":{"op":"set","path":"s.k$","value":1}`), each(`state.patched "payload":{"op":"remove","path":"s.k$"}`),
		}},
		{Name: "elements of a list of the state", parts: []part{
			once(`state.patched "payload":{"op":"set","path":"l","value":[]}`),
			each(`state.patched "payload":{"op":"set","path":"l.$.k","value":1}`),
		}},
		{Name: "levels of the state", parts: []part{
			each(`state.patched "payload":{"op":"set","path":"$/","value":{"a":1}}`),
		}},
		{Name: "keys of one merge", parts: []part{
			once(`state.patched "payload":{"op":"set","path":"s.x","value":{}}`, `state.patched "payload":{"op":"merge","path":"s.x","value":{<"k$":1>}}`),
		}},
		{Name: "sets and merges in turn", parts: []part{
			each(`state.patched "payload":{"op":"merge","path":"s.x","value":{"k$":1}}`, `state.patched "payload":{"op":"set","path":"s.x.k$.y","value":1}`),
		}},
		{Name: "resumes of a run of many agents and nodes", parts: []part{
			each(`agent.started "agentId":"a$"`), each(`node.started "nodeId":"n$"`), each(`run.resumed`),
		}},
		{Name: "phases", parts: []part{
			each(`workflow.phase.started "workflowId":"w","phase":"p$"`), each(`workflow.phase.completed "workflowId":"w","phase":"p$"`),
		}},
		{Name: "passages through one phase", parts: []part{
			each(`workflow.phase.started "workflowId":"w","phase":"p"`), each(`agent.started "agentId":"a$","workflowId":"w","phase":"p"`),
			each(`workflow.phase.completed "workflowId":"w","phase":"p"`),
		}},
		{Name: "workflows", parts: []part{
			each(`workflow.phase.started "workflowId":"w$","phase":"p"`), each(`workflow.phase.completed "workflowId":"w$","phase":"p"`),
		}},
		{Name: "audits, tasks and usage", parts: []part{
			each(`audit.checked "agentId":"a","payload":{"checkpointId":"audit:x","result":"pass","durationMs":1}`,
				`agent.task.assigned "agentId":"a","taskId":"t$","payload":{"goal":"x"}`,
				`usage.observed "agentId":"a","payload":{"usage":{"inputTokens":1,"outputTokens":1}}`),
		}},
		{Name: "unknown kinds", parts: []part{
			each(`x.k$`),
		}},
		{Name: "extra members of one event", parts: []part{
			once(`agent.text <"x$":1>,"agentId":"a","payload":{"text":"x"}`),
		}},
		{Name: "runs", parts: []part{
			each(`run.started@r$`),
		}},
		{Name: "ended runs", parts: []part{
			each(`run.completed@r$`),
		}},
		{Name: "late events of ended runs", parts: []part{
			each(`run.completed@r$`), each(`agent.text@r$ "agentId":"a","marks":["late"],"payload":{"text":"x"}`),
		}},
		{Name: "ends of a run of many agents", Refused: true, parts: []part{
			each(`agent.started "agentId":"a$"`), each(`run.completed`),
		}},
		{Name: "violations", Refused: true, parts: []part{
			each(`approval.granted "payload":{"approvalId":"p$"}`),
		}},
		{Name: "repeated events", Refused: true, parts: []part{
			twice(called),
		}},
	}
}

const (
	called   = `agent.toolCalled "agentId":"a","payload":{"callId":"c$","toolId":"t"}`
	returned = `agent.toolReturned "agentId":"a","payload":{"callId":"c$","toolId":"t","status":"ok"}`
	asked    = `model.called "agentId":"a","payload":{"modelCallId":"c$","model":"m"}`
	answered = `model.returned "agentId":"a","payload":{"modelCallId":"c$","usage":{"inputTokens":1,"outputTokens":1}}`
	message  = `agent.message.created "payload":{"message":{"messageId":"m$","from":"a","content":"x","ts":1}}`
)
