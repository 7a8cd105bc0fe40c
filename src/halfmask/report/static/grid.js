"use strict";
// A grid at any level of its hierarchy: what the slider leaves of the merges, drawn as heat maps.
const grid = JSON.parse(document.getElementById("grid").textContent);
const at = (id) => document.getElementById(id);
const CELL = 30, LEAST = 9, TREE = 60, NAMES = 230, MOST_FACETS = 24, STRONG = 3;
const SVG = "http://www.w3.org/2000/svg";
const count = (n) => n.toLocaleString("en");
const total = grid.counts.reduce((sum, n) => sum + n, 0);

function shape(kind, given, words) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

// The parts of one variable after so many merges, in an order in which merges join neighbors.
function partsAt(side, level) {
  const found = grid.variables[side].parts.map((part, place) => ({ ...part, held: [place] }));
  const kept = found.map((_, place) => place);
  grid.merges.slice(0, level).forEach(([merged, into, gone]) => {
    if (merged !== side) return;
    join(found[into], found[gone]);
    kept.splice(kept.indexOf(gone), 1);
  });
  const shown = grid.variables[side].order.filter((place) => kept.includes(place));
  return shown.map((place) => found[place]);
}

function join(one, other) {
  one.held = one.held.concat(other.held);
  one.values += other.values;
  one.observations += other.observations;
  if ("from" in one) {
    const [low, high] = one.from <= other.from ? [one, other] : [other, one];
    [one.above, one.up_to] = [low.above, high.up_to];
    one.from = low.from;
  } else {
    one.typical = one.typical.concat(other.typical).sort((a, b) => b[1] - a[1]).slice(0, 5);
  }
}

function named(part) {
  if ("from" in part) {
    if (part.above === null) return part.up_to === null ? "all" : `up to ${part.up_to}`;
    return part.up_to === null ? `above ${part.above}` : `${part.above} to ${part.up_to}`;
  }
  if (!part.typical.length) return `${count(part.values)} of ${count(part.observations)} cells`;
  const few = part.values <= 3 && part.typical.length === part.values;
  const names = part.typical.slice(0, few ? 3 : 2).map(([text]) => text);
  return few ? names.join(" | ") : `${names.join(" | ")} | ${count(part.values - 2)} more`;
}

function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
}

// White where a cell holds as many as if variables were independent, red where more, blue fewer.
function color(lift) {
  if (lift === 0) return "#b9c9ee";
  const far = Math.max(-1, Math.min(1, Math.log2(lift) / STRONG));
  const pale = Math.round(255 * (1 - Math.abs(far)));
  return far >= 0 ? `rgb(255,${pale},${pale})` : `rgb(${pale},${pale},255)`;
}

// Merges still to come, as brackets over the parts that are shown.
function tree(side, level, size, across) {
  const out = shape("g", { fill: "none", stroke: "currentColor" });
  const shown = partsAt(side, level), place = new Map(), where = new Map();
  shown.forEach((part, i) => part.held.forEach((leaf) => place.set(leaf, i)));
  shown.forEach((_, i) => where.set(i, { middle: (i + 0.5) * size, far: 0 }));
  grid.merges.forEach(([merged, into, gone, information], step) => {
    if (step < level || merged !== side) return;
    const [a, b] = [place.get(into), place.get(gone)];
    const [one, other] = [where.get(a), where.get(b)];
    const far = Math.max(one.far, other.far, TREE * (1 - Math.max(0, information)));
    const along = [[one.middle, one.far], [one.middle, far], [other.middle, far],
      [other.middle, other.far]];
    const points = along.map(([m, f]) => (across ? `${m},${TREE - f}` : `${f},${m}`)).join(" ");
    const line = shape("polyline", { points });
    line.append(shape("title", {}, `joined: ${(100 * information).toFixed(1)} % is kept`));
    out.append(line);
    for (const [leaf, was] of place) if (was === b) place.set(leaf, a);
    where.set(a, { middle: (one.middle + other.middle) / 2, far });
  });
  return out;
}

