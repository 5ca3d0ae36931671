"use strict";
// The page of `ringpipe view`: it reads /runs.json and /events, and draws. No other address is
// used.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const STEPS_MAX = 6000, EVENTS_MAX = 300, RING_MAX = 7, LOOP_MAX = 16, GRID_MAX = 64, GROUP = 16;
const LETTERS = {
  training: "T",
  evaluating: "E",
  ready: "R",
  building: "B",
  measuring: "M",
  silent: "S",
  away: "A"
};

// ---- small things --------------------------------------------------------------------------

function make(tag, attributes, ...inside) {
  const svg = /^(svg|g|rect|circle|path|line|polyline|text|title)$/.test(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    element.setAttribute(key, value);
  }
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

const isNumber = (value) => typeof value === "number" && isFinite(value);
const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
// Keeps the end, which often is a number.
const shortenName = (text, most) =>
    (text.length <= most ? text : text.slice(0, Math.max(1, most - 5)) + "…" + text.slice(-4));
const percent = (share) => (isNumber(share) ? Math.round(100 * share) + " %" : "");

function short(value) {
  if (!isNumber(value)) {
    return "–";
  }
  const size = Math.abs(value);
  return size >= 1000         ? value.toFixed(0) :
      size >= 100             ? value.toFixed(1) :
      size >= 1 || size === 0 ? String(+value.toFixed(3)) :
      size >= 1e-3            ? String(+value.toPrecision(3)) :
                                value.toExponential(2);
}

function clock(seconds) {
  if (!isNumber(seconds)) {
    return "–";
  }
  const s = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` :
                     `${Math.floor(s / 60)}:${two(s % 60)}`;
}

function bits(rate) {
  if (!isNumber(rate)) {
    return "";
  }
  const b = 8 * rate;
  return b >= 1e9 ? (b / 1e9).toFixed(1) + " Gb/s" :
      b >= 1e6    ? (b / 1e6).toFixed(1) + " Mb/s" :
                    (b / 1e3).toFixed(0) + " kb/s";
}

function mebi(bytes) {
  return !isNumber(bytes) ? "" :
      bytes < 1048576     ? (bytes / 1024).toFixed(0) + " KiB" :
                            (bytes / 1048576).toFixed(bytes < 1e7 ? 1 : 0) + " MiB";
}

const stateClass = (state) =>
    (/^[a-z ]+$/.test(state || "") ? "s-" + state.replace(/ /g, "-") : "");

// ---- data of a run -------------------------------------------------------------------------

let run = null;

function emptyData() {
  return {
    generation: null,
    lastLine: 0,
    steps: [],
    events: [],
    scores: new Map(),
    sites: new Map()
  };
}
let data = emptyData();
let state = null;
let busy = [];
let openGroup = -1;
let dirty = false;

// Of many steps the older half is thinned out.
function addStep(line) {
  data.steps.push([line.step, isNumber(line.loss) ? line.loss : NaN]);
  if (data.steps.length > STEPS_MAX) {
    const half = STEPS_MAX / 2;
    data.steps = data.steps.filter((_, i) => i > half || i % 2 === 0);
  }
}

function wordsOf(line) {
  if (line.event !== "eval") {
    return line.text || null;
  }
  const parts = [`${line.split || "evaluation"} loss ${short(line.loss)}`];
  if (isNumber(line.accuracy)) {
    parts.push(`accuracy ${(100 * line.accuracy).toFixed(2)} %`);
  }
  if (isNumber(line.mean_iou)) {
    parts.push(`mean IoU ${(100 * line.mean_iou).toFixed(2)} %`);
  }
  return parts.join(", ");
}

function addLine(line) {
  if (typeof line.site === "string") {
    data.sites.set(line.site, {...data.sites.get(line.site), ...line});
  }
  if (!line.event) {
    if (isNumber(line.step)) {
      addStep(line);
    }
    return;
  }
  if (line.event === "eval" && typeof line.split === "string") {
    const list = data.scores.get(line.split) || [];
    list.push([line.step, line.accuracy, line.loss]);
    data.scores.set(line.split, list);
  }
  const words = wordsOf(line);
  if (words) {
    data.events.push({kind: line.event, step: line.step, time: line.time_s, words});
    if (data.events.length > EVENTS_MAX) {
      data.events.splice(0, data.events.length - EVENTS_MAX);
    }
  }
}

function parse(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

function follow() {
  const source = new EventSource("/events?run=" + encodeURIComponent(run));
  source.addEventListener("hello", (event) => {
    const hello = parse(event.data);
    if (!hello) {
      return;
    }
    $("link").textContent = "";
    if (data.generation !== null && hello.generation !== data.generation && data.lastLine > 0) {
      data = emptyData(); // the log was rewritten: all its lines are read again
      source.close();
      setTimeout(follow, 100);
      return;
    }
    data.generation = hello.generation;
  });
  source.addEventListener("state", (event) => {
    state = parse(event.data) || state;
    const shares = (state && state.boards || []).map((board) => board.busy).filter(isNumber);
    if (shares.length > 0) {
      busy.push(shares.reduce((a, b) => a + b, 0) / shares.length);
      busy = busy.slice(-600);
    }
    dirty = true;
  });
  source.onmessage = (event) => {
    const line = parse(event.data), number = Number(event.lastEventId);
    if (line && number > data.lastLine) {
      data.lastLine = number;
      addLine(line);
      dirty = true;
    }
  };
  source.onerror = () => {
    $("link").textContent = "no connection; trying again";
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(follow, 3000);
    }
  };
}

// ---- boards --------------------------------------------------------------------------------

function boardTitle(board) {
  const lines = [board.name, board.state || "state unknown"];
  const add = (name, text) => text && lines.push(`${name}: ${text}`);
  add("last op", board.op);
  add("stages", board.stages);
  add("layers", board.layers && `${board.layers} (${board.layer_count})`);
  add("role", board.role);
  add("busy", percent(board.busy));
  add("busy on average", percent(board.busy_mean));
  add("memory", mebi(board.memory_bytes));
  add("temperature", isNumber(board.heat_c) ? board.heat_c.toFixed(0) + " °C" : "");
  add("power", isNumber(board.power_w) ? board.power_w.toFixed(1) + " W" : "");
  add("energy", isNumber(board.energy_j) ? board.energy_j.toFixed(0) + " J" : "");
  add("staleness", isNumber(board.staleness) ? `${board.staleness} updates` : "");
  add("silent for", board.silent_s > 3 ? board.silent_s.toFixed(0) + " s" : "");
  return lines.join("\n");
}

function factsOf(board) {
  const facts = [mebi(board.memory_bytes)];
  facts.push(isNumber(board.heat_c) ? board.heat_c.toFixed(0) + " °C" : "");
  facts.push(isNumber(board.power_w) ? board.power_w.toFixed(0) + " W" : "");
  facts.push(board.staleness > 0 ? `stale ${board.staleness}` : "");
  return facts.filter((fact) => fact).join(" ");
}

// A card with its centre at (x, y).
function drawBoard(board, x, y, w, h) {
  const left = x - w / 2, top = y - h / 2, small = w < 130;
  const g = make("g", {class: "board " + stateClass(board.state)});
  const room = Math.floor((w - 40) / 7);
  g.append(
      make("title", {}, boardTitle(board)),
      make("rect", {class: "box", x: left, y: top, width: w, height: h, rx: 7}),
      make("text", {class: "bold", x: left + 8, y: top + 18}, shortenName(board.name, room)));
  if (board.state) {
    g.append(
        make("circle", {class: "letter", cx: left + w - 15, cy: top + 14, r: 9}),
        make(
            "text", {class: "letter-text", x: left + w - 15, y: top + 18, "text-anchor": "middle"},
            LETTERS[board.state] || "?"));
  }
  if (!small) {
    const stage = board.layers ? `${shorten(board.layers, room + 4)}` : "";
    g.append(
        make("text", {class: "small", x: left + 8, y: top + 34}, stage),
        make(
            "text", {class: "small", x: left + 8, y: top + 49}, shorten(factsOf(board), room + 9)));
  } else if (board.stages) {
    g.append(make(
        "text", {class: "small", x: left + 8, y: top + 33}, "stage " + shorten(board.stages, 8)));
  }
  const bar = w - (small ? 16 : 56), at = top + h - 12;
  g.append(make("rect", {class: "track", x: left + 8, y: at, width: bar, height: 6, rx: 3}));
  const share = board.busy ?? board.busy_mean; // of an ended run the mean
  if (isNumber(share)) {
    g.append(
        make("rect", {class: "bar", x: left + 8, y: at, width: bar * share, height: 6, rx: 3}));
    if (!small) {
      g.append(make(
          "text", {class: "small", x: left + w - 8, y: at + 7, "text-anchor": "end"},
          percent(share)));
    }
  }
  return g;
}

function drawHost(x, y, w, h) {
  return make(
      "g", {class: "board host"},
      make("rect", {class: "box", x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 7}),
      make("text", {class: "bold", x, y: y - 2, "text-anchor": "middle"}, "host"),
      make("text", {class: "small", x, y: y + 15, "text-anchor": "middle"}, "inputs, labels"));
}

// ---- wires ---------------------------------------------------------------------------------

// Pairs of ends with both directions: {a, b, there, back}; neighbours are pairs without a report,
// too.
function pairsOf(boards, wires) {
  const pairs = new Map();
  const pair = (a, b) => {
    const key = JSON.stringify([a, b].sort());
    if (!pairs.has(key)) {
      pairs.set(key, {a, b, there: null, back: null});
    }
    return pairs.get(key);
  };
  if (boards.length > 0) {
    pair("host", boards[0].name);
    pair(boards[boards.length - 1].name, "host");
  }
  for (let i = 1; i < boards.length; i++) {
    pair(boards[i - 1].name, boards[i].name);
  }
  for (const wire of wires) {
    if (wire.from && wire.to && wire.from !== wire.to && (wire.bytes > 0 || wire.kind === "hop")) {
      const found = pair(wire.from, wire.to);
      found[found.a === wire.from ? "there" : "back"] = wire;
    }
  }
  return [...pairs.values()];
}

const wireClass = (wire) =>
    (!wire || !(wire.bytes > 0) ? " unused" :
         wire.use > 0.9         ? " full-use" :
                                  "");

function arrowOf(from, to) {
  const turn = Math.round(4 * Math.atan2(to.y - from.y, to.x - from.x) / Math.PI);
  return "→↘↓↙←↖↑↗"[(turn + 8) % 8];
}

function wireText(wire, arrow) {
  const parts = wire ? [percent(wire.use), bits(wire.rate_bytes_s)].filter((part) => part) : [];
  if (wire && wire.queue > 3) {
    parts.push(`${wire.queue} wait`);
  }
  if (wire && wire.resent > 0) {
    parts.push(`${wire.resent} resent`);
  }
  return parts.length > 0 ? arrow + " " + parts.join(" ") : "";
}

// From the border of the box p, {x, y, w, h}, towards q.
function borderPoint(p, q) {
  const dx = q.x - p.x, dy = q.y - p.y;
  const scale = 1 / Math.max(Math.abs(dx) / (p.w / 2 + 5), Math.abs(dy) / (p.h / 2 + 5), 1e-9);
  return {x: p.x + dx * Math.min(scale, 0.5), y: p.y + dy * Math.min(scale, 0.5)};
}

function drawArrow(from, to, wire, shift) {
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
  const ux = dx / length, uy = dy / length, sx = -uy * shift, sy = ux * shift;
  const x1 = from.x + sx, y1 = from.y + sy, x2 = to.x + sx, y2 = to.y + sy;
  const width = 1.5 + (wire && isNumber(wire.use) ? 4 * wire.use : 0);
  const bx = x2 - 8 * ux, by = y2 - 8 * uy;
  return make(
      "g", {},
      make(
          "title", {},
          wire ? `${wire.from} to ${wire.to}: ${wireText(wire, "")}` : "no report yet"),
      make(
          "path",
          {class: "wire" + wireClass(wire), d: `M${x1} ${y1}L${bx} ${by}`, "stroke-width": width}),
      make("path", {
        class: "head" + wireClass(wire),
        d: `M${x2} ${y2}L${bx - 5 * uy} ${by + 5 * ux}L${bx + 5 * uy} ${by - 5 * ux}Z`
      }));
}

// Both directions between two boxes. `label` gives the place of their texts, from the middle.
function drawPair(pair, places, label) {
  const p = places.get(pair.a), q = places.get(pair.b);
  if (!p || !q) {
    return null;
  }
  const from = borderPoint(p, q), to = borderPoint(q, p), dx = q.x - p.x, dy = q.y - p.y;
  const g = make("g", {}, drawArrow(from, to, pair.there, -4), drawArrow(to, from, pair.back, -4));
  if (label) {
    const [x, y, anchor, short] =
        label((from.x + to.x) / 2, (from.y + to.y) / 2, Math.abs(dx) > Math.abs(dy));
    const text = (wire, arrow) =>
        (!short                         ? wireText(wire, arrow) :
             wire && isNumber(wire.use) ? arrow + percent(wire.use) :
                                          "");
    const lines = [text(pair.there, arrowOf(p, q)), text(pair.back, arrowOf(q, p))];
    lines.filter((line) => line)
        .forEach(
            (line, i, all) => g.append(make(
                "text",
                {class: "rate", x, y: y + 14 * i - 7 * (all.length - 1) + 4, "text-anchor": anchor},
                line)));
  }
  return g;
}

// ---- layouts -------------------------------------------------------------------------------

function drawRing(boards, wires) {
  const n = boards.length + 1, w = n > 9 ? 140 : 168, h = 66;
  const rx = Math.max(240, n * 46), ry = Math.max(165, n * 32);
  const cx = rx + w / 2 + 85, cy = ry + h / 2;
  const places = new Map();
  const place = (i, width, height) => {
    const turn = 2 * Math.PI * i / n - Math.PI / 2;
    return {x: cx + rx * Math.cos(turn), y: cy + ry * Math.sin(turn), w: width, h: height};
  };
  places.set("host", place(0, 120, 46));
  boards.forEach((board, i) => places.set(board.name, place(i + 1, w, h)));
  const low = Math.max(...[...places.values()].map((at) => at.y)) + h / 2 + 30;
  const svg =
      make("svg", {viewBox: `0 0 ${2 * cx} ${low}`, role: "img", "aria-label": "ring of boards"});
  for (const pair of pairsOf(boards, wires)) {
    const label = (x, y) => {
      const dx = (x - cx) / rx, dy = (y - cy) / ry, size = Math.hypot(dx, dy);
      if (size < 0.5) { // a wire across the ring
        return [x, y, "middle"];
      }
      const ox = 16 * dx / size, oy = 20 * dy / size;
      return [x + ox, y + oy, Math.abs(dx) < 0.15 ? "middle" : dx < 0 ? "end" : "start"];
    };
    svg.append(drawPair(pair, places, label) || "");
  }
  svg.append(drawHost(places.get("host").x, places.get("host").y, 120, 46));
  for (const board of boards) {
    const at = places.get(board.name);
    svg.append(drawBoard(board, at.x, at.y, w, h));
  }
  return svg;
}

// More boards: the ring along the edges of a grid, with the host at the first place.
function drawLoop(boards, wires) {
  const n = boards.length + 1, w = 140, h = 66, gx = 64, gy = 52;
  const columns = n > 12 ? 5 : 4, rows = Math.max(2, Math.ceil((n - 2 * columns) / 2) + 2);
  const cells = [];
  for (let x = 0; x < columns; x++) {
    cells.push([x, 0]);
  }
  for (let y = 1; y < rows; y++) {
    cells.push([columns - 1, y]);
  }
  for (let x = columns - 2; x >= 0; x--) {
    cells.push([x, rows - 1]);
  }
  for (let y = rows - 2; y > 0; y--) {
    cells.push([0, y]);
  }
  const place = (i, height) => {
    const [x, y] = cells[Math.floor(i * cells.length / n)];
    return {x: 10 + w / 2 + x * (w + gx), y: 10 + h / 2 + y * (h + gy), w, h: height};
  };
  const places =
      new Map([["host", place(0, 46)], ...boards.map((board, i) => [board.name, place(i + 1, h)])]);
  const svg = make(
      "svg",
      {viewBox: `0 0 ${columns * (w + gx) - gx + 20} ${rows * (h + gy) - gy + 20}`, role: "img"});
  const middle = (columns * (w + gx) - gx + 20) / 2;
  const label = (x, y, flat) =>
      (flat           ? [x, y - 26, "middle", true] :
           x > middle ? [x - 12, y, "end"] :
                        [x + 12, y, "start"]);
  for (const pair of pairsOf(boards, wires)) {
    svg.append(drawPair(pair, places, label) || "");
  }
  svg.append(drawHost(places.get("host").x, places.get("host").y, w, 46));
  for (const board of boards) {
    svg.append(drawBoard(board, places.get(board.name).x, places.get(board.name).y, w, h));
  }
  return svg;
}

// For a narrow screen: one board below another.
function drawColumn(boards, wires) {
  const w = 200, h = 66, gap = 46, x = 115;
  const places = new Map([["host", {x, y: 30, w, h: 46}]]);
  boards.forEach((board, i) => places.set(board.name, {x, y: 30 + (i + 1) * (h + gap), w, h}));
  const svg = make("svg", {viewBox: `0 0 360 ${60 + boards.length * (h + gap) + 10}`, role: "img"});
  const label = (px, py) => [px + 14, py, "start"];
  const order = new Map([["host", 0], ...boards.map((board, i) => [board.name, i + 1])]);
  for (const pair of pairsOf(boards, wires)) {
    if (Math.abs(order.get(pair.a) - order.get(pair.b)) === 1) {
      const down = order.get(pair.a) < order.get(pair.b);
      const ordered = down ? pair : {a: pair.b, b: pair.a, there: pair.back, back: pair.there};
      svg.append(drawPair(ordered, places, label) || "");
    } else if (pair.a === "host" || pair.b === "host") { // the way back to the host, on the right
      const last = places.get(pair.a === "host" ? pair.b : pair.a);
      const toHost = pair.a === "host" ? pair.back : pair.there;
      if (last) {
        svg.append(
            make("path", {
              class: "wire" + wireClass(toHost),
              d: `M${x + w / 2 + 4} ${last.y}H346V30H${x + w / 2 + 8}`,
              "stroke-width": 1.5
            }),
            make("path", {class: "head" + wireClass(toHost), d: `M${x + w / 2 + 2} 30l8 -5v10Z`}));
      }
    }
  }
  svg.append(drawHost(x, 30, w, 46));
  for (const board of boards) {
    svg.append(drawBoard(board, x, places.get(board.name).y, w, h));
  }
  return svg;
}

// Rows in turns from left to right and from right to left, so that neighbours touch.
function drawGrid(boards, wires, narrow) {
  const columns = narrow ? 3 : Math.min(8, Math.ceil(Math.sqrt(boards.length * 1.4)));
  const w = 100, h = 52, gx = 22, gy = 20, rows = Math.ceil(boards.length / columns);
  const places = new Map();
  boards.forEach((board, i) => {
    const row = Math.floor(i / columns), at = i % columns, column = row % 2 ? columns - 1 - at : at;
    places.set(
        board.name, {x: 10 + w / 2 + column * (w + gx), y: 8 + h / 2 + row * (h + gy), w, h});
  });
  const svg = make(
      "svg",
      {viewBox: `0 0 ${columns * (w + gx) - gx + 20} ${rows * (h + gy) - gy + 16}`, role: "img"});
  for (const pair of pairsOf(boards, wires)) {
    if (pair.a !== "host" && pair.b !== "host") {
      svg.append(drawPair(pair, places, null) || "");
    }
  }
  for (const board of boards) {
    const at = places.get(board.name);
    svg.append(drawBoard(board, at.x, at.y, w, h));
  }
  return svg;
}

const RANK = ["away", "silent", "building", "measuring", "evaluating", "ready", "training"];

// A group looks like a board with the worst state of its boards and their mean busy share.
function groupOf(boards, index) {
  const shares = boards.map((board) => board.busy).filter(isNumber);
  const worst = RANK.find((name) => boards.some((board) => board.state === name));
  const heat = boards.map((board) => board.heat_c).filter(isNumber);
  const first = boards[0].name, last = boards[boards.length - 1].name;
  let same = 0; // letters that both names begin with, up to the last digit that differs
  while (same < first.length && first[same] === last[same] && !/[0-9]/.test(first[same])) {
    same++;
  }
  return {
    name: `${first} .. ${last.slice(same)}`,
    state: worst,
    index,
    layers: `${boards.length} boards` +
        (worst && worst !== "training" ?
             `, ${boards.filter((board) => board.state === worst).length} ${worst}` :
             ""),
    heat_c: heat.length > 0 ? Math.max(...heat) : undefined,
    busy: shares.length > 0 ? shares.reduce((a, b) => a + b, 0) / shares.length : undefined
  };
}

function drawGroups(boards, narrow) {
  const columns = narrow ? 2 : 4, w = 168, h = 66, gap = 14;
  const groups = [];
  for (let i = 0; i < boards.length; i += GROUP) {
    groups.push(groupOf(boards.slice(i, i + GROUP), groups.length));
  }
  const rows = Math.ceil(groups.length / columns);
  const svg =
      make("svg", {viewBox: `0 0 ${columns * (w + gap) + 6} ${rows * (h + gap) + 6}`, role: "img"});
  groups.forEach((group, i) => {
    const x = 10 + w / 2 + (i % columns) * (w + gap),
          y = 10 + h / 2 + Math.floor(i / columns) * (h + gap);
    const g = drawBoard(group, x, y, w, h);
    g.classList.add("group");
    g.addEventListener("click", () => {
      openGroup = openGroup === i ? -1 : i;
      draw();
    });
    svg.append(g);
  });
  return svg;
}

function drawBoards() {
  const boards = state.boards || [], wires = state.wires || [];
  const narrow = matchMedia("(max-width: 600px)").matches, box = $("ring");
  if (boards.length > GRID_MAX) {
    const parts = [drawGroups(boards, narrow)];
    const inside = boards.slice(openGroup * GROUP, openGroup * GROUP + GROUP);
    if (openGroup >= 0 && inside.length > 0) {
      parts.push(
          make("p", {class: "dim"}, "Boards of the group; click the group again to close it."),
          drawGrid(inside, wires, narrow));
    }
    box.replaceChildren(...parts);
  } else if (boards.length > LOOP_MAX) {
    box.replaceChildren(drawGrid(boards, wires, narrow));
  } else if (boards.length > 0) {
    box.replaceChildren(
        (narrow                       ? drawColumn :
             boards.length > RING_MAX ? drawLoop :
                                        drawRing)(boards, wires));
  } else {
    box.replaceChildren(make("p", {class: "dim"}, "The run has no plan yet."));
  }
  const used = [...new Set(boards.map((board) => board.state).filter((name) => name))];
  $("legend").replaceChildren(...used.flatMap(
      (name) =>
          [make("span", {class: "chip " + stateClass(name)}, LETTERS[name] || "?"), name + "   "]));
}

// ---- curves --------------------------------------------------------------------------------

const TICKS = {
  fault: "fault",
  recovered: "recovered",
  plan: "plan",
  resumed: "recovered"
};

// Round values between two numbers.
function marksOf(low, high, most) {
  const raw = (high - low) / most || 1, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * unit).find((n) => n >= raw);
  const marks = [];
  for (let value = Math.ceil(low / step) * step;
       value <= high + 1e-9 * step && marks.length < 20; value += step) {
    marks.push(+value.toPrecision(12));
  }
  return marks;
}

// `series`: [{points: [[x, y], ..], name, kind}].
function drawCurves(box, series, options) {
  const w = 460, h = 190, left = 44, right = 10, top = 8, bottom = 22;
  const all = series.flatMap((one) => one.points).filter(([, y]) => isNumber(y));
  if (all.length === 0) {
    box.replaceChildren(make("p", {class: "dim"}, options.empty));
    return;
  }
  const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]).sort((a, b) => a - b);
  const x0 = options.x0 ?? Math.min(...xs), x1 = Math.max(...xs, x0 + 1);
  let y0 = options.y0 ?? ys[0], y1 = options.y1 ?? ys[Math.floor((ys.length - 1) * 0.995)];
  // Equal losses may differ in their last bits, which is no range to draw.
  y1 = y1 - y0 > 1e-9 * Math.abs(y0) ? y1 : y0 + (Math.abs(y0) || 1) * 0.1;
  const px = (x) => left + (w - left - right) * (x - x0) / (x1 - x0);
  const py = (y) =>
      top + (h - top - bottom) * (1 - (Math.min(Math.max(y, y0), y1) - y0) / (y1 - y0));
  const svg = make("svg", {viewBox: `0 0 ${w} ${h}`, role: "img"});
  for (const y of marksOf(y0, y1, 4)) {
    svg.append(
        make("line", {class: "axis", x1: left, x2: w - right, y1: py(y), y2: py(y)}),
        make(
            "text", {class: "small", x: left - 5, y: py(y) + 4, "text-anchor": "end"},
            options.share ? percent(y) : short(y)));
  }
  for (const x of options.plain ? [] : marksOf(x0, x1, 5)) {
    svg.append(
        make("text", {class: "small", x: px(x), y: h - 6, "text-anchor": "middle"}, String(x)));
  }
  for (const event of options.plain ? [] : data.events) {
    if (TICKS[event.kind] && event.step >= x0 && event.step <= x1) {
      const x = px(event.step) + (event.kind === "recovered" ? 2 : 0); // next to its fault
      svg.append(make(
          "g", {}, make("title", {}, `step ${event.step}: ${event.words}`),
          make(
              "line",
              {class: "tick " + TICKS[event.kind], x1: x, x2: x, y1: top, y2: h - bottom})));
    }
  }
  series.forEach((one, i) => {
    const points = one.points.filter(([, y]) => isNumber(y))
                       .map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`);
    svg.append(make("polyline", {class: one.kind, points: points.join(" ")}));
    if (one.dots && points.length < 40) {
      points.forEach((point) => svg.append(make("circle", {
        class: "dot " + one.dots,
        r: 2.5,
        cx: point.split(",")[0],
        cy: point.split(",")[1]
      })));
    }
    if (one.name) {
      svg.append(make(
          "text", {class: "rate", x: w - right, y: h - bottom - 8 - 14 * i, "text-anchor": "end"},
          `${one.name} ${percent(one.points[one.points.length - 1][1])}`));
    }
  });
  box.replaceChildren(svg);
}

