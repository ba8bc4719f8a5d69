# The questions of Q1 by jq: the returned calls, the failures and the mean duration of each
# tool and agent, and the tokens and the cost of each model. It reads the lines of a log.
# An agent's model is that of its start.

def call($e): .calls += 1 | .ms += ($e.payload.durationMs // 0) | if $e.payload.status != "ok" then .failed += 1 else . end;
def tokens($p): .input += $p.usage.inputTokens | .output += $p.usage.outputTokens | .cost += $p.totalCostUsd;

reduce inputs as $e ({};
  if $e.type == "agent.toolReturned" then
    .tool[$e.payload.toolId] |= call($e) | .agent[$e.agentId] |= call($e)
  elif $e.type == "agent.started" then
    .models[$e.runId + "\u0000" + $e.agentId] = $e.payload.model
  elif $e.type == "agent.ended" and $e.payload.usage then
    .models[$e.runId + "\u0000" + $e.agentId] as $model | .model[$model] |= tokens($e.payload)
  else . end)
| {
    tool: (.tool | map_values({calls, failed: (.failed // 0), meanMs: (.ms / .calls)})),
    agent: (.agent | map_values({calls, failed: (.failed // 0), meanMs: (.ms / .calls)})),
    model
  }
