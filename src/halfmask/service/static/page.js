// The page: six steps, each a form that starts a job and shows the document it gives.
import { ask, settled } from "/static/api.js";
import * as draw from "/static/draw.js";
import * as schema from "/static/schema.js";

const place = (id) => document.getElementById(id);
const WORDS = {
  open: "Reading and describing the table", table: "Sending the table", schema: "Reading the table with this schema",
  assess: "Measuring who stands out", anonymize: "Searching the recoding that loses least",
  compare: "Comparing the release with the original", query: "Answering",
  synthesize: "Learning a model of the rows",
};
const CHANGED = "Roles were changed and are not in use yet: press 'Use these roles' first.";
let choices, described;
const ELSEWHERE = "The table or its schema was changed in another tab: load this page again.";
let running, sending;  // the job that runs; what stops the sending of a file
let changed = false;  // whether the form says another schema than the one in force

// What runs, for how long, and how to stop it; nothing else can be pressed meanwhile.
function busy(job) {
  for (const button of document.querySelectorAll("main button")) button.disabled = Boolean(job);
  if (!job) return place("working").replaceChildren();
  if (!place("working").firstChild) {
    const stop = draw.element("button", { type: "button", class: "second", id: "cancel" }, "Cancel");
    stop.addEventListener("click", () => { stop.disabled = true; cancel(); });
    place("working").append(draw.element("progress", { "aria-label": "working" }),
      draw.element("span", { role: "status" }), draw.element("span", { class: "quiet" }), stop);
  }
  const [, words, seconds, stop] = place("working").children;
  const told = `${WORDS[job.verb] || job.verb} …`;
  if (words.textContent !== told) words.textContent = told;  // read aloud once, not every second
  seconds.textContent = `${Math.round(job.seconds)} s`;
  running = job.id;
  stop.hidden = !job.id && !sending;
}

async function cancel() {
  if (sending) return sending.abort();
  await ask("DELETE", `/api/jobs/${running}`).catch(() => {});  // whoever waits for it is told
}

// Start a step and show what it gives, or why not, below its form.
async function step(verb, begin, show) {
  const alert = place(`${verb}-alert`);
  if (changed && verb !== "schema" && verb !== "table") return draw.alarm(alert, { message: CHANGED });
  draw.alarm(alert, null);
  if (verb !== "table") place(`${verb}-result`)?.replaceChildren();
  if (verb === "anonymize") {
    place("compare-form").hidden = true;
    place("compare-result").replaceChildren();
  }
  const focused = document.activeElement;  // a button that is disabled loses it
  busy({ verb, seconds: 0 });
  try {
    await show(await settled((await begin()).job, busy));
  } catch (error) {
    draw.alarm(alert, error);
  } finally {
    busy(null);
    if (document.activeElement === document.body) focused.focus({ preventScroll: true });
  }
}

function on(id, verb, begin, show) {
  place(id).addEventListener("submit", (event) => {
    event.preventDefault();
    step(verb, async () => {
      if (verb !== "table") await checkSame();
      return begin();
    }, show);
  });
}

// What is asked is meant for the table that this page shows.
async function checkSame() {
  const now = await ask("GET", "/api/schema");
  if (JSON.stringify(now) !== JSON.stringify(described)) throw { message: ELSEWHERE };
}

const filled = (id) => place(id).value.trim();
const numeric = (id) => (filled(id) === "" ? null : Number(filled(id)));
const share = (id) => (filled(id) === "" ? null : Number(filled(id)) / 100);

async function showTable(found) {
  described = found;
  changed = false;
  for (const verb of ["assess", "anonymize", "compare", "query", "synthesize"]) {
    place(`${verb}-result`).replaceChildren();
    draw.alarm(place(`${verb}-alert`), null);
  }
  place("compare-form").hidden = true;
  place("headline").textContent =
    `${found.name}: ${draw.count(found.rows)} rows, ${found.columns.length} columns`;
  place("table-result").replaceChildren(draw.figures([
    ["table", found.name], ["rows", draw.count(found.rows)], ["columns", draw.count(found.columns.length)],
  ]));
  schema.draw(found, choices, place("columns"), place("schema-notes"));
  place("schema-links").replaceChildren(await draw.links([["schema.toml", "Save the schema (TOML)"]]));
  drawPromises(found.schema);
  drawDomains(found.schema);
  if (!filled("sql")) place("sql").value = example(found.schema);
  for (const part of document.querySelectorAll("section.later")) part.classList.remove("later");
}