// At most `most` points, each the mean of its neighbours.
function smooth(points, most) {
  const size = Math.max(1, Math.ceil(points.length / most)), out = [];
  for (let i = 0; i < points.length; i += size) {
    const part = points.slice(i, i + size).filter(([, y]) => isNumber(y));
    if (part.length > 0) {
      out.push([part[part.length - 1][0], part.reduce((sum, [, y]) => sum + y, 0) / part.length]);
    }
  }
  return out;
}

// A moving mean over about 2 % of the points.
function movingMean(points) {
  const weight = Math.min(1, 50 / Math.max(points.length, 1)) || 1;
  let mean = NaN;
  return points.map(([x, y]) => {
    mean = isNumber(mean) ? mean + weight * (y - mean) : y;
    return [x, mean];
  });
}

function drawAllCurves() {
  const losses = smooth(data.steps, 600);
  drawCurves(
      $("loss"), [{points: losses, kind: "raw"}, {points: movingMean(losses), kind: "curve"}],
      {x0: 0, empty: "No step yet."});
  const kinds = ["", "second", "third"];
  const scores =
      [...data.scores]
          .slice(0, 3)
          .map(
              ([name, list], i) => ({
                name,
                points:
                    list.map(([step, accuracy]) => [step, accuracy]).filter(([, y]) => isNumber(y)),
                kind: "curve " + kinds[i],
                dots: kinds[i] || "first"
              }))
          .filter((one) => one.points.length > 0);
  $("accuracy-box").hidden = scores.length === 0;
  if (scores.length > 0) {
    drawCurves($("accuracy"), scores, {x0: 0, share: true, empty: ""});
  }
  $("busy-box").hidden = busy.length < 2;
  if (busy.length >= 2) {
    drawCurves(
        $("busy"), [{points: busy.map((share, i) => [i, share]), kind: "curve second"}],
        {y0: 0, y1: 1, share: true, plain: true, empty: ""});
  }
}

