// The timeline: a lane for each agent, and more lanes below it for work at the same time. Long
// gaps are folded: each takes a fixed width and has its name.

const laneHeight = 16;

// clip returns a text that is no wider than a width: its beginning, or nothing.
function clip(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = 0, over = Math.min(text.length, 60) + 1;
  while (over - n > 1) { const m = (n + over) >> 1; if (g.measureText(text.slice(0, m) + "…").width > width) over = m; else n = m; }
  return n > 2 ? text.slice(0, n) + "…" : "";
}

// scale maps times to places: the gaps take no share of the width. On a narrow screen the names take
// a third of it at most, and all gaps together half of the rest.
function scale(run, width, zoom) {
  const last = run.last || (run.last = Math.max(run.bars.reduce((n, b) => Math.max(n, b.to), 1), run.rows.reduce((n, r) => Math.max(n, r[MS]), 1)));
  const [from, to] = zoom || [0, last];
  const gaps = run.gaps.filter(g => g.to > from && g.from < to);
  const work = Math.max(1, to - from - gaps.reduce((n, g) => n + Math.min(g.to, to) - Math.max(g.from, from), 0));
  const nameWidth = Math.min(130, width / 3), room = width - nameWidth, gapWidth = Math.min(46, room / 2 / Math.max(1, gaps.length));
  const unit = (room - gaps.length * gapWidth) / work;
  const x = ms => {
    let at = nameWidth + (Math.min(Math.max(ms, from), to) - from) * unit;
    for (const g of gaps) {
      if (ms <= g.from) break;
      const begin = Math.max(g.from, from), end = Math.min(g.to, to, ms);
      const share = (end - begin) / (Math.min(g.to, to) - begin);
      at += share * gapWidth - (end - begin) * unit;
    }
    return at;
  };
  // ms is the inverse of x: x does not fall.
  const ms = px => { let a = from, b = to; for (let i = 0; i < 60; i++) { const m = (a + b) / 2; if (x(m) < px) a = m; else b = m; } return a; };
  return { x, ms, gaps, from, to, nameWidth, gapWidth };
}

// lanes places the bars: those of an agent that overlap are on lanes of their own.
function lanes(run) {
  const all = [], order = new Map();
  const agents = run.agents.filter((a, i) => run.agents.findIndex(b => b.id === a.id) === i);
  for (const a of agents) order.set(a.id, { name: a.name, depth: a.depth, lanes: [] });
  for (const b of run.bars) {
    if (!order.has(b.agent)) order.set(b.agent, { name: b.agent || "run", depth: 0, lanes: [] });
    const own = order.get(b.agent).lanes;
    let lane = own.find(l => l.end <= b.from);
    if (!lane) { lane = { end: 0, bars: [] }; own.push(lane); }
    lane.bars.push(b); lane.end = Math.max(b.to, b.from);
  }
  for (const o of order.values()) o.lanes.forEach((l, i) => all.push({ name: i ? "" : o.name, depth: o.depth, bars: l.bars }));
  return all;
}

