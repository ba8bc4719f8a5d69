// A list shows only the rows that are in sight: all rows have one height.

const rowHeight = 22;

// list fills a box with n rows; draw(i) returns the element of one. It returns {show(i), redraw()}.
function list(box, n, draw) {
  const inner = make("div", { role: "list" });
  inner.style.position = "relative";
  inner.style.height = n * rowHeight + "px";
  fill(box, inner);
  let from = -1, to = -1;
  const redraw = force => {
    const a = Math.max(0, Math.floor(box.scrollTop / rowHeight) - 10), b = Math.min(n, a + Math.ceil(box.clientHeight / rowHeight) + 20);
    if (!force && a === from && b === to) return;
    [from, to] = [a, b];
    const rows = [];
    for (let i = a; i < b; i++) {
      const e = draw(i);
      e.style.position = "absolute"; e.style.top = i * rowHeight + "px"; e.style.left = 0; e.style.right = 0;
      rows.push(e);
    }
    inner.replaceChildren(...rows);
  };
  box.onscroll = () => redraw(false);
  redraw(true);
  return {
    redraw: () => redraw(true),
    show(i) {
      const top = i * rowHeight;
      if (top < box.scrollTop || top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
      redraw(true);
    },
  };
}
