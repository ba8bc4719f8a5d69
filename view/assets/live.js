// A run that goes on: its events come one after another, and its head now and then.

// emptyRun is a run before its first event.
const emptyRun = id => ({ log: 0, id, name: "", status: "", mark: 0, why: "", start: "", took: 0, tokens: "", cost: "", violations: 0, rows: [], lines: [], bySeq: new Map(), points: [fresh()],
  kinds: [], agents: [], calls: [], bars: [], gaps: [], attention: [], items: [], rules: [], tables: [], callAt: new Map(), returns: new Set() });

function follow(app, url) {
  const run = app.run;
  const state = make("span", { class: "badge", id: "live", role: "status" }, "connecting");
  $("scrub").append(state);
  let last = fresh(), waiting = false, over = false;
  const later = () => { // many events may come before the next frame
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      $("slider").max = Math.max(0, run.rows.length - 1);
      if (app.follows) app.at = Math.max(0, run.rows.length - 1);
      if (run.rows.length) { app.state = stateAt(run, app.at); app.draw(); }
    });
  };
  const forget = () => { Object.assign(run, emptyRun(run.id)); last = fresh(); app.follows = true; app.at = 0; };
  const es = new EventSource(url);
  es.onopen = () => { state.textContent = "live"; };
  es.onerror = () => { if (!over) state.textContent = es.readyState === EventSource.CLOSED ? "the run is not there any more" : "connecting again"; };
  es.onmessage = e => {
    const { row, line } = JSON.parse(e.data);
    run.bySeq.set(row[SEQ], run.rows.length);
    run.rows.push(row); run.lines.push(line);
    last = apply(last, row[CHANGE], run.rows.length - 1);
    if (run.rows.length % every === 0) run.points.push(last);
    later();
  };
  es.addEventListener("head", e => {
    const head = JSON.parse(e.data), { events, ...own } = head.runs[0];
    app.head.masked = head.masked;
    for (const k of Object.keys(own)) if (own[k] === null) delete own[k];
    Object.assign(run, own);
    index(run);
    run.acts = run.last = undefined;
    drawFacts(app); later();
  });
  es.addEventListener("reset", forget);
  es.addEventListener("gap", e => { if (!run.rows.length) state.after(make("span", { class: "badge warn" }, "the events before " + e.data + " are not kept any more")); else forget(); });
  es.addEventListener("trouble", e => { state.textContent = visible(e.data); over = true; es.close(); });
  es.addEventListener("end", () => { state.textContent = "the run is over"; over = true; es.close(); });
}