function heatMap(down, across, level, cells, expected, title) {
  const rows = partsAt(down, level), columns = partsAt(across, level);
  const size = Math.max(LEAST, Math.min(CELL, 900 / Math.max(rows.length, columns.length)));
  const wide = columns.length * size, high = rows.length * size;
  const letters = Math.max(LEAST, Math.min(13, size - 1));
  const longest = (parts) => Math.max(...parts.map((part) => named(part).length));
  const left = Math.min(NAMES, 12 + longest(rows) * letters * 0.62);
  const below = 16 + 0.8 * Math.min(NAMES, longest(columns) * letters * 0.62);
  const svg = shape("svg", {
    viewBox: `0 0 ${left + wide + TREE + 8} ${TREE + high + below}`, role: "img",
    width: left + wide + TREE + 8, "font-size": letters,
  });
  svg.append(shape("title", {}, title));
  const place = [new Map(), new Map()];
  [rows, columns].forEach((parts, k) => parts.forEach((part, i) =>
    part.held.forEach((leaf) => place[k].set(leaf, i))));
  const held = rows.map(() => columns.map(() => 0));
  for (const [codes, n] of cells) held[place[0].get(codes[down])][place[1].get(codes[across])] += n;
  const body = shape("g", { transform: `translate(${left},${TREE + 4})`, class: "cells" });
  rows.forEach((row, i) => columns.forEach((column, j) => {
    const wanted = expected * (row.observations / total) * (column.observations / total);
    const lift = held[i][j] / wanted;
    const cell = shape("rect", { x: j * size, y: i * size, width: size, height: size,
      fill: color(lift), stroke: "#ddd", "stroke-width": 0.5 });
    cell.append(shape("title", {}, `${named(row)}\n${named(column)}\n${count(held[i][j])}` +
      ` observations, ${wanted.toFixed(1)} if independent: ${lift.toFixed(2)} times`));
    body.append(cell);
  }));
  rows.forEach((row, i) => {
    const text = shape("text", { x: -6, y: (i + 0.5) * size + letters * 0.35,
      "text-anchor": "end" }, cut(named(row), Math.floor(NAMES / letters * 1.8)));
    text.append(shape("title", {}, `${named(row)}: ${count(row.observations)} observations`));
    body.append(text);
  });
  columns.forEach((column, j) => {
    const text = shape("text", { "text-anchor": "end", transform:
      `translate(${(j + 0.5) * size + letters * 0.3},${high + 8}) rotate(-50)` },
      cut(named(column), Math.floor(NAMES / letters * 1.5)));
    text.append(shape("title", {}, `${named(column)}: ${count(column.observations)} observations`));
    body.append(text);
  });
  svg.append(body);
  const top = shape("g", { transform: `translate(${left},0)` });
  top.append(tree(across, level, size, true));
  const right = shape("g", { transform: `translate(${left + wide + 4},${TREE + 4})` });
  right.append(tree(down, level, size, false));
  svg.append(top, right);
  return svg;
}

// The parts of all variables but two, as they meet: one heat map for each.
function facets(others, level) {
  const names = others.map((side) => {
    const place = new Map();
    const parts = partsAt(side, level);
    parts.forEach((part, i) => part.held.forEach((leaf) => place.set(leaf, i)));
    return { side, parts, place };
  });
  const found = new Map();
  grid.cells.forEach((codes, i) => {
    const key = names.map(({ side, place }) => place.get(codes[side])).join(" ");
    if (!found.has(key)) found.set(key, { cells: [], observations: 0, key: key.split(" ") });
    found.get(key).cells.push([codes, grid.counts[i]]);
    found.get(key).observations += grid.counts[i];
  });
  return [...found.values()].sort((a, b) => b.observations - a.observations).map((facet) => ({
    ...facet,
    expected: names.reduce((n, { parts }, k) =>
      n * parts[facet.key[k]].observations / total, total),
    title: names.map(({ side, parts }, k) =>
      `${grid.variables[side].name}: ${named(parts[facet.key[k]])}`).join(", "),
  }));
}

