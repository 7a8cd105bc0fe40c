// The promises about sensitive columns, as fields; each model says itself how it is asked for. The common ones are in
// sight, the others, and what may be chosen behind a number, under "More promises".
import { element } from "/static/draw.js";
import { field } from "/static/fields.js";

const NONE = "no promise";

// What may stand behind the number of a field: a word, the first of which is usual, or a further number.
function choices(id, spec) {
  return spec.choices.map((one, i) => {
    const data = { id: `${id}-how${i || ""}`, "data-behind": id };
    const made = one.words
      ? element("select", data, ...one.words.map(([value, words]) => element("option", { value }, words)))
      : element("input", { ...data, type: "number", step: "any", min: one.min, max: one.max, autocomplete: "off" });
    return element("div", { class: "field" }, element("label", { for: data.id }, one.label), made);
  });
}

function line(column, ...parts) {
  return element("div", { class: "sensitive", role: "group", "aria-label": column }, element("b", {}, column), ...parts);
}

// The promises that speak of no column, as fields of a form.
export function whole(specs, common) {
  return specs.filter((spec) => !spec.column && spec.common === common)
    .map((spec) => ({ ...spec, hint: spec.kind === "bounds" ? "such as 0, 0.5" : common ? undefined : NONE }));
}

// The place of a promise that speaks of no column.
export const part = (spec) => `${spec.common ? "promises" : "risks"}-${spec.name.replaceAll("_", "-")}`;

// Draw the fields of all sensitive columns into `common` and `rare`; `form` begins their ids.
export function draw(form, specs, columns, policy, common, rare) {
  const id = (spec, i) => `${form}-${spec.name.replaceAll("_", "-")}-${i}`;
  const made = (spec, column, i) => field(id(spec, i), { ...spec, column, hint: NONE }, {});
  const asked = specs.filter((spec) => spec.column && (!spec.demand || policy[spec.demand]));
  common.replaceChildren(...columns.map((column, i) => line(column,
    ...asked.filter((spec) => spec.common).map((spec) => made(spec, column, i)))));
  rare.replaceChildren(...columns.map((column, i) => line(column,
    ...asked.flatMap((spec) => [...(spec.common ? [] : [made(spec, column, i)]), ...choices(id(spec, i), spec)]))));
}
