// The panes. Each takes the app, whose cursor app.at is the index of an event in app.run.

const question = /^(approval|clarification)\.requested$/;
const isQuestion = r => question.test(kindOf(r));
let kindNames = [];
const kindOf = r => typeof r[KIND] === "string" ? r[KIND] : kindNames[r[KIND]] || "";

const jump = (app, at, text, mark) => at < 0 ? make("span", { class: cls(mark) }, visible(text)) :
  make("a", { href: "#" + link(app, at), class: cls(mark), onclick: e => { e.preventDefault(); app.goSeq(at); } }, visible(text));
const link = (app, seq) => "tab=" + app.tab + "&run=" + app.runs.indexOf(app.run) + "&seq=" + seq;

function drawFacts(app) {
  const r = app.run, bits = [];
  const add = (name, text, mark) => { if (text !== "" && text !== undefined) bits.push(make("span", {}, name ? name + " " : "", make("b", { class: cls(mark) }, visible(text)))); };
  add("", (sign(r.mark) + " " + r.status).trim(), r.mark);
  add("began", r.start); add("took", lasted(r.took)); add("", r.tokens); add("", r.cost);
  add("events", r.events); add("violations", r.violations || "", 3);
  bits.push(make("span", { class: "badge" }, app.head.redacted ? "redacted" + (app.head.masked ? ": " + app.head.masked + " events" : "") : "not redacted"));
  for (const l of app.head.logs) if (l.unread) bits.push(make("span", { class: "warn" }, visible(l.name) + ": " + l.unread + " lines cannot be read"));
  fill($("facts"), ...bits);
  $("heading").textContent = visible([r.name || r.id, r.why].filter(t => t).join(" — "));
}

function drawAgents(app) {
  const run = app.run, state = app.state;
  const tree = make("div", { role: "tree", "aria-label": "Agents" }, ...run.agents.map((a, i) => {
    const b = make("button", { class: "agent", role: "treeitem", "aria-level": a.depth + 1, "aria-selected": String(app.agent === a.id), onclick: () => { app.agent = app.agent === a.id ? "" : a.id; app.goSeq(a.at); app.draw(); } },
      make("span", { class: cls(a.mark) }, sign(a.mark) || "·", " "), make("b", {}, visible(a.name)), a.attempt ? " #" + a.attempt : "", " ", visible(a.status),
      make("div", { class: "weak" }, [lasted(a.took), a.calls && count(a.calls, "call") + (a.failed ? " (" + a.failed + " failed)" : ""), a.tokens, a.cost, "now: " + (state.agents[a.id] || "not started")].filter(t => t).join(" · ")));
    b.style.paddingLeft = 4 + a.depth * 14 + "px";
    return b;
  }));
  fill($("left"), make("h2", {}, "Agents"), tree);
}

function drawRight(app) {
  const run = app.run, r = run.rows[app.at], s = app.state;
  const dl = (name, rows) => make("table", { "aria-label": name }, ...rows.filter(x => x[1] !== "" && x[1] !== undefined).map(([k, v]) => make("tr", {}, make("th", { scope: "row" }, k), make("td", {}, visible(v)))));
  const open = Object.values(s.open).flat(), c = s.counters;
  const raw = run.lines[app.at];
  let pretty = raw;
  if (raw.length <= maxShown) pretty = JSON.stringify(JSON.parse(raw), null, 2);
  const copy = make("button", { onclick: () => navigator.clipboard && navigator.clipboard.writeText(raw).then(() => { copy.textContent = "copied"; }) }, "copy as line");
  const call = run.callAt.get(r[SEQ]);
  fill($("right"),
    make("h2", {}, "Event " + r[SEQ] + " · " + kindOf(r)),
    dl("Event", [["agent", agentName(run, r)], ["after", r[MS] >= 0 ? span(r[MS]) : "unknown"], ["text", [r[SUBJECT], r[STATUS], r[TEXT]].filter(t => t).join(" · ")],
      ["returned", call && [sign(call.mark), call.status, lasted(call.took), call.error].filter(t => t).join(" · ")]]),
    make("p", {}, copy, " ", make("a", { href: "#" + link(app, r[SEQ]) }, "link"), call && call.end >= 0 && make("span", {}, " ", jump(app, call.end, "its return"))),
    long("Line of the event", pretty),
    make("h2", {}, "State after this event"),
    dl("State", [["run", s.status], ["open calls", open.length ? open.join(", ") : "none"], ["waits for", s.questions.length ? s.questions.join(", ") : "nobody"],
      ["calls", c.calls && c.calls + (c.failed ? " (" + c.failed + " failed)" : "")], ["model calls", c.models || ""], ["messages", c.messages || ""], ["tokens", c.tokens && (c.least ? "at least " : "") + c.tokens],
      ["cost", c.cost !== undefined ? "$" + Number(c.cost.toFixed(4)) : ""], ["violations", c.violations || ""]]),
    run.rows.length > 4096 && s.counted >= 0 && make("p", { class: "weak" }, "The figures are those after event " + run.rows[s.counted][SEQ] + "."),
    make("table", {}, make("caption", {}, "Agents now"), ...Object.entries(s.agents).map(([id, w]) => make("tr", {}, make("th", { scope: "row", class: "wrap" }, visible(nameOf(run, id) || "run")), make("td", { class: "word" }, visible(w))))),
    Object.keys(s.tree).length > 0 && make("details", {}, make("summary", {}, "state tree"), long("State tree", JSON.stringify(s.tree, null, 2))));
}

