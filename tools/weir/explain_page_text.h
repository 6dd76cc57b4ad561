// The fixed parts of the page of `weir explain --html`: markup, style and script.
#ifndef WEIR_TOOLS_WEIR_EXPLAIN_PAGE_TEXT_H_
#define WEIR_TOOLS_WEIR_EXPLAIN_PAGE_TEXT_H_

#include <string_view>

namespace weir::cli {

/// Up to the title.
inline constexpr std::string_view kPageHead = R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weir explain</title>
<style>
:root { color-scheme: light dark; --bg: #fff; --fg: #1a1c20; --soft: #667; --line: #d5d8de; --box: #f4f5f8; --mark:
    #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --bg: #15171b; --fg: #e4e6ea; --soft: #9aa; --line: #363a42; --box: #1f2228; --mark: #ff8a80; }
}
:root[data-theme=light] { color-scheme: light; --bg: #fff; --fg: #1a1c20; --soft: #667; --line: #d5d8de; --box:
    #f4f5f8; --mark: #b3261e; }
:root[data-theme=dark] { color-scheme: dark; --bg: #15171b; --fg: #e4e6ea; --soft: #9aa; --line: #363a42; --box:
    #1f2228; --mark: #ff8a80; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0; background: var(--bg); color: var(--fg); }
header, section { padding: 12px 20px; border-bottom: 1px solid var(--line); }
h1 { font-size: 18px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 0 0 8px; }
.soft { color: var(--soft); } .mark { color: var(--mark); }
svg { width: 100%; background: var(--box); border: 1px solid var(--line); border-radius: 4px; display: block; }
svg text { fill: var(--fg); font-size: 11px; }
#graph { height: 480px; cursor: grab; touch-action: none; }
input, button { font: inherit; color: inherit; background: var(--box); border: 1px solid var(--line);
    border-radius: 4px; padding: 3px 8px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 3px 8px; border-bottom: 1px solid var(--line); vertical-align: top; }
th { cursor: pointer; } tr.chosen { font-weight: 600; }
#legend span { margin-right: 14px; } #legend i { display: inline-block; width: 11px; height: 11px; margin-right:
    5px; border-radius: 2px; }
.wide { overflow-x: auto; }
</style></head><body>
<header><h1>)page";

/// From the title to the data.
inline constexpr std::string_view kPageBody = R"page(</h1>
<div id="summary"></div><div id="facts" class="soft"></div><div id="warnings" class="mark"></div>
<p id="legend"></p><button id="theme">light / dark</button></header>
<section><h2>Time line of the simulated step</h2><svg id="time"></svg></section>
<section><h2>Memory</h2><svg id="memory"></svg></section>
<section><h2>Graph</h2>
<p><input id="find" placeholder="search names and ops" size="40"> <button id="fit">fit</button> <button
    id="up">close scopes</button>
<span class="soft">A scope opens with a click; drag and wheel move and zoom.</span></p>
<svg id="graph"></svg><p id="detail" class="soft"></p></section>
<section><h2>Nodes</h2><p id="count" class="soft"></p><div class="wide"><table><thead><tr
    id="heads"></tr></thead><tbody id="rows"></tbody></table></div>
<p><button id="more">more</button></p></section>
<script id="data" type="application/json">)page";

/// From the data to the end.
inline constexpr std::string_view kPageScript = R"page(</script>
<script>
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const NS = 'http://www.w3.org/2000/svg';
const make = (tag, attrs, text, parent) => {
  const e = document.createElementNS(NS, tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined && text !== null) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
};
const cell = (tag, text, parent) => { const e = document.createElement(tag); e.textContent = text;
    parent.appendChild(e); return e; };
const time = ns => ns < 0 ? '-' : ns < 1e3 ? ns + ' ns' : ns < 1e6 ? (ns / 1e3).toPrecision(3) + ' us' : ns < 1e9 ?
    (ns / 1e6).toPrecision(3) + ' ms' : (ns / 1e9).toPrecision(4) + ' s';
const bytes = b => b < 1e3 ? b + ' B' : b < 1e6 ? (b / 1e3).toPrecision(3) + ' KB' : b < 1e9 ?
    (b / 1e6).toPrecision(3) + ' MB' : (b / 1e9).toPrecision(3) + ' GB';
const palette = ['#4c78a8', '#e4873b', '#54a24b', '#b279a2', '#d3504f', '#58a0a8', '#c9a227', '#8b6fc0'];
const devices = D.devices.map(d => d.n);
const color = d => { const i = devices.indexOf(d); return i < 0 ? '#888' : palette[i % palette.length]; };
const byName = new Map(D.nodes.map(n => [n.n, n]));

$('summary').textContent = D.summary;
$('facts').textContent = 'plan ' + (D.plan || 'by rule') + (D.measured ? '; measured ' + time(D.measured.ns) +
    ' a step over ' + D.measured.runs + ' runs, predicted ' + time(D.total) : '');
