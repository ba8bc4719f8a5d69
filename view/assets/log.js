// The log: the head, and for each run the rows and the lines of its events.

// A row is [sequence, ms, agent, kind, subject, mark, status, text, change].
const [SEQ, MS, AGENT, KIND, SUBJECT, MARK, STATUS, TEXT, CHANGE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

async function unpack(id) {
  const packed = $(id).textContent;
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(packed) : Uint8Array.from(atob(packed), c => c.charCodeAt(0));
  $(id).textContent = "";
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

// parse splits the text into the head and the runs. A line stays a part of the text until it is shown.
function parse(text) {
  let at = 0;
  const line = () => { const end = text.indexOf("\n", at), s = text.slice(at, end); at = end + 1; return s; };
  const head = JSON.parse(line());
  head.runs = head.runs || [];
  for (const run of head.runs) {
    run.rows = Array.from({ length: run.events }, () => JSON.parse(line()));
    run.lines = Array.from({ length: run.events }, line);
    run.bySeq = new Map(run.rows.map((r, i) => [r[SEQ], i]));
    for (const k of ["kinds", "agents", "calls", "bars", "gaps", "attention", "items", "rules", "tables"]) run[k] = run[k] || [];
    index(run);
    run.points = checkpoints(run);
  }
  return head;
}

// index makes the maps of a run's head.
function index(run) {
  run.callAt = new Map(run.calls.map(c => [c.at, c]));
  run.returns = new Set(run.calls.map(c => c.end).filter(e => e >= 0));
}

const every = 512;

const fresh = () => ({ status: "pending", agents: {}, open: {}, questions: [], counters: {}, tree: {}, counted: -1 });

// apply makes the change of a row to a state. The parts of a state are never changed in place.
function apply(s, change, i) {
  if (!change) return s;
  const t = { ...s };
  if (change.s) t.status = change.s;
  if (change.a) t.agents = { ...s.agents, ...change.a };
  if (change.o) t.open = { ...s.open, ...change.o };
  if (change.q) t.questions = change.q.filter(q => q);
  if (change.c) { t.counters = change.c; t.counted = i; }
  if (change.t) t.tree = change.t;
  return t;
}

function checkpoints(run) {
  const points = [fresh()];
  let s = points[0];
  run.rows.forEach((r, i) => { s = apply(s, r[CHANGE], i); if ((i + 1) % every === 0) points.push(s); });
  return points;
}

// stateAt returns the state after the event with an index.
function stateAt(run, index) {
  const n = Math.floor((index + 1) / every);
  let s = run.points[n];
  for (let i = n * every; i <= index; i++) s = apply(s, run.rows[i][CHANGE], i);
  return s;
}

// agentOf returns the id of a row's agent. A row has its index in a page that is whole, and its id in one that goes on.
const agentOf = (run, r) => typeof r[AGENT] === "string" ? r[AGENT] : r[AGENT] < 0 ? "" : run.agents[r[AGENT]].id;
const nameOf = (run, id) => (run.agents.find(a => a.id === id) || { name: id }).name;
const agentName = (run, r) => r[AGENT] >= 0 ? run.agents[r[AGENT]].name : nameOf(run, agentOf(run, r));
const isDelta = kind => kind.endsWith(".delta");