// The first page: what needs attention, the question and the answer, where time and tokens went.
function drawSummary(app, box) {
  const run = app.run;
  const lines = items => make("ul", {}, ...items.map(i => make("li", {}, jump(app, i.at, i.text, i.mark))));
  const part = (name, items, list) => items.length > 0 && make("section", {}, make("h2", {}, name), (list || lines)(items));
  const numbered = items => make("ol", {}, ...items.map(i => make("li", {}, jump(app, i.at, i.text, i.mark))));
  const most = 12, every = run.items.filter(i => ["asked", "answered", "message", "handoff", "decision", "approval", "question"].includes(i.topic));
  const told = every.slice(0, most);
  fill(box, part("Needs attention", run.attention, numbered), part("Asked, answered, said", told),
    every.length > most && make("p", { class: "weak" }, every.length - most + " more in the transcript"), part("Rules that are violated", run.rules),
    ...run.tables.map(t => make("section", {}, make("h2", {}, t.name), make("table", { "aria-label": t.name }, make("tr", {}, ...t.columns.map(c => make("th", { scope: "col" }, c))),
      ...t.rows.map(r => make("tr", {}, ...r.map(c => make("td", {}, visible(c)))))))));
  return { redraw() {} };
}

// drawEvents lists the events; deltas and events of other agents are left out unless they are wanted.
function drawEvents(app, box) {
  const run = app.run, all = [];
  run.rows.forEach((r, i) => {
    if (app.deltas || !isDelta(kindOf(r))) if (!app.agent || agentOf(run, r) === app.agent) all.push(i);
  });
  const place = () => { let a = 0, b = all.length; while (a < b) { const m = (a + b) >> 1; if (all[m] < app.at) a = m + 1; else b = m; } return Math.min(a, all.length - 1); };
  const bar = make("div", {}, make("label", {}, make("input", { type: "checkbox", checked: app.deltas, onchange: e => { app.deltas = e.target.checked; app.draw(); } }), " deltas"),
    app.agent && make("button", { onclick: () => { app.agent = ""; app.draw(); } }, "only " + visible(nameOf(run, app.agent)) + " ✕"));
  const rows = make("div", { class: "rows" });
  fill(box, bar, rows);
  const l = list(rows, all.length, n => {
    const i = all[n], r = run.rows[i];
    return make("div", { role: "listitem", "aria-posinset": n + 1, "aria-setsize": all.length, "aria-current": i === app.at && "true", class: "row" + (i === app.at ? " at" : "") + (i > app.at ? " future" : ""), onclick: () => app.go(i) },
      make("span", { class: "seq" }, String(r[SEQ])), make("span", { class: "time" }, r[MS] >= 0 ? span(r[MS]) : "?"), make("span", { class: "who" }, visible(agentName(run, r))),
      make("span", { class: "text" }, make("span", { class: cls(r[MARK]) }, sign(r[MARK]) ? sign(r[MARK]) + " " : "", visible([r[SUBJECT], r[STATUS]].filter(t => t).join(" "))), r[TEXT] ? " " + visible(r[TEXT]) : ""));
  });
  const redraw = () => { if (all.length) l.show(place()); };
  redraw();
  return { redraw };
}

