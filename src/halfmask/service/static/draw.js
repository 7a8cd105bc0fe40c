// Builds elements; text is always set as text, so that no name or value is read as HTML.
import { link } from "/static/api.js";

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key in made && typeof value === "boolean") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const count = (value) => Number(value).toLocaleString("en-US");

export function percent(share) {
  if (share === null || share === undefined) return "not known";
  if (share > 0 && share < 0.001) return "<0.1%";
  return `${(100 * share).toFixed(1)}%`;
}

export function number(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? count(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
}

// Figures as cards: [[name, value], ...].
export function figures(pairs) {
  const cards = pairs.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  return element("dl", { class: "figures" }, ...cards);
}

// Whether a cell is a figure, written or not.
const isFigure = (cell) => cell === null || typeof cell === "number" ||
  (typeof cell === "string" && /^(<?-?[\d,.]+%?|not known|)$/.test(cell));

// A table; columns that hold figures only are aligned right.
export function table(headings, rows) {
  const right = headings.map((_, i) => rows.length > 0 && rows.every((row) => isFigure(row[i])));
  const side = (i) => (right[i] ? "number" : undefined);
  const head = headings.map((text, i) => element("th", { scope: "col", class: side(i) }, text));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, i) =>
    element("td", { class: side(i), "data-label": headings[i] || undefined }, cell instanceof Node ? cell : number(cell)))));
  return element("div", { class: "wide" }, element("table", {},
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
}

export function mark(holds) {
  return element("span", { class: holds ? "holds" : "fails" }, holds ? "✓ yes" : "✗ no");
}

// Whether the three criteria are met, of a document that judges them.
export function criteria(found) {
  const styles = { met: ["holds", "✓ met"], "not met": ["fails", "✗ not met"] };
  const rows = found.criteria.flatMap((one) => {
    const [style, words] = styles[one.outcome] || ["open", `? ${one.outcome}`];
    return [
      element("tr", {},
        element("td", { class: "name" }, one.column ? `${one.name} of ${one.column}` : one.name),
        element("td", {}, element("span", { class: style }, words)),
        element("td", { class: "number", "data-label": "risk" }, percent(one.risk.value))),
      element("tr", { class: "more" }, element("td", {}), element("td", { colspan: "2", class: "quiet" }, one.attacker)),
    ];
  });
  const head = ["criterion", "outcome", "risk"].map((text, i) =>
    element("th", { scope: "col", class: i === 2 ? "number" : undefined }, text));
  return element("div", { class: "wide" }, element("table", { class: "criteria" },
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

export function paragraphs(texts, style) {
  return texts.map((text) => element("p", { class: style }, text));
}

// Links to files: [[file, words], ...]; pages open beside this one, all else is saved.
export async function links(files) {
  const made = await Promise.all(files.map(async ([file, words]) => {
    const save = !file.endsWith(".html");
    const url = await link(file, save);
    return save
      ? element("a", { href: url, download: file }, words)
      : element("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, words);
  }));
  return element("p", { class: "actions" }, ...made);
}

// An error as it is: what is wrong, the place in a query, what would have been achieved.
export function alarm(place, error) {
  place.replaceChildren();
  if (!error) return;
  const message = error.message || "The page failed: load it again.";
  const isQuery = error.code?.startsWith("input.query") && message.includes("\n");
  const [first, ...rest] = isQuery ? message.split("\n") : [message];
  const verdicts = error.details?.verdicts;
  const style = error.code === "service.cancelled" ? "alert calm" : "alert";
  place.append(element("div", { class: style }, element("p", {}, first),
    rest.length ? element("pre", {}, rest.join("\n")) : null,
    verdicts ? table(["promise", "about", "required", "achieved at best"], verdicts.map((one) =>
      [one.model, one.column || "everybody", one.required, one.achieved])) : null,
    error.hint ? element("p", {}, element("a", { href: "#budget" }, error.hint)) : null,
    error.code ? element("span", { class: "code" }, error.code) : null));
}
