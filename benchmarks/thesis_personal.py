"""The experiments of the thesis on personal k-anonymity at full size, next to its printed values.

Run: python benchmarks/thesis_personal.py [--data ../shared/data/arx] [--seeds 5] [--quick]
     [--part table|scenarios|scale|exact] [-o folder]

Regenerates Table 5.3 (DBIL of one k for all over DBIL of personal k, demands at random and along
the data), the scenarios of figures 5.5 to 5.8 over a grid of shares, the scale of figure 5.9, the
deletion of figure 5.10 and the ratios of chapter 6, each with the 95% interval of its mean. Writes
JSON and, for the grid, a page with plots. ``--quick`` takes 3,000 rows and two seeds.

Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm
from _adult import DATA, adult
from halfmask.anonymize.policies import Gain
from halfmask.report.page import rendered
from halfmask.report.plots import plot

ALONG = ("age", "education-num")
LOW, HIGH = (3, 5, 7), (5, 7, 10)
CONCERNS = ("general", "personal", "professional", "sexual-political")
# Table 5.3: method and k, then (at random, along the data) per concern in the order above.
PRINTED = {
    ("mondrian", LOW): ((1.001, 1.341), (1.813, 2.124), (1.167, 1.616), (1.306, 1.761)),
    ("mondrian", HIGH): ((1.000, 1.064), (1.453, 2.057), (1.098, 1.187), (1.065, 1.427)),
    ("k-member", LOW): ((1.005, 1.096), (1.581, 1.758), (1.144, 1.321), (1.210, 1.439)),
    ("k-member", HIGH): ((1.001, 1.064), (1.385, 1.505), (1.093, 1.239), (1.112, 1.302)),
    ("mdav", LOW): ((1.002, 1.081), (1.636, 1.851), (1.147, 1.341), (1.214, 1.489)),
    ("mdav", HIGH): ((0.999, 1.068), (1.429, 1.575), (1.104, 1.274), (1.121, 1.346)),
}


def table_53(table: hm.Table, seeds: range) -> list[dict]:
    """Our ratios beside the printed ones; the new method has none printed."""
    out = []
    for method in ("mondrian", "k-member", "mdav", "personal"):
        for k in (LOW, HIGH):
            for i, concern in enumerate(CONCERNS):
                printed = PRINTED.get((method, k))
                for j, along in enumerate((None, ALONG)):
                    found = hm.compare_policies(
                        table, [concern], k=k, correlated=along, method=method, seeds=seeds
                    ).gains[0]
                    out.append(
                        {"method": method, "k": k, "concern": concern,
                         "demands": "along the data" if along else "at random",
                         **_rounded(found.over_uniform),
                         "printed": printed[i][j] if printed else None,
                         "scenario_1": round(found.over_moderate.mean, 3),
                         "scenario_3": round(found.over_deleting.mean, 3)}
                    )  # fmt: skip
    return out


def scenarios(table: hm.Table, seeds: range, step: int) -> list[dict]:
    """Figures 5.5 to 5.8 and 5.10: gains over a grid of shares of liberals and conservatives."""
    out = []
    for low in range(0, 101, step):
        for high in range(0, 101 - low, step):
            shares = (float(high), float(100 - low - high), float(low))
            found = hm.compare_policies(
                table, [shares], k=LOW, method="mondrian", seeds=seeds
            ).gains[0]
            out.append(
                {"liberal": low, "conservative": high,
                 "scenario_1": round(found.over_moderate.mean, 3),
                 "scenario_2": round(found.over_uniform.mean, 3),
                 "scenario_3": round(found.over_deleting.mean, 3)}
            )  # fmt: skip
    return out


def scale(table: hm.Table, seeds: range, method: str) -> list[dict]:
    """Figure 5.9: the gain grows with the distance between demands and falls with their size."""
    out = []
    for k in ((14, 15, 16), (10, 15, 20), (2, 15, 28), (18, 20, 22), (2, 35, 68)):
        found = hm.compare_policies(table, ["personal"], k=k, method=method, seeds=seeds).gains[0]
        out.append({"k": k, "method": method, **_rounded(found.over_uniform)})
    return out


def chapter_6(table: hm.Table, seeds: range, size: int = 18) -> list[dict]:
    """Figure 6.6: the DBIL of each heuristic over the optimum."""
    ratios: dict[str, list[float]] = {}
    for seed in seeds:
        pick = np.random.default_rng(seed).choice(len(table), size, replace=False)
        part = hm.Table(table.arrow.take(pa.array(pick)), table.schema)
        demands = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=seed)
        best = _exact(demands, "dbil")
        for method in ("k-member", "mdav", "mondrian", "personal"):
            release = hm.anonymize(demands, hm.PersonalKAnonymity(), method=method, seed=seed)
            ratios.setdefault(method, []).append(release.parameters["value"] / best)
    printed = {"k-member": "1.3 to 1.4"}
    return [
        {"method": name, "records": size, **_rounded(Gain.of(found)), "printed": printed.get(name)}
        for name, found in ratios.items()
    ]


def _exact(table: hm.Table, metric: str) -> float:
    release = hm.anonymize(table, hm.PersonalKAnonymity(), method="exact", metric=metric)
    return float(release.parameters["value"])


def _rounded(gain: Gain) -> dict[str, float]:
    return {"mean": round(gain.mean, 3), "low": round(gain.low, 3), "high": round(gain.high, 3)}


def page(grid: list[dict]) -> str:
    """The grid of scenarios as three plots."""
    shared = {
        "x": {"field": "liberal", "type": "ordinal", "title": "liberals (%)"},
        "y": {"field": "conservative", "type": "ordinal", "sort": "descending",
              "title": "conservatives (%)"},
    }  # fmt: skip
    plots = {
        f"plot-{name}": plot(
            grid, height=260, mark="rect",
            encoding={**shared, "color": {"field": name, "type": "quantitative"},
                      "tooltip": [{"field": f} for f in ("liberal", "conservative", name)]},
        )
        for name in ("scenario_1", "scenario_2", "scenario_3")
    }  # fmt: skip
    return rendered("templates/plots.html", title="Scenarios of the thesis", plots=plots)


def main() -> None:
    """Print one JSON document; with ``-o`` also write it and the page of plots."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--step", type=int, default=20, help="of the grid of shares, in percent")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--part", choices=("table", "scenarios", "scale", "exact"))
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()
    table, seeds = adult(given.data), range(2 if given.quick else given.seeds)
    if given.quick:
        pick = np.random.default_rng(0).choice(len(table), 3000, replace=False)
        table = hm.Table(table.arrow.take(pa.array(pick)), table.schema)
    parts = {
        "table": lambda: table_53(table, seeds),
        "scenarios": lambda: scenarios(table, seeds[:1], given.step),
        "scale": lambda: scale(table, seeds[:1], "mondrian"),
        "exact": lambda: chapter_6(table, range(20)),
    }
    document = {name: run() for name, run in parts.items() if given.part in (None, name)}
    text = json.dumps(document, indent=1)
    if given.output:
        given.output.mkdir(exist_ok=True)
        (given.output / "thesis.json").write_text(text + "\n", encoding="utf-8")
        if "scenarios" in document:
            html = page(document["scenarios"])
            (given.output / "scenarios.html").write_text(html, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