// ---- the page ------------------------------------------------------------------------------

function drawNumbers() {
  const steps = state.steps, parts = [];
  const add = (name, value) =>
      parts.push(make("div", {}, make("span", {}, name), make("b", {}, value)));
  add(state.unit || "step", steps ? `${state.step} / ${steps}` : String(state.step));
  if (isNumber(state.epoch)) {
    add("epoch", String(state.epoch + 1));
  }
  add("loss", short(state.loss));
  add("samples/s", short(state.samples_per_s));
  if (isNumber(state.left_s) && state.condition !== "finished") {
    add("left", clock(state.left_s));
  }
  if (isNumber(state.learning_rate)) {
    add("learning rate", short(state.learning_rate));
  }
  if (isNumber(state.time_s)) {
    add("time", clock(state.time_s));
  }
  if (state.controller) {
    add("controller", state.controller);
  }
  if (steps) {
    parts.push(make("progress", {max: steps, value: Math.min(state.step, steps)}));
  }
  $("numbers").replaceChildren(...parts);
}

function drawEvents() {
  $("events").replaceChildren(...data.events.slice().reverse().map(
      (event) => make(
          "li", {class: TICKS[event.kind] || ""},
          make("span", {}, `${clock(event.time)}  ${state.unit || "step"} ${event.step}`),
          event.words)));
}

