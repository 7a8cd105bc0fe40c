// The page: six steps, each a form that starts a job and shows the document it gives.
import { ask, settled } from "/static/api.js";
import * as draw from "/static/draw.js";
import * as fields from "/static/fields.js";
import * as promises from "/static/promises.js";
import * as schema from "/static/schema.js";
import * as show from "/static/show.js";

const place = (id) => document.getElementById(id);
const WORDS = {
  open: "Reading and describing the table", table: "Sending the table", schema: "Reading the table with this schema",
  assess: "Measuring who stands out", anonymize: "Searching the recoding that loses least", mask: "Masking",
  frontier: "Searching every setting", compare: "Comparing the release with the original", query: "Answering",
  synthesize: "Learning a model of the rows", population: "Reading the population",
};
const CHANGED = "Roles were changed and are not in use yet: press 'Use these roles' first.";
let choices, described;
const ELSEWHERE = "The table or its schema was changed in another tab: load this page again.";
let running, sending;  // the job that runs; what stops the sending of a file
let proposed = "";  // the query that stands there as an example
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
async function step(verb, begin, shown) {
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
    await shown(await settled((await begin()).job, busy));
  } catch (error) {
    draw.alarm(alert, { ...error, hint: hint(error) });
  } finally {
    if (verb === "query" || verb === "synthesize") await showBudget().catch(() => {});
    busy(null);
    if (document.activeElement === document.body) focused.focus({ preventScroll: true });
  }
}

// Where on this page to do what an error asks for.
function hint({ message }) {
  if (message?.includes("budget is granted")) return "Grant a privacy budget";
  if (!/\bdomain/.test(message)) return undefined;
  place("domains-part").open = true;
  return "Write the public values of each column";
}

function on(id, verb, begin, shown) {
  place(id).addEventListener("submit", (event) => {
    event.preventDefault();
    step(verb, async () => {
      if (verb !== "table") await checkSame();
      return begin();
    }, shown);
  });
}

// What is asked is meant for the table that this page shows.
async function checkSame() {
  const now = await ask("GET", "/api/schema");
  if (JSON.stringify(now) !== JSON.stringify(described)) throw { message: ELSEWHERE };
}

const filled = (id) => place(id).value.trim();

