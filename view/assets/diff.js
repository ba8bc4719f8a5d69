// Two runs beside each other: the comparison of 'agentevents diff'.

// The totals of the comparison, as people read them. A negative difference keeps its sign.
const signed = f => v => (v < 0 ? "−" : "") + f(Math.abs(v));
const totalNames = { durationMs: ["duration", signed(span)], costUsd: ["cost", signed(v => "$" + v.toFixed(4))], toolCalls: ["tool calls"], failedToolCalls: ["failed tool calls"], modelCalls: ["model calls"] };

function drawDiff(app, box) {
  const diff = app.head.diff, parts = [];
  const names = app.head.logs.map(l => l.name);
  const act = a => a && [a.what, a.status, a.detail, a.error].filter(t => t).join(" · ");
  const jumpTo = (log, party, a) => make("a", { href: "#", onclick: e => { e.preventDefault(); app.goRun(log, party && party.id, a.sequence); } }, visible(act(a)));
  parts.push(make("p", {}, diff.same ? "Both did the same." : "They differ: A is " + visible(names[0]) + ", B is " + visible(names[1]) + "."));
  for (const r of diff.runs || []) {
    parts.push(make("h2", {}, "Run " + visible((r.a || r.b).name || (r.a || r.b).id) + (r.a ? r.b ? r.same ? ": the same" : "" : ": only A has it" : ": only B has it")));
    parts.push(make("table", { "aria-label": "Totals" }, make("tr", {}, ...["", "A", "B", "B − A"].map(t => make("th", { scope: "col" }, t))),
      ...(r.totals || []).map(t => make("tr", {}, make("th", { scope: "row" }, (totalNames[t.name] || [t.name])[0]), ...[t.a, t.b, t.a !== null && t.b !== null && t.a !== undefined && t.b !== undefined ? t.b - t.a : ""].map(v => make("td", { class: "num" }, typeof v === "number" ? (totalNames[t.name] || [])[1] ? totalNames[t.name][1](v) : String(v) : ""))))));
    for (const a of r.agents || []) {
      const sides = [], title = (a.a || a.b).name || (a.a || a.b).id || "run";
      for (const s of a.acts || []) {
        if (s.same) { sides.push(make("div", { class: "same" }, s.same + (s.same === 1 ? " act the same" : " acts the same"))); continue; }
        sides.push(make("div", { class: s.a ? "a" : "" }, s.a ? jumpTo(0, r.a, s.a) : ""), make("div", { class: s.b ? "b" : "" }, s.b ? jumpTo(1, r.b, s.b) : ""));
        for (const c of s.changes || []) sides.push(...[c.a, c.b].map(v => make("div", { class: "mono" }, visible(c.at + " " + (v === undefined ? "is absent" : JSON.stringify(v))))));
      }
      parts.push(make("h2", {}, visible(title) + (a.same ? ": the same" : "")), make("div", { class: "sides" }, ...sides));
    }
  }
  fill(box, ...parts);
  return { redraw() {} };
}
