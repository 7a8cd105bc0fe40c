"use strict";
// A closed part does not print: open all of them first.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
// On a phone the cells of a row stand below each other: each carries its column's name then, and
// what it is, which the style takes from it.
for (const table of document.querySelectorAll(".wide table")) {
  const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  table.setAttribute("role", "table");
  for (const row of table.querySelectorAll("tbody tr")) {
    row.setAttribute("role", "row");
    for (const [place, cell] of [...row.cells].entries()) {
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
      const named = cell.tagName === "TD" && cell.colSpan === 1 && cell.textContent.trim();
      if (named && names[place]) cell.dataset.label ??= names[place];
    }
  }
}
// Draw each plot into the element whose id it carries, as SVG so that it prints sharp.
for (const [id, spec] of Object.entries(JSON.parse(document.getElementById("plots").textContent))) {
  const place = document.getElementById(id);
  const view = new vega.View(vega.parse(vegaLite.compile(spec).spec), {
    renderer: "svg",
    container: place,
    hover: true,
  });
  view.tooltip((_handler, event, _item, value) => {
    place.title = value
      ? Object.entries(value).map(([name, text]) => `${name}: ${text}`).join("\n")
      : "";
  });
  view.runAsync();
}
