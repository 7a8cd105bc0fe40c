// The schema as a form: one row a column; what the form does not show is kept as it was.
import { count, element, paragraphs } from "/static/draw.js";

const ROLES = {
  identifier: "identifier, never leaves",
  quasi: "quasi-identifier",
  sensitive: "sensitive",
  other: "other, leaves as it is",
  drop: "drop, does not leave",
  person: "says whose row it is",
};
const HOW = {
  none: ["kept or hidden", ""],
  intervals: ["intervals", "widths: 5, 10, 20"],
  mask: ["masked", "number of characters"],
  dates: ["calendar", "month, quarter, year"],
  auto: ["found from the table", ""],
};
let current = {};

function role(name) {
  for (const [demand, column] of Object.entries(current.policy || {})) {
    if (column === name) return `policy.${demand}`;
  }
  if (current.table?.person === name) return "person";
  return current.columns?.[name]?.role || "";
}

// Which entry of HOW a hierarchy is, and its text; "keep" for all others.
function shape(spec) {
  if (spec === undefined || spec.flat === true) return ["none", ""];
  if (spec === "auto" || spec.auto === true) return ["auto", ""];
  if (Array.isArray(spec.intervals) && !("top" in spec)) return ["intervals", spec.intervals.join(", ")];
  if (Number.isInteger(spec.mask) && !("top" in spec)) return ["mask", String(spec.mask)];
  if (Array.isArray(spec.dates) && !("top" in spec)) return ["dates", spec.dates.join(", ")];
  return ["keep", ""];
}

const WORDS = { csv: "a file of levels", tree: "groups", ordered: "an order", mask: "masked, as declared",
  intervals: "intervals, as declared", dates: "calendar, as declared", auto: "found, as declared" };

function choice(id, label, options, chosen) {
  const made = element("select", { id, "aria-label": label });
  for (const [value, words] of options) {
    made.append(element("option", { value, selected: value === chosen }, words));
  }
  return made;
}

function hierarchy(name, i) {
  const spec = current.columns?.[name]?.hierarchy;
  const [kind, text] = shape(spec);
  const options = Object.entries(HOW).map(([value, [words]]) => [value, words]);
  if (kind === "keep") options.unshift(["keep", WORDS[Object.keys(spec)[0]] || "as declared"]);
  const select = choice(`how-${i}`, `How ${name} is generalized`, options, kind);
  const input = element("input", { id: `widths-${i}`, "aria-label": `Levels of ${name}`, value: text });
  const show = () => {
    const hint = HOW[select.value]?.[1] || "";
    input.hidden = !hint;
    input.placeholder = hint;
  };
  select.addEventListener("change", () => { input.value = ""; show(); });
  show();
  return element("div", {}, select, input);
}

// The facts of a column, and where they are of use the reasons of the proposal.
function why(column, proposed) {
  const facts = `${count(column.distinct)} distinct values, ${count(column.missing)} missing.`;
  const word = column.role === "quasi" ? "quasi-identifier" : column.role;
  const now = role(column.name).split(".")[0];
  const same = now === column.role || (now === "person" && column.role === "identifier");
  return proposed || !same ? `${facts} Proposed ${word}: ${column.why}.` : facts;
}

function row(column, i, choices, proposed) {
  const roles = [...choices.roles.map((one) => [one, ROLES[one]]), ["person", ROLES.person],
    ...choices.demands.map((one) => [`policy.${one}`, `each person's own ${one}`])];
  const now = role(column.name);
  if (!now) roles.unshift(["", "not yet said"]);
  const roleSelect = choice(`role-${i}`, `Role of ${column.name}`, roles, now);
  const kinds = [["", "detected"], ...choices.kinds.map((one) => [one, one])];
  const kindSelect = choice(`kind-${i}`, `Kind of ${column.name}`, kinds,
    current.columns?.[column.name]?.kind || "");
  const how = element("td", { class: "how" }, hierarchy(column.name, i));
  const show = () => {
    kindSelect.hidden = roleSelect.value === "person" || roleSelect.value.startsWith("policy.");
    how.firstChild.hidden = roleSelect.value !== "quasi" && roleSelect.value !== "sensitive";
  };
  roleSelect.addEventListener("change", show);
  show();
  return [
    element("tr", {}, element("td", { class: "name" }, column.name),
      element("td", { class: "role" }, roleSelect), element("td", { class: "kind" }, kindSelect), how),
    element("tr", { class: "why" },
      element("td", { colspan: "4", class: "quiet" }, why(column, proposed))),
  ];
}

export function draw(found, choices, rows, notes) {
  current = found.schema;
  rows.replaceChildren(...found.columns.flatMap((column, i) => row(column, i, choices, found.proposed)));
  const lead = found.proposed
    ? "These roles are a proposal: read the reasons, and change what is wrong." : "";
  notes.replaceChildren(...paragraphs([lead, ...found.notes].filter(Boolean), "quiet"));
}

function built(name, i) {
  const kind = document.getElementById(`how-${i}`).value;
  const parts = document.getElementById(`widths-${i}`).value.split(",").map((part) => part.trim()).filter(Boolean);
  if (kind === "keep") return current.columns[name].hierarchy;
  if (kind === "intervals") return { intervals: parts.map(Number) };
  if (kind === "mask") return { mask: parts.length ? Number(parts[0]) : true };
  if (kind === "dates") return { dates: parts.length ? parts : true };
  if (kind === "auto") return "auto";
  return current.columns?.[name]?.hierarchy?.flat ? { flat: true } : undefined;
}

// The schema that the form says, in the shape of the schema file.
export function read(columns) {
  const asked = { columns: {}, policy: {}, table: { ...current.table } };
  if (current.policy?.file) asked.policy.file = current.policy.file;
  delete asked.table.person;
  columns.forEach(({ name }, i) => {
    const chosen = document.getElementById(`role-${i}`).value;
    if (chosen.startsWith("policy.")) asked.policy[chosen.slice(7)] = name;
    else if (chosen === "person") asked.table.person = name;
    if (chosen === "person") asked.columns[name] = { role: "identifier" };
    if (!chosen || chosen === "person" || chosen.startsWith("policy.")) return;
    const entry = { ...current.columns?.[name], role: chosen };
    const kind = document.getElementById(`kind-${i}`).value;
    if (kind) entry.kind = kind; else delete entry.kind;
    delete entry.hierarchy;
    const spec = chosen === "quasi" || chosen === "sensitive" ? built(name, i) : undefined;
    if (spec !== undefined) entry.hierarchy = spec;
    asked.columns[name] = entry;
  });
  return asked;
}
