// Small helpers. All text of the log goes into the document as text nodes, never as markup.

const $ = id => document.getElementById(id);

// make returns an element with attributes and children. An attribute that begins with "on" is a
// listener. A child is a node or a text.
function make(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter(c => c !== undefined && c !== "" && c !== null));
  return e;
}

// fill replaces the content of an element.
function fill(e, ...children) { e.replaceChildren(...children.filter(c => c)); }

// Marks of package report: a word of the class and a sign, so that colour is never alone.
const marks = [["", ""], ["good", "✓"], ["bad", "✗"], ["warn", "!"], ["open", "…"]];
const sign = mark => (marks[mark] || marks[0])[1];
const cls = mark => (marks[mark] || marks[0])[0];

// visible replaces characters that would change the direction of the text around them.
const visible = s => String(s).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

// span returns milliseconds as text, as the terminal prints durations; from a day on in days.
function span(ms) {
  if (!(ms >= 0)) return "";
  if (ms > 0 && ms < 1) return "<1ms";
  if (ms < 1000) return Math.floor(ms) + "ms";
  const tenths = Math.round(ms / 100), s = Math.round(ms / 1000), m = Math.round(ms / 60e3), two = n => String(n).padStart(2, "0");
  if (tenths < 600) return tenths / 10 + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
  if (m < 1440) return Math.floor(m / 60) + "h" + two(m % 60) + "m";
  const h = Math.round(ms / 3600e3);
  return Math.floor(h / 24) + "d" + h % 24 + "h";
}

// lasted returns a duration as text: 0 is unknown, as in a log without a clock.
const lasted = ms => ms > 0 ? span(ms) : "";

// count returns a number with its noun.
const count = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");

const maxShown = 65536;

// long returns a pre element with a text that may be very long. The name is for screen readers.
function long(name, text) {
  const pre = make("pre", { tabindex: 0, role: "group", "aria-label": name });
  if (text.length <= maxShown) { pre.textContent = visible(text); return pre; }
  pre.textContent = visible(text.slice(0, maxShown)) + "\n";
  pre.append(make("button", { onclick: () => { pre.textContent = visible(text); } }, "show all " + text.length + " characters"));
  return pre;
}
