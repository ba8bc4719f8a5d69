// Runs statements and queries in ClickHouse's engine or in DuckDB. It reads JSON from standard input:
// {engine, sets, queries}. A set is a list of statements, after which all queries are asked.
// It prints the rows of each query after each set.

async function clickhouse() {
  const { Session } = require('chdb');
  const s = new Session();
  return {
    run: async (sql) => s.query(sql),
    ask: async (sql) => {
      const text = s.query(sql, 'JSONEachRow');
      return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
    },
    close: () => s.close(),
  };
}

async function duckdb() {
  const { DuckDBInstance } = require('@duckdb/node-api');
  const db = await DuckDBInstance.create(':memory:', { threads: '1' });
  const c = await db.connect();
  const plain = (v) => (v === null || typeof v === 'string' || typeof v === 'boolean' ? v : Number(typeof v === 'object' ? v.toString() : v));
  return {
    run: (sql) => c.run(sql),
    ask: async (sql) => (await c.runAndReadAll(sql)).getRowObjects().map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k, plain(v)]))),
    close: () => {},
  };
}

async function main() {
  let text = '';
  for await (const part of process.stdin) text += part;
  const { engine, sets, queries } = JSON.parse(text);
  const db = await { clickhouse, duckdb }[engine]();
  const step = async (sql, f) => {
    try {
      return await f(sql);
    } catch (err) {
      throw new Error(`${err.message}\n${sql.slice(0, 400)}`);
    }
  };
  const answers = [];
  for (const set of sets) {
    for (const sql of set) await step(sql, db.run);
    const rows = [];
    for (const sql of queries) rows.push(await step(sql, db.ask));
    answers.push(rows);
  }
  console.log(JSON.stringify(answers));
  db.close();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
