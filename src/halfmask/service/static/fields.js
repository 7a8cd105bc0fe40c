// The fields of every form in one list: written here once, drawn, and read back as what the service takes.
import { element } from "/static/draw.js";

// kind: whole, number, share (written in %), shares, bounds, text, list, check, choice. A field of `more` stands
// under "More choices"; `from` names the list of choices that the service gives.
const FIELDS = {
  table: [
    { name: "delimiter", label: "What separates the fields of a CSV file", kind: "choice",
      options: [[",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"]], hint: "detected", more: true },
    { name: "decimal", label: "Decimal mark", kind: "choice", options: [[",", "comma: 3,5"]], hint: "point: 3.5", more: true },
    { name: "encoding", label: "Encoding", kind: "choice", options: ["utf-8", "latin-1", "cp1252"], hint: "detected", more: true },
    { name: "table", label: "Sheet of a workbook, or table of a database file", kind: "text", more: true },
  ],
  assess: [
    { name: "size", label: "Largest sets of columns", kind: "whole", min: 1, max: 9, value: 3, more: true },
    { name: "limit", label: "Highest acceptable risk, in %", kind: "share", min: 0.1, max: 99, value: 9, more: true },
    { name: "fraction", label: "Share of the population in the table, in %", kind: "share", min: 0, max: 100,
      hint: "not known", more: true },
    { name: "weights", label: "Column of sampling weights", kind: "text", hint: "none", more: true },
  ],
  anonymize: [
    { name: "method", label: "Method", kind: "choice", from: "methods", hint: "auto: what loses least" },
    { name: "suppression", label: "Rows that may be left out, in %", kind: "share", min: 0, max: 100, hint: "none" },
    { name: "time_limit", label: "Time limit, in seconds", kind: "number", min: 0.1, hint: "none" },
    { name: "on_infeasible", label: "leave out people whose own demands nothing can meet", kind: "check", value: "suppress" },
    { name: "metric", label: "What the search minimizes", kind: "choice", from: "metrics", hint: "as fits the method", more: true },
    { name: "labels", label: "What classes publish (divisions)", kind: "choice", options: ["tight", "levels", "sets"], hint: "tight ranges", more: true },
    { name: "fallback", label: "try one k for everybody too (own demands)", kind: "check", value: "uniform", more: true },
    { name: "score", label: "Score of k-member", kind: "choice", options: ["improved", "plain"], hint: "improved", more: true },
    { name: "cut", label: "When mondrian may cut", kind: "choice", options: ["sides", "whole"], hint: "sides", more: true },
    { name: "block", label: "exact: most rows proven at once", kind: "whole", min: 1, more: true },
    { name: "classes", label: "exact: fewest classes", kind: "whole", min: 1, more: true },
    { name: "bins", label: "cocluster: intervals of numbers", kind: "whole", min: 2, more: true },
    { name: "intervals", label: "cocluster: how numbers are cut", kind: "choice",
      options: ["equal-frequency", "equal-width", "modl"], hint: "equal-frequency", more: true },
    { name: "link", label: "cocluster: what a class publishes first", kind: "choice", options: ["count", "lift"], hint: "as fits", more: true },
    { name: "seed", label: "Seed, to repeat a search that draws lots", kind: "whole", min: 0, hint: "none", more: true },
    { name: "demands", label: "set people's own demands aside; what leaves says so first", kind: "check", value: "ignore", more: true },
  ],
  mask: [
    { name: "k", label: "Check that each class holds at least k people", kind: "whole", min: 2, hint: "nothing is promised" },
    { name: "demands", label: "set people's own demands aside; what leaves says so first", kind: "check", value: "ignore", more: true },
  ],
  frontier: [
    { name: "k", label: "Try each of these k", kind: "text", value: "2, 5, 10, 20" },
    { name: "suppression", label: "and each share of rows left out, in %", kind: "shares", value: "0, 2, 5" },
    { name: "methods", label: "Methods", kind: "list", hint: "auto", more: true },
    { name: "risk", label: "Compare by this risk", kind: "choice", options: ["mean", "highest", "inference"], hint: "mean", more: true },
    { name: "utility", label: "and by this loss", kind: "choice", options: ["loss", "distance"], hint: "loss where it is known", more: true },
    { name: "time_limit", label: "Time limit for all settings together, in seconds", kind: "number", min: 0.1, hint: "none", more: true },
    { name: "demands", label: "set people's own demands aside; what leaves says so first", kind: "check", value: "ignore", more: true },
  ],
  compare: [
    { name: "targets", label: "Columns to predict from the others", kind: "list", hint: "the first sensitive one", more: true },
    { name: "limit", label: "Highest acceptable risk, in %", kind: "share", min: 0.1, max: 99, value: 9, more: true },
    { name: "attacks", label: "People whom each attack is tried on", kind: "whole", min: 1, value: 500, more: true },
    { name: "seed", label: "Seed of random choices", kind: "whole", min: 0, value: 0, more: true },
  ],
  budget: [
    { name: "epsilon", label: "Epsilon of everything together", kind: "text", hint: "such as 2" },
    { name: "delta", label: "Delta of everything together", kind: "text", hint: "0: pure differential privacy" },
  ],
  query: [
    { name: "epsilon", label: "Answer with noise, for this epsilon", kind: "text", hint: "as the query says", more: true },
    { name: "delta", label: "and this delta", kind: "text", hint: "0, or as the query says", more: true },
    { name: "rows_per_person", label: "Rows that one person can have", kind: "whole", min: 1, hint: "1", more: true },
    { name: "effort", label: "SEMANTICS complete: work, where 1 is usual", kind: "number", min: 0.1, value: 1, more: true },
  ],
  synthesize: [
    { name: "epsilon", label: "Privacy budget to spend, epsilon", kind: "text", hint: "no formal guarantee" },
    { name: "k", label: "Fewest people in a group of the model", kind: "whole", min: 1, value: 50 },
    { name: "method", label: "Method", kind: "choice", from: "synthesizers", hint: "best for this choice" },
    { name: "rows", label: "Rows to draw", kind: "whole", min: 1, hint: "about as many" },
    { name: "given", label: "Draw only rows that hold (needs the number of rows)", kind: "list", hint: "such as sex=f, age>=18", more: true },
    { name: "delta", label: "With a budget: delta", kind: "text", hint: "0", more: true },
    { name: "rows_per_person", label: "With a budget: rows that one person can have", kind: "whole", min: 1, hint: "1", more: true },
    { name: "holdout", label: "cocluster: rows kept out as a control, in %", kind: "share", min: 0, max: 99, hint: "none", more: true },
    { name: "bins", label: "cocluster: intervals of numbers", kind: "whole", min: 2, more: true },
    { name: "intervals", label: "cocluster: how numbers are cut", kind: "choice",
      options: ["equal-frequency", "equal-width", "modl"], hint: "equal-frequency", more: true },
    { name: "strategy", label: "cocluster: how groups grow to k", kind: "choice", options: ["climb", "targeted"], hint: "climb", more: true },
    { name: "mode", label: "cocluster: rows are drawn", kind: "choice", options: ["draw", "quota"], hint: "at random", more: true },
    { name: "combinations", label: "cocluster: columns whose values together k people must share", kind: "whole", min: 1, hint: "2; 1: each value alone", more: true },
    { name: "time_limit", label: "cocluster: time limit, in seconds", kind: "number", min: 0.1, hint: "none", more: true },
    { name: "seed", label: "cocluster: seed, to repeat a draw", kind: "whole", min: 0, hint: "none", more: true },
    { name: "demands", label: "set people's own demands aside; what leaves says so first", kind: "check", value: "ignore", more: true },
  ],
};
const NUMERIC = ["whole", "number", "share"];