// The share of each part in what the cells tell of the variables; a single part tells nothing.
function interests(sides, level) {
  const parts = sides.map((side) => partsAt(side, level));
  const places = parts.map((some) => {
    const place = new Map();
    some.forEach((part, i) => part.held.forEach((leaf) => place.set(leaf, i)));
    return place;
  });
  const cells = new Map();
  grid.cells.forEach((codes, i) => {
    const key = codes.map((code, side) => places[side].get(code)).join(" ");
    cells.set(key, (cells.get(key) || 0) + grid.counts[i]);
  });
  const gains = parts.map((some) => some.map(() => 0));
  let whole = 0;
  for (const [key, n] of cells) {
    const codes = key.split(" ").map(Number);
    const alone = codes.reduce((p, code, side) => p * parts[side][code].observations / total, 1);
    const gain = (n / total) * Math.log(n / total / alone);
    whole += gain;
    codes.forEach((code, side) => { gains[side][code] += gain; });
  }
  return gains.map((some) => some.map((g) => (some.length > 1 && whole > 0 ? g / whole : 0)));
}

function listed(part) {
  if ("from" in part) {
    return part.above !== null && part.up_to !== null
      ? `above ${part.above}, up to ${part.up_to}` : named(part);
  }
  if (!part.typical.length) return `${count(part.values)} values`;
  const more = part.values - part.typical.length;
  const names = part.typical.map(([text]) => text);
  return [...names, ...(more ? [`${count(more)} more`] : [])].join(" | ");
}

// The parts that the maps show, as tables.
function fillTables(level) {
  const shares = interests(grid.variables.map((_, side) => side), level);
  document.querySelectorAll("table[data-side]").forEach((table) => {
    const side = Number(table.dataset.side);
    table.tBodies[0].replaceChildren(...partsAt(side, level).map((part, i) => {
      const row = document.createElement("tr");
      const name = document.createElement("th");
      name.scope = "row";
      name.textContent = listed(part);
      const figures = [count(part.observations), count(part.values),
        `${(100 * shares[side][i]).toFixed(1)}%`];
      row.append(name, ...figures.map((text) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        return cell;
      }));
      return row;
    }));
  });
}

function draw() {
  const level = grid.merges.length - Number(at("level").value);
  const [down, across] = [Number(at("down").value), Number(at("across").value)];
  const sizes = grid.variables.map((_, side) => partsAt(side, level).length);
  const kept = level ? grid.merges[level - 1][3] : 1;
  at("said").textContent = `${sizes.join(" x ")} parts, ${(100 * kept).toFixed(1)} % of the ` +
    "information";
  fillTables(level);
  const place = at("maps");
  place.replaceChildren();
  if (down === across) {
    place.textContent = "Choose two different variables.";
    return;
  }
  const others = grid.variables.map((_, side) => side).filter((s) => s !== down && s !== across);
  const found = facets(others, level);
  found.slice(0, MOST_FACETS).forEach((facet) => {
    const figure = document.createElement("figure");
    if (facet.title) {
      const words = document.createElement("figcaption");
      words.textContent = `${facet.title} (${count(facet.observations)} observations)`;
      figure.append(words);
    }
    figure.append(heatMap(down, across, level, facet.cells, facet.expected,
      facet.title || "heat map"));
    place.append(figure);
  });
  if (found.length > MOST_FACETS) {
    const words = document.createElement("p");
    words.textContent = `${count(found.length - MOST_FACETS)} more with fewer observations.`;
    place.append(words);
  }
}

document.querySelectorAll("[data-more]").forEach((words) => words.remove());
at("level").max = grid.merges.length;
at("level").value = grid.merges.length - grid.level;
for (const id of ["down", "across"]) {
  grid.variables.forEach(({ name }, side) => at(id).append(new Option(name, side)));
}
at("across").value = 1;
for (const id of ["level", "down", "across"]) at(id).addEventListener("input", draw);
draw();
