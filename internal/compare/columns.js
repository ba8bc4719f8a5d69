// Answers the questions of duckdb.js from the Parquet files of a folder, which agentevents-parquet has
// written of the log: no call has to be joined, and no total has to be chosen. It prints JSON with the
// CPU seconds of all but the start of node.
const { DuckDBInstance } = require('@duckdb/node-api');

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
// Each query reads its columns once, and groups the rows by two things.
const usage = `
  SELECT agent_name AS agent, model, sum(input_tokens)::BIGINT AS input, sum(output_tokens)::BIGINT AS output, coalesce(sum(cache_read_tokens), 0)::BIGINT AS cached, sum(cost) AS cost
  FROM rows WHERE input_tokens IS NOT NULL GROUP BY GROUPING SETS ((agent_name), (model))`;
const counts = `
  SELECT agent_name AS agent, tool, sum(begins)::BIGINT AS calls, count(*) FILTER (failed) AS failed, quantile_disc(duration_ms, 0.95) AS p95
  FROM rows WHERE tool IS NOT NULL AND kind LIKE 'agent.tool%' GROUP BY GROUPING SETS ((agent_name), (tool))`;

async function main(folder) {
  const before = process.cpuUsage();
  const db = await DuckDBInstance.create(':memory:', { threads: '1' });
  const c = await db.connect();
  await c.run(`CREATE VIEW rows AS FROM read_parquet(${quoted(`${folder}/*/*.parquet`)}, hive_partitioning = true)`);
  const answer = { agent: {}, model: {}, tool: {} };
  for (const query of [usage, counts]) {
    for (const { agent, model, tool, ...figures } of (await c.runAndReadAll(query)).getRowObjectsJS()) {
      const [by, name] = Object.entries({ agent, model, tool }).find(([, name]) => name) ?? [];
      if (by) answer[by][name] = { ...answer[by][name], ...Object.fromEntries(Object.entries(figures).map(([k, v]) => [k, Number(v)])) };
    }
  }
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ cpuSeconds: (user + system) / 1e6, ...answer }));
}

main(process.argv.at(-1)).catch((err) => {
  console.error(err);
  process.exit(1);
});