// Acts of the transcript: what was said in full, each call on one line with its return.
function actsOf(run) {
  const acts = [], last = {};
  run.rows.forEach((r, i) => {
    const kind = kindOf(r);
    if (kind === "agent.message.created" && r[TEXT] && last[agentOf(run, r)] === r[TEXT]) return; // the text that came just before
    if (kind === "agent.text" || kind === "agent.message.created") last[agentOf(run, r)] = r[TEXT];
    if (isDelta(kind) || run.returns.has(r[SEQ]) && !run.callAt.has(r[SEQ])) return;
    if (run.callAt.has(r[SEQ]) || kind === "agent.text" || kind === "agent.reasoned" || r[TEXT] || r[MARK] > 1 || isQuestion(r)) acts.push(i);
  });
  return acts;
}

function drawTranscript(app, box) {
  const run = app.run, acts = run.acts || (run.acts = actsOf(run)), page = 100;
  const own = app.agent ? acts.filter(i => agentOf(run, run.rows[i]) === app.agent) : acts;
  let first = -1;
  const place = () => { let n = own.findIndex(i => i >= app.at); return n < 0 ? own.length - 1 : n; };
  const one = i => {
    const r = run.rows[i], kind = kindOf(r), call = run.callAt.get(r[SEQ]), at = i === app.at ? " at" : "", who = agentName(run, r);
    if (call) return make("div", { role: "listitem", class: "call" + at, "data-i": i, onclick: () => app.go(i) }, make("span", { class: cls(call.mark) }, sign(call.mark) || "·", " "), make("b", {}, visible(call.tool)), " ", visible(call.text), " ",
      make("span", { class: "weak" }, [who, call.status === "ok" ? "" : call.status, lasted(call.took)].filter(t => t).join(" · ")), call.error && make("span", { class: cls(call.mark) }, " " + visible(call.error)));
    const full = fullText(run, i, kind);
    const head = make("b", {}, visible([who, kind === "agent.reasoned" ? "(reasoning)" : kind === "agent.text" ? "" : r[SUBJECT], sign(r[MARK]), r[STATUS]].filter(t => t).join(" ")));
    const body = full.length > maxShown ? long("Text", full) : visible(full);
    if (kind === "agent.reasoned") return make("div", { role: "listitem", class: "said" + at, "data-i": i }, make("details", {}, make("summary", { onclick: () => app.go(i) }, head), body));
    return make("div", { role: "listitem", class: "said " + cls(r[MARK]) + (/^user$/i.test(who) || /asked/.test(r[SUBJECT]) ? " user" : "") + at, "data-i": i, onclick: () => app.go(i) }, head, full ? "\n" : "", body);
  };
  const draw = () => {
    const n = place(), from = Math.max(0, Math.floor(n / page) * page);
    if (from !== first) {
      first = from;
      const some = own.slice(from, from + page), more = (text, to) => make("button", { onclick: () => app.go(own[to]) }, text);
      fill(box, from > 0 && more("earlier", from - 1), make("div", { role: "list" }, ...some.map(one)), from + page < own.length && more("later", from + page));
    } else {
      for (const e of box.querySelectorAll(".at")) e.classList.remove("at");
      const e = box.querySelector('[data-i="' + own[n] + '"]');
      if (e && own[n] === app.at) e.classList.add("at");
    }
    const e = box.querySelector('[data-i="' + own[n] + '"]');
    if (e) e.scrollIntoView({ block: "nearest" });
  };
  if (own.length) draw(); else fill(box, make("p", { class: "weak" }, "Nothing was said or done."));
  return { redraw: () => own.length && draw() };
}

// fullText returns the whole text of an event; the row has its beginning.
function fullText(run, i, kind) {
  const r = run.rows[i], p = JSON.parse(run.lines[i]).payload || {};
  const whole = kind === "agent.text" || kind === "agent.reasoned" ? p.text : p.message && p.message.content || p.prompt || p.goal || p.result;
  return typeof whole === "string" && whole ? whole : r[TEXT];
}
