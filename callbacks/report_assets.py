"""Style and script of a report; they stand in the page itself, so that it needs no network."""

CSS = """
:root { color-scheme: light dark; --bg: #f6f7f9; --card: #fff; --ink: #1d2433; --soft: #667085;
  --line: #e4e7ec; --grid: #eef0f4;
  --good: #15803d; --bad: #b42318; --warn: #b54708; --run: #1d4ed8;
  --c0: #2563eb; --c1: #ea580c; --c2: #059669; --c3: #9333ea; --c4: #db2777; --c5: #0891b2; }
@media (prefers-color-scheme: dark) { :root { --bg: #0f131a; --card: #181e28; --ink: #e6eaf2;
  --soft: #94a0b4; --line: #2a3342; --grid: #222b38; --good: #4ade80; --bad: #f87171;
  --warn: #fbbf24; --run: #60a5fa; --c0: #60a5fa; --c1: #fb923c; --c2: #34d399; --c3: #c084fc;
  --c4: #f472b6; --c5: #22d3ee; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 20px 48px; }
header { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin-bottom: 16px; }
h1 { font-size: 24px; margin: 0; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 32px 0 12px; }
.badge { font-size: 13px; font-weight: 600; padding: 3px 11px; border-radius: 99px;
  border: 1.5px solid currentColor; }
.completed { color: var(--good); } .failed { color: var(--bad); } .running { color: var(--run); }
.stopped, .interrupted { color: var(--warn); }
.reason { color: var(--soft); flex-basis: 100%; margin: 0; overflow-wrap: anywhere; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 14px 16px; min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(122px, 1fr)); gap: 12px; }
.tile b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; line-height: 1.3; }
.tile span, .note { color: var(--soft); font-size: 13px; }
.bar { height: 6px; border-radius: 3px; background: var(--grid); margin: 14px 2px 0; }
.bar i { display: block; height: 100%; border-radius: 3px; background: var(--run); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr));
  gap: 14px; }
.chart h3 { margin: 0 0 4px; font-size: 15px; display: flex; gap: 8px; align-items: baseline; }
.chart h3 button { margin-left: auto; }
button { font: inherit; font-size: 12px; color: var(--soft); background: none; cursor: pointer;
  border: 1px solid var(--line); border-radius: 7px; padding: 1px 9px; }
button[aria-pressed=true] { color: var(--card); background: var(--soft); }
svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
svg text { fill: var(--soft); font-size: 11.5px; font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; margin-top: 4px; }
.legend span { cursor: pointer; overflow-wrap: anywhere; } .legend .off { opacity: .35; }
.legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px;
  margin-right: 7px; vertical-align: middle; }
.legend b { font-weight: 600; font-variant-numeric: tabular-nums; }
.message { border-left: 4px solid var(--warn); overflow-wrap: anywhere; margin-bottom: 10px; }
.message.error { border-left-color: var(--bad); }
pre { margin: 0; overflow-x: auto; font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace; }
.columns { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
td, th { padding: 4px 12px 4px 0; text-align: left; border-top: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--soft); white-space: nowrap; width: 1%; }
tr.given td:last-child { font-weight: 600; }
footer { color: var(--soft); font-size: 12.5px; margin-top: 32px; }
@media (max-width: 520px) { main { padding: 16px 12px 32px; } h1 { font-size: 20px; } }
"""

