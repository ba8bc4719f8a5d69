// The app: one cursor, and all panes at it.

const panes = { Summary: drawSummary, Timeline: drawTimeline, Transcript: drawTranscript, Events: drawEvents, Diff: drawDiff };
const keys = [["→ or l", "next event"], ["← or h", "event before"], ["n / p", "next failure, failure before"], ["q", "next question to a person"], ["a, then 1 to 9", "that item of those that need attention; its text is on the right"], ["/", "search; Enter for the next hit"],
  ["1 to 5", "summary, timeline, transcript, events, diff"], ["Home / End", "first event, last event"], ["r", "next run"], ["c", "copy the event's line"], ["?", "this help"]];

const app = {
  head: null, runs: [], run: null, at: 0, state: null, tab: "Summary", pane: null, agent: "", deltas: false, hits: [], zoom: null, follows: true,
  choose(run, at) {
    this.run = run; kindNames = run.kinds || []; this.agent = ""; this.zoom = null; this.hits = []; this.at = at === undefined ? Math.max(0, run.rows.length - 1) : at;
    this.state = run.rows.length ? stateAt(run, this.at) : fresh();
    drawFacts(this); this.draw();
  },
  go(i) {
    if (!this.run.rows.length) return;
    this.at = Math.max(0, Math.min(this.run.rows.length - 1, i));
    this.follows = this.at === this.run.rows.length - 1;
    this.state = stateAt(this.run, this.at);
    history.replaceState(null, "", "#" + link(this, this.run.rows[this.at][SEQ]));
    this.pane.redraw(); drawAgents(this); drawRight(this); this.slide();
    $("told").textContent = told(this.run, this.run.rows[this.at]);
  },
  goSeq(seq) { const i = this.run.bySeq.get(seq); if (i !== undefined) this.go(i); },
  goRun(log, id, seq) { const run = this.runs.find(r => r.log === log && r.id === id); if (!run) return; this.choose(run, run.bySeq.get(seq)); this.open("Events"); },
  open(tab) { if (tab === "Diff" && !this.head.diff) return; this.tab = tab; this.draw(); },
  slide() { const s = $("slider"); s.value = this.at; s.setAttribute("aria-valuetext", "event " + this.run.rows[this.at][SEQ] + " of " + this.run.rows.length); },
  draw() {
    const names = Object.keys(panes).filter(t => t !== "Diff" || this.head.diff);
    fill($("tabs"), ...names.map((t, i) => make("button", { role: "tab", "aria-controls": "pane", "aria-selected": String(t === this.tab), title: "key " + (i + 1), onclick: () => this.open(t) }, t)));
    const pane = $("pane");
    pane.setAttribute("aria-label", this.tab);
    pane.onscroll = null; pane.replaceChildren();
    this.pane = this.run.rows.length || this.tab === "Diff" ? panes[this.tab](this, pane) || { redraw() {} } : { redraw() {} };
    drawAgents(this);
    if (this.run.rows.length) { drawRight(this); this.slide(); drawMarks(this, $("marks")); }
  },
  // step goes to the next event of a sort, or the one before.
  step(by, is) { for (let i = this.at + by; i >= 0 && i < this.run.rows.length; i += by) if (is(this.run.rows[i])) { this.go(i); return; } },
  search(text) {
    const want = text.toLowerCase();
    this.hits = [];
    if (want) this.run.lines.forEach((line, i) => { if (line.toLowerCase().includes(want)) this.hits.push(i); });
    $("found").textContent = want ? this.hits.length + " events" : "";
    drawMarks(this, $("marks"));
    this.next();
  },
  next() { const i = this.hits.find(h => h > this.at); if (i !== undefined) this.go(i); else if (this.hits.length) this.go(this.hits[0]); },
};

