// The questions of Q1 by DuckDB, in one pass over the log: the returned calls, the
// failures and the mean duration of each tool and agent, and the tokens and the cost of
// each model. An agent's model is that of its start. Only the members that the questions
// need have columns.
const { DuckDBInstance } = require('@duckdb/node-api');

const columns = `{type: 'VARCHAR', runId: 'VARCHAR', agentId: 'VARCHAR', payload:
  'STRUCT(model VARCHAR, toolId VARCHAR, status VARCHAR, durationMs DOUBLE, totalCostUsd DOUBLE, usage STRUCT(inputTokens BIGINT, outputTokens BIGINT))'}`;

const calls = (by) => `
  SELECT ${by} AS name, count(*)::INTEGER AS calls, (count(*) FILTER (status <> 'ok'))::INTEGER AS failed, avg(durationMs) AS meanMs
  FROM events WHERE type = 'agent.toolReturned' GROUP BY ${by}`;

const models = `
  SELECT s.model AS name, sum(e.inputTokens)::DOUBLE AS input, sum(e.outputTokens)::DOUBLE AS output, sum(e.totalCostUsd) AS cost
  FROM events e JOIN (SELECT runId, agentId, any_value(model) AS model FROM events WHERE type = 'agent.started' GROUP BY ALL) s USING (runId, agentId)
  WHERE e.type = 'agent.ended' AND e.inputTokens IS NOT NULL GROUP BY s.model`;

async function main(log) {
  const db = await DuckDBInstance.create(':memory:', { threads: '1' });
  const c = await db.connect();
  await c.run(`CREATE TEMP TABLE events AS
    SELECT type, runId, agentId, payload.model, payload.toolId, payload.status, payload.durationMs, payload.totalCostUsd,
      payload.usage.inputTokens, payload.usage.outputTokens
    FROM read_json('${log.replaceAll("'", "''")}', format = 'newline_delimited', columns = ${columns})
    WHERE type IN ('agent.started', 'agent.ended', 'agent.toolReturned')`);
  const answer = {};
  for (const [name, query] of [['tool', calls('toolId')], ['agent', calls('agentId')], ['model', models]]) {
    const rows = (await c.runAndReadAll(query)).getRowObjectsJS();
    answer[name] = Object.fromEntries(rows.map(({ name, ...figures }) => [name, figures]));
  }
  console.log(JSON.stringify(answer));
}

main(process.argv.at(-1)).catch((err) => {
  console.error(err);
  process.exit(1);
});