SCRIPT = """
"use strict";
const NS = "http://www.w3.org/2000/svg", W = 520, H = 250, L = 58, R = 12, T = 10, B = 28;
const make = (name, attributes, parent, text) => {
  const e = document.createElementNS(NS, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
};
const short = v => {
  if (v === null) return "–";
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a >= 1e5 || a < 1e-3) return v.toExponential(a >= 1e5 && a < 1e6 ? 2 : 1).replace("e+", "e");
  return String(+v.toPrecision(4));
};
const ticks = (low, high, count) => {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find(m => m * power >= raw * 0.999) * power, found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step)
    found.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return found;
};
const logTicks = (low, high) => {
  const found = [];
  for (let p = Math.ceil(low - 1e-9); p <= high + 1e-9; p++) found.push(p);
  return found.length >= 2 ? found : ticks(low, high, 4);
};
const draw = (card, chart) => {
  const svg = card.querySelector("svg"), log = card.dataset.log === "1";
  svg.replaceChildren();
  const curves = chart.curves.filter(c => !c.off);
  const map = y => y === null ? null : log ? (y > 0 ? Math.log10(y) : null) : y;
  const xs = curves.flatMap(c => c.points.map(p => p[0]));
  const ys = curves.flatMap(c => c.points.map(p => map(p[1]))).filter(y => y !== null);
  if (!ys.length) { make("text", { x: W / 2, y: H / 2, "text-anchor": "middle" }, svg, "no values");
    return; }
  const all = v => [v.reduce((a, b) => Math.min(a, b)), v.reduce((a, b) => Math.max(a, b))];
  let [x0, x1] = all(xs), [y0, y1] = all(ys);
  if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
  const pad = y1 > y0 ? (y1 - y0) * 0.06 : Math.max(Math.abs(y1) * 0.1, 1e-9);
  if (!(y0 >= 0 && y0 - pad < 0) || log) y0 -= pad; else y0 = Math.min(y0, 0);
  y1 += pad;
  const X = x => L + (x - x0) / (x1 - x0) * (W - L - R);
  const Y = y => H - B - (y - y0) / (y1 - y0) * (H - T - B);
  for (const v of log ? logTicks(y0, y1) : ticks(y0, y1, 5)) {
    make("line", { x1: L, x2: W - R, y1: Y(v), y2: Y(v), stroke: "var(--grid)" }, svg);
    make("text", { x: L - 7, y: Y(v) + 4, "text-anchor": "end" }, svg, short(log ? 10 ** v : v));
  }
  for (const v of ticks(x0, x1, 6))
    make("text", { x: X(v), y: H - 9, "text-anchor": "middle" }, svg, short(v));
  for (const c of curves) {
    let path = "", pen = "M", previous = null;
    for (const [x, y] of c.points) {
      const value = map(y);
      if (value === null) { pen = "M"; continue; }
      path += pen + X(x).toFixed(1) + " " + Y(value).toFixed(1);
      pen = "L"; previous = [x, value];
    }
    make("path", { d: path, fill: "none", stroke: c.color, "stroke-width": c.faint ? 1.2 : 2.2,
      opacity: c.faint ? 0.45 : 1, "stroke-linejoin": "round", "stroke-linecap": "round" }, svg);
    if (c.points.length <= 25 && !c.faint) for (const [x, y] of c.points)
      if (map(y) !== null) make("circle", { cx: X(x), cy: Y(map(y)), r: 2.8, fill: c.color }, svg);
  }
  const cross = make("line", { y1: T, y2: H - B, stroke: "var(--soft)", opacity: 0 }, svg);
  const where = make("text", { y: T + 4, opacity: 0 }, svg);
  const nearest = (points, x) => points.reduce((a, b) =>
    Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
  svg.onpointermove = event => {
    const box = svg.getBoundingClientRect();
    const x = x0 + ((event.clientX - box.left) / box.width * W - L) / (W - L - R) * (x1 - x0);
    const at = nearest(curves.flatMap(c => c.points), x)[0];
    cross.setAttribute("x1", X(at)); cross.setAttribute("x2", X(at));
    cross.setAttribute("opacity", 0.5);
    where.textContent = chart.axis + " " + short(at);
    where.setAttribute("opacity", 1);
    where.setAttribute("x", X(at) + (X(at) > W * 0.7 ? -6 : 6));
    where.setAttribute("text-anchor", X(at) > W * 0.7 ? "end" : "start");
    for (const c of curves) c.shown.textContent = short(nearest(c.points, at)[1]);
  };
  svg.onpointerleave = () => {
    cross.setAttribute("opacity", 0); where.setAttribute("opacity", 0);
    for (const c of curves) c.shown.textContent = short(c.points[c.points.length - 1][1]);
  };
};
const charts = JSON.parse(document.getElementById("data").textContent);
for (const chart of charts) {
  const card = document.createElement("section");
  card.className = "card chart";
  const title = document.createElement("h3"), legend = document.createElement("div");
  title.textContent = chart.title;
  const button = document.createElement("button");
  button.textContent = "log";
  button.setAttribute("aria-pressed", "false");
  button.onclick = () => {
    card.dataset.log = card.dataset.log === "1" ? "0" : "1";
    button.setAttribute("aria-pressed", String(card.dataset.log === "1"));
    draw(card, chart);
  };
  title.appendChild(button);
  legend.className = "legend";
  card.append(title);
  const frame = { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": chart.title };
  const svg = make("svg", frame, card);
  card.append(legend);
  for (const curve of chart.curves) {
    const entry = document.createElement("span"), key = document.createElement("i");
    curve.shown = document.createElement("b");
    curve.shown.textContent = short(curve.points[curve.points.length - 1][1]);
    key.style.background = curve.color;
    key.style.opacity = curve.faint ? 0.45 : 1;
    entry.append(key, curve.name + " ", curve.shown);
    entry.onclick = () => {
      curve.off = !curve.off;
      entry.classList.toggle("off", curve.off);
      draw(card, chart);
    };
    legend.append(entry);
  }
  document.getElementById("charts").append(card);
  draw(card, chart);
}
"""