function controls() {
  const find = make("input", { id: "find", type: "search", placeholder: "search  /", "aria-label": "Search all events", onkeydown: e => {
    if (e.key === "Enter") { if (find.value === find.last) app.next(); else { find.last = find.value; app.search(find.value); } }
    if (e.key === "Escape") find.blur();
    e.stopPropagation();
  } });
  const slider = make("input", { id: "slider", type: "range", min: 0, "aria-label": "Event", oninput: () => app.go(Number(slider.value)) });
  const choice = make("select", { id: "runs", "aria-label": "Run", onchange: () => { app.choose(app.runs[choice.value]); $("slider").max = app.run.rows.length - 1; } },
    ...app.runs.map((r, i) => make("option", { value: i }, visible((app.head.logs.length > 1 ? "AB"[r.log] + ": " : "") + (r.name || r.id) + " " + r.status))));
  fill($("scrub"), app.runs.length > 1 && choice, make("div", { class: "marks" }, make("canvas", { id: "marks", "aria-hidden": "true" }), slider), find, make("span", { id: "found", class: "weak", "aria-live": "polite" }), make("button", { onclick: help }, "?"));
}

function help() {
  fill($("help"), make("h2", {}, "Keys"), make("table", { "aria-label": "Keys" }, ...keys.map(([k, t]) => make("tr", {}, make("th", { scope: "row" }, k), make("td", {}, t)))), make("button", { onclick: () => $("help").close() }, "close"));
  $("help").showModal();
}

// told returns the event that a screen reader tells when the cursor has moved.
const told = (run, r) => "event " + r[SEQ] + ", " + [agentName(run, r), sign(r[MARK]), r[SUBJECT], r[STATUS], r[TEXT].slice(0, 200)].filter(t => t).map(visible).join(", ");

const failed = r => r[MARK] === 2;
document.addEventListener("keydown", e => {
  if (!app.run || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.id !== "slider") return;
  if (app.attends && e.key >= "1" && e.key <= "9") {
    const item = app.run.attention[e.key - 1];
    app.attends = false; e.preventDefault();
    if (item && item.at >= 0) app.goSeq(item.at);
    return;
  }
  app.attends = e.key === "a";
  const tabs = ["Summary", "Timeline", "Transcript", "Events", "Diff"];
  const acts = {
    ArrowRight: () => app.go(app.at + 1), l: () => app.go(app.at + 1), ArrowLeft: () => app.go(app.at - 1), h: () => app.go(app.at - 1),
    Home: () => app.go(0), End: () => app.go(app.run.rows.length - 1), n: () => failures(1), p: () => failures(-1), q: () => app.step(1, isQuestion),
    "/": () => $("find").focus(), "?": help, c: () => navigator.clipboard && navigator.clipboard.writeText(app.run.lines[app.at]),
    r: () => app.runs.length > 1 && app.choose(app.runs[(app.runs.indexOf(app.run) + 1) % app.runs.length]),
  };
  const act = acts[e.key] || tabs[e.key - 1] && (() => app.open(tabs[e.key - 1]));
  if (act) { e.preventDefault(); act(); }
});

// failures goes to the next failure. From the end, where a page opens, the first one comes next.
function failures(by) {
  const at = app.at;
  app.step(by, failed);
  if (by > 0 && app.at === at) { const i = app.run.rows.findIndex(failed); if (i >= 0) app.go(i); }
}

async function begin() {
  const head = parse(await unpack("data"));
  app.head = head; app.runs = head.runs;
  if (head.choice) {
    $("heading").textContent = "Runs";
    fill($("pane"), make("ul", {}, ...head.choice.map(id => make("li", {}, make("a", { href: "?run=" + encodeURIComponent(id) }, visible(id))))));
    document.documentElement.dataset.ready = 0;
    return;
  }
  if (head.live) { app.runs = [emptyRun(head.logs[0].name)]; app.tab = "Transcript"; controls(); app.choose(app.runs[0]); follow(app, head.live); document.documentElement.dataset.ready = 0; return; }
  if (!app.runs.length) { $("heading").textContent = "The log has no events"; document.documentElement.dataset.ready = 0; return; }
  controls();
  const wanted = new URLSearchParams(location.hash.slice(1)), run = app.runs[Number(wanted.get("run") || 0)] || app.runs[0];
  app.tab = panes[wanted.get("tab")] && (head.diff || wanted.get("tab") !== "Diff") ? wanted.get("tab") : head.diff ? "Diff" : "Summary";
  $("slider").max = Math.max(0, run.rows.length - 1);
  app.choose(run, run.bySeq.get(Number(wanted.get("seq") || -1)));
  window.addEventListener("resize", () => app.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.draw()); // the timeline is a picture
  document.documentElement.dataset.ready = Math.round(performance.now());
}

begin().catch(e => { $("heading").textContent = "This page is damaged: " + e.message; });