function names(role) {
  return Object.entries(described.schema.columns || {}).filter(([, one]) => one.role === role).map(([name]) => name);
}

function drawPromises(now) {
  const own = now.policy || {};
  place("personal-k-field").hidden = !own.k;
  place("infeasible-field").hidden = !own.k && !own.l && !own.t;
  place("personal-k").checked = Boolean(own.k);
  if (own.k) place("k").value = "";
  else if (!filled("k")) place("k").value = "5";
  place("sensitive").replaceChildren(...names("sensitive").map((name, i) => {
    const field = (letter, label, attributes) => draw.element("div", { class: "field" },
      draw.element("label", { for: `${letter}-${i}` }, label),
      draw.element("input", { id: `${letter}-${i}`, type: "number", placeholder: "no promise", ...attributes }));
    return draw.element("div", { class: "sensitive" }, draw.element("b", {}, name),
      field("l", "l: different values", { min: 1, step: "any" }),
      field("t", "t: distance at most", { min: 0, max: 1, step: "any" }),
      own.l ? draw.element("div", { class: "field check" },
        draw.element("input", { id: `own-l-${i}`, type: "checkbox" }),
        draw.element("label", { for: `own-l-${i}` }, "each person's own l")) : null);
  }));
}

function promises() {
  const asked = { suppression: share("suppression") ?? 0, k: numeric("k"), l: [], t: [], personal_l: [],
    method: filled("method") || null, time_limit: numeric("time-limit") };
  asked.personal_k = !place("personal-k-field").hidden && place("personal-k").checked;
  if (place("infeasible").checked) asked.on_infeasible = "suppress";
  names("sensitive").forEach((column, i) => {
    if (filled(`l-${i}`)) asked.l.push({ column, l: numeric(`l-${i}`) });
    if (filled(`t-${i}`)) asked.t.push({ column, t: numeric(`t-${i}`) });
    if (place(`own-l-${i}`)?.checked) asked.personal_l.push(column);
  });
  return asked;
}

