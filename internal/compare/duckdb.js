// Answers the questions of stats --by agent,model,tool about a log with DuckDB: calls, failures and
// the 95th percentile of each tool; calls, failures, tokens and cost of each agent; tokens and cost of
// each model. It reads the log once, in one thread, with columns for the members that they need. The
// usage of an agent is that of its end, or else the sum of what was observed; its model is that of
// its start. It prints JSON with the CPU seconds of all but the start of node.
const { DuckDBInstance } = require('@duckdb/node-api');

const wanted = ['agent.started', 'agent.ended', 'usage.observed', 'agent.toolCalled', 'agent.toolReturned'];
const envelope = { type: 'VARCHAR', runId: 'VARCHAR', agentId: 'VARCHAR', timestamp: 'TIMESTAMP' };
const payload = {
  model: 'VARCHAR', callId: 'VARCHAR', toolId: 'VARCHAR', status: 'VARCHAR', durationMs: 'DOUBLE', costUsd: 'DOUBLE', totalCostUsd: 'DOUBLE',
  usage: 'STRUCT(inputTokens BIGINT, outputTokens BIGINT, cacheReadInputTokens BIGINT)',
};

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
const struct = (members) => Object.entries(members).map(([name, type]) => `"${name}" ${type}`).join(', ');

const load = (log) => `
  CREATE TEMP TABLE events AS
  SELECT type, runId, agentId, timestamp, payload.model, payload.callId, payload.toolId, payload.status, payload.durationMs AS took,
    coalesce(payload.totalCostUsd, payload.costUsd) AS cost,
    payload.usage.inputTokens AS input, payload.usage.outputTokens AS output, payload.usage.cacheReadInputTokens AS cached
  FROM read_json(${quoted(log)}, format = 'newline_delimited',
    columns = {${Object.entries(envelope).map(([name, type]) => `"${name}": '${type}'`).join(', ')}, payload: ${quoted(`STRUCT(${struct(payload)})`)}})
  WHERE type IN (${wanted.map(quoted).join(', ')})`;

const calls = `
  CREATE TEMP TABLE calls AS
  SELECT runId, agentId, callId, any_value(toolId) AS tool,
    any_value(status) FILTER (type = 'agent.toolReturned') <> 'ok' AS failed,
    coalesce(any_value(took) FILTER (type = 'agent.toolReturned'),
      date_diff('millisecond', min(timestamp) FILTER (type = 'agent.toolCalled'), max(timestamp) FILTER (type = 'agent.toolReturned'))) AS took
  FROM events WHERE type IN ('agent.toolCalled', 'agent.toolReturned') GROUP BY ALL`;

const used = `
  CREATE TEMP TABLE used AS
  SELECT runId, agentId, any_value(model) FILTER (type = 'agent.started') AS model,
    ${['input', 'output', 'cached', 'cost'].map((figure) => `coalesce(any_value(${figure}) FILTER (type = 'agent.ended'), sum(${figure}) FILTER (type = 'usage.observed')) AS ${figure}`).join(',\n    ')}
  FROM events WHERE type IN ('agent.started', 'agent.ended', 'usage.observed') GROUP BY ALL`;

const usage = (by) => `SELECT ${by} AS name, sum(input)::BIGINT AS input, sum(output)::BIGINT AS output, sum(cached)::BIGINT AS cached, sum(cost) AS cost FROM used GROUP BY ${by}`;
const counts = (by) => `SELECT ${by} AS name, count(*) AS calls, count(*) FILTER (failed) AS failed, quantile_disc(took, 0.95) AS p95 FROM calls GROUP BY ${by}`;

async function main(log) {
  const before = process.cpuUsage();
  const db = await DuckDBInstance.create(':memory:', { threads: '1' });
  const c = await db.connect();
  for (const statement of [load(log), calls, used]) await c.run(statement);
  const answer = { agent: {}, model: {}, tool: {} };
  for (const [by, query] of [['agent', usage('agentId')], ['model', usage('model')], ['tool', counts('tool')], ['agent', counts('agentId')]]) {
    for (const { name, ...figures } of (await c.runAndReadAll(query)).getRowObjectsJS()) {
      answer[by][name] = { ...answer[by][name], ...Object.fromEntries(Object.entries(figures).map(([k, v]) => [k, Number(v)])) };
    }
  }
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ cpuSeconds: (user + system) / 1e6, ...answer }));
}

main(process.argv.at(-1)).catch((err) => {
  console.error(err);
  process.exit(1);
});
