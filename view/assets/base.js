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

// count returns a number of things, "1 call" or "2 calls", and "" for 0.
const count = (n, thing) => n ? n + " " + thing + (n === 1 ? "" : "s") : "";

// visible replaces characters that would change the direction of the text around them.
const visible = s => String(s).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

// span returns milliseconds as text.
function span(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1000) return Math.round(ms) + "ms";
  if (ms < 60e3) return (ms / 1000).toFixed(ms < 10e3 ? 1 : 0) + "s";
  if (ms < 3600e3) return Math.floor(ms / 60e3) + "m" + String(Math.round(ms % 60e3 / 1000)).padStart(2, "0") + "s";
  if (ms < 86400e3) return Math.floor(ms / 3600e3) + "h" + String(Math.floor(ms % 3600e3 / 60e3)).padStart(2, "0") + "m";
  return Math.floor(ms / 86400e3) + "d" + Math.floor(ms % 86400e3 / 3600e3) + "h";
}

const maxShown = 65536;

// long returns a pre element with a text that may be very long.
function long(text) {
  const pre = make("pre", { tabindex: 0 });
  if (text.length <= maxShown) { pre.textContent = visible(text); return pre; }
  pre.textContent = visible(text.slice(0, maxShown)) + "\n";
  pre.append(make("button", { onclick: () => { pre.textContent = visible(text); } }, "show all " + text.length + " characters"));
  return pre;
}