async function showTable(found) {
  described = found;
  changed = false;
  for (const verb of VERBS) {
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
  place("mask-steps").placeholder = (found.schema.mask?.steps || []).length ? "as the schema states" : maskExample();
  place("schema-links").replaceChildren(await draw.links([["schema.toml", "Save the schema (TOML)"]]));
  drawPromises(found.schema);
  drawDomains(found.schema);
  await showBudget();
  showPopulation((await ask("GET", "/api/state")).population);
  if (["", proposed].includes(filled("sql"))) place("sql").value = proposed = example(found.schema);
  for (const part of document.querySelectorAll("section.later")) part.classList.remove("later");
}

function names(role) {
  return Object.entries(described.schema.columns || {}).filter(([, one]) => one.role === role).map(([name]) => name);
}

function drawPromises(now) {
  const own = now.policy || {};
  for (const spec of choices.promises.filter((one) => one.demand && !one.column)) {
    place(`${promises.part(spec)}-field`).hidden = !own[spec.demand];
    place(promises.part(spec)).checked = Boolean(own[spec.demand]);
  }
  place("anonymize-on-infeasible-field").hidden = !own.k && !own.l && !own.t;
  if (own.k) place("promises-k").value = "";
  else if (!filled("promises-k")) place("promises-k").value = "5";
  promises.draw("promises", choices.promises, names("sensitive"), own, place("sensitive"), place("sensitive-more"));
}

// The promises of the form with several k in place of one.
function alternatives() {
  const { k, ...asked } = fields.read(place("promises"));
  for (const { name, kind } of choices.promises) {
    if (typeof asked[name] === "number") asked[name] = String(asked[name]);
    if (kind === "bounds" && asked[name] !== undefined) asked[name] = [asked[name]];
  }
  return { ...asked, ...fields.read(place("frontier-form")) };
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

// A step that fits the table.
function maskExample() {
  const figure = described.columns.find((one) => one.kind === "numeric" && described.schema.columns?.[one.name]?.role !== "identifier");
  return figure ? `such as top-code ${figure.name} share=0.01` : "such as local-suppression k=3";
}

function drawDomains(now) {
  const leave = Object.entries(now.columns || {})
    .filter(([, one]) => one.role !== "identifier" && one.role !== "drop");
  place("domains").replaceChildren(...leave.map(([name], i) => draw.element("div", { class: "field" },
    draw.element("label", { for: `domain-${i}` }, name),
    draw.element("input", { id: `domain-${i}`, "data-column": name, autocomplete: "off",
      placeholder: now.columns[name].domain || now.columns[name].order ? "as the schema declares" : undefined }))));
}

// "f, m" is a list of values; "0 to 110" or "0 to 110, in 22 parts" are bounds.
function domains() {
  const found = {};
  for (const input of place("domains").querySelectorAll("input")) {
    const text = input.value.trim();
    const bounds = /^(\S+)\s+to\s+([^\s,]+)(?:,?\s+in\s+(\d+)\s+parts)?$/.exec(text);
    if (!text) continue;
    if (!bounds) {
      const numeric = described.columns.find((one) => one.name === input.dataset.column)?.kind === "numeric";
      found[input.dataset.column] = text.split(",").map((part) => (numeric ? Number(part) : part.trim()));
    } else {
      const [low, high] = bounds.slice(1, 3).map((part) => (Number.isNaN(Number(part)) ? part : Number(part)));
      found[input.dataset.column] = bounds[3] ? { low, high, bins: Number(bounds[3]) } : { low, high };
    }
  }
  return Object.keys(found).length ? found : null;
}

const SHOW = { open: showTable, population: showPopulation, schema: showTable, assess: show.showAssessment, anonymize: show.showRelease, mask: show.showMasked,
  frontier: show.showFrontier, compare: show.showComparison, query: show.showAnswer, synthesize: show.showSynthetic };
const VERBS = ["assess", "anonymize", "mask", "frontier", "compare", "query", "synthesize"];

// What is left of the budget; asked for whenever something may have spent it.
async function showBudget() {
  const { budget } = await ask("GET", "/api/budget");
  place("budget-form").hidden = Boolean(budget);
  show.showBudget(budget);
}

// Send the file of an input; it can be cancelled on its way.
async function send(input, verb, how = {}) {
  const file = place(input).files[0];
  if (!file) throw { message: "No file is chosen: choose one first." };
  sending = new AbortController();
  busy({ verb, seconds: 0 });
  try {
    const asked = new URLSearchParams({ name: file.name, ...how });
    return await ask("POST", `/api/${verb}?${asked}`, file, sending.signal);
  } finally {
    sending = undefined;
  }
}

// What is promised against a population is asked for only where there is one.
function showPopulation(found) {
  for (const spec of choices.promises.filter((one) => one.population)) place(`${promises.part(spec)}-field`).hidden = !found;
  place("population-result").replaceChildren(found
    ? draw.element("p", {}, `${found.name}: ${draw.count(found.rows)} people. Assess again to count the risk in it.`) : "");
}

function listen() {
  window.addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault();
  });
  place("synthesize-epsilon").addEventListener("input", () => {
    place("synthesize-k-field").hidden = Boolean(filled("synthesize-epsilon"));
  });
  on("table-form", "table", () => send("file", "table", fields.read(place("table-how"))), showTable);
  on("population-form", "population", () => send("population", "population"), showPopulation);
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
  for (const verb of VERBS) on(`${verb}-form`, verb, () => ask("POST", `/api/${verb}`, ASKED[verb]()), SHOW[verb]);
  for (const mode of ["explain", "suggest"]) {
    place(mode).addEventListener("click", () => step("query", async () => {
      await checkSame();
      return ask("POST", "/api/query", { ...ASKED.query(), [mode]: true });
    }, SHOW.query));
  }
  place("budget-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    draw.alarm(place("budget-alert"), null);
    await ask("PUT", "/api/budget", fields.read(place("budget-form"))).then(showBudget)
      .catch((error) => draw.alarm(place("budget-alert"), error));
  });
}

// What each form asks for.
const ASKED = {
  assess: () => fields.read(place("assess-form")),
  anonymize: () => fields.read(place("anonymize-form")),
  mask: () => ({ ...fields.read(place("mask-form")),
    steps: place("mask-steps").value.split("\n").map((one) => one.trim()).filter(Boolean) }),
  frontier: alternatives,
  compare: () => fields.read(place("compare-form")),
  query: () => noisy({ sql: filled("sql"), ...fields.read(place("query-form")) }, / epsilon /i.test(filled("sql"))),
  synthesize: () => noisy(fields.read(place("synthesize-form")), false),
};

// Where something is spent, what is publicly known of the columns goes with it.
function noisy(asked, clause) {
  const spends = clause || asked.epsilon !== undefined;
  return spends ? { ...asked, domains: domains() } : asked;
}

async function start() {
  busy({ verb: "Loading", seconds: 0 });  // nothing is pressed before all is drawn
  try {
    const now = await ask("GET", "/api/state");
    choices = now.choices;
    fields.draw(choices, { promises: promises.whole(choices.promises, true), risks: promises.whole(choices.promises, false) });
    place("mask-words").replaceChildren(...choices.masks.flatMap(([text, does]) =>
      [draw.element("dt", {}, draw.element("code", {}, text)), draw.element("dd", {}, does)]));
    listen();
    place("version").textContent = `halfmask ${now.version}`;
    if (now.table) await showTable(await ask("GET", "/api/schema"));
    showPopulation(now.population);
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