function drawSites() {
  const sites = new Map((state.sites || []).map((site) => [site.site, {state: site.state}]));
  for (const [name, site] of data.sites) {
    sites.set(name, {...site, ...sites.get(name)});
  }
  $("sites-box").hidden = sites.size === 0;
  $("ring-box").hidden = sites.size > 0;
  const cell = (value) =>
      make("td", {class: "number"}, Number.isInteger(value) ? String(value) : short(value));
  $("sites").replaceChildren(...[...sites].sort().map(
      ([name, site]) => make(
          "tr", {}, make("td", {}, name), make("td", {}, site.state || ""), cell(site.round),
          cell(site.samples), cell(site.loss), cell(site.late))));
}

function draw() {
  if (!state) {
    return;
  }
  document.title = `${state.run} – ringpipe`;
  $("name").textContent = state.run;
  $("condition").textContent = state.condition || "";
  $("condition").className = "chip " + stateClass(state.condition);
  $("method").textContent = [
    state.model && state.model.split("/").pop(), state.schedule
  ].filter((word) => word).join(", ");
  $("age").textContent = state.age_s > 5 ? `${state.age_s.toFixed(0)} s old` : "";
  drawNumbers();
  drawBoards();
  drawAllCurves();
  drawSites();
  drawEvents();
}