function example(now) {
  const quoted = (name) => (/^[a-z_]\w*$/i.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
  const few = described.columns.filter((one) => now.columns?.[one.name]?.role === "quasi")
    .sort((a, b) => a.distinct - b.distinct).map((one) => quoted(one.name));
  const figure = described.columns.find((one) => one.kind === "numeric" && now.columns?.[one.name]?.role === "sensitive");
  if (!few.length) return "";
  const groups = few.slice(0, 2);
  const told = figure ? `AVG(${quoted(figure.name)}) AS mean` : "COUNT(*) AS people";
  const l = figure ? 3 : 1;
  return `SELECT ${[...groups, told].join(", ")}\nFROM people\nGROUP BY ${groups.join(", ")}\n` +
    `GUARANTEE k = 5, l = ${l}` +
    (groups.length > 1 ? `\nTHEN ${groups[1]} -> del GUARANTEE k = 10, l = ${l}` : "");
}

function drawDomains(now) {
  const leave = Object.entries(now.columns || {}).filter(([, one]) => one.role !== "identifier");
  place("domains").replaceChildren(...leave.map(([name], i) => draw.element("div", { class: "field" },
    draw.element("label", { for: `domain-${i}` }, name),
    draw.element("input", { id: `domain-${i}`, "data-column": name, autocomplete: "off" }))));
}

// "f, m" is a list of values; "0 to 110" or "0 to 110, in 22 parts" are bounds.
function domains() {
  const found = {};
  for (const input of place("domains").querySelectorAll("input")) {
    const text = input.value.trim();
    const bounds = /^(\S+)\s+to\s+([^\s,]+)(?:,?\s+in\s+(\d+)\s+parts)?$/.exec(text);
    if (!text) continue;
    if (!bounds) found[input.dataset.column] = text.split(",").map((part) => part.trim());
    else {
      const [low, high] = bounds.slice(1, 3).map((part) => (Number.isNaN(Number(part)) ? part : Number(part)));
      found[input.dataset.column] = bounds[3] ? { low, high, bins: Number(bounds[3]) } : { low, high };
    }
  }
  return Object.keys(found).length ? found : null;
}

async function showAssessment(found) {
  place("assess-result").replaceChildren(
    draw.figures([
      ["rows alone in their class", `${draw.count(found.unique_rows)} (${draw.percent(found.unique_share)})`],
      ["highest risk", draw.percent(found.highest_risk)], ["mean risk", draw.percent(found.mean_risk)],
      ["people in the smallest class", draw.count(found.smallest)], ["classes", draw.count(found.classes)],
    ]),
    draw.element("h3", {}, "If it were published as it is"), draw.criteria(found),
    await draw.links([["assessment.html", "Open the whole assessment"]]));
}

async function showRelease(found) {
  const columns = found.columns.map((one) => [one.name, one.role, one.action,
    one.loss === null ? "" : draw.percent(one.loss)]);
  place("anonymize-result").replaceChildren(
    draw.element("p", { class: "outcome" }, found.outcome),
    draw.figures([
      ["rows that leave", draw.count(found.rows.published)], ["rows left out", draw.count(found.rows.suppressed)],
      ["loss", draw.percent(found.loss)], ["classes", draw.count(found.classes.count)],
      ["rows in the smallest class", draw.count(found.classes.smallest)],
    ]),
    draw.element("h3", {}, "Promises"),
    draw.table(["promise", "kept", "required", "achieved", "about"], found.verdicts.map((one) =>
      [one.model, draw.mark(one.holds), one.required, one.achieved, one.column || "everybody"])),
    draw.element("h3", {}, "What was done to each column"),
    draw.table(["column", "role", "what was done", "loss"], columns),
    ...draw.paragraphs(found.notes, "quiet"),
    await draw.links([["release.html", "Open the report"], ["release.parquet", "Save the release as Parquet"],
      ["release.csv", "Save the release as CSV"]]));
  place("compare-form").hidden = false;
  place("compare-result").replaceChildren();
}

async function showComparison(found) {
  const after = (value) => (value === null || value === undefined ? "not known" : value);
  place("compare-result").replaceChildren(
    draw.table(["", "original", "release"], [
      ["rows", draw.count(found.rows), draw.count(found.rows_released)],
      ["classes", draw.count(found.classes), draw.count(found.classes_released)],
      ["rows in a class, on average", draw.number(found.mean_class), draw.number(after(found.mean_class_released))],
      ["highest risk", draw.percent(found.before.prosecutor), draw.percent(found.after.prosecutor)],
      ["mean risk", draw.percent(found.before.marketer), draw.percent(found.after.marketer)],
    ]),
    draw.element("h3", {}, "Three questions to a release"), draw.criteria(found),
    await draw.links([["comparison.html", "Open the whole comparison"]]));
}

async function showAnswer(found) {
  const rows = found.data, answer = found.answer;
  const headings = rows.length ? Object.keys(rows[0]) : [];
  const levels = (answer.levels || []).map((one) => [one.level, one.step, `k ≥ ${one.k}, l ≥ ${one.l}`, one.rows]);
  place("query-result").replaceChildren(
    rows.length ? draw.table(headings, rows.slice(0, 500).map((row) => headings.map((name) => (Number.isInteger(row[name]) ? String(row[name]) : row[name]))))
      : draw.element("p", {}, "No group meets its guarantee: nothing could be published."),
    rows.length > 500 ? draw.element("p", { class: "quiet" }, `The first 500 of ${draw.count(rows.length)} rows.`) : "",
    ...(levels.length ? [draw.element("h3", {}, "Levels"),
      draw.table(["level", "step", "guarantee", "rows"], levels)] : []),
    ...draw.paragraphs(answer.notes, "quiet"),
    await draw.links([["answer.html", "Open the whole answer"], ["answer.parquet", "Save the rows as Parquet"],
      ["answer.csv", "Save the rows as CSV"]]));
}

async function showSynthetic(found) {
  place("synthesize-result").replaceChildren(
    draw.element("p", { class: "outcome" }, found.outcome),
    draw.figures([["rows that leave", draw.count(found.rows.published)], ["method", found.method]]),
    ...draw.paragraphs(found.notes, "quiet"),
    await draw.links([["synthetic.html", "Open the report"], ["synthetic.parquet", "Save the rows as Parquet"],
      ["synthetic.csv", "Save the rows as CSV"]]));
}

const SHOW = { open: showTable, schema: showTable, assess: showAssessment, anonymize: showRelease,
  compare: showComparison, query: showAnswer, synthesize: showSynthetic };

function listen() {
  window.addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault();
  });
  place("epsilon").addEventListener("input", () => {
    place("group-field").hidden = Boolean(filled("epsilon"));
    place("domains-part").open = Boolean(filled("epsilon"));
  });
  on("table-form", "table", async () => {
    const file = place("file").files[0];
    if (!file) throw { message: "No file is chosen: choose one, or take the sample." };
    sending = new AbortController();
    busy({ verb: "table", seconds: 0 });
    try {
      return await ask("POST", `/api/table?name=${encodeURIComponent(file.name)}`, file, sending.signal);
    } finally {
      sending = undefined;
    }
  }, showTable);
  place("sample").addEventListener("click", () => step("table", () => ask("POST", "/api/sample", {}), showTable));
  place("schema-form").addEventListener("input", () => {
    changed = true;
    place("schema-links").textContent = "Changed, not in use yet.";
  });
  on("schema-form", "schema", () => ask("PUT", "/api/schema", schema.read(described.columns)), showTable);
  on("toml-form", "schema", async () => {
    const file = place("toml").files[0];
    if (!file) throw { message: "No schema file is chosen." };
    return ask("PUT", "/api/schema", { toml: await file.text() });
  }, showTable);
  on("assess-form", "assess", () => ask("POST", "/api/assess", {
    size: numeric("assess-size") ?? 3, limit: share("assess-limit") ?? 0.09, fraction: share("assess-fraction"),
    weights: filled("assess-weights") || null,
  }), showAssessment);
  on("anonymize-form", "anonymize", () => ask("POST", "/api/anonymize", promises()), showRelease);
  on("compare-form", "compare", () => ask("POST", "/api/compare", {}), showComparison);
  on("query-form", "query", () => ask("POST", "/api/query", { sql: filled("sql") }), showAnswer);
  on("synthesize-form", "synthesize", () => ask("POST", "/api/synthesize", {
    epsilon: filled("epsilon") || null, method: filled("synthesizer") || null,
    k: filled("epsilon") ? null : numeric("group"), rows: numeric("synthetic-rows"),
    domains: filled("epsilon") ? domains() : null,
  }), showSynthetic);
}

async function start() {
  listen();
  busy({ verb: "Loading", seconds: 0 });  // nothing is pressed before all is drawn
  try {
    const now = await ask("GET", "/api/state");
    choices = now.choices;
    for (const [id, list] of [["method", choices.methods], ["synthesizer", choices.synthesizers.slice(1)]]) {
      place(id).append(...list.map((one) => draw.element("option", { value: one }, one)));
    }
    place("version").textContent = `halfmask ${now.version}`;
    if (now.table) await showTable(await ask("GET", "/api/schema"));
    for (const verb of now.results) await SHOW[verb](await ask("GET", `/api/results/${verb}`));
    if (now.job) {
      const verb = now.job.verb === "open" ? "table" : now.job.verb;
      await step(verb, async () => now, SHOW[now.job.verb]);
    }
  } catch (error) {
    draw.alarm(place("table-alert"), error);
  } finally {
    busy(null);
  }
}

start();