for (const w of D.warnings) cell('div', 'warning: ' + w, $('warnings'));
for (const d of devices) {
  const s = cell('span', '', $('legend'));
  const i = document.createElement('i');
  i.style.background = color(d);
  s.append(i, d + ' (' + D.nodes.filter(n => n.d === d).length + ' nodes)');
}
$('theme').onclick = () => {
  const dark = getComputedStyle(document.documentElement).colorScheme.trim() === 'dark' ||
    (!document.documentElement.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
};

function drawTime() {
  const links = [...new Set(D.links.map(l => l[0]))], rows = [...devices, ...links], left = 130, width = 1000,
      row = 20;
  const svg = $('time'), total = Math.max(D.total, 1);
  svg.setAttribute('viewBox', `0 0 ${left + width + 10} ${rows.length * row + 26}`);
  const x = t => left + t / total * width;
  const bar = (r, s, f, fill, title) => {
    const e = make('rect', {x: x(s), y: r * row + 3, width: Math.max(x(f) - x(s), 0.4), height: row - 6, fill},
        null, svg);
    make('title', {}, title, e);
  };
  rows.forEach((name, r) => make('text', {x: 4, y: r * row + 14}, name, svg));
  for (const n of D.nodes) if (n.f > n.s) bar(devices.indexOf(n.d), n.s, n.f, color(n.d),
      `${n.n} (${n.o}): ${time(n.f - n.s)} from ${time(n.s)}`);
  for (const l of D.links) bar(devices.length + links.indexOf(l[0]), l[3], l[4], '#999',
      `${l[1] || 'feed'}: ${bytes(l[2])} in ${time(l[4] - l[3])}`);
  for (let k = 0; k <= 4; ++k) make('text', {x: x(total * k / 4) - (k ? 30 : 0), y: rows.length * row + 18},
      time(Math.round(total * k / 4)), svg);
}

function drawMemory() {
  const svg = $('memory'), left = 130, width = 1000, high = 60, total = Math.max(D.total, 1);
  svg.setAttribute('viewBox', `0 0 ${left + width + 10} ${devices.length * (high + 14) + 4}`);
  devices.forEach((name, d) => {
    const points = D.memory.filter(p => p[0] === d), most = Math.max(1, ...points.map(p => p[2]));
    const base = d * (high + 14) + high + 6;
    let path = `M${left} ${base}`, last = 0;
    for (const [, t, b] of points) { const x = left + t / total * width;
        path += `L${x} ${base - last / most * high}L${x} ${base - b / most * high}`; last = b; }
    path += `L${left + width} ${base - last / most * high}L${left + width} ${base}Z`;
    make('path', {d: path, fill: color(name), 'fill-opacity': 0.5, stroke: color(name)}, null, svg);
    make('text', {x: 4, y: base - 30}, name, svg);
    make('text', {x: 4, y: base - 14}, 'peak ' + bytes(points.length ? most : 0) + (D.devices[d].cap > 0 ? ' of ' +
        bytes(D.devices[d].cap) : ''), svg);
  });
}

// The graph: a box for each scope that is closed and for each node of an open one, in columns by depth.
const open = new Set(['']);
const boxOf = name => {
  const parts = name.split('/');
  let scope = '';
  for (let k = 0; k + 1 < parts.length; ++k) {
    const next = scope ? scope + '/' + parts[k] : parts[k];
    if (!open.has(next)) return next + '/';
    scope = next;
  }
  return name;
};
let view = {x: 0, y: 0, k: 1}, boxes = new Map();
function drawGraph() {
  boxes = new Map();
  for (const n of D.nodes) {
    const id = boxOf(n.n);
    if (!boxes.has(id)) boxes.set(id, {id, nodes: [], from: new Set(), depth: 0});
    const box = boxes.get(id);
    box.nodes.push(n);
    for (const i of n.i) if (byName.has(i) && boxOf(i) !== id) box.from.add(boxOf(i));
  }
  const list = [...boxes.values()];
  for (let round = 0, moved = true; moved && round < Math.min(list.length, 200); ++round) {
    moved = false;
    for (const b of list) for (const f of b.from) {
      const depth = boxes.get(f).depth + 1;
      if (depth > b.depth && depth < list.length) { b.depth = depth; moved = true; }
    }
  }
  const fill = {}, svg = $('graph');
  svg.textContent = '';
  const g = make('g', {id: 'all'}, null, svg);
  for (const b of list) { const r = fill[b.depth] = (fill[b.depth] || 0) + 1; b.x = b.depth * 190; b.y = r * 34; }
  for (const b of list) for (const f of b.from) {
    const a = boxes.get(f), cross = a.nodes[0].d !== b.nodes[0].d;
    const ends = [a.x + 160, a.y + 12, a.x + 180, a.y + 12, b.x - 20, b.y + 12, b.x, b.y + 12];
    make('path', {d: 'M' + ends.slice(0, 2) + 'C' + ends.slice(2), fill: 'none', stroke: cross ? '#d3504f' : '#8888',
        'stroke-width': cross ? 1.6 : 1}, null, g);
  }
  const wanted = $('find').value.toLowerCase();
  for (const b of list) {
    const scope = b.id.endsWith('/'), e = make('g', {style: 'cursor:pointer'}, null, g);
    const hit = wanted && b.nodes.some(n => (n.n + ' ' + n.o).toLowerCase().includes(wanted));
    make('rect', {x: b.x, y: b.y, width: 160, height: 24, rx: scope ? 2 : 8, fill: color(b.nodes[0].d),
        'fill-opacity': 0.3, stroke: hit ? '#d00' : color(b.nodes[0].d), 'stroke-width': hit ? 3 : 1}, null, e);
    const counts = {};
    for (const n of b.nodes) counts[n.d] = (counts[n.d] || 0) + 1;
    let at = b.x;
    for (const d of devices) if (counts[d]) { const w = 160 * counts[d] / b.nodes.length; make('rect', {x: at, y:
        b.y + 20, width: w, height: 4, fill: color(d)}, null, e); at += w; }
    const label = (scope ? '+ ' : '') + b.id;
    make('text', {x: b.x + 5, y: b.y + 15}, label.length > 26 ? '\u2026' + label.slice(-25) : label, e);
    make('title', {}, b.id + ': ' + Object.entries(counts).map(([d, c]) => d + ' ' + c).join(', '), e);
    e.onclick = () => { if (scope) { open.add(b.id.slice(0, -1)); drawGraph(); } else show(b.nodes[0]); };
  }
  move();
}
function move() { const g = $('all'); if (g) g.setAttribute('transform',
    `translate(${view.x} ${view.y}) scale(${view.k})`); }
function fit() {
  const all = [...boxes.values()], svg = $('graph');
  const w = Math.max(...all.map(b => b.x + 170), 1), h = Math.max(...all.map(b => b.y + 34), 1);
  const k = Math.min(svg.clientWidth / w, svg.clientHeight / h, 1.5) || 1;
  view = {x: 8, y: 0, k};
  move();
}
function show(n) {
  $('detail').textContent = `${n.n}  ${n.o}  ${n.t}  on ${n.d} (${n.r})  ` +
      n.c.map(c => `${c[0]}: ${c[5]}`).join('; ');
}
$('graph').onwheel = e => {
  e.preventDefault();
  const k = Math.min(Math.max(view.k * (e.deltaY < 0 ? 1.15 : 1 / 1.15), 0.02), 8),
      r = $('graph').getBoundingClientRect();
  const px = e.clientX - r.left, py = e.clientY - r.top;
  view.x = px - (px - view.x) * k / view.k; view.y = py - (py - view.y) * k / view.k; view.k = k;
  move();
};
let drag = null;
$('graph').onpointerdown = e => { drag = [e.clientX - view.x, e.clientY - view.y]; };
window.onpointermove = e => { if (drag) { view.x = e.clientX - drag[0]; view.y = e.clientY - drag[1]; move(); } };
window.onpointerup = () => { drag = null; };
$('fit').onclick = fit;
$('up').onclick = () => { open.clear(); open.add(''); drawGraph(); fit(); };

let shown = 200, by = null, turned = false;
const heads = ['node', 'op', 'device', 'reason', 'time', 'measured', 'start', 'bytes',
    'cost and verdict of each device'];
const keys = [n => n.n, n => n.o, n => n.d, n => n.r, n => n.f - n.s, n => n.m === undefined ? -1 : n.m, n => n.s,
    n => n.b, n => n.n];
heads.forEach((h, k) => { cell('th', h, $('heads')).onclick = () => { turned = by === k && !turned; by = k;
    table(); }; });
function table() {
  const wanted = $('find').value.toLowerCase();
  let list = D.nodes.filter(n => !wanted || (n.n + ' ' + n.o).toLowerCase().includes(wanted));
  if (by !== null) { const key = keys[by]; list = [...list].sort((a, b) => (key(a) < key(b) ? -1 :
      key(a) > key(b) ? 1 : 0) * (turned ? -1 : 1)); }
  $('rows').textContent = '';
  for (const n of list.slice(0, shown)) {
    const row = document.createElement('tr');
    [n.n, n.o + ' ' + n.t, n.d, n.r, time(n.f - n.s), n.m === undefined ? '' : time(n.m), time(n.s),
        bytes(n.b)].forEach(t => cell('td', t, row));
    const costs = cell('td', '', row);
    for (const c of n.c) { const line = cell('div',
        `${c[0]}: ${c[1] < 0 ? '' : time(c[1]) + ' ' + c[2] + ', '}${c[5]}`, costs);
        if (c[6]) line.style.fontWeight = 600; }
    $('rows').appendChild(row);
  }
  $('count').textContent = `${Math.min(shown, list.length)} of ${list.length} nodes`;
  $('more').hidden = shown >= list.length;
}
$('more').onclick = () => { shown *= 4; table(); };
$('find').oninput = () => { drawGraph(); table(); };
drawTime(); drawMemory(); drawGraph(); fit(); table();
</script></body></html>
)page";

}  // namespace weir::cli

#endif  // WEIR_TOOLS_WEIR_EXPLAIN_PAGE_TEXT_H_