function showRow(row) {
  const link = make("a", {href: "/?run=" + encodeURIComponent(row.run)}, row.run);
  const cell = (value, kind) => make("td", {class: kind}, value);
  return make(
      "tr", {}, make("td", {}, link),
      make(
          "td", {},
          make("span", {class: "chip " + stateClass(row.condition)}, row.condition || "")),
      cell((row.model || "").split("/").pop(), "wide"), cell(row.schedule || "", "wide"),
      cell(row.steps ? `${row.step} / ${row.steps}` : String(row.step), "number"),
      cell(short(row.loss), "number"), cell(short(row.samples_per_s), "number wide"),
      cell(row.condition === "training" ? clock(row.left_s) : "–", "number"));
}

async function readRuns() {
  const answer = await fetch("/runs.json");
  if (!answer.ok) {
    throw new Error(`status ${answer.status}`);
  }
  return (await answer.json()).runs;
}

async function showOverview() {
  try {
    const runs = await readRuns();
    $("link").textContent = "";
    $("runs").replaceChildren(...runs.map(showRow));
    $("no-runs").hidden = runs.length > 0;
  } catch (error) {
    $("link").textContent = "no connection; trying again";
  }
  setTimeout(showOverview, 3000);
}

function showRun(name) {
  run = name;
  $("run").hidden = false;
  follow();
  setInterval(() => {
    if (dirty && !document.hidden) {
      dirty = false;
      draw();
    }
  }, 250);
  addEventListener("resize", () => {
    dirty = true;
  });
}

async function begin() {
  const asked = new URLSearchParams(location.search).get("run");
  if (asked !== null) {
    showRun(asked);
    return;
  }
  try {
    const runs = await readRuns();
    if (runs.length === 1) {
      showRun(runs[0].run);
      return;
    }
  } catch (error) {
    $("link").textContent = "no connection; trying again";
  }
  $("overview").hidden = false;
  showOverview();
}

begin();
