// The promises about sensitive columns, as fields: the common ones in sight, the others under "More promises".
import { element } from "/static/draw.js";
import { field } from "/static/fields.js";

const none = "no promise";
const COMMON = [
  { name: "l", label: "l: different values", kind: "number", hint: none },
  { name: "t", label: "t: distance at most", kind: "number", hint: none },
];
const OWN = [
  { name: "personal_l", demand: "l", label: "each person's own l", kind: "check" },
  { name: "personal_t", demand: "t", label: "each person's own t", kind: "check" },
];
const RARE = [
  { name: "alpha", label: "alpha: share of one value at most (needs k)", kind: "number", hint: none },
  { name: "delta_disclosure", label: "delta-disclosure: delta at most", kind: "number", hint: none },
  { name: "beta", label: "beta-likeness: beta at most", kind: "number", hint: none },
];
// What may stand behind a number, and what it means: the first is what holds where nothing is chosen.
const HOW = {
  l: ["How l counts", [["", "different values"], ["entropy", "entropy"], ["recursive:2", "recursive, c = 2"],
    ["recursive:3", "recursive, c = 3"]]],
  t: ["How t measures", [["", "equal distances"], ["ordered", "ordered values"], ["hierarchical", "by the hierarchy"]]],
  delta_disclosure: ["A value that a class lacks", [["", "fails"], ["ignored", "is ignored"]]],
  beta: ["Which beta-likeness", [["", "basic"], ["enhanced", "enhanced"]]],
};

function select(id, name) {
  const [label, options] = HOW[name];
  return element("div", { class: "field" }, element("label", { for: `${id}-how` }, label),
    element("select", { id: `${id}-how` }, ...options.map(([value, words]) => element("option", { value }, words))));
}

function line(column, ...parts) {
  return element("div", { class: "sensitive", role: "group", "aria-label": column }, element("b", {}, column), ...parts);
}

// Draw the fields of all sensitive columns into `common` and `rare`; `form` begins their ids.
export function draw(form, columns, policy, common, rare) {
  const id = (spec, i) => `${form}-${spec.name.replaceAll("_", "-")}-${i}`;
  const made = (spec, column, i) => field(id(spec, i), { ...spec, column }, {});
  common.replaceChildren(...columns.map((column, i) => line(column,
    ...COMMON.map((spec) => made(spec, column, i)),
    ...OWN.filter((spec) => policy[spec.demand]).map((spec) => made(spec, column, i)))));
  rare.replaceChildren(...columns.map((column, i) => line(column,
    ...COMMON.map((spec) => select(id(spec, i), spec.name)),
    ...RARE.flatMap((spec) => [made(spec, column, i), ...(HOW[spec.name] ? [select(id(spec, i), spec.name)] : [])]))));
}
