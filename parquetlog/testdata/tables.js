// Answers the tables of stats by agent, model and tool from Parquet files with DuckDB. It reads a list of
// folders as JSON from standard input, and prints the tables of each.
const { DuckDBInstance } = require('@duckdb/node-api');

const spent = ['input', 'output', 'cache_read', 'cache_write', 'reasoning'];
const members = JSON.stringify([{ model: 'VARCHAR', ...Object.fromEntries(spent.map((name) => [name, 'BIGINT'])), cost: 'DOUBLE', gone: 'BOOLEAN' }]);

// The changes by agent or by model: those of the row, or those of usage_split.
const changes = (list, name, is) => `
  SELECT run_id, sequence, agent_id, model AS of, ${spent.map((s) => `${s}_tokens AS ${s}`)}, cost, false AS gone
  FROM events WHERE input_tokens IS NOT NULL AND usage_split IS NULL AND ${is} IS NOT NULL
  UNION ALL
  SELECT run_id, sequence, agent_id, s.model, ${spent.map((s) => `s.${s}`)}, s.cost, s.gone
  FROM (SELECT run_id, sequence, agent_id, unnest(from_json(usage_split -> '${list}', '${members}')) AS s FROM events WHERE usage_split IS NOT NULL)`;

const views = (folder) => `
  CREATE OR REPLACE VIEW files AS FROM read_parquet('${folder.replaceAll("'", "''")}/*/*.parquet', hive_partitioning = true, hive_types = {day: DATE});
  CREATE OR REPLACE VIEW spans AS SELECT run_id, agent_was, any_value(agent_id) AS id, max(sequence) AS named FROM files WHERE agent_was IS NOT NULL GROUP BY ALL;
  CREATE OR REPLACE VIEW events AS SELECT f.* REPLACE (coalesce(s.id, f.agent_id) AS agent_id)
    FROM files AS f LEFT JOIN spans AS s ON s.run_id = f.run_id AND s.agent_was = f.agent_id AND f.sequence < s.named;
  CREATE OR REPLACE VIEW agents AS SELECT run_id, agent_id, arg_max(agent_name, sequence) AS agent FROM events WHERE agent_id IS NOT NULL GROUP BY ALL;
  CREATE OR REPLACE VIEW calls AS FROM events WHERE kind = 'agent.toolCalled' OR kind = 'agent.toolReturned' AND status IS NOT NULL;
  CREATE OR REPLACE VIEW answers AS
    SELECT run_id, agent_id, model, failed, duration_ms FROM events WHERE kind = 'model.returned'
    UNION ALL
    SELECT run_id, agent_id, model, NULL, NULL FROM events AS c WHERE kind = 'model.called' AND NOT EXISTS (
      FROM events AS r WHERE r.kind = 'model.returned' AND r.run_id = c.run_id AND r.agent_id IS NOT DISTINCT FROM c.agent_id
        AND r.model_call_id = c.model_call_id AND r.sequence > c.sequence);
  CREATE OR REPLACE VIEW by_agent AS ${changes('agents', 'agent_id', 'agent_id')};
  CREATE OR REPLACE VIEW by_model AS ${changes('models', 'model', 'model')};`;

const tools = (name, from) => `
  SELECT ${name} AS name, sum(begins)::BIGINT AS calls, count(*) FILTER (failed) AS failed, count(*) FILTER (failed IS NOT NULL) AS returned,
    avg(duration_ms) AS mean, quantile_disc(duration_ms, 0.95) AS p95 FROM ${from} GROUP BY ALL`;
const models = (name, from) => `
  SELECT ${name} AS name, count(*) AS model_calls, count(*) FILTER (failed) AS model_failed, avg(duration_ms) AS model_mean FROM ${from} GROUP BY ALL`;
const sums = `${spent.map((s) => `sum(coalesce(${s}, 0))::BIGINT AS ${s}`)}, sum(cost) AS cost`;

const queries = {
  tool: [`SELECT tool AS name, count(DISTINCT run_id) AS runs FROM calls GROUP BY ALL`, tools('tool', 'calls')],
  model: [
    `SELECT of AS name, count(*) FILTER (NOT gone) AS runs FROM (SELECT run_id, of, arg_max(gone, sequence) AS gone FROM by_model GROUP BY ALL) GROUP BY ALL`,
    `SELECT of AS name, ${sums} FROM by_model GROUP BY ALL`, `${models('model', 'answers WHERE model IS NOT NULL')}`,
  ],
  agent: [
    `SELECT agent AS name, count(*) AS runs FROM agents GROUP BY ALL`,
    tools('agent', 'calls JOIN agents USING (run_id, agent_id)'), models('agent', 'answers JOIN agents USING (run_id, agent_id)'),
    `SELECT agent AS name, ${sums} FROM by_agent JOIN agents USING (run_id, agent_id) GROUP BY ALL`,
  ],
};

async function main() {
  let text = '';
  for await (const part of process.stdin) text += part;
  const c = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  const answers = [];
  for (const folder of JSON.parse(text)) {
    for (const view of views(folder).split(';').filter((sql) => sql.trim())) await c.run(view);
    const tables = {};
    for (const [by, list] of Object.entries(queries)) {
      tables[by] = {};
      for (const query of list) {
        for (const { name, ...figures } of (await c.runAndReadAll(query)).getRowObjectsJS()) {
          const known = Object.entries(figures).filter(([, v]) => v !== null).map(([k, v]) => [k, Number(v)]);
          tables[by][name ?? ''] = { ...tables[by][name ?? ''], ...Object.fromEntries(known) };
        }
      }
    }
    const [{ days }] = (await c.runAndReadAll(`SELECT count(*) FILTER (day IS DISTINCT FROM (time AT TIME ZONE 'UTC')::DATE) AS days FROM events`)).getRowObjectsJS();
    answers.push({ tables, wrongDays: Number(days) });
  }
  console.log(JSON.stringify(answers));
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