function drawTimeline(app, box) {
  const run = app.run, rows = lanes(run);
  if (!rows.length) { fill(box, make("p", { class: "weak" }, "The log has no times to draw.")); return; }
  const canvas = make("canvas", { role: "img", "aria-label": "Timeline of " + rows.length + " lanes; the same calls are in the transcript and in the table of times" });
  const tip = make("p", { class: "mono", "aria-live": "polite" }, "\u00a0");
  const zoomTo = range => { app.zoom = range; draw(); };
  const tools = make("div", {}, make("button", { onclick: () => zoomBy(0.5) }, "zoom in"), " ", make("button", { onclick: () => zoomBy(2) }, "zoom out"), " ",
    make("button", { onclick: () => zoomTo(null) }, "all"), " ",
    ...["agent", "tool", "model", "wait", "other"].map(t => make("span", { class: "badge legend-" + t }, t)));
  const pointer = make("div", { class: "cursor", "aria-hidden": "true" });
  fill(box, tools, make("div", { class: "lanes" }, canvas, pointer), tip);
  let s;
  function zoomBy(f, at) {
    const c = at === undefined ? Math.max(s.from, Math.min(s.to, run.rows[app.at][MS])) : at;
    const from = c - (c - s.from) * f, to = c + (s.to - c) * f;
    const end = scale(run, 100, null).to;
    zoomTo(from <= 0 && to >= end ? null : [Math.max(0, from), Math.max(Math.min(end, to), Math.max(0, from) + 1)]);
  }
  function cursor() {
    const now = run.rows[app.at] && run.rows[app.at][MS];
    pointer.hidden = !(now >= 0);
    pointer.style.left = s.x(now) - 1 + "px";
  }
  function draw() {
    const style = getComputedStyle(document.documentElement), colour = n => style.getPropertyValue("--" + n);
    const width = box.clientWidth - 4, height = Math.min(12000, rows.length * laneHeight + 22), ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
    s = scale(run, width, app.zoom);
    g.fillStyle = colour("back"); g.fillRect(0, 0, width, height); // for the print of a dark page
    for (const gap of s.gaps) {
      g.fillStyle = colour("soft"); g.fillRect(s.x(gap.from), 0, Math.max(1, s.x(gap.to) - s.x(gap.from)), height);
      g.fillStyle = colour("weak"); g.fillText(clip(g, span(gap.to - gap.from), s.gapWidth - 4), s.x(gap.from) + 2, 6); g.fillText(clip(g, gap.why, s.gapWidth - 4), s.x(gap.from) + 2, 16);
    }
    rows.forEach((lane, i) => {
      const y = 22 + i * laneHeight;
      if (y > height) return;
      g.fillStyle = colour("text"); const indent = Math.min(lane.depth, 6) * 8; g.fillText(clip(g, visible(lane.name), s.nameWidth - 8 - indent), 2 + indent, y + laneHeight / 2);
      for (const b of lane.bars) {
        if (b.to < s.from || b.from > s.to) continue;
        const a = s.x(b.from), w = Math.max(2, s.x(b.to) - a), thin = b.type === "agent" || b.type === "other";
        g.fillStyle = colour(b.type); g.fillRect(a, y + (thin ? 6 : 2), w, laneHeight - (thin ? 12 : 4));
        if (b.bad) { g.fillStyle = colour("bad"); g.fillRect(a, y + 2, Math.min(w, 11), laneHeight - 4); if (w > 10) { g.fillStyle = colour("back"); g.fillText("✗", a + 2, y + laneHeight / 2); } }
        if (!thin && w > 40) { g.fillStyle = colour("back"); g.fillText(clip(g, visible(b.name), w - (b.bad ? 15 : 6)), a + (b.bad ? 12 : 3), y + laneHeight / 2); }
      }
    });
    cursor();
  }
  const barAt = e => {
    const r = canvas.getBoundingClientRect(), lane = rows[Math.floor((e.clientY - r.top - 22) / laneHeight)], px = e.clientX - r.left;
    return lane && lane.bars.filter(b => s.x(b.from) - 1 <= px && px <= Math.max(s.x(b.to), s.x(b.from) + 2) + 1).pop();
  };
  canvas.onmousemove = e => { const b = barAt(e); tip.textContent = b ? [visible(b.type + " " + b.name), lasted(b.to - b.from)].filter(t => t).join(" · ") + (b.bad ? " · failed" : "") : "\u00a0"; };
  canvas.onclick = e => { const b = barAt(e); if (b) app.goSeq(b.first); };
  canvas.onwheel = e => { if (!e.ctrlKey) return; e.preventDefault(); zoomBy(e.deltaY > 0 ? 1.25 : 0.8, s.ms(e.clientX - canvas.getBoundingClientRect().left)); };
  draw();
  return { redraw: cursor };
}

// drawMarks draws the marks of the slider: failures, waits, hits of a search.
function drawMarks(app, canvas) {
  const run = app.run, width = canvas.clientWidth || 400, n = Math.max(1, run.rows.length - 1);
  canvas.width = width; canvas.height = 14;
  const g = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const put = (i, name, top) => { g.fillStyle = style.getPropertyValue("--" + name); g.fillRect(i / n * (width - 2), top ? 0 : 7, 2, 7); };
  run.rows.forEach((r, i) => { if (r[MARK] === 2) put(i, "bad", false); else if (isQuestion(r)) put(i, "wait", false); });
  for (const i of app.hits) put(i, "tool", true);
}
