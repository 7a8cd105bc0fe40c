// What the documents of the verbs look like on the page.
import * as draw from "/static/draw.js";

const place = (id) => document.getElementById(id);

// What to do next, as the reports say it.
const steps = (lines) => (lines && lines.length ? [draw.element("h3", {}, "What to do next"),
  draw.element("ul", {}, ...lines.map((line) => draw.element("li", {}, line)))] : []);

export async function showAssessment(found) {
  place("assess-result").replaceChildren(
    draw.figures([
      ["rows alone in their class", `${draw.count(found.unique_rows)} (${draw.percent(found.unique_share)})`],
      ["highest risk (prosecutor)", draw.percent(found.highest_risk)],
      ["mean risk (marketer)", draw.percent(found.mean_risk)],
      ["smallest class, people", draw.count(found.smallest)], ["classes", draw.count(found.classes)],
    ]),
    draw.element("h3", {}, "If it were published as it is"), draw.criteria(found),
    ...steps(found.steps),
    await draw.links([["assessment.html", "Open the whole assessment"]]));
}

// What many people demand and have, people to the nearest ten.
function byDemand({ model, column, demands }) {
  const reached = model.includes("k-anonymity") ? "smallest class" : model.includes("l-diversity") ? "fewest values" : "farthest class";
  const levels = demands.map((one) => `demanded ${draw.number(one.demanded)}: about ${draw.count(one.people)} people, ${reached} ${draw.number(one.reached)}`);
  return `${model}${column ? ` of ${column}` : ""}: ${levels.join("; ")}.`;
}

export async function showRelease(found) {
  const columns = found.columns.map((one) => [one.name, one.role, one.action,
    one.loss === null ? "" : draw.percent(one.loss)]);
  place("anonymize-result").replaceChildren(
    draw.element("p", { class: "outcome" }, found.outcome),
    draw.figures([
      ["rows that leave", draw.count(found.rows.published)], ["rows left out", draw.count(found.rows.suppressed)],
      ["loss", draw.percent(found.loss)], ["classes", draw.count(found.classes.count)],
      ...(found.risk ? [["smallest class, people", draw.count(found.risk.smallest)],
        ["highest risk (prosecutor)", draw.percent(found.risk.highest_risk)],
        ["mean risk (marketer)", draw.percent(found.risk.mean_risk)]] : []),
    ]),
    draw.element("h3", {}, "Promises"),
    draw.table(["promise", "kept", "required", "achieved", "about"], found.verdicts.map((one) =>
      [one.model, draw.mark(one.holds), one.required ?? "each own", one.achieved ?? "by demand", one.column || "everybody"])),
    ...draw.paragraphs(found.verdicts.filter((one) => (one.demands || []).length).map(byDemand), "quiet"),
    ...((found.tried || []).length ? [draw.element("h3", {}, "Tried"), draw.table(["method", "loss", ""], found.tried.map((one) =>
      [one.method, one.loss === null || one.loss === undefined ? "" : draw.percent(one.loss), one.method === found.method ? "released" : one.reason || ""]))] : []),
    draw.element("h3", {}, "What was done to each column"),
    draw.table(["column", "role", "what was done", "loss"], columns),
    ...draw.paragraphs(found.notes, "quiet"),
    await draw.links([["release.html", "Open the report"], ["release.parquet", "Save the release as Parquet"],
      ["release.csv", "Save the release as CSV"]]));
  place("compare-form").hidden = false;
  place("compare-result").replaceChildren();
}

export async function showMasked(found) {
  place("mask-result").replaceChildren(
    draw.element("p", { class: "outcome" }, found.outcome),
    draw.figures([
      ["rows that leave", draw.count(found.rows.published)], ["rows left out", draw.count(found.rows.suppressed)],
      ...(found.risk ? [["smallest class, people", draw.count(found.risk.smallest)],
        ["highest risk (prosecutor)", draw.percent(found.risk.highest_risk)],
        ["mean risk (marketer)", draw.percent(found.risk.mean_risk)]] : []),
    ]),
    draw.element("h3", {}, "What was done"),
    draw.table(["step", "does", "does not protect from"], found.steps.map((one) => [one.mask, one.sentence, one.open])),
    ...draw.paragraphs(found.notes, "quiet"),
    await draw.links([["masked.html", "Open the report"], ["masked.parquet", "Save the rows as Parquet"],
      ["masked.csv", "Save the rows as CSV"], ["masked.toml", "Save the record of the CSV, to keep beside it"]]));
}

export async function showComparison(found) {
  const told = (value) => (found.made_up ? "not known" : value);  // classes do not hold the people then
  const after = (value) => (value === null || value === undefined ? "not known" : value);
  place("compare-result").replaceChildren(
    draw.table(["", "original", "release"], [
      ["rows", draw.count(found.rows), draw.count(found.rows_released)],
      ["classes", draw.count(found.classes), draw.count(found.classes_released)],
      ["rows in a class, on average", draw.number(found.mean_class), draw.number(after(found.mean_class_released))],
      ["smallest class, people", draw.count(found.before.smallest), told(draw.count(found.after.smallest))],
      ["highest risk (prosecutor)", draw.percent(found.before.prosecutor), told(draw.percent(found.after.prosecutor))],
      ["mean risk (marketer)", draw.percent(found.before.marketer), told(draw.percent(found.after.marketer))],
    ]),
    draw.element("h3", {}, "Three questions to a release"), draw.criteria(found),
    ...steps(found.steps),
    await draw.links([["comparison.html", "Open the whole comparison"]]));
}