function input(id, spec, choices) {
  const { name, kind, column } = spec;
  const data = { id, "data-name": name, "data-kind": kind, "data-column": column };
  if (kind === "choice") {
    const list = spec.options || choices[spec.from].filter((one) => one !== "auto");
    return element("select", data, element("option", { value: "" }, spec.hint),
      ...list.map((one) => [one].flat()).map(([one, words]) => element("option", { value: one }, words ?? one)));
  }
  if (kind === "check") return element("input", { ...data, type: "checkbox", "data-value": spec.value });
  return element("input", { ...data, type: NUMERIC.includes(kind) ? "number" : "text", min: spec.min, max: spec.max,
    step: kind === "whole" ? "1" : "any", placeholder: spec.hint, value: spec.value, autocomplete: "off" });
}

export function field(id, spec, choices) {
  const made = input(id, spec, choices);
  const label = element("label", { for: id }, spec.label);
  if (spec.kind === "check") return element("div", { class: "field check", id: `${id}-field` }, made, label);
  if (spec.help) made.setAttribute("aria-describedby", `${id}-help`);
  return element("div", { class: "field", id: `${id}-field` }, label, made,
    spec.help ? element("small", { id: `${id}-help`, class: "quiet" }, spec.help) : null);
}

// Fill every place that says which fields belong there, in this list or among `others`; ids are the form's name and
// the field's.
export function draw(choices, others) {
  const known = { ...FIELDS, ...others };
  for (const place of document.querySelectorAll("[data-fields]")) {
    const form = place.dataset.fields;
    const made = (more) => known[form].filter((one) => Boolean(one.more) === more)
      .map((one) => field(`${form}-${one.name.replaceAll("_", "-")}`, one, choices));
    const [plain, more] = [made(false), made(true)];
    place.replaceChildren(...(plain.length ? [element("div", { class: "fields" }, ...plain)] : []),
      ...(more.length ? [element("details", {}, element("summary", {}, "More choices"),
        element("div", { class: "fields" }, ...more))] : []));
  }
}

const shares = (text) => text.split(",").filter((part) => part.trim()).map((part) => Number(part) / 100);

function value(one) {
  const { kind, value: stated } = one.dataset;
  const text = kind === "choice" ? one.value : one.value.trim();  // a tab is a choice too
  if (kind === "check") return one.checked ? stated ?? true : undefined;
  if (text === "") return undefined;
  if (kind === "share") return Number(text) / 100;
  if (kind === "shares") return shares(text).join(",");
  if (kind === "list") return text.split(",").map((part) => part.trim()).filter(Boolean);
  return kind === "whole" || kind === "number" ? Number(text) : text;
}

// What a form says: only what was filled in, and is in sight or under "More choices". A field of a column
// becomes an entry as on the command line, "disease=3:entropy".
export function read(form) {
  const asked = {};
  for (const one of form.querySelectorAll("[data-name]")) {
    const found = one.closest("[hidden]") ? undefined : value(one);
    if (found === undefined) continue;
    const { name, column } = one.dataset;
    if (column === undefined) asked[name] = found;
    else (asked[name] ??= []).push(`${column}${found === true ? "" : `=${found}`}${how(one)}`);
  }
  return asked;
}

// What stands behind the number of a column: the kind of l, the distance of t; nothing follows what is left empty.
function how(one) {
  const chosen = [...document.querySelectorAll(`[data-behind="${one.id}"]`)].map((part) => part.value.trim());
  const end = chosen.indexOf("");
  return chosen.slice(0, end < 0 ? chosen.length : end).map((part) => `:${part}`).join("");
}
