"use strict";
// A closed part does not print: open all of them first.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
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