// The plan of a query, or guarantees that keep more people, in place of an answer.
function showPlan({ levels, promises, semantics, sql, notes }) {
  return [draw.element("h3", {}, "Plan"),
    ...(levels ? [draw.table(["level", "step", "grouped by", "guarantee"], levels.map((one) =>
      [String(one.level), one.step, String(one.keys || "nothing"), `k ≥ ${one.k}, l ≥ ${one.l}`]))] : []),
    ...draw.paragraphs([...(promises || []).map((one) => `Every row: ${one}`), semantics || "", ...(notes || [])].filter(Boolean), "quiet"),
    draw.element("details", {}, draw.element("summary", {}, "SQL for the engine"),
      ...[sql || []].flat().map((one) => draw.element("pre", {}, one)))];
}

function showSuggestion({ asked, proposed, tried, clause, note }) {
  const row = (words, one) => [words, one.guarantees.map(({ k, l }) => `k=${k} l=${l}`).join(" · "),
    draw.percent(one.contributing), draw.percent(one.people), draw.percent(one.groups)];
  return [draw.element("h3", {}, "Guarantees"),
    draw.table(["", "chain", "people contribute", "people published", "groups published"],
      [row("asked", asked), row("proposed", proposed), ...tried.map((one) => row("tried", one))]),
    draw.element("p", {}, "In place of the query's own clause:"), draw.element("pre", {}, clause),
    draw.element("p", { class: "quiet" }, note)];
}

export async function showAnswer(found) {
  if (found.explanation) return place("query-result").replaceChildren(...showPlan(found.explanation));
  if (found.suggestion) return place("query-result").replaceChildren(...showSuggestion(found.suggestion));
  const rows = found.data, answer = found.answer;
  const headings = rows.length ? Object.keys(rows[0]) : [];
  const levels = (answer.levels || []).map((one) => [one.level, one.step, `k ≥ ${one.k}, l ≥ ${one.l}`, one.rows]);
  place("query-result").replaceChildren(
    rows.length ? draw.table(headings, rows.slice(0, 500).map((row) => headings.map((name) => (Number.isInteger(row[name]) ? String(row[name]) : row[name]))))
      : draw.element("p", {}, "No group meets its guarantee: nothing could be published."),
    rows.length > 500 ? draw.element("p", { class: "quiet" }, `The first 500 of ${draw.count(rows.length)} rows.`) : "",
    ...(levels.length ? [draw.element("h3", {}, "Levels"),
      draw.table(["level", "step", "guarantee", "rows"], levels)] : []),
    ...draw.paragraphs([...(found.coverage || []), ...answer.notes], "quiet"),
    await draw.links([["answer.html", "Open the whole answer"], ["answer.parquet", "Save the rows as Parquet"],
      ["answer.csv", "Save the rows as CSV"]]));
}

export async function showFrontier(found) {
  const rows = found.points.map((one) => [one.best ? draw.element("b", {}, one.name) : one.name,
    one.best ? "✓ best" : "", draw.percent(one.risk), draw.percent(one.highest_risk),
    one.loss === null ? "not known" : draw.percent(one.loss), draw.percent(one.suppressed)]);
  place("frontier").open = true;
  place("frontier-result").replaceChildren(
    rows.length ? draw.table(["setting", "", "mean risk of all rows", "highest risk (prosecutor)", "loss", "rows left out"], rows)
      : draw.element("p", {}, "No setting can be satisfied: promise less, or let more rows be left out."),
    found.impossible.length ? draw.element("p", { class: "quiet" }, `Cannot be satisfied: ${found.impossible.join("; ")}.`) : "",
    ...draw.paragraphs(["Best: no other setting has less risk and loses as little.", ...found.notes], "quiet"),
    await draw.links([["frontier.html", "Open the page with the plot"]]));
}

export function showBudget(budget) {
  if (!budget) {
    return place("budget-result").replaceChildren(
      draw.element("p", { class: "quiet" }, "No budget is granted yet: nothing can be spent."));
  }
  const where = budget.kept ? `Kept in ${budget.kept}, for every table that is opened here.` : "Kept until halfmask serve ends; start it with --ledger FILE to keep it longer.";
  place("budget-result").replaceChildren(
    draw.figures([["granted", budget.granted], ["spent", budget.spent], ["left", budget.left]]),
    budget.spendings.length ? draw.table(["when", "for", "spent"],
      budget.spendings.map((one) => [one.at.replace("T", " ").replace("+00:00", " UTC"), one.purpose, one.amount])) : "",
    draw.element("p", { class: "quiet" }, where));
}

export async function showSynthetic(found) {
  place("synthesize-result").replaceChildren(
    draw.element("p", { class: "outcome" }, found.outcome),
    draw.figures([["rows that leave", draw.count(found.rows.published)], ["method", found.method]]),
    ...draw.paragraphs(found.notes, "quiet"),
    await draw.links([["synthetic.html", "Open the report"], ["synthetic.parquet", "Save the rows as Parquet"],
      ["synthetic.csv", "Save the rows as CSV"]]));
}
